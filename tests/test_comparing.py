"""Comparison of poolings: folds, held-out predictions by hand, and what the truth is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import poolbn as pb
from poolbn.assess import comparison, folds
from poolbn.assess.folds import Folds, deal
from poolbn.inference import linear
from poolbn.moments.sums import Sums
from poolbn.run import parallel
from poolbn.tables import data

SIZES = {"a": 1, "b": 2, "c": 7, "d": 40, "e": 25}
NODES = ["X1", "X2", "X3", "X4"]

NAMED = {"pooled residuals": pb.Partial(residuals="pooled")}


def table(rows: int, *, heterogeneous: bool, data_sets: int = 4, seed: int = 0) -> pd.DataFrame:
    dag = pb.random_dag(4, 2, seed=seed)
    true = pb.random_network(dag, data_sets, seed=seed, heterogeneous=heterogeneous)
    return pb.random_table(true, rows, seed=seed)


@pytest.fixture(scope="module")
def uneven() -> pd.DataFrame:
    """Data sets of all sizes, interleaved."""
    frame = table(60, heterogeneous=True, data_sets=5)
    parts = [part.iloc[:n] for (_, part), n in zip(frame.groupby("F"), SIZES.values(), strict=True)]
    named = [part.assign(F=name) for part, name in zip(parts, SIZES, strict=True)]
    return pd.concat(named).sample(frac=1, random_state=1).reset_index(drop=True)


def dealt(
    frame: pd.DataFrame, k: int = 5, *, seed: int = 0, batch_rows: int | None = None
) -> Folds:
    rows = data.read(frame, group="F", columns=None, missing="error", batch_rows=batch_rows)
    return deal(rows, k, seed)


def frame_of(found: Folds, at: np.ndarray) -> pd.DataFrame:
    """The kept rows as a table."""
    rows = pd.DataFrame(found.values[at], columns=list(found.total.names))
    return rows.assign(F=[found.total.levels[j] for j in found.codes[at]])


# Folds


def test_statistics_of_folds_add_up(uneven: pd.DataFrame) -> None:
    found = dealt(uneven)
    whole = pb.stats(uneven, group="F")
    np.testing.assert_array_equal(found.total.scatter, whole.scatter)
    assert len(found.values) == len(uneven)
    for k, train in enumerate(found.train):
        assert train.levels == whole.levels
        assert (train.n > 0).all()
        held = pb.stats(frame_of(found, found.fold == k), group="F")
        both = train + held
        np.testing.assert_array_equal(both.n, whole.n)
        np.testing.assert_allclose(both.mean, whole.mean, rtol=1e-12)
        np.testing.assert_allclose(both.scatter, whole.scatter, rtol=1e-10, atol=1e-10)
        literal = pb.stats(frame_of(found, found.fold != k), group="F")
        np.testing.assert_array_equal(literal.n[order(literal, train)], train.n)


def order(one: pb.GroupStats, other: pb.GroupStats) -> list[int]:
    return [one.levels.index(level) for level in other.levels]


def test_rows_are_spread_evenly_and_lone_ones_stay(uneven: pd.DataFrame) -> None:
    found = dealt(uneven)
    for j, level in enumerate(found.total.levels):
        per_fold = np.bincount(found.fold[found.codes == j] + 1, minlength=6)
        if SIZES[str(level)] == 1:
            assert per_fold[0] == 1
        else:
            assert per_fold[0] == 0
            assert per_fold[1:].max() - per_fold[1:].min() <= 1
    assert (dealt(uneven, seed=1).fold != found.fold).any()


def test_folds_do_not_depend_on_batches(uneven: pd.DataFrame) -> None:
    one, other = dealt(uneven), dealt(uneven, batch_rows=4)
    np.testing.assert_array_equal(one.fold, other.fold)
    np.testing.assert_array_equal(one.values, other.values)


def test_of_many_rows_a_random_sample_is_kept(
    uneven: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = dealt(uneven)
    monkeypatch.setattr(folds, "_KEPT", 15)
    kept = np.zeros(len(uneven))
    for seed in range(100):
        found = dealt(uneven, seed=seed, batch_rows=8)
        assert len(found.values) == 15
        at = [int(np.flatnonzero((whole.values == row).all(axis=1))[0]) for row in found.values]
        np.testing.assert_array_equal(whole.codes[at], found.codes)
        kept[at] += 1
    p = 15 / len(uneven)
    assert np.abs(kept / 100 - p).max() < 4 * np.sqrt(p * (1 - p) / 100)
    np.testing.assert_allclose(found.total.scatter, whole.total.scatter, rtol=1e-12)


# Predictions by hand


@pytest.fixture(scope="module")
def mixed() -> pd.DataFrame:
    return table(30, heterogeneous=True)


@pytest.fixture(scope="module")
def found(mixed: pd.DataFrame) -> pb.Comparison:
    return pb.compare(mixed, group="F", folds=5)


def test_held_out_rows_are_scored_as_by_hand(mixed: pd.DataFrame, found: pb.Comparison) -> None:
    parts = dealt(mixed)
    truth, guesses = [], []
    squares = {"known": np.zeros(4), "unknown": np.zeros(4)}
    for k, train in enumerate(parts.train):
        held = frame_of(parts, parts.fold == k)
        assert found.rows[k] == len(held)
        for pooling in found.poolings:
            net = pb.learn(train, pooling=NAMED.get(pooling, pooling))
            by_fold = found.by_fold()
            assert by_fold.loc[k, pooling] == pytest.approx(net.loglik(held) / len(held))
        net = pb.learn(train, pooling="partial")
        for i, node in enumerate(NODES):
            for kind, rows in (("known", held), ("unknown", held.drop(columns="F"))):
                miss = net.predict(rows, node, plugin=True)["mean"] - held[node]
                squares[kind][i] += (miss**2).sum()
        truth += held["F"].tolist()
        guesses += net.classify(held)["most_probable"].tolist()
    sd = mixed[NODES].std(ddof=0).to_numpy()
    by_variable = found.by_variable()
    for kind, square in squares.items():
        expected = np.sqrt(square / len(mixed)) / sd
        np.testing.assert_allclose(by_variable[kind, "partial"], expected, rtol=1e-6)
        assert found.table().loc["partial", kind] == pytest.approx(expected.mean())
    f1 = pb.metrics.f1(truth, guesses, found.networks["partial"].levels).mean
    assert found.table().loc["partial", "f1"] == pytest.approx(f1)


def test_data_sets_left_out_are_scored_as_by_hand(
    mixed: pd.DataFrame, found: pb.Comparison
) -> None:
    total = 0.0
    for level, part in mixed.groupby("F"):
        rest = mixed[mixed["F"] != level]
        for pooling in ("complete", "partial"):
            net = pb.learn(rest, group="F", pooling=NAMED.get(pooling, pooling)).adapt(name=level)
            loglik = net.loglik(part)
            assert found.by_data_set().loc[level, pooling] == pytest.approx(loglik / len(part))
        total += loglik
    assert found.table().loc["partial", "new_data_set"] == pytest.approx(total / len(mixed))
    assert np.isnan(found.table().loc["none", "new_data_set"])
    assert "no population" in found.table().loc["none", "note"]


def test_networks_are_those_of_all_rows(mixed: pd.DataFrame, found: pb.Comparison) -> None:
    assert list(found.networks) == list(found.table().index)
    for pooling, net in found.networks.items():
        alone = pb.learn(mixed, group="F", pooling=NAMED.get(pooling, pooling))
        assert (net.score, net.dag) == (alone.score, alone.dag)
        row = found.table().loc[pooling]
        assert (row["score"], row["arcs"]) == (alone.score, len(alone.dag.arcs))


def test_differences_are_paired_over_folds(found: pb.Comparison) -> None:
    by_fold, best = found.by_fold(), found.best
    assert best == found.table()["loglik"].idxmax()
    for pooling in found.poolings:
        each = by_fold[best] - by_fold[pooling]
        difference = found.difference(pooling)
        mean = np.average(each, weights=by_fold["rows"])
        assert difference.mean == pytest.approx(mean, abs=1e-12)
        assert difference.se == pytest.approx(each.std() / np.sqrt(5), abs=1e-12)
        assert difference.folds == (each > 0).sum()
        row = found.table().loc[pooling]
        assert row["folds_worse"] == difference.folds
        assert row["difference"] == difference.mean
        assert found.table().loc[best, "loglik"] - row["loglik"] == pytest.approx(mean, abs=1e-9)


def test_the_same_again_and_in_processes(
    mixed: pd.DataFrame, found: pb.Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_WORTH_PROCESSES", 0.0)
    monkeypatch.setattr(comparison, "available_cores", lambda: 2)
    again = pb.compare(mixed, group="F", folds=5)
    pd.testing.assert_frame_equal(found.table(), again.table(), check_exact=True)
    pd.testing.assert_frame_equal(found.by_variable(), again.by_variable(), check_exact=True)
    other = pb.compare(mixed, group="F", folds=5, seed=1, poolings=["complete"])
    assert other.table()["loglik"].iloc[0] != found.table().loc["complete", "loglik"]


def test_options_reach_the_search(mixed: pd.DataFrame) -> None:
    rules = pb.Constraints(max_parents=0)
    poolings = ["none", pb.Partial(random="intercept")]
    found = pb.compare(mixed, group="F", folds=2, poolings=poolings, constraints=rules)
    assert (found.table()["arcs"] == 0).all()
    assert found.poolings == ("none", repr(poolings[1]))
    assert "Partial(random='intercept'" in found.verdict


# Which pooling predicts best


def test_data_sets_that_are_alike_are_best_with_complete_pooling() -> None:
    found = pb.compare(table(40, heterogeneous=False), group="F")
    assert not found.difference("complete").clear
    assert found.difference("none").clear
    assert found.difference("none").mean > 0.05
    assert "complete pooling" in found.verdict.split(". ")[0]


def test_different_data_sets_with_few_rows_are_best_with_partial_pooling() -> None:
    """The paper's claim: strength is shared where data sets have too few rows of their own."""
    frame = table(8, heterogeneous=True, data_sets=20, seed=1)
    found = pb.compare(frame, group="F")
    for pooling in ("complete", "none"):
        assert found.difference(pooling).clear
        assert found.difference(pooling).folds >= 8
    assert found.best in {"partial", "pooled residuals"}
    assert found.verdict.startswith(found.headline)
    assert "predict held-out rows best" in found.headline


def test_different_data_sets_with_many_rows_do_not_are_best_with_complete_pooling() -> None:
    found = pb.compare(table(400, heterogeneous=True), group="F", folds=5)
    assert found.difference("complete").mean > 0.5
    assert found.difference("complete").folds == 5
    assert found.difference("none").mean < found.difference("complete").mean / 20
    assert "10" not in found.verdict.split(")")[0]
    assert "(in 5 of 5 folds)" in found.verdict


# Trouble


def test_what_cannot_be_fitted_is_said(uneven: pd.DataFrame) -> None:
    found = pb.compare(uneven, group="F", folds=5)
    row = found.table().loc["none"]
    assert row["loglik"] == -np.inf
    assert row["difference"] == np.inf
    assert np.isnan(row["known"])
    assert np.isnan(row["f1"])
    assert "too few rows" in row["note"]
    assert "5 of 5 folds" in row["note"]
    assert "data set 'b' has 1 row" in row["note"] or "data set 'a' has 1 row" in row["note"]
    assert found.best != "none"
    assert "'none' has no fit" in found.verdict
    assert np.isfinite(found.table().loc["partial", "loglik"])


def test_two_data_sets_are_too_few_to_leave_one_out(mixed: pd.DataFrame) -> None:
    two = mixed[mixed["F"].isin(mixed["F"].unique()[:2])]
    row = pb.compare(two, group="F", folds=3).table()
    assert np.isfinite(row.loc["complete", "new_data_set"])
    assert np.isnan(row.loc["partial", "new_data_set"])
    assert "two data sets at least" in row.loc["partial", "note"]
    assert row.loc["complete", "note"] == ""


def test_data_sets_with_fewer_rows_than_folds() -> None:
    frame = table(3, heterogeneous=False, data_sets=6)
    found = pb.compare(frame, group="F", folds=10, poolings=["complete", "partial"])
    assert found.rows.sum() == 18
    assert np.isfinite(found.table().loc["complete", "loglik"])


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_a_column_that_is_constant_in_one_training_set_is_predicted() -> None:
    """It varies in one row of a data set, which is in one fold."""
    frame = table(12, heterogeneous=True, data_sets=2, seed=3)
    first = frame["F"] == frame["F"].iloc[0]
    frame.loc[first, "X1"] = [0.0] * 11 + [1.0]
    found = pb.compare(frame, group="F", folds=6, poolings=["complete", "none"])
    assert np.isfinite(found.loglik).all()
    row = found.table().loc["none"]
    assert row["loglik"] > -20
    assert 0 < row["known"] < 2


def test_of_many_data_sets_some_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "_LEFT_OUT", 3)
    frame = table(6, heterogeneous=False, data_sets=6)
    found = pb.compare(frame, group="F", folds=2, poolings=["complete"])
    assert len(found.left_out) == len(set(found.left_out)) == 3
    assert list(found.by_data_set().index) == list(found.left_out)


def test_predictions_in_parts_are_the_same(
    mixed: pd.DataFrame, found: pb.Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear, "_PREDICTIONS", 1)
    again = pb.compare(mixed, group="F", folds=5, poolings=["partial"])
    np.testing.assert_allclose(again.known[0], found.known[2], rtol=1e-12)
    assert again.f1[0] == found.f1[2]


def test_missing_cells_can_be_dropped(mixed: pd.DataFrame) -> None:
    gaps = mixed.assign(text="x")
    gaps.loc[2, "X3"] = np.nan
    options = {"group": "F", "folds": 2, "columns": NODES, "poolings": ["complete"]}
    one, other = pb.compare(gaps, missing="drop", **options), pb.compare(gaps.dropna(), **options)
    pd.testing.assert_frame_equal(one.table(), other.table())


def test_what_is_printed(found: pb.Comparison, mixed: pd.DataFrame) -> None:
    text = repr(found)
    assert text.startswith(
        "Comparison: 4 poolings on 4 data sets, 120 rows, 4 columns; 120 held-out"
    )
    for pooling in found.poolings:
        assert f"\n{pooling} " in text
    assert found.verdict.split(".")[0] in text.replace("\n", " ")
    assert max(map(len, text.split("\n"))) <= 110
    html = found._repr_html_()
    assert "<table" in html
    assert found.verdict.split("±")[0] in html


def test_an_interrupt_is_an_interrupt(mixed: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self, words) -> None:
        if words().startswith("comparing: 5 of"):
            raise KeyboardInterrupt

    monkeypatch.setattr(comparison.Progress, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        pb.compare(mixed, group="F", folds=5)


# Many folds


def test_the_number_of_folds_is_checked(uneven: pd.DataFrame) -> None:
    with pytest.raises(pb.OptionError, match=r"folds=1000000 is more than the 20,000 rows"):
        pb.compare(uneven, group="F", folds=10**6)
    with pytest.raises(pb.OptionError, match=r"folds=76 is more than there are rows, 75"):
        pb.compare(uneven, group="F", folds=76)


def test_as_many_folds_as_rows(uneven: pd.DataFrame) -> None:
    found = dealt(uneven, 75)
    assert len(found.train) == 75
    whole = pb.stats(uneven, group="F")
    for k, train in enumerate(found.train):
        lost = np.bincount(found.codes[found.fold == k], minlength=5)
        np.testing.assert_array_equal(train.n, whole.n - lost)


def test_the_work_for_folds_grows_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = table(300, heterogeneous=True)
    added = []

    def add(self: Sums, *parts: np.ndarray) -> None:
        added.append(len(parts[0]))
        usual(self, *parts)

    usual = Sums.add
    monkeypatch.setattr(Sums, "add", add)
    counts = []
    for k in (25, 50, 100):
        added.clear()
        dealt(frame, k)
        counts.append(len(added))
    assert counts == [75, 150, 300]
