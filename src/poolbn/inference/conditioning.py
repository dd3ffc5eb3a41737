"""Normal distributions given what was observed: many rows, patterns of evidence, data sets at once.

One normal distribution is conditioned for every (pattern of evidence, data set) and then applied to
all rows with that pattern. Patterns with about as many rows are worked on together, so that no
Python loop runs over rows or patterns.

Where parameters of nodes are uncertain, distributions have variances that depend on the row. Given
its parents a node is Student's t (`nodes.predictive`). Where the parents of all evidence are
evidence too, the density of a row is the product of these, and a target whose parents are evidence
and whose descendants are not is t itself: all that is exact.

Else some cells have to be integrated out, or weighed against what is below them. There each t that
has to do with a missing cell is replaced by a normal distribution, see `_normal`, with the
scale u + E[z'Cz]: parents that are evidence enter by value, the others by their mean and covariance
given the row, which depend on these scales in turn and are found by iteration. With precisions w of
the nodes' residuals and a_i the effects of missing cells on them, the missing cells have precision
sum_i w_i a_i a_i'; so the work grows with the missing cells, not with all nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from poolbn.arrays import Flags, Floats, Integers
from poolbn.constants import CERTAIN, RANK_TOLERANCE
from poolbn.inference.assembled import LinearNetwork
from poolbn.inference.marginals import spread
from poolbn.nodes.links import log_density
from poolbn.nodes.predicting import Predictive, degrees

_MOST_ROWS = 1024  # rows of one pattern that are worked on together
_NUMBERS = 2**19  # in the largest array of a chunk: what a core's cache holds is fast


@dataclass(frozen=True, eq=False)
class Conditioned:
    """What evidence says about T targets."""

    loglik: Floats  # log density of the evidence, (..., r)
    mean: Floats  # of the targets given the evidence, (..., r, T)
    cov: Floats  # of the targets given the evidence: the same for all values of it, (..., T, T)
    df: Floats  # degrees of freedom of each target; inf for a normal distribution, (..., r, T)


def condition(
    mean: Floats, cov: Floats, values: Floats, observed: Flags, targets: Integers
) -> Conditioned:
    """Condition normal distributions on evidence, each for r rows.

    With z = L^-1 (x_e - mu_e), LL' = Sigma_ee, the density of the evidence is that of z, and the
    targets have mean mu_t + V'z and covariance Sigma_tt - V'V, V = L^-1 Sigma_et. All is done on
    correlations, so units do not matter. A node that is not observed is one that is independent of
    all others and is at its mean: so all patterns of evidence have matrices of the same size.

    Evidence that is certain, by itself (after an intervention) or given the evidence before it,
    says nothing more: it is left out of the density if it agrees, else the density is 0. Either way
    targets are conditioned on the rest.

    Means and `observed` are (..., N), covariances (..., N, N), rows (..., r, N), in which anything
    may stand for what is not observed; targets are positions, (T,), and may be observed.
    """
    sd = np.sqrt(np.maximum(np.diagonal(cov, axis1=-2, axis2=-1), 0.0))
    size = np.abs(mean)
    scale = np.where(sd > 0, sd, np.where(size > 0, size, 1.0))
    corr = cov / (scale[..., :, None] * scale[..., None, :])
    among = corr * (observed[..., :, None] & observed[..., None, :])
    k = np.arange(mean.shape[-1])
    among[..., k, k] = np.where(observed, among[..., k, k], 1.0)
    whiten, root, used = _whitening(among, observed)

    known = observed[..., None, :]
    residual = (values - mean[..., None, :]) / scale[..., None, :]
    z = np.where(known, residual, 0.0) @ np.swapaxes(whiten, -1, -2)
    certain = observed & ~used
    impossible = np.zeros(z.shape[:-1], dtype=bool)
    if certain.any():
        np.any(certain[..., None, :] & (np.abs(z) > CERTAIN), axis=-1, out=impossible)
        z = np.where(used[..., None, :], z, 0.0)
    size_of = np.log(root * scale * math.sqrt(2 * math.pi), where=used, out=np.zeros_like(root))
    density = -0.5 * np.einsum("...k,...k->...", z, z) - size_of.sum(axis=-1)[..., None]

    V = whiten @ (corr[..., targets] * observed[..., :, None]) * used[..., :, None]
    within = corr[..., targets[:, None], targets] - np.swapaxes(V, -1, -2) @ V
    unit = scale[..., targets]
    return Conditioned(
        loglik=np.where(impossible, -np.inf, density),
        mean=mean[..., None, targets] + unit[..., None, :] * (z @ V),
        cov=within * unit[..., :, None] * unit[..., None, :],
        df=np.broadcast_to(math.inf, (*density.shape, len(targets))),
    )


def _whitening(S: Floats, observed: Flags) -> tuple[Floats, Floats, Flags]:
    """L^-1, the diagonal of L (..., N), and which evidence says something new (..., N).

    L is the Cholesky factor of S, (..., N, N). Where evidence is a combination of that before it,
    the column of L is empty, and the row of L^-1 gives how far it is from that combination.
    """
    L, inverse = np.zeros_like(S), np.zeros_like(S)
    roots, used = np.empty(S.shape[:-1]), np.empty(S.shape[:-1], dtype=bool)
    for k in range(S.shape[-1]):
        column = S[..., k:, k] - (L[..., k:, :k] @ L[..., k, :k, None])[..., 0]
        used[..., k] = new = column[..., 0] > RANK_TOLERANCE
        roots[..., k] = root = np.sqrt(np.where(new, column[..., 0], 1.0))
        L[..., k:, k] = np.where(new[..., None], column / root[..., None], 0.0)
        before = L[..., k, None, :k] @ inverse[..., :k, :k]
        inverse[..., k, :k] = -before[..., 0, :] / root[..., None]
        inverse[..., k, k] = 1.0 / root
    return inverse, roots, used & observed


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows of P patterns of evidence, r of each."""

    rows: Integers  # positions; a pattern with fewer repeats its last one, (P, r)
    observed: Flags  # which nodes are evidence, (P, N)
    sets: Integers  # the data sets that a row may come from: the known one, or all, (P, C)


def chunks(observed: Flags, codes: Integers, data_sets: int) -> Iterator[Chunk]:
    """All rows, once, put together by pattern of evidence (n, N) and known data set or -1 (n,)."""
    pattern = patterns(observed) * (data_sets + 1) + codes + 1
    order = np.argsort(pattern, kind="stable")
    ordered = pattern[order]
    edge = np.flatnonzero(np.diff(ordered, prepend=-1))
    counts = np.diff(edge, append=len(order))
    # A pattern with many rows becomes several blocks.
    pieces = -(-counts // _MOST_ROWS)
    first = np.repeat(np.cumsum(pieces) - pieces, pieces)
    start = np.repeat(edge, pieces) + _MOST_ROWS * (np.arange(len(first)) - first)
    count = np.minimum(np.repeat(edge + counts, pieces) - start, _MOST_ROWS)
    known = codes[order[start]] >= 0
    size = 1 << np.ceil(np.log2(count)).astype(np.int64)  # at most half of the rows are repeats
    for is_known in (True, False):
        for r in np.unique(size[known == is_known]).tolist():
            blocks = np.flatnonzero((known == is_known) & (size == r))
            C, N = 1 if is_known else data_sets, observed.shape[1]
            most = max(1, _NUMBERS // (C * N * max(r, N)))
            for at in range(0, len(blocks), most):
                block = blocks[at : at + most]
                within = np.minimum(np.arange(r), count[block, None] - 1)
                rows = order[start[block, None] + within]
                lead = rows[:, 0]
                every = np.broadcast_to(np.arange(data_sets), (len(block), data_sets))
                yield Chunk(rows, observed[lead], codes[lead, None] if is_known else every)


def patterns(observed: Flags) -> Integers:
    """Equal numbers for equal rows, (n,); some 30 columns at a time fit into a number."""
    n, N = observed.shape
    pattern = np.zeros(n, dtype=np.int64)
    for at in range(0, N, 30):
        for column in observed.T[at : at + 30]:
            pattern = 2 * pattern + column
        pattern = np.unique(pattern, return_inverse=True)[1]
    return pattern


_Number = TypeVar("_Number", bound=np.generic)

_ROUNDS = 50  # of iteration
_SETTLED = 1e-11  # relative change of variances that ends it
_FURTHEST = 10.0  # times its last step that a variance may be moved on
_ENDLESS = 1e100  # the step before the first, which so counts for nothing
_TINY = 1e-300
_ALL_NUMBERS = 2**17  # in the largest array, where parameters are uncertain


@dataclass(frozen=True, eq=False)
class Uncertain:
    """What nodes are given their parents."""

    nodes: Sequence[Predictive]  # their distributions in F data sets, N of them
    parents: tuple[Integers, ...]  # their parents, as positions
    slopes: Floats  # of parents, the child first, (F, N, N)
    # What is to be expected of the nodes, near which numbers have most digits, (F, N).
    start: Floats
    certain: Flags  # nodes that have one value in a data set, as after an intervention, (F, N)
    # Equal numbers for data sets in which the same nodes are certain, (F,). Below 0 the joint
    # distribution is to be used instead: all is certain but the residuals, or a node is an exact
    # combination of others.
    kinds: Integers

    @property
    def sets(self) -> Flags:
        """The data sets in which this is to be used, (F,)."""
        return self.kinds >= 0


def uncertain_nodes(network: LinearNetwork, nodes: Sequence[Predictive], sets: Flags) -> Uncertain:
    """What nodes are given their parents; `sets` are those in which this is to be used."""
    none = np.array([(of.scale2 == 0) & ~of.cov.any(axis=(1, 2)) for of in nodes]).T  # (F, N)
    certain = np.zeros_like(none)
    for i in network.order:
        certain[:, i] = none[:, i] & certain[:, list(network.parents[i])].all(axis=1)
    kinds = np.unique(certain, axis=0, return_inverse=True)[1].ravel()
    return Uncertain(
        nodes=nodes,
        parents=tuple(np.array(parents, dtype=np.int64) for parents in network.parents),
        slopes=network.slopes,
        start=network.mean,
        certain=certain,
        kinds=np.where(sets & ~(none & ~certain).any(axis=1), kinds, -1),
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """A node in all rows: mean, squared scale and degrees of freedom, (P, C, r) or (P, C, 1)."""

    mean: Floats
    scale2: Floats
    df: Floats


def _node(of: Predictive, sets: Integers, z: Floats) -> _Part:
    """One node given z, 1 and its parents, (P, 1 or C, r, q), in data sets (P, C)."""
    coef = of.coef[sets]
    if z.shape[1] < coef.shape[1]:  # one row for all data sets
        mean = coef @ np.swapaxes(z[:, 0], -1, -2)
    else:
        mean = (z @ coef[..., None])[..., 0]
    forms = np.maximum(_forms(z, _kinds(of)[:, sets]), 0.0)
    return _Part(mean, *_scale(of, sets[..., None], forms))


def _with_one(x: Floats, parents: Integers) -> Floats:
    """1 and the parents, (P, 1 or C, r, q)."""
    z = np.ones((*x.shape[:-1], len(parents) + 1))
    z[..., 1:] = x[..., parents]
    return z


def _kinds(of: Predictive) -> Floats:
    """The matrices of the forms z'Cz that the distribution depends on, (1 or 2, F, q, q)."""
    return of.cov[None] if math.isinf(of.between_df) else np.stack([of.cov, of.between])


def _forms(z: Floats, C: Floats) -> Floats:
    """z'Cz, (K, P, C, r); C is (K, P, C, q, q)."""
    q = z.shape[-1]
    if z.shape[1] < C.shape[2]:  # one row for all data sets: one matrix product
        second = (z[:, 0, :, :, None] * z[:, 0, :, None, :]).reshape(*z[:, 0].shape[:2], q * q)
        return np.asarray(C.reshape(*C.shape[:3], q * q) @ np.swapaxes(second, 1, 2))
    return np.asarray(np.einsum("kpcra,pcra->kpcr", z @ C, z))


def _scale(
    of: Predictive, sets: Integers, forms: Floats | Sequence[Floats]
) -> tuple[Floats, Floats]:
    """Squared scales and degrees of freedom from the forms, each in its data set."""
    scale2 = forms[0] + of.scale2[sets]
    df, within = of.df[sets], of.within_df[sets]
    if len(forms) == 1:
        with np.errstate(divide="ignore"):
            return scale2, 1 / (1 / df + 1 / within)
    return scale2, degrees(scale2, forms[1], df, within, of.between_df)


def condition_uncertain(
    model: Uncertain,
    values: Floats,
    observed: Flags,
    sets: Integers,
    targets: Integers,
    densities: bool = True,
) -> Conditioned:
    """Condition on evidence, P patterns of r rows each, in C data sets of one kind.

    Rows are (P, r, N); what is not observed, (P, N), may be anything. Data sets are (P, C), and
    targets positions, (T,), which may be observed. Without `densities` these say only what is
    impossible. The result is (P, C, r, ...), with degrees of freedom that are inf but for targets
    that are t.
    """
    evidence = _Evidence.of(model, observed, model.certain[sets[0, 0]], targets)
    m = max(1, evidence.missing.shape[1])
    most = max(1, _ALL_NUMBERS // (sets.size * m * m))
    parts = [
        _condition(model, values[:, at : at + most], evidence, sets, targets, densities)
        for at in range(0, values.shape[1], most)
    ]
    if len(parts) == 1:
        return parts[0]
    return Conditioned(
        *(
            np.concatenate([getattr(part, name) for part in parts], axis=2)
            for name in ("loglik", "mean", "cov", "df")
        )
    )


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What patterns of evidence leave to do."""

    observed: Flags  # (P, N)
    certain: Flags  # nodes with one value, (N,)
    closed: Flags  # nodes that are observed and whose parents are observed or certain, (P, N)
    # Targets that are missing, whose parents are known and whose descendants are missing, (P, T).
    is_t: Flags
    missing: Integers  # positions of the cells to integrate out, N for none, (P, m)
    touched: Flags  # nodes that these cells, or their values, depend on or have to do with, (P, N)

    @staticmethod
    def of(model: Uncertain, observed: Flags, certain: Flags, targets: Integers) -> _Evidence:
        P, N = observed.shape
        known = observed | certain
        above = np.array([known[:, pa].all(axis=1) for pa in model.parents]).reshape(N, P).T
        told = observed & ~certain
        closed = told & above
        needed = ~known & _has_descendants(model.parents, told)
        is_t = (~known & above & ~needed)[:, targets]
        # Else a target needs what is missing above it, and above what is observed.
        if (known[:, targets] | is_t).all() and not needed.any():
            hidden = np.zeros_like(known)
        else:
            asked = told | np.isin(np.arange(N), targets)
            hidden = ~known & (asked | _has_descendants(model.parents, asked))
        count = hidden.sum(axis=1)
        first = np.argsort(~hidden, axis=1, kind="stable")[:, : count.max(initial=0)]
        missing = np.where(np.arange(first.shape[1]) < count[:, None], first, N)
        return _Evidence(observed, certain, closed, is_t, missing, hidden | (told & ~closed))


def _has_descendants(parents: Sequence[Integers], observed: Flags) -> Flags:
    """Which nodes have a descendant that is observed, (P, N)."""
    found = np.zeros_like(observed)
    while True:
        before = found.copy()
        for i, pa in enumerate(parents):
            found[:, pa] |= (observed | found)[:, i, None]
        if (found == before).all():
            return found


def _condition(
    model: Uncertain,
    values: Floats,
    evidence: _Evidence,
    sets: Integers,
    targets: Integers,
    densities: bool,
) -> Conditioned:
    (P, r, _), C, T = values.shape, sets.shape[1], len(targets)
    observed, certain, missing = evidence.observed, evidence.certain, evidence.missing
    start = model.start[sets]  # (P, C, N)
    # Missing cells start from one value for all data sets, so that these have one row.
    x = np.where(observed[:, None], values, start.mean(axis=1, keepdims=True))[:, None]
    loglik = np.zeros((P, C, r))
    for i in np.flatnonzero(certain).tolist():
        value = start[..., i, None]  # (P, C, 1)
        size = np.where(value == 0, 1.0, np.abs(value))
        differs = observed[:, None, None, i] & (np.abs(x[..., i] - value) > CERTAIN * size)
        loglik = np.where(differs, -np.inf, loglik)
    if certain.any():
        x = np.where(certain, start[:, :, None], x)  # (P, C, r, N)
    mean = np.empty((P, C, r, T))
    cov, df = np.zeros((P, C, r, T, T)), np.full((P, C, r, T), math.inf)
    mean[:] = x[..., targets]
    m = missing.shape[1]
    if m:
        more, shift, V = _integrate(model, x, evidence, sets)
        loglik += more
        at = (missing[:, :, None] == targets).astype(np.float64)  # (P, m, T)
        mean += (shift @ at).reshape(mean.shape)
        both = (at[:, :, None, :, None] * at[:, None, :, None, :]).reshape(P, m * m, T * T)
        cov += (V @ both).reshape(cov.shape)
    is_t = np.zeros_like(observed)
    is_t[:, targets] = evidence.is_t
    needed = is_t | evidence.closed if densities else is_t
    for i in np.flatnonzero(needed.any(axis=0)).tolist():
        part = _node(model.nodes[i], sets, _with_one(x, model.parents[i]))
        closed = evidence.closed[:, i]
        if densities and closed.any():
            density = log_density(x[..., i], part.mean, part.scale2, part.df)
            loglik += density if closed.all() else np.where(closed[:, None, None], density, 0.0)
        p = np.flatnonzero(is_t[:, i])
        if len(p):
            for t in np.flatnonzero(targets == i):
                mean[p, ..., t] = part.mean[p]
                cov[p, ..., t, t] = (part.scale2 * spread(part.df) ** 2)[p]
                df[p, ..., t] = np.broadcast_to(part.df, loglik.shape)[p]
    return Conditioned(loglik, mean, cov, df)


_Open = tuple[int, Predictive, slice]  # a node with missing parents: which of M, and its forms


@dataclass(frozen=True, eq=False)
class _Items:
    """n items, a row in a data set each, and what M nodes say of their m missing cells."""

    at: Integers  # which items these are, (n,)
    sets: Integers  # their data sets, (n,)
    use: Flags  # which nodes have to do with missing cells, (M, n)
    seen: Flags  # which nodes are observed, (M, n)
    pad: Floats  # 1 for what is no missing cell, (m, m, n)
    a: Floats  # effects of missing cells on residuals, (M, m, n)
    rest: Floats  # residuals with missing cells as they are, (M, n)
    forms: Floats  # of nodes with missing parents, see `_expanded`, (K, 1 + m + m m, n)
    w: Floats  # precisions of residuals, 0 where not used; of those in `logs` they follow, (M, n)
    logs: Floats  # logarithms of the other residuals' variances, (L, n)
    found: Floats  # those that followed from the variances before, (L, n)
    step: Floats  # the differences between these two, (L, n)

    def some(self, which: Integers) -> _Items:
        return _Items(*(np.take(getattr(self, of.name), which, axis=-1) for of in fields(self)))

    def after(self, found: Floats) -> _Items:
        """The next variances: the secant method in several dimensions (Anderson's, depth 1)."""
        step = found - self.logs
        change = step - self.step
        size = np.maximum((change * change).sum(axis=0), _TINY)
        back = np.clip((step * change).sum(axis=0) / size, -_FURTHEST, 0.5)
        return replace(self, logs=found - back * (found - self.found), found=found, step=step)


def _integrate(
    model: Uncertain, x: Floats, evidence: _Evidence, sets: Integers
) -> tuple[Floats, Floats, Floats]:
    """What nodes that are not closed say of the missing cells: normal distributions.

    Rows x have what is certain and one value of missing cells, (P, 1 or C, r, N), data sets are (P,
    C). What they add to log densities (P, C, r), what missing cells are moved by, (P, C r, m), and
    their covariance (P, C r, m m).
    """
    (P, C), r, missing = sets.shape, x.shape[2], evidence.missing
    items, opened = _items(model, x, evidence, sets)
    use, a, rest = items.use, items.a, items.rest
    M, m, n = a.shape
    w, s, V = np.empty((M, n)), np.empty((m, n)), np.empty((m, m, n))
    for left in reversed(range(_ROUNDS)):
        own_w = items.w.copy()
        for log, (k, *_) in zip(items.logs, opened, strict=True):
            own_w[k] = np.where(items.use[k], np.exp(-log), 0.0)
        own_s, own_V = _solve(items, own_w)
        found = _found(items, opened, own_s, own_V)
        busy = np.flatnonzero(np.any(np.abs(found - items.logs) > _SETTLED, axis=0))
        if not left or 2 * len(busy) < len(items.at):  # those that settled leave
            w[:, items.at], s[:, items.at], V[:, :, items.at] = own_w, own_s, own_V
            items, found = items.some(busy), found[:, busy]
        if not len(busy):
            break
        items = items.after(found)
    squares = (w * (rest + (a * s).sum(axis=1)) ** 2).sum(axis=0)
    sizes = np.log(np.where(use, w, 1.0)).sum(axis=0) + _logdet(V)
    free = evidence.touched.sum(axis=1) - (missing < x.shape[3]).sum(axis=1)
    more = (sizes - squares).reshape(P, C, r) - free[:, None, None] * math.log(2 * math.pi)
    return more / 2, s.T.reshape(P, C * r, m), V.reshape(m * m, n).T.reshape(P, C * r, m * m)


def _items(
    model: Uncertain, x: Floats, evidence: _Evidence, sets: Integers
) -> tuple[_Items, list[_Open]]:
    """All rows in all their data sets; the nodes with missing parents."""
    (P, C), (r, N), missing = sets.shape, x.shape[2:], evidence.missing
    nodes = np.flatnonzero(evidence.touched.any(axis=0)).tolist()
    M, m, n = len(nodes), missing.shape[1], P * C * r

    def flat(of: NDArray[_Number]) -> NDArray[_Number]:
        """(P, C or 1, r or 1, ...) -> (..., n)."""
        full = np.broadcast_to(of, (P, C, r, *of.shape[3:])).reshape(n, *of.shape[3:])
        return np.array(np.moveaxis(full, 0, -1), order="C")

    use, seen = (flat(of[:, None, None, nodes]) for of in (evidence.touched, evidence.observed))
    rest, w = np.empty((M, n)), np.empty((M, n))
    forms: list[Floats] = []
    opened: list[_Open] = []
    for k, i in enumerate(nodes):
        of, z = model.nodes[i], _with_one(x, model.parents[i])
        part = _node(of, sets, z)
        rest[k] = (x[..., i] - part.mean).ravel()
        at = missing[:, :, None] == np.append(N + 1, model.parents[i])  # (P, m, q)
        if at.any():
            own = [flat(form) for form in _expanded(z, _kinds(of)[:, sets], at[:, None])]
            opened.append((k, of, slice(len(forms), len(forms) + len(own))))
            forms += own
        else:
            w[k] = use[k] / _normal(part.scale2.ravel(), flat(part.df), seen[k])
    effects = np.concatenate([np.eye(N) - model.slopes, np.zeros((len(model.slopes), N, 1))], 2)
    a = np.take_along_axis(effects[sets][:, :, nodes], missing[:, None, None], axis=3)
    none = np.empty((0, n))
    items = _Items(
        at=np.arange(n),
        sets=flat(sets[..., None]),
        use=use,
        seen=seen,
        pad=flat(((missing == N)[:, :, None] * np.eye(m))[:, None, None]),
        a=flat(a[:, :, None]),
        rest=rest,
        forms=np.array(forms).reshape(len(forms), 1 + m + m * m, n),
        w=w,
        logs=none,
        found=none,
        step=none,
    )
    # The first variances are those at what is to be expected in each data set.
    away = np.append(model.start[sets] - x[:, :, 0], np.zeros((P, C, 1)), axis=2)
    s = flat(np.take_along_axis(away, missing[:, None], axis=2)[:, :, None])
    first = _found(items, opened, s, np.zeros((m, m, n)))
    return replace(items, logs=first, found=first, step=np.full_like(first, _ENDLESS)), opened


def _found(items: _Items, opened: Sequence[_Open], s: Floats, V: Floats) -> Floats:
    """Logarithms of variances where missing cells are moved by s and have covariance V, (L, n)."""
    second = (V + s[:, None] * s).reshape(-1, s.shape[1])
    powers = np.concatenate([np.ones((1, s.shape[1])), 2 * s, second])
    out = np.empty((len(opened), s.shape[1]))
    for log, (k, of, at) in zip(out, opened, strict=True):
        forms = [np.maximum(np.einsum("fn,fn->n", form, powers), 0.0) for form in items.forms[at]]
        log[:] = np.log(_normal(*_scale(of, items.sets, forms), items.seen[k]))
    return out


def _expanded(z: Floats, C: Floats, at: Flags) -> Floats:
    """A form where missing cells are moved by s and have covariance V.

        E[z'Cz] = z'Cz + 2 s'(Cz) + sum(C * (ss' + V))

    Coefficients of 1, 2s and ss' + V, (K, P, C, r, 1 + m + m m). Of Cz and the last C these are the
    parts of missing cells: `at` says what of z (P, 1 or C, r, q) is which, (P, 1, m, q).
    """
    m = at.shape[2]
    rows = at @ C  # (K, P, C, m, q)
    out = np.empty((*C.shape[:3], z.shape[2], 1 + m + m * m))
    out[..., 0] = _forms(z, C)
    out[..., 1 : m + 1] = z @ np.swapaxes(rows, -1, -2)
    out[..., m + 1 :] = (rows @ np.swapaxes(at, -1, -2)).reshape(*C.shape[:3], 1, m * m)
    return out


def _solve(items: _Items, w: Floats) -> tuple[Floats, Floats]:
    """What moves missing cells to their means (m, n), and their covariance (m, m, n)."""
    precision, h = items.pad.copy(), np.zeros(items.pad.shape[1:])
    for a, rest, own in zip(items.a, items.rest, w, strict=True):
        weighted = own * a
        precision += weighted[:, None] * a
        h -= weighted * rest
    if len(h) == 1:
        V = 1 / precision
    else:
        V = np.moveaxis(np.asarray(np.linalg.inv(np.moveaxis(precision, -1, 0))), 0, -1)
    return (V * h).sum(axis=1), V


def _logdet(V: Floats) -> Floats:
    """Of matrices (m, m, n)."""
    if len(V) == 1:
        return np.asarray(np.log(V[0, 0]))
    return np.asarray(np.linalg.slogdet(np.moveaxis(V, -1, 0))[1])


def _normal(scale2: Floats, df: Floats, seen: Flags) -> Floats:
    """The variance of the normal distribution in place of t, where it is evidence or missing.

    What is missing keeps its spread. Evidence has the same information about the mean as t has,
    (df + 1) / (df + 3) over the squared scale: it is the middle of the distribution that counts.
    """
    if seen.all():
        return np.asarray(scale2 * (1 + 2 / (df + 1)))
    if not seen.any():
        return np.asarray(scale2 * spread(df) ** 2)
    return np.asarray(scale2 * np.where(seen, 1 + 2 / (df + 1), spread(df) ** 2))
