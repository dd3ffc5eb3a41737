"""`Posterior`: the distribution of some nodes given evidence."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from poolbn.arguments import NUMBERS, check_arguments
from poolbn.arrays import Floats
from poolbn.errors import Option, OptionError
from poolbn.inference.conditioning import condition
from poolbn.inference.marginals import Marginal
from poolbn.later import pandas as pd
from poolbn.wording import visible

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_SHOWN = 6  # data sets, and levels, that a printed posterior lists


class Method(Enum):
    """How an answer was found."""

    EXACT = "exact"
    QUADRATURE = "quadrature"
    SAMPLING = "sampling"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """The distribution of some nodes given evidence, over all data sets and in each.

    A continuous target is Student's t in a data set where its parents are evidence and nothing
    below it is, and parameters are uncertain; else it is normal, or a mixture. Several continuous
    targets of a network whose columns are all continuous are normal together.

    Attributes:
        targets: the T nodes.
        levels: the F data sets.
        weights: P(data set | evidence), (F,).
        marginals: the distribution of each target over all data sets.
        categories: the levels of the discrete targets.
        means: of the targets in each data set, NaN for discrete ones, (F, T).
        covs: of the targets in each data set, (F, T, T); NaN for discrete ones, and between others
            where some column is not continuous. With fewer than 4 degrees of freedom those of a
            normal distribution with the same middle 95%.
        df: degrees of freedom of each target in each data set, inf where it is normal, NaN where it
            is neither normal nor t, (F, T).
        method: how it was found: `str()` is "exact", "quadrature" or "sampling".
        ess: the effective sample size where it was found by sampling; else inf.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()
        >>> arc = {"required": [("age", "bmi")]}
        >>> net = pb.learn(trial[["clinic", "age", "bmi"]].dropna(), group="clinic",
        ...                constraints=arc)
        >>> found = net.posterior({"age": 20}, "bmi")
        >>> found.mean.round(1), found.sd.round(1), found.weights.round(2)
        (array([26.6]), array([7.1]), array([0.14, 0.24, 0.33, 0.29]))
        >>> columns = ["clinic", "age", "tobacco", "preterm"]
        >>> net = pb.learn(trial[columns].dropna(), group="clinic", start=[("tobacco", "preterm")],
        ...                search=pb.HillClimb(max_iter=0))
        >>> found = net.posterior({"preterm": "yes"}, "tobacco")
        >>> found.probabilities["tobacco"].round(2).to_dict(), str(found.method)
        ({'no': 0.85, 'yes': 0.15}, 'exact')
    """

    targets: tuple[str, ...]
    levels: tuple[Hashable, ...]
    weights: Floats
    marginals: tuple[Marginal, ...]
    categories: Mapping[str, Sequence[str]]
    means: Floats
    covs: Floats
    df: Floats
    method: Method = Method.EXACT
    ess: float = np.inf

    @property
    def probabilities(self) -> dict[str, pd.Series[float]]:
        """For each discrete target the probabilities of its levels."""
        return {
            name: pd.Series(found.weights[0], index=pd.Index(self.categories[name]), name=name)
            for name, found in zip(self.targets, self.marginals, strict=True)
            if name in self.categories
        }

    @property
    def mean(self) -> Floats:
        """Of the targets over all data sets; NaN for discrete ones, (T,)."""
        return self.weights @ self._known(self.means)

    @property
    def cov(self) -> Floats:
        """Of the targets over all data sets, within and between them, (T, T); NaN as in `covs`."""
        apart = self._known(self.means - self.mean)
        between = np.einsum("j,ja,jb->ab", self.weights, apart, apart)
        covs = self._known(self.covs)
        return np.einsum("j,jab->ab", self.weights, covs) + between  # type: ignore[no-any-return]

    @property
    def sd(self) -> Floats:
        """Standard deviations of the targets over all data sets; NaN for discrete ones, (T,)."""
        return np.sqrt(np.diagonal(self.cov))

    def _known(self, each: Floats) -> Floats:
        """0 in data sets that are impossible, of which nothing may be known."""
        possible = self.weights.reshape(-1, *[1] * (each.ndim - 1)) > 0
        return np.where(possible, each, 0.0)

    def pdf(self, x: ArrayLike) -> Floats:
        """The density of the targets at points, which are numbers; of a count its probability.

        Args:
            x: a number or an array for one target; for T targets the last axis has T numbers.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> arc = {"required": [("age", "bmi")]}
            >>> net = pb.learn(trial, group="clinic", constraints=arc)
            >>> net.posterior({"age": 20}, "bmi").pdf([20, 30]).round(3)
            array([0.038, 0.05 ])
        """
        points, T = _checked_points(x), len(self.targets)
        if T > 1 and (points.ndim == 0 or points.shape[-1] != T):
            raise OptionError(
                f"a point of {T} targets has {T} numbers; the shape is {points.shape}"
            )
        together = np.isfinite(self.covs).all()
        if T == 1 and not (together and np.isinf(self.df).all()):
            return self._each(points, lambda one, at: one.pdf(np.array([at])))
        if not together:
            raise OptionError(
                f"{', '.join(self.targets)} have no density together where some column is not "
                "continuous; ask for the posterior of one of them"
            )
        rows = points.reshape(-1, T)[None]
        every = np.ones((len(self.levels), T), dtype=bool)
        given = condition(self.means, self.covs, rows, every, np.arange(0))
        density: Floats = self.weights @ np.exp(given.loglik)
        return density.reshape(points.shape if T == 1 else points.shape[:-1])

    def cdf(self, x: ArrayLike) -> Floats:
        """P(target <= x), for one target that is a number.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> arc = {"required": [("age", "bmi")]}
            >>> net = pb.learn(trial, group="clinic", constraints=arc)
            >>> net.posterior({"age": 20}, "bmi").cdf([20, 30]).round(3)
            array([0.167, 0.706])
        """
        return self._each(_checked_points(x), lambda one, at: one.cdf(np.array([at])))

    def quantile(self, p: ArrayLike) -> Floats:
        """The x with P(target <= x) = p, for one target that is a number.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> arc = {"required": [("age", "bmi")]}
            >>> net = pb.learn(trial, group="clinic", constraints=arc)
            >>> net.posterior({"age": 20}, "bmi").quantile([0.25, 0.75]).round(1)
            array([21.9, 30.9])
        """
        check_arguments(p=(p, NUMBERS))
        wanted = np.asarray(p, dtype=np.float64)
        if not ((wanted > 0) & (wanted < 1)).all():
            raise OptionError(Option("p", p), " is not between 0 and 1")
        return self._each(wanted, lambda one, at: one.quantile(at))

    def _each(self, points: Floats, of: Callable[[Marginal, float], Floats]) -> Floats:
        """What the distribution of the one target, which is a number, says at each point."""
        if len(self.targets) > 1:
            raise OptionError(
                f"there are {len(self.targets)} targets; a distribution function and quantiles "
                "need one: ask for the posterior of that one"
            )
        if self.targets[0] in self.categories:
            raise OptionError(
                f"{self.targets[0]!r} is discrete and has no distribution function; use "
                ".probabilities"
            )
        found = [of(self.marginals[0], at)[0] for at in points.ravel().tolist()]
        return np.array(found).reshape(points.shape)

    def __repr__(self) -> str:
        lines = [f"Posterior of {', '.join(map(visible, self.targets))}"]
        shares = self.probabilities
        for name, mean, sd in zip(self.targets, self.mean, self.sd, strict=True):
            words = f"mean {mean:.6g}, SD {sd:.4g}"
            if name in shares:
                some = self.categories[name]
                words = _listed(some, shares[name].tolist(), range(len(some)))
            lines.append(f"  {visible(name)}  {words}")
        order = np.argsort(-self.weights, kind="stable")
        possible = [j for j in order.tolist() if self.weights[j] > 0]
        lines.append(f"  data set  {_listed(self.levels, self.weights.tolist(), possible)}")
        of = f", effective sample size {self.ess:.0f}" if np.isfinite(self.ess) else ""
        return "\n".join([*lines, f"  found by  {self.method}{of}"])


def _listed(names: Sequence[Hashable], shares: Sequence[float], chosen: Sequence[int]) -> str:
    """Probabilities with their names; of many the first ones."""
    words = [f"{names[k]} {shares[k]:.3g}" for k in chosen[:_SHOWN]]
    return visible(", ".join(words)) + ", ..." * (len(chosen) > _SHOWN)


def _checked_points(x: ArrayLike) -> Floats:
    check_arguments(x=(x, NUMBERS))
    return np.asarray(x, dtype=np.float64)
