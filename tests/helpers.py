"""What several tests need."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

REFERENCE = Path(__file__).parent / "reference"


def reference(name: str) -> list[dict]:
    """The cases of a file of numbers that other programs computed."""
    return json.loads((REFERENCE / name).read_text())["cases"]


def simulate(
    seed: int,
    *,
    data_sets: int = 5,
    rows: int = 20,
    parents: int = 2,
    between: float = 1.0,
) -> pd.DataFrame:
    """Columns y, x1, ... and F, with random effects of SD `between` on every coefficient."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(data_sets), rows)
    X = rng.normal(size=(len(codes), parents)) + rng.normal(size=(data_sets, parents))[codes]
    b = rng.normal(size=(data_sets, parents + 1)) * between + 1
    y = b[codes, 0] + (X * b[codes, 1:]).sum(axis=1) + rng.normal(size=len(codes))
    frame = pd.DataFrame(X, columns=[f"x{k + 1}" for k in range(parents)])
    return frame.assign(y=y, F=[f"set {j}" for j in codes])
