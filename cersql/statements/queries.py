"""Where in a statement the queries of ours stand: the whole of it, in parentheses, or behind INSERT and CREATE … AS.

SELECT … FROM (PATTERN … RETURN …) AS m JOIN t …      the place in the parentheses
SELECT … FROM S WHERE A ; B                           the whole of it: CEQL
SELECT pattern FROM t                                 none: here PATTERN is a name
"""

from __future__ import annotations

from cersql.language import ceql
from cersql.language.clause_table import BY_FIRST_WORD
from cersql.language.clauses import letters_apart, misspelt
from cersql.language.foreign import check_for_pattern, check_foreign_query, statement_of_core
from cersql.language.lexer import check_brackets, strip_quotes
from cersql.statements.kinds import Counted, Embedded, Explain, Query, Whole
from cersql.statements.words import Words, not_yet
from runtime.errors import Span

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


class Queries(Words):
    """Looks through the words of one statement."""

    def found(self) -> Query | None:
        """The queries of a statement that is none of ours by its first words. Raises ParseError where it is clear that
        one was meant."""
        found = self._whole(*self.unwrapped(0, len(self.toks))) or self._embedded() or self._appended()
        if found is None:
            self._refuse_misplaced()
        return self._counted(found) or found if isinstance(found, Embedded) else found

    def begin_somewhere(self) -> bool:
        """Whether some word begins a pattern query, by its looks."""
        return any(self._is_call(i) and self._is_clause(i) for i in range(len(self.toks)))

    def _counted(self, found: Embedded) -> Counted | None:
        """SELECT count(*) [AS name] FROM (query) [AS name], and nothing else."""
        words = [token.upper for token in self.toks]
        if len(found.queries) != 1 or words[:3] != ["SELECT", "COUNT", "("] or self.toks[3].text not in ("*", "1"):
            return None
        at, column = 5, "count(1)"
        if self.upper(4) != ")":
            return None
        if self.upper(at) != "FROM":
            at += self.upper(at) == "AS"
            if not self.toks[at].is_name:
                return None
            column, at = strip_quotes(self.toks[at].text), at + 1
        if self.upper(at) != "FROM" or self.upper(at + 1) != "(" or (at + 1) not in self.close:
            return None
        if self.span(at + 2, self.close[at + 1]) != found.queries[0]:
            return None
        rest = self.toks[self.close[at + 1] + 1 :]
        rest = rest[1:] if rest and rest[0].upper == "AS" else rest
        alone = not rest or (len(rest) == 1 and rest[0].is_name and rest[0].upper not in _CLAUSES | _AFTER_ALIAS)
        return Counted(found.queries[0], column, found) if alone else None

    def explained(self) -> Explain | None:
        """EXPLAIN and a query, or SQL around some; None where it explains none of ours."""
        lo = 2 if self.upper(1) in ("FORMATTED", "EXTENDED", "CODEGEN", "COST") else 1
        mode = self.upper(1) if lo == 2 else None
        if self.upper(lo) == "CREATE" and "PATTERN" in (self.upper(i) for i in range(lo, lo + 5)):
            raise not_yet("EXPLAIN of CREATE PATTERN VIEW", self.toks[lo], "Write EXPLAIN before the query itself.")
        inner = self._whole(*self.unwrapped(lo, len(self.toks))) or self._embedded()
        return Explain(mode, self.span(lo, len(self.toks)), inner) if inner else None

    def _whole(self, lo: int, hi: int) -> Whole | None:
        """The tokens are one query of ours, not SQL around one."""
        if lo >= hi:
            return None
        if (lo == 0 and self.upper(0) == "PATTERN") or self.is_query(lo, hi) or statement_of_core(self.toks[lo:hi]):
            return Whole(self.span(lo, hi))
        # PATTERN where only we would write it, and no subquery that explains it: ours, if only for the error.
        main = self._main(lo, hi)
        if self.upper(main) == "SELECT" or self.upper(main) in _CLAUSES:
            loose = any(self._is_clause(i) for i in self.level(main, hi) if self._is_call(i))
            if loose and self._embedded() is None:
                return Whole(self.span(lo, hi))
        return None

    def is_query(self, lo: int, hi: int) -> bool:
        """Whether these words are a query of ours, by its first words and the place of PATTERN."""
        main = self._main(lo, hi)
        head = self.upper(main)
        if head == "PATTERN":
            return self._is_call(main)
        calls = [i for i in self.level(main, hi) if self._is_call(i)]
        if any(self.upper(i - 1) == "FROM" and self.upper(i + 1) == "[" for i in calls):
            return True  # Esper: SELECT … FROM PATTERN [ … ]
        if head == "SELECT" and ceql.is_query(self.toks[lo:hi], surely=True):
            return True
        return head in _CLAUSES and any(self._is_clause(i) and self.upper(i + 1) not in _AFTER_ALIAS for i in calls)

    def _embedded(self) -> Embedded | None:
        queries: list[Span] = []
        i = 0
        while i < len(self.toks):
            if self.upper(i) == "MATCH_RECOGNIZE" and self.upper(i + 1) == "(":
                check_foreign_query(self.toks[i : i + 2])
            if self.upper(i) == "(" and self._takes_subquery(i):
                end = self.close.get(i, len(self.toks))
                if self.is_query(i + 1, end):
                    if i not in self.close:
                        check_brackets(self.toks)
                    queries.append(self.span(i + 1, end))
                    i = end
            i += 1
        return Embedded(tuple(queries), self.upper(0) not in _READ_ONCE) if queries else None

    def _appended(self) -> Embedded | None:
        """A query without parentheses that ends INSERT INTO t …, CREATE TABLE t AS …, CACHE TABLE t AS …."""
        if self.upper(0) not in ("INSERT", "CREATE", "CACHE"):
            return None
        for i in self.level(0, len(self.toks)):
            begins = i > 0 and (self.upper(i) in BY_FIRST_WORD or self.upper(i) in ("WITH", "SELECT"))
            after = self._is_clause(i) if self.upper(0) == "INSERT" else self.upper(i - 1) == "AS"
            if begins and after and self.is_query(i, len(self.toks)):
                return Embedded((self.span(i, len(self.toks)),), self.upper(0) not in _READ_ONCE)
        return None

    def _takes_subquery(self, at: int) -> bool:
        """Whether a query may stand in the parenthesis at `at`: by the word before it, and before others around it."""
        while at > 0 and self.upper(at - 1) == "(":
            at -= 1
        return at == self._main(0, len(self.toks)) or self.upper(at - 1) in _BEFORE_SUBQUERY

    def _main(self, lo: int, hi: int) -> int:
        """The index of the first word after WITH x AS (…), y AS (…)."""
        at = lo
        if self.upper(at) != "WITH":
            return at
        at += 1
        while at < hi:
            if self.upper(at) == "(":
                at = self.close.get(at, hi) + 1
                if self.upper(at) not in (",", "AS"):
                    return at
            at += 1
        return lo

    def _refuse_misplaced(self) -> None:
        """Nothing of ours in an accepted place: an error if it is clear what was meant."""
        calls = [i for i in range(len(self.toks)) if self._is_call(i)]
        for i in calls:
            if (
                self.upper(i - 1) == "("
                and i > 1
                and self.upper(i - 2) in ("=", "<", ">", "SELECT", "WHERE", "LATERAL")
            ):
                raise self.expected(i, "a query (PATTERN …) only after FROM, JOIN, a comma, AS, IN or TABLE")
        if not calls and self.upper(0) in ("FROM", "SELECT", "RETURN"):
            self._refuse_misspelt()
        if not calls and self.upper(0) not in ("SELECT", "RETURN"):
            check_for_pattern(self.toks)

    def _refuse_misspelt(self) -> None:
        for i, token in enumerate(self.toks[:-1]):
            if (
                token.kind != "word"
                or not self._is_call(i, token.upper)
                or not 0 < letters_apart(token.upper, "PATTERN", 2) <= 2
            ):
                continue
            if self.upper(i - 1) in ("FROM", "JOIN"):
                # A table `patterns p` is likelier, but for Esper's FROM PATTERN [.
                likely = self.upper(i + 1) == "["
            else:
                likely = self.upper(i - 1) == "(" or self._is_clause(i)
            if likely and self.upper(i + 1) not in _AFTER_ALIAS | _CLAUSES:
                raise misspelt(token, "PATTERN")

    def _is_call(self, i: int, word: str = "PATTERN") -> bool:
        """PATTERN followed by what a pattern can begin with."""
        if self.upper(i) != word or i + 1 >= len(self.toks) or (i > 0 and self.toks[i - 1].text == "."):
            return False
        return self.toks[i + 1].is_name or self.upper(i + 1) in ("(", "[", "!", "¬")

    def _is_clause(self, i: int) -> bool:
        """By the token before it, a new clause can begin at `i`."""
        if i == 0 or (self.upper(i - 1) == "FROM" and self.upper(i + 1) == "["):
            return True
        before = self.toks[i - 1]
        return before.upper not in _BEFORE_NAME and (
            before.kind != "op" or before.text in (")", "]", "}", "*", "+", "?")
        )
