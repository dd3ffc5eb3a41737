"""The network of a report that is made to be shared: it never saw what the report suppresses.

What is suppressed must not follow from what is shown, and a reader subtracts: deviations from the
population add up to zero, and shares times rows are whole numbers. So suppressed estimates are not
taken out of a network that others in the report belong to. The same graph is fitted again, without
the data sets of few rows, and where single nodes have few rows with some levels, with data sets put
together. All that is shown is made from that.

A cell is rows of a data set with the same levels of discrete columns. A node with small cells in a
data set is fitted with that data set and others as one. What a reader can subtract then are sums
over several data sets, of which no cell is small. Two nodes that have a discrete column in common
could tell by their difference what neither does: where they put some of the same data sets
together, they put together the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from typing import TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np

from poolbn.arrays import Flags, Floats, Integers
from poolbn.assess.refitting import completed, fitted, fitted_to_some, having
from poolbn.assess.residuals import CELL, FEWEST
from poolbn.errors import DataError, InPython
from poolbn.graph.dag import Dag
from poolbn.graph.pairs import Pair
from poolbn.inference.drawing import draw_columns
from poolbn.later import pandas as pd
from poolbn.moments.data import Data, only_sums
from poolbn.moments.groupstats import rare_values
from poolbn.network.network import Network
from poolbn.nodes.given import INPUT
from poolbn.nodes.localfit import Given, LocalFit
from poolbn.nodes.poolings import Complete
from poolbn.nodes.tabular import counts_of, fit_tabular
from poolbn.wording import listed

Key = TypeVar("Key", bound=Hashable)

_DRAWS = 2000  # rows of each data set that are drawn where none are known
_UNSURE = 2  # times as many rows are to be expected then


@dataclass(frozen=True, eq=False)
class Grouping:
    """How a node is fitted."""

    child: str  # the node
    # Those of its parents that are left: with others its cells are small in all data sets together.
    parents: tuple[str, ...]
    together: Flags  # the data sets that count as one, (F,)
    rare: bool = False  # whether a level of the node is too rare in all data sets together

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns."""
        return (*self.parents, self.child)


@dataclass(frozen=True, eq=False)
class Counter:
    """Rows by data set and levels of discrete columns."""

    n: Integers  # rows of each data set, (F,)
    sizes: Mapping[str, int]  # the number of levels of each column; 0 where it is not discrete
    count: Callable[[tuple[str, ...]], Floats]  # rows by levels of columns, (F, levels, ...)
    # nodes that have a regression for each configuration of their discrete parents
    joint: frozenset[str] = frozenset()

    def whole(self) -> Counter:
        """Of all data sets as one."""
        n = self.n.sum(keepdims=True)
        return replace(self, n=n, count=lambda names: self.count(names).sum(axis=0)[None])

    def groupings(self, families: Mapping[Key, tuple[str, Sequence[str]]]) -> dict[Key, Grouping]:
        """How nodes with these parents are fitted."""
        found = {key: self._grouping(child, tuple(of)) for key, (child, of) in families.items()}
        joined = True
        while joined:
            joined = False
            for a, b in combinations(found, 2):
                one, two = found[a].together, found[b].together
                shared = {*found[a].columns} & {*found[b].columns}
                meet = any(self.sizes[name] for name in shared)
                if meet and (one & two).any() and (one != two).any():
                    both, joined = one | two, True
                    found[a], found[b] = (replace(found[k], together=both) for k in (a, b))
        return found

    def _grouping(self, child: str, parents: tuple[str, ...]) -> Grouping:
        """Of one node, whatever others do; parents go until the cells of the others are enough."""
        while True:
            tables = self._tables(child, parents)
            few = np.zeros(len(self.n), dtype=bool)
            for counts, least in tables:
                few |= _few(counts, least)
            if not few.any():
                return Grouping(child, parents, few)
            together = self._enough(tables, few)
            if together is not None:
                return Grouping(child, parents, together)
            if not parents:
                return Grouping(child, (), np.ones_like(few), rare=True)
            parents = self._fewer(child, parents)

    def _tables(self, child: str, parents: Sequence[str]) -> list[tuple[Floats, int]]:
        """Counts (F, cells) and the rows that each cell has to have.

        Where all columns are discrete, or regressions are for configurations, the node has a
        parameter for each of these, else for each level of a parent.
        """
        F, K = len(self.n), self.sizes[child]
        discrete = tuple(name for name in parents if self.sizes[name])
        if K and len(discrete) == len(parents):
            counts = self.count((*discrete, child)).reshape(F, -1, K)
            found = [(counts.reshape(F, -1), CELL)]
            return [*found, (counts.sum(axis=2), FEWEST)] if parents else found
        if child in self.joint and discrete:
            return [(self.count(discrete).reshape(F, -1), FEWEST)]
        found = [(self.count((name,)), FEWEST) for name in discrete]
        if K:
            found += [(self.count((name, child)).reshape(F, -1), CELL) for name in discrete]
            found.append((self.count((child,)), CELL))
        return found

    def _enough(self, tables: Sequence[tuple[Floats, int]], few: Flags) -> Flags | None:
        """These data sets with those that have fewest rows, until their sums are enough."""
        together = few.copy()
        others = sorted(np.flatnonzero(~few).tolist(), key=lambda j: int(self.n[j]))
        while True:
            if together.sum() > 1 and not any(
                _few(counts[together].sum(axis=0)[None], least).any() for counts, least in tables
            ):
                return together
            if not others:
                return None
            together[others.pop(0)] = True

    def _fewer(self, child: str, parents: tuple[str, ...]) -> tuple[str, ...]:
        """Without the discrete parent that has the smallest cell; if there is none, without any."""
        discrete = [name for name in parents if self.sizes[name]]
        if not discrete:
            return ()

        def smallest(name: str) -> float:
            names = (name, child) if self.sizes[child] else (name,)
            counts = self.count(names).sum(axis=0)
            return float(counts[counts > 0].min())

        gone = min(discrete, key=smallest)
        return tuple(name for name in parents if name != gone)


def counter(data: Data) -> Counter:
    """Of rows, or of counts of rows; rows with missing cells count for those that they have."""
    sizes = {name: len(levels) for name, levels in zip(data.names, data.categories, strict=True)}
    F = len(data.levels)

    @cache
    def count(names: tuple[str, ...]) -> Floats:
        shape = (F, *(sizes[name] for name in names))
        rows = data.cases(names, incomplete=True)
        codes, sets = np.array(rows.columns), rows.data_set
        n = np.ones(len(sets)) if rows.n is None else rows.n.astype(np.float64)
        there = ~np.isnan(codes).any(axis=0)
        at = np.vstack([sets[there], codes[:, there].astype(np.int64)])
        flat = np.bincount(np.ravel_multi_index(tuple(at), shape), n[there], int(np.prod(shape)))
        return np.asarray(flat.reshape(shape), dtype=np.float64)

    return Counter(data.n, sizes, count)


def expected(net: Network) -> Counter:
    """Of the rows that a network expects, halved."""
    F, order = len(net.levels), net.dag.topological_order()
    sets = np.repeat(np.arange(F), _DRAWS)
    drawn = draw_columns(net.fits, order, sets, np.random.default_rng(0))
    sizes = {name: len(net.fits[name].categories) for name in order}

    def count(names: tuple[str, ...]) -> Floats:
        shape = (F, *(sizes[name] for name in names))
        codes = [drawn[name].astype(np.int64) for name in names]
        flat = np.bincount(np.ravel_multi_index((sets, *codes), shape), minlength=math.prod(shape))
        share = net.n / (_DRAWS * _UNSURE)
        return np.asarray(flat.reshape(shape) * share.reshape(F, *[1] * len(names)))

    return Counter(net.n, sizes, count)


def _few(counts: Floats, least: int) -> Flags:
    """Data sets in which some count is neither 0 nor large enough, (F,)."""
    few = (counts > 0) & (counts < least)
    return np.asarray(few.reshape(len(few), -1).any(axis=1))


_OTHERS = "(put together)"  # a data set that is several


def in_groups(net: Network, data: Data, grouping: Grouping) -> LocalFit:
    """A node fitted to data sets of which some are one, for all of them."""
    node, parents = grouping.child, grouping.parents
    if grouping.rare:
        return _rare(net, data, node)
    free = ~_where_set(net, node)
    made, places = _joined(net.fits[node].about(data), grouping.together[free])
    fit = fitted(net, made, node, parents)
    if isinstance(fit.pooling, Given) and fit.pooling != INPUT:
        return fit
    at = np.full(len(free), len(made.levels) - 1)  # where it was set nothing is shown
    at[free] = places
    return fit.taken(at.tolist(), net.levels)


def _where_set(net: Network, node: str) -> Flags:
    """Data sets in which a node was set, (F,)."""
    return np.array([level in net.fits[node].experiments for level in net.levels])


def _joined(data: Data, together: Flags) -> tuple[Data, list[int]]:
    """With these data sets as one, the last; and where in that the rows of each data set are."""
    alone = np.flatnonzero(~together).tolist()
    at = np.where(together, len(alone), np.cumsum(~together) - 1).tolist()
    if not together.any():
        return data, at
    return data.joined(alone, _OTHERS), at


def _rare(net: Network, data: Data, node: str) -> LocalFit:
    """A table of a node without parents, with `CELL` rows for each level that fewer have."""
    how = Complete()
    fit = fit_tabular(data, node, (), how)
    counts = counts_of(data, node, ())
    rows = (counts.mean(axis=0) if counts.ndim > 3 else counts).sum(axis=(0, 1))
    seen = np.where((rows > 0) & (rows < CELL), CELL, rows)
    seen[seen.argmax()] -= seen.sum() - rows.sum()
    p = seen / seen.sum()
    loglik = float((seen[seen > 0] * np.log(p[seen > 0])).sum())
    detail = f"levels that fewer than {CELL} rows have count as if {CELL} had them"
    return replace(
        fit,
        pooling=INPUT if net.fits[node].pooling == INPUT else how,
        detail=detail,
        loglik=loglik,
        population=p[None],
        probabilities=np.tile(p, (len(net.levels), 1, 1)),
    )


@dataclass(frozen=True, eq=False)
class Disclosed:
    """What a report may be made from."""

    net: Network  # its network
    data: Data | None  # what that was fitted to, while it is made
    # The data sets of which anything may be shown, (F,): all but where small ones could not be left
    # out.
    shown: Flags
    # For nodes, and for pairs (an input, a node), what is put together.
    groupings: Mapping[str | Pair, Grouping] = field(default_factory=dict)
    left_out: tuple[Hashable, ...] = ()  # data sets with few rows
    # Whether some of these have rows enough, and few cells of a column or few of a value.
    scarce: bool = False
    later: tuple[Hashable, ...] = ()  # data sets that came later, and could not be adapted again
    columns: tuple[str, ...] = ()  # those in which the data sets that are left do not differ
    # Those of the user's network that it lacks, as no effect may be shown.
    arcs: tuple[Pair, ...] = ()

    def of(self, key: str | Pair) -> Flags:
        """Data sets of which the estimates of a node, or of a pair, may be shown, (F,)."""
        found = self.groupings.get(key)
        return self.shown if found is None else self.shown & ~found.together

    @property
    def grouped(self) -> list[str]:
        """The nodes for which data sets are put together."""
        return [node for node in self.net.dag.nodes if not self.of(node)[self.shown].all()]

    @property
    def whole(self) -> bool:
        """Whether nothing is suppressed."""
        some = self.left_out or self.later or self.columns or self.arcs
        return not some and not self.grouped and bool(self.shown.all())


def undisclosed(net: Network) -> Disclosed:
    """Everything, for those who may see rows."""
    return Disclosed(net, None, np.ones(len(net.levels), dtype=bool))


_made: WeakKeyDictionary[Network, tuple[ref[Data], Disclosed]] = WeakKeyDictionary()


def disclosed(net: Network, data: Data | None) -> Disclosed:
    """What may be shown of a network; made once, as long as the network is there.

    An error where the data that it was learned from are not known, and estimates may come from few
    rows.
    """
    known = _made.get(net)
    if known is not None and data is not None and known[0]() is data:
        return known[1]
    found = replace(_disclosed(net, data), data=None)
    if data is not None and found.net is not net:  # which would be held for ever
        _made[net] = ref(data), found
    return found


def _disclosed(net: Network, data: Data | None) -> Disclosed:
    if data is not None and data.names != net.dag.nodes:
        data = data.select(net.dag.nodes)
    small = _small(net, data)
    left_out = tuple(level for level in net.levels if level in small)
    scarce = any(net.n[net.levels.index(level)] >= FEWEST for level in left_out)
    kept = [level for level in net.levels if level not in small and level not in net.adapted]
    countable = any(fit.gaussian is None for fit in net.fits.values())
    if not small and not countable:
        return undisclosed(net)
    if small - set(net.adapted) and (data is None or not kept):
        return replace(_population(net, data), left_out=left_out, scarce=scarce)
    found = undisclosed(net)
    if small - set(net.adapted):
        assert data is not None
        found = _without(net, data, kept)
    elif small:
        found = replace(found, net=having(net, [v for v in net.levels if v not in small]))
    found = replace(
        found,
        left_out=left_out,
        scarce=scarce,
        later=tuple(v for v in net.adapted if v not in small and v not in found.net.levels),
        shown=np.ones(len(found.net.levels), dtype=bool),
    )
    if not countable:
        return found
    return _put_together(found, data if found.data is None else found.data)


def shared_effects(net: Network, data: Data) -> pd.DataFrame:
    """`Network.effects` as a file that may be handed on has it."""
    return effects_of(disclosed(net, data))


def effects_of(may: Disclosed) -> pd.DataFrame:
    """`Network.effects`, NaN in data sets that may not be shown."""
    effects = may.net.effects()
    F = len(may.net.levels)
    first = effects.shape[1] - F  # by position: True and False choose columns
    shown = np.array([may.of(child) for child in effects["child"]], dtype=bool)
    own = effects.iloc[:, first:].where(shown.reshape(len(effects), F))
    return effects.iloc[:, :first].join(own)


def _small(net: Network, data: Data | None) -> set[Hashable]:
    """Data sets of which a column has few cells, or a number with two values has one few times."""
    rows: list[int] = net.n.tolist()
    small = {v for v, n in zip(net.levels, rows, strict=True) if 0 < n < FEWEST}
    if data is None:
        return small
    observed = data.n[:, None] - data.missing
    few = ((observed > 0) & (observed < FEWEST)).any(axis=1)
    small |= {data.levels[j] for j in np.flatnonzero(few).tolist()}
    if (sums := only_sums(data)) is not None:
        exact = sums if sums.patterns is None else sums.patterns.known
    else:
        whole = (data.missing.sum(axis=0) == 0).tolist()
        columns = zip(data.names, data.categories, whole, strict=True)
        numbers = [name for name, levels, there in columns if there and not levels]
        if not numbers:
            return small
        exact = data.stats(numbers)
    return small | {found.data_set for found in rare_values(exact, CELL, pairs=False)}


def _population(net: Network, data: Data | None) -> Disclosed:
    """The population's estimates alone, from which nothing can be subtracted."""
    found = Disclosed(net, None, np.zeros(len(net.levels), dtype=bool))
    if all(fit.gaussian is not None for fit in net.fits.values()):
        return found
    groupings = _groupings(net, data, whole=True)
    return found if data is None else _again(found, data, groupings)


# The same graph, fitted again


def _without(net: Network, data: Data, kept: Sequence[Hashable]) -> Disclosed:
    """The network of these data sets alone."""
    made = fitted_to_some(net, data, kept)
    if made is None:
        raise DataError(
            f"data sets with {FEWEST} rows or more have one level of each column, so that a report "
            "to share would be empty; give rows=True, and do not share it"
        )
    return replace(undisclosed(made.net), data=made.data, columns=made.gone)


# Nodes of which a data set has few rows with some levels


def _put_together(found: Disclosed, data: Data | None) -> Disclosed:
    """With nodes fitted anew where cells are small; where rows are not known, the population's."""
    net = found.net
    groupings = _groupings(net, data)
    some = {key: own for key, own in groupings.items() if own.together.any() or own.rare}
    if data is None:
        every = np.ones(len(net.levels), dtype=bool)
        hidden = {key: replace(own, together=every) for key, own in some.items()}
        return replace(found, groupings=hidden)
    return replace(_again(found, data, groupings), groupings=some)


def _again(found: Disclosed, data: Data, groupings: Mapping[str | Pair, Grouping]) -> Disclosed:
    """With the nodes of these that are fitted in another way than they were."""
    net = found.net
    nodes = [
        node
        for node in net.dag.nodes
        if node in groupings
        and (groupings[node].together.any() or groupings[node].rare or _lost(net, groupings, node))
    ]
    if not nodes:
        return found
    if net.adapted:  # whose estimates come from the population as it was
        net = having(net, data.levels)
        shown = found.shown[[level in net.levels for level in found.net.levels]]
        found = replace(found, later=(*found.later, *found.net.adapted), shown=shown)
    made, fits = completed(net, data), dict(net.fits)
    for node in nodes:
        fits[node] = in_groups(net, made, groupings[node])
    lost = [(parent, node) for node in nodes for parent in _lost(net, groupings, node)]
    dag = Dag(net.dag.nodes, [arc for arc in net.dag.arcs if arc not in lost])
    page = replace(net, dag=dag, fits=fits, score=math.nan)
    return replace(found, net=page, data=data, arcs=tuple(lost))


def _lost(net: Network, groupings: Mapping[str | Pair, Grouping], node: str) -> list[str]:
    """Parents of a node whose effects may not be shown."""
    if node not in groupings:
        return []
    return [parent for parent in net.dag.parents(node) if parent not in groupings[node].parents]


def _groupings(
    net: Network, data: Data | None, *, whole: bool = False
) -> dict[str | Pair, Grouping]:
    """How each node, and each one given an input alone, is fitted; as one data set if `whole`."""
    families: dict[str | Pair, tuple[str, Sequence[str]]] = {}
    for node, fit in net.fits.items():
        if fit.pooling == INPUT or not isinstance(fit.pooling, Given):
            families[node] = node, net.dag.parents(node)
        if (data is None or data.has_rows) and fit.pooling != INPUT:
            families |= {(cause, node): (node, [cause]) for cause in net.inputs}
    rows = expected(net) if data is None else counter(data)
    rows = replace(rows, joint=frozenset(node for node, fit in net.fits.items() if fit.switches))
    found = (rows.whole() if whole else rows).groupings(families)
    for key, own in found.items():
        if own.together.any() and not whole:
            found[key] = replace(own, together=own.together | _where_set(net, own.child))
    if whole:
        none = np.zeros(len(rows.n), dtype=bool)
        found = {key: replace(own, together=none) for key, own in found.items()}
    if data is None:
        lost = [node for node in net.fits if _lost(net, found, node)]
        lost += [key for key, own in found.items() if own.rare and isinstance(key, str)]
        if lost:
            raise DataError(
                f"estimates of {listed(list(dict.fromkeys(lost)))} may come from fewer than "
                f"{FEWEST} rows with the same levels, or tell of fewer than {CELL}, and a report "
                "is made to be shared; so that it can leave these out, give the rows that the "
                "network was learned from",
                InPython(", pb.report(net, path, data=rows)", ", as in poolbn report FILE ROWS"),
            )
    return found
