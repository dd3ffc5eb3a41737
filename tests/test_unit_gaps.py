"""Missing cells where there are units inside data sets, against brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import poolbn as pb
from poolbn.inference.locals import locals_of
from poolbn.inference.unitgaps import TwoLevels, UnitGaps, of_network
from poolbn.monte_carlo_em import MonteCarloEM

GROUP = ["clinic", "patient"]


def visits(seed: int, clinics: int = 3, patients: int = 8, *, sex: bool = False) -> pd.DataFrame:
    """Visits whose x, y and z follow each other, with levels of clinics and patients."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, clinics * patients)
    patient = np.repeat(np.arange(len(sizes)), sizes)
    clinic, n = patient // patients, len(patient)
    x, y, z = (
        rng.normal(size=clinics)[clinic] + rng.normal(size=len(sizes))[patient]
        + rng.normal(size=n) for _ in range(3)
    )  # fmt: skip
    y = y + 0.7 * x
    frame = pd.DataFrame({"clinic": clinic, "patient": patient, "x": x, "y": y, "z": z + 0.5 * y})
    return frame.assign(sex=rng.normal(size=len(sizes))[patient]) if sex else frame


def with_gaps(frame: pd.DataFrame, seed: int, share: float = 0.25) -> pd.DataFrame:
    """The same with cells that are missing by chance, but one of each row."""
    rng = np.random.default_rng(seed)
    columns = [name for name in frame if name not in GROUP]
    lacks = rng.random((len(frame), len(columns))) < share
    lacks[np.arange(len(frame)), rng.integers(0, len(columns), len(frame))] = False
    return frame.assign(**frame[columns].mask(lacks))


def covariance(at: TwoLevels, j: int, rows: int) -> np.ndarray:
    """Of all cells of a unit, row by row."""
    between = at.root[j] @ at.root[j].T
    return np.kron(np.eye(rows), at.within[j]) + np.kron(np.ones((rows, rows)), between)


def test_draws_have_the_moments_of_the_normal_distribution_of_a_unit() -> None:
    """All cells of a unit at once, given those that are there."""
    rng = np.random.default_rng(0)
    frame = with_gaps(visits(1, 2, 3), 2, 0.4)
    values, N = frame[["x", "y", "z"]].to_numpy(), 3
    sets, units = frame["clinic"].to_numpy(), frame["patient"].to_numpy()
    A, L = rng.normal(size=(2, N, N)), rng.normal(size=(2, N, N))
    at = TwoLevels(rng.normal(size=(2, N)), A @ A.transpose(0, 2, 1), L)
    of = UnitGaps(values, sets, units, 2)
    U, n = units.max() + 1, len(frame)
    nothing = np.zeros((1, U, N)), np.zeros((1, n, N))
    middle = of.drawn(at, *nothing)[0]
    # Draws are linear in the normal numbers that they are made of.
    steps = np.eye(U * N + n * N)
    made = of.drawn(at, steps[:, : U * N].reshape(-1, U, N), steps[:, U * N :].reshape(-1, n, N))
    linear = made - middle
    for unit in range(U):
        rows = np.flatnonzero(units == unit)
        j, own = sets[rows[0]], values[rows].ravel()
        C, lacks = covariance(at, j, len(rows)), np.isnan(own)
        away = own[~lacks] - np.tile(at.mean[j], len(rows))[~lacks]
        slopes = np.linalg.solve(C[np.ix_(~lacks, ~lacks)], C[np.ix_(~lacks, lacks)]).T
        expected = np.tile(at.mean[j], len(rows))[lacks] + slopes @ away
        np.testing.assert_allclose(middle[rows].ravel()[lacks], expected, atol=1e-8)
        left = C[np.ix_(lacks, lacks)] - slopes @ C[np.ix_(~lacks, lacks)]
        J = linear[:, rows].reshape(len(steps), -1)[:, lacks]
        np.testing.assert_allclose(J.T @ J, left, atol=1e-8)


def test_a_network_says_how_columns_vary_at_both_levels() -> None:
    """By drawing levels and rows from its equations, one clinic after the other."""
    net = pb.fit([("x", "y"), ("y", "z")], visits(3), group=GROUP, score="bic")
    table = pb.table(with_gaps(visits(3), 4), group=GROUP, missing="em")
    em = MonteCarloEM(table)
    nodes = locals_of(net.fits, certain=table.levels)
    shares = [net.fits[name].gaussian.unit_share for name in ("x", "y", "z")]
    at = of_network(nodes, shares, em._units[0])
    for j in range(3):
        slope, other = net.fits["y"].coef[j, 1], net.fits["z"].coef[j, 1]
        A = np.array([[1, 0, 0], [slope, 1, 0], [slope * other, other, 1]])
        total = np.array([net.fits[name].sigma2[j] for name in ("x", "y", "z")])
        share = np.array([own[j] for own in shares])
        between = A @ np.diag(total * share) @ A.T
        np.testing.assert_allclose(at.root[j] @ at.root[j].T, between, atol=1e-10)
        np.testing.assert_allclose(at.within[j], A @ np.diag(total * (1 - share)) @ A.T, atol=1e-10)
        x = net.fits["x"].coef[j, 0]
        y = net.fits["y"].coef[j] @ [1, x]
        np.testing.assert_allclose(at.mean[j], [x, y, net.fits["z"].coef[j] @ [1, y]], atol=1e-10)


def test_em_ends_where_the_likelihood_of_what_is_there_is_largest() -> None:
    """Complete pooling of two columns: their normal distribution by units, maximised by scipy."""
    frame = with_gaps(visits(5, 1, 30)[[*GROUP, "x", "y"]], 6, 0.3)
    table = pb.table(frame.assign(clinic=frame["patient"] % 2), group=GROUP, missing="em")
    units = [own[["x", "y"]].to_numpy() for _, own in frame.groupby("patient")]

    def at(v: np.ndarray) -> TwoLevels:
        """Intercept and slope, and logs of standard deviations, of x and of y."""
        A = np.array([[1, 0], [v[2], 1]])
        sd, between = np.exp(v[3:5]), np.exp(v[5:])
        mean = np.array([v[0], v[1] + v[2] * v[0]])
        return TwoLevels(mean[None], (A * sd**2 @ A.T)[None], (A * between)[None])

    def minus(v: np.ndarray) -> float:
        of, loglik = at(v), 0.0
        for rows in units:
            there = ~np.isnan(rows.ravel())
            C = covariance(of, 0, len(rows))[np.ix_(there, there)]
            mean = np.tile(of.mean[0], len(rows))[there]
            loglik += multivariate_normal.logpdf(rows.ravel()[there], mean, C)
        return -loglik

    best = minimize(minus, np.array([0, 0, 0.5, 0, 0, -0.5, -0.5]), method="BFGS").x
    em = MonteCarloEM(table, draws=400, rounds=15)
    filled = em.completed(
        lambda data, _: pb.fit([("x", "y")], data, pooling="complete", score="bic")
    )
    net = pb.fit([("x", "y")], filled, pooling="complete", score="bic")
    x, y = net.fits["x"], net.fits["y"]
    found = [x.coef[0, 0], *y.coef[0]]
    np.testing.assert_allclose(found, best[:3], atol=0.02)
    for fit, within, between in ((x, best[3], best[5]), (y, best[4], best[6])):
        share = fit.unit_share[0]
        assert fit.sigma2[0] * share == pytest.approx(np.exp(2 * between), rel=0.08)
        # Without pooling residual variances are unbiased, by one or two rows of some 70.
        assert fit.sigma2[0] * (1 - share) == pytest.approx(np.exp(2 * within), rel=0.08)


def test_a_column_that_describes_units_stays_one() -> None:
    """What a unit says of it elsewhere is filled in; else all its rows get one draw."""
    frame = visits(7, 4, 12, sex=True)
    gaps = with_gaps(frame, 8)
    own = gaps["patient"].isin([3, 9, 30])
    gaps.loc[own, "sex"] = np.nan
    table = pb.table(gaps, group=GROUP, missing="em")
    em = MonteCarloEM(table)
    for filled in (em.start(), em.expected(pb.learn(frame, group=GROUP))):
        assert table.units is not None
        for cells in filled.draws:
            values = table.values.copy()
            values[:, filled.incomplete] = cells
            sex = pd.Series(values[3]).groupby(table.units)
            assert (sex.max() - sex.min()).max() < 1e-9
            known = frame.sort_values("clinic", kind="stable")["sex"].to_numpy()
            there = ~np.isin(frame.sort_values("clinic", kind="stable")["patient"], [3, 9, 30])
            known, found = known[there], values[3][there]
            alone = gaps.groupby("patient")["sex"].transform("count") > 0
            seen = alone.to_numpy()[frame.sort_values("clinic", kind="stable").index][there]
            np.testing.assert_allclose(found[seen], known[seen], atol=1e-12)
    net = pb.learn(gaps, group=GROUP, missing="em")
    assert net.fits["sex"].n_rows == frame["patient"].nunique()


def test_the_order_of_rows_and_columns_does_not_matter() -> None:
    gaps = with_gaps(visits(9), 10)
    one = pb.learn(gaps, group=GROUP, missing="em")
    turned = gaps.sample(frac=1.0, random_state=0)[["z", "patient", "y", "clinic", "x"]]
    other = pb.learn(turned, group=GROUP, missing="em")
    assert set(one.dag.arcs) == set(other.dag.arcs)
    assert one.score == pytest.approx(other.score, abs=1e-6)


def test_without_missing_cells_nothing_changes() -> None:
    frame = visits(11)
    one, other = (pb.learn(frame, group=GROUP, missing=how) for how in ("em", "error"))
    assert one.score == other.score
    assert one.dag == other.dag


def test_what_follows_learning_holds_units_too() -> None:
    gaps = with_gaps(visits(12), 13)
    boot = pb.bootstrap(gaps, group=GROUP, missing="em", replicates=2, score="bic", search="hc")
    assert boot.counts.sum() > 0
    found = pb.compare(gaps, group=GROUP, missing="em", folds=2, poolings=["complete", "none"])
    assert np.isfinite(found.table()["loglik"]).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_values_that_are_missing_at_random_bias_nothing() -> None:
    """y is missing where z is large; complete rows alone make its slope too small."""
    away = []
    for seed in range(30):
        frame = visits(100 + seed, 6, 10)
        rng = np.random.default_rng(seed)
        z = frame["z"].to_numpy()
        chance = 1 / (1 + np.exp(1 - 2 * (z - z.mean()) / z.std()))
        gaps = frame.assign(y=frame["y"].mask(rng.random(len(frame)) < chance))
        fits = [
            pb.fit([("x", "y"), ("y", "z")], own, group=GROUP, missing=how).fits["z"].fixed[1]
            for own, how in ((frame, "error"), (gaps, "em"), (gaps, "drop"))
        ]
        away.append(np.array(fits) - 0.5)
    whole, ours, complete_rows = np.mean(away, axis=0)
    error = np.std(away, axis=0)[1] / np.sqrt(30)
    assert abs(whole) < 3 * error
    assert abs(ours) < 3 * error
    assert complete_rows < -0.05
