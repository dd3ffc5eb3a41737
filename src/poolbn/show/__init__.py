"""Layouts and drawings; matplotlib is imported inside functions."""
