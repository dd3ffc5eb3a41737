"""Likelihoods of regressions with random effects as sums over points. Compiled.

The model is that of `laplace`: data set j has coefficients t_js = B + Z u_js at its points u_js,
and with a_js the logarithms of their weights, which hold the density of u,
  log L_j = log sum_s exp(l_j(t_js) + a_js).
Let p_js be the shares of points in that sum and g_js the scores of its rows. As points stay where
they are, the exact slopes are sum_s p_js g_js in B and sum_s p_js g_js u_js' in Z.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, cube, entry, integers, matrix, vector
from poolbn.kernels.rows import NEGATIVE_BINOMIAL, dispersion, excess, rows


@entry(
    numba.int64, numba.int64, numba.int64, matrix, integers, numba.float64, vector, matrix,
    cube, matrix, matrix, matrix, matrix, matrix, cube, matrix,
)  # fmt: skip
def add_up(
    family: int,
    q: int,
    C: int,
    table: Floats,
    offsets: Integers,
    theta: float,
    B: Floats,
    Z: Floats,
    points: Floats,
    logs: Floats,
    state: Floats,
    scores: Floats,
    values: Floats,
    in_B: Floats,
    in_Z: Floats,
    more: Floats,
) -> None:
    """Sum over the points of all data sets.

    Args:
        family: see `rows`.
        q: columns of x.
        C: linear predictors, d = C q.
        table: see `rows`.
        offsets: where the rows of data sets begin in it, (F + 1,).
        theta: of negative binomial counts.
        B: coefficients of the population, (d,).
        Z: what a point does to those of a data set, (d, e).
        points: (F, S, e).
        logs: logarithms of their weights, (F, S).
        state: see `rows`, (d + 2, d).
        scores: work space, (S, d + 1).
        values: become log-likelihoods of data sets at their points, (F, S).
        in_B: becomes the slope of log L_j, (F, d).
        in_Z: becomes that in Z, (F, d, e).
        more: becomes what theta adds to log L_j, and the slope in theta, (F, 2).
    """
    d, e = Z.shape
    F, S = logs.shape
    t, g = state[d], state[d + 1]
    for j in range(F):
        first, last = offsets[j], offsets[j + 1]
        for a in range(d):
            in_B[j, a] = 0.0
            for b in range(e):
                in_Z[j, a, b] = 0.0
        more[j, 0], more[j, 1] = 0.0, 0.0
        top = -np.inf
        for s in range(S):
            for a in range(d):
                v = B[a]
                for b in range(e):
                    v += Z[a, b] * points[j, s, b]
                t[a] = v
            values[j, s] = rows(family, table, q, C, first, last, theta, state, 0)
            for a in range(d):
                scores[s, a] = g[a]
            if family == NEGATIVE_BINOMIAL:
                scores[s, d] = excess(table, q, first, last, theta)
            top = max(top, values[j, s] + logs[j, s])
        if not top > -np.inf:
            continue
        whole = 0.0
        for s in range(S):
            whole += math.exp(values[j, s] + logs[j, s] - top)
        for s in range(S):
            share = math.exp(values[j, s] + logs[j, s] - top) / whole
            if share > 0.0:  # scores may be infinite where there is none
                for a in range(d):
                    v = share * scores[s, a]
                    in_B[j, a] += v
                    for b in range(e):
                        in_Z[j, a, b] += v * points[j, s, b]
                if family == NEGATIVE_BINOMIAL:
                    more[j, 1] += share * scores[s, d]
        if family == NEGATIVE_BINOMIAL:
            value, own, _ = dispersion(table, q, first, last, theta)
            more[j, 0] += value
            more[j, 1] += own
