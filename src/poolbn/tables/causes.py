"""Columns that others do not cause, by their names and values: for `look` to propose as inputs.

Nothing in a table causes a person's sex, the year, or a treatment that was randomised. What was
measured before is no effect of what was measured after. Names are in English, German, French,
Spanish and Italian.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Reason = Literal["sex", "birth", "origin", "age", "time", "treatment"]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Words of a name, in lower case and without accents; and those beside which they mean other things.
_NAMES: dict[Reason, tuple[frozenset[str], frozenset[str]]] = {
    "sex": (
        _set(
            "sex sx gender male female geschlecht weiblich mannlich sexe genre sexo genero sesso "
            "genere"
        ),
        _set("satisfaction ratio"),
    ),
    "birth": (
        _set("born dob yob birthday birthdate birthyear geburtsjahr geburtsdatum geburtstag"),
        _set(""),
    ),
    "origin": (
        _set(
            "race ethnicity ethnic ethnie ethn eth nationality native hispanic caste herkunft "
            "origine etnia raza razza"
        ),
        _set("time day"),
    ),
    "age": (
        _set("age alter edad eta"),
        _set(
            "death died onset diagnosis menarche menopause first event last end stop retirement "
            "marriage weaning"
        ),
    ),
    "time": (
        _set(
            "year yr years calendar calyear date month quarter decade week day days visit wave "
            "occasion session semester period jahr monat woche tag welle annee mois semaine jour "
            "visite periode ano mes semana dia visita anno mese settimana giorno"
        ),
        _set(
            "to until since of per no number num count school sick leave hospital stay lost absent "
            "active survival duration total gestation gestational experience education educ "
            "service seniority last after"
        ),
    ),
    "treatment": (
        _set(
            "treatment treat trt tx arm randomized randomised randomization randomisation "
            "allocation allocated assigned intervention rx placebo dose behandlung traitement "
            "tratamiento intervencion trattamento intervento"
        ),
        _set("time failure cost duration response side effect success"),
    ),
}
_BIRTH = re.compile(
    r"\b(birth|geburts?|naissance|nacimiento|nascita) ?"
    r"(y|yr|year|q|quarter|date|day|month|place|country|cohort|jahr|monat|annee|ano|anno)\b"
)
_YES_OR_NO = _set("black white minority minrty indig indigenous foreign foreigner")
_SEXES = (
    "m f", "male female", "males females", "man woman", "men women", "boy girl", "boys girls",
    "m w", "mannlich weiblich", "mann frau", "homme femme", "masculin feminin", "hombre mujer",
    "masculino femenino", "uomo donna", "maschio femmina",
)  # fmt: skip
_ORIGINS = _set("white black asian hispanic caucasian african latino indigenous")
_COLOURS = _set("red blue green yellow")
_RANDOMISED = _set("placebo plazebo verum treatment treated kontrolle controle sham intervention")
_YEARS = 1800, 2100
_BEFORE = _set("pre pret pretest before baseline initial vorher avant antes prima")
_AFTER = _set("post posttest after final followup nachher apres despues dopo")
_GLUED = re.compile(r"(pre|post)(?=[a-z]{2,})")  # as in prewt
_NUMBERED = re.compile(
    r"(?P<stem>.*?[a-z)])[ _.-]+(?:t|v|w|m|visit|time|week|wk|month|year|yr|day|wave)?[ _.-]?"
    r"(?P<number>\d{1,4})(?:d|w|wk|m|mo|y|yr)?"
)


@dataclass(frozen=True)
class Described:
    """What is known of a column: its name, its levels, and the range of its numbers."""

    name: str
    levels: Sequence[str] = ()
    low: float = math.nan
    high: float = math.nan


def reason(column: Described) -> Reason | None:
    """Why nothing in a table causes a column; None where its name and values do not say.

    Examples:
        >>> [reason(Described(name)) for name in ("Sex", "birth_year", "age", "dosage")]
        ['sex', 'birth', 'age', None]
        >>> reason(Described("patient", levels=["female", "male"]))
        'sex'
    """
    words = _words(column.name)
    return _by_levels({_plain(level).strip() for level in column.levels}) or _by_name(words, column)


def _by_levels(levels: set[str]) -> Reason | None:
    if any(levels == _set(pair) for pair in _SEXES):
        return "sex"
    if len(levels & _ORIGINS) > 1 and not levels & _COLOURS:
        return "origin"
    return "treatment" if len(levels) > 1 and levels & _RANDOMISED else None


def _by_name(words: Sequence[str], column: Described) -> Reason | None:
    if _BIRTH.search(" ".join(words)):
        return "birth"
    if _YES_OR_NO.intersection(words) and (column.levels or (column.low, column.high) == (0, 1)):
        return "origin"
    first, last = _YEARS
    years = first <= column.low <= column.high <= last
    for why, (known, unless) in _NAMES.items():
        found = known.intersection(words) and not unless.intersection(words)
        if found and (why != "time" or len(words) == 1 or years):
            return why
    return None


def _plain(text: str) -> str:
    """In lower case, without accents."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in apart if not unicodedata.combining(c))


def _words(name: str) -> list[str]:
    """Of a name such as ageAtDeath or age_at_death."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=\d)", " ", name)
    return re.findall(r"[a-z]+|\d+", _plain(apart))


def tiers(names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Columns that were measured one after the other, as their names say, the earliest first.

    Examples:
        >>> tiers(["age", "bp_0", "bp_5", "plaque_0", "plaque_5"])
        (('bp_0', 'plaque_0'), ('bp_5', 'plaque_5'))
        >>> tiers(["iq", "langPRE", "langPOST"])
        (('langPRE',), ('langPOST',))
        >>> tiers(["item_1", "item_2", "item_3"])
        ()
    """
    at = {name: when for name in names if (when := _measured(name)) is not None}
    times = sorted({time for time, _ in at.values()})
    stems: dict[str, set[float]] = {}
    for time, stem in at.values():
        stems.setdefault(stem, set()).add(time)
    repeated = {stem for stem, own in stems.items() if len(own) > 1}
    # One column with numbers that begin with 1 may be the items of a questionnaire.
    whole = sum(len(own) == len(times) for own in stems.values())
    if not repeated or not (whole > 1 or times[0] == 0):
        return ()
    found = (
        tuple(name for name, own in at.items() if own[0] == time and own[1] in repeated)
        for time in times
    )
    return tuple(own for own in found if own)


def _measured(name: str) -> tuple[float, str] | None:
    """When, from 0, and what, of names such as bp_0, bpPre or prewt."""
    if match := _NUMBERED.fullmatch(_plain(name)):
        return float(match["number"]), match["stem"]
    words = _words(name)
    if not (_BEFORE | _AFTER).intersection(words):
        words = [part for word in words for part in _GLUED.sub(r"\1 ", word, count=1).split()]
    when = {0.0 if word in _BEFORE else math.inf for word in words if word in _BEFORE | _AFTER}
    stem = " ".join(word for word in words if word not in _BEFORE | _AFTER)
    return (when.pop(), stem) if len(when) == 1 else None
