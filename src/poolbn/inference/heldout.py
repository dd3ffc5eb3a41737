"""Rows that networks were not learned from: densities, and each cell given all others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from poolbn.inference.assembled import LinearNetwork
from poolbn.inference.general import Answer, answers
from poolbn.inference.parts import MOST_SPACED, Mixed, Weighed, count_sizes, weigh
from poolbn.inference.plans import Effort, plan
from poolbn.moments.data import Data
from poolbn.nodes.predicting import COUNT

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_IMPOSSIBLE = -1e4  # log density of what cannot be, beside which all else is likely
_ROWS = 128  # that are predicted at a time
_NUMBERS = 2**21  # in an array of predictions from all data sets


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows as the network of other rows knows them."""

    # The cells, (n, N); NaN where missing. Where a level is not known there is the most common one.
    x: Floats
    strange: Flags  # the cells whose level is not known, (n, N)

    @property
    def whole(self) -> NDArray[np.intp]:
        """The rows without missing cells."""
        return np.flatnonzero(~np.isnan(self.x).any(axis=1))

    def some(self, rows: NDArray[np.intp]) -> HeldOut:
        """Some of the rows."""
        return HeldOut(self.x[rows], self.strange[rows])


def held_out(train: Data, categories: tuple[tuple[str, ...], ...], values: Floats) -> HeldOut:
    """Rows, (n, N), coded by these levels, in the codes of a table that may lack some of them."""
    x, strange = values.copy(), np.zeros(values.shape, dtype=bool)
    for i, (own, every) in enumerate(zip(train.categories, categories, strict=True)):
        if own != every:
            code = {level: k for k, level in enumerate(own)}
            known = np.array([code.get(level, -1) for level in every])
            there = ~np.isnan(values[:, i])
            x[there, i] = known[values[there, i].astype(np.int64)]
            strange[:, i] = x[:, i] < 0
            x[strange[:, i], i] = _counted(
                train.cases([train.names[i]], incomplete=True).columns[0]
            ).argmax()
    return HeldOut(x, strange)


def _counted(codes: Floats) -> NDArray[np.int64]:
    """How often levels occur in a column."""
    return np.bincount(codes[~np.isnan(codes)].astype(np.int64))


def row_logs(mixed: Mixed, rows: HeldOut, n: NDArray[np.int64]) -> Floats:
    """Log densities of rows in all data sets, (r, F), over what missing cells may have been.

    In a row with missing cells one whose level is not known is missing too, and counts as if half
    a row of the data set had it; arguments as for `node_logs`.
    """
    out = np.empty((len(rows.x), len(mixed.levels)))
    whole = rows.whole
    out[whole] = node_logs(mixed, rows.some(whole), n).sum(axis=0)
    incomplete = np.setdiff1d(np.arange(len(out)), whole)
    least = _least(n)
    possible = tuple(replace(node, of=node.of.possible(least)) for node in mixed.nodes)

    def work(answer: Answer) -> None:
        out[incomplete[answer.rows]] = answer.log_z

    known = np.where(rows.strange, np.nan, rows.x)[incomplete]
    unknown = np.full(len(incomplete), -1)
    answers(replace(mixed, nodes=possible), known, unknown, [], Effort(), work, densities=True)
    out[incomplete] += rows.strange[incomplete].sum(axis=1, keepdims=True) * least
    return np.where(np.isneginf(out), least, out)


def _least(n: NDArray[np.int64]) -> Floats:
    """The log probability of what has none, in each data set."""
    return np.asarray(np.log(0.5 / np.maximum(n, 1)))


def node_logs(mixed: Mixed, rows: HeldOut, n: NDArray[np.int64]) -> Floats:
    """Log densities of all nodes given their parents, in all data sets, (N, r, F).

    What has no probability counts as if half a row of the data set had it, which has n, (F,).
    Inputs have 0.
    """
    r, F = len(rows.x), len(mixed.levels)
    sets, least = np.tile(np.arange(F), r), _least(n)
    out = np.zeros((len(mixed.nodes), r, F))
    for i, node in enumerate(mixed.nodes):
        if i not in mixed.inputs:
            above = {p: np.repeat(rows.x[:, p], F) for p in node.parents}
            found = node.log_density(np.repeat(rows.x[:, i], F), above, sets).reshape(r, F)
            none = rows.strange[:, i, None] | np.isneginf(found)
            out[i] = np.where(none, least, found)
    return out


def squares(
    mixed: Mixed, rows: HeldOut, logs: Floats, codes: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Squared errors of each node predicted from all others, summed over rows, (N,) each.

    Of a discrete node they are those of the indicators of all its levels. First with data sets
    known, `codes` (r,), then unknown; `logs` are those of `node_logs`.
    """
    total, known, unknown = logs.sum(axis=0), np.zeros(len(logs)), np.zeros(len(logs))
    with np.errstate(divide="ignore"):
        prior = np.log(mixed.prior)
    for t, node in enumerate(mixed.nodes):
        seen = [i for i in range(len(logs)) if i != t]
        (part,) = plan(mixed.nodes, mixed.order, mixed.inputs, seen, [t], drawn=False).parts
        closed = total - logs[list(part.factors)].sum(axis=0)
        sets = np.arange(len(mixed.levels))[None]
        for start in range(0, len(rows.x), _ROWS):
            at = slice(start, start + _ROWS)
            x = rows.x[at].copy()
            sizes = {}
            if node.levels == COUNT:
                largest = count_sizes(mixed, part, x, sets)
                sizes = {i: int(min(of.max(), MOST_SPACED)) for i, of in largest.items()}
            x[:, t] = np.nan
            rng = np.random.default_rng(0)  # nothing is drawn with one node hidden
            found = weigh(mixed, part, x, sets, [t], sizes=sizes, particles=1, rng=rng)
            log = prior + closed[at] + np.maximum(found.log_z, _IMPOSSIBLE)
            weight = np.exp(log - log.max(axis=1, keepdims=True))
            weight /= weight.sum(axis=1, keepdims=True)
            expected = _expected(found, t, node.levels)  # (r, F, K)
            actual = rows.x[at, t, None]
            if node.levels > 0:
                actual = (actual == np.arange(node.levels)) & ~rows.strange[at, t, None]
            own = expected[np.arange(len(x)), codes[at]]
            all_sets = (weight[..., None] * expected).sum(axis=1)
            # A level that is not known is one more, and had no probability.
            more = float(rows.strange[at, t].sum())
            known[t] += float(((own - actual) ** 2).sum()) + more
            unknown[t] += float(((all_sets - actual) ** 2).sum()) + more
    return known, unknown


def _expected(found: Weighed, t: int, levels: int) -> Floats:
    """Of a node: probabilities of levels, or the mean, in each data set, (r, F, K)."""
    if t in found.normals:
        return np.broadcast_to(found.normals[t].mean, found.p.shape)[..., None]
    if levels > 0:
        return found.p
    return np.asarray((found.p * found.values[t]).sum(axis=-1, keepdims=True))


# Linear networks


@dataclass(frozen=True, eq=False)
class LeaveOut:
    """Of linear networks, posterior means of every cell given the rest of its row."""

    known: Floats  # with the row's data set known, (n, N)
    unknown: Floats  # with it unknown, (n, N)
    data_set: NDArray[np.int64]  # the position of the most probable one given all cells, (n,)


def leave_out(
    linear: LinearNetwork, prior: Floats, values: Floats, codes: NDArray[np.int64]
) -> LeaveOut:
    """Predict each cell from the rest of its row, in closed form, estimates taken for certain.

    With residuals e = (I - B) x - intercepts of variances s, the precision matrix of a data set is
    Lambda = (I - B)' diag(1 / s) (I - B), and x_i less its prediction is g_i / Lambda_ii, g = (I -
    B)' (e / s). Nothing is inverted. P(F | the rest) comes from the density of the whole row over
    that of x_i given the rest.

    Rows have no missing values, (n, N); residual variances are positive, and no data set is
    adapted.
    """
    n, N = values.shape
    F = len(prior)
    known = np.empty((n, N))
    miss = np.empty((F, n, N))  # cell less prediction
    loglik = np.empty((F, n))
    log_weight = np.empty((F, n, N))
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    for j in range(F):
        B = np.eye(N) - linear.slopes[j]  # I - B
        center, s = linear.intercept[j], linear.sigma2[j]
        e = values @ B.T - center
        precision = (B**2 / s[:, None]).sum(axis=0)  # diagonal of Lambda
        miss[j] = (e / s) @ B / precision
        loglik[j] = log_prior[j] - 0.5 * ((e**2 / s) + np.log(s)).sum(axis=1)
        given_rest = 0.5 * (np.log(precision) - precision * miss[j] ** 2)
        log_weight[j] = loglik[j][:, None] - given_rest
        of_j = codes == j
        known[of_j] = values[of_j] - miss[j][of_j]
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight /= weight.sum(axis=0)
    unknown = values - (weight * miss).sum(axis=0)
    return LeaveOut(known, unknown, loglik.argmax(axis=0))


def linear_squares(
    linear: LinearNetwork, prior: Floats, rows: HeldOut, codes: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """As `squares`, of rows without missing cells."""
    N = rows.x.shape[1]
    known, unknown = np.zeros(N), np.zeros(N)
    step = max(1, _NUMBERS // (N * len(prior)))
    for start in range(0, len(rows.x), step):
        x = rows.x[start : start + step]
        found = leave_out(linear, prior, x, codes[start : start + step])
        known += ((found.known - x) ** 2).sum(axis=0)
        unknown += ((found.unknown - x) ** 2).sum(axis=0)
    return known, unknown
