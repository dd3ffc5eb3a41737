"""The file list is the architecture: who may import whom, and what an import costs."""

from __future__ import annotations

import ast
import io
import pickle
import subprocess
import sys
import tokenize
from pathlib import Path

import pandas as pd

import poolbn
from poolbn import later

SOURCE = Path(poolbn.__file__).parent
# Packages and single modules; each may import what stands above it, and from itself in order.
ORDER = {
    "wording": [],
    "errors": [],
    "arguments": [],
    "findings": [],
    "arrays": [],
    "later": [],
    "constants": [],
    "writing": [],
    "multiplicity": [],
    "run": ["cluster", "parallel", "compiling", "progress"],
    "datasets": [],
    "kernels": [
        "compile_cache", "compile_units", "lanes", "linalg", "cutting", "elementary", "moments",
        "unit_sums", "regress", "sweeps", "work", "units", "deviance", "bounds", "steps",
        "optimise", "shared", "screens",
        "candidates", "gammas", "pooled", "separate", "estimates", "moves", "expect", "patterns",
        "polya", "rows", "glm", "nested", "laplace", "quasinewton", "quadrature", "within",
        "integrals", "tails", "independence", "separators", "shrinking", "slopes", "subsets",
        "orders", "partitions",
        "graphs",
    ],
    "tables": [
        "sources", "labels", "copies", "paths", "text", "databases", "foreign", "files",
        "grouping", "columns", "ranking", "causes", "kinds", "missing", "data", "cells",
    ],
    "moments": [
        "facts", "sums", "units", "indicators", "patterns", "em", "targets", "statsfile", "cases",
        "groupstats", "patternstats", "data", "cellstats", "reading", "table", "halves",
        "standardised",
        "checks", "between", "looking",
    ],
    "graph": ["pairs", "equivalence", "grammars", "formats", "separation", "dag", "constraints"],
    "nodes": [
        "reference", "linear", "lmm", "polya", "links", "design", "unitmodes", "glmm",
        "marginal", "rowscores", "shrinking", "terms", "rsquared", "drawing", "predicting",
        "localfit", "intervals",
        "equality", "withinbetween", "predictive", "adapting", "logfit", "gaussianfit", "model",
        "given", "grouplevel", "views", "poolings", "auto", "conditional", "tabular",
        "problems", "regression", "ordinal", "within", "kinds", "choosing", "files",
    ],
    "scoring": [
        "sparsity", "likelihoods", "inside", "families", "observed", "gprior", "criteria", "bge",
        "bde",
        "local", "rotating", "combined", "separating", "independence",
    ],
    "search": [
        "problem", "state", "climbing", "orders", "exact", "auto", "pattern", "pc", "hybrid",
        "naming",
        "ordering",
    ],
    "inference": [
        "assembled", "drawing", "marginals", "locals", "gibbs", "unitgaps", "conditioning",
        "posterior", "engine", "linear", "parts", "general", "units", "events",
    ],
    "network": [
        "presenting", "graphical", "questions", "interventions", "totals",
        "effects", "tabulating", "exporting", "rscript", "topgmpy", "file", "network",
    ],
    "monte_carlo_em": [],
    "learning": [],
    "fitting": [],
    "imputing": [],
    "simulate": [],
    "metrics": [],
    "assess": [
        "estimates", "patternmap", "residuals", "graphtest", "adjustment", "effectsizes",
        "proportional", "sensitivity", "tidying", "refitting", "influence", "resample", "folds",
        "comparison", "unitmeans", "treatment",
    ],
    "posteriors": ["families", "chains", "averaging", "posterior"],
    "show": ["layout", "figures", "drawing", "style", "netplot", "rowplots"],
    "plots": [],
    "page": [
        "disclosure", "context", "summary", "cards", "methods", "graph",
        "numbers", "tables", "whatif", "reporting", "notebook",
    ],
    "sklearn": [],
    "cli": [
        "terminal", "gathering", "inputs", "showing", "learning",
        "networks", "statistics", "demonstration", "app",
    ],
    "__init__": [],
    "__main__": [],
}  # fmt: skip
MODULES = [
    ".".join(name)
    for package, modules in ORDER.items()
    for name in ([(package,)] if not modules else [(package, module) for module in modules])
]
LONGEST = 600  # lines of code that a newcomer reads in one go
HEAVY = [
    "numba", "pandas", "polars", "pyarrow", "duckdb", "scipy", "networkx", "igraph", "matplotlib",
    "typer", "dask", "distributed", "sklearn",
]  # fmt: skip


def imports(module: Path) -> set[str]:
    """Modules of poolbn that a module names in an import statement, wherever it stands."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "poolbn":
            package = str(node.module).removeprefix("poolbn").removeprefix(".")
            if package in MODULES:
                found.add(package)
            else:
                names = {alias.name for alias in node.names}
                found |= {f"{package}.{name}" if package else name for name in names}
    return found


def test_a_module_imports_only_modules_above_it() -> None:
    paths = {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts): path
        for path in SOURCE.rglob("*.py")
        if path.name != "__init__.py" or path.parent == SOURCE
    }
    assert sorted(paths) == sorted(MODULES)
    for module, path in paths.items():
        above = MODULES[: MODULES.index(module)]
        used = imports(path)
        assert used <= set(above), f"{module} imports {used - set(above)}"


def lines_of_code(text: str) -> int:
    """Lines without comments and docstrings."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            documented |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    blank = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in {*blank, tokenize.ENDMARKER}:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def test_no_module_is_long() -> None:
    assert lines_of_code('"""Words."""\n\nx = 1  # why\n# more\n') == 1
    lengths = {path.name: lines_of_code(path.read_text()) for path in SOURCE.rglob("*.py")}
    assert [name for name, length in lengths.items() if length > LONGEST] == []


DATA = {"GroupStats", "PatternStats", "CellStats", "Table", "FilledTable", "StandardisedStats"}


def asked_classes(text: str) -> set[str]:
    """Classes that `isinstance` asks for, and patterns of `match`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        asked: ast.AST | None = None
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"isinstance", "issubclass"}:
            asked = node.args[1]
        elif isinstance(node, ast.MatchClass):
            asked = node.cls
        if asked is not None:
            found |= {each.id for each in ast.walk(asked) if isinstance(each, ast.Name)}
    return found


def test_only_moments_asks_which_class_data_are() -> None:
    assert asked_classes("isinstance(x, A | B) or isinstance(y, (C,))") == {"A", "B", "C"}
    outside = [p for p in SOURCE.rglob("*.py") if p.parent.name != "moments"]
    asked = {path.name: asked_classes(path.read_text()) & DATA for path in outside}
    assert {name: classes for name, classes in asked.items() if classes} == {}


def test_no_module_has_the_name_of_a_public_function() -> None:
    public = {name for name in poolbn.__all__ if callable(getattr(poolbn, name))}
    assert not public & set(ORDER)


def test_the_import_is_light() -> None:
    code = f"import sys, poolbn; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_line_loads_packages_with_their_first_use() -> None:
    late = ["pandas", "scipy", "numba", "matplotlib", "jinja2"]
    code = f"import sys, poolbn.cli.app; print([m for m in {late} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert pickle.loads(pickle.dumps(later.pandas)).DataFrame is pd.DataFrame
    assert later.special.ndtr(0.0) == 0.5


# What nobody asks


def subclasses(base: type) -> set[str]:
    """What a class and those below it are called."""
    return {base.__name__}.union(*map(subclasses, base.__subclasses__()))


def kinds_compared(text: str, kinds: set[str]) -> list[int]:
    """The lines in which something is compared with the name of a kind of column."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        if any(isinstance(each, ast.Constant) and each.value in kinds for each in ast.walk(side))
    ]


def outside(*parts: str) -> dict[str, str]:
    """The source files that are not in a package, or not a module."""
    return {
        str(path.relative_to(SOURCE)): path.read_text()
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[: len(parts)] != parts
    }


def test_nothing_outside_nodes_asks_which_class_a_fit_is() -> None:
    from poolbn.nodes.regression import RegressionFit
    from poolbn.nodes.tabular import TabularFit

    fits = subclasses(poolbn.LocalFit)
    assert {RegressionFit.__name__, TabularFit.__name__, "GaussianFit"} <= fits
    found = {name: asked_classes(text) & fits for name, text in outside("nodes").items()}
    assert {name: asked for name, asked in found.items() if asked} == {}


def test_nothing_but_their_module_compares_kinds() -> None:
    kinds = {"continuous", "discrete", "count", "ordinal"}
    assert kinds_compared('if kind != "count":\n    pass', kinds) == [1]
    assert kinds_compared('of = kind in ("count", "discrete")', kinds) == [1]
    found = {
        name: kinds_compared(text, kinds) for name, text in outside("tables", "kinds.py").items()
    }
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_nothing_asks_whether_a_network_is_linear() -> None:
    assert [name for name, text in outside("").items() if "is_linear" in text] == []
