"""Final fits, and scores of searches, against scipy from many starts, on small nasty problems.

The deviances are those of `poolbn.nodes.reference`, their gradients are checked against finite
differences first, and scipy's L-BFGS-B minimises them. A miss is a log-likelihood that is lower
than scipy's best by more than 1e-4.

    python benchmarks/maxima.py --problems 434 --starts 12
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import approx_fprime, minimize
from scipy.special import psi

import poolbn as pb
from poolbn.nodes import reference
from poolbn.scoring.local import LocalScores

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from test_maxima import nasty

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


def factor(v: np.ndarray, q: int) -> np.ndarray:
    """A lower triangular matrix from its entries."""
    L = np.zeros((q, q))
    L[np.tril_indices(q)] = v
    return L


def shared(x: reference.Sums, q: int, reml: bool) -> Function:
    """Over L."""

    def f(v: np.ndarray) -> tuple[float, np.ndarray]:
        L = factor(v, q)
        value, G = reference.deviance_shared(x, L @ L.T, reml=reml)
        return value, (2 * G @ L)[np.tril_indices(q)]

    return f


def pooled(x: reference.Sums, q: int) -> Function:
    """Over L, beta, log a and log s."""
    size = q * (q + 1) // 2

    def f(v: np.ndarray) -> tuple[float, np.ndarray]:
        L, beta = factor(v[:size], q), v[size : size + q]
        a, s = np.exp(np.clip(v[-2:], -30, 14))  # beyond it differences of lgamma are rounding
        value, G = reference.deviance_pooled(x, L @ L.T, beta, a, s)
        t = reference.terms(x, L @ L.T, beta)
        shape, scale = a + x.n / 2, a * s + t.squares / 2
        by_a = -2 * (psi(shape) - psi(a) + np.log(a * s) + 1 - np.log(scale) - shape * s / scale)
        by_s = -2 * (a / s - shape * a / scale)
        by_beta = -2 * (shape / scale) @ t.e
        return value, np.concatenate(
            [(2 * G @ L)[np.tril_indices(q)], by_beta, [a * by_a.sum(), s * by_s.sum()]]
        )

    return f


def separate(x: reference.Sums, q: int) -> Function:
    """Over L and the logarithms of the variances."""
    size = q * (q + 1) // 2

    def f(v: np.ndarray) -> tuple[float, np.ndarray]:
        L, sigma2 = factor(v[:size], q), np.exp(np.clip(v[size:], -40, 40))
        D = L @ L.T
        value, G = reference.deviance_separate(x, D, sigma2)
        t = reference.terms(reference.divided(x, sigma2), D)
        by = x.n - np.einsum("jab,ba->j", t.P, D) - t.squares
        by += np.einsum("ja,ab,jb->j", t.e, D, t.e)
        return value, np.concatenate([(2 * G @ L)[np.tril_indices(q)], by])

    return f


def best(f: Function, starts: list[np.ndarray]) -> float:
    """The lowest deviance from any start."""
    lowest = np.inf
    for start in starts:
        at = start
        with np.errstate(all="ignore"):
            for _ in range(2):  # again from where it stopped
                found = minimize(f, at, jac=True, method="L-BFGS-B", options={"maxiter": 500})
                at = found.x
        lowest = min(lowest, found.fun)
    return lowest


def main() -> None:
    """Print misses of each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=434)
    parser.add_argument("--starts", type=int, default=12)
    options = parser.parse_args()
    kinds = {
        "REML": pb.Partial(method="reml"),
        "shared": pb.Partial(),
        "pooled": pb.Partial(residuals="pooled"),
        "separate": pb.Partial(residuals="separate"),
    }
    gaps: dict[str, list[float]] = {kind: [] for kind in kinds}
    misses = {(kind, of): [] for kind in kinds for of in ("final fits", "scores")}
    for seed in range(1000, 1000 + options.problems):
        frame, names = nasty(seed)
        rng = np.random.default_rng(seed)
        columns = frame[[*names, "y"]]
        unit = (columns - columns.mean()) / columns.std()
        parts = [part for _, part in unit.groupby(frame["F"])]
        q, F = len(names) + 1, len(parts)
        Z = [np.column_stack([np.ones(len(part)), part[names]]) for part in parts]
        y = [part["y"].to_numpy() for part in parts]
        x = reference.sums(Z, y)
        own = [np.linalg.lstsq(z, v)[0] for z, v in zip(Z, y, strict=True)]
        rss = np.array([((v - z @ b) ** 2).mean() for z, v, b in zip(Z, y, own, strict=True)])
        mean = np.mean(own, axis=0)
        stats = pb.stats(frame, group="F")
        units = len(frame) * np.log(columns["y"].std())
        for kind, pooling in kinds.items():
            f = {
                "REML": shared(x, q, True),
                "shared": shared(x, q, False),
                "pooled": pooled(x, q),
                "separate": separate(x, q),
            }[kind]
            starts = []
            for _ in range(options.starts):
                L = np.diag(10 ** rng.uniform(-3, 1.5, q)) + 0.1 * rng.normal(size=(q, q))
                v = L[np.tril_indices(q)]
                if kind == "pooled":
                    beta = mean if rng.random() < 0.5 else own[rng.integers(F)]
                    v = np.concatenate([v, beta, [rng.uniform(-1.5, 4), np.log(np.median(rss))]])
                if kind == "separate":
                    spread = rng.uniform(0, 1)
                    v = np.concatenate(
                        [v, spread * np.log(rss) + (1 - spread) * np.log(rss.mean())]
                    )
                starts.append(v)
            if seed < 1003:
                error = f(starts[0])[1] - approx_fprime(starts[0], lambda v, f=f: f(v)[0], 1e-7)
                assert np.abs(error).max() < 1e-3 * (1 + np.abs(f(starts[0])[1]).max()), kind
            target = -best(f, starts) / 2 - units
            if kind == "REML":  # its determinant is in the units of the parents
                scale = np.log(columns[names].std()).sum()
                target += q * np.log(columns["y"].std()) - scale
            fit = pb.fit_node(stats, "y", names, pooling=pooling)
            family = stats.names.index("y"), tuple(map(stats.names.index, names))
            score = LocalScores(stats, pooling=pooling, score="loglik")([family])[0]
            gaps[kind].append(abs(fit.loglik - target))
            for of, value in (("final fits", fit.loglik), ("scores", score)):
                if target > value + 1e-4:
                    misses[kind, of].append((seed, round(target - value, 4)))
        done = seed - 999
        if done % 20 == 0:
            missed = sum(map(len, misses.values()))
            print(f"{done} of {options.problems} problems, {missed} missed", flush=True)
    for kind, gap in gaps.items():
        print(f"{kind:9}median difference {np.median(gap):.1e}")
    for (kind, of), some in misses.items():
        print(f"{kind:9}{of:11} {len(some)} of {options.problems} missed {some[:8]}")


if __name__ == "__main__":
    main()
