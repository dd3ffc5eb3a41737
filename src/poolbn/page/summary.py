"""What a report says first: what to do with it in a few sentences.

What is true is found as values; words are made from these last, and are never read back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from poolbn.assess.comparison import Difference
from poolbn.assess.effectsizes import EffectSize, most_different, strongest
from poolbn.assess.estimates import Common, Estimates
from poolbn.assess.resample import Bootstrap
from poolbn.assess.residuals import CELL, FEWEST
from poolbn.graph.equivalence import Direction
from poolbn.moments.between import MeansCorrelation, pairs_in_words, sure
from poolbn.network.network import Network
from poolbn.nodes.localfit import LocalFit, Status
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.page.context import Context, doubt_words
from poolbn.show.figures import arrow, instead, is_sure, number, p_value, percent, term_name
from poolbn.wording import Noun, counted, listed

_GROUPED = 8  # variables or arcs of which a report has less
_TERMS = 6  # effects of an arc that have a sentence each


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
        told.append(f"direction {size.direction}")
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
    other = ": equivalent networks have this arc the other way round" * size.reversible
    said.append(f"The direction is {size.direction}{other}.")
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
    by = f"{found.parent} {instead(found)}" if found.base else f"one unit more of {found.parent}"
    by += f" {found.level}" * bool(found.level and not found.base)
    if not found.is_ratio:
        return f"{by} goes with a change of {found.child} by {effect}"
    if found.scale == "rate ratio":
        return f"{by} multiplies the mean of {found.child} by {effect}"
    if not found.outcome:
        return f"{by} multiplies the odds of a higher level of {found.child} by {effect}"
    against = f" against {found.outcomes[0]}" * (len(found.outcomes) > 2)
    return f"{by} multiplies the odds of {found.child} = {found.outcome}{against} by {effect}"


def in_interval(found: Estimates) -> str:
    """The interval of the population's effect, in brackets."""
    lower, upper = (number(float(found.reported(end))) for end in found.population_interval)
    return f"(95% interval {lower} to {upper})"


# The whole


def resampled(boot: Bootstrap, sets: Noun) -> str:
    """What a bootstrap resampled."""
    whole = boot.unit == "data set"
    return f"whole {sets.many}" if whole else f"{boot.unit}s within {sets.many}"


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
            f"level. Effects there are those of {sets.many} taken together: where {sets.many} "
            "differ, they are not those inside them, and their intervals are too narrow."
        )
    if may.arcs:
        arcs = listed([arrow(*arc) for arc in may.arcs], _GROUPED)
        are = "is" if len(may.arcs) == 1 else "are"
        said.append(
            f"{counted(len(may.arcs), 'arc')} of the network {are} not here, as too few rows of "
            f"all {sets.many} together have some of the levels: {arcs}."
        )
    return " ".join(said)


LEAST = 0.05  # standardised effects and differences below are not worth naming
CLEAR = 0.05  # adjusted p-value
_ONE_WAY = 0.8  # of bootstrap networks with an arc, or of its probability, for this direction
_PROBABLE = 0.9  # the probability of an arc that is sure
_LEADING = 5  # effects that a report begins with
NAMED = 3  # arcs in a sentence or on a card


class Point(NamedTuple):
    """A sentence, and the part of the report that has more."""

    sentence: str
    part: str = ""
    link: str = ""


# What is true


@dataclass(frozen=True)
class Heterogeneity:
    """Arcs whose effects differ between data sets, those that differ most first."""

    tested: bool  # whether there are tests
    turning: tuple[EffectSize, ...] = ()  # the direction may be another in a new data set
    keeping: tuple[EffectSize, ...] = ()  # it is the same, and the size differs
    slight: tuple[EffectSize, ...] = ()  # not by chance, but by too little to matter
    denied: tuple[EffectSize, ...] = ()  # they differ, and the fit has one effect for all data sets


def differences(of: Context) -> Heterogeneity:
    """Sort the arcs by whether their effects differ, and whether that matters."""
    kinds: dict[str, list[EffectSize]] = {}
    for size in most_different(of.sizes):
        test = of.tests.get((size.parent, size.child))
        if of.tests and (test is None or not test.p_adjusted < CLEAR):
            continue
        if isinstance(of.net.fits[size.child].pooling, Complete):
            kind = "denied"
        elif size.between_sd < LEAST:
            kind = "slight"
        else:
            kind = "turning" if _turns(of.estimates[size.index][size.term]) else "keeping"
        if of.tests or kind in ("turning", "keeping"):
            kinds.setdefault(kind, []).append(size)
    return Heterogeneity(bool(of.tests), **{kind: tuple(arcs) for kind, arcs in kinds.items()})


def _turns(found: Estimates) -> bool:
    """Whether the effect may have the other direction in a new data set, or has it in some."""
    low, high = found.new_interval
    if math.isfinite(low) and math.isfinite(high):
        return low <= 0 <= high
    own = found.effect[np.isfinite(found.effect)]
    return bool((own * found.population < 0).any())


def leading(of: Context) -> tuple[EffectSize, ...]:
    """Effects that a report begins with: strong ones that are sure, in the order of time.

    Their interval is on one side of no effect, their direction is fixed, and a bootstrap and
    probabilities of arcs, where there are any, find them so.
    Effects of data sets that are all put together have intervals that are too narrow.
    """
    tier = {name: k for k, names in enumerate(of.constraints.tiers) for name in names}

    def may_lead(size: EffectSize) -> bool:
        low, high = of.estimates[size.index][size.term].population_interval
        known = bool(of.disclosed.of(size.child).any()) and all(
            _is_enough(of, share) and share >= least and way >= _ONE_WAY
            for share, way, least in _evidence(of, size)
        )
        return abs(size.effect) >= LEAST and known and not size.reversible and (low > 0 or high < 0)

    found = [size for size in strongest(of.sizes) if may_lead(size)][:_LEADING]
    # Arcs that are in no tier stay in their order.
    return tuple(sorted(found, key=lambda of: (tier.get(of.child, -1), tier.get(of.parent, -1))))


def _evidence(of: Context, size: EffectSize) -> list[tuple[float, float, float]]:
    """How sure an arc between the two is, either way; the share for this direction; what is enough.

    By a bootstrap, then by probabilities, as far as there are any.
    """
    found = []
    if of.strengths is not None:
        own = of.strengths[size.index]
        found.append((own.strength, own.direction, _ONE_WAY))
    pair = of.doubts.get(frozenset((size.parent, size.child)))
    if pair is not None and pair.probability is not None:
        share = pair.direction or 0.0
        way = share if pair.parent == size.parent else 1 - share
        found.append((pair.probability, way, _PROBABLE))
    return found


def arcs_are_known(of: Context) -> bool:
    """Whether a reader can know how sure arcs are: by evidence, or as they brought the graph."""
    return of.boot is not None or of.posterior is not None or not of.net.search


def found_again(of: Context, size: EffectSize) -> str:
    """What the evidence says of an arc, after its effect."""
    said, known = "", _evidence(of, size)
    if of.strengths is not None:
        said = f"; {percent(known[0][0])} of bootstrap networks have the arc"
    if of.posterior is not None and known:
        said += f"; the arc has a probability of {percent(known[-1][0])}"
    return said


def _is_enough(of: Context, strength: float) -> bool:
    return strength >= _PROBABLE if of.boot is None else is_sure(of.boot, strength)


def unsure(of: Context) -> list[tuple[EffectSize, float]]:
    """Arcs that are not sure, with what says so, the weakest first."""
    found = [(size, known[0][0]) for size in of.sizes if (known := _evidence(of, size))]
    weak = [(size, share) for size, share in found if not _is_enough(of, share)]
    return sorted(weak, key=lambda pair: pair[1])


@dataclass(frozen=True)
class PoolingAdvice:
    """Which model predicts held-out rows best, and which one a report shows."""

    best: str  # its name
    own: str | None  # the name of the one that is shown; None if it was not compared
    behind: Difference | None  # how far that one is; None if it is the best, or not compared


def pooling_advice(of: Context) -> PoolingAdvice | None:
    """What a comparison recommends."""
    found = of.found
    if found is None or not np.isfinite(found.loglik.mean(axis=1)).any():
        return None
    shown = _model(of.net)
    compared = {name: _model(net) for name, net in found.networks.items()}
    if found.what == "graph":  # the same pooling throughout
        shown = set(map(str, of.net.dag.arcs))
        compared = {name: set(map(str, net.dag.arcs)) for name, net in found.networks.items()}
    names = (found.best, *found.poolings)
    own = next((name for name in names if compared[name] == shown), None)
    behind = None if own is None or own == found.best else found.difference(own)
    return PoolingAdvice(found.best, own, behind)


def _model(net: Network) -> set[str]:
    return {repr(fit.pooling) for fit in net.fits.values()}


# Scores by which levels of data sets that vary are independent in each node.
_INDEPENDENT = ("bic", "bic-h", "aic", "loglik")


def ignored_correlations(of: Context) -> list[MeansCorrelation]:
    """Of levels of data sets that go together, those that the network's score takes for chance."""
    vary = any(isinstance(fit.pooling, Partial) for fit in of.net.fits.values())
    known = vary and of.net.score_kind in _INDEPENDENT
    return sure(of.mean_correlations) if known else []


# In short


def in_short(of: Context) -> list[Point]:
    """What a reader should know, and do, first."""
    if not of.sizes:
        nothing = "No variable depends on another, as far as these data tell."
        return [*_treated(of), Point(nothing), *_trouble(of)]
    return [
        *_treated(of),
        _leading(of),
        *_differing(of),
        *_together(of),
        *_unsure(of),
        *_advice(of),
        *_trouble(of),
        *_unknown(of),
    ]


def _arcs(sizes: Sequence[EffectSize], most: int = NAMED) -> str:
    return listed([arrow(size.parent, size.child) for size in sizes], most)


def _treated(of: Context) -> list[Point]:
    """What each input changes; the last columns, which are outcomes as a rule, first."""
    points = []
    for cause, table in of.treated.items():
        rows = list(zip(table["child"].tolist(), table["p_adjusted"].tolist(), strict=True))
        clear = {child for child, p in rows if p < CLEAR}
        names = list(dict.fromkeys(child for child, _ in reversed(rows)))
        others = [name for name in names if name not in clear]
        said = f"No variable differs clearly by {cause}."
        if clear:
            named = listed([name for name in names if name in clear], 2 * NAMED)
            rest = f" No clear difference: {listed(others, NAMED)}." if others else ""
            said = f"Clearly different by {cause}: {named}.{rest}"
        points.append(Point(said, "inputs", "Inputs"))
    return points


def _leading(of: Context) -> Point:
    sizes = leading(of)
    if not sizes:
        together = [size for size in of.sizes if not of.disclosed.of(size.child).any()]
        these = "No effect" if not together else f"No effect that is shown inside {of.sets.many}"
        said = (
            f"{these} is sure in its size and its direction: read the arcs as associations, and "
            "look at their intervals."
        )
        return Point(said, "effects", "Effects")
    time = " in the order of time" if of.constraints.tiers else ""
    found = f", also in {percent(_ONE_WAY)} of bootstrap networks or more" * (of.boot is not None)
    found += f", with a probability of {percent(_PROBABLE)} or more" * (of.posterior is not None)
    if not arcs_are_known(of):
        found = ". Whether these arcs are sure was not looked at"
        if of.net.split is None:
            found += ", and effects of arcs that a search selects are too large where rows are few"
    said = (
        f"Begin with {_arcs(sizes, _LEADING)}{time}: the strongest effects whose interval does not "
        f"reach {zero(of)} and whose direction is fixed{found}."
    )
    return Point(said, "effects", "Effects")


def zero(of: Context) -> str:
    """No effect, in numbers."""
    ratios = any(found.is_ratio for terms in of.estimates for found in terms)
    return "zero (or a ratio of 1)" if ratios else "zero"


def _it(several: Sequence[object]) -> str:
    return "it" if len(several) == 1 else "them"


def _differing(of: Context) -> list[Point]:
    """Which effects differ, and whether that matters."""
    found, sets, said = differences(of), of.sets, []

    def differ(sizes: Sequence[EffectSize]) -> str:
        verb = "differs" if len(sizes) == 1 else "differ"
        return f"{len(sizes)} of {counted(len(of.sizes), 'effect')} {verb} between {sets.many}"

    if found.denied:
        said = [
            f"{differ(found.denied)} by more than chance makes, {_arcs(found.denied)}, and this "
            "network has one effect for all: learn with partial pooling to see them."
        ]
    elif found.turning or found.keeping:
        if found.turning:
            said.append(
                f"{differ(found.turning)} so much that the range expected for a new {sets.one} "
                f"reaches {zero(of)}: {_arcs(found.turning)}. Look at each {sets.one}, and do not "
                "take the population's effect to a new one."
            )
        if found.keeping:
            said.append(
                f"{differ(found.keeping)} in size, not in direction: {_arcs(found.keeping)}. Use "
                f"{_it(found.keeping)} with the range expected for a new {sets.one}."
            )
    elif found.tested:
        slight = " enough to matter" if found.slight else ""
        said = [
            f"No effect differs between {sets.many}{slight}, as far as the tests tell: those of "
            "the population can stand for all."
        ]
    return [Point(sentence, "differences", "Differences") for sentence in said]


def _together(of: Context) -> list[Point]:
    """Whether arcs may stand for levels of data sets that go together."""
    found, sets = ignored_correlations(of), of.sets
    said = (
        f"Means of {sets.many} are correlated ({pairs_in_words(found)}), and this network was "
        f"learned by a score that takes what {sets.many} add to each variable for independent: "
        "arcs may stand for that. Learn by the default score."
    )
    return [Point(said, "summary", "Means")] if found else []


def _unsure(of: Context) -> list[Point]:
    """Arcs, and directions, that another sample may not have."""
    points, weak = [], unsure(of)
    if of.boot is not None or of.posterior is not None:
        if of.boot is not None:
            by = f"networks from resampled {resampled(of.boot, of.sets)}"
            said, why = f"N{by[1:]} have all arcs again.", f"found in few {by}"
            here = ("bootstrap", "Bootstrap")
        else:
            said = f"All arcs have a probability of {percent(_PROBABLE)} or more."
            why = f"with a probability below {percent(_PROBABLE)}"
            here = ("doubts", "Pairs in doubt")
        if weak:
            named = [f"{arrow(size.parent, size.child)} ({percent(share)})" for size, share in weak]
            are = "is" if len(weak) == 1 else "are"
            said = (
                f"{counted(len(weak), 'arc')} {are} unsure, {why}: {listed(named, NAMED)}. Do not "
                f"build on {_it(weak)}."
            )
        points.append(Point(said, *here))
    free = [size for size in of.sizes if size.reversible]
    if free:
        as_what = "it as an association" if len(free) == 1 else "them as associations"
        said = (
            f"The direction of {counted(len(free), 'arc')} is {Direction.SCORE} ({_arcs(free)}): "
            f"read {as_what}."
        )
        points.append(Point(said, "network", "Network"))
    return points


def _advice(of: Context) -> list[Point]:
    """Which pooling is recommended, and why the report shows another."""
    found = pooling_advice(of)
    if found is None or of.found is None:
        return []
    words = of.found.words
    best = words(found.best)
    again = f"Recommended is {best}, which predicts held-out rows best: learn with that"
    if found.own == found.best:
        said = f"Of the models compared, {best}, which this report shows, predicts best."
    elif found.own is None or found.behind is None:
        said = f"{again}. This report shows a model that was not compared."
    elif found.behind.clear:
        said = f"{again}. This report shows {words(found.own)}, which predicts clearly worse."
    else:
        said = (
            f"Of the models compared, {best} predicts best; {words(found.own)}, which this "
            "report shows, may be as good."
        )
    return [Point(said, "pooling", "Comparison")]


def _trouble(of: Context) -> list[Point]:
    bad = [node for node, fit in of.net.fits.items() if is_warning(fit)]
    said = f"Do not use {listed(bad, NAMED)} as fitted: something went wrong there."
    return [Point(said, "summary", "Before you trust this")] if bad else []


def _unknown(of: Context) -> list[Point]:
    """What was not looked at."""
    lacks = []
    if of.boot is None and not of.evidence:  # a graph that was given is tested
        lacks.append("how sure the arcs are (pb.bootstrap, or --bootstrap)")
    if of.found is None and len(of.net.levels) > 1:
        lacks.append("which pooling predicts best (pb.compare, or --compare)")
    return [Point(f"Not known here: {' and '.join(lacks)}.")] if lacks else []
