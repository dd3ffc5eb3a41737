"""Bayesian networks from several related data sets, by partial pooling."""

from poolbn import datasets
from poolbn.errors import (
    DataError,
    FileError,
    GraphError,
    MissingPackageError,
    OptionError,
    PoolbnError,
)
from poolbn.graph import Cpdag, Dag
from poolbn.localfit import LocalFit, Status
from poolbn.pooling import Complete, Partial, Separate, fit_node
from poolbn.scores import BGe, score
from poolbn.suffstats import GroupStats, stats

__version__ = "0.1.0.dev0"

__all__ = [
    "BGe",
    "Complete",
    "Cpdag",
    "Dag",
    "DataError",
    "FileError",
    "GraphError",
    "GroupStats",
    "LocalFit",
    "MissingPackageError",
    "OptionError",
    "Partial",
    "PoolbnError",
    "Separate",
    "Status",
    "datasets",
    "fit_node",
    "score",
    "stats",
]
