"""What notebooks show: a picture and a short table, with names as text and nothing else."""

from __future__ import annotations

import base64
import re
import warnings
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hostile import NAMES

import poolbn as pb

SVG = "{http://www.w3.org/2000/svg}"


class Shown(HTMLParser):
    """The elements and the text of a piece of HTML, and its pictures."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.pictures: list[ET.Element] = []
        self.source = result._repr_html_()
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag == "img":
            head, _, data = str(dict(attrs)["src"]).partition(",")
            assert head == "data:image/svg+xml;base64"
            self.pictures.append(ET.fromstring(base64.b64decode(data)))

    def handle_data(self, data: str) -> None:
        self.text += data


def made(names: tuple[str, ...] = ("x", "y"), sets: tuple[str, ...] = ("a", "b")) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    rows = {name: k * x + rng.normal(size=60) for k, name in enumerate(names)}
    return pd.DataFrame(rows).assign(F=[sets[i % len(sets)] for i in range(60)])


def results(rows: pd.DataFrame) -> list[Any]:
    """A network, and a bootstrap of the same arc."""
    names = tuple(name for name in rows.columns if name != "F")
    arc = {"required": [names]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = pb.learn(rows, group="F", constraints=arc, pooling="complete")
    return [net, pb.Bootstrap(names, np.array([[0.0, 9.0], [0.0, 0.0]]), 10, "row")]


def compared(rows: pd.DataFrame) -> pb.Comparison:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pb.compare(rows, group="F", folds=2, poolings=["complete", "partial"])


def test_results_show_their_picture_and_a_table() -> None:
    before = plt.get_fignums()
    net, boot, found = map(Shown, (*results(made()), compared(made())))
    for shown in (net, boot, found):
        assert "table" in shown.tags
        assert len(shown.pictures) == 1
        assert shown.pictures[0].tag == f"{SVG}svg"
    (picture,) = net.pictures
    assert [t.text for t in picture.iter(f"{SVG}tspan")] == ["x", "y"]
    assert len(picture.findall(f".//{SVG}polygon")) == 1  # the head of the arc
    assert "x -> y" in net.text
    assert "95% interval" in net.text
    assert "x → y" in boot.text
    assert "partial" in found.text
    assert plt.get_fignums() == before  # else a notebook would show them twice


def test_a_table_of_many_arcs_is_short() -> None:
    names = tuple(f"v{i}" for i in range(7))
    net = pb.random_network(pb.Dag(names, [(a, b) for a in names for b in names if a < b]), 2)
    shown = Shown(net)
    assert shown.source.count("<tr") == 1 + 12
    assert "9 more in .effects()" in shown.text
    assert len(shown.pictures[0].findall(f".//{SVG}polygon")) == 21


def test_a_network_without_arcs_is_shown() -> None:
    shown = Shown(pb.random_network(pb.Dag(["x", "y"]), 2))
    assert "no arcs" in shown.text
    assert len(shown.pictures) == 1


def test_a_network_of_all_kinds_has_a_table() -> None:
    rows = made()
    rows["y"] = np.where(rows["y"] > 0, "high", "low")
    arc = {"required": [("x", "y")]}
    shown = Shown(pb.learn(rows, group="F", constraints=arc, pooling="complete"))
    assert "x -> y = low" in shown.text
    assert "odds ratio" in shown.text


def check_harmless(plain: Shown, hostile: Shown) -> None:
    """The same elements and attributes, and nothing that runs."""
    assert hostile.tags <= plain.tags | {"br"}
    assert hostile.attributes == plain.attributes
    assert all(c.isprintable() or c == "\n" for c in hostile.source)
    for ours, theirs in zip(plain.pictures, hostile.pictures, strict=True):
        tags = {element.tag for element in ours.iter()}
        assert {element.tag for element in theirs.iter()} <= tags
        for element in theirs.iter():
            assert not [key for key in element.attrib if key.lower().startswith("on")]
            links = [v for key, v in element.attrib.items() if key.endswith("href")]
            assert all(re.match("#[a-zA-Z]", link) for link in links)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_from_outside_are_text_and_nothing_else(name: str) -> None:
    if not name.strip() or len(name) > 100:
        pytest.skip("no name of a column")
    plain, hostile = results(made()), results(made((name, "y"), (name, "b")))
    for one, other in zip(plain, hostile, strict=True):
        check_harmless(Shown(one), Shown(other))


def test_a_comparison_shows_names_from_outside_as_text() -> None:
    rows = made(("<script>alert(1)</script>", "y"), ("<b>", '"onload="x'))
    check_harmless(Shown(compared(made())), Shown(compared(rows)))
