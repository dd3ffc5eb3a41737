"""Networks and statistics that version 0.1 wrote load, and answer as it did.

`reference/version01` has its files, what it answered, and the script that made both with it.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poolbn as pb
from poolbn.assess.arceffects import arc_effects
from poolbn.assess.residualsds import residual_sds

FOLDER = Path(__file__).parent / "reference" / "version01"
ANSWERS = json.loads(gzip.decompress((FOLDER / "answers.json.gz").read_bytes()))
STATS = pb.GroupStats.load(FOLDER / "trial.stats")
TRIAL = pb.datasets.opt()[["clinic", *STATS.names]].dropna()
ESTIMATES = (
    "effect", "interval", "alone", "alone_interval", "population", "population_interval",
    "new_interval",
)  # fmt: skip


def close(found: Any, expected: Any, rtol: float = 1e-9) -> None:
    """Numbers, of which some may be texts: inf and nan."""
    wanted = np.array(expected, dtype=object).astype(float)
    np.testing.assert_allclose(np.asarray(found, dtype=float), wanted, rtol=rtol, atol=1e-12)


def test_statistics() -> None:
    told = json.loads((FOLDER / "statistics.json").read_text())
    assert list(STATS.names) == told["names"]
    assert list(STATS.levels) == told["levels"]
    for name in ("n", "mean", "scatter"):
        np.testing.assert_array_equal(getattr(STATS, name), told[name])


@pytest.mark.parametrize("name", ANSWERS)
def test_a_network_answers_the_same(name: str) -> None:
    net, told = pb.load(FOLDER / f"{name}.json"), ANSWERS[name]
    rows = TRIAL.groupby("clinic").head(3)
    rows = rows[rows["clinic"].isin(net.levels)]
    if name == "do":
        rows = rows.drop(columns="gestation_days")
    gaps = rows.copy()
    gaps.loc[gaps.index[::2], "bmi"] = np.nan
    effects = net.effects()
    for column in ("effect", "se", "between_sd"):
        close(effects[column], told[column])
    close(net.loglik(rows, rows=True, plugin=True), told["loglik"])
    close(net.predict(gaps, "birthweight_g", plugin=True), told["predict"])
    close(net.predict(gaps.drop(columns="clinic"), "bmi", plugin=True), told["unknown"])
    close(net.classify(gaps, plugin=True)[list(net.levels)], told["classify"])
    totals = net.total_effects("age", "birthweight_g").drop(columns=["lower", "upper"])
    close(totals.iloc[:, 2:], told["total"])
    close(net.joint.mean, told["mean"])
    close(net.joint.cov, told["cov"])


@pytest.mark.parametrize("name", ANSWERS)
def test_intervals_of_a_network_are_the_same(name: str) -> None:
    net, told = pb.load(FOLDER / f"{name}.json"), ANSWERS[name]
    known = None if name in {"adapted", "adapted-shared", "do"} else STATS
    for key, expected in told["sds"].items():
        node, how = key.split()
        sds = residual_sds(net, node, stats=known if how == "stats" else None)
        for field, value in zip(ESTIMATES, expected, strict=True):
            close(getattr(sds, field), value, rtol=1e-6)
    for key, expected in told["arcs"].items():
        parent, child, how = key.split()
        (arc,) = arc_effects(net, parent, child, stats=known if how == "stats" else None)
        for field, value in zip(ESTIMATES, expected, strict=True):
            close(getattr(arc, field), value, rtol=1e-6)


def test_what_is_saved_again_is_the_same(tmp_path: Path) -> None:
    for path in FOLDER.glob("*.json"):
        if path.name == "statistics.json":
            continue
        net = pb.load(path)
        net.save(tmp_path / path.name)
        again = pb.load(tmp_path / path.name)
        assert again.to_json() == net.to_json()
        assert str(again) == str(net)


def test_the_old_name_of_no_pooling() -> None:
    assert pb.Separate is pb.NoPooling
    assert pb.Separate(variance="unbiased") == pb.NoPooling("unbiased")
