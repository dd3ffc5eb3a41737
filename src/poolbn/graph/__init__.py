"""Graphs: `Dag`, `Cpdag`, their formats, constraints on them."""
