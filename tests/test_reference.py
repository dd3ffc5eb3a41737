"""The plain numpy formulas: against scipy; and the kernels and fits against them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from helpers import simulate, work_space
from scipy.integrate import quad
from scipy.stats import invgamma, multivariate_normal, multivariate_t, norm, t

import poolbn as pb
from poolbn.kernels import deviance, pooled, separate, shared, work
from poolbn.moments.standardised import standardise
from poolbn.nodes import lmm, reference


def rows(frame: pd.DataFrame) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Z and y of each data set."""
    parts = [part for _, part in frame.groupby("F", sort=False)]
    names = [name for name in frame if name not in {"y", "F"}]
    Z = [np.column_stack([np.ones(len(part)), part[names]]) for part in parts]
    return Z, [part["y"].to_numpy() for part in parts]


FRAME = simulate(3, data_sets=4, rows=7, parents=2, between=0.7)
Z, Y = rows(FRAME)
X = reference.sums(Z, Y)
ROOT = np.array([[0.8, 0.0, 0.0], [0.3, 0.5, 0.0], [-0.2, 0.1, 0.0]])
D = ROOT @ ROOT.T  # singular, as half of all fits are
BETA = np.array([0.9, 1.2, 0.8])
SIGMA2 = np.array([0.5, 1.0, 2.0, 0.7])
NEW = np.array([1.0, 0.4, -1.3])


# Against scipy


def dense(sigma2: np.ndarray, beta: np.ndarray, scaled: bool = True) -> float:
    total = 0.0
    for z, y, v in zip(Z, Y, sigma2, strict=True):
        between = z @ D @ z.T * (v if scaled else 1)
        total += multivariate_normal.logpdf(y, z @ beta, v * np.eye(7) + between)
    return total


def test_deviances_are_those_of_dense_densities() -> None:
    at = reference.terms(X, D)
    sigma2 = np.full(4, at.squares.sum() / 28)
    assert reference.deviance_shared(X, D)[0] == pytest.approx(-2 * dense(sigma2, at.beta))
    beta = reference.terms(reference.divided(X, SIGMA2), D).beta
    value = reference.deviance_separate(X, D, SIGMA2)[0]
    assert value == pytest.approx(-2 * dense(SIGMA2, beta, scaled=False))
    a, s = 1.7, 0.8
    total = sum(
        multivariate_t.logpdf(y, z @ BETA, s * (np.eye(7) + z @ D @ z.T), 2 * a)
        for z, y in zip(Z, Y, strict=True)
    )
    assert reference.deviance_pooled(X, D, BETA, a, s)[0] == pytest.approx(-2 * total)


def test_restricted_likelihood_is_the_integral_over_fixed_effects() -> None:
    """A flat prior on beta: the normal density with a wide one, but for its own density at 0."""
    df, wide = 28 - 3, 1e7
    sigma2 = reference.terms(X, D).squares.sum() / df
    whole = np.concatenate(Z)
    V = wide * whole @ whole.T
    for j, z in enumerate(Z):
        at = slice(7 * j, 7 * j + 7)
        V[at, at] += sigma2 * (np.eye(7) + z @ D @ z.T)
    value = multivariate_normal.logpdf(np.concatenate(Y), np.zeros(28), V)
    loglik = value + 3 / 2 * math.log(2 * math.pi * wide)
    assert reference.deviance_shared(X, D, reml=True)[0] == pytest.approx(-2 * loglik, abs=1e-4)


def values(D: np.ndarray) -> list[tuple[float, np.ndarray]]:
    return [
        reference.deviance_shared(X, D),
        reference.deviance_shared(X, D, reml=True),
        reference.deviance_pooled(X, D, BETA, 1.7, 0.8),
        reference.deviance_separate(X, D, SIGMA2),
    ]


def test_gradients_are_those_of_finite_differences() -> None:
    h = 1e-5
    gradients = [G for _, G in values(D)]
    for a in range(3):
        for b in range(3):
            step = np.zeros((3, 3))
            step[a, b] += h / 2
            step[b, a] += h / 2
            pairs = zip(gradients, values(D + step), values(D - step), strict=True)
            for G, up, down in pairs:
                assert G[a, b] == pytest.approx((up[0] - down[0]) / (2 * h), rel=1e-6, abs=1e-6)


def test_random_effects_are_conditional_means() -> None:
    for z, y, b in zip(Z, Y, reference.blups(X, D, BETA), strict=True):
        V = np.eye(7) + z @ D @ z.T
        np.testing.assert_allclose(b, D @ z.T @ np.linalg.solve(V, y - z @ BETA))


def test_numbers_of_parameters_are_the_papers() -> None:
    for p in range(6):
        assert reference.n_params(p + 1, p + 1, 1) == (p**2 + 5 * p + 6) / 2
    assert reference.bic(-10.0, 4, math.e**2) == pytest.approx(-14.0)


# Predictions. With beta known they are conditional densities.


def log_t(y: float, mean: float, square: float, df: float) -> float:
    if math.isinf(df):
        return float(norm.logpdf(y, mean, math.sqrt(square)))
    return float(t.logpdf(y, df, mean, math.sqrt(square)))


@pytest.mark.parametrize("y", [-2.0, 0.5, 4.0])
def test_predictions_in_a_known_data_set_are_conditional_densities(y: float) -> None:
    none = np.zeros((3, 3))
    at = reference.terms(X, D, BETA)
    j, sigma2, a, s = 2, 0.6, 1.7, 0.8
    both = np.vstack([Z[j], NEW])
    W = np.eye(8) + both @ D @ both.T
    mean, value = both @ BETA, np.append(Y[j], y)
    normal = multivariate_normal.logpdf(value, mean, sigma2 * W)
    normal -= multivariate_normal.logpdf(Y[j], mean[:-1], sigma2 * W[:-1, :-1])
    assert log_t(y, *reference.known(NEW, at, X, D, none, j, sigma2)) == pytest.approx(normal)
    student = multivariate_t.logpdf(value, mean, s * W, 2 * a)
    student -= multivariate_t.logpdf(Y[j], mean[:-1], s * W[:-1, :-1], 2 * a)
    found = reference.known_pooled(NEW, at, X, D, none, j, a, s)
    assert log_t(y, *found) == pytest.approx(student)
    marginal = multivariate_t.logpdf(y, mean[-1], s * W[-1, -1], 2 * a)
    assert log_t(y, *reference.new(NEW, BETA, D, none, s, a)) == pytest.approx(marginal)


def test_fixed_effects_add_what_a_flat_prior_does() -> None:
    """All data sets and a new row are jointly normal, beta with a wide prior among them."""
    sigma2, wide, j = 0.6, 1e7, 1
    whole = np.vstack([*Z, NEW, NEW])  # a row in data set j, and one in a new data set
    sets = np.append(np.repeat(np.arange(4), 7), [j, 4])
    same = sets[:, None] == sets
    V = wide * whole @ whole.T + sigma2 * (np.eye(30) + same * (whole @ D @ whole.T))
    gain = np.linalg.solve(V[:28, :28], V[:28, 28:]).T
    mean = gain @ np.concatenate(Y)
    cov = V[28:, 28:] - gain @ V[:28, 28:]
    at = reference.terms(X, D)
    B = sigma2 * np.linalg.inv(at.P.sum(axis=0))
    found = reference.known(NEW, at, X, D, B, j, sigma2)
    np.testing.assert_allclose(found, [mean[0], cov[0, 0], np.inf], rtol=1e-5)
    found = reference.new(NEW, at.beta, D, B, sigma2)
    np.testing.assert_allclose(found, [mean[1], cov[1, 1], np.inf], rtol=1e-5)


@pytest.mark.parametrize("y", [-2.0, 0.5, 4.0])
@pytest.mark.parametrize("sets", [slice(None), slice(1, 2)], ids=["complete", "none"])
def test_predictions_of_a_regression_are_integrals_over_its_variance(y: float, sets: slice) -> None:
    found = reference.alone(NEW, reference.Sums(*(values[sets] for values in X)))
    z, x = np.concatenate(Y[sets]), np.concatenate(Z[sets])
    b, (rss,), _, _ = np.linalg.lstsq(x, z)
    leverage = NEW @ np.linalg.inv(x.T @ x) @ NEW

    def integrand(log_v: float) -> float:
        v = math.exp(log_v)
        density = norm.pdf(y, NEW @ b, math.sqrt(v * (1 + leverage)))
        return density * invgamma.pdf(v, (len(z) - 3) / 2, scale=rss / 2) * v

    middle = math.log(rss / len(z))
    expected, _ = quad(integrand, middle - 20, middle + 20, points=[middle], limit=200)
    assert log_t(y, *found) == pytest.approx(math.log(expected), rel=1e-6)


# The kernels, at any D


def kernel(model, random: int, reml: bool = False):
    """A work space with one family in it, and its sums in the kernels' own columns."""
    data = standardise(pb.stats(FRAME, group="F"))
    s = work_space(model, data.n, 3, random, reml)
    w = work.carve(s)
    parents = np.array([data.names.index("x1"), data.names.index("x2")])
    deviance.compress(s, data.mean, data.scatter, data.names.index("y"), parents, False)
    model.prepare(s, data.scatter, data.names.index("y"), 0.0)
    R, r = w.R.transpose(2, 0, 1)[:4], w.r[0].T[:4]
    squares = np.einsum("ji,ji->j", r, r) + w.rho[0, 0, :4]
    A, c = np.einsum("jia,jib->jab", R, R), np.einsum("jia,ji->ja", R, r)
    L = np.zeros((random, random))
    L[:, 0] = np.linspace(0.5, 1.0, random)
    if random > 1:
        L[1:, 1] = np.linspace(-0.3, 0.4, random - 1)
    cov = np.zeros((3, 3))
    cov[:random, :random] = L @ L.T
    return s, w, reference.Sums(A, c, squares, data.n), L, cov


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("random", [1, 3])
@pytest.mark.parametrize("reml", [False, True])
def test_shared_kernel(random: int, reml: bool) -> None:
    s, w, x, L, cov = kernel(shared, random, reml)
    f = shared.evaluate(s, L, min(random, 2), 0)
    shared.gradient(s)
    value, G = reference.deviance_shared(x, cov, reml=reml)
    df = s.totals[work.DF]
    assert f + df * (1 + math.log(2 * math.pi)) == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(w.G, G[:random, :random], rtol=1e-8, atol=1e-8)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("random", [1, 3])
def test_pooled_kernel(random: int) -> None:
    s, w, x, L, cov = kernel(pooled, random)
    a, scale = 1.7, 0.2
    w.y[:5] = [*BETA, math.log(scale), 1 / a]
    f = pooled.evaluate(s, L, min(random, 2), 0)
    pooled.gradient(s)
    value, G = reference.deviance_pooled(x, cov, BETA, a, scale)
    assert f + 28 * math.log(2 * math.pi) == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(w.G, G[:random, :random], rtol=1e-8, atol=1e-8)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("random", [1, 3])
def test_separate_kernel(random: int) -> None:
    s, w, _, L, cov = kernel(separate, random)
    p = separate.carve_apart(s)
    R, r = p.R.transpose(2, 0, 1)[:4], p.r[0].T[:4]
    R = np.triu(R)  # below are no rows
    squares = np.einsum("ji,ji->j", r, r) + w.rho[0, 0, :4]
    A, c = np.einsum("jia,jib->jab", R, R), np.einsum("jia,ji->ja", R, r)
    w.y[:4] = np.log(SIGMA2)
    f = separate.evaluate(s, L, min(random, 2), 0)
    separate.gradient(s)
    value, G = reference.deviance_separate(reference.Sums(A, c, squares, s.n), cov, SIGMA2)
    assert f + 28 * math.log(2 * math.pi) == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(w.G, G[:random, :random], rtol=1e-8, atol=1e-8)


# The fits, in the units of the data


@pytest.mark.parametrize("random", ["full", "intercept"])
@pytest.mark.parametrize("residuals", ["shared", "reml", "pooled", "separate"])
def test_fits(random: str, residuals: str) -> None:
    frame = simulate(8, data_sets=6, rows=11, parents=2, between=0.6)
    factor = np.repeat(np.exp(np.linspace(-1, 1, 6)), 11)
    frame["y"] += (factor - 1) * np.random.default_rng(0).normal(size=66)
    data = standardise(pb.stats(frame, group="F"))
    reml = residuals == "reml"
    child, parents = data.family("y", ["x1", "x2"])
    kind = "shared" if reml else residuals
    fit = lmm.fit(data, child, parents, random=random, residuals=kind, reml=reml)
    assert isinstance(fit, lmm.MixedFit)
    x = reference.sums(*rows(frame))
    if residuals == "separate":
        value, _ = reference.deviance_separate(x, fit.random_cov, fit.sigma2)
        x, cov = reference.divided(x, fit.sigma2), fit.random_cov
        at = reference.terms(x, cov)
        np.testing.assert_allclose(fit.squares, at.squares * fit.sigma2, rtol=1e-6)
    elif residuals == "pooled":
        cov = fit.random_cov / fit.scale
        value, _ = reference.deviance_pooled(x, cov, fit.fixed, fit.shape, fit.scale)
        at = reference.terms(x, cov, fit.fixed)
        np.testing.assert_allclose(fit.squares, at.squares, rtol=1e-6)
    else:
        cov = fit.random_cov / fit.sigma2[0]
        value, _ = reference.deviance_shared(x, cov, reml=reml)
        at = reference.terms(x, cov)
        np.testing.assert_allclose(fit.squares, at.squares, rtol=1e-6)
        assert fit.squares.sum() == pytest.approx((66 - 3 * reml) * fit.sigma2[0])
    assert fit.loglik == pytest.approx(-value / 2, rel=1e-9)
    np.testing.assert_allclose(fit.fixed, at.beta, rtol=1e-5)
    np.testing.assert_allclose(fit.random, reference.blups(x, cov, at.beta), rtol=1e-5, atol=1e-8)
    taken = np.einsum("jab,jba->j", at.V, x.A)
    np.testing.assert_allclose(fit.effective_df, taken, rtol=1e-5)
