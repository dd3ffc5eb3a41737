"""Effects of a treatment that was drawn by lot."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import poolbn as pb


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


def test_the_mean_of_the_data_sets_is_that_by_precision(trial: pd.DataFrame) -> None:
    found = effects(trial)
    b, v, df = [], [], []
    for _, part in trial.dropna().groupby("site"):
        one, other = (part.loc[part["arm"] == arm, "y"] for arm in ("treated", "control"))
        test = stats.ttest_ind(one, other)
        b.append(one.mean() - other.mean())
        v.append((b[-1] / test.statistic) ** 2)
        df.append(test.df)
    w = 1 / np.array(v)
    y = found.loc["y"]
    assert y["mean"] == pytest.approx(np.average(b, weights=w))
    t = stats.t(w.sum() ** 2 / (w**2 / df).sum(), y["mean"], 1 / math.sqrt(w.sum()))
    assert (y["mean_lower"], y["mean_upper"]) == pytest.approx(t.interval(0.95))
    assert y["p_value"] == pytest.approx(2 * t.cdf(0))

    # Woolf's: logarithms of odds ratios, by precision.
    cells = [pd.crosstab(part["arm"], part["event"]) for _, part in trial.groupby("site")]
    log_or = [np.log(c.iloc[0, 0] * c.iloc[1, 1] / c.iloc[0, 1] / c.iloc[1, 0]) for c in cells]
    w = [1 / (1 / c.to_numpy()).sum() for c in cells]
    event = found.loc["event"]
    assert math.log(event["mean"]) == pytest.approx(np.average(log_or, weights=w))
    z = abs(np.average(log_or, weights=w)) * math.sqrt(sum(w))
    assert event["p_value"] == pytest.approx(2 * stats.norm.sf(z))


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
