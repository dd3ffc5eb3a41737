"""What scores charge where there are units inside data sets."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import comb

import poolbn as pb
from poolbn.scoring.criteria import InformationCriterion


def visits(seed: int = 0) -> pd.DataFrame:
    """Three clinics in which 7, 5 and 4 patients have several visits, and others one."""
    rng = np.random.default_rng(seed)
    sizes = {"a": [2] * 4 + [3] * 3 + [1] * 5, "b": [4] * 5 + [1] * 2, "c": [3] * 4 + [1] * 9}
    rows = [
        (clinic, f"{clinic}{i}", level)
        for clinic, own in sizes.items()
        for i, (m, level) in enumerate(zip(own, rng.normal(size=len(own)), strict=True))
        for _ in range(m)
    ]
    frame = pd.DataFrame(rows, columns=["clinic", "patient", "level"])
    x = rng.normal(size=len(frame))
    y = 0.5 * x + frame.pop("level") + rng.normal(size=len(frame))
    return frame.assign(x=x, y=y, z=rng.normal(size=len(frame)))


@pytest.mark.parametrize(
    ("model", "rows", "groups", "own"),
    [(pb.Complete(), 3, 0, 0), (pb.NoPooling(), 0, 0, 3), (pb.Partial(), 3, 3, 0)],
)
def test_variances_between_units_are_charged_for_units_with_several_rows(
    model: pb.Complete | pb.NoPooling | pb.Partial, rows: int, groups: int, own: int
) -> None:
    """An intercept, a slope and a residual variance, in all data sets or in each."""
    frame = visits()
    several = [7, 5, 4]
    clinics = frame.groupby("clinic").size().to_numpy()
    n, F, q = len(frame), 3, 2
    scores = InformationCriterion("bic-h").on(pb.stats(frame, group=["clinic", "patient"]), model)
    (found,) = scores.scores([(1, (0,))], final=True)
    for_rows, alone = (m / (m - q - 2) - 1 for m in (n, n / F))
    units = math.log(sum(several)) / 2 + for_rows
    if own:
        units = float(np.log(several).sum()) / 2 + F * alone
    charge = (
        rows * (math.log(n) / 2 + for_rows)
        + groups * ((math.log(n) + math.log(F)) / 4 + for_rows)
        + own * F * (np.log(clinics).mean() / 2 + alone)
        + units
        + math.log(comb(2, 1)) / 2
    )
    assert found == pytest.approx(scores.fit((1, (0,))).loglik - charge, rel=1e-10)
    plain = InformationCriterion("bic").on(pb.stats(frame, group=["clinic", "patient"]), model)
    (other,) = plain.scores([(1, (0,))], final=True)
    parameters = rows + groups + F * own + (F if own else 1)
    assert other == pytest.approx(
        plain.fit((1, (0,))).loglik - parameters * math.log(n) / 2, rel=1e-10
    )


@pytest.mark.parametrize("pooling", ["partial", "complete", "none"])
def test_a_logit_has_the_same_charge(pooling: str) -> None:
    frame = visits(1).assign(y=lambda t: (t["y"] > 0).map({True: "yes", False: "no"}))
    table = pb.table(frame, group=["clinic", "patient"])
    fit = pb.fit_node(table, "y", ["x"], pooling=pooling)
    more = fit.counts.own_units if pooling == "none" else fit.counts.units
    assert more == (3 if pooling == "none" else 1)
    assert fit.n_params == sum(fit.counts)


def test_counts_of_units_are_saved(tmp_path: object) -> None:
    frame = visits()
    path = f"{tmp_path}/net.json"
    for group, length in ((["clinic", "patient"], 5), ("clinic", 3)):
        kept = frame if length == 5 else frame.drop(columns="patient")
        net = pb.learn(kept, group=group, pooling="none")
        net.save(path)
        again = pb.load(path)
        for node in net.nodes:
            assert again.fits[node].counts == net.fits[node].counts
            assert (net.fits[node].counts.own_units > 0) == (length == 5)


# Scores inside data sets


def together(seed: int, slope: float, rho: float, clinics: int = 120) -> pb.Table:
    """Levels of clinics that go together; x, z and the flag w beside a discrete y and a count c."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(clinics * 4), 3)
    clinic, n = patient // 4, len(patient)
    common = rng.normal(size=clinics)

    def noise(sd: float) -> np.ndarray:
        level = np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.normal(size=clinics)
        return level[clinic] + sd * rng.normal(size=clinics * 4)[patient]

    x, z = (noise(0.5) + rng.normal(size=n) for _ in range(2))
    frame = pd.DataFrame({"clinic": clinic, "patient": patient, "x": x, "z": z})
    frame["w"] = np.where(noise(0.5) + rng.logistic(size=n) > 0, "yes", "no")
    frame["y"] = np.where(noise(0.7) + slope * x + rng.logistic(size=n) > 0, "yes", "no")
    frame["c"] = rng.poisson(np.exp(0.5 * noise(0.7) + slope / 2 * x))
    return pb.table(frame, group=["clinic", "patient"], kinds={"c": "count"})


def gains(table: pb.Table, families: list[tuple[int, int]]) -> tuple[list[float], list[float]]:
    """What a parent brings a node by bic-w and by bic-h."""
    found = []
    for name in ("bic-w", "bic-h"):
        scores = InformationCriterion(name).on(table, pb.Partial())
        one = scores.scores([(child, (parent,)) for child, parent in families])
        found.append((one - scores.scores([(child, ()) for child, _ in families])).tolist())
    return found[0], found[1]


def test_levels_that_go_together_are_no_arcs_with_units_either() -> None:
    kept, fooled = [], []
    for seed in range(4):
        table = together(seed, 0.0, 1.0)
        at = table.names.index
        families = [(at(c), at(p)) for c in ("y", "c") for p in ("x", "z", "w")]
        ours, plain = gains(table, families)
        kept += ours
        fooled += [gain for gain, (_, p) in zip(plain, families, strict=True) if p != at("w")]
    assert np.mean(np.array(kept) < 0) >= 0.95
    assert np.mean(np.array(fooled) > 0) >= 0.5


def test_little_is_lost_where_levels_are_independent() -> None:
    ours, plain = 0.0, 0.0
    for seed in range(4):
        table = together(10 + seed, 0.6, 0.0, 40)
        at = table.names.index
        inside, random = gains(table, [(at("y"), at("x")), (at("c"), at("x"))])
        ours, plain = ours + sum(inside), plain + sum(random)
    assert plain > 100
    # Of the variance of x, 1 of 2.25 is between clinics, where it tells less than inside them.
    assert 0.6 * plain < ours < 1.1 * plain
