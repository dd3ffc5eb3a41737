"""`Comparison`: how well networks with different poolings predict, in tables and in words."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import OptionError, nearest
from poolbn.network.network import Network
from poolbn.wording import listed

if TYPE_CHECKING:
    import pandas as pd

_CLEAR = 2.0  # standard errors
_WORDS = {"complete": "complete pooling", "none": "no pooling", "partial": "partial pooling"}


class Difference(NamedTuple):
    """How far a pooling is behind the best one, in log-likelihood per held-out row.

    Attributes:
        mean: over all rows.
        se: its standard error, from the differences in the folds.
        folds: in how many folds it is behind.
    """

    mean: float
    se: float
    folds: int

    @property
    def clear(self) -> bool:
        """Whether it is more than chance makes."""
        return self.mean > _CLEAR * self.se


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Networks learned with P poolings, and how well they predict rows not learned from.

    Log-likelihoods are means per row, with the row's data set known: higher is better. Where a
    network could not be fitted they are -inf, and `trouble` says why.

    Attributes:
        networks: by name of the pooling, the network learned from all rows.
        rows: held-out rows that were predicted in each of the K folds, (K,).
        loglik: their log-likelihoods, (P, K).
        left_out: L data sets that were left out as a whole, and predicted from the population.
        left_out_rows: rows of each of them that were predicted, (L,).
        left_out_loglik: their log-likelihoods, (P, L).
        known: root mean square error of each variable, predicted from all others with the data set
            known, over its standard deviation in all rows together, (P, N).
        unknown: the same with the data set unknown, (P, N).
        f1: F1 of guessing the data set of a row, the mean over data sets, (P,).
        trouble: for each pooling, in words, why it could not be fitted in some folds, or "".
        no_population: for each pooling, in words, why it says nothing of new data sets, or "".

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> found = pb.compare(trial, group="clinic", poolings=["complete", "none"], folds=5)
        >>> found.best, found.loglik.shape, found.left_out
        ('complete', (2, 5), ('NY', 'MN', 'KY', 'MS'))
    """

    networks: Mapping[str, Network]
    rows: NDArray[np.int64]
    loglik: NDArray[np.float64]
    left_out: tuple[Hashable, ...]
    left_out_rows: NDArray[np.int64]
    left_out_loglik: NDArray[np.float64]
    known: NDArray[np.float64]
    unknown: NDArray[np.float64]
    f1: NDArray[np.float64]
    trouble: tuple[str, ...]
    no_population: tuple[str, ...]

    @property
    def poolings(self) -> tuple[str, ...]:
        """The names of the poolings."""
        return tuple(self.networks)

    @property
    def best(self) -> str:
        """The pooling that predicts held-out rows best; of equal ones that with the best score."""
        total = self._total()
        scores = [net.score for net in self.networks.values()]
        return max(zip(total, scores, self.poolings, strict=True))[-1]

    def behind(self, name: str) -> Difference:
        """How far a pooling is behind the best one.

        Raises:
            OptionError: it was not compared.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> found = pb.compare(trial, group="clinic", poolings=["complete", "none"], folds=5)
            >>> found.behind("complete").clear
            False
        """
        if name not in self.networks:
            raise OptionError(f"no pooling {name!r} was compared{nearest(name, self.networks)}")
        p, best = self.poolings.index(name), self.poolings.index(self.best)
        if p == best:
            return Difference(0.0, 0.0, 0)
        with np.errstate(invalid="ignore"):
            each = self.loglik[best] - self.loglik[p]
        if not np.isfinite(each).all():
            return Difference(np.inf, np.nan, int((each > 0).sum()))
        se = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
        return Difference(
            float(self.rows @ each / self.rows.sum()), float(se), int((each > 0).sum())
        )

    def table(self) -> pd.DataFrame:
        """A row for each pooling.

        - `score`, `arcs`: of the network learned from all rows;
        - `loglik`: of held-out rows; `behind` the best pooling by so much, with standard error
          `se`, in `folds_behind` of the folds;
        - `new_data_set`: log-likelihood of data sets that were left out as a whole; NaN without a
          population;
        - `known`, `unknown`: relative error of predictions, the mean over variables, with the data
          set known and unknown; 1 is as bad as always predicting the mean;
        - `f1`: of guessing the data set;
        - `note`: what could not be done.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> found = pb.compare(trial, group="clinic", poolings=["complete", "none"], folds=5)
            >>> found.table()[["score", "arcs", "known", "f1"]].round(2)
                        score  arcs  known    f1
            pooling
            complete -9725.24     1   0.65  0.12
            none     -9734.45     1   0.65  0.25
        """
        import pandas as pd

        behind = [self.behind(name) for name in self.poolings]
        nets = self.networks.values()
        notes = zip(self.trouble, self.no_population, strict=True)
        return pd.DataFrame(
            {
                "score": [net.score for net in nets],
                "arcs": [len(net.dag.arcs) for net in nets],
                "loglik": self._total(),
                "behind": [difference.mean for difference in behind],
                "se": [difference.se for difference in behind],
                "folds_behind": [difference.folds for difference in behind],
                "new_data_set": self._total_left_out(),
                "known": self.known.mean(axis=1),
                "unknown": self.unknown.mean(axis=1),
                "f1": self.f1,
                "note": ["; ".join(filter(None, both)) for both in notes],
            },
            index=pd.Index(self.poolings, name="pooling"),
        )

    def by_variable(self) -> pd.DataFrame:
        """Relative errors of predictions: a row for each variable, a column for each pooling.

        Below `known` with the data set of a row known, below `unknown` without it.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> found = pb.compare(trial, group="clinic", poolings=["complete", "partial"])
            >>> found.by_variable()["known"].round(2)
                            complete  partial
            variable
            gestation_days      0.65     0.64
            birthweight_g       0.64     0.64
        """
        import pandas as pd

        columns = pd.MultiIndex.from_product([["known", "unknown"], self.poolings])
        variables = next(iter(self.networks.values())).dag.nodes
        errors = np.concatenate([self.known, self.unknown]).T
        return pd.DataFrame(errors, index=pd.Index(variables, name="variable"), columns=columns)

    def by_fold(self) -> pd.DataFrame:
        """Log-likelihoods per held-out row: a row for each fold, a column for each pooling.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> found = pb.compare(trial, group="clinic", poolings=["complete", "none"], folds=2)
            >>> found.by_fold().round(2)
                  rows  complete   none
            fold
            0      405    -11.97 -11.98
            1      404    -12.04 -12.02
        """
        import pandas as pd

        table = pd.DataFrame(self.loglik.T, columns=pd.Index(self.poolings))
        table.insert(0, "rows", self.rows)
        return table.rename_axis("fold")

    def by_data_set(self) -> pd.DataFrame:
        """Log-likelihoods per row of data sets left out as a whole; a column for each pooling.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> found = pb.compare(trial, group="clinic", poolings=["complete", "partial"], folds=2)
            >>> found.by_data_set().round(2)
                      rows  complete  partial
            data_set
            NY         164    -12.10   -12.04
            MN         247    -11.97   -11.92
            KY         207    -11.77   -11.73
            MS         191    -12.42   -12.42
        """
        import pandas as pd

        table = pd.DataFrame(
            self.left_out_loglik.T,
            index=pd.Index(self.left_out, name="data_set", dtype=object),
            columns=pd.Index(self.poolings),
        )
        table.insert(0, "rows", self.left_out_rows)
        return table

    @property
    def verdict(self) -> str:
        """Which pooling the data want, and how sure that is, in words."""
        return " ".join(self.sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences of the verdict, the most important one first."""
        behind = {name: self.behind(name) for name in self.poolings if name != self.best}
        fitted = [name for name in behind if np.isfinite(behind[name].mean)]
        fitted.sort(key=lambda name: behind[name].mean)
        tied = [_words(name) for name in fitted if not behind[name].clear]
        best, folds = _words(self.best), len(self.rows)
        if not np.isfinite(self._total()).any():
            said = ["No pooling has a fit in all folds."]
        elif tied:
            said = [f"The data lean to {best}, but {listed(tied)} may be just as good."]
        elif fitted:
            said = [f"The data clearly want {best}."]
        else:
            said = [f"Only {best} has a fit in all folds."]
        if fitted:
            parts = [_phrase(name, behind[name], folds) for name in fitted]
            said.append(
                f"With it, the log-likelihood of a held-out row is {listed(parts)}; ± is a "
                "standard error over the folds."
            )
        reasons = zip(self.poolings, self.trouble, strict=True)
        said += [f"{name!r} has no fit for {trouble}." for name, trouble in reasons if trouble]
        return tuple(filter(None, [*said, self._about_score(), self._about_new()]))

    def _about_score(self) -> str:
        scores = {name: net.score for name, net in self.networks.items()}
        first = max(scores, key=scores.__getitem__)
        if len(scores) < 2 or not np.isfinite(scores[first]):
            return ""
        too = " too" if first == self.best else ""
        return f"The score of networks learned from all rows is best with {_words(first)}{too}."

    def _about_new(self) -> str:
        total = dict(zip(self.poolings, self._total_left_out(), strict=True))
        able = sorted((n for n in total if np.isfinite(total[n])), key=lambda n: -total[n])
        if len(able) < 2:
            return ""
        rest = ", ".join(f"{_words(name)} {total[name]:.4g}" for name in able[1:])
        return (
            f"Data sets that were left out as a whole are predicted best with {_words(able[0])}: "
            f"log-likelihood {total[able[0]]:.4g} per row ({rest})."
        )

    def _total(self) -> NDArray[np.float64]:
        """Log-likelihood per held-out row, (P,)."""
        return np.asarray(self.loglik @ self.rows / self.rows.sum())

    def _total_left_out(self) -> NDArray[np.float64]:
        """Log-likelihood per row of data sets left out, (P,)."""
        return np.asarray(self.left_out_loglik @ self.left_out_rows / self.left_out_rows.sum())

    def _summary(self) -> str:
        net = next(iter(self.networks.values()))
        held = f"{self.rows.sum()} held-out rows in {len(self.rows)} folds"
        return (
            f"{len(self.poolings)} poolings on {len(net.levels)} data sets, {net.n_rows} rows, "
            f"{len(net.dag.nodes)} columns; {held}"
        )

    def __repr__(self) -> str:
        table = self.table().drop(columns="note").rename_axis(None)
        return "\n".join(
            [
                f"Comparison: {self._summary()}",
                table.to_string(float_format=lambda v: f"{v:.4g}"),
                textwrap.fill(self.verdict, 100, break_on_hyphens=False),
            ]
        )

    def _repr_html_(self) -> str:
        table = self.table().to_html(float_format="{:.4g}".format)
        return (
            f"<p><b>Comparison</b>: {html.escape(self._summary())}</p>{table}"
            f"<p>{html.escape(self.verdict)}</p>"
        )


def _phrase(name: str, behind: Difference, folds: int) -> str:
    if behind.mean == behind.se == 0:
        return f"the same as with {_words(name)}"
    return (
        f"{behind.mean:.2g} ± {behind.se:.2g} higher than with {_words(name)} "
        f"(in {behind.folds} of {folds} folds)"
    )


def _words(name: str) -> str:
    return _WORDS.get(name, name)
