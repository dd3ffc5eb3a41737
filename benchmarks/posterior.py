"""Are probabilities of arcs right, how near are chains to exact ones, and what does it take?

    python benchmarks/posterior.py speed
    python benchmarks/posterior.py chains
    python benchmarks/posterior.py calibration [--networks K] [--seed S] [--minutes M] [--cores C]
    python benchmarks/posterior.py powers [--networks K] [--seed S] [--minutes M] [--cores C]

`speed` and `chains` use linear networks in 10 data sets of 50 rows, about 1.5 parents a node, with
partial pooling. `calibration` uses the paper's generator (10 nodes, 2 parents a node on average,
5 to 20 data sets of 20 or 50 rows) with pooled residuals: for each tenth of the probability of an
arc either way the share of pairs that are joined in the true graph; the same of bootstrap
strengths, on every eighth network; and the structural Hamming distances of median-probability
graphs and of hill climbing. `powers` takes the defaults of `pb.arc_posterior` and worlds that are
not the paper's (`worlds.py`, and two of continuous and binary columns), with 3 to 30 data sets:
log-losses and Brier scores of pairs and of directed arcs for powers of exp(score), those of a power
that was chosen on half of the seeds on the other half, and tenths.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from tiny import parsed, tiny
from worlds import WORLDS, correlated, world

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


WORLD_SIZES = ((3, 60), (5, 20), (10, 30), (30, 10), (4, 150))  # data sets, rows of each
ALL_POWERS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15)
_CERTAIN = 1e-6  # a probability that is nearer to 0 or 1 counts as this far away


def one_world(item: tuple[str, tuple[int, int], int]) -> pd.DataFrame:
    """Probabilities of pairs and of arcs beside the truth, for each power."""
    kind, (F, rows), seed = item
    if kind.startswith("binary"):
        share = float(kind.split()[1])
        dag, table = correlated(share, seed, N=4, F=F, rows=rows, binary=(1, 3))
    else:
        dag, table = world(kind, seed, N=6, F=F, rows=rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        post = pb.arc_posterior(table, group="F")
    at = [post.nodes.index(node) for node in dag.nodes]
    truth = dag.to_adjacency() > 0
    a, b = np.triu_indices(len(at), 1)
    off = ~np.eye(len(at), dtype=bool)
    found = []
    for power in ALL_POWERS:
        own = post if power == 1 else post.tempered(power)
        p, either = (of[np.ix_(at, at)] for of in (own.probabilities, own.adjacency))
        joined = (truth | truth.T)[a, b]
        found += [
            pd.DataFrame({"of": "pair", "power": power, "p": either[a, b], "true": joined}),
            pd.DataFrame({"of": "arc", "power": power, "p": p[off], "true": truth[off]}),
        ]
    return pd.concat(found).assign(world=kind, size=f"{F} x {rows}", seed=seed)


def markdown(table: pd.DataFrame) -> str:
    """With the index as first column."""
    rows = [["", *table.columns], ["---"] * (table.shape[1] + 1)]
    rows += [[key, *row] for key, row in zip(table.index, table.to_numpy().tolist(), strict=True)]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def powers(networks: int, first: int, minutes: float, cores: int) -> None:
    kinds = tiny((*WORLDS, "binary 0", "binary 0.6"), ("slopes", "binary 0"))
    began, made = time.monotonic(), []
    items = [
        (kind, size, seed)
        for seed in range(first, first + networks)
        for kind in kinds
        for size in tiny(WORLD_SIZES, ((3, 20),))
    ]
    for found in Parallel(cores, return_as="generator")(delayed(one_world)(of) for of in items):
        made.append(found)
        if time.monotonic() - began > 60 * minutes:
            break
    table = pd.concat(made)
    p = table["p"].clip(_CERTAIN, 1 - _CERTAIN)
    table["loss"] = -np.log(np.where(table["true"], p, 1 - p))
    table["brier"] = (table["p"] - table["true"]) ** 2
    print(f"{len(made)} tables\n")
    for of, own in table.groupby("of"):
        for by in ("world", "size"):
            means = own.pivot_table(index=by, columns="power", values="loss", sort=False)
            print(f"log-loss, {of}\n\n{markdown(means.round(3))}\n")
        chosen = own["seed"] % 2 == 0
        for name, some in (("chosen on", own[chosen]), ("shown on", own[~chosen])):
            means = some.groupby("power")[["loss", "brier"]].mean()
            print(f"{of}, {name}\n\n{markdown(means.round(4))}\n")
    pairs = table[(table["of"] == "pair") & (table["seed"] % 2 == tiny(1, 0))]
    tenth = np.minimum((pairs["p"] * 10).astype(int), 9)
    cells = pairs.groupby([tenth, "power"]).agg(
        n=("p", "size"), mean=("p", "mean"), joined=("true", "mean")
    )
    text = cells.apply(lambda r: f"{r['mean']:.2f}: {r['joined']:.2f} of {r['n']:.0f}", axis=1)
    print(markdown(text.unstack().fillna("")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["speed", "chains", "calibration", "powers"])
    parser.add_argument("--networks", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--cores", type=int, default=2)
    given = parsed(parser, networks=1)
    if given.what == "speed":
        speed()
    elif given.what == "chains":
        chains()
    elif given.what == "powers":
        powers(given.networks, given.seed, given.minutes, tiny(given.cores, 1))
    else:
        calibration(given.networks, given.seed, given.minutes, tiny(given.cores, 1))


if __name__ == "__main__":
    main()
