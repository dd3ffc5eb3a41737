"""Whether ordinal nodes have proportional odds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from poolbn.errors import DataError, check_interval, check_kind
from poolbn.graph.dag import Dag
from poolbn.moments.data import Data, is_data
from poolbn.moments.table import Table, table
from poolbn.multiplicity import adjusted_p
from poolbn.network.effects import effects_table
from poolbn.network.network import Network, checked_data
from poolbn.network.presenting import present
from poolbn.nodes.choosing import fit_node
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.tables.kinds import is_ordered
from poolbn.wording import figure, visible

if TYPE_CHECKING:
    import pandas as pd

_RATIOS = ["parent", "level", "child", "threshold", "effect", "lower", "upper", "sd"]


@dataclass(frozen=True, eq=False, repr=False)
class ProportionalOdds:
    """Whether odds ratios of ordinal nodes are the same at all thresholds between levels.

    Attributes:
        tests: a row for each parent of an ordinal node with three levels or more: child, parent,
            statistic, df, p_value, p_adjusted (Benjamini and Hochberg's).
        ratios: a row for each odds ratio of exceeding a threshold, such as "low|middle", by a
            logistic regression of exceeding it with the parents and the pooling of the node, and
            before these one for the common odds ratio, with the threshold "": parent, level (of a
            discrete parent), child, threshold, effect, lower, upper, and sd, the standard deviation
            of a parent that is a number, for which figures show the odds ratio.

    Examples:
        >>> import pandas as pd
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> cut = pd.cut(trial["bmi"], [0, 25, 30, 99], right=False)
        >>> rows = trial.assign(bmi=cut.cat.rename_categories(["low", "middle", "high"]))
        >>> net = pb.fit("age -> bmi", rows, group="clinic", kinds={"bmi": "ordinal"})
        >>> found = pb.proportional_odds(net, rows)
        >>> found.ratios[["threshold", "effect", "lower", "upper"]].round(2)
             threshold  effect  lower  upper
        0                 1.05   1.01   1.09
        1   low|middle    1.07   1.03   1.12
        2  middle|high    1.04   1.00   1.07
    """

    tests: pd.DataFrame
    ratios: pd.DataFrame

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the odds ratios at all thresholds, as `pb.plots.proportional_odds` does.

        Args:
            ax: where to draw; by default on a new figure.

        Returns:
            The matplotlib Axes.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> rows = trial.assign(bmi=(trial["bmi"] // 5).clip(4, 6).astype(int))
            >>> net = pb.fit("age -> bmi", rows, group="clinic", kinds={"bmi": "ordinal"})
            >>> ax = pb.proportional_odds(net, rows).plot()
            >>> [label.get_text() for label in ax.get_yticklabels()]
            ['', 'age (per SD) → bmi', '4|5', '5|6', 'all thresholds']
        """
        return present("plots.proportional_odds", self, ax=ax)

    def __repr__(self) -> str:
        if not len(self.tests):
            return "ProportionalOdds: no ordinal node with three levels and a parent"
        told = self.tests.to_string(index=False, float_format=figure)
        return visible(f"Tests of proportional odds\n{told}", "\n")


def proportional_odds(net: Network, data: object, *, interval: float = 0.95) -> ProportionalOdds:
    """Test whether odds ratios of ordinal nodes are the same at all thresholds between levels.

    For each parent of such a node a score test, as that of `nominal_test` in R's package ordinal,
    but with an intercept and slopes of their own in each data set: against odds ratios that differ
    between thresholds, in all data sets alike. Beside it are the odds ratios at each threshold, to
    see how they differ. Where odds are not proportional, take the column for one without an order,
    `kinds={"grade": "discrete"}`, or put levels together.

    Args:
        net: the network.
        data: the rows that it was learned from, as `pb.table` has them, or a table or file.
        interval: the probability of the intervals of odds ratios.

    Returns:
        A `pb.ProportionalOdds`, with `tests`, `ratios` and `plot()`.

    Raises:
        DataError: the data cannot be used, or do not have the columns of the network.

    Examples:
        >>> import pandas as pd
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> cut = pd.cut(trial["bmi"], [0, 25, 30, 99], right=False)
        >>> rows = trial.assign(bmi=cut.cat.rename_categories(["low", "middle", "high"]))
        >>> net = pb.fit("age -> bmi", rows, group="clinic", kinds={"bmi": "ordinal"})
        >>> pb.proportional_odds(net, rows).tests.round(2)
          child parent  statistic   df  p_value  p_adjusted
        0   bmi    age       8.26  1.0      0.0         0.0
    """
    import pandas as pd

    check_kind(net, Network, "a network", "pb.learn(data, group=...)")
    check_interval(interval)
    rows = data if is_data(data) else _read(net, data)
    known = checked_data(net, rows)
    if known is None or not known.has_rows:
        raise DataError("tests of proportional odds need the rows; give pb.table(data, group=...)")
    tests = {child: fit.unset.proportionality(fit.about(known)) for child, fit in net.fits.items()}
    found = [
        (child, parent, test.statistic, test.df1, test.p_value)
        for child, own in tests.items()
        for parent, test in own.items()
    ]
    columns = ["child", "parent", "statistic", "df", "p_value"]
    made = pd.DataFrame(found, columns=pd.Index(columns))
    each = [
        _ratios(net, net.fits[child].about(known), child, interval)
        for child, own in tests.items()
        if own
    ]
    return ProportionalOdds(
        made.assign(p_adjusted=adjusted_p(made["p_value"].tolist())),
        pd.concat(each, ignore_index=True) if each else pd.DataFrame(columns=pd.Index(_RATIOS)),
    )


def _ratios(net: Network, data: Data, child: str, interval: float) -> pd.DataFrame:
    """Odds ratios of the parents of a node: the common ones, then those at its thresholds."""
    import pandas as pd

    parents, fit = net.dag.parents(child), net.fits[child].unset
    how = fit.pooling
    assert isinstance(how, Complete | NoPooling | Partial)
    arcs = Dag([*parents, child], [(parent, child) for parent in parents])
    of = {parent: net.fits[parent] for parent in parents}
    logit = replace(how, discrete="logit")
    found = [effects_table(arcs, of | {child: fit}, interval).assign(threshold="")]
    codes = np.unique(data.cases([child]).columns[0]).astype(int).tolist()
    for low, high in pairwise(codes):
        own = fit_node(_exceeding(data, child, parents, low), child, parents, pooling=logit)
        name = f"{fit.categories[low]}|{fit.categories[high]}"
        found.append(effects_table(arcs, of | {child: own}, interval).assign(threshold=name))
    # By parent and level, thresholds in their order.
    sds = {parent: np.std(data.cases([parent]).columns[0], ddof=1) for parent in parents}
    every = pd.concat(found, ignore_index=True)
    every["sd"] = every["parent"].map(sds).where(every["level"] == "")
    every = every[_RATIOS]
    return every.iloc[np.argsort(np.tile(np.arange(len(found[0])), len(found)), kind="stable")]


def _exceeding(data: Data, child: str, parents: tuple[str, ...], code: int) -> Table:
    """The rows of a family, with a child that says whether it exceeds a level."""
    names = (*parents, child)
    rows = data.cases(names)
    *others, own = rows.columns
    at = [data.names.index(name) for name in parents]
    return Table(
        names=names,
        kinds=(*(data.kinds[k] for k in at), "discrete"),
        categories=(*(data.categories[k] for k in at), ("no", "yes")),
        levels=data.levels,
        offsets=rows.offsets,
        values=np.array([*others, own > code], dtype=np.float64),
        dropped=np.zeros(len(data.levels), dtype=np.int64),
        group=data.group,
        units=rows.units,
        unit=data.unit,
    )


def _read(net: Network, data: object) -> Data:
    """Rows with the kinds and the order of levels that the network has."""
    kinds = {
        node: list(fit.categories) if is_ordered(fit.kind) else fit.kind
        for node, fit in net.fits.items()
    }
    group = net.group if net.unit is None else [net.group, net.unit]
    return table(data, group=group, columns=net.dag.nodes, kinds=kinds, missing="drop")
