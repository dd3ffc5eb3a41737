"""Data sets that are experiments: columns that are known to have been set in some of them."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import norm
from test_cli import fine, run

import poolbn as pb
from poolbn.assess.effectsizes import arc_directions
from poolbn.errors import DataError
from poolbn.graph.equivalence import Direction, completed, directions, set_apart

pytestmark = pytest.mark.filterwarnings("ignore::poolbn.DataWarning")

KINDS = {"count": "count", "grade": "ordinal"}
TARGETS = {"c": ["y", "arm"], "d": ["y", "count"], "e": ["grade"]}


def trial(seed: int = 0, rows: int = 60) -> pd.DataFrame:
    """x -> y -> z, y -> arm, x -> count, y -> grade; what is set has other values there."""
    rng = np.random.default_rng(seed)
    parts = []
    for level in "abcde":
        x = rng.normal(size=rows)
        y = x + 0.7 * rng.normal(size=rows)
        if level in "cd":
            y = 0.5 * rng.normal(size=rows) + (3 if level == "c" else -2)
        z = 0.8 * y + rng.normal(size=rows)
        p = 1 / (1 + np.exp(-y)) if level != "c" else 0.8
        arm = np.where(rng.random(rows) < p, "yes", "no")
        count = rng.poisson(np.exp(0.4 * x) if level != "d" else 4.0, size=rows)
        grade = np.clip(np.round(1 + y + rng.normal(size=rows)), 0, 3).astype(int)
        if level == "e":
            grade = rng.integers(0, 4, rows)
        columns = {"x": x, "y": y, "z": z, "arm": arm, "count": count, "grade": grade}
        parts.append(pd.DataFrame({"set": level} | columns))
    return pd.concat(parts, ignore_index=True)


def table(frame: pd.DataFrame, interventions: Any = None, **options: Any) -> pb.Table:
    return pb.table(frame, group="set", kinds=KINDS, interventions=interventions, **options)


FAMILIES = [("y", ["x"]), ("y", ["x", "arm"]), ("arm", ["y"]), ("count", ["x"]), ("grade", ["y"])]


@pytest.mark.parametrize("pooling", ["complete", "none", "partial"])
@pytest.mark.parametrize(("child", "parents"), FAMILIES)
def test_a_fit_is_that_of_the_rows_where_the_node_was_not_set(
    child: str, parents: list[str], pooling: str
) -> None:
    frame = trial()
    out = [level for level, names in TARGETS.items() if child in names]
    fit = pb.fit_node(table(frame, TARGETS), child, parents, pooling=pooling)
    rest = pb.fit_node(table(frame[~frame["set"].isin(out)]), child, parents, pooling=pooling)
    assert (fit.loglik, fit.counts, fit.n_rows) == (rest.loglik, rest.counts, rest.n_rows)
    assert fit.was_set == tuple(out)
    for one, two in zip(fit.terms(parents[0]), rest.terms(parents[0]), strict=True):
        known = np.isfinite(one.own)
        assert (one.effect, one.se, one.between_sd) == pytest.approx(
            (two.effect, two.se, two.between_sd), nan_ok=True
        )
        assert one.own[known] == pytest.approx(two.own)
        assert known.tolist() == [level not in out for level in fit.levels]


SCORES = [
    (pooling, score)
    for pooling in ("complete", "none", "partial")
    for score in ("bic", "bic-h", "bic-w", "gprior", "bge")
    if score != "bge" or pooling == "complete"
]


@pytest.mark.parametrize(("pooling", "score"), SCORES)
def test_a_score_is_that_of_the_rows_where_the_node_was_not_set(pooling: str, score: str) -> None:
    frame = trial()[["set", "x", "y", "z"]]
    stats = pb.stats(frame, group="set", interventions={"c": ["y"], "d": ["y"]})
    rest = pb.stats(frame[~frame["set"].isin(["c", "d"])], group="set")

    def gain(of: Any) -> float:
        with_arc, without = (
            pb.score(of, arcs, pooling=pooling, score=score) for arcs in ([("x", "y")], [])
        )
        return with_arc - without

    assert gain(stats) == pytest.approx(gain(rest), abs=1e-10)
    # of another node all data sets count
    every = pb.stats(frame, group="set")
    of_z = [
        pb.score(of, arcs, pooling=pooling, score=score)
        for of in (stats, every)
        for arcs in ([("y", "z")], [])
    ]
    assert of_z[0] - of_z[1] == pytest.approx(of_z[2] - of_z[3], abs=1e-10)


def test_complete_pooling_is_least_squares_on_the_rows_that_are_left() -> None:
    frame = trial()
    stats = pb.stats(frame[["set", "x", "y"]], group="set", interventions={"c": ["y"], "d": ["y"]})
    fit = pb.fit_node(stats, "y", ["x"], pooling="complete")
    left = frame[~frame["set"].isin(["c", "d"])]
    X = np.column_stack([np.ones(len(left)), left["x"]])
    beta, (rss,), *_ = np.linalg.lstsq(X, left["y"].to_numpy(), rcond=None)
    sd = math.sqrt(rss / len(left))
    assert fit.fixed == pytest.approx(beta, rel=1e-10)
    assert fit.loglik == pytest.approx(norm(X @ beta, sd).logpdf(left["y"]).sum(), rel=1e-10)
    x = frame["x"]  # which has its rows everywhere
    alone = norm(x.mean(), x.std(ddof=0)).logpdf(x).sum()
    penalty = math.log(len(left)) / 2 * 3 + math.log(len(frame)) / 2 * 2
    score = pb.score(stats, [("x", "y")], pooling="complete")
    assert score == pytest.approx(fit.loglik + alone - penalty, rel=1e-10)


def counts(rows: pd.DataFrame, child: str, parents: list[str]) -> np.ndarray:
    """Rows by configuration of the parents and level of the child, of all levels that occur."""
    found = rows.groupby([*parents, child], observed=False).size()
    return found.to_numpy().reshape(-1, rows[child].cat.categories.size)


@pytest.fixture(scope="module")
def levels() -> pd.DataFrame:
    frame = trial(3)
    return frame[["set"]].assign(
        x=pd.cut(frame["x"], [-9, -0.5, 0.5, 9], labels=["low", "middle", "high"]),
        y=pd.cut(frame["y"], [-9, 0, 9], labels=["down", "up"]),
        arm=frame["arm"].astype("category"),
    )


DISCRETE = {"c": ["y"], "d": ["y"]}


def test_discrete_scores_are_multinomial_counts(levels: pd.DataFrame) -> None:
    stats = pb.stats(levels, group="set", interventions=DISCRETE)
    loglik = pb.score(stats, [("x", "y"), ("y", "arm")], pooling=pb.Complete(discrete="table"),
                      score="loglik")  # fmt: skip
    left = levels[~levels["set"].isin(DISCRETE)]
    by_hand = 0.0
    for rows, child, parents in ((levels, "x", []), (left, "y", ["x"]), (levels, "arm", ["y"])):
        n = counts(rows, child, parents)
        share = n / n.sum(axis=1, keepdims=True)
        by_hand += (n * np.log(np.where(n > 0, share, 1.0))).sum()
    assert loglik == pytest.approx(by_hand, rel=1e-10)


@pytest.mark.parametrize("iss", [1.0, 10.0])
def test_bde_leaves_out_what_was_set_as_mbde_does(levels: pd.DataFrame, iss: float) -> None:
    """Cooper and Yoo (1999): the Dirichlet-multinomial of counts without those rows."""
    stats = pb.stats(levels, group="set", interventions=DISCRETE)
    found = pb.score(stats, [("x", "y"), ("y", "arm")], pooling="complete", score=pb.BDeu(iss=iss))
    left = levels[~levels["set"].isin(DISCRETE)]
    by_hand = 0.0
    for rows, child, parents in ((levels, "x", []), (left, "y", ["x"]), (levels, "arm", ["y"])):
        n = counts(rows, child, parents)
        a = iss / n.size
        by_hand += (gammaln(a + n) - gammaln(a)).sum()
        by_hand += (gammaln(a * n.shape[1]) - gammaln(a * n.shape[1] + n.sum(axis=1))).sum()
    assert found == pytest.approx(by_hand, rel=1e-10)


def test_a_level_that_only_an_experiment_has_stays_a_level(levels: pd.DataFrame) -> None:
    made = levels.assign(y=np.where(levels["set"] == "c", "set", levels["y"].astype(str)))
    net = pb.learn(made, group="set", interventions={"c": ["y"]}, pooling="complete")
    assert net["y"].categories == ("down", "set", "up")
    (found,) = net.predict(made[made["set"] == "c"].drop(columns="y").head(1), "y").to_numpy()
    assert found[-1] == "set"


# Laws


@settings(max_examples=15, deadline=None)
@given(st.permutations("abcde"), st.permutations(["x", "y", "z"]), st.integers(0, 3))
def test_order_does_not_matter(sets: list[str], columns: list[str], seed: int) -> None:
    frame = trial(seed, rows=25)[["set", "x", "y", "z"]]
    targets = {"c": ["y"], "d": {"y": "soft"}, "b": ["z"]}
    shuffled = pd.concat([frame[frame["set"] == level] for level in sets])[["set", *columns]]
    turned = {level: targets[level] for level in sets if level in targets}
    for pooling in ("complete", "partial"):
        one, two = (
            pb.score(pb.stats(of, group="set", interventions=to), "x -> y -> z", pooling=pooling)
            for of, to in ((frame, targets), (shuffled, turned))
        )
        assert one == pytest.approx(two, abs=1e-6)
    nets = [
        pb.learn(of, group="set", interventions=to)
        for of, to in ((frame, targets), (shuffled, turned))
    ]
    assert set(nets[0].arcs) == set(nets[1].arcs)


@pytest.mark.parametrize("more", [[], ["arm"]])
def test_parts_add_up(more: list[str], tmp_path: Path) -> None:
    frame = trial()[["set", "x", "y", "z", *more]]
    targets: dict[str, Any] = {"c": ["y", *more], "d": {"y": "soft"}}
    whole = pb.stats(frame, group="set", interventions=targets)
    where = frame["set"]
    first = (where == "c") & (np.arange(len(frame)) % 2 == 0)
    parts = []
    for names, at in (("ab", where.isin(["a", "b"])), ("c", first),
                      ("cde", where.isin(["c", "d", "e"]) & ~first)):  # fmt: skip
        own = {level: of for level, of in targets.items() if level in names}
        part = pb.stats(frame[at], group="set", interventions=own)
        part.save(tmp_path / "part.stats", allow_small=True)
        parts.append(type(part).load(tmp_path / "part.stats"))
    found = parts[0] + parts[1] + parts[2]
    assert found.interventions == whole.interventions
    arcs = [("x", "y"), ("y", "z")]
    one, two = (pb.score(of, arcs, pooling="complete") for of in (found, whole))
    assert one == pytest.approx(two, rel=1e-12)
    with pytest.raises(DataError, match="different columns were set: 'y' and nothing"):
        pb.stats(frame, group="set", interventions={"c": ["y"]}) + pb.stats(frame, group="set")


def test_nothing_set_changes_nothing() -> None:
    frame = trial()
    nets = [
        pb.learn(frame, group="set", kinds=KINDS, **options)
        for options in ({}, {"interventions": {}}, {"interventions": None})
    ]
    assert len({net.to_json() for net in nets}) == 1
    assert nets[0].interventions == {}


def test_what_was_set_everywhere_is_an_input() -> None:
    frame = trial()[["set", "x", "y", "z"]]
    net = pb.learn(frame, group="set", interventions={level: ["y"] for level in "abcde"})
    assert (net.inputs, net.interventions) == (("y",), {})
    same = pb.learn(frame, group="set", inputs=["y"])
    assert net.score == same.score


# What the network says


@pytest.fixture(scope="module")
def net() -> pb.Network:
    return pb.learn(trial(rows=80), group="set", kinds=KINDS, interventions=TARGETS)


def test_where_a_node_was_set_it_has_its_values_and_no_parents(net: pb.Network) -> None:
    frame = trial(rows=80)
    assert net.dag.parents("y") == ("x",)
    own = frame.loc[frame["set"] == "c", "y"]
    ask = pd.DataFrame({"set": ["c", "c", "a", "a"], "x": [-3.0, 3.0, -3.0, 3.0]})
    found = net.predict(ask, "y")
    mean = found["y"].to_numpy() if "y" in found else found.iloc[:, 0].to_numpy()
    assert mean[:2] == pytest.approx([own.mean()] * 2)
    assert mean[3] - mean[2] > 4
    j = net.levels.index("c")
    assert net["y"].gaussian is not None
    assert net["y"].gaussian.sigma2[j] == pytest.approx(own.var(ddof=0))
    drawn = net.sample(4000, seed=1)
    there = drawn[drawn["set"] == "c"]
    assert there["y"].mean() == pytest.approx(own.mean(), abs=0.1)
    assert abs(there[["x", "y"]].corr().iloc[0, 1]) < 0.12
    share = (frame.loc[frame["set"] == "c", "arm"] == "yes").mean()
    assert (there["arm"] == "yes").mean() == pytest.approx(share, abs=0.06)
    for name, level in (("count", "d"), ("grade", "e")):
        some, rows = (of.loc[of["set"] == level, name].astype(float) for of in (drawn, frame))
        assert some.mean() == pytest.approx(rows.mean(), abs=0.35)


def test_effects_tables_and_files_leave_experiments_out(net: pb.Network, tmp_path: Path) -> None:
    each = net.effects(by="data set")
    assert each.loc[each["child"] == "y", "data_set"].tolist() == ["a", "b", "e"]
    assert each["effect"].notna().all()
    by_arc = net.effects().set_index(["parent", "child"]).loc[("x", "y")]
    assert by_arc[["c", "d"]].isna().all()
    assert net.interventions == {"c": ("y", "arm"), "d": ("y", "count"), "e": ("grade",)}
    assert "set in c, so left out: y and arm" in repr(net)
    assert "set in 'c' and 'd', left out of its likelihood" in net["y"].detail
    net.save(tmp_path / "net.json")
    again = pb.load(tmp_path / "net.json")
    assert again.interventions == net.interventions
    assert json.loads((tmp_path / "net.json").read_text())["version"] == 6
    pd.testing.assert_frame_equal(again.effects(by="data set"), each)
    rows = table(trial(rows=80), TARGETS)
    tests = net.heterogeneity(rows).set_index(["parent", "child"])["p_value"]
    assert tests["x", "y"] > 1e-4  # in d and c the slope is 0
    net.report(tmp_path / "report.html", data=rows)
    assert "set or changed." in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("pooling", ["complete", "partial"])
def test_new_data_sets_are_like_those_where_nothing_was_set(pooling: str) -> None:
    frame = trial()[["set", "x", "y"]]
    rest = frame[~frame["set"].isin(["c", "d"])]
    options: dict[str, Any] = {"group": "set", "pooling": pooling}
    known = pb.fit("x -> y", frame, interventions={"c": ["y"], "d": ["y"]}, **options)
    one, two = (of.adapt(name="new") for of in (known, pb.fit("x -> y", rest, **options)))
    assert one["y"].levels[-1] == "new"
    assert one["y"].coef[-1] == pytest.approx(two["y"].coef[-1])
    assert one["y"].sigma2[-1] == pytest.approx(two["y"].sigma2[-1])


# Mechanisms that were changed


def test_a_changed_mechanism_has_parameters_of_its_own() -> None:
    frame = trial()[["set", "x", "y", "z"]]
    stats = pb.stats(frame, group="set", interventions={"c": {"y": "soft"}})
    free, own = (
        pb.stats(frame[at], group="set") for at in (frame["set"] != "c", frame["set"] == "c")
    )

    def gain(of: Any, pooling: str) -> float:
        with_arc, without = (
            pb.score(of, arcs, pooling=pooling, score="bic") for arcs in ([("x", "y")], [])
        )
        return with_arc - without

    for pooling in ("complete", "partial"):
        expected = gain(free, pooling) + gain(own, "complete")
        assert gain(stats, pooling) == pytest.approx(expected, abs=1e-8)
    fit = pb.fit_node(stats, "y", ["x"], pooling="complete")
    rows = frame[frame["set"] == "c"]
    slope, level = np.polyfit(rows["x"], rows["y"], 1)
    assert fit.gaussian.coef[fit.levels.index("c")] == pytest.approx([level, slope])
    assert fit.loglik == pb.fit_node(free, "y", ["x"], pooling="complete").loglik
    assert (fit.was_set, fit.was_changed) == ((), ("c",))


@pytest.mark.parametrize(("child", "parents"), [("arm", ["y"]), ("count", ["x"]), ("grade", ["y"])])
def test_changed_mechanisms_of_all_kinds(child: str, parents: list[str]) -> None:
    frame = trial()
    made = table(frame, {"b": {child: "soft"}})
    fit = pb.fit_node(made, child, parents, pooling="complete")
    alone = pb.fit_node(table(frame[frame["set"] == "b"]), child, parents, pooling="complete")
    at, values = np.array([fit.levels.index("b")]), {parents[0]: np.array([0.7])}
    expected = alone.mean(values, np.array([0]))
    assert fit.mean(values, at) == pytest.approx(expected, rel=1e-5)


# Directions


def dags(N: int) -> Iterator[np.ndarray]:
    pairs = list(itertools.combinations(range(N), 2))
    for way in itertools.product((0, 1, 2), repeat=len(pairs)):
        arcs = np.zeros((N, N), dtype=bool)
        for (i, j), k in zip(pairs, way, strict=True):
            arcs[i, j], arcs[j, i] = k == 1, k == 2
        if not np.trace(np.linalg.matrix_power(np.eye(N) + arcs, N) - np.eye(N)):
            yield arcs


def v_structures(arcs: np.ndarray) -> frozenset[tuple[int, int, int]]:
    joined, N = arcs | arcs.T, range(len(arcs))
    return frozenset(
        (i, j, k) for k in N for i in N for j in range(i)
        if arcs[i, k] and arcs[j, k] and not joined[i, j]
    )  # fmt: skip


@pytest.mark.parametrize("targets", [[], [[0]], [[1], [2, 3]], [[0, 1]], [[0], [1], [2], [3]]])
def test_the_interventional_class_is_that_of_all_graphs(targets: list[list[int]]) -> None:
    """Hauser and Buehlmann (2012), Theorem 10: skeletons stay the same where arcs are cut."""
    classes: dict[Any, list[np.ndarray]] = {}
    for arcs in dags(4):
        cut = [arcs & ~np.isin(range(4), of) for of in targets]
        skeletons = tuple((of | of.T).tobytes() for of in (arcs, *cut))
        classes.setdefault((skeletons, v_structures(arcs)), []).append(arcs)
    apart = set_apart(range(4), targets)  # type: ignore[arg-type]
    for members in classes.values():
        shared = np.all(members, axis=0)
        for arcs in members:
            assert (completed(arcs, apart)[0] == shared).all()
            found = directions(arcs, apart, np.zeros_like(arcs))
            fixed = {tuple(at) for at in np.argwhere(shared).tolist()}
            assert {at for at, why in found.items() if why is not Direction.SCORE} == fixed


def test_directions_are_told_with_their_reasons() -> None:
    frame = trial()[["set", "x", "y", "z"]]
    targets = {"c": ["y"], "d": ["y"]}
    net = pb.learn(frame, group="set", interventions=targets)
    assert net.arcs == (("x", "y"), ("y", "z"))
    assert set(arc_directions(net).values()) == {Direction.INTERVENTIONS}
    assert net.cpdag().undirected == ()
    assert net.dag.cpdag().directed == ()
    tiers = pb.Constraints(tiers=[["x"], ["y"], ["z"]])
    without = pb.learn(frame[frame["set"].isin(["a", "b"])], group="set", constraints=tiers)
    assert set(arc_directions(without).values()) == {Direction.SCORE}
    assert set(arc_directions(without, tiers).values()) == {Direction.CONSTRAINTS}
    boot = pb.bootstrap(frame, group="set", interventions=targets, replicates=4, pooling="complete")
    at = [boot.nodes.index(name) for name in "xyz"]
    assert boot.direction[at[0], at[1]] == boot.direction[at[1], at[2]] == 1.0
    found = pb.arc_posterior(frame, group="set", interventions=targets, pooling="complete")
    at = [found.nodes.index(name) for name in "xyz"]
    assert found.direction[at[1], at[2]] > 0.99


# Searches


def chain(seed: int, kind: str) -> tuple[pd.DataFrame, dict[str, list[str]], pb.Dag]:
    """A random tree of seven nodes, five data sets, a node set in each but the first."""
    rng = np.random.default_rng(seed)
    names, order = [f"v{i}" for i in range(7)], rng.permutation(7)
    slopes = np.zeros((7, 7))
    for i in range(1, 7):
        for parent in rng.permutation(order[:i])[:1]:
            slopes[parent, order[i]] = rng.uniform(0.5, 1) * rng.choice([-1, 1])
    parts, targets = [], {}
    for j in range(5):
        x, own = np.zeros((40, 7)), order[j] if j else -1
        for node in order:
            x[:, node] = rng.normal(size=40)
            if node != own or kind == "soft":
                x[:, node] += x @ slopes[:, node]
            if node == own:
                x[:, node] += 2
        targets |= {f"e{j}": [names[own]]} if j else {}
        parts.append(pd.DataFrame(x, columns=names).assign(batch=f"e{j}"))
    dag = pb.Dag(names, [(names[p], names[c]) for p, c in np.argwhere(slopes)])
    return pd.concat(parts), targets, dag


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_known_targets_bring_the_graph_nearer(kind: str) -> None:
    distance = {"with": 0, "without": 0}
    for seed in range(6):
        frame, targets, dag = chain(seed, kind)
        known = {k: dict.fromkeys(v, kind) for k, v in targets.items()}
        for name, to in (("with", known), ("without", None)):
            net = pb.learn(frame, group="batch", interventions=to)
            wrong = {frozenset(a) for a in net.arcs} ^ {frozenset(a) for a in dag.arcs}
            turned = [a for a in net.arcs if a[::-1] in dag.arcs]
            distance[name] += len(wrong) + len(turned)
    assert distance["with"] < distance["without"] / 2


@pytest.mark.parametrize("search", ["hc", "tabu", "orders", "exact"])
def test_all_searches_know_what_was_set(search: Any) -> None:
    frame, targets, dag = chain(1, "hard")
    net = pb.learn(frame, group="batch", interventions=targets, search=search)
    stats = pb.stats(frame, group="batch", interventions=targets)
    assert net.score == pytest.approx(
        pb.score(stats, net.dag, pooling="complete", score="bic-w"), rel=1e-9
    )
    assert len(set(net.arcs) & set(dag.arcs)) >= len(dag.arcs) - 3


@pytest.mark.parametrize("search", ["pc", "hybrid"])
def test_tests_of_independence_refuse(search: Any) -> None:
    with pytest.raises(DataError, match="do not know what was set"):
        pb.learn(trial(), group="set", kinds=KINDS, interventions=TARGETS, search=search)


def test_the_test_of_a_graph_leaves_experiments_out() -> None:
    frame = trial()[["set", "x", "y", "z"]]
    # where y was set x and z are apart, and y does not go with x: both are no evidence
    net = pb.fit("x -> y -> z", frame, group="set", interventions={"c": ["z"], "d": ["y"]},
                 pooling="complete")  # fmt: skip
    (claim,) = net.test_graph().claims.to_dict("records")
    rest = frame[frame["set"] != "c"]
    plain = pb.fit("x -> y -> z", rest, group="set", pooling="complete")
    (same,) = plain.test_graph().claims.to_dict("records")
    assert claim["p_value"] == pytest.approx(same["p_value"])


def test_missing_cells_and_comparisons() -> None:
    rng = np.random.default_rng(2)
    frame = trial()[["set", "x", "y", "z"]]
    gaps = frame.mask(rng.random(frame.shape) < 0.05).assign(set=frame["set"])
    net = pb.learn(gaps, group="set", interventions={"c": ["y"], "d": ["y"]}, missing="em")
    assert net["y"].was_set == ("c", "d")
    found = pb.compare(frame, group="set", interventions={"c": ["y"], "d": ["y"]}, folds=3)
    assert found.left_out == ("a", "b", "e")  # nothing predicts what is set
    assert np.isfinite(found.loglik).all()


def test_the_command_line(tmp_path: Path) -> None:
    frame = trial()[["set", "x", "y", "z"]]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "set.csv").write_text("target,condition\ny,c\ny,d\n")
    args = [tmp_path / "rows.csv", "-g", "set", "--interventions", tmp_path / "set.csv"]
    done = fine("learn", *args, "-o", tmp_path / "out")
    assert "Direction fixed by interventions: x -> y and y -> z" in done.stdout
    assert pb.load(tmp_path / "out" / "network.json").interventions == {"c": ("y",), "d": ("y",)}
    assert "fixed by interventions" in (tmp_path / "out" / "report.html").read_text()
    fine("fit", "x -> y -> z", *args)
    fine("compare", *args)
    fine("bootstrap", *args, "--replicates", "2")
    fine("stats", *args, "-o", tmp_path / "all.stats")
    fine("learn", tmp_path / "all.stats")
    assert pb.GroupStats.load(tmp_path / "all.stats").interventions["c"] == {"y": "hard"}


@pytest.mark.parametrize(
    ("lines", "says"),
    [("", "has no line"), ("c,y,soft,now\n", "the line 'c,y,soft,now'"), ("c\n", "the line 'c'"),
     ("c,yy\n", "did you mean 'y'?"), ("cc,y\n", "did you mean 'c'?"),
     ("c,y,softly\n", "did you mean 'soft'?")],
)  # fmt: skip
def test_a_file_of_interventions_that_cannot_be_used(lines: str, says: str, tmp_path: Path) -> None:
    trial()[["set", "x", "y"]].to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "set.csv").write_text(lines)
    done = run("learn", tmp_path / "rows.csv", "-g", "set", "--interventions", tmp_path / "set.csv")
    assert done.exit_code == 2
    assert says in " ".join(done.stderr.split())


def test_halves_know_what_was_set() -> None:
    """`honest="split"` leaves the same data sets out of both halves."""
    rng = np.random.default_rng(4)
    lab = np.repeat(list("abc"), 60)
    x = rng.normal(size=180)
    y = np.where(lab == "c", 9.0 + rng.normal(size=180), x + rng.normal(size=180))
    table = pd.DataFrame({"lab": lab, "x": x, "y": y})
    rules = {"required": [("x", "y")]}
    net = pb.learn(
        table, group="lab", interventions={"c": ["y"]}, honest="split", constraints=rules
    )
    assert net.interventions == {"c": ("y",)}
    (effect,) = net.effects()["effect"]
    assert effect == pytest.approx(1.0, abs=0.3)
