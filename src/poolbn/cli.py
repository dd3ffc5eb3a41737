"""The command line. Thin: it calls what Python users call, and prints."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

from poolbn import datasets
from poolbn.choosing import fit_node
from poolbn.constraints import Constraints
from poolbn.learning import learn
from poolbn.suffstats import stats

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Bayesian networks from several related data sets, by partial pooling.",
)


@app.callback()
def main() -> None:
    """Keep `demo` a command of its own while it is the only one."""


@app.command()
def demo() -> None:
    """Compare the poolings on one node of the bundled four-clinic trial, and learn its network."""
    console = Console()
    child, parent = "bleeding_0", "gingival_0"
    trial = stats(datasets.opt(), group="clinic", columns=[parent, child], missing="drop")
    fits = {name: fit_node(trial, child, [parent], pooling=name) for name in _POOLINGS}
    best = max(fits, key=lambda name: fits[name].bic)

    console.print(
        f"\nBleeding on probing ([b]{child}[/b], % of sites) given the gingival index "
        f"([b]{parent}[/b]):\n{trial.n_rows} women in {len(trial.levels)} clinics "
        "of the Obstetrics and Periodontal Therapy trial.\n"
    )
    table = Table("", *(_POOLINGS[name].lower() for name in fits))
    for column in table.columns[1:]:
        column.justify = "right"
    table.add_row("log-likelihood", *(f"{fit.loglik:.2f}" for fit in fits.values()))
    table.add_row("parameters", *(str(fit.n_params) for fit in fits.values()))
    table.add_row(
        "BIC (higher is better)",
        *(f"{'[b]' * (name == best)}{fit.bic:.2f}" for name, fit in fits.items()),
        end_section=True,
    )
    for j, level in enumerate(trial.levels):
        table.add_row(f"slope in {level}", *(f"{fit.coef[j, 1]:.1f}" for fit in fits.values()))
    console.print(table)

    ahead = sorted(fit.bic for fit in fits.values())
    partial = fits["partial"]
    assert partial.fixed is not None
    assert partial.fixed_se is not None
    assert partial.random_sd is not None
    console.print(
        f"\n[b]{_POOLINGS[best]}[/b] has the best BIC, by "
        f"{ahead[-1] - ahead[-2]:.1f}.\nWith partial pooling the slope is "
        f"{partial.fixed[1]:.1f} (standard error {partial.fixed_se[1]:.1f}), and varies between "
        f"clinics with an SD of {partial.random_sd[1]:.1f}.\n{partial.status}.\n"
    )
    _demo_network(console)


def _demo_network(console: Console) -> None:
    """Learn the network of what was known before treatment and of the outcome, in order of time."""
    trial = datasets.opt()
    baseline = [name for name in map(str, trial) if name.endswith("_0")]
    tiers = [["age", "bmi"], baseline, ["gestation_days", "birthweight_g"]]
    columns = [name for tier in tiers for name in tier]
    known = stats(trial, group="clinic", columns=columns, missing="drop")
    net = learn(known, constraints=Constraints(tiers=tiers))
    console.print("The network of all that was measured before treatment, and of the outcome:\n")
    console.print(str(net), highlight=False)
    console.print("\nEach arc's effect is that of the population of clinics.\n")


_POOLINGS = {"complete": "Complete pooling", "none": "No pooling", "partial": "Partial pooling"}
