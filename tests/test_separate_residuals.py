"""Partial pooling with a residual variance for each data set: nlme, dense formulas, laws."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers import REFERENCE, reference, simulate, work_space
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import poolbn as pb
from poolbn.kernels import deviance as _kernels
from poolbn.kernels import separate as _separate
from poolbn.kernels import work as _work
from poolbn.moments.standardised import standardise
from poolbn.nodes.model import same_for_all
from poolbn.scoring.local import LocalScores

CASES = reference("het/cases.json")
SEPARATE = pb.Partial(residuals="separate")
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])


def names(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame if name not in {"y", "F"}]


def uneven(
    seed: int, *, data_sets: int = 5, rows: int = 20, parents: int = 2, between: float = 1.0
) -> pd.DataFrame:
    """As `helpers.simulate`, with residual SDs from 0.3 to 3."""
    frame = simulate(seed, data_sets=data_sets, rows=rows, parents=parents, between=between)
    rng = np.random.default_rng(seed)
    more = np.repeat(np.exp(rng.uniform(-1.2, 1.2, size=data_sets)), rows)
    return frame.assign(y=frame["y"] + (more - 1) * rng.normal(size=len(frame)))


tables = st.builds(
    uneven,
    seed=st.integers(0, 10_000),
    data_sets=st.integers(2, 8),
    rows=st.integers(5, 12),
    parents=st.integers(0, 2),
    between=st.sampled_from([0.0, 0.3, 3.0]),
)


# nlme and glmmTMB


@each_case
def test_reaches_the_best_known_maximum(case: dict) -> None:
    columns = [case["response"], *case["predictors"]]
    stats = pb.stats(REFERENCE / case["data"], group=case["group"], columns=columns)
    fit = pb.fit_node(stats, case["response"], case["predictors"], pooling=SEPARATE)
    assert fit.n_rows == case["n"]
    assert str(fit.status) in {"converged", "singular fit"}
    assert fit.loglik >= case["logLik"] - 1e-6 * max(1, abs(case["logLik"]))
    shared = pb.fit_node(stats, case["response"], case["predictors"])
    assert fit.n_params == shared.n_params + len(stats.levels) - 1
    assert fit.loglik >= shared.loglik


def interior(case: dict) -> bool:
    """Most runs agree on the best, and the random effects vary in all directions."""
    values = [value for value in case["logLik_all"].values() if value != "NA"]
    Sigma = np.array(case["Sigma_standardised"])
    sd = np.sqrt(np.diagonal(Sigma))
    least = np.linalg.eigvalsh(Sigma / np.outer(sd, sd))[0]
    return np.mean(np.max(values) - values < 1e-6) > 0.5 and least > 1e-3


INTERIOR = [case for case in CASES if interior(case)]


@pytest.mark.parametrize("case", INTERIOR, ids=lambda case: case["id"])
def test_parameters_at_interior_optima(case: dict) -> None:
    columns = [case["response"], *case["predictors"]]
    frame = pd.read_csv(REFERENCE / case["data"])
    frame[columns] = (frame[columns] - frame[columns].mean()) / frame[columns].std()
    stats = pb.stats(frame, group=case["group"], columns=columns)
    fit = pb.fit_node(stats, case["response"], case["predictors"], pooling=SEPARATE)
    assert str(fit.status) == "converged"
    assert fit.loglik == pytest.approx(case["logLik_standardised"], rel=1e-8)
    sds = [case["sd_standardised"][str(level)] for level in fit.levels]
    np.testing.assert_allclose(np.sqrt(fit.sigma2), sds, rtol=1e-4)
    np.testing.assert_allclose(fit.fixed, case["fixef_standardised"], atol=1e-4)
    Sigma = np.array(case["Sigma_standardised"])
    sd = np.sqrt(np.diagonal(Sigma))
    np.testing.assert_allclose(fit.random_sd, sd, rtol=2e-4)
    scale = np.outer(sd, sd)
    np.testing.assert_allclose(fit.random_cov / scale, Sigma / scale, atol=2e-4)


def test_enough_interior_cases() -> None:
    assert len(INTERIOR) >= 5


# Dense formulas


def dense(frame: pd.DataFrame, fixed: np.ndarray, cov: np.ndarray, sigma2: np.ndarray) -> float:
    """The log-likelihood from the n x n covariance matrices of the rows."""
    total = 0.0
    for (_, rows), own in zip(frame.groupby("F", sort=False), sigma2, strict=True):
        Z = np.column_stack([np.ones(len(rows)), rows[names(frame)]])
        V = Z @ cov @ Z.T + own * np.eye(len(rows))
        total += multivariate_normal.logpdf(rows["y"], Z @ fixed, V)
    return total


def fit_of(frame: pd.DataFrame, pooling: pb.Partial = SEPARATE) -> pb.LocalFit:
    fit = pb.fit_node(pb.stats(frame, group="F"), "y", names(frame), pooling=pooling)
    assert list(fit.levels) == frame["F"].unique().tolist()
    return fit


@settings(max_examples=20)
@given(tables, st.sampled_from(["full", "intercept"]))
def test_likelihood_is_the_dense_one_and_no_neighbour_is_better(
    frame: pd.DataFrame, random: str
) -> None:
    fit = fit_of(frame, pb.Partial(random=random, residuals="separate"))
    assert str(fit.status) in {"converged", "singular fit"}
    value = dense(frame, fit.fixed, fit.random_cov, fit.sigma2)
    assert fit.loglik == pytest.approx(value, rel=1e-9, abs=1e-7)
    rng = np.random.default_rng(0)
    q, F = fit.coef.shape[1], len(fit.levels)
    r = q if random == "full" else 1
    for size in (1e-3, 1e-2, 1e-1):
        x = np.zeros(q)
        x[:r] = rng.normal(size=r) * np.sqrt(size * fit.sigma2.min())
        beta = fit.fixed + size * np.sqrt(np.diagonal(fit.fixed_cov)) * rng.normal(size=q)
        sigma2 = fit.sigma2 * np.exp(size * rng.normal(size=F))
        for other in (
            dense(frame, fit.fixed, fit.random_cov + np.outer(x, x), fit.sigma2),
            dense(frame, fit.fixed, fit.random_cov * (1 - size), fit.sigma2),
            dense(frame, beta, fit.random_cov, fit.sigma2),
            dense(frame, fit.fixed, fit.random_cov, sigma2),
        ):
            assert other <= fit.loglik + 1e-7


@pytest.mark.parametrize("random", ["full", "intercept"])
def test_coefficients_and_their_covariances_are_the_dense_ones(random: str) -> None:
    frame = uneven(11, data_sets=6, rows=12, parents=2)
    fit = fit_of(frame, pb.Partial(random=random, residuals="separate"))
    information, right = np.zeros((3, 3)), np.zeros(3)
    for j, (_, rows) in enumerate(frame.groupby("F", sort=False)):
        Z = np.column_stack([np.ones(len(rows)), rows[names(frame)]])
        V = Z @ fit.random_cov @ Z.T + fit.sigma2[j] * np.eye(len(rows))
        gain = fit.random_cov @ Z.T @ np.linalg.inv(V)
        b = gain @ (rows["y"] - Z @ fit.fixed)
        np.testing.assert_allclose(fit.coef[j], fit.fixed + b, rtol=1e-8)
        cov = fit.random_cov - gain @ Z @ fit.random_cov
        np.testing.assert_allclose(fit.coef_cov[j], cov, rtol=1e-7, atol=1e-10)
        information += Z.T @ np.linalg.solve(V, Z)
        right += Z.T @ np.linalg.solve(V, rows["y"])
    np.testing.assert_allclose(fit.fixed_cov, np.linalg.inv(information), rtol=1e-8)
    np.testing.assert_allclose(fit.fixed, np.linalg.solve(information, right), rtol=1e-8)
    assert fit.residual_shape is None
    assert fit.residual_scale is None


# Laws


@given(tables)
def test_units_and_offsets_change_scores_as_theory_says(frame: pd.DataFrame) -> None:
    moved = frame.assign(**{name: (frame[name] + 1e5) * 1e-3 for name in frame if name != "F"})
    before, after = fit_of(frame), fit_of(moved)
    assert after.loglik == pytest.approx(before.loglik - len(frame) * np.log(1e-3), abs=1e-6)
    np.testing.assert_allclose(after.coef[:, 1:], before.coef[:, 1:], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(after.sigma2, before.sigma2 * 1e-6, rtol=1e-3)


@given(tables, st.randoms(use_true_random=False))
def test_order_of_rows_columns_and_data_sets_does_not_matter(frame: pd.DataFrame, random) -> None:
    columns, order = list(frame), list(range(len(frame)))
    random.shuffle(columns)
    random.shuffle(order)
    a, parents = fit_of(frame), names(frame)[::-1]
    stats = pb.stats(frame[columns].iloc[order], group="F")
    b = pb.fit_node(stats, "y", parents, pooling=SEPARATE)
    assert a.loglik == pytest.approx(b.loglik, rel=1e-9, abs=1e-7)
    rows = [b.levels.index(level) for level in a.levels]
    flipped = [0, *range(len(parents), 0, -1)]
    np.testing.assert_allclose(a.coef, b.coef[rows][:, flipped], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(a.sigma2, b.sigma2[rows], rtol=1e-4)


@given(tables)
def test_lies_between_shared_residuals_and_no_pooling(frame: pd.DataFrame) -> None:
    """But for the smallest tables: of 4000 with 5 to 7 rows 3 end at a lower local maximum."""
    assume(len(frame) > 14)
    stats = pb.stats(frame, group="F")
    data = standardise(stats)
    family = [(data.names.index("y"), [data.names.index(name) for name in names(frame)])]
    fit = fit_of(frame)
    assert fit.loglik >= fit_of(frame, pb.Partial()).loglik - 1e-7
    assert fit.loglik <= SEPARATE.bounds(data, family, 0.0)[0] + 1e-7
    assert fit.loglik <= pb.fit_node(stats, "y", names(frame), pooling="none").loglik + 1e-7
    assert SEPARATE.logliks(data, family, same_for_all(0.0)).loglik[0] <= fit.loglik + 1e-7


def test_copies_of_a_data_set_are_complete_pooling() -> None:
    one = simulate(1, data_sets=1, rows=30)
    frame = pd.concat([one.assign(F=name) for name in "abc"])
    fit = fit_of(frame)
    complete = pb.fit_node(pb.stats(frame, group="F"), "y", ["x1", "x2"], pooling="complete")
    assert str(fit.status) == "singular fit"
    assert fit.loglik == pytest.approx(complete.loglik, rel=1e-12)
    np.testing.assert_allclose(fit.coef, complete.coef, rtol=1e-9)
    np.testing.assert_allclose(fit.sigma2, complete.sigma2, rtol=1e-9)


def test_much_variation_between_data_sets_is_no_pooling() -> None:
    """And its unbiased variances: with D infinite the likelihood is that of the residuals alone."""
    frame = uneven(2, data_sets=6, rows=25, between=1e5)
    fit = fit_of(frame)
    alone = pb.fit_node(
        pb.stats(frame, group="F"), "y", ["x1", "x2"], pooling=pb.NoPooling(variance="unbiased")
    )
    np.testing.assert_allclose(fit.coef, alone.coef, rtol=1e-7)
    np.testing.assert_allclose(fit.sigma2, alone.sigma2, rtol=1e-6)


def test_no_variation_between_coefficients_is_weighted_least_squares() -> None:
    """The fixed point of weights 1 / sigma_j^2 and of residual squares by data set."""
    frame = uneven(4, data_sets=5, rows=30, between=0.0)
    fit = fit_of(frame)
    assert "coefficients do not differ" in fit.detail
    codes = pd.factorize(frame["F"])[0]
    Z = np.column_stack([np.ones(len(frame)), frame[["x1", "x2"]]])
    sigma2 = np.ones(5)
    for _ in range(200):
        root = 1 / np.sqrt(sigma2[codes])
        beta = np.linalg.lstsq(Z * root[:, None], frame["y"] * root)[0]
        sigma2 = np.bincount(codes, weights=(frame["y"] - Z @ beta) ** 2) / 30
    np.testing.assert_allclose(fit.coef, np.tile(beta, (5, 1)), rtol=1e-6)
    np.testing.assert_allclose(fit.sigma2, sigma2, rtol=1e-6)


# No maximum


def test_a_data_set_with_too_few_rows_has_no_likelihood() -> None:
    frame = uneven(5, data_sets=4, rows=12)
    small = frame[(frame["F"] != "set 2") | (frame.groupby("F").cumcount() < 3)]
    for table, name, said in ((small, "too few rows", ["'set 2'", "3 rows", "'pooled'"]),):
        stats = pb.stats(table, group="F")
        data = standardise(stats)
        family = (data.names.index("y"), [data.names.index("x1"), data.names.index("x2")])
        for random in ("full", "intercept"):
            pooling = pb.Partial(random=random, residuals="separate")
            fit = pb.fit_node(stats, "y", ["x1", "x2"], pooling=pooling)
            assert str(fit.status) == name
            assert [part for part in said if part not in fit.detail] == []
            assert fit.loglik == -np.inf
            assert pooling.logliks(data, [family], same_for_all(0.0)).loglik[0] == -np.inf
        assert pb.fit_node(stats, "y", [], pooling=SEPARATE).status.ok  # leaves a residual

        # The dense likelihood, at coefficients that fit one data set exactly, knows no end.
        j = int(said[0][-2])
        rows = table[table["F"] == f"set {j}"]
        Z = np.column_stack([np.ones(len(rows)), rows[["x1", "x2"]]])
        beta = np.linalg.lstsq(Z, rows["y"])[0]
        values = [
            dense(table, beta, np.zeros((3, 3)), np.where(np.arange(4) == j, small_one, 1.0))
            for small_one in (1e-2, 1e-4, 1e-6)
        ]
        steps = len(rows) / 2 * np.log(100)
        np.testing.assert_allclose(np.diff(values), steps, rtol=1e-3)


def test_dependent_columns_are_named() -> None:
    frame = uneven(6).assign(x2=lambda d: 2 * d["x1"])
    fit = fit_of(frame)
    assert str(fit.status) == "rank deficient"
    # Constant in one data set only is no trouble.
    frame = uneven(6)
    frame.loc[frame["F"] == "set 0", "x2"] = 1.5
    fit = fit_of(frame)
    assert fit.loglik == pytest.approx(dense(frame, fit.fixed, fit.random_cov, fit.sigma2))


def test_words() -> None:
    frame = uneven(7)
    assert str(fit_of(frame).pooling) == "partial pooling, separate residuals"
    fit = fit_of(frame, pb.Partial(random="intercept", residuals="separate"))
    assert str(fit.pooling) == "partial pooling of the intercept, separate residuals"
    assert fit.n_params == 3 + 1 + 5


# Derivatives, in the kernels' own coordinates


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("k", "random"), [(0, 3), (1, 1), (1, 3), (2, 3), (3, 3)])
@pytest.mark.parametrize("seed", [1, 2])
def test_derivatives_are_those_of_finite_differences(seed: int, k: int, random: int) -> None:
    F, q = 4, 3
    data = standardise(pb.stats(uneven(seed, data_sets=F, rows=6, parents=2), group="F"))
    s = work_space(_separate, data.n, q, random)
    w, p = _work.carve(s), _separate.carve_apart(s)
    p.data[:] = 0
    child, parents = (
        data.names.index("y"),
        np.array([data.names.index("x1"), data.names.index("x2")]),
    )
    _kernels.compress(s, data.mean, data.scatter, child, parents, False)
    p.R[:], p.r[:] = w.R, w.r
    rng = np.random.default_rng(seed)
    s.perm[:random] = rng.permutation(random)
    entries = [(s.perm[i], b) for b in range(k) for i in range(b, random)]
    x0 = np.concatenate([0.5 * rng.normal(size=len(entries)), rng.normal(size=F) - 1])

    def put(x: np.ndarray) -> float:
        w.L[:] = 0
        for entry, value in zip(entries, x, strict=False):
            w.L[entry] = value
        w.y[:F] = x[len(entries) :]
        return _separate.evaluate(s, w.L, k, 0)

    def derivatives(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """In L and l, with beta eliminated; observed curvatures everywhere."""
        put(x)
        _separate.gradient(s)
        size = _separate.fill_derivatives(s, k)
        assert size == len(entries)
        H = np.diag(np.concatenate([np.zeros(size), p.data[0, _separate._CURVE, :F]]))
        H[:size, :size] = np.tril(w.H[:size, :size]) + np.tril(w.H[:size, :size], -1).T
        H[size:, :size] = p.Y[0, :size, :F].T
        H[:size, size:] = p.Y[0, :size, :F]
        with_beta = np.concatenate([p.V[:size], p.Y[0, size : size + q, :F].T])
        H -= with_beta @ with_beta.T / 2
        return np.concatenate([w.g[:size], p.data[0, _separate._SLOPE, :F]]), H

    g, H = derivatives(x0)
    h = 1e-5
    for i in range(len(x0)):
        up, down = x0.copy(), x0.copy()
        up[i] += h
        down[i] -= h
        assert g[i] == pytest.approx((put(up) - put(down)) / (2 * h), rel=1e-6, abs=1e-6)
        numeric = (derivatives(up)[0] - derivatives(down)[0]) / (2 * h)
        np.testing.assert_allclose(H[i], numeric, rtol=1e-5, atol=1e-5)


# The machinery


def test_scores_are_final_fits_with_less_effort_and_the_same_in_any_threads() -> None:
    frame = uneven(8, data_sets=6, rows=15, parents=4)
    stats = pb.stats(frame, group="F")
    families = [
        (child, tuple(p for p in range(5) if p != child and mask >> p & 1))
        for child in range(5)
        for mask in range(0, 32, 3)
    ]
    one = LocalScores(stats, pooling=SEPARATE, threads=1)(families)
    three = LocalScores(stats, pooling=SEPARATE, threads=3)(families)
    assert one.tobytes() == three.tobytes()
    name = stats.names
    final = np.array(
        [
            pb.fit_node(stats, name[c], [name[p] for p in pa], pooling=SEPARATE).bic
            for c, pa in families
        ]
    )
    assert (one <= final + 1e-7).all()
    assert np.mean(one > final - 1e-7) > 0.8
