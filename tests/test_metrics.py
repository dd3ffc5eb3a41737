from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import given
from hypothesis import given as drawn
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

import poolbn as pb
from poolbn import metrics

seeds = st.integers(0, 10**6)
AB, BA = pb.Dag(["a", "b"], [("a", "b")]), pb.Dag(["a", "b"], [("b", "a")])


def random_graph(seed: int, N: int = 6, share: float = 0.4) -> pb.Dag:
    rng = np.random.default_rng(seed)
    nodes = [f"X{i}" for i in range(N)]
    order = rng.permutation(N)
    arcs = np.argwhere(np.triu(rng.random((N, N)) < share, 1))
    return pb.Dag(nodes, [(nodes[order[i]], nodes[order[j]]) for i, j in arcs])


def random_parameters(seed: int, data_sets: int = 3) -> pb.Network:
    dag = random_graph(seed)
    rng = np.random.default_rng([seed, 1])
    coef = {v: rng.normal(size=(data_sets, len(dag.parents(v)) + 1)) for v in dag.nodes}
    sd = rng.uniform(0.5, 2, (data_sets, len(dag.nodes)))
    return given(dag, coef, sd, list("abc")[:data_sets], rng.integers(1, 9, data_sets).tolist())


def in_other_units(net: pb.Network, scale: np.ndarray, shift: np.ndarray) -> pb.Network:
    """The network of the columns scale * x + shift."""
    place = {v: i for i, v in enumerate(net.dag.nodes)}
    coef, sd = {}, np.empty((len(net.levels), len(place)))
    for v, fit in net.fits.items():
        pa = [place[p] for p in fit.parents]
        slope = fit.coef[:, 1:] * scale[place[v]] / scale[pa]
        intercept = scale[place[v]] * fit.coef[:, 0] + shift[place[v]] - slope @ shift[pa]
        coef[v] = np.column_stack([intercept, slope])
        sd[:, place[v]] = np.sqrt(fit.sigma2) * scale[place[v]]
    return given(net.dag, coef, sd, list(net.levels), net.n.tolist())


def textbook(p: pb.Network, q: pb.Network, j: int) -> float:
    """The divergence of two multivariate normal distributions."""
    at = [q.joint.names.index(name) for name in p.joint.names]
    m, S = p.joint.mean[j], p.joint.cov[j]
    d, T = q.joint.mean[j][at] - m, q.joint.cov[j][np.ix_(at, at)]
    logs = np.linalg.slogdet(T)[1] - np.linalg.slogdet(S)[1]
    inverse = np.linalg.inv(T)
    return (np.trace(inverse @ S) + d @ inverse @ d - len(m) + logs) / 2


# Graphs


@drawn(seeds, seeds, seeds)
def test_shd_is_a_distance_between_classes(a: int, b: int, c: int) -> None:
    one, two, three = (random_graph(seed, 5) for seed in (a, b, c))
    assert metrics.shd(one, two) == metrics.shd(two, one) <= 10
    assert (metrics.shd(one, two) == 0) == (one.cpdag() == two.cpdag())
    assert metrics.shd(one, three) <= metrics.shd(one, two) + metrics.shd(two, three)
    assert metrics.shd(one.cpdag(), two) == metrics.shd(one, two.cpdag()) == metrics.shd(one, two)


def test_shd_counts_each_pair_once() -> None:
    nodes = list("ABCDE")
    true = pb.Cpdag(nodes, directed=[("A", "B"), ("C", "D")], undirected=[("B", "C"), ("D", "E")])
    turned = pb.Cpdag(nodes, directed=[("B", "A"), ("C", "B")], undirected=[("C", "D"), ("A", "E")])
    # A - B turned, B - C directed, C - D not directed, D - E missing, A - E extra
    assert metrics.shd(true, turned) == 5
    assert metrics.shd(true, pb.Cpdag(nodes[::-1], true.directed, true.undirected)) == 0


@drawn(seeds, seeds)
def test_every_arc_is_counted_once(a: int, b: int) -> None:
    true, learned = random_graph(a), random_graph(b)
    counts = metrics.compare_arcs(true, learned)
    matrix, other = true.to_adjacency(), learned.to_adjacency()
    assert counts.correct == (matrix * other).sum()
    assert counts.reversed == (matrix * other.T).sum()
    assert counts.correct + counts.reversed + counts.missing == len(true.arcs)
    assert counts.correct + counts.reversed + counts.extra == len(learned.arcs)
    different = (matrix != other) | (matrix != other).T
    assert counts.distance == np.triu(different).sum()


# Divergence


@drawn(seeds, seeds)
def test_divergence_is_that_of_normal_distributions(a: int, b: int) -> None:
    p, q = random_parameters(a), random_parameters(b)
    each = [textbook(p, q, j) for j in range(3)]
    assert metrics.kl(p, q, weights="sum") == pytest.approx(sum(each), rel=1e-8, abs=1e-10)
    assert metrics.kl(p, q) == pytest.approx(np.dot(p.n / p.n.sum(), each), rel=1e-8, abs=1e-10)


def test_divergence_is_an_expected_log_ratio() -> None:
    p, q = random_parameters(1, 1), random_parameters(2, 1)
    normals = [multivariate_normal(net.joint.mean[0], net.joint.cov[0]) for net in (p, q)]
    X = normals[0].rvs(200_000, random_state=1)
    ratio = normals[0].logpdf(X) - normals[1].logpdf(X)
    error = ratio.std() / math.sqrt(len(ratio))
    assert abs(metrics.kl(p, q) - ratio.mean()) < 4 * error


@drawn(seeds, seeds)
def test_units_do_not_matter(a: int, b: int) -> None:
    p, q = random_parameters(a), random_parameters(b)
    rng = np.random.default_rng(a + b)
    scale, shift = 10 ** rng.uniform(-6, 6, 6), rng.normal(size=6)
    change = (in_other_units(net, scale, scale * shift) for net in (p, q))
    assert metrics.kl(*change) == pytest.approx(metrics.kl(p, q), rel=1e-8)


@drawn(seeds)
def test_no_divergence_from_itself(seed: int) -> None:
    p = random_parameters(seed)
    assert metrics.kl(p, p) == pytest.approx(0, abs=1e-13)
    rng = np.random.default_rng(seed)
    large = in_other_units(p, 10 ** rng.uniform(-6, 6, 6), rng.normal(size=6))
    assert metrics.kl(large, large) == pytest.approx(0, abs=1e-13)


def test_order_does_not_matter() -> None:
    p, q = random_parameters(1), random_parameters(2)
    back = [2, 0, 1]
    dag = pb.Dag(q.dag.nodes[::-1], q.dag.arcs)
    fits = {}
    for v in dag.nodes:
        fit = q.fits[v]
        parents = dag.parents(v)
        columns = [0, *(1 + fit.parents.index(parent) for parent in parents)]
        fits[v] = replace(
            fit,
            parents=parents,
            levels=tuple(q.levels[j] for j in back),
            coef=fit.coef[back][:, columns],
            sigma2=fit.sigma2[back],
        )
    same = replace(q, dag=dag, fits=fits, n=q.n[back])
    assert metrics.kl(p, same) == pytest.approx(metrics.kl(p, q), rel=1e-12)
    assert metrics.kl(same, p, weights="sum") == pytest.approx(metrics.kl(q, p, weights="sum"))
    assert metrics.kl(q, same) == pytest.approx(0, abs=1e-13)


def test_the_same_distribution_in_another_graph() -> None:
    p = given(AB, {"a": [[1]], "b": [[2, 3]]}, np.array([2, 1]), ["s"])
    variance = 9 * 4 + 1
    slope = 3 * 4 / variance
    q = given(
        BA,
        {"a": [[1 - slope * 5, slope]], "b": [[5]]},
        np.sqrt([4 - slope * 3 * 4, variance]),
        ["s"],
    )
    assert metrics.kl(p, q) == pytest.approx(0, abs=1e-14)
    assert metrics.kl(q, p) == pytest.approx(0, abs=1e-14)


def line(sd: tuple[float, float], slope: float = 2.0, mean: float = 0.0) -> pb.Network:
    """Node b = slope * a, with residuals, in two data sets; the second has no residual variance."""
    coef = {"a": [[mean], [mean]], "b": [[0, slope], [0, slope]]}
    return given(AB, coef, np.array([[1, 1], sd]), ["s", "t"], [1, 1])


def test_divergence_without_residual_variance() -> None:
    exact, loose = line((1, 0)), line((1, 0.5))
    assert metrics.kl(loose, exact) == math.inf  # what happens is ruled out
    assert metrics.kl(exact, loose) == math.inf  # a density on a line has none in the plane
    assert metrics.kl(exact, exact) == 0
    # The same line: only the distribution along it differs. Another line: all differs.
    along = textbook_normal(0, 1, 1, 3)
    assert metrics.kl(exact, line((3, 0), mean=1.0)) == pytest.approx(
        (along + metrics.kl(line((1, 1)), line((1, 1), mean=1.0))) / 2
    )
    assert metrics.kl(exact, line((1, 0), slope=2.1)) == math.inf
    # A data set that never happens does not matter.
    never = replace(exact, n=np.array([5, 0]))
    assert metrics.kl(never, loose) == 0
    assert metrics.kl(never, loose, weights="sum") == math.inf


def textbook_normal(m: float, s: float, n: float, t: float) -> float:
    return math.log(t / s) + (s**2 + (m - n) ** 2) / (2 * t**2) - 1 / 2


def test_one_line_in_two_graphs() -> None:
    """In one a is b / 2, in the other b is 2 a; the free coordinate is another one."""
    p = given(AB, {"a": [[0]], "b": [[0, 2]]}, np.array([1, 0]), ["s"])
    q = given(BA, {"a": [[0, 0.5]], "b": [[1]]}, np.array([0, 3]), ["s"])
    assert metrics.kl(p, q) == pytest.approx(textbook_normal(0, 2, 1, 3))
    assert metrics.kl(q, p) == pytest.approx(textbook_normal(1, 3, 0, 2))


@drawn(st.floats(0.1, 10), st.floats(-10, 10), st.floats(0.1, 10))
def test_rounding_does_not_make_two_lines_of_one(slope: float, shift: float, sd: float) -> None:
    p = given(AB, {"a": [[1]], "b": [[shift, slope]]}, np.array([sd, 0]), ["s"])
    back = {"a": [[-shift / slope, 1 / slope]], "b": [[0]]}
    q = given(BA, back, np.array([0, 3]), ["s"])
    along = textbook_normal(shift + slope, slope * sd, 0, 3)
    assert metrics.kl(p, q) == pytest.approx(along, rel=1e-9, abs=1e-12)


# Predictions


def test_rmad_by_hand() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 50, 3))
    error = [[abs(x[k, i] - y[k, i]) / abs(x[k, i]) for k in range(50)] for i in range(3)]
    assert metrics.rmad(x, y) == pytest.approx(sum(sum(column) / 50 for column in error) / 3)
    middle = [(sorted(column)[24] + sorted(column)[25]) / 2 for column in error]
    assert metrics.median_rmad(x, y) == pytest.approx(sum(middle) / 3)
    assert metrics.rmad(x[:, 0], y[:, 0]) == pytest.approx(sum(error[0]) / 50)
    frames = [pd.DataFrame(table, columns=list("abc")) for table in (x, y)]
    assert metrics.rmad(*frames) == metrics.rmad(x, y)


def test_rmad_of_zeros() -> None:
    assert metrics.rmad([0.0, 1.0], [0.0, 1.5]) == 0.25
    assert metrics.rmad([0.0, 1.0], [0.1, 1.5]) == math.inf
    assert metrics.median_rmad([0.0, 1.0, 2.0], [0.1, 1.5, 2.0]) == 0.5


@drawn(seeds, st.integers(1, 30))
def test_f1_by_a_confusion_matrix(seed: int, rows: int) -> None:
    levels = ["KY", "MN", "NY", "MS"]
    rng = np.random.default_rng(seed)
    actual, predicted = rng.choice(levels, rows).tolist(), rng.choice(levels[1:], rows).tolist()
    table = {(a, b): 0 for a in levels for b in levels}
    for pair in zip(actual, predicted, strict=True):
        table[pair] += 1
    scores = {}
    for level in levels:
        guesses = sum(table[a, level] for a in levels)
        there = sum(table[level, b] for b in levels)
        precision = table[level, level] / guesses if guesses else None
        recall = table[level, level] / there if there else None
        if precision and recall:
            scores[level] = 2 * precision * recall / (precision + recall)
        elif guesses or there:
            scores[level] = 0.0
    result = metrics.f1(actual, predicted, levels)
    assert result.by_data_set == pytest.approx(scores)
    assert set(result.never_predicted) == (set(actual) - set(predicted))
    assert result.mean == pytest.approx(sum(scores.values()) / len(scores))
    kept = [f for level, f in scores.items() if level in predicted]
    assert result.mean_of_predicted == pytest.approx(sum(kept) / len(kept))


def test_f1_takes_columns() -> None:
    actual = pd.Series([1, 1, 2, 3])
    assert metrics.f1(actual, np.array([1, 1, 2, 2]), [1, 2, 3]).by_data_set == pytest.approx(
        {1: 1, 2: 2 / 3, 3: 0}
    )


def test_calibration_of_normal_intervals() -> None:
    x = np.random.default_rng(0).normal(size=20_000)
    half = {level: norm.ppf((1 + level) / 2) for level in (0.95, 0.5, 0.8)}
    ends = {level: (np.full_like(x, -h), np.full_like(x, h)) for level, h in half.items()}
    table = metrics.calibration(x, ends)
    assert table["nominal"].tolist() == [0.5, 0.8, 0.95]
    assert (np.abs(table["coverage"] - table["nominal"]) < 4 * table["se"]).all()
    for row in table.itertuples():
        assert row.coverage == metrics.coverage(x, *ends[row.nominal])
        assert row.se == pytest.approx(math.sqrt(row.coverage * (1 - row.coverage) / len(x)))


def test_ends_belong_to_an_interval() -> None:
    assert metrics.coverage([1.0, 2.0, 3.0], [1, 3, 0], [2, 4, 3]) == pytest.approx(2 / 3)
    assert metrics.coverage([5.0], [-np.inf], [np.inf]) == 1
