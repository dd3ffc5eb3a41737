"""Levels whose words have an order, such as low, middle and high: for `look` to suggest."""

from __future__ import annotations

import re
from collections.abc import Sequence

# From the lowest to the highest; words of one rank are between bars.
_SCALES = tuple(
    tuple(rank.split("|") for rank in scale.split(", "))
    for scale in (
        "none|no|absent, minimal|trace, very mild, mild|light|slight, moderate|medium, "
        "severe|heavy|marked, very severe, extreme|critical",
        "very low|lowest, low|lower, medium low|lower middle|low middle, "
        "medium|middle|mid|intermediate|moderate|average|normal, "
        "medium high|upper middle|high middle, high|higher|upper, very high|highest",
        "xxs, xs|tiny|very small, s|small, m|medium|middle, l|large|big, xl|very large|huge, xxl",
        "terrible|very poor|very bad, poor|bad, fair|acceptable|so so, satisfactory|average, good, "
        "very good, excellent|outstanding",
        "never, almost never|hardly ever, rarely|seldom, occasionally, sometimes, "
        "often|frequently, very often|usually|mostly, almost always, always",
        "strongly disagree|disagree strongly|completely disagree, disagree, "
        "somewhat disagree|slightly disagree, neutral|undecided|unsure|neither|"
        "neither agree nor disagree, somewhat agree|slightly agree, agree, "
        "strongly agree|agree strongly|completely agree",
        "very dissatisfied, dissatisfied, neutral|neither, satisfied, very satisfied",
        "very unlikely, unlikely, neutral|possible, likely, very likely",
        "not at all, a little|slightly, somewhat|a bit, quite a bit|moderately, a lot|very much|"
        "very, extremely",
        "much worse, worse|somewhat worse, same|unchanged|no change|stable, "
        "better|improved|somewhat better, much better",
        "primary, secondary, tertiary",
        "first, second, third, fourth, fifth",
    )
)
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
_NUMBERED = re.compile(
    rf"(stage|grade|level|class|degree|tier|asa|nyha|figo|ecog|g|t|n)? ?"
    rf"({'|'.join(_ROMAN)}|\d{{1,2}}) ?([a-d]?)"
)
_FEWEST = 3  # two levels have an order in any case


def likely_order(levels: Sequence[str]) -> tuple[str, ...]:
    """The levels from the lowest to the highest, if their words have an order; else none.

    Examples:
        >>> likely_order(["high", "low", "middle"])
        ('low', 'middle', 'high')
        >>> likely_order(["Stage I", "Stage III", "Stage II"])
        ('Stage I', 'Stage II', 'Stage III')
        >>> likely_order(["blue", "low", "middle"])
        ()
    """
    if len(levels) < _FEWEST:
        return ()
    words = [re.sub(r"[\s_-]+", " ", level).strip().casefold() for level in levels]
    for ranks in (*(_ranks(words, scale) for scale in _SCALES), _numbers(words)):
        if ranks is not None and len(set(ranks)) == len(levels):
            pairs = zip(ranks, levels, strict=True)
            return tuple(level for _, level in sorted(pairs))
    return ()


def _ranks(words: Sequence[str], scale: Sequence[Sequence[str]]) -> list[tuple[int, str]] | None:
    """The ranks of words on a scale; None where it does not have all."""
    rank = {word: k for k, alike in enumerate(scale) for word in alike}
    return [(rank[word], "") for word in words] if all(word in rank for word in words) else None


def _numbers(words: Sequence[str]) -> list[tuple[int, str]] | None:
    """Those of levels such as II, stage 2 or G2b; None where some are others."""
    found = [match for word in words if (match := _NUMBERED.fullmatch(word)) is not None]
    plain = {match[1] for match in found}
    if len(found) < len(words) or len(plain) > 1:
        return None
    numbers = [match[2] for match in found]
    roman = all(number in _ROMAN for number in numbers)
    if not roman and (plain == {None} or not all(map(str.isdigit, numbers))):
        return None
    value = [_ROMAN.index(number) + 1 if roman else int(number) for number in numbers]
    return [(k, match[3]) for k, match in zip(value, found, strict=True)]
