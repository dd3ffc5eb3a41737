"""Graphs as text: which grammar it is, and what it draws.

Model strings of bnlearn; dagitty and DOT, which are one grammar of statements with arrows; lines of
formulas, as lavaan and R have them; the files BIF and Hugin's .net. What a text says that a network
does not have, such as an arrow with two heads, is refused in words; what does not matter to the
graph, such as positions, is skipped; what a reader might expect to matter is a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple, NoReturn

from poolbn.errors import GraphError, InPython, nearest
from poolbn.graph.pairs import Pair
from poolbn.wording import clipped, listed, shortened

_DEEPEST = 20  # braces inside each other
_MOST = 1_000_000  # arcs of braces with arrows between them
EXAMPLES = "'[age][bmi|age]', 'dag { age -> bmi }' or 'bmi ~ age'"


@dataclass(frozen=True)
class Drawing:
    """What a text, or an object of another program, says of a graph.

    Attributes:
        nodes: the names, in order of first mention.
        arcs: pairs (parent, child).
        edges: pairs without a direction.
        unobserved: nodes that are marked as latent.
        notes: what it says beside, and what became of that.
        complete: whether it names all nodes; formulas and arcs leave out those without arcs.
    """

    nodes: tuple[str, ...]
    arcs: tuple[Pair, ...]
    edges: tuple[Pair, ...] = ()
    unobserved: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    complete: bool = True


def read_text(text: str) -> Drawing:
    """A graph in any of these grammars; what the text begins with says which.

    Examples:
        >>> read_text("dag { age [exposure] -> bmi }").arcs
        (('age', 'bmi'),)
    """
    body = text.lstrip("\ufeff \t\r\n")
    if body[:1] in ("[", ""):
        nodes, arcs = read_modelstring(text)
        return Drawing(tuple(nodes), tuple(arcs))
    start = _without_comments(body, "bif").lstrip()
    if _STATEMENTS.match(start):
        return _Statements(body).read()
    if re.match(r"(network|variable|probability)\b", start):
        return _tables(start, "BIF", _BIF_NODE, "probability")
    if re.match(r"(class\b.*?\{\s*)?(net|((discrete|continuous)\s+)?node)\b", start, re.DOTALL):
        return _tables(_without_comments(body, "net"), "Hugin .net", _NET_NODE, "potential")
    if "~" in text or ":=" in text:
        return _drawn_formulas(read_formulas(text))
    if re.search(r"->|<-|--|@", start):
        return _Statements("dag {" + body + "\n}", shift=5).read()
    raise GraphError(
        f"{_quoted(text)} is no graph that poolbn knows; write it as {EXAMPLES}; ",
        InPython(
            "nodes alone are a list of names, and a file is a pathlib.Path(...)",
            "or name a file that is there",
        ),
    )


def _quoted(text: str) -> str:
    return repr(clipped(text))


def _without_comments(text: str, of: str) -> str:
    """A text with blanks for its comments, so that positions stay."""
    mark = {"bif": r"//[^\n]*|/\*.*?\*/|^[ \t]*\#[^\n]*", "net": r"%[^\n]*"}[of]
    pattern = rf'("(?:[^"\\]|\\.)*")|{mark}'

    def blank(found: re.Match[str]) -> str:
        return found[1] or re.sub(r"[^\n]", " ", found[0])

    return re.sub(pattern, blank, text, flags=re.DOTALL | re.MULTILINE)


# Model strings of bnlearn


def read_modelstring(text: str) -> tuple[list[str], list[Pair]]:
    """Names and arcs of a bnlearn model string such as "[A][B|A][C|A:B]"."""
    names: dict[str, None] = {}
    families: list[tuple[int, str, list[str]]] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        here = f"model string, character {at + 1}"
        if text[at] != "[":
            raise GraphError(f"{here}: expected '[' but found {text[at]!r}; write [A][B|A][C|A:B]")
        end = text.find("]", at)
        body = text[at + 1 : end]
        if end < 0 or "[" in body:
            raise GraphError(f"{here}: this '[' is never closed")
        name, bar, rest = body.partition("|")
        parents = rest.split(":") if bar else []
        if "|" in rest or ":" in name:
            raise GraphError(f"{here}: write one node, one '|' and parents with ':', not [{body}]")
        if not name or "" in parents:
            raise GraphError(f"{here}: a name is empty in [{body}]")
        if name in names:
            raise GraphError(f"{here}: node {name!r} is described a second time")
        names[name] = None
        families.append((at, name, parents))
        at = end + 1
    for at, name, parents in families:
        for parent in parents:
            if parent not in names:
                raise GraphError(
                    f"model string, character {at + 1}: {parent!r}, a parent of {name!r}, "
                    f"has no brackets of its own{nearest(parent, names)}"
                )
    return list(names), [(parent, name) for _, name, parents in families for parent in parents]


# dagitty and DOT

_STATEMENTS = re.compile(
    r"(strict\s+)?(digraph|graph|dag|pdag|mag|pag)\b(\s*(\w+|\"[^\"]*\"))?\s*\{"
)
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/|(?<=\n)[ \t]*\#[^\n]*)
    |(?P<quoted>"(?:[^"\\]|\\.)*")
    |(?P<edge><->|<-@|@->|@-@|@--|--@|->|<-|--)
    |(?P<mark>[{}\[\];,=:])
    |(?P<word>-?(?:\d+\.?\d*|\.\d+)(?![\w.%])|[\w.%]+)""",
    re.VERBOSE | re.DOTALL,
)
_UNESCAPED = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}
_DEFAULTS = ("graph", "node", "edge")
_LATENT = {"latent", "unobserved", "u", "l"}


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


@dataclass
class _Statements:
    """Statements of dagitty or DOT, read from left to right."""

    text: str
    shift: int = 0  # characters that the text has before the user's
    tokens: list[_Token] = field(default_factory=list)
    at: int = 0
    depth: int = 0
    nodes: dict[str, None] = field(default_factory=dict)
    arcs: dict[Pair, None] = field(default_factory=dict)
    edges: dict[Pair, None] = field(default_factory=dict)
    unobserved: dict[str, None] = field(default_factory=dict)

    def read(self) -> Drawing:
        """All of them."""
        self.tokens = self._split()
        while self._next().text != "{":  # what kind of graph it is, and its name
            self.at += 1
        self._group()
        if self._next().text == ";":
            self.at += 1
        if self._next().kind != "end":
            self._wrong("the graph ends before this; give one graph")
        return Drawing(*map(tuple, (self.nodes, self.arcs, self.edges, self.unobserved)))  # type: ignore[arg-type]

    def _split(self) -> list[_Token]:
        found, at = list[_Token](), 0
        while at < len(self.text):
            token = _TOKEN.match(self.text, at)
            if token is None:
                mark = self.text[at]
                if mark == '"':
                    why = "this quote is never closed"
                elif mark == "<":
                    why = "expected an arrow -> or <-; names in <...> are not read"
                else:
                    why = (
                        f"{mark!r} belongs to no name; names with other characters than letters, "
                        "digits, '_' and '.' go in double quotes"
                    )
                self._wrong(why, at)
            assert token.lastgroup is not None
            if token.lastgroup != "space":
                found.append(_Token(token.lastgroup, token[0], at))
            at = token.end()
        return [*found, _Token("end", "", at)]

    def _wrong(self, why: str, at: int | None = None) -> NoReturn:
        here = self._next().at if at is None else at
        line = self.text.count("\n", 0, here) + 1
        column = here - self.text.rfind("\n", 0, here) - (self.shift if line == 1 else 0)
        raise GraphError(f"the graph's text, line {line}, character {column}: {why}")

    def _next(self) -> _Token:
        return self.tokens[min(self.at, len(self.tokens) - 1)]

    def _take(self) -> _Token:
        token = self._next()
        self.at += 1
        return token

    def _group(self) -> list[str]:
        """Statements in braces; the nodes that they name."""
        self.at += 1
        self.depth += 1
        if self.depth > _DEEPEST:
            self._wrong(f"more than {_DEEPEST} braces are inside each other")
        named: dict[str, None] = {}
        while (token := self._next()).text != "}" or token.kind == "quoted":
            if token.kind == "end":
                self._wrong("a '}' is missing at the end")
            if token.kind == "mark" and token.text in ";,":
                self.at += 1
                continue
            named |= dict.fromkeys(self._statement())
        self.at += 1
        self.depth -= 1
        return list(named)

    def _statement(self) -> list[str]:
        token, after = self._next(), self.tokens[self.at + 1 : self.at + 2]
        follows = after[0].text if after else ""
        if token.kind == "word" and token.text in _DEFAULTS and follows == "[":
            self.at += 1
            self._attributes()
            return []
        if token.kind in ("word", "quoted") and follows == "=":  # of the graph, such as bb="0,0"
            self.at += 2
            self._value()
            return []
        chain, marks, attributes = [self._end()], list[_Token](), self._attributes()
        self._mark(chain[0], attributes)
        while self._next().kind == "edge":
            marks.append(self._take())
            chain.append(self._end())
            # In dagitty and DOT those of the arrows; that a node is latent can only be the node's.
            attributes = self._attributes()
            self._mark(chain[-1], attributes)
        for before, mark, behind in zip(chain, marks, chain[1:], strict=False):
            self._join(before, mark, behind, attributes.get("dir", ""))
        return [name for names in chain for name in names]

    def _mark(self, nodes: list[str], attributes: Mapping[str, str]) -> None:
        if _LATENT & {name.lower() for name in attributes}:
            self.unobserved |= dict.fromkeys(nodes)

    def _end(self) -> list[str]:
        """A name, or the names in braces."""
        token = self._next()
        if token.kind == "word" and token.text == "subgraph":
            self.at += 1
            if self._next().kind in ("word", "quoted"):
                self.at += 1
            token = self._next()
            if token.text != "{":
                self._wrong("after subgraph and its name, '{' is expected")
        if token.kind == "mark" and token.text == "{":
            return self._group()
        if token.kind not in ("word", "quoted"):
            found = "the end" if token.kind == "end" else repr(token.text)
            self._wrong(f"a name is expected, and this is {found}")
        name = self._value()
        while self._next().text == ":" and self._next().kind == "mark":  # a port of DOT
            self.at += 1
            self._value()
        if not name:
            self._wrong("this name is empty", token.at)
        self.nodes[name] = None
        return [name]

    def _value(self) -> str:
        token = self._next()
        if token.kind not in ("word", "quoted"):
            self._wrong("a name or a value is expected")
        self.at += 1
        if token.kind == "word":
            return token.text
        return re.sub(r'\\["\\n]', lambda found: _UNESCAPED[found[0]], token.text[1:-1])

    def _attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while self._next().text == "[" and self._next().kind == "mark":
            self.at += 1
            while not ((token := self._next()).kind == "mark" and token.text == "]"):
                if token.kind == "mark" and token.text in ",;":
                    self.at += 1
                    continue
                name = self._value()
                found[name] = ""
                if self._next().text == "=" and self._next().kind == "mark":
                    self.at += 1
                    found[name] = self._value()
            self.at += 1
        return found

    def _join(self, before: list[str], mark: _Token, behind: list[str], direction: str) -> None:
        if mark.text == "<->" or (direction == "both" and mark.text != "--"):
            a, b = before[:1], behind[:1]
            raise GraphError(
                f"{''.join(a)} <-> {''.join(b)} says that something unobserved is a cause of both, "
                "which a network cannot hold; give an arc if one is a cause of the other, leave it "
                "out, or measure the common cause and make it a node"
            )
        if "@" in mark.text:
            self._wrong(
                f"{mark.text} is an edge of a PAG, whose ends are not known; give one graph of "
                "those that it stands for",
                mark.at,
            )
        if len(before) * len(behind) > _MOST:
            self._wrong("these braces make too many arcs", mark.at)
        pairs = product(before, behind)
        if mark.text == "--" or direction == "none":
            self.edges |= dict.fromkeys(pairs)
        elif (mark.text == "<-") != (direction == "back"):
            self.arcs |= dict.fromkeys((b, a) for a, b in pairs)
        else:
            self.arcs |= dict.fromkeys(pairs)


# BIF and Hugin's .net

_NAME = r'("(?:[^"\\]|\\.)*"|[^\s(){}|,;"]+)'
_BIF_NODE = re.compile(rf"\bvariable\s+{_NAME}\s*\{{")
_NET_NODE = re.compile(rf"\b(?:(?:discrete|continuous)\s+)?node\s+{_NAME}\s*\{{")


def _tables(text: str, what: str, node: re.Pattern[str], table: str) -> Drawing:
    """A file that declares its nodes, and has one table for each that names its parents."""
    if other := re.search(r"^\s*(decision|utility|function)\s+\w+\s*\{", text, re.MULTILINE):
        raise GraphError(
            f"the {what} file has a {other[1]} node; poolbn has networks of chance nodes alone"
        )
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    if bare.count("{") != bare.count("}"):
        raise GraphError(f"the {what} file has a brace without its other half; is it cut short?")
    nodes = [_unquoted(found) for found in node.findall(text)]
    if not nodes:
        raise GraphError(f"the {what} file declares no node")
    if len(set(nodes)) < len(nodes):
        twice = next(name for name in nodes if nodes.count(name) > 1)
        raise GraphError(f"the {what} file declares {twice!r} twice")
    arcs, seen = list[Pair](), set[str]()
    for inside in re.findall(rf"\b{table}\s*\(([^)]*)\)", text):
        names = [_unquoted(name) for name in re.findall(_NAME, inside)]
        for name in names:
            if name not in nodes:
                raise GraphError(
                    f"the {what} file has a {table} of {name!r}, which it does not declare"
                    f"{nearest(name, nodes)}"
                )
        if not names or names[0] in seen:
            of = f"two of {names[0]!r}" if names else "one without a name"
            raise GraphError(f"the {what} file has a {table} too many: {of}")
        seen.add(names[0])
        arcs += [(parent, names[0]) for parent in names[1:]]
    if lacking := [name for name in nodes if name not in seen]:
        raise GraphError(
            f"the {what} file has no {table} of {shortened(lacking)}, which says what the parents "
            "are; is it cut short?"
        )
    return Drawing(tuple(nodes), tuple(arcs))


def _unquoted(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name


# Formulas


class Formula(NamedTuple):
    """One line: the children, their parents, and random effects as (columns, group)."""

    children: tuple[str, ...]
    parents: tuple[str, ...]
    random: tuple[tuple[tuple[str, ...], str], ...] = ()
    notes: tuple[str, ...] = ()


_SYMBOL = re.compile(
    r"""(?P<space>\s+)
    |(?P<quoted>`[^`]+`|"[^"]+")
    |(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)
    |(?P<word>[^\W\d][\w.]*|\.[^\W\d][\w.]*|\.)
    |(?P<mark>=~|<~|~~|%~~%|:=|==|\|\||%in%|[~+\-*:()|^/,<>=])""",
    re.VERBOSE,
)
_REFUSED = {
    "=~": "{line} measures a latent variable, which a network does not have; make a column of it, "
    "such as the mean of its indicators",
    "<~": "{line} is a composite; make a column of it",
    "~~": "{line} correlates the errors of two variables: something unobserved is a cause of both, "
    "which a network cannot hold; give an arc if one is a cause of the other, or leave the line "
    "out",
    "|": "{line} gives thresholds, which poolbn estimates; leave the line out",
}
_SKIPPED = {
    ":=": "{line} defines a quantity, which does not matter to the graph; net.total_effects() "
    "gives indirect effects",
    "==": "{line} constrains coefficients; poolbn estimates all of them without constraints",
    "<": "{line} constrains coefficients; poolbn estimates all of them without constraints",
    ">": "{line} constrains coefficients; poolbn estimates all of them without constraints",
}


def read_formulas(text: str) -> list[Formula]:
    """Lines such as "y ~ x + z", as lavaan and R have them.

    Examples:
        >>> read_formulas("y ~ x + z  # the outcome")[0].parents
        ('x', 'z')
        >>> read_formulas("y ~ x + (1 + x | clinic)")[0].random
        ((('1', 'x'), 'clinic'),)
    """
    found = [_formula(line) for line in _lines(text)]
    if not any(formula.children for formula in found):
        raise GraphError(f"{_quoted(text)} has no formula such as 'bmi ~ age'")
    plain = {n for formula in found for n in (*formula.children, *formula.parents)}
    for formula in found:
        for note in formula.notes:
            label, star, _ = note.partition("*")
            if star and label in plain:
                raise GraphError(
                    f"{note} is an interaction in R, and a coefficient called {label!r} in lavaan; "
                    f"as {label!r} is a node here, make a column of the product, or call the "
                    "coefficient something else"
                )
    return found


def _lines(text: str) -> list[list[_Token]]:
    """The symbols of each formula; a line goes on inside brackets, and after and before marks."""
    lines, current, depth = list[list[_Token]](), list[_Token](), 0
    for number, line in enumerate(re.split(r"[\n\r]", text), start=1):
        symbols, cut = _symbols(line, number)
        opens = symbols[0].text if symbols else ""
        goes_on = depth > 0 or (current and current[-1].text in ("+", "~", "*"))
        if not goes_on and current and opens not in ("+", "*", "~"):
            lines.append(current)
            current = []
        current += symbols
        depth += sum((s.text == "(") - (s.text == ")") for s in symbols)
        for more in cut:
            lines.append(current)
            current, depth = more, 0
    return [line for line in [*lines, current] if line]


def _symbols(line: str, number: int) -> tuple[list[_Token], list[list[_Token]]]:
    """The symbols of a line without its comment, and of what follows each semicolon."""
    parts, at = [list[_Token]()], 0
    while at < len(line) and line[at] not in "#!":
        if line[at] == ";":
            parts.append([])
            at += 1
            continue
        found = _SYMBOL.match(line, at)
        if found is None:
            raise GraphError(
                f"the formulas, line {number}, character {at + 1}: {line[at]!r} belongs to no "
                "formula; names with other characters than letters, digits, '_' and '.' go in "
                "backticks"
            )
        assert found.lastgroup is not None
        if found.lastgroup != "space":
            parts[-1].append(_Token(found.lastgroup, found[0], at))
        at = found.end()
    return parts[0], parts[1:]


def _said(symbols: Sequence[_Token]) -> str:
    """A formula as it is written."""
    text = " ".join(symbol.text for symbol in symbols)
    return _quoted(re.sub(r"\( | (?=\))", lambda found: found[0].strip(), text))


def _formula(line: Sequence[_Token]) -> Formula:
    """One line; without children where it does not matter to the graph."""
    marks = [symbol.text for symbol in line if symbol.kind == "mark"]
    if line[0].text in ("level", "group") and marks[:1] == [":"]:
        raise GraphError(
            f"{_said(line)} begins a block of lavaan; poolbn has one graph for all data sets: give "
            "the formulas of one block, and the column with the data sets as group"
        )
    at = next((k for k, s in enumerate(line) if s.text in ("~", *_REFUSED, *_SKIPPED, "%~~%")), -1)
    if at < 0:
        raise GraphError(f"{_said(line)} is no formula; write child ~ parent + parent")
    left, mark, right = line[:at], line[at].text, line[at + 1 :]
    if mark in _SKIPPED:
        return Formula((), (), notes=(_SKIPPED[mark].format(line=_said(line)),))
    if mark in ("~~", "%~~%"):
        if _only_variance(left, right):
            return Formula((_child(line, left),), ())
        mark = "~~"
    if mark in _REFUSED:
        raise GraphError(_REFUSED[mark].format(line=_said(line)))
    if any(symbol.text in ("~", "~~", "=~") for symbol in right):
        raise GraphError(f"{_said(line)} has more than one '~'; write one formula on each line")
    children = [_child(line, part) for part in _parted(left)]
    parents, random, notes = list[str](), list[tuple[tuple[str, ...], str]](), list[str]()
    for part in _parted(right):
        if not part:
            raise GraphError(f"{_said(line)} lacks a parent; for a node without write child ~ 1")
        if part[0].text == "(" and any(symbol.text in ("|", "||") for symbol in part):
            random.append(_random(line, part))
            continue
        name, note = _parent(line, part)
        parents += [name] if name else []
        notes += [note] if note else []
    return Formula(tuple(children), tuple(dict.fromkeys(parents)), tuple(random), tuple(notes))


def _only_variance(left: Sequence[_Token], right: Sequence[_Token]) -> bool:
    """Whether `x ~~ x` is the variance of one variable, fixed or not."""
    return bool(left and right) and len(left) == 1 and right[-1].text == left[0].text


def _parted(symbols: Sequence[_Token]) -> list[list[_Token]]:
    """The parts between + that are not in brackets."""
    parts, depth = [list[_Token]()], 0
    for symbol in symbols:
        depth += (symbol.text == "(") - (symbol.text == ")")
        if symbol.text == "+" and depth == 0:
            parts.append([])
        else:
            parts[-1].append(symbol)
    return parts


def _name(symbol: _Token) -> str:
    return symbol.text[1:-1] if symbol.kind == "quoted" else symbol.text


def _child(line: Sequence[_Token], part: Sequence[_Token]) -> str:
    if len(part) == 1 and part[0].kind in ("word", "quoted") and part[0].text != ".":
        return _name(part[0])
    raise GraphError(
        f"{_said(line)} should have the name of a column before '~'; make a column of what is "
        "computed"
    )


def _parent(line: Sequence[_Token], part: Sequence[_Token]) -> tuple[str, str]:
    """A parent and a note on what stands before it; "" for an intercept."""
    last, said = part[-1], _said(line)
    if len(part) == 1 and last.kind == "number":
        if float(last.text) == 1:
            return "", ""
        raise GraphError(
            f"{said} has {last.text} for a parent; all models have intercepts: leave it out"
        )
    if last.text == ".":
        raise GraphError(f"{said} has '.' for all columns; name the parents")
    if last.kind in ("word", "quoted"):
        if len(part) == 1:
            return _name(last), ""
        if part[-2].text == "*" and _is_modifier(part[:-2]):
            if part[0].kind == "word" and len(part) == 3:
                return _name(last), f"{part[0].text}*{_name(last)}"
            what = _said(part).strip("'\"")
            return _name(
                last
            ), f"{what}: the modifier is not used; poolbn estimates the coefficient"
    marks = {symbol.text for symbol in part}
    if marks & {":", "*", "^", "/", "%in%"}:
        raise GraphError(
            f"{said} has an interaction, which arcs cannot say; make a column of the product, or "
            "learn with data sets for the levels"
        )
    if "-" in marks:
        raise GraphError(f"{said} takes a term away; name the parents that there are")
    if "(" in marks and part[0].kind == "word":
        raise GraphError(
            f"{said} has a function of a column; add a column with {_said(part)} to the table, "
            "and use its name"
        )
    raise GraphError(f"{said} has {_said(part)} for a parent; write child ~ parent + parent")


def _is_modifier(part: Sequence[_Token]) -> bool:
    """Whether it is a number, a label or a call, which lavaan has before *."""
    call = len(part) > 2 and part[0].kind == "word" and part[1].text == "("
    return (len(part) == 1 and part[0].kind != "mark") or (call and part[-1].text == ")")


def _random(line: Sequence[_Token], part: Sequence[_Token]) -> tuple[tuple[str, ...], str]:
    """Columns with random effects and their group, of (1 + x | clinic)."""
    inner = part[1:-1]
    bar = [k for k, symbol in enumerate(inner) if symbol.text in ("|", "||")]
    group = inner[bar[0] + 1 :]
    if part[-1].text != ")" or len(bar) != 1 or inner[bar[0]].text == "||" or len(group) != 1:
        raise GraphError(
            f"{_said(part)} in {_said(line)} is no random effect that poolbn has; write "
            "(1 | clinic) or (1 + x | clinic)"
        )
    columns = []
    for each in _parted(inner[: bar[0]]):
        if len(each) != 1 or each[0].kind == "mark":
            raise GraphError(
                f"{_said(part)} in {_said(line)} should name columns: (1 + x | clinic)"
            )
        columns.append(_name(each[0]))
    return tuple(columns), _name(group[0])


def _drawn_formulas(formulas: Iterable[Formula]) -> Drawing:
    """The graph of formulas, with notes."""
    nodes, arcs = dict[str, None](), dict[Pair, None]()
    groups, labels, notes = dict[str, None](), dict[str, None](), list[str]()
    for children, parents, random, said in formulas:
        nodes |= dict.fromkeys((*children, *parents))
        arcs |= dict.fromkeys(product(parents, children))
        groups |= dict.fromkeys(group for _, group in random)
        for note in said:
            if "*" in note and " " not in note:
                labels[note] = None
            else:
                notes.append(note)
    if groups:
        notes.append(
            f"random effects of {listed(list(groups))} are not a part of the graph; group and "
            "pooling say what varies between data sets"
        )
    if labels:
        notes.append(f"labels of coefficients are not used: {shortened(list(labels))}")
    return Drawing(tuple(nodes), tuple(arcs), notes=tuple(notes), complete=False)


# Writing


def write_dagitty(nodes: Iterable[str], arcs: Iterable[Pair], marks: Mapping[str, str]) -> str:
    """The text that dagitty reads, with marks such as "exposure" of some nodes."""
    names = {name: _dagitty_name(name) for name in nodes}
    lines = [f"{name} [{marks[node]}]" if node in marks else name for node, name in names.items()]
    lines += [f"{names[parent]} -> {names[child]}" for parent, child in arcs]
    return "\n".join(["dag {", *(f"  {line}" for line in lines), "}"]) + "\n"


def _dagitty_name(name: str) -> str:
    # A name that is a number, or a word of the grammar, goes in quotes too.
    if re.fullmatch(r"[^\W\d]\w*(\.\w+)*", name) and name not in (*_DEFAULTS, "subgraph"):
        return name
    if re.search(r'["\\\n]', name):
        raise GraphError(
            f"node {name!r} contains a quote, a backslash or the end of a line, which dagitty "
            "cannot hold; rename it, or use to_dot()"
        )
    return f'"{name}"'


def write_lavaan(parents: Mapping[str, Sequence[str]]) -> str:
    """A formula for each node that has parents, and of the others those that are nobody's parent.

    lavaan names a variable without arcs by its variance.
    """
    for name in parents:
        if not re.fullmatch(r"[^\W\d_][\w.]*", name):
            raise GraphError(
                f"node {name!r} is no name of lavaan, which has letters, digits, '_' and '.'; "
                "rename it, or use to_dagitty()"
            )
    used = {name for own in parents.values() for name in own}
    lines = []
    for name, own in parents.items():
        if own:
            lines.append(f"{name} ~ {' + '.join(own)}")
        elif name not in used:
            lines.append(f"{name} ~~ {name}")
    return "\n".join(lines) + "\n"
