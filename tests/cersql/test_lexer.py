"""Tokens and their offsets."""

from __future__ import annotations

import pytest

from cersql.errors import ParseError
from cersql.language.lexer import Token, check_brackets, depths, split, strip_quotes, tokens


def kinds(text: str) -> list[tuple[str, str]]:
    return [(t.kind, t.text) for t in tokens(text)]


def texts(text: str) -> list[str]:
    return [t.text for t in tokens(text)]


def test_offsets_are_characters_of_the_text() -> None:
    text = "größe >= 'ü''x' -- ä\n/* € /* nested */ */ `ß x`.y 𝔸"
    for token in tokens(text):
        assert text[token.start : token.end] == token.text
    assert texts(text) == ["größe", ">=", "'ü'", "'x'", "`ß x`", ".", "y", "𝔸"]


def test_a_slice_keeps_the_offsets_of_the_whole() -> None:
    text = "SELECT * FROM (PATTERN A) AS m"
    start, end = text.index("(") + 1, text.index(")")
    assert tokens(text, start, end) == [
        Token("word", "PATTERN", 15, 22),
        Token("word", "A", 23, 24),
    ]


def test_a_token_ends_with_its_slice() -> None:
    assert texts("abc") == ["abc"]
    assert [t.text for t in tokens("abc <= 10", 1, 5)] == ["bc", "<"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (r"'it\'s'", "string"),
        ('"a \\" b"', "string"),
        (r"r'\'", "string"),
        (r'R"\d+"', "string"),
        ("'-- no comment'", "string"),
        ("`a``b`", "quoted"),
        ("10", "number"),
        ("1.5", "number"),
        (".5", "number"),
        ("1e-3", "number"),
        ("10L", "number"),
        ("2.5BD", "number"),
        ("1a", "word"),
        ("_x9", "word"),
        ("día", "word"),
    ],
)
def test_one_token(text: str, kind: str) -> None:
    assert kinds(text) == [(kind, text)]


def test_operators_of_several_characters() -> None:
    text = "-> :: <= >= <> != == <=> || |> => < : + !"
    assert texts(text) == text.split()


def test_quantifiers_stay_apart() -> None:
    assert texts("A:+{2,}?") == ["A", ":", "+", "{", "2", ",", "}", "?"]


def test_numbers_and_dots() -> None:
    assert texts("x[1].a") == ["x", "[", "1", "]", ".", "a"]
    assert texts("t.1") == ["t", ".", "1"]
    assert texts("x[..i-1]") == ["x", "[", ".", ".", "i", "-", "1", "]"]
    assert texts("1..2") == ["1", ".", ".2"]


def test_comments_are_skipped() -> None:
    assert texts("a -- b ' `\n c /* d ' /* e */ f */ g") == ["a", "c", "g"]


@pytest.mark.parametrize(
    ("text", "at", "mark"),
    [
        ("a = 'b", 4, "'"),
        ('a = "b\\"', 4, '"'),
        ("a = r'b", 5, "'"),
        ("a.`b", 2, "`"),
        ("a /* b /* c */", 2, "/*"),
    ],
)
def test_what_is_never_closed(text: str, at: int, mark: str) -> None:
    with pytest.raises(ParseError) as raised:
        tokens(text)
    assert raised.value.condition == "UNCLOSED"
    assert raised.value.span is not None
    assert raised.value.span.start == at
    assert raised.value.column == at + 1
    assert mark in str(raised.value)


@pytest.mark.parametrize(
    ("text", "condition", "at"),
    [
        ("f(a[1]", "UNCLOSED", 1),
        ("f(a[1)", "UNCLOSED", 3),
        ("f(a))", "UNOPENED", 4),
        ("f(a]", "UNOPENED", 3),
        ("(" * 101, "TOO_DEEP", 100),
    ],
)
def test_brackets(text: str, condition: str, at: int) -> None:
    with pytest.raises(ParseError) as raised:
        check_brackets(tokens(text))
    assert raised.value.condition == condition
    assert raised.value.span is not None
    assert raised.value.span.start == at


def test_brackets_in_strings_do_not_count() -> None:
    check_brackets(tokens("f('(', `[`)"))


def test_depths_and_split() -> None:
    toks = tokens("f(a, b), [c, d], e")
    assert depths(toks)[:4] == [0, 0, 1, 1]
    assert ["".join(t.text for t in part) for part in split(toks)] == ["f(a,b)", "[c,d]", "e"]
    assert split([]) == [[]]


def test_upper_compares_words_and_marks_only() -> None:
    word, quoted, string, mark = tokens("from `from` 'from' (")
    assert [t.upper for t in (word, quoted, string, mark)] == ["FROM", "", "", "("]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("`a``b`", "a`b"),
        ("plain", "plain"),
        (r"'it\'s\n'", "it's\n"),
        (r"r'\d'", r"\d"),
        ('"x"', "x"),
    ],
)
def test_strip_quotes(written: str, value: str) -> None:
    assert strip_quotes(written) == value
