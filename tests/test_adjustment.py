"""`net.adjustment_report()`, and formulas for `pb.fit_node`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import poolbn as pb

OPT = pb.datasets.opt()
TRIAL = OPT[["clinic", "age", "bmi", "tobacco", "birthweight_g", "preterm"]].dropna()
GRAPH = "dag { age -> {bmi tobacco} -> birthweight_g }"


def test_each_smallest_set_has_its_estimate() -> None:
    net = pb.fit(GRAPH, TRIAL, group="clinic", pooling="complete")
    found = net.adjustment_report("bmi", "birthweight_g")
    assert found.sets == net.dag.adjustment_sets("bmi", "birthweight_g") == (("age",), ("tobacco",))
    table = TRIAL.assign(tobacco=(TRIAL["tobacco"] == "yes") * 1.0)
    for row, given in zip(found.estimates.itertuples(), (["age"], ["tobacco"], []), strict=True):
        X = np.column_stack([np.ones(len(table)), table[["bmi", *given]]])
        slope = np.linalg.lstsq(X, table["birthweight_g"], rcond=None)[0][1]
        assert row.effect == pytest.approx(slope)
        assert row.enough == bool(given)
        assert row.lower < row.effect < row.upper


def test_data_sets_have_estimates_of_their_own() -> None:
    net = pb.fit(GRAPH, TRIAL, group="clinic")
    table = net.adjustment_report("bmi", "birthweight_g", interval=0.9).estimates
    fit = pb.fit_node(pb.table(TRIAL, group="clinic"), "birthweight_g", ["bmi", "age"])
    own = next(term.own for term in fit.terms("bmi"))
    np.testing.assert_allclose(table.loc[0, list(net.levels)].astype(float), own, rtol=1e-6)


def test_odds_ratios_are_of_each_level() -> None:
    graph = "age -> tobacco -> preterm <- age"
    net = pb.fit(graph, TRIAL, group="clinic", pooling="complete")
    found = net.adjustment_report("tobacco", "preterm")
    (row,) = found.estimates[found.estimates["enough"]].to_dict("records")
    assert (row["level"], row["outcome_level"], row["scale"]) == ("yes", "yes", "odds ratio")
    assert row["lower"] < row["effect"] < row["upper"]
    assert "The effect of yes for yes adjusted for age (odds ratio) is" in " ".join(
        found.text.split()
    )


def test_what_the_graph_implies_is_said() -> None:
    net = pb.fit("age -> bmi", TRIAL, group="clinic")
    assert "nothing must be adjusted for" in " ".join(
        net.adjustment_report("age", "bmi").text.split()
    )
    back = net.adjustment_report("bmi", "age")
    assert back.sets == ()
    assert not back.estimates["enough"].any()
    assert "no set will do, as age is a cause of bmi" in " ".join(repr(back).split())
    with pytest.raises(pb.GraphError, match="no node is called"):
        net.adjustment_report("age", "bmmi")
    with pytest.raises(pb.GraphError, match="cause and effect are both"):
        net.adjustment_report("age", "age")


# Formulas


@pytest.mark.parametrize(
    ("formula", "parents", "pooling"),
    [
        ("bmi ~ age + (1 + age | clinic)", ["age"], pb.Partial()),
        ("bmi ~ age + (age + 1 | clinic)", ["age"], pb.Partial()),
        ("bmi ~ age + (1 | clinic)", ["age"], pb.Partial(random="intercept")),
        ("bmi ~ age + birthweight_g + (1 + age | clinic)", ["age", "birthweight_g"],
         pb.Partial(random=["age"])),
        ("bmi ~ 1 + (1 | clinic)", [], pb.Partial(random="intercept")),
        ("bmi ~ age", ["age"], "partial"),
    ],
)  # fmt: skip
def test_a_formula_is_a_node_its_parents_and_its_pooling(
    formula: str, parents: list[str], pooling: str | pb.Partial
) -> None:
    stats = pb.stats(TRIAL[["clinic", "age", "bmi", "birthweight_g"]], group="clinic")
    found = pb.fit_node(stats, formula)
    wanted = pb.fit_node(stats, "bmi", parents, pooling=pooling)
    assert found.pooling == wanted.pooling
    assert found.loglik == wanted.loglik
    pd.testing.assert_frame_equal(found.table(), wanted.table())


def test_options_go_with_a_formula() -> None:
    stats = pb.stats(TRIAL[["clinic", "age", "bmi"]], group="clinic")
    reml = pb.fit_node(stats, "bmi ~ age + (1 | clinic)", pooling=pb.Partial(method="reml"))
    assert reml.pooling == pb.Partial(random="intercept", method="reml")
    assert str(pb.fit_node(stats, "bmi ~ age", pooling="complete").pooling) == "complete pooling"


@pytest.mark.parametrize(
    ("formula", "options", "fragment"),
    [
        ("bmi ~ age + (1 | site)", {}, "random effects of 'site', and the data sets are those of"),
        ("bmi ~ age + (1 | clinic) + (1 | clinic)", {}, "write one term (1 + ... | clinic)"),
        ("bmi ~ 1 + (1 + age | clinic)", {}, "a random slope of 'age', which is no parent"),
        ("bmi ~ age + (1 | clinic)", {"pooling": "none"}, "leave pooling='none' out"),
        ("bmi ~ age", {"parents": ["age"]}, "one formula with one child, without other parents"),
        ("bmi + age ~ 1", {}, "one formula with one child"),
        ("bmi ~ 2*age", {}, "has a modifier"),
        ("bmi ~ agee", {}, "did you mean 'age'?"),
        ("bmi ~ age:bmi", {}, "has an interaction"),
    ],
)
def test_formulas_that_cannot_be_fitted_are_explained(
    formula: str, options: dict[str, object], fragment: str
) -> None:
    stats = pb.stats(TRIAL[["clinic", "age", "bmi"]], group="clinic")
    with pytest.raises(pb.PoolbnError) as caught:
        pb.fit_node(stats, formula, **options)
    assert fragment in str(caught.value)
