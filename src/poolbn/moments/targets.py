"""Known interventions: which columns were set in which data sets."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from poolbn.arguments import DICT, check_arguments, names_of
from poolbn.errors import DataError, Option, nearest
from poolbn.tables.labels import spelling
from poolbn.wording import noun_of

Targets = Mapping[Any, Iterable[str]]  # as somebody gives them

# The columns that were set in a data set, in the order of the data; other data sets have no entry.
Interventions = Mapping[Hashable, tuple[str, ...]]


def checked_targets(
    given: Targets,
    names: Sequence[str],
    levels: Sequence[Hashable],
    inputs: Sequence[str],
    group: str,
) -> Interventions:
    """The columns of each data set, or the error that one of the two is not there.

    A data set is named as the data have it, or by another type or spelling: "1" for 1.

    Examples:
        >>> checked_targets({"pma": ["PKC"]}, ["PKC", "Erk"], ["base", "pma"], [], "condition")
        {'pma': ('PKC',)}
    """
    check_arguments(interventions=(given, DICT))
    by_spelling = {spelling(level): level for level in levels}
    found: dict[Hashable, tuple[str, ...]] = {}
    for key, columns in given.items():
        level = key if key in levels else by_spelling.get(spelling(key))
        if level is None:
            raise DataError(
                Option("interventions"),
                f" names {key!r}, and there is no such {noun_of(group).one}{nearest(key, levels)}",
            )
        if isinstance(columns, str):
            raise DataError(Option("interventions", {key: columns}), f" is one name; give a list, "
                            f"{{{key!r}: [{columns!r}]}}")  # fmt: skip
        chosen = names_of("interventions", columns)
        if not chosen:
            raise DataError(
                Option("interventions"),
                f" names no column for {key!r}; leave it out where nothing was set",
            )
        for name in chosen:
            if name not in names:
                raise DataError(
                    Option("interventions"),
                    f" of {key!r} name {name!r}, and there is no such column{nearest(name, names)}",
                )
            if name in inputs:
                raise DataError(
                    Option("interventions"),
                    f" of {key!r} name {name!r}, which is an input, and has no distribution that "
                    "could be replaced; leave one of the two out",
                )
        own = {*found.get(level, ()), *chosen}
        found[level] = tuple(name for name in names if name in own)
    return {level: found[level] for level in levels if level in found}


def among_columns(targets: Interventions, names: Iterable[str]) -> Interventions:
    """Those of some columns, in this order."""
    chosen = tuple(names)
    kept = {level: tuple(c for c in chosen if c in own) for level, own in targets.items()}
    return {level: own for level, own in kept.items() if own}


def among_data_sets(
    targets: Interventions,
    levels: Sequence[Hashable],
    at: Iterable[int],
    new: Iterable[Hashable],
) -> Interventions:
    """Those of the data sets at these positions, under other names.

    Raises:
        DataError: data sets with different interventions would be one.
    """
    found: dict[Hashable, tuple[str, ...]] = {}
    for j, level in zip(at, new, strict=True):
        own = targets.get(levels[j], ())
        if level in found and found[level] != own:
            raise differ(level, found[level], own)
        found[level] = own
    return {level: own for level, own in found.items() if own}


def added(parts: Iterable[tuple[Sequence[Hashable], Interventions]]) -> Interventions:
    """Those of data that are added up; each with the data sets that it has."""
    found: dict[Hashable, tuple[str, ...]] = {}
    for levels, targets in parts:
        for level in levels:
            own = targets.get(level, ())
            if set(found.setdefault(level, own)) != set(own):
                raise differ(level, found[level], own)
    return {level: own for level, own in found.items() if own}


def differ(level: Hashable, one: Sequence[str], two: Sequence[str]) -> DataError:
    """The error for rows of one data set in which different columns were set."""
    both = " and ".join(", ".join(map(repr, own)) or "nothing" for own in (one, two))
    return DataError(
        f"rows of data set {level!r} are put together in which different columns were set: {both}; "
        "give both the same with_interventions() first, or names of their own"
    )
