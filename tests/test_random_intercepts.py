"""Logits and counts in which only some coefficients vary between data sets.

The recipe of R's numbers is beside them, in reference/intercepts.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import REFERENCE, reference
from test_glmm import BINARY, case_design, count_response, dense_laplace, listed, simulated
from test_mixed_search import COUNT, rows

import poolbn as pb
from poolbn.nodes import marginal
from poolbn.nodes.design import Design
from poolbn.nodes.glmm import Problem
from poolbn.nodes.links import Family, Response
from poolbn.nodes.localfit import Counts, Status

CASES = reference("intercepts/cases.json")
INTERCEPT = pb.Partial(random="intercept")


def problem_of(case: dict) -> Problem:
    folder, _, path = case["data"].removeprefix("../").partition("/")
    where = (folder, path) if path else ("intercepts", folder)
    design = case_design(*where, case["response"], tuple(listed(case["parents"])))
    response = BINARY if case["family"] == "binomial" else count_response(case)
    return Problem(design, response, varying(case)[1:])


def varying(case: dict) -> np.ndarray:
    """Which coefficients do: those of a listed parent, whose levels R appends to its name."""
    _, *others = listed(case["coef_names"])
    random = tuple(listed(case["random"]))
    return np.array([True, *(name.startswith(random) for name in others)])


def case_id(case: dict) -> str:
    return f"{case['id']} {len(listed(case['random']))}"


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_a_fit_is_at_or_above_the_best_of_r(case: dict) -> None:
    problem, vary = problem_of(case), varying(case)
    fit = problem.partial()
    quick = problem.climb(final=False).loglik + float(problem.constants.sum())
    assert fit.converged
    assert fit.n_params == case["n_params"]
    assert min(fit.loglik, quick) >= case["logLik"] - 1e-4
    assert not np.diagonal(fit.random_cov)[~vary].any()
    if not is_interior(case) or fit.loglik > case["logLik"] + 1e-4:
        return
    sd = np.sqrt(np.diagonal(np.atleast_2d(case["Sigma"])))
    np.testing.assert_allclose(fit.fixed[0], listed(case["fixef"]), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(
        fit.random_cov[np.ix_(vary, vary)] / np.outer(sd, sd),
        np.atleast_2d(case["Sigma"]) / np.outer(sd, sd),
        atol=2e-3,
    )
    if case.get("se"):
        se = np.sqrt(np.diagonal(fit.fixed_cov))
        np.testing.assert_allclose(se, listed(case["se"]), rtol=1e-2)


def is_interior(case: dict) -> bool:
    # The covariance of random slopes of what is constant within data sets is not identified.
    identified = (case["id"], len(listed(case["random"]))) != ("epil_trt", 1)
    variances = np.diagonal(np.atleast_2d(case["Sigma"]))
    return identified and not case["singular"] and variances.min() > 1e-4


@pytest.mark.parametrize(
    "case", [case for case in CASES if "logLik" in (case["quadrature"] or {})], ids=case_id
)
def test_one_random_effect_is_integrated_as_by_adaptive_quadrature(case: dict) -> None:
    """Glmer's search may end at a variance of 0 though that is not best."""
    problem, known = problem_of(case), case["quadrature"]
    fit = problem.mixed(marginal.settle(problem, final=True))
    assert fit.loglik >= known["logLik"] - 1e-5
    if known["sd"] > 1e-3:
        assert fit.loglik == pytest.approx(known["logLik"], abs=1e-5)
        np.testing.assert_allclose(fit.fixed[0], listed(known["fixef"]), atol=1e-3)
        assert math.sqrt(fit.random_cov[0, 0]) == pytest.approx(known["sd"], rel=1e-3, abs=1e-3)


@pytest.mark.parametrize(
    "response", [BINARY, Response(levels=3), Response(Family.POISSON)], ids=str
)
def test_the_maximum_is_that_of_a_dense_program(response: Response) -> None:
    """No change of the parameters makes the dense program's value larger."""
    design = simulated(11, response, q=3, F=6, rows=25)
    problem = Problem(design, response, np.array([False, True]))
    fit = problem.partial()
    assert problem.r == 2
    assert fit.D[1].tolist() == fit.D[:, 1].tolist() == [0.0] * 3
    own = np.linalg.eigh(fit.D[::2, ::2])
    L = np.zeros((3, 2))
    L[::2] = own.eigenvectors * np.sqrt(np.maximum(own.eigenvalues, 0.0))
    best = dense_laplace(design, response, fit.fixed.ravel(), L, math.inf)
    assert best == pytest.approx(fit.loglik, abs=1e-6)
    rng = np.random.default_rng(2)
    for _ in range(20):
        fixed, other = fit.fixed.ravel() + rng.normal(0, 0.01, fit.fixed.size), L.copy()
        other[::2] += rng.normal(0, 0.01, (2, 2))
        assert dense_laplace(design, response, fixed, other, math.inf) < best + 1e-6


def test_all_that_vary_are_a_full_covariance() -> None:
    design = simulated(3, BINARY, q=3)
    one, two = Problem(design, BINARY), Problem(design, BINARY, np.array([True, True]))
    assert one.partial().loglik == two.partial().loglik


def test_the_order_of_columns_does_not_matter() -> None:
    design = simulated(5, BINARY, q=4)
    turned = Design(design.X[:, [0, 3, 2, 1]], design.y, design.weight, design.offsets)
    one = Problem(design, BINARY, np.array([True, False, False])).partial()
    two = Problem(turned, BINARY, np.array([False, False, True])).partial()
    assert one.loglik == pytest.approx(two.loglik, abs=1e-6)
    np.testing.assert_allclose(one.coef[..., [0, 3, 2, 1]], two.coef, atol=1e-4)


@pytest.fixture(scope="module")
def toenail() -> pb.Table:
    frame = pd.read_csv(REFERENCE / "intercepts" / "toenail.csv")
    return pb.table(frame, group="F", kinds={"severe": "discrete"})


def test_toenail_has_the_odds_ratios_of_glmer(toenail: pb.Table) -> None:
    (case,) = (case for case in CASES if case["id"] == "toenail")
    known = case["quadrature"]
    fit = pb.fit_node(toenail, "severe", ["treatment", "time"], pooling=INTERCEPT)
    assert fit.status is Status.CONVERGED
    assert fit.counts == Counts(3, 1, 0)
    assert fit.loglik == pytest.approx(known["logLik"], abs=2e-3)
    np.testing.assert_allclose(np.exp(fit.fixed[0]), np.exp(known["fixef"]), atol=2e-3)
    assert np.exp(fit.fixed[0, 1:]).round(2).tolist() == [0.59, 0.64]


def test_what_is_constant_in_each_data_set_does_not_vary(toenail: pb.Table) -> None:
    """Who has which treatment is the same in all rows of a patient."""
    fit = pb.fit_node(toenail, "severe", ["treatment", "time"])
    assert np.diagonal(fit.random_cov).astype(bool).tolist() == [True, False, True]
    assert fit.counts.groups == 3
    assert 0.05 < math.exp(fit.fixed[0, 1]) < 1.0
    listed_too = pb.Partial(random=["treatment", "time"])
    assert pb.fit_node(toenail, "severe", ["treatment", "time"], pooling=listed_too).counts[1] == 6


def test_slopes_whose_variances_have_no_maximum_do_not_vary() -> None:
    rng = np.random.default_rng(0)
    groups, X = np.repeat(np.arange(20), 6), rng.normal(size=(120, 3))
    eta = -0.5 + rng.normal(0, 1.5, 20)[groups] + X @ np.full(3, 0.8)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        g=groups, y=rng.random(120) < 1 / (1 + np.exp(-eta))
    )
    table = pb.table(frame, group="g", kinds={"y": "discrete"})
    fit, less = (
        pb.fit_node(table, "y", ["a", "b", "c"], pooling=how) for how in (pb.Partial(), INTERCEPT)
    )
    assert fit.status is Status.INTERCEPT_ONLY
    assert fit.status.ok
    assert "only the intercept varies" in fit.detail
    assert less.status is Status.CONVERGED
    np.testing.assert_allclose(fit.coef, less.coef)
    assert fit.loglik == less.loglik
    assert fit.counts == Counts(4, 10, 0)  # of the model that was asked for
    assert "only the intercept varies" in str(fit)
    score = pb.score(table, [(x, "y") for x in "abc"]) - pb.score(table, [])
    alone = pb.fit_node(table, "y")
    assert score == pytest.approx(fit.bic - alone.bic, abs=1e-6)


HOWS = [
    INTERCEPT,
    pb.Partial(random=["sex", "age"]),
    pb.Partial(random="intercept", residuals="pooled"),
]


@pytest.mark.parametrize("how", HOWS, ids=str)
def test_a_network_of_all_kinds_does_all_that_others_do(how: pb.Partial, tmp_path: Path) -> None:
    table = rows(2, 40)
    net = pb.learn(table, group="site", kinds=COUNT, pooling=how, preset="paper")
    made = pb.table(table, group="site", kinds=COUNT)
    assert net.score == pytest.approx(pb.score(made, net.dag, pooling=how), abs=1e-6)
    effects, each = net.effects(), net.effects(by="data set")
    listed_too = () if how.random == "intercept" else how.random
    still = effects[~effects["parent"].isin(listed_too)]
    assert (still["between_sd"] == 0).all()
    own = still.loc[:, list(net.levels)].to_numpy()
    np.testing.assert_allclose(own, np.tile(still[["effect"]].to_numpy(), len(net.levels)))
    for _, one in still.iterrows():
        same = (each["parent"] == one["parent"]) & (each["child"] == one["child"])
        same &= each["level"].eq(one["level"]) | (each["level"].isna() & pd.isna(one["level"]))
        np.testing.assert_allclose(each.loc[same, ["lower"]], one["lower"], rtol=0.2)
    path = tmp_path / "net.json"
    net.save(path)
    again = pb.load(path)
    assert again.effects().equals(effects)
    assert again.fits["event"].pooling == net.fits["event"].pooling
    new = rows(3, 30, 1).drop(columns="site")
    wider = net.adapt(new, name="new")
    np.testing.assert_allclose(wider.effects().loc[still.index, "new"], still["effect"], rtol=1e-6)
    chances = net.predict(table.head(3), "event")
    assert np.isfinite(chances[["False", "True"]].to_numpy()).all()
    assert len(net.sample(20, seed=1)) == 20
    assert math.isfinite(net.total_effects()["total"].sum())
    page = tmp_path / "report.html"
    net.report(page)
    assert "of the intercept" in page.read_text(encoding="utf-8")


def test_a_discrete_node_has_a_logit(tmp_path: Path) -> None:
    discrete = rows(1, 50)[["site", "sex", "arm", "event"]]
    fits = pb.learn(discrete, group="site", pooling=INTERCEPT, preset="paper").fits.values()
    assert {type(fit).__name__ for fit in fits} == {"RegressionFit"}
    cells = pb.stats(discrete, group="site")
    assert pb.score(cells, [("arm", "event")], pooling=INTERCEPT) == pytest.approx(
        pb.score(pb.table(discrete, group="site"), [("arm", "event")], pooling=INTERCEPT)
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pb.Partial(random="intercept", discrete="table"), "use discrete='logit'"),
        (lambda: pb.Partial(random=["age"], discrete="table"), "use discrete='logit'"),
        (
            lambda: pb.learn(
                rows(1, 20),
                group="site",
                kinds=COUNT,
                pooling=pb.Partial(random=["agee"]),
                preset="paper",
            ),
            "names 'agee', which is no column; did you mean 'age'",
        ),
    ],
)
def test_what_does_not_vary_cannot_be_listed(make: object, words: str) -> None:
    with pytest.raises(pb.PoolbnError, match=words):
        make()  # type: ignore[operator]
