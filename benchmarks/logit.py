"""Logistic mixed models against glmer's defaults: each case of tests/reference/logit in turn.

R keeps running; a case is fitted there, then here, so both see the same machine. Times are those of
the processor, one thread each: on a busy machine a clock on the wall would count waiting, of which
long fits have more. Needs R with lme4.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from tiny import lacks, parsed, tiny

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from helpers import REFERENCE
from test_glmm import BINARY, LOGITS, listed, of_case, quick_likelihood

from poolbn.nodes.glmm import Problem

R = """
suppressMessages(library(lme4)); input <- file("stdin", "r")
while (length(line <- readLines(input, 1)) > 0) {
  part <- strsplit(line, "\\t")[[1]]
  d <- read.csv(part[1], stringsAsFactors = TRUE); d$F <- factor(d$F)
  t0 <- sum(proc.time()[1:2])
  try(suppressWarnings(suppressMessages(glmer(as.formula(part[2]), d, binomial))), silent = TRUE)
  cat(sum(proc.time()[1:2]) - t0, "\\n"); flush(stdout())
}
"""


_RUNS = tiny(20, 1)


def ours(case: dict) -> float:
    """Seconds: the mean of some runs, after a first."""
    design = of_case("logit", case)
    quick_likelihood(Problem(design, BINARY))
    start = time.process_time()
    for _ in range(_RUNS):
        quick_likelihood(Problem(design, BINARY))
    return (time.process_time() - start) / _RUNS


def main() -> None:
    parsed(argparse.ArgumentParser(description=__doc__))
    if missing := lacks("lme4"):
        print(f"glmer left out: {missing}")
        for case in LOGITS[: tiny(None, 1)]:
            print(f"{case['id']:26} poolbn {1e3 * ours(case):7.3f} ms")
        return
    ratios = []
    with subprocess.Popen(
        ["Rscript", "-e", R], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None
        for case in LOGITS[: tiny(None, 1)]:
            right = " + ".join(["1", *listed(case["parents"])])
            formula = f"{case['response']} ~ {right} + ({right} | F)"
            peer.stdin.write(f"{REFERENCE / 'logit' / case['data']}\t{formula}\n")
            peer.stdin.flush()
            theirs = float(peer.stdout.readline())
            mine = ours(case)
            ratios.append(theirs / mine)
            print(
                f"{case['id']:26} glmer {theirs:7.3f} s  poolbn {1e3 * mine:7.3f} ms  "
                f"{ratios[-1]:7.0f} times",
                flush=True,
            )
        peer.stdin.close()
    print(f"median {np.median(ratios):.0f} times, least {min(ratios):.0f}")


if __name__ == "__main__":
    main()
