"""Pooled residual variances: integrals by scipy, finite differences, limits and laws."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from benchmarks.study import study
from helpers import callable_kernel, simulate, work_space
from scipy.integrate import quad
from scipy.special import polygamma
from scipy.special import psi as digamma
from scipy.stats import invgamma, multivariate_normal, multivariate_t

import poolbn as pb
from poolbn.kernels import deviance as _kernels
from poolbn.kernels import gammas as _gammas
from poolbn.kernels import pooled as _pooled
from poolbn.kernels import work as _work
from poolbn.moments.standardised import standardise
from poolbn.scoring.local import LocalScores

POOLED = pb.Partial(residuals="pooled")


def uneven(seed: int, *, spread: float = 1.0, rows: int = 12, **more: float) -> pd.DataFrame:
    """As `simulate`, with residual SDs that differ between data sets."""
    table = simulate(seed, data_sets=5, rows=rows, **more)
    rng = np.random.default_rng(seed)
    factor = np.exp(spread * rng.normal(size=5))[table["F"].astype("category").cat.codes]
    return table.assign(y=table["y"] + (factor - 1) * rng.normal(size=len(table)))


def dense(table: pd.DataFrame, fit: pb.LocalFit) -> float:
    """The log-likelihood with n x n matrices: of each data set a multivariate t."""
    total = 0.0
    for _, part in table.groupby("F"):
        Z = np.column_stack([np.ones(len(part)), part[list(fit.parents)]])
        W = np.eye(len(part)) + Z @ fit.random_cov @ Z.T / fit.residual_scale
        y, mean = part["y"].to_numpy(), Z @ fit.fixed
        if math.isinf(fit.residual_shape):
            total += multivariate_normal(mean, fit.residual_scale * W).logpdf(y)
        else:
            law = multivariate_t(mean, fit.residual_scale * W, 2 * fit.residual_shape)
            total += law.logpdf(y)
    return float(total)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("random", ["full", "intercept"])
def test_likelihood_is_that_of_multivariate_t(seed: int, random: str) -> None:
    table = uneven(seed)
    stats = pb.stats(table, group="F")
    fit = pb.fit_node(stats, "y", ["x1", "x2"], pooling=replace(POOLED, random=random))
    assert fit.status.ok
    assert fit.loglik == pytest.approx(dense(table, fit), abs=1e-7)
    for name in ("fixed", "random_cov", "residual_shape", "residual_scale"):  # a maximum
        for factor in (0.99, 1.01):
            value = getattr(fit, name) * factor
            assert dense(table, replace(fit, **{name: value})) <= fit.loglik + 1e-9


def test_integral_over_variances() -> None:
    """Scipy integrates a data set's normal density over an inverse gamma variance."""
    table = uneven(3, rows=6)
    fit = pb.fit_node(pb.stats(table, group="F"), "y", ["x1"], pooling=POOLED)
    a, s = fit.residual_shape, fit.residual_scale
    total = 0.0
    for _, part in table.groupby("F"):
        Z = np.column_stack([np.ones(len(part)), part["x1"]])
        W = np.eye(len(part)) + Z @ fit.random_cov @ Z.T / s
        residual = part["y"].to_numpy() - Z @ fit.fixed
        square, (_, logdet) = residual @ np.linalg.solve(W, residual), np.linalg.slogdet(W)

        def integrand(log_v: float, square: float = square, n: int = len(part)) -> float:
            v = math.exp(log_v)
            normal = -0.5 * (n * math.log(2 * math.pi * v) + square / v)
            return math.exp(normal + invgamma.logpdf(v, a, scale=a * s) + log_v)

        middle = math.log(square / len(part))
        value, _ = quad(integrand, middle - 30, middle + 30, points=[middle], epsabs=0, limit=400)
        total += math.log(value) - 0.5 * logdet
    assert fit.loglik == pytest.approx(total, abs=1e-8)


@pytest.mark.parametrize("tau", [1e-9, 1e-6, 1.9e-4, 2.1e-4, 0.01, 0.7, 20.0])
@pytest.mark.parametrize("n", [1.0, 10.0, 37.0])
def test_terms_of_the_spread(tau: float, n: float) -> None:
    a = 1 / tau
    value = callable_kernel(_gammas.spread)(tau, n)
    one, two = callable_kernel(_gammas.spread_slopes)(tau, n)
    tail, tail_slopes = map(callable_kernel, (_gammas.tail, _gammas.tail_slopes))
    m = n / 2
    if tau > 1e-5:
        assert value == pytest.approx(
            2 * (m * math.log(a) - math.lgamma(a + m) + math.lgamma(a)), rel=1e-6, abs=1e-9
        )
        B = digamma(a + m) - digamma(a) - m / a
        assert one == pytest.approx(2 * a**2 * B, rel=1e-5)
        dB = polygamma(1, a + m) - polygamma(1, a) + m / a**2
        if tau > 1e-3:
            assert two == pytest.approx(-2 * a**2 * (2 * a * B + a**2 * dB), rel=1e-6)
    else:
        assert value == pytest.approx(-m * (m - 1) * tau, rel=1e-3, abs=1e-12)
    for x in (0.01, 3.0, 1e4):
        one, two = tail_slopes(tau, n, x)
        assert tail(tau, n, x) == pytest.approx((2 / tau + n) * math.log1p(tau * x / 2), rel=1e-9)
        if tau < 1e-4:  # the limit in which differences are rounding
            assert one == pytest.approx(n * x / 2 - x**2 / 4, rel=1e-2 + tau * x)
            continue
        h = 1e-4 * tau
        slope = (tail(tau + h, n, x) - tail(tau - h, n, x)) / (2 * h)
        assert one == pytest.approx(slope, abs=1e-4 * (abs(one) + x * n))
        step = (tail_slopes(tau + h, n, x)[0] - tail_slopes(tau - h, n, x)[0]) / (2 * h)
        assert two == pytest.approx(step, rel=1e-3, abs=1e-6 * x**3)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("k", "random"), [(0, 3), (1, 1), (1, 3), (2, 3), (3, 3)])
@pytest.mark.parametrize("tau", [0.05, 0.8])
def test_derivatives_are_those_of_finite_differences(k: int, random: int, tau: float) -> None:
    data = standardise(pb.stats(uneven(1, rows=6), group="F"))
    q = 3
    s = work_space(_pooled, data.n, q, random)
    w, p = _work.carve(s), _pooled.carve_pool(s)
    p.data[:] = 0
    parents = np.array([data.names.index("x1"), data.names.index("x2")])
    _kernels.compress(s, data.mean, data.scatter, data.names.index("y"), parents, False)
    rng = np.random.default_rng(k)
    s.perm[:random] = rng.permutation(random)
    L = np.zeros((random, random))
    for b in range(k):
        L[s.perm[b:random], b] = rng.normal(size=random - b)
    entries = [(s.perm[i], b) for b in range(k) for i in range(b, random)]
    y = np.array([0.1, 0.5, -0.3, 0.2, tau])

    def at(step: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        w.L[:] = L
        for entry, v in zip(entries, step, strict=False):
            w.L[entry] += v
        w.y[: q + 2] = y + step[len(entries) :]
        f = _pooled.evaluate(s, w.L, k, 0)
        _pooled.gradient(s)
        size = _pooled.fill_derivatives(s, k)
        assert size == len(entries)
        H = np.zeros((size + q + 2, size + q + 2))
        H[:size, :size], H[size:, :size], H[size:, size:] = w.H[:size, :size], p.Y[:size].T, p.Hy
        return f, np.append(w.g[:size], p.gy), np.tril(H) + np.tril(H, -1).T

    size = len(entries) + q + 2
    _, g, H = at(np.zeros(size))
    for x in range(size):
        h = 1e-5 * np.eye(size)[x]
        up, down = at(h), at(-h)
        assert g[x] == pytest.approx((up[0] - down[0]) / 2e-5, rel=1e-6, abs=1e-6)
        np.testing.assert_allclose(H[x], (up[1] - down[1]) / 2e-5, rtol=1e-5, atol=1e-4)


def test_equal_variances_are_the_shared_model() -> None:
    """The limit of a large shape; whatever the data, no likelihood is below the shared one."""
    limits = 0
    for seed in range(12):
        table = uneven(seed, spread=0.0 if seed % 2 else 0.5, rows=30)
        stats = pb.stats(table, group="F")
        shared, pooled = (
            pb.fit_node(stats, "y", ["x1", "x2"], pooling=how) for how in ("partial", POOLED)
        )
        assert pooled.loglik >= shared.loglik - 1e-7
        assert pooled.n_params == shared.n_params + 1
        if math.isinf(pooled.residual_shape):
            limits += 1
            assert pooled.loglik == pytest.approx(shared.loglik, abs=1e-7)
            np.testing.assert_allclose(pooled.coef, shared.coef, rtol=1e-4)
            assert pooled.residual_scale == pytest.approx(shared.sigma2[0], rel=1e-5)
    assert limits >= 3


@pytest.mark.parametrize("seed", range(3))
def test_order_and_units_change_only_what_they_should(seed: int) -> None:
    table = uneven(seed)
    fit = pb.fit_node(pb.stats(table, group="F"), "y", ["x1", "x2"], pooling=POOLED)
    other = table.sample(frac=1, random_state=seed).assign(
        y=lambda d: 1e4 * d["y"] - 3e5, x1=lambda d: 1e-3 * d["x1"] + 7.0
    )
    moved = pb.fit_node(pb.stats(other, group="F"), "y", ["x2", "x1"], pooling=POOLED)
    assert moved.loglik == pytest.approx(fit.loglik - len(table) * math.log(1e4), abs=1e-6)
    order = [moved.levels.index(level) for level in fit.levels]
    np.testing.assert_allclose(moved.sigma2[order], 1e8 * fit.sigma2, rtol=1e-4)
    assert moved.residual_shape == pytest.approx(fit.residual_shape, rel=1e-3)


def test_plugged_in_variances_have_the_least_divergence() -> None:
    """On average over data drawn from the model: larger or smaller ones are further off."""
    rng = np.random.default_rng(0)
    factors = np.array([0.85, 1.0, 1.2])
    divergence = np.zeros(len(factors))
    for _ in range(40):
        F, n = 80, 8
        sigma2 = invgamma.rvs(3.0, scale=3.0, size=F, random_state=rng)
        b = [1.0, 2.0] + np.sqrt(sigma2)[:, None] * rng.normal(size=(F, 2))
        x = rng.normal(size=(F, n))
        y = b[:, :1] + b[:, 1:] * x + np.sqrt(sigma2)[:, None] * rng.normal(size=(F, n))
        table = pd.DataFrame({"x": x.ravel(), "y": y.ravel(), "F": np.repeat(np.arange(F), n)})
        fit = pb.fit_node(pb.stats(table, group="F"), "y", ["x"], pooling=POOLED)
        off = ((fit.coef - b) ** 2).sum(axis=1)  # E (z'(c - b))^2, x standard normal
        for i, factor in enumerate(factors):
            u = factor * fit.sigma2
            divergence[i] += ((sigma2 + off) / u + np.log(u / sigma2) - 1).sum() / 2
    assert divergence.argmin() == 1


def test_no_pooling_is_an_upper_bound() -> None:
    for seed in range(5):
        stats = pb.stats(uneven(seed, rows=8), group="F")
        families = [(stats.names.index("y"), parents) for parents in [(), (0,), (0, 1)]]
        scores = LocalScores(stats, pooling=POOLED)
        bounds, exact = scores.upper_bounds(families)
        assert not exact.any()
        assert (bounds >= scores(families)).all()


def test_an_adapted_data_set_is_as_if_it_had_been_there() -> None:
    """With all other parameters held, a data set's own rows give its coefficients back."""
    table = uneven(2, rows=15)
    stats = pb.stats(table, group="F")
    net = pb.learn(stats, pooling=POOLED, constraints=pb.Constraints(required=[("x1", "y")]))
    again = net.adapt(table[table["F"] == "set 3"], name="again")
    at = net.levels.index("set 3")
    for node in net.dag.nodes:
        fit = again.fits[node]
        np.testing.assert_allclose(fit.coef[-1], fit.coef[at], rtol=1e-6, atol=1e-9)
        # Known data sets have the uncertainty of their coefficients in the variance.
        assert fit.sigma2[-1] <= fit.sigma2[at] * (1 + 1e-12)
    empty = net.adapt(name="empty")
    fit = empty.fits["y"]
    np.testing.assert_allclose(fit.coef[-1], fit.fixed)


def test_saved_networks_load_equal(tmp_path) -> None:
    net = pb.learn(pb.stats(uneven(0), group="F"), pooling=POOLED)
    net.save(tmp_path / "net.json")
    loaded = pb.load(tmp_path / "net.json")
    for node, fit in net.fits.items():
        assert loaded.fits[node].residual_shape == fit.residual_shape
        assert loaded.fits[node].residual_scale == fit.residual_scale
        assert str(fit.pooling) == "partial pooling and residuals"


def test_a_large_spread_does_not_stop_a_search() -> None:
    """Where a is below 1 the quadratic model in (log s, tau) is poor: its steps were too long."""
    chunk = study.Chunk("balanced", N=50, mean_parents=1, F=50, network=2)
    stats = study.table_of(chunk, study.truth(chunk), rows=20, replicate=3)
    child, parents = "X29", ["X6", "X10"]
    fit = pb.fit_node(stats, child, parents, pooling=POOLED)
    assert fit.status.ok
    places = sorted(stats.names.index(parent) for parent in parents)
    scores = LocalScores(stats, pooling=POOLED, score="loglik")
    (found,) = scores([(stats.names.index(child), tuple(places))])
    assert found == pytest.approx(fit.loglik, abs=1e-6)
    assert fit.residual_shape < 1


@pytest.mark.parametrize("seed", range(4))
def test_a_data_set_with_no_more_rows_than_coefficients_has_no_perfect_fit(seed: int) -> None:
    """Fixed effects could fit it exactly, and the likelihood would rise without bound."""
    rng = np.random.default_rng(seed)
    site = np.repeat(list("abcde"), [15, 15, 7, 7, 6])
    table = pd.DataFrame(rng.normal(size=(50, 6)), columns=list("uvwxyz")).assign(site=site)
    table["z"] *= np.repeat([30.0, 6.0, 20.0, 1.0, 0.3], [15, 15, 7, 7, 6])
    stats = pb.stats(table, group="site")
    fit = pb.fit_node(stats, "z", list("uvwxy"), pooling=POOLED)
    assert fit.status.ok
    assert fit.sigma2[-1] > 1e-4 * fit.sigma2.max()
    scores = LocalScores(stats, pooling=POOLED, score="loglik")
    family = stats.names.index("z"), tuple(map(stats.names.index, "uvwxy"))
    (bound,), _ = scores.upper_bounds([family])
    assert scores([family])[0] <= fit.loglik + 1e-6
    assert fit.loglik <= bound < np.inf
