"""`treatment_effects`: what a column that was drawn by lot does to others, in each data set.

`mean_effect` is that of one column on another in these data sets, whose levels differ freely. Each
data set has a score U_j(beta), whose expectation is 0 at its own effect whatever its level is,
and a variance Q_j(beta) of that score. The mean is where sum U_j = 0: a mean of the data sets' own
effects with weights that follow from the design. Weights 1 / v_j from variances v_j that each data
set estimates favour those that happen to look sure: with eight rows a data set tests with them
reject two to four times too often. Tests and intervals compare sum U_j / sqrt(sum Q_j) with
Student's t at 0 and at the ends. The error is that of these data sets, however effects differ.

- Differences: U_j = sum (x - mean) (y - beta x), so the mean is that of least squares with a level
  for each data set (R's `lm(y ~ factor(clinic) + x)`). Q_j is from residuals around the data set's
  own line, so that variances may differ between data sets, and between arms.
- Odds ratios between two arms: given its margins the table of a data set is hypergeometric. The
  test is that of Cochran, Mantel and Haenszel without continuity correction, the mean the
  conditional maximum likelihood estimate (R's `mantelhaen.test`, the mean with `exact = TRUE`).
- Odds ratios for a number: logistic regression with a level for each data set, where the deviation
  of sum x p from its value at no effect, and its variance, are multiplied by n / (n - 1). That
  makes both right at no effect given the number of events, and takes out most of the bias of small
  data sets.
- Odds ratios of a higher level: the scores of exceeding each threshold, as above, are added, with
  the share of rows on the two levels beside it as its weight. So data sets may have thresholds of
  their own, and where odds are proportional each score is 0 on average given its margins, however
  few rows there are. With one data set the test of two arms is Wilcoxon's with mid-ranks. The
  variance is from those of the scores, with the correlations that they have at no effect.
- Rate ratios: given the sum of a data set its counts are multinomial, with shares in proportion to
  exp(beta x), so the mean is that of Poisson regression with a level for each data set. Q_j is from
  residuals as for differences, because counts vary more than Poisson's do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from poolbn.arguments import TEXT, check_arguments, names_of
from poolbn.arrays import Flags, Floats, Integers
from poolbn.assess.unitmeans import UnitRows, slopes
from poolbn.constants import CONSTANT_TOLERANCE, RANK_TOLERANCE
from poolbn.errors import DataError, Option, OptionError, check_interval
from poolbn.graph.dag import Dag
from poolbn.later import optimize, special
from poolbn.later import pandas as pd
from poolbn.moments.data import Data, is_data
from poolbn.moments.reading import check_reading
from poolbn.moments.table import table
from poolbn.multiplicity import adjusted_p
from poolbn.network.effects import effects_table
from poolbn.nodes.choosing import as_pooling, fit_node
from poolbn.nodes.model import Choice
from poolbn.nodes.poolings import Complete
from poolbn.tables.data import prepare_kinds
from poolbn.tables.grouping import Group
from poolbn.tables.kinds import ColumnKind, Kinds, has_levels, is_normal, is_ordered, is_whole

_FAR = 300.0  # logarithm of a ratio, beyond which there is no end
_STEP = 1e-5  # of that, to begin with
_HALVINGS = 50  # of the range of a level
_CLOSE = 1e-12
_EVENTS = 5  # that tell of an effect, for residuals to say how they vary
_NONE = 1e-150  # instead of 0, and its square is not 0


class Rows(NamedTuple):
    """Rows of F data sets."""

    x: Floats  # the cause, 0 and 1 for two levels, (n,)
    y: Floats  # the outcome, 0 and 1 for two levels, codes of ordered ones, (n,)
    data_set: Integers  # of each row, from 0, (n,)
    F: int  # how many data sets

    def sums(self, values: Floats) -> Floats:
        """Of each data set, (F,)."""
        return np.asarray(np.bincount(self.data_set, values, self.F), dtype=np.float64)

    def means(self, values: Floats) -> Floats:
        """Of each data set, 0 where it has no rows, (F,)."""
        return self.sums(values) / np.maximum(self.n, 1.0)

    def ends(self, values: Floats) -> tuple[Floats, Floats]:
        """The least and the largest of each data set, 0 where it has no rows, (F,) each."""
        low, high = np.full(self.F, np.inf), np.full(self.F, -np.inf)
        np.minimum.at(low, self.data_set, values)
        np.maximum.at(high, self.data_set, values)
        return np.where(self.n > 0, low, 0.0), np.where(self.n > 0, high, 0.0)

    @property
    def n(self) -> Floats:
        """Rows of each data set, (F,)."""
        return self.sums(np.ones(len(self.x)))


class Scores(NamedTuple):
    """Of data sets at one value of the effect; no information is 0 in all, (F,) each."""

    u: Floats  # scores
    q: Floats  # their variances
    df: Floats  # degrees of freedom of these
    poisson: Floats  # variances of scores of counts that vary as Poisson's do
    # As many as tell of the effect, infinite where variances do not come from counts.
    events: Floats


def _scores(u: Floats, q: Floats, df: Floats) -> Scores:
    """Scores whose variances do not come from residuals of counts."""
    return Scores(u, q, df, np.zeros_like(q), np.full_like(q, np.inf))


class Mean(NamedTuple):
    """On the scale of the model: a difference, or the logarithm of a ratio."""

    value: float
    lower: float
    upper: float
    p_value: float


NOTHING = Mean(math.nan, math.nan, math.nan, math.nan)
Score = Callable[[float], Scores]


def mean_effect(
    rows: Rows, kind: ColumnKind, interval: float, units: Integers | None = None
) -> Mean:
    """The mean effect, with its interval and the p-value of no effect.

    A ratio without an end is infinite on the logarithmic scale; NaN is what the rows do not give.

    Args:
        rows: the rows.
        kind: what the outcome holds.
        interval: the probability of the interval.
        units: with units inside data sets the number of each row's, (n,); see `unitmeans`.
    """
    if units is not None:
        of_units = UnitRows.of(rows.x, rows.y, rows.data_set, units, rows.F)
        if of_units.paired:
            told = slopes(of_units, kind)
            return NOTHING if told is None else _straight(*told, interval)
        rows = Rows(of_units.x, of_units.y, of_units.data_set, rows.F)
    if is_normal(kind):
        return _straight(*_lines(rows), interval)
    score = score_of(rows, kind)
    far = _FAR / max(float(_range(rows).max(initial=0.0)), CONSTANT_TOLERANCE)

    def signed(side: int) -> Callable[[float], float]:
        """Score plus `side` times what an interval admits; falls in the effect, 0 at an end."""

        def value(beta: float) -> float:
            u, q, df = totals(score(beta))
            return float(u + side * _quantile(df, interval) * np.sqrt(q) if side and q > 0 else u)

        return value

    if not totals(score(0.0))[1] > 0:
        return NOTHING
    value = _root(signed(0), 0.0, far)
    start = value if math.isfinite(value) else 0.0
    lower, upper = (_root(signed(side), start, far) for side in (-1, 1))
    return Mean(value, lower, upper, float(p_values(score(0.0))))


def score_of(rows: Rows, kind: str) -> Score:
    """The scores of an outcome of a kind, discrete ones with two levels, at any effect."""
    if is_normal(kind):  # least squares with a level for each data set
        own, S, q, df = _lines(rows)
        return lambda beta: _scores(own - beta * S, q, df)
    if is_whole(kind):
        return _rates(rows)
    return _thresholds(rows) if is_ordered(kind) else _odds(rows)


def totals(of: Scores) -> tuple[Floats, Floats, Floats]:
    """Score, its variance, degrees of freedom; over the last axis, which is that of data sets.

    Satterthwaite's degrees of freedom (sum q)^2 / sum (q^2 / df) are too few, as squares of
    estimated variances are too large; with df + 2 for df, less 2, sums above and below are right on
    average, but the ratio is too large where variances differ. With three data sets of four rows
    tests at 5% had sizes of 3.4 to 5.0%, and of 5.1 to 6.8%. Halfway between they have 4.2 to 5.8%.

    Residuals of a few events say little of their variance, and an arm without any has none: there
    the variance is at least Poisson's.
    """
    u, q = of.u.sum(axis=-1), of.q.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = 1 / ((of.q / q[..., None]) ** 2 / (of.df + 1)).sum(axis=-1) - 1
        df = np.where(q > 0, df, np.inf)
    few = of.events.sum(axis=-1) < _EVENTS
    return u, np.where(few, np.maximum(q, of.poisson.sum(axis=-1)), q), df


def p_values(of: Scores) -> Floats:
    """Of the hypothesis at which scores were taken, NaN without a variance."""
    u, q, df = totals(of)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(q > 0, 2 * special.stdtr(df, -np.abs(u) / np.sqrt(q)), np.nan))


def _quantile(df: Floats, interval: float) -> float:
    return float(special.stdtrit(df, (1 + interval) / 2))


def _straight(u: Floats, S: Floats, q: Floats, df: Floats, interval: float) -> Mean:
    """Scores u - S beta fall in a straight line, their variances do not depend on the effect."""
    at_none, slope = _scores(u, q, df), float(S.sum())
    if slope <= 0:
        return NOTHING
    sum_u, variance, together = totals(at_none)
    value = float(sum_u) / slope
    half = _quantile(together, interval) * math.sqrt(variance) / slope if variance > 0 else math.nan
    return Mean(value, value - half, value + half, float(p_values(at_none)))


def _root(f: Callable[[float], float], start: float, far: float) -> float:
    """The nearest zero of a function that falls through it; infinite if that is beyond `far`.

    Steps double, as variances from residuals may grow fast away from the estimate.
    """
    side, at, step = float(np.sign(f(start))), start, _STEP * far
    while side and abs(at) < far:
        last, at = at, max(min(at + side * step, far), -far)
        if f(at) * side <= 0:
            return float(optimize.brentq(f, last, at, xtol=_CLOSE * far))
        step *= 2
    return side * math.inf if side else start


def _lines(rows: Rows) -> tuple[Floats, Floats, Floats, Floats]:
    """Of data sets sum c (y - mean), S = sum c^2, variances of the first and their df, (F,) each.

    c = x - mean; 0 where x is constant, or two rows leave no residuals.
    """
    n, j = rows.n, rows.data_set
    c, y = rows.x - rows.means(rows.x)[j], rows.y - rows.means(rows.y)[j]
    S, own = rows.sums(c**2), rows.sums(c * y)
    usable = (n > 2) & (rows.sums(rows.x**2) * CONSTANT_TOLERANCE < S)
    S, own = np.where(usable, S, 0.0), np.where(usable, own, 0.0)
    e = y - np.divide(own, S, out=np.zeros(rows.F), where=usable)[j] * c
    exact = rows.sums(e**2) <= RANK_TOLERANCE * rows.sums(y**2)
    q, df = _robust(rows, c, np.ones(len(c)), np.where(exact[j], 0.0, e))
    return own, S, np.where(usable, q, 0.0), df


def _rates(rows: Rows) -> Score:
    """Counts given their sums: shares of rows are in proportion to exp(beta x)."""
    n, j, total = rows.n, rows.data_set, rows.sums(rows.y)
    usable = (n > 2) & (total > 0) & (_range(rows) > 0)
    known = np.where(usable, total, 1.0)
    seen = rows.sums(rows.x * rows.y) / known

    def score(beta: float) -> Scores:
        share = _shares(rows, beta * rows.x)
        c = rows.x - rows.sums(share * rows.x)[j]
        u = known * rows.sums(share * (seen[j] - rows.x))
        v = known * rows.sums(share * c**2)
        mean = known[j] * share
        # What the data set's own effect changes, by one step of its regression.
        step = np.divide(u, v, out=np.zeros(rows.F), where=v > 0)
        q, df = _robust(rows, c, mean, rows.y - mean * (1 + step[j] * c))
        _, far = rows.ends(c**2)
        events = v / np.maximum(far, _NONE)
        return Scores(*(np.where(usable, part, 0.0) for part in (u, q, df, v, events)))

    return score


def _robust(rows: Rows, c: Floats, w: Floats, e: Floats) -> tuple[Floats, Floats]:
    """Variance of sum c (y - mean) from residuals, and its degrees of freedom, (F,) each.

    Residuals e are those of a level and a slope, with variances in proportion to w; sum w c = 0.
    With W = sum w, S = sum w c^2, leverages h_i = w_i / W + w_i c_i^2 / S, a_i = c_i^2 / (1 - h_i),
    the variance sum a_i e_i^2 (HC2) is right on average if variances are as w, and not far off if
    they are not. In the first case it is distributed nearly as chi-square with
    S^2 / sum_ik a_i a_k w_i w_k M_ik^2 degrees of freedom (Bell and McCaffrey), where M takes level
    and slope away: M_ik = [i = k] - (w_i w_k)^(1/2) (1 / W + c_i c_k / S). A row that has its line
    for itself, as that of an arm with one row, has no residual: there the data set's residual
    variance stands for both arms.
    """
    j = rows.data_set
    W, S = rows.sums(w), rows.sums(w * c**2)
    W, S = np.maximum(W, _NONE), np.maximum(S, _NONE)
    h = w / W[j] + w * c**2 / S[j]
    alone = h > 1 - _CLOSE
    A = w * c**2 / np.where(alone, 1.0, 1 - h)
    squares = (
        rows.sums(A * w) ** 2 / W**2
        + 2 * rows.sums(A * w * c) ** 2 / (W * S)
        + rows.sums(A * w * c**2) ** 2 / S**2
        + rows.sums(A**2 * (1 - 2 * h))
    )
    common = (rows.sums(alone.astype(np.float64)) > 0) | (squares <= 0)
    rest = np.maximum(rows.n - 2, 1.0)
    z = e**2 / np.maximum(w, _NONE)
    q = np.where(common, S * rows.sums(z) / rest, rows.sums(A * z))
    return q, np.where(common, rest, S**2 / np.where(common, 1.0, squares))


def _shares(rows: Rows, logs: Floats) -> Floats:
    """exp(logs) over its sum in each data set, (n,)."""
    _, top = rows.ends(logs)
    weight = np.exp(logs - top[rows.data_set])
    return np.asarray(weight / rows.sums(weight)[rows.data_set])


def _range(rows: Rows) -> Floats:
    """Of the cause in each data set, (F,)."""
    low, high = rows.ends(rows.x)
    return high - low


def _thresholds(rows: Rows) -> Score:
    """Ordered levels, whose odds of exceeding every threshold are multiplied by exp(beta x)."""
    levels, rows_of = np.unique(rows.y, return_counts=True)
    weight = (rows_of[1:] + rows_of[:-1])[:, None] / len(rows.y)
    above = [rows._replace(y=(rows.y > level) * 1.0) for level in levels[:-1]]
    p = np.array([of.means(of.y) for of in above]).reshape(-1, rows.F)
    odds = np.maximum(p, _NONE) / np.maximum(1 - p, _NONE)
    low, high = (end(odds[:, None], odds) for end in (np.minimum, np.maximum))
    each, alike = [_odds(of) for of in above], np.sqrt(low / high)

    def score(beta: float) -> Scores:
        of = [one(beta) for one in each]
        u = sum((w * own.u for w, own in zip(weight, of, strict=True)), np.zeros(rows.F))
        sd = weight * np.sqrt([own.q for own in of]).reshape(-1, rows.F)
        return _scores(u, np.einsum("kj,klj,lj->j", sd, alike, sd), np.full(rows.F, np.inf))

    return score


def _odds(rows: Rows) -> Score:
    """Two levels."""
    arms = bool(np.isin(rows.x, (0.0, 1.0)).all())
    return _tables(rows) if arms else _logits(rows)


def _tables(rows: Rows) -> Score:
    """Two arms: given the margins events among the treated are (noncentral) hypergeometric."""
    treated, events = rows.sums(rows.x), rows.sums(rows.y)
    control = rows.n - treated
    low = np.maximum(0.0, events - control)
    sizes = (np.minimum(treated, events) - low).astype(np.int64) + 1
    of = np.repeat(np.arange(rows.F), sizes)
    first = np.cumsum(sizes) - sizes
    k = np.arange(len(of)) - first[of] + low[of]
    chance = Rows(k, k, of, rows.F)
    away = k - rows.sums(rows.x * rows.y)[of]
    n1, n0, m = treated[of], control[of], events[of]
    cells = np.stack([k, n1 - k, m - k, n0 - m + k])
    logs = -special.gammaln(cells + 1).sum(axis=0)

    def score(beta: float) -> Scores:
        w = _shares(chance, logs + beta * k)
        center = chance.sums(w * k)
        q = chance.sums(w * (k - center[of]) ** 2)
        return _scores(-chance.sums(w * away), q, np.full(rows.F, np.inf))

    return score


def _logits(rows: Rows) -> Score:
    """A number as the cause: the regression with the data set's own level, corrected."""
    n, j, events = rows.n, rows.data_set, rows.sums(rows.y)
    usable = (events > 0) & (events < n) & (_range(rows) > 0)
    m = np.where(usable, events, n / 2)
    base = np.log(m / np.maximum(n - m, 1.0))
    x = rows.x - rows.means(rows.x)[j]
    seen = rows.sums(x * rows.y)
    more = n / np.maximum(n - 1, 1.0)
    least, most = rows.ends(x)

    def score(beta: float) -> Scores:
        ends = beta * least, beta * most
        low, high, level = base - np.maximum(*ends), base - np.minimum(*ends), base
        for _ in range(_HALVINGS):
            p = special.expit(level[j] + beta * x)
            over = rows.sums(p) - m
            if (np.abs(over) <= _CLOSE * m)[usable].all():
                break
            low, high = np.where(over > 0, low, level), np.where(over > 0, level, high)
            level = level - over / np.maximum(rows.sums(p * (1 - p)), _NONE)
            level = np.where((level > low) & (level < high), level, (low + high) / 2)
        v = p * (1 - p)
        center = rows.sums(v * x) / np.maximum(rows.sums(v), _NONE)
        u = seen - more * rows.sums(x * p)
        q = more * rows.sums(v * (x - center[j]) ** 2)
        u, q = np.where(usable, u, 0.0), np.where(usable, q, 0.0)
        return _scores(u, q, np.full(rows.F, np.inf))

    return score


# What `Network.effects` has, and is the same here in all rows or says how the model was made.
_LEFT_OUT = ["parent", "pooling", "opposite"]


def treatment_effects(
    source: object,
    *,
    treatment: str,
    group: Group = None,
    outcomes: Iterable[str] | None = None,
    kinds: Kinds | None = None,
    pooling: str | Choice = "partial",
    interval: float = 0.95,
) -> pd.DataFrame:
    """Effects of a treatment that was drawn by lot, in the population and in each data set.

    Nothing else decides who gets the treatment, so each outcome is regressed on it alone, in all
    rows that have both. No graph is learned or assumed. For a treatment that was not drawn by lot
    use `Network.total_effects`, or `Network.adjustment_set`.

    Args:
        source: what `pb.table` takes, or a table from it.
        treatment: the column; discrete, with its first level as the control, or a number.
        group: the column that says which data set a row came from.
        outcomes: the columns to look at; None for all others.
        kinds: of some columns, such as {"visits": "count"}, see `pb.table`.
        pooling: as for `pb.fit_node`.
        interval: the probability of the intervals.

    Returns:
        A row for each outcome, and for each level of a treatment or outcome but the first. `effect`
        is a difference of means, an odds ratio (of an ordinal outcome that of a higher level, the
        same for all) or a rate ratio: its mean in the population of data
        sets that these are a sample of, with the interval of that mean. Another data set can be
        further away, by `between_sd` (of logarithms for ratios). `mean` is that of these data sets
        alone, as by a regression with a level for each data set, with its interval, the p-value of
        no mean effect in them, and Benjamini and Hochberg's for all rows. That p-value says nothing
        of other data sets: where effects vary around 0 it is small more often than in 5% of tables.
        With units inside data sets the mean is that of a regression with a level for each data set
        and a random intercept for each unit.
        Then the rows that have both columns, and the effect in each data set, as far as it is
        known, shrunk towards the others.

    Raises:
        DataError: a column is not there, or cannot be used.

    Examples:
        >>> import poolbn as pb
        >>> found = pb.treatment_effects(pb.datasets.opt(), treatment="treatment", group="clinic",
        ...                              outcomes=["bleeding_5", "preterm"])
        >>> found[["child", "scale", "effect", "lower", "upper", "mean", "p_value"]].round(2)
                child       scale  effect  lower  upper   mean  p_value
        0  bleeding_5  difference  -21.24 -40.64  -1.85 -23.35     0.00
        1     preterm  odds ratio    0.93   0.46   1.89   0.93     0.74
    """
    check_arguments(treatment=(treatment, TEXT))
    check_reading(group, outcomes, ())
    check_interval(interval)
    model = as_pooling(pooling)
    chosen = _outcomes(source, treatment, group, outcomes, kinds)
    tables = ((name, _rows(source, group, [treatment, name], kinds)) for name in chosen)
    return effects_in_tables(treatment, tables, model, interval)


def effects_in_tables(
    treatment: str, tables: Iterable[tuple[str, Data]], pooling: Choice, interval: float = 0.95
) -> pd.DataFrame:
    """The effects on outcomes, each with its rows; see `treatment_effects`."""
    found = []
    for outcome, of in tables:
        fits = {
            treatment: fit_node(of, treatment, pooling=Complete(discrete="table")),
            outcome: fit_node(of, outcome, [treatment], pooling=pooling),
        }
        arc = Dag([treatment, outcome], [(treatment, outcome)])
        terms = effects_table(arc, fits, interval).drop(columns=_LEFT_OUT)
        ratio = (terms["scale"] != "difference").to_numpy()
        means = _means(of, treatment, outcome, ratio, interval)
        found.append(_with(terms, "between_sd", {**means, "rows": of.n_rows}))
    made = pd.concat(found, ignore_index=True)
    return _with(made, "rows", {"p_adjusted": adjusted_p(made["p_value"].tolist())})


def _with(table: pd.DataFrame, before: str, more: Mapping[str, object]) -> pd.DataFrame:
    """The table with more columns, made at once: one by one pandas warns, from a hundred on."""
    at = list(table.columns).index(before)
    columns = pd.DataFrame(more, index=table.index)
    return pd.concat([table.iloc[:, :at], columns, table.iloc[:, at:]], axis=1)


def _outcomes(
    source: object,
    treatment: str,
    group: Group,
    outcomes: Iterable[str] | None,
    kinds: Kinds | None,
) -> list[str]:
    """The outcomes, checked."""
    if is_data(source) and source.has_rows:
        known: Iterable[str] = source.names
    else:
        reading, _ = prepare_kinds(source, group=group, columns=None, missing="drop", kinds=kinds)
        known = reading.names
    if treatment not in known:
        raise DataError(
            f"there is no column {treatment!r}; the columns are {', '.join(map(repr, known))}"
        )
    if outcomes is None:
        return [name for name in known if name != treatment]
    chosen = names_of("outcomes", outcomes)
    if not chosen:
        raise OptionError(Option("outcomes", chosen), " is empty; name a column, or leave it out")
    if treatment in chosen:
        raise OptionError(f"{treatment!r} is the treatment, and cannot be an outcome too")
    return chosen


def _rows(source: object, group: Group, columns: list[str], kinds: Kinds | None) -> Data:
    """The rows that have all of these columns."""
    if is_data(source) and source.has_rows:
        return source
    own = {name: kind for name, kind in (kinds or {}).items() if name in columns}
    return table(source, group=group, columns=columns, kinds=own, missing="drop")


def _means(
    of: Data, treatment: str, outcome: str, ratio: Flags, interval: float
) -> dict[str, Floats]:
    """The mean of these data sets, its interval and p-value, (m,) each; see `mean_effect`."""
    cases = of.cases([treatment, outcome])
    x, y = cases.columns
    data_set, F = np.repeat(np.arange(len(of.levels)), of.n), len(of.levels)
    kind, found = of.kind(outcome), []
    whole = [(y, np.ones(len(y), dtype=bool))]
    for cause, treated in _contrasts(of, treatment, x):
        for effect, happened in whole if is_ordered(kind) else _contrasts(of, outcome, y):
            used = treated & happened
            rows = Rows(cause[used], effect[used], data_set[used], F)
            units = None if cases.units is None else cases.units[used]
            found.append(mean_effect(rows, kind, interval, units))
    value, lower, upper, p = np.array(found, dtype=np.float64).T
    with np.errstate(over="ignore"):  # an interval without an end
        told = [np.where(ratio, np.exp(each), each) for each in (value, lower, upper)]
    return dict(zip(("mean", "mean_lower", "mean_upper", "p_value"), (*told, p), strict=True))


def _contrasts(of: Data, name: str, values: Floats) -> Iterator[tuple[Floats, Flags]]:
    """A column and the rows to use: of a discrete one each level, as 1, and the first, as 0."""
    if not has_levels(of.kind(name)):
        yield values, np.ones(len(values), dtype=bool)
        return
    for level in range(1, len(of.categories[of.names.index(name)])):
        yield (values == level).astype(np.float64), (values == 0) | (values == level)
