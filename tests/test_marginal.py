"""Random effects where groups are small: the likelihood, and not its Laplace approximation.

The recipe of glmer's numbers, by adaptive Gauss-Hermite quadrature, is in reference/quadrature.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers import REFERENCE, reference
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp
from test_glmm import BINARY, KINDS, POISSON, part, simulated

import poolbn as pb
from poolbn.nodes import marginal
from poolbn.nodes.design import Design, collapse
from poolbn.nodes.glmm import MixedRegression, Problem
from poolbn.nodes.links import Family, Response
from poolbn.nodes.marginal import Integrals, Parameters, Points
from poolbn.nodes.tabular import TabularFit

CASES = reference("quadrature/cases.json")


def without_parents(F: np.ndarray, y: np.ndarray) -> Design:
    order = np.argsort(F, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.unique(F, return_counts=True)[1])])
    ones = np.ones((len(y), 1))
    return collapse(Design(ones, y[order].astype(np.int64), ones[:, 0], offsets.astype(np.int64)))


@cache
def of_case(name: str, column: str) -> Design:
    frame = pd.read_csv(REFERENCE / "quadrature" / name)
    codes = pd.factorize(frame["F"])[0]
    return without_parents(codes, frame[column].to_numpy())


def small(seed: int, response: Response, sd: float, *, level: float = 0.0, J: int = 150) -> Design:
    """Data sets of two or three rows."""
    rng = np.random.default_rng(seed)
    F = np.repeat(np.arange(J), rng.integers(2, 4, J))
    eta = level + sd * rng.normal(size=J)[F]
    if response == BINARY:
        return without_parents(F, rng.random(len(F)) < 1 / (1 + np.exp(-eta)))
    return without_parents(F, rng.poisson(np.exp(eta)))


def exact(design: Design, response: Response, level: float, sd: float) -> float:
    """The log-likelihood with one random effect, by 4001 equal steps."""
    u = np.linspace(-12, 12, 4001)
    eta = level + sd * u
    start = design.offsets[:-1]
    n, y, constant = (
        np.add.reduceat(design.weight * of, start)[:, None]
        for of in (1.0, design.y, gammaln(design.y + 1.0))
    )
    own, times = np.unique(np.hstack([n, y, constant]), axis=0, return_counts=True)
    n, y, constant = own.T[:, :, None]
    terms = y * eta - n * np.logaddexp(0, eta)
    if response == POISSON:
        terms = y * eta - n * np.exp(eta) - constant
    each = logsumexp(terms - u**2 / 2, axis=1) + math.log(24 / 4000 / math.sqrt(2 * math.pi))
    return float(times @ each)


def exact_maximum(design: Design, response: Response) -> float:
    starts = [(0.0, 0.0), (-1.0, 1.0)]
    return max(
        -minimize(
            lambda x: -exact(design, response, x[0], math.exp(x[1])),
            start, method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-7},
        ).fun
        for start in starts
    )  # fmt: skip


def loglik(problem: Problem, *, final: bool) -> float:
    return marginal.settle(problem, final).loglik + float(problem.constants.sum())


def fitted(design: Design, response: Response) -> MixedRegression:
    problem = Problem(design, response)
    return problem.mixed(marginal.settle(problem, final=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_one_random_effect_is_that_of_glmer(case: dict) -> None:
    design = of_case(case["data"], case["response"])
    response = BINARY if case["family"] == "binomial" else POISSON
    problem = Problem(design, response)
    found = marginal.settle(problem, final=True)
    fit = problem.mixed(found)
    assert fit.converged
    assert not marginal.is_rough(found)
    assert fit.loglik == pytest.approx(case["logLik"], abs=1e-3)
    assert fit.fixed[0, 0] == pytest.approx(case["fixef"], abs=2e-3)
    assert math.sqrt(fit.random_cov[0, 0]) == pytest.approx(case["sd"], rel=2e-3)
    quick = loglik(Problem(design, response), final=False)
    assert quick == pytest.approx(fit.loglik, abs=0.5)


@pytest.mark.parametrize(
    ("response", "sd", "level"),
    [(BINARY, 1.0, 0.0), (BINARY, 2.0, -2.0), (BINARY, 4.0, 1.0), (POISSON, 1.5, -1.0)],
    ids=str,
)
def test_the_maximum_is_that_of_dense_quadrature(
    response: Response, sd: float, level: float
) -> None:
    design = small(3, response, sd, level=level)
    fit = fitted(design, response)
    assert fit.summed
    assert fit.loglik == pytest.approx(exact_maximum(design, response), abs=1e-4)
    # The Laplace approximation is further off than models differ.
    assert abs(Problem(design, response).partial().loglik - fit.loglik) > 0.1


@pytest.mark.parametrize("seed", range(12))
def test_no_likelihood_is_above_the_exact_one(seed: int) -> None:
    """Of one random effect, where levels are rare and data sets constant, too."""
    level, sd = [0.0, -2.0, -4.0, 3.0][seed % 4], [0.3, 2.0, 6.0][seed % 3]
    response = POISSON if seed % 5 == 4 and sd < 6 else BINARY
    design = small(
        seed, response, sd, level=min(level, 1.0) if response == POISSON else level, J=40
    )
    for final in (False, True):
        found = marginal.settle(Problem(design, response), final)
        value = found.loglik + float(Problem(design, response).constants.sum())
        scale = math.sqrt(1 if response == POISSON else 2)
        sd_found = scale * float(np.abs(found.L).sum())
        assert value == pytest.approx(exact(design, response, found.B[0], sd_found), abs=1e-4)


@pytest.mark.parametrize("response", KINDS, ids=str)
def test_slopes_of_sums_are_those_of_finite_differences(response: Response) -> None:
    problem = Problem(simulated(7, response, rows=4), response)
    rng = np.random.default_rng(1)
    at = Parameters(
        rng.normal(size=problem.d) * 0.3, np.array([[0.8, 0.0], [-0.3, 0.4]]), math.log(2.0)
    )
    u = rng.normal(size=(5, 9, 2 * problem.C))
    points, sums = Points(u, rng.normal(size=(5, 9))), Integrals.of(problem)
    assert len(sums.times) == 5
    slopes = sums.at(at, points)[2].sum(axis=0)
    x = at.packed()
    for k in range(len(x) - (response.family != Family.NEGATIVE_BINOMIAL)):
        ends = [sums.at(at.unpacked(x + h * np.eye(len(x))[k]), points)[1] for h in (1e-5, -1e-5)]
        assert slopes[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-6)


def dense(design: Design, response: Response, fixed: np.ndarray, factor: np.ndarray) -> float:
    """The log-likelihood with two random effects, by 81 x 81 equal steps."""
    u = np.linspace(-8, 8, 81)
    grid = np.stack(np.meshgrid(u, u), axis=-1).reshape(-1, 2)
    b = fixed + grid @ factor.T
    total = 0.0
    for j in range(len(design.offsets) - 1):
        rows = part(design, j)
        eta = rows.X @ b.T
        terms = rows.weight @ (rows.y[:, None] * eta - np.logaddexp(0, eta))
        total += logsumexp(terms - (grid**2).sum(1) / 2) + math.log(0.04 / (2 * math.pi))
    return float(total)


@pytest.mark.parametrize("rows", [2, 3, 8])
def test_two_random_effects_are_those_of_dense_quadrature(rows: int) -> None:
    """At the parameters of the fit; and these are better than those of the approximation."""
    design = simulated(rows, BINARY, F=240 // rows, rows=rows, between=2.5)
    problem = Problem(design, BINARY)
    found, laplace = marginal.settle(problem, final=True), problem.climb(final=True)
    assert found.summed
    fit, old = problem.mixed(found), problem.mixed(laplace)

    def at(of: object) -> float:
        root = np.linalg.cholesky(of.random_cov + 1e-12 * np.eye(2))
        return dense(design, BINARY, of.fixed[0], root)

    assert abs(fit.loglik - at(fit)) < 4 * fit.noise + 0.02 < 0.6
    assert at(fit) > at(old) - 0.1
    assert abs(old.loglik - at(old)) > 1


def test_many_rows_are_left_to_the_laplace_approximation() -> None:
    for response in KINDS:
        problem = Problem(simulated(5, response, rows=400), response)
        assert not marginal.settle(problem, final=False).summed


def test_equal_data_sets_are_summed_once() -> None:
    design = small(1, BINARY, 1.0)
    sums = Integrals.of(Problem(design, BINARY))
    assert sums.times.sum() == 150
    assert len(sums.times) == 7  # of 2 rows with 0 to 2, or 3 with 0 to 3 of the second level


def test_the_order_of_data_sets_does_not_matter() -> None:
    design = simulated(4, BINARY, F=40, rows=4, between=2.0)
    rows = np.concatenate(
        [np.arange(4 * j, 4 * j + 4) for j in np.random.default_rng(1).permutation(40)]
    )
    other = Design(design.X[rows], design.y[rows], design.weight, design.offsets)
    one, two = (fitted(of, BINARY) for of in (design, other))
    assert one.summed
    assert one.loglik == pytest.approx(two.loglik, abs=1e-3)


def pairs(seed: int, J: int = 300) -> pd.DataFrame:
    """A rare event that runs in groups of two or three rows, and what has nothing to do with it."""
    rng = np.random.default_rng(seed)
    F = np.repeat(np.arange(J), rng.integers(2, 4, J))
    event = rng.random(len(F)) < np.where(rng.random(J) < 0.1, 0.95, 0.01)[F]
    other = rng.random(len(F)) < 0.2 + 0.3 * rng.random(J)[F]
    return pd.DataFrame(
        {"g": F, "event": np.where(event, "yes", "no"), "other": np.where(other, "a", "b"),
         "x": rng.normal(size=len(F))}
    )  # fmt: skip


def held_out(frame: pd.DataFrame, child: str, how: pb.Partial) -> float:
    """The mean log probability of the last row of each group, known from its other rows."""
    last = ~frame.duplicated("g", keep="last")
    dag = pb.Dag([child, "x"])
    train = pb.table(frame.loc[~last, ["g", child, "x"]], group="g")
    net = pb.learn(train, start=dag, search=pb.HillClimb(max_iter=0), pooling=how)
    asked = net.predict(frame.loc[last, ["g", "x"]], child)
    seen = frame.loc[last, child].to_numpy()
    p = [asked[level].to_numpy()[k] for k, level in enumerate(seen)]
    return float(np.log(np.maximum(p, 1e-300)).mean())


def test_small_groups_without_parents_have_the_table() -> None:
    frame = pairs(1)
    table = pb.table(frame[["g", "event", "other"]], group="g")
    for child in ("event", "other"):
        fit = pb.fit_node(table, child)
        assert isinstance(fit, TabularFit)
        chosen, logit = (
            held_out(frame, child, how) for how in (pb.Partial(), pb.Partial(discrete="logit"))
        )
        assert chosen >= logit - 0.01
    # The approximation is far above what any model can reach.
    with_logit = pb.fit_node(table, "event", pooling=pb.Partial(discrete="logit"))
    assert with_logit.loglik < pb.fit_node(table, "event").loglik + 2


def test_a_parent_that_says_nothing_is_not_added_in_small_groups() -> None:
    for seed in range(2):
        table = pb.table(pairs(seed, 100), group="g")
        for child in ("event", "other"):
            alone = pb.fit_node(table, child).bic
            assert pb.fit_node(table, child, ["x"]).bic < alone
            assert pb.score(table, [("x", child)]) < pb.score(table, [])


def test_what_is_known_roughly_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    g = np.repeat(np.arange(80), 3)
    b = 2.5 * rng.normal(size=80)[g]
    made = {name: np.where(b + rng.logistic(size=240) > 0, "a", "b") for name in ("y", "z")}
    table = pb.table(pd.DataFrame({"g": g, "x": rng.normal(size=240), **made}), group="g")
    how = pb.Partial(discrete="logit")
    fit = pb.fit_node(table, "y", ["x"], pooling=how)
    assert fit.status in (pb.Status.CONVERGED, pb.Status.SINGULAR)
    assert "integrated numerically" in fit.detail
    monkeypatch.setattr(marginal, "_ROUGH", 0.0)
    fit = pb.fit_node(table, "y", ["x"], pooling=how)
    assert fit.status is pb.Status.APPROXIMATE
    assert fit.status.ok
    assert "uncertain by more than 1" in fit.status.text
    assert math.isfinite(pb.score(table, [("x", "y")], pooling=how))  # there is nothing else
    assert isinstance(pb.fit_node(table, "y", ["z"]), TabularFit)
    assert pb.score(table, [("z", "y")]) == pytest.approx(
        pb.score(table, [("z", "y")], pooling=pb.Partial(discrete="table"))
    )


@pytest.mark.parametrize("seed", [0, 5, 11])
def test_large_counts_have_a_score(seed: int) -> None:
    """The one start of a search led nowhere."""
    rng = np.random.default_rng(seed)
    x, b = rng.normal(size=120), 2.0 * np.repeat(rng.normal(size=(30, 2)), 4, axis=0)
    y = rng.poisson(np.exp(np.clip(b[:, 0] + (1 + b[:, 1]) * x, -5, 7)))
    X = np.column_stack([np.ones(120), x])
    design = Design(X, y.astype(np.int64), np.ones(120), np.arange(0, 121, 4))
    quick = loglik(Problem(design, POISSON), final=False)
    fit = fitted(design, POISSON)
    assert quick == pytest.approx(fit.loglik, abs=1.5)


def test_sums_over_many_dimensions_are_not_tried() -> None:
    """They would be noise after minutes; the approximation is told to be rough instead."""
    rng = np.random.default_rng(3)
    sets, n = np.repeat(np.arange(10), 12), 120
    X = np.column_stack([np.ones(n), rng.normal(size=n)])
    y = rng.integers(3, size=n) + 5 * (sets % 5)  # levels of their own in pairs of data sets
    design = Design(X, y, np.ones(n), np.arange(0, n + 1, 12))
    found = marginal.settle(Problem(design, Response(levels=23)), final=False)
    assert not found.summed
    assert marginal.is_rough(found)
