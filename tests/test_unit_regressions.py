"""Regressions with units inside data sets: against glmer, a dense program, and laws.

The recipe is beside the numbers in reference/nested.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers import REFERENCE, reference
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp
from test_glmm import (
    BINARY,
    KINDS,
    NEGATIVE_BINOMIAL,
    POISSON,
    dense_laplace,
    dense_rows,
    listed,
    part,
    simulated,
)

from poolbn.nodes.design import Design, collapse
from poolbn.nodes.glmm import FREE, Found, Problem, Start
from poolbn.nodes.links import Response
from poolbn.nodes.marginal import settle
from poolbn.nodes.unitmodes import Rows, UnitModes, over_laplace

NESTED = reference("nested/laplace.json")


@cache
def case_design(data: str, parents: tuple[str, ...]) -> Design:
    frame = pd.read_csv(REFERENCE / "nested" / "data" / data).sort_values(["F", "U"], kind="stable")
    X = np.column_stack([np.ones(len(frame)), *(frame[x].to_numpy(float) for x in parents)])
    offsets = np.concatenate([[0], np.cumsum(frame.groupby("F", sort=False).size())])
    units = pd.factorize(frame["U"])[0].astype(np.int64)
    y = frame["y"].to_numpy(np.int64)
    return collapse(Design(X, y, np.ones(len(y)), offsets.astype(np.int64), units))


def of_case(case: dict) -> tuple[Design, Response]:
    design = case_design(case["data"], tuple(listed(case["predictors"])))
    return design, BINARY if case["family"] == "binomial" else POISSON


def with_units(
    seed: int, kind: Response, *, q: int = 2, F: int = 4, of: int = 5, size: int = 4,
    tau: float = 0.8,
) -> Design:  # fmt: skip
    """Data sets of so many units of so many rows."""
    design = simulated(seed, kind, q=q, F=F, rows=of * size)
    units = np.repeat(np.arange(F * of), size)
    rng = np.random.default_rng(seed + 1000)
    w = (rng.normal(size=(F * of, kind.predictors)) * tau)[units]
    if kind.has_levels:
        y = np.where(rng.random(len(units)) < 0.5, design.y, 0)
        other = (np.column_stack([0 * w[:, 0], w]) + rng.gumbel(size=(len(w), kind.levels))).argmax(
            1
        )
        y = np.where(rng.random(len(units)) < 0.5, y, other)
    else:
        y = rng.poisson(design.y * np.exp(np.minimum(w[:, 0], 2.0)))
    return replace(design, y=y.astype(np.int64), units=units)


def value_at(
    design: Design, kind: Response, fixed: np.ndarray, L: np.ndarray, tau: float,
    theta: float = 2.0,
) -> tuple[float, Found, Problem]:  # fmt: skip
    """The kernel's log-likelihood at parameters in the columns of the data."""
    problem = Problem(design, kind)
    back = np.linalg.inv(problem.basis.T)
    found = problem.search(
        problem.offsets, (fixed.reshape(problem.C, -1) @ back.T).ravel(),
        Start(back @ L, len(L), tau=tau), most=len(L), steps=0, log_theta=math.log(theta),
    )  # fmt: skip
    return found.loglik + problem.constants.sum(), found, problem


def widened(design: Design, j: int) -> Design:
    """One data set, with a column for each of its units."""
    rows = slice(design.offsets[j], design.offsets[j + 1])
    own = design.units[rows] - design.units[rows].min()
    alone = part(replace(design, units=None), j)
    return replace(alone, X=np.hstack([alone.X, np.eye(own.max() + 1)[own]]))


def dense_value(
    design: Design, kind: Response, fixed: np.ndarray, L: np.ndarray, tau: float,
    theta: float = 2.0,
) -> float:  # fmt: skip
    """The same with units as more random effects, in one dense Hessian for each data set."""
    total, q = 0.0, len(L)
    for j in range(len(design.offsets) - 1):
        wide = widened(design, j)
        U = wide.X.shape[1] - q
        own = np.hstack([fixed.reshape(kind.predictors, -1), np.zeros((kind.predictors, U))])
        root = np.block([[L, np.zeros((q, U))], [np.zeros((U, q)), tau * np.eye(U)]])
        total += dense_laplace(wide, kind, own.ravel(), root, theta)
    return total


@pytest.mark.parametrize("case", NESTED, ids=lambda case: case["id"])
def test_regressions_with_units_reach_glmer(case: dict) -> None:
    design, kind = of_case(case)
    fit, quick = Problem(design, kind).partial(), Problem(design, kind)
    found = quick.climb(final=False)
    assert fit.converged
    assert not fit.separated
    q = len(listed(case["predictors"])) + 1
    assert fit.n_params == q + q * (q + 1) // 2 + 1
    best = min(fit.loglik, found.loglik + float(quick.constants.sum()))
    assert best >= case["logLik"] - 1e-4
    assert best < case["logLik"] + 0.01
    without = Problem(replace(design, units=None), kind).partial().loglik
    assert without == pytest.approx(case["logLik_without_inner"], abs=0.01)


@pytest.mark.parametrize("case", NESTED, ids=lambda case: case["id"])
def test_parameters_at_the_maxima_of_glmer(case: dict) -> None:
    """All five are interior, but one correlation; glmer's inner loop stops early."""
    design, kind = of_case(case)
    fit = Problem(design, kind).partial()
    np.testing.assert_allclose(fit.fixed[0], list(case["fixef"].values()), atol=4e-3)
    cov = {(of["grp"], of["var1"], of.get("var2")): of["vcov"] for of in case["varcorr"]}
    assert fit.unit_sd**2 == pytest.approx(cov["U", "(Intercept)", None], rel=3e-3)
    names = ["(Intercept)", *listed(case["predictors"])]
    sds = np.sqrt(np.array([cov["F", name, None] for name in names]))
    Sigma = np.array(
        [
            [cov.get(("F", a, b if a != b else None), cov.get(("F", b, a))) for b in names]
            for a in names
        ]
    )
    np.testing.assert_allclose(
        fit.random_cov / np.outer(sds, sds), Sigma / np.outer(sds, sds), atol=1e-2
    )


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_value_with_units_is_that_of_a_dense_program(kind: Response) -> None:
    design = with_units(3, kind)
    rng = np.random.default_rng(0)
    fixed, L = rng.normal(size=kind.predictors * 2) * 0.3, np.array([[0.8, 0.0], [-0.3, 0.4]])
    for factor, tau in ((L, 0.7), (L * [1.0, 0.0], 1.5), (0.0 * L, 0.4), (L, 0.0)):
        value, _, _ = value_at(design, kind, fixed, factor, tau)
        assert value == pytest.approx(dense_value(design, kind, fixed, factor, tau), abs=1e-8)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_slopes_with_units_are_those_of_finite_differences(kind: Response) -> None:
    design = with_units(4, kind)
    rng = np.random.default_rng(1)
    d = kind.predictors * 2
    x = np.concatenate([rng.normal(size=d) * 0.3, [0.8, -0.3, 0.4, math.log(2.0), 0.6]])

    def at(x: np.ndarray) -> tuple[float, np.ndarray]:
        problem = Problem(design, kind)
        L = np.array([[x[d], 0.0], [x[d + 1], x[d + 2]]])
        found = problem.search(
            problem.offsets, x[:d], Start(L, 2, tau=x[d + 4]), most=2, steps=0, log_theta=x[d + 3]
        )
        slope = np.concatenate([found.slope[:d], -2.0 * (found.G @ found.L)[np.tril_indices(2)]])
        last = found.slope[d + 3 : d + 5]
        more = last if kind == NEGATIVE_BINOMIAL else [0.0, last[0]]
        return -found.loglik, np.concatenate([slope, more])

    step = 1e-5 * np.eye(len(x))
    numeric = [(at(x + s)[0] - at(x - s)[0]) / 2e-5 for s in step]
    # The order of the entries of a pivoted factor is the kernel's own, so G gives those of L.
    np.testing.assert_allclose(at(x)[1], numeric, atol=2e-5)


@pytest.mark.parametrize("kind", [BINARY, Response(levels=3), POISSON], ids=str)
def test_the_maximum_with_units_is_that_of_a_general_optimiser(kind: Response) -> None:
    design = with_units(6, kind, q=1, F=5, of=6, size=5, tau=1.0)
    fit = Problem(design, kind).partial()
    C = kind.predictors

    def minus(x: np.ndarray) -> float:
        return -value_at(design, kind, x[:C], np.array([[x[C]]]), x[C + 1])[0]

    starts = [np.array([*fit.fixed[:, 0] * 0, a, b]) for a, b in ((0.5, 0.5), (1.5, 1.0))]
    best = min((minimize(minus, start, method="Nelder-Mead",
                         options={"xatol": 1e-6, "fatol": 1e-9, "maxiter": 2000})
                for start in starts), key=lambda found: found.fun)  # fmt: skip
    assert fit.loglik == pytest.approx(-best.fun, abs=1e-6)
    scale = math.sqrt(kind.S[0, 0])
    assert fit.unit_sd == pytest.approx(scale * abs(best.x[C + 1]), abs=2e-3)
    np.testing.assert_allclose(fit.fixed[:, 0], best.x[:C], atol=2e-3)


@pytest.mark.parametrize("kind", [BINARY, Response(levels=3), POISSON], ids=str)
def test_errors_are_those_of_the_joint_hessian(kind: Response) -> None:
    """Fixed effects and coefficients of data sets, from one dense matrix of all that is random."""
    design = with_units(8, kind, q=2, F=4, of=8, size=5, tau=2.0)
    fit = Problem(design, kind).partial()
    assert fit.unit_sd > 0.1
    S, C = kind.S, kind.predictors
    tau2 = fit.unit_sd**2 / S[0, 0]
    P, follows = np.zeros((2 * C, 2 * C)), []
    for j in range(4):
        wide = widened(design, j)
        U = wide.X.shape[1] - 2
        # With coefficients at the modes; those of units follow from their own scores.
        t = np.zeros((C, 2 + U))
        t[:, :2] = fit.coef[j]
        level = np.kron(S * tau2, np.eye(U))
        at_units = np.concatenate([k * (2 + U) + 2 + np.arange(U) for k in range(C)])
        at_own = np.setdiff1d(np.arange(C * (2 + U)), at_units)
        for _ in range(60):
            _, g, W = dense_rows(wide, kind, t.ravel())
            inner = np.linalg.inv(level) + W[np.ix_(at_units, at_units)]
            flat = t.ravel()
            flat[at_units] += np.linalg.solve(
                inner, g[at_units] - np.linalg.solve(level, flat[at_units])
            )
            t = flat.reshape(C, -1)
        _, g, W = dense_rows(wide, kind, t.ravel())
        V = np.linalg.inv(np.linalg.inv(level) + W[np.ix_(at_units, at_units)])
        X = W[np.ix_(at_own, at_units)]
        left = W[np.ix_(at_own, at_own)] - X @ V @ X.T
        D = np.kron(S, fit.D)
        P += np.linalg.inv(np.linalg.inv(left) + D)
        follows.append((left, D))
    cov = np.linalg.inv(P)
    np.testing.assert_allclose(fit.fixed_cov, cov, rtol=2e-4, atol=1e-6 * np.abs(cov).max())
    for j, (left, D) in enumerate(follows):
        conditional = D - D @ np.linalg.inv(np.linalg.inv(left) + D) @ D
        keep = np.eye(len(D)) - conditional @ left
        total = conditional + keep @ cov @ keep.T
        np.testing.assert_allclose(
            fit.coef_cov[j], total, rtol=2e-3, atol=1e-4 * np.abs(total).max()
        )


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_complete_pooling_with_units_is_one_data_set(kind: Response) -> None:
    design = with_units(10, kind)
    fit = Problem(design, kind).complete()
    one = replace(design, offsets=np.array([0, len(design.y)]))
    assert Problem(one, kind).none().loglik[0] == pytest.approx(fit.loglik[0], abs=1e-6)
    q = kind.predictors * 2
    assert fit.n_params == q + (kind == NEGATIVE_BINOMIAL) + 1
    zero = np.zeros((2, 2))
    theta = fit.theta[0] if kind == NEGATIVE_BINOMIAL else 1.0
    tau = fit.unit_sd[0] / math.sqrt(kind.S[0, 0])
    value = dense_value(one, kind, fit.coef[0].ravel(), zero, tau, theta)
    assert value == pytest.approx(fit.loglik[0], abs=1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_no_pooling_with_units_is_each_data_set_alone(kind: Response) -> None:
    design = with_units(12, kind, of=10)
    # No unit of the last data set has two rows: it has no variance between units.
    own = design.units.copy()
    own[design.offsets[3] :] = np.arange(design.offsets[3], len(own))
    design = replace(design, units=own)
    fit = Problem(design, kind).none()
    for j in range(4):
        rows = slice(design.offsets[j], design.offsets[j + 1])
        alone = replace(part(design, j), units=own[rows] - own[rows].min())
        single = Problem(alone, kind).complete()
        assert fit.loglik[j] == pytest.approx(single.loglik[0], abs=1e-5)
        assert fit.unit_sd[j] == pytest.approx(single.unit_sd[0], abs=1e-2)
    assert fit.unit_sd[3] == 0.0
    each = kind.predictors * 2 + (kind == NEGATIVE_BINOMIAL)
    assert fit.n_params == 4 * each + 3


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS))
def test_laws_of_units(seed: int, kind: Response) -> None:
    """More than without; nothing depends on the order of units, of rows, or of data sets."""
    design = with_units(seed, kind, tau=seed % 4 / 2)
    problem, plain = Problem(design, kind), Problem(replace(design, units=None), kind)
    fit, found = problem.partial(), plain.climb(final=True)
    assert math.isfinite(fit.loglik)
    if not fit.separated and found.ridge == FREE:
        assert fit.loglik >= found.loglik + float(plain.constants.sum()) - 1e-6
    rng = np.random.default_rng(seed)
    order = np.concatenate([j * 20 + rng.permutation(20) for j in (2, 0, 3, 1)])
    order = order[np.lexsort((rng.permutation(20)[design.units[order]], np.repeat(range(4), 20)))]
    units = np.cumsum(np.diff(design.units[order], prepend=-1) != 0) - 1
    other = replace(design, X=design.X[order], y=design.y[order], units=units)
    assert Problem(other, kind).partial().loglik == pytest.approx(fit.loglik, abs=1e-4)


def test_equal_rows_of_a_unit_are_counted() -> None:
    rng = np.random.default_rng(2)
    X = np.column_stack([np.ones(200), rng.integers(0, 2, 200)]).astype(float)
    units = np.repeat(np.arange(20), 10)
    y = (rng.random(200) < 0.3 + 0.4 * (units % 2)).astype(np.int64)
    design = Design(X, y, np.ones(200), np.array([0, 70, 70, 200]), units)
    short = collapse(design)
    assert len(short.y) <= 20 * 4
    assert [short.weight[short.units == u].sum() for u in range(20)] == [10] * 20
    one, other = Problem(design, BINARY), Problem(short, BINARY)
    for how in (Problem.complete, Problem.partial):
        assert how(other).loglik == pytest.approx(how(one).loglik, abs=1e-7)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_units_of_one_row_each_tell_nothing(kind: Response) -> None:
    design = simulated(5, kind)
    units = np.arange(len(design.y))
    problem, plain = Problem(replace(design, units=units), kind), Problem(design, kind)
    assert not problem.nested
    assert problem.n_params == plain.n_params
    assert problem.climb(final=False).loglik == plain.climb(final=False).loglik


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        pytest.param(lambda u, r: u % 2, BINARY, id="constant in each unit"),
        pytest.param(lambda u, r: r % 2, BINARY, id="the same in all units"),
        pytest.param(lambda u, r: 0 * u, BINARY, id="one level"),
        pytest.param(lambda u, r: u % 3, Response(levels=3), id="three levels"),
        pytest.param(lambda u, r: 0 * u, POISSON, id="no counts"),
        pytest.param(lambda u, r: 5000 * (u % 2), POISSON, id="large counts"),
        pytest.param(lambda u, r: 5000 * (u % 2), NEGATIVE_BINOMIAL, id="large dispersed counts"),
    ],
)
def test_units_that_tell_too_much_or_too_little_stay_finite(y: object, kind: Response) -> None:
    unit, row = np.repeat(np.arange(24), 4), np.tile(np.arange(4), 24)
    X = np.column_stack([np.ones(96), np.random.default_rng(0).normal(size=96)])
    design = Design(X, y(unit, row), np.ones(96), np.arange(0, 97, 24), unit)
    problem = Problem(design, kind)
    for fit in (problem.complete(), problem.none(), problem.partial()):
        assert np.isfinite(fit.loglik).all()
        assert np.isfinite(fit.unit_sd).all()
        assert np.max(fit.unit_sd) < 60
        assert np.abs(fit.coef).max() < 60
    assert np.isfinite(problem.partial().fixed_cov).all()


def exact(design: Design, x: np.ndarray) -> float:
    """The likelihood of two levels in complete pooling, by 60 points from -9 to 9 SDs."""
    z, weight = np.polynomial.hermite_e.hermegauss(60)
    eta, U = design.X @ x[:-1], int(design.units.max()) + 1
    terms = np.empty((U, 60))
    for k in range(60):
        at = eta + x[-1] * z[k]
        terms[:, k] = np.bincount(design.units, design.y * at - np.logaddexp(0, at), U)
    return float((logsumexp(terms, axis=1, b=weight / weight.sum())).sum())


def rare(seed: int) -> Design:
    """200 units of two rows, of which few have the second level."""
    rng = np.random.default_rng(seed)
    units, x = np.repeat(np.arange(200), 2), rng.normal(size=400)
    eta = -3 + 0.5 * x + 2 * rng.normal(size=200)[units]
    y = (rng.random(400) < 1 / (1 + np.exp(-eta))).astype(np.int64)
    X = np.column_stack([np.ones(400), x])
    return Design(X, y, np.ones(400), np.array([0, 200, 400]), units)


@pytest.mark.parametrize("seed", range(4))
def test_pairs_of_a_rare_level_do_not_run_away(seed: int) -> None:
    """The Laplace approximation has its maximum far from that of the likelihood."""
    design = rare(seed)
    problem = Problem(design, BINARY)
    fit, start = problem.complete(), np.array([-3.0, 0.5, 2.0])
    best = minimize(lambda x: -exact(design, x), start, method="Nelder-Mead")
    none = Start(np.zeros((2, 2)), 0)
    laplace = problem.search(problem.offsets[[0, -1]], problem.pooled.T[0], none, most=0)
    assert math.sqrt(2) * laplace.tau > 2 * abs(best.x[2])
    assert fit.over_units
    assert fit.unit_sd[0] == pytest.approx(abs(best.x[2]), rel=0.15)
    assert fit.coef[0, 0, 1] == pytest.approx(best.x[1], abs=0.15)
    at = np.append(fit.coef[0, 0], fit.unit_sd[0])
    assert fit.loglik[0] == pytest.approx(exact(design, at), abs=0.02)
    assert exact(design, at) > -best.fun - 0.5
    mixed = settle(problem, final=True)
    assert mixed.over_units
    assert math.sqrt(2) * mixed.tau < 2 * abs(best.x[2])
    own = problem.none()
    assert np.max(own.unit_sd) < 5


@pytest.mark.parametrize("kind", [BINARY, Response(levels=3), POISSON], ids=str)
def test_integrals_over_units_are_those_of_quadrature(kind: Response) -> None:
    """Of one unit after the other, with many points."""
    design = with_units(14, kind, q=1, F=2, of=3, size=3)
    sd, C = np.array([1.7, 0.9]), kind.predictors
    coef = np.random.default_rng(0).normal(size=(2, C, 1)) * 0.5
    rows = Rows(design, kind, unit_sd=sd)
    size = 150 if C == 1 else 40
    z, weight = np.polynomial.hermite_e.hermegauss(size)
    weight = weight / weight.sum()
    total = 0.0
    modes = UnitModes.of(rows, coef)
    root = np.linalg.cholesky(kind.S / kind.S[0, 0])
    for u in range(6):
        at = design.units == u
        terms = []
        for k in itertools.product(range(size), repeat=C):
            w = sd[u // 3] * root @ z[list(k)]
            eta = np.tile(coef[u // 3, :, 0] + w, (3, 1))
            value = kind.derivatives(eta, design.y[at], math.inf)[0].sum()
            terms.append(value + np.log(weight[list(k)]).sum())
        total += logsumexp(terms)
    H = np.linalg.inv(modes.Q)
    S = (sd[modes.data_set] ** 2)[:, None, None] * kind.S / kind.S[0, 0]
    laplace = modes.terms.sum() - 0.5 * np.linalg.slogdet(S @ H)[1].sum()
    assert laplace + over_laplace(rows, coef) == pytest.approx(total, abs=2e-3)
