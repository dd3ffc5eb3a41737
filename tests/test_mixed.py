"""The mixed-effects numerics: against dense formulas, finite differences and the limits."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import REFERENCE, simulate, work_space
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import poolbn as pb
from poolbn.kernels import deviance as _kernels
from poolbn.kernels import shared as _shared
from poolbn.kernels import work as _work
from poolbn.moments.standardised import standardise
from poolbn.nodes import lmm
from poolbn.scoring.local import LocalScores


def names(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame if name not in {"y", "F"}]


def dense(
    frame: pd.DataFrame, fixed: np.ndarray, cov: np.ndarray, sigma2: float, *, reml: bool = False
) -> float:
    """The (restricted) log-likelihood from the n x n covariance matrices of the rows."""
    total, information = 0.0, 0.0
    for _, rows in frame.groupby("F", sort=False):
        Z = np.column_stack([np.ones(len(rows)), rows[names(frame)]])
        V = Z @ cov @ Z.T + sigma2 * np.eye(len(rows))
        total += multivariate_normal.logpdf(rows["y"], Z @ fixed, V)
        information = information + Z.T @ np.linalg.solve(V, Z)
    if reml:
        total += len(fixed) / 2 * np.log(2 * np.pi) - np.linalg.slogdet(information)[1] / 2
    return total


tables = st.builds(
    simulate,
    seed=st.integers(0, 10_000),
    data_sets=st.integers(2, 8),
    rows=st.integers(3, 12),
    parents=st.integers(0, 3),
    between=st.sampled_from([0.0, 0.3, 3.0]),
)


@given(tables, st.sampled_from(["full", "intercept"]), st.sampled_from(["ml", "reml"]))
def test_likelihood_is_the_dense_one_and_no_neighbour_is_better(
    frame: pd.DataFrame, random: str, method: str
) -> None:
    stats = pb.stats(frame, group="F")
    fit = pb.fit_node(stats, "y", names(frame), pooling=pb.Partial(random=random, method=method))
    if not fit.status.ok or str(fit.status) == "did not converge":
        assert fit.status.ok or fit.loglik == -np.inf
        return
    reml = method == "reml"
    value = dense(frame, fit.fixed, fit.random_cov, fit.sigma2[0], reml=reml)
    assert fit.loglik == pytest.approx(value, rel=1e-9, abs=1e-7)
    rng = np.random.default_rng(0)
    q = len(fit.fixed)
    for size in (1e-3, 1e-2, 1e-1):
        x = np.zeros(q)
        x[: q if random == "full" else 1] = rng.normal(size=q if random == "full" else 1)
        x *= np.sqrt(size * fit.sigma2[0])
        for cov in (fit.random_cov + np.outer(x, x), fit.random_cov * (1 - size)):
            other = dense(frame, fit.fixed, cov, fit.sigma2[0], reml=reml)
            assert other <= fit.loglik + 1e-7


@given(tables, st.sampled_from([pb.Complete(), pb.NoPooling(), pb.Partial()]))
def test_units_and_offsets_change_scores_as_theory_says(
    frame: pd.DataFrame, pooling: pb.Partial
) -> None:
    scale = 1e-6
    moved = frame.assign(**{name: (frame[name] + 1e8) * scale for name in frame if name != "F"})
    before = pb.fit_node(pb.stats(frame, group="F"), "y", names(frame), pooling=pooling)
    after = pb.fit_node(pb.stats(moved, group="F"), "y", names(frame), pooling=pooling)
    if not before.status.ok:
        assert after.loglik == -np.inf
        return
    expected = before.loglik - len(frame) * np.log(scale)
    if isinstance(pooling, pb.Partial):
        assert abs(after.loglik - expected) < 1e-6
    assert after.loglik == pytest.approx(expected, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(after.coef[:, 1:], before.coef[:, 1:], rtol=1e-3, atol=1e-3)


@given(tables, st.randoms(use_true_random=False))
def test_order_of_rows_columns_and_data_sets_does_not_matter(frame: pd.DataFrame, random) -> None:
    columns, order = list(frame), list(range(len(frame)))
    random.shuffle(columns)
    random.shuffle(order)
    parents = names(frame)
    mixed = parents[::-1]
    for pooling in (pb.Complete(), pb.NoPooling(), pb.Partial(), pb.Partial(method="reml")):
        a = pb.fit_node(pb.stats(frame, group="F"), "y", parents, pooling=pooling)
        b = pb.fit_node(
            pb.stats(frame[columns].iloc[order], group="F"), "y", mixed, pooling=pooling
        )
        assert str(a.status) == str(b.status)
        if a.status.ok:
            assert a.loglik == pytest.approx(b.loglik, rel=1e-9, abs=1e-7)
            rows = [b.levels.index(level) for level in a.levels]
            flipped = [0, *range(len(parents), 0, -1)]
            ours = b.coef[rows][:, flipped]
            np.testing.assert_allclose(a.coef, ours, rtol=1e-4, atol=1e-4)


@given(tables)
def test_partial_pooling_lies_between_its_limits(frame: pd.DataFrame) -> None:
    """D = 0 is complete pooling, so it can only be better; fits by data set bound it from above."""
    stats = pb.stats(frame, group="F")
    complete = pb.fit_node(stats, "y", names(frame), pooling="complete")
    separate = pb.fit_node(stats, "y", names(frame), pooling="none")
    partial = pb.fit_node(stats, "y", names(frame))
    intercept = pb.fit_node(stats, "y", names(frame), pooling=pb.Partial(random="intercept"))
    if partial.status.ok and complete.status.ok:
        assert complete.loglik <= intercept.loglik + 1e-7 <= partial.loglik + 2e-7
        if separate.status.ok:
            assert partial.loglik <= separate.loglik + 1e-7


def test_no_variation_between_data_sets_is_complete_pooling() -> None:
    one = simulate(1, data_sets=1, rows=30)
    frame = pd.concat([one.assign(F=name) for name in "abc"])
    stats = pb.stats(frame, group="F")
    partial = pb.fit_node(stats, "y", ["x1", "x2"])
    complete = pb.fit_node(stats, "y", ["x1", "x2"], pooling="complete")
    assert str(partial.status) == "singular fit"
    assert "complete pooling" in partial.detail
    assert partial.loglik == pytest.approx(complete.loglik, rel=1e-12)
    np.testing.assert_allclose(partial.coef, complete.coef, rtol=1e-9)


def test_much_variation_between_data_sets_is_no_pooling() -> None:
    frame = simulate(2, data_sets=6, rows=25, between=1e5)
    stats = pb.stats(frame, group="F")
    partial = pb.fit_node(stats, "y", ["x1", "x2"])
    separate = pb.fit_node(stats, "y", ["x1", "x2"], pooling="none")
    np.testing.assert_allclose(partial.coef, separate.coef, rtol=1e-7)


def test_data_sets_smaller_than_the_model_are_pooled() -> None:
    frame = pd.concat([simulate(3, rows=12), simulate(4, data_sets=2, rows=1).assign(F=["a", "b"])])
    stats = pb.stats(frame, group="F")
    assert pb.fit_node(stats, "y", ["x1", "x2"], pooling="none").status.value == "too few rows"
    fit = pb.fit_node(stats, "y", ["x1", "x2"])
    assert fit.loglik == pytest.approx(dense(frame, fit.fixed, fit.random_cov, fit.sigma2[0]))
    assert np.isfinite(fit.coef).all()


# Derivatives, in the kernels' own coordinates


def prepared(seed: int, k: int, random: int, reml: bool):
    """Work space with everything filled in at a random L of k columns."""
    data = standardise(pb.stats(simulate(seed, data_sets=4, rows=6, parents=2), group="F"))
    s = work_space(_shared, data.n, 3, random, reml)
    w = _work.carve(s)
    child, parents = (
        data.names.index("y"),
        np.array([data.names.index("x1"), data.names.index("x2")]),
    )
    assert _kernels.compress(s, data.mean, data.scatter, child, parents, False) == 0
    rng = np.random.default_rng(seed)
    s.perm[:random] = rng.permutation(random)
    w.L[:] = 0
    for b in range(k):
        w.L[s.perm[b:random], b] = rng.normal(size=random - b)
    return s, w


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("reml", [False, True], ids=["ml", "reml"])
@pytest.mark.parametrize(("k", "random"), [(1, 1), (1, 3), (2, 3), (3, 3)])
@pytest.mark.parametrize("seed", [1, 2])
def test_derivatives_are_those_of_finite_differences(
    seed: int, k: int, random: int, reml: bool
) -> None:
    s, w = prepared(seed, k, random, reml)

    def value(L: np.ndarray) -> float:
        return _shared.evaluate(s, L, k, 0)

    def derivatives(L: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value(L)
        _shared.gradient(s)
        w.L[:] = L
        ratio = s.totals[_work.DF] / s.totals[_work.RSS]
        size = _kernels.hessian(s, k, ratio, ratio / s.totals[_work.RSS])
        H = np.tril(w.H[:size, :size])
        return w.g[:size].copy(), H + np.tril(H, -1).T

    L = w.L.copy()
    g, H = derivatives(L)
    entries = [(s.perm[i], b) for b in range(k) for i in range(b, random)]
    assert len(entries) == len(g)
    h = 1e-5
    for x, entry in enumerate(entries):
        up, down = L.copy(), L.copy()
        up[entry] += h
        down[entry] -= h
        assert g[x] == pytest.approx((value(up) - value(down)) / (2 * h), rel=1e-6, abs=1e-6)
        numeric = (derivatives(up)[0] - derivatives(down)[0]) / (2 * h)
        np.testing.assert_allclose(H[x], numeric, rtol=1e-5, atol=1e-5)


# The machinery


def families() -> tuple[pb.GroupStats, list[tuple[int, tuple[int, ...]]]]:
    frame = simulate(5, data_sets=6, rows=15, parents=5)
    subsets = [
        (child, tuple(p for p in range(6) if p != child and mask >> p & 1))
        for child in range(6)
        for mask in range(0, 64, 5)
    ]
    return pb.stats(frame, group="F"), subsets


@pytest.mark.parametrize("pooling", ["complete", "none", "partial"])
def test_any_number_of_threads_gives_the_same_bits(pooling: str) -> None:
    stats, subsets = families()
    one = LocalScores(stats, pooling=pooling, threads=1)(subsets)
    three = LocalScores(stats, pooling=pooling, threads=3)(subsets)
    assert one.tobytes() == three.tobytes()
    assert np.isfinite(one).all()


def test_score_fits_are_final_fits_with_less_effort() -> None:
    stats, subsets = families()
    quick = LocalScores(stats)(subsets)
    names = stats.names
    final = np.array(
        [pb.fit_node(stats, names[c], [names[p] for p in pa]).bic for c, pa in subsets]
    )
    assert (quick <= final + 1e-7).all()
    assert np.mean(quick > final - 1e-7) > 0.9


@pytest.mark.parametrize(
    ("table", "child", "parents"),
    [
        ("lme/data/paper_p2_J05.csv.gz", "X3", ["X8"]),
        ("bn/bn03_AP4_J02_nj20.csv.gz", "X10", ["X2", "X4", "X8", "X9"]),
        ("bn/bn11_AP2_J20_nj20.csv.gz", "X3", ["X10", "X4", "X5", "X9"]),
    ],
)
def test_scores_try_again_where_the_first_maximum_is_not_the_best(
    table: str, child: str, parents: list[str]
) -> None:
    stats = pb.stats(REFERENCE / table, group="F", columns=[child, *parents])
    family = (0, tuple(range(1, len(parents) + 1)))
    final = pb.fit_node(stats, child, parents)
    assert LocalScores(stats)([family])[0] == pytest.approx(final.bic, abs=1e-6)
    data = standardise(stats)
    places = [(data.names.index(child), [data.names.index(parent) for parent in parents])]
    first = lmm.log_likelihoods(data, places, random="full")
    model = lmm.RESIDUALS["shared"]
    with pytest.MonkeyPatch.context() as patch:
        one = replace(model, score_starts=model.score_starts[:1])
        patch.setitem(lmm.RESIDUALS, "shared", one)
        assert lmm.log_likelihoods(data, places, random="full")[0] < first[0] - 0.3


SCRIPT = """
import sys; sys.path.insert(0, "tests")
import poolbn as pb
from helpers import simulate
for seed in range(3):
    stats = pb.stats(simulate(seed, data_sets=3, rows=6, parents=1, between=seed), group="F")
    for pooling in ("complete", "none", "partial", pb.Partial(method="reml"),
                    pb.Partial(residuals="pooled"), pb.Partial(residuals="separate")):
        fit = pb.fit_node(stats, "y", ["x1"], pooling=pooling)
        print(fit.loglik, *fit.coef.ravel(), *fit.sigma2)
"""


@pytest.mark.slow
def test_compiled_and_interpreted_kernels_agree() -> None:
    def numbers(**more: str) -> np.ndarray:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=os.environ | more,
            capture_output=True,
            text=True,
            check=True,
        )
        return np.array([float(v) for v in done.stdout.split()])

    np.testing.assert_allclose(numbers(NUMBA_DISABLE_JIT="1"), numbers(), rtol=1e-6)
