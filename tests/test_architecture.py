"""The file list is the architecture: who may import whom, and what an import costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import poolbn

SOURCE = Path(poolbn.__file__).parent
ORDER = [
    "errors",
    "constants",
    "compiling",
    "sources",
    "files",
    "columns",
    "data",
    "cells",
    "datasets",
    "_linalg",
    "_moments",
    "moments",
    "writing",
    "statsfile",
    "suffstats",
    "pairs",
    "equivalence",
    "interchange",
    "graph",
    "parallel",
    "progress",
    "standard",
    "_regress",
    "_work",
    "_kernels",
    "_optimise",
    "_pooled",
    "_separate",
    "linear",
    "mixed",
    "localfit",
    "statuses",
    "pooling",
    "choosing",
    "heterogeneity",
    "scores",
    "constraints",
    "_moves",
    "search",
    "exact",
    "joint",
    "divergence",
    "conditioning",
    "mixtures",
    "uncertain",
    "infer",
    "weighting",
    "events",
    "answers",
    "adapting",
    "interventions",
    "effects",
    "exporting",
    "networkfile",
    "network",
    "simulate",
    "metrics",
    "leaveout",
    "learning",
    "replicates",
    "strengths",
    "resample",
    "folds",
    "comparison",
    "comparing",
    "layers",
    "places",
    "layout",
    "marks",
    "arceffects",
    "diagnostics",
    "drawing",
    "netplot",
    "effectplots",
    "residualplots",
    "assessplots",
    "plots",
    "reportrows",
    "reportwords",
    "reportgraph",
    "reportnumbers",
    "reporttables",
    "reporting",
    "study",
    "studyrun",
    "studytable",
    "studyclaims",
    "paperclaims",
    "studysides",
    "studyfigures",
    "studyreport",
    "terminal",
    "studycommands",
    "commandinputs",
    "showing",
    "learncommand",
    "commands",
    "statscommands",
    "demonstration",
    "cli",
    "__init__",
    "__main__",
]
HEAVY = [
    "numba", "pandas", "polars", "pyarrow", "duckdb", "scipy", "networkx", "igraph", "matplotlib",
    "typer",
]  # fmt: skip


def imports(module: Path) -> set[str]:
    """Modules of the package that a module names in an import statement, wherever it stands."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "poolbn":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("poolbn."):
            found.add(str(node.module).split(".")[1])
    return found


def test_a_module_imports_only_modules_above_it() -> None:
    modules = {path.stem: imports(path) for path in SOURCE.glob("*.py")}
    assert sorted(modules) == sorted(ORDER)
    for module, used in modules.items():
        above = ORDER[: ORDER.index(module)]
        assert used <= set(above), f"{module} imports {used - set(above)}"


def test_no_module_has_the_name_of_a_public_function() -> None:
    public = {name for name in poolbn.__all__ if callable(getattr(poolbn, name))}
    assert not public & set(ORDER)


def test_the_import_is_light() -> None:
    code = f"import sys, poolbn; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
