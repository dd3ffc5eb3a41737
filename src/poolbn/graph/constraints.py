"""What a search may and must do: required and forbidden arcs, tiers, the number of parents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from poolbn.arguments import FLAG, check_arguments, is_list
from poolbn.arrays import Flags, Integers
from poolbn.errors import GraphError, Option, OptionError, check_whole, nearest
from poolbn.graph.dag import Dag
from poolbn.graph.pairs import Pair, checked_nodes, checked_pairs
from poolbn.tables.kinds import has_levels
from poolbn.wording import counted


class Allowed(NamedTuple):
    """Constraints on numbered nodes."""

    arcs: Flags  # arcs that may be there, (N, N), parent first
    required: Flags  # arcs that must be there, (N, N)
    max_parents: int  # of any node


@dataclass(frozen=True)
class Constraints:
    """Constraints on the networks that a search looks at.

    Attributes:
        required: arcs (parent, child) that must be there.
        forbidden: arcs that must not be there.
        tiers: lists of nodes, earlier first: nothing later may point to something earlier. Nodes
            in no tier are free.
        max_parents: of any node; no limit by default.
        continuous_to_discrete: False forbids arcs from continuous columns and counts to discrete
            ones, as bnlearn does.

    Examples:
        >>> Constraints(tiers=[["age"], ["bmi"]]).on(["age", "bmi"]).arcs
        array([[False,  True],
               [False, False]])
    """

    required: Iterable[Pair] = ()
    forbidden: Iterable[Pair] = ()
    tiers: Sequence[Iterable[str]] = ()
    max_parents: int | None = None
    continuous_to_discrete: bool = True

    def __post_init__(self) -> None:
        # As tuples: what can be read only once would be gone the second time.
        for name in ("required", "forbidden", "tiers"):
            value = getattr(self, name)
            if not is_list(value):
                raise GraphError(Option(name, value), " is not a list")
            object.__setattr__(self, name, tuple(value))
        tiers: Sequence[object] = self.tiers
        lists = (t if isinstance(t, str) or not is_list(t) else tuple(t) for t in tiers)
        object.__setattr__(self, "tiers", tuple(lists))
        check_arguments(continuous_to_discrete=(self.continuous_to_discrete, FLAG))

    def on(self, nodes: Sequence[str], kinds: Sequence[str] = ()) -> Allowed:
        """The constraints for these nodes, and their kinds where not all are continuous.

        Raises:
            GraphError: an unknown node, or constraints that contradict each other.
            OptionError: max_parents is not a number of parents.

        Examples:
            >>> allowed = Constraints(required=[("age", "bmi")], max_parents=2).on(["age", "bmi"])
            >>> allowed.required, allowed.max_parents
            (array([[False,  True],
                   [False, False]]), 2)
        """
        index = checked_nodes(nodes)
        N = len(index)
        most = N - 1 if self.max_parents is None else self.max_parents
        check_whole(max_parents=most)
        required = _matrix(checked_pairs(self.required, index, "arc"), index)
        forbidden = _matrix(checked_pairs(self.forbidden, index, "arc"), index)
        tier = self._tiers(index)
        both = (tier[:, None] >= 0) & (tier[None, :] >= 0)
        against = both & (tier[:, None] > tier[None, :])
        discrete = np.array([has_levels(kind) for kind in kinds] or [False] * N)
        into = ~discrete[:, None] & discrete[None, :] & (not self.continuous_to_discrete)
        for rule, matrix in (
            ("forbidden", forbidden),
            ("against the tiers", against),
            ("from a continuous column to a discrete one", into),
        ):
            if (required & matrix).any():
                p, c = np.argwhere(required & matrix)[0]
                raise GraphError(f"the arc {nodes[p]} -> {nodes[c]} is required and {rule}")
        try:
            Dag(nodes, [(nodes[p], nodes[c]) for p, c in np.argwhere(required)])
        except GraphError as error:
            raise GraphError("the required arcs cannot be in one network: ", *error.args) from None
        if (required.sum(axis=0) > most).any():
            c = int((required.sum(axis=0) > most).argmax())
            arcs = counted(int(required[:, c].sum()), "arc")
            raise GraphError(
                f"{arcs} into {nodes[c]!r} must be there, and ",
                Option("max_parents", most),
                "; require fewer or allow more",
            )
        return Allowed(~(forbidden | against | into | np.eye(N, dtype=bool)), required, most)

    def _tiers(self, index: dict[str, int]) -> Integers:
        """The tier of each node, -1 for none."""
        tier = np.full(len(index), -1)
        for number, names in enumerate(self.tiers):
            if not isinstance(names, tuple):
                raise GraphError(f"tier {number + 1} is {names!r}; give a list of names")
            for name in checked_nodes(names):
                if name not in index:
                    hint = nearest(name, index)
                    raise GraphError(f"{name!r} in tier {number + 1} is not a node{hint}")
                if tier[index[name]] >= 0:
                    raise GraphError(
                        f"{name!r} is in tiers {tier[index[name]] + 1} and {number + 1}"
                    )
                tier[index[name]] = number
        return tier


def as_constraints(given: Constraints | Mapping[str, Any] | None) -> Constraints:
    """The constraints that are meant: as they are, as a dict of them, or none."""
    if given is None:
        return Constraints()
    if isinstance(given, Mapping):
        known = [field.name for field in fields(Constraints)]
        for name in given:
            if name not in known:
                raise OptionError(
                    "constraints has the key ", repr(name), f", no constraint{nearest(name, known)}"
                )
        return Constraints(**given)
    if not isinstance(given, Constraints):
        raise OptionError(
            Option("constraints", given),
            " must be a pb.Constraints or a dict, such as pb.Constraints(required=[('x', 'y')])",
        )
    return given


def _matrix(pairs: Iterable[Pair], index: dict[str, int]) -> Flags:
    matrix = np.zeros((len(index), len(index)), dtype=bool)
    for parent, child in pairs:
        matrix[index[parent], index[child]] = True
    return matrix
