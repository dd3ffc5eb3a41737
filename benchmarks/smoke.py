"""Runs every benchmark on something tiny, in one process, and says which ones fail.

python benchmarks/smoke.py [NAME ...]
"""

from __future__ import annotations

import io
import os
import runpy
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

# Before numpy and others are loaded: the threads of each would wait for those of the tests.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

HERE = Path(__file__).resolve().parent
NONE = {"smoke", "tiny", "worlds"}  # measure nothing
# What more their command lines need, for each way to call them.
WAYS: dict[str, list[list[str]]] = {
    "constraint_based": [[], ["--rules"], ["--large", "6"]],
    "mixed": [["--runs", "{folder}/mixed.jsonl"]],
    "posterior": [["speed"], ["chains"], ["calibration"], ["powers"]],
}


def run(name: str, arguments: list[str]) -> str:
    """What it prints; and why it fails, if it does."""
    sys.argv = [str(HERE / f"{name}.py"), *arguments, "--smoke"]
    out = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(out):
        warnings.simplefilter("ignore")
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return f"{out.getvalue()}\n{traceback.format_exc()}"
    return "" if out.getvalue().strip() else "it printed nothing"


def main() -> None:
    names = sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.py"))
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            if name in NONE:
                continue
            start = time.perf_counter()
            for arguments in WAYS.get(name, [[]]):
                wrong = run(name, [word.format(folder=folder) for word in arguments])
                if wrong:
                    print(f"{name} {' '.join(arguments)}\n{wrong}", flush=True)
                    failed.append(name)
            print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
    if failed:
        sys.exit(f"benchmarks that fail: {', '.join(dict.fromkeys(failed))}")


if __name__ == "__main__":
    main()
