"""Units inside data sets against lme4; the recipe is beside the numbers in reference/nested."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from helpers import REFERENCE, reference

import poolbn as pb

CASES = reference("nested/gaussian.json")
INTERIOR = ["egsingle_year", "star_read", "sim_07_J25_C10_p3_t1", "sim_21_J6_C20_p3_t0"]


@cache
def fit(name: str) -> pb.LocalFit:
    case = next(case for case in CASES if case["id"] == name)
    path = REFERENCE / "nested" / "data" / case["data"]
    columns = [case["response"], *case["predictors"]]
    stats = pb.stats(path, group=["F", "U"], columns=columns)
    assert stats.units is not None
    assert stats.units.n_units == case["inners"]
    return pb.fit_node(stats, case["response"], case["predictors"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_ml_reaches_the_best_known_maximum(case: dict) -> None:
    found = fit(case["id"])
    assert found.status.ok
    assert found.loglik >= case["logLik"] - 1e-6 * max(1, abs(case["logLik"]))
    r = len(case["predictors"]) + 1
    assert found.n_params == r + r * (r + 1) // 2 + 2


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["id"] in INTERIOR], ids=lambda case: case["id"]
)
def test_parameters_at_interior_optima(case: dict) -> None:
    found = fit(case["id"])
    assert str(found.status) == "converged"
    np.testing.assert_allclose(found.fixed, list(case["fixef"].values()), rtol=1e-4)
    known = {(of["grp"], of.get("var1"), of.get("var2")): of["vcov"] for of in case["varcorr"]}
    unit, residual = known["U", "(Intercept)", None], known["Residual", None, None]
    np.testing.assert_allclose(found.unit_sd**2, unit, rtol=1e-4)
    np.testing.assert_allclose(found.sigma2, unit + residual, rtol=1e-4)
    sd = [known["F", name, None] ** 0.5 for name in case["fixef"]]
    np.testing.assert_allclose(found.random_sd, sd, rtol=1e-3)
    first, second, *_ = case["fixef"]
    np.testing.assert_allclose(found.random_cov[0, 1], known["F", first, second], rtol=1e-2)
