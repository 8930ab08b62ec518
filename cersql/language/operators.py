"""The operators of patterns: each word and sign of one stands here, and nowhere else.

    p UNLESS q, p ∧ q     between its operands             infix
    NOT p, !p             before its operand               prefix
    p AS x, p FILTER c    behind its operand               postfix
    SEQ(p, q)             a call with a list of patterns   list
    STRICT(p), ITER(p, 2) a call with one pattern          call
    PROJECT(x : p)        a call with a heading and one    call

The lexer of patterns, the tree, clauses (which words are no names), parameters (what ends a FILTER), the hints of
errors and the shell's completion read this table. So a new operator is a line here, a rule in grammar.lark if none has
its terminal, and what it means: a case in cersql/binding/to_cel.py, and from there on in planner and runtime.

All infix operators are one node of the tree, Combination, which holds the word: they differ in meaning, not in shape,
and the one fact about them that the tree must know, `excludes`, stands here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Form = Literal["infix", "prefix", "postfix", "list", "call"]


@dataclass(frozen=True)
class Heading:
    """What stands before the pattern of a call, up to a `mark`: `x, y` of PROJECT(x, y : p).

    `terminal`: of the heading, in grammar.lark; `expected`: what an error asks for where nothing stands (None: nothing
    may stand there).
    """

    terminal: str
    mark: str
    example: str
    expected: str | None = None


@dataclass(frozen=True)
class Operator:
    """One way to write an operator; ALL has two, `p ALL q` and `ALL(p, q)`.

    `terminal`: what grammar.lark calls it. `means`: the infix operator that a list stands for, `ANY(p, q)` is p OR q.
    `in_conditions`: SQL has the word as well, so it ends no condition. `excludes`: only its first operand happens.
    `in_front_of_list`: what to write for `AND(p, q)`. `offered`: the shell completes it.
    """

    word: str
    form: Form
    terminal: str
    signs: tuple[str, ...] = ()
    means: str = ""
    heading: Heading | None = None
    in_conditions: bool = False
    excludes: bool = False
    in_front_of_list: str | None = None
    offered: bool = True


OPERATORS = (
    Operator(
        "OR", "infix", "OR", signs=("∨",), in_conditions=True,
        in_front_of_list="One of several: ANY(A a, B b), or A a OR B b.",
    ),
    Operator(
        "AND", "infix", "AND", signs=("∧",), in_conditions=True,
        in_front_of_list="Both, in any order: ALL(A a, B b). The same events: A x AND B x.",
    ),
    Operator("ALL", "infix", "ALL"),
    Operator("UNLESS", "infix", "UNLESS", excludes=True),
    Operator("NOT", "prefix", "NOT", signs=("!", "¬"), in_conditions=True),
    Operator("SEQ", "list", "SEQ"),
    Operator("NSEQ", "list", "NSEQ"),
    Operator("ITER", "call", "ITER"),
    Operator("ALL", "list", "LIST", means="ALL"),
    Operator("ANY", "list", "LIST", means="OR"),
    Operator("START", "call", "FUNCTION"),
    Operator("STRICT", "call", "FUNCTION"),
    Operator("NXT", "call", "FUNCTION"),
    Operator("LAST", "call", "FUNCTION"),
    Operator("MAX", "call", "FUNCTION"),
    Operator("NEXT", "call", "FUNCTION"),
    Operator("PROJECT", "call", "PROJECT", heading=Heading("TARGETS", ":", "PROJECT(x, y : pattern)")),
    Operator(
        "AGG", "call", "AGG",
        heading=Heading("ASSIGNMENTS", ";", "AGG(y : n = COUNT(x) ; pattern)", "y : name = aggregate, …"),
    ),
    Operator("FILTER", "postfix", "_FILTER"),
    Operator("AS", "postfix", "_AS"),
    Operator("PART BY", "postfix", "_PART_BY", offered=False),
)  # fmt: skip

INFIX = {operator.word: operator for operator in OPERATORS if operator.form == "infix"}
CALLS = {operator.word: operator for operator in OPERATORS if operator.form in ("list", "call")}
SIGNS = {sign: operator for operator in OPERATORS for sign in operator.signs}

_BEHIND = [operator for operator in OPERATORS if operator.form in ("infix", "postfix")]

RESERVED = frozenset(operator.word.split()[0] for operator in _BEHIND)
"""The first words of what stands behind an operand: no names, but in back-ticks."""

ONLY_INFIX = INFIX.keys() - CALLS.keys()
"""What stands before one of these is an operand, whatever word it is: `Limit UNLESS B`."""

ENDS_FILTER = frozenset(operator.word.split()[0] for operator in _BEHIND if not operator.in_conditions)
"""What begins with one of these goes on with the pattern, behind `p FILTER condition`."""

EASILY_MISSPELT = tuple(operator.word for operator in _BEHIND if len(operator.word.split()[0]) > 5)
"""Words that are long enough to be told from a name with two letters wrong."""
