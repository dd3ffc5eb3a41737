"""bnlearn's bic-cg, in numpy, with the data set as a parent of every node; and hill climbing.

A continuous node has a regression on its continuous parents for each configuration of its discrete
ones and the data set, a discrete node a table for each; it has no continuous parents. As bnlearn
has it: residual SDs divide by degrees of freedom, configurations that no row has count as
parameters, and a regression of no more rows than coefficients makes the family impossible.

    python benchmarks/conditional_gaussian.py    # holds it against bnlearn's own numbers
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tiny import parsed, tiny

import poolbn as pb

REFERENCE = Path(__file__).parents[1] / "tests" / "reference" / "scores"
SMALLEST = 1e-8  # residual SD


class ConditionalGaussian:
    """Scores of families of one table.

    Args:
        frame: the table; columns of text are discrete.
        group: the column that is a parent of every node; None for none.
        score: "bic" or "loglik".
    """

    def __init__(self, frame: pd.DataFrame, group: str | None, score: str = "bic") -> None:
        self.always = [] if group is None else [group]
        self.nodes = [name for name in frame.columns if name != group]
        self.codes: dict[str, NDArray[np.int64]] = {}
        self.sizes: dict[str, int] = {}
        self.numbers: dict[str, NDArray[np.float64]] = {}
        for name in frame.columns:
            if name in self.always or not pd.api.types.is_numeric_dtype(frame[name]):
                levels, self.codes[name] = np.unique(frame[name].to_numpy(str), return_inverse=True)
                self.sizes[name] = len(levels)
            else:
                self.numbers[name] = frame[name].to_numpy(float)
        self.n = len(frame)
        self.penalty = math.log(self.n) / 2 if score == "bic" else 0.0

    def __call__(self, node: str, parents: tuple[str, ...]) -> float:
        """The score of a family."""
        if node in self.codes and not set(parents) <= set(self.codes):
            return -math.inf
        configuration, C = np.zeros(self.n, dtype=np.int64), 1
        for name in [*self.always, *(name for name in parents if name in self.codes)]:
            configuration = configuration * self.sizes[name] + self.codes[name]
            C *= self.sizes[name]
        if node in self.codes:
            K = self.sizes[node]
            loglik = _table(np.bincount(configuration * K + self.codes[node], minlength=C * K), K)
            return loglik - self.penalty * C * (K - 1)
        columns = [self.numbers[name] for name in parents if name in self.numbers]
        X = np.column_stack([np.ones(self.n), *columns])
        loglik = _regressions(X, self.numbers[node], configuration)
        return loglik - self.penalty * C * (len(columns) + 2)


def _table(counts: NDArray[np.int64], K: int) -> float:
    n = counts.reshape(-1, K)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = n * np.log(n / n.sum(axis=1, keepdims=True))
    return float(np.nansum(terms))


def _regressions(
    X: NDArray[np.float64], y: NDArray[np.float64], configuration: NDArray[np.int64]
) -> float:
    order = np.argsort(configuration, kind="stable")
    ends = np.flatnonzero(np.diff(configuration[order])) + 1
    parts = np.split(order, ends)
    q = X.shape[1]
    if min(len(rows) for rows in parts) <= q:
        return -math.inf
    total = 0.0
    for rows in parts:
        residuals = y[rows] - X[rows] @ np.linalg.lstsq(X[rows], y[rows], rcond=None)[0]
        squares = float(residuals @ residuals)
        variance = squares / (len(rows) - q)
        if variance < SMALLEST**2:
            return -math.inf
        total -= len(rows) / 2 * math.log(2 * math.pi * variance) + squares / variance / 2
    return total


def climb(nodes: list[str], score: Callable[[str, tuple[str, ...]], float]) -> pb.Dag:
    """Hill climbing: from no arcs, the best one to add, remove or reverse, while any helps."""
    memo: dict[tuple[str, frozenset[str]], float] = {}

    def local(node: str, parents: frozenset[str]) -> float:
        key = node, parents
        if key not in memo:
            memo[key] = score(node, tuple(name for name in nodes if name in parents))
        return memo[key]

    parents = {node: frozenset[str]() for node in nodes}
    while True:
        best, move = 1e-8, None
        for changed in _moves(nodes, parents):
            gain = sum(local(node, new) - local(node, parents[node]) for node, new in changed)
            if gain > best:
                best, move = gain, changed
        if move is None:
            return pb.Dag(nodes, [(parent, node) for node in nodes for parent in parents[node]])
        parents.update(move)


def _moves(
    nodes: list[str], parents: dict[str, frozenset[str]]
) -> Iterator[list[tuple[str, frozenset[str]]]]:
    for node in nodes:
        for other in nodes:
            if other == node:
                continue
            own = parents[node]
            if other in own:
                yield [(node, own - {other})]
                if not _reaches(parents, other, node, without=True):
                    yield [(node, own - {other}), (other, parents[other] | {node})]
            elif node not in parents[other] and not _reaches(parents, node, other):
                yield [(node, own | {other})]


def _reaches(
    parents: dict[str, frozenset[str]], start: str, end: str, *, without: bool = False
) -> bool:
    """Whether a directed path leads from start to end; `without` the arc between them."""
    todo, seen = [end], set()
    while todo:
        node = todo.pop()
        for parent in parents[node]:
            if without and (parent, node) == (start, end):
                continue
            if parent == start:
                return True
            if parent not in seen:
                seen.add(parent)
                todo.append(parent)
    return False


def main() -> None:
    """Hold the scores against bnlearn's."""
    parsed(argparse.ArgumentParser(description=__doc__))
    cases = json.loads((REFERENCE / "scores.json").read_text())["cases"][: tiny(None, 2)]
    with gzip.open(REFERENCE / "clgaussian.test.csv.gz") as file:
        rows = pd.read_csv(file)
    worst, compared, impossible = 0.0, 0, 0
    for case in (case for case in cases if case["discrete"]):
        for group in (None, *case["discrete"]):
            for kind in ("loglik", "bic"):
                scores = ConditionalGaussian(rows, group, kind)
                for node, value in case["scores"][f"{kind}-cg"].items():
                    pa = [a for a, b in case["arcs"] if b == node]
                    if group is not None and group not in pa:
                        continue
                    ours = scores(node, tuple(name for name in pa if name != group))
                    compared += 1
                    if math.isinf(float(value)):
                        impossible += 1
                        assert ours == -math.inf, (case["net"], node)
                    else:
                        worst = max(worst, abs(ours / value - 1))
    print(f"{compared} scores, {impossible} of them -inf in both; largest difference {worst:.1e}")
    assert worst < 1e-8


if __name__ == "__main__":
    main()
