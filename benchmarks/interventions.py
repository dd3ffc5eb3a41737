"""Experiments whose targets are known: distances to the true graph, with the targets and without.

Worlds: 8 to 10 linear nodes with about 16 arcs, 5 to 9 data sets of 40 or 100 rows, one or two of
them without an intervention, in the others one node or two. An intervention sets the value (hard),
shifts it while parents act as ever (shift), or weakens parents and shifts (inhibit). In some worlds
all levels and slopes differ between data sets too, with an SD of `batches` and 0.3 of it.

With --sachs FILE.csv the flow cytometry data of Sachs and others (Science 308, 2005), a table with
a column `condition`, or the one that --group names, are learned as well. They are not part of
poolbn.

    python benchmarks/interventions.py --tables 12
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from tiny import parsed, tiny

import poolbn as pb

KINDS = tiny(("hard", "shift", "inhibit"), ("hard",))
BATCHES = tiny((0.0, 0.3, 1.0), (0.0,))
NODES = tiny((8, 11), (3, 4))

Targets = dict[str, list[str]]
Learner = Callable[[pd.DataFrame, Any], pb.Network]


def soft(targets: Targets) -> dict[str, dict[str, str]]:
    """The same as changed mechanisms."""
    return {level: dict.fromkeys(names, "soft") for level, names in targets.items()}


def ways(group: str) -> dict[str, Learner]:
    """How networks are learned."""
    complete = {"group": group, "pooling": "complete"}
    return {
        "without targets": lambda frame, _: pb.learn(frame, group=group),
        "without, complete pooling": lambda frame, _: pb.learn(frame, **complete),
        "hard": lambda frame, to: pb.learn(frame, group=group, interventions=to),
        "soft": lambda frame, to: pb.learn(frame, group=group, interventions=soft(to)),
        "hard, complete pooling": lambda frame, to: pb.learn(frame, interventions=to, **complete),
        "soft, complete pooling": lambda frame, to: pb.learn(
            frame, interventions=soft(to), **complete
        ),
        "hard, bic-h": lambda frame, to: pb.learn(
            frame, group=group, interventions=to, score="bic-h"
        ),
        "hard, partial": lambda frame, to: pb.learn(
            frame, group=group, interventions=to, pooling=pb.Partial(residuals="pooled")
        ),
    }


def world(number: int, kind: str, batches: float) -> tuple[pd.DataFrame, Targets, pb.Dag]:
    """Rows, what was set where, and the true graph; columns are in an order of chance."""
    rng = np.random.default_rng(
        [number, ("hard", "shift", "inhibit").index(kind), int(10 * batches)]
    )
    N, F, rows = int(rng.integers(*NODES)), int(rng.integers(5, 10)), int(rng.choice([40, 100]))
    names, order = [f"v{i}" for i in range(N)], rng.permutation(N)
    slopes = np.zeros((N, N))
    for i, child in enumerate(order):
        for parent in order[:i]:
            if rng.random() < 3.6 / (N - 1):
                slopes[parent, child] = rng.uniform(0.4, 1.0) * rng.choice([-1, 1])
    free, pool = range(1 if F < 7 else 2), rng.permutation(N).tolist()
    targets: Targets = {}
    frames = []
    for j in range(F):
        own = [] if j in free else [pool.pop() if pool else int(rng.integers(N))]
        if own and pool and rng.random() < 0.25:
            own.append(pool.pop())
        level, sd = batches * rng.normal(size=N), np.ones(N)
        B = slopes + (slopes != 0) * rng.normal(size=slopes.shape) * batches * 0.3
        for node in own:
            B[:, node] *= {"hard": 0.0, "shift": 1.0, "inhibit": 0.4}[kind]
            sd[node] = {"hard": 0.5, "shift": 1.0, "inhibit": 0.7}[kind]
            level[node] = level[node] * (kind != "hard") + rng.choice([-1, 1]) * rng.uniform(1, 3)
        x = np.zeros((rows, N))
        for node in order:
            x[:, node] = level[node] + x @ B[:, node] + sd[node] * rng.normal(size=rows)
        frames.append(pd.DataFrame(x, columns=names).assign(batch=f"b{j}"))
        targets |= {f"b{j}": [names[node] for node in own]} if own else {}
    dag = pb.Dag(names, [(names[p], names[c]) for p, c in np.argwhere(slopes)])
    return pd.concat(frames)[["batch", *rng.permutation(names)]], targets, dag


def compared(net: pb.Network, dag: pb.Dag) -> tuple[int, int, int]:
    """Structural Hamming distance to the true graph, arcs that are right, arcs that there are."""
    true, found = set(dag.arcs), set(net.dag.arcs)
    joined = {frozenset(arc) for arc in true} ^ {frozenset(arc) for arc in found}
    turned = [arc for arc in found if arc[::-1] in true]
    return len(joined) + len(turned), len(true & found), len(found)


# Sachs and others

TARGETS: Targets = {
    "cd3cd28_aktinhib": ["Akt"],
    "cd3cd28_g0076": ["PKC"],
    "cd3cd28_psitect": ["PIP2"],
    "cd3cd28_u0126": ["Mek"],
    "pma": ["PKC"],
    "b2camp": ["PKA"],
}
CONSENSUS = """PKA -> P38, PKC -> P38, PKA -> Jnk, PKC -> Jnk, PKA -> Akt, PIP3 -> Akt, PKA -> Erk,
    Mek -> Erk, PKA -> Mek, PKC -> Mek, Raf -> Mek, PKA -> Raf, PKC -> Raf, PIP2 -> PKC,
    Plcg -> PKC, PIP3 -> PIP2, Plcg -> PIP2, PIP3 -> Plcg"""


def sachs(path: str, group: str) -> None:
    """Print how near networks of logarithms are to the consensus graph."""
    frame = pd.read_csv(path)
    numbers = [column for column in frame.columns if column != group]
    frame[numbers] = np.log(frame[numbers])
    dag = pb.Dag(
        numbers, [tuple(arc.split(" -> ")) for arc in CONSENSUS.replace("\n    ", " ").split(", ")]
    )
    print("\n| Sachs | arcs | skeleton F1 | SHD | right arcs |\n| --- | --- | --- | --- | --- |")
    for name, learned in ways(group).items():
        net = learned(frame, TARGETS)
        shd, right, found = compared(net, dag)
        both = {frozenset(arc) for arc in net.dag.arcs} & {frozenset(arc) for arc in dag.arcs}
        f1 = 2 * len(both) / (found + len(dag.arcs))
        print(f"| {name} | {found} | {f1:.2f} | {shd} | {right} of {len(dag.arcs)} |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=12, help="worlds of each kind")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--sachs", metavar="CSV", help="the table of Sachs and others")
    parser.add_argument("--group", default="condition", help="its column with the conditions")
    options = parsed(parser, tables=1)
    warnings.simplefilter("ignore", pb.DataWarning)
    cells = [(kind, batches) for kind in KINDS for batches in BATCHES]
    found: dict[str, list[list[tuple[int, int, int]]]] = {name: [] for name in ways("batch")}
    arcs = []
    for cell in cells:
        tables = [world(options.first + k, *cell) for k in range(options.tables)]
        arcs += [len(dag.arcs) for _, _, dag in tables]
        for name, learned in ways("batch").items():
            found[name].append([compared(learned(frame, to), dag) for frame, to, dag in tables])
    heads = " | ".join(f"{kind}, {batches:g}" for kind, batches in cells)
    print(f"SHD; {np.mean(arcs):.1f} arcs\n\n| | {heads} | all | right arcs |")
    print(f"{'| --- ' * (len(cells) + 3)}|")
    for name, each in found.items():
        mean = np.array(each, dtype=float).mean(axis=1)
        row = " | ".join(f"{shd:.1f}" for shd in mean[:, 0])
        print(f"| {name} | {row} | {mean[:, 0].mean():.1f} | {mean[:, 1].mean():.1f} |", flush=True)
    if options.sachs:
        sachs(options.sachs, options.group)


if __name__ == "__main__":
    main()
