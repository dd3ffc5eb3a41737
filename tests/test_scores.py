from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers import simulate

import poolbn as pb
from poolbn.scoring.local import LocalScores

STATS = pb.stats(simulate(7, data_sets=4, rows=15, parents=3), group="F")
ARCS = [("x1", "y"), ("x2", "y"), ("x1", "x3")]


@pytest.mark.parametrize("pooling", ["complete", "none", "partial", pb.Partial(random="intercept")])
@pytest.mark.parametrize("kind", ["bic", "aic", "loglik"])
def test_local_scores_sum_to_the_total(pooling, kind: str) -> None:
    dag = pb.Dag(STATS.names, ARCS)
    total = pb.score(STATS, dag, pooling=pooling, score=kind)
    fits = [pb.fit_node(STATS, node, dag.parents(node), pooling=pooling) for node in dag.nodes]
    assert total == pytest.approx(sum(getattr(fit, kind) for fit in fits), rel=1e-12)
    local = LocalScores(STATS, pooling=pooling, score=kind)
    index = {name: i for i, name in enumerate(STATS.names)}
    families = [
        (index[node], tuple(sorted(index[p] for p in dag.parents(node)))) for node in dag.nodes
    ]
    assert sum(local(families)) == pytest.approx(total, rel=1e-9)


def test_a_graph_can_be_given_in_three_ways() -> None:
    dag = pb.Dag(STATS.names, ARCS)
    values = {pb.score(STATS, graph) for graph in (dag, ARCS, dag.to_modelstring())}
    assert len(values) == 1


def test_scores_are_remembered(monkeypatch) -> None:
    scores = LocalScores(STATS)
    first = scores([(3, (0, 1)), (3, ()), (3, (0, 1))])
    assert first[0] == first[2]
    assert scores.made == 2
    monkeypatch.setattr(pb.Partial, "logliks", None)
    np.testing.assert_array_equal(scores([(3, ()), (3, (0, 1))]), first[1:])


@pytest.mark.parametrize(
    "pooling", ["complete", "none", "partial", "auto", pb.Partial(random="intercept")]
)
def test_bounds_are_bounds(pooling) -> None:
    families = [(c, tuple(p for p in range(4) if p != c and m >> p & 1)) for c in range(4)
                for m in range(0, 16, 3)]  # fmt: skip
    bounds, exact = LocalScores(STATS, pooling=pooling).upper_bounds(families)
    values = LocalScores(STATS, pooling=pooling)(families)
    assert (bounds >= values - 1e-9).all()
    assert exact.all() == (pooling in {"complete", "none"})
    np.testing.assert_allclose(bounds[exact], values[exact])


@pytest.mark.parametrize("data_sets", [2, 3, 10, 40])
@pytest.mark.parametrize("spread", [0.0, 0.3, 5.0])
def test_bounds_are_above_the_best_fit_of_any_table(data_sets: int, spread: float) -> None:
    """With data sets of all sizes, scales and shapes; where they are alike the bound is close."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        F, n = data_sets, rng.integers(3, 60, data_sets)
        scale = rng.lognormal(0, spread / 3, (F, 3))
        X = [rng.normal(rng.normal(size=3), 1, (m, 3)) * s for m, s in zip(n, scale, strict=True)]
        beta = [1, 2, -1] + spread * rng.normal(size=(F, 3))
        y = [x @ b + rng.normal(size=len(x)) for x, b in zip(X, beta, strict=True)]
        rows = np.column_stack([np.concatenate(X), np.concatenate(y)])
        table = pd.DataFrame(rows, columns=list("abcy")).assign(F=np.repeat(np.arange(F), n))
        stats = pb.stats(table, group="F")
        families = [(3, parents) for parents in [(), (0,), (1, 2), (0, 1, 2)]]
        for how in (pb.Partial(), pb.Partial(method="reml"), pb.Partial(random="intercept")):
            scores = LocalScores(stats, pooling=how, score="loglik")
            bounds, _ = scores.upper_bounds(families)
            parents = [[stats.names[p] for p in pa] for _, pa in families]
            best = np.array([pb.fit_node(stats, "y", pa, pooling=how).loglik for pa in parents])
            assert (bounds >= best).all()
            if spread == 0:
                assert (bounds[0] - best[0]) < 3 * F


def test_auto_takes_the_best() -> None:
    poolings = [pb.Complete(), pb.Partial(random="intercept"), pb.Partial(), pb.NoPooling()]
    for child, parents in (("y", ["x1", "x2", "x3"]), ("x1", []), ("x2", ["x3"])):
        able = poolings if STATS.n.min() >= 4 * (len(parents) + 1) else poolings[:-1]
        fits = [pb.fit_node(STATS, child, parents, pooling=how) for how in able]
        auto = pb.fit_node(STATS, child, parents, pooling="auto")
        assert auto.bic == max(fit.bic for fit in fits)
    arcs = [("x1", "y"), ("x2", "y")]
    best = max(pb.score(STATS, arcs, pooling=how) for how in poolings[:-1])
    assert pb.score(STATS, arcs, pooling="auto") >= best


def test_number_of_parameters() -> None:
    """Eq. nparams: (p^2 + 5p + 6) / 2; p + 2 for a Gaussian node, times |F| without pooling."""
    for p in range(6):
        assert pb.Partial().n_params(p, 9) == (p * p + 5 * p + 6) // 2
        assert pb.Complete().n_params(p, 9) == p + 2
        assert pb.NoPooling().n_params(p, 9) == 9 * (p + 2)
        assert pb.Partial(random="intercept").n_params(p, 9) == p + 3


def test_bge_is_score_equivalent() -> None:
    """Graphs in one equivalence class have the same BGe score, and others have not."""
    dags = [
        [("x1", "x2"), ("x2", "x3")],
        [("x2", "x1"), ("x2", "x3")],
        [("x3", "x2"), ("x2", "x1")],
        [("x1", "x2"), ("x3", "x2")],
    ]
    a, b, c, collider = (
        pb.score(STATS, arcs, pooling="complete", score=pb.BGe(iss_mu=2, iss_w=9)) for arcs in dags
    )
    assert a == pytest.approx(b, rel=1e-12)
    assert a == pytest.approx(c, rel=1e-12)
    assert abs(a - collider) > 1e-3
