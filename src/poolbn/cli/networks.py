"""`poolbn compare`, `bootstrap`, `predict`, `classify`, `report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from poolbn.assess.comparing import compare as compare_poolings
from poolbn.assess.resample import Bootstrap, BootstrapInterrupted
from poolbn.assess.resample import bootstrap as resample
from poolbn.cli import inputs as given
from poolbn.cli import showing
from poolbn.cli.gathering import read_stats
from poolbn.cli.terminal import (
    INTERRUPTED,
    Terminal,
    check_free,
    clear_errors,
    make_folder,
    write_csv,
)
from poolbn.learning import LearnOptions
from poolbn.network.network import load
from poolbn.page.reporting import report as write_report

if TYPE_CHECKING:
    import pandas as pd

Net = Annotated[Path, typer.Argument(help="A network.json.", metavar="NETWORK")]
Csv = Annotated[Path | None, typer.Option("--out", "-o", help="The CSV file to write.")]


def compare(
    files: given.Rows,
    group: given.Group = None,
    columns: given.Columns = None,
    missing: given.Missing = "error",
    poolings: Annotated[
        str, typer.Option(metavar="A,B,...", help="The poolings to compare.")
    ] = "complete,none,partial,auto",
    folds: Annotated[int, typer.Option(min=2, help="Parts that are held out in turn.")] = 10,
    score: given.ScoreName = "bic",
    search: given.SearchName = "hc",
    restarts: given.Restarts = None,
    require: given.Require = None,
    forbid: given.Forbid = None,
    tiers: given.Tiers = None,
    max_parents: given.MaxParents = None,
    seed: given.Seed = 0,
    dask: given.Dask = None,
    out: Csv = None,
    force: given.Force = False,
    json: given.Json = False,
    quiet: given.Quiet = False,
) -> None:
    """Say which pooling predicts rows and data sets best that were not learned from."""
    with clear_errors(quiet=quiet), given.cluster(dask):
        terminal = Terminal(json, quiet)
        check_free([out] if out else [], force=force)
        given.check_rows(files, "compare")
        given.check_group_known(files, group)
        found = compare_poolings(
            files,
            group=group,
            columns=given.names(columns),
            missing=missing,
            poolings=given.names([poolings]) or (),
            folds=folds,
            seed=seed,
            score=score,
            search=given.search_of(search, restarts, seed),
            constraints=given.constraints(require, forbid, tiers, max_parents),
        )
        showing.show_comparison(terminal, found)
        if out is not None:
            write_csv(found.table(), out, index=True)
            terminal.note(f"written: {out}")
        terminal.result(showing.comparison_record(found))


def bootstrap(
    files: given.Files,
    group: given.Group = None,
    columns: given.Columns = None,
    missing: given.Missing = "error",
    replicates: Annotated[int, typer.Option(min=1, help="Networks to learn.")] = 200,
    unit: Annotated[
        Literal["row", "data-set"], typer.Option(help="What to draw: rows, or whole data sets.")
    ] = "row",
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="For the averaged network; estimated by default."),
    ] = None,
    pooling: given.PoolingName = "partial",
    residuals: given.ResidualsName = "shared",
    score: given.ScoreName = "bic",
    search: given.SearchName = "hc",
    restarts: given.Restarts = None,
    require: given.Require = None,
    forbid: given.Forbid = None,
    tiers: given.Tiers = None,
    max_parents: given.MaxParents = None,
    seed: given.Seed = 0,
    dask: given.Dask = None,
    out: Csv = None,
    force: given.Force = False,
    json: given.Json = False,
    quiet: given.Quiet = False,
) -> None:
    """Say how sure arcs are: how often they are found in resampled data.

    On Ctrl-C the networks that are finished count.
    """
    with clear_errors(quiet=quiet), given.cluster(dask):
        terminal = Terminal(json, quiet)
        check_free([out] if out else [], force=force)
        learning: LearnOptions = {
            "pooling": given.pooling_of(pooling, residuals),
            "score": score,
            "search": given.search_of(search, restarts, seed),
            "constraints": given.constraints(require, forbid, tiers, max_parents),
        }
        given.check_group_known(files, group)
        chosen = given.names(columns)
        rows: Any = list(files)
        if not given.has_rows(files):
            rows = read_stats(
                files, group=group, columns=chosen, missing=missing, tell=terminal.note
            )
            group = chosen = None
        stopped = False
        try:
            boot = resample(
                rows, group=group, columns=chosen, missing=missing, replicates=replicates,
                unit="row" if unit == "row" else "data set", seed=seed, **learning,
            )  # fmt: skip
        except BootstrapInterrupted as interrupted:
            boot, stopped = interrupted.bootstrap, True
            terminal.note(f"interrupted; {boot.replicates} networks are finished, and counted")
        _tell_bootstrap(terminal, boot, threshold, out)
        if stopped:
            raise typer.Exit(INTERRUPTED)


def _tell_bootstrap(
    terminal: Terminal, boot: Bootstrap, threshold: float | None, out: Path | None
) -> None:
    showing.show_bootstrap(terminal, boot, threshold)
    if out is not None:
        write_csv(boot.table(), out)
        terminal.note(f"written: {out}")
    terminal.result(showing.bootstrap_record(boot, threshold))


def predict(
    network: Net,
    data: given.Rows,
    target: Annotated[
        list[str], typer.Option(metavar="A,B,...", help="The column, or columns, to predict.")
    ],
    interval: Annotated[float, typer.Option(help="The probability of the interval.")] = 0.95,
    out: Csv = None,
    force: given.Force = False,
    json: given.Json = False,
    quiet: given.Quiet = False,
) -> None:
    """Predict a column for each row from its other cells; as CSV.

    The data set is known where the group column says so, and unknown where that is missing.
    """
    with clear_errors(quiet=quiet):
        check_free([out] if out else [], force=force)
        wanted = given.names(target) or []
        one = wanted[0] if len(wanted) == 1 else wanted
        found = load(network).predict(data, one, interval=interval)
        if len(wanted) > 1:
            found.columns = found.columns.map("_".join)
        _rows_out(Terminal(json, quiet), found, out)


def classify(
    network: Net,
    data: given.Rows,
    out: Csv = None,
    force: given.Force = False,
    json: given.Json = False,
    quiet: given.Quiet = False,
) -> None:
    """Say for each row how probable each data set is, and which is most; as CSV.

    A group column in the files is ignored.
    """
    with clear_errors(quiet=quiet):
        check_free([out] if out else [], force=force)
        _rows_out(Terminal(json, quiet), load(network).classify(data), out)


def _rows_out(terminal: Terminal, table: pd.DataFrame, out: Path | None) -> None:
    """A table with a line for each row of the data, counted from 1: to a file, or printed."""
    table.insert(0, "row", range(1, len(table) + 1))
    if out is not None:
        write_csv(table, out)
        terminal.note(f"written: {out}, {len(table):,} rows")
    elif not (terminal.json or terminal.quiet):
        digits = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        typer.echo(digits, nl=False)
    terminal.result(table)


def report(
    network: Net,
    data: Annotated[
        list[str] | None,
        typer.Argument(help="The rows, for residuals; as files, or patterns.", metavar="[FILE...]"),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    force: given.Force = False,
    quiet: given.Quiet = False,
) -> None:
    """Write a page about a network, to look at in a browser."""
    with clear_errors(quiet=quiet):
        check_free([out], force=force)
        net = load(network)
        rows = None
        if data:
            given.check_rows(data, "report")
            rows = given.read_frame(
                data, group=given.group_of(data, net.group), columns=net.dag.nodes, missing="drop"
            )
        make_folder(out.parent)
        write_report(net, out, data=rows)
        Terminal(quiet=quiet).note(f"written: {out}")
