"""`poolbn stats`: sufficient statistics of a site as a file, to add up and to learn from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from poolbn.cli import inputs as given
from poolbn.cli import showing
from poolbn.cli.gathering import STATS, Added, parted, read_sums
from poolbn.cli.terminal import Command, Group, Json, Terminal, check_free, command, make_folder
from poolbn.errors import OptionError
from poolbn.moments.cellstats import CellStats
from poolbn.moments.groupstats import SMALLEST, check_size
from poolbn.moments.patternstats import PatternStats
from poolbn.moments.statsfile import Checkpoint, file_has_levels, read_about
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
    kinds: given.Kinds = None,
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
    made = read_sums(
        files, terminal.note, given.kinds_of(kinds), name=group_name, checkpoint=kept, **options
    )
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
        if file_has_levels(path):
            levels = CellStats.load(path)
            showing.show_stats(terminal, levels.numbers, about, path)
            showing.show_cells(terminal, levels)
            records.append(own | showing.cells_record(levels))
            continue
        stats = PatternStats.load(path)
        showing.show_stats(terminal, stats.known, about, path)
        showing.show_gaps(terminal, stats)
        records.append(own | showing.stats_record(stats))
    terminal.result(records[0] if len(records) == 1 else records)


def _checked(out: Path) -> Path:
    """A name that commands will know for what it is."""
    if out.suffix != STATS:
        raise OptionError(f"-o '{out}' should end in {STATS}, as in -o {out.stem}.stats")
    return out


def _keep(terminal: Terminal, made: Added, out: Path, *, allow_small: bool) -> None:
    """Write statistics, and say what is in the file, and what is not."""
    make_folder(out.parent)
    if made.cells is not None:
        record = _keep_levels(terminal, made.cells, out, allow_small=allow_small)
    elif made.patterns is not None:
        record = _keep_patterns(terminal, made.patterns, out, allow_small=allow_small)
    terminal.note(f"written: {out}; poolbn stats show {out} prints all that is in it")
    terminal.result(record)


def _keep_levels(
    terminal: Terminal, stats: CellStats, out: Path, *, allow_small: bool
) -> dict[str, Any]:
    """With discrete columns; rare configurations are put together."""
    if not allow_small:
        check_size(stats.levels, stats.n)
    made = stats if allow_small else stats.coarsened()
    made.save(out, allow_small=allow_small)
    terminal.text(str(made))
    if made.merged or made.left_out:
        terminal.note(
            f"note: configurations of discrete columns that fewer than {SMALLEST} rows of a data "
            "set have are not in the file; levels are put together, or columns left out, as said "
            "above"
        )
    return showing.cells_record(made)


def _keep_patterns(
    terminal: Terminal, stats: PatternStats, out: Path, *, allow_small: bool
) -> dict[str, Any]:
    if stats.has_gaps:
        stats.save(out, allow_small=allow_small)
        whole, stats = stats, PatternStats.load(out)
        terminal.text(str(stats))
        if lost := int(whole.observed.sum() - stats.observed.sum()):
            terminal.note(
                f"note: {counted(lost, 'cell')} of {int(whole.observed.sum()):,} are not in the "
                f"file: patterns that fewer than {SMALLEST} rows have are put together, and keep "
                "the columns that these have in common"
            )
    else:
        stats.known.save(out, allow_small=allow_small)
        terminal.text(str(stats.known))
    width = len(stats.names)
    few = [repr(v) for v, n in zip(stats.levels, stats.n.tolist(), strict=True) if n <= width]
    if few:
        terminal.note(
            f"note: {listed(few)}: no more rows than columns ({width}); such "
            "statistics say much about single rows, so think before you share them"
        )
    return showing.stats_record(stats)
