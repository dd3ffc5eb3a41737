"""What a fitted node says. All poolings end in this form (eq. lmenode-split)."""

from __future__ import annotations

import html
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError
from poolbn.moments.data import Data
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.indicators import indicators, labels_of, spans
from poolbn.nodes.drawing import Observed
from poolbn.nodes.predicting import Predictions, UnitEffects, Values
from poolbn.nodes.rsquared import Variances
from poolbn.nodes.terms import Equality, Intervals, Sums, Term
from poolbn.tables.grouping import DATA_SET
from poolbn.tables.kinds import ColumnKind
from poolbn.wording import counted, figure, noun_of, visible

if TYPE_CHECKING:
    import pandas as pd

INTERCEPT = "(Intercept)"
ALONE = "without pooling there is no population to predict from"
_SHOWN = 8  # data sets that a printed fit lists
_FIRST = 6  # and of more than these the first ones

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def level_columns(levels: Iterable[Hashable], own: Iterable[Hashable]) -> list[Hashable]:
    """Columns for the data sets in a table that has columns of its own.

    Examples:
        >>> level_columns(["KY", "se"], ["fixed", "se"])
        ['KY', 'se (data set)']
    """
    used = set(own)
    return [f"{level} (data set)" if level in used else level for level in levels]


class Counts(NamedTuple):
    """Free parameters of a node, by what informs them.

    Attributes:
        rows: by all rows: fixed effects, a common variance.
        groups: by the number of data sets: (co)variances between them.
        own: by the rows of single data sets.
        units: by the number of units inside data sets that have two rows or more: a variance
            between them.
        own_units: by that of single data sets.
    """

    rows: int
    groups: int
    own: int
    units: int = 0
    own_units: int = 0


class Block(NamedTuple):
    """Coefficients of one outcome.

    Attributes:
        outcome: a level of a discrete node, "" for others.
        population: those of the population; without one, the mean of data sets', (q,).
        fixed: the same; None without one.
        se: their standard errors; None without a population.
        between: standard deviations between data sets, (q,); None where they are not estimated.
        coef: in each data set, (F, q).
    """

    outcome: str
    population: Floats
    fixed: Floats | None
    se: Floats | None
    between: Floats | None
    coef: Floats


class Pooling(Protocol):
    """How data sets share strength: `str()` puts it in words."""

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Given:
    """Where the parameters come from, in place of a pooling.

    Attributes:
        source: "intervention", "simulated" or "input".
    """

    source: str

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True)
class GroupLevel:
    """In place of a pooling: a column that has one value in each data set."""

    def __str__(self) -> str:
        return "one value in each data set"


class Status(Enum):
    """How a fit ended. `str()` gives the name, `text` what it means and what to do.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> fit = pb.fit_node(pb.stats(trial, group="clinic"), "bmi", ["age"])
        >>> fit.status, fit.status.ok
        (<Status.SINGULAR: 'singular fit'>, True)
        >>> print(fit.status.text)
        a variance between data sets is 0, or a correlation is 1 or -1; nothing is wrong
    """

    CONVERGED = "converged"
    SINGULAR = "singular fit"
    NOT_CONVERGED = "did not converge"
    GIVEN = "given"
    RANK_DEFICIENT = "rank deficient"
    TOO_FEW_ROWS = "too few rows"
    NO_RESIDUAL_VARIANCE = "no residual variance"
    SEPARATED = "separated"
    APPROXIMATE = "approximate likelihood"
    INTERCEPT_ONLY = "only the intercept varies"

    @property
    def ok(self) -> bool:
        """Whether the fit has a likelihood; without one it scores -inf."""
        return self not in (
            Status.RANK_DEFICIENT,
            Status.TOO_FEW_ROWS,
            Status.NO_RESIDUAL_VARIANCE,
        )

    @property
    def text(self) -> str:
        """What it means, and what to do."""
        return _TEXTS[self]

    def __str__(self) -> str:
        return str(self.value)


_TEXTS = {
    Status.CONVERGED: "the likelihood has its maximum here",
    Status.SINGULAR: "a variance between data sets is 0, or a correlation is 1 or -1; nothing is "
    "wrong",
    Status.NOT_CONVERGED: "the search for the maximum was stopped; do not use the fit",
    Status.GIVEN: "the parameters are no estimates",
    Status.RANK_DEFICIENT: "a parent is constant or an exact combination of others; leave it out",
    Status.TOO_FEW_ROWS: "the rows do not give all coefficients and a variance; pool, or use fewer "
    "parents",
    Status.NO_RESIDUAL_VARIANCE: "the child is constant or an exact combination of its parents",
    Status.SEPARATED: "parents tell some levels apart without error, so that coefficients have no "
    "estimates; a weak prior holds them",
    Status.APPROXIMATE: "data sets have too few rows for the Laplace approximation, and numerical "
    "integration leaves the log-likelihood uncertain by more than 1; use fewer parents",
    Status.INTERCEPT_ONLY: "the rows do not tell how slopes differ between data sets: variances go "
    "to infinity; the fit is that of Partial(random='intercept')",
}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LocalFit(ABC):
    """The fitted distribution of a node given its parents, whatever kind of node it is.

    Attributes:
        child: the node.
        parents: its p parents, which are nodes.
        given: the levels of each parent; none of a parent that is a number.
        levels: the F data sets.
        pooling: how strength was shared; `str()` puts it in words.
        loglik: maximised log-likelihood; -inf where there is none.
        counts: free parameters by what informs them.
        n_rows: rows in all data sets together.
        status: how the fit ended.
        detail: which columns and data sets that is about.
        left_out: data sets that the likelihood is not about, because the child is constant there
            or was not measured.
        was_set: data sets in which the node was set, see `pb.stats`, which the likelihood is not
            about either. There it has no parents, and the distribution of its values.
        was_changed: data sets in which its mechanism was changed, likewise. There it has parameters
            of its own.
        group: the column that says which data set a row came from.
        categories: the K levels of a discrete node; none for others.
        unit: the column that says which unit of its data set a row is of; None without units.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> fit = pb.fit_node(pb.stats(trial, group="clinic"), "bmi", ["age"])
        >>> fit.pooling, fit.n_params, isinstance(fit, pb.LocalFit)
        (Partial(random='full', residuals='shared', method='ml'), 6, True)
    """

    child: str
    parents: tuple[str, ...]
    given: tuple[tuple[str, ...], ...]
    levels: tuple[Hashable, ...]
    pooling: Pooling
    loglik: float
    counts: Counts
    n_rows: int
    status: Status
    detail: str
    left_out: tuple[Hashable, ...] = ()
    group: str = DATA_SET
    categories: tuple[str, ...] = ()
    unit: str | None = None
    was_set: tuple[Hashable, ...] = ()
    was_changed: tuple[Hashable, ...] = ()

    @property
    @abstractmethod
    def kind(self) -> ColumnKind:
        """What the node's column holds."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What coefficients after the intercept are of.

        A discrete parent has one for each level but its first, such as "sex=male".
        """
        return labels_of(self.parents, self.given)

    def columns_of(self, parent: str) -> list[tuple[int, str, str]]:
        """The columns of a parent: positions, names, and levels, "" where it is a number.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "tobacco", "bmi"]].dropna()
            >>> fit = pb.fit_node(pb.table(trial, group="clinic"), "bmi", ["tobacco"])
            >>> fit.columns_of("tobacco")
            [(0, 'tobacco=yes', 'yes')]
        """
        at = self.parents.index(parent)
        own = zip(spans(self.given)[at], self.given[at][1:] or ("",), strict=True)
        return [(k, self.columns[k], level) for k, level in own]

    @abstractmethod
    def terms(self, parent: str) -> Iterator[Term]:
        """The effects of a parent: for each level of it, and of a discrete child, but the first.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> fit = pb.fit_node(pb.stats(trial, group="clinic"), "bmi", ["age"])
            >>> [(term.scale, round(term.effect, 2)) for term in fit.terms("age")]
            [('difference', 0.2)]
        """

    @property
    def is_given(self) -> bool:
        """Whether it is an input or set by an intervention, with no distribution of its own."""
        return isinstance(self.pooling, Given) and self.pooling.source != "simulated"

    @property
    @abstractmethod
    def holds_tests(self) -> bool:
        """Whether `equality` needs no data."""

    @abstractmethod
    def equality(self, data: Data | None = None) -> dict[str, Equality]:
        """Tests for equal effects in all data sets, by parent, and for equal residual variances.

        Args:
            data: what the node was learned from; None for what the fit holds of it.

        Raises:
            DataError: the fit does not hold what is needed.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> fit = pb.fit_node(pb.stats(trial, group="clinic"), "bmi", ["age"])
            >>> {of: round(test.p_value, 3) for of, test in fit.equality().items()}
            {'(residual variance)': 0.0, 'age': 0.385}
        """

    def proportionality(self, data: Data) -> dict[str, Equality]:
        """Tests by parent that odds ratios are the same at all thresholds between ordered levels.

        Nothing where the node has no such levels, or two.

        Args:
            data: the rows.
        """
        return {}

    def within_between(
        self, data: Data | None = None, interval: float = 0.95, *, units: bool = False
    ) -> Floats | None:
        """Effects of the columns within data sets and between their means, see `withinbetween`.

        None where the node has no such effects, as it is not continuous.

        Args:
            data: what the node was learned from; None for what the fit holds of it.
            interval: the probability of the intervals.
            units: whether within units inside data sets and between their means.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> fit = pb.fit_node(pb.stats(trial, group="clinic"), "bmi", ["age"])
            >>> fit.within_between().round(2)[0, [0, 4]]
            array([ 0.2 , -0.36])
        """
        return None

    @property
    def n_params(self) -> int:
        """Free parameters (eq. nparams for partial pooling)."""
        return sum(self.counts)

    @property
    def aic(self) -> float:
        """Log-likelihood minus the number of parameters: higher is better."""
        return self.loglik - self.n_params

    @property
    def bic(self) -> float:
        """Log-likelihood minus log(n) / 2 for each parameter (eq. bic): higher is better."""
        return self.loglik - math.log(self.n_rows) / 2 * self.n_params

    @property
    @abstractmethod
    def model(self) -> str:
        """What kind of model it is, in words."""

    @property
    def gaussian(self) -> LinearFit | None:
        """The fit itself where it is a linear regression with normal residuals, else None."""
        return None

    @property
    def switches(self) -> tuple[str, ...]:
        """Discrete parents of which each configuration has a regression of its own."""
        return ()

    @property
    def has_population(self) -> bool:
        """Whether it says what new data sets are like."""
        own = 0 < self.counts.own == self.n_params - self.counts.own_units
        return self.status is Status.GIVEN or not own

    @abstractmethod
    def mean(self, values: Values, sets: Integers) -> Floats:
        """The expectation given parents: (...,), or probabilities of levels, (..., K).

        Args:
            values: of the parents, among others: numbers, and codes of levels.
            sets: positions of data sets; arrays that go together.
        """

    @abstractmethod
    def log_density(self, x: Floats, values: Values, sets: Integers) -> Floats:
        """Log densities of rows given parents, (n,), with estimates taken for certain."""

    @abstractmethod
    def draw(self, values: Values, sets: Integers, rng: np.random.Generator) -> Floats:
        """A value for each row given parents, (n,), with estimates taken for certain."""

    @abstractmethod
    def quantile(self, u: Floats, mean: Floats, sets: Integers) -> Floats:
        """The values at probabilities u where this is the mean; see `mean`, and `strata`."""

    def strata(self, values: Values, sets: Integers) -> Integers:
        """Where rows are alike but for their means: in data sets, as these are numbered.

        Or in parts of these, in which the node has a distribution of its own.
        """
        return sets

    @abstractmethod
    def predictive(self, certain: NDArray[np.bool_]) -> Predictions:
        """The predictive distribution; some data sets have estimates for certain, (F,)."""

    def unit_effects(self, rows: Observed, sets: Integers) -> UnitEffects | None:
        """What rows say of the intercepts of their units; None for a node that has none.

        Args:
            rows: of U units inside data sets, which stand for the data sets there.
            sets: the data set of each unit, (U,).

        Examples:
            >>> import numpy as np
            >>> import poolbn as pb
            >>> from poolbn.nodes.drawing import Observed
            >>> trial = pb.datasets.opt()[["clinic", "age"]].dropna()
            >>> trial["ward"] = trial["clinic"] + (trial.index % 5).astype(str)
            >>> fit = pb.fit_node(pb.stats(trial, group=["clinic", "ward"]), "age")
            >>> rows = Observed({}, np.array([30.0, 31.0]), np.array([0, 2]))
            >>> fit.unit_effects(rows, np.array([0])).mean.shape
            (1, 1)
        """
        return None

    @abstractmethod
    def data_set_draws(self, draws: int, rng: np.random.Generator) -> Self:
        """The parameters of the F data sets, `draws` times; as they are for 0 draws."""

    @abstractmethod
    def new_data_sets(self, sets: int, draws: int, rng: np.random.Generator) -> Self:
        """Parameters of new data sets, for each draw of the population if there are draws."""

    def redrawing(self, rows: Observed) -> Callable[[np.random.Generator], Predictions]:
        """What draws the parameters that rows leave possible, as if they were certain.

        By default they are the estimates.
        """
        return self._as_estimated()

    def _as_estimated(self) -> Callable[[np.random.Generator], Any]:
        sure = self.predictive(np.ones(len(self.levels), dtype=bool))
        return lambda rng: sure

    @abstractmethod
    def adapted(self, name: Hashable, new: Data | None, n: Integers) -> Self:
        """The fit with one more data set that it was not learned from.

        Args:
            name: what the data set is called.
            new: its rows; None for none.
            n: rows of each data set so far, (F,).
        """

    def with_imputation_error(self, data: Data) -> Self:
        """The fit with intervals that contain what missing cells leave open, if it has such."""
        return self

    @abstractmethod
    def taken(self, at: Sequence[int], levels: tuple[Hashable, ...]) -> Self:
        """The fit of the data sets at these positions, which may repeat, under these names."""

    def _left_out(self, at: Sequence[int], levels: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
        pairs = zip(at, levels, strict=True)
        return tuple(level for j, level in pairs if self.levels[j] in self.left_out)

    def _intervened(self, at: Sequence[int], levels: tuple[Hashable, ...]) -> dict[str, Any]:
        """`was_set` and `was_changed` of the data sets at these positions, under these names."""
        new = [(self.levels[j], level) for j, level in zip(at, levels, strict=True)]
        return {
            name: tuple(level for old, level in new if old in getattr(self, name))
            for name in ("was_set", "was_changed")
        }

    @property
    def experiments(self) -> tuple[Hashable, ...]:
        """The data sets in which the node was set or changed."""
        return (*self.was_set, *self.was_changed)

    @property
    def unset(self) -> Self:
        """The fit of all data sets but experiments on the node; itself if there are none."""
        return self._where(experiments=False) if self.experiments else self

    def about(self, data: Data) -> Data:
        """Of data those that `unset` is about.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> stats = pb.stats(trial, group="clinic", interventions={"NY": ["bmi"]})
            >>> fit = pb.fit_node(stats, "bmi", ["age"])
            >>> fit.about(stats).levels, fit.unset.levels
            (('MN', 'KY', 'MS'), ('MN', 'KY', 'MS'))
        """
        return data.without(self.experiments)

    def _where(self, *, experiments: bool) -> Self:
        at = [j for j, v in enumerate(self.levels) if (v in self.experiments) == experiments]
        return self.taken(at, tuple(self.levels[j] for j in at))

    def set_to(self, where: Data) -> Self:
        """A fit like this one of data sets in which the node was set: its values there.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> stats = pb.stats(trial, group="clinic")
            >>> fit = pb.fit_node(stats.without(["NY"]), "bmi", ["age"])
            >>> fit.set_to(stats.only(["NY"])).coef.round(1)
            array([[27.5,  0. ]])
        """
        raise self._refused()

    def changed_in(self, where: Data) -> Self:
        """A fit like this one of data sets in which the node was changed, each on its own.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> stats = pb.stats(trial, group="clinic")
            >>> fit = pb.fit_node(stats.without(["NY"]), "bmi", ["age"])
            >>> fit.changed_in(stats.only(["NY"])).coef.round(1)
            array([[22.5,  0.2]])
        """
        raise self._refused()

    def _refused(self) -> DataError:
        return DataError(
            f"{self.child!r} is {self.kind}, which cannot be among interventions; make it an input"
        )

    def followed_by(self, there: Self) -> Self:
        """The fit with these experiments at the end.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> stats = pb.stats(trial, group="clinic")
            >>> fit = pb.fit_node(stats.without(["NY"]), "bmi", ["age"])
            >>> fit.followed_by(fit.set_to(stats.only(["NY"]))).levels
            ('MN', 'KY', 'MS', 'NY')
        """
        raise self._refused()

    def _with_experiments(self, there: Self) -> dict[str, Any]:
        """`was_set` and `was_changed` of `followed_by`."""
        names = ("was_set", "was_changed")
        return {name: (*getattr(self, name), *getattr(there, name)) for name in names}

    def in_order(self, levels: tuple[Hashable, ...]) -> Self:
        """The fit with its data sets in this order.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> fit = pb.fit_node(pb.stats(trial, group="clinic"), "bmi", ["age"])
            >>> fit.in_order(("KY", "MN", "MS", "NY")).levels
            ('KY', 'MN', 'MS', 'NY')
        """
        return self.taken([self.levels.index(level) for level in levels], levels)

    def _beside_set(self, name: Hashable, new: Data | None, n: Integers) -> Self:
        """`adapted` where there are experiments on the node."""
        free = np.array([v not in self.experiments for v in self.levels])
        made = self.unset.adapted(name, new, n[free])
        return made.followed_by(self._where(experiments=True)).in_order((*self.levels, name))

    def _in_all(self, terms: Iterable[Term]) -> Iterator[Term]:
        """Terms of `unset`, with NaN for experiments on the node."""
        free = np.array([v not in self.experiments for v in self.levels])
        for term in terms:
            each = np.full((3, len(free)), np.nan)
            each[:, free] = term.own, term.own_se, term.own_df
            yield term._replace(own=each[0], own_se=each[1], own_df=each[2])

    def alone(self, parent: str, data: Data) -> list[tuple[Floats, Floats, Floats]]:
        """Estimates of each data set's rows alone, for each of `terms`; nothing if none are made.

        Values, standard errors and degrees of freedom in the data sets of `data`; NaN where the
        rows do not give them.
        """
        return []

    def residuals(self, x: Floats, fitted: Floats, sets: Integers) -> Floats:
        """Residuals that are standard normal if the model is right, (n,).

        By default those of rows in units of their own standard deviation.

        Args:
            x: values, (n,).
            fitted: see `mean`.
            sets: see `strata`, (n,).
        """
        rest = x - fitted
        return np.asarray(rest / (rest.std() or 1.0))

    def explained(
        self, x: Floats, values: Values, sets: Integers
    ) -> dict[str, tuple[Floats, float]]:
        """By outcome: what parents make of the scale of effects, (n,), and the variance beside it.

        Args:
            x: values that were drawn, (n,).
            values: those of parents.
            sets: positions of data sets, (n,).
        """
        mean = self.mean(values, sets)
        return {"": (mean, float(np.var(x - mean)))}

    def variances(self, data: Data) -> Variances | None:
        """What fixed and random effects explain of the node's variance, see `rsquared`.

        None where that has no one number: of a table, and of more than two levels.

        Args:
            data: what the node was fitted to.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> stats = pb.stats(trial, group="clinic")
            >>> found = pb.fit_node(stats, "bmi", ["age"]).variances(stats)
            >>> round(found.marginal, 3), round(found.conditional, 3)
            (np.float64(0.023), np.float64(0.092))
        """
        return None

    @property
    def measure(self) -> str:
        """Whose standard deviations effects are in: "" for its own."""
        return ""

    @property
    def parameters(self) -> str:
        """What differs between data sets, in words."""
        return "coefficients"

    def blocks(self) -> list[Block]:
        """Coefficients on the scale where effects add up, by outcome; none of a table."""
        return []

    def along(self, at: Sequence[Floats]) -> Floats | None:
        """The mean, in the population and then in each data set, at values of `columns`, (m,) each.

        (1 + F, m), or (1 + F, m, K) for K levels; None where it is linear, or a table.
        """
        return None

    @abstractmethod
    def in_population(self) -> Self:
        """The fit of one data set, which is like the population."""

    @property
    def extra(self) -> tuple[str, float] | None:
        """A parameter of the distribution beside these: its name and value."""
        return None

    def as_columns(self, values: Floats) -> dict[str, Floats]:
        """The node's column, and an indicator for each level of a discrete one but the first."""
        made = {
            f"{self.child}={self.categories[code]}": (values == code) * 1.0
            for code in indicators(self.categories)
        }
        return {self.child: values} | made

    @abstractmethod
    def table(self) -> pd.DataFrame:
        """The parameters.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age"]].dropna()
            >>> fit = pb.fit_node(pb.stats(trial, group="clinic"), "age", pooling="complete")
            >>> fit.table()[["fixed", "se"]].round(2)
                         fixed    se
            (Intercept)  25.98  0.19
        """

    def _printed(self) -> str:
        """The parameters as they are printed; of many data sets the first ones."""
        table, F = self.table(), len(self.levels)
        if F <= _SHOWN:
            return str(table.to_string(float_format=figure))
        some = table.iloc[:, : table.shape[1] - F + _FIRST]
        more = f"({F - _FIRST} more {noun_of(self.group).many} in .table())"
        return f"{some.to_string(float_format=figure)}\n{more}"

    def _more(self) -> str:
        """What else there is to say of the parameters, with "; " at its end, or nothing."""
        return "" if self.extra is None else f"{self.extra[0]} {figure(self.extra[1])}; "

    def _lines(self) -> tuple[str, str, str]:
        """What is printed: a title, the parameters, and the numbers below them."""
        sets = counted(len(self.levels), noun_of(self.group))
        given = f" given {', '.join(self.parents)}" if self.parents else ""
        return (
            f"{self.child}{given}: {self.pooling}, {sets}, {self.n_rows} rows",
            self._printed(),
            f"{self._more()}log-likelihood {figure(self.loglik, '.4f')}, "
            f"{self.n_params} parameters, BIC {figure(self.bic, '.4f')}",
        )

    def _ending(self) -> str:
        return f"{self.status}: {noun_of(self.group).said(self.detail)}"

    def __str__(self) -> str:
        return visible("\n".join([*self._lines(), self._ending()]), "\n")

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        title, _, numbers = map(html.escape, self._lines())
        table = self.table().to_html(float_format=figure)
        return f"<p><b>{title}</b></p>{table}<p>{numbers}<br>{html.escape(self._ending())}</p>"


Fit = TypeVar("Fit", bound=LocalFit)


def predictor(coef: Floats, columns: Iterable[Floats], sets: Integers) -> Floats:
    """The intercept and columns with the coefficients of data sets, (F, q)."""
    total: Floats = coef[sets, 0]
    for k, column in enumerate(columns, start=1):
        total = total + coef[sets, k] * column
    return total


def grouped(fit: Fit, group: str) -> Fit:
    """The fit with the name of the group column."""
    return fit if fit.group == group else renamed(fit, group=group)


def renamed(fit: Fit, **changes: Any) -> Fit:
    """The fit with other names; nothing is checked or made again."""
    made = object.__new__(type(fit))
    made.__dict__.update(vars(fit), **changes)
    return made


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LinearFit(LocalFit):
    """What `GaussianFit` holds, for the modules that its answers come from."""

    coef: Floats
    coef_cov: Floats
    sigma2: Floats
    squares: Floats
    df: Floats
    effective_df: Floats
    rows: Floats
    total_cov: Floats | None
    between_cov: Floats | None
    unbiased: bool
    fixed: Floats | None = None
    fixed_cov: Floats | None = None
    random_cov: Floats | None = None
    residual_shape: float | None = None
    residual_scale: float | None = None
    sums: Sums | None = None
    saved_intervals: Intervals | None = None
    later: Callable[[], Intervals] | None = None
    unit_share: Floats | None = None

    @cached_property
    def within(self) -> Self:
        """The fit with variances of residuals alone, as of rows whose units are known."""
        share = self.unit_share
        if share is None or (share == 1).all():  # a column that describes units
            return self
        return replace(self, sigma2=self.sigma2 * (1 - share), unit_share=None)

    @cached_property
    def across(self) -> Self:
        """The fit with variances of rows of units that are not known, no two rows of the same."""
        if self.within is self or self.unit_share is None:
            return self
        scale, left = self.residual_scale, 1 - self.unit_share
        scale = None if scale is None else float(scale / left[0])
        squares = self.squares / left
        return replace(self, squares=squares, residual_scale=scale, unit_share=None)

    @property
    def unit_sd(self) -> Floats | None:
        """The standard deviation between units inside each data set, (F,); None without units."""
        return None if self.unit_share is None else np.sqrt(self.sigma2 * self.unit_share)

    @property
    def kind(self) -> ColumnKind:
        """What the node's column holds."""
        return "continuous"

    @property
    def model(self) -> str:
        """What kind of model it is, in words."""
        return "linear regression"

    @property
    @abstractmethod
    def intervals(self) -> Intervals | None:
        """Standard errors and degrees of freedom of effects; None where they are not known."""

    @property
    def coef_sd(self) -> Floats:
        """Standard errors of the coefficients in each data set, (F, q)."""
        return np.sqrt(np.diagonal(self.coef_cov, axis1=1, axis2=2))

    @property
    def fixed_se(self) -> Floats | None:
        """Standard errors of the fixed effects, (q,)."""
        return None if self.fixed_cov is None else np.sqrt(np.diagonal(self.fixed_cov))

    @property
    def random(self) -> Floats | None:
        """Predicted random effects (BLUPs), (F, q): what `coef` adds to `fixed`."""
        if self.random_cov is None or self.fixed is None:
            return None
        return self.coef - self.fixed

    @property
    def random_sd(self) -> Floats | None:
        """Standard deviation of each random effect between data sets, (q,)."""
        return None if self.random_cov is None else np.sqrt(np.diagonal(self.random_cov))

    @property
    def random_corr(self) -> Floats | None:
        """Correlations of the random effects, (q, q); 0 where a variance is 0."""
        if self.random_cov is None:
            return None
        sd = np.sqrt(np.diagonal(self.random_cov))
        inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
        corr: Floats = np.clip(self.random_cov * np.outer(inverse, inverse), -1, 1)
        np.fill_diagonal(corr, 1.0)
        return corr

    @abstractmethod
    def population_draws(self, draws: int, rng: np.random.Generator) -> Floats:
        """Coefficients of the population, (draws, q); without pooling the mean of data sets'."""

    def position(self, column: str) -> int:
        """Which coefficient is that of a column."""
        return 1 + self.columns.index(column)

    @property
    def population_se(self) -> Floats:
        """Standard errors of the coefficients of the population of data sets, (q,).

        Where coefficients vary they come from the spread of the data sets' own estimates (Hartung
        and Knapp), not from estimated variances, which are too small with few data sets.
        """
        if self.intervals is not None:
            return self.intervals.population_se
        if self.fixed_se is not None:
            return self.fixed_se
        return np.asarray(np.sqrt((self.coef_sd**2).sum(axis=0)) / len(self.levels))

    @property
    def population_df(self) -> Floats:
        """The degrees of freedom that they have, (q,); inf where these are not known."""
        if self.intervals is None:
            return np.full(len(self.columns) + 1, np.inf)
        return self.intervals.population_df

    def population(self, k: int) -> tuple[float, float, float]:
        """A coefficient in the population of data sets, its standard error, degrees of freedom.

        Without pooling it is the mean over data sets, but those that are left out.
        """
        values = self.fixed
        if values is None:
            out = {*self.left_out, *self.experiments}
            values = self.coef[[level not in out for level in self.levels]].mean(axis=0)
        return float(values[k]), float(self.population_se[k]), float(self.population_df[k])

    @abstractmethod
    def own_errors(self, k: int, family: GroupStats | None = None) -> tuple[Floats, Floats]:
        """Standard errors and degrees of freedom of a coefficient in each data set, (F,) each.

        Where a fit does not know them, as one that is given, variances are taken as known; with
        statistics of the parents and, last, the child they allow for what these tell.
        """
