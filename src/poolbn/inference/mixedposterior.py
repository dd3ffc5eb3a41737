"""`MixedPosterior`: the distribution of some nodes given evidence, in networks of all kinds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from poolbn.errors import OptionError
from poolbn.inference.marginals import Marginal, Points
from poolbn.inference.mixed import Answer, Effort, answers
from poolbn.inference.mixtures import (
    check_one,
    checked_points,
    checked_probabilities,
    shares_line,
)
from poolbn.inference.parts import Mixed
from poolbn.inference.plans import Method
from poolbn.nodes.predicting import Floats
from poolbn.wording import visible

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

_SHOWN = 6  # levels that a printed posterior lists


@dataclass(frozen=True, eq=False, repr=False)
class MixedPosterior:
    """The distribution of some nodes given evidence, in a network with columns of all kinds.

    Attributes:
        targets: the T nodes.
        levels: the F data sets.
        weights: P(data set | evidence), (F,).
        marginals: the distribution of each target.
        categories: the levels of the discrete targets.
        method: how it was found: `str()` is "exact", "quadrature" or "sampling".
        ess: the effective sample size where it was found by sampling; else inf.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "tobacco", "preterm"]]
        >>> net = pb.learn(trial.dropna(), group="clinic", start=[("tobacco", "preterm")],
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
    method: Method
    ess: float

    @property
    def probabilities(self) -> dict[str, pd.Series[float]]:
        """For each discrete target the probabilities of its levels."""
        import pandas as pd

        return {
            name: pd.Series(found.weights[0], index=pd.Index(self.categories[name]), name=name)
            for name, found in zip(self.targets, self.marginals, strict=True)
            if name in self.categories and isinstance(found, Points)
        }

    @property
    def mean(self) -> Floats:
        """Of the targets over all data sets; NaN for discrete ones, (T,)."""
        return self._moments()[0]

    @property
    def sd(self) -> Floats:
        """Standard deviations of the targets; NaN for discrete ones, (T,)."""
        return self._moments()[1]

    def _moments(self) -> tuple[Floats, Floats]:
        out = np.full((2, len(self.targets)), np.nan)
        for t, (name, found) in enumerate(zip(self.targets, self.marginals, strict=True)):
            if name not in self.categories:
                out[:, t] = np.concatenate(found.moments())
        return out[0], out[1]

    def cdf(self, x: ArrayLike) -> Floats:
        """P(target <= x), for one target that is a number.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "bmi", "tobacco"]].dropna()
            >>> net = pb.learn(trial, group="clinic", pooling="complete",
            ...                start=[("tobacco", "bmi")], search=pb.HillClimb(max_iter=0))
            >>> net.posterior({"tobacco": "yes"}, "bmi").cdf([20, 30]).round(2)
            array([0.15, 0.63])
        """
        points = checked_points(x)
        one = self._one()
        found = [one.cdf(np.array([at]))[0] for at in points.ravel().tolist()]
        return np.array(found).reshape(points.shape)

    def quantile(self, p: ArrayLike) -> Floats:
        """The x with P(target <= x) = p, for one target that is a number.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "bmi", "tobacco"]].dropna()
            >>> net = pb.learn(trial, group="clinic", pooling="complete",
            ...                start=[("tobacco", "bmi")], search=pb.HillClimb(max_iter=0))
            >>> net.posterior({"tobacco": "yes"}, "bmi").quantile([0.25, 0.75]).round(1)
            array([22.7, 32.5])
        """
        wanted = checked_probabilities(p)
        one = self._one()
        found = [one.quantile(at)[0] for at in wanted.ravel().tolist()]
        return np.array(found).reshape(wanted.shape)

    def _one(self) -> Marginal:
        check_one(self.targets)
        if self.targets[0] in self.categories:
            raise OptionError(
                f"{self.targets[0]!r} is discrete and has no distribution function; use "
                ".probabilities"
            )
        return self.marginals[0]

    def __repr__(self) -> str:
        lines = [f"Posterior of {', '.join(map(visible, self.targets))}"]
        shares = self.probabilities
        for name, mean, sd in zip(self.targets, self.mean, self.sd, strict=True):
            if name in shares:
                first = shares[name].iloc[:_SHOWN]
                words = ", ".join(f"{level} {share:.3g}" for level, share in first.items())
                words = visible(words) + ", ..." * (len(shares[name]) > _SHOWN)
            else:
                words = f"mean {mean:.6g}, SD {sd:.4g}"
            lines.append(f"  {visible(name)}  {words}")
        lines.append(shares_line(self.levels, self.weights))
        of = f", effective sample size {self.ess:.0f}" if np.isfinite(self.ess) else ""
        return "\n".join([*lines, f"  found by  {self.method}{of}"])


def posterior(
    mixed: Mixed,
    evidence: Floats,
    code: int,
    targets: list[int],
    categories: Mapping[str, Sequence[str]],
    effort: Effort,
) -> MixedPosterior:
    """The distribution of some nodes given one row.

    Args:
        mixed: the network.
        evidence: the row, NaN where there is no evidence, (N,).
        code: the known data set, or -1.
        targets: positions of the nodes.
        categories: levels of discrete nodes.
        effort: how.
    """
    found: list[Answer] = []
    answers(mixed, evidence[None], np.array([code]), targets, effort, found.append)
    (answer,) = found
    weights = np.zeros(len(mixed.levels))
    weights[slice(None) if code < 0 else slice(code, code + 1)] = answer.weights[0]
    return MixedPosterior(
        targets=tuple(mixed.names[t] for t in targets),
        levels=mixed.levels,
        weights=weights,
        marginals=tuple(answer.marginal(mixed, t) for t in targets),
        categories={name: own for name, own in categories.items() if own},
        method=answer.method,
        ess=float(answer.ess[0]),
    )
