"""`pb.compare` of tables with columns of all kinds, against networks that are asked one by one."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import poolbn as pb
from poolbn.assess.folds import deal_table

KINDS = {"visits": "count"}
GIVEN = {
    "search": pb.HillClimb(max_iter=0),
    "constraints": pb.Constraints(required=[("x", "ill"), ("ill", "visits"), ("sex", "x")]),
}
POOLINGS = ["complete", "none", "partial"]


@cache
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    n = 120
    data_set = np.repeat(["u", "v", "w"], 40)
    sex = np.where(rng.random(n) < 0.5, "f", "m")
    x = rng.normal(size=n) + (sex == "m") + (data_set == "v")
    ill = np.where(rng.random(n) < expit(x - 0.5), "yes", "no")
    visits = rng.poisson(np.where(ill == "yes", 3.0, 1.0))
    return pd.DataFrame({"F": data_set, "sex": sex, "x": x, "ill": ill, "visits": visits})


@cache
def found() -> pb.Comparison:
    return pb.compare(frame(), group="F", kinds=KINDS, folds=3, poolings=POOLINGS, **GIVEN)


@cache
def folds() -> np.ndarray:
    """The fold of each row, which is in the order of data sets."""
    return deal_table(pb.table(frame(), group="F", kinds=KINDS), 3, 0).fold


def learned(rows: pd.DataFrame, pooling: str) -> pb.Network:
    return pb.learn(rows, group="F", kinds=KINDS, pooling=pooling, **GIVEN)


def test_folds_are_even() -> None:
    for level in "uvw":
        own = folds()[(frame()["F"] == level).to_numpy()]
        assert max(np.bincount(own)) - min(np.bincount(own)) <= 1


@pytest.mark.parametrize("pooling", POOLINGS)
def test_held_out_rows(pooling: str) -> None:
    """Densities, errors of each column and data sets are those of networks of the other rows."""
    p, names = POOLINGS.index(pooling), ["sex", "x", "ill", "visits"]
    assert found().poolings == tuple(POOLINGS)
    errors = {(how, name): 0.0 for how in ("known", "unknown") for name in names}
    true, guess = [], []
    for k in range(3):
        rows = frame()[folds() == k]
        net = learned(frame()[folds() != k], pooling)
        assert found().loglik[p, k] == pytest.approx(net.loglik(rows) / len(rows), rel=1e-10)
        true += rows["F"].tolist()
        guess += net.classify(rows)["most_probable"].tolist()
        for how, own in (("known", rows), ("unknown", rows.drop(columns="F"))):
            for name in names:
                made = net.predict(own, name, plugin=True)
                if name in ("sex", "ill"):
                    levels = net.fits[name].categories
                    actual = np.array([rows[name] == level for level in levels]).T
                    away = made[list(levels)].to_numpy(dtype=float) - actual
                else:
                    away = made["mean"].to_numpy() - rows[name].to_numpy()
                errors[how, name] += float((away**2).sum())
    n = len(frame())
    for how in ("known", "unknown"):
        for name in names:
            if name in ("sex", "ill"):
                share = frame()[name].value_counts(normalize=True)
                variance = float((share * (1 - share)).sum())
            else:
                variance = float(frame()[name].var(ddof=0))
            own = found().by_variable()[how].loc[name, pooling]
            assert own == pytest.approx(math.sqrt(errors[how, name] / n / variance), rel=1e-7)
    assert found().f1[p] == pytest.approx(pb.metrics.f1(true, guess, ["u", "v", "w"]).mean)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_data_sets_left_out(pooling: str) -> None:
    p = POOLINGS.index(pooling)
    for k, level in enumerate("uvw"):
        value = found().left_out_loglik[p, k]
        if pooling == "none":
            assert math.isnan(value)
            continue
        rows = frame()[frame()["F"] == level]
        net = learned(frame()[frame()["F"] != level], pooling).adapt(name="new")
        assert value == pytest.approx(net.loglik(rows.assign(F="new")) / len(rows), rel=1e-10)


def test_a_level_that_was_not_seen_counts_as_half_a_row() -> None:
    rows = frame()[["F", "sex"]].copy()
    rows.loc[rows.index[7], "sex"] = "other"
    with pytest.warns(pb.DataWarning, match="one row alone has the level 'other'"):
        made = pb.compare(rows, group="F", folds=3, poolings=["complete"])
    k = int(deal_table(pb.table(rows, group="F"), 3, 0).fold[7])
    fold = deal_table(pb.table(rows, group="F"), 3, 0).fold
    train, held = rows[fold != k], rows[fold == k]
    share = train["sex"].value_counts(normalize=True)
    known = np.log(held["sex"].map(share).dropna()).sum()
    own = math.log(0.5 / (train["F"] == "u").sum())
    assert made.loglik[0, k] == pytest.approx((known + own) / len(held), rel=1e-12)
    assert np.isfinite(made.loglik).all()


def test_tables_files_and_words(tmp_path: Path) -> None:
    table = pb.table(frame(), group="F", kinds=KINDS)
    again = pb.compare(table, folds=3, poolings=POOLINGS, **GIVEN)
    pd.testing.assert_frame_equal(again.table(), found().table())
    frame().to_csv(tmp_path / "rows.csv", index=False)
    read = pb.compare(
        tmp_path / "rows.csv", group="F", kinds=KINDS, folds=3, poolings=POOLINGS, **GIVEN
    )
    pd.testing.assert_frame_equal(read.table(), found().table(), rtol=1e-9)
    assert "120 held-out rows in 3 folds" in repr(found())
    assert found().verdict.startswith("Networks with")


def test_inputs_and_columns_of_data_sets_have_no_density() -> None:
    rows = frame().assign(region=frame()["F"].map({"u": "north", "v": "south", "w": "south"}))
    made = pb.compare(
        rows, group="F", columns=["x", "region", "sex"], inputs=["sex"], folds=2,
        poolings=["complete"],
    )  # fmt: skip
    assert set(made.networks["complete"].inputs) == {"region", "sex"}
    assert (made.loglik > -3).all()  # that of one column
