"""Units inside data sets: how they are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import poolbn as pb
from poolbn.cli.gathering import grouping
from poolbn.moments.reading import accumulate
from poolbn.tables.data import prepare


def visits(seed: int = 0, clinics: int = 3, patients: int = 8) -> pd.DataFrame:
    """Visits of patients, whose names are their own, in clinics."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"c{j}", 100 * j + i)
        for j in range(clinics)
        for i in range(patients)
        for _ in range(rng.integers(1, 5))
    ]
    frame = pd.DataFrame(rows, columns=["clinic", "patient"])
    x = rng.normal(size=len(frame))
    return frame.assign(x=x, y=x + rng.normal(size=len(frame)))


def test_a_list_of_two_columns_names_data_sets_and_units() -> None:
    frame = visits()
    table = pb.table(frame, group=["clinic", "patient"])
    assert (table.names, table.group, table.unit) == (("x", "y"), "clinic", "patient")
    assert table.units is not None
    named = frame.sort_values("clinic", kind="stable")["patient"].to_numpy()
    for unit in range(table.units.max() + 1):
        assert len(set(named[table.units == unit])) == 1
    assert len(set(table.units)) == frame["patient"].nunique()
    plain = pb.table(frame.drop(columns="patient"), group="clinic")
    assert plain.units is None
    assert plain.unit is None
    assert (plain.values == table.values).all()


def test_units_do_not_depend_on_batches_or_the_order_of_rows(tmp_path: Path) -> None:
    frame = visits().sample(frac=1.0, random_state=1)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    whole = pb.table(frame, group=("clinic", "patient"))
    read = pb.table(str(tmp_path / "visits.csv"), group=["clinic", "patient"])
    assert whole.units is not None
    assert read.units is not None
    assert (whole.units == read.units).all()
    reading = prepare(frame, group=["clinic", "patient"], columns=None, missing="error")
    batches = list(reading.rows(batch_rows=5).batches)
    names = np.concatenate([batch.units for batch in batches if batch.units is not None])
    assert len(batches) > 5
    assert (pd.factorize(frame["patient"])[0] == pd.factorize(names)[0]).all()


def test_labels_of_rows_stay_labels() -> None:
    frame = visits().drop(columns=["clinic", "patient"])
    labels = ["a", "b"] * (len(frame) // 2) + ["a"] * (len(frame) % 2)
    table = pb.table(frame, group=labels)
    assert table.units is None
    assert set(table.levels) == {"a", "b"}


def test_a_unit_that_is_in_two_data_sets_is_two() -> None:
    frame = visits().assign(patient=lambda t: t["patient"] % 100)
    with pytest.warns(pb.DataWarning, match="8 names of 'patient' occur in more than one data set"):
        table = pb.table(frame, group=["clinic", "patient"])
    assert table.units is not None
    assert len(set(table.units)) == 24


def test_parts_of_a_table_keep_their_units() -> None:
    table = pb.table(visits(), group=["clinic", "patient"])
    some = table.data_sets([1, 1], ["p", "q"])
    assert some.units is not None
    assert table.units is not None
    own = table.units[table.offsets[1] : table.offsets[2]]
    n = len(set(own))
    assert (some.units == np.concatenate([own - own[0], own - own[0] + n])).all()
    assert table.select(["y"]).units is table.units


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (["clinic", "patiant"], "no column 'patiant'; did you mean 'patient'?"),
        (["clinik", "patient"], "no column 'clinik'; did you mean 'clinic'?"),
        (["patient", "patient"], "group names column 'patient' twice"),
        (["a", "b"], "group has 2 labels, and the table"),
    ],
)
def test_wrong_groups_are_told(group: list[str], words: str) -> None:
    with pytest.raises(pb.DataError, match=words.replace("?", "\\?")):
        pb.table(visits(), group=group)


def test_what_could_be_labels_or_columns_is_an_error() -> None:
    frame = visits()[:2]
    with pytest.raises(pb.DataError, match="for labels give a Series"):
        pb.table(frame, group=["clinic", "patient"])


def test_a_unit_is_not_a_column_of_the_network() -> None:
    with pytest.raises(pb.DataError, match="'patient' is both group and in columns"):
        pb.table(visits(), group=["clinic", "patient"], columns=["x", "patient"])


def test_rows_without_a_unit_are_dropped_or_told() -> None:
    frame = visits()
    frame["patient"] = frame["patient"].astype(object)
    frame.loc[[1, 4], "patient"] = None
    with pytest.raises(pb.DataError, match=r"2 rows have a missing value.*in column 'patient'"):
        pb.table(frame, group=["clinic", "patient"])
    table = pb.table(frame, group=["clinic", "patient"], missing="drop")
    assert table.n_rows == len(frame) - 2
    assert table.dropped.sum() == 2


def test_each_file_may_be_a_data_set_with_units(tmp_path: Path) -> None:
    frame = visits()
    for clinic, own in frame.groupby("clinic"):
        own.drop(columns="clinic").to_csv(tmp_path / f"{clinic}.csv", index=False)
    files = sorted(map(str, tmp_path.glob("*.csv")))
    table = pb.table(files, group=[None, "patient"])
    whole = pb.table(frame, group=["clinic", "patient"])
    assert table.units is not None
    assert whole.units is not None
    assert table.levels == whole.levels
    assert (table.units == whole.units).all()


def test_the_command_line_writes_a_slash(tmp_path: Path) -> None:
    path = str(tmp_path / "visits.csv")
    visits().to_csv(path, index=False)
    assert grouping([path], "clinic") == "clinic"
    assert grouping([path], "clinic/patient") == ["clinic", "patient"]
    assert grouping([path], "/patient") == [None, "patient"]
    assert grouping([path], "clinic/patiant") == ["clinic", "patiant"]
    both = visits().assign(**{"clinic/patient": 1})
    both.to_csv(path, index=False)
    with pytest.raises(pb.OptionError, match="rename one"):
        grouping([path], "clinic/patient")
    both.drop(columns="patient").to_csv(path, index=False)
    assert grouping([path], "clinic/patient") == "clinic/patient"


def test_what_does_not_use_units_says_so() -> None:
    with pytest.raises(pb.DataError, match=r"pb\.impute takes rows for independent"):
        pb.impute(visits(), group=["clinic", "patient"])


@pytest.mark.parametrize("ids", ["number", "text", "category", "large"])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_sums_of_units_are_those_of_their_rows(ids: str, width: int) -> None:
    """Batches that cut through units, in any order of rows, against sums by hand."""
    rng = np.random.default_rng(7)
    clinic, patient = np.divmod(rng.integers(0, 40, 150), 10)
    values = 1e3 + rng.normal(size=(150, width))
    frame = pd.DataFrame(values, columns=[f"x{k}" for k in range(width)])
    names = pd.Series(10 * clinic + patient)
    kinds = {"text": names.map("p{}".format), "large": 10**9 + names}
    frame["clinic"] = clinic
    frame["patient"] = kinds.get(ids, names.astype("category") if ids == "category" else names)
    reading = prepare(frame, group=["clinic", "patient"], columns=None, missing="error")
    units = accumulate(reading.rows(batch_rows=11)).units
    assert units is not None
    means = pd.DataFrame(values).groupby(clinic).transform("mean").to_numpy()
    levels = list(dict.fromkeys(clinic.tolist()))
    expected: dict[tuple[int, float], list[np.ndarray]] = {}
    for name in set(names):
        own = np.flatnonzero(names == name)
        key = levels.index(clinic[own[0]]), float(len(own))
        expected.setdefault(key, []).append((values - means)[own].sum(axis=0))
    assert sorted(expected) == sorted(zip(units.data_set.tolist(), units.size, strict=True))
    for c, key in enumerate(zip(units.data_set.tolist(), units.size.tolist(), strict=True)):
        sums = np.array(expected[key])
        assert units.count[c] == len(sums)
        np.testing.assert_allclose(units.sums[c], sums.sum(axis=0), rtol=0, atol=1e-10)
        np.testing.assert_allclose(units.squares[c], sums.T @ sums, rtol=0, atol=1e-9)


def test_the_same_text_is_the_same_unit_in_several_frames() -> None:
    frame = visits().assign(patient=lambda t: t["patient"].map("p{}".format))
    parts = {
        "one": frame.iloc[::2].drop(columns="clinic"),
        "two": frame.iloc[1::2].drop(columns="clinic"),
    }
    with pytest.warns(pb.DataWarning, match="occur in more than one data set"):
        table = pb.table(parts, group=[None, "patient"])
    own = [part["patient"].nunique() for part in parts.values()]
    assert table.units is not None
    assert len(set(table.units)) == sum(own)
    assert table.units[: table.offsets[1]].max() == own[0] - 1
