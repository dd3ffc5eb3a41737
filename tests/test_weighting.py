"""Likelihood weighting and sampling against exact answers, with Monte Carlo errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import given
from scipy.stats import binom, kstest, multivariate_normal, norm

import poolbn as pb
from poolbn.inference import linear

DAG = pb.Dag(["a", "b c", "d", "e"], [("a", "b c"), ("a", "d"), ("b c", "d"), ("d", "e")])
COEF = {
    "a": [[0.5], [1.5]],
    "b c": [[1.0, 0.8], [0.0, 0.3]],
    "d": [[0.0, -0.4, 1.2], [1.0, 0.6, -0.5]],
    "e": [[2.0, 0.5], [1.0, 1.0]],
}
COVS = {
    "a": [[0.2]],
    "b c": [[0.1, 0.02], [0.02, 0.05]],
    "d": np.diag([0.1, 0.03, 0.05]),
    "e": [[0.3, -0.1], [-0.1, 0.2]],
}
NET = given(DAG, COEF, np.array([[1.0, 0.7, 0.5, 0.9], [1.2, 1.0, 0.8, 0.6]]), ["s", "t"], [30, 10])
ADAPTED = replace(
    NET,
    fits={v: replace(f, coef_cov=np.array([COVS[v]] * 2)) for v, f in NET.fits.items()},
    adapted=("t",),
)
ROWS = pd.DataFrame(
    {
        "F": ["s", None, "t", None, None],
        "a": [0.3, 0.0, np.nan, 2.0, np.nan],
        "e": [2.5, np.nan, 1.0, 3.0, 0.5],
        "b c": [np.nan, np.nan, 1.0, 0.5, np.nan],
    }
)


def cells(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    codes = frame["F"].map({"s": 0, "t": 1}).fillna(-1).to_numpy(dtype=int)
    return frame.reindex(columns=list(DAG.nodes)).to_numpy(), codes


def estimate(
    values: np.ndarray, codes: np.ndarray, of: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means over 20,000 particles of something of data sets and nodes; their errors."""
    K, engine = 20_000, NET._engine(plugin=False)
    each = np.repeat(np.arange(len(values)), K)
    sets, drawn, log = engine.drawn(values[each], codes[each], np.random.default_rng(1))
    w, x = (v.reshape(-1, K) for v in (log, of(sets, drawn.T)))
    w = np.exp(w - w.max(axis=1, keepdims=True))
    w /= w.sum(axis=1, keepdims=True)
    mean = (w * x).sum(axis=1)
    return mean, np.sqrt((w**2 * (x - mean[:, None]) ** 2).sum(axis=1))


def test_weighted_particles_are_those_of_the_exact_posterior() -> None:
    values, codes = cells(ROWS)
    scores = []
    for node in ("d", "b c"):
        i = DAG.nodes.index(node)
        hidden = np.where(np.arange(4) == i, np.nan, values)
        mean, se = estimate(hidden, codes, lambda _, x, i=i: x[i])
        scores += ((mean - NET.predict(ROWS, node)["mean"]) / se).tolist()
    share, se = estimate(values, np.full(len(values), -1), lambda sets, _: sets == 0)
    scores += ((share - NET.classify(ROWS)["s"]) / se).tolist()
    assert np.abs(scores).max() < 4
    assert 0.4 < np.sqrt(np.mean(np.square(scores))) < 1.6


def test_bounds_of_particles_without_evidence_are_order_statistics() -> None:
    """Of 1000 with the same weight the 25th and the 975th; rounding leaves none out."""
    values, codes = np.full((1000, 4), np.nan), np.zeros(1000, dtype=int)
    drawn = NET._engine(plugin=False).drawn(values, codes, np.random.default_rng([0, 0]))[1]
    row = pd.DataFrame({"F": ["s"], "a": [np.nan]})
    found = NET.predict(row, "a", method="lw", particles=1000)
    ends = np.sort(drawn[:, 0])[[24, 974]]
    np.testing.assert_array_equal(found[["lower", "upper"]].to_numpy()[0], ends)


def test_the_error_falls_with_the_root_of_the_number_of_particles() -> None:
    frame = pd.concat([ROWS.iloc[[1]]] * 200, ignore_index=True)
    exact = NET.predict(frame, "d")["mean"]
    error = [
        np.sqrt(np.mean((NET.predict(frame, "d", method="lw", particles=k)["mean"] - exact) ** 2))
        for k in (50, 800)
    ]
    assert 3 < error[0] / error[1] < 5.2  # 4 = sqrt(800 / 50)


def test_predictions_by_likelihood_weighting() -> None:
    weighted = NET.predict(ROWS, ["d", "e"], method="lw", particles=40_000, interval=0.8)
    exact = NET.predict(ROWS, ["d", "e"], interval=0.8)
    assert (weighted.pop(("ess", "")) > 1000).all()
    pd.testing.assert_index_equal(weighted.columns, exact.columns)
    for node in ("d", "e"):
        apart = (weighted[node] - exact[node]).div(exact[node]["sd"], axis=0).abs()
        assert (apart < 0.04).all(axis=None)
    shares = NET.classify(ROWS, method="lw", particles=40_000)
    assert (shares.pop("ess") > 1000).all()
    assert list(shares) == ["s", "t", "most_probable"]
    np.testing.assert_allclose(shares[["s", "t"]], NET.classify(ROWS)[["s", "t"]], atol=0.02)
    np.testing.assert_allclose(shares[["s", "t"]].sum(axis=1), 1, rtol=1e-12)


def test_the_seed_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.concat([ROWS] * 100, ignore_index=True)
    first = NET.predict(frame, "d", method="lw", particles=2000)
    monkeypatch.setattr(linear, "available_cores", lambda: 1)
    pd.testing.assert_frame_equal(first, NET.predict(frame, "d", method="lw", particles=2000))
    other = NET.predict(frame, "d", method="lw", particles=2000, seed=1)
    assert (first["mean"] != other["mean"]).all()
    assert first["mean"].nunique() == len(frame)  # each row has particles of its own


def test_coefficients_of_an_adapted_data_set_are_uncertain() -> None:
    """Against coefficients drawn one by one."""
    rng, K = np.random.default_rng(3), 200_000
    drawn: dict[str, np.ndarray] = {}
    for i, v in enumerate(DAG.nodes):
        z = np.column_stack([np.ones(K), *(drawn[p] for p in DAG.parents(v))])
        b = rng.multivariate_normal(COEF[v][1], COVS[v], size=K)
        drawn[v] = (z * b).sum(axis=1) + rng.normal(size=K) * [1.2, 1.0, 0.8, 0.6][i]
    sample = ADAPTED.sample(K, "t", seed=4)
    for v in DAG.nodes:
        se = drawn[v].std() * np.sqrt(2 / K)
        assert abs(sample[v].mean() - drawn[v].mean()) < 4 * se
        assert sample[v].std() == pytest.approx(drawn[v].std(), rel=0.02)
        assert sample[v].std() > 1.02 * NET.sample(20_000, "t")[v].std()
    row = pd.DataFrame({"F": ["t"], "a": [0.5], "b c": [1.0]})  # all above d, nothing below
    exact = ADAPTED.predict(row, "d")
    weighted = ADAPTED.predict(row, "d", method="lw", particles=200_000)
    assert weighted.pop("ess").tolist() == pytest.approx([200_000])
    np.testing.assert_allclose(weighted, exact, atol=0.02)
    # Evidence below: the densities of it are those of a complete row.
    full = row.assign(d=0.2, e=-1.0).drop(columns="F")
    shares = ADAPTED.classify(full, method="lw", particles=100_000)
    np.testing.assert_allclose(shares["t"], ADAPTED.classify(full)["t"], atol=0.01)
    assert abs(ADAPTED.classify(full)["t"][0] - NET.classify(full)["t"][0]) > 0.05


def normal(j: int, nodes: list[str]) -> tuple[np.ndarray, np.ndarray]:
    k = [DAG.nodes.index(v) for v in nodes]
    return NET.joint.mean[j, k], NET.joint.cov[j][np.ix_(k, k)]


@pytest.mark.parametrize("method", ["exact", "lw"])
def test_probabilities_of_events_with_closed_forms(method: str) -> None:
    def close(found: pb.Probability, exact: float) -> bool:
        return 0 < found.se < 0.03 and abs(float(found) - exact) < 4 * found.se

    options = {"method": method, "particles": 20_000, "seed": 5}
    mean, cov = normal(0, ["d"])
    exact = norm.cdf(0.7, mean[0], np.sqrt(cov[0, 0]))
    assert close(NET.query("d < 0.7", {"F": "s"}, **options), exact)
    pair = multivariate_normal(*normal(1, ["b c", "e"])).cdf([0.5, 2.0])
    assert close(NET.query("`b c` < 0.5 and e < 2", {"F": "t"}, **options), pair)
    both = 0.75 * multivariate_normal(*normal(0, ["b c", "e"])).cdf([0.5, 2.0]) + 0.25 * pair
    assert close(NET.query(lambda f: (f["b c"] < 0.5) & (f["e"] < 2), **options), both)
    given_e = NET.posterior({"e": 3.0}, "a")
    assert close(NET.query("a > 1", {"e": 3.0}, **options), 1 - given_e.cdf(1.0))
    assert close(NET.query("F == 't'", {"e": 3.0}, **options), given_e.weights[1])
    assert float(NET.query("e == 3", {"e": 3.0}, **options)) == pytest.approx(1)
    assert float(NET.query("d != d", **options)) == 0


def test_the_standard_error_of_a_probability() -> None:
    for method in ("exact", "lw"):
        found = [NET.query("a > 1", {"e": 3.0}, method=method, particles=500, seed=s)
                 for s in range(300)]  # fmt: skip
        spread = np.std([float(p) for p in found])
        assert np.mean([p.se for p in found]) == pytest.approx(spread, rel=0.15)
    assert repr(pb.Probability(0.12341, 0.00321)) == "0.1234 (standard error 0.0032)"


def test_samples_have_the_distribution_of_the_network() -> None:
    sample = NET.sample(20_000, seed=2)
    assert list(sample) == ["F", *DAG.nodes]
    assert binom.cdf((sample["F"] == "s").sum(), 20_000, 0.75) == pytest.approx(0.5, abs=0.499)
    for j, (label, rows) in enumerate(sample.groupby("F")):
        assert label == NET.levels[j]
        mean, cov = normal(j, list(DAG.nodes))
        # Whitened, all columns are independent standard normal.
        z = np.linalg.solve(np.linalg.cholesky(cov), (rows[list(DAG.nodes)] - mean).to_numpy().T)
        assert min(kstest(one, "norm").pvalue for one in z) > 1e-3
        np.testing.assert_allclose(np.cov(z), np.eye(4), atol=5 / np.sqrt(len(rows)))
    assert (NET.sample(5, "t")["F"] == "t").all()
    pd.testing.assert_frame_equal(NET.sample(5, seed=3), NET.sample(5, seed=3))
    assert NET.sample(0).shape == (0, 5)


def test_a_sample_keeps_the_type_of_data_sets() -> None:
    net = given(pb.Dag(["a"]), {"a": np.zeros((2, 1))}, np.ones((2, 1)), [3, 12])  # type: ignore[list-item]
    assert net.sample(4, seed=1)["F"].dtype == np.int64
    assert net.sample(4, "12")["F"].tolist() == [12] * 4


def test_evidence_on_what_is_certain() -> None:
    net = NET.do(a=1.0)
    frame = ROWS.assign(a=1.0)
    lw = {"method": "lw", "particles": 20_000}
    weighted = net.predict(frame, "d", **lw).drop(columns="ess")
    np.testing.assert_allclose(weighted, net.predict(frame, "d"), atol=0.06)
    shares, exact = net.classify(frame, **lw), net.classify(frame)
    np.testing.assert_allclose(shares[["s", "t"]], exact[["s", "t"]], atol=0.02)
    other = ROWS.assign(a=[1.0, np.nan, 1.0, 2.0, 1.0])
    for ask in (lambda: net.predict(other, "d", **lw), lambda: net.classify(other, **lw)):
        with pytest.raises(pb.DataError, match=r"row 4 .*'a' is 2 there and 1 in the network"):
            ask()
    assert float(net.query("a == 1", {"e": 2.0})) == pytest.approx(1)
    assert float(net.query("a == 1", {"e": 2.0}, method="lw")) == pytest.approx(1)
