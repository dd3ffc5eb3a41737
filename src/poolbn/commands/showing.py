"""Results as commands show them: tables for people, records for programs."""

from __future__ import annotations

from typing import Any

from poolbn.assessing.comparison import Comparison
from poolbn.assessing.resample import Bootstrap
from poolbn.commands.terminal import Terminal, number
from poolbn.networks.network import Network
from poolbn.statistics.suffstats import GroupStats

_EITHER = 0.5  # the direction of an arc that goes as often one way as the other
_WEAKER = 5  # arcs that are shown below those that count


def show_network(terminal: Terminal, net: Network) -> None:
    """Print the arcs with their effects, in the population and at the extremes."""
    terminal.text(str(net).split("\n  ")[0])
    effects = net.effects()
    levels = list(effects.columns)[-len(net.levels) :]
    rows = []
    for row in effects.to_dict("records"):
        each = {level: row[level] for level in levels}
        low, high = min(each, key=each.__getitem__), max(each, key=each.__getitem__)
        rows.append(
            [
                f"{row['parent']} -> {row['child']}",
                number(row["effect"], 3),
                f"{number(row['lower'], 3)} to {number(row['upper'], 3)}",
                number(row["between_sd"], 3),
                f"{number(each[low], 3)} ({low})",
                f"{number(each[high], 3)} ({high})",
            ]
        )
    if rows:
        headers = ["arc", "effect", "95% interval", "SD between", "lowest", "highest"]
        terminal.table(headers, rows, needless=2)
        terminal.text(
            "The effect is the change of the second for one unit of the first, in the population "
            "of data sets; SD between is how much it differs between them."
        )
    else:
        terminal.text("No column depends on another.")
    for node, fit in net.fits.items():
        if not fit.status.ok:
            terminal.text(f"{node}: {fit.status}")


def network_record(net: Network, data: GroupStats | None) -> dict[str, Any]:
    """The same for programs; with the rows left out if the statistics are there."""
    dropped = [0] * len(net.levels) if data is None else data.dropped.tolist()
    sets = zip(net.levels, net.n.tolist(), dropped, strict=True)
    return {
        "nodes": net.dag.nodes,
        "group": net.group,
        "data_sets": [{"name": name, "rows": n, "dropped": d} for name, n, d in sets],
        "score": net.score,
        "poolings": {node: fit.pooling for node, fit in net.fits.items()},
        "status": {node: fit.status.name for node, fit in net.fits.items()},
        "arcs": net.effects(),
    }


def show_scores(terminal: Terminal, networks: dict[str, Network], *, hint: bool) -> None:
    """Print how networks learned with several poolings score, and a hint at what else can be."""
    best = max(networks, key=lambda name: networks[name].score)
    top = networks[best].score
    rows = [
        [name, f"{net.score:.2f}", f"{top - net.score:.2f}", str(len(net.dag.arcs))]
        for name, net in networks.items()
    ]
    terminal.text("Networks learned with each pooling:")
    terminal.table(["pooling", "score", "behind", "arcs"], rows)
    more = "; --compare also predicts rows that are held out" if hint else ""
    terminal.text(f"The best score has {best!r}{more}.")


def show_comparison(terminal: Terminal, found: Comparison) -> None:
    """Print how well poolings predict."""
    table = found.table()
    headers = {
        "score": "score",
        "arcs": "arcs",
        "loglik": "loglik",
        "behind": "behind",
        "se": "SE",
        "new_data_set": "new set",
        "known": "error",
        "unknown": "set unknown",
        "f1": "F1",
    }
    rows = [
        [str(name), *(number(row[column]) for column in headers)] for name, row in table.iterrows()
    ]
    held = f"{found.rows.sum():,} rows in {len(found.rows)} folds"
    terminal.text(f"Poolings, by predicting {held} that they were not learned from:")
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
    terminal.text(
        f"{boot.replicates} networks learned from resampled "
        f"{'rows' if boot.unit == 'row' else 'data sets'}:"
    )
    rows = []
    for a, b, strength, direction in boot.table().itertuples(index=False, name=None):
        first = boot.nodes.index(a) < boot.nodes.index(b)
        if strength > 0 and (direction > _EITHER or (direction == _EITHER and first)):
            sign = "--" if direction == _EITHER else "->"
            mark = "yes" if frozenset((a, b)) in kept else ""
            rows.append([f"{a} {sign} {b}", f"{strength:.2f}", f"{direction:.2f}", mark])
    shown = len(kept) + _WEAKER
    terminal.table(["arc", "strength", "direction", "averaged"], rows[:shown])
    more = f"; {len(rows) - shown} weaker ones are not shown" if len(rows) > shown else ""
    terminal.text(
        f"Those with a strength above {limit:.3g} make the averaged network, "
        f"{len(kept)} arcs{more}."
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


def show_stats(terminal: Terminal, stats: GroupStats) -> None:
    """Print all that statistics hold."""
    terminal.text(
        f"{stats.n_rows:,} rows, {len(stats.levels)} data sets (column {stats.group!r}), "
        f"{len(stats.names)} columns. Below are, for each data set, the means and the centred sums "
        "of squares and products."
    )
    for j, level in enumerate(stats.levels):
        left = f", {stats.dropped[j]:,} left out" if stats.dropped[j] else ""
        terminal.text(f"\n{level}: {stats.n[j]:,} rows{left}")
        rows = [
            [
                name,
                number(float(stats.mean[j, i]), 6),
                *(
                    number(float(value), 6) if k <= i else ""
                    for k, value in enumerate(stats.scatter[j, i])
                ),
            ]
            for i, name in enumerate(stats.names)
        ]
        terminal.table(["column", "mean", *stats.names], rows)


def stats_record(stats: GroupStats) -> dict[str, Any]:
    """The same for programs, with all digits."""
    return {
        "group": stats.group,
        "columns": stats.names,
        "data_sets": [
            {
                "name": level,
                "rows": int(stats.n[j]),
                "dropped": int(stats.dropped[j]),
                "mean": stats.mean[j],
                "scatter": stats.scatter[j],
            }
            for j, level in enumerate(stats.levels)
        ],
    }
