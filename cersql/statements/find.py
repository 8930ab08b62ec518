"""What Spark's parser refused: find our parts in it, by tokens alone.

A parser for all of Spark's SQL would be a second Spark, and sqlglot's renders statements otherwise than they were
written. So `find` is text in, places out; cersql/statements/commands.py carries out what it finds:

    Whole            PATTERN … RETURN …, in any order of clauses
    Embedded         SELECT … FROM (PATTERN …) …, INSERT INTO t PATTERN …
    Counted          SELECT count(*) FROM (PATTERN …)
    Explain          EXPLAIN [FORMATTED] and one of these
    CreateView       CREATE [OR REPLACE] [GLOBAL] [TEMPORARY] PATTERN VIEW v AS query
    CreateFunction   CREATE [OR REPLACE] [TEMPORARY] PATTERN FUNCTION f [(x INT DEFAULT 1, …)] AS query without FROM
    Drop             DROP PATTERN VIEW | FUNCTION [IF EXISTS] name
    Show, Describe   SHOW PATTERNS [LIKE 'a*'], DESCRIBE PATTERN name
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cersql.errors import ParseError
from cersql.language.clause_table import BY_FIRST_WORD
from cersql.language.clauses import letters_apart, misspelt
from cersql.language.foreign import check_foreign_query
from cersql.language.lexer import Token, check_brackets, shown, split, strip_quotes
from cersql.language.source import SourceText
from cersql.language.syntax import Name
from cersql.statements import stream as stream_statements
from runtime.errors import Span

GLOBAL_SCHEMA = "global_temp"


@dataclass(frozen=True)
class Whole:
    query: Span


@dataclass(frozen=True)
class Embedded:
    """`lasting`: Spark keeps the statement's text and reads it again later, as it does for views."""

    queries: tuple[Span, ...]
    lasting: bool


@dataclass(frozen=True)
class Counted:
    """`otherwise` is what the statement is if the query cannot be counted without its rows."""

    query: Span
    column: str
    otherwise: Embedded


@dataclass(frozen=True)
class Explain:
    """`mode` as Spark names it, or None; `rest` is the place of what is explained."""

    mode: str | None
    rest: Span
    inner: Whole | Embedded


@dataclass(frozen=True)
class Parameter:
    """A scalar parameter of a pattern function: its Spark type, and its default as SQL."""

    name: Name
    type: str
    default: str | None


@dataclass(frozen=True)
class CreateView:
    name: Name
    replace: bool
    is_global: bool
    query: Span


@dataclass(frozen=True)
class CreateFunction:
    name: Name
    replace: bool
    parameters: tuple[Parameter, ...]
    query: Span


@dataclass(frozen=True)
class Drop:
    kind: str
    name: Name
    is_global: bool | None
    if_exists: bool


@dataclass(frozen=True)
class Show:
    like: str | None


@dataclass(frozen=True)
class Describe:
    name: Name
    is_global: bool | None


Query = Whole | Embedded | Counted | Explain
Statement = (
    Query | CreateView | CreateFunction | Drop | Show | Describe
    | stream_statements.StartStream | stream_statements.StopStream | stream_statements.ShowStreams
)  # fmt: skip

# The first words that a query can have, PATTERN and WITH aside.
_CLAUSES = BY_FIRST_WORD.keys() - {"PATTERN"}
_BEFORE_SUBQUERY = frozenset("FROM JOIN , AS IN TABLE EXISTS UNION EXCEPT INTERSECT MINUS ALL DISTINCT".split())
# After one of these a PATTERN is a name, not a clause …
_BEFORE_NAME = frozenset(
    "FROM JOIN , SELECT BY AS ON AND OR NOT WHERE IN INSERT INTO TABLE OVERWRITE UPDATE "
    "LIKE ILIKE RLIKE REGEXP BETWEEN CASE WHEN THEN ELSE DISTINCT".split()
)
# … and before one of these it is an alias: `FROM t pattern JOIN u`.
_AFTER_ALIAS = frozenset("JOIN ON USING INNER CROSS NATURAL LATERAL WHERE SELECT UNION EXCEPT INTERSECT".split())
_READ_ONCE = frozenset("SELECT WITH FROM INSERT EXPLAIN TABLE VALUES MERGE (".split())


def is_ours(sql: str) -> bool:
    """Whether a text that Spark refuses is ours; a text with a mistake of ours in it is."""
    try:
        return find(sql) is not None
    except ParseError:
        return True


def first_query(sql: str) -> Span:
    """The place of the first query in a statement; of the whole text, where it is none that we know."""
    found = find(sql, every=True)
    return next(iter(queries_of(found)), Span(0, len(sql)))


def queries_of(found: Statement | None) -> tuple[Span, ...]:
    """The places of the queries in a statement."""
    match found:
        case Whole(query) | CreateView(query=query) | CreateFunction(query=query) | Counted(query):
            return (query,)
        case stream_statements.StartStream(query=query):
            return (query,)
        case Embedded(queries, _):
            return queries
        case Explain(inner=inner):
            return queries_of(inner)
    return ()


def find(sql: str, *, every: bool = False) -> Statement | None:
    """Our parts of a text that Spark refused, or None if it has none. Raises ParseError, with its place."""
    first = sql.lstrip()[:7].upper() == "PATTERN"
    if not (every or first or _may_be_ours(sql)):
        return None
    text = SourceText.of(sql)
    try:
        toks = text.statement
    except ParseError as error:
        if every or first or _begins_ours(sql, error):
            raise error.at(sql) from None
        return None  # an unclosed string: Spark says so as well
    if not toks:
        return None
    try:
        found = _Finder(text).statement()
    except ParseError as error:
        raise error.at(sql) from None
    return Whole(Span(toks[0].start, toks[-1].end)) if found is None and every else found


def single_partitions(sql: str) -> list[tuple[Span, str]]:
    """What to put where in a text that Spark refused, so that it takes `f(TABLE(t) ORDER BY ts)`.

    Spark's grammar has no ORDER BY behind a TABLE argument without PARTITION BY or WITH SINGLE PARTITION, and wants
    parentheses around several columns.
    """
    upper = sql.upper()
    if "TABLE" not in upper or ("ORDER" not in upper and "PARTITION" not in upper):
        return []
    text = SourceText.of(sql)
    try:
        toks, closings = text.tokens, text.closings
    except ParseError:
        return []
    found: list[tuple[Span, str]] = []
    for i, token in enumerate(toks[1:], 1):
        if token.upper == "TABLE" and toks[i - 1].text in ("(", ",", "=>"):
            found += _table_clauses(toks, closings, _after_table(toks, closings, i + 1))
    return found


def _table_clauses(toks: Sequence[Token], closings: dict[int, int], at: int) -> Iterator[tuple[Span, str]]:
    """What PARTITION BY and ORDER BY at `at` lack."""
    words = [token.upper for token in toks] + ["", ""]
    alone = True
    while at < len(toks) and words[at + 1] == "BY" and words[at] in ("PARTITION", "DISTRIBUTE", "ORDER", "SORT"):
        if words[at] in ("ORDER", "SORT") and alone:
            yield Span(toks[at].start, toks[at].start), "WITH SINGLE PARTITION "
        alone, at = False, at + 2
        if at in closings:
            at = closings[at] + 1
            continue
        begin, at = at, _after_columns(toks, at)
        if (at > begin and words[at] == ",") or any(word == "," for word in words[begin:at]):
            yield Span(toks[begin].start, toks[begin].start), "("
            yield Span(toks[at - 1].end, toks[at - 1].end), ")"


def _after_columns(toks: Sequence[Token], at: int) -> int:
    """The index behind `a, t.b ASC NULLS LAST` at `at`; behind a comma, `5` and `x => 5` are arguments of the call."""
    begin = at
    while True:
        end = at
        while end < len(toks) and toks[end].is_name:
            end += 1
            if end < len(toks) and toks[end].text == ".":
                end += 1
                continue
            while end < len(toks) and toks[end].upper in ("ASC", "DESC", "NULLS", "FIRST", "LAST"):
                end += 1
            break
        after = toks[end].text if end < len(toks) else ""
        if end == at or after in ("=>", "(") or toks[at].upper in ("TRUE", "FALSE", "NULL"):
            return at - 1 if at > begin else at
        if after != ",":
            return end
        at = end + 1


def _after_table(toks: Sequence[Token], closings: dict[int, int], at: int) -> int:
    """The index behind `(query)`, `(t)` or `db.t` at `at`."""
    if at in closings:
        return closings[at] + 1
    while at + 1 < len(toks) and toks[at + 1].text == ".":
        at += 2
    return at + 1


def _begins_ours(sql: str, unclosed: ParseError) -> bool:
    """Is there a pattern query before a string, a name or a comment that is never closed?"""
    if unclosed.condition != "UNCLOSED" or unclosed.span is None:
        return False
    try:
        finder = _Finder(SourceText(sql[: unclosed.span.start]))
    except ParseError:
        return False
    return any(finder._is_call(i) and finder._is_clause(i) for i in range(len(finder.toks)))


def _may_be_ours(sql: str) -> bool:
    """A cheap first look: some word like PATTERN, or a query that may have it misspelt."""
    upper = sql.upper()
    if upper.lstrip().startswith(("SHOW", "CREATE", "DROP")) and any(word in upper for word in ("PAT", "TERN")):
        return True
    return "PATTERN" in upper or "MATCH_RECOGNIZE" in upper or any(w in upper for w in ("FROM", "SELECT", "RETURN"))


class _Finder:
    """Looks through the tokens of one statement; `lo` and `hi` are indexes of tokens, `hi` after the last."""

    def __init__(self, text: SourceText) -> None:
        self.toks, self.depth, self.close = text.statement, text.depths, text.closings

    def statement(self) -> Statement | None:
        words = [token.upper for token in self.toks[:6]]
        lo, hi = self._unwrapped(0, len(self.toks))
        ours = _Definition(self).statement(words)
        if ours is not None:
            return ours
        if words[0] == "EXPLAIN":
            return self._explain()
        found = self._whole(lo, hi) or self._embedded() or self._appended()
        if found is None:
            self._refuse_misplaced()
        return self._counted(found) or found if isinstance(found, Embedded) else found

    def _counted(self, found: Embedded) -> Counted | None:
        """SELECT count(*) [AS name] FROM (query) [AS name], and nothing else."""
        words = [token.upper for token in self.toks]
        if len(found.queries) != 1 or words[:3] != ["SELECT", "COUNT", "("] or self.toks[3].text not in ("*", "1"):
            return None
        at, column = 5, "count(1)"
        if self._upper(4) != ")":
            return None
        if self._upper(at) != "FROM":
            at += self._upper(at) == "AS"
            if not self.toks[at].is_name:
                return None
            column, at = strip_quotes(self.toks[at].text), at + 1
        if self._upper(at) != "FROM" or self._upper(at + 1) != "(" or (at + 1) not in self.close:
            return None
        if self._span(at + 2, self.close[at + 1]) != found.queries[0]:
            return None
        rest = self.toks[self.close[at + 1] + 1 :]
        rest = rest[1:] if rest and rest[0].upper == "AS" else rest
        alone = not rest or (len(rest) == 1 and rest[0].is_name and rest[0].upper not in _CLAUSES | _AFTER_ALIAS)
        return Counted(found.queries[0], column, found) if alone else None

    def _explain(self) -> Statement | None:
        lo = 2 if self._upper(1) in ("FORMATTED", "EXTENDED", "CODEGEN", "COST") else 1
        mode = self._upper(1) if lo == 2 else None
        if self._upper(lo) == "CREATE" and "PATTERN" in (self._upper(i) for i in range(lo, lo + 5)):
            raise _not_yet("EXPLAIN of CREATE PATTERN VIEW", self.toks[lo], "Write EXPLAIN before the query itself.")
        inner = self._whole(*self._unwrapped(lo, len(self.toks))) or self._embedded()
        return Explain(mode, self._span(lo, len(self.toks)), inner) if inner else None

    # --------------------------------------------------------------- queries

    def _whole(self, lo: int, hi: int) -> Whole | None:
        """The tokens are one query of ours, not SQL around one."""
        if lo >= hi:
            return None
        if (lo == 0 and self._upper(0) == "PATTERN") or self._is_query(lo, hi):
            return Whole(self._span(lo, hi))
        # PATTERN where only we would write it, and no subquery that explains it: ours, if only for the error.
        main = self._main(lo, hi)
        if self._upper(main) == "SELECT" or self._upper(main) in _CLAUSES:
            loose = any(self._is_clause(i) for i in self._level(main, hi) if self._is_call(i))
            if loose and self._embedded() is None:
                return Whole(self._span(lo, hi))
        return None

    def _is_query(self, lo: int, hi: int) -> bool:
        main = self._main(lo, hi)
        head = self._upper(main)
        if head == "PATTERN":
            return self._is_call(main)
        calls = [i for i in self._level(main, hi) if self._is_call(i)]
        if any(self._upper(i - 1) == "FROM" and self._upper(i + 1) == "[" for i in calls):
            return True  # Esper: SELECT … FROM PATTERN [ … ]
        return head in _CLAUSES and any(self._is_clause(i) and self._upper(i + 1) not in _AFTER_ALIAS for i in calls)

    def _embedded(self) -> Embedded | None:
        queries: list[Span] = []
        i = 0
        while i < len(self.toks):
            if self._upper(i) == "MATCH_RECOGNIZE" and self._upper(i + 1) == "(":
                check_foreign_query(self.toks[i : i + 2])
            if self._upper(i) == "(" and self._takes_subquery(i):
                end = self.close.get(i, len(self.toks))
                if self._is_query(i + 1, end):
                    if i not in self.close:
                        check_brackets(self.toks)
                    queries.append(self._span(i + 1, end))
                    i = end
            i += 1
        return Embedded(tuple(queries), self._upper(0) not in _READ_ONCE) if queries else None

    def _appended(self) -> Embedded | None:
        """A query without parentheses that ends INSERT INTO t …, CREATE TABLE t AS …, CACHE TABLE t AS …."""
        if self._upper(0) not in ("INSERT", "CREATE", "CACHE"):
            return None
        for i in self._level(0, len(self.toks)):
            begins = i > 0 and (self._upper(i) in BY_FIRST_WORD or self._upper(i) == "WITH")
            after = self._is_clause(i) if self._upper(0) == "INSERT" else self._upper(i - 1) == "AS"
            if begins and after and self._is_query(i, len(self.toks)):
                return Embedded((self._span(i, len(self.toks)),), self._upper(0) not in _READ_ONCE)
        return None

    def _takes_subquery(self, at: int) -> bool:
        """Whether a query may stand in the parenthesis at `at`: by the word before it, and before others around it."""
        while at > 0 and self._upper(at - 1) == "(":
            at -= 1
        return at == self._main(0, len(self.toks)) or self._upper(at - 1) in _BEFORE_SUBQUERY

    def _main(self, lo: int, hi: int) -> int:
        """The index of the first word after WITH x AS (…), y AS (…)."""
        at = lo
        if self._upper(at) != "WITH":
            return at
        at += 1
        while at < hi:
            if self._upper(at) == "(":
                at = self.close.get(at, hi) + 1
                if self._upper(at) not in (",", "AS"):
                    return at
            at += 1
        return lo

    def _refuse_misplaced(self) -> None:
        """Nothing of ours in an accepted place: an error if it is clear what was meant."""
        calls = [i for i in range(len(self.toks)) if self._is_call(i)]
        for i in calls:
            if (
                self._upper(i - 1) == "("
                and i > 1
                and self._upper(i - 2) in ("=", "<", ">", "SELECT", "WHERE", "LATERAL")
            ):
                raise self._expected(i, "a query (PATTERN …) only after FROM, JOIN, a comma, AS, IN or TABLE")
        if not calls and self._upper(0) in ("FROM", "SELECT", "RETURN"):
            self._refuse_misspelt()

    def _refuse_misspelt(self) -> None:
        for i, token in enumerate(self.toks[:-1]):
            if (
                token.kind != "word"
                or not self._is_call(i, token.upper)
                or not 0 < letters_apart(token.upper, "PATTERN", 2) <= 2
            ):
                continue
            if self._upper(i - 1) in (
                "FROM",
                "JOIN",
            ):  # a table `patterns p` is likelier, but for Esper's FROM PATTERN [
                likely = self._upper(i + 1) == "["
            else:
                likely = self._upper(i - 1) == "(" or self._is_clause(i)
            if likely and self._upper(i + 1) not in _AFTER_ALIAS | _CLAUSES:
                raise misspelt(token, "PATTERN")

    # ---------------------------------------------------------------- tokens

    def _is_call(self, i: int, word: str = "PATTERN") -> bool:
        """PATTERN followed by what a pattern can begin with."""
        if self._upper(i) != word or i + 1 >= len(self.toks) or (i > 0 and self.toks[i - 1].text == "."):
            return False
        return self.toks[i + 1].is_name or self._upper(i + 1) in ("(", "[", "!", "¬")

    def _is_clause(self, i: int) -> bool:
        """By the token before it, a new clause can begin at `i`."""
        if i == 0 or (self._upper(i - 1) == "FROM" and self._upper(i + 1) == "["):
            return True
        before = self.toks[i - 1]
        return before.upper not in _BEFORE_NAME and (
            before.kind != "op" or before.text in (")", "]", "}", "*", "+", "?")
        )

    def _level(self, lo: int, hi: int) -> list[int]:
        """The tokens outside all parentheses that open after `lo`."""
        return [i for i in range(lo, hi) if self.depth[i] == self.depth[lo]] if lo < len(self.toks) else []

    def _unwrapped(self, lo: int, hi: int) -> tuple[int, int]:
        """Without parentheses around the whole."""
        while lo < hi and self._upper(lo) == "(" and self.close.get(lo) == hi - 1:
            lo, hi = lo + 1, hi - 1
        return lo, hi

    def _upper(self, i: int) -> str:
        return self.toks[i].upper if 0 <= i < len(self.toks) else ""

    def _span(self, lo: int, hi: int) -> Span:
        return Span(self.toks[lo].start, self.toks[hi - 1].end)

    def _expected(self, at: int, what: str) -> ParseError:
        token = self.toks[at] if at < len(self.toks) else None
        span = token.span if token else Span(self.toks[-1].end, self.toks[-1].end)
        return ParseError("UNEXPECTED_TOKEN", found=shown(token), expected=what, span=span)


class _Definition:
    """The statements about definitions; None for any other."""

    def __init__(self, finder: _Finder) -> None:
        self.finder, self.toks, self.upper = finder, finder.toks, finder._upper

    def statement(self, words: list[str]) -> Statement | None:
        second = words[1] if len(words) > 1 else ""
        stream = stream_statements.parsed(words, self)
        if stream is not None:
            return stream
        self._check_spelling(words)
        if words[0] == "CREATE" and "PATTERN" in words:
            return self._creation()
        if (words[0], second) == ("DROP", "PATTERN"):
            return self._drop()
        if (words[0], second) == ("SHOW", "PATTERNS"):
            return self._show()
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
            if body + 1 < len(self.toks) and self.finder._is_query(body + 1, len(self.toks)):
                raise self.finder._expected(at, "PATTERN FUNCTION")

    def _creation(self) -> CreateView | CreateFunction | None:
        """CREATE [OR REPLACE] [GLOBAL] [TEMPORARY | TEMP] PATTERN VIEW | FUNCTION name … AS query."""
        at, replace, glob = 1, False, None
        if (self.upper(1), self.upper(2)) == ("OR", "REPLACE"):
            at, replace = 3, True
        while self.upper(at) in ("GLOBAL", "TEMPORARY", "TEMP"):
            glob = self.toks[at] if self.upper(at) == "GLOBAL" else glob
            at += 1
        kind = self.upper(at + 1)
        if self.upper(at) != "PATTERN":
            return None
        if kind not in ("VIEW", "FUNCTION"):
            raise self.finder._expected(at + 1, "VIEW or FUNCTION")
        if (self.upper(at + 2), self.upper(at + 3)) == ("IF", "NOT"):
            raise _not_yet("IF NOT EXISTS", self.toks[at + 2], "Write OR REPLACE after CREATE.")
        name = self._simple_name(at + 2, f"the name of the {kind.lower()}")
        if kind == "VIEW":
            return CreateView(name, replace, glob is not None, self._query(at + 3))
        if glob is not None:
            raise _not_yet("A GLOBAL pattern function", glob, "Leave GLOBAL out: the function belongs to this session.")
        parameters, after = self._parameters(at + 3)
        return CreateFunction(name, replace, parameters, self._query(after))

    def _query(self, at: int) -> Span:
        """The place of the query behind the AS at `at`."""
        if self.upper(at) == "(":
            raise _not_yet("A list of columns for a pattern view", self.toks[at], "Name the columns in RETURN.")
        if self.upper(at) != "AS":
            what = "AS (it is temporary, so its name has one part)" if self.upper(at) == "." else "AS"
            raise self.finder._expected(at, what)
        lo, hi = self.finder._unwrapped(at + 1, len(self.toks))
        if lo >= hi:
            raise self.finder._expected(at + 1, "a query, PATTERN … RETURN …")
        return self.finder._span(lo, hi)

    def _parameters(self, at: int) -> tuple[tuple[Parameter, ...], int]:
        """`(x INT, y STRING DEFAULT 'a')` at `at`, and the index behind it."""
        if self.upper(at) != "(":
            return (), at
        if at not in self.finder.close:
            check_brackets(self.toks)
        end = self.finder.close[at]
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
        return Parameter(_name(part[0]), _joined(type), _joined(value) or None)

    def _drop(self) -> Drop:
        kind, at, if_exists = self.upper(2), 3, False
        if kind not in ("VIEW", "FUNCTION"):
            raise self.finder._expected(2, "VIEW or FUNCTION")
        if (self.upper(3), self.upper(4)) == ("IF", "EXISTS"):
            at, if_exists = 5, True
        name, is_global, after = self._qualified_name(at, f"the name of the {kind.lower()}")
        self._check_end(after)
        return Drop(kind, name, is_global, if_exists)

    def _show(self) -> Show:
        at = 3 if self.upper(2) == "LIKE" else 2
        if at >= len(self.toks) and at == 2:
            return Show(None)
        if at >= len(self.toks) or self.toks[at].kind != "string":
            raise self.finder._expected(at, "LIKE 'name*' or the end of the statement")
        self._check_end(at + 1)
        return Show(strip_quotes(self.toks[at].text))

    def _describe(self) -> Describe:
        at = 3 if self.upper(2) in ("EXTENDED", "VIEW", "FUNCTION") and len(self.toks) > 3 else 2
        name, is_global, after = self._qualified_name(at, "the name of a pattern view or function")
        self._check_end(after)
        return Describe(name, is_global)

    def _simple_name(self, at: int, what: str) -> Name:
        if at >= len(self.toks) or not self.toks[at].is_name:
            raise self.finder._expected(at, what)
        return _name(self.toks[at])

    def _qualified_name(self, at: int, what: str) -> tuple[Name, bool | None, int]:
        """`name` or `global_temp.name`: the name, whether it must be a global one, and the index behind it."""
        name = self._simple_name(at, what)
        if self.upper(at + 1) != ".":
            return name, None, at + 1
        if name.value.casefold() != GLOBAL_SCHEMA:
            raise self.finder._expected(at + 1, f"no '.': only {GLOBAL_SCHEMA} can stand before the name")
        return self._simple_name(at + 2, what), True, at + 3

    def _check_end(self, at: int) -> None:
        if at < len(self.toks):
            raise self.finder._expected(at, "the end of the statement")


def _name(token: Token) -> Name:
    return Name(strip_quotes(token.text), token.span, token.kind == "quoted")


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


def _not_yet(construct: str, at: Token, hint: str | None = None) -> ParseError:
    return ParseError("NOT_SUPPORTED_YET", construct=construct, span=at.span, hint=hint)
