"""Files of other statistics programs, read into memory: Stata, SPSS, SAS, R, Excel.

Values that have labels become levels where all that occur have one. Empty texts are missing values
in Stata, SPSS and SAS, which have no others for texts. C libraries read in a process of their own,
since a damaged file can end it.
"""

from __future__ import annotations

import os
import sys
import warnings
import zipfile
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from poolbn.errors import DataError, MissingPackageError
from poolbn.run.parallel import end_with
from poolbn.tables.databases import chosen_table
from poolbn.tables.sources import Part, first_line, pandas_part, with_names

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 2 << 30  # of such a file, which is held in memory
MOST_CELLS = 50_000_000  # of a sheet, empty ones too: they are all held in memory
MOST_XML = 100 << 20  # bytes in a workbook, of which some 1 MB is read in a second


def foreign_part(
    path: str, shown: str, kind: str, table: str | None, name: Hashable, origin: str
) -> Part:
    """The part that a file of another program is, or the object or sheet in it that is named."""
    try:
        _check_size(path, shown, kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other programs' ways with files
            found = _READERS[kind](path, shown, table)
    except (DataError, MissingPackageError):
        raise
    except MemoryError as error:
        raise DataError(
            f"{shown!r} does not fit into memory, or is damaged; turn it into Parquet or CSV"
        ) from error
    except Exception as error:  # each library has its own
        raise DataError(
            f"{shown!r} cannot be read as a file of {kind}: it is damaged, cut short, or of "
            f"another kind ({first_line(error)}); save it anew, or save it as CSV"
        ) from error

    def named(label: Any) -> Any:  # a data set: these programs have whole numbers as floats, too
        return int(label) if isinstance(label, float) and label.is_integer() else label

    return replace(with_names(pandas_part(found, name, origin), named), path=path)


def _check_size(path: str, shown: str, kind: str) -> None:
    size = os.path.getsize(path)
    if size > MOST_BYTES:
        raise DataError(
            f"{shown!r} has {size / 2**30:.1f} GB, and {kind} files are read into memory, up to "
            f"{MOST_BYTES >> 30} GB; turn it into Parquet or CSV, which are streamed"
        )
    if kind == "Excel" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as book:
            inside = sum(entry.file_size for entry in book.infolist())
        if inside > MOST_XML:
            raise DataError(
                f"{shown!r} has {inside >> 20:,} MB when it is unpacked, and workbooks are read up "
                f"to {MOST_XML >> 20} MB, which takes minutes; save its sheet as CSV, which is "
                "streamed"
            )


def _check_package(name: str, shown: str) -> None:
    if find_spec(name) is None:
        raise MissingPackageError(
            f"reading {shown!r} needs the package {name}; pip install 'poolbn[formats]' brings it, "
            "or save the rows as CSV"
        )


def _apart(package: str, reader: str, path: str, shown: str) -> Any:
    """What a function of a package makes of a file, in a process of its own."""
    _check_package(package, shown)
    helper = _helper(os.getpid())
    reading = helper.submit(_read, package, reader, os.path.abspath(path), sys.path)
    try:
        return reading.result()
    except ValueError:  # what the package says
        raise
    except BaseException as error:
        _helper.cache_clear()
        helper.shutdown(kill_workers=True)
        if not isinstance(error, BrokenProcessPool):
            raise
        raise DataError(
            f"{shown!r} is damaged: what reads it, {package}, ended without a word; save it anew, "
            "or save it as CSV"
        ) from None


@cache
def _helper(process: int) -> Any:
    """A process that reads one file after the other, and ends with this one."""
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(1, initializer=end_with, initargs=(process,))


def _read(package: str, reader: str, path: str, known: list[str]) -> Any:
    """In such a process."""
    sys.path[:] = known
    out = os.dup(1)
    try:
        with open(os.devnull, "w") as nothing, warnings.catch_warnings():
            os.dup2(nothing.fileno(), 1)  # a library may print
            warnings.simplefilter("ignore")
            found = getattr(import_module(package), reader)(path)
    except Exception as error:  # each library has its own, which may not pickle
        raise ValueError(first_line(error)) from None
    finally:
        os.dup2(out, 1)
        os.close(out)
    # Of pyreadstat a table, and what is known of it.
    return (found[0], found[1].variable_value_labels) if isinstance(found, tuple) else found


def _stata(path: str, shown: str, table: str | None) -> pd.DataFrame:
    import pandas as pd

    try:
        found = pd.read_stata(path)
    except ValueError as error:
        if "not unique" not in str(error):
            raise
        found = pd.read_stata(path, convert_categoricals=False)  # two values have the same label
    half = [
        str(c)
        for c, kind in found.dtypes.items()
        if isinstance(kind, pd.CategoricalDtype)
        and not all(isinstance(label, str) for label in kind.categories)
    ]
    if half:  # values without a label: a scale with words at its ends, or codes among numbers
        found[half] = pd.read_stata(path, columns=half, convert_categoricals=False)
    return _without_empty(found)


def _spss_or_sas(path: str, shown: str, table: str | None) -> pd.DataFrame:
    ending = path.lower().rpartition(".")[2]
    reader = {"xpt": "read_xport", "sas7bdat": "read_sas7bdat"}.get(ending, "read_sav")
    found, labels = _apart("pyreadstat", reader, path, shown)
    return _without_empty(_labelled(found, labels) if reader == "read_sav" else found)


def _r(path: str, shown: str, table: str | None) -> pd.DataFrame:
    found = _apart("pyreadr", "read_r", path, shown)
    if list(found) == [None]:
        if table is not None:
            raise DataError(f"{shown!r} holds one table without a name; leave out '::{table}'")
        made = found[None]
    else:
        made = found[chosen_table(shown, table, list(found), "data frame")]
    return _in_order(cast("pd.DataFrame", made))


def _in_order(found: pd.DataFrame) -> pd.DataFrame:
    """With factors as ordered: pyreadr does not say which are, and the order of levels is R's."""
    import pandas as pd

    for name, kind in found.dtypes.items():
        if isinstance(kind, pd.CategoricalDtype):
            found[name] = found[name].cat.as_ordered()
    return found


def _excel(path: str, shown: str, table: str | None) -> pd.DataFrame:
    import pandas as pd

    _check_package("openpyxl", shown)
    with pd.ExcelFile(path, engine="openpyxl") as book:
        sheet = chosen_table(shown, table, [str(name) for name in book.sheet_names], "sheet")
        size = book.book[sheet]
        cells = (size.max_row or 0) * (size.max_column or 0)
        if cells > MOST_CELLS:
            raise DataError(
                f"sheet {sheet!r} of {shown!r} goes to row {size.max_row:,} and column "
                f"{size.max_column:,}, {cells:,} cells in all, of which {MOST_CELLS:,} are read; "
                "delete cells that stand far from the others, or save it as CSV"
            )
        found = book.parse(sheet, keep_default_na=False, na_values=["", "NA"])
    if found.empty:
        raise DataError(
            f"sheet {sheet!r} of {shown!r} has no rows below its first line, which names columns"
        )
    return found


_READERS: Mapping[str, Callable[[str, str, str | None], Any]] = {
    "Stata": _stata,
    "SPSS": _spss_or_sas,
    "SAS": _spss_or_sas,
    "R": _r,
    "Excel": _excel,
}


def _labelled(found: pd.DataFrame, labels: Mapping[str, Mapping[Any, str]]) -> pd.DataFrame:
    """With levels for values, in columns where all values that occur have labels of their own."""
    import pandas as pd

    for name, meaning in labels.items():
        own = found[name].dropna()
        used = [code for code in sorted(meaning) if (own == code).any()]
        words = [str(meaning[code]) for code in used]
        if own.isin(used).all() and used and len(set(words)) == len(words):
            kind = pd.CategoricalDtype(words, ordered=True)  # by the values that they stand for
            found[name] = found[name].map(dict(zip(used, words, strict=True))).astype(kind)
    return found


def _without_empty(found: pd.DataFrame) -> pd.DataFrame:
    """With empty texts as missing values."""
    import pandas as pd

    for name, kind in found.dtypes.items():
        if pd.api.types.is_object_dtype(kind) or pd.api.types.is_string_dtype(kind):
            found[name] = found[name].mask(found[name].astype(str).str.strip() == "")
    return found
