"""Do tests of equal effects at 5% reject 5% of tables without differences, and find differences?

Each cell has K tables of F data sets with 8, 20 or 60 rows each, or from 8 to 60, and a continuous
parent or a discrete one with three levels (with null distributions of 1,000 draws, not 10,000, to
save time). Residual SDs are equal, or range from 0.5 to 2, the largest in the data sets with the
fewest rows ("few") or with the most ("many"). Size: all effects are 1. Power, where residual SDs
are equal: effects have an SD of 1.6 over the root of the median number of rows. Beside each stands
what the F test between the two regressions rejects, which assumes one residual variance.

    python benchmarks/heterogeneity.py [--tables K] [--smoke]
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np
from numpy.typing import NDArray
from tiny import parsed, tiny

from poolbn.nodes import equality
from poolbn.nodes.equality import _gain, _left, equal_blocks, equal_effects, one_variance
from poolbn.nodes.intervals import own_estimates
from poolbn.nodes.terms import Sums

DATA_SETS, SDS = tiny((3, 6, 15), (3,)), ("equal", "few", "many")
ROWS = tiny(("8", "20", "60", "8 to 60"), ("8", "8 to 60"))


def rows_of(words: str, F: int) -> NDArray[np.int64]:
    """Rows of the data sets, (F,)."""
    low, _, high = words.partition(" to ")
    return np.round(np.geomspace(int(low), int(high or low), F)).astype(np.int64)


def drawn(
    rng: np.random.Generator, n: NDArray[np.int64], sd: NDArray[np.float64], levels: int, tau: float
) -> Sums:
    """Sufficient statistics of a table, with a number as the parent or one of so many levels."""
    q = max(levels, 2)
    mean, scatter = np.zeros((len(n), q)), np.zeros((len(n), q, q))
    for j, rows in enumerate(n):
        if levels:
            x = np.eye(levels)[rng.integers(0, levels, rows)][:, 1:]
        else:
            x = rng.normal(size=(rows, 1))
        y = x @ (1 + tau * rng.normal(size=q - 1)) + sd[j] * rng.normal(size=rows)
        table = np.column_stack([x, y])
        mean[j] = table.mean(axis=0)
        away = table - mean[j]
        scatter[j] = away.T @ away
    every, rows_of = np.ones(q, dtype=bool), n.astype(np.float64)
    return Sums(rows_of, mean, scatter, np.zeros(q), np.ones(q), every, rows_of)


def rejected(x: Sums, levels: int) -> tuple[bool, bool]:
    """By the test, and by the F test."""
    own = own_estimates(x)
    columns = list(range(len(x.center) - 1))
    found = equal_blocks(x, own, columns) if levels else equal_effects(own, x.n, 1)
    gained, free = _gain(*_left(x, columns), np.ones(len(x.n)))
    exact = one_variance(float(gained), free, own.rss, x.n - own.rank)
    return found.p_value < 0.05, exact.p_value < 0.05


def cell(F: int, rows: str, words: str, levels: int, tau: float, tables: int) -> list[float]:
    """Percentages of tables in which the two tests reject."""
    place = (ROWS.index(rows), SDS.index(words), levels, int(tau > 0))
    rng = np.random.default_rng([4711, F, *place])
    n = rows_of(rows, F)
    most = {"equal": 1.0, "few": 2.0, "many": 0.5}[words]
    sd, tau = np.geomspace(most, 1 / most, F), tau / np.sqrt(np.median(n))
    found = [rejected(drawn(rng, n, sd, levels, tau), levels) for _ in range(tables)]
    return [100 * share for share in np.mean(found, axis=0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=2000)
    options = parsed(parser, tables=4)
    tables = options.tables
    print(f"Rejected at 5%, in percent, of {tables:,} tables each; by the F test in brackets.\n")
    print("| parent | data sets | rows of each | residual SDs | size | power |")
    print("| --- | --- | --- | --- | --- | --- |")
    for levels, F, rows, words in product((0, 3), DATA_SETS, ROWS, SDS):
        equality._DRAWS = tiny(1000 if levels else 10_000, 100)
        if words == "many" and "to" not in rows:
            continue  # as "few"
        size = "{:.1f} ({:.1f})".format(*cell(F, rows, words, levels, 0.0, tables))
        power = ""
        if words == "equal":
            power = "{:.0f} ({:.0f})".format(*cell(F, rows, words, levels, 1.6, tables))
        parent = "three levels" if levels else "number"
        sds = {"equal": "equal", "few": "0.5 to 2", "many": "0.5 to 2, large with many rows"}[words]
        if words == "few" and "to" in rows:
            sds = "0.5 to 2, large with few rows"
        print(f"| {parent} | {F} | {rows} | {sds} | {size} | {power} |", flush=True)


if __name__ == "__main__":
    main()
