"""`bootstrap`: how sure the arcs of a network are, from resampled rows or data sets.

Rows are streamed, never copied whole. Drawing n_j rows with replacement from the n_j of a data set
gives each row a multinomial count. In a stream the counts come block by block: of the draws that
are left, those in the next block are binomial with the block's share of the rows that are left, and
inside the block all rows are alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice, pairwise
from typing import Any, Literal, NamedTuple, Unpack, get_args

import numpy as np

from poolbn.arguments import FLAG, check_arguments, is_finite
from poolbn.arrays import Flags, Floats, Integers, Positions
from poolbn.errors import (
    DataError,
    GraphError,
    Option,
    OptionError,
    PoolbnError,
    check_count,
    check_option,
)
from poolbn.graph.dag import Cpdag, Dag
from poolbn.graph.equivalence import completed, set_apart
from poolbn.later import optimize
from poolbn.later import pandas as pd
from poolbn.learning import LearnOptions, Plan, as_plan, check_keywords
from poolbn.moments.checks import warn
from poolbn.moments.data import Data, is_data
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.reading import in_memory, patterns_of
from poolbn.moments.sums import Sums
from poolbn.moments.table import Table, as_table, gathered, table
from poolbn.moments.targets import Targets
from poolbn.network.presenting import present
from poolbn.run.parallel import available_cores, map_measured, map_threads
from poolbn.run.progress import Progress
from poolbn.tables import data
from poolbn.tables.data import Rows
from poolbn.tables.grouping import Group
from poolbn.tables.kinds import Kinds
from poolbn.tables.missing import Missing
from poolbn.wording import counted, visible


def directions(arcs: Flags, fixed: Flags) -> Floats:
    """Arcs of the equivalence class of a graph, (N, N): 1 from parent to child, 1/2 each way else.

    `fixed` are arcs that constraints and interventions allow no other way.
    """
    directed, undirected = completed(arcs, fixed)
    return directed + undirected / 2


def strengths(counts: Floats, replicates: int) -> tuple[Floats, Floats]:
    """The share of replicates with an arc either way, and of those the share this way; (N, N) each.

    As bnlearn's boot.strength: a direction is 0 both ways where there never is an arc.
    """
    either = counts + counts.T
    direction = np.divide(counts, either, out=np.zeros_like(counts), where=either > 0)
    return either / replicates, direction


def inclusion_threshold(strength: Floats) -> float:
    """The strength that separates noise from arcs (Scutari and Nagarajan 2013), of both directions.

    If arcs were either always or never found, the distribution function of their strengths would be
    flat between 0 and 1. This one is replaced by the flat one nearest to it in L1, and the
    threshold is its quantile of that height.

    The best height is as a rule a value of the distribution function, at which the quantile jumps
    from one strength to the next. On which side of it an optimiser ends is chance, but decides:
    this is bnlearn's optimiser with its tolerance, so that thresholds are the same.
    """
    values = np.sort(strength)
    n = len(values)
    if n == 0:
        return 0.0
    knots = np.unique(np.concatenate([[0.0, 1.0], values]))
    heights = np.searchsorted(values, knots[:-1], side="right") / n
    widths = np.diff(knots)

    def distance(p: float) -> float:
        return float(widths @ np.abs(heights - p))

    best = float(optimize.fminbound(distance, 0.0, 1.0, xtol=np.finfo(float).eps ** 0.25))
    for end in (1.0, 0.0):
        if distance(end) < distance(best):
            best = end
    rank = int(np.ceil(n * best - 4 * np.finfo(float).eps))
    return float(values[max(rank - 1, 0)])


def averaged_edges(
    strength: Floats, direction: Floats, threshold: float, *, weakest_first: bool
) -> tuple[Flags, Flags]:
    """Arcs, and (symmetric) edges that go as often either way, of the averaged network; (N, N).

    Those above the threshold, and those that are always found, go in one by one, in their more
    frequent direction, unless that makes a cycle.

    Strongest first, a cycle loses its weakest arc. Edges that go either way wait for the end, and
    none is lost.

    bnlearn goes weakest first, so that a cycle loses its strongest arc. There an edge is two arcs,
    each of which must not make a cycle with what is there, itself aside; but all are kept if there
    are no others.
    """
    kept = (strength > threshold) | (strength == 1)
    either = kept & (direction == 0.5)
    arcs = np.zeros_like(kept)
    if weakest_first:
        candidates = np.argwhere(kept & (direction >= 0.5))
        order = np.argsort(strength[tuple(candidates.T)], kind="stable")
        if not (kept & (direction > 0.5)).any():
            return arcs, either
    else:
        candidates = np.argwhere(kept & (direction > 0.5))
        at = tuple(candidates.T)
        order = np.lexsort((-direction[at], -strength[at]))
    for p, c in candidates[order]:
        arcs[p, c] = not _leads(arcs, c, p)
    both = arcs & arcs.T
    return arcs & ~both, both if weakest_first else either


def _leads(arcs: Flags, start: int, end: int) -> bool:
    """Whether a path leads from one node to another, other than an arc between the two."""
    new = arcs[start].copy()
    new[end] = False
    seen = new.copy()
    seen[start] = True
    while new.any():
        new = arcs[new].any(axis=0) & ~seen
        if new[end]:
            return True
        seen |= new
    return False


def directed_network(nodes: Sequence[str], directed: Flags, undirected: Flags) -> Dag:
    """The graph with these arcs and edges: without further v-structures if there is such a graph.

    Otherwise the edges go along an order in which all arcs go from earlier to later nodes.
    """
    arcs = [(nodes[p], nodes[c]) for p, c in np.argwhere(directed)]
    edges = [(nodes[a], nodes[b]) for a, b in np.argwhere(np.triu(undirected))]
    try:
        return Cpdag(nodes, arcs, edges).extension()
    except GraphError:
        order = Dag(nodes, arcs).topological_order().index
        along = [(a, b) if order(a) < order(b) else (b, a) for a, b in edges]
        return Dag(nodes, arcs + along)


# Replicates that are drawn together, and cells of a block: they fix which random numbers are used
# for what, so that neither the source's batches nor the number of replicates or threads matter.
_STACK = 16
_CELLS = 2**15
_NUMBERS = 2**24  # in the statistics that are made in one pass over the rows
# What random numbers are for, so that no two uses get the same ones.
_ROWS, _DATA_SETS, _COLUMNS = range(3)

Unit = Literal["row", "data set"]
Drawn = Literal["row", "unit", "data set"]  # what was: units where the data have such
_SHOWN = 12  # arcs that a printed bootstrap lists


def random_stream(seed: int, *key: int) -> np.random.Generator:
    """Random numbers of their own for each key."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def by_data_set(codes: Integers, F: int) -> Iterator[tuple[int, Positions]]:
    """Each data set of a batch, and its rows in their order."""
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=F))
    parts = enumerate(np.split(order, ends[:-1]))
    return ((j, at) for j, at in parts if len(at))


def row_replicates(
    read: Callable[[], Rows], known: GroupStats, replicates: int, seed: int
) -> Iterator[list[GroupStats]]:
    """Statistics of as many rows as there are in each data set, drawn from them with replacement.

    `read` opens the rows for each pass over them, an error where they are not the same, and `known`
    are their statistics. Yields the replicates of one pass, which take a moderate amount of memory.
    """
    F, N = known.mean.shape
    at_once = max(1, _NUMBERS // (_STACK * F * N * N))
    numbers = range(-(-replicates // _STACK))
    for first in range(0, len(numbers), at_once):
        stacks = [_Stack(k, seed, known) for k in numbers[first : first + at_once]]
        for block in _blocks(read(), known, max(1, _CELLS // N)):
            map_threads(partial(_Stack.add, block=block), stacks, available_cores())
        made = (stats for stack in stacks for stats in stack.statistics())
        yield list(islice(made, replicates - first * _STACK))


def incomplete_replicates(
    read: Callable[[], Rows], known: GroupStats, replicates: int, seed: int
) -> Iterator[list[GroupStats]]:
    """The same where cells are missing: rows are drawn with their gaps, and then completed.

    They are read once, and held.
    """
    rows = read()
    codes, values, *_ = in_memory(rows)
    if tuple(rows.levels) != known.levels:
        raise _changed()
    parts = [np.flatnonzero(codes == j) for j in range(len(known.levels))]
    for r in range(replicates):
        at = np.concatenate(_redrawn(parts, seed, r))
        made = patterns_of(rows.names, known.levels, codes[at], values[at], known.group).completed()
        roles: Any = {"inputs": known.inputs, "interventions": known.interventions}
        yield [replace(made, facts=known.facts, **roles)]


def _redrawn(parts: Sequence[Positions], seed: int, number: int) -> list[Positions]:
    """As many rows of each data set as there are, drawn with replacement."""
    rng = random_stream(seed, _ROWS, number)
    return [part[rng.integers(len(part), size=len(part))] for part in parts]


def _units_redrawn(table: Table, units: Integers, seed: int, number: int) -> Table:
    """As many units of each data set as there are; one that comes twice is two."""
    order = np.argsort(units, kind="stable")
    begin = np.searchsorted(units[order], np.arange(int(units.max()) + 2))
    first = np.array([units[a:b].min() for a, b in pairwise(table.offsets)])
    own = [np.arange(a, b) for a, b in pairwise([*first.tolist(), int(units.max()) + 1])]
    drawn = _redrawn(own, seed, number)
    rows = [[order[begin[u] : begin[u + 1]] for u in some] for some in drawn]
    names = np.repeat(np.arange(sum(map(len, drawn))), [len(of) for some in rows for of in some])
    made = table.some_rows([np.concatenate(some) for some in rows])
    return replace(made, units=names)


def table_replicates(
    table: Table, replicates: int, seed: int, *, data_sets: bool
) -> Iterator[list[Table]]:
    """As many rows of each data set as there are, or as many data sets, drawn with replacement."""
    F, ends = len(table.levels), table.offsets
    own = [np.arange(first, end) for first, end in pairwise(ends.tolist())]
    at_once = max(1, min(_STACK, _NUMBERS // table.values.size))
    for first in range(0, replicates, at_once):
        made = []
        for r in range(first, min(first + at_once, replicates)):
            if data_sets:
                at = random_stream(seed, _DATA_SETS, r).integers(F, size=F)
                made.append(table.data_sets(at, range(F)).settled())
            elif table.units is None:
                made.append(table.some_rows(_redrawn(own, seed, r)))
            else:
                made.append(_units_redrawn(table, table.units, seed, r))
        yield made


def data_set_replicates(known: Data, replicates: int, seed: int) -> Iterator[list[Data]]:
    """Statistics of as many data sets as there are, drawn from them with replacement.

    Copies of a data set are data sets of their own, so all of them are simply numbered.
    """
    F = len(known.levels)
    drawn = (random_stream(seed, _DATA_SETS, r).integers(F, size=F) for r in range(replicates))
    yield [known.data_sets(at, range(F)).settled() for at in drawn]


def shuffled_columns(replicate: Data, number: int, seed: int) -> Data:
    """The same with the columns in an order of chance, wherever they were before.

    Of moves that score the same a search makes the first. The order of the columns must not decide,
    in all replicates alike, which that is.
    """
    names = sorted(replicate.names)
    order = random_stream(seed, _COLUMNS, number).permutation(len(names))
    return replicate.select([names[i] for i in order])


@dataclass(frozen=True, eq=False)
class _Block:
    """Consecutive rows of one data set."""

    data_set: int  # its position
    number: int  # which of its blocks
    share: float  # of its rows that are left, from here to its end
    columns: Floats  # the cells, (N, m)


def _blocks(rows: Rows, known: GroupStats, size: int) -> Iterator[_Block]:
    """The rows in blocks of `size` rows of one data set, whatever batches they come in."""
    F, N = known.mean.shape
    left = known.n.copy()
    number: Counter[int] = Counter()
    held = [np.empty((N, 0))] * F

    def block(j: int, columns: Floats) -> _Block:
        made = _Block(j, number[j], columns.shape[1] / left[j], columns)
        number[j] += 1
        left[j] -= columns.shape[1]
        return made

    for codes, matrix in _again(rows, known):
        for j, at in by_data_set(codes, F):
            mine = np.concatenate([held[j], matrix[:, at]], axis=1)
            if mine.shape[1] > left[j]:
                raise _changed()
            whole = mine.shape[1] // size * size
            for start in range(0, whole, size):
                yield block(j, mine[:, start : start + size])
            held[j] = mine[:, whole:].copy()
    for j, rest in enumerate(held):
        if rest.shape[1] != left[j]:
            raise _changed()
        if rest.shape[1]:
            yield block(j, rest)


def _again(rows: Rows, known: GroupStats) -> Iterator[tuple[Integers, Floats]]:
    """Data sets (B,) and cells (N, B) of batches that were fit to be read once before."""
    with closing(rows.batches) as batches:
        try:
            for batch in batches:
                if tuple(rows.levels) != known.levels[: len(rows.levels)]:
                    raise _changed()
                yield batch.codes, np.stack(batch.columns)
        except DataError as error:
            raise _changed() from error


def _changed() -> DataError:
    return DataError(
        "the rows are read more than once and are not the same the second time; if the source can "
        "be read only once, read it into a table first"
    )


class _Stack:
    """Some replicates of the statistics, in the making: number r of data set j is at r F + j."""

    def __init__(self, number: int, seed: int, known: GroupStats) -> None:
        F, N = known.mean.shape
        self._seed, self._number = seed, number
        self._known = known
        self._left = np.repeat(known.n[:, None], _STACK, axis=1)  # draws, (F, _STACK)
        self._sums = Sums.zeros(_STACK * F, N)

    def add(self, block: _Block) -> None:
        """Draw from a block, for each replicate its part."""
        j, F = block.data_set, len(self._left)
        rng = random_stream(self._seed, _ROWS, self._number, j, block.number)
        draws = rng.binomial(self._left[j], block.share)
        self._left[j] -= draws
        at = rng.integers(block.columns.shape[1], size=draws.sum())
        codes = np.repeat(np.arange(_STACK) * F + j, draws)
        self._sums.add_rows(codes, [column[at] for column in block.columns])

    def statistics(self) -> Iterator[GroupStats]:
        """The replicates, once all blocks are in."""
        known, sums, F = self._known, self._sums, len(self._left)
        for at in range(0, _STACK * F, F):
            part = slice(at, at + F)
            yield replace(
                known,
                n=sums.n[part],
                mean=sums.mean[part],
                scatter=sums.scatter[part],
                cubes=sums.cubes[part],
            )


class ArcStrength(NamedTuple):
    """How often there is an arc between two nodes."""

    parent: str
    child: str
    strength: float  # the share of the networks with an arc between them, either way
    direction: float  # the share of these in which it goes from the first to the second

    @property
    def directed(self) -> bool:
        """Whether one direction is more frequent than the other."""
        return self.direction != 0.5


def told(pairs: Sequence[ArcStrength], what: str, where: str) -> list[str]:
    """Lines on the first of some pairs of nodes: what there is, and where the others are."""
    lines = []
    for pair in pairs[:_SHOWN]:
        share = f", direction {pair.direction:.2f}" if pair.directed else ""
        sign = "->" if pair.directed else "--"
        arc = visible(f"{pair.parent} {sign} {pair.child}")
        lines.append(f"  {arc}  {what} {pair.strength:.2f}{share}")
    if len(pairs) > _SHOWN:
        lines.append(f"  ... {len(pairs) - _SHOWN} more in {where}")
    return lines


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """How often arcs were found in networks learned from resampled data.

    As bnlearn's boot.strength counts them: in the equivalence class of each network, an arc that
    all its graphs share counts for its direction, and an edge that goes either way half for each.
    What the constraints allow only one way goes that way.

    Attributes:
        nodes: the N nodes.
        counts: how often there was an arc from the first node to the second, (N, N).
        replicates: networks that were learned.
        unit: what was resampled, "row" or "data set".

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> boot = pb.bootstrap(trial, group="clinic", replicates=10)
        >>> boot.strength, boot.averaged().skeleton()
        (array([[0., 1.],
               [1., 0.]]), (('gestation_days', 'birthweight_g'),))
    """

    nodes: tuple[str, ...]
    counts: Floats
    replicates: int
    unit: Drawn

    @cached_property
    def strength(self) -> Floats:
        """The share of the networks with an arc between two nodes, either way, (N, N)."""
        return strengths(self.counts, self.replicates)[0]

    @cached_property
    def direction(self) -> Floats:
        """Where there is an arc, the share that goes from the first node to the second, (N, N)."""
        return strengths(self.counts, self.replicates)[1]

    @cached_property
    def threshold(self) -> float:
        """The strength above which arcs are taken for real, as estimated by bnlearn.

        See Scutari and Nagarajan, "Identifying significant edges in graphical models of molecular
        networks", Artificial Intelligence in Medicine 57 (2013).
        """
        return inclusion_threshold(self.strength[~np.eye(len(self.nodes), dtype=bool)])

    def averaged(self, threshold: float | None = None, *, weakest_first: bool = False) -> Dag:
        """The network of the arcs that are found often enough.

        Arcs above the threshold, and those found in all replicates, in their more frequent
        direction. They are added one by one, the strongest first, and left out where they make a
        cycle. Edges that go equally often either way are directed at the end, so that no new
        v-structure arises if that can be.

        Args:
            threshold: a strength between 0 and 1; the attribute `threshold` by default.
            weakest_first: add the weakest arcs first, as bnlearn does: of a cycle it is then the
                strongest arc that is left out.

        Raises:
            OptionError: the threshold is not a strength.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> boot = pb.bootstrap(trial.dropna(), group="clinic", replicates=20)
            >>> boot.averaged(0.9).skeleton()
            (('gestation_days', 'birthweight_g'),)
        """
        check_arguments(weakest_first=(weakest_first, FLAG))
        limit: float = self.threshold if threshold is None else threshold
        if not is_finite(limit) or not 0 <= limit <= 1:
            raise OptionError(Option("threshold", threshold), " is not a strength between 0 and 1")
        edges = averaged_edges(self.strength, self.direction, limit, weakest_first=weakest_first)
        return directed_network(self.nodes, *edges)

    def table(self) -> pd.DataFrame:
        """A row for each two nodes and direction: from, to, strength, direction; strongest first.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]]
            >>> pb.bootstrap(trial, group="clinic", missing="drop", replicates=20).table()
                         from              to  strength  direction
            0  gestation_days   birthweight_g       1.0        0.5
            1   birthweight_g  gestation_days       1.0        0.5
        """
        p, c = np.nonzero(~np.eye(len(self.nodes), dtype=bool))
        names = np.array(self.nodes, dtype=object)
        columns = {"strength": self.strength[p, c], "direction": self.direction[p, c]}
        table = pd.DataFrame({"from": names[p], "to": names[c], **columns})
        by = ["strength", "direction"]
        return table.sort_values(by, ascending=False, kind="stable", ignore_index=True)

    def pairs(self) -> list[ArcStrength]:
        """The pairs with an arc in some network, in their more frequent direction, strongest first.

        Examples:
            >>> Bootstrap(("x", "y"), np.array([[0, 3.0], [5.0, 0]]), 10, "row").pairs()
            [ArcStrength(parent='y', child='x', strength=0.8, direction=0.625)]
        """
        at = self.nodes.index
        rows = map(ArcStrength._make, self.table().itertuples(index=False, name=None))
        return [
            row
            for row in rows
            if row.strength > 0 and (row.direction, at(row.child)) > (0.5, at(row.parent))
        ]

    def _summary(self) -> str:
        what = "data sets" if self.unit == "data set" else f"{self.unit}s within data sets"
        return (
            f"{self.replicates} replicates of {what}, {len(self.nodes)} nodes; threshold "
            f"{self.threshold:.3g}, {counted(len(self.averaged().arcs), 'arc')} in the averaged "
            "network"
        )

    def __repr__(self) -> str:
        lines = told(self.pairs(), "strength", ".table()")
        return "\n".join([f"Bootstrap: {self._summary()}", *lines])

    def _repr_html_(self) -> str:
        return str(present("page.notebook.shown", self))


class BootstrapInterrupted(PoolbnError, KeyboardInterrupt):
    """The bootstrap was stopped by the user.

    Attributes:
        bootstrap: the replicates that were finished.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> try:
        ...     boot = pb.bootstrap(trial, group="clinic", replicates=10)
        ... except pb.BootstrapInterrupted as stopped:
        ...     boot = stopped.bootstrap
        >>> boot.replicates
        10
    """

    def __init__(self, bootstrap: Bootstrap) -> None:
        self.bootstrap = bootstrap
        super().__init__(
            f"the bootstrap was interrupted after {bootstrap.replicates} replicates; they are in "
            "the exception's attribute bootstrap"
        )


def bootstrap(
    source: object,
    *,
    group: Group = None,
    columns: Iterable[str] | None = None,
    kinds: Kinds | None = None,
    missing: Missing = "error",
    inputs: Iterable[str] = (),
    interventions: Targets | None = None,
    replicates: int = 200,
    unit: Unit = "row",
    seed: int = 0,
    **learning: Unpack[LearnOptions],
) -> Bootstrap:
    """Learn networks from resampled data, and count how often each arc is found.

    Rows are read twice, in a stream; no replicate copies them. Each replicate has its columns in
    another random order, as in bnlearn, so that their order does not decide between moves that
    score the same. The result depends on the rows, their order and the random seed, not on the
    number of cores. The first replicates are the same however many there are.

    Args:
        source: as for `pb.stats`, but it must be possible to read it twice; or rows from
            `pb.table`. To resample data sets, statistics will do.
        group: the column that says which data set a row came from.
        columns: the columns to keep; None for all but `group`.
        kinds: of some columns, see `pb.table`; where not all are continuous, rows are held in
            memory.
        missing: "error" refuses missing values; "drop" leaves out the rows that have one; "em"
            draws rows with their gaps, which it holds in memory, and fills these in each replicate.
        inputs: columns that may be parents but never children, see `pb.stats`.
        interventions: columns that were set in some data sets, see `pb.stats`.
        replicates: networks to learn.
        unit: "row" draws rows with replacement within each data set: how sure the arcs are for
            these data sets. "data set" draws whole data sets: how sure they are for data sets such
            as these; with only a few data sets that says little.
        seed: random seed of the draws.
        learning: `pooling`, `score`, `search` and `constraints`, as for `pb.learn`.

    Raises:
        BootstrapInterrupted: on Ctrl-C; it holds the replicates that were finished.
        DataError: the source cannot be used, or not resampled in that way.
        OptionError: an option has a value that it does not take.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> pb.bootstrap(trial, group="clinic", missing="drop", pooling="complete", replicates=50)
        Bootstrap: 50 replicates of rows within data sets, 3 nodes; threshold 0.4, ...
          gestation_days -> birthweight_g  strength 1.00, direction 0.53
          age -> birthweight_g  strength 0.40, direction 1.00
          age -> gestation_days  strength 0.34, direction 1.00
    """
    check_count(1, replicates=replicates)
    check_count(seed=seed)
    check_option("unit", unit, get_args(Unit))
    check_keywords(learning, LearnOptions.__annotations__, "pb.bootstrap")
    plan = as_plan(**learning)
    known = gathered(
        source, group=group, columns=columns, kinds=kinds, missing=missing, inputs=inputs,
        interventions=interventions,
    )  # fmt: skip
    if known.unit is not None and not known.has_rows and not is_data(source):  # to draw units
        known = table(
            source, group=group, columns=columns, missing=missing, inputs=inputs,
            interventions=interventions,
        )  # fmt: skip
    allowed = plan.allowed(known)
    if unit == "data set" and len(known.levels) < 2:
        raise DataError(
            f"there is one data set, {known.levels[0]!r}, so they cannot be resampled; use ",
            Option("unit", "row"),
        )
    statistics = is_data(source) and not source.has_rows
    if statistics and unit == "row":
        raise DataError(
            "sufficient statistics hold no rows to resample; give the rows, or use ",
            Option("unit", "data set", "data-set"),
        )
    drawn: Drawn = unit if known.unit is None or unit == "data set" else "unit"
    read = partial(data.read, source, group=group, columns=columns, missing=missing)
    parts = _replicates(known, read, unit, replicates, seed)
    warn(known, plan.known)
    fixed = allowed.required | ~allowed.arcs.T
    counts, done = np.zeros(fixed.shape), 0
    work = partial(_directions, replace(plan, as_given=True), known.names, fixed)
    told = "bootstrap: {} of {} replicates".format
    with Progress() as progress:
        try:
            for part in parts:
                shuffled = [shuffled_columns(of, r, seed) for r, of in enumerate(part, done)]
                for _, found in map_measured(work, shuffled, available_cores()):
                    counts += found
                    done += 1
                    progress(partial(told, done, replicates))
        except KeyboardInterrupt:
            if not done:
                raise
            made = Bootstrap(known.names, counts, done, drawn)
            raise BootstrapInterrupted(made) from None
    return Bootstrap(known.names, counts, done, drawn)


def _replicates(
    known: Data, read: Callable[[], data.Rows], unit: Unit, replicates: int, seed: int
) -> Iterator[Sequence[Data]]:
    """Replicates of all rows, some at a time; `read` opens these where they are not in memory."""
    if known.has_rows:
        yield from table_replicates(as_table(known), replicates, seed, data_sets=unit == "data set")
    elif unit == "data set":
        yield from data_set_replicates(known, replicates, seed)
    elif not known.imputed:
        yield from row_replicates(read, known.stats(), replicates, seed)
    else:
        yield from incomplete_replicates(read, known.stats(), replicates, seed)


def _directions(plan: Plan, nodes: tuple[str, ...], fixed: Flags, replicate: Data) -> Floats:
    """The arcs of the network of a replicate, with the nodes in this order."""
    at = [nodes.index(name) for name in replicate.names]
    arcs = np.zeros_like(fixed)
    arcs[np.ix_(at, at)] = plan.arcs(replicate)
    fixed = fixed | set_apart(nodes, replicate.interventions.values())
    return directions(arcs, fixed)
