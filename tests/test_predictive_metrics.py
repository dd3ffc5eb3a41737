"""Predicted probabilities against scikit-learn's numbers; divergences that are simulated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from helpers import given, reference
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import mannwhitneyu, nbinom, norm

import poolbn as pb
from poolbn import metrics

CASES = reference("predictions/predictions.json")
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: str(len(case["levels"])))
STAY = pb.HillClimb(max_iter=0)


def frame(case: dict) -> pd.DataFrame:
    return pd.DataFrame(case["probabilities"], columns=case["levels"])


# Predictions


@each_case
def test_scores_are_those_of_scikit_learn(case: dict) -> None:
    table = frame(case)
    assert metrics.log_loss(case["actual"], table) == pytest.approx(case["log_loss"], rel=1e-12)
    assert metrics.brier(case["actual"], table) == pytest.approx(case["brier"], rel=1e-12)
    assert metrics.auc(case["actual"], table) == pytest.approx(case["auc"], rel=1e-12)
    found = metrics.f1(case["actual"], case["predicted"], case["levels"])
    assert list(found.by_data_set.values()) == pytest.approx(case["f1"], rel=1e-12)


@each_case
def test_orders_and_the_most_probable_level_do_not_matter(case: dict) -> None:
    table = frame(case)
    rows, columns = table.index[::-1], table.columns[::-1]
    changed = table.loc[rows, columns].assign(most_probable=case["predicted"][::-1])
    for score in (metrics.log_loss, metrics.brier, metrics.auc):
        found = score(case["actual"][::-1], changed)
        assert found == pytest.approx(score(case["actual"], table), rel=1e-12)


@settings(deadline=None, derandomize=True)
@drawn(st.lists(st.tuples(st.booleans(), st.integers(0, 8)), min_size=2, max_size=30))
def test_the_area_is_the_statistic_of_mann_and_whitney(rows: list[tuple[bool, int]]) -> None:
    came, p = np.array([own for own, _ in rows]), np.array([k for _, k in rows]) / 8
    table = pd.DataFrame({"False": 1 - p, "True": p})
    if came.all() or not came.any():
        with pytest.raises(pb.DataError, match="all rows of actual have the same level"):
            metrics.auc(came, table)
        return
    expected = mannwhitneyu(p[came], p[~came]).statistic / came.sum() / (~came).sum()
    assert metrics.auc(came, table) == pytest.approx(expected, rel=1e-12)


def test_perfect_and_impossible_predictions() -> None:
    sure = pd.DataFrame({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    assert metrics.log_loss("ab", sure) == metrics.brier("ab", sure) == 0
    assert metrics.auc("ab", sure) == 1
    assert metrics.log_loss("ba", sure) == math.inf
    assert metrics.brier("ba", sure) == 1
    assert metrics.auc("ba", sure) == 0


def test_classified_rows_can_be_scored() -> None:
    true = pb.random_network(pb.random_dag(4, 1, seed=1), data_sets=3, seed=1)
    table = pb.random_table(true, 200, seed=1)
    found = true.classify(table)
    assert metrics.log_loss(table["F"], found) < math.log(3)  # that of one third each
    assert metrics.auc(table["F"], found) > 0.9


@pytest.mark.parametrize(
    ("actual", "table", "words"),
    [
        (["a"], {"a": [0.5, 0.5], "b": [0.5, 0.5]}, "actual has 1 row and probabilities 2"),
        (["c"], {"a": [0.5], "b": [0.5]}, "row 1 of actual has 'c'"),
        (["a"], {"a": [0.5], "b": [0.4]}, "row 1 of probabilities does not add up to 1"),
        (["a"], {"a": [1.5], "b": [-0.5]}, "row 1 of probabilities does not add up to 1"),
        (["a"], {"a": ["x"], "b": [0.4]}, "probabilities is not a table of numbers"),
        (["a"], {"a": [np.nan], "b": [0.4]}, "probabilities has no value in row 1"),
    ],
)
def test_wrong_tables(actual: list[str], table: dict, words: str) -> None:
    for score in (metrics.log_loss, metrics.brier, metrics.auc):
        with pytest.raises(pb.DataError, match=words):
            score(actual, pd.DataFrame(table))


# Divergence


def near(found: metrics.KlEstimate, exact: float) -> None:
    assert found.se > 0
    assert abs(found.value - exact) < 4 * found.se


@pytest.mark.parametrize("seed", range(5))
def test_the_estimate_is_near_the_closed_form_of_continuous_networks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nets = []
    for text in ("[a][b|a][c|a:b]", "[c][a|c][b|a]"):
        dag = pb.Dag.from_modelstring(text)
        coef = {v: rng.normal(size=(2, len(dag.parents(v)) + 1)) for v in dag.nodes}
        nets.append(given(dag, coef, rng.uniform(0.8, 1.2, (2, 3)), ["x", "y"], [3, 1]))
    for weights in ("prior", "sum"):
        found = metrics.kl_estimate(*nets, weights=weights, rows=4000, seed=seed)
        near(found, metrics.kl(*nets, weights=weights))


def mixed(seed: int, arcs: list[tuple[str, str]], pooling: object) -> pb.Network:
    rng = np.random.default_rng(seed)
    n = 200
    u, v = rng.integers(0, 2, n), rng.integers(0, 3, n)
    table = pd.DataFrame(
        {
            "site": np.where(np.arange(n) % 3 == 0, "k", "m"),
            "u": np.where(u == 1, "yes", "no"),
            "v": np.array(["r", "s", "t"])[(v + u * rng.integers(0, 2, n)) % 3],
            "w": rng.random(n) < 0.3 + 0.2 * u + 0.1 * v,
        }
    )
    return pb.learn(table, group="site", start=arcs, search=STAY, pooling=pooling)


def exact(true: pb.Network, other: pb.Network) -> float:
    """The sum over all configurations, weighted by the shares of data sets."""
    total = 0.0
    for level, share in zip(true.levels, true.n / true.n.sum(), strict=True):
        for values in itertools.product(*(true.fits[v].categories for v in true.dag.nodes)):
            row = dict(zip(true.dag.nodes, values, strict=True))
            logs = [log_probability(net, row, level) for net in (true, other)]
            total += share * math.exp(logs[0]) * (logs[0] - logs[1])
    return total


def log_probability(net: pb.Network, row: dict[str, str], level: str) -> float:
    columns: dict[str, np.ndarray] = {}
    for node, value in row.items():
        levels = net.fits[node].categories
        columns[node] = np.array([float(levels.index(value))])
    sets = np.array([net.levels.index(level)])
    return sum(
        math.log(net.fits[node].mean(columns, sets)[0, int(columns[node][0])]) for node in row
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("how", ["table", "logit"])
def test_the_estimate_is_near_the_sum_over_all_levels(seed: int, how: str) -> None:
    true = mixed(seed, [("u", "v"), ("v", "w"), ("u", "w")], pb.NoPooling(discrete=how))
    other = mixed(seed + 9, [("w", "v"), ("v", "u")], pb.Complete(discrete=how))
    near(metrics.kl_estimate(true, other, rows=4000, seed=seed), exact(true, other))


def test_the_order_of_levels_nodes_and_data_sets_does_not_matter() -> None:
    true, other = mixed(1, [("u", "v")], "none"), mixed(2, [("v", "u"), ("v", "w")], "none")
    rng = np.random.default_rng(3)
    table = pb.random_table(other, 400, seed=3)
    arcs = [("v", "u"), ("v", "w")]
    turned = table.sample(frac=1, random_state=1)[["w", "v", "u", "site"]]
    for name in ("u", "v", "w"):
        levels = other.fits[name].categories
        order = [levels[k] for k in rng.permutation(len(levels))]
        turned[name] = pd.Categorical(turned[name].astype(str), categories=order)
    found = [
        metrics.kl_estimate(
            true, pb.learn(own, group="site", start=arcs, search=STAY, pooling="none"), rows=500
        )
        for own in (table, turned)
    ]
    assert found[0].value == pytest.approx(found[1].value, rel=1e-10)


def counts(seed: int, over: float) -> pb.Network:
    rng = np.random.default_rng(seed)
    mean = 4.0 * (rng.gamma(over, 1 / over, 300) if over < math.inf else 1)
    table = pd.DataFrame({"F": np.repeat(["a", "b", "c"], 100), "k": rng.poisson(mean)})
    return pb.learn(table, group="F", kinds={"k": "count"}, pooling="complete")


def test_the_estimate_is_near_the_sum_over_counts() -> None:
    true, other = counts(1, math.inf), counts(2, math.inf)
    a, b = (math.exp(net.fits["k"].coef[0, 0, 0]) for net in (true, other))
    assert math.isinf(true.fits["k"].dispersion)
    near(metrics.kl_estimate(true, other), a * math.log(a / b) - a + b)
    true, other = counts(3, 1.5), counts(4, 3.0)
    logs = []
    for net in (true, other):
        mean, size = math.exp(net.fits["k"].coef[0, 0, 0]), net.fits["k"].dispersion
        assert math.isfinite(size)
        logs.append(nbinom.logpmf(np.arange(500), size, size / (size + mean)))
    near(metrics.kl_estimate(true, other), float(np.exp(logs[0]) @ (logs[0] - logs[1])))


def test_the_estimate_is_near_the_integral_with_a_continuous_parent() -> None:
    nets = []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        x = rng.normal(0.2 * seed, 1, 300)
        y = np.where(rng.random(300) < expit(seed * x - 0.5), "yes", "no")
        table = pd.DataFrame({"F": np.repeat(["a", "b", "c"], 100), "x": x, "y": y})
        arcs = [("x", "y")]
        nets.append(pb.learn(table, group="F", start=arcs, search=STAY, pooling="complete"))
    normals = [norm(n.fits["x"].coef[0, 0], math.sqrt(n.fits["x"].sigma2[0])) for n in nets]
    coefs = [net.fits["y"].coef[0, 0] for net in nets]

    def inner(x: float) -> float:
        p, q = (float(expit(b[0] + b[1] * x)) for b in coefs)
        both = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
        return normals[0].pdf(x) * (normals[0].logpdf(x) - normals[1].logpdf(x) + both)

    near(metrics.kl_estimate(*nets), quad(inner, -8, 8)[0])


def test_no_divergence_from_itself_and_the_seed_decides() -> None:
    true, other = mixed(1, [("u", "v")], "none"), mixed(2, [], "complete")
    assert metrics.kl_estimate(true, true, rows=10) == metrics.KlEstimate(0.0, 0.0)
    assert metrics.kl_estimate(true, other) == metrics.kl_estimate(true, other)
    assert metrics.kl_estimate(true, other) != metrics.kl_estimate(true, other, seed=1)


def discrete(rows: list[tuple[str, str]]) -> pb.Network:
    table = pd.DataFrame(rows * 5, columns=["u", "v"]).assign(F="a")
    table.loc[len(table)] = ["n", "n", "b"]
    arcs = [("u", "v")]
    how = pb.Complete(discrete="table")
    return pb.learn(table, group="F", start=arcs, search=STAY, pooling=how)


def test_what_the_other_network_rules_out_is_infinite() -> None:
    true = discrete([("n", "n"), ("n", "y"), ("y", "n"), ("y", "y")])
    other = discrete([("n", "n"), ("n", "y"), ("y", "y")])  # never ("y", "n")
    found = metrics.kl_estimate(true, other)
    assert found.value == math.inf
    assert math.isnan(found.se)
    assert math.isfinite(metrics.kl_estimate(other, true).value)


def test_networks_that_cannot_be_compared() -> None:
    true = discrete([("n", "n"), ("y", "y"), ("n", "y")])
    with pytest.raises(pb.DataError, match=r"'u' is not; use metrics.kl_estimate"):
        metrics.kl(true, true)
    third = discrete([("n", "n"), ("y", "y"), ("n", "y"), ("x", "y")])
    with pytest.raises(pb.DataError, match="the level 'x' of 'u'"):
        metrics.kl_estimate(true, third)
    ab = pb.Dag(["u", "v"])
    zero = np.zeros((2, 1))
    numbers = given(ab, {"u": zero, "v": zero}, np.ones((2, 2)), ["a", "b"])
    with pytest.raises(pb.DataError, match="'u' is discrete in one network and continuous in"):
        metrics.kl_estimate(true, numbers)
    stiff = given(ab, {"u": zero, "v": zero}, np.array([[1.0, 1], [1, 0]]), ["a", "b"])
    with pytest.raises(pb.DataError, match="'v' has a residual variance of 0 in the data set 'b'"):
        metrics.kl_estimate(numbers, stiff)
