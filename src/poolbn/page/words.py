"""The words of a report page: numbers, equations, and what there is to say of a network."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from poolbn.assess.comparison import Comparison
from poolbn.assess.resample import Bootstrap
from poolbn.graph.pairs import Pair
from poolbn.moments.groupstats import GroupStats
from poolbn.network.network import Network
from poolbn.nodes.localfit import GaussianFit, Pooling, Status
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.show.marks import Mark, arc_marks, arc_strengths
from poolbn.wording import counted, listed

_FEW = 3  # arcs that the summary names
_LEAST = 0.05  # standardised effects and differences below are not worth naming


def number(value: float | None) -> str:
    """Four digits, and never fewer than those before the point.

    Examples:
        >>> number(24.163), number(-12345.6), number(1.5e-7), number(float("nan"))
        ('24.16', '−12,346', '1.5e−07', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    large = 1000 <= size < 1e7
    return (f"{value:,.0f}" if large else f"{value:.4g}").replace("-", "−")


def p_value(p: float | None) -> str:
    """A p-value to three decimals.

    Examples:
        >>> p_value(0.04321), p_value(1e-9)
        ('0.043', '< 0.001')
    """
    if p is None or math.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_words(p: float) -> str:
    """A p-value in a sentence.

    Examples:
        >>> p_words(0.04321), p_words(1e-9)
        ('p = 0.043', 'p < 0.001')
    """
    return f"p {p_value(p)}" if p < 0.001 else f"p = {p_value(p)}"


def percent(share: float) -> str:
    """A share, without 0% and 100% where it is neither.

    Examples:
        >>> percent(0.256), percent(0.9999), percent(1.0), percent(0.001)
        ('26%', '> 99%', '100%', '< 1%')
    """
    if 0 < share < 0.005:
        return "< 1%"
    return "> 99%" if 0.995 <= share < 1 else f"{100 * share:.0f}%"


def arrow(parent: str, child: str) -> str:
    """An arc."""
    return f"{parent} → {child}"


# Nodes


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


def about_sds(fit: GaussianFit) -> str:
    """Where the residual SDs of the data sets come from.

    Examples:
        >>> import poolbn as pb
        >>> stats = pb.stats(pb.datasets.opt()[["clinic", "age"]], group="clinic", missing="drop")
        >>> about_sds(pb.fit_node(stats, "age", []))
        'All data sets share one, whatever they say alone.'
    """
    if fit.residual_shape is not None and math.isinf(fit.residual_shape):
        return "They are pooled, and came out the same: nothing says that they differ."
    if fit.residual_shape is not None:
        return (
            "They are pooled: what a data set says alone is shrunk towards the population's, the "
            "more the fewer its rows are."
        )
    separate = isinstance(fit.pooling, Partial) and fit.pooling.residuals == "separate"
    if fit.fixed is None or separate:
        return "Each data set has its own."
    return "All data sets share one, whatever they say alone."


def equation(fit: GaussianFit) -> str:
    """The distribution of a node, with the population's coefficients.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> equation(pb.fit_node(pb.stats(trial, group="clinic"), "bmi", ["age"]))
        'bmi = 22.66 + 0.1969 × age + error with SD 6.816'
    """
    values = fit.coef.mean(axis=0) if fit.fixed is None else fit.fixed
    terms = [number(float(values[0]))]
    for parent, value in zip(fit.parents, values[1:].tolist(), strict=True):
        terms.append(f"{'−' if value < 0 else '+'} {number(abs(value))} × {parent}")
    sd = np.sqrt(fit.sigma2)
    spread = number(float(sd.min()))
    if sd.max() > sd.min() * (1 + 1e-9):
        spread += f" to {number(float(sd.max()))}"
    return f"{fit.child} = {' '.join(terms)} + error with SD {spread}"


def about_equation(fit: GaussianFit) -> str:
    """Whose coefficients an equation has."""
    if fit.fixed is None:
        return "Coefficients are means over the data sets."
    if fit.random_cov is None:
        return "Coefficients are those that all data sets share."
    return "Coefficients are the population's."


def is_warning(fit: GaussianFit) -> bool:
    """Whether a reader should know what happened in a fit before they believe it."""
    return not fit.status.ok or fit.status is Status.NOT_CONVERGED


# Arcs


def about_arc(
    net: Network, mark: Mark, effect: float, interval: tuple[float, float], between: float
) -> list[str]:
    """What is known of an arc, in sentences.

    Args:
        net: the network.
        mark: the arc.
        effect: the population's.
        interval: of that.
        between: its standard deviation between data sets.
    """
    fit = net.fits[mark.child]
    if fit.fixed is None:
        where = "On average over the data sets"
    else:
        where = "In all data sets" if fit.random_cov is None else "In the population of data sets"
    said = [
        f"{where}, one unit more of {mark.parent} goes with a change of {mark.child} by "
        f"{number(effect)} (95% interval {number(interval[0])} to {number(interval[1])})"
        f"{', its other parents being equal' * (len(fit.parents) > 1)}. In standard deviations "
        f"that is {number(mark.effect)}."
    ]
    if between > 0:
        said.append(f"Between data sets the effect has a standard deviation of {number(between)}.")
    if mark.reversible:
        said.append(
            "The direction is not determined: equivalent networks have this arc the other way "
            "round, and the data cannot tell them apart."
        )
    return said


def about_strength(boot: Bootstrap, strength: float, direction: float) -> str:
    """How sure an arc is."""
    found = round(strength * boot.replicates)
    told = f"There is an arc between the two in {found} of {boot.replicates} bootstrap networks"
    if not found:
        return f"{told}."
    return f"{told}; in {percent(direction)} of these it points this way."


# The whole


def summary(
    net: Network,
    stats: GroupStats | None,
    p_values: Mapping[Pair, float],
    boot: Bootstrap | None,
    found: Comparison | None,
) -> list[tuple[str, list[str]]]:
    """What a reader should know first: headings, each with sentences.

    Args:
        net: the network.
        stats: the statistics of the rows, where they are known.
        p_values: of tests for equal effects, by arc.
        boot: how sure the arcs are.
        found: poolings compared.
    """
    marks = arc_marks(net)
    parts = [
        ("Data", _data(net, stats)),
        ("Network", _network(net, marks)),
        ("Pooling", _pooling(net)),
        ("Strongest effects", _strongest(net, marks)),
        ("Most different between data sets", _different(net, marks, p_values)),
        ("How sure the arcs are", _sure(net, boot) if boot else []),
        ("Which pooling the data want", [_first(found.verdict)] if found else []),
        ("Warnings", list(warnings(net))),
    ]
    return [(heading, said) for heading, said in parts if said]


def _data(net: Network, stats: GroupStats | None) -> list[str]:
    old = [j for j, level in enumerate(net.levels) if level not in net.adapted]
    sizes = [f"{net.levels[j]} ({net.n[j]:,})" for j in old]
    said = [
        f"{counted(int(net.n[old].sum()), 'row')} in {counted(len(old), 'data set')}, told apart "
        f"by {net.group}: {listed(sizes)}."
    ]
    dropped = 0 if stats is None else int(stats.dropped.sum())
    if dropped:
        said.append(f"{counted(dropped, 'row')} with a missing cell were left out.")
    if net.adapted:
        said.append(
            f"{counted(len(net.adapted), 'data set')} came later, and had no part in learning: "
            f"{listed([str(level) for level in net.adapted])}."
        )
    return said


def _network(net: Network, marks: Sequence[Mark]) -> list[str]:
    said = [f"{counted(len(net.dag.nodes), 'variable')}, {counted(len(marks), 'arc')}."]
    if not marks:
        return [*said, "No variable depends on another."]
    free = sum(mark.reversible for mark in marks)
    if free == len(marks):
        said.append("The data do not determine the direction of any arc.")
    elif free:
        said.append(f"The data do not determine the direction of {free} of them.")
    else:
        said.append("The data determine the direction of all of them.")
    lone = [n for n in net.dag.nodes if not net.dag.parents(n) and not net.dag.children(n)]
    if lone:
        said.append(f"Without any arc: {listed(lone)}.")
    return said


def _pooling(net: Network) -> list[str]:
    count = Counter(str(fit.pooling) for fit in net.fits.values()).most_common()
    if len(count) == 1:
        pooling = next(iter(net.fits.values())).pooling
        return [f"{str(pooling).capitalize()} for all variables. {about_pooling(pooling)}".strip()]
    return [f"By variable: {listed([f'{kind} for {times}' for kind, times in count])}."]


def _strongest(net: Network, marks: Sequence[Mark]) -> list[str]:
    table = net.effects()
    order = sorted(range(len(marks)), key=lambda k: -abs(marks[k].effect))
    said = []
    for k in order[:_FEW]:
        mark, row = marks[k], table.iloc[k]
        if abs(mark.effect) >= _LEAST:
            said.append(
                f"{arrow(mark.parent, mark.child)}: {number(row['effect'])} for each unit (95% "
                f"interval {number(row['lower'])} to {number(row['upper'])}); "
                f"{number(mark.effect)} in standard deviations."
            )
    return said


def _different(net: Network, marks: Sequence[Mark], p_values: Mapping[Pair, float]) -> list[str]:
    order = sorted(range(len(marks)), key=lambda k: -marks[k].between_sd)
    said = []
    for k in order[:_FEW]:
        mark = marks[k]
        if mark.between_sd < _LEAST:
            continue
        fit = net.fits[mark.child]
        coef = fit.coef[:, 1 + fit.parents.index(mark.parent)]
        low, high = int(coef.argmin()), int(coef.argmax())
        p = p_values.get((mark.parent, mark.child), math.nan)
        test = "" if math.isnan(p) else f"; test for equal effects {p_words(p)}"
        said.append(
            f"{arrow(mark.parent, mark.child)}: from {number(float(coef[low]))} in "
            f"{fit.levels[low]} to {number(float(coef[high]))} in {fit.levels[high]}{test}."
        )
    if marks and not said:
        said.append("No effect differs much between data sets.")
    return said if len(net.levels) > 1 else []


def _sure(net: Network, boot: Bootstrap) -> list[str]:
    strengths = arc_strengths(net, boot)
    what = "rows within data sets" if boot.unit == "row" else "whole data sets"
    sure = sum(strength > boot.threshold or strength == 1 for strength in strengths.values())
    said = [
        f"{counted(boot.replicates, 'network')} from resampled {what}: {sure} of "
        f"{counted(len(strengths), 'arc')} are above the threshold of {number(boot.threshold)}."
    ]
    weak = sorted((strength, arc) for arc, strength in strengths.items() if strength < 0.5)
    if weak:
        arcs = [f"{arrow(*arc)} ({percent(strength)})" for strength, arc in weak]
        said.append(f"Found in less than half of them: {listed(arcs, _FEW)}.")
    return said


def _first(text: str) -> str:
    """The first sentence; the others are further down the page."""
    return f"{text.partition('. ')[0].rstrip('.')}."


def warnings(net: Network) -> Iterable[str]:
    """Fits that a reader should not simply believe."""
    for node, fit in net.fits.items():
        if is_warning(fit):
            yield f"{node}: {fit.status}: {fit.detail}."
