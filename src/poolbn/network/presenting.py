"""How results that people look at are shown: by modules that are below this one.

A network can be drawn and reported on, and shows a picture in a notebook. Drawings and reports
import networks, so networks cannot import them: what shows a network is loaded with its first use.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import Any


def present(function: str, *given: Any, **options: Any) -> Any:
    """Call a function that shows something, such as "plots.network"."""
    module, _, name = function.rpartition(".")
    return getattr(import_module(f"poolbn.{module}"), name)(*given, **options)


class Presented:
    """What shows itself."""

    def plot(self, *, strengths: Any = None, ax: Any = None) -> Any:
        """Draw the network with matplotlib, as `pb.plots.network` does.

        Args:
            strengths: from `pb.bootstrap`, to show how sure the arcs are.
            ax: where to draw; by default on a new figure.

        Returns:
            The matplotlib Axes.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> ax = pb.learn(trial, group="clinic").plot()
            >>> [text.get_text() for text in ax.texts]
            ['age', 'bmi']
        """
        return present("plots.network", self, strengths=strengths, ax=ax)

    def report(self, path: str | PathLike[str], **options: Any) -> None:
        """Write a report as one HTML file, as `pb.report` does.

        Args:
            path: the file to write.
            options: the options of `pb.report`, such as `data=`.

        Examples:
            >>> import poolbn as pb
            >>> import tempfile
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     pb.learn(trial, group="clinic").report(f"{folder}/report.html")
        """
        present("page.reporting.report", self, path, **options)

    def test_graph(self, data: Any = None, *, test: str = "auto") -> Any:
        """Test the independences that the graph claims: what the data say of the graph.

        For each two nodes without an arc, but such that both have no parents, the graph claims that
        they are independent given the parents of both. Claims that fail are arcs that seem to be
        missing. Fisher's C puts all claims together, and the likelihood ratio compares the graph
        with the one that has all arcs which its order allows. P-values mean what they say for a
        graph that did not come from the same data.

        Args:
            data: the rows, or statistics; by default those that the network was fitted to. Networks
                that were learned, or loaded, hold none if they have discrete columns or counts.
                Rows with missing values do not count.
            test: "auto" is "combined" with partial pooling, "t" with complete and "f" without, as
                for `pb.ci_test`; and "coef", the coefficient of one column in the model of the
                other, where only intercepts vary, or where a test by data sets has nothing to test.
                Its test is Wald's t in linear models, and the likelihood ratio in those of levels
                and counts; with "wald", as in piecewiseSEM, it is Wald's z there.

        Returns:
            A `pb.GraphTest`.

        Raises:
            DataError: there are no data, or they lack a column.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "gestation_days"]].dropna()
            >>> net = pb.fit("age -> bmi -> gestation_days", trial, group="clinic")
            >>> net.test_graph().claims[["x", "y", "given", "p_value"]].round(2)
                 x               y   given  p_value
            0  age  gestation_days  (bmi,)     0.06
        """
        return present("assess.graphtest.graph_test", self, data, test=test)

    def tidy(self, interval: float = 0.95, *, by: str = "population") -> Any:
        """A row for each coefficient, with the names of columns that R's broom has.

        Effects on discrete nodes are logarithms of odds ratios, those on counts of rate ratios, as
        `scale` says; `effects()` has the ratios. `std.estimate` is in standard deviations, inside
        data sets, of the node for one of the parent; of discrete nodes and counts in those of log
        odds and logarithms. Nodes with tables have rows for their effects only. The table is
        pandas': `to_excel`, `to_latex` and `to_html` write it.

        Args:
            interval: the probability of the intervals.
            by: "population", or "data set" for a row for each coefficient and data set.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.fit("bmi ~ age", trial, group="clinic", pooling="complete")
            >>> net.tidy()[["node", "term", "estimate", "std.error", "p.value"]].round(3)
              node         term  estimate  std.error  p.value
            0  age  (Intercept)    25.909      0.202      0.0
            1  bmi  (Intercept)    23.333      1.237      0.0
            2  bmi          age     0.167      0.047      0.0
        """
        return present("assess.tidying.tidy", self, interval, by)

    def glance(self) -> Any:
        """A row for each node and one for the network: rows, parameters, likelihood, AIC, BIC, R2.

        AIC and BIC are as in R: less is better. R2 are marginal and conditional, as `test_graph`
        has them; NaN where the network holds no rows or statistics.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.fit("bmi ~ age", trial, group="clinic", pooling="complete")
            >>> net.glance()[["node", "nobs", "npar", "AIC", "r2.marginal"]].round(3)
                    node  nobs  npar       AIC  r2.marginal
            0        age   750     2  4698.087          NaN
            1        bmi   750     3  5066.528        0.017
            2  (network)   750     5  9764.615          NaN
        """
        return present("assess.tidying.glance", self)

    def adjustment_report(
        self, exposure: str, outcome: str, data: Any = None, *, interval: float = 0.95
    ) -> Any:
        """The effect of one node on another with each set that the graph says to adjust for.

        Estimates are from models of the outcome given the exposure and the set, with the pooling of
        the outcome, and last without any adjustment. If the graph is right, all sets that are
        enough estimate the same effect: where they differ, doubt the graph.

        Args:
            exposure: the cause.
            outcome: the effect.
            data: the rows, or statistics; as for `test_graph`.
            interval: the probability of the intervals.

        Returns:
            A `pb.AdjustmentReport`.

        Raises:
            GraphError: a name is no node, or both are the same.
            DataError: there are no data, or they lack a column.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]].dropna()
            >>> graph = "age -> bmi -> birthweight_g <- age"
            >>> net = pb.fit(graph, trial, group="clinic", pooling="complete")
            >>> found = net.adjustment_report("bmi", "birthweight_g").estimates
            >>> found[["adjusted_for", "enough", "effect"]].round(1)
              adjusted_for  enough  effect
            0          age    True     0.8
            1      nothing   False     1.1
        """
        return present(
            "assess.adjustment.adjustment_report", self, exposure, outcome, data, interval
        )

    def sensitivity(
        self,
        cause: str | None = None,
        effect: str | None = None,
        data: Any = None,
        *,
        q: float = 1.0,
        interval: float = 0.95,
        seed: int = 0,
    ) -> Any:
        """Total effects, and how strong a hidden common cause must be to explain each away.

        A row for each risk ratio, rate ratio and mean difference of `total_effects`. `e_value` is
        that of the estimate, `e_value_limit` that of the limit of its interval which is nearest to
        no effect, see `pb.e_value`; differences are divided by the standard deviation of the effect
        inside data sets. The rest is for continuous effects, and NaN for others: `t`, `df` and
        `partial_r2` of the cause in least squares of the effect on the cause and the columns in
        `adjusted_for`, with a level for each data set, and its robustness values `rv` and
        `rv_alpha`, see `pb.robustness_value`. These need what the network was learned from, without
        units inside data sets.

        Args:
            cause: only this cause.
            effect: only this effect.
            data: the rows, or statistics; by default those that the network holds.
            q: the share of the effect that is to be explained away, for robustness values.
            interval: the probability of intervals; `rv_alpha` is at the level 1 less that.
            seed: of the draws.

        Raises:
            GraphError: a name is no node, or cause and effect are the same.
            DataError: the data lack a column.
            OptionError: an option has a value that it does not take.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> net = pb.fit("gestation_days -> birthweight_g", trial.dropna(), group="clinic")
            >>> net.sensitivity()[["total", "e_value", "e_value_limit", "rv", "rv_alpha"]].round(2)
               total  e_value  e_value_limit    rv  rv_alpha
            0  24.22     1.22            1.2  0.68      0.66
        """
        return present(
            "assess.sensitivity.sensitivity", self, cause, effect, data, q, interval, seed
        )

    def leave_one_out(
        self,
        data: Any = None,
        *,
        effects: str = "direct",
        by: str = "effect",
        interval: float = 0.95,
    ) -> Any:
        """Effects without each data set in turn: whether one clinic drives them.

        The same graph is fitted to the other data sets, each node with the pooling that it has; no
        graph is searched for, and no row is read again. A row for each effect: in all data sets,
        then without the `data_set` that changes it most. `change` is without less with, or the
        ratio of two ratios. `sign_changes` is the number of data sets without which the effect has
        the other sign, `interval_changes` that of those without which its interval is no longer on
        the same side of no effect, or then is on one. Where that is one data set, the effect is
        `driven_by` it; where it is any of several, there are too few data sets to tell.

        Effects that the other data sets do not give, as they lack a level or rows, are NaN.

        Args:
            data: the rows, or statistics; by default those that the network holds.
            effects: "direct", as in `effects`; or "total", as in `total_effects`.
            by: "effect"; or "data set" for a row for each effect and data set.
            interval: the probability of the intervals.

        Raises:
            DataError: there are no data, they lack a column, or there is one data set.
            OptionError: an option has a value that it does not take.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> net = pb.fit("age -> birthweight_g <- gestation_days", trial.dropna(),
            ...              group="clinic")
            >>> found = net.leave_one_out()
            >>> found[["parent", "effect", "lower", "data_set", "without", "change"]].round(1)
                       parent  effect  lower data_set  without  change
            0             age     7.9    1.2       KY     10.2     2.3
            1  gestation_days    24.3   21.1       MS     25.3     0.9
            >>> found[["parent", "sign_changes", "interval_changes", "driven_by"]]
                       parent  sign_changes  interval_changes driven_by
            0             age             0                 3      None
            1  gestation_days             0                 0      None
        """
        return present("assess.influence.leave_one_out", self, data, effects, by, interval)

    def _repr_html_(self) -> str:
        return str(present("page.notebook.shown", self))
