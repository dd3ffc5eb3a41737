"""Searches against brute force: all networks over four and five nodes, on 200 small problems.

`make test` takes the first eight for each pooling and number of nodes, the gate all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from helpers import learned_as_given, simulate, simulate_network

import poolbn as pb
from poolbn.run.progress import Progress
from poolbn.scoring.local import LocalScores
from poolbn.search import climbing
from poolbn.search.ordering import canonical_order
from poolbn.search.problem import Found
from poolbn.search.problem import Problem as SearchProblem
from poolbn.search.state import TIE, SearchState

NAMES = "dbeac"  # neither the order of the arcs nor that of the alphabet
POOLED = pb.Partial(residuals="pooled")
POOLINGS = ["complete", "none", "partial", POOLED]
FIRST, REST = range(8), range(8, 25)  # problems for each pooling and number of nodes

REML = pb.Partial(method="reml")
SEPARATE = pb.Partial(residuals="separate")
each_pooling = pytest.mark.parametrize("pooling", POOLINGS, ids=str)
each_size = pytest.mark.parametrize("nodes", [4, 5])
each_part = pytest.mark.parametrize(
    "part", [FIRST, pytest.param(REST, marks=pytest.mark.slow)], ids=["first", "rest"]
)


class Problem(NamedTuple):
    """Statistics, and the score of each child (rows) with each set of parents, a bit mask."""

    stats: pb.GroupStats
    pooling: str
    table: np.ndarray
    seed: tuple[int, ...]

    @property
    def rng(self) -> np.random.Generator:
        """A new one for each test: problems are shared."""
        return np.random.default_rng(self.seed)


@cache
def problem(seed: int, nodes: int, pooling: str) -> Problem:
    rng = np.random.default_rng([seed, nodes])
    sizes = {"data_sets": int(rng.integers(3, 5)), "rows": int(rng.integers(8, 16))}
    frame = simulate_network(seed, nodes, between=rng.choice([0.0, 0.5, 1.5]), **sizes)
    stats = pb.stats(frame, group="F")
    families = [
        (c, tuple(p for p in range(nodes) if mask >> p & 1))
        for c in range(nodes)
        for mask in range(2**nodes)
        if not mask >> c & 1
    ]
    table = np.full((nodes, 2**nodes), np.nan)
    scores = LocalScores(stats, pooling=pooling)(families)
    for (c, parents), score in zip(families, scores, strict=True):
        table[c, sum(1 << p for p in parents)] = score
    assert np.isfinite(scores).all()
    return Problem(stats, pooling, table, (seed, nodes, 1))


def problems(nodes: int, pooling: str, part: range) -> Iterator[Problem]:
    first = 1000 * [*POOLINGS, REML, SEPARATE].index(pooling)
    return (problem(first + k, nodes, pooling) for k in part)


@cache
def all_dags(nodes: int) -> np.ndarray:
    """The parents of each node as a bit mask, for every acyclic graph, (., N)."""
    subsets = [[m for m in range(2**nodes) if not m >> c & 1] for c in range(nodes)]
    graphs = np.stack(np.meshgrid(*subsets, indexing="ij"), axis=-1).reshape(-1, nodes)
    gone = np.zeros(len(graphs), dtype=np.int64)
    for _ in range(nodes):  # take away nodes whose parents are gone
        for c in range(nodes):
            gone |= np.where(graphs[:, c] & ~gone == 0, 1 << c, 0)
    return graphs[gone == 2**nodes - 1]


def as_set(graphs: np.ndarray) -> set[tuple[int, ...]]:
    return set(map(tuple, graphs.tolist()))


@cache
def all_dags_as_set(nodes: int) -> set[tuple[int, ...]]:
    return as_set(all_dags(nodes))


def masks(arcs: np.ndarray) -> np.ndarray:
    return (arcs.astype(np.int64) << np.arange(len(arcs))[:, None]).sum(axis=0)


def totals(table: np.ndarray, graphs: np.ndarray) -> np.ndarray:
    return table[np.arange(len(table)), graphs].sum(axis=-1)


def around_of(graph: np.ndarray, among: set[tuple[int, ...]]) -> np.ndarray:
    """The graphs one arc away, (., N)."""
    bits = 1 << np.arange(len(graph))
    changed = []
    for p in range(len(graph)):
        for c in range(len(graph)):
            if p != c:
                other = graph.copy()
                other[c] ^= bits[p]
                changed.append(tuple(other.tolist()))
                if graph[c] & bits[p]:
                    other[p] |= bits[c]
                    changed.append(tuple(other.tolist()))
    return np.array([other for other in changed if other in among])


def permitted(rules: pb.Constraints, names: tuple[str, ...]) -> np.ndarray:
    """The acyclic graphs under constraints, rule by rule."""
    graphs = all_dags(len(names))
    tier = {name: k for k, tier in enumerate(rules.tiers) for name in tier}
    fine = (np.bitwise_count(graphs) <= rules.max_parents).all(axis=1)
    for p, parent in enumerate(names):
        for c, child in enumerate(names):
            there = graphs[:, c] >> p & 1 == 1
            if (parent, child) in rules.required:
                fine &= there
            back = parent in tier and child in tier and tier[parent] > tier[child]
            if (parent, child) in rules.forbidden or back:
                fine &= ~there
    return graphs[fine]


def start_climb(
    task: Problem,
    *,
    constraints: pb.Constraints | None = None,
    start: np.ndarray | None = None,
    threads: int | None = None,
) -> SearchState:
    return SearchState(search_problem(task, constraints, start, threads))


class Eager(LocalScores):
    """Scores without bounds, of all columns."""

    def upper_bounds(self, families):
        return self(families), np.ones(len(families), dtype=bool)

    def _at_once(self, families, candidates, improving_only):
        found = super()._at_once(families, candidates, False)
        return found if found is not None and found.exact.all() else None


def search_problem(
    task: Problem,
    constraints: pb.Constraints | None = None,
    start: np.ndarray | None = None,
    threads: int | None = None,
    *,
    lazy: bool = True,
) -> SearchProblem:
    scores = (LocalScores if lazy else Eager)(task.stats, pooling=task.pooling, threads=threads)
    N = len(task.stats.names)
    start = np.zeros((N, N), dtype=bool) if start is None else start
    allowed = (constraints or pb.Constraints()).on(task.stats.names)
    return SearchProblem(scores, allowed, start)


def search(task: Problem, strategy, **options) -> Found:
    return strategy.learn(search_problem(task, **options))


def random_graph(task: Problem) -> np.ndarray:
    N = len(task.stats.names)
    graph = task.rng.choice(all_dags(N))
    return (graph[None, :] >> np.arange(N)[:, None] & 1).astype(bool)


def random_constraints(task: Problem) -> pb.Constraints:
    names, rng = list(task.stats.names), task.rng
    order = rng.permutation(names).tolist()
    pairs = [(p, c) for i, p in enumerate(order) for c in order[i + 1 :]]  # has no cycle
    required = [pairs[k] for k in rng.choice(len(pairs), 2, replace=False)]
    forbidden = [(a, b) for a in names for b in names
                 if a != b and (a, b) not in required and rng.random() < 0.25]  # fmt: skip
    tiers = [order[:2], order[-1:]] if rng.random() < 0.5 else []
    return pb.Constraints(required, forbidden, tiers, max_parents=int(rng.integers(2, 4)))


def test_all_networks_are_enumerated() -> None:
    assert [len(all_dags(nodes)) for nodes in (1, 2, 3, 4, 5)] == [1, 3, 25, 543, 29281]


@each_pooling
@each_size
@each_part
def test_hill_climbing_ends_in_a_local_optimum(part: range, nodes: int, pooling: str) -> None:
    for task in problems(nodes, pooling, part):
        for start in (None, random_graph(task)):
            found = search(task, pb.HillClimb(), start=start)
            graph = masks(found.arcs)
            assert found.score == pytest.approx(totals(task.table, graph), abs=1e-9)
            around = totals(task.table, around_of(graph, all_dags_as_set(nodes)))
            assert around.max() <= found.score + 1e-7
            assert all(move.gain > TIE for move in found.trace)


@each_pooling
@each_size
@each_part
def test_orders_end_in_a_local_optimum(part: range, nodes: int, pooling: str) -> None:
    """None is below its start, and with several starts most are the best of all."""
    best = 0
    tasks = list(problems(nodes, pooling, part))
    for task in tasks:
        start = random_graph(task)
        found = search(task, pb.OrderSearch(starts=4), start=start)
        graph = masks(found.arcs)
        assert found.score == pytest.approx(totals(task.table, graph), abs=1e-9)
        assert found.score >= totals(task.table, masks(start)) - 1e-9
        around = totals(task.table, around_of(graph, all_dags_as_set(nodes)))
        assert around.max() <= found.score + 1e-7
        best += found.score >= totals(task.table, all_dags(nodes)).max() - 1e-7
    assert best >= 0.8 * len(tasks)


@each_pooling
@each_size
@each_part
def test_exact_search_finds_the_best_of_all(part: range, nodes: int, pooling: str) -> None:
    for task in problems(nodes, pooling, part):
        best = totals(task.table, all_dags(nodes)).max()
        found = search(task, pb.Exact())
        assert found.score == pytest.approx(best, abs=1e-7)
        assert totals(task.table, masks(found.arcs)) == pytest.approx(best, abs=1e-7)
        for most in (1, 2):
            few = all_dags(nodes)[(np.bitwise_count(all_dags(nodes)) <= most).all(axis=1)]
            found = search(task, pb.Exact(max_parents=most))
            assert found.score == pytest.approx(totals(task.table, few).max(), abs=1e-7)


@each_pooling
@each_size
@each_part
def test_better_searches_are_not_worse(part: range, nodes: int, pooling: str) -> None:
    """Tabu search makes hill climbing's moves first; restarts begin at its optimum."""
    for task in problems(nodes, pooling, part):
        start = random_graph(task)
        climb = search(task, pb.HillClimb(), start=start)
        tabu = search(task, pb.Tabu(), start=start)
        again = search(task, pb.HillClimb(restarts=3, perturb=2), start=start)
        orders = search(task, pb.OrderSearch(starts=2), start=start)
        for other in (tabu, again):
            first = [move[:3] for move in other.trace[: len(climb.trace)]]
            assert first == [move[:3] for move in climb.trace]
            assert other.score >= climb.score
        assert tuple(masks(tabu.arcs)) in all_dags_as_set(nodes)
        best = search(task, pb.Exact()).score
        assert best >= max(tabu.score, again.score, orders.score) - 1e-7


@pytest.mark.parametrize("pooling", [*POOLINGS, REML, SEPARATE], ids=str)
@each_part
def test_bounds_change_no_move(part: range, pooling: str | pb.Partial) -> None:
    for task in problems(5, pooling, part):
        for strategy in (pb.HillClimb(restarts=1), pb.Tabu(patience=5), pb.OrderSearch(starts=2)):
            lazy, eager = (search(task, strategy, lazy=lazy) for lazy in (True, False))
            assert [move[:3] for move in lazy.trace] == [move[:3] for move in eager.trace]
            np.testing.assert_array_equal(lazy.arcs, eager.arcs)
            assert lazy.score == eager.score


@each_pooling
def test_threads_change_no_bit(pooling: str) -> None:
    for task in problems(5, pooling, range(5)):
        families = [(c, tuple(p for p in range(5) if p != c and m >> p & 1)) for c in range(5)
                    for m in range(32)]  # fmt: skip
        one, two = (
            LocalScores(task.stats, pooling=pooling, threads=t)(families).tobytes() for t in (1, 2)
        )
        assert one == two
        for strategy in (pb.HillClimb(restarts=1), pb.OrderSearch(starts=2)):
            one, two = (search(task, strategy, threads=t) for t in (1, 2))
            assert one.trace == two.trace
            assert one.score == two.score


@each_pooling
def test_order_of_columns_does_not_matter(pooling: str) -> None:
    for task in problems(4, pooling, range(5)):
        names = task.rng.permutation(task.stats.names).tolist()
        there = pb.learn(task.stats, pooling=pooling, search=pb.Exact(), preset="paper")
        here = pb.learn(
            task.stats.select(names), pooling=pooling, search=pb.Exact(), preset="paper"
        )
        assert here.dag.nodes == tuple(names)
        assert here.score == pytest.approx(there.score, abs=1e-7)


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "complete"},
        {"pooling": "complete", "score": "bge", "search": "exact"},
        {"pooling": "none"},
        {"pooling": "none", "search": pb.HillClimb(restarts=3)},
        {"pooling": "none", "search": pb.PC(rule="standard")},
        {"pooling": "none", "search": "hybrid"},
        {"pooling": "partial", "search": "tabu"},
        {"pooling": "partial", "search": pb.OrderSearch(starts=2)},
        {"pooling": "none", "search": "orders"},
        {"pooling": "auto", "score": "bic-h"},
    ],
    ids=str,
)
def test_a_graph_does_not_depend_on_the_order_of_columns(options: dict) -> None:
    """Nor do its score and its moves, of which many score the same."""
    for seed in range(6):
        frame = simulate_network(seed, 8, data_sets=4, rows=25)
        names = [name for name in frame.columns if name != "F"]
        rng = np.random.default_rng(seed)
        found = [
            pb.learn(frame[[*order, "F"]], group="F", **options, preset="paper")
            for order in (names, names[::-1], *(rng.permutation(names) for _ in range(2)))
        ]
        for other in found[1:]:
            assert other.dag == found[0].dag
            assert other.score == pytest.approx(found[0].score, rel=1e-9)
            assert [move.arc for move in other.trace] == [move.arc for move in found[0].trace]


def test_an_order_of_columns_depends_neither_on_units_nor_on_names() -> None:
    for seed in range(5):
        frame = simulate_network(seed, 7, data_sets=3, rows=20)
        names = [name for name in frame.columns if name != "F"]
        units = np.random.default_rng(seed).uniform(-9, 9, len(names))
        other = frame.assign(**{c: 3 + u * frame[c] for c, u in zip(names, units, strict=True)})
        called = dict(zip(names, names[::-1], strict=True))
        there = canonical_order(pb.stats(frame, group="F"))
        here = canonical_order(pb.stats(other.rename(columns=called).sample(frac=1), group="F"))
        assert here == tuple(called[name] for name in there)


def test_ties_are_broken_by_names_between_equal_columns_only() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=40)
    frame = pd.DataFrame({"b": x, "a": x, "c": x + rng.normal(size=40)})
    orders = {canonical_order(pb.stats({"all": frame[list(names)]})) for names in ("abc", "cba")}
    assert orders == {("a", "b", "c")}


@each_pooling
@each_size
@each_part
def test_constraints_are_kept(part: range, nodes: int, pooling: str) -> None:
    for task in problems(nodes, pooling, part):
        constraints = random_constraints(task)
        graphs = permitted(constraints, task.stats.names)
        assert 0 < len(graphs) < len(all_dags(nodes))
        values = totals(task.table, graphs)
        fine = as_set(graphs)
        exact = search(task, pb.Exact(), constraints=constraints)
        assert exact.score == pytest.approx(values.max(), abs=1e-7)
        searches = (
            pb.HillClimb(),
            pb.HillClimb(restarts=3, perturb=3, seed=1),
            pb.Tabu(),
            pb.OrderSearch(starts=3),
        )
        for strategy in searches:
            seen = []
            watched = replace(
                search_problem(task, constraints),
                watch=lambda moves, now, seen=seen: seen.append(tuple(masks(now.arcs))),
            )
            best = strategy.learn(watched)
            assert fine.issuperset(seen)
            assert tuple(masks(best.arcs)) in fine
            around = around_of(masks(best.arcs), fine)
            if len(around):
                assert totals(task.table, around).max() <= best.score + 1e-7
        assert tuple(masks(exact.arcs)) in fine


def test_constraints_by_name() -> None:
    """What each kind means for the learned network."""
    stats = problem(2000, 5, "partial").stats
    free = pb.learn(stats, preset="paper").dag
    p, c = free.arcs[0]
    required = pb.learn(stats, constraints=pb.Constraints(required=[(c, p)]), preset="paper")
    assert (c, p) in required.dag.arcs
    forbidden = pb.learn(
        stats, constraints=pb.Constraints(forbidden=[(p, c), (c, p)]), preset="paper"
    )
    assert {(p, c), (c, p)}.isdisjoint(forbidden.dag.arcs)
    tiers = [["a", "b"], ["c"], ["d"]]
    place = {name: k for k, tier in enumerate(tiers) for name in tier}
    for search_ in (pb.HillClimb(restarts=3), pb.Tabu(), pb.OrderSearch(), pb.Exact()):
        net = pb.learn(
            stats, search=search_, constraints=pb.Constraints(tiers=tiers), preset="paper"
        )
        assert net.dag.arcs
        assert all(place.get(a, -1) <= place.get(b, 9) for a, b in net.dag.arcs)
        sparse = pb.learn(
            stats, search=search_, constraints=pb.Constraints(max_parents=1), preset="paper"
        )
        assert max(len(sparse.dag.parents(node)) for node in stats.names) == 1
    none = pb.learn(stats, constraints=pb.Constraints(max_parents=0), preset="paper")
    assert none.dag.arcs == ()


def test_nothing_beats_the_marginal_likelihood_either() -> None:
    """BGe, a score without bounds."""
    for task in problems(4, "complete", range(5)):
        scores = LocalScores(task.stats, pooling="complete", score="bge")
        values = [
            scores([(c, tuple(p for p in range(4) if m >> p & 1)) for c, m in enumerate(graph)])
            for graph in all_dags(4).tolist()
        ]
        net = pb.learn(task.stats, pooling="complete", score="bge", search=pb.Exact())
        assert net.score == pytest.approx(np.sum(values, axis=1).max(), abs=1e-7)


def test_seeds_repeat() -> None:
    task = problem(2001, 5, "partial")
    runs = [search(task, pb.HillClimb(restarts=4, perturb=3, seed=seed)) for seed in (1, 1, 2)]
    assert runs[0].trace == runs[1].trace
    assert runs[0].trace != runs[2].trace
    assert sum(move.kind == "restart" for move in runs[0].trace) == 4


@pytest.mark.parametrize("kind", [pb.HillClimb, pb.Tabu])
def test_at_most_so_many_moves(kind) -> None:
    task = problem(1, 5, "complete")
    full = search(task, kind())
    assert len(full.trace) > 3
    for most in range(4):
        found = search(task, kind(max_iter=most))
        assert found.trace == full.trace[:most]
        assert found.arcs.sum() == sum(move.kind == "add" for move in found.trace)


def test_the_start_counts() -> None:
    stats = problem(2002, 5, "partial").stats
    best = pb.learn(stats, search=pb.Exact(), preset="paper")
    for start in (best, best.dag, best.dag.to_modelstring(), best.dag.arcs):
        again = pb.learn(stats, start=start, preset="paper")
        assert again.trace == ()
        assert again.dag == best.dag
        assert again.score == best.score
    kept = pb.learn(stats, start=best, search=pb.HillClimb(max_iter=0), preset="paper")
    assert kept.dag == best.dag


@each_pooling
def test_the_trace_adds_up(pooling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[SearchState] = []

    def seen(problem: SearchProblem, *, improving_only: bool) -> SearchState:
        states.append(SearchState(problem, improving_only=improving_only))
        return states[-1]

    monkeypatch.setattr(climbing, "SearchState", seen)
    for task in problems(5, pooling, range(4)):
        for strategy in (pb.HillClimb(), pb.HillClimb(restarts=2, perturb=4), pb.Tabu()):
            start = random_graph(task)
            first = start_climb(task, start=start).score
            found = search(task, strategy, start=start)
            climb = states[-1]
            assert sum(move.gain for move in found.trace) == pytest.approx(
                climb.score - first, abs=1e-8
            )
            assert found.score >= climb.score - TIE
            fits = sum(move.fits for move in found.trace)
            assert 0 < fits <= climb.scores.made
            if pooling in {"complete", "none"}:  # computed anew with each sweep
                assert fits == climb.scores.made
            elif pooling != "partial":  # the last look around needs some, too
                assert climb.scores.made <= 5 * 16


def test_partial_pooling_spares_fits() -> None:
    """Closed forms have nothing to spare."""
    count = {}
    for pooling in POOLINGS:
        tasks = list(problems(5, pooling, range(4)))
        traces = [search(task, pb.HillClimb()).trace for task in tasks]
        count[pooling] = sum(move.spared for trace in traces for move in trace)
    assert count["complete"] == count["none"] == 0
    assert min(count["partial"], count[POOLED]) > 0


def sweep(scores: LocalScores, families: list) -> np.ndarray:
    wanted = np.ones((len(families), len(scores.names)), dtype=bool)
    found = scores.neighbours(families, wanted, improving_only=True)
    assert found.exact.all()
    return found.values


@pytest.mark.parametrize("score", ["bic", "bic-h", "gprior", "aic"])
@pytest.mark.parametrize("pooling", [pb.Complete(), pb.NoPooling("unbiased")], ids=str)
def test_sweeps_are_the_scores_of_families(pooling: pb.Complete, score: str) -> None:
    """Few rows, a copy of a column, and one that is a copy in one data set only."""
    for seed, rows in ((1, 5), (2, 8), (3, 40)):
        frame = simulate_network(seed, 5, rows=rows)
        frame["f"] = 2 * frame["a"] - 1
        frame["g"] = np.where(frame["F"] == "set 0", frame["b"], frame["c"] + frame["d"] ** 2)
        stats = pb.stats(frame, group="F", inputs=["e"])
        N, scores = len(stats.names), LocalScores(stats, pooling=pooling, score=score)
        rng = np.random.default_rng(seed)
        for c in range(N):
            others = [p for p in range(N) if p != c]
            parents = tuple(sorted(rng.choice(others, rng.integers(N - 1), replace=False).tolist()))
            swept = sweep(scores, [(c, parents), (c, ())])
            assert swept is not None
            for row, pa in zip(swept, (parents, ()), strict=True):
                changed = [(c, tuple(sorted({*pa} ^ ({p} - {c})))) for p in range(N)]
                np.testing.assert_allclose(row, scores(changed), rtol=1e-9)


@pytest.mark.parametrize("pooling", [pb.Complete(), pb.NoPooling()], ids=str)
def test_sweeps_over_near_copies_do_not_depend_on_the_way(pooling: pb.Complete) -> None:
    """Rounding may not be seen in scores, by which a search would go in circles."""
    for seed in range(5):
        frame = simulate_network(seed, 5, rows=30)
        rng = np.random.default_rng(seed)
        near = {f"{name}2": frame[name] + 1e-5 * rng.normal(size=len(frame)) for name in "abc"}
        stats = pb.stats(frame.assign(**near), group="F")
        N, scores = len(stats.names), LocalScores(stats, pooling=pooling)
        for c in range(N):
            others = [p for p in range(N) if p != c]
            pa = tuple(sorted(rng.choice(others, 3, replace=False).tolist()))
            (row,) = sweep(scores, [(c, pa)])
            changed = [(c, tuple(sorted({*pa} ^ ({p} - {c})))) for p in range(N)]
            there = sweep(scores, changed)[:, c]
            np.testing.assert_allclose(row, there, atol=TIE / 2, rtol=0)
        found = climb(stats, pooling)
        assert len({*found}) == len(found)


def climb(stats: pb.GroupStats, pooling: pb.Complete) -> list[int]:
    """The graphs of a climb, as numbers."""
    N = len(stats.names)
    anything = pb.Constraints().on(stats.names)
    scores = LocalScores(stats, pooling=pooling)
    state = SearchState(SearchProblem(scores, anything, np.zeros((N, N), dtype=bool)))
    visited = [int(state.key)]
    while state.step() and len(visited) < 200:
        visited.append(int(state.key))
    return visited


@pytest.mark.parametrize("pooling", ["complete", "partial"])
def test_what_a_search_remembers_changes_no_move(pooling: str) -> None:
    """After each move a search that starts there makes the same one next."""
    stats = pb.stats(simulate_network(4, 5, rows=20).join(
        simulate_network(5, 5, rows=20).drop(columns="F").add_suffix("2")), group="F")  # fmt: skip
    order = pb.Constraints(forbidden=[("d", "b2")], required=[("a", "c2")], max_parents=4)
    allowed, scores = order.on(stats.names), LocalScores(stats, pooling=pooling)
    state = SearchState(SearchProblem(scores, allowed, np.zeros((10, 10), dtype=bool)))
    visited, kinds = [state.key], set()
    for _ in range(60):
        fresh = SearchState(SearchProblem(scores, allowed, state.arcs.copy()))
        tabu = np.array(visited[-10:], dtype=np.uint64)
        assert state.step(floor=-np.inf, tabu=tabu)
        assert fresh.step(floor=-np.inf, tabu=tabu)
        assert fresh.trace[-1][:2] == state.trace[-1][:2]
        visited.append(state.key)
        kinds.add(state.trace[-1].kind)
        best = state.best
        again = SearchState(SearchProblem(scores, allowed, best.arcs))
        assert again.score == pytest.approx(best.score, abs=1e-8)
    assert kinds == {"add", "remove", "reverse"}


def test_final_fits_are_at_least_as_good_as_the_search() -> None:
    for task in problems(5, "partial", range(10)):
        found = search(task, pb.HillClimb())
        net = learned_as_given(task.stats, preset="paper")
        np.testing.assert_array_equal(net.dag.to_adjacency(), found.arcs)
        assert net.score >= found.score - 1e-8
        assert net.score == pytest.approx(sum(fit.bic for fit in net.fits.values()), abs=1e-9)


def test_ancestors_are_the_transitive_closure() -> None:
    """After each of many random moves."""
    N = 7
    rng = np.random.default_rng(3)
    stats = pb.stats({j: pd.DataFrame(rng.normal(size=(20, N))).rename(columns=str)
                      for j in "ab"})  # fmt: skip
    scores = LocalScores(stats, pooling="complete")
    climb = SearchState(
        SearchProblem(scores, pb.Constraints().on(stats.names), np.zeros((N, N), dtype=bool))
    )
    counts = [0, 0, 0]
    for _ in range(400):
        p, c = rng.choice(N, 2, replace=False).tolist()
        kind = int(rng.integers(1, 3)) if climb.arcs[p, c] else 0
        after = climb.arcs.copy()
        after[p, c] = kind == 0
        after[c, p] |= kind == 2
        reach = after.copy()
        for k in range(N):  # Warshall
            reach |= np.outer(reach[:, k], reach[k])
        if not reach.diagonal().any():
            climb._apply(kind, p, c)
            counts[kind] += 1
            np.testing.assert_array_equal(climb.arcs, after)
            np.testing.assert_array_equal(climb._ancestor, reach)
            families = [(c, tuple(np.flatnonzero(after[:, c]).tolist())) for c in range(N)]
            assert climb.score == pytest.approx(scores(families).sum(), abs=1e-9)
    assert min(counts) > 30


def same_without_bounds(stats: pb.GroupStats, pooling: str) -> bool:
    task = Problem(stats, pooling, np.empty(0), (0,))
    lazy, eager = (search(task, pb.HillClimb(), lazy=lazy) for lazy in (True, False))
    return bool((lazy.arcs == eager.arcs).all())


@pytest.mark.parametrize("pooling", ["partial", POOLED], ids=str)
def test_bounds_that_are_infinite_do_not_stop_a_search(pooling: str) -> None:
    """With as few rows as coefficients a regression in each data set leaves no residuals."""
    for seed in range(8):
        for rows in (2, 3, 4, 5):
            frame = simulate_network(seed, 4, data_sets=6, rows=rows)
            assert same_without_bounds(pb.stats(frame, group="F"), pooling)


def test_bounds_that_are_exact_do_not_stop_a_search(opt_stats: pb.GroupStats) -> None:
    """Those of data sets that are all the same are exact but for rounding, up or down."""
    arrays = (opt_stats.n, opt_stats.mean, opt_stats.scatter, opt_stats.dropped)
    four = [np.repeat(array[:1], 4, axis=0) for array in arrays]
    assert same_without_bounds(pb.GroupStats(opt_stats.names, tuple("abcd"), *four), "partial")


def test_an_interrupt_keeps_the_best_network(monkeypatch) -> None:
    def stop(self, words) -> None:
        if words().startswith("learning: 2 moves, 2 arcs"):
            raise KeyboardInterrupt

    stats = problem(2003, 5, "partial").stats
    full = pb.learn(stats, preset="paper")
    assert len(full.trace) > 2
    monkeypatch.setattr(Progress, "__call__", stop)
    with pytest.raises(pb.SearchInterrupted, match="2 moves") as caught:
        pb.learn(stats, preset="paper")
    assert isinstance(caught.value, KeyboardInterrupt)
    assert isinstance(caught.value, pb.PoolbnError)
    net = caught.value.network
    assert net.trace == full.trace[:2]
    assert set(net.dag.arcs) == {move.arc for move in net.trace}
    assert net.score == pytest.approx(pb.score(stats, net.dag), abs=1e-9)
    assert pb.score(stats, []) < net.score < full.score


@each_pooling
@pytest.mark.parametrize(
    "search",
    [pb.HillClimb(), pb.HillClimb(restarts=2), pb.Tabu(), pb.OrderSearch(starts=2), pb.Exact()],
)
@pytest.mark.parametrize("column", ["constant", "duplicate", "constant in each"])
@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_families_without_a_likelihood_do_no_harm(column: str, search, pooling: str) -> None:
    frame = simulate_network(5, 4)
    sets = frame["F"].str[-1].astype(float)
    extra = {"constant": 2.0, "duplicate": frame["a"], "constant in each": sets}[column]
    net = pb.learn(frame.assign(z=extra), group="F", pooling=pooling, search=search, preset="paper")
    if column == "duplicate":
        assert np.isfinite(net.score)
        assert ("a", "z") not in net.dag.arcs
        assert ("z", "a") not in net.dag.arcs
        assert all(fit.status.ok for fit in net.fits.values())
    elif column == "constant":
        assert net.score == -np.inf
        assert [node for node in net.dag.nodes if not net.fits[node].status.ok] == ["z"]
    assert not np.isnan([net.score, *(move.gain for move in net.trace)]).any()
    assert isinstance(repr(net), str)


def test_auto_pools_what_is_the_same_everywhere() -> None:
    chosen = []
    for seed in range(20):
        frame = simulate_network(seed, 5, data_sets=4, rows=25, between=0)
        net = pb.learn(frame, group="F", pooling="auto", preset="paper")
        chosen += [str(fit.pooling) for fit in net.fits.values()]
    assert len(chosen) == 100
    assert chosen.count("complete pooling") >= 95


def test_auto_does_not_pool_opposite_slopes() -> None:
    in_order = pb.Constraints(required=[("x", "y")], forbidden=[("y", "x")])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        slopes = np.repeat([2.0, -2.0, 2.5, -2.5], 10)
        x = rng.normal(size=40)
        frame = pd.DataFrame({"x": x, "y": slopes * x + rng.normal(size=40)})
        frame["F"] = np.repeat(list("abcd"), 10)
        net = pb.learn(frame, group="F", pooling="auto", constraints=in_order, preset="paper")
        assert str(net.fits["y"].pooling) != "complete pooling"
        assert (np.sign(net.fits["y"].coef[:, 1]) == [1, -1, 1, -1]).all()


@pytest.mark.parametrize("pooling", ["complete", "none", "partial", "auto"])
@pytest.mark.parametrize("search", [pb.HillClimb(), pb.Tabu(), pb.OrderSearch(), pb.Exact()])
@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_a_constant_column_does_not_hide_the_others(pooling: str, search) -> None:
    """The rest of the network is found as if the column were not there."""
    frame = simulate(11, data_sets=3, rows=25, parents=3)
    without = pb.learn(frame, group="F", pooling=pooling, search=search, preset="paper")
    net = pb.learn(frame.assign(k=1.5), group="F", pooling=pooling, search=search, preset="paper")
    assert without.dag.arcs
    assert net.score == -np.inf
    rest = sum(fit.bic for node, fit in net.fits.items() if node != "k")
    assert rest == pytest.approx(without.score, abs=1e-6)


def test_constraints_can_be_used_twice() -> None:
    once = pb.Constraints(required=(arc for arc in [("a", "b")]), tiers=[iter(["a"]), ["b"]])
    for _ in range(2):
        assert once.on(["a", "b"]).required[0, 1]
        assert not once.on(["a", "b"]).arcs[1, 0]


def test_a_used_up_search_does_not_restart() -> None:
    frame = simulate(12, data_sets=3, rows=15, parents=3)
    net = pb.learn(frame, group="F", search=pb.HillClimb(restarts=3, max_iter=1), preset="paper")
    assert [move.kind for move in net.trace] == ["add"]


def test_restarts_lead_elsewhere_in_large_networks() -> None:
    gains = {1: 0.0, None: 0.0}
    for seed in (90, 91):
        true = pb.random_network(pb.random_dag(20, 2, seed=seed), 5, seed=seed)
        stats = pb.stats(pb.random_table(true, 40, seed=seed), group="F")
        before = pb.learn(stats, preset="paper").score
        for perturb in gains:
            climb = pb.HillClimb(restarts=10, perturb=perturb, seed=1)
            gains[perturb] += pb.learn(stats, preset="paper", search=climb).score - before
    assert gains[None] > gains[1] + 1


def test_rounding_does_not_decide_between_networks_with_the_same_score() -> None:
    """Complete pooling cannot tell the directions of a chain; an order of rows must not."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"F": np.repeat(["a", "b"], 60), "x": rng.normal(size=120)})
    for name, parent in ("yx", "zy", "wz", "vz"):
        frame[name] = 0.8 * frame[parent] + rng.normal(size=120)
    found = {
        pb.learn(
            frame.sample(frac=1, random_state=k), group="F", pooling="complete", search="exact"
        ).dag.arcs
        for k in range(12)
    }
    assert len(found) == 1
