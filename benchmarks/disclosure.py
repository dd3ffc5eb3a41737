"""How much of what a report suppresses follows from the report alone, by `tests/attacks.py`.

    python benchmarks/disclosure.py --out results/disclosure.md

Each of 50 tables has small data sets, or small cells, under another pooling. A claim of the attack
counts as right where it is the number behind the report: a cell of 1 to 4 rows to 0.1, a suppressed
estimate to 2% of what it differs from the population by, the mean of a small data set to a tenth of
the column's SD. Errors of means stand beside those of a guess that needs no attack: the population
of a network that was learned without these data sets.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import poolbn as pb

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "tests")]
from attacks import claims
from tiny import parsed

POOLINGS = {
    "partial": "partial",
    "intercept": pb.Partial(random="intercept"),
    "REML": pb.Partial(method="reml"),
    "pooled residuals": pb.Partial(residuals="pooled"),
    "auto": "auto",
    "none": "none",
    "complete": "complete",
}
KINDS = ("continuous", "mixed", "discrete")
ARCS = {
    "continuous": [("bmi", "weight")],
    "mixed": [("treated", "event"), ("treated", "bmi"), ("bmi", "weight")],
    "discrete": [("treated", "sex"), ("treated", "event"), ("sex", "event"), ("treated", "grade")],
}


class Case(NamedTuple):
    """A report: its table, and how it is made."""

    seed: int
    kind: str
    pooling: str
    missing: str
    data: bool

    def __str__(self) -> str:
        rows = "with" if self.data else "without"
        return f"{self.kind}, {self.pooling}, {self.missing}, {rows} data="


def cases(pages: int) -> Iterator[Case]:
    """All kinds under all poolings that they may have, in turn."""
    every = [
        (kind, pooling)
        for pooling in POOLINGS
        for kind in KINDS
        if kind == "continuous" or pooling not in ("intercept", "REML")
    ]
    for seed in range(pages):
        kind, pooling = every[seed % len(every)]
        later = seed // len(every)
        yield Case(
            seed, kind, pooling, ("drop", "em")[later % 2], kind != "continuous" or later > 1
        )


def table(case: Case) -> pd.DataFrame:
    """Seven clinics of 45 to 75 rows. With numbers alone one more has 1 to 9 rows; else in one a
    cell has 1 to 4 rows."""
    rng = np.random.default_rng([36, case.seed])
    parts = []
    for j in range(7):
        n = int(rng.integers(45, 75))
        treated = rng.random(n) < 0.4
        if case.kind != "continuous":
            treated[:25], treated[25:40] = True, False
        event = rng.random(n) < np.where(treated, 0.45, 0.35)
        if case.kind != "continuous":
            event[:8], event[8:16], event[25:32], event[32:40] = True, False, True, False
            if j == 6:
                there = np.flatnonzero(treated)
                event[there] = False
                event[there[: int(rng.integers(1, 5))]] = True
        bmi = 27 + 1.5 * rng.normal() + 4 * rng.normal(size=n) + treated
        parts.append(_frame(f"c{j}", rng, treated, event, bmi))
    if case.kind == "continuous":
        n = 1 if case.seed % 2 else int(rng.integers(2, 10))
        none = np.zeros(n, dtype=bool)
        bmi = 27 + 1.5 * rng.normal() + 4 * rng.normal(size=n)
        parts.append(_frame("small", rng, none, none, bmi))
    made = pd.concat(parts, ignore_index=True)
    if case.missing == "em":
        large = np.flatnonzero(made["clinic"] != "small")
        made.loc[rng.choice(large, 20, replace=False), "weight"] = np.nan
    columns = dict.fromkeys(name for arc in ARCS[case.kind] for name in arc)
    return made[["clinic", *columns]]


def _frame(name, rng, treated, event, bmi) -> pd.DataFrame:
    yes = np.array(["no", "yes"])
    grade = rng.choice(["a", "b", "c"], size=len(bmi), p=[0.1, 0.4, 0.5])
    return pd.DataFrame(
        {
            "clinic": name,
            "treated": yes[treated.astype(int)],
            "event": yes[event.astype(int)],
            "grade": grade,
            "sex": rng.choice(["f", "m"], size=len(bmi)),
            "bmi": bmi.round(1),
            "weight": (30 + 1.6 * bmi + 3 * rng.normal(size=len(bmi))).round(1),
        }
    )


class Outcome(NamedTuple):
    """Of one report: right claims by kind, all claims, and errors of means in SDs."""

    right: dict[str, int]
    made: int
    errors: list[float]
    guesses: list[float]


def attacked(case: Case, folder: Path) -> Outcome:
    """Make the report and attack it."""
    frame = table(case)
    missing = case.missing if frame.isna().any().any() else "drop"
    arcs = ARCS[case.kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learned = {
            "group": "clinic", "start": arcs, "search": pb.HillClimb(max_iter=0),
            "pooling": POOLINGS[case.pooling],
        }  # fmt: skip
        net = pb.learn(frame, missing=missing, **learned)
        net.report(folder / "r.html", data=frame if case.data else None)
    return judged(frame, net, (folder / "r.html").read_text(encoding="utf-8"))


def guessed(frame: pd.DataFrame, net: pb.Network, node: str, data_set: str) -> float:
    """The mean of a node without parents, by its model learned without a data set."""
    rest = frame.loc[frame["clinic"] != data_set, ["clinic", node]].dropna()
    how = net.fits[node].pooling
    fit = pb.fit_node(pb.stats(rest, group="clinic"), node, pooling=how)
    return float(fit.coef[:, 0].mean() if fit.fixed is None else fit.fixed[0])


def judged(frame: pd.DataFrame, net: pb.Network, text: str) -> Outcome:
    """Compare the claims with what is behind the report.

    Args:
        frame: the rows.
        net: the network of the report.
        text: the report.
    """
    right, errors, guesses, made = defaultdict(int), [], [], 0
    for claim in claims(text):
        made += 1
        rows = frame[frame["clinic"] == claim.data_set]
        if claim.kind == "mean":
            (node,) = claim.of
            sd, truth = frame[node].std(), rows[node].mean()
            errors.append(abs(claim.value - truth) / sd)
            guesses.append(abs(guessed(frame, net, node, claim.data_set) - truth) / sd)
            right["mean"] += errors[-1] < 0.1 and errors[-1] < guesses[-1]
        elif claim.kind == "cell":
            node, c, k = claim.of
            truth = _count(net, rows, node, c, k)
            right["cell"] += 0 < truth < 5 and abs(claim.value - truth) < 0.1
        elif claim.kind == "coefficient":
            node, block, k = claim.of
            fit = net.fits[node]
            coef = fit.coef if fit.coef.ndim == 2 else fit.coef[:, block]
            own = coef[net.levels.index(claim.data_set), k]
            far = abs(own - coef[:, k].mean())
            right["coefficient"] += far > 0 and abs(claim.value - own) < 0.02 * far
        else:
            arc, _ = claim.of
            effects = net.effects()
            parent, child = arc.split(" → ")
            of = effects[(effects["parent"] == parent) & (effects["child"] == child)]
            own = np.log(of[claim.data_set].to_numpy())
            right["ratio"] += bool((np.abs(np.log(claim.value) - own) < 0.02 * np.abs(own)).any())
    return Outcome({kind: int(n) for kind, n in right.items()}, made, errors, guesses)


def _count(net, rows, node, c, k) -> int:
    """Rows with a configuration of the node's parents, or with a level of one, and a level."""
    node, _, parent = node.partition(", ")
    fit = net.fits[node]
    names = [parent] if parent else list(net.dag.parents(node))
    levels = [net.fits[name].categories for name in names]
    at = np.unravel_index(c, [len(own) for own in levels]) if names else ()
    there = rows[node] == fit.categories[k]
    for name, own, code in zip(names, levels, at, strict=True):
        there &= rows[name] == own[int(code)]
    return int(there.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--out", type=Path)
    args = parsed(parser, pages=2)
    found: dict[str, list[Outcome]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(args.pages):
            outcome = attacked(case, Path(folder))
            found[case.kind].append(outcome)
            means = [
                f"{a:.3f} ({b:.3f})" for a, b in zip(outcome.errors, outcome.guesses, strict=True)
            ]
            print(case, dict(outcome.right), f"{outcome.made} claims", *means, flush=True)
    kinds = ("mean", "coefficient", "cell", "ratio")
    lines = [
        "| reports | pages | with a right claim | " + " | ".join(kinds)
        + " | error of means (SD) | without the attack |",
        "| --- " * (len(kinds) + 5) + "|",
    ]  # fmt: skip
    for kind, all_of in found.items():
        hit = sum(any(one.right.values()) for one in all_of)
        each = [str(sum(one.right.get(k, 0) for one in all_of)) for k in kinds]
        errors, guesses = (
            [value for one in all_of for value in getattr(one, name)]
            for name in ("errors", "guesses")
        )
        means = [f"{np.median(v):.2f}" if v else "–" for v in (errors, guesses)]
        lines.append(f"| {kind} | {len(all_of)} | {hit} | {' | '.join([*each, *means])} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if args.out:
        args.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
