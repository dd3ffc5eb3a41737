"""Likelihoods with several maxima: final fits end in the best, whatever columns are called."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import poolbn as pb

# Seeds of `nasty` with which the starts of fits with more rows end in lower maxima, or in others
# when parents come in another order; and some more.
SEEDS = [*range(12), 110, 217, 280]
RESIDUALS = ("shared", "pooled", "separate")


def nasty(seed: int) -> tuple[pd.DataFrame, list[str]]:
    """Small data sets with few rows for many parents, heavy tails and large differences."""
    rng = np.random.default_rng(seed)
    F, p = int(rng.integers(2, 8)), int(rng.integers(1, 5))
    rows = rng.integers(p + 3, 15, size=F)
    fixed = rng.normal(size=p + 1)
    between = np.sqrt(rng.choice([0, 0.01, 1, 5], size=p + 1))
    sd = np.exp(rng.normal(size=F) * rng.choice([0, 1, 2]))
    parts = []
    names = [f"x{k}" for k in range(p)]
    for j, n in enumerate(rows):
        X = rng.normal(size=(n, p)) + rng.normal(size=p) * rng.choice([0, 3])
        if rng.random() < 0.2:
            X = rng.standard_t(2, size=X.shape)
        b = fixed + between * rng.normal(size=p + 1)
        y = b[0] + X @ b[1:] + sd[j] * rng.normal(size=n)
        parts.append(pd.DataFrame(X, columns=names).assign(y=y, F=f"s{j}"))
    return pd.concat(parts, ignore_index=True), names


@pytest.mark.parametrize("residuals", RESIDUALS)
def test_names_of_parents_do_not_matter(residuals: str) -> None:
    pooling = pb.Partial(residuals=residuals)
    for seed in SEEDS:
        frame, names = nasty(seed)
        found = []
        for order in itertools.islice(itertools.permutations(names), 0, None, 5):
            called = dict(zip(order, "abcd", strict=False))
            stats = pb.stats(frame.rename(columns=called), group="F")
            fit = pb.fit_node(stats, "y", [called[name] for name in names], pooling=pooling)
            found.append(fit.loglik)
        assert max(found) == min(found), seed


def test_special_cases_are_never_better() -> None:
    """Equal variances are a case of pooled and of separate ones."""
    for seed in SEEDS:
        frame, names = nasty(seed)
        stats = pb.stats(frame, group="F")
        shared, pooled, separate = (
            pb.fit_node(stats, "y", names, pooling=pb.Partial(residuals=residuals))
            for residuals in RESIDUALS
        )
        assert pooled.loglik >= shared.loglik, seed
        assert separate.loglik >= shared.loglik, seed
        arcs = [(name, "y") for name in names]
        for fit in (shared, pooled, separate):
            alone = pb.score(stats, arcs, pooling=fit.pooling, score="loglik")
            empty = pb.score(stats, [], pooling=fit.pooling, score="loglik")
            own = pb.fit_node(stats, "y", pooling=fit.pooling).loglik
            assert alone - empty == pytest.approx(fit.loglik - own, abs=1e-8)


# Seeds that were missed, and what scipy's L-BFGS-B found from random starts: benchmarks/maxima.py.
SCIPY = [
    ("pooled", 1357, -88.4307),
    ("separate", 1217, -104.8035),
    ("separate", 1274, -55.3944),
    ("separate", 1278, -96.3894),
]


@pytest.mark.parametrize(("residuals", "seed", "loglik"), SCIPY)
def test_final_fits_are_as_good_as_scipy_from_many_starts(
    residuals: str, seed: int, loglik: float
) -> None:
    frame, names = nasty(seed)
    pooling = pb.Partial(residuals=residuals)
    stats = pb.stats(frame, group="F")
    assert pb.fit_node(stats, "y", names, pooling=pooling).loglik > loglik - 1e-4
