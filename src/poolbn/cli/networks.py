"""`poolbn compare`, `bootstrap`, `posterior`, `predict`, `classify`, `report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from poolbn.assess.comparison import compare as compare_poolings
from poolbn.assess.resample import BootstrapInterrupted
from poolbn.assess.resample import bootstrap as resample
from poolbn.cli import inputs as given
from poolbn.cli import showing
from poolbn.cli.gathering import ReadingOptions, read_data
from poolbn.cli.inputs import Scoring
from poolbn.cli.terminal import INTERRUPTED, Quiet, Terminal, check_free, command, make_folder
from poolbn.errors import Option, OptionError
from poolbn.network.network import load
from poolbn.page.reporting import report as write_report
from poolbn.posteriors.chains import METHODS
from poolbn.posteriors.families import Prior
from poolbn.posteriors.posterior import PosteriorInterrupted, arc_posterior
from poolbn.wording import counted, csv_text, visible

if TYPE_CHECKING:
    import pandas as pd

Net = Annotated[Path, typer.Argument(help="A network.json.", metavar="NETWORK")]


@command
def compare(
    files: given.Rows,
    *,
    reading: given.Selection,
    poolings: Annotated[
        str, typer.Option(metavar="A,B,...", help="The poolings to compare.")
    ] = "complete,none,partial,auto",
    folds: Annotated[int, typer.Option(min=2, help="Parts that are held out in turn.")] = 10,
    searching: given.Searching,
    dask: given.Dask = None,
    file: given.CsvFile,
    terminal: Terminal,
) -> None:
    """Find out by cross-validation which pooling predicts rows and new data sets best."""
    with given.cluster(dask):
        file.check()
        given.check_rows(files, "compare")
        given.check_group_known(files, reading.group)
        found = compare_poolings(
            files, poolings=given.names([poolings]) or (), folds=folds, seed=searching.seed,
            **reading.options(files), **searching.options(),
        )  # fmt: skip
        showing.show_comparison(terminal, found)
        file.write(found.table(), terminal, index=True)
        terminal.result(showing.comparison_record(found))


@command
def bootstrap(
    files: given.Files,
    *,
    reading: given.Selection,
    replicates: Annotated[int, typer.Option(min=1, help="Networks to learn.")] = 200,
    unit: Annotated[
        Literal["row", "data-set"], typer.Option(help="What to resample: rows, or whole data sets.")
    ] = "row",
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="For the averaged network; estimated by default."),
    ] = None,
    model: given.Fitting,
    searching: given.Searching,
    dask: given.Dask = None,
    file: given.CsvFile,
    terminal: Terminal,
) -> None:
    """Find out how sure arcs are: how often they are found in resampled data.

    On Ctrl-C the networks that are finished count.
    """
    with given.cluster(dask):
        file.check()
        pooling, search = model.chosen(), searching.options()
        given.check_group_known(files, reading.group)
        rows: Any = list(files)
        options = reading.options(files)
        if not given.has_rows(files):
            rows = read_data(files, terminal.note, **options)
            options |= {"group": None, "columns": None, "missing": "error", "inputs": ()}
            options |= {"interventions": {}}
        stopped = False
        try:
            boot = resample(
                rows, replicates=replicates, unit="row" if unit == "row" else "data set",
                seed=searching.seed, pooling=pooling, **options, **search,
            )  # fmt: skip
        except BootstrapInterrupted as interrupted:
            boot, stopped = interrupted.bootstrap, True
            terminal.note(
                f"interrupted after {counted(boot.replicates, 'network')}, which are counted"
            )
        showing.show_bootstrap(terminal, boot, threshold)
        file.write(boot.table(), terminal)
        terminal.result(showing.bootstrap_record(boot, threshold))
        if stopped:
            raise typer.Exit(INTERRUPTED)


@command
def posterior(
    files: given.Files,
    *,
    reading: given.Selection,
    prior: Annotated[
        Prior,
        typer.Option(help="What is as probable beforehand: orders of the columns, or graphs."),
    ] = "orders",
    sweeps: Annotated[
        int | None,
        typer.Option(
            min=16,
            help="Run chains of so many sweeps; more than 20 columns need them, 17 with graphs.",
        ),
    ] = None,
    model: given.Fitting,
    scoring: Scoring,
    file: given.CsvFile,
    terminal: Terminal,
) -> None:
    """Find out how sure arcs are: their probability over all networks.

    On Ctrl-C what chains give so far is printed and written.
    """
    file.check()
    given.check_group_known(files, reading.group)
    data = read_data(files, terminal.note, **reading.options(files))
    stopped = False
    try:
        post = arc_posterior(
            data, pooling=model.chosen(), score=scoring.score, constraints=scoring.constraints(),
            prior=prior, method=None if sweeps is None else METHODS[prior](sweeps=sweeps),
        )  # fmt: skip
    except PosteriorInterrupted as interrupted:
        post, stopped = interrupted.posterior, True
        terminal.note("interrupted; chains count as far as they are")
    showing.show_posterior(terminal, post)
    file.write(post.arcs(), terminal)
    terminal.result(showing.posterior_record(post))
    if stopped:
        raise typer.Exit(INTERRUPTED)


@command
def predict(
    network: Net,
    data: given.Rows,
    *,
    target: Annotated[
        list[str], typer.Option(metavar="A,B,...", help="The column, or columns, to predict.")
    ],
    history: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Earlier rows of units inside data sets, whose levels they tell."
        ),
    ] = None,
    interval: Annotated[float, typer.Option(help="The probability of the interval.")] = 0.95,
    file: given.CsvFile,
    terminal: Terminal,
) -> None:
    """Predict a column for each row from its other cells; as CSV.

    Where the group column has missing values, the data set is unknown.
    """
    file.check()
    wanted = given.names(target) or []
    one = wanted[0] if len(wanted) == 1 else wanted
    found = load(network).predict(data, one, history=history or None, interval=interval)
    if len(wanted) > 1:
        found.columns = found.columns.map(lambda parts: "_".join(filter(None, parts)))
    _rows_out(terminal, found, file)


@command
def classify(network: Net, data: given.Rows, file: given.CsvFile, terminal: Terminal) -> None:
    """For each row, the probability of each data set, and the most probable one; as CSV.

    A group column in the files is ignored.
    """
    file.check()
    _rows_out(terminal, load(network).classify(data), file)


def _rows_out(terminal: Terminal, table: pd.DataFrame, file: given.CsvFile) -> None:
    """A table with a line for each row of the data, counted from 1: to a file, or printed."""
    table.insert(0, "row", range(1, len(table) + 1))
    file.write(table, terminal)
    if file.out is None and not (terminal.json or terminal.quiet):
        text = csv_text(table, form="%.6g")
        typer.echo(visible(text, "\n") if sys.stdout.isatty() else text, nl=False)
    terminal.result(table)


@command
def report(
    network: Net,
    data: Annotated[
        list[str] | None,
        typer.Argument(help="The rows, for residuals; as files, or patterns.", metavar="[FILE...]"),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The report to write.")] = Path(
        "report.html"
    ),
    include_rows: given.IncludeRows = False,
    force: given.Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a report about a network, to look at in a browser."""
    check_free([out], force=force)
    if include_rows and not data:
        raise OptionError(Option("include_rows", True), " shows rows; name the files with them")
    net = load(network)
    rows = None
    if data:
        given.check_rows(data, "report")
        reading = ReadingOptions(
            group=given.group_of(data, net.group),
            columns=net.dag.nodes,
            kinds={node: fit.kind for node, fit in net.fits.items()},
            missing="drop",
            inputs=net.inputs,
            interventions={},
        )
        rows = given.read_frame(data, **reading)
    make_folder(out.parent)
    write_report(net, out, data=rows, rows=include_rows)
    Terminal(quiet=quiet).note(f"written: {out}")
