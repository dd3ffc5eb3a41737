"""What all commands share: options, exit codes, clear errors, results for people or programs."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from poolbn.errors import FileError, FileWarning, GraphWarning, OptionError, PoolbnError
from poolbn.findings import DataWarning
from poolbn.wording import csv_text, figure, visible
from poolbn.writing import write_whole

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

UNEXPECTED, WRONG, INTERRUPTED = 1, 2, 130  # exit codes
_WIDTH = 100  # of text where there is no terminal to tell
_TRACEBACK = "POOLBN_TRACEBACK"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
Json = Annotated[
    bool, typer.Option("--json", help="Print results as JSON, and nothing else, to stdout.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
_NUMBER = re.compile(r"[-+]?(\d[\d,]*\.?\d*(e[-+]?\d+)?|inf)%?")


class _Plain:
    """Help without types of Python: flags take no value, and files say what they are."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            elif isinstance(param, TyperArgument):
                param.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
        return params


class Command(_Plain, TyperCommand):
    """A command."""


class Group(_Plain, TyperGroup):
    """Commands below a common name."""


@contextmanager
def clear_errors(*, quiet: bool = False) -> Iterator[None]:
    """End with an exit code and one paragraph on standard error, whatever goes wrong.

    `quiet` keeps progress and notes from it.
    """
    try:
        with redirect_stderr(io.StringIO()) if quiet else nullcontext(), _clear_warnings():
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
        if words := misfortune(error):
            typer.echo(f"error: {words}", err=True)
            raise typer.Exit(WRONG) from None
        typer.echo(
            f"error: poolbn met something unexpected, {type(error).__name__}: "
            f"{visible(str(error))}. This is a "
            f"mistake in poolbn; {_TRACEBACK}=1 in the environment shows where",
            err=True,
        )
        raise typer.Exit(UNEXPECTED) from None


def misfortune(error: BaseException) -> str | None:
    """What to say of an error that the machine is to blame for; None for all others."""
    if isinstance(error, MemoryError):
        return (
            "there is not enough memory for this; choose fewer columns, or work on a machine that "
            "has more"
        )
    if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
        return f"standard output cannot be written: {error.strerror}; send it elsewhere"
    return None


@contextmanager
def _clear_warnings() -> Iterator[None]:
    """Tell of what is odd about data and files in one line each, and of the same only once."""
    told: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not isinstance(message, DataWarning | FileWarning | GraphWarning):
            usual(message, category, *where, **more)
            return
        words = message.finding.for_shell() if isinstance(message, DataWarning) else str(message)
        if words not in told:
            told.add(words)
            typer.echo(f"warning: {words}", err=True)

    with warnings.catch_warnings():
        usual, warnings.showwarning = warnings.showwarning, show
        for kind in (DataWarning, FileWarning, GraphWarning):
            warnings.simplefilter("always", kind)
        yield


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A command of a function: its errors are clear, and parameters may be groups of options.

    A parameter whose type is a dataclass stands for the fields of that, which are options.
    """
    kinds = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in kinds.items() if is_dataclass(kind)}
    parameters = []
    for name, parameter in signature(function).parameters.items():
        options = get_type_hints(groups[name], include_extras=True) if name in groups else {}
        parameters += [
            Parameter(
                option,
                Parameter.KEYWORD_ONLY,
                annotation=kind,
                default=getattr(kinds[name], option),
            )
            for option, kind in options.items()
        ] or [parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=kinds[name])]

    @wraps(function)
    def run(**given: Any) -> None:
        with clear_errors(quiet=given.get("quiet", False)):
            for name, kind in groups.items():
                own = {field.name: given.pop(field.name, field.default) for field in fields(kind)}
                given[name] = kind(**own)
            function(**given)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


@dataclass(frozen=True)
class Terminal:
    """Where results and notes go: for programs, one JSON value and nothing else to stdout."""

    json: Json = False
    quiet: Quiet = False

    def note(self, words: str) -> None:
        """Print on standard error, which a quiet command closes."""
        typer.echo(visible(words, "\n"), err=True)

    def text(self, words: str = "") -> None:
        """Print a paragraph for people."""
        if not (self.json or self.quiet):
            console = _console()
            width = min(console.width, _WIDTH)
            lines = [
                textwrap.fill(line, width, break_on_hyphens=False)
                for line in visible(words, "\n").split("\n")
            ]
            console.print("\n".join(lines), soft_wrap=True)

    def line(self, words: str) -> None:
        """Print a line for people to paste, however long it is."""
        if not (self.json or self.quiet):
            typer.echo(visible(words))

    def table(
        self, headers: Sequence[str], rows: Iterable[Sequence[str]], *, needless: int = 0
    ) -> None:
        """Print a table for people; where it is too wide, so many columns at its end are gone."""
        if self.json or self.quiet:
            return
        headers = [visible(header) for header in headers]
        body = [[visible(cell) for cell in row] for row in rows]
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
            text = json.dumps(plain(value), indent=1, ensure_ascii=False)
            plainly = (c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
            typer.echo("".join(plainly))


def number(value: float, digits: int = 4) -> str:
    """A number as tables for people have it."""
    if math.isnan(value):
        return ""
    return figure(value, f".{digits}g" if abs(value) < 10**digits else ".0f")


def plain(value: object) -> Any:
    """A value as JSON can hold it: tables become lists of records, what is not finite null."""
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
    """Raise for files that would be overwritten, or could not be, before work begins."""
    for path in paths:
        try:
            path.exists()
        except OSError as error:
            raise FileError(f"'{path}' cannot be written: {error.strerror}") from error
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
    """Make a folder, and those above it, unless it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder '{folder}': {error.strerror}") from error


def write_csv(table: pd.DataFrame, path: Path, *, index: bool = False) -> None:
    """Write a table, whole or not at all, and the folder that it is in; texts are guarded."""
    make_folder(path.parent)
    write_whole(path, csv_text(table, index=index).encode(errors="surrogatepass"))


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
    for k, header in enumerate(headers):
        cells = [row[k] for row in rows if row[k]]
        numbers = cells and all(map(_NUMBER.fullmatch, cells))
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
