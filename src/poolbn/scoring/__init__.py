"""Scores of nodes and networks, on one scale."""
