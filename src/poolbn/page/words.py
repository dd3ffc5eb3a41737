"""The sentences of a report: made last, from values, and never read back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from poolbn.assess.effectsizes import EffectSize, most_different, strongest
from poolbn.assess.estimates import Common, Estimates
from poolbn.assess.resample import Bootstrap
from poolbn.assess.residuals import FEWEST
from poolbn.findings import FindingKind
from poolbn.moments.checks import check
from poolbn.network.network import Network
from poolbn.nodes.localfit import LocalFit, Status
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.page.context import Context
from poolbn.page.doubts import doubt_words
from poolbn.page.facts import LEAST, leading
from poolbn.show.figures import is_sure
from poolbn.show.texts import arrow, instead, number, p_value, percent, term_name
from poolbn.wording import Noun, counted, listed

_FEW = 3  # arcs that the summary names
_LISTED = 12  # data sets whose rows it tells
_TERMS = 6  # effects of an arc that have a sentence each
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


def about_pooling(fit: LocalFit, sets: Noun) -> str:
    """What the pooling of a node means."""
    pooling, own = fit.pooling, ""
    what = fit.parameters
    if fit.gaussian:
        own = " and residual variance"
    if isinstance(pooling, Complete):
        return f"All {sets.many} share the same {what}{own}."
    if isinstance(pooling, NoPooling):
        return f"Each {sets.one} has {what}{own.replace('and', 'and a')} of its own."
    if not isinstance(pooling, Partial):
        return ""
    said = f"The {what} of the {sets.many} vary around those of the population"
    if pooling.random == "intercept":
        said = (
            f"The intercepts of the {sets.many} vary around that of the population, not the slopes"
        )
    if fit.gaussian:
        said += {
            "shared": "",
            "pooled": "; so do residual variances",
            "separate": f"; each {sets.one} has a residual variance of its own",
        }[pooling.residuals]
    return f"{said}. {sets.many.capitalize()} with few rows are shrunk towards the population."


def is_warning(fit: LocalFit) -> bool:
    """Whether a reader should know what happened in a fit before they believe it."""
    return not fit.status.ok or fit.status in (Status.NOT_CONVERGED, Status.APPROXIMATE)


def node_label(net: Network, node: str) -> str:
    """A node in the drawing, in words."""
    fit, parents = net.fits[node], net.dag.parents(node)
    told = [f"{node}: {fit.kind}, {fit.pooling}"]
    if parents:
        told.append(f"depends on {', '.join(parents)}")
    if not fit.status.ok:
        told.append(str(fit.status))
    return ", ".join(told)


def arc_label(size: EffectSize, sets: Noun) -> str:
    """An arc in the drawing, in words."""
    name = arrow(size.parent, size.child)
    told = [f"{name}: effect {number(size.effect)} in standard deviations"]
    if len(size.each) > 1:
        told[0] += f", the strongest of {len(size.each)}"
    if size.between_sd > 0:
        told.append(f"between {sets.many} it varies by {number(size.between_sd)}")
    if size.reversible:
        told.append("direction not determined")
    return ", ".join(told)


def about_arc(of: Context, size: EffectSize) -> list[str]:
    """What is known of an arc."""
    fit, terms, sets = of.net.fits[size.child], of.estimates[size.index], of.sets
    p = of.p_values.get((size.parent, size.child), math.nan)
    common = terms[0].common
    where = {
        Common.MEAN: f"On average over the {sets.many}",
        Common.ALL: f"In all {sets.many}",
        Common.POPULATION: f"In the population of {sets.many}",
    }[common]
    more = ", its other parents being equal" * (len(of.net.dag.parents(size.child)) > 1)
    said = [f"{where}, {_change(found)} {_interval(found)}{more}." for found in terms[:_TERMS]]
    if len(terms) > _TERMS:
        said.append(f"The other {len(terms) - _TERMS} effects are below.")
    strongest = "that is" if len(terms) == 1 else "the strongest of these is"
    said[-1] += (
        f" In standard deviations{f' of {fit.measure}' * bool(fit.measure)} {strongest} "
        f"{standardised(of, size.effect)}."
    )
    if size.between_sd > 0:
        found = terms[size.term]
        name = "the logarithm of the ratio" if found.is_ratio else "the effect"
        which = "" if len(terms) == 1 else f" ({term_name(found)})"
        between = number(found.between_sd)
        said.append(f"Between {sets.many} {name}{which} has a standard deviation of {between}.")
    if size.reversible:
        said.append(
            "The data do not determine the direction: equivalent networks have this arc the other "
            "way round."
        )
    if not math.isnan(p):
        said.append(f"Test for the same effect in all {sets.many}: {p_words(p)}.")
    if of.boot is not None and of.strengths is not None:
        strength = of.strengths[size.index]
        times = round(strength.strength * of.boot.replicates)
        told = f"{times} of {of.boot.replicates} bootstrap networks have an arc between the two"
        way = f"; in {percent(strength.direction)} of these it points this way" if times else ""
        said.append(f"{told}{way}.")
    if of.doubts:
        said += doubt_words(of.doubts[frozenset((size.parent, size.child))])
    return said


def standardised(of: Context, effect: float) -> str:
    """A standardised effect; to two decimals where it is found by simulation."""
    return number(effect if of.spreads.exact else round(effect, 2))


def _change(found: Estimates) -> str:
    """What goes with a change of the parent."""
    effect = number(float(found.reported(found.population)))
    by = f"{found.parent} {instead(found)}" if found.level else f"one unit more of {found.parent}"
    if not found.is_ratio:
        return f"{by} goes with a change of {found.child} by {effect}"
    if not found.outcome:
        return f"{by} multiplies the mean of {found.child} by {effect}"
    against = f" against {found.outcomes[0]}" * (len(found.outcomes) > 2)
    return f"{by} multiplies the odds of {found.child} = {found.outcome}{against} by {effect}"


def _interval(found: Estimates) -> str:
    lower, upper = (number(float(found.reported(end))) for end in found.population_interval)
    return f"(95% interval {lower} to {upper})"


# The whole


def summary(of: Context) -> list[Card]:
    """What a reader should know first."""
    fits = of.net.fits.items()
    odd = [] if of.stats is None else check(of.stats)
    # That one row has a level tells of this row.
    told = [found for found in odd if of.open or found.kind is not FindingKind.RARE_LEVEL]
    if of.net.missing is not None:  # then no row was lost
        told = [found for found in told if found.kind is not FindingKind.UNEVEN_LOSS]
    warnings = [_sentence(str(found)) for found in told]
    warnings += [f"{node}: {fit.status}: {fit.detail}." for node, fit in fits if is_warning(fit)]
    cards = [
        Card("Data", _data(of)),
        Card("Network", _network(of.net, of.sizes)),
        Card("Pooling", _pooling(of.net, of.sets)),
        Card(
            "Strongest effects that are sure" if leading(of) else "Strongest effects",
            _strongest(of),
            bullets=True,
        ),
        Card(f"Most different between {of.sets.many}", _different(of), bullets=True),
        Card("How sure the arcs are", _sure(of)),
        Card("Which model predicts best", (of.found.headline,) if of.found else (), look="broad"),
        Card("Before you trust this", warnings, bullets=True, look="warning"),
    ]
    return [card for card in cards if card.sentences]


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _data(of: Context) -> list[str]:
    net = of.net
    old = [j for j, level in enumerate(net.levels) if level not in net.adapted]
    sizes = listed([f"{net.levels[j]} ({net.n[j]:,})" for j in old])
    if not of.shown.all():
        sizes = listed([str(net.levels[j]) for j in old])
    elif len(old) > _LISTED:
        sizes = f"{net.n[old].min():,} to {net.n[old].max():,} rows in each"
    by = "" if of.sets.one == net.group.lower() else f", grouped by {net.group}"
    rows = counted(int(net.n[old].sum()), "row")
    said = [f"{rows} in {counted(len(old), of.sets)}{by}: {sizes}."]
    patterns = None if of.stats is None else of.stats.patterns
    if of.stats is not None and patterns is not None:
        incomplete = of.stats.n_rows - patterns.known.n_rows
        said.append(
            f"{counted(incomplete, 'row')} with missing values count for those that they have."
        )
    dropped = 0 if of.stats is None else int(of.stats.dropped.sum())
    if dropped and patterns is None and net.missing is not None:
        said.append(f"{counted(dropped, 'row')} with missing values count for those they have.")
    elif dropped:
        lack = "with missing values" if patterns is None else "without values"
        said.append(f"{counted(dropped, 'row')} {lack} were left out.")
    if net.adapted:
        said.append(
            f"{counted(len(net.adapted), of.sets)} came later, and had no part in learning: "
            f"{listed([str(level) for level in net.adapted])}."
        )
    return said


def _network(net: Network, sizes: Sequence[EffectSize]) -> list[str]:
    kinds = Counter(fit.kind for fit in net.fits.values())
    told = listed([f"{n} {kind}" for kind, n in kinds.items()])
    said = [f"{counted(len(net.dag.nodes), 'variable')} ({told}), {counted(len(sizes), 'arc')}."]
    if not sizes:
        return [*said, "No variable depends on another."]
    free = sum(size.reversible for size in sizes)
    which = "any arc" if free == len(sizes) else f"{free} of them" if free else "all of them"
    said.append(f"The data {'do not ' * bool(free)}determine the direction of {which}.")
    lone = [n for n in net.dag.nodes if not net.dag.parents(n) and not net.dag.children(n)]
    if lone:
        said.append(f"Without any arc: {listed(lone)}.")
    if net.inputs:
        said.append(f"Inputs, which have no distribution: {listed(net.inputs)}.")
    return said


def _pooling(net: Network, sets: Noun) -> list[str]:
    count = Counter(str(fit.pooling) for fit in net.fits.values()).most_common()
    said = [f"By variable: {listed([f'{kind} for {times}' for kind, times in count])}."]
    if len(count) == 1:
        fit = max(net.fits.values(), key=lambda fit: fit.gaussian is not None)
        about = about_pooling(fit, sets)
        said = [f"{str(fit.pooling).capitalize()} for all variables. {about}".strip()]
    singular = [node for node, fit in net.fits.items() if fit.status is Status.SINGULAR]
    if singular:
        said.append(
            f"Singular fits: {listed(singular)}: a variance between {sets.many} is 0, or a "
            "correlation is 1 or −1; nothing is wrong."
        )
    return said


def _strongest(of: Context) -> list[str]:
    named = [size for size in strongest(of.sizes)[:_FEW] if abs(size.effect) >= LEAST]
    said = []
    for size in leading(of) or named:
        found = of.estimates[size.index][size.term]
        said.append(
            f"{arrow(size.parent, size.child)}: {_short(found)} {_interval(found)}; "
            f"{standardised(of, size.effect)} in standard deviations."
        )
    return said


def _short(found: Estimates) -> str:
    """An effect in few words."""
    effect = number(float(found.reported(found.population)))
    scale = f"{found.scale} " * found.is_ratio
    of = f" of {found.outcome}" * (len(found.outcomes) > 2)
    return f"{scale}{effect}{of} for {instead(found) or 'each unit'}"


def _different(of: Context) -> list[str]:
    if len(of.net.levels) < 2 or not of.sizes or not of.shown.any():
        return []
    said = []
    for size in most_different(of.sizes)[:_FEW]:
        found = of.estimates[size.index][size.term]
        shown = np.flatnonzero(np.isfinite(found.effect))
        if size.between_sd < LEAST or not len(shown):
            continue
        low, high = (int(shown[end(found.effect[shown])]) for end in (np.argmin, np.argmax))
        ends = [number(float(found.reported(found.effect[j]))) for j in (low, high)]
        p = of.p_values.get((size.parent, size.child), math.nan)
        test = "" if math.isnan(p) else f"; test for equal effects {p_words(p)}"
        scale = f"{found.scale} " * found.is_ratio
        which = f" ({term_name(found)})" if term_name(found) else ""
        said.append(
            f"{arrow(size.parent, size.child)}: {scale}from {ends[0]} in {found.levels[low]} to "
            f"{ends[1]} in {found.levels[high]}{which}{test}."
        )
    return said or [f"No effect differs much between {of.sets.many}."]


def _sure(of: Context) -> list[str]:
    boot, found = of.boot, of.strengths
    if boot is None or found is None:
        return []
    sure = sum(is_sure(boot, arc.strength) for arc in found)
    said = [
        f"{counted(boot.replicates, 'network')} from resampled {resampled(boot, of.sets)}: {sure} "
        f"of {counted(len(found), 'arc')} are above the threshold of {number(boot.threshold)}."
    ]
    weak = sorted((arc.strength, arc.parent, arc.child) for arc in found if arc.strength < 0.5)
    if weak:
        arcs = [f"{arrow(parent, child)} ({percent(share)})" for share, parent, child in weak]
        said.append(f"Found in less than half of them: {listed(arcs, _FEW)}.")
    return said


def resampled(boot: Bootstrap, sets: Noun) -> str:
    """What a bootstrap resampled."""
    return f"rows within {sets.many}" if boot.unit == "row" else f"whole {sets.many}"


# Rows, and how it was made


def about_rows(of: Context) -> str:
    """What to know about complete rows that are not those that the network was learned from."""
    net, given = of.net, of.given
    if net.stats is None and net.missing is not None:  # how many complete rows it knew is not kept
        return ""
    rows = {} if given is None else dict(zip(given.levels, given.n.tolist(), strict=True))
    patterns = None if net.stats is None else net.stats.patterns
    learned = net.n if patterns is None else patterns.known.n
    other = [
        f"{level} {_few_rows(rows.get(level, 0), of)} instead of {n:,}"
        for level, n in zip(net.levels, learned.tolist(), strict=False)
        if rows.get(level, 0) != n and (of.open or max(rows.get(level, 0), n) >= FEWEST)
    ]
    told = "The network was learned from other rows than those of this report: "
    return f"{told}{listed(other)}." if other else ""


def about_alone(of: Context) -> str:
    """What estimates of data sets alone come from: complete rows, where cells were missing."""
    whole, every = of.stats, int(of.net.n.sum())
    if of.net.stats is not None or whole is None or whole.n_rows >= every:
        return "no pooling: its own rows alone"
    return f"no pooling: its own complete rows alone, in all {whole.n_rows:,} of {every:,} rows"


def _few_rows(n: int, of: Context) -> str:
    return f"{n:,}" if n >= FEWEST or of.open else f"fewer than {FEWEST}"


def about_search(of: Context) -> list[tuple[str, str]]:
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
