"""What Spark's parser refused: find our parts in it, by its tokens.

A parser for all of Spark's SQL would be a second Spark, and sqlglot's renders statements otherwise than they were
written. So `find` is text in, places out (kinds.py); commands.py carries out what it finds. Each kind of statement is
looked for in a file of its own:

    stream.py         START, STOP, SHOW PATTERN STREAM
    definitions.py    CREATE, DROP, SHOW, DESCRIBE PATTERN
    queries.py        all else: a query, or SQL of Spark's around some
"""

from __future__ import annotations

from cersql.errors import ParseError
from cersql.language.source import SourceText
from cersql.statements import stream
from cersql.statements.definitions import Definitions
from cersql.statements.kinds import Statement, Whole, queries_of
from cersql.statements.queries import Queries
from runtime.errors import Span


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
        found = _statement(text)
    except ParseError as error:
        raise error.at(sql) from None
    return Whole(Span(toks[0].start, toks[-1].end)) if found is None and every else found


def _statement(text: SourceText) -> Statement | None:
    definitions = Definitions(text)
    ours = stream.parsed(definitions) or definitions.statement()
    if ours is not None:
        return ours
    queries = definitions.queries
    return queries.explained() if queries.upper(0) == "EXPLAIN" else queries.found()


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


def _begins_ours(sql: str, unclosed: ParseError) -> bool:
    """Is there a pattern query before a string, a name or a comment that is never closed?"""
    if unclosed.condition != "UNCLOSED" or unclosed.span is None:
        return False
    try:
        queries = Queries(SourceText(sql[: unclosed.span.start]))
    except ParseError:
        return False
    return queries.begin_somewhere()


def _may_be_ours(sql: str) -> bool:
    """A cheap first look: some word like PATTERN, or a query that may have it misspelt."""
    upper = sql.upper()
    if upper.lstrip().startswith(("SHOW", "CREATE", "DROP")) and any(word in upper for word in ("PAT", "TERN")):
        return True
    if upper.lstrip().startswith(("CREATE", "DECLARE")) and any(word in upper for word in ("EVENT", "QUARANTINE")):
        return True
    return "PATTERN" in upper or "MATCH_RECOGNIZE" in upper or any(w in upper for w in ("FROM", "SELECT", "RETURN"))
