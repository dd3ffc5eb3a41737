"""Packages that take long to load: each is loaded when something of it is used first."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["jinja2", "markupsafe", "optimize", "pandas", "special"]

if TYPE_CHECKING:
    import jinja2
    import markupsafe
    import pandas
    from scipy import optimize, special
else:

    class Later:
        """A module that is not loaded yet."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __reduce__(self) -> tuple[Any, ...]:  # to other processes
            return Later, (self._name,)

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self._name), name)

    jinja2, markupsafe, pandas = map(Later, ("jinja2", "markupsafe", "pandas"))
    optimize, special = Later("scipy.optimize"), Later("scipy.special")
