"""PC and hybrid learning: against an oracle, and laws."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from helpers import REFERENCE

import poolbn as pb
from poolbn.graph.equivalence import completed, oriented
from poolbn.run import parallel
from poolbn.search.ordering import canonical_order

RULES = ("standard", "conservative", "majority")


def random_graph(rng: np.random.Generator, most: int = 8) -> pb.Dag:
    N = int(rng.integers(2, most + 1))
    arcs = np.triu(rng.random((N, N)) < rng.uniform(0.1, 0.7), 1)
    order = rng.permutation(N)
    return pb.Dag.from_adjacency(
        arcs[np.ix_(order, order)].astype(int), [f"V{k}" for k in range(N)]
    )


def pattern(dag: pb.Dag, rule: str, constraints: pb.Constraints) -> pb.Pattern:
    """By a user's own test, which knows the truth; of the data only the names count."""
    N = len(dag.nodes)
    counts = np.array([9]), np.zeros((1, N)), np.eye(N)[None], np.array([0])
    data = pb.GroupStats(dag.nodes, ("all",), *counts)
    learner = pb.PC(test=lambda x, y, given: float(dag.d_separated(x, y, given)), rule=rule)
    return learner.pattern(data, constraints=constraints)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(4))
def test_an_oracle_gives_the_class(rule: str, seed: int) -> None:
    """1000 random graphs."""
    rng = np.random.default_rng([seed, RULES.index(rule)])
    for _ in range(84):
        dag = random_graph(rng)
        found = pattern(dag, rule, pb.Constraints())
        assert found.cpdag == dag.cpdag()
        assert not found.conflicts
        for (a, b), separator in found.separators.items():
            assert dag.d_separated(a, b, separator)


def test_an_oracle_with_tiers_and_a_required_arc() -> None:
    """The class is that of the graphs which keep to what is known."""
    rng = np.random.default_rng(7)
    for _ in range(80):
        dag = random_graph(rng)
        order = dag.topological_order()
        cut = int(rng.integers(1, len(order))) if len(order) > 1 else 1
        tiers = [order[:cut], order[cut:]] if order[cut:] else [order]
        required = dag.arcs[:1]
        constraints = pb.Constraints(tiers=tiers, required=required)
        allowed = constraints.on(dag.nodes)
        fixed = allowed.required | (allowed.arcs & ~allowed.arcs.T)
        directed, undirected = completed(dag.to_adjacency().astype(bool), fixed)
        names = np.array(dag.nodes)
        theirs = pb.Cpdag(
            dag.nodes,
            [tuple(pair) for pair in names[np.argwhere(directed)].tolist()],
            [tuple(pair) for pair in names[np.argwhere(np.triu(undirected))].tolist()],
        )
        for rule in RULES:
            assert pattern(dag, rule, constraints).cpdag == theirs


def test_meeks_rules_by_two_algorithms() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        arcs = random_graph(rng, 10).to_adjacency().astype(bool)
        directed, undirected = completed(arcs)
        joined = arcs | arcs.T
        apart = ~(joined | np.eye(len(arcs), dtype=bool))
        meeting = np.zeros_like(arcs)
        for c in range(len(arcs)):
            pa = np.flatnonzero(arcs[:, c])
            meeting[pa[apart[np.ix_(pa, pa)].any(axis=1)], c] = True
        found = oriented(
            meeting,
            joined & ~(meeting | meeting.T),
            lambda a, b, c: False,
            np.zeros_like(arcs),
        )
        assert (found[0] == directed).all()
        assert (found[1] == undirected).all()


def test_arcs_on_a_cycle_become_edges() -> None:
    cycle = np.zeros((4, 4), dtype=bool)
    cycle[[0, 1, 2, 2], [1, 2, 0, 3]] = True
    none = np.zeros_like(cycle)
    directed, undirected = oriented(cycle, none, lambda a, b, c: True, none)
    assert np.argwhere(directed).tolist() == [[2, 3]]
    assert np.argwhere(np.triu(undirected)).tolist() == [[0, 1], [0, 2], [1, 2]]
    known = none.copy()
    known[0, 1] = True
    directed, _ = oriented(cycle, none, lambda a, b, c: True, known)
    assert directed[0, 1]


def rows(seed: int = 1, N: int = 8, data_sets: int = 5, n: int = 60) -> pd.DataFrame:
    """A random network with coefficients that differ between data sets."""
    rng = np.random.default_rng(seed)
    arcs = np.triu(rng.random((N, N)) < 0.3, 1)
    X = np.zeros((data_sets, n, N))
    for c in range(N):
        pa = np.flatnonzero(arcs[:, c])
        slopes = rng.normal(0.7, 0.2, (data_sets, len(pa)))
        X[:, :, c] = np.einsum("jp,jnp->jn", slopes, X[:, :, pa]) + rng.normal(size=(data_sets, n))
    frame = pd.DataFrame(X.reshape(-1, N), columns=[f"c{k}" for k in range(N)])
    return frame.assign(F=np.repeat([f"set {j}" for j in range(data_sets)], n))


@pytest.mark.parametrize("rule", ["conservative", "majority"])
@pytest.mark.parametrize("pooling", ["complete", "none", "partial"])
def test_order_and_units_do_not_matter(rule: str, pooling: str) -> None:
    """Nothing but the number of tests and which of several separating sets is named."""
    rng = np.random.default_rng(5)
    for seed in range(4):
        frame = rows(seed, N=10)
        columns = [c for c in frame.columns if c != "F"]
        learner = pb.PC(alpha=0.05, rule=rule)
        found = learner.pattern(pb.stats(frame, group="F"), pooling=pooling)
        mixed = frame[[*rng.permutation(columns), "F"]].sample(frac=1, random_state=seed)
        mixed[columns] = mixed[columns] * rng.uniform(-9, 9, len(columns)) + 3
        other = learner.pattern(pb.stats(mixed, group="F"), pooling=pooling)
        assert found.cpdag == other.cpdag
        assert {frozenset(t) for t in found.unsure} == {frozenset(t) for t in other.unsure}
        joined = found.table().query("joined")
        p = {frozenset((r.x, r.y)): r.p_value for r in other.table().itertuples()}
        for row in joined.itertuples():
            assert p[frozenset((row.x, row.y))] == pytest.approx(row.p_value, rel=1e-4, abs=1e-12)


def test_what_a_pattern_says() -> None:
    stats = pb.stats(rows(2), group="F")
    found = pb.PC().pattern(stats)
    assert found.test == "combined"
    table = found.table()
    joined = {frozenset(pair) for pair in (*found.cpdag.directed, *found.cpdag.undirected)}
    assert len(table) == math.comb(8, 2)
    for row in table.itertuples():
        assert row.joined == ({row.x, row.y} in joined) == (row.p_value <= 0.01)
        if not row.joined:
            test = pb.ci_test(stats, row.x, row.y, row.given)
            assert test.p_value == pytest.approx(row.p_value, rel=1e-4)
            assert test.p_value > 0.01
    doubt = np.abs(np.log(table["p_value"]) - math.log(0.01))
    assert doubt.is_monotonic_increasing
    assert f"{found.tests} tests (combined) at alpha = 0.01" in repr(found)


@pytest.mark.parametrize("pooling", ["complete", "none", "partial"])
def test_a_learned_network_is_of_the_class(pooling: str) -> None:
    inside = 0
    for seed in range(6):
        stats = pb.stats(rows(seed), group="F")
        found = pb.PC().pattern(stats, pooling=pooling)
        net = pb.learn(stats, pooling=pooling, search=pb.PC(), preset="paper")
        try:
            first = found.cpdag.extension()
        except pb.GraphError:
            continue
        inside += 1
        assert {frozenset(pair) for pair in net.dag.skeleton()} == {
            frozenset(pair) for pair in (*found.cpdag.directed, *found.cpdag.undirected)
        }
        assert set(found.cpdag.directed) <= set(net.dag.arcs)
        assert set(net.dag.v_structures()) == set(first.v_structures())
        assert net.score >= pb.score(stats, first, pooling=pooling) - 1e-6
    assert inside >= 4


def test_the_best_orientation_of_a_chain() -> None:
    """With random effects equivalent networks score differently; the best of all is found."""
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(6), 40)
    a = rng.normal(size=240)
    b = rng.normal(1, 0.7, 6)[codes] * a + rng.normal(size=240)
    c = rng.normal(1, 0.7, 6)[codes] * b + rng.normal(size=240)
    stats = pb.stats(pd.DataFrame({"c": c, "a": a, "b": b, "F": codes}), group="F")
    assert pb.PC().pattern(stats).cpdag == pb.Cpdag(list("abc"), [], [("a", "b"), ("b", "c")])
    chains = ["[a][b|a][c|b]", "[c][b|c][a|b]", "[b][a|b][c|b]"]
    scores = {text: pb.score(stats, text) for text in chains}
    assert pb.learn(stats, search=pb.PC(), preset="paper").score == pytest.approx(
        max(scores.values())
    )
    assert len({round(value, 3) for value in scores.values()}) == 3


def test_constraints() -> None:
    frame = rows(3)
    stats = pb.stats(frame, group="F")
    tiers = [["c6", "c7"], ["c0", "c1", "c2"], ["c3", "c4", "c5"]]
    constraints = pb.Constraints(
        tiers=tiers, required=[("c6", "c3")], forbidden=[("c0", "c1"), ("c1", "c0")]
    )
    tier = {name: number for number, names in enumerate(tiers) for name in names}
    for search in (pb.PC(), pb.Hybrid(), pb.Hybrid(pb.PC(alpha=0.05))):
        dag = pb.learn(stats, search=search, constraints=constraints, preset="paper").dag
        assert ("c6", "c3") in dag.arcs
        assert not {("c0", "c1"), ("c1", "c0")} & set(dag.arcs)
        assert all(tier[parent] <= tier[child] for parent, child in dag.arcs)
    few = pb.Constraints(max_parents=1)
    for search in (pb.PC(alpha=0.2), pb.Hybrid()):
        dag = pb.learn(stats, search=search, constraints=few, preset="paper").dag
        assert max(len(dag.parents(node)) for node in dag.nodes) == 1


def test_inputs_are_never_children() -> None:
    stats = pb.stats(rows(4), group="F", inputs=["c5", "c6", "c7"])
    found = pb.PC().pattern(stats)
    assert not [arc for arc in found.cpdag.directed if arc[1] in stats.inputs]
    dag = pb.learn(stats, search=pb.PC(), preset="paper").dag
    assert all(not dag.parents(name) for name in stats.inputs)


def test_max_given() -> None:
    stats = pb.stats(rows(5, N=10), group="F")
    found = pb.PC(max_given=0).pattern(stats)
    assert found.tests == math.comb(10, 2)
    assert set(found.separators.values()) == {()}


@pytest.mark.parametrize("rule", RULES)
def test_a_network_joins_what_tests_join(rule: str) -> None:
    """Also where tests contradict each other, so that no network of one class has all they say."""
    trouble = 0
    for seed in range(24):
        rng = np.random.default_rng([seed, RULES.index(rule)])
        N = int(rng.integers(4, 9))
        frame = rows(seed, N=N, data_sets=2, n=15)
        answers: dict[object, float] = {}

        def by_chance(x: str, y: str, given: tuple[str, ...], rng=rng, answers=answers) -> float:
            return answers.setdefault((frozenset([x, y]), frozenset(given)), rng.random())

        names = [f"c{k}" for k in range(N)]
        tiers = [names[:2], names[2:]] if seed % 3 == 0 else []
        search = pb.PC(alpha=0.93, rule=rule, test=by_chance)
        stats, known = pb.stats(frame, group="F"), pb.Constraints(tiers=tiers)
        net = pb.learn(stats, search=search, pooling="none", constraints=known, preset="paper")
        # In the same order: what separates two columns first depends on it.
        found = search.pattern(stats.select(canonical_order(stats)), constraints=known).cpdag
        edges = (*found.directed, *found.undirected)
        assert set(map(frozenset, net.dag.skeleton())) == set(map(frozenset, edges))
        assert set(found.directed) <= set(net.dag.arcs)
        try:
            found.extension()
        except pb.GraphError:
            trouble += 1
    assert trouble > 3


def test_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is left to test, there is nothing to deal out either."""
    monkeypatch.setattr(parallel, "available_cores", lambda: 1)
    for N in (2, 3, 8):
        stats = pb.stats(rows(1, N=N), group="F")
        for search in (pb.PC(), pb.PC(rule="conservative"), pb.Hybrid()):
            one = pb.learn(stats, search=search, preset="paper").dag
            monkeypatch.setattr(parallel, "available_cores", lambda: 2)
            assert pb.learn(stats, search=search, preset="paper").dag == one
            monkeypatch.setattr(parallel, "available_cores", lambda: 1)


@pytest.mark.parametrize("pooling", ["complete", "none", "partial"])
def test_a_reference_in_which_tests_contradict_each_other(pooling: str) -> None:
    stats = pb.stats(REFERENCE / "bn" / "bn11_AP2_J20_nj20.csv.gz", group="F")
    search = pb.PC(alpha=0.05)
    net = pb.learn(stats, search=search, pooling=pooling, preset="paper")
    found = search.pattern(stats, pooling=pooling).cpdag
    edges = (*found.directed, *found.undirected)
    assert set(map(frozenset, net.dag.skeleton())) == set(map(frozenset, edges))
    assert pooling != "complete" or {"X1", "X2"} in map(set, net.dag.arcs)


class Everything:
    """Restricts nothing."""

    test = "auto"

    def joined(self, tests: object, allowed: object) -> np.ndarray:
        return np.ones((8, 8), dtype=bool)


def test_hybrid_without_a_restriction_is_the_search_itself() -> None:
    stats = pb.stats(rows(6), group="F")
    for search in (pb.HillClimb(), pb.Exact()):
        plain = pb.learn(stats, search=search, preset="paper")
        assert (
            pb.learn(stats, search=pb.Hybrid(Everything(), search), preset="paper").dag == plain.dag
        )


def test_hybrid_joins_candidates_only_and_widens() -> None:
    stats = pb.stats(rows(7, N=12), group="F")
    for restrict in (pb.MMPC(), pb.PC(alpha=0.05)):
        narrow = pb.learn(stats, search=pb.Hybrid(restrict, widen=False), preset="paper")
        wide = pb.learn(stats, search=pb.Hybrid(restrict), preset="paper")
        assert wide.score >= narrow.score
    skeleton = {frozenset(pair) for pair in narrow.dag.skeleton()}
    found = pb.PC(alpha=0.05).pattern(stats).cpdag
    assert skeleton <= {frozenset(pair) for pair in (*found.directed, *found.undirected)}
    assert sum(move.gain for move in wide.trace) == pytest.approx(
        wide.score - pb.score(stats, []), rel=1e-6
    )


def test_missing_cells() -> None:
    frame = rows(8)
    rng = np.random.default_rng(1)
    cells = frame.drop(columns="F").mask(rng.random((len(frame), 8)) < 0.05)
    cells.loc[frame["F"] == "set 0", "c3"] = np.nan  # never measured there
    stats = pb.stats(cells.assign(F=frame["F"]), group="F", missing="em")
    assert pb.ci_test(stats, "c1", "c3").left_out == ("set 0",)
    assert pb.ci_test(stats, "c1", "c2", ["c3"]).left_out == ("set 0",)
    assert pb.ci_test(stats, "c1", "c2").left_out == ()
    assert pb.learn(stats, search=pb.PC(), preset="paper").dag.nodes == stats.names


def test_a_test_of_the_users_own() -> None:
    """Any columns, as the function looks at them itself; hybrid learning asks it too."""
    frame = rows(9)
    stats = pb.stats(frame, group="F")

    def own(x: str, y: str, given: tuple[str, ...]) -> float:
        return pb.ci_test(stats, x, y, given, test="f").p_value

    found = pb.PC(test=own).pattern(stats)
    assert found.test == "own"
    assert found.cpdag == pb.PC(test="f").pattern(stats).cpdag
    own_net = pb.learn(stats, search=pb.Hybrid(pb.MMPC(test=own)), preset="paper")
    assert own_net.dag == pb.learn(stats, search=pb.Hybrid(pb.MMPC(test="f")), preset="paper").dag
    with pytest.raises(pb.OptionError, match="should be a p-value from 0 to 1"):
        pb.PC(test=lambda x, y, given: 3.0).pattern(stats)


def test_missing_cells_in_columns_of_all_kinds() -> None:
    frame = rows(10)
    frame["sex"] = np.random.default_rng(1).choice(["f", "m"], len(frame))
    frame.loc[3, "c0"] = math.nan
    with pytest.raises(pb.DataError, match="without missing cells; use missing='drop'"):
        pb.learn(frame, group="F", missing="em", search=pb.PC(), preset="paper")


def test_a_column_that_is_constant_in_each_data_set_is_not_joined() -> None:
    """Nothing can be tested with it, so nothing speaks for an edge; unless one is required."""
    frame = rows(11)
    frame["size"] = frame["F"].map({name: float(i) for i, name in enumerate(frame["F"].unique())})
    with pytest.warns(pb.DataWarning):
        net = pb.learn(frame, group="F", search=pb.PC(), preset="paper")
    assert not net.dag.parents("size")
    assert not net.dag.children("size")
    stats = pb.stats(frame, group="F")
    found = pb.PC().pattern(stats)
    assert not [pair for pair in found.separators if "size" in pair]
    assert "size" not in set(found.table()["x"]) | set(found.table()["y"])
    required = pb.PC().pattern(stats, constraints={"required": [("size", "c0")]})
    assert ("size", "c0") in required.cpdag.directed
    without = pb.PC().pattern(pb.stats(frame.drop(columns="size"), group="F")).cpdag
    assert set(found.cpdag.directed) == set(without.directed)
    assert set(found.cpdag.undirected) == set(without.undirected)


def test_hybrid_joins_what_tests_of_sets_missed() -> None:
    """Few candidates, and none within two steps of each other: tests given parents find the rest.

    No arc with a column that depends on another given its parents makes the network better.
    """
    stats = pb.stats(rows(12), group="F")
    strict = pb.MMPC(alpha=1e-9)
    found = pb.learn(stats, search=pb.Hybrid(strict), preset="paper")
    assert (
        found.score > pb.learn(stats, search=pb.Hybrid(strict, widen=False), preset="paper").score
    )
    for child in stats.names:
        given = found.dag.parents(child)
        for other in set(stats.names) - {child, *given, *found.dag.descendants(child)}:
            if pb.ci_test(stats, other, child, given).p_value <= 0.05:
                more = pb.Dag(stats.names, [*found.dag.arcs, (other, child)])
                assert pb.score(stats, more) <= found.score + 1e-6
    nothing = pb.learn(stats, search=pb.Hybrid(Nothing()), preset="paper")
    assert nothing.score > pb.score(stats, [])


class Nothing:
    """Leaves no candidates."""

    test = "auto"

    def joined(self, tests: object, allowed: object) -> np.ndarray:
        return np.zeros((8, 8), dtype=bool)
