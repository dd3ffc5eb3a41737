"""Sums, sums by pattern, counts, rows and completed rows answer the same questions alike."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import poolbn as pb
from poolbn.moments.data import Data, is_data
from poolbn.monte_carlo_em import MonteCarloEM

KINDS = ("sums", "filled sums", "patterns", "counts", "rows", "completed rows")


@cache
def data(kind: str) -> Data:
    rng = np.random.default_rng(3)
    x = rng.normal(size=120)
    frame = pd.DataFrame({"site": list("abc") * 40, "x": x, "y": x + rng.normal(size=120)})
    levels = frame.assign(z=np.where(frame["y"] > 0, "high", "low"))
    gaps = frame.assign(y=frame["y"].where(rng.random(120) > 0.2))
    if kind == "sums":
        return pb.stats(frame, group="site")
    if kind in ("filled sums", "patterns"):
        filled = pb.stats(gaps, group="site", missing="em")
        return filled if kind == "filled sums" else filled.patterns
    if kind == "counts":
        return pb.stats(levels, group="site")
    if kind == "rows":
        return pb.table(levels, group="site")
    incomplete = levels.assign(z=levels["z"].where(rng.random(120) > 0.2))
    return MonteCarloEM(pb.table(incomplete, group="site", missing="em")).start()


@pytest.mark.parametrize("kind", KINDS)
def test_they_say_what_they_are_of(kind: str) -> None:
    of = data(kind)
    assert is_data(of)
    assert (of.group, of.levels, of.n.tolist(), of.n_rows) == (
        "site",
        ("a", "b", "c"),
        [40] * 3,
        120,
    )
    assert len(of.names) == len(of.kinds) == len(of.categories)
    assert [of.kind(name) for name in of.names] == list(of.kinds)
    assert [bool(levels) for levels in of.categories] == [k == "discrete" for k in of.kinds]
    assert of.missing.shape == (3, len(of.names))
    assert bool(of.missing.any()) == of.imputed
    assert (of.patterns is not None) == of.imputed
    assert of.with_inputs(["x"]).inputs == ("x",)
    assert of.select(["y", "x"]).names == ("y", "x")
    assert of.stats(["x"]).names == ("x",)


@pytest.mark.parametrize("kind", KINDS)
def test_data_sets_taken_apart_and_joined_have_the_same_sums(kind: str) -> None:
    of = data(kind)
    every = of.data_sets([2, 0, 1], ["c", "a", "b"])
    assert every.levels == ("c", "a", "b")
    known, again = of.stats(), every.stats()
    np.testing.assert_allclose(again.mean, known.mean[[2, 0, 1]], rtol=1e-6)
    joined = of.joined([1], "others")
    assert joined.levels == ("b", "others")
    assert joined.n.tolist() == [40, 80]
    if not of.imputed or of.has_rows:  # what EM fills depends on the data set
        mean = joined.stats().mean
        np.testing.assert_allclose(mean[0], known.mean[1])
        np.testing.assert_allclose(mean[1], (known.mean[0] + known.mean[2]) / 2)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_there_or_one_error_says_that_they_are_needed(kind: str) -> None:
    of = data(kind)
    if of.has_rows:
        rows = of.cases(["x"])
        weight = np.ones(len(rows.data_set)) if rows.n is None else rows.n
        assert weight.sum() == pytest.approx(120)
        return
    with pytest.raises(pb.DataError, match=r"'x' needs rows, which .* do not hold; use pb\.table"):
        of.cases(["x"])


@pytest.mark.parametrize("kind", KINDS)
def test_all_are_scored_fitted_and_drawn(kind: str) -> None:
    of = data(kind)
    assert np.isfinite(pb.score(of, "[x][y|x]" + "[z]" * ("z" in of.names)))
    fit = pb.fit_node(of, "y", ["x"], pooling="complete")
    assert fit.child == "y"
    assert fit.n_rows <= 120
    assert fit.n_rows == 120 or of.imputed  # cells that are not there do not count
    if not of.provisional:
        assert not of.drawn(0).missing.any()
