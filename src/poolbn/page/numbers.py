"""The numbers of a report, as its scripts read them: lists, texts, and None for no number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from poolbn.assess.effectsizes import most_different, strongest
from poolbn.assess.estimates import Estimates
from poolbn.assess.resample import Bootstrap
from poolbn.assess.residuals import FEWEST
from poolbn.page.context import Context
from poolbn.page.summary import leading
from poolbn.page.words import about_arc
from poolbn.show import figures
from poolbn.show.texts import arrow, p_value, term_name, what
from poolbn.wording import Noun, sensible

T = TypeVar("T")

_SHORT = 24  # letters of a name at an axis
MANY = 30  # data sets, from which on charts show some of them; as in report-details.js
_FARTHEST = 12  # data sets of such a chart
_COARSE = 4  # digits, as many as tables show
_DRAWN = 3  # digits of numbers that are only drawn
_FAR = 16.0  # logarithms of ratios beyond are shown as this


def rounded(value: Any, digits: int = 6) -> Any:
    """Numbers with so many digits, None where one is no result; arrays become lists."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: rounded(item, digits) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item, digits) for item in value]
    if isinstance(value, float):  # also one of numpy
        return float(f"{value:.{digits}g}") if sensible(value) else None
    return value


def digits_of(data_sets: int) -> int:
    """Digits of the estimates in data sets: those that are shown, and where it is short more."""
    return 6 if data_sets <= MANY else _COARSE


def shorter(value: Any) -> Any:
    """With long lists of one value as {"times": how often, "of": it}; the script undoes it."""
    if isinstance(value, dict):
        return {name: shorter(item) for name, item in value.items()}
    if not isinstance(value, list | tuple):
        return value
    items = [shorter(item) for item in value]
    if len(items) > MANY and all(type(v) is type(items[0]) and v == items[0] for v in items):
        return {"times": len(items), "of": items[0]}
    return items


def farthest(parts: Sequence[T], how: Callable[[T], float]) -> list[T]:
    """What is drawn of data sets: of many, those that are farthest from what is expected."""
    if len(parts) <= MANY:
        return list(parts)
    return sorted(parts, key=lambda part: -abs(how(part)))[:_FARTHEST]


def arc_numbers(of: Context) -> list[dict[str, Any]]:
    """What is said and drawn of each arc."""
    index = {node: i for i, node in enumerate(of.net.dag.nodes)}
    return [
        {
            "parent": index[size.parent],
            "child": index[size.child],
            "name": arrow(size.parent, size.child),
            "words": about_arc(of, size),
            "p": rounded(of.p_values.get((size.parent, size.child))),
            "terms": [
                {"name": term_name(found), **forest_numbers(found, of.sets, terms)}
                for found in terms
            ],
        }
        for size, terms in zip(of.sizes, of.estimates, strict=True)
    ]


def forest_numbers(
    found: Estimates, sets: Noun, beside: Sequence[Estimates] = ()
) -> dict[str, Any]:
    """Estimates in all data sets, for a chart and a table; None for those that are not shown.

    Those `beside` them are drawn with the same limits.
    """
    limits = figures.forest_limits(*map(_drawn, (found, *beside)))
    ticks = figures.ratio_ticks(*limits) if found.is_ratio else None

    def told(values: Any) -> Any:
        values = np.clip(values, -_FAR, _FAR) if found.is_ratio else values
        return rounded(found.reported(values), digits_of(len(found.levels)))

    return {
        "pooling": str(found.pooling),
        "population": found.common.words(sets),
        "short": found.common.name.lower(),
        "axis": what(found, _SHORT),
        "scale": found.scale,
        "effect": told(found.population),
        "interval": told(np.array(found.population_interval)),
        "new": told(np.array(found.new_interval)),
        "own": told(found.effect),
        "ownIntervals": told(found.interval),
        "alone": told(found.alone) if np.isfinite(found.alone).any() else None,
        "aloneIntervals": told(found.alone_interval),
        # Of many, the script sorts those that it draws.
        "order": figures.forest_order(found).tolist() if len(found.levels) <= MANY else None,
        "limits": told(np.array(limits)),
        "ticks": ticks,
    }


def _drawn(found: Estimates) -> Estimates:
    """What an axis has to show: of many data sets not what each says alone."""
    if len(found.levels) <= MANY:
        return found
    nothing = np.full(len(found.levels), np.nan)
    return replace(found, alone=nothing, alone_interval=np.full((len(nothing), 2), np.nan))


def overview_numbers(of: Context) -> dict[str, Any]:
    """The standardised effects of arcs that differ most, and which arc is the strongest."""
    return {
        "first": next((size.index for size in (*leading(of), *strongest(of.sizes))), None),
        "tested": bool(of.tests),
        "rows": [
            {
                "arc": size.index,
                "effect": rounded(size.effect),
                "sd": rounded(size.between_sd),
                "own": rounded(
                    size.own[np.isfinite(of.estimates[size.index][size.term].effect)], _DRAWN
                ),
                "p": p_value(of.p_values.get((size.parent, size.child))),
            }
            for size in most_different(of.sizes)[: figures.MOST]
        ],
    }


def comparison_numbers(of: Context) -> dict[str, Any]:
    """Differences from the best model, in folds and data sets left out of enough rows.

    Where data sets are left out of the report, that of theirs would follow from all others.
    """
    found = of.found
    assert found is not None
    held_out, left_out = figures.held_out_differences(found), figures.left_out_differences(found)
    digits = 6 if of.disclosed.whole else _DRAWN
    if not of.open:
        many = (found.left_out_rows >= FEWEST) & of.disclosed.whole
        held_out = replace(held_out, each=held_out.each[:, found.rows >= FEWEST])
        left_out = replace(left_out, each=left_out.each[:, many])
    return {
        "poolings": list(found.poolings),
        "best": found.poolings.index(found.best),
        "heldOut": rounded(vars(held_out), digits),
        "leftOut": rounded(vars(left_out), digits),
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
