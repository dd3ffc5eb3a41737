"""Networks as version 0.1 wrote them, with what it did not write worked out from the rest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.nodes.blup import effective_df
from poolbn.nodes.given import Given
from poolbn.nodes.localfit import Counts, Status
from poolbn.nodes.poolings import Complete, NoPooling, Partial

# It wrote poolings and statuses in words.
_POOLINGS: dict[str, Complete | NoPooling | Partial | Given] = {
    "complete pooling": Complete(),
    "no pooling": NoPooling(),
    "partial pooling": Partial(),
    "partial pooling (REML)": Partial(method="reml"),
    "partial pooling, separate residuals": Partial(residuals="separate"),
    "partial pooling and residuals": Partial(residuals="pooled"),
    "partial pooling of the intercept": Partial("intercept"),
    "partial pooling of the intercept (REML)": Partial("intercept", method="reml"),
    "partial pooling of the intercept, separate residuals": Partial("intercept", "separate"),
    "partial pooling of the intercept and residuals": Partial("intercept", "pooled"),
    "intervention": Given("intervention"),
    "simulated": Given("simulated"),
}
_STATUSES = {"boundary": Status.SINGULAR, "not settled": Status.NOT_CONVERGED}


def written(pooling: object) -> dict[str, Any]:
    """A pooling of continuous nodes as a file has it."""
    own = {name: value for name, value in vars(pooling).items() if name != "discrete"}
    return {"kind": type(pooling).__name__} | own


def upgraded(content: dict[str, Any]) -> dict[str, Any]:
    """A network of format 1 as one of format 2."""
    n = np.array(content["rows"], dtype=np.float64)
    if n.shape != (len(content["levels"]),):
        raise ValueError("the rows of the data sets are not one whole number for each")
    adapted = np.array([level in content["adapted"] for level in content["levels"]])
    fits = {node: _fit(fit, n, adapted) for node, fit in content["fits"].items()}
    return content | {"score_kind": "", "search": "", "fits": fits}


def _fit(old: dict[str, Any], n: NDArray[np.float64], adapted: NDArray[np.bool_]) -> dict[str, Any]:
    pooling = _POOLINGS[old["pooling"]]
    if np.shape(old["sigma2"]) != n.shape:
        raise ValueError(f"sigma2 of {old['child']!r} is not a list of {len(n)} numbers")
    new = {name: value for name, value in old.items() if name != "n_params"}
    new["pooling"] = written(pooling)
    status = old["status"]["name"]
    new["status"] = (_STATUSES.get(status) or Status(status)).value
    new["detail"] = old["status"]["detail"]
    learned = len(n) - int(adapted.sum())
    counts = Counts(0, 0, old["n_params"])
    if not isinstance(pooling, Given):
        counts = pooling.counts(len(old["parents"]), learned)
    return new | {"counts": list(counts)} | _residuals(old, pooling, n, adapted)


def _residuals(
    old: dict[str, Any], pooling: object, n: NDArray[np.float64], adapted: NDArray[np.bool_]
) -> dict[str, Any]:
    """Residual squares, and the degrees of freedom that they and random effects have."""
    F, q = int((~adapted).sum()), len(old["parents"]) + 1
    sigma2 = np.array(old["sigma2"], dtype=np.float64)
    effective, unbiased = np.zeros(len(n)), False
    if isinstance(pooling, Given):
        squares = df = np.zeros(len(n))
    elif not isinstance(pooling, Partial):
        # Residual squares are what the log-likelihood has beside the variances themselves. In units
        # of variances they are as many as rows, fewer where variances are unbiased.
        rows, variance = n[~adapted], sigma2[~adapted]
        loglik = float(old["loglik"])
        part = (-2 * loglik - rows @ np.log(2 * math.pi * variance)) / rows.sum()
        unbiased = bool(part < 1 - 1e-9)
        df = n - q / (1 if isinstance(pooling, NoPooling) else F)
        squares = sigma2 * (df if unbiased else n)
    else:
        S = np.array(old["coef_cov"], dtype=np.float64)
        scale, shape = old["residual_scale"], old["residual_shape"]
        if scale is not None:  # random effects in proportion to residual variances
            S = S * (scale / sigma2)[:, None, None]
        effective = effective_df(np.array(old["random_cov"], dtype=np.float64), S)
        df = n - effective - (q - effective) / F
        unbiased = pooling.method == "reml"
        squares = sigma2 * (df if unbiased else n - effective)
        if scale is not None:
            squares = _generalised(sigma2, n, adapted, effective, float(shape), scale)
    if not isinstance(pooling, NoPooling):  # others gave an adapted data set its variance
        df = np.where(adapted, 0.0, df)
        if old["residual_scale"] is None:
            squares = np.where(adapted, 0.0, squares)
    return {
        "squares": squares.tolist(),
        "df": df.tolist(),
        "effective_df": effective.tolist(),
        "unbiased": unbiased,
    }


def _generalised(
    sigma2: NDArray[np.float64],
    n: NDArray[np.float64],
    adapted: NDArray[np.bool_],
    effective: NDArray[np.float64],
    shape: float,
    scale: float,
) -> NDArray[np.float64]:
    """Generalised residual squares q_j of pooled variances, see `mixed.expected_variance`, (F,).

    `sigma2` is (a s + q_j / 2) / (a + n_j / 2 - 1), times 1 + tr(V_j Z_j'Z_j) / n_j in data sets
    that were learned from; where a is inf it does not depend on them.
    """
    if math.isinf(shape):
        return np.full(len(n), math.nan)
    mean = sigma2 / (1 + np.where(adapted, 0.0, effective / np.maximum(n, 1)))
    g = mean * np.maximum(shape + n / 2 - 1, 0.5)
    return np.asarray(np.maximum(2 * (g - shape * scale), 0.0))
