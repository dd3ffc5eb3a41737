"""The paragraph of a report that a methods section can take."""

from __future__ import annotations

from poolbn.page.context import Context
from poolbn.page.summary import SCORES
from poolbn.wording import counted, listed


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
    score = SCORES.get(net.score_kind, "").strip(" ()")
    if net.search:
        best = f", by {score}" if score else ""
        said.append(f"The graph was searched for{best} ({net.search}).")
    elif of.graph_test is not None:
        said.append(f"The graph was given and not searched for. {of.graph_test.verdict}")
    lost = 0 if of.dropped is None else sum(of.dropped.values())
    if net.missing is not None and net.missing.any():
        cells = counted(int(net.missing.sum()), "missing value")
        said.append(f"{cells} were allowed for by the EM algorithm.")
    elif lost:
        said.append(f"{counted(lost, 'row')} with missing values were left out.")
    return " ".join(said)
