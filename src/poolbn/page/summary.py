"""The first part of a report: a few sentences on what to do with it, made from `page.facts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from poolbn.assess.comparison import pooling_words
from poolbn.assess.effectsizes import EffectSize
from poolbn.page.context import Context
from poolbn.page.facts import (
    PROBABLE,
    Differences,
    PoolingAdvice,
    differences,
    leading,
    pooling_advice,
    unsure,
)
from poolbn.page.treatments import changed
from poolbn.page.words import is_warning, resampled
from poolbn.show.texts import arrow, percent
from poolbn.wording import Noun, counted, listed

_NAMED = 3  # arcs in a sentence


class Point(NamedTuple):
    """A sentence, and the part of the report that has more."""

    sentence: str
    part: str = ""
    link: str = ""


def in_short(of: Context) -> list[Point]:
    """What a reader should know, and do, first."""
    if not of.sizes:
        nothing = "No variable depends on another, as far as these data tell."
        return [*_treated(of), Point(nothing), *_trouble(of)]
    return [
        *_treated(of),
        *_leading(of),
        *_different(differences(of), len(of.sizes), of.sets, _zero(of)),
        *_unsure(of),
        *_pooling(pooling_advice(of)),
        *_trouble(of),
        *_unknown(of),
    ]


def _arcs(sizes: Sequence[EffectSize]) -> str:
    return listed([arrow(size.parent, size.child) for size in sizes], _NAMED)


def _treated(of: Context) -> list[Point]:
    """What each input changes."""
    points = []
    for cause in of.treated:
        clear, others = changed(of, cause)
        said = f"No variable differs clearly by {cause}."
        if clear:
            rest = f" No clear difference: {listed(others, _NAMED)}." if others else ""
            said = f"Clearly different by {cause}: {listed(clear, 2 * _NAMED)}.{rest}"
        points.append(Point(said, "inputs", "Inputs"))
    return points


def _leading(of: Context) -> list[Point]:
    sizes = leading(of)
    if not sizes:
        said = (
            "No effect is sure in its size and its direction: read the arcs as associations, and "
            "look at their intervals."
        )
        return [Point(said, "effects", "Effects")]
    time = " in the order of time" if of.tiers else ""
    found = ", also in the bootstrap"
    if of.boot is None:
        found = f", with a probability of {percent(PROBABLE)} or more" if of.posterior else ""
    said = (
        f"Begin with {_arcs_of(sizes)}{time}: the strongest effects whose interval does not "
        f"reach {_zero(of)} and whose direction is determined{found}."
    )
    return [Point(said, "effects", "Effects")]


def _zero(of: Context) -> str:
    """No effect, in numbers."""
    ratios = any(found.is_ratio for terms in of.estimates for found in terms)
    return "zero, or a ratio of 1" if ratios else "zero"


def _it(several: Sequence[object]) -> str:
    return "it" if len(several) == 1 else "them"


def _arcs_of(sizes: Sequence[EffectSize]) -> str:
    return listed([arrow(size.parent, size.child) for size in sizes])


def _different(found: Differences, arcs: int, sets: Noun, zero: str) -> list[Point]:
    """Which effects differ, and whether that matters."""
    here = ("differences", "Differences")
    if found.denied:
        said = (
            f"{_count(found.denied, arcs)} {sets.many} by more than chance makes, "
            f"{_arcs(found.denied)}, and this network has one effect for all: learn with partial "
            "pooling to see them."
        )
        return [Point(said, *here)]
    points = []
    if found.turning:
        said = (
            f"{_count(found.turning, arcs)} {sets.many} so much that the range expected for a "
            f"new {sets.one} reaches {zero}: {_arcs(found.turning)}. Look at each {sets.one}, and "
            "do not take the population's effect to a new one."
        )
        points.append(Point(said, *here))
    if found.keeping:
        said = (
            f"{_count(found.keeping, arcs)} {sets.many} in size, not in direction: "
            f"{_arcs(found.keeping)}. Use {_it(found.keeping)} with the range expected for a new "
            f"{sets.one}."
        )
        points.append(Point(said, *here))
    if not points and found.tested:
        slight = " enough to matter" if found.slight else ""
        said = (
            f"No effect differs between {sets.many}{slight}, as far as the tests tell: those of "
            "the population can stand for all."
        )
        points.append(Point(said, *here))
    return points


def _count(sizes: Sequence[EffectSize], arcs: int) -> str:
    differ = "differs" if len(sizes) == 1 else "differ"
    return f"{len(sizes)} of {counted(arcs, 'effect')} {differ} between"


def _unsure(of: Context) -> list[Point]:
    """Arcs, and directions, that another sample may not have."""
    points, weak = [], unsure(of)
    if of.boot is not None:
        by = resampled(of.boot, of.sets)
        said = f"Networks from resampled {by} have all arcs again."
        if weak:
            said = _weak(weak, f"found in few networks from resampled {by}")
        points.append(Point(said, "bootstrap", "Bootstrap"))
    elif of.posterior is not None:
        said = f"All arcs have a probability of {percent(PROBABLE)} or more."
        if weak:
            said = _weak(weak, f"with a probability below {percent(PROBABLE)}")
        points.append(Point(said, "doubts", "Pairs in doubt"))
    free = [size for size in of.sizes if size.reversible]
    if free:
        by = "neither the data nor the tiers" if of.tiers else "the data do not"
        as_what = "it as an association" if len(free) == 1 else "them as associations"
        said = (
            f"For {counted(len(free), 'arc')} {by} determine the direction ({_arcs(free)}): read "
            f"{as_what}."
        )
        points.append(Point(said, "network", "Network"))
    return points


def _weak(weak: Sequence[tuple[EffectSize, float]], why: str) -> str:
    named = [f"{arrow(size.parent, size.child)} ({percent(share)})" for size, share in weak]
    which = "is" if len(weak) == 1 else "are"
    return (
        f"{counted(len(weak), 'arc')} {which} unsure, {why}: {listed(named, _NAMED)}. Do not build "
        f"on {_it(weak)}."
    )


def _pooling(found: PoolingAdvice | None) -> list[Point]:
    """Which pooling is recommended, and why the report shows another."""
    if found is None:
        return []
    best = pooling_words(found.best)
    here = ("pooling", "Comparison")
    if found.own == found.best:
        return [
            Point(f"Of the models compared, {best}, which this report shows, predicts best.", *here)
        ]
    again = f"Recommended is {best}, which predicts held-out rows best: learn with that"
    if found.own is None or found.behind is None:
        said = f"{again}. This report shows a model that was not compared."
    elif found.behind.clear:
        said = (
            f"{again}. This report shows {pooling_words(found.own)}, which predicts clearly worse."
        )
    else:
        said = (
            f"Of the models compared, {best} predicts best; {pooling_words(found.own)}, which this "
            "report shows, may be as good."
        )
    return [Point(said, *here)]


def _trouble(of: Context) -> list[Point]:
    bad = [node for node, fit in of.net.fits.items() if is_warning(fit)]
    if not bad:
        return []
    said = f"Do not use {listed(bad, _NAMED)} as fitted: something went wrong there."
    return [Point(said, "summary", "Before you trust this")]


def _unknown(of: Context) -> list[Point]:
    """What was not looked at."""
    lacks = []
    if of.boot is None and not of.evidence:
        lacks.append("how sure the arcs are (pb.bootstrap, or --bootstrap)")
    if of.found is None and len(of.net.levels) > 1:
        lacks.append("which pooling predicts best (pb.compare, or --compare)")
    return [Point(f"Not known here: {' and '.join(lacks)}.")] if lacks else []
