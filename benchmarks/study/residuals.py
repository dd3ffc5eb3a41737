"""Beyond the paper: models whose residual variances differ between data sets, beside its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .claims import Array, Claim, Line, Rule, Statistic, Verdict, check_claims
from .figures import BLUE, GREEN, IVORY, LINE, PINK, StudyFigure, figures_of
from .paper import BALANCED, HOMOGENEOUS, UNBALANCED
from .study import PUBLISHED, VARIANTS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEYOND = ("LME-pooled", "LME-separate", "Auto")
SCALED = "LME-scaled"  # the published LME without what the units of columns tell REML scores

_SHARE = 0.85  # of data sets in which KL is to be lower
_NEAR = 1.01  # times the KL of GBN that is near enough where GBN is right
_ROOM = 3.0  # times the medians that the axis of ratios shows
_COLOURS = {
    "GBN": "#c9c9c9",
    "CGBN": PINK,
    "LME": IVORY,
    "LME-pooled": BLUE,
    "LME-separate": GREEN,
    "Auto": "#6b4f9e",
}


@dataclass(frozen=True, eq=False)
class Beyond:
    """What comes out with one model beside the published ones.

    Attributes:
        model: its name.
        words: what is different from the published LME.
        lines: a verdict that "agrees" is a target that was met.
        cells: mean SHD less that of the published LME, a line for each kind of balanced networks.
        scaled: the same less that of `SCALED`, by kind, where it was run.
    """

    model: str
    words: str
    lines: tuple[Line, ...]
    cells: tuple[Line, ...]
    scaled: dict[str, Line]

    @property
    def worse(self) -> tuple[Line, ...]:
        """The cells in which SHD is higher, the worst first."""
        found = [line for line in self.cells if line.values[0] > 0]
        return tuple(sorted(found, key=lambda line: -line.values[0]))


def beyond(table: pd.DataFrame) -> list[Beyond]:
    """The lines of each model that is there, if the published ones are.

    Args:
        table: `StudyResults.table`, rows of the paper's scenarios.
    """
    found = []
    for model in models_beyond(table):
        claims = [
            _targets(model),
            *(list(_cells(table, model, other)) for other in ("LME", SCALED)),
        ]
        made = check_claims(table, [claim for part in claims for claim in part])
        lines, cells, scaled = (
            [line for line in made if line.claim in part and line.verdict != "no data"]
            for part in claims
        )
        by_kind = {line.claim.what: line for line in scaled}
        found.append(Beyond(model, VARIANTS[model][1], tuple(lines), tuple(cells), by_kind))
    return found


def models_beyond(table: pd.DataFrame) -> list[str]:
    """Those in `BEYOND` that are there; none where one of the published models is not."""
    there = set(table["model"])
    return [model for model in BEYOND if model in there and set(PUBLISHED) <= there]


# Lines


def _target(holds: Callable[[float], bool], words: str) -> Rule:
    def judge(values: Array, intervals: Array, target: float) -> Verdict:
        return "agrees" if holds(float(values[0])) else "disagrees"

    return Rule(words, judge)


_AT_LEAST = _target(lambda value: value >= _SHARE, f"at least {100 * _SHARE:.0f}%")
_AT_MOST = _target(lambda value: value <= _NEAR, f"at most {_NEAR:g}")
_NO_WORSE = _target(lambda value: value <= 0, "at most 0")
_NONE = Rule("", lambda values, intervals, target: "agrees")


def _targets(model: str) -> list[Claim]:
    found = []
    for other in ("CGBN", "LME"):
        lower = Statistic(f"kl {model}", f"kl {other}")
        what = f"KL lower than that of {other}"
        found += [
            Claim(model, f"{what}, balanced, |F| ≥ 5", f"{BALANCED} and F >= 5", lower, _SHARE,
                  _AT_LEAST),
            Claim(model, f"{what}, balanced, by |F|", BALANCED, lower, None, _NONE, "F"),
            Claim(model, f"{what}, unbalanced", UNBALANCED, lower, None, _NONE),
            Claim(model, f"{what}, homogeneous", HOMOGENEOUS, lower, None, _NONE),
        ]  # fmt: skip
    ratio = Statistic(f"kl {model}", "kl GBN", "ratio", 0.5)
    near = (_NEAR, _AT_MOST) if model == "Auto" else (None, _NONE)
    found.append(Claim(model, "median KL over that of GBN, homogeneous", HOMOGENEOUS, ratio, *near))
    for other in ("LME", SCALED):
        shd = Statistic(f"shd {model}", f"shd {other}", "difference")
        what = f"mean SHD less that of {other}"
        found += [
            Claim(model, f"{what}, balanced, by |F|", BALANCED, shd, None, _NONE, "F"),
            Claim(model, f"{what}, unbalanced", UNBALANCED, shd, None, _NONE),
            Claim(model, f"{what}, homogeneous, by |F|", HOMOGENEOUS, shd, None, _NONE, "F"),
        ]
    return found


def _cells(table: pd.DataFrame, model: str, other: str) -> Iterator[Claim]:
    shd = Statistic(f"shd {model}", f"shd {other}", "difference")
    own = table[(table["model"] == model) & (table["scenario"] == "balanced")]
    kinds = own[["N", "mean_parents", "F"]].drop_duplicates().sort_values(["F", "N"])
    for N, parents, F in kinds.itertuples(index=False):
        what = f"N = {N}, mean parents {parents}, |F| = {F}"
        where = f"{BALANCED} and N == {N} and mean_parents == {parents} and F == {F}"
        yield Claim(model, what, where, shd, 0.0, _NO_WORSE)


# Figures


def beyond_figures(cells: pd.DataFrame, models: list[str]) -> Iterator[tuple[StudyFigure, Any]]:
    """Figures with the results to draw them from: those that all models shown have.

    Args:
        cells: from `by_data_set`.
        models: from `models_beyond`.
    """
    whole = [m for m in models if m != "Auto" or cells[f"kl {m}"].notna().all()]
    both = cells.dropna(subset=[f"kl {model}" for model in whole])
    for scenario in ("balanced", "homogeneous") if whole else ():
        shown = (*PUBLISHED, *whole)
        yield _overview(scenario, shown), both
    for model in models:
        for figure in figures_of(model):
            yield figure, cells.dropna(subset=[f"kl {model}"])


def _overview(scenario: str, models: tuple[str, ...]) -> StudyFigure:
    def draw(figure: Figure, cells: pd.DataFrame) -> None:
        left, right = figure.subplots(1, 2)
        _lowest(left, cells, models)
        _ratios(right, cells, [model for model in models if model != "CGBN"])
        for axes in (left, right):
            axes.spines["right"].set_visible(False)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(models), frameon=False)

    return StudyFigure(
        f"overview-{scenario}",
        "Left: share of the data sets in which each model has the lowest KL, by |F|. Right: KL "
        "over that of CGBN against rows per parameter of the true network, n/p; lines are medians, "
        "bars reach over the middle half of the data sets, the longest are cut off. "
        f"{scenario.capitalize()} data sets.",
        scenario,
        draw,
        (9.0, 3.8),
    )


def _lowest(axes: Axes, cells: pd.DataFrame, models: tuple[str, ...]) -> None:
    """Stacked shares; where several are lowest, each has a part."""
    kl = cells[[f"kl {model}" for model in models]].to_numpy(dtype=np.float64)
    best = kl == kl.min(axis=1, keepdims=True)
    part = best / best.sum(axis=1, keepdims=True)
    levels = sorted(set(cells["F"].tolist()))
    shares = np.array([part[cells["F"].to_numpy() == F].mean(axis=0) for F in levels])
    under = np.zeros(len(levels))
    for model, share in zip(models, shares.T, strict=True):
        axes.bar(range(len(levels)), share, 0.72, under, color=_COLOURS[model], edgecolor=LINE,
                 linewidth=0.8, label=model)  # fmt: skip
        under += share
    axes.set_xticks(range(len(levels)), [str(F) for F in levels])
    axes.set_ylim(0, 1)
    axes.set_xlabel("data sets |F|")
    axes.set_ylabel("share with the lowest KL")


def _ratios(axes: Axes, cells: pd.DataFrame, models: list[str]) -> None:
    """Medians and quartiles on a logarithmic axis."""
    groups = [(str(name), own) for name, own in cells.groupby("n/p", observed=True)]
    medians: list[float] = []
    for k, model in enumerate(models):
        ratio = Statistic(f"kl {model}", "kl CGBN", "ratio")
        values = [ratio.values(own) for _, own in groups]
        # Between values that are there, because some are infinite.
        low, middle, high = (
            np.array([np.quantile(v, at, method="inverted_cdf") for v in values])
            for at in (0.25, 0.5, 0.75)
        )
        medians += middle.tolist()
        at = np.arange(len(groups)) + 0.16 * (k - (len(models) - 1) / 2)
        axes.vlines(at, low, high, colors=LINE, linewidths=3.4)
        axes.vlines(at, low, high, colors=_COLOURS[model], linewidths=2.2)
        axes.plot(at, middle, "o-", color=LINE, linewidth=0.6, markersize=5,
                  markerfacecolor=_COLOURS[model])  # fmt: skip
    axes.axhline(1, color=LINE, linewidth=0.8, zorder=0)
    axes.set_yscale("log")
    axes.set_ylim(min(1.0, *medians) / _ROOM, max(1.0, *medians) * _ROOM)
    axes.set_xticks(range(len(groups)), [name for name, _ in groups])
    axes.set_xlabel("n/p")
    axes.set_ylabel("KL over KL of CGBN")
