"""`Comparison`: how well networks with different poolings predict, in tables and in words."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.arguments import TEXT, check_arguments
from poolbn.errors import OptionError, nearest
from poolbn.network.network import Network
from poolbn.network.presenting import present
from poolbn.wording import counted, figure, listed, noun_of, sensible, visible

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
_CLEAR = 2.0  # standard errors
POOLED_RESIDUALS = "pooled residuals"
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
    """Networks learned with P poolings, and how well they predict rows not learned from.

    Log-likelihoods are means per row, with the row's data set known: higher is better. They are
    -inf where there is no fit, and `trouble` says why.

    Attributes:
        networks: by name of the pooling, the network learned from all rows.
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

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> found = pb.compare(trial, group="clinic", poolings=["complete", "none"], folds=5)
        >>> found.best, found.loglik.shape, found.left_out
        ('none', (2, 5), ('NY', 'MN', 'KY', 'MS'))
    """

    networks: Mapping[str, Network]
    rows: NDArray[np.int64]
    loglik: Floats
    left_out: tuple[Hashable, ...]
    left_out_rows: NDArray[np.int64]
    left_out_loglik: Floats
    known: Floats
    unknown: Floats
    f1: Floats
    trouble: tuple[str, ...]
    no_population: tuple[str, ...]

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
            raise OptionError(f"no pooling {name!r} was compared{nearest(name, self.networks)}")
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

        - `score`, `arcs`: of the network learned from all rows;
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
            complete -9725.24     1   0.65  0.12
            none     -9734.45     1   0.65  0.24
        """
        import pandas as pd

        differences = [self.difference(name) for name in self.poolings]
        nets = self.networks.values()
        notes = zip(self.trouble, self.no_population, strict=True)
        return pd.DataFrame(
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
            index=pd.Index(self.poolings, name="pooling"),
        )

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
        import pandas as pd

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
        self, name: str, parts: Iterable[Hashable], rows: NDArray[np.int64], loglik: Floats
    ) -> pd.DataFrame:
        import pandas as pd

        index = pd.Index(list(parts), name=name)
        columns = dict(zip(self.poolings, loglik, strict=True))
        return pd.DataFrame({"rows": rows, **columns}, index=index)

    @property
    def headline(self) -> str:
        """Which pooling predicts best, in one sentence."""
        if not any(map(sensible, self._total())):
            return "No pooling has a fit in all folds."
        rivals = self._rivals()
        if not rivals:
            return f"Only {pooling_words(self.best)} has a fit in all folds."
        tied = [pooling_words(name) for name, difference in rivals.items() if not difference.clear]
        more = f", but {listed(tied)} may be as good" if tied else ", by a clear difference"
        return f"Networks with {pooling_words(self.best)} predict held-out rows best{more}."

    @property
    def verdict(self) -> str:
        """Which pooling predicts best, and how sure that is, in words."""
        said = [self.headline]
        folds = len(self.rows)
        if parts := [_phrase(name, found, folds) for name, found in self._rivals().items()]:
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
        return f"The network of all rows has the best score with {pooling_words(first)}{too}."

    def _about_new(self) -> str:
        total = dict(zip(self.poolings, self._total_left_out(), strict=True))
        able = sorted((n for n in total if sensible(total[n])), key=lambda n: -total[n])
        if len(able) < 2:
            return ""
        rest = ", ".join(f"{pooling_words(name)} {total[name]:.4g}" for name in able[1:])
        sets = noun_of(self.networks[self.best].group)
        return (
            f"Networks with {pooling_words(able[0])} predict new {sets.many} best: log-likelihood "
            f"{total[able[0]]:.4g} for a row of {sets.a} that was left out ({rest})."
        )

    def _total(self) -> Floats:
        """Log-likelihood per held-out row, (P,)."""
        return np.asarray(self.loglik @ self.rows / self.rows.sum())

    def _total_left_out(self) -> Floats:
        """Log-likelihood per row of data sets left out, (P,)."""
        return np.asarray(self.left_out_loglik @ self.left_out_rows / self.left_out_rows.sum())

    def _summary(self) -> str:
        net = next(iter(self.networks.values()))
        held = f"{self.rows.sum()} held-out rows in {len(self.rows)} folds"
        return (
            f"{counted(len(self.poolings), 'pooling')} on "
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
        return str(present("notebook", self))


def _phrase(name: str, difference: Difference, folds: int) -> str:
    if difference.mean == difference.se == 0:
        return f"the same with {pooling_words(name)}"
    return (
        f"{difference.mean:.2g} ± {difference.se:.2g} lower with {pooling_words(name)} "
        f"(in {difference.folds} of {folds} folds)"
    )


def pooling_words(name: str) -> str:
    """A pooling that was compared, in a sentence."""
    return _WORDS.get(name, name)
