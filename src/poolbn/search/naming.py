"""Searches by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from poolbn.errors import Option, OptionError, nearest
from poolbn.search.auto import AutoSearch
from poolbn.search.climbing import HillClimb, Tabu
from poolbn.search.exact import Exact
from poolbn.search.hybrid import Hybrid
from poolbn.search.orders import OrderSearch
from poolbn.search.pc import PC
from poolbn.search.problem import Learner

SearchName = Literal["auto", "hc", "tabu", "orders", "exact", "pc", "hybrid"]

_BY_NAME: dict[str, Callable[[], Learner]] = {
    "auto": AutoSearch,
    "hc": HillClimb,
    "tabu": Tabu,
    "orders": OrderSearch,
    "exact": Exact,
    "pc": PC,
    "hybrid": Hybrid,
}


def as_learner(search: SearchName | Learner) -> Learner:
    """The search that is meant.

    Args:
        search: an object with `learn`, or a name: "auto", "hc", "tabu", "orders", "exact", "pc" or
            "hybrid" is that search with its defaults.

    Examples:
        >>> as_learner("tabu")
        Tabu(length=10, patience=10, max_iter=None)
    """
    if isinstance(search, str):
        if search not in _BY_NAME:
            raise OptionError(
                Option("search", search),
                f" is not a search{nearest(search, get_args(SearchName))}; pb.HillClimb(), "
                "pb.Tabu(), pb.OrderSearch(), pb.Exact(), pb.PC() and pb.Hybrid() take options",
            )
        return _BY_NAME[search]()
    learner: object = search
    if isinstance(learner, type) or not hasattr(learner, "learn"):
        raise OptionError(
            Option("search", search),
            " is not a search; use 'auto', 'hc', 'tabu', 'orders', 'exact', 'pc' or 'hybrid', or "
            "with options pb.HillClimb(), pb.Tabu(), pb.OrderSearch(), pb.Exact(), pb.PC() or "
            "pb.Hybrid()",
        )
    return search


def name_of_search(written: str) -> str:
    """What options call a search that is written as Python has it, or the name of its class.

    Examples:
        >>> name_of_search("OrderSearch(starts=4, max_parents=None, seed=0)")
        'orders'
    """
    own = written.split("(", maxsplit=1)[0]
    names = {getattr(made, "__name__", ""): name for name, made in _BY_NAME.items()}
    return names.get(own, own)
