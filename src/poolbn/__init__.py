"""Bayesian networks from several related data sets, by partial pooling."""

from poolbn import datasets, metrics, plots
from poolbn.choosing import Auto, fit_node
from poolbn.comparing import compare
from poolbn.comparison import Comparison
from poolbn.constraints import Constraints
from poolbn.errors import (
    DataError,
    FileError,
    GraphError,
    MissingPackageError,
    OptionError,
    PoolbnError,
)
from poolbn.events import Probability
from poolbn.exact import Exact
from poolbn.graph import Cpdag, Dag
from poolbn.learning import SearchInterrupted, learn
from poolbn.localfit import LocalFit, Status
from poolbn.mixtures import Posterior
from poolbn.network import Network, load
from poolbn.pooling import Complete, Partial, Separate
from poolbn.reporting import report
from poolbn.resample import Bootstrap, BootstrapInterrupted, bootstrap
from poolbn.scores import BGe, score
from poolbn.search import HillClimb, Tabu
from poolbn.simulate import random_dag, random_network, random_table, unbalanced_rows
from poolbn.suffstats import GroupStats, stats

__version__ = "0.1.0.dev0"

__all__ = [
    "Auto",
    "BGe",
    "Bootstrap",
    "BootstrapInterrupted",
    "Comparison",
    "Complete",
    "Constraints",
    "Cpdag",
    "Dag",
    "DataError",
    "Exact",
    "FileError",
    "GraphError",
    "GroupStats",
    "HillClimb",
    "LocalFit",
    "MissingPackageError",
    "Network",
    "OptionError",
    "Partial",
    "PoolbnError",
    "Posterior",
    "Probability",
    "SearchInterrupted",
    "Separate",
    "Status",
    "Tabu",
    "bootstrap",
    "compare",
    "datasets",
    "fit_node",
    "learn",
    "load",
    "metrics",
    "plots",
    "random_dag",
    "random_network",
    "random_table",
    "report",
    "score",
    "stats",
    "unbalanced_rows",
]
