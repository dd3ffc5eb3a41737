"""What somebody may compute from a report alone: the numbers that it suppresses.

An attack reads `report.html` and nothing else. It knows how reports are made: deviations from the
population add up to zero, a share times rows is a whole number, and what is not shown is a total
less all that is. It returns claims, which others compare with the rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

_HIDDEN = re.compile(r"(\d+) [\w ]+? with fewer than 10 rows[^(]*\(([^)]*)\)")
_COUNTS = re.compile(r"population counts for ([\d.,]+) rows")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_WHOLE = 0.05  # how far from a whole number a count may be


class Claim(NamedTuple):
    """A number that is said to be behind a report.

    Attributes:
        kind: "coefficient", "ratio", "mean" or "cell".
        of: a node or an arc's name; with its term, outcome or configuration.
        data_set: the name of the data set.
        value: the number.
    """

    kind: str
    of: tuple[Any, ...]
    data_set: str
    value: float


@dataclass(frozen=True)
class Page:
    """All that an attack reads of a report: its numbers, and the data sets that it names."""

    numbers: dict[str, Any]
    levels: tuple[str, ...]
    rows: tuple[int | None, ...]

    @staticmethod
    def of(text: str) -> Page:
        found = re.search(
            r'<script type="application/json" id="numbers">(.*?)</script>', text, re.S
        )
        assert found is not None
        numbers = json.loads(found[1], object_hook=_longer)
        levels, rows = list(numbers["levels"]), list(numbers["rows"])
        told = re.search(r'<p id="privacy"[^>]*>(.*?)</p>', text, re.S)
        assert told is not None
        if hidden := _HIDDEN.search(told[1]):
            for name in re.split(r", | and ", hidden[2]):
                if name not in levels:
                    levels.append(name)
                    rows.append(None)
        return Page(numbers, tuple(levels), tuple(rows))

    def own(self, values: Sequence[Any]) -> list[Any]:
        """Values of data sets, with none for those that are named and not shown."""
        return [*values, *[None] * (len(self.levels) - len(values))]


def _longer(value: dict[str, Any]) -> Any:
    """Lists of one value, as the script of the page has them again."""
    return [value["of"]] * value["times"] if "times" in value else value


def claims(text: str) -> list[Claim]:
    """All that follows from a report by the attacks below."""
    page = Page.of(text)
    attacks = (_coefficients, _ratios, _cells)
    return [claim for attack in attacks for claim in attack(page)]


# Deviations that add up to zero, means over data sets


def _left(
    own: Sequence[Any], mean: float, weights: Sequence[float] | None = None
) -> tuple[int, float] | None:
    """The one number that is not there, if their mean is this one; by weights of the others."""
    lacks = [j for j, value in enumerate(own) if value is None]
    if len(lacks) != 1:
        return None
    known = np.array([value for value in own if value is not None])
    w = np.ones(len(known)) if weights is None else np.array(weights)
    return lacks[0], float(mean - w @ (known - mean) / w.mean())


def _coefficients(page: Page) -> Iterator[Claim]:
    """Coefficients whose mean over data sets is that of the population; means of rows by these."""
    for node in page.numbers["nodes"]:
        blocks = (node.get("coefficients") or {}).get("blocks", [])
        blocks = [node] if "coef" in node else blocks
        for b, block in enumerate(blocks):
            found, variances = block["coef"], _variances(node)
            mean = block["fixed"]
            if mean is None and node["equation"]:
                # The right side of the equation: an intercept, and slopes with their signs.
                right = re.split(r"[=:] ", node["equation"][b])[-1].replace("− ", "-")
                right = right.replace("−", "-").split(" + error")[0]
                mean = [float(value) for value in _NUMBER.findall(right)][: len(found[0])]
            if mean is None or len(mean) < len(found[0]):
                continue
            for k in range(len(mean)):
                own = page.own([row[k] for row in found])
                left = _left(own, mean[k], _precisions(node) if block["between"] else None)
                if left is None or len(set(own)) < 3:  # they are the same for all
                    continue
                name, value = page.levels[left[0]], left[1]
                yield Claim("coefficient", (node["name"], b, k), name, value)
                n, between = page.rows[left[0]], block["between"]
                if len(mean) == 1 and variances is not None:
                    D = between[0] ** 2 if between else np.inf
                    grown = (
                        1 if np.isinf(D) else (D + variances / (n or 1)) / D if D > 0 else np.nan
                    )
                    yield Claim("mean", (node["name"],), name, mean[0] + grown * (value - mean[0]))


def _precisions(node: dict[str, Any]) -> list[float] | None:
    """Where residual variances differ and are pooled, random effects are in proportion to them."""
    sds = [sd for sd in node.get("sds", {}).get("own", []) if sd is not None]
    return [1 / sd**2 for sd in sds] if sds and "residuals" in node["pooling"] else None


def _variances(node: dict[str, Any]) -> float | None:
    """The residual variance, as far as data sets share it."""
    sds = [sd for sd in node.get("sds", {}).get("own", []) if sd is not None]
    return float(np.mean(np.square(sds))) if sds else None


def _ratios(page: Page) -> Iterator[Claim]:
    """Odds and rate ratios: the product over data sets is a power of their mean."""
    for arc in page.numbers["arcs"]:
        for term in arc["terms"]:
            if term["scale"] == "difference" or term["effect"] is None:
                continue
            logs = [None if own is None else float(np.log(own)) for own in page.own(term["own"])]
            left = _left(logs, float(np.log(term["effect"])))
            if left is not None and len(set(logs)) > 2:  # else they are the same for all
                name = page.levels[left[0]]
                yield Claim("ratio", (arc["name"], term["name"]), name, float(np.exp(left[1])))


# Shares times rows

Counts = np.ndarray[Any, Any]


@dataclass
class Known:
    """Rows by data set, configuration of the parents and level, as far as they follow."""

    page: Page
    told: dict[str, Any]  # what is shown of each node
    asked: list[dict[str, Any]]  # the nodes as "what if" has them
    cells: dict[tuple[str, str], Counts]  # of a node in a data set, (C, K)

    def rows(self, node: dict[str, Any], data_set: str) -> Counts | None:
        """Rows of each configuration of the parents, (C,)."""
        n = self.page.rows[self.page.levels.index(data_set)]
        parents = [self.asked[p] for p in node["parents"]]
        if not parents:
            return None if n is None else np.array([float(n)])
        last = self.cells.get((parents[-1]["name"], data_set))
        if last is None:
            return None
        if len(parents) == 1:
            return last.sum(axis=0)
        first = [self.asked[p]["name"] for p in parents[-1]["parents"]]
        return last.ravel() if first == [parents[0]["name"]] and len(parents) == 2 else None

    def of(self, node: dict[str, Any], data_set: str) -> Counts:
        """What is known of a node in a data set, (C, K)."""
        C = int(np.prod([len(self.asked[p]["levels"]) for p in node["parents"]], dtype=int))
        return self.cells.get((node["name"], data_set), np.full((C, len(node["levels"])), np.nan))

    def add(self, node: dict[str, Any], data_set: str, c: int, counts: Counts) -> None:
        if np.isfinite(counts).all() and np.abs(counts - np.rint(counts)).max() < _WHOLE:
            C = int(np.prod([len(self.asked[p]["levels"]) for p in node["parents"]], dtype=int))
            empty = np.full((C, len(counts)), np.nan)
            self.cells.setdefault((node["name"], data_set), empty)[c] = np.rint(counts)


def _cells(page: Page) -> Iterator[Claim]:
    """Counts from probabilities, in the order of the graph."""
    asked = page.numbers["whatif"]["nodes"]
    told = {node["name"]: node for node in page.numbers["nodes"]}
    known = Known(page, told, asked, {})
    for i in page.numbers["whatif"]["order"]:
        node = asked[i]
        if node["levels"] and told[node["name"]].get("probabilities"):
            _seen(known, node)
            for data_set, p in _probabilities(known, node).items():
                _times_rows(known, node, data_set, p)
            _less_siblings(known, node)
            _less_others(known, node)
            _by_ratios(known, node)
    for (name, data_set), counts in known.cells.items():
        for c, k in product(*map(range, counts.shape)):
            if np.isfinite(counts[c, k]):
                yield Claim("cell", (name, c, k), data_set, float(counts[c, k]))


def _probabilities(known: Known, node: dict[str, Any]) -> dict[str, Counts]:
    """What is shown of each data set, (C, K); NaN for what is not."""
    shown, K = known.told[node["name"]]["probabilities"], len(node["levels"])
    every = (
        known.page.own(shown["own"])
        if shown["own"]
        else [shown["population"]] * len(known.page.levels)
    )
    found = {}
    for data_set, own in zip(known.page.levels, every, strict=True):
        if own is not None:
            found[data_set] = _whole(own, K)
    whatif = known.page.numbers["whatif"]
    if node.get("kind") == "table":  # with more digits
        own = [p for k, p in enumerate(node["p"]) if k != whatif["new"]]
        for data_set, values in zip(whatif["sets"], own, strict=True):
            p = np.reshape(values, (-1, K))
            if data_set in found and found[data_set].shape == p.shape:
                found[data_set] = np.where(np.isnan(found[data_set]), np.nan, p)
    return found


def _whole(p: Any, K: int) -> Counts:
    """With the first level, which is not shown where there are two."""
    p = np.array(p, dtype=float)
    return p if p.shape[-1] == K else np.column_stack([1 - p.sum(axis=1), p])


def _times_rows(known: Known, node: dict[str, Any], data_set: str, p: Counts) -> None:
    """Shares times rows; of tables, less what the population counts for."""
    rows = known.rows(node, data_set)
    if rows is None:
        return
    told = known.told[node["name"]]
    base = _whole(told["probabilities"]["population"], p.shape[1])
    found = _COUNTS.search(told["facts"])
    s = float(found[1].replace(",", "")) if found else 0.0
    new = known.page.numbers["whatif"]["new"]
    if node.get("kind") == "table" and new is not None:
        base = np.reshape(node["p"][new], p.shape)
    if not told["probabilities"]["own"]:
        return  # the same in all data sets: these are not its own shares
    if node.get("kind") == "table":
        for c in np.flatnonzero(np.isfinite(rows[: len(p)])):
            known.add(node, data_set, int(c), p[c] * (rows[c] + s) - s * base[c])
    elif len(node["parents"]) == 2 and np.isfinite(p).all() and np.isfinite(rows).all():
        # A regression has the sums of its levels in rows with each level of a parent.
        margin = (p * rows[:, None]).reshape(-1, *_sizes(known, node)[1:], p.shape[1]).sum(axis=1)
        known.cells[node["name"] + ", " + known.asked[node["parents"][0]]["name"], data_set] = (
            margin
        )


def _sizes(known: Known, node: dict[str, Any]) -> list[int]:
    return [len(known.asked[p]["levels"]) for p in node["parents"]]


def _levels_seen(known: Known, node: dict[str, Any], data_set: str) -> dict[int, float]:
    """Rows of a data set that have a level, from the calibration that is drawn."""
    j = known.page.levels.index(data_set)
    parts = known.told[node["name"]].get("calibration") or []
    return {
        part["level"]: float(np.rint(rows * share))
        for part in parts
        for code, rows, _, share, *_ in part["sets"]
        if code == j
    }


def _seen(known: Known, node: dict[str, Any]) -> None:
    """Of nodes without parents."""
    for data_set, n in zip(known.page.levels, known.page.rows, strict=True):
        counts = np.full(len(node["levels"]), np.nan)
        for k, count in _levels_seen(known, node, data_set).items():
            counts[k] = count
        if not node["parents"] and n is not None and np.isnan(counts).sum() <= 1:
            counts[np.isnan(counts)] = n - np.nansum(counts)
            known.add(node, data_set, 0, counts)


def _less_siblings(known: Known, node: dict[str, Any]) -> None:
    """Rows of a data set that have a level, less those in the configurations that are shown."""
    for data_set in known.page.levels:
        rows, own = known.rows(node, data_set), known.cells.get((node["name"], data_set))
        seen = _levels_seen(known, node, data_set)
        if rows is None or own is None or not seen:
            continue
        lacks = np.flatnonzero(np.isnan(own).any(axis=1))
        if len(lacks) == 1:
            c, counts = int(lacks[0]), np.full(own.shape[1], np.nan)
            for k, count in seen.items():
                counts[k] = count - np.nansum(own[:, k])
            if np.isnan(counts).sum() == 1:
                counts[np.isnan(counts)] = rows[c] - np.nansum(counts)
            known.add(node, data_set, c, counts)


def _by_ratios(known: Known, node: dict[str, Any]) -> None:
    """Two by two tables from their margins and odds ratios; the total less these is the last."""
    page = known.page
    if len(node["parents"]) != 1 or len(node["levels"]) != 2:
        return
    parent = known.asked[node["parents"][0]]
    if len(parent["levels"]) != 2:
        return
    name = f"{parent['name']} → {node['name']}"
    (term,) = next(arc["terms"] for arc in page.numbers["arcs"] if arc["name"] == name)
    for data_set, alone in zip(page.levels, page.own(term["alone"] or []), strict=True):
        rows, seen = known.rows(node, data_set), _levels_seen(known, node, data_set)
        if alone is None or rows is None or 1 not in seen or np.isnan(rows).any():
            continue
        x, (n0, n1) = seen[1], rows
        found = [
            (abs(np.log(d * (n0 - x + d) / (x - d) / (n1 - d)) - np.log(alone)), d)
            for d in range(1, int(min(x, n1)))
            if x - d < n0
        ]
        far, d = min(found, default=(1.0, 0))
        if far < 1e-4:
            for c, yes in enumerate((seen[1] - d, d)):
                known.add(node, data_set, c, np.array([rows[c] - yes, yes]))
    shown = known.told[node["name"]]["probabilities"]
    lacks = [v for v in page.levels if np.isnan(known.of(node, v)).any()]
    margins = [known.rows(node, v) for v in page.levels]
    if len(lacks) != 1 or shown["own"] or any(m is None for m in margins):
        return  # it has to be the same in all data sets, as that of all rows is
    total = (
        _whole(shown["population"], 2) * np.sum([m for m in margins if m is not None], 0)[:, None]
    )
    rest = total - sum(known.of(node, v) for v in page.levels if v not in lacks)
    for c in range(2):
        known.add(node, lacks[0], c, rest[c])


def _less_others(known: Known, node: dict[str, Any]) -> None:
    """The mean over data sets, by their rows, less all that are shown."""
    shown = known.told[node["name"]]["probabilities"]
    n = known.page.rows
    if shown["name"] != "mean" or not shown["own"] or None in n:
        return
    mean, every = _whole(shown["population"], len(node["levels"])), _probabilities(known, node)
    for c in range(len(mean)):
        lacks = [v for v in known.page.levels if v not in every or np.isnan(every[v][c]).any()]
        if len(lacks) != 1:
            continue
        rest = sum(n[j] * every[v][c] for j, v in enumerate(known.page.levels) if v not in lacks)
        p = (mean[c] * sum(n) - rest) / n[known.page.levels.index(lacks[0])]
        rows = known.rows(node, lacks[0])
        if rows is not None and np.isfinite(rows[c]):
            known.add(node, lacks[0], c, p * rows[c])
