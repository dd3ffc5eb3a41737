from __future__ import annotations

import pytest
from hypothesis import settings

import poolbn as pb

settings.register_profile("poolbn", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("poolbn")


@pytest.fixture(scope="session")
def opt_stats() -> pb.GroupStats:
    opt = pb.datasets.opt()
    return pb.stats(opt[[c for c in opt if not c.endswith("_5")]], group="clinic", missing="drop")
