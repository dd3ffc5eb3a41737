"""Compiled kernels where nothing can be written, and where what was kept is damaged."""

from __future__ import annotations

import importlib
import importlib.util
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest
from numba.core import config
from numba.core.dispatcher import Dispatcher

from poolbn.kernels import linalg
from poolbn.run import compiling

pytestmark = pytest.mark.skipif(os.name != "posix", reason="private folders of POSIX")

KERNEL = """
from numba import float64
from poolbn.kernels.linalg import entry

@entry(float64[::1])
def double(x):
    for i in range(x.shape[0]):
        x[i] *= 2.0
"""


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes here keep kernels where poolbn puts them."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(config, "CACHE_DIR", "")  # what numba read of it when it was imported


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Source, a folder for temporary files and one to work in; other users can enter."""
    with tempfile.TemporaryDirectory() as name:
        where = Path(name)
        where.chmod(0o755)
        for inner, mode in (("source", 0o755), ("temporary", 0o1777), ("work", 0o777)):
            (where / inner).mkdir()
            (where / inner).chmod(mode)
        (where / "source" / "tiny.py").write_text(KERNEL)
        monkeypatch.chdir(where / "work")
        monkeypatch.setattr(tempfile, "tempdir", str(where / "temporary"))
        monkeypatch.setenv("HOME", "/dev/null")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        yield where
        compiling._told.clear()
        assert list((where / "work").iterdir()) == []


def run(folder: Path) -> tuple[bool, str]:
    """Load a kernel as a new process would: whether it was kept, and what the user is told."""
    compiling.place.cache_clear()
    compiling._told.clear()
    spec = importlib.util.spec_from_file_location("tiny", folder / "source" / "tiny.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    x = np.ones(1)
    module.double(x)
    assert x == 2.0
    return bool(module.double.stats.cache_hits), compiling.cost()


def block(folder: Path) -> Path:
    """A file in the place of a folder stops root, too."""
    (folder / "source" / "__pycache__").write_text("")
    return folder / "temporary" / f"poolbn-kernels-{os.geteuid()}"


def test_kernels_are_kept_beside_the_source(folder: Path) -> None:
    assert run(folder) == (False, "")
    assert run(folder) == (True, "")


def test_kernels_are_kept_in_a_private_folder(folder: Path) -> None:
    private = block(folder)
    kept, told = run(folder)
    assert not kept
    assert f"__pycache__' cannot be written, so they are kept in {str(private)!r}" in told
    assert "NUMBA_CACHE_DIR" in told
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert run(folder)[0]


@pytest.mark.parametrize("how", ["another's", "open to all", "a link", "in a folder open to all"])
def test_nobody_else_lays_a_kernel_there(how: str, folder: Path) -> None:
    """What is in the folder is run, so it is not used."""
    private = block(folder)
    if how == "another's":
        if os.geteuid():
            pytest.skip("only root gives away")
        private.mkdir(mode=0o700)
        os.chown(private, 54321, 54321)
    elif how == "open to all":
        private.mkdir()
        private.chmod(0o777)
    elif how == "a link":
        (folder / "else").mkdir(mode=0o700)
        private.symlink_to(folder / "else")
    else:
        private.mkdir(mode=0o700)
        (folder / "temporary").chmod(0o777)  # anybody could swap it
    for _ in range(2):
        kept, told = run(folder)
        assert not kept
        assert "compile again at each start; NUMBA_CACHE_DIR" in told
    assert list(folder.rglob("*.nbi")) == []


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("size", [0, 1, 100, -1])
def test_a_damaged_entry_compiles_again(ending: str, size: int, folder: Path) -> None:
    run(folder)
    (kept,) = (folder / "source").rglob(f"*.{ending}")
    kept.write_bytes(kept.read_bytes()[:size])
    assert run(folder) == (False, "")
    assert run(folder) == (True, "")


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_flipped_bit_compiles_again(ending: str, folder: Path) -> None:
    """Machine code with a wrong bit would end the process, so nothing of it is run."""
    run(folder)
    (kept,) = (folder / "source").rglob(f"*.{ending}")
    whole = kept.read_bytes()
    for at in np.linspace(0, len(whole) - 1, 12).astype(int).tolist():
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        kept.write_bytes(damaged)
        assert run(folder) == (False, "")
        assert run(folder) == (True, "")
        kept.write_bytes(whole)


def test_a_full_disk_keeps_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.caching import IndexDataCacheFile

    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_save_index", full)
    assert run(folder) == (False, "")


def test_a_folder_that_the_user_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core import config

    private = block(folder)
    monkeypatch.setattr(config, "CACHE_DIR", "../kept here")
    assert run(folder) == (False, "")
    assert run(folder) == (True, "")
    assert not private.exists()


# Compiles something first: the user may not be able to read Python itself.
AS_NOBODY = """
import os, sys
from numba import njit, float64
import numpy as np
import numba.core.caching, poolbn.kernels.linalg
from poolbn.run import compiling
njit([float64(float64)])(lambda x: x + 1)
os.setgroups([])
os.setgid(54321)
os.setuid(54321)
sys.path.insert(0, sys.argv[1])
compiling.load("tiny")
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid(), reason="only root is others")
def test_a_user_without_a_home_or_a_name(folder: Path) -> None:
    environment = dict(os.environ) | {"TMPDIR": str(folder / "temporary")}
    del environment["HOME"]
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(folder / "source")],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    private = folder / "temporary" / "poolbn-kernels-54321"
    assert done.returncode == 0, done.stderr
    assert f"kept in {str(private)!r}" in done.stderr
    assert private.stat().st_uid == 54321
    assert len(list(private.rglob("*.nbc"))) == 1


def test_no_kernel_calls_an_entry_point() -> None:
    """Of those only machine code is kept, which other kernels cannot hold."""
    folder = Path(linalg.__file__).parent
    names = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
    modules = [importlib.import_module(f"poolbn.kernels.{name}") for name in names]
    entries = {
        id(value): name for module in modules for name, value in vars(module).items()
        if isinstance(value, Dispatcher) and value.overloads
        and not value.targetoptions.get("no_cpython_wrapper")
    }  # fmt: skip
    assert len(entries) > 20
    for value in [value for module in modules for value in vars(module).values()]:
        source = getattr(value, "py_func", value)
        if isinstance(source, FunctionType):
            used = [source.__globals__.get(name) for name in source.__code__.co_names]
            assert [entries[id(kernel)] for kernel in used if id(kernel) in entries] == [], source
