"""Turns the tokens of a pattern into the terminals of grammar.lark.

Words mean different things in different places of a pattern: START is an operator before `(` where an operand is
expected, and a name elsewhere. So this lexer follows whether an operand is expected. It also takes whole stretches
as one terminal: quantifiers, conditions, keys, windows. Notations of other languages are found here too, since their
characters have no terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cersql.errors import ParseError
from cersql.language.clause_bodies import ALL_ROWS, name_of, text_of
from cersql.language.clause_table import ONE_WORD
from cersql.language.clauses import check_misspelt, key_at, letters_apart, reserved, words_at
from cersql.language.foreign import CALLED, every, foreign
from cersql.language.lexer import CLOSING, OPENING, Token, shown
from cersql.language.operators import CALLS, ENDS_FILTER, INFIX, RESERVED, SIGNS, Heading
from cersql.language.syntax import Name, Text, Window
from cersql.language.windows import parse_window
from runtime.errors import Span

OPERAND = "an event type, SEQ(…), (…) or !"
_AFTER = "an operator, a quantifier or a variable"
_RESERVED = RESERVED | ONE_WORD
_PUNCTUATION = {
    "(": "LPAR", ")": "RPAR", "[": "LPAR", "]": "RPAR", ",": "_COMMA", ";": "_THEN", "->": "_THEN", "→": "_THEN",
    ":": "_COLON",
}  # fmt: skip
_ENDS_OPERAND = frozenset(["TYPE", "NAME", "QUANT", "CONDITION", "KEYS", "WINDOW", "RPAR", "COUNT"])
_MOST = 1_000_000


@dataclass(frozen=True)
class Quantifier:
    low: int
    high: int | None
    contiguous: bool


@dataclass(frozen=True)
class Terminal:
    """A terminal of the grammar, the text it covers, and what it stands for."""

    kind: str
    span: Span
    value: Name | Text | Window | Quantifier | str | None = None


class PatternLexer:
    """Runs once over the tokens of one pattern: `A+ a ; B` gives TYPE QUANT NAME _THEN TYPE.

    `ended` is what stands behind it (None: the end of the text).
    """

    def __init__(self, text: str, toks: Sequence[Token], ended: Token | None, end: int) -> None:
        self.text, self.toks, self.ended, self.end = text, toks, ended, end
        self.at = 0
        self.found: list[Terminal] = []

    def run(self) -> Iterator[Terminal]:
        given = 0
        while self.at < len(self.toks):
            token = self.toks[self.at]
            if token.kind == "op":
                self._operator(token)
            elif token.kind == "quoted":
                self._name(token)
            elif token.kind == "word":
                self._word(token)
            elif token.kind == "number" and self._counts_rounds():
                number = self._count(token)
                if not number:
                    raise _bad_number(token, "at least 1", "A part that never happens is written !p.")
                self.emit("COUNT", 1, Quantifier(number, number, False))
            else:
                name = token.text[1:-1].replace("`", "``")
                hint = f"A name in quotes takes back-ticks: `{name}`." if token.kind == "string" else None
                raise self.unexpected(token, OPERAND if self.wants_operand else _AFTER, hint)
            yield from self.found[given:]
            given = len(self.found)

    def _counts_rounds(self) -> bool:
        """Is it the 2 of ITER(p, 2)?"""
        if not self.found or self.found[-1].kind != "_COMMA":
            return False
        depth = 0
        for k in range(len(self.found) - 1, 0, -1):
            kind = self.found[k].kind
            depth += (kind == "RPAR") - (kind == "LPAR")
            if depth < 0:
                return self.found[k - 1].kind == "ITER"
        return False

    @property
    def wants_operand(self) -> bool:
        return not self.found or self.found[-1].kind not in _ENDS_OPERAND

    def peek(self, ahead: int = 1) -> Token | None:
        index = self.at + ahead
        return self.toks[index] if index < len(self.toks) else None

    def next_is(self, written: str, ahead: int = 1) -> bool:
        token = self.peek(ahead)
        return token is not None and token.upper == written

    def unexpected(self, token: Token | None, expected: str, hint: str | None = None) -> ParseError:
        found = token or self.ended
        span = found.span if found else Span(self.end, self.end)
        return ParseError("UNEXPECTED_TOKEN", span=span, found=shown(found), expected=expected, hint=hint)

    def emit(self, kind: str, count: int, value: Name | Text | Window | Quantifier | str | None = None) -> None:
        """One terminal for the next `count` tokens."""
        span = self.toks[self.at].span | self.toks[self.at + count - 1].span
        self.found.append(Terminal(kind, span, value))
        self.at += count

    # ------------------------------------------------------------ marks

    def _operator(self, token: Token) -> None:
        mark, after = token.text, self.peek()
        if mark == ":" and after is not None and after.start == token.end and after.text in ("+", "*", "{"):
            self.at += 1
            self._quantifier(after, token)
        elif mark == "⊕":
            self._quantifier(token, token)
        elif mark in ("+", "*", "?") or (mark == "{" and not self.next_is("-")):
            if mark == "{" and self.wants_operand and not (self.peek() or token).kind == "number":
                raise self.unexpected(token, OPERAND, "Parts are grouped in parentheses: (A ; B).")
            self._quantifier(token, None)
        elif mark == "[" and not (self.wants_operand and not self.next_is("EVERY")):
            self._agreement(token)
        elif mark == "(" and not self.wants_operand and self.found[-1].kind in ("TYPE", "NAME"):
            raise self._call(token)
        elif mark in SIGNS:
            self.emit(SIGNS[mark].terminal, 1, SIGNS[mark].word)
        elif mark in _PUNCTUATION:
            self.emit(_PUNCTUATION[mark], 1, mark)
        else:
            previous = self.toks[self.at - 1] if self.at else None
            raise foreign(token, previous, after) or self.unexpected(token, OPERAND if self.wants_operand else _AFTER)

    def _agreement(self, opening: Token) -> None:
        """`[a, b]` after a part: PART BY (a, b). Where there is no part, Esper's brackets are an error."""
        before = self.toks[self.at - 1] if self.at else None
        self.at += 1
        inside = self._slice(self._stretch(lambda i: False))
        self.at -= 1
        adjacent = any(one.is_name and other.is_name for one, other in pairwise(inside))
        if before is not None and before.upper in CALLS and adjacent:
            raise self.unexpected(opening, "'('", f"Write {before.text}(…).")
        if self.wants_operand or not inside or adjacent or any(_of_condition(token) for token in inside):
            found = foreign(opening, before, self.peek())
            raise found or self.unexpected(opening, OPERAND if self.wants_operand else _AFTER)
        self.found.append(Terminal("_PART_BY", Span(opening.start, opening.start)))
        self.emit("KEYS", len(inside) + 2, text_of(self.text, inside))

    def _call(self, opening: Token) -> ParseError:
        """`name(` is a misspelt operator, or a condition in parentheses as Esper writes it: the error for that."""
        name = self.toks[self.at - 1]
        if name.upper == "PERMUTE":
            error = foreign(name, None, opening)
            assert error is not None
            return error
        if name.upper in CALLED and self.found[-1].kind == "TYPE":
            return ParseError("UNKNOWN_OPERATOR", span=name.span, name=name.text, hint=f"Write {CALLED[name.upper]}.")
        near = [f for f in CALLS if 0 < letters_apart(name.upper, f, 2) <= (1 if len(f) < 4 else 2)]
        if near and self.found[-1].kind == "TYPE":
            near.sort(key=lambda f: letters_apart(name.upper, f, 2))
            return ParseError("UNKNOWN_OPERATOR", span=name.span, name=name.text, hint=f"Did you mean {near[0]}(…)?")
        hint = f"A condition on an event: {name.text} FILTER condition; parts one after the other: SEQ(…) or '->'."
        return self.unexpected(opening, _AFTER, hint)

    def _quantifier(self, token: Token, colon: Token | None) -> None:
        if token.text == "{":
            low, high, count = self._counts(token)
        else:
            low, high = {"+": (1, None), "⊕": (1, None), "*": (0, None), "?": (0, 1)}[token.text]
            count = 1
        kind = "QUANT"
        span = (colon or token).span | self.toks[self.at + count - 1].span
        self.found.append(Terminal(kind, span, Quantifier(low, high, colon is not None)))
        self.at += count
        after = self.toks[self.at] if self.at < len(self.toks) else None
        if after is not None and after.upper == "?":
            hint = "Loops have no order of preference. An optional loop is written with parentheses: (b+)?"
            found = self.text[span.start : after.end]
            raise ParseError("RELUCTANT_LOOP", span=after.span, found=found, hint=hint)

    def _counts(self, opening: Token) -> tuple[int, int | None, int]:
        """Reads `{n}`, `{n,}`, `{n,m}` and says how many tokens that took."""
        if self.next_is(","):
            raise _bad_number(self.peek() or opening, "a number before the comma", "For example {0,3}.")
        low = self._count(self.peek() or opening)
        if self.next_is("}", 2):
            high, used = low, 3
        elif not self.next_is(",", 2):
            raise self.unexpected(self.peek(2), "',' or '}' after a number in {…}", "For example {2}, {2,} or {2,4}.")
        elif self.next_is("}", 3):
            return low, None, 4
        else:
            upper = self.peek(3) or opening
            high, used = self._count(upper), 5
            if not self.next_is("}", 4):
                raise self.unexpected(
                    self.peek(4), "'}' after the second number in {…}", "For example {2}, {2,} or {2,4}."
                )
            if high < low:
                hint = f"The least number comes first: {{{high},{low}}}."
                raise _bad_number(upper, f"at least {low}", hint)
        if high == 0:
            raise _bad_number(self.peek(used - 2) or opening, "at least 1", "A part that never happens is written !p.")
        return low, high, used

    def _count(self, token: Token) -> int:
        if token.kind != "number" or not token.text.isdigit():
            raise _bad_number(token, "a whole number", "For example {2}, {2,} or {2,4}.")
        if len(token.text) > len(str(_MOST)) or int(token.text) > _MOST:
            raise _bad_number(token, f"at most {_MOST}")
        return int(token.text)

    # ------------------------------------------------------------ words

    def _name(self, token: Token) -> None:
        """A type where an operand is expected, else a variable; `x[]` says no more than `x`."""
        if self.wants_operand:
            self.emit("TYPE", 1, name_of(token))
            return
        brackets = self.next_is("[") and self.next_is("]", 2)
        self.emit("NAME", 3 if brackets else 1, name_of(token))

    def _word(self, token: Token) -> None:
        word = token.upper
        if self.wants_operand:
            self._operand_word(token)
        elif word in INFIX:
            if word == "ALL" and [self.next_is(w, k) for k, w in enumerate(("ROWS", "PER", "MATCH"), 1)] == [True] * 3:
                span = token.span | self.toks[self.at + 3].span
                raise ParseError("UNKNOWN_CLAUSE", span=span, clause="ALL ROWS PER MATCH", hint=ALL_ROWS)
            self.emit(INFIX[word].terminal, 1, word)
        elif word == "AS" or (word == "IN" and self._names_after()):
            self._as()
        elif word == "FILTER":
            self._filter()
        elif word == "PART" and words_at(self.toks, self.at, "PART", "BY"):
            self._part_by()
        elif word == "WITHIN":
            self._within()
        elif word in _RESERVED:
            advice = "In parentheses a condition is written p FILTER condition." if word == "WHERE" else ""
            raise reserved(token, advice)
        elif word == "NOT":
            raise self.unexpected(token, "an operator before NOT", "For example A ; NOT B ; C, or SEQ(A, !B, C).")
        else:
            self._name(token)

    def _operand_word(self, token: Token) -> None:
        word, after = token.upper, self.peek()
        if word in CALLS and after is not None and after.upper == "(":
            self.emit(CALLS[word].terminal, 1, word)
            heading = CALLS[word].heading
            if heading is not None:
                self.emit("LPAR", 1, "(")
                self._heading(heading)
        elif word == "NOT":
            self.emit("NOT", 1, word)
        elif word == "ANY":
            self.emit("TYPE", 1, None)
        elif word in _RESERVED:
            instead = INFIX[word].in_front_of_list if word in INFIX else None
            if instead is not None and after is not None and after.upper == "(":
                raise self.unexpected(token, OPERAND, instead)
            starts = after is not None and (after.kind in ("word", "quoted") or after.upper in ("(", "!"))
            if starts and after is not None and after.upper not in _RESERVED:
                hint = f"If {token.text} is meant as a name, it needs back-ticks: `{token.text}`."
                raise self.unexpected(token, OPERAND, hint)
            raise reserved(token)
        else:
            named = after is None or after.upper in _RESERVED or after.upper == "IN"
            wrong = every(token, self.toks[self.at + 1 : self.at + 3]) if word == "EVERY" and not named else None
            if wrong is not None:
                raise wrong
            self._name(token)

    def _heading(self, heading: Heading) -> None:
        """The raw part of `PROJECT(targets : p)` and `AGG(assignments ; p)`."""
        count = self._stretch(lambda i: self.toks[i].upper == heading.mark)
        closing = self.toks[self.at + count] if self.at + count < len(self.toks) else None
        if closing is None or closing.upper != heading.mark:
            raise self.unexpected(closing, f"'{heading.mark}' and a pattern", f"Write {heading.example}.")
        if not count and heading.expected is not None:
            raise self.unexpected(closing, heading.expected)
        if not count:  # no variable remains
            nothing = Span(closing.start, closing.start)
            self.found.append(Terminal(heading.terminal, nothing, Text("", nothing)))
            return
        self.emit(heading.terminal, count, text_of(self.text, self._slice(count)))

    def _slice(self, count: int) -> Sequence[Token]:
        return self.toks[self.at : self.at + count]

    def _stretch(self, stops: Callable[[int], bool]) -> int:
        """Counts the tokens before the enclosing parentheses close, or `stops(index)` at this level."""
        depth = 0
        for index in range(self.at, len(self.toks)):
            mark = self.toks[index].upper
            if depth == 0 and (mark in CLOSING or stops(index)):
                return index - self.at
            depth += 1 if mark in OPENING else -1 if mark in CLOSING else 0
        return len(self.toks) - self.at

    def _names_after(self) -> bool:
        """IN is the papers' AS where a name follows, `R IN x`; `R in ; …` has a variable called in."""
        after = self.peek()
        return after is not None and after.is_name and after.upper not in _RESERVED

    def _as(self) -> None:
        after = self.peek()
        if after is None or not after.is_name:
            raise self.unexpected(after, "a variable name after AS")
        if after.upper in _RESERVED:
            raise reserved(after)
        self.emit("_AS", 1, "AS")
        self._as_name(after)

    def _as_name(self, token: Token) -> None:
        brackets = self.next_is("[") and self.next_is("]", 2)
        self.emit("NAME", 3 if brackets else 1, name_of(token))

    def _filter(self) -> None:
        self.emit("_FILTER", 1, "FILTER")
        count = self._stretch(self._ends_condition)
        if not count:
            raise self.unexpected(self.toks[self.at] if self.at < len(self.toks) else None, "a condition after FILTER")
        check_misspelt(self._slice(count))
        self.emit("CONDITION", count, text_of(self.text, self._slice(count)))

    def _ends_condition(self, index: int) -> bool:
        """A condition ends before a token at its own level that cannot belong to it: of `x > 1 ALL B` before ALL."""
        word = self.toks[index].upper
        before = self.toks[index - 1].upper
        after = self.toks[index + 1].upper if index + 1 < len(self.toks) else ""
        if word in (";", "->", ":", ","):
            return True
        if before == "." or self.toks[index].kind != "word":
            return False
        if word == "ALL":
            return before not in ("LIKE", "ILIKE")
        if word == "PART":
            return words_at(self.toks, index, "PART", "BY") > 0
        if word == "IN":  # of SQL's IN it is never a name that follows
            second = self.toks[index + 2].upper if index + 2 < len(self.toks) else ""
            return index + 1 < len(self.toks) and self.toks[index + 1].is_name and second not in ("(", "[", "{", ".")
        if word == "FILTER":
            second = self.toks[index + 2].upper if index + 2 < len(self.toks) else ""
            return not (after == "(" and second == "WHERE")
        return word in ENDS_FILTER or key_at(self.toks, index) is not None

    def _part_by(self) -> None:
        words = words_at(self.toks, self.at, "PART", "BY")
        opening = self.peek(words)
        if opening is None or opening.upper not in ("(", "["):
            raise self.unexpected(opening, "'(' after PART BY", "Write: PART BY (x.a, y.b), or PART BY (a).")
        self.emit("_PART_BY", words, "PART BY")
        self.at += 1
        count = self._stretch(lambda i: False)
        if not count:
            raise self.unexpected(self.toks[self.at], "keys like x.a in PART BY (…)")
        for token in self._slice(count):
            if token.upper in ("AND", "OR", ";"):
                hint = "Write: PART BY (x.a, y.b)."
                raise ParseError("COMMA_EXPECTED", span=token.span, found=shown(token), items="keys", hint=hint)
        keys = text_of(self.text, self._slice(count))
        self.emit("KEYS", count + 1, keys)

    def _within(self) -> None:
        start = self.at
        self.at += 1
        count = self._stretch(lambda i: False)
        closing = self.toks[self.at + count] if self.at + count < len(self.toks) else self.ended
        if not count:
            raise self.unexpected(closing, "a duration like 10 MINUTES, a number or 100 EVENTS after WITHIN")
        hint = "WITHIN stands last in its parentheses: ((A ; B WITHIN 10 MINUTES) ; C)."
        window = parse_window(self.text, self._slice(count), closing, self.end, hint)
        if window.slide is not None:
            hint = "Windows that slide are those of the whole pattern: the clause WITHIN … SLIDE …."
            raise ParseError("NOT_SUPPORTED_YET", span=window.slide.span, construct="SLIDE inside a pattern", hint=hint)
        self.at = start
        self.emit("WINDOW", count + 1, window)


# What is no attribute in `A[price > 10]`.
_OF_CONDITION = frozenset(
    "= == <> != < <= > >= <=> ≤ ≥ ≠ ∧ ∨ ¬ AND OR NOT IN IS LIKE ILIKE RLIKE REGEXP BETWEEN".split()
)


def _of_condition(token: Token) -> bool:
    """Of a condition or a number in brackets, `A[price > 10]` and `A[2]`, a token says that they hold no attributes."""
    return token.kind == "number" or token.upper in _OF_CONDITION


def _bad_number(token: Token, expected: str, hint: str | None = None) -> ParseError:
    return ParseError("BAD_NUMBER", span=token.span, found=shown(token), expected=expected, hint=hint)
