"""`python -m benchmarks.study`: run the paper's simulation study, and report on it."""

from __future__ import annotations

import math
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from poolbn.cli import inputs as given
from poolbn.cli.terminal import INTERRUPTED, Command, Group, command
from poolbn.errors import OptionError

from .reporting import write_report
from .run import Progress, run_study
from .study import MODELS, PRESETS, PUBLISHED

_LINE_EVERY = 30.0  # seconds between lines where there is no terminal

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="The simulation study of the paper: run it, and see its numbers beside the paper's.",
)


@app.command(cls=Command)
@command
def run(
    out: Annotated[Path, typer.Option(help="The folder for the results.")],
    preset: Annotated[str, typer.Option(help=f"One of {', '.join(PRESETS)}.")] = "paper",
    workers: Annotated[int | None, typer.Option(help="Processes; all cores by default.")] = None,
    models: Annotated[str, typer.Option(help=f"Of {', '.join(MODELS)}.")] = ",".join(PUBLISHED),
    slice_: Annotated[
        str, typer.Option("--slice", help="k/K runs the k-th of K parts, for several machines.")
    ] = "1/1",
    dask: given.Dask = None,
) -> None:
    """Run a study, or what is left of it.

    A study that was stopped in any way goes on with the same command.
    """
    if dask is not None:
        import cloudpickle

        cloudpickle.register_pickle_by_value(sys.modules[__package__])  # workers have poolbn alone
    with given.cluster(dask):
        watch = _Watch()
        try:
            run_study(
                out,
                preset=preset,
                models=tuple(name.strip() for name in models.split(",") if name.strip()),
                workers=workers,
                part=_part(slice_),
                watch=watch,
            )
        except KeyboardInterrupt:
            watch.close()  # before the last word
            typer.echo("stopped; the same command goes on where this one ended", err=True)
            raise typer.Exit(INTERRUPTED) from None
        finally:
            watch.close()
        typer.echo(f"done; now: python -m benchmarks.study report {out} --out FOLDER", err=True)


@app.command(cls=Command)
@command
def report(
    sources: Annotated[
        list[Path], typer.Argument(help="Folders of a study, and results.parquet files.")
    ],
    out: Annotated[Path, typer.Option(help="The folder for the report.")],
) -> None:
    """Write figures and tables of a study, and the paper's numbers beside its own."""
    write_report(sources, out)
    typer.echo(f"the report is in {out / 'report.html'}", err=True)


def _part(text: str) -> tuple[int, int]:
    k, slash, parts = text.partition("/")
    if not (slash and k.isdecimal() and parts.isdecimal()):
        raise OptionError(
            f"--slice {text!r} is not a slice; write it like 2/3, the second of three"
        )
    return int(k), int(parts)


class _Watch:
    """A bar with the time left on a terminal, otherwise a line now and then."""

    def __init__(self) -> None:
        from rich import progress as rich
        from rich.console import Console

        times = rich.TimeElapsedColumn(), rich.TimeRemainingColumn()
        self._bar = rich.Progress(
            "{task.description}",
            rich.BarColumn(),
            rich.TaskProgressColumn(),
            *times,
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
            speed_estimate_period=math.inf,
            get_time=time.monotonic,
        )
        self._task = self._bar.add_task("", total=1.0)
        self._said = -_LINE_EVERY

    def __call__(self, progress: Progress) -> None:
        words = f"{progress.done} of {progress.chunks} networks"
        self._bar.start()
        self._bar.update(self._task, completed=progress.share, description=words)
        now = time.monotonic()
        if self._bar.disable and (
            now - self._said >= _LINE_EVERY or progress.done == progress.chunks
        ):
            self._said = now
            seconds = self._bar.tasks[0].time_remaining
            left = "" if seconds is None else f", {timedelta(seconds=round(seconds))} left"
            typer.echo(f"{words}, {100 * progress.share:.0f}%{left}", err=True)

    def close(self) -> None:
        self._bar.stop()


if __name__ == "__main__":
    app()
