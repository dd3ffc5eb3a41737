"""Nodes that are not continuous: the models that they may have, and the best of these.

A discrete node whose parents are discrete has a table of probabilities, or an additive logistic
regression, where it has another parent the latter. A node without parents has a table, and so have
small data sets where that has no more parameters. A table with many parents has more parameters
than an additive regression with one parent more: if only tables were looked at, a parent that means
nothing could come in for changing the form. A table has no place for units inside data sets:
where there are some, every discrete node has a logistic regression.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from poolbn.errors import DataError, Option, OptionError
from poolbn.moments.data import Data, sums_with
from poolbn.nodes.auto import Candidate, candidates
from poolbn.nodes.design import responses, varying_parent
from poolbn.nodes.given import INPUT, INPUT_DETAIL, input_fit
from poolbn.nodes.localfit import Counts, LocalFit, Status
from poolbn.nodes.model import Choice
from poolbn.nodes.ordinal import OrdinalFit
from poolbn.nodes.poolings import NoPooling, Partial
from poolbn.nodes.problems import problems_of
from poolbn.nodes.regression import (
    RegressionFit,
    fit_regression,
    regression_bound,
    regression_score,
)
from poolbn.nodes.rowscores import Fitted, Step, is_hopeless
from poolbn.nodes.tabular import (
    TabularFit,
    counts_of,
    fit_tabular,
    is_small,
    saturated_loglik,
    sizes_of,
    tabular_scores,
)
from poolbn.tables.kinds import has_levels, is_normal, is_ordered
from poolbn.wording import counted, listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_FEW_ROWS = 10  # of a data set, on average
_NO_LOSS = 1e-9  # of the log-likelihood of a child that is constant
_MOST = 150  # coefficients of a regression; their number cubed is what a step costs

Names = tuple[str, Sequence[str]]  # a node and its parents


def poolings(model: Choice, data: Data) -> tuple[Candidate, ...]:
    """The poolings that a final fit may have, as far as they matter here; a search has the first.

    Raises:
        OptionError: one is for continuous nodes only.
    """
    hows = candidates(model, data.levels)
    for how in hows:
        if isinstance(how, Partial) and how.method != "ml":
            raise OptionError(
                Option("method", how.method),
                " is for continuous columns; with others use pb.Partial()",
            )
        if isinstance(how, Partial) and (why := how.unknown_slopes(data.names)):
            raise OptionError(*why)
    # Residuals are those of continuous nodes.
    return tuple(
        Partial(random=how.random, discrete=how.discrete)
        if isinstance(how, Partial)
        else type(how)(discrete=how.discrete)
        for how in hows
    )


def scores(
    table: Data,
    families: Sequence[Names],
    hows: Sequence[Candidate],
    each: Floats,
    *,
    final: bool = False,
    keep: Callable[[Names, Fitted], None] = lambda family, fitted: None,
) -> Floats:
    """Log-likelihoods of families minus penalties, each by its best model.

    Args:
        table: the rows.
        families: nodes that are not continuous, with their parents.
        hows: the poolings of `poolings`.
        each: the penalty of a parameter of each kind of `Counts`, (5,).
        final: whether regressions start from everywhere.
        keep: is given the regressions with random effects.
    """
    certain = [len(table.categories[table.names.index(child)]) == 1 for child, _ in families]
    if any(certain):  # one level is left, as in a part of the rows
        values = np.zeros(len(families))
        others = np.flatnonzero(~np.array(certain)).tolist()
        rest = [families[m] for m in others]
        values[others] = scores(table, rest, hows, each, final=final, keep=keep)
        return values
    values = np.full(len(families), -np.inf)
    possible = [
        m for m, family in enumerate(families)
        if table.unit is None or varying_parent(table, *family) is None
    ]  # fmt: skip
    if len(possible) < len(families):
        some_of_them = [families[m] for m in possible]
        values[possible] = scores(table, some_of_them, hows, each, final=final, keep=keep)
        return values
    seen = {
        m: counts_of(table, *family) for m, family in enumerate(families)
        if any(_has_table(table, family, how) for how in hows)
    }  # fmt: skip
    for how in hows:
        at = [m for m in seen if _has_table(table, families[m], how)]
        if at:
            made = tabular_scores([seen[m] for m in at], how, each)
            values[at] = np.maximum(values[at], made)
    for m, family in enumerate(families):
        some = [
            how for how in hows
            if _has_regression(table, family, how)
            # Score tests of further parents start from regressions with random effects.
            and ((isinstance(how, Partial) and not final)
                 or _may_beat(table, family, how, each, seen.get(m), float(values[m])))
        ]  # fmt: skip
        if some:
            tell = partial(keep, family)
            each_kind = (
                regression_score(problems, some, each, final=final, keep=tell)
                for problems in problems_of(table, *family)
            )
            sure, rough = zip(*each_kind, strict=True)
            best = max(values[m], *sure)
            values[m] = best if best > -np.inf else max(rough)
    return values


def _may_beat(
    table: Data,
    family: Names,
    how: Candidate,
    each: Floats,
    counts: NDArray[np.int64] | None,
    best: float,
) -> bool:
    """Whether a regression may have a higher score than a table; most cannot.

    Its likelihood is at most that of a table with probabilities of its own for each configuration,
    and with random effects at most that with such a table for each data set.

    Args:
        table: the rows.
        family: a discrete node and its parents.
        how: of the regression.
        each: the penalty of a parameter of each kind of `Counts`, (3,).
        counts: see `counts_of`; None where there is no table.
        best: the score of the best table.
    """
    if counts is None:
        return True
    child, parents = family
    d, between = _coefficients(table, family), 0
    if isinstance(how, Partial):
        *sizes, _ = sizes_of(table, child, parents)
        rows = counts.sum(axis=-1).reshape(-1, len(table.levels), *sizes).sum(axis=0)
        axes = range(1, rows.ndim)
        q = 1 + sum(_varying(rows.sum(axis=tuple(a for a in axes if a != own))) for own in axes)
        between = q * (q + 1) // 2
    own = Counts(0, 0, len(table.levels) * d) if isinstance(how, NoPooling) else None
    charge = float(np.array(own or Counts(d, between, 0)) @ each)
    return saturated_loglik(counts, how) - charge > best


def _varying(rows: NDArray[np.int64]) -> int:
    """Levels but the first that occur beside others in some data set, from rows (F, levels)."""
    beside = (rows > 0) & (rows < rows.sum(axis=1, keepdims=True))
    return int(beside.any(axis=0)[1:].sum())


def table_score(table: Data, family: Names, how: Candidate, each: Floats) -> float:
    """That of a table of probabilities; -inf where the node has none."""
    if not _has_table(table, family, how):
        return -math.inf
    return float(tabular_scores([counts_of(table, *family)], how, each)[0])


def bounds(
    table: Data, families: Sequence[Names], hows: Sequence[Candidate], each: Floats
) -> Floats:
    """Upper bounds of scores that cost less; NaN where there are none.

    A table costs little: where it competes with a regression its score is one of two bounds.
    """
    values = np.full(len(families), np.nan)
    mixed = [how for how in hows if isinstance(how, Partial)]
    for m, family in enumerate(families):
        child, _ = family
        levels = len(table.categories[table.names.index(child)])
        some = [how for how in hows if _has_regression(table, family, how)]
        if levels <= 1 or not any(how in mixed for how in some):
            continue
        (problems,) = problems_of(table, *family)
        values[m] = regression_bound(problems, some, each)
        best = max(table_score(table, family, how, each) for how in hows)
        values[m] = max(values[m], best)
    return values


def score_of_deviations(table: Data, family: Names, how: Partial, each: Floats) -> float:
    """That of a regression on deviations of parents from their means in data sets.

    Levels of data sets are random, and go together with no such deviation. It is for tables with
    units inside data sets.
    """
    child, parents = family
    if varying_parent(table, child, parents) is not None:
        return -math.inf
    return max(
        regression_score(one, [how], each, final=False)[0]
        for one in problems_of(table, child, parents, inside=True)
    )


def hopeless(
    table: Data, family: Names, more: Sequence[str], how: Partial, each: Floats, at: Fitted | None
) -> list[bool]:
    """Which parents more would lower the score of a family, as far as a score test can tell.

    The test is from its regression, `at`; without parents a table has none.
    """
    child, parents = family
    if is_ordered(table.kind(child)):  # rows about thresholds are not those of the table
        return [False] * len(more)
    levels = len(table.categories[table.names.index(child)])
    kept = [] if at is None else [at]
    if not kept and not parents and levels > 1:
        (problems,) = problems_of(table, child, ())
        regression_score(problems, [how], each, final=False, keep=kept.append)
    if levels == 1 or not kept or not kept[0].tells:
        return [False] * len(more)
    at = kept[0]
    own = float(scores(table, [family], [how], each)[0]) if _tabular(table, family) else at.score
    step, found = Step(table, child, parents, at), list[bool]()
    for name in more:
        if table.unit is not None and varying_parent(table, child, [name]) is not None:
            found.append(True)
            continue
        wider = child, sorted([*parents, name])
        if _has_table(table, wider, how):
            counts = [counts_of(table, *wider)]
            if float(tabular_scores(counts, how, each)[0]) > own:
                found.append(False)
                continue
        width = max(len(table.categories[table.names.index(name)]) - 1, 1)
        C, r = step.C, at.basis.varying
        varies = how.random == "full" or (how.random != "intercept" and name in how.random)
        new = (r + width) * (r + width + 1) // 2 - r * (r + 1) // 2 if varies else 0
        charge = float(np.array(Counts(C * width, new, 0)) @ each) + own - at.score
        gain = step.gain(name, varies=varies)
        found.append(is_hopeless(gain, charge, new))
    return found


def gains(
    table: Data, child: str, parents: Sequence[str], form: str, rank: NDArray[np.int64]
) -> list[tuple[Floats, Floats]]:
    """What parents gain over none, as logarithms of likelihoods, and the parameters it takes.

    For each model that the node may have: in each data set, or, if `rank` has one number, in all
    rows together, (J,) each; 0 where rows cannot tell.

    Args:
        table: the rows.
        child: a discrete node or a count.
        parents: its parents.
        form: which models discrete nodes with discrete parents may have, see `Partial.discrete`.
        rank: of the parents' columns, (J,).
    """
    J, family = len(rank), (child, parents)
    if not parents:
        return [(np.zeros(J), np.zeros(J))]
    found = []
    n = table.n if J > 1 or len(table.n) == 1 else np.array([table.n_rows])
    if _tabular(table, family) and form != "logit" and is_small(table, *family):
        counts = counts_of(table, child, parents)
        counts = counts.mean(axis=0) if counts.ndim > 3 else counts
        counts = counts if len(counts) == J else counts.sum(axis=0, keepdims=True)
        seen = (counts.sum(axis=2) > 0).sum(axis=1), (counts.sum(axis=1) > 0).sum(axis=1)
        z = _logliks(counts).sum(axis=1) - _logliks(counts.sum(axis=1))
        found.append((z, (seen[0] - 1.0) * (seen[1] - 1.0)))
    if (
        not _tabular(table, family) or form == "logit" or (form == "auto" and len(parents) > 1)
    ) and (_coefficients(table, family) <= _MOST):
        best = None
        for with_parents, without in zip(
            problems_of(table, child, parents), problems_of(table, child, ()), strict=True
        ):
            pair = (with_parents.plain, without.plain)
            one, none = (p.complete() if J == 1 else p.none() for p in pair)
            each = float(none.loglik.sum()) - pair[0].dispersed * float(np.log(n).sum()) / 2
            d = pair[0].C * rank.astype(np.float64)
            told = (n > d + pair[0].C) & (none.loglik < -_NO_LOSS)
            gain = np.where(told, np.maximum(one.loglik - none.loglik, 0.0), 0.0)
            if best is None or each + gain.sum() > best[0]:
                best = each + gain.sum(), gain, np.where(told, d, 0.0), each
        assert best is not None
        found.append(best[1:3])
    return found or [(np.full(J, -np.inf), np.zeros(J))]


def _logliks(counts: NDArray[np.int64]) -> Floats:
    """Of rows by level, (..., K), with the shares of levels among them."""
    n = counts.sum(axis=-1, keepdims=True)
    share = np.divide(counts, n, out=np.ones(counts.shape), where=counts > 0)
    return np.asarray((counts * np.log(share)).sum(axis=-1))


def fit(
    table: Data, child: str, parents: Sequence[str], hows: Sequence[Candidate], each: Floats
) -> LocalFit:
    """The final fit of a node that is not continuous, by its best model; see `scores`."""
    family, fits = (child, parents), list[TabularFit | RegressionFit]()

    def worth(fit: TabularFit | RegressionFit) -> float:
        return fit.loglik - float(np.array(fit.counts) @ each)

    fits += [
        fit_tabular(table, child, parents, how) for how in hows if _has_table(table, family, how)
    ]
    counts = counts_of(table, *family) if fits else None
    for how in hows:
        most = max(map(worth, fits), default=-math.inf)
        if _has_regression(table, family, how) and _may_beat(
            table, family, how, each, counts, most
        ):
            kinds = responses(table, child)
            made = _regression(table, child)
            fits += [fit_regression(table, child, parents, kind, how, made) for kind in kinds]
    if not fits:
        raise _too_large(table, family)
    sure = [fit for fit in fits if fit.status.ok and fit.status is not Status.APPROXIMATE]
    best = max(sure or fits, key=worth)
    if (varies := varying_parent(table, child, parents)) is not None:
        return replace(
            best,
            loglik=-math.inf,
            status=Status.NO_RESIDUAL_VARIANCE,
            detail=f"{child!r} is constant in each unit, and its parent {varies!r} is not; leave "
            "that arc out",
        )
    if table.provisional:
        return best  # of a round that another one follows: nobody asks how sure effects are
    return best.with_effects(table)


def _regression(table: Data, child: str) -> type[RegressionFit]:
    """Which class the fits of a node are."""
    return OrdinalFit if is_ordered(table.kind(child)) else RegressionFit


def _too_large(table: Data, family: Names) -> DataError:
    child, parents = family
    levels = len(table.categories[table.names.index(child)])
    of = f"{levels} levels of {child!r}" if levels else repr(child)
    size = f"{_coefficients(table, family):,} coefficients"
    if _tabular(table, family):
        cells = float(np.prod(sizes_of(table, child, parents), dtype=float))
        size = f"{cells / levels:,.0f} configurations in each of {len(table.levels)} data sets"
    return DataError(
        f"{counted(len(parents), 'parent')} and {of} make {size}, too many for a model; use fewer "
        "parents, or coarser levels"
    )


def input_of(table: Data, name: str) -> LocalFit:
    """An input: what each data set has of it; no likelihood, no parameters."""
    if is_normal(table.kind(name)):
        return input_fit(sums_with(table, [name]), name)
    made: LocalFit
    if has_levels(table.kind(name)) and not is_ordered(table.kind(name)):
        made = fit_tabular(table, name, (), NoPooling())
    else:
        response, fit = responses(table, name)[0], _regression(table, name)
        made = fit_regression(table, name, (), response, NoPooling(), fit)
    return replace(
        made,
        pooling=INPUT,
        loglik=0.0,
        counts=Counts(0, 0, 0),
        status=Status.GIVEN,
        detail=INPUT_DETAIL,
    )


def in_all_data_sets(fit: LocalFit, data: Data) -> LocalFit:
    """The fit of a node with the data sets in which it was set, that it is not about.

    Where the intervention is hard, it has no parents there, and the distribution of its values:
    mean and variance, the shares of levels, or of a count the mean. Where it is soft, it has
    coefficients of its own.

    Args:
        fit: of the data sets in which the node was not set.
        data: all of them.
    """
    child, made, told = data.names.index(fit.child), fit, fit.detail
    if fit.is_given:
        return fit
    hard, soft = data.levels_set(child, "hard"), data.levels_set(child, "soft")
    if hard:
        made = made.followed_by(fit.set_to(data.only(hard)))
        told += f"; set in {listed(list(map(repr, hard)))}, left out of its likelihood"
    if soft:
        made = made.followed_by(fit.changed_in(data.only(soft)))
        told += f"; changed in {listed(list(map(repr, soft)))}, with parameters of its own"
    return replace(made.in_order(data.levels), detail=told) if hard or soft else fit


def _tabular(table: Data, family: Names) -> bool:
    """Whether all columns are discrete, and the child's levels have no order."""
    child, parents = family
    levels = all(has_levels(table.kind(name)) for name in (child, *parents))
    return levels and not is_ordered(table.kind(child))


def _asked(how: Candidate) -> str:
    """How a discrete node with discrete parents is modelled; a table has no slopes to choose."""
    return "logit" if isinstance(how, Partial) and how.random != "full" else how.discrete


def chooses_tables(model: Choice, data: Data) -> bool:
    """Whether a table is one of the models that discrete nodes with discrete parents may have."""
    first = poolings(model, data)[0]
    return first.discrete == "auto" and _asked(first) == "auto"


def _has_table(table: Data, family: Names, how: Candidate) -> bool:
    tables = table.unit is None and _tabular(table, family)
    return tables and _asked(how) != "logit" and is_small(table, *family)


def _coefficients(table: Data, family: Names) -> int:
    """Of a regression: as many as columns, for each level but one."""
    child, parents = family
    levels = len(table.categories[table.names.index(child)])
    own = (len(table.categories[table.names.index(name)]) for name in parents)
    columns = sum(size - 1 if size else 1 for size in own)
    if is_ordered(table.kind(child)):
        return columns + levels - 1
    return max(levels - 1, 1) * (columns + 1)


def _has_regression(table: Data, family: Names, how: Candidate) -> bool:
    if _coefficients(table, family) > _MOST:
        return False
    if table.unit is not None or not _tabular(table, family) or _asked(how) == "logit":
        return True
    if how.discrete == "table":
        return False
    if isinstance(how, Partial):
        return not (is_small(table, *family) and _table_is_enough(table, family))
    return len(family[1]) > 1  # with one parent, and without random effects, it is the table


def _table_is_enough(table: Data, family: Names) -> bool:
    """Whether there are no parents, or few rows and more random effects than a table has cells.

    Tables of few rows have exact likelihoods and means. A regression is still better than a table
    of many configurations.
    """
    if not family[1] or table.n_rows >= _FEW_ROWS * len(table.levels):
        return not family[1]
    *own, levels = sizes_of(table, *family)
    d = _coefficients(table, family)
    q = d // (levels - 1)
    return d + q * (q + 1) // 2 > math.prod(own) * (levels - 1)
