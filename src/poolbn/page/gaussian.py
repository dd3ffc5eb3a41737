"""What a report says and shows of a Gaussian node.

All that is particular to this kind of node is here, in `show.rowplots` and in the script
`report-node.js`. Others are in `page.discrete`; `page.nodes` dispatches on the kind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from poolbn.assess.estimates import residual_sds
from poolbn.assess.residuals import (
    FEWEST,
    Calibration,
    Residuals,
    counted_quantiles,
    normal_quantiles,
)
from poolbn.nodes.localfit import INTERCEPT, LinearFit, LocalFit
from poolbn.nodes.poolings import Partial
from poolbn.nodes.terms import RESIDUAL
from poolbn.page.context import Context, Fitting, masked
from poolbn.page.numbers import digits_of, farthest, forest_numbers, rounded
from poolbn.page.words import p_words
from poolbn.show.texts import number, percent
from poolbn.wording import Noun, counted, listed

_DOTS = 300  # rows of a node that are shown as dots, at most
_CURVE = 40  # points of a curve
_COLOURS = 8  # data sets that have a colour of their own
_COARSE = 3  # digits of numbers that are only drawn


def gaussian_numbers(of: Context, fit: LinearFit) -> dict[str, Any]:
    """What is said and drawn of a continuous node."""
    found = of.residuals[fit.child]
    sds = masked(residual_sds(of.net, fit.child, stats=of.stats), of.disclosed.of(fit.child))
    return {
        "equation": [equation(of, fit)],
        "equationWords": _about_equation(fit, of.sets),
        "facts": _facts(of, fit),
        "terms": [INTERCEPT, *fit.columns],
        "fixed": rounded(fit.fixed),
        "se": rounded(None if fit.fixed is None else fit.population_se),
        "between": rounded(fit.random_sd),
        "coef": rounded(
            np.where(of.disclosed.of(fit.child)[:, None], fit.coef, np.nan),
            digits_of(len(fit.levels)),
        ),
        "sds": forest_numbers(sds, of.sets),
        "sdWords": _about_sds(fit, of.sets),
        **residual_numbers(of, found),
    }


def residual_numbers(of: Context, found: Fitting) -> dict[str, Any]:
    """What is drawn of the residuals of a node, and words about it."""
    assert not isinstance(found, Calibration)
    return {
        "residuals": _residuals(of, found) if _drawn(found) else None,
        "note": found if isinstance(found, str) else _about_residuals(of, found),
    }


def _residuals(of: Context, found: Residuals) -> dict[str, Any]:
    """What is drawn of the residuals of a node: sums and counts, and rows only if they may be."""
    boxes = found.spreads()
    few = len(found.present) <= _COLOURS
    curve = normal_quantiles if of.open else counted_quantiles
    curves: dict[int | None, Any] = {code: found.of(code) for code, _, _ in boxes if few}
    shown = found.some(_DOTS) if of.open else np.empty(0, dtype=np.int64)
    return {
        "coloured": few,
        "colours": found.present if of.open else [code for code, _, _ in boxes],
        "leftOut": found.left_out,
        "fitted": rounded(found.fitted[shown]),
        "standard": rounded(found.standard[shown], _COARSE),
        "codes": found.codes[shown].tolist(),
        "band": [[rounded(at), *rounded(rest, _COARSE)] for at, *rest in found.band().tolist()],
        "curves": [
            {"code": code, "points": rounded(curve(values).T, _COARSE)}
            for code, values in (curves or {None: found.standard}).items()
        ],
        "boxes": [
            {"code": code, "rows": rows, "ends": rounded(ends, _COARSE)}
            for code, rows, ends in farthest(boxes, lambda box: box[2][1])
        ],
        "boxesOf": len(boxes),
    }


# Sentences


def equation(of: Context, fit: LinearFit) -> str:
    """The distribution of a node, with the population's coefficients."""
    values = fit.coef.mean(axis=0) if fit.fixed is None else fit.fixed
    mean = weighted_sum(values.tolist(), fit.columns)
    return f"{fit.child} = {mean} + error with SD {sd_range(of, fit)}"


def weighted_sum(values: Sequence[float], names: Sequence[str]) -> str:
    """An intercept and names times coefficients."""
    terms = [number(values[0])]
    for name, value in zip(names, values[1:], strict=True):
        terms.append(f"{'−' if value < 0 else '+'} {number(abs(value))} × {name}")
    return " ".join(terms)


def sd_range(of: Context, fit: LinearFit) -> str:
    """The least and largest residual SD of the data sets."""
    own = np.sqrt(fit.sigma2[of.disclosed.of(fit.child)])
    if not len(own):
        return "that is not shown"
    low, high = number(float(own.min())), number(float(own.max()))
    return low if low == high else f"{low} to {high}"


def _about_equation(fit: LinearFit, sets: Noun) -> str:
    if fit.fixed is None:
        return f"Coefficients are means over the {sets.many}."
    if fit.random_cov is None:
        return f"Coefficients are those that all {sets.many} share."
    return "Coefficients are the population's."


def _about_sds(fit: LinearFit, sets: Noun) -> str:
    """Where the residual SDs of the data sets come from."""
    if fit.residual_shape is not None and math.isinf(fit.residual_shape):
        return "They are pooled. The data show no difference between them."
    if fit.residual_shape is not None:
        return (
            f"They are pooled. The estimate of {sets.a} alone is shrunk towards the population's, "
            "more so if it has few rows."
        )
    separate = isinstance(fit.pooling, Partial) and fit.pooling.residuals == "separate"
    if fit.fixed is None or separate:
        return f"Each {sets.one} has its own."
    return f"All {sets.many} share one, whatever they say alone."


def _facts(of: Context, fit: LinearFit) -> str:
    p = of.p_values.get((RESIDUAL, fit.child), math.nan)
    said = likelihood(fit)
    share = of.spreads.explained[fit.child]
    if fit.parents and math.isfinite(share):
        said += f" Its parents explain {percent(share)} of its variance inside {of.sets.many}."
    if not math.isnan(p):
        said += f" Test for the same residual variance in all {of.sets.many}: {p_words(p)}."
    return said


def likelihood(fit: LocalFit) -> str:
    """How well a node fits."""
    return f"Log-likelihood {number(fit.loglik)}, {fit.n_params} parameters, BIC {number(fit.bic)}."


def _about_residuals(of: Context, found: Residuals) -> str:
    said = f"{counted(len(found.residual), 'row')}."
    if not _drawn(found):
        return f"{said} Residuals of fewer than {FEWEST} rows are not drawn."
    if of.open:
        said += f" {len(found.some(_DOTS))} of them are shown as dots."
    else:
        said += " None is shown: the charts are of sums over 10 rows or more, and of counts."
    if found.left_out:
        said += f" Left out: {counted(found.left_out, 'row')} with missing values."
    drawn = {code for code, _, _ in found.spreads()}
    few = [str(found.levels[code]) for code in found.present if code not in drawn]
    if few:
        said += f" Not drawn, as they have fewer than {FEWEST} rows: {listed(few)}."
    return (
        f"{said} If the fit is good, the line of means stays at 0 and its band, one SD to each "
        "side, between the dashed lines; quantiles lie on the line, and boxes, one SD to each side "
        "too, reach from one dashed line to the other."
    )


def _drawn(found: Fitting) -> TypeGuard[Residuals]:
    return isinstance(found, Residuals) and len(found.residual) >= FEWEST
