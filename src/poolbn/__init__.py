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
from poolbn.moments.checks import check
from poolbn.moments.findings import DataWarning, Finding, FindingKind
from poolbn.moments.groupstats import GroupStats, stats
from poolbn.network.network import Network, load
from poolbn.nodes.auto import Auto
from poolbn.nodes.choosing import fit_node
from poolbn.nodes.localfit import LocalFit, Status
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.page.reporting import report
from poolbn.run.cluster import on_cluster
from poolbn.scoring.bge import BGe
from poolbn.scoring.local import score
from poolbn.search.climbing import HillClimb, Tabu
from poolbn.search.exact import Exact
from poolbn.simulate import random_dag, random_network, random_table, unbalanced_rows

__version__ = "0.2.0.dev0"

Separate = NoPooling  # its name in 0.1; it goes with 0.3

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
    "DataWarning",
    "Exact",
    "FileError",
    "Finding",
    "FindingKind",
    "GraphError",
    "GroupStats",
    "HillClimb",
    "LocalFit",
    "MissingPackageError",
    "Network",
    "NoPooling",
    "OptionError",
    "Partial",
    "PoolbnError",
    "Posterior",
    "Probability",
    "SearchInterrupted",
    "Status",
    "Tabu",
    "bootstrap",
    "check",
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
