"""Events: what a condition means is what pandas says it means, and no text is ever run."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hostile import NAMES
from hypothesis import example, given
from hypothesis import strategies as st

import poolbn as pb
from poolbn.inference.events import happens

ROWS = pd.DataFrame(
    {
        "F": ["a", "b", "a", "it's"],
        "x": [1.0, 2.0, -1.0, 0.5],
        "y": [3.0, 2.0, 0.0, -2.5],
        "b c": [0.0, 1.0, 2.0, 3.0],
    }
)

numbers = st.one_of(
    st.integers(0, 4).map(str), st.sampled_from(["0.5", "2.", ".25", "1e0", "25e-1", "1E+1"])
)
columns = st.sampled_from(["x", "y", "`b c`"])


def joined(left: st.SearchStrategy[str], signs: list[str]) -> st.SearchStrategy[str]:
    return st.tuples(left, st.sampled_from(signs), left).map(" ".join)


amounts = st.recursive(
    st.one_of(columns, columns, numbers),
    lambda inner: st.one_of(
        joined(inner, ["+", "-", "*"]), inner.map("-({})".format), inner.map("({})".format)
    ),
    max_leaves=4,
)
with_column = st.tuples(columns, st.sampled_from(["+", "-", "*"]), amounts).map(" ".join)
order = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
comparisons = st.one_of(
    st.tuples(st.one_of(columns, with_column), order, amounts).map(" ".join),
    st.tuples(numbers, order, columns, order, amounts).map(" ".join),
    st.tuples(st.just("F"), st.sampled_from(["==", "!="]),
              st.sampled_from(["'a'", '"b"', '"it\'s"', r"'it\'s'", "'z'"])).map(" ".join),
)  # fmt: skip
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        joined(inner, ["and", "or", "&", "|"]),
        inner.map("not {}".format),
        inner.map("~({})".format),
        inner.map("({})".format),
    ),
    max_leaves=6,
)


@given(conditions)
@example("x > 1 & y < 3 | x < 0")
@example("not x > 1 and y < 3")
@example("0 < x <= 2 < `b c` + 2")
@example("-x * 2 + 1 > y - 1 - 1")
def test_conditions_mean_what_pandas_says(event: str) -> None:
    expected = ROWS.eval(event, engine="python")
    np.testing.assert_array_equal(happens(event, ROWS), expected)


pieces = st.sampled_from(
    ["x", "y", "F", "`b c`", "1", "'a'", "(", ")", "and", "or", "not", "~", "-", "<", "==", "&",
     "|", "@",
     ".", "[", "]", "=", "__class__", "lambda", ":", ",", "import", "os", "\\", "'", '"', "`"]
)  # fmt: skip


def attempted(event: str) -> np.ndarray | str:
    """The rows in which an event happens, or the error."""
    try:
        return happens(event, ROWS)
    except pb.OptionError as error:
        return str(error)


@given(st.one_of(st.text(max_size=40), st.lists(pieces, max_size=12).map(" ".join)))
def test_any_text_is_a_condition_or_an_error_of_one_line(event: str) -> None:
    happened = attempted(event)
    if isinstance(happened, str):
        assert len(happened.splitlines()) == 1
    else:
        assert happened.dtype == bool
        assert happened.shape == (len(ROWS),)


@pytest.mark.parametrize(
    "event",
    [
        "@np.f2py.os.system('touch owned') > 5",
        "@pd.io.common.os.system('touch owned') > 5",
        "x.to_csv('owned') == 1",
        "__import__('os').system('touch owned') > 0",
        "x.__class__.__init__.__globals__ == 1",
        "x[@__builtins__] > 1",
        "y = x > 1",
        "sin(x) > 0",
        "x ** 9 > 1",
        "x in [1, 2]",
        "index > 1",
        *NAMES.values(),
    ],
)
def test_nothing_is_run(event: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = ROWS.copy()
    with pytest.raises(pb.OptionError):
        happens(event, ROWS)
    assert list(tmp_path.iterdir()) == []
    pd.testing.assert_frame_equal(ROWS, before)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_every_name_can_be_written(name: str) -> None:
    rows = pd.DataFrame({name: [1.0, 2.0], "F": ["a", name]})
    if name:
        quoted = name.replace("`", "``")
        assert happens(f"`{quoted}` > 1", rows).tolist() == [False, True]
    level = name.replace("\\", "\\\\").replace("'", "\\'")
    assert happens(f"F == '{level}'", rows).tolist() == [False, True]


def test_no_text_is_run_elsewhere() -> None:
    """`eval` reads the shapes of arrays in annotations of kernels; numba compiles functions."""
    runs = re.compile(r"\b(eval|exec|query|compile|__import__)\(|yaml|joblib\.load|read_pickle")
    allowed = {
        "cutting.py": {"eval("},
        "compile_cache.py": {"compile("},
        "events.py": {"compile("},
    }
    folder = Path(pb.__file__).parent
    for path in folder.rglob("*.py"):
        code = "\n".join(
            line for line in path.read_text().splitlines()
            if not line.lstrip().startswith((">>>", "...")) and "re.compile(" not in line
            and "def query(" not in line
        )  # fmt: skip
        found = {match[0] for match in runs.finditer(code)}
        assert found <= allowed.get(path.name, set()), path


def test_errors_say_where_and_what_instead() -> None:
    for event, words in {
        "xx > 1": ("'xx' at character 1", "did you mean 'x'?", "backticks"),
        "x > 1 and": ("the end where a column, a number or a name in quotes should be",),
        "(x > 1": ("the end where a ) for the ( at character 1",),
        "x > 1 y": ("'y' where the end, or a sign",),
        "x = 1": ("'=' at character 3; use ==",),
        "x > 1 and y": ("'and' of numbers", "at character 7"),
        "-F > 1": ("'-' of names of data sets", "at character 1"),
        "x == 'a'": ("'==' between numbers and text",),
        "F < 'b'": ("'<' with names of data sets, which take == and !=",),
        "(x > 1) > 0": ("'>' between a condition and numbers",),
        "1 < 2": ("bool of shape ()",),
        "F": ("of shape (4,)", "True or False"),
        "'a'": ("True or False",),
        "3x > 1": ("'3' at character 1",),
    }.items():
        with pytest.raises(pb.OptionError) as error:
            happens(event, ROWS)
        assert repr(event) in str(error.value)
        assert [word for word in words if word not in str(error.value)] == [], str(error.value)


@pytest.mark.parametrize(
    "event",
    ["(" * 9000 + "x", "not " * 2000 + "x > 1", "-" * 9000 + "x > 1", "~" * 9999,
     "x > 1 and " * 10**6, "'" + "a" * 9000, "`" * 9999, f"x{'y' * 9000} > 1", "x > 1 and " * 1500],
    ids=range(9),
)  # fmt: skip
def test_long_and_deep_events_are_refused_in_few_words(event: str) -> None:
    words = attempted(event)
    assert isinstance(words, str)
    assert len(words) < 1000


def test_long_events_within_bounds_are_read() -> None:
    expected = [False, True, False, False]
    assert happens("x > 1 and " * 1900 + "x > 1", ROWS).tolist() == expected
    assert happens("(" * 40 + "x > 1" + ")" * 40, ROWS).tolist() == expected
    assert not happens("x > " + "9" * 9000, ROWS).any()


def test_data_sets_are_named_as_they_print() -> None:
    def found(labels: list[object], event: str) -> list[bool]:
        return happens(event, pd.DataFrame({"F": labels})).tolist()

    assert found([1, 2], "F == 2") == [False, True]
    assert found([1, "2"], "F == 1") == [True, False]
    assert found([1, "2"], "F != '2'") == [True, False]
    assert found([True, False], "not F") == [False, True]
    assert found([dt.date(2020, 1, 1), "x"], "F == '2020-01-01'") == [True, False]
    days = [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02 03:00")]
    assert found(days, "F == '2020-01-01'") == [True, False]
    assert found(days, "F == '2020-01-02 03:00:00'") == [False, True]
    assert found([("a", 1), ("b", 2)], "F == \"('a', 1)\"") == [True, False]
    assert found([2**53, 2**53 + 1], f"F > {2**53}") == [False, True]
