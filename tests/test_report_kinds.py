"""The report on networks with columns of all kinds: what it says, shows and leaves out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chromium import NAMES, Chromium, browser
from test_report import Page, complaints, shown
from typer.testing import CliRunner

import poolbn as pb
from poolbn.assess.estimates import arc_effects
from poolbn.assess.residuals import node_calibration
from poolbn.cli.app import app
from poolbn.show.figures import number

pytestmark = pytest.mark.filterwarnings("ignore::poolbn.DataWarning")

ARCS = [
    ("edu", "y"), ("x", "y"), ("y", "job"), ("edu", "job"), ("x", "visits"), ("sex", "visits"),
    ("sex", "ill"), ("edu", "ill"),
]  # fmt: skip
KINDS = {"visits": "count"}
STILL: dict[str, Any] = {"start": ARCS, "search": pb.HillClimb(max_iter=0)}
NODES = ["sex", "edu", "x", "visits", "y", "job", "ill"]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 900
    made = pd.DataFrame({"F": np.repeat(list("abc"), n // 3), "sex": rng.choice(["f", "m"], n)})
    made["edu"] = pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"])
    made["x"] = rng.normal(size=n)
    made["visits"] = rng.poisson(np.exp(0.5 + 0.4 * made["x"] + 0.5 * (made["sex"] == "m")))
    step = made["edu"].map({"low": 0.0, "mid": 0.5, "high": -0.7}).astype(float)
    made["y"] = made["x"] + step + rng.normal(size=n)
    works = rng.random(n) < 1 / (1 + np.exp(-made["y"]))
    first = rng.random(n) < 0.3 + 0.4 * (made["edu"] == "high")
    made["job"] = np.where(works, np.where(first, "A", "B"), "C")
    risk = 0.3 + 0.2 * (made["sex"] == "m") + 0.1 * (made["edu"] == "mid")
    risk += made["F"].map({"a": -0.1, "b": 0.0, "c": 0.2})
    made["ill"] = np.where(rng.random(n) < risk, "yes", "no")
    return made[["F", *NODES]]


@pytest.fixture(scope="module")
def net(rows: pd.DataFrame) -> pb.Network:
    return pb.learn(rows, group="F", kinds=KINDS, inputs=["sex"], **STILL, preset="paper")


@pytest.fixture(scope="module")
def path(net: pb.Network, rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    pb.report(net, file, data=rows)
    return file


@pytest.fixture(scope="module")
def numbers(path: Path) -> dict[str, Any]:
    return Page(path).numbers()


def arc_of(numbers: dict[str, Any], parent: str, child: str) -> dict[str, Any]:
    (found,) = [arc for arc in numbers["arcs"] if arc["name"] == f"{parent} → {child}"]
    return found


def node_of(numbers: dict[str, Any], node: str) -> dict[str, Any]:
    (found,) = [own for own in numbers["nodes"] if own["name"] == node]
    return found


def test_effects_are_those_of_the_network(numbers: dict[str, Any], net: pb.Network) -> None:
    table = net.effects()
    each = net.effects(by="data set")
    assert len(table) == sum(len(arc["terms"]) for arc in numbers["arcs"]) == 14
    for (parent, child), own in table.groupby(["parent", "child"], sort=False):
        terms = arc_of(numbers, str(parent), str(child))["terms"]
        for term, (_, row) in zip(terms, own.iterrows(), strict=True):
            assert term["scale"] == row["scale"]
            assert term["effect"] == pytest.approx(row["effect"], rel=1e-5)
            np.testing.assert_allclose(term["interval"], row[["lower", "upper"]].tolist(), 1e-5)
            same = (each[["parent", "level", "child", "outcome"]]
                    == row[["parent", "level", "child", "outcome"]]).all(axis=1)  # fmt: skip
            np.testing.assert_allclose(term["own"], each["effect"][same], rtol=1e-5)
            ends = each.loc[same, ["lower", "upper"]]
            np.testing.assert_allclose(term["ownIntervals"], ends, rtol=1e-5)


def test_odds_ratios_of_data_sets_alone_are_those_of_their_rows(
    net: pb.Network, rows: pd.DataFrame
) -> None:
    """Mantel and Haenszel's over the levels of the other parent, and its limit in one stratum."""
    table = pb.table(rows, group="F", kinds=KINDS)
    (found,) = arc_effects(net, "sex", "ill", stats=table)
    for j, (_, own) in enumerate(rows.groupby("F")):
        above = below = 0.0
        for _, part in own.groupby("edu", observed=True):
            counts = pd.crosstab(part["sex"], part["ill"]).to_numpy()
            above += counts[1, 1] * counts[0, 0] / len(part)
            below += counts[1, 0] * counts[0, 1] / len(part)
        assert np.exp(found.alone[j]) == pytest.approx(above / below)
        assert found.alone_interval[j, 0] < found.alone[j] < found.alone_interval[j, 1]


def test_regressions_of_data_sets_alone_are_maximum_likelihood(
    net: pb.Network, rows: pd.DataFrame
) -> None:
    from scipy.optimize import minimize

    table = pb.table(rows, group="F", kinds=KINDS)
    found = arc_effects(net, "x", "visits", stats=table)[0]
    for j, (_, own) in enumerate(rows.groupby("F")):
        Z = np.column_stack([np.ones(len(own)), own["sex"] == "m", own["x"]])

        def loss(b: Any, Z: Any, y: Any) -> float:
            return float((np.exp(Z @ b) - y * (Z @ b)).sum())

        best = minimize(loss, np.zeros(3), args=(Z, own["visits"].to_numpy()), tol=1e-12)
        assert found.alone[j] == pytest.approx(best.x[2], abs=2e-4)
        se = np.sqrt(np.linalg.inv(Z.T @ (np.exp(Z @ best.x)[:, None] * Z))[2, 2])
        np.testing.assert_allclose(found.alone_interval[j], best.x[2] + 1.96 * se * np.r_[-1, 1],
                                   atol=1e-3)  # fmt: skip


def test_probabilities_are_shown_for_each_configuration(
    numbers: dict[str, Any], net: pb.Network
) -> None:
    found = node_of(numbers, "ill")["probabilities"]
    fit = net.fits["ill"]
    assert found["configurations"][:2] == ["sex = f, edu = low", "sex = f, edu = mid"]
    np.testing.assert_allclose(found["own"], fit.probabilities, rtol=1e-3)
    np.testing.assert_allclose(found["population"], fit.population, rtol=1e-3)
    assert node_of(numbers, "job")["probabilities"] is None
    assert [curve["parent"] for curve in node_of(numbers, "job")["curves"]] == ["y"] * 3


def test_curves_are_predictions(numbers: dict[str, Any], net: pb.Network) -> None:
    """Between the probabilities that the other parent's levels give: it is at its shares."""
    for curve in node_of(numbers, "job")["curves"]:
        levels = ["low", "mid", "high"]
        grid = pd.DataFrame({"F": "a", "y": np.repeat(curve["x"], 3), "edu": levels * 25})
        p = net.predict(grid, "job", plugin=True)[curve["outcome"]].to_numpy().reshape(25, 3)
        assert (p.min(axis=1) - 1e-3 < curve["own"][0]).all()
        assert (p.max(axis=1) + 1e-3 > curve["own"][0]).all()


def test_calibration_is_of_the_rows(
    numbers: dict[str, Any], net: pb.Network, rows: pd.DataFrame
) -> None:
    found = node_of(numbers, "job")["calibration"]
    predicted = net.predict(rows, "job", plugin=True)
    for own in found:
        level = ["A", "B", "C"][own["level"]]
        p, y = predicted[level].to_numpy(), (rows["job"] == level).to_numpy()
        order = np.argsort(p, kind="stable")
        start = 0
        for count, expected, seen, lower, upper in own["bins"]:
            part = order[start : start + count]
            assert expected == pytest.approx(p[part].mean(), abs=2e-4)
            assert seen == pytest.approx(y[part].mean(), abs=2e-4)
            assert lower < seen < upper
            assert count >= 10
            assert min(y[part].sum(), (~y[part]).sum()) >= 5
            start += count
        assert start == len(rows)
        for code, count, expected, seen, _, _ in own["sets"]:
            here = (rows["F"] == numbers["levels"][code]).to_numpy()
            assert (count, seen) == (here.sum(), pytest.approx(y[here].mean(), abs=2e-4))
            assert expected == pytest.approx(p[here].mean(), abs=2e-4)


def test_residuals_of_counts_are_normal_if_the_model_is_right(
    net: pb.Network, rows: pd.DataFrame
) -> None:
    from scipy.stats import kstest, nbinom, norm, poisson

    from poolbn.assess.residuals import node_residuals
    from poolbn.nodes.links import count_residuals

    found = node_residuals(net, rows, "visits")
    assert kstest(found.standard, "norm").pvalue > 0.01
    np.testing.assert_allclose(
        found.fitted, net.predict(rows, "visits", plugin=True)["mean"], rtol=1e-6
    )
    mean, y = np.array([0.3, 2.0, 7.0]), np.array([0.0, 3.0, 12.0])
    for theta in (np.inf, 1.7):
        law = poisson(mean) if np.isinf(theta) else nbinom(theta, theta / (theta + mean))
        drawn = np.array([count_residuals(y, mean, theta, seed) for seed in range(200)])
        p = norm.cdf(drawn)
        assert (p >= law.cdf(y - 1) - 1e-12).all()
        assert (p <= law.cdf(y) + 1e-12).all()
        np.testing.assert_allclose(p.mean(axis=0), (law.cdf(y - 1) + law.cdf(y)) / 2, atol=0.05)


def test_the_page_says_it_in_words(path: Path, net: pb.Network) -> None:
    page = Page(path)
    assert "7 variables (4 discrete, 2 continuous and 1 count), 8 arcs." in page.words
    assert "Inputs, which have no distribution: sex." in page.words
    arcs = page.numbers()["arcs"]
    row = net.effects().query("parent == 'sex' and child == 'ill'").iloc[0]
    ends = f"{number(row['lower'])} to {number(row['upper'])}"
    assert arc_of({"arcs": arcs}, "sex", "ill")["words"][0].startswith(
        "In the population of data sets, sex m instead of f multiplies the odds of ill = yes by "
        f"{number(row['effect'])} (95% interval {ends}), its other parents being equal."
    )
    assert "x → visits" in page.words
    assert "rate ratio" in page.words
    for kind in ("discrete", "count", "continuous"):
        assert len(page.of("g", kind)) >= 2  # in the drawing and in its legend
    assert len(page.of("g", "given")) == 2


def few_in_a_cell(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with a level that three rows of one data set have, and a rare outcome elsewhere."""
    made = rows[["F", "sex", "ill", "x"]].copy()
    a = made.index[made["F"] == "a"]
    made.loc[a, "sex"] = "f"
    made.loc[a[:3], "sex"] = "m"
    b = made.index[made["F"] == "b"]
    made.loc[b, "ill"] = "no"
    made.loc[b[:2], "ill"] = "yes"
    return made


def test_nothing_is_shown_of_few_rows(rows: pd.DataFrame, tmp_path: Path) -> None:
    made = few_in_a_cell(rows)
    net = pb.learn(made, group="F", start=[("sex", "ill"), ("sex", "x")],
                   search=pb.HillClimb(max_iter=0), preset="paper")  # fmt: skip

    def of(**options: Any) -> tuple[dict[str, Any], str]:
        pb.report(net, tmp_path / "r.html", **options)
        return Page(tmp_path / "r.html").numbers(), (tmp_path / "r.html").read_text()

    for data in (made, None):
        found, text = of(data=data)
        term = arc_of(found, "sex", "ill")["terms"][0]
        # Less the third, the population's would be that of the other two, whose cells are small.
        assert term["own"] == [None, None, None]
        assert term["ownIntervals"] == [[None, None]] * 3
        assert term["alone"] is None
        own = node_of(found, "ill")["probabilities"]["own"]
        assert np.isnan(np.array(own, dtype=float)).all()
        assert node_of(found, "x")["coef"][0] == [None, None]
        assert 'data-name="network.json"' not in text
        assert "fewer than 10 rows have the same levels" in text
    assert node_of(of(data=made)[0], "ill")["calibration"][0]["sets"] == []
    found, text = of(data=made, rows=True)
    assert None not in arc_of(found, "sex", "ill")["terms"][0]["own"]
    assert 'data-name="network.json"' in text


def test_a_level_that_one_row_has_is_not_told(rows: pd.DataFrame, tmp_path: Path) -> None:
    made = rows[["F", "sex", "x"]].copy()
    made.loc[0, "sex"] = "other"
    with pytest.warns(pb.DataWarning, match="one row alone"):
        net = pb.learn(made, group="F", preset="paper")
    pb.report(net, tmp_path / "r.html", data=made)
    assert "one row alone" not in Page(tmp_path / "r.html").words.lower()
    pb.report(net, tmp_path / "r.html", data=made, rows=True)
    assert "one row alone" in Page(tmp_path / "r.html").words.lower()


@pytest.mark.parametrize("case", ["table", "cells", "loaded", "adapted", "do", "single", "none",
                                  "complete", "simulated", "levels only"])  # fmt: skip
def test_all_such_networks_have_a_page(
    case: str, net: pb.Network, rows: pd.DataFrame, tmp_path: Path
) -> None:
    data: Any = rows
    if case == "table":
        data = pb.table(rows, group="F", kinds=KINDS)
    elif case == "cells":
        discrete = rows.drop(columns="visits")
        still = pb.HillClimb(max_iter=0)
        net = pb.learn(pb.stats(discrete, group="F"), start=[("edu", "y"), ("sex", "ill")],
                       search=still, preset="paper")  # fmt: skip
        data = None
    elif case == "loaded":
        net.save(tmp_path / "net.json")
        net, data = pb.load(tmp_path / "net.json"), None
    elif case == "adapted":
        net = net.adapt(name="new")
    elif case == "do":
        net = net.do(edu="mid")
    elif case == "single":
        one = rows.assign(F="a")
        net, data = (
            pb.learn(one, group="F", kinds=KINDS, pooling="complete", **STILL, preset="paper"),
            one,
        )
    elif case in ("none", "complete"):
        net = pb.learn(rows, group="F", kinds=KINDS, pooling=case, **STILL, preset="paper")
    elif case == "simulated":
        net = pb.random_network(pb.random_dag(6, 1.5, seed=1), 5, discrete=0.5, seed=1)
        data = None
    else:
        few = rows[["F", "sex", "edu", "ill"]]
        net = pb.learn(
            few, group="F", start=[("sex", "ill")], search=pb.HillClimb(max_iter=0), preset="paper"
        )
    pb.report(net, tmp_path / "r.html", data=data)
    page = Page(tmp_path / "r.html")
    assert len(page.of("g", "arc")) == len(net.dag.arcs)
    found = page.numbers()
    assert [node["name"] for node in found["nodes"]] == list(net.dag.nodes)
    assert all(len(arc["terms"]) for arc in found["arcs"])


def test_rows_of_a_table_count_those_that_it_left_out(
    net: pb.Network, rows: pd.DataFrame, tmp_path: Path
) -> None:
    incomplete = rows.copy()
    incomplete.loc[[0, 1, 400], "ill"] = None
    pb.report(
        net, tmp_path / "r.html", data=pb.table(incomplete, group="F", kinds=KINDS, missing="drop")
    )
    assert "3 rows with missing values were left out." in Page(tmp_path / "r.html").words


def test_a_bootstrap_and_a_comparison_are_in_it(
    net: pb.Network, rows: pd.DataFrame, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"group": "F", "kinds": KINDS, "inputs": ["sex"]}
    boot = pb.bootstrap(rows, replicates=3, pooling="complete", **given, preset="paper")
    compared = pb.compare(rows, folds=2, poolings=["complete", "none"], **given)
    pb.report(net, tmp_path / "r.html", data=rows, bootstrap=boot, comparison=compared)
    page = Page(tmp_path / "r.html")
    assert " ".join(compared.verdict.split()) in page.words
    assert "Of a discrete variable it is that of probabilities of levels" in page.words
    found = page.numbers()
    assert len(found["bootstrap"]["bars"]) == len(boot.pairs())
    assert "3 bootstrap networks have an arc" in arc_of(found, "x", "y")["words"][-1]


def test_the_commands_write_it(rows: pd.DataFrame, tmp_path: Path) -> None:
    rows[["F", "sex", "ill", "y"]].to_csv(tmp_path / "rows.csv", index=False)
    runner = CliRunner()
    given = ["learn", str(tmp_path / "rows.csv"), "--group", "F", "--inputs", "sex"]
    done = runner.invoke(app, [*given, "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    found = {file.name for file in (tmp_path / "out").iterdir()}
    assert found == {"network.json", "arcs.csv", "report.html"}
    net = pb.load(tmp_path / "out" / "network.json")
    arcs = pd.read_csv(tmp_path / "out" / "arcs.csv", keep_default_na=False)
    assert arcs["scale"].tolist() == net.effects()["scale"].tolist()
    again = tmp_path / "again.html"
    given = ["report", str(tmp_path / "out" / "network.json"), str(tmp_path / "rows.csv")]
    done = runner.invoke(app, [*given, "-o", str(again)])
    assert done.exit_code == 0, done.output
    assert len(Page(again).of("g", "node")) >= 3


# In a browser


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    if browser() is None:
        pytest.skip(f"there is no browser: none of {', '.join(NAMES)} is installed")
    with Chromium(tmp_path_factory.mktemp("profile")) as it:
        it.call("Network.emulateNetworkConditions", offline=True, latency=0,
                downloadThroughput=0, uploadThroughput=0)  # fmt: skip
        yield it


@pytest.mark.parametrize("width", [400, 1300])
def test_each_node_and_arc_can_be_chosen(
    chromium: Chromium, path: Path, numbers: dict[str, Any], width: int
) -> None:
    chromium.size(width, 900)
    chromium.open(path)
    for kind, parts in (("node", numbers["nodes"]), ("arc", numbers["arcs"])):
        for k, part in enumerate(parts):
            chromium.run(f"document.querySelector('#graph [data-{kind}=\"{k}\"]').focus()")
            chromium.press("Enter")
            assert shown(chromium, "#detail h3") == [part["name"]]
            assert chromium.run("document.documentElement.scrollWidth") <= width
            assert chromium.run("document.querySelectorAll('#detail svg').length") > 0
    assert complaints(chromium) == []


def test_the_forest_of_a_block_has_a_chart_for_each_level(
    chromium: Chromium, path: Path, net: pb.Network
) -> None:
    chromium.size(1300, 900)
    chromium.open(path)
    index = net.dag.arcs.index(("edu", "job"))
    chromium.run(f"document.querySelector('#graph [data-arc=\"{index}\"]').focus()")
    chromium.press("Enter")
    assert shown(chromium, "#detail h5") == [
        "mid instead of low, job B instead of A", "mid instead of low, job C instead of A",
        "high instead of low, job B instead of A", "high instead of low, job C instead of A",
    ]  # fmt: skip
    marks = chromium.run(
        "[...document.querySelectorAll('#detail svg.forest')].map((svg) => "
        "[...svg.querySelectorAll('.pooled, .population')].map((g) => Number(g.dataset.value)))"
    )
    table = net.effects().query("parent == 'edu' and child == 'job'")
    assert len(marks) == len(table) == 4
    for values, (_, row) in zip(marks, table.iterrows(), strict=True):
        assert sorted(values) == pytest.approx(sorted(row[["effect", "a", "b", "c"]]), rel=1e-5)
    # On an axis of logarithms, equal ratios are equally far apart.
    x = chromium.run(
        "[...document.querySelectorAll('#detail svg.forest')[0].querySelectorAll('.tick')].map((g) "
        "=> [Number(g.querySelector('line').getAttribute('x1')), Number(g.textContent)])"
    )
    slopes = {round((b[0] - a[0]) / np.log(b[1] / a[1])) for a, b in pairwise(x)}
    assert len(x) >= 3
    assert max(slopes) - min(slopes) <= 1


def test_bars_are_as_long_as_probabilities(chromium: Chromium, path: Path, net: pb.Network) -> None:
    chromium.size(1300, 900)
    chromium.open(path)
    chromium.run(f"document.querySelector('#graph [data-node=\"{NODES.index('ill')}\"]').focus()")
    chromium.press("Enter")
    assert len(shown(chromium, "#detail .multiples figure")) == 6
    bars = chromium.run(
        "[...document.querySelectorAll('#detail .multiples .share')].map((bar) => "
        "[Number(bar.dataset.value), bar.width.baseVal.value])"
    )
    ratio = [wide / value for value, wide in bars]
    assert len(bars) == 6 * 4
    assert np.ptp(ratio) < 0.02 * max(ratio)
    drawn = np.array([value for value, _ in bars]).reshape(6, 4)
    fit = net.fits["ill"]
    np.testing.assert_allclose(drawn[:, 0], fit.population[:, 1], rtol=1e-3)
    np.testing.assert_allclose(drawn[:, 1:].T, fit.probabilities[:, :, 1], rtol=1e-3)


def test_hostile_levels_are_shown_and_not_run(
    chromium: Chromium, rows: pd.DataFrame, tmp_path: Path
) -> None:
    bad = "</script><script>window.hit = 1</script>"
    made = rows[["F", "sex", "ill", "x"]].replace({"m": bad, "yes": "<img src=x onerror=hit()>"})
    net = pb.learn(made, group="F", start=[("sex", "ill"), ("x", "ill")],
                   search=pb.HillClimb(max_iter=0), preset="paper")  # fmt: skip
    pb.report(net, tmp_path / "r.html", data=made)
    chromium.size(1300, 900)
    chromium.open(tmp_path / "r.html")
    for kind, count in (("node", 3), ("arc", 2)):
        for k in range(count):
            chromium.run(f"document.querySelector('#graph [data-{kind}=\"{k}\"]').focus()")
            chromium.press("Enter")
    assert chromium.run("window.hit") is None
    assert bad in json.dumps(shown(chromium, "#table-arcs td"), ensure_ascii=False)
    assert complaints(chromium) == []


def test_calibration_needs_enough_rows_of_a_level(rows: pd.DataFrame) -> None:
    made = rows[["F", "x"]].assign(rare=np.where(rows.index < 4, "yes", "no"))
    net = pb.learn(made, group="F", pooling="complete", preset="paper")
    found = node_calibration(net, made, "rare")
    assert found.bins(1) == []
    assert sorted(found.by_data_set(1)) == [1, 2]


# The whole trial


@pytest.fixture(scope="module")
def trial_page(tmp_path_factory: pytest.TempPathFactory) -> tuple[pb.Network, Path]:
    trial = pb.datasets.opt()
    end = ["infection", "preterm", "gestation_days", "birthweight_g"]
    later = [name for name in trial if name.endswith("_5")]
    first = [name for name in trial if name not in {*end, *later, "clinic"}]
    net = pb.learn(
        trial, group="clinic", missing="drop", inputs=["treatment"], preset="paper",
        constraints=pb.Constraints(tiers=[first, later, end]),
    )  # fmt: skip
    file = tmp_path_factory.mktemp("trial") / "report.html"
    pb.report(net, file, data=trial)
    return net, file


@pytest.mark.slow
def test_the_page_of_the_trial_is_small_and_has_total_effects_of_treatment(
    trial_page: tuple[pb.Network, Path],
) -> None:
    net, file = trial_page
    assert file.stat().st_size < 1e6
    assert len(net.dag.nodes) == 24
    told = [text for text in Page(file).text if text.strip()]
    totals = net.total_effects("treatment")
    start = told.index("Total effects along all paths")
    rows = list(zip(told[start:], told[start + 1 :], told[start + 2 :], strict=False))
    for effect, total in zip(totals["effect"], totals["total"], strict=True):
        assert (effect, "mean difference", number(total)) in rows
    for tag, attributes in Page(file).elements:
        assert "src" not in attributes, tag
        target = attributes.get("href")
        assert target is None or target.startswith(("#", "data:,"))


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1300])
def test_the_page_of_the_trial_works_everywhere(
    chromium: Chromium, trial_page: tuple[pb.Network, Path], width: int, theme: str
) -> None:
    net, file = trial_page
    media = [{"name": "prefers-color-scheme", "value": theme}]
    chromium.call("Emulation.setEmulatedMedia", features=media)
    chromium.size(width, 900)
    chromium.open(file)
    for kind, count in (("node", len(net.dag.nodes)), ("arc", len(net.dag.arcs))):
        for k in range(count):
            chromium.run(f"document.querySelector('#graph [data-{kind}=\"{k}\"]').focus()")
            chromium.press("Enter")
            assert chromium.run("document.documentElement.scrollWidth") <= width
            # Nothing is drawn outside of its chart.
            assert chromium.run(
                "[...document.querySelectorAll('#detail .chart svg')].every((svg) => {"
                "const box = svg.getBBox();"
                "return box.x > -4 && box.x + box.width < svg.viewBox.baseVal.width + 4; })"
            ), (kind, k)
    chromium.call("Emulation.setEmulatedMedia", features=[])
    asked = [e for e in chromium.events if e.get("method") == "Network.requestWillBeSent"]
    assert all(e["params"]["request"]["url"].startswith(("file:", "data:")) for e in asked)
    assert complaints(chromium) == []
