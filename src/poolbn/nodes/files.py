"""Fits in the file of a network: what is written, and read with care."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import FileError
from poolbn.moments.indicators import labels_of
from poolbn.nodes.conditional import ConditionalFit
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.localfit import Counts, Given, GroupLevel, LocalFit, Status
from poolbn.nodes.logfit import LogEffects, LogFit
from poolbn.nodes.ordinal import OrdinalFit
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.nodes.predictive import uncertainty
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit
from poolbn.nodes.terms import Intervals
from poolbn.tables.kinds import kind_named, known_kinds
from poolbn.writing import check_levels

_MOST = 2**53  # that a count can be
_LARGEST = 1e300  # of numbers that are computed with
_ROUNDING = 1e-6  # in correlations, and in sums of probabilities
_KINDS = (Complete, NoPooling, Partial, GroupLevel, Given)
_POOLINGS: dict[str, Any] = {kind.__name__: kind for kind in _KINDS}
_SOURCES = ("intervention", "simulated", "input")  # of given parameters
# Data sets are there once for all nodes, intervals and effects under other names.
_NOT_KEPT = {"levels", "group", "unit", "later", "saved_intervals", "saved_effects"}
_WITHOUT_UNITS = 3  # kinds of `Counts` that a fit has where there are no units
_EXPERIMENTS = ("was_set", "was_changed")
_OF_UNITS = {"unit_share", "unit_sd"}  # which fits have where there are units inside data sets
_OPTIONAL = {"fixed", "fixed_cov", "random_cov", *_OF_UNITS}  # which some poolings do not have
_NOT_NEGATIVE = {"sigma2", "rows", "squares", *_OF_UNITS}

# Values of JSON files, checked one by one


def check_keys(what: str, found: Any, known: set[str]) -> None:
    """Raise for an object that lacks a key or has another."""
    if not isinstance(found, dict):
        raise ValueError(f"{what} is not an object")
    for words, names in (("lacks", known - set(found)), ("has unknown", set(found) - known)):
        if names:
            raise ValueError(f"{what} {words} {', '.join(map(repr, sorted(names)))}")


def as_list(name: str, value: Any) -> list[Any]:
    """A list, or an error."""
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    return value


def as_text(name: str, value: Any) -> str:
    """A text, or an error."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text")
    return value


def are_counts(values: list[Any]) -> bool:
    """Whether all are whole numbers from 0."""
    return all(type(value) is int and 0 <= value <= _MOST for value in values)


def number(value: float) -> float | str:
    """JSON has no infinities."""
    return value if math.isfinite(value) else repr(value)


def as_float(name: str, value: object) -> float:
    """A number, or an error."""
    if type(value) in (int, float) or value in ("inf", "-inf", "nan"):
        return float(value)  # type: ignore[arg-type]
    raise ValueError(f"{name} is not a number")


def _numbers(values: NDArray[np.float64]) -> list[Any]:
    """Nested lists of numbers as JSON has them."""
    if values.ndim == 1:
        return [number(value) for value in values.tolist()]
    return [_numbers(row) for row in values]


def _floats(name: str, values: Any) -> NDArray[np.float64]:
    """From nested lists of numbers, of which some may be texts."""

    def each(values: Any) -> Any:
        return list(map(each, values)) if isinstance(values, list) else as_float(name, values)

    return np.array(each(values))


def _array(name: str, values: Any, shape: tuple[int, ...] | None = None) -> NDArray[np.float64]:
    """From nested lists of finite numbers."""
    found = np.array(as_list(name, values))
    if found.dtype.kind not in "fi" or not np.isfinite(found).all():
        raise ValueError(f"{name} has something else than finite numbers")
    if (np.abs(found.astype(np.float64)) > _LARGEST).any():
        raise ValueError(f"{name} has a number beyond {_LARGEST:g}")
    if shape is not None and found.shape != shape:
        raise ValueError(f"{name} is not a table of {shape} numbers")
    return found.astype(np.float64)


def _check_covariance(name: str, M: NDArray[np.float64]) -> None:
    """Raise for matrices (..., q, q) that are no covariances, but for rounding."""
    if (np.diagonal(M, axis1=-2, axis2=-1) < 0).any():
        raise ValueError(f"{name} has a negative variance")
    sd = np.sqrt(np.diagonal(M, axis1=-2, axis2=-1))
    sd = np.where(sd > 0, sd, 1.0)
    correlation = M / (sd[..., :, None] * sd[..., None, :])
    symmetric = np.abs(correlation - np.swapaxes(correlation, -2, -1)) < _ROUNDING
    if not (symmetric.all() and (np.linalg.eigvalsh(correlation) > -_ROUNDING).all()):
        raise ValueError(f"{name} is not a covariance matrix")


# Fits


def _models() -> dict[str, type[LocalFit]]:
    """What models are called in a file; those of registered kinds as the kind."""
    own = {name: fit for name in known_kinds() if (fit := kind_named(name).fit) is not None}
    models: dict[str, type[LocalFit]] = {"ordinal": OrdinalFit, "table": TabularFit}
    models["conditional"] = ConditionalFit
    return models | {"regression": RegressionFit} | own


def _keys(kind: type[LocalFit]) -> set[str]:
    """What a file has of a fit."""
    own = {field.name for field in fields(kind)} - _NOT_KEPT
    if kind is GaussianFit:  # the sums of rows stay where they are; parents are columns
        return own - {"sums", "given", "categories"} | {"intervals"}
    if issubclass(kind, RegressionFit):
        own = own - {"given"} | {"columns"}
    return own | {"model"} | ({"effects"} if issubclass(kind, LogFit) else set())


def encode(fit: LocalFit) -> dict[str, Any]:
    """A fit as JSON has it.

    Raises:
        FileError: its pooling or its model is neither poolbn's own nor of a registered kind.
    """
    model = next((name for name, kind in _models().items() if isinstance(fit, kind)), None)
    if model is None and not isinstance(fit, GaussianFit):
        raise FileError(f"{fit.child!r} has a model that is not poolbn's own and cannot be saved")
    if not isinstance(fit.pooling, _KINDS):
        raise FileError(
            f"{fit.child!r} has the pooling {fit.pooling!r}, which is not poolbn's own and cannot "
            "be saved"
        )
    fit = fit.with_all() if isinstance(fit, LogFit) else fit
    told: dict[str, Any] = {"model": model} | {of.name: getattr(fit, of.name) for of in fields(fit)}
    if isinstance(fit, GaussianFit):
        told["total_cov"], told["between_cov"] = uncertainty(fit)
        told |= {"parents": fit.columns, "intervals": fit.intervals}
    elif isinstance(fit, LogFit):
        told |= {"effects": fit.saved_effects, "columns": fit.columns}
    units = fit.counts.units or fit.counts.own_units
    told["counts"] = list(fit.counts if units else fit.counts[:_WITHOUT_UNITS])
    told["pooling"] = written(fit.pooling, discrete=_says_discrete(type(fit)))
    kept = _keys(type(fit))
    kept -= {name for name in _OF_UNITS if told.get(name) is None}
    kept -= {name for name in _EXPERIMENTS if not getattr(fit, name)}
    return {name: _encoded(value) for name, value in told.items() if name in kept}


def _encoded(value: Any) -> Any:
    if isinstance(value, Intervals | LogEffects):
        return {name: _numbers(own) for name, own in value._asdict().items()}
    if isinstance(value, np.ndarray):
        return _numbers(value)
    if isinstance(value, LocalFit):
        return encode(value)
    if isinstance(value, tuple):
        return list(map(_encoded, value))
    if isinstance(value, Status):
        return value.value
    return number(value) if isinstance(value, float) else value


def _says_discrete(kind: type[LocalFit]) -> bool:
    """Whether a fit's pooling says how discrete nodes are modelled."""
    return kind not in (GaussianFit, ConditionalFit)


def written(pooling: object, *, discrete: bool = False) -> dict[str, Any]:
    """A pooling as a file has it; how discrete nodes are modelled is left out of others'.

    And how continuous ones are: their fits say it.
    """
    own = dict(vars(pooling))
    own.pop("continuous", None)
    if not discrete:
        own.pop("discrete", None)
    return {"kind": type(pooling).__name__} | own


def decode(
    node: str, encoded: Any, levels: tuple[Hashable, ...], given: Mapping[str, tuple[str, ...]]
) -> LocalFit:
    """A fit from what `encode` made of it, checked.

    Args:
        node: which.
        encoded: the fit, as JSON has it.
        levels: the data sets.
        given: the parents that the graph has, and the levels of each.
    """

    def of(name: str) -> str:
        return f"{name} of {node!r}"

    if not isinstance(encoded, dict):
        raise ValueError(f"{node!r} is not an object")
    kind: type[LocalFit] = GaussianFit
    if "model" in encoded:
        if encoded["model"] not in list(_models()):
            raise ValueError(f"the model of {node!r} is of no kind that poolbn has")
        kind = _models()[encoded["model"]]
    linear = kind is GaussianFit
    optional: dict[str, Any] = {"left_out": [], "intervals": None, "unit_share": None}
    if not linear:
        optional = {"unit_sd": None} if issubclass(kind, RegressionFit) else {}
    values = {name: list[Any]() for name in _EXPERIMENTS} | optional | encoded
    check_keys(f"node {node!r}", values, _keys(kind))
    values.pop("model", None)
    _check_parents(of, values, node, given, linear=linear)
    for name in ("child", "detail"):
        as_text(of(name), values[name])
    for name in ("left_out", *_EXPERIMENTS, "counts", *["categories"] * (not linear)):
        values[name] = tuple(as_list(of(name), values[name]))
    out = (*values["left_out"], *(level for name in _EXPERIMENTS for level in values[name]))
    check_levels(out)
    if not set(out) < set(levels):
        raise ValueError("a data set that is left out is not among the data sets")
    _check_categories(of, values)
    values["pooling"] = _decoded_pooling(
        of("pooling"), values["pooling"], discrete=_says_discrete(kind)
    )
    values["status"], values["levels"] = Status(values["status"]), levels
    if len(values["counts"]) not in (_WITHOUT_UNITS, len(Counts._fields)):
        raise ValueError(f"{of('counts')} is not a list of 3 or 5 numbers")
    if not are_counts([*values["counts"], values["n_rows"]]):
        raise ValueError(f"a count is not a whole number of {node!r}")
    values["counts"] = Counts(*values["counts"])
    if not values["n_rows"] and not isinstance(values["pooling"], Given):
        raise ValueError(f"there is no row in n_rows of {node!r}")
    values["loglik"] = as_float(of("loglik"), values["loglik"])
    if not (linear or issubclass(kind, LogFit)):
        of_parts = _conditional if kind is ConditionalFit else partial(_of_own_kind, kind)
        return of_parts(of, node, values)
    _check_arrays(of, values, _shapes(kind, values))
    return _linear(of, values) if linear else _logarithmic(of, kind, values)


def _check_categories(of: Callable[[str], str], values: dict[str, Any]) -> None:
    """Raise for levels that are no texts, or of which rows of an ordinal node have others."""
    for text in values.get("categories", ()):
        as_text(of("categories"), text)
    if "seen" in values:
        seen = values["seen"] = tuple(as_list(of("seen"), values["seen"]))
        if len(seen) < 2 or seen != tuple(text for text in values["categories"] if text in seen):
            raise ValueError(f"{of('seen')} is not two or more of the levels in their order")


def _check_parents(
    of: Callable[[str], str],
    values: dict[str, Any],
    node: str,
    given: Mapping[str, tuple[str, ...]],
    *,
    linear: bool,
) -> None:
    """Raise where a fit has other parents, or other levels of these; else it has these."""
    parents, levels = tuple(given), tuple(given.values())
    columns = labels_of(parents, levels)
    own = tuple(as_list(of("parents"), values["parents"]))
    if values["child"] != node or own != (columns if linear else parents):
        raise ValueError(f"the parents of {node!r} are not those of the graph")
    known = True
    if "columns" in values:
        known = tuple(as_list(of("columns"), values.pop("columns"))) == columns
    elif not linear:
        told = [tuple(as_list(of("given"), each)) for each in as_list(of("given"), values["given"])]
        if len(told) != len(levels):
            raise ValueError(f"{of('given')} does not have the levels of each parent")
        known = tuple(told) == levels
    if not known:
        raise ValueError(f"{node!r} has other levels of its parents than these have")
    values |= {"parents": parents, "given": levels}


def _shapes(kind: type[LocalFit], values: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Of the arrays of a fit."""
    F, q = len(values["levels"]), len(labels_of(values["parents"], values["given"])) + 1
    if kind is TabularFit:
        C, K = math.prod(map(len, values["given"])), len(values["categories"])
        return {"population": (C, K), "probabilities": (F, C, K)}
    if issubclass(kind, RegressionFit):
        C = max(len(values["categories"]) - 1, 1)
        if kind is OrdinalFit:
            C, q = 1, q + len(values["seen"]) - 2
        shapes: dict[str, tuple[int, ...]] = {"coef": (F, C, q), "coef_cov": (F, C * q, C * q)}
        shapes |= {"fixed": (C, q), "fixed_cov": (C * q, C * q), "random_cov": (q, q)}
        return shapes | {"unit_sd": (F,)}
    shapes = {"coef": (F, q), "fixed": (q,), "fixed_cov": (q, q), "random_cov": (q, q)}
    shapes |= dict.fromkeys(("coef_cov", "total_cov", "between_cov"), (F, q, q))
    each = ("sigma2", "rows", "squares", "df", "effective_df", "unit_share")
    return shapes | dict.fromkeys(each, (F,))


def _check_arrays(
    of: Callable[[str], str], values: dict[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> None:
    """Raise for arrays that cannot be; else those in lists are arrays."""
    for name, shape in shapes.items():
        if values[name] is None and name in _OPTIONAL:
            continue
        array = values[name] = _array(of(name), values[name], shape)
        if name.endswith("cov"):
            _check_covariance(of(name), array)
        if name in _NOT_NEGATIVE and (array < 0).any():
            raise ValueError(f"{of(name)} has a negative number")


def _value(name: str, value: Any) -> Any:
    """A parameter of a registered kind's fit: numbers in lists are an array."""
    if isinstance(value, list):
        return _array(name, value)
    return as_float(name, value) if value in ("inf", "-inf", "nan") else value


def _decoded_pooling(name: str, encoded: Any, *, discrete: bool) -> Any:
    """A pooling from what `written` made of it."""
    if not isinstance(encoded, dict) or encoded.get("kind") not in list(_POOLINGS):
        raise ValueError(f"{name} is of no kind that poolbn has")
    kind = _POOLINGS[encoded["kind"]]
    own = {of.name for of in fields(kind)} - {"continuous", *([] if discrete else ["discrete"])}
    check_keys(name, encoded, {"kind", *own})
    given = {key: value for key, value in encoded.items() if key != "kind"}
    if kind is Given and given["source"] not in _SOURCES:
        raise ValueError(f"{name} has the source {given['source']!r}")
    return kind(**given)


def categories_in(node: str, encoded: Any) -> tuple[str, ...]:
    """The levels of a node, from what its fit is encoded as; none where it is not discrete."""
    name = f"categories of {node!r}"
    found = encoded.get("categories", []) if isinstance(encoded, dict) else []
    return tuple(as_text(name, text) for text in as_list(name, found))


def _of_own_kind(
    kind: type[LocalFit], of: Callable[[str], str], node: str, values: dict[str, Any]
) -> LocalFit:
    """A fit of a registered kind."""
    levels, given = values["levels"], dict(zip(values["parents"], values["given"], strict=True))
    inner = {name: value for name, value in values.items() if isinstance(value, dict)}
    fits = {name: decode(node, value, levels, given) for name, value in inner.items()}
    return kind(**{name: _value(of(name), value) for name, value in values.items()} | fits)


# Linear regressions


def _conditional(of: Callable[[str], str], node: str, values: dict[str, Any]) -> ConditionalFit:
    """A regression for each configuration."""
    pairs = list(zip(values["parents"], values["given"], strict=True))
    others: dict[str, tuple[str, ...]] = {name: own for name, own in pairs if not own}
    size = math.prod(len(own) for _, own in pairs if own)
    parts, unseen = as_list(of("parts"), values["parts"]), as_list(of("unseen"), values["unseen"])
    if len(others) == len(pairs) or not len(parts) == len(unseen) == size:
        raise ValueError(f"{of('parts')} does not have a regression for each configuration")
    if any(type(none) is not bool for none in unseen):
        raise ValueError(f"there is no true or false in {of('unseen')}")
    if not isinstance(values["pooling"], Complete | NoPooling | Partial):
        raise ValueError(f"{of('pooling')} is none that has regressions for configurations")
    found = [decode(node, part, values["levels"], others) for part in parts]
    regressions = tuple(fit for fit in found if isinstance(fit, GaussianFit))
    if len(regressions) < size:
        raise ValueError(f"{of('parts')} has something else than linear regressions")
    values["pooling"] = replace(values["pooling"], continuous="conditional")
    values["at"] = _array(of("at"), values["at"], (len(others),))
    return ConditionalFit(**values | {"parts": regressions, "unseen": tuple(unseen)})


def _linear(of: Callable[[str], str], values: dict[str, Any]) -> GaussianFit:
    intervals = values.pop("intervals")
    if intervals is not None:
        values["saved_intervals"] = _intervals(of("intervals"), intervals, values["coef"])
    for name in ("residual_shape", "residual_scale"):
        if values[name] is not None:
            values[name] = as_float(of(name), values[name])
    fit = GaussianFit(**values)
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
        (
            fit.unit_share is not None and (fit.unit_share > 1).any(),
            "there is a share above 1 in unit_share",
        ),
        (type(fit.unbiased) is not bool, "there is no true or false in unbiased"),
        (
            fit.status.ok and not given and not between and not fit.sigma2.all(),
            "there is no positive sigma2",
        ),
    )
    for wrong, words in checks:
        if wrong:
            raise ValueError(f"{words} of {fit.child!r}")
    return fit


def _intervals(name: str, encoded: Any, coef: NDArray[np.float64]) -> Intervals:
    encoded = {"new_se": [], "at": []} | encoded
    center = encoded.pop("center", None)
    check_keys(name, encoded, set(Intervals._fields))
    node, (F, q) = name.removeprefix("intervals of "), coef.shape
    found = {field: _floats(f"{field} of {node}", value) for field, value in encoded.items()}
    if center is not None:  # of older versions: around other values than the estimates
        off = _floats(f"center of {node}", center) - coef[:, 1:]
        none = np.full((F, 1), math.nan)
        found["se"] = np.hstack([none, np.hypot(found["se"], off)])
        found["df"] = np.hstack([none, found["df"]])
    shapes = {"at": (q - 1,), "se": (F, q), "df": (F, q)}
    for field, array in found.items():
        unknown = field in {"at", "new_se"} and not array.size  # as in older versions
        if array.shape != shapes.get(field, (q,)) and not unknown:
            raise ValueError(f"{field} of the {name} has a wrong shape")
        if field != "at" and (array < 0).any():
            raise ValueError(f"{field} of the {name} has a negative number")
    return Intervals(**found)


# Tables and regressions from rows


def _logarithmic(
    of: Callable[[str], str], kind: type[LogFit] | type[LocalFit], values: dict[str, Any]
) -> LogFit:
    effects = values.pop("effects")
    for name in {"concentration", "dispersion"} & set(values):
        values[name] = as_float(of(name), values[name])
        if not (values[name] > 0 or (name == "concentration" and values[name] == 0)):
            raise ValueError(f"{of(name)} is not positive")
    for name in {"population", "probabilities"} & set(values):
        p = values[name]
        if (p < 0).any() or (np.abs(p.sum(axis=-1) - 1) > _ROUNDING).any():
            raise ValueError(f"{of(name)} has something else than probabilities")
    fit = kind(**values)
    assert isinstance(fit, LogFit)
    return replace(fit, saved_effects=_effects(of("effects"), effects, fit))


def _effects(name: str, encoded: Any, fit: LogFit) -> LogEffects | None:
    """How sure effects are, as a fit has it."""
    if encoded is None:
        return None
    if isinstance(encoded, dict) and "middle" in encoded:
        encoded = _around_estimates(name, encoded)
    check_keys(name, encoded, set(LogEffects._fields))
    shapes = {field: value.shape for field, value in fit.effects._asdict().items()}
    shapes["equal"] = (len(fit.parents), 2)
    found = {field: _floats(name, encoded[field]) for field in LogEffects._fields}
    if isinstance(fit, RegressionFit) and found["level_se"].size:
        F, C, q = fit.coef.shape
        shapes |= {"at": (q - 1,), "level_se": (F, C)}
    else:
        found["level_se"] = found["level_se"].reshape(shapes["level_se"])
    for field, shape in shapes.items():
        if found[field].shape != shape:
            raise ValueError(f"{field} in {name} is not a table of {shape} numbers")
        positive = field in {"se", "df", "between_sd", "new_se", "own_se", "level_se"}
        if positive and (found[field] < 0).any():
            raise ValueError(f"{field} in {name} is negative")
    return LogEffects(**found)


def _around_estimates(name: str, encoded: dict[str, Any]) -> dict[str, Any]:
    """Effects of older versions, whose intervals are not around the estimates of data sets."""
    found = {"own": [], "own_se": [], "se": [], "between_sd": []} | encoded
    middle, own, own_se, se, between = (
        _floats(name, found[field]) for field in ("middle", "own", "own_se", "se", "between_sd")
    )
    if not middle.shape == own.shape == own_se.shape or se.shape != between.shape:
        raise ValueError(f"{name} has tables of different shapes")
    found["own_se"] = np.hypot(own_se, middle - own).tolist()
    found |= {"new_se": np.hypot(se, between).tolist(), "at": [], "level_se": []}
    del found["middle"]
    return found
