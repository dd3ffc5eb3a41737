"""Tables of probabilities, and logistic and count regressions, in the file of a network."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
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
from poolbn.network.linearfile import check_covariance, check_left_out, decode_pooling
from poolbn.nodes.localfit import Counts, Given, LocalFit, Status
from poolbn.nodes.logeffects import LogEffects
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit

_MODELS: dict[str, type[TabularFit] | type[RegressionFit]] = {
    "table": TabularFit,
    "regression": RegressionFit,
}
_ROUNDING = 1e-6  # in sums of probabilities


def encode_other(fit: LocalFit) -> dict[str, Any]:
    """As JSON has it.

    Raises:
        FileError: the fit or its pooling is none of poolbn's own.
    """
    name = next((name for name, kind in _MODELS.items() if isinstance(fit, kind)), None)
    if name is None or not isinstance(fit.pooling, Complete | NoPooling | Partial | Given):
        raise FileError(f"{fit.child!r} has a model that is not poolbn's own and cannot be saved")
    encoded: dict[str, Any] = {"model": name}
    assert isinstance(fit, TabularFit | RegressionFit)
    fit = fit.with_all()
    for field in fields(fit):
        value = getattr(fit, field.name)
        if isinstance(value, LogEffects):
            value = {name: numbers(own) for name, own in value._asdict().items()}
        if isinstance(value, np.ndarray):
            value = numbers(value)
        encoded[field.name] = number(value) if isinstance(value, float) else value
    del encoded["levels"], encoded["group"], encoded["later"]  # there once for all nodes
    if name == "regression":
        del encoded["given"]
        encoded["columns"] = fit.columns
    encoded["effects"] = encoded.pop("saved_effects")
    encoded["pooling"] = {"kind": type(fit.pooling).__name__} | vars(fit.pooling)
    encoded["status"] = fit.status.value
    return encoded


def decode_other(
    node: str,
    encoded: dict[str, Any],
    levels: tuple[Hashable, ...],
    given: Mapping[str, tuple[str, ...]],
) -> LocalFit:
    """A fit from what `encode_other` made of it, checked; see `decode_linear`."""
    if encoded["model"] not in list(_MODELS):
        raise ValueError(f"the model of {node!r} is of no kind that poolbn has")
    kind = _MODELS[encoded["model"]]
    own = {field.name for field in fields(kind)} - {"levels", "group", "later", "saved_effects"}
    own |= {"columns"} if kind is RegressionFit else set()
    own -= {"given"} if kind is RegressionFit else set()
    check_keys(f"node {node!r}", encoded, own | {"model", "effects"})
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
    fit = _table(of, values) if kind is TabularFit else _regression(of, values)
    return replace(fit, saved_effects=_effects(of("effects"), encoded["effects"], fit))


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
