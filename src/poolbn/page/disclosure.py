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
from functools import cache

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.replicates import data_sets_at
from poolbn.assess.residuals import CELL, FEWEST
from poolbn.errors import DataError
from poolbn.graph.dag import Dag
from poolbn.graph.pairs import Pair
from poolbn.inference.drawing import categories_of, draw_columns
from poolbn.moments.cellstats import CellStats, data_sets_among
from poolbn.moments.filled import FilledTable
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.rarevalues import rare_values
from poolbn.moments.table import Table, has_gaps, some_rows
from poolbn.network.network import Network
from poolbn.nodes.auto import Auto, Candidate
from poolbn.nodes.given import INPUT, Given
from poolbn.nodes.localfit import GaussianFit, LocalFit
from poolbn.nodes.model import NodeModel
from poolbn.nodes.poolings import Complete, Partial
from poolbn.nodes.predictive import uncertainty
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit, counts_of, fit_tabular
from poolbn.page.fewrows import Counter, Flags, Floats, Grouping
from poolbn.scoring.local import Data, as_score, family_fits
from poolbn.settling import Gaps, settled
from poolbn.wording import listed

Learned = GroupStats | Table | CellStats  # what a network was learned from

_DRAWS = 2000  # rows of each data set that are drawn where none are known
_UNSURE = 2  # times as many rows are to be expected then
_OTHERS = "(put together)"  # a data set that is several


@dataclass(frozen=True, eq=False)
class Disclosed:
    """What a report may be made from.

    Attributes:
        net: its network.
        data: what that was fitted to; None where it is the user's own.
        shown: the data sets of which anything may be shown, (F,): all but where small ones could
            not be left out.
        groupings: for nodes, and for pairs (an input, a node), what is put together.
        left_out: data sets with few rows.
        later: data sets that came later, and could not be adapted again.
        columns: those in which the data sets that are left do not differ.
        arcs: those of the user's network that it lacks, as no effect may be shown.
    """

    net: Network
    data: Learned | None
    shown: Flags
    groupings: Mapping[str | Pair, Grouping] = field(default_factory=dict)
    left_out: tuple[Hashable, ...] = ()
    later: tuple[Hashable, ...] = ()
    columns: tuple[str, ...] = ()
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


def disclosed(net: Network, data: Learned | None) -> Disclosed:
    """What may be shown of a network.

    Args:
        net: the network.
        data: what it was learned from, if that is known.

    Raises:
        DataError: that is not known, and estimates may come from few rows.
    """
    if data is not None and not isinstance(data, GroupStats):
        data = data.select(net.dag.nodes)
    small = _small(net, data)
    kept = [level for level in net.levels if level not in small and level not in net.adapted]
    if not small and net.is_linear:
        return undisclosed(net)
    if small - set(net.adapted) and (data is None or not kept):
        # Only the population may be shown, from which nothing can be subtracted then.
        none = np.zeros(len(net.levels), dtype=bool)
        left_out = tuple(level for level in net.levels if level in small)
        if not net.is_linear:
            _groupings(net, data)  # raises
        return Disclosed(net, None, none, left_out=left_out)
    found = undisclosed(net)
    if small - set(net.adapted):
        assert data is not None
        found = _without(net, data, kept)
    elif small:
        found = replace(found, net=_some(net, [v for v in net.levels if v not in small]))
    found = replace(
        found,
        left_out=tuple(level for level in net.levels if level in small),
        later=tuple(v for v in net.adapted if v not in small and v not in found.net.levels),
        shown=np.ones(len(found.net.levels), dtype=bool),
    )
    if net.is_linear:
        return found
    return _put_together(found, data if found.data is None else found.data)


def _small(net: Network, data: Learned | None) -> set[Hashable]:
    """Data sets of which a column has few cells, or a number with two values has one few times."""
    rows: list[int] = net.n.tolist()
    small = {v for v, n in zip(net.levels, rows, strict=True) if 0 < n < FEWEST}
    if isinstance(data, GroupStats):
        observed = data.n[:, None] if data.filled is None else data.filled.observed
        exact = data if data.filled is None else data.filled.patterns.known
    elif isinstance(data, Table):
        observed = data.n[:, None] - data.missing
        numbers = [n for n, kind in zip(data.names, data.kinds, strict=True) if kind != "discrete"]
        numbers = [n for n in numbers if not data.missing[:, data.names.index(n)].any()]
        if not numbers:
            return small | _with_few(data, observed)
        exact = data.stats(numbers)
    else:
        return small
    rare = rare_values(exact, CELL, pairs=False)
    return small | _with_few(data, observed) | {found.data_set for found in rare}


def _with_few(data: Learned, observed: NDArray[np.int64]) -> set[Hashable]:
    few = ((observed > 0) & (observed < FEWEST)).any(axis=1)
    return {data.levels[j] for j in np.flatnonzero(few).tolist()}


# The same graph, fitted again


def _without(net: Network, data: Learned, kept: Sequence[Hashable]) -> Disclosed:
    """The network of these data sets alone."""
    at = [data.levels.index(level) for level in kept]
    rest: Learned
    if isinstance(data, GroupStats):
        rest = data_sets_at(data, at, kept)
    elif isinstance(data, CellStats):
        rest = data_sets_among(data, at, kept)
    else:
        rest = some_rows(data, [np.arange(*data.offsets[j : j + 2]) for j in at], kept)
        rest = replace(rest, dropped=data.dropped[at])
    gone = [] if isinstance(rest, GroupStats) else [
        name for name, levels in zip(rest.names, rest.categories, strict=True) if len(levels) == 1
    ]  # fmt: skip
    nodes = [node for node in net.dag.nodes if node not in gone]
    if not nodes:
        raise DataError(
            f"data sets with {FEWEST} rows or more have one level of each column, so that a report "
            "to share would be empty; give rows=True, and do not share it"
        )
    rest = rest.select(nodes)
    arcs = [arc for arc in net.dag.arcs if not set(arc) & set(gone)]
    where = [net.levels.index(level) for level in kept]
    old = replace(
        net,
        dag=Dag(nodes, arcs),
        fits={node: _taken(net.fits[node], where, kept) for node in nodes},
        n=net.n[where],
        missing=None if net.missing is None else net.missing[where][:, _at(net.dag.nodes, nodes)],
        adapted=(),
        score=math.nan,
        stats=rest if isinstance(rest, GroupStats) else None,
    )
    made = _completed(old, rest)
    fits = {node: _fitted(old, made, node) for node in nodes}
    return replace(undisclosed(replace(old, fits=fits)), data=rest, columns=tuple(gone))


def _at(names: Sequence[str], some: Sequence[str]) -> list[int]:
    return [names.index(name) for name in some]


def _some(net: Network, levels: Sequence[Hashable]) -> Network:
    """The network without data sets that came later."""
    at = [net.levels.index(level) for level in levels]
    return replace(
        net,
        fits={node: _taken(fit, at, levels) for node, fit in net.fits.items()},
        n=net.n[at],
        missing=None
        if net.missing is None
        else net.missing[[j for j in at if j < len(net.missing)]],
        adapted=tuple(level for level in net.adapted if level in levels),
    )


def _completed(net: Network, data: Learned) -> Data:
    """Rows with missing cells completed by the graph; anything else as it is."""
    if not has_gaps(data):
        return data

    def learned(filled: FilledTable, before: Network | None) -> Network:
        fits = {node: _fitted(net, filled, node) for node in net.dag.nodes}
        return replace(net, fits=fits, score=math.fsum(fit.bic for fit in fits.values()))

    return settled(Gaps(data), learned)[0]


def _fitted(net: Network, data: Data, node: str, parents: Sequence[str] | None = None) -> LocalFit:
    """A node of a network, fitted to other data, with its own pooling."""
    old = net.fits[node]
    if isinstance(old.pooling, Given) and old.pooling != INPUT:
        return old
    own = net.dag.parents(node) if parents is None else parents
    family = (data.names.index(node), tuple(_at(data.names, own)))
    (fit,) = family_fits(data, [family], _model(old, len(data.levels)), as_score("bic"))
    return fit


def _model(fit: LocalFit, data_sets: int) -> NodeModel:
    """The pooling of a fit, as `auto` has it where that chose it."""
    how = fit.pooling if isinstance(fit.pooling, Candidate) else Partial()
    if isinstance(how, Partial) and data_sets == 1:
        return Complete()
    reml = isinstance(how, Partial) and how.method == "reml"
    if isinstance(fit, GaussianFit) and fit.unbiased and not reml:
        return Auto(among=(how,)).first(fit.levels)
    return how


def _taken(fit: LocalFit, at: Sequence[int], levels: Sequence[Hashable]) -> LocalFit:
    """A fit of the data sets at these positions, which may repeat, under these names."""
    levels, out = tuple(levels), [fit.levels[j] in fit.left_out for j in at]
    left_out = tuple(level for level, lacks in zip(levels, out, strict=True) if lacks)
    if isinstance(fit, GaussianFit):
        total, between = uncertainty(fit)
        own, found = fit.intervals, {}
        if own is not None:
            own = own._replace(center=own.center[at], se=own.se[at], df=own.df[at])
        for name in ("coef", "coef_cov", "sigma2", "squares", "df", "effective_df", "rows"):
            found[name] = getattr(fit, name)[at]
        return replace(
            fit, levels=levels, left_out=left_out, total_cov=total[at], between_cov=between[at],
            saved_intervals=own, sums=None, later=None, **found,
        )  # fmt: skip
    assert isinstance(fit, RegressionFit | TabularFit)
    told = fit.effects if fit.parents and fit.status.ok else fit.saved_effects
    if told is not None:
        told = told._replace(own=told.own[at], middle=told.middle[at], own_se=told.own_se[at])
    if isinstance(fit, TabularFit):
        p = fit.probabilities[at]
        return replace(fit, levels=levels, left_out=left_out, probabilities=p, saved_effects=told,
                       later=None)  # fmt: skip
    return replace(fit, levels=levels, left_out=left_out, coef=fit.coef[at], later=None,
                   coef_cov=fit.coef_cov[at], saved_effects=told)  # fmt: skip


# Nodes of which a data set has few rows with some levels


def _put_together(found: Disclosed, data: Learned | None) -> Disclosed:
    """With nodes fitted anew where cells are small; where rows are not known, the population's."""
    net = found.net
    groupings = _groupings(net, data)
    some = {key: own for key, own in groupings.items() if own.together.any() or own.rare}
    nodes = [node for node in net.dag.nodes if node in some or _lost(net, groupings, node)]
    if not some and not nodes:
        return found
    if data is None:
        every = np.ones(len(net.levels), dtype=bool)
        hidden = {key: replace(own, together=every) for key, own in some.items()}
        return replace(found, groupings=hidden)
    made, fits = _completed(net, data), dict(net.fits)
    for node in nodes:
        fits[node] = _in_groups(net, made, groupings[node])
    lost = [(parent, node) for node in nodes for parent in _lost(net, groupings, node)]
    dag = Dag(net.dag.nodes, [arc for arc in net.dag.arcs if arc not in lost])
    page = replace(net, dag=dag, fits=fits, score=math.nan)
    return replace(found, net=page, data=data, groupings=some, arcs=tuple(lost))


def _lost(net: Network, groupings: Mapping[str | Pair, Grouping], node: str) -> list[str]:
    """Parents of a node whose effects may not be shown."""
    if node not in groupings:
        return []
    return [parent for parent in net.dag.parents(node) if parent not in groupings[node].parents]


def _groupings(net: Network, data: Learned | None) -> dict[str | Pair, Grouping]:
    """How each node, and each one given an input alone, is fitted."""
    families: dict[str | Pair, tuple[str, Sequence[str]]] = {}
    for node, fit in net.fits.items():
        if fit.pooling == INPUT or not isinstance(fit.pooling, Given):
            families[node] = node, net.dag.parents(node)
        if not isinstance(data, CellStats) and fit.pooling != INPUT:
            families |= {(cause, node): (node, [cause]) for cause in net.inputs}
    assert not isinstance(data, GroupStats)
    found = (_expected(net) if data is None else _counter(net, data)).groupings(families)
    if data is None:
        lost = [node for node in net.fits if _lost(net, found, node)]
        lost += [key for key, own in found.items() if own.rare and isinstance(key, str)]
        if lost:
            raise DataError(
                f"estimates of {listed(list(dict.fromkeys(lost)))} may come from fewer than "
                f"{FEWEST} rows with the same levels, or tell of fewer than {CELL}, and a report "
                "is made to be shared; give the rows that the network was learned from, "
                "pb.report(net, path, data=rows), so that it leaves these out"
            )
    return found


def _counter(net: Network, data: Table | CellStats) -> Counter:
    """Of rows, or of counts of rows; rows with missing cells count for those that they have."""
    sizes = {name: len(levels) for name, levels in zip(data.names, data.categories, strict=True)}
    F = len(data.levels)

    @cache
    def count(names: tuple[str, ...]) -> Floats:
        shape = (F, *(sizes[name] for name in names))
        if isinstance(data, Table):
            codes = data.values[_at(data.names, names)]
            sets, n = np.repeat(np.arange(F), data.n), np.ones(data.n_rows)
        else:
            rows = data.cases(names)
            codes, sets, n = np.array(rows.columns), rows.data_set, np.ones(int(rows.offsets[-1]))
            n = n if rows.n is None else rows.n.astype(np.float64)
        there = ~np.isnan(codes).any(axis=0)
        at = np.vstack([sets[there], codes[:, there].astype(np.int64)])
        flat = np.bincount(np.ravel_multi_index(tuple(at), shape), n[there], int(np.prod(shape)))
        return np.asarray(flat.reshape(shape), dtype=np.float64)

    return Counter(data.n, sizes, count)


def _expected(net: Network) -> Counter:
    """Of the rows that a network expects, halved."""
    F, order = len(net.levels), net.dag.topological_order()
    sets = np.repeat(np.arange(F), _DRAWS)
    drawn = draw_columns(net.fits, order, sets, np.random.default_rng(0))
    sizes = {name: len(categories_of(net.fits[name])) for name in order}

    def count(names: tuple[str, ...]) -> Floats:
        shape = (F, *(sizes[name] for name in names))
        codes = [drawn[name].astype(np.int64) for name in names]
        flat = np.bincount(np.ravel_multi_index((sets, *codes), shape), minlength=math.prod(shape))
        share = net.n / (_DRAWS * _UNSURE)
        return np.asarray(flat.reshape(shape) * share.reshape(F, *[1] * len(names)))

    return Counter(net.n, sizes, count)


def _in_groups(net: Network, data: Data, grouping: Grouping) -> LocalFit:
    """A node fitted to data sets of which some are one, for all of them."""
    node, parents, together = grouping.child, grouping.parents, grouping.together
    if grouping.rare:
        return _rare(net, data, node)
    made, at = _joined(data, together)
    fit = _fitted(net, made, node, parents)
    return (
        fit
        if isinstance(fit.pooling, Given) and fit.pooling != INPUT
        else _taken(fit, at, net.levels)
    )


def _joined(data: Data, together: Flags) -> tuple[Data, list[int]]:
    """With these data sets as one, the last; and where in that the rows of each data set are."""
    alone = np.flatnonzero(~together).tolist()
    at = [alone.index(j) if j in alone else len(alone) for j in range(len(together))]
    if not together.any():
        return data, at
    if isinstance(data, FilledTable):
        source, order = _rearranged(data.source, alone)
        gappy = np.searchsorted(data.gappy, order[np.isin(order, data.gappy)])
        plausible = data.plausible
        drawn = None if plausible is None else lambda k: _rearranged(plausible(k), alone)[0]
        return replace(data, source=source, draws=data.draws[..., gappy], plausible=drawn), at
    if isinstance(data, Table):
        return _rearranged(data, alone)[0], at
    assert isinstance(data, CellStats)
    parts = [data_sets_among(data, alone, alone)] if alone else []
    parts += [data_sets_among(data, [j], [_OTHERS]) for j in np.flatnonzero(together).tolist()]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole, at


def _rearranged(table: Table, alone: Sequence[int]) -> tuple[Table, NDArray[np.intp]]:
    """A table in which all data sets but these are one, and where its rows were."""
    sets = np.repeat(np.arange(len(table.levels)), table.n)
    new = np.full(len(table.levels), len(alone))
    new[list(alone)] = np.arange(len(alone))
    order = np.argsort(new[sets], kind="stable")
    n = np.bincount(new[sets], minlength=len(alone) + 1)
    dropped = np.bincount(new, table.dropped, len(alone) + 1).astype(np.int64)
    made = replace(
        table,
        levels=(*(table.levels[j] for j in alone), _OTHERS),
        offsets=np.concatenate([[0], np.cumsum(n)]),
        values=table.values[:, order],
        dropped=dropped,
    )
    return made, order


def _rare(net: Network, data: Data, node: str) -> LocalFit:
    """A table of a node without parents, with `CELL` rows for each level that fewer have."""
    assert not isinstance(data, GroupStats)
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
