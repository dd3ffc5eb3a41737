"""Rows dealt to folds while they are read: statistics without each fold, and rows to predict."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from poolbn.arrays import Flags, Floats, Integers, Positions
from poolbn.assess.resample import by_data_set, random_stream
from poolbn.errors import Option, OptionError, check_count
from poolbn.moments.data import Data
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.reading import accumulate, in_memory, patterns_of, with_roles
from poolbn.moments.standardised import standardise
from poolbn.moments.sums import Sums
from poolbn.moments.table import Table
from poolbn.moments.targets import Targets
from poolbn.tables.data import Batch, Rows

_KEPT = 20_000  # upper bound of the rows that are kept to be predicted


@dataclass(frozen=True, eq=False)
class Folds:
    """All rows as statistics, and some of them as they are."""

    total: Data  # of all rows; these where columns are of all kinds
    train: Sequence[Data]  # for each of the K folds that of all other rows
    values: Floats  # rows to predict, (m, N): all, or of many a random sample
    codes: Integers  # the data set of each, as a position in `total.levels`, (m,)
    fold: Integers  # the fold of each, -1 if it is never held out, (m,)


def deal(
    rows: Rows,
    folds: int,
    seed: int,
    inputs: Iterable[str] = (),
    interventions: Targets | None = None,
) -> Folds:
    """Read rows once, and deal those of each data set to the K folds as evenly as can be.

    Of every K rows of a data set each goes to another fold, in random order. The row of a data set
    that has only one is in all training sets. Columns that are constant in each data set are inputs
    too, so that all poolings predict the same columns.
    """
    dealer = _Dealer(folds, seed, len(rows.names))
    total = accumulate(replace(rows, batches=dealer.watched(rows)))
    total = with_roles(total, inputs, interventions).settled()
    total = total.with_inputs([*total.inputs, *_group_level(total, total.inputs)])
    _check(folds, total)
    alone = total.n == 1
    train = []
    for rest in dealer.without_each(len(total.levels)):
        rest.n[alone], rest.mean[alone], rest.scatter[alone] = 1, total.mean[alone], 0.0
        train.append(
            replace(total, n=rest.n, mean=rest.mean, scatter=rest.scatter, cubes=rest.cubes)
        )
    values, codes, fold = dealer.kept()
    return Folds(total, tuple(train), values, codes, np.where(alone[codes], -1, fold))


def deal_incomplete(
    rows: Rows,
    folds: int,
    seed: int,
    inputs: Iterable[str] = (),
    interventions: Targets | None = None,
) -> Folds:
    """The same where cells are missing: rows are held in memory, with their gaps."""
    codes, values, *_ = in_memory(rows)
    levels = tuple(rows.levels)

    def completed(some: Flags) -> GroupStats:
        made = patterns_of(rows.names, levels, codes[some], values[some], rows.group).completed()
        return with_roles(made, inputs, interventions).settled()

    total = completed(np.ones(len(codes), dtype=bool))
    given = [*total.inputs, *_group_level(total, total.inputs)]
    _check(folds, total)
    fold = _Dealer(folds, seed, len(rows.names)).deal(codes, len(levels))
    fold[(total.n == 1)[codes]] = -1
    train = tuple(completed(fold != k).with_inputs(given) for k in range(folds))
    kept = np.sort(random_stream(seed).permutation(len(codes))[:_KEPT])
    return Folds(total.with_inputs(given), train, values[kept], codes[kept], fold[kept])


def deal_table(table: Table, folds: int, seed: int) -> Folds:
    """The same for rows with columns of all kinds, which are in memory."""
    n, F = table.n, len(table.levels)
    codes = np.repeat(np.arange(F), n)
    _check(folds, table)
    given = [*table.inputs, *_constant(table)]
    total = table.with_inputs(given if len(given) < len(table.names) else table.inputs)
    if table.units is None:
        fold = _Dealer(folds, seed, len(table.names)).deal(codes, F)
    else:  # units stay whole
        of_unit = np.unique(table.units, return_index=True)[1]
        fold = _Dealer(folds, seed, len(table.names)).deal(codes[of_unit], F)[table.units]
    fold[(n == 1)[codes]] = -1
    train = []
    for k in range(folds):
        at = [np.flatnonzero((codes == j) & (fold != k)) for j in range(F)]
        train.append(total.some_rows(at))
    kept = np.sort(random_stream(seed).permutation(len(codes))[:_KEPT])
    return Folds(total, train, table.values.T[kept], codes[kept], fold[kept])


def _constant(table: Table) -> list[str]:
    """Columns that do not vary inside any data set, and are not inputs."""
    begin = table.offsets[:-1]
    least, most = (of.reduceat(table.values, begin, axis=1) for of in (np.fmin, np.fmax))
    same = ((least == most) | np.isnan(least)).all(axis=1)
    return [c for c, yes in zip(table.names, same, strict=True) if yes and c not in table.inputs]


def check_folds(folds: int) -> None:
    """Raise for a number of folds that no comparison has."""
    check_count(2, folds=folds)
    if folds > _KEPT:
        raise OptionError(
            Option("folds", folds),
            f" is more than the {_KEPT:,} rows that are predicted; 10 is usual",
        )


def _check(folds: int, total: Data) -> None:
    if folds > total.n_rows:
        raise OptionError(
            Option("folds", folds),
            f" is more than there are rows, {total.n_rows:,}; 10 is usual, and ",
            Option("folds", total.n_rows),
            " leaves out about one row at a time",
        )


def _group_level(total: GroupStats, inputs: Iterable[str]) -> list[str]:
    at = standardise(total).group_level
    names = [name for name, yes in zip(total.names, at, strict=True) if yes and name not in inputs]
    return names if len(names) < len(total.names) else []


class _Dealer:
    """Deals rows as they come by. What it does is the same whatever batches they come in."""

    def __init__(self, folds: int, seed: int, width: int) -> None:
        self._sums = Sums.zeros(0, width)  # of each fold in each data set, if it has rows there
        self._places: dict[int, int] = {}  # of fold k in data set j, by j K + k
        self._folds = folds
        self._seed = seed
        self._decks: list[Integers] = []
        self._shuffles: list[np.random.Generator] = []
        self._lots = random_stream(seed)
        self._limit = 1.0
        self._held = np.empty((0, width + 3))  # values, data set, fold, lot

    def watched(self, rows: Rows) -> Generator[Batch]:
        """The batches, each dealt before it is handed on."""
        with closing(rows.batches) as batches:
            for batch in batches:
                fold = self.deal(batch.codes, len(rows.levels))
                pairs, of_row = np.unique(batch.codes * self._folds + fold, return_inverse=True)
                places = [self._places.setdefault(p, len(self._places)) for p in pairs.tolist()]
                self._sums = self._sums.grown(len(self._places))
                self._sums.add_rows(np.array(places, dtype=np.int64)[of_row], batch.columns)
                self._keep(batch, fold)
                yield batch

    def without_each(self, levels: int) -> list[Sums]:
        """For each fold the sums of all others: of those before it, and those after it."""
        data_set, fold = np.divmod(np.array(list(self._places), dtype=np.int64), self._folds)
        order = np.argsort(fold, kind="stable")
        parts = np.split(order, np.searchsorted(fold[order], np.arange(1, self._folds)))
        width = self._sums.mean.shape[1]
        made = self._sums

        def running(parts: Sequence[Positions]) -> list[Sums]:
            sums, before = Sums.zeros(levels, width), []
            for at in parts:
                before.append(sums.cut(levels))
                sums.add(data_set[at], made.n[at], made.mean[at], made.scatter[at])
            return before

        before, after = running(parts), running(parts[::-1])[::-1]
        for rest, more in zip(before, after, strict=True):
            at = np.flatnonzero(more.n)
            rest.add(at, more.n[at], more.mean[at], more.scatter[at])
        return before

    def kept(self) -> tuple[Floats, Integers, Integers]:
        """The rows that were kept: values, data sets and folds."""
        self._thin(_KEPT)
        codes, fold = self._held[:, -3:-1].T.astype(np.int64)
        return np.ascontiguousarray(self._held[:, :-3]), codes, fold

    def deal(self, codes: Integers, levels: int) -> Integers:
        """The fold of each row of a batch."""
        for j in range(len(self._decks), levels):
            self._decks.append(np.empty(0, dtype=np.int64))
            self._shuffles.append(random_stream(self._seed, j))
        fold = np.empty_like(codes)
        for j, at in by_data_set(codes, levels):
            deck = self._decks[j]
            short = len(at) - len(deck)
            if short > 0:
                fresh = np.tile(np.arange(self._folds), (-(-short // self._folds), 1))
                deck = np.concatenate([deck, *self._shuffles[j].permuted(fresh, axis=1)])
            fold[at] = deck[: len(at)]
            self._decks[j] = deck[len(at) :]
        return fold

    def _keep(self, batch: Batch, fold: Integers) -> None:
        """The rows with the lowest lots are a random sample of all."""
        lots = self._lots.random(len(fold))
        low = lots < self._limit
        more = [*(column[low] for column in batch.columns), batch.codes[low], fold[low], lots[low]]
        self._held = np.concatenate([self._held, np.column_stack(more)])
        if len(self._held) > 2 * _KEPT:
            self._thin(_KEPT)

    def _thin(self, most: int) -> None:
        lots = self._held[:, -1]
        if len(lots) > most:
            self._limit = float(np.partition(lots, most)[most])
            self._held = self._held[lots < self._limit]
