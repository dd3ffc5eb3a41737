"""`Network.test_graph`: do the data say what the graph says?

A graph says that two columns without an arc between them are independent given the parents of both.
These claims, one for each such pair but pairs of columns that both have no parents, imply all other
independences (Shipley 2000). Under a true graph their p-values are independent, and Fisher's
C = -2 sum(log p) has a chi-squared distribution with two degrees of freedom for each claim.

With partial pooling, p-values are those of the combined test, which asks for a mean effect and for
effects that differ between data sets, and does not use differences between the means of data sets:
these may have causes that are no columns. Where only intercepts vary, the model has one effect, and
the test is that of its coefficient, as in piecewiseSEM.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from poolbn.errors import DataError, check_option
from poolbn.graph.dag import Dag
from poolbn.moments.data import Data, is_continuous
from poolbn.moments.table import as_table, has_gaps
from poolbn.network.network import Network, checked_data
from poolbn.nodes.choosing import fit_node
from poolbn.nodes.localfit import Pooling
from poolbn.nodes.model import NodeModel
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.scoring.independence import ColumnTests, chosen_test
from poolbn.scoring.local import LocalScores
from poolbn.wording import counted, figure, noun_of, visible

if TYPE_CHECKING:
    import pandas as pd

ClaimTest = Literal["auto", "combined", "t", "f", "lr", "coef", "wald"]
_COEFFICIENTS = ("coef", "wald")  # tests of a coefficient in one model
LEVEL = 0.05  # of claims that fail, after Holm's adjustment
_SHOWN = 8  # claims that a printed test lists


class Claim(NamedTuple):
    """That two columns are independent given others, and what the data say.

    Attributes:
        x: the column that comes first in an order of the graph.
        y: the other one.
        given: the parents of both.
        test: "combined", "t", "f", "lr", as `pb.ci_test` has them, or "coef" or "wald".
        statistic: its value; NaN where nothing can be tested.
        df: its degrees of freedom.
        p_value: of the test.
        p_adjusted: Holm's, over all claims.
        gain: what an arc between the two would add to the score.
    """

    x: str
    y: str
    given: tuple[str, ...]
    test: str
    statistic: float
    df: float
    p_value: float
    p_adjusted: float = math.nan
    gain: float = math.nan

    @property
    def fails(self) -> bool:
        """Whether the data contradict it."""
        return self.p_adjusted < LEVEL


class ChiSquared(NamedTuple):
    """A statistic with a chi-squared distribution under the graph."""

    statistic: float
    df: int
    p_value: float


@dataclass(frozen=True, eq=False, repr=False)
class GraphTest:
    """What the data say of a graph.

    Attributes:
        claims: a row for each claim of independence, the worst first: x, y, given, test, statistic,
            df, p_value, p_adjusted by Holm's method, and gain, what an arc between the two would
            add to the score.
        fisher_c: Fisher's C over all claims: statistic, df, p_value.
        lr: the likelihood ratio of the graph against the one with all arcs that its order allows.
            Variances between data sets that are 0 make it smaller than its distribution says, so
            that its p-value is rather too large with partial pooling. NaN where the nodes change
            their kind of model with more parents, or cannot have so many.
        r2: a row for each node with parents: marginal, the share of the variance that fixed effects
            explain, and conditional, with random effects.
        criteria: log-likelihood, parameters, AIC and BIC as R has them, where less is better, and
            the score, where more is better.
        unneeded: a row for each arc without which the score is higher, and by how much.
        dag: the graph.
        notes: what else there is to know, such as claims that cannot be tested.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "gestation_days", "birthweight_g"]]
        >>> net = pb.fit("age -> bmi -> birthweight_g <- gestation_days", trial.dropna(),
        ...              group="clinic", pooling="complete")
        >>> found = net.test_graph()
        >>> found.claims[["x", "y", "p_value"]].round(3)
                        x              y  p_value
        0  gestation_days            bmi    0.009
        1             age  birthweight_g    0.027
        >>> found.fisher_c.df, round(found.fisher_c.p_value, 3)
        (4, 0.002)
    """

    claims: pd.DataFrame
    fisher_c: ChiSquared
    lr: ChiSquared
    r2: pd.DataFrame
    criteria: dict[str, float]
    unneeded: pd.DataFrame
    dag: Dag
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """What the data say, in a sentence or two.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> pb.fit("age -> bmi", trial, group="clinic").test_graph().verdict
            'The graph claims no independence: all pairs that could have an arc have one.'
        """
        tested = self.claims[self.claims["p_value"].notna()]
        if not len(self.claims):
            return "The graph claims no independence: all pairs that could have an arc have one."
        if not len(tested):
            return "None of the graph's claims of independence can be tested with these data."
        p = self.fisher_c.p_value
        wanted = self.wanted
        said = (
            f"The data contradict the graph (Fisher's C, p = {figure(p, '.3g')})."
            if p < LEVEL
            else f"The data do not contradict the graph (Fisher's C, p = {figure(p, '.3g')})."
        )
        if len(wanted):
            arcs = ", ".join(f"{row.x} and {row.y}" for row in wanted[:3].itertuples())
            more = f" and {len(wanted) - 3} more" if len(wanted) > 3 else ""
            said += f" Arcs seem to be missing between {arcs}{more}."
        return said

    @property
    def wanted(self) -> pd.DataFrame:
        """The claims that fail after adjustment, the worst first: arcs that seem to be missing.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]].dropna()
            >>> found = pb.fit("age -> bmi -> birthweight_g", trial, group="clinic").test_graph()
            >>> found.wanted[["x", "y"]]
                 x              y
            0  age  birthweight_g
        """
        return self.claims[self.claims["p_adjusted"] < LEVEL]

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the graph."""
        return self.dag.nodes

    @property
    def lines(self) -> list[str]:
        """The verdict, and the tests and criteria of the graph as a whole, in sentences.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.fit("age -> bmi", trial, group="clinic", pooling="complete")
            >>> net.test_graph().lines[1]
            'Log-likelihood -4877.3, 5 parameters; AIC 9764.6, BIC 9787.7 (less is better).'
        """
        said = [self.verdict]
        for name, test in (
            ("Fisher's C is", self.fisher_c),
            ("The likelihood ratio against all arcs that its order allows is", self.lr),
        ):
            if not math.isnan(test.statistic):
                of = "degree of freedom" if test.df == 1 else "degrees of freedom"
                p = figure(test.p_value, ".3g")
                said.append(f"{name} {test.statistic:.3f} on {test.df} {of}, p = {p}.")
        told = {name: figure(value, ".5g") for name, value in self.criteria.items()}
        said.append(
            f"Log-likelihood {told['loglik']}, {told['parameters']} parameters; AIC {told['AIC']}, "
            f"BIC {told['BIC']} (less is better)."
        )
        return [*said, *self.notes]

    def __repr__(self) -> str:
        head = f"GraphTest: {counted(len(self.claims), 'claim')} of independence"
        lines = [head, *(textwrap.fill(line, 100) for line in self.lines)]
        if len(self.claims):
            lines += ["", _shown(self.claims, "claims")]
        if len(self.unneeded):
            lines += ["", "The score is higher without these arcs:", _shown(self.unneeded, "arcs")]
        if len(self.r2):
            lines += ["", "R2 (Nakagawa and Schielzeth):", _shown(self.r2, "nodes")]
        return visible("\n".join(lines), "\n")


def _shown(table: pd.DataFrame, what: str) -> str:
    text = table[:_SHOWN].to_string(index=False, float_format=figure)
    more = len(table) - _SHOWN
    return text + (f"\n... {more} more {what}" if more > 0 else "")


def basis_set(dag: Dag) -> list[tuple[str, str, tuple[str, ...]]]:
    """The claims of a graph: pairs without an arc, the earlier first, and the parents of both.

    Pairs that both have no parents are none.

    Examples:
        >>> basis_set(Dag("[A][B|A][C|B][D]"))
        [('A', 'C', ('B',)), ('D', 'B', ('A',)), ('D', 'C', ('B',))]
    """
    order = dag.topological_order()
    at = {node: k for k, node in enumerate(dag.nodes)}
    joined = set(map(frozenset, dag.arcs))
    found = []
    for first, second in itertools.combinations(order, 2):
        if frozenset((first, second)) in joined:
            continue
        of_both = {*dag.parents(first), *dag.parents(second)}
        if not of_both:
            continue
        # A node without parents comes first, as what may be a cause.
        x, y = (second, first) if not dag.parents(second) else (first, second)
        found.append((x, y, tuple(sorted(of_both - {x, y}, key=at.__getitem__))))
    return found


def complete_rows(data: Data) -> Data:
    """Data without the rows in which a cell is missing; tests count no row that was filled in."""
    if has_gaps(data) or (data.has_rows and data.imputed):
        table = as_table(data)
        rows = table.cases(table.names, incomplete=True)
        whole = ~np.isnan(np.array(rows.columns)).any(axis=0)
        parts = [np.flatnonzero(whole & (rows.data_set == j)) for j in range(len(table.levels))]
        kept = [j for j, part in enumerate(parts) if len(part)]
        source = getattr(table, "source", table)
        return source.some_rows([parts[j] for j in kept], [table.levels[j] for j in kept])
    if data.patterns is not None and data.patterns.has_gaps:
        return data.patterns.known
    return data


def graph_test(net: Network, data: Data | None = None, *, test: ClaimTest = "auto") -> GraphTest:
    """Test the independences that a network's graph claims, see `Network.test_graph`."""
    import pandas as pd

    check_option("test", test, get_args(ClaimTest))
    found = data_of(net, data)
    poolings = {node: fit.pooling for node, fit in net.fits.items()}
    asked = Asked(net.dag, found, poolings, test)
    claims = _holm([asked.claim(*each) for each in basis_set(net.dag) if asked.can_be(*each[:2])])
    C = fisher_c(claims)
    notes = []
    if lacking := len(claims) - C.df // 2:
        notes.append(
            f"{counted(lacking, 'claim')} cannot be tested, because columns are "
            "constant or combinations of others, or because it takes rows; Fisher's C leaves them "
            "out."
        )
    if (incomplete := net.n_rows - found.n_rows) > 0 and data is None:
        notes.append(f"{counted(incomplete, 'row')} with missing values count only for the fit.")
    ordered = sorted(claims, key=lambda c: (math.isnan(c.p_value), c.p_value, -c.gain))
    table = pd.DataFrame(ordered, columns=list(Claim._fields))
    return GraphTest(
        claims=table,
        fisher_c=C,
        lr=asked.against_saturated(),
        r2=_r2(net, found),
        criteria=criteria(net),
        unneeded=asked.unneeded(),
        dag=net.dag,
        notes=tuple(notes),
    )


def fisher_c(claims: Iterable[Claim]) -> ChiSquared:
    """Of all claims that could be tested.

    Examples:
        >>> half = Claim("x", "y", (), "t", 0.7, 10, 0.5)
        >>> fisher_c([half, half])
        ChiSquared(statistic=2.772588722239781, df=4, p_value=0.5965735902799727)
    """
    from scipy.stats import chi2

    tested = [claim.p_value for claim in claims if not math.isnan(claim.p_value)]
    if not tested:
        return ChiSquared(math.nan, 0, math.nan)
    C = -2 * math.fsum(math.log(max(p, 1e-300)) for p in tested)
    return ChiSquared(C, 2 * len(tested), float(chi2.sf(C, 2 * len(tested))))


def data_of(net: Network, data: Data | None) -> Data:
    """What the graph is tested with: complete rows."""
    found = checked_data(net, data)
    if found is None:
        found = net.fitted_to
    if found is None:
        noun = noun_of(net.group)
        raise DataError(
            "the network holds no rows to test its graph with; give them: "
            f"net.test_graph(pb.table(data, group={net.group!r})), with the rows of its {noun.many}"
        )
    return complete_rows(found).select(net.dag.nodes)


def _holm(claims: Sequence[Claim]) -> list[Claim]:
    """With p-values adjusted by Holm's method."""
    p = np.array([claim.p_value for claim in claims])
    at = [int(k) for k in np.argsort(p, kind="stable") if not math.isnan(p[k])]
    adjusted, highest = np.full(len(p), math.nan), 0.0
    for rank, k in enumerate(at):
        highest = max(highest, min(1.0, (len(at) - rank) * p[k]))
        adjusted[k] = highest
    return [c._replace(p_adjusted=float(a)) for c, a in zip(claims, adjusted, strict=True)]


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of one graph and its data.

    Attributes:
        dag: the graph.
        data: complete rows, or statistics of them.
        poolings: of each node.
        test: see `graph_test`.
    """

    dag: Dag
    data: Data
    poolings: Mapping[str, Pooling]
    test: str

    def can_be(self, x: str, y: str) -> bool:
        """Whether an arc between two could be: inputs have no parents."""
        return not {x, y} <= set(self.data.inputs)

    def model(self, child: str) -> Complete | NoPooling | Partial:
        """The pooling of a node's tests and fits."""
        how = self.poolings[child]
        if not isinstance(how, Complete | NoPooling | Partial):
            how = Partial()
        return Complete() if len(self.data.levels) == 1 and isinstance(how, Partial) else how

    def ways(self, x: str, y: str) -> list[tuple[str, str]]:
        """The arcs between two that could be: (parent, child)."""
        either = x not in self.dag.ancestors(y) and self.dag.parents(x)
        ways = [(x, y), (y, x)] if either else [(x, y)]
        return [(parent, child) for parent, child in ways if child not in self.data.inputs]

    def claim(self, x: str, y: str, given: tuple[str, ...]) -> Claim:
        """One claim, tested, and what an arc would add to the score."""
        ways = self.ways(x, y)
        try:
            gain = max(self._gain(*way) for way in ways)
            return self.tested(x, y, given)._replace(gain=gain)
        except DataError:  # without rows a discrete node has no continuous parents
            if self.data.has_rows:
                raise
            return Claim(x, y, given, "", math.nan, math.nan, math.nan)

    def tested(self, x: str, y: str, given: tuple[str, ...]) -> Claim:
        """By the test for the pooling; where it has nothing to test, by the coefficient."""
        ways = self.ways(x, y)
        model = self.model(ways[0][1])
        test = self.test
        if test == "auto" and isinstance(model, Partial) and model.random == "intercept":
            test = "coef"
        if test not in _COEFFICIENTS:
            name = chosen_test(self.data.select([x, y, *given]), model, test)
            at = {column: k for k, column in enumerate(self.data.names)}
            tests = self._tests(model, name, ways[0][1])
            told = tests.outcome(at[x], at[y], [at[column] for column in given])
            if not math.isnan(told.log_p):
                p = math.exp(told.log_p)
                return Claim(x, y, given, told.test, told.statistic, told.df, p)
        each = [self._coefficient(a, b, given) for a, b in ways]
        found = max(each, key=lambda claim: (not math.isnan(claim.p_value), claim.p_value))
        return found._replace(x=x, y=y)

    def _tests(self, model: NodeModel, name: str, child: str) -> ColumnTests:
        """Those of one model, in data sets in which the child was not set; claims share them."""
        data = self.data.where_not_set(self.data.names.index(child))
        key = model, name, data.levels
        if key not in self._made:
            whole = data.stats() if is_continuous(data) else data
            self._made[key] = ColumnTests(whole, model, name)
        return self._made[key]

    @cached_property
    def _made(self) -> dict[tuple[NodeModel, str, tuple[Hashable, ...]], ColumnTests]:
        return {}

    def _coefficient(self, x: str, y: str, given: tuple[str, ...]) -> Claim:
        """By the coefficients of x in the model of y: Wald's t of a linear one, else the LR.

        If "wald" is asked for, it is Wald's z of one coefficient of a regression of levels or
        counts, with variances between data sets and units taken for known.

        Slopes do not vary: a coefficient of a column that is constant in data sets could not.
        """
        from scipy.stats import chi2, t

        model = self.model(y)
        if isinstance(model, Partial):
            model = replace(model, random="intercept")
        model = replace(model, discrete="logit")
        more = fit_node(self.data, y, sorted((*given, x)), pooling=model)
        nothing = Claim(x, y, given, "coef", math.nan, math.nan, math.nan)
        terms = list(more.terms(x)) if more.status.ok else []
        name = "wald" if self.test == "wald" else "coef"
        if len(terms) == 1 and (more.gaussian is not None or name == "wald"):
            (term,) = terms
            if not (term.se > 0 and math.isfinite(term.effect)):
                return nothing
            value = term.effect / term.se
            p = 2 * float(t.sf(abs(value), term.df))
            return Claim(x, y, given, name, value, term.df, p)
        less = fit_node(self.data, y, sorted(given), pooling=model)
        df = more.n_params - less.n_params
        if not terms or not less.status.ok or df <= 0 or less.model != more.model:
            return nothing
        value = max(2 * (more.loglik - less.loglik), 0.0)
        return Claim(x, y, given, "coef", value, df, float(chi2.sf(value, df)))

    def _gain(self, parent: str, child: str) -> float:
        """What an arc adds to the score."""
        own = self.dag.parents(child)
        more, less = self._score(child, (*own, parent)), self._score(child, own)
        return more - less

    def _score(self, child: str, parents: Sequence[str]) -> float:
        at = {name: k for k, name in enumerate(self.data.names)}
        family = at[child], tuple(sorted(at[name] for name in parents))
        model = self.model(child)
        if model not in self._scores:
            self._scores[model] = LocalScores(self.data, pooling=model, score="bic", final=True)
        return float(self._scores[model]([family])[0])

    @cached_property
    def _scores(self) -> dict[NodeModel, LocalScores]:
        return {}

    def unneeded(self) -> pd.DataFrame:
        """Arcs without which the score is higher."""
        import pandas as pd

        rows = []
        for parent, child in self.dag.arcs:
            own = self.dag.parents(child)
            rest = [name for name in own if name != parent]
            gain = self._score(child, rest) - self._score(child, own)
            if 0 < gain < math.inf:
                rows.append((parent, child, gain))
        rows.sort(key=lambda row: -row[-1])
        return pd.DataFrame(rows, columns=["parent", "child", "gain"])

    def against_saturated(self) -> ChiSquared:
        """The likelihood ratio against all arcs that the graph's order allows."""
        from scipy.stats import chi2

        nothing = ChiSquared(math.nan, 0, math.nan)
        if not self.data.has_rows and any(self.data.categories):
            return nothing  # not all arcs can be
        dag = self.dag
        roots = {node for node in dag.nodes if not dag.parents(node)}
        order = sorted(dag.topological_order(), key=lambda node: node not in roots)
        statistic, df = 0.0, 0
        for k, child in enumerate(order):
            earlier = [p for p in order[:k] if not {p, child} <= roots]
            if set(earlier) == set(dag.parents(child)) or child in roots:
                continue
            if len(earlier) >= self.data.n_rows - 2:
                return nothing
            less, more = (
                fit_node(self.data, child, self._in_order(parents), pooling=self.model(child))
                for parents in (dag.parents(child), earlier)
            )
            if not (less.status.ok and more.status.ok) or less.model != more.model:
                return nothing
            statistic += 2 * (more.loglik - less.loglik)
            df += more.n_params - less.n_params
        if df <= 0:
            return nothing
        return ChiSquared(max(statistic, 0.0), df, float(chi2.sf(max(statistic, 0.0), df)))

    def _in_order(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=self.data.names.index)


def _r2(net: Network, data: Data) -> pd.DataFrame:
    """A row for each node with parents."""
    import pandas as pd

    rows = []
    for node, fit in net.fits.items():
        if fit.parents and not fit.is_given:
            found = fit.unset.variances(fit.about(data))
            shares = (math.nan,) * 2 if found is None else (found.marginal, found.conditional)
            rows.append((node, *shares, "" if found is None else found.scale))
    return pd.DataFrame(rows, columns=["node", "marginal", "conditional", "scale"])


def criteria(net: Network) -> dict[str, float]:
    """Log-likelihood, parameters and score of a network, and AIC and BIC as R has them."""
    fits = [fit for fit in net.fits.values() if not fit.is_given]
    loglik = math.fsum(fit.loglik for fit in fits)
    k = sum(fit.n_params for fit in fits)
    return {
        "loglik": loglik,
        "parameters": k,
        "AIC": 2 * k - 2 * loglik,
        "BIC": math.fsum(-2 * fit.bic for fit in fits),
        "score": net.score,
    }
