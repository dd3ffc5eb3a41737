"""Arrays that are cut out of one buffer: a tuple of views, which compiled code makes one by one.

Numba's own tuple of forty arrays is some four hundred numbers, which it loads to take one out: that
takes long to compile. So what is kept is where each array begins, and the letters of its shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, get_type_hints

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
    type_callable,
)
from numba.np.arrayobj import populate_array

from poolbn.kernels.lanes import LANES, hidden, padded

Arrays = TypeVar("Arrays")

_word = ir.IntType(64)
_address = types.CPointer(types.float64)


class Letters(NamedTuple):
    """What shapes are made of: whole numbers, in Python or in LLVM."""

    F: Any  # data sets, padded
    q: Any  # coefficients
    r: Any  # those that are random
    size: Any  # r (r + 1) / 2
    reml: Any  # 0 or 1


class _Whole:
    """A whole number in LLVM, with what shapes do with it."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.value = ir.Constant(_word, value) if isinstance(value, int) else value

    def __add__(self, other: Any) -> _Whole:
        return _Whole(self.builder, self.builder.add(self.value, self._same(other).value))

    def __mul__(self, other: Any) -> _Whole:
        return _Whole(self.builder, self.builder.mul(self.value, self._same(other).value))

    __rmul__ = __mul__

    def _same(self, other: Any) -> _Whole:
        return other if isinstance(other, _Whole) else _Whole(self.builder, other)

    def padded(self) -> _Whole:
        """As `lanes.padded`."""
        above = (self + (LANES - 1)).value
        return _Whole(self.builder, self.builder.and_(above, ir.Constant(_word, -LANES)))


class _Cut(types.Type):
    """Where arrays begin, and letters."""

    def __init__(self, arrays: type) -> None:
        super().__init__(name=f"arrays of {arrays.__name__}")
        hints = get_type_hints(arrays, include_extras=True)
        self.texts = {name: f"({hint.__metadata__[0]},)" for name, hint in hints.items()}

    def shape(self, name: str, letters: Letters) -> tuple[Any, ...]:
        """The shape of an array, as its annotation has it."""
        shape: tuple[Any, ...] = eval(self.texts[name], {}, letters._asdict())
        return shape

    def array(self, name: str) -> Any:
        """Numba's type of an array."""
        return types.Array(types.float64, len(self.shape(name, Letters(0, 0, 0, 0, 0))), "C")


@register_model(_Cut)
class _CutModel(models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        letters = [(_member(letter), types.int64) for letter in Letters._fields]
        super().__init__(manager, kind, [(name, _address) for name in kind.texts] + letters)


def _member(letter: str) -> str:
    """Arrays have such names, too."""
    return f"letter {letter}"


@infer_getattr
class _Names(AttributeTemplate):
    key = _Cut

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
        return kind.array(name) if name in kind.texts else None


@lower_getattr_generic(_Cut)
def _lower_name(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    cut = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    letters = Letters(*(_Whole(builder, getattr(cut, _member(of))) for of in Letters._fields))
    one = _Whole(builder, 1)
    lengths = [(one * length).value for length in kind.shape(name, letters)]
    eight = ir.Constant(_word, 8)
    strides = [eight]
    for length in lengths[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    part = context.make_array(kind.array(name))(context, builder)
    populate_array(part, getattr(cut, name), lengths, strides, eight, None)
    return part._getvalue()


def layout(
    arrays: type[Arrays], buffer: str
) -> tuple[Callable[[Any], Arrays], Callable[[Any], list[tuple[int, ...]]]]:
    """What cuts arrays out of a buffer, also when compiled; and what tells their shapes.

    Both take a named tuple with that buffer, F, q, r and reml.

    Args:
        arrays: a named tuple whose annotations say shapes in `Letters`.
        buffer: the name of the field.
    """
    kind = _Cut(arrays)

    def measure(s: Any) -> list[tuple[int, ...]]:
        letters = Letters(padded(s.F), s.q, s.r, s.r * (s.r + 1) // 2, int(s.reml))
        return [kind.shape(name, letters) for name in kind.texts]

    def cut(s: Any) -> Arrays:
        whole, at, parts = getattr(s, buffer), 0, []
        for shape in measure(s):
            size = math.prod(shape)
            parts.append(whole[at : at + size].reshape(shape))
            at += padded(size)
        return arrays(*parts)

    @type_callable(cut)
    def typed(context: Any) -> Any:
        return lambda s: kind

    @lower_builtin(cut, types.BaseNamedTuple)
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (space,) = signature.args
        values = cgutils.unpack_tuple(builder, arguments[0])
        fields = dict(zip(space.fields, values, strict=True))
        F, q, r = (_Whole(builder, fields[name]) for name in ("F", "q", "r"))
        size = _Whole(builder, builder.lshr((r * (r + 1)).value, ir.Constant(_word, 1)))
        reml = _Whole(builder, builder.zext(fields["reml"], _word))
        letters = Letters(F.padded(), q, r, size, reml)
        of = space.types[space.fields.index(buffer)]
        whole = context.make_array(of)(context, builder, value=fields[buffer])
        made = cgutils.create_struct_proxy(kind)(context, builder)
        at, one = _Whole(builder, 0), _Whole(builder, 1)
        for name in kind.texts:
            place = hidden(builder, at.value)
            setattr(made, name, builder.gep(whole.data, [place]))
            at = _Whole(builder, place) + math.prod(kind.shape(name, letters), start=one).padded()
        for letter, value in letters._asdict().items():
            setattr(made, _member(letter), value.value)
        return made._getvalue()

    return cut, measure
