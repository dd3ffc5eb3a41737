"""The results of a study as one table: from its parts, to and from one compact file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poolbn.errors import FileError
from poolbn.study import PRESETS, Measures
from poolbn.studyrun import study_preset, study_results, study_seconds
from poolbn.writing import write_whole

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
        table: a row for each learned network, columns as in `poolbn.study.Measures`.
        seconds: that each model took in all, on one core.
        preset: the grid that was run.
    """

    table: pd.DataFrame
    seconds: dict[str, float]
    preset: str

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
        """Data sets of the whole preset."""
        grid = PRESETS[self.preset]
        return len(list(grid.chunks())) * len(grid.rows) * grid.replicates


def read_study(sources: str | PathLike[str] | Iterable[str | PathLike[str]]) -> StudyResults:
    """Read the folder of a study, the folders of its parts, or the file that a report leaves.

    Raises:
        FileError: there are no results, they are of several presets, or a file is foreign.
    """
    many = [sources] if isinstance(sources, str | PathLike) else list(sources)
    if len(many) == 1 and Path(many[0]).is_file():
        return _load(Path(many[0]))
    for source in many:
        if not Path(source).is_dir():
            raise FileError(
                f"{str(source)!r} is not a folder of results; give folders that `poolbn study run` "
                "wrote, or one results.parquet"
            )
    table = _compact(study_results(many))
    presets = {study_preset(folder) for folder in many}
    if len(presets) > 1:
        raise FileError(
            f"the folders hold different studies, {' and '.join(sorted(presets))}; "
            "report on one of them at a time"
        )
    return StudyResults(table, study_seconds(many), presets.pop())


def save_study(results: StudyResults, path: str | PathLike[str]) -> None:
    """Write results into one compact Parquet file, whole, from which `read_study` gets them back.

    Raises:
        FileError: it cannot be written there.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = {"version": _VERSION, "preset": results.preset, "seconds": results.seconds}
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
    return StudyResults(_compact(table.to_pandas()), about["seconds"], about["preset"])


def _compact(table: pd.DataFrame) -> pd.DataFrame:
    """Single precision, so that a report is the same from the parts and from the file."""
    kinds = {"float": "float32", "int": "int32"}
    types = Measures.__annotations__
    return table.astype({name: kinds[kind] for name, kind in types.items() if kind in kinds})


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
    whole = wide.fillna(lost).unstack("model")
    whole.columns = [f"{measure} {model}" for measure, model in whole.columns]
    flat = whole.reset_index()
    flat["n/p"] = pd.cut(flat["n_over_p"], BINS, labels=BIN_NAMES, right=False)
    return flat
