"""The numba kernels. Nothing here allocates or holds a Python object; entry points are cached."""
