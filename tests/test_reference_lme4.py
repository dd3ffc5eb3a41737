"""The mixed-effects fit against lme4; recipes are beside the numbers in reference/lme."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from helpers import REFERENCE, reference

import poolbn as pb

CASES = reference("lme/cases.json")
ERRORS = reference("lme/standard_errors.json")


@cache
def statistics(data: str, group: str, columns: tuple[str, ...]) -> pb.GroupStats:
    return pb.stats(REFERENCE / "lme" / "data" / data, group=group, columns=list(columns))


def fit(case: dict, pooling: pb.Partial) -> tuple[pb.LocalFit, list[int]]:
    """The fit, and the places of the reference's data sets in ours."""
    columns = (case["response"], *case["predictors"])
    stats = statistics(case["data"], case["group"], columns)
    result = pb.fit_node(stats, case["response"], case["predictors"], pooling=pooling)
    names = [str(level) for level in result.levels]
    levels = case.get("ranef_levels", case.get("levels", []))
    return result, [names.index(level) for level in levels]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_ml_reaches_the_best_known_maximum(case: dict) -> None:
    result, _ = fit(case, pb.Partial(random=case["predictors"]))
    assert str(result.status) in {"converged", "singular fit"}
    assert result.loglik >= case["logLik"] - 1e-6 * max(1, abs(case["logLik"]))
    assert result.n_params == case["n_params"]
    if result.loglik <= case["logLik"] + 1e-6:
        assert result.bic == pytest.approx(case["bic_score"], rel=1e-8, abs=1e-6)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_reml_reaches_the_best_known_maximum(case: dict) -> None:
    result, _ = fit(case, pb.Partial(random=case["predictors"], method="reml"))
    assert result.loglik >= case["reml_logLik"] - 1e-6 * max(1, abs(case["reml_logLik"]))


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case["singular"]], ids=lambda case: case["id"]
)
def test_parameters_at_interior_optima(case: dict) -> None:
    result, order = fit(case, pb.Partial())
    assert str(result.status) == "converged"
    np.testing.assert_allclose(result.fixed, case["fixef"], rtol=1e-4)
    np.testing.assert_allclose(np.sqrt(result.sigma2), case["sigma"], rtol=1e-4)
    Sigma = np.array(case["Sigma"])
    sd = np.sqrt(np.diagonal(Sigma))
    np.testing.assert_allclose(result.random_sd, sd, rtol=1e-4)
    scale = np.outer(sd, sd)
    np.testing.assert_allclose(result.random_cov / scale, Sigma / scale, atol=1e-4)
    blups = np.array(case["ranef"])
    largest = np.abs(blups).max(axis=0)
    np.testing.assert_allclose(result.random[order] / largest, blups / largest, atol=1e-4)


@pytest.mark.parametrize(
    "case", ERRORS, ids=lambda c: f"{c['data'][:-7]}-{c['random']}-{'reml' if c['reml'] else 'ml'}"
)
def test_standard_errors_and_conditional_sds(case: dict) -> None:
    pooling = pb.Partial(random=case["random"], method="reml" if case["reml"] else "ml")
    result, order = fit(case, pooling)
    r = len(case["Sigma"])
    assert result.loglik == pytest.approx(case["logLik"], rel=1e-10)
    np.testing.assert_allclose(result.fixed, case["fixef"], rtol=1e-6)
    np.testing.assert_allclose(result.fixed_cov, case["vcov"], rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(result.random_cov[:r, :r], case["Sigma"], rtol=1e-5, atol=1e-8)
    assert not result.random_cov[r:].any()
    np.testing.assert_allclose(result.random[order][:, :r], case["ranef"], rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(result.coef_sd[order][:, :r], case["cond_sd"], rtol=1e-5)
