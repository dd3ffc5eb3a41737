"""`Network`: a graph and one fitted node each; saved, loaded, printed."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poolbn.graph import Dag
from poolbn.joint import Joint, joint_distribution
from poolbn.localfit import LocalFit, level_columns
from poolbn.networkfile import Content, read_network, write_network
from poolbn.search import Move
from poolbn.suffstats import GroupStats

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 12  # arcs that a printed network lists


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """A Bayesian network over several data sets.

    Attributes:
        dag: the graph.
        fits: the distribution of each node given its parents.
        score: the sum of the nodes' scores; higher is better.
        group: the column that says which data set a row came from.
        n: rows of each data set, (F,): their shares are P(F).
        adapted: data sets that came by `adapt`, whose coefficients are not taken for certain.
        trace: the moves that led to it, in order.
        stats: the statistics it was learned from; not saved.
    """

    dag: Dag
    fits: Mapping[str, LocalFit]
    score: float
    group: str
    n: NDArray[np.int64]
    adapted: tuple[Hashable, ...] = ()
    trace: tuple[Move, ...] = ()
    stats: GroupStats | None = None

    @property
    def levels(self) -> tuple[Hashable, ...]:
        """The data sets."""
        return next(iter(self.fits.values())).levels

    @property
    def n_rows(self) -> int:
        """Rows in all data sets together."""
        return int(self.n.sum())

    @cached_property
    def joint(self) -> Joint:
        """The multivariate normal distribution of all nodes in each data set, and P(F)."""
        return joint_distribution(self.dag, self.fits, self.n)

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
        content = Content(
            dag=self.dag,
            fits=self.fits,
            score=self.score,
            group=self.group,
            n=self.n,
            adapted=self.adapted,
            trace=self.trace,
        )
        write_network(path, content)

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
    return Network(**read_network(path))
