"""Functions compiled by numba, and kept in its cache.

Numba looks only at the file that a function is in, while its code holds that of others. Here what
is kept is good as long as no kernel changes, however often the package is installed again. A file
begins with a digest of the rest: machine code with a wrong bit ends the process.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding
from numba.core import caching
from numba.core.errors import NumbaError

from poolbn import constants
from poolbn.run.compiling import have_compiled, kept_in, left_to_others, place

_numba: Any = numba
_caching: Any = caching
_ANNOTATED, _CALLED = -3, -1  # places in what numba keeps: the source with types; what is called
_DIGEST = 16  # bytes


class _Slim(_caching.CompileResultCacheImpl):  # type: ignore[misc]
    """Keeps machine code alone, a fifth of what numba keeps: that is read at each start.

    The rest is for functions that call this one and hold it. None does: kernels call units by
    their address, and no entry points.
    """

    def reduce(self, cres: Any) -> Any:
        (name, kind, (code, _)), *about = cres._reduce()
        ways_in = {cres.fndesc.llvm_func_name, cres.fndesc.llvm_cpython_wrapper_name}
        there = ways_in & {function.name for function in cres.library.get_defined_functions()}
        # Numba looks here for what machine code there is.
        names = "".join(f'define void @"{way}"() {{ ret void }}\n' for way in sorted(there))
        about[_ANNOTATED], about[_CALLED] = "", ()
        return ((name, kind, (code, binding.parse_assembly(names).as_bitcode())), *about)


class _Files(_caching.IndexDataCacheFile):  # type: ignore[misc]
    """The files of a function, which are as good as not there when they are damaged."""

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        return _digest(data) + data

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            return _undamaged(file.read())

    def _load_index(self) -> dict[Any, str]:
        with suppress(Exception), open(self._index_path, "rb") as file:  # as any unpickler raises
            if pickle.load(file) == self._version:
                stamp, names = _undamaged(file.read())
                return dict(names) if stamp == self._source_stamp else {}
        return {}


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()


def _undamaged(data: bytes) -> Any:
    """What a file holds.

    Raises:
        OSError: it is damaged. Numba goes on as without the file.
    """
    if _digest(data[_DIGEST:]) != data[:_DIGEST]:
        raise OSError("damaged")
    return pickle.loads(data[_DIGEST:])


class _Kept(_caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Slim

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        folder, self._module = _source(function)
        self._stamp = _sources(folder)
        self._cache_file = self._index(self._impl.filename_base)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)
        if found is None and have_compiled(self._module, self._has):
            found = super().load_overload(sig, target_context)
        return found

    def _has(self, module: str) -> bool:
        """Whether a module of kernels is in the cache."""
        found = Path(self._cache_path).glob(f"{module}.*.nbi")
        return any(self._index(path.stem)._load_index() for path in found)

    def _index(self, base: str) -> Any:
        return _Files(self._cache_path, base, source_stamp=self._stamp)


def _source(function: Callable[..., Any]) -> tuple[str, str]:
    """The folder and the module that a function says it is from."""
    folder, file = os.path.split(function.__code__.co_filename)
    return folder, os.path.splitext(file)[0]


@cache
def _sources(folder: str) -> str:
    """A digest of all that machine code of kernels is made from."""
    files = [*sorted(Path(folder).glob("*.py")), Path(constants.__file__)]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def compiled(function: Callable[..., Any], signature: Any, options: dict[str, Any]) -> Any:
    """A function compiled by numba, from its cache if it is there.

    An entry of the cache that cannot be read is thrown away. Where nothing can be written, the
    function is compiled without. A process that compiles other kernels gets the function itself.

    Args:
        function: to compile.
        signature: of its arguments.
        options: of `numba.njit`.
    """
    folder, module = _source(function)
    if left_to_others(module, lambda: compiled(function, signature, options)):
        return function
    made = _numba.njit(**options)(function)
    if made is function:  # numba is told to compile nothing
        return function
    kept = place(folder)
    if kept is not None:
        for _ in range(2):
            try:
                with kept_in(kept):
                    made._cache = _Kept(function)
                    made.compile(signature)
            except NumbaError:
                raise  # of the function, whatever is in the cache
            except Exception:  # an unpickler raises anything
                made = _numba.njit(**options)(function)
                try:
                    with kept_in(kept):
                        _Kept(function).flush()
                except (OSError, RuntimeError):
                    break  # it cannot be written after all, or the disk is full
            else:
                made.disable_compile()
                return made
    made.compile(signature)
    made.disable_compile()
    return made
