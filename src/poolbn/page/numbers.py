"""The numbers and words of a report, as its scripts read them: lists, texts, None for no number.

Of nodes, linear regressions have one equation and a residual SD, others probabilities, curves and
equations of log odds or logarithms; residuals tell how continuous nodes and counts fit, and
calibration how discrete ones do (`report-node.js`, `report-discrete.js`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, TypeVar

import numpy as np

from poolbn.assess.effectsizes import most_different, strongest
from poolbn.assess.estimates import Estimates, residual_sds
from poolbn.assess.resample import Bootstrap
from poolbn.assess.residuals import (
    CELL,
    FEWEST,
    Calibration,
    Residuals,
    Share,
    counted_quantiles,
    normal_quantiles,
)
from poolbn.network.tabulating import probability_table
from poolbn.nodes.given import INPUT
from poolbn.nodes.localfit import INTERCEPT, Block, Floats, LinearFit, LocalFit
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.nodes.terms import RESIDUAL
from poolbn.page.context import Context, masked
from poolbn.page.summary import about_arc, about_pooling, is_warning, leading, p_words
from poolbn.show import figures
from poolbn.show.figures import arrow, number, p_value, percent, term_name, what
from poolbn.tables.kinds import is_whole
from poolbn.wording import Noun, counted, listed, sensible

T = TypeVar("T")

_SHORT = 24  # letters of a name at an axis
MANY = 30  # data sets, from which on charts show some of them; as in report-details.js
_FARTHEST = 12  # data sets of such a chart
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


_DRAWN, _COARSE = 3, 4  # digits of numbers that are only drawn: of residuals, of others
_DOTS = 300  # rows of a node that are shown as dots, at most
_COLOURS = 8  # data sets that have a colour of their own
_PANELS = 24  # of probabilities, at most
_POINTS = 25  # of a curve
_REACH = 2.0  # standard deviations to each side of the mean, for curves


def node_numbers(of: Context) -> list[dict[str, Any]]:
    """What is said and drawn of each node."""
    found = []
    for node in of.net.dag.nodes:
        fit = of.net.fits[node]
        linear = fit.gaussian
        own = _others(of, fit) if linear is None else _linear(of, linear)
        about = {
            "name": node,
            "kind": fit.kind,
            "pooling": f"Pooling: {fit.pooling}. {about_pooling(fit, of.sets)}",
            "status": f"Fit: {fit.status}: {fit.detail}.",
            "warning": is_warning(fit),
            "arcs": [k for k, arc in enumerate(of.net.dag.arcs) if node in arc],
        }
        fits = _calibration(of, fit) if fit.categories else _residuals(of, fit)
        found.append(about | own | fits)
    return found


# Linear regressions


def _linear(of: Context, fit: LinearFit) -> dict[str, Any]:
    shown = of.disclosed.of(fit.child)
    sds = masked(residual_sds(of.net, fit.child, stats=of.stats), shown)
    values = fit.coef.mean(axis=0) if fit.fixed is None else fit.fixed
    se = None if fit.fixed is None else fit.population_se
    block = Block("", values, fit.fixed, se, fit.random_sd, fit.coef)
    mean = _weighted_sum(values, fit.columns)
    facts = _facts(of, fit, f" of its variance inside {of.sets.many}")
    p = of.p_values.get((RESIDUAL, fit.child), math.nan)
    if not math.isnan(p):
        facts += f" Test for the same residual variance in all {of.sets.many}: {p_words(p)}."
    return {
        "equation": [f"{fit.child} = {mean} + error with SD {sd_range(of, fit)}"],
        "equationWords": _about_coefficients(fit.fixed, fit.random_cov, of.sets),
        "facts": facts,
        "terms": [INTERCEPT, *fit.columns],
        **_coefficients(of, fit, block),
        "sds": forest_numbers(sds, of.sets),
        "sdWords": _about_sds(fit, of.sets),
    }


def sd_range(of: Context, fit: LinearFit) -> str:
    """The least and largest residual SD of the data sets."""
    own = np.sqrt(fit.sigma2[of.disclosed.of(fit.child)])
    if not len(own):
        return "that is not shown"
    low, high = number(float(own.min())), number(float(own.max()))
    return low if low == high else f"{low} to {high}"


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


# Parameters of all


def _coefficients(of: Context, fit: LocalFit, block: Block) -> dict[str, Any]:
    """In the population and in each data set."""
    shown = of.disclosed.of(fit.child)[:, None]
    return {
        "fixed": rounded(block.fixed),
        "se": rounded(block.se),
        "between": rounded(block.between),
        "coef": rounded(np.where(shown, block.coef, np.nan), digits_of(len(fit.levels))),
    }


def _weighted_sum(values: Floats, names: Sequence[str]) -> str:
    """An intercept and names times coefficients."""
    first, *others = values.tolist()
    terms = [number(first)]
    for name, value in zip(names, others, strict=True):
        terms.append(f"{'−' if value < 0 else '+'} {number(abs(value))} × {name}")
    return " ".join(terms)


def _about_coefficients(fixed: Floats | None, varying: Floats | None, sets: Noun) -> str:
    """What an equation has, by what a fit knows of the population."""
    if fixed is None:
        return f"Coefficients are means over the {sets.many}."
    if varying is None:
        return f"Coefficients are those that all {sets.many} share."
    return "Coefficients are the population's."


_EXTRA = {
    "concentration": " In each {one} the population counts for {value} rows.",
    "dispersion": " Counts vary more than Poisson's: by the mean + mean² / {value}.",
}


def _facts(of: Context, fit: LocalFit, what: str) -> str:
    """How well a node fits, and how much of what its parents explain."""
    said = f"Log-likelihood {number(fit.loglik)}, {fit.n_params} parameters, BIC {number(fit.bic)}."
    if fit.extra is not None:
        name, value = fit.extra
        words = _EXTRA.get(name, f" Its {name} is {{value}}.")
        said += words.format(one=of.sets.one, value=number(value))
    share = of.spreads.explained[fit.child]
    if fit.parents and math.isfinite(share):
        said += f" Its parents explain {percent(share)}{what}."
    return said


# Discrete nodes, counts, and kinds of a user's own


def _others(of: Context, fit: LocalFit) -> dict[str, Any]:
    """Of a node with probabilities of levels, or whose mean is not linear in its parents."""
    blocks = fit.blocks()
    measured = fit.measure.replace("the", "its") or "it"
    coefficients = {
        "terms": [INTERCEPT, *fit.columns],
        "blocks": [{"outcome": own.outcome, **_coefficients(of, fit, own)} for own in blocks],
    }
    return {
        "levels": list(fit.categories),
        "equation": [f"{_left(fit, own)}: {_weighted_sum(own.population, fit.columns)}"
                     for own in blocks],
        "equationWords": _about(fit, blocks, of.sets),
        "facts": _facts(of, fit, f" of the variance of {measured}"),
        "coefficients": coefficients if blocks else None,
        "curves": _curves(of, fit),
        "probabilities": _probabilities(of, fit),
    }  # fmt: skip


def _left(fit: LocalFit, block: Block) -> str:
    """What an equation is of."""
    if not block.outcome:
        return f"log mean of {fit.child}"
    against = f" against {fit.categories[0]}" * (len(fit.categories) > 2)
    return f"log odds of {fit.child} = {block.outcome}{against}"


def _about(fit: LocalFit, blocks: Sequence[Block], sets: Noun) -> str:
    levels = f"Levels: {listed(fit.categories)}. " * bool(fit.categories)
    if blocks:
        return levels + _about_coefficients(blocks[0].fixed, blocks[0].between, sets)
    if fit.switches:
        each = listed(fit.switches)
        return (
            f"It has a linear regression of its own in each configuration of {each}; the effects "
            "of its arcs list them."
        )
    if fit.parents:
        return f"{levels}It has a table of probabilities, for each set of its parents' levels."
    return f"{levels}It has no parents."


def _probabilities(of: Context, fit: LocalFit) -> dict[str, Any] | None:
    """Probabilities of levels by data set and configuration of the parents, if all are discrete."""
    parents = of.net.dag.parents(fit.child)
    given = [of.net.fits[parent].categories for parent in parents]
    if not (fit.categories and all(given)):
        return None
    shown = list(range(len(fit.categories) == 2, len(fit.categories)))
    names = [
        ", ".join(f"{parent} = {level}" for parent, level in zip(parents, levels, strict=True))
        for levels in product(*given)
    ]
    few = names[: max(1, _PANELS // len(shown))]
    F, K, C = len(fit.levels), len(fit.categories), len(names)
    own = probability_table(fit, parents, of.net.fits).reshape(F, C, K)
    if isinstance(fit.pooling, NoPooling) or fit.pooling == INPUT:
        common = "mean"  # by the rows of data sets: there is no population
        weights = of.net.n / of.net.n.sum() if of.net.n.any() else np.ones(F) / F
        everywhere = np.einsum("j,jck->ck", weights, own)
    else:
        common = f"all {of.sets.many}" if isinstance(fit.pooling, Complete) else "population"
        table = probability_table(fit.in_population(), parents, of.net.fits)
        everywhere = table.reshape(C, K)
    same = float(np.ptp(own, axis=0).max()) == 0
    own = np.where(of.disclosed.of(fit.child)[:, None, None], own, np.nan)
    return {
        "shown": shown,
        "configurations": few,
        "more": C - len(few),
        "population": rounded(everywhere[: len(few)], _COARSE),
        "name": common,
        "own": [] if same else rounded(own[:, : len(few)], _COARSE),
    }


def _curves(of: Context, fit: LocalFit) -> list[dict[str, Any]]:
    """Probabilities of levels, or expected counts, along each parent that is not discrete.

    Within two standard deviations of its mean, other parents at theirs.
    """
    net, means = of.net, of.spreads.means
    shown = of.disclosed.of(fit.child)[:, None]
    found = []
    for parent in net.dag.parents(fit.child):
        if net.fits[parent].categories:
            continue
        reach = _REACH * of.spreads.columns[parent]
        x = np.linspace(means[parent] - reach, means[parent] + reach, _POINTS)
        if is_whole(net.fits[parent].kind):
            x = x[x >= 0]
        along = fit.along(
            [x if name == parent else np.full(len(x), means[name]) for name in fit.columns]
        )
        if along is None:
            continue
        for k in range(len(fit.categories) == 2, max(1, len(fit.categories))):
            whole = along[..., k] if fit.categories else along  # (1 + F, points)
            curve = {
                "parent": parent,
                "outcome": fit.categories[k] if fit.categories else "",
                "x": rounded(x, _COARSE),
                "population": rounded(whole[0], _COARSE),
                "own": rounded(np.where(shown, whole[1:], np.nan), _COARSE),
            }
            found.append(curve)
    return found


# How nodes fit


def _residuals(of: Context, fit: LocalFit) -> dict[str, Any]:
    """What is drawn of residuals: sums and counts, and rows only if they may be; and words."""
    found = of.residuals[fit.child]
    if not isinstance(found, Residuals):
        return {"residuals": None, "note": found}
    said = f"{counted(len(found.residual), 'row')}."
    if len(found.residual) < FEWEST:
        few = f"{said} Residuals of fewer than {FEWEST} rows are not drawn."
        return {"residuals": None, "note": few}
    boxes = found.spreads()
    drawn = [code for code, _, _ in boxes]
    coloured = len(found.present) <= _COLOURS
    curve, shown = counted_quantiles, np.empty(0, dtype=np.int64)
    if of.open:
        curve, shown = normal_quantiles, found.some(_DOTS)
        said += f" {len(shown)} of them are shown as dots."
    else:
        said += " None is shown: the charts are of sums over 10 rows or more, and of counts."
    curves: dict[int | None, Floats] = {code: found.of(code) for code in drawn if coloured}
    if found.left_out:
        said += f" Left out: {counted(found.left_out, 'row')} with missing values."
    few_rows = [str(found.levels[code]) for code in found.present if code not in drawn]
    if few_rows:
        said += f" Not drawn, as they have fewer than {FEWEST} rows: {listed(few_rows)}."
    numbers = {
        "coloured": coloured,
        "colours": found.present if of.open else drawn,
        "leftOut": found.left_out,
        "fitted": rounded(found.fitted[shown]),
        "standard": rounded(found.standard[shown], _DRAWN),
        "codes": found.codes[shown].tolist(),
        "band": [[rounded(at), *rounded(rest, _DRAWN)] for at, *rest in found.band().tolist()],
        "curves": [
            {"code": code, "points": rounded(curve(values).T, _DRAWN)}
            for code, values in (curves or {None: found.standard}).items()
        ],
        "boxes": [
            {"code": code, "rows": rows, "ends": rounded(ends, _DRAWN)}
            for code, rows, ends in farthest(boxes, lambda box: box[2][1])
        ],
        "boxesOf": len(boxes),
    }
    note = (
        f"{said} If the fit is good, the line of means stays at 0 and its band, one SD to each "
        "side, between the dashed lines; quantiles lie on the line, and boxes, one SD to each side "
        "too, reach from one dashed line to the other."
    )
    return {"residuals": numbers, "note": note}


def _calibration(of: Context, fit: LocalFit) -> dict[str, Any]:
    """Shares of rows beside their probabilities, and words."""
    found = of.residuals[fit.child]
    if fit.pooling == INPUT:
        return {"calibration": None, "note": "An input has no distribution to compare with rows."}
    if not isinstance(found, Calibration):
        return {"calibration": None, "note": found}
    said = f"{counted(len(found.seen), 'row')}."
    if found.left_out:
        said += f" Left out: {counted(found.left_out, 'row')} with missing values."
    note = (
        f"{said} Each dot is of {FEWEST} rows or more with similar probabilities, of which {CELL} "
        "or more have the level and as many do not; lines are 95% intervals. If probabilities are "
        f"right, dots lie on the line, and in each {of.sets.one} about as many rows have the level "
        "as the thick line expects."
    )
    levels, may = [], of.disclosed.of(fit.child)
    for level in found.shown:
        sets = [(code, own) for code, own in found.by_data_set(level).items() if may[code]]
        numbers = {
            "level": level,
            "bins": [_share(part) for part in found.bins(level)],
            "sets": [
                [code, *_share(part)]
                for code, part in farthest(sets, lambda own: own[1].seen - own[1].expected)
            ],
            "setsOf": len(sets),
        }
        levels.append(numbers)
    if not any(own["bins"] for own in levels):
        return {"calibration": None, "note": f"{note} Too few rows have a level to be drawn."}
    return {"calibration": levels, "note": note}


def _share(part: Share) -> list[Any]:
    """Rows; expected, seen, and the interval."""
    return [part.rows, *rounded(list(part[1:]), _COARSE)]
