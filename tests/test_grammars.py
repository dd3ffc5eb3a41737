"""Graphs as text: grammars are read, what a network cannot hold is refused in words."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_graph import dags

import poolbn as pb
from poolbn import Dag
from poolbn.graph.dag import as_dag
from poolbn.graph.grammars import read_formulas, read_text

# The example of Shrier and Platt (2008), in the layout in which dagitty's page writes it.
SHRIER = """dag {
bb="-0.5,-0.5,0.5,0.5"
Coach [pos="0.12,-0.4"]
"Connective Tissue Disorder" [pos="0.3,-0.2"]
Contact_Sport [pos="-0.3,0.1"]
"Fitness Level" [pos="0.1,-0.3"]
Genetics [pos="0.4,-0.4"]
Injury [outcome,pos="0.1,0.4"]
"Intra-game Proprioception" [pos="-0.1,0.3"]
"Neuromuscular Fatigue" [pos="0.1,-0.1"]
"Pre-game Proprioception" [pos="-0.1,-0.2"]
"Previous Injury" [pos="-0.3,-0.1"]
"Team Motivation" [pos="-0.2,-0.3"]
"Tissue Weakness" [pos="0.3,0.1"]
"Warm Up Exercises" [exposure,pos="-0.2,0.2"]
Coach -> "Fitness Level"
Coach -> "Team Motivation"
"Connective Tissue Disorder" -> "Neuromuscular Fatigue"
"Connective Tissue Disorder" -> "Tissue Weakness"
Contact_Sport -> "Intra-game Proprioception"
Contact_Sport -> "Previous Injury"
"Fitness Level" -> "Neuromuscular Fatigue"
"Fitness Level" -> "Pre-game Proprioception"
Genetics -> "Connective Tissue Disorder"
Genetics -> "Fitness Level"
Genetics -> "Neuromuscular Fatigue"
"Intra-game Proprioception" -> Injury
"Neuromuscular Fatigue" -> "Intra-game Proprioception"
"Pre-game Proprioception" -> "Warm Up Exercises"
"Team Motivation" -> "Previous Injury"
"Team Motivation" -> "Warm Up Exercises"
"Tissue Weakness" -> Injury
"Warm Up Exercises" -> "Intra-game Proprioception"
}
"""
BIF = """// written by bnlearn
network unknown {
}
variable asia {
  type discrete [ 2 ] { no, yes };
}
variable tub {
  type discrete [ 2 ] { no, yes };
}
probability ( asia ) {
  table 0.99, 0.01;
}
probability ( tub | asia ) {
  (no) 0.99, 0.01;  /* { */
  (yes) 0.95, 0.05;
}
"""
PYAGRUM = """network "unnamedBN" {
// written by aGrUM 1.15
}
variable a {
   type discrete[2] {0, 1};
}
variable b {
   type discrete[2] {0, 1};
}
probability (b) {
   default 0.5 0.5;
}
probability (a | b) {
   (0) 0.5 0.5;
   (1) 0.1 0.9;
}
"""
HUGIN = """net
{
  node_size = (80 40);
}
% a comment with a {
node asia
{
  states = ("yes" "no");
}
continuous node dose { }
potential ( asia ) { data = ( 0.01 0.99 ); }
potential ( dose | asia )
{
  data = ( normal(0, 1) normal(1, 1) );
}
"""
HOLZINGER = """
# mediation, as lavaan's tutorial has it
Y ~ c*X   # direct
M ~ a*X
Y ~ b*M
ab := a*b
total := c + (a*b)
"""
# The text, its arcs as "parent > child", and the nodes without arcs.
READ = {
    "bnlearn": ("[A][B|A][C|A:B]", "A > B, A > C, B > C", ""),
    "dagitty, Shrier": (SHRIER, None, ""),
    "dagitty, the M graph": (
        "dag { A [pos=\"0,0\"] ; E [exposure]; D [outcome] A -> {E Z} B -> {Z D} E -> D }",
        "A > E, A > Z, B > Z, B > D, E > D",
        "",
    ),
    "dagitty, chains both ways": ("dag{x->y<-z;z <- w}", "x > y, z > y, w > z", ""),
    "dagitty, its older head": ('dag "my model" {\n a\n b\n a -> b [beta=".3"] }', "a > b", ""),
    "dagitty, marks in a chain": ("dag { x [exposure] -> {a b} -> y [outcome] }",
                                  "x > a, x > b, a > y, b > y", ""),
    "arrows alone": ("x -> y\ny -> z", "x > y, y > z", ""),
    "DOT": (
        '/* */ strict digraph "G" {\n# a line\nrankdir=LR; node [shape=box, label="->"];\n'
        'a -> b [label="b -> a"]; b:s -> c:n; subgraph cluster_0 { d; e } -> f; g [dir=x]\n'
        "h -> i [dir=back] }",
        "a > b, b > c, d > f, e > f, i > h",
        "g",
    ),
    "lavaan": (HOLZINGER, "X > Y, X > M, M > Y", ""),
    "lavaan, lines that go on": ("y1 + y2 ~ x +\n  z\nw ~ 1; v ~ y1\n  + y2\ny1 ~~ y1",
                                 "x > y1, z > y1, x > y2, z > y2, y1 > v, y2 > v", "w"),
    "R": ("`the y` ~ 1 + x + (1 + x | clinic)  ! a comment", "x > the y", ""),
    "BIF of bnlearn": (BIF, "asia > tub", ""),
    "BIF of pyAgrum": (PYAGRUM, "b > a", ""),
    "Hugin": (HUGIN, "asia > dose", ""),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::poolbn.GraphWarning")
@pytest.mark.parametrize("name", READ)
def test_grammars_are_read(name: str) -> None:
    text, arcs, alone = READ[name]
    found = Dag.from_string(text)
    assert found == Dag(text)
    if arcs is None:
        assert (len(found.nodes), len(found.arcs)) == (13, 18)
        # What Shrier and Platt say is enough to adjust for.
        assert found.is_adjustment_set(
            "Warm Up Exercises", "Injury", ["Neuromuscular Fatigue", "Tissue Weakness"]
        )
        return
    pairs = [tuple(arc.split(" > ")) for arc in arcs.split(", ")]
    nodes = dict.fromkeys([*(name for pair in pairs for name in pair), *alone.split()])
    assert found == Dag(list(nodes), pairs)


REFUSED = {
    "dag { a <-> b }": "a <-> b says that something unobserved is a cause of both",
    "digraph { a -> b [dir=both] }": "a <-> b says that something unobserved",
    "dag { a @-> b }": "line 1, character 9: @-> is an edge of a PAG",
    "dag {\n a -> }": "line 2, character 7: a name is expected, and this is '}'",
    "dag { a - b }": "'-' belongs to no name; names with other characters",
    'dag { "a -> b }': "this quote is never closed",
    "dag { a -> b": "a '}' is missing at the end",
    "dag { a -> b } c": "the graph ends before this",
    "digraph { a -> <b> }": "names in <...> are not read",
    "dag {" + "{" * 30: "more than 20 braces are inside each other",
    'dag { "" -> a }': "this name is empty",
    "a -> -> b": "line 1, character 6: a name is expected, and this is '->'",
    "dag { a -> b -> a }": "cycle: a -> b -> a",
    "dag { a -> a }": "joins a node to itself",
    "x ~~ y": "'x ~~ y' correlates the errors of two variables",
    "x %~~% y": "correlates the errors",
    "f =~ x + y": "measures a latent variable",
    "f <~ x + y": "is a composite",
    "y ~ x\ny | t1": "thresholds",
    "level: 1\ny ~ x": "begins a block of lavaan",
    "y ~ x:z": "has an interaction",
    "y ~ x*z\nx ~ z": "an interaction in R, and a coefficient called 'x' in lavaan",
    "y ~ log(x)": "a function of a column",
    "log(y) ~ x": "the name of a column before '~'",
    "y ~ .": "'.' for all columns",
    "y ~ 0 + x": "has 0 for a parent; all models have intercepts",
    "y ~ x - 1": "takes a term away",
    "y ~": "lacks a parent; for a node without write child ~ 1",
    "y ~ x +": "lacks a parent",
    "y ~ x ~ z": "more than one '~'",
    "y ~ (1 | a/b)": "no random effect that poolbn has",
    "y ~ (x || a)": "no random effect that poolbn has",
    "y ~ (x:z | a)": "should name columns",
    "y ~ (x": "for a parent",
    "ab := a*b": "no formula such as",
    "y ~ a\x00": "belongs to no formula",
    "hello": "no graph that poolbn knows; write it as '[age][bmi|age]'",
    BIF[:-4]: "a brace without its other half; is it cut short?",
    BIF[: BIF.index("probability ( tub")]: "no probability of tub",
    BIF.replace("| asia", "| Asia"): "a probability of 'Asia', which it does not declare; did you",
    BIF + "probability ( tub ) { }": "a probability too many: two of 'tub'",
    BIF.replace("variable tub", "variable asia"): "declares 'asia' twice",
    HUGIN + "utility u { }": "has a utility node",
    "net { }": "declares no node",
}  # fmt: skip


@pytest.mark.parametrize(("text", "fragment"), REFUSED.items(), ids=map(repr, range(len(REFUSED))))
def test_what_a_network_cannot_hold_is_refused(text: str, fragment: str) -> None:
    with pytest.raises(pb.GraphError) as caught:
        Dag.from_string(text)
    assert fragment in str(caught.value)


def test_what_is_not_used_is_noted() -> None:
    def notes(text: str) -> str:
        with pytest.warns(pb.GraphWarning) as told:
            Dag.from_string(text)
        return "; ".join(str(each.message) for each in told)

    assert "labels of coefficients are not used: a*x" in notes("y ~ a*x")
    assert "0.5 * x: the modifier is not used" in notes("y ~ 0.5*x")
    assert "start(1) * x" in notes("y ~ start(1)*x").replace("start (1)", "start(1)")
    assert "constrains coefficients" in notes("y ~ a*x\na == 1")
    assert "random effects of clinic are not a part of the graph" in notes("y ~ x + (1 | clinic)")
    assert "1 edge of the graph had no direction, and got" in notes("pdag { a -- b }")


def test_edges_without_a_direction_get_one_without_a_new_v_structure() -> None:
    dag = Dag("[a][b|a][c|b][d][e|c:d]")
    with pytest.warns(pb.GraphWarning, match="2 edges of the graph had no direction"):
        found = as_dag(dag.cpdag(), dag.nodes)
    assert found.cpdag() == dag.cpdag()
    with pytest.warns(pb.GraphWarning):
        assert Dag(dag.cpdag().to_dot()).cpdag() == dag.cpdag()
    with pytest.raises(pb.GraphError, match="a, b, c, d"):
        Dag("graph { a -- b -- c -- d -- a }")
    with pytest.raises(pb.GraphError, match="joined twice"):
        Dag("pdag { a -- b; a -> b }")


def test_random_effects_of_formulas_are_read() -> None:
    (found,) = read_formulas("y ~ x + z + (1 + x | clinic)")
    assert found.parents == ("x", "z")
    assert found.random == ((("1", "x"), "clinic"),)


def test_latent_nodes_are_known() -> None:
    assert read_text("dag { u [latent] {u v [unobserved]} -> x }").unobserved == ("u", "v")
    assert read_text("dag { x -> u [latent] }").unobserved == ("u",)


# Round trips

_LETTERS = st.text(st.characters(categories=["L", "Nd"]), min_size=1, max_size=8)


@given(dags(names=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)))
def test_dot_and_dagitty_are_read_again(dag: Dag) -> None:
    assert Dag.from_string(dag.to_dot()) == dag
    try:
        text = dag.to_dagitty()
    except pb.GraphError:
        assert any(set(name) & set('"\\\n') for name in dag.nodes)
        return
    assert Dag.from_string(text) == dag


@given(dags(names=_LETTERS.map(lambda name: f"v{name}")))
def test_lavaan_is_read_again(dag: Dag) -> None:
    assert Dag.from_string(dag.to_lavaan()) == dag


def test_names_that_other_programs_cannot_hold_are_named() -> None:
    with pytest.raises(pb.GraphError, match=r"dagitty cannot hold; rename it, or use to_dot\(\)"):
        Dag(['a"b']).to_dagitty()
    with pytest.raises(pb.GraphError, match=r"no name of lavaan.*use to_dagitty\(\)"):
        Dag(["a b"]).to_lavaan()
    with pytest.raises(pb.GraphError, match="no node is called 'b'"):
        Dag(["a"]).to_dagitty(outcome="b")


def test_dagitty_knows_what_is_asked() -> None:
    text = Dag("[x][y|x]").to_dagitty("x", "y")
    assert re.sub(r"\s+", " ", text) == "dag { x [exposure] y [outcome] x -> y } "


# Hostile texts

_PIECES = [*'[]{}|:;,=~+*-<>@"`()#!%/\\\n .01', "->", "<-", "<->", "--", "~~", "=~", ":=", "dag {",
           "digraph {", "net {", "node a {", "variable a {", "probability ( a | b ) {", "subgraph",
           "(1 | a)", "a", "b", "é", "\x00", "\ud800", "`a b`", '"a b"', "[latent]", "[dir=both]",
           "potential", "level: 1"]  # fmt: skip


def broken(number: int) -> str:
    """A text that was a graph, with a few changes."""
    rng = random.Random(number)
    text = rng.choice([text for text, *_ in READ.values()])
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice([*_PIECES, ""]) + text[at + rng.choice([0, 0, 1, 3, 40]) :]
    return text


def said(text: str) -> str:
    """What is said of a text, or the graph that it is."""
    try:
        return repr(Dag.from_string(text))
    except pb.GraphError as error:
        return str(error)


@pytest.mark.filterwarnings("ignore::poolbn.GraphWarning")
@pytest.mark.parametrize("number", range(30))
def test_damaged_texts_are_read_or_refused(number: int) -> None:
    """Ten of them at a time: nothing but a graph or an error in words."""
    assert all(len(said(broken(10 * number + k))) > 8 for k in range(10))


@pytest.mark.filterwarnings("ignore::poolbn.GraphWarning")
@settings(max_examples=300)
@given(st.lists(st.sampled_from(_PIECES) | st.text(max_size=3), max_size=12).map("".join))
def test_hostile_texts_are_read_or_refused(text: str) -> None:
    assert len(said(text)) > 6


def test_a_list_of_formulas_is_a_graph() -> None:
    found = as_dag(["y ~ x", "x ~ z"], "xyz")
    assert found == Dag("[z][x|z][y|x]")
    assert as_dag({"y": ["x"], "x": "z"}, "xyz") == found
