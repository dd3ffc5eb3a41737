"""What commands are given: options that several share, and what they stand for."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import typer

from poolbn.cli.gathering import parted
from poolbn.errors import DataError, OptionError
from poolbn.graph.constraints import Constraints
from poolbn.graph.pairs import Pair
from poolbn.nodes.model import NodeModel
from poolbn.nodes.poolings import Partial
from poolbn.run.cluster import on_cluster
from poolbn.search.climbing import HillClimb, Tabu
from poolbn.search.exact import Exact
from poolbn.search.problem import Learner
from poolbn.tables import data
from poolbn.tables.columns import check_group

if TYPE_CHECKING:
    import pandas as pd

_NAMES = "Names with a comma go in double quotes."

Files = Annotated[
    list[str],
    typer.Argument(
        help="CSV or Parquet files, folders of them, patterns such as 'sites/*.csv', URLs such as "
        "s3://bucket/rows.parquet, or .stats files.",
        metavar="FILE...",
        show_default=False,
    ),
]
Rows = Annotated[
    list[str],
    typer.Argument(
        help="CSV or Parquet files, folders of them, patterns, or URLs.",
        metavar="FILE...",
        show_default=False,
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        "-g",
        metavar="COLUMN",
        help="The column that says which data set a row came from. Without it each file is one.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B,...", help=f"The columns to use; all by default. {_NAMES}"),
]
Common = Annotated[bool, typer.Option("--common", help="Use the columns that all files have.")]
Missing = Annotated[
    Literal["error", "drop"], typer.Option(help="What to do with rows that have a missing cell.")
]
PoolingName = Annotated[
    Literal["complete", "none", "partial", "auto"],
    typer.Option(help="How data sets share strength; auto lets each node choose."),
]
ResidualsName = Annotated[
    Literal["shared", "separate", "pooled"],
    typer.Option(
        help="Residual variances in partial pooling: one for all, one each, or pooled too."
    ),
]
ScoreName = Annotated[
    Literal["bic", "aic", "loglik", "bge"],
    typer.Option(help="What the network is to be best in; bge goes with complete pooling."),
]
SearchName = Annotated[
    Literal["hc", "tabu", "exact"],
    typer.Option(help="Hill climbing, tabu search, or the exact optimum (up to some 20 columns)."),
]
Restarts = Annotated[
    int | None, typer.Option(min=0, help="Hill climbing again from around the best; 0 by default.")
]
Require = Annotated[
    list[str] | None, typer.Option(metavar="A:B", help="An arc A -> B that must be there.")
]
Forbid = Annotated[
    list[str] | None, typer.Option(metavar="A:B", help="An arc A -> B that must not be there.")
]
Tiers = Annotated[
    Path | None,
    typer.Option(
        metavar="TOML",
        help="A file with tiers = [[...], [...]], columns in order of time: nothing later points "
        "to anything earlier.",
    ),
]
MaxParents = Annotated[int | None, typer.Option(min=0, help="Parents of a node, at most.")]
Seed = Annotated[int, typer.Option(min=0, help="Of all that is drawn at random.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print results as JSON, and nothing else, to stdout.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Work on a Dask cluster: tcp://HOST:PORT of its scheduler, or local for processes "
        "here.",
    ),
]


def cluster(address: str | None) -> AbstractContextManager[None]:
    """Where long work runs: on a cluster, or here.

    Examples:
        >>> with cluster(None):
        ...     pass
    """
    return nullcontext() if address is None else on_cluster(address)


def names(texts: Iterable[str] | None) -> list[str] | None:
    """Names between commas, in one text or several.

    Examples:
        >>> names(["age,bmi", '"length, cm"'])
        ['age', 'bmi', 'length, cm']
    """
    if not texts:
        return None
    return [cell.strip() for row in csv.reader(texts, skipinitialspace=True) for cell in row]


def constraints(
    require: Sequence[str] | None,
    forbid: Sequence[str] | None,
    tiers: Path | None,
    max_parents: int | None,
) -> Constraints:
    """The constraints that options stand for.

    Raises:
        OptionError: an arc is not written as one, or the file of tiers cannot be used.

    Examples:
        >>> constraints(["age:bmi"], None, None, 3)
        Constraints(required=(('age', 'bmi'),), forbidden=(), tiers=(), max_parents=3)
    """
    return Constraints(
        required=[_arc(text, "--require") for text in require or ()],
        forbidden=[_arc(text, "--forbid") for text in forbid or ()],
        tiers=() if tiers is None else read_tiers(tiers),
        max_parents=max_parents,
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
    """The tiers in a TOML file: `tiers = [["age", "bmi"], ["outcome"]]`, the earliest first.

    Raises:
        OptionError: the file cannot be read, or holds something else.
    """
    example = 'tiers = [["age", "bmi"], ["outcome"]]'
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"cannot read the tiers in '{path}': {error.strerror}") from error
    except UnicodeDecodeError:
        raise OptionError(f"'{path}' is not UTF-8 text; it should have a line {example}") from None
    except tomllib.TOMLDecodeError as error:
        raise OptionError(
            f"'{path}' is not TOML: {error}; it should have a line {example}"
        ) from error
    unknown = sorted(set(content) - {"tiers"})
    found = content.get("tiers")
    if unknown or found is None:
        have = f"has {', '.join(map(repr, unknown))}" if unknown else "is empty"
        raise OptionError(f"'{path}' {have}; it should have only a line {example}")
    if not isinstance(found, list):
        raise OptionError(f"tiers in '{path}' are {found!r}; write them as in {example}")
    for place, tier in enumerate(found, start=1):
        if not isinstance(tier, list) or not all(isinstance(name, str) for name in tier):
            raise OptionError(
                f"tier {place} in '{path}' is {tier!r}, not a list of names; write tiers as in "
                f"{example}"
            )
    return found


def search_of(name: str, restarts: int | None, seed: int) -> Learner:
    """The search that options stand for.

    Raises:
        OptionError: restarts of a search that has none.

    Examples:
        >>> search_of("hc", 5, 1)
        HillClimb(restarts=5, perturb=1, max_iter=None, seed=1)
    """
    if name == "hc":
        return HillClimb(restarts=restarts or 0, seed=seed)
    if restarts is not None:
        raise OptionError(f"--restarts is for --search hc; --search {name} has none")
    return Tabu() if name == "tabu" else Exact()


def pooling_of(name: str, residuals: Literal["shared", "separate", "pooled"]) -> str | NodeModel:
    """The pooling that options stand for.

    Raises:
        OptionError: pooled residual variances without partial pooling.

    Examples:
        >>> pooling_of("partial", "pooled")
        Partial(random='full', residuals='pooled', method='ml')
    """
    if residuals == "shared":
        return name
    if name != "partial":
        raise OptionError(f"--residuals {residuals} is for --pooling partial, not {name}")
    return Partial(residuals=residuals)


def read_frame(
    entries: Sequence[str],
    *,
    group: str | None,
    columns: Sequence[str] | None,
    missing: Literal["error", "drop"],
) -> pd.DataFrame:
    """All rows without a missing cell, the group column first; for pages that show residuals.

    Raises:
        DataError: rows cannot be used.
    """
    import pandas as pd

    rows = data.read(list(entries), group=group, columns=columns, missing=missing)
    with closing(rows.batches) as batches:
        read = [(batch.codes, batch.values) for batch in batches]
    values = np.concatenate([part for _, part in read])
    codes = np.concatenate([part for part, _ in read])
    table = pd.DataFrame(values, columns=list(rows.names))
    labels = np.empty(len(rows.levels), dtype=object)
    labels[:] = rows.levels
    table.insert(0, rows.group, pd.Series(labels[codes], dtype=object).astype("category"))
    return table


def group_of(entries: Sequence[str], group: str) -> str | None:
    """The group column of a network, or None where files are its data sets."""
    first = data.as_parts(entries[0])[0]
    return None if group == data.DATA_SET and group not in first.types else group


def has_rows(entries: Sequence[str]) -> bool:
    """Whether these are files of rows; a .stats file among them has none."""
    saved, _ = parted(entries)
    return not saved


def check_group_known(entries: Sequence[str], group: str | None) -> None:
    """Complain about a single file of rows without a group column: that is one data set.

    Raises:
        DataError: so it is; it names columns that could be meant.
    """
    saved, rows = parted(entries)
    if group is None and not saved and len(rows) == 1:
        check_group([replace(part, name=None) for part in data.as_parts(rows)], None)


def check_rows(entries: Sequence[str], what: str) -> None:
    """Complain about statistics where rows are needed.

    Raises:
        DataError: a file has no rows.
    """
    if not has_rows(entries):
        raise DataError(f"{what} needs rows, and .stats files hold none; give the rows")
