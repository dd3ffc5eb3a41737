"""Prints the lower bounds of pyproject.toml as constraints for pip: `make lowest` tests with them.

numpy>=1.26 becomes numpy==1.26.*: the oldest minor version that is promised, with its last fixes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

EXTRAS = ("graphs", "formats", "sklearn", "dask")


def bounds(text: str) -> Iterator[str]:
    """A constraint for each dependency that a user may install, from the text of pyproject.toml."""
    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"]
    for needed in [*project["dependencies"], *(each for name in EXTRAS for each in extras[name])]:
        name, version = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", needed).groups()  # type: ignore[union-attr]
        yield f"{name}=={version}{'' if version.count('.') == 2 else '.*'}"


if __name__ == "__main__":
    print("\n".join(bounds(Path("pyproject.toml").read_text(encoding="utf-8"))))
