"""The sentences of a report: made last, from values, and never read back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from poolbn.assess.effectsizes import EffectSize, most_different, strongest
from poolbn.assess.resample import ArcStrength, Bootstrap
from poolbn.assess.residuals import FEWEST
from poolbn.moments.checks import check
from poolbn.moments.groupstats import GroupStats
from poolbn.network.network import Network
from poolbn.nodes.localfit import LocalFit, Pooling, Status
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.page.material import Material
from poolbn.show.figures import is_sure
from poolbn.show.texts import arrow, number, p_value, percent
from poolbn.wording import counted, listed

_FEW = 3  # arcs that the summary names
_LEAST = 0.05  # standardised effects and differences below are not worth naming
_SCORES = {
    "bic": " (BIC)",
    "bic-h": " (BIC-h)",
    "aic": " (AIC)",
    "loglik": " (log-likelihood)",
    "bge": " (BGe)",
    "gprior": " (log Bayes factor against no arcs)",
}


class Card(NamedTuple):
    """A part of the summary: sentences, perhaps as a list, in a look of the style sheet."""

    heading: str
    sentences: Sequence[str]
    bullets: bool = False
    look: str = ""


def p_words(p: float) -> str:
    """A p-value in a sentence."""
    return f"p {'' if p < 0.001 else '= '}{p_value(p)}"


# Nodes and arcs


def about_pooling(pooling: Pooling) -> str:
    """What a pooling means."""
    if isinstance(pooling, Complete):
        return "All data sets share the same coefficients and residual variance."
    if isinstance(pooling, NoPooling):
        return "Each data set has coefficients and a residual variance of its own."
    if not isinstance(pooling, Partial):
        return ""
    said = "The coefficients of the data sets vary around those of the population"
    if pooling.random == "intercept":
        said = "The intercepts of the data sets vary around that of the population, not the slopes"
    said += {
        "shared": "",
        "pooled": "; so do residual variances",
        "separate": "; each data set has a residual variance of its own",
    }[pooling.residuals]
    return f"{said}. Data sets with few rows are shrunk towards the population."


def is_warning(fit: LocalFit) -> bool:
    """Whether a reader should know what happened in a fit before they believe it."""
    return not fit.status.ok or fit.status is Status.NOT_CONVERGED


def node_label(fit: LocalFit) -> str:
    """A node in the drawing, in words."""
    told = [f"{fit.child}: {fit.pooling}"]
    if fit.parents:
        told.append(f"depends on {', '.join(fit.parents)}")
    if not fit.status.ok:
        told.append(str(fit.status))
    return ", ".join(told)


def arc_label(size: EffectSize) -> str:
    """An arc in the drawing, in words."""
    name = arrow(size.parent, size.child)
    told = [f"{name}: effect {number(size.effect)} in standard deviations"]
    if size.between_sd > 0:
        told.append(f"between data sets it varies by {number(size.between_sd)}")
    if size.reversible:
        told.append("direction not determined")
    return ", ".join(told)


def about_arc(of: Material, size: EffectSize) -> list[str]:
    """What is known of an arc."""
    fit, effect = of.net.linear_fits[size.child], of.effects[size.index]
    p = of.p_values.get((size.parent, size.child), math.nan)
    if fit.fixed is None:
        where = "On average over the data sets"
    else:
        where = "In all data sets" if fit.random_cov is None else "In the population of data sets"
    said = [
        f"{where}, one unit more of {size.parent} goes with a change of {size.child} by "
        f"{number(effect['effect'])} {_interval(effect)}"
        f"{', its other parents being equal' * (len(fit.parents) > 1)}. In standard deviations "
        f"that is {number(size.effect)}."
    ]
    if size.between_sd > 0:
        between = number(fit.between_sd(fit.position(size.parent)))
        said.append(f"Between data sets the effect has a standard deviation of {between}.")
    if size.reversible:
        said.append(
            "The data do not determine the direction: equivalent networks have this arc the other "
            "way round."
        )
    if not math.isnan(p):
        said.append(f"Test for the same effect in all data sets: {p_words(p)}.")
    if of.boot is not None and of.strengths is not None:
        found = of.strengths[size.index]
        times = round(found.strength * of.boot.replicates)
        told = f"{times} of {of.boot.replicates} bootstrap networks have an arc between the two"
        way = f"; in {percent(found.direction)} of these it points this way" if times else ""
        said.append(f"{told}{way}.")
    return said


def _interval(effect: Mapping[Hashable, Any]) -> str:
    return f"(95% interval {number(effect['lower'])} to {number(effect['upper'])})"


# The whole


def summary(of: Material) -> list[Card]:
    """What a reader should know first."""
    fits = of.net.fits.items()
    warnings = [] if of.stats is None else [_sentence(str(found)) for found in check(of.stats)]
    warnings += [f"{node}: {fit.status}: {fit.detail}." for node, fit in fits if is_warning(fit)]
    cards = [
        Card("Data", _data(of.net, of.stats)),
        Card("Network", _network(of.net, of.sizes)),
        Card("Pooling", _pooling(of.net)),
        Card("Strongest effects", _strongest(of), bullets=True),
        Card("Most different between data sets", _different(of), bullets=True),
        Card("How sure the arcs are", _sure(of.boot, of.strengths or [])),
        Card("Which model predicts best", (of.found.headline,) if of.found else (), look="broad"),
        Card("Before you trust this", warnings, bullets=True, look="warning"),
    ]
    return [card for card in cards if card.sentences]


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _data(net: Network, stats: GroupStats | None) -> list[str]:
    old = [j for j, level in enumerate(net.levels) if level not in net.adapted]
    sizes = [f"{net.levels[j]} ({net.n[j]:,})" for j in old]
    said = [
        f"{counted(int(net.n[old].sum()), 'row')} in {counted(len(old), 'data set')}, grouped by "
        f"{net.group}: {listed(sizes)}."
    ]
    patterns = None if stats is None else stats.patterns
    if stats is not None and patterns is not None:
        gappy = stats.n_rows - patterns.known.n_rows
        said.append(f"{counted(gappy, 'row')} with missing values count for those that they have.")
    dropped = 0 if stats is None else int(stats.dropped.sum())
    if dropped:
        lack = "with missing values" if patterns is None else "without values"
        said.append(f"{counted(dropped, 'row')} {lack} were left out.")
    if net.adapted:
        said.append(
            f"{counted(len(net.adapted), 'data set')} came later, and had no part in learning: "
            f"{listed([str(level) for level in net.adapted])}."
        )
    return said


def _network(net: Network, sizes: Sequence[EffectSize]) -> list[str]:
    said = [f"{counted(len(net.dag.nodes), 'variable')}, {counted(len(sizes), 'arc')}."]
    if not sizes:
        return [*said, "No variable depends on another."]
    free = sum(size.reversible for size in sizes)
    which = "any arc" if free == len(sizes) else f"{free} of them" if free else "all of them"
    said.append(f"The data {'do not ' * bool(free)}determine the direction of {which}.")
    lone = [n for n in net.dag.nodes if not net.dag.parents(n) and not net.dag.children(n)]
    if lone:
        said.append(f"Without any arc: {listed(lone)}.")
    return said


def _pooling(net: Network) -> list[str]:
    count = Counter(str(fit.pooling) for fit in net.fits.values()).most_common()
    said = [f"By variable: {listed([f'{kind} for {times}' for kind, times in count])}."]
    if len(count) == 1:
        pooling = next(iter(net.fits.values())).pooling
        said = [f"{str(pooling).capitalize()} for all variables. {about_pooling(pooling)}".strip()]
    singular = [node for node, fit in net.fits.items() if fit.status is Status.SINGULAR]
    if singular:
        said.append(f"Singular fits: {listed(singular)}: {Status.SINGULAR.text}.")
    return said


def _strongest(of: Material) -> list[str]:
    named = [size for size in strongest(of.sizes)[:_FEW] if abs(size.effect) >= _LEAST]
    return [
        f"{arrow(size.parent, size.child)}: {number(of.effects[size.index]['effect'])} for each "
        f"unit {_interval(of.effects[size.index])}; {number(size.effect)} in standard deviations."
        for size in named
    ]


def _different(of: Material) -> list[str]:
    shown = np.flatnonzero(of.shown)
    if len(of.net.levels) < 2 or not of.sizes or not len(shown):
        return []
    said = []
    for size in most_different(of.sizes)[:_FEW]:
        if size.between_sd < _LEAST:
            continue
        fit = of.net.linear_fits[size.child]
        coef = fit.coef[:, fit.position(size.parent)]
        low, high = (int(shown[end(coef[shown])]) for end in (np.argmin, np.argmax))
        p = of.p_values.get((size.parent, size.child), math.nan)
        test = "" if math.isnan(p) else f"; test for equal effects {p_words(p)}"
        said.append(
            f"{arrow(size.parent, size.child)}: from {number(float(coef[low]))} in "
            f"{fit.levels[low]} to {number(float(coef[high]))} in {fit.levels[high]}{test}."
        )
    return said or ["No effect differs much between data sets."]


def _sure(boot: Bootstrap | None, found: Sequence[ArcStrength]) -> list[str]:
    if boot is None:
        return []
    sure = sum(is_sure(boot, arc.strength) for arc in found)
    said = [
        f"{counted(boot.replicates, 'network')} from resampled {resampled(boot)}: {sure} of "
        f"{counted(len(found), 'arc')} are above the threshold of {number(boot.threshold)}."
    ]
    weak = sorted((arc.strength, arc.parent, arc.child) for arc in found if arc.strength < 0.5)
    if weak:
        arcs = [f"{arrow(parent, child)} ({percent(share)})" for share, parent, child in weak]
        said.append(f"Found in less than half of them: {listed(arcs, _FEW)}.")
    return said


def resampled(boot: Bootstrap) -> str:
    """What a bootstrap resampled."""
    return "rows within data sets" if boot.unit == "row" else "whole data sets"


# Rows, and how it was made


def about_privacy(of: Material) -> str:
    """Whether a report has rows, for its head."""
    if of.open:
        return (
            "This report contains rows of the data. Give it only to those who may see them, or "
            "write it without rows=True or --include-rows."
        )
    said = "This report contains no rows: estimates, counts and sums over rows only."
    if of.hidden:
        said += (
            f" It leaves out what is particular to data sets with fewer than {FEWEST} rows "
            f"({listed(of.hidden)})."
        )
    return said


def about_rows(net: Network, given: GroupStats | None) -> str:
    """What to know about complete rows that are not those that the network was learned from."""
    rows = {} if given is None else dict(zip(given.levels, given.n.tolist(), strict=True))
    patterns = None if net.stats is None else net.stats.patterns
    learned = net.n if patterns is None else patterns.known.n
    other = [
        f"{level} {rows.get(level, 0):,} instead of {n:,}"
        for level, n in zip(net.levels, learned.tolist(), strict=False)
        if rows.get(level, 0) != n
    ]
    told = "The network was learned from other rows than those of this report: "
    return f"{told}{listed(other)}." if other else ""


def about_search(of: Material) -> list[tuple[str, str]]:
    """How a network was made, as far as it tells."""
    net, boot, found = of.net, of.boot, of.found
    score = f"{net.score:,.4f}{_SCORES.get(net.score_kind, '')}".replace("-", "−")
    fits = counted(sum(move.fits for move in net.trace), "local fit")
    moves = f"{counted(len(net.trace), 'move')}, {fits}"
    lines = [
        ("Group column", net.group),
        ("Score", score if math.isfinite(net.score) else "–"),
        ("Search", moves if net.trace else "none, or no move was better than the start"),
    ]
    if boot is not None:
        replicates = counted(boot.replicates, "replicate")
        lines.append(("Bootstrap", f"{replicates}, resampling {boot.unit}s"))
    if found is not None:
        folds = counted(len(found.rows), "fold")
        lines.append(("Comparison", f"{', '.join(found.poolings)}; {folds}"))
    return lines
