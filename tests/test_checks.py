"""What poolbn says before it learns: each kind of finding, its remedy executed; and silence."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import poolbn as pb
from poolbn import FindingKind as Kind
from poolbn.cli.app import app

ROWS, SITES = 240, 4


def frame(seed: int = 1) -> pd.DataFrame:
    """An ordinary table, of which nothing is to be said."""
    rng = np.random.default_rng(seed)
    site = np.arange(ROWS) % SITES
    age = rng.normal(50, 10, ROWS).round()
    lab = (0.1 * age + site + rng.normal(size=ROWS)).round(1)
    return pd.DataFrame({"age": age, "lab": lab, "y": rng.normal(size=ROWS), "site": site})


RNG = np.random.default_rng(7)
NOISE = RNG.normal(size=ROWS)
ORDER = RNG.permutation(ROWS)


@dataclass(frozen=True)
class Case:
    """A table in which something is odd, and what is said of it."""

    kind: Kind
    change: Callable[[pd.DataFrame], pd.DataFrame]
    columns: Sequence[str]
    says: str
    levels: Sequence[Any] = ()
    missing: str = "error"


def coded(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(lab=rows["lab"].where(ORDER > 5, -999))


def first(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    rows = rows.copy()
    rows.insert(0, name, np.arange(1, ROWS + 1))
    return rows


CASES = [
    Case(Kind.ROW_NAMES, lambda t: first(t, "X"), ["X"], "numbers the rows"),
    Case(Kind.ROW_NAMES, lambda t: first(t, "V1").assign(V1=np.arange(ROWS) // SITES), ["V1"],
         "column 'V1' numbers the rows"),
    Case(Kind.ID, lambda t: t.assign(number=1000 + ORDER), ["number"], "in every row, as ids"),
    Case(Kind.ID, lambda t: t.assign(pat_id=ORDER * 971 + 10**6), ["pat_id"], "as ids are"),
    Case(Kind.ID, lambda t: t.assign(pupilNR=ORDER * 971 + 10**6), ["pupilNR"], "as ids are"),
    Case(Kind.REPEATED_ID, lambda t: t.assign(subject=ORDER // 4), ["subject"], "several rows"),
    Case(Kind.REPEATED_ID, lambda t: t.assign(case_no=ORDER // 4), ["case_no"], "several rows"),
    Case(Kind.MISSING_CODE, coded, ["lab"], "'lab' has 6 cells of -999"),
    Case(Kind.MISSING_CODE, lambda t: t.assign(age=t["age"].where(ORDER > 0, 999)), ["age"],
         "1 cell of 999"),
    Case(Kind.CONSTANT, lambda t: t.assign(visit=3), ["visit"], "the same value in all rows"),
    Case(Kind.CONSTANT_SOMEWHERE, lambda t: t.assign(lab=t["lab"].where(t["site"] != 2, 0.0)),
         ["lab"], "'lab' in 2", [2]),
    Case(Kind.MOSTLY_CONSTANT,
         lambda t: t.assign(lab=t["lab"].where(t["site"] == 2, t["site"] + 0.5)), ["lab"],
         "learned from the others alone: 'lab' in 0, 1 and 3"),
    Case(Kind.SITE_LEVEL, lambda t: t.assign(size=100.5 * t["site"]), ["size"],
         "4 values, not 240"),
    Case(Kind.BINARY, lambda t: t.assign(arm=ORDER % 2, sex=ORDER // 2 % 2), ["arm", "sex"],
         "only the values 0 and 1"),
    Case(Kind.CODES, lambda t: t.assign(grade=1 + ORDER % 3), ["grade"], "few different whole"),
    Case(Kind.COPIES, lambda t: t.assign(inches=t["lab"] / 2.54), ["lab", "inches"],
         "'lab' and 'inches' are the same"),
    Case(Kind.COLLINEAR, lambda t: t.assign(total=t["age"] - 2 * t["lab"]), ["total"],
         "'total' of 'age' and 'lab'"),
    Case(Kind.SKEWED, lambda t: t.assign(crp=np.exp(1.5 * t["y"] + NOISE)),
         ["crp"], "strongly skewed, so that few rows decide: 'crp' ("),
    Case(Kind.UNEVEN_LOSS,
         lambda t: t.assign(lab=t["lab"].where((t["site"] != 1) | (t["age"] > 50))), [],
         "site 1 lost", [1, 0], "drop"),
]  # fmt: skip
ids = [f"{case.kind.value} {k}" for k, case in enumerate(CASES)]


def read(table: pd.DataFrame, **options: Any) -> pb.GroupStats:
    return pb.stats(table, **{"group": "site", "missing": "error", **options})


@given(st.integers(0, 2**32 - 1))
def test_nothing_is_said_of_an_ordinary_table(seed: int) -> None:
    assert pb.check(read(frame(seed))) == []


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_nothing_is_said_of_a_simulated_network(seed: int, heterogeneous: bool) -> None:
    dag = pb.random_dag(6, 2, seed=seed)
    true = pb.random_network(dag, 4, seed=seed, heterogeneous=heterogeneous)
    assert pb.check(pb.stats(pb.random_table(true, 40, seed=seed), group="F")) == []


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_what_is_odd_is_found_and_nothing_else(case: Case) -> None:
    (found,) = pb.check(read(case.change(frame()), missing=case.missing))
    assert found.kind is case.kind
    assert list(found.columns) == list(case.columns)
    assert list(found.levels) == list(case.levels)
    assert case.says in str(found)
    assert "\n" not in str(found)


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_the_remedy_works_when_pasted(case: Case) -> None:
    table = case.change(frame())
    (found,) = pb.check(read(table, missing=case.missing))
    remedy = str(found).partition("; ")[2]
    if case.kind is Kind.UNEVEN_LOSS:
        left = eval(f"pb.check(read(table, {re.findall('missing=[^ ]+', remedy)[0]}))")
        assert [found.kind for found in left] == [Kind.MISSINGNESS]
    elif case.kind is Kind.SKEWED:
        exec(re.findall(r"frame.*\)", remedy)[0], {"frame": table, "numpy": np})
        assert pb.check(read(table)) == []
    elif "frame.loc" in remedy:
        exec(re.findall(r"frame\.loc.*\)", remedy)[0], {"frame": table})
        left = pb.check(read(table, missing="em"))
        assert [found.kind for found in left] == []
    elif "frame.replace" in remedy:
        scope = {"frame": table}
        exec(re.findall(r"frame = .*\)", remedy)[0], scope)
        assert pb.check(read(scope["frame"], missing="drop")) == []
    elif "kinds=" in remedy:
        said = re.findall(r"kinds=\{.*?\}", remedy)[0]
        assert eval(f"pb.check(pb.table(table, group='site', {said}))") == []
    else:
        said = re.findall("(?:columns|inputs)=.*", remedy)[0]
        assert eval(f"pb.check(read(table, {said}))") == []


LEVELS = np.array(["a", "b", "c"])[ORDER % 3]
WITH_LEVELS = [
    Case(Kind.SITE_LEVEL, lambda t: t.assign(size=100.5 * t["site"],
         type=np.where(t["site"] < 2, "urban", "rural")), ["size", "type"], "4 values, not 240"),
    Case(Kind.DERIVED, lambda t: t.assign(grade=LEVELS, low=LEVELS == "a"), ["low"],
         "'low' from 'grade'"),
    Case(Kind.DERIVED, lambda t: t.assign(old=np.where(t["age"] > 55, "yes", "no")), ["old"],
         "'old' from 'age'"),
    Case(Kind.DERIVED, lambda t: t.assign(old=np.where(t["age"] > 55, "yes", "no")).assign(
         age=t["age"].where(ORDER > 20), y=t["y"].where(ORDER < 200)), ["old"],
         "'old' from 'age'", missing="em"),
]  # fmt: skip


@pytest.mark.parametrize("case", WITH_LEVELS, ids=lambda case: case.says)
def test_what_is_odd_about_levels_is_found_and_has_a_remedy(case: Case) -> None:
    table = case.change(frame())
    reading = {"group": "site", "missing": case.missing}
    (found,) = pb.check(pb.table(table, **reading))
    assert (found.kind, list(found.columns)) == (case.kind, list(case.columns))
    assert case.says in str(found)
    (said,) = re.findall("(?:columns|inputs)=.*", str(found))
    assert eval(f"pb.check(pb.table(table, **reading, {said}))") == []


def test_counts_of_levels_tell_the_same_as_rows() -> None:
    table = frame().assign(grade=LEVELS, low=LEVELS == "a", place=frame()["site"] // 2 == 1)
    kinds = {"place": "discrete", "low": "discrete"}
    rows = pb.check(pb.table(table, group="site", kinds=kinds))
    counts = pb.check(pb.stats(table, group="site", kinds=kinds))
    assert [f.kind for f in rows] == [Kind.SITE_LEVEL, Kind.DERIVED]
    assert [f for f in counts if f.kind is not Kind.NEEDS_ROWS] == rows
    levels = table[["site", "grade", "place"]]
    only = pb.check(pb.stats(levels, group="site", kinds={"place": "discrete"}))
    assert [f.columns for f in only] == [("place",)]


@given(st.integers(0, 2**32 - 1))
def test_nothing_is_said_of_ordinary_levels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arm = np.where(rng.random(ROWS) < 0.5, "new", "old")
    event = np.where(rng.random(ROWS) < 0.05, "yes", "no")
    made = frame(seed).assign(arm=arm, event=event)
    kinds = {f.kind for f in pb.check(pb.table(made, group="site"))}
    assert kinds <= {Kind.RARE_LEVEL}


def test_remedies_of_wide_tables_are_short() -> None:
    table = frame().assign(
        **{f"x{k}": RNG.normal(size=ROWS) for k in range(30)}, arm=ORDER % 2, one=1
    )
    stats = read(table)
    constant, binary = pb.check(stats)
    assert max(len(str(constant)), len(str(binary))) < 250
    (said,) = re.findall(r"stats\.select\(.*\)", str(constant))
    assert "one" not in eval(said, {"stats": stats}).names
    assert str(binary).endswith("kinds={'arm': 'discrete'}")


@pytest.mark.parametrize("name", ["uric_acid", "lipid", "NO", "piano", "number_of_steps"])
def test_measurements_are_no_ids_for_their_names(name: str) -> None:
    assert pb.check(read(frame().assign(**{name: ORDER // 4}))) == []


def test_copies_of_columns_that_describe_data_sets() -> None:
    made = frame().assign(size=3.0 * frame()["site"] ** 2, m2=0.09 * frame()["site"] ** 2)
    found = pb.check(read(made, inputs=["size", "m2"]))
    assert [(each.kind, each.columns) for each in found] == [(Kind.COPIES, ("size", "m2"))]
    few = pb.check(read(made[made["site"] < 2], inputs=["size", "m2"]))
    assert few == []  # two data sets: all such columns are the same but for unit and origin


# Numbers that are no results


def test_tables_have_no_number_beyond_sense() -> None:
    options = {"folds": 2, "poolings": ["complete", "none"]}
    found = pb.compare(frame(), group="site", **options)
    wild = replace(found, known=np.array([[1.00099921476597e14] * 3, [0.5] * 3]))
    assert "beyond all sense" not in found.verdict
    assert "'complete' has numbers beyond all sense; tables have - for them." in wild.verdict
    for shown in (repr(wild), wild._repr_html_()):
        assert not re.search(r"e[+]1\d|\d{12}", shown)
    worse = replace(found, loglik=np.array([[-8.6e25, -1.0], [-9.0, -9.0]]))
    assert worse.headline == "Only no pooling has a fit in all folds."
    assert "e+" not in repr(worse)


def test_a_fit_that_did_not_converge_is_named() -> None:
    net = pb.learn(frame(), group="site", pooling="complete")
    fit = replace(net.fits["lab"], status=pb.Status.NOT_CONVERGED)
    bad = replace(net, fits={**net.fits, "lab": fit}, score=-np.inf)
    assert bad.endings()[0] == "did not converge; do not use: lab"
    assert "score - (" in str(bad)
    assert "did not converge; do not use: lab" in str(bad)


# Warnings


@pytest.mark.parametrize("learn", [
    lambda s, t: pb.learn(s),
    lambda s, t: pb.compare(t, group="site", folds=2, poolings=["complete", "none"]),
    lambda s, t: pb.bootstrap(t, group="site", replicates=1),
])  # fmt: skip
def test_learning_warns_of_each_kind_once(learn: Callable[..., Any]) -> None:
    table = frame().assign(visit=3, wave=1, arm=ORDER % 2)
    stats = read(table)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        learn(stats, table)
    found = [w.message.finding for w in told if isinstance(w.message, pb.DataWarning)]
    assert [each.kind for each in found] == [Kind.CONSTANT, Kind.BINARY]
    assert found[0].columns == ("visit", "wave")
    assert all(issubclass(w.category, UserWarning) and w.filename == __file__ for w in told)


def test_the_same_statistics_are_told_of_once() -> None:
    stats = read(frame().assign(visit=3))
    with pytest.warns(pb.DataWarning, match="'visit'"):
        pb.learn(stats)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pb.learn(stats, pooling="complete")


def test_a_program_can_refuse_such_a_table() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", pb.DataWarning)
        with pytest.raises(pb.DataWarning) as caught:
            pb.learn(frame().assign(copy=frame()["lab"]), group="site")
    assert caught.value.finding.kind is Kind.COPIES


def test_less_is_known_of_statistics_from_files_and_by_hand(tmp_path: Path) -> None:
    table = coded(frame()).assign(arm=ORDER % 2, grade=ORDER % 3, number=ORDER, visit=1)
    stats = read(table)
    kinds = [each.kind for each in pb.check(stats)]
    assert kinds == [Kind.ID, Kind.MISSING_CODE, Kind.CONSTANT, Kind.BINARY, Kind.CODES]
    stats.save(tmp_path / "a.stats")
    again = [each.kind for each in pb.check(pb.GroupStats.load(tmp_path / "a.stats"))]
    assert again == [Kind.ID, Kind.CONSTANT, Kind.BINARY, Kind.CODES]
    bare = pb.GroupStats(
        stats.names, stats.levels, stats.n, stats.mean, stats.scatter, stats.dropped
    )
    assert [each.kind for each in pb.check(bare)] == [Kind.CONSTANT]


def run(*arguments: object) -> Any:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done


def test_the_command_line_tells_of_each_in_a_line(tmp_path: Path) -> None:
    frame().assign(visit=3, arm=ORDER % 2).to_csv(tmp_path / "t.csv", index=False)
    options = ("learn", tmp_path / "t.csv", "-g", "site", "--bootstrap", 2)
    done = run(*options)
    told = [line for line in done.stderr.splitlines() if "warning" in line.lower()]
    assert told == [
        "warning: column 'visit' has the same value in all rows; leave it out with --exclude visit",
        "warning: column 'arm' has only the values 0 and 1, and is modelled as continuous; if "
        "these are levels, use --kinds arm=discrete",
    ]
    assert run(*options, "--quiet").stderr == ""
    found = json.loads(run(*options, "--json").stdout)["warnings"]
    assert [each["kind"] for each in found] == ["constant column", "0 and 1"]
    assert "0 and 1" not in run(*options, "--inputs", "arm").stderr


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_the_report_and_print_name_what_is_odd(tmp_path: Path) -> None:
    table = frame().assign(visit=3)
    net = pb.learn(table, group="site")
    assert "  no residual variance: visit" in str(net).splitlines()
    assert "no residual variance: visit" in net._repr_html_()
    pb.report(net, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Before you trust this" in page
    assert "Column &#39;visit&#39; has the same value in all rows" in page


def test_one_small_data_set_of_many_that_is_constant_is_chance() -> None:
    rng = np.random.default_rng(1)
    schools = np.repeat(np.arange(40), 8)
    rows = pd.DataFrame({"site": schools, "a": rng.normal(size=320), "b": rng.normal(size=320)})
    rows.loc[rows["site"] == 3, "a"] = 0.0
    assert pb.check(read(rows)) == []
    rows.loc[rows["site"] < 4, "a"] = 0.0
    (found,) = pb.check(read(rows))
    assert found.levels == (0, 1, 2, 3)
