"""Every score, pooling and search on tables of every kind: continuous, mixed, discrete, counts."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pandas as pd
import pytest

import poolbn as pb
from poolbn.moments.standardised import changed_by
from poolbn.scoring.local import LocalScores
from poolbn.search.problem import Problem

TABLES = ("continuous", "mixed", "discrete", "counts")
SCORES = ("bic", "bic-h", "gprior", "aic", "loglik")


@cache
def table(kind: str, rows: int = 60, seed: int = 0) -> pb.Table:
    """A chain a -> b -> c and d, which is alone, in five data sets."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"site": np.repeat([f"s{j}" for j in range(5)], rows)})
    level = dict(zip("abcd", rng.normal(0, 0.3, (4, 5)).repeat(rows, axis=1), strict=True))
    kinds = {
        "continuous": "nnnn", "mixed": "nblc", "discrete": "blbl", "counts": "cccc",
    }[kind]  # fmt: skip
    before = np.zeros(len(frame))
    for name, how in zip("abcd", kinds, strict=True):
        eta = level[name] + (1.2 * before if name in "bc" else 0.0)
        if how == "n":
            value = eta + rng.normal(size=len(frame))
        elif how == "b":
            value = (eta + rng.logistic(size=len(frame)) > 0).astype(float)
        elif how == "l":
            value = np.digitize(eta + rng.logistic(size=len(frame)), [-0.7, 0.9]).astype(float)
        else:
            value = rng.poisson(np.exp(np.clip(0.4 + 0.5 * eta, -3, 2))).astype(float)
        before = (value - value.mean()) / value.std()
        words = np.array(["low", "middle", "high"])
        frame[name] = value.astype(int) if how == "c" else value
        if how in "bl":
            frame[name] = words[value.astype(int)]
    counts = {name: "count" for name, how in zip("abcd", kinds, strict=True) if how == "c"}
    return pb.table(frame, group="site", kinds=counts)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize(
    ("score", "pooling"), [*itertools.product(SCORES, ["complete", "none", "partial", "auto"])]
)
def test_every_score_and_pooling_learns(kind: str, score: str, pooling: str) -> None:
    data = table(kind)
    net = pb.learn(data, score=score, pooling=pooling)
    assert net.score_kind == score
    if pooling != "auto":  # of another graph it may choose another pooling
        again, alone = (pb.score(data, of, score=score, pooling=pooling) for of in (net.dag, []))
        assert net.score == pytest.approx(again, rel=1e-6)
        assert net.score >= alone - 1e-6
    if score != "loglik":
        assert {frozenset("ab"), frozenset("bc")} <= {frozenset(arc) for arc in net.dag.arcs}
    if score in ("bic", "bic-h", "gprior"):
        assert not net.dag.parents("d") or pooling == "none"


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("score", ["bic", "bic-h", "gprior"])
def test_the_exact_search_finds_no_less(kind: str, score: str) -> None:
    data = table(kind, 30, 1)
    climbed, best = (
        pb.learn(data, score=score, search=search) for search in (None, pb.Exact(max_parents=3))
    )
    assert best.score >= climbed.score - 0.5  # the effort of a search is less than of final fits
    scores = LocalScores(data, score=score)
    total = float(
        scores(
            [
                (c, tuple(sorted(data.names.index(p) for p in best.dag.parents(name))))
                for c, name in enumerate(data.names)
            ]
        ).sum()
    )
    assert total >= float(scores([(c, ()) for c in range(4)]).sum())


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("score", ["bic", "bic-h", "gprior"])
@pytest.mark.parametrize("pooling", ["partial", "auto"])
def test_arcs_have_probabilities(kind: str, score: str, pooling: str) -> None:
    post = pb.arc_posterior(table(kind), score=score, pooling=pooling)
    chances = np.array(
        [[post.probability(p, c) if p != c else 0.0 for c in "abcd"] for p in "abcd"]
    )
    assert ((chances >= 0) & (chances <= 1 + 1e-9)).all()
    joined = chances + chances.T
    assert joined[0, 1] > 0.9
    assert joined[0, 3] < 0.5


@pytest.mark.parametrize("kind", TABLES)
def test_auto_takes_the_simplest_pooling_that_will_do(kind: str) -> None:
    """Data sets that are alike are pooled completely, others are not."""
    rng = np.random.default_rng(4)
    alike = table(kind).select(["a", "b"])
    shuffled = pd.DataFrame(dict(zip("ab", alike.cases(["a", "b"]).columns, strict=True)))
    sites = pd.Series(rng.permutation(np.repeat([f"s{j}" for j in range(5)], 60)))
    kinds = {name: alike.kind(name) for name in "ab"}
    one = pb.table(shuffled.assign(site=sites), group="site", kinds=kinds)
    apart = shuffled.copy()
    code = sites.str[1].astype(int)
    apart["b"] = np.where(
        rng.random(300) < 0.75, np.where(code < 2, apart["b"].min(), apart["b"].max()), apart["b"]
    )
    two = pb.table(apart.assign(site=sites), group="site", kinds=kinds)
    poolings = [
        {str(fit.pooling) for fit in pb.learn(data, pooling="auto").fits.values()}
        for data in (one, two)
    ]
    assert poolings[0] == {"complete pooling"}
    assert any(name.startswith("partial pooling") for name in poolings[1])


@pytest.mark.parametrize("kind", TABLES)
def test_bic_h_takes_what_parameters_and_parents_cost(kind: str) -> None:
    """Counts of parameters, charged by what informs them, and the prior for sets of parents."""
    data = table(kind)
    n, F, N = data.n_rows, len(data.n), len(data.names)
    each = np.array([math.log(n), (math.log(n) + math.log(F)) / 2, np.log(data.n).mean()]) / 2
    for parents in ([], ["a"], ["a", "b"]):
        fit = pb.fit_node(data, "c", parents)
        sparse = math.log(math.comb(N - 1, len(parents))) / 2
        arcs = [(p, "c") for p in parents]
        found = pb.score(data, arcs, score="bic-h") - sum(
            pb.score(data.select([name]), [], score="bic-h") for name in "abd"
        )
        expected = fit.loglik - float(np.array(fit.counts[:3]) @ each) - sparse
        if data.kind("c") == "continuous":  # a little more, for few rows
            assert expected - 1 < found < expected
        else:
            assert found == pytest.approx(expected, abs=1e-6)


def test_a_factor_does_not_depend_on_names_of_levels_or_the_order_of_columns() -> None:
    data = table("mixed")
    one = pb.score(data, [("a", "b"), ("b", "c"), ("a", "c")], score="gprior")
    other = data.select(["d", "c", "a", "b"])
    assert pb.score(other, [("a", "c"), ("b", "c"), ("a", "b")], score="gprior") == pytest.approx(
        one, rel=1e-9
    )


def test_parents_that_say_nothing_have_a_bayes_factor_below_one() -> None:
    """In most of 40 tables; and the more rows there are, the further below."""
    factors = []
    for rows in (20, 200):
        values = []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            frame = pd.DataFrame({"g": np.repeat(np.arange(4), rows)})
            frame["x"], frame["y"] = rng.normal(size=4 * rows), rng.random(4 * rows) < 0.4
            frame["z"] = rng.choice(list("abc"), 4 * rows)
            scores = LocalScores(pb.table(frame, group="g"), score="gprior")
            values.append(scores([(1, (0,)), (1, (2,)), (1, (0, 2))]))
        factors.append(np.array(values))
    assert ((factors[0] < 0).mean(axis=0) > 0.8).all()
    assert ((factors[1] < 0).mean(axis=0) > 0.95).all()
    assert (np.median(factors[1], axis=0) < np.median(factors[0], axis=0)).all()


class Wanted:
    """The least that a score has: one arc is good, and others are not."""

    def on(self, data, model):
        return Counted(data.names)


class Counted:
    def __init__(self, names):
        self.names = names

    def scores(self, families):
        own = [(self.names[c], [self.names[p] for p in parents]) for c, parents in families]
        return np.array([1.0 if of == ("b", ["a"]) else -float(len(of[1])) for of in own])


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("search", [None, pb.Exact(), "tabu", "orders"])
def test_a_score_of_ones_own_needs_two_methods(kind: str, search: object) -> None:
    net = pb.learn(table(kind), score=Wanted(), search=search)
    assert net.dag.arcs == (("a", "b"),)
    assert net.score == 1.0
    assert net.score_kind == "Wanted"
    assert net.fits["b"].parents == ("a",)
    assert math.isfinite(net.effects()["effect"].iloc[0])


class All(LocalScores):
    """Scores that leave nothing out."""

    def _at_once(self, families, candidates, improving_only):
        return super()._at_once(families, candidates, False)


class Hopeless(LocalScores):
    """Scores that say which changes are left out."""

    def out(self, family):
        child, parents = family
        candidates = np.ones((1, len(self.names)), dtype=bool)
        candidates[0, child] = False
        values, exact = self.neighbours([family], candidates, improving_only=True)
        others = [p for p in range(len(self.names)) if p != child and p not in parents]
        left = ~exact[0] & (values[0] < values[0, child]) & (values[0] > values[0, child] - 1e-5)
        return others, left[others]


@pytest.mark.parametrize("kind", ["mixed", "discrete", "counts"])
def test_no_parent_that_raises_the_score_is_left_out(kind: str) -> None:
    left = 0
    for seed in range(4):
        data = table(kind, [60, 150][seed % 2], seed)
        scores = Hopeless(data, threads=1)
        for child in range(4):
            for parents in ((), ((child + 1) % 4,), tuple(sorted({0, 1, 2} - {child}))[:2]):
                others, out = scores.out((child, parents))
                own = scores([(child, parents)])[0]
                more = [(child, tuple(sorted((*parents, p)))) for p in others]
                assert not (scores(more) > own)[out].any()
                left += int(out.sum())
    assert left > 0


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("score", ["bic", "bic-h", "aic"])
def test_a_search_that_leaves_columns_out_ends_in_the_same_graph(kind: str, score: str) -> None:
    for seed in range(3):
        data = table(kind, 100, seed)
        N = len(data.names)
        allowed = pb.Constraints().on(data.names)
        one, two = (
            pb.HillClimb().learn(
                Problem(of(data, score=score), allowed, np.zeros((N, N), dtype=bool))
            )
            for of in (LocalScores, All)
        )
        assert (one.arcs == two.arcs).all()
        assert one.score == pytest.approx(two.score, abs=1e-6)


def test_changes_of_continuous_children_come_at_once_in_mixed_tables() -> None:
    data = table("mixed")
    scores = LocalScores(data, threads=1)
    candidates = np.ones((2, 4), dtype=bool)
    families = [(0, ()), (0, (1, 2))]
    values, exact = scores._scores.neighbours(families, candidates, improving_only=False)
    assert np.isfinite(values[:, [0, 1]]).all()  # c is a block of two columns
    assert np.isnan(values[:, 2]).all()
    for m, p in zip(*np.nonzero(exact), strict=True):
        changed = families[m] if p == 0 else changed_by(families[m], int(p))
        assert values[m, p] == pytest.approx(scores([changed])[0], abs=1e-5)
    at_once = scores.neighbours(families, candidates, improving_only=False)
    for m, p in itertools.product(range(2), range(1, 4)):
        known = scores([changed_by(families[m], p)])[0]
        assert at_once.values[m, p] >= known - 1e-5


@pytest.mark.parametrize("kind", ["mixed", "discrete", "counts"])
def test_bounds_are_bounds(kind: str) -> None:
    data = table(kind, 40, 3)
    scores = LocalScores(data, threads=1)._scores
    families = [
        (c, parents)
        for c in range(4)
        for k in range(3)
        for parents in itertools.combinations([p for p in range(4) if p != c], k)
    ]
    bounds, values = scores.bounds(families), scores.scores(families)
    known = np.isfinite(bounds) if bounds is not None else np.zeros(len(families), dtype=bool)
    assert (bounds[known] >= values[known] - 1e-6).all() if known.any() else kind == "counts"


@pytest.mark.parametrize("pooling", ["complete", "none", "partial"])
@pytest.mark.parametrize("criterion", ["bic", "aic"])
def test_a_discrete_node_has_the_better_of_a_table_and_a_regression(
    pooling: str, criterion: str
) -> None:
    """Most regressions are never fitted, as no regression could be better than the table."""
    of = {"complete": pb.Complete, "none": pb.NoPooling, "partial": pb.Partial}[pooling]
    better = set()
    for rows, seed in itertools.product((20, 60), range(2)):
        data = table("discrete", rows, seed)
        for family in ((1, (0,)), (2, (0, 1)), (3, (0, 2)), (3, (0, 1, 2))):
            own, as_table, as_logit = (
                LocalScores(data, pooling=of(discrete=form), score=criterion, final=True)([family])
                for form in ("auto", "table", "logit")
            )
            assert own == pytest.approx(max(as_table, as_logit), rel=1e-9)
            better.add(bool(as_logit > as_table + 1e-6))
            child, *parents = (data.names[k] for k in (family[0], *family[1]))
            fits = (pb.fit_node(data, child, parents, pooling=of(discrete=form))
                    for form in ("auto", "table", "logit"))  # fmt: skip
            one, *two = (fit.bic for fit in fits)
            assert one == pytest.approx(max(two), rel=1e-9)
    assert pooling == "partial" or better == {True, False}


@pytest.mark.parametrize("kind", ["mixed", "discrete", "counts"])
def test_complete_pooling_screens_without_losing_what_would_help(kind: str) -> None:
    raised = missed = 0
    for seed in range(6):
        data = table(kind, 60, seed)
        N = len(data.names)
        scores = LocalScores(data, pooling="complete", score="bic-h")
        families = [
            (child, parents)
            for child in range(N)
            for size in range(3)
            for parents in itertools.combinations([k for k in range(N) if k != child], size)
        ]
        candidates = np.ones((len(families), N), dtype=bool)
        found = scores.neighbours(families, candidates, improving_only=True)
        own = scores(families)
        for m, (child, parents) in enumerate(families):
            for w in set(range(N)) - {child, *parents}:
                (value,) = scores([changed_by((child, parents), w)])
                raised += value > own[m]
                missed += value > own[m] and found.values[m, w] <= own[m]
    assert raised > 20
    assert missed <= 0.01 * raised
