"""`compare`: which pooling predicts best the rows that it was not learned from."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from poolbn import metrics
from poolbn.arguments import is_list
from poolbn.assess.comparison import POOLED_RESIDUALS, Comparison
from poolbn.assess.folds import Folds, check_folds, deal, deal_incomplete, deal_table
from poolbn.errors import DataError, Option, OptionError, check_count
from poolbn.inference.heldout import held_out
from poolbn.learning import Plan, SearchOptions, as_plan, check_keywords
from poolbn.moments.cases import list_of_names
from poolbn.moments.checks import warn
from poolbn.moments.data import Data, is_data
from poolbn.moments.reading import check_reading
from poolbn.moments.standardised import standardise
from poolbn.moments.table import as_table, gathered
from poolbn.network.network import Network
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.model import Choice
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.run.parallel import available_cores, map_measured
from poolbn.run.progress import Progress
from poolbn.tables import data
from poolbn.tables.grouping import Group
from poolbn.tables.kinds import ColumnKind, has_levels, is_normal
from poolbn.tables.missing import Missing

Floats = NDArray[np.float64]
_RESIDUALS = Partial(residuals="pooled")
_LEFT_OUT = 20  # upper bound of the data sets that are left out in turn


def compare(
    source: object,
    *,
    group: Group = None,
    columns: Iterable[str] | None = None,
    kinds: Mapping[str, ColumnKind] | None = None,
    missing: Missing = "error",
    inputs: Iterable[str] = (),
    folds: int = 10,
    poolings: Sequence[str | Choice] = ("complete", "none", "partial", _RESIDUALS),
    seed: int = 0,
    **learning: Unpack[SearchOptions],
) -> Comparison:
    """Find out by cross-validation which pooling predicts new rows and new data sets best.

    The rows of each data set go to folds at random. Networks learned from the other folds, graph
    and all, predict each fold. A data set with one row is never held out. Then each data set is
    left out as a whole, and networks of the others predict it from the population, where their
    pooling has one.

    Rows are read once and become sufficient statistics. Of more than 20,000 rows a random sample of
    20,000 is predicted; of more than 20 data sets, 20 at random are left out in turn.

    Columns may be of all kinds; rows are then held in memory. A level that has no probability, as
    none of the rows learned from has it, counts as if half a row of its data set had.

    Args:
        source: anything with rows that `pb.stats` takes, or a `pb.Table`.
        group: the column that says which data set a row came from.
        columns: the columns to keep; None for all but `group`.
        kinds: of some columns, as for `pb.table`.
        missing: "error" refuses missing values; "drop" leaves out the rows that have one; "em"
            learns from what they have, and predicts that of those that are held out. It holds the
            rows in memory, and errors of single variables are those of rows without gaps.
        inputs: columns that may be parents but never children, see `pb.stats`.
        folds: how many; at most as many as rows.
        poolings: names or objects, as for `pb.learn`; `pb.Partial(residuals="pooled")` is called
            "pooled residuals".
        seed: random seed of folds and samples.
        learning: `score`, `search` and `constraints`, as for `pb.learn`.

    Raises:
        DataError: the source cannot be used, or has no row to hold out.
        OptionError: an option has a value that it does not take.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> found = pb.compare(trial, group="clinic", missing="drop", folds=5)
        >>> found.table()[["arcs", "loglik", "difference", "se"]].round(3)
                          arcs  loglik  difference     se
        pooling
        complete             2 -15.173       0.030  0.016
        none                 2 -15.144       0.000  0.000
        partial              2 -15.144       0.001  0.009
        pooled residuals     2 -15.147       0.003  0.003
        >>> found.headline
        'Networks with no pooling predict held-out rows best, but partial pooling, ...
    """
    check_folds(folds)
    check_count(seed=seed)
    check_reading(group, columns, inputs)
    check_keywords(learning, (*SearchOptions.__annotations__, "poolings"), "pb.compare")
    plans = _plans(poolings, learning)
    if is_data(source) and not source.has_rows:
        raise DataError("sufficient statistics hold no rows to hold out; give the rows themselves")
    dealt = _dealt(source, group, columns, kinds, missing, inputs, folds, seed, plans.values())
    _check(dealt)
    warn(dealt.total)
    return _compare(plans, dealt, seed)


def _dealt(
    source: object,
    group: Group,
    columns: Iterable[str] | None,
    kinds: Mapping[str, ColumnKind] | None,
    missing: Missing,
    inputs: Iterable[str],
    folds: int,
    seed: int,
    plans: Iterable[Plan],
) -> Folds:
    """The rows, dealt to folds."""
    if is_data(source) or not _is_continuous(source, group, columns, kinds, missing):
        if is_data(source) and columns is not None:
            source = source.select(columns)
        found = gathered(
            source, group=group, columns=columns, kinds=kinds, missing=missing, inputs=inputs
        )
        for plan in plans:
            plan.allowed(found)
        return deal_table(as_table(found), folds, seed)
    rows = data.read(source, group=group, columns=columns, missing=missing)
    for plan in plans:
        plan.constraints.on(rows.names)
    return (deal_incomplete if missing == "em" else deal)(rows, folds, seed, inputs)


def _is_continuous(
    source: object,
    group: Group,
    columns: Iterable[str] | None,
    kinds: Mapping[str, ColumnKind] | None,
    missing: Missing,
) -> bool:
    """Whether all columns of a source are continuous."""
    columns = None if columns is None else list_of_names("columns", columns)
    _, found = data.prepare_kinds(
        source, group=group, columns=columns, missing=missing, kinds=kinds
    )
    return all(is_normal(kind) for kind in found)


def _is_alone(fit: LocalFit) -> bool:
    """Whether a node says nothing of a new data set."""
    return not fit.has_population


def _plans(poolings: Sequence[str | Choice], learning: SearchOptions) -> dict[str, Plan]:
    if isinstance(poolings, str) or not is_list(poolings):
        raise OptionError(
            Option("poolings", poolings), " is not a list; name the poolings to compare"
        )
    plans: dict[str, Plan] = {}
    for pooling in poolings:
        name = pooling if isinstance(pooling, str) else repr(pooling)
        if not isinstance(pooling, np.ndarray) and pooling == _RESIDUALS:
            name = POOLED_RESIDUALS
        if name in plans:
            raise OptionError(f"the pooling {name!r} is named twice")
        plans[name] = as_plan(pooling=pooling, **learning)
    if not plans:
        raise OptionError(Option("poolings", poolings), " is empty; name the poolings to compare")
    return plans


def _check(dealt: Folds) -> None:
    """Raise for data on which poolings cannot be compared."""
    total = dealt.total
    if len(total.levels) < 2:
        raise DataError(
            f"there is one data set, {total.levels[0]!r} with {total.n_rows} rows; a comparison "
            "needs two or more"
        )
    if (dealt.fold < 0).all():
        raise DataError(
            f"each of the {len(total.levels)} data sets has one row, so none can be held out; a "
            "comparison needs data sets with two rows or more"
        )


@dataclass(frozen=True, eq=False)
class _Task:
    """Learn from some rows and predict others."""

    plan: Plan
    train: Data
    values: Floats  # rows to predict, (m, N)
    codes: NDArray[np.int64]  # their data sets, as positions in `train.levels`, (m,)
    new: Hashable = None  # the data set that all of them are from, if it is not one of these
    categories: tuple[tuple[str, ...], ...] = ()  # levels of columns, where these are of all kinds


@dataclass(frozen=True, eq=False)
class _Result:
    """How good the predictions are."""

    loglik: float  # per row; -inf without a fit, NaN without a prediction
    rows: int  # without gaps
    known: Floats  # squared errors of each variable in these, summed, (N,)
    unknown: Floats
    data_set: NDArray[np.int64]  # the most probable one of each row, (m,)
    trouble: str = ""  # why nothing was predicted


def _compare(plans: dict[str, Plan], dealt: Folds, seed: int) -> Comparison:
    total = dealt.total
    order = np.argsort(dealt.fold, kind="stable")
    folds, first = np.unique(dealt.fold[order], return_index=True)
    sets = np.setdiff1d(dealt.codes, _alone(total))
    if len(sets) > _LEFT_OUT:
        sets = np.sort(np.random.default_rng(seed).choice(sets, _LEFT_OUT, replace=False))
    held = np.split(order, first[1:])
    if folds[0] < 0:  # rows that are never held out
        folds, held = folds[1:], held[1:]
    away = [np.flatnonzero(dealt.codes == j) for j in sets]
    levels = total.categories
    tasks = [
        _Task(plan, dealt.train[k], dealt.values[at], dealt.codes[at], categories=levels)
        for k, at in zip(folds, held, strict=True)
        for plan in plans.values()
    ]
    for j, at in zip(sets, away, strict=True):
        rest = _without(total, int(j))
        last = np.full(len(at), len(rest.levels))
        new = total.levels[j]
        tasks += [_Task(plan, rest, dealt.values[at], last, new, levels) for plan in plans.values()]
    networks, results = _run(plans, total, tasks)
    P, cut = len(plans), len(plans) * len(folds)
    of_folds = [results[:cut][p::P] for p in range(P)]
    of_sets = [results[cut:][p::P] for p in range(P)]
    sd = _spreads(total) if total.has_rows else standardise(total.stats()).scale
    rows = np.array([len(at) for at in held])
    whole = np.array([[result.rows for result in of] for of in of_folds])
    actual = [dealt.codes[at] for at in held]
    return Comparison(
        networks=networks,
        rows=rows,
        loglik=np.array([[result.loglik for result in of] for of in of_folds]),
        left_out=tuple(total.levels[j] for j in sets),
        left_out_rows=np.array([len(at) for at in away]),
        left_out_loglik=np.array([[result.loglik for result in of] for of in of_sets]),
        known=_relative([[result.known for result in of] for of in of_folds], whole, sd),
        unknown=_relative([[result.unknown for result in of] for of in of_folds], whole, sd),
        f1=np.array([_f1(of, actual, len(total.levels)) for of in of_folds]),
        trouble=tuple(_troubles(of, "folds") for of in of_folds),
        no_population=tuple(_troubles(of, "data sets") for of in of_sets),
    )


def _spreads(table: Data) -> Floats:
    """Standard deviations of columns in all rows; of a discrete one over all its levels, (N,)."""
    out = np.empty(len(table.names))
    for i, column in enumerate(table.cases(table.names, incomplete=True).columns):
        out[i] = np.nanstd(column) or 1.0
        if has_levels(table.kinds[i]):
            times = np.bincount(column[~np.isnan(column)].astype(np.int64))
            share = times / times.sum()
            out[i] = np.sqrt((share * (1 - share)).sum())
    return out


def _alone(total: Data) -> NDArray[np.intp]:
    """Data sets that alone have a column: without them there is nothing to learn it from."""
    there = total.n[:, None] > total.missing
    return np.flatnonzero(there[:, there.sum(axis=0) == 1].any(axis=1))


def _without(total: Data, j: int) -> Data:
    """All data sets but one."""
    others = [i for i in range(len(total.levels)) if i != j]
    return total.data_sets(others, [total.levels[i] for i in others])


def _run(
    plans: dict[str, Plan], total: Data, tasks: list[_Task]
) -> tuple[dict[str, Network], list[_Result]]:
    found: dict[int, _Result] = {}
    with Progress() as progress:
        networks = {name: plan.learned(total) for name, plan in plans.items()}
        for k, result in map_measured(_assess, tasks, available_cores()):
            found[k] = result
            progress(lambda: f"comparing: {len(found)} of {len(tasks)} networks")
    return networks, [found[k] for k in range(len(tasks))]


def _assess(task: _Task) -> _Result:
    """Learn and predict."""
    plan, values, codes = task.plan, task.values, task.codes
    if task.new is not None and (why := _no_population(plan.pooling, task.train)):
        return _nothing(task, why, np.nan)
    net = plan.learned(task.train, quick=True)
    for node, fit in net.fits.items():
        if not fit.status.ok:
            return _nothing(task, f"{node!r}: {fit.status}: {fit.detail}", -np.inf)
        if task.new is not None and _is_alone(fit):
            return _nothing(task, f"{node!r} is without pooling, so there is no population", np.nan)
    if task.new is not None:
        net = net.adapt(name=(task.new,))  # like no other name: of 7 and 007 each is left out
    engine, rows = net._engine(plugin=False), held_out(task.train, task.categories, values)
    found = engine.judged(rows, codes, net.n, guess=task.new is None)
    loglik = float(found.log_density.mean())
    if found.data_set is None:
        return _nothing(task, "", loglik)
    whole = rows.whole
    errors = net._engine(plugin=True).squares(rows.some(whole), codes[whole], net.n)
    return _Result(loglik, len(whole), *errors, found.data_set)


def _no_population(pooling: Choice, train: Data) -> str:
    """Why networks say nothing of a new data set, if that is known without learning them."""
    if isinstance(pooling, NoPooling):
        return "without pooling there is no population to predict a new data set from"
    if len(train.levels) < 2 and not isinstance(pooling, Complete):
        return "a population is learned from two data sets at least"
    return ""


def _nothing(task: _Task, trouble: str, loglik: float) -> _Result:
    nan = np.full(task.values.shape[1], np.nan)
    return _Result(loglik, 0, nan, nan, np.full(len(task.values), -1), trouble)


def _relative(squares: list[list[Floats]], rows: NDArray[np.int64], sd: Floats) -> Floats:
    """Root mean square errors over standard deviations, in the folds that have them, (P, N)."""
    each = np.array(squares)  # (P, K, N)
    n = rows.sum(axis=1)
    mean = np.nansum(each, axis=1) / np.where(n > 0, n, np.nan)[:, None]
    return np.asarray(np.sqrt(mean) / sd)


def _f1(results: list[_Result], actual: list[NDArray[np.int64]], levels: int) -> float:
    """The mean F1 of the data sets, in the folds that have predictions."""
    have = [k for k, result in enumerate(results) if not result.trouble]
    if not have:
        return float("nan")
    true = np.concatenate([actual[k] for k in have])
    guess = np.concatenate([results[k].data_set for k in have])
    return metrics.f1(true.tolist(), guess.tolist(), range(levels)).mean


def _troubles(results: list[_Result], what: str) -> str:
    """What went wrong, in words: how often, and the first time why."""
    reasons = [result.trouble for result in results if result.trouble]
    return f"{reasons[0]} (in {len(reasons)} of {len(results)} {what})" if reasons else ""
