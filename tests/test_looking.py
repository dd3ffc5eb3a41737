"""`look`: what a table holds, as pandas counts it; and what is proposed works when it is pasted."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyreadstat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app
from poolbn.cli.inputs import Scoring
from poolbn.moments import looking
from poolbn.moments.looking import Look
from poolbn.moments.table import gathered
from poolbn.tables import data
from poolbn.tables.causes import Described, reason
from poolbn.tables.sources import Part, Piece, Wanted, remembered

TRIAL = pb.datasets.opt()
N = len(TRIAL)
RNG = np.random.default_rng(5)
# A column that cannot be learned from as it is, or that something is odd about.
ODD: dict[str, Callable[[], Any]] = {
    "id": lambda: range(1, N + 1),
    "visit": lambda: 1,
    "arm": lambda: np.arange(N) % 2,
    "grade": lambda: np.arange(N) % 3 + 1,
    "when": lambda: pd.date_range("2020-01-01", periods=N),
    "note": lambda: [f"woman {k}" for k in range(N)],
    "lab": lambda: ["<0.5" if k % 50 == 0 else str(k % 7 + 0.5) for k in range(N)],
    "share": lambda: [f"{k % 40}%" for k in range(N)],
    "months": lambda: 12 * TRIAL["age"],
    "beds": lambda: TRIAL["clinic"].map({"NY": 150.0, "MN": 250.0, "KY": 310.0, "MS": 420.0}),
    "empty": lambda: np.nan,
    "trial": lambda: "OPT",
    "rare": lambda: ["often", "once", *["often", "seldom", "often"] * N][:N],
    "gone": lambda: TRIAL["age"].where(TRIAL["clinic"] != "KY").astype(float) ** 0.5,
    "old": lambda: TRIAL["age"] > 25,
    "crp": lambda: np.exp(3 * np.random.default_rng(1).standard_normal(N)),
}


def read(source: Any, **options: Any) -> Any:
    usual = {"group": None, "columns": None, "kinds": None, "missing": "error", "inputs": ()}
    rules = pb.Constraints(**options.pop("constraints", {}))
    made = gathered(source, **(usual | options))
    rules.on(made.names)  # names that it has
    return made


def pasted(found: Look, source: Any) -> Any:
    """What `pb.learn` would learn from, were the call that is printed last pasted."""
    line = str(found).splitlines()[-1]
    assert line.startswith("pb.learn(")
    return eval(line.replace("pb.learn", "read"), {"read": read, "data": source})


def agrees(found: Look, made: Any) -> None:
    assert made.n_rows == found.rows
    kinds = dict.fromkeys(made.names, "continuous")
    own = (
        kinds if isinstance(made, pb.GroupStats) else dict(zip(made.names, made.kinds, strict=True))
    )
    assert found.nodes == own
    assert found.findings[len(found.findings) - len(pb.check(made)) :] == tuple(pb.check(made))


def test_the_trial_is_as_pandas_counts_it() -> None:
    found = pb.look(TRIAL, group="clinic")
    assert dict(zip(found.levels, found.n, strict=True)) == TRIAL["clinic"].value_counts().to_dict()
    for column in found.columns:
        cells = TRIAL[column.name]
        missing = cells.isna().groupby(TRIAL["clinic"]).sum()
        assert dict(zip(found.levels, column.missing, strict=True)) == missing.to_dict()
        if pd.api.types.is_numeric_dtype(cells):
            assert (column.kind, column.levels) == ("continuous", ())
            assert (column.low, column.high) == (cells.min(), cells.max())
        else:
            assert column.kind == "discrete"
            assert dict(column.levels) == cells.value_counts().to_dict()
    assert (found.rows, found.options.missing) == (len(TRIAL), "em")
    agrees(found, pasted(found, TRIAL))


def test_continuous_columns_with_gaps_go_to_em() -> None:
    table = pb.datasets.opt(kind="continuous")
    found = pb.look(table, group="clinic")
    assert found.options.missing == "em"
    assert found.rows == len(table)
    agrees(found, pasted(found, table))
    complete = pb.look(table.dropna(), group="clinic")
    assert complete.options.missing == "error"
    agrees(complete, pasted(complete, table.dropna()))


def test_each_odd_column_is_told_of_and_left_out_if_it_must_be() -> None:
    table = TRIAL[["clinic", "age", "bmi", "preterm"]].assign(**{n: v() for n, v in ODD.items()})
    table.insert(0, "Unnamed: 0", range(N))
    found = pb.look(table, group="clinic")
    out = {"id", "visit", "when", "note", "lab", "share", "months", "empty", "trial"}
    assert set(found.options.left_out) == out
    assert found.options.inputs == ("beds", "age", "arm")
    assert found.options.kinds == {"arm": "discrete"}
    fixes = [str(fix) for fix in found.fixes]
    for name in ("when", "note", "lab", "share", "empty", "trial"):
        assert sum(repr(name) in fix for fix in fixes) == 1
    kinds = [each.kind for each in found.findings]
    for kind in ("ROW_NAMES", "CODES", "RARE_LEVEL", "MISSINGNESS"):
        assert pb.FindingKind[kind] in kinds
    whole = pb.look(TRIAL[["clinic", "age"]].assign(crp=ODD["crp"]()), group="clinic")
    assert pb.FindingKind.SKEWED in [each.kind for each in whole.findings]
    agrees(found, pasted(found, table))
    lines = found.table().set_index("column")["use"]
    assert lines["months"] == "left out: a copy of 'age'"
    assert lines["when"] == "left out: date"
    assert lines["beds"] == "input"
    assert (lines["age"], lines["arm"]) == ("input: age", "input: treatment")
    assert "as it is" not in str(found)


@settings(max_examples=8, deadline=None)
@given(st.sets(st.sampled_from(sorted(ODD)), min_size=1), st.booleans())
def test_what_is_proposed_can_be_read(names: set[str], some: bool) -> None:
    """And what `pb.learn` would warn of has been told."""
    base = TRIAL[["clinic", "gestation_days", "birthweight_g"][: 2 + some]]
    table = base.assign(**{name: ODD[name]() for name in sorted(names)})
    found = pb.look(table, group="clinic")
    assert found.rows > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agrees(found, pasted(found, table))


def test_without_a_group_it_says_which_could_be() -> None:
    found = pb.look(TRIAL)
    assert found.likely[0] == "clinic"
    assert found.rows == 0
    assert len(found.columns) == 25
    assert str(found).splitlines()[-1] == "pb.look(data, group='clinic')"
    none = pb.look(pd.DataFrame({"x": RNG.standard_normal(30)}))
    assert "No column could say" in str(none)


def test_data_sets_of_a_dict_and_of_files(tmp_path: Path) -> None:
    sites = {str(k): t[["age", "gestation_days"]] for k, t in TRIAL.groupby("clinic")}
    for name, table in sites.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    files = sorted(tmp_path.glob("*.csv"))
    for source in (sites, files):
        found = pb.look(source)
        assert dict(zip(found.levels, found.n, strict=True)) == {
            k: len(t) for k, t in sites.items()
        }
        agrees(found, pasted(found, source))


def test_columns_and_kinds_stay_as_they_are_given() -> None:
    names = ["age", "preterm", "calculus_5"]
    found = pb.look(TRIAL, group="clinic", columns=names, kinds={"age": "count"})
    assert found.nodes == {"age": "count", "preterm": "discrete", "calculus_5": "continuous"}
    agrees(found, pasted(found, TRIAL))
    words = shlex.split(found.command)
    assert words[words.index("--columns") + 1] == ",".join(names)
    most = [c for c in TRIAL if c not in ("clinic", "bmi", "preterm")]
    words = shlex.split(pb.look(TRIAL, group="clinic", columns=most).command)
    assert words[words.index("--exclude") + 1] == "bmi,preterm"


@pytest.mark.parametrize("beside", ["number", "level"])
def test_columns_of_0_and_1_are_discrete_with_missing_cells_too(beside: str) -> None:
    """Also where they have one value in some data sets, as sex has in schools for girls."""
    table = TRIAL[["clinic", "bmi"]].assign(
        arm=(np.arange(N) % 2).astype(float),
        sex=np.where(TRIAL["clinic"] == "NY", 1, np.arange(N) // 2 % 2),
        beside=np.arange(N) % 7 if beside == "number" else np.where(np.arange(N) % 3, "a", "b"),
    )
    table.loc[np.arange(N) % 5 == 0, "arm"] = np.nan
    found = pb.look(table, group="clinic")
    assert found.options.kinds == {"arm": "discrete", "sex": "discrete"}
    assert (found.rows, found.options.missing) == (N, "em")
    agrees(found, pasted(found, table))


def test_nothing_to_learn_from() -> None:
    table = pd.DataFrame({"site": list("ab") * 20, "note": [f"n{k}" for k in range(40)]})
    found = pb.look(table, group="site")
    assert found.rows == 0
    assert "Nothing can be learned from this table as it is." in str(found)
    assert "'note' has 40 levels" in str(found)


def test_rows_of_no_data_set_are_dropped() -> None:
    table = TRIAL[["clinic", "age"]].assign(clinic=TRIAL["clinic"].where(np.arange(N) > 9))
    found = pb.look(table, group="clinic")
    assert (found.options.missing, found.rows) == ("drop", N - 10)
    agrees(found, pasted(found, table))


# The command


def run(*words: object) -> Any:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


def test_a_level_of_rows_of_no_data_set_alone_is_none() -> None:
    trial = TRIAL[["clinic", "age", "tobacco"]].dropna().astype({"clinic": object})
    rows = len(trial)
    trial.loc[[trial.index[0]], ["clinic", "tobacco"]] = [None, "perhaps"]
    found = pb.look(trial, group="clinic")
    (tobacco,) = (column for column in found.columns if column.name == "tobacco")
    assert [level for level, _ in tobacco.levels] == ["no", "yes"]
    assert sum(times for _, times in tobacco.levels) == rows - 1


def test_the_command_that_is_printed_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the table as it is to the network, pasting what is printed last."""
    monkeypatch.chdir(tmp_path)
    odd = {name: ODD[name]() for name in ("id", "visit", "arm", "when", "lab")}
    table = TRIAL[["clinic", "age", "bmi", "preterm"]].assign(**odd).groupby("clinic").head(150)
    table.to_csv("a trial.csv", index=False)
    first = run("look", "a trial.csv").stdout.splitlines()[-1]
    assert first == "poolbn look 'a trial.csv' --group clinic"
    second = run(*shlex.split(first)[1:]).stdout.splitlines()[-1]
    assert second == (
        "poolbn learn 'a trial.csv' --group clinic --exclude when,lab,id,visit "
        "--kinds arm=discrete --inputs age,arm --missing em -o out"
    )
    done = run(*shlex.split(second)[1:], "--json")
    nodes = {"age": "continuous", "bmi": "continuous", "preterm": "discrete", "arm": "discrete"}
    assert set(json.loads(done.stdout)["nodes"]) == set(nodes)
    record = json.loads(run(*shlex.split(first)[1:], "--json").stdout)
    assert record["command"] == second
    assert record["nodes"] == nodes
    assert set(record["left_out"]) == {"when", "lab", "id", "visit"}
    assert record["rows"] == len(table)
    assert record["data_sets"] == table["clinic"].value_counts().to_dict()
    by_name: Mapping[str, Any] = {column["name"]: column for column in record["columns"]}
    assert by_name["preterm"]["levels"] == table["preterm"].value_counts().to_dict()
    assert run(*shlex.split(first)[1:], "--quiet").output == ""


def test_the_command_leaves_out_what_it_is_told(tmp_path: Path) -> None:
    TRIAL.to_csv(tmp_path / "t.csv", index=False)
    done = run("look", tmp_path / "t.csv", "-g", "clinic", "--exclude", "calculus_5")
    assert "--exclude calculus_5" in done.stdout.splitlines()[-1]
    assert "calculus_5 " not in done.stdout.partition("Next:")[0]


def test_look_needs_rows(tmp_path: Path) -> None:
    table = TRIAL[["clinic", "age"]]
    pb.stats(table, group="clinic").save(tmp_path / "t.stats")
    done = CliRunner().invoke(app, ["look", str(tmp_path / "t.stats")])
    assert done.exit_code == 2
    assert "look needs rows" in done.stderr


def test_classes_by_number_could_be_data_sets() -> None:
    """Of columns with many values, those with the name of a place; and texts before numbers."""
    table = pd.DataFrame(
        {
            "age": np.arange(900) % 30,
            "sex": np.where(np.arange(900) % 2, "m", "f"),
            "arm": np.array(["a", "b", "c"])[np.arange(900) % 3],
            "class": np.arange(900) // 9,
            "y": RNG.standard_normal(900),
        }
    )
    assert pb.look(table).likely == ("class", "arm", "age", "sex")


@pytest.mark.parametrize("kind", ["reader", "lazy", "dask", "jsonl", "sav"])
def test_all_sources_look_the_same(kind: str, tmp_path: Path) -> None:
    table = TRIAL[["clinic", "age", "bmi", "preterm"]]
    own = pb.look(table, group="clinic")
    source: Any = tmp_path / f"t.{kind}"
    if kind == "reader":
        source = pa.Table.from_pandas(table).to_reader(max_chunksize=100)
    elif kind == "lazy":
        source = pl.from_pandas(table).lazy()
    elif kind == "dask":
        source = dd.from_pandas(table, npartitions=3)
    elif kind == "jsonl":
        table.to_json(source, orient="records", lines=True)
    else:
        texts = ["clinic", "preterm"]
        plain = table.astype(dict.fromkeys(texts, object)).fillna(dict.fromkeys(texts, ""))
        pyreadstat.write_sav(plain, str(source))
    found = pb.look(source, group="clinic")
    assert found.columns == own.columns
    assert (found.rows, found.levels, found.n) == (own.rows, own.levels, own.n)


def test_columns_of_lists_are_told_of() -> None:
    table = TRIAL[["clinic", "age"]].assign(tags=[[1, 2]] * N)
    found = pb.look(pa.Table.from_pandas(table), group="clinic")
    assert list(found.options.left_out) == ["tags"]
    assert found.rows == N
    with pytest.raises(pb.DataError, match=r"'tags' cannot name .* levels .* turn them into text"):
        pb.look(table, group="clinic")


def test_columns_that_hardly_vary_in_data_sets_are_inputs_also_beside_levels() -> None:
    rng = np.random.default_rng(1)
    school = np.repeat(np.arange(30), 20)
    second = (school < 2) & (np.arange(600) % 20 < 8)
    made = pd.DataFrame({
        "school": school, "x": rng.normal(size=600), "y": rng.normal(size=600),
        "size": rng.integers(15, 30, 30)[school] - 4.0 * second,
        "sex": np.where(rng.random(600) < 0.5, "f", "m"),
        "type": np.where(school < 12, "urban", "rural"),
    })  # fmt: skip
    found = pb.look(made, group="school")
    assert found.rows == 600
    assert sorted(found.options.inputs) == ["sex", "size", "type"]


@pytest.mark.parametrize(
    ("name", "levels", "why"),
    [
        ("Sex", (), "sex"),
        ("SexParent", (), "sex"),
        ("who", ("Männlich", "weiblich"), "sex"),
        ("persona", ("hombre", "mujer"), "sex"),
        ("Geburtsjahr", (), "birth"),
        ("birth_year", (), "birth"),
        ("birthweight", (), None),
        ("année", (), "time"),
        ("years_of_service", (), None),
        ("Alter", (), "age"),
        ("età", (), "age"),
        ("age_at_death", (), None),
        ("dosage", (), None),
        ("eth", (), "origin"),
        ("drug", ("placebo", "aspirin"), "treatment"),
        ("treatment_failure", (), None),
        ("Behandlung", (), "treatment"),
        ("colour", ("white", "black", "red"), None),
    ],
)
def test_names_and_levels_say_what_is_no_effect(
    name: str, levels: tuple[str, ...], why: str | None
) -> None:
    assert reason(Described(name, levels)) == why


def test_visits_have_an_order_in_time(tmp_path: Path) -> None:
    """What is printed can be pasted, with names that need quotes too."""
    columns = {
        name: RNG.standard_normal(60) for name in ("bp, mm_0", "bp, mm_5", "x_0", "x_5", "y")
    }
    table = pd.DataFrame({"clinic": np.arange(60) % 3, "sex": np.arange(60) // 3 % 2, **columns})
    found = pb.look(table, group="clinic")
    assert found.options.tiers == (("bp, mm_0", "x_0"), ("bp, mm_5", "x_5"))
    assert pb.FindingKind.ORDER_IN_TIME in [each.kind for each in found.findings]
    agrees(found, pasted(found, table))
    table.to_csv(tmp_path / "t.csv", index=False)
    words = shlex.split(pb.look(tmp_path / "t.csv", group="clinic").command)
    typed = Scoring(tiers=words[words.index("--tiers") + 1])
    assert typed.constraints().tiers == found.options.tiers
    run(*words[1:-2])


def test_arcs_into_causes_are_told_of() -> None:
    rng = np.random.default_rng(0)
    clinic = np.arange(900) % 3
    age = rng.normal(50, 10, 900)
    table = pd.DataFrame({"clinic": clinic, "age": age, "bmi": 0.3 * age + rng.normal(size=900)})
    told = "arcs into age, which others hardly cause: learn with it as an input"
    rules = {"required": [("bmi", "age")]}
    assert told in pb.learn(table, group="clinic", constraints=rules).endings()
    assert told not in pb.fit("[bmi][age|bmi]", table, group="clinic").endings()
    net = pb.learn(table, group="clinic", inputs=["age"])
    assert net.dag.arcs == (("age", "bmi"),)
    assert not [line for line in net.endings() if "hardly" in line]


def counting(part: Part, read: list[tuple[str, ...]]) -> Part:
    """The part, which tells what is read of it."""

    def pieces(wanted: Wanted) -> Iterator[Piece]:
        read.append(wanted.columns)
        yield from part.pieces(wanted)

    return replace(part, pieces=pieces)


def test_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = pb.datasets.opt()
    trial.assign(id=range(len(trial))).to_csv(tmp_path / "t.csv", index=False)
    read: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        looking, "remembered", lambda part, most: remembered(counting(part, read), most)
    )
    once = pb.look(tmp_path / "t.csv", group="clinic")
    assert len(read) == 1
    assert once.options.left_out == {"id": "id"}
    monkeypatch.setattr(looking, "MOST_BYTES", 0)
    assert str(pb.look(tmp_path / "t.csv", group="clinic")) == str(once)
    assert len(read) > 2


def test_what_is_remembered_is_what_would_be_read(tmp_path: Path) -> None:
    pb.datasets.opt().to_csv(tmp_path / "t.csv", index=False)
    (part,) = data.as_parts(tmp_path / "t.csv")
    read: list[tuple[str, ...]] = []
    kept = remembered(counting(part, read), 1 << 20)
    levels = frozenset({"tobacco"})
    asked: list[tuple[tuple[str, ...], str | None, frozenset[str], int]] = [
        (("age", "tobacco", "bmi"), "clinic", levels, 1),
        (("bmi", "tobacco"), "clinic", levels, 1),  # some of these
        (("age", "tobacco"), "clinic", levels | {"age"}, 2),  # another kind
        (("age", "bmi"), None, levels, 3),  # without a group
        (("age", "bmi", "education"), None, frozenset({"education"}), 4),  # and more
    ]
    for columns, group, coded, times in asked:
        own = list(part.pieces(Wanted(columns, group, 100, coded)))
        found = list(kept.pieces(Wanted(columns, group, 100, coded)))
        assert len(read) == times
        for one, other in zip(own, found, strict=True):
            assert_array_equal(one.columns, other.columns)
            assert_array_equal(one.keys, other.keys)
            assert (one.labels, one.coded) == (other.labels, other.coded)
