"""`poolbn demo`: a network of the bundled trial, from rows to a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from poolbn import datasets
from poolbn.cli import inputs as given
from poolbn.cli.learning import learn
from poolbn.cli.terminal import Terminal, check_free, command, make_folder, write_csv
from poolbn.writing import write_whole

_REPLICATES = 200


@command
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")] = Path(
        "poolbn-demo"
    ),
    force: given.Force = False,
) -> None:
    """Learn, bootstrap, compare and report on a trial in four clinics."""
    terminal = Terminal()
    table, tiers, page = out / "trial.csv", out / "tiers.toml", out / "report.html"
    check_free([table, tiers, page], force=force)
    make_folder(out)
    trial = datasets.opt(kind="continuous")
    baseline = [name for name in map(str, trial) if name.endswith("_0")]
    order = [["age", "bmi"], baseline, ["gestation_days", "birthweight_g"]]
    write_csv(trial[["clinic", *(name for tier in order for name in tier)]], table)
    write_whole(tiers, _toml(order).encode())
    terminal.text(
        f"{len(trial)} pregnant women in four clinics, in the Obstetrics and Periodontal "
        "Therapy trial: what was measured before treatment, and the outcome. The rows are in "
        f"{table}, their order in time in {tiers}. Now:\n\n"
        f"  poolbn learn {table} --group clinic --missing drop\n"
        f"    --tiers {tiers} --bootstrap {_REPLICATES} --compare -o {out}\n"
    )
    learn(
        files=[str(table)],
        group="clinic",
        missing="drop",
        tiers=tiers,
        bootstrap=_REPLICATES,
        compare=True,
        out=out,
        force=True,
    )
    terminal.text(f"\nThe report: {page.resolve().as_uri()}")


def _toml(tiers: list[list[str]]) -> str:
    lines = ("  [" + ", ".join(f'"{name}"' for name in tier) + "],\n" for tier in tiers)
    return f"# No arc points from a later tier to an earlier one.\ntiers = [\n{''.join(lines)}]\n"
