"""The command line. Thin: its commands call what Python users call, and print."""

from __future__ import annotations

from typing import Annotated

import typer

from poolbn import commands, demonstration, learncommand, statscommands, studycommands

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Bayesian networks from several related data sets, by partial pooling.",
)
for _command in (
    learncommand.learn,
    commands.compare,
    commands.bootstrap,
    commands.predict,
    commands.classify,
    commands.report,
):
    app.command()(_command)
app.add_typer(statscommands.app, name="stats")
app.add_typer(studycommands.app, name="study")
app.command()(demonstration.demo)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"poolbn {version('poolbn')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Bayesian networks from several related data sets, by partial pooling."""
