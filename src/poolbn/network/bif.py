"""BIF, the text format in which programs for discrete Bayesian networks exchange them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import product

from poolbn.arrays import Floats
from poolbn.errors import GraphError
from poolbn.graph.dag import Dag
from poolbn.network.tabulating import network_tables
from poolbn.nodes.localfit import LocalFit
from poolbn.tables.kinds import has_levels
from poolbn.wording import listed

_NAMED = 5  # nodes in an error
# Readers split at spaces and punctuation, and know no quotes.
_NOT_WORD = re.compile("[^A-Za-z0-9_]")


def to_bif(dag: Dag, fits: Mapping[str, LocalFit], group: str, prior: Floats) -> str:
    """A network whose nodes are all discrete; the data sets are a node too.

    That node is a parent of the nodes whose tables differ between data sets.
    """
    if others := [node for node in dag.nodes if not has_levels(fits[node].kind)]:
        are = "is" if len(others) == 1 else "are"
        raise GraphError(
            f"BIF is for networks whose columns are all discrete, and {listed(others, _NAMED)} "
            f"{are} not; use to_bnlearn() or to_json()"
        )
    levels, tables = network_tables(dag, fits, group, prior)
    names = _words("the names of nodes", levels)
    words = {name: _words(f"the levels of {name}", own) for name, own in levels.items()}
    renamed = {**names, **{level: w for own in words.values() for level, w in own.items()}}
    lines = [
        *(f"// {str(old)!r} is {new}" for old, new in renamed.items() if str(old) != new),
        "network unknown {",
        "}",
    ]
    for name, own in words.items():
        lines += [
            f"variable {names[name]} {{",
            f"  type discrete [ {len(own)} ] {{ {', '.join(own.values())} }};",
            "}",
        ]
    for name, (parents, table) in tables.items():
        given = [list(words[parent].values()) for parent in parents]
        lines += _probability(names[name], [names[parent] for parent in parents], given, table)
    return "\n".join(lines) + "\n"


def _probability(
    name: str, parents: Sequence[str], given: Sequence[Sequence[str]], table: Floats
) -> list[str]:
    """The block of one node: its table has a dimension for each parent, and its levels last."""
    if not parents:
        return [f"probability ( {name} ) {{", f"  table {_numbers(table)};", "}"]
    rows = table.reshape(-1, table.shape[-1])
    return [
        f"probability ( {name} | {', '.join(parents)} ) {{",
        *(f"  ({', '.join(c)}) {_numbers(p)};" for c, p in zip(product(*given), rows, strict=True)),
        "}",
    ]


def _numbers(values: Floats) -> str:
    return ", ".join(repr(value) for value in values.tolist())


def _words(what: str, names: Iterable[Hashable]) -> dict[Hashable, str]:
    """For each name the word for it: what is no letter or digit becomes "_"."""
    words: dict[Hashable, str] = {}
    taken: dict[str, Hashable] = {}
    for name in names:
        word = _NOT_WORD.sub("_", str(name)) or "_"
        if word in taken:
            raise GraphError(
                f"{what} {taken[word]!r} and {name!r} are both {word!r} in BIF, which has letters, "
                'digits and "_" only; rename one'
            )
        words[name], taken[word] = word, name
    return words
