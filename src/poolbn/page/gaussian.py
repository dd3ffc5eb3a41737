"""What a report says and shows of a Gaussian node.

All that is particular to this kind of node is here, in `show.residualplots` and in the script
`report-node.js`. Another kind of node brings its own; `node_numbers` is where to dispatch on it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from poolbn.assess.effectsizes import explained
from poolbn.assess.residuals import QUARTILE, Residuals, normal_quantiles
from poolbn.assess.residualsds import residual_sds
from poolbn.inference.heterogeneity import RESIDUAL
from poolbn.network.network import Network
from poolbn.nodes.localfit import INTERCEPT, GaussianFit
from poolbn.nodes.poolings import Partial
from poolbn.page.material import Material
from poolbn.page.numbers import forest_numbers, rounded
from poolbn.page.words import about_pooling, is_warning, p_words
from poolbn.show.texts import number, percent

_DOTS = 300  # rows of a node that are shown as dots, at most
_CURVE = 40  # points of a curve
_COLOURS = 8  # data sets that have a colour of their own
_COARSE = 4  # digits of numbers that are only drawn


def node_numbers(of: Material) -> list[dict[str, Any]]:
    """What is said and drawn of each node."""
    net, nodes = of.net, []
    for node in net.dag.nodes:
        fit, found = net.fits[node], of.residuals[node]
        nodes.append(
            {
                "name": node,
                "equation": equation(fit),
                "equationWords": _about_equation(fit),
                "pooling": f"Pooling: {fit.pooling}. {about_pooling(fit.pooling)}",
                "status": f"Fit: {fit.status}: {fit.detail}.",
                "warning": is_warning(fit),
                "facts": _facts(net, fit, of.p_values.get((RESIDUAL, node), math.nan)),
                "terms": [INTERCEPT, *fit.parents],
                "fixed": rounded(fit.fixed),
                "se": rounded(None if fit.fixed is None else fit.population_se),
                "between": rounded(fit.random_sd),
                "coef": rounded(fit.coef),
                "sds": forest_numbers(residual_sds(net, node, stats=of.stats)),
                "sdWords": _about_sds(fit),
                "arcs": [k for k, arc in enumerate(net.dag.arcs) if node in arc],
                "residuals": _residuals(found) if isinstance(found, Residuals) else None,
                "note": _about_residuals(found) if isinstance(found, Residuals) else found,
            }
        )
    return nodes


def _residuals(found: Residuals) -> dict[str, Any]:
    """What is drawn of the residuals of a node, whatever the number of rows."""
    shown = found.some(_DOTS)
    few = len(found.present) <= _COLOURS
    curves: dict[int | None, Any] = {code: found.of(code) for code in found.present if few}
    return {
        "coloured": few,
        "leftOut": found.left_out,
        "quartile": rounded(QUARTILE),
        "fitted": rounded(found.fitted[shown], _COARSE),
        "standard": rounded(found.standard[shown], _COARSE),
        "codes": found.codes[shown].tolist(),
        "trend": rounded(found.trend(), _COARSE),
        "curves": [
            {"code": code, "points": rounded(normal_quantiles(values, _CURVE).T, _COARSE)}
            for code, values in (curves or {None: found.standard}).items()
        ],
        "boxes": [
            {"code": code, "rows": rows, "ends": rounded(ends, _COARSE)}
            for code, rows, ends in found.boxes()
        ],
    }


# Sentences


def equation(fit: GaussianFit) -> str:
    """The distribution of a node, with the population's coefficients."""
    values = fit.coef.mean(axis=0) if fit.fixed is None else fit.fixed
    terms = [number(float(values[0]))]
    for parent, value in zip(fit.parents, values[1:].tolist(), strict=True):
        terms.append(f"{'−' if value < 0 else '+'} {number(abs(value))} × {parent}")
    return f"{fit.child} = {' '.join(terms)} + error with SD {sd_range(fit)}"


def sd_range(fit: GaussianFit) -> str:
    """The least and largest residual SD of the data sets."""
    low, high = (number(float(np.sqrt(end))) for end in (fit.sigma2.min(), fit.sigma2.max()))
    return low if low == high else f"{low} to {high}"


def _about_equation(fit: GaussianFit) -> str:
    if fit.fixed is None:
        return "Coefficients are means over the data sets."
    if fit.random_cov is None:
        return "Coefficients are those that all data sets share."
    return "Coefficients are the population's."


def _about_sds(fit: GaussianFit) -> str:
    """Where the residual SDs of the data sets come from."""
    if fit.residual_shape is not None and math.isinf(fit.residual_shape):
        return "They are pooled. The data show no difference between them."
    if fit.residual_shape is not None:
        return (
            "They are pooled. The estimate of a data set alone is shrunk towards the population's, "
            "more so if it has few rows."
        )
    separate = isinstance(fit.pooling, Partial) and fit.pooling.residuals == "separate"
    if fit.fixed is None or separate:
        return "Each data set has its own."
    return "All data sets share one, whatever they say alone."


def _facts(net: Network, fit: GaussianFit, p: float) -> str:
    said = f"Log-likelihood {number(fit.loglik)}, {fit.n_params} parameters, BIC {number(fit.bic)}."
    share = explained(net, fit.child)
    if fit.parents and math.isfinite(share):
        said += f" Its parents explain {percent(share)} of its variance inside data sets."
    if not math.isnan(p):
        said += f" Test for the same residual variance in all data sets: {p_words(p)}."
    return said


def _about_residuals(found: Residuals) -> str:
    said = f"{len(found.residual):,} rows."
    if len(found.residual) > _DOTS:
        said += f" {len(found.some(_DOTS))} of them are shown as dots."
    if found.left_out:
        said += f" {found.left_out:,} rows with missing values are left out."
    return (
        f"{said} If the fit is good, the line of means stays at 0, quantiles lie on the line, and "
        "boxes reach from one dashed line to the other."
    )
