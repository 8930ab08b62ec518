"""What a statement can be, and where its queries stand.

Whole            PATTERN … RETURN …, in any order of clauses
Embedded         SELECT … FROM (PATTERN …) …, INSERT INTO t PATTERN …
Counted          SELECT count(*) FROM (PATTERN …)
Explain          EXPLAIN [FORMATTED] and one of these
CreateView       CREATE [OR REPLACE] [GLOBAL] [TEMPORARY] PATTERN VIEW v AS query
CreateFunction   CREATE [OR REPLACE] [TEMPORARY] PATTERN FUNCTION f [(x INT DEFAULT 1, …)] AS query without FROM
Drop             DROP PATTERN VIEW | FUNCTION [IF EXISTS] name
Show, Describe   SHOW PATTERNS [LIKE 'a*'], DESCRIBE PATTERN name
StartStream      START PATTERN STREAM s AS query INTO TABLE t [CHECKPOINT 'path'] [TRIGGER …]
StopStream       STOP PATTERN STREAM s
DropStream       DROP PATTERN STREAM [IF EXISTS] s
ShowStreams      SHOW PATTERN STREAMS
ShowMetrics      SHOW PATTERN STREAM METRICS [s]
"""

from __future__ import annotations

from dataclasses import dataclass

from cersql.language.syntax import Name
from runtime.errors import Span


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
    says_temporary: bool = True
    """TEMPORARY or GLOBAL is written; it is temporary in any case."""


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


@dataclass(frozen=True)
class StartStream:
    """`trigger`: None (as soon as there is something), 'available now', or an interval. `late`: the table of late rows,
    with the place of what asks for it."""

    name: str
    span: Span
    query: Span
    table: str
    checkpoint: str | None
    trigger: str | None
    late: tuple[str, Span] | None = None


@dataclass(frozen=True)
class StopStream:
    name: str
    span: Span


@dataclass(frozen=True)
class DropStream:
    name: str
    span: Span
    if_exists: bool


@dataclass(frozen=True)
class ShowStreams:
    pass


@dataclass(frozen=True)
class ShowMetrics:
    """Of one stream, or of all."""

    name: str | None
    span: Span


Query = Whole | Embedded | Counted | Explain
Statement = (
    Query | CreateView | CreateFunction | Drop | Show | Describe
    | StartStream | StopStream | DropStream | ShowStreams | ShowMetrics
)  # fmt: skip


def queries_of(found: Statement | None) -> tuple[Span, ...]:
    """The places of the queries in a statement."""
    match found:
        case Whole(query) | CreateView(query=query) | CreateFunction(query=query) | Counted(query):
            return (query,)
        case StartStream(query=query):
            return (query,)
        case Embedded(queries, _):
            return queries
        case Explain(inner=inner):
            return queries_of(inner)
    return ()
