"""What several tests need."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from string import ascii_lowercase
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

import poolbn as pb
from poolbn.learning import as_plan
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.localfit import Counts

# What poolbn itself asks of data, and no user needs.
ASKED_OF_DATA = {
    "by_configuration", "data_sets", "drawn", "joined", "levels_set", "only", "share", "some_rows",
    "where_not_set", "without",
}  # fmt: skip
# And of fits; what users call of these has examples.
ASKED_OF_FITS = {
    "about", "adapted", "alone", "along", "as_columns", "blocks", "changed_in", "columns_of",
    "data_set_draws", "draw", "equality", "explained", "followed_by", "in_order",
    "in_population", "log_density", "mean", "new_data_sets", "predictive", "proportionality",
    "quantile", "redrawing", "residuals", "set_to", "strata", "taken", "terms", "unit_effects",
    "with_imputation_error", "within_between",
}  # fmt: skip
REFERENCE = Path(__file__).parent / "reference"


def reference(name: str) -> list[dict]:
    """The cases of a file of numbers that other programs computed."""
    return json.loads((REFERENCE / name).read_text())["cases"]


def simulate(
    seed: int,
    *,
    data_sets: int = 5,
    rows: int = 20,
    parents: int = 2,
    between: float = 1.0,
) -> pd.DataFrame:
    """Columns y, x1, ... and F, with random effects of SD `between` on every coefficient."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(data_sets), rows)
    X = rng.normal(size=(len(codes), parents)) + rng.normal(size=(data_sets, parents))[codes]
    b = rng.normal(size=(data_sets, parents + 1)) * between + 1
    y = b[codes, 0] + (X * b[codes, 1:]).sum(axis=1) + rng.normal(size=len(codes))
    frame = pd.DataFrame(X, columns=[f"x{k + 1}" for k in range(parents)])
    return frame.assign(y=y, F=[f"set {j}" for j in codes])


def learned_as_given(data: Any, **options: Any) -> pb.Network:
    """What the search of other programs finds, with columns in their order in the data."""
    plan = replace(as_plan(**{"preset": "paper"} | options), as_given=True)
    return plan.network(data, *plan.found(data))


def work_space(model: ModuleType, n: np.ndarray, q: int, random: int, reml: bool = False) -> Any:
    """A work space for the kernels of a residual model, filled with NaN."""
    from poolbn.kernels import work

    buffer, more = work.rooms(len(n), q, reml, work.shapes, model.shapes)
    buffer[:], more[:] = np.nan, np.nan
    perm, totals = np.arange(q), np.empty(4)
    return work.Space(buffer, more, perm, n, totals, len(n), q, random, reml, n)


@cache
def callable_kernel(kernel: Any) -> Any:
    """A kernel that only other kernels call, compiled with a way in from Python."""
    import numba

    def call(*arguments: Any) -> Any:
        return kernel(*arguments)

    return numba.njit(call)


def given(
    dag: pb.Dag,
    coef: dict[str, np.ndarray],
    sd: np.ndarray,
    levels: list[str],
    n: list[int] | None = None,
) -> pb.Network:
    """A network with these coefficients, (F, q) of each node, and residual SDs, (F, N)."""
    fits = {}
    for i, node in enumerate(dag.nodes):
        b = np.array(coef[node], dtype=float)
        F, q = b.shape
        fits[node] = GaussianFit(
            child=node,
            parents=dag.parents(node),
            given=((),) * (q - 1),
            levels=tuple(levels),
            pooling=pb.NoPooling(),
            coef=b,
            coef_cov=np.zeros((F, q, q)),
            sigma2=np.broadcast_to(sd, (F, len(dag.nodes)))[:, i] ** 2,
            squares=np.zeros(F),
            df=np.zeros(F),
            effective_df=np.zeros(F),
            rows=np.zeros(F),
            total_cov=np.zeros((F, q, q)),
            between_cov=np.zeros((F, q, q)),
            unbiased=False,
            loglik=0.0,
            counts=Counts(0, 0, F * (q + 1)),
            n_rows=F,
            status=pb.Status.GIVEN,
            detail="for a test",
        )
    return pb.Network(dag, fits, 0.0, group="F", n=np.array(n or [1] * len(levels)))


def simulate_network(
    seed: int, nodes: int, *, data_sets: int = 3, rows: int = 12, between: float = 0.5
) -> pd.DataFrame:
    """Columns in random order of a random linear network, whose coefficients vary, and F."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(data_sets), rows)
    X = np.zeros((len(codes), nodes))
    for c in range(nodes):
        b = rng.normal(size=c + 1) * (rng.random(c + 1) < 0.6)
        b = b + between * rng.normal(size=(data_sets, c + 1)) * (b != 0)
        X[:, c] = b[codes, 0] + (b[codes, 1:] * X[:, :c]).sum(axis=1) + rng.normal(size=len(codes))
    frame = pd.DataFrame(X[:, rng.permutation(nodes)], columns=list(ascii_lowercase[:nodes]))
    return frame.assign(F=[f"set {j}" for j in codes])
