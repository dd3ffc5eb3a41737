"""Reports hold no row and nothing from which one follows, unless a user wants them to."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import poolbn as pb
from poolbn.assess.residuals import FEWEST, Residuals, counted_quantiles, node_residuals
from poolbn.cli.app import app
from poolbn.page.disclosure import disclosed

ARCS = [("age", "bmi"), ("gestation_days", "birthweight_g"), ("bmi", "birthweight_g")]
NODES = ["age", "bmi", "gestation_days", "birthweight_g"]
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@pytest.fixture(scope="module")
def trial() -> pd.DataFrame:
    return pb.datasets.opt()[["clinic", *NODES]].dropna()


@pytest.fixture(scope="module")
def net(trial: pd.DataFrame) -> pb.Network:
    return pb.learn(trial, group="clinic", start=ARCS, search=pb.HillClimb(max_iter=0))


def text_of(folder: Path, net: pb.Network, **more: Any) -> str:
    """A report with its downloads unpacked, so that nothing in it is overlooked."""
    pb.report(net, folder / "report.html", **more)
    text = (folder / "report.html").read_text(encoding="utf-8")
    pattern = r'(<script type="text/plain" id="file-\d">)(.*?)</script>'

    def unpacked(found: re.Match[str]) -> str:
        return f"{found[1]}{gzip.decompress(base64.b64decode(found[2])).decode()}</script>"

    text, count = re.subn(pattern, unpacked, text)
    assert count >= 2
    return text


def embedded(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found[1], object_hook=longer)


def longer(value: dict[str, Any]) -> Any:
    """Lists of one value, as the script of the page has them again."""
    return [value["of"]] * value["times"] if "times" in value else value


def flat(value: Any) -> list[float]:
    """All numbers in a structure of JSON."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for inner in value for number in flat(inner)]
    return [float(value)] if isinstance(value, int | float) else []


def ages_of_clinics(text: str, net: pb.Network, trial: pd.DataFrame) -> int:
    """How many ages, with their clinic, follow from what is drawn of the residuals of age.

    With no parents a standardised residual is (age - intercept) / SD, and both are in the report.
    """
    fit, own = net.fits["age"], embedded(text)["nodes"][0]["residuals"]
    pairs = set(zip(own["codes"], own["standard"], strict=True))
    for curve in own["curves"]:
        pairs |= {(curve["code"], y) for _, y in curve["points"]}
    for box in own["boxes"]:
        pairs |= {(box["code"], y) for y in box["ends"]}
    known = 0
    for code, standard in pairs:
        age = fit.coef[code, 0] + standard * np.sqrt(fit.sigma2[code])
        there = set(trial["age"][trial["clinic"] == fit.levels[code]])
        known += bool(abs(age - round(age)) < 0.02 and round(age) in there)
    return known


def test_ages_do_not_follow_from_residuals(
    net: pb.Network, trial: pd.DataFrame, tmp_path: Path
) -> None:
    assert ages_of_clinics(text_of(tmp_path, net, data=trial, rows=True), net, trial) > 50
    # Some of the cut points, which no row chooses, fall near a whole number.
    assert ages_of_clinics(text_of(tmp_path, net, data=trial), net, trial) <= 4


def cells(text: str) -> set[str]:
    """All numbers of a page to four digits, in texts, drawings, scripts and downloads."""
    return {f"{float(number):.4g}" for number in _NUMBER.findall(text)}


def test_no_cell_of_a_table_is_in_the_page(tmp_path: Path) -> None:
    """Rows that the page is made from are no more in it than rows that it never saw."""
    dag = pb.Dag(["x", "y", "z"], [("x", "y"), ("y", "z")])
    made = pb.random_network(dag, 4, seed=1)
    rows, others = (pb.random_table(made, 60, seed=seed) for seed in (1, 2))
    scale = {"x": 7.1e3, "y": 3.3e4, "z": 9.7e4}
    for table in (rows, others):
        table[list(scale)] = 5e5 + table[list(scale)] * pd.Series(scale)
    group = str(rows.columns[0])
    net = pb.learn(rows, group=group, start=dag.arcs, search=pb.HillClimb(max_iter=0))

    def found(text: str, table: pd.DataFrame) -> int:
        """Cells, fitted values and residuals of a table that are in the page."""
        values = [table[list(scale)].to_numpy().ravel()]
        for node in scale:
            of = node_residuals(net, table, node)
            values += [of.fitted, of.residual, of.standard]
        there = cells(text)
        return sum(f"{value:.4g}" in there or f"{value:.3g}" in there
                   for value in np.concatenate(values))  # fmt: skip

    closed = text_of(tmp_path, net, data=rows)
    assert found(closed, rows) <= 1.3 * found(closed, others) + 20
    opened = text_of(tmp_path, net, data=rows, rows=True)
    assert found(opened, rows) > 2 * found(opened, others)


def test_no_extreme_value_is_drawn(net: pb.Network, trial: pd.DataFrame, tmp_path: Path) -> None:
    """A row far from all others moves sums, but stands nowhere by itself."""
    for node in embedded(text_of(tmp_path, net, data=trial))["nodes"]:
        own, of = node["residuals"], node_residuals(net, trial, node["name"])
        assert own["fitted"] == own["standard"] == own["codes"] == []
        drawn = [y for curve in own["curves"] for _, y in curve["points"]]
        assert of.standard.min() < min(drawn)
        assert max(drawn) < of.standard.max()
        x = [line[0] for line in own["band"]]
        if net.dag.parents(node["name"]):
            assert of.fitted.min() < min(x)
            assert max(x) < of.fitted.max()


@given(st.lists(st.floats(-4, 4).map(lambda x: round(x, 1)), max_size=60))
def test_curves_are_made_of_counts_of_five(values: list[float]) -> None:
    x = np.array(values)
    cuts = counted_quantiles(x)[1].tolist()
    edges = [-np.inf, *cuts, np.inf]
    counts = [((x >= a) & (x < b)).sum() for a, b in pairwise(edges)]
    assert not cuts or min(counts) >= 5
    # Rows may move anywhere inside their cells.
    inside = [min(np.floor(2 * v) / 2 + 0.49, 9.0) for v in values]
    np.testing.assert_array_equal(counted_quantiles(np.array(inside)), counted_quantiles(x))


@given(st.lists(st.sampled_from([1.0, 1.5, 2.0, 7.0]), min_size=1, max_size=80))
def test_bands_sum_up_ten_rows_or_more(fitted: list[float]) -> None:
    x = np.array(fitted)
    y = np.arange(len(x), dtype=float)
    found = Residuals("y", ("a",), np.zeros(len(x), dtype=np.int64), x, y, y, 0).band()
    assert len(found) <= len(x) // FEWEST
    assert (len(found) > 0) == (len(x) >= FEWEST)
    # Means of so many rows, weighted by their numbers, are the mean of all: here by a lone bin.
    if len(found) == 1:
        np.testing.assert_allclose(found[0], [x.mean(), y.mean(), y.std(ddof=1)])


def test_the_head_says_which_it_is(net: pb.Network, trial: pd.DataFrame, tmp_path: Path) -> None:
    def head(text: str) -> str:
        found = re.search(r'<p id="privacy" class="(\w+)">(.*?)</p>', text)
        assert found is not None
        return f"{found[1]}: {found[2]}"

    none = "soft: This report contains no rows"
    assert head(text_of(tmp_path, net)).startswith(none)
    assert head(text_of(tmp_path, net, data=trial)).startswith(none)
    assert head(text_of(tmp_path, net, data=trial, rows=True)).startswith(
        "warning: This report contains rows"
    )
    with pytest.raises(pb.OptionError, match=r"rows=True .* give data=rows"):
        pb.report(net, tmp_path / "report.html", rows=True)


@pytest.fixture(scope="module")
def small(trial: pd.DataFrame) -> pd.DataFrame:
    """The trial with seven women of one clinic, and one of another."""
    own = trial["clinic"]
    parts = [trial[own.isin(["NY", "MN"])], trial[own == "KY"][:7], trial[own == "MS"][:1]]
    return pd.concat(parts)


@pytest.mark.parametrize("pooling", ["partial", "none"])
def test_small_data_sets_are_not_shown(small: pd.DataFrame, pooling: str, tmp_path: Path) -> None:
    columns = ["clinic", "age", "bmi"] if pooling == "partial" else ["clinic", "age"]
    if pooling == "none":
        small = small[small["clinic"] != "MS"]
    net = pb.learn(small[columns], group="clinic", pooling=pooling)
    text = text_of(tmp_path, net, data=small[columns])
    hidden = {"KY", "MS"} & set(small["clinic"])
    assert re.search(r"\d clinics? with fewer than 10 rows \(KY", text)
    numbers = embedded(text)
    assert set(numbers["levels"]) == set(small["clinic"]) - hidden
    for node in numbers["nodes"]:
        assert {box["code"] for box in node["residuals"]["boxes"]} == {0, 1}
    assert 'data-name="network.json"' not in text
    # What the estimates of these data sets are is nowhere, not in the downloads either.
    there = cells(text)
    for fit in net.fits.values():
        for j, level in enumerate(fit.levels):
            own = f"{fit.coef[j, 0]:.4g}"
            same = fit.fixed is not None and own == f"{fit.fixed[0]:.4g}"
            assert level not in hidden or same or own not in there
    opened = text_of(tmp_path, net, data=small[columns], rows=True)
    assert 'data-name="network.json"' in opened
    assert None not in embedded(opened)["nodes"][0]["sds"]["own"]


def test_dots_of_a_comparison_are_of_ten_rows_or_more(small: pd.DataFrame, tmp_path: Path) -> None:
    data = small[["clinic", "age", "bmi"]]
    net = pb.learn(data, group="clinic")
    many = int(len(data) / 5)  # of five rows each
    for folds, there in ((2, 2), (many, 0)):
        found = pb.compare(data, group="clinic", folds=folds, poolings=["complete"])
        for rows in (False, True):
            text = text_of(tmp_path, net, data=data, comparison=found, rows=rows)
            own = embedded(text)["comparison"]
            assert len(own["heldOut"]["each"][0]) == (folds if rows else there)
            assert len(own["leftOut"]["each"][0]) == (
                4 if rows else 0
            )  # two, and the others follow


def run_cli(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_the_command_line_asks_for_rows(trial: pd.DataFrame, tmp_path: Path) -> None:
    trial.to_csv(tmp_path / "trial.csv", index=False)
    made = ["learn", str(tmp_path / "trial.csv"), "--group", "clinic", "--columns", "age,bmi"]
    for flags, words in (([], "contains no rows"), (["--include-rows"], "contains rows")):
        out = tmp_path / f"out{len(flags)}"
        assert run_cli(*made, "-o", str(out), *flags).exit_code == 0
        assert words in (out / "report.html").read_text()
        page = out / "again.html"
        again = ["report", str(out / "network.json"), str(tmp_path / "trial.csv"), "-o", str(page)]
        assert run_cli(*again, *flags).exit_code == 0
        assert words in page.read_text()
    refused = run_cli("report", str(out / "network.json"), "-o", str(tmp_path / "x.html"),
                      "--include-rows")  # fmt: skip
    assert refused.exit_code == 2
    assert "--include-rows" in refused.stderr


# What is suppressed does not follow from what is shown


def disclosure() -> Any:
    """`benchmarks/disclosure.py`, which makes the tables and judges the attacks."""
    path = Path(__file__).parents[1] / "benchmarks" / "disclosure.py"
    if str(path.parent) not in sys.path:  # it imports its neighbours
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location("disclosure", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules["disclosure"] = found
    spec.loader.exec_module(found)
    return found


def check_attacked(case: Any, folder: Path) -> None:
    """No claim is right, and means are no nearer than without an attack."""
    found = disclosure().attacked(case, folder)
    assert not any(found.right.values())
    for error, guess in zip(found.errors, found.guesses, strict=True):
        assert error > 0.9 * guess - 0.02


# A table of numbers with each way to pool, and discrete ones of which all attacks find something.
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5, 6, 8, 11, 12, 13, 17, 22, 39])
def test_attacks_find_nothing(seed: int, tmp_path: Path) -> None:
    check_attacked(list(disclosure().cases(50))[seed], tmp_path)


@pytest.mark.slow
def test_attacks_find_nothing_in_fifty_reports(tmp_path: Path) -> None:
    for case in disclosure().cases(50):
        check_attacked(case, tmp_path)


POOLINGS = ["partial", pb.Partial(random="intercept"), pb.Partial(method="reml"),
            pb.Partial(residuals="pooled"), pb.Partial(residuals="separate"), "none",
            "complete"]  # fmt: skip


@pytest.mark.parametrize("pooling", POOLINGS, ids=str)
@pytest.mark.parametrize("rows", [True, False])
def test_a_report_is_that_of_the_other_data_sets(
    small: pd.DataFrame, pooling: Any, rows: bool, tmp_path: Path
) -> None:
    """To the last digit: small data sets have no part in it."""
    how: dict[str, Any] = {"group": "clinic", "pooling": pooling, "start": ARCS,
                           "search": pb.HillClimb(max_iter=0)}  # fmt: skip
    if pooling == "none":  # each data set needs rows for its coefficients
        small = small[small["clinic"] != "MS"]
    large = small[small["clinic"].isin(["NY", "MN"])]
    nets = [pb.learn(table, **how) for table in (small, large)]
    texts = [
        text_of(tmp_path, net, data=table if rows else None)
        for net, table in zip(nets, (small, large), strict=True)
    ]
    numbers = [embedded(text) for text in texts]
    for one in numbers:
        for part in (*one["nodes"], *one["arcs"]):
            part.pop("words", None)
    assert numbers[0] == numbers[1]


def test_missing_cells_are_completed_without_small_data_sets(
    small: pd.DataFrame, tmp_path: Path
) -> None:
    incomplete = small.reset_index(drop=True)
    incomplete.loc[incomplete.index[::9], "bmi"] = np.nan
    how: dict[str, Any] = {"group": "clinic", "missing": "em", "start": ARCS,
                           "search": pb.HillClimb(max_iter=0)}  # fmt: skip
    found = [
        embedded(text_of(tmp_path, pb.learn(table, **how)))["whatif"]["nodes"]
        for table in (incomplete, incomplete[incomplete["clinic"].isin(["NY", "MN"])])
    ]
    np.testing.assert_allclose(flat(found[0]), flat(found[1]), rtol=1e-6)


def test_of_a_loaded_network_the_population_alone_is_told(
    small: pd.DataFrame, tmp_path: Path
) -> None:
    net = pb.learn(small, group="clinic", start=ARCS, search=pb.HillClimb(max_iter=0))
    net.save(tmp_path / "net.json")
    text = text_of(tmp_path, pb.load(tmp_path / "net.json"))
    numbers = embedded(text)
    assert "estimates of the population alone" in text
    assert numbers["rows"] == [None] * 4
    assert numbers["whatif"]["sets"] == []
    for node in numbers["nodes"]:
        assert set(flat(node["coef"])) == set()
        assert node["fixed"] is not None
    again = embedded(text_of(tmp_path, pb.load(tmp_path / "net.json"), data=small))
    assert again["levels"] == ["NY", "MN"]  # its rows tell what it was learned from


def test_a_number_that_marks_few_rows_leaves_the_data_set_out(
    trial: pd.DataFrame, tmp_path: Path
) -> None:
    """Without pooling its coefficient would be how far that row is from all others."""
    marked = trial.assign(rare=(np.arange(len(trial)) % 3 == 0).astype(float))
    own = marked["clinic"] == "KY"
    marked.loc[own, "rare"] = 0.0
    marked.loc[marked.index[own][3], "rare"] = 1.0
    with pytest.warns(pb.DataWarning, match="only the values 0 and 1"):
        net = pb.learn(marked[["clinic", "rare", "bmi"]], group="clinic", pooling="none",
                       start=[("rare", "bmi")], search=pb.HillClimb(max_iter=0))  # fmt: skip
    text = text_of(tmp_path, net)
    assert "KY" not in embedded(text)["levels"]
    assert "or fewer than 5 with one of two numbers (KY)" in text


def discrete_rows(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n = 400
    made = pd.DataFrame({"site": rng.choice(["a", "b", "c", "d", "e"], size=n),
                         "x": rng.choice(["u", "v"], size=n, p=[0.8, 0.2]),
                         "y": rng.choice(["k", "l"], size=n, p=[0.85, 0.15])})  # fmt: skip
    made["z"] = np.where(rng.random(n) < 0.1 + 0.2 * (made["x"] == "v"), "yes", "no")
    made["w"] = rng.normal(size=n) + (made["z"] == "yes")
    return made.sort_values("site", kind="stable", ignore_index=True)


@pytest.mark.parametrize("seed", range(12))
def test_sums_that_follow_have_no_small_cells(seed: int) -> None:
    """Of data sets put together, and of what two nodes tell of the columns that both have."""
    made = discrete_rows(seed)
    parents = {"y": ["x"], "z": ["x", "y"], "w": ["z", "x"]}
    arcs = [(parent, child) for child, own in parents.items() for parent in own]
    how: dict[str, Any] = {"start": arcs, "search": pb.HillClimb(max_iter=0)}
    net = pb.learn(made, group="site", pooling=pb.Partial(discrete="table"), **how)
    may = disclosed(net, pb.table(made, group="site"))
    levels = np.array(net.levels)

    def small(rows: pd.DataFrame, columns: list[str], least: int) -> bool:
        return bool(rows.groupby(columns).size().between(1, least - 1).any())

    nodes = [node for node in net if node in may.net]
    hidden = {node: ~may.of(node) for node in nodes}
    columns = {node: [*may.net.dag.parents(node), node] for node in nodes}
    columns = {node: [c for c in own if c != "w"] for node, own in columns.items()}
    for node in nodes:
        if may.net.fits[node].detail.startswith("levels that"):
            continue  # too rare in all rows
        least = 10 if node == "w" else 5
        parts = [[level] for level in levels[~hidden[node]]] + [levels[hidden[node]].tolist()]
        for part in filter(None, parts):
            rows = made[made["site"].isin(part)]
            if node == "w":
                assert not any(small(rows, [name], 10) for name in columns[node])
            else:
                assert not small(rows, columns[node], least)
        for other in nodes:
            both = [name for name in columns[node] if name in columns[other]]
            if both and (hidden[node] & hidden[other]).any():
                np.testing.assert_array_equal(hidden[node], hidden[other])


def test_what_is_too_rare_everywhere_is_not_there(tmp_path: Path) -> None:
    made = discrete_rows(1)
    v = made.index[made["x"] == "v"]
    made.loc[v, "z"] = "no"
    made.loc[v[:3], "z"] = "yes"
    net = pb.learn(made, group="site", start=[("x", "z"), ("z", "w")], pooling="complete",
                   search=pb.HillClimb(max_iter=0))  # fmt: skip
    text = text_of(tmp_path, net, data=made)
    assert "1 arc of the network is not here" in text
    assert "x → z" in text
    assert [arc["name"] for arc in embedded(text)["arcs"]] == ["z → w"]
    with pytest.raises(pb.DataError, match=r"'?z.* may come from fewer than 10 rows.*data=rows"):
        pb.report(net, tmp_path / "r.html")
    assert "x → z" in text_of(tmp_path, net, data=made, rows=True)


def test_a_rare_level_counts_as_five_rows(tmp_path: Path) -> None:
    made = discrete_rows(2)[["site", "z", "w"]]
    made["z"] = "no"
    made.loc[[5, 90, 300], "z"] = "yes"
    net = pb.learn(made, group="site")
    found = embedded(text_of(tmp_path, net, data=made))
    (z,) = (node for node in found["whatif"]["nodes"] if node["name"] == "z")
    assert flat(z["p"][0]) == pytest.approx([395 / 400, 5 / 400])


def test_arcs_of_the_command_line_are_those_of_the_report(
    small: pd.DataFrame, tmp_path: Path
) -> None:
    small.to_csv(tmp_path / "small.csv", index=False)
    made = ["learn", str(tmp_path / "small.csv"), "--group", "clinic", "--columns",
            "gestation_days,birthweight_g"]  # fmt: skip
    for flags, there in (([], False), (["--include-rows"], True)):
        out = tmp_path / f"out{there}"
        assert run_cli(*made, "-o", str(out), *flags).exit_code == 0
        arcs = pd.read_csv(out / "arcs.csv")
        assert ("KY" in arcs.columns) == there


# Files of statistics


def test_numbers_with_two_values_have_the_floor_of_files(
    trial: pd.DataFrame, tmp_path: Path
) -> None:
    marked = trial.assign(rare=0.0, half=(np.arange(len(trial)) % 2).astype(float))
    fine = pb.stats(marked.drop(columns="rare"), group="clinic")
    fine.save(tmp_path / "fine.stats")
    for rows in (1, 9):
        marked.loc[marked.index[marked["clinic"] == "KY"][:rows], "rare"] = 1.0
        sent = pb.stats(marked, group="clinic")
        words = rf"{rows} rows? of data set 'KY' ha\w+ 'rare' = 1; .* allow_small=True"
        with pytest.raises(pb.DataError, match=words):
            sent.save(tmp_path / "rare.stats")
        sent.save(tmp_path / "rare.stats", allow_small=True)
    marked.loc[marked.index[marked["clinic"] == "KY"][:40], "rare"] = 1.0
    marked.loc[marked.index[marked["clinic"] == "KY"][:40], "half"] = [1.0] * 36 + [0.0] * 4
    with pytest.raises(pb.DataError, match=r"4 rows .* 'rare' = 1 and|4 rows .* = 0 and 'rare'"):
        pb.stats(marked, group="clinic").save(tmp_path / "rare.stats")


def test_patterns_and_levels_have_it_too(trial: pd.DataFrame, tmp_path: Path) -> None:
    marked = trial.assign(rare=0.0)
    marked.loc[marked.index[:30], "bmi"] = np.nan  # a pattern of one clinic
    gaps = marked.index[marked["bmi"].isna()]
    marked.loc[gaps[:2], "rare"] = 1.0
    marked.loc[marked.index[marked["bmi"].notna()][::3], "rare"] = 1.0
    with pytest.raises(pb.DataError, match="'rare' = 1"):
        pb.stats(marked, group="clinic", missing="em").patterns.save(tmp_path / "p.stats")
    texts = trial.assign(old=np.where(trial["age"] > 24, "yes", "no"), rare=0.0)
    texts.loc[texts.index[texts["clinic"] == "KY"][:3], "rare"] = 1.0
    with pytest.raises(pb.DataError, match="'rare' = 1"):
        pb.stats(texts, group="clinic").save(tmp_path / "c.stats")


def test_the_command_line_says_how_to_leave_them_out(trial: pd.DataFrame, tmp_path: Path) -> None:
    trial.assign(rare=(np.arange(len(trial)) == 7).astype(int)).to_csv(tmp_path / "t.csv")
    made = ["stats", str(tmp_path / "t.csv"), "--group", "clinic", "-o", str(tmp_path / "t.stats")]
    refused = run_cli(*made)
    assert refused.exit_code != 0
    assert "--exclude rare" in " ".join(refused.stderr.split())
    assert run_cli(*made, "--exclude", "rare").exit_code == 0


def test_where_all_data_sets_are_small_totals_have_no_small_cells(tmp_path: Path) -> None:
    made = discrete_rows(3)
    made["site"] = [f"s{k // 9}" for k in range(len(made))]
    made["z"] = "no"
    made.loc[made.index[made["x"] == "v"][:3], "z"] = "yes"
    made.loc[made.index[made["x"] == "u"][:30], "z"] = "yes"
    net = pb.learn(made, group="site", start=[("x", "z"), ("z", "w")], pooling="complete",
                   search=pb.HillClimb(max_iter=0))  # fmt: skip
    text = text_of(tmp_path, net, data=made)
    found = embedded(text)
    assert "estimates of the population alone" in text
    assert set(found["rows"]) == {None}
    assert [arc["name"] for arc in found["arcs"]] == ["z → w"]


@pytest.mark.parametrize("pooling", ["partial", "none", "complete", "auto",
                                     pb.Partial(discrete="logit")], ids=str)  # fmt: skip
def test_who_has_what_in_a_small_cell_changes_nothing(pooling: Any, tmp_path: Path) -> None:
    """Three of the rows of a site with x = v have z = yes; or two, and one more elsewhere."""
    rng = np.random.default_rng(4)
    made = pd.DataFrame({"site": np.repeat(["a", "b", "c", "d", "e"], [60, 64, 70, 76, 80])})
    made["x"] = np.where(rng.random(350) < 0.4, "v", "u")
    made["z"] = np.where(rng.random(350) < 0.45, "yes", "no")
    made["w"] = rng.normal(size=350)
    v = {site: made.index[(made["site"] == site) & (made["x"] == "v")] for site in "ab"}
    made.loc[v["b"], "z"] = "no"
    made.loc[v["b"][:3], "z"] = "yes"
    other = made.copy()
    gives, takes = v["b"][0], next(k for k in v["a"] if made["z"][k] == "no")
    other.loc[[gives, takes], "z"] = ["no", "yes"]
    found = []
    for table in (made, other):
        net = pb.learn(table, group="site", start=[("x", "z"), ("x", "w")], pooling=pooling,
                       search=pb.HillClimb(max_iter=0))  # fmt: skip
        text = text_of(tmp_path, net, data=table)
        assert "For z, sites are put together" in text
        found.append(embedded(text))
    np.testing.assert_allclose(flat(found[0]), flat(found[1]), rtol=1e-5, atol=1e-9)
