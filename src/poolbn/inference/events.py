"""Events: conditions on the columns of a table, and their probabilities from weighted rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from poolbn.arrays import Flags, Floats
from poolbn.errors import Option, OptionError
from poolbn.inference.conditions import read_condition
from poolbn.later import pandas as pd

Event = str | Callable[["pd.DataFrame"], Any]


@dataclass(frozen=True)
class Probability:
    """A probability found by sampling; `float()` gives its value.

    Attributes:
        value: the estimate.
        se: its standard error, from the number of draws.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> net = pb.learn(trial, group="clinic", start=[("age", "bmi")])
        >>> found = net.query("bmi > 30", {"age": 20})
        >>> round(float(found), 2), round(found.se, 3)
        (0.32, 0.005)
    """

    value: float
    se: float

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"{self.value:.4g} (standard error {self.se:.2g})"


def probability(happened: Flags, weights: Floats) -> Probability:
    """The weighted share of rows in which an event happened; weights have the sum 1, (K,)."""
    value = min(1.0, float(weights[happened].sum()))
    return Probability(value, math.sqrt(float((weights**2 * (happened - value) ** 2).sum())))


def happens(event: Event, rows: pd.DataFrame) -> Flags:
    """In which rows an event happens, a condition as `conditions` reads it or a function."""
    if callable(event):
        answer = event(rows)
    elif isinstance(event, str):
        answer = read_condition(event, rows)
    else:
        raise OptionError(
            Option("event", event), " is neither a text like 'bmi > 25' nor a function of a table"
        )
    happened = np.asarray(answer)
    if happened.shape != (len(rows),) or happened.dtype != bool:
        raise OptionError(
            f"event {event!r} gives {happened.dtype} of shape {happened.shape}, not True or False "
            "for each row; compare with something, like 'bmi > 25'"
        )
    return happened
