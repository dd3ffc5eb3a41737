"""What tests and examples share: numbers compared as numbers, and drawings without a screen."""

from __future__ import annotations

import doctest
import os
import sys
from collections.abc import Iterator

import duckdb
import pytest
from printed import Checker

doctest.OutputChecker = Checker  # pytest derives its own from what it finds here
os.environ["MPLBACKEND"] = "Agg"


@pytest.fixture(autouse=True)
def _no_figure_stays_open() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session", autouse=True)
def _one_database() -> Iterator[None]:
    """Each reading of a CSV file opens a database: 25 ms, where a cursor on one takes none."""
    with duckdb.connect() as database, pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", database.cursor)
        yield
