"""The search for D, the covariance of the random effects, and the fit of many families.

Written once, for every residual model; `minimiser` takes the module in which they differ.
Compiled; nothing here allocates: the caller brings the work space.

L = 0 and every L of low rank are stationary points of the deviance in a square L, so steps there
stall or crawl, and half of the optima have low rank. So L has k columns, k the rank, in the gauge
of a pivoted Cholesky decomposition (column b has entries in the rows perm[b:]), and:
  - inside the manifold of rank k, Newton steps with the exact Hessian, damped as by Levenberg; the
    residual model's own parameters y move with L, and are eliminated first, so that L alone is
    damped. Where a step fails, y makes a part of its step;
  - a column that shrinks is dropped when f does not rise by that;
  - when the steps end, D is optimal to first order if G is positive semidefinite (GL = 0 holds by
    then). Else a column along the eigenvector of G's most negative eigenvalue is added, if what
    that can gain matters, and the steps go on. f only ever falls, so this ends.
Exact second derivatives cost what expected ones cost, and turn the some hundred steps that scoring
needs at the boundary into a dozen.

A start is one EM step, D - DGD / |F|, from D = start I: it costs one evaluation and lands near the
moments of the data sets' own coefficients. Or it is some steps of scoring, see `_start`. Genuine
second maxima exist (2% of the families of real and simulated tables, up to several units of
log-likelihood); other starts find them.
"""

from __future__ import annotations

import math
from types import FunctionType, ModuleType
from typing import Any

import numba
import numpy as np

from poolbn.constants import CONVERGED, DETERMINED, UNSETTLED
from poolbn.kernels.deviance import compress
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    Integers,
    cholesky,
    cube,
    entry,
    integers,
    matrix,
    solve,
    unit,
    vector,
)
from poolbn.kernels.steps import (
    copy,
    copy_columns,
    em_step,
    regauge,
    rescale,
    scoring_step,
    way_out,
    widen,
)
from poolbn.kernels.units import (
    H,
    Units,
    advance,
    begin,
    curvature,
    first_t,
    typical,
    whiten_units,
)
from poolbn.kernels.units import arguments as units_arguments
from poolbn.kernels.work import DF, Result, Space, Work, arguments, carve, inline
from poolbn.kernels.work import space as of_space

_MAX_STEPS = 200
_FAR = 100.0  # times the start: a D that the first EM step only roughly knows
_OTHERS = 1e-3  # of the start, for coefficients beside one that differs more
_SMALL = 2.0  # a column this small is tried without, in units of the sampling variance
_HOPELESS = 1e12  # a damping that leaves no step
_LEAST_PART = 1e-8  # of a step, likewise
_NEAR = 1e-3  # a gain near the minimum
_SCORING = 3  # steps
_ROUNDING = 1e-10  # what a deviance may rise by without being worse
# Steps that `evaluate` makes. Numpy's integers: numba would compile it again for each literal.
_steps: Any = np.arange(4)
NO_STEP, ONE_STEP, TWO_STEPS, THREE_STEPS = _steps
FRESH, REFIT, REVALUE = range(3)  # see `_fit_one`
_TOLERANCE_OF_T = 1e-8  # of the deviance
_AWAY = 0.3  # in x, see `units`: the best of some starts may be another one


# The residual model: a module whose functions the templates below call. `minimiser` fills it in.
#   prepare(s, scatter, child)   once for each family, after `compress`: a lower bound of f (-inf:
#       none), what f leaves out of the deviance, and whether there is a maximum
#   guess(s, own)                the first w.y, the parameters beside L; another one where `own`
#   evaluate(s, L, k, steps)     f at the k columns of L. What of w.y can be improved cheaply makes
#       so many steps. Fills w.P and w.e
#   gradient(s)                  fills w.G = df/dD at what was evaluated last
#   derivatives(s, k, f)         fills w.g and w.H in the entries of L, and all that `eliminate`
#       needs. The number of entries, and f at another w.y that was tried (inf: none was); if that
#       is not lower, w.y stays
#   eliminate(s, size, brake)    takes y out of w.g and w.H; its curvatures may be `brake` times
#       larger. What y gains, inf where it has no step
#   step(s, size, part)          w.y becomes w.y_old and a part of what goes with the step of L
#   relax(part, brake, ratio)    after a step, ratio its gain over the predicted one: the next part
#       and brake
#   unevenness(s)                at the best fit: see `Result.uneven`
#   leave(s, result)             at the best fit when polishing: fills result.residual and
#       result.squares, and w.beta, w.S, w.e, which `estimates` reads
#   SCORING                      whether steps of scoring from a start spare more than they cost
# `shapes` tells what arrays of its own it needs. What is called once here should be `inline`.
model: Any = None
SCORING = False  # that of the model


def _start(s: Space, w: Work, start: Floats, polish: bool) -> int:
    """w.L becomes a factor of some first steps from a start; returns its columns.

    A start is three numbers: D = scale I; the coefficient that differs more than the others do, or
    less than 0 for none; and whether the residual model makes its other guess of w.y.

    Scores with one residual variance have steps of scoring, which come near the minimum without
    second derivatives. Final fits, and other models, have EM steps, whose D keeps its rank: from
    there fewer maxima are missed. Where the first of those finds D far larger than the start, it
    saw random effects that were shrunk by data sets of unequal shape, and a second one sets their
    direction right, which Newton steps would do slowly.
    """
    L = w.L
    copy_columns(L, L, 0)
    scale, one = start[0], start[1]
    model.guess(s, start[2] > 0.0)
    k = s.r if scale > 0.0 else 0
    for a in range(k):
        L[a, a] = math.sqrt(scale if one < 0.0 or a == one else _OTHERS * scale)
    steps = 2
    if SCORING and not polish:
        steps = _SCORING
    for _ in range(steps):
        model.evaluate(s, L, k, THREE_STEPS)
        if k == 0:
            break
        model.gradient(s)
        if SCORING and not polish:  # numba leaves the rest out where the first is false
            k = scoring_step(w.L, w.G, w.S, w.D, w.eigenvectors, w.trial, w.unit, s.F)
        elif em_step(w.L, w.G, w.D, w.eigenvectors, w.trial, s.F) < _FAR * scale:
            break
    return k


def _add_column(s: Space, w: Work, k: int, f: float, tolerance: float) -> float:
    """The new f with a column more in w.trial; inf where none gains."""
    t = way_out(w.G, w.P, w.D, w.eigenvectors, w.unit, w.u, tolerance)
    trial, y, y_old = w.trial, w.y, w.y_old
    if t > 0.0:
        copy(y, y_old)
        for _ in range(20):
            widen(w.L, k, t, w.unit, trial)
            fnew: float = model.evaluate(s, trial, k + 1, ONE_STEP)
            if fnew < f:
                return fnew
            copy(y_old, y)
            t *= 0.25
    return np.inf


def _minimise(s: Space, w: Work, k: int, tolerance: float, polish: bool) -> tuple[float, int, bool]:
    """Minimise f from the k columns of w.L and from w.y, which become the minimum's.

    Returns:
        f, rank, and whether it converged. w.P, w.e are those of some trial point.
    """
    # Names for what is used often: numba loads all of a tuple to take one thing out.
    L, trial, D, H, HC, g, move, unit = w.L, w.trial, w.D, w.H, w.HC, w.g, w.step, w.unit
    y, y_old, perm, r = w.y, w.y_old, s.perm, s.r
    # GL = 0 says sum P L = (sum v e e') L with weights v > 0, and sum v e = 0: the rank is at
    # most |F| - 1.
    k = regauge(L, r, k, s.F - 1, perm, D)
    f = model.evaluate(s, L, k, TWO_STEPS)
    damping, smallest = 0.0, np.inf
    part, brake = 1.0, 0.0
    tolerance = max(tolerance, 1e-15 * (abs(f) + s.totals[DF]))  # what rounding leaves of f
    for _ in range(_MAX_STEPS):
        if not f < np.inf:
            return f, k, False
        copy(y, y_old)
        model.gradient(s)
        size, fnew = model.derivatives(s, k, f)
        if fnew <= f:
            f = fnew
            continue
        stale = fnew < np.inf  # P and e are another point's
        gain_y = model.eliminate(s, size, brake)
        if not gain_y < np.inf or not rescale(L, H, g, unit, perm, k):
            return f, k, False

        if k > 0:  # a column that shrinks: is f lower without it?
            norm = 0.0
            for a in range(r):
                norm += L[a, k - 1] * L[a, k - 1]
            if norm < min(_SMALL, 0.1 * smallest):
                smallest = norm
                fnew = model.evaluate(s, L, k - 1, ONE_STEP)
                if fnew <= f:
                    f = fnew
                    k = regauge(L, r, k - 1, k - 1, perm, D)
                    smallest = np.inf
                    continue
                copy(y_old, y)
                stale = True

        moved = settled = False
        while part > _LEAST_PART:
            while not cholesky(H, HC, size, damping) and damping < _HOPELESS:
                damping = max(4.0 * damping, 1e-3)
            for x in range(size):
                move[x] = -g[x]
            solve(HC, size, move)
            gain = gain_y * part * (2.0 - part)
            for x in range(size):
                gain += 0.5 * move[x] * (damping * move[x] - g[x])
            if gain < tolerance and not polish:
                break
            copy_columns(L, trial, k)
            x = 0
            for b in range(k):
                for i in range(b, r):
                    trial[perm[i], b] += unit[x] * move[x]
                    x += 1
            model.step(s, size, part)
            fnew = model.evaluate(s, trial, k, NO_STEP)
            stale = True
            small = gain < tolerance  # polish: the step is below what f can tell
            ratio = (f - fnew) / gain if gain > 0.0 else 0.0
            good = fnew < f + _ROUNDING if small else ratio > 1e-3
            # What f and its model differ by is of third order in the step, what is left of fourth.
            settled = damping == 0.0 and gain < _NEAR and abs(f - fnew - gain) < tolerance
            if good:
                copy_columns(trial, L, r)
                f = min(f, fnew)
            else:
                copy(y_old, y)
            if small:
                break
            if good:
                if ratio > 0.75:
                    damping = damping / 5.0 if damping > 1e-6 else 0.0
                elif ratio < 0.25:
                    damping = max(2.0 * damping, 1e-3)
                part, brake = model.relax(part, brake, ratio)
                moved = True
                break
            damping = min(max(4.0 * damping, 1e-2), _HOPELESS)
            part *= 0.5
        if moved:
            k = regauge(L, r, k, k, perm, D)
            if not settled or polish:
                continue
            model.gradient(s)
        if k == r:
            return f, k, True
        if stale and not moved:
            model.evaluate(s, L, k, NO_STEP)
            model.gradient(s)
        fnew = _add_column(s, w, k, f, tolerance)
        if fnew == np.inf:
            return f, k, True
        f = fnew
        copy_columns(trial, L, r)
        k = regauge(L, r, k + 1, k + 1, perm, D)
        damping, smallest = 0.0, np.inf
        part, brake = 1.0, 0.0
    return f, k, False


def _fit_one(
    s: Space,
    mean: Floats,
    scatter: Floats,
    child: int,
    parents: Integers,
    least: float,
    starts: Floats,
    near: float,
    tolerance: float,
    polish: bool,
    how: int,
    known: int,
) -> tuple[float, int, int]:
    """Fit one family: its deviance, inf where there is none, the rank of D, and a code.

    `how` is FRESH, or the family was fitted before, with other statistics, and D had the `known`
    rank: REFIT starts there, REVALUE says the deviance there.

    Without starts the deviance is its lower bound. `least` is the least residual variance of the
    child, where each data set has its own. Where f is within `near` of its lower bound, for each
    rank of D and two more, no further start is tried. w.best and w.y_best are those of the fit.
    """
    w = carve(s)
    code: int = compress(s, mean, scatter, child, parents, how != FRESH)
    if code != CONVERGED:
        return np.inf, 0, code
    lowest, constant, exists = model.prepare(s, scatter, child, least)
    if starts.shape[0] == 0:
        return lowest + constant, 0, CONVERGED
    if not exists:
        return np.inf, 0, DETERMINED
    if how == REVALUE:
        copy(w.y_best, w.y)
        return model.evaluate(s, w.best, known, NO_STEP) + constant, known, CONVERGED
    deviance, rank = lowest, 0
    for i in range(starts.shape[0]):
        if i > 0 and (how == REFIT or deviance < lowest + near * (rank + 2)):
            break
        if how == REFIT:
            copy_columns(w.best, w.L, known)
            copy(w.y_best, w.y)
            k = known
        else:
            k = _start(s, w, starts[i], polish)
        f, k, converged = _minimise(s, w, k, tolerance, polish)
        if i == 0 or f < deviance - _ROUNDING:
            deviance, rank = f, k
            code = CONVERGED if converged else UNSETTLED
            copy_columns(w.L, w.best, k)
            copy(w.y, w.y_best)
    return deviance + constant, rank, code


def _fit(
    n: Floats,
    weight: Floats,
    mean: Floats,
    scatter: Floats,
    children: Integers,
    offsets: Integers,
    parents: Integers,
    without: Integers,
    least: Floats,
    reml: bool,
    starts: Floats,
    near: float,
    tolerance: float,
    polish: bool,
    buffer: Floats,
    more: Floats,
    perm: Integers,
    totals: Floats,
    deviance: Floats,
    rank: Integers,
    code: Integers,
    residual: Floats,
    squares: Floats,
    uneven: Floats,
) -> None:
    """Fit each family, children[m] given parents[offsets[m] : offsets[m + 1]], from starts (S, 3).

    See `_fit_one`. Data sets have n rows, and their intercepts weigh as much as `weight` of these,
    (F,) each. The last without[m] parents have no random effects; the intercept always has.
    `least` is that of each column (N,). The last six are a `Result` to fill.
    """
    result = Result(deviance, rank, code, residual, squares, uneven)
    F = n.shape[0]
    for family in range(children.shape[0]):
        pa = parents[offsets[family] : offsets[family + 1]]
        child = children[family]
        q = pa.shape[0] + 1
        s = Space(
            buffer, more, perm, n, totals, F, q,
            q - without[family], reml, weight,
        )  # fmt: skip
        deviance[family], rank[family], code[family] = fit_one(
            s, mean, scatter, child, pa, least[child], starts, near, tolerance, polish, FRESH, 0
        )
        if code[family] >= DETERMINED or starts.shape[0] == 0:
            continue
        if polish or uneven.shape[0] > 0:
            w = carve(s)
            copy(w.y_best, w.y)
            model.evaluate(s, w.best, rank[family], NO_STEP)
        if uneven.shape[0] > 0:
            uneven[family] = model.unevenness(s)
        if polish:
            model.leave(s, result)


def _fit_units(
    mean: Floats,
    scatter: Floats,
    data_set: Integers,
    size: Floats,
    count: Floats,
    sums: Floats,
    squares: Floats,
    weight: Floats,
    own_mean: Floats,
    own_scatter: Floats,
    inside: bool,
    n: Floats,
    children: Integers,
    offsets: Integers,
    parents: Integers,
    without: Integers,
    least: Floats,
    reml: bool,
    starts: Floats,
    near: float,
    tolerance: float,
    buffer: Floats,
    more: Floats,
    perm: Integers,
    totals: Floats,
    index: Integers,
    z: Floats,
    deviance: Floats,
    ratio: Floats,
    code: Integers,
    uneven: Floats,
) -> None:
    """Fit each family with an intercept for each unit inside data sets, of variance t sigma^2.

    The first eleven are `units.Units`, the next as for `_fit`; index is 0, 1, ..., (q,), z work
    space, (5,); `ratio` gets t, (M,). The fit at a t starts where that before ended, and where t
    came far there is another one from all starts.
    """
    u = Units(
        mean, scatter, data_set, size, count, sums, squares, weight, own_mean, own_scatter, inside
    )
    typical_size = typical(u)
    for family in range(children.shape[0]):
        pa = parents[offsets[family] : offsets[family + 1]]
        child = children[family]
        p = pa.shape[0]
        s = Space(
            buffer, more, perm, n, totals, n.shape[0], p + 1, p + 1 - without[family], reml, weight
        )
        w = carve(s)
        start = first_t(u, n, child, pa, w.S, w.C, w.beta)
        begin(z, start, typical_size)
        x, x_old, fresh, how, rank = z[0], z[0], z[0], FRESH, 0
        while True:
            x = z[0]
            t = math.expm1(x) / typical_size
            extra = whiten_units(u, t, child, pa, -1)
            f, rank, code[family] = fit_one(
                s,
                own_mean,
                own_scatter,
                p,
                index[:p],
                least[child],
                starts,
                near,
                tolerance,
                False,
                how,
                rank,
            )
            deviance[family], ratio[family] = f + extra, t
            if how == REFIT and not f < np.inf:
                how = FRESH
                continue
            if start < 0.0 or not f < np.inf:
                break
            extra_after = whiten_units(u, math.expm1(x + H) / typical_size, child, pa, -1)
            g, _, _ = fit_one(
                s,
                own_mean,
                own_scatter,
                p,
                index[:p],
                least[child],
                starts,
                near,
                tolerance,
                False,
                REVALUE,
                rank,
            )
            how = REFIT
            slope = (g + extra_after - f - extra) / H
            if advance(z, x_old, slope, curvature(u, t, -1), _TOLERANCE_OF_T):
                if abs(x - fresh) < _AWAY:
                    break
                begin(z, t, typical_size)
                fresh, how = x, FRESH
            x_old = x
        if uneven.shape[0] > 0 and code[family] < DETERMINED:
            extra = whiten_units(u, ratio[family], child, pa, -1)
            fit_one(
                s,
                own_mean,
                own_scatter,
                p,
                index[:p],
                least[child],
                starts,
                near,
                tolerance,
                False,
                REVALUE,
                rank,
            )
            uneven[family] = model.unevenness(s)


fit_one: Any = None  # that of the model
of_units: Any = (
    *units_arguments, vector, integers, integers, integers, integers, vector, numba.boolean, matrix,
    numba.float64, numba.float64, vector, vector, integers, vector, integers, vector, vector,
    vector, integers, vector,
)  # fmt: skip
_fitted: Any = numba.types.Tuple((numba.float64, numba.int64, numba.int64))


def minimiser(residuals: ModuleType) -> tuple[Any, Any, Any]:
    """Functions of a residual model: the fit of one family, for kernels; the two entry points.

    The templates are copied with the model among their globals. Numba caches what is compiled
    beside the file that its code says it is from, under its name there: that of the model.
    """
    space = globals() | {
        "model": residuals, "SCORING": residuals.SCORING, "__name__": residuals.__name__,
    }  # fmt: skip
    for template in (_start, _add_column, _minimise):
        space[template.__name__] = inline(FunctionType(template.__code__, space))

    def copied(template: Any, name: str) -> FunctionType:
        code = template.__code__.replace(co_filename=str(residuals.__file__), co_name=name)
        return FunctionType(code, space, name)

    one = unit(
        _fitted, of_space, matrix, cube, numba.int64, integers, numba.float64, matrix,
        numba.float64, numba.float64, numba.boolean, numba.int64, numba.int64,
    )(copied(_fit_one, "fit_one"))  # fmt: skip
    space["fit_one"] = one
    with_units = entry(*of_units)(copied(_fit_units, "fit_units"))
    return one, entry(*arguments)(copied(_fit, "fit")), with_units
