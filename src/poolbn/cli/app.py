"""The command line. Thin: its commands call what Python users call, and print."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from poolbn.cli import demonstration, learning, networks, statistics
from poolbn.cli.terminal import Command, Group, Terminal, clear_errors, command
from poolbn.constants import VERSION
from poolbn.errors import OptionError
from poolbn.run.compiling import compile_all

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Bayesian networks from several related data sets, by partial pooling.",
)
for _command in (
    learning.look,
    learning.learn,
    learning.fit,
    networks.compare,
    networks.bootstrap,
    networks.posterior,
    networks.predict,
    networks.classify,
    networks.report,
):
    app.command(cls=Command)(_command)
app.add_typer(statistics.app, name="stats")
app.command(cls=Command)(demonstration.demo)


@app.command(cls=Command)
@command
def warmup(*, terminal: Terminal) -> None:
    """Compile all kernels now, so that nobody waits for them on first use.

    For images and clusters: once for each kind of processor, and again after an upgrade.
    """
    started = time.monotonic()
    folder = compile_all()
    seconds = round(time.monotonic() - started, 1)
    kept = f"kept in {folder}" if folder else "and can be kept nowhere"
    terminal.text(f"all kernels are compiled, in {seconds} seconds, {kept}")
    terminal.result({"seconds": seconds, "folder": folder})


@app.command(
    "study",
    cls=Command,
    hidden=True,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def _study() -> None:
    """Say where the paper's simulation study is; it is not part of the package."""
    with clear_errors():
        raise OptionError(
            "the paper's simulation study is not part of the package; it is in poolbn's "
            "repository, where `python -m benchmarks.study` runs it"
        )


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"poolbn {VERSION}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Bayesian networks from several related data sets, by partial pooling."""
