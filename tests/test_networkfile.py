"""A file of a network that somebody changed: a warning, or an error that says what is wrong."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app

POOLINGS = ("complete", "none", "partial", pb.Partial(residuals="pooled"))


@cache
def written(pooling: Any = "partial") -> dict[str, Any]:
    trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
    start = [("age", "bmi")]
    return json.loads(pb.learn(trial, group="clinic", pooling=pooling, start=start).to_json())


def load(content: dict[str, Any] | str, folder: Path) -> pb.Network:
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / "net.json").write_text(text, encoding="utf-8")
    return pb.load(folder / "net.json")


@pytest.mark.parametrize("pooling", POOLINGS, ids=str)
def test_another_layout_of_the_same_is_the_same(pooling: Any, tmp_path: Path) -> None:
    content = written(pooling)
    assert load(content, tmp_path).to_json() == json.dumps(content, indent=1)
    load(json.dumps(content, indent=4, sort_keys=True), tmp_path)  # warnings are errors


def test_a_file_that_was_changed_loads_with_a_warning(tmp_path: Path) -> None:
    content = copy.deepcopy(written())
    content["fits"]["bmi"]["detail"] = "changed by hand"
    with pytest.warns(pb.FileWarning, match=r"net\.json' was changed .* checksum .* anew") as told:
        net = load(content, tmp_path)
    assert net.fits["bmi"].detail == "changed by hand"
    assert told[0].filename == __file__
    del content["checksum"]  # as in older files
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(content, tmp_path)


def test_the_command_line_warns_in_one_line(tmp_path: Path) -> None:
    content = written() | {"search": "by hand"}
    (tmp_path / "net.json").write_text(json.dumps(content), encoding="utf-8")
    pb.datasets.opt()[["clinic", "age", "bmi"]].dropna().to_csv(tmp_path / "t.csv", index=False)
    files = [str(tmp_path / name) for name in ("net.json", "t.csv")]
    done = CliRunner().invoke(app, ["predict", *files, "--target", "bmi"])
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith(f"warning: {files[0]!r} was changed after poolbn wrote it")


def put(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = to

    return change


BMI = ("fits", "bmi")
WRONG = [
    (put(*BMI, "counts", to=[-2, 1, 0]), "a count is not a whole number of 'bmi'"),
    (put(*BMI, "counts", 0, to=10**30), "a count is not"),
    (put(*BMI, "counts", to=[1]), "counts of 'bmi'"),
    (put(*BMI, "n_rows", to=-1), "a count"),
    (put(*BMI, "n_rows", to=True), "a count"),
    (put(*BMI, "loglik", to="nan"), "no loglik of 'bmi'"),
    (put(*BMI, "loglik", to=10**400), "too large"),
    (put(*BMI, "sigma2", 0, to="1.0"), "sigma2 of 'bmi' has something else than finite numbers"),
    (put(*BMI, "sigma2", 0, to=float("inf")), "sigma2 of 'bmi'"),
    (put(*BMI, "coef", 0, 0, to=None), "coef of 'bmi'"),
    (put(*BMI, "coef", to=10**30), "coef of 'bmi' is not a list"),
    (put(*BMI, "unbiased", to="yes"), "true or false"),
    (put(*BMI, "detail", to=[61.5]), "detail of 'bmi' is not a text"),
    (put(*BMI, "status", to="fine"), "'fine'"),
    (put(*BMI, "left_out", to=[["NY"]]), r"\['NY'\]"),
    (put(*BMI, "left_out", to=["XX"]), "left out"),
    (put(*BMI, "fixed", to=None), "fixed and fixed_cov"),
    (put(*BMI, "residual_shape", to=1.0), "residual_scale is missing"),
    (put(*BMI, "intervals", "rows", to=[1]), "unknown 'rows'"),
    (put(*BMI, "intervals", "se", 0, 0, to="wide"), "se of 'bmi' is not a number"),
    (put(*BMI, "pooling", to={"kind": "Given", "source": "rumour"}), "'rumour'"),
    (put(*BMI, "pooling", "kind", to="Guessed"), "pooling of 'bmi'"),
    (put(*BMI, "pooling", "colour", to="red"), "unknown 'colour'"),
    (put(*BMI, to=[]), "'bmi' is not an object"),
    (put(*BMI, "notes", to=[61.5, 25]), "node 'bmi' has unknown 'notes'"),
    (put("notes", to=[61.5, 25]), "the network has unknown 'notes'"),
    (put("nodes", to={"age": [61.5], "bmi": []}), "nodes is not a list"),
    (put("levels", to={"NY": 1, "MN": 2, "KY": 3, "MS": 4}), "levels is not a list"),
    (put("levels", 0, to=None), "NoneType"),
    (put("rows", 0, to=10**30), "rows of the data sets"),
    (put("rows", 0, to=-1), "rows of the data sets"),
    (put("adapted", to=["NY", "NY"]), "adapted"),
    (put(*BMI, "n_rows", to=0), "no row in n_rows of 'bmi'"),
    (put(*BMI, "sigma2", to=[0, 0, 0, 0]), "no positive sigma2 of 'bmi'"),
    (put(*BMI, "sigma2", 0, to=1e308), "sigma2 of 'bmi' has a number beyond 1e.300"),
    (put(*BMI, "coef", 0, 0, to=-1e305), "coef of 'bmi' has a number beyond"),
    (put(*BMI, "squares", 0, to=-1.0), "squares of 'bmi' has a negative number"),
    (put(*BMI, "fixed_cov", 0, 0, to=-1.0), "fixed_cov of 'bmi' has a negative variance"),
    (put(*BMI, "random_cov", 0, 1, to=0.5), "random_cov of 'bmi' is not a covariance"),
    (put(*BMI, "intervals", "df", to=[[[], []]]), "df of the intervals of 'bmi' .* shape"),
    (put(*BMI, "intervals", "se", 0, 0, to=-1.0), "se of the intervals of 'bmi' .* negative"),
    (put("arcs", to=[["age", "bmi"], ["age", "bmi"]]), "an arc is there twice"),
    (put("rows", to=[0, 0, 0, 0]), "rows of the data sets are 0"),
    (put("score", to="nan"), "score"),
    (put("score", to=True), "score is not a number"),
    (put("score_kind", to=3), "score_kind is not a text"),
    (put("search", to=None), "search is not a text"),
    (put("trace", to=[{"kind": "add"}]), "lacks 'arc', 'fits', 'gain', 'spared'"),
    (put("trace", to=[[1]]), "not an object"),
    (
        put("trace", to=[{"kind": "", "arc": ["age", "x"], "gain": 1, "fits": 0, "spared": 0}]),
        "no arc",
    ),
]


@pytest.mark.parametrize(("change", "words"), WRONG, ids=[words for _, words in WRONG])
def test_every_field_is_checked(
    change: Callable[[dict[str, Any]], None], words: str, tmp_path: Path
) -> None:
    content = copy.deepcopy(written())
    change(content)
    with pytest.raises(pb.FileError, match=rf"net\.json' does not hold .*{words}.*; copy it"):
        load(content, tmp_path)


@cache
def mixed() -> dict[str, Any]:
    trial = pb.datasets.opt()[["clinic", "age", "preterm"]].dropna()
    rules = pb.Constraints(required=[("age", "preterm")])
    return json.loads(pb.learn(trial, group="clinic", constraints=rules).to_json())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("coef_cov", 0, 0, 0, to=-1.0), "coef_cov of 'preterm' has a negative variance"),
        (put("coef_cov", 1, 0, 1, to=99.0), "coef_cov of 'preterm' is not a covariance matrix"),
        (put("random_cov", to=[[1.0, 2.0], [2.0, 1.0]]), "random_cov of 'preterm' is not a cov"),
        (put("fixed_cov", 0, 0, to=-1.0), "fixed_cov of 'preterm' has a negative variance"),
        (put("n_rows", to=0), "no row in n_rows of 'preterm'"),
    ],
)
def test_regressions_are_checked(
    change: Callable[[dict[str, Any]], None], words: str, tmp_path: Path
) -> None:
    content = copy.deepcopy(mixed())
    assert content["fits"]["preterm"]["model"] == "regression"
    change(content["fits"]["preterm"])
    with pytest.raises(pb.FileError, match=words):
        load(content, tmp_path)


def test_a_key_is_there_once(tmp_path: Path) -> None:
    text = json.dumps(written())
    for old, new in (('"nodes"', '"nodes": [61.5], "nodes"'), ('"coef"', '"coef": 1, "coef"')):
        with pytest.raises(pb.FileError, match=f"{old[1:-1]}' is there twice; copy it"):
            load(text.replace(old, new, 1), tmp_path)


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    for deep in ("[" * 200_000, '{"a":' * 200_000):
        with pytest.raises(pb.FileError, match="nested too deep"):
            load(deep, tmp_path)


def test_what_cannot_be_loaded_is_not_saved(tmp_path: Path) -> None:
    trial = pb.datasets.opt()[["clinic", "age"]].dropna()
    net = pb.learn(trial, group="clinic", pooling="complete")
    net.fits["age"].coef.flags.writeable = True
    net.fits["age"].coef[0] = np.inf
    with pytest.raises(pb.FileError, match="cannot be saved: coef of 'age'"):
        net.save(tmp_path / "net.json")
    assert list(tmp_path.iterdir()) == []


def places(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = content if isinstance(content, dict) else range(min(len(content), 2))
    found = [(*path, key) for key in keys]
    inner = [p for p in found if isinstance(content[p[-1]], dict | list)]
    return found + [place for p in inner for place in places(content[p[-1]], p)]


@cache
def adapted() -> dict[str, Any]:
    trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
    net = pb.learn(trial, group="clinic", pooling=POOLINGS[-1])
    rows = trial[trial["clinic"] == "NY"].head(30)
    return json.loads(net.adapt(rows, "more").adapt(name="new").to_json())


FILES = [adapted, *(partial(written, pooling) for pooling in POOLINGS)]
VALUES = st.sampled_from(
    [None, True, -1, 0.5, 10**30, 10**400, 1e308, "x", "nan", "", [], {}, [[]], [None], {"a": 1}]
)


@pytest.mark.filterwarnings("ignore::poolbn.FileWarning")
@given(data=st.data(), value=VALUES, file=st.sampled_from(FILES))
def test_any_value_anywhere_is_an_error_of_poolbn(
    data: st.DataObject, value: Any, file: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Or harmless."""
    content = copy.deepcopy(file())
    put(*data.draw(st.sampled_from(places(content))), to=value)(content)
    try:
        net = load(content, tmp_path_factory.mktemp("any"))
    except pb.FileError:
        return
    net.effects()
    net.to_json()


def test_columns_that_describe_data_sets_are_saved(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(12), 10)
    size = rng.normal(size=12)[site]
    x = rng.normal(size=120)
    rows = pd.DataFrame({"site": site, "size": size, "x": x, "y": size + x + rng.normal(size=120)})
    with pytest.warns(pb.DataWarning, match="describes"):
        net = pb.learn(rows, group="site")
    assert not net.fits["size"].sigma2.any()
    net.save(tmp_path / "net.json")
    pd.testing.assert_frame_equal(pb.load(tmp_path / "net.json").effects(), net.effects())


def test_everything_is_told_of_columns_that_describe_data_sets(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    site = np.repeat(np.arange(12), 10)
    size, staff = rng.normal(size=(2, 12))[:, site]
    rows = pd.DataFrame(
        {"site": site, "size": size, "staff": staff + size, "y": size + rng.normal(size=120)}
    )
    for kinds in ({}, {"happy": "discrete"}):
        table = rows.assign(happy=rows["y"] + rng.normal(size=120) > 0) if kinds else rows
        arcs = [("size", "staff"), ("size", "y")]
        with pytest.warns(pb.DataWarning, match="describe"):
            net = pb.learn(
                table, group="site", start=arcs, search=pb.HillClimb(max_iter=0), kinds=kinds
            )
        assert len(net.effects()) == len(net.total_effects("size", "y")) + 1
        assert set(net.within_between()["parent"]) == {"size"}
        assert len(net.adapt(None, "new").effects(by="data set")) == 26
        pb.report(net, tmp_path / "report.html", data=table)
