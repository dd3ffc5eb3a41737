"""Draws why_pool.png: python docs/images/why_pool.py."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import poolbn as pb

SITES, SHOWN, ROWS, DRAWS = 12, 6, 8, 100
COUNTS = [4, 6, 10, 20, 40, 100]
STYLES = {
    "truth": ("black", ":", "the truth"),
    "complete": ("#767676", "--", "complete pooling"),
    "none": ("#d55e00", "-", "no pooling"),
    "partial": ("#0072b2", "-", "partial pooling"),
}

LABELS = {"complete": (3, (10, 7)), "none": (1, (8, 0)), "partial": (1, (-16, -42))}


def sites(rows: int, seed: int) -> tuple[np.ndarray, pd.DataFrame]:
    """True intercepts and slopes, (SITES, 2), and so many rows from each site."""
    rng = np.random.default_rng(seed)
    true = np.column_stack([rng.normal(10, 2, SITES), rng.normal(2, 1, SITES)])
    site = np.repeat(np.arange(SITES), rows)
    dose = rng.normal(size=len(site))
    response = true[site, 0] + true[site, 1] * dose + rng.normal(0, 3, len(site))
    names = [f"site {j + 1}" for j in site]
    return true, pd.DataFrame({"site": names, "dose": dose, "response": response})


def slopes_off(rows: int) -> dict[str, float]:
    """Root mean square error of the sites' slopes."""
    squares: dict[str, list[float]] = {"complete": [], "none": [], "partial": []}
    for seed in range(DRAWS):
        true, table = sites(rows, seed)
        stats = pb.stats(table, group="site")
        for pooling, found in squares.items():
            coef = pb.fit_node(stats, "response", ["dose"], pooling=pooling).coef
            found.append(float(np.mean((coef[:, 1] - true[:, 1]) ** 2)))
    return {pooling: float(np.sqrt(np.mean(found))) for pooling, found in squares.items()}


def main() -> None:
    """Draw, and write the file beside this one."""
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure = plt.figure(figsize=(10, 5), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.5, 1])
    panels = left.subplots(2, SHOWN // 2, sharex=True, sharey=True)
    true, table = sites(ROWS, seed=3)
    stats = pb.stats(table, group="site")
    coef = {"truth": true}
    for pooling in ("complete", "none", "partial"):
        coef[pooling] = pb.fit_node(stats, "response", ["dose"], pooling=pooling).coef
    ends = np.array([-2.0, 2.0])
    for j, ax in enumerate(panels.flat):
        rows = table[table["site"] == stats.levels[j]]
        ax.scatter(rows["dose"], rows["response"], s=14, color="black", alpha=0.6, linewidths=0)
        for name, (colour, dashes, label) in STYLES.items():
            line = coef[name][j, 0] + coef[name][j, 1] * ends
            ax.plot(ends, line, dashes, color=colour, label=label, linewidth=1.8)
        ax.set_title(str(stats.levels[j]), fontsize=9)
    left.suptitle(f"{ROWS} rows from each of {SITES} sites, {SHOWN} of them shown", fontsize=10)
    for ax in panels[-1]:
        ax.set_xlabel("dose")
    for ax in panels[:, 0]:
        ax.set_ylabel("response")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    left.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    ax = right.subplots()
    errors = pd.DataFrame([slopes_off(rows) for rows in COUNTS], index=COUNTS)
    for pooling in errors:
        colour, dashes, label = STYLES[pooling]
        ax.plot(errors.index, errors[pooling], dashes, color=colour, marker="o", markersize=4)
        at, offset = LABELS[pooling]
        ax.annotate(
            label,
            (COUNTS[at], errors[pooling].iloc[at]),
            xytext=offset,
            textcoords="offset points",
            color=colour,
        )
    ax.set_xscale("log")
    ax.set_xticks(COUNTS, [str(count) for count in COUNTS])
    ax.minorticks_off()
    ax.set_ylim(0, 2)
    ax.set_xlabel("rows from each site")
    right.suptitle("how far a site's slope is off, on average", fontsize=10)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=130)


if __name__ == "__main__":
    main()
