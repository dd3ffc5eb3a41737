"""Networks as estimators of scikit-learn."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import poolbn as pb
from poolbn.sklearn import NetworkClassifier, NetworkRegressor


# All checks apply. scikit-learn itself skips one, check_array_api_input: it is for arrays on
# other devices, and needs an environment variable.
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([NetworkClassifier(), NetworkRegressor()])
def test_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    site = np.repeat(["a", "b", "c", "d"], 60)
    level = np.repeat(rng.normal(size=4), 60)
    x, z = rng.normal(size=240), rng.normal(size=240)
    y = level + 2 * x - z + rng.normal(size=240)
    event = np.where(x + rng.logistic(size=240) > 0, "yes", "no")
    made = pd.DataFrame({"site": site, "x": x, "z": z, "y": y, "event": event})
    return made.sample(frac=1, random_state=1)


TO_Y = {"required": [("x", "y"), ("z", "y")], "tiers": [["x", "z"], ["y"]]}


def test_one_data_set_and_all_arcs_are_least_squares(rows: pd.DataFrame) -> None:
    X, y = rows[["x", "z"]], rows["y"]
    ours = NetworkRegressor(constraints=TO_Y).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), LinearRegression().fit(X, y).predict(X), rtol=1e-8)
    array = NetworkRegressor().fit(X.to_numpy(), y.to_numpy())
    assert array.network_.nodes == ("x0", "x1", "y")


def test_a_regressor_predicts_what_its_network_predicts(rows: pd.DataFrame) -> None:
    X, y = rows[["site", "x", "z"]], rows["y"]
    model = NetworkRegressor(group="site").fit(X, y)
    net = pb.learn(rows[["site", "x", "z", "y"]], group="site")
    assert model.network_.dag == net.dag
    assert model.target_ == "y"
    np.testing.assert_allclose(model.predict(X), net.predict(X, "y")["mean"], rtol=1e-12)
    assert model.score(X, y) > 0.8


def test_rows_of_new_and_unknown_data_sets(rows: pd.DataFrame) -> None:
    X, y = rows[["site", "x", "z"]], rows["y"]
    old = X["site"] != "d"
    model = NetworkRegressor(group="site").fit(X[old], y[old])
    new = model.network_.adapt(name="d").predict(X[~old], "y")["mean"]
    np.testing.assert_allclose(model.predict(X[~old]), new, rtol=1e-12)
    both = X.copy()
    both.loc[both.index[0], "site"] = None
    unknown = model.network_.predict(both.iloc[[0]][["x", "z"]], "y")["mean"].item()
    assert model.predict(both)[0] == pytest.approx(unknown)
    alone = NetworkRegressor(group="site", pooling="none").fit(X[old], y[old])
    with pytest.raises(pb.DataError, match="pooling"):
        alone.predict(X)


def test_data_sets_are_classes_without_a_group_column(rows: pd.DataFrame) -> None:
    X, y = rows[["x", "z", "y"]], rows["site"]
    model = NetworkClassifier(pooling="none").fit(X, y)
    net = pb.learn(rows[["site", "x", "z", "y"]], group="site", pooling="none")
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    found = net.classify(X)
    np.testing.assert_allclose(model.predict_proba(X), found[["a", "b", "c", "d"]], rtol=1e-10)
    assert model.predict(X).tolist() == found["most_probable"].tolist()


def test_no_arcs_and_no_pooling_are_naive_bayes(rows: pd.DataFrame) -> None:
    rng = np.random.default_rng(2)
    y = np.tile([3, 1, 2], 300)
    X = rng.normal(size=(900, 3)) * (0.5 + y[:, None] / 2) + y[:, None] * [1.0, -1.0, 0.5]
    ours = NetworkClassifier(pooling="none", constraints={"max_parents": 0}).fit(X, y)
    theirs = GaussianNB().fit(X, y)
    assert ours.classes_.tolist() == [1, 2, 3]
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.03)
    assert accuracy_score(theirs.predict(X), ours.predict(X)) > 0.98


def test_a_discrete_target_with_a_group_column(rows: pd.DataFrame) -> None:
    X, y = rows[["site", "x", "z"]], rows["event"]
    model = NetworkClassifier(group="site").fit(X, y)
    net = pb.learn(rows[["site", "x", "z", "event"]], group="site")
    assert model.network_.dag == net.dag
    found = net.predict(X, "event")
    np.testing.assert_allclose(model.predict_proba(X), found[["no", "yes"]], rtol=1e-10)
    assert model.predict(X).tolist() == found["most_probable"].tolist()
    numbers = NetworkClassifier(group="site").fit(X, (y == "yes").astype(int))
    assert numbers.predict(X).tolist() == (model.predict(X) == "yes").astype(int).tolist()
    elsewhere = model.predict_proba(X.assign(site="elsewhere"))
    new = model.network_.adapt(name="elsewhere").predict(X.assign(site="elsewhere"), "event")
    np.testing.assert_allclose(elsewhere, new[["no", "yes"]], rtol=1e-10)


def test_pipelines_cross_validation_and_grid_searches(rows: pd.DataFrame) -> None:
    X, y = rows[["site", "x", "z"]], rows["y"]
    scaled = ColumnTransformer(
        [("scale", StandardScaler(), ["x", "z"])], remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")  # fmt: skip
    pipe = make_pipeline(scaled, NetworkRegressor(group="site"))
    assert cross_val_score(pipe, X, y, cv=3).min() > 0.7
    # Scaling changes units, not what is predicted.
    plain = NetworkRegressor(group="site").fit(X, y).predict(X)
    np.testing.assert_allclose(pipe.fit(X, y).predict(X), plain, rtol=1e-6)
    by_site = cross_val_predict(
        NetworkRegressor(group="site"), X, y, cv=GroupKFold(4), groups=X["site"]
    )
    assert np.corrcoef(by_site, y)[0, 1] > 0.7
    grid = GridSearchCV(NetworkRegressor(group="site"), {"pooling": ["complete", "partial"]}, cv=3)
    assert grid.fit(X, y).best_params_ == {"pooling": "partial"}
    sites = make_pipeline(StandardScaler(), NetworkClassifier())
    assert len(cross_val_score(sites, rows[["x", "z", "y"]], rows["site"], cv=3)) == 3


def test_parameters_are_scikit_learns() -> None:
    model = NetworkClassifier(group="site", pooling="complete", search="tabu")
    again = clone(model.set_params(criterion="aic"))
    assert again.get_params() == model.get_params()
    assert set(model.get_params()) == {
        "group", "pooling", "criterion", "search", "constraints", "kinds", "inputs",
        "interventions", "missing",
    }  # fmt: skip
    assert repr(again).startswith("NetworkClassifier(criterion='aic', group='site'")


def test_a_fitted_estimator_is_pickled(rows: pd.DataFrame) -> None:
    X, y = rows[["site", "x", "z"]], rows["event"]
    model = NetworkClassifier(group="site", pooling="complete").fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_missing_values(rows: pd.DataFrame) -> None:
    X, y = rows[["site", "x", "z"]].copy(), rows["y"]
    X.loc[X.index[:5], "z"] = np.nan
    with pytest.raises(pb.DataError, match=r"'z' of X has 5 missing .*missing='drop'"):
        NetworkRegressor(group="site").fit(X, y)
    dropped = NetworkRegressor(group="site", missing="drop").fit(X, y)
    assert dropped.network_.n_rows == len(X) - 5
    assert np.isfinite(dropped.predict(X)).all()
    assert NetworkRegressor(group="site", missing="em").fit(X, y).network_.n_rows == len(X)
    bare = NetworkRegressor(missing="em").fit(X[["x", "z"]].to_numpy(), y)
    assert np.isfinite(bare.predict(X[["x", "z"]].to_numpy())).all()


BAD = {
    "group is no column": (
        lambda r: NetworkRegressor(group="sit").fit(r[["site", "x"]], r["y"]),
        "no column 'sit'; did you mean 'site'",
    ),
    "group of an array": (
        lambda r: NetworkRegressor(group="site").fit(r[["x", "z"]].to_numpy(), r["y"]),
        "group='site' is a column of X, and X has no names",
    ),
    "one class": (
        lambda r: NetworkClassifier().fit(r[["x", "z"]], ["a"] * len(r)),
        "one class only, .*'a'",
    ),
    "missing classes": (
        lambda r: NetworkClassifier(group="site").fit(
            r[["site", "x"]], r["event"].where(r["x"] > 0, None)
        ),
        "y has .* missing values",
    ),
    "missing target": (
        lambda r: NetworkRegressor(group="site").fit(r[["site", "x"]], r["y"].where(r["x"] > 0)),
        "y contains NaN",
    ),
    "too short a target": (
        lambda r: NetworkRegressor(group="site").fit(r[["site", "x"]], r["y"].head(3)),
        "X has 240 rows and y 3",
    ),
    "other columns": (
        lambda r: (
            NetworkRegressor(group="site").fit(r[["site", "x"]], r["y"]).predict(r[["site", "z"]])
        ),
        "feature names",
    ),
    "wrong pooling": (
        lambda r: NetworkClassifier(pooling="complet").fit(r[["x", "z"]], r["site"]),
        "did you mean 'complete'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_say_what_to_do(case: str, rows: pd.DataFrame) -> None:
    call, words = BAD[case]
    with pytest.raises(ValueError, match=words):
        call(rows)


def test_without_scikit_learn_the_error_names_the_remedy() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import poolbn as pb\n"
        "try: pb.sklearn\n"
        "except pb.MissingPackageError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install poolbn[sklearn]" in done.stdout


def test_tab_shows_the_estimators_only() -> None:
    assert dir(pb.sklearn) == ["NetworkClassifier", "NetworkRegressor"]
