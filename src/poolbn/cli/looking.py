"""`poolbn look`: the first command to run."""

from __future__ import annotations

from typing import Any

from poolbn.cli import inputs as given
from poolbn.cli.terminal import Terminal, command
from poolbn.moments.looking import Look, head, tail
from poolbn.moments.looking import look as look_at


@command
def look(
    files: given.Rows, *, chosen: given.Chosen, kinds: given.Kinds = None, terminal: Terminal
) -> None:
    """Look at a table: what it holds, what is missing, what to fix, how to learn from it.

    The first command to run. Without --group it says which columns that could be.
    """
    given.check_rows(files, "look")
    found = look_at(
        files, group=chosen.group, columns=chosen.names(files), kinds=given.kinds_of(kinds)
    )
    table = found.table()
    terminal.text(head(found) + "\n")
    terminal.table(list(map(str, table)), table.astype(str).to_numpy().tolist(), needless=1)
    terminal.text()
    for line in tail(found, shell=True):
        terminal.text(line)
    terminal.line(found.command)
    terminal.result(_record(found))


def _record(found: Look) -> dict[str, Any]:
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
