"""Bayesian networks from several related data sets, by partial pooling."""

from poolbn import datasets, metrics, plots
from poolbn.assess.comparing import compare
from poolbn.assess.comparison import Comparison
from poolbn.assess.resample import Bootstrap, BootstrapInterrupted, bootstrap
from poolbn.errors import (
    ClusterError,
    DataError,
    FileError,
    GraphError,
    MissingPackageError,
    OptionError,
    PoolbnError,
)
from poolbn.graph.constraints import Constraints
from poolbn.graph.dag import Cpdag, Dag
from poolbn.inference.events import Probability
from poolbn.inference.mixtures import Posterior
from poolbn.learning import SearchInterrupted, learn
from poolbn.moments.groupstats import GroupStats, stats
from poolbn.network.network import Network, load
from poolbn.nodes.choosing import Auto, fit_node
from poolbn.nodes.localfit import LocalFit, Status
from poolbn.nodes.pooling import Complete, Partial, Separate
from poolbn.page.reporting import report
from poolbn.run.cluster import on_cluster
from poolbn.scoring.scores import BGe, score
from poolbn.search.climbing import HillClimb, Tabu
from poolbn.search.exact import Exact
from poolbn.simulate import random_dag, random_network, random_table, unbalanced_rows

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
