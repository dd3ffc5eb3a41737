"""`report`: a network as one HTML page that needs nothing else.

Charts are drawn by a few hundred lines of its own: plotly would make each page 4.7 MB larger, and a
page is to be mailed. All texts go through the escaping of jinja2, and in scripts become text nodes.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Hashable, Mapping
from datetime import date
from importlib import metadata
from importlib.resources import files
from os import PathLike
from typing import TYPE_CHECKING, Any

from poolbn.assess.comparison import Comparison
from poolbn.assess.resample import Bootstrap
from poolbn.errors import DataError, FileError, check_kind
from poolbn.graph.pairs import Pair
from poolbn.network.exporting import names_of_data_sets
from poolbn.network.network import Network
from poolbn.page.graph import picture
from poolbn.page.numbers import page_numbers
from poolbn.page.rows import Given, read_rows
from poolbn.page.tables import (
    PageTable,
    arcs_table,
    comparison_table,
    data_table,
    equality_table,
    nodes_table,
    strengths_table,
    totals_table,
    variables_table,
)
from poolbn.page.words import number, summary
from poolbn.wording import counted
from poolbn.writing import write_whole

if TYPE_CHECKING:
    import pandas as pd

_SCRIPTS = ("tools", "charts", "details", "page")
_PACKAGES = ("poolbn", "numpy", "numba", "scipy", "pandas")
_SCORES = {
    "bic": " (BIC)", "aic": " (AIC)", "loglik": " (log-likelihood)", "bge": " (BGe)", "": "",
}  # fmt: skip
_NO_ROWS = "Residuals need the rows: pb.report(net, path, data=rows)."


def report(
    net: Network,
    path: str | PathLike[str],
    *,
    data: object = None,
    bootstrap: Bootstrap | None = None,
    comparison: Comparison | None = None,
    settings: Mapping[str, object] | None = None,
) -> None:
    """Write a page about a network: one HTML file that needs no other, and no internet.

    It has a summary in words, the network to click on, with the effect of each arc in all data sets
    and the distribution of each variable, tables that sort and filter, and the network to download.
    The file is written whole or not at all; one that is there is replaced.

    Args:
        net: the network.
        path: the file to write.
        data: the rows, as a table or file as for `pb.stats` with the group column: for residuals;
            and where the network was loaded, for tests and for what data sets say on their own.
        bootstrap: from `pb.bootstrap`: how sure the arcs are.
        comparison: from `pb.compare`: which pooling the data want.
        settings: how the network was made, by name: whatever a reader needs to make it again.

    Raises:
        DataError: what is given is of another kind, of other variables, or cannot be used.
        FileError: the file cannot be written.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> net = pb.learn(trial.dropna(), group="clinic")
        >>> pb.report(net, "report.html", data=trial)  # doctest: +SKIP
    """
    check_kind(net, Network, "a network", "pb.learn")
    if bootstrap is not None:
        check_kind(bootstrap, Bootstrap, "a bootstrap", "pb.bootstrap")
    if comparison is not None:
        check_kind(comparison, Comparison, "a comparison", "pb.compare")
        _check_same(net, comparison)
    rows = None if data is None else read_rows(net, data)
    page = _page(net, rows, bootstrap, comparison, settings or {})
    write_whole(path, page.encode(errors="xmlcharrefreplace"))


def _check_same(net: Network, comparison: Comparison) -> None:
    compared = next(iter(comparison.networks.values())).dag.nodes
    other = [node for node in net.dag.nodes if node not in compared]
    other += [node for node in compared if node not in net.fits]
    if other:
        raise DataError(
            f"the comparison was not of the variables of the network: {other[0]!r} is in one of "
            "the two only; compare with the same columns"
        )


# The page


def _page(
    net: Network,
    rows: Given | None,
    boot: Bootstrap | None,
    found: Comparison | None,
    settings: Mapping[str, object],
) -> str:
    known = net.stats
    if known is None and rows is not None:
        known = rows.stats
    tests = None
    if known is not None and len(known.levels) > 1:
        tests = net.heterogeneity(known)
    p_values = {} if tests is None else _p_values(tests)
    residuals = dict.fromkeys(net.dag.nodes, _NO_ROWS) if rows is None else rows.residuals
    names = names_of_data_sets(net.dag, net.fits, ())
    contents = {
        "title": f"A network of {counted(len(net.dag.nodes), 'variable')} in "
        f"{counted(len(net.levels), 'data set')}",
        "group": net.group,
        "summary": summary(net, known, p_values, boot, found),
        "picture": picture(net),
        "numbers": page_numbers(net, known, p_values, residuals, boot, found),
        "tables": _tables(net, names, rows, tests, boot, found),
        "note": _note(net, rows),
        "verdict": "" if found is None else found.verdict,
        "boot": boot,
        "made": _made(net, boot, found, settings),
        "code": _code(net),
        "files": _files(net),
    }
    return _rendered(contents)


def _p_values(tests: pd.DataFrame) -> dict[Pair, float]:
    arcs = zip(tests["parent"].tolist(), tests["child"].tolist(), strict=True)
    return dict(zip(arcs, tests["p_value"].tolist(), strict=True))


def _tables(
    net: Network,
    names: list[str],
    rows: Given | None,
    tests: pd.DataFrame | None,
    boot: Bootstrap | None,
    found: Comparison | None,
) -> dict[str, PageTable]:
    dropped: dict[Hashable, int] | None = None
    if net.stats is not None:
        dropped = dict(zip(net.stats.levels, net.stats.dropped.tolist(), strict=True))
    elif rows is not None:
        dropped = rows.dropped
    tables = [
        arcs_table(net, tests, boot),
        nodes_table(net, tests),
        data_table(net, names, dropped),
    ]
    if net.dag.arcs:
        tables.append(totals_table(net))
    if tests is not None:
        tables.append(equality_table(net, tests))
    if found is not None:
        tables += [comparison_table(found), variables_table(found)]
    if boot is not None:
        tables.append(strengths_table(net, boot))
    return {table.key: table for table in tables}


def _note(net: Network, rows: Given | None) -> str:
    """What to know about the rows that were given."""
    if rows is None:
        return "The page was made without the rows, so it has no residuals."
    given = dict.fromkeys(net.levels, 0)
    if rows.stats is not None:
        given |= dict(zip(rows.stats.levels, rows.stats.n.tolist(), strict=True))
    other = [
        f"{level} {given[level]:,} instead of {n:,}"
        for level, n in zip(net.levels, net.n.tolist(), strict=True)
        if given[level] != n
    ]
    if not other:
        return ""
    return (
        "The rows that the page was made with are not those that the network was learned from, or "
        f"other ones are complete: {'; '.join(other[:8])}{'; ...' * (len(other) > 8)}."
    )


def _made(
    net: Network, boot: Bootstrap | None, found: Comparison | None, settings: Mapping[str, object]
) -> list[tuple[str, str]]:
    """How it was made: what the network tells of itself, what the user tells, and versions."""
    moves = len(net.trace)
    lines = [
        ("Group column", net.group),
        (
            "Score",
            f"{net.score:,.4f}{_SCORES[net.score_kind]}".replace("-", "−")
            if math.isfinite(net.score)
            else "–",
        ),
        (
            "Search",
            f"{counted(moves, 'move')}, {counted(sum(m.fits for m in net.trace), 'local fit')}"
            if moves
            else "none, or no move was better than the start",
        ),
    ]
    if boot is not None:
        lines.append(
            ("Bootstrap", f"{counted(boot.replicates, 'replicate')}, resampling {boot.unit}s")
        )
    if found is not None:
        lines.append(
            ("Comparison", f"{', '.join(found.poolings)}; {counted(len(found.rows), 'fold')}")
        )
    lines += [(str(name), str(value)) for name, value in settings.items()]
    packages = [f"{name} {metadata.version(name)}" for name in _PACKAGES]
    lines.append(("Versions", f"{', '.join(packages)}, Python {platform.python_version()}"))
    lines.append(("Page written", date.today().isoformat()))
    return lines


def _code(net: Network) -> str:
    """What a reader can do with the file of the network."""
    node = max(net.dag.nodes, key=lambda name: len(net.dag.parents(name)))
    return "\n".join(
        [
            "import poolbn as pb",
            "",
            'net = pb.load("network.json")  # from the downloads below',
            "print(net.effects())",
            "rows = net.sample(5, seed=1)  # or a table of your own",
            f"print(net.predict(rows, {node!r}))",
        ]
    )


def _files(net: Network) -> list[dict[str, Any]]:
    """Downloads: the network, its arcs and its graph."""
    made = [
        (
            "arcs.csv",
            "text/csv",
            "the effects, for spreadsheets",
            net.effects().to_csv(index=False),
        ),
        ("network.dot", "text/vnd.graphviz", "the graph, for Graphviz", net.to_dot()),
    ]
    try:
        # Read and written again it is shorter, without the space that makes the file readable.
        network = json.dumps(json.loads(net.to_json()), separators=(",", ":"))
        made.insert(0, ("network.json", "application/json", "the network, for pb.load", network))
    except FileError:  # names of data sets that JSON does not have
        pass
    return [
        {"name": name, "type": kind, "words": words, "text": text, "size": _size(text)}
        for name, kind, words, text in made
    ]


def _size(text: str) -> str:
    kilobytes = len(text.encode(errors="surrogatepass")) / 1000
    return (
        f"{number(round(kilobytes / 1000, 1))} MB" if kilobytes >= 1000 else f"{kilobytes:.0f} kB"
    )


def _rendered(contents: Mapping[str, Any]) -> str:
    """The template with contents, styles and scripts; all texts are escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    pages = Environment(
        loader=PackageLoader("poolbn"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    folder = files("poolbn") / "templates"
    own = [(folder / f"report-{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    return pages.get_template("report.html").render(
        contents,
        style=(folder / "report.css").read_text(encoding="utf-8"),
        script="\n".join(own),
    )
