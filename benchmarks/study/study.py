"""The paper's simulation study: which data sets, which models, what is measured."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn import metrics
from poolbn.errors import OptionError, nearest
from poolbn.graph.constraints import Constraints
from poolbn.inference.linear import leave_out
from poolbn.learning import learn
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.reading import stats_of_numbers
from poolbn.network.network import Network
from poolbn.nodes.auto import Auto
from poolbn.nodes.choosing import fit_node
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.poolings import Complete, Method, NoPooling, Partial
from poolbn.simulate import random_dag, random_network, random_table, unbalanced_rows

if TYPE_CHECKING:
    import pandas as pd

NEW_ROWS = 1000  # to predict
SCENARIOS = ("balanced", "unbalanced", "homogeneous")
WORDED, EQUAL, ORIGINAL = "-worded", "-equal", "-original"
_CHECKED_ROWS = 100  # of them that likelihood weighting predicts too, where it does


class Chunk(NamedTuple):
    """One true network and the data sets drawn from it: what is run and written at once.

    Attributes:
        scenario: "balanced", "unbalanced" or "homogeneous". For side runs there are these with
            "-worded" behind them, whose coefficients are drawn as the paper's text has it, not as
            the authors' code does, with "-equal", whose residual variances do not differ between
            data sets, and "homogeneous-original", where the same homogeneous data sets are measured
            against the heterogeneous network that they were made from.
        N: nodes.
        mean_parents: the paper's average number of parents.
        F: related data sets.
        network: which of the networks of that kind.
    """

    scenario: str
    N: int
    mean_parents: int
    F: int
    network: int


@dataclass(frozen=True)
class Preset:
    """A grid of data sets.

    Attributes:
        N, mean_parents, F, rows: the values of each axis; rows are n_j.
        F_unbalanced: as F, for the unbalanced scenario.
        networks: true networks for each combination.
        replicates: data sets from each network for each n_j.
        scenarios: of a chunk.
    """

    N: tuple[int, ...]
    mean_parents: tuple[int, ...]
    F: tuple[int, ...]
    F_unbalanced: tuple[int, ...]
    rows: tuple[int, ...]
    networks: int
    replicates: int
    scenarios: tuple[str, ...] = SCENARIOS

    def chunks(self) -> Iterator[Chunk]:
        """All of them, in order."""
        for scenario in self.scenarios:
            data_sets = self.F_unbalanced if scenario.startswith("unbalanced") else self.F
            kinds = product(self.N, self.mean_parents, data_sets, range(self.networks))
            yield from (Chunk(scenario, *kind) for kind in kinds)


PAPER = Preset(
    N=(10, 20, 50),
    mean_parents=(1, 2, 4),
    F=(2, 5, 10, 20, 50),
    F_unbalanced=(5, 10, 20),
    rows=(10, 20, 50, 100),
    networks=5,
    replicates=5,
)
PRESETS = {
    "paper": PAPER,
    "small": Preset((10, 20), (1, 2, 4), (2, 5, 20), (5, 20), (10, 50), networks=2, replicates=2),
    "smoke": Preset((10, 20), (1, 4), (2, 20), (20,), (10, 100), networks=1, replicates=1),
    # For what explains a difference from the paper: other models, other truths.
    "side": Preset(
        N=(10, 20),
        mean_parents=(1, 2, 4),
        F=(2, 5, 20),
        F_unbalanced=(5, 20),
        rows=(10, 20, 50, 100),
        networks=3,
        replicates=1,
        scenarios=(
            *SCENARIOS,
            *(scenario + WORDED for scenario in SCENARIOS),
            "homogeneous" + ORIGINAL,
        ),
    ),
    "original": replace(PAPER, scenarios=("homogeneous" + ORIGINAL,)),
    "equal": replace(
        PAPER, networks=3, replicates=1, scenarios=("balanced" + EQUAL, "unbalanced" + EQUAL)
    ),
}


def _published(
    data: GroupStats, *, method: Method = "reml", own: bool = True, scaled: bool = False
) -> Network:
    """REML scores; coefficients of each data set with its own SD of the conditional residuals.

    lme4 refuses a model with as many random effects as there are rows. REML scores depend on the
    units of the columns; `scaled` looks for the graph in units of their SDs.
    """
    most = math.ceil(data.n_rows / len(data.levels)) - 2
    pooling = Partial(method=method)
    searched = _in_sds(data) if scaled else data
    net = learn(
        searched, pooling=pooling, constraints=Constraints(max_parents=most), preset="paper"
    )
    fits = net.linear_fits
    if scaled:
        fits = {
            node: fit_node(data, node, fit.parents, pooling=pooling) for node, fit in fits.items()
        }
    if own:
        fits = {node: _own_residuals(data, fit) for node, fit in fits.items()}
    return replace(net, fits=fits)


def _in_sds(data: GroupStats) -> GroupStats:
    """The statistics with each column in units of its SD inside data sets."""
    squares = np.einsum("jii->i", data.scatter)
    sd = np.sqrt(squares / data.n_rows)
    unit = np.where(sd > 0, sd, 1.0)
    mean, scatter = data.mean / unit, data.scatter / np.outer(unit, unit)
    return replace(data, mean=mean, scatter=scatter, facts=(), cubes=np.zeros(0))


def _own_residuals(data: GroupStats, fit: GaussianFit) -> GaussianFit:
    """One residual variance for each data set, denominator n_j - 1, around the residuals' mean."""
    family = data.family(fit.child, fit.parents)
    weights = np.concatenate([-fit.coef[:, 1:], np.ones((len(fit.levels), 1))], axis=1)
    squares = np.einsum("ja,jab,jb->j", weights, family.scatter, weights)
    return replace(fit, sigma2=squares / np.maximum(family.n - 1, 1))


# The first three are the paper's; those after them stand in for one of them, with one thing or two
# changed.
MODELS: dict[str, Callable[[GroupStats], Network]] = {
    "GBN": lambda data: learn(data, pooling=Complete("unbiased"), preset="paper"),
    "CGBN": lambda data: learn(data, pooling=NoPooling("unbiased"), preset="paper"),
    "LME": _published,
    "CGBN-ML": lambda data: learn(data, pooling=NoPooling(), preset="paper"),
    "LME-REML": lambda data: _published(data, own=False),
    "LME-scaled": lambda data: _published(data, scaled=True),
    "LME-ML-own": lambda data: _published(data, method="ml"),
    "LME-ML": lambda data: learn(data, pooling=Partial(), preset="paper"),
    "LME-pooled": lambda data: learn(data, pooling=Partial(residuals="pooled"), preset="paper"),
    "LME-separate": lambda data: learn(data, pooling=Partial(residuals="separate"), preset="paper"),
    "LME-gprior": lambda data: learn(
        data, pooling=Partial(residuals="pooled"), score="gprior", search="hc"
    ),
    "Auto": lambda data: learn(data, pooling=Auto(), score="bic-h", search="hc"),
    "Default": learn,
}
PUBLISHED = ("GBN", "CGBN", "LME")
# Which of the paper's a model stands in for, and what is different.
VARIANTS = {
    "CGBN-ML": ("CGBN", "variances by maximum likelihood, not unbiased ones"),
    "LME-REML": ("LME", "one residual SD for all data sets, not one for each"),
    "LME-scaled": ("LME", "scores of columns in units of their SDs, on which REML depends"),
    "LME-ML-own": ("LME", "scores by maximum likelihood, not REML"),
    "LME-ML": ("LME", "maximum likelihood and one residual SD"),
    "LME-pooled": ("LME", "residual variances pooled too, by maximum likelihood"),
    "LME-separate": ("LME", "a residual variance for each data set, by maximum likelihood"),
    "LME-gprior": ("LME", "residual variances pooled too; graphs by Bayes factors, no pooling"),
    "Auto": ("LME", "complete pooling, or residual variances pooled too; the score bic-h"),
    "Default": ("LME", "as Auto, with the score bic-w and the search auto"),
}


class Measures(NamedTuple):
    """What is known of one learned network.

    Attributes:
        scenario, N, mean_parents, F, network, rows, replicate, model: which one; rows are n_j.
        n_over_p: rows of all data sets over the parameters of the true network.
        shd: structural Hamming distance between CPDAGs.
        missing, extra, reversed: arcs of the true graph that are not there, arcs too many, and arcs
            the wrong way round.
        kl, kl_sum: Kullback-Leibler divergence, weighted by P(F) and summed over data sets.
        rmad_known, rmad_unknown: relative mean absolute deviation of predictions of each node from
            the others, with and without the data set.
        median_rmad_known, median_rmad_unknown: the same with medians over rows.
        rmad_exact, rmad_weighting: of the first rows, in a sample of cells, by exact inference and
            by likelihood weighting, the data set known; else NaN.
        f1, f1_predicted: mean F1 of the data sets, with 0 for those never predicted and without
            them.
        fits: local scores computed.
    """

    scenario: str
    N: int
    mean_parents: int
    F: int
    network: int
    rows: int
    replicate: int
    model: str
    n_over_p: float
    shd: int
    missing: int
    extra: int
    reversed: int
    kl: float
    kl_sum: float
    rmad_known: float
    rmad_unknown: float
    median_rmad_known: float
    median_rmad_unknown: float
    rmad_exact: float
    rmad_weighting: float
    f1: float
    f1_predicted: float
    fits: int


def seed_of(*parts: object) -> int:
    """A seed that depends on the parts alone, so that any cell can be run by itself."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def truth(chunk: Chunk) -> Network:
    """The true network. Balanced and unbalanced data sets come from the same ones."""
    kind = chunk[1:]
    dag = random_dag(chunk.N, chunk.mean_parents, seed=seed_of("dag", *kind))
    net = random_network(
        dag,
        chunk.F,
        seed=seed_of("network", *kind),
        heterogeneous=not chunk.scenario.startswith("homogeneous"),
        equal_residuals=chunk.scenario.endswith(EQUAL),
        wording="paper" if chunk.scenario.endswith(WORDED) else "code",
    )
    if chunk.scenario.startswith("unbalanced"):
        shares = unbalanced_rows(1000 * chunk.F, chunk.F)
        net = replace(net, n=np.array(shares, dtype=np.int64))
    return net


def table_of(chunk: Chunk, true: Network, rows: int, replicate: int) -> GroupStats:
    """The statistics of one simulated data set."""
    counts = [rows] * chunk.F
    if chunk.scenario.startswith("unbalanced"):
        counts = unbalanced_rows(rows * chunk.F, chunk.F)
    seed = seed_of("table", *chunk, rows, replicate)
    return stats_of_numbers(random_table(true, counts, seed=seed), group=true.group)


def run_chunk(chunk: Chunk, preset: Preset, models: tuple[str, ...]) -> list[Measures]:
    """Learn and measure all networks of a chunk: the same bits wherever and however often."""
    source = chunk._replace(scenario=chunk.scenario.removesuffix(ORIGINAL))
    drawn_from = truth(source)
    true = drawn_from if source == chunk else truth(chunk._replace(scenario="balanced"))
    new = true.sample(NEW_ROWS, seed=seed_of("new", *chunk))
    values = new[list(true.dag.nodes)].to_numpy()
    codes = np.array([true.levels.index(level) for level in new[true.group]])
    parameters = sum(fit.n_params for fit in true.fits.values())
    found = []
    for rows, replicate in product(preset.rows, range(preset.replicates)):
        data = table_of(source, drawn_from, rows, replicate)
        for model in models:
            net = MODELS[model](data)
            found.append(
                Measures(
                    **chunk._asdict(),
                    rows=rows,
                    replicate=replicate,
                    model=model,
                    n_over_p=data.n_rows / parameters,
                    fits=sum(move.fits for move in net.trace),
                    **_distances(true, net),
                    **_predictions(net, values, codes),
                    **_weighting(net, new, chunk, replicate),
                )
            )
    return found


def _distances(true: Network, net: Network) -> dict[str, Any]:
    arcs = metrics.compare_arcs(true.dag, net.dag)
    return {
        "shd": metrics.shd(true.dag, net.dag),
        "missing": arcs.missing,
        "extra": arcs.extra,
        "reversed": arcs.reversed,
        "kl": metrics.kl(true, net),
        "kl_sum": metrics.kl(true, net, weights="sum"),
    }


def _predictions(
    net: Network, values: NDArray[np.float64], codes: NDArray[np.int64]
) -> dict[str, Any]:
    if any((fit.sigma2 <= 0).any() for fit in net.linear_fits.values()):
        names = ("rmad_known", "rmad_unknown", "median_rmad_known", "median_rmad_unknown")
        return dict.fromkeys((*names, "f1", "f1_predicted"), math.nan)
    predicted = leave_out(net.linear, net.joint.prior, values, codes)
    f1 = metrics.f1(codes.tolist(), predicted.data_set.tolist(), range(len(net.levels)))
    return {
        "rmad_known": metrics.rmad(values, predicted.known),
        "rmad_unknown": metrics.rmad(values, predicted.unknown),
        "median_rmad_known": metrics.median_rmad(values, predicted.known),
        "median_rmad_unknown": metrics.median_rmad(values, predicted.unknown),
        "f1": f1.mean,
        "f1_predicted": f1.mean_of_predicted,
    }


def _weighting(net: Network, new: pd.DataFrame, chunk: Chunk, replicate: int) -> dict[str, Any]:
    """Likelihood weighting beside exact inference, for the first network and table at N = 10."""
    errors = {"rmad_exact": math.nan, "rmad_weighting": math.nan}
    if chunk.N == 10 and chunk.network == replicate == 0:
        nodes = list(net.dag.nodes)
        rows = new.iloc[:_CHECKED_ROWS]
        methods: tuple[Literal["exact", "lw"], ...] = ("exact", "lw")
        for name, method in zip(errors, methods, strict=True):
            predicted = [
                net.predict(rows, node, method=method, plugin=True)["mean"] for node in nodes
            ]
            errors[name] = metrics.rmad(rows[nodes].to_numpy(), np.column_stack(predicted))
    return errors


def check_models(models: tuple[str, ...]) -> None:
    """Raise unless there are models, and all are known.

    Raises:
        OptionError: a name is unknown, or there is none.
    """
    for model in models:
        if model not in MODELS:
            raise OptionError(f"no model {model!r}{nearest(model, MODELS)}")
    if not models:
        raise OptionError(f"no models are chosen; there are {', '.join(MODELS)}")
