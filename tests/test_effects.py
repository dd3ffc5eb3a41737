from __future__ import annotations

import dataclasses
import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers import simulate
from scipy.stats import sem, t

import poolbn as pb

FRAME = simulate(7, data_sets=4, rows=15, parents=3)
COLUMNS = [
    "parent", "level", "child", "outcome", "scale", "pooling", "effect", "se", "df", "lower",
    "upper", "between_sd", "opposite",
]  # fmt: skip
each_pooling = pytest.mark.parametrize("pooling", ["complete", "none", "partial", "auto"])


@cache
def network(pooling: str) -> pb.Network:
    return pb.learn(FRAME, group="F", pooling=pooling)


def with_coef(net: pb.Network, child: str, **changes: np.ndarray | None) -> pb.Network:
    fit = dataclasses.replace(net.fits[child], **changes)
    return dataclasses.replace(net, fits={**net.fits, child: fit})


@each_pooling
def test_a_row_for_each_arc(pooling: str) -> None:
    net = network(pooling)
    effects = net.effects()
    assert len(effects) > 0
    assert list(effects) == [*COLUMNS, *net.levels]
    assert list(zip(effects["parent"], effects["child"], strict=True)) == list(net.dag.arcs)
    for row in effects.to_dict("records"):
        fit = net.fits[row["child"]]
        k = 1 + fit.parents.index(row["parent"])
        assert row["pooling"] == str(fit.pooling)
        assert [row[level] for level in net.levels] == fit.coef[:, k].tolist()
        if fit.fixed is None:
            assert row["effect"] == pytest.approx(np.mean(fit.coef[:, k]))
        else:
            assert row["effect"] == fit.fixed[k]
            assert (row["se"], row["df"]) == (fit.population_se[k], fit.population_df[k])
        if fit.random_cov is None:
            assert math.isnan(row["between_sd"])
        else:
            assert row["between_sd"] == np.sqrt(fit.random_cov[k, k])


@each_pooling
@pytest.mark.parametrize("interval", [0.5, 0.95, 0.999])
def test_intervals_are_those_of_student(pooling: str, interval: float) -> None:
    effects = network(pooling).effects(interval)
    lower, upper = t.interval(
        interval, df=effects["df"], loc=effects["effect"], scale=effects["se"]
    )
    np.testing.assert_allclose(effects["lower"], lower, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(effects["upper"], upper, rtol=1e-10, atol=1e-12)


def test_without_pooling_the_effect_is_the_mean_of_separate_regressions() -> None:
    stats = pb.stats(FRAME, group="F")
    net = pb.learn(
        stats, pooling="none", start=[("x1", "y"), ("x2", "y")], search=pb.HillClimb(max_iter=0)
    )
    slopes = []
    for _, rows in FRAME.groupby("F", sort=False):
        Z = np.column_stack([np.ones(len(rows)), rows[["x1", "x2"]]])
        slopes.append(np.linalg.lstsq(Z, rows["y"].to_numpy(), rcond=None)[0][1:])
    effects = net.effects()
    np.testing.assert_allclose(effects["effect"], np.mean(slopes, axis=0), rtol=1e-10)
    np.testing.assert_allclose(effects["se"], sem(slopes), rtol=1e-10)
    assert (effects["df"] == 3).all()
    assert effects["between_sd"].isna().all()


@pytest.mark.parametrize(
    ("coef", "fixed", "share"),
    [
        ([1.0, 2.0, 3.0, 4.0], 2.5, 0.0),
        ([1.0, -2.0, 3.0, -1e-300], 1e-300, 0.5),
        ([-1.0, -2.0, -3.0, 4.0], -0.5, 0.25),
        ([-1.0, -2.0, -3.0, -4.0], 2.0, 1.0),
        ([0.0, 0.0, 1.0, -1.0], 1.0, 0.25),
        ([1.0, -1.0, 1.0, -1.0], 0.0, 0.0),
    ],
)
def test_the_share_of_data_sets_with_the_opposite_sign(
    coef: list[float], fixed: float, share: float
) -> None:
    stats = pb.stats(FRAME[["x1", "y", "F"]], group="F")
    net = pb.learn(stats, start=[("x1", "y")], search=pb.HillClimb(max_iter=0))
    net = with_coef(
        net, "y", coef=np.column_stack([np.zeros(4), coef]), fixed=np.array([0.0, fixed])
    )
    assert net.effects()["opposite"].tolist() == [share]


def test_complete_pooling_has_no_opposite_signs() -> None:
    assert (network("complete").effects()["opposite"] == 0).all()


def test_without_arcs() -> None:
    net = pb.learn(FRAME[["x1", "F"]], group="F")
    assert net.dag.arcs == ()
    assert net.effects().empty
    assert list(net.effects()) == [*COLUMNS, *net.levels]
    assert repr(net).startswith("Network: 1 node, 0 arcs, 4 data sets, 60 rows")


def test_data_sets_may_be_called_like_columns() -> None:
    names = {"set 0": "se", "set 1": "effect", "set 2": 3, "set 3": "lower"}
    frame = FRAME.assign(F=pd.Series([names[name] for name in FRAME["F"]], dtype=object))
    net = pb.learn(frame, group="F", pooling="partial")
    expected = ["se (data set)", "effect (data set)", 3, "lower (data set)"]
    assert list(net.effects()) == [*COLUMNS, *expected]
    assert repr(net) == repr(network("partial"))
