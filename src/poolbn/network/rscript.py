"""An R script that fits a network node by node, with lm, lme4 and piecewiseSEM."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from poolbn.graph.dag import Dag
from poolbn.network.exporting import r_text
from poolbn.nodes.localfit import GroupLevel, LinearFit, LocalFit
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.tables.kinds import is_ordered
from poolbn.wording import listed

_SYNTACTIC = re.compile(r"[A-Za-z][A-Za-z0-9._]*")
_RESERVED = {
    "if", "else", "repeat", "while", "function", "for", "next", "break", "TRUE", "FALSE", "NULL",
    "Inf", "NaN", "NA", "in",
}  # fmt: skip
_POINTS = 25  # of adaptive quadrature


class _Model(NamedTuple):
    """How R fits one node, and what a reader should know."""

    call: str  # "" where R has none
    notes: tuple[str, ...] = ()


def to_psem(dag: Dag, fits: Mapping[str, LocalFit], group: str, file: str) -> str:
    """The script.

    Args:
        dag: the graph.
        fits: of its nodes.
        group: the column that says the data sets.
        file: the CSV file with the rows.
    """
    made = {node: _model(dag, fits, node, group) for node in dag.nodes}
    has_model = [node for node in dag.nodes if made[node].call]
    ordered = [node for node in has_model if is_ordered(fits[node].kind)]
    inner = [node for node in has_model if dag.parents(node) and node not in ordered]
    alone = [node for node in has_model if not dag.parents(node) and node not in ordered]
    lines = [
        "library(lme4)",
        "# Without piecewiseSEM the models are fitted all the same.",
        'if (requireNamespace("piecewiseSEM", quietly = TRUE)) {',
        "  library(piecewiseSEM)",
        "} else {",
        "  psem <- function(..., data) list(...)",
        "}",
        "",
        f"d <- read.csv({r_text(file)}, check.names = FALSE, stringsAsFactors = FALSE)",
        f"d <- na.omit(d[, c({', '.join(map(r_text, [group, *dag.nodes]))})])",
        f"d[[{r_text(group)}]] <- factor(d[[{r_text(group)}]])",
    ]
    for node in dag.nodes:
        if levels := fits[node].categories:
            own = f"d[[{r_text(node)}]]"
            named = ", ".join(map(r_text, levels))
            lines.append(f"{own} <- factor(as.character({own}), levels = c({named}))")
    notes = [f"# {name(node)}: {note}" for node in dag.nodes for note in made[node].notes]
    if notes:
        lines += ["", "# What R fits otherwise, or not at all:", *notes]
    if inner:
        calls = ",\n".join(f"  {made[node].call}" for node in inner)
        lines += ["", "model <- psem(", f"{calls},", "  data = d", ")", "summary(model)"]
    for what, called, nodes in (
        ("Columns without parents, of which piecewiseSEM has no model:", "roots", alone),
        ("Ordered levels, likewise:", "ordered_levels", ordered),
    ):
        if nodes:
            lines += ["", f"# {what}", f"{called} <- list("]
            lines += [",\n".join(f"  {name(node)} = {made[node].call}" for node in nodes), ")"]
    return "\n".join(lines) + "\n"


def name(column: str) -> str:
    """A column as R's formulas have it.

    Examples:
        >>> name("bmi"), name("the bmi"), name("if")
        ('bmi', '`the bmi`', '`if`')
    """
    if _SYNTACTIC.fullmatch(column) and column not in _RESERVED:
        return column
    return "`" + r_text(column)[1:-1].replace('\\"', '"').replace("`", "\\`") + "`"


def _model(dag: Dag, fits: Mapping[str, LocalFit], node: str, group: str) -> _Model:
    fit, parents = fits[node], dag.parents(node)
    formula = f"{name(node)} ~ {' + '.join(map(name, parents)) or '1'}"
    if why := _without(fit, formula, group):
        return _Model("", (why,))
    random = _random(fits, node, parents, group)
    left, notes = f"{formula} + {random}" if random else formula, _notes(fit)
    if fit.gaussian is not None:
        reml = isinstance(fit.pooling, Partial) and fit.pooling.method == "reml"
        mixed = f"lmer({left}, data = d, REML = {str(reml).upper()})"
        return _Model(mixed if random else f"lm({left}, data = d)", notes)
    if fit.extra is not None:  # a dispersion
        return _Model(f"{'glmer.nb' if random else 'MASS::glm.nb'}({left}, data = d)", notes)
    if is_ordered(fit.kind):
        if "integrated numerically" in fit.detail:
            words = "poolbn integrates numerically, clmm by Laplace's approximation"
            notes = (*notes, words)
        return _Model(f"ordinal::{'clmm' if random else 'clm'}({left}, data = d)", notes)
    points = ""
    if "integrated numerically" in fit.detail:
        points = f", nAGQ = {_POINTS}" if random.startswith("(1 |") else ""
        if not points:
            notes = (*notes, "poolbn integrates numerically, glmer by Laplace's approximation")
    family = "binomial" if fit.categories else "poisson"
    what = "glmer" if random else "glm"
    return _Model(f"{what}({left}, data = d, family = {family}{points})", notes)


def _without(fit: LocalFit, formula: str, group: str) -> str:
    """Why R has no model of a node; "" where it has one."""
    if fit.is_given:
        return "an input, or set by an intervention, so it has no model"
    linear = fit.gaussian
    of_units = linear is not None and _of_units(linear)
    if of_units or isinstance(fit.pooling, GroupLevel):
        return f"one value in each {fit.unit if of_units else group}; fit it to one row of each"
    if not fit.blocks() and fit.gaussian is None:
        tables = "a table of probabilities, which lme4 does not have"
        return _by_configuration(fit, group) if fit.switches else tables
    ordered = is_ordered(fit.kind)
    if len(fit.categories) > 2 and not ordered:
        return "more than two levels; mclogit::mblogit is near it"
    if isinstance(fit.pooling, NoPooling):
        model = (("ordinal::clm", "ordinal::clmm") if ordered else ("lm", "lmer"))[bool(fit.unit)]
        formula += "" if fit.unit is None else f" + (1 | {name(fit.unit)})"
        each = f"by(d, d[[{r_text(group)}]], function(rows) {model}({formula}, data = rows))"
        return f"a model of its own in each {group}, such as {each}"
    return ""


def _by_configuration(fit: LocalFit, group: str) -> str:
    """How R fits a regression for each configuration."""
    others = [parent for parent in fit.parents if parent not in fit.switches]
    how, by = fit.pooling, [*fit.switches, *[group] * isinstance(fit.pooling, NoPooling)]
    formula, call = (
        f"{name(fit.child)} ~ {' + '.join(map(name, others)) or '1'}",
        "lm({}, data = d)",
    )
    if isinstance(how, Partial):
        slopes = others if how.random == "full" else [p for p in others if p in how.random]
        formula += f" + ({' + '.join(['1', *map(name, slopes)])} | {name(group)})"
        call = f"lmer({{}}, data = d, REML = {str(how.method == 'reml').upper()})"
    each = f"by(d, d[c({', '.join(map(r_text, by))})], function(d) {call.format(formula)})"
    return f"a model of its own in each configuration of {listed(by)}, such as {each}"


def _random(fits: Mapping[str, LocalFit], node: str, parents: Sequence[str], group: str) -> str:
    """The random effects, "" where there are none."""
    how, unit = fits[node].pooling, fits[node].unit
    units = "" if unit is None else f"(1 | {name(group)}:{name(unit)})"
    if isinstance(how, Complete) or not isinstance(how, Partial):
        return units
    slopes: Sequence[str] = parents
    if how.random == "intercept":
        slopes = ()
    elif how.random == "full":  # the slope of a column of data sets does not vary
        slopes = [p for p in parents if not isinstance(fits[p].pooling, GroupLevel)]
    else:
        slopes = [p for p in parents if p in how.random]
    sets = f"({' + '.join(['1', *map(name, slopes)])} | {name(group)})"
    return f"{sets} + {units}" if units else sets


def _of_units(fit: LinearFit) -> bool:
    """Whether it is of a column that describes units inside data sets."""
    return fit.unit_share is not None and bool((fit.unit_share == 1).all())


def _notes(fit: LocalFit) -> tuple[str, ...]:
    """What R fits otherwise."""
    how, said = fit.pooling, []
    if isinstance(how, Partial) and fit.gaussian is not None and how.residuals != "shared":
        words = "of its own" if how.residuals == "separate" else "from a common distribution"
        said.append(f"each data set has a residual variance {words}; lmer has one for all")
    if fit.left_out:
        said.append(f"without {listed(list(map(str, fit.left_out)))}, where it is constant")
    if fit.experiments:
        said.append(
            f"without {listed(list(map(str, fit.experiments)))}, where it was set or changed"
        )
    if not math.isfinite(fit.loglik):
        said.append(f"{fit.status}: {fit.detail}")
    return tuple(said)
