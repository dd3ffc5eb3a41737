"""Every answer has the same shape, whatever kinds of columns the table has."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import poolbn as pb

SITES = ("north", "south", "west")
N = 60  # rows of a site
STILL = pb.HillClimb(max_iter=0)
ARCS = [("a", "b"), ("b", "c"), ("a", "c")]

Column = Callable[[np.random.Generator, np.ndarray], object]


def continuous(rng: np.random.Generator, eta: np.ndarray) -> np.ndarray:
    return eta + rng.normal(size=len(eta))


def discrete(rng: np.random.Generator, eta: np.ndarray) -> np.ndarray:
    return np.where(rng.random(len(eta)) < 1 / (1 + np.exp(-eta)), "yes", "no")


def count(rng: np.random.Generator, eta: np.ndarray) -> np.ndarray:
    return rng.poisson(np.exp(np.clip(0.4 * eta, -4, 3)))


# A table is a line: what its columns a -> b -> c hold.
TABLES: dict[str, tuple[Column, Column, Column]] = {
    "continuous": (continuous, continuous, continuous),
    "mixed": (discrete, continuous, discrete),
    "discrete": (discrete, discrete, discrete),
    "counts": (count, count, count),
}
each_table = pytest.mark.parametrize("name", TABLES)
every_two = pytest.mark.parametrize("name", list(TABLES)[1:])


@cache
def frame(name: str) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    site = np.repeat(np.arange(len(SITES)), N)
    level = np.array([-0.4, 0.0, 0.5])[site]
    found: dict[str, object] = {"site": np.array(SITES)[site]}
    eta = level
    for column, make in zip("abc", TABLES[name], strict=True):
        found[column] = values = make(rng, eta)
        numbers = pd.factorize(values, sort=True)[0] if values.dtype.kind == "U" else values
        eta = level + 0.8 * (numbers - numbers.mean()) / max(numbers.std(), 1e-9)
    return pd.DataFrame(found)


@cache
def network(name: str) -> pb.Network:
    kinds = {c: "count" for c, make in zip("abc", TABLES[name], strict=True) if make is count}
    return pb.learn(
        frame(name), group="site", kinds=kinds, start=ARCS, search=STILL, preset="paper"
    )


def asked() -> list[tuple[str, Callable[[pb.Network], pd.DataFrame]]]:
    """The tables that a network answers with."""
    return [
        ("effects", lambda net: net.effects()),
        ("effects by data set", lambda net: net.effects(by="data set")),
        ("total effects", lambda net: net.total_effects()),
        ("total effects by data set", lambda net: net.total_effects(by="data set")),
        ("heterogeneity", lambda net: net.heterogeneity()),
        ("within and between", lambda net: net.within_between()),
        ("models", lambda net: net.models()),
        ("summary", lambda net: net.summary().table),
        ("classify", lambda net: net.classify(net.sample(2))),
        ("missing cells", lambda net: net.missing_cells()),
    ]


@every_two
@pytest.mark.parametrize(("what", "answer"), asked(), ids=[what for what, _ in asked()])
def test_tables_have_the_same_columns(
    name: str, what: str, answer: Callable[[pb.Network], pd.DataFrame]
) -> None:
    assert what
    found, expected = answer(network(name)), answer(network("continuous"))
    assert list(found.columns) == list(expected.columns)
    for column in {"parent", "level", "child", "outcome", "scale"}.intersection(found.columns):
        assert found[column].map(type).eq(str).all(), column


@each_table
def test_effects_have_a_row_for_each_arc_and_level(name: str) -> None:
    net = network(name)
    table = net.effects()
    found = list(dict.fromkeys(zip(table["parent"], table["child"], strict=True)))
    assert found == list(net.dag.arcs)
    for row in table.to_dict("records"):
        assert (row["level"] != "") == bool(net.fits[row["parent"]].categories)
        assert (row["outcome"] != "") == bool(net.fits[row["child"]].categories)
    tests = net.heterogeneity()
    arcs = list(zip(tests["parent"], tests["child"], strict=True))[: len(net.dag.arcs)]
    assert arcs == list(net.dag.arcs)
    residual = tests["child"][tests["parent"] == "(residual variance)"].tolist()
    assert residual == [node for node, fit in net.fits.items() if fit.gaussian is not None]


@each_table
def test_a_line_for_each_effect_is_printed(name: str) -> None:
    net = network(name)
    lines, effects = repr(net).splitlines(), net.effects()
    assert lines[:2] == list(net.title())
    for line, row in zip(lines[2:], effects.to_dict("records"), strict=False):
        level, outcome = (f" = {of}" * bool(of) for of in (row["level"], row["outcome"]))
        assert line.startswith(f"  {row['parent']}{level} -> {row['child']}{outcome}  ")
        assert ("ratio" in line) == ("ratio" in row["scale"])
        assert "(SE " in line
        assert "between sites" in line
    assert lines[2 + len(effects) :] == [f"  {line}" for line in net.endings()]
    assert net._repr_html_().count("<tr>") == len(effects)


@each_table
@pytest.mark.parametrize("given", [{"site": "south"}, {}])
def test_predictions_have_the_columns_of_the_kind_of_the_target(
    name: str, given: dict[str, str]
) -> None:
    net, rows = network(name), frame(name).head(3).drop(columns="site").assign(**given)
    for node, fit in net.fits.items():
        numbers = ["mean", "sd", "lower", "upper"]
        expected = [*fit.categories, "most_probable"] if fit.categories else numbers
        others = [column for column in "abc" if column != node]
        for known in (rows, rows.drop(columns=others[0])):
            found = net.predict(known, node, method="exact" if known is rows else "auto")
            assert list(found.columns)[: len(expected)] == expected
            assert list(found.columns)[len(expected) :] in ([], ["ess"])
        both = net.predict(rows, list(net.dag.nodes))
        assert list(both[node].columns) == expected
    whole = net.impute(rows.assign(c=np.nan).astype({"c": object}))
    assert whole["c"].notna().all()
    assert len(net.loglik(rows, rows=True)) == 3
    assert list(net.sample(4)) == ["site", "a", "b", "c"]


@each_table
def test_posteriors_are_of_one_class(name: str) -> None:
    net = network(name)
    first = frame(name).iloc[0]
    for node, fit in net.fits.items():
        found = net.posterior(
            {"a" if node != "a" else "c": first["a" if node != "a" else "c"]}, node
        )
        assert type(found) is pb.Posterior
        assert found.targets == (node,)
        assert found.weights.sum() == pytest.approx(1)
        assert found.mean.shape == found.sd.shape == (1,)
        assert (found.cov.shape, found.means.shape) == ((1, 1), (3, 1))
        assert (found.covs.shape, found.df.shape) == ((3, 1, 1), (3, 1))
        assert str(found.method) in ("exact", "quadrature", "sampling")
        assert found.ess > 100
        lines = str(found).splitlines()
        assert [line.strip().split("  ")[0] for line in lines] == [
            f"Posterior of {node}", node, "data set", "found by"
        ]  # fmt: skip
        if fit.categories:
            assert found.probabilities[node].sum() == pytest.approx(1)
            assert np.isnan(found.mean).all()
            for ask in (found.cdf, found.pdf):
                with pytest.raises(pb.OptionError, match="probabilities"):
                    ask(0.0)
            continue
        assert found.probabilities == {}
        assert found.mean @ [1] == pytest.approx(found.weights @ found.means[:, 0])
        low, high = found.quantile([0.1, 0.9])
        assert found.cdf(low) <= 0.1 + 0.02 + found.pdf(low)
        assert found.cdf(high) >= 0.9 - 1e-6
        assert low < found.mean[0] < high


@each_table
def test_densities_of_posteriors_integrate_to_one(name: str) -> None:
    net = network(name)
    for node, fit in net.fits.items():
        if fit.categories:
            continue
        found = net.posterior({}, node)
        if fit.gaussian is None:
            values = np.arange(400.0)
            assert found.pdf(values).sum() == pytest.approx(1, abs=2e-3)
            assert found.pdf(0.5) == 0
            continue
        reach = 12 * found.sd[0]
        values = np.linspace(found.mean[0] - reach, found.mean[0] + reach, 4001)
        density = found.pdf(values)
        assert np.trapezoid(density, values) == pytest.approx(1, abs=2e-3)
        assert np.trapezoid(density * values, values) == pytest.approx(found.mean[0], rel=0.02)


@each_table
def test_totals_are_exact_where_all_on_the_way_is_linear(name: str) -> None:
    net = network(name)
    for row in net.total_effects().to_dict("records"):
        way = {row["effect"], *net.dag.ancestors(row["effect"])}
        way &= set(net.dag.descendants(row["cause"]))
        exact = all(net.fits[node].gaussian is not None for node in way)
        assert (row["simulation_se"] == 0) == exact
        assert np.isfinite([row["total"], row["lower"], row["upper"], row["between_sd"]]).all()


def test_a_node_without_a_likelihood_says_so(tmp_path: Path) -> None:
    few = frame("mixed").groupby("site", sort=False).head(3)
    net = pb.learn(few, group="site", pooling="none", start=ARCS, search=STILL, preset="paper")
    assert not net.fits["b"].status.ok
    found = net.heterogeneity()
    assert list(found.columns) == list(network("continuous").heterogeneity().columns)
    net.save(tmp_path / "net.json")
    loaded = pb.load(tmp_path / "net.json")
    with pytest.raises(pb.DataError, match=r"'b' has no likelihood \(rank deficient\)"):
        loaded.heterogeneity()
    with pytest.raises(pb.DataError, match=r"no likelihood.*net.within_between\(pb.table"):
        loaded.within_between()
    again = loaded.heterogeneity(pb.table(few, group="site"))
    pd.testing.assert_series_equal(again["test"], found["test"])


@each_table
def test_one_data_set_has_no_differences(name: str) -> None:
    alone = frame(name).query("site == 'north'")
    kinds = {c: "count" for c, make in zip("abc", TABLES[name], strict=True) if make is count}
    net = pb.learn(
        alone,
        group="site",
        kinds=kinds,
        pooling="complete",
        start=ARCS,
        search=STILL,
        preset="paper",
    )
    for ask in (net.heterogeneity, net.within_between):
        with pytest.raises(pb.DataError, match="there is one data set, 'north'"):
            ask()
