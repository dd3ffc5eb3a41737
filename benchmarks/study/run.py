"""Runs a study: a file for each finished chunk, so that it can be stopped and go on at any time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from poolbn.errors import FileError, Option, OptionError, nearest
from poolbn.run.parallel import available_cores, map_processes
from poolbn.writing import write_whole

from .study import (
    PRESETS,
    PUBLISHED,
    SCENARIOS,
    Chunk,
    Measures,
    Preset,
    check_models,
    run_chunk,
)

if TYPE_CHECKING:
    import pandas as pd

_FORMAT = "poolbn-study"
_VERSION = 1
_KEYS = ["scenario", "N", "mean_parents", "F", "network", "rows", "replicate", "model"]


class Progress(NamedTuple):
    """How far a study is.

    Attributes:
        done: chunks that are finished.
        chunks: chunks in all.
        share: of the work, by a rough guess of what each chunk costs.
    """

    done: int
    chunks: int
    share: float


def run_study(
    out: str | PathLike[str],
    *,
    preset: str = "paper",
    models: Sequence[str] = PUBLISHED,
    workers: int | None = None,
    part: tuple[int, int] = (1, 1),
    watch: Callable[[Progress], None] = lambda progress: None,
) -> None:
    """Run a study, or what is left of it, into a folder.

    Each chunk of data sets (those of one true network) becomes one Parquet file, written whole. A
    chunk whose file is there is not run again, so a study that was stopped in any way goes on. The
    files hold the same bytes however often it was stopped, and on however many cores.

    Args:
        out: the folder; made if it is not there.
        preset: a name in `benchmarks.study.study.PRESETS`: "paper", "small", "smoke", or for side
            runs "side", "original" and "equal".
        models: names in `benchmarks.study.study.MODELS`.
        workers: processes; all cores by default. Inside `pb.on_cluster` its workers do it.
        part: (k, K) runs only the k-th of K parts, for several machines; see `study_results`.
        watch: is told of the progress.

    Raises:
        OptionError: an option has no such value.
        FileError: the folder holds another study, or cannot be written.
    """
    if preset not in PRESETS:
        raise OptionError(Option("preset", preset), f" is not a preset{nearest(preset, PRESETS)}")
    check_models(tuple(models))
    if workers is not None and workers < 1:
        raise OptionError(Option("workers", workers), " is too few; take 1 or more")
    k, parts = part
    if not 1 <= k <= parts:
        raise OptionError(f"part {k} of {parts} is not a part; count from 1, as in 1/{parts}")
    folder = Path(out)
    grid = PRESETS[preset]
    _claim(folder, preset, tuple(models))
    wanted = [chunk for chunk in grid.chunks() if _models(chunk, tuple(models))]
    mine = wanted[k - 1 :: parts]
    left = [chunk for chunk in mine if not _file(folder, chunk).exists()]
    left.sort(key=_cost, reverse=True)  # the long ones first, so that no core waits at the end
    whole = sum(map(_cost, mine)) or 1.0  # a part of very many can be empty
    share = max(whole - sum(map(_cost, left)), 0.0)
    done = len(mine) - len(left)
    watch(Progress(done, len(mine), share / whole))
    work = partial(_work, preset=grid, models=tuple(models))
    for made in map_processes(work, left, available_cores() if workers is None else workers):
        write_whole(_file(folder, made.chunk, "seconds", "json"), made.seconds)
        write_whole(_file(folder, made.chunk), made.table)
        done += 1
        share += _cost(made.chunk)
        watch(Progress(done, len(mine), share / whole))


def study_results(
    folders: str | PathLike[str] | Iterable[str | PathLike[str]],
) -> pd.DataFrame:
    """The results in a folder, or in the folders of several parts: a row for each learned network.

    Columns are those of `benchmarks.study.study.Measures`. Rows are in the order of the grid.

    Raises:
        FileError: there are no results, or two folders hold the same.
    """
    import pandas as pd

    many = [folders] if isinstance(folders, str | PathLike) else list(folders)
    files = [file for folder in many for file in sorted(Path(folder).glob("parts/*.parquet"))]
    if not files:
        raise FileError(f"no results in {', '.join(repr(str(f)) for f in many)}; run the study")
    return in_order(pd.concat(map(_read_part, files), ignore_index=True))


def in_order(found: pd.DataFrame) -> pd.DataFrame:
    """Rows in the order of the grid, and models in that in which they first come.

    Raises:
        FileError: a network is there twice.
    """
    if found.duplicated(_KEYS).any():
        raise FileError("some results are there twice; give each part once")
    order = {name: i for i, name in enumerate(found["model"].drop_duplicates())}
    return found.sort_values(
        _KEYS, key=lambda column: column.map(order) if column.name == "model" else column
    ).reset_index(drop=True)


def _read_part(file: Path) -> pd.DataFrame:
    import pandas as pd
    import pyarrow as pa

    try:
        part = pd.read_parquet(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise FileError(
            f"{str(file)!r} is not a whole Parquet file ({error}); remove it and run the study "
            "again"
        ) from error
    if tuple(part.columns) != Measures._fields:
        raise FileError(
            f"{str(file)!r} is not of this poolbn's study: its columns differ; run it anew"
        )
    return part


def study_seconds(folders: Iterable[str | PathLike[str]]) -> dict[str, float]:
    """Seconds that each model took in the paper's own scenarios, on one core each."""
    total: dict[str, float] = {}
    for folder in folders:
        for file in sorted(Path(folder).glob("seconds/*.json")):
            if file.name.split("-N")[0] not in SCENARIOS:
                continue
            for model, seconds in json.loads(file.read_text()).items():
                total[model] = total.get(model, 0.0) + seconds
    return total


def study_preset(folder: str | PathLike[str]) -> str:
    """The preset that was run into a folder.

    Raises:
        FileError: no study was.
    """
    preset = str(_read_claim(Path(folder) / "study.json").get("preset"))
    if preset not in PRESETS:
        raise FileError(f"{str(folder)!r} has a study of {preset!r}, which this poolbn has not")
    return preset


def _read_claim(file: Path) -> dict[str, Any]:
    try:
        there = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"cannot read {str(file)!r}: {error.strerror}") from error
    except ValueError as error:
        raise FileError(f"{str(file)!r} is not JSON ({error}); take another folder") from error
    if not isinstance(there, dict) or there.get("format") != _FORMAT:
        raise FileError(f"{str(file)!r} is not of a study; take another folder")
    return there


def _claim(folder: Path, preset: str, models: tuple[str, ...]) -> None:
    """Say whose folder it is, or check that it is this study's."""
    for inner in (folder, folder / "parts", folder / "seconds"):
        try:
            inner.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot make the folder {str(inner)!r}: {error.strerror}") from error
    content = {"format": _FORMAT, "version": _VERSION, "preset": preset, "models": list(models)}
    file = folder / "study.json"
    if not file.exists():
        write_whole(file, json.dumps(content, indent=1).encode())
        return
    there = _read_claim(file)
    if there != content:
        raise FileError(
            f"{str(folder)!r} holds another study ({there.get('preset')}: "
            f"{', '.join(there.get('models', []))}); take another folder"
        )


def _file(folder: Path, chunk: Chunk, kind: str = "parts", ending: str = "parquet") -> Path:
    scenario, N, mean_parents, F, network = chunk
    name = f"{scenario}-N{N}-parents{mean_parents}-F{F}-network{network}.{ending}"
    return folder / kind / name


def _cost(chunk: Chunk) -> float:
    """Roughly what a chunk takes, in any unit."""
    return (
        float(chunk.N**1.7)
        * (3 + chunk.F)
        * (0.4 if chunk.scenario.startswith("homogeneous") else 1.0)
    )


def _models(chunk: Chunk, models: tuple[str, ...]) -> list[str]:
    """One thing is changed at a time: other scenarios are for the published models."""
    usual = chunk.scenario in SCENARIOS
    return [model for model in models if usual or model in PUBLISHED]


class _Made(NamedTuple):
    """What came out of a chunk, as files hold it; a worker may not see the folder."""

    chunk: Chunk
    table: bytes
    seconds: bytes


def _work(chunk: Chunk, preset: Preset, models: tuple[str, ...]) -> _Made:
    import pandas as pd

    found: list[Measures] = []
    seconds = {}
    for model in _models(chunk, models):
        start = time.perf_counter()
        found += run_chunk(chunk, preset, (model,))
        seconds[model] = time.perf_counter() - start
    content = BytesIO()
    pd.DataFrame(found).to_parquet(content, index=False)
    return _Made(chunk, content.getvalue(), json.dumps(seconds).encode())
