"""What all commands share: exit codes, clear errors, results for people or for programs."""

from __future__ import annotations

import io
import json
import math
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from poolbn.errors import FileError, OptionError, PoolbnError
from poolbn.writing import write_whole

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

UNEXPECTED, WRONG, INTERRUPTED = 1, 2, 130  # exit codes
_WIDTH = 100  # of text where there is no terminal to tell
_TRACEBACK = "POOLBN_TRACEBACK"


@contextmanager
def clear_errors(*, quiet: bool = False) -> Iterator[None]:
    """End with an exit code and one paragraph on standard error, whatever goes wrong.

    Args:
        quiet: whether to keep all else from standard error: progress and notes.

    Examples:
        >>> with clear_errors():
        ...     pass
    """
    try:
        with redirect_stderr(io.StringIO()) if quiet else nullcontext():
            yield
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except PoolbnError as error:
        typer.echo(f"error: {error.for_shell()}", err=True)
        raise typer.Exit(WRONG) from None
    except Exception as error:
        if _TRACEBACK in os.environ:
            raise
        typer.echo(
            f"error: poolbn met something unexpected, {type(error).__name__}: {error}. This is a "
            f"mistake in poolbn; with {_TRACEBACK}=1 in the environment it says where",
            err=True,
        )
        raise typer.Exit(UNEXPECTED) from None


@dataclass(frozen=True)
class Terminal:
    """Where results and notes go.

    Attributes:
        json: results are for programs: one JSON value on standard output and nothing else there.
        quiet: no results for people.
    """

    json: bool = False
    quiet: bool = False

    def note(self, words: str) -> None:
        """Say something on standard error, which `clear_errors` closes to a quiet command."""
        typer.echo(words, err=True)

    def text(self, words: str = "") -> None:
        """Print a paragraph for people."""
        if not (self.json or self.quiet):
            console = _console()
            width = min(console.width, _WIDTH)
            lines = [
                textwrap.fill(line, width, break_on_hyphens=False) for line in words.split("\n")
            ]
            console.print("\n".join(lines), soft_wrap=True)

    def table(
        self, headers: Sequence[str], rows: Iterable[Sequence[str]], *, needless: int = 0
    ) -> None:
        """Print a table for people; columns of numbers are aligned to the right.

        Args:
            headers: of the columns.
            rows: their cells.
            needless: columns at the end that are left out where the terminal is too narrow.
        """
        if self.json or self.quiet:
            return
        body = [list(row) for row in rows]
        console = _console(wide=True)
        table = _table(headers, body)
        if console.measure(table, options=console.options.update(width=10_000)).maximum > (
            console.width
        ):
            keep = len(headers) - needless
            table = _table(headers[:keep], [row[:keep] for row in body])
        console.print(table)

    def result(self, value: object) -> None:
        """Print a value as JSON, for programs."""
        if self.json:
            typer.echo(json.dumps(plain(value), indent=1, ensure_ascii=False))


def number(value: float, digits: int = 4) -> str:
    """A number as tables for people have it.

    Examples:
        >>> number(0.01234567), number(1234567.0), number(float("nan"))
        ('0.01235', '1234567', '')
    """
    if math.isnan(value):
        return ""
    if math.isinf(value) or abs(value) < 10**digits:
        return f"{value:.{digits}g}"
    return f"{value:.0f}"


def plain(value: object) -> Any:
    """A value as JSON can hold it: tables become lists of records, what is not finite null.

    Examples:
        >>> plain({"a": (1.5, float("nan"))})
        {'a': [1.5, None]}
    """
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if hasattr(value, "to_dict"):
        return plain(value.to_dict("records"))
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


def check_free(paths: Iterable[Path], *, force: bool) -> None:
    """Complain about files that would be overwritten, or could not be, before work begins.

    Raises:
        OptionError: a file is there, and `force` is not given.
        FileError: there is a folder where the file should be, or a file where its folder should be.

    Examples:
        >>> check_free([Path("not there yet.html")], force=False)
    """
    for path in paths:
        folder = next(folder for folder in path.absolute().parents if folder.exists())
        if not folder.is_dir():
            raise FileError(f"'{folder}' is a file, so '{path}' cannot be written; use another")
        if not os.access(folder, os.W_OK):
            raise FileError(f"'{path}' cannot be written: '{folder}' is write-protected")
        if path.is_dir():
            raise FileError(f"'{path}' is a folder; name a file")
        if path.exists() and not force:
            raise OptionError(
                f"'{path}' is there already; write elsewhere, or overwrite it with --force"
            )


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, unless it is there.

    Raises:
        FileError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder '{folder}': {error.strerror}") from error


def write_csv(table: pd.DataFrame, path: Path, *, index: bool = False) -> None:
    """Write a table, whole or not at all, and the folder that it is in."""
    make_folder(path.parent)
    write_whole(path, table.to_csv(index=index, lineterminator="\n").encode())


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    for place, header in enumerate(headers):
        cells = [row[place] for row in rows]
        numbers = any(map(_is_number, cells)) and all(map(_is_number_or_none, cells))
        table.add_column(header, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _console(*, wide: bool = False) -> Console:
    """Standard output. Names are no markup; tables are cut only where there is a terminal."""
    from rich.console import Console

    options: dict[str, Any] = {"markup": False, "highlight": False, "emoji": False}
    if not sys.stdout.isatty():
        options["width"] = 10_000 if wide else _WIDTH
    return Console(**options)


def _is_number(cell: str) -> bool:
    return bool(re.fullmatch(r"[-+]?(\d[\d,]*\.?\d*(e[-+]?\d+)?|inf)%?", cell))


def _is_number_or_none(cell: str) -> bool:
    return not cell or _is_number(cell)
