"""Answers of networks with columns of all kinds, against enumeration and dense integration."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from brute import Brute, Given, categories, is_finite, legendre, rows_of
from helpers import simulate
from mixednets import fitted, random_frame, simulated, with_gaps
from scipy.integrate import dblquad, quad
from scipy.special import expit, softmax
from scipy.stats import nbinom, norm, poisson

import poolbn as pb
from poolbn.inference import general
from poolbn.inference.engine import Effort
from poolbn.inference.general import general_network
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.predicting import RegressionPredictions

CLOSE = {"rtol": 1e-8, "atol": 1e-8}
NETS = [(make, seed) for seed in range(10) for make in (simulated, fitted)]


def compare(found: pd.Series, given: Given, fit: LocalFit, *, bounds: bool = True) -> None:
    """A row of `predict` with a 90% interval."""
    true = given.target(fit)
    if own := categories(fit):
        np.testing.assert_allclose(found[list(own)].to_numpy(dtype=float), true.p, **CLOSE)
        assert found["most_probable"] == own[int(np.argmax(true.p))]
        return
    assert found["mean"] == pytest.approx(true.mean, rel=1e-8, abs=1e-8 * true.sd)
    assert found["sd"] == pytest.approx(true.sd, rel=1e-8)
    for name, p in (("lower", 0.05), ("upper", 0.95)) if bounds else ():
        if true.p is not None:
            assert found[name] == true.quantile(p)
        else:
            assert true.cdf(found[name]) == pytest.approx(p, abs=1e-8)


def sampled(table: pd.DataFrame, k: int) -> bool:
    return "ess" in table and math.isfinite(table["ess"].iloc[k])


@pytest.mark.parametrize(("make", "seed"), NETS)
def test_predictions_with_gaps(make, seed: int) -> None:
    """Estimates for certain; data sets known and not known."""
    net = make(seed)
    frame, brute = with_gaps(net, seed, 4, 0.35), Brute(net, plugin=True)
    done = 0
    for target in net.dag.nodes:
        found = net.predict(frame, target, plugin=True, interval=0.9)
        pd.testing.assert_index_equal(found.index, frame.index)
        for k, (row, label) in enumerate(rows_of(net, frame)):
            row.pop(target, None)
            if not sampled(found, k):
                given = brute.given(row, label, target)
                compare(found.iloc[k], given, net.fits[target], bounds=k < 2)
                done += 1
    assert done >= 10
    each, classified = net.loglik(frame, rows=True, plugin=True), net.classify(frame, plugin=True)
    for k, (row, label) in enumerate(rows_of(net, frame)):
        if not sampled(classified, k):
            assert each.iloc[k] == pytest.approx(brute.given(row, label, None).loglik, abs=1e-8)
            weights = brute.given(row, None, None).weights
            np.testing.assert_allclose(
                classified[list(net.levels)].iloc[k].to_numpy(dtype=float), weights, **CLOSE
            )
            assert classified["most_probable"].iloc[k] == net.levels[int(np.argmax(weights))]


def is_closed(net: pb.Network, target: str) -> bool:
    """Whether with all other nodes known predictive distributions of the target are exact.

    A continuous one below which are continuous ones only is not: normal distributions stand for t.
    Another is left out because it takes long.
    """
    below = [net.fits[child] for child in net.dag.children(target)]
    slow = any(len(categories(fit)) == 3 for fit in below)  # three integrals by brute force
    return is_finite(net.fits[target]) or not below or (any(map(is_finite, below)) and not slow)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_predictive_distributions_with_all_others_known(seed: int) -> None:
    net = fitted(seed)
    frame, brute = with_gaps(net, seed, 2, 0.0), Brute(net, plugin=False)
    frame["F"] = [net.levels[seed % 3], None]
    each = net.loglik(frame, rows=True)
    for k, (row, label) in enumerate(rows_of(net, frame)):
        assert each.iloc[k] == pytest.approx(brute.given(row, label, None).loglik, abs=1e-8)
    for target in filter(lambda node: is_closed(net, node), net.dag.nodes):
        found = net.predict(frame, target, interval=0.9)
        for k, (row, label) in enumerate(rows_of(net, frame)):
            row.pop(target)
            given = brute.given(row, label, target)
            compare(found.iloc[k], given, net.fits[target], bounds=k == 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 8])
@pytest.mark.parametrize("rows", [0, 25])
@pytest.mark.parametrize("plugin", [False, True])
def test_new_data_sets(seed: int, rows: int, plugin: bool) -> None:
    """Their coefficients are uncertain with estimates for certain too."""
    net = fitted(seed)
    if rows == 0 and any(isinstance(fit.pooling, pb.NoPooling) for fit in net.fits.values()):
        pytest.skip("there is no population")
    new = net.adapt(net.sample(rows, "two", seed=9).drop(columns="F") if rows else None, "new")
    frame = with_gaps(net, seed, 2, 0.0)
    frame["F"] = ["new", None]
    brute = Brute(new, plugin=plugin, most=500, fine=14)
    for target in filter(lambda node: is_closed(net, node), net.dag.nodes):
        found = new.predict(frame, target, interval=0.9, plugin=plugin)
        for k, (row, label) in enumerate(rows_of(new, frame)):
            row.pop(target)
            compare(found.iloc[k], brute.given(row, label, target), net.fits[target], bounds=False)


@pytest.mark.parametrize(("make", "seed"), NETS[::3])
def test_posteriors(make, seed: int) -> None:
    net = make(seed)
    brute = Brute(net, plugin=True)
    frame = with_gaps(net, seed + 50, 2, 0.5)
    for record, (row, label) in zip(frame.to_dict("records"), rows_of(net, frame), strict=True):
        evidence = {name: record[name] for name in row}
        if label is not None:
            evidence["F"] = label
        targets = [name for name in net.dag.nodes if name not in row]
        for target in targets:
            found = net.posterior(evidence, target, plugin=True)
            if str(found.method) == "sampling":
                assert math.isfinite(found.ess)
                continue
            assert math.isinf(found.ess)
            try:
                fit, given = net.fits[target], brute.given(row, label, target)
            except NotImplementedError:  # two independent quadratures
                continue
            true = given.target(fit)
            if label is None:
                np.testing.assert_allclose(found.weights, given.weights, **CLOSE)
            else:
                assert found.weights.tolist() == [float(level == label) for level in net.levels]
            if categories(fit):
                own = found.probabilities[target]
                assert list(own.index) == list(categories(fit))
                np.testing.assert_allclose(own.to_numpy(), true.p, **CLOSE)
                assert np.isnan(found.mean).all()
                continue
            np.testing.assert_allclose(found.mean, true.mean, rtol=1e-8, atol=1e-8 * true.sd)
            np.testing.assert_allclose(found.sd, true.sd, rtol=1e-8)
            if true.p is not None:
                assert found.cdf(2.0) == pytest.approx(true.p[:3].sum(), abs=1e-8)
                assert found.quantile([0.3]) == [true.quantile(0.3)]
            else:
                x = true.mean + np.array([-1.0, 0.5]) * true.sd
                np.testing.assert_allclose(found.cdf(x), [true.cdf(at) for at in x], atol=1e-8)
                assert true.cdf(float(found.quantile(0.3))) == pytest.approx(0.3, abs=1e-8)
        if targets:
            assert net.posterior(evidence, targets).targets == tuple(targets)


@pytest.mark.parametrize(("make", "seed"), NETS[1::6])
@pytest.mark.parametrize("plugin", [False, True])
def test_probabilities_are_normalised_likelihoods(make, seed: int, plugin: bool) -> None:
    """With all other cells known, and estimates for certain with gaps too."""
    net = make(seed)
    frame = with_gaps(net, seed, 6, 0.3 if plugin else 0.0)
    for y in (name for name, fit in net.fits.items() if categories(fit)):
        found, own = net.predict(frame, y, plugin=plugin), list(categories(net.fits[y]))
        log = np.column_stack(
            [net.loglik(frame.assign(**{y: x}), rows=True, plugin=plugin) for x in own]
        )
        p = np.exp(log - log.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        for k in range(len(frame)):
            if not sampled(found, k):
                np.testing.assert_allclose(
                    found[own].iloc[k].to_numpy(dtype=float), p[k], rtol=1e-8, atol=1e-10
                )


# Sampling


@pytest.mark.parametrize("seed", range(3))
def test_draws_tend_to_exact_answers_and_know_their_error(seed: int) -> None:
    """Within 4 standard errors of the effective sample size, which are as large as they say."""
    net = fitted(seed)
    frame = with_gaps(net, seed, 3, 0.2)
    squares = []
    for target in net.dag.nodes:
        exact = net.predict(frame, target, plugin=True)
        own = list(categories(net.fits[target]))
        for again in range(4):
            found = net.predict(frame, target, method="lw", particles=4000, seed=again, plugin=True)
            for k in range(len(frame)):
                if sampled(exact, k) or found["ess"].iloc[k] < 100:
                    continue
                ess = found["ess"].iloc[k]
                if own:
                    level = exact[own].iloc[k].to_numpy(dtype=float).argmax()
                    p = exact[own[level]].iloc[k]
                    away, sd = found[own[level]].iloc[k] - p, math.sqrt(p * (1 - p))
                else:
                    away = found["mean"].iloc[k] - exact["mean"].iloc[k]
                    sd = exact["sd"].iloc[k]
                assert abs(away) <= 4 * sd / math.sqrt(ess) + 1e-12
                if sd > 1e-3:
                    squares.append((away * math.sqrt(ess) / sd) ** 2)
    assert len(squares) >= 20
    assert 0.4 < np.mean(squares) < 1.8


def two_above(seed: int = 1) -> pb.Network:
    """x and z above y: with both missing there is no exact answer."""
    frame, rng = simulate(seed, data_sets=3, rows=80), np.random.default_rng(seed)
    x, z = frame["x1"], frame["x2"]
    y = np.where(rng.random(len(x)) < expit(x - z), "yes", "no")
    visits = rng.poisson(np.exp(0.4 * x))
    made = pd.DataFrame({"F": frame["F"], "x": x, "z": z, "y": y, "visits": visits})
    dag = pb.Dag(["x", "z", "y", "visits"], [("x", "y"), ("z", "y"), ("x", "visits")])
    table = pb.table(made, group="F", kinds={"visits": "count"})
    fits = {node: pb.fit_node(table, node, dag.parents(node), pooling="complete")
            for node in dag.nodes}  # fmt: skip
    return pb.Network(dag, fits, score=math.nan, group="F", n=table.n)


@pytest.mark.slow
def test_two_numbers_above_a_discrete_node_are_drawn() -> None:
    """Against integration over both."""
    net = two_above()
    x, z = ((net.fits[name].coef[0, 0], math.sqrt(net.fits[name].sigma2[0])) for name in "xz")
    b = net.fits["y"].coef[0, 0]

    def joint(u: float, v: float) -> float:
        return norm.pdf(u, *x) * norm.pdf(v, *z) * expit(b @ [1.0, u, v])

    box = [x[0] - 8 * x[1], x[0] + 8 * x[1], z[0] - 8 * z[1], z[0] + 8 * z[1]]
    total = dblquad(lambda v, u: joint(u, v), *box, epsabs=1e-5)[0]
    mean = dblquad(lambda v, u: u * joint(u, v), *box, epsabs=1e-5)[0] / total
    second = dblquad(lambda v, u: u * u * joint(u, v), *box, epsabs=1e-5)[0] / total
    found = net.posterior({"y": "yes"}, "x", plugin=True)
    assert str(found.method) == "sampling"
    error = math.sqrt((second - mean**2) / found.ess)
    assert 2000 < found.ess < 30_000  # 10,000 in each data set
    assert abs(found.mean[0] - mean) < 4 * error
    assert "found by  sampling, effective sample size" in repr(found)
    frame = pd.DataFrame({"y": ["yes"] * 40})
    table = net.predict(frame, "x", plugin=True)  # each row has draws of its own
    z2 = ((table["mean"] - mean) ** 2 * table["ess"] / (second - mean**2)).to_numpy()
    assert 0.5 < z2.mean() < 1.7
    logs = net.loglik(frame, rows=True, plugin=True)
    assert np.exp(logs).mean() == pytest.approx(total, abs=4 * np.exp(logs).std() / math.sqrt(40))
    with pytest.raises(pb.DataError, match="no exact answer: x and z are missing, and par"):
        net.predict(frame, "x", method="exact")


def test_counts_below_numbers_are_drawn() -> None:
    net = two_above()
    count, x = net.fits["visits"], net.fits["x"]
    mean, sd = x.coef[0, 0], math.sqrt(x.sigma2[0])
    found = net.posterior({}, "visits", plugin=True)
    assert str(found.method) == "sampling"

    def expected(of) -> float:
        def density(u: float) -> float:
            return norm.pdf(u, mean, sd) * of(np.exp(count.coef[0, 0] @ [1.0, u]))

        return quad(density, mean - 10 * sd, mean + 10 * sd, limit=200)[0]

    a = count.dispersion
    extra = 0.0 if math.isinf(a) else 1 / a
    m, m2 = expected(lambda e: e), expected(lambda e: e + e * e * (1 + extra))
    error = math.sqrt((m2 - m * m) / found.ess)
    assert abs(found.mean[0] - m) < 4 * error
    own = poisson if math.isinf(a) else None
    none = expected(lambda e: own.pmf(0, e) if own else nbinom.pmf(0, a, a / (a + e)))
    assert abs(found.cdf(0.0) - none) < 4 * math.sqrt(none * (1 - none) / found.ess)


def test_the_same_seed_gives_the_same_bits_with_any_threads(monkeypatch) -> None:
    net, frame = two_above(), pd.DataFrame({"y": ["yes", "no"] * 300})
    made = {}
    for cores in (1, 2, 5):
        monkeypatch.setattr(general, "available_cores", lambda cores=cores: cores)
        made[cores] = net.predict(frame, "x", seed=3)
    pd.testing.assert_frame_equal(made[1], made[2], check_exact=True)
    pd.testing.assert_frame_equal(made[1], made[5], check_exact=True)
    assert not made[1].equals(net.predict(frame, "x", seed=4))


# Laws


@pytest.mark.parametrize("pooling", ["complete", "none", "partial"])
@pytest.mark.parametrize("plugin", [False, True])
def test_continuous_networks_are_those_of_linear_inference(pooling: str, plugin: bool) -> None:
    frame = simulate(3, data_sets=3, rows=30, parents=3)
    net = pb.learn(frame, group="F", start=[("x1", "y"), ("y", "x2"), ("x3", "x2")],
                   search=pb.HillClimb(max_iter=0), pooling=pooling)  # fmt: skip
    sure = list(net.levels) if plugin else []
    engine = general_network(net.dag, net.fits, net.n, net.inputs, sure)
    rng = np.random.default_rng(1)
    rows = frame.sample(40, random_state=1)
    nodes = list(net.dag.nodes)
    rows[nodes] = rows[nodes].where(rng.random((40, 4)) > 0.25)
    rows["F"] = rows["F"].where(rng.random(40) > 0.5)
    cells = net._read(rows)
    logs = engine.log_densities(cells.values, cells.codes)
    np.testing.assert_allclose(logs, net.loglik(rows, rows=True, plugin=plugin), rtol=1e-9)
    for target in nodes:
        at, own = nodes.index(target), net.predict(rows, target, plugin=plugin)
        x = cells.values.copy()
        x[:, at] = np.nan
        found = engine.predictions(x, cells.codes, [at], 0.95, Effort())
        np.testing.assert_allclose(found.columns[0], own, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "seed"), NETS[::5])
def test_saved_networks_answer_to_the_bit(make, seed: int, tmp_path: Path) -> None:
    net = make(seed)
    net.save(tmp_path / "net.json")
    loaded, frame = pb.load(tmp_path / "net.json"), with_gaps(net, seed, 4, 0.3)
    for plugin in (False, True):
        for target in net.dag.nodes:
            pd.testing.assert_frame_equal(
                loaded.predict(frame, target, plugin=plugin),
                net.predict(frame, target, plugin=plugin),
                check_exact=True,
            )
        for ask in ("classify", "impute"):
            pd.testing.assert_frame_equal(
                getattr(loaded, ask)(frame, plugin=plugin),
                getattr(net, ask)(frame, plugin=plugin),
                check_exact=True,
            )
        assert loaded.loglik(frame, plugin=plugin) == net.loglik(frame, plugin=plugin)
        pd.testing.assert_frame_equal(
            loaded.sample(20, plugin=plugin, seed=2), net.sample(20, plugin=plugin, seed=2)
        )


@pytest.mark.parametrize(("make", "seed"), NETS[2::5])
def test_order_of_rows_and_columns_does_not_matter(make, seed: int) -> None:
    net = make(seed)
    frame = with_gaps(net, seed, 6, 0.25)
    other = frame.sample(frac=1, random_state=2)[sorted(frame, reverse=True)]
    other = other.assign(more="anything")
    for target in net.dag.nodes:
        one, two = net.predict(frame, target), net.predict(other, target).loc[frame.index]
        if "ess" not in one:
            pd.testing.assert_frame_equal(one, two, rtol=1e-10, atol=1e-12)


def test_rows_apart_are_rows_together() -> None:
    """Chunks, patterns of missing cells and threads change nothing that is exact."""
    net = simulated(4)
    frame = with_gaps(net, 1, 60, 0.15)
    target = net.dag.nodes[0]
    together = net.predict(frame, target)
    assert "ess" not in together
    for k in range(len(frame)):
        alone = net.predict(frame.iloc[[k]], target)
        pd.testing.assert_frame_equal(alone, together.iloc[[k]], rtol=1e-12, atol=1e-13)


def test_several_targets() -> None:
    """The distribution of each without the cells of the others."""
    net = fitted(2)
    frame = with_gaps(net, 5, 5, 0.0)
    nodes = list(net.dag.nodes)
    both = net.predict(frame, nodes[1:3], plugin=True)
    for target in nodes[1:3]:
        hidden = frame.drop(columns=nodes[1:3])
        alone = net.predict(hidden, target, plugin=True)
        pd.testing.assert_frame_equal(both[target], alone.drop(columns="ess", errors="ignore"))


def test_inputs_have_no_density() -> None:
    """Nor do they tell the data set."""
    frame, _, kinds = random_frame(3)
    frame["dose"] = np.random.default_rng(1).normal(size=len(frame)) + frame["F"].str.len()
    net = pb.learn(frame, group="F", kinds=kinds, inputs=["dose"])
    other = frame.assign(dose=frame["dose"] + 0.0)
    assert net.inputs == ("dose",)
    if not net.dag.children("dose"):
        pd.testing.assert_frame_equal(net.classify(frame), net.classify(other.drop(columns="dose")))
        assert net.loglik(frame) == pytest.approx(net.loglik(frame.drop(columns="dose")))


@pytest.mark.parametrize("sd", [0.2, 0.8, 1.1, 1.5, 4.0, 8.0])
def test_expected_probabilities_of_three_levels(sd: float) -> None:
    """Against a dense rule in two dimensions, whichever levels differ most."""
    z, w = legendre(-8.5, 8.5, 60, 12)
    w = w * norm.pdf(z)
    rng = np.random.default_rng(int(10 * sd))
    for case in range(6):
        mean, root = rng.normal(size=2) * sd, np.tril(rng.normal(size=(2, 2)))
        root[case % 2, case % 2] *= 0.0 if case == 5 else 0.3  # a singular one too
        root *= sd / np.abs(root).max()
        first = mean[0] + root[0, 0] * z[:, None] + 0 * z
        second = mean[1] + root[1, 0] * z[:, None] + root[1, 1] * z
        p = softmax(np.stack([0 * first, first, second]), axis=0)
        node = RegressionPredictions(
            mean[None, :, None], (root @ root.T)[None], (), (), 3, math.inf
        )  # fmt: skip
        found = np.exp(node.log_levels({}, np.zeros(1, dtype=np.int64)))
        np.testing.assert_allclose(found[0], p @ w @ w, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("sd", [0.05, 0.3, 0.9, 1.3, 1.9, 2.1, 6.0])
@pytest.mark.parametrize("mean", [-12.0, -1.0, 0.0, 3.0])
def test_expected_probabilities_of_two_levels(mean: float, sd: float) -> None:
    """Against a dense rule, also where they are small."""
    z, w = legendre(-14, 14, 100, 12)
    expected = [norm.pdf(z) @ (w * expit(sign * (mean + sd * z))) for sign in (-1, 1)]
    node = RegressionPredictions(
        np.full((1, 1, 1), mean), np.full((1, 1, 1), sd**2), (), (), 2, math.inf
    )
    found = np.exp(node.log_levels({}, np.zeros(1, dtype=np.int64)))
    np.testing.assert_allclose(found[0], expected, rtol=1e-9)


def test_tables_without_a_continuous_column_choose_their_pooling() -> None:
    frame, _, kinds = random_frame(1)
    own = pb.table(frame, group="F", kinds=kinds)
    names = [name for name in own.names if own.kind(name) == "discrete"]
    net = pb.learn(frame, group="F", columns=names, pooling="auto")
    assert set(net.dag.nodes) == set(names)
