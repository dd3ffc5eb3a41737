"""The mixed-effects model with one residual variance, the paper's (eq. lmenode). Compiled.

The variance is in closed form, so there are no parameters beside D: see `deviance`.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from poolbn.constants import RANK_TOLERANCE
from poolbn.kernels import deviance
from poolbn.kernels.bounds import least_deviance
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import jit
from poolbn.kernels.optimise import NO_STEP, minimiser
from poolbn.kernels.steps import copy_columns
from poolbn.kernels.work import (
    DF,
    RHO,
    RSS,
    Result,
    Space,
    carve,
    inline,
)

_INFINITE = 1e8
SCORING = True  # see `optimise`


def shapes(s: Space) -> list[tuple[int, ...]]:
    """No arrays of its own."""
    return []


@inline
def evaluate(s: Space, L: Floats, k: int, steps: int) -> float:
    """Deviance at the k columns of L, and rss; see `deviance.profile`."""
    f: float
    f, s.totals[RSS] = deviance.profile(s, s.totals[RHO], L, k)
    return f + s.totals[DF] * math.log(s.totals[RSS] / s.totals[DF]) if f < np.inf else f


@inline
def gradient(s: Space) -> None:
    """Fill G."""
    deviance.gradient(s, s.totals[DF] / s.totals[RSS])


@inline
def derivatives(s: Space, k: int, f: float) -> tuple[int, float]:
    """See `deviance.hessian`."""
    ratio = s.totals[DF] / s.totals[RSS]
    return deviance.hessian(s, k, ratio, ratio / s.totals[RSS]), np.inf


@inline
def prepare(s: Space, scatter: Floats, child: int, _: float) -> tuple[float, float, bool]:
    """The lower bound of `bounds`.

    With D infinite each data set has coefficients of its own. If they leave no residual, the
    likelihood rises without bound on the way there, or on the way to some other infinite D.
    """
    w = carve(s)
    lowest: float = least_deviance(s)
    rss: float = s.totals[RHO]
    if s.r < s.q:
        copy_columns(w.L, w.L, 0)
        for a in range(s.r):
            w.L[a, a] = _INFINITE
        evaluate(s, w.L, s.r, NO_STEP)
        rss = s.totals[RSS]
    constant = s.totals[DF] * (1.0 + math.log(2.0 * math.pi))
    if s.reml:  # log|S| belongs to the combined columns
        for a in range(s.q):
            constant += 2.0 * math.log(w.B[a, a])
    return lowest, constant, rss > RANK_TOLERANCE * s.n.sum()


@inline
def guess(s: Space, own: bool) -> None:
    """No parameters beside L."""


@inline
def eliminate(s: Space, size: int, brake: float) -> float:
    """Nothing to eliminate."""
    return 0.0


@inline
def step(s: Space, size: int, part: float) -> None:
    """Nothing to move."""


@jit
def relax(part: float, brake: float, ratio: float) -> tuple[float, float]:
    """Nothing to slow down."""
    return 1.0, 0.0


@inline
def unevenness(s: Space) -> float:
    """None: there is one variance."""
    return 0.0


@inline
def leave(s: Space, result: Result) -> None:
    """Leave the residual variance."""
    w = carve(s)
    result.residual[0] = s.totals[RSS] / s.totals[DF]
    for j in range(s.F):
        result.squares[j] = w.rho[0, 0, j]
        for i in range(s.q):
            result.squares[j] += w.rt[0, i, j] * w.rt[0, i, j]


fit_one, fit, fit_units = minimiser(sys.modules[__name__])
