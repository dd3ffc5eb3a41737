"""The file of a `Network`: versioned JSON with a checksum, checked when it is read.

The checksum is of the content and not of the bytes: another layout of the same JSON has the same.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from poolbn.arrays import Integers
from poolbn.errors import FileError, FileWarning
from poolbn.graph.dag import Dag
from poolbn.moments.halves import Halves
from poolbn.nodes.files import (
    are_counts,
    as_float,
    as_list,
    as_text,
    categories_in,
    check_keys,
    decode,
    encode,
    number,
)
from poolbn.nodes.localfit import Given, renamed
from poolbn.search.problem import Move
from poolbn.writing import check_levels, open_regular

_FORMAT = "poolbn-network"
# The second where there are units, or nodes were set; the third where rows were split.
_VERSION, _WITH_MORE, _WITH_SPLIT = 5, 6, 7
_READ = (2, 4, _VERSION, _WITH_MORE, _WITH_SPLIT)  # what releases wrote, and this one does
_FIELDS = {
    "format", "version", "nodes", "arcs", "group", "levels", "rows", "adapted", "score",
    "score_kind", "search", "fits", "trace",
}  # fmt: skip
# There may be none of these.
_CHECKSUM, _MISSING, _UNIT, _SPLIT = "checksum", "missing", "unit", "split"
_CONSTANTS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}  # not JSON, but some write it
_ANEW = "; copy it again, or save it anew"


def network_text(content: Mapping[str, Any]) -> str:
    """The fields of a `Network` as JSON, or an error if `read_network` would refuse that."""
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
        "score": number(content["score"]),
        "score_kind": content["score_kind"],
        "search": content["search"],
        "fits": {node: encode(fit) for node, fit in fits.items()},
        "trace": [move._asdict() | {"gain": number(move.gain)} for move in content["trace"]],
    }
    unit = next((fit.unit for fit in fits.values() if fit.unit is not None), None)
    if unit is not None:
        encoded[_UNIT] = unit
    if unit is not None or any(fit.experiments for fit in fits.values()):
        encoded["version"] = _WITH_MORE
    if content["split"] is not None:
        encoded |= {_SPLIT: content["split"]._asdict(), "version": _WITH_SPLIT}
    if content["missing"] is not None:
        encoded[_MISSING] = content["missing"].tolist()
    with _refusing("the network cannot be saved"):
        _decode_network(_parsed(json.dumps(encoded)))
    return json.dumps(encoded | {_CHECKSUM: _checksum(encoded)}, indent=1)


def read_network(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The fields of the network of a file with the text of `network_text`.

    Warns:
        FileWarning: the file has another checksum than its content.
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
    if type(version) is not int or version not in _READ:
        older = type(version) is int and version < _WITH_SPLIT
        known = ", ".join(map(str, _READ))
        raise FileError(
            f"{shown} has version {version} of the format, this poolbn reads {known}; "
            f"{'learn and save it anew' if older else 'update poolbn'}"
        )
    checksum = content.pop(_CHECKSUM, None)
    changed = checksum is not None and checksum != _checksum(content)
    with _refusing(wrong, _ANEW):
        found = _decode_network(content)
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


def _decode_network(encoded: dict[str, Any]) -> dict[str, Any]:
    encoded = dict(encoded)
    missing, unit, split = (encoded.pop(name, None) for name in (_MISSING, _UNIT, _SPLIT))
    check_keys("the network", encoded, _FIELDS)
    nodes, arcs, levels, rows, adapted, trace = (
        as_list(name, encoded[name])
        for name in ("nodes", "arcs", "levels", "rows", "adapted", "trace")
    )
    dag = Dag(nodes, arcs)
    if len(dag.arcs) != len(arcs):
        raise ValueError("an arc is there twice")
    if not dag.nodes or set(dag.nodes) != set(encoded["fits"]):
        raise ValueError("the nodes of the graph are not those that are fitted")
    check_levels((*levels, *adapted))
    if not levels or len(set(levels)) != len(levels):
        raise ValueError("there is no data set, or one twice")
    if len(rows) != len(levels) or not are_counts(rows):
        raise ValueError("the rows of the data sets are not one whole number for each")
    if not any(rows):
        raise ValueError("rows of the data sets are 0")
    if not set(adapted) <= set(levels) or len(set(adapted)) != len(adapted):
        raise ValueError("an adapted data set is not among the data sets, or there twice")
    for name, words in (("group", "the name of the group column"), ("score_kind",) * 2):
        as_text(words, encoded[name])
    own = encoded["fits"]
    categories = {node: categories_in(node, own[node]) for node in dag.nodes}
    given = {node: {name: categories[name] for name in dag.parents(node)} for node in dag.nodes}
    fits = {node: decode(node, own[node], tuple(levels), given[node]) for node in dag.nodes}
    if unit is not None:
        as_text("the name of the column of units", unit)
        fits = {node: renamed(fit, unit=unit) for node, fit in fits.items()}
    score = as_float("score", encoded["score"])
    if math.isnan(score) and not any(isinstance(fit.pooling, Given) for fit in fits.values()):
        raise ValueError("the score is not a number")
    return {
        "dag": dag,
        "fits": fits,
        "score": score,
        "group": encoded["group"],
        "n": np.array(rows, dtype=np.int64),
        "adapted": tuple(adapted),
        "score_kind": encoded["score_kind"],
        "search": as_text("search", encoded["search"]),
        "trace": tuple(_decode_move(move, dag) for move in trace),
        "split": None if split is None else _decode_split(split),
        "missing": None if missing is None else _decode_missing(missing, rows, len(dag.nodes)),
    }


def _decode_split(split: Any) -> Halves:
    check_keys("the split", split, set(Halves._fields))
    if not are_counts(list(split.values())):
        raise ValueError("the rows and the seed of the split are not whole numbers")
    return Halves(**split)


def _decode_missing(missing: Any, rows: list[int], nodes: int) -> Integers:
    """Missing cells of the first data sets, and of all nodes."""
    for own, n in zip(as_list(_MISSING, missing), rows, strict=False):
        counts = as_list(_MISSING, own)
        if len(counts) != nodes or not are_counts(counts) or max(counts) > n:
            raise ValueError("missing cells are not a number of rows for each data set and node")
    if len(missing) > len(rows):
        raise ValueError("there are missing cells of more data sets than there are")
    return np.array(missing, dtype=np.int64)


def _decode_move(move: dict[str, Any], dag: Dag) -> Move:
    check_keys("a move of the trace", move, set(Move._fields))
    arc = as_list("arc", move["arc"])
    if len(arc) not in (0, 2) or not all(node in dag.nodes for node in arc):
        raise ValueError(f"{arc!r} in the trace is no arc")
    if not are_counts([move["fits"], move["spared"]]):
        raise ValueError("the fits of a move are not whole numbers")
    kind, gain = as_text("kind", move["kind"]), as_float("gain", move["gain"])
    return Move(kind, tuple(arc), gain, move["fits"], move["spared"])
