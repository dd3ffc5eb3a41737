"""Wrong kinds of arguments: every public function names the argument, or does what it can.

`calls` has a call of each public function and method that works. In each of them one argument at a
time is replaced by something else.
"""

from __future__ import annotations

import inspect
import random
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import hostile
import networkx
import numpy as np
import pandas as pd
import pytest
from helpers import ASKED_OF_DATA, ASKED_OF_FITS

import poolbn as pb

pytestmark = pytest.mark.filterwarnings("ignore")
NAN = float("nan")
WRONG = (
    None, 3, -1, 1.5, NAN, True, "x", b"x", object(), Path("x"), (), [], [None], [3], [[]], {},
    {"x": None},
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A function by its public name, and arguments that it takes."""

    name: str
    given: dict[str, Any]
    of: Any = None  # the object, if it is a method

    def __call__(self, **changes: Any) -> None:
        """Call it, and use what it returns where only that can fail."""
        function = self.of or pb
        for part in self.name.split(".")[1 if self.of else 0 :]:
            function = getattr(function, part)
        given = self.given | changes
        parameters = inspect.signature(function).parameters.values()
        first = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]
        result = function(
            *(given[name] for name in first), **{k: v for k, v in given.items() if k not in first}
        )
        if isinstance(result, AbstractContextManager):
            with result:
                pass
        option = USED.get(type(result))
        if option is not None:
            data = levels() if isinstance(result, pb.BDeu) else stats()
            pb.learn(data, **{"pooling": "complete"} | {option: result})


@cache
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x = rng.normal(size=30)
    return pd.DataFrame({"site": ["a", "b"] * 15, "x": x, "y": x + rng.normal(size=30)})


@cache
def stats() -> pb.GroupStats:
    return pb.stats(rows(), group="site")


@cache
def levels() -> pb.Table:
    return pb.table(rows().assign(x=rows()["x"] > 0, y=rows()["y"] > 0), group="site")


@cache
def cells() -> pb.CellStats:
    return pb.stats(rows().assign(x=rows()["x"] > 0), group="site")


@cache
def incomplete() -> pb.PatternStats:
    return pb.stats(rows(), group="site", missing="em").patterns


def net() -> pb.Network:
    return pb.learn(rows(), group="site", start=[("x", "y")])


@cache
def boot() -> pb.Bootstrap:
    return pb.bootstrap(rows(), group="site", replicates=2)


@cache
def comparison() -> pb.Comparison:
    return pb.compare(rows(), group="site", folds=2, poolings=["complete", "partial"])


@cache
def arcs() -> pb.ArcPosterior:
    return pb.arc_posterior(rows(), group="site", method=pb.OrderMCMC(sweeps=16))


# What is made to be given to `learn`, which may fail then, with an error of poolbn.
USED = {
    pb.Auto: "pooling", pb.Complete: "pooling", pb.NoPooling: "pooling", pb.Partial: "pooling",
    pb.Constraints: "constraints", pb.BGe: "score", pb.BDeu: "score",
    pb.HillClimb: "search", pb.Tabu: "search", pb.OrderSearch: "search", pb.Exact: "search",
    pb.AutoSearch: "search",
    pb.PC: "search", pb.Hybrid: "search",
}  # fmt: skip
READING: dict[str, Any] = {
    "source": rows(), "group": "site", "columns": ["x", "y"], "missing": "error", "inputs": [],
    "interventions": {},
}  # fmt: skip
SEARCH: dict[str, Any] = {
    "score": "bic", "search": None, "constraints": None,
}  # fmt: skip
METHOD: dict[str, Any] = {"plugin": False, "method": "lw", "particles": 10, "seed": 0}
DAG = pb.Dag(["x", "y"], [("x", "y")])
POSTERIOR = net().posterior({"x": 1.0}, "y")


def calls(folder: Path) -> list[Call]:
    one = net()
    return [
        Call("stats", READING | {"checkpoint": None, "kinds": {"x": "continuous"}}),
        Call("GroupStats.stats", {"columns": ["x"]}, stats()),
        Call("GroupStats.kind", {"name": "x"}, stats()),
        Call("PatternStats.stats", {"columns": ["x"]}, incomplete()),
        Call("PatternStats.kind", {"name": "x"}, incomplete()),
        Call("PatternStats.with_inputs", {"inputs": ["x"]}, incomplete()),
        Call("PatternStats.with_interventions", {"interventions": {}}, incomplete()),
        Call("CellStats.stats", {"columns": ["x"]}, cells()),
        Call("CellStats.kind", {"name": "x"}, cells()),
        Call("CellStats.cases", {"columns": ["x"]}, cells()),
        Call("CellStats.select", {"columns": ["x"]}, cells()),
        Call("CellStats.with_inputs", {"inputs": ["x"]}, cells()),
        Call("CellStats.with_interventions", {"interventions": {}}, cells()),
        Call("CellStats.coarsened", {"rows": 2}, cells()),
        Call("CellStats.save", {"path": folder / "c.stats", "allow_small": True}, cells()),
        Call("CellStats.load", {"path": "s.stats"}),
        Call("table", {"source": rows(), "group": "site", "columns": ["x", "y"], "missing": "error",
                       "kinds": {"x": "continuous"}, "inputs": [], "interventions": {}}),
        Call("Table.stats", {"columns": ["x"]}, pb.table(rows(), group="site")),
        Call("Table.kind", {"name": "x"}, pb.table(rows(), group="site")),
        Call("Table.cases", {"columns": ["x"]}, pb.table(rows(), group="site")),
        Call("Table.select", {"columns": ["x"]}, pb.table(rows(), group="site")),
        Call("Table.with_inputs", {"inputs": ["x"]}, pb.table(rows(), group="site")),
        Call("Table.with_interventions", {"interventions": {}}, pb.table(rows(), group="site")),
        Call("check", {"stats": stats()}),
        Call("PatternStats.select", {"columns": ["x"]}, incomplete()),
        Call("PatternStats.coarsened", {"rows": 10}, incomplete()),
        Call("PatternStats.save", {"path": folder / "p.stats", "allow_small": True}, incomplete()),
        Call("PatternStats.load", {"path": "s.stats"}),
        Call("PatternStats.completed", {"pseudo_rows": 2.0}, incomplete()),
        Call("impute", {"source": rows(), "group": "site", "columns": None, "imputations": 1,
                        "seed": 0}),
        Call("learn", {"source": rows(), "group": "site", "inputs": [], "start": (),
                       "columns": ["x", "y"], "kinds": {"x": "continuous"}, "missing": "error"}
             | SEARCH | {"pooling": "complete"}),
        Call("fit", {"graph": DAG, "data": rows(), "group": "site", "columns": ["x", "y"],
                     "kinds": {"x": "continuous"}, "inputs": [], "missing": "error",
                     "pooling": "complete", "score": "bic"}),
        Call("fit_node", {"stats": stats(), "child": "y", "parents": ["x"], "pooling": "complete"}),
        Call("score", {"stats": stats(), "dag": DAG, "pooling": "complete", "score": "bic"}),
        Call("bootstrap", READING | SEARCH | {"replicates": 1, "unit": "row", "seed": 0,
             "kinds": {"x": "continuous"}, "pooling": "complete"}),
        Call("arc_posterior", READING | {"kinds": {"x": "continuous"}, "pooling": "complete",
             "score": "bic", "max_parents": 1, "constraints": None, "prior": "orders",
             "method": None}),
        Call("OrderMCMC", {"chains": 2, "sweeps": 16, "seed": 0}),
        Call("PartitionMCMC", {"chains": 2, "sweeps": 16, "seed": 0}),
        Call("ArcPosterior.probability", {"parent": "x", "child": "y"}, arcs()),
        Call("ArcPosterior.parent_sets", {"node": "x", "most": 2}, arcs()),
        Call("ArcPosterior.median_graph", {"threshold": 0.5}, arcs()),
        Call("ArcPosterior.expected_false", {"threshold": 0.5, "directed": True}, arcs()),
        Call("ArcPosterior.threshold", {"rate": 0.1, "directed": True}, arcs()),
        Call("ArcPosterior.sample", {"draws": 4, "seed": 0}, arcs()),
        Call("ArcPosterior.effects", {"interval": 0.9}, arcs()),
        Call("ArcPosterior.total_effects", {"draws": 8, "interval": 0.9, "seed": 0}, arcs()),
        Call("ArcPosterior.continued", {"sweeps": 2}, arcs()),
        Call("ArcPosterior.tempered", {"power": 0.5}, arcs()),
        Call("ArcPosterior.averaged", {"draws": 4, "seed": 0}, arcs()),
        Call("AveragedNetwork.predict", {"data": rows(), "target": "y", "interval": 0.9},
             arcs().averaged(4)),
        Call("AveragedNetwork.loglik", {"data": rows(), "rows": True}, arcs().averaged(4)),
        Call("GraphSample.average", {"function": lambda dag: True}, arcs().sample(8)),
        Call("compare", READING | SEARCH | {"folds": 2, "poolings": ["complete"], "seed": 0}),
        Call("treatment_effects", {"source": rows(), "treatment": "x", "group": "site",
             "outcomes": ["y"], "kinds": {"x": "continuous"}, "pooling": "complete",
             "interval": 0.9}),
        Call("proportional_odds", {"net": one, "data": rows(), "interval": 0.9}),
        Call("ProportionalOdds.plot", {"ax": None}, pb.proportional_odds(one, rows())),
        Call("load", {"path": folder / "net.json"}),
        Call("report", {"net": one, "path": folder / "r.html", "data": None, "bootstrap": None,
                        "comparison": None, "settings": None}),
        Call("datasets.opt", {"kind": "continuous"}),
        Call("random_dag", {"N": 3, "mean_parents": 1.0, "seed": 0}),
        Call("random_network", {"dag": DAG, "data_sets": 2, "discrete": 0.0,
                                "ordinal": 0.0, "seed": 0, "heterogeneous": True,
                                "equal_residuals": False, "wording": "code"}),
        Call("random_table", {"network": one, "rows": 3, "seed": 0}),
        Call("unbalanced_rows", {"total": 100, "data_sets": 3}),
        Call("on_cluster", {"cluster": "local"}),
        Call("Auto", {"among": (pb.Complete(), pb.Partial())}),
        Call("BGe", {"iss_mu": 1.0, "iss_w": 5.0, "nu": {"x": 1.0, "y": 1.0}}),
        Call("BDeu", {"iss": 1.0}),
        Call("Complete", {"variance": "ml", "discrete": "auto"}),
        Call("NoPooling", {"variance": "ml", "discrete": "auto"}),
        Call("Partial", {"random": "full", "residuals": "shared", "method": "ml",
                         "discrete": "auto"}),
        Call("Constraints", {"required": [], "forbidden": [], "tiers": [], "max_parents": 2,
                             "continuous_to_discrete": True}),
        Call("HillClimb", {"restarts": 0, "perturb": 1, "max_iter": None, "seed": 0}),
        Call("Tabu", {"length": 10, "patience": 10, "max_iter": None}),
        Call("AutoSearch", {"max_parents": None, "seed": 0}),
        Call("OrderSearch", {"starts": 1, "max_parents": None, "seed": 0}),
        Call("PC", {"alpha": 0.01, "test": "auto", "rule": "majority", "max_given": None}),
        Call("PC.pattern", {"data": stats(), "pooling": "partial", "constraints": None}, pb.PC()),
        Call("Hybrid", {"restrict": pb.MMPC(), "maximise": pb.Tabu(), "widen": True}),
        Call("MMPC", {"alpha": 0.01, "test": "auto", "max_given": None, "both": True}),
        Call("ci_test", {"data": stats(), "x": "x", "y": "y", "given": [], "pooling": "none",
                         "test": "auto"}),
        Call("Exact", {"max_parents": 2}),
        Call("Dag", {"nodes": ["x", "y"], "arcs": []}),
        Call("Cpdag", {"nodes": ["x", "y"], "directed": [], "undirected": []}),
        Call("Dag.from_modelstring", {"text": "[x][y|x]"}),
        Call("Dag.cpdag", {"experiments": [["x"]]}, DAG),
        Call("Dag.from_string", {"text": "x -> y"}),
        Call("Dag.to_dagitty", {"exposure": "x", "outcome": "y"}, pb.Dag("[x][y|x]")),
        Call("Network.to_dagitty", {"exposure": "x", "outcome": "y"}, net()),
        Call("Network.test_graph", {"data": stats(), "test": "auto"}, net()),
        Call("Network.tidy", {"interval": 0.9, "by": "population"}, net()),
        Call("Network.adjustment_report", {"exposure": "x", "outcome": "y", "data": stats(),
             "interval": 0.9}, net()),
        Call("Network.sensitivity", {"cause": "x", "effect": "y", "data": stats(), "q": 0.5,
             "interval": 0.9, "seed": 0}, net()),
        Call("Network.leave_one_out", {"data": stats(), "effects": "total", "by": "effect",
             "interval": 0.9}, net()),
        Call("e_value", {"estimate": 2.0, "lower": 1.5, "upper": 3.0, "scale": "odds ratio",
             "sd": 1.0, "rare": True}),
        Call("robustness_value", {"t": 2.0, "df": 20, "q": 0.5, "alpha": 0.05}),
        Call("Split", {"seed": 1}),
        Call("Network.to_psem", {"file": "x.csv"}, net()),
        Call("Dag.from_adjacency", {"matrix": [[0, 1], [0, 0]], "nodes": ["x", "y"]}),
        Call("Dag.from_networkx", {"graph": networkx.DiGraph()}),
        Call("Dag.from_igraph", {"graph": DAG.to_igraph()}),
        *(Call(f"Dag.{name}", {"node": "x"}, DAG)
          for name in ("parents", "children", "ancestors", "descendants", "markov_blanket")),
        *(Call(f"Network.{name}", {"node": "x"}, one)
          for name in ("parents", "children", "markov_blanket")),
        Call("Network.plot", {"strengths": None, "ax": None}, one),
        Call("Network.report", {"path": folder / "report.html"}, one),
        Call("Network.summary", {"interval": 0.9}, one),
        *(call for of, owner in (("Dag", DAG), ("Network", one)) for call in (
            Call(f"{of}.d_separated", {"x": "x", "y": "y", "given": ()}, owner),
            Call(f"{of}.is_adjustment_set", {"cause": "x", "effect": "y", "given": ()}, owner),
            Call(f"{of}.adjustment_set", {"cause": "x", "effect": "y", "among": None}, owner),
            Call(f"{of}.adjustment_sets", {"cause": "x", "effect": "y", "among": None}, owner),
        )),
        Call("GroupStats.load", {"path": folder / "s.stats"}),
        Call("GroupStats.save", {"path": folder / "t.stats", "allow_small": True}, stats()),
        Call("GroupStats.select", {"columns": ["x"]}, stats()),
        Call("GroupStats.with_inputs", {"inputs": ["x"]}, stats()),
        Call("GroupStats.with_interventions", {"interventions": {}}, stats()),
        Call("GroupStats.family", {"child": "y", "parents": ["x"]}, stats()),
        Call("Bootstrap.averaged", {"threshold": 0.5, "weakest_first": False}, boot()),
        Call("Comparison.difference", {"name": "partial"}, comparison()),
        Call("Posterior.cdf", {"x": [1.0]}, POSTERIOR),
        Call("Posterior.pdf", {"x": [1.0]}, POSTERIOR),
        Call("Posterior.quantile", {"p": [0.5]}, POSTERIOR),
        Call("Network.adapt", {"source": rows()[["x", "y"]], "name": "new", "missing": "error"},
             one),
        Call("Network.classify", {"data": rows(), **METHOD}, one),
        Call("Network.do", {"values": {"x": 1.0}}, one),
        Call("Network.effects", {"interval": 0.9, "by": "arc"}, one),
        Call("Network.heterogeneity", {"stats": stats()}, one),
        Call("Network.variances", {"stats": stats()}, one),
        Call("Network.within_between", {"stats": stats(), "interval": 0.9}, one),
        Call("Network.mean_correlations", {"stats": stats()}, one),
        Call("Network.impute", {"data": rows(), "plugin": False}, one),
        Call("Network.loglik", {"data": rows(), "rows": False, "plugin": False}, one),
        Call("Network.posterior", {"evidence": {"x": 1.0}, "target": "y", "plugin": False}, one),
        Call("Network.predict", {"data": rows(), "target": "y", "interval": 0.9, **METHOD}, one),
        Call("Network.query", {"event": "x > 1", "evidence": {"y": 1.0}, **METHOD}, one),
        Call("Network.sample", {"n": 2, "data_set": "a", "plugin": False, "seed": 0}, one),
        Call("Network.save", {"path": folder / "o.json"}, one),
        Call("Network.total_effects", {"cause": "x", "effect": "y"}, one),
        Call("metrics.calibration", {"actual": [1.0], "intervals": {0.9: ([0.0], [1.0])}}),
        Call("metrics.compare_arcs", {"true": DAG, "learned": DAG}),
        Call("metrics.coverage", {"actual": [1.0], "lower": [0.0], "upper": [2.0]}),
        Call("metrics.f1", {"actual": ["a"], "predicted": ["a"], "levels": ["a", "b"]}),
        Call("metrics.kl", {"true": one, "other": net(), "weights": "prior"}),
        Call("metrics.kl_estimate", {"true": one, "other": net(), "weights": "prior", "rows": 5,
                                     "seed": 0}),
        *(Call(f"metrics.{name}", {"actual": ["a", "b"], "probabilities": pd.DataFrame(
            {"a": [0.5, 0.4], "b": [0.5, 0.6]})}) for name in ("log_loss", "brier", "auc")),
        Call("look", {"source": rows(), "group": "site", "columns": ["x"], "kinds": None}),
        Call("metrics.rmad", {"actual": [1.0], "predicted": [1.0]}),
        Call("metrics.median_rmad", {"actual": [[1.0]], "predicted": [[1.0]]}),
        Call("metrics.shd", {"a": DAG, "b": DAG}),
        Call("plots.calibration", {"net": pb.learn(levels(), pooling="complete"),
                                   "data": rows().assign(x=rows()["x"] > 0, y=rows()["y"] > 0),
                                   "node": "y", "ax": None}),
        Call("plots.comparison", {"found": comparison(), "ax": None}),
        Call("plots.forest", {"net": one, "parent": "x", "child": "y", "stats": None,
                              "interval": 0.9, "ax": None}),
        Call("plots.heterogeneity", {"net": one, "stats": None, "most": 5, "ax": None}),
        Call("plots.network", {"net": one, "strengths": None, "ax": None}),
        Call("plots.proportional_odds", {"found": pb.proportional_odds(one, rows()), "ax": None}),
        Call("plots.residuals", {"net": one, "data": rows(), "node": "y", "ax": None}),
        Call("plots.strengths", {"boot": boot(), "most": 5, "ax": None}),
    ]  # fmt: skip


def names() -> list[str]:
    return [call.name for call in calls(Path())]


# What has no arguments of its own, or is made by poolbn alone.
WITHOUT = {
    "AdjustmentReport", "GraphTest", "ProportionalOdds", "Comparison.differences",
    "Comparison.words", "LocalFit.variances",
    "Bootstrap", "Bootstrap.pairs", "Bootstrap.table", "Comparison",
    "Comparison.by_data_set", "Comparison.by_fold", "Comparison.by_variable", "Comparison.table",
    "Finding", "Finding.for_shell", "FindingKind", "GroupStats", "LocalFit", "LocalFit.table",
    "Look", "CellStats", "PatternStats", "Table", "ArcPosterior", "AveragedNetwork", "GraphSample",
    "EValue", "IndependenceTest", "MMPC.joined", "Network", "Pattern", "Pattern.table",
    "Posterior",
    "Probability", "Status",
    *(f"{data}.{asked}" for data in ("GroupStats", "PatternStats", "CellStats", "Table")
      for asked in ASKED_OF_DATA),
    *(f"LocalFit.{asked}" for asked in ASKED_OF_FITS), "Kind", "register_kind",
    "GroupStats.cases", "PatternStats.cases",  # which raise always
    "Network.to_pgmpy",  # needs pgmpy; its own tests have a stand-in
}  # fmt: skip


def public() -> set[str]:
    """All that a user calls with arguments; methods of poolings and learners are for learners."""
    found = set()
    for name in pb.__all__:
        value = getattr(pb, name)
        if inspect.ismodule(value):
            own = {k: v for k, v in vars(value).items() if inspect.isfunction(v)}
            found |= {
                f"{name}.{k}"
                for k, v in own.items()
                if v.__module__ == value.__name__ and not k.startswith("_")
            }
        elif not (isinstance(value, type) and issubclass(value, BaseException | Warning)):
            found.add(name)
            if isinstance(value, type) and value not in USED:
                members = inspect.getmembers(value, callable)
                found |= {f"{name}.{k}" for k, _ in members if not k.startswith("_")}
    return found


def takes_something(name: str) -> bool:
    value: Any = pb
    for part in name.split("."):
        value = getattr(value, part)
    return bool(set(inspect.signature(value).parameters) - {"self"})


def test_all_that_is_public_is_tried() -> None:
    assert {name for name in public() if takes_something(name)} - WITHOUT - set(names()) == set()


@pytest.mark.parametrize("name", names())
def test_no_bare_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    net().save("net.json")
    stats().save("s.stats")
    call = next(call for call in calls(tmp_path) if call.name == name)
    if name != "on_cluster":
        call()
    bare = []
    for argument in call.given:
        for value in WRONG:
            try:
                call(**{argument: value})
            except pb.PoolbnError:
                continue
            except Exception as error:
                bare.append((argument, value, error))
    assert bare == []


def test_no_bare_error_whatever_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of all pairs of an argument and an odd value; `make fuzz` tries the others."""
    monkeypatch.chdir(tmp_path)
    net().save("net.json")
    stats().save("s.stats")
    pairs = [
        (call, argument, odd)
        for call in calls(tmp_path)
        for argument in call.given
        for odd in hostile.ODD
        if call.name != "on_cluster"
    ]
    bare = []
    for call, argument, odd in random.Random(1).sample(pairs, 2_000):
        try:
            call(**{argument: hostile.odd(odd)})
        except pb.PoolbnError as error:
            bare += [] if str(error) and error.for_shell() else [(call.name, argument, odd, error)]
        except Exception as error:
            bare.append((call.name, argument, odd, error))
    assert bare == []


@pytest.mark.parametrize("odd", ["array of no dimension", "array", "NA", "beyond floats"])
@pytest.mark.parametrize("argument", ["length", "patience"])
def test_what_is_no_count(odd: str, argument: str) -> None:
    with pytest.raises(pb.OptionError, match=argument):
        pb.Tabu(**{argument: hostile.odd(odd)})


def test_numbers_of_numpy_are_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever those of Python are."""
    monkeypatch.chdir(tmp_path)
    net().save("net.json")
    stats().save("s.stats")
    kinds = {int: np.int64, float: np.float32, bool: np.bool_}
    for call in calls(tmp_path):
        for argument, value in call.given.items():
            if type(value) in kinds:
                call(**{argument: kinds[type(value)](value)})


@pytest.mark.parametrize("nu", [NAN, np.inf, 10**400])
def test_a_prior_mean_that_is_none(nu: float) -> None:
    with pytest.raises(pb.ArgumentError, match=r"nu\['x'\] must be a finite number"):
        pb.BGe(nu={"x": nu, "y": 1.0})


MESSAGES = [
    (lambda: pb.load(3), "path must be a path: a text, or a pathlib.Path, got 3"),
    (
        lambda: pb.stats(rows(), group=3),
        "group must be the name of a column, a list of two columns",
    ),
    (
        lambda: pb.stats(rows(), group="site", inputs=None),
        "inputs must be a list of names, got None",
    ),
    (lambda: pb.fit_node(stats(), "y", [3]), "parents must be a list of names, and has 3 in it"),
    (lambda: net().predict(rows(), None), "target must be a list of names, got None"),
    (lambda: net().loglik(rows(), plugin="yes"), "plugin must be True or False, got 'yes'"),
    (lambda: pb.Dag(None), "nodes must be a list of names, got None"),
    (
        lambda: pb.Auto(["partial"]),
        "each of among must be a pb.Complete, pb.NoPooling or pb.Partial",
    ),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES, ids=[words for _, words in MESSAGES])
def test_the_argument_is_named(call: Any, words: str) -> None:
    with pytest.raises(pb.ArgumentError) as caught:
        call()
    assert words in str(caught.value)
    assert isinstance(caught.value, TypeError)
