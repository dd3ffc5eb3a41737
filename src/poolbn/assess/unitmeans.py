"""What rows of units inside data sets say of the mean effect of a treatment in these data sets.

The model is a level for each data set, one effect, and a random intercept for each unit: R's
`lmer(y ~ factor(clinic) + x + (1 | patient))` by REML, or `glmer` or `clmm` with the same formula;
distances of thresholds are taken for known. Weighted by the inverse of a unit's covariance, its
rows say of its data set's level and of the effect

    G = Z'V^-1 Z,  s = Z'V^-1 (y - mean),  Z = [1, x];

for levels and counts V is that of the working response at the modes of the units' intercepts, with
G = Z'WZ - Z'W1 (1'W1 + 1/tau^2)^-1 1'WZ and s = Z'(y - mean). Let B take both to coordinates in
which the sum of G over a data set's units is the identity, the second being the effect apart from
the level, with information S. The score of the data set is S^(1/2) times the sum of (B's)_2, and
its variance comes from the units (CR2 of Bell and McCaffrey), each of which stands for itself,
whatever the covariance of its rows is:

    q = S sum (h'B's)^2,  h = (I - H)^(-1/2) e_2,  H = B'GB.

Its degrees of freedom are those of a sum of squares with the covariance that the model says,
1 / sum_gk O_gk^2, with v_g = H_g h_g and O_gk = [g = k] h_g'v_g - v_g'v_k. Where units have one
row each all this is what `treatment._robust` says of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Floats, Integers
from poolbn.constants import CONSTANT_TOLERANCE, RANK_TOLERANCE
from poolbn.later import optimize
from poolbn.nodes.design import Design, about_thresholds
from poolbn.nodes.glmm import Problem
from poolbn.nodes.links import Family, Response
from poolbn.nodes.unitmodes import Rows, UnitModes
from poolbn.tables.kinds import ColumnKind, is_normal, is_ordered, is_whole

_CLOSE = 1e-12
_SHARES = np.linspace(0.0, 1.0, 41)[:-1]  # t / (1 + t), where the largest is looked for first
_MOST = 1 - 1e-9  # of these


_COUNTS = Response(Family.POISSON), Response(Family.NEGATIVE_BINOMIAL)


class UnitRows(NamedTuple):
    """Rows of U units in F data sets, those of a unit together, units of a data set together."""

    x: Floats  # the cause, (n,)
    y: Floats  # the outcome, 0 and 1 for two levels, codes of ordered ones, (n,)
    unit: Integers  # of each row, from 0 to U - 1, (n,)
    data_set: Integers  # of each unit, (U,)
    F: int

    @staticmethod
    def of(x: Floats, y: Floats, data_set: Integers, units: Integers, F: int) -> UnitRows:
        """Some rows in any order; of units in which neither column varies one row each."""
        order = np.lexsort((units, data_set))
        x, y, sets = x[order], y[order], data_set[order]
        new = (np.diff(units[order], prepend=-1) != 0) | (np.diff(sets, prepend=-1) != 0)
        same = ~new[1:]
        if not ((np.diff(x) != 0) | (np.diff(y) != 0))[same].any():
            x, y, sets, new = x[new], y[new], sets[new], new[new]
        return UnitRows(x, y, np.cumsum(new) - 1, sets[new], F)

    @property
    def paired(self) -> bool:
        """Whether some unit has two rows."""
        return len(self.data_set) < len(self.x)

    def sums(self, values: Floats) -> Floats:
        """Of units, (U, ...)."""
        first = np.flatnonzero(np.diff(self.unit, prepend=-1))
        return np.asarray(np.add.reduceat(values, first, axis=0))


class Slopes(NamedTuple):
    """Of data sets, (F,) each; 0 where they say nothing."""

    u: Floats  # scores of no effect
    S: Floats  # by which they fall in the effect
    q: Floats  # their variances
    df: Floats  # degrees of freedom of these


def slopes(rows: UnitRows, kind: ColumnKind) -> Slopes | None:
    """What the data sets say of the effect; None where the rows give no effect.

    They give none on an outcome that describes units of a cause that varies inside them.
    """
    if rows.paired and not ((np.diff(rows.y) != 0) & (np.diff(rows.unit) == 0)).any():
        return None
    if is_normal(kind):
        told = _linear(rows)
        return None if told is None else _robust(rows, *told)
    responses = _COUNTS if is_whole(kind) else (Response(levels=2),)
    if is_ordered(kind):
        responses = (Response(Family.ORDINAL),)
    found = _regression(rows, responses)
    return None if found is None else _robust(rows, *found)


def _linear(rows: UnitRows) -> tuple[Floats, Floats] | None:
    """G of units, (U, 2, 2), and their s at no effect, (U, 2)."""
    sets, m = rows.data_set, rows.sums(np.ones(len(rows.x)))
    n = np.maximum(np.bincount(sets, m, rows.F), 1.0)
    Z = np.empty((len(rows.x), 3))
    Z[:, 0] = 1.0
    for k, column in ((1, rows.x), (2, rows.y)):
        mean = np.bincount(sets, rows.sums(column), rows.F) / n
        Z[:, k] = column - mean[sets[rows.unit]]
    of_units = rows.sums(Z[:, :, None] * Z[:, None, :])
    s = of_units[:, 0]
    products = s[:, :, None] * s[:, None, :]
    there = np.bincount(sets, minlength=rows.F) > 0

    def whitened(share: float) -> Floats:
        """Of units, where the variance between them is t = share / (1 - share) times the rest."""
        weight = share / (1 - share + share * m)
        return np.asarray(of_units - weight[:, None, None] * products)

    def deviance(share: float) -> float:
        """Minus twice the restricted log-likelihood, but for what does not depend on t."""
        P = _added(whitened(share), sets, rows.F)[there]
        inside = P[:, 1:, 1:] - P[:, 1:, :1] * P[:, :1, 1:] / P[:, :1, :1]
        (xx, xy), (_, yy) = inside.sum(axis=0)
        rest = yy - xy * xy / xx
        logs = np.log1p(m * share / (1 - share)).sum() + np.log(P[:, 0, 0]).sum() + math.log(xx)
        return float(logs + (m.sum() - there.sum() - 1) * math.log(max(rest, 1e-300)))

    left = _added(of_units, sets, rows.F)[:, 1:, 1:].sum(axis=0)
    if not left[0, 0] > CONSTANT_TOLERANCE * float(rows.x @ rows.x):
        return None
    values = [deviance(share) for share in _SHARES]
    best = int(np.argmin(values))
    ends = _SHARES[max(best - 1, 0)], [*_SHARES[1:], _MOST][best]
    found = optimize.minimize_scalar(
        deviance, bounds=ends, method="bounded", options={"xatol": 1e-10}
    )
    share = float(found.x) if found.fun < values[best] else float(_SHARES[best])
    P = whitened(share)
    return P[:, :2, :2], P[:, :2, 2]


def _regression(
    rows: UnitRows, responses: Sequence[Response]
) -> tuple[Floats, Floats, float] | None:
    """G of units, (U, 2, 2), and s, (U, 2), at the effect that is most likely, and that effect.

    Of the responses that is by the one with the best BIC.
    """
    sets, ordered = rows.data_set[rows.unit], responses[0].ordered
    top = rows.y.max() if responses[0].has_levels else math.inf
    usable = np.bincount(sets, rows.y > 0, rows.F) > 0  # a level has a maximum there
    usable &= np.bincount(sets, rows.y < top, rows.F) > 0
    level = np.cumsum(usable) - 1
    kept = usable[sets]
    x, y, of = rows.x[kept], rows.y[kept].astype(np.int64), level[sets[kept]]
    if not kept.any() or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    seen = np.unique(y)
    centre, scale = x.mean(), x.std()
    X = np.column_stack([np.ones(len(x)), *(of == j for j in range(1, usable.sum()))])
    q = X.shape[1] + 1

    def made(columns: Floats, offsets: Integers) -> Design:
        design = Design(columns, y, np.ones(len(x)), offsets, rows.unit[kept])
        return about_thresholds(design, seen) if ordered else design

    whole = made(np.column_stack([X, (x - centre) / scale]), np.array([0, len(x)]))
    fits = [(response, Problem(whole, response).complete()) for response in responses]
    found = [
        (float(fit.loglik[0]) - 0.5 * fit.n_params * math.log(len(x)), response, fit)
        for response, fit in fits
        if fit.converged[0] and not fit.separated[0] and fit.dependent < 0
    ]
    if not found:
        return None
    _, response, fit = max(found, key=lambda one: one[0])
    coef, distances = np.split(fit.coef[0, 0], [q])
    beta = float(coef[-1] / scale)
    levels = coef[0] + np.append(0.0, coef[1:-1]) - beta * centre
    G, s = np.zeros((len(rows.data_set), 2, 2)), np.zeros((len(rows.data_set), 2))
    own = [levels, np.full(len(levels), beta), *(np.full(len(levels), g) for g in distances)]
    design = made(np.column_stack([X[:, 0], x]), np.searchsorted(of, np.arange(len(levels) + 1)))
    sd = np.full(len(levels), float(fit.unit_sd[0]))
    modes = UnitModes.of(
        Rows(design, response, float(fit.theta[0]), sd), np.column_stack(own)[:, None]
    )
    Z = design.X[:, :2]
    sums = modes.summed(Z)[:, 0, 0]
    at = np.unique(rows.unit[kept])
    G[at] = np.add.reduceat(Z[:, :, None] * Z[:, None, :] * modes.spread, modes.first)
    G[at] -= modes.Q[:, 0, :1, None] * sums[:, :, None] * sums[:, None, :]
    s[at] = np.add.reduceat(Z * modes.residual, modes.first)
    return G, s, beta


def _robust(rows: UnitRows, G: Floats, s: Floats, estimate: float | None = None) -> Slopes:
    """Scores and their variances, see the head of this module.

    Args:
        rows: the units.
        G: their information, (U, 2, 2).
        s: their scores, (U, 2), at no effect or at the estimate.
        estimate: of the effect, if the scores are there.
    """
    F, sets = rows.F, rows.data_set
    whole, total = _added(G, sets, F), _added(s, sets, F)
    W = np.maximum(whole[:, 0, 0], 1e-150)
    level = whole[:, 0, 1] / W
    S = whole[:, 1, 1] - level * whole[:, 0, 1]
    usable = (CONSTANT_TOLERANCE * whole[:, 1, 1] < S) & (whole[:, 0, 0] > 0)
    known = np.where(usable, S, 1.0)
    B = np.zeros((F, 2, 2))
    B[:, 0, 0] = 1 / np.sqrt(W)
    B[:, 1, 1] = 1 / np.sqrt(known)
    B[:, 0, 1] = -level * B[:, 1, 1]
    H = np.swapaxes(B, 1, 2)[sets] @ G @ B[sets]
    score = np.einsum("jab,ja->jb", B, total)  # B'B = the inverse of what is summed
    r = np.einsum("uab,ua->ub", B[sets], s) - np.einsum("uab,ub->ua", H, score[sets])
    value, vector = np.linalg.eigh(np.eye(2) - H)
    alone = np.bincount(sets, value[:, 0] < _CLOSE, F) > 0
    root = vector / np.sqrt(np.maximum(value, _CLOSE))[:, None, :] @ np.swapaxes(vector, 1, 2)
    h = root[:, :, 1]
    v = np.einsum("uab,ub->ua", H, h)
    p, size = (h * v).sum(axis=1), (v * v).sum(axis=1)
    outer = _added(v[:, :, None] * v[:, None, :], sets, F)
    squares = np.bincount(sets, p * (p - 2 * size), F) + (outer**2).sum(axis=(1, 2))
    # A unit that has a line for itself has no residual: the others' stand for it too.
    common = alone | (squares <= 0)
    value, vector = np.linalg.eigh(H)
    seen = value > RANK_TOLERANCE * np.maximum(value[:, 1:], 1e-300)
    turned = np.einsum("uab,ua->ub", vector, r) ** 2
    z = np.where(seen, turned / np.where(seen, value, 1.0), 0.0).sum(axis=1)
    directions = np.bincount(sets, seen.sum(axis=1), F)  # that units have: one or two each
    usable &= directions > 2
    rest = np.maximum(directions - 2.0, 1.0)
    own = np.bincount(sets, (h * r).sum(axis=1) ** 2, F)
    q = known * np.where(common, np.bincount(sets, z, F) / rest, own)
    df = np.where(common, rest, 1 / np.where(common, 1.0, squares))
    S, u, q = (np.where(usable, each, 0.0) for each in (S, np.sqrt(known) * score[:, 1], q))
    if estimate is not None and usable.any():  # where the likelihood is largest, not the modes'
        u += S * (estimate - u.sum() / S.sum())
    return Slopes(u, S, q, df)


def _added(values: Floats, sets: Integers, F: int) -> Floats:
    """Sums over the units of data sets, (F, ...)."""
    found = np.zeros((F, *values.shape[1:]))
    there, first = np.unique(sets, return_index=True)
    found[there] = np.add.reduceat(values, first, axis=0)
    return found
