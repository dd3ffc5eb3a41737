"""Size and power of independence tests for several data sets.

Tables have two columns, independent given k others or not, in data sets of 20 rows. In the
"unequal" ones residual SDs, and regressions on the k columns, differ between data sets; in the
"unbalanced" ones rows, 12, 20 or 40, do so too. F is the exact test of y on x; LR is the likelihood
ratio of nested mixed-effects models with rotations, test="lr", beside the others on fewer tables.
With --draws 0 only that is measured.

    python benchmarks/independence.py [--draws N] [--lr N] [--results FILE]
"""

from __future__ import annotations

import argparse
import math
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import beta
from tiny import parsed

import poolbn as pb
from poolbn.moments.standardised import standardise
from poolbn.run.compiling import kernels
from poolbn.scoring import combined
from poolbn.scoring.rotating import lr_test
from poolbn.scoring.separating import GAUSSIAN

KINDS = ("equal", "unequal", "unbalanced")


def sizes(kind: str, F: int) -> np.ndarray:
    return np.resize([12, 20, 40], F) if kind == "unbalanced" else np.full(F, 20)


def scatters(
    rng: np.random.Generator, kind: str, F: int, k: int, mean: float, sd: float, draws: int
) -> np.ndarray:
    """Scatter matrices (draws, F, k + 2, k + 2) of x, y and k others, from Wishart matrices."""
    q, shape = k + 2, (draws, F)
    A = np.tril(rng.normal(size=(*shape, q, q)), -1)
    df = (sizes(kind, F) - 1)[:, None] - np.arange(q)
    A[..., np.arange(q), np.arange(q)] = np.sqrt(rng.chisquare(df, (*shape, q)))
    # Columns from those that are independent: the others first, then x, then y.
    T = np.broadcast_to(np.eye(q), (*shape, q, q)).copy()
    spread = 0.0 if kind == "equal" else 0.3
    T[..., k:, :k] = rng.normal(0.3, spread, (*shape, 2, k))
    if kind != "equal":
        T[..., [k, k + 1], [k, k + 1]] = np.exp(rng.normal(0, 0.5, (*shape, 2)))
    slope = T[..., k + 1, k + 1] / T[..., k, k] * rng.normal(mean, sd, shape)
    T[..., k + 1, :] += slope[..., None] * T[..., k, :]
    L = T @ A
    order = np.array([k, k + 1, *range(k)])
    return (L @ np.swapaxes(L, -1, -2))[..., order[:, None], order]


def as_stats(n: np.ndarray, scatter: np.ndarray) -> pb.GroupStats:
    F, q = scatter.shape[:2]
    names = tuple("xy") + tuple(f"s{i}" for i in range(q - 2))
    none = np.zeros(F, dtype=np.int64)
    return pb.GroupStats(names, tuple(range(F)), n, np.zeros((F, q)), scatter, none)


def p_values(n: np.ndarray, scatter: np.ndarray) -> np.ndarray:
    """Of the combined test, the symmetric F test and the exact one of y on x, (draws, 3)."""
    kernel = kernels("independence")
    k, found = scatter.shape[-1] - 2, np.empty((len(scatter), 3))
    root = np.sqrt(np.einsum("...aa->...a", scatter))
    R = np.ascontiguousarray(
        np.moveaxis(scatter / (root[..., :, None] * root[..., None, :]), 1, -1)
    )
    squares = np.ascontiguousarray(np.swapaxes(root**2, 1, 2))
    W = np.empty((k + kernel.BLOCKS, max(k + 1, kernel.ROWS), len(n)))
    one, out = np.empty(kernel.SPACE), np.empty((1, kernel.RESULTS))
    used = np.empty((1, len(n)), dtype=np.uint8)
    x, y, ends = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64), np.array([0, k])
    for column, test in enumerate(("combined", "f")):
        fixed = combined.table(), GAUSSIAN.index(test), x, y, ends, np.arange(2, k + 2), k, W, one
        for i in range(len(scatter)):
            kernel.batch(R[i], n.astype(float), squares[i], *fixed, out, used)
            found[i, column] = math.exp(out[0, kernel.LOG_P])
    left = scatter[..., :2, :2]
    if k:
        S, cross = scatter[..., 2:, 2:], scatter[..., 2:, :2]
        left = left - np.swapaxes(cross, -1, -2) @ np.linalg.solve(S, cross)
    before = left[..., 1, 1].sum(axis=1)
    after = before - (left[..., 0, 1] ** 2 / left[..., 0, 0]).sum(axis=1)
    df = float((n - k - 2).sum())
    found[:, 2] = beta.cdf(after / before, df / 2, len(n) / 2)
    return found


def lr(n: np.ndarray, scatter: np.ndarray) -> float:
    """The p-value of the likelihood ratio."""
    data = standardise(as_stats(n, scatter))
    return math.exp(lr_test(data, pb.Partial(), 1, [0], range(2, scatter.shape[1])).log_p)


def size_table(rng: np.random.Generator, draws: int) -> list[str]:
    lines = [
        "| data sets | conditions | "
        + " | ".join(f"{kind}: combined, f, F" for kind in KINDS)
        + " |",
        "| --- | --- | --- | --- | --- |",
    ]
    for F in (3, 5, 10, 30):
        for k in range(5):
            cells = []
            for kind in KINDS:
                n = sizes(kind, F)
                p = p_values(n, scatters(rng, kind, F, k, 0.0, 0.0, draws))
                cells.append(", ".join(f"{100 * v:.1f}" for v in (p < 0.05).mean(axis=0)))
            lines.append(f"| {F} | {k} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines


def power_table(rng: np.random.Generator, draws: int) -> list[str]:
    lines = [
        "| data sets | conditions | effects | table | combined | f | F |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for F in (3, 5, 10, 30):
        for k, kind in ((0, "equal"), (2, "equal"), (0, "unequal"), (2, "unequal")):
            n = sizes(kind, F)
            for mean, sd in ((0.3, 0.0), (0.2, 0.1), (0.0, 0.3)):
                made = scatters(rng, kind, F, k, mean, sd, draws)
                shares = (p_values(n, made) < 0.05).mean(axis=0)
                cells = [f"{100 * v:.0f}" for v in shares]
                lines.append(f"| {F} | {k} | {mean} (SD {sd}) | {kind} | {' | '.join(cells)} |")
                print(lines[-1], flush=True)
    return lines


def lr_table(rng: np.random.Generator, draws: int) -> list[str]:
    """All tests on the same tables, and the standard error of a difference."""
    lines = [
        "| data sets | conditions | effects | table | LR | combined | F | combined minus LR |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    sizes_of_lr = []
    for F, k, kind in product((3, 10, 30), (0, 2), ("equal", "unequal")):
        n = sizes(kind, F)
        for mean, sd in ((0.0, 0.0), (0.1 if F == 30 else 0.2, 0.1)):
            made = scatters(rng, kind, F, k, mean, sd, draws)
            own = np.array([lr(n, s) <= 0.05 for s in made], dtype=float)
            combined_, _, exact = (p_values(n, made) < 0.05).astype(float).T
            away = combined_ - own
            shares = [f"{100 * each.mean():.1f}" for each in (own, combined_, exact)]
            difference = f"{100 * away.mean():.1f} ({100 * away.std() / math.sqrt(draws):.1f})"
            effects = f"{mean} (SD {sd})" if mean else "none"
            lines.append(
                f"| {F} | {k} | {effects} | {kind} | {' | '.join(shares)} | {difference} |"
            )
            print(lines[-1], flush=True)
            sizes_of_lr += [] if mean else own.tolist()
    of_all = np.array(sizes_of_lr)
    error = of_all.std() / math.sqrt(len(of_all))
    lines += ["", f"Over all tables without effects LR rejects {100 * of_all.mean():.1f}%"]
    lines[-1] += f" ({100 * error:.1f})."
    print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--lr", type=int, default=100)
    parser.add_argument("--results", type=Path)
    given = parsed(parser, draws=20, lr=2)
    rng, lines = np.random.default_rng(1), []
    if given.draws:
        lines += ["Size at the 5% level, in percent:", "", *size_table(rng, given.draws), ""]
        lines += ["Power at the 5% level, in percent:", ""]
        lines += power_table(rng, min(given.draws, 2000))
    of_lr = lr_table(np.random.default_rng(3), given.lr)
    if given.results:
        if lines:
            given.results.write_text("\n".join(lines) + "\n")
        beside = given.results.with_stem(f"{given.results.stem}_lr")
        beside.write_text("\n".join(of_lr) + "\n")


if __name__ == "__main__":
    main()
