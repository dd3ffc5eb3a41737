"""How results that people look at are shown: by modules that are below this one.

A network can be drawn and reported on, and shows a picture in a notebook. Drawings and reports
import networks, so networks cannot import them: what shows a network is loaded with its first use.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import Any


def present(function: str, *given: Any, **options: Any) -> Any:
    """Call a function that shows something, such as "plots.network"."""
    module, _, name = function.rpartition(".")
    return getattr(import_module(f"poolbn.{module}"), name)(*given, **options)


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
        return present("plots.network", self, strengths=strengths, ax=ax)

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
        present("page.reporting.report", self, path, **options)

    def _repr_html_(self) -> str:
        return str(present("page.notebook.shown", self))
