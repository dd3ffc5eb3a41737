"""The numbers of a report, as its scripts read them: lists, texts, and None for no number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.arceffects import Estimates, arc_effects
from poolbn.assess.comparison import Comparison
from poolbn.assess.effectsizes import most_different, strongest
from poolbn.assess.resample import Bootstrap
from poolbn.assess.residuals import FEWEST
from poolbn.page.material import Material
from poolbn.page.words import about_arc
from poolbn.show import figures
from poolbn.show.texts import arrow, p_value, what
from poolbn.wording import sensible

_SHORT = 24  # letters of a name at an axis


def rounded(value: Any, digits: int = 6) -> Any:
    """Numbers with so many digits, None where one is no result; arrays become lists."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: rounded(item, digits) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item, digits) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if sensible(value) else None
    return value


def arc_numbers(of: Material) -> list[dict[str, Any]]:
    """What is said and drawn of each arc."""
    index = {node: i for i, node in enumerate(of.net.dag.nodes)}
    return [
        {
            "parent": index[size.parent],
            "child": index[size.child],
            "name": arrow(size.parent, size.child),
            "words": about_arc(of, size),
            "p": rounded(of.p_values.get((size.parent, size.child))),
            **forest_numbers(of, arc_effects(of.net, size.parent, size.child, stats=of.stats)),
        }
        for size in of.sizes
    ]


def forest_numbers(of: Material, estimates: Estimates) -> dict[str, Any]:
    """Estimates in all data sets, for a chart and a table; None for those that are not shown."""
    found = replace(
        estimates,
        effect=_shown(of, estimates.effect),
        interval=_shown(of, estimates.interval),
        alone=_shown(of, estimates.alone),
        alone_interval=_shown(of, estimates.alone_interval),
    )
    return {
        "pooling": str(found.pooling),
        "population": found.common.value,
        "short": found.common.name.lower(),
        "axis": what(found, _SHORT),
        "effect": rounded(found.population),
        "interval": rounded(found.population_interval),
        "new": rounded(found.new_interval),
        "own": rounded(found.effect),
        "ownIntervals": rounded(found.interval),
        "alone": rounded(found.alone) if np.isfinite(found.alone).any() else None,
        "aloneIntervals": rounded(found.alone_interval),
        "order": figures.forest_order(found).tolist(),
        "limits": rounded(figures.forest_limits(found)),
    }


def _shown(of: Material, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values of the data sets, (F, ...), NaN where they are not shown."""
    return np.where(of.shown.reshape(-1, *[1] * (values.ndim - 1)), values, np.nan)


def overview_numbers(of: Material) -> dict[str, Any]:
    """The standardised effects of arcs that differ most, and which arc is the strongest."""
    return {
        "strongest": strongest(of.sizes)[0].index if of.sizes else None,
        "tested": bool(of.tests),
        "rows": [
            {
                "arc": size.index,
                "effect": rounded(size.effect),
                "sd": rounded(size.between_sd),
                "own": rounded(size.own[of.shown]),
                "p": p_value(of.p_values.get((size.parent, size.child))),
            }
            for size in most_different(of.sizes)[: figures.MOST]
        ],
    }


def comparison_numbers(found: Comparison, *, open: bool) -> dict[str, Any]:
    """Differences from the best model, in folds and data sets left out of enough rows."""
    held_out, left_out = figures.held_out_differences(found), figures.left_out_differences(found)
    if not open:
        held_out = replace(held_out, each=held_out.each[:, found.rows >= FEWEST])
        left_out = replace(left_out, each=left_out.each[:, found.left_out_rows >= FEWEST])
    return {
        "poolings": list(found.poolings),
        "best": found.poolings.index(found.best),
        "heldOut": rounded(vars(held_out)),
        "leftOut": rounded(vars(left_out)),
    }


def bootstrap_numbers(boot: Bootstrap) -> dict[str, Any]:
    """A bar for each pair of nodes, the strongest first."""
    pairs = boot.pairs()
    return {
        "threshold": rounded(boot.threshold),
        "replicates": boot.replicates,
        "pairs": len(pairs),
        "bars": [
            {
                "name": figures.pair_name(pair),
                "strength": rounded(pair.strength),
                "direction": rounded(pair.direction),
                "sure": figures.is_sure(boot, pair.strength),
            }
            for pair in pairs[: figures.MOST]
        ],
    }
