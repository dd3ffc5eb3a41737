"""How results that people look at are shown: by modules that are below this one.

A network can be drawn and reported on, and shows a picture in a notebook. Drawings and reports
import networks, so networks cannot import them. Here is only what is asked for. The module that may
import everything, `poolbn/__init__.py`, says with `shown_by` which function shows what, and that
function is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import Any

_SHOWN_BY: dict[str, str] = {}


def shown_by(**functions: str) -> None:
    """Say which functions show things: full names, such as plot="poolbn.plots.network"."""
    _SHOWN_BY.update(functions)


def present(what: str, *given: Any, **options: Any) -> Any:
    """Call the function that shows something."""
    module, _, function = _SHOWN_BY[what].rpartition(".")
    return getattr(import_module(module), function)(*given, **options)


class Presented:
    """What shows itself."""

    def plot(self, *, strengths: Any = None, ax: Any = None) -> Any:
        """Draw the network with matplotlib, as `pb.plots.network` does.

        Args:
            strengths: from `pb.bootstrap`, to show how sure the arcs are.
            ax: where to draw; by default on a new figure.

        Returns:
            The matplotlib Axes.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> ax = pb.learn(trial, group="clinic").plot()
            >>> [text.get_text() for text in ax.texts]
            ['age', 'bmi']
        """
        return present("plot", self, strengths=strengths, ax=ax)

    def report(self, path: str | PathLike[str], **options: Any) -> None:
        """Write a report as one HTML file, as `pb.report` does.

        Args:
            path: the file to write.
            options: the options of `pb.report`, such as `data=`.

        Examples:
            >>> import poolbn as pb
            >>> import tempfile
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     pb.learn(trial, group="clinic").report(f"{folder}/report.html")
        """
        present("report", self, path, **options)

    def _repr_html_(self) -> str:
        return str(present("notebook", self))
