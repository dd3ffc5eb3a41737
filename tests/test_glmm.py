"""Logistic and count regressions from rows: against R, a dense program, quadrature, and laws.

Recipes are beside the numbers in reference/logit and reference/poisson.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers import REFERENCE, reference
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

from poolbn.nodes.design import Design, collapse
from poolbn.nodes.glmm import Problem, Start
from poolbn.nodes.links import Family, Response

LOGITS = reference("logit/cases.json")
COUNTS = reference("poisson/cases.json")
BINARY, POISSON = Response(levels=2), Response(Family.POISSON)
NEGATIVE_BINOMIAL = Response(Family.NEGATIVE_BINOMIAL)
KINDS = [BINARY, Response(levels=3), Response(levels=4), POISSON, NEGATIVE_BINOMIAL]


def listed(value: object) -> list:
    """A list; R's JSON writes one of one element as the element."""
    return value if isinstance(value, list) else [value]


@cache
def case_design(folder: str, data: str, response: str, parents: tuple[str, ...]) -> Design:
    frame = pd.read_csv(REFERENCE / folder / data)
    frame = frame.sort_values("F", kind="stable")
    columns = [np.ones(len(frame))]
    for parent in parents:
        x = frame[parent]
        if pd.api.types.is_numeric_dtype(x):
            columns.append(x.to_numpy(float))
        else:  # treatment coded; R sorts levels without regard to case
            levels = sorted(x.unique(), key=str.lower)
            columns += [(x == level).to_numpy(float) for level in levels[1:]]
    sizes = frame.groupby("F", sort=False).size().to_numpy()
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    y = frame[response].to_numpy(np.int64)
    return collapse(Design(np.column_stack(columns), y, np.ones(len(y)), offsets))


def of_case(folder: str, case: dict) -> Design:
    return case_design(folder, case["data"], case["response"], tuple(listed(case["parents"])))


def count_response(case: dict) -> Response:
    return POISSON if case["family"] == "poisson" else NEGATIVE_BINOMIAL


def simulated(
    seed: int, response: Response, *, q: int = 2, F: int = 5, rows: int = 30, between: float = 0.7
) -> Design:
    rng = np.random.default_rng(seed)
    sets = np.repeat(np.arange(F), rows)
    X = np.column_stack([np.ones(len(sets)), rng.normal(size=(len(sets), q - 1)) * 2 + 1])
    coef = rng.normal(size=(F, response.predictors, q)) * between / math.sqrt(q) + 0.1
    eta = np.einsum("ma,mka->mk", X, coef[sets])
    if response.family == Family.LOGIT:
        y = (
            np.column_stack([np.zeros(len(sets)), eta])
            + rng.gumbel(size=(len(sets), 1 + eta.shape[1]))
        ).argmax(1)
    else:
        mean = np.exp(np.clip(eta[:, 0], -3, 3))
        theta = 2.0 if response.family == Family.NEGATIVE_BINOMIAL else 1e9
        y = rng.poisson(mean * rng.gamma(theta, 1 / theta, size=len(sets)))
    return Design(X, y.astype(np.int64), np.ones(len(y)), np.arange(0, len(y) + 1, rows))


def part(design: Design, j: int) -> Design:
    rows = slice(design.offsets[j], design.offsets[j + 1])
    n = int(design.offsets[j + 1] - design.offsets[j])
    return Design(design.X[rows], design.y[rows], design.weight[rows], np.array([0, n]))


# A dense program: formulas as they are in a textbook, in the columns of the data.


def dense_rows(
    design: Design, response: Response, t: np.ndarray, theta: float = math.inf
) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-likelihood, score and information at coefficients t, (C q,)."""
    X, y, w = design.X, design.y, design.weight
    C = response.predictors
    eta = X @ t.reshape(C, -1).T
    if response.family == Family.LOGIT:
        all_eta = np.column_stack([np.zeros(len(y)), eta])
        log_p = all_eta - logsumexp(all_eta, axis=1, keepdims=True)
        p = np.exp(log_p)[:, 1:]
        seen = (y[:, None] == np.arange(1, C + 1)).astype(float)
        value = w @ log_p[np.arange(len(y)), y]
        slope = seen - p
        weights = np.einsum("mk,kl->mkl", p, np.eye(C)) - p[:, :, None] * p[:, None, :]
    else:
        mean = np.exp(eta[:, 0])
        if response.family == Family.POISSON:
            value = w @ (y * eta[:, 0] - mean - gammaln(y + 1))
            slope, curve = y - mean, mean
        else:
            chance = gammaln(y + theta) - gammaln(theta) - gammaln(y + 1) + theta * np.log(theta)
            value = w @ (chance + y * eta[:, 0] - (y + theta) * np.log(theta + mean))
            slope = y - (y + theta) * mean / (theta + mean)
            curve = (y + theta) * theta * mean / (theta + mean) ** 2
        slope, weights = slope[:, None], curve[:, None, None]
    score = np.einsum("m,mk,ma->ka", w, slope, X).ravel()
    information = np.einsum("m,mkl,ma,mb->kalb", w, weights, X, X).reshape(len(t), len(t))
    return float(value), score, information


def dense_modes(
    design: Design, response: Response, fixed: np.ndarray, L: np.ndarray, theta: float
) -> list[tuple[Design, np.ndarray, np.ndarray, np.ndarray]]:
    """For each data set its rows, Z, the mode, and the curvature there."""
    C = response.predictors
    S = np.eye(C) + 1 if response.family == Family.LOGIT else np.eye(1)
    Z = np.kron(np.linalg.cholesky(S), L)
    found = []
    for j in range(len(design.offsets) - 1):
        rows = part(design, j)

        def slopes(u: np.ndarray, rows: Design = rows) -> tuple[float, np.ndarray, np.ndarray]:
            value, g, W = dense_rows(rows, response, fixed + Z @ u, theta)
            return u @ u / 2 - value, u - Z.T @ g, np.eye(len(u)) + Z.T @ W @ Z

        u = minimize(lambda u: slopes(u)[:2], np.zeros(Z.shape[1]), jac=True, method="BFGS").x
        for _ in range(3):
            _, g, H = slopes(u)
            u = u - np.linalg.solve(H, g)
        found.append((rows, Z, u, slopes(u)[2]))
    return found


def dense_laplace(
    design: Design, response: Response, fixed: np.ndarray, L: np.ndarray, theta: float
) -> float:
    return sum(
        dense_rows(rows, response, fixed + Z @ u, theta)[0]
        - u @ u / 2
        - np.linalg.slogdet(H)[1] / 2
        for rows, Z, u, H in dense_modes(design, response, fixed, L, theta)
    )


def quadrature(
    design: Design, response: Response, fixed: np.ndarray, L: np.ndarray, points: int = 15
) -> float:
    """The exact marginal likelihood, by Gauss and Hermite's points around the modes."""
    z, weight = np.polynomial.hermite_e.hermegauss(points)
    total = 0.0
    for rows, Z, u, H in dense_modes(design, response, fixed, L, math.inf):
        root = np.linalg.cholesky(np.linalg.inv(H))
        terms = []
        for at in itertools.product(range(points), repeat=len(u)):
            x = z[list(at)]
            v = u + root @ x
            value = dense_rows(rows, response, fixed + Z @ v)[0] - v @ v / 2 + x @ x / 2
            terms.append(value + np.log(weight[list(at)]).sum())
        total += logsumexp(terms) + np.log(np.diagonal(root)).sum() - len(u) * np.log(2 * np.pi) / 2
    return float(total)


def at_parameters(
    design: Design, response: Response, fixed: np.ndarray, L: np.ndarray, theta: float = 2.0
) -> tuple[float, np.ndarray, np.ndarray, float]:
    """The kernel's log-likelihood and its slopes in the fixed effects, in D, and in log theta."""
    problem = Problem(design, response)
    back = np.linalg.inv(problem.basis.T)
    found = problem.search(
        problem.offsets,
        (fixed.reshape(problem.C, -1) @ back.T).ravel(),
        Start(back @ L, len(L)),
        most=len(L),
        steps=0,
        log_theta=math.log(theta),
    )
    slope = -found.slope[: problem.d].reshape(problem.C, -1) @ back
    last = problem.d + len(L) * (len(L) + 1) // 2
    value = found.loglik + problem.constants.sum()
    return value, slope.ravel(), back.T @ found.G @ back, -found.slope[last]


def quick_likelihood(problem: Problem) -> float:
    """The maximum of the Laplace approximation from one start."""
    return problem.climb(final=False).loglik + float(problem.constants.sum())


@pytest.mark.parametrize("case", LOGITS, ids=lambda case: case["id"])
def test_a_logit_reaches_the_best_known_maximum(case: dict) -> None:
    design = of_case("logit", case)
    best = max(case["logLik"], case.get("laplace_bfgs", -math.inf))
    fit, quick = Problem(design, BINARY).partial(), Problem(design, BINARY)
    assert fit.converged
    assert not fit.separated
    assert fit.n_params == quick.n_params == case["n_params"]
    assert min(fit.loglik, quick_likelihood(quick)) >= best - 1e-4


def has_interior_maximum(case: dict) -> bool:
    # The covariance of random slopes of what is constant within data sets is not identified.
    return not case["singular"] and case["best"].startswith("tmb") and case["id"] != "epil_trt"


@pytest.mark.parametrize(
    "case", [*filter(has_interior_maximum, LOGITS + COUNTS)], ids=lambda case: case["id"]
)
def test_parameters_at_interior_maxima(case: dict) -> None:
    folder, response = ("poisson", count_response(case)) if "family" in case else ("logit", BINARY)
    fit = Problem(of_case(folder, case), response).partial()
    Sigma = np.array(case["Sigma"], dtype=float).reshape(case["q"], case["q"])
    sd = np.sqrt(np.diagonal(Sigma))
    assert fit.rank == case["q"]
    np.testing.assert_allclose(fit.fixed[0], listed(case["fixef"]), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(
        fit.random_cov / np.outer(sd, sd), Sigma / np.outer(sd, sd), atol=2e-3
    )
    if response == NEGATIVE_BINOMIAL:
        assert fit.theta == pytest.approx(case["theta"], rel=1e-3)


@pytest.mark.parametrize("case", COUNTS, ids=lambda case: case["id"])
def test_counts_reach_the_best_known_maximum(case: dict) -> None:
    design, response = of_case("poisson", case), count_response(case)
    fit, quick = Problem(design, response).partial(), Problem(design, response)
    assert fit.converged
    assert fit.n_params == case["n_params"]
    assert min(fit.loglik, quick_likelihood(quick)) >= case["logLik"] - 1e-4


@pytest.mark.parametrize("response", KINDS, ids=str)
@pytest.mark.parametrize("q", [1, 3])
def test_the_value_is_that_of_a_dense_program(response: Response, q: int) -> None:
    design = simulated(5, response, q=q, rows=12)
    rng = np.random.default_rng(q)
    fixed = rng.normal(size=response.predictors * q) * 0.3
    for rank in range(q + 1):
        L = np.tril(rng.normal(size=(q, q))) * 0.5 * (np.arange(q) < rank)
        value = at_parameters(design, response, fixed, L)[0]
        assert value == pytest.approx(dense_laplace(design, response, fixed, L, 2.0), abs=1e-8)


@pytest.mark.parametrize("response", KINDS, ids=str)
def test_slopes_are_those_of_finite_differences(response: Response) -> None:
    design = simulated(7, response, rows=15)
    rng = np.random.default_rng(1)
    fixed, L = rng.normal(size=response.predictors * 2) * 0.3, np.array([[0.8, 0.0], [-0.3, 0.4]])
    _, slope, G, in_theta = at_parameters(design, response, fixed, L)

    def difference(step: np.ndarray, D: np.ndarray, log_theta: float) -> float:
        ends = []
        for sign in (1e-4, -1e-4):
            factor = np.linalg.cholesky(L @ L.T + sign * D)
            theta = 2.0 * math.exp(sign * log_theta)
            ends.append(at_parameters(design, response, fixed + sign * step, factor, theta)[0])
        return (ends[0] - ends[1]) / 2e-4

    zero, still = np.zeros(len(fixed)), np.zeros((2, 2))
    numeric = [difference(step, still, 0.0) for step in np.eye(len(fixed))]
    np.testing.assert_allclose(slope, numeric, atol=1e-5)
    for a, b in ((0, 0), (1, 0), (1, 1)):
        D = np.zeros((2, 2))
        D[a, b] = D[b, a] = 1.0
        assert np.sum(G * D) == pytest.approx(difference(zero, D, 0.0), abs=1e-5)
    if response == NEGATIVE_BINOMIAL:
        assert in_theta == pytest.approx(difference(zero, still, 1.0), abs=1e-5)


@pytest.mark.parametrize("levels", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_the_error_of_the_laplace_approximation_falls_with_rows(levels: int) -> None:
    """As 1 / rows, against quadrature at the same parameters; rows are there 1, 10, 100 times.

    That holds where rows outweigh the prior. Without rows the posterior is normal and the error 0;
    it is largest at some 20 rows a data set, so the first two are not compared. And every data set
    needs every level: else its mode goes to infinity with the rows.
    """
    response = Response(levels=levels)
    design = collapse(simulated(5, response, q=1, F=3, rows=20))
    assert all(len(set(part(design, j).y)) == levels for j in range(3))
    fixed, L = Problem(design, response).partial().fixed.ravel(), np.array([[0.6]])
    errors = []
    for times in (1.0, 10.0, 100.0):
        more = Design(design.X, design.y, times * design.weight, design.offsets)
        exact, check = (quadrature(more, response, fixed, L, points=n) for n in (9, 7))
        assert exact == pytest.approx(check, abs=1e-4)
        errors.append(abs(exact - at_parameters(more, response, fixed, L)[0]))
    assert errors[0] / 3 < 0.05
    assert 0.09 < errors[2] / errors[1] < 0.16


@pytest.mark.parametrize("levels", [2, 3, 4])
def test_the_maximum_does_not_depend_on_the_order_of_levels_or_on_units(levels: int) -> None:
    response = Response(levels=levels)
    design = simulated(11, response, q=3, F=6, rows=25)
    fit = Problem(design, response).partial()
    order = np.roll(np.arange(levels), 1)
    units = np.array([[1.0, 3e4, -7.0], [0.0, 1e3, 0.0], [0.0, 0.0, 1e-4]])
    other = Problem(
        Design(
            np.ascontiguousarray(design.X @ units), order[design.y], design.weight, design.offsets
        ),
        response,
    ).partial()
    assert other.loglik == pytest.approx(fit.loglik, abs=1e-6)
    back = units @ other.D @ units.T
    np.testing.assert_allclose(back, fit.D, atol=2e-4 * np.abs(fit.D).max())
    utilities = np.concatenate([np.zeros((1, 3)), other.fixed @ units.T])[order]
    np.testing.assert_allclose(utilities[1:] - utilities[0], fit.fixed, atol=1e-3)


@pytest.mark.parametrize("response", KINDS, ids=str)
def test_complete_pooling_is_what_a_general_optimiser_finds(response: Response) -> None:
    design = simulated(13, response, q=3)
    fit = Problem(design, response).complete()
    d = response.predictors * 3

    def minus(x: np.ndarray) -> float:
        return -dense_rows(design, response, x[:d], math.exp(x[d]))[0]

    start = np.zeros(d + 1)
    best = minimize(minus, start, method="BFGS", options={"gtol": 1e-5})
    assert fit.loglik[0] == pytest.approx(-best.fun, abs=1e-6)
    np.testing.assert_allclose(fit.coef.ravel(), best.x[:d], atol=2e-3)
    _, _, information = dense_rows(design, response, fit.coef.ravel(), fit.theta[0])
    np.testing.assert_allclose(fit.cov[0] @ information, np.eye(d), atol=1e-6)
    assert fit.n_params == d + (response == NEGATIVE_BINOMIAL)


@pytest.mark.parametrize("response", KINDS, ids=str)
def test_no_pooling_is_complete_pooling_of_each_data_set(response: Response) -> None:
    design = simulated(17, response, rows=60)
    fit = Problem(design, response).none()
    for j in range(5):
        alone = Problem(part(design, j), response).complete()
        assert fit.loglik[j] == pytest.approx(alone.loglik[0], abs=1e-6)
        if not fit.separated[j]:
            np.testing.assert_allclose(fit.coef[j], alone.coef[0], atol=1e-3)


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS), q=st.integers(1, 3))
def test_laws_of_partial_pooling(seed: int, kind: Response, q: int) -> None:
    """Between complete and no pooling; the order of data sets and rows does not matter."""
    design = simulated(seed, kind, q=q, rows=12, between=seed % 3 / 2)
    quick = Problem(design, kind)
    assert math.isfinite(quick_likelihood(quick))
    own = Problem(design, kind).none()
    if quick.climb(final=False).ridge == (0.0, 0.0):
        assert quick_likelihood(quick) >= Problem(design, kind).complete().loglik[0] - 1e-4
    if not own.separated.any():
        assert quick_likelihood(quick) <= own.loglik.sum() + 1e-6
    rows = np.concatenate([np.arange(j * 12, j * 12 + 12)[::-1] for j in (3, 1, 4, 0, 2)])
    shuffled = Design(design.X[rows], design.y[rows], design.weight, design.offsets)
    assert Problem(shuffled, kind).partial().loglik == pytest.approx(
        Problem(design, kind).partial().loglik, abs=1e-5
    )


def test_equal_rows_are_counted() -> None:
    rng = np.random.default_rng(2)
    X = np.column_stack([np.ones(200), rng.integers(0, 3, 200), rng.integers(0, 2, 200)]).astype(
        float
    )
    design = Design(X, rng.integers(0, 3, 200), np.ones(200), np.array([0, 70, 70, 200]))
    short = collapse(design)
    assert len(short.y) <= 3 * 2 * 3 * 2
    np.testing.assert_array_equal(np.diff(short.offsets) == 0, [False, True, False])
    sums = [part(short, j).weight.sum() for j in range(3)]
    assert sums == [70, 0, 130]
    one, other = Problem(design, Response(levels=3)), Problem(short, Response(levels=3))
    for how in (Problem.complete, Problem.partial):
        assert how(other).loglik == pytest.approx(how(one).loglik, abs=1e-7)
    assert quick_likelihood(other) == pytest.approx(quick_likelihood(one), abs=1e-7)


x_ = np.random.default_rng(23).normal(size=100)
set_ = np.repeat(np.arange(5), 20)
# y, its kind, and whether all rows together are separated too.
SEPARATED = {
    "everywhere": (x_ > 0, BINARY, True),
    "in other directions": (np.where(set_ % 2, x_ > 0, x_ < 0), BINARY, False),
    "constant in each data set": (set_ % 2, BINARY, False),
    "one data set differs": (set_ == 0, BINARY, False),
    "one level": (0 * set_, BINARY, True),
    "three levels": (np.digitize(x_, [-0.5, 0.5]), Response(levels=3), True),
    "a level that is not there": (set_ % 2, Response(levels=3), True),
    "no counts": (0 * set_, POISSON, True),
    "no dispersed counts": (0 * set_, NEGATIVE_BINOMIAL, True),
}


@pytest.mark.parametrize("name", SEPARATED)
def test_separation_has_a_status_and_sensible_coefficients(name: str) -> None:
    y, response, together = SEPARATED[name]
    X = np.column_stack([np.ones(100), x_])
    design = Design(X, y.astype(np.int64), np.ones(100), np.arange(0, 101, 20))
    own, mixed = Problem(design, response).none(), Problem(design, response).partial()
    quick, pooled = Problem(design, response), Problem(design, response).complete()
    assert own.separated.all()
    assert mixed.separated
    assert quick.climb(final=False).ridge != (0.0, 0.0)
    assert pooled.separated[0] == together
    for fit in (own, pooled):
        assert np.abs(fit.coef).max() < 15
        assert np.isfinite(fit.cov).all()
        assert (fit.loglik < 0).all()  # all that a likelihood of separated rows can reach
    assert np.abs(mixed.coef).max() < 15
    assert np.isfinite(mixed.fixed_cov).all()
    assert np.isfinite(mixed.coef_cov).all()
    assert max(mixed.loglik, quick_likelihood(quick)) < own.loglik.sum() + 20
    # The log-likelihood is the plain one, at these coefficients.
    factor = np.linalg.cholesky(mixed.D + 1e-14 * np.eye(2))
    plain = dense_laplace(design, response, mixed.fixed.ravel(), factor, min(mixed.theta, 1e9))
    assert mixed.loglik == pytest.approx(plain, abs=1e-3)


def test_one_separated_data_set_does_not_change_the_others() -> None:
    design = simulated(29, BINARY, q=1, rows=40)
    y = design.y.copy()
    y[:40] = 1
    fit = Problem(Design(design.X, y, design.weight, design.offsets), BINARY).none()
    np.testing.assert_array_equal(fit.separated, [True, False, False, False, False])
    for j in range(1, 5):
        share = y[40 * j : 40 * j + 40].mean()
        assert fit.coef[j, 0, 0] == pytest.approx(math.log(share / (1 - share)), abs=1e-6)


def test_a_column_that_others_determine_is_left_out_and_named() -> None:
    design = simulated(31, BINARY, q=3)
    X = np.column_stack([design.X, design.X[:, 1] - 2 * design.X[:, 2] + 1])
    more = Design(X, design.y, design.weight, design.offsets)
    assert (
        Problem(more, BINARY).partial().dependent == Problem(more, BINARY).complete().dependent == 3
    )
    assert Problem(more, BINARY).partial().loglik == pytest.approx(
        Problem(design, BINARY).partial().loglik, abs=1e-7
    )
    assert Problem(design, BINARY).partial().dependent == -1


def test_negative_binomial_counts_are_at_least_poisson() -> None:
    for seed in range(4):
        design = simulated(seed, POISSON, rows=40)
        for how in (Problem.complete, Problem.partial, Problem.none):
            wide, narrow = how(Problem(design, NEGATIVE_BINOMIAL)), how(Problem(design, POISSON))
            assert np.all(wide.loglik >= narrow.loglik - 1e-3)
    design = simulated(5, NEGATIVE_BINOMIAL, rows=200)
    assert (
        Problem(design, NEGATIVE_BINOMIAL).complete().loglik[0]
        > Problem(design, POISSON).complete().loglik[0] + 20
    )


@pytest.mark.slow
def test_covariances_are_those_of_repeated_samples() -> None:
    """Standard errors of the fixed effects against the spread of estimates."""
    rng = np.random.default_rng(37)
    estimates, errors = [], []
    for _ in range(150):
        X = np.column_stack([np.ones(900), rng.normal(size=900)])
        sets = np.repeat(np.arange(30), 30)
        coef = rng.normal(size=(30, 2)) * 0.6 + [0.3, 0.8]
        y = rng.random(900) < 1 / (1 + np.exp(-np.sum(X * coef[sets], axis=1)))
        fit = Problem(
            Design(X, y.astype(np.int64), np.ones(900), np.arange(0, 901, 30)), BINARY
        ).partial()
        estimates.append(fit.fixed[0])
        errors.append(np.diagonal(fit.fixed_cov))
    ratio = np.sqrt(np.mean(errors, axis=0)) / np.std(estimates, axis=0)
    np.testing.assert_allclose(ratio, 1.0, atol=0.17)


@pytest.mark.parametrize("response", KINDS[:4])
def test_what_is_uncertain_of_coefficients_is_between_two_limits(response: Response) -> None:
    """That of the population where data sets are alike, that of theirs alone where they are not."""
    alike = Problem(simulated(3, response, between=0.0, rows=400, F=6), response).partial()
    if alike.rank == 0:
        for cov in alike.coef_cov:
            np.testing.assert_allclose(cov, alike.fixed_cov, rtol=1e-6)
    apart = simulated(3, response, between=1.5, rows=400, F=6)
    problem = Problem(apart, response)
    fit, own = problem.partial(), problem.none()
    sd, alone = (np.sqrt(np.diagonal(of, axis1=1, axis2=2)) for of in (fit.coef_cov, own.cov))
    fixed = np.sqrt(np.diagonal(fit.fixed_cov))
    np.testing.assert_allclose(sd, alone, rtol=0.35)
    assert (sd < fixed).all()
