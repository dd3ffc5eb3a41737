"""E-values, robustness values, and effects without each data set."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import poolbn as pb
from poolbn.assess.influence import Ends, Influence, influences
from poolbn.page.cards import summary
from poolbn.page.context import gathered

OPT = pb.datasets.opt()
COLUMNS = ["clinic", "age", "bmi", "tobacco", "gestation_days", "birthweight_g"]
TRIAL = OPT[COLUMNS].dropna()
GRAPH = (
    "dag { age -> bmi -> gestation_days -> birthweight_g <- bmi; age -> tobacco -> birthweight_g }"
)


# E-values


@pytest.mark.parametrize(
    ("given", "options", "expected"),
    [  # VanderWeele and Ding (2017), table 2 and text; Chinn's conversion by hand
        ((3.9, 1.8, 8.7), {}, (7.26, 3.0)),
        ((0.8, 0.71, 0.91), {}, (1.81, 1.43)),
        ((1.2, 0.8, 1.8), {}, (1.69, 1.0)),
        ((0.86, 0.75, 0.99), {"scale": "odds ratio", "rare": True}, (1.60, 1.11)),
        ((1.0, 0.9, 1.1), {"scale": "rate ratio"}, (1.0, 1.0)),
    ],
)
def test_published_e_values(given: Any, options: Any, expected: tuple[float, float]) -> None:
    found = pb.e_value(*given, **options)
    assert (found.estimate, found.limit) == pytest.approx(expected, abs=0.006)


@given(st.floats(0.01, 100), st.floats(0.1, 10))
def test_an_e_value_is_the_bias_that_explains_an_effect_away(ratio: float, sd: float) -> None:
    e = pb.e_value(ratio).estimate
    assert e * e / (2 * e - 1) == pytest.approx(max(ratio, 1 / ratio))  # Ding and VanderWeele 2016
    assert pb.e_value(1 / ratio).estimate == pytest.approx(e)
    assert pb.e_value(ratio**2, scale="odds ratio").estimate == pytest.approx(e)
    difference = math.log(ratio) * sd / 0.91
    assert pb.e_value(difference, scale="mean difference", sd=sd).estimate == pytest.approx(e)


def test_limits_that_are_not_known_have_none() -> None:
    assert math.isnan(pb.e_value(2.0).limit)
    assert pb.e_value(math.inf, 3.0, math.inf).limit == pb.e_value(3.0).estimate
    assert math.isnan(pb.e_value(math.nan).estimate)
    with pytest.raises(pb.OptionError, match="a risk ratio is not below 0"):
        pb.e_value(-2.0)
    with pytest.raises(pb.OptionError, match="sd"):
        pb.e_value(-2.0, scale="mean difference", sd=0)
    with pytest.raises(pb.OptionError, match="'risk' is not an option"):
        pb.e_value(2.0, scale="risk")  # type: ignore[arg-type]


# Robustness values


def test_published_robustness_values() -> None:
    # Cinelli and Hazlett (2020), table 1: directly harmed, Darfur.
    assert pb.robustness_value(4.184, 783) == pytest.approx(0.139, abs=5e-4)
    assert pb.robustness_value(4.184, 783, alpha=0.05) == pytest.approx(0.076, abs=5e-4)


def adjusted(y: Any, x: Any, z: Any) -> tuple[float, float]:
    """Coefficient and t of x given z, by least squares; all with mean 0."""
    X = np.column_stack([x, z])
    b, rss = np.linalg.lstsq(X, y, rcond=None)[:2]
    df = len(y) - 3
    return b[0], b[0] / math.sqrt(rss[0] / df * np.linalg.inv(X.T @ X)[0, 0])


@pytest.mark.parametrize(("effect", "n"), [(0.1, 400), (0.5, 30), (3.0, 12), (1.0, 8)])
@pytest.mark.parametrize(("q", "alpha"), [(1.0, None), (0.5, None), (1.0, 0.05), (1.0, 0.3)])
def test_no_weaker_common_cause_explains_the_effect_away(
    effect: float, n: int, q: float, alpha: float | None
) -> None:
    """Common causes made to explain just so much; only those of the robustness value suffice."""
    from scipy import stats

    rng = np.random.default_rng(n)
    basis = np.linalg.qr(rng.normal(size=(n, 4)) - 0)[0]
    basis = np.linalg.qr(np.column_stack([np.ones(n), basis]))[0][:, 1:]
    x = basis[:, 0]
    y = effect * x + basis[:, 1]
    t = effect * math.sqrt(n - 2)
    value = pb.robustness_value(t, n - 2, q=q, alpha=alpha)

    def reached(share: float) -> bool:
        """Whether some common cause with shares up to this one does it."""
        for of_y in share * np.linspace(0.02, 1, 50):
            # z = a x + b y's residual + c other, with the partial shares asked for.
            dx = math.sqrt(share)
            rest = math.sqrt(1 - share)
            dy = math.sqrt(of_y)
            z = dx * x + rest * (dy * basis[:, 1] + math.sqrt(1 - of_y) * basis[:, 2])
            b, own_t = adjusted(y, x, z)
            if b < (1 - q) * effect + 1e-9:
                return True
            if alpha is not None and own_t < stats.t.ppf(1 - alpha / 2, n - 3):
                return True
        return False

    if value == 0:
        assert alpha is not None
        assert 2 * stats.t.sf(abs(t), n - 2) > alpha * 0.9
        return
    assert reached(min(value * 1.03, 0.999))
    assert not reached(value * 0.97)


def test_options_of_robustness_values_are_checked() -> None:
    for options in ({"df": 1}, {"q": 0}, {"alpha": 1.0}):
        with pytest.raises(pb.OptionError, match=next(iter(options))):
            pb.robustness_value(2.0, **({"df": 10} | options))  # type: ignore[arg-type]


# Of networks


def test_least_squares_of_a_total_effect_has_a_level_for_each_data_set() -> None:
    net = pb.fit(GRAPH, TRIAL, group="clinic")
    table = net.sensitivity().set_index(["cause", "effect"])
    row = table.loc["tobacco", "birthweight_g"]
    assert row["adjusted_for"] == "age"
    X = pd.get_dummies(TRIAL["clinic"]).astype(float)
    X = np.column_stack([TRIAL["tobacco"] == "yes", TRIAL["age"], X]).astype(float)
    y = TRIAL["birthweight_g"].to_numpy(dtype=float)
    b, rss = np.linalg.lstsq(X, y, rcond=None)[:2]
    df = len(y) - X.shape[1]
    t = b[0] / math.sqrt(rss[0] / df * np.linalg.inv(X.T @ X)[0, 0])
    assert (row["t"], row["df"]) == pytest.approx((t, df))
    assert row["partial_r2"] == pytest.approx(t**2 / (t**2 + df))
    assert row["rv"] == pb.robustness_value(row["t"], df)
    assert row["rv_alpha"] == pb.robustness_value(row["t"], df, alpha=0.05)
    assert table.loc[("age", "tobacco"), "scale"] == "risk ratio"
    assert math.isnan(table.loc[("age", "tobacco"), "rv"])


def test_a_loaded_network_has_e_values(tmp_path: Path) -> None:
    net = pb.fit("age -> bmi", TRIAL, group="clinic")
    net.save(tmp_path / "net.json")
    loaded = pb.load(tmp_path / "net.json")
    known, bare = net.sensitivity(), loaded.sensitivity()
    given = loaded.sensitivity(data=pb.stats(TRIAL[["clinic", "age", "bmi"]], group="clinic"))
    assert bare["e_value"].tolist() == known["e_value"].tolist()
    assert bare["rv"].isna().all()
    pd.testing.assert_frame_equal(given, known)


# Without a data set


@pytest.mark.filterwarnings("ignore:strongly skewed")
@pytest.mark.parametrize("pooling", ["partial", "complete", "none"])
@pytest.mark.parametrize("columns", [COLUMNS, [c for c in COLUMNS if c != "tobacco"]])
def test_an_effect_without_a_data_set_is_that_of_the_others(
    pooling: str, columns: list[str]
) -> None:
    graph = (
        GRAPH if "tobacco" in columns else GRAPH.replace("; age -> tobacco -> birthweight_g", "")
    )
    table = TRIAL[columns]
    net = pb.fit(graph, table, group="clinic", pooling=pooling)
    long = net.leave_one_out(by="data set")
    for level in net.levels:
        rest = pb.fit(graph, table[table["clinic"] != level], group="clinic", pooling=pooling)
        own = long[long["data_set"] == level]
        np.testing.assert_allclose(own["without"], rest.effects()["effect"], rtol=1e-6)
        np.testing.assert_allclose(own["without_lower"], rest.effects()["lower"], rtol=1e-5)
    short = net.leave_one_out()
    np.testing.assert_allclose(short["effect"], net.effects()["effect"])
    for row in short.to_dict("records"):
        named = (long["parent"] == row["parent"]) & (long["child"] == row["child"])
        each = long[named]
        away = (
            each["change"].abs() if row["scale"] == "difference" else np.log(each["change"]).abs()
        )
        assert row["data_set"] == each.loc[away.idxmax(), "data_set"]


@pytest.mark.filterwarnings("ignore:strongly skewed")
def test_total_effects_without_a_data_set() -> None:
    table = TRIAL.drop(columns="tobacco")
    graph = "age -> bmi -> gestation_days -> birthweight_g"
    net = pb.fit(graph, table, group="clinic")
    long = net.leave_one_out(effects="total", by="data set")
    rest = pb.fit(graph, table[table["clinic"] != "MS"], group="clinic").total_effects()
    own = long[long["data_set"] == "MS"]
    np.testing.assert_allclose(own["without"], rest["total"], rtol=1e-6)


def test_a_level_of_one_data_set_leaves_nothing_to_compare() -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"site": np.repeat(["a", "b", "c"], 60), "y": rng.normal(size=180)})
    table["arm"] = np.where(table["site"] == "a", rng.choice(["A", "B"], 180),
                            rng.choice(["B", "C"], 180))  # fmt: skip
    net = pb.fit("arm -> y", table, group="site", pooling="complete")
    long = net.leave_one_out(by="data set").set_index(["data_set", "level"])
    assert math.isnan(long.loc[("a", "C"), "without"])  # A, which it is compared with, is gone
    assert not math.isnan(long.loc[("b", "C"), "without"])


def driven_table(slopes: list[float], rows: int = 100) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    parts = []
    for j, slope in enumerate(slopes):
        x = rng.normal(size=rows)
        parts.append(
            pd.DataFrame({"site": f"s{j}", "x": x, "y": slope * x + rng.normal(size=rows)})
        )
    return pd.concat(parts, ignore_index=True)


def test_the_data_set_that_drives_an_effect_is_named() -> None:
    net = pb.fit("x -> y", driven_table([0, 0.02, -0.01, 0.01, 1.5]), group="site",
                 pooling="complete")  # fmt: skip
    (row,) = net.leave_one_out().to_dict("records")
    assert (row["data_set"], row["driven_by"], row["interval_changes"]) == ("s4", "s4", 1)
    net = pb.fit("x -> y", driven_table([1.0] * 5), group="site")
    (row,) = net.leave_one_out().to_dict("records")
    assert (row["driven_by"], row["interval_changes"], row["sign_changes"]) == (None, 0, 0)


def test_one_data_set_cannot_be_left_out() -> None:
    net = pb.fit("x -> y", driven_table([1.0]), group="site", pooling="complete")
    with pytest.raises(pb.DataError, match="there is one data set, 's0'"):
        net.leave_one_out()
    with pytest.raises(pb.OptionError, match="effects"):
        net.leave_one_out(effects="indirect")
    with pytest.raises(pb.OptionError, match="by"):
        net.leave_one_out(by="estimand")
    with pytest.raises(pb.OptionError, match="q"):
        net.sensitivity(q=-1)


def test_an_interval_that_is_not_known_changes_nothing() -> None:
    one, none = Ends(1.0, 0.5, 1.5), Ends(0.8, math.nan, math.nan)
    found = Influence({"child": "y"}, False, one, {"a": none, "b": Ends(0.7, -0.1, 1.4)})
    assert (found.changing, found.driver, found.largest) == (["b"], "b", "b")


# In reports


def card(of: Any) -> str:
    found = [c for c in summary(of) if "driving" in c.heading]
    return " ".join(found[0].sentences) if found else ""


def test_a_report_says_whether_one_data_set_drives_an_effect() -> None:
    table = driven_table([0, 0.02, -0.01, 0.01, 1.5])
    net = pb.fit("x -> y", table, group="site", pooling="complete")
    told = card(gathered(net, None, None, None))
    assert told.startswith("x → y: 0.2")
    assert told.endswith("without s4 alone the interval reaches zero.")
    low = driven_table([0.2, 0.2, 0.2, 0.2, -0.6])
    net = pb.fit("x -> y", low, group="site", pooling="complete")
    assert "and without s4 alone it does not" in card(gathered(net, None, None, None))
    few = pb.fit("x -> y", driven_table([0.4, 0.5, 0.3], 30), group="site")
    assert card(gathered(few, None, None, None)).startswith("No single one, but 3 sites are few")
    net = pb.fit("x -> y", driven_table([1.0] * 5), group="site")
    assert card(gathered(net, None, None, None)).startswith("No: ")
    assert not card(gathered(pb.fit("x -> y", driven_table([1.0] * 2), group="site"), None, None,
                             None))  # fmt: skip


def test_what_a_report_leaves_out_is_not_left_out_of_it_to_be_subtracted() -> None:
    """The rows of a small data set change nothing in what a report to share says of influence."""
    table = driven_table([0, 0.02, -0.01, 0.01, 1.5])
    rng = np.random.default_rng(8)
    told = []
    for shift in (0.0, 5.0):
        x = rng.normal(size=6)
        few = pd.DataFrame({"site": "few", "x": x, "y": shift * x + rng.normal(size=6)})
        rows = pd.concat([table, few], ignore_index=True)
        net = pb.fit("x -> y", rows, group="site", pooling="complete")
        of = gathered(net, rows, None, None)
        assert of.influences is not None
        assert all("few" not in found.without for found in of.influences)
        told.append([(found.all, dict(found.without)) for found in of.influences])
        whole = gathered(net, rows, None, None, open=True).influences
        assert whole is not None
        assert "few" in whole[0].without
    assert told[0] == told[1]
    # Without the rows it cannot be left out, and nothing is said.
    assert gathered(net, None, None, None).influences is not None  # statistics are in the network
    bare = pb.Network(**{**vars(net), "stats": None})
    assert gathered(bare, None, None, None).influences is None


def test_nodes_whose_data_sets_are_put_together_are_not_told() -> None:
    rng = np.random.default_rng(2)
    table = driven_table([0.5] * 4, 60)
    table["ill"] = np.where(rng.random(240) < 0.5, "yes", "no")
    in_first = table.index[table["site"] == "s0"]
    table.loc[in_first, "ill"] = "no"
    table.loc[in_first[:2], "ill"] = "yes"  # two rows of a level: a small cell
    net = pb.fit("dag { x -> y; ill -> y; x -> ill }", table, group="site")
    of = gathered(net, pb.table(table, group="site"), None, None)
    assert of.disclosed.grouped
    assert of.influences is not None
    assert {found.child for found in of.influences}.isdisjoint(of.disclosed.grouped)
    known = influences(net, pb.table(table, group="site"))
    assert {found.child for found in known} == {"y", "ill"}


# Estimands of `do`


@pytest.mark.parametrize("pooling", ["partial", "complete", "none"])
def test_estimands_are_those_of_the_two_tables(pooling: str) -> None:
    net = pb.fit(GRAPH, TRIAL, group="clinic", pooling=pooling)
    asked = {"cause": "tobacco", "effect": "birthweight_g"}
    found = net.total_effects(**asked, by="estimand")
    apart = net.total_effects(**asked, by="data set")
    known = found[found["estimand"] == "known data set"].drop(columns="estimand")
    pd.testing.assert_frame_equal(known.reset_index(drop=True), apart, check_dtype=False)
    (new,) = found[found["estimand"] == "new data set"].to_dict("records")
    (whole,) = net.total_effects(**asked).to_dict("records")
    for name in ("total", "lower", "upper"):
        np.testing.assert_equal(new[name], whole[name])
    (average,) = found[found["estimand"] == "average of these data sets"].to_dict("records")
    assert average["total"] == pytest.approx(np.average(apart["total"], weights=net.n))
    assert math.isnan(average["lower"])


def test_the_average_of_ratios_is_the_ratio_of_averages() -> None:
    """By the definition of do: averages of predictions with the cause set, by rows."""
    columns = ["clinic", "tobacco", "preterm"]
    table = OPT[columns].dropna()
    net = pb.fit("tobacco -> preterm", table, group="clinic")
    found = net.total_effects(by="estimand").set_index(["scale", "estimand"])["total"]
    shares = net.n / net.n.sum()
    low, high = (
        shares @ net.do(tobacco=level).predict(
            pd.DataFrame({"clinic": net.levels}), "preterm", plugin=True
        )["yes"]
        for level in ("no", "yes")
    )  # fmt: skip
    average = "average of these data sets"
    assert found["risk difference", average] == pytest.approx(high - low)
    assert found["risk ratio", average] == pytest.approx(high / low)
    of_one = net.do(tobacco="yes").predict({"clinic": None}, "preterm", plugin=True)
    assert of_one.loc[0, "yes"] == pytest.approx(high)


def test_a_row_may_hold_the_data_set_alone() -> None:
    net = pb.fit(GRAPH, TRIAL, group="clinic")
    alone = net.predict({"clinic": "MS"}, "birthweight_g")
    empty = net.predict({"clinic": "MS", "age": None}, "birthweight_g")
    pd.testing.assert_frame_equal(alone, empty)
    many = net.predict(TRIAL[["clinic"]].tail(3), "birthweight_g")
    np.testing.assert_allclose(many, np.tile(alone, (3, 1)))
    with pytest.raises(pb.DataError, match="no column is a node of the network"):
        net.predict({"clinic": "MS", "agee": 20}, "birthweight_g")
    with pytest.raises(pb.DataError, match="'XX'"):
        net.predict({"clinic": "XX"}, "birthweight_g")
