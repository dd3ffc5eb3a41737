"""Random networks with columns of all kinds, and rows of them with gaps."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

import poolbn as pb

POOLINGS = (
    pb.Complete(),
    pb.NoPooling(),
    pb.Partial(),
    pb.Partial(residuals="pooled", discrete="logit"),
    pb.Partial(residuals="shared", discrete="table"),
)


@cache
def simulated(seed: int) -> pb.Network:
    """Parameters that are given: nothing is uncertain."""
    dag = pb.random_dag(5, 2, seed=seed)
    return pb.random_network(dag, 3, seed=seed, discrete=0.6)


@cache
def fitted(seed: int) -> pb.Network:
    """Continuous, discrete and count nodes that are fitted to a random table of three data sets."""
    frame, dag, kinds = random_frame(seed)
    table = pb.table(frame, group="F", columns=list(dag.nodes), kinds=kinds)
    how = POOLINGS[seed % len(POOLINGS)]
    fits = {node: pb.fit_node(table, node, dag.parents(node), pooling=how) for node in dag.nodes}
    return pb.Network(dag, fits, score=0.0, group="F", n=table.n)


def random_frame(seed: int, rows: int = 60) -> tuple[pd.DataFrame, pb.Dag, dict[str, str]]:
    """Rows, a graph that they come from, and the columns that are counts."""
    rng = np.random.default_rng([seed, 7])
    kinds = list(rng.permutation(["continuous", "continuous", "two", "three", "count"]))
    names = [f"v{k}" for k in range(len(kinds))]
    arcs = [(names[a], names[b]) for b in range(5) for a in range(b) if rng.random() < 0.5]
    n, codes = 3 * rows, np.repeat(np.arange(3), rows)
    columns: dict[str, np.ndarray] = {}
    frame: dict[str, object] = {"F": np.array(["one", "two", "three"])[codes]}
    for name, kind in zip(names, kinds, strict=True):
        eta = rng.normal(size=3)[codes] * 0.4
        for parent, child in arcs:
            if child == name:
                eta = eta + (0.5 * rng.normal() + 0.2 * rng.normal(size=3))[codes] * columns[parent]
        if kind == "continuous":
            value = eta + rng.normal(size=n)
            frame[name] = 10 + 3 * value
        elif kind == "count":
            value = rng.poisson(np.exp(np.clip(eta, -1.5, 1.5)) * rng.gamma(3, 1 / 3, n))
            frame[name] = value
            value = np.log1p(value)
        else:
            K = 2 if kind == "two" else 3
            noise = rng.gumbel(size=(n, K))
            value = (noise + eta[:, None] * np.arange(K)).argmax(axis=1)
            frame[name] = np.array(list("abc"))[value]
        columns[name] = value
    made = pd.DataFrame(frame)
    counts = {name: "count" for name, kind in zip(names, kinds, strict=True) if kind == "count"}
    return made, pb.Dag(names, arcs), counts


def with_gaps(net: pb.Network, seed: int, rows: int, gaps: float) -> pd.DataFrame:
    """Rows of the network; half of their data sets are not known."""
    rng = np.random.default_rng([seed, 3])
    frame = net.sample(rows, seed=seed)
    for name in net.dag.nodes:
        frame[name] = frame[name].astype(object).where(rng.random(rows) >= gaps)
        if name not in net._kinds.categories:
            frame[name] = frame[name].astype(float)
    frame[net.group] = frame[net.group].where(rng.random(rows) < 0.5)
    return frame.set_axis(rng.permutation(rows) + 100)
