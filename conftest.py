"""What tests and examples share: numbers compared as numbers, and drawings without a screen."""

from __future__ import annotations

import doctest
import os
import sys
from collections.abc import Iterator

import pytest
from printed import Checker

doctest.OutputChecker = Checker  # pytest derives its own from what it finds here
os.environ["MPLBACKEND"] = "Agg"


@pytest.fixture(autouse=True)
def _no_figure_stays_open() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
