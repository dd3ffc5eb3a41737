"""`poolbn demo`: a network of the bundled trial, from rows to a report, and the trial's answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from poolbn import datasets
from poolbn.assess.treatment import treatment_effects
from poolbn.cli import inputs as given
from poolbn.cli.learning import learn
from poolbn.cli.terminal import Terminal, check_free, command, make_folder, write_csv
from poolbn.writing import write_whole

if TYPE_CHECKING:
    import pandas as pd

_REPLICATES = 20
_TREATMENT = "treatment"
_OUTCOME = [["infection"], ["preterm"], ["birthweight_g"]]
_SAME = "gestation_days"  # preterm is whether these are fewer than 259


@command
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")] = Path(
        "poolbn-demo"
    ),
    force: given.Force = False,
) -> None:
    """Learn, bootstrap and report on a trial in four clinics, and answer its question."""
    terminal = Terminal()
    table, tiers, page = out / "trial.csv", out / "tiers.toml", out / "report.html"
    check_free([table, tiers, page], force=force)
    make_folder(out)
    trial = datasets.opt()
    write_csv(trial, table)
    write_whole(tiers, _toml(in_time(trial)).encode())
    terminal.text(
        f"{len(trial)} pregnant women with gum disease, in the Obstetrics and Periodontal Therapy "
        "trial in four clinics. Half of them were randomised to treatment before delivery. Does "
        "that improve their gums? Does it prevent preterm birth? Is it the same in every clinic? "
        f"The rows are in {table}, their order in time in {tiers}. Now:\n\n"
        f"  poolbn learn {table} --group clinic --exclude {_SAME} --missing em\n"
        f"    --inputs {_TREATMENT} --tiers {tiers} --bootstrap {_REPLICATES} -o {out}\n"
    )
    learn(
        files=[str(table)],
        group="clinic",
        exclude=[_SAME],
        missing="em",
        inputs=[_TREATMENT],
        tiers=str(tiers),
        bootstrap=_REPLICATES,
        out=out,
        force=True,
    )
    terminal.text("\n" + " ".join(answers(trial)))
    terminal.text(f"\nThe report: {page.resolve().as_uri()}")


def in_time(trial: pd.DataFrame) -> list[list[str]]:
    """The columns of the trial in tiers: who the women are, baseline, visit 5, outcome."""
    names = [name for name in map(str, trial) if name not in ("clinic", _SAME)]
    baseline, later = ([name for name in names if name.endswith(end)] for end in ("_0", "_5"))
    known = {*baseline, *later, *(name for tier in _OUTCOME for name in tier)}
    return [[name for name in names if name not in known], baseline, later, *_OUTCOME]


def answers(trial: pd.DataFrame) -> list[str]:
    """What the treatment does, in three sentences: to the gums, preterm birth and birth weight."""
    names = ["bleeding_5", "preterm", "birthweight_g"]
    table = treatment_effects(trial, treatment=_TREATMENT, group="clinic", outcomes=names)
    clinics = table[list(trial["clinic"].unique())]
    found = table.assign(least=clinics.min(axis=1), most=clinics.max(axis=1)).set_index("child")
    gums, preterm, weight = (found.loc[name] for name in names)
    return [
        "Treatment improves the gums: at visit 5 the share of sites that bleed is "
        f"{-gums['mean']:.0f} percentage points lower (95% interval {-gums['mean_upper']:.0f} to "
        f"{-gums['mean_lower']:.0f}), {-gums['most']:.0f} to {-gums['least']:.0f} in each of the "
        "four clinics.",
        f"It does not clearly change preterm birth: the odds ratio is {preterm['mean']:.2f} "
        f"({preterm['mean_lower']:.2f} to {preterm['mean_upper']:.2f}), {preterm['least']:.2f} to "
        f"{preterm['most']:.2f} in the clinics.",
        "Nor does it clearly change birth weight: the difference is "
        f"{weight['mean']:+.0f} g ({weight['mean_lower']:+.0f} to {weight['mean_upper']:+.0f}), "
        f"{weight['least']:+.0f} to {weight['most']:+.0f} g in the clinics.",
    ]


def _toml(tiers: list[list[str]]) -> str:
    lines = ("  [" + ", ".join(f'"{name}"' for name in tier) + "],\n" for tier in tiers)
    return f"# No arc points from a later tier to an earlier one.\ntiers = [\n{''.join(lines)}]\n"
