"""What people have: a list of frames, labels of rows beside the table, a row as a dict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import poolbn as pb


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    y = x + rng.normal(size=60)
    return pd.DataFrame({"site": ["a", "b", "c"] * 20, "x": x, "y": y}, index=range(5, 65))


@pytest.fixture(scope="module")
def net(rows: pd.DataFrame) -> pb.Network:
    return pb.learn(rows, group="site", constraints={"required": [("x", "y")]})


@pytest.fixture(scope="module")
def mixed(rows: pd.DataFrame) -> pb.Network:
    made = rows.assign(y=np.where(rows["y"] > 0, "high", "low"))
    return pb.learn(made, group="site", constraints={"required": [("x", "y")]}, pooling="complete")


def same(one: pb.GroupStats, two: pb.GroupStats) -> None:
    assert one.levels == two.levels
    assert np.array_equal(one.n, two.n)
    np.testing.assert_allclose(one.mean, two.mean, rtol=1e-12)
    np.testing.assert_allclose(one.scatter, two.scatter, rtol=1e-12)


def test_a_list_of_frames_is_data_sets_by_number(rows: pd.DataFrame) -> None:
    frames = [own.drop(columns="site") for _, own in rows.groupby("site")]
    numbered = dict(enumerate(frames, 1))
    same(pb.stats(frames), pb.stats(numbered))
    same(pb.stats(tuple(frames)), pb.stats(numbered))
    net, other = pb.learn(frames), pb.learn(numbered)
    assert net.levels == (1, 2, 3)
    assert net.score == other.score
    assert net.loglik(frames) == pytest.approx(net.loglik(numbered))
    boot = pb.bootstrap(frames, replicates=2, pooling="complete")
    assert np.array_equal(
        boot.counts, pb.bootstrap(numbered, replicates=2, pooling="complete").counts
    )


def test_a_list_of_frames_with_the_group_column(rows: pd.DataFrame, net: pb.Network) -> None:
    halves: list[Any] = [rows.iloc[:30], pl.from_pandas(rows.iloc[30:])]
    same(pb.stats(halves, group="site"), pb.stats(rows, group="site"))
    assert net.loglik(halves) == pytest.approx(net.loglik(rows))


LABELS = {
    "Series": lambda rows: rows["site"],
    "categories": lambda rows: rows["site"].astype("category"),
    "array": lambda rows: rows["site"].to_numpy(),
    "text array": lambda rows: np.array(rows["site"].tolist()),
    "list": lambda rows: rows["site"].tolist(),
    "tuple": lambda rows: tuple(rows["site"]),
    "polars": lambda rows: pl.Series("site", rows["site"].tolist()),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_beside_the_table(kind: str, rows: pd.DataFrame) -> None:
    labels = LABELS[kind](rows)
    known, bare = pb.stats(rows, group="site"), rows.drop(columns="site")
    for table in (bare, pl.from_pandas(bare)):
        found = pb.stats(table, group=labels)
        same(found, known)
        assert found.group == ("site" if hasattr(labels, "name") else "data_set")


def test_a_series_hides_the_column_that_it_is(rows: pd.DataFrame) -> None:
    found = pb.learn(rows, group=rows["site"])
    assert found.nodes == ("x", "y")
    assert found.group == "site"
    assert found.score == pb.learn(rows, group="site").score
    coarse = pb.learn(rows, group=rows["site"].replace({"c": "b"}))
    assert coarse.levels == ("a", "b")


def test_labels_go_wherever_a_group_column_goes(rows: pd.DataFrame) -> None:
    labels, bare = rows["site"].to_numpy(), rows.drop(columns="site")
    options: dict[str, Any] = {"replicates": 3, "pooling": "complete"}
    one = pb.bootstrap(bare, group=labels, **options)
    assert np.array_equal(one.counts, pb.bootstrap(rows, group="site", **options).counts)
    short: dict[str, Any] = {"folds": 2, "poolings": ["complete"]}
    two = pb.compare(bare, group=labels, **short)
    assert np.array_equal(two.loglik, pb.compare(rows, group="site", **short).loglik)
    assert pb.table(bare, group=labels).levels == ("a", "b", "c")
    (drawn,) = pb.impute(bare, group=labels, imputations=1)
    assert drawn["data_set"].tolist() == labels.tolist()
    made = bare.assign(arm=np.tile(["old", "new"], 30))
    effects = pb.treatment_effects(made, treatment="arm", group=labels)
    again = pb.treatment_effects(made.assign(F=labels), treatment="arm", group="F")
    assert effects["effect"].tolist() == again["effect"].tolist()


def test_missing_labels_are_missing_data_sets(rows: pd.DataFrame) -> None:
    labels = rows["site"].where(rows.index > 7)
    found = pb.stats(rows.drop(columns="site"), group=labels, missing="drop")
    assert found.n_rows == 57
    with pytest.raises(pb.DataError, match="3 rows"):
        pb.stats(rows.drop(columns="site"), group=labels)


def test_numbers_as_labels_stay_numbers(rows: pd.DataFrame) -> None:
    numbers = np.tile([3, 1, 2], 20)
    assert pb.stats(rows[["x", "y"]], group=numbers).levels == (3, 1, 2)
    taken = rows[["x"]].assign(data_set=rows["y"])
    assert pb.stats(taken, group=numbers).names == ("x", "data_set")


def row_of(rows: pd.DataFrame, kind: str) -> Any:
    row = rows.iloc[3]
    return {
        "dict": row.to_dict(),
        "Series": row,
        "polars": pl.from_pandas(rows).row(3, named=True),
    }[kind]


@pytest.mark.parametrize("kind", ["dict", "Series", "polars"])
def test_one_row_answers_as_a_table_of_it(kind: str, rows: pd.DataFrame, net: pb.Network) -> None:
    row, table = row_of(rows, kind), rows.iloc[[3]]
    label = table.index if kind == "Series" else pd.RangeIndex(1)
    for answer in (
        lambda data: net.predict(data, "y"),
        net.classify,
        lambda data: net.loglik(data, rows=True).to_frame(),
        net.impute,
    ):
        found = answer(row)
        assert found.index.tolist() == label.tolist()
        expected = answer(table).set_axis(found.index)
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert net.loglik(row) == pytest.approx(net.loglik(table))


def test_a_row_may_lack_cells(rows: pd.DataFrame, net: pb.Network, mixed: pb.Network) -> None:
    empty = net.predict({"x": None}, "y")
    assert empty.iloc[0]["mean"] == net.predict({"x": np.nan}, "y").iloc[0]["mean"]
    assert net.impute({"x": 1.0, "y": None, "site": "b"}).iloc[0]["y"] == pytest.approx(
        net.predict({"x": 1.0, "site": "b"}, "y").iloc[0]["mean"]
    )
    told = mixed.predict({"x": 2.5}, "y")
    table = mixed.predict(pd.DataFrame({"x": [2.5]}), "y")
    pd.testing.assert_frame_equal(told, table)
    assert mixed.classify({"x": 2.5, "y": "high"}).shape == (1, 4)


def test_a_dict_of_frames_is_still_data_sets(rows: pd.DataFrame, net: pb.Network) -> None:
    frames = {site: own.drop(columns="site") for site, own in rows.groupby("site")}
    assert net.loglik(frames) == pytest.approx(net.loglik(rows))
