"""Statistics of files that were read before, kept in a folder: a run that was stopped goes on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable

from poolbn.constants import VERSION
from poolbn.errors import FileError
from poolbn.moments.statsfile import Fields, read_file, write_file
from poolbn.tables.data import Reading
from poolbn.tables.paths import identity


class Checkpoint:
    """A folder that keeps the statistics of each file, whole or not at all.

    A file is known by its path, size and time of change, by how it is read, and by the version of
    poolbn. What has changed is read again.

    Attributes:
        folder: where statistics are kept; it is made if it is not there.
        taken: files whose statistics were there.
        made: files that were read.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.path.expanduser(os.fspath(folder))
        self.taken = self.made = 0
        try:
            os.makedirs(self.folder, exist_ok=True)
        except (OSError, ValueError) as error:  # ValueError: NUL in a name
            raise FileError(
                f"cannot keep a checkpoint in {self.folder!r}: {getattr(error, 'strerror', error)}"
            ) from error

    def fields(self, reading: Reading, make: Callable[[], Fields]) -> Fields:
        """The statistics of a single file: from the folder, or made and kept.

        Args:
            reading: of that file.
            make: reads it.
        """
        path = os.path.join(self.folder, f"{self._key(reading)}.stats")
        try:
            found = read_file(path, least=0)
        except FileError:  # not there; or damaged, and then it is made again
            write_file(path, make())
            found = read_file(path, least=0)  # as it will be found another time
            self.made += 1
        else:
            self.taken += 1
        return found

    @staticmethod
    def _key(reading: Reading) -> str:
        (part,) = reading.parts
        how = (reading.names, reading.group, reading.missing, part.keys, VERSION)
        text = json.dumps([identity(str(part.path)), how])
        return hashlib.sha256(text.encode()).hexdigest()[:32]
