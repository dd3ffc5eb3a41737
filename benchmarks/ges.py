"""Greedy equivalence search (Chickering, 2002) beside hill climbing, on cells of the paper's grid.

A prototype: is it worth a learner of its own? Scores with partial pooling differ within a class. An
operator is scored as Chickering does, by the family that it changes in one graph of the class, and
hill climbing goes on from a graph of the class that is found. Distances are SHD of classes from the
true one.

    python benchmarks/ges.py [--tables K] [--seed S] [--results FILE]
"""

from __future__ import annotations

import argparse
import math
from itertools import combinations
from pathlib import Path

import numpy as np
from tiny import parsed, tiny

import poolbn as pb
from poolbn.graph.equivalence import completed, extended
from poolbn.scoring.local import LocalScores

CELLS = (  # nodes, parents, data sets, rows of each
    (10, 1, 5, 20),
    (10, 1, 10, 50),
    (10, 2, 5, 20),
    (10, 2, 10, 50),
    (10, 4, 10, 50),
    (20, 2, 10, 50),
)
SUBSETS = 4  # neighbours that an operator directs, at most


class Class:
    """A CPDAG: directed arcs and undirected edges, (N, N)."""

    def __init__(self, N: int) -> None:
        self.directed = np.zeros((N, N), dtype=bool)
        self.undirected = np.zeros((N, N), dtype=bool)

    @property
    def joined(self) -> np.ndarray:
        return self.directed | self.directed.T | self.undirected

    def clique(self, nodes: set[int]) -> bool:
        joined = self.joined
        return all(joined[a, b] for a, b in combinations(nodes, 2))

    def blocked(self, y: int, x: int, without: set[int]) -> bool:
        """Whether each semi-directed path from y to x passes one of these nodes."""
        seen, todo = {y}, [y]
        while todo:
            a = todo.pop()
            for b in np.flatnonzero(self.directed[a] | self.undirected[a]).tolist():
                if b == x:
                    return False
                if b not in seen and b not in without:
                    seen.add(b)
                    todo.append(b)
        return True

    def moved(self, arcs: np.ndarray, edges: np.ndarray) -> None:
        """Become the class of a partially directed graph."""
        self.directed, self.undirected = completed(one_graph(arcs, edges))


def one_graph(arcs: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """An acyclic graph of a partially directed one."""
    pairs = np.argwhere(arcs).tolist(), np.argwhere(np.triu(edges)).tolist()
    dag = np.zeros_like(arcs)
    for p, c in extended(range(len(arcs)), *pairs):
        dag[p, c] = True
    return dag


def subsets(nodes: set[int]):
    for k in range(min(len(nodes), SUBSETS) + 1):
        yield from (set(some) for some in combinations(sorted(nodes), k))


class Search:
    def __init__(self, scores: LocalScores) -> None:
        self.scores = scores
        self.N = len(scores.names)
        self.at = Class(self.N)

    def gains(self, asked: list[tuple[tuple, tuple]]) -> np.ndarray:
        """What each pair of families, after and before, gains."""
        flat = [family for pair in asked for family in pair]
        values = np.array(self.scores(flat)).reshape(-1, 2)
        return values[:, 0] - values[:, 1]

    def around(self, x: int, y: int) -> tuple[set[int], set[int], set[int]]:
        """Neighbours of y joined to x, neighbours not joined to x, and parents of y."""
        joined = self.at.joined
        near = set(np.flatnonzero(self.at.undirected[:, y]).tolist()) - {x}
        na = {v for v in near if joined[v, x]}
        return na, near - na, set(np.flatnonzero(self.at.directed[:, y]).tolist())

    def best(self, operators: list, forward: bool):
        asked = []
        for x, y, _, given, _ in operators:
            more, less = tuple(sorted(given | {x})), tuple(sorted(given - {x}))
            asked.append(((y, more), (y, less)) if forward else ((y, less), (y, more)))
        gains = self.gains(asked)
        for k in np.argsort(-gains, kind="stable").tolist():
            if gains[k] <= 1e-8:
                return None
            x, y, _, _, between = operators[k]
            if not forward or self.at.blocked(y, x, between):
                return operators[k]
        return None

    def inserts(self) -> list:
        found, joined = [], self.at.joined
        for x in range(self.N):
            for y in range(self.N):
                if x == y or joined[x, y]:
                    continue
                na, free, parents = self.around(x, y)
                found += [
                    (x, y, T, na | T | parents, na | T)
                    for T in subsets(free)
                    if self.at.clique(na | T)
                ]
        return found

    def deletes(self) -> list:
        found = []
        for x, y in np.argwhere(self.at.directed | self.at.undirected).tolist():
            na, _, parents = self.around(x, y)
            found += [
                (x, y, H, (na - H) | (parents - {x}), na)
                for H in subsets(na)
                if self.at.clique(na - H)
            ]
        return found

    def insert(self, x: int, y: int, T: set[int], *_: object) -> None:
        arcs, edges = self.at.directed.copy(), self.at.undirected.copy()
        arcs[x, y] = True
        for t in T:
            arcs[t, y], edges[t, y], edges[y, t] = True, False, False
        self.at.moved(arcs, edges)

    def delete(self, x: int, y: int, H: set[int], *_: object) -> None:
        arcs, edges = self.at.directed.copy(), self.at.undirected.copy()
        arcs[x, y] = edges[x, y] = edges[y, x] = False
        for h in H:
            if edges[y, h]:
                arcs[y, h], edges[y, h], edges[h, y] = True, False, False
            if edges[x, h]:
                arcs[x, h], edges[x, h], edges[h, x] = True, False, False
        self.at.moved(arcs, edges)

    def run(self) -> pb.Dag:
        seen = set()
        for forward, operators, apply in (
            (True, self.inserts, self.insert), (False, self.deletes, self.delete)):  # fmt: skip
            while (chosen := self.best(operators(), forward)) is not None:
                apply(*chosen)
                key = forward, self.at.directed.tobytes(), self.at.undirected.tobytes()
                if key in seen:  # scores that differ within a class can go in circles
                    break
                seen.add(key)
        dag = one_graph(self.at.directed, self.at.undirected)
        names = self.scores.names
        return pb.Dag(names, [(names[p], names[c]) for p, c in np.argwhere(dag)])


def ges(stats: pb.GroupStats, score: str = "bic") -> pb.Dag:
    return Search(LocalScores(stats, pooling=pb.Partial(), score=score)).run()


def with_error(values: np.ndarray) -> str:
    return f"{values.mean():.2f} ({values.std(ddof=1) / math.sqrt(len(values)):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--results", type=Path)
    given = parsed(parser, tables=2)
    ways = ("hill climbing", "20 restarts", "GES", "hill climbing from GES")
    lines = [
        "| nodes | parents | data sets | rows of each | "
        + " | ".join(ways)
        + " | GES minus restarts | hill climbing from GES minus restarts |",
        "| " + "--- | " * (6 + len(ways)),
    ]
    for N, parents, data_sets, rows in tiny(CELLS, ((5, 1, 3, 20),)):
        found = []
        for seed in range(given.seed, given.seed + given.tables):
            dag = pb.random_dag(N, parents, seed=seed)
            truth = pb.random_network(dag, data_sets, seed=seed)
            stats = pb.stats(pb.random_table(truth, rows, seed=seed), group="F")
            again, own = pb.HillClimb(restarts=20, perturb=3), ges(stats)
            nets = (
                pb.learn(stats, preset="paper"), pb.learn(stats, search=again, preset="paper"), own,
                pb.learn(stats, start=own, preset="paper"),
            )  # fmt: skip
            found.append([pb.metrics.shd(net, dag) for net in nets])
        shd = np.array(found, dtype=float)
        cells = [with_error(column) for column in shd.T]
        cells += [with_error(shd[:, k] - shd[:, 1]) for k in (2, 3)]
        lines.append(f"| {N} | {parents} | {data_sets} | {rows} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if given.results:
        given.results.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
