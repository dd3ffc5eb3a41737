"""Dirichlet-multinomial fits of families with two levels, against glmmTMB's betabinomial.

Both maximise the same likelihood, in the same run, on the families of `tests/reference/polya`; both
start from counts. Needs R with glmmTMB and jsonlite.

    python benchmarks/polya.py [--runs RUNS]
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd
from tiny import lacks, parsed, tiny

from poolbn.moments.indicators import tabulate
from poolbn.nodes import polya

REFERENCE = Path(__file__).parent.parent / "tests" / "reference" / "polya"
SCRIPT = """
suppressMessages({library(glmmTMB); library(jsonlite)})
runs <- as.integer(commandArgs(TRUE)[1])
families <- fromJSON(readLines(file("stdin")), simplifyDataFrame = FALSE)
out <- lapply(families, function(d) {
  d <- data.frame(k = d$k, m = d$m, cf = factor(d$cf))
  f <- if (nlevels(d$cf) > 1) cbind(k, m) ~ 0 + cf else cbind(k, m) ~ 1
  fit <- NULL
  seconds <- sapply(seq_len(runs), function(i)
    system.time(fit <<- suppressWarnings(glmmTMB(f, d, family = betabinomial)))[["elapsed"]])
  list(seconds = median(seconds), loglik = as.numeric(logLik(fit)) - sum(lchoose(d$k + d$m, d$k)))
})
cat(toJSON(out, auto_unbox = TRUE, digits = 12))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parsed(parser, runs=1).runs
    cases = json.loads((REFERENCE / "cases.json").read_text())["cases"]
    families = {case["id"]: counts(case) for case in cases if case["levels"] == 2}
    families = dict(list(families.items())[: tiny(None, 3)])
    missing = lacks("glmmTMB", "jsonlite")
    if missing:
        print(f"glmmTMB left out: {missing}")
    unknown = {"seconds": math.nan, "loglik": math.nan}
    theirs = [unknown] * len(families) if missing else glmmtmb(list(families.values()), runs)
    polya.partial_logliks([next(iter(families.values()))])  # compiled
    rows = []
    for (name, n), other in zip(families.items(), theirs, strict=True):
        seconds = []
        for _ in range(tiny(200, 2)):
            start = time.perf_counter()
            polya.partial(n)
            seconds.append(time.perf_counter() - start)
        fit = float(np.median(seconds))
        start = time.perf_counter()
        polya.partial_logliks([n] * tiny(1000, 10))
        batch = (time.perf_counter() - start) / tiny(1000, 10)
        rows.append(
            {
                "family": name,
                "F x C x K": " x ".join(map(str, n.shape)),
                "glmmTMB ms": 1e3 * other["seconds"],
                "fit us": 1e6 * fit,
                "in a batch us": 1e6 * batch,
                "ratio": other["seconds"] / fit,
                "ratio in a batch": other["seconds"] / batch,
                "log-likelihood above": polya.partial(n).loglik - other["loglik"],
            }
        )
    table = pd.DataFrame(rows).set_index("family")
    print(table.to_string(float_format="{:.3g}".format))
    medians = table[["ratio", "ratio in a batch"]].median()
    print(f"median ratio {medians.iloc[0]:.0f}, in a batch {medians.iloc[1]:.0f}")


def counts(case: dict) -> np.ndarray:
    rows = pd.read_csv(REFERENCE / case["data"], dtype=str)
    columns = [rows[c].astype("category").cat for c in ("F", *case["parents"], case["response"])]
    codes = np.column_stack([column.codes.astype(np.int64) for column in columns])
    sizes = [len(column.categories) for column in columns]
    return tabulate(codes.T[1:], sizes[1:], codes[:, 0], sizes[0])


def glmmtmb(families: list[np.ndarray], runs: int) -> list[dict]:
    given = []
    for n in families:
        cells = n.reshape(-1, 2)
        configuration = np.tile(np.arange(n.shape[1]), len(n))
        seen = cells.sum(axis=1) > 0
        given.append(
            {
                "k": cells[seen, 1].tolist(),
                "m": cells[seen, 0].tolist(),
                "cf": configuration[seen].tolist(),
            }
        )
    done = subprocess.run(
        ["Rscript", "-e", SCRIPT, str(runs)],
        input=json.dumps(given) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
