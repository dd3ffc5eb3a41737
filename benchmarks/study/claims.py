"""Compares what a paper says of a study with its results: a line for each claim, with a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from poolbn.inference.events import read_condition

from .table import NETWORK, by_data_set

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Verdict = Literal["agrees", "direction agrees", "disagrees", "no data"]

RESAMPLES = 1000
_SEED = 1
_POINTS = 0.03  # by which shares that agree may differ
_RATIO = 1.05  # by which ratios that agree may differ
_FLAT = 0.05  # of the range of values, by which a step of a trend may go back


@dataclass(frozen=True)
class Statistic:
    """A number that is made from all data sets.

    Attributes:
        a, b: a measure and a model each, like "shd LME" and "shd CGBN".
        of: what is made of the two in each data set: whether a is "lower" than b, "equal" to it,
            "higher" or "at most" b; their "ratio" a / b or "difference" a - b; or "a" alone.
        at: a quantile of that over data sets; None is its mean.
    """

    a: str
    b: str
    of: Literal["lower", "equal", "higher", "at most", "ratio", "difference", "a"] = "lower"
    at: float | None = None

    @property
    def is_share(self) -> bool:
        """Whether it is a share of the data sets."""
        return self.of in ("lower", "equal", "higher", "at most")

    def values(self, cells: pd.DataFrame) -> Array:
        """Of each data set, (n,). Two infinite or two zero measures are equal."""
        a, b = (cells[name].to_numpy(dtype=np.float64) for name in (self.a, self.b))
        same = a == b
        with np.errstate(divide="ignore", invalid="ignore"):
            made: dict[str, NDArray[Any]] = {
                "lower": a < b,
                "equal": same,
                "higher": a > b,
                "at most": a <= b,
                "ratio": np.where(same, 1.0, a / b),
                "difference": np.where(same, 0.0, a - b),
                "a": a,
            }
        return np.asarray(made[self.of], dtype=np.float64)

    def estimates(self, cells: pd.DataFrame, weights: NDArray[np.int64]) -> Array:
        """With each network counted so often.

        Args:
            cells: from `by_data_set`, with the column `code`: the index of the network.
            weights: times that each network counts, (R, networks).

        Returns:
            (R,), nan where no data set is left.
        """
        code = cells["code"].to_numpy()
        values = self.values(cells)
        if self.at is None:
            networks = weights.shape[1]
            totals = np.bincount(code, values, networks), np.bincount(code, minlength=networks)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.asarray((weights @ totals[0]) / (weights @ totals[1]))
        return weighted_quantile(values, weights[:, code], self.at)


def weighted_quantile(values: Array, counts: NDArray[np.int64], at: float) -> Array:
    """Quantiles of the values, each of them repeated so often, as numpy interpolates them.

    Args:
        values: (n,); inf is allowed.
        counts: (R, n).
        at: between 0 and 1.

    Returns:
        (R,), nan where all counts are 0.
    """
    if not len(values):
        return np.full(len(counts), np.nan)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    upto = np.cumsum(counts[:, order], axis=1)
    total = upto[:, -1]
    rank = at * (total - 1)
    ends = []
    for whole in (np.floor(rank), np.ceil(rank)):
        at_rank = (upto <= whole[:, None]).sum(axis=1)
        ends.append(ordered[np.minimum(at_rank, len(ordered) - 1)])
    low, high = ends
    with np.errstate(invalid="ignore"):
        between = np.where(low == high, low, low + (rank - np.floor(rank)) * (high - low))
    exact = np.where(rank == np.floor(rank), low, between)
    return np.where(total > 0, exact, np.nan)


@dataclass(frozen=True)
class Rule:
    """When ours and the paper's agree.

    Attributes:
        words: the same for a reader.
        judge: from our values (k,), their intervals (k, 2) and the paper's number, if it has one.
    """

    words: str
    judge: Callable[[Array, Array, float], Verdict]


def _near(neutral: float, close: Callable[[float, float], bool]) -> Callable[..., Verdict]:
    def judge(values: Array, intervals: Array, paper: float) -> Verdict:
        ours, (low, high) = float(values[0]), intervals[0]
        if low <= paper <= high or close(ours, paper):
            return "agrees"
        same_side = (ours - neutral) * (paper - neutral) > 0
        return "direction agrees" if same_side else "disagrees"

    return judge


SHARE = Rule(
    "a share agrees if the paper's is inside our interval or within 3 percentage points of ours; "
    "its direction agrees if both are on the same side of 50%",
    _near(0.5, lambda ours, paper: abs(ours - paper) <= _POINTS),
)
RATIO = Rule(
    "a ratio agrees if the paper's is inside our interval or within 5% of ours; its direction "
    "agrees if both are on the same side of 1, and the paper's 1 itself has no direction",
    _near(1.0, lambda ours, paper: paper / _RATIO <= ours <= paper * _RATIO),
)


def _every(holds: Callable[[Array], NDArray[np.bool_]]) -> Callable[..., Verdict]:
    def judge(values: Array, intervals: Array, paper: float) -> Verdict:
        true = holds(values)
        if true.all():
            return "agrees"
        return "direction agrees" if true.mean() > 0.5 else "disagrees"

    return judge


def _trend(sign: int) -> Callable[..., Verdict]:
    def judge(values: Array, intervals: Array, paper: float) -> Verdict:
        along = sign * values
        if along[-1] <= along[0]:
            return "disagrees"
        back = np.diff(along) < -_FLAT * (along.max() - along.min())
        return "direction agrees" if back.any() else "agrees"

    return judge


_MOST = "; its direction agrees if more than half of them are"
_AND = "and no value goes back on the one before by more than 5% of their range; its direction"
RISES = Rule(
    f"agrees if the last value is above the first {_AND} agrees if the last is above the first",
    _trend(1),
)
FALLS = Rule(
    f"agrees if the last value is below the first {_AND} agrees if the last is below the first",
    _trend(-1),
)


def above(least: float) -> Rule:
    """All values are above a number."""
    return Rule(f"agrees if all values are above {least:g}{_MOST}", _every(lambda v: v > least))


def below(most: float) -> Rule:
    """All values are below a number."""
    return Rule(f"agrees if all values are below {most:g}{_MOST}", _every(lambda v: v < most))


def within(least: float, most: float) -> Rule:
    """All values are between two numbers."""
    return Rule(
        f"agrees if all values are between {least:g} and {most:g}{_MOST}",
        _every(lambda v: (v >= least) & (v <= most)),
    )


@dataclass(frozen=True)
class Claim:
    """One number or one statement of the paper.

    Attributes:
        part: of the paper's text.
        what: it says.
        where: the data sets that it is about, as a condition on the columns of `by_data_set`.
        statistic: ours.
        paper: its number (a share as a fraction), or None for a statement.
        rule: when they agree.
        by: a column; the statement is about one value for each of its levels.
    """

    part: str
    what: str
    where: str
    statistic: Statistic
    paper: float | None
    rule: Rule
    by: str = ""


@dataclass(frozen=True, eq=False)
class Line:
    """A claim beside our results.

    Attributes:
        claim: it.
        measure: "" if the measure is the usual one, else what was used in its place.
        levels: values of the claim's `by`, (k,), or one empty name.
        values: ours, (k,).
        intervals: 95% of the values when networks are drawn anew, (k, 2).
        data_sets: that ours is made of.
        verdict: what comes out.
    """

    claim: Claim
    measure: str
    levels: tuple[str, ...]
    values: Array
    intervals: Array
    data_sets: int
    verdict: Verdict


# Other forms of a measure. A claim that they judge differently gets a line for each.
ALTERNATIVES = {
    "kl": ("kl_sum", "KL summed over data sets"),
    "rmad_known": ("median_rmad_known", "median over rows"),
    "rmad_unknown": ("median_rmad_unknown", "median over rows"),
    "f1": ("f1_predicted", "without data sets never predicted"),
}


def check_claims(
    table: pd.DataFrame,
    claims: Iterable[Claim],
    models: Mapping[str, str] | None = None,
) -> list[Line]:
    """Hold claims against results.

    Intervals are from a bootstrap over the true networks: as many are drawn with replacement from
    all of them, and each comes with all of its data sets.

    Args:
        table: `StudyResults.table`.
        claims: what is said.
        models: which of our models stands for one of the paper's, if not that of the same name.
    """
    cells = by_data_set(table)
    cells["code"] = cells.groupby(NETWORK).ngroup()
    networks = int(cells["code"].max()) + 1
    drawn = np.random.default_rng(_SEED).multinomial(
        networks, np.full(networks, 1 / networks), RESAMPLES
    )
    weights = np.concatenate([np.ones((1, networks), dtype=np.int64), drawn])
    found = []
    for claim in claims:
        line = _line(_renamed(claim, models or {}, {}), cells, weights)
        found.append(line)
        measure = claim.statistic.a.split()[0]
        if measure in ALTERNATIVES and line.verdict != "no data":
            other = _renamed(line.claim, {}, ALTERNATIVES)
            second = _line(other, cells, weights, ALTERNATIVES[measure][1])
            if second.verdict != line.verdict:
                found.append(second)
    return found


def _renamed(
    claim: Claim, models: Mapping[str, str], measures: Mapping[str, tuple[str, str]]
) -> Claim:
    """The claim about other models and other forms of a measure."""

    def renamed(name: str) -> str:
        measure, model = name.split()
        return f"{measures.get(measure, (measure,))[0]} {models.get(model, model)}"

    a, b = renamed(claim.statistic.a), renamed(claim.statistic.b)
    return replace(claim, statistic=replace(claim.statistic, a=a, b=b))


def _line(claim: Claim, cells: pd.DataFrame, weights: NDArray[np.int64], measure: str = "") -> Line:
    columns = {claim.statistic.a, claim.statistic.b}
    if not columns <= set(cells.columns):
        return no_data(claim, measure)
    own = cells[read_condition(claim.where, cells)].dropna(subset=list(columns))
    groups: Sequence[tuple[str, pd.DataFrame]] = [("", own)]
    if claim.by:
        pairs = own.groupby(claim.by, observed=True)
        groups = [(str(level), group) for level, group in pairs]
    if not len(own) or (claim.by and len(groups) < 2):
        return no_data(claim, measure)
    values = np.array([claim.statistic.estimates(group, weights) for _, group in groups])
    intervals = np.array([_interval(row[1:]) for row in values])
    paper = np.nan if claim.paper is None else claim.paper
    return Line(
        claim,
        measure,
        tuple(level for level, _ in groups),
        values[:, 0],
        intervals,
        len(own),
        claim.rule.judge(values[:, 0], intervals, paper),
    )


def no_data(claim: Claim, measure: str = "") -> Line:
    """The line of a claim that nothing is known about."""
    return Line(claim, measure, (), np.empty(0), np.empty((0, 2)), 0, "no data")


def _interval(drawn: Array) -> Array:
    """Between values that came, so that infinite ones do no harm."""
    there = drawn[~np.isnan(drawn)]
    return np.quantile(there, [0.025, 0.975], method="inverted_cdf")
