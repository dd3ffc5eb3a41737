"""How sure effects on discrete nodes and counts are where cells are missing, by Rubin's rules."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from poolbn.moments.data import Data
from poolbn.nodes import regression, tabular
from poolbn.nodes.imputed import rubin
from poolbn.nodes.logeffects import LogEffects
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit

Fit = TypeVar("Fit", bound=TabularFit | RegressionFit)

_IMPUTATIONS = 20


def honest_kind(fit: Fit, table: Data) -> Fit:
    """The fit with effects that contain what missing cells leave open, made when asked for."""
    out = (table.missing == table.n[:, None])[:, table.names.index(fit.child)]
    left_out = tuple(level for level, lacks in zip(table.levels, out, strict=True) if lacks)
    made = replace(fit, left_out=left_out)
    columns = [table.names.index(name) for name in (fit.child, *fit.parents)]
    if not fit.parents or not fit.status.ok or not table.missing[:, columns].any():
        return made
    return replace(made, later=partial(_effects, fit, table))


def with_all(fit: Fit) -> Fit:
    """The fit with effects that are made."""
    return fit if fit.later is None else replace(fit, saved_effects=fit.effects, later=None)


def _effects(fit: TabularFit | RegressionFit, table: Data) -> LogEffects:
    """Intervals of effects in data sets are those of completed tables, by the model of the fit.

    Those of the population are uncertain for the spread of data sets' own estimates, and for what
    completed tables leave open. Tests of equal effects count the rows that tell of the family.
    """
    known = fit.effects
    at = table.names.index
    share = table.share(at(fit.child), [at(name) for name in fit.parents])
    known = known._replace(equal=known.equal * [share, 1.0])
    if table.provisional:
        return known
    each = [_fitted(fit, table.drawn(k)) for k in range(_IMPUTATIONS)]
    found = [of for of in each if of is not None]
    if len(found) < 2:
        return known
    many = np.full_like(known.own_se, np.inf)
    own, se, _ = rubin([of.own for of in found], [of.own_se for of in found], [many])
    off = np.hypot(se, own - known.own)  # around the estimates of the fit
    made = known._replace(own_se=np.where(np.isfinite(off), off, known.own_se))
    within = [of.se for of in found] if isinstance(fit.pooling, Complete) else [known.se]
    _, se, df = rubin([of.effect for of in found], within, [known.df])
    # Degrees of freedom of a spread between data sets are few, and stay.
    return made._replace(se=se, df=df if isinstance(fit.pooling, Complete) else known.df)


def _fitted(fit: TabularFit | RegressionFit, table: Data) -> LogEffects | None:
    """Effects in a completed table; None where its fit has no likelihood."""
    how = fit.pooling
    assert isinstance(how, Complete | NoPooling | Partial)
    if isinstance(fit, TabularFit):
        one: TabularFit | RegressionFit = tabular.with_effects(fit, table, tests=False)
    else:
        made = regression.fit_regression(table, fit.child, fit.parents, fit.response, how)
        one = regression.with_effects(made, table, tests=False)
    return one.saved_effects if one.status.ok else None
