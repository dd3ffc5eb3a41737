"""How a network was made: rows, search, and the paragraph that a methods section can take."""

from __future__ import annotations

import math

from poolbn.assess.residuals import FEWEST
from poolbn.network.network import Network
from poolbn.page.context import Context
from poolbn.search.naming import name_of_search
from poolbn.wording import counted, listed

_SCORES = {
    "bic": " (BIC)",
    "bic-h": " (BIC-h)",
    "bic-w": " (BIC-w)",
    "aic": " (AIC)",
    "loglik": " (log-likelihood)",
    "bge": " (BGe)",
    "gprior": " (log Bayes factor against no arcs)",
}
_SEARCHES = {
    "auto": "an exact search where that is feasible, else a search over orders of the variables",
    "hc": "hill climbing",
    "tabu": "tabu search",
    "orders": "a search over orders of the variables",
    "exact": "an exact search",
    "pc": "the PC algorithm",
    "hybrid": "tests of independence, then hill climbing",
}


def methods(of: Context, version: str) -> str:
    """A paragraph for the methods section of a paper: what was fitted to what, and how."""
    net = of.net
    old = [level not in net.adapted for level in net.levels]
    sets, rows = counted(sum(old), of.sets), f"{int(net.n[old].sum()):,} rows"
    nodes = counted(len(net.dag.nodes), "variable")
    said = [f"A Bayesian network of {nodes} was fitted to {rows} of {sets} with poolbn {version}."]
    models = dict.fromkeys(fit.model for fit in net.fits.values() if not fit.is_given)
    said.append(f"Its nodes are: {listed(list(models))}.")
    fitted = {node: str(fit.pooling) for node, fit in net.fits.items() if not fit.is_given}
    for how in dict.fromkeys(fitted.values()):
        some = [node for node, own in fitted.items() if own == how]
        said.append(f"{'All' if len(some) == len(fitted) else listed(some)} have {how}.")
    if net.inputs:
        said.append(f"Inputs, which have no causes here: {listed(net.inputs)}.")
    score = _SCORES.get(net.score_kind, "").strip(" ()")
    if net.search:
        best = f" by {score}" if score else ""
        said.append(f"The graph was searched for{best}, with {_search(net)} ({net.search}).")
    elif of.graph_test is not None:
        said.append(f"The graph was given and not searched for. {of.graph_test.verdict}")
    lost = 0 if of.dropped is None else sum(of.dropped.values())
    if net.missing is not None and net.missing.any():
        cells = counted(int(net.missing.sum()), "missing value")
        said.append(f"{cells} were allowed for by the EM algorithm.")
    elif lost:
        said.append(f"{counted(lost, 'row')} with missing values were left out.")
    return " ".join(said)


def _search(net: Network) -> str:
    """How a graph was searched for, in words; nothing where it was given."""
    name = name_of_search(net.search)
    return _SEARCHES.get(name, name)


def about_rows(of: Context) -> str:
    """What to know about complete rows that are not those that the network was learned from."""
    net, given = of.net, of.given
    if net.stats is None and net.missing is not None:  # how many complete rows it knew is not kept
        return ""
    rows = {} if given is None else dict(zip(given.levels, given.n.tolist(), strict=True))
    patterns = None if net.stats is None else net.stats.patterns
    learned = net.n if patterns is None else patterns.known.n
    other = [
        f"{level} {_few_rows(rows.get(level, 0), of)} instead of {n:,}"
        for level, n in zip(net.levels, learned.tolist(), strict=False)
        if rows.get(level, 0) != n and (of.open or max(rows.get(level, 0), n) >= FEWEST)
    ]
    told = "The network was learned from other rows than those of this report: "
    return f"{told}{listed(other)}." if other else ""


def about_alone(of: Context) -> str:
    """What estimates of data sets alone come from: complete rows, where cells were missing."""
    whole, every = of.stats, int(of.net.n.sum())
    if of.net.stats is not None or whole is None or whole.n_rows >= every:
        return "no pooling: its own rows alone"
    return f"no pooling: its own complete rows alone, in all {whole.n_rows:,} of {every:,} rows"


def _few_rows(n: int, of: Context) -> str:
    return f"{n:,}" if n >= FEWEST or of.open else f"fewer than {FEWEST}"


def about_search(of: Context) -> list[tuple[str, str]]:
    """How a network was made, as far as it tells."""
    net, boot, found = of.net, of.boot, of.found
    score = f"{net.score:,.4f}".replace("-", "−") + _SCORES.get(net.score_kind, "")
    fits = counted(sum(move.fits for move in net.trace), "local fit")
    moves = f"{counted(len(net.trace), 'move')}, {fits}"
    lines = [
        ("Group column", net.group),
        ("Score", score if math.isfinite(net.score) else "–"),
        ("Search", (f"{_search(net)}: {moves}" if net.trace else _search(net)) or "none"),
    ]
    if net.split is not None:
        rows = counted(net.split.rows, "other row")
        lines.append(("Honest estimates", f"graph from {rows}, split with seed {net.split.seed}"))
    if boot is not None:
        replicates = counted(boot.replicates, "replicate")
        lines.append(("Bootstrap", f"{replicates}, resampling {boot.unit}s"))
    if found is not None:
        folds = counted(len(found.rows), "fold")
        lines.append(("Comparison", f"{', '.join(found.poolings)}; {folds}"))
    return lines
