"""Models with an intercept for each unit inside data sets: closed forms, brute force, laws."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import multivariate_normal

import poolbn as pb
from poolbn.moments.standardised import standardise
from poolbn.nodes.model import same_for_all

POOLINGS = [
    pb.Complete(),
    pb.NoPooling(),
    pb.Partial(),
    pb.Partial(random="intercept"),
    pb.Partial(residuals="pooled"),
    pb.Partial(residuals="separate"),
    pb.Partial(method="reml"),
]
GROUP = ["clinic", "patient"]


def visits(seed: int, clinics: int = 4, patients: int = 12, spread: float = 0.8) -> pd.DataFrame:
    """Visits of patients in clinics; y follows x and differs between patients."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 6, clinics * patients)
    patient = np.repeat(np.arange(len(size)), size)
    clinic = patient // patients
    x = rng.normal(size=len(patient)) + rng.normal(size=len(size))[patient]
    slope = 1 + 0.4 * rng.normal(size=clinics)
    y = slope[clinic] * x + 0.6 * rng.normal(size=clinics)[clinic] + rng.normal(size=len(patient))
    y += spread * rng.normal(size=len(size))[patient]
    return pd.DataFrame({"clinic": clinic, "patient": patient, "x": x, "y": y})


def density(frame: pd.DataFrame, fit: pb.LocalFit) -> float:
    """The log-likelihood of a fit without random effects of data sets, from whole covariances."""
    total = 0.0
    for j, (_, own) in enumerate(frame.groupby("clinic")):
        same = own["patient"].to_numpy()[:, None] == own["patient"].to_numpy()
        share = fit.unit_share[j]
        V = fit.sigma2[j] * (share * same + (1 - share) * np.eye(len(own)))
        mean = fit.coef[j, 0] + fit.coef[j, 1] * own["x"]
        total += multivariate_normal(mean, V).logpdf(own["y"])
    return float(total)


@pytest.mark.parametrize("pooling", POOLINGS[:2], ids=str)
def test_least_squares_has_the_density_of_the_whole_covariance(pooling) -> None:
    frame = visits(0)
    fit = pb.fit_node(pb.stats(frame, group=GROUP), "y", ["x"], pooling=pooling)
    assert fit.loglik == pytest.approx(density(frame, fit), rel=1e-10)


@pytest.mark.parametrize("residuals", ["shared", "separate"])
@pytest.mark.parametrize("random", ["full", "intercept"])
def test_partial_pooling_has_the_density_of_the_whole_covariance(random, residuals) -> None:
    frame = visits(1)
    how = pb.Partial(random=random, residuals=residuals)
    fit = pb.fit_node(pb.stats(frame, group=GROUP), "y", ["x"], pooling=how)
    total = 0.0
    for j, (_, own) in enumerate(frame.groupby("clinic")):
        same = own["patient"].to_numpy()[:, None] == own["patient"].to_numpy()
        share = fit.unit_share[j]
        Z = np.column_stack([np.ones(len(own)), own["x"]])
        V = fit.sigma2[j] * (share * same + (1 - share) * np.eye(len(own)))
        V += Z @ fit.random_cov @ Z.T
        total += multivariate_normal(Z @ fit.fixed, V).logpdf(own["y"])
    assert fit.loglik == pytest.approx(total, rel=1e-9)


def test_complete_pooling_is_the_maximum_of_the_density() -> None:
    frame = visits(1, clinics=3, patients=6)
    fit = pb.fit_node(pb.stats(frame, group=GROUP), "y", ["x"], pooling="complete")
    same = frame["patient"].to_numpy()[:, None] == frame["patient"].to_numpy()
    X = np.column_stack([np.ones(len(frame)), frame["x"]])

    def deviance(at: np.ndarray) -> float:
        V = np.exp(at[0]) * same + np.exp(at[1]) * np.eye(len(frame))
        return -multivariate_normal(X @ at[2:], V).logpdf(frame["y"])

    best = minimize(deviance, [0.0, 0.0, 0.0, 1.0], method="BFGS")
    assert fit.loglik == pytest.approx(-best.fun, abs=1e-6)
    np.testing.assert_allclose(fit.fixed, best.x[2:], atol=1e-4)
    assert fit.unit_sd[0] ** 2 == pytest.approx(np.exp(best.x[0]), rel=1e-3)


@pytest.mark.parametrize("residuals", ["shared", "pooled", "separate"])
@pytest.mark.parametrize("spread", [0.0, 0.8])
def test_t_is_the_best_of_whitened_statistics(residuals: str, spread: float) -> None:
    """A scalar search of scipy's over one-level fits finds no better one."""
    frame = visits(2, clinics=6, spread=spread)
    how, stats = pb.Partial(residuals=residuals), pb.stats(frame, group=GROUP)
    data = standardise(stats)
    fit = pb.fit_node(stats, "y", ["x"], pooling=how)

    def deviance(t: float) -> float:
        at = data.whitened(np.full(6, t))
        return -(how.fit(at, (1, (0,)), None).loglik - at.log_determinant.sum() / 2)

    best = minimize_scalar(deviance, bounds=(0.0, 5.0), method="bounded", options={"xatol": 1e-7})
    assert fit.loglik >= -min(best.fun, deviance(0.0)) - 1e-6
    t = fit.unit_share[0] / (1 - fit.unit_share[0])
    assert fit.loglik == pytest.approx(-deviance(t), abs=1e-7)


@pytest.mark.parametrize("pooling", POOLINGS, ids=str)
def test_scores_are_those_of_final_fits(pooling) -> None:
    stats = pb.stats(visits(3), group=GROUP)
    data = standardise(stats)
    fit = pb.fit_node(stats, "y", ["x"], pooling=pooling)
    found = pooling.logliks(data, [(1, (0,))], same_for_all(0.0))
    assert found.loglik[0] == pytest.approx(fit.loglik, abs=1e-5)
    assert tuple(found.counts[0]) == fit.counts
    last = pooling.logliks(data, [(1, (0,))], same_for_all(0.0), final=True)
    assert last.loglik[0] == pytest.approx(fit.loglik, abs=1e-9)


@pytest.mark.parametrize("pooling", POOLINGS, ids=str)
def test_order_of_rows_columns_and_names_does_not_matter(pooling) -> None:
    frame = visits(4)
    fit = pb.fit_node(pb.stats(frame, group=GROUP), "y", ["x"], pooling=pooling)
    mixed = frame.sample(frac=1.0, random_state=5)[["y", "patient", "x", "clinic"]]
    mixed["patient"] = mixed["patient"].map(lambda k: f"p{(7 * k) % 101}")
    mixed["clinic"] = mixed["clinic"].map("dbca".__getitem__)
    other = pb.fit_node(pb.stats(mixed, group=GROUP), "y", ["x"], pooling=pooling)
    assert other.loglik == pytest.approx(fit.loglik, rel=1e-9)
    order = ["dbca".index(level) for level in other.levels]
    np.testing.assert_allclose(other.coef, fit.coef[order], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pooling", POOLINGS, ids=str)
def test_shift_and_scale_change_what_theory_says(pooling) -> None:
    frame = visits(5)
    fit = pb.fit_node(pb.stats(frame, group=GROUP), "y", ["x"], pooling=pooling)
    far = frame.assign(x=1000 + 10 * frame["x"], y=5e4 + 100 * frame["y"])
    other = pb.fit_node(pb.stats(far, group=GROUP), "y", ["x"], pooling=pooling)
    rows = len(frame) - (2 if pooling == pb.Partial(method="reml") else 0)
    lost = rows * np.log(100) + np.log(10) * (pooling == pb.Partial(method="reml"))
    assert other.loglik == pytest.approx(fit.loglik - lost, rel=1e-7)
    np.testing.assert_allclose(other.unit_share, fit.unit_share, atol=1e-4)


def test_statistics_add_up_where_no_unit_is_in_two_parts() -> None:
    frame = visits(6)
    whole = pb.stats(frame, group=GROUP)
    odd = frame["patient"] % 2 == 1
    both = pb.stats(frame[odd], group=GROUP) + pb.stats(frame[~odd], group=GROUP)
    for name in ("data_set", "size", "count", "sums", "squares"):
        own, other = getattr(whole.units, name), getattr(both.units, name)
        np.testing.assert_allclose(own, other, atol=1e-9 * (np.abs(own).max() + 1))
    with pytest.raises(pb.DataError, match="some of the statistics have units"):
        whole + pb.stats(frame.drop(columns="patient"), group="clinic")


def test_sums_are_those_of_units() -> None:
    frame = visits(7).sample(frac=1.0, random_state=0)
    stats = pb.stats(frame.assign(x=1e6 + frame["x"]), group=GROUP)
    level = list(stats.levels)
    own = frame.assign(x=1e6 + frame["x"])
    away = own[["x", "y"]] - own.groupby("clinic")[["x", "y"]].transform("mean")
    sums = away.groupby([own["clinic"], own["patient"]]).sum()
    sizes = own.groupby(["clinic", "patient"]).size()
    units = stats.units
    assert units is not None
    for c in range(len(units.count)):
        at = [
            k for k, m in sizes.items() if k[0] == level[units.data_set[c]] and m == units.size[c]
        ]
        s = sums.loc[at].to_numpy()
        assert units.count[c] == len(at)
        np.testing.assert_allclose(units.sums[c], s.sum(axis=0), atol=1e-8)
        np.testing.assert_allclose(units.squares[c], s.T @ s, atol=1e-8)


def test_reading_in_batches_gives_the_same_sums(tmp_path, monkeypatch) -> None:
    from poolbn.tables import data

    frame = visits(8, patients=60).sample(frac=1.0, random_state=0)
    whole = pb.stats(frame, group=GROUP)
    frame.to_csv(tmp_path / "v.csv", index=False)
    monkeypatch.setattr(data, "_CELLS", 64)
    monkeypatch.setattr(data, "_ROWS", 16)
    read = pb.stats(str(tmp_path / "v.csv"), group=GROUP)
    assert read.units is not None
    assert whole.units is not None
    np.testing.assert_allclose(
        read.units.squares[:3].sum(), whole.units.squares[:3].sum(), rtol=0.5
    )
    fits = [pb.fit_node(stats, "y", ["x"]) for stats in (whole, read)]
    assert fits[0].loglik == pytest.approx(fits[1].loglik, rel=1e-10)


@pytest.mark.parametrize("pooling", POOLINGS, ids=str)
def test_units_of_one_row_change_nothing(pooling) -> None:
    frame = visits(9)
    frame["patient"] = range(len(frame))
    with_units = pb.fit_node(pb.stats(frame, group=GROUP), "y", ["x"], pooling=pooling)
    plain = pb.stats(frame.drop(columns="patient"), group="clinic")
    assert with_units.loglik == pb.fit_node(plain, "y", ["x"], pooling=pooling).loglik
    assert with_units.unit is None


def test_no_pooling_is_the_sum_of_its_sites() -> None:
    frame = visits(10)
    stats = pb.stats(frame, group=GROUP)
    whole = pb.fit_node(stats, "y", ["x"], pooling="none")
    alone = [pb.fit_node(stats.data_sets([j], [j]), "y", ["x"], pooling="none") for j in range(4)]
    assert whole.loglik == pytest.approx(sum(fit.loglik for fit in alone), rel=1e-9)
    assert whole.n_params == sum(fit.n_params for fit in alone) == 16
    shares = [fit.unit_share[0] for fit in alone]
    np.testing.assert_allclose(whole.unit_share, shares, atol=1e-4)
    assert max(abs(a - b) for a, b in pairwise(shares)) > 0.01


def test_saved_statistics_are_the_same(tmp_path) -> None:
    stats = pb.stats(visits(11, patients=90), group=GROUP)
    stats.save(tmp_path / "s.stats")
    read = pb.GroupStats.load(tmp_path / "s.stats")
    assert read.units is not None
    assert stats.units is not None
    assert (read.units.squares == stats.units.squares).all()
    assert pb.fit_node(read, "y", ["x"]).loglik == pb.fit_node(stats, "y", ["x"]).loglik


def test_sizes_of_few_units_are_put_together(tmp_path) -> None:
    stats = pb.stats(visits(12, patients=40), group=GROUP)
    assert stats.units is not None
    assert stats.units.count.min() < 10
    stats.save(tmp_path / "s.stats")
    read = pb.GroupStats.load(tmp_path / "s.stats")
    assert read.units is not None
    assert read.units.count.min() >= 10
    assert read.units.n_units == stats.units.n_units
    exact, near = (pb.fit_node(of, "y", ["x"]) for of in (stats, read))
    np.testing.assert_allclose(near.fixed, exact.fixed, atol=0.02)
    assert near.unit_share[0] == pytest.approx(exact.unit_share[0], abs=0.05)
    stats.save(tmp_path / "all.stats", allow_small=True)
    whole = pb.GroupStats.load(tmp_path / "all.stats")
    assert pb.fit_node(whole, "y", ["x"]).loglik == exact.loglik


def test_few_units_are_not_written(tmp_path) -> None:
    stats = pb.stats(visits(13, patients=9), group=GROUP)
    with pytest.raises(pb.DataError, match="fewer than 10 units"):
        stats.save(tmp_path / "s.stats")


def test_columns_that_describe_units() -> None:
    """As children they have one value a unit; a fit is that of a table with a row for each."""
    frame = visits(14)
    age = np.random.default_rng(1).normal(size=48)
    frame["age"] = age[frame["patient"]]
    one = frame.drop_duplicates("patient").assign(weight=lambda t: 2 * t["age"] + t["clinic"])
    frame["weight"] = 2 * frame["age"] + frame["clinic"]
    rng = np.random.default_rng(2).normal(size=48)
    frame["weight"] += rng[frame["patient"]]
    one["weight"] += rng[one["patient"]]
    stats = pb.stats(frame, group=GROUP)
    plain = pb.stats(one[["clinic", "age", "weight"]], group="clinic")
    for pooling in POOLINGS[:5]:
        fit = pb.fit_node(stats, "weight", ["age"], pooling=pooling)
        alone = pb.fit_node(plain, "weight", ["age"], pooling=pooling)
        assert fit.loglik == pytest.approx(alone.loglik, rel=1e-8)
        np.testing.assert_allclose(fit.coef, alone.coef, rtol=1e-5)
    wrong = pb.fit_node(stats, "weight", ["x"])
    assert not wrong.status.ok
    assert "constant in each unit, and its parent 'x' is not" in wrong.detail
    assert pb.fit_node(stats, "y", ["age", "x"]).status.ok


def test_values_of_few_units_are_not_written(tmp_path) -> None:
    """Sums of a size would tell the sums of the one unit that has a value."""
    frame = visits(15, patients=60)
    few = frame["patient"].isin([3, 70, 130, 190])
    rare = frame.assign(rare=few.astype(float))
    rare.loc[rare["patient"] % 60 < 5, "rare"] = 1.0  # in rows enough, in five units
    with pytest.raises(pb.DataError, match=r"too few units .* one of the two values of 'rare'"):
        pb.stats(rare, group=GROUP).save(tmp_path / "s.stats")
    common = frame.assign(common=(frame["patient"] % 2).astype(float))
    pb.stats(common, group=GROUP).save(tmp_path / "s.stats")
    units = pb.GroupStats.load(tmp_path / "s.stats").units
    assert units is not None
    assert units.count.min() >= 20  # ten of each half


def test_columns_that_vary_inside_few_units_are_not_written(tmp_path) -> None:
    """What is left inside units of its products would be of one patient's visits alone."""
    frame = visits(15, patients=60)
    wrong = frame.assign(sex=(frame["patient"] % 2).astype(float))
    size = wrong.groupby("patient")["x"].transform("size")
    one = wrong.index[size == size.max()][0]
    wrong.loc[one, "sex"] = 1 - wrong.loc[one, "sex"]
    stats = pb.stats(wrong, group=GROUP)
    own = wrong[wrong["patient"] == wrong.loc[one, "patient"]]
    j, units = stats.levels.index(own["clinic"].iloc[0]), stats.units
    assert units is not None
    at, x = stats.names.index("sex"), stats.names.index("x")
    here = units.data_set == j
    left = stats.scatter[j, at, x] - (units.squares[here, at, x] / units.size[here]).sum()
    away = own["sex"] - own["sex"].mean()  # of the patient whose sex changes
    assert left == pytest.approx(float(away @ own["x"]), abs=1e-8)
    with pytest.raises(pb.DataError, match=r"'sex' may vary inside fewer than 10 units"):
        stats.save(tmp_path / "s.stats")
    stats.save(tmp_path / "s.stats", allow_small=True)
    varying = frame.assign(ill=np.arange(len(frame)) % 2.0)
    pb.stats(varying, group=GROUP).save(tmp_path / "s.stats")


def test_a_large_unit_does_not_pass_for_ten(tmp_path) -> None:
    """Squares inside one unit of 40 rows are as large as those inside 20 units of two rows."""
    rng = np.random.default_rng(21)
    patient = np.repeat(np.arange(60), 40)
    frame = pd.DataFrame({"clinic": patient // 30, "patient": patient, "x": rng.normal(size=2400)})
    frame["sex"] = patient % 2.0
    frame.loc[frame["patient"] == 7, "sex"] = np.arange(40) % 2.0
    with pytest.raises(pb.DataError, match=r"'sex' may vary inside fewer than 10 units"):
        pb.stats(frame, group=GROUP).save(tmp_path / "s.stats")
    pb.stats(frame[["clinic", "patient", "x"]], group=GROUP).save(tmp_path / "s.stats")
    ill = frame.assign(sex=rng.random(2400) < 0.5).astype({"sex": float})
    pb.stats(ill, group=GROUP).save(tmp_path / "s.stats")


def test_a_formula_may_name_the_units() -> None:
    stats = pb.stats(visits(16), group=GROUP)
    fit = pb.fit_node(stats, "y ~ x + (1 + x | clinic) + (1 | patient)")
    assert fit.loglik == pb.fit_node(stats, "y", ["x"]).loglik
    one = pb.fit_node(stats, "y ~ x + (1 | clinic) + (1 | patient)")
    assert (
        one.loglik == pb.fit_node(stats, "y", ["x"], pooling=pb.Partial(random="intercept")).loglik
    )
    with pytest.raises(pb.OptionError, match="random effects of 'patient'"):
        pb.fit_node(stats, "y ~ x + (1 + x | clinic) + (1 + x | patient)")


@pytest.mark.parametrize("seed", [17, 18])
@pytest.mark.parametrize("rows", [None, 3])
def test_free_levels_leave_contrasts_of_rows(seed: int, rows: int | None) -> None:
    """Deviations from means of data sets have the likelihood of n_j - 1 orthonormal contrasts.

    Of three rows they are two, of which a slope leaves one.
    """
    frame = visits(seed, clinics=5 if rows is None else 20, patients=6)
    if rows is not None:
        frame = frame.groupby("clinic").head(rows)
    found = pb.Partial().logliks(
        standardise(pb.stats(frame, group=GROUP)).deviations, [(1, (0,))], same_for_all(0.0)
    )
    parts = []
    for _, own in frame.groupby("clinic"):
        n = len(own)
        H = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:].T
        same = own["patient"].to_numpy()[:, None] == own["patient"].to_numpy()
        x, y = H @ own["x"].to_numpy(), H @ own["y"].to_numpy()
        parts.append((x, y, H @ same @ H.T))

    def deviance(at: np.ndarray) -> float:
        slope, sigma2, unit, spread = at[0], *np.exp(at[1:])
        return -sum(
            multivariate_normal(
                slope * x, sigma2 * np.eye(len(x)) + unit * same + spread * np.outer(x, x)
            ).logpdf(y)
            for x, y, same in parts
        )

    options = {"maxiter": 4000, "xatol": 1e-8, "fatol": 1e-10}
    best = minimize(deviance, [1.0, 0.0, 0.0, -2.0], method="Nelder-Mead", options=options)
    assert found.loglik[0] == pytest.approx(-best.fun, abs=2e-5)


def test_files_of_two_sites_are_the_pooled_rows(tmp_path) -> None:
    """To the bit, where each size has ten units or more."""
    rng = np.random.default_rng(19)
    size = np.tile(np.repeat([1, 2, 4], 12), 4)
    patient = np.repeat(np.arange(len(size)), size)
    frame = pd.DataFrame({"clinic": patient // 36, "patient": patient})
    for name in "xyz":
        frame[name] = rng.normal(size=len(size))[patient] + rng.normal(size=len(patient))
    frame["y"] += frame["x"]
    for site in (0, 1):
        own = frame[frame["clinic"] // 2 == site]
        pb.stats(own, group=GROUP).save(tmp_path / f"{site}.stats")
    both = sum(pb.GroupStats.load(tmp_path / f"{site}.stats") for site in (0, 1))
    whole = pb.stats(frame, group=GROUP)
    for name in ("data_set", "size", "count", "sums", "squares"):
        assert (getattr(both.units, name) == getattr(whole.units, name)).all()
    nets = [pb.learn(of) for of in (both, whole)]
    assert nets[0].dag == nets[1].dag
    assert nets[0].score == nets[1].score
    assert "units: 144 (patient), 1 to 4 rows each" in repr(both)
