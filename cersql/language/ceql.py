"""What is CEQL, the language of CORE, SELECT … FROM S WHERE pattern …, and what is SQL.

    SELECT * FROM S WHERE A; B                         CEQL: no SQL has a `;` there, nor `:+`, nor AS
    SELECT * FROM S WHERE A FILTER A[x > 1]            CEQL: nor FILTER x[…]
    SELECT * FROM S WHERE (A OR B) CONSUME BY NONE     CEQL: nor CONSUME BY, WITHIN 10 EVENTS, PARTITION BY [a]
    SELECT * FROM S WHERE (A OR B)                     SQL, whatever A and B are
    SELECT * FROM S WHERE A; DROP TABLE t              two statements

So what Spark reads is Spark's, and CONSUME BY NONE, which changes nothing, asks for CEQL. Where no SQL can stand
(`cersql.compile`) the fourth is CEQL as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cersql.language.ceql_pattern import ASKING, BETWEEN, OURS_ALONE
from cersql.language.clauses import EXPRESSION_WORDS, key_at
from cersql.language.lexer import Token, closing, depths, split, strip_quotes
from runtime.errors import Span

STRATEGIES = {"ALL": None, "ANY": "NXT", "NEXT": "NXT", "LAST": "LAST", "MAX": "MAX", "STRICT": "STRICT"}
"""What may stand behind SELECT, and our strategy that is meant."""


@dataclass(frozen=True)
class Clause:
    """`WITHIN 10 EVENTS`: its kind, WITHIN, the token that begins it and those behind its key."""

    kind: str
    key: Token
    body: list[Token]


def cut(toks: Sequence[Token]) -> tuple[list[Token], list[Clause]] | None:
    """What stands before SELECT, a WITH, and the clauses from there on; None if no SELECT begins the text."""
    levels = depths(toks)
    select = next((i for i, token in enumerate(toks) if levels[i] == 0 and token.upper == "SELECT"), None)
    if select is None or (select > 0 and toks[0].upper != "WITH"):
        return None
    found = [Clause("SELECT", toks[select], [])]
    at = select + 1
    while at < len(toks):
        key = key_at(toks, at) if levels[at] == 0 else None
        if key is None or (key[0] in _OURS and _takes_a_name(found[-1])):
            found[-1].body.append(toks[at])
            at += 1
            continue
        found.append(Clause(key[0], toks[at], []))
        at += key[1]
    last = found[-1].body
    while last and last[-1].upper == ";":
        last.pop()
    return list(toks[:select]), found


_OURS = frozenset(("RETURN", "SEMANTICS", "DEFINE", "HAVING", "WATERMARK"))
"""Clauses whose words are names to CORE."""
_BEFORE_NAMES = BETWEEN | ASKING | {";", ":", ",", ">", "AND"}


def _takes_a_name(clause: Clause) -> bool:
    """Whether a name must follow what has been read of a clause: `WHERE Order; ` and then Return."""
    return clause.kind in ("SELECT", "WHERE") and (not clause.body or clause.body[-1].upper in _BEFORE_NAMES)


def is_query(toks: Sequence[Token], *, surely: bool) -> bool:
    """Whether a text is CEQL. `surely`: it cannot be SQL; else it is known to be no SQL that Spark reads."""
    clauses = cut(toks)
    if clauses is None:
        return False
    found = {clause.kind: clause.body for clause in clauses[1]}
    pattern = found.get("WHERE", [])
    if "PATTERN" in found or not pattern:
        return False
    if _has_its_clauses(found) or any(_asks_of_an_event(pattern, k) for k in range(len(pattern))):
        return True
    named = streams_of(found.get("FROM", []))
    if named is None or not _is_pattern(pattern if surely else _without_ours(pattern), named):
        return False
    marks = {token.upper for token in pattern}
    return bool(marks & {"AS", "+"}) or (_is_selection(found["SELECT"]) and (not surely or ";" in marks))


def place_of_pattern(toks: Sequence[Token]) -> Span | None:
    """The place of the pattern in a text that is CEQL."""
    clauses = cut(toks)
    body = next((clause.body for clause in clauses[1] if clause.kind == "WHERE"), []) if clauses is not None else []
    return body[0].span | body[-1].span if body else None


def without_strategy(toks: Sequence[Token]) -> tuple[Token | None, list[Token]]:
    """A strategy before what is selected, and what is selected: `SELECT MAX a` has one, `SELECT max` selects it."""
    chosen = len(toks) > 1 and toks[0].upper in STRATEGIES and (toks[1].is_name or toks[1].upper == "*")
    return (toks[0], list(toks[1:])) if chosen else (None, list(toks))


def streams_of(toks: Sequence[Token]) -> list[str] | None:
    """The names that FROM gives to its streams, `S` and `T` of `S, db.t AS T`; None where something has no name."""
    names = [_stream(item) for item in (split(list(toks)) if toks else [])]
    return None if None in names else [name for name in names if name is not None]


def _stream(item: Sequence[Token]) -> str | None:
    """`db.t`, `t AS name`, `(SELECT …) name TYPE column`."""
    end = closing(item, 0) if item and item[0].text == "(" else 0
    while end is not None and item[end + 1 : end + 2] and item[end + 1].text == ".":
        end += 2
    if end is None or end >= len(item):
        return None
    rest = list(item[end + 1 :])
    if len(rest) > 1 and rest[-2].upper == "TYPE":
        rest = rest[:-2]
    if len(rest) > 1 and rest[0].upper == "AS":
        rest = rest[1:]
    name = rest[0] if rest else item[end]
    return strip_quotes(name.text) if len(rest) < 2 and name.is_name else None


def _has_its_clauses(found: dict[str, list[Token]]) -> bool:
    window, keys = found.get("WITHIN", []), found.get("PARTITION BY", [])
    return "CONSUME BY" in found or [t.kind for t in window[:1]] == ["number"] or [t.text for t in keys[:1]] == ["["]


def _asks_of_an_event(pattern: Sequence[Token], k: int) -> bool:
    """FILTER x[…] or the like at `k`: SQL has only FILTER (WHERE …)."""
    if pattern[k].upper not in ASKING:
        return False
    k += 1
    while k < len(pattern) and pattern[k].upper == "(":
        k += 1
    name, marks = pattern[k : k + 1], [token.upper for token in pattern[k + 1 : k + 4]]
    return bool(name) and name[0].is_name and (marks[:1] == ["["] or (marks[:1] == [">"] and marks[2:] == ["["]))


def _is_selection(toks: Sequence[Token]) -> bool:
    """`*`, `NONE`, `a, S>b, c[x, y]`, with a strategy before it."""
    items = without_strategy(toks)[1]
    return [token.upper for token in items] == ["*"] or all(map(_is_selected, split(items)))


def _is_selected(item: Sequence[Token]) -> bool:
    if len(item) > 2 and item[0].is_name and item[1].upper == ">":
        item = item[2:]
    listed = len(item) == 1 or (len(item) > 3 and item[1].upper == "[" and item[-1].upper == "]")
    return listed and item[0].is_name


# fmt: off
_NAMES_TOO = frozenset([
    "ASC", "AT", "BETWEEN", "CASE", "COLLATE", "DESC", "DIV", "ELSE", "END", "ESCAPE", "EXISTS", "ILIKE", "IN",
    "INTERVAL", "IS", "LIKE", "NULLS", "OVER", "REGEXP", "RLIKE", "SOME", "THEN", "TIME", "UNKNOWN", "WHEN", "ZONE",
])
"""Words of SQL's expressions that are names where no part of a pattern stands before them: `Post OR Like`."""
# fmt: on
_NO_PART = (EXPRESSION_WORDS - {"AS", "OR", "ALL", "NOT", "ANY"} - _NAMES_TOO) | {"SELECT", "WHERE", "SET"}
_MARKS = frozenset(("(", ")", ";", ":", "+", ">", "!"))


def _without_ours(toks: Sequence[Token]) -> list[Token]:
    """Without what only our patterns have, which is then told: of `A -> B{2}` it is `A ; B`."""
    kept = [token for k, token in enumerate(toks) if token.text not in ("{", "}", "*", "?") and not _is_count(toks, k)]
    return [replace(token, text=";") if token.text in OURS_ALONE else token for token in kept]


def _is_count(toks: Sequence[Token], k: int) -> bool:
    return toks[k].kind == "number" and k > 0 and toks[k - 1].text in ("{", ",")


def _is_pattern(toks: Sequence[Token], streams: Sequence[str]) -> bool:
    """By its looks a pattern and no condition of SQL: names, and the marks of patterns between them."""
    known = {name.casefold() for name in streams}
    return all(_is_of_pattern(toks, k, known) for k in range(len(toks)))


def _is_of_pattern(toks: Sequence[Token], k: int, streams: set[str]) -> bool:
    token, before = toks[k], toks[k - 1] if k else None
    after = toks[k + 1] if k + 1 < len(toks) else None
    operand_before = before is not None and before.is_name and before.upper not in BETWEEN | {"NOT"}
    if token.kind != "op":
        own = token.upper in BETWEEN
        return token.is_name and token.upper not in _NO_PART and (own or not operand_before)
    if token.text == "(":
        return not operand_before  # no function
    if token.text == ">":  # of a stream, and no comparison
        of_stream = before is not None and strip_quotes(before.text).casefold() in streams
        return of_stream and after is not None and after.is_name
    if token.text == "+" and after is not None and (after.is_name or after.text == "("):
        return after.upper in BETWEEN  # no sum
    return token.text in _MARKS
