"""A query of CEQL, the language of CORE, said in our clauses.

    SELECT x, y[a]            PATTERN PROJECT(x, y(a) : …)      SELECT *: all, NONE: none
    SELECT ANY | NEXT …       SEMANTICS NXT                     also LAST, MAX, STRICT
    WHERE pattern             PATTERN                           cersql/language/ceql_words.py
    PARTITION BY [a], [b, c]  PARTITION BY a, coalesce(b, c)    rows that lack one take no part
    WITHIN 10 [t]             ORDER BY t WITHIN < 10            t of the last is at most 9 later
    WITHIN 10 EVENTS          WITHIN 11 EVENTS                  the last is at most 10 positions later
    WITHIN 1 HOURS 5 MINUTES  the same
    CONSUME BY ANY            the same
    LIMIT 3                   any three of the matches that end together, not three of all

ORDER BY, WATERMARK and EMIT ON, which CORE has no need of, may stand beside its clauses. What the words mean in CORE is
told by its grammar, `CEQLQueryParser.g4`, and its tests in `evaluation_algorithm/`, where WITHIN 5 EVENTS finds a match
from position 1 to 6, and NOT (SELL) begins one that lists only the events behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cersql.errors import ParseError
from cersql.language import ceql_pattern
from cersql.language.ceql import STRATEGIES, Clause, cut, streams_of, without_strategy
from cersql.language.ceql_words import Words, written
from cersql.language.clause_bodies import MOST_ROWS
from cersql.language.lexer import Token, closing, shown, split
from cersql.language.source import SourceText
from cersql.language.translated import Piece, Translated, kept, kept_all, said
from planner.sql import Sql
from runtime.errors import Span

_CLAUSES = (
    "SELECT", "FROM", "WHERE", "PARTITION BY", "WITHIN", "CONSUME BY", "LIMIT", "ORDER BY", "WATERMARK", "EMIT ON",
)  # fmt: skip
_Selected = tuple[Token | None, Token, list[Token]]  # its stream, its name and its columns


def translated(text: SourceText, toks: list[Token], end: int) -> tuple[Translated, int | None]:
    """The query in our clauses, and how many matches are given at each end; we have no clause for that. Raises
    ParseError with its place in `text`."""
    found = cut(toks)
    assert found is not None
    query = _Query(text, *found, end)
    return Translated.made(Sql(tuple(query.pieces())), text), query.most_at_end() or None


class _Query:
    def __init__(self, text: SourceText, leading: list[Token], clauses: list[Clause], end: int) -> None:
        self.text, self.leading, self.end = text, leading, end
        self.clauses: dict[str, Clause] = {}
        for clause in clauses:
            if clause.kind in self.clauses:
                hint = f"Write one {clause.kind} clause."
                raise ParseError("DUPLICATE_CLAUSE", span=clause.key.span, clause=clause.kind, hint=hint)
            if clause.kind not in _CLAUSES:
                hint = (
                    "A query of ours puts it beside PATTERN … RETURN …; or put this one into parentheses: "
                    "SELECT … FROM (SELECT … WHERE …) AS m."
                )
                expected = "a clause of CEQL: PARTITION BY, WITHIN, CONSUME BY or LIMIT"
                raise _unexpected(clause.key, expected, end, hint)
            if not clause.body:
                expected = "what it chooses" if clause.kind == "SELECT" else "something after it"
                raise ParseError("EMPTY_CLAUSE", span=clause.key.span, clause=clause.kind, expected=expected)
            self.clauses[clause.kind] = clause
        if "FROM" in self.clauses:
            self.clauses["FROM"] = replace(self.clauses["FROM"], body=_each_once(self.clauses["FROM"].body))

    def pieces(self) -> Iterator[Piece]:
        if self.leading:
            yield from [*kept_all(self.leading), said(" ", self.leading[-1])]
        where = self.clauses["WHERE"]
        pattern = ceql_pattern.parse(where.body, where.body[-1].end)
        strategy, selected = self._selected()
        streams = streams_of(self.clauses["FROM"].body if "FROM" in self.clauses else [])
        words = Words(self.text, pattern, streams or [], [(stream, name) for stream, name, _ in selected or ()])
        yield from self._as_it_is("FROM")
        keys = list(self._keys())
        for k, key in enumerate(keys):
            yield said("AND " if k else "WHERE ", key[0][1])
            yield from [*key, said(" IS NOT NULL ", key[-1][1])]
        yield said("PATTERN ", where.key)
        yield from self._projected(words, selected)
        for k, key in enumerate(keys):
            yield said(", " if k else " PARTITION BY ", key[0][1])
            yield from key
        yield said(" ", where.key)
        yield from self._as_it_is("ORDER BY")
        yield from self._as_it_is("WATERMARK")
        yield from self._as_it_is("EMIT ON")
        yield from self._window()
        if strategy is not None:
            yield said(f"SEMANTICS {STRATEGIES[strategy.upper]} ", strategy)
        yield from self._as_it_is("CONSUME BY")
        yield said("RETURN *", self.clauses["SELECT"].key)
        yield from self._none()

    def _as_it_is(self, kind: str) -> Iterator[Piece]:
        clause = self.clauses.get(kind)
        if clause is not None:
            yield said(f"{kind} ", clause.key)
            yield from [*kept_all(clause.body), said(" ", clause.body[-1])]

    # ------------------------------------------------------------ SELECT

    def _selected(self) -> tuple[Token | None, list[_Selected] | None]:
        """The strategy, if another than ALL, and what is selected: for each its stream, name and columns; None: all."""
        strategy, items = without_strategy(self.clauses["SELECT"].body)
        if strategy is not None and STRATEGIES[strategy.upper] is None:
            strategy = None
        if not items:
            raise _unexpected(None, "what is selected: *, NONE or variables", self.end)
        if [item.upper for item in items] == ["*"]:
            return strategy, None
        if [item.upper for item in items] == ["NONE"]:
            return strategy, []
        found = []
        for item in split(items):
            stream, rest = (item[0], item[2:]) if len(item) > 1 and item[1].upper == ">" else (None, item)
            hint = (
                "For example: SELECT a, b[name, price] FROM S WHERE A AS a; B AS b. It takes variables, no expressions."
            )
            if not rest or not rest[0].is_name:
                raise _unexpected(rest[0] if rest else None, "a variable or an event type", self.end, hint)
            columns = rest[1:]
            if columns and (columns[0].upper != "[" or closing(columns, 0) != len(columns) - 1):
                raise _unexpected(columns[0], "a comma, FROM, or columns in brackets", self.end, hint)
            found.append((stream, rest[0], columns[1:-1]))
        return strategy, found

    def _projected(self, words: Words, selected: list[_Selected] | None) -> Iterator[Piece]:
        """The pattern, with what is selected of it around."""
        if selected is None:
            yield from words.said()
            return
        yield said("PROJECT(", self.clauses["SELECT"].key)
        seen: dict[str, list[Piece]] = {}
        for stream, name, columns in selected:
            for target in words.names(stream, name):
                seen.setdefault(target[0], [target]).extend(
                    [said("(", name), *kept_all(columns), said(")", name)] if columns else []
                )
        for k, target_pieces in enumerate(seen.values()):
            if k:
                yield said(", ", target_pieces[0][1])
            yield from target_pieces
        yield said(" : ", self.clauses["WHERE"].key)
        yield from [*words.said(), said(")", self.clauses["WHERE"].body[-1].end)]

    # ------------------------------------------------------------ the other clauses

    def _keys(self) -> Iterator[list[Piece]]:
        """Each key of PARTITION BY."""
        clause = self.clauses.get("PARTITION BY")
        for item in split(clause.body) if clause is not None else []:
            hint = "A key in brackets: PARTITION BY [a], [b]. [a, b] is one key, of a or else of b."
            if not item or item[0].upper != "[" or closing(item, 0) != len(item) - 1:
                raise _unexpected(item[0] if item else None, "a key in brackets", self.end, hint)
            names = split(item[1:-1])
            for name in names:
                if len(name) != 1 or not name[0].is_name:
                    raise _unexpected(name[-1] if name else item[-1], "the name of an attribute", self.end, hint)
            inside = [piece for name in names for piece in (written(name[0]), said(", ", name[0]))][:-1]
            yield [said("coalesce(", item[0]), *inside, said(")", item[-1])] if len(names) > 1 else inside

    def _window(self) -> Iterator[Piece]:
        clause = self.clauses.get("WITHIN")
        if clause is None:
            return
        body = clause.body
        number, unit = body[0], body[1] if len(body) > 1 else None
        if number.kind != "number" or unit is None:
            hint = "For example: WITHIN 100 EVENTS, WITHIN 10 [t] or WITHIN 1 HOURS 30 MINUTES."
            if number.upper == "TIMESTAMP":
                hint = f"In the files of CORE's experiments it stands for a number. {hint}"
            expected = "a number, and then EVENTS, a unit of time or [the attribute that is the time]"
            wrong = number if number.kind != "number" else body[-1]
            raise ParseError(
                "BAD_WINDOW", span=wrong.span, found=shown(wrong), clause="WITHIN", expected=expected, hint=hint
            )
        if unit.upper in ("EVENT", "EVENTS"):
            self._check_end(body, 2)
            yield from self._positions(number, unit)
        elif unit.upper == "[":
            yield from self._attribute(body)
        else:
            yield said("WITHIN ", clause.key)
            yield from [*kept_all(body), said(" ", body[-1])]

    def _check_end(self, body: Sequence[Token], at: int) -> None:
        if at < len(body):
            raise _unexpected(body[at], "the next clause", self.end)

    def _positions(self, number: Token, unit: Token) -> Iterator[Piece]:
        """`10 EVENTS`: the last event is at most ten positions after the first, so that the match spans eleven."""
        count = _whole(number)
        if "PARTITION BY" in self.clauses:
            hint = (
                "Number the events of the whole stream in a column, and take it for the time: FROM (SELECT *, "
                f"row_number() OVER (ORDER BY ts) AS n FROM S) AS S … WITHIN {count + 1} [n]. For the events of each "
                f"key write it with us: FROM S PATTERN … PARTITION BY … WITHIN {count + 1} EVENTS RETURN *."
            )
            meaning = "it counts the events of all keys, and ours counts those of one"
            span = number.span | unit.span
            raise ParseError(
                "OTHER_MEANING", span=span, construct="EVENTS beside PARTITION BY", meaning=meaning, hint=hint
            )
        yield said(f"WITHIN {count + 1} ", number)
        yield from [kept(unit), said(" ", unit)]

    def _attribute(self, body: list[Token]) -> Iterator[Piece]:
        """`10 [t]`: the last event's t is at most nine greater than the first's."""
        number, end = body[0], closing(body, 1)
        name = body[2:end]
        if end is None or len(name) != 1 or not name[0].is_name:
            raise _unexpected(name[-1] if name else body[-1], "the attribute that is the time", self.end)
        self._check_end(body, end + 1)
        order = self.clauses.get("ORDER BY")
        if order is not None:
            hint = f"WITHIN {number.text} [{name[0].text}] says that {name[0].text} is the time."
            raise ParseError("DUPLICATE_CLAUSE", span=order.key.span, clause="ORDER BY", hint=hint)
        if _whole(number) == 0:
            hint = "WITHIN 1 [t] holds events of the same t."
            raise ParseError(
                "BAD_WINDOW", span=number.span, found="0", clause="WITHIN", expected="at least 1", hint=hint
            )
        yield from [said("ORDER BY ", body[1]), written(name[0]), said(" WITHIN < ", number), kept(number)]
        yield said(" ", number)

    def most_at_end(self) -> int | None:
        """`LIMIT 3`: of the matches that end at each position any three."""
        clause = self.clauses.get("LIMIT")
        if clause is None:
            return None
        count = _whole(clause.body[0])
        self._check_end(clause.body, 1)
        if count > MOST_ROWS:
            hint = "Leave LIMIT out to have them all."
            number = clause.body[0]
            raise ParseError(
                "BAD_NUMBER", span=number.span, found=number.text, expected=f"at most {MOST_ROWS}", hint=hint
            )
        return count

    def _none(self) -> Iterator[Piece]:
        """LIMIT 0 is ours."""
        if self.most_at_end() == 0:
            yield said(" LIMIT 0", self.clauses["LIMIT"].key)


def _each_once(streams: list[Token]) -> list[Token]:
    """FROM S, T, T names two streams."""
    kept_ones: list[Token] = []
    seen: set[tuple[str, ...]] = set()
    at = 0
    for item in split(streams):
        with_comma = streams[max(at - 1, 0) : at + len(item)]
        at += len(item) + 1
        written = tuple(token.text.casefold() for token in item)
        if written not in seen:
            kept_ones += with_comma
            seen.add(written)
    return kept_ones


def _whole(token: Token) -> int:
    if token.kind != "number" or not token.text.isdigit() or len(token.text) > 18:
        hint = "For example: WITHIN 100 EVENTS, WITHIN 10 [t], LIMIT 0."
        raise ParseError("BAD_NUMBER", span=token.span, found=shown(token), expected="a whole number", hint=hint)
    return int(token.text)


def _unexpected(token: Token | None, expected: str, end: int, hint: str | None = ceql_pattern.SHAPE) -> ParseError:
    span = token.span if token else Span(end, end)
    return ParseError("UNEXPECTED_TOKEN", span=span, found=shown(token), expected=expected, hint=hint)
