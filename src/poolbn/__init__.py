"""Bayesian networks from several related data sets, by partial pooling."""

from importlib import import_module
from typing import TYPE_CHECKING

from poolbn.constants import VERSION

if TYPE_CHECKING:
    from poolbn import datasets, metrics, plots
    from poolbn.assess.adjustment import AdjustmentReport
    from poolbn.assess.comparison import Comparison, compare
    from poolbn.assess.graphtest import GraphTest
    from poolbn.assess.proportional import ProportionalOdds, proportional_odds
    from poolbn.assess.resample import Bootstrap, BootstrapInterrupted, bootstrap
    from poolbn.assess.sensitivity import EValue, e_value, robustness_value
    from poolbn.assess.treatment import treatment_effects
    from poolbn.errors import (
        ArgumentError,
        ClusterError,
        DataError,
        FileError,
        FileWarning,
        GraphError,
        GraphWarning,
        MissingPackageError,
        OptionError,
        PoolbnError,
    )
    from poolbn.findings import DataWarning, Finding, FindingKind
    from poolbn.fitting import fit
    from poolbn.graph.constraints import Constraints
    from poolbn.graph.dag import Cpdag, Dag
    from poolbn.imputing import impute
    from poolbn.inference.events import Probability
    from poolbn.inference.posterior import Posterior
    from poolbn.learning import SearchInterrupted, learn
    from poolbn.moments.cellstats import CellStats
    from poolbn.moments.checks import check
    from poolbn.moments.groupstats import GroupStats
    from poolbn.moments.halves import Split
    from poolbn.moments.looking import Look, look
    from poolbn.moments.patternstats import PatternStats
    from poolbn.moments.reading import stats
    from poolbn.moments.table import Table, table
    from poolbn.network.network import Network, load
    from poolbn.nodes.auto import Auto
    from poolbn.nodes.choosing import fit_node
    from poolbn.nodes.localfit import LocalFit, Status
    from poolbn.nodes.poolings import Complete, NoPooling, Partial
    from poolbn.page.reporting import report
    from poolbn.posteriors.averaging import AveragedNetwork, GraphSample
    from poolbn.posteriors.chains import OrderMCMC, PartitionMCMC
    from poolbn.posteriors.posterior import ArcPosterior, PosteriorInterrupted, arc_posterior
    from poolbn.run.cluster import on_cluster
    from poolbn.scoring.bde import BDeu
    from poolbn.scoring.bge import BGe
    from poolbn.scoring.independence import IndependenceTest, ci_test
    from poolbn.scoring.local import score
    from poolbn.search.auto import AutoSearch
    from poolbn.search.climbing import HillClimb, Tabu
    from poolbn.search.exact import Exact
    from poolbn.search.hybrid import MMPC, Hybrid
    from poolbn.search.orders import OrderSearch
    from poolbn.search.pattern import Pattern
    from poolbn.search.pc import PC
    from poolbn.simulate import random_dag, random_network, random_table, unbalanced_rows
    from poolbn.tables.kinds import Kind, register_kind

# All is loaded with its first use: a second of start-up counts, and Ctrl-C in it finds nothing that
# runs yet.
_MODULES = ("datasets", "metrics", "plots", "sklearn")
_LATER = {
    "AdjustmentReport": "assess.adjustment",
    "ArcPosterior": "posteriors.posterior",
    "AveragedNetwork": "posteriors.averaging",
    "ArgumentError": "errors",
    "Auto": "nodes.auto",
    "AutoSearch": "search.auto",
    "BDeu": "scoring.bde",
    "BGe": "scoring.bge",
    "Bootstrap": "assess.resample",
    "BootstrapInterrupted": "assess.resample",
    "CellStats": "moments.cellstats",
    "ClusterError": "errors",
    "Comparison": "assess.comparison",
    "Complete": "nodes.poolings",
    "Constraints": "graph.constraints",
    "Cpdag": "graph.dag",
    "Dag": "graph.dag",
    "DataError": "errors",
    "DataWarning": "findings",
    "EValue": "assess.sensitivity",
    "Exact": "search.exact",
    "FileError": "errors",
    "FileWarning": "errors",
    "Finding": "findings",
    "FindingKind": "findings",
    "GraphError": "errors",
    "GraphTest": "assess.graphtest",
    "GraphWarning": "errors",
    "GraphSample": "posteriors.averaging",
    "GroupStats": "moments.groupstats",
    "HillClimb": "search.climbing",
    "Hybrid": "search.hybrid",
    "OrderSearch": "search.orders",
    "IndependenceTest": "scoring.independence",
    "Kind": "tables.kinds",
    "LocalFit": "nodes.localfit",
    "Look": "moments.looking",
    "MMPC": "search.hybrid",
    "MissingPackageError": "errors",
    "Network": "network.network",
    "NoPooling": "nodes.poolings",
    "OptionError": "errors",
    "PC": "search.pc",
    "Pattern": "search.pattern",
    "OrderMCMC": "posteriors.chains",
    "PatternStats": "moments.patternstats",
    "Partial": "nodes.poolings",
    "PartitionMCMC": "posteriors.chains",
    "PoolbnError": "errors",
    "Posterior": "inference.posterior",
    "PosteriorInterrupted": "posteriors.posterior",
    "ProportionalOdds": "assess.proportional",
    "proportional_odds": "assess.proportional",
    "Probability": "inference.events",
    "SearchInterrupted": "learning",
    "Split": "moments.halves",
    "Status": "nodes.localfit",
    "Table": "moments.table",
    "Tabu": "search.climbing",
    "arc_posterior": "posteriors.posterior",
    "bootstrap": "assess.resample",
    "check": "moments.checks",
    "ci_test": "scoring.independence",
    "compare": "assess.comparison",
    "e_value": "assess.sensitivity",
    "fit": "fitting",
    "fit_node": "nodes.choosing",
    "impute": "imputing",
    "learn": "learning",
    "load": "network.network",
    "look": "moments.looking",
    "on_cluster": "run.cluster",
    "register_kind": "tables.kinds",
    "random_dag": "simulate",
    "random_network": "simulate",
    "random_table": "simulate",
    "report": "page.reporting",
    "robustness_value": "assess.sensitivity",
    "score": "scoring.local",
    "stats": "moments.reading",
    "table": "moments.table",
    "treatment_effects": "assess.treatment",
    "unbalanced_rows": "simulate",
}

__version__ = VERSION

__all__ = [
    "MMPC",
    "PC",
    "AdjustmentReport",
    "ArcPosterior",
    "ArgumentError",
    "Auto",
    "AutoSearch",
    "AveragedNetwork",
    "BDeu",
    "BGe",
    "Bootstrap",
    "BootstrapInterrupted",
    "CellStats",
    "ClusterError",
    "Comparison",
    "Complete",
    "Constraints",
    "Cpdag",
    "Dag",
    "DataError",
    "DataWarning",
    "EValue",
    "Exact",
    "FileError",
    "FileWarning",
    "Finding",
    "FindingKind",
    "GraphError",
    "GraphSample",
    "GraphTest",
    "GraphWarning",
    "GroupStats",
    "HillClimb",
    "Hybrid",
    "IndependenceTest",
    "Kind",
    "LocalFit",
    "Look",
    "MissingPackageError",
    "Network",
    "NoPooling",
    "OptionError",
    "OrderMCMC",
    "OrderSearch",
    "Partial",
    "PartitionMCMC",
    "Pattern",
    "PatternStats",
    "PoolbnError",
    "Posterior",
    "PosteriorInterrupted",
    "Probability",
    "ProportionalOdds",
    "SearchInterrupted",
    "Split",
    "Status",
    "Table",
    "Tabu",
    "arc_posterior",
    "bootstrap",
    "check",
    "ci_test",
    "compare",
    "datasets",
    "e_value",
    "fit",
    "fit_node",
    "impute",
    "learn",
    "load",
    "look",
    "metrics",
    "on_cluster",
    "plots",
    "proportional_odds",
    "random_dag",
    "random_network",
    "random_table",
    "register_kind",
    "report",
    "robustness_value",
    "score",
    "stats",
    "table",
    "treatment_effects",
    "unbalanced_rows",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"poolbn.{name}")
    if name not in _LATER:
        raise AttributeError(f"module 'poolbn' has no attribute {name!r}")
    found = getattr(import_module(f"poolbn.{_LATER[name]}"), name)
    globals()[name] = found  # the next time it is there
    return found


def __dir__() -> list[str]:
    return [*__all__, "sklearn", "__version__"]  # what a user calls: Tab shows nothing else
