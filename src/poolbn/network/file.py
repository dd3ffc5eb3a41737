"""The file of a `Network`: versioned JSON with a checksum, checked when it is read.

The checksum is of the content and not of the bytes: another layout of the same JSON has the same.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import FileError, FileWarning
from poolbn.graph.dag import Dag
from poolbn.network.format1 import upgraded, written
from poolbn.nodes.given import Given
from poolbn.nodes.grouplevel import GroupLevel
from poolbn.nodes.intervals import Intervals
from poolbn.nodes.localfit import Counts, GaussianFit, Status
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.nodes.predictive import covariances_without_rows, uncertainty
from poolbn.search.problem import Move
from poolbn.writing import check_levels, open_regular

_FORMAT = "poolbn-network"
_VERSION = 2
_ROUNDING = 1e-6  # in correlations
_KINDS = (Complete, NoPooling, Partial, GroupLevel, Given)
_POOLINGS: dict[str, Any] = {kind.__name__: kind for kind in _KINDS}
_LATER = {"rows", "total_cov", "between_cov"}  # first files of version 2 lack them
_ARRAYS = (
    "coef", "coef_cov", "sigma2", "df", "effective_df", "rows", "total_cov", "between_cov",
    "fixed", "fixed_cov", "random_cov",
)  # fmt: skip
_FIELDS = {
    "format", "version", "nodes", "arcs", "group", "levels", "rows", "adapted", "score",
    "score_kind", "search", "fits", "trace",
}  # fmt: skip
_SOURCES = ("intervention", "simulated", "input")  # of given parameters
_CHECKSUM = "checksum"
_CONSTANTS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}  # not JSON, but some write it
_ANEW = "; copy it again, or save it anew"
_MOST = 2**53  # that a count can be


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
        FileError: `read_network` would refuse it: a data set's name cannot be written, or a number
            is not finite.
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
        "trace": [move._asdict() | {"gain": _number(move.gain)} for move in content["trace"]],
    }
    with _refusing("the network cannot be saved"):
        _decode_network(_parsed(json.dumps(encoded)))
    return json.dumps(encoded | {_CHECKSUM: _checksum(encoded)}, indent=1)


def read_network(path: str | os.PathLike[str]) -> Content:
    """The fields of the network of a file with the text of `network_text`.

    Warns:
        FileWarning: the file has another checksum than its content.

    Raises:
        FileError: the file is not there, damaged, of another kind, or too new.
    """
    shown = repr(os.fspath(path))
    with open_regular(path) as file:
        text = file.read()
    wrong = f"{shown} does not hold a network as it should"
    try:
        with _refusing(wrong, _ANEW):
            content = _parsed(text.decode())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FileError(
            f"{shown} is not JSON, or is cut short ({error}); copy or save it anew"
        ) from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise FileError(f"{shown} is not a network of poolbn; Network.save writes them")
    version = content.get("version")
    if type(version) is not int or version not in (1, _VERSION):
        raise FileError(
            f"{shown} has version {version} of the format, this poolbn reads "
            f"versions 1 to {_VERSION}; update poolbn"
        )
    checksum = content.pop(_CHECKSUM, None)  # older files have none
    changed = checksum is not None and checksum != _checksum(content)
    with _refusing(wrong, _ANEW):
        found = _decode_network(upgraded(content) if version == 1 else content)
    if changed:
        warnings.warn(
            FileWarning(
                f"{shown} was changed after poolbn wrote it: its checksum does not match; if "
                "nobody changed it on purpose, copy or save it anew"
            ),
            stacklevel=3,
        )
    return found


@contextmanager
def _refusing(what: str, remedy: str = "") -> Iterator[None]:
    """What is found to be wrong, with the file and the remedy."""
    try:
        with np.errstate(all="ignore"):  # what overflows is found not to be finite
            yield
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except KeyError as error:
        raise FileError(f"{what}: {error} is missing{remedy}") from error
    except RecursionError as error:
        raise FileError(f"{what}: it is nested too deep{remedy}") from error
    except (ValueError, TypeError, AttributeError, OverflowError, IndexError) as error:
        raise FileError(f"{what}: {error}{remedy}") from error


def _parsed(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once, parse_constant=_CONSTANTS.__getitem__)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no key is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(n for n in names if names.count(n) > 1)!r} is there twice")
    return found


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _decode_network(encoded: dict[str, Any]) -> Content:
    _check_keys("the network", encoded, _FIELDS)
    nodes, arcs, levels, rows, adapted, trace = (
        _list(name, encoded[name])
        for name in ("nodes", "arcs", "levels", "rows", "adapted", "trace")
    )
    dag = Dag(nodes, arcs)
    if not dag.nodes or set(dag.nodes) != set(encoded["fits"]):
        raise ValueError("the nodes of the graph are not those that are fitted")
    check_levels((*levels, *adapted))
    if not levels or len(set(levels)) != len(levels):
        raise ValueError("there is no data set, or one twice")
    if len(rows) != len(levels) or not _are_counts(rows):
        raise ValueError("the rows of the data sets are not one whole number for each")
    if not set(adapted) <= set(levels) or len(set(adapted)) != len(adapted):
        raise ValueError("an adapted data set is not among the data sets, or there twice")
    for name, words in (("group", "the name of the group column"), ("score_kind",) * 2):
        _text(words, encoded[name])
    fits = {}
    for node in dag.nodes:
        fits[node] = _decode(node, encoded["fits"][node], tuple(levels), rows)
        _check(node, fits[node], dag)
    score = _float("score", encoded["score"])
    if math.isnan(score) and not any(isinstance(fit.pooling, Given) for fit in fits.values()):
        raise ValueError("the score is not a number")
    return Content(
        dag=dag,
        fits=fits,
        score=score,
        group=encoded["group"],
        n=np.array(rows, dtype=np.int64),
        adapted=tuple(adapted),
        score_kind=encoded["score_kind"],
        search=_text("search", encoded["search"]),
        trace=tuple(_decode_move(move, dag) for move in trace),
    )


def _decode_move(move: dict[str, Any], dag: Dag) -> Move:
    _check_keys("a move of the trace", move, set(Move._fields))
    arc = _list("arc", move["arc"])
    if len(arc) not in (0, 2) or not all(node in dag.nodes for node in arc):
        raise ValueError(f"{arc!r} in the trace is no arc")
    if not _are_counts([move["fits"], move["spared"]]):
        raise ValueError("the fits of a move are not whole numbers")
    kind, gain = _text("kind", move["kind"]), _float("gain", move["gain"])
    return Move(kind, tuple(arc), gain, move["fits"], move["spared"])


def _check_keys(what: str, found: Any, known: set[str]) -> None:
    if not isinstance(found, dict):
        raise ValueError(f"{what} is not an object")
    for words, names in (("lacks", known - set(found)), ("has unknown", set(found) - known)):
        if names:
            raise ValueError(f"{what} {words} {', '.join(map(repr, sorted(names)))}")


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text")
    return value


def _are_counts(values: list[Any]) -> bool:
    return all(type(value) is int and 0 <= value <= _MOST for value in values)


def _number(value: float) -> float | str:
    """JSON has no infinities."""
    return value if math.isfinite(value) else repr(value)


def _float(name: str, value: object) -> float:
    if type(value) in (int, float) or value in ("inf", "-inf", "nan"):
        return float(value)  # type: ignore[arg-type]
    raise ValueError(f"{name} is not a number")


def _numbers(values: NDArray[np.float64]) -> list[Any]:
    """Nested lists of numbers as JSON has them."""
    if values.ndim == 1:
        return [_number(value) for value in values.tolist()]
    return [_numbers(row) for row in values]


def _floats(name: str, values: Any) -> Any:
    """Nested lists of numbers, of which some may be texts."""
    if isinstance(values, list):
        return [_floats(name, row) for row in values]
    return _float(name, values)


def _array(name: str, values: Any) -> NDArray[np.float64]:
    """Nested lists of finite numbers."""
    found = np.array(_list(name, values))
    if found.dtype.kind not in "fi" or not np.isfinite(found).all():
        raise ValueError(f"{name} has something else than finite numbers")
    return found.astype(np.float64)


# Data sets are there once for all nodes, intervals under another name; the sums of rows stay where
# they are.
_NOT_KEPT = {"levels", "sums", "saved_intervals", "later"}


def _encode(fit: GaussianFit) -> dict[str, Any]:
    encoded: dict[str, Any] = {}
    for name in (field.name for field in fields(fit) if field.name not in _NOT_KEPT):
        value = getattr(fit, name)
        encoded[name] = value.tolist() if isinstance(value, np.ndarray) else value
    total, between = uncertainty(fit)
    encoded |= {"total_cov": total.tolist(), "between_cov": between.tolist()}
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
    encoded["pooling"] = written(pooling)
    encoded["status"] = fit.status.value
    encoded["loglik"] = _number(fit.loglik)
    encoded["squares"] = [_number(value) for value in fit.squares.tolist()]
    if fit.residual_shape is not None:
        encoded["residual_shape"] = _number(fit.residual_shape)
    return encoded


def _decode(
    node: str, encoded: dict[str, Any], levels: tuple[Hashable, ...], rows: list[int]
) -> GaussianFit:
    known = {field.name for field in fields(GaussianFit)} - _NOT_KEPT
    if not isinstance(encoded, dict):
        raise ValueError(f"{node!r} is not an object")
    older = _LATER.isdisjoint(encoded)
    values: dict[str, Any] = {"left_out": []} | encoded
    intervals = values.pop("intervals", None)
    if older:
        values |= {"rows": rows, "total_cov": None, "between_cov": None}
    _check_keys(f"node {node!r}", values, known)

    def of(name: str) -> str:
        return f"{name} of {node!r}"

    if intervals is not None:
        _check_keys(of("intervals"), intervals, set(Intervals._fields))
        floats = {n: np.array(_floats(of(n), value)) for n, value in intervals.items()}
        values["saved_intervals"] = Intervals(**floats)
    values["squares"] = np.array(_floats(of("squares"), values["squares"]))
    for name in _ARRAYS:
        if values[name] is not None:
            values[name] = _array(of(name), values[name])
    for name in ("parents", "left_out", "counts"):
        values[name] = tuple(_list(of(name), values[name]))
    values["levels"] = levels
    if len(values["counts"]) != len(Counts._fields):
        raise ValueError(f"{of('counts')} is not a list of 3 numbers")
    values["counts"] = Counts(*values["counts"])
    check_levels(values["left_out"])
    if not set(values["left_out"]) <= set(levels):
        raise ValueError("a data set that is left out is not among the data sets")
    values["pooling"] = _pooling(of("pooling"), values["pooling"])
    values["status"] = Status(values["status"])
    _text(of("detail"), values["detail"])
    values["loglik"] = _float(of("loglik"), values["loglik"])
    for name in ("residual_shape", "residual_scale"):
        if values[name] is not None:
            values[name] = _float(of(name), values[name])
    fit = GaussianFit(**values)
    if not older:
        return fit
    total, between = covariances_without_rows(fit)
    return replace(fit, total_cov=total, between_cov=between)


def _pooling(name: str, encoded: Any) -> Any:
    if not isinstance(encoded, dict) or encoded.get("kind") not in list(_POOLINGS):
        raise ValueError(f"{name} is of no kind that poolbn has")
    kind = _POOLINGS[encoded["kind"]]
    own = {field.name for field in fields(kind)} - {"discrete"}  # of no use to continuous nodes
    _check_keys(name, encoded, {"kind", *own})
    given = {key: value for key, value in encoded.items() if key != "kind"}
    if kind is Given and given["source"] not in _SOURCES:
        raise ValueError(f"{name} has the source {given['source']!r}")
    return kind(**given)


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
    wrong = _wrong(fit)
    if wrong:
        raise ValueError(f"{wrong} of {node!r}")


def _wrong(fit: GaussianFit) -> str:
    """What of a fit's single values cannot be, or nothing."""
    shape, scale = fit.residual_shape, fit.residual_scale
    given = isinstance(fit.pooling, Given)
    checks = (
        ((fit.fixed is None) != (fit.fixed_cov is None), "one of fixed and fixed_cov is missing"),
        ((shape is None) != (scale is None), "residual_shape or residual_scale is missing"),
        (shape is not None and not shape > 0, "there is no positive residual_shape"),
        (scale is not None and not 0 < scale < math.inf, "there is no positive residual_scale"),
        (math.isnan(fit.loglik) and not given, "there is no loglik"),
        (type(fit.unbiased) is not bool, "there is no true or false in unbiased"),
        (not _are_counts([*fit.counts, fit.n_rows]), "a count is not a whole number"),
    )
    return next((words for wrong, words in checks if wrong), "")
