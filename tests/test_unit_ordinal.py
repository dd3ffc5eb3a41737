"""Ordinal nodes of tables with units inside data sets: against clmm, quadrature, and laws."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import REFERENCE, reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm

import poolbn as pb
from poolbn.nodes.design import about_thresholds, design_of
from poolbn.nodes.glmm import Problem
from poolbn.nodes.rowscores import scores
from poolbn.nodes.unitmodes import Rows

GROUP = ["clinic", "patient"]
STATES = ["worse", "same", "better", "well"]
KINDS = {"state": STATES}
GRAPH = "x -> state; arm -> state; state -> cost"
CASES = reference("ordinal_units/cases.json")
POOLINGS = ["complete", "none", "partial"]


@cache
def visits(seed: int = 0, clinics: int = 5, patients: int = 25, sd: float = 1.2) -> pd.DataFrame:
    """x and the arm raise the state, which differs between patients of a clinic; it costs."""
    rng = np.random.default_rng(seed)
    size = rng.integers(2, 6, clinics * patients)
    patient = np.repeat(np.arange(len(size)), size)
    clinic = patient // patients
    x, arm = rng.normal(size=len(patient)), rng.integers(0, 2, len(size))[patient]
    level = rng.normal(0, 0.4, clinics)[clinic] + rng.normal(0, sd, len(size))[patient]
    eta = level + 0.7 * x + 2.0 * arm
    state = np.searchsorted([-1.2, 0.3, 1.4], eta + rng.logistic(size=len(patient)))
    return pd.DataFrame(
        {
            "clinic": np.array(list("ABCDEFGHIJKL"))[clinic],
            "patient": patient,
            "x": x,
            "arm": np.where(arm, "new", "old"),
            "state": np.array(STATES)[state],
            "cost": 2.0 * state + rng.normal(size=len(patient)),
        }
    )


@cache
def net(pooling: str = "partial") -> pb.Network:
    return pb.fit(GRAPH, visits(), group=GROUP, kinds=KINDS, pooling=pooling)


def of_case(name: str) -> tuple[dict, pb.Table]:
    case = next(case for case in CASES if case["id"] == name)
    frame = pd.read_csv(REFERENCE / "ordinal_units" / case["data"])
    frame = frame.sample(frac=1, random_state=1)  # rows of units need not be together
    return case, pb.table(frame, group=["F", "U"], kinds={"y": "ordinal"})


@pytest.mark.parametrize("name", [case["id"] for case in CASES])
def test_clmm_is_reached(name: str) -> None:
    case, table = of_case(name)
    xs = case["predictors"]
    fit = pb.fit_node(table, "y", xs)
    assert fit.loglik >= case["logLik"] - 1e-3
    assert fit.loglik <= case["logLik"] + 0.01
    q = len(xs) + 1
    assert fit.n_params == case["levels"] - 1 + len(xs) + q * (q + 1) // 2 + 1
    if case["gradient"] < 2e-3 and case["unit_variance"] > 0.1:  # an interior maximum
        np.testing.assert_allclose(fit.thresholds, case["thresholds"], atol=1e-3)
        np.testing.assert_allclose(fit.fixed[0, 1:q], [case["beta"][x] for x in xs], atol=1e-3)
        assert fit.unit_sd[0] ** 2 == pytest.approx(case["unit_variance"], rel=2e-3)
    whole = pb.fit_node(table, "y", xs, pooling="complete")
    assert whole.loglik >= case["logLik_units_alone"] - 1e-3
    np.testing.assert_allclose(whole.thresholds, case["thresholds_units_alone"], atol=2e-3)
    assert whole.unit_sd[0] ** 2 == pytest.approx(case["unit_variance_alone"], rel=5e-3, abs=1e-3)


# Laws


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("parents", [[], ["x"], ["x", "arm"]], ids=str)
def test_two_levels_are_a_logit_with_units(pooling: str, parents: list[str]) -> None:
    frame = visits().assign(state=visits()["state"].isin(["better", "well"]).astype(int))
    one, other = (
        pb.fit_node(
            pb.table(frame, group=GROUP, kinds={"state": kind}), "state", parents, pooling=pooling
        )
        for kind in ("ordinal", "discrete")
    )
    assert one.loglik == pytest.approx(other.loglik, abs=1e-9)
    assert one.counts == other.counts
    np.testing.assert_allclose(one.coef, other.coef, atol=1e-5)
    np.testing.assert_allclose(one.unit_sd, other.unit_sd, atol=1e-5)
    np.testing.assert_allclose(one.coef_cov, other.coef_cov, rtol=1e-4, atol=1e-6)
    values = {"x": np.array([-1.0, 0.4, 2.0]), "arm": np.array([0.0, 1.0, 1.0])}
    sets = np.array([0, 2, 4])
    np.testing.assert_allclose(one.mean(values, sets), other.mean(values, sets), atol=1e-6)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5))
def test_levels_in_reverse_have_inverse_odds_ratios(seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    units = np.repeat(np.arange(40), 4)
    x = rng.normal(size=160)
    eta = 0.8 * x + rng.normal(0, 1.0, 40)[units] + rng.normal(0, 0.4, 5)[units // 8]
    y = np.digitize(eta + rng.logistic(size=160), np.linspace(-1, 1, levels - 1))
    frame = pd.DataFrame({"clinic": units // 8, "patient": units, "x": x, "y": y})
    found = [
        pb.fit_node(
            pb.table(frame.assign(y=each), group=GROUP, kinds={"y": "ordinal"}), "y", ["x"],
            pooling=pb.Partial(random="intercept"),
        )
        for each in (y, -y)
    ]  # fmt: skip
    one, other = found
    assert one.loglik == pytest.approx(other.loglik, abs=1e-6)
    assert one.fixed[0, 1] == pytest.approx(-other.fixed[0, 1], abs=1e-4)
    assert one.unit_sd[0] == pytest.approx(other.unit_sd[0], abs=1e-3)
    np.testing.assert_allclose(one.thresholds, -other.thresholds[::-1], atol=1e-4)


def test_the_order_of_rows_does_not_matter() -> None:
    table = pb.table(visits(), group=GROUP, kinds=KINDS)
    mixed = pb.table(visits().sample(frac=1, random_state=2), group=GROUP, kinds=KINDS)
    one, other = (pb.fit_node(each, "state", ["x"]) for each in (table, mixed))
    assert one.loglik == pytest.approx(other.loglik, abs=1e-8)
    at = [mixed.levels.index(level) for level in table.levels]
    np.testing.assert_allclose(one.coef, other.coef[at], atol=1e-5)


def test_units_of_one_row_are_no_units() -> None:
    frame = visits().assign(patient=np.arange(len(visits())))
    single = pb.fit_node(pb.table(frame, group=GROUP, kinds=KINDS), "state", ["x"])
    plain = visits().drop(columns="patient")
    other = pb.fit_node(pb.table(plain, group="clinic", kinds=KINDS), "state", ["x"])
    assert single.loglik == other.loglik
    assert single.n_params == other.n_params
    assert single.unit_sd is None
    assert "no unit has two rows" in str(single)
    many = pb.fit_node(pb.table(visits(), group=GROUP, kinds=KINDS), "state", ["x"])
    assert many.n_params == other.n_params + 1
    assert many.loglik > other.loglik + 3
    assert "with an intercept for each unit; by the Laplace" in many.detail


def test_a_column_that_describes_units_has_one_row_for_each() -> None:
    best = visits().assign(state=visits().groupby("patient")["state"].transform("first"))
    one = best.drop_duplicates("patient").drop(columns="patient")
    fit = pb.fit_node(pb.table(best, group=GROUP, kinds=KINDS), "state", ["arm"])
    alone = pb.fit_node(pb.table(one, group="clinic", kinds=KINDS), "state", ["arm"])
    assert fit.loglik == pytest.approx(alone.loglik, abs=1e-6)
    assert "one row for each unit" in fit.detail


@pytest.mark.parametrize("parents", [[], ["x"], ["x", "arm"]], ids=str)
def test_scores_of_rows_are_what_the_kernel_has(parents: list[str]) -> None:
    """Gradients and information with units at their modes: Newton's method in numpy."""
    table = pb.table(visits(), group=GROUP, kinds=KINDS)
    fit = pb.fit_node(table, "state", parents)
    problem = Problem(
        about_thresholds(design_of(table, "state", parents), np.arange(4)), fit.response
    )
    found = problem.finish(problem.climb(final=True))
    sd = np.full(problem.F, math.sqrt(problem.S[0, 0]) * found.tau)
    rows = Rows(problem.design, fit.response, unit_sd=sd)
    told = scores(
        rows.turned(problem.design.X @ problem.basis.T),
        found.T.reshape(problem.F, problem.C, problem.q),
    )
    np.testing.assert_allclose(told.information, found.W, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(told.gradient, found.g, atol=1e-6)


# Where the approximation runs away


def test_few_rows_of_a_rare_level_are_integrated() -> None:
    """The log-likelihood is that of quadrature over each unit; the approximation is above it."""
    rng = np.random.default_rng(5)
    units = np.repeat(np.arange(300), 2)
    level = rng.normal(0, 3.0, 300)[units] - 4.5
    y = np.digitize(level + rng.logistic(size=600), [0, 2.0])
    frame = pd.DataFrame({"clinic": units // 100, "patient": units, "y": y})
    table = pb.table(frame, group=GROUP, kinds={"y": "ordinal"})
    fit = pb.fit_node(table, "y", [], pooling="complete")
    assert "integrated numerically" in fit.detail
    cuts = np.concatenate([[-np.inf], fit.thresholds, [np.inf]])

    def of_unit(own: np.ndarray) -> float:
        def density(w: float) -> float:
            p = expit(cuts[own + 1] - w) - expit(cuts[own] - w)
            return float(p.prod()) * norm.pdf(w, scale=fit.unit_sd[0])

        return quad(density, -60, 60, points=[0, 5], limit=400)[0]

    pairs, times = np.unique(np.sort(y.reshape(-1, 2), axis=1), axis=0, return_counts=True)
    exact = sum(n * math.log(of_unit(own)) for own, n in zip(pairs, times, strict=True))
    assert fit.loglik == pytest.approx(exact, abs=0.01)


# What a network answers


def of_levels(fit: pb.LocalFit, eta: float, sd: float) -> np.ndarray:
    """Probabilities of levels by integration over units, from x'b."""
    cuts = np.concatenate([[-np.inf], fit.thresholds, [np.inf]])
    above = [
        1.0 if cut == -np.inf else 0.0 if cut == np.inf else
        quad(lambda w, cut=cut: norm.pdf(w, scale=sd) * expit(eta + w - cut), -15, 15)[0]
        for cut in cuts
    ]  # fmt: skip
    return -np.diff(above)


def test_probabilities_are_averages_over_units() -> None:
    fit = net("complete").fits["state"]
    values, sets = {"x": np.array([-1.0, 0.5, 2.0]), "arm": np.zeros(3)}, np.array([0, 2, 4])
    found = fit.mean(values, sets)
    for i in range(3):
        expected = of_levels(fit, fit.fixed[0, 1] * values["x"][i], fit.unit_sd[0])
        np.testing.assert_allclose(found[i], expected, atol=1e-7)
    logs = np.column_stack([fit.log_density(np.full(3, k), values, sets) for k in np.arange(4.0)])
    np.testing.assert_allclose(np.exp(logs), found, atol=1e-9)
    asked = pd.DataFrame({"clinic": ["A", "C", "E"], "x": values["x"], "arm": "new"})
    told = net("complete").predict(asked, "state", plugin=True)[STATES]
    moved = fit.mean(values | {"arm": np.ones(3)}, sets)
    np.testing.assert_allclose(told, moved if fit.given[1][1] == "new" else found, atol=1e-8)
    many = {"x": np.full(40_000, 0.5), "arm": np.zeros(40_000)}
    drawn = fit.draw(many, np.zeros(40_000, dtype=int), np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(drawn.astype(int)) / 40_000, found[1], atol=0.01)


def given_rows(fit: pb.LocalFit, j: int, before: pd.DataFrame, x: float) -> list[float]:
    """Probabilities of levels of a row of a unit, integrated over its intercept given rows."""
    base, slope, *more = fit.coef[j, 0]
    odds, codes = base + np.array([0.0, *more]), before["state"].map(STATES.index).to_numpy()

    def levels(w: float, at: np.ndarray) -> np.ndarray:
        above = expit(odds + slope * at[:, None] + w)
        return -np.diff(np.pad(above, ((0, 0), (1, 1)), constant_values=(1.0, 0.0)))

    def seen(w: float) -> float:
        p = levels(w, before["x"].to_numpy())[np.arange(len(codes)), codes]
        return float(p.prod()) * norm.pdf(w, scale=fit.unit_sd[j])

    def both(w: float, k: int) -> float:
        return levels(w, np.array([x]))[0, k] * seen(w)

    return [quad(both, -8, 8, args=(k,))[0] / quad(seen, -8, 8)[0] for k in range(4)]


def test_known_units_are_averaged_over_what_their_rows_leave() -> None:
    """Estimates for certain, the intercept of the patient integrated over."""
    rows = visits()[[*GROUP, "x", "state"]]
    last = ~rows["patient"].duplicated(keep="last")
    earlier, asked = rows[~last], rows[last]
    one = pb.fit("x -> state", rows, group=GROUP, kinds=KINDS)
    found = one.predict(asked.drop(columns="state"), "state", history=earlier, plugin=True)
    unknown = one.predict(asked.drop(columns="state"), "state", plugin=True)
    for k in range(12):
        row = asked.iloc[k]
        before = earlier[earlier["patient"] == row["patient"]]
        want = given_rows(one.fits["state"], one.levels.index(row["clinic"]), before, row["x"])
        # What rows leave of an intercept is taken for normal, with its mean and variance.
        np.testing.assert_allclose(found[STATES].iloc[k].astype(float), want, atol=0.005)
    assert (found[STATES] - unknown[STATES]).abs().to_numpy().max() > 0.1


def test_a_new_clinic_is_weighed_with_its_units() -> None:
    one = pb.fit("x -> state", visits(), group=GROUP, kinds=KINDS)
    new = visits(7).query("clinic == 'A'").assign(clinic="new")
    fit, old = one.adapt(new, "new").fits["state"], one.fits["state"]
    assert fit.unit_sd.shape == (6,)
    x, y = new["x"].to_numpy(), new["state"].map(STATES.index).to_numpy()
    own = np.unique(new["patient"], return_inverse=True)[1]
    root = np.linalg.cholesky(old.random_cov[:2, :2] + 1e-12 * np.eye(2))
    steps = np.array([0.0, *old.fixed[0, 2:]])

    def minus(u: np.ndarray) -> float:
        base, slope = old.fixed[0, :2] + root @ u[:2]
        odds = (base + slope * x + old.unit_sd[0] * u[2 + own])[:, None] + steps
        above = expit(np.pad(odds, ((0, 0), (1, 1)), constant_values=(np.inf, -np.inf)))
        p = -np.diff(above)[np.arange(len(y)), y]
        return float(u @ u / 2 - np.log(p).sum())

    u = minimize(minus, np.zeros(3 + own.max())).x
    np.testing.assert_allclose(fit.coef[-1, 0, :2], old.fixed[0, :2] + root @ u[:2], atol=1e-3)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_all_answers_are_finite(pooling: str, tmp_path: Path) -> None:
    one = net(pooling)
    fit = one.fits["state"]
    assert (fit.unit_sd == fit.unit_sd[0]).all() == (pooling != "none")
    rng = np.random.default_rng(0)
    for other in (
        fit, fit.in_population(), fit.taken([2, 0, 2], ("a", "b", "c")),
        fit.data_set_draws(3, rng), fit.new_data_sets(6, 2, rng),
    ):  # fmt: skip
        F = len(other.levels)
        values = {name: np.ones(F) for name in ("x", "arm")}
        p = other.mean(values, np.arange(F))
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert np.isfinite(other.log_density(np.zeros(F), values, np.arange(F))).all()
    assert np.isfinite(one.effects()["effect"]).all()
    assert len(one.sample(50, seed=1))
    path = tmp_path / "net.json"
    one.save(path)
    back = pb.load(path)
    assert str(back) == str(one)
    np.testing.assert_array_equal(back.fits["state"].unit_sd, fit.unit_sd)
    rows = visits().head(8)
    np.testing.assert_array_equal(back.loglik(rows, rows=True), one.loglik(rows, rows=True))


def test_it_is_told_of(tmp_path: Path) -> None:
    text = str(net().fits["state"])
    assert "SD between patients" in text
    assert "by the Laplace approximation" in text
    assert "clmm(state ~ x + arm + (1 + x + arm | clinic) + (1 | clinic:patient)" in net().to_psem()
    assert "ordinal::clmm(state ~ x + arm + (1 | patient)" in net("none").to_psem()
    net().report(tmp_path / "page.html", data=pb.table(visits(), group=GROUP, kinds=KINDS))
    assert "cannot compute" not in (tmp_path / "page.html").read_text()


def test_tests_of_effects_know_the_units() -> None:
    """An arm that describes patients, proportional odds: statistics have the chi-square's mean."""
    equal, odds = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        patient = np.repeat(np.arange(120), 4)
        arm = rng.integers(0, 2, 120)[patient] + 0.5 * rng.normal(size=480)
        noise = rng.normal(0, 1.5, 120)[patient]
        eta = 0.5 * arm + noise + rng.normal(0, 0.4, 4)[patient // 30]
        y = np.digitize(eta + rng.logistic(size=480), [-1, 0.4, 1.5])
        frame = pd.DataFrame({"clinic": patient // 30, "patient": patient, "arm": arm, "y": y})
        one = pb.fit("arm -> y", frame, group=GROUP, kinds={"y": "ordinal"})
        equal.append(one.fits["y"].equality()["arm"].statistic)
        odds.append(pb.proportional_odds(one, frame).tests["statistic"].iloc[0])
    assert np.mean(equal) == pytest.approx(3, abs=3 * np.sqrt(6 / 40))
    assert np.mean(odds) == pytest.approx(2, abs=3 * np.sqrt(4 / 40))


def test_what_is_explained_adds_up() -> None:
    """Nakagawa and Schielzeth's, from the rows: variances of log odds of a higher level."""
    table = pb.table(visits(), group=GROUP, kinds=KINDS)
    fit = pb.fit_node(table, "state", ["x", "arm"])
    X = np.column_stack([visits()["x"], visits()["arm"] == fit.given[1][1]]).astype(float)
    fixed = (X @ fit.fixed[0, 1:3]).var(ddof=1)
    Z = np.column_stack([np.ones(len(X)), X])
    random = np.einsum("na,ab,nb->n", Z, fit.random_cov[:3, :3], Z).mean()
    units, whole = fit.unit_sd[0] ** 2, fixed + random + fit.unit_sd[0] ** 2 + math.pi**2 / 3
    found = fit.variances(table)
    assert found.marginal == pytest.approx(fixed / whole)
    assert found.conditional == pytest.approx((fixed + random + units) / whole)
    row = net().variances().set_index("node").loc["state"]
    assert row["icc_unit"] == pytest.approx((random + units) / (whole - fixed))


def test_odds_ratios_at_thresholds_know_the_units() -> None:
    """They are those of logistic regressions with an intercept for each unit."""
    found = pb.proportional_odds(net(), visits())
    again = pb.proportional_odds(net(), pb.table(visits(), group=GROUP, kinds=KINDS))
    pd.testing.assert_frame_equal(found.tests, again.tests, rtol=1e-6)
    above = visits().assign(state=visits()["state"].isin(["better", "well"]))
    logit = pb.fit("x -> state; arm -> state", above.drop(columns="cost"), group=GROUP)
    expected = logit.effects()[["effect", "lower", "upper"]]
    own = found.ratios.query("threshold == 'same|better'")[["effect", "lower", "upper"]]
    np.testing.assert_allclose(own, expected, rtol=1e-6)


@pytest.mark.parametrize("score", ["bic", "bic-h", "bic-w"])
def test_learning_finds_the_graph(score: str) -> None:
    found = pb.learn(visits(), group=GROUP, kinds=KINDS, score=score)
    assert set(found.dag.skeleton()) == set(net().dag.skeleton())


def test_levels_that_go_together_are_no_arc() -> None:
    """Clinics that are good at everything: within clinics columns are independent."""
    rng = np.random.default_rng(3)
    patient = np.repeat(np.arange(180), 4)
    clinic = patient // 15
    frame = pd.DataFrame({"clinic": clinic, "patient": patient})
    level = rng.normal(0, 1.5, 12)[clinic]
    for name in "xyz":
        frame[name] = level + rng.normal(0, 0.8, 180)[patient] + rng.logistic(size=720)
    for name in "yz":
        frame[name] = np.digitize(frame[name], [-1, 0, 1])
    found = pb.learn(frame, group=GROUP, kinds=dict.fromkeys("yz", "ordinal"))
    assert found.dag.arcs == ()


def test_the_bootstrap_draws_units() -> None:
    some = visits()[[*GROUP, "x", "state"]]
    found = pb.bootstrap(some, replicates=4, group=GROUP, kinds=KINDS, seed=1)
    assert found.pairs()[0].strength == 1
