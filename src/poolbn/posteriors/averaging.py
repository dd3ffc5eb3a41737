"""Effects averaged over graphs: what is uncertain of the graph is in their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, InPython
from poolbn.moments.standardised import Family
from poolbn.network.effects import TERM
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.terms import Term
from poolbn.posteriors.families import Families
from poolbn.posteriors.mixing import monte_carlo
from poolbn.posteriors.sample import GraphSample

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Fit = Callable[[Sequence[Family]], list[LocalFit]]

_LEFT = 0.005  # probability of sets of parents that are so improbable that none is fitted
_SMALL = 0.01  # probability of an arc that is not worth a row
_STEPS = 60  # of bisection

COLUMNS = (*TERM, "probability", "effect", "if_present", "lower", "upper")


class _Parts(NamedTuple):
    """Student's t distributions, and with the rest of the probability 0.

    Attributes:
        weight: probabilities, (K,).
        center: (K,).
        se: (K,).
        df: (K,).
    """

    weight: Floats
    center: Floats
    se: Floats
    df: Floats

    @property
    def mean(self) -> float:
        """Of all."""
        return float(self.weight @ self.center)

    def quantile(self, p: float) -> float:
        """The least number that is exceeded with probability 1 - p; NaN where an error is."""
        from scipy.special import stdtr

        used = self.weight > 0
        weight, center, se, df = (each[used] for each in self)
        if not (np.isfinite(se).all() and np.isfinite(center).all()):
            return float("nan")
        rest = max(0.0, 1.0 - float(weight.sum()))

        def below(x: float) -> float:
            with np.errstate(divide="ignore", invalid="ignore"):
                z = (x - center) / se
            z = np.where(se > 0, z, np.where(x >= center, np.inf, -np.inf))
            return float(weight @ stdtr(df, z)) + (rest if x >= 0 else 0.0)

        # 0 is a point with a probability of its own.
        if below(0.0) >= p > below(0.0) - rest:
            return 0.0
        low, high = -1.0, 1.0
        while below(low) > p:
            low *= 2
        while below(high) < p:
            high *= 2
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if below(middle) < p else (low, middle)
        return (low + high) / 2


class _Fitted(NamedTuple):
    """A node given some parents, and their probability."""

    fit: LocalFit
    probability: float


@dataclass(frozen=True, eq=False)
class Averaged:
    """The fits of probable sets of parents.

    Attributes:
        names: the N columns.
        fits: for each node its fits, with their probabilities, which have sum 1.
        arcs: the probability of each arc, (N, N).
    """

    names: tuple[str, ...]
    fits: Mapping[int, Sequence[_Fitted]]
    arcs: Floats

    def table(self, interval: float) -> pd.DataFrame:
        """A row for each arc that is not improbable; for each `Term` of it."""
        import pandas as pd

        order = np.argsort(-self.arcs, axis=None, kind="stable")
        rows: list[tuple[Any, ...]] = []
        for p, c in zip(*np.unravel_index(order, self.arcs.shape), strict=True):
            if self.arcs[p, c] < _SMALL:
                break
            parent, child = self.names[p], self.names[c]
            for term, parts in self._terms(parent, int(c)):
                tails = ((1 - interval) / 2, (1 + interval) / 2)
                weight = float(parts.weight.sum())
                present = parts.mean / weight if weight > 0 else float("nan")
                numbers = (parts.mean, present, *map(parts.quantile, tails))
                told = (parent, term.level, child, term.outcome, term.scale)
                reported = term.reported(np.array(numbers)).tolist()
                rows.append((*told, float(self.arcs[p, c]), *reported))
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def _terms(self, parent: str, c: int) -> list[tuple[Term, _Parts]]:
        """The effects of an arc: what one is of, and their distribution."""
        found: dict[tuple[str, str], list[tuple[float, Term]]] = {}
        for fit, probability in self.fits[c]:
            if parent in fit.parents:
                for term in fit.terms(parent):
                    found.setdefault((term.level, term.outcome), []).append((probability, term))
        made = []
        for terms in found.values():
            columns = zip(*((w, term.effect, term.se, term.df) for w, term in terms), strict=True)
            parts = _Parts(*(np.array(column, dtype=float) for column in columns))
            made.append((terms[0][1], parts))
        return made


def averaged_fits(
    names: tuple[str, ...],
    parts: Sequence[tuple[Families, Floats]],
    arcs: Floats,
    fit: Fit,
) -> Averaged:
    """Fits of the sets of parents that have nearly all of the probability.

    Args:
        names: the columns.
        parts: sets of parents, and the probability of each.
        arcs: the probability of each arc, (N, N).
        fit: makes the final fits of families.
    """
    wanted: list[tuple[Family, float]] = []
    for families, probabilities in parts:
        for c, node in enumerate(families.nodes.tolist()):
            own = probabilities[families.of(c)]
            order = np.argsort(-own, kind="stable")
            kept = order[: int(np.searchsorted(np.cumsum(own[order]), 1 - _LEFT)) + 1]
            for k in kept.tolist():
                row = families.parents[families.start[c] + k]
                share = float(own[k] / own[kept].sum())
                wanted.append(((node, tuple(row[row >= 0].tolist())), share))
    found: dict[int, list[_Fitted]] = {}
    fits = fit([family for family, _ in wanted])
    for ((node, _), share), made in zip(wanted, fits, strict=True):
        found.setdefault(node, []).append(_Fitted(made, share))
    return Averaged(names, found, arcs)


def total_effects(
    graphs: GraphSample, fit: Fit, interval: float, rng: np.random.Generator
) -> pd.DataFrame:
    """The effect along all directed paths, averaged over graphs and coefficients.

    Raises:
        DataError: a node is not continuous.
    """
    import pandas as pd

    names = graphs.nodes
    coefficients = _coefficients(graphs, fit, rng)
    total = np.linalg.inv(np.eye(len(names)) - coefficients).astype(float)  # (draws, N, N)
    rows: list[tuple[Any, ...]] = []
    for cause, effect, probability, _ in graphs.paths().itertuples(index=False, name=None):
        if probability < _SMALL:
            break
        own = total[:, names.index(cause), names.index(effect)]
        mean, error = monte_carlo(own, graphs.chains)
        ends = np.quantile(own, [(1 - interval) / 2, (1 + interval) / 2])
        rows.append((cause, effect, probability, float(mean), *ends.tolist(), float(error)))
    columns = ["cause", "effect", "probability", "total", "lower", "upper", "simulation_se"]
    return pd.DataFrame(rows, columns=columns)


def _coefficients(graphs: GraphSample, fit: Fit, rng: np.random.Generator) -> Floats:
    """Those of the population, drawn for each graph, 0 where there is no arc; (draws, N, N)."""
    found = np.zeros(graphs.arcs.shape)
    wanted: dict[Family, list[int]] = {}
    for d, arcs in enumerate(graphs.arcs):
        for c in range(len(graphs.nodes)):
            parents = tuple(np.flatnonzero(arcs[:, c]).tolist())
            if parents:
                wanted.setdefault((c, parents), []).append(d)
    for (c, parents), at, made in zip(wanted, wanted.values(), fit(list(wanted)), strict=True):
        linear, names = made.gaussian, tuple(graphs.nodes[p] for p in parents)
        if linear is None or linear.columns != names:
            raise DataError(
                f"total effects are averaged where all columns are continuous, and "
                f"{graphs.nodes[c]!r} or a parent of it is not; use the paths of the graphs",
                InPython(", post.sample().paths()"),
            )
        drawn = linear.population_draws(len(at), rng)
        found[np.ix_(at, parents, [c])] = drawn[:, 1:, None]
    return found
