"""Arc posteriors against brute force: all pairs of an order and a graph along it, one by one.

The pairs give both priors: each once is the prior over orders, each graph once that over graphs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from itertools import combinations, permutations, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from helpers import simulate
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

import poolbn as pb
from poolbn.posteriors import posterior
from poolbn.posteriors.averaging import _Mixture
from poolbn.posteriors.chains import effective_size, split_r_hat
from poolbn.posteriors.families import components, usual_parents
from poolbn.run.progress import Progress
from poolbn.scoring.local import LocalScores

NAMES = "dbeac"
POOLED = pb.Partial(residuals="pooled")
PRIORS = ("orders", "dags")
each_prior = pytest.mark.parametrize("prior", PRIORS)


def network_rows(
    seed: int,
    nodes: int,
    *,
    data_sets: int = 3,
    rows: int = 12,
    strength: float = 0.5,
    density: float = 0.5,
) -> pd.DataFrame:
    """Columns in random order of a random linear network, and F."""
    rng = np.random.default_rng([seed, nodes])
    codes = np.repeat(np.arange(data_sets), rows)
    X = np.zeros((len(codes), nodes))
    for c in range(nodes):
        b = rng.normal(size=c) * (rng.random(c) < density) * strength
        own = b + 0.2 * rng.normal(size=(data_sets, c)) * (b != 0)
        X[:, c] = rng.normal(size=data_sets)[codes] + (own[codes] * X[:, :c]).sum(axis=1)
        X[:, c] += rng.normal(size=len(codes))
    names = list(NAMES[:nodes]) if nodes <= 5 else [f"x{k}" for k in range(nodes)]
    frame = pd.DataFrame(X[:, rng.permutation(nodes)], columns=names)
    return frame.assign(F=[f"set {j}" for j in codes])


class Pairs(NamedTuple):
    """All pairs of an order and a graph along it: the order, and a mask of parents per node."""

    orders: np.ndarray  # (K, N)
    parents: np.ndarray  # (K, N)


@cache
def all_pairs(N: int) -> Pairs:
    orders, graphs = [], []
    for order in permutations(range(N)):
        choices = []
        for i in range(N):
            before = order[:i]
            sets = [s for k in range(i + 1) for s in combinations(before, k)]
            choices.append([sum(1 << p for p in s) for s in sets])
        for chosen in product(*choices):
            masks = [0] * N
            for node, mask in zip(order, chosen, strict=True):
                masks[node] = mask
            orders.append(order)
            graphs.append(masks)
    return Pairs(np.array(orders), np.array(graphs))


def family_table(stats: Any, pooling: Any, score: str) -> np.ndarray:
    """The score of each child (rows) with each set of parents, a bit mask."""
    N = len(stats.names)
    found = np.full((N, 2**N), -np.inf)
    scores = LocalScores(stats, pooling=pooling, score=score)
    for c in range(N):
        masks = [mask for mask in range(2**N) if not mask >> c & 1]
        families = [(c, tuple(p for p in range(N) if mask >> p & 1)) for mask in masks]
        found[c, masks] = scores(families)
    return found


def brute_force(
    table: np.ndarray, prior: str, keep: Any = lambda orders, parents: True
) -> np.ndarray:
    """The probability of each child's (rows) sets of parents, a bit mask."""
    N = len(table)
    orders, parents = all_pairs(N)
    kept = np.broadcast_to(keep(orders, parents), len(orders))
    orders, parents = orders[kept], parents[kept]
    if prior == "dags":
        parents = np.unique(parents, axis=0)
    weight = sum(table[c, parents[:, c]] for c in range(N))
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()
    return np.array([np.bincount(parents[:, c], weight, 2**N) for c in range(N)])


def arcs_of(sets: np.ndarray) -> np.ndarray:
    N = len(sets)
    has = np.arange(2**N)[:, None] >> np.arange(N) & 1
    return (sets @ has).T


def sets_of(post: pb.ArcPosterior) -> np.ndarray:
    """As `brute_force` has them."""
    N = len(post.nodes)
    found = np.zeros((N, 2**N))
    for c, node in enumerate(post.nodes):
        for parents, p in post.parent_sets(node, 10**6).itertuples(index=False, name=None):
            found[c, sum(1 << post.nodes.index(name) for name in parents)] = p
    return found


def test_the_pairs_are_all_there() -> None:
    assert [len(np.unique(all_pairs(N).parents, axis=0)) for N in (3, 4, 5)] == [25, 543, 29281]


@each_prior
@pytest.mark.parametrize("nodes", [4, 5])
@pytest.mark.parametrize(
    ("pooling", "score"),
    [
        ("complete", "bge"), ("complete", "bic"), ("none", "bic"), ("partial", "bic"),
        ("partial", "bic-h"), (POOLED, "bic-h"), ("partial", "gprior"),
    ],
    ids=str,
)  # fmt: skip
def test_posteriors_are_those_of_all_graphs(
    nodes: int, pooling: Any, score: Any, prior: Any
) -> None:
    stats = pb.stats(network_rows(nodes, nodes), group="F")
    post = pb.arc_posterior(stats, pooling=pooling, score=score, prior=prior)
    expected = brute_force(family_table(stats, pooling, score), prior)
    np.testing.assert_allclose(sets_of(post), expected, atol=1e-10)
    np.testing.assert_allclose(post.probabilities, arcs_of(expected), atol=1e-10)


@each_prior
@pytest.mark.parametrize("rows", [5, 3000])
def test_scores_of_any_size_do(rows: int, prior: Any) -> None:
    """Thousands apart, where weights underflow; and a handful of rows."""
    frame = network_rows(3, 4, rows=rows, strength=3.0)
    stats = pb.stats(frame, group="F")
    table = family_table(stats, "complete", "bic")
    assert rows == 5 or table[np.isfinite(table)].min(initial=0) < table.max() - 2000
    post = pb.arc_posterior(stats, pooling="complete", prior=prior, score="bic")
    np.testing.assert_allclose(sets_of(post), brute_force(table, prior), atol=1e-10)


def tiers_first(tiers: list[list[int]]) -> Any:
    def keep(orders: np.ndarray, parents: np.ndarray) -> np.ndarray:
        tier = np.empty(orders.shape[1], dtype=int)
        for number, nodes in enumerate(tiers):
            tier[nodes] = number
        return (np.diff(tier[orders], axis=1) >= 0).all(axis=1)

    return keep


@each_prior
def test_constraints_leave_out_graphs(prior: Any) -> None:
    stats = pb.stats(network_rows(1, 5), group="F")
    table = family_table(stats, "partial", "bic")
    d, b, e, a, c = range(5)

    def forbidden(orders: np.ndarray, parents: np.ndarray) -> np.ndarray:
        return ((parents[:, b] >> d & 1) == 0) & ((parents[:, e] >> a & 1) == 1)

    rules = pb.Constraints(forbidden=[("d", "b")], required=[("a", "e")])
    post = pb.arc_posterior(stats, constraints=rules, prior=prior, pooling="partial", score="bic")
    np.testing.assert_allclose(sets_of(post), brute_force(table, prior, forbidden), atol=1e-10)
    assert post.probability("a", "e") == pytest.approx(1, abs=1e-12)
    assert post.probability("e", "a") == 0 == post.probability("d", "b")

    def few(orders: np.ndarray, parents: np.ndarray) -> np.ndarray:
        return (np.bitwise_count(parents) <= 2).all(axis=1)

    expected = brute_force(table, prior, few)
    for post in (
        pb.arc_posterior(stats, max_parents=2, prior=prior, pooling="partial", score="bic"),
        pb.arc_posterior(
            stats,
            constraints=pb.Constraints(max_parents=2),
            prior=prior,
            pooling="partial",
            score="bic",
        ),
    ):
        assert post.max_parents == 2
        np.testing.assert_allclose(sets_of(post), expected, atol=1e-10)

    # Orders go along the tiers, as all graphs do.
    rules = pb.Constraints(tiers=[["d", "e"], ["b", "a"], ["c"]])
    post = pb.arc_posterior(stats, constraints=rules, prior=prior, pooling="partial", score="bic")
    expected = brute_force(table, prior, tiers_first([[d, e], [b, a], [c]]))
    np.testing.assert_allclose(sets_of(post), expected, atol=1e-10)


@each_prior
def test_inputs_come_before_all_others(prior: Any) -> None:
    frame = network_rows(2, 5)
    stats = pb.stats(frame, group="F", inputs=["b", "c"])
    table = family_table(pb.stats(frame, group="F"), "partial", "bic")
    table[[1, 4]] = -np.inf
    table[[1, 4], 0] = 0.0

    def keep(orders: np.ndarray, parents: np.ndarray) -> np.ndarray:
        first = tiers_first([[1, 4], [0, 2, 3]])(orders, parents)
        return first & (parents[:, [1, 4]] == 0).all(axis=1)

    post = pb.arc_posterior(stats, prior=prior, pooling="partial", score="bic")
    np.testing.assert_allclose(sets_of(post), brute_force(table, prior, keep), atol=1e-10)
    assert (post.probabilities[:, [1, 4]] == 0).all()


def test_nodes_that_can_be_on_a_cycle_together() -> None:
    arcs = np.zeros((5, 5), dtype=bool)
    arcs[[0, 1, 2, 3], [1, 2, 0, 4]] = True
    assert [nodes.tolist() for nodes in components(arcs)] == [[0, 1, 2], [3], [4]]


@each_prior
def test_probabilities_add_up(prior: Any, opt_stats: pb.GroupStats) -> None:
    post = pb.arc_posterior(opt_stats, prior=prior, max_parents=2, pooling="partial", score="bic")
    np.testing.assert_allclose(
        [post.parent_sets(node, 10**6)["probability"].sum() for node in post.nodes], 1, atol=1e-12
    )
    for node in post.nodes[:2]:
        sets = post.parent_sets(node, 10**6)
        for other in set(post.nodes) - {node}:
            own = sets["probability"][[other in parents for parents in sets["parents"]]].sum()
            assert own == pytest.approx(post.probability(other, node), abs=1e-12)
    assert (post.adjacency <= 1 + 1e-9).all()
    assert (np.diag(post.probabilities) == 0).all()
    table = post.arcs()
    assert len(table) == len(post.nodes) * (len(post.nodes) - 1) / 2
    assert (table["probability"] - 0.5).abs().is_monotonic_increasing
    assert table["direction"][table["probability"] > 1e-9].between(0.5, 1).all()


@each_prior
def test_the_order_of_columns_and_data_sets_does_not_matter(prior: Any) -> None:
    frame = network_rows(4, 5)
    post = pb.arc_posterior(frame, group="F", prior=prior, pooling="partial", score="bic")
    other = frame.sort_values("F", ascending=False, kind="stable")[["a", "F", "e", "d", "c", "b"]]
    turned = pb.arc_posterior(other, group="F", prior=prior, pooling="partial", score="bic")
    for p, c in permutations(NAMES, 2):
        assert turned.probability(p, c) == pytest.approx(post.probability(p, c), abs=1e-7)


def test_a_score_that_tells_no_direction_gives_none() -> None:
    """With score equivalence, graphs of a class are as probable; over orders they are not."""
    frame = network_rows(5, 4)
    two = pb.arc_posterior(
        frame[["d", "b", "F"]], group="F", pooling="complete", score="bge", prior="dags"
    )
    assert two.probability("d", "b") == pytest.approx(two.probability("b", "d"), abs=1e-12)
    options: Any = {"group": "F", "pooling": "complete", "score": "bge"}
    graphs = pb.arc_posterior(frame, **options, prior="dags")
    table = family_table(pb.stats(frame, group="F"), "complete", "bge")
    parents = np.unique(all_pairs(4).parents, axis=0)
    weight = sum(table[c, parents[:, c]] for c in range(4))
    classes: dict[Any, list[float]] = {}
    for masks, own in zip(parents, weight, strict=True):
        arcs = [("dbea"[p], "dbea"[c]) for c in range(4) for p in range(4) if masks[c] >> p & 1]
        classes.setdefault(pb.Dag(list("dbea"), arcs).cpdag(), []).append(own)
    assert len(classes) == 185  # of 543 graphs
    assert max(max(own) - min(own) for own in classes.values()) < 1e-8
    total = np.exp(weight - weight.max()).sum()
    joined = {
        edge: sum(
            np.exp(np.array(own) - weight.max()).sum()
            for found, own in classes.items()
            if frozenset(edge) in set(map(frozenset, [*found.directed, *found.undirected]))
        )
        / total
        for edge in combinations("dbea", 2)
    }
    for (a, b), p in joined.items():
        both = graphs.probability(a, b) + graphs.probability(b, a)
        assert both == pytest.approx(p, abs=1e-10)


@each_prior
def test_drawn_graphs_are_as_frequent_as_probable(prior: Any) -> None:
    stats = pb.stats(network_rows(6, 4), group="F")
    post = pb.arc_posterior(stats, prior=prior, pooling="partial", score="bic")
    draws = 20_000
    graphs = post.sample(draws, seed=1)
    parents, times = np.unique(all_pairs(4).parents, axis=0, return_counts=True)
    table = family_table(stats, "partial", "bic")
    weight = sum(table[c, parents[:, c]] for c in range(4))
    weight = np.exp(weight - weight.max()) * (times if prior == "orders" else 1)
    codes = parents @ (16 ** np.arange(4))
    expected = np.bincount(codes, weight, 16**4) / weight.sum()
    drawn = (graphs.arcs * (1 << np.arange(4))[:, None]).sum(axis=1) @ (16 ** np.arange(4))
    found = np.bincount(drawn, minlength=16**4)
    assert not found[expected == 0].any()  # no graph that cannot be
    likely = expected * draws >= 5
    # Pearson's chi-square, the improbable graphs together.
    own = np.append(found[likely], found[~likely].sum())
    of = np.append(expected[likely], expected[~likely].sum()) * draws
    assert scipy_stats.chisquare(own, of).pvalue > 1e-4
    # Paths and blankets, of all graphs.
    arcs = (parents[:, None, :] >> np.arange(4)[:, None] & 1).astype(bool)
    weight /= weight.sum()
    whole = pb.GraphSample(stats.names, arcs)
    for name, has in (
        ("paths", lambda dag, a, b: b in dag.descendants(a)),
        ("markov_blankets", lambda dag, a, b: b in dag.markov_blanket(a)),
    ):
        dags = [whole._dag(each) for each in arcs]
        for row in getattr(graphs, name)().itertuples():
            a, b = row[1], row[2]
            exact = weight @ np.array([has(dag, a, b) for dag in dags])
            assert abs(row.probability - exact) <= 5 * row.se + 1e-12
            assert row.se == pytest.approx(np.sqrt(exact * (1 - exact) / draws), abs=1e-3)
    seen = graphs.edges().set_index(["from", "to"])
    for (a, b), row in seen.iterrows():
        kinds = np.array([_edge(dag, a, b) for dag in dags])
        for kind in ("arc", "reverse", "undirected", "none"):
            assert abs(row[kind] - weight @ (kinds == kind)) <= 5 * row["se"] + 1e-12
    count = graphs.average(lambda dag: len(dag.arcs))
    assert count.value == pytest.approx(graphs.arcs.sum(axis=(1, 2)).mean())
    assert abs(count.value - weight @ arcs.sum(axis=(1, 2))) < 5 * count.se


def _edge(dag: pb.Dag, a: str, b: str) -> str:
    found = dag.cpdag()
    if (a, b) in found.directed:
        return "arc"
    if (b, a) in found.directed:
        return "reverse"
    return "undirected" if {(a, b), (b, a)} & set(found.undirected) else "none"


@each_prior
def test_draws_and_sums_agree_with_more_columns(prior: Any) -> None:
    """Graphs are drawn layer by layer or along orders, and arcs summed in another way."""
    frame = network_rows(18, 11, data_sets=4, density=0.3)
    post = pb.arc_posterior(
        frame, group="F", pooling="complete", max_parents=3, prior=prior, score="bic"
    )
    share = post.sample(4000, seed=2).arcs.mean(axis=0)
    error = np.sqrt(post.probabilities * (1 - post.probabilities) / 4000)
    assert (np.abs(share - post.probabilities) <= 5 * error + 1e-3).all()
    assert ((post.probabilities > 0.1) & (post.probabilities < 0.9)).sum() > 10


@each_prior
def test_drawn_graphs_keep_to_constraints(prior: Any) -> None:
    frame = network_rows(7, 5)
    rules = pb.Constraints(tiers=[["a", "b"], ["c", "d", "e"]], required=[("a", "b")])
    post = pb.arc_posterior(
        frame,
        group="F",
        constraints=rules,
        max_parents=2,
        prior=prior,
        pooling="partial",
        score="bic",
    )
    graphs = post.sample(4000)
    share = graphs.arcs.mean(axis=0)
    assert share[post.nodes.index("a"), post.nodes.index("b")] == 1
    assert (share[post.probabilities == 0] == 0).all()
    error = np.sqrt(post.probabilities * (1 - post.probabilities) / 4000)
    assert (np.abs(share - post.probabilities) <= 5 * error + 1e-9).all()
    assert graphs.arcs.sum(axis=1).max() <= 2
    for dag in graphs.graphs()["dag"]:
        assert set(dag.topological_order()) == set("abcde")  # no cycle
    assert graphs.graphs()["probability"].sum() == pytest.approx(1)
    # What constraints allow only one way is an arc.
    edges = graphs.edges().set_index(["from", "to"])
    assert edges.loc[("b", "a"), "reverse"] == 1


def chains_for(prior: str, **options: int) -> pb.OrderMCMC | pb.PartitionMCMC:
    return pb.OrderMCMC(**options) if prior == "orders" else pb.PartitionMCMC(**options)


@pytest.mark.parametrize("N", [2, 4])
def test_chains_over_partitions_count_each_graph_once(N: int) -> None:
    """Against all graphs, with the probabilities of whole sets of parents."""
    frame = network_rows(7, N, rows=8, strength=0.4)
    options: Any = {"group": "F", "pooling": "complete", "score": "bic", "prior": "dags"}
    post = pb.arc_posterior(frame, **options, method=pb.PartitionMCMC(sweeps=3000))
    stats = pb.stats(frame, group="F")
    true = brute_force(family_table(stats, pb.Complete(), "bic"), "dags")
    np.testing.assert_allclose(sets_of(post), true, atol=0.025)
    if N > 2:  # orders count some graphs more often
        other = brute_force(family_table(stats, pb.Complete(), "bic"), "orders")
        assert np.abs(other - true).max() > 0.05


@each_prior
@pytest.mark.parametrize(
    ("sweeps", "near"), [(1000, 0.06), pytest.param(10_000, 0.02, marks=pytest.mark.slow)]
)
def test_chains_find_the_exact_probabilities(sweeps: int, near: float, prior: str) -> None:
    frame = network_rows(8, 12, data_sets=5, rows=30, density=0.2)
    options: Any = {"group": "F", "pooling": "complete", "score": "bic", "max_parents": 2}
    options["prior"] = prior
    exact = pb.arc_posterior(frame, **options)
    post = pb.arc_posterior(frame, **options, method=chains_for(prior, sweeps=sweeps))
    assert post.chains is not None
    assert exact.chains is None
    away = np.abs(post.probabilities - exact.probabilities)
    assert away.max() < near
    assert (away < 5 * np.maximum(post.chains.arc_se, 1e-3)).all()
    assert post.chains.r_hat < 1.05
    assert post.chains.ess > 100
    # Graphs of chains have errors that allow for their dependence.
    graphs = post.sample(2000)
    assert graphs.chains == 4
    found = graphs.paths().set_index(["from", "to"])
    true = exact.sample(20_000).paths().set_index(["from", "to"]).loc[found.index]
    gap = (found["probability"] - true["probability"]).abs()
    assert (gap <= 5 * np.hypot(found["se"], true["se"]) + 0.01).all()


@each_prior
def test_chains_keep_to_constraints(prior: str) -> None:
    frame = network_rows(9, 6)
    rules = pb.Constraints(
        required=[("x0", "x1"), ("x1", "x2")], forbidden=[("x3", "x4")], max_parents=2
    )
    options: Any = {"group": "F", "constraints": rules, "prior": prior}
    exact = pb.arc_posterior(frame, **options, pooling="partial", score="bic")
    post = pb.arc_posterior(
        frame,
        **options,
        method=chains_for(prior, sweeps=3000, seed=1),
        pooling="partial",
        score="bic",
    )
    np.testing.assert_allclose(post.probabilities, exact.probabilities, atol=0.02)
    assert post.probability("x0", "x1") == pytest.approx(1)
    assert post.probability("x3", "x4") == 0


def test_chains_reach_all_graphs_where_arcs_are_forbidden() -> None:
    """Only neighbours on a line may be joined: few partitions are possible at all."""
    frame = network_rows(5, 6, rows=8, strength=0.3)
    names = [name for name in frame.columns if name != "F"]
    far = [(a, b) for i, a in enumerate(names) for j, b in enumerate(names) if abs(i - j) > 1]
    options: Any = {"group": "F", "pooling": "complete", "constraints": {"forbidden": far}}
    exact = pb.arc_posterior(frame, **options, prior="dags", score="bic")
    post = pb.arc_posterior(
        frame,
        **options,
        prior="dags",
        method=pb.PartitionMCMC(sweeps=3000),
        score="bic",
    )
    np.testing.assert_allclose(post.probabilities, exact.probabilities, atol=0.03)


@each_prior
def test_chains_go_on_where_they_are(prior: Any) -> None:
    frame = network_rows(10, 5)

    def run(sweeps: int) -> pb.ArcPosterior:
        method = chains_for(prior, sweeps=sweeps)
        return pb.arc_posterior(
            frame, group="F", prior=prior, method=method, pooling="partial", score="bic"
        )

    once, twice = run(60), run(40).continued(20)
    assert twice.chains is not None
    assert twice.chains.sweeps == 60
    np.testing.assert_array_equal(twice.probabilities, once.probabilities)


@each_prior
def test_tempered_probabilities_are_those_of_powers(prior: Any) -> None:
    """Against all graphs, each family with exp(score / 4); and the same by chains."""
    frame = network_rows(3, 4, rows=10)
    options: Any = {"group": "F", "pooling": "complete", "prior": prior}
    post = pb.arc_posterior(frame, **options, score="bic")
    table = family_table(pb.stats(frame, group="F"), pb.Complete(), "bic")
    found = post.tempered(0.5).tempered(0.5)
    np.testing.assert_allclose(sets_of(found), brute_force(table / 4, prior), atol=1e-10)
    assert found.power == 0.25
    assert "to the power 0.25" in repr(found)
    np.testing.assert_array_equal(post.tempered(1).probabilities, post.probabilities)
    chains = pb.arc_posterior(frame, **options, method=chains_for(prior, sweeps=2000), score="bic")
    near = chains.tempered(0.25)
    np.testing.assert_allclose(near.probabilities, found.probabilities, atol=0.04)
    assert near.chains is not None
    assert near.chains.sweeps == 2000
    assert near.continued(10).power == 0.25


def test_ctrl_c_gives_what_chains_have(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def stop(self: Progress, words: Any) -> None:
        text = words()
        if "sweeps" in text:
            calls.append(text)
        if len(calls) > 30:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "__call__", stop)
    frame = network_rows(10, 5)
    with pytest.raises(pb.PosteriorInterrupted, match="after 30 sweeps") as caught:
        pb.arc_posterior(
            frame, group="F", method=pb.OrderMCMC(sweeps=100), pooling="partial", score="bic"
        )
    monkeypatch.undo()
    whole = pb.arc_posterior(
        frame, group="F", method=pb.OrderMCMC(sweeps=100), pooling="partial", score="bic"
    )
    rest = caught.value.posterior.continued(70)
    np.testing.assert_array_equal(rest.probabilities, whole.probabilities)


def test_more_columns_than_sums_can_be_taken_over() -> None:
    frame = network_rows(11, 22, data_sets=2, rows=60)
    options: Any = {"group": "F", "pooling": "complete", "max_parents": 1}
    post = pb.arc_posterior(frame, **options, method=pb.OrderMCMC(sweeps=20), score="bic")
    assert post.chains is not None
    assert posterior._way(22, "orders", None) == pb.OrderMCMC()
    assert posterior._way(18, "dags", None) == pb.PartitionMCMC()
    assert posterior._way(17, "dags", None) is None
    # In tiers of up to 20 they can be.
    names = [f"x{k}" for k in range(22)]
    rules = pb.Constraints(tiers=[names[:11], names[11:]])
    for prior in PRIORS:
        exact = pb.arc_posterior(frame, **options, constraints=rules, prior=prior, score="bic")
        assert exact.chains is None


def test_r_hat_and_effective_sample_size() -> None:
    rng = np.random.default_rng(0)
    n, rho = 20_000, 0.8
    noise = rng.normal(size=(4, n))
    chain = np.zeros((4, n))
    for t in range(1, n):
        chain[:, t] = rho * chain[:, t - 1] + noise[:, t]
    # An autoregressive chain is worth n (1 - rho) / (1 + rho) draws.
    assert effective_size(chain) == pytest.approx(4 * n * (1 - rho) / (1 + rho), rel=0.1)
    assert split_r_hat(chain) == pytest.approx(1, abs=0.01)
    apart = noise + np.array([0, 0, 0, 2.0])[:, None]
    # Between variance 1 of means 0, 0, 0, 2 in halves, within 1.
    assert split_r_hat(apart) == pytest.approx(np.sqrt(1 + 6 / 7), abs=0.02)
    drifting = noise + np.linspace(0, 3, n)
    assert split_r_hat(drifting) > 1.1


@pytest.mark.slow
@each_prior
def test_compiled_or_not(prior: str) -> None:
    code = f"""
import numpy as np, pandas as pd, poolbn as pb
rng = np.random.default_rng(0)
x = rng.normal(size=(60, 4)) @ np.triu(rng.normal(size=(4, 4)))
frame = pd.DataFrame(x, columns=list("abcd")).assign(F=np.repeat([0, 1, 2], 20))
options = dict(group="F", pooling="complete")
post = pb.arc_posterior(frame, **options, prior={prior!r})
print(post.probabilities.ravel().tolist(), post.sample(50).arcs.mean(axis=0).ravel().tolist())
method = pb.OrderMCMC if {prior!r} == "orders" else pb.PartitionMCMC
chains = method(chains=2, sweeps=16)
post = pb.arc_posterior(frame, **options, prior={prior!r}, method=chains)
print(post.probabilities.ravel().tolist())
"""

    def numbers(**environment: str) -> list[float]:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, text=True, check=True, env=os.environ | environment,
        )  # fmt: skip
        return [float(x) for x in done.stdout.translate(str.maketrans("[],", "   ")).split()]

    np.testing.assert_allclose(numbers(NUMBA_DISABLE_JIT="1"), numbers(), atol=1e-12)


# Averages over graphs


@given(
    st.lists(
        st.tuples(
            st.floats(0.01, 1), st.floats(-3, 3), st.floats(0.01, 2), st.sampled_from([3.0, 30.0])
        ),
        min_size=1,
        max_size=4,
    ),
    st.floats(0, 0.9),
    st.floats(0.01, 0.99),
)
def test_quantiles_of_mixtures(parts: list[Any], absent: float, p: float) -> None:
    weight, center, se, df = (np.array(each) for each in zip(*parts, strict=True))
    weight *= (1 - absent) / weight.sum()
    found = _Mixture(weight, center, se, df).quantile(p)

    def below(x: float) -> float:
        return weight @ scipy_stats.t.cdf((x - center) / se, df) + absent * (x >= 0)

    assert below(found + 1e-7) >= p - 1e-7
    assert below(found - 1e-7) <= p + 1e-7


def test_effects_are_those_of_sets_of_parents() -> None:
    frame = network_rows(12, 4, strength=1.0)
    stats = pb.stats(frame, group="F")
    rules = pb.Constraints(tiers=[["d"], ["b"], ["e"], ["a"]])
    post = pb.arc_posterior(stats, constraints=rules, pooling="partial", score="bic")
    table = post.effects().set_index(["parent", "child"])
    assert len(table) == (post.probabilities >= 0.01).sum()
    for (parent, child), row in table.iterrows():
        mean, present = 0.0, 0.0
        for parents, p in post.parent_sets(child, 100).itertuples(index=False, name=None):
            if parent in parents:
                fit = pb.fit_node(stats, child, parents)
                mean += p * fit.fixed[fit.position(parent)]
                present += p
        assert row["probability"] == pytest.approx(present, abs=1e-9)
        # The sets that have half a percent together are left out.
        assert row["effect"] == pytest.approx(mean, abs=0.01 * max(abs(mean / present), 0.1))
        assert row["lower"] <= row["upper"]
    # An arc that is there for sure has the interval of its only fit.
    sure = pb.Constraints(required=[("d", "b")], forbidden=[("b", "d")], max_parents=1)
    post = pb.arc_posterior(
        stats.select(["d", "b"]), constraints=sure, pooling="partial", score="bic"
    )
    (row,) = post.effects().to_dict("records")
    (own,) = (
        pb.learn(stats.select(["d", "b"]), constraints=sure, preset="paper")
        .effects()
        .to_dict("records")
    )
    for name in ("effect", "lower", "upper"):
        assert row[name] == pytest.approx(own[name], rel=1e-6)
    assert row["if_present"] == pytest.approx(row["effect"])


@pytest.mark.parametrize("pooling", ["complete", "partial", "none"])
def test_total_effects_of_a_graph_that_is_sure(pooling: str) -> None:
    frame = network_rows(13, 3, rows=200, strength=1.0)
    arcs = [("d", "b"), ("b", "e"), ("d", "e")]
    rules = pb.Constraints(required=arcs)
    post = pb.arc_posterior(frame, group="F", pooling=pooling, constraints=rules, score="bic")
    net = pb.learn(frame, group="F", pooling=pooling, constraints=rules, preset="paper")
    found = post.total_effects(4000).set_index(["cause", "effect"])
    db, be, de = (net.effects().set_index(["parent", "child"])["effect"][arc] for arc in arcs)
    for pair, total in {("d", "b"): db, ("b", "e"): be, ("d", "e"): de + db * be}.items():
        row = found.loc[pair]
        assert abs(row["total"] - total) < 5 * row["simulation_se"] + 1e-9
        assert row["lower"] < total < row["upper"]
        assert row["probability"] == 1


def test_total_effects_are_zero_without_a_path() -> None:
    frame = network_rows(14, 4, strength=0.2)
    post = pb.arc_posterior(frame, group="F", pooling="complete", score="bic")
    found = post.total_effects(2000)
    assert (found["probability"] < 0.5).any()
    for row in found[found["probability"] < 0.02].to_dict("records"):
        assert row["lower"] == 0 == row["upper"]


# Data of all kinds


def mixed_rows(seed: int = 0, n: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    arm = rng.choice(["a", "b"], size=n)
    sick = np.where(rng.random(n) < np.where(arm == "b", 0.8, 0.3), "yes", "no")
    x = 2.0 * (sick == "yes") + rng.normal(size=n)
    return pd.DataFrame({"F": np.repeat(list("uvwz"), n // 4), "arm": arm, "sick": sick, "x": x})


def test_columns_of_all_kinds() -> None:
    frame = mixed_rows()
    post = pb.arc_posterior(frame, group="F", pooling="complete", score="bic")
    assert post.adjacency[0, 1] > 0.99
    assert post.adjacency[1, 2] > 0.99
    assert post.adjacency[0, 2] < 0.5
    table = pb.table(frame, group="F")
    score = {
        dag: pb.score(table, dag, pooling="complete")
        for dag in {pb.Dag(post.nodes, [*arcs]) for arcs in _graphs_of(post.nodes)}
    }
    weight = np.exp(np.array(list(score.values())) - max(score.values()))
    same = pb.arc_posterior(table, pooling="complete", prior="dags", score="bic")
    for p, c in permutations(post.nodes, 2):
        own = weight[[(p, c) in dag.arcs for dag in score]].sum() / weight.sum()
        assert same.probability(p, c) == pytest.approx(own, abs=1e-5)
    effects = same.effects()
    assert set(effects["scale"]) <= {"difference", "odds ratio"}
    assert (effects["lower"] <= effects["upper"]).all()
    with pytest.raises(pb.DataError, match="paths"):
        same.total_effects(100)
    assert len(same.sample(100).paths()) == 6


def _graphs_of(nodes: tuple[str, ...]) -> list[list[tuple[str, str]]]:
    return [
        [(nodes[p], nodes[c]) for c in range(3) for p in range(3) if masks[c] >> p & 1]
        for masks in all_pairs(3).parents
    ]


def test_statistics_without_rows() -> None:
    stats = pb.stats(mixed_rows(), group="F")
    with pytest.warns(pb.DataWarning, match="rows"):
        post = pb.arc_posterior(stats, pooling="complete", score="bic")
    assert post.probability("x", "sick") == 0
    assert post.probability("sick", "x") > 0.99


def test_missing_cells() -> None:
    frame = network_rows(15, 4, rows=40, strength=1.0)
    holes = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1)
    holes["F"] = frame["F"]
    post = pb.arc_posterior(holes, group="F", missing="em", pooling="partial", score="bic")
    stats = pb.stats(holes, group="F", missing="em")
    expected = brute_force(family_table(stats, "partial", "bic"), "orders")
    np.testing.assert_allclose(sets_of(post), expected, atol=1e-10)
    assert (post.effects()["lower"] <= post.effects()["upper"]).all()


def test_auto_has_the_pooling_of_the_network() -> None:
    for seed in (0, 1):
        frame = simulate(seed, parents=3, between=float(seed))
        post = pb.arc_posterior(frame, group="F", pooling="auto", score="bic")
        net = pb.learn(frame, group="F", pooling="auto", preset="paper")
        pooled = {str(fit.pooling) for fit in net.fits.values()} != {"complete pooling"}
        same = pb.arc_posterior(
            frame, group="F", pooling=POOLED if pooled else "complete", score="bic"
        )
        np.testing.assert_allclose(post.probabilities, same.probabilities, atol=1e-6)


# What a user sees


def test_the_median_graph() -> None:
    frame = network_rows(16, 5, rows=60, strength=1.0)
    post = pb.arc_posterior(frame, group="F", pooling="partial", score="bic")
    dag = post.median_graph()
    joined = {frozenset((a, b)) for a, b in combinations(post.nodes, 2)}
    either = {
        pair for pair in joined if sum(post.probability(*two) for two in permutations(pair)) > 0.5
    }
    assert set(map(frozenset, dag.arcs)) <= either
    assert post.median_graph(1.0).arcs == ()
    for parent, child in dag.arcs:
        assert post.probability(parent, child) >= 0.25


def test_a_posterior_prints(opt_stats: pb.GroupStats) -> None:
    post = pb.arc_posterior(opt_stats, max_parents=1, pooling="partial", score="bic")
    text = repr(post)
    assert "exact, uniform prior over orders, up to 1 parent" in text
    assert text.count("probability") <= 12
    assert "<table" in post._repr_html_()
    assert "uniform prior over graphs" in repr(
        pb.arc_posterior(
            opt_stats.select(["age", "bmi"]), prior="dags", pooling="partial", score="bic"
        )
    )
    chains = pb.arc_posterior(
        opt_stats.select(["age", "bmi"]),
        method=pb.OrderMCMC(sweeps=40),
        pooling="partial",
        score="bic",
    )
    assert "4 chains of 40 sweeps; largest R-hat" in repr(chains)
    assert {"se", "r_hat"} <= set(chains.arcs())


def test_how_many_parents() -> None:
    wide = network_rows(17, 20, data_sets=2, rows=40)
    options: Any = {"group": "F", "pooling": "complete"}
    assert (
        pb.arc_posterior(
            wide[["F", *(f"x{k}" for k in range(8))]], **options, score="bic"
        ).max_parents
        == 7
    )
    required = [(f"x{k}", "x0") for k in range(1, 6)]
    rules = pb.Constraints(required=required)
    small = wide[["F", *(f"x{k}" for k in range(10))]]
    assert pb.arc_posterior(small, **options, constraints=rules, score="bic").max_parents >= 5
    few = pb.Constraints(max_parents=4)
    assert pb.arc_posterior(small, **options, constraints=few, score="bic").max_parents == 4
    assert (
        pb.arc_posterior(small, **options, constraints=few, max_parents=1, score="bic").max_parents
        == 1
    )
    # Of 20 columns, 50,000 families have three parents; with a wish there may be more.
    arcs = ~np.eye(20, dtype=bool)
    assert usual_parents(arcs) == 3
    assert usual_parents(~np.eye(100, dtype=bool)) == 2


# Errors among arcs


@pytest.mark.parametrize("directed", [False, True])
def test_expected_false_arcs_are_those_that_drawn_graphs_lack(directed: bool) -> None:
    post = pb.arc_posterior(network_rows(3, 5, data_sets=4), group="F").tempered(0.3)
    drawn = post.sample(40_000, seed=1).arcs
    joined = drawn if directed else drawn | drawn.transpose(0, 2, 1)
    p = post.probabilities if directed else np.triu(post.adjacency, 1)
    for threshold in (0.2, 0.5, 0.8):
        kept = (p >= threshold) & ~np.eye(5, dtype=bool)
        lacking = (kept & ~joined).sum(axis=(1, 2))
        error = lacking.std() / 200
        assert post.expected_false(threshold, directed=directed) == pytest.approx(
            lacking.mean(), abs=5 * error + 1e-9
        )


@given(st.lists(st.sampled_from([0.01, 0.2, 0.5, 0.9, 0.97, 1.0]), min_size=6, max_size=6),
       st.floats(0, 1))  # fmt: skip
def test_no_lower_threshold_keeps_the_rate(values: list[float], rate: float) -> None:
    post = posterior.ArcPosterior(tuple("abcd"), "orders", 3, (), None)  # type: ignore[arg-type]
    p = np.zeros((4, 4))
    p[np.triu_indices(4, 1)] = values
    vars(post)["probabilities"] = p
    threshold = post.threshold(rate)
    kept = [value for value in values if value > threshold]
    assert kept == [value for value in values if value >= threshold]
    assert sum(1 - value for value in kept) <= rate * len(kept) + 1e-12
    lower = [value for value in values if value < threshold]
    if lower:
        more = [value for value in values if value >= max(lower)]
        assert sum(1 - value for value in more) > rate * len(more) - 1e-12


def test_rates_and_thresholds_are_probabilities(opt_stats: pb.GroupStats) -> None:
    post = pb.arc_posterior(opt_stats.select(["age", "bmi"]))
    with pytest.raises(pb.OptionError, match=r"rate.* is not a probability"):
        post.threshold(1.2)
    with pytest.raises(pb.OptionError, match=r"threshold.* is not a probability"):
        post.expected_false(-0.1)
    with pytest.raises(pb.OptionError, match="directed"):
        post.expected_false(directed="yes")  # type: ignore[arg-type]
