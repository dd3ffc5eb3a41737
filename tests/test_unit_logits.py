"""Discrete and count nodes of tables with units inside data sets, from fit to prediction."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers import REFERENCE, reference
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import nbinom, norm, poisson
from test_unit_models import GROUP

import poolbn as pb
from poolbn.nodes.design import design_of
from poolbn.nodes.glmm import Problem
from poolbn.nodes.rowscores import Fitted, Step, scores
from poolbn.nodes.unitmodes import Rows
from poolbn.scoring.local import LocalScores

KINDS = {"visits": "count"}


@cache
def visits(
    seed: int = 0, clinics: int = 5, patients: int = 25, spread: float = 1.0
) -> pd.DataFrame:
    """Visits of patients; severity, outcome and visits differ between patients of a clinic."""
    rng, clinics, patients = np.random.default_rng(seed), 5, 25
    size = rng.integers(2, 7, clinics * patients)
    patient = np.repeat(np.arange(len(size)), size)
    clinic = patient // patients

    def level(sd: float) -> np.ndarray:
        return spread * sd * rng.normal(size=len(size))[patient]

    between = rng.normal(size=(clinics, 3))[clinic] * 0.4
    x = rng.normal(size=len(patient)) + level(0.5)
    female = (rng.random(len(size)) < 0.5)[patient]
    utilities = np.column_stack(
        [level(0.8), 0.7 * x + level(0.8) + between[:, 0], 0.4 * female + level(0.8)]
    )
    severity = (utilities + rng.gumbel(size=utilities.shape)).argmax(axis=1)
    eta = -0.3 + 0.6 * x + 0.5 * (severity == 1) + level(1.2) + between[:, 1]
    bad = rng.random(len(eta)) < 1 / (1 + np.exp(-eta))
    mean = np.exp(0.5 + 0.4 * bad + level(0.6) + between[:, 2])
    return pd.DataFrame(
        {
            "clinic": np.array(["A", "B", "C", "D", "E", "F", "G", "H"])[clinic],
            "patient": patient,
            "x": x,
            "sex": np.where(female, "f", "m"),
            "severity": np.array(["low", "middle", "high"])[severity],
            "bad": np.where(bad, "yes", "no"),
            "visits": rng.poisson(mean),
        }
    )


@cache
def table(seed: int = 0, group: str = "both", spread: float = 1.0) -> pb.Table:
    frame = visits(seed, spread=spread)
    if group == "clinic":
        return pb.table(frame.drop(columns="patient"), group="clinic", kinds=KINDS)
    return pb.table(frame, group=GROUP, kinds=KINDS)


FAMILIES = [("bad", ["x"]), ("severity", ["x", "sex"]), ("visits", ["bad"])]
POOLINGS = ["complete", "none", "partial"]


@pytest.mark.parametrize("case", reference("nested/laplace.json"), ids=lambda case: case["id"])
def test_a_table_with_units_has_the_fit_of_glmer(case: dict) -> None:
    frame = pd.read_csv(REFERENCE / "nested" / "data" / case["data"])
    frame = frame.sample(frac=1, random_state=1)  # rows of units need not be together
    kinds = {"y": "count" if case["family"] == "poisson" else "discrete"}
    made = pb.table(frame, group=["F", "U"], kinds=kinds)
    fit = pb.fit_node(made, "y", case["predictors"])
    assert fit.loglik >= case["logLik"] - 1e-4
    assert fit.unit == "U"
    variance = next(of["vcov"] for of in case["varcorr"] if of["grp"] == "U")
    if case["family"] == "binomial":  # a negative binomial fit may be better than a Poisson one
        np.testing.assert_allclose(fit.fixed[0], list(case["fixef"].values()), atol=4e-3)
        np.testing.assert_allclose(fit.unit_sd**2, variance, rtol=3e-3)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize(("child", "parents"), FAMILIES, ids=str)
def test_units_are_one_parameter_more(child: str, parents: list[str], pooling: str) -> None:
    fit = pb.fit_node(table(), child, parents, pooling=pooling)
    plain = pb.fit_node(
        table(group="clinic"), child, parents,
        pooling=pooling if child != "severity" else {"complete": pb.Complete(discrete="logit"),
                 "none": pb.NoPooling(discrete="logit"), "partial": pb.Partial()}[pooling],
    )  # fmt: skip
    extra = {"none": 5}.get(pooling, 1)
    if math.isinf(getattr(fit, "dispersion", math.inf)) == math.isinf(plain.dispersion):
        assert fit.n_params == plain.n_params + extra
    assert fit.loglik > plain.loglik + 3
    assert fit.unit_sd.shape == (5,)
    assert (fit.unit_sd == fit.unit_sd[0]).all() == (pooling != "none")
    assert "SD between patients" in str(fit)
    assert "with an intercept for each unit" in fit.detail


def test_tables_become_logistic_regressions_and_say_so() -> None:
    for parents in ([], ["sex"]):
        for pooling in ("complete", "none", "partial", pb.Partial(discrete="table")):
            fit = pb.fit_node(table(), "bad", parents, pooling=pooling)
            assert fit.model == "logistic regression"
            assert "which a table cannot have" in str(fit)
    assert pb.fit_node(table(group="clinic"), "bad", []).model != "logistic regression"


@pytest.mark.parametrize(("child", "parents"), FAMILIES, ids=str)
def test_scores_are_log_likelihoods_with_the_parameter_of_units(
    child: str, parents: list[str]
) -> None:
    made = table()
    fit = pb.fit_node(made, child, parents)
    net = pb.fit([(parent, child) for parent in parents], made, score="bic")
    own = net.fits[child]
    assert own.loglik == pytest.approx(fit.loglik, abs=1e-6)
    assert own.bic == pytest.approx(own.loglik - math.log(made.n_rows) / 2 * own.n_params)


@pytest.mark.parametrize(("child", "parents"), FAMILIES, ids=str)
def test_scores_of_rows_are_what_the_kernel_has(child: str, parents: list[str]) -> None:
    """Gradients and information with units at their modes: Newton's method in numpy."""
    made = table()
    fit = pb.fit_node(made, child, parents)
    problem = Problem(design_of(made, child, parents), fit.response)
    found = problem.finish(problem.climb(final=True))
    T = problem.basis.T
    theta = math.exp(found.log_theta) if fit.response.dispersed else math.inf
    sd = np.full(problem.F, math.sqrt(problem.S[0, 0]) * found.tau)
    rows = Rows(problem.design, fit.response, theta, sd).turned(problem.design.X @ T)
    told = scores(rows, found.T.reshape(problem.F, problem.C, problem.q))
    np.testing.assert_allclose(told.information, found.W, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(told.gradient, found.g, atol=1e-6)


def averages(fit: pb.LocalFit, predictors: np.ndarray) -> np.ndarray:
    """Probabilities of levels by integration over units, (K,), from predictors (C,)."""
    sd, C = fit.unit_sd[0], len(predictors)
    if C == 1:
        p = quad(lambda w: norm.pdf(w, scale=sd) / (1 + math.exp(-predictors[0] - w)), -12, 12)[0]
        return np.array([1 - p, p])
    z, weight = np.polynomial.hermite_e.hermegauss(60)
    weight = weight / weight.sum()
    root = np.linalg.cholesky((np.eye(2) + 1) / 2) * sd
    total = np.zeros(3)
    for a, wa in zip(z, weight, strict=True):
        for b, wb in zip(z, weight, strict=True):
            eta = np.concatenate([[0.0], predictors + root @ [a, b]])
            p = np.exp(eta - eta.max())
            total += wa * wb * p / p.sum()
    return total


@pytest.mark.parametrize(("child", "parents"), FAMILIES[:2], ids=str)
def test_probabilities_are_averages_over_units(child: str, parents: list[str]) -> None:
    fit = pb.fit_node(table(), child, parents)
    values = {"x": np.array([-1.0, 0.5, 2.0]), "sex": np.array([0.0, 1.0, 1.0])}
    sets = np.array([0, 2, 4])
    found = fit.mean(values, sets)
    for i in range(3):
        z = np.array([1.0, values["x"][i], values["sex"][i]][: len(parents) + 1])
        expected = averages(fit, fit.coef[sets[i]] @ z)
        np.testing.assert_allclose(found[i], expected, atol=1e-7)
    logs = np.column_stack(
        [fit.log_density(np.full(3, float(code)), values, sets) for code in range(found.shape[1])]
    )
    np.testing.assert_allclose(np.exp(logs), found, atol=1e-9)
    certain = fit.predictive(np.ones(5, dtype=bool)).log_levels(values, sets)
    np.testing.assert_allclose(np.exp(certain), found, atol=1e-9)
    many = {name: np.repeat(column[:1], 40_000) for name, column in values.items()}
    drawn = fit.draw(many, np.zeros(40_000, dtype=int), np.random.default_rng(0))
    shares = np.bincount(drawn.astype(int), minlength=found.shape[1]) / 40_000
    np.testing.assert_allclose(shares, found[0], atol=0.01)


def test_counts_are_averages_over_units() -> None:
    fit = pb.fit_node(table(), "visits", ["bad"])
    values, sets = {"bad": np.array([0.0, 1.0])}, np.array([1, 3])
    eta = np.array([fit.coef[1, 0, 0], fit.coef[3, 0].sum()])
    sd, theta = fit.unit_sd[0], fit.dispersion
    np.testing.assert_allclose(fit.mean(values, sets), np.exp(eta + sd**2 / 2), rtol=1e-12)

    def chance(y: int, at: float) -> float:
        if math.isinf(theta):
            return float(poisson.pmf(y, math.exp(at)))
        return float(nbinom.pmf(y, theta, theta / (theta + math.exp(at))))

    for y in (0, 2, 7):
        logs = fit.log_density(np.full(2, float(y)), values, sets)
        expected = [
            quad(lambda w, y=y, at=at: norm.pdf(w, scale=sd) * chance(y, at + w), -5, 5)[0]
            for at in eta
        ]
        np.testing.assert_allclose(np.exp(logs), expected, rtol=1e-6)
    many = {"bad": np.zeros(60_000)}
    drawn = fit.draw(many, np.ones(60_000, dtype=int), np.random.default_rng(1))
    assert drawn.mean() == pytest.approx(math.exp(eta[0] + sd**2 / 2), rel=0.02)
    u = (np.arange(2000) + 0.5) / 2000
    spread = fit.quantile(u, np.full(2000, drawn.mean()), np.ones(2000, dtype=int))
    assert spread.var() == pytest.approx(drawn.var(), rel=0.1)


def test_a_column_that_describes_units_has_one_row_for_each() -> None:
    """As a child it has no parents that vary inside units."""
    frame = visits()
    one = frame.drop_duplicates("patient")[["clinic", "sex"]]
    fit = pb.fit_node(table(), "sex", [], pooling="complete")
    alone = pb.fit_node(pb.table(one, group="clinic"), "sex", [], pooling="complete")
    assert fit.loglik == pytest.approx(alone.loglik, abs=1e-6)
    assert fit.unit_sd is None
    assert "one row for each unit" in fit.detail
    wrong = pb.fit_node(table(), "sex", ["x"])
    assert not wrong.status.ok
    assert "'sex' is constant in each unit, and its parent 'x' is not" in wrong.detail
    net = pb.learn(table(), score="bic")
    assert not net.parents("sex")


def test_units_of_one_row_are_no_units() -> None:
    frame = visits().assign(patient=np.arange(len(visits())))
    single = pb.table(frame, group=GROUP, kinds=KINDS)
    for child, parents in FAMILIES:
        fit = pb.fit_node(single, child, parents)
        plain = pb.fit_node(table(group="clinic"), child, parents)
        assert fit.loglik == plain.loglik
        assert fit.n_params == plain.n_params
        assert fit.unit_sd is None
        assert "no unit has two rows" in str(fit)


@pytest.mark.parametrize("score", ["bic", "bic-h", "bic-w"])
def test_a_network_of_all_kinds_is_saved_and_answers(score: str, tmp_path) -> None:
    net = pb.learn(table(), score=score)
    assert net.unit == "patient"
    path = tmp_path / "net.json"
    net.save(path)
    back = pb.load(path)
    assert str(back) == str(net)
    for name, fit in net.fits.items():
        if getattr(fit, "unit_sd", None) is not None:
            np.testing.assert_array_equal(back.fits[name].unit_sd, fit.unit_sd)
    assert ("x", "bad") in net.arcs or ("bad", "x") in net.arcs
    effects = net.effects()
    assert np.isfinite(effects["effect"]).all()
    rows = net.sample(50, seed=1)
    assert len(rows) == 50 * 5 or len(rows) == 50


def test_no_score_leaves_levels_of_data_sets_free_with_units() -> None:
    """Within data sets there would be levels of units too: the score is the plain one."""
    some = table().select(["bad", "severity", "visits", "sex"])
    plain, inside = (pb.learn(some, score=score) for score in ("bic-h", "bic-w"))
    assert inside.score == pytest.approx(plain.score)


@pytest.mark.parametrize(
    ("child", "parents", "more"),
    [("bad", [], ["x", "sex", "severity", "visits"]), ("severity", ["x"], ["bad", "sex"])],
)
def test_what_a_column_gains_is_about_what_a_fit_gains(
    child: str, parents: list[str], more: list[str]
) -> None:
    """With an effect that is the same everywhere; if rows were independent it would gain more."""
    made = table()
    response = pb.fit_node(made, child, parents).response
    problem = Problem(design_of(made, child, parents), response)
    found = problem.climb(final=True)
    step = Step(made, child, parents, Fitted(problem.basis, found, response, 0.0))
    for name in more:
        design = design_of(made, child, [*parents, name])
        vary = np.arange(1, design.X.shape[1]) <= len(parents)
        gain = Problem(design, response, vary).climb(final=True).loglik - found.loglik
        assert step.gain(name, varies=False) == pytest.approx(gain, rel=0.2, abs=0.3)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize(("child", "parents"), FAMILIES, ids=str)
def test_all_answers_of_a_fit_are_finite(child: str, parents: list[str], pooling: str) -> None:
    made = table()
    fit = pb.fit_node(made, child, parents, pooling=pooling)
    rng = np.random.default_rng(0)
    for other in (
        fit, fit.in_population(), fit.taken([2, 0, 2], ("a", "b", "c")),
        fit.data_set_draws(3, rng), fit.new_data_sets(6, 2, rng),
    ):  # fmt: skip
        F = len(other.levels)
        values = {name: np.ones(F) for name in ("x", "sex", "bad")}
        assert other.unit_sd.shape == (F,)
        assert np.isfinite(other.mean(values, np.arange(F))).all()
        x = np.zeros(F)
        assert np.isfinite(other.log_density(x, values, np.arange(F))).all()
    assert fit.along([np.linspace(0, 1, 4)] * len(fit.columns)).shape[:2] == (6, 4)
    found = fit.variances(made)
    if found is not None:
        assert found.units == pytest.approx(np.mean(fit.unit_sd**2))
        assert found.conditional > found.marginal
    effects = fit.effects
    assert np.isfinite(effects.own).all()
    assert (effects.own_se > 0).all()


def test_a_new_data_set_is_weighed_with_its_units() -> None:
    made = table()
    net = pb.fit([("x", "bad")], made)
    new = visits(seed=7).query("clinic == 'A'")
    new = new.assign(clinic="new", patient=new["patient"] + 1000)
    adapted = net.adapt(new, "new")
    fit = adapted.fits["bad"]
    assert fit.unit_sd.shape == (6,)
    # Coefficients and intercepts of units that are most probable together.
    old = net.fits["bad"]
    X, y = np.column_stack([np.ones(len(new)), new["x"]]), (new["bad"] == "yes").to_numpy()
    own = np.unique(new["patient"], return_inverse=True)[1]
    root = np.linalg.cholesky(old.random_cov + 1e-9 * np.eye(2))

    def minus(u: np.ndarray) -> float:
        eta = X @ (old.fixed[0] + root @ u[:2]) + old.unit_sd[0] * u[2 + own]
        return float(np.logaddexp(0, np.where(y, -eta, eta)).sum() + u @ u / 2)

    u = minimize(minus, np.zeros(2 + own.max() + 1)).x
    np.testing.assert_allclose(fit.coef[-1, 0], old.fixed[0] + root @ u[:2], atol=1e-4)
    alike = net.adapt(new.drop(columns="patient"), "new").fits["bad"]  # as if rows were independent
    assert (np.diagonal(alike.coef_cov[-1]) < np.diagonal(fit.coef_cov[-1])).all()


def test_scores_of_tables_take_no_units() -> None:
    for score in ("bde", "k2"):
        with pytest.raises(pb.DataError, match="takes rows for independent"):
            pb.learn(table().select(["bad", "sex"]), score=score, pooling="complete")


def test_independence_is_tested_with_units() -> None:
    """A column that describes units, beside one that units alone make alike."""
    p_values = {"patient": [], "row": []}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        patient = np.repeat(np.arange(60), 6)
        noise = 1.5 * rng.normal(size=60)[patient]
        frame = pd.DataFrame(
            {
                "clinic": patient // 20,
                "patient": patient,
                "sex": np.where(rng.random(60) < 0.5, "f", "m")[patient],
                "ill": np.where(rng.random(360) < 1 / (1 + np.exp(-noise)), "yes", "no"),
            }
        )
        whole = pb.table(frame, group=GROUP)
        rows = pb.table(frame.drop(columns="patient"), group="clinic")
        for name, of in (("patient", whole), ("row", rows)):
            found = pb.ci_test(of, "sex", "ill", pooling="complete", test="lr")
            p_values[name].append(found.p_value)
    assert np.mean(np.array(p_values["patient"]) < 0.05) <= 0.15
    assert np.mean(np.array(p_values["row"]) < 0.05) >= 0.2
    with pytest.raises(pb.OptionError, match="pooling='complete'"):
        pb.ci_test(whole, "sex", "ill", test="lr")


def test_missing_cells_are_not_filled_where_rows_are_alike() -> None:
    frame = visits()
    gaps = frame.assign(bad=frame["bad"].where(np.arange(len(frame)) % 9 != 0))
    with pytest.raises(
        pb.DataError, match="EM of columns that are not continuous takes rows for independent"
    ):
        pb.learn(gaps, group=GROUP, kinds=KINDS, missing="em")
    net = pb.learn(gaps, group=GROUP, kinds=KINDS, missing="drop", score="bic")
    assert net.unit == "patient"


def test_orders_are_compared_without_units_where_scores_are_expensive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    patient = np.repeat(np.arange(200), 5)

    def yes(predictor: np.ndarray) -> np.ndarray:
        own = predictor + rng.normal(size=200)[patient]
        return np.where(rng.random(1000) < 1 / (1 + np.exp(-own)), "yes", "no")

    a = yes(np.zeros(1000))
    b = yes(2.0 * (a == "yes") - 1)
    c = yes(2.0 * (b == "yes") - 1)
    columns = {"clinic": patient // 50, "patient": patient, "a": a, "b": b, "c": c}
    rows = pb.table(pd.DataFrame(columns), group=["clinic", "patient"])
    best = pb.learn(rows, search=pb.Exact())
    assert LocalScores(rows, pooling="partial", score="bic-w").cheap.data.unit is None
    monkeypatch.setattr("poolbn.search.orders._EXPENSIVE", 0.0)
    for most in (0.0, 1e9):  # arcs alone come last, or orders by scores with units too
        monkeypatch.setattr("poolbn.search.orders._REGRESSIONS", most)
        found = pb.learn(rows, search=pb.OrderSearch(starts=2))
        assert found.score == pytest.approx(best.score, abs=1e-6)
        assert found.fits["b"].unit == "patient"
