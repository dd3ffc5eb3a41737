"""`GroupStats`: all that the models need to know of the rows, for each data set."""

from __future__ import annotations

import html
from collections.abc import Hashable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Literal

import numpy as np

from poolbn.errors import DataError, nearest
from poolbn.rows import data
from poolbn.rows.data import DATA_SET
from poolbn.statistics.moments import Sums
from poolbn.statistics.statsfile import read_file, write_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Data sets, and columns, that a printed summary lists.
_SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class GroupStats:
    """Row count, mean vector and centred scatter matrix of each data set.

    Statistics add up: `a + b` are the statistics of the rows of both. Arrays are read-only.

    Attributes:
        names: the N columns.
        levels: the F data sets, in order of first appearance.
        n: rows of each data set, (F,).
        mean: mean of each column in each data set, (F, N).
        scatter: centred sums of squares and products in each data set, (F, N, N).
        dropped: rows of each data set left out because a cell is missing, (F,).
        group: the column that says which data set a row came from.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> north = pb.stats(trial[trial["clinic"].isin(["NY", "MN"])], group="clinic")
        >>> south = pb.stats(trial[trial["clinic"].isin(["KY", "MS"])], group="clinic")
        >>> north + south
        GroupStats: 750 rows, 4 data sets, 2 columns
        columns: age, bmi
          NY  116 rows
          MN  237 rows
          KY  205 rows
          MS  192 rows
    """

    names: tuple[str, ...]
    levels: tuple[Hashable, ...]
    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]
    dropped: NDArray[np.int64]
    group: str = DATA_SET

    def __post_init__(self) -> None:
        for array in (self.n, self.mean, self.scatter, self.dropped):
            array.flags.writeable = False

    @property
    def n_rows(self) -> int:
        """Rows in all data sets together."""
        return int(self.n.sum())

    def __add__(self, other: GroupStats) -> GroupStats:
        """Statistics of the rows of both: data sets of the same name become one.

        Raises:
            DataError: the columns differ.
        """
        if not isinstance(other, GroupStats):
            return NotImplemented
        lacking = [c for c in other.names if c not in self.names]
        extra = [c for c in self.names if c not in other.names]
        if lacking or extra:
            sides = (("the left lacks", lacking), ("the right lacks", extra))
            told = "; ".join(f"{side} {', '.join(map(repr, cs))}" for side, cs in sides if cs)
            raise DataError(
                f"cannot add statistics of different columns: {told}; select() common columns first"
            )
        right = other.select(self.names)
        levels = (*self.levels, *(v for v in right.levels if v not in self.levels))
        total = Sums.zeros(len(levels), len(self.names))
        for part in (self, right):
            at = np.array([levels.index(v) for v in part.levels])
            total.add(at, part.n, part.mean, part.scatter)
            total.dropped[at] += part.dropped
        return _stats(self.names, levels, total, self.group)

    def __radd__(self, other: object) -> GroupStats:
        """Let `sum(parts)` work, which begins with 0."""
        return self if other == 0 else NotImplemented

    def select(self, columns: Iterable[str]) -> GroupStats:
        """The same statistics of some columns, in the order given.

        Raises:
            DataError: a column is unknown, named twice, or there is none.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> pb.stats(trial, group="clinic").select(["bmi"]).scatter.shape
            (4, 1, 1)
        """
        if isinstance(columns, str):
            raise DataError(f"columns={columns!r} is one name; give a list, [{columns!r}]")
        chosen = tuple(columns)
        at = self._at(chosen)
        if not chosen:
            raise DataError("no columns are chosen")
        return GroupStats(
            chosen,
            self.levels,
            self.n,
            self.mean[:, at],
            self.scatter[:, at[:, None], at],
            self.dropped,
            self.group,
        )

    def family(self, child: str, parents: Sequence[str]) -> Family:
        """The statistics of one regression.

        Raises:
            DataError: a name is unknown or occurs twice.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> pb.stats(trial, group="clinic").family("bmi", ["age"]).scatter.shape
            (4, 2, 2)
        """
        if child in parents:
            raise DataError(f"{child!r} is its own parent; take it out of the parents")
        at = self._at((*parents, child))
        return Family(
            child, tuple(parents), self.n, self.mean[:, at], self.scatter[:, at[:, None], at]
        )

    def _at(self, columns: tuple[str, ...]) -> NDArray[np.intp]:
        place = {name: i for i, name in enumerate(self.names)}
        for column in columns:
            if column not in place:
                raise DataError(f"no column {column!r}{nearest(column, self.names)}")
            if columns.count(column) > 1:
                raise DataError(f"column {column!r} is named {columns.count(column)} times")
        return np.array([place[c] for c in columns], dtype=np.intp)

    def save(self, path: str | PathLike[str]) -> None:
        """Write to one file, whole or not at all.

        Raises:
            FileError: a data set's name is not a text, a number or a bool.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     pb.stats(trial, group="clinic").save(f"{folder}/trial.stats")
            ...     pb.GroupStats.load(f"{folder}/trial.stats").levels
            ('NY', 'MN', 'KY', 'MS')
        """
        arrays = (self.n, self.mean, self.scatter, self.dropped)
        write_file(path, self.names, self.levels, self.group, arrays)

    @staticmethod
    def load(path: str | PathLike[str]) -> GroupStats:
        """Read what `save` wrote.

        Raises:
            FileError: the file is not there, not of this kind, damaged, or too new.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     pb.stats(trial, group="clinic").save(f"{folder}/trial.stats")
            ...     stats = pb.GroupStats.load(f"{folder}/trial.stats")
            >>> stats.names
            ('age', 'bmi')
        """
        return GroupStats(*read_file(path))

    def __repr__(self) -> str:
        lines = [f"GroupStats: {self._summary()}", f"columns: {_listed(self.names)}"]
        cells = [(str(level), f"{n:,}", d) for level, n, d in self._shown()]
        wide = max(len(level) for level, _, _ in cells)
        long = max(len(n) for _, n, _ in cells)
        for level, n, d in cells:
            lines.append(f"  {level:<{wide}}  {n:>{long}} rows{f', {d:,} dropped' if d else ''}")
        if len(self.levels) > _SHOWN:
            lines.append(f"  ... and {len(self.levels) - _SHOWN:,} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(str(level))}</td><td>{n:,}</td><td>{d:,}</td></tr>"
            for level, n, d in self._shown()
        )
        if len(self.levels) > _SHOWN:
            rows += f'<tr><td colspan="3">and {len(self.levels) - _SHOWN:,} more</td></tr>'
        return (
            f"<p><b>GroupStats</b>: {self._summary()}<br>columns: "
            f"{html.escape(_listed(self.names))}</p><table><thead><tr><th>data set</th>"
            f"<th>rows</th><th>dropped</th></tr></thead><tbody>{rows}</tbody></table>"
        )

    def _summary(self) -> str:
        parts = [(self.n_rows, "row"), (len(self.levels), "data set"), (len(self.names), "column")]
        return ", ".join(f"{count:,} {what}{'' if count == 1 else 's'}" for count, what in parts)

    def _shown(self) -> list[tuple[Hashable, int, int]]:
        return list(zip(self.levels, self.n.tolist(), self.dropped.tolist(), strict=True))[:_SHOWN]


@dataclass(frozen=True, eq=False)
class Family:
    """The statistics of one regression: p parents, and the child LAST.

    Attributes:
        child: the response.
        parents: the p regressors.
        n: rows of each data set, (F,).
        mean: mean of parents and child, (F, p+1).
        scatter: their centred sums of squares and products, (F, p+1, p+1).
    """

    child: str
    parents: tuple[str, ...]
    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]


def stats(
    source: object,
    *,
    group: str | None = None,
    columns: Iterable[str] | None = None,
    missing: Literal["error", "drop"] = "error",
) -> GroupStats:
    """Read rows once and keep the statistics of each data set.

    Args:
        source: a data frame (pandas, polars, Arrow, and others), a dict {data set: frame}, or CSV
            (also .csv.gz) and Parquet files: a path, a pattern such as "sites/*.csv", a list of
            paths. Files are streamed: memory does not grow with their rows. Statistics are returned
            as they are.
        group: the column that says which data set a row came from. With None each frame of a dict,
            or each file, is a data set; a file is named by its name without the ending.
        columns: the columns to keep; None for all but `group`, which then must be numeric.
        missing: "error" refuses missing cells; "drop" leaves out the rows that have one in the
            chosen columns or in `group`, and `dropped` counts them for each data set.

    Raises:
        DataError: the source, a column or a cell cannot be used; the message says which.

    Examples:
        >>> from poolbn import datasets
        >>> columns = ["age", "gestation_days", "birthweight_g"]
        >>> stats(datasets.opt(), group="clinic", columns=columns, missing="drop")
        GroupStats: 809 rows, 4 data sets, 3 columns
        columns: age, gestation_days, birthweight_g
          NY  164 rows, 9 dropped
          MN  247 rows
          KY  207 rows, 4 dropped
          MS  191 rows, 1 dropped
    """
    if isinstance(source, GroupStats):
        return source if columns is None else source.select(columns)
    return accumulate(data.read(source, group=group, columns=columns, missing=missing))


def accumulate(rows: data.Rows) -> GroupStats:
    """The statistics of rows that come in batches."""
    sums = Sums.zeros(0, len(rows.names))
    with closing(rows.batches) as batches:
        for batch in batches:
            sums = sums.grown(len(rows.levels))
            sums.dropped += np.bincount(batch.dropped, minlength=len(sums.n))
            sums.add_rows(batch.codes, batch.columns)
    sums = sums.cut(len(rows.levels))
    too_large = ~np.isfinite(sums.scatter).all(axis=(0, 1))
    if too_large.any():
        name = rows.names[int(too_large.argmax())]
        raise DataError(
            f"squares of column {name!r} are too large for floating point; give it a smaller unit"
        )
    return _stats(rows.names, tuple(rows.levels), sums, rows.group)


def _stats(
    names: tuple[str, ...], levels: tuple[Hashable, ...], sums: Sums, group: str
) -> GroupStats:
    return GroupStats(names, levels, sums.n, sums.mean, sums.scatter, sums.dropped, group)


def _listed(names: Sequence[str]) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
