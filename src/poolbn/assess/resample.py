"""`bootstrap`: how sure the arcs of a network are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, NamedTuple, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from poolbn.arguments import FLAG, check_arguments, is_finite
from poolbn.assess.replicates import (
    data_set_replicates,
    incomplete_replicates,
    row_replicates,
    shuffled_columns,
    table_replicates,
)
from poolbn.assess.strengths import (
    averaged_edges,
    directed_network,
    directions,
    inclusion_threshold,
    strengths,
)
from poolbn.errors import DataError, Option, OptionError, PoolbnError, check_count, check_option
from poolbn.graph.dag import Dag
from poolbn.learning import LearnOptions, Plan, as_plan, check_keywords
from poolbn.moments.checks import warn
from poolbn.moments.data import Data, is_data
from poolbn.moments.table import as_table, gathered
from poolbn.network.presenting import present
from poolbn.run.parallel import available_cores, map_measured
from poolbn.run.progress import Progress
from poolbn.tables import data
from poolbn.tables.grouping import Group
from poolbn.tables.kinds import ColumnKind
from poolbn.tables.missing import Missing
from poolbn.wording import counted, visible

if TYPE_CHECKING:
    import pandas as pd

Unit = Literal["row", "data set"]
_SHOWN = 12  # arcs that a printed bootstrap lists


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
    counts: NDArray[np.float64]
    replicates: int
    unit: Unit

    @cached_property
    def strength(self) -> NDArray[np.float64]:
        """The share of the networks with an arc between two nodes, either way, (N, N)."""
        return strengths(self.counts, self.replicates)[0]

    @cached_property
    def direction(self) -> NDArray[np.float64]:
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
        import pandas as pd

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
        what = "rows within data sets" if self.unit == "row" else "data sets"
        return (
            f"{self.replicates} replicates of {what}, {len(self.nodes)} nodes; threshold "
            f"{self.threshold:.3g}, {counted(len(self.averaged().arcs), 'arc')} in the averaged "
            "network"
        )

    def __repr__(self) -> str:
        lines = [f"Bootstrap: {self._summary()}"]
        found = self.pairs()
        for row in found[:_SHOWN]:
            share = f", direction {row.direction:.2f}" if row.directed else ""
            sign = "->" if row.directed else "--"
            arc = visible(f"{row.parent} {sign} {row.child}")
            lines.append(f"  {arc}  strength {row.strength:.2f}{share}")
        if len(found) > _SHOWN:
            lines.append(f"  ... {len(found) - _SHOWN} more in .table()")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return str(present("notebook", self))


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
    kinds: Mapping[str, ColumnKind] | None = None,
    missing: Missing = "error",
    inputs: Iterable[str] = (),
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
        Bootstrap: 50 replicates of rows within data sets, 3 nodes; threshold 0.36, 1 arc in ...
          birthweight_g -> gestation_days  strength 1.00, direction 0.56
          age -> gestation_days  strength 0.36, direction 0.92
          age -> birthweight_g  strength 0.26, direction 0.85
    """
    check_count(1, replicates=replicates)
    check_count(seed=seed)
    check_option("unit", unit, get_args(Unit))
    check_keywords(learning, LearnOptions.__annotations__, "pb.bootstrap")
    plan = as_plan(**learning)
    known = gathered(
        source, group=group, columns=columns, kinds=kinds, missing=missing, inputs=inputs
    )
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
            made = Bootstrap(known.names, counts, done, unit)
            raise BootstrapInterrupted(made) from None
    return Bootstrap(known.names, counts, done, unit)


def _replicates(
    known: Data,
    read: Callable[[], data.Rows],
    unit: Unit,
    replicates: int,
    seed: int,
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


def _directions(
    plan: Plan, nodes: tuple[str, ...], fixed: NDArray[np.bool_], replicate: Data
) -> NDArray[np.float64]:
    """The arcs of the network of a replicate, with the nodes in this order."""
    at = [nodes.index(name) for name in replicate.names]
    arcs = np.zeros_like(fixed)
    arcs[np.ix_(at, at)] = plan.arcs(replicate)
    return directions(arcs, fixed)
