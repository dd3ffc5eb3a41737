"""`net.tidy()`, `net.glance()`, and scripts and texts for other programs."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

import poolbn as pb
from poolbn.network.rscript import name

PSEM = Path(__file__).parent / "reference" / "psem"
TRIAL = pb.datasets.opt()[["clinic", "age", "bmi", "tobacco", "preterm"]].dropna()
MIXED = "age -> bmi <- tobacco -> preterm <- bmi"


def of(table: pd.DataFrame, node: str, term: str) -> pd.Series:
    (row,) = table[(table["node"] == node) & (table["term"] == term)].to_dict("records")
    return row


def test_coefficients_of_complete_pooling_are_those_of_least_squares() -> None:
    net = pb.fit("age -> bmi", TRIAL, group="clinic", pooling="complete")
    found = net.tidy()
    wanted = scipy_stats.linregress(TRIAL["age"], TRIAL["bmi"])
    slope, level = of(found, "bmi", "age"), of(found, "bmi", "(Intercept)")
    assert slope["estimate"] == pytest.approx(wanted.slope)
    assert slope["std.error"] == pytest.approx(wanted.stderr)
    assert slope["p.value"] == pytest.approx(wanted.pvalue)
    assert level["std.error"] == pytest.approx(wanted.intercept_stderr)
    assert slope["statistic"] == pytest.approx(wanted.slope / wanted.stderr)
    half = scipy_stats.t.ppf(0.975, len(TRIAL) - 2) * wanted.stderr
    assert slope["conf.low"] == pytest.approx(wanted.slope - half)
    assert slope["conf.high"] == pytest.approx(wanted.slope + half)


def test_coefficients_by_reml_are_those_of_lme4() -> None:
    """piecewiseSEM prints four digits of them."""
    reference = json.loads((PSEM / "psem.json").read_text())["one_group"]["coefficients"]
    table = pd.read_csv(PSEM / "one_group.csv")
    pooling = pb.Partial(random="intercept", method="reml")
    graph = ["b ~ a", "c ~ b", "e ~ a + c"]
    found = pb.fit(graph, table, group="g", pooling=pooling).tidy()
    for row in reference[:4]:
        own = of(found, row["Response"], row["Predictor"])
        assert own["estimate"] == pytest.approx(row["Estimate"], abs=6e-5)
        assert own["std.error"] == pytest.approx(row["Std.Error"], rel=0.01)


def test_rows_are_the_effects_and_intercepts_of_each_data_set() -> None:
    net = pb.fit(MIXED, TRIAL, group="clinic")
    every, effects = net.tidy(by="data set"), net.effects(by="data set")
    assert set(every["data_set"]) == set(net.levels)
    slopes = every[every["term"] == "age"].reset_index()
    own = effects[effects["parent"] == "age"].reset_index()
    np.testing.assert_allclose(slopes["estimate"], own["effect"])
    np.testing.assert_allclose(slopes["std.error"], own["se"])
    np.testing.assert_allclose(slopes["conf.high"], own["upper"])
    odds = every[(every["node"] == "preterm") & (every["term"] == "bmi")].reset_index()
    ratios = effects[(effects["child"] == "preterm") & (effects["parent"] == "bmi")].reset_index()
    np.testing.assert_allclose(np.exp(odds["estimate"]), ratios["effect"])
    assert set(odds["scale"]) == {"log odds"}
    levels = net.tidy()
    assert len(levels[levels["term"] == "(Intercept)"]) >= 3
    assert not levels["conf.low"].gt(levels["estimate"]).any()


def test_standardised_estimates_are_in_standard_deviations() -> None:
    net = pb.fit("age -> bmi", TRIAL, group="clinic", pooling="complete")
    one = of(net.tidy(), "bmi", "age")
    # Of complete pooling they are correlations, of one parent.
    r = np.corrcoef(TRIAL["age"], TRIAL["bmi"])[0, 1]
    assert one["std.estimate"] == pytest.approx(r, abs=0.001)


def test_a_glance_has_the_criteria_of_r() -> None:
    net = pb.fit("age -> bmi", TRIAL, group="clinic", pooling="complete")
    found = net.glance().set_index("node")
    fit = scipy_stats.linregress(TRIAL["age"], TRIAL["bmi"])
    rest = TRIAL["bmi"] - fit.intercept - fit.slope * TRIAL["age"]
    n = len(TRIAL)
    loglik = -n / 2 * (math.log(2 * math.pi * float((rest**2).mean())) + 1)
    assert found.loc["bmi", "logLik"] == pytest.approx(loglik)
    assert found.loc["bmi", "AIC"] == pytest.approx(2 * 3 - 2 * loglik)
    assert found.loc["bmi", "BIC"] == pytest.approx(math.log(n) * 3 - 2 * loglik)
    assert found.loc["bmi", "r2.marginal"] == pytest.approx(fit.rvalue**2, abs=1e-4)
    assert found.loc["(network)", "AIC"] == pytest.approx(found["AIC"].iloc[:2].sum())


@pytest.mark.parametrize("what", ["tidy", "glance"])
def test_pandas_writes_the_tables(what: str, tmp_path: Path) -> None:
    net = pb.fit(MIXED, TRIAL, group="clinic", inputs=["tobacco"])
    table = getattr(net, what)()
    assert "tobacco" not in set(table["node"])
    assert "<table" in table.to_html()
    table.to_csv(tmp_path / "table.csv")
    with pytest.raises(pb.OptionError, match="by='arc' is not an option"):
        net.tidy(by="arc")


# Other programs


def calls(script: str) -> dict[str, str]:
    """The model of each node."""
    found = re.findall(r"^ +(?:\S+ = )?((?:lm|glm|lmer|glmer)\((\S+) ~.*?\)),?$", script, re.M)
    return {node.strip("`"): call for call, node in found}


def test_each_node_is_one_call_of_r() -> None:
    full = calls(pb.fit(MIXED, TRIAL, group="clinic").to_psem("trial.csv"))
    assert full["bmi"] == (
        "lmer(bmi ~ age + tobacco + (1 + age + tobacco | clinic), data = d, REML = FALSE)"
    )
    assert full["age"] == "lmer(age ~ 1 + (1 | clinic), data = d, REML = FALSE)"
    intercepts = pb.fit(MIXED, TRIAL, group="clinic", pooling=pb.Partial(random="intercept"))
    own = calls(intercepts.to_psem())
    assert own["preterm"].startswith("glmer(preterm ~ bmi + tobacco + (1 | clinic), data = d, fam")
    pooled = calls(pb.fit(MIXED, TRIAL, group="clinic", pooling="complete").to_psem())
    assert pooled["bmi"] == "lm(bmi ~ age + tobacco, data = d)"
    assert pooled["preterm"] == "glm(preterm ~ bmi + tobacco, data = d, family = binomial)"
    some = pb.fit(MIXED, TRIAL, group="clinic", pooling=pb.Partial(random=["age"]), columns=None)
    assert "(1 + age | clinic)" in calls(some.to_psem())["bmi"]
    counts = pb.fit("bmi -> age", TRIAL, group="clinic", kinds={"age": "count"})
    assert re.search(
        r"glmer(\.nb)?\(age ~ bmi \+ \(1 \+ bmi \| clinic\), data = d", counts.to_psem()
    )
    reml = pb.fit("age -> bmi", TRIAL, group="clinic", pooling=pb.Partial(method="reml"))
    assert calls(reml.to_psem())["bmi"].endswith("REML = TRUE)")


def test_levels_have_their_order_in_r() -> None:
    script = pb.fit(MIXED, TRIAL, group="clinic").to_psem('a "b".csv')
    line = 'd[["tobacco"]] <- factor(as.character(d[["tobacco"]]), levels = c("no", "yes"))'
    assert line in script
    assert 'read.csv("a \\"b\\".csv"' in script


def test_what_r_does_not_have_is_a_comment() -> None:
    table = pb.datasets.opt()[["clinic", "age", "education", "tobacco"]].dropna()
    script = pb.fit("education -> tobacco  age", table, group="clinic").to_psem()
    assert "# education: a table of probabilities, which lme4 does not have" in script
    levels = pb.fit("age -> education", table, group="clinic").to_psem()
    assert "# education: more than two levels" in levels
    none = pb.fit("age -> bmi", TRIAL, group="clinic", pooling="none").to_psem()
    assert "# bmi: a model of its own in each clinic, such as by(d" in none
    pooled = pb.fit("age -> bmi", TRIAL, group="clinic", pooling=pb.Partial(residuals="pooled"))
    assert "# bmi: each data set has a residual variance from a common" in pooled.to_psem()
    given = pb.fit("tobacco -> bmi", TRIAL, group="clinic", inputs=["tobacco"]).to_psem()
    assert "# tobacco: an input" in given


def test_names_of_r_are_quoted_where_they_must_be() -> None:
    assert [name(text) for text in ("a.b", "a b", "in", "é", "a`b", "1a", "_a")] == [
        "a.b", "`a b`", "`in`", "`é`", "`a\\`b`", "`1a`", "`_a`",
    ]  # fmt: skip


def test_a_network_gives_its_graph_to_dagitty_and_lavaan() -> None:
    net = pb.fit(MIXED, TRIAL, group="clinic", pooling="complete")
    assert pb.Dag.from_string(net.to_dagitty("age", "preterm")) == net.dag
    assert pb.Dag.from_string(net.to_lavaan()) == net.dag
