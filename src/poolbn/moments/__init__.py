"""Batches of rows become statistics that add up; after this no rows exist."""
