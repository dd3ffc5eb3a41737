"""Fits in the file of a network: what is written, and read with care."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import FileError
from poolbn.moments.indicators import labels_of
from poolbn.nodes.fields import (
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
from poolbn.nodes.localfit import Counts, Given, GroupLevel, LocalFit, Status
from poolbn.nodes.logeffects import LogEffects
from poolbn.nodes.logfit import LogFit
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.nodes.predictive import uncertainty
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit
from poolbn.tables.kinds import kind_named, known_kinds
from poolbn.writing import check_levels

_ROUNDING = 1e-6  # in correlations, and in sums of probabilities
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


def _models() -> dict[str, type[LocalFit]]:
    """What models are called in a file; those of registered kinds as the kind."""
    own = {name: fit for name in known_kinds() if (fit := kind_named(name).fit) is not None}
    models: dict[str, type[LocalFit]] = {"table": TabularFit, "regression": RegressionFit}
    return models | own


def encode(fit: LocalFit) -> dict[str, Any]:
    """A fit as JSON has it.

    Raises:
        FileError: its pooling or its model is neither poolbn's own nor of a registered kind.
    """
    return encode_linear(fit) if isinstance(fit, GaussianFit) else encode_other(fit)


def decode(
    node: str,
    encoded: Any,
    levels: tuple[Hashable, ...],
    given: Mapping[str, tuple[str, ...]],
) -> LocalFit:
    """A fit from what `encode` made of it, checked.

    Args:
        node: which.
        encoded: the fit, as JSON has it.
        levels: the data sets.
        given: the parents that the graph has, and the levels of each.
    """
    if isinstance(encoded, dict) and "model" in encoded:
        return decode_other(node, encoded, levels, given)
    fit = decode_linear(node, encoded, levels, given)
    check_linear(node, fit)
    return fit


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


def encode_other(fit: LocalFit) -> dict[str, Any]:
    """As JSON has it."""
    name = next((name for name, kind in _models().items() if isinstance(fit, kind)), None)
    if name is None or not isinstance(fit.pooling, Complete | NoPooling | Partial | Given):
        raise FileError(f"{fit.child!r} has a model that is not poolbn's own and cannot be saved")
    encoded: dict[str, Any] = {"model": name}
    fit = fit.with_all() if isinstance(fit, LogFit) else fit
    for field in fields(fit):
        value = getattr(fit, field.name)
        if isinstance(value, LogEffects):
            value = {name: numbers(own) for name, own in value._asdict().items()}
        if isinstance(value, np.ndarray):
            value = numbers(value)
        if isinstance(value, LocalFit):
            value = encode(value)
        encoded[field.name] = number(value) if isinstance(value, float) else value
    del encoded["levels"], encoded["group"]  # there once for all nodes
    if isinstance(fit, LogFit):
        del encoded["later"]
        encoded["effects"] = encoded.pop("saved_effects")
    if isinstance(fit, RegressionFit):
        del encoded["given"]
        encoded["columns"] = fit.columns
    encoded["pooling"] = {"kind": type(fit.pooling).__name__} | vars(fit.pooling)
    encoded["status"] = fit.status.value
    return encoded


def decode_other(
    node: str,
    encoded: dict[str, Any],
    levels: tuple[Hashable, ...],
    given: Mapping[str, tuple[str, ...]],
) -> LocalFit:
    """A fit from what `encode_other` made of it, checked; see `decode`."""
    if encoded["model"] not in list(_models()):
        raise ValueError(f"the model of {node!r} is of no kind that poolbn has")
    kind = _models()[encoded["model"]]
    own = {field.name for field in fields(kind)} - {"levels", "group", "later", "saved_effects"}
    own |= {"columns"} if kind is RegressionFit else set()
    own -= {"given"} if kind is RegressionFit else set()
    effects = {"effects"} if issubclass(kind, LogFit) else set()
    check_keys(f"node {node!r}", encoded, own | {"model"} | effects)
    values: dict[str, Any] = {name: encoded[name] for name in own} | {"levels": levels}

    def of(name: str) -> str:
        return f"{name} of {node!r}"

    for name in ("child", "detail"):
        as_text(of(name), values[name])
    values["loglik"] = as_float(of("loglik"), values["loglik"])
    values["status"] = Status(values["status"])
    values["pooling"] = decode_pooling(of("pooling"), values["pooling"], discrete=True)
    for name in ("parents", "left_out", "categories"):
        values[name] = tuple(as_list(of(name), values[name]))
    counts = as_list(of("counts"), values["counts"])
    if len(counts) != len(Counts._fields) or not are_counts([*counts, values["n_rows"]]):
        raise ValueError(f"{of('counts')} or its rows are not whole numbers")
    values["counts"] = Counts(*counts)
    if not values["n_rows"] and not isinstance(values["pooling"], Given):
        raise ValueError(f"there is no row in n_rows of {node!r}")
    if values["child"] != node or values["parents"] != tuple(given):
        raise ValueError(f"the parents of {node!r} are not those of the graph")
    check_left_out(values["left_out"], levels)
    for text in values["categories"]:
        as_text(of("categories"), text)
    _check_given(of, values, tuple(given.values()))
    if not issubclass(kind, LogFit):
        inner = {name: value for name, value in values.items() if isinstance(value, dict)}
        fits = {name: decode(node, value, levels, given) for name, value in inner.items()}
        return kind(**{name: _value(of(name), value) for name, value in values.items()} | fits)
    fit = _table(of, values) if kind is TabularFit else _regression(of, values)
    return replace(fit, saved_effects=_effects(of("effects"), encoded["effects"], fit))


def _value(name: str, value: Any) -> Any:
    """A parameter of a registered kind's fit: numbers in lists are an array."""
    if isinstance(value, list):
        return as_array(name, value)
    return as_float(name, value) if value in ("inf", "-inf", "nan") else value


def categories_in(node: str, encoded: Any) -> tuple[str, ...]:
    """The levels of a node, from what its fit is encoded as; none where it is not discrete."""
    name = f"categories of {node!r}"
    found = encoded.get("categories", []) if isinstance(encoded, dict) else []
    return tuple(as_text(name, text) for text in as_list(name, found))


def _check_given(of: Any, values: dict[str, Any], given: tuple[tuple[str, ...], ...]) -> None:
    """Raise where a fit has other levels of its parents than these have; else keep these."""
    name = "columns" if "columns" in values else "given"
    own = as_list(of(name), values.pop(name))
    if name == "given":
        own = [tuple(as_list(of(name), each)) for each in own]
        if len(own) != len(given):
            raise ValueError(f"{of('given')} does not have the levels of each parent")
    if tuple(own) != (given if name == "given" else labels_of(values["parents"], given)):
        raise ValueError(f"{values['child']!r} has other levels of its parents than these have")
    values["given"] = given


def _table(of: Any, values: dict[str, Any]) -> TabularFit:
    values["concentration"] = as_float(of("concentration"), values["concentration"])
    if not values["concentration"] >= 0:
        raise ValueError(f"{of('concentration')} is negative")
    C, K = int(np.prod([len(each) for each in values["given"]])), len(values["categories"])
    shapes = {"population": (C, K), "probabilities": (len(values["levels"]), C, K)}
    for name, shape in shapes.items():
        found = _shaped(of(name), values[name], shape)
        if (found < 0).any() or (np.abs(found.sum(axis=-1) - 1) > _ROUNDING).any():
            raise ValueError(f"{of(name)} has something else than probabilities")
        values[name] = found
    return TabularFit(**values)


def _regression(of: Any, values: dict[str, Any]) -> RegressionFit:
    F, C, q = (
        len(values["levels"]),
        max(len(values["categories"]) - 1, 1),
        len(labels_of(values["parents"], values["given"])) + 1,
    )
    shapes = {"coef": (F, C, q), "coef_cov": (F, C * q, C * q)}
    optional = {"fixed": (C, q), "fixed_cov": (C * q, C * q), "random_cov": (q, q)}
    for name, shape in (shapes | optional).items():
        if values[name] is not None or name in shapes:
            values[name] = _shaped(of(name), values[name], shape)
            if name.endswith("cov"):
                check_covariance(of(name), values[name])
    values["dispersion"] = as_float(of("dispersion"), values["dispersion"])
    if not values["dispersion"] > 0:
        raise ValueError(f"{of('dispersion')} is not positive")
    return RegressionFit(**values)


def _effects(name: str, encoded: Any, fit: TabularFit | RegressionFit) -> LogEffects | None:
    """How sure effects are, as a fit has it."""
    if encoded is None:
        return None
    if isinstance(encoded, dict) and "middle" in encoded:
        encoded = _around_estimates(name, encoded)
    check_keys(name, encoded, set(LogEffects._fields))
    shapes = {field: value.shape for field, value in fit.effects._asdict().items()}
    shapes["equal"] = (len(fit.parents), 2)
    found = {field: np.array(floats(name, encoded[field])) for field in LogEffects._fields}
    if isinstance(fit, RegressionFit) and found["level_se"].size:
        F, C, q = fit.coef.shape
        shapes |= {"at": (q - 1,), "level_se": (F, C)}
    else:
        found["level_se"] = found["level_se"].reshape(shapes["level_se"])
    for field, shape in shapes.items():
        if found[field].shape != shape:
            raise ValueError(f"{field} in {name} is not a table of {shape} numbers")
        if (
            field in {"se", "df", "between_sd", "new_se", "own_se", "level_se"}
            and (found[field] < 0).any()
        ):
            raise ValueError(f"{field} in {name} is negative")
    return LogEffects(**found)


def _around_estimates(name: str, encoded: dict[str, Any]) -> dict[str, Any]:
    """Effects of older versions, whose intervals are not around the estimates of data sets."""
    found = {"own": [], "own_se": [], "se": [], "between_sd": []} | encoded
    middle, own, own_se, se, between = (
        np.array(floats(name, found[field]))
        for field in ("middle", "own", "own_se", "se", "between_sd")
    )
    if not middle.shape == own.shape == own_se.shape or se.shape != between.shape:
        raise ValueError(f"{name} has tables of different shapes")
    found["own_se"] = np.hypot(own_se, middle - own).tolist()
    found |= {"new_se": np.hypot(se, between).tolist(), "at": [], "level_se": []}
    del found["middle"]
    return found


def _shaped(name: str, values: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    found = as_array(name, values)
    if found.shape != shape:
        raise ValueError(f"{name} is not a table of {shape} numbers")
    return found
