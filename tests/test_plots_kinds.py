"""Plots of networks with columns of all kinds, and the numbers that they show."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt

import poolbn as pb
from poolbn.assess.effectsizes import effect_sizes, spreads
from poolbn.assess.residuals import Calibration, node_calibration
from poolbn.show.figures import ratio_ticks

pytestmark = pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
STILL = pb.HillClimb(max_iter=0)


@pytest.fixture(autouse=True)
def no_windows() -> Iterator[None]:
    mpl.use("agg")
    yield
    plt.close("all")


def simulated(seed: int = 1, n: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    made = pd.DataFrame({"F": np.repeat(list("abcd"), n // 4), "arm": rng.choice(["c", "t"], n)})
    made["dose"] = pd.Categorical(rng.choice(["no", "low", "high"], n), ["no", "low", "high"])
    made["x"] = rng.normal(size=n)
    step = made["dose"].map({"no": 0.0, "low": 0.8, "high": -0.8}).astype(float)
    made["y"] = 0.5 * made["x"] + step + 0.7 * (made["arm"] == "t") + rng.normal(size=n)
    made["n"] = rng.poisson(np.exp(0.3 + 0.5 * made["x"]))
    odds = made["F"].map({"a": 0.2, "b": 0.5, "c": 0.8, "d": 1.1}) * (made["arm"] == "t") - 0.5
    made["event"] = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return made


ARCS = [("dose", "y"), ("x", "y"), ("arm", "y"), ("x", "n"), ("arm", "event")]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return simulated()


@pytest.fixture(scope="module")
def net(rows: pd.DataFrame) -> pb.Network:
    return pb.learn(rows, group="F", kinds={"n": "count"}, inputs=["arm"], start=ARCS, search=STILL)


# Kinds of nodes


def test_nodes_look_like_their_kind(net: pb.Network) -> None:
    ax = pb.plots.network(net)
    ax.figure.draw_without_rendering()
    boxes = {str(patch.get_gid()): patch for patch in ax.patches if patch.get_gid()}
    kinds = {name: type(boxes[f"node: {name}"]).__name__ for name in net.dag.nodes}
    assert kinds == {"arm": "Rectangle", "dose": "Rectangle", "x": "FancyBboxPatch",
                     "y": "FancyBboxPatch", "n": "Polygon", "event": "Rectangle"}  # fmt: skip
    dashed = [name for name in net.dag.nodes if boxes[f"node: {name}"].get_linestyle() != "solid"]
    assert dashed == ["arm"]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend[-4:] == ["continuous", "discrete", "count", "input"]
    assert "sign depends on the level" in legend
    drawn = boxes["arc: dose -> y"].get_edgecolor()[:3]
    assert np.ptp(drawn) < 0.02  # grey


def test_continuous_networks_have_no_legend_of_kinds(rows: pd.DataFrame) -> None:
    net = pb.learn(rows[["F", "x", "y"]], group="F", start=[("x", "y")])
    legend = [text.get_text() for text in pb.plots.network(net).get_legend().get_texts()]
    assert not {"continuous", "discrete", "count", "input"} & set(legend)


# Standardised effects


def test_standardised_effects_of_linear_nodes_are_those_of_the_rows(
    net: pb.Network, rows: pd.DataFrame
) -> None:
    """A unit of an indicator is its standard deviation inside data sets, as that of a number."""
    sizes = {(size.parent, size.child): size for size in effect_sizes(net)}
    inside = rows[["x", "y"]].assign(t=rows["arm"] == "t", low=rows["dose"] == "low")
    sd = inside.astype(float).groupby(rows["F"]).var(ddof=0).mean() ** 0.5
    coef = net.fits["y"].table()["fixed"]
    for parent, column, label in (("x", "x", "x"), ("arm", "t", "arm=t")):
        expected = coef[label] * sd[column] / sd["y"]
        assert sizes[parent, "y"].effect == pytest.approx(expected, rel=0.05)
    dose = sizes["dose", "y"]
    assert len(dose.each) == 2
    assert dose.each[0] == pytest.approx(coef["dose=low"] * sd["low"] / sd["y"], rel=0.05)
    assert abs(dose.effect) == max(map(abs, dose.each))
    assert not dose.one_sign


def test_variances_of_logits_and_logarithms_are_as_published() -> None:
    """McKelvey and Zavoina's share is b^2 / (b^2 + pi^2 / 3) for one normal parent with SD 1."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=4000)
    table = pd.DataFrame({"F": ["a", "b"] * 2000, "x": x})
    table["z"] = np.where(rng.random(4000) < 1 / (1 + np.exp(-1.3 * x)), "yes", "no")
    table["k"] = rng.poisson(np.exp(0.2 + 0.6 * x))
    net = pb.learn(table, group="F", kinds={"k": "count"}, pooling="complete",
                   start=[("x", "z"), ("x", "k")], search=STILL)  # fmt: skip
    b, c = (float(net.fits[node].table()["fixed"].iloc[1]) for node in ("z", "k"))
    found = spreads(net)
    v = float(net.fits["x"].sigma2[0])
    assert found.explained["z"] == pytest.approx(b**2 * v / (b**2 * v + math.pi**2 / 3), rel=0.03)
    mean = float(table["k"].mean())
    left = math.log1p(1 / mean)
    assert found.explained["k"] == pytest.approx(c**2 * v / (c**2 * v + left), rel=0.05)
    sizes = {size.child: size.effect for size in effect_sizes(net)}
    assert sizes["z"] ** 2 == pytest.approx(found.explained["z"], rel=0.03)
    assert sizes["k"] ** 2 == pytest.approx(found.explained["k"], rel=0.03)


def test_heterogeneity_has_a_row_for_each_arc(net: pb.Network, rows: pd.DataFrame) -> None:
    ax = pb.plots.heterogeneity(net)
    assert sorted(label.get_text() for label in ax.get_yticklabels())[1:] == sorted(
        f"{a} → {b}" for a, b in ARCS
    )
    with_rows = pb.plots.heterogeneity(net, stats=pb.table(rows, group="F", kinds={"n": "count"}))
    notes = [[t.get_text() for t in one.child_axes[0].get_yticklabels()] for one in (ax, with_rows)]
    assert notes[0] == notes[1]
    assert notes[0][0] == "p (equal effects)"


# Forests


def forest_marks(ax: Any) -> dict[str, np.ndarray]:
    return {str(line.get_label()): np.array(line.get_xydata()) for line in ax.get_lines()}


def test_odds_ratios_are_on_an_axis_of_logarithms(net: pb.Network, rows: pd.DataFrame) -> None:
    table = pb.table(rows, group="F", kinds={"n": "count"})
    ax = pb.plots.forest(net, "arm", "event", stats=table)
    assert ax.get_xscale() == "log"
    row = net.effects().query("child == 'event'").iloc[0]
    drawn = forest_marks(ax)
    np.testing.assert_allclose(
        np.sort(drawn["partial pooling"][:, 0]), sorted(row[list("abcd")]), rtol=1e-9
    )
    assert drawn["population of data sets"][0, 0] == pytest.approx(row["effect"])
    alone = drawn["no pooling: its own rows alone"][:, 0]
    by_hand = []
    for _, own in rows.groupby("F"):
        counts = pd.crosstab(own["arm"], own["event"]).to_numpy()
        by_hand.append(counts[1, 1] * counts[0, 0] / (counts[1, 0] * counts[0, 1]))
    np.testing.assert_allclose(np.sort(alone), np.sort(by_hand), rtol=1e-9)
    assert ax.get_xlabel() == "odds ratio of event = yes for arm t instead of c"


def test_a_block_for_each_level(net: pb.Network) -> None:
    ax = pb.plots.forest(net, "dose", "y")
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert [names.count(level) for level in "abcd"] == [2] * 4
    assert names.index("low instead of no") < names.index("high instead of no")
    diamonds = [line.get_xdata()[0] for line in ax.get_lines() if line.get_marker() == "D"]
    effects = net.effects().query("parent == 'dose'")["effect"]
    np.testing.assert_allclose(diamonds, effects)
    assert ax.get_xlabel() == "change of y of dose"
    rates = pb.plots.forest(net, "x", "n")
    assert rates.get_xlabel() == "rate ratio of n per unit of x"


@given(st.floats(-12, 12), st.floats(0.01, 20))
def test_ratio_ticks_are_round_and_inside(low: float, span: float) -> None:
    ticks = ratio_ticks(low, low + span)
    assert len(ticks) <= 9
    assert ticks == sorted(set(ticks))
    for tick in ticks:
        assert low - 1e-6 <= math.log(tick) <= low + span + 1e-6
        assert len(f"{tick:.6g}".strip("0").replace(".", "").rstrip("0")) <= 6
    if span > 0.2:
        assert len(ticks) >= 2


@pytest.mark.parametrize(("low", "high"), [(-1e-17, 3e-17), (1e20, 2e20), (-3e20, -1e20)])
def test_ratios_that_are_the_same_have_one_tick(low: float, high: float) -> None:
    """As those of a parent in units of 1e17 and more."""
    (tick,) = ratio_ticks(low, high)
    assert tick > 0


def test_equal_estimates_have_an_axis() -> None:
    made = pb.random_network(pb.random_dag(3, 1.0, seed=3), 50, discrete=0.5, seed=3)
    node = next(name for name, fit in made.fits.items() if fit.model == "linear regression")
    sd = math.sqrt(made.fits[node].sigma2[0])
    low, high = pb.plots.forest(made, None, node).get_xlim()
    assert low < 0.99 * sd < 1.01 * sd < high


# Calibration


def test_calibration_shows_the_shares(net: pb.Network, rows: pd.DataFrame) -> None:
    axes = pb.plots.calibration(net, rows, "event")
    assert len(axes) == 2
    found = node_calibration(net, rows, "event")
    (line,) = [line for line in axes[0].get_lines() if line.get_label() == "yes"]
    bins = found.bins(1)
    np.testing.assert_allclose(line.get_xdata(), [part.expected for part in bins])
    np.testing.assert_allclose(line.get_ydata(), [part.seen for part in bins])
    shares = (rows["event"] == "yes").groupby(rows["F"]).mean()
    dots = [line.get_xdata()[0] for line in axes[1].get_lines() if line.get_marker() == "o"]
    np.testing.assert_allclose(dots, shares)
    with pytest.raises(pb.OptionError, match="2 panels"):
        pb.plots.calibration(net, rows, "event", ax=plt.figure().subplots(1, 3))


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.5, 0.9]), st.integers(0, 2)), max_size=90))
def test_no_bin_tells_of_few_rows(cells: list[tuple[float, int]]) -> None:
    p = np.array([[p, (1 - p) / 2, (1 - p) / 2] for p, _ in cells]).reshape(-1, 3)
    seen = np.array([level for _, level in cells], dtype=np.int64)
    codes = np.zeros(len(seen), dtype=np.int64)
    found = Calibration("z", ("a",), ("u", "v", "w"), codes, p, seen, 0)
    for level in range(3):
        order = np.argsort(p[:, level], kind="stable")
        start = 0
        for part in found.bins(level):
            own = seen[order[start : start + part.rows]]
            counts = np.bincount(own, minlength=3)
            assert part.rows >= 10
            assert not ((counts > 0) & (counts < 5)).any()
            assert min(counts[level], part.rows - counts[level]) >= 5
            assert part.seen == pytest.approx(counts[level] / part.rows)
            assert part.lower <= part.seen <= part.upper
            start += part.rows
        assert start in (0, len(seen))
        for part in found.by_data_set(level).values():
            assert not ((np.bincount(seen) > 0) & (np.bincount(seen) < 5)).any()
            assert part.rows == len(seen) >= 10


def test_intervals_of_shares_are_wilsons(net: pb.Network, rows: pd.DataFrame) -> None:
    from scipy.stats import binomtest

    found = node_calibration(net, rows, "event")
    for code, part in found.by_data_set(1).items():
        own = rows["event"][rows["F"] == found.levels[code]] == "yes"
        exact = binomtest(int(own.sum()), len(own)).proportion_ci(method="wilson")
        assert (part.lower, part.upper) == pytest.approx((exact.low, exact.high))


# Within and between


def test_within_and_between_is_that_of_zeros_and_ones(rows: pd.DataFrame) -> None:
    arcs = [("arm", "y"), ("x", "y")]
    mixed = pb.learn(rows[["F", "arm", "x", "y"]], group="F", start=arcs, search=STILL)
    coded = rows[["F", "arm", "x", "y"]].assign(arm=(rows["arm"] == "t") * 1.0)
    linear = pb.learn(coded, group="F", start=arcs, search=STILL)
    found, expected = mixed.within_between(), linear.within_between()
    assert found["level"].tolist() == ["t", ""]
    columns = [name for name in expected if name not in ("parent", "level", "child", "groups")]
    assert list(found) == list(expected)
    assert expected["level"].tolist() == ["", ""]
    np.testing.assert_allclose(found[columns], expected[columns], rtol=1e-6)
    table = pb.table(rows[["F", "arm", "x", "y"]], group="F")
    np.testing.assert_allclose(mixed.within_between(table)[columns], expected[columns], rtol=1e-6)


def test_a_loaded_network_needs_rows_for_it(net: pb.Network, rows: pd.DataFrame,
                                            tmp_path: Any) -> None:  # fmt: skip
    net.save(tmp_path / "net.json")
    loaded = pb.load(tmp_path / "net.json")
    with pytest.raises(pb.DataError, match=r"net.within_between\(pb.table"):
        loaded.within_between()
    table = pb.table(rows, group="F", kinds={"n": "count"})
    found = loaded.within_between(table)
    pd.testing.assert_frame_equal(found, net.within_between(), rtol=1e-6)
    assert found[["parent", "level"]].to_numpy().tolist() == [
        ["arm", "t"], ["dose", "low"], ["dose", "high"], ["x", ""]
    ]  # fmt: skip
