"""What commands are given: options that several share, and what they stand for."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

import typer

from poolbn.cli.gathering import (
    ReadingOptions,
    common_columns,
    grouping,
    parted,
    without_columns,
)
from poolbn.cli.terminal import Terminal, check_free, write_csv
from poolbn.errors import DataError, OptionError
from poolbn.graph.constraints import Constraints
from poolbn.graph.pairs import Pair
from poolbn.learning import PRESETS, Preset, SearchOptions
from poolbn.moments.table import as_frame
from poolbn.moments.table import table as read_table
from poolbn.moments.targets import Targets
from poolbn.nodes.lmm import Residuals
from poolbn.nodes.model import Choice
from poolbn.nodes.poolings import Partial
from poolbn.run.cluster import on_cluster
from poolbn.scoring.local import Kind
from poolbn.search.auto import AutoSearch
from poolbn.search.climbing import HillClimb, Tabu
from poolbn.search.exact import Exact
from poolbn.search.hybrid import MMPC, Hybrid
from poolbn.search.naming import SearchName
from poolbn.search.orders import OrderSearch
from poolbn.search.pc import PC
from poolbn.search.problem import Learner
from poolbn.tables import data
from poolbn.tables.columns import check_group
from poolbn.tables.grouping import DATA_SET, Group
from poolbn.tables.kinds import ColumnKind
from poolbn.tables.missing import Missing
from poolbn.wording import counted
from poolbn.writing import open_regular

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Scoring:
    """Which networks are good, and which are allowed."""

    score: Annotated[
        Kind | None,
        typer.Option(
            help="The score to maximise, bic-w by default; bge, and for discrete columns bde and "
            "k2, are for complete pooling, gprior for few data sets."
        ),
    ] = None
    require: Annotated[
        list[str] | None, typer.Option(metavar="A:B", help="An arc A -> B that must be there.")
    ] = None
    forbid: Annotated[
        list[str] | None, typer.Option(metavar="A:B", help="An arc A -> B that must not be there.")
    ] = None
    tiers: Annotated[
        str | None,
        typer.Option(
            metavar="TIERS",
            help="Columns in order of time, as 'age, bmi | outcome', or a TOML file with "
            "tiers = [[...], [...]]: no arc points from a later tier to an earlier one.",
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
            tiers=() if self.tiers is None else _tiers(self.tiers),
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


def _tiers(given: str) -> list[list[str]]:
    """Those of a file, or between bars."""
    path = Path(given)
    if path.suffix.lower() == ".toml" or path.exists():
        return read_tiers(path)
    return [names([tier]) or [] for tier in re.findall(r'(?:"[^"]*"|[^|"])+', given)]


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


_COLUMNS = ("column", "columns", "target", "targets", "node", "nodes", "variable", "variables")


def read_interventions(path: Path) -> Targets:
    """The columns that were set in data sets: a line for each data set and column.

    A first line that says which is the column, as "data set,column" or "target,batch", is a header.
    In a third column there may be "hard" or "soft".
    """
    with open_regular(path) as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OptionError(f"'{path}' is not text in UTF-8: {error}") from error
    lines = [line for line in csv.reader(text.splitlines(), skipinitialspace=True) if any(line)]
    lines = [list(map(str.strip, line)) for line in lines]
    wrong = next((line for line in lines if len(line) not in (2, 3) or not all(line)), None)
    if not lines or wrong is not None:
        have = f"the line {','.join(wrong)!r}" if wrong else "no line"
        raise OptionError(
            f"'{path}' has {have}; each should have a data set and a column that was set there, as "
            "in 'pma,PKC'"
        )
    named = [cell.lower() in _COLUMNS for cell in lines[0]]
    found: dict[str, dict[str, Any]] = {}
    for first, second, *how in lines[any(named) :]:
        data_set, column = (second, first) if named[0] else (first, second)
        found.setdefault(data_set, {})[column] = how[0] if how else "hard"  # checked with the data
    return found


_NAMES = "Names with a comma go in double quotes."

Files = Annotated[
    list[str],
    typer.Argument(
        help="CSV, Parquet and other files, folders of them, patterns such as 'sites/*.csv', "
        "tables such as trial.duckdb::visits, URLs such as s3://bucket/rows.parquet, - for "
        "standard input, or .stats files.",
        metavar="FILE...",
        show_default=False,
    ),
]
Rows = Annotated[
    list[str],
    typer.Argument(
        help="CSV, Parquet and other files, folders of them, patterns, URLs, or - for standard "
        "input.",
        metavar="FILE...",
        show_default=False,
    ),
]
Common = Annotated[bool, typer.Option("--common", help="Use the columns that all files have.")]
IncludeRows = Annotated[
    bool,
    typer.Option("--include-rows", help="Let the report contain rows, and data sets of few rows."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Work on a Dask cluster: tcp://HOST:PORT of its scheduler, or local for processes "
        "here.",
    ),
]


@dataclass(frozen=True)
class Chosen:
    """Which data sets and columns there are."""

    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            "-g",
            metavar="COLUMN",
            help="The column that says which data set a row came from; clinic/patient for units "
            "inside data sets. Without it each file is one.",
        ),
    ] = None
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,...", help=f"The columns to use; all by default. {_NAMES}"),
    ] = None
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="A,B,...", help=f"Columns to leave out. {_NAMES}")
    ] = None
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A=KIND,...",
            help="What columns hold: discrete, ordinal, count or continuous, or levels from the "
            "lowest to the highest, as in 'grade=low<middle<high'. By default text, true and false "
            f"are discrete, numbers continuous. {_NAMES}",
        ),
    ] = None

    def grouping(self, entries: Sequence[str]) -> Group:
        """The data sets, and the units inside them, as `pb.learn` takes them."""
        return grouping(entries, self.group)

    def names(
        self, entries: Sequence[str], common: Callable[[str], None] | None = None
    ) -> list[str] | None:
        """The columns to use of these files, None for all.

        With `common` those that all files have; it is told which are left out.
        """
        columns = names(self.columns)
        if common is not None:
            if columns is not None:
                raise OptionError("--common and --columns exclude each other; give one of them")
            columns = common_columns(entries, self.grouping(entries), common)
        if left := names(self.exclude):
            columns = without_columns(entries, self.grouping(entries), columns, left)
        return columns


@dataclass(frozen=True)
class Selection(Chosen):
    """Which rows to read, and what of them."""

    missing: Annotated[
        Missing,
        typer.Option(
            help="What to do with rows that have missing values: refuse them, leave them out, or "
            "learn from what they have (em)."
        ),
    ] = "error"
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,...",
            help="Columns that may be parents but never children, such as an arm; they get no "
            "distribution.",
        ),
    ] = None
    interventions: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Where columns were set by an experiment: a file with a line for each, the data "
            "set and the column.",
        ),
    ] = None

    def options(
        self, entries: Sequence[str], common: Callable[[str], None] | None = None
    ) -> ReadingOptions:
        """As keywords, for these files; arguments are as for `names`."""
        return {
            "group": self.grouping(entries),
            "columns": self.names(entries, common),
            "kinds": kinds_of(self.kinds),
            "missing": self.missing,
            "inputs": names(self.inputs) or (),
            "interventions": (
                {} if self.interventions is None else read_interventions(self.interventions)
            ),
        }


@dataclass(frozen=True)
class Fitting:
    """How to fit the nodes."""

    pooling: Annotated[
        Literal["complete", "none", "partial", "auto"] | None,
        typer.Option(help="How data sets share strength; auto, the default, chooses."),
    ] = None
    residuals: Annotated[
        Residuals | None,
        typer.Option(
            help="Residual variances in partial pooling: one for all, one for each data set, or "
            "pooled too."
        ),
    ] = None

    def chosen(self) -> str | Choice | None:
        """The pooling; None for the usual one."""
        if self.residuals is None:
            return self.pooling
        if self.pooling not in (None, "partial"):
            raise OptionError(
                f"--residuals {self.residuals} is for --pooling partial, not {self.pooling}"
            )
        return Partial(residuals=self.residuals)


@dataclass(frozen=True)
class Searching(Scoring):
    """How to search."""

    search: Annotated[
        SearchName | None,
        typer.Option(
            help="auto, the default, is exact, orders or hc, by the number of columns; hc climbs "
            "by single arcs, tabu also downhill, orders moves columns in an order, exact finds the "
            "optimum (up to 20 columns); pc is the PC algorithm, hybrid tests and then climbs."
        ),
    ] = None
    preset: Annotated[
        Preset,
        typer.Option(
            help="What pooling, score and search are where they are not given; paper is partial, "
            "bic and hc."
        ),
    ] = "best"
    alpha: Annotated[
        float | None,
        typer.Option(
            help="The level of independence tests, of --search pc (0.01 by default) and hybrid "
            "(0.05)."
        ),
    ] = None
    restarts: Annotated[
        int | None, typer.Option(min=0, help="Further starts of --search hc or orders.")
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0

    def options(self) -> SearchOptions:
        """As keywords."""
        search = PRESETS[self.preset].search if self.search is None else self.search
        if search not in ("hc", "orders") and self.restarts is not None:
            raise OptionError(
                f"--restarts is for --search hc and orders; --search {search} has none"
            )
        if search not in ("pc", "hybrid") and self.alpha is not None:
            raise OptionError(f"--alpha is for --search pc and hybrid; --search {search} has none")
        starts = None if self.restarts is None else 1 + self.restarts
        searches: dict[str, Learner] = {
            "auto": AutoSearch(seed=self.seed),
            "hc": HillClimb(restarts=self.restarts or 0, seed=self.seed),
            "tabu": Tabu(),
            "orders": OrderSearch(starts=starts, seed=self.seed),
            "exact": Exact(),
            "pc": PC() if self.alpha is None else PC(alpha=self.alpha),
            "hybrid": Hybrid() if self.alpha is None else Hybrid(MMPC(alpha=self.alpha)),
        }
        return {
            "score": self.score,
            "search": searches[search],
            "preset": self.preset,
            "constraints": self.constraints(),
        }


@dataclass(frozen=True)
class CsvFile:
    """The file that a table goes to."""

    out: Annotated[Path | None, typer.Option("--out", "-o", help="The CSV file to write.")] = None
    force: Force = False

    def check(self) -> None:
        """Raise for a file that is there or cannot be written."""
        check_free([self.out] if self.out else [], force=self.force)

    def write(self, table: pd.DataFrame, terminal: Terminal, *, index: bool = False) -> None:
        """Write a table, if a file is named, and tell."""
        if self.out is not None:
            write_csv(table, self.out, index=index)
            terminal.note(f"written: {self.out}, {counted(len(table), 'row')}")


def cluster(address: str | None) -> AbstractContextManager[None]:
    """Where long work runs: on a cluster, or here."""
    return nullcontext() if address is None else on_cluster(address)


def names(texts: Iterable[str] | None) -> list[str] | None:
    """Names between commas, in one text or several; those with a comma are in quotes."""
    if not texts:
        return None
    try:
        return [cell.strip() for row in csv.reader(texts, skipinitialspace=True) for cell in row]
    except csv.Error as error:  # ends of lines outside of quotes, or very long names
        raise OptionError(f"{list(texts)!r} are no names between commas: {error}") from error


def kinds_of(texts: Iterable[str] | None) -> dict[str, ColumnKind | list[str]] | None:
    """The kinds of columns, as --kinds has them."""
    found: dict[str, ColumnKind | list[str]] = {}
    for text in names(texts) or ():
        name, equals, kind = text.rpartition("=")
        if not equals or not name:
            raise OptionError(
                f"--kinds {text!r} is not a column and its kind; write grade=discrete"
            )
        if name in found:
            raise OptionError(f"--kinds names {name!r} twice; give one kind")
        # Checked where the columns are known.
        found[name] = [level.strip() for level in kind.split("<")] if "<" in kind else kind
    return found or None


def read_frame(entries: Sequence[str], **reading: Unpack[ReadingOptions]) -> pd.DataFrame:
    """All rows that were read, the group column first; for reports that show residuals."""
    return as_frame(read_table(list(entries), **reading))


def group_of(entries: Sequence[str], group: str) -> str | None:
    """The group column of a network, or None where files are its data sets."""
    first = data.as_parts(entries[0])[0]
    return None if group == DATA_SET and group not in first.types else group


def has_rows(entries: Sequence[str]) -> bool:
    """Whether these are files of rows; a .stats file among them has none."""
    saved, _ = parted(entries)
    return not saved


def check_group_known(entries: Sequence[str], group: str | None) -> None:
    """Raise for a single file of rows without a group column: that is one data set."""
    saved, rows = parted(entries)
    if group is None and not saved and len(rows) == 1:
        check_group([replace(part, name=None) for part in data.as_parts(rows)], None)


def check_rows(entries: Sequence[str], what: str) -> None:
    """Raise for sufficient statistics where rows are needed."""
    if not has_rows(entries):
        raise DataError(f"{what} needs rows, and .stats files hold none; give the rows")
