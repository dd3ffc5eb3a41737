"""The paper's claims beside results with known answers, and the report."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from benchmarks.study.__main__ import app
from benchmarks.study.claims import (
    FALLS,
    RATIO,
    RISES,
    SHARE,
    Claim,
    Line,
    Rule,
    Statistic,
    above,
    below,
    check_claims,
    weighted_quantile,
    within,
)
from benchmarks.study.figures import figures_of
from benchmarks.study.paper import CLAIMS
from benchmarks.study.reporting import write_report
from benchmarks.study.residuals import beyond, models_beyond
from benchmarks.study.run import run_study
from benchmarks.study.sides import side_runs
from benchmarks.study.study import MODELS, PRESETS, VARIANTS, Measures, Preset
from benchmarks.study.table import by_data_set, read_study, save_study
from hypothesis import given
from typer.testing import CliRunner

from poolbn.errors import FileError

INF, NAN = float("inf"), float("nan")


def results(
    models: tuple[str, ...] = ("LME", "CGBN"), **columns: list[float | str]
) -> pd.DataFrame:
    """Results of models on as many data sets, four of each network; 1 where nothing is said.

    Columns are like shd_LME; `n_over_p`, `N` and `scenario` belong to the data sets.
    """
    n = len(next(iter(columns.values())))
    rows = []
    for i in range(n):
        for model in models:
            row = dict.fromkeys(Measures._fields, 1.0)
            row |= {"scenario": "balanced", "N": 10, "mean_parents": 2, "F": 5, "model": model}
            row |= {"network": i // 4, "rows": 10, "replicate": i % 4}
            for name, values in columns.items():
                if name in row:
                    row[name] = values[i]
                elif name.endswith(f"_{model.replace('-', '_')}"):
                    row[name.removesuffix(f"_{model.replace('-', '_')}")] = values[i]
            rows.append(row)
    return pd.DataFrame(rows)


def line(table: pd.DataFrame, statistic: Statistic, paper: float | None = 0.5,
         rule: Rule = SHARE, where: str = "N > 0", by: str = "") -> Line:  # fmt: skip
    (found, *_) = check_claims(table, [Claim("part", "what", where, statistic, paper, rule, by)])
    return found


SHD = ("shd LME", "shd CGBN")
KL = ("kl LME", "kl CGBN")


# Statistics


def test_shares_count_lower_equal_and_higher() -> None:
    table = results(shd_LME=[1, 2, 3, 4, 5, 6, 7, 8], shd_CGBN=[2, 3, 3, 3, 3, 3, 3, 9])
    shares = {of: line(table, Statistic(*SHD, of)).values for of in ("lower", "equal", "higher")}
    assert {of: float(value[0]) for of, value in shares.items()} == {
        "lower": 3 / 8, "equal": 1 / 8, "higher": 4 / 8}  # fmt: skip
    assert line(table, Statistic(*SHD, "at most")).values[0] == 0.5


def test_what_cannot_be_computed_is_worse_and_two_of_it_are_equal() -> None:
    table = results(kl_LME=[1, INF, NAN, INF], kl_CGBN=[NAN, 2, 3, INF])
    assert line(table, Statistic(*KL)).values[0] == 1 / 4
    assert line(table, Statistic(*KL, "equal")).values[0] == 1 / 4
    ratios = sorted([0.0, INF, INF, 1.0])
    for at, expected in ((0.0, ratios[0]), (1 / 3, ratios[1]), (1.0, ratios[3])):
        assert line(table, Statistic(*KL, "ratio", at), 1.0, RATIO).values[0] == expected
    f1 = results(f1_LME=[0.9, NAN, 0.5, 0.1], f1_CGBN=[NAN, 0.2, 0.5, 0.1])
    assert line(f1, Statistic("f1 LME", "f1 CGBN", "difference")).values[0] == pytest.approx(0.175)


def test_two_perfect_graphs_have_the_ratio_1() -> None:
    table = results(shd_LME=[0, 0, 3, 2], shd_CGBN=[0, 4, 0, 4])
    for at, expected in ((0.0, 0.0), (1 / 3, 0.5), (2 / 3, 1.0), (1.0, INF)):
        found = line(table, Statistic(*SHD, "ratio", at), 1.0, RATIO)
        assert found.values[0] == pytest.approx(expected)


counted = st.lists(
    st.tuples(st.sampled_from([-2.0, 0.0, 0.5, 1.0, 7.0]), st.integers(0, 3)), min_size=1
).filter(lambda pairs: any(count for _, count in pairs))


@given(pairs=counted, at=st.floats(0, 1))
def test_weighted_quantiles_are_those_of_repeated_values(
    pairs: list[tuple[float, int]], at: float
) -> None:
    values, counts = (np.array(column) for column in zip(*pairs, strict=True))
    found = weighted_quantile(values, counts[None, :], at)
    assert found[0] == pytest.approx(np.quantile(np.repeat(values, counts), at), abs=1e-12)


def test_no_values_have_no_quantile() -> None:
    assert np.isnan(weighted_quantile(np.array([1.0]), np.array([[0]]), 0.5)).all()
    assert np.isnan(weighted_quantile(np.empty(0), np.empty((1, 0), dtype=int), 0.5)).all()


def test_the_interval_is_over_networks() -> None:
    # All data sets of a network go together: of two networks, both draws are the same one in half
    # of the samples, so the interval is everything. Of forty with half of the data sets won in
    # each, nothing varies.
    one_each = results(shd_LME=[0] * 4 + [2] * 4, shd_CGBN=[1] * 8)
    assert line(one_each, Statistic(*SHD)).intervals.tolist() == [[0, 1]]
    half_each = results(shd_LME=[0, 0, 2, 2] * 40, shd_CGBN=[1] * 160)
    assert line(half_each, Statistic(*SHD)).intervals.tolist() == [[0.5, 0.5]]
    # A binomial share of 100 networks has the standard error 0.05.
    many = results(shd_LME=[0] * 200 + [2] * 200, shd_CGBN=[1] * 400)
    low, high = line(many, Statistic(*SHD)).intervals[0]
    assert high - low == pytest.approx(2 * 1.96 * 0.05, rel=0.1)
    assert line(many, Statistic(*SHD)).intervals.tolist() == [[low, high]]


# Verdicts


@pytest.mark.parametrize(
    ("rule", "values", "interval", "paper", "verdict"),
    [
        (SHARE, [0.60], [0.55, 0.65], 0.56, "agrees"),
        (SHARE, [0.60], [0.59, 0.61], 0.625, "agrees"),
        (SHARE, [0.60], [0.59, 0.61], 0.95, "direction agrees"),
        (SHARE, [0.49], [0.48, 0.50], 0.53, "disagrees"),
        (RATIO, [1.10], [1.00, 1.20], 1.01, "agrees"),
        (RATIO, [1.10], [1.09, 1.11], 1.06, "agrees"),
        (RATIO, [1.10], [1.09, 1.11], 2.00, "direction agrees"),
        (RATIO, [1.10], [1.09, 1.11], 0.99, "disagrees"),
        (RATIO, [1.10], [1.09, 1.11], 1.00, "disagrees"),
        (RISES, [1, 2, 3], None, NAN, "agrees"),
        (RISES, [1, 1.95, 1.94, 3], None, NAN, "agrees"),
        (RISES, [1, 3, 2], None, NAN, "direction agrees"),
        (RISES, [1, 3, 1], None, NAN, "disagrees"),
        (FALLS, [3, 2, 1], None, NAN, "agrees"),
        (FALLS, [3, 4, 1], None, NAN, "direction agrees"),
        (FALLS, [1, 2, 3], None, NAN, "disagrees"),
        (above(0.5), [0.6, 0.7, 0.8], None, NAN, "agrees"),
        (above(0.5), [0.6, 0.4, 0.8], None, NAN, "direction agrees"),
        (below(0.5), [0.6, 0.4, 0.8], None, NAN, "disagrees"),
        (within(-1, 1), [-1, 0, 1], None, NAN, "agrees"),
        (within(-1, 1), [-2, 0, 1], None, NAN, "direction agrees"),
    ],
)
def test_rules(
    rule: Rule, values: list[float], interval: list[float] | None, paper: float, verdict: str
) -> None:
    ours = np.array(values, dtype=float)
    intervals = np.array([interval or [NAN, NAN]] * len(values))
    assert rule.judge(ours, intervals, paper) == verdict


def test_a_claim_is_about_its_own_data_sets() -> None:
    table = results(shd_LME=[0, 2, 0, 2], shd_CGBN=[1] * 4, n_over_p=[0.1, 0.3, 0.15, 0.19],
                    N=[10, 10, 20, 20])  # fmt: skip
    few = line(table, Statistic(*SHD), where="n_over_p < 0.2")
    assert (few.data_sets, few.values[0]) == (3, 2 / 3)
    by = line(table, Statistic(*SHD), None, RISES, by="N")
    assert (by.levels, by.values.tolist()) == (("10", "20"), [0.5, 0.5])
    bins = line(table, Statistic(*SHD), None, FALLS, by="n/p")
    assert bins.levels == ("0.1 - 0.2", "0.2 - 0.5")
    assert bins.verdict == "agrees"


def test_without_the_data_there_is_no_verdict() -> None:
    table = results(shd_LME=[1, 2, 3, 4], shd_CGBN=[1, 1, 1, 1])
    assert line(table, Statistic("shd LME", "shd GBN")).verdict == "no data"
    assert line(table, Statistic(*SHD), where="N == 50").verdict == "no data"
    assert line(table, Statistic(*SHD), None, RISES, by="N").verdict == "no data"


def test_another_form_of_a_measure_has_a_line_where_it_matters() -> None:
    claim = Claim("part", "what", "N > 0", Statistic(*KL), 1.0, SHARE)
    table = results(kl_LME=[1] * 4, kl_CGBN=[2] * 4, kl_sum_LME=[3] * 4, kl_sum_CGBN=[2] * 4)
    first, second = check_claims(table, [claim])
    assert (first.verdict, first.measure) == ("agrees", "")
    assert (second.verdict, second.measure) == ("disagrees", "KL summed over data sets")
    same = results(kl_LME=[1] * 4, kl_CGBN=[2] * 4, kl_sum_LME=[1] * 4, kl_sum_CGBN=[2] * 4)
    assert len(check_claims(same, [claim])) == 1


def test_another_model_can_stand_in() -> None:
    table = results(shd_LME=[0, 0, 0, 2], shd_CGBN=[1] * 4)
    claim = Claim("part", "what", "N > 0", Statistic(*SHD), 0.25, SHARE)
    (swapped,) = check_claims(table, [claim], {"LME": "CGBN", "CGBN": "LME"})
    assert (swapped.values[0], swapped.verdict) == (0.25, "agrees")


def test_all_numbers_of_the_paper_are_there() -> None:
    once = [c for c in CLAIMS if not c.what.endswith(", balanced and unbalanced")]
    shares = sorted(c.paper for c in once if c.paper is not None and c.statistic.is_share)
    assert shares == sorted(
        [0.94, 0.96, 0.65, 0.93, 0.52, 0.60, 0.75, 0.78, 0.35, 0.16, 0.47, 0.75, 0.78, 0.75, 0.60]
    )
    others = [c for c in CLAIMS if c.paper is not None and not c.statistic.is_share]
    ratios = sorted(c.paper for c in others if "turned round" not in c.what)
    assert ratios == sorted(
        [1, 0.95, 1.05, 0.93, 0.87, 1, 1.07, 1, 1.23, 1.07, 1, 1.35, 1.001, 0.923, 1.027,
         0.731, 0.003, 1.047, 1.01, 0.88, 1.07, 1.03, 0.942, 1.306, 1.1, 0.818, 2.190]
    )  # fmt: skip
    assert len(set(CLAIMS)) == len(CLAIMS)


# Reports


TINY = Preset((4, 5), (1, 2), (2, 3), (3,), rows=(10, 20), networks=1, replicates=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "tiny", TINY)
        out = tmp_path_factory.mktemp("study")
        run_study(out / "results", preset="tiny", workers=1)
        write_report(out / "results", out / "report")
        yield out


def test_the_report_is_whole(folder: Path) -> None:
    report = folder / "report"
    files = {str(file.relative_to(report)) for file in report.rglob("*") if file.is_file()}
    figures = {f"figures/{figure.name}.{e}" for figure in figures_of() for e in ("png", "svg")}
    assert files == figures | {"report.md", "report.html", "cells.csv", "results.parquet"}
    for figure in figures_of():
        assert (report / f"figures/{figure.name}.png").read_bytes().startswith(b"\x89PNG")
        assert ET.parse(report / f"figures/{figure.name}.svg").getroot().tag.endswith("svg")
    text = (report / "report.md").read_text()
    for claim in CLAIMS:
        assert claim.what.replace("|", "\\|") in text
    assert "40 data sets, 120 networks" in text


def test_tables_in_markdown_have_as_many_cells_as_columns(folder: Path) -> None:
    lines = (folder / "report" / "report.md").read_text().replace("\\|", "").splitlines()
    tables = 0
    for above_it, row in pairwise(lines):
        if row.startswith("|"):
            tables += not above_it.startswith("|")
            if above_it.startswith("|"):
                assert row.count("|") == above_it.count("|"), row
    assert tables == 5 + 3


class Page(HTMLParser):
    """Checks that what opens closes, and collects what is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.sources += [str(value) for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_self_contained(folder: Path) -> None:
    page = Page()
    page.feed((folder / "report" / "report.html").read_text())
    assert not page.open
    assert len(page.sources) == len(figures_of())
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.sources)
    assert page.seen.count("h3") == len({claim.part for claim in CLAIMS})


def test_the_file_gives_the_same_report(folder: Path, tmp_path: Path) -> None:
    report = folder / "report"
    write_report(report / "results.parquet", tmp_path)
    files = [file.relative_to(report) for file in report.rglob("*") if file.is_file()]
    assert len(files) > 4
    for file in files:
        assert (report / file).read_bytes() == (tmp_path / file).read_bytes(), file


def test_the_file_is_compact(folder: Path) -> None:
    table = read_study(folder / "report" / "results.parquet").table
    assert set(table.dtypes.astype(str)) == {"float32", "int32", "str"}
    assert tuple(table.columns) == Measures._fields


def test_means_of_cells(folder: Path) -> None:
    with (folder / "report" / "cells.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 2 * 5
    row = next(r for r in rows if (r["scenario"], r["N"], r["F"]) == ("unbalanced", "5", "3"))
    own = read_study(folder / "results").table.query(
        f"scenario == 'unbalanced' and N == 5 and F == 3 and rows == {row['rows']} "
        f"and mean_parents == {row['mean_parents']} and model == 'LME'"
    )
    assert float(row["SHD LME"]) == own["shd"].mean()
    assert float(row["KL LME"]) == pytest.approx(own["kl"].mean(), rel=1e-5)


@pytest.fixture(scope="module")
def side_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenarios = ("homogeneous", "homogeneous-original", "homogeneous-worded")
    thin = Preset((4,), (1,), (2,), (), (10,), networks=2, replicates=1, scenarios=scenarios)
    out = tmp_path_factory.mktemp("sides")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "thin", thin)
        run_study(out, preset="thin", models=("GBN", "CGBN", "LME", "LME-ML"), workers=1)
        yield out


def test_side_runs_change_one_thing(side_results: Path) -> None:
    assert set(VARIANTS) < set(MODELS)
    table = read_study(side_results).table
    runs = {run.name: run for run in side_runs(table, CLAIMS)}
    assert list(runs) == ["published", "LME-ML", "worded", "original", "exchanged"]
    place = next(i for i, c in enumerate(CLAIMS) if c.what == "KL LME / GBN, median")
    for name, scenario, model in (
        ("published", "homogeneous", "LME"),
        ("LME-ML", "homogeneous", "LME-ML"),
        ("original", "homogeneous-original", "LME"),
    ):
        own = table[table["scenario"] == scenario].set_index("model")["kl"]
        expected = np.median(own[model].to_numpy("f8") / own["GBN"].to_numpy("f8"))
        assert runs[name].lines[place].values[0] == pytest.approx(expected, rel=1e-6)
    assert runs["exchanged"].lines[place].verdict == "no data"
    turned, usual = (
        next(i for i, c in enumerate(CLAIMS) if c.what == f"SHD LME / {other}, median")
        for other in ("CGBN", "GBN")
    )
    swapped, published = runs["exchanged"].lines[turned], runs["published"].lines[usual]
    assert swapped.values[0] == published.values[0]
    assert swapped.claim.paper == runs["published"].lines[turned].claim.paper


@pytest.mark.slow
def test_the_report_has_a_table_of_side_runs(side_results: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(side_results), "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "report.md").read_text()
    assert "## One thing changed at a time" in text
    assert "Beyond the paper" not in text
    assert "| what | paper | published | LME-ML | worded | original | exchanged |" in text
    assert [file.stem for file in (tmp_path / "figures").glob("*.svg")] == ["homogeneous"]


# Beyond the paper


def beyond_results(**columns: list[float | str]) -> pd.DataFrame:
    return results(("GBN", "CGBN", "LME", "LME-pooled"), **columns)


def test_targets_are_met_or_missed() -> None:
    table = beyond_results(
        kl_LME_pooled=[2.0] * 9 + [4.0] * 3, kl_CGBN=[3.0] * 12, kl_LME=[2.5] * 8 + [1.0] * 4,
        F=[5] * 8 + [20] * 4,
    )  # fmt: skip
    (found,) = beyond(table)
    assert found.model == "LME-pooled"
    lines = {line.claim.what: line for line in found.lines}
    ahead = lines["KL lower than that of CGBN, balanced, |F| ≥ 5"]
    assert (ahead.values[0], ahead.verdict) == (9 / 12, "disagrees")
    by = lines["KL lower than that of LME, balanced, by |F|"]
    assert (by.levels, by.values.tolist()) == (("5", "20"), [1.0, 0.0])
    many = beyond_results(kl_LME_pooled=[2.0] * 17 + [4.0] * 3, kl_CGBN=[3.0] * 20)
    first = beyond(many)[0].lines[0]
    assert (first.values[0], first.verdict) == (0.85, "agrees")
    # What was not run has no line.
    assert not [what for what in lines if "homogeneous" in what or "LME-scaled" in what]


def test_kinds_of_networks_with_worse_graphs() -> None:
    table = beyond_results(
        shd_LME_pooled=[3.0] * 4 + [9.0] * 4 + [5.0] * 4, shd_LME=[2.0] * 4 + [4.0] * 4 + [6.0] * 4,
        N=[10] * 4 + [20] * 8, F=[2] * 8 + [5] * 4,
    )  # fmt: skip
    (found,) = beyond(table)
    assert len(found.cells) == 3
    worse = [(line.claim.what, line.values[0]) for line in found.worse]
    assert worse == [
        ("N = 20, mean parents 2, |F| = 2", 5.0),
        ("N = 10, mean parents 2, |F| = 2", 1.0),
    ]
    assert not found.scaled


def test_only_auto_has_the_target_of_complete_pooling() -> None:
    table = results(
        ("GBN", "CGBN", "LME", "LME-separate", "Auto"), kl_Auto=[1.0, 1.02, 1.0, 1.0],
        kl_LME_separate=[3.0] * 4, kl_GBN=[1.0] * 4, scenario=["homogeneous"] * 4,
    )  # fmt: skip
    separate, auto = (
        next(line for line in found.lines if line.claim.what.startswith("median KL"))
        for found in beyond(table)
    )
    assert (separate.values[0], separate.claim.paper) == (3.0, None)
    assert (auto.values[0], auto.claim.paper, auto.verdict) == (1.0, 1.01, "agrees")
    assert not models_beyond(table[table["model"] != "GBN"])


@pytest.mark.slow
def test_further_models_come_from_further_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = Preset((4,), (1, 2), (2, 3), (3,), (10, 20), networks=1, replicates=1)
    monkeypatch.setitem(PRESETS, "few", few)
    parts = (("GBN", "CGBN", "LME"), ("LME-pooled",), ("LME-scaled",))
    for k, models in enumerate(parts):
        run_study(tmp_path / f"{k}", preset="few", models=models, workers=1)
    first, second = tmp_path / "first.parquet", tmp_path / "second"
    save_study(read_study(tmp_path / "0"), first)
    sources = [first, tmp_path / "1", tmp_path / "2"]
    done = CliRunner().invoke(app, ["report", *map(str, sources), "--out", str(second)])
    assert done.exit_code == 0, done.output
    whole = read_study(second / "results.parquet")
    assert whole.models == tuple(model for models in parts for model in models)
    assert whole.presets == ("few",)
    assert set(whole.seconds) == set(whole.models)
    assert len(by_data_set(whole.table)) == whole.data_sets == 20
    apart = pd.concat([read_study(tmp_path / f"{k}").table for k in range(3)])
    keys = [*apart.columns[:8]]
    pd.testing.assert_frame_equal(
        whole.table.sort_values(keys, ignore_index=True),
        apart.sort_values(keys, ignore_index=True),
    )
    text = (second / "report.md").read_text()
    assert "[start:LME-pooled]" in text
    assert "[end:LME-pooled]" in text
    for figure in figures_of("LME-pooled"):
        assert f"![{figure.name}](figures/{figure.name}.svg)" in text
        assert (second / f"figures/{figure.name}.png").stat().st_size > 5000
    assert (second / "figures/overview-homogeneous.svg").exists()
    page = Page()
    page.feed((second / "report.html").read_text())
    assert not page.open
    assert len(page.sources) == 2 * len(figures_of()) + 2
    with pytest.raises(FileError, match="twice"):
        read_study([first, second / "results.parquet"])


def test_a_report_on_nothing_is_one_paragraph(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--out", str(tmp_path / "report")])
    assert done.exit_code == 2
    assert done.output.startswith("error: no results in ")
    assert not (tmp_path / "report").exists()
