"""Cumulative logit mixed models: against clmm of R's package ordinal, logistic models, and laws.

The recipe is beside the numbers in reference/ordinal.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers import REFERENCE, reference
from hypothesis import given, settings
from hypothesis import strategies as st

from poolbn.nodes.design import Design, about_thresholds, collapse
from poolbn.nodes.glmm import Problem
from poolbn.nodes.links import Family, Response

CASES = reference("ordinal/cases.json")


def problem_of(X: np.ndarray, y: np.ndarray, sets: np.ndarray, levels: int) -> Problem:
    """Of rows in any order, all coefficients of x varying."""
    order = np.argsort(sets, kind="stable")
    ends = np.cumsum(np.bincount(sets))
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    rows = Design(X[order], y[order], np.ones(len(y)), offsets)
    design = about_thresholds(collapse(rows), np.arange(levels))
    vary = np.arange(1, design.X.shape[1]) < X.shape[1]
    return Problem(design, Response(Family.ORDINAL, levels), vary)


@cache
def of_case(name: str) -> tuple[dict, Problem]:
    (case,) = (case for case in CASES if case["id"] == name)
    frame = pd.read_csv(REFERENCE / "ordinal" / case["data"])
    names = case["predictors"]
    columns = [frame[x] for x in ([names] if isinstance(names, str) else names)]
    X = np.column_stack([np.ones(len(frame)), *columns])
    y = np.searchsorted(np.unique(frame["y"]), frame["y"])
    return case, problem_of(X, y, pd.factorize(frame["F"])[0], case["levels"])


def thresholds(fixed: np.ndarray, q: int) -> np.ndarray:
    """From the coefficients of one threshold and what others add."""
    return -(fixed[0] + np.concatenate([[0.0], fixed[q:]]))


@pytest.mark.parametrize("name", [case["id"] for case in CASES])
def test_clmm_is_reached(name: str) -> None:
    case, problem = of_case(name)
    fit, one = problem.partial(), problem.complete()
    assert one.loglik.sum() == pytest.approx(case["logLik_complete_pooling"], abs=1e-5)
    assert fit.loglik >= case["logLik"] - 1e-4
    assert fit.converged
    assert not fit.separated
    beta, Sigma = list((case["beta"] or {}).values()), np.array(case["Sigma"])
    q, K = len(beta) + 1, case["levels"]
    assert fit.n_params == (K - 1) + (q - 1) + q * (q + 1) / 2
    if np.linalg.eigvalsh(Sigma)[0] > 1e-3:  # of an interior maximum
        assert fit.loglik == pytest.approx(case["logLik"], abs=1e-4)
        np.testing.assert_allclose(thresholds(fit.fixed[0], q), case["thresholds"], atol=1e-3)
        np.testing.assert_allclose(fit.fixed[0, 1:q], beta, atol=1e-3)
        np.testing.assert_allclose(fit.random_cov[:q, :q], Sigma, atol=1e-3)
    assert not fit.random_cov[q:].any()


def simulated(
    seed: int, levels: int, q: int = 2, F: int = 6, n: int = 40
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sets = np.repeat(np.arange(F), n)
    X = np.column_stack([np.ones(F * n), rng.normal(size=(F * n, q - 1))])
    eta = (X * rng.normal(0.4, 0.7, size=(F, q))[sets]).sum(axis=1) + rng.logistic(size=F * n)
    return X, np.searchsorted(np.linspace(-1.5, 1.5, levels - 1), eta), sets


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_two_levels_are_a_logistic_regression(seed: int) -> None:
    X, y, sets = simulated(seed, 2)
    ordinal = problem_of(X, y, sets, 2)
    rows = Design(X, y, np.ones(len(y)), np.arange(0, len(y) + 1, 40))
    logistic = Problem(collapse(rows), Response(levels=2))
    assert ordinal.n_params == logistic.n_params
    for one, other in (
        (ordinal.complete(), logistic.complete()),
        (ordinal.none(), logistic.none()),
        (ordinal.partial(), logistic.partial()),
    ):
        np.testing.assert_array_equal(one.loglik, other.loglik)
        np.testing.assert_array_equal(one.coef, other.coef)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 5))
def test_levels_in_reverse_have_inverse_odds_ratios(seed: int, levels: int) -> None:
    X, y, sets = simulated(seed, levels)
    one = problem_of(X, y, sets, levels).partial()
    other = problem_of(X, levels - 1 - y, sets, levels).partial()
    assert one.loglik == pytest.approx(other.loglik, abs=1e-6)
    np.testing.assert_allclose(one.fixed[0, 1:2], -other.fixed[0, 1:2], atol=1e-3)
    there, back = thresholds(one.fixed[0], 2), thresholds(other.fixed[0], 2)
    np.testing.assert_allclose(there, -back[::-1], atol=1e-3)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 5))
def test_the_order_of_rows_and_data_sets_does_not_matter(seed: int, levels: int) -> None:
    X, y, sets = simulated(seed, levels)
    order = np.random.default_rng(seed).permutation(len(y))
    renamed = np.random.default_rng(seed + 1).permutation(6)
    one = problem_of(X, y, sets, levels).partial()
    other = problem_of(X[order], y[order], renamed[sets[order]], levels).partial()
    assert one.loglik == pytest.approx(other.loglik, abs=1e-6)


def test_eleven_levels() -> None:
    """As many parameters as a formula says, and the likelihood of clm's formula."""
    X, y, sets = simulated(3, 11, F=3, n=400)
    assert (np.bincount(11 * sets + y, minlength=33) > 0).all()
    problem = problem_of(X, y, sets, 11)
    fit = problem.complete()
    assert problem.n_params == 10 + 1 + 3
    cuts = np.concatenate([[-np.inf], thresholds(fit.coef[0, 0], 2), [np.inf]])
    eta = X[:, 1] * fit.coef[0, 0, 1]
    with np.errstate(over="ignore"):
        p = 1 / (1 + np.exp(eta - cuts[y + 1])) - 1 / (1 + np.exp(eta - cuts[y]))
    assert fit.loglik.sum() == pytest.approx(np.log(p).sum(), abs=1e-8)
    assert (np.diff(cuts) > 0).all()


def test_a_level_that_a_data_set_lacks() -> None:
    """Without pooling thresholds around it are one: the fit is that of the other levels."""
    X, y, sets = simulated(5, 4, F=2, n=120)
    y = np.where((sets == 1) & (y == 1), 2, y)
    fit = problem_of(X, y, sets, 4).none()
    there = sets == 1
    alone = problem_of(X[there], np.maximum(y[there] - 1, 0), sets[there] - 1, 3).none()
    assert fit.converged.all()
    assert fit.loglik[1] == pytest.approx(alone.loglik[0], abs=1e-4)
    np.testing.assert_allclose(fit.coef[1, 0, :2], alone.coef[0, 0, :2], atol=1e-4)
