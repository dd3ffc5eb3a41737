"""What a network is asked: prediction, classification, imputation, probabilities, samples.

Cells of tables that it answers with have levels as categories, and counts as whole numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, get_args, overload

import numpy as np
from numpy.typing import NDArray

from poolbn.arguments import FLAG, among, check_arguments, names_of
from poolbn.arrays import Floats, Integers, Positions
from poolbn.errors import DataError, Option, OptionError, check_count, check_interval, nearest
from poolbn.graph.dag import Dag
from poolbn.inference.engine import Effort, Engine
from poolbn.inference.events import Event, Probability, happens, probability
from poolbn.inference.posterior import Posterior
from poolbn.inference.units import KnownUnits
from poolbn.later import pandas as pd
from poolbn.nodes.localfit import LocalFit, level_columns
from poolbn.tables.cells import (
    Cells,
    NodeKinds,
    find_level,
    one_row,
    read_cells,
    read_evidence,
    unit_names,
)
from poolbn.tables.kinds import is_normal, is_ordered
from poolbn.tables.labels import plain, written

MOST_PROBABLE = "most_probable"
EXPECTED_LEVEL = "expected_level"  # of ordered levels, numbered from 1
NUMBERS = ("mean", "sd", "lower", "upper")
ESS = "ess"


def kinds_of(fits: Mapping[str, LocalFit]) -> NodeKinds:
    """The levels of discrete nodes, and the counts."""
    return NodeKinds(
        categories={name: fit.categories for name, fit in fits.items() if fit.categories},
        kinds={
            name: fit.kind
            for name, fit in fits.items()
            if not (fit.categories or is_normal(fit.kind))
        },
    )


def with_cells(
    column: pd.Series[Any], rows: Positions, values: Floats, levels: Sequence[str]
) -> pd.Series[Any]:
    """A column with numbers or codes of levels in some rows, as the column has them."""
    before, new = column, values
    column = column.copy()
    if levels:
        new = _like(column, levels)[values.astype(np.int64)]
        if column.isna().all() or hasattr(column.dtype, "categories"):
            column = column.astype(object)
    column.iloc[rows] = new
    known = getattr(before.dtype, "categories", None)
    fits = known is not None and column.isin(known).all()
    return column.astype(before.dtype) if fits else column


def _like(column: pd.Series[Any], levels: Sequence[str]) -> NDArray[Any]:
    """The levels as a column has them: true and false, or numbers, where it holds these."""
    own = {written(plain(cell)): plain(cell) for cell in column.dropna().unique()}
    made = np.empty(len(levels), dtype=object)
    made[:] = [own.get(level, level) for level in levels]
    return made


def frame(fits: Mapping[str, LocalFit], values: Floats) -> pd.DataFrame:
    """Rows (n, N), with levels as categories and counts as whole numbers."""
    kinds = kinds_of(fits)
    columns: dict[str, Any] = {}
    for name, own in zip(fits, values.T, strict=True):
        if name in kinds.categories:
            codes = np.where(np.isnan(own), -1, own).astype(np.int64)
            levels, ordered = pd.Index(kinds.categories[name]), is_ordered(fits[name].kind)
            columns[name] = pd.Categorical.from_codes(codes, levels, ordered=ordered)
        else:
            whole = name in kinds.counts and not np.isnan(own).any()
            columns[name] = own.astype(np.int64) if whole else own
    return pd.DataFrame(columns)


Method = Literal["auto", "exact", "lw"]


class Questions(ABC):
    """The questions that a `Network` answers."""

    group: str  # the column that says which data set a row came from
    dag: Dag
    fits: Mapping[str, LocalFit]

    @property
    @abstractmethod
    def levels(self) -> tuple[Hashable, ...]:
        """The data sets."""

    @property
    @abstractmethod
    def unit(self) -> str | None:
        """The column that says which unit of its data set a row is of; None without units."""

    @abstractmethod
    def _engine(self, plugin: bool) -> Engine:
        """What finds answers, with estimates plugged in or uncertain."""

    @abstractmethod
    def _engine_knowing(self, plugin: bool, units: KnownUnits) -> Engine:
        """The same with units inside data sets, of which there are earlier rows."""

    def predict(
        self,
        data: object,
        target: str | Sequence[str],
        *,
        history: object = None,
        interval: float = 0.95,
        plugin: bool = False,
        method: Method = "auto",
        particles: int = 500,
        seed: int = 0,
    ) -> pd.DataFrame:
        """What is to be expected of a node in each row, given the row's other cells.

        The data set is known where the group column says so, and unknown where that cell is missing
        or there is no such column: then all data sets count, by how likely they make the row.
        Missing cells are simply not evidence, and cells of the targets never are.

        What is uncertain of coefficients and variances is part of `sd` and the interval: where the
        target's parents are in the row and nothing below it is, they are those of Student's t. Else
        normal distributions with the same standard deviations stand for t distributions. Below 4
        degrees of freedom `sd` is that of a normal distribution with the same middle 95%. A network
        in which a node is an exact combination of its parents takes estimates for certain.

        With units inside data sets, rows are of units that are not known, unless `history` has
        other rows of the same unit: then each node's level is that of the unit, shrunk towards its
        data set's (best linear unbiased prediction, as lme4's `predict` has it; of discrete nodes
        and counts the mean and variance of the level given these rows). What describes units is
        predicted as without a history.

        Args:
            data: a table or file as for `pb.stats`, or one row as a dict or Series; columns that
                are not nodes do not matter.
            target: a node, or several.
            history: earlier rows of units, a table or file with the column of the data sets and
                that of the units. A row tells of the nodes that it has with all their parents. Do
                not give the rows that are to be predicted.
            interval: the probability of the interval, which leaves out equal tails.
            plugin: whether to take estimates for certain, as bnlearn does.
            method: "exact", or "lw" for likelihood weighting.
            particles: draws for each row with "lw".
            seed: of these draws.

        Returns:
            Columns mean, sd, lower and upper; of a discrete node the probabilities of its levels
            and most_probable, of ordered levels before it expected_level, the mean of their
            positions from 1; for several targets below the name of each. Where rows were drawn,
            the last column, ess, has effective sample sizes. Rows as in the table.

        Raises:
            DataError: the table cannot be used, a data set is not known, or a row is impossible.
            OptionError: an option has a value that it does not take.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> net = pb.learn(trial.dropna(), group="clinic", pooling="complete", preset="paper")
            >>> net.predict(trial.head(2), "birthweight_g").round()
                 mean     sd   lower   upper
            0  3050.0  438.0  2192.0  3908.0
            1  2729.0  438.0  1871.0  3588.0
        """
        effort = _effort(method, particles, seed)
        check_interval(interval)
        at, cells = self._positions(target), self._read(data)
        evidence = cells.values.copy()
        evidence[:, at] = np.nan
        engine, codes = self._asked(history, data, cells, plugin)
        found = engine.predictions(evidence, codes, at.tolist(), interval, effort)
        tables = {}
        for name, own in zip([self.dag.nodes[k] for k in at], found.columns, strict=True):
            levels = self.fits[name].categories
            beside = (EXPECTED_LEVEL, MOST_PROBABLE, ESS)  # columns that tables may have
            columns = [f"{name} (level)" if name in beside else name for name in levels or NUMBERS]
            tables[name] = pd.DataFrame(own, index=cells.index, columns=pd.Index(columns))
            if is_ordered(self.fits[name].kind):
                tables[name][EXPECTED_LEVEL] = own @ np.arange(1.0, len(levels) + 1)
            if levels:
                tables[name][MOST_PROBABLE] = np.array(levels, dtype=object)[own.argmax(axis=1)]
        table = tables[target] if isinstance(target, str) else pd.concat(tables, axis=1)
        return _with_ess(table, found.ess)

    def classify(
        self,
        data: object,
        *,
        plugin: bool = False,
        method: Method = "auto",
        particles: int = 500,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Which data set each row comes from: P(data set | row), and the most probable one.

        A group column in the table is ignored, and missing cells are not evidence. What is
        uncertain of coefficients and variances counts, so a data set with few rows claims less:
        exactly where the parents of all cells are in the row, else approximately, see `predict`.

        Args:
            data: a table or file as for `pb.stats`, or one row as a dict or Series; columns that
                are not nodes do not matter.
            plugin: whether to take estimates for certain, as bnlearn does.
            method: "exact", or "lw" for likelihood weighting.
            particles: draws for each row with "lw".
            seed: of these draws.

        Returns:
            A column for each data set, and last the column most_probable. Rows as in the table.

        Raises:
            DataError: the table cannot be used, or a row is impossible.
            OptionError: an option has a value that it does not take.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "gestation_days"]].dropna()
            >>> net = pb.learn(trial, group="clinic", pooling="none")
            >>> net.classify(trial.head(2)).round(2)
                 NY    MN    KY    MS most_probable
            1  0.10  0.25  0.44  0.21            KY
            2  0.08  0.43  0.34  0.15            MN
        """
        effort = _effort(method, particles, seed)
        cells = self._read(data, by_group=False)
        found, ess = self._engine(plugin).data_sets(cells.values, effort)
        columns = pd.Index(level_columns(self.levels, [MOST_PROBABLE, ESS]), dtype=object)
        table = pd.DataFrame(found, index=cells.index, columns=columns)
        table[MOST_PROBABLE] = self._labels(found.argmax(axis=1))
        return _with_ess(table, ess)

    @overload
    def loglik(
        self, data: object, *, rows: Literal[False] = False, plugin: bool = False
    ) -> float: ...

    @overload
    def loglik(
        self, data: object, *, rows: Literal[True], plugin: bool = False
    ) -> pd.Series[float]: ...

    def loglik(
        self, data: object, *, rows: bool = False, plugin: bool = False
    ) -> float | pd.Series[float]:
        """The log-likelihood of rows: their log densities, together or each.

        The density is that of the row's data set, or where that is not known of the mixture of all
        of them. It is the predictive density, with all that is uncertain of coefficients and
        variances: in each data set the product of Student's t densities of nodes given parents.
        Missing cells are integrated out, approximately where they are above others, see `predict`.
        A node that is certain, as after `do`, makes the
        density 0 where the row disagrees, and else counts for nothing.

        Args:
            data: a table or file as for `pb.stats`, or one row as a dict or Series; columns that
                are not nodes do not matter.
            rows: whether to return the log density of each row.
            plugin: whether to take estimates for certain, as bnlearn does.

        Raises:
            DataError: the table cannot be used, or a data set is not known.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.learn(trial, group="clinic", pooling="complete", preset="paper")
            >>> fitted = sum(fit.loglik for fit in net.fits.values())
            >>> round(net.loglik(trial, plugin=True) - fitted, 6) == 0
            True
        """
        check_arguments(rows=(rows, FLAG))
        cells = self._read(data)
        density = self._engine(plugin).log_densities(cells.values, cells.codes)
        if not rows:
            return float(density.sum())
        return pd.Series(density, index=cells.index, name="loglik")

    def impute(self, data: object, *, history: object = None, plugin: bool = False) -> pd.DataFrame:
        """The table with missing cells of nodes filled by their expectation given the row.

        The group column stays as it is, and columns that the table lacks are not added.

        Args:
            data: a pandas table or one row as a dict or Series, of which the result is a copy; or a
                table or file as for `pb.stats`, of which the result has the group column and the
                nodes.
            history: other rows of the same units inside data sets, see `predict`.
            plugin: whether to take estimates for certain, as bnlearn does.

        Raises:
            DataError: the table cannot be used, a data set is not known, or a row is impossible.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]]
            >>> net = pb.learn(trial.dropna(), group="clinic")
            >>> int(trial.isna().sum().sum()), int(net.impute(trial).isna().sum().sum())
            (87, 0)
        """
        data = one_row(data)
        cells, names = self._read(data), self.dag.nodes
        if isinstance(data, pd.DataFrame):
            table = data.copy()
        else:
            labels = [None if code < 0 else self.levels[code] for code in cells.codes]
            nodes = frame(self.fits, cells.values)
            table = pd.DataFrame(
                {c: labels if c == self.group else nodes[c] for c in cells.columns}
            )
        missing = np.isnan(cells.values)
        wanted = np.isin(names, cells.columns) & missing.any(axis=0)
        rows = np.flatnonzero(missing[:, wanted].any(axis=1))
        at_all = np.flatnonzero(wanted).tolist()
        engine, codes = self._asked(history, data, cells, plugin)
        filled = engine.filled(cells.values[rows], codes[rows], at_all)
        for i in at_all:
            name, here = names[i], missing[rows, i]
            at, new = rows[here], filled[here, i]
            cells.values[at, i] = new
            table[name] = (
                with_cells(table[name], at, new, self.fits[name].categories)
                if name in self._kinds.categories or name in self._kinds.counts
                else cells.values[:, i]
            )
        return table

    def posterior(
        self, evidence: Mapping[str, Any], target: str | Sequence[str], *, plugin: bool = False
    ) -> Posterior:
        """The distribution of some nodes given evidence.

        It is exact where that of `predict` is.

        Args:
            evidence: values of nodes by name, and perhaps by the name of the group column the data
                set.
            target: a node, or several.
            plugin: whether to take estimates for certain, as bnlearn does.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> net = pb.learn(trial.dropna(), group="clinic", pooling="none")
            >>> net.posterior({"birthweight_g": 2500, "age": 40}, "gestation_days")
            Posterior of gestation_days
              gestation_days  mean 254.541, SD 14.69
              data set  MN 0.357, NY 0.287, KY 0.243, MS 0.113
              found by  exact
        """
        at = self._positions(target)
        row, code = self._evidence(evidence)
        told = [self.dag.nodes[i] for i in at if not np.isnan(row[i])]
        if told:
            raise DataError(f"{told[0]!r} is both evidence and target; leave it out of one of them")
        return self._engine(plugin).posterior(row, code, at.tolist())

    def query(
        self,
        event: Event,
        evidence: Mapping[str, Any] | None = None,
        *,
        plugin: bool = False,
        method: Method = "auto",
        particles: int = 10_000,
        seed: int = 0,
    ) -> Probability:
        """The probability of an event given evidence, by sampling.

        Args:
            event: a condition on nodes and the group column: comparisons (`30 < age <= 40`) of
                columns, numbers and names of data sets or levels in quotes (`grade >= 'middle'` of
                an ordinal column), with + - * /, and, or, not, and brackets; names of columns that
                are not Python's stand in backticks. Nothing else is understood, and nothing in a
                text is run. Or a function of a table of draws that returns True or False for each
                row.
            evidence: values of nodes by name, and perhaps by the name of the group column the data
                set.
            plugin: whether to take estimates for certain, as bnlearn does.
            method: "exact" draws from the distribution given the evidence (`predict` says how
                exact it is), "lw" is likelihood weighting.
            particles: draws.
            seed: of the draws.

        Raises:
            DataError: a name is not known, or the evidence is impossible.
            OptionError: the event or an option cannot be used.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> net = pb.learn(trial.dropna(), group="clinic", pooling="complete", preset="paper")
            >>> net.query("birthweight_g < 2500 and age < 30", {"gestation_days": 260})
            0.1302 (standard error 0.0034)
        """
        effort = _effort(method, particles, seed)
        row, code = self._evidence({} if evidence is None else evidence)
        drawn = self._engine(plugin).conditional_rows(row, code, effort)
        return probability(happens(event, self._frame(drawn.sets, drawn.values)), drawn.weights)

    def sample(
        self, n: int, data_set: Hashable = None, *, plugin: bool = False, seed: int = 0
    ) -> pd.DataFrame:
        """Rows drawn from the network, the group column first.

        Each row has coefficients and variances of its own, drawn from what is known of them.

        Args:
            n: how many rows.
            data_set: where all of them come from; None draws it for each row by P(F).
            plugin: whether to take estimates for certain, as bnlearn does.
            seed: of the draws.

        Raises:
            DataError: the data set is not known.
            OptionError: `n` or `seed` is not a whole number.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.learn(trial, group="clinic", pooling="complete", preset="paper")
            >>> net.sample(2, "KY", seed=1).round(1)
              clinic   age   bmi
            0     KY  23.2  30.1
            1     KY  29.7  33.4
        """
        check_count(n=n, seed=seed)
        code = -1 if data_set is None else find_level(data_set, self.levels)
        return self._frame(*self._engine(plugin).sample(n, code, seed))

    @property
    def _kinds(self) -> NodeKinds:
        return kinds_of(self.fits)

    def _read(self, data: object, *, by_group: bool = True) -> Cells:
        group = self.group if by_group else None
        return read_cells(data, self.dag.nodes, group, self.levels, self._kinds)

    def _asked(
        self, history: object, data: object, cells: Cells, plugin: bool
    ) -> tuple[Engine, Integers]:
        """What finds answers for rows, and the places of these among its data sets.

        Units inside data sets of which there are earlier rows come after the data sets.
        """
        if history is None:
            return self._engine(plugin), cells.codes
        if self.unit is None:
            raise DataError(
                f"earlier rows are those of units inside {self.group!r}, and the network has no "
                "units; learn with ",
                Option("group", [self.group, "unit"]),
            )
        before = self._read(history)
        told = self._keys("history", history, before, self.unit)
        asked = self._keys("table", data, cells, self.unit)
        both = set(asked)
        keys = dict.fromkeys(key for key in told if key is not None and key in both)
        known = {key: u for u, key in enumerate(keys)}
        unit = np.array([known.get(key, -1) if key else -1 for key in told], dtype=np.int64)
        rows = np.argsort(unit, kind="stable")[np.count_nonzero(unit < 0) :]
        sets = np.array([code for code, _ in known], dtype=np.int64)
        names = tuple(f"{self.levels[code]}/{name}" for code, name in known)
        place = np.array([known.get(key, -1) if key else -1 for key in asked], dtype=np.int64)
        units = KnownUnits(before.values[rows], unit[rows], sets, names)
        codes = np.where(place < 0, cells.codes, len(self.levels) + place)
        return self._engine_knowing(plugin, units), codes

    def _keys(
        self, what: str, source: object, cells: Cells, unit: str
    ) -> list[tuple[int, str] | None]:
        """Data set and unit of each row, None where one of them is missing."""
        if len(cells.codes) and (cells.codes < 0).all():
            raise DataError(
                f"no row of the {what} says its data set: units are inside data sets, so give "
                f"column {self.group!r} beside {unit!r}"
            )
        pairs = zip(cells.codes.tolist(), unit_names(source, unit, what), strict=True)
        return [None if code < 0 or name is None else (code, name) for code, name in pairs]

    def _evidence(self, evidence: Mapping[str, Any]) -> tuple[Floats, int]:
        return read_evidence(evidence, self.dag.nodes, self.group, self.levels, self._kinds)

    def _labels(self, sets: Integers) -> Any:
        """The names of data sets."""
        return pd.Series(self.levels).to_numpy()[sets]

    def _frame(self, sets: Integers, values: Floats) -> pd.DataFrame:
        table = frame(self.fits, values)
        table.insert(0, self.group, self._labels(sets))
        return table

    def _positions(self, target: str | Sequence[str]) -> Integers:
        """Which of the nodes are the targets, (T,)."""
        wanted = [target] if isinstance(target, str) else names_of("target", target)
        names = self.dag.nodes
        if not wanted:
            raise DataError(f"no target is named{nearest('', names)}")
        for name in wanted:
            if name not in names:
                raise DataError(f"the target {name!r} is not a node{nearest(name, names)}")
            if wanted.count(name) > 1:
                raise DataError(f"the target {name!r} is named {wanted.count(name)} times")
        return np.array([names.index(name) for name in wanted])


def _effort(method: str, particles: int, seed: int) -> Effort:
    if not among(method, get_args(Method)):
        raise OptionError(
            Option("method", method),
            " is not known; use 'auto', 'exact', or 'lw' for likelihood weighting",
        )
    check_count(1, particles=particles)
    check_count(seed=seed)
    return Effort(method, particles, seed)


def _with_ess(table: pd.DataFrame, ess: Floats) -> pd.DataFrame:
    """With a column of effective sample sizes where rows were drawn."""
    if np.isfinite(ess).any():
        table[ESS if table.columns.nlevels == 1 else (ESS, "")] = ess
    return table
