"""Discrete nodes and counts with parents of all kinds: logistic and count regressions from rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from poolbn.moments.data import Data, numbers
from poolbn.moments.indicators import spans
from poolbn.nodes import glmm, marginal
from poolbn.nodes.auto import Candidate
from poolbn.nodes.design import Design, Family, Response, collapse
from poolbn.nodes.equality import Equality
from poolbn.nodes.localfit import INTERCEPT, Counts, LocalFit, Status, level_columns
from poolbn.nodes.logeffects import Estimates, LogEffects, known_effects, regression_effects
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.nodes.rowscores import Rows
from poolbn.nodes.terms import Term, held_tests, log_terms
from poolbn.tables.kinds import ColumnKind
from poolbn.wording import figure

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RegressionFit(LocalFit):
    """A logistic regression of a discrete node, or a log-linear one of a count, in each data set.

    Coefficients are differences of log odds from the first level, or of logarithms of the mean. The
    intercept comes first, and a discrete parent has one for each level but its first.

    Attributes:
        coef: coefficients in each data set, for each level but the first or for the count,
            (F, K - 1, q).
        fixed: those of the population, (K - 1, q); None without pooling.
        coef_cov: covariance of the coefficients in each data set with all that is uncertain, those
            of one level after those of another, (F, (K - 1) q, (K - 1) q).
        fixed_cov: of those of the population, ((K - 1) q, (K - 1) q); None without pooling.
        random_cov: covariance of the random effects of one level, (q, q); for partial pooling.
        dispersion: of counts with more variance than a Poisson distribution has, mean + mean^2 /
            dispersion; inf for all others.
        saved_effects: how sure effects are, by the rows; None where that is not known.
        later: where cells are missing, what makes the effects.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days"]]
        >>> made = trial.assign(preterm=trial["gestation_days"] < 259)
        >>> table = pb.table(made, group="clinic", columns=["age", "preterm"])
        >>> pb.fit_node(table, "preterm", ["age"], pooling="complete")
        preterm given age: complete pooling, 4 clinics, 823 rows
                     fixed      se     NY     MN     KY     MS
        (Intercept) -2.803  0.4848 -2.803 -2.803 -2.803 -2.803
        age         0.0362 0.01768 0.0362 0.0362 0.0362 0.0362
        log-likelihood -325.3294, 2 parameters, BIC -332.0423
        converged: the likelihood has its maximum here
    """

    coef: Floats
    coef_cov: Floats
    fixed: Floats | None
    fixed_cov: Floats | None
    random_cov: Floats | None
    dispersion: float
    saved_effects: LogEffects | None = None
    later: Callable[[], LogEffects] | None = None

    @cached_property
    def effects(self) -> LogEffects:
        """Effects of parents on log odds or log means, and how sure they are."""
        if self.later is not None:
            return self.later()
        return known_effects(self.estimates) if self.saved_effects is None else self.saved_effects

    @property
    def estimates(self) -> Estimates:
        """The coefficients and what is uncertain of them."""
        return Estimates(*(getattr(self, name) for name in Estimates._fields))

    @property
    def response(self) -> Response:
        """What kind of child it is."""
        if self.categories:
            return Response(levels=len(self.categories))
        counts = Family.POISSON if self.dispersion == inf else Family.NEGATIVE_BINOMIAL
        return Response(counts)

    @property
    def kind(self) -> ColumnKind:
        """What the node's column holds."""
        return "discrete" if self.categories else "count"

    def terms(self, parent: str) -> Iterator[Term]:
        """The effects of a parent: logarithms of odds ratios, or of ratios of means."""
        pooled = not isinstance(self.pooling, NoPooling)
        return log_terms(self.effects, self.columns_of(parent), self.categories[1:], pooled=pooled)

    @property
    def holds_tests(self) -> bool:
        """Whether `equality` needs no data."""
        return True

    def equality(self, data: Data | None = None) -> dict[str, Equality]:
        """Tests for equal effects, which the fit holds."""
        return held_tests(self.parents, self.effects)

    @property
    def model(self) -> str:
        """What kind of model it is, in words."""
        if self.categories:
            return "logistic regression"
        of = "Poisson" if self.dispersion == inf else "negative binomial"
        return f"{of} regression"

    @property
    def fixed_se(self) -> Floats | None:
        """Standard errors of the coefficients of the population, (K - 1, q)."""
        if self.fixed_cov is None:
            return None
        return np.sqrt(np.diagonal(self.fixed_cov)).reshape(self.coef.shape[1:])

    def table(self) -> pd.DataFrame:
        """A row for each coefficient: of the population, its error, and in each data set.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age"]]
            >>> tens = trial.assign(age=trial["age"] // 10)
            >>> table = pb.table(tens, group="clinic", kinds={"age": "count"})
            >>> pb.fit_node(table, "age", pooling="complete").table()["fixed"].round(2).to_dict()
            {'(Intercept)': 0.77}
        """
        import pandas as pd

        columns: dict[object, Floats] = {}
        if self.fixed is not None and self.fixed_se is not None:
            columns |= {"fixed": self.fixed.ravel(), "se": self.fixed_se.ravel()}
        if self.random_cov is not None:
            sd = np.sqrt(np.diagonal(self.random_cov))
            columns["between_sd"] = np.tile(sd, self.coef.shape[1])
        names = level_columns(self.levels, list(columns))
        columns |= dict(zip(names, self.coef.reshape(len(self.levels), -1), strict=True))
        terms = [INTERCEPT, *self.columns]
        index: pd.Index = pd.Index(terms)
        if self.coef.shape[1] > 1:
            index = pd.MultiIndex.from_product([self.categories[1:], terms])
        return pd.DataFrame(columns, index=index)

    def _more(self) -> str:
        inside = self.dispersion < inf
        return f"dispersion {figure(self.dispersion)}; " if inside else ""


def design_of(table: Data, child: str, parents: Sequence[str]) -> Design:
    """The rows of a family, equal ones counted where that makes them fewer."""
    _, X = numbers(table, parents)
    rows = table.cases([child])
    (y,), offsets, n = rows.columns, rows.offsets, rows.n
    ones = np.ones(len(y))
    weight = ones if n is None else n.astype(np.float64)
    design = Design(np.vstack([ones, X]).T, y.astype(np.int64), weight, offsets)
    if not weight.all():
        design = _counting(design)
    return design if table.scattered.intersection(parents) else collapse(design)


def _counting(design: Design) -> Design:
    """Without the rows that do not count."""
    counts = design.weight > 0
    offsets = np.concatenate([[0], np.cumsum(counts)])[design.offsets]
    return Design(design.X[counts], design.y[counts], design.weight[counts], offsets)


def responses(table: Data, child: str) -> Sequence[Response]:
    """What kind of child it may be: counts may have more variance than a Poisson distribution."""
    K = len(table.categories[table.names.index(child)])
    if K:
        return (Response(levels=K),)
    return Response(Family.POISSON), Response(Family.NEGATIVE_BINOMIAL)


@dataclass(frozen=True, eq=False)
class Problems:
    """The regressions that a node may have with some parents.

    Attributes:
        design: the rows.
        response: what kind of child.
        owners: the parent that each column after the intercept is of, (q - 1,).

    Examples:
        >>> import poolbn as pb
        >>> made = pb.datasets.opt()[["clinic", "age"]].assign(at=lambda x: x["clinic"] == "NY")
        >>> table = pb.table(made, group="clinic", kinds={"age": "count"})
        >>> problems, _ = problems_of(table, "age", ["at"])
        >>> problems.varying(pb.Partial()), problems.varying(pb.Partial(random=["at"]))
        (array([False]), array([ True]))
    """

    design: Design
    response: Response
    owners: tuple[str, ...]

    def of(self, how: Candidate) -> glmm.Problem:
        """That of one way to share strength."""
        vary = self.varying(how) if isinstance(how, Partial) else None
        return self.plain if vary is None or vary.all() else self._with(vary)

    @cached_property
    def plain(self) -> glmm.Problem:
        """With all coefficients varying, where any do."""
        return glmm.Problem(self.design, self.response)

    @cached_property
    def _others(self) -> dict[bytes, glmm.Problem]:
        return {}

    def _with(self, vary: NDArray[np.bool_]) -> glmm.Problem:
        if vary.tobytes() not in self._others:
            made = glmm.Problem(self.design, self.response, vary)
            self._others[vary.tobytes()] = made
        return self._others[vary.tobytes()]

    def varying(self, how: Partial) -> NDArray[np.bool_]:
        """Columns after the intercept whose coefficients vary, see `Partial.random`."""
        if how.random != "full":
            slopes = () if how.random == "intercept" else how.random
            return np.array([name in slopes for name in self.owners], dtype=bool)
        rows = np.diff(self.design.offsets) > 0
        starts, X = self.design.offsets[:-1][rows], self.design.X[:, 1:]
        most, least = np.maximum.reduceat(X, starts), np.minimum.reduceat(X, starts)
        return np.asarray((most > least).any(axis=0))

    def counts(self, how: Candidate) -> Counts:
        """Parameters by what informs them; those of slopes that should vary and do not too."""
        problem = self.of(how)
        own = problem.d + problem.dispersed
        if isinstance(how, NoPooling):
            return Counts(0, 0, problem.F * own)
        return Counts(own, problem.n_params - own if isinstance(how, Partial) else 0, 0)

    def partial(self, how: Partial, *, final: bool) -> tuple[glmm.Problem, glmm.Found, bool]:
        """The regression with random effects, its maximum, and whether only the intercept varies.

        Where all vary that `how` says, and variances or correlations of slopes have no maximum
        though complete pooling has one, the rows do not tell of them. With the intercept alone
        there mostly is one.
        """
        problem = self.of(how)
        found = marginal.settle(problem, final)
        if found.ridge != glmm.FREE and problem.r > 1 and not problem.pooled.separated[0]:
            less = self._with(np.zeros(len(self.owners), dtype=bool))
            other = marginal.settle(less, final)
            if other.ridge == glmm.FREE:
                return less, other, True
        return problem, found, False


def owners_of(table: Data, parents: Sequence[str]) -> tuple[str, ...]:
    """The parent that each of their columns of numbers is of."""
    own = spans([table.categories[table.names.index(name)] for name in parents])
    return tuple(name for name, span in zip(parents, own, strict=True) for _ in span)


def problems_of(table: Data, child: str, parents: Sequence[str]) -> list[Problems]:
    """One for each kind of child that it may be, see `responses`."""
    design, owners = design_of(table, child, parents), owners_of(table, parents)
    return [Problems(design, response, owners) for response in responses(table, child)]


def regression_score(
    problems: Problems, hows: Sequence[Candidate], each: Floats, *, final: bool
) -> tuple[float, float]:
    """The best log-likelihood minus penalty, with the effort of a search or a final fit.

    And that of likelihoods which are known roughly, and are not to be compared with others.

    Args:
        problems: the regressions.
        hows: the ways to share strength.
        each: the penalty of a parameter of each kind of `Counts`, (3,).
        final: whether to start from everywhere.
    """
    if problems.plain.basis.dependent >= 0:
        return -inf, -inf
    best = [-inf, -inf]
    for how in hows:
        rough = False
        if isinstance(how, Partial):
            problem, found, _ = problems.partial(how, final=final)
            rough = marginal.is_rough(found)
            loglik = found.loglik + float(problem.constants.sum())
        else:
            plain = problems.plain
            one = plain.complete() if isinstance(how, Complete) else plain.none()
            loglik = float(one.loglik.sum())
        best[rough] = max(best[rough], loglik - float(np.array(problems.counts(how)) @ each))
    return best[0], best[1]


def regression_bound(problems: Problems, hows: Sequence[Candidate], each: Floats) -> float:
    """An upper bound of `regression_score` that costs less.

    What is integrated over random effects is at most its largest value, so partial pooling has at
    most the likelihood of no pooling; by the Laplace approximation too.
    """
    problem = problems.plain
    if problem.basis.dependent >= 0:
        return -inf
    most = problem.largest()
    best = -inf
    for how in hows:
        loglik = float(problem.complete().loglik.sum()) if isinstance(how, Complete) else most
        best = max(best, loglik - float(np.array(problems.counts(how)) @ each))
    return best


def fit_regression(
    table: Data, child: str, parents: Sequence[str], response: Response, how: Candidate
) -> RegressionFit:
    """The final fit of a discrete node or a count."""
    (problems,) = (
        one for one in problems_of(table, child, parents)
        if one.response.family is response.family
    )  # fmt: skip
    problem, F = problems.plain, len(table.levels)
    given = tuple(table.categories[table.names.index(name)] for name in parents)
    fixed = fixed_cov = random_cov = None
    if isinstance(how, Complete | NoPooling):
        one = problem.complete() if isinstance(how, Complete) else problem.none()
        loglik, theta = float(one.loglik.sum()), float(one.theta.mean())
        coef, coef_cov = one.coef, one.cov
        ended = _status(one.dependent, bool(one.separated.any()), bool(one.converged.all()))
        if isinstance(how, Complete):
            fixed, fixed_cov = coef[0], coef_cov[0]
            coef, coef_cov = np.tile(coef, (F, 1, 1)), np.tile(coef_cov, (F, 1, 1))
    else:
        problem, found, less = problems.partial(how, final=True)
        mixed = problem.mixed(found)
        loglik, theta = mixed.loglik, mixed.theta
        coef, coef_cov = mixed.coef, mixed.coef_cov
        fixed, fixed_cov, random_cov = mixed.fixed, mixed.fixed_cov, mixed.random_cov
        ended = _status(
            mixed.dependent, mixed.separated, mixed.converged, mixed.rank < problem.r, mixed.summed,
            marginal.is_rough(found), less,
        )  # fmt: skip
    status, detail = ended
    return RegressionFit(
        child=child,
        parents=tuple(parents),
        given=given,
        levels=table.levels,
        pooling=how,
        loglik=loglik if status.ok else -inf,
        counts=problems.counts(how),
        n_rows=table.n_rows,
        status=status,
        detail=detail,
        categories=table.categories[table.names.index(child)],
        coef=coef,
        coef_cov=coef_cov,
        fixed=fixed,
        fixed_cov=fixed_cov,
        random_cov=random_cov,
        dispersion=theta if response.family is Family.NEGATIVE_BINOMIAL else inf,
    )


def with_effects(fit: RegressionFit, table: Data, *, tests: bool = True) -> RegressionFit:
    """The fit with how sure its effects are, which needs the rows."""
    if not fit.parents or not fit.status.ok:
        return fit
    rows = Rows(design_of(table, fit.child, fit.parents), fit.response, fit.dispersion)
    separated = fit.status is Status.SEPARATED
    own = spans(fit.given)
    vary = None
    if isinstance(fit.pooling, Partial):
        design, owners = rows.design, owners_of(table, fit.parents)
        vary = Problems(design, fit.response, owners).varying(fit.pooling)
        vary &= fit.status is not Status.INTERCEPT_ONLY
    found = regression_effects(rows, fit.estimates, own, vary, separated=separated, tests=tests)
    return replace(fit, saved_effects=found)


def _status(
    dependent: int,
    separated: bool,
    converged: bool,
    singular: bool = False,
    summed: bool = False,
    rough: bool = False,
    less: bool = False,
) -> tuple[Status, str]:
    trouble = {
        Status.RANK_DEFICIENT: (dependent >= 0, "a parent is constant or a combination of others"),
        Status.SEPARATED: (separated, "coefficients are held by a weak prior"),
        Status.APPROXIMATE: (rough, "data sets have few rows for so many coefficients"),
        Status.NOT_CONVERGED: (not converged, "the search for the maximum was stopped"),
        Status.INTERCEPT_ONLY: (
            less,
            "with slopes that vary the likelihood has no maximum; in this fit only the intercept "
            "varies",
        ),
    }
    for status, (met, detail) in trouble.items():
        if met:
            return status, detail
    ended = Status.SINGULAR if singular else Status.CONVERGED
    if summed:
        return ended, "random effects are integrated numerically, as data sets have few rows"
    return (
        ended,
        "by the Laplace approximation" if singular else "the likelihood has its maximum here",
    )
