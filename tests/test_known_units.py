"""Predictions for rows of units inside data sets of which there are earlier rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app

REFERENCE = Path(__file__).parent / "reference"
CASES = json.loads((REFERENCE / "units" / "predict.json").read_text())["cases"]
GROUP = ["clinic", "patient"]


def visits(seed: int, clinics: int = 4, patients: int = 8) -> pd.DataFrame:
    """x -> y -> z, y -> sick, x -> falls, with levels of patients in all but x."""
    rng = np.random.default_rng(seed)
    size = rng.integers(2, 6, clinics * patients)
    patient = np.repeat(np.arange(len(size)), size)
    clinic, n = patient // patients, len(patient)

    def level() -> np.ndarray:
        return rng.normal(size=len(size))[patient] + 0.5 * rng.normal(size=clinics)[clinic]

    x = rng.normal(size=n)
    y = 0.5 * x + level() + rng.normal(size=n)
    z = 0.7 * y + level() + rng.normal(size=n)
    sick = np.where(rng.random(n) < 1 / (1 + np.exp(-level() - 0.5 * y)), "yes", "no")
    falls = rng.poisson(np.exp(0.5 * level() + 0.3 * x))
    columns = {"clinic": clinic, "patient": patient, "x": x, "y": y, "z": z}
    return pd.DataFrame(columns | {"sick": sick, "falls": falls})


def split(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All visits but the last one of each patient, and these."""
    last = ~rows["patient"].duplicated(keep="last")
    return rows[~last], rows[last]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_predictions_are_those_of_lme4(case: dict) -> None:
    """`reference/units/predict.R`: `predict` of rows that lmer was fitted to, units known."""
    rows = pd.read_csv(REFERENCE / "nested" / "data" / f"{case['id']}.csv.gz")
    parents = [name for name in rows if name.startswith("x")]
    net = pb.fit([(x, "y") for x in parents], rows, group=["F", "U"])
    assert net["y"].loglik == pytest.approx(case["logLik"], abs=1e-5)
    found = net.predict(rows.head(40).drop(columns="y"), "y", history=rows, plugin=True)
    away = (found["mean"] - case["predicted"]) / rows["y"].std()
    assert np.abs(away).max() < 1e-4


@pytest.mark.parametrize("pooling", ["complete", "partial", "none"])
def test_predictions_are_normal_distributions_given_all_that_is_known(pooling: str) -> None:
    """Estimates for certain: y of a row from its x and z and from the patient's earlier rows."""
    earlier, last = split(visits(1)[[*GROUP, "x", "y", "z"]])
    net = pb.fit([("x", "y"), ("y", "z")], visits(1)[last.columns], group=GROUP, pooling=pooling)
    found = net.predict(last.drop(columns="y"), "y", history=earlier, plugin=True)
    y, z = net["y"], net["z"]
    for k, (_, row) in enumerate(last.iterrows()):
        before = earlier[earlier["patient"] == row["patient"]]
        both = pd.concat([before, row.to_frame().T])
        j, m = net.levels.index(row["clinic"]), len(both)

        def of_rows(fit: pb.LocalFit, j: int = j, m: int = m) -> np.ndarray:
            s2, share = fit.sigma2[j], fit.unit_share[j]
            return s2 * (1 - share) * np.eye(m) + s2 * share * np.ones((m, m))

        V = np.zeros((2 * m, 2 * m))  # of all y, then of all z
        slope = z.coef[j, 1]
        V[:m, :m] = of_rows(y)
        V[m:, :m] = slope * V[:m, :m]
        V[:m, m:] = V[m:, :m].T
        V[m:, m:] = slope**2 * V[:m, :m] + of_rows(z)
        mean_y = y.coef[j, 0] + y.coef[j, 1] * both["x"].to_numpy(dtype=float)
        mean = np.concatenate([mean_y, z.coef[j, 0] + slope * mean_y])
        seen = np.concatenate([both["y"], both["z"]]).astype(float) - mean
        rest = np.arange(2 * m) != m - 1
        weights = np.linalg.solve(V[np.ix_(rest, rest)], V[rest, m - 1])
        assert found["mean"].iloc[k] == pytest.approx(mean[m - 1] + weights @ seen[rest])
        variance = V[m - 1, m - 1] - weights @ V[rest, m - 1]
        assert found["sd"].iloc[k] == pytest.approx(np.sqrt(variance))


def test_errors_are_those_of_hendersons_equations() -> None:
    """Fixed effects are uncertain too; the history is among the rows that were learned from."""
    rows = visits(2)[[*GROUP, "x", "y"]]
    net = pb.fit([("x", "y")], rows, group=GROUP, pooling="complete")
    asked = rows.head(30).drop(columns="y")
    ratio = (
        net.predict(asked, "y", history=rows)["sd"] / net.predict(asked, "y")["sd"]
    )  # in which the residual variance, and its degrees of freedom, are left out
    t = net["y"].unit_share[0] / (1 - net["y"].unit_share[0])
    X = np.column_stack([np.ones(len(rows)), rows["x"]])
    Z = np.eye(rows["patient"].max() + 1)[rows["patient"]]
    W = np.hstack([X, Z])
    precision = W.T @ W
    precision[2:, 2:] += np.eye(Z.shape[1]) / t
    own = np.einsum("na,ab,nb->n", W, np.linalg.inv(precision), W)[:30] + 1
    V = np.eye(len(rows)) + t * Z @ Z.T
    fixed = np.linalg.inv(X.T @ np.linalg.solve(V, X))
    unknown = 1 + t + np.einsum("na,ab,nb->n", X, fixed, X)[:30]
    np.testing.assert_allclose(ratio**2, own / unknown, rtol=1e-5)


@pytest.mark.parametrize("target", ["sick", "falls"])
def test_levels_and_counts_are_averaged_over_what_rows_leave_of_their_unit(target: str) -> None:
    """Estimates for certain, the intercept of the patient integrated over."""
    rows = visits(3)[[*GROUP, "x", target]]
    earlier, last = split(rows)
    kinds = {"falls": "count"} if target == "falls" else None
    net = pb.fit([("x", target)], rows, group=GROUP, kinds=kinds)
    fit = net[target]
    found = net.predict(last.drop(columns=target), target, history=earlier, plugin=True)
    count = target == "falls"

    def of_row(k: int) -> float:
        row = last.iloc[k]
        before = earlier[earlier["patient"] == row["patient"]]
        j = net.levels.index(row["clinic"])
        (base, slope), sd = fit.coef[j, 0], fit.unit_sd[j]

        def likelihood(w: float) -> float:
            eta = base + slope * before["x"].to_numpy() + w
            p = 1 / (1 + np.exp(-eta))
            seen = np.where(before[target] == "yes", p, 1 - p)
            if count:
                seen = stats.poisson.pmf(before[target], np.exp(eta))
            return float(np.prod(seen) * stats.norm.pdf(w, 0, sd))

        def answer(w: float) -> float:
            eta = base + slope * row["x"] + w
            return float(np.exp(eta) if count else 1 / (1 + np.exp(-eta)))

        ends = -8 * sd, 8 * sd
        whole = integrate.quad(likelihood, *ends, epsabs=0)[0]
        return integrate.quad(lambda w: answer(w) * likelihood(w), *ends, epsabs=0)[0] / whole

    expected = np.array([of_row(k) for k in range(12)])
    seen = found["mean" if count else "yes"].to_numpy()[:12]
    # What rows leave of an intercept is taken for normal, with its mean and variance.
    np.testing.assert_allclose(
        seen, expected, rtol=0.02 if count else 0, atol=0 if count else 0.005
    )


def test_several_levels_are_averaged_over_what_rows_leave_of_their_unit() -> None:
    """Three levels, whose two intercepts go together; by draws that are weighted."""
    rng = np.random.default_rng(8)
    rows = visits(8, clinics=3, patients=40)[[*GROUP, "x"]]
    level = rng.normal(size=(120, 3))[rows["patient"]] + np.outer(rows["x"], [0.0, 0.5, -0.5])
    rows["grade"] = np.array(["a", "b", "c"])[(level + rng.gumbel(size=level.shape)).argmax(axis=1)]
    earlier, last = split(rows)
    net = pb.fit([("x", "grade")], rows, group=GROUP, pooling="complete")
    fit = net["grade"]
    assert fit.unit_sd[0] > 0.3
    found = net.predict(last, "grade", history=earlier, plugin=True)
    cov = fit.unit_sd[0] ** 2 * np.array([[1.0, 0.5], [0.5, 1.0]])
    w = rng.multivariate_normal(np.zeros(2), cov, size=100_000)

    def chances(x: float) -> np.ndarray:
        eta = fit.coef[0] @ [1.0, x] + w
        e = np.exp(np.column_stack([np.zeros(len(w)), eta]))
        return e / e.sum(axis=1, keepdims=True)

    for k in range(10):
        row = last.iloc[k]
        before = earlier[earlier["patient"] == row["patient"]]
        weight = np.ones(len(w))
        for x, grade in zip(before["x"], before["grade"], strict=True):
            weight = weight * chances(x)[:, "abc".index(grade)]
        want = np.average(chances(row["x"]), axis=0, weights=weight)
        np.testing.assert_allclose(found[["a", "b", "c"]].iloc[k].astype(float), want, atol=0.01)


def test_rows_of_other_units_are_as_without_a_history() -> None:
    rows = visits(4)
    net = pb.fit(
        [("x", "y"), ("y", "z"), ("y", "sick"), ("x", "falls")], rows, group=GROUP,
        kinds={"falls": "count"},
    )  # fmt: skip
    known, others = rows[rows["patient"] < 3], rows[rows["patient"] >= 3].head(20)
    for target in ("y", "z", "sick", "falls"):
        asked = others.drop(columns=target)
        plain, beside = net.predict(asked, target), net.predict(asked, target, history=known)
        pd.testing.assert_frame_equal(plain, beside, rtol=1e-6)
        own = rows.head(3)
        told = net.predict(own.drop(columns=target), target, history=known)
        assert not np.allclose(
            told.iloc[:, 0].astype(float), net.predict(own, target).iloc[:, 0].astype(float)
        )
    text = rows.assign(patient=rows["patient"].astype(float).astype(str))
    one = {"clinic": 0, "patient": 1, "x": 0.5}
    want = net.predict(one, "y", history=known.drop(columns=["z", "sick", "falls"]))
    assert want.iloc[0].to_dict() == net.predict(one, "y", history=known).iloc[0].to_dict()
    assert text["patient"].iloc[0] == "0.0"
    gone = rows.head(6).assign(y=np.nan)
    filled = net.impute(gone, history=rows.iloc[6:])
    assert filled["y"].notna().all()
    own = net.predict(gone, "y", history=rows.iloc[6:])["mean"]
    np.testing.assert_allclose(filled["y"], own)


def test_units_of_a_data_set_that_came_later_are_known_too() -> None:
    rows = visits(7)[[*GROUP, "x", "y"]]
    old, new = rows[rows["clinic"] < 3], rows[rows["clinic"] == 3].assign(clinic="new")
    earlier, last = split(new)
    net = pb.fit([("x", "y")], old, group=GROUP).adapt(earlier[["x", "y"]], "new")
    found = net.predict(last, "y", history=earlier)["mean"].to_numpy()
    fit = net["y"]
    base, slope = fit.coef[-1]
    t = fit.unit_share[-1] / (1 - fit.unit_share[-1])
    away = (earlier["y"] - base - slope * earlier["x"]).groupby(earlier["patient"])
    level = away.sum() * t / (1 + away.count() * t)
    want = base + slope * last["x"] + last["patient"].map(level)
    np.testing.assert_allclose(found, want)


def test_what_a_history_cannot_be() -> None:
    rows = visits(5)[[*GROUP, "x", "y"]]
    net = pb.fit([("x", "y")], rows, group=GROUP)
    asked = rows.drop(columns="y")
    with pytest.raises(pb.DataError, match="the history has no column 'patient'"):
        net.predict(asked, "y", history=rows.drop(columns="patient"))
    with pytest.raises(pb.DataError, match="the table has no column 'patient'"):
        net.predict(asked.drop(columns="patient"), "y", history=rows)
    with pytest.raises(pb.DataError, match=r"no row of the history says its data set.*'clinic'"):
        net.predict(asked, "y", history=rows.drop(columns="clinic"))
    flat = pb.fit([("x", "y")], rows.drop(columns="patient"), group="clinic")
    with pytest.raises(pb.DataError, match="earlier rows are those of units inside 'clinic'"):
        flat.predict(asked, "y", history=rows)


def test_the_command_line_takes_a_history(tmp_path: Path) -> None:
    rows = visits(6)[[*GROUP, "x", "y"]]
    net = pb.fit([("x", "y")], rows, group=GROUP)
    net.save(tmp_path / "net.json")
    earlier, last = split(rows)
    for name, table in (("earlier", earlier), ("last", last)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    command = ["predict", str(tmp_path / "net.json"), str(tmp_path / "last.csv"), "--target", "y"]
    out = tmp_path / "found.csv"
    more = ["--history", str(tmp_path / "earlier.csv"), "--out", str(out)]
    run = CliRunner().invoke(app, command + more)
    assert run.exit_code == 0, run.output
    found = pd.read_csv(out)["mean"]
    want = net.predict(last, "y", history=earlier)["mean"]
    np.testing.assert_allclose(found, want, rtol=1e-5)
