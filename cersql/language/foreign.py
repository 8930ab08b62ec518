"""Notations of other pattern languages, and what to write instead."""

from __future__ import annotations

from collections.abc import Sequence

from cersql.errors import ParseError
from cersql.language.lexer import Token, depths, shown

_INSTEAD = {
    "|": "Write A OR B.",
    "||": "Write A OR B.",
    "|>": "Write A OR B.",
    "&": "Write A ALL B (both, in any order), or A AND B (the same events).",
    "^": "Write START(p): it matches from the first row of the partition on.",
    "$": "There is no mark for the end of a partition; for its start there is START(p).",
    "{-": "Write every part; RETURN chooses what is shown, PROJECT(x : p) keeps some variables.",
    "-": "Write every part; RETURN chooses what is shown, PROJECT(x : p) keeps some variables.",
    "=>": "Write A -> B, or SEQ(A, B).",
    ">": "Write A -> B, or SEQ(A, B). Of CORE's S>H write H, and FROM S.",
    ".": "A type is one name: write FROM db.t AS T and use T, or put the type into back-ticks.",
    "::": "Write A : B, with one colon.",
    "~": "What does not happen is written !A, or NOT A.",
    "PERMUTE": "Write ALL(A a, B b): the parts in any order.",
}


def foreign(token: Token, before: Token | None, after: Token | None) -> ParseError | None:
    """The error for a mark of another language, or None if we do not know it."""
    mark = token.upper
    if mark == "[":
        return _bracket(token, before, after)
    if mark in ("=", "=="):
        name = f"{after.text} {before.text}" if before and after and before.is_name and after.is_name else "Type x"
        return _error(token, token.text, f"Write the type, then the variable: {name}.")
    if mark == "{" and after is not None and after.text == "-":
        return _error(token, "{-", _INSTEAD["{-"])
    if mark in _INSTEAD:
        return _error(token, token.text, _INSTEAD[mark])
    return None


def _error(token: Token, found: str, hint: str) -> ParseError:
    return ParseError("FOREIGN_SYNTAX", span=token.span, found=f"'{found}'" if token.kind == "op" else found, hint=hint)


def _bracket(token: Token, before: Token | None, after: Token | None) -> ParseError | None:
    if after is not None and after.upper == "EVERY":
        hint = "Esper's patterns stand in SELECT … FROM PATTERN [every a=A -> b=B]."
        return _error(token, "[", hint)
    name = before.text if before is not None and before.is_name else ""
    hint = f"A condition on events: {name or '(p)'} FILTER condition, or in WHERE: {name or 'x'}[condition]."
    return _error(token, "[", hint)


def every(token: Token, following: Sequence[Token]) -> ParseError | None:
    """Esper writes `every (A a -> B b)`, `every A a`, `every a=A`: the error. EVERY may be the name of a type."""
    words = [after.upper for after in following[:2]]
    names = [after.is_name for after in following[:2]]
    if words[:1] != ["("] and names != [True, True] and not (names[:1] == [True] and words[1:] == ["="]):
        return None
    hint = (
        "Leave it out: every match is given. Each A with the first B after it: SEMANTICS SKIP TILL NEXT MATCH. After a "
        "match anew: SEMANTICS NXT CONSUME BY PARTITION."
    )
    return _error(token, token.text, hint)


def juxtaposition(token: Token) -> ParseError:
    """A name stands where an operator is needed, `A B C`, `(A B)+ C`: the error."""
    hint = "One immediately after the other is A : B : C, with anything between A -> B -> C or SEQ(A, B, C)."
    return ParseError(
        "FOREIGN_SYNTAX",
        span=token.span,
        found=f"{shown(token)} after a whole part",
        hint=f"{hint} (p) AS x names a part.",
    )


_QUOTES = ("“", "”", "„", "‘", "’", "‚")
_RECOGNIZE = (
    "The same shape in cersql:\n"
    "  FROM ticks DEFINE B AS price < 10 PATTERN A : B:+ : C   -- for PATTERN (A B+ C)\n"
    "  PARTITION BY symbol ORDER BY ts AFTER MATCH SKIP PAST LAST ROW\n"
    "  RETURN A.ts AS begins, LAST(B.price) AS low             -- for MEASURES"
)


# SASE+'s strategies around the conditions of WHERE, and the functions of row pattern recognition: what to write.
_SASE = {
    "SKIP_TILL_NEXT_MATCH": "SKIP TILL NEXT MATCH", "SKIP_TILL_ANY_MATCH": "SKIP TILL ANY MATCH",
    "STRICT_CONTIGUITY": "STRICT CONTIGUITY", "PARTITION_CONTIGUITY": "STRICT CONTIGUITY, and PARTITION BY",
}  # fmt: skip
_OF_ROWS = {
    "CLASSIFIER": "Each variable is a column of RETURN *; an event is of the one that has it.",
    "MATCH_NUMBER": "Number them around: SELECT row_number() OVER (ORDER BY match_start), m.* FROM (PATTERN …) AS m.",
    "MATCH_ROWTIME": "The time of a match's last event is match_end.",
}


def check_foreign_query(toks: Sequence[Token]) -> None:
    """Raises for what only queries of other languages have, in whatever clause: MATCH_RECOGNIZE, SASE+'s
    skip_till_next_match(a, b), CLASSIFIER(); and for a PDF's quotes."""
    for index, token in enumerate(toks):
        if token.kind == "op" and token.text in _QUOTES:
            hint = "Write quotes as a keyboard does: 'text', or \"text\"."
            raise ParseError("UNEXPECTED_TOKEN", span=token.span, found=shown(token), expected="a quote", hint=hint)
        after = [after.upper for after in toks[index + 1 : index + 3]]
        before = toks[index - 1].upper if index else ""
        if token.kind != "word" or after[:1] != ["("] or before == ".":
            continue
        if token.upper == "MATCH_RECOGNIZE":
            raise ParseError("MATCH_RECOGNIZE_TEXT", span=token.span, hint=_RECOGNIZE)
        if token.upper in _SASE and before == "WHERE":
            hint = f"Write SEMANTICS {_SASE[token.upper]}, and after WHERE the conditions alone, without braces."
            raise _error(token, token.text, hint)
        if token.upper in _OF_ROWS and after == ["(", ")"]:
            construct = f"{token.text}()"
            raise ParseError("NOT_SUPPORTED_YET", span=token.span, construct=construct, hint=_OF_ROWS[token.upper])


def check_first_word(toks: Sequence[Token]) -> None:
    """Raises for a query that begins with SELECT, or with SASE's EVENT."""
    if toks and toks[0].upper == "EVENT":
        raise ParseError("UNKNOWN_CLAUSE", span=toks[0].span, clause=toks[0].text, hint="Write PATTERN.")
    if toks and toks[0].upper == "SELECT":
        hint = "Write RETURN, or put the pattern query into parentheses: SELECT … FROM (PATTERN … RETURN …) AS m."
        raise ParseError("UNKNOWN_CLAUSE", span=toks[0].span, clause="SELECT", hint=hint)


# ---------------------------------------------------------------- CORE


_CORE_STRATEGIES = ("ALL", "ANY", "LAST", "MAX", "NEXT", "STRICT")


def check_core(text: str, toks: Sequence[Token]) -> None:
    """Raises for a query of CORE's: SELECT [strategy] x, y FROM S WHERE pattern …; the hint says it in our clauses."""
    if not toks or toks[0].upper != "SELECT":
        return
    clauses = _core_clauses(toks)
    pattern = clauses.get("WHERE", [])
    outside = [token for token, level in zip(pattern, depths(pattern), strict=True) if level == 0]
    marks = {token.upper for token in outside}
    strategy = clauses["SELECT"][0] if clauses["SELECT"] else None
    chosen = strategy is not None and strategy.upper in _CORE_STRATEGIES and len(clauses["SELECT"]) > 1
    if "PATTERN" in clauses or not pattern or not (marks & {";", ":", "FILTER"} or chosen or _is_name(pattern)):
        return
    hint = f"In cersql's clauses:\n  {_of_core(text, clauses, strategy if chosen else None)}"
    raise ParseError("UNKNOWN_CLAUSE", span=toks[0].span, clause="SELECT", hint=hint)


def _is_name(pattern: Sequence[Token]) -> bool:
    """`SELL`, `SELL AS x`, `SELL+`: a pattern, and no condition."""
    words = [token.upper for token in pattern if token.upper not in ("(", ")")]
    return words[1:2] == ["AS"] or words[1:] in ([], ["+"])


def _core_clauses(toks: Sequence[Token]) -> dict[str, list[Token]]:
    """The bodies of the clauses outside all parentheses, by the first word of their keys."""
    found: dict[str, list[Token]] = {}
    body: list[Token] = []
    for token, level in zip(toks, depths(toks), strict=True):
        first = token.upper in ("SELECT", "FROM", "WHERE", "PARTITION", "WITHIN", "CONSUME", "LIMIT", "PATTERN")
        if level == 0 and first and token.kind == "word" and token.upper not in found:
            body = found.setdefault(token.upper, [])
        elif token.upper != "BY" or body:
            body.append(token)
    return found


def _of_core(text: str, clauses: dict[str, list[Token]], strategy: Token | None) -> str:
    """The query in our clauses."""

    def written(key: str) -> str:
        body = clauses.get(key, [])
        while body and body[-1].upper == ";":
            body = body[:-1]
        return " ".join(text[body[0].start : body[-1].end].split()) if body else ""

    sources = {token.upper for token in clauses.get("FROM", []) if token.is_name}
    body = [
        token
        for k, token in enumerate(clauses["WHERE"])  # S>H is H
        if not _of_stream(clauses["WHERE"], k, sources) and not (k and _of_stream(clauses["WHERE"], k - 1, sources))
    ]
    items = written("SELECT")[len(strategy.text) if strategy else 0 :].strip()
    pattern, window = _text_of(text, body), clauses.get("WITHIN", [])
    outside = [token.upper if level == 0 else "" for token, level in zip(body, depths(body), strict=True)]
    if "FILTER" in outside and {";", ":", "OR"} & set(outside[: outside.index("FILTER")]):
        place = outside.index("FILTER")  # CORE's binds all before it
        pattern = f"({_text_of(text, body[:place])}) {_text_of(text, body[place:])}"
    marks = [token.upper for token in window]
    column = written("WITHIN").partition("[")[2].rstrip("] ") if "[" in marks else ""
    chosen = {"ANY": "NXT", "NEXT": "NXT"}.get(strategy.upper, strategy.upper) if strategy else ""
    parts = [
        ("FROM", written("FROM")),
        ("PATTERN", pattern),
        ("PARTITION BY", written("PARTITION").replace("[", "").replace("]", "")),
        ("ORDER BY", column or "ts"),
        ("WITHIN", written("WITHIN").partition("[")[0].strip()),
        ("SEMANTICS", chosen),
        ("CONSUME BY", written("CONSUME")),
        ("RETURN", "match_start, match_end" if items.upper() == "NONE" else items or "*"),
        ("LIMIT", written("LIMIT")),
    ]
    return " ".join(f"{key} {body}" for key, body in parts if body)


def _of_stream(toks: Sequence[Token], at: int, sources: set[str]) -> bool:
    """The S of CORE's S>H is a source with `>` behind it."""
    return toks[at].upper in sources and at + 1 < len(toks) and toks[at + 1].text == ">"


def _text_of(text: str, toks: Sequence[Token]) -> str:
    """The user's words, with one space where there were some."""
    found = ""
    for before, token in zip((None, *toks), toks, strict=False):
        space = before is not None and any(map(str.isspace, text[before.end : token.start]))
        found += (" " if space else "") + token.text
    return found.removesuffix(";").rstrip()
