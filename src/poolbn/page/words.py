"""The sentences of a report: made last, from values, and never read back."""

from __future__ import annotations

import math

from poolbn.assess.effectsizes import EffectSize
from poolbn.assess.estimates import Common, Estimates
from poolbn.assess.resample import Bootstrap
from poolbn.assess.residuals import CELL, FEWEST
from poolbn.network.network import Network
from poolbn.nodes.localfit import LocalFit, Status
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.page.context import Context, doubt_words
from poolbn.show.figures import arrow, instead, number, p_value, percent, term_name
from poolbn.wording import Noun, counted, listed

_GROUPED = 8  # variables or arcs of which a report has less
_TERMS = 6  # effects of an arc that have a sentence each
_SCORES = {
    "bic": " (BIC)",
    "bic-h": " (BIC-h)",
    "aic": " (AIC)",
    "loglik": " (log-likelihood)",
    "bge": " (BGe)",
    "gprior": " (log Bayes factor against no arcs)",
}


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
    said = [f"{where}, {_change(found)} {in_interval(found)}{more}." for found in terms[:_TERMS]]
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


def in_interval(found: Estimates) -> str:
    """The interval of the population's effect, in brackets."""
    lower, upper = (number(float(found.reported(end))) for end in found.population_interval)
    return f"(95% interval {lower} to {upper})"


# The whole: rows, and how it was made


def resampled(boot: Bootstrap, sets: Noun) -> str:
    """What a bootstrap resampled."""
    return f"rows within {sets.many}" if boot.unit == "row" else f"whole {sets.many}"


def about_privacy(of: Context) -> str:
    """What the head of a report says of rows: whether it has them, and what it leaves out."""
    if of.open:
        return (
            "This report contains rows of the data. Give it only to those who may see them, or "
            "write it without rows=True or --include-rows."
        )
    may, sets = of.disclosed, of.sets
    said = ["This report contains no rows: estimates, counts and sums over rows only."]
    if of.hidden:
        scarce = f", or fewer than {CELL} with one of two numbers" * may.scarce
        few = f"{counted(len(of.hidden), sets)} with fewer than {FEWEST} rows{scarce}"
        few = f"{few} ({listed(of.hidden)})"
        if may.shown.all():
            were = "was" if len(of.hidden) == 1 else "were"
            said.append(f"{few} {were} left out: all estimates are of the other {sets.many}.")
        else:
            said.append(f"As it cannot leave out {few}, it has estimates of the population alone.")
    if may.later:
        came = listed([str(level) for level in may.later])
        said.append(f"{sets.many.capitalize()} that came later were left out ({came}).")
    if may.columns:
        said.append(f"Variables that do not differ then were left out: {listed(may.columns)}.")
    if may.grouped:
        said.append(
            f"For {listed(may.grouped, _GROUPED)}, {sets.many} are put together and not shown "
            f"apart where fewer than {FEWEST} rows have the same levels, or fewer than {CELL} a "
            "level."
        )
    if may.arcs:
        arcs = listed([arrow(*arc) for arc in may.arcs], _GROUPED)
        are = "is" if len(may.arcs) == 1 else "are"
        said.append(
            f"{counted(len(may.arcs), 'arc')} of the network {are} not here, as too few rows of "
            f"all {sets.many} together have some of the levels: {arcs}."
        )
    return " ".join(said)


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
