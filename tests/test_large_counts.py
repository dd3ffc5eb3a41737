"""Counts that are large, steep or all zero: answers in a second, finite or refused."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats as st
from scipy.integrate import quad
from scipy.special import gammaln

import poolbn as pb
from poolbn.inference.engine import Effort
from poolbn.inference.general import General
from poolbn.inference.locals import Local
from poolbn.nodes.links import LARGEST, _large_quantiles, drawn_counts
from poolbn.nodes.predicting import COUNT, RegressionPredictions


def alone(predictor: float, sd: float, levels: int, dispersion: float) -> Local:
    coef, cov = np.array([[[predictor]]]), np.array([[[sd**2]]])
    return Local(RegressionPredictions(coef, cov, (), (), levels, dispersion), (), (), ())


def count(log_mean: float, sd: float, dispersion: float) -> Local:
    """A count without parents, and how sure the logarithm of its mean is."""
    return alone(log_mean, sd, COUNT, dispersion)


def level(log_odds: float, sd: float) -> Local:
    return alone(log_odds, sd, 2, math.inf)


def predicted(node: Local) -> np.ndarray:
    net = General(("k",), ("s",), np.ones(1), (), {}, (node,), (0,))
    codes = np.zeros(1, dtype=np.int64)
    none = np.full((1, 1), np.nan)
    return net.predictions(none, codes, [0], 0.95, Effort()).columns[0][0]


@pytest.mark.parametrize("mean", [2e4, 1e6, 1e9, 1e11])
def test_predictions_of_large_counts(mean: float) -> None:
    """Against the Poisson distribution, its quantiles to a twentieth of its SD."""
    found = predicted(count(math.log(mean), 0.0, math.inf))
    assert found[0] == pytest.approx(mean, rel=1e-5)
    assert found[1] == pytest.approx(math.sqrt(mean), rel=1e-3)
    for bound, sign in zip(found[2:], (-1, 1), strict=True):
        assert bound == pytest.approx(mean + sign * 1.96 * math.sqrt(mean), abs=0.05 * found[1])


@pytest.mark.parametrize(("mean", "size"), [(2e4, 0.3), (1e6, 3.0)])
def test_predictions_of_counts_that_vary_more(mean: float, size: float) -> None:
    found = predicted(count(math.log(mean), 0.0, size))
    theirs = st.nbinom(size, size / (size + mean))
    assert found[:2] == pytest.approx([mean, theirs.std()], rel=1e-4)
    for bound, p in zip(found[2:], (0.025, 0.975), strict=True):
        assert theirs.cdf(bound) >= p - 0.002
        assert theirs.cdf(bound - 1) <= p + 0.002


def test_predictions_of_counts_whose_means_are_unsure() -> None:
    m, sd = math.log(5e3), 0.4
    found = predicted(count(m, sd, math.inf))
    mean = math.exp(m + sd**2 / 2)
    assert found[:2] == pytest.approx(
        [mean, math.sqrt(mean + mean**2 * math.expm1(sd**2))], rel=1e-3
    )
    assert np.log(found[2:]) == pytest.approx([m - 1.96 * sd, m + 1.96 * sd], abs=0.02)


def integral(log_likelihood, mean: float, sd: float) -> float:
    """The logarithm of an expected likelihood, by quadrature around its maximum."""
    wide = np.linspace(min(mean - 12 * sd, -50), max(mean + 12 * sd, 50), 100_001)
    at = np.sort(np.concatenate([wide, np.linspace(-50, 50, 200_001)]))
    value = np.array(log_likelihood(at)) - 0.5 * ((at - mean) / sd) ** 2
    top = value.max()
    return top + math.log(np.trapezoid(np.exp(value - top), at) / math.sqrt(2 * math.pi) / sd)


@pytest.mark.parametrize("mean", [-40.0, 0.0, 100.0, 1000.0])
@pytest.mark.parametrize("sd", [31.0, 200.0])
def test_probabilities_of_predictors_that_are_next_to_unknown(mean: float, sd: float) -> None:
    sets = np.zeros(1, dtype=np.int64)
    for y in (0.0, 1.0):
        ours = level(mean, sd).of.log_density(np.array([y]), {}, sets)[0]
        theirs = integral(lambda e, y=y: -np.logaddexp(0, e if y == 0 else -e), mean, sd)
        assert ours == pytest.approx(theirs, rel=0.01, abs=1e-3)
    for y in (0.0, 3.0, 1e5):
        ours = count(mean, sd, math.inf).of.log_density(np.array([y]), {}, sets)[0]
        theirs = integral(
            lambda e, y=y: y * e - np.exp(np.minimum(e, 700)) - gammaln(y + 1), mean, sd
        )
        assert ours == pytest.approx(theirs, rel=0.01, abs=1e-2)


def test_probabilities_far_from_what_was_seen_are_no_more_than_1() -> None:
    """So that an integral over a parent ends: of a count given x = -1e5 to 1e5."""
    sets = np.zeros(1, dtype=np.int64)
    for eta in (-1e6, -12_000.0, -1200.0, 120.0, 360.0, 1e4, 1e6):
        for sd in (4e-4, 0.05, 5.0):
            for theta in (math.inf, 2.0):
                found = count(eta, sd, theta).of.log_density(np.array([7.0]), {}, sets)[0]
                assert found < -10
    # Exact where the predictor is certain.
    near = count(-12_000.0, 1e-3, math.inf).of.log_density(np.array([7.0]), {}, sets)[0]
    assert near == pytest.approx(7 * -12_000.0 - gammaln(8), rel=1e-6)


def test_a_parent_given_a_steep_count() -> None:
    """Against a brute-force posterior."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=160)
    table = pd.DataFrame({"x": x, "k": rng.poisson(np.exp(np.minimum(12 * x, 30))).astype(float)})
    table["g"] = np.repeat(list("abcd"), 40)
    known = {"required": [("x", "k")]}
    net = pb.learn(table, group="g", kinds={"k": "count"}, constraints=known)
    found = net.predict(table.iloc[[0]].drop(columns="x"), "x", plugin=True).iloc[0]
    fit, of = net.fits["k"].coef[0, 0], net.fits["x"]

    def weight(at: float) -> float:
        prior = st.norm.pdf(at, of.coef[0, 0], math.sqrt(of.sigma2[0]))
        return prior * st.poisson.pmf(table["k"][0], math.exp(fit[0] + fit[1] * at))

    total = quad(weight, -2, 2, points=[0.1, 0.2])[0]
    mean = quad(lambda at: at * weight(at), -2, 2, points=[0.1, 0.2])[0] / total
    assert found["mean"] == pytest.approx(mean, abs=1e-4)


def test_draws_of_means_without_bounds() -> None:
    eta = np.array([-1e300, 0.0, 30.0, 45.0, 800.0, 1e300])
    for dispersion in (math.inf, 1e-3, 2.0):
        drawn = drawn_counts(eta, dispersion, np.random.default_rng(1))
        assert np.isfinite(drawn).all()
        assert (drawn >= 0).all()
        assert (drawn <= LARGEST + 1e9).all()
        assert drawn[0] == 0


def rows(make) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    x = rng.normal(size=120)
    site = np.repeat(["s0", "s1", "s2", "s3"], 30)
    return pd.DataFrame({"x": x, "k": np.asarray(make(rng, x, site), dtype=float), "site": site})


CASES = {
    "about a million": lambda rng, x, site: rng.poisson(1e6 * np.exp(0.1 * x)),
    "0 or 1000": lambda rng, x, site: np.where(x > 0, 1000, 0),
    "steep": lambda rng, x, site: rng.poisson(np.exp(np.minimum(12 * x, 24))),
    "zero in one site": lambda rng, x, site: np.where(site == "s1", 0, rng.poisson(2, len(x))),
    "zero in all but one": lambda rng, x, site: np.where(site == "s0", rng.poisson(2, len(x)), 0),
}


@pytest.mark.parametrize("pooling", ["partial", "none", "complete"])
@pytest.mark.parametrize("case", CASES)
def test_answers_are_finite_and_soon_there(case: str, pooling: str, tmp_path: Path) -> None:
    table = rows(CASES[case])
    known = {"required": [("x", "k")]}
    start = time.perf_counter()
    net = pb.learn(table, group="site", kinds={"k": "count"}, pooling=pooling, constraints=known)
    found = net.predict(table.iloc[::30].drop(columns="k"), "k")
    assert np.isfinite(found.drop(columns="ess", errors="ignore")).all(axis=None)
    assert np.isfinite(net.sample(50, "s1", seed=1)["k"]).all()
    assert np.isfinite(net.sample(50, "s2", seed=1)["x"]).all()
    net.predict(table.iloc[::30].drop(columns="x"), "x")
    pb.report(net, tmp_path / "r.html", data=table)
    assert time.perf_counter() - start < 30  # minutes before; a second or two on an idle machine


@pytest.mark.parametrize("mean", [1e3, 1e5, 1e7])
@pytest.mark.parametrize("size", [0.3, 5.0, math.inf])
def test_quantiles_of_large_counts(mean: float, size: float) -> None:
    """Those of scipy, to a thousandth of the standard deviation."""
    u = np.linspace(0.01, 0.99, 9)
    share = 1.0 if math.isinf(size) else size / (size + mean)
    theirs = st.poisson(mean) if math.isinf(size) else st.nbinom(size, share)
    found = _large_quantiles(u, np.full(9, mean), share)
    assert found == pytest.approx(theirs.ppf(u), abs=max(0.002 * theirs.std(), 2))
    assert np.isfinite(_large_quantiles(u, np.full(9, 1e15), share)).all()


def test_total_effects_through_large_counts() -> None:
    """In which scipy's inverse took minutes, deaf to interrupts."""
    table = rows(lambda rng, x, site: np.minimum(rng.poisson(1e6 * np.exp(8 * x)), 1e12))
    logs = np.log1p(table["k"])
    table["z"] = np.where(np.random.default_rng(1).random(120) < st.norm.cdf(logs - 14), "u", "v")
    known = {"required": [("x", "k"), ("k", "z")]}
    start = time.perf_counter()
    net = pb.learn(table, group="site", kinds={"k": "count"}, pooling="complete", constraints=known)
    assert np.isfinite(net.total_effects("x")["total"]).all()
    assert time.perf_counter() - start < 30


def test_comparing_has_room_for_any_count() -> None:
    """Values of a held-out count are not enumerated up to the largest that it may have."""
    table = rows(lambda rng, x, site: rng.poisson(np.exp(np.clip(25 * x, -50, 24))))
    table["y"] = np.random.default_rng(0).normal(size=len(table))
    found = pb.compare(
        table, group="site", kinds={"k": "count"}, folds=2, poolings=["none", "complete"]
    )
    assert np.isfinite(found.table()[["known", "unknown"]]).all(axis=None)
