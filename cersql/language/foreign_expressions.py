"""Marks and words of other languages inside expressions, and what to write instead.

    a.p =< b.p    Write <=.                     b.ts - a.ts < 5 MINUTES    Write INTERVAL 5 MINUTES.
    a.k IS 'x'    Write a.k = 'x'.              a.p > 1, b.p > 1           Write AND.
    a.p ! = b.p   Write !=.

Spark would refuse each, at a place behind the mistake, or with words about its own grammar.
"""

from __future__ import annotations

from collections.abc import Sequence

from cersql.errors import ParseError
from cersql.language.lexer import Token, depths, shown
from cersql.language.windows import UNITS

# Two tokens that touch: what was found, what is expected there, and the hint.
_PAIRS = {
    "&&": ("AND or OR", "Write AND."),
    "=<": ("a comparison", "Write <=."),
    "~=": ("a comparison", "Write RLIKE for a regular expression, <> for other values."),
    "=~": ("a comparison", "Write RLIKE for a regular expression."),
}
# Signs of two characters that someone has written apart: what is meant.
_APART = {
    ("!", "="): "!=", ("<", ">"): "<>", ("<", "="): "<=", (">", "="): ">=", ("=", ">"): ">=", ("=", "<"): "<=",
    ("=", "="): "=", ("|", "|"): "|| between texts, OR between conditions", ("&", "&"): "AND",
}  # fmt: skip
# What stands around an interval's own units: INTERVAL 1 HOUR 30 MINUTES.
_OF_INTERVAL = frozenset(["TO", "-", "+"])


def check_mark(toks: Sequence[Token], at: int) -> None:
    """Raises for the token at `at`, or for it and the next, if they are written so in other languages alone."""
    token = toks[at]
    after = toks[at + 1] if at + 1 < len(toks) else None
    if after is None:
        return
    if token.kind == "op" and after.kind == "op" and after.start == token.end and token.text + after.text in _PAIRS:
        expected, hint = _PAIRS[token.text + after.text]
        raise _wrong(token, f"'{token.text + after.text}'", expected, hint)
    apart = _APART.get((token.text, after.text)) if token.kind == after.kind == "op" else None
    if apart is not None and after.start > token.end:
        raise _wrong(token, f"'{token.text} {after.text}'", "a comparison, AND or OR", f"Write {apart}.")
    if token.text == "=>" and not _names_argument(toks, at):
        raise _wrong(token, "'=>'", "a comparison", "Write >=.")
    if token.upper == "IS" and after.kind in ("string", "number") and at and toks[at - 1].upper != ".":
        raise _wrong(after, shown(after), "NULL, NOT NULL, TRUE, FALSE or DISTINCT FROM", "Values are compared by '='.")
    if token.kind == "number" and after.upper in UNITS and not _in_interval(toks, at):
        written = f"{token.text} {after.text}"
        raise _wrong(token, written, "a value", f"A length of time is written INTERVAL {written}.")


def check_condition(toks: Sequence[Token]) -> None:
    """Raises for a comma between conditions, or one in place of the AND of BETWEEN."""
    for i, (token, level) in enumerate(zip(toks, depths(toks), strict=True)):
        if level == 0 and token.upper == ",":
            before = [one.upper for one in toks[max(0, i - 4) : i]]
            hint = "Conditions are joined with AND, or OR."
            if "BETWEEN" in before:
                hint = "Write BETWEEN low AND high."
            elif before[-2:-1] == ["IN"]:
                hint = "A list stands in parentheses: IN (1, 2)."
            raise _wrong(token, "','", "AND or OR", hint)


def _wrong(token: Token, found: str, expected: str, hint: str) -> ParseError:
    return ParseError("UNEXPECTED_TOKEN", span=token.span, found=found, expected=expected, hint=hint)


def _names_argument(toks: Sequence[Token], at: int) -> bool:
    """`f(x => 2)`, `(x, y) -> …` have a bare name before it; `a.price => 3` has none."""
    return at > 0 and toks[at - 1].is_name and (at == 1 or toks[at - 2].upper in ("(", ","))


def _in_interval(toks: Sequence[Token], at: int) -> bool:
    while at >= 0 and (toks[at].kind in ("number", "string") or toks[at].upper in UNITS | _OF_INTERVAL):
        at -= 1
    return at >= 0 and toks[at].upper == "INTERVAL"
