"""The network of a report that is made to be shared: it never saw what the report suppresses.

What is suppressed must not follow from what is shown, and a reader subtracts: deviations from the
population add up to zero, and shares times rows are whole numbers. So suppressed estimates are not
taken out of a network that others in the report belong to. The same graph is fitted again, without
the data sets of few rows, and where single nodes have few rows with some levels, with data sets put
together (`fewrows`). All that is shown is made from that.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary, ref

import numpy as np

from poolbn.arrays import Flags
from poolbn.assess.residuals import CELL, FEWEST
from poolbn.errors import DataError, InPython
from poolbn.graph.dag import Dag
from poolbn.graph.pairs import Pair
from poolbn.later import pandas as pd
from poolbn.moments.data import Data, only_sums
from poolbn.moments.groupstats import rare_values
from poolbn.network.network import Network
from poolbn.nodes.given import INPUT
from poolbn.nodes.localfit import Given
from poolbn.page.fewrows import Grouping, counter, expected, positions
from poolbn.page.refitting import completed, fitted, in_groups
from poolbn.wording import listed


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
        found = replace(found, net=_some(net, [v for v in net.levels if v not in small]))
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
    at = positions(data.levels, kept)
    rest = data.data_sets(at, kept)
    gone = [n for n, levels in zip(rest.names, rest.categories, strict=True) if len(levels) == 1]
    nodes = [node for node in net.dag.nodes if node not in gone]
    if not nodes:
        raise DataError(
            f"data sets with {FEWEST} rows or more have one level of each column, so that a report "
            "to share would be empty; give rows=True, and do not share it"
        )
    rest = rest.select(nodes) if gone or rest.names != tuple(nodes) else rest
    arcs = [arc for arc in net.dag.arcs if not set(arc) & set(gone)]
    where, columns = positions(net.levels, kept), positions(net.dag.nodes, nodes)
    old = replace(
        net,
        dag=Dag(nodes, arcs),
        fits={node: net.fits[node].taken(where, tuple(kept)) for node in nodes},
        n=net.n[where],
        missing=None if net.missing is None else net.missing[np.ix_(where, columns)],
        adapted=(),
        score=math.nan,
        stats=only_sums(rest),
    )
    made = completed(old, rest)
    fits = {node: fitted(old, made, node) for node in nodes}
    return replace(undisclosed(replace(old, fits=fits)), data=rest, columns=tuple(gone))


def _some(net: Network, levels: Sequence[Hashable]) -> Network:
    """The network without data sets that came later."""
    at = positions(net.levels, levels)
    return replace(
        net,
        fits={node: fit.taken(at, tuple(levels)) for node, fit in net.fits.items()},
        n=net.n[at],
        missing=None
        if net.missing is None
        else net.missing[[j for j in at if j < len(net.missing)]],
        adapted=tuple(level for level in net.adapted if level in levels),
    )


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
        net = _some(net, data.levels)
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
    found = (rows.whole() if whole else rows).groupings(families)
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
