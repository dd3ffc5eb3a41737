"""How long `classify` and `predict` take for a million rows, against a loop over rows.

The network has 20 nodes and 10 data sets. The peer does what the formulas say, row by row and data
set by data set, with scipy's multivariate normal density, numpy's solve and scipy's root finder; it
is timed on a sample of the rows and extrapolated. Tables have no gaps, or 5% of their cells are
missing at random, which makes thousands of patterns of evidence. Results of both are compared.

Run: python benchmarks/infer.py [--rows N] [--sample K]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from tiny import parsed

import poolbn as pb
from poolbn.nodes.given import given_fit
from poolbn.nodes.localfit import Given

NODES, SETS = 20, 10
TARGET = "x7"
GAPS = 0.05


def network(seed: int) -> pb.Network:
    """A random graph with about 3 parents a node and coefficients that differ between data sets."""
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(NODES)]
    arcs = [(names[p], names[c]) for c in range(NODES) for p in range(c) if rng.random() < 0.3]
    dag = pb.Dag(names, arcs)
    levels = tuple(f"site {j}" for j in range(SETS))
    fits = {}
    for name in names:
        q = len(dag.parents(name)) + 1
        coef = 0.4 * rng.normal(size=q) + 0.2 * rng.normal(size=(SETS, q))
        fits[name] = given_fit(
            name, dag.parents(name), levels, Given("simulated"), "for a benchmark",
            coef=coef, sigma2=rng.uniform(0.5, 1.5, SETS), fixed=coef.mean(axis=0), n_rows=1000,
        )  # fmt: skip
    return pb.Network(dag, fits, 0.0, group="site", n=np.full(SETS, 100))


class Loop:
    """The peer: one row and one data set at a time."""

    def __init__(self, net: pb.Network) -> None:
        self.joint = net.joint

    def weights(self, row: np.ndarray) -> np.ndarray:
        e = np.flatnonzero(~np.isnan(row))
        mean, cov = self.joint.mean, self.joint.cov
        log = [
            multivariate_normal(mean[j, e], cov[j][np.ix_(e, e)]).logpdf(row[e])
            for j in range(SETS)
        ]
        log += np.log(self.joint.prior)
        return np.exp(log - logsumexp(log))

    def conditional(self, row: np.ndarray, j: int, t: int) -> tuple[float, float]:
        e = np.flatnonzero(~np.isnan(row))
        mean, cov = self.joint.mean[j], self.joint.cov[j]
        gain = np.linalg.solve(cov[np.ix_(e, e)], cov[e, t])
        return mean[t] + gain @ (row[e] - mean[e]), np.sqrt(cov[t, t] - gain @ cov[e, t])

    def classify(self, values: np.ndarray, codes: np.ndarray) -> np.ndarray:
        return np.array([self.weights(row) for row in values])

    def known(self, values: np.ndarray, codes: np.ndarray) -> np.ndarray:
        t = self.joint.names.index(TARGET)
        hidden = np.where(np.arange(NODES) == t, np.nan, values)
        z, out = norm.ppf(0.975), []
        for row, j in zip(hidden, codes, strict=True):
            mean, sd = self.conditional(row, j, t)
            out.append((mean, sd, mean - z * sd, mean + z * sd))
        return np.array(out)

    def unknown(self, values: np.ndarray, codes: np.ndarray) -> np.ndarray:
        t = self.joint.names.index(TARGET)
        hidden, out = np.where(np.arange(NODES) == t, np.nan, values), []
        for row in hidden:
            w = self.weights(row)
            m, s = np.array([self.conditional(row, j, t) for j in range(SETS)]).T
            mean = w @ m
            bounds = [
                brentq(
                    lambda x, p=p, w=w, m=m, s=s: w @ norm.cdf(x, m, s) - p,
                    norm.ppf(p, m, s).min(),
                    norm.ppf(p, m, s).max(),
                )
                for p in (0.025, 0.975)
            ]
            out.append((mean, np.sqrt(w @ (s**2 + (m - mean) ** 2)), *bounds))
        return np.array(out)


def seconds(work: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--sample", type=int, default=200)
    options = parsed(parser, rows=2000, sample=5)
    net, loop = network(1), None
    complete = net.sample(options.rows, seed=1)
    names = list(net.dag.nodes)
    holes = np.random.default_rng(2).random((options.rows, NODES)) < GAPS
    tables = {"no gaps": complete, f"{GAPS:.0%} gaps": complete.copy()}
    tables[f"{GAPS:.0%} gaps"][names] = complete[names].mask(holes)
    loop = Loop(net)
    codes = (
        complete["site"].map({s: j for j, s in enumerate(net.levels)}).to_numpy()[: options.sample]
    )
    jobs: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], Callable[..., np.ndarray]]] = {
        "classify": (net.classify, loop.classify),
        "predict, data set known": (lambda f: net.predict(f, TARGET), loop.known),
        "predict, unknown": (lambda f: net.predict(f.drop(columns="site"), TARGET), loop.unknown),
    }
    net.classify(complete.head(10))  # imports
    print(f"{options.rows:,} rows, {NODES} nodes, {SETS} data sets, {os.cpu_count()} cores")
    print(f"{'':36}{'seconds':>9}{'loop':>9}{'ratio':>8}{'largest difference':>20}")
    for kind, frame in tables.items():
        values = frame[names].to_numpy()[: options.sample]
        for job, (ours, theirs) in jobs.items():
            took, found = min((seconds(lambda f=frame, o=ours: o(f)) for _ in range(2)),
                              key=lambda pair: pair[0])  # fmt: skip
            slow, expected = seconds(lambda v=values, t=theirs: t(v, codes))
            slow *= options.rows / len(values)
            numbers = found.iloc[: len(values), : expected.shape[1]].to_numpy(dtype=float)
            apart = np.abs(numbers - expected).max()
            print(f"{job + ', ' + kind:36}{took:9.1f}{slow:9.0f}{slow / took:8.0f}{apart:20.1e}")


if __name__ == "__main__":
    main()
