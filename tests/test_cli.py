from __future__ import annotations

import subprocess
import sys

from typer.testing import CliRunner

from poolbn.cli import app


def test_demo_compares_the_poolings() -> None:
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 0, done.output
    for part in ("823 women", "complete pooling", "slope in KY", "best BIC", "10 nodes, 13 arcs"):
        assert part in done.output


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "poolbn", "--help"], capture_output=True, text=True, check=True
    )
    assert "demo" in done.stdout
