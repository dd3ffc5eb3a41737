"""The file of a `Network`: versioned JSON, checked when it is read."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import FileError, GraphError
from poolbn.graph.dag import Dag
from poolbn.network.format1 import upgraded
from poolbn.nodes.given import Given
from poolbn.nodes.grouplevel import GroupLevel
from poolbn.nodes.intervals import Intervals
from poolbn.nodes.localfit import Counts, GaussianFit, Status
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.nodes.predictive import covariances_without_rows, uncertainty
from poolbn.search.problem import Move
from poolbn.writing import check_levels

_FORMAT = "poolbn-network"
_VERSION = 2
_ROUNDING = 1e-6  # in correlations
_KINDS = (Complete, NoPooling, Partial, GroupLevel, Given)
_POOLINGS: dict[str, Any] = {kind.__name__: kind for kind in _KINDS}
_LATER = {"rows", "total_cov", "between_cov"}  # first files of version 2 lack them
_ARRAYS = (
    "coef", "coef_cov", "sigma2", "squares", "df", "effective_df", "rows", "total_cov",
    "between_cov", "fixed", "fixed_cov", "random_cov",
)  # fmt: skip


class Content(TypedDict):
    """The fields of a `Network`."""

    dag: Dag
    fits: Mapping[str, GaussianFit]
    score: float
    group: str
    n: NDArray[np.int64]
    adapted: tuple[Hashable, ...]
    score_kind: str
    search: str
    trace: tuple[Move, ...]


def network_text(content: Content) -> str:
    """A network as JSON.

    Raises:
        FileError: a data set's name cannot be written.
    """
    fits = content["fits"]
    levels = next(iter(fits.values())).levels
    check_levels(levels)
    encoded = {
        "format": _FORMAT,
        "version": _VERSION,
        "nodes": content["dag"].nodes,
        "arcs": content["dag"].arcs,
        "group": content["group"],
        "levels": levels,
        "rows": content["n"].tolist(),
        "adapted": content["adapted"],
        "score": _number(content["score"]),
        "score_kind": content["score_kind"],
        "search": content["search"],
        "fits": {node: _encode(fit) for node, fit in fits.items()},
        "trace": [move._asdict() for move in content["trace"]],
    }
    return json.dumps(encoded, indent=1)


def read_network(path: str | os.PathLike[str]) -> Content:
    """The fields of the network of a file with the text of `network_text`.

    Raises:
        FileError: the file is not there, damaged, of another kind, or too new.
    """
    shown = repr(os.fspath(path))
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except OSError as error:
        raise FileError(f"cannot read {shown}: {error.strerror}") from error
    except ValueError as error:
        raise FileError(
            f"{shown} is not JSON, or is cut short ({error}); copy or save it anew"
        ) from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise FileError(f"{shown} is not a network of poolbn; Network.save writes them")
    if content.get("version") not in (1, _VERSION):
        raise FileError(
            f"{shown} has version {content.get('version')} of the format, this poolbn reads "
            f"versions 1 to {_VERSION}; update poolbn"
        )
    try:
        return _decode_network(upgraded(content) if content["version"] == 1 else content)
    except (GraphError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{shown} does not hold a network as it should: {error}") from error


def _decode_network(encoded: dict[str, Any]) -> Content:
    dag = Dag(encoded["nodes"], encoded["arcs"])
    if not dag.nodes or set(dag.nodes) != set(encoded["fits"]):
        raise ValueError("the nodes of the graph are not those that are fitted")
    levels, rows = tuple(encoded["levels"]), encoded["rows"]
    if not levels or len(set(levels)) != len(levels):
        raise ValueError("there is no data set, or one twice")
    if len(rows) != len(levels) or not all(type(n) is int and n >= 0 for n in rows):
        raise ValueError("the rows of the data sets are not one whole number for each")
    adapted = tuple(encoded["adapted"])
    if not set(adapted) <= set(levels):
        raise ValueError("an adapted data set is not among the data sets")
    if not isinstance(encoded["group"], str):
        raise ValueError("the name of the group column is not a text")
    fits = {node: _decode(encoded["fits"][node], levels, rows) for node in dag.nodes}
    for node, fit in fits.items():
        _check(node, fit, dag)
    return Content(
        dag=dag,
        fits=fits,
        score=_float(encoded["score"]),
        group=encoded["group"],
        n=np.array(rows, dtype=np.int64),
        adapted=adapted,
        score_kind=str(encoded["score_kind"]),
        search=str(encoded["search"]),
        trace=tuple(Move(**(move | {"arc": tuple(move["arc"])})) for move in encoded["trace"]),
    )


def _number(value: float) -> float | str:
    """JSON has no infinities."""
    return value if math.isfinite(value) else repr(value)


def _float(value: object) -> float:
    if isinstance(value, str) and value not in {"inf", "-inf", "nan"}:
        raise ValueError(f"{value!r} is not a number")
    if not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _numbers(values: NDArray[np.float64]) -> list[Any]:
    """Nested lists of numbers as JSON has them."""
    if values.ndim == 1:
        return [_number(value) for value in values.tolist()]
    return [_numbers(row) for row in values]


def _floats(values: Any) -> Any:
    return [_floats(row) for row in values] if isinstance(values, list) else _float(values)


def _encode(fit: GaussianFit) -> dict[str, Any]:
    encoded: dict[str, Any] = {}
    for field in fields(fit):
        value = getattr(fit, field.name)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        encoded[field.name] = value
    total, between = uncertainty(fit)
    encoded |= {"total_cov": total.tolist(), "between_cov": between.tolist()}
    del encoded["levels"], encoded["sums"]  # once for all nodes; the rows' sums stay where they are
    del encoded["saved_intervals"]
    encoded["intervals"] = None
    if fit.intervals is not None:
        encoded["intervals"] = {
            name: _numbers(value) for name, value in fit.intervals._asdict().items()
        }
    pooling = fit.pooling
    if not isinstance(pooling, tuple(_POOLINGS.values())):
        raise FileError(
            f"{fit.child!r} has the pooling {pooling!r}, which is not poolbn's own and cannot be "
            "saved"
        )
    encoded["pooling"] = {"kind": type(pooling).__name__} | vars(pooling)
    encoded["status"] = fit.status.value
    encoded["loglik"] = _number(fit.loglik)
    encoded["squares"] = [_number(value) for value in fit.squares.tolist()]
    if fit.residual_shape is not None:
        encoded["residual_shape"] = _number(fit.residual_shape)
    return encoded


def _decode(encoded: dict[str, Any], levels: tuple[Hashable, ...], rows: list[int]) -> GaussianFit:
    known = {field.name for field in fields(GaussianFit)} - {"levels", "sums", "saved_intervals"}
    older = _LATER.isdisjoint(encoded)
    values: dict[str, Any] = {"left_out": ()} | encoded
    intervals = values.pop("intervals", None)
    if older:
        values |= {"rows": rows, "total_cov": None, "between_cov": None}
    if set(values) != known:
        raise ValueError(f"a node has {sorted(set(values) ^ known)} too many or too few")
    if intervals is not None:
        floats = {name: np.array(_floats(value)) for name, value in intervals.items()}
        values["saved_intervals"] = Intervals(**floats)
    values["squares"] = [_float(value) for value in values["squares"]]
    for name in _ARRAYS:
        if values[name] is not None:
            values[name] = np.array(values[name], dtype=np.float64)
    values["parents"] = tuple(values["parents"])
    values["levels"] = levels
    values["counts"] = Counts(*values["counts"])
    values["left_out"] = tuple(values["left_out"])
    if not set(values["left_out"]) <= set(levels):
        raise ValueError("a data set that is left out is not among the data sets")
    kind = dict(values["pooling"])
    values["pooling"] = _POOLINGS[kind.pop("kind")](**kind)
    values["status"] = Status(values["status"])
    values["loglik"] = _float(values["loglik"])
    for name in ("residual_shape", "residual_scale"):
        if values[name] is not None:
            values[name] = _float(values[name])
    fit = GaussianFit(**values)
    if not older:
        return fit
    total, between = covariances_without_rows(fit)
    return replace(fit, total_cov=total, between_cov=between)


def _is_covariance(M: NDArray[np.float64]) -> bool:
    """Whether matrices (..., q, q) without negative variances are covariances, but for rounding."""
    sd = np.sqrt(np.diagonal(M, axis1=-2, axis2=-1))
    sd = np.where(sd > 0, sd, 1.0)
    correlation = M / (sd[..., :, None] * sd[..., None, :])
    symmetric = np.abs(correlation - np.swapaxes(correlation, -2, -1)) < _ROUNDING
    return bool(symmetric.all() and (np.linalg.eigvalsh(correlation) > -_ROUNDING).all())


def _check(node: str, fit: GaussianFit, dag: Dag) -> None:
    F, q = len(fit.levels), len(fit.parents) + 1
    if fit.child != node or fit.parents != dag.parents(node):
        raise ValueError(f"the parents of {node!r} are not those of the graph")
    shapes = {"coef": (F, q), "coef_cov": (F, q, q), "sigma2": (F,), "rows": (F,)}
    shapes |= {"total_cov": (F, q, q), "between_cov": (F, q, q)}
    shapes |= {"fixed": (q,), "fixed_cov": (q, q), "random_cov": (q, q)}
    for name, shape in shapes.items():
        array = getattr(fit, name)
        if array is None and name in {"fixed", "fixed_cov", "random_cov"}:
            continue
        if array is None or array.shape != shape or not np.isfinite(array).all():
            raise ValueError(f"{name} of {node!r} is not a table of {shape} numbers")
        variance = np.diagonal(array, axis1=-2, axis2=-1) if name.endswith("cov") else array
        if name not in {"coef", "fixed"} and (variance < 0).any():
            raise ValueError(f"{name} of {node!r} has a negative variance")
        if name.endswith("cov") and not _is_covariance(array):
            raise ValueError(f"{name} of {node!r} is not a covariance matrix")
    if fit.saved_intervals is not None:
        own = (F, q - 1)
        for name, array in fit.saved_intervals._asdict().items():
            if array.size and array.shape != ((q,) if name.startswith("population") else own):
                raise ValueError(f"{name} of the intervals of {node!r} has a wrong shape")
    for name in ("squares", "df", "effective_df"):
        array = getattr(fit, name)
        if array.shape != (F,) or not np.isfinite(array[~np.isnan(fit.squares)]).all():
            raise ValueError(f"{name} of {node!r} is not a list of {F} numbers")
    if not all(type(count) is int for count in (*fit.counts, fit.n_rows)):
        raise ValueError(f"the number of rows or parameters of {node!r} is not a whole number")
