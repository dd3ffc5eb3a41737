"""Nodes whose parameters are uncertain: distributions with variances that depend on the row.

Given its parents a node is Student's t (`nodes.predictive`). Where the parents of all evidence are
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
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.inference.assembled import LinearNetwork
from poolbn.inference.conditioning import CERTAIN, Floats, Given
from poolbn.inference.mixtures import log_density, spread
from poolbn.nodes.localfit import GaussianFit
from poolbn.nodes.predictive import Predictive, degrees, predictive

Flags = NDArray[np.bool_]

_ROUNDS = 50  # of iteration
_SETTLED = 1e-9  # relative change of variances that ends it
_NUMBERS = 2**19  # in the largest array


@dataclass(frozen=True, eq=False)
class Uncertain:
    """What nodes are given their parents.

    Attributes:
        nodes: their distributions in F data sets, N of them.
        parents: their parents, as positions.
        slopes: of parents, the child first, (F, N, N).
        start: what is to be expected of the nodes, near which numbers have most digits, (F, N).
        certain: nodes that have one value in each data set, as after an intervention, (N,).
        sets: the data sets in which this is to be used, (F,). In the others all is certain but the
            residuals, or a node is an exact combination of others; then the joint distribution is.
        refused: the data sets that have no distribution, and why.
    """

    nodes: tuple[Predictive, ...]
    parents: tuple[NDArray[np.int64], ...]
    slopes: Floats
    start: Floats
    certain: Flags
    sets: Flags
    refused: Mapping[int, str]


def with_uncertainty(network: LinearNetwork, fits: Sequence[GaussianFit]) -> Uncertain:
    """All that is uncertain, in all data sets; fits as the network's nodes."""
    nodes = tuple(map(predictive, fits))
    unsure = [
        of.cov.any(axis=(1, 2)) | np.isfinite(of.within_df) | np.isfinite(of.df) for of in nodes
    ]
    refused = {
        j: f"{fit.child!r} has no predictive distribution in data set {level!r}: its "
        f"{fit.rows[j]:.0f} rows do not give {len(fit.parents) + 1} coefficients and a variance"
        for fit, of in zip(fits, nodes, strict=True)
        for j, level in enumerate(fit.levels)
        if math.isnan(of.scale2[j])
    }
    return _uncertain(network, nodes, np.any(unsure, axis=0), refused)


def plugged_in(
    network: LinearNetwork, fits: Sequence[GaussianFit], adapted: Sequence[Hashable]
) -> Uncertain:
    """Estimates taken for certain, but for the coefficients of adapted data sets."""
    nodes = []
    for fit in fits:
        known = np.full(len(fit.levels), math.inf)
        none = np.zeros_like(fit.coef_cov)
        nodes.append(Predictive(fit.coef, fit.coef_cov, none, fit.sigma2, known, known, math.inf))
    sets = np.array([level in adapted for level in network.levels])
    return _uncertain(network, tuple(nodes), sets, {})


def _uncertain(
    network: LinearNetwork, nodes: tuple[Predictive, ...], sets: Flags, refused: Mapping[int, str]
) -> Uncertain:
    none = np.array([(of.scale2 == 0) & ~of.cov.any(axis=(1, 2)) for of in nodes])  # (N, F)
    certain = np.zeros(len(nodes), dtype=bool)
    for i in network.order:
        certain[i] = none[i].all() and certain[list(network.parents[i])].all()
    return Uncertain(
        nodes=nodes,
        parents=tuple(np.array(parents, dtype=np.int64) for parents in network.parents),
        slopes=network.slopes,
        start=network.mean,
        certain=certain,
        sets=sets & ~none[~certain].any(axis=0),
        refused=refused,
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """A node in all rows: mean, squared scale and degrees of freedom, (P, C, r) or (P, C, 1)."""

    mean: Floats
    scale2: Floats
    df: Floats


def _node(
    of: Predictive,
    parents: NDArray[np.int64],
    sets: NDArray[np.int64],
    x: Floats,
    cov: tuple[NDArray[np.int64], Floats] | None = None,
) -> _Part:
    """One node given its parents; of missing ones x has the mean.

    Args:
        of: the node.
        parents: positions of its parents.
        sets: data sets, (P, C).
        x: all nodes, (P, 1 or C, r, N).
        cov: the positions of missing nodes, N for none, (P, m), and their covariance,
            (P, C, r, m, m).
    """
    coef = of.coef[sets]
    z = np.ones((*x.shape[:-1], len(parents) + 1))
    z[..., 1:] = x[..., parents]
    kinds = [of.cov] if math.isinf(of.between_df) else [of.cov, of.between]
    forms = [_forms(z, kind[sets], cov, parents) for kind in kinds]
    if z.shape[1] < coef.shape[1]:  # one row for all data sets
        mean = coef @ np.swapaxes(z[:, 0], -1, -2)
    else:
        mean = (z @ coef[..., None])[..., 0]
    scale2 = forms[0]
    scale2 += of.scale2[sets][..., None]
    df, within = of.df[sets][..., None], of.within_df[sets][..., None]
    if len(forms) == 1:
        with np.errstate(divide="ignore"):
            return _Part(mean, scale2, 1 / (1 / df + 1 / within))
    return _Part(mean, scale2, degrees(scale2, forms[1], df, within, of.between_df))


def _forms(
    z: Floats,
    C: Floats,
    cov: tuple[NDArray[np.int64], Floats] | None,
    parents: NDArray[np.int64],
) -> Floats:
    """E[z'Cz], (P, C, r), at least 0; C is (P, C, q, q)."""
    q = z.shape[-1]
    if z.shape[1] < C.shape[1]:  # one row for all data sets: one matrix product
        second = (z[:, 0, :, :, None] * z[:, 0, :, None, :]).reshape(*z[:, 0].shape[:2], q * q)
        form = C.reshape(*C.shape[:2], q * q) @ np.swapaxes(second, 1, 2)
    else:
        form = np.einsum("pcra,pcra->pcr", z @ C, z)
    if cov is not None:  # tr(C cov) more
        missing, V = cov
        at = (missing[:, :, None] == parents).astype(np.float64)[:, None]  # (P, 1, m, q - 1)
        among = at @ C[..., 1:, 1:] @ np.swapaxes(at, -1, -2)
        form = form + np.einsum("pcrab,pcab->pcr", V, among)
    return np.maximum(form, 0.0)


def condition_uncertain(
    model: Uncertain,
    values: Floats,
    observed: Flags,
    sets: NDArray[np.int64],
    targets: NDArray[np.int64],
) -> Given:
    """Condition on evidence, P patterns of r rows each, in C data sets.

    Args:
        model: the nodes.
        values: the rows; what is not observed may be anything, (P, r, N).
        observed: which nodes are evidence, (P, N).
        sets: the data sets of each pattern, (P, C).
        targets: positions of the T targets, which may be observed.

    Returns:
        Log densities (P, C, r), means (P, C, r, T), covariances (P, C, r, T, T), and degrees of
        freedom (P, C, r, T): inf but for targets that are t.
    """
    evidence = _Evidence.of(model, observed, targets)
    m = max(1, evidence.missing.shape[1])
    most = max(1, _NUMBERS // (sets.size * m * m))
    parts = [
        _condition(model, values[:, at : at + most], evidence, sets, targets)
        for at in range(0, values.shape[1], most)
    ]
    if len(parts) == 1:
        return parts[0]
    return Given(
        *(
            np.concatenate([getattr(part, name) for part in parts], axis=2)
            for name in ("loglik", "mean", "cov", "df")
        )
    )


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What patterns of evidence leave to do.

    Attributes:
        observed: (P, N).
        known: what is observed or certain, (P, N).
        closed: nodes that are observed and whose parents are known, (P, N).
        is_t: targets that are missing, whose parents are known and whose descendants are missing,
            (P, T).
        missing: positions of the cells to integrate out, N for none, (P, m).
    """

    observed: Flags
    known: Flags
    closed: Flags
    is_t: Flags
    missing: NDArray[np.int64]

    @staticmethod
    def of(model: Uncertain, observed: Flags, targets: NDArray[np.int64]) -> _Evidence:
        P, N = observed.shape
        known = observed | model.certain
        above = np.array([known[:, pa].all(axis=1) for pa in model.parents]).reshape(N, P).T
        closed = observed & above & ~model.certain
        needed = ~known & _has_descendants(model.parents, observed & ~model.certain)
        is_t = (~known & above & ~needed)[:, targets]
        # Else a target needs all that is missing: what is above it, or below and observed.
        if (known[:, targets] | is_t).all() and not needed.any():
            return _Evidence(observed, known, closed, is_t, np.empty((P, 0), dtype=np.int64))
        count = (~known).sum(axis=1)
        first = np.argsort(known, axis=1, kind="stable")[:, : count.max()]
        missing = np.where(np.arange(first.shape[1]) < count[:, None], first, N)
        return _Evidence(observed, known, closed, is_t, missing)


def _has_descendants(parents: Sequence[NDArray[np.int64]], observed: Flags) -> Flags:
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
    sets: NDArray[np.int64],
    targets: NDArray[np.int64],
) -> Given:
    (P, r, N), C, T = values.shape, sets.shape[1], len(targets)
    observed = evidence.observed
    x = values[:, None]  # (P, 1, r, N)
    loglik = np.zeros((P, C, r))
    for i in np.flatnonzero(model.certain).tolist():
        value = model.start[sets, i][..., None]  # (P, C, 1)
        size = np.where(value == 0, 1.0, np.abs(value))
        differs = observed[:, None, None, i] & (np.abs(x[..., i] - value) > CERTAIN * size)
        loglik = np.where(differs, -np.inf, loglik)
    if model.certain.any() or evidence.missing.shape[1]:
        used = (observed & ~model.certain)[:, None, None]
        x = np.where(used, x, model.start[sets][:, :, None])
    told = x if model.certain.any() else values[:, None]  # all that the parents of these are
    shown = np.isin(np.arange(N), targets)
    parts: dict[int, _Part] = {}
    for i in np.flatnonzero(evidence.closed.any(axis=0) | shown).tolist():
        parts[i] = part = _node(model.nodes[i], model.parents[i], sets, told)
        if evidence.closed[:, i].any():
            density = log_density(told[..., i], part.mean, part.scale2, part.df)
            if not evidence.closed[:, i].all():
                density = np.where(evidence.closed[:, None, None, i], density, 0.0)
            loglik += density
    mean = np.empty((P, C, r, T))
    cov, df = np.zeros((P, C, r, T, T)), np.full((P, C, r, T), math.inf)
    mean[:] = x[..., targets]
    if evidence.missing.shape[1]:
        more, full, V = _integrate(model, x, evidence, sets)
        loglik += more
        mean[:] = full[..., targets]
        at = (evidence.missing[:, :, None] == targets).astype(np.float64)[:, None, None]
        cov[:] = np.swapaxes(at, -1, -2) @ V @ at
    for t, i in enumerate(targets.tolist()):
        is_t = evidence.is_t[:, t]
        if is_t.any():
            part = parts[i]
            mean[is_t, ..., t] = part.mean[is_t]
            cov[is_t, ..., t, t] = (part.scale2 * spread(part.df) ** 2)[is_t]
            df[is_t, ..., t] = np.broadcast_to(part.df, loglik.shape)[is_t]
    return Given(loglik, mean, cov, df)


def _integrate(
    model: Uncertain, x: Floats, evidence: _Evidence, sets: NDArray[np.int64]
) -> tuple[Floats, Floats, Floats]:
    """What nodes that are not closed say of the missing cells: normal distributions.

    Args:
        model: the nodes.
        x: the rows, with what is certain and what missing cells start from, (P, C, r, N).
        evidence: what is missing.
        sets: data sets, (P, C).

    Returns:
        What they add to log densities (P, C, r), the rows with means of missing cells
        (P, C, r, N), and their covariance (P, C, r, m, m).
    """
    P, C, r, N = x.shape
    missing = evidence.missing
    m = missing.shape[1]
    pad = np.zeros((P, 1, 1, m, m))
    pad[..., np.arange(m), np.arange(m)] = (missing == N)[:, None, None]
    effects = np.concatenate([np.eye(N) - model.slopes, np.zeros((len(model.slopes), N, 1))], 2)
    use = ~evidence.closed & ~model.certain
    nodes = np.flatnonzero(use.any(axis=0)).tolist()  # M of them: all that missing cells touch
    use = use[:, None, None, nodes]  # (P, 1, 1, M)
    a = np.take_along_axis(effects[sets][:, :, nodes], missing[:, None, None], axis=3)
    products = (a[..., :, None] * a[..., None, :]).reshape(P, C, len(nodes), m * m)
    at_start = [_node(model.nodes[i], model.parents[i], sets, x) for i in nodes]
    seen = evidence.observed[:, None, None, nodes]
    rest = np.stack([x[..., i] - of.mean for i, of in zip(nodes, at_start, strict=True)], axis=-1)
    variance = np.stack([_normal(of, seen[..., k]) for k, of in enumerate(at_start)], axis=-1)
    hidden = ~evidence.known
    open_nodes = [k for k, i in enumerate(nodes) if hidden[:, model.parents[i]].any()]
    full = x
    for _ in range(_ROUNDS):
        w = np.where(use, 1 / np.where(use, variance, 1.0), 0.0)
        precision = (w @ products).reshape(P, C, r, m, m) + pad
        h = -(w * rest) @ a  # (P, C, r, m)
        V, logdet = _inverse(precision)
        shift = (V @ h[..., None])[..., 0]
        full = x.copy()
        _add_at(full, missing, shift)
        after = variance.copy()
        for k in open_nodes:
            i = nodes[k]
            part = _node(model.nodes[i], model.parents[i], sets, full, (missing, V))
            after[..., k] = _normal(part, seen[..., k])
        settled = (np.abs(after - variance) <= _SETTLED * after).all()
        variance = after
        if settled:
            break
    squares = (w * rest**2).sum(axis=-1) - (h * shift).sum(axis=-1)
    free = use.sum(axis=-1) - (missing < N).sum(axis=1)[:, None, None]
    logs = np.log(np.where(use, w, 1.0)).sum(axis=-1) - logdet - free * math.log(2 * math.pi)
    return (logs - squares) / 2, full, V


def _normal(part: _Part, seen: Flags) -> Floats:
    """The variance of the normal distribution in place of t, where it is evidence or missing.

    What is missing keeps its spread. Evidence has the same information about the mean as t has,
    (df + 1) / (df + 3) over the squared scale: it is the middle of the distribution that counts.
    """
    return part.scale2 * np.where(seen, 1 + 2 / (part.df + 1), spread(part.df) ** 2)


def _add_at(x: Floats, missing: NDArray[np.int64], shift: Floats) -> None:
    """Add to the missing cells, in place."""
    for k in range(missing.shape[1]):
        for i in np.unique(missing[:, k]):
            if i < x.shape[-1]:
                at = missing[:, k] == i
                x[at, ..., i] += shift[at, ..., k]


def _inverse(S: Floats) -> tuple[Floats, Floats]:
    """The inverse of positive definite matrices, and the logarithms of their determinants."""
    if S.shape[-1] == 1:
        return 1 / S, np.log(S[..., 0, 0])
    return np.asarray(np.linalg.inv(S)), np.asarray(np.linalg.slogdet(S)[1])
