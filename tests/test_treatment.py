"""Effects of a treatment that was drawn by lot."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import brentq, minimize_scalar

import poolbn as pb
from poolbn.assess.treatment import Rows, Scores, _lines, mean_effect, p_values, score_of
from poolbn.assess.unitmeans import UnitRows, slopes

TREATMENT = Path(__file__).parent / "reference" / "treatment"
MEANS = json.loads((TREATMENT / "means.json").read_text())
STROKE = json.loads((TREATMENT / "stroke.json").read_text())


@pytest.fixture(scope="module")
def trial() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    n = 240
    site = np.repeat(["a", "b", "c"], n // 3)
    arm = np.where(rng.random(n) < 0.5, "treated", "control")
    treated = arm == "treated"
    y = rng.normal(size=n) + 0.6 * treated
    event = np.where(rng.random(n) < np.where(treated, 0.5, 0.3), "yes", "no")
    visits = rng.poisson(np.where(treated, 3.0, 2.0))
    frame = pd.DataFrame({"site": site, "arm": arm, "y": y, "event": event, "visits": visits})
    frame.loc[::7, "y"] = np.nan
    return frame


def effects(trial: pd.DataFrame, **options: object) -> pd.DataFrame:
    made = pb.treatment_effects(
        trial, treatment="arm", group="site", kinds={"visits": "count"}, **options
    )
    return made.set_index("child")


def test_complete_pooling_is_the_t_test_and_the_classical_ratios(trial: pd.DataFrame) -> None:
    found = effects(trial, pooling=pb.Complete("unbiased", discrete="logit"))
    treated = trial["arm"] == "treated"
    one, other = trial.loc[treated, "y"].dropna(), trial.loc[~treated, "y"].dropna()
    test = stats.ttest_ind(one, other)
    y = found.loc["y"]
    assert y["effect"] == pytest.approx(one.mean() - other.mean())
    assert 2 * stats.t.sf(abs(y["effect"] / y["se"]), y["df"]) == pytest.approx(test.pvalue)
    ends = test.confidence_interval(0.95)
    assert (y["lower"], y["upper"]) == pytest.approx((ends.low, ends.high), rel=1e-8)
    assert y["rows"] == trial["y"].notna().sum()

    cells = pd.crosstab(trial["arm"], trial["event"]).to_numpy()
    event = found.loc["event"]
    ratio = cells[0, 0] * cells[1, 1] / (cells[0, 1] * cells[1, 0])
    assert event["effect"] == pytest.approx(ratio, rel=1e-5)
    assert event["se"] == pytest.approx(math.sqrt((1 / cells).sum()), rel=1e-4)
    assert (event["scale"], event["outcome"], event["level"]) == ("odds ratio", "yes", "treated")

    sums = trial.groupby("arm")["visits"].agg(["sum", "mean"])
    visits = found.loc["visits"]
    assert visits["scale"] == "rate ratio"
    assert visits["effect"] == pytest.approx(sums["mean"]["treated"] / sums["mean"]["control"])
    assert visits["se"] == pytest.approx(math.sqrt((1 / sums["sum"]).sum()), rel=1e-4)


def test_the_mean_difference_is_that_of_least_squares_with_levels(trial: pd.DataFrame) -> None:
    """R's lm(y ~ factor(site) + arm); its error is that of means of rows in each site and arm."""
    found = effects(trial).loc["y"]
    rows = trial.dropna()
    X = np.column_stack([pd.get_dummies(rows["site"]), rows["arm"] == "treated"]).astype(float)
    mean = np.linalg.lstsq(X, rows["y"].to_numpy(), rcond=None)[0][-1]
    assert found["mean"] == pytest.approx(mean)
    weight, variance, df = [], [], []
    for _, part in rows.groupby("site"):
        one, other = (part.loc[part["arm"] == arm, "y"] for arm in ("treated", "control"))
        m, k = len(one), len(other)
        weight.append(m * k / (m + k))
        variance.append(one.var() / m + other.var() / k)
        # Of that variance, if those of the arms are equal.
        df.append((1 / m + 1 / k) ** 2 / (1 / m**2 / (m - 1) + 1 / k**2 / (k - 1)))
    share = np.array(weight) / sum(weight)
    part = share**2 * variance
    t = stats.t(1 / ((part / part.sum()) ** 2 / (np.array(df) + 1)).sum() - 1)
    half = t.ppf(0.975) * math.sqrt(part.sum())
    assert (found["mean_lower"], found["mean_upper"]) == pytest.approx((mean - half, mean + half))
    assert found["p_value"] == pytest.approx(2 * t.sf(abs(mean) / math.sqrt(part.sum())))


def expanded(cells: np.ndarray, columns: list[str]) -> pd.DataFrame:
    """A row for each count of a table; levels are positions."""
    at = np.indices(cells.shape).reshape(cells.ndim, -1)
    rows = np.repeat(at, cells.ravel(), axis=1)
    return pd.DataFrame(rows.T, columns=columns).map("l{}".format)


def test_the_mean_odds_ratio_is_that_of_mantelhaen_test() -> None:
    """R's UCBAdmissions: mantelhaen.test(t, correct = FALSE), and exact = TRUE for the estimate."""
    counts = [
        [[512, 89], [313, 19]], [[353, 17], [207, 8]], [[120, 202], [205, 391]],
        [[138, 131], [279, 244]], [[53, 94], [138, 299]], [[22, 24], [351, 317]],
    ]  # fmt: skip
    rows = expanded(np.array(counts), ["dept", "admit", "gender"])
    found = pb.treatment_effects(rows, treatment="gender", group="dept").iloc[0]
    assert found["p_value"] == pytest.approx(0.216923697056, rel=1e-9)
    assert found["mean"] == pytest.approx(0.905076193638, rel=1e-4)  # R solves to four digits
    # An interval whose probability is 1 - p ends at no effect.
    again = pb.treatment_effects(rows, treatment="gender", group="dept", interval=1 - 0.2169236)
    assert again["mean_upper"].iloc[0] == pytest.approx(1, abs=1e-6)


def test_the_mean_rate_ratio_is_that_of_poisson_regression_with_levels() -> None:
    """R's warpbreaks: glm(breaks ~ tension + wool, poisson), and with a number instead of wool."""
    breaks = [
        26, 30, 54, 25, 70, 52, 51, 26, 67, 18, 21, 29, 17, 12, 18, 35, 30, 36, 36, 21, 24, 18, 10,
        43, 28, 15, 26, 27, 14, 29, 19, 29, 31, 41, 20, 44, 42, 26, 19, 16, 39, 28, 21, 39, 29, 20,
        21, 24, 17, 13, 15, 15, 16, 28,
    ]  # fmt: skip
    rows = pd.DataFrame({"breaks": breaks, "wool": np.repeat(["A", "B"], 27)})
    rows["tension"] = np.tile(np.repeat(["L", "M", "H"], 9), 2)
    kinds: dict = {"breaks": "count"}
    wool = pb.treatment_effects(rows, treatment="wool", group="tension", kinds=kinds).iloc[0]
    assert wool["mean"] == pytest.approx(0.813842482092, rel=1e-9)
    rows["loom"], rows["dose"] = rows["tension"] + rows.pop("wool"), np.tile(np.arange(1.0, 10), 6)
    rows = rows.drop(columns="tension")
    dose = pb.treatment_effects(rows, treatment="dose", group="loom", kinds=kinds).iloc[0]
    assert math.log(dose["mean"]) == pytest.approx(0.0377708093557, rel=1e-8)


def test_the_mean_odds_ratio_of_a_number_is_near_the_conditional_one() -> None:
    """Conditional logistic regression, whose sums over all choices of events are done here."""
    rng = np.random.default_rng(8)
    dose = rng.normal(size=(12, 8))
    event = rng.random((12, 8)) < 1 / (1 + np.exp(-rng.normal(size=(12, 1)) - 0.6 * dose))
    chosen = [
        (d @ e, np.array([sum(c) for c in combinations(d, int(e.sum()))]))
        for d, e in zip(dose, event, strict=True)
    ]

    def score(beta: float) -> float:
        return sum(
            seen - np.average(sums, weights=np.exp(beta * (sums - sums.max())))
            for seen, sums in chosen
        )

    rows = pd.DataFrame({"site": np.repeat(np.arange(12), 8), "dose": dose.ravel()})
    rows["event"] = np.where(event.ravel(), "yes", "no")
    found = pb.treatment_effects(rows, treatment="dose", group="site", outcomes=["event"]).iloc[0]
    exact = brentq(score, -5, 5)
    assert math.log(found["mean"]) == pytest.approx(exact, rel=0.02)
    variance = sum(sums.var() for _, sums in chosen)
    z = score(0) / math.sqrt(variance)
    assert found["p_value"] == pytest.approx(2 * stats.norm.sf(abs(z)))


def drawn(
    seed: int, F: int, rows: int, kind: str, spread: float = 0.0, base: float = 1.0
) -> pd.DataFrame:
    """No effect; residual SDs up to exp(spread) times as large, levels that vary."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=(F, 1)) / 2
    if kind == "continuous":
        sd = np.exp(spread * np.linspace(-0.5, 0.5, F))[:, None]
        y = level + sd * rng.normal(size=(F, rows))
    elif kind == "count":
        y = rng.poisson(base * np.exp(level), size=(F, rows))
    else:
        y = np.where(rng.random((F, rows)) < base / (base + np.exp(-level)), "yes", "no")
    arm = np.where(np.arange(F * rows) % 2, "treated", "control")
    site = np.repeat([f"s{k}" for k in range(F)], rows)
    return pd.DataFrame({"site": site, "arm": arm, "y": y.ravel()})


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
@pytest.mark.parametrize(
    ("F", "rows", "kind", "spread"),
    [
        (10, 8, "continuous", 0.0),
        (3, 8, "continuous", 1.4),
        (10, 8, "count", 0.0),
        (10, 20, "discrete", 0.0),
    ],
)
def test_no_effect_is_rejected_as_often_as_it_should_be(
    F: int, rows: int, kind: str, spread: float
) -> None:
    """With weights from estimated variances it was in 21 and 10% of the continuous tables."""
    tables = 150
    p = np.array(
        [
            pb.treatment_effects(
                drawn(seed, F, rows, kind, spread),
                treatment="arm", group="site", kinds={"y": kind},
            )["p_value"][0]
            for seed in range(tables)
        ]
    )  # fmt: skip
    low, high = stats.binom.ppf([1e-3, 1 - 1e-3], tables, 0.05)
    assert low <= (p < 0.05).sum() <= high


@pytest.mark.parametrize("kind", ["continuous", "discrete", "count"])
@pytest.mark.parametrize("arms", [True, False])
def test_scores_reject_the_true_effect_as_often_as_they_should(kind: str, arms: bool) -> None:
    """4,000 tables at once, with six data sets of eight rows; so intervals cover as they should."""
    rng, tables, F, rows, effect = np.random.default_rng(3), 4000, 6, 8, 0.5
    shape = (tables, F, rows)
    x = (rng.random(shape) < 0.5).astype(float) if arms else rng.normal(size=shape)
    mean = effect * x + rng.normal(size=(tables, F, 1)) / 2
    if kind == "continuous":
        y = mean + np.linspace(0.5, 2, F)[:, None] * rng.normal(size=shape)
    elif kind == "count":
        y = rng.poisson(2 * np.exp(mean)).astype(float)
    else:
        y = (rng.random(shape) < 1 / (1 + np.exp(-mean))).astype(float)
    data_set = np.repeat(np.arange(tables * F), rows)
    flat = Rows(x.ravel(), y.ravel(), data_set, tables * F)
    found = score_of(flat, kind)(effect)
    p = p_values(Scores(*(part.reshape(tables, F) for part in found)))
    assert 0.035 <= (p < 0.05).mean() <= 0.065
    for table in range(20):
        own = Rows(x[table].ravel(), y[table].ravel(), data_set[: F * rows], F)
        mean_of = mean_effect(own, kind, 0.95)
        assert mean_of.lower <= mean_of.value <= mean_of.upper
        assert (mean_of.lower <= effect <= mean_of.upper) == (p[table] >= 0.05)


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_cells_without_events_leave_a_finite_mean() -> None:
    """Each data set has an empty cell, and none an odds ratio of its own."""
    cells = np.array([[[5, 5], [0, 4]], [[6, 3], [2, 0]], [[7, 3], [0, 2]]])
    rows = expanded(cells, ["site", "event", "arm"])
    found = pb.treatment_effects(rows, treatment="arm", group="site").iloc[0]
    assert np.isfinite(found[["mean", "mean_lower", "mean_upper", "p_value"]].astype(float)).all()
    assert found["mean_lower"] < found["mean"] < found["mean_upper"]
    # Events among the treated alone: the mean has no end above, but one below.
    rows = expanded(np.array([[[9, 5], [0, 4]], [[8, 5], [0, 3]]]), ["site", "event", "arm"])
    found = pb.treatment_effects(rows, treatment="arm", group="site").iloc[0]
    assert found["mean"] == found["mean_upper"] == math.inf
    assert found["mean_lower"] > 1
    assert found["p_value"] < 0.05


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_counts_that_are_0_in_one_arm_have_a_rate_ratio_of_at_least_so_much() -> None:
    """Residuals of an arm without events are 0, and yet its rate is not known to be 0."""
    rng = np.random.default_rng(0)
    arm = np.where(np.arange(120) % 2, "treated", "control")
    visits = np.where(arm == "treated", rng.poisson(0.5, 120), 0)
    rows = pd.DataFrame({"site": np.repeat(list("abc"), 40), "arm": arm, "visits": visits})
    found = pb.treatment_effects(
        rows, treatment="arm", group="site", kinds={"visits": "count"}
    ).iloc[0]
    assert found["mean"] == found["mean_upper"] == math.inf
    # Of all events none is a control's: of so many heads none is a tail.
    exact = stats.binomtest(int(visits.sum()), int(visits.sum())).proportion_ci().low
    assert found["mean_lower"] == pytest.approx(exact / (1 - exact), rel=0.5)
    assert found["p_value"] < 1e-4


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_a_mean_that_rows_do_not_give_is_nan() -> None:
    means = ["mean", "mean_lower", "mean_upper", "p_value"]
    apart = pd.DataFrame({"site": list("aaaabbbb"), "arm": list("ccccdddd"), "y": np.arange(8.0)})
    apart["event"] = list("yyyyynnn")
    found = pb.treatment_effects(apart, treatment="arm", group="site")
    assert found[means].isna().all(axis=None)
    pairs = pd.DataFrame({"site": list("aabb"), "arm": list("cdcd"), "y": [1.0, 3, 2, 5]})
    found = pb.treatment_effects(pairs, treatment="arm", group="site").iloc[0]
    assert found[means].isna().all()  # two rows leave nothing that tells an error


def test_it_is_the_fit_of_the_outcome_given_the_treatment_alone(trial: pd.DataFrame) -> None:
    found = effects(trial).loc["y"]
    table = pb.table(trial[["site", "arm", "y"]].dropna(), group="site")
    fit = pb.fit_node(table, "y", ["arm"])
    assert found["effect"] == fit.fixed[1]
    assert found[["a", "b", "c"]].tolist() == fit.coef[:, 1].tolist()


def test_rows_of_a_table_and_chosen_outcomes(trial: pd.DataFrame) -> None:
    whole = trial.dropna()
    each = effects(whole, outcomes=["event", "y"])
    assert list(each.index) == ["event", "y"]
    table = pb.table(whole, group="site", kinds={"visits": "count"})
    again = pb.treatment_effects(table, treatment="arm", outcomes=["event", "y"])
    pd.testing.assert_frame_equal(each.reset_index(), again[each.reset_index().columns])


def test_p_values_are_adjusted_for_their_number(trial: pd.DataFrame) -> None:
    found = effects(trial)
    assert found["p_adjusted"].to_numpy() == pytest.approx(
        stats.false_discovery_control(found["p_value"])
    )


def test_many_data_sets(trial: pd.DataFrame) -> None:
    """Pandas warns of tables that grow column by column, from a hundred on."""
    many = trial.assign(site=np.arange(len(trial)) % 110)
    found = pb.treatment_effects(many[["site", "arm", "y"]], treatment="arm", group="site")
    assert {"0", "109"} <= {str(name) for name in found.columns}


def test_levels_are_compared_with_the_first_in_the_rows_of_both() -> None:
    rng = np.random.default_rng(4)
    rows = pd.DataFrame({"site": rng.choice(list("pqr"), 240), "arm": rng.choice(list("abc"), 240)})
    rows["grade"], rows["y"] = rng.choice(list("uvw"), 240), rng.normal(size=240)
    found = pb.treatment_effects(rows, treatment="arm", group="site")
    means = ["mean", "mean_lower", "mean_upper", "p_value"]
    for _, row in found.iterrows():
        kept = rows["arm"].isin(["a", row["level"]])
        if row["outcome"]:
            kept &= rows["grade"].isin(["u", row["outcome"]])
        alone = pb.treatment_effects(
            rows[kept], treatment="arm", group="site", outcomes=[row["child"]]
        ).iloc[0]
        np.testing.assert_allclose(row[means].astype(float), alone[means].astype(float), rtol=1e-9)
    assert len(found) == 6


# Units inside data sets


def of_units(
    seed: int, F: int = 4, U: int = 6, effect: float = 0.7, noise: float = 1.0
) -> tuple[Rows, np.ndarray]:
    """Rows of F data sets, with units of 1 to 5 rows; drawn by unit in every other data set."""
    rng = np.random.default_rng(seed)
    unit = np.repeat(np.arange(F * U), rng.integers(1, 6, size=F * U))
    data_set, n = unit // U, len(unit)
    own = rng.random(F * U)[unit] < 0.5
    x = np.where(data_set % 2 == 0, own, rng.random(n) < 0.5).astype(float)
    level = rng.normal(size=F)[data_set] + rng.normal(size=F * U)[unit]
    return Rows(x, level + effect * x + noise * rng.normal(size=n), data_set, F), unit


def matrices(rows: Rows, unit: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariance of rows over that of residuals, levels of data sets, the cause."""
    V = np.eye(len(unit)) + t * (unit[:, None] == unit)
    return V, np.eye(rows.F)[rows.data_set], rows.x[:, None]


@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_with_units_the_mean_is_by_the_restricted_likelihood_of_dense_matrices(
    noise: float,
) -> None:
    rows, unit = of_units(3, noise=noise)

    def deviance(t: float) -> float:
        V, levels, x = matrices(rows, unit, t)
        X = np.hstack([levels, x])
        W = np.linalg.inv(V)
        H = X.T @ W @ X
        e = rows.y - X @ np.linalg.solve(H, X.T @ W @ rows.y)
        logs = np.linalg.slogdet(V)[1] + np.linalg.slogdet(H)[1]
        return logs + (len(unit) - X.shape[1]) * math.log(e @ W @ e)

    ends, exact = (0, 40 / noise**2), {"xatol": 1e-9}
    t = minimize_scalar(deviance, bounds=ends, method="bounded", options=exact).x
    V, levels, x = matrices(rows, unit, t)
    assert 0.1 < noise**2 * t < 10
    root = np.linalg.cholesky(np.linalg.inv(V)).T
    found = mean_effect(rows, "continuous", 0.95, unit)
    X, y = root @ np.hstack([levels, x]), root @ rows.y
    assert found.value == pytest.approx(np.linalg.lstsq(X, y, rcond=None)[0][-1], rel=1e-6)

    # Variance and degrees of freedom: units as clusters (CR2), in the whitened rows of a data set.
    q, df, S = np.zeros((3, rows.F))
    for j in range(rows.F):
        at = rows.data_set == j
        own = Rows(rows.x[at], rows.y[at], 0 * unit[at], 1)
        V, _, x = matrices(own, unit[at], t)
        value, vector = np.linalg.eigh(V)
        half = vector / np.sqrt(value) @ vector.T
        Z = half @ np.column_stack([np.ones(at.sum()), x])
        hat = Z @ np.linalg.inv(Z.T @ Z) @ Z.T
        e = half @ rows.y[at] - hat @ half @ rows.y[at]
        c = Z[:, 1] - Z[:, 0] * (Z[:, 0] @ Z[:, 1]) / (Z[:, 0] @ Z[:, 0])
        S[j] = c @ c
        forms = []
        for u in np.unique(unit[at]):
            g = unit[at] == u
            lost, turned = np.linalg.eigh(np.eye(g.sum()) - hat[np.ix_(g, g)])
            form = np.zeros(at.sum())
            form[g] = turned / np.sqrt(lost) @ turned.T @ c[g]
            forms.append(form)
        q[j] = sum((form @ e) ** 2 for form in forms)
        C = np.array(forms) @ (np.eye(at.sum()) - hat) @ np.array(forms).T
        df[j] = np.trace(C) ** 2 / np.sum(C**2)
    together = stats.t(1 / ((q / q.sum()) ** 2 / (df + 1)).sum() - 1)
    half_width = together.ppf(0.975) * math.sqrt(q.sum()) / S.sum()
    assert (found.lower, found.upper) == pytest.approx(
        (found.value - half_width, found.value + half_width), rel=1e-5
    )
    size = abs(found.value) * S.sum() / math.sqrt(q.sum())
    assert found.p_value == pytest.approx(2 * together.sf(size), rel=1e-4)


@pytest.mark.parametrize("case", MEANS["cases"], ids=lambda case: Path(case["data"]).stem)
def test_with_units_the_mean_is_that_of_lme4_with_levels(case: dict) -> None:
    """`reference/treatment/means.R`: lmer by REML and glmer, with a level for each data set."""
    rows = pd.read_csv(TREATMENT / case["data"])
    rows = rows[["F", "U", "y", case["cause"]]]
    kind = {"gaussian": "continuous", "poisson": "count", "binomial": "discrete"}[case["family"]]
    kinds = {"y": kind, case["cause"]: "continuous"}
    found = pb.treatment_effects(rows, treatment=case["cause"], group=["F", "U"], kinds=kinds)
    found = found.iloc[0]
    mean = found["mean"] if kind == "continuous" else math.log(found["mean"])
    assert mean == pytest.approx(case["mean"], rel=2e-4)
    assert found["mean_lower"] < found["mean"] < found["mean_upper"]


@pytest.mark.parametrize("case", STROKE["cases"], ids=lambda case: case["treatment"])
def test_the_stroke_trial_says_what_glmer_says(case: dict) -> None:
    """`reference/treatment/stroke.R`: hospitals in countries, as the page on nested rows has it."""
    rows = pd.read_csv(Path(__file__).parents[1] / "docs" / "examples" / "data" / "stroke.csv.gz")
    rows["heparin"] = np.where(rows["heparin"] == "none", "no", "yes")
    found = pb.treatment_effects(
        rows, treatment=case["treatment"], group=["country", "hospital"], outcomes=["dead_14_days"]
    ).iloc[0]
    assert math.log(found["mean"]) == pytest.approx(case["mean"], abs=2e-4)
    half = (math.log(found["mean_upper"]) - math.log(found["mean_lower"])) / 2
    assert half / stats.norm.ppf(0.975) == pytest.approx(case["mean_se"], rel=0.05)
    assert math.log(found["effect"]) == pytest.approx(case["effect"], abs=5e-4)


@pytest.mark.parametrize("kind", ["continuous", "discrete", "count"])
def test_units_of_one_row_change_nothing(kind: str) -> None:
    rows, unit = of_units(4)
    y = {"discrete": (rows.y > 0) * 1.0, "count": np.floor(np.exp(rows.y))}.get(kind, rows.y)
    rows = rows._replace(y=y)
    alone = mean_effect(rows, kind, 0.95, np.arange(len(unit)))
    assert alone == pytest.approx(mean_effect(rows, kind, 0.95))
    by_unit = rows.data_set % 2 == 0  # where the cause has one value in each unit
    once = [np.flatnonzero(unit == u)[0] for u in np.unique(unit[by_unit])]
    few = Rows(rows.x[once], y[once], rows.data_set[once] // 2, 2)
    spread = np.repeat(np.arange(len(once)), 3)
    many = Rows(few.x[spread], few.y[spread], few.data_set[spread], 2)
    assert mean_effect(many, kind, 0.95, spread) == pytest.approx(mean_effect(few, kind, 0.95))


def test_what_units_of_one_row_say_is_what_rows_say() -> None:
    """The two derivations, of `unitmeans` and of `treatment`; scores differ by one factor."""
    rows, unit = of_units(5)
    own, S, q, df = _lines(rows)
    alone = UnitRows(rows.x, rows.y, np.arange(len(unit)), rows.data_set, rows.F)
    found = slopes(alone, "continuous")
    assert found is not None
    factor = found.S[0] / S[0]
    for ours, theirs in zip(found, (own * factor, S * factor, q * factor**2, df), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_intervals_of_the_mean_cover_where_data_sets_have_units_inside() -> None:
    """95% of 300 tables with half of the causes drawn by unit; without units it is 60 to 80%."""
    covered = []
    for seed in range(300):
        rows, unit = of_units(1000 + seed)
        found = mean_effect(rows, "continuous", 0.95, unit)
        covered.append(found.lower <= 0.7 <= found.upper)
    assert 0.92 < np.mean(covered) < 0.98


def test_two_units_a_data_set_and_many_data_sets_have_a_mean() -> None:
    """Also of levels and counts, whose regressions have a column for each data set."""
    rows, unit = of_units(9, F=60, U=2)
    counts = np.random.default_rng(9).poisson(np.exp(rows.y / 2)).astype(float)
    for kind, y in (("continuous", rows.y), ("discrete", (rows.y > 0) * 1.0), ("count", counts)):
        found = mean_effect(rows._replace(y=y), kind, 0.95, unit)
        assert found.lower < found.value < found.upper < found.lower + 3
        assert found.value > 0


def test_with_units_levels_that_are_separated_have_no_mean() -> None:
    rows, unit = of_units(6)
    rows = rows._replace(y=rows.x)
    assert all(math.isnan(value) for value in mean_effect(rows, "discrete", 0.95, unit))
    assert math.isnan(mean_effect(rows._replace(x=0 * rows.x), "continuous", 0.95, unit).value)


@pytest.mark.parametrize("kind", ["continuous", "count"])
def test_what_describes_units_has_no_effect_of_what_varies_inside_them(kind: str) -> None:
    rows, unit = of_units(7)
    found = mean_effect(rows._replace(y=unit.astype(float)), kind, 0.95, unit)
    assert all(math.isnan(value) for value in found)
