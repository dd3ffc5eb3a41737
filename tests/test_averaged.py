"""Predictions averaged over graphs: against definitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats as distributions
from scipy.special import logsumexp

import poolbn as pb


def rows(seed: int, discrete: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    at = np.repeat(np.arange(4), 15)
    a = rng.normal(size=60) + rng.normal(size=4)[at]
    b = 0.3 * a + rng.normal(size=60)
    frame = pd.DataFrame({"a": a, "b": b, "c": 0.3 * b + rng.normal(size=60), "F": at})
    if discrete:
        frame["d"] = np.where(rng.logistic(size=60) < frame["b"], "yes", "no")
    return frame


@pytest.fixture(scope="module")
def averaged() -> pb.AveragedNetwork:
    return pb.arc_posterior(rows(1), group="F", pooling="partial", score="bic").averaged(
        400, seed=3
    )


def test_networks_are_those_of_the_drawn_graphs(averaged: pb.AveragedNetwork) -> None:
    post = pb.arc_posterior(rows(1), group="F", pooling="partial", score="bic")
    graphs = post.sample(400, seed=3).graphs()
    assert [net.dag for net in averaged.networks] == graphs["dag"].tolist()
    assert averaged.weights == pytest.approx(graphs["probability"].to_numpy())
    assert len(averaged.networks) > 3
    stats = pb.stats(rows(1), group="F")
    for net in averaged.networks[:3]:
        for node, fit in net.fits.items():
            alone = pb.fit_node(stats, node, net.dag.parents(node))
            assert fit.loglik == pytest.approx(alone.loglik)


def test_density_is_the_mean_of_densities(averaged: pb.AveragedNetwork) -> None:
    new = rows(2)
    each = np.array([net.loglik(new, rows=True) for net in averaged.networks])
    wanted = logsumexp(each, b=averaged.weights[:, None], axis=0)
    assert averaged.loglik(new, rows=True).to_numpy() == pytest.approx(wanted)
    assert averaged.loglik(new) == pytest.approx(wanted.sum())
    assert averaged.loglik(new.iloc[0].to_dict()) == pytest.approx(wanted[0])


def test_predictions_are_ratios_of_densities(averaged: pb.AveragedNetwork) -> None:
    """The density of b given the others, on a grid, from densities of whole rows."""
    row = {"F": 1, "a": 1.0, "c": -0.5}
    grid = np.linspace(-8, 8, 1601)
    whole = pd.DataFrame([row] * len(grid)).assign(b=grid)
    density = np.exp(averaged.loglik(whole, rows=True).to_numpy())
    density /= density.sum()
    mean = density @ grid
    sd = np.sqrt(density @ (grid - mean) ** 2)
    found = averaged.predict(row, "b").iloc[0]
    # Networks approximate what is below a node; with 60 rows the errors are small.
    assert found["mean"] == pytest.approx(mean, abs=0.03)
    assert found["sd"] == pytest.approx(sd, rel=0.05)
    below = np.cumsum(density)
    assert below[np.searchsorted(grid, found["lower"])] == pytest.approx(0.025, abs=0.01)
    assert below[np.searchsorted(grid, found["upper"])] == pytest.approx(0.975, abs=0.01)


def test_one_graph_predicts_as_its_network() -> None:
    frame = rows(3)
    arcs = [("a", "b"), ("b", "c")]
    known = pb.Constraints(required=arcs, forbidden=[("a", "c"), ("c", "a")])
    averaged = pb.arc_posterior(
        frame, group="F", constraints=known, pooling="partial", score="bic"
    ).averaged(10)
    (net,) = averaged.networks
    found, wanted = averaged.predict(frame, "c"), net.predict(frame, "c")
    pd.testing.assert_frame_equal(found, wanted, rtol=1e-6)
    assert averaged.loglik(frame) == pytest.approx(net.loglik(frame))
    nothing = averaged.predict({"F": 2, "a": 0.0}, "a", interval=0.5)
    half = distributions.norm.ppf(0.75)
    assert 0 < nothing["upper"].iloc[0] - nothing["lower"].iloc[0] < 4 * half


def test_levels_of_a_discrete_node() -> None:
    frame = rows(4, discrete=True)
    averaged = pb.arc_posterior(frame, group="F", pooling="partial", score="bic").averaged(50)
    found = averaged.predict(frame.head(6), "d")
    assert found[["no", "yes"]].sum(axis=1).to_numpy() == pytest.approx(1)
    each = np.array([net.predict(frame.head(6), "d")["yes"] for net in averaged.networks])
    assert (found["yes"].to_numpy() <= each.max(axis=0) + 1e-12).all()
    assert (found["yes"].to_numpy() >= each.min(axis=0) - 1e-12).all()
    other = found.columns.difference(["no", "yes"])[0]
    assert (found[other] == np.where(found["yes"] > found["no"], "yes", "no")).all()


def test_what_is_refused(averaged: pb.AveragedNetwork) -> None:
    with pytest.raises(pb.GraphError, match="'q' is not a node"):
        averaged.predict(rows(1), "q")
    with pytest.raises(pb.DataError, match="expected a pandas table"):
        averaged.loglik(3)
