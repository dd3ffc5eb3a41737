"""`poolbn stats`: sufficient statistics of a site as a file, to add up and to learn from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from poolbn.cli import inputs as given
from poolbn.cli import showing
from poolbn.cli.gathering import STATS, Sums, load, parted, read_sums
from poolbn.cli.terminal import Command, Group, Json, Terminal, check_free, command, make_folder
from poolbn.errors import OptionError
from poolbn.moments.groupstats import SMALLEST, check_size
from poolbn.moments.patternstats import PatternStats
from poolbn.moments.statsfile import Checkpoint, read_about
from poolbn.tables.paths import paths
from poolbn.wording import counted, listed

StatsFiles = Annotated[list[str], typer.Argument(help=".stats files.", metavar="FILE...")]
AllowSmall = Annotated[
    bool, typer.Option("--allow-small", help=f"Also write data sets of fewer than {SMALLEST} rows.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The .stats file to write.")]


class _MakeByDefault(Group):
    """`poolbn stats FILE` is `poolbn stats make FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["make", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_MakeByDefault,
    no_args_is_help=True,
    help="Sufficient statistics as files: poolbn stats FILE... -o site.stats makes one.",
)


@app.command(cls=Command)
@command
def make(
    files: given.Rows,
    *,
    out: Out,
    reading: given.Selection,
    group_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="All rows are one data set of this name.")
    ] = None,
    common: given.Common = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep the statistics of each file here; started again, only the rest is read.",
        ),
    ] = None,
    allow_small: AllowSmall = False,
    force: given.Force = False,
    terminal: Terminal,
) -> None:
    """Make sufficient statistics of rows: for each data set its size, means and scatter matrix."""
    if reading.group is not None and group_name is not None:
        raise OptionError("--group and --group-name exclude each other; give one of them")
    check_free([_checked(out)], force=force)
    options = reading.options(files, terminal.note if common else None)
    kept = None if checkpoint is None else Checkpoint(checkpoint)
    made = read_sums(files, terminal.note, name=group_name, checkpoint=kept, **options)
    if kept is not None:
        terminal.note(
            f"checkpoint: {kept.taken} of {kept.taken + kept.made} files were taken from "
            f"{checkpoint}, {kept.made} were read"
        )
    _keep(terminal, made, out, allow_small=allow_small)


@app.command(cls=Command)
@command
def add(
    files: StatsFiles,
    *,
    out: Out,
    common: given.Common = False,
    allow_small: AllowSmall = False,
    force: given.Force = False,
    terminal: Terminal,
) -> None:
    """Add sufficient statistics up: data sets of the same name become one."""
    check_free([_checked(out)], force=force)
    options = given.Selection().options(files, terminal.note if common else None)
    _, rows = parted(files)
    if rows:
        raise OptionError(
            f"'{rows[0]}' is no {STATS} file; poolbn stats make makes one of rows, and adds "
            "others that it is given"
        )
    _keep(terminal, read_sums(files, terminal.note, **options), out, allow_small=allow_small)


@app.command(cls=Command)
@command
def show(files: StatsFiles, json: Json = False) -> None:
    """Print all that a file of sufficient statistics holds, with all digits."""
    terminal = Terminal(json)
    records = []
    for path in (path for entry in files for path in paths(entry)):
        about = read_about(path)
        own = {"file": path, "format": about.version, "poolbn": about.poolbn}
        own |= {"bytes": about.size, "sha256": about.sha256}
        stats = load(path)
        showing.show_stats(terminal, stats, about, path)
        records.append(own | showing.stats_record(stats))
    terminal.result(records[0] if len(records) == 1 else records)


def _checked(out: Path) -> Path:
    """A name that commands will know for what it is."""
    if out.suffix != STATS:
        raise OptionError(f"-o '{out}' should end in {STATS}, as in -o {out.stem}.stats")
    return out


def _keep(terminal: Terminal, stats: Sums, out: Path, *, allow_small: bool) -> None:
    """Write statistics, without what few rows have, and say what is in the file and what is not."""
    make_folder(out.parent)
    if not allow_small:
        check_size(stats.levels, stats.n)
    made = stats.coarsened(1 if allow_small else SMALLEST)
    made.save(out, allow_small=allow_small)
    whole, left = stats.patterns, made.patterns
    terminal.text(str(made if left is None or left.has_gaps else left.known))
    notes = _lost_levels(made) if whole is None or left is None else _lost_cells(whole, left)
    for note in notes:
        terminal.note(f"note: {note}")
    terminal.note(f"written: {out}; poolbn stats show {out} prints all that is in it")
    terminal.result(showing.stats_record(made))


def _lost_levels(made: Any) -> Iterator[str]:
    if made.merged or made.left_out:
        yield (
            f"configurations of discrete columns that fewer than {SMALLEST} rows of a data set "
            "have are not in the file; levels are put together, or columns left out, as said above"
        )


def _lost_cells(whole: PatternStats, left: PatternStats) -> Iterator[str]:
    cells, width = int(whole.observed.sum()), len(left.names)
    if lost := cells - int(left.observed.sum()):
        yield (
            f"{counted(lost, 'cell')} of {cells:,} are not in the file: patterns that fewer than "
            f"{SMALLEST} rows have are put together, and keep the columns that these have in common"
        )
    few = [repr(v) for v, n in zip(left.levels, left.n.tolist(), strict=True) if n <= width]
    if few:
        yield (
            f"{listed(few)}: no more rows than columns ({width}); such statistics say much about "
            "single rows, so think before you share them"
        )
