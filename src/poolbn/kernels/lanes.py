"""Vectors over the data sets, eight at a time, and the arrays that hold them.

A loop over a handful of data sets costs more to enter than to run: LLVM first asks whether arrays
overlap and how many are left over. So arrays have room for a multiple of eight data sets, zeros for
those that are not there, and the loops are over vectors of eight, which LLVM knows. Each function
here is Python, and has beside it what numba puts in its place.

Why not plain loops over the last axis: scores of 200 to 400 families in each of six tables (3 to 60
data sets) take 1.38 times as long with them, best of 8 runs side by side; by residual model, the
median of the tables is 1.54 (shared), 1.31 (shared, REML), 1.33 (pooled), 1.35 (separate). Sums are
what costs, as they may not change their order; in vectors the order is fixed, and quick. Kernels
that multiply and add apart, as `moments` does, then give the same bits on every CPU; `fma` gives
those of the machine's own instruction.
"""

from __future__ import annotations

from functools import partial, wraps
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import lower_builtin, models, register_jitable, register_model, type_callable
from numpy.typing import NDArray

LANES = 8
# Of a number's bits: how many its fraction has, the fraction, 2^52 and 1.
_MANTISSA, _FRACTION, _WHOLE, _ONE = 52, 2**52 - 1, 1075 << 52, 1023 << 52

Floats = NDArray[np.float64]


class _Vector(types.Type):
    def __init__(self, size: int) -> None:
        super().__init__(name=f"vector of {size}")
        self.size = size
        self.llvm = ir.VectorType(ir.DoubleType(), size)


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.llvm)


_eight, _four = _Vector(LANES), _Vector(LANES // 2)


def _compiles(function: Any, returns: Any, *arguments: Any) -> Any:
    """Decorates what writes the LLVM of a function; `returns` is its type."""
    typer = wraps(function)(partial(returns))
    type_callable(function)(lambda context: typer)
    return lower_builtin(function, *arguments)


def _same(x: Any, *_: Any) -> Any:
    return x


@register_jitable
def padded(F: int) -> int:
    """Room for F data sets.

    Examples:
        >>> padded(3), padded(8), padded(9)
        (8, 8, 16)
    """
    return -(-F // LANES) * LANES


def opaque(at: int) -> int:
    """The same number, but LLVM does not know it.

    It would count all places of a loop nest up on their own, dozens of them, which costs far more
    than to compute those in use.
    """
    return at


@_compiles(opaque, lambda *_: types.int64, types.Integer)
def _lower_opaque(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return hidden(builder, arguments[0])


def hidden(builder: Any, at: Any) -> Any:
    """The same number in LLVM, likewise."""
    word = ir.IntType(64)
    return builder.asm(ir.FunctionType(word, [word]), "", "=r,0", [at], side_effect=False)


def load(X: Floats, at: int) -> Floats:
    """Eight numbers of an array, as if it were flat."""
    return X.reshape(-1)[at : at + LANES].copy()


def load_four(X: Floats, at: int) -> Floats:
    """Four."""
    return X.reshape(-1)[at : at + LANES // 2].copy()


def _address(context: Any, builder: Any, kind: Any, X: Any, at: Any, vector: Any) -> Any:
    array = context.make_array(kind)(context, builder, value=X)
    return builder.bitcast(builder.gep(array.data, [at]), vector.llvm.as_pointer())


@_compiles(load, lambda *_: _eight, types.Array, types.Integer)
@_compiles(load_four, lambda *_: _four, types.Array, types.Integer)
def _lower_load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    X, at = arguments
    place = _address(context, builder, signature.args[0], X, at, signature.return_type)
    return builder.load(place, align=8)


def store(X: Floats, at: int, values: Floats) -> None:
    """Put eight numbers there."""
    X.reshape(-1)[at : at + LANES] = values


@_compiles(store, lambda *_: types.none, types.Array, types.Integer, _Vector)
def _lower_store(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    X, at, values = arguments
    builder.store(values, _address(context, builder, signature.args[0], X, at, _eight), align=8)
    return context.get_dummy_value()


def spread(value: float) -> Floats:
    """The same number eight times."""
    return np.full(LANES, value)


def spread_four(value: float) -> Floats:
    """Four times."""
    return np.full(LANES // 2, value)


@_compiles(spread, lambda *_: _eight, types.Float)
@_compiles(spread_four, lambda *_: _four, types.Float)
def _lower_spread(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind = signature.return_type
    nothing = ir.Constant(kind.llvm, ir.Undefined)
    one = builder.insert_element(nothing, arguments[0], _number(0))
    return builder.shuffle_vector(one, nothing, _numbers([0] * kind.size))


def product(x: Floats, y: Floats) -> Floats:
    """Each x y."""
    return x * y


@_compiles(product, _same, _Vector, _Vector)
def _lower_product(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.fmul(*arguments)


def plus(x: Floats, y: Floats) -> Floats:
    """Each x + y."""
    return x + y


@_compiles(plus, _same, _Vector, _Vector)
def _lower_plus(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.fadd(*arguments)


def minus(x: Floats, y: Floats) -> Floats:
    """Each x - y."""
    return x - y


@_compiles(minus, _same, _Vector, _Vector)
def _lower_minus(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.fsub(*arguments)


def quotient(x: Floats, y: Floats) -> Floats:
    """Each x / y."""
    return x / y


@_compiles(quotient, _same, _Vector, _Vector)
def _lower_quotient(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.fdiv(*arguments)


def choose(x: Floats, y: Floats, z: Floats) -> Floats:
    """Each y where x > 0, else z."""
    return np.where(x > 0.0, y, z)


@_compiles(choose, _same, _Vector, _Vector, _Vector)
def _lower_choose(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    x, y, z = arguments
    nothing = ir.Constant(x.type, [0.0] * signature.return_type.size)
    return builder.select(builder.fcmp_ordered(">", x, nothing), y, z)


def raise_by(x: Floats, n: Floats) -> Floats:
    """Each x 2^k, with k in the last bits of n."""
    return (x.view(np.int64) + (n.view(np.int64) << _MANTISSA)).view(np.float64)


@_compiles(raise_by, _same, _Vector, _Vector)
def _lower_raise_by(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    size = signature.return_type.size
    x, n = (builder.bitcast(v, ir.VectorType(ir.IntType(64), size)) for v in arguments)
    bits = builder.add(x, builder.shl(n, _words(_MANTISSA, size)))
    return builder.bitcast(bits, signature.return_type.llvm)


def exponent(x: Floats) -> Floats:
    """Each 2^52 + 1023 + k, where 2^k <= x < 2^(k + 1); positive numbers that are not tiny."""
    return ((x.view(np.int64) >> _MANTISSA) | _WHOLE).view(np.float64)


def fraction(x: Floats) -> Floats:
    """Each x / 2^k, likewise."""
    return ((x.view(np.int64) & _FRACTION) | _ONE).view(np.float64)


@_compiles(exponent, _same, _Vector)
def _lower_exponent(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind = signature.return_type
    bits = builder.bitcast(arguments[0], ir.VectorType(ir.IntType(64), kind.size))
    bits = builder.lshr(bits, _words(_MANTISSA, kind.size))
    return builder.bitcast(builder.or_(bits, _words(_WHOLE, kind.size)), kind.llvm)


@_compiles(fraction, _same, _Vector)
def _lower_fraction(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind = signature.return_type
    bits = builder.bitcast(arguments[0], ir.VectorType(ir.IntType(64), kind.size))
    bits = builder.and_(bits, _words(_FRACTION, kind.size))
    return builder.bitcast(builder.or_(bits, _words(_ONE, kind.size)), kind.llvm)


def fma(x: Floats, y: Floats, z: Floats) -> Floats:
    """Each x y + z, in one instruction where the machine has it."""
    return x * y + z


@_compiles(fma, _same, _Vector, _Vector, _Vector)
def _lower_fma(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind = signature.return_type
    function = ir.FunctionType(kind.llvm, [kind.llvm] * 3)
    name = f"llvm.fmuladd.v{kind.size}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), arguments)


def total(x: Floats) -> float:
    """The sum of all, halves first."""
    while len(x) > 1:
        x = x[: len(x) // 2] + x[len(x) // 2 :]
    return float(x[0])


@_compiles(total, lambda *_: types.float64, _Vector)
def _lower_total(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    (x,) = arguments
    size = signature.args[0].size
    while size > 1:
        size //= 2
        low = builder.shuffle_vector(x, x, _numbers(range(size)))
        x = builder.fadd(low, builder.shuffle_vector(x, x, _numbers(range(size, 2 * size))))
    return builder.extract_element(x, _number(0))


def _number(value: int) -> Any:
    return ir.Constant(ir.IntType(32), value)


def _numbers(values: Any) -> Any:
    values = list(values)
    return ir.Constant(ir.VectorType(ir.IntType(32), len(values)), values)


def _words(value: int, size: int) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(64), size), [value] * size)
