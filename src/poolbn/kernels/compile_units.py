"""How kernels are compiled that only other kernels call: as parts of those, or as units.

Numba optimises every function, makes machine code of it, and does both again in each function that
calls it. An entry point holds its parts, so it is enough to do so there, once. A unit is compiled
on its own and kept, as an entry point is: several call it by its address, and hold nothing of it.
So units and what calls them compile side by side, in any order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import wraps
from typing import Any

from llvmlite import binding
from numba.core import cgutils, codegen, compiler
from numba.extending import lower_builtin, type_callable

from poolbn.kernels.compile_cache import compiled

_Library: Any = codegen.JITCodeLibrary
_Compiler: Any = compiler.Compiler


class _Unset:
    """Numba's code generator for a function that has no place in memory to write to."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def set_env(self, name: str, environment: object) -> None:
        """There is no variable for it, and nothing reads it: kernels raise no errors."""


class _Part(_Library):  # type: ignore[misc]
    """The code of one function, as it was written, for others to link."""

    @property
    def codegen(self) -> Any:
        return _Unset(self._codegen)

    def _optimize_functions(self, ll_module: Any) -> None:
        """Later, with what calls it."""
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Likewise."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """No machine code, so Python cannot call it."""
        self._ensure_finalized()
        return 0


class Part(_Compiler):  # type: ignore[misc]
    """The compiler of such functions: an option of `numba.njit`."""

    def _compile_bytecode(self) -> Any:
        state = self.state
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        return super()._compile_bytecode()


_kept: list[Any] = []  # the machine code of units lives as long as the process


def compiled_alone(function: Callable[..., Any], signature: Any, options: dict[str, Any]) -> Any:
    """A function that is compiled on its own, for others to call; Python runs its source.

    Args:
        function: to compile.
        signature: of its arguments, with what it returns.
        options: of `numba.njit`.
    """
    symbol = f"{function.__module__}.{function.__qualname__}"
    made = compiled(function, signature, options)
    if made is function:  # another process compiles it; this one only compiles what calls it
        address = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value
    else:
        (code,) = made.overloads.values()
        address = code.library.get_pointer_to_function(code.fndesc.llvm_func_name)
        _kept.append(made)
    binding.add_symbol(symbol, address)

    @type_callable(function)
    def typed(context: Any) -> Any:
        return wraps(function)(lambda *arguments: signature)

    @lower_builtin(function, *signature.args)
    def lower(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        call = context.call_conv
        kind = call.get_function_type(signature.return_type, signature.args)
        there = cgutils.get_or_insert_function(builder.module, kind, symbol)
        # It returns a status, too: kernels raise no errors.
        return call.call_function(builder, there, signature.return_type, signature.args, arguments)[
            1
        ]

    return function
