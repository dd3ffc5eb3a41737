"""The report page: what it says, and how it behaves in a browser with the network off."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chromium import NAMES, Chromium, browser

import poolbn as pb
from poolbn.assess.estimates import arc_effects, residual_sds
from poolbn.page.graph import picture, text_width
from poolbn.show.figures import number
from poolbn.wording import counted, noun_of

ARCS = [("age", "bmi"), ("gestation_days", "birthweight_g"), ("bmi", "birthweight_g")]
NODES = ["age", "bmi", "gestation_days", "birthweight_g"]
CSS = Path(pb.__file__).parent / "templates" / "report.css"


class Page(HTMLParser):
    """Elements of a page with their attributes, and the text of each script."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text: list[str] = []
        self._inside = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())

    def of(self, tag: str, name: str) -> list[dict[str, str | None]]:
        """Elements with a class."""
        return [a for t, a in self.elements if t == tag and name in (a.get("class") or "").split()]

    def numbers(self) -> dict[str, Any]:
        """What the scripts of the page draw."""
        place = [a.get("id") for t, a in self.elements if t == "script"].index("numbers")

        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is not JSON")

        return json.loads(self.scripts[place], parse_constant=refuse)


@pytest.fixture(scope="module")
def trial() -> pd.DataFrame:
    return pb.datasets.opt()[["clinic", *NODES]]


@pytest.fixture(scope="module")
def net(trial: pd.DataFrame) -> pb.Network:
    stats = pb.stats(trial, group="clinic", missing="drop")
    return pb.learn(stats, start=ARCS, search=pb.HillClimb(max_iter=0), preset="paper")


@pytest.fixture(scope="module")
def boot(trial: pd.DataFrame) -> pb.Bootstrap:
    return pb.bootstrap(
        trial, group="clinic", missing="drop", pooling="complete", replicates=20, preset="paper"
    )


@pytest.fixture(scope="module")
def compared(trial: pd.DataFrame) -> pb.Comparison:
    return pb.compare(trial, group="clinic", missing="drop", folds=2,
                      poolings=["complete", "none", "partial"])  # fmt: skip


@pytest.fixture(scope="module")
def path(
    net: pb.Network,
    trial: pd.DataFrame,
    boot: pb.Bootstrap,
    compared: pb.Comparison,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    pb.report(net, file, data=trial, bootstrap=boot, comparison=compared,
              settings={"command": "poolbn learn <trial>"})  # fmt: skip
    return file


def written(folder: Path, net: pb.Network, **more: Any) -> Page:
    pb.report(net, folder / "report.html", **more)
    return Page(folder / "report.html")


# What is in the file


def test_nothing_is_fetched(path: Path) -> None:
    for tag, attributes in Page(path).elements:
        assert "src" not in attributes, tag
        target = attributes.get("href")
        assert target is None or target.startswith(("#", "data:,")), target
    css = CSS.read_text()
    assert "url(" not in css
    assert "@import" not in css


def test_the_summary_has_the_counts_and_the_verdict(
    path: Path, net: pb.Network, trial: pd.DataFrame, compared: pb.Comparison
) -> None:
    words = Page(path).words
    whole = trial.dropna()
    sizes = ", ".join(f"{c} ({n})" for c, n in whole.groupby("clinic", sort=False).size().items())
    sizes = " and ".join(sizes.rsplit(", ", 1))
    assert f"{len(whole)} rows in 4 clinics: {sizes}." in words
    assert f"{len(trial) - len(whole)} rows with missing values were left out." in words
    assert "4 variables (4 continuous), 3 arcs." in words
    assert "Partial pooling for all variables." in words
    assert " ".join(compared.verdict.split()) in words
    strongest = words[words.index("Strongest effects") :]
    row = net.effects().set_index(["parent", "child"]).loc[("gestation_days", "birthweight_g")]
    told = f"{number(row['effect'])} for each unit (95% interval {number(row['lower'])} to"
    assert strongest.index(told) < strongest.index("bmi → birthweight_g")
    assert "poolbn learn <trial>" in words


def test_the_largest_difference_between_data_sets_is_named(path: Path, net: pb.Network) -> None:
    fit = net.fits["bmi"]
    slope = dict(zip(fit.levels, fit.coef[:, 1], strict=True))
    low, high = min(slope, key=slope.__getitem__), max(slope, key=slope.__getitem__)
    told = f"age → bmi: from {number(slope[low])} in {low} to {number(slope[high])} in {high}"
    assert told in Page(path).words


def test_warnings_come_first_where_fits_failed(tmp_path: Path) -> None:
    table = pd.DataFrame({"F": list("aabb"), "x": [1.0, 2, 3, 5], "y": [2.0, 4, 6, 10]})
    net = pb.learn(table, group="F", pooling="complete", start=[("x", "y")],
                   search=pb.HillClimb(max_iter=0), preset="paper")  # fmt: skip
    page = written(tmp_path, net, data=table)
    assert "Before you trust this y: no residual variance:" in page.words
    assert page.of("g", "trouble")
    assert "no residual variance" in page.numbers()["nodes"][1]["note"]


def test_every_arc_and_node_is_drawn_inside(path: Path, net: pb.Network) -> None:
    page = Page(path)
    assert len(page.of("g", "arc")) == len(page.of("path", "halo")) == len(ARCS)
    assert {a["data-arc"] for a in page.of("g", "arc")} == {"0", "1", "2"}
    assert len(page.of("g", "node")) == len(NODES)
    drawn = picture(net)
    for node in drawn.nodes:
        assert 0 < node.x < node.x + node.width < drawn.width
        assert 0 < node.y < node.y + node.height < drawn.height
    box = {NODES[node.index]: node for node in drawn.nodes}
    for arc in drawn.arcs:
        parent, child = (box[name] for name in net.dag.arcs[arc.index])
        x, y = map(float, arc.path[1:].split("C")[0].split(","))
        assert parent.x < x < parent.x + parent.width
        assert y == pytest.approx(parent.y + parent.height, abs=0.2)
        x, y = map(float, arc.head.split()[0].split(","))
        assert child.x < x < child.x + child.width
        assert y == pytest.approx(child.y, abs=0.2)


def test_marks_are_those_of_the_plot(net: pb.Network) -> None:
    free = {frozenset(edge) for edge in net.dag.cpdag().undirected}
    assert len(picture(net).arcs) == len(net.dag.arcs) > 0
    for arc in picture(net).arcs:
        parent, child = net.dag.arcs[arc.index]
        assert arc.reversible == (frozenset((parent, child)) in free)
        assert arc.negative == (net.effects()["effect"][arc.index] < 0)
        assert 0.3 <= arc.opacity <= 1


def test_boxes_are_wide_enough_for_the_fonts_that_are_usual() -> None:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", size=13)  # wider than most
    for name in ("birthweight_g", "gestation_days", "HbA1c mmol/mol", "MMWW", "illicit", "X12"):
        wide = text_to_path.get_text_width_height_descent(name, font, ismath=False)[0]
        assert 0.95 * wide <= 13 * text_width(name) <= 1.4 * wide + 8


def test_numbers_of_arcs_are_those_of_the_network(path: Path, net: pb.Network) -> None:
    arcs = Page(path).numbers()["arcs"]
    assert len(arcs) == len(net.dag.arcs) > 0
    for arc in arcs:
        parent, child = NODES[arc["parent"]], NODES[arc["child"]]
        (found,) = arc_effects(net, parent, child)
        for key, value in {
            "own": found.effect,
            "ownIntervals": found.interval,
            "alone": found.alone,
            "aloneIntervals": found.alone_interval,
            "interval": found.population_interval,
        }.items():
            np.testing.assert_allclose(arc["terms"][0][key], value, rtol=1e-5)


def test_residuals_are_summed_up_by_data_set(path: Path, trial: pd.DataFrame) -> None:
    own = Page(path).numbers()["nodes"][1]["residuals"]
    known = trial.dropna(subset=["age", "bmi"])
    assert [box["rows"] for box in own["boxes"]] == known.groupby(
        "clinic", sort=False
    ).size().tolist()
    assert own["leftOut"] == len(trial) - len(known)
    middle = [box["ends"][1] for box in own["boxes"]]
    assert all(abs(value) < 0.5 for value in middle)


def test_a_loaded_network_says_what_needs_the_rows(
    net: pb.Network, trial: pd.DataFrame, tmp_path: Path
) -> None:
    net.save(tmp_path / "net.json")
    loaded = pb.load(tmp_path / "net.json")
    page = written(tmp_path, loaded)
    assert "made without the rows" in page.words
    assert "Tests for equal effects need the statistics" in page.words
    numbers = page.numbers()
    assert "data=rows" in numbers["nodes"][0]["note"]
    assert numbers["arcs"][0]["terms"][0]["alone"] is None
    page = written(tmp_path, loaded, data=trial)
    assert f"{trial.isna().any(axis=1).sum()} rows with missing values were left out." in page.words
    whole = page.numbers()
    learned = written(tmp_path, net, data=trial).numbers()
    for with_rows, with_stats in zip(whole["arcs"], learned["arcs"], strict=True):
        alone = [arc["terms"][0]["alone"] for arc in (with_rows, with_stats)]
        np.testing.assert_allclose(*alone, rtol=1e-5)
        assert with_rows["p"] == pytest.approx(with_stats["p"], rel=1e-4)


def test_other_rows_are_noticed(net: pb.Network, trial: pd.DataFrame, tmp_path: Path) -> None:
    complete = trial.dropna()
    few = pd.concat(
        [complete[complete["clinic"] != "KY"], complete[complete["clinic"] == "KY"][:9]]
    )
    n = dict(zip(net.levels, net.n.tolist(), strict=True))["KY"]
    assert f"KY fewer than 10 instead of {n}" in written(tmp_path, net, data=few).words
    assert "instead of" not in written(tmp_path, net, data=trial).words


HOSTILE = ["<script>window.hit = 1</script>", "a\"b'c&d<i>", "</script><b>体重 ✓", "back`${1}\\n"]
SETS = ["</script><script>window.hit = 2</script>", "naïve & sons", '"quoted"', "🏥"]


@pytest.fixture(scope="module")
def hostile(trial: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = trial.dropna().rename(columns=dict(zip(NODES, HOSTILE, strict=True)))
    table["clinic"] = table["clinic"].map(dict(zip(["NY", "MN", "KY", "MS"], SETS, strict=True)))
    table = table.rename(columns={"clinic": "<b>group</b>"})
    place = dict(zip(NODES, HOSTILE, strict=True))
    net = pb.learn(table, group="<b>group</b>", search=pb.HillClimb(max_iter=0),
                   start=[(place[a], place[b]) for a, b in ARCS], preset="paper")  # fmt: skip
    file = tmp_path_factory.mktemp("hostile") / "report.html"
    pb.report(
        net,
        file,
        data=table,
        settings={"<script>": "</script>"},
        bootstrap=pb.Bootstrap(tuple(HOSTILE), np.triu(np.full((4, 4), 5.0), 1), 10, "row"),
    )
    return file


def test_names_are_escaped(hostile: Path, path: Path) -> None:
    page = Page(hostile)
    assert len(page.scripts) == len(Page(path).scripts)
    assert not [t for t, _ in page.elements if t in {"b", "i"}]
    numbers = page.numbers()
    assert [node["name"] for node in numbers["nodes"]] == HOSTILE
    assert numbers["levels"] == SETS
    assert all(any(name in text for text in page.text) for name in (*HOSTILE, *SETS))


@pytest.mark.parametrize("case", ["adapted", "do", "single", "alone", "given", "dates"])
def test_unusual_networks_have_a_page(case: str, net: pb.Network, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(30, 2)), columns=["x", "y"]).assign(F=list("abc") * 10)
    fixed: dict[str, Any] = {"start": [("x", "y")], "search": pb.HillClimb(max_iter=0)}
    if case == "adapted":
        page = written(tmp_path, net.adapt(name="new"))
        assert "1 clinic came later" in page.words
        assert page.numbers()["levels"][-1] == "new (adapted)"
    elif case == "do":
        assert "status" in written(tmp_path, net.do(bmi=25)).numbers()["nodes"][0]
    elif case == "single":
        page = written(
            tmp_path,
            pb.learn(table.assign(F="a"), group="F", pooling="complete", **fixed, preset="paper"),
        )
        assert "1 data set," in page.words
    elif case == "alone":
        page = written(tmp_path, pb.learn(table[["x", "F"]], group="F", preset="paper"))
        assert "No variable depends on another." in page.words
    elif case == "given":
        made = pb.random_network(pb.random_dag(6, 1.0, seed=1), 3, seed=1)
        assert len(written(tmp_path, made).of("g", "arc")) == len(made.dag.arcs)
    else:
        days = pd.to_datetime(["2020-01-01", "2020-02-01", "2020-03-01"] * 10)
        table = table.assign(F=days)
        page = written(tmp_path, pb.learn(table, group="F", **fixed, preset="paper"), data=table)
        names = [a.get("data-name") for _, a in page.elements if a.get("data-name")]
        assert names == ["arcs.csv", "network.dot"]  # JSON has no dates


def test_a_path_that_is_no_text_can_be_told(net: pb.Network, tmp_path: Path) -> None:
    told = {"source": b"caf\xe9.csv".decode(errors="surrogateescape")}
    assert "caf" in written(tmp_path, net, settings=told).words


def test_nothing_is_left_where_it_cannot_be_written(net: pb.Network, tmp_path: Path) -> None:
    with pytest.raises(pb.FileError):
        pb.report(net, tmp_path / "no folder" / "report.html")
    (tmp_path / "old.html").write_text("old")
    with pytest.raises(pb.DataError):
        pb.report(net, tmp_path / "old.html", data=pd.DataFrame({"age": [1.0]}))
    assert (tmp_path / "old.html").read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["old.html"]


@pytest.mark.slow
def test_fifty_nodes_and_data_sets_stay_small(tmp_path: Path) -> None:
    made = pb.random_network(pb.random_dag(50, 2.0, seed=3), 50, seed=3)
    page = written(tmp_path, made, data=pb.random_table(made, 12, seed=3))
    assert len(page.of("g", "arc")) == len(made.dag.arcs)
    assert (tmp_path / "report.html").stat().st_size < 4e6


def contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG 2 defines it."""

    def light(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted([light(one), light(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_texts_and_marks_stand_out(theme: int) -> None:
    block = re.findall(r":root[^{]*\{(.*?)\}", CSS.read_text(), re.S)[theme]
    colour = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))
    for ground in ("page", "paper", "faint", "chosen", "trouble", "node"):
        assert contrast(colour["ink"], colour[ground]) >= 4.5
    for name in ("soft", "link"):
        for ground in ("page", "paper", "faint"):
            assert contrast(colour[name], colour[ground]) >= 4.5, (name, ground)
    for name in ("positive", "negative", "focus", *(f"s{k}" for k in range(8))):
        assert contrast(colour[name], colour["paper"]) >= 3, name


# In a browser


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    if browser() is None:
        pytest.skip(f"there is no browser: none of {', '.join(NAMES)} is installed")
    with Chromium(tmp_path_factory.mktemp("profile")) as it:
        it.call("Network.emulateNetworkConditions", offline=True, latency=0,
                downloadThroughput=0, uploadThroughput=0)  # fmt: skip
        yield it


@pytest.fixture
def page(chromium: Chromium, path: Path) -> Chromium:
    chromium.size(1400, 1000)
    chromium.open(path)
    return chromium


def complaints(page: Chromium) -> list[Any]:
    kinds = {"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"}
    return [event for event in page.events if event.get("method") in kinds]


def shown(page: Chromium, selector: str) -> list[str]:
    """The texts of elements."""
    code = f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)"
    return page.run(code)


def forest(page: Chromium, kind: str) -> dict[str, float]:
    """The estimates that the forest plot shows, by data set."""
    marks = page.run(
        f"[...document.querySelectorAll('#detail svg.forest .{kind}')]"
        ".map((g) => [g.dataset.level, Number(g.dataset.value)])"
    )
    return dict(marks)


def check_forest(page: Chromium, net: pb.Network, parent: str, child: str) -> None:
    assert shown(page, "#detail h3") == [f"{parent} → {child}"]
    (found,) = arc_effects(net, parent, child)
    places = map(str, range(4))
    assert forest(page, "pooled") == pytest.approx(
        dict(zip(places, found.effect, strict=True)), rel=1e-5
    )
    assert list(forest(page, "alone").values()) == pytest.approx(
        [found.alone[int(j)] for j in forest(page, "alone")], rel=1e-5
    )
    assert forest(page, "population") == {None: pytest.approx(found.population, rel=1e-5)}
    cells = shown(page, "#detail tbody tr:nth-child(2) > *")
    low, high = found.interval[0]
    assert cells[:4] == ["NY", str(net.n[0]), number(found.effect[0]),
                         f"{number(low)} to {number(high)}"]  # fmt: skip


def test_it_opens_without_a_complaint_or_a_request(page: Chromium, path: Path) -> None:
    for selector in ("#in", "#out", "#theme", "[data-node='1']", "#table-nodes th button"):
        page.click(selector)
    page.click("#theme")
    assert complaints(page) == []
    asked = [e["params"]["request"]["url"] for e in page.events
             if e.get("method") == "Network.requestWillBeSent"]  # fmt: skip
    assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]


def test_the_network_is_drawn(page: Chromium) -> None:
    seen = page.run(
        "[...document.querySelectorAll('#graph .arc .line')].map((p) => p.getTotalLength())"
    )
    assert len(seen) == len(ARCS)
    assert all(length > 10 for length in seen)
    inside = page.run(
        """[...document.querySelectorAll('#graph .node')].every((node) => {
          const text = node.querySelector('text').getBoundingClientRect();
          const box = node.querySelector('rect').getBoundingClientRect();
          const graph = document.getElementById('graph').getBoundingClientRect();
          return text.left >= box.left && text.right <= box.right && text.top >= box.top
            && box.left >= graph.left && box.right <= graph.right && box.bottom <= graph.bottom;
        })"""
    )
    assert inside


def test_a_clicked_arc_shows_its_forest_plot(page: Chromium, net: pb.Network) -> None:
    for k in (1, 0, 2):
        page.click(f"#graph [data-arc='{k}'] .line")
        check_forest(page, net, *net.dag.arcs[k])
    page.click("#table-arcs tbody tr:nth-child(2) a")
    check_forest(page, net, *net.dag.arcs[1])


def test_arcs_and_nodes_are_reached_and_chosen_with_keys(page: Chromium, net: pb.Network) -> None:
    page.run("document.getElementById('fit').focus()")
    focus = "document.activeElement.dataset.arc ?? `node ${document.activeElement.dataset.node}`"
    reached = []
    for _ in range(len(ARCS) + len(NODES)):
        page.press("Tab")
        reached.append(page.run(focus))
    assert set(reached) == {"0", "1", "2", "node 0", "node 1", "node 2", "node 3"}
    for key in ("Enter", " "):
        page.run("document.querySelector('#graph [data-arc=\"0\"]').focus()")
        page.press(key)
        check_forest(page, net, *net.dag.arcs[0])
        assert page.run("document.activeElement.textContent") == "age → bmi"
        page.press("Escape")
        assert page.run(focus) == "0"
        page.run("document.querySelector('#graph [data-node=\"0\"]').focus()")
        page.press(key)
        assert shown(page, "#detail h3") == ["age"]


def test_a_clicked_node_shows_its_distribution(page: Chromium, net: pb.Network) -> None:
    page.click("#graph [data-node='3'] rect")
    fit = net.fits["birthweight_g"]
    (words,) = shown(page, "#detail .equation")
    assert words.startswith(f"birthweight_g = {number(fit.fixed[0])} ")
    first, second = ["", "(Intercept)", "bmi", "gestation_days", "residual SD"], [
        "clinic", "rows", "SD", "interval", "alone", "interval alone"]  # fmt: skip
    assert shown(page, "#detail thead th") == first + second
    table = "#detail [aria-label='Coefficients in each clinic']"
    rows = [shown(page, f"{table} tbody tr:nth-child({k}) > *") for k in (1, 2, 3, 4)]
    assert rows[0] == ["population", *map(number, fit.fixed), ""]
    assert rows[1] == ["standard error", *map(number, fit.population_se), ""]
    assert rows[3] == ["NY", *map(number, fit.coef[0]), number(np.sqrt(fit.sigma2[0]))]
    found = residual_sds(net, "birthweight_g")
    assert list(forest(page, "pooled").values()) == pytest.approx(found.effect, rel=1e-5)
    assert forest(page, "population") == {None: pytest.approx(found.population, rel=1e-5)}
    assert forest(page, "alone")["2"] == pytest.approx(found.alone[2], rel=1e-5)
    told = " ".join(shown(page, "#detail p"))
    assert "All clinics share one, whatever they say alone." in told
    assert "Pooling: partial pooling." in told
    assert f"Fit: {fit.status}: {fit.detail}." in told
    for name in ("fitted", "quantiles", "boxes"):
        assert page.run(f"document.querySelector('#detail svg.{name}').getBBox().width > 100")


def column(page: Chromium, table: str, place: int) -> list[str]:
    return shown(page, f"#table-{table} tbody tr:not([hidden]) > :nth-child({place})")


def test_a_table_sorts(page: Chromium, net: pb.Network) -> None:
    head = "#table-arcs thead th:nth-child(3)"
    ways = f"document.querySelector('{head}').getAttribute('aria-sort')"
    effects = sorted(net.effects()["effect"])
    assert page.run(ways) == "none"
    page.click(f"{head} button")
    assert page.run(ways) == "descending"
    assert column(page, "arcs", 3) == [number(value) for value in effects[::-1]]
    page.run(f"document.querySelector('{head} button').focus()")
    page.press("Enter")
    assert page.run(ways) == "ascending"
    assert column(page, "arcs", 3) == [number(value) for value in effects]
    page.click("#table-arcs thead th:nth-child(1) button")
    assert page.run(ways) == "none"
    assert column(page, "arcs", 1) == sorted(f"{a} → {b}" for a, b in ARCS)


def test_a_table_filters(page: Chromium) -> None:
    page.run("document.querySelector('#table-tests input').focus()")
    page.type("WEIGHT")
    arcs = [f"{name} → birthweight_g" for name in ("bmi", "gestation_days")]
    assert column(page, "tests", 1) == [*arcs, "residual variance of birthweight_g"]
    assert shown(page, "#table-tests [role=status]") == ["3 of 7 rows"]


def test_dark_and_light(page: Chromium, path: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    page.run("localStorage.clear()")
    seen = {}
    for wish in ("light", "dark"):
        media = [{"name": "prefers-color-scheme", "value": wish}]
        page.call("Emulation.setEmulatedMedia", features=media)
        page.open(path)
        seen[wish] = page.run(ground)
        pressed = page.run("document.getElementById('theme').getAttribute('aria-pressed')")
        assert pressed == ("true" if wish == "dark" else "false")
    assert seen["light"] != seen["dark"]
    page.click("#theme")
    assert page.run(ground) == seen["light"]
    page.call("Emulation.setEmulatedMedia", features=[])


def test_it_moves_and_zooms(page: Chromium) -> None:
    view = "document.getElementById('graph').getAttribute('viewBox').split(' ').map(Number)"
    start = page.run(view)
    page.click("#in")
    assert page.run(view)[2] == pytest.approx(start[2] / 1.3, rel=1e-3)
    page.click("#fit")
    assert page.run(view) == start
    x, y = page.run(
        "(({x, y, width, height}) => [x + width / 2, y + height / 2])"
        "(document.querySelector('#graph [data-node=\"0\"]').getBoundingClientRect())"
    )
    before = shown(page, "#detail h3")
    for kind, dx in (("mousePressed", 0), ("mouseMoved", -60), ("mouseReleased", -60)):
        page.call("Input.dispatchMouseEvent", type=kind, x=x + dx, y=y, button="left", buttons=1,
                  clickCount=1)  # fmt: skip
    page.settle()
    assert page.run(view)[0] > start[0] + 10
    assert shown(page, "#detail h3") == before
    page.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-100,
              modifiers=2)  # fmt: skip
    page.settle()
    assert page.run(view)[2] < start[2]


def test_downloads_are_the_network(page: Chromium, net: pb.Network, tmp_path: Path) -> None:
    page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    for k, name in enumerate(("network.json", "arcs.csv", "network.dot")):
        page.click(f"[data-file='file-{k}']")
        page.wait_until((tmp_path / name).exists)
    loaded = pb.load(tmp_path / "network.json")
    pd.testing.assert_frame_equal(loaded.effects(), net.effects())
    table = pd.read_csv(tmp_path / "arcs.csv").astype({"level": object, "outcome": object})
    table = table.fillna({"level": "", "outcome": ""})
    pd.testing.assert_frame_equal(table, net.effects(), check_dtype=False, check_column_type=False)
    assert (tmp_path / "network.dot").read_text() == net.to_dot()
    assert complaints(page) == []


def test_the_code_runs(path: Path, net: pb.Network, tmp_path: Path,
                       monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    code = next(text for text in Page(path).text if text.startswith("import poolbn"))
    net.save(tmp_path / "network.json")
    monkeypatch.chdir(tmp_path)
    with redirect_stdout(io.StringIO()) as out:
        exec(code, {})
    assert "gestation_days" in out.getvalue()


def test_hostile_names_are_shown_and_not_run(chromium: Chromium, hostile: Path) -> None:
    chromium.open(hostile)
    assert chromium.run("window.hit") is None
    chromium.click("#graph [data-node='3'] rect")
    assert shown(chromium, "#detail h3") == [HOSTILE[3]]
    chromium.click("#graph [data-arc='0'] .line")
    assert shown(chromium, "#detail h3") == [f"{HOSTILE[0]} → {HOSTILE[1]}"]
    assert set(SETS) <= set(shown(chromium, "#detail tbody th"))
    assert chromium.run("window.hit") is None
    assert complaints(chromium) == []


@pytest.mark.parametrize("width", [390, 800, 1400])
def test_nothing_sticks_out(chromium: Chromium, path: Path, width: int) -> None:
    chromium.size(width, 800)
    chromium.open(path)
    for selector in ("#graph [data-arc='0'] .line", "#graph [data-node='3'] rect"):
        chromium.click(selector)
        assert chromium.run("document.documentElement.scrollWidth") <= width


def test_all_that_can_be_used_has_a_name(page: Chromium) -> None:
    page.click("#graph [data-node='3'] rect")
    page.call("Accessibility.enable")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    page.call("Accessibility.disable")
    roles: dict[str, list[str]] = {}
    for node in nodes:
        if not node["ignored"]:
            name = node.get("name", {}).get("value", "")
            roles.setdefault(node["role"]["value"], []).append(name.strip())
    for role in ("button", "link", "searchbox", "region", "navigation", "heading", "image"):
        assert roles[role], role
        assert all(roles[role]), role
    assert {"main", "banner", "contentinfo"} <= set(roles)
    assert sum(name.startswith("age → bmi: effect") for name in roles["button"]) == 1


def test_it_prints(page: Chromium) -> None:
    page.run("document.documentElement.dataset.theme = 'dark'")
    paper = page.pdf()
    assert paper.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 12
    page.call("Emulation.setEmulatedMedia", media="print")
    ink = page.run("getComputedStyle(document.body).color")
    page.call("Emulation.setEmulatedMedia", media="")
    assert ink == "rgb(28, 31, 36)"


# What data sets are called


@pytest.mark.parametrize(
    ("column", "one", "many"),
    [
        ("clinic", "clinic", "clinics"),
        ("City", "city", "cities"),
        ("batch", "batch", "batches"),
        ("school_id", "school", "schools"),
        ("F", "data set", "data sets"),
        ("groups", "data set", "data sets"),
    ],
)
def test_data_sets_have_the_word_of_the_group_column(column: str, one: str, many: str) -> None:
    noun = noun_of(column)
    assert (noun.one, noun.many) == (one, many)
    assert counted(1, noun) == f"1 {one}"
    assert counted(2, noun) == f"2 {many}"


def test_a_page_calls_data_sets_by_their_word(path: Path) -> None:
    page = Page(path)
    told = f"{page.words} {json.dumps(page.numbers())}"
    told = told.replace("Bayesian networks from several related data sets", "")
    told = re.sub(
        r"no population to predict a new data set from \(in \d of \d data sets\)", "", told
    )
    assert "data set" not in told
    assert "range expected for a new" in Path(path).read_text()
    assert "population of clinics" in told
