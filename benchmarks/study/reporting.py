"""The report of a study: figures, the paper's numbers beside ours, means, and time taken."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poolbn.errors import FileError
from poolbn.writing import write_whole

from .claims import Line, Statistic, Verdict, check_claims
from .figures import StudyFigure, figures_of, render
from .paper import CLAIMS
from .residuals import Beyond, beyond, beyond_figures, models_beyond
from .sides import SideRun, side_runs, usual
from .study import PUBLISHED
from .table import StudyResults, by_data_set, read_study, save_study

if TYPE_CHECKING:
    import pandas as pd

# Hill climbing with bnlearn and lme4 1.1-31 at N = 20, |F| = 10, n_j = 50 and 2 mean parents, on
# one core of an AMD EPYC machine.
_LME4_CALLS, _LME4_SECONDS = 1200, 115.2

_MARKS: dict[Verdict, str] = {
    "agrees": "✓",
    "direction agrees": "≈",
    "disagrees": "✗",
    "no data": "-",
}
_AXES = {"N": "N", "mean_parents": "mean parents", "F": "|F|", "rows": "n_j"}
_CELL = ["scenario", *_AXES]


def write_report(
    sources: str | PathLike[str] | Iterable[str | PathLike[str]], out: str | PathLike[str]
) -> None:
    """Write the report of a study into a folder: report.md, report.html and what they show.

    Beside them come the figures as PNG and SVG in figures/, the means of all cells in cells.csv,
    and results.parquet, one compact file from which the same report can be written again. Every
    file is written whole or not at all, the report last.

    Args:
        sources: the folder of a study, folders of its parts or presets, and files that reports
            left, results.parquet.
        out: the folder to write into; made if it is not there.

    Raises:
        FileError: there are no results, or the folder cannot be written.
    """
    results = read_study(sources)
    folder = Path(out)
    try:
        (folder / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {str(folder)!r}: {error.strerror}") from error
    figures: dict[str, list[dict[str, str]]] = {"figures": [], "beyond_figures": []}
    for kind, figure, cells in _figures(results):
        files = render(figure, cells)
        for ending, content in files.items():
            write_whole(folder / "figures" / f"{figure.name}.{ending}", content)
        picture = base64.b64encode(files["svg"]).decode()
        figures[kind].append({"name": figure.name, "caption": figure.caption, "svg": picture})
    means = _means(results.table, _CELL)
    write_whole(folder / "cells.csv", means.to_csv(index=False, float_format="%.6g").encode())
    save_study(results, folder / "results.parquet")
    for name, page in _pages(_contents(results, means) | figures).items():
        write_whole(folder / name, page.encode())


def _figures(results: StudyResults) -> Iterator[tuple[str, StudyFigure, pd.DataFrame]]:
    """Those that there are results for, which part they are in, and what they are drawn from."""
    table = usual(results.table)
    if not set(PUBLISHED) <= set(table["model"]):
        return
    cells = by_data_set(table)
    published = ((figure, cells.dropna(subset=["kl LME"])) for figure in figures_of())
    further = beyond_figures(cells, models_beyond(table))
    for kind, pairs in (("figures", published), ("beyond_figures", further)):
        for figure, own in pairs:
            if (own["scenario"] == figure.scenario).any():
                yield kind, figure, own


def _pages(contents: dict[str, Any]) -> dict[str, str]:
    """The templates with contents."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=lambda name: str(name).endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["cell"] = lambda text: str(text).replace("|", "\\|")
    return {
        name: templates.get_template(name).render(contents) for name in ("report.md", "report.html")
    }


def _contents(results: StudyResults, means: pd.DataFrame) -> dict[str, Any]:
    lines = check_claims(usual(results.table), CLAIMS)
    rows = [_row(line) for line in lines]
    return {
        "results": results,
        "parts": {row["part"]: [r for r in rows if r["part"] == row["part"]] for row in rows},
        "counts": {verdict: sum(r["verdict"] == verdict for r in rows) for verdict in _MARKS},
        "rules": sorted({line.claim.rule.words for line in lines if line.claim.paper is not None}),
        "marks": _MARKS,
        "axes": _axes(results.table),
        "cells": {
            "columns": list(means.columns),
            "rows": [[_cell(value) for value in row] for row in means.itertuples(index=False)],
        },
        "time": _time(results),
        "weighting": _weighting(results.table),
        "sides": _sides(side_runs(results.table, CLAIMS)),
        "beyond": [_beyond(found) for found in beyond(usual(results.table))],
    }


# Claims


def _row(line: Line) -> dict[str, Any]:
    claim = line.claim
    return {
        "part": claim.part,
        "what": claim.what + (f" ({line.measure})" if line.measure else ""),
        "paper": _said(line),
        "ours": _ours(line),
        "data_sets": line.data_sets,
        "verdict": line.verdict,
        "mark": _MARKS[line.verdict],
        "rule": claim.rule.words if claim.paper is None else "",
    }


def _said(line: Line) -> str:
    paper = line.claim.paper
    if paper is None:
        return "said"
    return f"{100 * paper:.0f}%" if line.claim.statistic.is_share else f"{paper:g}"


def _ours(line: Line, *, intervals: bool = True) -> str:
    shown = []
    for level, value, (low, high) in zip(line.levels, line.values, line.intervals, strict=True):
        number = _number(value, line.claim.statistic)
        if intervals:
            ends = ", ".join(_number(end, line.claim.statistic) for end in (low, high))
            number = f"{number} [{ends}]"
        shown.append(f"{level}: {number}" if level else number)
    return "; ".join(shown)


def _number(value: float, statistic: Statistic) -> str:
    return f"{100 * value:.0f}%" if statistic.is_share else f"{value + 0.0:.3g}"


def _sides(runs: list[SideRun]) -> dict[str, Any] | None:
    """The claims that do not quite agree as published, beside the side runs, if there are any."""
    rows = []
    for lines in zip(*(run.lines for run in runs), strict=True):
        compared = any(line.verdict != "no data" for line in lines[1:])
        if compared and lines[0].verdict not in ("agrees", "no data"):
            cells = [f"{_MARKS[ln.verdict]} {_ours(ln, intervals=False)}".strip() for ln in lines]
            rows.append({**_row(lines[0]), "cells": cells})
    if not rows:
        return None
    return {"names": [run.name for run in runs], "words": [run.words for run in runs], "rows": rows}


def _beyond(found: Beyond) -> dict[str, Any]:
    """A model's targets, and the kinds of networks in which its SHD is worse than LME's."""
    met = {"agrees": "met", "disagrees": "missed"}
    return {
        "model": found.model,
        "words": found.words,
        "rows": [
            {
                **_row(line),
                "target": line.claim.rule.words,
                "verdict": met.get(line.verdict, "") if line.claim.paper is not None else "",
            }
            for line in found.lines
        ],
        "cells": len(found.cells),
        "worse": [
            {**_row(line), "scaled": _ours(scaled) if scaled else ""}
            for line in found.worse
            for scaled in [found.scaled.get(line.claim.what)]
        ],
        "scaled": bool(found.scaled),
    }


# Means


def _means(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Mean SHD and KL, and median KL, of each model by columns of the design."""
    groups = table.fillna({"kl": float("inf")}).groupby([*by, "model"], sort=True)
    each = groups[["shd", "kl"]].mean().rename(columns={"shd": "SHD", "kl": "KL"})
    each["median KL"] = groups["kl"].median()
    wide: pd.DataFrame = each.unstack("model")  # type: ignore[assignment]
    order = list(table["model"].drop_duplicates())
    pairs = [(measure, model) for measure in each.columns for model in order]
    wide = wide.reindex(columns=pairs)
    wide.columns = [f"{measure} {model}" for measure, model in pairs]
    return wide.reset_index()


def _axes(table: pd.DataFrame) -> dict[str, Any]:
    """Means by one axis of the grid at a time."""
    rows, columns = [], []
    for axis, words in _AXES.items():
        means = _means(table, ["scenario", axis])
        columns = list(means.columns[2:])
        for scenario, level, *values in means.itertuples(index=False):
            rows.append([scenario, f"{words} = {level}", *map(_cell, values)])
    order = {scenario: i for i, scenario in enumerate(table["scenario"].drop_duplicates())}
    return {
        "columns": ["scenario", "", *columns],
        "rows": sorted(rows, key=lambda row: order[row[0]]),
    }


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


# Time, and inference


def _time(results: StudyResults) -> dict[str, Any]:
    fits = usual(results.table).groupby("model")["fits"].sum()
    rows = [
        {"model": model, "minutes": f"{results.seconds.get(model, 0.0) / 60:.1f}",
         "fits": f"{int(fits.get(model, 0)):,}"}
        for model in results.models
    ]  # fmt: skip
    each = _LME4_SECONDS / _LME4_CALLS
    lme4 = each * float(fits.get("LME", 0)) / 3600
    return {
        "rows": rows,
        "minutes": f"{sum(results.seconds.values()) / 60:.0f}",
        "lme4_each": f"{1000 * each:.0f}",
        "lme4_calls": _LME4_CALLS,
        "lme4_seconds": _LME4_SECONDS,
        "lme4_hours": f"{lme4:,.0f}" if lme4 >= 10 else f"{lme4:.2g}",
        "LME": f"{int(fits.get('LME', 0)):,}",
    }


def _weighting(table: pd.DataFrame) -> list[dict[str, str]]:
    """RMAD by likelihood weighting over RMAD by exact inference, where both were made."""
    both = table.dropna(subset=["rmad_exact", "rmad_weighting"])
    rows = []
    for model, own in both.groupby("model", sort=False):
        low, middle, high = (own["rmad_weighting"] / own["rmad_exact"]).quantile([0.25, 0.5, 0.75])
        rows.append(
            {
                "model": str(model),
                "networks": str(len(own)),
                "exact": f"{own['rmad_exact'].median():.3f}",
                "weighting": f"{own['rmad_weighting'].median():.3f}",
                "ratio": f"{middle:.3f} [{low:.3f}, {high:.3f}]",
            }
        )
    return rows
