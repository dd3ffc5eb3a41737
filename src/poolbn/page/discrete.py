"""What a report says and shows of discrete nodes and counts."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from poolbn.assess.residuals import CELL, FEWEST, Calibration, Share
from poolbn.network.tabulating import probability_table
from poolbn.nodes.given import INPUT
from poolbn.nodes.localfit import INTERCEPT, LocalFit
from poolbn.nodes.poolings import Complete, NoPooling
from poolbn.page.context import Context
from poolbn.page.gaussian import likelihood, residual_numbers, weighted_sum
from poolbn.page.numbers import digits_of, farthest, rounded
from poolbn.show.curves import Curve, curves
from poolbn.show.texts import number, percent
from poolbn.wording import Noun, counted, listed

_PANELS = 24  # of probabilities, at most
_COARSE = 4  # digits of numbers that are only drawn


def other_numbers(of: Context, fit: LocalFit) -> dict[str, Any]:
    """Of a node with probabilities of levels, or whose mean is not linear in its parents."""
    found = of.residuals[fit.child]
    return {
        "levels": list(fit.categories),
        "equation": _equations(fit),
        "equationWords": _about(fit, of.sets),
        "facts": _facts(of, fit),
        "coefficients": _coefficients(of, fit),
        "curves": [_curve(of, curve) for curve in curves(of.net, fit, of.spreads)],
        **(_probabilities(of, fit) if fit.categories else {"probabilities": None}),
        **(_calibration(of, fit) if fit.categories else residual_numbers(of, found)),
    }


# Parameters


def _probabilities(of: Context, fit: LocalFit) -> dict[str, Any]:
    """Probabilities of levels by data set and configuration of the parents, if all are discrete."""
    parents = of.net.dag.parents(fit.child)
    given = [of.net.fits[parent].categories for parent in parents]
    if not all(given):
        return {"probabilities": None}
    shown = list(range(len(fit.categories) == 2, len(fit.categories)))
    names = [
        ", ".join(f"{parent} = {level}" for parent, level in zip(parents, levels, strict=True))
        for levels in product(*given)
    ]
    few = names[: max(1, _PANELS // len(shown))]
    F, K, C = len(fit.levels), len(fit.categories), len(names)
    own = probability_table(fit, parents, of.net.fits).reshape(F, C, K)
    everywhere = _population(of, fit, own)
    same = float(np.ptp(own, axis=0).max()) == 0
    own = np.where(of.disclosed.of(fit.child)[:, None, None], own, np.nan)
    return {
        "probabilities": {
            "shown": shown,
            "configurations": few,
            "more": C - len(few),
            "population": rounded(everywhere[: len(few)], _COARSE),
            "name": _common(fit, of.sets),
            "own": [] if same else rounded(own[:, : len(few)], _COARSE),
        }
    }


def _common(fit: LocalFit, sets: Noun) -> str:
    if isinstance(fit.pooling, Complete):
        return f"all {sets.many}"
    return "mean" if _is_mean(fit) else "population"


def _is_mean(fit: LocalFit) -> bool:
    """Whether what data sets have in common is their mean."""
    return isinstance(fit.pooling, NoPooling) or fit.pooling == INPUT


def _population(of: Context, fit: LocalFit, own: Any) -> Any:
    """Probabilities in the population, (C, K); without one, means over data sets by their rows."""
    if _is_mean(fit):
        weights = of.net.n / of.net.n.sum() if of.net.n.any() else np.ones(len(own)) / len(own)
        return np.einsum("j,jck->ck", weights, own)
    parents = of.net.dag.parents(fit.child)
    return probability_table(fit.in_population(), parents, of.net.fits).reshape(own.shape[1:])


def _coefficients(of: Context, fit: LocalFit) -> dict[str, Any] | None:
    """Coefficients by level of the node, in the population and in each data set."""
    shown, blocks = of.disclosed.of(fit.child)[:, None], fit.blocks()
    if not blocks:
        return None
    return {
        "terms": [INTERCEPT, *fit.columns],
        "blocks": [
            {
                "outcome": block.outcome,
                "fixed": rounded(block.fixed),
                "se": rounded(block.se),
                "between": rounded(block.between),
                "coef": rounded(np.where(shown, block.coef, np.nan), digits_of(len(fit.levels))),
            }
            for block in blocks
        ],
    }


def _curve(of: Context, curve: Curve) -> dict[str, Any]:
    shown = of.disclosed.of(curve.child)
    return {
        "parent": curve.parent,
        "outcome": curve.outcome,
        "x": rounded(curve.x, _COARSE),
        "population": rounded(curve.population, _COARSE),
        "own": rounded(np.where(shown[:, None], curve.own, np.nan), _COARSE),
    }


# How it fits


def _calibration(of: Context, fit: LocalFit) -> dict[str, Any]:
    found = of.residuals[fit.child]
    if fit.pooling == INPUT:
        return {"calibration": None, "note": "An input has no distribution to compare with rows."}
    if not isinstance(found, Calibration):
        assert isinstance(found, str)
        return {"calibration": None, "note": found}
    bins = {level: found.bins(level) for level in found.shown}
    may = of.disclosed.of(fit.child)
    sets = {
        level: {code: own for code, own in found.by_data_set(level).items() if may[code]}
        for level in found.shown
    }
    note = _about_calibration(found, of.sets)
    if not any(bins.values()):
        return {"calibration": None, "note": f"{note} Too few rows have a level to be drawn."}
    return {
        "calibration": [
            {
                "level": level,
                "bins": [_share(part) for part in bins[level]],
                "sets": [
                    [code, *_share(part)]
                    for code, part in farthest(list(sets[level].items()), _off)
                ],
                "setsOf": len(sets[level]),
            }
            for level in found.shown
        ],
        "note": note,
    }


def _off(own: tuple[int, Share]) -> float:
    """How far a share is from what is expected."""
    return own[1].seen - own[1].expected


def _share(part: Share) -> list[Any]:
    """Rows; expected, seen, and the interval."""
    return [part.rows, *rounded(list(part[1:]), _COARSE)]


# Sentences


def _about_calibration(found: Calibration, sets: Noun) -> str:
    said = f"{counted(len(found.seen), 'row')}."
    if found.left_out:
        said += f" Left out: {counted(found.left_out, 'row')} with missing values."
    return (
        f"{said} Each dot is of {FEWEST} rows or more with similar probabilities, of which {CELL} "
        "or more have the level and as many do not; lines are 95% intervals. If probabilities are "
        f"right, dots lie on the line, and in each {sets.one} about as many rows have the level as "
        "the thick line expects."
    )


_EXTRA = {
    "concentration": " In each {one} the population counts for {value} rows.",
    "dispersion": " Counts vary more than Poisson's: by the mean + mean² / {value}.",
}


def _facts(of: Context, fit: LocalFit) -> str:
    said = likelihood(fit)
    if fit.extra is not None:
        name, value = fit.extra
        words = _EXTRA.get(name, f" Its {name} is {{value}}.")
        said += words.format(one=of.sets.one, value=number(value))
    share = of.spreads.explained[fit.child]
    if fit.parents and math.isfinite(share):
        said += (
            f" Its parents explain {percent(share)} of the variance of "
            f"{fit.measure.replace('the', 'its') or 'it'}."
        )
    return said


def _equations(fit: LocalFit) -> list[str]:
    """What the population has in place of each coefficient."""
    lines = []
    for block in fit.blocks():
        left = f"log mean of {fit.child}"
        if block.outcome:
            against = f" against {fit.categories[0]}" * (len(fit.categories) > 2)
            left = f"log odds of {fit.child} = {block.outcome}{against}"
        lines.append(f"{left}: {weighted_sum(block.population.tolist(), fit.columns)}")
    return lines


def _about(fit: LocalFit, sets: Noun) -> str:
    levels = f"Levels: {listed(fit.categories)}. " * bool(fit.categories)
    blocks = fit.blocks()
    if not blocks:
        if fit.parents:
            return f"{levels}It has a table of probabilities, for each set of its parents' levels."
        return f"{levels}It has no parents."
    if blocks[0].fixed is None:
        return f"{levels}Coefficients are means over the {sets.many}."
    if blocks[0].between is None:
        return f"{levels}Coefficients are those that all {sets.many} share."
    return f"{levels}Coefficients are the population's."
