"""Bayesian networks from several related data sets, by partial pooling."""

__version__ = "0.1.0.dev0"
