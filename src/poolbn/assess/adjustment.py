"""`Network.adjustment_report`: what to adjust for, and the effect with each set that will do.

What a report of an effect from a graph should have (Tennant and others 2020): the graph, the sets
of variables that it implies must be adjusted for, the estimate with the first of them unchanged,
and those with others beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from poolbn.assess.graphtest import Asked, data_of
from poolbn.errors import DataError, check_interval
from poolbn.graph.dag import Dag
from poolbn.moments.data import Data
from poolbn.network.network import Network
from poolbn.nodes.choosing import fit_node
from poolbn.nodes.intervals import t_interval
from poolbn.nodes.localfit import level_columns
from poolbn.wording import counted, figure, listed, noun_of, visible

if TYPE_CHECKING:
    import pandas as pd

_SETS = 20  # that are fitted


@dataclass(frozen=True, eq=False, repr=False)
class AdjustmentReport:
    """An effect with each set of variables that the graph says is enough to adjust for.

    Attributes:
        dag: the graph.
        exposure: the cause.
        outcome: the effect.
        sets: all smallest sets that will do, those with the fewest first; none where the outcome is
            a cause of the exposure.
        estimates: a row for each set and level, and last without any: adjusted_for, enough (whether
            the graph says so), level, outcome_level, scale, effect, lower, upper, p_value, then the
            effect in each data set.
        group: the column that says which data set a row came from.
        rows: that all estimates are from.
        interval: the probability of the intervals.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "tobacco", "birthweight_g"]]
        >>> net = pb.fit("dag { age -> {bmi tobacco} -> birthweight_g }", trial.dropna(),
        ...              group="clinic", pooling="complete")
        >>> found = net.adjustment_report("bmi", "birthweight_g")
        >>> found.sets
        (('age',), ('tobacco',))
        >>> found.estimates[["adjusted_for", "enough", "effect", "lower", "upper"]].round(1)
          adjusted_for  enough  effect  lower  upper
        0          age    True     0.4   -6.6    7.4
        1      tobacco    True     0.5   -6.4    7.4
        2      nothing   False     0.5   -6.4    7.5
    """

    dag: Dag
    exposure: str
    outcome: str
    sets: tuple[tuple[str, ...], ...]
    estimates: pd.DataFrame
    group: str
    rows: int
    interval: float

    @property
    def text(self) -> str:
        """What a methods section says of it.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.fit("age -> bmi", trial, group="clinic", pooling="complete")
            >>> print(net.adjustment_report("age", "bmi").text)
            The effect of age on bmi was estimated from 750 rows in 4 clinics. The graph has 2
            variables and 1 arc, and implies that nothing must be adjusted for. The effect
            (difference) is 0.1674 (95% interval 0.07572 to 0.259).
        """
        import textwrap

        sets = noun_of(self.group)
        arcs = counted(len(self.dag.arcs), "arc")
        size = f"{counted(len(self.dag.nodes), 'variable')} and {arcs}"
        F = self.estimates.shape[1] - _COLUMNS
        said = [
            f"The effect of {self.exposure} on {self.outcome} was estimated from "
            f"{counted(self.rows, 'row')} in {counted(F, sets)}.",
            f"The graph has {size}, and implies that {self._implied()}.",
        ]
        for row in self.estimates[self.estimates["enough"]].to_dict("records"):
            low, high = figure(row["lower"]), figure(row["upper"])
            level = f" of {row['level']}" if row["level"] else ""
            outcome = f" for {row['outcome_level']}" if row["outcome_level"] else ""
            with_set = f" adjusted for {row['adjusted_for']}" if self.sets[0] else ""
            said.append(
                f"The effect{level}{outcome}{with_set} ({row['scale']}) is {figure(row['effect'])} "
                f"({100 * self.interval:g}% interval {low} to {high})."
            )
        return visible(textwrap.fill(" ".join(said), 88), "\n")

    def _implied(self) -> str:
        if not self.sets:
            return (
                f"no set will do, as {self.outcome} is a cause of {self.exposure}, or what would "
                "have to be adjusted for is not in it"
            )
        if not self.sets[0]:
            return "nothing must be adjusted for"
        each = [listed(one) for one in self.sets[:_SETS]]
        return f"it is enough to adjust for {', or for '.join(each)}"

    def __repr__(self) -> str:
        shown = self.estimates.iloc[:, :_COLUMNS].drop(columns=["level", "outcome_level"])
        table = shown.to_string(index=False, float_format=figure)
        return f"{self.text}\n\n{visible(table, chr(10))}"


_NAMES = (
    "adjusted_for", "enough", "level", "outcome_level", "scale", "effect", "lower", "upper",
    "p_value",
)  # fmt: skip
_COLUMNS = len(_NAMES)


def adjustment_report(
    net: Network, exposure: str, outcome: str, data: Data | None, interval: float
) -> AdjustmentReport:
    """See `Network.adjustment_report`."""
    import pandas as pd

    check_interval(interval)
    sets = net.dag.adjustment_sets(exposure, outcome)
    rows = data_of(net, data)
    if outcome in net.inputs:
        raise DataError(f"{outcome!r} is an input, and has no causes; name another outcome")
    poolings = {node: fit.pooling for node, fit in net.fits.items()}
    how = Asked(net.dag, rows, poolings, "auto").model(outcome)
    found: list[tuple[Any, ...]] = []
    for given in dict.fromkeys((*sets[:_SETS], ())):
        fit = fit_node(rows, outcome, _in_order(rows, (exposure, *given)), pooling=how)
        if not fit.status.ok:
            continue
        told = ", ".join(given) or "nothing", given in sets
        found += [(*told, *_numbers(term, interval)) for term in fit.terms(exposure)]
    names = [*_NAMES, *level_columns(rows.levels, _NAMES)]
    table = pd.DataFrame(found, columns=pd.Index(names, dtype=object))
    return AdjustmentReport(
        net.dag, exposure, outcome, sets, table, net.group, rows.n_rows, interval
    )


def _in_order(data: Data, names: Sequence[str]) -> list[str]:
    return sorted(names, key=data.names.index)


def _numbers(term: Any, interval: float) -> tuple[Any, ...]:
    """Of one effect: on its scale, in the population and in each data set."""
    from scipy.stats import t

    low, high = t_interval(term.effect, term.se, term.df, interval)
    p = 2 * float(t.sf(abs(term.effect / term.se), term.df)) if term.se > 0 else float("nan")
    effect, own = term.reported(term.effect), term.reported(term.own)
    ends = term.reported(low), term.reported(high)
    return term.level, term.outcome, term.scale, effect, *ends, p, *own
