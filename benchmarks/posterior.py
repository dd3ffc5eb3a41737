"""Are probabilities of arcs right, how near are chains to exact ones, and what does it take?

    python benchmarks/posterior.py speed
    python benchmarks/posterior.py chains
    python benchmarks/posterior.py calibration [--networks K] [--seed S] [--minutes M] [--cores C]

`speed` and `chains` use linear networks in 10 data sets of 50 rows, about 1.5 parents a node, with
partial pooling. `calibration` uses the paper's generator (10 nodes, 2 parents a node on average,
5 to 20 data sets of 20 or 50 rows) with pooled residuals: for each tenth of the probability of an
arc either way the share of pairs that are joined in the true graph; the same of bootstrap
strengths, on every eighth network; and the structural Hamming distances of median-probability
graphs and of hill climbing.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from tiny import parsed, tiny

import poolbn as pb
from poolbn.posteriors.families import summed

POOLED = pb.Partial(residuals="pooled")
SCORES = ("bic", "bic-h")
POWERS = (0.5, 0.25)  # of exp(score)
CELLS = tuple(product((5, 10, 20), (20, 50)))  # data sets, rows of each


def linear_network(N: int, seed: int = 0, data_sets: int = 10, rows: int = 50) -> pb.GroupStats:
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(data_sets), rows)
    X = np.zeros((len(codes), N))
    for c in range(N):
        b = np.zeros(c)
        parents = rng.choice(c, size=min(c, rng.poisson(1.5)), replace=False) if c else []
        b[parents] = 0.4 * rng.normal(size=len(parents))
        own = b + 0.15 * rng.normal(size=(data_sets, c)) * (b != 0)
        X[:, c] = rng.normal(size=data_sets)[codes] + (own[codes] * X[:, :c]).sum(axis=1)
        X[:, c] += rng.normal(size=len(codes))
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(N)])
    return pb.stats(frame.assign(F=codes), group="F")


def timed(N: int, **options: object) -> tuple[pb.ArcPosterior, str]:
    """The posterior, and what it took, scoring included: seconds, and those of processors."""
    stats = linear_network(N)
    began, busy = time.perf_counter(), time.process_time()
    post = pb.arc_posterior(stats, **options)
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    return post, f"{seconds:.1f} | {busy:.1f}"


def speed() -> None:
    timed(4)
    timed(4, prior="dags")
    print("| columns | parents | prior | seconds | CPU seconds | peak memory, MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    cells = ((15, 4, "orders"), (15, 4, "dags"), (17, 3, "dags"), (20, 3, "orders"))
    for N, most, prior in tiny(cells, ((5, 2, "orders"), (5, 2, "dags"))):
        _, seconds = timed(N, max_parents=most, prior=prior)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"| {N} | {most} | {prior} | {seconds} | {memory:.0f} |", flush=True)


def chains() -> None:
    ways = {"orders": pb.OrderMCMC, "dags": pb.PartitionMCMC}
    for prior, way in ways.items():
        timed(4, prior=prior, method=way(sweeps=20))
    print(
        "| columns | parents | prior | sweeps | seconds | CPU seconds | R-hat | ESS "
        "| largest error |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    cells = tiny(((12, 3, 5000), (12, 3, 10_000), (40, 2, 2000)), ((5, 2, 100),))
    for (N, most, sweeps), prior in product(cells, ways):
        options = {"max_parents": most, "prior": prior}
        post, seconds = timed(N, **options, method=ways[prior](sweeps=sweeps))
        error = "-"
        if N <= 15:
            exact, _ = timed(N, **options)
            error = f"{np.abs(exact.probabilities - post.probabilities).max():.3f}"
        found = post.chains
        print(
            f"| {N} | {most} | {prior} | {sweeps} | {seconds} | {found.r_hat:.3f} "
            f"| {found.ess:.0f} | {error} |",
            flush=True,
        )


def both_priors(table: pd.DataFrame, score: str) -> Iterator[pb.ArcPosterior]:
    """With the scores of families computed once."""
    post = pb.arc_posterior(table, group="F", pooling=POOLED, score=score, max_parents=4)
    yield post
    parts = [summed(part.families, "dags") for part in post._parts]
    yield replace(post, prior="dags", _parts=tuple(parts))


def one_network(seed: int, replicates: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Probabilities of pairs beside the truth, and distances from it."""
    data_sets, rows = CELLS[seed % len(CELLS)]
    N = tiny(10, 5)
    dag = pb.random_dag(N, 2, seed=seed)
    table = pb.random_table(pb.random_network(dag, data_sets, seed=seed), rows, seed=seed)
    a, b = np.triu_indices(N, 1)
    joined = (dag.to_adjacency() + dag.to_adjacency().T)[a, b] > 0
    pairs, distances = [], []
    at = [list(dag.nodes).index(name) for name in pb.stats(table, group="F").names]
    turn = np.argsort(at)
    for score in SCORES:
        found = {}
        for post in both_priors(table, score):
            prior = post.prior
            own = post.adjacency[np.ix_(turn, turn)][a, b]
            pairs.append(pd.DataFrame({"of": f"{score}, {prior}", "p": own, "joined": joined}))
            found[f"median graph, {prior}"] = post.median_graph()
            for power in POWERS if prior == "orders" else ():
                less = post.tempered(power)
                own = less.adjacency[np.ix_(turn, turn)][a, b]
                named = f"{score}, power {power}"
                pairs.append(pd.DataFrame({"of": named, "p": own, "joined": joined}))
                found[f"median graph, power {power}"] = less.median_graph()
        found["hill climbing"] = pb.learn(
            table, group="F", pooling=POOLED, score=score, search="hc"
        ).dag
        for name, graph in found.items():
            row = {"score": score, "by": name, "shd": pb.metrics.shd(dag, graph)}
            distances.append(row | {"data_sets": data_sets, "rows": rows})
        if seed % 8 == 0 and replicates:
            boot = pb.bootstrap(
                table, group="F", pooling=POOLED, score=score, replicates=replicates
            )
            own = boot.strength[np.ix_(turn, turn)][a, b]
            pairs.append(pd.DataFrame({"of": f"{score}, bootstrap", "p": own, "joined": joined}))
    return pd.concat(pairs), pd.DataFrame(distances)


def calibration(networks: int, first: int, minutes: float, cores: int) -> None:
    began, made = time.monotonic(), []
    for found in Parallel(cores, return_as="generator")(
        delayed(one_network)(seed, tiny(30, 2)) for seed in range(first, first + networks)
    ):
        made.append(found)
        if time.monotonic() - began > 60 * minutes:
            break
    networks = len(made)
    pairs, distances = (pd.concat(each) for each in zip(*made, strict=True))
    tenth = np.minimum((pairs["p"] * 10).astype(int), 9)
    grouped = pairs.groupby(["of", tenth])
    table = grouped.agg(pairs=("p", "size"), mean=("p", "mean"), joined=("joined", "mean"))
    print(f"{networks} networks\n\n| | tenth | pairs | mean probability | joined |")
    print("| --- | --- | --- | --- | --- |")
    for (of, k), row in table.iterrows():
        print(
            f"| {of} | {k / 10:.1f} to {(k + 1) / 10:.1f} | {row['pairs']:.0f} "
            f"| {row['mean']:.2f} | {row['joined']:.2f} |"
        )
    print("\n| data sets | rows of each | score | " + " | ".join(distances["by"].unique()) + " |")
    print("| --- | --- | --- | " + "--- | " * distances["by"].nunique())
    means = distances.pivot_table(index=["data_sets", "rows", "score"], columns="by", values="shd")[
        list(distances["by"].unique())
    ]
    for key, row in means.iterrows():
        print("| " + " | ".join([*map(str, key), *(f"{x:.2f}" for x in row)]) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["speed", "chains", "calibration"])
    parser.add_argument("--networks", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--cores", type=int, default=2)
    given = parsed(parser, networks=1)
    if given.what == "speed":
        speed()
    elif given.what == "chains":
        chains()
    else:
        calibration(given.networks, given.seed, given.minutes, tiny(given.cores, 1))


if __name__ == "__main__":
    main()
