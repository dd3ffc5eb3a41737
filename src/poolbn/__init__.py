"""Bayesian networks from several related data sets, by partial pooling."""

from poolbn import datasets, metrics, plots
from poolbn.assessing.comparing import compare
from poolbn.assessing.comparison import Comparison
from poolbn.assessing.resample import Bootstrap, BootstrapInterrupted, bootstrap
from poolbn.cluster import on_cluster
from poolbn.errors import (
    ClusterError,
    DataError,
    FileError,
    GraphError,
    MissingPackageError,
    OptionError,
    PoolbnError,
)
from poolbn.graphs.constraints import Constraints
from poolbn.graphs.graph import Cpdag, Dag
from poolbn.inference.events import Probability
from poolbn.inference.mixtures import Posterior
from poolbn.learning import SearchInterrupted, learn
from poolbn.models.choosing import Auto, fit_node
from poolbn.models.localfit import LocalFit, Status
from poolbn.models.pooling import Complete, Partial, Separate
from poolbn.networks.network import Network, load
from poolbn.pages.reporting import report
from poolbn.searching.exact import Exact
from poolbn.searching.scores import BGe, score
from poolbn.searching.search import HillClimb, Tabu
from poolbn.simulate import random_dag, random_network, random_table, unbalanced_rows
from poolbn.statistics.suffstats import GroupStats, stats

__version__ = "0.1.0.dev0"

__all__ = [
    "Auto",
    "BGe",
    "Bootstrap",
    "BootstrapInterrupted",
    "ClusterError",
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
    "on_cluster",
    "plots",
    "random_dag",
    "random_network",
    "random_table",
    "report",
    "score",
    "stats",
    "unbalanced_rows",
]
