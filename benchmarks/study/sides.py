"""Side runs of a study: the paper's claims again, with one thing changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .claims import Claim, Line, check_claims, no_data
from .paper import HOMOGENEOUS
from .study import EQUAL, ORIGINAL, PUBLISHED, SCENARIOS, VARIANTS, WORDED

if TYPE_CHECKING:
    import pandas as pd


# What is different in the scenarios whose names end so.
_TRUTHS = {
    WORDED: "coefficients drawn as the paper's text has it, not as the authors' code does",
    EQUAL: "residual variances that are the same in all data sets",
    ORIGINAL: "networks learned from homogeneous data sets are measured against the heterogeneous "
    "network that those were made from",
}


@dataclass(frozen=True, eq=False)
class SideRun:
    """What comes out when one thing is changed.

    Attributes:
        name: of the column in a table.
        words: what was changed.
        lines: one for each claim.
    """

    name: str
    words: str
    lines: tuple[Line, ...]


def usual(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the paper's own scenarios."""
    return table[table["scenario"].isin(SCENARIOS)]


def side_runs(table: pd.DataFrame, claims: Iterable[Claim]) -> list[SideRun]:
    """The claims as published, and for each thing that was changed in some of the results.

    Args:
        table: `StudyResults.table`, best of the preset "side" with all models.
        claims: from `paperclaims`.
    """
    all_claims = tuple(claims)
    found = []
    for change in _changes(table):
        about = tuple(filter(change.about, all_claims))
        lines = check_claims(change.table, about, change.models)
        own = dict(zip(about, (line for line in lines if not line.measure), strict=True))
        every = tuple(own.get(claim, no_data(claim)) for claim in all_claims)
        found.append(SideRun(change.name, change.words, every))
    return found


@dataclass(frozen=True, eq=False)
class _Change:
    """Other results, or which of our models stands for one of the paper's, in some claims."""

    name: str
    words: str
    table: pd.DataFrame
    models: Mapping[str, str] = field(default_factory=dict)
    about: Callable[[Claim], bool] = lambda claim: True


def _changes(table: pd.DataFrame) -> Iterator[_Change]:
    there = usual(table)
    yield _Change("published", "the three models, the authors' generator", there)
    for model in there["model"].drop_duplicates():
        if model in VARIANTS:
            stands_for, words = VARIANTS[model]
            yield _Change(model, f"{stands_for}: {words}", there, {stands_for: model})
    for suffix, words in _TRUTHS.items():
        own = table[table["scenario"].str.endswith(suffix)]
        if len(own):
            as_published = own.assign(scenario=own["scenario"].str.removesuffix(suffix))
            yield _Change(suffix.strip("-"), words, as_published)
    if set(PUBLISHED) <= set(there["model"]):
        yield _Change(
            "exchanged",
            "GBN and CGBN change places in what is said of SHD in homogeneous data sets",
            there,
            {"GBN": "CGBN", "CGBN": "GBN"},
            lambda claim: claim.where.startswith(HOMOGENEOUS) and claim.statistic.a[:4] == "shd ",
        )
