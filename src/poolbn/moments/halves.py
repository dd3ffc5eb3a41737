"""Rows in two halves: one for a graph to be learned from, the other for its estimates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from poolbn.arrays import Positions
from poolbn.errors import DataError, Option, OptionError, check_count, check_option, left_out
from poolbn.moments.data import Data, is_continuous, is_data
from poolbn.moments.reading import with_roles
from poolbn.moments.table import Table, as_table, gathered, table
from poolbn.moments.targets import Targets
from poolbn.tables.grouping import Group
from poolbn.tables.kinds import Kinds
from poolbn.tables.missing import Missing


@dataclass(frozen=True)
class Split:
    """How `pb.learn(..., honest=...)` splits rows: by chance, in each data set.

    The graph is learned from half of the rows of each data set, and its effects are estimated from
    the others, which had no say in which arcs are there. Units stay whole. Of an odd number of rows
    or units, the larger part is estimated from, so that all data sets have estimates.

    Attributes:
        seed: random seed of the split.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> net = pb.learn(trial, group="clinic", honest=pb.Split(seed=2))
        >>> net.split, net.n_rows
        (Halves(rows=403, seed=2), 406)
    """

    seed: int = 0


class Halves(NamedTuple):
    """What a network tells of the rows that its graph is from."""

    rows: int  # how many
    seed: int  # of the split


def as_split(honest: object) -> Split | None:
    """What the option `honest` says; None where rows are not split."""
    if honest is not None and not isinstance(honest, Split):
        check_option("honest", honest, ["split"])
        honest = Split()
    if honest is not None:
        check_count(seed=honest.seed)
    return honest


def rows_to_split(
    source: object,
    *,
    group: Group,
    columns: Iterable[str] | None,
    kinds: Kinds | None,
    missing: Missing,
    inputs: Iterable[str],
    interventions: Targets | None = None,
) -> Data:
    """Rows in memory; options are as for `gathered`."""
    reading: dict[str, Any] = {
        "group": group, "columns": columns, "kinds": kinds, "missing": missing, "inputs": inputs,
        "interventions": interventions,
    }  # fmt: skip
    if not is_data(source):
        return table(source, **reading)
    if not source.has_rows:
        raise OptionError(
            Option("honest", "split"),
            " splits rows, and sufficient statistics hold none; give the rows, or statistics of "
            "one part to pb.learn and of the others, with the graph, to pb.fit",
        )
    return gathered(source, **reading)


def halves(data: Data, seed: int) -> tuple[Data, Data, Table]:
    """What to search, what to estimate from, and the rows of that.

    Raises:
        DataError: a column has one level in one of the halves.
    """
    whole, rng = as_table(data), np.random.default_rng(seed)
    searched: list[Positions] = []
    kept: list[Positions] = []
    for first, end in pairwise(whole.offsets.tolist()):
        rows = np.arange(first, end)
        of = rows if whole.units is None else whole.units[rows]
        dealt = rng.permutation(np.unique(of))
        mine = np.isin(of, dealt[: len(dealt) // 2])
        searched.append(rows[mine])
        kept.append(rows[~mine])
    there = [j for j, part in enumerate(searched) if len(part)]
    if not there:
        raise DataError("no data set has two rows or units to split; learn without honest=")
    levels = [whole.levels[j] for j in there]
    parts = whole.some_rows([searched[j] for j in there], levels), whole.some_rows(kept)
    for part, what in zip(parts, ("learned", "estimated"), strict=True):
        for name, own in zip(part.names, part.categories, strict=True):
            if len(own) == 1:
                raise DataError(
                    f"column {name!r} has one level, {own[0]!r}, in the half of the rows that the "
                    f"network is {what} from; ",
                    left_out(name),
                    ", or learn without honest=",
                )
    return _data(parts[0]), _data(parts[1]), parts[1]


def _data(rows: Table) -> Data:
    """Sufficient statistics where they are enough, as everywhere."""
    if not is_continuous(rows) or (rows.has_gaps and rows.unit is not None):
        return rows
    made = rows.stats() if rows.patterns is None else rows.patterns.completed()
    return with_roles(made, rows.inputs, rows.interventions)
