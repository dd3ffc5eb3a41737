"""Each page runs in a folder of its own, so that it can write files as a reader would.

The tables of `examples/data` are there, as a reader has them who downloaded them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

collect_ignore_glob = ["*.py"]  # for building the pages, with packages that tests do not need


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (Path(__file__).parent / "examples" / "data").glob("*.csv*"):
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
