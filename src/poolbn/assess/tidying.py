"""Coefficients and fits of a network as tables with the column names of R's broom."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from poolbn.arrays import Floats
from poolbn.assess.effectsizes import Spreads, spreads
from poolbn.assess.graphtest import complete_rows, criteria
from poolbn.errors import check_interval, check_option
from poolbn.network.network import Network
from poolbn.nodes.intervals import t_interval
from poolbn.nodes.localfit import INTERCEPT, LocalFit
from poolbn.nodes.terms import DIFFERENCE, WHERE

if TYPE_CHECKING:
    import pandas as pd

TidyBy = Literal["population", "data set"]
_SCALES = {DIFFERENCE: DIFFERENCE, "odds ratio": "log odds", "rate ratio": "logarithm"}


class _Coefficient(NamedTuple):
    """One coefficient, in the population and in the F data sets."""

    term: str
    outcome: str
    scale: str
    effect: float
    se: float
    df: float
    own: Floats
    own_se: Floats
    own_df: Floats


def tidy(net: Network, interval: float = 0.95, by: TidyBy = "population") -> pd.DataFrame:
    """A row for each coefficient, see `Network.tidy`."""
    import pandas as pd
    from scipy.stats import t

    check_interval(interval)
    check_option("by", by, get_args(TidyBy))
    units = spreads(net)
    rows: list[tuple[Any, ...]] = []
    for node, fit in net.fits.items():
        for found in () if fit.is_given else _coefficients(fit):
            told = (node, found.term, found.outcome, found.scale)
            unit = _unit(units, node, found)
            if by == "population":
                rows.append((*told, found.effect, found.se, found.df, unit))
            else:
                each = zip(net.levels, found.own, found.own_se, found.own_df, strict=True)
                rows += [(*told, level, *numbers, unit) for level, *numbers in each]
    names = ["node", "term", "outcome", "scale", *["data_set"] * (by == "data set")]
    made = pd.DataFrame(rows, columns=[*names, "estimate", "std.error", "df", "std.estimate"])
    numbers = ("estimate", "std.error", "df", "std.estimate")
    estimate, se, df, size = (made.pop(name).astype(float) for name in numbers)
    statistic = (estimate / se).where(se > 0)
    ends = [t_interval(*each, interval) for each in zip(estimate, se, df, strict=True)]
    low, high = np.array(ends, dtype=float).reshape(-1, 2).T
    return made.assign(
        **{
            "estimate": estimate,
            "std.error": se,
            "statistic": statistic,
            "df": df,
            "p.value": 2 * t.sf(statistic.abs(), df),
            "conf.low": low,
            "conf.high": high,
            "std.estimate": estimate * size,
        }
    )


def _coefficients(fit: LocalFit) -> Iterator[_Coefficient]:
    """The intercepts of a node, and the effects of its parents, logarithms of ratios."""
    linear, none = fit.gaussian, np.full(len(fit.levels), math.nan)
    if linear is not None:
        effect, se, df = linear.population(0)
        own_se, own_df = linear.own_errors(0)
        if fit.parents:  # these are of the level at the parents' means, not where they are 0
            own_se = linear.coef_sd[:, 0]
            errors = linear.fixed_se
            se = float(linear.population_se[0] if errors is None else errors[0])
        each = linear.coef[:, 0], own_se, own_df
        yield _Coefficient(INTERCEPT, "", DIFFERENCE, effect, se, df, *each)
    for block in fit.blocks() if linear is None else ():
        se0 = math.nan if block.se is None else float(block.se[0])
        own = (float(block.population[0]), se0, math.inf, block.coef[:, 0], none, none)
        scale = "log odds" if fit.categories else "logarithm"
        yield _Coefficient(INTERCEPT, block.outcome, scale, *own)
    for parent in fit.parents:
        for term in fit.terms(parent):
            numbers = (term.effect, term.se, term.df, term.own, term.own_se, term.own_df)
            yield _Coefficient(term.name, term.outcome, _SCALES[term.scale], *numbers)


def _unit(units: Spreads, node: str, found: _Coefficient) -> float:
    """The standard deviation of a column in those of what its effect adds up on."""
    sd = units.children.get((node, found.outcome), math.nan)
    column = found.term.partition(f" {WHERE}")[0]
    return units.columns.get(column, math.nan) / sd if sd else math.nan


def glance(net: Network) -> pd.DataFrame:
    """A row for each node, and one for the network, see `Network.glance`."""
    import pandas as pd

    data = net.stats if net.fitted_to is None else net.fitted_to
    rows: list[tuple[Any, ...]] = []
    for node, fit in net.fits.items():
        if fit.is_given:
            continue
        found = None
        if data is not None and fit.parents:
            found = fit.unset.variances(fit.about(complete_rows(data)))
        r2 = (math.nan, math.nan) if found is None else (found.marginal, found.conditional)
        fits = (fit.n_rows, fit.n_params, fit.loglik, -2 * fit.aic, -2 * fit.bic)
        rows.append((node, fit.model, *fits, *r2))
    every = criteria(net)
    whole = (net.n_rows, every["parameters"], every["loglik"], every["AIC"], every["BIC"])
    rows.append(("(network)", "", *whole, math.nan, math.nan))
    columns = ["nobs", "npar", "logLik", "AIC", "BIC", "r2.marginal", "r2.conditional"]
    return pd.DataFrame(rows, columns=["node", "model", *columns])
