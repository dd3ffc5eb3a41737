"""Draws of missing cells given the others of their row: Gibbs sweeps over nodes of all kinds.

A node given all others has the density of itself given its parents times those of its children. A
discrete node is drawn from it level by level. A continuous one is normal where its children are
continuous; where some are not, that normal distribution proposes a value and their probabilities
decide (Metropolis), and so does a step of chance. A count is proposed by its own distribution, and
by such a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Flags
from poolbn.inference.locals import Local
from poolbn.nodes.links import drawn_levels
from poolbn.nodes.predicting import Floats, Integers

_FLOOR = 1e-10  # the least residual variance, of the variance of the column
_STEP = 1.5  # of a random walk, in conditional SDs
_IMPOSSIBLE = -1e4  # log density


class Rows(NamedTuple):
    """Rows whose missing cells are drawn."""

    values: Floats  # of all nodes, filled in, (N, R)
    missing: Flags  # which cells are drawn, (N, R)
    sets: Integers  # the data set of each row, (R,)


@dataclass(frozen=True, eq=False)
class Sampler:
    """Gibbs sweeps over the missing cells of rows."""

    nodes: Sequence[Local]  # each given its parents, with certain parameters
    scale: Floats  # about the SD of each node, (N,)

    def sweeps(self, rows: Rows, times: int, seed: Sequence[int]) -> Floats:
        """The rows after some sweeps, (N, R); the same seed gives the same random numbers.

        Each node has random numbers of its own in each sweep, so that two networks that differ
        little fill cells alike.
        """
        values = rows.values.copy()
        at = [np.flatnonzero(own) for own in rows.missing]
        children = [
            [c for c, node in enumerate(self.nodes) if v in node.parents]
            for v in range(len(self.nodes))
        ]
        for sweep in range(times):
            for v, own in enumerate(at):
                if len(own):
                    rng = np.random.default_rng([*seed, sweep, v])
                    of = _Cells(self, v, children[v], values[:, own], rows.sets[own])
                    values[v, own] = of.drawn(rng)
        return values


@dataclass(frozen=True, eq=False)
class _Cells:
    """The missing cells of one node."""

    sampler: Sampler  # all nodes
    v: int  # the node
    children: Sequence[int]  # its children
    values: Floats  # all cells of the rows, (N, r)
    sets: Integers  # their data sets, (r,)

    def drawn(self, rng: np.random.Generator) -> Floats:
        """A value for each row, (r,)."""
        node = self.sampler.nodes[self.v]
        if node.is_gaussian:
            return self._continuous(node, rng)
        if node.levels <= 0:
            return self._proposed(node, rng)
        logs = node.of.log_levels(self._above(node), self.sets)
        for k in range(node.levels):
            logs[:, k] += self._likelihood(self.children, np.full(len(self.sets), float(k)))
        logs = np.maximum(logs, _IMPOSSIBLE)
        p = np.exp(logs - logs.max(axis=1, keepdims=True))
        return drawn_levels(p / p.sum(axis=1, keepdims=True), rng)

    def _above(self, node: Local, x: Floats | None = None) -> dict[str, Floats]:
        """The parents of a node, where this one is x, or as it is."""
        return node.named(self.values[p] if x is None or p != self.v else x for p in node.parents)

    def _likelihood(self, children: Sequence[int], x: Floats) -> Floats:
        """Log densities of some children if this node is x, (r,)."""
        found = np.zeros(len(self.sets))
        for c in children:
            child = self.sampler.nodes[c]
            own = child.of.log_density(self.values[c], self._above(child, x), self.sets)
            found += np.maximum(own, _IMPOSSIBLE)
        return found

    def _continuous(self, node: Local, rng: np.random.Generator) -> Floats:
        nodes, current, n = self.sampler.nodes, self.values[self.v], len(self.sets)
        floor = _FLOOR * self.sampler.scale**2
        own, scale, _ = node.of.at(self._above(node), self.sets)
        precision = 1 / np.maximum(scale**2, floor[self.v])
        total = precision * own
        others = []
        for c in self.children:
            child = nodes[c]
            if child.of.regressions is None:
                others.append(c)
                continue
            # x_c = m + b (v - current) + e: what that says of v.
            above = self._above(child)
            at = child.of.strata(above, self.sets)
            b = child.of.regressions.coef[at, 1 + child.terms.index((self.v, -1))]
            m, scale, _ = child.of.at(above, self.sets)
            weight = b / np.maximum(scale**2, floor[c])
            precision = precision + b * weight
            total += weight * (self.values[c] - m + b * current)
        mean, sd = total / precision, 1 / np.sqrt(precision)
        proposed: Floats = mean + sd * rng.standard_normal(n)
        if not others:
            return proposed
        likelihood = partial(self._likelihood, others)
        x = _decided(current, proposed, likelihood, rng)
        step = x + _STEP * sd * rng.standard_normal(n)
        return _decided(x, step, lambda x: likelihood(x) - 0.5 * ((x - mean) / sd) ** 2, rng)

    def _proposed(self, node: Local, rng: np.random.Generator) -> Floats:
        """A count, or a number that is not normal."""
        above, whole = self._above(node), node.levels < 0
        likelihood = partial(self._likelihood, self.children)
        x = _decided(self.values[self.v], node.of.draw(above, self.sets, rng), likelihood, rng)

        def density(x: Floats) -> Floats:
            there = np.maximum(x, 0.0) if whole else x
            found = node.of.log_density(there, above, self.sets) + likelihood(there)
            return np.where(x != there, -np.inf, np.maximum(found, _IMPOSSIBLE))

        scale = float(self.sampler.scale[self.v])
        step = (max(1.0, scale) if whole else scale) * rng.standard_normal(len(x))
        return _decided(x, x + (np.rint(step) if whole else step), density, rng)


def _decided(
    x: Floats, proposed: Floats, density: Callable[[Floats], Floats], rng: np.random.Generator
) -> Floats:
    """What is proposed, or x, by their log densities (Metropolis)."""
    gain = density(proposed) - density(x)
    return np.where(-rng.standard_exponential(len(x)) < gain, proposed, x)
