"""Numbers and names as figures and reports show them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace

from poolbn.assess.estimates import Estimates
from poolbn.wording import clipped, sensible


def number(value: float | None) -> str:
    """Four digits, and never fewer than those before the point."""
    if value is None or not sensible(value):
        return "–"
    large = 1000 <= abs(value) < 1e7
    return (f"{value:,.0f}" if large else f"{value:.4g}").replace("-", "−")


def p_value(p: float | None) -> str:
    """A p-value to three decimals."""
    if p is None or math.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def percent(share: float) -> str:
    """A share, without 0% and 100% where it is neither."""
    if 0 < share < 0.005:
        return "< 1%"
    return "> 99%" if 0.995 <= share < 1 else f"{100 * share:.0f}%"


def arrow(parent: str, child: str, *, directed: bool = True) -> str:
    """An arc, or a pair of nodes."""
    return f"{parent} {'→' if directed else '–'} {child}"


def what(found: Estimates, length: int = 40) -> str:
    """What estimates are of, with names of at most this length."""
    child = clipped(found.child, length)
    if found.parent is None:
        return f"residual SD of {child}"
    parent = clipped(found.parent, length)
    change = f"for {parent} {instead(found)}" if found.level else f"per unit of {parent}"
    return f"{_scale(found, child)} {change}"


def what_all(found: Estimates, length: int = 40) -> str:
    """What the estimates of an arc with several effects are of, whatever the level."""
    child, parent = clipped(found.child, length), clipped(str(found.parent), length)
    per = "of" if found.level else "per unit of"
    return f"{_scale(replace(found, outcome=''), child)} {per} {parent}"


def _scale(found: Estimates, child: str) -> str:
    """The scale of an effect, and on what."""
    if not found.is_ratio:
        return f"change of {child}"
    return f"{found.scale} of {child}{f' = {found.outcome}' * bool(found.outcome)}"


def instead(found: Estimates) -> str:
    """The level of a discrete parent, and the one that it is compared with."""
    return f"{found.level} instead of {found.base}" if found.level else ""


def term_name(found: Estimates) -> str:
    """Which of the effects of an arc estimates are: levels of the parent and of the child."""
    said = [instead(found)]
    if len(found.outcomes) > 2:
        said.append(f"{found.child} {found.outcome} instead of {found.outcomes[0]}")
    return ", ".join(filter(None, said))


def wrapped(name: str, width: int) -> list[str]:
    """A name in lines of about equal length, broken after spaces and signs, or else anywhere."""
    width = max(width, -(-len(name) // 4))
    pieces = [
        piece[i : i + width]
        for piece in re.findall(r"[^\s_.:/-]*[\s_.:/-]*", name)
        for i in range(0, len(piece.rstrip()), width)
    ]
    lines = _filled(pieces, width)
    for narrower in range(width - 1, 0, -1):
        even = _filled(pieces, narrower)
        if len(even) > len(lines):
            break
        lines = even
    return lines


def _filled(pieces: Iterable[str], width: int) -> list[str]:
    """Lines of at most this width, or of one piece."""
    lines = [""]
    for piece in pieces:
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.strip() for line in lines]
