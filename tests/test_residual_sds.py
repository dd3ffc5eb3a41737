"""Residual SDs of a node in each data set: estimates and intervals, drawn and on a page."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import simulate
from numpy.typing import NDArray
from scipy.stats import chi2, invgamma

import poolbn as pb
from poolbn.assess.estimates import (
    Common,
    Estimates,
    _chi_square,
    _components,
    _mixture_ends,
    residual_sds,
)

ARC = pb.Constraints(required=[("x1", "y")])
POOLED, APART = pb.Partial(residuals="pooled"), pb.Partial(residuals="separate")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Eight data sets whose residual SDs are 1, 2 and 3."""
    table = simulate(11, data_sets=8, rows=15, parents=1)
    table["y"] *= table["F"].map({f"set {j}": 1 + j % 3 for j in range(8)})
    return table


@pytest.fixture(scope="module")
def pooled(frame: pd.DataFrame) -> pb.Network:
    return pb.learn(frame, group="F", pooling=POOLED, constraints=ARC)


def least_squares(frame: pd.DataFrame) -> tuple[float, int]:
    """Residual squares and degrees of freedom."""
    Z = np.column_stack([np.ones(len(frame)), frame["x1"]])
    _, (rss,), _, _ = np.linalg.lstsq(Z, frame["y"].to_numpy(), rcond=None)
    return float(rss), len(frame) - 2


def by_chi_square(rss: float, df: float, interval: float = 0.95) -> NDArray[np.float64]:
    """The interval of an SD."""
    tails = np.array([(1 + interval) / 2, (1 - interval) / 2])
    return np.sqrt(rss / chi2.ppf(tails, df))


# Chi-square


@pytest.mark.parametrize("variance", ["ml", "unbiased"])
def test_without_pooling_each_has_its_interval(frame: pd.DataFrame, variance: str) -> None:
    net = pb.learn(frame, group="F", pooling=pb.NoPooling(variance), constraints=ARC)
    found = residual_sds(net, "y", interval=0.8)
    for j, (_, rows) in enumerate(frame.groupby("F", sort=False)):
        rss, df = least_squares(rows)
        np.testing.assert_allclose(found.interval[j], by_chi_square(rss, df, 0.8))
        assert found.effect[j] == pytest.approx(
            math.sqrt(rss / (df if variance == "unbiased" else len(rows)))
        )
    assert np.isnan(found.alone).all()
    assert np.isnan([*found.population_interval, *found.new_interval]).all()
    assert found.population == pytest.approx(math.sqrt(np.mean(net.fits["y"].sigma2)))
    assert found.common is Common.MEAN


@pytest.mark.parametrize("variance", ["ml", "unbiased"])
def test_with_complete_pooling_there_is_one(frame: pd.DataFrame, variance: str) -> None:
    net = pb.learn(frame, group="F", pooling=pb.Complete(variance), constraints=ARC)
    found = residual_sds(net, "y")
    rss, df = least_squares(frame)
    np.testing.assert_allclose(found.population_interval, by_chi_square(rss, df))
    assert np.isnan(found.interval).all()
    assert found.common is Common.ALL
    for j, (_, rows) in enumerate(frame.groupby("F", sort=False)):
        own, freedom = least_squares(rows)
        assert found.alone[j] == pytest.approx(math.sqrt(own / freedom))
        np.testing.assert_allclose(found.alone_interval[j], by_chi_square(own, freedom))


def parts(frame: pd.DataFrame, level: object) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rows = frame[frame["F"] == level]
    return np.column_stack([np.ones(len(rows)), rows["x1"]]), rows["y"].to_numpy()


@pytest.mark.parametrize("pooling", [pb.Partial(), APART, POOLED])
def test_what_random_effects_take(frame: pd.DataFrame, pooling: pb.Partial) -> None:
    net = pb.learn(frame, group="F", pooling=pooling, constraints=ARC)
    fit = net.fits["y"]
    taken = fit.effective_df
    for j, level in enumerate(fit.levels):
        Z, _ = parts(frame, level)
        assert taken[j] == pytest.approx(np.trace(fit.coef_cov[j] @ Z.T @ Z) / fit.sigma2[j])


@pytest.mark.parametrize("pooling", [pb.Partial(), APART])
def test_residual_squares_are_those_of_the_coefficients(
    frame: pd.DataFrame, pooling: pb.Partial
) -> None:
    net = pb.learn(frame, group="F", pooling=pooling, constraints=ARC)
    fit = net.fits["y"]
    df, squares = (2 * part for part in _chi_square(fit, net.n, np.full(8, False)))
    rss = []
    for level, coef in zip(fit.levels, fit.coef, strict=True):
        Z, y = parts(frame, level)
        rss.append(np.sum((y - Z @ coef) ** 2))
    if pooling.residuals == "separate":
        np.testing.assert_allclose(squares, rss, rtol=1e-4)
    assert squares.sum() == pytest.approx(np.sum(rss), rel=1e-5)
    # As many degrees of freedom as least squares by data set leave, or more: some is pooled.
    assert 8 * 13 <= df.sum() < 8 * 15 - 2
    found = residual_sds(net, "y")
    one = pooling.residuals == "shared"
    assert np.isfinite(found.population_interval).all() == one
    assert np.isfinite(found.interval).all() == (not one)


# Pooled


def test_generalised_squares_are_told_by_the_fit(
    frame: pd.DataFrame, pooled: pb.Network, tmp_path: Path
) -> None:
    fit = pooled.fits["y"]
    assert math.isfinite(fit.residual_shape)
    for j, level in enumerate(fit.levels):
        Z, y = parts(frame, level)
        W = np.eye(len(y)) + Z @ fit.random_cov @ Z.T / fit.residual_scale
        residual = y - Z @ fit.fixed
        expected = residual @ np.linalg.solve(W, residual)
        assert fit.squares[j] == pytest.approx(expected, rel=1e-6)
    pooled.save(tmp_path / "net.json")
    loaded = residual_sds(pb.load(tmp_path / "net.json"), "y")
    np.testing.assert_allclose(loaded.interval, residual_sds(pooled, "y").interval, rtol=1e-6)
    assert np.isnan(loaded.alone).all()


def test_pooled_estimates_are_between_their_own_and_the_populations(pooled: pb.Network) -> None:
    found = residual_sds(pooled, "y")
    fit = pooled.fits["y"]
    a, s = fit.residual_shape, fit.residual_scale
    assert found.population == pytest.approx(math.sqrt(invgamma.median(a, scale=a * s)))
    assert found.common is Common.POPULATION
    far = np.abs(np.log(found.alone / found.population)) > 0.3
    assert far.sum() >= 3
    drawn = (found.effect - found.population) / (found.alone - found.population)
    assert ((drawn[far] > 0.4) & (drawn[far] < 1)).all()
    assert (found.interval[:, 0] < found.effect).all()
    assert (found.effect < found.interval[:, 1]).all()
    low, high = found.new_interval
    assert low < found.population_interval[0] < found.population < found.population_interval[1]
    assert found.population_interval[1] < high


def test_intervals_of_mixtures() -> None:
    random = np.random.default_rng(5)
    weight = np.array([0.2, 0.5, 0.3])
    v, g = np.array([[3.0, 8.0, 1.5], [20.0, 5.0, 9.0]]), np.array([[1.0, 9.0, 2.0]] * 2)
    which = random.choice(3, 400_000, p=weight)
    ends = _mixture_ends(weight, v, g, 0.9)
    for j in range(2):
        drawn = g[j, which] / random.gamma(v[j, which])
        np.testing.assert_allclose(ends[j], np.quantile(drawn, [0.05, 0.95]), rtol=0.01)
    one = _mixture_ends(np.ones(1), v[:, :1], g[:, :1], 0.9)
    np.testing.assert_allclose(
        one, np.transpose(invgamma.interval(0.9, v[:, 0], scale=g[:, 0])), rtol=1e-5
    )


def test_intervals_cover() -> None:
    # Spreads drawn as they are assumed to be, so that 95% is the share over all of them.
    random = np.random.default_rng(8)
    n = np.array([5, 8, 20, 40, 10, 100])
    inside = []
    for _ in range(80):
        a = random.uniform(0.05, 2.0) ** -2
        variance = a * 7.0 / random.gamma(a, size=6)
        squares = variance * random.chisquare(n)
        weight, shape, scale = _components(n, squares, float(np.median(squares / n)))
        v, g = shape + n[:, None] / 2, shape * scale + squares[:, None] / 2
        low, high = _mixture_ends(weight, v, g, 0.95).T
        inside += ((low <= variance) & (variance <= high)).tolist()
    assert np.mean(inside) == pytest.approx(0.95, abs=0.025)


def covered(
    pooling: pb.Partial, spread: float, of: Callable[[Estimates, NDArray[np.float64]], list[bool]]
) -> float:
    """The share of 50 fits of 8 data sets in which intervals hold the true SDs."""
    random = np.random.default_rng(21)
    inside: list[bool] = []
    level = np.repeat(np.arange(8), [8, 10, 12, 15, 20, 25, 30, 40])
    for _ in range(50):
        sd = np.exp(spread * random.normal(size=8))
        b = random.normal(size=(8, 2)) * [0.8, 0.4]
        if pooling.residuals == "pooled":  # random effects in proportion, as the model has them
            b *= sd[:, None]
        x = random.normal(3, 1, len(level))
        y = b[level, 0] + (2 + b[level, 1]) * x + sd[level] * random.normal(size=len(level))
        table = pb.stats(pd.DataFrame({"F": level, "x1": x, "y": y}), group="F")
        inside += of(residual_sds(pb.learn(table, pooling=pooling, constraints=ARC), "y"), sd)
    return float(np.mean(inside))


def own(found: Estimates, sd: NDArray[np.float64]) -> list[bool]:
    low, high = found.interval.T
    return ((low <= sd) & (sd <= high)).tolist()


def common(found: Estimates, sd: NDArray[np.float64]) -> list[bool]:
    low, high = found.population_interval
    return [low <= sd[0] <= high]


def test_intervals_of_fits_cover() -> None:
    assert covered(POOLED, 0.5, own) == pytest.approx(0.95, abs=0.03)
    assert covered(APART, 0.5, own) == pytest.approx(0.95, abs=0.03)
    assert covered(pb.Partial(), 0.0, common) == pytest.approx(0.95, abs=0.06)


# Other networks, and drawings


def test_data_sets_that_came_later(frame: pd.DataFrame) -> None:
    old, new = (frame[(frame["F"] == "set 7") == later] for later in (False, True))
    kinds = ((POOLED, True), (APART, False), ("none", True), ("partial", False))
    for pooling, own_interval in kinds:
        net = pb.learn(old, group="F", pooling=pooling, constraints=ARC)
        found = residual_sds(net.adapt(new[["x1", "y"]], "set 7"), "y")
        assert found.levels[-1] == "set 7"
        assert found.adapted[-1]
        assert np.isfinite(found.interval[-1]).all() == own_interval, pooling
        before = residual_sds(net, "y")
        np.testing.assert_allclose(found.interval[:-1], before.interval)
        np.testing.assert_allclose(found.population_interval, before.population_interval)


def test_a_data_set_without_rows_is_any_data_set(pooled: pb.Network) -> None:
    found = residual_sds(pooled.adapt(name="new"), "y")
    np.testing.assert_allclose(found.interval[-1], found.new_interval, rtol=1e-6)


def test_a_node_that_was_set_has_no_interval(pooled: pb.Network) -> None:
    found = residual_sds(pooled.do(y=1.0), "y")
    assert (found.effect == 0).all()
    assert np.isnan(found.interval).all()
    pb.plots.forest(pooled.do(y=1.0), None, "y").figure.draw_without_rendering()


def test_the_forest_shows_the_numbers(pooled: pb.Network) -> None:
    found = residual_sds(pooled, "y")
    ax = pb.plots.forest(pooled, None, "y")
    assert ax.get_xlabel() == "residual SD of y"
    drawn = {line.get_label(): line.get_xdata() for line in ax.lines}
    np.testing.assert_allclose(drawn["partial pooling and residuals"], np.sort(found.effect))
    order = np.argsort(found.effect)
    np.testing.assert_allclose(drawn["no pooling: its own rows alone"], found.alone[order])
    np.testing.assert_allclose(drawn["population of data sets"], found.population)
    ax.figure.draw_without_rendering()
