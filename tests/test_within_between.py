"""Effects within data sets and between their means: regressions by numpy, scipy; size and power."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, linregress, t, ttest_1samp

import poolbn as pb


def simulated(
    seed: int, F: int = 8, rows: int = 20, contextual: float = 0.0, slope_sd: float = 0.0
) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(F), rows)
    center = rng.normal(size=F)
    x = center[site] + rng.normal(size=F * rows)
    slope = 1 + slope_sd * rng.normal(size=F)
    level = contextual * center + 0.5 * rng.normal(size=F)
    y = level[site] + slope[site] * x + rng.normal(size=F * rows)
    return pd.DataFrame({"x": x, "y": y, "site": site})


def learned(frame: pd.DataFrame, pooling: object = "partial") -> pb.Network:
    arcs = [(name, "y") for name in frame.columns if name not in ("y", "site")]
    return pb.learn(
        frame, group="site", pooling=pooling, start=arcs, search=pb.HillClimb(max_iter=0)
    )


def test_alike_data_sets_give_plain_regressions() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=25)
    x -= x.mean()
    site = np.repeat(np.arange(6), 25)
    center = rng.normal(size=6)
    y = np.tile(x, 6) * (1 + 0.5 * rng.normal(size=6)[site]) + 3 * rng.normal(size=6)[site]
    frame = pd.DataFrame({"x": np.tile(x, 6) + center[site], "y": y, "site": site})
    frame["y"] += rng.normal(size=150)
    row = learned(frame).within_between().iloc[0]
    own = [linregress(rows["x"], rows["y"]).slope for _, rows in frame.groupby("site")]
    assert row["within"] == pytest.approx(np.mean(own), rel=1e-8)
    interval = ttest_1samp(own, 0).confidence_interval()
    assert (row["within_lower"], row["within_upper"]) == pytest.approx(tuple(interval), rel=1e-6)
    means = frame.groupby("site").mean()
    between = linregress(means["x"], means["y"])
    # Weights differ a little, by the variances of slopes and residuals that data sets show.
    assert row["between"] == pytest.approx(between.slope, abs=between.stderr / 2)
    assert row["difference"] == pytest.approx(row["between"] - row["within"])


@pytest.mark.parametrize(("F", "slope_sd"), [(6, 0.0), (10, 0.15), (20, 0.15)])
def test_equal_effects_are_rejected_as_often_as_they_should_be(F: int, slope_sd: float) -> None:
    net, tables = learned(simulated(0, F)), 150
    p = np.array(
        [
            net.within_between(pb.stats(simulated(seed, F, 20, 0.0, slope_sd), group="site"))[
                "p_value"
            ][0]
            for seed in range(1, tables + 1)
        ]
    )
    low, high = binom.ppf([1e-3, 1 - 1e-3], tables, 0.05)
    assert low <= (p < 0.05).sum() <= high


def test_a_contextual_effect_is_found() -> None:
    row = learned(simulated(3, 20, 30, contextual=2.0)).within_between().iloc[0]
    assert row["within_lower"] < 1 < row["within_upper"]
    assert row["between_lower"] < 3 < row["between_upper"]
    assert row["p_value"] < 1e-4


@pytest.mark.parametrize("pooling", ["complete", "none", "partial", pb.Partial(residuals="pooled")])
def test_units_and_orders_do_not_matter(pooling: object) -> None:
    frame = simulated(5, 8, 20, 0.5, 0.3)
    frame["z"] = np.random.default_rng(1).normal(size=len(frame)) + frame["x"]
    one = learned(frame, pooling).within_between().set_index("parent")
    other = frame.assign(x=frame["x"] * 1e3 + 50, y=frame["y"] / 7 - 3)
    other = other[["z", "site", "y", "x"]].iloc[::-1]
    two = learned(other, pooling).within_between().set_index("parent")
    scaled = ["within", "within_se", "between", "between_se", "difference", "se"]
    scale = pd.Series({"x": 1 / 7e3, "z": 1 / 7})
    for parent in ("x", "z"):
        mine, yours = one.loc[parent], two.loc[parent]
        np.testing.assert_allclose(
            yours[scaled].astype(float), scale[parent] * mine[scaled].astype(float), rtol=1e-3
        )
        np.testing.assert_allclose(yours["p_value"], mine["p_value"], rtol=1e-2)


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_what_cannot_be_said_is_nan() -> None:
    few = learned(simulated(1, F=2)).within_between().iloc[0]
    assert np.isfinite(few["within"])
    assert np.isnan([few["between"], few["difference"], few["p_value"], few["p_adjusted"]]).all()
    frame = simulated(1, F=5).assign(x=lambda f: f["site"] * 1.0 % 3)  # constant in each data set
    level = learned(frame, "complete").within_between().iloc[0]
    assert np.isnan(level["within"])
    assert np.isfinite(level["between"])
    exact = simulated(1, F=5).assign(y=lambda f: 2 * f["x"])
    assert learned(exact, "complete").within_between()["p_value"].isna().all()


NUMBERS = ["within", "within_se", "between", "between_se", "difference", "se", "df", "p_value"]


def panel(seed: int = 0, states: int = 48, years: int = 7, slope_sd: float = 0.0) -> pd.DataFrame:
    """As fatal accidents by beer tax, which hardly changes in most states: AER's Fatalities."""
    rng = np.random.default_rng(seed)
    tax = np.abs(0.5 + 0.45 * rng.normal(size=(states, 1)))
    change = 0.03 * np.exp(rng.normal(size=(states, 1))) * rng.normal(size=(states, years))
    slope = -0.66 + slope_sd * rng.normal(size=(states, 1))
    level = 2 + 0.3 * tax + 0.5 * rng.normal(size=(states, 1))
    year = np.broadcast_to(1982.0 + np.arange(years), (states, years))
    y = level + slope * (tax + change) + 0.02 * (year - 1985) + 0.17 * rng.normal(size=year.shape)
    site = np.repeat([f"s{k}" for k in range(states)], years)
    columns = {"site": site, "x": (tax + change).ravel(), "year": year.ravel(), "y": y.ravel()}
    return pd.DataFrame(columns)


def least_squares(Z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and standard errors."""
    inverse = np.linalg.inv(Z.T @ Z)
    coef = inverse @ Z.T @ y
    left = y - Z @ coef
    return coef, np.sqrt(np.diagonal(inverse) * (left @ left) / (len(y) - Z.shape[1]))


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
@pytest.mark.parametrize("pooling", ["complete", pb.Partial(random="intercept")])
@pytest.mark.parametrize("parents", [["x"], ["x", "year"]])
def test_a_common_slope_is_that_of_least_squares_with_levels(
    pooling: object, parents: list[str]
) -> None:
    """R's lm(y ~ x + year + factor(site)), and lm(y ~ x) of the means."""
    frame = panel()[["site", *parents, "y"]]
    found = learned(frame, pooling).within_between().set_index("parent")
    dummies = pd.get_dummies(frame["site"]).to_numpy(float)
    Z = np.column_stack([frame[parents], dummies])
    coef, se = least_squares(Z, frame["y"].to_numpy())
    assert found["within"].tolist() == pytest.approx(coef[: len(parents)].tolist(), rel=1e-6)
    assert found["within_se"].tolist() == pytest.approx(se[: len(parents)].tolist(), rel=1e-6)
    half = t.ppf(0.975, len(frame) - Z.shape[1]) * se[0]
    assert found.loc["x", "within_upper"] == pytest.approx(coef[0] + half)
    means = frame.groupby("site").mean()
    between = linregress(means["x"], means["y"])
    assert found.loc["x", "between"] == pytest.approx(between.slope)
    assert found.loc["x", "between_se"] == pytest.approx(between.stderr)
    assert np.isfinite(found.loc["x", NUMBERS].astype(float)).all()
    if "year" in parents:  # all states have the same years
        none = ["between", "between_se", "difference", "p_value"]
        assert np.isnan(found.loc["year", none].astype(float)).all()


@pytest.mark.parametrize("pooling", ["partial", pb.Partial(residuals="pooled")])
@pytest.mark.parametrize("slope_sd", [0.0, 3.0])
def test_the_error_of_a_mean_slope_is_that_of_its_estimates(
    pooling: object, slope_sd: float
) -> None:
    """Where few states tell most, standard errors are as large as estimates vary."""
    rows = [
        learned(panel(seed, slope_sd=slope_sd).drop(columns="year"), pooling)
        .within_between()
        .iloc[0]
        for seed in range(60)
    ]
    within = np.array([row["within"] for row in rows])
    se = np.array([row["within_se"] for row in rows])
    assert 0.6 < within.std() / np.median(se) < 1.5
    covered = [row["within_lower"] < -0.66 < row["within_upper"] for row in rows]
    assert sum(covered) >= binom.ppf(1e-3, len(rows), 0.95)


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_columns_without_a_slope_of_their_own_leave_those_of_others() -> None:
    """A column that is constant inside all data sets has no slope within, and others theirs."""
    frame = simulated(7, 12, 10)
    alone = learned(frame, "complete").within_between().iloc[0]
    rng = np.random.default_rng(0)
    level = frame.assign(size=rng.normal(size=12)[frame["site"]])
    found = learned(level, "complete").within_between().set_index("parent")
    assert np.isnan(found.loc["size", ["within", "within_se", "difference"]].astype(float)).all()
    assert np.isfinite(found.loc["size", ["between", "between_se"]].astype(float)).all()
    mine = ["within", "within_se", "within_lower"]
    assert found.loc["x", mine].tolist() == pytest.approx(alone[mine].tolist())
    assert np.isfinite(found.loc["x", NUMBERS].astype(float)).all()


def test_it_needs_statistics() -> None:
    net = learned(simulated(2))
    again = pd.DataFrame(net.within_between(net.stats))
    pd.testing.assert_frame_equal(again, net.within_between())
    narrow, wide = (net.within_between(interval=level).iloc[0] for level in (0.5, 0.99))
    assert wide["within_lower"] < narrow["within_lower"]


# Units inside data sets


def pupils(
    seed: int, F: int = 5, units: int = 8, rows: int | None = 4, contextual: float = 0.0
) -> pd.DataFrame:
    """Pupils in schools, tested several times; x between pupils has another effect."""
    rng = np.random.default_rng(seed)
    size = np.full(F * units, rows) if rows else rng.integers(1, 7, F * units)
    pupil = np.repeat(np.arange(F * units), size)
    school, n = pupil // units, len(pupil)
    own = rng.normal(size=F * units) + rng.normal(size=F)[np.arange(F * units) // units]
    x = own[pupil] + rng.normal(size=n)
    y = x + contextual * own[pupil] + rng.normal(size=F * units)[pupil] + rng.normal(size=n)
    y += rng.normal(size=F)[school]
    sex = rng.integers(0, 2, F * units)[pupil] + 0.5 * own[pupil]
    return pd.DataFrame({"school": school, "pupil": pupil, "x": x, "sex": sex, "y": y})


def of_pupils(frame: pd.DataFrame, pooling: object = "complete") -> pd.DataFrame:
    net = pb.fit([("x", "y"), ("sex", "y")], frame, group=["school", "pupil"], pooling=pooling)
    found = net.within_between()
    assert found["groups"].tolist() == ["pupil", "pupil", "school", "school"]
    return found[found["groups"] == "pupil"].set_index("parent")


@pytest.mark.parametrize("pooling", ["complete", pb.Partial(random="intercept")])
@pytest.mark.parametrize("rows", [4, None])
def test_effects_within_units_and_between_them_are_those_of_mundlaks_regression(
    pooling: object, rows: int | None
) -> None:
    """Least squares with a level for each pupil; and of pupils' means, with levels of schools."""
    frame = pupils(1, rows=rows, contextual=1.0)
    found = of_pupils(frame, pooling)
    levels = pd.get_dummies(frame["pupil"]).to_numpy(float)
    Z = np.column_stack([frame["x"], levels])
    coef, se = least_squares(Z, frame["y"].to_numpy())
    assert found.loc["x", ["within", "within_se"]].tolist() == pytest.approx([coef[0], se[0]])
    assert np.isnan(found.loc["sex", ["within", "difference"]].astype(float)).all()
    inner, df = (coef[0], se[0]), len(frame) - Z.shape[1]
    half = t.ppf(0.975, df) * se[0]
    assert found.loc["x", "within_upper"] == pytest.approx(coef[0] + half)

    net = pb.fit([("x", "y"), ("sex", "y")], frame, group=["school", "pupil"], pooling=pooling)
    share = net["y"].unit_share[0]
    means = frame.groupby("pupil").mean()
    m = frame.groupby("pupil").size().to_numpy()
    weight = np.sqrt(m / (1 + m * share / (1 - share)))[:, None]
    schools = pd.get_dummies(means["school"]).to_numpy(float)
    Z = weight * np.column_stack([means[["x", "sex"]], schools])
    coef, se = least_squares(Z, weight[:, 0] * means["y"].to_numpy())
    assert found["between"].tolist() == pytest.approx(coef[:2].tolist(), rel=1e-6)
    assert found["between_se"].tolist() == pytest.approx(se[:2].tolist(), rel=1e-6)
    half = t.ppf(0.975, len(Z) - Z.shape[1]) * se[0]
    assert found.loc["x", "between_lower"] == pytest.approx(coef[0] - half)
    both = inner[1] ** 2 + se[0] ** 2
    df = both**2 / (inner[1] ** 4 / df + se[0] ** 4 / (len(Z) - Z.shape[1]))
    size = abs(coef[0] - inner[0]) / np.sqrt(both)
    assert found.loc["x", "p_value"] == pytest.approx(2 * t.sf(size, df), rel=1e-5)


def test_equal_effects_within_units_and_between_them_are_rarely_told_apart() -> None:
    """Size of the test, with slopes that could vary; 100 tables."""
    p = np.array(
        [of_pupils(pupils(seed, rows=None), "partial")["p_value"]["x"] for seed in range(100)]
    )
    low, high = binom.ppf([1e-3, 1 - 1e-3], 100, 0.05)
    assert low <= (p < 0.05).sum() <= high


def test_reports_have_both_levels(tmp_path: Path) -> None:
    frame = pupils(2)
    net = pb.learn(frame, group=["school", "pupil"], constraints={"required": [("x", "y")]})
    net.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "Within pupils and between them" in text
    assert "Within schools and between them" in text
