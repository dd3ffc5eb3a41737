"""Networks that version 0.2.0 wrote load, and answer as it did.

`reference/version02` has its files, what it answered, and the script that made both with it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poolbn as pb

FOLDER = Path(__file__).parent / "reference" / "version02"
ANSWERS = json.loads((FOLDER / "answers.json").read_text())


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(
        np.asarray(found, dtype=float), np.array(expected, dtype=float), rtol=1e-8, atol=1e-10
    )


@pytest.mark.parametrize("name", ANSWERS)
def test_a_network_answers_the_same(name: str) -> None:
    net, told = pb.load(FOLDER / f"{name}.json"), ANSWERS[name]
    trial = pb.datasets.opt()[["clinic", *told["columns"]]].dropna()
    rows = trial.groupby("clinic").head(3)
    effects = net.effects()
    assert list(net.levels) == told["levels"]
    assert len(effects) == len(told["effects"]) > 0
    close(effects[["effect", "se", "between_sd"]], told["effects"])
    close(effects[list(net.levels)], told["own"])
    close(net.loglik(rows, rows=True, plugin=True), told["loglik"])
    predicted = net.predict(rows, told["columns"][1], plugin=True)
    for column, expected in told["predict"].items():
        if isinstance(expected[0], str):
            assert list(predicted[column]) == expected
        else:
            close(predicted[column], expected)
    close(net.classify(rows, plugin=True)[list(net.levels)], told["classify"])


@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_saved_again_is_the_same(name: str, tmp_path: Path) -> None:
    net = pb.load(FOLDER / f"{name}.json")
    net.save(tmp_path / "net.json")
    again = pb.load(tmp_path / "net.json")
    assert again.to_json() == net.to_json()
    assert str(again) == str(net)
