"""`Network`: a graph and one fitted node each; saved, loaded, printed."""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from poolbn.errors import FileError, GraphError
from poolbn.graph import Dag
from poolbn.localfit import LocalFit, Status, level_columns
from poolbn.search import Move
from poolbn.writing import check_levels, write_whole

if TYPE_CHECKING:
    import pandas as pd

_FORMAT = "poolbn-network"
_VERSION = 1
_SHOWN = 12  # arcs that a printed network lists


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """A Bayesian network over several data sets.

    Attributes:
        dag: the graph.
        fits: the distribution of each node given its parents.
        score: the sum of the nodes' scores; higher is better.
        trace: the moves that led to it, in order.
    """

    dag: Dag
    fits: Mapping[str, LocalFit]
    score: float
    trace: tuple[Move, ...] = ()

    @property
    def levels(self) -> tuple[Hashable, ...]:
        """The data sets."""
        return next(iter(self.fits.values())).levels

    @property
    def n_rows(self) -> int:
        """Rows in all data sets together."""
        return next(iter(self.fits.values())).n_rows

    def effects(self) -> pd.DataFrame:
        """A row for each arc: the child's pooling, the effect, how it varies, and by data set.

        `effect` is the population's, or without pooling the mean over data sets; `between_sd` is
        its standard deviation between data sets as estimated by partial pooling.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> net = pb.learn(trial.dropna(), group="clinic", pooling="complete")
            >>> net.effects()[["parent", "child", "pooling"]]
                       parent          child           pooling
            0             age  birthweight_g  complete pooling
            1  gestation_days  birthweight_g  complete pooling
        """
        import pandas as pd

        own = ["parent", "child", "pooling", "effect", "se", "between_sd"]
        levels = level_columns(self.levels, own)
        rows: list[dict[Hashable, Any]] = []
        for parent, child in self.dag.arcs:
            fit = self.fits[child]
            k = 1 + fit.parents.index(parent)
            rows.append(
                {
                    "parent": parent,
                    "child": child,
                    "pooling": fit.pooling,
                    "effect": fit.coef[:, k].mean() if fit.fixed is None else fit.fixed[k],
                    "se": math.nan if fit.fixed_se is None else fit.fixed_se[k],
                    "between_sd": math.nan if fit.random_sd is None else fit.random_sd[k],
                }
                | dict(zip(levels, fit.coef[:, k], strict=True))
            )
        columns = [*own, *levels]
        return pd.DataFrame(rows, columns=pd.Index(columns, dtype=object))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network as JSON, whole or not at all; `pb.load` reads it.

        Raises:
            FileError: the file cannot be written, or a data set's name cannot be.
        """
        check_levels(self.levels)
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "nodes": self.dag.nodes,
            "arcs": self.dag.arcs,
            "score": self.score if math.isfinite(self.score) else None,
            "fits": {node: _encode(fit) for node, fit in self.fits.items()},
            "trace": [move._asdict() for move in self.trace],
        }
        write_whole(path, json.dumps(content, indent=1).encode())

    def __repr__(self) -> str:
        poolings = sorted({fit.pooling for fit in self.fits.values()})
        used = ", ".join(poolings)
        if len(poolings) > 1:
            counts = {p: sum(fit.pooling == p for fit in self.fits.values()) for p in poolings}
            parts = (f"{p.replace(' pooling', '')} {count}" for p, count in counts.items())
            used = f"pooling by node: {', '.join(parts)}"
        lines = [
            f"Network: {len(self.dag.nodes)} nodes, {len(self.dag.arcs)} arcs, "
            f"{len(self.levels)} data sets, {self.n_rows} rows",
            f"{used}; score {self.score:.4f}",
        ]
        effects = self.effects().iloc[:_SHOWN]
        for row in effects.itertuples(index=False):
            between = "" if math.isnan(row[5]) else f", SD between data sets {row[5]:.4g}"
            lines.append(f"  {row[0]} -> {row[1]}  {row[3]:.4g}{between}")
        if len(self.dag.arcs) > _SHOWN:
            lines.append(f"  ... {len(self.dag.arcs) - _SHOWN} more in .effects()")
        trouble = [node for node, fit in self.fits.items() if not fit.status.ok]
        lines += [f"  {node}: {self.fits[node].status.name}" for node in trouble[:_SHOWN]]
        if len(trouble) > _SHOWN:
            lines.append(f"  ... {len(trouble) - _SHOWN} more without a likelihood")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title, used = repr(self).split("\n")[:2]
        table = self.effects().to_html(index=False, float_format="{:.4g}".format)
        return f"<p><b>{html.escape(title)}</b><br>{html.escape(used)}</p>{table}"


def load(path: str | os.PathLike[str]) -> Network:
    """Read a network that `Network.save` wrote.

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
    if content.get("version") != _VERSION:
        raise FileError(
            f"{shown} has version {content.get('version')} of the format, this poolbn reads "
            f"version {_VERSION}; update poolbn"
        )
    try:
        dag = Dag(content["nodes"], content["arcs"])
        if not dag.nodes or set(dag.nodes) != set(content["fits"]):
            raise ValueError("the nodes of the graph are not those that are fitted")
        network = Network(
            dag,
            {node: _decode(content["fits"][node]) for node in dag.nodes},
            -math.inf if content["score"] is None else float(content["score"]),
            tuple(Move(**(move | {"arc": tuple(move["arc"])})) for move in content["trace"]),
        )
        for node, fit in network.fits.items():
            _check(node, fit, network)
    except (GraphError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{shown} does not hold a network as it should: {error}") from error
    return network


def _encode(fit: LocalFit) -> dict[str, Any]:
    encoded: dict[str, Any] = {}
    for field in fields(fit):
        value = getattr(fit, field.name)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, Status):
            value = {"name": value.name, "detail": value.detail}
        encoded[field.name] = value
    if not math.isfinite(fit.loglik):
        encoded["loglik"] = None
    return encoded


def _decode(encoded: dict[str, Any]) -> LocalFit:
    known = {field.name for field in fields(LocalFit)}
    if set(encoded) != known:
        raise ValueError(f"a node has {sorted(set(encoded) ^ known)} too many or too few")
    arrays = {"coef", "coef_sd", "sigma2", "fixed", "fixed_cov", "random_cov"}
    values: dict[str, Any] = dict(encoded)
    for name in arrays:
        if values[name] is not None:
            values[name] = np.array(values[name], dtype=np.float64)
    values["parents"] = tuple(values["parents"])
    values["levels"] = tuple(values["levels"])
    values["status"] = Status(**values["status"])
    values["loglik"] = -math.inf if values["loglik"] is None else float(values["loglik"])
    return LocalFit(**values)


def _check(node: str, fit: LocalFit, network: Network) -> None:
    F, q = len(network.levels), len(fit.parents) + 1
    if fit.child != node or fit.parents != network.dag.parents(node):
        raise ValueError(f"the parents of {node!r} are not those of the graph")
    shapes = {"coef": (F, q), "coef_sd": (F, q), "sigma2": (F,)}
    shapes |= {"fixed": (q,), "fixed_cov": (q, q), "random_cov": (q, q)}
    for name, shape in shapes.items():
        array = getattr(fit, name)
        if array is None and name in {"fixed", "fixed_cov", "random_cov"}:
            continue
        if array is None or array.shape != shape or not np.isfinite(array).all():
            raise ValueError(f"{name} of {node!r} is not a table of {shape} numbers")
    if type(fit.n_params) is not int or type(fit.n_rows) is not int:
        raise ValueError(f"the number of rows or parameters of {node!r} is not a whole number")
    if fit.levels != network.levels or len(set(fit.levels)) != F:
        raise ValueError(f"{node!r} has other data sets than other nodes, or one twice")
