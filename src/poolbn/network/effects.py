"""The effects of a network: a row for each arc, or for each arc and data set.

With columns that are not continuous an arc may have several rows: one for each level of a discrete
parent, and of a discrete child, but the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import check_interval, check_option
from poolbn.graph.dag import Dag
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.indicators import labels_of
from poolbn.nodes.blup import total_cov
from poolbn.nodes.intervals import t_interval
from poolbn.nodes.localfit import GaussianFit, LocalFit, level_columns
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit

if TYPE_CHECKING:
    import pandas as pd

By = Literal["arc", "data set"]

# Columns of the table, before those of the data sets.
COLUMNS = (
    "parent", "child", "pooling", "effect", "se", "df", "lower", "upper", "between_sd", "opposite",
)  # fmt: skip
_LONG = ("parent", "child", "data_set", "effect", "se", "df", "lower", "upper")
# What comes before the effect where columns are not all continuous.
_TERM = ("parent", "level", "child", "outcome", "scale")
MIXED_COLUMNS = (*_TERM, *COLUMNS[COLUMNS.index("pooling") :])
_MIXED_LONG = (*_TERM, *_LONG[_LONG.index("data_set") :])

Floats = NDArray[np.float64]


class Term(NamedTuple):
    """One effect of an arc; of discrete and count children a logarithm of a ratio.

    Attributes:
        level: of a discrete parent, compared with its first; "" for others.
        outcome: of a discrete child, compared with its first; "" for others.
        scale: "difference", "odds ratio" or "rate ratio".
        effect: in the population.
        se: its standard error.
        df: and degrees of freedom.
        between_sd: standard deviation between data sets.
        new_se: of the effect in a new data set, around that in the population.
        own: in each data set, (F,).
        own_se: (F,).
        own_df: (F,).
    """

    level: str
    outcome: str
    scale: str
    effect: float
    se: float
    df: float
    between_sd: float
    new_se: float
    own: Floats
    own_se: Floats
    own_df: Floats

    @property
    def reported(self) -> Callable[[Any], Any]:
        """From the scale of the model to the one that is reported."""
        return (lambda value: value) if self.scale == "difference" else _ratio


def _ratio(value: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.exp(value)


def effects_table(
    dag: Dag, fits: Mapping[str, LocalFit], interval: float = 0.95, by: By = "arc"
) -> pd.DataFrame:
    """A row for each arc: `COLUMNS`, then the coefficient in each data set; or `_LONG`.

    Where columns are not all continuous a row for each `Term`: `MIXED_COLUMNS`, or `_MIXED_LONG`.

    Raises:
        OptionError: `interval` is not between 0 and 1, or `by` is not an option.
    """
    check_interval(interval)
    check_option("by", by, get_args(By))
    linear = {node: fit for node, fit in fits.items() if isinstance(fit, GaussianFit)}
    if len(linear) < len(fits):
        return (terms_by_arc if by == "arc" else _terms_by_data_set)(dag, fits, interval)
    return (_by_arc if by == "arc" else _by_data_set)(dag, linear, interval)


def _by_arc(dag: Dag, fits: Mapping[str, GaussianFit], interval: float) -> pd.DataFrame:
    import pandas as pd

    levels = level_columns(fits[dag.nodes[0]].levels, COLUMNS)
    rows: list[dict[Hashable, Any]] = []
    for parent, child in dag.arcs:
        fit = fits[child]
        k = fit.position(parent)
        effect, se, df = fit.population(k)
        lower, upper = t_interval(effect, se, df, interval).tolist()
        values = (
            parent, child, str(fit.pooling), effect, se, df, lower, upper,
            math.nan if fit.random_sd is None else fit.random_sd[k],
            float(np.mean(np.sign(fit.coef[:, k]) * np.sign(effect) < 0)),
        )  # fmt: skip
        rows.append(
            dict(zip(COLUMNS, values, strict=True)) | dict(zip(levels, fit.coef[:, k], strict=True))
        )
    return pd.DataFrame(rows, columns=pd.Index([*COLUMNS, *levels], dtype=object))


def _by_data_set(dag: Dag, fits: Mapping[str, GaussianFit], interval: float) -> pd.DataFrame:
    import pandas as pd

    rows: list[tuple[Any, ...]] = []
    for parent, child in dag.arcs:
        fit = fits[child]
        k = fit.position(parent)
        se, df = data_set_errors(fit, k)
        ends = t_interval(fit.coef[:, k], se, df, interval)
        columns = (fit.levels, fit.coef[:, k], se, df, ends[:, 0], ends[:, 1])
        rows += [(parent, child, *values) for values in zip(*columns, strict=True)]
    return pd.DataFrame(rows, columns=list(_LONG))


def data_set_errors(
    fit: GaussianFit, k: int, stats: GroupStats | None = None
) -> tuple[Floats, Floats]:
    """Standard errors and degrees of freedom of an effect in each data set, (F,) each.

    Where a fit does not know them, as one from an older file, variances are taken as known.

    Args:
        fit: the node.
        k: which coefficient, the intercept being the first.
        stats: the sufficient statistics of the parents and, last, the child, where they are known.
    """
    if fit.intervals is not None:
        return fit.intervals.se[:, k], fit.intervals.df[:, k]
    F = len(fit.levels)
    variances = [total_cov(fit, j, stats)[k, k] for j in range(F)]
    return np.sqrt(variances), np.full(F, np.inf)


def terms_by_arc(dag: Dag, fits: Mapping[str, LocalFit], interval: float) -> pd.DataFrame:
    """A row for each `Term`: `MIXED_COLUMNS`, then the effect in each data set."""
    import pandas as pd

    levels = level_columns(fits[dag.nodes[0]].levels, MIXED_COLUMNS)
    rows: list[tuple[Any, ...]] = []
    for parent, child in dag.arcs:
        for term in arc_terms(fits, parent, child):
            ends = t_interval(term.effect, term.se, term.df, interval)
            opposite = np.mean(np.sign(term.own) * np.sign(term.effect) < 0)
            told = (term.level, child, term.outcome, term.scale, str(fits[child].pooling))
            numbers = (term.reported(term.effect), term.se, term.df, *term.reported(ends))
            own = (term.between_sd, opposite, *term.reported(term.own))
            rows.append((parent, *told, *numbers, *own))
    return pd.DataFrame(rows, columns=pd.Index([*MIXED_COLUMNS, *levels], dtype=object))


def _terms_by_data_set(dag: Dag, fits: Mapping[str, LocalFit], interval: float) -> pd.DataFrame:
    import pandas as pd

    rows: list[tuple[Any, ...]] = []
    for parent, child in dag.arcs:
        for term in arc_terms(fits, parent, child):
            ends = term.reported(t_interval(term.own, term.own_se, term.own_df, interval))
            own = (term.reported(term.own), term.own_se, term.own_df, ends[:, 0], ends[:, 1])
            told = (parent, term.level, child, term.outcome, term.scale)
            rows += [(*told, *each) for each in zip(fits[child].levels, *own, strict=True)]
    return pd.DataFrame(rows, columns=list(_MIXED_LONG))


def arc_terms(fits: Mapping[str, LocalFit], parent: str, child: str) -> Iterator[Term]:
    """The effects of an arc, one for each level of a discrete parent or child but the first."""
    fit, categories = fits[child], fits[parent].categories
    labels = labels_of([parent], [categories])
    for label, level in zip(labels, categories[1:] or ("",), strict=True):
        if isinstance(fit, GaussianFit):
            yield _linear_term(fit, fit.position(label), level)
        elif isinstance(fit, RegressionFit | TabularFit):
            yield from _log_terms(fit, label, level)


def _linear_term(fit: GaussianFit, k: int, level: str) -> Term:
    between = math.nan if fit.random_sd is None else float(fit.random_sd[k])
    effect, se, df = fit.population(k)
    new = math.hypot(se, between)
    if fit.intervals is not None and fit.intervals.new_se.size:
        new = float(fit.intervals.new_se[k])
    own = (fit.coef[:, k], *data_set_errors(fit, k))
    return Term(level, "", "difference", effect, se, df, between, new, *own)


def _log_terms(fit: RegressionFit | TabularFit, label: str, level: str) -> Iterator[Term]:
    columns = fit.columns
    scale = "odds ratio" if fit.categories else "rate ratio"
    found = fit.effects
    for c, outcome in enumerate(fit.categories[1:] or ("",)):
        k = c * len(columns) + columns.index(label)
        own = found.own[:, k]
        yield Term(
            level,
            outcome,
            scale,
            float(found.effect[k]),
            float(found.se[k]),
            float(found.df[k]),
            float(found.between_sd[k]),
            float(found.new_se[k]),
            own,
            found.own_se[:, k],
            np.full_like(own, np.inf),
        )
