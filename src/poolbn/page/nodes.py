"""What a report says and shows of each node, by its kind."""

from __future__ import annotations

from typing import Any

from poolbn.page.context import Context
from poolbn.page.discrete import other_numbers
from poolbn.page.gaussian import gaussian_numbers
from poolbn.page.words import about_pooling, is_warning


def node_numbers(of: Context) -> list[dict[str, Any]]:
    """What is said and drawn of each node."""
    arcs = of.net.dag.arcs
    return [
        {
            "name": node,
            "kind": of.net.fits[node].kind,
            "pooling": f"Pooling: {fit.pooling}. {about_pooling(fit, of.sets)}",
            "status": f"Fit: {fit.status}: {fit.detail}.",
            "warning": is_warning(fit),
            "arcs": [k for k, arc in enumerate(arcs) if node in arc],
            **_own(of, node),
        }
        for node, fit in ((node, of.net.fits[node]) for node in of.net.dag.nodes)
    ]


def _own(of: Context, node: str) -> dict[str, Any]:
    """What is particular to a kind of node."""
    fit = of.net.fits[node]
    linear = fit.gaussian
    return other_numbers(of, fit) if linear is None else gaussian_numbers(of, linear)
