"""What reports and plots say of arcs that are in doubt."""

from __future__ import annotations

from pathlib import Path

import pytest

import poolbn as pb
from poolbn.page.context import pair_doubts

COLUMNS = ["clinic", "age", "bmi", "gestation_days", "birthweight_g"]


@pytest.fixture(scope="module")
def stats() -> pb.GroupStats:
    return pb.stats(pb.datasets.opt()[COLUMNS].dropna(), group="clinic")


@pytest.fixture(scope="module")
def net(stats: pb.GroupStats) -> pb.Network:
    return pb.learn(stats)


@pytest.fixture(scope="module")
def post(stats: pb.GroupStats) -> pb.ArcPosterior:
    return pb.arc_posterior(stats)


def test_report_shows_probabilities_and_p_values(
    tmp_path: Path, stats: pb.GroupStats, net: pb.Network, post: pb.ArcPosterior
) -> None:
    pb.report(net, tmp_path / "r.html", evidence=[post, pb.PC().pattern(stats)])
    text = (tmp_path / "r.html").read_text()
    shown = text[text.index('<section id="doubts"') :].split("</section>")[0]
    for name in ("probability", "p, independent", "independent given"):
        assert name in shown
    # The first row is the pair in most doubt.
    first = post.arcs().iloc[0]
    row = shown[shown.index("<tbody") :].split("</tr>")[0]
    assert first["parent"] in row
    assert first["child"] in row
    assert f"{first['probability']:.2f}" in row
    assert "The probability of an arc between the two is" in text
    assert "how sure the arcs are (pb.bootstrap" not in text
    assert "The largest p-value of tests of independence is" in text


def test_report_without_evidence_has_no_such_part(tmp_path: Path, net: pb.Network) -> None:
    pb.report(net, tmp_path / "r.html")
    assert 'id="doubts"' not in (tmp_path / "r.html").read_text()


def test_one_kind_of_evidence_alone(
    stats: pb.GroupStats, net: pb.Network, post: pb.ArcPosterior
) -> None:
    pattern = pb.PC().pattern(stats)
    by_tests = list(pair_doubts(net, None, pattern).values())
    assert all(pair.probability is None for pair in by_tests)
    table = pattern.table()
    wanted = [{x, y} for x, y in zip(table["x"], table["y"], strict=True)]
    assert [{pair.parent, pair.child} for pair in by_tests] == wanted
    by_probability = list(pair_doubts(net, post, None).values())
    assert all(pair.p_value is None for pair in by_probability)
    assert by_probability[0].probability == pytest.approx(post.arcs()["probability"].iloc[0])


def test_evidence_of_other_columns(
    tmp_path: Path, stats: pb.GroupStats, net: pb.Network, post: pb.ArcPosterior
) -> None:
    fewer = pb.arc_posterior(stats.select(["age", "bmi"]))
    with pytest.raises(pb.DataError, match="use the same columns for both"):
        pb.report(net, tmp_path / "r.html", evidence=fewer)
    with pytest.raises(pb.ArgumentError, match="expected evidence, got int"):
        pb.report(net, tmp_path / "r.html", evidence=3)
    with pytest.raises(pb.DataError, match="the posterior does not know the node"):
        pb.plots.network(net, strengths=fewer)


def test_plots_of_probabilities(net: pb.Network, post: pb.ArcPosterior) -> None:
    ax = pb.plots.strengths(post)
    assert ax.get_xlabel() == "probability of an arc"
    widths = [bar.get_width() + bar.get_x() for bar in ax.patches]
    assert max(widths) == pytest.approx(post.adjacency.max())
    assert pb.plots.network(net, strengths=post).texts
