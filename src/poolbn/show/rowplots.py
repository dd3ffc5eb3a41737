"""Plots by matplotlib with a row for each data set, arc, pair or pooling; residuals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from poolbn.arrays import Floats
from poolbn.assess.comparison import Comparison
from poolbn.assess.effectsizes import EffectSize, effect_sizes, most_different
from poolbn.assess.estimates import Estimates
from poolbn.assess.resample import Bootstrap
from poolbn.assess.residuals import QUARTILE, Calibration, Residuals, normal_quantiles
from poolbn.graph.pairs import Pair
from poolbn.network.network import Network
from poolbn.posteriors.posterior import ArcPosterior
from poolbn.show import figures, style
from poolbn.show.figures import arrow, p_value, term_name, what, what_all
from poolbn.wording import Noun, clipped, counted, noun_of

_ASIDE = 0.17  # from the middle of a row to each of two estimates, in rows
_OTHER = style.SERIES[1]  # the rarer direction
_PALE = 0.55  # white in what is below the threshold


# Effects


def draw_forest(terms: Sequence[Estimates], sets: Noun, ax: Axes | None) -> Axes:
    """A row for each data set, sorted by estimate, and the population's at the bottom.

    Several effects are blocks, one below the other. Ratios have an axis of logarithms.
    """
    F, many = len(terms[0].levels), len(terms) > 1
    block = F + 1.5 + 1.2 * many  # rows of one, with its heading
    ax = style.new_rows(ax, math.ceil(len(terms) * block), len(terms) * block - 0.3)
    size = min(style.MARK, 0.4 * style.points(ax)[1] / (len(terms) * block + 2))
    limits = figures.forest_limits(*terms)
    names: dict[float, tuple[str, str]] = {-1: ("", "rows")}
    for k, found in enumerate(terms):
        top = k * block
        if many:
            names[top] = (term_name(found), "")
            top += 1.2 if k else 1.0
        names |= _forest_block(ax, found, sets, top, limits, size, labelled=not k)
    ax.axvline(terms[0].reported(0.0), color=style.SOFT, linewidth=0.8, zorder=0)
    ax.set_xlim(*map(float, terms[0].reported(np.array(limits))))
    if terms[0].is_ratio:
        _ratio_axis(ax, limits)
    told = names.items()
    style.name_rows(ax, names, [name for _, (name, _) in told], [note for _, (_, note) in told])
    of = what_all(terms[0]) if many else what(terms[0])
    ax.set_xlabel(of, fontsize=style.FONT, parse_math=False)
    style.legend_above(ax, 2, right=many)
    return ax


def _forest_block(
    ax: Axes,
    found: Estimates,
    sets: Noun,
    top: float,
    limits: tuple[float, float],
    size: float,
    *,
    labelled: bool,
) -> dict[float, tuple[str, str]]:
    """One effect from a row on; names and notes of its rows. Labels are for the legend."""
    order = figures.forest_order(found)
    F, common = len(order), found.common.words(sets)
    last = top + F + 0.5  # the population's row
    ends = found.reported(np.array(limits))

    def label(words: str) -> str:
        return words if labelled else "_"

    def lines(row: Floats, interval: Floats, colour: Any, width: float = 1.0) -> None:
        _intervals(ax, row, found.reported(interval), ends, colour, width)

    sure = np.array([found.population_interval])
    if np.isfinite(sure).all():
        low, high = found.reported(sure[0])
        ax.fill_between([low, high], top - 0.5, last + 0.5, color=style.paler(style.INK, 0.92),
                        linewidth=0, zorder=-1)  # fmt: skip
        lines(np.array([last]), sure, style.INK, 3)
    middle = found.reported(found.population)
    ax.vlines(middle, top - 0.5, last + 0.5, color=style.SOFT, linewidth=0.8,
              linestyles=(0, (3, 2)), zorder=0)  # fmt: skip
    both = bool(np.isfinite(found.alone).any())
    if both:
        row = top + np.arange(float(F)) - _ASIDE
        alone = found.alone[order]
        inside = (alone >= limits[0]) & (alone <= limits[1])
        lines(row, found.alone_interval[order], style.SOFT)
        ax.plot(found.reported(np.where(inside, alone, np.nan)), row, "o", color=style.SOFT,
                markersize=size, markerfacecolor=style.PAPER,
                label=label("no pooling: its own rows alone"))  # fmt: skip
    row = top + np.arange(float(F)) + _ASIDE * both
    lines(row, found.interval[order], style.POSITIVE)
    ax.plot(found.reported(found.effect[order]), row, "o", color=style.POSITIVE, markersize=size,
            label=label(str(found.pooling)))  # fmt: skip
    new = np.array([found.new_interval])
    if np.isfinite(new).all():
        lines(np.array([last]), new, style.INK)
        ax.plot([], [], color=style.INK, linewidth=1,
                label=label(f"range expected for a new {sets.one}"))  # fmt: skip
    ax.plot(middle, last, "D", color=style.INK, markersize=1.3 * size,
            label=label(common))  # fmt: skip
    names = [str(found.levels[j]) + " (adapted)" * bool(found.adapted[j]) for j in order]
    notes = [f"{n:,}" for n in [*found.n[order].tolist(), int(found.n[~found.adapted].sum())]]
    rows = [*(top + np.arange(float(F))).tolist(), last]
    return dict(zip(rows, zip([*names, common], notes, strict=True), strict=True))


def _intervals(
    ax: Axes, row: Floats, interval: Floats, limits: Floats, colour: Any, width: float
) -> None:
    """Lines; where one goes on beyond the limits there is an arrow head."""
    low, high = np.clip(interval, *limits).T
    ax.hlines(row, low, high, colors=colour, linewidths=width)
    for end, marker, out in (
        (limits[0], "<", interval[:, 0] < limits[0]),
        (limits[1], ">", interval[:, 1] > limits[1]),
    ):
        if out.any():
            ax.plot(np.full(out.sum(), end), row[out], marker, color=colour, markersize=3,
                    clip_on=False)  # fmt: skip


def draw_heterogeneity(
    net: Network, p_values: Mapping[Pair, float], most: int, ax: Axes | None
) -> Axes:
    """A row for each arc, those that differ most between data sets on top, at most so many."""
    shown = most_different(effect_sizes(net))[:most]
    ax = style.new_rows(ax, len(shown), max(1, len(shown)) - 0.4)
    ax.set_xlabel("effect, in standard deviations of the child for one of the parent",
                  fontsize=style.FONT)  # fmt: skip
    if not shown:
        style.say(ax, "no arcs: no node depends on another")
        return ax
    ax.axvline(0, color=style.SOFT, linewidth=0.8, zorder=0)
    _spread(ax, shown, noun_of(net.group))
    arcs = [(size.parent, size.child) for size in shown]
    names = [arrow(clipped(a, 24), clipped(b, 24)) for a, b in arcs]
    notes = [""] * (1 + len(shown))
    if p_values:
        notes = ["p (equal effects)", *(p_value(p_values[arc]) for arc in arcs)]
    count = len(net.dag.arcs)
    more = f"{len(shown)} of {count} arcs" if len(shown) < count else ""
    style.name_rows(ax, range(-1, len(shown)), [more, *names], notes)
    style.legend_above(ax, 2)
    return ax


def _spread(ax: Axes, shown: Sequence[EffectSize], sets: Noun) -> None:
    """The effects in the data sets, the population's, and the standard deviation around it."""
    row = np.arange(len(shown))
    x = np.concatenate([size.own for size in shown])
    at = np.repeat(row, len(shown[0].own))
    effect = np.array([size.effect for size in shown])
    sd = np.array([size.between_sd for size in shown])
    other = np.sign(x) * np.sign(effect[at]) < 0
    mark = min(style.MARK, 0.4 * style.points(ax)[1] / len(shown))
    ax.hlines(row, effect - sd, effect + sd, colors=style.FAINT, linewidths=1.6 * mark,
              label=f"± SD between {sets.many}", zorder=1)  # fmt: skip
    for which, colour, label in (
        (~other, style.POSITIVE, f"one {sets.one}"),
        (other, style.NEGATIVE, f"one {sets.one}, opposite sign"),
    ):
        if which.any():
            ax.plot(x[which], at[which], "o", color=colour, markersize=0.75 * mark, alpha=0.8,
                    markeredgewidth=0, label=label, zorder=3)  # fmt: skip
    ax.plot(effect, row, "|", color=style.INK, markersize=2.2 * mark, markeredgewidth=1.6,
            label=f"population of {sets.many}", zorder=2)  # fmt: skip


def draw_thresholds(found: Sequence[figures.Thresholds], ax: Axes | None) -> Axes:
    """A block for each effect: a row for each threshold, and the common odds ratio below."""
    count = sum(len(of.ratio) + 1.3 for of in found)
    ax = style.new_rows(ax, math.ceil(count), max(1.0, count) - 0.7)
    if not found:
        style.say(ax, "no ordinal node with three levels has a parent")
        return ax
    size, top = min(style.MARK, 0.4 * style.points(ax)[1] / (count + 1)), 0.0
    limits = figures.odds_limits(found)
    names: dict[float, tuple[str, str]] = {-1: ("", "p (proportional)")}
    for k, of in enumerate(found):
        names[top] = of.name, p_value(of.p_value)
        told = [*of.thresholds, "all thresholds"]
        names |= {top + i: (name, "") for i, name in enumerate(told, start=1)}
        _thresholds_block(ax, of, top, limits, size, labelled=not k)
        top += len(of.ratio) + 1.3
    ax.axvline(1.0, color=style.SOFT, linewidth=0.8, zorder=0)
    _ratio_axis(ax, limits)
    style.name_rows(ax, names, *zip(*names.values(), strict=True))
    ax.set_xlabel("odds ratio of a higher level", fontsize=style.FONT)
    style.legend_above(ax, 2)
    return ax


def _thresholds_block(
    ax: Axes,
    of: figures.Thresholds,
    top: float,
    limits: tuple[float, float],
    size: float,
    *,
    labelled: bool,
) -> None:
    """One effect below a row. Labels are for the legend."""
    last, ends = top + len(of.ratio), np.exp(limits)
    low, high = np.exp(np.clip(of.interval[-1], *limits))
    ax.fill_between([low, high], top + 0.5, last + 0.5, color=style.paler(style.INK, 0.92),
                    linewidth=0, zorder=-1)  # fmt: skip
    ax.vlines(np.exp(of.ratio[-1]), top + 0.5, last + 0.5, color=style.SOFT, linewidth=0.8,
              linestyles=(0, (3, 2)), zorder=0)  # fmt: skip
    each = np.arange(top + 1, last + 0.5)
    shown = np.where((of.ratio >= limits[0]) & (of.ratio <= limits[1]), of.ratio, np.nan)
    for part, colour, mark, width, label in (
        (slice(-1), style.POSITIVE, "o", 1.0, "at one threshold"),
        (slice(-1, None), style.INK, "D", 3.0, "common to all"),
    ):
        _intervals(ax, each[part], np.exp(of.interval[part]), ends, colour, width)
        ax.plot(np.exp(shown[part]), each[part], mark, color=colour, markersize=size,
                label=label if labelled else "_")  # fmt: skip


def _ratio_axis(ax: Axes, limits: tuple[float, float]) -> None:
    """An axis of logarithms, by the logarithms of its ends."""
    ratios = figures.ratio_ticks(*limits)
    ax.set_xscale("log")
    ax.minorticks_off()
    ax.set_xticks(ratios, [f"{ratio:g}" for ratio in ratios])
    ax.set_xlim(*np.exp(limits).tolist())


# Poolings compared, and strengths of arcs


def draw_comparison(found: Comparison, ax: Sequence[Axes] | None) -> NDArray[np.object_]:
    """Four panels with a row for each pooling."""
    P = len(found.poolings)
    axes = style.new_panels(ax, 4, 11.0, 1.5 + 0.34 * P, sharey=True)
    best, sets = found.poolings.index(found.best), _sets(found)
    _differences(axes[0], figures.held_out_differences(found), "no fit", "held-out rows")
    _differences(
        axes[1], figures.left_out_differences(found), "no population", f"{sets.many} left out"
    )
    _errors(axes[2], found)
    axes[3].plot(found.f1, np.arange(P), "o", color=style.POSITIVE, markersize=style.MARK)
    axes[3].set_xlim(0, 1)
    _absent(axes[3], found.f1, "no fit")
    axes[3].set_xlabel(f"guessing the {sets.one}:\nF1", fontsize=style.SMALL)
    for panel in axes:
        style.bare(panel)
        panel.set_ylim(P - 0.5, -0.5)
        panel.axhspan(best - 0.5, best + 0.5, color=style.paler(style.INK, 0.94), zorder=-1)
        panel.tick_params(axis="y", length=0, labelleft=panel is axes[0])
    axes[0].set_yticks(np.arange(P), [clipped(name) for name in found.poolings], parse_math=False)
    return axes


def _sets(found: Comparison) -> Noun:
    return noun_of(next(iter(found.networks.values())).group)


def _differences(ax: Axes, found: figures.Differences, absent: str, label: str) -> None:
    """All differences from the best pooling, their mean and two standard errors."""
    ax.axvline(0, color=style.SOFT, linewidth=0.8, zorder=0)
    for p in np.flatnonzero(np.isfinite(found.mean)):
        mean, reach = found.mean[p], found.reach[p]
        ax.plot(found.each[p], np.full(len(found.each[p]), p), "o", color=style.FAINT,
                markersize=3.5)  # fmt: skip
        ax.hlines(p, mean - reach, mean + reach, colors=style.POSITIVE, linewidths=2)
        ax.plot(mean, p, "o", color=style.POSITIVE, markersize=style.MARK)
    _absent(ax, found.mean, absent)
    ax.set_xlabel(f"{label}:\nlog-likelihood per row, best = 0", fontsize=style.SMALL)


def _errors(ax: Axes, found: Comparison) -> None:
    """Relative errors of all variables, and their mean, with the data set known and unknown."""
    for each, aside, face, label in (
        (found.known, -0.15, style.POSITIVE, f"{_sets(found).one} known"),
        (found.unknown, 0.15, style.PAPER, "unknown"),
    ):
        row = np.arange(len(each)) + aside
        ax.plot(each, row, "o", color=style.FAINT, markersize=3)
        ax.plot(each.mean(axis=1), row, "o", color=style.POSITIVE, markerfacecolor=face,
                markersize=style.MARK, label=label)  # fmt: skip
    _absent(ax, found.known.mean(axis=1), "no fit")
    ax.set_xlabel("each variable from the others:\nerror / standard deviation",
                  fontsize=style.SMALL)  # fmt: skip
    style.legend_above(ax, 2)


def _absent(ax: Axes, values: Floats, why: str) -> None:
    for row in np.flatnonzero(~np.isfinite(values)).tolist():
        ax.text(0.5, row, why, transform=ax.get_yaxis_transform(), ha="center", va="center",
                fontsize=style.SMALL, color=style.SOFT)  # fmt: skip


def draw_strengths(found: Bootstrap | ArcPosterior, most: int, ax: Axes | None) -> Axes:
    """A bar for each pair of nodes, split by direction, the strongest on top."""
    bars = figures.bars(found)
    pairs, threshold = bars.pairs, bars.threshold
    shown = pairs[:most]
    m = len(shown)
    ax = style.new_rows(ax, m, max(1, m) - 0.4)
    ax.set_xlim(0, 1.02)
    ax.set_xlabel(bars.axis, fontsize=style.FONT)
    if not m:
        style.say(ax, "no arc was ever found")
        return ax
    strength = np.array([pair.strength for pair in shown])
    split = strength * [pair.direction for pair in shown]
    for start, end, colour, label in (
        (0 * split, split, style.POSITIVE, "as named"),
        (split, strength, _OTHER, "the other way"),
    ):
        colours = [style.paler(colour, 0 if s > threshold or s == 1 else _PALE) for s in strength]
        ax.barh(np.arange(m), end - start, left=start, height=0.62, color=colours, label=label)
    ax.axvline(threshold, color=style.INK, linewidth=0.9, dashes=(3, 2),
               label=f"threshold {threshold:.2f}")  # fmt: skip
    heading = f"{m} of {len(pairs)} pairs" if m < len(pairs) else ""
    names = [heading, *(figures.pair_name(pair, 24) for pair in shown)]
    style.name_rows(ax, range(-1, m), names, ["strength", *(f"{s:.2f}" for s in strength)])
    style.legend_above(ax, 3)
    return ax


_SIZE = (10.5, 3.6)  # inches
_DOTS = 3000  # rows shown as dots, at most


def draw_residuals(found: Residuals, ax: Sequence[Axes] | None) -> NDArray[np.object_]:
    """Three panels: residuals against fitted values, normal quantiles, spread in each data set."""
    present = found.present
    axes = style.new_panels(ax, 3, _SIZE[0], _SIZE[1] + 0.12 * max(0, len(present) - 14))
    few = len(present) <= len(style.SERIES)
    colours = dict(zip(present, style.SERIES, strict=False)) if few else {}
    _against_fitted(axes[0], found, colours)
    _normal(axes[1], found, colours)
    _by_data_set(axes[2], found, colours)
    return axes


def _against_fitted(ax: Axes, found: Residuals, colours: dict[int, str]) -> None:
    shown = found.some(_DOTS)
    colour = [colours.get(code, style.POSITIVE) for code in found.codes[shown].tolist()]
    dots: dict[str, Any] = {"s": 7, "alpha": 0.45, "linewidths": 0}
    ax.scatter(found.fitted[shown], found.standard[shown], c=colour, **dots)
    ax.axhline(0, color=style.SOFT, linewidth=0.8)
    ax.plot(*found.trend().T, color=style.INK, linewidth=1.4, label="mean of neighbours")
    ax.legend(loc="upper right", **style.LEGEND)
    _label(ax, f"fitted {clipped(found.node, 30)}", "residual, in standard deviations")


def _normal(ax: Axes, found: Residuals, colours: dict[int, str]) -> None:
    limit = 0.0
    for code in found.present:
        x, y = normal_quantiles(found.of(code))
        colour = colours.get(code, style.paler(style.POSITIVE, 0.5))
        ax.plot(x, y, color=colour, linewidth=1.1, alpha=0.9)
        limit = max(limit, *np.abs(x), *np.abs(y))
    if not colours:
        x, y = normal_quantiles(found.standard)
        ax.plot(x, y, color=style.INK, linewidth=1.4, label="all together")
        ax.legend(loc="upper left", **style.LEGEND)
    ax.axline((0, 0), slope=1, color=style.SOFT, linewidth=0.8, zorder=0)
    ax.set_xlim(-1.05 * limit, 1.05 * limit)
    ax.set_ylim(-1.05 * limit, 1.05 * limit)
    _label(ax, "normal quantile", "quantile of the residuals")


def _by_data_set(ax: Axes, found: Residuals, colours: dict[int, str]) -> None:
    for side in (-QUARTILE, QUARTILE):
        ax.axvline(side, color=style.SOFT, linewidth=0.8, dashes=(3, 2), zorder=0)
    boxes = found.boxes()
    for row, (code, _, ends) in enumerate(boxes):
        low, first, middle, third, high = ends.tolist()
        face = style.paler(colours.get(code, style.POSITIVE), 0.4)
        ax.hlines(row, low, high, colors=style.INK, linewidths=0.9, zorder=1)
        ax.barh(row, third - first, left=first, height=0.6, color=face, edgecolor=style.INK,
                linewidth=0.9, zorder=2)  # fmt: skip
        ax.vlines(middle, row - 0.3, row + 0.3, colors=style.INK, linewidths=1.6, zorder=3)
    ax.set_ylim(len(boxes) - 0.4, -0.6)
    style.bare(ax)
    names = [str(found.levels[code]) for code, _, _ in boxes]
    style.name_rows(ax, range(len(boxes)), names, [f"{rows:,}" for _, rows, _ in boxes])
    note = f"; {counted(found.left_out, 'row')} left out" if found.left_out else ""
    _label(ax, f"residual, in standard deviations\n(dashed: expected quartiles{note})", "")


def draw_calibration(found: Calibration, ax: Sequence[Axes] | None) -> NDArray[np.object_]:
    """Two panels: shares of rows against probabilities, and the same in each data set."""
    axes = style.new_panels(ax, 2, 7.4, _SIZE[1] + 0.12 * max(0, len(found.levels) - 14))
    colours = [style.SERIES[k % len(style.SERIES)] for k in range(len(found.categories))]
    _shares(axes[0], found, colours)
    _shares_of_data_sets(axes[1], found, colours)
    return axes


def _shares(ax: Axes, found: Calibration, colours: Sequence[str]) -> None:
    ax.axline((0, 0), slope=1, color=style.SOFT, linewidth=0.8, zorder=0)
    most = 0.0
    for level in found.shown:
        bins = found.bins(level)
        x, y = [part.expected for part in bins], [part.seen for part in bins]
        ax.vlines(x, [part.lower for part in bins], [part.upper for part in bins],
                  colors=colours[level], linewidths=1)  # fmt: skip
        ax.plot(x, y, "o-", color=colours[level], markersize=style.MARK, linewidth=1,
                label=clipped(found.categories[level], 24))  # fmt: skip
        most = max([most, *x, *(part.upper for part in bins)])
    if not most:
        style.say(ax, "too few rows of a level")
    ax.set_xlim(0, 1.05 * most or 1)
    ax.set_ylim(0, 1.05 * most or 1)
    if most:
        style.legend_above(ax, 3)
    _label(ax, f"probability of {clipped(found.node, 30)}", "share of rows")


def _shares_of_data_sets(ax: Axes, found: Calibration, colours: Sequence[str]) -> None:
    names = []
    rows = np.bincount(found.codes, minlength=len(found.levels))
    for row, code in enumerate(np.flatnonzero(rows).tolist()):
        names.append((str(found.levels[code]), f"{rows[code]:,}"))
        for k, level in enumerate(found.shown):
            at = row + (k - (len(found.shown) - 1) / 2) * 0.6 / len(found.shown)
            part = found.by_data_set(level).get(code)
            if part is not None:
                ax.hlines(at, part.lower, part.upper, colors=colours[level], linewidths=1)
                ax.plot(part.seen, at, "o", color=colours[level], markersize=style.MARK)
                ax.plot(part.expected, at, "|", color=style.INK, markersize=2 * style.MARK,
                        markeredgewidth=1.6)  # fmt: skip
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(left=0)
    style.bare(ax)
    style.name_rows(ax, range(len(names)), *zip(*names, strict=True))
    note = f"; {counted(found.left_out, 'row')} left out" if found.left_out else ""
    _label(ax, f"share of rows (line: expected{note})", "")


def _label(ax: Axes, x: str, y: str) -> None:
    if y:
        style.bare(ax)
        ax.spines["left"].set_visible(True)
        ax.spines["left"].set_color(style.SOFT)
    ax.set_xlabel(x, fontsize=style.FONT, parse_math=False)
    ax.set_ylabel(y, fontsize=style.FONT, parse_math=False)
