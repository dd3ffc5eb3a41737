"""What a report says first, and how it looks where there are many data sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chromium import Chromium, browser
from test_report import Page

import poolbn as pb
from poolbn.assess.effectsizes import effect_sizes
from poolbn.page.cards import summary
from poolbn.page.context import Context, gathered
from poolbn.page.methods import about_search, methods
from poolbn.page.numbers import shorter
from poolbn.page.reporting import _with_options
from poolbn.page.summary import differences, in_short, leading, pooling_advice, unsure
from poolbn.page.tables import report_tables
from poolbn.show.figures import percent

KEPT = pb.HillClimb(max_iter=0)
needs_browser = pytest.mark.skipif(browser() is None, reason="there is no Chromium")


def schools(slopes: list[float], rows: int = 200, seed: int = 4) -> pd.DataFrame:
    """A child y whose slope on x is another one in each school; z follows from y in all alike."""
    rng = np.random.default_rng(seed)
    parts = []
    for j, slope in enumerate(slopes):
        x = rng.normal(size=rows)
        y = slope * x + rng.normal(size=rows)
        z = 0.9 * y + rng.normal(size=rows)
        parts.append(pd.DataFrame({"school": f"s{j}", "x": x, "y": y, "z": z}))
    return pd.concat(parts, ignore_index=True)


def material(table: pd.DataFrame, pooling: str = "partial", **more: Any) -> Context:
    net = pb.learn(table, group="school", pooling=pooling, start=[("x", "y"), ("y", "z")],
                   search=KEPT)  # fmt: skip
    given = {"boot": None, "found": None} | more
    return gathered(net, table, given.pop("boot"), given.pop("found"), **given)


def said(of: Context) -> str:
    return " ".join(point.sentence for point in in_short(of))


def names(sizes: Any) -> list[tuple[str, str]]:
    return [(size.parent, size.child) for size in sizes]


SLOPES = {
    "turning": [-1.0, 1.0, -0.9, 1.1, 0.2, 0.6],
    "keeping": [1.0, 1.5, 1.1, 1.6, 1.2, 1.4],
    "": [1.0] * 6,
}


@pytest.mark.parametrize("kind", SLOPES)
def test_effects_are_sorted_by_whether_their_differences_matter(kind: str) -> None:
    of = material(schools(SLOPES[kind]))
    found = differences(of)
    assert found.tested
    for other in ("turning", "keeping"):
        assert names(getattr(found, other)) == ([("x", "y")] if other == kind else [])
    (effect,) = of.estimates[0]
    crosses = effect.new_interval[0] <= 0 <= effect.new_interval[1]
    assert crosses == (kind == "turning")
    words = {
        "turning": "1 of 2 effects differs between schools so much that the range expected for a "
        "new school reaches zero: x → y. Look at each school",
        "keeping": "1 of 2 effects differs between schools in size, not in direction: x → y.",
        "": "No effect differs between schools",
    }
    assert words[kind] in said(of)


def test_complete_pooling_is_told_what_it_hides() -> None:
    of = material(schools(SLOPES["turning"]), pooling="complete")
    assert names(differences(of).denied) == [("x", "y")]
    assert "this network has one effect for all: learn with partial pooling" in said(of)


def test_arcs_that_the_bootstrap_does_not_find_are_unsure() -> None:
    counts = np.zeros((3, 3))
    counts[0, 1], counts[1, 2] = 3.0, 10.0
    boot = pb.Bootstrap(("x", "y", "z"), counts, 10, "row")
    of = material(schools(SLOPES["keeping"]), boot=boot)
    assert [(size.child, share) for size, share in unsure(of)] == [("y", 0.3)]
    assert "1 arc is unsure, found in few networks from resampled rows within schools" in said(of)
    assert "x → y (30%). Do not build on it." in said(of)


def test_tiers_determine_directions_and_order() -> None:
    table = schools(SLOPES["keeping"])
    of = material(table)
    assert all(size.reversible for size in of.sizes)
    assert leading(of) == ()
    assert "No effect is sure in its size and its direction" in said(of)
    ordered = material(table, constraints=pb.Constraints(tiers=[["x"], ["y"], ["z"]]))
    assert not any(size.reversible for size in ordered.sizes)
    assert names(leading(ordered)) == [("x", "y"), ("y", "z")]
    assert "in the order of time" in said(ordered)
    # One arc that is known directs the other: y -- z cannot meet x -> y in y.
    half = material(table, constraints=pb.Constraints(tiers=[["x"], ["y"]]))
    assert not any(size.reversible for size in half.sizes)
    assert [size.reversible for size in effect_sizes(half.net)] == [True, True]


@pytest.mark.parametrize("pooling", ["complete", "partial"])
def test_the_pooling_that_predicts_best_is_recommended(pooling: str) -> None:
    table = schools(SLOPES["turning"])
    compared = pb.compare(table, group="school", folds=3, poolings=["complete", "partial"],
                          constraints={"tiers": [["x"], ["y"], ["z"]]})  # fmt: skip
    of = material(table, pooling=pooling, found=compared)
    advice = pooling_advice(of)
    assert advice is not None
    assert (advice.best, advice.own) == ("partial", pooling)
    if pooling == "partial":
        assert "partial pooling, which this report shows, predicts best" in said(of)
    else:
        assert advice.behind is not None
        assert advice.behind.clear
        assert "Recommended is partial pooling" in said(of)
        assert "shows complete pooling, which predicts clearly worse" in said(of)


def test_a_report_says_which_search_found_the_graph() -> None:
    """A graph that is given has none."""
    table = schools(SLOPES["keeping"])
    net = pb.learn(table, group="school")
    of = gathered(net, table, None, None)
    assert dict(about_search(of))["Search"].startswith("an exact search where that is feasible")
    assert dict(about_search(of))["Score"].endswith("(BIC-w)")
    assert "searched for by BIC-w, with an exact search" in methods(of, "0")
    climbed = material(table)
    assert dict(about_search(climbed))["Search"] == "hill climbing"
    given = gathered(pb.fit(net.dag, table, group="school"), table, None, None)
    assert dict(about_search(given))["Search"] == "none"


def test_what_was_not_looked_at_is_named(tmp_path: Path) -> None:
    of = material(schools(SLOPES["keeping"]))
    assert "Not known here: how sure the arcs are" in said(of)
    pb.report(of.net, tmp_path / "report.html", constraints={"tiers": [["x"], ["y"], ["z"]]})
    page = Page(tmp_path / "report.html")
    targets = {a.get("id") for _, a in page.elements}
    links = [a["href"] for t, a in page.elements if t == "a" and a.get("href", "").startswith("#")]
    assert {link[1:] for link in links} <= targets
    assert page.numbers()["overview"]["first"] == 0
    text = (tmp_path / "report.html").read_text()
    assert "(pb.bootstrap, or <code>--bootstrap</code>)" in text
    assert "(pb.compare, or <code>--compare</code>)" in text
    assert ":not(pre) > code { white-space: nowrap; }" in text
    with pytest.raises(pb.GraphError, match="'w' in tier 1 is not a node"):
        pb.report(of.net, tmp_path / "report.html", constraints={"tiers": [["w"]]})


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("use --include-rows.", "use <code>--include-rows</code>."),
        ("<b>--two</b>", "&lt;b&gt;<code>--two</code>&lt;/b&gt;"),
        ("x--y and a---b", "x--y and a---b"),
    ],
)
def test_options_stay_on_one_line(text: str, html: str) -> None:
    assert _with_options(text) == html


# Many data sets


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = pb.random_network(pb.random_dag(12, 2.0, seed=3), 131, seed=3)
    table = pb.random_table(made, 20, seed=3)
    net = pb.learn(table, group=made.group, start=made.dag.arcs, search=KEPT)
    path = tmp_path_factory.mktemp("many") / "report.html"
    pb.report(net, path, data=table)
    return path


def test_131_data_sets_with_12_columns_are_less_than_a_megabyte(many: Path) -> None:
    assert many.stat().st_size < 7.5e5
    assert "network.json is too large for a report" in Page(many).words


@pytest.mark.slow
def test_300_data_sets_with_12_columns_are_less_than_a_megabyte(tmp_path: Path) -> None:
    made = pb.random_network(pb.random_dag(12, 1.5, seed=2), 300, seed=1)
    rows = pb.random_table(made, 30, seed=1)
    net = pb.learn(rows, group="F")
    pb.report(net, tmp_path / "r.html", data=rows)
    assert len(net.arcs) > 15
    assert (tmp_path / "r.html").stat().st_size < 1e6


def test_long_lists_of_one_value_are_short() -> None:
    zeros, more = [0.0] * 40, [0.0] * 39 + [0]
    assert shorter({"a": [zeros] * 31, "b": more, "c": [1] * 30, "d": [None] * 31}) == {
        "a": {"times": 31, "of": {"times": 40, "of": 0.0}},
        "b": more,
        "c": [1] * 30,
        "d": {"times": 31, "of": None},
    }


@needs_browser
def test_many_data_sets_are_a_summary_with_a_search(many: Path, tmp_path: Path) -> None:
    with Chromium(tmp_path) as page:
        page.size(1300, 900)
        page.open(many)
        rows = (
            "[...document.querySelectorAll('#detail .forest .pooled')]"
            ".map((of) => +of.dataset.level)"
        )
        dots = "document.querySelectorAll('#detail .swarm circle').length"
        arc = page.run("+document.querySelector('.arc.chosen').dataset.arc")
        own = Page(many).numbers()["arcs"][arc]["terms"][0]["own"]
        order = np.argsort(own).tolist()
        assert page.run(rows) == [*order[:6], *order[-6:]]
        assert page.run(dots) == 131
        population = "document.querySelector('#detail .forest .population line').getAttribute('y1')"
        first = "document.querySelector('#detail .forest .pooled line').getAttribute('y1')"
        assert float(page.run(population)) < float(page.run(first))
        page.click(".finder")
        name = Page(many).numbers()["levels"][order[60]]
        page.type(name)
        assert order[60] in page.run(rows)
        assert len(page.run(rows)) <= 12
        assert page.run("document.querySelectorAll('#detail details table').length") == 0
        page.click("#detail details summary")
        assert page.run("document.querySelectorAll('#detail details tbody tr').length") == 132


@needs_browser
@pytest.mark.parametrize("width", [1300, 400])
def test_tables_fit(width: int, many: Path, tmp_path: Path) -> None:
    wide = (
        "[...document.querySelectorAll('.scroll')]"
        ".filter((of) => of.scrollWidth > of.clientWidth + 1).length"
    )
    with Chromium(tmp_path) as page:
        page.size(width, 900)
        page.open(many)
        assert page.run(wide) == 0
        assert page.run("document.documentElement.scrollWidth - innerWidth") <= 0


def test_probabilities_of_arcs_stand_in_for_a_bootstrap() -> None:
    """An arc that is not there is unsure, and none that is sure leads for its size alone."""
    table = schools([1.0] * 4, rows=60)
    table["u"] = np.random.default_rng(3).normal(size=len(table))
    post = pb.arc_posterior(
        table, group="school", constraints={"tiers": [["x"], ["y"], ["z", "u"]]}
    )
    arcs = [("x", "y"), ("y", "z"), ("x", "u")]
    net = pb.learn(table, group="school", start=arcs, search=KEPT)
    of = gathered(net, table, None, None, evidence=(post,))
    ((weak, share),) = unsure(of)
    assert (weak.parent, weak.child) == ("x", "u")
    assert share == pytest.approx(post.probability("x", "u") + post.probability("u", "x"))
    assert share < 0.5
    text = said(of)
    assert (
        f"1 arc is unsure, with a probability below 90%: x → u ({percent(share)}). Do not" in text
    )
    assert "Not known here: how sure" not in text
    rest = pb.learn(table, group="school", start=arcs[:2], search=KEPT)
    assert "All arcs have a probability of 90% or more." in said(
        gathered(rest, table, None, None, evidence=(post,))
    )
    tiers = pb.Constraints(tiers=[["x"], ["y"], ["z", "u"]])
    known = gathered(net, table, None, None, constraints=tiers, evidence=(post,))
    assert names(leading(known)) == [("x", "y"), ("y", "z")]
    assert "is fixed, with a probability of 90% or more" in said(known)
    (heading,) = (c.heading for c in summary(known) if c.heading.startswith("Strongest"))
    assert heading == "Strongest effects that are sure"
    shown = report_tables(known)["arcs"]
    at = list(shown.columns).index("probability")
    assert {row[0].text: row[at].text for row in shown.rows}["x → u"] == f"{share:.2f}"
    boot = pb.bootstrap(table, group="school", replicates=5)
    assert "in few networks from resampled" in said(
        gathered(net, table, boot, None, evidence=(post,))
    )


def test_effects_of_arcs_that_nobody_looked_at_are_not_sure() -> None:
    table = schools([1.0] * 6)
    tiers = pb.Constraints(tiers=[["x"], ["y"], ["z"]])
    learned = gathered(
        pb.learn(table, group="school", constraints=tiers), table, None, None, constraints=tiers
    )
    assert leading(learned)
    assert "Whether these arcs are sure was not looked at" in said(learned)
    assert not any("sure" in card.heading for card in summary(learned) if "effects" in card.heading)
    brought = pb.fit("x -> y -> z", table, group="school")
    own = gathered(brought, table, None, None, constraints=tiers)
    assert "was not looked at" not in said(own)
    assert "Strongest effects that are sure" in [card.heading for card in summary(own)]


def test_a_sure_effect_is_of_an_arc_that_is_sure_by_all_evidence() -> None:
    """A bootstrap that finds an arc in seven of ten networks, in spite of a low threshold."""
    table = schools([1.0] * 4, rows=60)
    tiers = pb.Constraints(tiers=[["x"], ["y"], ["z"]])
    net = pb.learn(table, group="school", constraints=tiers)
    boot = pb.bootstrap(table, group="school", replicates=10, constraints=tiers)
    assert leading(gathered(net, table, boot, None, constraints=tiers))
    counts = boot.counts.copy()
    counts[0, 1] = 7
    weak = replace(boot, counts=counts)
    vars(weak)["threshold"] = 0.5  # as many more variables would make it
    of = gathered(net, table, weak, None, constraints=tiers)
    assert not unsure(of)
    assert names(leading(of)) == [("y", "z")]
