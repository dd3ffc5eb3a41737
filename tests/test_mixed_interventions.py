"""Interventions, new data sets, total effects, draws and filled cells in networks of all kinds."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, gammaln
from scipy.stats import binom

import poolbn as pb
from poolbn.nodes.links import count_quantiles, random_effects_cov

DAG = pb.Dag(
    ["sex", "x", "ill", "visits"],
    [("sex", "x"), ("sex", "ill"), ("x", "ill"), ("ill", "visits"), ("x", "visits")],
)


def frame(seed: int = 1, rows: int = 150) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    j = np.repeat(np.arange(4), rows)
    sex = np.where(rng.random(len(j)) < 0.45 + 0.05 * j, "m", "f")
    x = 0.5 * (sex == "m") + 0.3 * j + rng.normal(size=len(j))
    ill = np.where(rng.random(len(j)) < expit(-1 + x + 0.8 * (sex == "m")), "yes", "no")
    visits = rng.poisson(np.exp(0.2 + 0.7 * (ill == "yes") + 0.2 * x + 0.1 * j))
    site = np.array(["a", "b", "c", "d"])[j]
    return pd.DataFrame({"site": site, "sex": sex, "x": x, "ill": ill, "visits": visits})


@cache
def network(pooling: str = "partial", discrete: str = "auto") -> pb.Network:
    own = {"complete": pb.Complete, "none": pb.NoPooling, "partial": pb.Partial}[pooling]
    table = pb.table(frame(), group="site", kinds={"visits": "count"})
    how = own(discrete=discrete)
    fits = {node: pb.fit_node(table, node, DAG.parents(node), pooling=how) for node in DAG.nodes}
    return pb.Network(DAG, fits, score=0.0, group="site", n=table.n)


# do


def test_do_cuts_arcs_and_sets_values() -> None:
    net = network()
    done = net.do(ill="yes")
    assert done.dag.parents("ill") == ()
    assert ("ill", "visits") in done.dag.arcs
    rows = frame(2, 5)
    alone = net.predict(rows.assign(ill="yes").drop(columns=["sex"]), "visits")
    after = done.predict(rows.drop(columns=["sex", "ill"]), "visits")
    pd.testing.assert_frame_equal(after, alone, rtol=1e-9)
    # What is above does not change: ill says nothing of sex any more.
    none = done.predict(rows[["site", "ill"]].assign(ill="yes"), "sex")
    prior = net.predict(rows[["site"]].assign(x=np.nan), "sex")
    pd.testing.assert_frame_equal(none, prior, rtol=1e-9)
    with pytest.raises(pb.DataError, match="'ill' has probability 0"):
        done.predict(rows[["ill"]].assign(ill="no"), "sex")
    assert done.loglik(rows.assign(ill="no")) == -math.inf
    with pytest.raises(pb.OptionError, match="its levels are 'no' and 'yes'"):
        net.do(ill="maybe")
    with pytest.raises(pb.OptionError, match="it is a count"):
        net.do(visits=1.5)


# New data sets


def test_a_table_of_a_new_data_set_is_the_posterior_mean() -> None:
    net = network(discrete="table")
    fit, new = net.fits["sex"], frame(7, 10).drop(columns="site")
    added = net.adapt(new, "new").fits["sex"]
    counts = np.array([(new["sex"] == level).sum() for level in fit.categories])
    s = fit.concentration
    own = fit.population[0] if math.isinf(s) else (counts + s * fit.population[0]) / (s + 40)
    np.testing.assert_allclose(added.probabilities[-1, 0], own, rtol=1e-12)
    np.testing.assert_array_equal(
        net.adapt(None, "new").fits["sex"].probabilities[-1], fit.population
    )


@pytest.mark.parametrize("child", ["ill", "visits"])
def test_regressions_of_a_new_data_set_are_at_the_mode(child: str) -> None:
    """By direct maximisation of likelihood times the normal distribution of the population."""
    net = network(discrete="logit")
    new = frame(8, 12).drop(columns="site")
    fit = net.fits[child]
    R = random_effects_cov(fit.random_cov, fit.response.S)
    value, vector = np.linalg.eigh(R)
    root = vector * np.sqrt(np.maximum(value, 0.0))  # R may be singular
    of = {"sex=m": new["sex"] == "m", "x": new["x"], "ill=yes": new["ill"] == "yes"}
    X = np.column_stack([np.ones(len(new)), *(of[name] for name in fit.columns)]).astype(float)
    y = (new["ill"] == "yes").to_numpy() * 1.0 if child == "ill" else new["visits"].to_numpy()

    def loss(u: np.ndarray) -> float:
        eta = X @ (fit.fixed[0] + root @ u)
        if child == "ill":
            log = (y * eta - np.logaddexp(0, eta)).sum()
        elif math.isinf(fit.dispersion):
            log = (y * eta - np.exp(eta)).sum()
        else:
            a = fit.dispersion
            log = (gammaln(y + a) + y * eta - (y + a) * np.logaddexp(math.log(a), eta)).sum()
        return -log + u @ u / 2

    best = minimize(
        loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10}
    )
    own = net.adapt(new, "new").fits[child].coef[-1, 0]
    np.testing.assert_allclose(own, fit.fixed[0] + root @ best.x, atol=1e-5)
    assert np.abs(own - fit.fixed[0]).max() > 1e-3


# Total effects


def means(net: pb.Network, j: int, sex: int, grid: int = 4001) -> tuple[float, float, float]:
    """E[x], P(ill) and E[visits] in a data set after do(sex), by integration over x."""
    fits = net.fits
    mean = fits["x"].coef[j] @ [1, sex]
    sd = math.sqrt(fits["x"].sigma2[j])
    x = np.linspace(mean - 10 * sd, mean + 10 * sd, grid)
    w = np.exp(-(((x - mean) / sd) ** 2) / 2)
    w /= w.sum()
    b = dict(zip(("1", *fits["ill"].columns), fits["ill"].coef[j, 0], strict=True))
    p = expit(b["1"] + b["sex=m"] * sex + b["x"] * x)
    c = dict(zip(("1", *fits["visits"].columns), fits["visits"].coef[j, 0], strict=True))
    rate = np.exp(c["1"] + c["x"] * x)
    visits = rate * (1 - p + p * math.exp(c["ill=yes"]))
    return mean, w @ p, w @ visits


@pytest.mark.parametrize("pooling", ["complete", "none", "partial"])
def test_total_effects_are_those_of_the_g_formula(pooling: str) -> None:
    net = network(pooling, "logit")
    found = net.total_effects("sex", by="data set")
    for j, level in enumerate(net.levels):
        low, high = means(net, j, 0), means(net, j, 1)
        true = {
            ("x", "mean difference"): high[0] - low[0],
            ("ill", "risk difference"): high[1] - low[1],
            ("ill", "risk ratio"): high[1] / low[1],
            ("visits", "rate difference"): high[2] - low[2],
            ("visits", "rate ratio"): high[2] / low[2],
        }
        own = found[found["data_set"] == level].set_index(["effect", "scale"])
        assert set(own.index) == set(true)
        for key, value in true.items():
            row = own.loc[key]
            error = row["simulation_se"] * (value if "ratio" in key[1] else 1.0)
            assert abs(row["total"] - value) <= 4 * error + 1e-9
            assert row["lower"] < row["total"] < row["upper"]


# Draws, events and filled cells


def test_samples_have_the_shares_of_the_network() -> None:
    net, n = network(), 4000
    drawn = net.sample(n, "b", plugin=True, seed=3)
    for name in ("sex", "ill"):
        p = net.posterior({"site": "b"}, name, plugin=True).probabilities[name]
        for level, share in p.items():
            assert 1e-5 < binom.cdf((drawn[name] == level).sum(), n, share) < 1 - 1e-5
    assert drawn["visits"].dtype == np.int64
    assert set(drawn["site"]) == {"b"}


def test_events_have_their_probability() -> None:
    net = network()
    found = net.query("ill == 'yes'", {"site": "c", "x": 1.0, "sex": "m"}, plugin=True)
    p = net.posterior({"site": "c", "x": 1.0, "sex": "m"}, "ill", plugin=True)
    assert abs(float(found) - p.probabilities["ill"]["yes"]) < 4.5 * found.se + 1e-9
    below = net.query("ill == 'yes'", {"site": "c", "visits": 6}, particles=20_000, plugin=True)
    exact = net.posterior({"site": "c", "visits": 6}, "ill", plugin=True).probabilities["ill"]
    assert abs(float(below) - exact["yes"]) < 4.5 * below.se


def test_imputed_cells_are_what_is_most_probable() -> None:
    net, rows = network(), frame(5, 6)
    gaps = rows.copy()
    gaps.loc[::3, "ill"] = None
    gaps.loc[1::3, "x"] = np.nan
    gaps["visits"] = gaps["visits"].astype(float)
    gaps.loc[2::3, "visits"] = np.nan
    filled = net.impute(gaps)
    assert not filled.isna().any().any()
    for name, ask in (("ill", "most_probable"), ("x", "mean")):
        at = gaps[name].isna()
        own = net.predict(gaps, name).loc[at, ask]
        pd.testing.assert_series_equal(
            filled.loc[at, name], own, check_names=False, check_dtype=False
        )
    kept = gaps.notna()
    assert (
        (filled.astype(object)[kept].fillna(0) == gaps.astype(object)[kept].fillna(0)).all().all()
    )
    assert (filled["visits"] % 1 == 0).all()


@pytest.mark.parametrize("theta", [np.inf, 0.3, 2.0, 50.0])
def test_quantiles_of_counts_are_those_of_scipy(theta: float) -> None:
    rng = np.random.default_rng(3)
    mean = np.exp(rng.uniform(-6, 5, size=(5, 2000)))
    u = np.concatenate([rng.random(1990), [1e-12, 1 - 1e-9, *np.linspace(0.01, 0.99, 8)]])
    found = count_quantiles(u, mean, theta)
    law = stats.poisson(mean) if np.isinf(theta) else stats.nbinom(theta, theta / (theta + mean))
    np.testing.assert_array_equal(found, law.ppf(u))


def test_events_in_a_new_data_set_allow_for_few_data_sets() -> None:
    """A regression of what happens on what was predicted has a slope of 1 where that is right."""
    F, n, rng = 4, 40, np.random.default_rng(8)

    def drawn(sets: int) -> pd.DataFrame:
        site = np.repeat(np.arange(sets), n)
        x = rng.normal(size=sets * n)
        logit = rng.normal(size=sets)[site] + (0.8 + 0.5 * rng.normal(size=sets))[site] * x
        happens = rng.random(sets * n) < 1 / (1 + np.exp(-logit))
        return pd.DataFrame({"x": x, "y": np.where(happens, "yes", "no"), "site": site})

    predicted, happened = [], []
    for _ in range(40):
        net = pb.learn(drawn(F), group="site", start=[("x", "y")], search=pb.HillClimb(max_iter=0))
        new = drawn(10)
        p = net.adapt(None, 99).predict(new.assign(site=99), "y")["yes"].to_numpy()
        predicted.append(np.log(p / (1 - p)))
        happened.append(np.where(new["y"] == "yes", 1.0, -1.0))
    logit, y = np.concatenate(predicted), np.concatenate(happened)
    slope = minimize_scalar(
        lambda k: np.logaddexp(0, -k * y * logit).mean(), bounds=(0, 3), method="bounded"
    ).x
    assert 0.7 < slope < 1.3
