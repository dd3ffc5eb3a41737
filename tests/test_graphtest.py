"""`net.test_graph()`: claims of independence, Fisher's C, the likelihood ratio, R2."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy import stats as scipy_stats
from test_graph import dags

import poolbn as pb
from poolbn.assess.graphtest import basis_set

PSEM = Path(__file__).parent / "reference" / "psem"
REFERENCE = json.loads((PSEM / "psem.json").read_text())
SHIPLEY = json.loads((PSEM / "shipley.json").read_text())
TRIAL = pb.datasets.opt()[["clinic", "age", "bmi", "gestation_days", "birthweight_g"]].dropna()


def keeley() -> pb.Network:
    table = pd.read_csv(PSEM / "keeley.csv").assign(site="all")
    graph = """
        firesev ~ age
        cover ~ firesev
        rich ~ cover + abiotic
        abiotic ~ distance
        hetero ~ distance
    """
    return pb.fit(graph, table, group="site", pooling="complete")


def one_group(method: str = "ml") -> pb.Network:
    table = pd.read_csv(PSEM / "one_group.csv")
    graph, kinds = ["b ~ a", "c ~ b", "e ~ a + c", "y ~ e"], {"y": "discrete"}
    if method == "reml":
        graph, kinds = graph[:3], {}
    pooling = pb.Partial(random="intercept", method=method)
    return pb.fit(graph, table, group="g", pooling=pooling, kinds=kinds)


def claimed(name: str) -> dict[frozenset[str], dict[str, object]]:
    """What piecewiseSEM says of each pair."""
    return {
        frozenset(row["Independ.Claim"].removesuffix(" + ...").split(" ~ ")): row
        for row in REFERENCE[name]["dsep"]
    }


def test_piecewise_sem_has_the_same_claims_and_numbers_of_regressions() -> None:
    found, wanted = keeley().test_graph(), claimed("keeley")
    assert len(found.claims) == len(wanted) == 14
    for row in found.claims.itertuples():
        own = wanted[frozenset((row.x, row.y))]
        assert row.df == own["DF"]
        assert abs(row.statistic) == pytest.approx(abs(own["Crit.Value"]), abs=6e-5)
        assert row.p_value == pytest.approx(own["P.Value"], abs=6e-5)
    assert found.fisher_c.statistic == pytest.approx(77.516, abs=6e-4)
    assert found.fisher_c.df == 28
    r2 = dict(zip(found.r2["node"], found.r2["marginal"], strict=True))
    for row in REFERENCE["keeley"]["R2"]:
        assert r2[row["Response"]] == pytest.approx(row["R.squared"], abs=0.0051)
    assert set(found.wanted["x"] + " " + found.wanted["y"]) == {"distance rich", "hetero rich"}


def test_piecewise_sem_has_the_same_claims_of_random_intercepts() -> None:
    """Its linear models are REML with Kenward and Roger's degrees of freedom, ours ML."""
    found, wanted = one_group().test_graph(), claimed("one_group")
    assert {frozenset((row.x, row.y)) for row in found.claims.itertuples()} == set(wanted)
    for row in found.claims.itertuples():
        own = wanted[frozenset((row.x, row.y))]
        assert row.p_value == pytest.approx(own["P.Value"], abs=0.015)
    assert found.fisher_c.df == 10
    assert found.fisher_c.statistic == pytest.approx(10.664, abs=0.1)
    (row,) = (r for r in REFERENCE["one_group"]["R2"] if r["Response"] == "y")
    (own,) = found.r2[found.r2["node"] == "y"].itertuples()
    # The reference integrates by Laplace's approximation.
    assert own.marginal == pytest.approx(row["Marginal"], abs=0.0101)
    assert own.conditional == pytest.approx(row["Conditional"], abs=0.0101)


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_walds_z_is_that_of_piecewise_sem_and_glmer() -> None:
    """Shipley's trees in sites; C is 11.53 there, where glmer stops early in one claim.

    piecewiseSEM's z allow for uncertain variances (Hessian), ours do not: `psem/shipley.R` has
    glmer's without.
    """
    rows = pd.read_csv(PSEM / "shipley.csv.gz").astype({"Live": str})
    pooling = pb.Partial(random="intercept")
    graph = "lat -> DD -> Date -> Growth -> Live"
    net = pb.fit(graph, rows, group=["site", "tree"], pooling=pooling)
    found, wanted = net.test_graph(test="wald"), claimed("shipley")
    assert {frozenset((row.x, row.y)) for row in found.claims.itertuples()} == set(wanted)
    glmer = {case["column"]: case for case in SHIPLEY["claims"]}
    C = 0.0
    for row in found.claims.itertuples():
        own = wanted[frozenset((row.x, row.y))]
        assert row.test == "wald"
        p = own["P.Value"]
        if row.y == "Live" and row.x != "Date":
            assert row.statistic == pytest.approx(glmer[row.x]["z"], abs=0.002)
            assert row.p_value == pytest.approx(p, abs=0.03)
        elif row.x == "Date":  # -1.56 where glmer stops
            p = row.p_value
            assert -1.56 < row.statistic < -1.3
        else:
            assert row.p_value == pytest.approx(p, abs=0.02)
        C -= 2 * math.log(p)
    assert found.fisher_c.df == 12
    assert found.fisher_c.statistic == pytest.approx(C, abs=0.3)
    fit = pb.fit_node(
        pb.table(rows, group=["site", "tree"]), "Live", ["Date", "DD", "Growth"], pooling=pooling
    )
    assert fit.loglik > glmer["Date"]["logLik"] + 0.05


def test_walds_z_of_one_grouping_is_that_of_piecewise_sem() -> None:
    found, wanted = one_group().test_graph(test="wald"), claimed("one_group")
    for row in found.claims.itertuples():
        if row.y == "y":
            own = wanted[frozenset((row.x, row.y))]
            assert row.df == math.inf
            assert row.statistic == pytest.approx(own["Crit.Value"], abs=0.04)
    assert found.fisher_c.statistic == pytest.approx(10.664, abs=0.1)


def test_piecewise_sem_has_the_same_r2_by_reml() -> None:
    found = one_group("reml").test_graph().r2
    for row in REFERENCE["one_group"]["R2"][:3]:
        (own,) = found[found["node"] == row["Response"]].itertuples()
        assert own.marginal == pytest.approx(row["Marginal"], abs=0.0051)
        assert own.conditional == pytest.approx(row["Conditional"], abs=0.0051)


@given(dags())
def test_the_claims_are_those_of_the_graph(dag: pb.Dag) -> None:
    """Each is a d-separation, and there is one for each pair that could have an arc."""
    claims = basis_set(dag)
    for x, y, given_names in claims:
        assert dag.d_separated(x, y, given_names)
        assert y not in dag.ancestors(x)
    roots = {node for node in dag.nodes if not dag.parents(node)}
    joined = set(map(frozenset, dag.arcs))
    pairs = {frozenset(p) for p in combinations(dag.nodes, 2) if not set(p) <= roots} - joined
    assert {frozenset((x, y)) for x, y, _ in claims} == pairs
    assert len(claims) == len(pairs)


def test_c_is_fishers_and_p_values_are_adjusted_by_holm() -> None:
    found = keeley().test_graph()
    p = found.claims["p_value"].to_numpy()
    C, p_value = scipy_stats.combine_pvalues(p, method="fisher")
    assert found.fisher_c.statistic == pytest.approx(C)
    assert found.fisher_c.p_value == pytest.approx(p_value)
    assert (np.diff(p) >= 0).all()
    k = len(p)
    holm = np.minimum(np.maximum.accumulate(p * np.arange(k, 0, -1)), 1)
    np.testing.assert_allclose(found.claims["p_adjusted"], holm)


def test_each_claim_is_a_test_of_columns() -> None:
    stats = pb.stats(TRIAL, group="clinic")
    graph = "age -> bmi -> gestation_days -> birthweight_g"
    for pooling in ("partial", "complete", "none"):
        found = pb.fit(graph, stats, pooling=pooling).test_graph()
        for row in found.claims.itertuples():
            own = pb.ci_test(stats, row.x, row.y, row.given, pooling=pooling)
            assert (row.test, row.p_value) == (own.test, pytest.approx(own.p_value, rel=1e-9))


def test_the_ratio_is_twice_the_difference_of_log_likelihoods() -> None:
    """From all arcs that the order allows, by least squares."""
    net = keeley()
    found = net.test_graph().lr
    table = pd.read_csv(PSEM / "keeley.csv")[list(net.dag.nodes)]
    order = ["age", "distance", "abiotic", "hetero", "firesev", "cover", "rich"]
    roots = order[:2]
    statistic, df = 0.0, 0
    for k, child in enumerate(order):
        every = [] if child in roots else list(order[:k])
        for parents, sign in ((every, 1), (list(net.dag.parents(child)), -1)):
            X = np.column_stack([np.ones(len(table)), table[parents]])
            rest = np.linalg.lstsq(X, table[child], rcond=None)[1][0]
            statistic -= sign * len(table) * math.log(rest)
            df += sign * len(parents)
    assert found.statistic == pytest.approx(statistic)
    assert found.df == df == 14
    assert found.p_value == pytest.approx(scipy_stats.chi2.sf(statistic, df))


def test_criteria_are_those_of_r() -> None:
    net = keeley()
    found, (n, _) = net.test_graph().criteria, pd.read_csv(PSEM / "keeley.csv").shape
    loglik, k = found["loglik"], found["parameters"]
    assert found["AIC"] == pytest.approx(2 * k - 2 * loglik)
    assert found["BIC"] == pytest.approx(math.log(n) * k - 2 * loglik)
    assert found["score"] == pytest.approx(-found["BIC"] / 2)


def test_arcs_that_are_wanted_and_not_needed_have_their_change_of_score() -> None:
    stats = pb.stats(TRIAL, group="clinic")
    net = pb.fit("age -> birthweight_g <- bmi  age -> gestation_days", stats)
    found = net.test_graph()
    (worst, *_) = found.wanted.itertuples()
    assert (worst.x, worst.y) == ("gestation_days", "birthweight_g")
    arcs = [*net.dag.arcs, (worst.x, worst.y)]
    more = pb.score(stats, pb.Dag(net.dag.nodes, arcs))
    arcs = [*net.dag.arcs, (worst.y, worst.x)]
    assert worst.gain == pytest.approx(
        max(more, pb.score(stats, pb.Dag(net.dag.nodes, arcs))) - net.score, abs=1e-6
    )
    assert len(found.unneeded)
    for row in found.unneeded.itertuples():
        arcs = [arc for arc in net.dag.arcs if arc != (row.parent, row.child)]
        change = pb.score(stats, pb.Dag(net.dag.nodes, arcs)) - net.score
        assert row.gain == pytest.approx(change, abs=1e-6)


def test_the_order_of_columns_does_not_matter() -> None:
    graph = "age -> bmi  gestation_days -> birthweight_g"
    one = pb.fit(graph, TRIAL, group="clinic", pooling=pb.Partial(random="intercept"))
    other = pb.fit(
        graph, TRIAL[TRIAL.columns[::-1]], group="clinic", pooling=pb.Partial(random="intercept")
    )
    first, second = one.test_graph(), other.test_graph()
    assert first.fisher_c.statistic == pytest.approx(second.fisher_c.statistic, rel=1e-6)


def test_columns_that_describe_data_sets_are_tested_by_their_coefficient() -> None:
    """Inside data sets there is nothing to test."""
    size = {"NY": 1.0, "MN": 4.0, "KY": 2.0, "MS": 3.5}
    table = TRIAL.assign(size=TRIAL["clinic"].map(size))
    net = pb.fit("size -> age -> bmi", table, group="clinic", inputs=["size"])
    (claim,) = net.test_graph().claims.itertuples()
    assert (claim.x, claim.y, claim.test) == ("size", "bmi", "coef")
    assert 0 < claim.p_value <= 1


def test_mixed_networks_are_tested_with_their_rows() -> None:
    table = pb.datasets.opt()[["clinic", "age", "tobacco", "preterm", "bmi"]].dropna()
    graph = "age -> bmi -> preterm <- tobacco"
    net = pb.fit(graph, table, group="clinic")
    found = net.test_graph()
    assert found.claims["p_value"].between(0, 1).all()
    rows = pb.table(table, group="clinic")
    again = pb.fit(graph, rows).test_graph(rows)
    assert again.fisher_c == found.fisher_c
    learned = pb.learn(table, group="clinic")
    with pytest.raises(pb.DataError, match=r"give them: net.test_graph\(pb.table\(data, group='c"):
        learned.test_graph()
    assert learned.test_graph(rows).fisher_c.df > 0
    with pytest.raises(pb.OptionError, match="test='score' is not an option"):
        net.test_graph(test="score")


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
@pytest.mark.parametrize("discrete", [False, True])
def test_rows_that_were_filled_in_do_not_count(discrete: bool) -> None:
    columns = ["clinic", "age", "bmi", "gestation_days"] + ["tobacco"] * discrete
    table = pb.datasets.opt()[columns].iloc[::2]
    graph = "age -> bmi -> gestation_days" + (" <- tobacco" if discrete else "")
    net = pb.fit(graph, table, group="clinic", missing="em")
    whole = pb.fit(graph, table.dropna(), group="clinic")
    found = net.test_graph()
    pd.testing.assert_frame_equal(
        found.claims[["x", "y", "p_value"]], whole.test_graph().claims[["x", "y", "p_value"]]
    )
    assert any("missing values count only for the fit" in note for note in found.notes)


def test_a_true_graph_is_rarely_rejected_and_a_wrong_one_often() -> None:
    """The benchmark has more tables: `benchmarks/graph_test.py`."""
    rng, rejected = np.random.default_rng(1), {"x -> y -> z": 0, "y <- x -> z": 0}
    for _ in range(60):
        set_ = np.repeat(np.arange(6), 30)
        x = rng.normal(size=180) + rng.normal(size=6)[set_]
        y = 0.5 * x + rng.normal(size=180) + rng.normal(size=6)[set_]
        z = 0.5 * y + rng.normal(size=180) + rng.normal(size=6)[set_]
        stats = pb.stats(pd.DataFrame({"F": set_, "x": x, "y": y, "z": z}), group="F")
        for graph in rejected:
            rejected[graph] += pb.fit(graph, stats).test_graph().fisher_c.p_value < 0.05
    low, high = scipy_stats.binom.ppf([0.001, 0.999], 60, 0.05)
    assert low <= rejected["x -> y -> z"] <= high
    assert rejected["y <- x -> z"] > 55


def test_what_is_printed_names_claims_arcs_and_criteria() -> None:
    text = repr(keeley().test_graph())
    for part in (
        "GraphTest: 14 claims of independence",
        "The data contradict the graph (Fisher's C, p = 1.56e-06). Arcs seem to be missing between",
        "Fisher's C is 77.516 on 28 degrees of freedom",
        "... 6 more claims",
        "R2 (Nakagawa and Schielzeth):",
    ):
        assert part in text
