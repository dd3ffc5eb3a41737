from __future__ import annotations

import dataclasses
import math
from collections import Counter
from functools import cache
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from helpers import reference, simulate
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import binom, chi2, chisquare, kstest, norm

import poolbn as pb
from poolbn.nodes.regression import RegressionFit

WORDINGS = ["code", "paper"]
each_wording = pytest.mark.parametrize("wording", WORDINGS)


@cache
def network(wording: str = "code", heterogeneous: bool = True) -> pb.Network:
    dag = pb.random_dag(8, 2, seed=3)
    return pb.random_network(dag, 4, seed=5, heterogeneous=heterogeneous, wording=wording)


@cache
def large(wording: str) -> pb.Network:
    """Many coefficients: 30 nodes, of which each has all earlier ones as parents."""
    return pb.random_network(pb.random_dag(30, 15), 40, seed=1, wording=wording)


# Graphs


@given(st.integers(2, 25), st.floats(0, 1), st.integers(0, 10**6))
def test_graphs_are_connected_and_go_forward(N: int, share: float, seed: int) -> None:
    least = min(N / 2, math.log(N) / 2 + 0.5)
    dag = pb.random_dag(N, least + share * (N / 2 - least), seed=seed)
    assert dag.nodes == tuple(f"X{i + 1}" for i in range(N))
    assert nx.is_weakly_connected(dag.to_networkx())
    assert all(int(parent[1:]) < int(child[1:]) for parent, child in dag.arcs)


def test_mean_number_of_parents() -> None:
    """Where almost all graphs are connected, the arcs are 190 coins."""
    arcs = sum(len(pb.random_dag(20, 4, seed=seed).arcs) for seed in range(100))
    assert 0.001 < binom.cdf(arcs, 100 * 190, 2 * 4 / 20) < 0.999


def test_graphs_that_are_not_connected_are_drawn_again() -> None:
    """Of three nodes: each of the connected graphs as often as coins would have it."""
    share = 2 * 0.6 / 3
    seen = Counter(len(pb.random_dag(3, 0.6, seed=seed).arcs) for seed in range(2000))
    chance = np.array([3 * share**2 * (1 - share), share**3])
    assert chisquare([seen[2], seen[3]], 2000 * chance / chance.sum()).pvalue > 0.001
    pairs = Counter(
        pb.random_dag(3, 0.6, seed=seed).arcs
        for seed in range(2000)
        if len(pb.random_dag(3, 0.6, seed=seed).arcs) == 2
    )
    arcs = [("X1", "X2"), ("X1", "X3"), ("X2", "X3")]
    assert set(pairs) == set(combinations(arcs, 2))
    assert chisquare(list(pairs.values())).pvalue > 0.001


def test_graphs_without_a_choice() -> None:
    assert pb.random_dag(1, 0).nodes == ("X1",)
    assert len(pb.random_dag(6, 3).arcs) == 15


def test_the_sparsest_graphs_of_the_study() -> None:
    """One in 1500 is connected."""
    assert len(pb.random_dag(50, 1, seed=1).arcs) >= 49


# Parameters


@each_wording
@pytest.mark.parametrize("heterogeneous", [True, False])
def test_parents_explain_85_percent_in_each_data_set(wording: str, heterogeneous: bool) -> None:
    net = network(wording, heterogeneous)
    for i, node in enumerate(net.dag.nodes):
        if net.dag.parents(node):
            unexplained = net.fits[node].sigma2 / net.joint.cov[:, i, i]
            assert unexplained == pytest.approx(np.full(4, 0.15), rel=1e-10)
        else:
            assert len(set(net.fits[node].sigma2)) == 1


def test_parents_explain_85_percent_of_a_sample() -> None:
    net = network()
    table = pb.random_table(net, 20_000, seed=1)
    for _, rows in table.groupby("F"):
        for node in net.dag.nodes:
            if parents := list(net.dag.parents(node)):
                x = np.column_stack([np.ones(len(rows)), rows[parents]])
                residuals = rows[node] - x @ np.linalg.lstsq(x, rows[node])[0]
                assert residuals.var() / rows[node].var() == pytest.approx(0.15, rel=0.05)


def test_coefficients_as_in_the_code() -> None:
    fits = [large("code").fits[node] for node in large("code").dag.nodes]
    mean = np.concatenate([fit.fixed for fit in fits])
    variance = np.concatenate([np.diagonal(fit.random_cov) for fit in fits])
    coef = np.concatenate([fit.coef.T for fit in fits])
    assert len(mean) == 30 * 31 / 2
    assert kstest(mean - 2, "norm").pvalue > 0.001
    assert kstest(variance, chi2(1).cdf).pvalue > 0.001
    assert kstest(((coef.T - mean) / np.sqrt(variance)).ravel(), "norm").pvalue > 0.001
    for fit in fits:
        assert np.count_nonzero(fit.random_cov) == len(fit.parents) + 1


def test_coefficients_as_in_the_paper() -> None:
    """Normal with mean 2 and a variance of 1 + chi^2_1, shared by a node in a data set."""
    fits = [large("paper").fits[node] for node in large("paper").dag.nodes]
    s2 = chi2.ppf((np.arange(4000) + 0.5) / 4000, 1)
    grid = np.linspace(-12, 12, 481)
    distribution = norm.cdf(grid[:, None] / np.sqrt(1 + s2)).mean(axis=1)
    first = np.concatenate([fit.coef[:, 0] for fit in fits]) - 2  # intercepts are independent
    assert kstest(first, lambda x: np.interp(x, grid, distribution)).pvalue > 0.001
    last = fits[-1].coef - 2  # (40, 30): a data set's variance is about the mean of its squares
    shared, across = (np.square(last).mean(axis=axis).var() for axis in (1, 0))
    assert shared > 1.0  # the variance of chi^2_1 is 2
    assert across < 0.5
    assert all((fit.fixed == 2).all() for fit in fits)
    assert all((fit.random_cov == 2 * np.eye(len(fit.fixed))).all() for fit in fits)


def test_variances_of_roots() -> None:
    dag = pb.Dag([f"v{i}" for i in range(300)])
    net = pb.random_network(dag, 2, seed=1)
    variances = np.array([net.fits[node].sigma2 for node in dag.nodes])
    assert (variances[:, 0] == variances[:, 1]).all()
    assert kstest(variances[:, 0], chi2(1).cdf).pvalue > 0.001


@each_wording
def test_homogeneous_networks_are_the_first_data_set(wording: str) -> None:
    one, many = network(wording, False), network(wording, True)
    for node in one.dag.nodes:
        assert (one.fits[node].coef == many.fits[node].coef[0]).all()
        assert (one.fits[node].sigma2 == many.fits[node].sigma2[0]).all()
        assert (one.fits[node].fixed == many.fits[node].coef[0]).all()
        assert one.fits[node].random_cov is None
        assert len(np.unique(many.fits[node].coef[:, 0])) == 4


def test_the_truth_is_an_ordinary_network(tmp_path: Path) -> None:
    net = network()
    assert net.joint.prior.tolist() == [0.25] * 4
    assert all(fit.status.ok for fit in net.fits.values())
    assert math.isnan(net.score)
    assert "simulated" in repr(net)
    assert len(net.effects()) == len(net.dag.arcs)
    assert "simulated" in str(net.fits["X8"])
    net.save(tmp_path / "net.json")
    loaded = pb.load(tmp_path / "net.json")
    assert loaded.dag == net.dag
    for node, fit in net.fits.items():
        for field in dataclasses.fields(fit):
            mine, yours = getattr(fit, field.name), getattr(loaded.fits[node], field.name)
            assert np.array_equal(mine, yours) or field.name == "loglik", field.name
    assert math.isnan(loaded.score)
    parameters = sum(fit.n_params for fit in net.fits.values())
    assert parameters == sum(4 * (len(net.dag.parents(node)) + 2) for node in net.dag.nodes)


# Tables


def test_tables_have_the_moments_of_the_network() -> None:
    net, n = network(), 50_000
    table = pb.random_table(net, n, seed=2)
    for j, level in enumerate(net.levels):
        X = table.loc[table["F"] == level, list(net.dag.nodes)].to_numpy()
        S = net.joint.cov[j]
        z = (X.mean(axis=0) - net.joint.mean[j]) / np.sqrt(np.diagonal(S) / n)
        assert np.abs(z).max() < 4.5
        error = np.sqrt((S**2 + np.outer(np.diagonal(S), np.diagonal(S))) / n)
        assert np.abs((np.cov(X.T) - S) / error).max() < 4.5


def test_rows_of_each_data_set() -> None:
    table = pb.random_table(network(), [5, 1, 2, 7])
    assert list(table) == ["F", *network().dag.nodes]
    assert table["F"].value_counts(sort=False).to_dict() == dict(
        zip(network().levels, [5, 1, 2, 7], strict=True)
    )
    assert len(pb.random_table(network(), 3)) == 12
    counts = np.array([5, 1, 2, 7])
    assert pb.random_table(network(), counts).equals(table)


def test_tables_of_learned_networks() -> None:
    net = pb.learn(simulate(1, data_sets=3), group="F")
    again = pb.learn(pb.random_table(net, 500, seed=1), group="F", start=net)
    assert again.levels == net.levels
    assert pb.metrics.kl(net, again) < 0.05


@each_wording
def test_seeds(wording: str) -> None:
    def all_of(seed: int) -> tuple[pb.Dag, pb.Network, bytes]:
        dag = pb.random_dag(8, 1.5, seed=seed)
        net = pb.random_network(dag, 3, seed=seed, wording=wording)
        return dag, net, pb.random_table(net, 4, seed=seed)[list(dag.nodes)].to_numpy().tobytes()

    one, again, other = all_of(1), all_of(1), all_of(2)
    assert one[0].arcs == again[0].arcs != other[0].arcs
    for node in one[0].nodes:
        assert one[1].fits[node].coef.tobytes() == again[1].fits[node].coef.tobytes()
        assert one[1].fits[node].sigma2.tobytes() == again[1].fits[node].sigma2.tobytes()
    assert one[2] == again[2] != other[2]


def test_one_seed_for_all_gives_independent_draws() -> None:
    dag = pb.Dag(["x"])
    pairs = []
    for seed in range(300):
        net = pb.random_network(dag, 1, seed=seed)
        x = pb.random_table(net, 1, seed=seed)["x"][0]
        fit = net.fits["x"]
        pairs.append([fit.fixed[0] - 2, (x - fit.coef[0, 0]) / math.sqrt(fit.sigma2[0])])
    assert abs(np.corrcoef(np.transpose(pairs))[0, 1]) < 4 / math.sqrt(300)


@given(st.integers(3, 60), st.integers(10, 5000))
def test_unbalanced_rows(data_sets: int, each: int) -> None:
    total = data_sets * each
    counts = pb.unbalanced_rows(total, data_sets)
    assert len(counts) == data_sets
    assert sum(counts) == total
    assert counts[0] == counts[1]
    assert abs(counts[0] - 0.3 * total) <= 0.5
    assert max(counts[2:]) - min(counts[2:]) <= 1


# Discrete nodes


@cache
def mixed(seed: int = 4, heterogeneous: bool = True) -> pb.Network:
    """X4 and X6 are continuous with discrete parents among others, X5 is discrete with both."""
    dag = pb.random_dag(6, 2.5, seed=6)
    return pb.random_network(dag, 4, seed=seed, discrete=0.5, heterogeneous=heterogeneous)


def discrete_nodes(net: pb.Network) -> list[str]:
    return [node for node, fit in net.fits.items() if isinstance(fit, RegressionFit)]


def numbers(net: pb.Network, rows: pd.DataFrame, names: tuple[str, ...]) -> np.ndarray:
    """The intercept and columns of numbers, (n, q), without poolbn."""
    made = pd.get_dummies(rows[list(net.dag.nodes)], prefix_sep="=", dtype=float)
    return np.column_stack([np.ones(len(rows)), *(made[name] for name in names)])


def test_without_discrete_nodes_all_is_as_it_ever_was() -> None:
    """As the first version drew it, so that simulations can be repeated."""
    old = {case["node"]: case for case in reference("simulated/version01.json")}
    for discrete in (0, 0.1):  # a tenth of four nodes is none
        net = pb.random_network(pb.random_dag(4, 1.5, seed=1), 3, seed=1, discrete=discrete)
        assert set(net.fits) == set(old)
        for node, fit in old.items():
            assert np.array_equal(fit["coef"], net.fits[node].coef)
            assert np.array_equal(fit["sigma2"], net.fits[node].sigma2)


@given(st.integers(1, 12), st.floats(0, 1), st.integers(0, 10**6))
def test_share_of_discrete_nodes(N: int, share: float, seed: int) -> None:
    net = pb.random_network(pb.Dag([f"v{i}" for i in range(N)]), 1, seed=seed, discrete=share)
    found = [net.fits[node] for node in discrete_nodes(net)]
    assert len(found) == round(share * N)
    assert {fit.categories for fit in found} <= {("a", "b"), ("a", "b", "c")}
    assert all(np.isfinite(fit.coef).all() and fit.status.ok for fit in net.fits.values())


def test_every_node_may_be_discrete_with_two_levels_or_three() -> None:
    nets = [pb.random_network(pb.Dag(["x", "y"]), 1, seed=k, discrete=0.5) for k in range(400)]
    seen = Counter((node, len(net.fits[node].categories)) for net in nets
                   for node in discrete_nodes(net))  # fmt: skip
    assert len(seen) == 4
    assert chisquare(list(seen.values())).pvalue > 0.001


def test_effects_on_discrete_nodes() -> None:
    """Log odds differ between data sets with variances ~ chi^2_1, around means of either sign."""
    dag = pb.Dag([f"v{i}" for i in range(150)])
    roots = pb.random_network(dag, 8, seed=1, discrete=1).fits.values()
    mean = np.concatenate([fit.fixed[:, 0] for fit in roots])
    variance = np.array([fit.random_cov[0, 0] for fit in roots])
    assert kstest(mean, norm(0, 0.5).cdf).pvalue > 0.001
    assert kstest(variance, chi2(1).cdf).pvalue > 0.001
    z = [(fit.coef[:, :, 0] - fit.fixed[:, 0]) / math.sqrt(fit.random_cov[0, 0]) for fit in roots]
    assert kstest(np.concatenate([one[:, 0] for one in z]), "norm").pvalue > 0.001
    three = np.concatenate([one for one in z if one.shape[1] == 2])
    assert abs(np.corrcoef(three.T)[0, 1] - 0.5) < 4 / math.sqrt(len(three))
    star = pb.random_network(STAR, 3, seed=1, discrete=1)
    slopes = np.concatenate([star.fits[node].fixed[:, 1:].ravel() for node in STAR.nodes[1:]])
    assert 0.001 < binom.cdf((slopes > 0).sum(), len(slopes), 0.5) < 0.999
    assert kstest(_folded(slopes), "uniform").pvalue > 0.001


STAR = pb.Dag(["x", *(f"y{i}" for i in range(150))], [("x", f"y{i}") for i in range(150)])


def _folded(slopes: np.ndarray) -> np.ndarray:
    """Uniform for N(2, 1) of either sign."""
    return norm.cdf(np.abs(slopes), 2, 1) - norm.cdf(-np.abs(slopes), 2, 1)


def test_continuous_parents_of_discrete_nodes_are_centred_and_scaled() -> None:
    net = pb.random_network(STAR, 5, seed=20, discrete=0.8)
    x = net.fits["x"]
    assert "x" not in discrete_nodes(net)
    total = math.sqrt(x.sigma2[0] + x.coef[:, 0].var())
    fixed = np.concatenate([net.fits[node].fixed for node in discrete_nodes(net)])
    assert kstest(_folded(fixed[:, 1] * total), "uniform").pvalue > 0.001
    assert kstest(fixed @ [1, x.coef[:, 0].mean()], norm(0, 0.5).cdf).pvalue > 0.001


def test_no_level_is_rare() -> None:
    for seed in range(5):
        net = pb.random_network(pb.random_dag(8, 1.5, seed=seed), 10, seed=seed, discrete=0.5)
        table = pb.random_table(net, 200, seed=seed)
        for node in discrete_nodes(net):
            shares = table[node].value_counts(normalize=True)
            assert len(shares) == len(net.fits[node].categories)
            assert shares.min() > 0.05


@pytest.mark.parametrize("heterogeneous", [True, False])
def test_tables_give_the_parameters_back(heterogeneous: bool) -> None:
    """Maximum likelihood in each data set: within 4.5 standard errors, by scipy."""
    net = mixed(heterogeneous=heterogeneous)
    table = pb.random_table(net, 20_000, seed=1)
    kinds = [{name.split("=")[0] in discrete_nodes(net) for name in fit.columns}
             for fit in net.fits.values()]  # fmt: skip
    assert {True, False} in kinds  # parents of both kinds
    for j, level in enumerate(net.levels):
        rows = table[table["F"] == level]
        for node, fit in net.fits.items():
            X = numbers(net, rows, fit.columns)
            if isinstance(fit, RegressionFit):
                codes = pd.Categorical(rows[node], fit.categories).codes
                score, information = _logistic(X, codes, fit.coef[j])
                z2 = score @ np.linalg.pinv(information) @ score
                assert z2 < chi2.ppf(1 - 1e-5, len(score))
            else:
                residuals = rows[node] - X @ fit.coef[j]
                z = X.T @ residuals / np.sqrt(fit.sigma2[j] * (X**2).sum(axis=0))
                assert np.abs(z).max() < 4.5
                assert residuals.var() == pytest.approx(fit.sigma2[j], rel=0.05)
                if fit.parents:
                    assert fit.sigma2[j] / rows[node].var() == pytest.approx(0.15, rel=0.1)


def _logistic(X: np.ndarray, codes: np.ndarray, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of the log-likelihood at coef (K - 1, q), and their covariance."""
    p = softmax(np.column_stack([np.zeros(len(X)), X @ coef.T]), axis=1)[:, 1:]
    y = codes[:, None] == np.arange(1, len(coef) + 1)
    W = np.einsum("nk,kl->nkl", p, np.eye(len(coef))) - p[:, :, None] * p[:, None, :]
    information = np.einsum("nkl,na,nb->kalb", W, X, X).reshape(2 * (coef.size,))
    return ((y - p).T @ X).ravel(), information


def test_homogeneous_mixed_networks() -> None:
    one, many = mixed(heterogeneous=False), mixed()
    for fit in one.fits.values():
        assert all(np.array_equal(fit.coef[0], coef) for coef in fit.coef)
        assert fit.random_cov is None
        assert np.array_equal(fit.fixed, fit.coef[0])
    root = one.dag.topological_order()[0]
    assert np.array_equal(one.fits[root].coef[0], many.fits[root].coef[0])


def test_seeds_of_mixed_networks() -> None:
    def all_of(seed: int) -> tuple[list[bytes], pd.DataFrame]:
        dag = pb.random_dag(6, 2, seed=1)
        net = pb.random_network(dag, 3, seed=seed, discrete=0.5)
        return [fit.coef.tobytes() for fit in net.fits.values()], pb.random_table(net, 9, seed=seed)

    one, again, other = all_of(1), all_of(1), all_of(2)
    assert one[0] == again[0] != other[0]
    assert one[1].equals(again[1])
    assert not one[1].equals(other[1])


def test_mixed_tables_are_read_as_they_were_drawn() -> None:
    net = mixed()
    table = pb.table(pb.random_table(net, 500, seed=3), group="F")
    assert table.levels == net.levels
    for name, kind, categories in zip(table.names, table.kinds, table.categories, strict=True):
        fit = net.fits[name]
        assert (kind == "discrete") == isinstance(fit, RegressionFit)
        assert categories == (fit.categories if kind == "discrete" else ())
        again = pb.fit_node(table, name, net.dag.parents(name))
        if kind == "continuous":
            assert again.parents == fit.parents
    assert "given" in str(net.fits[discrete_nodes(net)[0]])


def test_learned_nodes_of_all_kinds_are_drawn() -> None:
    """Shares of a table, means and variances of counts, given what they are drawn from."""
    rng = np.random.default_rng(1)
    n = 600
    x = rng.normal(size=n)
    sex = np.where(rng.random(n) < 0.4, "m", "f")
    ill = np.where(rng.random(n) < np.where(sex == "m", 0.7, 0.2), "yes", "no")
    visits = rng.poisson(np.exp(0.5 * x) * rng.gamma(2.0, 0.5, n))
    frame = pd.DataFrame({"F": np.repeat(["u", "v", "w"], 200), "x": x, "sex": sex, "ill": ill,
                          "visits": visits})  # fmt: skip
    table = pb.table(frame, group="F", kinds={"visits": "count"})
    dag = pb.Dag(["x", "sex", "ill", "visits"], [("sex", "ill"), ("x", "visits")])
    fits = {node: pb.fit_node(table, node, dag.parents(node), pooling="complete")
            for node in dag.nodes}  # fmt: skip
    net = pb.Network(dag, fits, score=math.nan, group="F", n=table.n)
    drawn = pb.random_table(net, 30_000, seed=1)
    assert list(drawn) == ["F", *dag.nodes]
    shares = drawn.groupby("sex")["ill"].value_counts(normalize=True).unstack()
    theirs = frame.groupby("sex")["ill"].value_counts(normalize=True).unstack()
    assert shares.to_numpy() == pytest.approx(theirs.to_numpy(), abs=0.01)
    count = fits["visits"]
    assert count.dispersion < math.inf
    mean = np.exp(count.fixed[0] @ [np.ones(len(drawn)), drawn["x"]])
    z = (drawn["visits"] - mean) / np.sqrt(mean + mean**2 / count.dispersion)
    assert abs(z.mean()) < 4.5 / math.sqrt(len(z))
    assert z.var() == pytest.approx(1.0, abs=0.05)
