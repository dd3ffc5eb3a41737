"""The cards of a report's summary: what a reader should know first, by subject."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from poolbn.assess.effectsizes import most_different, strongest
from poolbn.assess.influence import Influence
from poolbn.findings import FindingKind
from poolbn.graph.equivalence import Direction
from poolbn.moments.between import pairs_in_words, sure
from poolbn.moments.checks import check
from poolbn.network.network import Network
from poolbn.nodes.localfit import Status
from poolbn.page.context import Context
from poolbn.page.summary import (
    CLEAR,
    LEAST,
    NAMED,
    about_pooling,
    arcs_are_known,
    found_again,
    in_interval,
    is_warning,
    leading,
    p_words,
    resampled,
    standardised,
    zero,
)
from poolbn.show.figures import arrow, instead, is_sure, number, percent, term_name
from poolbn.wording import counted, listed

_OUTCOMES = 4  # variables on the card of an input
_LISTED = 12  # data sets whose rows the summary tells
_FEW_SETS = 8  # whose means tell little of correlations


class Card(NamedTuple):
    """A part of the summary: sentences, perhaps as a list, in a look of the style sheet."""

    heading: str
    sentences: Sequence[str]
    bullets: bool = False
    look: str = ""


def summary(of: Context) -> list[Card]:
    """What a reader should know first."""
    fits = of.net.fits.items()
    odd = [] if of.stats is None else check(of.stats)
    # That one row has a level tells of this row.
    told = [found for found in odd if of.open or found.kind is not FindingKind.RARE_LEVEL]
    if of.net.missing is not None:  # then no row was lost
        told = [found for found in told if found.kind is not FindingKind.UNEVEN_LOSS]
    warnings = [f"{str(found)[:1].upper()}{str(found)[1:]}." for found in told]
    warnings += [f"{node}: {fit.status}: {fit.detail}." for node, fit in fits if is_warning(fit)]
    cards = [
        Card("Data", _data(of)),
        *(_card(of, cause) for cause in of.treated),
        Card("Network", _network(of)),
        Card("Pooling", _pooling(of)),
        Card(_of_strongest(of), _strongest(of), bullets=True),
        Card(f"Most different between {of.sets.many}", _different(of), bullets=True),
        Card(f"Is one {of.sets.one} driving it?", _influential(of), bullets=True),
        Card(f"Means of {of.sets.many} that go together", _correlated(of)),
        Card("How sure the arcs are", _sure(of)),
        Card("The graph", () if of.graph_test is None else (of.graph_test.verdict,)),
        Card("Which model predicts best", (of.found.headline,) if of.found else (), look="broad"),
        Card("Before you trust this", warnings, bullets=True, look="warning"),
    ]
    return [card for card in cards if card.sentences]


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
    if net.unit is not None:
        said.append(f"Rows of one {net.unit} are alike, and count so.")
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


def three_digits(value: float) -> str:
    """A number of which the fourth digit is not sure."""
    return number(float(f"{value:.3g}"))


def scale_of(row: dict[Any, Any]) -> str:
    """The scale of an effect of an input, and of which level."""
    return f"{row['scale']}{' of ' * bool(row['outcome'])}{row['outcome']}"


def _card(of: Context, cause: str) -> Card:
    """What an input clearly changes, and what not."""
    told: dict[bool, list[str]] = {True: [], False: []}
    for row in of.treated[cause].to_dict("records"):
        scale = "" if row["scale"] == "difference" else f" {row['scale']}"
        level = f" = {row['outcome']}" if row["outcome"] else ""
        ends = ("mean", "mean_lower", "mean_upper")
        if math.isnan(row["mean"]):  # with units inside data sets there is none from rows
            ends = ("effect", "lower", "upper")
        mean, low, high = (three_digits(row[end]) for end in ends)
        told[row["p_adjusted"] < CLEAR].append(
            f"{row['child']}{level}{scale} {mean} ({low} to {high})"
        )
    sentences = []
    for heading, own in (("Clear", told[True]), ("Not clear", told[False])):
        # The last columns of a table are its outcomes, as a rule.
        more = f", and {len(own) - _OUTCOMES} more" * (len(own) > _OUTCOMES)
        if own:
            sentences.append(f"{heading}: {', '.join(own[-_OUTCOMES:])}{more}.")
    return Card(f"What {cause} changes", sentences, bullets=True)


def _network(of: Context) -> list[str]:
    net, sizes = of.net, of.sizes
    kinds = Counter(fit.kind for fit in net.fits.values())
    told = listed([f"{n} {kind}" for kind, n in kinds.items()])
    said = [f"{counted(len(net.dag.nodes), 'variable')} ({told}), {counted(len(sizes), 'arc')}."]
    if not sizes:
        return [*said, "No variable depends on another."]
    free = sum(size.reversible for size in sizes)
    which = "all arcs" if free in (0, len(sizes)) else f"{free} of them"
    said.append(f"The direction of {which} is {Direction.SCORE if free else 'fixed'}.")
    said += [
        f"In {sets} {listed(nodes)} {'was' if len(nodes) == 1 else 'were'} set or changed."
        for sets, nodes in _experiments(net).items()
    ]
    lone = [n for n in net.dag.nodes if not net.dag.parents(n) and not net.dag.children(n)]
    if lone:
        said.append(f"Without any arc: {listed(lone)}.")
    if net.inputs:
        said.append(f"Inputs, which have no distribution: {listed(net.inputs)}.")
    if net.split is not None:
        said.append(
            f"The graph was learned from {counted(net.split.rows, 'other row')}, so that intervals "
            "hold for effects that the search selected."
        )
    return said


def _experiments(net: Network) -> dict[str, tuple[str, ...]]:
    """What was set, by the data sets in which it was."""
    found: dict[tuple[str, ...], list[str]] = {}
    for level, nodes in net.interventions.items():
        found.setdefault(nodes, []).append(str(level))
    return {listed(levels, NAMED): nodes for nodes, levels in found.items()}


def _pooling(of: Context) -> list[str]:
    fits, sets = of.net.fits, of.sets
    count = Counter(str(fit.pooling) for fit in fits.values()).most_common()
    said = [f"By variable: {listed([f'{kind} for {times}' for kind, times in count])}."]
    if len(count) == 1:
        fit = max(fits.values(), key=lambda fit: fit.gaussian is not None)
        about = about_pooling(fit, sets)
        said = [f"{str(fit.pooling).capitalize()} for all variables. {about}".strip()]
    singular = [node for node, fit in fits.items() if fit.status is Status.SINGULAR]
    if singular:
        said.append(
            f"Singular fits: {listed(singular)}: a variance between {sets.many} is 0, or a "
            "correlation is 1 or −1; nothing is wrong."
        )
    return said


def _of_strongest(of: Context) -> str:
    """What the strongest effects are called: sure ones are of arcs that are sure, too."""
    if not leading(of):
        return "Strongest effects"
    clear = "Strongest effects with a clear direction and interval"
    return "Strongest effects that are sure" if arcs_are_known(of) else clear


def _strongest(of: Context) -> list[str]:
    named = [size for size in strongest(of.sizes)[:NAMED] if abs(size.effect) >= LEAST]
    said = []
    for size in leading(of) or named:
        found = of.estimates[size.index][size.term]
        effect = number(float(found.reported(found.population)))
        scale = f"{found.scale} " * found.is_ratio
        outcome = f" of {found.outcome}" * (len(found.outcomes) > 2)
        if found.scale == "odds ratio" and not found.outcome:
            outcome = " of a higher level"
        said.append(
            f"{arrow(size.parent, size.child)}: {scale}{effect}{outcome} for "
            f"{instead(found) or 'each unit'} {in_interval(found)}; "
            f"{standardised(of, size.effect)} in standard deviations{found_again(of, size)}."
        )
    return said


def _different(of: Context) -> list[str]:
    if len(of.net.levels) < 2 or not of.sizes or not of.shown.any():
        return []
    said = []
    for size in most_different(of.sizes)[:NAMED]:
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


def _influential(of: Context) -> list[str]:
    """Whether one data set decides on which side of no effect an interval is."""
    if not of.influences:
        return []
    sets, driven = of.sets, [found for found in of.influences if found.driver is not None]
    said = [_driven(of, found) for found in driven[:NAMED]]
    if len(driven) > NAMED:
        said.append(f"{len(driven) - NAMED} more are in net.leave_one_out().")
    if said:
        return said
    unstable = sum(bool(found.changing) for found in of.influences)
    if not unstable:
        return [f"No: whichever is left out, every 95% interval stays on its side of {zero(of)}."]
    return [
        f"No single one, but {len(of.net.levels)} {sets.many} are few: without any of several the "
        f"interval of {counted(unstable, 'effect')} reaches {zero(of)}, or no longer does."
    ]


def _driven(of: Context, found: Influence) -> str:
    """What one data set does to an effect."""
    name, without = found.driver, found.without[found.driver]
    told = [
        "{} ({} to {})".format(*map(three_digits, found.reported(ends)))
        for ends in (found.all, without)
    ]
    nothing = "a ratio of 1" if found.ratio else "zero"
    why = f"without {name} alone the interval reaches {nothing}"
    if not found.all.conclusion:
        why = f"the interval reaches {nothing}, and without {name} alone it does not"
    elif without.conclusion:
        why = f"without {name} alone the effect is clear with the other sign"
    return f"{_ends(found.term)}: {told[0]}, without {name} {told[1]}; {why}."


def _ends(term: Mapping[str, str]) -> str:
    """What an effect is of, with levels."""
    names = [
        f"{term[name]} = {term[level]}" if term[level] else term[name]
        for name, level in (("parent", "level"), ("child", "outcome"))
    ]
    return arrow(*names)


def _correlated(of: Context) -> list[str]:
    found, pairs = sure(of.mean_correlations), len(of.mean_correlations)
    if not found:
        few = len(of.net.levels) < _FEW_SETS
        why = f", as with {len(of.net.levels)} {of.sets.many} hardly any could be" * few
        return [f"None of {counted(pairs, 'correlation')} is beyond chance{why}."] if pairs else []
    are = "is" if len(found) == 1 else "are"
    return [
        f"{len(found)} of {counted(pairs, 'correlation')} {are} beyond chance: "
        f"{pairs_in_words(found)}.",
        f"{of.sets.many.capitalize()} may differ in both for reasons that are not in the table.",
    ]


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
        said.append(f"Found in less than half of them: {listed(arcs, NAMED)}.")
    return said
