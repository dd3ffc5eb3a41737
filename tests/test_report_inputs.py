"""What inputs change, in the report."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import poolbn as pb
from poolbn.page.cards import summary
from poolbn.page.context import gathered
from poolbn.page.tables import report_tables, treatment_tables


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    n = 240
    site = np.repeat(["a", "b", "c"], n // 3)
    arm = np.where(rng.random(n) < 0.5, "treated", "control")
    y = rng.normal(size=n) - 1.5 * (arm == "treated")
    event = np.where(rng.random(n) < 0.4, "yes", "no")
    frame = pd.DataFrame({"site": site, "arm": arm, "y": y, "event": event})
    frame.loc[::9, "event"] = None
    return frame


@pytest.fixture(scope="module")
def net(rows: pd.DataFrame) -> pb.Network:
    return pb.learn(rows.dropna(), group="site", inputs=["arm"])


def test_the_table_has_the_effects_of_the_rows(rows: pd.DataFrame, net: pb.Network) -> None:
    of = gathered(net, rows, None, None)
    found = pb.treatment_effects(rows, treatment="arm", group="site", outcomes=["y", "event"])
    pd.testing.assert_frame_equal(of.treated["arm"], found)
    (table,) = treatment_tables(of)
    assert [row[0].text for row in table.rows] == ["y", "event"]  # the clearest first
    told = dict(zip(table.columns, table.rows[0], strict=True))
    y = found.set_index("child").loc["y"]
    assert told["effect"].value == y["mean"]
    assert told["b"].value == y["b"]
    assert told["rows"].text == "240"
    assert dict(zip(table.columns, table.rows[1], strict=True))["rows"].text == str(
        rows["event"].notna().sum()
    )


def test_the_summary_says_what_is_clear(rows: pd.DataFrame, net: pb.Network) -> None:
    _, card, *_ = summary(gathered(net, rows, None, None))
    assert card.heading == "What arm changes"
    clear, others = card.sentences
    assert re.match(r"Clear: y −1\.\d+ \(−\d\.\d+ to −\d\.\d+\)\.", clear)
    assert others.startswith("Not clear: event = yes odds ratio ")


def test_effects_of_few_rows_are_not_shown(rows: pd.DataFrame) -> None:
    few = pd.concat([rows, rows.head(6).assign(site="tiny", event="no")])
    net = pb.learn(few.dropna(), group="site", inputs=["arm"])
    (table,) = treatment_tables(gathered(net, few, None, None))
    assert "tiny" not in table.columns
    (table,) = treatment_tables(gathered(net, few, None, None, open=True))
    assert dict(zip(table.columns, table.rows[0], strict=True))["tiny"].text != "–"


def test_the_page_has_it_only_with_inputs(
    rows: pd.DataFrame, net: pb.Network, tmp_path: Path
) -> None:
    pb.report(net, tmp_path / "with.html", data=rows)
    pb.report(pb.learn(rows.dropna(), group="site"), tmp_path / "without.html", data=rows)
    assert "What arm changes" in (tmp_path / "with.html").read_text(encoding="utf-8")
    assert "What arm changes" not in (tmp_path / "without.html").read_text(encoding="utf-8")


def test_an_input_that_describes_data_sets(tmp_path: Path, rows: pd.DataFrame) -> None:
    size = rows["site"].map({"a": 10.0, "b": 20.0, "c": 35.0})
    made = rows[["site", "y"]].assign(size=size)
    net = pb.learn(made, group="site", inputs=["size"])
    pb.report(net, tmp_path / "r.html", data=made)
    # There is nothing to compare inside data sets.
    assert "What size changes" not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_rows_with_missing_values_count(rows: pd.DataFrame) -> None:
    incomplete = rows.assign(y=rows["y"].where(np.arange(len(rows)) % 11 > 0))
    net = pb.learn(incomplete, group="site", inputs=["arm"], missing="em")
    of = gathered(net, incomplete, None, None)
    cards = {card.heading: " ".join(card.sentences) for card in summary(of)}
    lack = incomplete.isna().any(axis=1)
    assert f"{lack.sum()} rows with missing values count for those they have." in cards["Data"]
    assert "left out" not in cards["Data"]
    tables = report_tables(of)
    told = {row[0].text: row for row in tables["missing"].rows}
    for name in ("y", "event"):
        assert told[name][1].value == incomplete[name].isna().mean()
        assert told[name][-1].value == incomplete.loc[lack, name].notna().sum()
    by_site = lack.groupby(incomplete["site"]).sum()
    columns = list(tables["data"].columns)
    assert "left out" not in columns
    found = {row[0].text: row[columns.index("incomplete")].value for row in tables["data"].rows}
    assert found == by_site.to_dict()


def test_data_sets_alone_have_complete_rows_only(rows: pd.DataFrame, tmp_path: Path) -> None:
    """Beside a network by EM, that says so, with both numbers."""
    net = pb.learn(rows, group="site", missing="em")
    pb.report(net, tmp_path / "r.html", data=rows)
    told = f"its own complete rows alone, in all {len(rows.dropna())} of {len(rows)} rows"
    assert told in (tmp_path / "r.html").read_text(encoding="utf-8")
    pb.report(pb.learn(rows.dropna(), group="site"), tmp_path / "s.html", data=rows.dropna())
    assert "no pooling: its own rows alone" in (tmp_path / "s.html").read_text(encoding="utf-8")


def test_data_sets_that_are_called_true_and_false(rows: pd.DataFrame, tmp_path: Path) -> None:
    """Which pandas takes for a choice of columns."""
    made = rows[["arm", "y"]].assign(site=np.arange(len(rows)) % 2 == 0)
    net = pb.learn(made, group="site")
    pb.report(net, tmp_path / "r.html", data=made)
    assert "True" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_no_row_has_the_input_and_an_outcome(rows: pd.DataFrame) -> None:
    made = rows[["site", "y"]].assign(dose=np.arange(len(rows)) % 7 + 0.5)
    net = pb.learn(made, group="site", inputs=["dose"])
    even = np.arange(len(rows)) % 2 == 0
    apart = made.assign(y=made["y"].where(even), dose=made["dose"].where(~even))
    assert gathered(net, apart, None, None).treated == {}
