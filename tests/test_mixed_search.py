"""Searches over tables with columns of all kinds."""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import poolbn as pb
from poolbn.scoring.local import LocalScores


def rows(seed: int = 0, n: int = 60, sites: int = 4) -> pd.DataFrame:
    """Data sets that differ: sex and arm -> event <- age -> dose, event -> visits."""
    rng = np.random.default_rng(seed)
    parts = []
    for site in range(sites):
        age = rng.normal(40 + rng.normal(), 10, n)
        sex = rng.random(n) < 0.5
        arm = rng.integers(3, size=n)
        eta = rng.normal(0, 0.5) + 0.12 * (age - 40) + 1.5 * sex + np.array([0.0, -1, 1.5])[arm]
        event = rng.random(n) < 1 / (1 + np.exp(-eta))
        parts.append(
            pd.DataFrame(
                {
                    "site": f"s{site}",
                    "age": age,
                    "sex": np.where(sex, "male", "female"),
                    "arm": np.array(["a", "b", "c"])[arm],
                    "event": event,
                    "dose": 2 + 0.2 * age + 4 * sex + rng.normal(0, 2, n),
                    "visits": rng.poisson(np.exp(0.5 + 1.0 * event)),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


COUNT = {"visits": "count"}


@pytest.fixture(scope="module")
def made() -> pb.Table:
    return pb.table(rows(), group="site", kinds=COUNT)


def test_a_network_of_all_kinds_is_learned(made: pb.Table) -> None:
    net = pb.learn(made, preset="paper")
    near = {frozenset(arc) for arc in net.dag.arcs}
    for arc in (("age", "dose"), ("sex", "dose"), ("arm", "event"), ("event", "visits")):
        assert frozenset(arc) in near
    assert net.score == pytest.approx(pb.score(made, net.dag), abs=1e-6)
    assert net.score == pytest.approx(sum(fit.bic for fit in net.fits.values()), rel=1e-12)
    assert sum(move.gain for move in net.trace) + pb.score(made, []) == pytest.approx(
        net.score, abs=0.05
    )  # a search makes less effort than final fits


def test_a_frame_is_read_as_a_table(made: pb.Table) -> None:
    one, two = (
        pb.learn(rows(), group="site", kinds=COUNT, preset="paper"),
        pb.learn(made, preset="paper"),
    )
    assert one.dag == two.dag
    assert one.score == two.score


def test_continuous_columns_give_the_same_network() -> None:
    numbers = rows()[["site", "age", "dose", "visits"]]
    one, two = (
        pb.learn(numbers, group="site", preset="paper"),
        pb.learn(pb.table(numbers, group="site"), preset="paper"),
    )
    three = pb.learn(pb.stats(numbers, group="site"), preset="paper")
    assert one.dag == two.dag == three.dag
    assert one.score == two.score == three.score
    assert one.effects().equals(three.effects())


@pytest.mark.parametrize("pooling", ["complete", "none", "partial", "auto"])
def test_order_and_names_do_not_matter(pooling: str) -> None:
    """Of columns, rows and levels."""
    table = rows(3, 40, 3).drop(columns="visits")
    one = pb.learn(table, group="site", pooling=pooling, preset="paper")
    names = {"age": "z_age", "sex": "b", "arm": "y", "event": "a", "dose": "c"}
    other = table.sample(frac=1, random_state=1).rename(columns=names)
    other = other[["site", "z_age", "y", "c", "b", "a"]]
    other["y"] = other["y"].map({"a": "3", "b": "2", "c": "1"})
    two = pb.learn(other, group="site", pooling=pooling, preset="paper")
    assert {frozenset(names[x] for x in arc) for arc in one.dag.arcs} == {
        frozenset(arc) for arc in two.dag.arcs
    }
    assert one.score == pytest.approx(two.score, abs=1e-4)


@pytest.mark.parametrize("pooling", ["complete", "none", "partial", "auto"])
@pytest.mark.parametrize("kind", ["all kinds", "discrete", "missing"])
def test_a_graph_does_not_depend_on_the_order_of_columns(kind: str, pooling: str) -> None:
    table, kinds = rows(5), COUNT
    if kind == "discrete":
        old = pd.cut(table["age"], [-np.inf, 30, 40, np.inf], labels=["young", "middle", "old"])
        table = table.assign(age=old.astype(str), dose=table["dose"] > 11).drop(columns="visits")
        kinds = None
    if kind == "missing":
        gaps = np.random.default_rng(3).random(table.shape) < 0.05
        table = table.drop(columns="visits").mask(gaps[:, :-1] & (table.columns[:-1] != "site"))
        kinds = None
    names = [name for name in table.columns if name != "site"]
    missing = "em" if kind == "missing" else "error"
    found = [
        pb.learn(
            table[["site", *order]],
            group="site",
            kinds=kinds,
            pooling=pooling,
            missing=missing,
            preset="paper",
        )
        for order in (names, names[::-1], np.random.default_rng(2).permutation(names))
    ]
    for other in found[1:]:
        assert other.dag == found[0].dag
        assert other.score == pytest.approx(found[0].score, rel=1e-9)


@pytest.mark.parametrize("pooling", ["partial", "auto"])
def test_bounds_are_bounds_and_threads_do_not_matter(made: pb.Table, pooling: str) -> None:
    N = len(made.names)
    families = [
        (child, parents)
        for child in range(N)
        for size in range(3)
        for parents in itertools.combinations([p for p in range(N) if p != child], size)
    ]
    scores = LocalScores(made, pooling=pooling, threads=1)
    bounds, exact = scores.upper_bounds(families)
    values = scores(families)
    assert (bounds >= values - 1e-6).all()
    assert 0 < (~exact).sum() < len(families)
    assert np.array_equal(values, LocalScores(made, pooling=pooling, threads=2)(families))


def test_lazy_and_eager_searches_agree(made: pb.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = pb.learn(made, preset="paper")
    monkeypatch.setattr(
        LocalScores, "upper_bounds", lambda self, f: (self(f), np.ones(len(f), dtype=bool))
    )
    eager = pb.learn(made, preset="paper")
    assert lazy.dag == eager.dag
    assert lazy.score == eager.score
    assert sum(m.fits for m in lazy.trace) < sum(m.fits for m in eager.trace)


def test_exact_search_and_tabu_are_no_worse() -> None:
    table = pb.table(rows(5, 30, 3), group="site", columns=["age", "sex", "event", "dose"])
    climbed, tabu = (
        pb.learn(table, preset="paper"),
        pb.learn(table, search=pb.Tabu(), preset="paper"),
    )
    exact = pb.learn(table, search=pb.Exact(), preset="paper")
    assert exact.score >= tabu.score - 1e-4 >= climbed.score - 2e-4
    best = max(
        pb.score(table, dag)
        for dag in (
            pb.Dag(table.names, arcs)
            for arcs in itertools.combinations(itertools.permutations(table.names, 2), 3)
            if all((b, a) not in arcs for a, b in arcs) and _acyclic(table.names, arcs)
        )
    )
    assert exact.score >= best - 1e-6


def _acyclic(names: tuple[str, ...], arcs: tuple[tuple[str, str], ...]) -> bool:
    try:
        pb.Dag(names, arcs)
    except pb.GraphError:
        return False
    return True


def test_constraints_may_forbid_arcs_to_discrete_columns(made: pb.Table) -> None:
    kinds = dict(zip(made.names, made.kinds, strict=True))
    net = pb.learn(made, constraints=pb.Constraints(continuous_to_discrete=False), preset="paper")
    assert not any(kinds[c] == "discrete" != kinds[p] for p, c in net.dag.arcs)
    assert any(
        kinds[c] == "discrete" != kinds[p] for p, c in pb.learn(made, preset="paper").dag.arcs
    )
    with pytest.raises(pb.GraphError, match="age -> sex is required and from a continuous"):
        pb.learn(
            made,
            constraints=pb.Constraints(required=[("age", "sex")], continuous_to_discrete=False),
            preset="paper",
        )


def test_inputs_are_no_children(made: pb.Table) -> None:
    net = pb.learn(made.with_inputs(["arm", "visits", "age"]), preset="paper")
    assert net.inputs == ("age", "arm", "visits")
    assert all(not net.dag.parents(name) for name in net.inputs)
    own = [fit.bic for name, fit in net.fits.items() if name not in net.inputs]
    assert net.score == pytest.approx(sum(own), rel=1e-12)


def test_discrete_columns_alone_have_their_scores() -> None:
    table = pb.table(rows(2, 100), group="site", columns=["sex", "arm", "event"])
    for score in ("bde", "k2", pb.BDeu(iss=5)):
        net = pb.learn(table, pooling="complete", score=score, preset="paper")
        assert net.score == pytest.approx(pb.score(table, net.dag, pooling="complete", score=score))
        assert ("event", "sex") in net.dag.arcs or ("sex", "event") in net.dag.arcs


def test_models_may_be_chosen(made: pb.Table) -> None:
    arcs = [("sex", "event"), ("arm", "event")]
    models = {
        how: pb.fit_node(made, "event", ["sex", "arm"], pooling=pb.Partial(discrete=how))
        for how in ("auto", "table", "logit")
    }
    assert models["table"].model == "table of probabilities"
    assert models["logit"].model == "logistic regression"
    assert models["auto"].bic == max(fit.bic for fit in models.values())
    values = {
        how: pb.score(made, arcs, pooling=pb.Partial(discrete=how)) for how in ("table", "logit")
    }
    difference = models["table"].bic - models["logit"].bic
    alone = [
        pb.fit_node(made, name, pooling=pb.Partial(discrete=how)).bic
        for how in values
        for name in ("sex", "arm")
    ]
    assert values["table"] - values["logit"] == pytest.approx(
        difference + sum(alone[:2]) - sum(alone[2:]), abs=1e-6
    )


def test_a_network_of_all_kinds_prints(made: pb.Table) -> None:
    net = pb.learn(made, preset="paper")
    lines = repr(net).splitlines()[2 : 2 + len(net.effects())]
    assert len({line.split("  ")[1] for line in lines}) == len(lines)
    assert any(line.startswith("  event = True -> arm = b  odds ratio ") for line in lines)
    assert any(
        " -> visits  rate ratio " in line and ", SD of log between" in line for line in lines
    )
    assert "logistic regression" in net.models()["model"].tolist()
    assert "<td>odds ratio</td>" in net._repr_html_()


BAD = [
    ({"score": "bge"}, "score='bge' is for continuous columns"),
    ({"score": "bde"}, "score='bde' is for complete pooling"),
    ({"score": "k2", "pooling": "complete"}, "age, dose and visits are not"),
    ({"pooling": pb.Partial(method="reml")}, "method='reml' is for continuous columns"),
    ({"group": "site"}, "leave group='site' out"),
]


@pytest.mark.parametrize(("options", "words"), BAD, ids=lambda value: str(value)[:30])
def test_what_does_not_go_together_is_said(made: pb.Table, options: dict, words: str) -> None:
    with pytest.raises(pb.PoolbnError, match=words):
        pb.learn(made, **options, preset="paper")


def test_missing_cells_of_discrete_columns(tmp_path: Path) -> None:
    incomplete = rows(1, 30)
    incomplete.loc[3, "sex"] = None
    path = tmp_path / "rows.csv"
    incomplete.to_csv(path, index=False)
    with pytest.raises(pb.OptionError, match="missing='em' is for continuous columns"):
        pb.stats(path, group="site", missing="em")
    assert pb.learn(path, group="site", missing="em", preset="paper").n_rows == 120
    with pytest.raises(pb.DataError, match="'sex'"):
        pb.learn(path, group="site", preset="paper")
    assert pb.learn(path, group="site", missing="drop", preset="paper").n_rows == 119


# The bootstrap


def test_the_bootstrap_counts_arcs_of_all_kinds() -> None:
    table = rows(7, 60, 3)[["site", "age", "sex", "event", "dose"]]
    options = {"group": "site", "replicates": 6}
    boot = pb.bootstrap(table, **options, preset="paper")
    assert boot.replicates == 6
    assert boot.strength[boot.nodes.index("age"), boot.nodes.index("dose")] == 1
    again = pb.bootstrap(pb.table(table, group="site"), replicates=3, preset="paper")
    assert np.array_equal(
        again.counts, pb.bootstrap(table, group="site", replicates=3, preset="paper").counts
    )
    assert (boot.counts >= again.counts).all()
    sets = pb.bootstrap(table, **options, unit="data set", preset="paper")
    assert sets.counts.shape == (4, 4)


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_levels_that_a_sample_lacks_do_no_harm() -> None:
    """Also where one level is left, which says nothing of others."""
    rare = rows(7, 20, 3)[["site", "age", "sex", "dose"]].assign(mark="no", odd="a")
    rare.loc[3, "mark"] = "yes"
    rare.loc[[5, 30], "odd"] = ["b", "c"]
    table = pb.table(rare, group="site")
    some = table.some_rows([np.arange(j * 20, j * 20 + 3) for j in range(3)])
    assert some.categories[some.names.index("mark")] == ("no",)
    scores = LocalScores(some, pooling="complete")
    mark, age = some.names.index("mark"), some.names.index("age")
    assert scores([(mark, ()), (mark, (age,)), (mark, (some.names.index("sex"),))]).tolist() == [
        0.0, 0.0, 0.0,
    ]  # fmt: skip
    assert np.diff(scores([(age, ()), (age, (mark,))])) == [0.0]
    boot = pb.bootstrap(table, replicates=4, preset="paper")
    assert np.isfinite(boot.counts).all()


# Files


@pytest.mark.parametrize("pooling", ["complete", "none", "partial", "auto"])
def test_a_network_of_all_kinds_can_be_saved(made: pb.Table, pooling: str, tmp_path: Path) -> None:
    net = pb.learn(made.with_inputs(["arm"]), pooling=pooling, preset="paper")
    net.save(tmp_path / "net.json")
    again = pb.load(tmp_path / "net.json")
    assert again.dag == net.dag
    assert (again.score, again.inputs, again.levels) == (net.score, net.inputs, net.levels)
    assert repr(again) == repr(net)
    for node, fit in net.fits.items():
        assert repr(again.fits[node]) == repr(fit)
        assert again.fits[node].pooling == fit.pooling
    assert again.to_json() == net.to_json()


def test_all_networks_have_one_format(made: pb.Table) -> None:
    numbers = pb.learn(made.select(["age", "dose"]), preset="paper")
    assert json.loads(numbers.to_json())["version"] == 5
    assert json.loads(pb.learn(made, preset="paper").to_json())["version"] == 5


def test_files_of_version_4_load(made: pb.Table, tmp_path: Path) -> None:
    """Their intervals of data sets were not around the estimates."""
    net = pb.learn(made, pooling="partial", preset="paper")
    content = json.loads(net.to_json()) | {"version": 4}
    del content["checksum"]
    for own in content["fits"].values():
        if own.get("intervals"):
            found = own["intervals"]
            del found["new_se"], found["at"]
            found["se"], found["df"] = ([row[1:] for row in found[name]] for name in ("se", "df"))
            found["center"] = [[0.5 + value for value in row[1:]] for row in own["coef"]]
        if own.get("effects"):
            found = own["effects"]
            del found["new_se"], found["at"], found["level_se"]
            found["middle"] = [[0.5 + value for value in row] for row in found["own"]]
    path = tmp_path / "net.json"
    path.write_text(json.dumps(content))
    loaded = pb.load(path)
    assert str(loaded) == str(net)
    columns = ["effect", "se", "lower", "upper"]
    before, after = (each.effects(by="data set")[columns] for each in (net, loaded))
    assert len(after) > 0
    np.testing.assert_array_equal(after["effect"], before["effect"])
    np.testing.assert_allclose(after["se"], np.hypot(before["se"], 0.5))
    assert len(loaded.total_effects()) == len(net.total_effects())


def test_damaged_files_of_all_kinds_are_refused(made: pb.Table, tmp_path: Path) -> None:
    """Every value in turn is gone, or of another kind or shape."""
    net = pb.learn(made, pooling="partial", preset="paper")
    content = json.loads(net.to_json())
    del content["checksum"]
    path = tmp_path / "net.json"
    for node in ("sex", "event", "visits"):
        for key in content["fits"][node]:
            for wrong in (None, -1, "x", [], [[1.0]], {"a": 1}, "gone"):
                damaged = copy.deepcopy(content)
                own = damaged["fits"][node]
                if own[key] == wrong or (key == "detail" and wrong == "x"):
                    continue
                if wrong == "gone":
                    del own[key]
                else:
                    own[key] = wrong
                path.write_text(json.dumps(damaged))
                try:
                    pb.load(path)
                except pb.FileError:
                    continue
                harmless = (
                    (wrong is None and key in {"fixed", "fixed_cov", "random_cov"})
                    or (wrong in (None, "gone") and key == "effects")
                    or (wrong in (-1, "x", "gone") and key in {"loglik", "detail"})
                )
                assert harmless, (node, key, wrong)


# What tables can be like


def test_a_level_of_one_row_is_told(made: pb.Table) -> None:
    assert pb.check(made) == []
    rare = rows()
    rare.loc[3, "arm"] = "d"
    rare.loc[5, "sex"] = "unknown"
    (found,) = pb.check(pb.table(rare, group="site", kinds=COUNT))
    assert found.kind is pb.FindingKind.RARE_LEVEL
    assert found.columns == ("sex", "arm")
    assert "one row alone has the levels 'unknown' of 'sex' and 'd' of 'arm'" in str(found)
    with pytest.warns(pb.DataWarning, match="one row alone"):
        pb.learn(rare, group="site", kinds=COUNT, preset="paper")


def test_many_levels_are_no_memory_error() -> None:
    rng = np.random.default_rng(1)
    made = pd.DataFrame({"site": rng.integers(3, size=600), "x": rng.normal(size=600)})
    names = [f"c{k}" for k in range(6)]
    for name in names:
        made[name] = np.array([f"l{k:02}" for k in range(40)])[rng.integers(40, size=600)]
    table = pb.table(made, group="site")
    with pytest.raises(pb.DataError, match="5 parents and 40 levels of 'c0' make 102,400,000"):
        pb.fit_node(table, "c0", names[1:])
    with pytest.raises(pb.DataError, match="'c0' make 1,599 coefficients, too many"):
        pb.fit_node(table, "c0", ["c1", "x"])
    assert pb.score(table, [("c1", "c0"), ("x", "c0")]) == -np.inf
    assert pb.learn(table, pooling="complete", preset="paper").dag.arcs == ()


def test_separation_in_all_data_sets_is_no_trouble_for_a_search() -> None:
    table = rows(4, 40, 3)
    table["old"] = np.where(table["age"] > 40, "old", "young")
    with pytest.warns(pb.DataWarning, match="'old' from 'age'"):
        net = pb.learn(table[["site", "age", "old", "dose"]], group="site", preset="paper")
    assert np.isfinite(net.score)
    near = {frozenset(arc) for arc in net.dag.arcs}
    assert frozenset(("age", "old")) in near


def test_random_intercepts_of_continuous_columns_in_a_table() -> None:
    numbers = rows(1, 30)[["site", "age", "dose"]]
    how = pb.Partial(random="intercept")
    one, two = (
        pb.learn(of(numbers, group="site"), pooling=how, preset="paper").score
        for of in (pb.table, pb.stats)
    )
    assert one == two


def test_rows_of_dask_are_learned_from_as_others_are() -> None:
    dask = pytest.importorskip("dask.dataframe")
    for columns in (["site", "age", "dose"], ["site", "age", "sex"]):
        table = rows(1, 30)[columns]
        one = pb.learn(dask.from_pandas(table, npartitions=3), group="site", preset="paper")
        assert one.score == pytest.approx(
            pb.learn(table, group="site", preset="paper").score, rel=1e-12
        )


def test_orders_reach_the_optimum_with_columns_of_all_kinds() -> None:
    """Under tiers, an input and a required arc too; never below hill climbing."""
    columns = ["clinic", "age", "tobacco", "education", "bmi", "gestation_days"]
    trial = pb.datasets.opt()[columns]
    table = pb.table(trial.dropna(), group="clinic", inputs=["tobacco"])
    rules = pb.Constraints(required=[("age", "bmi")], tiers=[["age"], ["gestation_days"]])
    climbed, ordered, best = (
        pb.learn(table, search=search, constraints=rules, preset="paper")
        for search in (pb.HillClimb(), pb.OrderSearch(starts=3), pb.Exact())
    )
    assert climbed.score <= ordered.score + 1e-6
    assert ordered.score == pytest.approx(best.score, abs=1e-6)
    assert ("age", "bmi") in ordered.dag.arcs
    assert ordered.dag.parents("tobacco") == ()


def test_tables_come_first_where_scores_are_expensive(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = pb.datasets.opt()
    trial = trial.assign(preterm=trial["gestation_days"] < 259, heavy=trial["bmi"] > 30)
    columns = ["clinic", "tobacco", "education", "preterm", "heavy", "age"]
    table = pb.table(trial[columns].dropna(), group="clinic")
    monkeypatch.setattr("poolbn.search.orders._EXPENSIVE", 0.0)
    ordered, best = (
        pb.learn(table, pooling="partial", search=search)
        for search in (pb.OrderSearch(starts=3), pb.Exact())
    )
    assert ordered.score == pytest.approx(best.score, abs=1e-6)  # where regressions take part
