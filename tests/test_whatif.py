"""What if in the report: the script finds what Python finds, and the page is used by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chromium import NAMES, Chromium, browser
from scipy import special, stats

import poolbn as pb
from poolbn.page import whatif
from poolbn.page.disclosure import disclosed, undisclosed
from poolbn.page.whatif import whatif_numbers

TEMPLATES = Path(pb.__file__).parent / "templates"
needs_browser = pytest.mark.skipif(browser() is None, reason=f"none of {', '.join(NAMES)}")
NODES = ["age", "bmi", "depth_0", "attachment_0", "gestation_days", "birthweight_g"]
ARCS = [("age", "bmi"), ("age", "attachment_0"), ("depth_0", "attachment_0"),
        ("bmi", "birthweight_g"), ("gestation_days", "birthweight_g")]  # fmt: skip
KEPT = pb.HillClimb(max_iter=0)


@pytest.fixture(scope="module")
def trial() -> pd.DataFrame:
    return pb.datasets.opt()[["clinic", *NODES]].dropna()


@pytest.fixture(scope="module")
def net(trial: pd.DataFrame) -> pb.Network:
    return pb.learn(trial, group="clinic", start=ARCS, search=KEPT)


def mixed_table(seed: int = 0, rows: int = 600) -> pd.DataFrame:
    """All kinds of columns and of parents, in four sites that differ."""
    rng = np.random.default_rng(seed)
    site = rng.integers(4, size=rows)
    shift = rng.normal(size=(4, 6))[site] / 2
    arm = rng.integers(2, size=rows)
    sex = rng.random(rows) < special.expit(0.3 + shift[:, 0])
    age = 40 + 8 * rng.normal(size=rows) + 5 * sex + 3 * shift[:, 1]
    grade = np.where(rng.gumbel(size=(rows, 3)).argmax(axis=1) == 0, 0, rng.integers(3, size=rows))
    pressure = 100 + 0.6 * age + 6 * (grade == 2) - 5 * arm + 9 * rng.normal(size=rows)
    event = rng.random(rows) < special.expit((pressure - 125) / 12 + shift[:, 2])
    utility = np.column_stack([np.zeros(rows), (age - 40) / 10 + shift[:, 3], 0.8 * event])
    ward = (utility + rng.gumbel(size=(rows, 3))).argmax(axis=1)
    visits = rng.poisson(np.exp(0.4 + 0.5 * event + 0.3 * shift[:, 4]))
    cost = 50 + 12 * visits + 20 * (ward == 1) + 10 * rng.normal(size=rows)
    return pd.DataFrame(
        {"site": np.array(list("abcd"))[site], "arm": np.array(["no", "yes"])[arm],
         "sex": np.array(["f", "m"])[sex.astype(int)], "age": age,
         "grade": np.array(["x", "y", "z"])[grade], "pressure": pressure,
         "event": np.array(["no", "yes"])[event.astype(int)],
         "ward": np.array(["p", "q", "r"])[ward], "visits": visits, "cost": cost}
    )  # fmt: skip


MIXED = [
    ("sex", "age"), ("age", "pressure"), ("grade", "pressure"), ("arm", "pressure"),
    ("pressure", "event"), ("event", "visits"), ("visits", "cost"), ("age", "ward"),
]  # fmt: skip


READ: dict[str, Any] = {"group": "site", "inputs": ["arm"], "kinds": {"visits": "count"}}


def learned(table: pd.DataFrame, **how: Any) -> pb.Network:
    return pb.learn(table, search=KEPT, **READ, **{"start": MIXED, **how})


@pytest.fixture(scope="module")
def mixed() -> pb.Network:
    return learned(mixed_table())


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


def numbers_of(net: pb.Network, **more: Any) -> dict[str, Any]:
    return whatif_numbers(net, [str(level) for level in net.levels], undisclosed(net), **more)


# Python's own answers, which the script is compared with


def test_quantiles_are_where_the_distribution_function_says(mixed: pb.Network) -> None:
    """Also where a node is integrated over, in several data sets and configurations."""
    p = np.array([0.025, 0.5, 0.975])
    given = {"arm": "yes", "event": "yes", "ward": "q"}
    for evidence in ({"age": 50.0}, {"age": 50.0, "site": "b"}):
        found = mixed.posterior({**given, **evidence}, "pressure")
        assert str(found.method) == "quadrature"
        np.testing.assert_allclose(found.cdf(found.quantile(p)), p, atol=1e-10)


def test_in_a_known_data_set_all_weight_is_there(mixed: pb.Network) -> None:
    found = mixed.posterior({"arm": "no", "site": "c"}, "sex")
    assert dict(zip(mixed.levels, found.weights, strict=True)) == {"a": 0, "b": 0, "c": 1, "d": 0}


# The script against Python


@dataclass
class Setting:
    """Values of some nodes, interventions among them, in a data set; -1 is unknown."""

    known: list[dict[str, Any] | None]
    at: int


class Script:
    """The pure functions of the page, without the page."""

    def __init__(self, chromium: Chromium, folder: Path, numbers: dict[str, Any]) -> None:
        scripts = [
            (TEMPLATES / f"report-{n}.js").read_text() for n in ("locals", "infer", "answers")
        ]
        text = json.dumps(numbers)
        made = (
            f"<!doctype html><script>{' '.join(scripts)}\nvar network = networkOf({text});</script>"
        )
        (folder / "script.html").write_text(made)
        chromium.open(folder / "script.html")
        self.run, self.numbers = chromium.run, numbers

    def answers(self, setting: Setting, targets: list[int]) -> list[dict[str, Any]]:
        return self.run(
            f"""(() => {{
              const found = ask(network, {json.dumps(setting.known)});
              if (!found.possible({setting.at})) return [];
              return {targets}.map((target) => {{
                const one = found.marginal(target, {setting.at});
                const ess = one.ess === Infinity ? null : one.ess;
                const error = one.errors || one.error;
                if (one.method === "sampling" && !(error && ess < 1e6)) return {{}};
                if (one.shares) return {{ shares: [...one.shares], ess }};
                const bounds = [0.025, 0.5, 0.975].map(one.quantile);
                return {{ numbers: [one.mean, one.sd, ...bounds], ess }};
              }});
            }})()"""
        )


def settings(numbers: dict[str, Any], count: int, seed: int, least: float) -> Iterator[Setting]:
    """Random ones: in known, new and unknown data sets in turn; `least` of the values are given."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        share, known = rng.uniform(least, 0.7), []
        for node in numbers["nodes"]:
            low, high, *_ = node["range"]
            value = float(rng.uniform(low + 0.2 * (high - low), high - 0.2 * (high - low)))
            if node["levels"]:
                value = int(rng.integers(len(node["levels"])))
            elif node["count"]:
                value = int(rng.integers(5))
            one = {"value": value, "act": bool(rng.random() < 0.3) and not node["input"]}
            known.append(one if node["input"] or rng.random() < share else None)
        new = -1 if numbers["new"] is None else numbers["new"]
        yield Setting(known, [int(rng.integers(len(numbers["sets"]))), new, -1][k % 3])


def python_answers(
    net: pb.Network, numbers: dict[str, Any], setting: Setting, targets: list[int], plugin: bool
) -> list[tuple[np.ndarray, float]]:
    """What `posterior` says, and an effective sample size, inf where it is exact."""
    evidence: dict[str, Any] = {}
    brought = {}
    for node, one in zip(numbers["nodes"], setting.known, strict=True):
        if one is not None:
            evidence[node["name"]] = (
                node["levels"][one["value"]] if node["levels"] else one["value"]
            )
            if one["act"]:
                brought[node["name"]] = evidence[node["name"]]
    asked = net
    if numbers["new"] is not None:
        asked = asked.adapt(name="another")
    if brought:
        asked = asked.do(brought)
    if setting.at >= 0:
        new = setting.at == numbers["new"]
        evidence[net.group] = "another" if new else net.levels[setting.at]
    out = []
    for target in targets:
        name = numbers["nodes"][target]["name"]
        found = asked.posterior(evidence, name, plugin=plugin)
        if name in found.categories:
            out.append((found.probabilities[name].to_numpy(), found.ess))
        else:
            of = [found.mean[0], found.sd[0], *found.quantile([0.025, 0.5, 0.975])]
            out.append((np.array(of), found.ess))
    return out


def compared(
    script: Script,
    net: pb.Network,
    count: int,
    seed: int,
    *,
    plugin: bool = False,
    least: float = 0.1,
) -> list[int]:
    """How many answers were exact, and how many were drawn; raises where they differ."""
    exact = drawn = 0
    for setting in settings(script.numbers, count, seed, least):
        targets = [i for i, one in enumerate(setting.known) if one is None]
        ours = script.answers(setting, targets)
        theirs = python_answers(net, script.numbers, setting, targets, plugin)
        for target, one, (numbers, ess) in zip(targets, ours, theirs, strict=True):
            found = np.array(one.get("shares", one.get("numbers")))
            name = script.numbers["nodes"][target]["name"]
            if one["ess"] is None and np.isinf(ess):
                exact += 1
                scale = 1.0 if "shares" in one else numbers[1]
                np.testing.assert_allclose(found / scale, numbers / scale, rtol=1e-6, atol=1e-6,
                                           err_msg=f"{name} {setting}")  # fmt: skip
            else:
                drawn += 1
                share = 1 / ess + (0 if one["ess"] is None else 1 / one["ess"])
                if "shares" in one:
                    error = np.sqrt(numbers * (1 - numbers) * share)
                    assert (np.abs(found - numbers) <= 5 * error + 1e-6).all(), (name, setting)
                else:
                    error = numbers[1] * np.sqrt(share)
                    assert abs(found[0] - numbers[0]) <= 5 * error, (name, setting)
    return [exact, drawn]


@needs_browser
@pytest.mark.parametrize("plugin", [False, True])
def test_answers_are_those_of_python_where_all_is_continuous(
    chromium: Chromium, net: pb.Network, tmp_path: Path, plugin: bool
) -> None:
    script = Script(chromium, tmp_path, numbers_of(net, plugin=plugin))
    exact, drawn = compared(script, net, 30, seed=1, plugin=plugin)
    assert exact > 60
    assert not drawn


@needs_browser
def test_answers_are_those_of_python_where_columns_are_of_all_kinds(
    chromium: Chromium, mixed: pb.Network, tmp_path: Path
) -> None:
    script = Script(chromium, tmp_path, numbers_of(mixed))
    exact, drawn = compared(script, mixed, 12, seed=2, least=0.4)
    assert exact > 20
    assert drawn > 3


@needs_browser
@pytest.mark.parametrize("plugin", [False, True])
def test_answers_are_those_of_python_where_levels_have_an_order(
    chromium: Chromium, tmp_path: Path, plugin: bool
) -> None:
    kinds = {"grade": ["x", "y", "z"], "ward": ["p", "q", "r"]}
    table = mixed_table().drop(columns=["visits", "cost"])
    arcs = [arc for arc in MIXED if not {"visits", "cost"} & {*arc}] + [("ward", "grade")]
    net = pb.learn(table, group="site", inputs=["arm"], kinds=kinds, start=arcs, search=KEPT)
    assert net.fits["ward"].kind == net.fits["grade"].kind == "ordinal"
    script = Script(chromium, tmp_path, numbers_of(net, plugin=plugin))
    exact, _ = compared(script, net, 15, seed=6, plugin=plugin, least=0.4)
    assert exact > 20


@needs_browser
@pytest.mark.parametrize("plugin", [False, True])
def test_answers_are_those_of_python_with_a_regression_for_each_configuration(
    chromium: Chromium, tmp_path: Path, plugin: bool
) -> None:
    how = pb.Partial(continuous="conditional")
    arcs = [*MIXED, ("sex", "pressure"), ("event", "cost")]
    net = learned(mixed_table(), pooling=how, start=arcs)
    assert net.fits["pressure"].switches == ("arm", "sex", "grade")
    assert net.fits["cost"].switches == ("event",)
    script = Script(chromium, tmp_path, numbers_of(net, plugin=plugin))
    exact, _ = compared(script, net, 12, seed=8, plugin=plugin, least=0.4)
    assert exact > 20


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize(("pooling", "plugin"), [
    ("partial", False), ("partial", True), ("complete", False), ("none", True),
])  # fmt: skip
def test_answers_are_those_of_python_for_all_poolings(
    chromium: Chromium, tmp_path: Path, pooling: str, plugin: bool
) -> None:
    net = learned(mixed_table(seed=3), pooling=pooling)
    script = Script(chromium, tmp_path, numbers_of(net, plugin=plugin))
    exact, drawn = compared(script, net, 25, seed=4, plugin=plugin, least=0.2)
    assert exact > 50
    assert drawn > 5


@needs_browser
def test_special_functions_are_those_of_scipy(
    chromium: Chromium, tmp_path: Path, net: pb.Network
) -> None:
    run = Script(chromium, tmp_path, numbers_of(net)).run

    def told(code: str, points: list[Any]) -> np.ndarray:
        return np.array(run(f"{json.dumps(points)}.map((x) => {code})"))

    x = [1e-3, 0.3, 1.0, 2.5, 11.9, 12.1, 300.0, 1e6]
    np.testing.assert_allclose(told("logGamma(x)", x), special.gammaln(x), rtol=1e-13, atol=1e-14)
    z = [-30.0, -8.0, -3.1, -0.4, 0.0, 0.9, 5.0, 7.2]
    np.testing.assert_allclose(told("normalCdf(x)", z), special.ndtr(z), rtol=1e-7, atol=1e-15)
    t = [
        (a, df)
        for a in (-50.0, -3.0, 0.2, 1.7, 9.0)
        for df in (0.8, 1.0, 3.3, 40.0, 59.9, 60.1, 1e4)
    ]
    theirs = [special.stdtr(df, a) for a, df in t]
    np.testing.assert_allclose(told("tCdf(...x)", t), theirs, rtol=1e-8, atol=1e-10)
    density = [stats.t.logpdf(a, df, 0.5, 2.0) for a, df in t]
    # scipy's constant has lost 5 digits where there are 10,000 degrees of freedom.
    np.testing.assert_allclose(told("logT(x[0], 0.5, 4, x[1])", t), density, rtol=1e-11)
    far = [0.0, 0.1, 3.99, 4.01, -17.0, 39.9, 40.1, 500.0]
    np.testing.assert_allclose(told("sineIntegral(x)", far), special.sici(far)[0], atol=2e-11)
    for size in (3, 8, 64):
        theirs = np.polynomial.hermite_e.hermegauss(size)
        nodes, weights = run(f"hermite({size}).map((of) => [...of])")
        np.testing.assert_allclose(nodes, theirs[0], atol=1e-12)
        np.testing.assert_allclose(weights, theirs[1] / theirs[1].sum(), rtol=1e-10)


@needs_browser
def test_draws_have_the_distribution_of_nodes(
    chromium: Chromium, mixed: pb.Network, tmp_path: Path
) -> None:
    """Likelihood weighting tends to the exact answer."""
    script = Script(chromium, tmp_path, numbers_of(mixed))
    names = [node["name"] for node in script.numbers["nodes"]]
    known = [None] * len(names)
    known[names.index("arm")] = {"value": 1, "act": False}
    known[names.index("cost")] = {"value": 90.0, "act": False}
    known[names.index("ward")] = {"value": 1, "act": False}
    known[names.index("pressure")] = {"value": 120.0, "act": False}
    found = script.run(
        f"""(() => {{
          const known = {json.dumps(known)};
          const exact = ask(network, known);
          return [0, network.new].flatMap((j) => {{
            const {{ p, ess, columns }} = drawRows(network, known, j);
            return [{names.index("age")}, {names.index("visits")}].map((i) => {{
              const {{ mean, sd, method }} = exact.marginal(i, j);
              const drawn = columns.get(i).reduce((sum, x, k) => sum + p[k] * x, 0);
              return [method, ess, drawn - mean, sd];
            }});
          }});
        }})()"""
    )
    assert [method for method, *_ in found] == ["quadrature", "exact"] * 2
    for _, ess, difference, sd in found:
        assert 100 < ess < 4000
        assert 0 < abs(difference) < 4 * sd / np.sqrt(ess)


# What is in the page


def test_small_data_sets_are_not_offered(trial: pd.DataFrame, tmp_path: Path) -> None:
    few = pd.concat([trial[trial["clinic"] != "KY"], trial[trial["clinic"] == "KY"].head(9)])
    net = pb.learn(few, group="clinic", start=ARCS, search=KEPT)
    pb.report(net, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    numbers = json.loads(text.split('id="numbers">')[1].split("</script>")[0])["whatif"]
    assert "KY" not in numbers["sets"]
    assert len(numbers["sets"]) == 3
    own = net.fits["bmi"].coef[list(net.levels).index("KY"), 1]
    assert f"{own:.6g}" not in json.dumps(numbers)
    assert "Clinics with fewer than 10 rows are not offered" in text
    # All that is there was learned without it.
    assert not numbers["sure"]
    rest = pb.learn(few[few["clinic"] != "KY"], group="clinic", start=ARCS, search=KEPT)
    own = numbers_of(rest)
    assert [node["coef"] for node in numbers["nodes"]] == [node["coef"] for node in own["nodes"]]
    pb.report(net, tmp_path / "open.html", data=few, rows=True)
    text = (tmp_path / "open.html").read_text()
    numbers = json.loads(text.split('id="numbers">')[1].split("</script>")[0])["whatif"]
    assert "KY" in numbers["sets"]


def test_what_few_rows_tell_is_as_in_a_new_data_set() -> None:
    """Three of 150 rows of a site have the level z, and four the event."""
    table = mixed_table()
    one = table.index[table["site"] == "a"]
    table.loc[one, "grade"] = ["z"] * 3 + ["x"] * (len(one) - 3)
    table.loc[one, "event"] = ["yes"] * 4 + ["no"] * (len(one) - 4)
    net = learned(table)
    may = disclosed(net, pb.table(table, **READ))
    numbers = whatif_numbers(may.net, [str(level) for level in net.levels], may)
    suppressed = [of.split(" in ") for of in numbers["suppressed"]]
    assert {name for name, sets in suppressed if "a" in sets} >= {"grade", "pressure", "event"}
    at, new = numbers["sets"].index("a"), numbers["new"]
    nodes = {node["name"]: node for node in numbers["nodes"]}
    for name in ("pressure", "event"):
        assert nodes[name]["coef"][at] == nodes[name]["coef"][new]
        assert nodes[name]["cov"][at] == nodes[name]["cov"][new]
    assert nodes["age"]["coef"][at] != nodes["age"]["coef"][new]
    whole = {node["name"]: node for node in numbers_of(net)["nodes"]}
    assert whole["pressure"]["coef"][at] != whole["pressure"]["coef"][new]


def test_tables_are_as_in_a_new_data_set_where_few_rows_tell() -> None:
    rng = np.random.default_rng(6)
    table = pd.DataFrame({
        "site": np.repeat(["a", "b", "c"], 100), "x": rng.choice(["u", "v"], size=300),
        "y": rng.choice(["no", "yes"], size=300, p=[0.7, 0.3]),
    })  # fmt: skip
    table.loc[(table["site"] == "b") & (table["x"] == "u"), "y"] = "no"
    table.loc[table.index[(table["site"] == "b") & (table["x"] == "u")][:2], "y"] = "yes"
    net = pb.learn(table, group="site", pooling=pb.Partial(discrete="table"), start=[("x", "y")],
                   search=KEPT)  # fmt: skip
    rows = pb.table(table, group="site")
    may = disclosed(net, rows)
    numbers = whatif_numbers(may.net, ["a", "b", "c"], may)
    assert numbers["suppressed"] in (
        ["y in a and b"],
        ["y in b and c"],
    )  # with one alone, it follows
    (y,) = (node for node in numbers["nodes"] if node["name"] == "y")
    at, new = numbers["sets"].index("b"), numbers["new"]
    assert y["p"][at] == y["p"][new]


def test_ranges_do_not_tell_extremes_of_the_data(trial: pd.DataFrame, net: pb.Network) -> None:
    for node in numbers_of(net)["nodes"]:
        low, high, step, middle = node["range"]
        data = trial[node["name"]]
        assert data.min() not in (low, high)
        assert data.max() not in (low, high)
        assert abs(middle - data.mean()) < 0.2 * data.std()
        assert abs((high - low) / (6 * data.std()) - 1) < 0.15
        assert abs(round(low / step) * step - low) < 1e-9 * abs(high)


def test_without_pooling_there_is_no_new_data_set(trial: pd.DataFrame) -> None:
    net = pb.learn(trial, group="clinic", pooling="none", start=ARCS, search=KEPT)
    numbers = numbers_of(net)
    assert numbers["new"] is None
    assert numbers["sets"] == list(net.levels)


def test_where_a_variable_follows_from_others_there_is_nothing_to_ask(tmp_path: Path) -> None:
    table = pd.DataFrame({"F": list("aabb"), "x": [1.0, 2, 3, 5], "y": [2.0, 4, 6, 10]})
    net = pb.learn(table, group="F", pooling="complete", start=[("x", "y")], search=KEPT)
    numbers = numbers_of(net)
    assert numbers["leftOut"] == ["a", "b"]
    assert not numbers["sets"]
    assert numbers["new"] is None
    pb.report(net, tmp_path / "report.html", data=table, rows=True)
    assert "There is nothing to ask" in (tmp_path / "report.html").read_text()


def test_many_data_sets_take_estimates_for_certain_and_then_the_largest(
    net: pb.Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not numbers_of(net)["sure"]
    monkeypatch.setattr(whatif, "_MOST", 200)
    few = numbers_of(net)
    assert few["sure"]
    assert few["nodes"][1]["df"] == [None] * len(few["prior"])
    monkeypatch.setattr(whatif, "_MOST", 80)
    fewest = numbers_of(net)
    assert 0 < fewest["fewer"] < len(net.levels)
    kept = [net.levels[k] for k in np.argsort(-net.n)[: len(fewest["sets"])]]
    assert sorted(fewest["sets"]) == sorted(kept)
    assert fewest["new"] == len(fewest["sets"])


@needs_browser
def test_a_network_after_an_intervention_is_asked_too(
    chromium: Chromium, net: pb.Network, tmp_path: Path
) -> None:
    pb.report(net.do(gestation_days=250), tmp_path / "report.html")
    opened(chromium, tmp_path / "report.html")
    assert not problems(chromium)
    names = chromium.run("[...document.querySelectorAll('.what h4')].map((of) => of.textContent)")
    assert names == [name for name in NODES if name != "gestation_days"]
    expected = net.do(gestation_days=250).posterior({"clinic": net.levels[0]}, "birthweight_g")
    told = text_of(chromium, f"{row_of(net, 'birthweight_g')} .told")
    assert told.startswith(f"{expected.mean[0]:,.0f} (")
    pb.report(net.do(dict.fromkeys(NODES, 1.0)), tmp_path / "all.html")
    assert "There is nothing to ask" in (tmp_path / "all.html").read_text()


def test_a_data_set_called_new_is_no_other(trial: pd.DataFrame) -> None:
    table = trial.replace({"clinic": {"KY": "new"}})
    net = pb.learn(table, group="clinic", start=ARCS, search=KEPT)
    numbers = numbers_of(net)
    assert len(numbers["sets"]) == 4
    assert numbers["new"] == 4


# The page in a browser


@pytest.fixture(scope="module")
def page(net: pb.Network, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    pb.report(net, path)
    return path


def opened(chromium: Chromium, page: Path, width: int = 1300) -> Chromium:
    """The page where a reader asks: what answers is made when this part is near."""
    chromium.size(width, 900)
    chromium.open(page)
    assert chromium.run("document.querySelectorAll('.what').length") == 0
    chromium.run("document.getElementById('whatif').scrollIntoView({behavior: 'instant'})")
    chromium.wait_until(lambda: chromium.run("document.querySelector('.what') !== null"))
    chromium.settle()
    return chromium


def row_of(net: pb.Network, name: str) -> str:
    return f'[data-what="{net.dag.nodes.index(name)}"]'


def text_of(chromium: Chromium, selector: str) -> str:
    return chromium.run(f"document.querySelector({json.dumps(selector)}).textContent")


def problems(chromium: Chromium) -> list[Any]:
    kinds = ("Runtime.exceptionThrown", "Log.entryAdded")
    return [event for event in chromium.events if event.get("method") in kinds]


def requests(chromium: Chromium) -> list[str]:
    found = [e["params"] for e in chromium.events if e.get("method") == "Network.requestWillBeSent"]
    return [of["request"]["url"] for of in found if not of["request"]["url"].startswith("file:")]


@needs_browser
def test_a_value_that_is_set_by_mouse_changes_the_others(
    chromium: Chromium, net: pb.Network, page: Path
) -> None:
    opened(chromium, page)
    weight = row_of(net, "birthweight_g")
    before = text_of(chromium, f"{weight} .told")
    chromium.run(
        f"""document.querySelector('{row_of(net, "gestation_days")} [type=number]').value = ''"""
    )
    chromium.click(f'{row_of(net, "gestation_days")} [type="number"]')
    chromium.type("250")
    chromium.press("Enter")
    expected = net.posterior({"gestation_days": 250, "clinic": net.levels[0]}, "birthweight_g")
    found = text_of(chromium, f"{weight} .told")
    assert found != before
    assert found.startswith(f"{expected.mean[0]:,.0f} (")
    assert f"before: {before}" in found
    assert "gestation_days set to 250" in text_of(chromium, "#whatif-status")
    chromium.click(f'{row_of(net, "gestation_days")} [data-how="clear"]')
    assert text_of(chromium, f"{weight} .told") == before
    assert not problems(chromium)
    assert not requests(chromium)


@needs_browser
def test_an_intervention_changes_effects_only(
    chromium: Chromium, net: pb.Network, page: Path
) -> None:
    opened(chromium, page)
    told = {
        name: text_of(chromium, f"{row_of(net, name)} .told") for name in ("age", "birthweight_g")
    }
    chromium.run(
        f"""(() => {{
          const field = document.querySelector('{row_of(net, "bmi")} [type=range]');
          field.value = field.max;
          field.dispatchEvent(new Event('input', {{ bubbles: true }}));
        }})()"""
    )
    chromium.settle()
    assert text_of(chromium, f"{row_of(net, 'age')} .told") != told["age"]
    chromium.click(f"{row_of(net, 'bmi')} [data-how=do]")
    assert text_of(chromium, f"{row_of(net, 'age')} .told") == told["age"]
    assert text_of(chromium, f"{row_of(net, 'birthweight_g')} .told") != told["birthweight_g"]
    chromium.click("#whatif-reset")
    for name, words in told.items():
        assert text_of(chromium, f"{row_of(net, name)} .told") == words


@needs_browser
def test_it_is_used_by_keyboard_and_tells_what_changed(
    chromium: Chromium, net: pb.Network, page: Path
) -> None:
    opened(chromium, page)
    slider = f"{row_of(net, 'gestation_days')} [type=range]"
    chromium.run(f"document.querySelector({json.dumps(slider)}).focus()")
    for _ in range(3):
        chromium.press("ArrowRight")
    value = float(chromium.run(f"document.querySelector({json.dumps(slider)}).value"))
    chromium.wait_until(lambda: "gestation_days" in text_of(chromium, "#said"))
    clinic = net.levels[0]
    expected = net.posterior({"gestation_days": value, "clinic": clinic}, "birthweight_g").mean[0]
    assert text_of(chromium, "#said").startswith(
        f"gestation_days set to {value:g}. birthweight_g in {clinic}: {expected:,.0f} ("
    )
    chromium.press("Tab")  # to the number, and on to the buttons of the next row
    chromium.press("Tab")
    focus = chromium.run("document.activeElement.getAttribute('aria-label')")
    assert focus == "Set birthweight_g"
    chromium.press(" ")
    assert "birthweight_g set to" in text_of(chromium, "#whatif-status")


@needs_browser
def test_each_data_set_is_beside_the_population(
    chromium: Chromium, net: pb.Network, page: Path
) -> None:
    opened(chromium, page)
    chromium.click(f"{row_of(net, 'bmi')} [data-how=set]")
    chromium.run("new Promise((done) => setTimeout(done, 50))")  # the chart comes after the rows
    value = float(
        chromium.run(f"document.querySelector('{row_of(net, 'bmi')} [type=number]').value")
    )
    found = chromium.run(
        "[...document.querySelectorAll('#whatif-strip [data-set]')]"
        ".map((of) => [Number(of.dataset.set), Number(of.dataset.value)])"
    )
    new = net.adapt(name="another")
    expected = []
    for j, level in [(len(net.levels), "another"), (-1, None), *enumerate(net.levels)]:
        evidence: dict[str, Any] = {"bmi": value} | ({} if level is None else {"clinic": level})
        expected.append((j, new.posterior(evidence, "birthweight_g").mean[0]))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@needs_browser
@pytest.mark.parametrize("width", [400, 800, 1300])
def test_nothing_sticks_out_of_a_narrow_window(chromium: Chromium, page: Path, width: int) -> None:
    opened(chromium, page, width)
    inside = chromium.run(
        """[...document.querySelectorAll('#whatif *')].filter((of) => {
          const box = of.getBoundingClientRect();
          return box.width && (box.right > innerWidth + 1 || box.left < -1);
        }).map((of) => of.outerHTML.slice(0, 80))"""
    )
    assert not inside


@needs_browser
def test_all_controls_have_names(chromium: Chromium, page: Path) -> None:
    opened(chromium, page)
    nameless = chromium.run(
        """[...document.querySelectorAll('#whatif input, #whatif select, #whatif button')]
        .filter((of) => !of.textContent.trim() || of.matches('select'))
        .filter((of) => !(of.labels && of.labels.length))
        .filter((of) => !document.getElementById(of.getAttribute('aria-labelledby')))
        .map((of) => of.outerHTML)"""
    )
    assert not nameless


@needs_browser
def test_values_that_cannot_be_say_so(chromium: Chromium, tmp_path: Path) -> None:
    """A table of probabilities that has a zero."""
    rng = np.random.default_rng(5)
    old = rng.random(400) < 0.5
    table = pd.DataFrame({
        "site": np.repeat(["a", "b"], 200), "old": np.where(old, "yes", "no"),
        "ill": np.where(old & (rng.random(400) < 0.4), "yes", "no"),
    })  # fmt: skip
    net = pb.learn(table, group="site", pooling="none", start=[("old", "ill")], search=KEPT)
    script = Script(chromium, tmp_path, numbers_of(net))
    ill = {"value": 1, "act": False}
    for at in (0, -1):
        assert script.answers(Setting([{"value": 0, "act": False}, ill], at), []) == []
        assert script.run(
            f"!ask(network, [{{ value: 0, act: false }}, {json.dumps(ill)}]).possible({at})"
        )
        assert script.run(
            f"ask(network, [{{ value: 1, act: false }}, {json.dumps(ill)}]).possible({at})"
        )
    brought = {"value": 1, "act": True}
    assert script.run(
        f"ask(network, [{{ value: 0, act: false }}, {json.dumps(brought)}]).possible(0)"
    )


# A page with columns of all kinds


@pytest.fixture(scope="module")
def kinds() -> pb.Network:
    """Nothing leads to the count: its total effects take long."""
    return learned(mixed_table(), start=[arc for arc in MIXED if "visits" not in arc])


@pytest.fixture(scope="module")
def kinds_page(kinds: pb.Network, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kinds") / "report.html"
    pb.report(kinds, path, data=mixed_table(), rows=True)
    return path


@needs_browser
def test_levels_are_chosen_with_keys(
    chromium: Chromium, kinds: pb.Network, kinds_page: Path
) -> None:
    opened(chromium, kinds_page)
    for name, key in (("event", "ArrowDown"), ("arm", "ArrowDown")):
        chromium.run(f"document.querySelector('{row_of(kinds, name)} select').focus()")
        chromium.press(key)
    given = {"event": "no", "arm": "yes", "site": kinds.levels[0]}
    assert text_of(chromium, "#whatif-status") == "event set to no."
    levels = chromium.run(
        f"[...document.querySelectorAll('{row_of(kinds, 'grade')} .shares li')]"
        ".map((of) => of.lastChild.textContent)"
    )
    expected = kinds.posterior(given, "grade").probabilities["grade"]
    assert levels == [f"{100 * p:.1f}%" for p in expected]
    visits = kinds.posterior(given, "visits")
    low, high = visits.quantile([0.025, 0.975])
    told = text_of(chromium, f"{row_of(kinds, 'visits')} .told")
    assert told == f"{visits.mean[0]:.1f} ({low:.0f} to {high:.0f})"
    bars = chromium.run(f"document.querySelectorAll('{row_of(kinds, 'visits')} rect.now').length")
    assert bars > 2
    assert not problems(chromium)
    assert not requests(chromium)


@needs_browser
def test_what_is_drawn_at_random_says_so(
    chromium: Chromium, kinds: pb.Network, kinds_page: Path
) -> None:
    opened(chromium, kinds_page)
    assert text_of(chromium, "#whatif-note") == ""
    for name in ("event", "ward"):
        chromium.click(f"{row_of(kinds, name)} [data-how=set]")
    assert "±" in text_of(chromium, f"{row_of(kinds, 'age')} .told")
    assert "±" not in text_of(chromium, f"{row_of(kinds, 'visits')} .told")
    note = text_of(chromium, "#whatif-note")
    assert note.startswith(
        "Where ± stands, answers are approximate: means of weighted random draws"
    )


@needs_browser
@pytest.mark.parametrize("width", [400, 1300])
def test_a_page_of_all_kinds_fits_into_the_window(
    chromium: Chromium, kinds_page: Path, width: int
) -> None:
    opened(chromium, kinds_page, width)
    assert chromium.run("document.documentElement.scrollWidth") <= width
