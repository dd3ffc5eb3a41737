"""The tables of a report page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from poolbn.assess.comparison import Comparison
from poolbn.assess.resample import Bootstrap
from poolbn.inference.heterogeneity import RESIDUAL
from poolbn.network.network import Network
from poolbn.page.numbers import explained
from poolbn.page.words import arrow, is_warning, number, p_value, percent
from poolbn.show.marks import arc_marks

if TYPE_CHECKING:
    import pandas as pd

_MOST = 400  # rows of a table that grows with the square of the nodes


class Cell(NamedTuple):
    """A cell of a table.

    Attributes:
        text: what it shows.
        value: what it is sorted by; None for last.
        arc: the place of the arc that it leads to.
        node: the place of the node that it leads to.
    """

    text: str
    value: float | str | None
    arc: int | None = None
    node: int | None = None


@dataclass(frozen=True)
class PageTable:
    """A table.

    Attributes:
        key: its id in the page.
        title: what it is.
        columns: names, each with an explanation.
        rows: as many cells each.
        note: what to know about it.
    """

    key: str
    title: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Which columns hold numbers."""
        columns = zip(*self.rows, strict=True)
        return tuple(not any(isinstance(cell.value, str) for cell in cells) for cells in columns)


def _value(value: float | None, text: str | None = None) -> Cell:
    sortable = value is not None and math.isfinite(value)
    return Cell(number(value) if text is None else text, value if sortable else None)


def _p(p: float | None) -> Cell:
    return _value(p, p_value(p))


def _text(text: str) -> Cell:
    return Cell(text, text.lower())


def arcs_table(net: Network, tests: pd.DataFrame | None, boot: Bootstrap | None) -> PageTable:
    """A row for each arc."""
    columns = [
        ("arc", "choose it to see its effect in each data set"),
        (
            "effect",
            "change of the second for one unit of the first, in the population of data sets",
        ),
        ("lower", "of the 95% interval of the effect"),
        ("upper", "of the 95% interval of the effect"),
        ("standardised", "in standard deviations of the second for one of the first"),
        ("SD between", "standard deviation of the effect between data sets"),
        ("opposite", "share of the data sets in which the effect has the other sign"),
        ("direction", "whether equivalent networks have the arc the other way round"),
    ]
    if tests is not None:
        columns.insert(7, ("p, same effect", "test for the same effect in all data sets"))
    if boot is not None:
        columns.insert(8, ("strength", "share of bootstrap networks with an arc between the two"))
    rows = []
    for k, (mark, row) in enumerate(
        zip(arc_marks(net), net.effects().to_dict("records"), strict=True)
    ):
        fit = net.fits[mark.child]
        name = arrow(mark.parent, mark.child)
        between = fit.between_sd(fit.position(mark.parent))
        cells = [
            Cell(name, name.lower(), arc=k),
            *(_value(float(row[column])) for column in ("effect", "lower", "upper")),
            _value(mark.effect),
            _value(between),
            _value(float(row["opposite"]), percent(float(row["opposite"]))),
        ]
        if tests is not None:
            cells.append(_p(float(tests["p_value"].iloc[k])))
        if boot is not None:
            a, b = boot.nodes.index(mark.parent), boot.nodes.index(mark.child)
            cells.append(_value(float(boot.strength[a, b]), f"{boot.strength[a, b]:.2f}"))
        cells.append(_text("either way" if mark.reversible else "determined"))
        rows.append(tuple(cells))
    note = "" if rows else "There are no arcs: no variable depends on another."
    return PageTable("arcs", "Direct effects", tuple(columns), tuple(rows), note)


def nodes_table(net: Network, tests: pd.DataFrame | None) -> PageTable:
    """A row for each node."""
    columns = [
        ("variable", "choose it to see its distribution"),
        ("depends on", "its parents"),
        ("explained", "share of the variance inside data sets that its parents explain"),
        ("residual SD", "least and largest of the data sets"),
        ("log-likelihood", "of its rows given its parents"),
        ("parameters", "that were estimated"),
        ("pooling", "how the data sets share strength"),
        ("fit", "what happened in the fit"),
    ]
    if tests is not None:
        columns.insert(4, ("p, same SD", "test for the same residual variance in all data sets"))
    p_values = {} if tests is None else _residual_tests(tests)
    rows = []
    for i, node in enumerate(net.dag.nodes):
        fit = net.fits[node]
        share = explained(net, fit)
        sd = np.sqrt(fit.sigma2)
        low, high = number(float(sd.min())), number(float(sd.max()))
        cells = [
            Cell(node, node.lower(), node=i),
            _text(", ".join(fit.parents) or "–"),
            _value(share, percent(share) if fit.parents and math.isfinite(share) else "–"),
            Cell(low if low == high else f"{low} to {high}", float(sd.max())),
        ]
        if tests is not None:
            cells.append(_p(p_values.get(node)))
        status = f"⚠ {fit.status}" if is_warning(fit) else str(fit.status)
        cells += [
            _value(fit.loglik),
            _value(float(fit.n_params)),
            _text(str(fit.pooling)),
            _text(status),
        ]
        rows.append(tuple(cells))
    return PageTable("nodes", "Variables", tuple(columns), tuple(rows))


def _residual_tests(tests: pd.DataFrame) -> dict[str, float]:
    own = tests[tests["parent"] == RESIDUAL]
    return dict(zip(own["child"].tolist(), own["p_value"].tolist(), strict=True))


def equality_table(net: Network, tests: pd.DataFrame) -> PageTable:
    """A row for each test for differences between data sets."""
    columns = (
        ("what", "an effect, or the residual variance of a variable"),
        ("LR statistic", "of the two likelihoods"),
        ("p-value", "small if data sets differ by more than chance makes"),
    )
    place = {node: i for i, node in enumerate(net.dag.nodes)}
    rows = []
    for k, (parent, child, lr, p) in enumerate(tests.itertuples(index=False, name=None)):
        if parent == RESIDUAL:
            name = f"residual variance of {child}"
            first = Cell(name, name.lower(), node=place[child])
        else:
            name = arrow(parent, child)
            first = Cell(name, name.lower(), arc=k)
        rows.append((first, _value(lr), _p(p)))
    note = (
        "Effects were chosen by a search of the same data, so their p-values are rather too small, "
        "as with every test after a search."
    )
    return PageTable("tests", "Tests for equality", columns, tuple(rows), note)


def data_table(net: Network, names: list[str], dropped: Mapping[Any, int] | None) -> PageTable:
    """A row for each data set.

    Args:
        net: the network.
        names: of the data sets.
        dropped: rows that were left out, by data set; None if that is not known.
    """
    columns = [
        ("data set", ""),
        ("rows", "that were used"),
        ("share", "of all rows: the probability of the data set"),
    ]
    if dropped is not None:
        columns.append(("left out", "rows with a missing cell"))
    if net.adapted:
        columns.append(("part", "whether the network was learned from it"))
    rows = []
    for level, name, n in zip(net.levels, names, net.n.tolist(), strict=True):
        cells = [
            _text(name),
            _value(float(n), f"{n:,}"),
            _value(n / net.n_rows, percent(n / net.n_rows)),
        ]
        if dropped is not None:
            cells.append(_value(float(dropped.get(level, 0)), f"{dropped.get(level, 0):,}"))
        if net.adapted:
            cells.append(_text("came later" if level in net.adapted else "learned from"))
        rows.append(tuple(cells))
    note = "" if dropped is not None else "How many rows were left out is not known here."
    return PageTable("data", "Data sets", tuple(columns), tuple(rows), note)


def totals_table(net: Network) -> PageTable:
    """A row for each two nodes that a directed path joins: the largest ones, if they are many."""
    columns = (
        ("cause", "that is set by an intervention"),
        ("effect", "that follows"),
        ("total", "expected change for one unit of the cause, along all paths"),
        ("SD between", "standard deviation of the total between data sets"),
        ("least", "of the data sets"),
        ("largest", "of the data sets"),
        ("standardised", "mean of the data sets, in standard deviations"),
    )
    sd = np.sqrt(np.einsum("j,jii->i", net.joint.prior, net.joint.cov))
    place = {node: i for i, node in enumerate(net.dag.nodes)}
    rows = []
    for cause, effect, total, between, *own in net.total_effects().itertuples(
        index=False, name=None
    ):
        a, b = place[cause], place[effect]
        ratio = float(sd[a] / sd[b]) if sd[b] > 0 else math.nan
        standard = float(np.mean(own)) * ratio
        first, second = Cell(cause, cause.lower(), node=a), Cell(effect, effect.lower(), node=b)
        numbers = (total, between, min(own), max(own), standard)
        rows.append((first, second, *(_value(float(value)) for value in numbers)))
    count = len(rows)
    rows.sort(key=lambda row: -abs(row[-1].value) if isinstance(row[-1].value, float) else 0.0)
    note = (
        "What a change of one variable from outside does to another, if each arc of the network is "
        "a cause, and no common cause is missing."
    )
    if count > _MOST:
        note += f" The {_MOST} largest of {count:,}; net.total_effects() has all."
    return PageTable("totals", "Total effects", columns, tuple(rows[:_MOST]), note)


def comparison_table(found: Comparison) -> PageTable:
    """A row for each pooling."""
    columns = (
        ("pooling", ""),
        ("score", "of the network learned from all rows"),
        ("arcs", "of that network"),
        ("log-likelihood", "of a held-out row; higher is better"),
        ("behind", "the best pooling by so much"),
        ("± se", "standard error of that, over the folds"),
        ("folds behind", f"of {len(found.rows)}"),
        ("new data set", "log-likelihood of a row of a data set that was left out as a whole"),
        ("error, known", "of predictions, in standard deviations, with the data set known"),
        ("error, unknown", "the same with the data set unknown"),
        ("F1", "of guessing the data set of a row"),
    )
    rows, notes = [], []
    for name, *values, note in found.table().reset_index().itertuples(index=False, name=None):
        title = f"{name} (best)" if name == found.best else str(name)
        rows.append((_text(title), *(_value(float(value)) for value in values)))
        if note:
            notes.append(f"{name}: {note}.")
    return PageTable("poolings", "Poolings compared", columns, tuple(rows), " ".join(notes))


def variables_table(found: Comparison) -> PageTable:
    """A row for each variable: how well poolings predict it."""
    table = found.by_variable()
    names = [f"{pooling}, {kind}" for kind in ("known", "unknown") for pooling in found.poolings]
    columns = (("variable", ""), *((name, "") for name in names))
    rows = [
        (_text(str(variable)), *(_value(float(value), f"{value:.3f}") for value in values))
        for variable, *values in table.itertuples(name=None)
    ]
    note = (
        "Root mean square error of each variable predicted from all others, over its standard "
        "deviation, with the data set of a row known and unknown: 1 is as bad as always predicting "
        "the mean."
    )
    return PageTable("errors", "Errors of predictions", columns, tuple(rows), note)


def strengths_table(net: Network, boot: Bootstrap) -> PageTable:
    """A row for each two nodes with an arc in a bootstrap network."""
    columns = (
        ("pair", "in the more frequent direction"),
        ("strength", "share of the networks with an arc between the two"),
        ("direction", "share of these in which it points as named"),
        ("above threshold", f"of {number(boot.threshold)}"),
        ("in this network", "and in which direction"),
    )
    arcs = {arc: k for k, arc in enumerate(net.dag.arcs)}
    rows = []
    pairs = boot.pairs()
    for a, b, strength, direction in pairs[:_MOST]:
        here = "as named" if (a, b) in arcs else "the other way" if (b, a) in arcs else "no"
        name = arrow(a, b) if direction != 0.5 else f"{a} – {b}"
        rows.append(
            (
                Cell(name, name.lower(), arc=arcs.get((a, b), arcs.get((b, a)))),
                _value(strength, f"{strength:.2f}"),
                _value(direction, f"{direction:.2f}"),
                _text("yes" if strength > boot.threshold or strength == 1 else "no"),
                _text(here),
            )
        )
    note = f"The {_MOST} strongest of {len(pairs):,} pairs." if len(pairs) > _MOST else ""
    return PageTable("strengths", "Strength of arcs", columns, tuple(rows), note)
