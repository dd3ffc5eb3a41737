"""What plots show, read back from what was drawn."""

from __future__ import annotations

import dataclasses
import io
import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import given, simulate
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Polygon
from matplotlib.transforms import Bbox
from scipy.stats import norm, t

import poolbn as pb
from poolbn.assess.effectsizes import effect_sizes
from poolbn.assess.estimates import arc_effects
from poolbn.assess.residuals import node_residuals
from poolbn.show import style

TRIAL = pb.datasets.opt(kind="continuous")
SIX = ["age", "bmi", "gingival_0", "bleeding_0", "gestation_days", "birthweight_g"]


@pytest.fixture(scope="module")
def six() -> pb.Network:
    stats = pb.stats(TRIAL, group="clinic", columns=SIX, missing="drop")
    return pb.learn(stats, constraints=pb.Constraints(required=[("age", "bmi")]), preset="paper")


@pytest.fixture(scope="module")
def trial() -> pb.Network:
    tiers = [
        ["age", "bmi"],
        [name for name in TRIAL if name.endswith("_0")],
        ["gestation_days", "birthweight_g"],
    ]
    columns = [name for tier in tiers for name in tier]
    stats = pb.stats(TRIAL, group="clinic", columns=columns, missing="drop")
    return pb.learn(stats, constraints=pb.Constraints(tiers=tiers), preset="paper")


@pytest.fixture(scope="module")
def fifty() -> pb.Network:
    return pb.random_network(pb.random_dag(50, 2, seed=1), data_sets=5, seed=1)


def axes(width: float = 6.4, height: float = 4.8) -> Axes:
    return Figure(figsize=(width, height)).add_subplot()


def arcs(ax: Axes) -> dict[tuple[str, str], PathPatch]:
    drawn = [patch for patch in ax.patches if (patch.get_gid() or "").startswith("arc: ")]
    return {tuple(patch.get_gid()[5:].split(" -> ")): patch for patch in drawn}


def nodes(ax: Axes) -> dict[str, Bbox]:
    drawn = [patch for patch in ax.patches if (patch.get_gid() or "").startswith("node: ")]
    return {patch.get_gid()[6:]: patch.get_window_extent() for patch in drawn}


def series(ax: Axes) -> dict[str, np.ndarray]:
    """Points by label, (2, m)."""
    return {line.get_label(): np.array(line.get_data()) for line in ax.lines}


def names(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def margin(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.child_axes[0].get_yticklabels()]


# The network


@pytest.mark.parametrize("which", ["six", "trial", "fifty"])
def test_every_node_and_arc_is_drawn_once(which: str, request: pytest.FixtureRequest) -> None:
    net = request.getfixturevalue(which)
    ax = pb.plots.network(net)
    assert sorted(arcs(ax)) == sorted(net.dag.arcs)
    assert sum(isinstance(patch, Polygon) for patch in ax.patches) == len(net.dag.arcs)
    assert sorted(nodes(ax)) == sorted(net.dag.nodes)
    assert [text.get_text().replace("\n", "") for text in ax.texts] == list(net.dag.nodes)


@pytest.mark.parametrize("which", ["six", "trial", "fifty"])
@pytest.mark.parametrize("own", [True, False])
def test_names_fit_and_nothing_overlaps(
    which: str, own: bool, request: pytest.FixtureRequest
) -> None:
    net = request.getfixturevalue(which)
    ax = pb.plots.network(net, ax=None if own else axes(5, 7))
    ax.figure.draw_without_rendering()
    boxes = nodes(ax)
    for text, node in zip(ax.texts, net.dag.nodes, strict=True):
        name, box = text.get_window_extent(), boxes[node]
        assert box.x0 <= name.x0 <= name.x1 <= box.x1
        assert box.y0 <= name.y0 <= name.y1 <= box.y1
    legend = ax.get_legend().get_window_extent()
    for one, other in itertools.combinations([*boxes.values(), legend], 2):
        assert not Bbox.intersection(one, other)
    if own:
        assert min(text.get_fontsize() for text in ax.texts) > 8
        assert ax.figure.get_size_inches().max() < 16
    frame = ax.get_window_extent().padded(1e-6)
    for box in boxes.values():
        assert frame.x0 <= box.x0 <= box.x1 <= frame.x1
        assert frame.y0 <= box.y0 <= box.y1 <= frame.y1


def test_sizes_follow_axes_that_change(trial: pb.Network) -> None:
    ax = pb.plots.network(trial, ax=axes(12, 12))
    before = ax.texts[0].get_fontsize()
    ax.set_position([0.1, 0.1, 0.3, 0.4])
    ax.figure.draw_without_rendering()
    assert ax.texts[0].get_fontsize() < before / 1.5
    boxes = nodes(ax)
    for text, node in zip(ax.texts, trial.dag.nodes, strict=True):
        name, box = text.get_window_extent(), boxes[node]
        assert box.x0 <= name.x0 <= name.x1 <= box.x1


def test_colour_is_the_sign_and_dashes_are_reversible_arcs(trial: pb.Network) -> None:
    ax = pb.plots.network(trial)
    free = trial.dag.cpdag().undirected
    assert 0 < len(free) < len(trial.dag.arcs)
    effects = trial.effects().set_index(["parent", "child"])
    assert (effects["effect"] < 0).any()
    for (parent, child), patch in arcs(ax).items():
        red, _, blue = to_rgb(patch.get_edgecolor())
        assert (red > blue) == (effects.loc[(parent, child), "effect"] < 0)
        reversible = (parent, child) in free or (child, parent) in free
        assert (patch.get_linestyle() != "solid") == reversible


def test_width_is_the_standardised_effect_and_paleness_the_spread() -> None:
    # x has SD 2 and 4, so inside data sets sqrt(10); y = slope x + noise of SD 3.
    dag = pb.Dag(["x", "y", "z"], [("x", "y"), ("x", "z")])
    coef = {
        "x": [[0.0], [1.0]],
        "y": [[0.0, 0.5], [0.0, 0.7]],
        "z": [[0.0, -1.0], [0.0, -1.0]],
    }
    net = given(dag, coef, np.array([[2.0, 3.0, 8.0], [4.0, 3.0, 8.0]]), ["a", "b"], [10, 10])
    y, z = effect_sizes(net)
    sd_y = math.sqrt((0.25 * 4 + 9 + 0.49 * 16 + 9) / 2)
    assert y.effect == pytest.approx(0.6 * math.sqrt(10) / sd_y)
    assert y.between_sd == pytest.approx(np.std([0.5, 0.7], ddof=1) * math.sqrt(10) / sd_y)
    assert y.varies == pytest.approx(np.std([0.5, 0.7], ddof=1) / 0.6)
    assert z.effect == pytest.approx(-math.sqrt(10) / math.sqrt(10 + 64))
    assert z.varies == 0
    drawn = arcs(pb.plots.network(net, ax=axes()))
    widths = np.array([drawn[arc].get_linewidth() for arc in net.dag.arcs])
    per_unit = np.diff(widths) / np.diff([y.effect, -z.effect])
    assert per_unit > 0
    assert to_hex(drawn["x", "z"].get_edgecolor()).upper() == style.NEGATIVE
    assert sum(to_rgb(drawn["x", "y"].get_edgecolor())) > sum(to_rgb(style.POSITIVE))


def test_the_spread_without_pooling_leaves_out_errors() -> None:
    frame = simulate(3, data_sets=30, rows=12, parents=1, between=0.0)
    dag = [("x1", "y")]
    still = pb.Constraints(required=dag)
    mark = {
        how: effect_sizes(
            pb.learn(frame, group="F", pooling=how, constraints=still, preset="paper")
        )[0]
        for how in ("none", "complete", "partial")
    }
    naive = np.std(
        pb.learn(frame, group="F", pooling="none", constraints=still, preset="paper")
        .fits["y"]
        .coef[:, 1]
    )
    assert mark["complete"].between_sd == 0
    assert mark["none"].between_sd < naive / 2
    frame = simulate(3, data_sets=30, rows=12, parents=1, between=2.0)
    options = {"group": "F", "constraints": still, "preset": "paper"}
    nets = [pb.learn(frame, pooling=how, **options) for how in ("none", "partial")]
    found = [effect_sizes(net)[0].between_sd for net in nets]
    assert found[0] == pytest.approx(found[1], rel=0.2)


def test_width_is_the_bootstrap_strength(six: pb.Network) -> None:
    N = len(six.dag.nodes)
    counts = np.zeros((N, N))
    arc_list = list(six.dag.arcs)
    for k, (parent, child) in enumerate(arc_list):
        counts[six.dag.nodes.index(parent), six.dag.nodes.index(child)] = (
            10 * (k + 1) / len(arc_list)
        )
    boot = pb.Bootstrap(six.dag.nodes, counts, 10, "row")
    ax = pb.plots.network(six, strengths=boot, ax=axes())
    drawn = arcs(ax)
    widths = [drawn[arc].get_linewidth() for arc in arc_list]
    np.testing.assert_allclose(np.diff(widths, 2), 0, atol=1e-9)
    assert (np.diff(widths) > 0).all()
    assert any("arc strength" in text.get_text() for text in ax.get_legend().get_texts())


def test_a_network_without_arcs_says_so() -> None:
    net = pb.learn(simulate(1)[["x1", "F"]], group="F", preset="paper")
    ax = pb.plots.network(net)
    assert [text.get_text() for text in ax.texts] == ["x1"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "no arcs: no node depends on another"
    ]
    assert pb.plots.heterogeneity(net).texts[0].get_text() == "no arcs: no node depends on another"


def test_a_fit_without_likelihood_is_marked() -> None:
    frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [1.0, 3, 2, 5], "site": list("aabb")})
    rule = pb.Constraints(required=[("x", "y")])
    net = pb.learn(frame, group="site", pooling="none", constraints=rule, preset="paper")
    assert not net.fits["y"].status.ok
    ax = pb.plots.network(net)
    faces = {patch.get_gid(): to_hex(patch.get_facecolor()) for patch in ax.patches}
    assert faces["node: y"].upper() == style.TROUBLE
    assert faces["node: x"].upper() == style.NODE
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "fit without likelihood" in legend
    for plot in (pb.plots.forest(net, "x", "y"), pb.plots.heterogeneity(net)):
        plot.figure.draw_without_rendering()


def test_names_of_all_kinds() -> None:
    odd = [
        "cost_$_of_$",
        "a name that is very much longer than any name has to be",
        "Größe",
        "x" * 50,
    ]
    dag = pb.Dag(odd, itertools.pairwise(odd))
    net = pb.random_network(dag, data_sets=2, seed=1)
    ax = pb.plots.network(net)
    ax.figure.draw_without_rendering()
    shown = ["".join(text.get_text().split()) for text in ax.texts]
    assert shown == ["".join(name.split()) for name in odd]
    assert max(len(line) for text in ax.texts for line in text.get_text().split("\n")) <= 15
    pb.plots.forest(net, *net.dag.arcs[0]).figure.draw_without_rendering()


# An arc


def joint_covariance(fit: pb.LocalFit, frame: pd.DataFrame) -> np.ndarray:
    """Of fixed effects and all random effects together, from the rows, variances known.

    With a flat prior of the fixed effects, by conditioning the joint normal distribution on y.
    """
    F, q = fit.coef.shape
    X = np.column_stack([np.ones(len(frame)), frame[list(fit.parents)]])
    member = (frame["F"].to_numpy()[:, None] == np.array(fit.levels)).astype(float)
    Z = (member[:, :, None] * X[:, None]).reshape(len(frame), F * q)
    D = np.kron(np.eye(F), fit.random_cov)
    V = np.linalg.inv(Z @ D @ Z.T + fit.sigma2[0] * np.eye(len(frame)))
    fixed = np.linalg.inv(X.T @ V @ X)
    P = V - V @ X @ fixed @ X.T @ V
    cross = -fixed @ X.T @ V @ Z @ D
    return np.block([[fixed, cross], [cross.T, D - D @ Z.T @ P @ Z @ D]])


def older(net: pb.Network) -> pb.Network:
    """The network with fits that have no intervals, as older files have them."""
    fits = {node: dataclasses.replace(fit, sums=None) for node, fit in net.fits.items()}
    return dataclasses.replace(net, fits=fits)


@pytest.mark.parametrize("between", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("random", ["full", "intercept"])
def test_intervals_with_partial_pooling(between: float, random: str) -> None:
    frame = simulate(5, data_sets=6, rows=8, parents=2, between=between)
    rule = pb.Constraints(required=[("x1", "y"), ("x2", "y")])
    pooling = pb.Partial(random=random)
    net = older(pb.learn(frame, group="F", pooling=pooling, constraints=rule, preset="paper"))
    fit = net.fits["y"]
    cov = joint_covariance(fit, frame)
    for k, parent in enumerate(fit.parents, start=1):
        (found,) = arc_effects(net, parent, "y", interval=0.9)
        for j in range(6):
            pick = np.zeros(len(cov))
            pick[k] = pick[3 + 3 * j + k] = 1.0
            se = math.sqrt(pick @ cov @ pick)
            expected = fit.coef[j, k] + norm.ppf(0.95) * se * np.array([-1, 1])
            np.testing.assert_allclose(found.interval[j], expected, rtol=1e-6)


def test_intervals_with_pooled_residual_variances() -> None:
    frame = simulate(11, data_sets=12, rows=15, parents=1)
    frame["y"] *= frame["F"].map({f"set {j}": 1 + j % 3 for j in range(12)})
    rule = pb.Constraints(required=[("x1", "y")])
    net = pb.learn(
        frame, group="F", pooling=pb.Partial(residuals="pooled"), constraints=rule, preset="paper"
    )
    net = older(net)
    fit = net.fits["y"]
    assert str(fit.status) == "converged"
    with_rows = arc_effects(net, "x1", "y")[0].interval
    without = arc_effects(dataclasses.replace(net, stats=None), "x1", "y")[0].interval
    for j, level in enumerate(fit.levels):
        rows = frame[frame["F"] == level]
        Z = np.column_stack([np.ones(len(rows)), rows["x1"]])
        D = fit.random_cov * fit.sigma2[j] / fit.residual_scale
        K = D @ Z.T @ np.linalg.inv(Z @ D @ Z.T + fit.sigma2[j] * np.eye(len(rows)))
        G = np.eye(2) - K @ Z
        se = math.sqrt((G @ D + G @ fit.fixed_cov @ G.T)[1, 1])
        expected = norm.interval(0.95, fit.coef[j, 1], se)
        np.testing.assert_allclose(with_rows[j], expected, rtol=1e-6)
        np.testing.assert_allclose(without[j], expected, rtol=1e-6)


def test_loaded_networks_have_the_same_intervals(tmp_path: Path) -> None:
    frame = simulate(8, data_sets=12, rows=30, parents=2)
    rule = pb.Constraints(required=[("x1", "y"), ("x2", "y")])
    net = pb.learn(frame, group="F", constraints=rule, preset="paper")
    assert str(net.fits["y"].status) == "converged"
    net.save(tmp_path / "net.json")
    loaded = pb.load(tmp_path / "net.json")
    exact, near = (arc_effects(one, "x1", "y")[0] for one in (net, loaded))
    np.testing.assert_array_equal(near.interval, exact.interval)
    assert np.isnan(near.alone).all()
    (given_stats,) = arc_effects(loaded, "x1", "y", stats=net.stats)
    np.testing.assert_array_equal(given_stats.alone, exact.alone)


def test_estimates_of_data_sets_alone_are_least_squares() -> None:
    frame = simulate(2, data_sets=5, rows=6, parents=2)
    frame = frame.drop(index=frame.index[frame["F"] == "set 3"][:3])  # 3 rows: too few
    rule = pb.Constraints(required=[("x1", "y"), ("x2", "y")])
    net = pb.learn(frame, group="F", constraints=rule, preset="paper")
    (found,) = arc_effects(net, "x2", "y", interval=0.8)
    for j, (level, rows) in enumerate(frame.groupby("F", sort=False)):
        if level == "set 3":
            assert np.isnan(found.alone[j])
            continue
        Z = np.column_stack([np.ones(len(rows)), rows[["x1", "x2"]]])
        coef, (rss,), _, _ = np.linalg.lstsq(Z, rows["y"].to_numpy(), rcond=None)
        df = len(rows) - 3
        se = math.sqrt(rss / df * np.linalg.inv(Z.T @ Z)[2, 2])
        assert found.alone[j] == pytest.approx(coef[2])
        np.testing.assert_allclose(found.alone_interval[j], t.interval(0.8, df, coef[2], se))


@pytest.mark.parametrize("pooling", ["complete", "none", "partial"])
def test_the_forest_shows_the_numbers_of_effects(pooling: str) -> None:
    columns = ["clinic", "age", "bmi"]
    rule = pb.Constraints(required=[("age", "bmi")])
    net = pb.learn(
        TRIAL[columns].dropna(), group="clinic", pooling=pooling, constraints=rule, preset="paper"
    )
    row = net.effects().iloc[0]
    ax = pb.plots.forest(net, "age", "bmi")
    drawn = series(ax)
    label = str(net.fits["bmi"].pooling)
    order = [name for name in names(ax) if name in net.levels]
    assert sorted(order) == sorted(net.levels)
    np.testing.assert_allclose(drawn[label][0], row[order].to_numpy(float))
    whole = next(value for key, value in drawn.items() if "clinics" in key and value.size == 2)
    assert whole[0] == pytest.approx(row["effect"])
    assert whole[1] > drawn[label][1].max()  # y grows downwards
    assert ax.yaxis_inverted()
    bars = np.concatenate([c.get_segments() for c in ax.collections if hasattr(c, "get_segments")])
    assert any(np.allclose(bar[:, 0], [row["lower"], row["upper"]]) for bar in bars)
    n = dict(zip(net.levels, net.n.tolist(), strict=True))
    assert margin(ax) == ["rows", *(f"{n[name]:,}" for name in order), f"{net.n_rows:,}"]
    assert ("no pooling: its own rows alone" in drawn) == (pooling != "none")


def test_partial_pooling_lies_between_a_data_set_alone_and_the_population() -> None:
    frame = simulate(9, data_sets=8, rows=10, parents=1)
    net = pb.learn(
        frame, group="F", constraints=pb.Constraints(required=[("x1", "y")]), preset="paper"
    )
    ax = pb.plots.forest(net, "x1", "y", ax=axes())
    drawn = series(ax)
    alone, partial = drawn["no pooling: its own rows alone"][0], drawn["partial pooling"][0]
    assert (np.diff(partial) >= 0).all()
    assert np.std(partial) < np.nanstd(alone)


@pytest.mark.parametrize("data_sets", [2, 50])
def test_forests_of_few_and_of_many(data_sets: int) -> None:
    frame = simulate(4, data_sets=data_sets, rows=9, parents=1)
    net = pb.learn(
        frame, group="F", constraints=pb.Constraints(required=[("x1", "y")]), preset="paper"
    )
    ax = pb.plots.forest(net, "x1", "y")
    ax.figure.draw_without_rendering()
    labels = [label.get_window_extent() for label in ax.get_yticklabels() if label.get_text()]
    for one, other in itertools.pairwise(labels):
        assert not Bbox.intersection(one, other)
    assert ax.figure.get_size_inches()[1] <= 12


def test_long_intervals_do_not_hide_the_rest() -> None:
    frame = simulate(4, data_sets=12, rows=20, parents=1, between=0.3)
    few = pd.DataFrame({"x1": [0.0, 0.001, 0.002], "y": [0.0, 5.0, -4.0], "F": "tiny"})
    rule = pb.Constraints(required=[("x1", "y")])
    net = pb.learn(pd.concat([frame, few]), group="F", constraints=rule, preset="paper")
    (found,) = arc_effects(net, "x1", "y")
    assert np.ptp(found.alone_interval) > 1000
    low, high = pb.plots.forest(net, "x1", "y").get_xlim()
    assert high - low < 4 * np.ptp(found.interval)
    assert low < found.interval.min() < found.interval.max() < high


def test_adapted_data_sets_have_no_estimate_alone(six: pb.Network) -> None:
    new = six.adapt(TRIAL[SIX].dropna().head(15), "new clinic").adapt(name="anywhere")
    ax = pb.plots.forest(new, "age", "bmi")
    assert {"new clinic (adapted)", "anywhere (adapted)"} < set(names(ax))
    place = names(ax).index("anywhere (adapted)")
    assert margin(ax)[place] == "0"
    assert margin(ax)[-1] == f"{six.n_rows:,}"
    (found,) = arc_effects(new, "age", "bmi")
    assert np.isnan(found.alone[found.adapted]).all()
    assert np.isfinite(found.alone[~found.adapted]).all()
    # Of a data set without rows nothing is known but the population.
    np.testing.assert_allclose(found.interval[-1], found.new_interval, rtol=1e-6)
    for drawn in (pb.plots.network(new), pb.plots.heterogeneity(new)):
        drawn.figure.draw_without_rendering()


# All arcs


def test_the_overview_has_all_effects(trial: pb.Network) -> None:
    ax = pb.plots.heterogeneity(trial)
    drawn = series(ax)
    marks = {f"{mark.parent} → {mark.child}": mark for mark in effect_sizes(trial)}
    order = names(ax)[1:]
    assert sorted(order) == sorted(marks)
    np.testing.assert_allclose(
        drawn["population of clinics"][0], [marks[name].effect for name in order]
    )
    spreads = [marks[name].between_sd for name in order]
    assert spreads == sorted(spreads, reverse=True)
    same, opposite = drawn["one clinic"], drawn["one clinic, opposite sign"]
    assert same.shape[1] + opposite.shape[1] == len(marks) * len(trial.levels)
    share = trial.effects()["opposite"].sum()
    assert opposite.shape[1] == round(share * len(trial.levels)) > 0
    for x, row in opposite.T:
        assert np.sign(x) != np.sign(marks[order[int(row)]].effect)
    p = trial.heterogeneity().set_index(["parent", "child"])["p_value"]
    for name, note in zip(order, margin(ax)[1:], strict=True):
        value = p.loc[tuple(name.split(" → "))]
        assert note == ("< 0.001" if value < 0.001 else f"{value:.3f}")


def test_the_overview_shows_the_arcs_that_differ_most(fifty: pb.Network) -> None:
    ax = pb.plots.heterogeneity(fifty, most=7)
    assert names(ax)[0] == f"7 of {len(fifty.dag.arcs)} arcs"
    assert len(names(ax)) == 8
    assert set(margin(ax)) == {""}
    largest = sorted((mark.between_sd for mark in effect_sizes(fifty)), reverse=True)[:7]
    shown = {f"{mark.parent} → {mark.child}": mark.between_sd for mark in effect_sizes(fifty)}
    assert [shown[name] for name in names(ax)[1:]] == largest


# Residuals


def test_residuals_are_those_of_each_data_sets_regression(trial: pb.Network) -> None:
    found = node_residuals(trial, TRIAL, "attachment_0")
    fit = trial.fits["attachment_0"]
    rows = TRIAL.dropna(subset=["attachment_0", *fit.parents])
    assert found.left_out == len(TRIAL) - len(rows)
    at = [trial.levels.index(clinic) for clinic in rows["clinic"]]
    Z = np.column_stack([np.ones(len(rows)), rows[list(fit.parents)]])
    fitted = (Z * fit.coef[at]).sum(axis=1)
    np.testing.assert_allclose(found.fitted, fitted)
    np.testing.assert_allclose(found.residual, rows["attachment_0"] - fitted)
    np.testing.assert_allclose(found.standard, found.residual / np.sqrt(fit.sigma2[at]))
    panels = pb.plots.residuals(trial, TRIAL, "attachment_0")
    assert [panel.get_xlabel().split("\n")[0] for panel in panels] == [
        "fitted attachment_0", "normal quantile", "residual, in standard deviations",
    ]  # fmt: skip
    assert len(panels[0].collections[0].get_offsets()) == len(rows)
    counts = rows["clinic"].value_counts()
    assert margin(panels[2]) == [f"{counts[name]:,}" for name in names(panels[2])]
    boxes = [patch for patch in panels[2].patches if patch.get_width() > 0]
    for name, box in zip(names(panels[2]), boxes, strict=True):
        own = found.standard[rows["clinic"].to_numpy() == name]
        quartiles = np.quantile(own, [0.25, 0.75])
        np.testing.assert_allclose([box.get_x(), box.get_x() + box.get_width()], quartiles)


def test_quantiles_are_those_of_the_normal_distribution(trial: pb.Network) -> None:
    _, panel, _ = pb.plots.residuals(trial, TRIAL, "bmi")
    found = node_residuals(trial, TRIAL, "bmi")
    for code, line in enumerate(panel.lines[: len(trial.levels)]):
        own = np.sort(found.standard[found.codes == code])
        x, y = line.get_data()
        np.testing.assert_allclose(
            np.interp(x, norm.ppf((np.arange(len(own)) + 0.5) / len(own)), own), y
        )


def test_residuals_of_many_rows_and_data_sets() -> None:
    frame = simulate(6, data_sets=30, rows=300, parents=1)
    net = pb.learn(frame, group="F", pooling="none", preset="paper")
    panels = pb.plots.residuals(net, frame, "y", ax=Figure(figsize=(12, 6)).subplots(1, 3))
    assert len(panels[0].collections[0].get_offsets()) <= 3000
    assert len(names(panels[2])) == 30
    one = pb.plots.residuals(net, frame[frame["F"] == "set 7"].head(1), "y")
    assert names(one[2]) == ["set 7"]
    one[0].figure.draw_without_rendering()
    parts = {level: rows.drop(columns="F") for level, rows in frame.groupby("F")}
    np.testing.assert_array_equal(
        np.sort(node_residuals(net, parts, "y").residual),
        np.sort(node_residuals(net, frame, "y").residual),
    )


# Bootstraps and comparisons


def test_bars_are_strengths_split_by_direction() -> None:
    counts = np.array([[0.0, 7, 1], [2, 0, 0], [1, 0, 0]])
    ax = pb.plots.strengths(pb.Bootstrap(("a", "b", "c"), counts, 10, "row"))
    assert names(ax) == ["", "a → b", "a – c"]
    assert margin(ax) == ["strength", "0.90", "0.20"]
    bars = [(round(p.get_x(), 9), round(p.get_width(), 9)) for p in ax.patches]
    assert bars == [(0, 0.7), (0, 0.1), (0.7, 0.2), (0.1, 0.1)]
    assert pb.plots.strengths(pb.Bootstrap(("a", "b"), np.zeros((2, 2)), 5, "row")).texts
    some = pb.plots.strengths(pb.Bootstrap(("a", "b", "c"), counts, 10, "row"), most=1)
    assert names(some) == ["1 of 2 pairs", "a → b"]


@pytest.fixture(scope="module")
def compared(six: pb.Network) -> pb.Comparison:
    """The third pooling could not be fitted, the second says nothing of new data sets."""
    return pb.Comparison(
        networks={"complete": six, "none": six, "partial": six},
        rows=np.array([10, 30]),
        loglik=np.array([[-3.0, -2.0], [-2.0, -1.0], [-np.inf, -1.5]]),
        left_out=("KY", "MN"),
        left_out_rows=np.array([20, 20]),
        left_out_loglik=np.array([[-4.0, -5.0], [np.nan, np.nan], [-6.0, -7.0]]),
        known=np.array([[0.5] * 6, [0.25] * 6, [np.nan] * 6]),
        unknown=np.array([[0.75] * 6, [0.5] * 6, [np.nan] * 6]),
        f1=np.array([0.5, 0.75, np.nan]),
        trouble=("", "", "too few rows"),
        no_population=("", "no population", ""),
    )


def test_a_comparison_is_shown_relative_to_the_best(compared: pb.Comparison) -> None:
    panels = pb.plots.comparison(compared)
    assert names(panels[0]) == ["complete", "none", "partial"]

    def means(ax: Axes) -> list[tuple[float, float]]:
        blue = [line for line in ax.lines if line.get_color() == style.POSITIVE]
        return [tuple(np.round(point, 9)) for line in blue for point in line.get_xydata()]

    def said(ax: Axes) -> list[tuple[str, float]]:
        return [(text.get_text(), text.get_position()[1]) for text in ax.texts]

    assert means(panels[0]) == [(-1.0, 0), (0.0, 1)]
    assert said(panels[0]) == [("no fit", 2)]
    assert means(panels[1]) == [(0.0, 0), (-2.0, 2)]
    assert said(panels[1]) == [("no population", 1)]
    assert [x for x, _ in means(panels[2]) if np.isfinite(x)] == [0.5, 0.25, 0.75, 0.5]
    assert said(panels[2]) == said(panels[3]) == [("no fit", 2)]
    assert [x for x, _ in means(panels[3]) if np.isfinite(x)] == [0.5, 0.75]
    panels[0].figure.draw_without_rendering()


# All plots


def test_axes_that_are_given_are_drawn_on_and_pyplot_is_left_alone(
    six: pb.Network, compared: pb.Comparison
) -> None:
    boot = pb.Bootstrap(("a", "b"), np.array([[0.0, 3], [0, 0]]), 4, "data set")
    figure = Figure(figsize=(20, 10), layout="constrained")
    grid = figure.subplots(3, 4)
    assert pb.plots.network(six, ax=grid[0, 0]) is grid[0, 0]
    assert pb.plots.forest(six, "age", "bmi", ax=grid[0, 1]) is grid[0, 1]
    assert pb.plots.heterogeneity(six, ax=grid[0, 2]) is grid[0, 2]
    assert pb.plots.strengths(boot, ax=grid[0, 3]) is grid[0, 3]
    assert list(pb.plots.residuals(six, TRIAL, "bmi", ax=grid[1, :3])) == list(grid[1, :3])
    assert list(pb.plots.comparison(compared, ax=list(grid[2]))) == list(grid[2])
    parts = Figure(layout="constrained").subfigures(1, 2)
    pb.plots.network(six, ax=parts[0].subplots())
    assert plt.get_fignums() == []
    figure.savefig(io.BytesIO(), format="png")


def test_new_figures_are_those_of_pyplot(six: pb.Network) -> None:
    ax = pb.plots.forest(six, "age", "bmi")
    assert ax.figure.number in plt.get_fignums()


def picture(net: pb.Network) -> bytes:
    content = io.BytesIO()
    pb.plots.network(net, ax=axes(8, 6)).figure.savefig(
        content, format="png", metadata={"Software": None}
    )
    return content.getvalue()


def test_the_same_network_is_always_drawn_the_same(trial: pb.Network) -> None:
    first = picture(trial)
    assert picture(dataclasses.replace(trial)) == first
    assert picture(trial.do(depth_0=2.0)) != first
