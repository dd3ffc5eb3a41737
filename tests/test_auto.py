"""The pooling that `Auto` chooses, on data of which it is known whether data sets differ."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import poolbn as pb


def learned(true: pb.Network, rows: int, seed: int, score: str = "bic-h") -> pb.Network:
    table = pb.random_table(true, rows, seed=seed)
    return pb.learn(table, group="F", pooling="auto", score=score, preset="paper")


def least_opposite(true: pb.Network, child: str, parents: set[str]) -> float:
    """How far both signs of a parent's effect are from 0, in residual SDs; the clearest parent."""
    fit, place = true.fits[child], {v: i for i, v in enumerate(true.dag.nodes)}
    clearest = 0.0
    for k, parent in enumerate(fit.parents):
        if parent in parents:
            sd = np.sqrt(true.joint.cov[:, place[parent], place[parent]] / fit.sigma2)
            effect = fit.coef[:, 1 + k] * sd
            clearest = max(clearest, min(effect.max(), -effect.min()))
    return clearest


@pytest.mark.parametrize("score", ["bic", "bic-h"])
@pytest.mark.parametrize("data_sets", [5, 20])
def test_data_sets_that_are_alike_are_pooled(data_sets: int, score: str) -> None:
    poolings = []
    for seed in range(6):
        dag = pb.random_dag(10, (1, 2, 4)[seed % 3], seed=seed)
        true = pb.random_network(dag, data_sets, seed=seed, heterogeneous=False)
        poolings += [str(fit.pooling) for fit in learned(true, 20, seed, score).fits.values()]
    assert poolings.count("complete pooling") >= 0.95 * len(poolings)


@pytest.mark.parametrize(
    ("data_sets", "score"), [(2, "bic-h"), (5, "bic"), (5, "bic-h"), (10, "bic"), (20, "bic-h")]
)
def test_effects_of_opposite_sign_are_never_pooled_completely(data_sets: int, score: str) -> None:
    """Strong ones, that is, of more than two residual SDs in either direction."""
    opposite = 0
    for seed in range(10):
        true = pb.random_network(pb.random_dag(10, 2, seed=seed), data_sets, seed=seed)
        for child, fit in learned(true, 10, seed, score).fits.items():
            if least_opposite(true, child, set(fit.parents)) > 2:
                opposite += 1
                assert str(fit.pooling) != "complete pooling", (seed, child)
    assert opposite >= 2


def test_without_pooling_each_data_set_needs_rows() -> None:
    """At four rows for each coefficient no pooling may be taken, with one row less it may not."""
    rng = np.random.default_rng(1)
    x = np.tile(np.linspace(-1, 1, 8), (6, 1))
    y = rng.normal(0, 5, (6, 1)) + rng.normal(0, 5, (6, 1)) * x + 1e-3 * rng.normal(size=x.shape)
    for rows, considered in ((8, True), (7, False)):
        table = pd.DataFrame(
            {
                "F": np.repeat(list("abcdef"), rows),
                "x": x[:, :rows].ravel(),
                "y": y[:, :rows].ravel(),
            }
        )
        stats = pb.stats(table, group="F")
        among = (pb.Complete(), pb.NoPooling())
        fit = pb.fit_node(stats, "y", ["x"], pooling=pb.Auto(among))
        assert str(fit.pooling) == ("no pooling" if considered else "complete pooling")
        net = pb.learn(stats, pooling=pb.Auto(among), start=[("x", "y")], preset="paper")
        assert ("x", "y") not in net.dag.arcs or str(net.fits["y"].pooling) == str(fit.pooling)
        plain = pb.fit_node(stats, "y", ["x"], pooling=among[considered])
        n, q = (rows, 2) if considered else (6 * rows, 2)
        np.testing.assert_allclose(fit.sigma2, plain.sigma2 * n / (n - q))
        assert fit.loglik == plain.loglik


def test_the_score_is_that_of_the_best_candidate() -> None:
    best = []
    for heterogeneous in (False, True):
        true = pb.random_network(
            pb.random_dag(5, 2, seed=3), 5, seed=3, heterogeneous=heterogeneous
        )
        stats = pb.stats(pb.random_table(true, 30, seed=3), group="F")
        each = [pb.score(stats, true.dag, pooling=how) for how in pb.Auto().among]
        assert pb.score(stats, true.dag, pooling="auto") >= max(each)
        best.append(int(np.argmax(each)))
        nets = [pb.learn(stats, pooling=how, preset="paper") for how in ("auto", *pb.Auto().among)]
        assert nets[0].score >= max(net.score for net in nets[1:])
        assert nets[0].score == pytest.approx(pb.score(stats, nets[0].dag, pooling="auto"))
        assert nets[0].dag == nets[1 + best[-1]].dag
    assert best == [0, 1]


def test_a_node_without_a_likelihood_does_not_choose_for_all_others() -> None:
    auto = pb.Auto()
    complete, pooled = auto.candidates(["a", "b"])
    worths = {complete: np.array([-9.0, -9.0, -9.0]), pooled: np.array([-1.0, -np.inf, -1.0])}
    assert auto.chosen(["a", "b"], worths.__getitem__) == pooled
    worths[complete] = np.array([-1.0, -np.inf, -0.5])
    assert auto.chosen(["a", "b"], worths.__getitem__) == complete
