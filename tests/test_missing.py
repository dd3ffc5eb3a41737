"""Missing cells: EM against scipy, draws against rows, and laws that statistics keep."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import simulate
from scipy.optimize import minimize
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app
from poolbn.moments import em, statsfile
from poolbn.moments.em import complete
from poolbn.moments.patterns import GapsInTheMaking
from poolbn.moments.standardised import imputed, standardise
from poolbn.tables.missing import packed


def incomplete(seed: int, share: float = 0.2, rows: int = 30, data_sets: int = 4) -> pd.DataFrame:
    """A table with cells missing completely at random, but for the data set."""
    table = simulate(seed, data_sets=data_sets, rows=rows)
    rng = np.random.default_rng(seed)
    columns = [name for name in table.columns if name != "F"]
    return table.assign(**table[columns].mask(rng.random((len(table), len(columns))) < share))


def problem(X: np.ndarray) -> em.IncompleteRows:
    """The rows of one data set."""
    whole = ~np.isnan(X).any(axis=1)
    making = GapsInTheMaking.empty(X.shape[1])
    rows = X[~whole]
    making.add_rows(
        np.zeros(len(rows), dtype=np.int64), list(rows.T.copy()), packed(np.isnan(rows))
    )
    C = X[whole]
    mean = C.mean(axis=0) if len(C) else np.zeros(X.shape[1])
    known = em.CompleteRows(float(len(C)), mean, (C - mean).T @ (C - mean))
    return em.incomplete_rows(making.made(), known, 0)


def by_cells(X: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Columns, and the rows that have just these, (., n)."""
    there = ~np.isnan(X)
    patterns = np.unique(there, axis=0)
    return [(np.flatnonzero(p), X[(there == p).all(axis=1)][:, p].T) for p in patterns]


def dense(
    rows: list[tuple[np.ndarray, np.ndarray]], prior: em.Prior, mean: np.ndarray, cov: np.ndarray
) -> float:
    """The objective, by the densities of all rows."""
    value = 0.0
    for has, x in rows:
        V, d = cov[has[:, None], has], x - mean[has, None]
        log_det = np.linalg.slogdet(2 * np.pi * V)[1]
        value -= (x.shape[1] * log_det + np.sum(d * np.linalg.solve(V, d))) / 2
    K, away = np.linalg.inv(cov), mean - prior.mean
    lent = prior.rows * (np.linalg.slogdet(cov)[1] + np.trace(K @ prior.cov))
    return float(value - (lent + prior.at_mean * away @ K @ away) / 2)


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(k, marks=pytest.mark.slow) for k in range(8, 50))]
)
def test_em_is_the_maximum_that_scipy_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    N, n = int(rng.integers(2, 4)), int(rng.integers(6, 25))
    A = rng.normal(size=(N, N))
    X = rng.normal(size=(n, N)) @ A + rng.normal(size=N)
    X[rng.random((n, N)) < rng.choice([0.1, 0.3, 0.5])] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    prior = em.Prior(2.0, float(rng.uniform(0.1, 5)), rng.normal(size=N), A.T @ A + 0.1 * np.eye(N))
    found, rows = em.maximise(problem(X), prior), by_cells(X)
    assert found.objective == pytest.approx(dense(rows, prior, found.mean, found.cov), abs=1e-8)

    def objective(v: np.ndarray) -> float:
        L = np.zeros((N, N))
        L[np.tril_indices(N)] = v[N:]
        return -dense(rows, prior, v[:N], L @ L.T)

    L = np.linalg.cholesky(prior.cov)
    start = np.concatenate([prior.mean, L[np.tril_indices(N)]])
    best = minimize(objective, start, method="BFGS", options={"gtol": 1e-7})
    assert found.objective > -best.fun - 1e-6
    assert found.steps <= 100


def test_without_gaps_nothing_changes() -> None:
    table = simulate(1, data_sets=3, rows=20)
    usual, filled = (pb.stats(table, group="F", missing=how) for how in ("error", "em"))
    assert (usual.mean == filled.mean).all()
    assert (usual.scatter == filled.scatter).all()
    one = table.assign(x1=table["x1"].mask(table.index == 0))
    some = pb.stats(one, group="F", missing="em")
    whole = [level != one["F"][0] for level in usual.levels]
    assert (usual.scatter[whole] == some.scatter[whole]).all()
    assert some.n_rows == usual.n_rows


def test_draws_of_a_data_set_in_which_nothing_varies() -> None:
    table = incomplete(5)
    at = table["F"] == table["F"].iloc[0]
    table.loc[at, "y"] = table.loc[at, "y"].where(table.loc[at, "y"].isna(), 2.0)
    for name in ("x1", "x2"):
        table.loc[at, name] = 1.0
    found = pb.stats(table, group="F", missing="em")
    drawn, j = found.drawn(0), found.levels.index(table["F"].iloc[0])
    expected = [2.0 if name == "y" else 1.0 for name in found.names]
    np.testing.assert_allclose(drawn.mean[j], expected)
    assert not drawn.scatter[j].any()
    (made,) = pb.impute(table, group="F", imputations=1)
    assert (made.loc[made["F"] == table["F"].iloc[0], "y"] == 2.0).all()


@pytest.mark.parametrize("seed", range(3))
def test_order_does_not_matter(seed: int) -> None:
    table = incomplete(seed)
    first = pb.stats(table, group="F", missing="em")
    mixed = table.sample(frac=1, random_state=seed)[table.columns[::-1]]
    second = pb.stats(mixed, group="F", missing="em").select(first.names)
    at = [second.levels.index(level) for level in first.levels]
    np.testing.assert_allclose(first.mean, second.mean[at], rtol=0, atol=1e-7)
    np.testing.assert_allclose(first.scatter, second.scatter[at], rtol=1e-7, atol=1e-6)
    units = table.assign(y=1000 * table["y"] - 5)
    third = pb.stats(units, group="F", missing="em")
    y = first.names.index("y")
    np.testing.assert_allclose(third.mean[:, y], 1000 * first.mean[:, y] - 5, rtol=1e-6)


@pytest.mark.parametrize("rows", [30, 200])
def test_patterns_add_up(rows: int) -> None:
    table = incomplete(4, rows=rows)
    whole = pb.stats(table, group="F", missing="em")
    parts = [
        pb.stats(part, group="F", missing="em").patterns
        for part in (table.iloc[::3], table.iloc[1::3], table.iloc[2::3])
    ]
    assert all(part is not None for part in parts)
    added = sum(parts).completed()
    at = [added.levels.index(level) for level in whole.levels]
    np.testing.assert_allclose(added.scatter[at], whole.scatter, rtol=1e-6, atol=1e-6)
    assert (sum(parts).observed[at] == whole.filled.observed).all()
    with pytest.raises(pb.DataError, match="patterns"):
        whole + whole
    with pytest.raises(pb.DataError, match="not saved; save what was observed"):
        whole.save("never.stats")


def test_patterns_that_many_rows_have_are_sums() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 4))
    X[:100, 0] = X[100:200, 1] = X[100:200, 2] = X[200, 3] = np.nan
    of = GapsInTheMaking.empty(4)
    of.add_rows(np.zeros(201, dtype=np.int64), list(X[:201].T.copy()), packed(np.isnan(X[:201])))
    gaps = of.made()
    assert sorted(gaps.n.tolist()) == [100, 100]
    assert len(gaps.rows) == 1
    single = gaps._replace(
        data_set=gaps.data_set[:0], missing=gaps.missing[:0], n=gaps.n[:0], mean=gaps.mean[:0],
        scatter=gaps.scatter[:0], rows=X[:201], rows_of=np.zeros(201, dtype=np.int64),
    )  # fmt: skip
    C = X[201:]
    known = [em.CompleteRows(float(len(C)), C.mean(axis=0), np.cov(C.T, ddof=0) * len(C))]
    by_sums, by_rows = (complete(some, known, 2.0).expected()[1] for some in (gaps, single))
    np.testing.assert_allclose(by_sums, by_rows, rtol=1e-8)


def test_draws_from_sums_are_those_of_rows() -> None:
    """Means and covariances of drawn statistics, at the same parameters."""
    rng = np.random.default_rng(2)
    A = rng.normal(size=(3, 3))
    X = rng.normal(size=(30, 3)) @ A
    X[:12, :2] = np.nan
    sums = problem(X)
    assert sums.by.cells.tolist() == [0]
    rows = sums._replace(
        by=sums.by._replace(cells=np.array([-1]), begin=np.array([0, 12])), rows=X[:12].copy(),
        n=sums.n[:0], mean=sums.mean[:0], scatter=sums.scatter[:0],
    )  # fmt: skip
    found = []
    for of in (sums, rows):
        drawn = [em._completed(of, np.zeros(3), A.T @ A, rng) for _ in range(1500)]
        found.append(np.array([[*d.mean, *d.scatter[np.tril_indices(3)]] for d in drawn]))
    error = found[0].std(axis=0) / np.sqrt(750) + 1e-9
    assert (np.abs(found[0].mean(axis=0) - found[1].mean(axis=0)) < 5 * error).all()
    varies = found[0].std(axis=0) > 1e-9
    ratio = found[0].std(axis=0)[varies] / found[1].std(axis=0)[varies]
    assert np.abs(np.log(ratio)).max() < 0.12


def test_a_column_that_a_data_set_never_measured_follows_the_others() -> None:
    rng = np.random.default_rng(3)
    site = np.repeat(list("abcd"), 60)
    x1 = rng.normal(size=240) + np.repeat(rng.normal(size=4), 60)
    table = pd.DataFrame({"F": site, "x1": x1, "x2": rng.normal(size=240)})
    table["y"] = 1 + 0.8 * x1 + rng.normal(size=240)
    lost = table.assign(y=table["y"].mask(table["F"] == table["F"].iloc[0]))
    stats = pb.stats(lost, group="F", missing="em")
    first, y = stats.levels[0], stats.names.index("y")
    truth = pb.stats(table, group="F")
    spread = np.sqrt(truth.scatter[0, y, y] / truth.n[0])
    assert abs(stats.mean[0, y] - truth.mean[0, y]) < spread
    for pooling in ("partial", "complete", "none", "auto", pb.Partial(residuals="pooled")):
        fit = pb.fit_node(stats, "y", ["x1"], pooling=pooling)
        assert fit.left_out == (first,)
        assert "was not measured in" in fit.detail
        assert np.isfinite(fit.coef).all()
        rest = pb.stats(lost[lost["F"] != first], group="F", missing="em")
        alone = pb.fit_node(rest, "y", ["x1"], pooling=pooling)
        assert fit.loglik == pytest.approx(alone.loglik, rel=0.2)
    net = pb.learn(lost, group="F", missing="em")
    assert np.isfinite(net.score)


def test_a_constant_stays_one() -> None:
    table = incomplete(5)
    site = table["F"].iloc[0]
    table.loc[table["F"] == site, "x1"] = table.loc[table["F"] == site, "x1"] * 0 + 3.0
    stats = pb.stats(table, group="F", missing="em")
    x1 = stats.names.index("x1")
    assert stats.mean[0, x1] == pytest.approx(3.0)
    assert (stats.scatter[0, x1] == 0).all()
    assert pb.fit_node(stats, "x1", [], pooling="none").left_out == (site,)


def test_rows_count_as_far_as_they_are_there() -> None:
    table = incomplete(6, share=0.25)
    stats = pb.stats(table, group="F", missing="em")
    cells = table.drop(columns="F").notna().groupby(table["F"], sort=False).sum().to_numpy()
    empty = table.drop(columns="F").isna().all(axis=1)
    assert (stats.filled.observed == cells).all()
    assert stats.n_rows == len(table) - empty.sum()
    assert standardise(stats).n == pytest.approx(cells.mean(axis=1))
    assert len(imputed(stats)) == 20
    whole = pb.fit_node(stats, "y", ["x1"])
    careless = pb.fit_node(
        pb.GroupStats(stats.names, stats.levels, stats.n.copy(), stats.mean.copy(),
                      stats.scatter.copy(), stats.dropped.copy()), "y", ["x1"])  # fmt: skip
    assert whole.intervals.se.mean() > 1.1 * careless.intervals.se.mean()
    again = pb.fit_node(pb.stats(table, group="F", missing="em"), "y", ["x1"])
    assert (again.intervals.se == whole.intervals.se).all()


def test_what_cannot_be_filled_in() -> None:
    table = incomplete(7)
    with pytest.raises(pb.DataError, match="'x2' is missing in all rows"):
        pb.stats(table.assign(x2=np.nan), group="F", missing="em")
    few = table.assign(y=np.where(table.index < 2, table["y"], np.nan))
    assert np.isfinite(pb.stats(few, group="F", missing="em").scatter).all()
    copies = table.assign(z=2 * table["x1"])
    assert np.isfinite(pb.stats(copies, group="F", missing="em").scatter).all()


@pytest.mark.parametrize("unit", ["row", "data set"])
def test_bootstrap_draws_rows_with_their_gaps(unit: str) -> None:
    table = incomplete(8)
    boot = pb.bootstrap(table, group="F", missing="em", replicates=4, unit=unit, seed=3)
    again = pb.bootstrap(table, group="F", missing="em", replicates=4, unit=unit, seed=3)
    assert boot.table().equals(again.table())
    assert boot.replicates == 4


def test_compare_holds_out_rows_with_their_gaps() -> None:
    table = incomplete(8, share=0.05, rows=24)
    some = {"poolings": ["complete", "partial"], "folds": 2, "seed": 2}
    found = pb.compare(table, group="F", missing="em", **some)
    assert np.isfinite(found.loglik).all()
    assert found.rows.sum() == pb.stats(table, group="F", missing="em").n_rows
    whole = simulate(8, data_sets=4, rows=24)
    usual, filled = (pb.compare(whole, group="F", missing=m, **some) for m in ("error", "em"))
    assert found.table().shape == usual.table().shape
    np.testing.assert_allclose(filled.loglik, usual.loglik, atol=0.3)


def test_from_the_command_line(tmp_path: Path) -> None:
    file, out = tmp_path / "gaps.csv", tmp_path / "out"
    table = incomplete(9)
    table.to_csv(file, index=False)
    done = CliRunner().invoke(
        app, ["learn", str(file), "--group", "F", "--missing", "em", "-o", str(out)]
    )
    assert done.exit_code == 0, done.output
    cells = table.drop(columns="F").isna()
    gaps = (cells.any(axis=1) & ~cells.all(axis=1)).sum()
    assert f"{gaps} rows with missing values count" in done.output
    net, direct = pb.load(out / "network.json"), pb.learn(table, group="F", missing="em")
    assert net.dag == direct.dag
    page = (out / "report.html").read_text()
    assert "with missing values count for those that they have" in page
    assert "taken as missing at random" in page
    assert "learned from other rows" not in page


def test_sites_hand_on_patterns_of_ten_rows_and_more(tmp_path: Path) -> None:
    table = incomplete(12, rows=120, share=0.1)
    whole = pb.stats(table, group="F", missing="em")
    files = []
    for site in table["F"].unique():
        source, files = tmp_path / f"{site}.csv", [*files, str(tmp_path / f"{site}.stats")]
        table[table["F"] == site].to_csv(source, index=False)
        made = CliRunner().invoke(
            app, ["stats", str(source), "--group", "F", "--missing", "em", "-o", files[-1]]
        )
        assert made.exit_code == 0, made.output
    loaded = [pb.PatternStats.load(file) for file in files]
    assert min(int(part.gaps.n.min()) for part in loaded) >= 10
    assert all(len(part.gaps.rows) == 0 for part in loaded)
    added = sum(loaded)
    lost = int(whole.patterns.observed.sum() - added.observed.sum())
    assert 0 < lost < 0.1 * whole.patterns.observed.sum()
    sd = np.sqrt(np.einsum("jaa->ja", whole.scatter) / whole.n[:, None])
    assert (np.abs(added.completed().mean - whole.mean) < 0.1 * sd).all()
    done = CliRunner().invoke(app, ["learn", *files])
    assert done.exit_code == 0, done.output
    assert "with missing values count" in done.output
    shown = CliRunner().invoke(app, ["stats", "show", files[0]])
    assert "rows lacking x1" in shown.stdout
    with pytest.raises(pb.FileError, match=r"PatternStats\.load"):
        pb.GroupStats.load(files[0])
    sums = CliRunner().invoke(app, ["stats", "add", *files, "-o", str(tmp_path / "all.stats")])
    assert sums.exit_code == 0, sums.output
    assert (pb.PatternStats.load(tmp_path / "all.stats").observed == added.observed).all()


@pytest.mark.parametrize("seed", range(4))
def test_coarser_patterns_are_sums_of_the_rows(seed: int) -> None:
    """What is left of a cell, from the rows themselves."""
    table = incomplete(seed, rows=40, share=0.15, data_sets=2)
    patterns = pb.stats(table, group="F", missing="em").patterns
    made = patterns.coarsened(7)
    counts = [*made.gaps.n.tolist(), *(n for n in made.known.n.tolist() if n)]
    assert min(counts) >= 7
    assert (made.observed <= patterns.observed).all()
    assert (made.n <= patterns.n).all()
    same = patterns.coarsened(1)
    assert (same.observed == patterns.observed).all()
    np.testing.assert_allclose(same.completed().scatter, patterns.completed().scatter, rtol=1e-6)


def test_a_file_that_hides_something_is_refused(tmp_path: Path) -> None:
    table = incomplete(13, rows=120, share=0.1)
    file = tmp_path / "a.stats"
    patterns = pb.stats(table, group="F", missing="em").patterns
    patterns.save(file)
    saved = statsfile.read_file(file, takes=["gaps"])
    gaps = saved.gaps
    assert gaps is not None
    at = np.flatnonzero(gaps.missing[0])[0]
    hidden = gaps.mean.copy()
    hidden[0, at] = 42.0
    wrong = {
        "numbers where cells are missing": gaps._replace(mean=hidden),
        "data sets that it does not have": gaps._replace(data_set=gaps.data_set + 9),
        "lack nothing": gaps._replace(missing=gaps.missing & False),
        "pattern twice": type(gaps)(*(np.concatenate([part, part]) for part in gaps)),
        "has 0 rows": gaps._replace(n=gaps.n * 0),
    }
    for says, bad in wrong.items():
        with pytest.raises(pb.FileError, match=says):
            statsfile.write_file(tmp_path / "b.stats", saved._replace(gaps=bad))
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(pb.FileError, match="damaged"):
        pb.PatternStats.load(file)


def test_completed_tables_keep_what_was_there() -> None:
    table = incomplete(10, rows=60)
    columns = [name for name in table.columns if name != "F"]
    table.loc[table["F"] == table["F"].iloc[0], "x2"] = np.nan  # never measured there
    table = table.dropna(subset=columns, how="all").reset_index(drop=True)
    made = pb.impute(table, group="F", imputations=4, seed=1)
    assert len(made) == 4
    there = table[columns].notna().to_numpy()
    for one in made:
        assert (one["F"].astype(str) == table["F"].astype(str)).all()
        assert one[columns].notna().all(axis=None)
        assert (one[columns].to_numpy()[there] == table[columns].to_numpy()[there]).all()
    assert (made[0][columns].to_numpy()[~there] != made[1][columns].to_numpy()[~there]).all()
    again = pb.impute(table, group="F", imputations=1, seed=1)
    assert again[0].equals(made[0])
    stats, mean = pb.stats(table, group="F", missing="em"), pb.stats(made[0], group="F").mean
    sd = np.sqrt(np.einsum("jaa->ja", stats.scatter) / stats.n[:, None])
    assert np.abs(mean - stats.mean).max() < sd.max()


def test_partitions_of_dask_add_up() -> None:
    dask = pytest.importorskip("dask.dataframe")
    table = incomplete(11)
    whole = pb.stats(table, group="F", missing="em")
    parts = pb.stats(dask.from_pandas(table, npartitions=3), group="F", missing="em")
    at = [parts.levels.index(level) for level in whole.levels]
    np.testing.assert_allclose(parts.scatter[at], whole.scatter, rtol=1e-6, atol=1e-6)


def test_what_missing_values_depend_on() -> None:
    """Against scipy: Student's t in one data set, and chi-squared between data sets."""
    from scipy.stats import chi2_contingency, ttest_ind

    table = incomplete(3, rows=40, data_sets=1)
    table["F"] = np.where(np.arange(len(table)) < 25, "one", "two")
    one = table[table["F"] == "one"]
    names = [name for name in table.columns if name != "F"]
    found = pb.stats(one, group="F", missing="em").patterns.missingness()
    for row in found[found["depends_on"] != "F"].itertuples():
        lacks, values = one[row.variable].isna(), one[row.depends_on]
        expected = ttest_ind(values[lacks].dropna(), values[~lacks].dropna())
        assert row.statistic == pytest.approx(expected.statistic)
        assert row.p_value == pytest.approx(expected.pvalue)
    assert len(found) == len(names) * (len(names) - 1)
    found = pb.stats(table, group="F", missing="em").patterns.missingness()
    for row in found[found["depends_on"] == "F"].itertuples():
        counts = pd.crosstab(table["F"], table[row.variable].isna())
        expected = chi2_contingency(counts, correction=False)
        assert (row.statistic, row.p_value) == pytest.approx(expected[:2])
        assert row.difference == pytest.approx(np.ptp(counts[True] / counts.sum(axis=1)))


@pytest.mark.parametrize(
    "shape", [(4, 25, 0.2), pytest.param((6, 12, 0.1), marks=pytest.mark.slow)]
)
def test_tests_of_missing_values_keep_their_size(shape: tuple[int, int, float]) -> None:
    """5% of some 1300 tests, whatever the scales of data sets."""
    F, n, share = shape
    rng = np.random.default_rng(F)
    data_set = np.repeat(np.arange(F), n)
    small: list[bool] = []
    for _ in range(20):
        scale, middle = rng.uniform(0.3, 3, size=(F, 8)), rng.normal(scale=2, size=(F, 8))
        X = rng.normal(size=(F * n, 8)) * scale[data_set] + middle[data_set]
        X[rng.random(X.shape) < share] = np.nan
        table = pd.DataFrame(X, columns=list("abcdefgh")).assign(F=data_set)
        found = pb.stats(table, group="F", missing="em").patterns.missingness()
        small += (found["p_value"] < 0.05).tolist()
    assert 0.03 < np.mean(small) < 0.07


def test_counts_of_patterns_are_those_of_the_rows() -> None:
    table = incomplete(5, share=0.3)
    names = [name for name in table.columns if name != "F"]
    counts = pb.stats(table, group="F", missing="em").patterns.counts()
    lacks = [tuple(n for n in names if row[n]) for _, row in table[names].isna().iterrows()]
    expected = Counter(zip(lacks, table["F"], strict=True))
    found = {(lack, j): n for lack, row in counts.iterrows() for j, n in row.items() if n}
    assert found == {key: n for key, n in expected.items() if len(key[0]) < len(names)}


def test_selected_patterns_are_those_of_the_selected_columns() -> None:
    """Rows that become whole are counted as such, and rows without a value are dropped."""
    table = incomplete(7, share=0.4)
    names = [name for name in table.columns if name != "F"][:2]
    selected = pb.stats(table, group="F", missing="em").patterns.select(names)
    read = pb.stats(table, group="F", columns=names, missing="em").patterns
    assert selected.known.n.tolist() == read.known.n.tolist()
    assert selected.known.dropped.sum() > 0
    assert selected.known.dropped.tolist() == read.known.dropped.tolist()
    np.testing.assert_allclose(selected.known.scatter, read.known.scatter, rtol=1e-12)
    pd.testing.assert_frame_equal(selected.counts(), read.counts())
    np.testing.assert_allclose(selected.completed().scatter, read.completed().scatter, rtol=1e-6)


def test_a_data_set_of_which_nothing_is_left_is_named() -> None:
    table = incomplete(7, rows=60)
    table = pd.concat([table[table["F"] != "set 1"], table[table["F"] == "set 1"].head(12)])
    table = table.reset_index(drop=True)
    table.loc[table["F"] == "set 1", "y"] = 0.5
    table.loc[table["F"] == "set 1", [n for n in table.columns if n not in ("F", "y")]] = np.nan
    patterns = pb.stats(table, group="F", missing="em").patterns
    with pytest.raises(pb.DataError, match="data set 'set 1' has no rows left"):
        patterns.select(["x1"])
    table.loc[table.index[table["F"] == "set 1"][:4], "y"] = np.nan
    table.loc[table.index[table["F"] == "set 1"][:4], "x1"] = 1.5
    patterns = pb.stats(table, group="F", missing="em").patterns
    with pytest.raises(pb.DataError, match="data set 'set 1' no 10 have values in the same"):
        patterns.coarsened()


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_the_map_of_missing_values(tmp_path: Path) -> None:
    """All of it in the terminal; on the page nothing of fewer than 10 rows, unless it is open."""
    trial = pb.datasets.opt()[["clinic", "age", "bmi", "gestation_days", "birthweight_g"]]
    file = tmp_path / "trial.csv"
    trial.to_csv(file, index=False)
    command = ["learn", str(file), "--group", "clinic", "--missing", "em"]
    done = CliRunner().invoke(app, command)
    lines = [line.split() for line in done.stdout.split("Network:")[0].splitlines()]
    rows = {line[0]: line[1:] for line in lines if line}
    assert rows["bmi"] == ["x", "x", "9%", "13"]
    assert rows["birthweight_g"] == ["x", "x", "2%", "72"]
    assert rows["rows"] == ["737", "72", "13", "1"]
    assert rows["NY"] == ["107", "57", "9", "0"]
    record = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert record["missing"][1] == {"columns": ["bmi"], "rows": [57, 10, 5, 0]}
    net = pb.learn(pb.stats(trial, group="clinic", missing="em"))
    for open, few, gaps in ((False, 6, 2), (True, 0, 4)):
        pb.report(net, tmp_path / "report.html", data=trial, rows=open)
        page = (tmp_path / "report.html").read_text()
        found = page[page.index('id="missing-map"') : page.index('id="made"')]
        assert found.count("&lt; 10") == few
        assert found.count('class="gap"') == gaps


def test_a_warning_says_what_missing_values_depend_on() -> None:
    trial = pb.datasets.opt()[["clinic", "age", "bmi", "gestation_days", "birthweight_g"]]
    stats = pb.stats(trial, group="clinic", missing="em")
    (found,) = pb.check(stats)
    assert found.kind is pb.FindingKind.MISSINGNESS
    assert found.columns == ("birthweight_g", "bmi")
    assert "rows without 'birthweight_g' have lower 'gestation_days' (by 4.3 SDs)" in found.what
    assert "'bmi' is missing in 33% of 'NY' and 0% of 'MS'" in found.what
    assert pb.check(pb.stats(incomplete(3), group="F", missing="em")) == []


def test_a_data_set_that_measured_little_has_a_report(tmp_path: Path) -> None:
    """Nothing is divided by the rows that it has of a family: none."""
    table = incomplete(4, rows=40)
    table.loc[table["F"] == "set 2", ["x1", "y"]] = np.nan
    net = pb.learn(table, group="F", missing="em", pooling="partial")
    assert net.fits["y"].left_out == ("set 2",)
    assert any("constant or not measured there" in line for line in net.endings())
    pb.report(net, tmp_path / "report.html")
    assert "NaN" not in (tmp_path / "report.html").read_text().split("<script")[0]
