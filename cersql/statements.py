"""What Spark's parser refused: find our parts in it, and leave the rest byte for byte.

`find` is text in, places out, by tokens alone (a parser for all of Spark's SQL would be a second Spark, and sqlglot's
renders statements otherwise than they were written):

    Whole        PATTERN … RETURN …, in any order of clauses      the result is the query's DataFrame
    CreateView   CREATE [OR REPLACE] PATTERN VIEW v AS query      a temporary view of that DataFrame
    Embedded     SELECT … FROM (PATTERN …) …, EXPLAIN PATTERN …   each query becomes SELECT * FROM a private view
    Counted      SELECT count(*) FROM (PATTERN …)                 the workers count, and send no rows

`rewrite` does that with a session. It is what the parser hook calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cersql.clauses import letters_apart, misspelt
from cersql.errors import ParseError
from cersql.foreign import check_foreign_query
from cersql.lexer import OPENING, Token, check_brackets, depths, shown, strip_quotes, tokens
from runtime.errors import CersqlError, Span
from spark_ext import views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RunQuery = Callable[["SparkSession", str, int, int], "DataFrame"]
"""(session, text, start, end) -> the result of the query `text[start:end]`; errors point into `text`."""


@dataclass(frozen=True)
class Whole:
    query: Span


@dataclass(frozen=True)
class CreateView:
    name: str
    replace: bool
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


Statement = Whole | CreateView | Embedded | Counted

# The first words that a query can have, PATTERN and WITH aside.
_CLAUSES = frozenset(
    "FROM DEFINE WHERE PARTITION ORDER WATERMARK WITHIN SEMANTICS CONSUME AFTER RETURN GROUP HAVING LIMIT".split()
)
_BEFORE_SUBQUERY = frozenset("FROM JOIN , AS IN TABLE EXISTS UNION EXCEPT INTERSECT MINUS ALL DISTINCT".split())
# After one of these a PATTERN is a name, not a clause …
_BEFORE_NAME = frozenset("FROM JOIN , SELECT BY AS ON AND OR NOT WHERE IN INTO TABLE OVERWRITE UPDATE".split())
# … and before one of these it is an alias: `FROM t pattern JOIN u`.
_AFTER_ALIAS = frozenset("JOIN ON USING INNER CROSS NATURAL LATERAL WHERE SELECT UNION EXCEPT INTERSECT".split())
_READ_ONCE = frozenset("SELECT WITH FROM INSERT EXPLAIN TABLE VALUES MERGE (".split())


RunCount = Callable[["SparkSession", str, int, int], "DataFrame | None"]
"""The same for the number of matches, a DataFrame of one BIGINT; None if that takes the rows themselves."""


def rewrite(
    spark: SparkSession, sql: str, run_query: RunQuery, run_count: RunCount | None = None, *, every: bool = False
) -> str | DataFrame | None:
    """Another text for Spark, the result itself, or None if the text is not ours.

    `every`: whatever Spark refuses is ours (`cersql.sql`).
    """
    found = find(sql, every=every)
    if found is None:
        return None
    try:
        if isinstance(found, Counted):
            counted = run_count(spark, sql, found.query.start, found.query.end) if run_count else None
            if counted is not None:
                return counted.toDF(found.column)
            found = found.otherwise
        return _carry_out(spark, sql, found, run_query)
    except CersqlError as error:
        raise error.at(sql) from None


def is_ours(sql: str) -> bool:
    """Whether a text that Spark refuses is ours; a text with a mistake of ours in it is."""
    try:
        return find(sql) is not None
    except ParseError:
        return True


def first_query(sql: str) -> Span:
    """The place of the first query in a statement; of the whole text, where it is none that we know."""
    found = find(sql, every=True)
    if isinstance(found, Embedded):
        return found.queries[0]
    return Span(0, len(sql)) if found is None else found.query


def find(sql: str, *, every: bool = False) -> Statement | None:
    """Our parts of a text that Spark refused, or None if it has none. Raises ParseError, with its place."""
    first = sql.lstrip()[:7].upper() == "PATTERN"
    if not (every or first or _may_be_ours(sql)):
        return None
    try:
        toks = tokens(sql)
    except ParseError as error:
        if every or first:
            raise error.at(sql) from None
        return None  # an unclosed string: Spark says so as well
    while toks and toks[-1].text == ";":
        toks.pop()
    if not toks:
        return None
    try:
        found = _Finder(toks).statement()
    except ParseError as error:
        raise error.at(sql) from None
    return Whole(Span(toks[0].start, toks[-1].end)) if found is None and every else found


def _may_be_ours(sql: str) -> bool:
    """A cheap first look: some word like PATTERN, or a query that may have it misspelt."""
    upper = sql.upper()
    return "PATTERN" in upper or "MATCH_RECOGNIZE" in upper or any(w in upper for w in ("FROM", "SELECT", "RETURN"))


def _carry_out(
    spark: SparkSession, sql: str, found: Whole | CreateView | Embedded, run_query: RunQuery
) -> str | DataFrame:
    if isinstance(found, Whole):
        return run_query(spark, sql, found.query.start, found.query.end)
    if isinstance(found, CreateView):
        df = run_query(spark, sql, found.query.start, found.query.end)
        return views.create_view(spark, df, found.name, replace=found.replace)
    results = [run_query(spark, sql, query.start, query.end) for query in found.queries]
    pieces, at = [], 0
    for query, df in zip(found.queries, results, strict=True):
        pieces += [sql[at : query.start], f"SELECT * FROM {views.private_view(spark, df, lasting=found.lasting)}"]
        at = query.end
    return "".join(pieces) + sql[at:]


class _Finder:
    """Looks through the tokens of one statement; `lo` and `hi` are indexes of tokens, `hi` after the last."""

    def __init__(self, toks: list[Token]) -> None:
        self.toks = toks
        self.depth = depths(toks)
        self.close = _closings(toks)

    def statement(self) -> Statement | None:
        words = [token.upper for token in self.toks[:6]]
        lo, hi = self._unwrapped(0, len(self.toks))
        if words[0] == "EXPLAIN":
            return self._explain()
        if words[0] == "CREATE" and "PATTERN" in words:
            created = self._creation()
            if created is not None:
                return created
        self._refuse_later_statements(words)
        found = self._whole(lo, hi) or self._embedded()
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

    # ------------------------------------------------------------ statements

    def _explain(self) -> Statement | None:
        lo = 2 if self._upper(1) in ("FORMATTED", "EXTENDED", "CODEGEN", "COST") else 1
        if self._upper(lo) == "CREATE" and "PATTERN" in (self._upper(i) for i in range(lo, lo + 5)):
            raise _not_yet("EXPLAIN of CREATE PATTERN VIEW", self.toks[lo], "Write EXPLAIN before the query itself.")
        inner = self._whole(*self._unwrapped(lo, len(self.toks)))
        return Embedded((inner.query,), lasting=False) if inner else self._embedded()

    def _refuse_later_statements(self, words: list[str]) -> None:
        second = words[1] if len(words) > 1 else ""
        what = f"{words[0]} {second}"
        if what == "DROP PATTERN":
            raise _not_yet(what, self.toks[1], "DROP VIEW drops a pattern view.")
        if what in ("SHOW PATTERNS", "DESCRIBE PATTERN", "DESC PATTERN"):
            raise _not_yet(what, self.toks[1], "SHOW VIEWS and DESCRIBE name work for pattern views.")

    def _creation(self) -> CreateView | None:
        """CREATE [OR REPLACE] [GLOBAL] [TEMPORARY | TEMP] PATTERN VIEW name AS query."""
        at, replace, glob = 1, False, None
        if (self._upper(1), self._upper(2)) == ("OR", "REPLACE"):
            at, replace = 3, True
        while self._upper(at) in ("GLOBAL", "TEMPORARY", "TEMP"):
            glob = self.toks[at] if self._upper(at) == "GLOBAL" else glob
            at += 1
        if self._upper(at) != "PATTERN" or self._upper(at + 1) not in ("VIEW", "FUNCTION"):
            return None
        if self._upper(at + 1) == "FUNCTION":
            raise _not_yet("CREATE PATTERN FUNCTION", self.toks[at + 1])
        if glob is not None:
            raise _not_yet("A GLOBAL pattern view", glob, "Leave GLOBAL out: the view belongs to this session.")
        name, start = self._view_name(at + 2)
        lo, hi = self._unwrapped(start, len(self.toks))
        if lo >= hi:
            raise self._expected(start, "a query, PATTERN … RETURN …")
        return CreateView(name, replace, self._span(lo, hi))

    def _view_name(self, at: int) -> tuple[str, int]:
        """The name at token `at`, and the index after the AS that follows it."""
        if (self._upper(at), self._upper(at + 1)) == ("IF", "NOT"):
            raise _not_yet("IF NOT EXISTS for pattern views", self.toks[at], "Write OR REPLACE after CREATE.")
        if at >= len(self.toks) or not self.toks[at].is_name:
            raise self._expected(at, "the name of the view")
        if self._upper(at + 1) == "(":
            raise _not_yet("A list of columns for a pattern view", self.toks[at + 1], "Name the columns in RETURN.")
        if self._upper(at + 1) != "AS":
            what = "AS (pattern views are temporary, their names have one part)" if self._upper(at + 1) == "." else "AS"
            raise self._expected(at + 1, what)
        return strip_quotes(self.toks[at].text), at + 2

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

    def _takes_subquery(self, at: int) -> bool:
        """Whether a query may stand in the parenthesis at `at`: by the word before it, and before others around it."""
        while at > 0 and self._upper(at - 1) == "(":
            at -= 1
        return at == 0 or self._upper(at - 1) in _BEFORE_SUBQUERY

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
        bare = [i for i in calls if self.depth[i] == 0]
        for i in bare:
            after_as = self._upper(0) in ("CREATE", "CACHE") and self._upper(i - 1) == "AS"
            if after_as or (self._upper(0) == "INSERT" and self._is_clause(i)):
                hint = "Write SELECT * FROM (PATTERN … RETURN …)."
                raise _not_yet(f"PATTERN without parentheses in {self._upper(0)}", self.toks[i], hint)
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
        return self.toks[i + 1].is_name or self._upper(i + 1) in ("(", "[", "!")

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


def _not_yet(construct: str, at: Token, hint: str | None = None) -> ParseError:
    return ParseError("NOT_SUPPORTED_YET", construct=construct, span=at.span, hint=hint)


def _closings(toks: list[Token]) -> dict[int, int]:
    """The index of the closing parenthesis for that of each opening one."""
    found, stack = {}, []
    for i, token in enumerate(toks):
        if token.kind == "op" and token.text in OPENING:
            stack.append(i)
        elif token.kind == "op" and stack and token.text == OPENING[toks[stack[-1]].text]:
            found[stack.pop()] = i
    return found
