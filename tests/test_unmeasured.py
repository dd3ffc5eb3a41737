"""Columns that some data sets never measured: the commonest gap of studies in several centres."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app


def rows(seed: int = 0, n: int = 30) -> pd.DataFrame:
    """In four sites: a -> b -> c, a -> event, a -> visits; grade is by itself."""
    rng = np.random.default_rng(seed)
    site = np.repeat(["s0", "s1", "s2", "s3"], n)
    a = rng.normal(size=4 * n) + rng.normal(size=4).repeat(n)
    b = 0.8 * a + rng.normal(size=4 * n)
    return pd.DataFrame(
        {
            "a": a,
            "b": b,
            "c": b - a + rng.normal(size=4 * n),
            "event": np.where(a + rng.normal(size=4 * n) > 0, "yes", "no"),
            "grade": rng.choice(list("xyz"), 4 * n),
            "visits": rng.poisson(np.exp(0.3 * a)).astype(float),
            "site": site,
        }
    )


CONTINUOUS = ["a", "b", "c", "site"]
CASES = {
    "a parent": (CONTINUOUS, [("a", "s1")]),
    "a child": (CONTINUOUS, [("c", "s1")]),
    "two columns in two sites": (CONTINUOUS, [("a", "s1"), ("b", "s2"), ("c", "s2")]),
    "three of four sites": (CONTINUOUS, [("b", "s1"), ("b", "s2"), ("b", "s3")]),
    "a discrete column": (["a", "b", "event", "grade", "site"], [("event", "s1")]),
    "a column beside others": (["a", "event", "grade", "site"], [("a", "s1"), ("grade", "s2")]),
    "a count": (["a", "event", "visits", "site"], [("visits", "s3")]),
}
each_case = pytest.mark.parametrize("case", CASES)


def measured(case: str) -> pd.DataFrame:
    columns, gaps = CASES[case]
    table = rows()[columns]
    for column, site in gaps:
        table.loc[table["site"] == site, column] = None
    return table


def kinds_of(table: pd.DataFrame) -> dict[str, str]:
    return {"visits": "count"} if "visits" in table else {}


@each_case
@pytest.mark.parametrize(
    "pooling",
    ["partial", "none", *(pytest.param(x, marks=pytest.mark.slow) for x in ("complete", "auto"))],
)
def test_networks_are_learned_saved_and_asked(case: str, pooling: str, tmp_path: Path) -> None:
    table = measured(case)
    columns, gaps = CASES[case]
    net = pb.learn(table, group="site", kinds=kinds_of(table), missing="em", pooling=pooling)
    assert np.isfinite(net.score)
    for column in {column for column, _ in gaps}:
        sites = tuple(site for of, site in gaps if of == column)
        if pooling != "complete" or set(columns) != set(CONTINUOUS):
            assert net.fits[column].left_out == sites
        # Nothing is known there but what the others tell.
        values = net.sample(5, sites[0], seed=1)[column]
        assert values.notna().all()
    net.save(tmp_path / "net.json")
    loaded = pb.load(tmp_path / "net.json")
    assert loaded.effects().equals(net.effects())
    assert {name: fit.left_out for name, fit in loaded.fits.items()} == {
        name: fit.left_out for name, fit in net.fits.items()
    }
    for column in columns[:-1]:
        assert len(net.predict(table.drop(columns=column).iloc[::20], column)) == 6
    net.effects(by="data set")
    net.total_effects(columns[0])
    net.adapt(rows(5, 4)[columns].assign(site="new"), "new")
    pb.report(net, tmp_path / "net.html", data=table)
    pb.report(loaded, tmp_path / "loaded.html")


@pytest.mark.parametrize("score", ["bic-h", "gprior"])
@pytest.mark.parametrize("pooling", ["none", "auto", pb.Partial(residuals="pooled")], ids=str)
def test_other_scores_and_poolings(score: str, pooling: object) -> None:
    for case in ("a parent", "a child", "two columns in two sites"):
        net = pb.learn(measured(case), group="site", missing="em", pooling=pooling, score=score)
        assert np.isfinite(net.score)


def test_the_coefficients_of_a_root_that_a_site_never_measured() -> None:
    """Without pooling: the mean of the others' levels, and how far these are apart."""
    table = measured("a parent")
    stats = pb.stats(table, group="site", missing="em")
    fit = pb.fit_node(stats, "a", pooling="none")
    means = table.groupby("site")["a"].mean().dropna()
    at = fit.levels.index("s1")
    assert fit.coef[at, 0] == pytest.approx(means.mean(), rel=1e-6)
    assert fit.coef_cov[at, 0, 0] == pytest.approx(means.var(ddof=0), rel=1e-6)


@pytest.mark.parametrize("case", ["a parent", "three of four sites", "a column beside others"])
def test_resampling_and_comparing(case: str) -> None:
    table = measured(case)
    reading = {"group": "site", "kinds": kinds_of(table), "missing": "em"}
    found = pb.compare(table, folds=2, poolings=["none", "partial"], **reading)
    assert np.isfinite(found.table()["loglik"]).all()
    assert pb.bootstrap(table, replicates=2, pooling="none", seed=1, **reading).replicates == 2


@pytest.mark.parametrize("case", ["a parent", pytest.param("a count", marks=pytest.mark.slow)])
def test_the_command_line(case: str, tmp_path: Path) -> None:
    table = measured(case)
    table.to_csv(tmp_path / "em.csv", index=False)
    reading = [str(tmp_path / "em.csv"), "-g", "site", "--missing", "em"]
    for name in kinds_of(table):
        reading += ["--kinds", f"{name}=count"]
    commands = [["learn", *reading, "-o", str(tmp_path / "out")], ["look", *reading[:3]]]
    commands += [
        ["bootstrap", *reading, "--replicates", "2"],
        ["compare", *reading, "--folds", "2"],
    ]
    for command in commands:
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, (command, done.output, done.exception)
    assert (tmp_path / "out" / "report.html").exists()


def test_values_too_large_to_calculate_with_are_named() -> None:
    """Also in a row with missing cells, of which the others have to be drawn."""
    table = rows()
    table.loc[3, "a"], table.loc[3, "b"] = 1e300, None
    for function in (pb.learn, pb.compare):
        with pytest.raises(pb.DataError, match=r"column .a. are about 1e\+300, too large"):
            function(table, group="site", kinds={"visits": "count"}, missing="em")


def test_a_file_of_a_site_that_never_measured_a_column(tmp_path: Path) -> None:
    """An empty column says nothing of its kind: other files do."""
    whole = site_files(tmp_path)
    for order in (whole, whole[::-1]):
        net = pb.learn(order, group="site", missing="em")
        assert net.fits["ses"].left_out == ("c",)
        assert net.fits["sex"].left_out == ("c",)
        assert [type(net.fits[name]).__name__ for name in ("ses", "y")] == ["GaussianFit"] * 2
    stats = []
    for path in whole:
        target = path.with_suffix(".stats")
        arguments = ["stats", str(path), "-g", "site", "--missing", "em", "--exclude", "sex"]
        assert CliRunner().invoke(app, [*arguments, "-o", str(target)]).exit_code == 0
        stats.append(str(target))
    learned = CliRunner().invoke(
        app, ["learn", *stats, "--missing", "em", "-o", str(tmp_path / "o")]
    )
    assert learned.exit_code == 0, learned.output


def site_files(folder: Path) -> list[Path]:
    """A CSV of each of three sites, of which the last has two columns empty."""
    rng, paths = np.random.default_rng(0), []
    for j, site in enumerate("abc"):
        x = rng.normal(size=60)
        ses = x + rng.normal(size=60)
        rows = pd.DataFrame(
            {"site": site, "x": x, "ses": ses, "sex": ["m", "f"] * 30, "y": x + ses + j}
        )
        rows["y"] += rng.normal(size=60)
        paths.append(folder / f"{site}.csv")
        rows.assign(**{"ses": np.nan, "sex": None} if site == "c" else {}).to_csv(
            paths[-1], index=False
        )
    return paths
