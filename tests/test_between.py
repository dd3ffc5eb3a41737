"""How means of data sets go together: scipy and analysis of variance; what simulated tables say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, pearsonr
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app
from poolbn.moments.between import SURE, MeansCorrelation, mean_correlations, sure
from poolbn.page.cards import summary
from poolbn.page.context import gathered
from poolbn.page.summary import ignored_correlations, in_short

TABLES = 200


def simulated(
    rng: np.random.Generator, F: int, N: int, *, between: float = 0.0, within: float = 0.0,
    sd: float = 0.5, rows: tuple[int, int] = (5, 60), spread: float = 0.0,
) -> pd.DataFrame:  # fmt: skip
    """Levels of data sets with one correlation, rows with another, residual SDs that vary."""
    n = rng.integers(*rows, F, endpoint=True)
    site = np.repeat(np.arange(F), n)

    def drawn(m: int, correlation: float) -> np.ndarray:
        S = np.full((N, N), correlation) + (1 - correlation) * np.eye(N)
        return rng.multivariate_normal(np.zeros(N), S, m, method="cholesky")

    scale = np.exp(spread * rng.normal(size=F))
    x = sd * drawn(F, between)[site] + scale[site, None] * drawn(len(site), within)
    return pd.DataFrame(x, columns=[f"x{k}" for k in range(N)]).assign(site=site)


def binary(rng: np.random.Generator, F: int, N: int, between: float) -> pd.DataFrame:
    """Events whose log odds vary between data sets."""
    table = simulated(rng, F, N, between=between, sd=1.0, rows=(20, 60))
    levels = table.groupby("site").transform("mean").drop(columns="site", errors="ignore")
    chance = 1 / (1 + np.exp(1.0 - levels))
    return (rng.random(chance.shape) < chance).replace({True: "yes", False: "no"}).assign(
        site=table["site"]
    )  # fmt: skip


def found(table: pd.DataFrame) -> tuple[MeansCorrelation, ...]:
    return mean_correlations(pb.table(table, group="site"))


def claims(tables: list[pd.DataFrame]) -> int:
    return sum(bool(sure(found(table))) for table in tables)


def as_dict(pairs: tuple[MeansCorrelation, ...]) -> dict[frozenset[str], float]:
    return {frozenset((pair.first, pair.second)): pair.correlation for pair in pairs}


def test_columns_that_describe_data_sets_are_as_scipy_has_them() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 12))
    site = np.repeat(np.arange(12), 6)
    table = pd.DataFrame({"a": a[site], "b": (a + b)[site], "site": site})
    (pair,) = found(table)
    known = pearsonr(a, a + b)
    assert (pair.first, pair.second, pair.data_sets) == ("a", "b", 12)
    assert pair.correlation == pytest.approx(known.statistic, rel=1e-9)
    assert pair.p_value == pytest.approx(known.pvalue, rel=1e-9)


def test_with_as_many_rows_that_scatter_alike_it_is_analysis_of_variance() -> None:
    rng = np.random.default_rng(2)
    F, n = 9, 14
    rows = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 2]], n)
    rows -= rows.mean(axis=0)
    levels = rng.multivariate_normal([5, -3], [[1, -0.5], [-0.5, 1]], F)
    x = (levels[:, None] + rows).reshape(-1, 2)
    table = pd.DataFrame(x, columns=["x", "y"]).assign(site=np.repeat(np.arange(F), n))
    within = rows.T @ rows / (n - 1)
    between = n * np.cov(levels.T)  # mean squares between and within data sets
    B = (between - within) / n
    (pair,) = found(table)
    assert pair.correlation == pytest.approx(B[0, 1] / np.sqrt(B[0, 0] * B[1, 1]), rel=1e-9)


@pytest.mark.parametrize(
    ("F", "within", "spread"), [(5, 0.0, 0.0), (8, 0.7, 0.0), (8, 0.0, 0.5), (30, 0.7, 0.5)]
)
def test_levels_that_are_independent_are_rarely_called_correlated(
    F: int, within: float, spread: float
) -> None:
    """Also where rows are correlated, and so is the noise of means."""
    rng = np.random.default_rng(3)
    wrong = claims(
        [simulated(rng, F, 6, within=within, spread=spread) for _ in range(TABLES)]
    )  # fmt: skip
    assert wrong <= binom.ppf(0.999, TABLES, SURE)


def test_levels_of_events_are_rarely_called_correlated_and_are_where_they_are() -> None:
    rng = np.random.default_rng(4)
    assert claims([binary(rng, 20, 4, 0.0) for _ in range(50)]) <= binom.ppf(0.999, 50, SURE)
    assert claims([binary(rng, 30, 4, 0.9) for _ in range(20)]) >= 18


def test_correlations_are_estimated_without_the_noise_of_means() -> None:
    """The plain correlation of means is nearer to that of rows, which is another one."""
    rng = np.random.default_rng(5)
    tables = [
        simulated(rng, 40, 2, between=-0.6, within=0.6, sd=0.4, rows=(4, 12)) for _ in range(60)
    ]
    own = np.array([pair.correlation for table in tables for pair in found(table)])
    plain = [table.groupby("site").mean().corr().loc["x0", "x1"] for table in tables]
    error = own.std() / np.sqrt(len(own))
    assert abs(own.mean() + 0.6) < 3 * error + 0.03  # a ratio of estimates is a little off
    assert np.mean(plain) > -0.3
    assert claims([simulated(rng, 20, 4, between=0.8, sd=1.0) for _ in range(20)]) == 20


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_unit_origin_and_order_do_not_matter(seed: int, gaps: bool) -> None:
    rng = np.random.default_rng(seed)
    table = simulated(rng, 7, 3, between=0.5, within=0.3)
    if gaps:
        table.loc[rng.random(len(table)) < 0.2, "x1"] = np.nan
    turned = table[["site", "x2", "x0", "x1"]].assign(x0=-3 * table["x0"] + 1e4)
    turned = turned.sample(frac=1, random_state=seed)
    usual, other = (
        as_dict(mean_correlations(pb.stats(own, group="site", missing="em")))
        for own in (table, turned)
    )
    assert usual.keys() == other.keys()
    for pair, correlation in usual.items():
        sign = -1 if "x0" in pair else 1
        assert other[pair] == pytest.approx(sign * correlation, abs=1e-6)


def test_missing_cells_make_no_correlation() -> None:
    """Means that follow from another column's are as noisy as what they follow from."""
    rng = np.random.default_rng(6)
    tables = []
    for _ in range(60):
        table = simulated(rng, 10, 3, within=0.8, sd=0.2, rows=(20, 40))
        table.loc[rng.random(len(table)) < 0.6, "x1"] = np.nan
        tables.append(table)
    wrong = sum(
        bool(sure(mean_correlations(pb.stats(own, group="site", missing="em")))) for own in tables
    )
    assert wrong <= binom.ppf(0.999, len(tables), SURE)


def test_a_column_that_some_data_sets_lack_is_compared_in_the_others() -> None:
    rng = np.random.default_rng(7)
    table = simulated(rng, 12, 2, between=0.5, sd=1.0)
    table.loc[table["site"] < 4, "x1"] = np.nan
    (pair,) = mean_correlations(pb.stats(table, group="site", missing="em"))
    (alone,) = found(table[table["site"] >= 4])
    assert pair.data_sets == 8
    assert pair.correlation == pytest.approx(alone.correlation, abs=0.1)


def test_units_are_what_means_are_of() -> None:
    """Units that are alike in both columns make no correlation between data sets."""
    rng = np.random.default_rng(8)
    wrong = plain = 0
    for _ in range(40):
        unit = simulated(rng, 15, 3, within=0.8, sd=0.05, rows=(4, 6))
        rows = unit.loc[np.repeat(unit.index, 10)].assign(unit=np.repeat(unit.index, 10))
        rows[["x0", "x1", "x2"]] += 0.1 * rng.normal(size=(len(rows), 3))
        wrong += bool(sure(mean_correlations(pb.stats(rows, group=["site", "unit"]))))
        plain += bool(sure(mean_correlations(pb.stats(rows.drop(columns="unit"), group="site"))))
    assert wrong <= binom.ppf(0.999, 40, SURE)
    assert plain > 20


def test_two_data_sets_say_nothing() -> None:
    table = simulated(np.random.default_rng(9), 2, 2, sd=1.0)
    assert found(table) == ()
    assert pb.learn(table, group="site").mean_correlations().empty


@pytest.fixture(scope="module")
def schools() -> pd.DataFrame:
    return simulated(np.random.default_rng(10), 40, 3, between=0.9, within=0.4, sd=1.0).rename(
        columns={"site": "school"}
    )


def test_a_network_tells_what_its_statistics_do(schools: pd.DataFrame) -> None:
    net = pb.learn(schools, group="school")
    told = net.mean_correlations()
    assert list(told.columns) == list(MeansCorrelation._fields)
    assert [tuple(row) for row in told.to_numpy()] == list(mean_correlations(pb.stats(
        schools, group="school")))  # fmt: skip
    mixed = schools.assign(x2=np.where(schools["x2"] > 0, "high", "low"))
    rows = pb.table(mixed, group="school")
    with pytest.raises(pb.DataError, match="correlations of means need what the network was"):
        pb.learn(rows).mean_correlations()
    names = pb.learn(rows).mean_correlations(rows)[["first", "second"]].to_numpy().ravel()
    assert set(names) == {"x0", "x1", "x2=low"}


def test_look_tells_of_them(schools: pd.DataFrame, tmp_path: Any) -> None:
    told = pb.look(schools, group="school")
    assert told.mean_correlations == mean_correlations(pb.stats(schools, group="school"))
    last = told.findings[-1]
    assert last.kind is pb.FindingKind.CORRELATED_MEANS
    assert last.count == 3
    assert set(last.columns) == {"x0", "x1", "x2"}
    assert str(last).startswith("means of schools are correlated: ")
    apart = simulated(np.random.default_rng(11), 10, 3, rows=(20, 30))
    kinds = [each.kind for each in pb.look(apart, group="site").findings]
    assert pb.FindingKind.CORRELATED_MEANS not in kinds
    schools.to_csv(tmp_path / "t.csv", index=False)
    done = CliRunner().invoke(app, ["look", str(tmp_path / "t.csv"), "--group", "school"])
    assert "--score bic and --score bic-h take what schools add" in " ".join(done.stdout.split())


@pytest.mark.parametrize(("preset", "told"), [("paper", True), ("best", False)])
def test_a_report_warns_where_the_score_ignores_them(
    schools: pd.DataFrame, preset: Any, told: bool
) -> None:
    of = gathered(pb.learn(schools, group="school", preset=preset), schools, None, None)
    assert bool(ignored_correlations(of)) == told
    said = " ".join(point.sentence for point in in_short(of))
    assert ("Means of schools are correlated ('x" in said) == told
    cards = {card.heading: " ".join(card.sentences) for card in summary(of)}
    assert cards["Means of schools that go together"].startswith(
        "3 of 3 correlations are beyond chance: 'x"
    )
