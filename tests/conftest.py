from __future__ import annotations

import importlib

import pytest
from hypothesis import settings

import poolbn as pb

settings.register_profile("poolbn", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("poolbn")


@pytest.fixture(scope="session")
def opt_stats() -> pb.GroupStats:
    opt = pb.datasets.opt(kind="continuous")
    return pb.stats(opt[[c for c in opt if not c.endswith("_5")]], group="clinic", missing="drop")


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source of those kernels runs that only other kernels can call."""
    # All that call them are imported before one is patched: on import numba compiles, with what
    # it finds.
    names = ("linalg", "gammas", "deviance", "bounds", "optimise", "shared", "pooled", "separate")
    for module in [importlib.import_module(f"poolbn.kernels.{name}") for name in names]:
        for attribute, value in list(vars(module).items()):
            options = getattr(value, "targetoptions", {})
            if options.get("no_cpython_wrapper") or options.get("inline") == "always":
                monkeypatch.setattr(module, attribute, value.py_func)
