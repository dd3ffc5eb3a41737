"""Vectors over the data sets, and the arrays that hold them."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from poolbn.kernels import linalg, pooled, separate, work
from poolbn.kernels.elementary import exponential, logarithm, logarithm_above_one
from poolbn.kernels.lanes import LANES, load, store
from poolbn.kernels.work import aligned


def _run(X: np.ndarray, Y: np.ndarray, L: np.ndarray) -> tuple[float, float, float]:
    q = len(L)
    linalg.put(Y, 0, 0, 2.0, X, 1, 0)
    linalg.add(Y, 0, 1, -0.5, X, 0, 1)
    linalg.multiply(Y, 0, 1, X, 1, 1)
    linalg.add_product(Y, 0, 0, 3.0, X, 0, 1, X, 1, 1)
    linalg.add_products(Y, 0, 1, -1.0, X, 0, X, 1, q)
    linalg.combine(Y, 0, q - 1, L, 0, X, 1, 0, q)
    return linalg.dot(X, 0, 1, Y, 0, 1), linalg.sum_of(Y, 0, 0), linalg.dot3(X, X, 0, 1, Y, X, 1)


@pytest.mark.parametrize("F", [LANES, 2 * LANES])
def test_compiled_and_interpreted_vectors_agree(F: int) -> None:
    q = 3
    rng = np.random.default_rng(F)
    one = [rng.normal(size=shape) for shape in ((q, q, F), (1, q, F), (q, q))]
    other = [array.copy() for array in one]
    assert numba.njit(_run)(*one) == pytest.approx(_run(*other), rel=1e-13)
    for array, same in zip(one, other, strict=True):
        np.testing.assert_allclose(array, same, rtol=1e-13)


def _elementary(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(0, x.shape[0], LANES):
        store(out[0], i, exponential(load(x, i)))
        positive = exponential(load(x, i))
        store(out[1], i, logarithm(positive))
        store(out[2], i, logarithm_above_one(positive))


def test_exponentials_and_logarithms() -> None:
    """Close to the C library's, and the same bits without numba."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=800) * 10.0**k for k in range(-6, 3)])
    x = x[: len(x) // LANES * LANES].clip(-700.0, 700.0)
    one, other = np.empty((3, len(x))), np.empty((3, len(x)))
    compiled = numba.njit(_elementary)
    compiled(x, one)
    _elementary(x, other)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one[0], np.exp(x), rtol=4.5e-16)
    np.testing.assert_allclose(one[1], np.log(one[0]), rtol=6e-16)
    np.testing.assert_allclose(one[2], np.log1p(one[0]), rtol=7e-16)
    ends = np.array([-np.inf, -800.0, 0.0, 709.0, 710.0, np.inf, np.nan, 1.0])
    least = np.exp(-708.0)
    expected = [least, least, 1.0, np.exp(709.0), np.inf, np.inf, np.nan, np.e]
    compiled(ends, found := np.empty((3, LANES)))
    np.testing.assert_allclose(found[0], expected, rtol=4.5e-16)


def test_arrays_start_where_vectors_do() -> None:
    for size in (1, 7, 100):
        assert aligned(size).ctypes.data % (8 * LANES) == 0


_compiled = numba.njit(
    eval(f"lambda s: ({', '.join(f'carve(s).{name}' for name in work.Work._fields)})", vars(work))
)


@pytest.mark.parametrize("reml", [False, True])
@pytest.mark.parametrize(("F", "most"), [(1, 1), (3, 4), (17, 3)])
def test_buffers_have_room_for_all_that_is_cut_from_them(F: int, most: int, reml: bool) -> None:
    """Arrays are as large as their fields say, inside the buffer, and apart from each other."""
    (buffer,), (pool,), (apart,) = (
        work.rooms(F, most, reml, of.shapes) for of in (work, pooled, separate)
    )
    for q in range(1, most + 1):
        for r in range(1, q + 1):
            for whole, carve, shapes in (
                (buffer, work.carve, work.shapes),
                (pool, pooled.carve_pool, pooled.shapes),
                (apart, separate.carve_apart, separate.shapes),
            ):
                n = np.ones(F)
                s = work.Space(buffer, whole, np.arange(q), n, n, F, q, r, reml, n)
                cut = carve(s)
                assert [part.shape for part in cut] == shapes(s)
                whole[:] = 0
                for number, part in enumerate(cut, 1):
                    assert not part.any()
                    part[:] = number
                assert np.count_nonzero(whole) == sum(part.size for part in cut)
    compiled, python = _compiled(s), work.carve(s)
    for one, other in zip(compiled, python, strict=True):
        assert one.shape == other.shape
        assert not one.size or one.ctypes.data == other.ctypes.data
