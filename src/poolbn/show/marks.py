"""What a drawing shows of each arc: how strong, of which sign, how different between data sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolbn.assess.resample import Bootstrap
from poolbn.errors import DataError
from poolbn.graph.pairs import Pair
from poolbn.network.network import Network


@dataclass(frozen=True)
class Mark:
    """What is shown of one arc.

    Attributes:
        parent: the node that it leaves.
        child: the node that it enters.
        effect: the population's, standardised: in standard deviations of the child for one of the
            parent, both inside data sets.
        between_sd: its standard deviation between data sets, standardised likewise.
        reversible: whether equivalent graphs have it the other way round; what constraints the
            search had does not matter.
        ok: whether the child's fit has a likelihood.
    """

    parent: str
    child: str
    effect: float
    between_sd: float
    reversible: bool
    ok: bool

    @property
    def varies(self) -> float:
        """The standard deviation between data sets relative to the effect, at most 1."""
        if self.between_sd == 0:
            return 0.0
        return min(1.0, self.between_sd / abs(self.effect)) if self.effect else 1.0


def arc_marks(net: Network) -> tuple[Mark, ...]:
    """The marks of all arcs, in the order of the arcs.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> (mark,) = arc_marks(pb.learn(trial, group="clinic"))
        >>> mark.parent, round(mark.effect, 2), round(mark.between_sd, 2), mark.reversible
        ('birthweight_g', 0.77, 0.12, True)
    """
    cpdag = net.dag.cpdag()
    free = {frozenset(edge) for edge in cpdag.undirected}
    scale = unit_ratios(net)
    effects = net.effects()["effect"].tolist()
    marks = []
    for (parent, child), ratio, effect in zip(net.dag.arcs, scale, effects, strict=True):
        fit = net.fits[child]
        spread = fit.between_sd(fit.position(parent))
        reversible = frozenset((parent, child)) in free
        marks.append(Mark(parent, child, effect * ratio, spread * ratio, reversible, fit.status.ok))
    return tuple(marks)


def arc_strengths(net: Network, boot: Bootstrap) -> dict[Pair, float]:
    """The strength of each arc in a bootstrap.

    Raises:
        DataError: the bootstrap was of other nodes.
    """
    place = {node: i for i, node in enumerate(boot.nodes)}
    for node in net.dag.nodes:
        if node not in place:
            raise DataError(
                f"the bootstrap does not know the node {node!r}; it was of "
                f"{', '.join(map(repr, boot.nodes[:12]))}"
            )
    return {(p, c): float(boot.strength[place[p], place[c]]) for p, c in net.dag.arcs}


def unit_ratios(net: Network) -> list[float]:
    """For each arc the parent's standard deviation over the child's, inside data sets.

    Variances are means over the data sets, weighted by their rows.
    """
    variance = np.einsum("j,jii->i", net.joint.prior, net.joint.cov)
    sd = dict(zip(net.joint.names, np.sqrt(variance).tolist(), strict=True))
    return [sd[parent] / sd[child] if sd[child] else 0.0 for parent, child in net.dag.arcs]
