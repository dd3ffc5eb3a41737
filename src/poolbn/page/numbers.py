"""The numbers of a report page, as its scripts read them: lists, texts, and None for no number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from poolbn.assess.arceffects import Estimates, arc_effects
from poolbn.assess.comparison import Comparison
from poolbn.assess.resample import Bootstrap
from poolbn.assess.residualsds import residual_sds
from poolbn.graph.pairs import Pair
from poolbn.inference.heterogeneity import RESIDUAL
from poolbn.moments.groupstats import GroupStats
from poolbn.network.exporting import names_of_data_sets
from poolbn.network.network import Network
from poolbn.nodes.localfit import INTERCEPT, GaussianFit
from poolbn.page.words import (
    about_arc,
    about_equation,
    about_pooling,
    about_sds,
    about_strength,
    arrow,
    equation,
    is_warning,
    p_words,
)
from poolbn.show.diagnostics import Residuals, neighbour_means, normal_quantiles, spread
from poolbn.show.forest import forest_limits
from poolbn.show.marks import arc_marks, unit_ratios
from poolbn.show.style import shortened

_DIGITS = 6
_DOTS = 300  # rows of a node that are shown as dots, at most
_CURVE = 40  # points of a curve
_COLOURS = 8  # data sets that can be told apart by colour
_BARS = 40  # pairs of nodes with a bar, at most
_SHORT = 24  # letters of a name at an axis


def rounded(value: Any) -> Any:
    """Numbers with six digits, None where one is not finite; arrays become lists.

    Examples:
        >>> rounded(np.array([[1 / 3, np.nan], [2.0, -np.inf]]))
        [[0.333333, None], [2.0, None]]
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def page_numbers(
    net: Network,
    stats: GroupStats | None,
    p_values: Mapping[Pair, float],
    residuals: Mapping[str, Residuals | str],
    boot: Bootstrap | None,
    found: Comparison | None,
) -> dict[str, Any]:
    """All that the scripts of a page draw.

    Args:
        net: the network.
        stats: the statistics of the rows, where they are known.
        p_values: of tests for equal effects by arc, and equal residual variances by
            (`RESIDUAL`, node).
        residuals: of each node, or in words why there are none.
        boot: how sure the arcs are.
        found: poolings compared.
    """
    return {
        "group": net.group,
        "levels": [
            name + " (adapted)" * (level in net.adapted)
            for name, level in zip(
                names_of_data_sets(net.dag, net.fits, ()), net.levels, strict=True
            )
        ],
        "rows": net.n.tolist(),
        "learned": int(net.n[[level not in net.adapted for level in net.levels]].sum()),
        "arcs": _arcs(net, stats, p_values, boot),
        "nodes": [
            _node(net, node, stats, p_values.get((RESIDUAL, node)), residuals.get(node, ""))
            for node in net.dag.nodes
        ],
        "comparison": None if found is None else _comparison(found),
        "bootstrap": None if boot is None else _bootstrap(boot),
    }


# Arcs and nodes


def _arcs(
    net: Network, stats: GroupStats | None, p_values: Mapping[Pair, float], boot: Bootstrap | None
) -> list[dict[str, Any]]:
    place = {node: i for i, node in enumerate(net.dag.nodes)}
    arcs = []
    for mark, ratio in zip(arc_marks(net), unit_ratios(net), strict=True):
        arc = (mark.parent, mark.child)
        fit = net.fits[mark.child]
        found = arc_effects(net, *arc, stats=stats)
        between = fit.between_sd(fit.position(mark.parent))
        words = about_arc(net, mark, found.population, found.population_interval, between)
        p = p_values.get(arc, math.nan)
        if not math.isnan(p):
            words.append(f"Test for the same effect in all data sets: {p_words(p)}.")
        if boot is not None:
            a, b = (boot.nodes.index(node) for node in arc)
            strength, direction = float(boot.strength[a, b]), float(boot.direction[a, b])
            words.append(about_strength(boot, strength, direction))
        arcs.append(
            {
                "parent": place[mark.parent],
                "child": place[mark.child],
                "words": words,
                "standard": rounded(mark.effect),
                "spread": rounded(mark.between_sd),
                "ratio": rounded(ratio),
                "p": rounded(p),
                **_forest(found),
            }
        )
    return arcs


def _forest(found: Estimates) -> dict[str, Any]:
    """Estimates in all data sets, for a chart and a table."""
    return {
        "pooling": str(found.pooling),
        "population": found.common,
        "axis": found.axis(lambda name: shortened(name, _SHORT)),
        "effect": rounded(found.population),
        "interval": rounded(found.population_interval),
        "new": rounded(found.new_interval),
        "own": rounded(found.effect),
        "ownIntervals": rounded(found.interval),
        "alone": rounded(found.alone) if np.isfinite(found.alone).any() else None,
        "aloneIntervals": rounded(found.alone_interval),
        "limits": rounded(forest_limits(found)),
    }


def _node(
    net: Network,
    node: str,
    stats: GroupStats | None,
    p: float | None,
    residuals: Residuals | str,
) -> dict[str, Any]:
    fit = net.fits[node]
    shown = isinstance(residuals, Residuals)
    return {
        "name": node,
        "pooling": str(fit.pooling),
        "poolingWords": about_pooling(fit.pooling),
        "status": str(fit.status),
        "detail": fit.detail,
        "warning": is_warning(fit),
        "equation": equation(fit),
        "equationWords": about_equation(fit),
        "terms": [INTERCEPT, *fit.parents],
        "fixed": rounded(fit.fixed),
        "se": rounded(fit.fixed_se),
        "between": rounded(fit.random_sd),
        "coef": rounded(fit.coef),
        "sds": _forest(residual_sds(net, node, stats=stats)),
        "sdWords": about_sds(fit),
        "loglik": rounded(fit.loglik),
        "parameters": fit.n_params,
        "bic": rounded(fit.bic),
        "explained": rounded(explained(net, fit)),
        "p": rounded(p),
        "arcs": [k for k, arc in enumerate(net.dag.arcs) if node in arc],
        "residuals": _residuals(residuals) if isinstance(residuals, Residuals) else None,
        "note": "" if shown else residuals,
    }


def explained(net: Network, fit: GaussianFit) -> float:
    """The share of a node's variance inside data sets that its parents explain."""
    i = net.joint.names.index(fit.child)
    total = float(net.joint.prior @ net.joint.cov[:, i, i])
    return 1 - float(net.joint.prior @ fit.sigma2) / total if total > 0 else math.nan


def _residuals(found: Residuals) -> dict[str, Any]:
    """What is drawn of the residuals of a node, whatever the number of rows."""
    shown = found.order[np.unique(np.linspace(0, len(found.order) - 1, _DOTS).astype(int))]
    present = np.unique(found.codes).tolist()
    few = len(present) <= _COLOURS
    groups = [(code, found.standard[found.codes == code]) for code in present if few]
    if not few:
        groups.append((None, found.standard))
    return {
        "rows": len(found.residual),
        "leftOut": found.left_out,
        "coloured": few,
        "fitted": _coarse(found.fitted[shown]),
        "standard": _coarse(found.standard[shown]),
        "codes": found.codes[shown].tolist(),
        "trend": _coarse(neighbour_means(found)),
        "curves": [
            {"code": code, "points": _coarse(normal_quantiles(values, _CURVE).T)}
            for code, values in groups
        ],
        "boxes": [
            {"code": code, "rows": rows, "ends": _coarse(ends)}
            for code, rows, ends in spread(found)
        ],
    }


def _coarse(values: np.ndarray) -> Any:
    """Numbers that are only drawn, with four digits."""
    return [
        _coarse(value) if isinstance(value, np.ndarray) else float(f"{value:.4g}")
        for value in values
    ]


# Comparison and bootstrap


def _comparison(found: Comparison) -> dict[str, Any]:
    """Differences from the best pooling, in folds and in data sets left out."""
    best = found.poolings.index(found.best)
    with np.errstate(invalid="ignore"):
        folds = found.loglik - found.loglik[best]
        total = found.left_out_loglik @ found.left_out_rows
        able = np.where(np.isfinite(total), total, -np.inf)
        away = found.left_out_loglik - found.left_out_loglik[int(np.argmax(able))]
    return {
        "poolings": list(found.poolings),
        "best": best,
        "folds": rounded(folds),
        "rows": found.rows.tolist(),
        "away": rounded(away),
        "awayRows": found.left_out_rows.tolist(),
        "known": rounded(found.known),
        "unknown": rounded(found.unknown),
        "f1": rounded(found.f1),
    }


def _bootstrap(boot: Bootstrap) -> dict[str, Any]:
    pairs = boot.pairs()
    return {
        "threshold": rounded(boot.threshold),
        "replicates": boot.replicates,
        "unit": boot.unit,
        "pairs": len(pairs),
        "bars": [
            {
                "name": arrow(a, b) if direction != 0.5 else f"{a} – {b}",
                "strength": rounded(strength),
                "direction": rounded(direction),
                "sure": strength > boot.threshold or strength == 1,
            }
            for a, b, strength, direction in pairs[:_BARS]
        ],
    }
