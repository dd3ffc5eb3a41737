"""What a fit says: statuses, tables, printing; and closed forms against numpy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers import simulate

import poolbn as pb
from poolbn.scoring.local import LocalScores

POOLINGS = [
    "complete",
    "none",
    "partial",
    pb.Partial(random="intercept"),
    pb.Partial(method="reml"),
]


@pytest.mark.parametrize("variance", ["ml", "unbiased"])
def test_linear_fits_are_those_of_numpy(variance: str) -> None:
    frame = simulate(1, rows=12, parents=3)
    stats = pb.stats(frame, group="F")
    parents = ["x3", "x1", "x2"]

    def regress(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, float]:
        Z = np.column_stack([np.ones(len(rows)), rows[parents]])
        coef, (rss,), *_ = np.linalg.lstsq(Z, rows["y"], rcond=None)
        unbiased = rss / (len(rows) - 4)
        se = np.sqrt(unbiased * np.diagonal(np.linalg.inv(Z.T @ Z)))
        return coef, se, unbiased if variance == "unbiased" else rss / len(rows)

    complete = pb.fit_node(stats, "y", parents, pooling=pb.Complete(variance))
    coef, se, sigma2 = regress(frame)
    np.testing.assert_allclose(complete.fixed, coef, rtol=1e-10)
    np.testing.assert_allclose(complete.fixed_se, se, rtol=1e-10)
    np.testing.assert_allclose(complete.sigma2, sigma2, rtol=1e-10)
    separate = pb.fit_node(stats, "y", parents, pooling=pb.NoPooling(variance))
    for j, level in enumerate(separate.levels):
        coef, se, sigma2 = regress(frame[frame["F"] == level])
        np.testing.assert_allclose(separate.coef[j], coef, rtol=1e-10)
        np.testing.assert_allclose(separate.coef_sd[j], se, rtol=1e-10)
        assert separate.sigma2[j] == pytest.approx(sigma2, rel=1e-10)
    assert separate.fixed is separate.random is separate.random_sd is separate.random_corr is None


BASE = simulate(2, data_sets=3, rows=8)
FEW = pd.concat([BASE, BASE.head(2).assign(F="few")])
IN_SETS = BASE.assign(y=BASE["x1"] * BASE.groupby("F").ngroup())
TROUBLE = {
    "constant parent": (BASE.assign(x2=0.1), POOLINGS, "rank deficient", "'x2'"),
    "copied parent": (BASE.assign(x2=BASE["x1"]), POOLINGS, "rank deficient", "leave it out"),
    "combined parent": (BASE.assign(x2=7 - 3e3 * BASE["x1"]), POOLINGS, "rank deficient", "'x2'"),
    "constant child": (BASE.assign(y=1 / 3), POOLINGS, "no residual variance", "'y'"),
    "determined child": (
        BASE.assign(y=BASE["x1"] - 2 * BASE["x2"] + 1), POOLINGS, "no residual variance", "'y'",
    ),
    "determined in data sets": (
        IN_SETS, ["none", "partial"], "no residual variance", "data set",
    ),
    "few rows in one data set": (FEW, ["none"], "too few rows", "data set 'few' has 2 rows"),
    "few rows everywhere": (
        BASE.groupby("F").head(3), ["none", "partial"], "too few rows", "parents",
    ),
    "fewer rows than coefficients": (BASE.iloc[[0, 8]], POOLINGS, "too few rows", "need at least"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TROUBLE)
def test_trouble_is_a_status_and_never_a_nan(kind: str) -> None:
    frame, poolings, name, detail = TROUBLE[kind]
    stats = pb.stats(frame, group="F")
    for pooling in poolings:
        fit = pb.fit_node(stats, "y", ["x1", "x2"], pooling=pooling)
        assert str(fit.status) == name, (pooling, fit.status)
        assert detail in fit.detail
        assert not fit.status.ok
        assert fit.loglik == fit.bic == fit.aic == -np.inf
        x1, x2, y = (stats.names.index(name) for name in ("x1", "x2", "y"))
        assert LocalScores(stats, pooling=pooling)([(y, (x1, x2))])[0] == -np.inf
        for array in (fit.coef, fit.coef_sd, fit.sigma2, fit.fixed, fit.fixed_cov, fit.random_cov):
            assert array is None or np.isfinite(array).all()
        assert "status" not in repr(fit)
        assert "nan" not in repr(fit).lower()


def test_parent_constant_in_one_data_set_only() -> None:
    frame = BASE.assign(x2=BASE["x2"].where(BASE["F"] != "set 1", 0.25))
    stats = pb.stats(frame, group="F")
    separate = pb.fit_node(stats, "y", ["x1", "x2"], pooling="none")
    assert "in data set 'set 1', 'x2'" in separate.detail
    for pooling in ("complete", "partial"):
        assert pb.fit_node(stats, "y", ["x1", "x2"], pooling=pooling).status.ok


def test_random_effects_in_words_and_numbers(opt_stats: pb.GroupStats) -> None:
    fit = pb.fit_node(opt_stats, "birthweight_g", ["gestation_days", "bmi"])
    assert str(fit.status) == "singular fit"
    assert "correlations of 1 or -1" in fit.detail
    np.testing.assert_allclose(fit.random + fit.fixed, fit.coef, rtol=1e-12)
    corr, sd = fit.random_corr, fit.random_sd
    np.testing.assert_allclose(corr * np.outer(sd, sd), fit.random_cov, rtol=1e-9, atol=1e-12)
    assert (np.abs(corr) <= 1).all()
    table = fit.table()
    assert list(table.index) == ["(Intercept)", "gestation_days", "bmi"]
    assert list(table.columns) == ["fixed", "se", "between_sd", *opt_stats.levels]


@pytest.mark.parametrize("pooling", POOLINGS)
def test_fits_print_well(opt_stats: pb.GroupStats, pooling) -> None:
    fit = pb.fit_node(opt_stats, "bleeding_0", ["gingival_0"], pooling=pooling)
    first, *_, numbers, status = str(fit).splitlines()
    assert first.startswith("bleeding_0 given gingival_0: ")
    assert "4 clinics, 737 rows" in first
    assert f"{fit.n_params} parameters" in numbers
    assert status == f"{fit.status}: {fit.detail}"
    assert "<table" in fit._repr_html_()


def test_many_data_sets_are_not_all_printed() -> None:
    fit = pb.fit_node(pb.stats(simulate(3, data_sets=30, rows=3), group="F"), "y", ["x1"])
    assert "24 more data sets" in str(fit)
    assert max(map(len, str(fit).splitlines())) < 120
    assert fit.table().shape == (2, 33)


def test_no_parents_and_a_name_as_parents(opt_stats: pb.GroupStats) -> None:
    assert pb.fit_node(opt_stats, "bmi").parents == ()
    assert pb.fit_node(opt_stats, "bmi", "age").parents == ("age",)
