"""Predictions averaged over graphs: what is uncertain of the graph is in their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from poolbn.arguments import FLAG, TEXT, check_arguments
from poolbn.errors import DataError, GraphError, check_interval, nearest
from poolbn.graph.dag import Dag
from poolbn.network.cells import ESS, NUMBERS
from poolbn.network.network import Network
from poolbn.nodes.localfit import LocalFit
from poolbn.wording import counted

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Build = Callable[[Dag, Mapping[str, LocalFit]], Network]

_STEPS = 60  # of bisection


@dataclass(frozen=True, eq=False, repr=False)
class AveragedNetwork:
    """Networks of graphs that were drawn from their posterior; they answer together.

    Attributes:
        networks: one for each different graph, the most frequent first.
        weights: how often each was drawn, as shares, (K,).

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]].dropna()
        >>> post = pb.arc_posterior(trial, group="clinic")
        >>> averaged = post.averaged(200)
        >>> averaged
        AveragedNetwork: 3 networks of 3 nodes
        >>> averaged.predict(trial.head(2), "birthweight_g").round(-1)
             mean     sd   lower   upper
        0  3040.0  460.0  2140.0  3930.0
        1  2740.0  460.0  1840.0  3640.0
    """

    networks: tuple[Network, ...]
    weights: Floats

    def predict(self, data: object, target: str, *, interval: float = 0.95) -> pd.DataFrame:
        """What is to be expected of a node in each row, given the row's other cells.

        Each network counts by its weight and by how likely it makes the row's other cells. In the
        interval each of them has a normal distribution with its own interval.

        Args:
            data: a pandas table, or one row as a dict or Series.
            target: a node.
            interval: the probability of the interval.

        Returns:
            Columns mean, sd, lower and upper, or for a discrete node the probabilities of its
            levels and the most probable one, as of `Network.predict`.

        Raises:
            GraphError: the target is no node.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> averaged = pb.arc_posterior(trial, group="clinic").averaged(100)
            >>> averaged.predict({"clinic": "NY", "age": 20}, "bmi").columns.tolist()
            ['mean', 'sd', 'lower', 'upper']
        """
        check_interval(interval)
        check_arguments(target=(target, TEXT))
        nodes = self.networks[0].dag.nodes
        if target not in nodes:
            raise GraphError(f"{target!r} is not a node{nearest(target, nodes)}")
        frame = _frame(data)
        tables = [
            net.predict(frame, target, interval=interval).drop(columns=ESS, errors="ignore")
            for net in self.networks
        ]
        without = frame.drop(columns=target, errors="ignore")
        share = self._shares(without)
        if self.networks[0].fits[target].categories:
            return _mean_probabilities(tables, share)
        own = np.array([table.to_numpy(dtype=float) for table in tables])  # (K, rows, 4)
        return _mixtures(tables[0], own, share, interval)

    @overload
    def loglik(self, data: object, *, rows: Literal[False] = False) -> float: ...

    @overload
    def loglik(self, data: object, *, rows: Literal[True]) -> pd.Series[float]: ...

    def loglik(self, data: object, *, rows: bool = False) -> float | pd.Series[float]:
        """The log-likelihood of rows, whose density is the mean of that of the networks.

        Args:
            data: a pandas table, or one row as a dict or Series.
            rows: whether to return the log density of each row.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> post = pb.arc_posterior(trial, group="clinic")
            >>> single = pb.learn(trial, group="clinic").loglik(trial)
            >>> abs(post.averaged(100).loglik(trial) / single - 1) < 0.01
            True
        """
        import pandas as pd

        check_arguments(rows=(rows, FLAG))
        frame = _frame(data)
        each = self._densities(frame)
        top = each.max(axis=0)
        found = top + np.log(np.exp(each - top).sum(axis=0))
        return pd.Series(found, index=frame.index, name="loglik") if rows else float(found.sum())

    def _densities(self, frame: pd.DataFrame) -> Floats:
        """Log densities of rows times weights, (K, rows)."""
        weight = np.log(self.weights)[:, None].astype(np.float64)
        if not set(self.networks[0].dag.nodes).intersection(frame.columns):
            return weight + np.zeros((1, len(frame)))
        each = [net.loglik(frame, rows=True).to_numpy() for net in self.networks]
        return np.asarray(np.array(each) + weight, dtype=np.float64)

    def _shares(self, frame: pd.DataFrame) -> Floats:
        """The weight of each network in each row, (K, rows)."""
        each = self._densities(frame)
        share = np.exp(each - each.max(axis=0))
        return np.asarray(share / share.sum(axis=0))

    def __repr__(self) -> str:
        nodes = counted(len(self.networks[0].dag.nodes), "node")
        return f"AveragedNetwork: {counted(len(self.networks), 'network')} of {nodes}"


def _frame(data: object) -> pd.DataFrame:
    import pandas as pd

    if isinstance(data, Mapping):
        return pd.DataFrame([dict(data)])
    if isinstance(data, pd.Series):
        return data.to_frame().T.infer_objects()
    if not isinstance(data, pd.DataFrame):
        raise DataError(
            f"expected a pandas table, or one row as a dict or Series, got {type(data).__name__}"
        )
    return data


def _mean_probabilities(tables: list[pd.DataFrame], share: Floats) -> pd.DataFrame:
    """Of levels; the last column is the most probable one."""
    levels: list[Any] = [c for c in tables[0].columns if tables[0][c].dtype.kind == "f"]
    made = tables[0].copy()
    own = np.array([table[levels].to_numpy(dtype=float) for table in tables])
    found = np.einsum("kr,krl->rl", share, own)
    made[levels] = found
    for column in made.columns.difference(levels):
        made[column] = np.array(levels, dtype=object)[found.argmax(axis=1)]
    return made


def _mixtures(like: pd.DataFrame, own: Floats, share: Floats, interval: float) -> pd.DataFrame:
    """Mean, SD and interval of mixtures of the networks' predictions, (K, rows, 4)."""
    from scipy.special import ndtr, ndtri

    mean, sd = own[..., 0], own[..., 1]
    center = (share * mean).sum(axis=0)
    variance = (share * (sd**2 + (mean - center) ** 2)).sum(axis=0)
    middle = (own[..., 2] + own[..., 3]) / 2
    scale = np.maximum((own[..., 3] - own[..., 2]) / 2 / ndtri((1 + interval) / 2), 1e-300)
    ends = []
    for tail in ((1 - interval) / 2, (1 + interval) / 2):
        low, high = own[..., 2:].min(axis=(0, 2)), own[..., 2:].max(axis=(0, 2))
        for _ in range(_STEPS):
            at = (low + high) / 2
            below = (share * ndtr((at - middle) / scale)).sum(axis=0) < tail
            low, high = np.where(below, at, low), np.where(below, high, at)
        ends.append((low + high) / 2)
    made = like.copy()
    made[list(NUMBERS)] = np.column_stack([center, np.sqrt(variance), *ends])
    return made
