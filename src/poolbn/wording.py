"""Names, counts and numbers as sentences and tables for people have them."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

# No result is as large in a unit that makes sense: such numbers come from a fit that went wrong.
BEYOND = 1e12


_IRREGULAR = {"child": "children", "man": "men", "mouse": "mice", "person": "people"}
# Columns that say that there are groups, and not what these are.
_NO_NOUNS = {
    "cluster", "data", "dataset", "domain", "factor", "group", "index", "key", "label", "part",
    "row", "share",
}  # fmt: skip


class Noun(NamedTuple):
    """What data sets are called in sentences: of one, and of many."""

    one: str
    many: str

    @property
    def a(self) -> str:
        """One, with its article.

        Examples:
            >>> Noun("clinic", "clinics").a, Noun("office", "offices").a, Noun("unit", "units").a
            ('a clinic', 'an office', 'a unit')
        """
        vowel = self.one[0] in "aeiou" and not self.one.startswith(("uni", "use", "eu", "one"))
        return f"a{'n' * vowel} {self.one}"

    def said(self, text: str) -> str:
        """A sentence about data sets with this word for them; names in quotes stay as they are.

        Examples:
            >>> Noun("island", "islands").said("a data set of few rows: data set 'data set 1'")
            "an island of few rows: island 'data set 1'"
        """
        if self == DATA_SET:
            return text
        words = {"a data set": self.a, "data set": self.one, "data sets": self.many}
        return _SETS.sub(lambda found: words.get(found[0], found[0]), text)


DATA_SET = Noun("data set", "data sets")
_SETS = re.compile(r"(?<!\w)'[^']*'|\b(?:a )?data set\b|\bdata sets\b")
# What follows the word in the name of a column of numbers or codes, as in school_id or schoolNR.
_CODE = re.compile(r"(.{3,}?)(?:[ _.-](?i:id|no|nr|number|code|name)|(?<=[a-z])(?:ID|Id|NR|Nr|No))")


def plural(word: str) -> str:
    """A noun for more than one.

    Examples:
        >>> [plural(word) for word in ("clinic", "city", "batch", "day", "person", "data set")]
        ['clinics', 'cities', 'batches', 'days', 'people', 'data sets']
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}{'es' if word.endswith(('s', 'x', 'z', 'ch', 'sh')) else 's'}"


def noun_of(column: str) -> Noun:
    """What a group column calls its data sets, if its name is a plain word for one of them.

    Examples:
        >>> noun_of("Clinic"), noun_of("school_id").many, noun_of("F").one
        (Noun(one='clinic', many='clinics'), 'schools', 'data set')
    """
    code = _CODE.fullmatch(column)
    column = code[1] if code else column
    word = column.lower() if column.isupper() or column.istitle() else column
    plain = word.isascii() and word.isalpha() and word.islower() and 3 <= len(word) <= 20
    many = word.endswith("s") and not word.endswith(("ss", "us"))
    return Noun(word, plural(word)) if plain and not many and word not in _NO_NOUNS else DATA_SET


def counted(count: int, what: str | Noun) -> str:
    """A number and a noun.

    Examples:
        >>> counted(1, "arc"), counted(1200, "row"), counted(3, noun_of("city"))
        ('1 arc', '1,200 rows', '3 cities')
    """
    one, many = (what, plural(what)) if isinstance(what, str) else what
    return f"{count:,} {one if count == 1 else many}"


def listed(words: Sequence[str], most: int = 8) -> str:
    """Words in a sentence; where there are many, the last ones are only counted.

    Examples:
        >>> listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], most=2)
        ('a, b and c', 'a, b and 2 more')
    """
    if len(words) > most:
        words = [*words[:most], f"{len(words) - most:,} more"]
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def shortened(words: Collection[str], most: int = 12, what: str = "") -> str:
    """Words with commas; where there are many, the first ones and how many there are.

    Examples:
        >>> shortened(["a", "b"]), shortened(["a", "b", "c"], most=2, what="columns ")
        ('a, b', 'a, b, ... (3 columns in all)')
    """
    more = f", ... ({len(words)} {what}in all)" if len(words) > most else ""
    return ", ".join(islice(words, most)) + more


def clipped(text: str, length: int = 40) -> str:
    """A text of at most this length, its middle left out where it is longer.

    Examples:
        >>> clipped("gestation_days", 9)
        'gest…days'
    """
    if len(text) <= length:
        return text
    half = (length - 1) // 2
    return f"{text[: length - 1 - half]}…{text[-half:]}"


def visible(text: str, keep: str = "") -> str:
    r"""A text for a terminal: what does not print as itself is shown as Python writes it.

    That is control characters, and those that turn or hide what stands beside them; those to `keep`
    are our own.

    Examples:
        >>> print(visible("\x1b[31mred\u202e"), visible("体重 ü"))
        \x1b[31mred\u202e 体重 ü
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


# A URL in a text; where it is quoted, up to the quote that ends it.
_SCHEME = r"[a-z][a-z0-9+.-]*://"
_QUOTED = "|".join(rf"(?<={q}){_SCHEME}(?:\\.|[^{q}\\])*" for q in "'\"")
_URL = re.compile(rf"{_QUOTED}|{_SCHEME}\S*", re.I | re.S)
_SECRETS = re.compile(r"(://)[^/?#]*@|\?.+", re.S)


def without_secrets(text: str) -> str:
    """A text in which URLs have no user, password or query: tokens stand there.

    Examples:
        >>> without_secrets("cannot read 'https://me:pw@example.org/t.csv?sig=abc': gone")
        "cannot read 'https://example.org/t.csv?...': gone"
    """
    if "://" not in text:
        return text

    def bare(part: re.Match[str]) -> str:
        return part[1] or "?..."

    return _URL.sub(lambda url: _SECRETS.sub(bare, url[0]), text)


def guarded(cell: object) -> object:
    """A cell of a CSV file; a text that spreadsheets would run has an apostrophe before it.

    Examples:
        >>> guarded("=1+1"), guarded("-5"), guarded(-5.0), guarded("age")
        ("'=1+1", '-5', -5.0, 'age')
    """
    if not isinstance(cell, str):
        return cell
    seen = next((c for c in cell if c.isprintable() and not c.isspace()), "")
    if not (seen and seen in "=+-@＝＋－＠") and cell[:1] not in ("\t", "\r", "\n"):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def csv_text(table: pd.DataFrame, *, index: bool = False, form: str | None = None) -> str:
    """A table as CSV; texts are guarded, numbers stay numbers, not whole ones in this form."""
    safe = (table.reset_index() if index else table).copy(deep=False)
    for k, kind in enumerate(safe.dtypes):
        if kind.kind not in "biuf":
            safe.isetitem(k, [guarded(cell) for cell in safe.iloc[:, k]])
    safe.columns = [guarded(name) for name in safe.columns]
    text = safe.to_csv(index=False, float_format=form, lineterminator="\n")
    if "\r" not in text:
        return text
    # Python leaves this one without quotes, and what stands behind it would begin a line.
    return safe.to_csv(index=False, float_format=form, lineterminator="\n", quoting=csv.QUOTE_ALL)


def sensible(value: float) -> bool:
    """Whether a number is a result: finite, and not beyond sense.

    Examples:
        >>> sensible(-1e6), sensible(float("nan")), sensible(-8.6e25)
        (True, False, False)
    """
    return abs(value) < BEYOND


def sure(value: float, error: float) -> str:
    """A number with the digits that are sure: to the second digit of its standard error.

    Examples:
        >>> sure(24.15371, 0.6912), sure(-0.00012, 0.0345), sure(123456.7, 2345), sure(3.14159, 0)
        ('24.15', '0.000', '123500', '3.142')
    """
    if not (sensible(value) and 0 < error < BEYOND):
        return figure(value)
    decimals = 1 - math.floor(math.log10(float(f"{error:.1e}")))
    rounded = round(value, decimals) + 0.0  # not -0
    return f"{rounded:.{max(0, decimals)}f}"


def figure(value: float, form: str = ".4g") -> str:
    """A number in a table for people, "-" where it is no result.

    Examples:
        >>> figure(0.123456), figure(float("-inf")), figure(1.00099921476597e14)
        ('0.1235', '-', '-')
    """
    return f"{value:{form}}" if sensible(value) else "-"
