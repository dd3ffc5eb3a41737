"""Missing cells in tables with columns of all kinds: draws, learning, imputations."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats as st
from scipy.special import logsumexp

import poolbn as pb
from poolbn.inference.engine import HeldOut
from poolbn.inference.gibbs import Rows, Sampler
from poolbn.inference.locals import Local, locals_of
from poolbn.learning import as_plan
from poolbn.moments.table import FilledTable, gaps_of
from poolbn.monte_carlo_em import MonteCarloEM
from poolbn.nodes.intervals import rubin


def drawn(seed: int, rows: int = 60, sets: int = 4) -> pd.DataFrame:
    """arm -> x, sex -> x, x -> event, x -> visits; z is by itself."""
    rng = np.random.default_rng(seed)
    n = rows * sets
    site = np.repeat([f"site{j}" for j in range(sets)], rows)
    shift = np.repeat(rng.normal(0, 0.5, sets), rows)
    arm, sex = rng.integers(2, size=n), rng.integers(3, size=n)
    x = 1.2 * arm + np.array([0, 0.8, -0.8])[sex] + shift + rng.normal(size=n)
    event = rng.random(n) < 1 / (1 + np.exp(-1.5 * x))
    visits = rng.poisson(np.exp(0.5 + 0.4 * x))
    return pd.DataFrame(
        {
            "site": site,
            "arm": np.where(arm, "new", "old"),
            "sex": np.array(["f", "m", "x"])[sex],
            "x": x,
            "z": rng.normal(size=n),
            "event": np.where(event, "yes", "no"),
            "visits": visits.astype(float),
        }
    )


def incomplete(table: pd.DataFrame, share: float, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    names = [name for name in table if name != "site"]
    missing = rng.random((len(table), len(names))) < share
    return table.assign(**table[names].mask(missing))


KINDS = {"visits": "count"}
READING = {"group": "site", "kinds": KINDS}


def learned(table: pd.DataFrame, **options: object) -> pb.Network:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.DataWarning)
        return pb.learn(table, **READING, **options)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return incomplete(drawn(1), 0.15)


@pytest.fixture(scope="module")
def network(table: pd.DataFrame) -> pb.Network:
    return learned(table, missing="em")


# Draws of cells, by a network that is known


ARCS = [("arm", "x"), ("sex", "x"), ("x", "event"), ("x", "visits"), ("arm", "event"), ("z", "x")]


@pytest.fixture(scope="module")
def known() -> tuple[pb.Network, list[Local]]:
    """A network in which x has parents and children of all kinds, and its nodes by name."""
    only = pb.Constraints(required=ARCS, max_parents=3)
    net = learned(drawn(2, 100), constraints=only, start=ARCS)
    names = sorted(net.dag.nodes)
    fits = {name: net.fits[name] for name in names}
    return net, list(locals_of(fits, certain=net.levels))


GRID = np.linspace(-8, 8, 3201)
VALUES = {"arm": range(2), "event": range(2), "sex": range(3), "visits": range(80), "x": GRID,
          "z": GRID[::40]}  # fmt: skip


def exact(nodes: list[Local], row: np.ndarray, lacks: tuple[str, ...]) -> np.ndarray:
    """Probabilities of all values of what a row lacks, by brute force."""
    names = sorted(VALUES)
    every = np.array(list(product(*(VALUES[name] for name in lacks))), dtype=float)
    cells = np.tile(row, (len(every), 1))
    cells[:, [names.index(name) for name in lacks]] = every
    values, sets = dict(enumerate(cells.T.copy())), np.zeros(len(every), dtype=np.int64)
    logs = sum(
        node.of.log_density(values[k], node.named(values[p] for p in node.parents), sets)
        for k, node in enumerate(nodes)
    )
    p = np.exp(logs - logs.max())
    return (p / p.sum()).reshape([len(VALUES[name]) for name in lacks])


LACKS = [("x",), ("visits",), ("event",), ("arm",), ("x", "visits"), ("arm", "x"), ("sex", "event"),
         ("sex", "arm"), ("x", "event")]  # fmt: skip


@pytest.mark.parametrize("lacks", LACKS, ids="-".join)
def test_draws_have_the_distribution_given_the_row(
    known: tuple[pb.Network, list[Local]], lacks: tuple[str, ...]
) -> None:
    _, nodes = known
    names, n = sorted(VALUES), 4000
    row = np.array([{"arm": 1, "event": 1, "sex": 2, "visits": 6, "x": 0.2, "z": 0.4}[name]
                    for name in names], dtype=float)  # fmt: skip
    missing = np.zeros((len(names), n), dtype=bool)
    missing[[names.index(name) for name in lacks]] = True
    rows = Rows(np.tile(row[:, None], n), missing, np.zeros(n, dtype=np.int64))
    made = Sampler(nodes, np.ones(len(names))).sweeps(rows, 40, [7])
    assert (made[~missing] == rows.values[~missing]).all()
    p = exact(nodes, row, lacks)
    for axis, name in enumerate(lacks):
        own = p.sum(axis=tuple(a for a in range(len(lacks)) if a != axis))
        x, at = made[names.index(name)], np.asarray(VALUES[name], dtype=float)
        mean = own @ at
        sd = math.sqrt(own @ (at - mean) ** 2)
        assert abs(x.mean() - mean) < 4 * sd / math.sqrt(n)
        fourth = own @ (at - mean) ** 4
        error = math.sqrt((fourth - sd**4) / n)
        assert abs(((x - mean) ** 2).mean() - sd**2) < 4 * error + 1e-9
    if len(lacks) == 2:
        first, second = (np.asarray(VALUES[name], dtype=float) for name in lacks)
        product_mean = first @ p @ second
        error = math.sqrt(((first**2) @ p @ (second**2) - product_mean**2) / n)
        x, y = (made[names.index(name)] for name in lacks)
        assert abs((x * y).mean() - product_mean) < 4 * error


def test_draws_agree_with_the_posterior_of_the_network(
    known: tuple[pb.Network, list[Local]],
) -> None:
    net, nodes = known
    names, n = sorted(VALUES), 4000
    row = np.array([1, 1, 2, 6, 0.2, 0.4])
    missing = np.zeros((6, n), dtype=bool)
    missing[names.index("event")] = True
    rows = Rows(np.tile(row[:, None], n), missing, np.zeros(n, dtype=np.int64))
    made = Sampler(nodes, np.ones(6)).sweeps(rows, 2, [3])
    given = {"arm": "old", "sex": "x", "visits": 6, "x": 0.2, "z": 0.4, "site": "site0"}
    said = net.predict(pd.DataFrame([given]), "event", plugin=True)
    p = float(said.filter(like="yes").iloc[0, 0])
    assert abs(made[names.index("event")].mean() - p) < 4 * math.sqrt(p * (1 - p) / n)


# Learning


def test_all_rows_are_used(table: pd.DataFrame, network: pb.Network) -> None:
    assert network.n_rows == len(table)
    names = list(network.dag.nodes)
    by_site = table.groupby("site")[names].agg(lambda own: int(own.isna().sum()))
    found = network.missing_cells()
    assert (found.T.to_numpy() == by_site.loc[list(found.columns)].to_numpy()).all()
    assert f"x {int(table['x'].isna().sum())}" in str(network)
    assert {frozenset(arc) for arc in network.dag.arcs} >= {
        frozenset(pair) for pair in (("arm", "x"), ("x", "event"), ("x", "visits"))
    }


def test_nothing_missing_is_as_with_error() -> None:
    full = drawn(3)
    one, two = learned(full), learned(full, missing="em")
    assert one.to_json() == two.to_json()
    assert two.missing is None


@pytest.mark.slow
def test_the_same_rows_give_the_same_bits(table: pd.DataFrame, network: pb.Network) -> None:
    again = learned(table, missing="em")
    assert again.to_json() == network.to_json()


@pytest.mark.slow
def test_orders_do_not_matter(table: pd.DataFrame, network: pb.Network) -> None:
    other = table.sample(frac=1, random_state=1)
    other = other[["site", *sorted(set(other) - {"site"}, reverse=True)]]
    found = learned(other, missing="em")
    assert set(found.dag.arcs) == set(network.dag.arcs)
    assert found.score == pytest.approx(network.score, rel=1e-9)


def test_draws_do_not_depend_on_orders(table: pd.DataFrame) -> None:
    options = {**READING, "missing": "em"}
    one = MonteCarloEM(pb.table(table, **options))
    other = table.sample(frac=1, random_state=2)
    two = MonteCarloEM(pb.table(other[["site", *sorted(set(other) - {"site"})]], **options))
    np.testing.assert_allclose(one.first, two.first, rtol=1e-6, atol=1e-9)


def test_where_continuous_cells_are_missing_it_is_close_to_em_on_indicators() -> None:
    full = drawn(4, 100)
    gaps = full.assign(x=full["x"].mask(np.random.default_rng(1).random(len(full)) < 0.25))
    only = pb.Constraints(required=[("arm", "x"), ("z", "x")])
    columns = ["site", "arm", "x", "z"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.DataWarning)
        net = pb.learn(gaps[columns], group="site", missing="em", constraints=only)
        numbers = gaps[columns].assign(arm=(gaps["arm"] == "old").astype(float))
        other = pb.fit_node(pb.stats(numbers, group="site", missing="em"), "x", ["arm", "z"])
    fit = net.fits["x"]
    order = [("arm=old", "z").index(name) + 1 for name in fit.columns]
    assert np.abs(fit.fixed[order] - other.fixed[1:]).max() < 0.5 * other.fixed_se[1:].max()
    assert fit.sigma2[0] == pytest.approx(other.sigma2[0], rel=0.1)


def test_a_column_that_a_data_set_never_measured() -> None:
    gaps = drawn(5, 80)
    gaps.loc[gaps["site"] == "site1", ["event", "x"]] = None
    net = learned(gaps, missing="em")
    assert net.n_rows == len(gaps)
    assert net.fits["event"].left_out == ("site1",)
    assert net.fits["x"].left_out == ("site1",)
    assert net.fits["arm"].left_out == ()
    assert "not measured there" in str(net)
    assert np.isfinite(net.effects()["effect"]).all()


@pytest.mark.slow
def test_poolings(table: pd.DataFrame) -> None:
    small = table[["site", "arm", "x", "event"]]
    for pooling in ("complete", "none", "auto"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pb.DataWarning)
            net = pb.learn(small, group="site", missing="em", pooling=pooling)
        assert net.n_rows == int(small.drop(columns="site").notna().any(axis=1).sum())
        assert np.isfinite(net.score)
        assert np.isfinite(net.effects(by="data set")["se"]).all()


@pytest.mark.slow
def test_inputs_are_filled_too(table: pd.DataFrame) -> None:
    net = learned(table, missing="em", inputs=["arm"])
    assert net.inputs == ("arm",)
    assert net.dag.parents("arm") == ()


@pytest.mark.slow
def test_a_null_column_that_is_mostly_missing_gets_few_arcs() -> None:
    """BIC of a full null column hardly ever has an arc; 80% missing must not change that."""
    found = 0
    for seed in range(8):
        full = drawn(seed + 20, 40)[["site", "arm", "x", "z"]]
        lost = np.random.default_rng(seed).random(len(full)) < 0.8
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pb.DataWarning)
            gaps = full.assign(z=full["z"].mask(lost))
            net = pb.learn(gaps, group="site", missing="em")
        found += sum("z" in arc for arc in net.dag.arcs)
    assert found <= 1


# Scores, statistics, uncertainty


def test_expected_statistics_are_means_over_draws(table: pd.DataFrame) -> None:
    source = pb.table(table, **READING, missing="em")
    filled = MonteCarloEM(source, draws=3).start()
    assert isinstance(filled, FilledTable)
    stats = filled.stats(["x", "z", "event"])
    for j, (a, b) in enumerate(pairwise(source.offsets.tolist())):
        each = [values_of(source, filled, m)[:, a:b] for m in range(3)]
        together = np.concatenate(each, axis=1)
        np.testing.assert_allclose(stats.mean[j], together.mean(axis=1), rtol=1e-10, atol=1e-12)
        scatter = (b - a) * np.cov(together, bias=True)
        np.testing.assert_allclose(stats.scatter[j], scatter, rtol=1e-9, atol=1e-9)


def values_of(source: pb.Table, filled: FilledTable, draw: int) -> np.ndarray:
    values = source.values.copy()
    values[:, filled.incomplete] = filled.draws[draw]
    at = [source.names.index(name) for name in ("x", "z", "event")]
    return values[at]


def test_rubins_rules() -> None:
    """Barnard and Rubin (1999), by hand."""
    center, se, df = rubin(
        [np.array([1.0]), np.array([2.0]), np.array([3.0])], [np.array([0.5])] * 3,
        [np.array([np.inf])] * 3,
    )  # fmt: skip
    total = 0.25 + 4 / 3
    assert center == pytest.approx(2.0)
    assert se == pytest.approx(math.sqrt(total))
    assert df == pytest.approx(2 / (4 / 3 / total) ** 2)


def test_intervals_are_wider_than_those_of_the_full_data() -> None:
    full = drawn(6, 80)
    arcs = [("arm", "x"), ("x", "event")]
    small = full[["site", "arm", "x", "event"]]
    only = pb.Constraints(required=arcs, max_parents=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.DataWarning)
        whole = pb.learn(small, group="site", constraints=only)
        some = pb.learn(incomplete(small, 0.3), group="site", constraints=only, missing="em")
    one, two = (net.effects(by="data set").set_index(["child", "data_set"])["se"]
                for net in (whole, some))  # fmt: skip
    for child in ("x", "event"):
        assert two.loc[child].mean() > 1.05 * one.loc[child].mean()


def test_effects_are_saved(network: pb.Network, tmp_path: Path) -> None:
    network.save(tmp_path / "net.json")
    again = pb.load(tmp_path / "net.json")
    assert (again.missing == network.missing).all()
    pd.testing.assert_frame_equal(again.effects(), network.effects())
    by = [net.effects(by="data set") for net in (again, network)]
    pd.testing.assert_frame_equal(*by)


def test_a_network_of_gaps_takes_a_new_data_set(network: pb.Network) -> None:
    new = drawn(9, 40, 1).drop(columns="site")
    adapted = network.adapt(new, "site9")
    assert adapted.levels[-1] == "site9"
    assert np.isfinite(adapted.effects(by="data set")["se"]).all()
    assert adapted.missing_cells()["site9"].sum() == 0


# Tables, imputations, the bootstrap, the command line


@pytest.mark.slow
def test_a_table_with_gaps_says_so(table: pd.DataFrame) -> None:
    rows = pb.table(table, **READING, missing="em")
    assert rows.n_rows == len(table)
    for ask in (rows.stats, lambda: pb.score(rows, []), lambda: pb.fit_node(rows, "x", ["arm"])):
        with pytest.raises(pb.DataError, match=r"missing cells, which pb.learn fills"):
            ask()
    assert learned_rows(rows).n_rows == len(table)
    assert pb.check(rows) is not None


def learned_rows(rows: pb.Table) -> pb.Network:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.DataWarning)
        return pb.learn(rows)


@pytest.mark.slow
def test_imputations(table: pd.DataFrame) -> None:
    mixed = table.sample(frac=1, random_state=3).reset_index(drop=True)
    made = pb.impute(mixed, **READING, imputations=4, seed=1)
    again = pb.impute(mixed, **READING, imputations=4, seed=1)
    other = pb.impute(mixed, **READING, imputations=1, seed=2)
    assert len(made) == 4
    for one, two in zip(made, again, strict=True):
        pd.testing.assert_frame_equal(one, two)
    assert not made[0].equals(made[1])
    assert not made[0].equals(other[0])
    for one in made:
        assert list(one.columns) == list(mixed.columns)
        assert not one.isna().any().any()
        assert (one["visits"] >= 0).all()
        for name in mixed.columns[1:]:
            there = mixed[name].notna()
            assert (one.loc[there, name].astype(object) == mixed.loc[there, name]).all()
        assert (one["site"].astype(str) == mixed["site"]).all()


def test_imputations_of_a_full_table_are_copies() -> None:
    full = drawn(7, 10)
    first, second = pb.impute(full, **READING, imputations=2)
    pd.testing.assert_frame_equal(first, second)
    assert (first["visits"] == full["visits"]).all()


def test_imputed_numbers_are_as_ever() -> None:
    gaps = incomplete(drawn(8)[["site", "x", "z"]], 0.2)
    (made,) = pb.impute(gaps, group="site", imputations=1, seed=5)
    stats = pb.stats(gaps, group="site", missing="em")
    codes = pd.factorize(gaps["site"])[0]
    rng = np.random.default_rng([5, 0])
    expected = stats.patterns.completion.fill(codes, gaps[["x", "z"]].to_numpy(), rng)
    lacks = gaps[["x", "z"]].isna().all(axis=1).to_numpy()
    assert not lacks.any() or len(made) < len(gaps)
    if not lacks.any():
        np.testing.assert_array_equal(made[["x", "z"]].to_numpy(), expected)


@pytest.mark.slow
def test_the_bootstrap_draws_rows_with_gaps(table: pd.DataFrame) -> None:
    small = table[["site", "arm", "x", "event"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.DataWarning)
        one, two = (
            pb.bootstrap(small, group="site", missing="em", replicates=3, seed=1) for _ in range(2)
        )
        sets = pb.bootstrap(small, group="site", missing="em", replicates=2, unit="data set")
    assert (one.counts == two.counts).all()
    assert one.strength[1, 2] > 0
    assert sets.replicates == 2


def test_the_first_draws_follow_em_on_indicators(table: pd.DataFrame) -> None:
    rows = pb.table(table, **READING, missing="em")
    first = MonteCarloEM(rows, draws=50).start()
    em = gaps_of(rows).completed()
    found = first.stats(["x"]).mean[:, 0]
    spread = np.sqrt(em.scatter[:, em.names.index("x"), em.names.index("x")] / em.n)
    assert (np.abs(found - em.mean[:, em.names.index("x")]) < 0.15 * spread).all()


@pytest.mark.slow
def test_the_plan_learns_from_a_table_with_gaps(table: pd.DataFrame, network: pb.Network) -> None:
    found = as_plan().learned(pb.table(table, **READING, missing="em"))
    assert found.to_json() == network.to_json()


@pytest.mark.slow
def test_plausible_tables_differ_for_parameters_too(table: pd.DataFrame) -> None:
    """Means of filled cells vary more than with the parameters for certain."""
    filled, *_ = as_plan().completed(MonteCarloEM(pb.table(table, **READING, missing="em")))
    assert filled.plausible is not None
    z = filled.names.index("z")  # by itself: a mean and a variance
    gaps = np.isnan(filled.source.values[z])
    tables = [filled.plausible(k) for k in range(40)]
    assert not any(np.isnan(own.values).any() for own in tables)
    means = [own.values[z, gaps].mean() for own in tables]
    m, n = gaps.sum(), (~gaps).sum()
    # Complete pooling is what data sets without differences are near to.
    expected = 1 / m + 1 / n
    assert 39 * np.var(means, ddof=1) / expected > st.chi2.ppf(0.001, 39)
    assert np.var(means, ddof=1) > 1.0 / m * 0.6


def test_densities_of_held_out_rows_sum_over_what_is_missing(
    known: tuple[pb.Network, list[Local]],
) -> None:
    net, _ = known
    whole = pb.table(drawn(7, 6), **READING)
    engine = net._engine(plugin=False)
    complete = HeldOut(whole.values.T, np.zeros(whole.values.T.shape, dtype=bool))
    for lacks in ("sex", "arm", "event"):  # parents and a leaf
        at = whole.names.index(lacks)
        each = []
        for level in range(len(whole.categories[at])):
            x = whole.values.T.copy()
            x[:, at] = level
            each.append(engine.node_logs(replace(complete, x=x), net.n).sum(axis=0))
        x[:, at] = np.nan
        found = engine.row_logs(replace(complete, x=x), net.n)
        np.testing.assert_allclose(found, logsumexp(each, axis=0), rtol=1e-10)
    # A level that nobody had counts as half a row, and says nothing of other cells.
    x, strange = whole.values.T.copy(), complete.strange.copy()
    event, arm = (whole.names.index(name) for name in ("event", "arm"))
    x[:, arm], strange[:, event] = np.nan, True
    found = engine.row_logs(HeldOut(x, strange), net.n)
    x[:, event] = np.nan
    without = engine.row_logs(HeldOut(x, complete.strange), net.n)
    np.testing.assert_allclose(found, without + np.log(0.5 / net.n), rtol=1e-12)


def test_compare_holds_out_rows_with_their_gaps(table: pd.DataFrame) -> None:
    some = table[["site", "arm", "x", "event"]]
    options = {"group": "site", "poolings": ["complete"], "folds": 2, "seed": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.DataWarning)
        found = pb.compare(some, **options, missing="em")
        full = pb.compare(drawn(1)[some.columns], **options)
    assert found.rows.sum() == full.rows.sum() - some.iloc[:, 1:].isna().all(axis=1).sum()
    assert np.isfinite(found.loglik).all()
    assert np.isfinite(found.left_out_loglik).all()
    # Fewer cells have a higher density; each counts about the same.
    share = 1 - some.iloc[:, 1:].isna().to_numpy().mean()
    assert found.loglik.mean() == pytest.approx(share * full.loglik.mean(), rel=0.1)


@pytest.mark.slow
def test_compare_with_gaps_in_all_kinds_and_inputs(table: pd.DataFrame) -> None:
    rare = table.drop(columns=["z", "event"])
    rare.loc[3, "sex"] = "rare"  # one fold does not know it
    rare["place"] = np.where(table["site"] == "site0", "north", "south")  # of data sets
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.DataWarning)
        found = pb.compare(
            rare, **READING, missing="em", folds=2, inputs=["arm"], poolings=["none", "partial"]
        )
    assert np.isfinite(found.loglik).all()
    assert np.isfinite(found.known).all()


@pytest.mark.parametrize("score", ["bde", "k2"])
def test_scores_of_counts_refuse_cells_that_are_drawn(score: str) -> None:
    trial = pb.datasets.opt()[["clinic", "tobacco", "preterm"]]
    with pytest.raises(pb.OptionError, match=f"score='{score}' is for tables without missing"):
        pb.learn(trial, group="clinic", missing="em", pooling="complete", score=score)
