"""Results as commands show them: tables for people, records for programs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from poolbn.assess.comparison import Comparison
from poolbn.assess.effectsizes import arc_directions
from poolbn.assess.graphtest import GraphTest
from poolbn.assess.patternmap import pattern_map
from poolbn.assess.resample import Bootstrap
from poolbn.cli.terminal import Terminal, number
from poolbn.graph.constraints import Constraints
from poolbn.graph.equivalence import Direction
from poolbn.moments.cellstats import CellStats
from poolbn.moments.checks import check
from poolbn.moments.data import Data
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.patternstats import PatternStats
from poolbn.moments.statsfile import About
from poolbn.network.effects import RATIO, arc_of
from poolbn.network.network import Network
from poolbn.nodes.localfit import GroupLevel
from poolbn.posteriors.chains import R_HAT
from poolbn.posteriors.posterior import ArcPosterior
from poolbn.show.figures import percent
from poolbn.wording import DATA_SET, counted, figure, listed, noun_of

_ACROSS = 4  # columns of sums beside each other
_DATA_SETS = 12  # whose rows a map of missing values counts
_NAMED = 6  # arcs in a line
_WEAKER = 5  # arcs that are shown below those that count


def show_network(terminal: Terminal, net: Network, constraints: Constraints | None = None) -> None:
    """Print the arcs with their effects, and why they have the directions that they have."""
    terminal.text("\n".join(net.title()))
    _show_effects(terminal, net)
    found = arc_directions(net, constraints)
    for why in Direction:
        arcs = [f"{parent} -> {child}" for (parent, child), own in found.items() if own is why]
        if arcs:
            terminal.text(f"Direction {why}: {listed(arcs, most=_NAMED)}")
    for line in net.endings():
        terminal.text(line)
    for node, fit in net.fits.items():
        if not fit.status.ok:
            terminal.text(f"{node}: {fit.status}: {fit.detail}")


def _show_effects(terminal: Terminal, net: Network) -> None:
    effects = net.effects()
    levels = list(effects.columns)[-len(net.levels) :]
    ratios = effects["scale"].str.endswith(RATIO).any()
    rows = []
    for row in effects.to_dict("records"):
        each = {level: row[level] for level in levels}
        low, high = min(each, key=each.__getitem__), max(each, key=each.__getitem__)
        same = each[low] == each[high]
        rows.append(
            [
                arc_of(row),
                *([row["scale"]] if ratios else []),
                number(row["effect"], 3),
                f"{number(row['lower'], 3)} to {number(row['upper'], 3)}",
                number(row["between_sd"], 3),
                "the same" if same else f"{number(each[low], 3)} ({low})",
                "" if same else f"{number(each[high], 3)} ({high})",
            ]
        )
    if not rows:
        terminal.text("No column depends on another.")
        return
    scale = ["scale"] if ratios else []
    headers = ["arc", *scale, "effect", "95% interval", "SD between", "lowest", "highest"]
    terminal.table(headers, rows, needless=2)
    sets = noun_of(net.group).many
    terminal.text(
        "The effect is the change of the second for one unit of the first, in the population "
        f"of {sets}; SD between is its standard deviation between {sets}."
    )
    if ratios:
        terminal.text(
            "A ratio is what the odds or the mean of the second are multiplied by; its SD is that "
            "of the logarithm."
        )


def network_record(net: Network, data: Data) -> dict[str, Any]:
    """The same for programs, and how many rows were left out."""
    sets = zip(net.levels, net.n.tolist(), data.dropped.tolist(), strict=True)
    patterns = data.patterns
    counts = {} if patterns is None else patterns.counts().T.to_dict("list")
    return {
        "nodes": net.dag.nodes,
        "group": net.group,
        "data_sets": [{"name": name, "rows": n, "dropped": d} for name, n, d in sets],
        "missing": [{"columns": lack, "rows": rows} for lack, rows in counts.items()],
        "score": net.score,
        "poolings": {node: str(fit.pooling) for node, fit in net.fits.items()},
        "status": {node: str(fit.status) for node, fit in net.fits.items()},
        "warnings": [
            {"kind": found.kind.value, "columns": found.columns, "text": found.for_shell()}
            for found in check(data)
        ],
        "models": {node: fit.model for node, fit in net.fits.items()},
        "arcs": net.effects(),
    }


def show_test(terminal: Terminal, test: GraphTest) -> None:
    """Print what the data say of a graph."""
    for line in test.lines:
        terminal.text(line)
    rows = [
        [row["x"], row["y"], ", ".join(row["given"]) or "nothing", row["test"],
         *(number(row[name], 3) for name in ("p_value", "p_adjusted", "gain"))]
        for row in test.claims.to_dict("records")
    ]  # fmt: skip
    if rows:
        headers = ["independent", "of", "given", "test", "p", "adjusted", "change of BIC score"]
        terminal.text("\nWhat the graph claims, the worst first:")
        terminal.table(headers, rows, needless=1)
    if len(test.unneeded):
        arcs = [
            [f"{row['parent']} -> {row['child']}", number(row["gain"], 3)]
            for row in test.unneeded.to_dict("records")
        ]
        terminal.text("The BIC score is higher without these arcs:")
        terminal.table(["arc", "change"], arcs)
    if len(test.r2):
        shares = [
            [row["node"], number(row["marginal"], 2), number(row["conditional"], 2)]
            for row in test.r2.to_dict("records")
        ]
        terminal.text("R2 (Nakagawa and Schielzeth):")
        terminal.table(["node", "marginal", "conditional"], shares)


def test_record(test: GraphTest) -> dict[str, Any]:
    """A test of a graph, for programs."""
    return {
        "verdict": test.verdict,
        "claims": test.claims,
        "fisher_c": test.fisher_c._asdict(),
        "lr": test.lr._asdict(),
        "r2": test.r2,
        "criteria": test.criteria,
        "unneeded": test.unneeded,
    }


def show_scores(terminal: Terminal, networks: dict[str, Network], *, hint: bool) -> None:
    """Print the scores of networks learned with several poolings, and a hint."""
    best = max(networks, key=lambda name: networks[name].score)
    top = networks[best].score
    rows = [
        [name, figure(net.score, ".2f"), figure(top - net.score, ".2f"), str(len(net.dag.arcs))]
        for name, net in networks.items()
    ]
    terminal.text("Networks learned with each pooling:")
    terminal.table(["pooling", "score", "difference", "arcs"], rows)
    more = "; --compare also predicts held-out rows" if hint else ""
    if not math.isfinite(top):
        without = {
            node for net in networks.values() for node, f in net.fits.items() if not f.status.ok
        }
        names = ",".join(name for name in networks[best].dag.nodes if name in without)
        terminal.text(
            "No pooling has a score, since columns are constant or determined by others; leave "
            f"them out with --exclude {names}."
        )
        return
    terminal.text(f"The best score has {best!r}{more}.")
    if any(fit.left_out or fit.pooling == GroupLevel() for fit in networks[best].fits.values()):
        terminal.text(
            "These scores are not of the same rows: with some poolings a column that is constant "
            "in a data set leaves it out, or counts once for each data set."
        )


def show_comparison(terminal: Terminal, found: Comparison) -> None:
    """Print how well poolings predict."""
    table = found.table()
    noun = noun_of(found.networks[found.best].group)
    one = "set" if noun == DATA_SET else noun.one
    headers = {
        "score": "score",
        "arcs": "arcs",
        "loglik": "loglik",
        "difference": "difference",
        "se": "SE",
        "new_data_set": f"new {one}",
        "known": "error",
        "unknown": f"{one} unknown",
        "f1": "F1",
    }
    rows = [
        [str(name), *(number(row[column]) for column in headers)] for name, row in table.iterrows()
    ]
    held = f"{found.rows.sum():,} held-out rows in {len(found.rows)} folds"
    terminal.text(f"Predictions of {held}:")
    terminal.table(["pooling", *headers.values()], rows)
    terminal.text(found.verdict)


def comparison_record(found: Comparison) -> dict[str, Any]:
    """The same for programs."""
    return {
        "best": found.best,
        "verdict": found.verdict,
        "poolings": found.table().reset_index(),
        "variables": {
            "known": found.by_variable()["known"].reset_index(),
            "unknown": found.by_variable()["unknown"].reset_index(),
        },
    }


def show_bootstrap(terminal: Terminal, boot: Bootstrap, threshold: float | None = None) -> None:
    """Print how often arcs were found."""
    limit = boot.threshold if threshold is None else threshold
    kept = {frozenset(arc) for arc in boot.averaged(threshold).arcs}
    terminal.text(f"{counted(boot.replicates, 'network')} learned from resampled {boot.unit}s:")
    rows = []
    for row in boot.pairs():
        arc = f"{row.parent} {'->' if row.directed else '--'} {row.child}"
        mark = "yes" if frozenset(row[:2]) in kept else ""
        rows.append([arc, f"{row.strength:.2f}", f"{row.direction:.2f}", mark])
    shown = len(kept) + _WEAKER
    terminal.table(["arc", "strength", "direction", "averaged"], rows[:shown])
    more = f"; not shown: {counted(len(rows) - shown, 'weaker arc')}" if len(rows) > shown else ""
    terminal.text(
        f"The averaged network has the {counted(len(kept), 'arc')} with a strength above "
        f"{limit:.3g}{more}."
    )


def bootstrap_record(boot: Bootstrap, threshold: float | None = None) -> dict[str, Any]:
    """The same for programs."""
    return {
        "replicates": boot.replicates,
        "unit": boot.unit,
        "threshold": boot.threshold if threshold is None else threshold,
        "strengths": boot.table(),
        "averaged": boot.averaged(threshold).arcs,
    }


def show_posterior(terminal: Terminal, post: ArcPosterior) -> None:
    """Print how probable arcs are, those in the median-probability graph first."""
    median = post.median_graph()
    table = post.arcs().sort_values("probability", ascending=False, kind="stable")
    rows = []
    for row in table.to_dict("records"):
        arc = (row["parent"], row["child"])
        joined = arc in median.arcs or arc[::-1] in median.arcs
        numbers = [f"{row[name]:.2f}" for name in ("probability", "direction")]
        rows.append([" -> ".join(arc), *numbers, "yes" if joined else ""])
    shown = len(median.arcs) + _WEAKER
    how = "all orders" if post.prior == "orders" else "all graphs"
    most = counted(post.max_parents, "parent")
    terminal.text(f"Probabilities of arcs, over {how} of the columns, with up to {most}:")
    terminal.table(["arc", "probability", "direction", "median"], rows[:shown])
    more = f"; {len(rows) - shown} less probable pairs are not shown" if len(rows) > shown else ""
    arcs = counted(len(median.arcs), "arc")
    terminal.text(
        f"The probability is that of an arc either way, the direction the share of it this way. "
        f"The median-probability graph has {arcs}{more}."
    )
    if post.chains is not None:
        mixed = "" if post.chains.r_hat <= R_HAT else "; they have not mixed, give more --sweeps"
        terminal.text(f"From {post.chains}{mixed}.")


def posterior_record(post: ArcPosterior) -> dict[str, Any]:
    """The same for programs."""
    chains = post.chains
    return {
        "prior": post.prior,
        "max_parents": post.max_parents,
        "exact": chains is None,
        "r_hat": None if chains is None else chains.r_hat,
        "ess": None if chains is None else chains.ess,
        "arcs": post.arcs(),
        "median": post.median_graph().arcs,
    }


def show_stats(terminal: Terminal, held: CellStats | PatternStats, about: About, path: str) -> None:
    """Print all that a file of sufficient statistics holds, some columns at a time."""
    stats = held.patterns.known if held.patterns is not None else held.stats()
    terminal.text(
        f"{path}: sufficient statistics of {counted(stats.n_rows, 'row')} in "
        f"{counted(len(stats.levels), noun_of(stats.group))} (column {stats.group!r}), "
        f"{counted(len(stats.names), 'column')}. Written by poolbn {about.poolbn}, format "
        f"{about.version}, {about.size:,} bytes, with the checksum (SHA-256)\n{about.sha256}\n"
        "Below are, for each data set, the number of rows, the number of rows left out for missing "
        "values, the means, and the centred sums of squares and products, each once; and for each "
        "column its resolution (1: whole numbers, 0: full precision) and whether it has two, few "
        "or many different values. All digits are shown, and nothing else is in the file."
    )
    for level, own in held.interventions.items():
        each = [f"{column} ({how})" for column, how in own.items()]
        terminal.text(f"Set or changed in {level}: {', '.join(each)}")
    facts = zip(stats.names, _resolutions(stats), _distinct(stats), strict=True)
    told = [[name, repr(size), count] for name, size, count in facts if size is not None]
    if told:
        terminal.text()
        terminal.table(["column", "resolution", "different values"], told)
    for j, level in enumerate(stats.levels):
        terminal.text(
            f"\n{level}: {counted(int(stats.n[j]), 'row')}, {stats.dropped[j]:,} left out"
        )
        _show_sums(terminal, stats.names, stats.mean[j].tolist(), stats.scatter[j].tolist())
    if held.patterns is None:
        _show_cells(terminal, held)
    else:
        _show_gaps(terminal, held.patterns)


def _show_cells(terminal: Terminal, stats: Data) -> None:
    """Print how often configurations of discrete columns occur in each data set."""
    terminal.text(
        "\nRows of each configuration of the discrete columns; those that are not listed have none:"
    )
    names = [name for name, levels in zip(stats.names, stats.categories, strict=True) if levels]
    rows = [[str(level), *own, str(n)] for level, own, n in _configurations(stats)]
    terminal.table([stats.group, *names, "rows"], rows)


def _configurations(stats: Data) -> Iterator[tuple[Hashable, list[str], int]]:
    """The data set, the levels and the rows of each configuration of discrete columns."""
    of = {n: levels for n, levels in zip(stats.names, stats.categories, strict=True) if levels}
    cells = stats.cases(of)
    assert cells.n is not None
    for j, n, *codes in zip(cells.data_set, cells.n, *cells.columns, strict=True):
        own = [levels[int(code)] for levels, code in zip(of.values(), codes, strict=True)]
        yield stats.levels[j], own, int(n)


def _show_gaps(terminal: Terminal, stats: PatternStats) -> None:
    """Print the same of rows with missing cells."""
    gaps = stats.gaps
    for k, j in enumerate(gaps.data_set.tolist()):
        has = np.flatnonzero(~gaps.missing[k])
        lacks = [stats.names[i] for i in np.flatnonzero(gaps.missing[k])]
        terminal.text(
            f"\n{stats.levels[j]}: {counted(int(gaps.n[k]), 'row')} lacking {listed(lacks)}"
        )
        names = tuple(stats.names[i] for i in has)
        scatter = gaps.scatter[k][np.ix_(has, has)].tolist()
        _show_sums(terminal, names, gaps.mean[k][has].tolist(), scatter)


def show_map(terminal: Terminal, patterns: PatternStats) -> None:
    """Print which columns rows lack: columns by patterns, with counts for each data set."""
    found = pattern_map(patterns)
    P, more = found.missing.shape[1], bool(found.others.any())
    headers = ["missing", *(f"{p + 1}" for p in range(P)), *["others"] * more, "share", "gained"]
    rows = [
        [name, *("x" if lacks else "" for lacks in found.missing[k]), *[""] * more,
         percent(float(found.share[k])), f"{found.gained[k]:,}"]
        for k, name in enumerate(found.columns)
    ]  # fmt: skip
    counts = [("rows", found.rows.sum(axis=1), found.others.sum())]
    if len(patterns.levels) <= _DATA_SETS:
        parts = zip(patterns.levels, found.rows.T, found.others, strict=True)
        counts += [(str(level), own, other) for level, own, other in parts]
    for name, own, other in counts:
        rows.append([name, *(f"{n:,}" for n in own), *[f"{other:,}"] * more, "", ""])
    wide = [max(len(row[i]) for row in rows) for i in range(len(headers))]
    right = [
        [row[0], *(f"{c:>{w}}" for c, w in zip(row[1:], wide[1:], strict=True))] for row in rows
    ]
    terminal.text()
    terminal.table(headers, right)
    terminal.text()


def _show_sums(
    terminal: Terminal, names: Sequence[str], mean: list[float], scatter: list[list[float]]
) -> None:
    rows = [[name, repr(value)] for name, value in zip(names, mean, strict=True)]
    terminal.table(["column", "mean"], rows)
    for start in range(0, len(names), _ACROSS):
        columns = range(start, min(start + _ACROSS, len(names)))
        terminal.text()
        terminal.table(
            ["sums with", *(names[k] for k in columns)],
            [
                [names[i], *(repr(scatter[i][k]) if k <= i else "" for k in columns)]
                for i in range(start, len(names))
            ],
        )


def stats_record(stats: Any) -> dict[str, Any]:
    """The same for programs, with all digits."""
    patterns = stats.patterns
    known = stats.stats() if patterns is None else patterns.known
    record: dict[str, Any] = {
        "group": known.group,
        "columns": known.names,
        "interventions": dict(stats.interventions),
        "resolution": _resolutions(known),
        "distinct": _distinct(known),
        "data_sets": [
            {
                "name": level,
                "rows": int(known.n[j]),
                "dropped": int(known.dropped[j]),
                "mean": known.mean[j],
                "scatter": known.scatter[j],
            }
            for j, level in enumerate(known.levels)
        ],
    }
    if patterns is None:
        discrete = {n: of for n, of in zip(stats.names, stats.categories, strict=True) if of}
        return record | {
            "levels": discrete,
            "merged": stats.merged,
            "left_out": stats.left_out,
            "cells": [
                {"data_set": level, **dict(zip(discrete, own, strict=True)), "rows": n}
                for level, own, n in _configurations(stats)
            ],
        }
    if stats.has_gaps:
        gaps = stats.gaps
        record["gaps"] = [
            {
                "data_set": known.levels[j],
                "missing": [known.names[i] for i in np.flatnonzero(gaps.missing[k])],
                "rows": int(gaps.n[k]),
                "mean": gaps.mean[k],
                "scatter": gaps.scatter[k],
            }
            for k, j in enumerate(gaps.data_set.tolist())
        ]
    return record


def _resolutions(stats: GroupStats) -> list[float | None]:
    return [facts.resolution for facts in stats.facts]


def _distinct(stats: GroupStats) -> list[str]:
    return [facts.distinct.name.lower() for facts in stats.facts]
