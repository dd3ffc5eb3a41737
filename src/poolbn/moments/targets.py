"""Known interventions: which columns were set, or changed, in which data sets."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from poolbn.arguments import DICT, check_arguments, names_of
from poolbn.errors import DataError, Option, nearest
from poolbn.tables.labels import spelling
from poolbn.wording import noun_of

# Whether values were imposed, so that parents no longer matter, or the mechanism was changed.
How = Literal["hard", "soft"]
Targets = Mapping[Any, Iterable[str] | Mapping[str, How]]  # as somebody gives them

# The columns of each data set in which there are some, in the order of the data.
Interventions = Mapping[Hashable, Mapping[str, How]]


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
        {'pma': {'PKC': 'hard'}}
    """
    check_arguments(interventions=(given, DICT))
    by_spelling = {spelling(level): level for level in levels}
    found: dict[Hashable, dict[str, How]] = {}
    for key, columns in given.items():
        level = key if key in levels else by_spelling.get(spelling(key))
        if level is None:
            raise DataError(
                Option("interventions"),
                f" names {key!r}, and there is no such {noun_of(group).one}{nearest(key, levels)}",
            )
        own = found.setdefault(level, {})
        own |= _checked(key, columns, names, inputs)
    in_order = {level: found[level] for level in levels if level in found}
    return among_columns(in_order, names)


def _checked(
    key: object, columns: object, names: Sequence[str], inputs: Sequence[str]
) -> dict[str, How]:
    """Those of one data set."""
    if isinstance(columns, str):
        raise DataError(
            Option("interventions", {key: columns}),
            f" is one name; give a list, {{{key!r}: [{columns!r}]}}",
        )
    hows = columns if isinstance(columns, Mapping) else {}
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
                f" of {key!r} names {name!r}, and there is no such column{nearest(name, names)}",
            )
        if name in inputs:
            raise DataError(
                Option("interventions"),
                f" of {key!r} names {name!r}, which is an input, and has no distribution that "
                "could be replaced; leave one of the two out",
            )
        if hows and hows[name] not in get_args(How):
            raise DataError(
                Option("interventions"),
                f" of {key!r} says {hows[name]!r} of {name!r}{nearest(hows[name], get_args(How))}",
            )
    return {name: hows.get(name, "hard") for name in chosen}


def among_columns(targets: Interventions, names: Iterable[str]) -> Interventions:
    """Those of some columns, in this order."""
    chosen = tuple(names)
    kept = {level: {c: own[c] for c in chosen if c in own} for level, own in targets.items()}
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
    pairs = zip(at, new, strict=True)
    return added(([level], {level: targets.get(levels[j], {})}) for j, level in pairs)


def added(parts: Iterable[tuple[Sequence[Hashable], Interventions]]) -> Interventions:
    """Those of data that are added up; each with the data sets that it has.

    Raises:
        DataError: the same data set has different interventions in two of them.
    """
    found: dict[Hashable, Mapping[str, How]] = {}
    for levels, targets in parts:
        for level in levels:
            own = targets.get(level, {})
            if found.setdefault(level, own) != own:
                both = " and ".join(
                    ", ".join(map(repr, columns)) or "nothing" for columns in (found[level], own)
                )
                raise DataError(
                    f"rows of data set {level!r} are put together in which different columns were "
                    f"set: {both}; give both the same with_interventions() first, or names of "
                    "their own"
                )
    return {level: own for level, own in found.items() if own}
