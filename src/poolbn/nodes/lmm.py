"""Partial pooling: the linear mixed-effects model of one family (eq. lmenode), from statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Required, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from poolbn.constants import CONVERGED, DEPENDENT, DETERMINED, UNSETTLED
from poolbn.moments.standardised import (
    Family,
    Key,
    Packed,
    StandardisedStats,
    order,
    pack,
    unit_arrays,
    units,
)
from poolbn.run.compiling import kernels

# Which coefficients vary: all, the intercept alone, or that and the slopes of these parents.
Random = Literal["full", "intercept"] | tuple[str, ...]
Residuals = Literal["shared", "separate", "pooled"]

_NONE = np.empty(0)  # what is not wanted


class Start(NamedTuple):
    """Where the search for a maximum starts, see `kernels.optimise`."""

    scale: float  # D = scale I, in units of the sampling variance of a data set's own coefficients
    one: int = -1  # the coefficient whose scale this is; others have a thousandth. -1: all
    own: bool = False  # separate residuals: variances as they are, not shrunk towards each other


def _starts(*starts: float | Start) -> NDArray[np.float64]:
    """As the kernels read them, (S, 3)."""
    made = [start if isinstance(start, Start) else Start(start) for start in starts]
    return np.array(made, dtype=float).reshape(-1, 3)


# Of final fits where a data set has fewer rows than these for each coefficient. Of 900 families of
# small data sets, with heavy tails and large differences, 8 with separate residuals ended below the
# best of these with the usual starts, by up to 1.7. And with pooled ones one was below what one
# residual variance has, a special case of them, which is then taken; but where a data set's squares
# are raised, that is another likelihood.
_ROWS = 4
_MANY = (0.0, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4, 1e6)
TOLERANCE = 1e-9  # a predicted fall of the deviance that is not worth a step

# Columns that a search leaves out, see `kernels.screens`. These are no bounds. But of 76,524
# columns that raise the score, among 272,942 of families of simulated and real tables, 5 would be
# left out, and 80% of the others. 2 of 720 searches end in another graph: benchmarks/candidates.py.
_MORE = 1.5  # what a fit may gain, over what small steps do
_OWN = 0.5  # of the charge for a parent, what the data sets' own slopes may gain
_LOSS = 1e-6  # of score, at least, by such a column


class Kind(TypedDict, total=False):
    """Which mixed-effects model."""

    random: Required[Random]
    residuals: Residuals
    reml: bool


class Maxima(NamedTuple):
    """Maximised log-likelihoods of M families, -inf where there is none.

    And how uneven residual variances are, see `Likelihoods`, (M,) each.
    """

    loglik: NDArray[np.float64]
    uneven: NDArray[np.float64]


class MixedFit(NamedTuple):
    """One fitted family, in the units of the data; parents in the order given.

    Attributes:
        loglik: maximised log-likelihood, or restricted log-likelihood.
        sigma2: residual variance of each data set, (F,).
        fixed: fixed effects, (q,); fixed_cov: their covariance, (q, q).
        random_cov: covariance of the random effects, (q, q); zero where there are none.
        random: predicted random effects (BLUPs), (F, q).
        conditional_cov: their covariance given the data and the other parameters, (F, q, q).
        effective_df: effective degrees of freedom of each data set's random effects, (F,).
        squares: generalised residual squares of each data set, (F,). With shared residuals they sum
            to n sigma^2 (REML: n - q).
        rank: rank of random_cov.
        converged: whether the search for the maximum came to an end.
        raised: whether a data set had next to no residuals, see `kernels.linalg.raise_squares`.
        data: the statistics that it is of: whitened, where there are units inside data sets.
        shape: of the inverse gamma distribution of residual variances; inf where they are equal,
            None where they are not pooled.
        scale: 1 / E(1 / sigma^2) of that distribution, None likewise.
    """

    loglik: float
    sigma2: NDArray[np.float64]
    fixed: NDArray[np.float64]
    fixed_cov: NDArray[np.float64]
    random_cov: NDArray[np.float64]
    random: NDArray[np.float64]
    conditional_cov: NDArray[np.float64]
    effective_df: NDArray[np.float64]
    squares: NDArray[np.float64]
    rank: int
    converged: bool
    raised: bool
    data: StandardisedStats
    shape: float | None = None
    scale: float | None = None


class _Variances(NamedTuple):
    """In units of the child's pooled variance: sigma2, (F,).

    And what covariances of BLUPs are multiples of, one number or (F, 1, 1), and the shape of the
    distribution of pooled variances.
    """

    own: NDArray[np.float64]
    random: float | NDArray[np.float64]
    shape: float | None = None


def expected_variance(
    shape: float, scale: float, n: NDArray[np.float64], squares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """E(sigma_j^2) in each data set after its rows were seen, (F,), where variances are pooled.

    sigma_j^2 is then inverse gamma with shape v = a + n_j / 2 and scale g = a s + q_j / 2, and the
    mean is g / (v - 1). It is also what to plug in: the divergence of a node N(z'b, u) from the
    truth N(z'c, sigma_j^2) is [sigma_j^2 + (z'(c - b))^2] / u + log u up to constants and a half.
    Given sigma_j^2 the coefficients c have covariance sigma_j^2 V_j around b, so the expectation
    over all that is unknown, and over the rows' z, has its minimum at
    u = E(sigma_j^2) (1 + tr(V_j Z_j'Z_j) / n_j).

    Args:
        shape: a, which may be inf.
        scale: s.
        n: rows, (F,).
        squares: generalised residual squares q_j, (F,).
    """
    if math.isinf(shape):
        return np.full(len(n), scale)
    # Where v is at most 1 there is no mean; as little as half a row more gives one.
    return np.asarray((shape * scale + squares / 2) / np.maximum(shape + n / 2 - 1, 0.5))


def _shared(raw: Any, n: NDArray[np.float64], effective_df: NDArray[np.float64]) -> _Variances:
    scale = raw.residual.item(0)
    own = np.empty(len(n))
    own.fill(scale)
    return _Variances(own, scale)


def _pooled(raw: Any, n: NDArray[np.float64], effective_df: NDArray[np.float64]) -> _Variances:
    scale, tau = raw.residual[:2].tolist()
    shape = 1 / tau if tau > 0 else math.inf
    own = expected_variance(shape, scale, n, raw.squares) * (1 + effective_df / n)
    return _Variances(own, own[:, None, None], shape)


def _separate(raw: Any, n: NDArray[np.float64], effective_df: NDArray[np.float64]) -> _Variances:
    return _Variances(raw.residual[1:], raw.residual.item(0))


@dataclass(frozen=True)
class ResidualModel:
    """How residual variances differ between data sets: a kernel, and how it is used.

    Attributes:
        kernel: module of `poolbn.kernels`, with `fit` and `shapes`.
        score_starts: starts of a score, as `_starts` makes them.
        final_starts: those of a final fit.
        near: distance from the lower bound of the deviance, for each rank of D and two more and
            each data set but one, within which a score tries no further start.
        counts: variance parameters that all rows, the number of data sets, and the rows of single
            data sets inform, the last for each (eq. nparams).
        words: what `str()` of the pooling says of it.
        variances: residual variances, from what the kernel leaves, rows and effective_df.
    """

    kernel: str
    score_starts: NDArray[np.float64]
    final_starts: NDArray[np.float64]
    near: float
    counts: tuple[int, int, int]
    words: str
    variances: Callable[[Any, NDArray[np.float64], NDArray[np.float64]], _Variances]


# 0 comes first in a final fit, so that of equally good fits the one without random effects is kept;
# of 3195 families of real and simulated tables all but one came to the best known maximum. For a
# score the first start has to do, but where it ends far below the upper bound of the likelihood, as
# nearly all that miss the best maximum do: there the second is tried. That finds the best of all
# in 99.3% of 48,000 other families (EM steps from 10 and 1e6: 99.2%, and they lose half as much
# again), in three quarters of the time. Of 1600 searches over tables by the paper's generator 0.3%
# end with a lower score than with all starts.
# The fit of fewer parents would be a better start for a score, but by one evaluation in eight only,
# and scores would depend on the way to them.
# With pooled residual variances data sets that differ can also be tails, and the bound says less:
# scores have two starts, which find in 99.2% of 3267 families what all do (one: 98%). With one, 7%
# of 639 searches ended lower than with all, with two 0.5%.
# With separate ones a data set that differs may have coefficients of its own or a large variance:
# 96.9% (one: 95.6%), and all come to the best known maximum in 99.5%. Of 762 searches 2% ended
# lower than with all starts, 5% with one.
RESIDUALS: dict[str, ResidualModel] = {
    "shared": ResidualModel(
        "shared", _starts(3.0, 1e6), _starts(0.0, 3.0, 1e3, 1e6, 0.1), 2.5,
        (1, 0, 0), "", _shared,
    ),
    "pooled": ResidualModel(
        "pooled", _starts(30.0, 1e6), _starts(0.0, 30.0, 1e6, 100.0, 0.1), 0.0,
        (1, 1, 0), " and residuals", _pooled,
    ),
    "separate": ResidualModel(
        "separate", _starts(30.0, 1e6), _starts(0.0, 30.0, 1e6, 100.0, 1.0, 0.1), 0.0,
        (0, 0, 1), ", separate residuals", _separate,
    ),
}  # fmt: skip


class Slopes:
    """Which slopes vary between data sets; those that do come first in a family.

    Attributes:
        vary: whether the slope of a column does.
        between: whether differences between data sets tell of it: also of a group-level column.
        key: what the parents of a family are sorted by.
        flags, ranks: `vary` and `key` of all columns, for the kernels.
    """

    def __init__(self, data: StandardisedStats, random: Random) -> None:
        at_level = data.group_level.tolist()
        listed = () if isinstance(random, str) else random
        blocks = tuple(f"{name}=" for name in listed if name not in data.names)  # discrete ones
        self.vary = [
            not level if random == "full" else name in listed or name.startswith(blocks)
            for name, level in zip(data.names, at_level, strict=True)
        ]
        self.between = [a or b for a, b in zip(self.vary, at_level, strict=True)]
        self._all = all(self.vary)
        self.flags = np.array(self.vary)
        rank, N = data.order, len(data.names)
        self.key: Key = rank
        if not self._all:
            self.key = [rank(i) + (0 if self.vary[i] else N) for i in range(N)].__getitem__
        self.ranks = np.array(list(map(self.key, range(N))), dtype=np.int64)

    @staticmethod
    def of(data: StandardisedStats, random: Random) -> Slopes:
        """Made once for each table."""
        found: Slopes | None = data.derived.get((Slopes, random))
        if found is None:
            found = data.derived[Slopes, random] = Slopes(data, random)
        return found

    def without(self, families: Sequence[Family]) -> NDArray[np.int64]:
        """Parents of each family whose slopes do not, (M,)."""
        if self._all:
            return np.zeros(len(families), dtype=np.int64)
        return np.array([sum(not self.vary[i] for i in pa) for _, pa in families], dtype=np.int64)


def log_likelihoods(
    data: StandardisedStats,
    families: Sequence[Family],
    *,
    random: Random,
    residuals: Residuals = "shared",
    reml: bool = False,
    final: bool = False,
    uneven: bool = False,
) -> Maxima:
    """Maximised log-likelihood of each family for a search, see above, or that of its `fit`."""
    uneven = uneven and residuals != "shared"
    if data.units is not None:
        own = Kind(random=random, residuals=residuals, reml=reml)
        return _with_units(data, families, final, uneven, **own)
    if final:
        return _final(data, families, uneven, random=random, residuals=residuals, reml=reml)
    model, slopes = RESIDUALS[residuals], Slopes.of(data, random)
    packed, without = pack(data, families, slopes.key), slopes.without(families)
    near = model.near * (len(data.n) - 1) if random != "intercept" else math.inf
    raw, _, _ = _fit(data, packed, model, without, reml, model.score_starts, near, uneven=uneven)
    if residuals != "shared":  # whose likelihood alone has a maximum wherever it exists
        raw.deviance[raw.code == UNSETTLED] = np.inf
    return Maxima(-0.5 * raw.deviance, raw.uneven if uneven else np.zeros(len(families)))


def _with_units(
    data: StandardisedStats,
    families: Sequence[Family],
    final: bool,
    uneven: bool,
    **kind: Unpack[Kind],
) -> Maxima:
    """Those with an intercept for each unit; final ones are of statistics that are whitened."""
    found = _profile(data, families, final, uneven, **kind)
    if not final:
        return Maxima(found.loglik, found.uneven)
    for m, family in enumerate(families):
        best = _whitened_best(data, family, float(found.ratio[m]), **kind)
        one = _final(best, [family], uneven, **kind)
        found.loglik[m], found.uneven[m] = one.loglik[0] - _extra(best), one.uneven[0]
    return Maxima(found.loglik, found.uneven)


def unit_ratios(
    data: StandardisedStats, families: Sequence[Family], **kind: Unpack[Kind]
) -> NDArray[np.float64]:
    """Variances between units inside data sets over those of residuals, (M,)."""
    return _profile(data, families, False, False, **kind).ratio


def _whitened_best(
    data: StandardisedStats, family: Family, ratio: float, **kind: Unpack[Kind]
) -> StandardisedStats:
    """Whitened with the ratio, or with 0 where a final fit is better with that."""
    F = len(data.n)
    best = data.whitened(np.full(F, ratio))
    if ratio == 0.0:
        return best
    none = data.whitened(np.zeros(F))
    one, other = (_final(of, [family], False, **kind).loglik[0] - _extra(of) for of in (best, none))
    return none if other > one else best


def _extra(data: StandardisedStats) -> float:
    """What log-likelihoods lose by the determinant of the rows' covariance."""
    assert data.log_determinant is not None
    return float(data.log_determinant.sum() / 2)


class _Profile(NamedTuple):
    """Log-likelihoods and ratios t of M families, (M,) each, and `Maxima.uneven`."""

    loglik: NDArray[np.float64]
    ratio: NDArray[np.float64]
    uneven: NDArray[np.float64]


def _profile(
    data: StandardisedStats,
    families: Sequence[Family],
    final: bool,
    uneven: bool,
    **kind: Unpack[Kind],
) -> _Profile:
    """The best variance between units, see `kernels.units`."""
    model, slopes = RESIDUALS[kind["residuals"]], Slopes.of(data, kind["random"])
    packed, without = pack(data, families, slopes.key), slopes.without(families)
    F, M, q = len(data.n), len(families), int(packed.sizes.max(initial=0)) + 1
    near = model.near * (F - 1) if kind["random"] != "intercept" and not final else math.inf
    starts = model.final_starts if final else model.score_starts
    reml, of = kind["reml"], data.units
    assert of is not None
    work, kernel = kernels("work"), kernels(model.kernel)
    buffer, more = work.rooms(F, q, reml, work.shapes, kernel.shapes)
    deviance, ratio, code = np.empty(M), np.empty(M), np.empty(M, dtype=np.int64)
    spread = np.zeros(M) if uneven else _NONE
    kernel.fit_units(
        *unit_arrays(data, q), data.n, *packed, without, data.least, reml, starts,
        0.0 if final else near, TOLERANCE, buffer, more, np.empty(q, dtype=np.int64), np.zeros(4),
        np.arange(q), np.empty(5), deviance, ratio, code, spread,
    )  # fmt: skip
    deviance += units(data, packed, reml)
    if kind["residuals"] != "shared":
        deviance[code == UNSETTLED] = np.inf
    return _Profile(-0.5 * deviance, ratio, spread if uneven else np.zeros(M))


def _many_starts(residuals: Residuals, r: int) -> NDArray[np.float64]:
    """Of a final fit with few rows and r random effects.

    With variances that differ, the scales of all coefficients and the usual guess of the variances
    do not lead everywhere: of the 434 problems of `benchmarks/maxima.py` 1 with pooled and 7 with
    separate residuals have a better maximum, by up to 2, which the other starts find.
    """
    starts: list[float | Start] = [*_MANY]
    if residuals != "shared":
        starts += [Start(30.0, one) for one in range(r)]
    if residuals == "separate":
        starts += [Start(scale, own=True) for scale in _MANY]
        starts += [Start(1e3, one, own=True) for one in range(r)]
    return _starts(*starts)


def _few_rows(data: StandardisedStats, parents: Sequence[int]) -> bool:
    """Whether a likelihood is likely to have several maxima."""
    return data.fewest < _ROWS * (len(parents) + 1)


def _final(
    data: StandardisedStats, families: Sequence[Family], uneven: bool, **kind: Unpack[Kind]
) -> Maxima:
    """Those of final fits, as `fit` has them."""
    model, slopes = RESIDUALS[kind["residuals"]], Slopes.of(data, kind["random"])
    found = Maxima(np.empty(len(families)), np.zeros(len(families)))

    def fill(at: list[int], starts: NDArray[np.float64]) -> bool:
        some = [families[m] for m in at]
        packed, without = pack(data, some, slopes.key), slopes.without(some)
        raw, _, raised = _fit(
            data, packed, model, without, kind["reml"], starts, polish=True, uneven=uneven
        )
        found.loglik[at] = -0.5 * raw.deviance
        if uneven:
            found.uneven[at] = raw.uneven
        return raised

    few = [_few_rows(data, parents) for _, parents in families]
    usual = [m for m, yes in enumerate(few) if not yes]
    if usual:
        fill(usual, model.final_starts)
    for m in (m for m, yes in enumerate(few) if yes):
        r = len(families[m][1]) + 1 - int(slopes.without([families[m]])[0])
        raised = fill([m], _many_starts(kind["residuals"], r))
        if kind["residuals"] != "shared" and not raised and np.isfinite(found.loglik[m]):
            shared = _final(
                data, [families[m]], False,
                random=kind["random"], residuals="shared", reml=kind["reml"],
            )  # fmt: skip
            if shared.loglik[0] > found.loglik[m]:
                found.loglik[m], found.uneven[m] = shared.loglik[0], 0.0
    return found


def upper_bounds(
    data: StandardisedStats, families: Sequence[Family], *, reml: bool = False
) -> NDArray[np.float64]:
    """At least each family's (restricted) log-likelihood, with any random effects, see `bounds`.

    One residual variance; infinite where the data sets' own coefficients leave no residual, -inf
    where a column is a combination of others.
    """
    without = np.zeros(len(families), dtype=np.int64)
    raw, _, _ = _fit(data, pack(data, families), RESIDUALS["shared"], without, reml, _starts())
    return np.asarray(-0.5 * raw.deviance)


def neighbours(
    data: StandardisedStats,
    families: Sequence[Family],
    candidates: NDArray[np.bool_],
    *,
    charges: Callable[[int, int], NDArray[np.float64]],
    improving_only: bool,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores of nodes, or upper bounds, with each change of their parents; whether they are scores.

    All slopes vary that can, and there is one residual variance. The best change of each node is
    known exactly, if it raises the score.

    Args:
        data: the statistics.
        families: the nodes and their parents.
        candidates: columns to add or to remove, (M, N).
        charges: of so many parents and slopes that vary, see `kernels.candidates.look`, (3, 3).
        improving_only: whether columns that would lower the score, as far as can be told without a
            fit, are left out: of them it is only said that they do.
    """
    F, N = data.mean.shape
    model, slopes = RESIDUALS["shared"], Slopes.of(data, "full")
    packed, without = pack(data, families, slopes.key), slopes.without(families)
    sizes = packed.sizes.tolist()
    counts = zip(sizes, without.tolist(), strict=True)
    q = max(sizes) + 1
    work, kernel = kernels("work"), kernels("candidates")
    (buffer,) = work.rooms(F, q + 1, False, work.shapes)
    values, exact = np.empty((len(families), N)), np.empty((len(families), N), dtype=bool)
    kernel.look(
        data.n, data.mean, data.scatter, data.squares, *packed, without, slopes.ranks, slopes.flags,
        candidates, model.score_starts, model.near * (F - 1), TOLERANCE,
        np.array([charges(p, p - none) for p, none in counts]), units(data, packed, False),
        _MORE, _OWN, _LOSS if improving_only else 0.0, buffer,
        *np.empty((2, q + 1), dtype=np.int64), np.zeros(4), np.empty((q, q)), np.empty((q, q)),
        np.zeros(kernels("screens").room(F, q, N)), np.empty((2, N)), values, exact,
    )  # fmt: skip
    return values, exact


def fit(
    data: StandardisedStats,
    child: int,
    parents: tuple[int, ...],
    *,
    random: Random,
    residuals: Residuals = "shared",
    reml: bool = False,
) -> MixedFit | int | None:
    """The final fit of one family: all starts, and everything in the units of the data.

    Returns:
        The fit; or, where no finite likelihood has a maximum, the position in `parents` of a column
        that is a combination of the others, or None if the child is determined by its parents.
    """
    kind = Kind(random=random, residuals=residuals, reml=reml)
    if data.units is None:
        return _fit_one(data, child, parents, **kind)
    ratio = float(_profile(data, [(child, parents)], True, False, **kind).ratio[0])
    best = _whitened_best(data, (child, parents), ratio, **kind)
    found = _fit_one(best, child, parents, **kind)
    if not isinstance(found, MixedFit):
        return found
    return found._replace(loglik=found.loglik - _extra(best))


def _fit_one(
    data: StandardisedStats,
    child: int,
    parents: tuple[int, ...],
    *,
    random: Random,
    residuals: Residuals = "shared",
    reml: bool = False,
) -> MixedFit | int | None:
    """That of rows that are independent, or as if they were."""
    F, q = len(data.n), len(parents) + 1
    model, slopes = RESIDUALS[residuals], Slopes.of(data, random)
    packed, without = pack(data, [(child, parents)], slopes.key), slopes.without([(child, parents)])
    r = q - int(without[0])
    few = _few_rows(data, parents)
    starts = _many_starts(residuals, r) if few else model.final_starts
    raw, buffer, raised = _fit(data, packed, model, without, reml, starts, polish=True)
    ordered = order(parents, slopes.key)
    code = int(raw.code[0])
    if code >= DEPENDENT:
        return ordered[code - DEPENDENT - 1]
    if code == DETERMINED:
        return None
    position = np.array([0, *[k + 1 for k in ordered]], dtype=np.int64)
    fixed, fixed_cov, random_cov = np.empty(q), np.empty((q, q)), np.empty((q, q))
    predicted, conditional_cov, effective_df = np.empty((F, q)), np.empty((F, q, q)), np.empty(F)
    kernels("estimates").estimates(
        buffer, data.n, r, reml, data.center, data.scale, child, packed.parents, position,
        np.empty((q, q)), np.empty((q, r)), np.empty(q), fixed, fixed_cov, random_cov,
        predicted, conditional_cov, effective_df,
    )  # fmt: skip
    unit = float(data.scale[child] ** 2)
    scale = float(raw.residual[0])
    variances = model.variances(raw, data.n, effective_df)
    made = MixedFit(
        loglik=float(-0.5 * raw.deviance[0]),
        sigma2=variances.own * unit,
        fixed=fixed,
        fixed_cov=scale * fixed_cov,
        random_cov=scale * random_cov,
        random=predicted,
        conditional_cov=variances.random * conditional_cov,
        effective_df=effective_df,
        squares=raw.squares * unit,
        rank=int(raw.rank[0]),
        converged=code == CONVERGED,
        shape=variances.shape,
        scale=None if variances.shape is None else scale * unit,
        raised=raised,
        data=data,
    )
    if not few or raised or residuals == "shared":
        return made
    least = _fit_one(data, child, parents, random=random, reml=reml)
    if not isinstance(least, MixedFit) or least.loglik <= made.loglik:
        return made
    if residuals == "pooled":
        return least._replace(shape=math.inf, scale=float(least.sigma2[0]))
    return least


def _fit(
    data: StandardisedStats,
    packed: Packed,
    model: ResidualModel,
    without: NDArray[np.int64],
    reml: bool,
    starts: NDArray[np.float64],
    near: float = 0.0,
    *,
    polish: bool = False,
    uneven: bool = False,
) -> tuple[Any, NDArray[np.float64], bool]:
    """A `kernels.work.Result`, its deviances in the units of the data.

    And the last work space, and whether residual squares of the last family were raised.
    """
    F, M = len(data.n), len(packed.children)
    q = int(packed.sizes.max()) + 1
    work, kernel = kernels("work"), kernels(model.kernel)
    buffer, more = work.rooms(F, q, reml, work.shapes, kernel.shapes)
    totals = np.zeros(4)
    rank, code = np.empty(M, dtype=np.int64), np.empty(M, dtype=np.int64)
    spread = np.zeros(M) if uneven else _NONE
    result = work.Result(np.empty(M), rank, code, np.empty(F + 1), np.empty(F), spread)
    kernel.fit(
        data.n, data.weights, data.mean, data.scatter, *packed, without, data.least, reml, starts,
        near, TOLERANCE, polish, buffer, more,
        np.empty(q, dtype=np.int64), totals, *result,
    )  # fmt: skip
    result.deviance[:] += units(data, packed, reml)
    return result, buffer, bool(totals[work.RAISED] > 0.0)
