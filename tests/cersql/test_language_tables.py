"""The tables of operators and clauses agree with those who cannot read them: the grammar, the tree and the readers."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from cersql.cli.completion import KEYWORDS
from cersql.errors import ParseError
from cersql.language import clause_table, parse, syntax
from cersql.language.clause_bodies import READERS
from cersql.language.clause_table import CLAUSES, Clause
from cersql.language.operators import INFIX, OPERATORS, RESERVED, Operator

# What each form looks like; `{0}` is the word.
SHAPES = {
    "infix": "A {0} B", "prefix": "A ; {0} B ; C", "list": "{0}(A, B)", "call": "{0}(A)",
    "postfix": {"FILTER": "A FILTER A.x > 1", "AS": "A AS a", "PART BY": "A PART BY (x)"},
}  # fmt: skip
HEADINGS = {"PROJECT": "PROJECT(A : A)", "AGG": "AGG(y : n = COUNT(A) ; A)"}
ALGEBRA = {"NSEQ": "NSEQ(A, B, C)", "ITER": "ITER(A, 2)"}  # names of the simple event algebra


def written(operator: Operator) -> str:
    if operator.heading is not None:
        return HEADINGS[operator.word]
    if operator.word in ALGEBRA:
        return ALGEBRA[operator.word]
    shape = SHAPES[operator.form]
    return shape.format(operator.word) if isinstance(shape, str) else shape[operator.word]


def pattern(text: str) -> syntax.Pattern:
    return parse.parse(f"FROM t PATTERN {text} ORDER BY ts RETURN *").pattern


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: f"{operator.form} {operator.word}")
def test_every_operator_is_read(operator: Operator) -> None:
    found = pattern(written(operator))
    assert type(found) is not syntax.TypeRef
    for sign in operator.signs:
        in_place = written(operator).replace(operator.word, sign)
        assert re.sub(r"Span\(.*?\)", "", repr(pattern(in_place))) == re.sub(r"Span\(.*?\)", "", repr(found))
    assert all(word in KEYWORDS for word in [operator.word] if operator.offered)


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_are_no_names(word: str) -> None:
    with pytest.raises(ParseError) as raised:
        pattern(f"{word} ; B")
    assert raised.value.condition in ("RESERVED_NAME", "UNEXPECTED_TOKEN")


def test_terminals_are_those_of_the_grammar() -> None:
    grammar = Path(parse.__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    declared = {word for line in re.findall(r"^%declare (.*)$", grammar, re.MULTILINE) for word in line.split()}
    used = {operator.terminal for operator in OPERATORS}
    assert used | {operator.heading.terminal for operator in OPERATORS if operator.heading} <= declared
    assert all(
        operator.means in INFIX or operator.word in ("SEQ", "NSEQ") for operator in OPERATORS if operator.form == "list"
    )


def test_what_an_operator_excludes_does_not_happen() -> None:
    for word, operator in INFIX.items():
        found = pattern(f"A {word} B")
        assert len(syntax.children(found)) == 2
        assert len(syntax.happening(found)) == (1 if operator.excludes else 2)


@pytest.mark.parametrize("clause", CLAUSES.values(), ids=lambda clause: clause.key)
def test_every_clause_has_a_reader_and_a_field(clause: Clause) -> None:
    names = {field.name for field in fields(syntax.Query)}
    assert {*clause.fills, *([clause.before_pattern] if clause.before_pattern else [])} <= names
    assert (clause.body in READERS) == (clause.body != "pattern")
    assert clause.key in KEYWORDS
    with pytest.raises(ParseError) as raised:
        parse.parse(f"FROM t PATTERN A RETURN * {clause.key}" if clause.key not in ("FROM", "PATTERN", "RETURN")
                    else f"{clause.key} ORDER BY ts")  # fmt: skip
    assert clause.holds in str(raised.value)


def test_every_kind_of_body_is_of_some_clause() -> None:
    assert set(get_args(clause_table.BodyKind)) == {clause.body for clause in CLAUSES.values()}


def test_walking_and_changing() -> None:
    found = pattern("START(A a ; (B OR !C)+ FILTER x > 1) UNLESS PROJECT(d : D d WITHIN 5)".replace("!C", "C c"))
    names = [part.name.value for part in syntax.walk(found) if isinstance(part, syntax.TypeRef) and part.name]
    assert names == ["A", "B", "C", "D"]
    assert syntax.changed(found, lambda part: part) == found
    inner = syntax.changed(found, lambda part: syntax.children(part)[0])
    assert [type(part) for part in syntax.children(inner)] == [syntax.Chain, syntax.Windowed]
