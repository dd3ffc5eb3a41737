"""Ordinal columns: how their order is read, and all that a network with them answers."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.figure import Figure
from scipy.special import expit
from scipy.stats import kstest, norm

import poolbn as pb
from poolbn.assess.residuals import node_residuals

GRADES = ["low", "middle", "high", "top"]
KINDS = {"grade": "ordinal"}
GRAPH = "age -> grade; sex -> grade; grade -> cost"


@cache
def pupils() -> pd.DataFrame:
    """Age and sex raise the grade, the grade raises the cost."""
    rng = np.random.default_rng(1)
    F, n = 8, 150
    site, age, male = (
        np.repeat(np.arange(F), n),
        rng.normal(50, 10, F * n),
        rng.integers(0, 2, F * n),
    )
    eta = rng.normal(0, 0.5, F)[site] + 0.05 * (age - 50) + rng.normal(0.7, 0.2, F)[site] * male
    grade = np.searchsorted([-1.0, 0.3, 1.5], eta + rng.logistic(size=F * n))
    return pd.DataFrame(
        {
            "site": np.array(list("abcdefgh"))[site],
            "age": age,
            "sex": np.where(male, "male", "female"),
            "grade": pd.Categorical.from_codes(grade, GRADES, ordered=True),
            "cost": 5 + 2.0 * grade + rng.normal(0, 1, F * n),
        }
    )


@cache
def net(pooling: str = "partial") -> pb.Network:
    return pb.fit(GRAPH, pupils(), group="site", kinds=KINDS, pooling=pooling)


def shuffled() -> pd.DataFrame:
    return pupils().sample(frac=1, random_state=1).astype({"grade": str})


# The order of levels


def test_the_order_is_that_of_the_source(tmp_path: Path) -> None:
    known = ["site", "grade"]
    frame = pupils()[known]
    enum = pl.from_pandas(shuffled()[known]).with_columns(pl.col("grade").cast(pl.Enum(GRADES)))
    frame.to_parquet(tmp_path / "pupils.parquet")
    frame.to_stata(tmp_path / "pupils.dta")
    sources = [frame, enum, pa.Table.from_pandas(frame), *tmp_path.iterdir()]
    for source in sources:
        table = pb.table(source, group="site", columns=["grade"], kinds=KINDS)
        assert table.categories == (tuple(GRADES),)
        assert table.kinds == ("ordinal",)
    codes = shuffled()[known].assign(grade=lambda rows: rows["grade"].map(GRADES.index) + 9)
    assert pb.table(codes, group="site", kinds=KINDS).categories == (("9", "10", "11", "12"),)


def test_the_order_is_listed() -> None:
    for levels in (GRADES, tuple(GRADES), [*GRADES, "nobody"]):
        table = pb.table(shuffled(), group="site", kinds={"grade": levels})
        assert table.categories[table.names.index("grade")] == tuple(GRADES)


@pytest.mark.parametrize(
    ("kinds", "error", "words"),
    [
        (KINDS, pb.DataError, r"nothing says the order of its levels, .*kinds=\{'grade': \["),
        ({"grade": GRADES[1:]}, pb.DataError, "'grade' has 'low', which is not among its levels"),
        ({"grade": ["low"]}, pb.OptionError, "list two or more, from the lowest"),
        ({"grade": [*GRADES, "low"]}, pb.OptionError, "have 'low' twice"),
        ({"grade": [*GRADES, None]}, pb.OptionError, "list names, from the lowest"),
    ],
)
def test_an_order_that_nobody_knows(kinds: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        pb.table(shuffled(), group="site", kinds=kinds)


@pytest.mark.parametrize(
    "levels",
    [
        ["low", "middle", "high"],
        ["I", "II", "III", "IV"],
        ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"],
        ["G1", "G2", "G10"],
        ["none", "mild", "severe"],
        ["Stage IIa", "Stage IIb", "Stage IV"],
    ],
)
def test_looking_suggests_an_order(levels: list[str]) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"site": np.repeat([*"abc"], 100), "x": rng.normal(size=300)})
    found = pb.look(frame.assign(y=rng.choice(levels, 300)), group="site")
    (one,) = found.findings
    assert (one.kind, one.columns) == (pb.FindingKind.ORDERED, ("y",))
    assert f"kinds={{'y': {levels!r}}}" in str(one)
    assert found.nodes["y"] == "discrete"
    known = pb.look(frame.assign(y=rng.choice(levels, 300)), group="site", kinds={"y": levels})
    assert known.findings == ()
    assert known.nodes["y"] == "ordinal"


@pytest.mark.parametrize("levels", [["red", "low", "high"], ["no", "yes"], ["A1", "A2", "A3"]])
def test_looking_suggests_no_order(levels: list[str]) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"site": np.repeat([*"abc"], 100), "y": rng.choice(levels, 300)})
    assert pb.look(frame, group="site").findings == ()


def test_unordered_categories_have_no_order() -> None:
    """Those of `astype("category")` are in the order of the alphabet."""
    frame = shuffled().astype({"grade": "category"})
    with pytest.raises(pb.DataError, match="nothing says the order"):
        pb.table(frame, group="site", kinds=KINDS)


def test_what_cannot_be_is_told() -> None:
    with pytest.raises(pb.DataError, match=r"'grade' is ordinal, and such columns need rows"):
        pb.stats(pupils(), group="site", kinds=KINDS)


# What a network answers


def test_learning_finds_the_graph() -> None:
    for score in ("bic-w", "bic-h", "bic"):
        found = pb.learn(pupils(), group="site", kinds=KINDS, score=score)
        assert set(found.dag.skeleton()) == set(net().dag.skeleton())


def test_levels_that_go_together_are_no_arc() -> None:
    """Sites that are good at everything: within sites columns are independent."""
    rng = np.random.default_rng(2)
    site, level = np.repeat(np.arange(12), 60), rng.normal(0, 1.5, 12)
    more = {name: level[site] + rng.logistic(size=720) for name in "xyz"}
    cut = {name: np.digitize(more[name], [-1, 0, 1]) for name in "yz"}
    frame = pd.DataFrame({"site": site, "x": more["x"], **cut})
    found = pb.learn(frame, group="site", kinds=dict.fromkeys("yz", "ordinal"))
    assert found.dag.arcs == ()


def test_probabilities_are_the_formula_s() -> None:
    one = pb.fit(GRAPH, pupils(), group="site", kinds=KINDS, pooling="complete")
    rows, fit = pupils(), one.fits["grade"]
    beta = fit.table()["fixed"]
    cuts = np.concatenate([[-np.inf], beta[2:], [np.inf]])
    np.testing.assert_allclose(cuts[1:-1], fit.thresholds)
    eta = beta["age"] * rows["age"] + beta["sex=male"] * (rows["sex"] == "male")
    p = np.diff(expit(cuts - eta.to_numpy()[:, None]), axis=1)
    found = one.predict(rows.drop(columns=["grade", "cost"]), "grade", plugin=True)
    np.testing.assert_allclose(found[GRADES], p, atol=1e-9)
    np.testing.assert_allclose(found["expected_level"], p @ [1, 2, 3, 4], atol=1e-9)
    assert (found["most_probable"] == np.array(GRADES)[p.argmax(axis=1)]).all()
    codes = rows["grade"].cat.codes.to_numpy()
    assert fit.loglik == pytest.approx(np.log(p[np.arange(len(p)), codes]).sum(), abs=1e-6)


def test_expected_probabilities_are_means_over_coefficients() -> None:
    """Of 200,000 draws of all coefficients of a data set, as they are uncertain."""
    fit = net().fits["grade"]
    rng = np.random.default_rng(3)
    coef = rng.multivariate_normal(fit.coef[2, 0], fit.coef_cov[2], 200_000)
    odds = coef[:, 0] + 61 * coef[:, 1] + coef[:, 2]
    above = expit(odds[:, None] + np.column_stack([np.zeros(len(coef)), coef[:, 3:]])).mean(axis=0)
    expected = -np.diff(np.concatenate([[1.0], above, [0.0]]))
    found = net().predict({"site": "c", "age": 61, "sex": "male"}, "grade")
    np.testing.assert_allclose(found[GRADES].iloc[0], expected, atol=2e-3)


def test_effects_are_odds_ratios_of_a_higher_level() -> None:
    effects = net().effects().set_index("parent").loc[["age", "sex"]]
    assert (effects["scale"] == "odds ratio").all()
    assert (effects["outcome"] == "").all()
    frame = pupils().assign(grade=pupils()["grade"].cat.reorder_categories(GRADES[::-1]))
    back = pb.fit(GRAPH, frame, group="site", kinds=KINDS).effects().set_index("parent")
    for one, other in (("effect", "effect"), ("lower", "upper"), ("upper", "lower")):
        expected = 1 / back.loc[["age", "sex"], other]
        np.testing.assert_allclose(effects[one], expected, rtol=2e-3)


def test_two_levels_are_a_discrete_column() -> None:
    frame = pupils().assign(grade=pupils()["grade"].cat.codes >= 2)
    logit = pb.Partial(discrete="logit")
    one, other = (
        pb.fit(GRAPH, frame.astype({"grade": int}), group="site", kinds={"grade": kind},
               pooling=logit)
        for kind in ("ordinal", "discrete")
    )  # fmt: skip
    assert one.fits["grade"].loglik == pytest.approx(other.fits["grade"].loglik, abs=1e-9)
    columns = ["effect", "se", "lower", "upper", "between_sd"]
    found, expected = (each.effects()[columns].to_numpy() for each in (one, other))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    rows = frame.astype({"grade": int}).head(20)
    np.testing.assert_allclose(
        one.loglik(rows, rows=True), other.loglik(rows, rows=True), rtol=1e-9
    )


def test_draws_and_interventions() -> None:
    drawn = net().sample(20_000, seed=1)
    assert list(drawn["grade"].cat.categories) == GRADES
    share = drawn["grade"].value_counts(normalize=True)
    expected = pupils()["grade"].value_counts(normalize=True)
    np.testing.assert_allclose(share[GRADES], expected[GRADES], atol=0.03)
    low, top = (net().do(grade=grade).posterior({"site": "a"}, "cost").mean[0]
                for grade in ("low", "top"))  # fmt: skip
    own = net().effects(by="data set").query("data_set == 'a' and level == 'top'")
    assert top - low == pytest.approx(own["effect"].iloc[0], abs=1e-6)
    totals = net().total_effects("sex", "grade").set_index(["outcome", "scale"])
    rows = pupils()[["site", "age"]]
    p = [net().predict(rows.assign(sex=sex), "grade", plugin=True)["top"].mean()
         for sex in ("female", "male")]  # fmt: skip
    assert totals.loc[("top", "risk difference"), "total"] == pytest.approx(p[1] - p[0], abs=0.03)


@pytest.mark.parametrize("pooling", ["partial", "complete"])
def test_a_total_odds_ratio_is_that_of_the_fit(pooling: str) -> None:
    """Where nothing else leads to the grade odds are proportional in each site."""
    one = pb.fit("sex -> grade", pupils(), group="site", kinds=KINDS, pooling=pooling)
    found = one.total_effects("sex", "grade", by="data set")
    common = found.query("scale == 'odds ratio'").set_index("data_set")
    assert (common["outcome"] == "").all()
    np.testing.assert_allclose(
        common.loc[list(one.levels), "total"], np.exp(one.fits["grade"].coef[:, 0, 1])
    )
    assert (common["lower"] < common["total"]).all()
    assert (common["total"] < common["upper"]).all()
    names = ["middle or higher", "high or higher", "top"]
    assert set(found["outcome"]) == {"", *names}
    values = {"sex": np.array([0.0, 1.0])}
    p = one.fits["grade"].mean(values, np.zeros(2, dtype=int))
    above = np.cumsum(p[:, ::-1], axis=1)[:, ::-1][:, 1:]
    first = found.query("data_set == 'a'").set_index(["scale", "outcome"])["total"]
    np.testing.assert_allclose(first.loc["risk difference"][names], above[1] - above[0], atol=1e-9)
    np.testing.assert_allclose(first.loc["risk ratio"][names], above[1] / above[0], atol=1e-9)
    whole = one.total_effects("sex", "grade").set_index("outcome").loc[""]
    assert whole["lower"] < whole["total"] < whole["upper"]


def test_a_total_odds_ratio_of_many_rows() -> None:
    """Along two paths: Liu and Agresti's, from rows that are drawn under each intervention."""
    truth = pb.fit(GRAPH.replace("sex -> grade", "sex -> age; sex -> grade"), pupils(),
                   group="site", kinds=KINDS, pooling="complete")  # fmt: skip
    found = truth.total_effects("sex", "grade").set_index("scale").loc["odds ratio"]
    above = []
    for sex in ("female", "male"):
        rows = truth.do(sex=sex).sample(25_000, seed=3)["grade"].cat.codes.to_numpy()
        above.append((rows[:, None] >= [1, 2, 3]).mean(axis=0))
    q, p = above
    ratio = (p * (1 - q)).sum() / (q * (1 - p)).sum()
    assert found["total"] == pytest.approx(ratio, rel=0.03)
    assert found["simulation_se"] < 0.01


def test_events_compare_levels_by_their_order() -> None:
    """Not by the alphabet."""
    known = {"site": "a", "age": 50.0, "sex": "male"}
    p = net().predict(known, "grade", plugin=True)[GRADES].iloc[0]
    for event, levels in (
        ("grade >= 'high'", ["high", "top"]), ("grade < 'high'", ["low", "middle"]),
        ("'high' < grade", ["top"]), ("'low' < grade <= 'high'", ["middle", "high"]),
        ("not grade > 'low' or grade == 'top'", ["low", "top"]),
    ):  # fmt: skip
        found = net().query(event, known, plugin=True, seed=1)
        assert float(found) == pytest.approx(p[levels].sum(), abs=max(4 * found.se, 1e-9))
    with pytest.raises(pb.OptionError, match=r"'hihg', which is not a level of 'grade' \('low', "):
        net().query("grade > 'hihg'", known)
    with pytest.raises(pb.OptionError, match="'>' with names of data sets, which take == and !="):
        net().query("sex > 'female'", known)


def test_a_new_data_set_adapts() -> None:
    rows = pupils().query("site == 'a'").drop(columns="site")
    fit = net().adapt(rows, "new").fits["grade"]
    np.testing.assert_allclose(fit.coef[-1], fit.coef[0], atol=1e-3)
    np.testing.assert_array_equal(fit.coef[-1, 0, 3:], fit.fixed[0, 3:])


@pytest.mark.parametrize("pooling", ["partial", "none", "complete"])
def test_it_is_saved_and_loaded(pooling: str, tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    net(pooling).save(path)
    loaded = pb.load(path)
    assert str(loaded) == str(net(pooling))
    pd.testing.assert_frame_equal(loaded.effects(), net(pooling).effects())
    rows = pupils().head(5)
    np.testing.assert_array_equal(
        loaded.loglik(rows, rows=True), net(pooling).loglik(rows, rows=True)
    )


def test_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    net().save(path)
    text = path.read_text()
    seen = json.dumps(GRADES, separators=(",", ":"))
    there = re.search(r'"seen":\s*\[[^]]*\]', text)
    assert there is not None, seen
    for other in (["low"], GRADES[::-1], ["low", "else"], 3):
        path.write_text(text.replace(there[0], f'"seen": {json.dumps(other)}'))
        with pytest.raises(pb.FileError):
            pb.load(path)


def test_a_level_that_no_row_has() -> None:
    """The fit is that of the other levels, and its probability is 0."""
    frame = pupils().query("grade != 'middle'")
    table = pb.table(frame, group="site", kinds=KINDS)
    other = pb.fit_node(table, "grade", ["age"])
    k = table.names.index("grade")
    levels, values = list(table.categories), table.values.copy()
    levels[k], values[k] = tuple(GRADES), np.array([0, 2, 3])[values[k].astype(int)]
    wider = replace(table, categories=tuple(levels), values=values)
    some = pb.fit_node(wider, "grade", ["age"])
    assert some.loglik == pytest.approx(other.loglik, abs=1e-8)
    assert some.seen == ("low", "high", "top")
    values = {"age": np.array([40.0, 60.0])}
    p = some.mean(values, np.zeros(2, dtype=int))
    np.testing.assert_allclose(p[:, [0, 2, 3]], other.mean(values, np.zeros(2, dtype=int)))
    assert not p[:, 1].any()
    assert some.log_density(np.ones(2), values, np.zeros(2, dtype=int)).tolist() == [-np.inf] * 2


def test_missing_cells_are_drawn() -> None:
    """Cells that are missing at random do not move the effects beyond their errors."""
    rng = np.random.default_rng(4)
    frame = pupils()
    frame = frame.assign(grade=frame["grade"].mask(rng.random(1200) < 0.15))
    found = pb.learn(frame, group="site", kinds=KINDS, missing="em", start=net(),
                     search=pb.HillClimb(max_iter=0), score="bic")  # fmt: skip
    one, other = (each.effects().set_index(["parent", "level"]) for each in (found, net()))
    off = np.log(one["effect"] / other["effect"])[["age", "sex"]] / other["se"][["age", "sex"]]
    assert (off.abs() < 1).all()
    assert set(pb.impute(frame, group="site", kinds=KINDS, imputations=2)[0]["grade"]) == set(
        GRADES
    )


def test_equal_effects_have_the_chi_square_of_the_test() -> None:
    """Where effects are the same in all sites, statistics have the mean of the chi-square."""
    rng = np.random.default_rng(5)
    site, found = np.repeat(np.arange(6), 80), []
    for _ in range(60):
        x, level = rng.normal(size=480), rng.normal(0, 0.5, 6)
        y = np.digitize(0.7 * x + level[site] + rng.logistic(size=480), [-1, 0.5, 2])
        table = pb.table(pd.DataFrame({"site": site, "x": x, "y": y}), group="site",
                         kinds={"y": "ordinal"})  # fmt: skip
        found.append(pb.fit_node(table, "y", ["x"]).equality()["x"].statistic)
    assert np.mean(found) == pytest.approx(5, abs=3 * np.sqrt(10 / 60))


def test_proportional_odds() -> None:
    """Where odds are proportional the mean of the chi-square, else far more."""
    rng = np.random.default_rng(6)
    site, found = np.repeat(np.arange(6), 100), []
    level, slope = rng.normal(0, 0.6, 6)[site], rng.normal(0.6, 0.3, 6)[site]
    for k in range(61):
        x, u = rng.normal(size=600), rng.random(600)
        same = slope * x + level
        y = np.digitize(same + rng.logistic(size=600), [-1, 0.3, 1.5])
        if k == 60:
            odds = level + 1 + 0.3 * x, np.minimum(level + 1 + 0.3 * x, level - 0.5 + 1.2 * x)
            y = sum((u < expit(each)).astype(int) for each in odds)
        frame = pd.DataFrame({"site": site, "x": x, "y": y})
        one = pb.fit("x -> y", frame, group="site", kinds={"y": "ordinal"})
        found.append(pb.proportional_odds(one, frame).tests)
    rows = pd.concat(found)
    assert (rows["df"] == [2] * 60 + [1]).all()
    assert rows["statistic"][:60].mean() == pytest.approx(2, abs=3 * np.sqrt(4 / 60))
    assert rows["p_value"].iloc[-1] < 1e-6


def test_odds_ratios_at_thresholds_are_those_of_tables() -> None:
    """Of two rows of counts, with complete pooling; the common one is that of the network."""
    one = pb.fit("sex -> grade", pupils(), group="site", kinds=KINDS, pooling="complete")
    found = pb.proportional_odds(one, pupils()).ratios.set_index("threshold")
    assert list(found.index) == ["", "low|middle", "middle|high", "high|top"]
    codes, male = pupils()["grade"].cat.codes, pupils()["sex"] == "male"
    for k, (effect, lower) in enumerate(found[["effect", "lower"]].iloc[1:].to_numpy()):
        cells = pd.crosstab(male, codes > k).to_numpy()
        assert effect == pytest.approx(cells[0, 0] * cells[1, 1] / (cells[0, 1] * cells[1, 0]))
        se = math.sqrt((1 / cells).sum())
        assert math.log(lower) == pytest.approx(math.log(effect) - 1.96 * se, abs=0.02 * se)
    known = one.effects()[["effect", "lower", "upper"]].to_numpy()[0]
    np.testing.assert_array_equal(found[["effect", "lower", "upper"]].iloc[0], known)


def test_proportional_odds_are_drawn() -> None:
    found = pb.proportional_odds(net(), pb.table(pupils(), group="site", kinds=KINDS))
    ax = found.plot(ax=Figure().add_subplot())
    thresholds = ["low|middle", "middle|high", "high|top", "all thresholds"]
    names = [label.get_text() for label in ax.get_yticklabels()]
    headings = ["age (per SD) → grade", "sex = male → grade"]
    assert names == ["", headings[0], *thresholds, headings[1], *thresholds]
    notes = [label.get_text() for label in ax.child_axes[0].get_yticklabels()]
    assert [float(note) for note in (notes[1], notes[6])] == pytest.approx(
        found.tests["p_value"].to_list(), abs=5e-4
    )
    dots = [line.get_xdata() for line in ax.lines if line.get_marker() in ("o", "D")]
    own = found.ratios.query("parent == 'sex'")["effect"].to_numpy()
    np.testing.assert_allclose(np.concatenate(dots[2:4]), [*own[1:], own[0]])
    sd = pupils()["age"].std()
    per_sd = found.ratios.query("parent == 'age'")["effect"].to_numpy() ** sd
    np.testing.assert_allclose(np.concatenate(dots[:2]), [*per_sd[1:], per_sd[0]])
    assert "Tests of proportional odds" in str(found)
    none = pb.fit("age -> cost", pupils().drop(columns="grade"), group="site")
    empty = pb.proportional_odds(none, pupils().drop(columns="grade"))
    assert (len(empty.tests), len(empty.ratios)) == (0, 0)
    assert "no ordinal node" in str(empty)
    said = [text.get_text() for text in empty.plot(ax=Figure().add_subplot()).texts]
    assert said == ["no ordinal node with three levels has a parent"]


def test_residuals_are_normal_where_the_model_is_right() -> None:
    """Each lies where its level's probabilities put it."""
    ax = pb.plots.residuals(net(), pupils(), "grade", ax=Figure().subplots(1, 3))
    assert ax[0].get_xlabel() == "fitted grade"
    found = node_residuals(net(), pupils(), "grade")
    p = net().predict(pupils().drop(columns=["grade", "cost"]), "grade", plugin=True)
    np.testing.assert_allclose(found.fitted, p["expected_level"])
    codes = pupils()["grade"].cat.codes.to_numpy()
    np.testing.assert_allclose(found.residual, codes + 1 - found.fitted)
    ends = np.pad(np.cumsum(p[GRADES].to_numpy(), axis=1), ((0, 0), (1, 0)))
    at, row = norm.cdf(found.standard), np.arange(len(codes))
    assert ((at >= ends[row, codes] - 1e-9) & (at <= ends[row, codes + 1] + 1e-9)).all()
    assert kstest(found.standard, "norm").pvalue > 0.01
    better = pupils().assign(grade=pd.Categorical(["top"] * 1200, GRADES, ordered=True))
    wrong = node_residuals(net(), better, "grade")
    assert wrong.standard.mean() > 0.5


def test_random_networks_have_ordinal_nodes() -> None:
    dag = pb.random_dag(6, 2, seed=1)
    truth = pb.random_network(dag, data_sets=4, ordinal=0.5, seed=1)
    names = [node for node in dag.nodes if truth.fits[node].kind == "ordinal"]
    assert len(names) == 3
    rows = pb.random_table(truth, 20_000, seed=1)
    for name in names:
        fit = truth.fits[name]
        values = {p: rows[p].to_numpy() if not g else
                  pd.Categorical(rows[p], g).codes.astype(float)
                  for p, g in zip(fit.parents, fit.given, strict=True)}  # fmt: skip
        p = fit.mean(values, np.repeat(np.arange(4), 20_000)).mean(axis=0)
        share = rows[name].astype(str).value_counts(normalize=True)
        np.testing.assert_allclose(share[list(fit.categories)], p, atol=0.01)
    with pytest.raises(pb.OptionError, match=r"ordinal=0.6 is not a share of nodes, from 0 to 0.5"):
        pb.random_network(dag, data_sets=4, discrete=0.5, ordinal=0.6)


def test_r_fits_it_with_clmm() -> None:
    for pooling, call in (
        ("partial", "ordinal::clmm(grade ~ age + sex + (1 + age + sex | site), data = d)"),
        ("complete", "ordinal::clm(grade ~ age + sex, data = d)"),
    ):
        assert call in net(pooling).to_psem()


def test_the_report_tells_of_it(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    net().report(path, data=pupils())
    text = path.read_text()
    assert "multiplies the odds of a higher level of grade by" in text
    assert "multiplies the mean of grade" not in text
    assert "grade  instead of" not in text
    assert "of a higher level for male instead of female" in text
    assert "cumulative logistic regression" in text
    assert "cannot compute" not in text
