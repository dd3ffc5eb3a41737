"""`Network`: a graph and one fitted node each; saved, loaded, printed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from poolbn.arguments import FLAG, PATH, TEXT, check_arguments
from poolbn.arrays import Integers
from poolbn.errors import DataError, check_count, check_interval, check_option, nearest
from poolbn.graph.dag import Dag
from poolbn.inference.assembled import Joint, LinearNetwork, assemble
from poolbn.inference.engine import Engine
from poolbn.inference.general import engine_of, general_network
from poolbn.inference.units import KnownUnits, knowing
from poolbn.later import pandas as pd
from poolbn.moments.between import MeansCorrelation, mean_correlations
from poolbn.moments.checks import alike
from poolbn.moments.data import Data, check_data
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.halves import Halves
from poolbn.network.effects import (
    By,
    Summary,
    effects_table,
    heterogeneity_table,
    summarised,
    told,
    variances_table,
    within_between_table,
)
from poolbn.network.file import network_text, read_network
from poolbn.network.graphical import Graphical
from poolbn.network.interventions import check_name, checked_values, intervene, new_data_set
from poolbn.network.presenting import Presented
from poolbn.network.questions import Questions
from poolbn.network.totals import Question, TotalsBy, causes_and_effects, totals_table
from poolbn.nodes.given import INPUT
from poolbn.nodes.localfit import LinearFit, LocalFit, Status, grouped
from poolbn.search.naming import name_of_search
from poolbn.search.problem import Move
from poolbn.tables.causes import Described, reason
from poolbn.wording import counted, figure, listed, noun_of, shortened, visible
from poolbn.writing import write_whole

_SHOWN = 12  # effects that a printed network lists
_NAMED = 5  # nodes in a line of it


@dataclass(frozen=True, eq=False, repr=False)
class Network(Presented, Graphical, Questions):
    """A Bayesian network over several data sets.

    `net["bmi"]` is the fit of a node, `"bmi" in net` asks for one, and iterating gives their names.

    Attributes:
        dag: the graph.
        fits: the distribution of each node given its parents.
        score: the sum of the nodes' scores; higher is better.
        group: the column that says which data set a row came from.
        n: rows of each data set, (F,): their shares are P(F).
        adapted: data sets that came by `adapt`, whose coefficients are not taken for certain.
        score_kind: which score it is, by name; "" where that is not known.
        search: the learner that found the graph, as Python writes it; "" where there was none.
        trace: the moves that led to it, in order.
        stats: the statistics it was learned from; not saved.
        from_statistics: whether it was learned from sufficient statistics with discrete columns, so
            that no discrete node could have a continuous parent.
        missing: missing cells of each data set and node, which learning allowed for, (F, N); None
            where there were none.
        fitted_to: the rows or counts that `pb.fit` fitted it to, where statistics are not enough;
            neither saved nor pickled. With a `split`, the rows that estimates are from.
        split: with `pb.learn(..., honest="split")`, of how many other rows the graph is, and the
            seed of the split; None where graph and estimates are from the same rows.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> arc = {"required": [("age", "bmi")]}
        >>> net = pb.learn(trial, group="clinic", constraints=arc)
        >>> net.levels, net.n, net.dag
        (('NY', 'MN', 'KY', 'MS'), array([116, 237, 205, 192]), Dag('[age][bmi|age]'))
    """

    dag: Dag
    fits: Mapping[str, LocalFit]
    score: float
    group: str
    n: Integers
    adapted: tuple[Hashable, ...] = ()
    score_kind: str = ""
    search: str = ""
    trace: tuple[Move, ...] = ()
    stats: GroupStats | None = None
    from_statistics: bool = False
    missing: Integers | None = None
    fitted_to: Data | None = None
    split: Halves | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "fitted_to": None}

    def __post_init__(self) -> None:
        if any(fit.group != self.group for fit in self.fits.values()):
            named = {node: grouped(fit, self.group) for node, fit in self.fits.items()}
            object.__setattr__(self, "fits", named)

    @property
    def levels(self) -> tuple[Hashable, ...]:
        """The data sets."""
        return next(iter(self.fits.values())).levels

    @property
    def unit(self) -> str | None:
        """The column that says which unit of its data set a row is of; None without units."""
        return next((fit.unit for fit in self.fits.values() if fit.unit is not None), None)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Nodes that are parents only, and have no distribution of their own."""
        return tuple(node for node, fit in self.fits.items() if fit.pooling == INPUT)

    @cached_property
    def linear_fits(self) -> Mapping[str, LinearFit]:
        """The fits of a network whose columns are all continuous.

        Raises:
            DataError: some are not.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age"]].dropna()
            >>> pb.learn(trial, group="clinic").linear_fits["age"].sigma2.shape
            (4,)
        """
        fits = {node: own for node, fit in self.fits.items() if (own := fit.gaussian) is not None}
        if others := [node for node in self.fits if node not in fits]:
            are = "is" if len(others) == 1 else "are"
            raise DataError(
                "this is for networks whose columns are all continuous, and "
                f"{listed(others, _NAMED)} {are} not; use net.dag, net.fits and net.score"
            )
        return fits

    @property
    def n_rows(self) -> int:
        """Rows in all data sets together."""
        return int(self.n.sum())

    def _engine(self, plugin: bool) -> Engine:
        check_arguments(plugin=(plugin, FLAG))
        return self._certain if plugin else self._uncertain

    @cached_property
    def _certain(self) -> Engine:
        return self._engine_of(plugin=True)

    @cached_property
    def _uncertain(self) -> Engine:
        return self._engine_of(plugin=False)

    def _engine_of(self, *, plugin: bool) -> Engine:
        own = (self.dag, self.fits, self.n, self.inputs, self.adapted)
        return engine_of(*own, plugin=plugin)

    def _engine_knowing(self, plugin: bool, units: KnownUnits) -> Engine:
        check_arguments(plugin=(plugin, FLAG))
        certain = [level for level in self.levels if plugin and level not in self.adapted]
        made = general_network(self.dag, self.fits, self.n, self.inputs, certain)
        return knowing(made, self.fits, units)

    @cached_property
    def linear(self) -> LinearNetwork:
        """Coefficients and residual variances of all nodes, as matrices."""
        return assemble(self.dag, self.linear_fits)

    @cached_property
    def joint(self) -> Joint:
        """The multivariate normal distribution of all nodes in each data set, and P(F)."""
        own = self.linear
        return Joint(own.names, own.levels, self.n / self.n.sum(), own.mean, own.cov)

    def effects(self, interval: float = 0.95, *, by: By = "arc") -> pd.DataFrame:
        """A row for each effect: how strong it is, and how different between data sets.

        `effect` is the population's, with its standard error `se` and the interval of Student's t
        distribution with `df` degrees of freedom from `lower` to `upper`; without pooling it is
        the mean over data sets. Where an effect varies between data sets the error comes from the
        spread of their own estimates (Hartung and Knapp), with about one degree of freedom less
        than data sets, so that intervals hold with few of them. `between_sd` is the standard
        deviation between data sets as estimated by partial pooling, `opposite` the share of the
        data sets in which the sign is the other one. The coefficients of the data sets follow.

        Effects on continuous children are differences. Those on discrete children are odds ratios
        and those on counts rate ratios, as `scale` says, with the interval on that scale; `se` and
        `between_sd` are those of their logarithms. There is a row for each `level` of a discrete
        parent but the first, with which it is compared, and for each `outcome`, a level of a
        discrete child but the first. In tables of probabilities other parents are held fixed
        (Mantel and Haenszel).

        By data set, there is a row for each effect and data set. Intervals then allow for what is
        not known of the variance between data sets too.

        Args:
            interval: the probability that the intervals are to cover the effect with.
            by: "arc" or "data set".

        Raises:
            OptionError: `interval` is not between 0 and 1, or `by` is not an option.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> net = pb.learn(trial.dropna(), group="clinic", pooling="complete", preset="paper")
            >>> net.effects()[["parent", "child", "effect", "lower", "upper"]].round(1)
                       parent          child  effect  lower  upper
            0             age  birthweight_g     7.7    2.2   13.1
            1  gestation_days  birthweight_g    24.2   22.8   25.5
            >>> net = pb.learn(trial.dropna(), group="clinic")
            >>> each = net.effects(by="data set").query("child == 'gestation_days'")
            >>> each[["parent", "data_set", "effect", "lower", "upper"]].round(4)
              parent data_set  effect   lower   upper
            0    age       NY  0.2507 -0.3759  0.8772
            1    age       MN  0.1145 -0.3307  0.5597
            2    age       KY -0.8921 -1.3456 -0.4385
            3    age       MS -0.7530 -1.5165  0.0105
            >>> made = trial.dropna().assign(small=trial["birthweight_g"] < 2500)
            >>> in_time = pb.Constraints(tiers=[["age", "gestation_days"], ["small"]])
            >>> net = pb.learn(made.drop(columns="birthweight_g"), group="clinic",
            ...                constraints=in_time, pooling="complete")
            >>> net.effects()[["parent", "child", "outcome", "scale", "effect"]].round(2)
                       parent  child outcome       scale  effect
            0  gestation_days  small    True  odds ratio    0.83
        """
        return effects_table(self.dag, self.fits, interval, by)

    def heterogeneity(self, stats: Data | None = None) -> pd.DataFrame:
        """Test for each arc whether its effect is the same in all data sets, and residuals too.

        All other coefficients and residual variances may differ between data sets. The test is
        Welch's, or has a simulated null distribution if a data set leaves fewer than 15 degrees of
        freedom; where no two data sets show a variance it is the F test between two regressions,
        with one variance for all (`test` says which). The last rows are Bartlett's tests of the
        residual variance of each node but inputs. Effects on discrete columns and counts have score
        tests, and those of a discrete parent with several levels are tested together. `p_adjusted`
        is Benjamini and Hochberg's, over all arcs, and over all nodes. P-values are small for
        effects that the search chose to look at, as with every test after a search.

        Args:
            stats: the statistics, or rows; by default those that the network was learned from,
                which a loaded network does not have. Discrete nodes and counts hold their tests.

        Raises:
            DataError: there are no statistics, or they lack a column.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]]
            >>> net = pb.learn(trial.dropna(), group="clinic")
            >>> net.heterogeneity()[["parent", "child", "statistic", "p_value"]].round(2)
                            parent           child  statistic  p_value
            0       gestation_days   birthweight_g       2.05     0.11
            1  (residual variance)  gestation_days      49.80     0.00
            2  (residual variance)   birthweight_g       8.59     0.04
        """
        return heterogeneity_table(self.dag, self.fits, checked_data(self, stats))

    def within_between(self, stats: Data | None = None, *, interval: float = 0.95) -> pd.DataFrame:
        """The effect of each arc within data sets beside that between their means.

        A parent can go with the level of a data set, as when clinics with older patients have
        another level of the child for reasons of their own. Then the effect between the means of
        data sets is another one than that within them, and a model that does not distinguish them
        mixes both (Mundlak). `within` is estimated from the scatter inside data sets alone. Where
        the model has the same slope in all data sets it is that of least squares with a level for
        each of them; where slopes vary it is their mean, with errors from what the data sets'
        slopes show. `between` is estimated from the means alone, and NaN unless there are at least
        two data sets more than parents. A column that is constant inside all data sets has no
        `within`, one with the same mean in all of them no `between`. `difference` is between minus
        within, with a t test; `p_adjusted` is Benjamini and Hochberg's. If they differ, `within` is
        what to trust.
        With units inside data sets there are rows for these first, whose `within` is the effect
        inside units, and whose `between` is that between the means of units of the same data set;
        `groups` says which means are compared.
        There are rows for the arcs to continuous nodes; a discrete parent has one for each `level`
        but the first, whose shares are its means.

        Args:
            stats: the statistics, or rows; by default those that the network was learned from,
                which a loaded network does not have.
            interval: the probability of the intervals.

        Raises:
            DataError: there are no statistics, or they lack a column.
            OptionError: `interval` is not between 0 and 1.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]]
            >>> net = pb.learn(trial.dropna(), group="clinic")
            >>> net.within_between()[["within", "between", "difference", "p_value"]].round(3)
               within  between  difference  p_value
            0  24.239   21.988      -2.251    0.281
        """
        check_interval(interval)
        return within_between_table(self.dag, self.fits, checked_data(self, stats), interval)

    def mean_correlations(self, stats: Data | None = None) -> pd.DataFrame:
        """How the means of each two columns go together over data sets, the surest first.

        "A good site is good at everything": if levels of data sets go together beyond what arcs
        bring, scores that take them for independent find wrong arcs; `score="bic-w"`, the default,
        does not. The noise that means of few rows have is taken out, and so is what it brings where
        columns are correlated within data sets. A discrete column has a row for each level but the
        first, whose shares are its means. Columns whose means differ by no more than noise have no
        rows, and with fewer than three data sets there are none. The test of a correlation of 0
        takes the levels of data sets for normal; `p_adjusted` is Benjamini and Hochberg's, over all
        rows.

        Args:
            stats: the statistics, or rows; by default those that the network was learned from,
                which a loaded network does not have.

        Raises:
            DataError: there are no statistics, or they lack a column.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]].dropna()
            >>> net = pb.learn(trial, group="clinic")
            >>> net.mean_correlations()[["first", "second", "correlation", "p_value"]].round(2)
              first         second  correlation  p_value
            0   bmi  birthweight_g        -1.00     0.11
            1   age  birthweight_g         0.89     0.38
            2   age            bmi        -0.25     0.79
        """
        found = mean_correlations(learned_from(self, stats, "correlations of means"))
        return pd.DataFrame(found, columns=list(MeansCorrelation._fields))

    def adapt(
        self,
        source: object = None,
        name: Hashable = None,
        *,
        missing: Literal["error", "drop"] = "error",
    ) -> Network:
        """The network with one more data set, which was not learned from.

        Its coefficients are predicted from its own rows and the population that was learned (best
        linear unbiased prediction), without learning anew. With no rows at all they are the
        population's, with the covariance of the random effects as their uncertainty. A node under
        complete pooling has the coefficients that all data sets share. A node without pooling is
        fitted to the new rows alone. Discrete nodes and counts have the coefficients that are most
        probable given rows and population, or probabilities with those of the population counting
        for `concentration` rows. Predictions take the uncertainty of a data set in `adapted`
        into account.

        Graph, score, trace, and the likelihoods in `fits` stay those of learning.

        Args:
            source: the rows, as anything that `pb.stats` takes, all of them of the one new data set
                whatever a group column says; columns that are not nodes are ignored. Or statistics
                of one data set. None for no rows.
            name: what to call the new data set.
            missing: "error" refuses missing cells; "drop" leaves out the rows that have one.

        Raises:
            DataError: the name is taken, there is more than one data set, the rows cannot be used,
                or without pooling there are too few of them.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> north, south = trial[trial["clinic"] != "MS"], trial[trial["clinic"] == "MS"]
            >>> arc = {"required": [("age", "bmi")]}
            >>> net = pb.learn(north, group="clinic", constraints=arc)
            >>> net = net.adapt(south.head(50), "Mississippi").adapt(name="anywhere")
            >>> dict(zip(net.levels, net.n.tolist()))
            {'NY': 116, 'MN': 237, 'KY': 205, 'Mississippi': 50, 'anywhere': 0}
        """
        check_name(name, self.levels)
        new = None if source is None else new_data_set(self.fits, source, name, missing)
        fits = {node: fit.adapted(name, new, self.n) for node, fit in self.fits.items()}
        n = np.append(self.n, 0 if new is None else new.n_rows)
        return replace(self, fits=fits, n=n, adapted=(*self.adapted, name))

    def do(
        self, values: Mapping[str, float | str] | None = None, /, **named: float | str
    ) -> Network:
        """The network in which nodes are set to values by an intervention, in all data sets.

        The arcs into these nodes are cut, because their parents no longer matter to them; all other
        nodes keep their distributions. Score and trace stay those of learning.

        Args:
            values: the nodes and their values, of discrete nodes the names of levels; a dict takes
                names that Python does not.
            named: the same as keywords.

        Raises:
            GraphError: a name is no node.
            OptionError: there is no value, or one that the node cannot have.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> net = pb.learn(trial.dropna(), group="clinic", pooling="complete", preset="paper")
            >>> at_term = net.do(gestation_days=280)
            >>> at_term.joint.mean[0].round(), str(at_term.fits["gestation_days"].status)
            (array([  26.,  280., 3420.]), 'given')
        """
        given = [named] if values is None else [values, named]
        dag, fits = intervene(self.dag, self.fits, checked_values(self.dag, self.fits, *given))
        return replace(self, dag=dag, fits=fits)

    def total_effects(
        self,
        cause: str | None = None,
        effect: str | None = None,
        *,
        by: TotalsBy = "effect",
        interval: float = 0.95,
        seed: int = 0,
    ) -> pd.DataFrame:
        """A row for each two nodes that a directed path joins: what one does to the other in all.

        Means under two interventions are compared: a discrete cause is set to each other level in
        place of its first, others to one unit more than their mean, a count to a whole number;
        `from` and `to` say which. `scale` is "mean difference", for a discrete effect "risk
        difference" and "risk ratio" of the level in `outcome`, for a count "rate difference" and
        "rate ratio". An ordinal effect has one "odds ratio" of a higher level, that of Liu and
        Agresti (1996) for all thresholds together, and risks of each level or a higher one. `total`
        is the expected value over the population of data sets, with its interval, and `between_sd`
        its standard deviation there: all NaN where a node on the way has no pooling. The total
        effects in the data sets follow. Intervals contain what is uncertain of coefficients, in
        tables of probabilities of log odds ratios.

        Where all nodes on the way are linear, a total is the sum over all directed paths of the
        products of the coefficients. Else it is found by drawing rows (standardisation), with the
        error `simulation_se`. `between_sd` and `simulation_se` of ratios are those of logarithms.

        Args:
            cause: only this cause.
            effect: only this effect.
            by: "effect"; "data set" for a row for each data set, with its interval; or "estimand"
                for rows that say of what they are: a "known data set", the "average of these data
                sets" by their rows, without an interval, and a "new data set", of which the
                interval is that of its expected value, as by "effect".
            interval: the probability of intervals.
            seed: of the draws.

        Raises:
            GraphError: a name is no node, or cause and effect are the same.
            OptionError: an option has a value that it does not take.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]].dropna()
            >>> path = [("age", "bmi"), ("bmi", "birthweight_g")]
            >>> net = pb.learn(trial, group="clinic", start=path, pooling="complete",
            ...                search=pb.HillClimb(max_iter=0))
            >>> shown = ["from", "to", "scale", "total", "lower", "upper", "NY"]
            >>> net.total_effects("age", "birthweight_g")[shown].round(2)
                from     to            scale  total  lower  upper    NY
            0  25.93  26.93  mean difference   0.18  -0.97   1.46  0.18
            >>> made = trial.assign(small=trial["birthweight_g"] < 2500)
            >>> net = pb.learn(made.drop(columns="birthweight_g"), group="clinic",
            ...                start=[("age", "bmi"), ("bmi", "small")], pooling="complete",
            ...                search=pb.HillClimb(max_iter=0))
            >>> net.total_effects("age", "small")[["from", "to", "scale", "total"]].round(3)
                 from      to            scale  total
            0  25.934  26.934  risk difference  0.000
            1  25.934  26.934       risk ratio  1.002
        """
        check_arguments(cause=(cause, TEXT.or_none()), effect=(effect, TEXT.or_none()))
        check_option("by", by, get_args(TotalsBy))
        check_interval(interval)
        check_count(seed=seed)
        asked = Question(self.dag, self.fits, self.n, interval, seed)
        return totals_table(asked, causes_and_effects(self.dag, cause, effect), by)

    # Other formats

    def to_networkx(self) -> Any:
        """A networkx.DiGraph with the effects.

        Arcs into continuous nodes have `effect`, `se`, `between_sd` and `opposite` of `effects`,
        where they exist, and the coefficient in each data set under its name as a text; from a
        discrete node only if it has two levels, for the second against the first. Nodes have
        `kind`, `model`, `pooling` and `status`, discrete ones also `levels`, as a list of JSON.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.learn(trial, group="clinic", constraints=pb.Constraints(
            ...     required=[("age", "bmi")]))
            >>> list(net.to_networkx().edges["age", "bmi"])
            ['effect', 'se', 'between_sd', 'opposite', 'NY', 'MN', 'KY', 'MS']
        """
        from poolbn.network import exporting

        return exporting.to_networkx(self.dag, self.fits)

    def to_igraph(self) -> Any:
        """A directed igraph.Graph with the attributes of `to_networkx`; None where there is none.

        The names of the nodes are the vertex attribute "name".

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> arc = {"required": [("age", "bmi")]}
            >>> net = pb.learn(trial, group="clinic", constraints=arc)
            >>> round(float(net.to_igraph().es[0]["effect"]), 2)
            0.17
        """
        from poolbn.network import exporting

        return exporting.to_igraph(self.dag, self.fits)

    def to_dot(self) -> str:
        """A Graphviz digraph with the attributes of `to_networkx`.

        The effect is also the label of an arc. Discrete nodes are boxes, and counts have two lines
        around them. Data sets are called "NY (data set)", because
        Graphviz would take a name such as "color" for a command.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> arc = {"required": [("age", "bmi")]}
            >>> net = pb.learn(trial, group="clinic", constraints=arc)
            >>> net.to_dot().splitlines()[0]
            'digraph {'
        """
        from poolbn.network import exporting

        return exporting.to_dot(self.dag, self.fits)

    def to_graphml(self) -> str:
        """GraphML with the attributes of `to_networkx`; to be written as UTF-8.

        Raises:
            GraphError: a name has a character that XML cannot hold.
            MissingPackageError: networkx is not installed.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> arc = {"required": [("age", "bmi")]}
            >>> net = pb.learn(trial, group="clinic", constraints=arc)
            >>> net.to_graphml().count("<edge ")
            1
        """
        from poolbn.network import exporting

        return exporting.to_graphml(self.dag, self.fits)

    def to_bnlearn(self) -> str:
        """An R script that rebuilds the network in bnlearn, as `fitted`; to be written as UTF-8.

        It is a discrete or conditional Gaussian network, with the group column as a discrete
        parent of all nodes, and a regression for each configuration of discrete parents. Random
        effects stay behind: each data set has the coefficients that it has here.

        Raises:
            GraphError: there are counts, or discrete nodes with parents that are not discrete,
                which bnlearn does not have.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> arc = {"required": [("age", "bmi")]}
            >>> net = pb.learn(trial, group="clinic", constraints=arc)
            >>> "library(bnlearn)" in net.to_bnlearn()
            True
        """
        from poolbn.network import exporting

        return exporting.to_bnlearn(self.dag, self.fits, self.group, self.n / self.n_rows)

    def to_psem(self, file: str = "data.csv") -> str:
        """An R script that fits the nodes with lme4, inside `psem()` of piecewiseSEM.

        A node is one call: `lmer` with partial pooling, `glmer` for two levels and counts, `lm` and
        `glm` with complete pooling. It gives the coefficients that poolbn has, where fits are not
        singular. What R does not have, or fits otherwise, is a comment: tables of probabilities,
        more than two levels, residual variances that differ, nodes without pooling.

        Args:
            file: the CSV file that the script reads, with the group column and all nodes.

        Raises:
            GraphError: a name has a character that R cannot hold.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.fit("bmi ~ age", trial, group="clinic")
            >>> print(net.to_psem().partition("model <- ")[2].partition("summary")[0], end="")
            psem(
              lmer(bmi ~ age + (1 + age | clinic), data = d, REML = FALSE),
              data = d
            )
        """
        from poolbn.network import rscript

        check_arguments(file=(file, TEXT))
        return rscript.to_psem(self.dag, self.fits, self.group, file)

    def to_dagitty(self, exposure: str | None = None, outcome: str | None = None) -> str:
        """The graph as dagitty reads it, see `Dag.to_dagitty`; effects stay behind.

        Args:
            exposure: the node to mark as the exposure; none by default.
            outcome: the node to mark as the outcome; none by default.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.fit("bmi ~ age", trial, group="clinic")
            >>> pb.Dag.from_string(net.to_dagitty(exposure="age")) == net.dag
            True
        """
        return self.dag.to_dagitty(exposure, outcome)

    def to_lavaan(self) -> str:
        """The graph as formulas for lavaan, see `Dag.to_lavaan`; effects stay behind.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> print(pb.fit("age -> bmi", trial, group="clinic").to_lavaan(), end="")
            bmi ~ age
        """
        return self.dag.to_lavaan()

    def to_bif(self) -> str:
        """A network of discrete nodes in BIF, which bnlearn, pgmpy and others read.

        The group column is a node, and a parent of all nodes whose probabilities differ between
        data sets. In names and levels, BIF has letters, digits and "_"; all else becomes "_", and
        comments at the top say which these are.

        Raises:
            GraphError: a node is not discrete, or two names would become the same.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "tobacco"]].dropna()
            >>> net = pb.learn(trial, group="clinic", pooling="complete", preset="paper")
            >>> print("".join(net.to_bif().partition("probability ( tobacco")[1:]), end="")
            probability ( tobacco ) {
              table 0.8833124215809285, 0.11668757841907151;
            }
        """
        from poolbn.network import tabulating

        return tabulating.to_bif(self.dag, self.fits, self.group, self.n / self.n_rows)

    def to_pgmpy(self, data_set: Hashable = None) -> Any:
        """A network of pgmpy, whose nodes are all discrete or all continuous.

        Where they are discrete, the group column is a node, and a parent of all nodes whose
        probabilities differ between data sets; levels are texts. Where they are continuous, it is a
        linear Gaussian network with the coefficients of one data set.

        Args:
            data_set: which one, where all nodes are continuous; None if they are all the same, as
                with complete pooling.

        Raises:
            GraphError: some nodes are discrete and some are not, or there are counts.
            DataError: data sets differ and none is named, or it is not known.
            MissingPackageError: pgmpy is not installed.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "tobacco", "preterm"]].dropna()
            >>> net = pb.learn(trial, group="clinic", pooling="complete", preset="paper")
            >>> model = net.to_pgmpy()  # doctest: +SKIP
            >>> model.check_model()  # doctest: +SKIP
            True
        """
        from poolbn.network import topgmpy

        prior = self.n / self.n_rows
        return topgmpy.to_pgmpy(self.dag, self.fits, self.group, prior, data_set)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network as JSON, whole or not at all; `pb.load` reads it.

        Raises:
            FileError: the file cannot be written, or a data set's name cannot be.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     pb.learn(trial, group="clinic").save(f"{folder}/network.json")
            ...     pb.load(f"{folder}/network.json").levels
            ('NY', 'MN', 'KY', 'MS')
        """
        check_arguments(path=(path, PATH))
        write_whole(path, self.to_json().encode())

    def to_json(self) -> str:
        """The text of the file that `save` writes.

        Raises:
            FileError: a data set's name cannot be written.

        Examples:
            >>> import json
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.learn(trial, group="clinic", pooling="complete", preset="paper")
            >>> json.loads(net.to_json())["rows"]
            [116, 237, 205, 192]
        """
        return network_text(vars(self))

    def title(self) -> tuple[str, str]:
        """The first two lines of what is printed: its size; its pooling and score.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> pb.learn(trial, group="clinic").title()[0]
            'Network: 2 nodes, 1 arc, 4 clinics, 750 rows'
        """
        count = Counter(str(fit.pooling) for fit in self.fits.values())
        used = ", ".join(count)
        if len(count) > 1:
            parts = (f"{name.replace(' pooling', '')} {count[name]}" for name in sorted(count))
            used = f"pooling by node: {', '.join(parts)}"
        return (
            f"Network: {counted(len(self.dag.nodes), 'node')}, "
            f"{counted(len(self.dag.arcs), 'arc')}, "
            f"{counted(len(self.levels), noun_of(self.group))}, "
            f"{counted(self.n_rows, 'row')}"
            + ("" if self.unit is None else f"; units: {self.unit} in {self.group}"),
            f"{used}; score {figure(self.score, '.4f')}{self._sought()}",
        )

    def _sought(self) -> str:
        """By which score, and with which search, as options have them."""
        by = [self.score_kind] if self.score_kind else []
        by += [f"search {name_of_search(self.search)}"] if self.search else []
        return f" ({', '.join(by)})" if by else ""

    def endings(self) -> list[str]:
        """Nodes whose fits are singular, did not converge, have no likelihood or leave rows out.

        And arcs that a search found into columns such as age, which others hardly cause.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> print(*pb.learn(trial, group="clinic").endings(), sep="; ")
            singular fit: age; arcs into age, which others hardly cause: learn with it as an input
        """
        by_status: dict[Status, list[str]] = {status: [] for status in Status}
        for node, fit in self.fits.items():
            by_status[fit.status].append(node)
        usual, useless = (Status.CONVERGED, Status.GIVEN), Status.NOT_CONVERGED
        why = "constant" if self.missing is None else "constant or not measured"
        out = [
            f"{why} there, so left out of {node}: {listed([str(v) for v in fit.left_out])}"
            for node, fit in self.fits.items()
            if fit.left_out
        ]
        for level in self.interventions:
            was_set = [node for node, fit in self.fits.items() if level in fit.was_set]
            changed = [node for node, fit in self.fits.items() if level in fit.was_changed]
            out += [f"set in {level}, so left out: {listed(was_set, _NAMED)}"] * bool(was_set)
            out += [f"changed in {level}: {listed(changed, _NAMED)}"] * bool(changed)
        if self.missing is not None:
            lacking = self.missing_cells().sum(axis=1)
            told = [f"{node} {count:,}" for node, count in lacking.items() if count]
            out.append(f"missing cells that learning allowed for: {shortened(told, 8)}")
        if self.split is not None:
            out.append(
                f"the graph was learned from {counted(self.split.rows, 'other row')}; estimates "
                f"are honest (split with seed {self.split.seed})"
            )
        if self.from_statistics:
            out.append("learned without rows: no discrete node could have a continuous parent")
        if self.stats is not None:
            out += [f"{found.what}; arcs there say nothing" for found in alike(self.stats)]
        if self.search and (odd := self._doubtful()):
            use = "it as an input" if len(odd) == 1 else "these as inputs"
            out.append(f"arcs into {listed(odd)}, which others hardly cause: learn with {use}")
        return [
            *(
                f"{status}{'; do not use' if status is useless else ''}: {listed(nodes, _NAMED)}"
                for status, nodes in by_status.items()
                if nodes and status not in usual
            ),
            *out,
        ]

    def _doubtful(self) -> list[str]:
        """Nodes with parents that are causes by nature or design, as names and levels say."""
        fits = self.fits.items()
        return [n for n, fit in fits if fit.parents and reason(Described(n, fit.categories))]

    def summary(self, interval: float = 0.95) -> Summary:
        """The arcs with their effects, to be printed: numbers have the digits that are sure.

        Effects have as many digits as their standard errors leave, standard deviations two.
        `effects()` has all of them, as numbers.

        Args:
            interval: the probability that the intervals are to cover the effect with.

        Raises:
            OptionError: `interval` is not between 0 and 1.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> pb.learn(trial, group="clinic", pooling="complete", preset="paper").summary()
            Network: 2 nodes, 1 arc, 4 clinics, 809 rows
            complete pooling; score -9725.2376 (bic, search hc)
                                        arc effect   95% interval      scale SD between clinics
            gestation_days -> birthweight_g  24.07 22.68 to 25.46 difference                  -
        """
        return summarised(
            self.title(), self.effects(interval), self.endings(), interval, noun_of(self.group)
        )

    def missing_cells(self) -> pd.DataFrame:
        """A row for each node, a column for each data set: missing cells in what it learned from.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "tobacco"]]
            >>> pb.learn(trial, group="clinic", missing="em").missing_cells()
                     NY  MN  KY  MS
            age       0   0   0   0
            tobacco  13   8   4   1
        """
        F, N = len(self.levels), len(self.dag.nodes)
        found = np.zeros((F, N), dtype=np.int64)
        if self.missing is not None:
            found[: len(self.missing)] = self.missing
        names = pd.Index(self.levels, dtype=object)
        return pd.DataFrame(found.T, index=list(self.dag.nodes), columns=names)

    def variances(self, stats: Data | None = None) -> pd.DataFrame:
        """A row for each node: which level its variance is at.

        Shares of the variance are those of its parents, of differences between data sets, between
        units inside them, and of what is left (Nakagawa and Schielzeth). `icc_data_set` and
        `icc_unit` are how alike two rows of a data set, and of a unit, are beside their parents:
        intraclass correlations. Without pooling, parents and data sets are one. For logistic and
        count regressions the variance is on the `scale` of their effects.

        Args:
            stats: what the network was learned from, statistics or rows; not needed where the
                network holds it.

        Raises:
            DataError: the network holds no statistics, as one from a file.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.fit("age -> bmi", trial, group="clinic")
            >>> net.variances()[["node", "parents", "data_sets", "residual"]].round(3)
              node  parents  data_sets  residual
            0  age    0.000      0.034     0.966
            1  bmi    0.023      0.069     0.908
        """
        return variances_table(self.fits, learned_from(self, stats, "variances"))

    def models(self) -> pd.DataFrame:
        """A row for each node: its parents, its model, how strength is shared, how the fit ended.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "birthweight_g", "preterm"]].dropna()
            >>> pb.learn(trial, group="clinic").models()[["node", "parents", "model"]]
                        node  parents                   model
            0  birthweight_g  preterm       linear regression
            1        preterm           table of probabilities
        """
        rows = [
            {
                "node": node,
                "parents": ", ".join(self.dag.parents(node)),
                "model": fit.model,
                "pooling": str(fit.pooling),
                "status": str(fit.status),
            }
            for node, fit in self.fits.items()
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        lines = [*self.title(), *self._effect_lines()]
        return "\n".join([*lines, *(f"  {visible(line)}" for line in self.endings())])

    def _effect_lines(self) -> list[str]:
        effects, sets = self.effects(), noun_of(self.group)
        lines = [f"  {visible(told(row, sets))}" for row in effects[:_SHOWN].to_dict("records")]
        if len(effects) > _SHOWN:
            lines.append(f"  ... {len(effects) - _SHOWN} more in .effects()")
        return lines


def checked_data(net: Network, data: Data | None) -> Data | None:
    """What a network was learned from, or data that are given for it, if they have its columns."""
    if data is None:
        return net.stats
    check_data(data)
    remedy = "give the rows that it was learned from, pb.table(data, group=...), or statistics of "
    remedy += "them, pb.stats(data, group=...)"
    for node, fit in net.fits.items():
        if node not in data.names:
            raise DataError(
                f"no column {node!r}{nearest(node, data.names)}; it is a {fit.kind} node of the "
                f"network; {remedy}"
            )
        at = data.names.index(node)
        there, known = data.categories[at], fit.categories
        if data.kinds[at] != fit.kind:
            raise DataError(
                f"column {node!r} is {data.kinds[at]}, in the network {fit.kind}; {remedy}"
            )
        if there != known:
            raise DataError(
                f"column {node!r} has the levels {shortened(there)}, in the network the levels "
                f"{shortened(known)}; {remedy}"
            )
    return data


def learned_from(net: Network, given: Data | None, what: str) -> Data:
    """What was given, or else what a network holds of what it was learned from."""
    known = checked_data(net, given)
    known = net.fitted_to if known is None else known
    if known is None:
        raise DataError(
            f"{what} need what the network was learned from, and it holds none; give the rows, "
            "pb.table(data, group=...), or statistics of them, pb.stats(data, group=...)"
        )
    return known


def load(path: str | os.PathLike[str]) -> Network:
    """Read a network that `Network.save` wrote.

    Raises:
        FileError: the file is not there, damaged, of another kind, or too new.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pb.learn(trial, group="clinic").save(f"{folder}/network.json")
        ...     net = pb.load(f"{folder}/network.json")
        >>> net.dag.nodes
        ('age', 'bmi')
    """
    check_arguments(path=(path, PATH))
    return Network(**read_network(path))
