from __future__ import annotations

from math import comb

import numpy as np
import pandas as pd
import pytest
from helpers import learned_as_given, simulate
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import dblquad

import poolbn as pb
from poolbn.nodes.localfit import Counts
from poolbn.scoring.likelihoods import PenalisedLikelihood
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


@pytest.mark.parametrize("pooling", ["complete", "none", "partial", pb.Partial(random="intercept")])
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
    poolings = pb.Auto().among
    for child, parents in (("y", ["x1", "x2", "x3"]), ("x1", []), ("x2", ["x3"])):
        fits = [pb.fit_node(STATS, child, parents, pooling=how) for how in poolings]
        auto = pb.fit_node(STATS, child, parents, pooling="auto")
        assert auto.bic == max(fit.bic for fit in fits)
    arcs = [("x1", "y"), ("x2", "y")]
    best = max(pb.score(STATS, arcs, pooling=how) for how in poolings)
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


# A parameter costs by what tells of it


@pytest.mark.parametrize("residuals", ["shared", "pooled", "separate"])
def test_counts_say_what_tells_of_a_parameter(residuals: str) -> None:
    F = len(STATS.levels)
    pooling = pb.Partial(residuals=residuals)
    rows, groups, own = {"shared": (1, 0, 0), "pooled": (1, 1, 0), "separate": (0, 0, F)}[residuals]
    for parents in [(), ("x1",), ("x1", "x2"), ("x1", "x2", "x3")]:
        fit = pb.fit_node(STATS, "y", parents, pooling=pooling)
        q = len(parents) + 1
        assert fit.counts == Counts(q + rows, q * (q + 1) // 2 + groups, own)
        assert fit.n_params == pooling.n_params(len(parents), F)


@pytest.mark.parametrize("pooling", ["complete", "none", "partial", pb.Partial(residuals="pooled")])
def test_bic_h_charges_by_what_tells_of_a_parameter(pooling) -> None:
    dag = pb.Dag(STATS.names, ARCS)
    n, F = STATS.n_rows, len(STATS.levels)
    of = np.array([n, np.sqrt(n * F), 15])  # 15 rows in each data set
    expected = 0.0
    for node in dag.nodes:
        fit = pb.fit_node(STATS, node, dag.parents(node), pooling=pooling)
        q, m = len(fit.parents) + 1, np.array([n, n, 15])
        charge = np.array(fit.counts[:3]) @ (np.log(of) / 2 + m / (m - q - 2) - 1)
        charge += np.log(comb(3, q - 1)) / 2
        if fit.residual_shape not in (None, np.inf):
            a, s = fit.residual_shape, fit.residual_scale
            variance = (a * s + fit.squares / 2) / (a + 15 / 2)
            charge += q * np.log(variance.mean() * (1 / variance).mean()) / 2
        expected += fit.loglik - charge
    total = pb.score(STATS, dag, pooling=pooling, score="bic-h")
    assert total == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("pooling", ["partial", "auto", pb.Partial(residuals="pooled")], ids=str)
def test_bounds_change_no_search_by_bic_h(pooling, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(3):
        stats = pb.stats(simulate(seed, data_sets=4, rows=15, parents=4), group="F")
        lazy = pb.learn(stats, pooling=pooling, score="bic-h", start=())
        with monkeypatch.context() as patched:
            for name in ("bounds", "neighbours"):
                patched.setattr(PenalisedLikelihood, name, lambda *_, **__: None)
            eager = pb.learn(stats, pooling=pooling, score="bic-h", start=())
        assert lazy.dag == eager.dag
        assert lazy.score == eager.score
        less, more = (sum(move.fits for move in net.trace) for net in (lazy, eager))
        assert less < more or pooling == "auto"  # which may end with complete pooling's search


# Bayes factors with the g-prior


def evidence(y: np.ndarray, X: np.ndarray) -> float:
    """Of rows whose slopes are integrated out: intercept and log sigma by quadrature."""
    n = len(y)
    P = X @ np.linalg.pinv(X) if X.size else np.zeros((n, n))
    V = np.eye(n) + n * P  # of y over sigma^2, X centred
    log_det, inverse = np.linalg.slogdet(V)[1], np.linalg.inv(V)

    def density(a: float, log_sigma: float) -> float:
        rest = (y - a) / np.exp(log_sigma)
        return float(np.exp(-0.5 * rest @ inverse @ rest - n * log_sigma - 0.5 * log_det))

    value, _ = dblquad(density, -4, 4, y.mean() - 8, y.mean() + 8, epsabs=0, epsrel=1e-7)
    return value


@pytest.mark.parametrize("parents", [1, 2])
def test_gprior_is_a_ratio_of_integrals(parents: int) -> None:
    frame = simulate(3, data_sets=2, rows=7, parents=parents)
    stats = pb.stats(frame, group="F")
    names = [f"x{k + 1}" for k in range(parents)]
    arcs = [(name, "y") for name in names]
    expected = -0.5 * np.log(comb(parents, parents))  # of the ways to choose as many parents
    for _, rows in frame.groupby("F"):
        X = rows[names].to_numpy() - rows[names].to_numpy().mean(axis=0)
        y = (rows["y"] / rows["y"].std()).to_numpy()
        expected += np.log(evidence(y, X) / evidence(y, X[:, :0]))
    assert pb.score(stats, arcs, score="gprior") == pytest.approx(expected, abs=1e-4)
    assert pb.score(stats, [], score="gprior") == 0


@given(st.integers(0, 1000), st.floats(0.01, 100), st.floats(-100, 100))
def test_gprior_knows_no_units_and_no_order(seed: int, unit: float, shift: float) -> None:
    frame = simulate(seed, data_sets=3, rows=8, parents=3)
    other = frame.assign(x1=unit * frame["x1"] + shift, y=-unit * frame["y"] + shift)
    other = other[other.columns[::-1]].iloc[::-1]
    one, two = (pb.score(pb.stats(f, group="F"), ARCS, score="gprior") for f in (frame, other))
    assert one == pytest.approx(two, rel=1e-8, abs=1e-8)


def test_gprior_hears_nothing_from_data_sets_that_say_nothing() -> None:
    """One where the child is constant, one where a parent is, and one with fewer rows than it."""
    frame = simulate(5, data_sets=3, rows=20, parents=3)
    none = {"x1": [1.0, 2, 3], "x2": [3.0, 1, 2], "x3": [1.0, 0, 0]}
    constant = pd.DataFrame({"F": "constant", "y": 5.0, **none})
    few = pd.DataFrame({"F": "few", "y": [1.0, 4.0], **{k: v[:2] for k, v in none.items()}})
    arcs = [("x1", "y"), ("x2", "y"), ("x3", "y")]
    alone = pb.score(pb.stats(frame, group="F"), arcs, score="gprior")
    more = pb.score(pb.stats(pd.concat([frame, constant, few]), group="F"), arcs, score="gprior")
    assert more == pytest.approx(alone, abs=1e-9)


def test_gprior_finds_the_graph_and_the_pooling_fits_it() -> None:
    true = pb.random_network(pb.random_dag(8, 1, seed=4), 2, seed=4)
    stats = pb.stats(pb.random_table(true, 300, seed=1), group="F")
    pooled = pb.Partial(residuals="pooled")
    net = learned_as_given(stats, pooling=pooled, score="gprior")
    assert pb.metrics.shd(true.dag, net.dag) <= pb.metrics.shd(
        true.dag, learned_as_given(stats, pooling=pooled).dag
    )
    assert {fit.pooling for fit in net.fits.values()} == {pooled}
    assert net.score == pytest.approx(pb.score(stats, net.dag, score="gprior"), rel=1e-12)
    assert net.score_kind == "gprior"
