"""The network as the report's script asks it: what if variables had these values?

The script finds what `Network.posterior` finds, from the same distributions of nodes given their
parents (`nodes.predicting`). Parents that are numbers are centred, so that few digits do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from poolbn.arrays import Flags
from poolbn.errors import DataError
from poolbn.inference.general import General, general_network
from poolbn.inference.locals import Local, Term
from poolbn.later import pandas as pd
from poolbn.network.network import Network
from poolbn.nodes.predicting import COUNT, Floats
from poolbn.page.disclosure import Disclosed
from poolbn.page.numbers import rounded
from poolbn.tables.kinds import has_levels, is_whole
from poolbn.wording import BEYOND, listed

_DIGITS = 8
_COARSE = 6  # where some data sets are not shown
_MOST = 30_000  # numbers that a page has of the network, some 300 kB
_DRAWS = 4000  # rows that tell where variables are
_REACH = 3.0  # standard deviations to each side that can be chosen
_STEPS = 120  # of a slider, about
_NAMED = 5  # data sets


# Values of a variable that can be chosen: from, to, step and middle; all 0 for levels.
_Range = tuple[float, float, float, float]


def whatif_numbers(
    net: Network, names: Sequence[str], may: Disclosed, *, plugin: bool | None = None
) -> dict[str, Any]:
    """What the script needs, as lists and texts; `names` are those of the data sets.

    A node that may not be shown in a data set is there as it is in a new one. `plugin` takes
    estimates for certain. None does so where the numbers that say how uncertain they are would be
    too many, or where data sets are not shown: estimates of the others and how uncertain these are
    would tell what those are.
    """
    found, new = _with_new(net)
    rows = net.sample(_DRAWS, plugin=True)
    ranges = [_range(rows, name, net.fits[name].kind) for name in net.dag.nodes]
    # Nodes that may not be shown in data sets that are, (F,).
    apart = [node for node in may.grouped if node not in net.inputs]
    suppressed = {node: ~may.of(node) & may.shown for node in apart}
    closed = not may.shown.all()
    sure, digits = (closed if plugin is None else plugin), (_COARSE if closed else _DIGITS)
    mixed = _mixed(found, suppressed, new, plugin=sure)
    known = zip(mixed.names, mixed.nodes, strict=True)
    foreign = [name for name, node in known if name not in net.inputs and not _script(node)]
    if foreign:
        return {"free": False, "foreign": foreign, "sets": [], "new": None}
    use, left_out = _usable(mixed, may, suppressed, new)
    if plugin is None and not sure and _size(mixed, use) > _MOST:
        sure, mixed = True, _mixed(found, suppressed, new, plugin=True)
        use, left_out = _usable(mixed, may, suppressed, new)
    offered = _largest(mixed, use, new)
    centre = [middle for *_, middle in ranges]
    nodes = [
        {
            "name": name,
            "levels": list(net.fits[name].categories),
            "count": mixed.nodes[i].levels == COUNT,
            "input": i in mixed.inputs,
            "parents": list(mixed.nodes[i].parents),
            "range": list(ranges[i]),
            **({} if i in mixed.inputs else _model(mixed.nodes[i], offered, centre, digits)),
        }
        for i, name in enumerate(mixed.names)
    ]
    return {
        "group": net.group,
        "sets": [names[j] for j in offered if j != new],
        "new": offered.index(new) if new in offered else None,
        "prior": rounded(mixed.prior[offered], _DIGITS),
        "order": list(mixed.order),
        "free": any(
            i not in mixed.inputs and not _is_set(node) for i, node in enumerate(mixed.nodes)
        ),
        "foreign": [],
        "sure": sure,
        "leftOut": [names[j] for j in left_out],
        "suppressed": [
            f"{name} in {listed([names[j] for j in own], _NAMED)}"
            for name, hidden in suppressed.items()
            if (own := [j for j in np.flatnonzero(hidden).tolist() if j in offered])
        ],
        "fewer": len(use) - len(offered),
        "nodes": nodes,
    }


def _with_new(net: Network) -> tuple[Network, int | None]:
    """The network with a data set that was not learned from, and its index; None without one."""
    name = "new"
    while any(str(level) == name for level in net.levels):
        name += "*"
    try:
        return net.adapt(name=name), len(net.levels)
    except DataError:  # without pooling there is no population
        return net, None


def _mixed(
    net: Network, suppressed: Mapping[str, Flags], new: int | None, *, plugin: bool
) -> General:
    certain = [level for level in net.levels if level not in net.adapted] if plugin else []
    mixed = general_network(net.dag, net.fits, net.n, net.inputs, certain)
    if new is None:
        return mixed
    nodes = [
        _as_new(node, suppressed[name], new) if name in suppressed else node
        for name, node in zip(mixed.names, mixed.nodes, strict=True)
    ]
    return replace(mixed, nodes=tuple(nodes))


def _as_new(node: Local, hidden: Flags, new: int) -> Local:
    """The node, where it may not be shown as it is in the new data set."""
    at = np.where(np.append(hidden, False), new, np.arange(new + 1))
    return replace(node, of=node.of.taking(at))


def _usable(
    mixed: General, shown: Disclosed, suppressed: Mapping[str, Flags], new: int | None
) -> tuple[list[int], list[int]]:
    """Data sets in which every node has a distribution, and those shown that are not among them."""
    has = np.ones(len(mixed.levels), dtype=bool)
    for i, node in enumerate(mixed.nodes):
        of, F = node.of.regressions, len(has)
        if of is not None and i not in mixed.inputs:
            certain = np.isfinite(of.scale2) & (of.scale2 > 0)
            has &= certain.reshape(F, -1).all(axis=1) | _is_set(node)
        for numbers in _arrays(node, F):
            has &= (np.abs(numbers) < BEYOND).all(axis=1)
    may = shown.shown
    if new is None:
        for hidden in suppressed.values():
            has &= ~hidden
    else:
        may = np.append(may, True)
    left_out = [j for j in np.flatnonzero(may & ~has).tolist() if j != new]
    return np.flatnonzero(has & may).tolist(), left_out


def _is_set(node: Local) -> bool:
    """Whether it is a number that was set by an intervention."""
    of = node.of.linear
    return of is not None and not (node.terms or of.scale2.any() or of.cov.any())


def _arrays(node: Local, F: int) -> list[Floats]:
    """What a node has of each of F data sets but variances, in one line: (F, numbers) each."""
    found = _script(node)
    arrays = ("coef", "cov", "between", "p")
    return [found[name].reshape(F, -1) for name in arrays if name in found]


def _script(node: Local) -> dict[str, Any]:
    return node.of.script(np.eye(len(node.terms) + 1))


def _size(mixed: General, use: Sequence[int]) -> int:
    """How many numbers there are, of matrices that are zero none."""
    every = (of[use] for node in mixed.nodes for of in _arrays(node, len(mixed.levels)))
    return sum(int(of.size) for of in every if of.any())


def _largest(mixed: General, use: list[int], new: int | None) -> list[int]:
    """As many of the data sets as there is room for, those with most rows first to stay."""
    if not use:
        return []
    room = max(1, _MOST * len(use) // max(1, _size(mixed, use)))
    most = sorted(use, key=lambda j: (j != new, -mixed.prior[j]))[:room]
    return sorted(most)


# Where variables are


def _range(rows: pd.DataFrame, name: str, kind: str) -> _Range:
    """Of rows that the network draws, so that no row of the data is behind a number."""
    if has_levels(kind):
        return 0.0, 0.0, 0.0, 0.0
    values = rows[name].to_numpy(dtype=np.float64)
    mean, sd = float(values.mean()), float(values.std())
    if not sd > 1e-9 * abs(mean):
        return mean, mean, 0.0, mean
    if is_whole(kind):
        return 0.0, float(math.ceil(mean + _REACH * sd)), 1.0, float(round(mean))
    step = _nice(2 * _REACH * sd / _STEPS)
    low, high, middle = (step * round((mean + k * _REACH * sd) / step) for k in (-1, 1, 0))
    low, high, step, middle = (float(f"{x:.12g}") for x in (low, high, step, middle))
    return low, high, step, middle


def _nice(rough: float) -> float:
    """1, 2 or 5 times a power of ten, near it."""
    power = 10.0 ** math.floor(math.log10(rough))
    factor: float = min((1.0, 2.0, 5.0, 10.0), key=lambda k: abs(math.log(k * power / rough)))
    return factor * power


# Nodes given their parents


def _model(node: Local, sets: list[int], centre: Sequence[float], digits: int) -> dict[str, Any]:
    found = node.of.taking(np.array(sets, dtype=np.int64)).script(_centred(node.terms, centre))
    made: dict[str, Any] = {}
    for name, value in found.items():
        if name in ("cov", "between"):
            made[name] = _packed(value, digits)
        elif name in ("df", "withinDf"):
            made[name] = _degrees(value)
        elif name == "betweenDf":
            made[name] = _degrees(np.array([value]))[0]
        else:
            made[name] = rounded(value, digits) if isinstance(value, np.ndarray) else value
    if node.switches:
        made["switches"] = list(node.switches)
    return made | ({"terms": [list(term) for term in node.terms]} if "coef" in found else {})


def _centred(terms: Sequence[Term], centre: Sequence[float]) -> Floats:
    """What makes coefficients those of parents less their centres, (q, q)."""
    T = np.eye(len(terms) + 1)
    T[0, 1:] = [centre[node] if level < 0 else 0.0 for node, level in terms]
    return T


def _packed(cov: Floats, digits: int) -> list[list[float]] | None:
    """The upper halves of symmetric matrices, row by row; None where all are zero."""
    if not cov.any():
        return None
    found: list[list[float]] = rounded(cov[:, *np.triu_indices(cov.shape[1])], digits)
    return found


def _degrees(df: Floats) -> list[float | None]:
    return [None if math.isinf(of) else float(f"{of:.{_DIGITS}g}") for of in df.tolist()]
