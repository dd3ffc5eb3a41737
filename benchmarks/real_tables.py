"""Real tables: how well each pooling predicts rows that were held out, and how long it takes.

The tables are in benchmarks/tables, see the README there. Tables are read as `pb.look` proposes:
columns of 0 and 1 are discrete, and those that describe data sets are inputs, so that all poolings
predict the same columns. Rows of each data set go to five folds; networks learned from the other
folds, graph and all, predict each.

    python benchmarks/real_tables.py [TABLE ...] [--out results/real_tables.md]
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tiny import parsed, tiny

import poolbn as pb

TABLES = Path(__file__).parent / "tables"
FOLDS = tiny(5, 2)
ALIKE = 0.005  # difference of log-likelihoods that does not show with two digits
SHOWN = {  # titles and digits
    "loglikFalse": ("Log-likelihood of a held-out row", 2),
    "loglikTrue": ("The same with estimates taken for certain", 2),
    "coverage": ("Coverage of 95% prediction intervals", 3),
    "loglossFalse": ("Log-loss of classifying rows by data set", 3),
    "loglossTrue": ("The same with estimates taken for certain", 3),
    "seconds": ("Processor seconds to learn the network of all rows", 3),
}
MODELS: dict[str, dict[str, object]] = {
    "complete": {"pooling": "complete", "preset": "paper"},
    "none": {"pooling": "none", "preset": "paper"},
    "partial": {"preset": "paper"},
    "pooled residuals": {"pooling": pb.Partial(residuals="pooled"), "preset": "paper"},
    "auto, bic-h": {"pooling": "auto", "score": "bic-h", "search": "hc"},
    "default": {},
}


def table(name: str) -> tuple[pd.DataFrame, dict[str, Any], list[str]]:
    """A table without data sets of one row, how `pb.look` would have it read, and kinds."""
    frame = pd.read_csv(TABLES / f"{name}.csv.gz", dtype={"group": str}, keep_default_na=False)
    frame = frame[frame.groupby("group")["group"].transform("size") > 1].reset_index(drop=True)
    found = pb.look(frame, group="group")
    options = found.options
    assert found.unit is None
    assert options.missing == "error"
    reading = {"columns": list(found.nodes), "kinds": options.kinds, "inputs": options.inputs}
    return frame, {"group": "group", **reading}, list(found.nodes.values())


def folds(groups: pd.Series) -> np.ndarray:
    """The fold of each row: those of a data set evenly, in random order."""
    rng = np.random.default_rng(1)
    lots = pd.Series(rng.random(len(groups)), index=groups.index)
    return (lots.groupby(groups).rank().astype(int) % FOLDS).to_numpy()


def assess(
    frame: pd.DataFrame, reading: dict[str, Any], model: dict[str, object]
) -> tuple[dict[str, float], pd.Series]:
    """Held-out log-likelihood and log-loss a row, F1, coverage of 95% intervals; seconds of CPU.

    And the log-likelihood of each row.
    """
    start = time.process_time()
    pb.learn(frame, **reading, **model)
    seconds = time.process_time() - start
    fold, rows = folds(frame["group"]), []
    for k in range(FOLDS):
        train, test = frame[fold != k], frame[fold == k]
        test = test[test["group"].isin(train["group"])]
        net = pb.learn(train, **reading, **model)
        found = {"actual": test["group"]}
        for plugin in (False, True):
            found[f"loglik{plugin}"] = net.loglik(test, rows=True, plugin=plugin)
            guess = net.classify(test, plugin=plugin)
            at = guess.columns.get_indexer(test["group"])
            chance = guess.to_numpy()[np.arange(len(test)), at].astype(float)
            with np.errstate(divide="ignore"):
                found[f"logloss{plugin}"] = pd.Series(-np.log(chance), index=test.index)
            found[f"guess{plugin}"] = guess["most_probable"]
        inside = []
        for node, fit in net.fits.items():
            if fit.kind == "continuous" and node not in net.inputs:
                predicted = net.predict(test, node)
                inside.append(test[node].between(predicted["lower"], predicted["upper"]))
        if inside:
            found["coverage"] = pd.concat(inside, axis=1).mean(axis=1)
        rows.append(pd.DataFrame(found))
    every = pd.concat(rows)
    numbers = every.select_dtypes("number")
    means = numbers.mean().to_dict() | {"seconds": seconds}
    change = every["loglossFalse"] - every["loglossTrue"]
    means["logloss_se"] = float(change.std() / math.sqrt(len(change)))
    means["logloss_own_se"] = float(every["loglossTrue"].std() / math.sqrt(len(change)))
    for plugin in (False, True):
        means[f"f1{plugin}"] = f1(every["actual"], every[f"guess{plugin}"])
    return means, every["loglikFalse"]


def f1(actual: pd.Series, guess: pd.Series) -> float:
    """The mean over data sets; 0 for one that is never guessed rightly."""
    scores = []
    for level in actual.unique():
        right = ((actual == level) & (guess == level)).sum()
        both = (actual == level).sum() + (guess == level).sum()
        scores.append(2 * right / both)
    return float(np.mean(scores))


def measure(names: list[str]) -> pd.DataFrame:
    """A row for each table and pooling."""
    lines = []
    for name in names:
        frame, reading, kinds = table(name)
        about = {"table": name, "data sets": frame["group"].nunique(), "rows": len(frame),
                 "columns": len(kinds),
                 "discrete": sum(kind != "continuous" for kind in kinds)}  # fmt: skip
        logliks: dict[str, pd.Series] = {}
        for label, model in MODELS.items():
            try:
                means, logliks[label] = assess(frame, reading, model)
                found: dict[str, object] = dict(means)
            except pb.PoolbnError as error:
                found = {"trouble": str(error)}
            lines.append(about | {"pooling": label} | found)
        best = max(logliks, key=lambda label: logliks[label].mean())
        for line in lines[-len(MODELS) :]:
            if line["pooling"] in logliks and np.isfinite(logliks[line["pooling"]]).all():
                behind = logliks[best] - logliks[line["pooling"]]
                error = float(behind.std() / math.sqrt(len(behind)))
                line |= {"best": best, "behind": float(behind.mean()), "behind_se": error}
        print(lines[-1], flush=True)
    return pd.DataFrame(lines)


def markdown(found: pd.DataFrame, column: str, digits: int) -> str:
    """A table with a row for each table and a column for each pooling."""
    about = ["table", "data sets", "rows", "columns", "discrete"]
    wide = found.set_index([*about, "pooling"])[column].unstack()[list(MODELS)].reset_index()
    wide = wide.sort_values("table", key=lambda names: names.str.lower())
    lines = [" | ".join(map(str, wide.columns)), " | ".join("---" for _ in wide.columns)]
    for row in wide.itertuples(index=False):
        cells = [f"{cell:.{digits}f}" if isinstance(cell, float) else str(cell) for cell in row]
        lines.append(" | ".join("-" if cell == "nan" else cell for cell in cells))
    return "\n".join(f"| {line} |" for line in lines)


def behind(found: pd.DataFrame) -> str:
    """By how much the default is behind the best model, a held-out row, where it is not best."""
    near = found["behind"] <= np.maximum(found["behind_se"], ALIKE)
    shares = near.groupby(found["pooling"]).mean()[list(MODELS)]
    own = found[found["pooling"] == "default"]
    told = [f"{row.table} {row.behind:.3f} ± {row.behind_se:.3f} behind {row.best}"
            for row in own[own["behind"] > ALIKE].itertuples()]  # fmt: skip
    others = ", ".join(f"{label} {share:.0%}" for label, share in shares.items())
    return (
        f"Best, or within one standard error of the best, of {len(own)} tables: {others}.\n\n"
        f"Where the default is not best: {'; '.join(told)}.\n"
    )


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--out", type=Path)
    options = parsed(parser, tables=["sleepstudy"])
    warnings.simplefilter("ignore", pb.DataWarning)
    every = sorted((path.name.split(".")[0] for path in TABLES.glob("*.csv.gz")), key=str.lower)
    found = measure(options.tables or every)
    text = "\n".join(
        f"{title}\n\n{markdown(found, column, digits)}\n"
        for column, (title, digits) in SHOWN.items()
    )
    text += "\n" + behind(found)
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
