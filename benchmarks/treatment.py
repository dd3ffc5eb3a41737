"""Do tests of no mean effect of a treatment at 5% reject 5%, and do 95% intervals cover 95%?

Each cell has K tables of F data sets with as many rows each, the treatment drawn by lot in each
row. Levels of data sets vary with an SD of 0.5. Size: without an effect. Coverage: with one of 0.7
(differences, logarithms of ratios); the interval has the truth where the test of it does not
reject. A table without any event has no test and no interval: it is not rejected, and the truth not
excluded. Scores of all tables of a cell are computed at once; with `--public` some tables of each
cell go through `pb.treatment_effects` too, whose intervals must say the same.

    python benchmarks/treatment.py [--tables K] [--public P] [--smoke]
"""

from __future__ import annotations

import argparse
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tiny import parsed, tiny

import poolbn as pb
from poolbn.assess.treatment import Rows, Scores, p_values, score_of

Floats = NDArray[np.float64]

DATA_SETS, ROWS = tiny((3, 6, 10, 30), (3,)), tiny((4, 8, 20, 60), (8,))
EFFECT, LEVEL_SD = 0.7, 0.5
THRESHOLDS = np.array([-1.0, 0.3, 1.5])  # of ordered levels


class Kind(NamedTuple):
    """What a table holds.

    Attributes:
        outcome: as `stratified` calls it.
        words: in the table of results.
        base: probability or mean count without treatment.
        spread: the largest residual SD of a data set over the smallest, or the variance of the
            factors that make counts vary more than Poisson's, or the SD of the logarithms of
            distances of thresholds between data sets.
        arms: the largest residual SD of an arm over the other.
        varies: SD of effects between data sets.
        number: whether the treatment is a standard normal number, not an arm.
    """

    outcome: str
    words: str
    base: float = 0.0
    spread: float = 0.0
    arms: float = 1.0
    varies: float = 0.0
    number: bool = False


KINDS = (
    Kind("continuous", "difference, equal residual SDs", spread=1.0),
    Kind("continuous", "difference, residual SDs 1 to 4", spread=4.0),
    Kind("continuous", "difference, residual SDs of arms 1 and 2", spread=1.0, arms=2.0),
    Kind("continuous", "difference, effects with an SD of 0.5", spread=1.0, varies=0.5),
    Kind("discrete", "odds ratio, 40%", 0.4),
    Kind("discrete", "odds ratio, 5%", 0.05),
    Kind("count", "rate ratio, mean 3", 3.0),
    Kind("count", "rate ratio, mean 3, overdispersed", 3.0, spread=0.5),
    Kind("count", "rate ratio, mean 0.1", 0.1),
    Kind("continuous", "difference for a number, residual SDs 1 to 4", spread=4.0, number=True),
    Kind("discrete", "odds ratio for a number, 40%", 0.4, number=True),
    Kind("count", "rate ratio for a number, mean 3", 3.0, number=True),
    Kind("count", "rate ratio for a number, mean 3, overdispersed", 3.0, 0.5, number=True),
    Kind("count", "rate ratio for a number, mean 0.2", 0.2, number=True),
    Kind("ordinal", "odds ratio of a higher level"),
    Kind("ordinal", "odds ratio of a higher level, thresholds of data sets", spread=0.5),
    Kind("ordinal", "odds ratio of a higher level for a number", number=True),
)


def drawn(
    rng: np.random.Generator, of: Kind, shape: tuple[int, int, int], effect: float
) -> tuple[Floats, Floats, Floats]:
    """Treatment and outcome, (K, F, n) each, and the true mean effect, (K,)."""
    x = rng.normal(size=shape) if of.number else (rng.random(shape) < 0.5).astype(float)
    level = LEVEL_SD * rng.normal(size=(*shape[:2], 1))
    own = effect + of.varies * rng.normal(size=level.shape)
    mean = level + own * x
    if of.outcome == "continuous":
        sd = of.spread ** np.linspace(0, 1, shape[1])[:, None] * of.arms**x
        weight = x.var(axis=2)
        truth = np.average(own[..., 0], axis=1, weights=weight + 1e-12)
        return x, mean + sd * rng.normal(size=shape), truth
    if of.outcome == "count":
        factor = rng.gamma(1 / of.spread, of.spread, size=shape) if of.spread else 1.0
        y = rng.poisson(of.base * factor * np.exp(mean)).astype(float)
    elif of.outcome == "ordinal":
        wide = np.exp(of.spread * rng.normal(size=(*level.shape, 2))) * np.diff(THRESHOLDS)
        cuts = THRESHOLDS[0] + np.pad(np.cumsum(wide, axis=-1), [(0, 0)] * 3 + [(1, 0)])
        y = ((mean + rng.logistic(size=shape))[..., None] > cuts).sum(axis=-1).astype(float)
    else:
        y = (rng.random(shape) < 1 / (1 + (1 / of.base - 1) * np.exp(-mean))).astype(float)
    return x, y, np.full(shape[0], effect)


def tested(of: Kind, x: Floats, y: Floats, truth: Floats) -> Floats:
    """The p-value of the truth in each table, (K,)."""
    K, F, n = x.shape
    data_set = np.repeat(np.arange(K * F), n)
    if of.outcome == "continuous":  # a true effect of its own in each table
        y, truth = y - truth[:, None, None] * x, np.zeros(K)
    if of.outcome == "ordinal" and K > 1:  # weights are of a table
        each = zip(x[:, None], y[:, None], truth[:, None], strict=True)
        return np.concatenate([tested(of, *one) for one in each])
    found = score_of(Rows(x.ravel(), y.ravel(), data_set, K * F), of.outcome)(float(truth[0]))
    return p_values(Scores(*(part.reshape(K, F) for part in found)))


def checked(of: Kind, x: Floats, y: Floats, truth: Floats, p: Floats) -> None:
    """Raise if the public function says something else of a table."""
    F, n = x.shape
    own = {
        "discrete": lambda v: np.where(v > 0, "yes", "no"),
        "ordinal": lambda v: v.astype(int),
    }.get(of.outcome, np.asarray)
    rows = pd.DataFrame({"site": np.repeat([f"s{j}" for j in range(F)], n), "y": own(y.ravel())})
    rows["x"] = x.ravel() if of.number else np.where(x.ravel() > 0, "treated", "control")
    if rows["x"].nunique() < 2 or rows["y"].nunique() < 2:
        assert np.isnan(p)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pb.treatment_effects(
            rows, treatment="x", group="site", kinds={"y": of.outcome}
        ).iloc[0]
    (none,) = tested(of, x[None], y[None], np.zeros(1))
    assert np.allclose(found["p_value"], none, equal_nan=True), (of, found, none)
    told = truth if of.outcome == "continuous" else np.exp(truth)
    covered = found["mean_lower"] <= told <= found["mean_upper"]
    # Variances from residuals of few counts may grow so fast, away from the estimate, that values
    # far from it are not rejected again. The interval is what surrounds the estimate.
    if not (np.isnan(none) or np.isnan(p) or (of.number and of.outcome == "count")):
        assert covered == (p >= 0.05), (of, found, p)


def cell(of: Kind, F: int, n: int, options: argparse.Namespace) -> tuple[float, float]:
    """Size and coverage."""
    rng = np.random.default_rng([2026, KINDS.index(of), F, n])
    shares = []
    for effect in (0.0, EFFECT):
        x, y, truth = drawn(rng, of, (options.tables, F, n), effect)
        p = tested(of, x, y, truth)
        for k in range(min(options.public, options.tables)):
            checked(of, x[k], y[k], truth[k], p[k])
        shares.append(float((p < 0.05).mean()))
    return shares[0], 1 - shares[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--public", type=int, default=0, help="tables of a cell to check")
    options = parsed(parser, tables=20, public=1)
    print(f"Size and coverage in percent, {options.tables:,} tables in each cell.\n")
    print("| effect | data sets |" + "".join(f" {n} rows |" for n in ROWS))
    print("| --- |" + " --- |" * (len(ROWS) + 1))
    for of in KINDS:
        for F in DATA_SETS:
            found = (cell(of, F, n, options) for n in ROWS)
            told = "".join(f" {100 * size:.1f}, {100 * covered:.1f} |" for size, covered in found)
            print(f"| {of.words} | {F} |{told}", flush=True)


if __name__ == "__main__":
    main()
