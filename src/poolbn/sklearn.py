"""Networks as estimators of scikit-learn, for pipelines, cross-validation and grid searches."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from poolbn.arrays import Floats
from poolbn.errors import DataError, MissingPackageError, Option, nearest
from poolbn.learning import learn
from poolbn.moments.targets import Targets
from poolbn.network.network import Network

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError as error:
    raise MissingPackageError(
        "scikit-learn is needed for this and is not installed: pip install poolbn[sklearn]"
    ) from error

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["NetworkClassifier", "NetworkRegressor"]

_NEW = "new data set"  # what one is called that was not learned from
_ALL = "all rows"  # the one data set where there is no group column


def __dir__() -> list[str]:
    return __all__


class _NetworkEstimator(BaseEstimator):
    """What both estimators share."""

    group: str | None
    network_: Network

    def __init__(
        self,
        *,
        group: str | None = None,
        pooling: Any = None,
        criterion: Any = None,
        search: Any = None,
        constraints: Any = None,
        kinds: Mapping[str, Any] | None = None,
        inputs: Iterable[str] = (),
        interventions: Targets | None = None,
        missing: Any = "error",
    ) -> None:
        self.group = group
        self.pooling = pooling
        self.criterion = criterion
        self.search = search
        self.constraints = constraints
        self.kinds = kinds
        self.inputs = inputs
        self.interventions = interventions
        self.missing = missing

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    def _rows(self, X: Any, y: Any = None, *, reset: bool) -> tuple[pd.DataFrame, Any]:
        """The rows as a table with names, and y; checked as scikit-learn does."""
        import pandas as pd

        if reset and y is None:
            raise DataError("fit requires y to be passed, but the target y is None")
        finite = True if self.missing == "error" else "allow-nan"
        if self._has_names(X):
            given = () if y is None else (y,)
            validate_data(self, X, *given, reset=reset, skip_check_array=True)
            frame = pd.DataFrame(X).reset_index(drop=True)
            self._check_frame(frame)
            if y is not None and len(y) != len(frame):
                raise DataError(
                    f"X has {len(frame)} rows and y {len(y)}: inconsistent numbers of samples"
                )
            return frame, y
        if self.group is not None:
            raise DataError(
                Option("group", self.group),
                " is a column of X, and X has no names of columns; give a pandas DataFrame",
            )
        both = (X,) if y is None else (X, y)
        found = validate_data(self, *both, dtype=np.float64, ensure_all_finite=finite, reset=reset)
        values, y = (found, None) if y is None else found
        names = getattr(self, "feature_names_in_", None)
        columns = [f"x{i}" for i in range(values.shape[1])] if names is None else list(names)
        return pd.DataFrame(values, columns=columns), y

    def _has_names(self, X: Any) -> bool:
        """Whether rows are a table of which more than the numbers count."""
        import pandas as pd

        if not isinstance(X, pd.DataFrame) or not all(isinstance(c, str) for c in X.columns):
            return False
        return self.group is not None or not all(map(pd.api.types.is_numeric_dtype, X.dtypes))

    def _check_frame(self, frame: pd.DataFrame) -> None:
        if self.group is not None and self.group not in frame.columns:
            raise DataError(f"X has no column {self.group!r}{nearest(self.group, frame.columns)}")
        if not len(frame):
            raise DataError("Found array with 0 sample(s); X needs rows")
        own = frame.drop(columns=self.group or [])
        missing = own.isna().sum()
        if self.missing == "error" and missing.any():
            raise DataError(
                f"column {missing.idxmax()!r} of X has {missing.max()} missing values (NaN); use ",
                Option("missing", "drop"),
                " or ",
                Option("missing", "em"),
            )

    def _learned(self, frame: pd.DataFrame, target: str | None, group: Any, kinds: Any) -> Network:
        """The network of rows whose data sets are known."""
        options: dict[str, Any] = {
            "score": self.criterion,
            "search": self.search,
            "constraints": self.constraints,
            "kinds": {**(self.kinds or {}), **kinds} or None,
            "inputs": self.inputs,
            "interventions": self.interventions,
            "missing": self.missing,
        }
        if target is not None and group is None:
            return learn({_ALL: frame}, pooling="complete", **options)
        return learn(frame, group=group, pooling=self.pooling, **options)

    def _predicted(self, X: Any, target: str) -> pd.DataFrame:
        """What the network predicts; data sets that it does not know are new ones."""
        frame, _ = self._rows(X, reset=False)
        net = self.network_
        if self.group is None:
            return net.predict(frame, target)
        labels = frame[self.group].astype(object)
        new = labels.notna() & ~labels.isin(list(net.levels))
        if new.any():
            name = _NEW
            while name in net.levels:
                name += "'"
            net = net.adapt(name=name)
            frame = frame.assign(**{self.group: labels.mask(new, name)})
        return net.predict(frame, target)


def _name(y: Any, taken: Sequence[str]) -> str:
    """What to call the target: as its Series is called, or y."""
    name = getattr(y, "name", None)
    name = name if isinstance(name, str) and name else "y"
    while name in taken:
        name += "_"
    return name


class NetworkRegressor(RegressorMixin, _NetworkEstimator):
    """A network that predicts a continuous column from the others.

    It learns one network over the columns of X and y. Rows of data sets that it was not learned
    from are predicted from the population of data sets, rows whose data set is missing from the
    mixture of those that are known.

    Args:
        group: the column of X that says which data set a row came from; None where all rows are of
            one, which leaves nothing to pool.
        pooling: as for `pb.learn`; so are all others.
        criterion: the score, "bic" by default.
        search: "hc", "tabu", "exact", or an object.
        constraints: a `pb.Constraints` or a dict. The target is called as its Series is, or y.
        kinds: of some columns of X.
        inputs: columns of X that are never children.
        interventions: columns of X that were set in some data sets, see `pb.stats`.
        missing: "error" refuses missing values in X, "drop" leaves such rows out of learning, "em"
            uses what they have. In prediction missing values are not used.

    Attributes:
        network_: the network.
        target_: what y is called in it.
        n_features_in_: columns of X.
        feature_names_in_: their names.

    Examples:
        >>> import poolbn as pb
        >>> from sklearn.model_selection import KFold, cross_val_score
        >>> trial = pb.datasets.opt()
        >>> X, y = trial[["clinic", "bleeding_0", "plaque_0"]], trial["gingival_0"]
        >>> model = pb.sklearn.NetworkRegressor(group="clinic").fit(X, y)
        >>> model.network_.nodes, model.predict(X.head(2)).round(2)
        (('bleeding_0', 'plaque_0', 'gingival_0'), array([1.65, 1.75]))
        >>> cross_val_score(model, X, y, cv=KFold(3, shuffle=True, random_state=0)).round(2)
        array([0.75, 0.74, 0.71])
    """

    target_: str

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the network.

        Args:
            X: rows, as a pandas table or an array of numbers.
            y: the value of the target in each row.

        Raises:
            DataError: rows or columns cannot be used.
        """
        name = _name(y, [str(c) for c in getattr(X, "columns", ())])
        frame, y = self._rows(X, y, reset=True)
        values = column_or_1d(y, dtype=np.float64, warn=True)
        if not np.isfinite(values).all():
            raise DataError("y contains NaN or infinity; leave out those rows")
        self.target_ = name
        frame = frame.assign(**{name: values})
        self.network_ = self._learned(frame, name, self.group, {name: "continuous"})
        return self

    def predict(self, X: Any) -> Floats:
        """The expected value of the target in each row, (n,).

        Args:
            X: rows with the columns of `fit`.
        """
        check_is_fitted(self)
        return self._predicted(X, self.target_)["mean"].to_numpy(dtype=np.float64)


class NetworkClassifier(ClassifierMixin, _NetworkEstimator):
    """A network that predicts the data set of rows, or a discrete column.

    Without `group`, y says which data set a row came from, and the network predicts that from all
    columns of X. With `group`, y is a discrete column of the network, and X says the data sets.
    Rows of data sets that it was not learned from are predicted from the population.

    Args:
        group: the column of X that says which data set a row came from; None where y says that.
        pooling: as for `NetworkRegressor`; so are all others.

    Attributes:
        network_: the network.
        classes_: the data sets, or the levels of the target, sorted.
        target_: what y is called in it; None where y says the data sets.
        n_features_in_: columns of X.
        feature_names_in_: their names.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "gestation_days", "preterm"]]
        >>> trial = trial.dropna()
        >>> rows = trial[["age", "bmi", "gestation_days"]]
        >>> clinics = pb.sklearn.NetworkClassifier(pooling="none").fit(rows, trial["clinic"])
        >>> clinics.classes_, clinics.predict_proba(rows.head(1)).round(2)
        (array(['KY', 'MN', 'MS', 'NY'], dtype=object), array([[0.38, 0.28, 0.21, 0.13]]))
        >>> early = pb.sklearn.NetworkClassifier(group="clinic", pooling="complete")
        >>> X = trial[["clinic", "age", "bmi"]]
        >>> early.fit(X, trial["preterm"]).predict(X.head(2))
        array(['no', 'no'], dtype=object)
    """

    target_: str | None
    classes_: NDArray[Any]

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the network.

        Args:
            X: rows, as a pandas table or an array of numbers.
            y: the data set of each row, or with `group` its level of the target.

        Raises:
            DataError: rows or columns cannot be used, or there is one class only.
        """
        import pandas as pd

        name = _name(y, [str(c) for c in getattr(X, "columns", ())])
        frame, y = self._rows(X, y, reset=True)
        labels = column_or_1d(y, warn=True)
        if pd.isna(labels).any():
            raise DataError(f"y has {pd.isna(labels).sum()} missing values; leave out those rows")
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise DataError(f"y has one class only, {classes[0]!r}; a classifier needs two or more")
        self.classes_ = classes
        if self.group is None:
            own = pd.Series(labels.tolist(), name=name, dtype=object)
            self.target_, self.network_ = None, self._learned(frame, None, own, {})
        else:
            self.target_ = name
            frame = frame.assign(**{name: np.array(self._texts(), dtype=object)[codes]})
            self.network_ = self._learned(frame, name, self.group, {name: "discrete"})
        return self

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class in each row, (n, classes).

        Args:
            X: rows with the columns of `fit`.
        """
        check_is_fitted(self)
        have: list[Hashable]
        wanted: Sequence[Hashable]
        if self.target_ is None:
            frame, _ = self._rows(X, reset=False)
            found, have = self.network_.classify(frame), list(self.network_.levels)
            wanted = self.classes_.tolist()
        else:
            found = self._predicted(X, self.target_)
            have, wanted = list(self.network_[self.target_].categories), self._texts()
        # A class whose rows were all left out for missing values has no probability.
        at = [have.index(name) if name in have else -1 for name in wanted]
        values = found.iloc[:, : len(have)].to_numpy(dtype=np.float64)
        return np.ascontiguousarray(np.column_stack([values, np.zeros(len(found))])[:, at])

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row, (n,).

        Args:
            X: rows with the columns of `fit`.
        """
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _texts(self) -> list[str]:
        """The classes as levels of a discrete column."""
        texts = [str(c) for c in self.classes_]
        return texts if len(set(texts)) == len(texts) else [str(i) for i in range(len(texts))]
