"""Predictive distributions: against scipy, numerical integration, and simulated coverage."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as cases
from hypothesis import settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import logsumexp

import poolbn as pb
from poolbn.nodes import reference
from poolbn.nodes.predicting import Predictive
from poolbn.nodes.predictive import new_data_set, predictive

SEEDS = st.integers(0, 10**6)
POOLINGS: dict[str, object] = {
    "complete": "complete",
    "none": "none",
    "shared": pb.Partial(),
    "reml": pb.Partial(method="reml"),
    "intercept": pb.Partial(random="intercept"),
    "pooled": pb.Partial(residuals="pooled"),
    "separate": pb.Partial(residuals="separate"),
}
ARCS = [("a", "b"), ("b", "c"), ("a", "c")]


def rows(seed: int, data_sets: int = 5, n: int = 9) -> pd.DataFrame:
    """Three columns, far from zero, whose relations and variances differ between data sets."""
    rng = np.random.default_rng(seed)
    parts = []
    for j in range(data_sets):
        k = n + j
        sd = np.exp(rng.normal(0, 0.4, size=3))
        a = 20 + rng.normal() + sd[0] * rng.normal(size=k)
        b = 5 + rng.normal() + rng.normal(0.5, 0.3) * a + sd[1] * rng.normal(size=k)
        c = rng.normal() - rng.normal(0.7, 0.3) * a + 0.5 * b + sd[2] * rng.normal(size=k)
        parts.append(pd.DataFrame({"F": f"s{j}", "a": a, "b": b, "c": c}))
    return pd.concat(parts, ignore_index=True)


@cache
def learned(pooling: str, seed: int = 1) -> pb.Network:
    return chain(rows(seed), pooling)


def chain(frame: pd.DataFrame, pooling: str) -> pb.Network:
    """With a direct effect, whatever the data say."""
    stay, how = pb.HillClimb(max_iter=0), POOLINGS[pooling]
    return pb.learn(frame, group="F", start=ARCS, pooling=how, search=stay, preset="paper")  # type: ignore[arg-type]


def node_t(net: pb.Network, j: int, node: str, row: dict[str, float]) -> stats.rv_continuous:
    """The distribution of a node given its parents, by the text of `nodes.predictive`."""
    (mean,), (scale2,), (df,) = at_parents(net, j, node, pd.DataFrame([row]))
    return stats.t(df, mean, math.sqrt(scale2))


def at_parents(
    net: pb.Network, j: int, node: str, frame: pd.DataFrame
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    fit = net.fits[node]
    z = np.column_stack([np.ones(len(frame)), frame[list(fit.parents)]])
    return predictive(fit).at(z, j)


def log_rows(
    net: pb.Network, j: int, frame: pd.DataFrame, nodes: tuple[str, ...] = ("a", "b", "c")
) -> np.ndarray:
    """Products of t densities, by scipy."""
    total = np.zeros(len(frame))
    for v in nodes:
        mean, scale2, df = at_parents(net, j, v, frame)
        total += stats.t.logpdf(frame[v], df, mean, np.sqrt(scale2))
    return total


def sums(frame: pd.DataFrame, child: str, parents: tuple[str, ...]) -> reference.Sums:
    """Of rows, for the closed forms of `nodes.reference`."""
    groups = [g for _, g in frame.groupby("F")]
    Z = [np.column_stack([np.ones(len(g)), g[list(parents)]]) for g in groups]
    return reference.sums(Z, [g[child].to_numpy() for g in groups])


Z_NEW = np.array([1.0, 21.0, 17.0])


@pytest.mark.parametrize("pooling", ["complete", "none"])
def test_least_squares_is_textbook_prediction(pooling: str) -> None:
    frame, fit = rows(1), learned(pooling).fits["c"]
    x = sums(frame, "c", fit.parents)
    for j in range(5):
        own = x if pooling == "complete" else reference.Sums(*(of[j : j + 1] for of in x))
        found = [of[0] for of in predictive(fit).at(Z_NEW[None], j)]
        np.testing.assert_allclose(found, reference.alone(Z_NEW, own), rtol=1e-8)


@pytest.mark.parametrize("pooling", ["shared", "reml", "pooled"])
def test_partial_pooling_is_the_closed_form_but_for_few_data_sets(pooling: str) -> None:
    """With k = 0 and biases left in, C is u V + T B T' as in `reference`."""
    frame, fit = rows(1), learned(pooling).fits["c"]
    assert fit.fixed is not None
    assert fit.fixed_cov is not None
    assert fit.random_cov is not None
    B, x, of = fit.fixed_cov, sums(frame, "c", fit.parents), predictive(fit)
    s = fit.sigma2[0] if fit.residual_scale is None else fit.residual_scale
    D = fit.random_cov / s
    t = reference.terms(x, D, fit.fixed)
    bias = 1.0
    if pooling != "reml":
        bias = (fit.rows - fit.effective_df).sum() / fit.df.sum()
    for j in range(5):
        if pooling == "pooled":
            a = fit.residual_shape
            assert a is not None
            mean, plain, df = reference.known_pooled(Z_NEW, t, x, D, B, j, a, s)
            u = (a * s + t.squares[j] / 2) / (a + x.n[j] / 2)
            assert of.df[j] == pytest.approx(df)
        else:
            mean, plain, _ = reference.known(Z_NEW, t, x, D, B, j, s)
            u = s
            assert of.within_df[j] == pytest.approx(fit.df.sum())
        T = np.eye(3) - t.V[j] @ x.A[j]
        lost = (bias - 1) * u * (1 + Z_NEW @ (np.eye(3) - T) @ t.V[j] @ Z_NEW)
        k = 0.0 if pooling == "reml" else 5 / 4 * u / s
        spread = k * Z_NEW @ T @ B @ T.T @ Z_NEW
        found = of.at(Z_NEW[None], j)
        np.testing.assert_allclose(found[0][0], mean, rtol=1e-8)
        np.testing.assert_allclose(found[1][0], plain + lost + spread, rtol=1e-5)


@pytest.mark.parametrize("pooling", ["complete", "shared", "reml", "pooled", "separate"])
def test_a_data_set_without_rows_is_a_new_one(pooling: str) -> None:
    net = learned(pooling)
    adapted = net.adapt(name="new")
    for node, fit in net.fits.items():
        last, new = predictive(adapted.fits[node]), new_data_set(fit)
        for name in ("coef", "cov", "between", "scale2", "df", "within_df"):
            found, expected = getattr(last, name)[-1], getattr(new, name)[0]
            np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=f"{node} {name}")
        assert last.between_df == new.between_df
    again = net.adapt(rows(1).query("F == 's2'"), "s2 again")
    if pooling != "separate":  # where adapting does not learn a variance
        for fit in again.fits.values():  # the same rows, and the same population
            found = predictive(fit)
            z = np.ones((1, found.coef.shape[1])) * 20
            z[:, 0] = 1
            np.testing.assert_allclose(found.at(z, 5)[:2], found.at(z, 2)[:2], rtol=1e-5)


@settings(max_examples=30)
@cases(SEEDS, st.sampled_from(list(POOLINGS)))
def test_densities_of_rows_are_products_of_t(seed: int, pooling: str) -> None:
    net = learned(pooling, seed % 3)
    frame = rows(seed, n=2)
    frame.loc[frame.index[::3], "F"] = None
    each = np.array([log_rows(net, j, frame) for j in range(5)]).T
    joint = each + np.log(net.n / net.n.sum())
    own = [None if pd.isna(level) else net.levels.index(level) for level in frame["F"]]
    expected = [logsumexp(joint[k]) if j is None else each[k, j] for k, j in enumerate(own)]
    np.testing.assert_allclose(net.loglik(frame, rows=True), expected, rtol=1e-9, atol=1e-9)
    shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    found = net.classify(frame).iloc[:, :-1].astype(float)
    np.testing.assert_allclose(found, shares, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_predictions_below_all_evidence_are_t(pooling: str) -> None:
    net, frame = learned(pooling), rows(7, n=1)
    known = net.predict(frame, "c", interval=0.9)
    unknown = net.predict(frame.drop(columns="F"), "c", interval=0.9)
    prior = np.log(net.n / net.n.sum())
    for k, row in enumerate(frame.to_dict("records")):
        own = [node_t(net, j, "c", row) for j in range(5)]
        mine = own[net.levels.index(row["F"])]
        expected = [mine.mean(), mine.std(), *mine.interval(0.9)]
        np.testing.assert_allclose(known.iloc[k], expected, rtol=1e-8)
        above = [log_rows(net, j, frame.iloc[[k]], ("a", "b"))[0] for j in range(5)]
        w = np.exp(above + prior - logsumexp(above + prior))
        found = unknown.iloc[k]
        assert found["mean"] == pytest.approx(w @ [t.mean() for t in own], rel=1e-9)
        for bound, p in (("lower", 0.05), ("upper", 0.95)):
            assert w @ [t.cdf(found[bound]) for t in own] == pytest.approx(p, rel=1e-7)
        posterior = net.posterior({"a": row["a"], "b": row["b"]}, "c")
        x = row["c"]
        np.testing.assert_allclose(posterior.weights, w, rtol=1e-7, atol=1e-12)
        assert posterior.pdf(x) == pytest.approx(w @ [t.pdf(x) for t in own], rel=1e-8)
        assert posterior.cdf(x) == pytest.approx(w @ [t.cdf(x) for t in own], rel=1e-8)
        assert posterior.quantile(0.05) == pytest.approx(found["lower"], rel=1e-8)


@pytest.mark.parametrize(("pooling", "target"), list(product(["none", "shared", "pooled"], "ab")))
def test_other_predictions_are_close_to_integrals(pooling: str, target: str) -> None:
    """One missing cell with others below it: the exact density by quadrature."""
    net = learned(pooling)
    frame = net.sample(15, plugin=True, seed=1)
    hidden = frame.assign(**{target: np.nan})
    found, density = net.predict(hidden, target), net.loglik(hidden, rows=True)
    for k, row in enumerate(frame.to_dict("records")):
        j = net.levels.index(row["F"])
        at, sd = found["mean"].iloc[k], found["sd"].iloc[k]
        x = np.linspace(at - 12 * sd, at + 12 * sd, 801)
        height = np.exp(log_rows(net, j, pd.DataFrame(row | {target: x})))
        total = integrate.simpson(height, x=x)
        mean = integrate.simpson(x * height, x=x) / total
        exact_sd = math.sqrt(integrate.simpson((x - mean) ** 2 * height, x=x) / total)
        assert abs(at - mean) < 0.25 * exact_sd
        assert sd == pytest.approx(exact_sd, rel=0.25)
        assert density.iloc[k] == pytest.approx(math.log(total), abs=0.5)


@pytest.mark.parametrize("pooling", ["none", "shared", "pooled"])
def test_likelihood_weighting_draws_from_the_same(pooling: str) -> None:
    net = learned(pooling)
    evidence = {"a": 21.0, "F": "s1"}
    exact = net.query("c < -3", evidence, particles=200_000, seed=1)
    weighted = net.query("c < -3", evidence, method="lw", particles=200_000, seed=2)
    drawn = net.sample(200_000, "s1", seed=3)
    assert exact.value == pytest.approx(weighted.value, abs=5 * math.hypot(exact.se, weighted.se))
    for p in (0.01, 0.3, 0.9):
        q = node_t(net, 1, "a", {}).ppf(p)
        se = math.sqrt(p * (1 - p) / len(drawn))
        assert (drawn["a"] < q).mean() == pytest.approx(p, abs=5 * se)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_units_and_orders_do_not_matter(pooling: str) -> None:
    net, frame = learned(pooling), rows(3, n=2)
    scale, shift = {"a": 3.0, "b": 0.01, "c": 1e4}, {"a": 50.0, "b": -3.0, "c": 1e3}
    moved = lambda f: f.assign(**{v: f[v] * scale[v] + shift[v] for v in scale})  # noqa: E731
    other = pb.learn(
        moved(rows(1))[["c", "F", "b", "a"]].sample(frac=1, random_state=1),
        group="F",
        start=ARCS,
        pooling=POOLINGS[pooling],  # type: ignore[arg-type]
        search=pb.HillClimb(max_iter=0),
        preset="paper",
    )
    size = sum(math.log(of) for of in scale.values())
    density = other.loglik(moved(frame), rows=True) + size
    np.testing.assert_allclose(density, net.loglik(frame, rows=True), rtol=1e-4, atol=1e-4)
    for target in "abc":
        gaps = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.2)
        found = other.predict(moved(gaps), target) / scale[target]
        found[["mean", "lower", "upper"]] -= shift[target] / scale[target]
        np.testing.assert_allclose(found, net.predict(gaps, target), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_loaded_network_predicts_the_same(pooling: str, tmp_path: Path) -> None:
    net = learned(pooling)
    net.save(tmp_path / "net.json")
    again, frame = pb.load(tmp_path / "net.json"), rows(3, n=2)
    pd.testing.assert_series_equal(again.loglik(frame, rows=True), net.loglik(frame, rows=True))
    pd.testing.assert_frame_equal(again.predict(frame, "b"), net.predict(frame, "b"))


def test_a_column_of_data_sets_is_uncertain_in_a_new_one_alone() -> None:
    frame = rows(1)
    sizes = {level: 100.0 + 7 * k * k for k, level in enumerate(sorted(frame["F"].unique()))}
    frame["size"] = frame["F"].map(sizes)
    arcs, stay = [*ARCS, ("size", "a")], pb.HillClimb(max_iter=0)
    with pytest.warns(pb.DataWarning, match="'size' describes data sets"):
        net = pb.learn(frame, group="F", start=arcs, search=stay, preset="paper")
    more = net.adapt(name="new")
    gaps = frame.assign(b=np.nan)
    unknown = frame.drop(columns=["F", "size"])  # without rows the new one has no weight
    for asked, target in ((frame, "c"), (gaps, "a"), (gaps, "c"), (unknown, "c"), (unknown, "a")):
        known = net.predict(asked, target)
        pd.testing.assert_frame_equal(more.predict(asked, target), known, rtol=1e-9)
        if asked is not unknown:
            assert (known["sd"] > net.predict(asked, target, plugin=True)["sd"]).all()
    np.testing.assert_allclose(
        more.loglik(frame, rows=True), net.loglik(frame, rows=True), rtol=1e-9
    )
    new = frame.head(3).assign(F="new")
    own = log_rows(more, 5, new, ("size", "a", "b", "c"))
    np.testing.assert_allclose(more.loglik(new, rows=True), own, rtol=1e-9)


def test_few_rows_without_pooling() -> None:
    """One degree of freedom has a distribution, none has not."""
    frame = rows(1, n=30)
    small = frame.groupby("F").head(100).query("F != 's0'")
    few = pd.concat([small, frame.query("F == 's0'").head(4)])
    stay = pb.HillClimb(max_iter=0)
    net = pb.learn(few, group="F", start=ARCS, pooling="none", search=stay, preset="paper")
    found = net.predict(frame.head(3), "c")
    assert np.isfinite(found).all(axis=None)
    assert predictive(net.fits["c"]).within_df[net.levels.index("s0")] == 1
    fewer = pd.concat([small, frame.query("F == 's0'").head(3)])
    net = pb.learn(fewer, group="F", start=ARCS, pooling="none", search=stay, preset="paper")
    here, elsewhere = frame.head(3), frame.query("F == 's1'")
    said = r"'c' has no predictive .* 's0': its 3 rows .* pooling='partial' .* plugin=True"
    for ask in (net.loglik, net.classify, lambda f: net.predict(f, "c")):
        with pytest.raises(pb.DataError, match=said):
            ask(here)
    with pytest.raises(pb.DataError, match=said):
        net.sample(3, "s0")
    assert np.isfinite(net.loglik(elsewhere))
    assert np.isfinite(net.predict(here, "c", plugin=True)).all(axis=None)


# Coverage


def covered(of: Predictive, j: int, x: np.ndarray, y: np.ndarray) -> float:
    """The share of new rows inside 95% intervals."""
    mean, scale2, df = of.at(np.column_stack([np.ones_like(x), x]), j)
    return float((np.abs(y - mean) <= stats.t.ppf(0.975, df) * np.sqrt(scale2)).mean())


def coverage(
    data_sets: int, n: int, slope_sd: float, pooling: object, tables: int, seed: int
) -> tuple[float, float]:
    """In known data sets and a new one: intercept SD 0.5, residual SD 1."""
    rng, new = np.random.default_rng(seed), 40
    known, other = [], []
    for _ in range(tables):
        x = rng.normal(size=(data_sets + 1, n + new))
        b = rng.normal([0.0, 1.0], [0.5, slope_sd], size=(data_sets + 1, 2))
        y = b[:, :1] + b[:, 1:] * x + rng.normal(size=x.shape)
        values = np.stack([x, y], axis=2)[:-1, :n]
        mean = values.mean(axis=1)
        rest = values - mean[:, None]
        scatter = np.einsum("jna,jnb->jab", rest, rest)
        each, none = np.full(data_sets, n), np.zeros(data_sets, dtype=np.int64)
        table = pb.GroupStats(("x", "y"), tuple(range(data_sets)), each, mean, scatter, none)
        fit = pb.fit_node(table, "y", ["x"], pooling=pooling)  # type: ignore[arg-type]
        of = predictive(fit)
        known.append(np.mean([covered(of, j, x[j, n:], y[j, n:]) for j in range(data_sets)]))
        if fit.fixed is not None:
            other.append(covered(new_data_set(fit), 0, x[-1, n:], y[-1, n:]))
    return float(np.mean(known)), float(np.mean(other)) if other else math.nan


@pytest.mark.parametrize(
    ("data_sets", "slope_sd"), [pytest.param(3, 0.15, marks=pytest.mark.slow), (4, 0.5)]
)
def test_intervals_cover_new_rows(data_sets: int, slope_sd: float) -> None:
    known, new = coverage(data_sets, 20, slope_sd, pb.Partial(), 500, 1)
    assert 0.93 < known < 0.97
    if data_sets > 3:
        assert 0.93 < new < 0.97


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["shared", "pooled"])
@pytest.mark.parametrize(("data_sets", "n"), [(4, 50), (20, 20)])
def test_intervals_cover_new_rows_everywhere(pooling: str, data_sets: int, n: int) -> None:
    """Some cells of `benchmarks/prediction_coverage.py`."""
    known, new = coverage(data_sets, n, 0.5, POOLINGS[pooling], 300, 1)
    assert 0.93 < known < 0.97
    assert 0.93 < new < 0.97
