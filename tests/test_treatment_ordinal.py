"""Effects on ordered levels of a treatment that was drawn by lot."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

import poolbn as pb
from poolbn.assess.treatment import Rows, mean_effect, p_values, score_of, totals

TREATMENT = Path(__file__).parent / "reference" / "treatment"
CASES = json.loads((TREATMENT / "ordinal.json").read_text())
OUTCOMES = ["dead", "dependent", "not recovered", "recovered"]


def drawn(seed: int, F: int = 6, n: int = 20, effect: float = 0.7, *, arms: bool = True) -> Rows:
    """Four levels in F data sets of n rows."""
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(F), n)
    x = (rng.random(F * n) < 0.5).astype(float) if arms else rng.normal(size=F * n)
    eta = rng.normal(0, 0.7, F)[site] + effect * x
    y = np.digitize(eta + rng.logistic(size=F * n), [-1.0, 0.3, 1.5]).astype(float)
    return Rows(x, y, site, F)


def frame_of(rows: Rows, levels: str = "ABCD") -> pd.DataFrame:
    arm = np.where(rows.x > 0, "new", "control")
    own = np.array(list(levels))[rows.y.astype(int)]
    return pd.DataFrame({"site": rows.data_set, "arm": arm, "grade": own})


def test_one_data_set_is_wilcoxon_s_test() -> None:
    for seed in range(20):
        rows = drawn(seed, F=1, n=30)
        one, other = (rows.y[rows.x == arm] for arm in (1, 0))
        test = stats.mannwhitneyu(one, other, use_continuity=False, method="asymptotic")
        found = mean_effect(rows, "ordinal", 0.95)
        assert found.p_value == pytest.approx(test.pvalue, rel=1e-9)
        assert (found.value > 0) == (test.statistic > len(one) * len(other) / 2)


@pytest.mark.parametrize("arms", [True, False])
def test_without_an_effect_variances_are_those_of_permutations(arms: bool) -> None:
    """All orders of six rows of one data set, the scores mid-ranks of all rows."""
    rows = drawn(3, F=3, n=6, arms=arms)
    score = stats.rankdata(rows.y) / len(rows.y) * 2
    at_none = score_of(rows, "ordinal")(0.0)
    for j in range(3):
        own = rows.data_set == j
        x, S = rows.x[own], score[own]
        values = [(np.array(order) * S).sum() for order in itertools.permutations(x)]
        assert at_none.u[j] == pytest.approx((x * S).sum() - np.mean(values), abs=1e-12)
        assert at_none.q[j] == pytest.approx(np.var(values), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("arms", [True, False])
def test_two_levels_are_a_discrete_outcome(arms: bool) -> None:
    rows = drawn(4, arms=arms)
    rows = rows._replace(y=(rows.y > 1) * 1.0)
    one, other = (mean_effect(rows, kind, 0.9) for kind in ("ordinal", "discrete"))
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("arms", [True, False])
def test_levels_in_reverse_have_the_inverse_odds_ratio(arms: bool) -> None:
    rows = drawn(5, arms=arms)
    one, other = mean_effect(rows, "ordinal", 0.95), mean_effect(
        rows._replace(y=3 - rows.y), "ordinal", 0.95
    )  # fmt: skip
    assert other.value == pytest.approx(-one.value, abs=1e-9)
    assert (other.lower, other.upper) == pytest.approx((-one.upper, -one.lower), abs=1e-9)
    assert other.p_value == pytest.approx(one.p_value, rel=1e-9)


def test_a_score_is_zero_on_average_at_the_truth() -> None:
    """In data sets of six rows whose thresholds are their own; and its variance is right."""
    rng = np.random.default_rng(6)
    F, n, effect = 4000, 6, 0.9
    x = np.tile(np.arange(n) % 2, F).astype(float)
    site = np.repeat(np.arange(F), n)
    cuts = rng.normal(-1, 1, F)[:, None] + np.cumsum(rng.gamma(2, 0.8, (F, 2)), axis=1)
    at = effect * x + rng.logistic(size=F * n)
    y = (at[:, None] > cuts[site]).sum(axis=1).astype(float)
    of = score_of(Rows(x, y, site, F), "ordinal")(effect)
    assert of.u.mean() / (of.u.std() / math.sqrt(F)) == pytest.approx(0, abs=3)
    assert of.q.mean() == pytest.approx(of.u.var(), rel=0.06)
    u, q, _ = totals(of)
    assert p_values(of) == pytest.approx(2 * stats.norm.sf(abs(u) / math.sqrt(q)))


def test_the_stroke_trial_is_that_of_clm_with_countries() -> None:
    cells = pd.read_csv(TREATMENT / "outcomes.csv")
    rows = cells.loc[cells.index.repeat(cells["patients"])].drop(columns="patients")
    found = pb.treatment_effects(
        rows, treatment="aspirin", group="country", kinds={"outcome": OUTCOMES}
    ).iloc[0]
    case = CASES["stroke"]
    assert found["rows"] == case["rows"]
    assert (found["scale"], found["outcome"], found["level"]) == ("odds ratio", "", "yes")
    logs = np.log(found[["mean", "mean_lower", "mean_upper"]].astype(float))
    z = 1.959963984540054 * case["se"]
    expected = case["mean"] + np.array([0.0, -z, z])
    np.testing.assert_allclose(logs, expected, atol=0.06 * case["se"])
    assert found["p_value"] == pytest.approx(case["p_value"], abs=0.003)
    assert found["between_sd"] > 0


@pytest.mark.parametrize("case", CASES["units"], ids=lambda case: Path(case["data"]).stem)
def test_with_units_it_is_that_of_clmm(case: dict) -> None:
    rows = pd.read_csv(TREATMENT / case["data"])
    rows["arm"] = np.where(rows["x1"] > 0, "new", "control")
    found = pb.treatment_effects(
        rows[["F", "U", "arm", "y"]], treatment="arm", group=["F", "U"], kinds={"y": "ordinal"}
    ).iloc[0]
    assert math.log(found["mean"]) == pytest.approx(case["mean"], abs=2e-3 * case["se"])
    lower, upper = (math.log(found[end]) for end in ("mean_lower", "mean_upper"))
    assert (upper - lower) / 4 == pytest.approx(case["se"], rel=0.35)  # robust, by units


def test_the_effect_is_that_of_a_fit() -> None:
    frame = frame_of(drawn(8, F=8, n=60))
    kinds = {"grade": list("ABCD")}
    found = pb.treatment_effects(frame, treatment="arm", group="site", kinds=kinds).iloc[0]
    fit = pb.fit("arm -> grade", frame, group="site", kinds=kinds).effects().iloc[0]
    for name in ("effect", "se", "lower", "upper", "between_sd", "scale", "outcome", 3):
        assert found[name] == fit[name]
    assert found["mean_lower"] < found["mean"] < found["mean_upper"]


def test_what_rows_do_not_give() -> None:
    rows = drawn(9, F=3, n=8)
    nothing = mean_effect(rows._replace(y=np.zeros(24)), "ordinal", 0.95)
    assert np.isnan(nothing).all()
    above = rows._replace(y=np.where(rows.x > 0, 3.0, rows.y.clip(max=2)))
    found = mean_effect(above, "ordinal", 0.95)
    assert (found.value, found.upper) == (math.inf, math.inf)
    assert 0 < found.lower < math.inf
    wide = rows._replace(y=rows.y * 5)  # codes of levels that no row has in between
    assert mean_effect(wide, "ordinal", 0.95) == mean_effect(rows, "ordinal", 0.95)
    assert expit(found.lower) > 0.5
