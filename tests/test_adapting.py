from __future__ import annotations

import dataclasses
from functools import cache
from itertools import islice

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import REFERENCE, reference, simulate
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import poolbn as pb
from poolbn.nodes.adapting import random_effects

CASES = reference("adapt/adapt.json")
FRAME = simulate(3, data_sets=6, rows=12, parents=2)
KNOWN, NEW = FRAME[FRAME["F"] != "set 5"], FRAME[FRAME["F"] == "set 5"]
ARCS = [("x1", "y"), ("x2", "y"), ("x1", "x2")]
POOLINGS = ["complete", "none", "partial", pb.Partial(random="intercept")]
each_pooling = pytest.mark.parametrize("pooling", POOLINGS, ids=str)


@cache
def network(pooling: str | pb.Partial = "partial") -> pb.Network:
    return fixed(KNOWN, ARCS, pooling)


def fixed(
    frame: pd.DataFrame,
    arcs: list[tuple[str, str]],
    pooling: str | pb.Partial = "partial",
    group: str = "F",
) -> pb.Network:
    """The network with exactly these arcs."""
    return pb.learn(
        frame, group=group, pooling=pooling, start=arcs, search=pb.HillClimb(max_iter=0)
    )


def assert_same_fits(a: pb.Network, b: pb.Network, rtol: float = 1e-9) -> None:
    for node in a.dag.nodes:
        for part in ("coef", "coef_cov", "sigma2"):
            mine, yours = (getattr(net.fits[node], part) for net in (a, b))
            np.testing.assert_allclose(mine, yours, rtol=rtol, atol=rtol * np.abs(mine).max())


# Against lme4; the recipe is beside the numbers


@cache
def table(case: str, group: str, columns: tuple[str, ...]) -> pd.DataFrame:
    if case == "opt":
        frame = pb.datasets.opt(kind="continuous")
    else:
        path = REFERENCE / "lme" / "data" / f"{case}.csv.gz"
        frame = pd.read_csv(path, dtype={group: str})
    return frame[[*columns, group]].dropna()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['data']}-{case['predictors']}")
@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_all_rows_of_a_left_out_data_set_give_the_random_effects_of_lme4(case: dict) -> None:
    y, xs, group = case["response"], case["predictors"], case["group"]
    frame = table(case["data"], group, (y, *xs))
    q, r = len(xs) + 1, len(case["Sigma"])
    D = np.zeros((q, q))
    D[:r, :r] = case["Sigma"]
    beta = np.array(case["fixef"])
    effects = zip(case["levels"], case["ranef"], case["cond_var"], strict=True)
    for level, b, cov in islice(effects, 20):
        rows = frame[frame[group] == level]
        net = fixed(frame.drop(rows.index), [(x, y) for x in xs], "complete", group)
        fit = net.fits[y]
        order = [0, *(1 + xs.index(x) for x in fit.parents)]
        held = dataclasses.replace(
            fit,
            fixed=beta[order],
            random_cov=D[np.ix_(order, order)],
            sigma2=np.full(len(fit.levels), case["sigma"] ** 2),
        )
        net = dataclasses.replace(net, fits={**net.fits, y: held}).adapt(rows, level)
        assert net.levels[-1] == level
        back = np.argsort(order)
        random = net.fits[y].coef[-1][back] - beta
        sd = np.sqrt(np.diagonal(D))[:r]
        np.testing.assert_allclose(random[:r] / sd, np.array(b) / sd, rtol=0, atol=1e-10)
        found = net.fits[y].coef_cov[-1][np.ix_(back, back)]
        scale = np.outer(sd, sd)
        np.testing.assert_allclose(found[:r, :r] / scale, np.array(cov) / scale, rtol=0, atol=1e-10)
        assert not found[r:].any()


# Against dense matrices


@given(st.integers(0, 10**6), st.integers(0, 8), st.integers(0, 3), st.integers(0, 4))
def test_the_prediction_is_that_of_the_joint_normal_distribution(
    seed: int, rows: int, parents: int, rank: int
) -> None:
    """Condition b on y in their joint distribution, with any rank of D and any number of rows."""
    rng = np.random.default_rng(seed)
    q = parents + 1
    X, y = rng.normal(2, 1, (rows, parents)), rng.normal(5, 2, rows)
    factor = rng.normal(size=(q, min(rank, q)))
    D, beta, sigma2 = factor @ factor.T, rng.normal(size=q), rng.uniform(0.1, 2)
    names = [f"x{k}" for k in range(parents)]
    family = statistics(X, y, names).family("y", names)
    b, cov, _ = random_effects(family, beta, D, sigma2)
    Z = np.column_stack([np.ones(rows), X])
    V = sigma2 * np.eye(rows) + Z @ D @ Z.T
    np.testing.assert_allclose(b, D @ Z.T @ np.linalg.solve(V, y - Z @ beta), atol=1e-8)
    np.testing.assert_allclose(cov, D - D @ Z.T @ np.linalg.solve(V, Z @ D), atol=1e-8)
    assert (np.diagonal(cov) >= 0).all()


def statistics(X: np.ndarray, y: np.ndarray, names: list[str]) -> pb.GroupStats:
    """By hand, because there may be no rows at all."""
    data = np.column_stack([X, y])
    mean = data.mean(axis=0) if len(y) else np.zeros(data.shape[1])
    centred = data - mean
    none = np.zeros(1, dtype=np.int64)
    return pb.GroupStats(
        (*names, "y"), ("new",), none + len(y), mean[None], (centred.T @ centred)[None], none
    )


# Laws


@each_pooling
def test_the_network_stays_as_it_was(pooling: str | pb.Partial) -> None:
    net = network(pooling)
    new = net.adapt(NEW, "new")
    assert new.levels == (*net.levels, "new")
    assert new.adapted == ("new",)
    assert net.adapted == ()
    assert new.n.tolist() == [*net.n.tolist(), 12]
    assert new.n.dtype == net.n.dtype
    assert (new.dag, new.score, new.trace, new.group) == (net.dag, net.score, net.trace, net.group)
    for node, fit in net.fits.items():
        adapted = new.fits[node]
        for part in ("coef", "coef_cov", "sigma2"):
            np.testing.assert_array_equal(getattr(adapted, part)[:-1], getattr(fit, part))
        assert adapted.levels == new.levels
        assert (adapted.loglik, adapted.n_params, adapted.n_rows) == (
            fit.loglik, fit.n_params, fit.n_rows,
        )  # fmt: skip
    assert new.joint.prior[-1] == pytest.approx(12 / 72)


@pytest.mark.parametrize("pooling", [how for how in POOLINGS if how != "none"], ids=str)
def test_without_rows_it_is_the_population(pooling: str | pb.Partial) -> None:
    net = network(pooling).adapt(name="anywhere")
    assert net.n[-1] == 0
    assert net.joint.prior[-1] == 0
    for fit in net.fits.values():
        np.testing.assert_array_equal(fit.coef[-1], fit.fixed)
        expected = np.zeros_like(fit.fixed_cov) if fit.random_cov is None else fit.random_cov
        np.testing.assert_allclose(fit.coef_cov[-1], expected, rtol=1e-12, atol=1e-12)
        assert fit.sigma2[-1] == fit.sigma2[0]


def test_complete_pooling_is_partial_pooling_without_variation() -> None:
    partial = network("partial")
    still = {
        node: dataclasses.replace(fit, random_cov=np.zeros_like(fit.random_cov))
        for node, fit in partial.fits.items()
    }
    net = dataclasses.replace(partial, fits=still).adapt(NEW, "new")
    for fit in net.fits.values():
        np.testing.assert_array_equal(fit.coef[-1], fit.fixed)
        assert not fit.coef_cov[-1].any()


def test_many_rows_tend_to_their_own_least_squares() -> None:
    net = network()
    rng = np.random.default_rng(0)
    gap = []
    for n in (10**2, 10**4, 10**6):
        x1 = rng.normal(size=n)
        x2 = 2 - x1 + rng.normal(size=n)
        rows = pd.DataFrame({"x1": x1, "x2": x2, "y": 3 - 4 * x1 + x2 + rng.normal(size=n)})
        new = net.adapt(rows, "new").fits["y"]
        Z = np.column_stack([np.ones(n), rows[list(new.parents)]])
        own, *_ = np.linalg.lstsq(Z, rows["y"].to_numpy(), rcond=None)
        gap.append(np.abs(new.coef[-1] - own).max())
    assert gap[0] < 0.3
    assert gap[1] < gap[0] / 30
    assert gap[2] < gap[1] / 30
    assert np.sqrt(np.diagonal(new.coef_cov[-1])).max() < 0.01


def test_without_pooling_it_is_least_squares_on_the_new_rows() -> None:
    fit = network("none").adapt(NEW, "new").fits["y"]
    Z = np.column_stack([np.ones(len(NEW)), NEW[list(fit.parents)]])
    own, (rss,), _, _ = np.linalg.lstsq(Z, NEW["y"].to_numpy(), rcond=None)
    np.testing.assert_allclose(fit.coef[-1], own, rtol=1e-10)
    assert fit.sigma2[-1] == pytest.approx(rss / 12)
    np.testing.assert_allclose(fit.coef_cov[-1], rss / 9 * np.linalg.inv(Z.T @ Z), rtol=1e-9)


@each_pooling
def test_rows_statistics_and_files_are_the_same(pooling: str | pb.Partial, tmp_path) -> None:
    net = network(pooling)
    expected = net.adapt(NEW, "new")
    halves = [NEW.iloc[:5], NEW.iloc[5:]]
    added = sum(pb.stats(half, group="F") for half in halves)
    NEW.to_csv(tmp_path / "rows.csv", index=False)
    other = NEW.assign(F=range(len(NEW)), note="none", x9=np.nan).iloc[::-1]
    sources = {
        "added statistics": added,
        "other columns": other[["x9", "F", "y", "note", "x2", "x1"]],
        "no group column": NEW.drop(columns="F"),
        "dict": {"whatever": NEW},
        "polars": pl.from_pandas(NEW),
        "arrow": pa.Table.from_pandas(NEW),
        "file": tmp_path / "rows.csv",
    }
    for what, source in sources.items():
        new = net.adapt(source, "new")
        assert new.levels == expected.levels, what
        assert new.n.tolist() == expected.n.tolist(), what
        assert_same_fits(expected, new)


def test_incomplete_rows_can_be_left_out() -> None:
    gaps = NEW.copy()
    gaps.iloc[3, gaps.columns.get_loc("x1")] = np.nan
    with pytest.raises(pb.DataError, match=r"1 row has a missing value.*'x1'"):
        network().adapt(gaps, "new")
    new = network().adapt(gaps, "new", missing="drop")
    assert new.n[-1] == 11
    assert_same_fits(new, network().adapt(NEW.drop(NEW.index[3]), "new"))


@pytest.mark.parametrize("pooling", ["complete", "none", "partial"])
def test_units_do_not_matter(pooling: str) -> None:
    """Learning and adapting in other units gives the same distribution of the new data set."""
    scale = pd.Series({"x1": 1000.0, "x2": 0.01, "y": -3.0})
    shift = pd.Series({"x1": -500.0, "x2": 2.0, "y": 40.0})
    columns = list(scale.index)

    def moved(frame: pd.DataFrame) -> pd.DataFrame:
        return (frame[columns] * scale + shift).assign(F=frame["F"])

    here = network(pooling).adapt(NEW, "new").joint
    there = fixed(moved(KNOWN), ARCS, pooling).adapt(moved(NEW), "new").joint
    names = list(here.names)
    by, to = scale[names].to_numpy(), shift[names].to_numpy()
    sd = np.sqrt(np.diagonal(here.cov[-1]))
    np.testing.assert_allclose((there.mean[-1] - to) / by / sd, here.mean[-1] / sd, atol=1e-4)
    scale = np.outer(sd, sd)
    found = there.cov[-1] / np.outer(by, by)
    np.testing.assert_allclose(found / scale, here.cov[-1] / scale, atol=1e-4)


def test_residual_variances_that_differ_are_averaged_by_rows() -> None:
    net = network()
    variances = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    fit = dataclasses.replace(net.fits["y"], sigma2=variances)
    net = dataclasses.replace(net, fits={**net.fits, "y": fit}, n=np.array([1, 1, 1, 1, 16]))
    new = net.adapt(NEW, "new")
    assert new.fits["y"].sigma2[-1] == pytest.approx((1 + 2 + 3 + 4 + 5 * 16) / 20)
    assert new.adapt(name="another").fits["y"].sigma2[-1] == pytest.approx(4.5)


def test_a_data_set_that_was_learned_from_is_predicted_again() -> None:
    """What the fit says of a data set follows from its rows and the population."""
    net = network()
    again = net.adapt(KNOWN[KNOWN["F"] == "set 2"], "again")
    for fit in again.fits.values():
        sd = np.sqrt(np.diagonal(fit.random_cov)) + 1e-9
        np.testing.assert_allclose(fit.coef[-1] / sd, fit.coef[2] / sd, atol=1e-8)
        scale = np.outer(sd, sd)
        np.testing.assert_allclose(fit.coef_cov[-1] / scale, fit.coef_cov[2] / scale, atol=1e-8)


def test_adapted_networks_are_saved_and_loaded(tmp_path) -> None:
    net = network().adapt(NEW, "new").adapt(name="anywhere")
    net.save(tmp_path / "net.json")
    loaded = pb.load(tmp_path / "net.json")
    assert loaded.adapted == ("new", "anywhere")
    assert loaded.n.tolist() == net.n.tolist()
    assert_same_fits(net, loaded, rtol=0)


def test_adapted_predictions_are_better_than_those_of_the_population() -> None:
    """On many draws of a new data set, its own rows raise the likelihood of further rows."""
    net = network()
    parents = list(net.fits["y"].parents)
    fit = net.fits["y"]
    rng = np.random.default_rng(5)
    gain = []
    for _ in range(200):
        b = multivariate_normal(fit.fixed, fit.random_cov, allow_singular=True).rvs(
            random_state=rng
        )
        X = rng.normal(size=(40, len(parents)))
        y = b[0] + X @ b[1:] + rng.normal(scale=np.sqrt(fit.sigma2[0]), size=40)
        rows = pd.DataFrame(X, columns=parents).assign(y=y)
        coef = net.adapt(rows.head(10), "new").fits["y"].coef[-1]
        Z = np.column_stack([np.ones(30), X[10:]])
        errors = [np.mean((y[10:] - Z @ c) ** 2) for c in (fit.fixed, coef)]
        gain.append(errors[0] - errors[1])
    assert np.mean(gain) > 4 * np.std(gain) / np.sqrt(len(gain))
