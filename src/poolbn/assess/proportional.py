"""Whether ordinal nodes have proportional odds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poolbn.errors import DataError, check_kind
from poolbn.moments.data import Data, is_data
from poolbn.moments.table import table
from poolbn.multiplicity import adjusted_p
from poolbn.network.network import Network, checked_data
from poolbn.tables.kinds import is_ordered

if TYPE_CHECKING:
    import pandas as pd


def proportional_odds(net: Network, data: object) -> pd.DataFrame:
    """Test whether odds ratios of ordinal nodes are the same at all thresholds between levels.

    For each parent of such a node a score test, as that of `nominal_test` in R's package ordinal,
    but with an intercept and slopes of their own in each data set: against odds ratios that differ
    between thresholds, in all data sets alike. Where odds are not proportional, take the column for
    one without an order, `kinds={"grade": "discrete"}`, or put levels together.

    Args:
        net: the network.
        data: the rows that it was learned from, as `pb.table` has them, or a table or file.

    Returns:
        A row for each parent of an ordinal node with three levels or more: child, parent,
        statistic, df, p_value, p_adjusted (Benjamini and Hochberg's).

    Raises:
        DataError: the data cannot be used, or do not have the columns of the network.

    Examples:
        >>> import pandas as pd
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> cut = pd.cut(trial["bmi"], [0, 25, 30, 99], right=False)
        >>> rows = trial.assign(bmi=cut.cat.rename_categories(["low", "middle", "high"]))
        >>> net = pb.fit("age -> bmi", rows, group="clinic", kinds={"bmi": "ordinal"})
        >>> pb.proportional_odds(net, rows).round(2)
          child parent  statistic   df  p_value  p_adjusted
        0   bmi    age       8.26  1.0      0.0         0.0
    """
    import pandas as pd

    check_kind(net, Network, "a network", "pb.learn(data, group=...)")
    rows = data if is_data(data) else _read(net, data)
    known = checked_data(net, rows)
    if known is None or not known.has_rows:
        raise DataError("tests of proportional odds need the rows; give pb.table(data, group=...)")
    found = [
        (child, parent, test.statistic, test.df1, test.p_value)
        for child in net.dag.nodes
        for parent, test in net.fits[child].proportionality(known).items()
    ]
    columns = ["child", "parent", "statistic", "df", "p_value"]
    made = pd.DataFrame(found, columns=pd.Index(columns))
    return made.assign(p_adjusted=adjusted_p(made["p_value"].tolist()))


def _read(net: Network, data: object) -> Data:
    """Rows with the kinds and the order of levels that the network has."""
    kinds = {
        node: list(fit.categories) if is_ordered(fit.kind) else fit.kind
        for node, fit in net.fits.items()
    }
    return table(data, group=net.group, columns=net.dag.nodes, kinds=kinds, missing="drop")
