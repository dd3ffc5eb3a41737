"""Options for which networks are good, and which are allowed."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from poolbn.errors import OptionError
from poolbn.graph.constraints import Constraints
from poolbn.graph.pairs import Pair
from poolbn.scoring.local import Kind
from poolbn.writing import open_regular


@dataclass(frozen=True)
class Scoring:
    """Which networks are good, and which are allowed."""

    score: Annotated[
        Kind,
        typer.Option(
            help="The score to maximise; bge, and for discrete columns bde and k2, are for "
            "complete pooling, gprior for few data sets."
        ),
    ] = "bic"
    require: Annotated[
        list[str] | None, typer.Option(metavar="A:B", help="An arc A -> B that must be there.")
    ] = None
    forbid: Annotated[
        list[str] | None, typer.Option(metavar="A:B", help="An arc A -> B that must not be there.")
    ] = None
    tiers: Annotated[
        Path | None,
        typer.Option(
            metavar="TOML",
            help="A file with tiers = [[...], [...]], columns in order of time: no arc points from "
            "a later tier to an earlier one.",
        ),
    ] = None
    max_parents: Annotated[
        int | None, typer.Option(min=0, help="Upper bound of the parents of a node.")
    ] = None
    discrete_first: Annotated[
        bool,
        typer.Option(
            "--no-continuous-to-discrete",
            help="No arcs from continuous columns or counts to discrete ones.",
        ),
    ] = False

    def constraints(self) -> Constraints:
        """Which networks are allowed."""
        return Constraints(
            required=[_arc(text, "--require") for text in self.require or ()],
            forbidden=[_arc(text, "--forbid") for text in self.forbid or ()],
            tiers=() if self.tiers is None else read_tiers(self.tiers),
            max_parents=self.max_parents,
            continuous_to_discrete=not self.discrete_first,
        )


def _arc(text: str, option: str) -> Pair:
    by = "->" if "->" in text else ":"
    ends = [end.strip() for end in text.split(by)]
    if len(ends) != 2 or not all(ends):
        raise OptionError(
            f"{option} {text!r} is not an arc; write PARENT:CHILD, or where names have a colon "
            "'PARENT -> CHILD'"
        )
    return ends[0], ends[1]


def read_tiers(path: Path) -> list[list[str]]:
    """The tiers in a TOML file: `tiers = [["age", "bmi"], ["outcome"]]`, the earliest first."""
    example = 'tiers = [["age", "bmi"], ["outcome"]]'
    try:
        with open_regular(path) as file:
            content = tomllib.load(file)
    except ValueError as error:
        raise OptionError(
            f"'{path}' is not TOML: {error}; it should have a line {example}"
        ) from error
    unknown = sorted(set(content) - {"tiers"})
    found = content.get("tiers")
    if unknown or found is None:
        have = f"has {', '.join(map(repr, unknown))}" if unknown else "is empty"
        raise OptionError(f"'{path}' {have}; it should have only a line {example}")
    tiers = found if isinstance(found, list) else [found]
    for number, tier in enumerate(tiers, start=1):
        if not isinstance(tier, list) or not all(isinstance(name, str) for name in tier):
            raise OptionError(
                f"tier {number} in '{path}' is {tier!r}, not a list of names; write tiers as in "
                f"{example}"
            )
    return tiers
