"""Intervals of effects: closed forms, lmerTest, what must not matter, and how often they cover."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import simulate
from scipy.stats import binom, linregress, norm, sem, t

import poolbn as pb
from poolbn.nodes.intervals import own_estimates, shrunk

REFERENCE = Path(__file__).parent / "reference"
CASES = {
    case["table"]: case
    for case in json.loads((REFERENCE / "heterogeneity" / "cases.json").read_text())
}
POOLINGS = [
    pb.Partial(), pb.Partial(residuals="pooled"), pb.Partial(residuals="separate"),
    pb.Partial("intercept"), pb.Partial(method="reml"), pb.Complete(), pb.NoPooling(),
]  # fmt: skip
each_pooling = pytest.mark.parametrize("pooling", POOLINGS, ids=str)


def table(
    rng: np.random.Generator,
    F: int,
    rows: int,
    slope_sd: float,
    spread: float = 0.0,
    parents: int = 1,
) -> tuple[pb.GroupStats, np.ndarray]:
    """Statistics of y = level + x'slope + error, slopes around 1, and the slopes, (F, p)."""
    slope = 1 + slope_sd * rng.normal(size=(F, parents))
    x = rng.normal(size=(F, rows, parents)) + 0.5 * rng.normal(size=(F, 1, parents))
    sd = np.exp(spread * rng.normal(size=(F, 1)))
    y = 0.5 * rng.normal(size=(F, 1)) + np.einsum("jik,jk->ji", x, slope)
    both = np.concatenate([x, (y + sd * rng.normal(size=(F, rows)))[:, :, None]], axis=2)
    mean = both.mean(axis=1)
    away = both - mean[:, None]
    names = (*(f"x{k}" for k in range(parents)), "y")
    stats = pb.GroupStats(
        names, tuple(range(F)), np.full(F, rows), mean, np.swapaxes(away, 1, 2) @ away,
        np.zeros(F, dtype=np.int64),
    )  # fmt: skip
    return stats, slope


def same_design(seed: int) -> pd.DataFrame:
    """Six data sets with the same x."""
    rng = np.random.default_rng(seed)
    x = np.tile(rng.normal(size=15), 6)
    site = np.repeat(np.arange(6), 15)
    slope = 1 + 0.4 * rng.normal(size=6)
    y = rng.normal(size=6)[site] + slope[site] * x + rng.normal(size=90)
    return pd.DataFrame({"x": x, "y": y, "site": site})


@pytest.mark.parametrize("residuals", ["shared", "pooled"])
def test_where_data_sets_are_alike_it_is_the_t_interval_of_their_own_estimates(
    residuals: str,
) -> None:
    frame = same_design(1)
    if residuals == "pooled":  # with the same residual squares too
        for _, rows in frame.groupby("site"):
            found = linregress(rows["x"], rows["y"])
            rest = rows["y"] - found.intercept - found.slope * rows["x"]
            frame.loc[rows.index, "y"] += rest / rest.std() - rest
    own = [linregress(rows["x"], rows["y"]) for _, rows in frame.groupby("site")]
    fit = pb.fit_node(
        pb.stats(frame, group="site"), "y", ["x"], pooling=pb.Partial(residuals=residuals)
    )
    slopes, levels = ([getattr(f, name) for f in own] for name in ("slope", "intercept"))
    np.testing.assert_allclose(fit.population_se, [sem(levels), sem(slopes)], rtol=1e-5)
    np.testing.assert_allclose(fit.population_df, 5, rtol=1e-9)


@pytest.mark.parametrize("name", ["sleepstudy", "Orthodont"])
def test_in_balanced_tables_it_is_what_lmertest_says(name: str) -> None:
    case = CASES[name]
    frame = pd.read_csv(REFERENCE / "lme" / "data" / f"{name}.csv.gz")
    stats = pb.stats(frame, group=case["group"], columns=[*case["parents"], case["child"]])
    fit = pb.fit_node(stats, case["child"], case["parents"])
    np.testing.assert_allclose(fit.population_se[1:], case["lmerTest_se"], rtol=1e-4)
    np.testing.assert_allclose(fit.population_df[1:], case["lmerTest_df"], rtol=1e-4)


def test_in_160_schools_it_is_near_what_lmertest_says() -> None:
    case = CASES["MathAchieve"]
    frame = pd.read_csv(REFERENCE / "lme" / "data" / "MathAchieve.csv.gz")
    fit = pb.fit_node(
        pb.stats(frame, group="School", columns=["SES", "MathAch"]), "MathAch", ["SES"]
    )
    np.testing.assert_allclose(fit.population_se[1:], case["lmerTest_se"], rtol=0.05)


def test_complete_and_no_pooling_are_least_squares() -> None:
    frame = simulate(3, data_sets=4, rows=12, parents=1)
    stats = pb.stats(frame, group="F")
    found = linregress(frame["x1"], frame["y"])
    complete = pb.fit_node(stats, "y", ["x1"], pooling="complete")
    np.testing.assert_allclose(complete.population_se, [found.intercept_stderr, found.stderr])
    assert complete.population_df.tolist() == [46, 46]
    assert (complete.intervals.se[:, 1] == complete.population_se[1]).all()
    alone = [linregress(rows["x1"], rows["y"]) for _, rows in frame.groupby("F", sort=False)]
    none = pb.fit_node(stats, "y", ["x1"], pooling="none")
    np.testing.assert_allclose(none.population_se[1], sem([f.slope for f in alone]))
    assert none.population_df.tolist() == [3, 3]
    np.testing.assert_allclose(none.intervals.se[:, 1], [f.stderr for f in alone])
    assert (none.intervals.df == 10).all()


@each_pooling
def test_units_and_orders_do_not_matter(pooling: pb.Partial) -> None:
    stats, _ = table(np.random.default_rng(0), 5, 30, 0.4, 0.3, parents=2)
    one = pb.fit_node(stats, "y", ["x0", "x1"], pooling=pooling)
    unit, shift = np.array([1e-2, 30.0, 5.0]), np.array([0.0, 0.0, 40.0])
    back = np.arange(5)[::-1]
    other = pb.GroupStats(
        stats.names, tuple(back.tolist()), stats.n, (stats.mean * unit + shift)[back],
        (stats.scatter * np.outer(unit, unit))[back], stats.dropped,
    ).select(["y", "x1", "x0"])  # fmt: skip
    two = pb.fit_node(other, "y", ["x1", "x0"], pooling=pooling)
    assert one.intervals is not None
    assert two.intervals is not None
    turn, scale = [0, 2, 1], 5.0 / np.array([1.0, 1e-2, 30.0])
    np.testing.assert_allclose(two.population_se[turn], one.population_se * scale, rtol=1e-3)
    np.testing.assert_allclose(two.population_df[turn], one.population_df, rtol=1e-3)
    mine, yours = one.intervals, two.intervals
    units = np.append(5.0, scale[1:])
    np.testing.assert_allclose(yours.se[back][:, turn], mine.se * units, rtol=1e-3)
    np.testing.assert_allclose(yours.df[back][:, turn], mine.df, rtol=1e-3)
    np.testing.assert_allclose(yours.new_se[turn][1:], (mine.new_se * scale)[1:], rtol=1e-3)


def test_a_constant_parent_in_one_data_set_and_few_rows_are_no_trouble() -> None:
    frame = simulate(3, data_sets=6, rows=12, parents=2)
    frame.loc[frame["F"] == "set 1", "x1"] = 2.0
    frame = frame.drop(index=frame.index[frame["F"] == "set 4"][2:])
    for pooling in POOLINGS[:2]:
        fit = pb.fit_node(pb.stats(frame, group="F"), "y", ["x1", "x2"], pooling=pooling)
        assert fit.intervals is not None
        assert all(np.isfinite(values).all() for values in fit.intervals)
        own = own_estimates(fit.sums)
        assert np.isinf(own.cov[1, :2]).all()
        assert np.isfinite(own.cov[1, 2])
        # Where rows do not tell the effect, less is known than elsewhere.
        assert fit.intervals.se[1, 1] > np.delete(fit.intervals.se[:, 1], [1, 4]).max()


def test_shrunk_effects_lie_between_their_own_and_the_mean() -> None:
    coef, variance = np.array([[0.0], [1.0], [2.0], [4.0]]), np.full((4, 1), 0.5)
    center, sd = shrunk(coef, variance)
    mean = coef.mean()
    assert (np.abs(center - mean) < np.abs(coef - mean)).all()
    np.testing.assert_allclose(center.mean(), mean)
    far, _ = shrunk(100 * coef, variance)
    np.testing.assert_allclose(far, 100 * coef, atol=0.1)  # hardly shrunk
    near, tight = shrunk(coef / 100, variance)
    assert (tight < sd).all()
    assert (np.abs(near - mean / 100) < np.abs(coef / 100 - mean / 100)).all()


def correlated(
    seed: int, *, data_sets: int, rows: int, parents: int, correlation: float
) -> pd.DataFrame:
    """Levels and slopes that go together: the likelihood often has its maximum at -1 or 1."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(data_sets, 1))
    own = rng.normal(size=(data_sets, parents + 1))
    b = correlation * common + math.sqrt(1 - correlation**2) * own
    site = np.repeat(np.arange(data_sets), rows)
    x = rng.normal(size=(len(site), parents)) + 0.5 * rng.normal(size=(data_sets, parents))[site]
    linear = b[site, 0] + (x * (1 + 0.4 * b[site, 1:])).sum(axis=1)
    names = [f"x{k}" for k in range(parents)]
    return pd.DataFrame(x, columns=names).assign(
        y=linear + rng.normal(size=len(site)),
        event=np.where(rng.logistic(size=len(site)) < linear, "yes", "no"),
        visits=rng.poisson(np.exp(np.minimum(0.4 * linear, 4.0))),
        site=[f"s{j}" for j in site],
    )


@pytest.mark.parametrize("child", ["y", "event", "visits"])
@pytest.mark.parametrize(
    ("data_sets", "rows", "parents"), [(3, 8, 2), (4, 60, 1), (12, 4, 1), (40, 12, 1)]
)
def test_an_interval_contains_its_estimate(
    child: str, data_sets: int, rows: int, parents: int
) -> None:
    for seed, correlation in enumerate((1.0, 0.95, 0.0)):
        frame = correlated(
            seed, data_sets=data_sets, rows=rows, parents=parents, correlation=correlation
        )
        names = [f"x{k}" for k in range(parents)]
        table = pb.table(
            frame, group="site", columns=[*names, child], kinds={"visits": "count"}
            if child == "visits" else {},
        )  # fmt: skip
        arcs = [(name, child) for name in names]
        net = pb.learn(table, start=arcs, search=pb.HillClimb(max_iter=0))
        found = net.effects(by="data set", interval=0.5)
        known = found.dropna(subset=["lower"])
        assert len(known) >= data_sets * parents / 2
        assert (known["lower"] <= known["effect"]).all()
        assert (known["effect"] <= known["upper"]).all()


def test_effects_that_follow_from_levels_are_known_as_well_as_in_lme4() -> None:
    """With correlations of 1 and many data sets the conditional variance is all that matters."""
    frame = correlated(3, data_sets=60, rows=12, parents=1, correlation=1.0)
    fit = pb.fit_node(pb.stats(frame, group="site", columns=["x0", "y"]), "y", ["x0"])
    assert fit.random_corr[0, 1] > 0.95
    np.testing.assert_allclose(fit.intervals.se[:, 1], fit.coef_sd[:, 1], rtol=0.4)
    alone = np.sqrt(fit.sigma2 * own_estimates(fit.sums).cov[:, 1])
    assert fit.intervals.se[:, 1].mean() < 0.75 * alone.mean()


@pytest.mark.parametrize(("F", "slope_sd"), [(4, 0.5), (6, 0.2), (10, 0.5)])
def test_the_range_for_a_new_data_set_covers(F: int, slope_sd: float) -> None:
    rng, inside = np.random.default_rng(2), []
    for _ in range(150):
        stats, _ = table(rng, F, 30, slope_sd, 0.0, 1)
        fit = pb.fit_node(stats, "y", ["x0"])
        half = t.ppf(0.975, fit.population_df[1]) * fit.intervals.new_se[1]
        ends = norm.cdf((fit.fixed[1] + [-half, half] - 1) / slope_sd)
        inside.append(ends[1] - ends[0])
    assert 0.93 < np.mean(inside) < 0.995


def test_effects_by_data_set() -> None:
    frame = simulate(7, data_sets=4, rows=15, parents=2)
    net = pb.learn(frame, group="F", start=[("x1", "y")], search=pb.HillClimb(max_iter=0))
    found = net.effects(0.9, by="data set")
    told = ["parent", "level", "child", "outcome", "scale", "data_set"]
    assert list(found) == [*told, "effect", "se", "df", "lower", "upper"]
    assert found["data_set"].tolist() == list(net.levels)
    fit = net.fits["y"]
    assert found["effect"].tolist() == fit.coef[:, 1].tolist()
    ends = t.interval(0.9, fit.intervals.df[:, 1], fit.coef[:, 1], found["se"])
    np.testing.assert_allclose(found[["lower", "upper"]].T, ends)
    new = net.adapt(frame[frame["F"] == "set 1"].drop(columns="F"), "new")
    assert new.effects(0.9, by="data set")["data_set"].tolist() == [*net.levels, "new"]
    pd.testing.assert_frame_equal(new.effects(0.9, by="data set")[:4], found)
    empty = dataclasses.replace(net.fits["y"], sums=None)
    assert empty.intervals is None
    assert np.isinf(empty.population_df).all()


@pytest.mark.parametrize(
    ("F", "rows", "slope_sd", "spread", "parents", "pooling"),
    [
        (3, 20, 0.0, 0.0, 1, pb.Partial()),
        pytest.param(4, 50, 0.5, 0.0, 1, pb.Partial(), marks=pytest.mark.slow),
        pytest.param(6, 20, 0.15, 0.0, 3, pb.Partial(), marks=pytest.mark.slow),
        (10, 20, 0.5, 0.4, 1, pb.Partial(residuals="pooled")),
        pytest.param(6, 20, 0.0, 0.0, 1, pb.Partial("intercept"), marks=pytest.mark.slow),
        (4, 20, 0.5, 0.0, 1, pb.NoPooling()),
    ],
)
def test_intervals_cover(
    F: int, rows: int, slope_sd: float, spread: float, parents: int, pooling: pb.Partial
) -> None:
    rng, tables = np.random.default_rng(1), 250
    names = [f"x{k}" for k in range(parents)]
    population, own, width, alone = 0, [], [], []
    for _ in range(tables):
        stats, slope = table(rng, F, rows, slope_sd, spread, parents)
        fit = pb.fit_node(stats, "y", names, pooling=pooling)
        value, se, df = fit.population(1)
        population += abs(value - 1) < t.ppf(0.975, df) * se
        half = (t.ppf(0.975, fit.intervals.df) * fit.intervals.se)[:, 1:]
        own.append(np.abs(fit.coef[:, 1:] - slope) < half)
        width.append(half)
        ols = own_estimates(fit.sums)
        df = rows - parents - 1
        alone.append(t.ppf(0.975, df) * np.sqrt(ols.rss[:, None] / df * ols.cov[:, 1:]))
    low, high = binom.ppf([1e-4, 1 - 1e-4], tables, 0.95)
    assert low <= population <= high
    assert np.mean(own) > 0.92
    # Intervals are around estimates that few data sets shrink too far when effects differ much.
    assert np.mean(width) < np.mean(alone) * (1.04 if F < 5 and slope_sd > 0 else 1.0001)
