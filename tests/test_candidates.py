"""What a search leaves out without a fit, against dense matrices of rows, and against fits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers import simulate, simulate_network

import poolbn as pb
from poolbn.moments.standardised import Family, pack, standardise, units
from poolbn.nodes import lmm
from poolbn.run.compiling import kernels
from poolbn.scoring.local import LocalScores
from poolbn.search.problem import Problem

COLUMNS = 70  # more than are worked on at once


def falls(stats: pb.GroupStats, family: Family) -> np.ndarray:
    """What one more parent could take from the deviance, by small steps and by own slopes."""
    data = standardise(stats)
    F, N = data.mean.shape
    q = len(family[1]) + 1
    work, room = kernels("work"), kernels("screens").room(F, q, N)
    slopes, model = lmm.Slopes.of(data, "full"), lmm.RESIDUALS["shared"]
    packed = pack(data, [family], slopes.key)
    (buffer,) = work.rooms(F, q + 1, False, work.shapes)
    found = np.empty((2, N))
    kernels("candidates").look(
        data.n, data.mean, data.scatter, data.squares, *packed, np.zeros(1, dtype=np.int64),
        slopes.ranks, slopes.flags, np.zeros((1, N), dtype=bool), model.score_starts, 1e9, 1e-12,
        np.zeros((1, 3, 3)), units(data, packed, False), 1.5, 0.5, 1e-6, buffer,
        *np.empty((2, q + 1), dtype=np.int64), np.zeros(4), np.empty((q, q)), np.empty((q, q)),
        np.full(room, np.nan), found, np.empty((1, N)), np.empty((1, N), bool),
    )  # fmt: skip
    return found


def dense(frame: pd.DataFrame, family: Family, x: int) -> tuple[float, float]:
    """The same from the rows: covariances, generalised least squares, own regressions."""
    names = [name for name in frame if name != "F"]
    frame = frame.assign(**(frame[names] - frame[names].mean()))  # as statistics are standardised
    child, parents = names[family[0]], [names[p] for p in family[1]]
    fit = pb.fit_node(pb.stats(frame, group="F"), child, parents)
    D = fit.random_cov / fit.sigma2[0]
    groups = [group for _, group in frame.groupby("F")]
    F, n = len(groups), len(frame)
    Z = [np.column_stack([np.ones(len(g)), g[parents]]) for g in groups]
    X = [np.column_stack([z, g[names[x]]]) for z, g in zip(Z, groups, strict=True)]
    y = [g[child].to_numpy() for g in groups]
    V = [np.linalg.inv(np.eye(len(z)) + z @ D @ z.T) for z in Z]

    def gls(of: list[np.ndarray]) -> tuple[np.ndarray, float, list[np.ndarray]]:
        S = sum(a.T @ v @ a for a, v in zip(of, V, strict=True))
        beta = np.linalg.solve(S, sum(a.T @ v @ b for a, v, b in zip(of, V, y, strict=True)))
        e = [b - a @ beta for a, b in zip(of, y, strict=True)]
        return S, sum(r @ v @ r for r, v in zip(e, V, strict=True)), e

    _, rss, _ = gls(Z)
    S, less, e = gls(X)
    values, vectors = np.linalg.eigh(D)
    L = vectors[:, values > 1e-9 * max(values.max(), 1e-9)]
    U = np.zeros((len(S), L.shape[1] + 1))
    U[:-1, :-1], U[-1, -1] = L, 1
    G = sum(np.outer(g, g) for g in (a.T @ v @ r for a, v, r in zip(X, V, e, strict=True)))
    M = np.linalg.solve(U.T @ S @ U, n / less * U.T @ G @ U)
    step = F * (np.trace(M) - np.linalg.slogdet(M)[1] - len(M))
    own = [sum(np.linalg.lstsq(a, b)[1].sum() for a, b in zip(of, y, strict=True)) for of in (Z, X)]
    return max(n * np.log(rss / less) + step, F * shrink(Z, X, V, L, y)), n * np.log(
        own[0] / own[1]
    )


def shrink(Z: list, X: list, V: list, L: np.ndarray, y: list) -> float:
    """How far a slope of x makes the differences of data sets smaller, in the directions of L."""
    if not L.size:
        return 0.0
    S = sum(z.T @ v @ z for z, v in zip(Z, V, strict=True))

    def residuals(of: list[np.ndarray]) -> np.ndarray:
        b = np.linalg.solve(S, sum(z.T @ v @ a for z, v, a in zip(Z, V, of, strict=True)))
        return np.array([z.T @ v @ (a - z @ b) for z, v, a in zip(Z, V, of, strict=True)]) @ L

    e, d = residuals(y), residuals([x[:, -1] for x in X])

    def fall(g: float) -> float:
        left = e - g * d
        return np.linalg.slogdet(e.T @ e)[1] - np.linalg.slogdet(left.T @ left)[1]

    g, best = 0.0, 0.0
    for _ in range(4):  # regressions, with the covariances of what is left as weights
        W = np.linalg.inv((e - g * d).T @ (e - g * d))
        g = np.trace(W @ e.T @ d) / np.trace(W @ d.T @ d)
        best = max(best, fall(g))
    return best


@pytest.mark.parametrize("parents", [(), (2,), (1, 3), (1, 2, 3)], ids=str)
def test_they_are_those_of_the_rows(parents: tuple[int, ...]) -> None:
    for seed in range(3):
        frame = simulate_network(seed, 5, data_sets=8, rows=25)
        rng = np.random.default_rng(seed)
        noise = {f"x{k}": rng.normal(size=len(frame)) for k in range(COLUMNS)}
        frame = pd.concat([frame, pd.DataFrame(noise)], axis=1)
        names = [name for name in frame if name != "F"]
        found = falls(pb.stats(frame, group="F"), (0, parents))
        for x in (4, 5, 63, 64, len(names) - 1):
            assert found[:, x] == pytest.approx(dense(frame, (0, parents), x), rel=1e-4, abs=1e-5)


def left_out(frame: pd.DataFrame, child: str, parents: tuple[str, ...] = ()) -> set[str]:
    """Columns that a search would not fit, as one more parent."""
    stats = pb.stats(frame, group="F")
    at = {name: k for k, name in enumerate(stats.names)}
    family = at[child], tuple(at[p] for p in parents)
    wanted = np.ones((1, len(at)), dtype=bool)
    scores = LocalScores(stats)
    values, exact = scores.neighbours([family], wanted, improving_only=True)
    (own,) = scores([family])
    assert values[0, family[0]] == own
    assert exact[0, family[0]]
    best = values[0].argmax()
    assert exact[0, best]  # the best change is known
    return {name for name, k in at.items() if own - 1e-5 < values[0, k] < own and not exact[0, k]}


def table(seed: int, data_sets: int = 10, rows: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n = data_sets * rows
    group = np.repeat(np.arange(data_sets), rows)
    frame = pd.DataFrame({f"noise{k}": rng.normal(size=n) for k in range(20)})
    return frame.assign(F=[f"g{j}" for j in group], j=group, x=rng.normal(size=n))


def test_noise_is_left_out_and_effects_are_not() -> None:
    rng = np.random.default_rng(1)
    count = 0
    for seed in range(10):
        frame = table(seed)
        j, noise, x = frame.pop("j"), rng.normal(size=len(frame)), frame["x"]
        b = rng.normal(size=10)
        effects = {
            "the same in all": 0.4 * x + b[j],
            "other signs": np.where(j % 2, 0.6, -0.6) * x,
            "in one data set": np.where(j == 3, 3.0, 0.0) * x,
            "with an intercept": b[j] + 0.5 * b[j] * x,
        }
        for effect in effects.values():
            found = left_out(frame.assign(y=effect + noise), "y")
            assert "x" not in found
            count += len(found)
    assert count > 0.9 * 10 * 4 * 20


def test_what_explains_differences_between_data_sets_is_not_left_out() -> None:
    """Its slope is small beside the random intercepts that it takes the place of."""
    rng = np.random.default_rng(2)
    for seed in range(10):
        frame = table(seed)
        level = rng.normal(scale=5, size=10)[frame.pop("j")]
        y = 2 * level + rng.normal(size=len(frame))
        found = left_out(frame.assign(y=y, x=level + rng.normal(scale=0.1, size=len(frame))), "y")
        assert "x" not in found
        assert len(found) > 10


def test_columns_of_which_nothing_can_be_said_are_not_left_out() -> None:
    """Copies of parents, constants, what is constant in each data set, and parents themselves."""
    frame = table(3)
    rng = np.random.default_rng(3)
    frame["copy"], frame["constant"] = 2 * frame["x"] - 1, 1.0
    frame["level"] = rng.normal(size=10)[frame.pop("j")]
    frame["y"] = 0.5 * frame["x"] + rng.normal(size=len(frame))
    found = left_out(frame, "y", ("x",))
    assert not {"x", "copy", "constant", "level", "y"} & found
    assert len(found) > 15


def test_with_few_data_sets_nothing_is_left_out_where_random_effects_take_all() -> None:
    """The sum of e_j is 0: of three data sets they have rank two, and U has three columns."""
    stats = pb.stats(simulate(1, data_sets=3, rows=30, parents=3, between=3), group="F")
    assert np.linalg.matrix_rank(pb.fit_node(stats, "y", ["x1", "x2"]).random_cov, 1e-6) == 2
    at = tuple(map(stats.names.index, ("x1", "x2")))
    assert np.isnan(falls(stats, (stats.names.index("y"), at))).all()


def test_tabu_search_leaves_nothing_out() -> None:
    frame = table(4).drop(columns="j")
    stats = pb.stats(frame, group="F")
    wanted = np.ones((1, len(stats.names)), dtype=bool)
    values = [
        LocalScores(stats)
        .neighbours([(0, ())], wanted, improving_only=improving_only)
        .values[0, 1:]
        for improving_only in (True, False)
    ]
    few, all_ = (len(set(of)) for of in values)
    assert few < 8
    assert all_ == 20


def test_searches_come_to_the_same_graph() -> None:
    """Moves, too; columns are many enough for some to be left out each time."""

    class All(LocalScores):
        def neighbours(self, families, wanted, *, improving_only):
            return super().neighbours(families, wanted, improving_only=False)

    for seed in range(6):
        frame = simulate_network(seed, 12, data_sets=6, rows=30)
        stats = pb.stats(frame, group="F")
        start = np.zeros((12, 12), dtype=bool)
        allowed = pb.Constraints().on(stats.names)
        found = [
            pb.HillClimb(restarts=1, seed=seed).learn(Problem(scores(stats), allowed, start))
            for scores in (LocalScores, All)
        ]
        assert [move[:3] for move in found[0].trace] == [move[:3] for move in found[1].trace]
        assert sum(m.fits for m in found[0].trace) < sum(m.fits for m in found[1].trace)
