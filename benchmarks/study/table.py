"""The results of a study as one table: from its parts, to and from one compact file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from poolbn.errors import FileError
from poolbn.writing import write_whole

from .run import in_order, study_preset, study_results, study_seconds
from .study import PRESETS

if TYPE_CHECKING:
    import pandas as pd

_FORMAT = b"poolbn-study-results"
_VERSION = 1

# A data set of the study, and the true network that it came from.
DATA_SET = ["scenario", "N", "mean_parents", "F", "network", "rows", "replicate"]
NETWORK = ["N", "mean_parents", "F", "network"]

_SAMPLED = ("rmad_exact", "rmad_weighting")  # measured in some cells only

BINS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, float("inf"))  # of n/p, as in the figures
BIN_NAMES = ("< 0.05", "0.05 - 0.1", "0.1 - 0.2", "0.2 - 0.5", "0.5 - 1", "> 1")


@dataclass(frozen=True, eq=False)
class StudyResults:
    """What a study found, in the precision of the compact file.

    Attributes:
        table: a row for each learned network, columns as in `benchmarks.study.study.Measures`.
        seconds: that each model took in all, on one core, without side runs' scenarios.
        presets: the grids that were run.
    """

    table: pd.DataFrame
    seconds: dict[str, float]
    presets: tuple[str, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, in the order in which they were run."""
        return tuple(map(str, self.table["model"].drop_duplicates()))

    @property
    def data_sets(self) -> int:
        """Data sets that networks were learned from."""
        return len(self.table.drop_duplicates(DATA_SET))

    @property
    def planned(self) -> int:
        """Data sets of the whole presets."""
        grids = [PRESETS[name] for name in self.presets]
        return sum(len(list(g.chunks())) * len(g.rows) * g.replicates for g in grids)


def read_study(sources: str | PathLike[str] | Iterable[str | PathLike[str]]) -> StudyResults:
    """Read folders of a study, of its parts or presets, and files that reports leave, as one.

    Raises:
        FileError: there are no results, some are there twice, or a file is foreign.
    """
    many = [sources] if isinstance(sources, str | PathLike) else list(sources)
    files = [Path(source) for source in many if Path(source).is_file()]
    folders = [source for source in many if not Path(source).is_file()]
    for folder in folders:
        if not Path(folder).is_dir():
            raise FileError(
                f"{str(folder)!r} is not a folder of results; give folders that `study run` "
                "wrote, or files named results.parquet that reports left"
            )
    parts = [_load(file) for file in files]
    if folders or not parts:
        table = _compact(study_results(folders))
        presets = tuple(dict.fromkeys(map(study_preset, folders)))
        parts.append(StudyResults(table, study_seconds(folders), presets))
    return parts[0] if len(parts) == 1 else _together(parts)


def _together(parts: list[StudyResults]) -> StudyResults:
    """Results as one, in the order of the grid, models in that of the parts."""
    import pandas as pd

    seconds: dict[str, float] = {}
    for part in parts:
        for model, time in part.seconds.items():
            seconds[model] = seconds.get(model, 0.0) + time
    table = in_order(pd.concat([part.table for part in parts], ignore_index=True))
    presets = dict.fromkeys(name for part in parts for name in part.presets)
    return StudyResults(table, seconds, tuple(presets))


def save_study(results: StudyResults, path: str | PathLike[str]) -> None:
    """Write results into one compact Parquet file, whole, from which `read_study` gets them back.

    Raises:
        FileError: it cannot be written there.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = {"version": _VERSION, "presets": results.presets, "seconds": results.seconds}
    table = pa.Table.from_pandas(results.table, preserve_index=False)
    table = table.replace_schema_metadata({_FORMAT: json.dumps(about).encode()})
    content = BytesIO()
    pq.write_table(table, content, compression="zstd", compression_level=19)
    write_whole(path, content.getvalue())


def _load(file: Path) -> StudyResults:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise FileError(f"{str(file)!r} is not a Parquet file ({error})") from error
    metadata: dict[bytes, Any] = table.schema.metadata or {}
    if _FORMAT not in metadata:
        raise FileError(
            f"{str(file)!r} is not a file of results; take the results.parquet of a report, or the "
            "folder of a study"
        )
    about = json.loads(metadata[_FORMAT])
    if about["version"] != _VERSION:
        raise FileError(
            f"{str(file)!r} is of version {about['version']}, this poolbn reads {_VERSION}"
        )
    return StudyResults(_compact(table.to_pandas()), about["seconds"], tuple(about["presets"]))


def _compact(table: pd.DataFrame) -> pd.DataFrame:
    """Single precision, so that a report is the same from the parts and from the file."""
    kinds = {"f": "float32", "i": "int32"}
    numbers = {name: kind.kind for name, kind in table.dtypes.items() if kind.kind in kinds}
    with np.errstate(over="ignore"):  # a divergence past 1e38 may as well be infinite
        return table.astype({name: kinds[kind] for name, kind in numbers.items()})


def by_data_set(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each data set of a study, with a column for each measure of each model.

    Columns are those of `DATA_SET`, `n_over_p`, its bin `n/p`, and columns like `shd LME`. What
    could not be computed is inf, the worst: a divergence or a prediction from a network with a
    residual variance of 0, or F1, of which larger is better, 0.
    """
    import pandas as pd

    design = (*DATA_SET, "model", "n_over_p", *_SAMPLED)
    measures = [name for name in table.columns if name not in design]
    wide = table.set_index([*DATA_SET, "n_over_p", "model"])[measures].astype("float64")
    lost = {name: 0.0 if name.startswith("f1") else float("inf") for name in measures}
    whole: pd.DataFrame = wide.fillna(lost).unstack("model")  # type: ignore[assignment]
    whole.columns = [" ".join(pair) for pair in whole.columns]
    flat = whole.reset_index()
    flat["n/p"] = pd.cut(flat["n_over_p"], BINS, labels=BIN_NAMES, right=False)
    return flat
