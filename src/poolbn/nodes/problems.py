"""The regressions of rows that a discrete node or a count may have with some parents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.data import Data
from poolbn.nodes import glmm, marginal
from poolbn.nodes.auto import Candidate
from poolbn.nodes.design import (
    Design,
    about_thresholds,
    design_of,
    deviations,
    levels_in,
    owners_of,
    responses,
)
from poolbn.nodes.links import Response
from poolbn.nodes.localfit import Counts
from poolbn.nodes.poolings import NoPooling, Partial


@dataclass(frozen=True, eq=False)
class Problems:
    """The regressions that a node may have with some parents.

    Attributes:
        design: the rows.
        response: what kind of child.
        owners: the parent that each column after the intercept is of, (q - 1,); "" for thresholds.

    Examples:
        >>> import poolbn as pb
        >>> made = pb.datasets.opt()[["clinic", "age"]].assign(at=lambda x: x["clinic"] == "NY")
        >>> table = pb.table(made, group="clinic", kinds={"age": "count"})
        >>> problems, _ = problems_of(table, "age", ["at"])
        >>> problems.varying(pb.Partial()), problems.varying(pb.Partial(random=["at"]))
        (array([False]), array([ True]))
    """

    design: Design
    response: Response
    owners: tuple[str, ...]

    def of(self, how: Candidate) -> glmm.Problem:
        """That of one way to share strength."""
        vary = self.varying(how) if isinstance(how, Partial) else None
        return self.plain if vary is None or vary.all() else self._with(vary)

    @cached_property
    def plain(self) -> glmm.Problem:
        """With all coefficients varying, where any do."""
        return glmm.Problem(self.design, self.response)

    @cached_property
    def _others(self) -> dict[bytes, glmm.Problem]:
        return {}

    def _with(self, vary: NDArray[np.bool_]) -> glmm.Problem:
        if vary.tobytes() not in self._others:
            made = glmm.Problem(self.design, self.response, vary)
            self._others[vary.tobytes()] = made
        return self._others[vary.tobytes()]

    def varying(self, how: Partial) -> NDArray[np.bool_]:
        """Columns after the intercept whose coefficients vary, see `Partial.random`."""
        if how.random != "full":
            slopes = () if how.random == "intercept" else how.random
            return np.array([name in slopes for name in self.owners], dtype=bool)
        rows = np.diff(self.design.offsets) > 0
        starts, X = self.design.offsets[:-1][rows], self.design.X[:, 1:]
        if self.design.thresholds:  # distances say nothing of x
            X = np.where(self.design.X[:, :1] > 0, X, np.nan)
        most, least = np.fmax.reduceat(X, starts), np.fmin.reduceat(X, starts)
        columns = np.array([name != "" for name in self.owners], dtype=bool)
        return columns & (most > least).any(axis=0)

    def counts(self, how: Candidate) -> Counts:
        """Parameters by what informs them; those of slopes that should vary and do not too."""
        problem = self.of(how)
        own, units = problem.d + problem.dispersed, int(problem.nested)
        if isinstance(how, NoPooling):
            return Counts(0, 0, problem.F * own, own_units=problem.of_units(problem.F))
        between = problem.n_params - own - units if isinstance(how, Partial) else 0
        return Counts(own, between, 0, units=units)

    def partial(self, how: Partial, *, final: bool) -> tuple[glmm.Problem, glmm.Found, bool]:
        """The regression with random effects, its maximum, and whether only the intercept varies.

        Where all vary that `how` says, and variances or correlations of slopes have no maximum
        though complete pooling has one, the rows do not tell of them. With the intercept alone
        there mostly is one.
        """
        problem = self.of(how)
        found = marginal.settle(problem, final)
        if found.ridge != glmm.FREE and problem.r > 1 and not problem.pooled.separated[0]:
            less = self._with(np.zeros(len(self.owners), dtype=bool))
            other = marginal.settle(less, final)
            if other.ridge == glmm.FREE:
                return less, other, True
        return problem, found, False


def problems_of(
    table: Data, child: str, parents: Sequence[str], *, inside: bool = False
) -> list[Problems]:
    """One for each kind of child that it may be, see `responses`.

    With `inside` columns of parents are less their means in data sets.
    """
    design, owners = design_of(table, child, parents), owners_of(table, parents)
    design = deviations(design) if inside else design
    return [problems_about(design, response, owners) for response in responses(table, child)]


def problems_about(design: Design, response: Response, owners: tuple[str, ...]) -> Problems:
    """With rows as the likelihood has them."""
    if response.ordered:
        design = about_thresholds(design, levels_in(design, response.levels))
    return Problems(design, response, owners + ("",) * design.thresholds)
