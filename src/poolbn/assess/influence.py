"""Whether one data set drives an effect: the same graph, fitted without each of them in turn.

Data sets are chosen, and no row is read again: sufficient statistics of the others are there
already. Nodes keep the pooling that they have, and no graph is searched for.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from poolbn.assess.refitting import fitted_to_some
from poolbn.errors import DataError, check_interval, check_option
from poolbn.later import pandas as pd
from poolbn.moments.data import Data
from poolbn.network.effects import RATIO, TERM
from poolbn.network.network import Network, learned_from
from poolbn.network.totals import TERM as TOTAL

Which = Literal["direct", "total"]
LeftOutBy = Literal["effect", "data set"]


class Ends(NamedTuple):
    """An effect in the population with its interval; of ratios the logarithms."""

    effect: float
    lower: float
    upper: float

    @property
    def conclusion(self) -> int | None:
        """The sign of all that the interval contains; 0 where it contains no effect."""
        if math.isnan(self.lower) or math.isnan(self.upper):
            return None
        return int(self.lower > 0) - int(self.upper < 0)


_UNKNOWN = Ends(math.nan, math.nan, math.nan)
_Key = tuple[str, ...]


@dataclass(frozen=True)
class Influence:
    """An effect, and what it is without each data set."""

    term: Mapping[str, Any]  # what it is of, as tables of networks have it
    ratio: bool  # whether it is the logarithm of a ratio
    all: Ends  # in all data sets
    without: Mapping[Hashable, Ends]  # NaN where the others do not give it

    @property
    def child(self) -> str:
        """The node that it is an effect on."""
        return str(self.term["child" if "child" in self.term else "effect"])

    @property
    def known(self) -> dict[Hashable, Ends]:
        """Without those data sets that can be left out."""
        return {v: ends for v, ends in self.without.items() if not math.isnan(ends.effect)}

    @property
    def largest(self) -> Hashable:
        """The data set without which the effect changes most; None where none can be left out."""
        known = self.known
        return max(known, key=lambda v: abs(known[v].effect - self.all.effect), default=None)

    @property
    def sign_changes(self) -> int:
        """The number of data sets without which it has the other sign."""
        return sum(ends.effect * self.all.effect < 0 for ends in self.known.values())

    @property
    def changing(self) -> list[Hashable]:
        """The data sets without which the interval leaves no effect out, and did not, or did."""
        own = self.all.conclusion
        each = {v: ends.conclusion for v, ends in self.without.items()}
        return [v for v, one in each.items() if None not in (own, one) and one != own]

    @property
    def driver(self) -> Hashable:
        """The one data set that decides on which side of no effect the interval is; else None.

        Where it takes any of several to change that, no single one decides: there are too few.
        """
        changing = self.changing
        return changing[0] if len(changing) == 1 else None

    def reported(self, values: Iterable[float]) -> list[float]:
        """Numbers as a reader has them: ratios, not their logarithms."""
        numbers = np.array(list(values), dtype=np.float64)
        with np.errstate(over="ignore"):
            told: list[float] = (np.exp(numbers) if self.ratio else numbers).tolist()
        return told

    def left_out(self, level: Hashable) -> tuple[Any, ...]:
        """A data set, and the effect without it: `_LONG`."""
        ends = self.without.get(level, _UNKNOWN)
        return level, *self.reported((*ends, ends.effect - self.all.effect))


def influences(
    net: Network, data: Data, effects: Which = "direct", interval: float = 0.95
) -> list[Influence]:
    """All effects of a network that was fitted to these data, in the order of its tables."""
    if len(data.levels) < 2:
        raise DataError(
            f"there is one data set, {data.levels[0]!r}; leaving one out needs two or more"
        )
    own = _effects(net, effects, interval)
    found: dict[Hashable, dict[_Key, tuple[dict[str, Any], Ends]]] = {}
    for level in data.levels:
        try:
            made = fitted_to_some(net, data, [other for other in data.levels if other != level])
        except DataError:  # the others do not give a node
            made = None
        found[level] = {} if made is None else _effects(made.net, effects, interval)
    return [
        Influence(
            term,
            key[-1].endswith(RATIO),
            ends,
            {v: each[key][1] if key in each else _UNKNOWN for v, each in found.items()},
        )
        for key, (term, ends) in own.items()
    ]


def _effects(
    net: Network, which: Which, interval: float
) -> dict[_Key, tuple[dict[str, Any], Ends]]:
    """Terms and effects, by what tells them apart: names, levels with what they replace, scale."""
    terms: tuple[str, ...]
    if which == "direct":
        table, terms, value = net.effects(interval), TERM, "effect"
        names = ("parent", "level", "child")
    else:
        table, terms, value = net.total_effects(interval=interval), TOTAL, "total"
        names = ("cause", "to", "effect")
    found = {}
    for row in table.to_dict("records"):
        start, level, end = (row[name] for name in names)
        first = [str(net.fits[node].categories[:1]) for node in (start, end)]
        told = str(level) if net.fits[start].categories else ""
        key = (start, told, end, *first, row["outcome"], row["scale"])
        ends = Ends(*(row[name] for name in (value, "lower", "upper")))
        if row["scale"].endswith(RATIO):
            with np.errstate(divide="ignore"):
                ends = Ends(*np.log(ends).tolist())
        found[key] = {name: row[name] for name in terms}, ends
    return found


_LONG = ("data_set", "without", "without_lower", "without_upper", "change")
_CHANGES = ("sign_changes", "interval_changes", "driven_by")


def leave_one_out(
    net: Network, data: Data | None, effects: Which, by: LeftOutBy, interval: float
) -> pd.DataFrame:
    """See `Network.leave_one_out`."""
    check_option("effects", effects, get_args(Which))
    check_option("by", by, get_args(LeftOutBy))
    check_interval(interval)
    known = learned_from(net, data, "effects without a data set")
    term, value = (TERM, "effect") if effects == "direct" else (TOTAL, "total")
    long = by == "data set"
    rows: list[tuple[Any, ...]] = []
    for found in influences(net, known, effects, interval):
        own, one = tuple(found.term.values()), found.left_out(found.largest)
        if long:
            rows += [(*own, *found.left_out(level)) for level in found.without]
        else:
            counts = found.sign_changes, len(found.changing), found.driver
            rows.append((*own, *found.reported(found.all), *one, *counts))
    names = (*term, *_LONG) if long else (*term, value, "lower", "upper", *_LONG, *_CHANGES)
    table = pd.DataFrame(rows, columns=list(names))
    return table.astype({name: object for name in ("data_set", "driven_by") if name in names})
