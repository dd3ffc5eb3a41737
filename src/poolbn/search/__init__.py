"""Learners: ways to find a graph."""
