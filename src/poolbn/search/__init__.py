"""Scores and searches over graphs."""
