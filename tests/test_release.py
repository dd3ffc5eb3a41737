"""What a release says of itself is one version, and its lower bounds can be installed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import lowest

import poolbn as pb

ROOT = Path(__file__).parents[1]


def test_all_files_name_the_same_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    told = re.findall(r"^## (\d[\d.]*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert pb.__version__ == project["version"] == cited[0] == told[0]


def test_every_dependency_has_a_lower_bound() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    bounds = list(lowest.bounds(text))
    assert "numpy==2.0.*" in bounds
    assert "pyreadstat==1.2.7" in bounds
    assert "dask==2025.1.*" in bounds
    assert len(bounds) == len(set(bounds)) >= 20
