"""Tables with columns of all kinds, from all sources; continuous nodes with discrete parents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import REFERENCE, reference
from scipy.stats import binom

import poolbn as pb


def rows(seed: int = 0, n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "site": rng.choice(["B", "A", "C"], n),
            "sex": rng.choice(["male", "female"], n),
            "arm": rng.choice(["x", "y", "z"], n),
            "event": rng.random(n) < 0.3,
            "visits": rng.poisson(2, n),
            "age": rng.normal(50, 10, n).round(1),
        }
    )


KINDS = ("discrete", "discrete", "discrete", "continuous", "continuous")


def as_file(table: pd.DataFrame, folder: Path, ending: str) -> Path:
    path = folder / f"rows.{ending}"
    if ending == "csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)
    return path


@pytest.mark.parametrize("how", ["pandas", "polars", "arrow", "csv", "parquet", "dask"])
def test_all_sources_give_the_same(how: str, tmp_path: Path) -> None:
    table = rows()
    source: Any = table
    if how == "polars":
        source = pl.from_pandas(table)
    elif how == "arrow":
        source = pa.Table.from_pandas(table, preserve_index=False)
    elif how == "dask":
        source = pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=3)
    elif how in ("csv", "parquet"):
        source = as_file(table, tmp_path, how)
    found = pb.table(source, group="site")
    assert found.kinds == KINDS
    assert found.categories[:3] == (("female", "male"), ("x", "y", "z"), ("False", "True"))
    order = np.concatenate([np.flatnonzero(table["site"] == level) for level in found.levels])
    for name, labels in zip(found.names[:3], found.categories, strict=False):
        own = [labels[k] for k in found.cases([name]).columns[0].astype(int)]
        assert own == table[name].astype(str).to_numpy()[order].tolist()
    np.testing.assert_array_equal(found.values[3:], table[["visits", "age"]].to_numpy()[order].T)
    assert found.n.tolist() == [(table["site"] == level).sum() for level in found.levels]


def test_networks_are_learned_from_the_chosen_columns_of_a_table() -> None:
    frame = pd.DataFrame({"site": list("ab") * 20, "x": range(40), "y": list("uvwv") * 10})
    frame["z"] = np.sin(frame["x"])
    table = pb.table(frame, group="site")
    assert pb.learn(table, columns=["z", "y"]).nodes == ("z", "y")


def test_levels_keep_the_order_of_categories_else_they_are_sorted() -> None:
    table = rows()
    ordered = pd.Categorical(table["arm"], categories=["z", "never", "x", "y"])
    found = pb.table(table.assign(arm=ordered, visits=table["visits"] + 8), group="site",
                     kinds={"visits": "discrete"})  # fmt: skip
    assert found.categories[1] == ("z", "x", "y")
    assert list(found.categories[3]) == sorted(found.categories[3], key=int)


def test_a_level_may_be_in_one_file_alone(tmp_path: Path) -> None:
    table = rows()
    for k, part in enumerate([table[table["arm"] != "x"], table[table["arm"] == "x"]]):
        part.to_csv(tmp_path / f"{k}.csv", index=False)
    found = pb.table(tmp_path, group="site")
    assert found.categories[1] == ("x", "y", "z")
    assert found.n_rows == len(table)


def test_rows_with_missing_levels_are_dropped() -> None:
    table = rows()
    table.loc[3, "sex"] = None
    table.loc[5, "age"] = np.nan
    with pytest.raises(pb.DataError, match="2 rows have a missing value"):
        pb.table(table, group="site")
    found = pb.table(table, group="site", missing="drop")
    assert found.n_rows == len(table) - 2
    assert found.dropped.sum() == 2


BAD = [
    ({"sex": "male"}, {}, "'sex' has one level, 'male'"),
    ({"age": lambda t: t["age"].astype(str).where(t.index != 4, "<0.5")}, {},
     "'age' is mostly numbers, but 1 cell holds '<0.5'"),
    ({"arm": lambda t: [f"p{i}" for i in range(len(t))]}, {}, "60 levels in 60 rows"),
    ({"visits": -1}, {"visits": "count"}, "negative or not whole, the first is -1"),
    ({}, {"age": "count"}, "are negative or not whole"),
    ({"visits": 2**64 - 1}, {"visits": "count"}, "are above 1e+12, the first is 1.8"),
    ({}, {"size": "count"}, "no column 'size'"),
    ({}, {"age": "number"}, "the kind of column 'age' is 'number'"),
    ({}, {"sex": "count"}, "'sex' holds text, and its kind is 'count'"),
    ({"age": pd.Timestamp("2020-01-01")}, {}, "neither a number nor a level"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "kinds", "says"), BAD, ids=[case[2] for case in BAD])
def test_what_cannot_be_used_is_told(change: dict, kinds: dict, says: str) -> None:
    with pytest.raises(pb.PoolbnError) as told:
        pb.table(rows().assign(**change), group="site", kinds=kinds)
    assert says in str(told.value)


def test_statistics_hold_indicators() -> None:
    table = rows(1)
    found = pb.table(table, group="site").stats(["arm", "age"])
    made = pd.get_dummies(table[["arm", "age"]], columns=["arm"], drop_first=True, dtype=float)
    named = made.rename(columns={"arm_y": "arm=y", "arm_z": "arm=z"})
    expected = pb.stats(named[["arm=y", "arm=z", "age"]].assign(site=table["site"]), group="site")
    assert found.names == expected.names
    np.testing.assert_array_equal(found.scatter, expected.scatter)


ANCOVA = reference("ancova/cases.json")


@pytest.mark.parametrize("case", ANCOVA, ids=lambda case: case["id"])
def test_discrete_parents_against_lme4(case: dict) -> None:
    """Mixed models with factors; recipes are beside the numbers in reference/ancova."""
    table = pb.table(REFERENCE / "ancova" / case["data"], group="F")
    fit = pb.fit_node(table, case["response"], case["parents"])
    assert fit.loglik >= case["logLik"] - 1e-6 * max(1, abs(case["logLik"]))
    assert fit.n_params == case["n_params"]
    if not case["singular"] and fit.loglik < case["logLik"] + 1e-6:
        order = [0, *(1 + fit.columns.index(_named(name, case)) for name in case["coef_names"][1:])]
        np.testing.assert_allclose(fit.fixed[order], case["fixef"], atol=1e-4)


def _named(name: str, case: dict) -> str:
    """R's name of a coefficient as it is here."""
    for parent in case["parents"]:
        if name.startswith(parent) and name != parent:
            return f"{parent}={name.removeprefix(parent)}"
    return name


@pytest.mark.parametrize("pooling", ["complete", "none", "partial", "auto"])
def test_the_first_level_does_not_matter(pooling: str) -> None:
    table = rows(2, 300)
    other = table.assign(arm=pd.Categorical(table["arm"], categories=["z", "y", "x"]))
    one, two = (
        pb.fit_node(pb.table(t, group="site"), "age", ["arm", "visits"], pooling=pooling)
        for t in (table, other)
    )
    assert one.loglik == pytest.approx(two.loglik, abs=1e-6)
    assert one.n_params == two.n_params


# Scores


def test_scores_of_continuous_tables_are_those_of_their_statistics() -> None:
    rows = pb.random_table(pb.random_network(pb.random_dag(5, 2, seed=1), 4, seed=1), 30, seed=1)
    dag = pb.random_dag(5, 2, seed=2)
    for pooling in ("complete", "none", "partial", "auto"):
        for score in ("bic", "aic", "loglik"):
            one, two = (
                pb.score(data, dag.arcs, pooling=pooling, score=score)
                for data in (pb.table(rows, group="F"), pb.stats(rows, group="F"))
            )
            assert one == two


@pytest.mark.parametrize("pooling", ["complete", "none", "partial", "auto"])
def test_a_score_is_the_sum_of_the_fits(pooling: str) -> None:
    """And does not depend on the order or names of columns, levels and rows."""
    table = rows(4, 400)[["site", "sex", "arm", "event", "age"]]
    arcs = [("sex", "arm"), ("sex", "event"), ("arm", "event"), ("event", "age"), ("arm", "age")]
    made = pb.table(table, group="site")
    value = pb.score(made, arcs, pooling=pooling)
    dag = pb.Dag(made.names, arcs)
    if pooling != "auto":
        fits = [pb.fit_node(made, node, dag.parents(node), pooling=pooling) for node in dag.nodes]
        assert value == pytest.approx(sum(fit.bic for fit in fits), rel=1e-10)
    other = table.sample(frac=1, random_state=1)[["age", "event", "arm", "sex", "site"]]
    other["arm"] = other["arm"].map({"x": "c", "y": "b", "z": "a"})
    assert pb.score(pb.table(other, group="site"), arcs, pooling=pooling) == pytest.approx(
        value, rel=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize("parents", [1, 4])
def test_a_continuous_parent_that_says_nothing_is_not_added(parents: int) -> None:
    """In under 5% of tables; benchmarks/noise_parent.py has more of them."""
    names = [f"p{k}" for k in range(parents)]
    arcs = [(name, "y") for name in names]
    added = []
    for seed in range(25):
        true = pb.random_network(pb.Dag([*names, "y"], arcs), 10, discrete=1, seed=seed)
        noise = np.random.default_rng([seed, parents]).normal(size=500)
        table = pb.table(pb.random_table(true, 50, seed=seed).assign(x=noise), group="F")
        added.append(pb.score(table, [*arcs, ("x", "y")]) > pb.score(table, arcs))
    assert sum(added) <= binom.ppf(0.999, len(added), 0.05)


DISCRETE = reference("scores/discrete.json")


@pytest.mark.parametrize("case", DISCRETE, ids=lambda case: case["net"])
@pytest.mark.parametrize("score", ["loglik", "aic", "bic", "bde", "k2"])
def test_scores_are_those_of_bnlearn(case: dict, score: str) -> None:
    rows = pd.read_csv(REFERENCE / "scores" / "learning.test.csv.gz")
    table = pb.table(rows.assign(all="one"), group="all")
    value = pb.score(table, case["arcs"], pooling=pb.Complete(discrete="table"), score=score)
    assert value == pytest.approx(sum(case["scores"][score].values()), rel=1e-8)


def test_a_score_of_continuous_columns_says_so() -> None:
    with pytest.raises(pb.OptionError, match="continuous columns; use score='bic' or score='bic-h"):
        pb.score(pb.table(rows(), group="site"), [], score="bge")


# Logistic and count regressions

SOME = ("bacteria_week", "opt_assist", "opt_preterm_gest", "opt_tobacco")
LOGIT = [case for case in reference("logit/cases.json") if case["id"] in SOME]


@pytest.mark.parametrize("case", LOGIT, ids=lambda case: case["id"])
def test_a_discrete_node_with_a_continuous_parent_is_glmer_s(case: dict) -> None:
    """Recipes are beside the numbers in reference/logit; test_glmm.py has all of them."""
    path = REFERENCE / "logit" / case["data"]
    child, parents = case["response"], case["parents"]
    parents = [parents] if isinstance(parents, str) else parents
    table = pb.table(path, group="F", columns=[child, *parents], kinds={child: "discrete"})
    fit = pb.fit_node(table, child, parents)
    assert fit.loglik >= case["logLik"] - 1e-4
    assert fit.n_params == case["n_params"]
    assert fit.coef.shape == (len(table.levels), 1, fit.fixed.shape[1])


def test_counts_with_much_variance_are_negative_binomial() -> None:
    rng = np.random.default_rng(5)
    made = pd.DataFrame({"site": np.repeat(["a", "b", "c"], 150), "x": rng.normal(size=450)})
    mean = np.exp(0.5 + 0.4 * made["x"])
    for shape, found in ((1.5, True), (1e6, False)):
        y = rng.poisson(mean * rng.gamma(shape, 1 / shape, 450))
        table = pb.table(made.assign(y=y), group="site", kinds={"y": "count"})
        fit = pb.fit_node(table, "y", ["x"], pooling="complete")
        assert (fit.dispersion < np.inf) == found
        assert fit.fixed[0] == pytest.approx([0.5, 0.4], abs=0.2)


def test_separation_is_told_and_coefficients_are_sensible() -> None:
    made = pd.DataFrame({"site": np.repeat(["a", "b", "c"], 30), "x": np.tile(np.arange(30.0), 3)})
    table = pb.table(made.assign(y=made["x"] > 14), group="site")
    for pooling in ("complete", "none", "partial"):
        fit = pb.fit_node(table, "y", ["x"], pooling=pooling)
        assert fit.status is pb.Status.SEPARATED
        assert np.isfinite(fit.loglik)
        assert np.abs(fit.coef[:, :, 1]).max() < 5


def test_scores_of_all_kinds_add_up() -> None:
    table = pb.table(rows(8, 200), group="site", kinds={"visits": "count"})
    arcs = [("age", "sex"), ("sex", "visits"), ("visits", "age"), ("arm", "event")][:2]
    dag = pb.Dag(table.names, arcs)
    fits = [pb.fit_node(table, node, dag.parents(node)) for node in dag.nodes]
    assert pb.score(table, dag) == pytest.approx(sum(fit.bic for fit in fits), rel=1e-10)


def test_a_few_numbers_and_a_text_are_levels() -> None:
    """As in the number of children: 0, 1, 2, 3+; but not where a text stands for no number."""
    made = rows(1, 200)[["site"]].assign(children=["0", "1", "2", "3+"] * 50)
    assert pb.table(made, group="site").categories == (("0", "1", "2", "3+"),)
    for text in ("<0.5", "n/a", "NA", "?", "missing"):
        with pytest.raises(pb.DataError, match="mostly numbers, but 50 cells hold"):
            pb.table(made.replace("3+", f" {text}".strip()), group="site", missing="drop")


WRITTEN = {
    "percent": (lambda k: f"{k}%", "percent sign, such as '0%'; write them without it"),
    "percent, decimals": (lambda k: f"{k}.5 %", "numbers with a percent sign"),
    "thousands": (lambda k: f"{1000 * k + 999:,}", "commas, which seem to stand between thousands"),
    "unit": (lambda k: f"{k} mg/dl", "numbers with a unit, such as '0 mg/dl'"),
    "currency": (lambda k: f"${k}.50", "numbers with a unit"),
    "decimal comma": (lambda k: f"{k},5", "decimal comma"),
    "days": (lambda k: f"2021-03-{k + 1:02d}", "holds dates, such as '2021-03-01'; turn them"),
    "days of Europe": (lambda k: f"{k + 1}.3.2021", "holds dates"),
    "times": (lambda k: f"{k + 1}/3/2021 12:00", "holds dates"),
    "limits": (lambda k: "<0.5" if k < 2 else str(k), "make such cells missing, or the limit"),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_numbers_that_are_written_as_texts_have_a_remedy(how: str) -> None:
    """Numbers as read by Python in their place are taken; so is what somebody calls levels."""
    write, words = WRITTEN[how]
    table = pd.DataFrame(
        {"site": np.repeat(list("ab"), 120), "x": [write(k % 24) for k in range(240)]}
    )
    with pytest.raises(pb.DataError) as caught:
        pb.table(table, group="site")
    assert words in str(caught.value)
    assert "kinds={'x': 'discrete'}" in str(caught.value)
    assert pb.table(table, group="site", kinds={"x": "discrete"}).kind("x") == "discrete"
    numbers = table.assign(x=[k % 24 for k in range(240)])
    assert pb.table(numbers, group="site").kind("x") == "continuous"


@pytest.mark.parametrize(
    "write",
    [
        lambda k: f"{k % 6}{'abc'[k % 3]}",  # classes
        lambda k: f"{k % 8}{['th', 'st', 'nd', 'rd'][min(k % 8, 4) % 4]}",
        lambda k: f"{k % 12} to {k % 12 + 1} years",
        lambda k: f"{5 * (k % 12)}-{5 * (k % 12) + 4}",
        lambda k: f"{10 * (k % 4)}%",  # doses
        lambda k: f"T{k % 20}",
    ],
)
def test_levels_that_begin_with_numbers_are_levels(write: Any) -> None:
    table = pd.DataFrame({"site": np.repeat(list("ab"), 120), "x": [write(k) for k in range(240)]})
    assert pb.table(table, group="site").kind("x") == "discrete"


def test_dates_have_a_remedy() -> None:
    table = rows().assign(day=pd.date_range("2021-03-01", periods=60))
    with pytest.raises(pb.DataError, match=r"neither a number nor a level; turn it into a number"):
        pb.table(table, group="site")


@pytest.mark.parametrize(
    ("one", "two"),
    [(("1", "2"), ("1.0", "2")), (("Yes", "No"), ("yes", "no")), (("a", "b"), (" a", "b"))],
)
def test_levels_are_spelled_alike_in_all_files(
    one: tuple[str, str], two: tuple[str, str], tmp_path: Path
) -> None:
    """As names of data sets are; in one file they may be as they like."""
    parts = [
        pd.DataFrame({"site": [site] * 40, "x": np.arange(40.0), "v": list(levels) * 20})
        for site, levels in (("A", one), ("B", two))
    ]
    kinds = {"v": "discrete"}
    for k, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{k}.parquet")
    words = "levels of column 'v' .* differ only by type or spelling"
    sources = ([tmp_path / "0.parquet", tmp_path / "1.parquet"], parts, tmp_path)
    for source in sources:
        with pytest.raises(pb.DataError, match=words):
            pb.table(source, group="site", kinds=kinds)
        with pytest.raises(pb.DataError, match=words):
            pb.stats(source, group="site", kinds=kinds)
    stats = [pb.stats(part, group="site", kinds=kinds) for part in parts]
    with pytest.raises(pb.DataError, match=words):
        stats[0] + stats[1]
    assert (stats[0] + stats[0]).categories == stats[0].categories
    whole = pd.concat(parts)
    assert pb.table(whole, group="site", kinds=kinds).categories[1]
    # What one file has apart, another may have alone.
    assert pb.table([whole, parts[1]], group="site", kinds=kinds).n_rows == 120
