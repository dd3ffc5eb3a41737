"""Networks of rows with units inside data sets: searches, answers, files, what is refused."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, linregress
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app
from poolbn.scoring.inside import InsideLikelihood
from poolbn.scoring.likelihoods import PenalisedLikelihood

GROUP = ["clinic", "patient"]


def visits(seed: int, clinics: int = 5, patients: int = 20) -> pd.DataFrame:
    """a -> b -> c, a column d beside them, and levels of patients in all."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 6, clinics * patients)
    patient = np.repeat(np.arange(len(size)), size)
    clinic = patient // patients

    def noise() -> np.ndarray:
        own = rng.normal(size=len(size))[patient] + 0.5 * rng.normal(size=clinics)[clinic]
        return own + rng.normal(size=len(patient))

    a, d = noise(), noise()
    b = (0.6 + 0.2 * rng.normal(size=clinics))[clinic] * a + noise()
    c = -0.6 * b + noise()
    return pd.DataFrame({"clinic": clinic, "patient": patient, "a": a, "b": b, "c": c, "d": d})


@pytest.mark.parametrize("score", ["bic", "bic-w"])
@pytest.mark.parametrize("pooling", ["complete", "none", "partial"])
def test_the_exact_search_finds_the_best_of_all_graphs(score: str, pooling: str) -> None:
    stats = pb.stats(visits(0)[[*GROUP, "a", "b", "c"]], group=GROUP)
    arcs = list(combinations("abc", 2))
    best = -np.inf
    for ways in product((None, 0, 1), repeat=3):
        some = [
            pair if way else pair[::-1]
            for pair, way in zip(arcs, ways, strict=True)
            if way is not None
        ]
        try:
            dag = pb.Dag(["a", "b", "c"], some)
        except pb.GraphError:
            continue
        best = max(best, pb.score(stats, dag, pooling=pooling, score=score))
    net = pb.learn(stats, pooling=pooling, score=score, search="exact")
    assert pb.score(stats, net.dag, pooling=pooling, score=score) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_screens_change_no_search(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stats = pb.stats(visits(seed), group=GROUP)
    lazy = pb.learn(stats, search="hc")
    monkeypatch.setattr(InsideLikelihood, "neighbours", lambda *_, **__: None)
    whole = pb.learn(stats, search="hc")
    assert lazy.dag == whole.dag
    assert lazy.score == whole.score


def test_screens_of_plain_scores_change_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(3):
        stats = pb.stats(visits(30 + seed), group=GROUP)
        lazy = pb.learn(stats, pooling="partial", score="bic", search="hc")
        with monkeypatch.context() as patched:
            patched.setattr(PenalisedLikelihood, "neighbours", lambda *_, **__: None)
            whole = pb.learn(stats, pooling="partial", score="bic", search="hc")
        assert lazy.dag == whole.dag
        assert lazy.score == whole.score
        assert sum(move.spared for move in lazy.trace) > 0


def test_searches_agree_and_columns_have_no_order() -> None:
    frame = visits(3)
    nets = [pb.learn(frame, group=GROUP, search=search) for search in ("exact", "orders", "hc")]
    assert {net.dag for net in nets} == {nets[0].dag}
    other = pb.learn(frame[["d", "c", "patient", "a", "clinic", "b"]], group=GROUP)
    assert set(other.dag.arcs) == set(nets[0].dag.arcs)
    assert other.score == pytest.approx(nets[0].score, rel=1e-9)
    assert nets[0].dag.skeleton() == (("a", "b"), ("b", "c"))


def test_a_network_says_its_units(tmp_path) -> None:
    net = pb.learn(visits(4), group=GROUP)
    assert "units: patient in clinic" in repr(net)
    net.save(tmp_path / "net.json")
    again = pb.load(tmp_path / "net.json")
    assert again.unit == "patient"
    assert repr(again) == repr(net)
    for node in net.dag.nodes:
        assert (again[node].unit_share == net[node].unit_share).all()
    frame = visits(4)
    found, same = (of.predict(frame, ["c"]) for of in (net, again))
    assert found.equals(same)


def test_variances_are_those_of_levels() -> None:
    """With many units, the shares are those of the simulation."""
    frame = visits(5, clinics=20, patients=300)
    net = pb.fit("a -> b", frame, group=GROUP)
    table = net.variances().set_index("node")
    assert table[["parents", "data_sets", "units", "residual"]].sum(axis=1).to_numpy() == (
        pytest.approx([1.0, 1.0])
    )
    a = table.loc["a"]
    assert a["icc_unit"] == pytest.approx(1.25 / 2.25, abs=0.05)
    assert a["units"] / a["residual"] == pytest.approx(1.0, abs=0.05)
    assert (net.variances()["icc_unit"] > net.variances()["icc_data_set"]).all()


def test_complete_pooling_has_the_covariance_of_generalised_least_squares() -> None:
    frame = visits(6)
    fit = pb.fit_node(pb.stats(frame, group=GROUP), "b", ["a"], pooling="complete")
    same = frame["patient"].to_numpy()[:, None] == frame["patient"].to_numpy()
    share = fit.unit_share[0]
    V = share * same + (1 - share) * np.eye(len(frame))
    X = np.column_stack([np.ones(len(frame)), frame["a"]])
    inverse = np.linalg.inv(X.T @ np.linalg.solve(V, X))
    beta = inverse @ X.T @ np.linalg.solve(V, frame["b"].to_numpy())
    rest = frame["b"].to_numpy() - X @ beta
    s2 = rest @ np.linalg.solve(V, rest) / (len(frame) - 2)
    np.testing.assert_allclose(fit.fixed, beta, rtol=1e-8)
    np.testing.assert_allclose(fit.fixed_cov, s2 * inverse, rtol=1e-8)


def test_predictions_have_the_variance_of_unknown_units() -> None:
    """Of new patients of known clinics, in a table so large that estimates are sure."""
    frame = visits(7, clinics=4, patients=4000)
    net = pb.fit("a -> b", frame, group=GROUP)
    expected = net.predict(frame[["clinic", "a"]], ["b"])["b", "mean"].to_numpy()
    rest = frame["b"].to_numpy() - expected
    assert net["b"].sigma2[0] == pytest.approx(rest.var(), rel=0.03)
    one = net.predict(pd.DataFrame({"clinic": [0], "a": [0.0]}), ["b"], interval=0.95)
    width = float(one["b", "upper"].iloc[0] - one["b", "lower"].iloc[0])
    assert width == pytest.approx(2 * 1.96 * np.sqrt(net["b"].sigma2[0]), rel=0.01)


def test_the_bootstrap_draws_units_and_folds_keep_them() -> None:
    frame = visits(8)[[*GROUP, "a", "b", "d"]]
    boot = pb.bootstrap(frame, group=GROUP, replicates=10)
    assert "10 replicates of units within data sets" in repr(boot)
    assert boot.strength[0, 1] > 0.8
    table = pb.table(frame, group=GROUP)
    from poolbn.assess.folds import deal_table
    from poolbn.assess.resample import table_replicates

    folds = deal_table(table, 4, 0)
    for train in folds.train:
        left = set(map(tuple, train.values.T))
        whole = [
            {tuple(row) in left for row in table.values.T[table.units == unit]}
            for unit in np.unique(table.units)
        ]
        assert all(len(each) == 1 for each in whole)
    ((drawn,),) = table_replicates(table, 1, 0, data_sets=False)
    own = {frozenset(map(tuple, table.values.T[table.units == u])) for u in set(table.units)}
    for unit in set(drawn.units):
        assert frozenset(map(tuple, drawn.values.T[drawn.units == unit])) in own
    counts = [
        len(set(drawn.units[a:b])) for a, b in zip(drawn.offsets, drawn.offsets[1:], strict=False)
    ]
    assert counts == [20] * 5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f: pb.learn(f, group=GROUP, pooling="complete", score="bge"), "BGe takes rows"),
        (lambda f: pb.learn(f, group=GROUP, pooling="none", score="gprior"), "gprior takes rows"),
        (
            lambda f: pb.stats(f.mask(f > 2), group=GROUP, missing="em"),
            "EM from sufficient statistics takes rows",
        ),
        (lambda f: pb.impute(f, group=GROUP), "impute takes rows"),
        (lambda f: pb.learn(f, group=GROUP, search=pb.PC(test="t")), "the test 't' takes rows"),
    ],
)
def test_what_takes_rows_for_independent_says_so(call, words: str) -> None:
    with pytest.raises(pb.DataError, match=f"{words} for independent, and 'patient' says units"):
        call(visits(9))


def test_the_command_line(tmp_path) -> None:
    path = tmp_path / "visits.csv"
    visits(10).to_csv(path, index=False)
    run = CliRunner().invoke(
        app, ["learn", str(path), "-g", "clinic/patient", "-o", str(tmp_path / "out")]
    )
    assert run.exit_code == 0, run.output
    assert "units: patient in clinic" in run.output
    assert pb.load(tmp_path / "out" / "network.json").unit == "patient"
    look = CliRunner().invoke(app, ["look", str(path), "-g", "clinic"])
    assert "--group clinic/patient" in look.output
    gaps = tmp_path / "gaps.csv"
    visits(10).mask(lambda t: t > 2).to_csv(gaps, index=False)
    em = ["stats", str(gaps), "-g", "clinic/patient", "--missing", "em"]
    run = CliRunner().invoke(app, [*em, "-o", str(tmp_path / "gaps.stats")])
    assert run.exit_code != 0
    assert "takes rows for independent" in " ".join(run.output.split())
    stats = tmp_path / "visits.stats"
    made = CliRunner().invoke(
        app, ["stats", "make", str(path), "-g", "clinic/patient", "-o", str(stats)]
    )
    assert made.exit_code == 0, made.output
    assert pb.learn(pb.GroupStats.load(stats)).unit == "patient"


def test_r_has_the_same_models() -> None:
    frame = visits(11).assign(age=lambda t: (t["patient"] * 7) % 23 + 0.1 * t["patient"])
    net = pb.fit("age -> a -> b", frame, group=GROUP)
    script = net.to_psem()
    assert "lmer(b ~ a + (1 + a | clinic) + (1 | clinic:patient), data = d, REML = FALSE)" in script
    assert "# age: one value in each patient; fit it to one row of each" in script
    whole = pb.fit("a -> b", frame, group=GROUP, pooling="complete").to_psem()
    assert "lmer(b ~ a + (1 | clinic:patient), data = d" in whole


def test_new_data_sets_have_rows_of_other_units() -> None:
    """With many rows a new clinic has what its own rows say, and the variance of rows."""
    frame = visits(12, clinics=8, patients=200)
    for pooling in ("complete", "partial", pb.Partial(residuals="pooled")):
        net = pb.fit("a -> b", frame, group=GROUP, pooling=pooling)
        new = frame[frame["clinic"] == 3].drop_duplicates("patient")[["a", "b"]]
        more = net.adapt(new, "new")
        fit = more["b"]
        assert fit.sigma2[-1] == pytest.approx(fit.sigma2[3], rel=0.3)
        assert fit.unit_share[-1] == fit.unit_share[0]
        np.testing.assert_allclose(fit.coef[-1], fit.coef[3], atol=0.25)
        at = pd.DataFrame({"clinic": ["new", 3], "a": [0.0, 0.0]})
        sd = more.predict(at, ["b"])["b", "sd"].to_numpy()
        assert sd[0] == pytest.approx(sd[1], rel=0.15)


def test_treatment_effects_are_those_of_the_model() -> None:
    frame = visits(13).assign(arm=lambda t: np.where(t["patient"] % 2 == 0, "no", "yes"))
    found = pb.treatment_effects(frame, treatment="arm", group=GROUP, outcomes=["a"])
    table = pb.table(frame, group=GROUP, kinds={"arm": "discrete"})
    (term,) = pb.fit_node(table, "a", ["arm"]).terms("arm")
    assert found["effect"][0] == term.effect


def test_effects_of_what_describes_units_are_those_of_units_means() -> None:
    """With units of the same size, intervals are the t intervals of a row for each unit."""
    rng = np.random.default_rng(14)
    patient = np.repeat(np.arange(24), 4)
    z = rng.normal(size=24)[patient]
    y = z + rng.normal(size=24)[patient] + rng.normal(size=96)
    frame = pd.DataFrame({"clinic": patient // 8, "patient": patient, "z": z, "y": y})
    fit = pb.fit_node(pb.stats(frame, group=GROUP), "y", ["z"], pooling="complete")
    assert 0 < fit.unit_share[0] < 1
    means = frame.groupby("patient").mean()
    found = linregress(means["z"], means["y"])
    assert fit.population(1) == pytest.approx((found.slope, found.stderr, 22.0), rel=1e-4)


@pytest.mark.parametrize("level_sd", [0.0, 1.0])
def test_complete_pooling_says_where_levels_of_data_sets_differ(level_sd: float) -> None:
    """By means of residuals, of which each unit's has the weight m / (1 + m t)."""
    rng = np.random.default_rng(16)
    size = rng.integers(1, 6, 60)
    patient = np.repeat(np.arange(60), size)
    clinic = patient // 10
    x = rng.normal(size=len(patient)) + rng.normal(size=6)[clinic]
    y = x + level_sd * rng.normal(size=6)[clinic] + rng.normal(size=60)[patient]
    y += rng.normal(size=len(patient))
    frame = pd.DataFrame({"clinic": clinic, "patient": patient, "x": x, "y": y})
    fit = pb.fit_node(pb.stats(frame, group=GROUP), "y", ["x"], pooling="complete")
    share = fit.unit_share[0]
    weight = (1 / (1 + size * share / (1 - share)))[patient]
    e = y - fit.coef[0, 0] - fit.coef[0, 1] * x
    total = np.bincount(clinic, weight)
    squares = np.bincount(clinic, weight * e) ** 2 / total / (fit.sigma2[0] * (1 - share))
    p = chi2.sf(squares.sum(), 5)
    said = f"levels differ between clinics (p = {p:.1g}), which complete pooling denies"
    assert (said in str(fit)) == (level_sd > 0)
    assert (p < 0.01) == (level_sd > 0)


def test_look_tells_of_units_where_cells_are_missing() -> None:
    """EM does not use them: which is better, complete rows or independent ones, is for the user."""
    frame = visits(2).rename(columns={"patient": "tree"})
    frame["tree"] = frame.groupby(["clinic", "tree"]).ngroup() * 3 + 10
    assert "group=['clinic', 'tree']" in pb.look(frame, group="clinic").call
    frame.loc[3, "a"] = np.nan
    found = pb.look(frame, group="clinic")
    assert "missing='em'" in found.call
    assert "with group=['clinic', 'tree'] and missing='drop'" in str(found)
