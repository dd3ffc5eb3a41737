"""`report`: a network as one HTML file that needs nothing else.

Its charts are a few hundred lines of script: plotly would make each file 4.7 MB larger, and people
mail reports. All texts go through the escaping of jinja2, and in scripts become text nodes.
"""

from __future__ import annotations

import base64
import gzip
import json
import platform
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cache
from importlib import metadata
from importlib.resources import files
from os import PathLike
from typing import Any

from poolbn.arguments import DICT, PATH, check_arguments
from poolbn.assess.comparison import Comparison
from poolbn.assess.resample import Bootstrap
from poolbn.errors import FileError, Option, OptionError, check_kind
from poolbn.graph.constraints import Constraints, as_constraints
from poolbn.later import jinja2, markupsafe
from poolbn.network.network import Network
from poolbn.page import numbers
from poolbn.page.cards import summary
from poolbn.page.context import Context, Evidence, check_evidence, check_nodes, gathered
from poolbn.page.disclosure import effects_of
from poolbn.page.graph import picture
from poolbn.page.methods import about_alone, about_rows, about_search, methods
from poolbn.page.numbers import node_numbers
from poolbn.page.summary import about_privacy, in_short, resampled
from poolbn.page.tables import missing_map, report_tables, treatment_tables
from poolbn.page.whatif import whatif_numbers
from poolbn.show.figures import number
from poolbn.wording import counted, csv_text, visible
from poolbn.writing import write_whole

_SCRIPTS = (
    "tools", "charts", "details", "node", "discrete", "page", "locals", "infer", "answers",
    "whatif",
)  # fmt: skip
_PACKAGES = ("poolbn", "numpy", "numba", "scipy", "pandas")
_OPTION = re.compile(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*")  # of the command line
_LARGEST = 400_000  # letters of a download; people mail reports
_NO_RESIDUALS = "The report was made without the rows, so it has no residuals."


def report(
    net: Network,
    path: str | PathLike[str],
    *,
    data: object = None,
    rows: bool = False,
    bootstrap: Bootstrap | None = None,
    comparison: Comparison | None = None,
    constraints: Constraints | Mapping[str, Any] | None = None,
    evidence: Evidence | Sequence[Evidence] = (),
    settings: Mapping[str, object] | None = None,
) -> None:
    """Write a report on a network: one HTML file that needs no other, no internet, and has no rows.

    It has a summary in words, the network to click on, with the effect of each arc in all data sets
    and the distribution of each variable, tables that sort and filter, and the network to download.
    The file is written whole or not at all; one that is there is replaced.

    Args:
        net: the network.
        path: the file to write.
        data: the rows, as a table or file as for `pb.stats` with the group column, or from
            `pb.table`: for residuals and calibration; and for a loaded network, or one whose
            columns are not all continuous, for tests, for estimates of data sets alone, and to know
            what comes from few rows. Or the `pb.CellStats` that it was learned from.
        rows: whether the report may contain rows, as dots of the residuals, and what is particular
            to data sets with fewer than 10 rows, or to few of their rows with the same levels. By
            default it has neither, nor anything from which that follows: the same graph is fitted
            without the small data sets, and where few rows have some levels, with data sets put
            together. Its head says what is left out.
        bootstrap: from `pb.bootstrap`: how sure the arcs are.
        comparison: from `pb.compare`: which model predicts best.
        constraints: those of the search, as `pb.learn` takes them: what they fix is not said
            to be unsure, and effects come in the order of tiers.
        evidence: from `pb.arc_posterior` or `pb.PC().pattern(...)`: which arcs are in doubt; from
            `net.test_graph()`: what the data say of the graph; or several in a list.
        settings: how the network was made, by name: whatever a reader needs to make it again.

    Raises:
        DataError: what is given is of another kind, of other variables, or cannot be used; or
            nothing is given, and estimates may come from few rows with the same levels.
        GraphError: a constraint is about another variable.
        OptionError: `rows` without `data`.
        FileError: the file cannot be written.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> net = pb.learn(trial.dropna(), group="clinic")
        >>> pb.report(net, "report.html", data=trial)  # doctest: +SKIP
    """
    check_kind(net, Network, "a network", "pb.learn")
    check_arguments(path=(path, PATH), settings=(settings, DICT.or_none()))
    if bootstrap is not None:
        check_kind(bootstrap, Bootstrap, "a bootstrap", "pb.bootstrap")
    if comparison is not None:
        check_kind(comparison, Comparison, "a comparison", "pb.compare")
        check_nodes(net, next(iter(comparison.networks.values())).dag.nodes, "comparison")
    several = evidence if isinstance(evidence, list | tuple) else (evidence,)
    given = tuple(check_evidence(net, found) for found in several)
    if rows and data is None:
        raise OptionError(Option("rows", rows), " shows rows, and there are none; give data=rows")
    known = as_constraints(constraints)
    of = gathered(net, data, bootstrap, comparison, open=rows, constraints=known, evidence=given)
    text = _rendered(_contents(of, settings or {}))
    write_whole(path, text.encode(errors="xmlcharrefreplace"))


# Its contents


def _contents(of: Context, settings: Mapping[str, object]) -> dict[str, Any]:
    """What the template shows."""
    net, boot = of.net, of.boot
    compared = None if of.found is None else numbers.comparison_numbers(of)
    old = [level not in net.adapted for level in net.levels]
    nodes, sets = counted(len(net.dag.nodes), "variable"), counted(len(old), of.sets)
    packages = [f"{name} {metadata.version(name)}" for name in _PACKAGES]
    return {
        "open": of.open,
        "sets": of.sets,
        "privacy": about_privacy(of),
        "title": f"A network of {nodes} in {sets}",
        "short": in_short(of),
        "summary": summary(of),
        "picture": picture(net, of.sizes),
        "numbers": {
            "sets": {"one": of.sets.one, "many": of.sets.many, "a": of.sets.a},
            "levels": [n + " (adapted)" * (not o) for n, o in zip(of.names, old, strict=True)],
            "rows": [n if may else None for n, may in zip(net.n.tolist(), of.shown, strict=True)],
            "learned": int(net.n[old].sum()),
            "alone": about_alone(of),
            "arcs": numbers.arc_numbers(of),
            "nodes": node_numbers(of),
            "overview": numbers.overview_numbers(of),
            "comparison": compared,
            "bootstrap": None if boot is None else numbers.bootstrap_numbers(boot),
            "whatif": whatif_numbers(net, of.names, of.disclosed),
        },
        "tables": report_tables(of),
        "treated": treatment_tables(of),
        "missing": missing_map(of),
        "note": about_rows(of) if of.rows else _NO_RESIDUALS,
        "graph_test": [] if of.graph_test is None else of.graph_test.lines,
        "verdict": "" if of.found is None else of.found.verdict,
        "boot": boot,
        "resampled": "" if boot is None else resampled(boot, of.sets),
        "made": [
            *about_search(of),
            *((str(name), str(value)) for name, value in settings.items()),
            ("Versions", f"{', '.join(packages)}, Python {platform.python_version()}"),
            ("Report written", date.today().isoformat()),
        ],
        "methods": methods(of, metadata.version("poolbn")),
        "code": _code(net),
        "files": _files(of),
        "few": of.hidden,
        "hidden": not of.disclosed.whole,
    }


def _code(net: Network) -> str:
    """What a reader can do with the file of the network."""
    node = max(net.dag.nodes, key=lambda name: len(net.dag.parents(name)))
    return f"""import poolbn as pb

net = pb.load("network.json")  # from the downloads below
print(net.effects())
rows = net.sample(5, seed=1)  # or a table of your own
print(net.predict(rows, {node!r}))"""


def _files(of: Context) -> list[dict[str, str]]:
    """Downloads: the network, its arcs and its graph; less if a row may follow from them."""
    net, effects = of.net, effects_of(of.disclosed)
    closed = not of.disclosed.whole
    plain = closed or len(net.levels) > numbers.MANY
    graph = net.dag.to_dot() if plain else net.to_dot()
    made = [
        ("arcs.csv", "text/csv", "the effects, for spreadsheets", csv_text(effects, form="%.6g")),
        ("network.dot", "text/vnd.graphviz", "the graph, for Graphviz", graph),
    ]
    if not closed:
        with suppress(FileError):  # names of data sets that JSON does not have
            # Read and written again it is shorter, without the space that makes it readable.
            network = json.dumps(json.loads(net.to_json()), separators=(",", ":"))
            about = ("network.json", "application/json", "the network, for pb.load")
            made.insert(0, (*about, network))
    return [
        {"name": name, "type": kind, "words": words, "packed": _packed(text), "size": _size(text)}
        for name, kind, words, text in made
    ]


def _packed(text: str) -> str:
    """A text as a page keeps it, at about half its size; nothing where it is too large."""
    packed = base64.b64encode(gzip.compress(text.encode(errors="replace"), 6, mtime=0)).decode()
    return packed if len(packed) <= _LARGEST else ""


def _size(text: str) -> str:
    size = len(text.encode(errors="surrogatepass")) / 1000
    return f"{number(round(size / 1000, 1))} MB" if size >= 1000 else f"{size:.0f} kB"


def _readable(value: Any) -> Any:
    """Texts of any contents without characters that turn or hide what stands beside them."""
    if isinstance(value, str) and not isinstance(value, markupsafe.Markup):
        return visible(value, "\n\t\u200c\u200d")  # with the joiners that scripts and emoji need
    if isinstance(value, list | tuple):
        return [_readable(part) for part in value]
    if isinstance(value, dict):
        return {_readable(name): _readable(part) for name, part in value.items()}
    return value


def _with_options(text: str) -> str:
    """A sentence as HTML, with options of the command line as code, which stays on one line."""
    return markupsafe.Markup(
        _OPTION.sub(r"<code>\g<0></code>", str(markupsafe.escape(_readable(text))))
    )


@cache
def template(name: str) -> jinja2.Template:
    """One of the templates; all texts are escaped."""
    pages = jinja2.Environment(
        loader=jinja2.PackageLoader("poolbn"),
        autoescape=True,
        finalize=_readable,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters["options"] = _with_options
    pages.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return pages.get_template(name)


def _rendered(contents: Mapping[str, Any]) -> str:
    """The template with contents, styles and scripts."""
    folder = files("poolbn") / "templates"
    own = [(folder / f"report-{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    return template("report.html").render(
        {**contents, "numbers": numbers.shorter(_readable(contents["numbers"]))},
        style=(folder / "report.css").read_text(encoding="utf-8"),
        script="\n".join(own),
    )
