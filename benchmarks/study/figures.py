"""The figures of the paper's simulation study: the same panels, the same sides, its colours.

Each can be drawn with another model instead of LME.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .claims import Statistic

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

# The paper's colours, told apart by how light they are as well.
BLUE, GREEN, IVORY, PINK = "#3d6fb4", "#a5d6a0", "#fffbe6", "#ee8fa8"
LINE, _FAINT = "#222222", "#9a9a9a"
_REACH = 2.0  # typical boxes that an axis shows on each side of zero before it cuts
_ORDERS = 1e3  # times the typical median that a logarithmic axis shows before it cuts
_MOST_RATIO = 3.0  # of SHD that is shown
_HUGE = 1e30


@dataclass(frozen=True)
class StudyFigure:
    """One figure of the report.

    Attributes:
        name: of its files.
        caption: what it shows, in one paragraph.
        scenario: of the data sets that it shows.
        draw: puts it onto an empty figure, from these rows of `by_data_set`.
        size: in inches.
    """

    name: str
    caption: str
    scenario: str
    draw: Callable[[Figure, pd.DataFrame], None]
    size: tuple[float, float]


@dataclass(frozen=True)
class _Series:
    """The boxes of one colour."""

    label: str
    colour: str
    statistic: Statistic


def render(figure: StudyFigure, cells: pd.DataFrame) -> dict[str, bytes]:
    """The content of its files by ending: "svg" and "png", the same bytes for the same results.

    Args:
        figure: from `figures_of`, or another one.
        cells: from `by_data_set`; some of them must be of the figure's scenario.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {
        "svg.hashsalt": figure.name,
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.spines.top": False,
    }
    with mpl.rc_context(style):
        canvas = Figure(figsize=figure.size, layout="constrained")
        figure.draw(canvas, cells[cells["scenario"] == figure.scenario])
        files = {}
        for ending, about in (("svg", {"Date": None}), ("png", {"Software": None})):
            content = BytesIO()
            canvas.savefig(content, format=ending, dpi=110, metadata=about)
            files[ending] = content.getvalue()
    return files


def _groups(cells: pd.DataFrame, by: str) -> list[tuple[str, pd.DataFrame]]:
    return [(str(level), group) for level, group in cells.groupby(by, observed=True)]


def _boxes(
    axes: Axes,
    groups: Sequence[tuple[str, pd.DataFrame]],
    series: _Series,
    side: tuple[int, int],
) -> list[dict[str, float]]:
    """A box for each group; `side` is which of how many boxes stand there side by side."""
    which, many = side
    width = 0.72 / many
    shown = [_box(series.statistic.values(group)) for _, group in groups]
    positions = [i + (which - (many - 1) / 2) * width for i in range(len(groups))]
    axes.bxp(
        shown,
        positions=positions,
        widths=width * 0.86,
        patch_artist=True,
        showfliers=False,
        manage_ticks=False,
        boxprops={"facecolor": series.colour, "edgecolor": LINE, "linewidth": 0.8},
        medianprops={"color": LINE, "linewidth": 1.6},
        whiskerprops={"color": LINE, "linewidth": 0.8},
        capprops={"color": LINE, "linewidth": 0.8},
    )
    axes.set_xticks(range(len(groups)), [name for name, _ in groups])
    axes.set_xlim(-0.6, len(groups) - 0.4)
    return shown


def _box(values: Array) -> dict[str, float]:
    """Quartiles, and whiskers to the last value within one and a half of their range."""
    from matplotlib.cbook import boxplot_stats

    (box,) = boxplot_stats(np.clip(values[~np.isnan(values)], -_HUGE, _HUGE))
    return dict(box)


def _limits(boxes: list[dict[str, float]]) -> tuple[float, float]:
    """An axis around zero that keeps typical boxes readable and cuts the largest ones."""
    spans = [box["whishi"] - box["whislo"] for box in boxes]
    typical = float(np.quantile(spans, 0.5, method="lower"))
    reach = _REACH * (typical or 1.0)
    low = max(min(box["whislo"] for box in boxes), -reach)
    high = min(max(box["whishi"] for box in boxes), reach)
    margin = 0.05 * (max(high, 0) - min(low, 0) or 1)
    return min(low, 0) - margin, max(high, 0) + margin


def _logarithmic(axes: Axes, boxes: list[dict[str, float]]) -> None:
    """An axis of some orders of magnitude around the medians that cuts what is beyond."""
    middle = float(np.median([box["med"] for box in boxes]))
    low = max(min(box["whislo"] for box in boxes), middle / _ORDERS)
    high = min(max(box["whishi"] for box in boxes), middle * _ORDERS)
    axes.set_yscale("log")
    axes.set_ylim(low / 1.5, high * 1.5)


def _same_zero(left: Axes, right: Axes) -> None:
    """Stretch two axes of a panel so that zero is at the same height."""
    below, above = [], []
    for axes in (left, right):
        low, high = axes.get_ylim()
        below.append(-low / (high - low))
        above.append(high / (high - low))
    zero = max(below) / (max(below) + max(above))
    for axes in (left, right):
        low, high = axes.get_ylim()
        span = max(-low / zero, high / (1 - zero))
        axes.set_ylim(-zero * span, (1 - zero) * span)


def _legend(figure: Figure, series: Sequence[_Series]) -> None:
    from matplotlib.patches import Patch

    patches = [
        Patch(facecolor=one.colour, edgecolor=LINE, linewidth=0.8, label=one.label)
        for one in series
    ]
    figure.legend(handles=patches, loc="outside upper center", ncols=len(patches), frameon=False)


def _line_at(axes: Axes, value: float) -> None:
    axes.axhline(value, color=_FAINT, linewidth=0.8, zorder=0)


def _side_by_side(
    axes: Axes, cells: pd.DataFrame, by: str, series: Sequence[_Series]
) -> list[dict[str, float]]:
    groups = _groups(cells, by)
    shown = []
    for which, one in enumerate(series):
        shown += _boxes(axes, groups, one, (which, len(series)))
    axes.spines["right"].set_visible(False)
    return shown


def _panels(figure: Figure, rows: int, columns: int) -> Iterator[Any]:
    yield from np.ravel(figure.subplots(rows, columns))


# The five figures


def _balanced(figure: Figure, cells: pd.DataFrame, model: str) -> None:
    shd = _Series("SHD", BLUE, Statistic(f"shd {model}", "shd CGBN", "difference"))
    kl = _Series("KL", GREEN, Statistic(f"kl {model}", "kl CGBN", "difference"))
    panels = _panels(figure, 2, 2)
    for by, words in _AXES.items():
        left = next(panels)
        right = left.twinx()
        groups = _groups(cells, by)
        for axes, one, which in ((left, shd, 0), (right, kl, 1)):
            axes.set_ylim(*_limits(_boxes(axes, groups, one, (which, 2))))
            axes.set_ylabel(f"{one.label}({model}) - {one.label}(CGBN)")
        _same_zero(left, right)
        _line_at(left, 0)
        left.set_xlabel(words)
    _legend(figure, (shd, kl))


_AXES = {"N": "nodes N", "mean_parents": "mean parents", "F": "data sets |F|", "rows": "rows n_j"}


def _models(measure: str, model: str) -> tuple[_Series, ...]:
    return tuple(
        _Series(name, colour, Statistic(f"{measure} {name}", f"{measure} {name}", "a"))
        for name, colour in ((model, IVORY), ("CGBN", PINK))
    )


def _efficiency(figure: Figure, cells: pd.DataFrame, model: str) -> None:
    for axes, measure, words in zip(
        _panels(figure, 1, 2), ("shd", "kl"), ("SHD", "KL"), strict=True
    ):
        shown = _side_by_side(axes, cells, "n/p", _models(measure, model))
        axes.set_xlabel("n/p")
        axes.set_ylabel(words)
        if measure == "kl":
            _logarithmic(axes, shown)
    _legend(figure, _models("shd", model))


def _predictive(figure: Figure, cells: pd.DataFrame, model: str) -> None:
    known, unknown = (
        _Series(f"F {f}", colour, Statistic(f"rmad_{f} {model}", f"rmad_{f} CGBN", "difference"))
        for f, colour in (("known", BLUE), ("unknown", GREEN))
    )
    panels = _panels(figure, 2, 2)
    for by, words in (("F", "data sets |F|"), ("n/p", "n/p")):
        axes = next(panels)
        shown = _side_by_side(axes, cells, by, _models("f1", model))
        least = min(box["whislo"] for box in shown)
        axes.set_ylim(least - 0.05 * (1 - least) - 1e-3, 1 + 0.05 * (1 - least) + 1e-3)
        axes.set_ylabel("F1")
        axes.set_xlabel(words)
    for by, words in (("F", "data sets |F|"), ("n/p", "n/p")):
        axes = next(panels)
        axes.set_ylim(*_limits(_side_by_side(axes, cells, by, (known, unknown))))
        _line_at(axes, 0)
        axes.set_ylabel(f"RMAD({model}) - RMAD(CGBN)")
        axes.set_xlabel(words)
    _legend(figure, (*_models("f1", model), known, unknown))


def _homogeneous(figure: Figure, cells: pd.DataFrame, model: str) -> None:
    for axes, measure, words in zip(
        _panels(figure, 1, 2), ("shd", "kl"), ("SHD", "KL"), strict=True
    ):
        series = tuple(
            _Series(
                f"{name} / GBN", colour, Statistic(f"{measure} {name}", f"{measure} GBN", "ratio")
            )
            for name, colour in ((model, IVORY), ("CGBN", PINK))
        )
        shown = _side_by_side(axes, cells, "n/p", series)
        if measure == "kl":
            _logarithmic(axes, shown)
        else:
            axes.set_ylim(0, 1.05 * min(_MOST_RATIO, max(box["whishi"] for box in shown)))
        _line_at(axes, 1)
        axes.set_xlabel("n/p")
        axes.set_ylabel(f"{words} over {words} of GBN")
    _legend(figure, series)


_PREDICTIVE = (
    "F1 of predicted data sets against |F| (top left) and n/p (top right), {0} ivory and CGBN "
    "pink; difference in RMAD between {0} and CGBN against |F| (bottom left) and n/p (bottom "
    "right), F known blue and unknown green. Negative differences favour {0}. {1} data sets; the "
    "largest boxes are cut off."
)


def figures_of(model: str = "LME") -> tuple[StudyFigure, ...]:
    """The paper's figures, with a model instead of LME; then it is in their names too."""
    whole, half = (9.0, 7.0), (9.0, 3.8)
    ending = "" if model == "LME" else f"-{model}"

    def figure(
        name: str, scenario: str, draw: Callable[..., None], size: tuple[float, float], caption: str
    ) -> StudyFigure:
        return StudyFigure(name + ending, caption, scenario, partial(draw, model=model), size)

    return (
        figure(
            "balanced", "balanced", _balanced, whole,
            f"SHD({model}) - SHD(CGBN), blue, left axes, and KL({model}) - KL(CGBN), green, right "
            "axes, by N (top left), mean parents (top right), |F| (bottom left) and n_j (bottom "
            f"right), balanced data sets. Negative values favour {model}. KL is weighted by P(F). "
            "The largest boxes are cut off, so that the others can be seen.",
        ),
        figure(
            "efficiency", "balanced", _efficiency, half,
            f"SHD (left) and KL (right, on a logarithmic axis) of {model}, ivory, and CGBN, pink, "
            "against rows per parameter of the true network, n/p, balanced data sets; the largest "
            "boxes are cut off.",
        ),
        *(
            figure(
                f"predictive-{scenario}", scenario, _predictive, whole,
                _PREDICTIVE.format(model, scenario.capitalize()),
            )
            for scenario in ("balanced", "unbalanced")
        ),
        figure(
            "homogeneous", "homogeneous", _homogeneous, half,
            f"SHD (left) and KL (right) of {model}, ivory, and CGBN, pink, over those of GBN, "
            "against n/p, homogeneous data sets. Values above 1 favour GBN. KL is on a logarithmic "
            "axis; the largest boxes are cut off.",
        ),
    )  # fmt: skip
