"""`poolbn stats`: the statistics of a site as a file, to be read, added up and learned from."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add as plus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from poolbn.commands import inputs as given
from poolbn.commands import showing
from poolbn.commands.terminal import Terminal, check_free, clear_errors, make_folder
from poolbn.errors import OptionError
from poolbn.rows import files as paths
from poolbn.statistics.suffstats import GroupStats

if TYPE_CHECKING:
    from collections.abc import Sequence

StatsFiles = Annotated[list[str], typer.Argument(help=".stats files.", metavar="FILE...")]
Out = Annotated[Path, typer.Option("--out", "-o", help="The .stats file to write.")]


class _MakeByDefault(TyperGroup):
    """`poolbn stats FILE` is `poolbn stats make FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["make", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_MakeByDefault,
    no_args_is_help=True,
    help="Statistics of data sets as files: poolbn stats FILE... -o site.stats makes one.",
)


@app.command()
def make(
    files: given.Rows,
    out: Out,
    group: given.Group = None,
    group_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="All rows are one data set of this name.")
    ] = None,
    columns: given.Columns = None,
    missing: given.Missing = "error",
    force: given.Force = False,
    json: given.Json = False,
    quiet: given.Quiet = False,
) -> None:
    """Make statistics of rows: counts, means, sums of squares and products, of each data set."""
    with clear_errors(quiet=quiet):
        if group is not None and group_name is not None:
            raise OptionError("--group and --group-name exclude each other; give one of them")
        check_free([_checked(out)], force=force)
        made = given.read_stats(files, group=group, columns=given.names(columns), missing=missing)
        if group_name is not None:
            made = _as_one(made, group_name)
        _keep(Terminal(json, quiet), made, out)


@app.command()
def add(
    files: StatsFiles,
    out: Out,
    force: given.Force = False,
    json: given.Json = False,
    quiet: given.Quiet = False,
) -> None:
    """Add statistics up: data sets of the same name become one."""
    with clear_errors(quiet=quiet):
        check_free([_checked(out)], force=force)
        _keep(Terminal(json, quiet), reduce(plus, _loaded(files)), out)


@app.command()
def show(files: StatsFiles, json: given.Json = False) -> None:
    """Print all that a file of statistics holds."""
    with clear_errors():
        terminal = Terminal(json)
        found = _loaded(files)
        for stats in found:
            showing.show_stats(terminal, stats)
        records = [showing.stats_record(stats) for stats in found]
        terminal.result(records[0] if len(records) == 1 else records)


def _loaded(files: Sequence[str]) -> list[GroupStats]:
    return [GroupStats.load(path) for entry in files for path in paths.paths(entry)]


def _checked(out: Path) -> Path:
    """A name that commands will know for what it is."""
    if out.suffix != given.STATS:
        raise OptionError(f"-o '{out}' should end in {given.STATS}, as in -o {out.stem}.stats")
    return out


def _as_one(stats: GroupStats, name: str) -> GroupStats:
    """All data sets as one of this name."""
    each = [
        replace(
            stats,
            levels=(name,),
            n=stats.n[[j]],
            mean=stats.mean[[j]],
            scatter=stats.scatter[[j]],
            dropped=stats.dropped[[j]],
        )
        for j in range(len(stats.levels))
    ]
    return reduce(plus, each)


def _keep(terminal: Terminal, stats: GroupStats, out: Path) -> None:
    make_folder(out.parent)
    stats.save(out)
    terminal.text(str(stats))
    terminal.note(f"written: {out}; poolbn stats show {out} prints all that is in it")
    terminal.result(showing.stats_record(stats))
