"""What a network is asked, and the tables it answers with: `Network`'s methods call these."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, Option, OptionError, check_count, check_interval, nearest
from poolbn.inference import infer, weighting
from poolbn.inference.events import Event, Probability, happens, probability
from poolbn.inference.infer import Model
from poolbn.inference.mixtures import Posterior
from poolbn.nodes.localfit import level_columns
from poolbn.tables.cells import Cells, find_level, read_cells, read_evidence

if TYPE_CHECKING:
    import pandas as pd

How = Literal["exact", "lw"]
MOST_PROBABLE = "most_probable"


def log_likelihood(model: Model, group: str, data: object) -> pd.Series[float]:
    """The log density of each row."""
    import pandas as pd

    cells = _read(model, group, data)
    density = infer.log_densities(model, cells.values, cells.codes)
    return pd.Series(density, index=cells.index, name="loglik")


def predict(
    model: Model,
    group: str,
    data: object,
    target: str | Sequence[str],
    *,
    interval: float,
    method: How,
    particles: int,
    seed: int,
) -> pd.DataFrame:
    """Columns mean, sd, lower and upper; for several targets below the name of each."""
    import pandas as pd

    check_interval(interval)
    _check_method(method, particles, seed)
    places = _places(model, target)
    cells = _read(model, group, data)
    evidence = cells.values.copy()
    evidence[:, places] = np.nan
    if method == "exact":
        found = infer.predictions(model, evidence, cells.codes, places, interval)
    else:
        found = weighting.weighted_predictions(
            model, evidence, cells.codes, places, interval, particles=particles, seed=seed
        )
    statistics = ["mean", "sd", "lower", "upper"]
    columns: pd.Index = pd.Index(statistics)
    if not isinstance(target, str):
        columns = pd.MultiIndex.from_product([list(target), statistics])
    table = np.moveaxis(found, 0, 2).reshape(len(evidence), len(columns))
    return pd.DataFrame(table, index=cells.index, columns=columns)


def classify(
    model: Model, group: str, data: object, *, method: How, particles: int, seed: int
) -> pd.DataFrame:
    """P(data set | row) in a column for each data set, and the most probable one."""
    import pandas as pd

    _check_method(method, particles, seed)
    cells = _read(model, group, data, by_group=False)
    if method == "exact":
        found = infer.data_set_probabilities(model, cells.values)
    else:
        found = weighting.weighted_probabilities(
            model, cells.values, particles=particles, seed=seed
        )
    levels = model.joint.levels
    columns = pd.Index(level_columns(levels, [MOST_PROBABLE]), dtype=object)
    table = pd.DataFrame(found, index=cells.index, columns=columns)
    table[MOST_PROBABLE] = pd.Series(levels).to_numpy()[found.argmax(axis=1)]
    return table


def impute(model: Model, group: str, data: object) -> pd.DataFrame:
    """The table with expectations in the place of missing cells of nodes."""
    import pandas as pd

    cells = _read(model, group, data)
    if isinstance(data, pd.DataFrame):
        table = data.copy()
    else:
        labels = [None if code < 0 else model.joint.levels[code] for code in cells.codes]
        nodes = dict(zip(model.joint.names, cells.values.T, strict=True))
        table = pd.DataFrame({c: labels if c == group else nodes[c] for c in cells.columns})
    there = np.isin(model.joint.names, cells.columns)
    gaps = np.isnan(cells.values) & there
    rows = np.flatnonzero(gaps.any(axis=1))
    found = infer.expectations(model, cells.values[rows], cells.codes[rows])
    filled = cells.values.copy()
    filled[rows] = np.where(gaps[rows], found, filled[rows])
    for i in np.flatnonzero(gaps.any(axis=0)):
        table[model.joint.names[i]] = filled[:, i]
    return table


def posterior(
    model: Model, group: str, evidence: Mapping[str, Any], target: str | Sequence[str]
) -> Posterior:
    """The distribution of the targets given evidence."""
    places = _places(model, target)
    row, code = read_evidence(evidence, model.joint.names, group, model.joint.levels)
    told = [model.joint.names[i] for i in places if not np.isnan(row[i])]
    if told:
        raise DataError(f"{told[0]!r} is both evidence and target; leave it out of one of them")
    return infer.posterior(model, row, code, places)


def query(
    model: Model,
    group: str,
    event: Event,
    evidence: Mapping[str, Any] | None,
    *,
    method: How,
    particles: int,
    seed: int,
) -> Probability:
    """The probability of an event given evidence, by sampling."""
    _check_method(method, particles, seed)
    row, code = read_evidence(evidence or {}, model.joint.names, group, model.joint.levels)
    rows = weighting.exact_rows if method == "exact" else weighting.weighted_rows
    sets, values, weights = rows(model, row, code, particles, seed)
    return probability(happens(event, _frame(model, group, sets, values)), weights)


def sample(model: Model, group: str, n: int, data_set: Hashable, *, seed: int) -> pd.DataFrame:
    """Rows of the network, the group column first."""
    check_count(n=n, seed=seed)
    code = -1 if data_set is None else find_level(data_set, model.joint.levels)
    return _frame(model, group, *weighting.sample_rows(model, n, code, seed))


def _read(model: Model, group: str, data: object, *, by_group: bool = True) -> Cells:
    joint = model.joint
    return read_cells(data, joint.names, group if by_group else None, joint.levels)


def _frame(
    model: Model, group: str, sets: NDArray[np.int64], values: NDArray[np.float64]
) -> pd.DataFrame:
    import pandas as pd

    table = pd.DataFrame(values, columns=pd.Index(model.joint.names))
    table.insert(0, group, pd.Series(model.joint.levels).to_numpy()[sets])
    return table


def _places(model: Model, target: str | Sequence[str]) -> NDArray[np.int64]:
    """Where the targets are among the nodes, (T,)."""
    wanted = [target] if isinstance(target, str) else list(target)
    names = model.joint.names
    if not wanted:
        raise DataError(f"no target is named{nearest('', names)}")
    for name in wanted:
        if name not in names:
            raise DataError(f"the target {name!r} is not a node{nearest(name, names)}")
        if wanted.count(name) > 1:
            raise DataError(f"the target {name!r} is named {wanted.count(name)} times")
    return np.array([names.index(name) for name in wanted])


def _check_method(method: str, particles: int, seed: int) -> None:
    if method not in get_args(How):
        raise OptionError(
            Option("method", method), " is not known; use 'exact', or 'lw' for likelihood weighting"
        )
    check_count(particles=particles, seed=seed)
    if particles == 0:
        raise OptionError(Option("particles", 0), " is too few; the default is a good start")
