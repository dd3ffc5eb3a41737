"""How strong a hidden common cause would have to be to explain an effect away.

Two measures that suppose nothing of such a cause. The E-value (VanderWeele and Ding 2017) is the
risk ratio that it must have with both cause and effect, beyond what is adjusted for. The robustness
value (Cinelli and Hazlett 2020) is the share of what is left of the variance of both that it must
explain, where the effect is a coefficient of least squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from poolbn.arguments import FLAG, NUMBER, Argument, check_arguments, is_finite
from poolbn.assess.effectsizes import spreads
from poolbn.assess.graphtest import complete_rows
from poolbn.constants import RANK_TOLERANCE
from poolbn.errors import Option, OptionError, check_option
from poolbn.later import pandas as pd
from poolbn.later import special
from poolbn.moments.data import Data, sums_with
from poolbn.moments.indicators import labels_of
from poolbn.network.network import Network, checked_data
from poolbn.network.totals import TERM

EffectScale = Literal["risk ratio", "rate ratio", "odds ratio", "mean difference"]

# Ends of an interval may be infinite, or not known.
_END = Argument("a number", lambda value: is_finite(value) or isinstance(value, float))
_PER_SD = 0.91  # logarithm of the risk ratio for one standard deviation, Chinn and VanderWeele


@dataclass(frozen=True)
class EValue:
    """The least strength of a hidden common cause that explains an effect away; 1 is none.

    Attributes:
        estimate: its risk ratios with cause and effect that make the estimate one of no effect.
        limit: those that make the interval contain no effect; 1 if it does already.

    Examples:
        >>> import poolbn as pb
        >>> pb.e_value(2.0, 1.0, 4.0).limit
        1.0
    """

    estimate: float
    limit: float


def e_value(
    estimate: float,
    lower: float = math.nan,
    upper: float = math.nan,
    *,
    scale: EffectScale = "risk ratio",
    sd: float = 1.0,
    rare: bool = False,
) -> EValue:
    """The E-value of an effect and of the limit of its interval nearest to no effect.

    A common cause of both that was not adjusted for, and that goes with each of them by risk ratios
    of less than that, cannot be all of the effect (VanderWeele and Ding 2017), as R's package
    EValue has it. The smaller it is, the less it takes. A difference of means counts as the risk
    ratio exp(0.91 d), with d in standard deviations, and an odds ratio as its square root.

    Args:
        estimate: the effect.
        lower: of its interval.
        upper: of its interval.
        scale: "risk ratio", "rate ratio", "odds ratio" or "mean difference".
        sd: the standard deviation of the outcome, for a difference.
        rare: whether the outcome is so rare, under 15%, that an odds ratio is nearly a risk ratio.

    Raises:
        OptionError: a ratio is below 0, `sd` is not above 0, or `scale` is not known.

    Examples:
        >>> import poolbn as pb
        >>> found = pb.e_value(3.9, 1.8, 8.7)
        >>> round(found.estimate, 2), round(found.limit, 2)
        (7.26, 3.0)
        >>> round(pb.e_value(35.9, -58.1, 129.9, scale="mean difference", sd=600).estimate, 2)
        1.3
    """
    check_option("scale", scale, get_args(EffectScale))
    check_arguments(
        estimate=(estimate, _END), lower=(lower, _END), upper=(upper, _END), sd=(sd, NUMBER),
        rare=(rare, FLAG),
    )  # fmt: skip
    if not sd > 0:
        raise OptionError(Option("sd", sd), " is no standard deviation; give that of the outcome")
    ends = np.array([estimate, lower, upper], dtype=np.float64)
    if scale == "mean difference":
        with np.errstate(over="ignore"):
            logs = _PER_SD * ends / sd
    else:
        if (ends < 0).any():
            raise OptionError(f"a {scale} is not below 0; for a difference give its scale")
        with np.errstate(divide="ignore"):
            logs = np.log(ends) * (0.5 if scale == "odds ratio" and not rare else 1.0)
    middle, low, high = logs.tolist()
    limit = max(low, -high, 0.0) if math.isfinite(low + high) or low > 0 or high < 0 else math.nan
    return EValue(_e_value(abs(middle)), _e_value(limit))


def _e_value(log: float) -> float:
    """Of a risk ratio above 1."""
    if not log < 700:  # beyond which it has no digits, NaN too
        return log if math.isnan(log) else math.inf
    ratio = math.exp(log)
    return ratio + math.sqrt(ratio * (ratio - 1))


def robustness_value(t: float, df: float, *, q: float = 1.0, alpha: float | None = None) -> float:
    """How much of both variances a hidden common cause must explain, to take an effect away.

    The effect is a coefficient of least squares with this t and these residual degrees of freedom.
    A common cause that explains less than this share of what the other columns leave of the
    variance of the cause, and of that of the outcome, does not reduce it by 100 q percent; with
    `alpha` it does not make the reduced effect insignificant at that level either (Cinelli and
    Hazlett 2020), as R's package sensemakr has it.

    The t of a confounder-adjusted effect falls short of t* where q |t| / sqrt(df) = f is at most
    sqrt(R_Y R_D / (1 - R_D)) + f* sqrt((1 - R_Y) / (1 - R_D)), f* = t* / sqrt(df - 1), with shares
    R_Y of the outcome and R_D of the cause. With both the same R that is
    R / sqrt(1 - R) = f - f*. Where f > 1 / f*, a smaller R_Y does more harm, R_Y / (1 - R_Y) =
    R_D / f*^2, and R_D = (f^2 - f*^2) / (1 + f^2) is enough.

    Args:
        t: the estimate over its standard error.
        df: residual degrees of freedom.
        q: the share of the effect that is to be taken away.
        alpha: the level of the test; None for the estimate alone.

    Raises:
        OptionError: `df` is not above 1, `q` not above 0, or `alpha` not between 0 and 1.

    Examples:
        >>> import poolbn as pb
        >>> round(pb.robustness_value(4.18, 783), 3)
        0.139
        >>> round(pb.robustness_value(4.18, 783, alpha=0.05), 3)
        0.076
    """
    check_arguments(t=(t, NUMBER), alpha=(alpha, NUMBER.or_none()))
    _check_above(df=(df, 1), q=(q, 0))
    if alpha is not None and not 0 < alpha < 1:
        raise OptionError(Option("alpha", alpha), " is not between 0 and 1; 0.05 is usual")
    f = q * abs(t) / math.sqrt(df)
    critical = 0.0
    if alpha is not None:
        critical = float(special.stdtrit(df - 1, 1 - alpha / 2)) / math.sqrt(df - 1)
    if f <= critical:
        return 0.0
    if critical > 0 and f * critical > 1:
        return 1 - (1 + critical * critical) / (1 + f * f)
    x = (f - critical) * (f - critical)  # R^2 + x R - x = 0
    return 2 / (1 + math.sqrt(1 + 4 / x)) if x > 0 else 0.0


def _check_above(**given: tuple[float, float]) -> None:
    for name, (value, least) in given.items():
        check_arguments(**{name: (value, NUMBER)})
        if not value > least:
            raise OptionError(Option(name, value), f" must be above {least}")


_TOTAL = (*TERM, "total", "lower", "upper")
_COMPARED = ("risk ratio", "rate ratio", "mean difference")  # of the scales of totals
_COLUMNS = (*_TOTAL, "e_value", "e_value_limit", "adjusted_for", "t", "df", "partial_r2", "rv",
            "rv_alpha")  # fmt: skip


def sensitivity(
    net: Network,
    cause: str | None,
    effect: str | None,
    data: Data | None,
    q: float,
    interval: float,
    seed: int,
) -> pd.DataFrame:
    """See `Network.sensitivity`."""
    _check_above(q=(q, 0))
    totals = net.total_effects(cause, effect, interval=interval, seed=seed)
    totals = totals[totals["scale"].isin(_COMPARED)]
    sds = spreads(net).children
    known = checked_data(net, data)
    known = net.fitted_to if known is None else known
    known = None if known is None or known.unit is not None else complete_rows(known)
    rows: list[tuple[Any, ...]] = []
    for row in totals[list(_TOTAL)].itertuples(index=False, name=None):
        start, _, level, end, _, scale, *numbers = row
        sd = sds.get((end, ""), 1.0)
        found = EValue(math.nan, math.nan)
        if sd > 0:  # else there is nothing to measure a difference by
            found = e_value(*numbers, scale=scale, sd=sd)
        told = None
        if known is not None and net.fits[end].gaussian is not None:
            told = _least_squares(net, known, start, level, end)
        rows.append((*row, found.estimate, found.limit, *_robustness(told, q, 1 - interval)))
    return pd.DataFrame(rows, columns=list(_COLUMNS))


class _Coefficient(NamedTuple):
    """Of a regression of the outcome on the cause and a set, with a level for each data set."""

    given: tuple[str, ...]
    t: float
    df: float


def _robustness(found: _Coefficient | None, q: float, alpha: float) -> tuple[Any, ...]:
    if found is None:
        return ("", *(math.nan,) * 5)
    given, t, df = found
    values = robustness_value(t, df, q=q), robustness_value(t, df, q=q, alpha=alpha)
    return ", ".join(given), t, df, t**2 / (t**2 + df), *values


def _least_squares(
    net: Network, data: Data, cause: str, level: Any, effect: str
) -> _Coefficient | None:
    """R's lm(effect ~ factor(group) + cause + set); None where the rows do not give it."""
    given = net.dag.adjustment_set(cause, effect)
    if given is None:
        return None
    stats = sums_with(data, [cause, *given, effect])
    nodes = (cause, *given, effect)
    columns = labels_of(nodes, [net.fits[node].categories for node in nodes])
    own = f"{cause}={level}" if net.fits[cause].categories else cause
    names = [own, *(name for name in columns if name != own)]
    if not set(names) <= set(stats.names):
        return None
    S = stats.select(names).scatter.sum(axis=0)
    scale = np.sqrt(np.diagonal(S))
    p, df = len(names) - 1, float(stats.n.sum()) - len(stats.levels) - len(names) + 1
    if not (scale > 0).all() or df <= 1:
        return None
    R = S / np.outer(scale, scale)
    if np.linalg.eigvalsh(R[:p, :p])[0] <= RANK_TOLERANCE:
        return None
    inverse = np.linalg.inv(R[:p, :p])
    slopes = inverse @ R[:p, p]
    left = float(1 - R[p, :p] @ slopes)
    if left <= RANK_TOLERANCE:
        return None
    return _Coefficient(given, float(slopes[0] / math.sqrt(inverse[0, 0] * left / df)), df)
