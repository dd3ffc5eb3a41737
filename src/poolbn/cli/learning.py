"""`poolbn look`, the first command to run, and `poolbn learn`: to a network and a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from poolbn.assess.comparison import compare as compare_poolings
from poolbn.assess.resample import bootstrap as resample
from poolbn.cli import inputs as given
from poolbn.cli import showing
from poolbn.cli.gathering import ReadingOptions, read_data
from poolbn.cli.terminal import INTERRUPTED, Terminal, check_free, command, make_folder, write_csv
from poolbn.fitting import brought, columns_for, without_group
from poolbn.fitting import fit as fit_graph
from poolbn.graph.constraints import Constraints, as_constraints
from poolbn.graph.grammars import Drawing
from poolbn.learning import PRESETS, Defaults, SearchInterrupted, SearchOptions
from poolbn.learning import learn as learn_network
from poolbn.moments.data import Data, only_sums
from poolbn.moments.halves import Split
from poolbn.moments.looking import Look, head, tail
from poolbn.moments.looking import look as look_at
from poolbn.moments.table import table
from poolbn.network.network import Network, load
from poolbn.nodes.model import Choice
from poolbn.page.disclosure import shared_effects
from poolbn.page.reporting import report
from poolbn.scoring.local import Kind
from poolbn.wording import counted, noun_of, without_secrets

if TYPE_CHECKING:
    import pandas as pd

_POOLINGS = ("complete", "none", "partial")
_COMPARABLE = ("bic", "aic")  # scores on one scale under all poolings
_BY_BIC = (None, "bic-w", "bic-h")  # scores whose networks are compared by BIC
_CELLS = 10**8  # of rows that are kept in memory for the report


@command
def look(files: given.Rows, *, chosen: given.Chosen, terminal: Terminal) -> None:
    """Look at a table: what it holds, what is missing, what to fix, how to learn from it.

    The first command to run. Without --group it says which columns that could be.
    """
    given.check_rows(files, "look")
    found = look_at(
        files,
        group=chosen.grouping(files),
        columns=chosen.names(files),
        kinds=given.kinds_of(chosen.kinds),
    )
    table = found.table()
    terminal.text(head(found) + "\n")
    terminal.table(list(map(str, table)), table.astype(str).to_numpy().tolist(), needless=1)
    terminal.text()
    for line in tail(found, shell=True):
        terminal.text(line)
    terminal.line(found.command)
    terminal.result(_look_record(found))


def _look_record(found: Look) -> dict[str, Any]:
    """All of it, for programs."""
    options = found.options
    return {
        "group": found.group,
        "data_sets": dict(zip(found.levels, found.n, strict=True)),
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "levels": dict(column.levels),
                "low": column.low,
                "high": column.high,
                "missing": dict(zip(found.levels, column.missing, strict=True)),
            }
            for column in found.columns
        ],
        "likely_groups": found.likely,
        "rows": found.rows,
        "nodes": found.nodes,
        "kinds": options.kinds,
        "missing": options.missing,
        "inputs": options.inputs,
        "left_out": options.left_out,
        "fixes": [fix.for_shell() for fix in found.fixes],
        "warnings": [
            {"kind": each.kind.value, "columns": each.columns, "text": each.for_shell()}
            for each in found.findings
        ],
        "command": found.command,
    }


@command
def learn(
    files: given.Files,
    *,
    reading: given.Selection,
    common: given.Common = False,
    model: given.Fitting,
    searching: given.Searching,
    start: Annotated[
        Path | None, typer.Option(metavar="NETWORK", help="Start from the arcs of a saved network.")
    ] = None,
    honest: Annotated[
        Literal["split"] | None,
        typer.Option(
            help="split: learn the graph from half of the rows of each data set, and estimate its "
            "effects from the others."
        ),
    ] = None,
    bootstrap: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Also find arc strengths, from N samples."),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also compare poolings on held-out rows.")
    ] = False,
    dask: given.Dask = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A folder for network.json, arcs.csv, report.html."),
    ] = None,
    include_rows: given.IncludeRows = False,
    force: given.Force = False,
    terminal: Terminal,
) -> None:
    """Learn a network; print its arcs, and the score with each pooling; write a report.

    On Ctrl-C the best network so far is printed and written.
    """
    with given.cluster(dask):
        job = _Job(
            terminal,
            files,
            reading.options(files, terminal.note if common else None),
            searching.options(),
            model.chosen(),
            searching.seed,
            out,
            None if start is None else load(start),
            open=include_rows,
            honest=None if honest is None else Split(searching.seed),
        )
        written = ["network.json", "arcs.csv", "report.html", "strengths.csv"]
        if out is not None:
            check_free([out / name for name in written[: 3 + (bootstrap is not None)]], force=force)
        given.check_group_known(files, reading.group)
        if compare or bootstrap is not None:
            given.check_rows(files, "--compare" if compare else "--bootstrap")
        if honest is not None:
            given.check_rows(files, "--honest")
        job.run(bootstrap, compare=compare)


@command
def fit(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH",
            help="The graph: a text such as 'dag { age -> bmi }', '[age][bmi|age]' or 'bmi ~ age', "
            "or a file with one; a BIF, .net or DOT file; a network.json.",
            show_default=False,
        ),
    ],
    files: given.Files,
    *,
    reading: given.Selection,
    model: given.Fitting,
    score: Annotated[Kind, typer.Option(help="The score to tell of.")] = "bic",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A folder for network.json, arcs.csv, report.html."),
    ] = None,
    include_rows: given.IncludeRows = False,
    force: given.Force = False,
    terminal: Terminal,
) -> None:
    """Fit a graph that you bring; print its effects, test it; write a report.

    Columns that the graph does not have are left out. Pooling is partial, unless --pooling says
    otherwise.
    """
    if out is not None:
        written = ["network.json", "arcs.csv", "report.html"]
        check_free([out / name for name in written], force=force)
    given.check_group_known(files, reading.group)
    drawing, options = brought(Path(graph) if is_file(graph) else graph), reading.options(files)
    if given.has_rows(files):
        drawing = without_group(drawing, files, options["group"])
        options["columns"] = columns_for(drawing, files, options["group"], options["columns"])
    constraints = Constraints(required=drawing.arcs)
    job = _Job(
        terminal,
        files,
        options,
        {"score": score, "search": None, "preset": "best", "constraints": constraints},
        model.chosen() or "partial",
        0,
        out,
        open=include_rows,
        graph=drawing,
    )
    job.run(None, compare=False)


def is_file(text: str) -> bool:
    """Whether a text is the path of a file; what is too long for one is none."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


@dataclass(frozen=True)
class _Job:
    """What `learn` and `fit` do."""

    terminal: Terminal
    files: Sequence[str]
    reading: ReadingOptions
    learning: SearchOptions
    pooling: str | Choice | None
    seed: int
    out: Path | None  # the folder to write to
    start: Network | None = None
    open: bool = False  # whether the report may contain rows
    graph: Drawing | None = None  # that is fitted, where none is searched for
    honest: Split | None = None  # how rows are split

    @property
    def usual(self) -> Defaults:
        """What is learned with where nothing else is asked for."""
        return PRESETS[self.learning["preset"]]

    def run(self, replicates: int | None, *, compare: bool) -> None:
        """Learn, print, write; then all that takes longer."""
        terminal = self.terminal
        data = self._read()
        patterns = data.patterns
        left = int(data.dropped.sum())
        said = (
            f"{counted(data.n_rows, 'row')} in {counted(len(data.levels), noun_of(data.group))}, "
            f"{counted(len(data.names), 'column')}"
        )
        if patterns is not None:
            incomplete = data.n_rows - patterns.known.n_rows
            said += f"; {counted(incomplete, 'row')} with missing values count for what is there"
        if left:
            lack = "without any" if patterns is not None else "with missing"
            said += f"; left out: {counted(left, 'row')} {lack} values"
        terminal.note(said)
        if patterns is not None and patterns.has_gaps:
            showing.show_map(terminal, patterns)
        stopped = False
        try:
            net = self._learned(data, self.pooling)
        except SearchInterrupted as interrupted:
            net, stopped = interrupted.network, True
        limits = as_constraints(self.learning["constraints"])
        showing.show_network(terminal, net, limits)
        known = net.stats or net.fitted_to or data  # that its estimates are from
        written = self._write(net, known)
        record = showing.network_record(net, known) | {"interrupted": stopped}
        what = "the best network so far" if stopped else "the network"
        if not stopped:
            try:
                self._assess(net, data, replicates, record, written, compare=compare)
            except KeyboardInterrupt:
                stopped = record["interrupted"] = True
        if stopped:
            names = " and ".join(map(str, written))
            where = f"is in {names}" if written else "is printed above; -o FOLDER also writes it"
            terminal.note(f"interrupted, so there is no report; {what} {where}")
        elif written:
            terminal.text(f"\nWritten: {', '.join(map(str, written))}")
        terminal.result(record | {"files": [str(path) for path in written]})
        if stopped:
            raise typer.Exit(INTERRUPTED)

    def _read(self) -> Data:
        """Rows where they are to be split, else what is enough."""
        if self.honest is not None:
            return table(self.files, **self.reading)
        return read_data(self.files, self.terminal.note, **self.reading)

    def _assess(
        self,
        net: Network,
        data: Data,
        replicates: int | None,
        record: dict[str, Any],
        written: list[Path],
        *,
        compare: bool,
    ) -> None:
        """How sure the arcs are, which pooling predicts best, and the report."""
        terminal, rows = self.terminal, list(self.files)
        boot = found = test = None
        if self.graph is not None:
            test = net.test_graph()
            record["test"] = showing.test_record(test)
            terminal.text()
            showing.show_test(terminal, test)
        if replicates is not None:
            terminal.note(
                f"bootstrap: learning {counted(replicates, 'network')} from resampled rows"
            )
            boot = resample(
                rows, replicates=replicates, pooling=self.pooling, seed=self.seed,
                **self.reading, **self.learning,
            )  # fmt: skip
            record["bootstrap"] = showing.bootstrap_record(boot)
            terminal.text()
            showing.show_bootstrap(terminal, boot)
        if compare:
            terminal.note("comparing poolings on held-out rows")
            found = compare_poolings(rows, seed=self.seed, **self.reading, **self.learning)
            record["comparison"] = showing.comparison_record(found)
            terminal.text()
            showing.show_comparison(terminal, found)
        elif self.graph is None and self._comparable(data):
            nets = self._other_poolings(net, data)
            record["scores"] = {name: other.score for name, other in nets.items()}
            terminal.text()
            showing.show_scores(terminal, nets, hint=given.has_rows(rows) and net.missing is None)
        if self.out is None:
            return
        if boot is not None:
            write_csv(boot.table(), self.out / "strengths.csv")
            written.append(self.out / "strengths.csv")
        terminal.note("writing the report")
        page = self.out / "report.html"
        rows_read = self._rows(data)
        report(
            net, page, data=rows_read, bootstrap=boot, evidence=[test] if test else [],
            rows=self.open and rows_read is not None and (rows_read is not data or data.has_rows),
            comparison=found, constraints=self.learning["constraints"], settings=self._settings(),
        )  # fmt: skip
        written.append(page)

    def _comparable(self, data: Data) -> bool:
        """Whether scores tell which pooling is best."""
        return self.learning["score"] in _COMPARABLE + _BY_BIC and len(data.levels) > 1

    def _learned(self, data: Data, pooling: str | Choice | None) -> Network:
        if self.graph is not None:
            own, score = pooling or "partial", self.learning["score"] or "bic"
            return fit_graph(self.graph, data, pooling=own, score=score)
        return learn_network(
            data, pooling=pooling, start=self.start, honest=self.honest, **self.learning
        )

    def _rows(self, data: Data) -> pd.DataFrame | Data | None:
        """The rows, for residuals, or counts; None where there are none, or too many for memory."""
        if only_sums(data) is None:
            return data
        if not given.has_rows(self.files) or data.n_rows * len(data.names) > _CELLS:
            return None
        return given.read_frame(self.files, **self.reading)

    def _settings(self) -> dict[str, object]:
        """For the report, so that a reader can repeat the analysis."""
        common: dict[str, object] = {
            "Files": ", ".join(map(without_secrets, self.files)),
            "Missing values": self.reading["missing"],
            "Pooling": self.pooling or self.usual.pooling,
        }
        if self.graph is not None:
            return common | {"Graph": "given, not searched for"}
        return common | {
            "Searched for": f"the best {self.learning['score'] or self.usual.score}",
            "Searched by": self.learning["search"],
            "Constraints": _words(as_constraints(self.learning["constraints"])),
            "Random seed": self.seed,
        }

    def _write(self, net: Network, data: Data) -> list[Path]:
        if self.out is None:
            return []
        make_folder(self.out)
        written = [self.out / "network.json", self.out / "arcs.csv"]
        net.save(written[0])
        write_csv(net.effects() if self.open else shared_effects(net, data), written[1])
        return written

    def _other_poolings(self, net: Network, data: Data) -> dict[str, Network]:
        """Networks learned with each pooling; the one that is there is not learned again."""
        wanted = self.usual.pooling if self.pooling is None else self.pooling
        own = wanted if isinstance(wanted, str) else repr(wanted)
        nets = {name: net if name == own else self._learned(data, name) for name in _POOLINGS}
        nets = nets if own in nets else nets | {own: net}
        if self.learning["score"] in _BY_BIC and self.learning["preset"] != "paper":
            nets = {name: by_bic(other) for name, other in nets.items()}
        return nets


def by_bic(net: Network) -> Network:
    """The network with its BIC for a score."""
    each = [fit.bic for fit in net.fits.values() if fit.n_params]
    return replace(net, score=math.fsum(each) if all(map(math.isfinite, each)) else -math.inf)


def _words(constraints: Constraints) -> str:
    """Constraints for the report."""
    parts = [" | ".join(", ".join(tier) for tier in constraints.tiers)]
    for what in ("required", "forbidden"):
        arcs = ", ".join(f"{parent} -> {child}" for parent, child in getattr(constraints, what))
        parts.append(f"{what}: {arcs}" if arcs else "")
    if constraints.max_parents is not None:
        parts.append(f"up to {constraints.max_parents} parents")
    if not constraints.continuous_to_discrete:
        parts.append("no arcs from continuous to discrete columns")
    return "; ".join(filter(None, parts)) or "none"
