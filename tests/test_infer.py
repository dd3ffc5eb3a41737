"""Exact inference against dense normal distributions, mixtures by hand, and root finding."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import given, simulate
from hypothesis import given as cases
from hypothesis import settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from scipy.stats import t as student

import poolbn as pb
from poolbn.inference import conditioning, linear, marginals

SEEDS = st.integers(0, 10**6)
FRAME = simulate(7, data_sets=4, rows=15, parents=3)


def random_net(seed: int, *, nodes: int = 5, data_sets: int = 3) -> pb.Network:
    """Any arcs, effects, units and P(F)."""
    rng = np.random.default_rng(seed)
    N, F = int(rng.integers(1, nodes + 1)), int(rng.integers(1, data_sets + 1))
    names = [f"v{i}" for i in rng.permutation(N)]
    arcs = [(names[p], names[c]) for c in range(N) for p in range(c) if rng.random() < 0.6]
    dag = pb.Dag(sorted(names), arcs)
    coef = {v: rng.normal(size=(F, 1 + len(dag.parents(v)))) for v in names}
    sd = np.exp(rng.normal(size=(F, N)))
    n = rng.integers(1, 50, size=F).tolist()
    return given(dag, coef, sd, [f"set {j}" for j in range(F)], n)


def table(net: pb.Network, seed: int, rows: int = 12, gaps: float = 0.3) -> pd.DataFrame:
    """Rows near those of the network, with gaps in all columns."""
    rng = np.random.default_rng([seed, 1])
    N, F = len(net.dag.nodes), len(net.levels)
    values = rng.normal(size=(rows, N)) * 2
    values[rng.random(values.shape) < gaps] = np.nan
    labels = np.array(net.levels, dtype=object)[rng.integers(0, F, rows)]
    labels[rng.random(rows) < 0.5] = None
    index = rng.permutation(rows) + 100
    return pd.DataFrame(values, columns=list(net.dag.nodes), index=index).assign(F=labels)


class Brute:
    """Dense normal distributions, one row and one data set at a time."""

    def __init__(self, net: pb.Network) -> None:
        self.names, self.levels = net.dag.nodes, list(net.levels)
        self.prior = net.n / net.n.sum()
        place = {name: i for i, name in enumerate(self.names)}
        N, F = len(self.names), len(self.levels)
        B, D = np.zeros((F, N, N)), np.zeros((F, N, N))
        intercept = np.zeros((F, N))
        for name, fit in net.fits.items():
            i = place[name]
            for k, parent in enumerate(fit.parents):
                B[:, i, place[parent]] = fit.coef[:, 1 + k]
            D[:, i, i], intercept[:, i] = fit.sigma2, fit.coef[:, 0]
        A = np.linalg.inv(np.eye(N) - B)
        self.mean = np.einsum("jab,jb->ja", A, intercept)
        self.cov = A @ D @ A.transpose(0, 2, 1)

    def log_density(self, row: np.ndarray, j: int) -> float:
        e = np.flatnonzero(~np.isnan(row))
        if len(e) == 0:
            return 0.0
        return multivariate_normal(self.mean[j, e], self.cov[j][np.ix_(e, e)]).logpdf(row[e])

    def conditional(self, row: np.ndarray, j: int, t: list[int]) -> tuple[np.ndarray, np.ndarray]:
        e = np.flatnonzero(~np.isnan(row))
        S, mean = self.cov[j], self.mean[j]
        gain = np.linalg.solve(S[np.ix_(e, e)], S[np.ix_(e, t)]).T
        return (
            mean[t] + gain @ (row[e] - mean[e]),
            S[np.ix_(t, t)] - gain @ S[np.ix_(e, t)],
        )

    def weights(self, row: np.ndarray, label: object = None) -> np.ndarray:
        if label is not None:
            return np.array([float(level == label) for level in self.levels])
        log = np.array([self.log_density(row, j) for j in range(len(self.levels))])
        return np.exp(log + np.log(self.prior) - logsumexp(log + np.log(self.prior)))

    def rows(self, frame: pd.DataFrame) -> list[tuple[np.ndarray, object]]:
        labels = [None if pd.isna(label) else label for label in frame["F"]]
        values = frame.reindex(columns=list(self.names)).to_numpy().copy()
        return list(zip(values, labels, strict=True))


@settings(max_examples=15)
@cases(SEEDS)
def test_predictions_are_those_of_dense_normal_distributions(seed: int) -> None:
    net = random_net(seed)
    frame, brute = table(net, seed), Brute(net)
    targets = list(net.dag.nodes[: 1 + seed % 2])
    predicted = net.predict(frame, targets, interval=0.9)
    pd.testing.assert_index_equal(predicted.index, frame.index)
    hidden = frame.assign(**dict.fromkeys(targets, np.nan))
    for k, (row, label) in enumerate(brute.rows(hidden)):
        w = brute.weights(row, label)
        for t, target in enumerate(targets):
            found = predicted[target].iloc[k]
            parts = [brute.conditional(row, j, [t]) for j in range(len(net.levels))]
            m = np.array([part[0][0] for part in parts])
            s = np.sqrt([part[1][0, 0] for part in parts])
            mean = w @ m
            np.testing.assert_allclose(found["mean"], mean, rtol=1e-10, atol=1e-10)
            sd = np.sqrt(w @ (s**2 + (m - mean) ** 2))
            np.testing.assert_allclose(found["sd"], sd, rtol=1e-10)
            for bound, p in (("lower", 0.05), ("upper", 0.95)):
                ends = norm.ppf(p, m, s)
                x = ends[0]
                if np.ptp(ends) > 0:
                    cdf = lambda x, w=w, m=m, s=s, p=p: w @ norm.cdf(x, m, s) - p  # noqa: E731
                    x = brentq(cdf, ends.min() - 1e-9, ends.max() + 1e-9, xtol=1e-13)
                np.testing.assert_allclose(found[bound], x, rtol=1e-10, atol=1e-10)


@settings(max_examples=15)
@cases(SEEDS)
def test_densities_and_data_sets_are_those_of_mixtures_by_hand(seed: int) -> None:
    net = random_net(seed)
    frame, brute = table(net, seed), Brute(net)
    classified, each = net.classify(frame), net.loglik(frame, rows=True)
    pd.testing.assert_index_equal(classified.index, frame.index)
    pd.testing.assert_index_equal(each.index, frame.index)
    assert list(classified) == [*net.levels, "most_probable"]
    for k, (row, label) in enumerate(brute.rows(frame)):
        w = brute.weights(row)
        np.testing.assert_allclose(
            classified.iloc[k, :-1].to_numpy(dtype=float), w, rtol=1e-9, atol=1e-12
        )
        assert classified["most_probable"].iloc[k] == net.levels[int(w.argmax())]
        log = np.array([brute.log_density(row, j) for j in range(len(w))])
        expected = logsumexp(log + np.log(brute.prior))
        if label is not None:
            expected = log[net.levels.index(label)]
        np.testing.assert_allclose(each.iloc[k], expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(net.loglik(frame), each.sum(), rtol=1e-12, atol=1e-12)


@cases(SEEDS)
def test_posteriors_are_mixtures_by_hand(seed: int) -> None:
    net = random_net(seed)
    brute = Brute(net)
    row, label = brute.rows(table(net, seed, rows=1))[0]
    row[0] = np.nan
    t = np.flatnonzero(np.isnan(row)).tolist()
    evidence = {v: x for v, x in zip(net.dag.nodes, row, strict=True) if not np.isnan(x)}
    found = net.posterior(
        evidence if label is None else evidence | {"F": label}, [net.dag.nodes[k] for k in t]
    )
    w = brute.weights(row, label)
    m, S = map(np.array, zip(*(brute.conditional(row, j, t) for j in range(len(w))), strict=True))
    close = {"rtol": 1e-9, "atol": 1e-10}
    np.testing.assert_allclose(found.weights, w, **close)
    np.testing.assert_allclose(found.means, m, **close)
    np.testing.assert_allclose(found.covs, S, **close)
    np.testing.assert_allclose(found.mean, w @ m, **close)
    second = sum(w[j] * (S[j] + np.outer(m[j], m[j])) for j in range(len(w)))
    np.testing.assert_allclose(found.cov, second - np.outer(w @ m, w @ m), **close)
    np.testing.assert_allclose(found.sd, np.sqrt(np.diag(found.cov)), **close)
    x = np.random.default_rng(seed).normal(size=(4, len(t)))
    density = sum(w[j] * multivariate_normal(m[j], S[j]).pdf(x) for j in range(len(w)))
    points = x[:, 0] if len(t) == 1 else x
    np.testing.assert_allclose(found.pdf(points), density, **close)
    assert found.pdf(points[0]).shape == ()
    one = net.posterior(evidence if label is None else evidence | {"F": label}, net.dag.nodes[t[0]])
    s = np.sqrt(S[:, 0, 0])
    np.testing.assert_allclose(one.cdf(x[:, 0]), norm.cdf(x[:, :1], m[:, 0], s) @ w, **close)
    p = np.array([[0.001, 0.3], [0.5, 0.99]])
    np.testing.assert_allclose(one.cdf(one.quantile(p)), p, rtol=1e-10)


@cases(SEEDS, st.sampled_from([0.001, 0.025, 0.5, 0.8, 0.999]))
def test_quantiles_solve_their_equation(seed: int, p: float) -> None:
    rng = np.random.default_rng(seed)
    n, C = 20, int(rng.integers(2, 6))
    w = rng.dirichlet(np.full(C, 0.3), size=n)
    m, s = rng.normal(size=(n, C)) * 10.0 ** rng.integers(-3, 6), 10 ** rng.uniform(-3, 3, (n, C))
    found = marginals.quantiles(p, w, m, s)
    for x, w_k, m_k, s_k in zip(found, w, m, s, strict=True):
        ends = norm.ppf(p, m_k, s_k)
        gap = lambda x, w=w_k, m=m_k, s=s_k: w @ norm.cdf(x, m, s) - p  # noqa: E731
        wide = 1e-6 * s_k.max()
        exact = brentq(gap, ends.min() - wide, ends.max() + wide, xtol=1e-14, rtol=1e-14)
        # Where the density is small x is free: then the probabilities must agree.
        assert abs(x - exact) < 1e-10 * max(s_k.min(), abs(exact)) or abs(gap(x)) < 1e-14


@cases(SEEDS, st.sampled_from([1e-6, 0.025, 0.4, 0.5, 0.9, 0.9995]))
def test_mixtures_of_t_are_those_of_scipy(seed: int, p: float) -> None:
    """Few and many degrees of freedom, middles and tails: each has its own way."""
    rng = np.random.default_rng(seed)
    df = np.exp(rng.uniform(0, 12, size=(20, 4)))
    df[0] = np.inf
    scales = marginals.spread(df)
    own = scales * marginals.own_quantiles(p, df)
    np.testing.assert_allclose(own, student.ppf(p, df), rtol=1e-9, atol=1e-12)
    w = rng.dirichlet(np.full(4, 0.05), size=20)
    m, s = 20 * rng.normal(size=(2, 20, 4))
    s = np.exp(s / 20)
    x = rng.normal(size=20) * 20
    below, density = marginals.distribution(x, w, m, s * scales, df)
    each = student(df, m, s)
    np.testing.assert_allclose(below, (w * each.cdf(x[:, None])).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(density, (w * each.pdf(x[:, None])).sum(axis=1), rtol=1e-9)
    found = marginals.quantiles(p, w, m, s * scales, df)
    np.testing.assert_allclose((w * each.cdf(found[:, None])).sum(axis=1), p, rtol=1e-9)


def test_quantiles_of_steps() -> None:
    w, m, s = np.array([[0.5, 0.2, 0.3]]), np.array([[1.0, -4.0, 7.0]]), np.zeros((1, 3))
    found = [marginals.quantiles(p, w, m, s)[0] for p in (0.1, 0.3, 0.69, 0.9)]
    np.testing.assert_allclose(found, [-4, 1, 1, 7], rtol=1e-12)
    same = marginals.quantiles(0.3, w, np.full((1, 3), 25.0), s)
    assert same[0] == 25.0


@pytest.mark.parametrize("pooling", ["complete", "none"])
def test_the_likelihood_of_the_training_rows_is_that_of_the_fits(pooling: str) -> None:
    trial = pb.datasets.opt()[["clinic", "age", "bmi", "gestation_days", "birthweight_g"]].dropna()
    net = pb.learn(trial, group="clinic", pooling=pooling)
    assert net.dag.arcs
    total = sum(fit.loglik for fit in net.fits.values())
    assert net.loglik(trial, plugin=True) == pytest.approx(total, rel=1e-12)
    # Without the data set: P(F) p(x | F) is less than the mixture has.
    shares = trial["clinic"].map(dict(zip(net.levels, net.joint.prior, strict=True)))
    joint = net.loglik(trial, rows=True, plugin=True) + np.log(shares.astype(float))
    assert (net.loglik(trial.drop(columns="clinic"), rows=True, plugin=True) > joint).all()


@cache
def learned() -> pb.Network:
    return pb.learn(FRAME, group="F", start=[("x1", "y"), ("x2", "y")])


@settings(max_examples=15)
@cases(SEEDS)
def test_shift_and_scale_of_columns(seed: int) -> None:
    """Answers move with the data, even where raw numbers have lost their digits."""
    rng = np.random.default_rng(seed)
    scale, shift = 10 ** rng.uniform(-6, 6, 4), rng.uniform(-1e5, 1e5, 4)
    columns = ["x1", "x2", "x3", "y"]
    moved = FRAME.assign(**{c: FRAME[c] * s + h * s for c, s, h in zip(columns, scale, shift,
                                                                      strict=True)})  # fmt: skip
    arcs = [("x1", "y"), ("x2", "y"), ("x3", "x1")]
    nets = [pb.learn(f, group="F", pooling="complete", start=arcs, search=pb.HillClimb(max_iter=0))
            for f in (FRAME, moved)]  # fmt: skip
    (a, b), gaps = nets, rng.random((len(FRAME), 4)) < 0.3
    here, there = FRAME.copy(), moved.copy()
    here[columns], there[columns] = here[columns].mask(gaps), there[columns].mask(gaps)
    here, there = (f.drop(columns="F") for f in (here, there))
    one, other = a.predict(here, "x3"), b.predict(there, "x3")
    for name in ("mean", "lower", "upper"):
        other[name] -= shift[2] * scale[2]
    np.testing.assert_allclose(other / scale[2], one, rtol=1e-6, atol=1e-6)
    density = b.loglik(there, rows=True) + (~gaps @ np.log(scale))
    np.testing.assert_allclose(density, a.loglik(here, rows=True), rtol=1e-6, atol=1e-6)


def test_order_of_rows_and_columns_does_not_matter() -> None:
    net = random_net(10)
    frame = table(net, 10, rows=40)
    mixed = frame.sample(frac=1, random_state=1)[["F", *sorted(net.dag.nodes, reverse=True)]]
    for ask in (net.classify, lambda f: net.predict(f, net.dag.nodes[0]), net.impute):
        pd.testing.assert_frame_equal(
            ask(frame), ask(mixed).loc[frame.index], check_like=True, rtol=1e-12
        )


def test_sizes_of_chunks_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    net = random_net(13)
    frame = table(net, 3, rows=200, gaps=0.1)
    before = net.predict(frame, net.dag.nodes[0]), net.classify(frame)
    monkeypatch.setattr(conditioning, "_MOST_ROWS", 4)
    monkeypatch.setattr(conditioning, "_NUMBERS", 50)
    monkeypatch.setattr(linear, "available_cores", lambda: 1)
    after = net.predict(frame, net.dag.nodes[0]), net.classify(frame)
    for one, other in zip(before, after, strict=True):
        pd.testing.assert_frame_equal(one, other, rtol=1e-12)


def test_many_columns() -> None:
    """More than fit into one number that stands for a pattern of gaps."""
    names = [f"v{i:02}" for i in range(75)]
    dag = pb.Dag(names, list(pairwise(names)))
    coef = {v: np.array([[1.0, 0.5], [0.5, 0.9]])[:, : 1 + len(dag.parents(v))] for v in names}
    net = given(dag, coef, np.ones((2, 75)), ["a", "b"])
    frame = table(net, 5, rows=30, gaps=0.02)
    predicted = net.predict(frame, "v10")["mean"]
    brute = Brute(net)
    for found, (row, label) in zip(predicted, brute.rows(frame.assign(v10=np.nan)), strict=True):
        w = brute.weights(row, label)
        mean = w @ [brute.conditional(row, j, [10])[0][0] for j in range(2)]
        assert found == pytest.approx(mean, rel=1e-9)


def test_cells_of_targets_are_never_evidence() -> None:
    net = learned()
    frame = FRAME.head(3)
    pd.testing.assert_frame_equal(
        net.predict(frame, ["y", "x1"]), net.predict(frame[["F", "x2", "x3"]], ["y", "x1"])
    )
    assert list(net.predict(frame, ["y"])) == [("y", s) for s in ("mean", "sd", "lower", "upper")]
    assert list(net.predict(frame, "y")) == ["mean", "sd", "lower", "upper"]


def test_tables_of_all_kinds(tmp_path: Path) -> None:
    net = learned()
    frame = FRAME.head(7)
    frame.to_csv(tmp_path / "t.csv", index=False)
    for other in (pl.from_pandas(frame), tmp_path / "t.csv"):
        pd.testing.assert_frame_equal(net.predict(other, "y"), net.predict(frame, "y"))
        pd.testing.assert_frame_equal(net.classify(other), net.classify(frame))
    empty = frame.iloc[:0]
    assert net.predict(empty, "y").shape == (0, 4)
    assert net.classify(empty).shape == (0, 5)
    assert net.loglik(empty) == 0.0
    assert net.impute(empty).shape == empty.shape


def test_imputed_cells_are_predictions() -> None:
    net = learned()
    rng = np.random.default_rng(1)
    frame = FRAME.assign(note="n", k=np.arange(len(FRAME)), x2=FRAME["x2"].round()).set_index("k")
    columns = ["x1", "x2", "y"]
    gaps = rng.random((len(frame), 3)) < 0.3
    frame[columns] = frame[columns].mask(gaps)
    frame = frame.astype({"x2": "Int64"}).drop(columns="x3")
    frame.loc[frame.index[:5], "F"] = None
    filled = net.impute(frame)
    assert list(filled) == list(frame)
    pd.testing.assert_index_equal(filled.index, frame.index)
    pd.testing.assert_frame_equal(filled[["F", "note"]], frame[["F", "note"]])
    for column, missing in zip(columns, gaps.T, strict=True):
        expected = net.predict(frame, column)["mean"]
        np.testing.assert_allclose(filled[column][missing], expected[missing], rtol=1e-10)
        np.testing.assert_array_equal(filled[column][~missing], frame[column][~missing])
    assert frame["y"].isna().any()  # the table itself is as it was
    other = net.impute(pl.from_pandas(frame))
    assert list(other) == ["F", "x1", "x2", "y"]
    np.testing.assert_allclose(other[columns], filled[columns].astype(float))
    pd.testing.assert_frame_equal(net.impute(FRAME), FRAME)


def test_data_sets_with_the_names_of_columns() -> None:
    net = given(pb.Dag(["a"]), {"a": np.zeros((2, 1))}, np.ones((2, 1)), ["most_probable", "b"])
    classified = net.classify(pd.DataFrame({"a": [0.0]}))
    assert list(classified) == ["most_probable (data set)", "b", "most_probable"]
    assert classified["most_probable"].tolist() == ["most_probable"]


def test_evidence_in_the_far_tails() -> None:
    net = random_net(4)
    frame = pd.DataFrame([[1e6] * len(net.dag.nodes)], columns=list(net.dag.nodes))
    assert np.isfinite(net.loglik(frame))
    shares = net.classify(frame).iloc[0, :-1].to_numpy(dtype=float)
    assert shares.sum() == pytest.approx(1)
    assert np.isfinite(net.predict(frame, net.dag.nodes[0])).all(axis=None)


# Nodes without variance


def test_what_is_set_by_intervention_says_nothing() -> None:
    net = learned().do(x1=2.0)
    frame = FRAME.drop(columns="F").head(5).assign(x1=2.0)
    without = frame.drop(columns="x1")
    pd.testing.assert_frame_equal(net.classify(frame), net.classify(without))
    pd.testing.assert_frame_equal(net.predict(frame, "y"), net.predict(without, "y"))
    assert net.loglik(frame) == pytest.approx(net.loglik(without), rel=1e-12)
    expected = [[2.0, 0.0, 2.0, 2.0]] * 5
    np.testing.assert_allclose(net.predict(frame, "x1"), expected, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(net.impute(frame.assign(x1=np.nan))["x1"], 2.0, rtol=1e-15)
    other = frame.assign(x1=[2.0, 3.0, 2.0, 2.0, 2.0])
    assert net.loglik(other, rows=True).tolist().index(-np.inf) == 1
    assert net.loglik(other) == -np.inf
    with pytest.raises(pb.DataError, match=r"row 2 .*'x1' is 3 there and 2 in the network"):
        net.classify(other)
    # With the data set known there is nothing to weigh.
    assert np.isfinite(net.predict(other.assign(F=FRAME["F"]), "y")).all(axis=None)


@pytest.mark.parametrize("order", [["a", "b", "mix", "y"], ["mix", "y", "b", "a"]])
def test_a_combination_of_nodes_says_nothing_new(order: list[str]) -> None:
    dag = pb.Dag(order, [("a", "mix"), ("b", "mix"), ("a", "y"), ("mix", "y")])
    slopes = {"mix": {"a": 0.37, "b": -1.3}, "y": {"a": 1.0, "mix": 0.5}}
    by = {v: [slopes[v][p] for p in dag.parents(v)] for v in slopes}
    coef = {
        "a": [[1.0], [3.0]],
        "b": [[0.3], [0.1]],
        "mix": [[0.1, *by["mix"]]] * 2,
        "y": [[0.0, *by["y"]], [1.0, *by["y"]]],
    }
    sd = {"a": [1.1, 2.3], "b": [0.3, 0.7], "mix": [0.0, 0.0], "y": [0.7, 0.6]}
    net = given(dag, coef, np.array([sd[v] for v in order]).T, ["s", "t"])
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(9, 3)), columns=["a", "b", "y"])
    mixed = frame.assign(mix=0.1 + 0.37 * frame["a"] - 1.3 * frame["b"])
    pd.testing.assert_frame_equal(net.classify(mixed), net.classify(frame), rtol=1e-9)
    pd.testing.assert_frame_equal(net.predict(mixed, "y"), net.predict(frame, "y"), rtol=1e-9)
    found = net.predict(frame, "mix")
    np.testing.assert_allclose(found["mean"], mixed["mix"], rtol=1e-12)
    np.testing.assert_allclose(found["sd"], 0, atol=1e-7)
    other = mixed.assign(mix=mixed["mix"] + 0.01)
    assert (net.loglik(other, rows=True) == -np.inf).all()
    with pytest.raises(pb.DataError, match=r"row 1 .*some cells are certain given the others"):
        net.classify(other)


def test_a_data_set_without_rows_has_no_weight() -> None:
    net = random_net(5)
    assert len(net.levels) == 3
    empty = replace(net, n=np.array([0, 5, 5]))
    frame = table(net, 5).drop(columns="F")
    assert (empty.classify(frame)["set 0"] == 0).all()
    assert np.isfinite(empty.predict(frame, net.dag.nodes[0])).all(axis=None)
    assert np.isfinite(empty.loglik(frame))
    known = table(net, 5).assign(F="set 0")
    pd.testing.assert_frame_equal(
        empty.predict(known, net.dag.nodes[0]), net.predict(known, net.dag.nodes[0])
    )


# Adapted data sets, with coefficients that are uncertain


def uncertain_net(seed: int, scale: float = 0.1, nodes: int = 5) -> pb.Network:
    """A random network; its first data set has uncertain coefficients."""
    net = random_net(seed, nodes=nodes)
    rng = np.random.default_rng([seed, 2])
    fits = {}
    for name, fit in net.fits.items():
        F, q = fit.coef.shape
        root = rng.normal(size=(F, q, q)) * np.sqrt(scale)
        fits[name] = replace(fit, coef_cov=root @ root.transpose(0, 2, 1))
    return replace(net, fits=fits, adapted=("set 0",))


def spread(net: pb.Network, row: dict[str, float], name: str) -> tuple[float, float]:
    """Mean and SD of a node whose parents are known, in the first data set."""
    fit = net.fits[name]
    z = np.array([1.0, *(row[p] for p in fit.parents)])
    return z @ fit.coef[0], np.sqrt(fit.sigma2[0] + z @ fit.coef_cov[0] @ z)


@cases(SEEDS)
def test_complete_rows_of_an_adapted_data_set(seed: int) -> None:
    net = uncertain_net(seed)
    frame = table(net, seed, gaps=0).assign(F="set 0")
    rows = frame.drop(columns="F").to_dict("records")
    own = [sum(norm.logpdf(row[v], *spread(net, row, v)) for v in net.dag.nodes) for row in rows]
    np.testing.assert_allclose(net.loglik(frame, rows=True, plugin=True), own, rtol=1e-9, atol=1e-9)
    brute = Brute(net)
    log = np.array([[brute.log_density(np.array(list(row.values())), j)
                     for j in range(len(net.levels))] for row in rows])  # fmt: skip
    log[:, 0] = own
    log += np.log(brute.prior)
    expected = np.exp(log - logsumexp(log, axis=1, keepdims=True))
    np.testing.assert_allclose(
        net.classify(frame, plugin=True).iloc[:, :-1].astype(float), expected, rtol=1e-8, atol=1e-10
    )


@cases(SEEDS)
def test_nothing_hidden_above_the_target_and_nothing_seen_below(seed: int) -> None:
    net = uncertain_net(seed)
    target = net.dag.nodes[seed % len(net.dag.nodes)]
    below = list(net.dag.descendants(target))
    frame = table(net, seed, gaps=0).assign(F="set 0").drop(columns=below)
    aside = [v for v in frame if v not in ("F", target, *net.dag.ancestors(target))]
    frame[aside] = frame[aside].mask(np.random.default_rng(seed).random(frame[aside].shape) < 0.5)
    predicted = net.predict(frame, target, interval=0.8)
    expected = [spread(net, row, target) for row in frame.drop(columns="F").to_dict("records")]
    mean, sd = np.array(expected).T
    z = norm.ppf(0.9)
    table_of = np.column_stack([mean, sd, mean - z * sd, mean + z * sd])
    np.testing.assert_allclose(predicted, table_of, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("evidence", [{"c": 2.5}, {"a": 1.5, "c": -1.0}, {"a": -1.0}, {}])
def test_other_rows_of_an_adapted_data_set_are_close_to_drawn_coefficients(
    evidence: dict[str, float],
) -> None:
    """a -> b -> c with a -> c; the target is b."""
    dag = pb.Dag(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    coef = {"a": [[0.5]], "b": [[1.0, 0.8]], "c": [[0.0, -0.4, 1.2]]}
    covs = {"a": np.array([[0.2]]), "b": np.array([[0.1, 0.02], [0.02, 0.05]]),
            "c": np.diag([0.1, 0.03, 0.05])}  # fmt: skip
    net = given(dag, coef, np.array([[1.0, 0.7, 0.5]]), ["s"])
    fits = {v: replace(fit, coef_cov=covs[v][None]) for v, fit in net.fits.items()}
    net = replace(net, fits=fits, adapted=("s",))
    rng, K = np.random.default_rng(1), 400_000
    drawn: dict[str, np.ndarray] = {}
    log = np.zeros(K)
    for i, v in enumerate("abc"):
        z = np.column_stack([np.ones(K), *(drawn[p] for p in dag.parents(v))])
        mean = (z * rng.multivariate_normal(coef[v][0], covs[v], size=K)).sum(axis=1)
        sd = [1.0, 0.7, 0.5][i]
        drawn[v] = np.full(K, evidence[v]) if v in evidence else rng.normal(mean, sd)
        if v in evidence:
            log += norm.logpdf(evidence[v], mean, sd)
    w = np.exp(log - log.max())
    w /= w.sum()
    mean = w @ drawn["b"]
    sd = np.sqrt(w @ (drawn["b"] - mean) ** 2)
    frame = pd.DataFrame([evidence | {"b": np.nan}])
    found = net.predict(frame, "b").iloc[0]
    plug_in = replace(net, adapted=()).predict(frame, "b", plugin=True).iloc[0]
    density = np.log(np.mean(np.exp(log)))
    if "c" not in evidence:  # only spread that is not quite normal
        assert found["mean"] == pytest.approx(mean, abs=0.01 * sd)
        assert found["sd"] == pytest.approx(sd, rel=0.01)
        assert net.loglik(frame) == pytest.approx(density, abs=0.01)
        return
    assert abs(found["mean"] - mean) < min(0.15 * sd, 0.7 * abs(plug_in["mean"] - mean))
    assert abs(found["sd"] - sd) < min(0.15 * sd, 0.5 * abs(plug_in["sd"] - sd))
    assert net.loglik(frame) == pytest.approx(density, abs=0.25)


def test_without_uncertainty_an_adapted_data_set_is_like_the_others() -> None:
    net = random_net(15)
    frame = table(net, 15)
    adapted = replace(net, adapted=("set 0",))
    pd.testing.assert_frame_equal(
        adapted.predict(frame, net.dag.nodes[0]), net.predict(frame, net.dag.nodes[0]), rtol=1e-9
    )
    pd.testing.assert_frame_equal(adapted.classify(frame), net.classify(frame), rtol=1e-9)


def test_a_posterior_is_printed() -> None:
    net = random_net(5)
    text = repr(net.posterior({}, net.dag.nodes[:2]))
    assert text.startswith("Posterior of v0, v1\n  v0  mean ")
    assert "data set  set " in text
