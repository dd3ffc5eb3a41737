"""Linear regressions in the file of a network."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import FileError
from poolbn.moments.indicators import labels_of
from poolbn.network.fields import (
    are_counts,
    as_array,
    as_float,
    as_list,
    as_text,
    check_keys,
    floats,
    number,
    numbers,
)
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.intervals import Intervals
from poolbn.nodes.localfit import Counts, Given, GroupLevel, Status
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.nodes.predictive import uncertainty
from poolbn.writing import check_levels

_ROUNDING = 1e-6  # in correlations
_KINDS = (Complete, NoPooling, Partial, GroupLevel, Given)
_POOLINGS: dict[str, Any] = {kind.__name__: kind for kind in _KINDS}
_ARRAYS = (
    "coef", "coef_cov", "sigma2", "squares", "df", "effective_df", "rows", "total_cov",
    "between_cov", "fixed", "fixed_cov", "random_cov",
)  # fmt: skip
_SOURCES = ("intervention", "simulated", "input")  # of given parameters
# Data sets are there once for all nodes, intervals under another name; the sums of rows stay where
# they are.
_NOT_KEPT = {"levels", "group", "sums", "saved_intervals", "later", "given", "categories"}


def encode_linear(fit: GaussianFit) -> dict[str, Any]:
    """As JSON has it."""
    encoded: dict[str, Any] = {}
    for name in (field.name for field in fields(fit) if field.name not in _NOT_KEPT):
        value = getattr(fit, name)
        encoded[name] = value.tolist() if isinstance(value, np.ndarray) else value
    encoded["parents"] = fit.columns
    total, between = uncertainty(fit)
    encoded |= {"total_cov": total.tolist(), "between_cov": between.tolist()}
    encoded["intervals"] = None
    if fit.intervals is not None:
        encoded["intervals"] = {
            name: numbers(value) for name, value in fit.intervals._asdict().items()
        }
    pooling = fit.pooling
    if not isinstance(pooling, tuple(_POOLINGS.values())):
        raise FileError(
            f"{fit.child!r} has the pooling {pooling!r}, which is not poolbn's own and cannot be "
            "saved"
        )
    encoded["pooling"] = written(pooling)
    encoded["status"] = fit.status.value
    encoded["loglik"] = number(fit.loglik)
    if fit.residual_shape is not None:
        encoded["residual_shape"] = number(fit.residual_shape)
    return encoded


def decode_linear(
    node: str,
    encoded: dict[str, Any],
    levels: tuple[Hashable, ...],
    given: Mapping[str, tuple[str, ...]],
) -> GaussianFit:
    """A fit from what `encode_linear` made of it.

    Args:
        node: which.
        encoded: the fit, as JSON has it.
        levels: the data sets.
        given: the parents that the graph has, and the levels of each.
    """
    known = {field.name for field in fields(GaussianFit)} - _NOT_KEPT
    if not isinstance(encoded, dict):
        raise ValueError(f"{node!r} is not an object")
    values: dict[str, Any] = {"left_out": []} | encoded
    intervals = values.pop("intervals", None)
    check_keys(f"node {node!r}", values, known)

    def of(name: str) -> str:
        return f"{name} of {node!r}"

    if intervals is not None:
        intervals = {"new_se": [], "at": []} | intervals
        center = intervals.pop("center", None)
        check_keys(of("intervals"), intervals, set(Intervals._fields))
        found = {n: np.array(floats(of(n), value)) for n, value in intervals.items()}
        if center is not None:  # of older versions: around other values than the estimates
            coef = as_array(of("coef"), values["coef"])
            off = np.array(floats(of("center"), center)) - coef[:, 1:]
            none = np.full((len(coef), 1), math.nan)
            found["se"] = np.hstack([none, np.hypot(found["se"], off)])
            found["df"] = np.hstack([none, found["df"]])
        values["saved_intervals"] = Intervals(**found)
    for name in _ARRAYS:
        if values[name] is not None:
            values[name] = as_array(of(name), values[name])
    for name in ("parents", "left_out", "counts"):
        values[name] = tuple(as_list(of(name), values[name]))
    own = tuple(given.values())
    if values["child"] != node or values["parents"] != labels_of(tuple(given), own):
        raise ValueError(f"the parents of {node!r} are not those of the graph")
    values |= {"parents": tuple(given), "given": own}
    values["levels"] = levels
    if len(values["counts"]) != len(Counts._fields):
        raise ValueError(f"{of('counts')} is not a list of 3 numbers")
    values["counts"] = Counts(*values["counts"])
    check_left_out(values["left_out"], levels)
    values["pooling"] = decode_pooling(of("pooling"), values["pooling"])
    values["status"] = Status(values["status"])
    as_text(of("detail"), values["detail"])
    values["loglik"] = as_float(of("loglik"), values["loglik"])
    for name in ("residual_shape", "residual_scale"):
        if values[name] is not None:
            values[name] = as_float(of(name), values[name])
    return GaussianFit(**values)


def written(pooling: object) -> dict[str, Any]:
    """A pooling of continuous nodes as a file has it."""
    own = dict(vars(pooling))
    own.pop("discrete", None)
    return {"kind": type(pooling).__name__} | own


def check_left_out(left_out: tuple[Any, ...], levels: tuple[Hashable, ...]) -> None:
    """Raise for a data set outside a likelihood that is not among the data sets."""
    check_levels(left_out)
    if not set(left_out) <= set(levels):
        raise ValueError("a data set that is left out is not among the data sets")


def decode_pooling(name: str, encoded: Any, *, discrete: bool = False) -> Any:
    """A pooling from what a file has of it, of a continuous node or of another."""
    if not isinstance(encoded, dict) or encoded.get("kind") not in list(_POOLINGS):
        raise ValueError(f"{name} is of no kind that poolbn has")
    kind = _POOLINGS[encoded["kind"]]
    own = {field.name for field in fields(kind)} - (set() if discrete else {"discrete"})
    check_keys(name, encoded, {"kind", *own})
    given = {key: value for key, value in encoded.items() if key != "kind"}
    if kind is Given and given["source"] not in _SOURCES:
        raise ValueError(f"{name} has the source {given['source']!r}")
    return kind(**given)


def check_covariance(name: str, M: NDArray[np.float64]) -> None:
    """Raise for matrices (..., q, q) that are no covariances, but for rounding."""
    if (np.diagonal(M, axis1=-2, axis2=-1) < 0).any():
        raise ValueError(f"{name} has a negative variance")
    sd = np.sqrt(np.diagonal(M, axis1=-2, axis2=-1))
    sd = np.where(sd > 0, sd, 1.0)
    correlation = M / (sd[..., :, None] * sd[..., None, :])
    symmetric = np.abs(correlation - np.swapaxes(correlation, -2, -1)) < _ROUNDING
    if not (symmetric.all() and (np.linalg.eigvalsh(correlation) > -_ROUNDING).all()):
        raise ValueError(f"{name} is not a covariance matrix")


def check_linear(node: str, fit: GaussianFit) -> None:
    """Raise for a fit that cannot be."""
    F, q = len(fit.levels), len(fit.columns) + 1
    shapes = {"coef": (F, q), "coef_cov": (F, q, q), "sigma2": (F,), "rows": (F,)}
    shapes |= {"total_cov": (F, q, q), "between_cov": (F, q, q)}
    shapes |= {"fixed": (q,), "fixed_cov": (q, q), "random_cov": (q, q)}
    for name, shape in shapes.items():
        array = getattr(fit, name)
        if array is None and name in {"fixed", "fixed_cov", "random_cov"}:
            continue
        if array is None or array.shape != shape or not np.isfinite(array).all():
            raise ValueError(f"{name} of {node!r} is not a table of {shape} numbers")
        if name.endswith("cov"):
            check_covariance(f"{name} of {node!r}", array)
        elif name not in {"coef", "fixed"} and (array < 0).any():
            raise ValueError(f"{name} of {node!r} has a negative number")
    if fit.saved_intervals is not None:
        _check_intervals(f"the intervals of {node!r}", fit.saved_intervals, F, q)
    for name in ("squares", "df", "effective_df"):
        array = getattr(fit, name)
        if array.shape != (F,):
            raise ValueError(f"{name} of {node!r} is not a list of {F} numbers")
        if name == "squares" and (array < 0).any():
            raise ValueError(f"{name} of {node!r} has a negative number")
    wrong = _wrong(fit)
    if wrong:
        raise ValueError(f"{wrong} of {node!r}")


def _check_intervals(name: str, intervals: Intervals, F: int, q: int) -> None:
    shapes = {"at": (q - 1,), "se": (F, q), "df": (F, q)}
    for field, array in intervals._asdict().items():
        unknown = field in {"at", "new_se"} and not array.size  # as in older versions
        if array.shape != shapes.get(field, (q,)) and not unknown:
            raise ValueError(f"{field} of {name} has a wrong shape")
        if field != "at" and (array < 0).any():
            raise ValueError(f"{field} of {name} has a negative number")


def _wrong(fit: GaussianFit) -> str:
    """What of a fit's single values cannot be, or nothing."""
    shape, scale = fit.residual_shape, fit.residual_scale
    given = isinstance(fit.pooling, Given)
    # A column that describes data sets varies between them alone, and is known there.
    between = fit.random_cov is not None and not fit.sigma2.any() and not fit.coef_cov.any()
    checks = (
        ((fit.fixed is None) != (fit.fixed_cov is None), "one of fixed and fixed_cov is missing"),
        ((shape is None) != (scale is None), "residual_shape or residual_scale is missing"),
        (shape is not None and not shape > 0, "there is no positive residual_shape"),
        (scale is not None and not 0 < scale < math.inf, "there is no positive residual_scale"),
        (math.isnan(fit.loglik) and not given, "there is no loglik"),
        (type(fit.unbiased) is not bool, "there is no true or false in unbiased"),
        (not are_counts([*fit.counts, fit.n_rows]), "a count is not a whole number"),
        (not fit.n_rows and not given, "there is no row in n_rows"),
        (
            fit.status.ok and not given and not between and not fit.sigma2.all(),
            "there is no positive sigma2",
        ),
    )
    return next((words for wrong, words in checks if wrong), "")
