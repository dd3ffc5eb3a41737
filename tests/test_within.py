"""Gains within data sets: levels of a node are free there, and only slopes are pooled."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special, stats

import poolbn as pb
from poolbn.moments.table import FilledTable
from poolbn.nodes import kinds, within
from poolbn.nodes.design import Floats
from poolbn.nodes.links import Family, Response
from poolbn.run.compiling import kernels

FREE = np.zeros(5)  # penalties
GRID = np.linspace(-6, 6, 241)  # slopes


def bic(table: pb.Table) -> Floats:
    of = np.log([table.n_rows, len(table.levels), table.n_rows / len(table.levels)]) / 2
    return np.append(of, [0.0, 0.0])  # and nothing for variances between units


def levels(utility: Floats, rng: np.random.Generator) -> Floats:
    """A level for each row, from utilities (n, K)."""
    return np.asarray((utility + rng.gumbel(size=utility.shape)).argmax(axis=1))


def world(
    F: int, n: int, slope: float, sd: float, seed: int, *, K: int = 2, rho: float = 1.0
) -> pd.DataFrame:
    """Levels of all columns go together; effects of x and z on the level y and the count c."""
    rng = np.random.default_rng(seed)
    found = []
    for j in range(F):
        u = rng.normal()
        v = rho * u + np.sqrt(1 - rho**2) * rng.normal()
        own = slope + sd * rng.normal()
        x = rng.normal(size=n)
        z = levels(np.outer(np.ones(n), np.arange(3) * u), rng)
        y = levels(np.outer(v + own * x, np.arange(K)), rng)
        c = rng.poisson(np.exp(0.5 + 0.5 * v + own * x / 2))
        part = pd.DataFrame({"x": x + u, "z": z, "y": y, "c": c, "v": v}).assign(site=f"s{j}")
        found.append(part)
    frame = pd.concat(found, ignore_index=True)
    return frame.assign(y="y" + frame["y"].astype(str), z="z" + frame["z"].astype(str))


def table_of(frame: pd.DataFrame, *columns: str) -> pb.Table:
    counts = {"c": "count"} if "c" in columns else None
    return pb.table(frame[["site", *columns]], group="site", kinds=counts)


def integrated(logliks: Floats) -> float:
    """The maximum over normal distributions of slopes, of log-likelihoods (F, GRID)."""

    def value(at: Floats) -> float:
        weight = stats.norm.logpdf(GRID, at[0], np.exp(at[1]))
        weight -= special.logsumexp(weight)
        return -float(special.logsumexp(logliks + weight, axis=1).sum())

    starts = [(0.0, -1.0), (0.5, 0.0)]
    ends = [optimize.minimize(value, start, method="Nelder-Mead").fun for start in starts]
    return -float(min(ends))


def conditional_logit(frame: pd.DataFrame) -> tuple[Floats, float]:
    """Log-likelihoods given how often each level occurs, by sums over all arrangements, (F, GRID).

    And without parents.
    """
    found, none = [], 0.0
    for _, rows in frame.groupby("site"):
        y, x = (rows["y"] == "y1").to_numpy(), rows["x"].to_numpy()
        sums = np.full((len(GRID), y.sum() + 1), -np.inf)
        sums[:, 0] = 0.0
        for each in np.outer(x - x.mean(), GRID):
            sums[:, 1:] = np.logaddexp(sums[:, 1:], sums[:, :-1] + each[:, None])
        found.append(GRID * (x - x.mean())[y].sum() - sums[:, -1])
        none -= np.log(special.comb(len(y), y.sum()))
    return np.array(found), none


# Logits


@pytest.mark.parametrize(("F", "n", "seed"), [(40, 6, 1), (20, 20, 2), (8, 100, 3)])
def test_the_likelihood_is_that_of_conditional_logistic_regression(
    F: int, n: int, seed: int
) -> None:
    frame = world(F, n, 0.8, 0.0, seed)
    logliks, none = conditional_logit(frame)
    exact = logliks.sum(axis=0).max() - none
    rows = within._rows(table_of(frame, "x", "y"), "y", ["x"])
    T = within._basis(rows, [range(1)])
    assert T is not None
    problem, result = within._Problem(rows, Response(levels=2), T), np.zeros(6)
    problem._fit(kernels("within").COMMON, 0.0, result)
    ours = result[0] + result[2] / 2 - within._without(rows.per_level())
    assert result[1] == 1.0
    # Exact but for an error of second order in 1 / n.
    assert exact > 5
    assert ours == pytest.approx(exact, rel=1 / n**2)


@pytest.mark.parametrize(
    ("F", "n", "slope", "sd"), [(40, 10, 0.6, 0.4), (20, 50, 0.5, 0.7), (8, 120, 0.0, 0.4)]
)
def test_slopes_that_vary_are_integrated_out(F: int, n: int, slope: float, sd: float) -> None:
    for seed in range(2):
        frame = world(F, n, slope, sd, seed)
        logliks, none = conditional_logit(frame)
        exact = max(integrated(logliks), float(logliks.sum(axis=0).max())) - none
        ours = within.gains(table_of(frame, "x", "y"), "y", ["x"], FREE)
        assert ours == pytest.approx(exact, abs=0.15 + 0.02 * exact)


def test_levels_and_common_slopes_are_those_of_dummies() -> None:
    frame = world(4, 40, 0.7, 0.3, 5, K=3)
    rows = within._rows(table_of(frame, "x", "z", "y"), "y", ["x", "z"])
    T = within._basis(rows, [range(1), range(1, 3)])
    assert T is not None
    problem, result = within._Problem(rows, Response(levels=3), T), np.zeros(6)
    problem._fit(kernels("within").COMMON, 0.0, result)
    sites = np.repeat(np.arange(4), np.diff(rows.offsets))
    own = frame["z"].to_numpy()
    X = np.column_stack([np.eye(4)[sites], frame["x"], own == "z1", own == "z2"])
    y = frame["y"].str[1:].astype(int).to_numpy()

    def minus(at: Floats) -> float:
        utility = np.column_stack([np.zeros(len(y)), X @ at.reshape(-1, 2)])
        return -float((utility[np.arange(len(y)), y] - special.logsumexp(utility, axis=1)).sum())

    found = optimize.minimize(minus, np.zeros(14), method="BFGS")
    assert result[0] == pytest.approx(-found.fun, abs=1e-4)


# Tables


def table_gains(counts: Floats) -> Floats:
    """Gains of a common table and of tables around it, the concentration, from counts."""
    F, C, K = counts.shape
    kernel, result = kernels("within"), np.empty(4)
    lines = np.empty((kernel.TABLE_LINES, max(F * C, F * K, C * K)))
    kernel.tables(counts, np.empty(counts.shape), lines, np.empty((2, K, K)), result)
    return np.array([result[1] - result[0], result[2] - result[0], result[3]])


def hypergeometric(counts: Floats) -> Floats:
    """Log-likelihoods of 2 x 2 tables given their margins, by log odds ratio, (F, GRID)."""
    found = []
    for (a, b), (c, d) in counts:
        k = np.arange(max(0, b + d - a - b), min(c + d, b + d) + 1)
        ways = np.log(special.comb(c + d, k) * special.comb(a + b, b + d - k))
        all_ways = special.logsumexp(ways + GRID[:, None] * k, axis=1)
        found.append(ways[k == d] + GRID * d - all_ways)
    return np.array(found)


def tables(F: int, n: int, slope: float, sd: float, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    p = special.expit(rng.normal(size=(F, 1)) + (slope + sd * rng.normal(size=(F, 1))) * [0, 1])
    ones = rng.binomial(n, p)
    return np.stack([n - ones, ones], axis=2).astype(float)


@pytest.mark.parametrize(("n", "seed"), [(4, 0), (12, 1), (50, 2)])
def test_a_common_table_is_the_conditional_one(n: int, seed: int) -> None:
    counts = tables(12, n, 0.9, 0.0, seed)
    counts = counts[(counts.sum(axis=1) > 0).all(axis=1)]
    logliks = hypergeometric(counts).sum(axis=0)
    exact = logliks.max() - logliks[GRID == 0][0]
    # A saddlepoint approximation, of which the two ends of a difference have the same error.
    assert table_gains(counts)[0] == pytest.approx(exact, rel=1 / n)


def test_a_common_table_of_many_cells_is_the_loglinear_model() -> None:
    rng = np.random.default_rng(8)
    counts = rng.poisson(5, size=(4, 3, 3)).astype(float)
    p = np.empty(counts.shape)
    kernel = kernels("within")
    kernel.tables(
        counts, p, np.empty((kernel.TABLE_LINES, 12)), np.empty((2, 3, 3)), result := np.empty(4)
    )
    assert result[3] == np.inf  # so p are those of the common table, but for a large concentration

    def minus(at: Floats) -> float:
        level, slope = np.zeros((4, 1, 3)), np.zeros((1, 3, 3))
        level[:, 0, 1:] = at[:8].reshape(4, 2)
        slope[0, 1:, 1:] = at[8:].reshape(2, 2)
        logs = level + slope
        return -float((counts * (logs - special.logsumexp(logs, axis=2, keepdims=True))).sum())

    found = optimize.minimize(minus, np.zeros(12), method="BFGS")
    assert (counts * np.log(p)).sum() == pytest.approx(-found.fun, abs=2e-3)


@pytest.mark.parametrize("sd", [0.0, 0.8])
def test_tables_that_differ_gain_as_odds_ratios_that_vary(sd: float) -> None:
    for seed in range(3):
        counts = tables(25, 40, 0.5, sd, seed)
        logliks = hypergeometric(counts)
        none = logliks[:, GRID == 0].sum()
        exact = max(integrated(logliks), float(logliks.sum(axis=0).max())) - none
        # Another distribution of the same differences.
        assert table_gains(counts)[1] == pytest.approx(exact, abs=0.5 + 0.06 * exact)


# Counts


def test_slopes_of_counts_are_those_of_multinomial_distributions() -> None:
    frame = world(12, 30, 0.5, 0.5, 4)
    table = table_of(frame, "x", "c")
    rows = within._rows(table, "c", ["x"])
    T = within._basis(rows, [range(1)])
    assert T is not None
    logliks = []
    for _, own in frame.groupby("site"):
        x = (own["x"] - own["x"].mean()).to_numpy()
        shares = special.log_softmax(np.outer(GRID, x), axis=1)
        logliks.append(shares @ own["c"].to_numpy())
    own = np.array(logliks)
    exact = integrated(own) - own[:, GRID == 0].sum()
    poisson = Response(Family.POISSON)
    ours = (
        within._Problem(rows, poisson, T).value()
        - within._Problem(rows, poisson, T[:1, :1]).value()
    )
    assert ours == pytest.approx(exact, abs=0.1)
    assert exact > 20


def test_negative_binomial_counts_have_levels_and_slopes_of_dummies() -> None:
    frame = world(5, 60, 0.5, 0.0, 6)
    rng = np.random.default_rng(6)
    frame["c"] = rng.negative_binomial(1.5, 1.5 / (1.5 + np.exp(1 + 0.4 * frame["x"])))
    rows = within._rows(table_of(frame, "x", "c"), "c", ["x"])
    T = within._basis(rows, [range(1)])
    assert T is not None
    theta = 1.7
    problem = within._Problem(rows, Response(Family.NEGATIVE_BINOMIAL), T)
    result = np.zeros(6)
    problem._fit(kernels("within").COMMON, np.log(theta), result)
    X = np.column_stack([np.eye(5)[np.repeat(np.arange(5), 60)], frame["x"]])
    c = frame["c"].to_numpy()

    def minus(at: Floats) -> float:
        return -float(stats.nbinom.logpmf(c, theta, theta / (theta + np.exp(X @ at))).sum())

    found = optimize.minimize(minus, np.zeros(6), method="BFGS")
    constant = special.gammaln(c + 1.0).sum()
    assert result[0] + result[5] == pytest.approx(-found.fun + constant, abs=1e-3)
    # The dispersion that is found is the best, and adjusted for levels.
    best, log_theta = problem.disperse(0.0)
    near = [problem.value(log_theta + step) for step in (-0.2, -0.02, 0.0, 0.02, 0.2)]
    assert max(near) <= best + 2e-3
    assert [np.sign(b - a) for a, b in pairwise(near)] == [1, 1, -1, -1]


# What does not matter


@pytest.mark.parametrize("child", ["y", "c"])
def test_orders_units_and_names_do_not_matter(child: str) -> None:
    frame = world(6, 30, 0.6, 0.4, 9, K=3)
    frame["w"] = np.where(np.random.default_rng(9).random(len(frame)) < 0.4, "no", "yes")
    for parents in (["x"], ["z", "w"], ["w", "x", "z"]):
        table = table_of(frame, *parents, child)
        each = bic(table)
        before = within.gains(table, child, parents, each)
        other = frame.sample(frac=1.0, random_state=1)
        other["x"] = 5 - 1000 * other["x"]
        other["site"] = "t" + (100 - other["site"].str[1:].astype(int)).astype(str)
        other["y"] = other["y"].map({"y0": "b", "y1": "c", "y2": "a"})
        other["z"] = other["z"].map({"z0": "c", "z1": "a", "z2": "b"})
        turned = table_of(other, child, *parents[::-1])
        after = within.gains(turned, child, parents[::-1], each)
        assert after == pytest.approx(before, abs=1e-3)


def test_data_sets_that_say_nothing_change_nothing() -> None:
    frame = world(6, 40, 0.6, 0.4, 10, K=3)
    more = frame.head(30).assign(site="more", y="y1", c=0)
    both = pd.concat([frame, more])
    for child, parents in (("y", ["x"]), ("y", ["z"]), ("c", ["x"])):
        few, many = (table_of(rows, *parents, child) for rows in (frame, both))
        before = within.gains(few, child, parents, FREE)
        assert within.gains(many, child, parents, FREE) == pytest.approx(before, abs=1e-8)


def test_parents_that_add_nothing_within_data_sets_are_not_wanted() -> None:
    frame = world(5, 40, 0.5, 0.3, 11, K=3)
    frame["copy"] = 3 - frame["x"] + frame["site"].str[1:].astype(int)  # x but for levels
    frame["flag"] = np.where(frame["z"] == "z1", "yes", "no")
    frame["w"] = np.random.default_rng(2).normal(size=len(frame))
    for child in ("y", "c"):
        table = table_of(frame, "x", "copy", "z", "flag", "w", child)
        assert within.gains(table, child, [], FREE) == 0.0
        assert within.gains(table, child, ["x", "copy"], FREE) == -np.inf
        assert within.gains(table, child, ["flag", "z"], FREE) == -np.inf
        assert np.isfinite(within.gains(table, child, ["flag", "x", "w"], FREE))


# What it is for


@pytest.mark.parametrize(("seed", "child"), [(300000, "X2"), (300000, "X4"), (301000, "X8")])
def test_slopes_that_separate_data_sets_gain_no_more_than_certainty(seed: int, child: str) -> None:
    true = pb.random_network(pb.random_dag(12, 1.5, seed=seed), 20, discrete=0.5, seed=seed)
    frame = pb.random_table(true, 20, seed=seed)
    table = pb.table(frame, group="F")
    parents = [name for name in table.names if name != child]
    # A conditional probability is at most 1: log of the ways to order the levels of each data set.
    n = frame.groupby("F")[child].value_counts().unstack(fill_value=0).to_numpy()
    most = special.gammaln(n.sum(axis=1) + 1).sum() - special.gammaln(n + 1).sum()
    assert 0 < within.gains(table, child, parents, FREE, "logit") < most


def test_tables_that_hardly_differ_have_a_finite_concentration() -> None:
    counts = np.array([
        [[12, 58], [9, 21]], [[3, 28], [4, 65]], [[13, 2], [78, 7]], [[15, 60], [4, 21]],
        [[53, 16], [26, 5]], [[42, 12], [37, 9]], [[11, 32], [13, 44]], [[24, 67], [1, 8]],
        [[47, 11], [39, 3]], [[12, 48], [5, 35]], [[11, 17], [29, 43]], [[24, 25], [32, 19]],
        [[3, 0], [90, 7]], [[4, 6], [28, 62]], [[1, 63], [0, 36]], [[23, 32], [20, 25]],
        [[10, 44], [4, 42]], [[20, 20], [25, 35]], [[12, 87], [0, 1]],
    ], dtype=float)  # fmt: skip
    logliks = hypergeometric(counts).sum(axis=0)
    common, varying, concentration = table_gains(counts)
    assert common == pytest.approx(logliks.max() - logliks[GRID == 0][0], abs=0.02)
    assert common <= varying < common + 0.5
    assert concentration > 100


def test_levels_that_go_together_are_no_arcs() -> None:
    kept, fooled = [], []
    for seed in range(6):
        frame = world(120, 12, 0.0, 0.0, seed, K=3)
        frame["c"] = frame["c"] + 2 * (frame["c"] > 2)
        table = table_of(frame, "x", "z", "y", "c")
        each = bic(table)
        families = [("y", ["x"]), ("y", ["z"]), ("c", ["x"]), ("c", ["z"]), ("y", ["x", "z"])]
        kept += [within.gains(table, child, own, each) for child, own in families]
        pair = [("y", ["x"]), ("y", [])]
        with_x, without = kinds.scores(table, pair, [pb.Partial()], each)
        fooled.append(with_x - without)
    assert np.mean(np.array(kept) < 0) >= 0.95
    assert np.mean(np.array(fooled) > 0) >= 0.5


def test_little_is_lost_where_levels_are_known() -> None:
    ours, known = 0.0, 0.0
    for seed in range(8):
        frame = world(30, 30, 0.5, 0.0, seed, rho=0.0)
        ours += within.gains(table_of(frame, "x", "y"), "y", ["x"], FREE)
        x = (frame["x"] - frame.groupby("site")["x"].transform("mean")).to_numpy()
        one, v = (frame["y"] == "y1").to_numpy(), frame["v"].to_numpy()
        slopes = np.linspace(-1, 2, 301)[:, None]
        logliks = np.where(one, slopes * x, 0.0) - np.logaddexp(0, v + slopes * x)
        alone = -np.logaddexp(0, v).sum()
        known += float(logliks.sum(axis=1).max()) - alone
    assert known > 100
    assert ours > 0.9 * known


def test_cells_that_are_drawn_as_they_were_change_nothing() -> None:
    frame = world(6, 40, 0.6, 0.3, 12, K=3)
    columns = ["x", "z", "y", "c"]
    table, gaps = table_of(frame, *columns), np.random.default_rng(12).random((240, 4)) < 0.1
    values = np.where(gaps.T, np.nan, np.array(table.values))
    cells = np.array(table.values)[:, gaps.any(axis=1)]
    filled = FilledTable.of(replace(table, values=values), np.array([cells, cells]))
    for child, parents in (("y", ["x"]), ("y", ["z"]), ("c", ["x", "z"])):
        before = within.gains(table, child, parents, FREE)
        assert within.gains(filled, child, parents, FREE) == pytest.approx(before, abs=1e-6)


@pytest.mark.parametrize("child", ["X1", "X9", "X13"])
def test_no_likelihood_within_data_sets_is_above_one(child: str) -> None:
    """Where slopes that vary separate data sets there is no maximum, and no score of it."""
    dag = pb.random_dag(14, 1.5, seed=302000)
    network = pb.random_network(dag, 5, discrete=0.5, seed=302000)
    table = pb.table(pb.random_table(network, 30, seed=302000), group="F")
    rows = within._rows(table, child, ())
    assert int(rows.y.max()) == 2
    none = within._without(rows.per_level())
    for parents in combinations(sorted({"X1", "X3", "X5", "X7", "X8", "X14"} - {child}), 4):
        assert none + within.gains(table, child, parents, FREE) < 0.0
