from __future__ import annotations

import numpy as np
import pytest
from helpers import simulate

import poolbn as pb
from poolbn.scores import LocalScores

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
    assert sum(local((node, dag.parents(node)) for node in dag.nodes)) == pytest.approx(
        total, rel=1e-9
    )


def test_a_graph_can_be_given_in_three_ways() -> None:
    dag = pb.Dag(STATS.names, ARCS)
    values = {pb.score(STATS, graph) for graph in (dag, ARCS, dag.to_modelstring())}
    assert len(values) == 1


def test_scores_are_remembered_by_the_set_of_parents(monkeypatch) -> None:
    scores = LocalScores(STATS)
    first = scores([("y", ["x1", "x2"]), ("y", ["x2", "x1"]), ("y", [])])
    assert first[0] == first[1]
    monkeypatch.setattr(pb.Partial, "log_likelihoods", None)
    np.testing.assert_array_equal(scores([("y", ("x2", "x1")), ("y", ())]), first[1:])


def test_number_of_parameters() -> None:
    """Eq. nparams: (p^2 + 5p + 6) / 2; p + 2 for a Gaussian node, |F| times that without pooling."""
    for p in range(6):
        assert pb.Partial().n_params(p, 9) == (p * p + 5 * p + 6) // 2
        assert pb.Complete().n_params(p, 9) == p + 2
        assert pb.Separate().n_params(p, 9) == 9 * (p + 2)
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


def test_unknown_names_are_told() -> None:
    with pytest.raises(pb.DataError, match="did you mean 'x1'"):
        LocalScores(STATS)([("y", ["x11"])])
