"""A hostile corpus: names and files that go through every reader, writer and page.

Whatever takes a name or a file works with all of these or raises a `PoolbnError` of one line:
no other exception, no hang, no row lost, and nothing of a name is run or reaches a terminal raw.
"""

from __future__ import annotations

import math
import os
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# Names of columns, data sets and files, as those who make the tables choose them.
NAMES = {
    "bell": "a\x07b",
    "backspace": "safe\x08\x08\x08\x08evil",
    "carriage return": "shown\rhidden",
    "newline": "two\nlines",
    "tab": "a\tb",
    "NUL": "a\x00b",
    "delete": "a\x7fb",
    "C1 control": "a\x9b31mb",
    "line separator": "a\u2028b",
    "red": "\x1b[31mred\x1b[0m",
    "clear screen": "\x1b[2J\x1b[H",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://invalid.test\x1b\\click\x1b]8;;\x1b\\",
    "right to left": "a\u202egnp.exe",
    "isolate": "a\u2066b\u2069c",
    "zero width": "a\u200bb",
    "byte order mark": "\ufeffa",
    "formula": "=HYPERLINK(1)",
    "formula plus": "+1+cmd|' /C calc'!A0",
    "formula minus": "-2+3",
    "formula at": "@SUM(A1)",
    "formula after tab": "\t=1+1",
    "long": "n" * 10_000,
    "empty": "",
    "space": " ",
    "spaces around": " a ",
    "emoji": "👩‍⚕️ clinic",
    "combining": "e\u0301",
    "single quote": "it's",
    "double quote": 'a "b" c',
    "backtick": "`a`",
    "backslash": "a\\nb",
    "percent": "%s %(x)s {0} {x!r}",
    "dollar": "$a $(touch owned)",
    "comma": "a,b;c|d",
    "comment": "# a",
    "markup": "[bold]a[/bold]",
    "html": "<img src=x onerror=alert(1)>",
    "script": "</script><script>alert(1)</script>",
    "template": "{{ 7 * 7 }}{% raw %}",
    "R": '"); system("touch owned"); ("',
    "R backtick": "a` + system('touch owned') + `b",
    "SQL": "'; drop table t; --",
    "pandas": "@np.f2py.os.system('touch owned')",
    "path": "../../etc/passwd",
    "dunder": "__class__",
    "number": "1e309",
    "missing": "NA",
}

_ROWS = b"site,x,y\na,1,2\na,2,1\nb,3,5\nb,4,3\n"

# Bytes of CSV files with the group column `site`: some have so many rows, the others are refused.
CSV_GOOD = {
    "plain": (_ROWS, 4),
    "rows that begin with #": (_ROWS.replace(b"\na,", b"\n#1,"), 4),
    "no newline at the end": (_ROWS.rstrip(), 4),
    "Windows newlines": (_ROWS.replace(b"\n", b"\r\n"), 4),
    "byte order mark": (b"\xef\xbb\xbf" + _ROWS, 4),
    "quoted cells": (_ROWS.replace(b"\na,", b'\n"a, ""1""\n2",'), 4),
    "quote in a cell": (_ROWS.replace(b"\na,", b"\na'b,"), 4),
    "semicolons and commas": (_ROWS.replace(b",", b";").replace(b"a;", b"a,b;"), 4),
    "blank line at the end": (_ROWS + b"\n", 4),
    "old Mac newlines": (_ROWS.replace(b"\n", b"\r"), 4),
    "newline in the header": (_ROWS.replace(b"x", b'"x\n1"'), 4),
    "separator in the header": (_ROWS.replace(b"x", b'"x;1;2;3;4"'), 4),
    "UTF-16": (_ROWS.decode().encode("utf-16"), 4),
    "UTF-16, big-endian": (b"\xfe\xff" + _ROWS.decode().encode("utf-16-be"), 4),
    "decimal commas": (b"site;x,kg;y,cm\na;1,5;2,5\nb;1,5;2,5\n", 2),
    "tabs": (_ROWS.replace(b",", b"\t"), 4),
    "a cell of 1 MB": (_ROWS.replace(b"\na,", b"\n" + b"a" * 1_000_000 + b","), 4),
}
CSV_BAD = {
    "empty": b"",
    "blank first line": b"\n" + _ROWS,
    "blank lines only": b"\n\n\n",
    "header only": b"site,x,y\n",
    "no header": b"1,2,3\n4,5,6\n",
    "comment line": _ROWS + b"# end\n",
    "comment first": b"# made by hand\n" + _ROWS,
    "short row": _ROWS + b"b,1\n",
    "long row": _ROWS + b"b,1,2,3\n",
    "open quote": _ROWS + b'"b,1,2\n',
    "text after a quote": _ROWS + b'"b"c,1,2\n',
    "oversized cell": b"site,x,y\n" + b"a" * 3_000_000 + b",1,2\nb,2,3\n",
    "oversized line of names": b",".join(b"c%d" % k for k in range(300_000)) + b"\n1\n",
    "NUL": _ROWS.replace(b"3", b"3\x00"),
    "only NUL": bytes(10_000),
    "neither UTF-8 nor Latin-1": _ROWS.replace(b"\na", b"\n\x81\x8d"),
    "UTF-8 in some lines": _ROWS.replace(b"\na", b"\n\xfc\xfc", 1).replace(b"\nb", "\nü".encode()),
    "UTF-16 that is cut": _ROWS.decode().encode("utf-16")[:-1],
    "gzip without the ending": b"\x1f\x8b\x08\x00" + bytes(30),
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(99),
    "other separator": _ROWS.replace(b",", b":"),
    "two kinds of newlines": _ROWS.replace(b"2\n", b"2\r\n"),
    "two separators": b"site;x,kg\na;1,NA\n",
    "commas and points": b"site;x;y\na;1,5;2.5\nb;1,5;2.5\n",
    "commas between thousands": b"site;x;y\na;1,500;2\nb;12,500;2\n",
    "too many columns": b",".join(b"c%d" % k for k in range(30_000)) + b"\n" + b"1," * 30_000,
}


# Values that an argument does not expect. What can be read only once is made by a function.
ODD: dict[str, Any] = {
    "no text": "", "text": "no", "escape": "\x1b[31mx", "NUL": "a\x00b", "surrogate": "a\udc80",
    "long": "x" * 100_000, "bytes": b"", "zero": 0, "false": False, "beyond 64 bits": 2**70,
    "beyond floats": 10**400, "far below": -(10**400), "infinity": math.inf, "below": -math.inf,
    "large": 1e308, "small": 1e-320, "complex": 1j, "numpy int": np.int64(3),
    "numpy bool": np.bool_(True), "numpy float": np.float64(0.5), "numpy nan": np.float64("nan"),
    "array": np.array([1.0, 2.0]), "matrix": np.eye(2), "no array": np.array([]),
    "array of no dimension": np.array(3), "objects": np.array([None, "x"], dtype=object),
    "frame": pd.DataFrame({"a": [1]}), "series": pd.Series([1, 2]), "set": {"x"}, "ellipsis": ...,
    "nested": [["x", ["y"]]], "tuples": (("x",),), "twice": ["x", "x"], "range": range(3),
    "negative": [-1], "numbers": (1, 2, 3), "pairs": [("x", "y")], "triples": [("x", "y", "z")],
    "dict": {3: object()}, "dict of dicts": {"x": {"y": 1}}, "dict of nan": {"x": math.nan},
    "dict of large": {"x": 10**400}, "NaT": pd.NaT, "NA": pd.NA, "day": pd.Timestamp("2020"),
    "generator": lambda: (name for name in ["x"]),
}  # fmt: skip


def odd(name: str) -> Any:
    """One of `ODD`."""
    return ODD[name]() if name == "generator" else ODD[name]


def special(folder: Path) -> dict[str, Path]:
    """Things in a folder that have the name of a CSV file and are none; all are refused."""
    fifo, door, loop, gone = (folder / f"{name}.csv" for name in ("fifo", "socket", "loop", "gone"))
    os.mkfifo(fifo)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(door))  # absolute paths of temporary folders are too long
    loop.symlink_to(loop.name)
    gone.symlink_to("nowhere.csv")
    (folder / "folder.csv").mkdir()
    zero = folder / "zero.csv"
    zero.symlink_to("/dev/zero")
    return {
        "FIFO": fifo,
        "socket": door,
        "link to itself": loop,
        "link to nothing": gone,
        "empty folder": folder / "folder.csv",
        "device": zero,
        "device itself": Path("/dev/zero"),
    }
