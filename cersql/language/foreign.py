"""Notations of other pattern languages, and what to write instead."""

from __future__ import annotations

from collections.abc import Sequence

from cersql.errors import ParseError
from cersql.language.clause_table import BY_FIRST_WORD
from cersql.language.clauses import EXPRESSION_WORDS
from cersql.language.lexer import Token, depths, shown
from cersql.language.operators import CALLS

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
    "—": "Write A -> B, or SEQ(A, B), with a keyboard's hyphen.",
    "–": "Write A -> B, or SEQ(A, B), with a keyboard's hyphen.",
    "~": "What does not happen is written !A, or NOT A.",
    "PERMUTE": "Write ALL(A a, B b): the parts in any order.",
}
_FOLLOWS = "B after A, with anything between, is A -> B; immediately after A, A : B."
_ABSENT = "What does not happen in between is written SEQ(A, !B, C)."
# Words of other languages between two parts.
_BETWEEN = {
    "THEN": _FOLLOWS, "FOLLOWED": _FOLLOWS, "FOLLOWEDBY": _FOLLOWS, "FOLLOWEDBYANY": _FOLLOWS, "FOLLOWS": _FOLLOWS,
    "NEXT": _FOLLOWS, "BEFORE": _FOLLOWS, "IMMEDIATELY": _FOLLOWS, "DIRECTLY": _FOLLOWS,
    "UNTIL": _ABSENT, "WITHOUT": _ABSENT, "NOTFOLLOWEDBY": _ABSENT, "NOTNEXT": _ABSENT, "EXCEPT": _ABSENT,
    "XOR": "Write A OR B.", "DURING": "A window is written WITHIN 10 MINUTES.",
}  # fmt: skip
CALLED = {
    "SEQUENCE": "SEQ(A a, B b)", "FOLLOWEDBY": "SEQ(A a, B b)", "CHAIN": "SEQ(A a, B b)", "BEGIN": "SEQ(A a, B b)",
    "CONJUNCTION": "ALL(A a, B b)", "DISJUNCTION": "ANY(A a, B b)", "ONEOF": "ANY(A a, B b)",
    "MAXIMAL": "MAX(p)", "MAXIMUM": "MAX(p)", "FIRST": "NXT(p), of the matches that end together the earliest events",
    "TIMES": "A{3} for three times A", "ONEORMORE": "A+", "OPTIONAL": "A?",
}  # fmt: skip
"""Operators of other languages that look like a call, `SEQUENCE(A, B)`: what to write."""


def foreign(token: Token, before: Token | None, after: Token | None) -> ParseError | None:
    """The error for a mark of another language, or None if we do not know it."""
    mark = token.upper
    if mark == "[":
        return _bracket(token, before, after)
    if mark in ("=", "=="):
        name = f"{after.text} {before.text}" if before and after and before.is_name and after.is_name else "Type x"
        return _error(token, token.text, f"Write the type, then the variable: {name}.")
    if mark == "-" and _joins(token, before, after):
        assert before is not None
        assert after is not None
        return _error(token, "-", f"A name with a hyphen takes back-ticks: `{before.text}-{after.text}`.")
    if mark == "{" and after is not None and after.text == "-":
        return _error(token, "{-", _INSTEAD["{-"])
    if mark in _INSTEAD:
        doubled = mark == "&" and after is not None and after.text == "&" and after.start == token.end
        return _error(token, "&&" if doubled else token.text, _INSTEAD[mark])
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


def _joins(token: Token, before: Token | None, after: Token | None) -> bool:
    """Of `failed-login` the hyphen touches a name on both sides."""
    beside = before is not None and after is not None and before.is_name and after.is_name
    return beside and before is not None and after is not None and (before.end, after.start) == (token.start, token.end)


def juxtaposition(toks: Sequence[Token], at: int) -> ParseError:
    """A name stands at `at` where an operator is needed: the error for `A B C`, `(A B)+ C`, `A a THEN B b`."""
    token = toks[at]
    found = f"{shown(token)} after a whole part"
    return ParseError("FOREIGN_SYNTAX", span=token.span, found=found, hint=_instead_of_names(toks, at))


def _instead_of_names(toks: Sequence[Token], at: int) -> str:
    first, second = toks[at - 2 : at] if at > 1 else (None, None)
    if toks[at].kind == "word" and toks[at].upper in _BETWEEN:
        return _BETWEEN[toks[at].upper]
    if first is not None and first.upper in CALLS:
        return f"Write {first.upper}(…)."
    if second is not None and second.kind == "word" and second.upper in _BETWEEN:
        return _BETWEEN[second.upper]  # `A WITHOUT B`, where the word is taken for the variable of A
    hint = "One immediately after the other is A : B : C, with anything between A -> B -> C or SEQ(A, B, C)."
    inside = _list_around(toks, at)
    if inside is not None:
        hint = f"Parts of {inside} stand between commas: {inside}(A a, B b)."
    last = at + 1 == len(toks) or not toks[at + 1].is_name
    if last and first is not None and second is not None and first.is_name and second.is_name:
        hint = f"A name of several words takes back-ticks: `{first.text} {second.text}`. {hint}"
    return f"{hint} (p) AS x names a part."


def _list_around(toks: Sequence[Token], at: int) -> str | None:
    """SEQ, for what stands in the parentheses of SEQ(…)."""
    levels = depths(toks)
    opening = next((i for i in range(at - 1, -1, -1) if toks[i].text == "(" and levels[i] < levels[at]), 0)
    before = toks[opening - 1].upper if opening else ""
    return before if before in CALLS and CALLS[before].form == "list" else None


_QUOTES = ("“", "”", "„", "‘", "’", "‚")
_RECOGNIZE = (
    "The same shape in cersql:\n"
    "  FROM ticks DEFINE B AS price < 10 PATTERN A : B:+ : C   -- for PATTERN (A B+ C)\n"
    "  PARTITION BY symbol ORDER BY ts AFTER MATCH SKIP PAST LAST ROW\n"
    "  RETURN A.ts AS begins, LAST(B.price) AS low             -- for MEASURES"
)


_FLINK = (
    'Flink\'s Pattern.begin("a").next("b").followedBy("c") is PATTERN A a : B b ; C c here. What where(…) says stands '
    "in DEFINE A AS condition, or in WHERE, and within(…) is WITHIN 10 MINUTES."
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
        if (
            token.upper == "BEGIN"
            and after[:1] == ["("]
            and [one.upper for one in toks[:index]] in ([], ["PATTERN", "."])
        ):
            raise _error(toks[0], "".join(one.text for one in toks[: index + 1]), _FLINK)
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


_DECLARED = (
    "Streams are tables and views here, and types the values of a column or what DEFINE says: nothing is declared."
)


_LATE = "How late an event may come is said by the query: WATERMARK 2 SECONDS."
_CHECK = (
    "CORE's CHECK { SELECT … } asks where a match ends. SELECT NONE … LIMIT 1, without CHECK and its braces, gives one "
    "row for each end."
)
_OF_CORE = {
    "CHECK": _CHECK,
    **{f"{word} {what}": _DECLARED for word in ("CREATE", "DECLARE") for what in ("STREAM", "EVENT")},
    **{f"{word} QUARANTINE": _LATE for word in ("CREATE", "DECLARE")},
}


def statement_of_core(toks: Sequence[Token]) -> str | None:
    """How a statement of CORE begins that has no equal here, `CHECK {`, `CREATE STREAM S {`; None if it is none."""
    words = [token.upper for token in toks[:4]]
    if words[:2] == ["CHECK", "{"]:
        return "CHECK"
    begin = " ".join(words[:2])
    opens = words[2:3] == ["{"] or (words[3:] in (["{"], ["("]) and toks[4:] and toks[4].is_name)
    return begin if begin in _OF_CORE and opens else None


_FOR_PATTERN = frozenset("MATCH MATCHES MATCHING FIND DETECT SEARCH SEQUENCE".split())
# What stands before a name, so that the next word begins no clause; a word before one of the others is an alias.
_BEFORE_NAME = EXPRESSION_WORDS | BY_FIRST_WORD.keys() | frozenset("SELECT JOIN ON USING TABLE INTO LATERAL".split())
_AFTER_ALIAS = BY_FIRST_WORD.keys() | frozenset(
    "AS JOIN ON USING INNER CROSS LEFT RIGHT FULL SEMI ANTI NATURAL LATERAL SELECT UNION EXCEPT INTERSECT".split()
)


def check_for_pattern(toks: Sequence[Token]) -> None:
    """Raises where another language's word stands for PATTERN, or none does. For a query that has no PATTERN.

    FROM t MATCH (A ; B)      Write PATTERN.           FROM t SEQ(A, B)      Write PATTERN SEQ(…).
    """
    for index, (token, level) in enumerate(zip(toks[:-1], depths(toks), strict=False)):
        before, after = toks[index - 1] if index else None, toks[index + 1]
        begins = before is None or (
            before.upper not in _BEFORE_NAME and (before.kind != "op" or before.text in (")", "]", "*"))
        )
        if level or token.kind != "word" or not begins:
            continue
        pattern = after.text in ("(", "!", "¬") or (after.is_name and after.upper not in _AFTER_ALIAS)
        if token.upper in _FOR_PATTERN and pattern:
            hint = "Write PATTERN: FROM t PATTERN SEQ(A a, B b) ORDER BY ts RETURN *, for example."
            raise ParseError("UNKNOWN_CLAUSE", span=token.span, clause=token.text, hint=hint)
        if token.upper == "SEQ" and after.text == "(" and toks[0].upper == "FROM":
            raise ParseError("MISSING_CLAUSE", span=token.span, clause="PATTERN", hint="Write PATTERN SEQ(…).")


def check_first_word(toks: Sequence[Token]) -> None:
    """Raises for a query that begins with SELECT, with SASE's EVENT, or as a statement of CORE's that has no equal."""
    of_core = statement_of_core(toks)
    if of_core is not None:
        raise ParseError("UNKNOWN_CLAUSE", span=toks[0].span, clause=of_core, hint=_OF_CORE[of_core])
    if toks and toks[0].upper == "EVENT":
        raise ParseError("UNKNOWN_CLAUSE", span=toks[0].span, clause=toks[0].text, hint="Write PATTERN.")
    if toks and toks[0].upper == "SELECT":
        hint = "Write RETURN, or put the pattern query into parentheses: SELECT … FROM (PATTERN … RETURN …) AS m."
        raise ParseError("UNKNOWN_CLAUSE", span=toks[0].span, clause="SELECT", hint=hint)
