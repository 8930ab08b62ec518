"""CREATE, DROP, SHOW and DESCRIBE of pattern views and functions, read from the words of a statement."""

from __future__ import annotations

from cersql.errors import ParseError
from cersql.language.clause_bodies import name_of
from cersql.language.clauses import letters_apart, misspelt
from cersql.language.lexer import Token, check_brackets, shown, split, strip_quotes
from cersql.language.source import SourceText
from cersql.statements.kinds import CreateFunction, CreateView, Describe, Drop, Parameter, Show, Statement
from cersql.statements.queries import Queries
from cersql.statements.words import Words, not_yet
from runtime.errors import Span


class Definitions(Words):
    """Reads one statement, if it is about a definition."""

    def __init__(self, text: SourceText) -> None:
        super().__init__(text)
        self.queries = Queries(text)

    def statement(self) -> Statement | None:
        """The statement, or None for any other. Raises ParseError."""
        words = [token.upper for token in self.toks[:6]]
        second = self.upper(1)
        self._check_spelling(words)
        if words[0] == "CREATE" and "PATTERN" in words:
            return self._creation()
        if (words[0], second) == ("DROP", "PATTERN"):
            return self._drop()
        if (words[0], second) == ("SHOW", "PATTERNS"):
            return self._show()
        if (words[0], second) == ("SHOW", "PATTERN") and len(words) > 2:  # STREAM and STREAMS are stream.py's
            raise self.expected(2, "STREAMS; SHOW PATTERNS lists views and functions")
        if words[0] in ("DESCRIBE", "DESC") and second == "PATTERN":
            return self._describe()
        return None

    def _check_spelling(self, words: list[str]) -> None:
        """A word that nearly is PATTERN, where Spark has none that is like it."""
        near = len(words) == 2 and words[1] != "PATTERN" and 0 < letters_apart(words[1], "PATTERNS", 2) <= 2
        if words[0] == "SHOW" and near:
            raise misspelt(self.toks[1], "PATTERNS")
        if words[0] not in ("CREATE", "DROP"):
            return
        at = next((i for i, word in enumerate(words) if word in ("VIEW", "FUNCTION")), 0)
        if at > 1 and words[at - 1] != "PATTERN" and letters_apart(words[at - 1], "PATTERN", 2) <= 2:
            raise misspelt(self.toks[at - 1], "PATTERN")
        if words[at : at + 1] == ["FUNCTION"] and words[at - 1] != "PATTERN" and words[0] == "CREATE":
            body = next((i for i in range(at, len(self.toks)) if self.upper(i) == "AS"), len(self.toks))
            if body + 1 < len(self.toks) and self.queries.is_query(body + 1, len(self.toks)):
                raise self.expected(at, "PATTERN FUNCTION")

    def _creation(self) -> CreateView | CreateFunction | None:
        """CREATE [OR REPLACE] [GLOBAL] [TEMPORARY | TEMP] PATTERN VIEW | FUNCTION name … AS query."""
        at, replace, glob, said = 1, False, None, False
        if (self.upper(1), self.upper(2)) == ("OR", "REPLACE"):
            at, replace = 3, True
        while self.upper(at) in ("GLOBAL", "TEMPORARY", "TEMP"):
            glob = self.toks[at] if self.upper(at) == "GLOBAL" else glob
            at, said = at + 1, True
        kind = self.upper(at + 1)
        if self.upper(at) != "PATTERN":
            return None
        if kind not in ("VIEW", "FUNCTION"):
            raise self.expected(at + 1, "VIEW or FUNCTION")
        if (self.upper(at + 2), self.upper(at + 3)) == ("IF", "NOT"):
            raise not_yet("IF NOT EXISTS", self.toks[at + 2], "Write OR REPLACE after CREATE.")
        name = self.name(at + 2, f"the name of the {kind.lower()}")
        if kind == "VIEW":
            return CreateView(name, replace, glob is not None, self._query(at + 3), said)
        if glob is not None:
            raise not_yet("A GLOBAL pattern function", glob, "Leave GLOBAL out: the function belongs to this session.")
        parameters, after = self._parameters(at + 3)
        return CreateFunction(name, replace, parameters, self._query(after))

    def _query(self, at: int) -> Span:
        """The place of the query behind the AS at `at`."""
        if self.upper(at) == "(":
            raise not_yet("A list of columns for a pattern view", self.toks[at], "Name the columns in RETURN.")
        if self.upper(at) != "AS":
            what = "AS (it is temporary, so its name has one part)" if self.upper(at) == "." else "AS"
            raise self.expected(at, what)
        lo, hi = self.unwrapped(at + 1, len(self.toks))
        if lo >= hi:
            raise self.expected(at + 1, "a query, PATTERN … RETURN …")
        return self.span(lo, hi)

    def _parameters(self, at: int) -> tuple[tuple[Parameter, ...], int]:
        """`(x INT, y STRING DEFAULT 'a')` at `at`, and the index behind it."""
        if self.upper(at) != "(":
            return (), at
        if at not in self.close:
            check_brackets(self.toks)
        end = self.close[at]
        found: list[Parameter] = []
        for part in split(_without_angles(self.toks[at + 1 : end])) if end > at + 1 else []:
            found.append(self._parameter(part, self.toks[end]))
            if any(p.name.value.casefold() == found[-1].name.value.casefold() for p in found[:-1]):
                raise ParseError("DUPLICATE_PARAMETER", span=found[-1].name.span, name=found[-1].name.value)
        return tuple(found), end + 1

    def _parameter(self, part: list[Token], after: Token) -> Parameter:
        if not part or not part[0].is_name:
            raise _expected_at(part[0] if part else after, "the name of a parameter")
        words = [token.upper for token in part]
        default = words.index("DEFAULT") if "DEFAULT" in words[1:] else len(part)
        type, value = part[1:default], part[default + 1 :]
        if not type or not (type[0].is_name):
            raise _expected_at(type[0] if type else part[default] if default < len(part) else after, "a type, as INT")
        if default < len(part) and not value:
            raise _expected_at(after, "a value after DEFAULT")
        return Parameter(name_of(part[0]), _joined(type), _joined(value) or None)

    def _drop(self) -> Drop:
        kind, at, if_exists = self.upper(2), 3, False
        if kind not in ("VIEW", "FUNCTION"):  # a STREAM is stream.py's
            raise self.expected(2, "VIEW, FUNCTION or STREAM")
        if (self.upper(3), self.upper(4)) == ("IF", "EXISTS"):
            at, if_exists = 5, True
        name, is_global, after = self.qualified_name(at, f"the name of the {kind.lower()}")
        self.check_end(after)
        return Drop(kind, name, is_global, if_exists)

    def _show(self) -> Show:
        at = 3 if self.upper(2) == "LIKE" else 2
        if at >= len(self.toks) and at == 2:
            return Show(None)
        if at >= len(self.toks) or self.toks[at].kind != "string":
            raise self.expected(at, "LIKE 'name*' or the end of the statement")
        self.check_end(at + 1)
        return Show(strip_quotes(self.toks[at].text))

    def _describe(self) -> Describe:
        at = 3 if self.upper(2) in ("EXTENDED", "VIEW", "FUNCTION") and len(self.toks) > 3 else 2
        name, is_global, after = self.qualified_name(at, "the name of a pattern view or function")
        self.check_end(after)
        return Describe(name, is_global)


def _joined(toks: list[Token]) -> str:
    """The tokens as text without comments; a `>>` that was read as two tokens stays one."""
    pieces = [f"{' ' if i and toks[i - 1].end < token.start else ''}{token.text}" for i, token in enumerate(toks)]
    return "".join(pieces)


def _without_angles(toks: list[Token]) -> list[Token]:
    """The tokens, with the commas of types like MAP<INT, STRING> out of the way of a split at commas. Behind DEFAULT
    `<` is an operator."""
    depth, found = 0, []
    for i, token in enumerate(toks):
        opens = token.text == "<" and i > 0 and toks[i - 1].upper in ("ARRAY", "MAP", "STRUCT")
        depth += 1 if opens else -1 if token.text == ">" and depth else 0
        inside = depth > 0 and token.text == ","
        found.append(Token("string", ",", token.start, token.end) if inside else token)
    return found


def _expected_at(token: Token, what: str) -> ParseError:
    return ParseError("UNEXPECTED_TOKEN", span=token.span, found=shown(token), expected=what)
