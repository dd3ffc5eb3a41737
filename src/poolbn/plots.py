"""Plots. Each returns the Axes that it drew on, and draws on the Axes that it is given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from poolbn.arguments import TEXT, check_arguments
from poolbn.assess.comparison import Comparison
from poolbn.assess.estimates import Estimates, arc_effects, residual_sds
from poolbn.assess.proportional import ProportionalOdds
from poolbn.assess.resample import Bootstrap
from poolbn.assess.residuals import node_calibration, node_residuals
from poolbn.errors import check_count, check_kind
from poolbn.moments.data import Data
from poolbn.network.network import Network
from poolbn.posteriors.posterior import ArcPosterior
from poolbn.show import netplot, rowplots
from poolbn.show.figures import MOST, arc_strengths, equality_tests, odds_at_thresholds
from poolbn.wording import noun_of

__all__ = [
    "calibration", "comparison", "forest", "heterogeneity", "network", "proportional_odds",
    "residuals", "strengths",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def network(
    net: Network, *, strengths: Bootstrap | ArcPosterior | None = None, ax: Axes | None = None
) -> Axes:
    """Draw a network, parents above children.

    - width: how strong an arc is: the size of its standardised effect, in standard deviations of
      the child for one of the parent inside data sets; or its bootstrap strength or probability;
    - colour: the sign of the effect, blue for positive and vermillion for negative;
    - pale: how different it is between data sets, palest where the standard deviation between them
      is as large as the effect. Without pooling that is what the effects vary beyond their errors;
    - dashed, with an empty head: equivalent networks have the arc the other way round;
    - yellow node: its fit has no likelihood;
    - outline of a node: rounded for continuous ones, double for discrete ones, with cut corners for
      counts, dashed for inputs.

    Effects on discrete nodes and counts are in standard deviations of log odds and of logarithms.
    Where an arc has several, one for each level, it shows the strongest; it is grey if they do not
    all have the same sign.

    The drawing fills the Axes. A new figure is large enough for names to be readable.

    Args:
        net: the network.
        strengths: from `pb.bootstrap` or `pb.arc_posterior`, to show how sure the arcs are.
        ax: where to draw; by default on a new figure.

    Raises:
        DataError: the bootstrap or the posterior was of other nodes.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> net = pb.learn(trial.dropna(), group="clinic")
        >>> ax = pb.plots.network(net)
        >>> [text.get_text() for text in ax.texts]
        ['age', 'gestation_days', 'birthweight_g']
    """
    _check_network(net)
    found = None
    if strengths is not None:
        _check_strengths(strengths)
        found = [arc.strength for arc in arc_strengths(net, strengths)]
    return netplot.draw_network(net, found, ax)


def forest(
    net: Network,
    parent: str | None,
    child: str,
    *,
    stats: Data | None = None,
    interval: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Show an arc's effect in each data set, or a node's residual SD, the population's below.

    Filled dots are the network's estimates, open ones those of each data set alone: with partial
    pooling the first are shrunk towards the population. At the bottom, the thick line is the
    interval of the population's effect, the thin line the range expected for a new data set.
    Intervals that end in an arrow go on.

    Effects on discrete nodes are odds ratios and those on counts rate ratios, on an axis of
    logarithms. A discrete parent or child has a block of rows for each level but the first.

    Intervals of effects take the variances as known; those of data sets alone are Student's. Those
    of SDs are from the posterior distribution where residual variances are pooled, else chi-square,
    which with random effects is an approximation.

    Args:
        net: the network.
        parent: the parent; None for the residual standard deviation of the child.
        child: the child.
        stats: the sufficient statistics, for the estimates of each data set alone; by default those
            that the network was learned from, which a loaded network does not have. Where columns
            are not all continuous, rows of `pb.table`: no network keeps them.
        interval: the probability of the intervals.
        ax: where to draw; by default on a new figure.

    Raises:
        GraphError: there is no such arc or node.
        OptionError: `interval` is not between 0 and 1.
        DataError: `stats` lack a column, or a node that is not continuous has no residual SD.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> net = pb.learn(trial, group="clinic")
        >>> pb.plots.forest(net, "gestation_days", "birthweight_g").get_xlabel()
        'change of birthweight_g per unit of gestation_days'
        >>> pb.plots.forest(net, None, "gestation_days").get_xlabel()
        'residual SD of gestation_days'
    """
    _check_network(net)
    check_arguments(parent=(parent, TEXT.or_none()), child=(child, TEXT))
    if parent is None:
        found: tuple[Estimates, ...] = (residual_sds(net, child, stats=stats, interval=interval),)
    else:
        found = arc_effects(net, parent, child, stats=stats, interval=interval)
    return rowplots.draw_forest(found, noun_of(net.group), ax)


def heterogeneity(
    net: Network, *, stats: Data | None = None, most: int = MOST, ax: Axes | None = None
) -> Axes:
    """Show the effects of all arcs, those that differ most between data sets on top.

    Effects are standardised, so that arcs can be compared: in standard deviations of the child for
    one of the parent, inside data sets; see `network` for discrete nodes and counts. The p-values
    are those of `Network.heterogeneity`.

    Args:
        net: the network.
        stats: the sufficient statistics, for the p-values; by default those that the network was
            learned from, which a loaded network does not have. Where columns are not all
            continuous, rows of `pb.table`.
        most: the largest number of arcs to show.
        ax: where to draw; by default on a new figure.

    Raises:
        DataError: `stats` lack a column.
        OptionError: `most` is not a whole number from 1.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> net = pb.learn(trial.dropna(), group="clinic")
        >>> [label.get_text() for label in pb.plots.heterogeneity(net).get_yticklabels()]
        ['', 'age → gestation_days', 'gestation_days → birthweight_g']
    """
    _check_network(net)
    check_count(1, most=most)
    tests = equality_tests(net, net.stats if stats is None else stats)
    return rowplots.draw_heterogeneity(
        net, {arc: test.p_value for arc, test in tests.items()}, most, ax
    )


def residuals(
    net: Network, data: object, node: str, *, ax: Sequence[Axes] | None = None
) -> NDArray[np.object_]:
    """Show whether a node's distributions fit the rows: three panels, whose Axes it returns.

    - residuals against fitted values: the mean of neighbours should stay at 0, the spread the same;
    - quantiles against those of the normal distribution, a curve for each data set: on the line if
      residuals are normal, steeper where a data set varies more than its fit says;
    - the spread in each data set, with half of the rows in a box and 95% between the ends of a
      line: boxes should reach from one dashed line to the other.

    Residuals are in the residual standard deviations of the data sets. Those of a count and of an
    ordinal node, whose levels are numbers from 1, are randomised quantile residuals (Dunn and Smyth
    1996), normal if its model is right. Rows with missing values are left out. The figure shows
    rows, as dots and at the ends of curves; `pb.report` does not. For discrete nodes see
    `calibration`.

    Args:
        net: the network.
        data: a table or file as for `pb.stats`, with the group column.
        node: the node.
        ax: three Axes to draw on; by default those of a new figure.

    Raises:
        GraphError: there is no such node.
        DataError: the table cannot be used or has no complete row, or the node is discrete or does
            not vary.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]]
        >>> net = pb.learn(trial.dropna(), group="clinic")
        >>> axes = pb.plots.residuals(net, trial, "bmi")
        >>> [label.get_text() for label in axes[2].get_yticklabels()]
        ['NY', 'MN', 'KY', 'MS']
    """
    _check_network(net)
    check_arguments(node=(node, TEXT))
    return rowplots.draw_residuals(node_residuals(net, data, node), ax)


def calibration(
    net: Network, data: object, node: str, *, ax: Sequence[Axes] | None = None
) -> NDArray[np.object_]:
    """Show whether a discrete node's probabilities fit the rows: two panels, whose Axes it returns.

    - the share of rows that have a level against its probability given the parents: rows with
      similar probabilities together, on the line if probabilities are right;
    - the same in each data set, with a line for what is expected.

    Lines are 95% intervals (Wilson's). Of two levels the second is shown. Each share is of 10 rows
    or more, and 5 or more have the level; data sets with fewer are left out.

    Args:
        net: the network.
        data: a table or file as for `pb.stats`, with the group column.
        node: the node.
        ax: two Axes to draw on; by default those of a new figure.

    Raises:
        GraphError: there is no such node.
        DataError: the table cannot be used or has no complete row, or the node is not discrete.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "previous_pregnancy"]].dropna()
        >>> net = pb.learn(trial, group="clinic", start=[("age", "previous_pregnancy")])
        >>> axes = pb.plots.calibration(net, trial, "previous_pregnancy")
        >>> axes[0].get_xlabel()
        'probability of previous_pregnancy'
    """
    _check_network(net)
    check_arguments(node=(node, TEXT))
    return rowplots.draw_calibration(node_calibration(net, data, node), ax)


def proportional_odds(found: ProportionalOdds, *, ax: Axes | None = None) -> Axes:
    """Show whether the odds ratios of ordinal nodes are the same at all thresholds.

    A block for each effect: the odds ratio of exceeding each threshold, by a logistic regression,
    and below it the common one, with 95% intervals unless `pb.proportional_odds` was told others;
    of a parent that is a number for one standard deviation of it. The band is the interval of the
    common one. With proportional odds the dots vary around its middle by chance alone; the p-values
    beside the headings are those of the tests.

    Args:
        found: from `pb.proportional_odds`.
        ax: where to draw; by default on a new figure.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> rows = trial.assign(bmi=(trial["bmi"] // 5).clip(4, 6).astype(int))
        >>> net = pb.fit("age -> bmi", rows, group="clinic", kinds={"bmi": "ordinal"})
        >>> ax = pb.plots.proportional_odds(pb.proportional_odds(net, rows))
        >>> ax.get_xlabel(), ax.get_xscale()
        ('odds ratio of a higher level', 'log')
    """
    check_kind(found, ProportionalOdds, "tests of proportional odds", "pb.proportional_odds")
    return rowplots.draw_thresholds(odds_at_thresholds(found), ax)


def comparison(found: Comparison, *, ax: Sequence[Axes] | None = None) -> NDArray[np.object_]:
    """Show a comparison of poolings: four panels, whose Axes it returns. The best one is shaded.

    - log-likelihood of held-out rows, as the difference from the best pooling: grey dots are folds,
      the blue one is their mean with two standard errors;
    - the same for data sets that were left out as a whole;
    - errors of predictions: grey dots are variables, blue ones their mean, filled with the data set
      known and open with it unknown; 1 is as bad as always predicting the mean;
    - F1 of guessing the data set.

    Args:
        found: from `pb.compare`.
        ax: four Axes to draw on; by default those of a new figure.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]]
        >>> found = pb.compare(trial, group="clinic", missing="drop", folds=2,
        ...                    poolings=["complete", "none"])
        >>> [label.get_text() for label in pb.plots.comparison(found)[0].get_yticklabels()]
        ['complete', 'none']
    """
    check_kind(found, Comparison, "a comparison", "pb.compare")
    return rowplots.draw_comparison(found, ax)


def strengths(boot: Bootstrap | ArcPosterior, *, most: int = MOST, ax: Axes | None = None) -> Axes:
    """Show how often a bootstrap found arcs, or how probable they are: a bar for each pair.

    Bars are split by direction, and pale below the threshold that `Bootstrap.threshold` estimates,
    or below a probability of 1/2.

    Args:
        boot: from `pb.bootstrap` or `pb.arc_posterior`.
        most: the largest number of pairs to show.
        ax: where to draw; by default on a new figure.

    Raises:
        OptionError: `most` is not a whole number from 1.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]]
        >>> boot = pb.bootstrap(trial, group="clinic", missing="drop", replicates=5)
        >>> pb.plots.strengths(boot).get_xlabel()
        'share of 5 networks from resampled rows'
    """
    _check_strengths(boot)
    check_count(1, most=most)
    return rowplots.draw_strengths(boot, most, ax)


def _check_strengths(found: object) -> None:
    if not isinstance(found, ArcPosterior):
        check_kind(found, Bootstrap, "a bootstrap", "pb.bootstrap")


def _check_network(net: object) -> None:
    check_kind(net, Network, "a network", "pb.learn")
