"""`compare`: which pooling, or graph, predicts best rows that it was not learned from."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Unpack

import numpy as np

from poolbn import metrics
from poolbn.arguments import DICT, TEXT, check_arguments, is_list
from poolbn.arrays import Floats, Integers, Positions
from poolbn.assess.folds import Folds, check_folds, deal, deal_incomplete, deal_table
from poolbn.assess.graphtest import criteria
from poolbn.errors import DataError, Option, OptionError, check_count, nearest
from poolbn.fitting import brought, columns_for, without_group
from poolbn.graph.dag import as_dag
from poolbn.graph.grammars import Drawing
from poolbn.graph.pairs import Pair, sorted_arcs
from poolbn.inference.engine import held_out
from poolbn.later import pandas as pd
from poolbn.learning import Plan, SearchOptions, as_plan, check_keywords
from poolbn.moments.cases import list_of_names
from poolbn.moments.checks import warn
from poolbn.moments.data import Data, is_data
from poolbn.moments.reading import check_reading
from poolbn.moments.standardised import standardise
from poolbn.moments.table import as_table, gathered, table
from poolbn.moments.targets import Targets
from poolbn.network.network import Network
from poolbn.network.presenting import present
from poolbn.nodes.model import Choice
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.run.parallel import available_cores, map_measured
from poolbn.run.progress import Progress
from poolbn.tables import data
from poolbn.tables.grouping import Group
from poolbn.tables.kinds import Kinds, has_levels, is_normal
from poolbn.tables.missing import Missing
from poolbn.wording import counted, figure, listed, noun_of, sensible, visible

_CLEAR = 2.0  # standard errors
POOLED_RESIDUALS, _GRAPH = "pooled residuals", "graph"
_WORDS = {
    "complete": "complete pooling",
    "none": "no pooling",
    "partial": "partial pooling",
    POOLED_RESIDUALS: "pooled residuals",
}


class Difference(NamedTuple):
    """How much worse a model predicts than the best one, in log-likelihood per held-out row."""

    mean: float  # over all rows
    se: float  # its standard error, from the differences in the folds
    folds: int  # in how many folds it is worse

    @property
    def clear(self) -> bool:
        """Whether it is more than two standard errors."""
        return self.mean > _CLEAR * self.se


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Networks learned with P poolings, or of P graphs, and how well they predict other rows.

    Log-likelihoods are means per row, with the row's data set known: higher is better. They are
    -inf where there is no fit, and `trouble` says why.

    Attributes:
        networks: by name of the pooling or graph, the network learned from all rows.
        rows: held-out rows in each of the K folds, (K,).
        loglik: their log-likelihoods, (P, K).
        left_out: L data sets that were left out as a whole, and predicted from the population.
        left_out_rows: rows of each of them, (L,).
        left_out_loglik: their log-likelihoods, (P, L).
        known: root mean square error of each variable, predicted from all others with the data set
            known, over its standard deviation in all rows together, (P, N).
        unknown: the same with the data set unknown, (P, N).
        f1: F1 of classifying rows by data set, the mean over data sets, (P,).
        trouble: for each pooling why some folds have no fit, or "".
        no_population: for each pooling why it does not predict new data sets, or "".
        what: what was compared, "pooling" or "graph"; below, poolings may be graphs.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> found = pb.compare(trial, group="clinic", poolings=["complete", "none"], folds=5)
        >>> found.best, found.loglik.shape, found.left_out
        ('none', (2, 5), ('NY', 'MN', 'KY', 'MS'))
    """

    networks: Mapping[str, Network]
    rows: Integers
    loglik: Floats
    left_out: tuple[Hashable, ...]
    left_out_rows: Integers
    left_out_loglik: Floats
    known: Floats
    unknown: Floats
    f1: Floats
    trouble: tuple[str, ...]
    no_population: tuple[str, ...]
    what: str = "pooling"

    @property
    def poolings(self) -> tuple[str, ...]:
        """The names of the poolings."""
        return tuple(self.networks)

    @property
    def best(self) -> str:
        """The pooling that predicts held-out rows best; of equal ones that with the best score."""
        total = self._total()
        scores = [net.score for net in self.networks.values()]
        return max(zip(total, scores, self.poolings, strict=True))[-1]

    def difference(self, name: str) -> Difference:
        """The difference from the best model.

        Raises:
            OptionError: it was not compared.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> found = pb.compare(trial, group="clinic", poolings=["complete", "none"], folds=5)
            >>> found.difference("complete").clear
            False
        """
        check_arguments(name=(name, TEXT))
        if name not in self.networks:
            raise OptionError(f"no {self.what} {name!r} was compared{nearest(name, self.networks)}")
        p, best = self.poolings.index(name), self.poolings.index(self.best)
        if p == best:
            return Difference(0.0, 0.0, 0)
        with np.errstate(invalid="ignore"):
            each = self.loglik[best] - self.loglik[p]
        if not np.isfinite(each).all():
            return Difference(np.inf, np.nan, int((each > 0).sum()))
        se = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
        return Difference(
            float(self.rows @ each / self.rows.sum()), float(se), int((each > 0).sum())
        )

    def table(self) -> pd.DataFrame:
        """A row for each pooling.

        - `score`, `arcs`: of the network learned from all rows; of graphs `AIC` too, as R has it;
        - `loglik`: of held-out rows; `difference` from the best model, with its standard error
          `se`, and the number of folds in which it is worse, `folds_worse`;
        - `new_data_set`: log-likelihood of data sets that were left out as a whole; NaN without a
          population;
        - `known`, `unknown`: relative error of predictions, the mean over variables, with the data
          set known and unknown; 1 is as bad as always predicting the mean;
        - `f1`: of classifying rows by data set;
        - `note`: what could not be done.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> found = pb.compare(trial, group="clinic", poolings=["complete", "none"], folds=5)
            >>> found.table()[["score", "arcs", "known", "f1"]].round(2)
                        score  arcs  known    f1
            pooling
            complete -9725.26     1   0.65  0.12
            none     -9720.84     1   0.65  0.25
        """
        differences = [self.difference(name) for name in self.poolings]
        nets = self.networks.values()
        notes = zip(self.trouble, self.no_population, strict=True)
        made = pd.DataFrame(
            {
                "score": [net.score for net in nets],
                "arcs": [len(net.dag.arcs) for net in nets],
                "loglik": self._total(),
                "difference": [difference.mean for difference in differences],
                "se": [difference.se for difference in differences],
                "folds_worse": [difference.folds for difference in differences],
                "new_data_set": self._total_left_out(),
                "known": self.known.mean(axis=1),
                "unknown": self.unknown.mean(axis=1),
                "f1": self.f1,
                "note": ["; ".join(filter(None, both)) for both in notes],
            },
            index=pd.Index(self.poolings, name=self.what),
        )
        if self.what == _GRAPH:
            made.insert(1, "AIC", [criteria(net)["AIC"] for net in nets])
        return made

    def differences(self) -> pd.DataFrame:
        """The arcs that some networks have and others do not: a column for each network.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> found = pb.compare(trial, group="clinic", folds=2,
            ...                    graphs={"mine": "age -> bmi", "rival": "bmi -> age"})
            >>> found.differences()
               parent child   mine  rival
            0     bmi   age  False   True
            1     age   bmi   True  False
        """
        import pandas as pd

        each = {name: set(net.dag.arcs) for name, net in self.networks.items()}
        nodes = next(iter(self.networks.values())).dag.nodes
        some = set[Pair]().union(*each.values()) - set[Pair].intersection(*each.values())
        arcs = sorted_arcs(some, {node: k for k, node in enumerate(nodes)})
        ends = {"parent": [parent for parent, _ in arcs], "child": [child for _, child in arcs]}
        return pd.DataFrame(ends | {name: [a in own for a in arcs] for name, own in each.items()})

    def by_variable(self) -> pd.DataFrame:
        """Relative errors of predictions: a row for each variable, a column for each pooling.

        They are under `known` with the data set of a row known, and under `unknown` without it.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> found = pb.compare(trial, group="clinic", poolings=["complete", "partial"])
            >>> found.by_variable()["known"].round(2)
                            complete  partial
            variable
            gestation_days      0.65     0.64
            birthweight_g       0.64     0.64
        """
        columns = pd.MultiIndex.from_product([["known", "unknown"], self.poolings])
        variables = next(iter(self.networks.values())).dag.nodes
        errors = np.concatenate([self.known, self.unknown]).T
        return pd.DataFrame(errors, index=pd.Index(variables, name="variable"), columns=columns)

    def by_fold(self) -> pd.DataFrame:
        """Log-likelihoods per held-out row: a row for each fold, a column for each pooling.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> found = pb.compare(trial, group="clinic", poolings=["complete", "none"], folds=2)
            >>> found.by_fold().round(2)
                  rows  complete   none
            fold
            0      405    -11.96 -11.93
            1      404    -12.03 -11.97
        """
        return self._by("fold", range(len(self.rows)), self.rows, self.loglik)

    def by_data_set(self) -> pd.DataFrame:
        """Log-likelihoods per row of data sets left out as a whole; a column for each pooling.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> found = pb.compare(trial, group="clinic", poolings=["complete", "partial"], folds=2)
            >>> found.by_data_set().round(2)
                      rows  complete  partial
            data_set
            NY         164    -12.10   -12.01
            MN         247    -11.96   -11.91
            KY         207    -11.77   -11.72
            MS         191    -12.39   -12.39
        """
        return self._by("data_set", self.left_out, self.left_out_rows, self.left_out_loglik)

    def _by(
        self, name: str, parts: Iterable[Hashable], rows: Integers, loglik: Floats
    ) -> pd.DataFrame:
        index = pd.Index(list(parts), name=name)
        columns = dict(zip(self.poolings, loglik, strict=True))
        return pd.DataFrame({"rows": rows, **columns}, index=index)

    @property
    def headline(self) -> str:
        """Which pooling predicts best, in one sentence."""
        if not any(map(sensible, self._total())):
            return f"No {self.what} has a fit in all folds."
        rivals = self._rivals()
        said = self.words
        if not rivals:
            return f"Only {said(self.best)} has a fit in all folds."
        tied = [said(name) for name, difference in rivals.items() if not difference.clear]
        more = f", but {listed(tied)} may be as good" if tied else ", by a clear difference"
        return f"{self._subject} {said(self.best)} predict held-out rows best{more}."

    def words(self, name: str) -> str:
        """A pooling or graph that was compared, in a sentence.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> found = pb.compare(trial, group="clinic", poolings=["none"], folds=2)
            >>> found.words("none")
            'no pooling'
        """
        return f"the graph {name!r}" if self.what == _GRAPH else _WORDS.get(name, name)

    @property
    def _subject(self) -> str:
        return "Networks of" if self.what == _GRAPH else "Networks with"

    @property
    def verdict(self) -> str:
        """Which pooling predicts best, and how sure that is, in words."""
        said = [self.headline]
        folds = len(self.rows)
        if parts := [
            _phrase(self.words(name), found, folds) for name, found in self._rivals().items()
        ]:
            said.append(
                f"The log-likelihood of a held-out row is {listed(parts)}; ± is a standard error "
                "over the folds."
            )
        reasons = zip(self.poolings, self.trouble, strict=True)
        said += [f"{name!r} has no fit for {trouble}." for name, trouble in reasons if trouble]
        said += [
            f"{name!r} has numbers beyond all sense; tables have - for them."
            for name in self._senseless()
        ]
        return " ".join(filter(None, [*said, self._about_score(), self._about_new()]))

    def _senseless(self) -> list[str]:
        """Poolings that have a fit, and numbers that are no results all the same."""
        fitted = self.table().drop(columns="note")[[not why for why in self.trouble]]
        return [
            str(name)
            for name, row in fitted.iterrows()
            if any(not sensible(value) for value in row.dropna())
        ]

    def _rivals(self) -> dict[str, Difference]:
        """Poolings with a fit in all folds, without the best one; the nearest to it first."""
        found = {name: self.difference(name) for name in self.poolings if name != self.best}
        fitted = [name for name in found if sensible(found[name].mean)]
        return {name: found[name] for name in sorted(fitted, key=lambda name: found[name].mean)}

    def _about_score(self) -> str:
        scores = {name: net.score for name, net in self.networks.items()}
        first = max(scores, key=scores.__getitem__)
        if len(scores) < 2 or not sensible(scores[first]):
            return ""
        too = " too" if first == self.best else ""
        return f"The network of all rows has the best score with {self.words(first)}{too}."

    def _about_new(self) -> str:
        total = dict(zip(self.poolings, self._total_left_out(), strict=True))
        able = sorted((n for n in total if sensible(total[n])), key=lambda n: -total[n])
        if len(able) < 2:
            return ""
        rest = ", ".join(f"{self.words(name)} {total[name]:.4g}" for name in able[1:])
        sets = noun_of(self.networks[self.best].group)
        return (
            f"{self._subject} {self.words(able[0])} predict new {sets.many} best: log-likelihood "
            f"{total[able[0]]:.4g} for a row of {sets.a} that was left out ({rest})."
        )

    def _total(self) -> Floats:
        """Log-likelihood per held-out row, (P,)."""
        return np.asarray(self.loglik @ self.rows / self.rows.sum())

    def _total_left_out(self) -> Floats:
        """Log-likelihood per row of data sets left out, (P,)."""
        if not self.left_out:  # all are experiments
            return np.full(len(self.left_out_loglik), np.nan)
        return np.asarray(self.left_out_loglik @ self.left_out_rows / self.left_out_rows.sum())

    def _summary(self) -> str:
        net = next(iter(self.networks.values()))
        held = f"{self.rows.sum()} held-out rows in {len(self.rows)} folds"
        return (
            f"{counted(len(self.poolings), self.what)} on "
            f"{counted(len(net.levels), noun_of(net.group))}, "
            f"{net.n_rows} rows, {counted(len(net.dag.nodes), 'column')}; {held}"
        )

    def __repr__(self) -> str:
        table = self.table().drop(columns="note").rename_axis(None)
        parts = [
            f"Comparison: {self._summary()}",
            table.to_string(float_format=figure),
            textwrap.fill(self.verdict, 100, break_on_hyphens=False),
        ]
        return visible("\n".join(parts), "\n")

    def _repr_html_(self) -> str:
        return str(present("page.notebook.shown", self))


def _phrase(said: str, difference: Difference, folds: int) -> str:
    if difference.mean == difference.se == 0:
        return f"the same with {said}"
    return (
        f"{difference.mean:.2g} ± {difference.se:.2g} lower with {said} "
        f"(in {difference.folds} of {folds} folds)"
    )


_RESIDUALS = Partial(residuals="pooled")
_POOLINGS: tuple[str | Choice, ...] = ("complete", "none", "partial", _RESIDUALS)
_LEFT_OUT = 20  # upper bound of the data sets that are left out in turn


def compare(
    source: object,
    *,
    group: Group = None,
    columns: Iterable[str] | None = None,
    kinds: Kinds | None = None,
    missing: Missing = "error",
    inputs: Iterable[str] = (),
    interventions: Targets | None = None,
    folds: int = 10,
    poolings: Sequence[str | Choice] = _POOLINGS,
    graphs: Mapping[str, object] | None = None,
    pooling: str | Choice | None = None,
    seed: int = 0,
    **learning: Unpack[SearchOptions],
) -> Comparison:
    """Find out by cross-validation which pooling, or graph, predicts new rows and data sets best.

    The rows of each data set go to folds at random. Networks learned from the other folds, graph
    and all, predict each fold. A data set with one row is never held out. Then each data set is
    left out as a whole, and networks of the others predict it from the population, where their
    pooling has one.

    Rows are read once and become sufficient statistics. Of more than 20,000 rows a random sample of
    20,000 is predicted; of more than 20 data sets, 20 at random are left out in turn.

    Columns may be of all kinds; rows are then held in memory. A level that has no probability, as
    none of the rows learned from has it, counts as if half a row of its data set had.

    Args:
        source: anything with rows that `pb.stats` takes, or a `pb.Table`.
        group: the column that says which data set a row came from.
        columns: the columns to keep; None for all but `group`.
        kinds: of some columns, as for `pb.table`.
        missing: "error" refuses missing values; "drop" leaves out the rows that have one; "em"
            learns from what they have, and predicts that of those that are held out. It holds the
            rows in memory, and errors of single variables are those of rows without gaps.
        inputs: columns that may be parents but never children, see `pb.stats`.
        interventions: columns that were set in some data sets, see `pb.stats`.
        folds: how many; at most as many as rows.
        poolings: names or objects, as for `pb.learn`; `pb.Partial(residuals="pooled")` is called
            "pooled residuals".
        graphs: graphs to compare instead, by name, each as for `pb.fit`, or None for the one that
            is learned. The columns are those that any of them names, unless `columns` says more; a
            graph has those that it does not name as nodes without arcs.
        pooling: that of all graphs, as for `pb.learn`; None for "partial".
        seed: random seed of folds and samples.
        learning: `score`, `search` and `constraints`, as for `pb.learn`.

    Raises:
        DataError: the source cannot be used, or has no row to hold out.
        OptionError: an option has a value that it does not take.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> found = pb.compare(trial, group="clinic", missing="drop", folds=5)
        >>> found.table()[["arcs", "loglik", "difference", "se"]].round(3)
                          arcs  loglik  difference     se
        pooling
        complete             2 -15.174       0.040  0.015
        none                 2 -15.134       0.000  0.000
        partial              2 -15.136       0.001  0.007
        pooled residuals     2 -15.137       0.003  0.004
        >>> found.headline
        'Networks with no pooling predict held-out rows best, but partial pooling ...
        >>> rivals = {"mine": "age -> birthweight_g <- gestation_days", "learned": None}
        >>> found = pb.compare(trial, group="clinic", missing="drop", folds=5, graphs=rivals)
        >>> found.table()[["arcs", "loglik", "difference", "se"]].round(3)
                 arcs  loglik  difference     se
        graph
        mine        2 -15.157       0.021  0.013
        learned     2 -15.136       0.000  0.000
    """
    check_folds(folds)
    check_count(seed=seed)
    check_reading(group, columns, inputs, interventions)
    known = (*SearchOptions.__annotations__, "poolings", "graphs", "pooling")
    check_keywords(learning, known, "pb.compare")
    drawings: dict[str, Drawing | None] = {}
    if graphs is None and pooling is not None:
        raise OptionError(
            "'pooling' is an option of pb.compare for graphs={...}; did you mean 'poolings'?"
        )
    if graphs is None:
        plans = _plans(poolings, learning)
    else:
        if poolings is not _POOLINGS:
            raise OptionError("poolings and graphs exclude each other; give pooling=... for graphs")
        drawings, columns = _drawings(graphs, source, group, columns)
        plans = {name: as_plan(pooling=pooling or "partial", **learning) for name in drawings}
    continuous = False
    if is_data(source):
        if not source.has_rows:
            raise DataError(
                "sufficient statistics hold no rows to hold out; give the rows themselves"
            )
        source = source if columns is None else source.select(columns)
    else:
        columns = None if columns is None else list_of_names("columns", columns)
        reading, each = data.prepare_kinds(
            source, group=group, columns=columns, missing=missing, kinds=kinds
        )
        continuous = all(map(is_normal, each)) and reading.unit is None
    if continuous:
        rows = data.read(source, group=group, columns=columns, missing=missing)
        plans = _of_graphs(plans, drawings, rows.names)
        for plan in plans.values():
            plan.constraints.on(rows.names)
        how = deal_incomplete if missing == "em" else deal
        dealt = how(rows, folds, seed, inputs, interventions)
    else:
        found = gathered(
            source, group=group, columns=columns, kinds=kinds, missing=missing, inputs=inputs,
            interventions=interventions,
        )  # fmt: skip
        if not found.has_rows:  # to keep units whole
            found = table(
                source, group=group, columns=columns, missing=missing, inputs=inputs,
                interventions=interventions,
            )  # fmt: skip
        plans = _of_graphs(plans, drawings, found.names)
        for plan in plans.values():
            plan.allowed(found)
        dealt = deal_table(as_table(found), folds, seed)
    _check(dealt)
    warn(dealt.total)
    compared = _compare(plans, dealt, seed)
    return compared if graphs is None else replace(compared, what=_GRAPH)


def _drawings(
    graphs: Mapping[str, object], source: object, group: Group, columns: Iterable[str] | None
) -> tuple[dict[str, Drawing | None], list[str]]:
    """What the graphs say, and the columns of them all."""
    check_arguments(graphs=(graphs, DICT))
    found: dict[str, Drawing | None] = {}
    for name, graph in graphs.items():
        if not isinstance(name, str):
            raise OptionError(f"the names of graphs are texts, got {name!r}")
        drawing = None if graph is None else without_group(brought(graph), source, group)
        found[name] = None if drawing is None else replace(drawing, complete=False)
    given = [drawing for drawing in found.values() if drawing is not None]
    if not given:
        raise OptionError("graphs has no graph; name some, as in {'mine': 'age -> bmi'}")
    nodes = dict.fromkeys(node for drawing in given for node in drawing.nodes)
    latent = tuple(node for drawing in given for node in drawing.unobserved)
    every = Drawing(tuple(nodes), (), unobserved=latent, complete=False)
    return found, columns_for(every, source, group, columns)


def _of_graphs(
    plans: dict[str, Plan], drawings: Mapping[str, Drawing | None], names: Sequence[str]
) -> dict[str, Plan]:
    """The plans of graphs that are given, and those of others as they are."""
    given = {name: as_dag(drawing, names) for name, drawing in drawings.items() if drawing}
    return {n: plan.given(given[n]) if n in given else plan for n, plan in plans.items()}


def _plans(poolings: Sequence[str | Choice], learning: SearchOptions) -> dict[str, Plan]:
    if isinstance(poolings, str) or not is_list(poolings):
        raise OptionError(
            Option("poolings", poolings), " is not a list; name the poolings to compare"
        )
    plans: dict[str, Plan] = {}
    for pooling in poolings:
        name = pooling if isinstance(pooling, str) else repr(pooling)
        if not isinstance(pooling, np.ndarray) and pooling == _RESIDUALS:
            name = POOLED_RESIDUALS
        if name in plans:
            raise OptionError(f"the pooling {name!r} is named twice")
        plans[name] = as_plan(pooling=pooling, **learning)
    if not plans:
        raise OptionError(Option("poolings", poolings), " is empty; name the poolings to compare")
    return plans


def _check(dealt: Folds) -> None:
    """Raise for data on which poolings cannot be compared."""
    total = dealt.total
    if len(total.levels) < 2:
        raise DataError(
            f"there is one data set, {total.levels[0]!r} with {total.n_rows} rows; a comparison "
            "needs two or more"
        )
    if (dealt.fold < 0).all():
        raise DataError(
            f"each of the {len(total.levels)} data sets has one row, so none can be held out; a "
            "comparison needs data sets with two rows or more"
        )


@dataclass(frozen=True, eq=False)
class _Forecast:
    """Learn from some rows and predict others."""

    plan: Plan
    categories: tuple[tuple[str, ...], ...]  # levels of columns, where these are of all kinds
    train: Data
    values: Floats  # rows to predict, (m, N)
    codes: Integers  # their data sets, as positions in `train.levels`, (m,)
    new: Hashable = None  # the data set that all of them are from, if it is not one of these


@dataclass(frozen=True, eq=False)
class _Result:
    """How good the predictions are."""

    loglik: float  # per row; -inf without a fit, NaN without a prediction
    rows: int  # without gaps
    known: Floats  # squared errors of each variable in these, summed, (N,)
    unknown: Floats
    data_set: Integers  # the most probable one of each row, (m,)
    trouble: str = ""  # why nothing was predicted


def _compare(plans: dict[str, Plan], dealt: Folds, seed: int) -> Comparison:
    total = dealt.total
    folds = np.unique(dealt.fold[dealt.fold >= 0])  # others are never held out
    held = [np.flatnonzero(dealt.fold == k) for k in folds]
    sets = np.setdiff1d(dealt.codes, [*_alone(total), *_experiments(total)])
    if len(sets) > _LEFT_OUT:
        sets = np.sort(np.random.default_rng(seed).choice(sets, _LEFT_OUT, replace=False))
    away = [np.flatnonzero(dealt.codes == j) for j in sets]
    tasks = [
        _Forecast(plan, total.categories, dealt.train[k], dealt.values[at], dealt.codes[at])
        for k, at in zip(folds, held, strict=True)
        for plan in plans.values()
    ]
    for j, at in zip(sets, away, strict=True):
        others = [i for i in range(len(total.levels)) if i != j]
        rest = total.data_sets(others, [total.levels[i] for i in others]).settled()
        task = rest, dealt.values[at], np.full(len(at), len(others)), total.levels[j]
        tasks += [_Forecast(plan, total.categories, *task) for plan in plans.values()]
    answers: dict[int, _Result] = {}
    with Progress() as progress:
        networks = {name: plan.learned(total) for name, plan in plans.items()}
        for k, result in map_measured(_assess, tasks, available_cores()):
            answers[k] = result
            progress(lambda: f"comparing: {len(answers)} of {len(tasks)} networks")
    results = [answers[k] for k in range(len(tasks))]
    P, cut = len(plans), len(plans) * len(folds)
    of_folds = [results[:cut][p::P] for p in range(P)]
    of_sets = [results[cut:][p::P] for p in range(P)]
    sd = _spreads(total) if total.has_rows else standardise(total.stats()).scale
    rows = np.array([len(at) for at in held])
    whole = np.array([[result.rows for result in of] for of in of_folds])
    actual = [dealt.codes[at] for at in held]
    return Comparison(
        networks=networks,
        rows=rows,
        loglik=np.array([[result.loglik for result in of] for of in of_folds]),
        left_out=tuple(total.levels[j] for j in sets),
        left_out_rows=np.array([len(at) for at in away]),
        left_out_loglik=np.array([[result.loglik for result in of] for of in of_sets]),
        known=_relative([[result.known for result in of] for of in of_folds], whole, sd),
        unknown=_relative([[result.unknown for result in of] for of in of_folds], whole, sd),
        f1=np.array([_f1(of, actual, len(total.levels)) for of in of_folds]),
        trouble=tuple(_troubles(of, "folds") for of in of_folds),
        no_population=tuple(_troubles(of, "data sets") for of in of_sets),
    )


def _spreads(table: Data) -> Floats:
    """Standard deviations of columns in all rows; of a discrete one over all its levels, (N,)."""
    out = np.empty(len(table.names))
    for i, column in enumerate(table.cases(table.names, incomplete=True).columns):
        out[i] = np.nanstd(column) or 1.0
        if has_levels(table.kinds[i]):
            times = np.bincount(column[~np.isnan(column)].astype(np.int64))
            share = times / times.sum()
            out[i] = np.sqrt((share * (1 - share)).sum())
    return out


def _alone(total: Data) -> Positions:
    """Data sets that alone have a column: without them there is nothing to learn it from."""
    there = total.n[:, None] > total.missing
    return np.flatnonzero(there[:, there.sum(axis=0) == 1].any(axis=1))


def _experiments(total: Data) -> list[int]:
    """Data sets that no others predict: in which a column was set, or alone was not."""
    free = [total.where_not_set(child).levels for child in range(len(total.names))]
    alone = {levels[0] for levels in free if len(levels) == 1 < len(total.levels)}
    return [j for j, v in enumerate(total.levels) if v in total.interventions or v in alone]


def _assess(task: _Forecast) -> _Result:
    """Learn and predict."""
    plan, values, codes = task.plan, task.values, task.codes
    if task.new is not None and (why := _no_population(plan.pooling, task.train)):
        return _nothing(task, why, np.nan)
    net = plan.learned(task.train, quick=True)
    for node, fit in net.fits.items():
        if not fit.status.ok:
            return _nothing(task, f"{node!r}: {fit.status}: {fit.detail}", -np.inf)
        if task.new is not None and not fit.has_population:
            return _nothing(task, f"{node!r} is without pooling, so there is no population", np.nan)
    if task.new is not None:
        net = net.adapt(name=(task.new,))  # like no other name: of 7 and 007 each is left out
    engine, rows = net._engine(plugin=False), held_out(task.train, task.categories, values)
    found = engine.judged(rows, codes, net.n, guess=task.new is None)
    loglik = float(found.log_density.mean())
    if found.data_set is None:
        return _nothing(task, "", loglik)
    whole = rows.whole
    errors = net._engine(plugin=True).squares(rows.some(whole), codes[whole], net.n)
    return _Result(loglik, len(whole), *errors, found.data_set)


def _no_population(pooling: Choice, train: Data) -> str:
    """Why networks say nothing of a new data set, if that is known without learning them."""
    if isinstance(pooling, NoPooling):
        return "without pooling there is no population to predict a new data set from"
    if len(train.levels) < 2 and not isinstance(pooling, Complete):
        return "a population is learned from two data sets at least"
    return ""


def _nothing(task: _Forecast, trouble: str, loglik: float) -> _Result:
    nan = np.full(task.values.shape[1], np.nan)
    return _Result(loglik, 0, nan, nan, np.full(len(task.values), -1), trouble)


def _relative(squares: list[list[Floats]], rows: Integers, sd: Floats) -> Floats:
    """Root mean square errors over standard deviations, in the folds that have them, (P, N)."""
    each = np.array(squares)  # (P, K, N)
    n = rows.sum(axis=1)
    mean = np.nansum(each, axis=1) / np.where(n > 0, n, np.nan)[:, None]
    return np.asarray(np.sqrt(mean) / sd)


def _f1(results: list[_Result], actual: list[Integers], levels: int) -> float:
    """The mean F1 of the data sets, in the folds that have predictions."""
    have = [k for k, result in enumerate(results) if not result.trouble]
    if not have:
        return float("nan")
    true = np.concatenate([actual[k] for k in have])
    guess = np.concatenate([results[k].data_set for k in have])
    return metrics.f1(true.tolist(), guess.tolist(), range(levels)).mean


def _troubles(results: list[_Result], what: str) -> str:
    """What went wrong, in words: how often, and the first time why."""
    reasons = [result.trouble for result in results if result.trouble]
    return f"{reasons[0]} (in {len(reasons)} of {len(results)} {what})" if reasons else ""
