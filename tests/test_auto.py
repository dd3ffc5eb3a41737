"""The pooling that `Auto` chooses, on data of which it is known whether data sets differ."""

from __future__ import annotations

import numpy as np
import pytest

import poolbn as pb


def learned(true: pb.Network, rows: int, seed: int) -> pb.Network:
    return pb.learn(pb.random_table(true, rows, seed=seed), group="F", pooling="auto")


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


@pytest.mark.parametrize("data_sets", [5, 20])
def test_data_sets_that_are_alike_are_pooled(data_sets: int) -> None:
    poolings = []
    for seed in range(6):
        dag = pb.random_dag(10, (1, 2, 4)[seed % 3], seed=seed)
        true = pb.random_network(dag, data_sets, seed=seed, heterogeneous=False)
        poolings += [fit.pooling for fit in learned(true, 20, seed).fits.values()]
    assert poolings.count("complete pooling") >= 0.95 * len(poolings)


@pytest.mark.parametrize("data_sets", [2, 5, 10, 20])
def test_effects_of_opposite_sign_are_never_pooled_completely(data_sets: int) -> None:
    """Strong ones, that is, of more than two residual SDs in either direction."""
    opposite = 0
    for seed in range(10):
        true = pb.random_network(pb.random_dag(10, 2, seed=seed), data_sets, seed=seed)
        for child, fit in learned(true, 10, seed).fits.items():
            if least_opposite(true, child, set(fit.parents)) > 2:
                opposite += 1
                assert fit.pooling != "complete pooling", (seed, child)
    assert opposite >= 2
