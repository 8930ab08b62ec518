"""Query: a bound query, the contract between the language and the planner. Whoever fills it can use the planner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.apart import Demand
from planner.formula import Formula
from planner.groups import Groups
from planner.sql import Sql
from planner.terms import Measure
from planner.terms import Window as Window
from runtime.own import Own

SOURCE_COLUMN = "__cersql_source"  # which source a row of a union is from: 0, 1, …

# Columns of a match, as RETURN expressions find them.
START_COLUMN, END_COLUMN, SIZE_COLUMN = "__cersql_start", "__cersql_end", "__cersql_size"
STATUS_COLUMN, REACHED_COLUMN = "__cersql_status", "__cersql_reached"  # WITH TIMEOUTS: strings
ROW_COLUMN = "__cersql_row"  # one combination of events, while something is computed of each


def key_column(i: int) -> str:
    """The match's column of the i-th PARTITION BY column."""
    return f"__cersql_key{i}"


def variable_column(i: int) -> str:
    """The match's column of the i-th variable."""
    return f"__cersql_var{i}"


def gathered_column(i: int) -> str:
    """The match's column of the i-th `Gathered`."""
    return f"__cersql_gathered{i}"


def walked_column(i: int) -> str:
    """The match's column of the i-th `OfEvents`."""
    return f"__cersql_walked{i}"


def output_column(i: int) -> str:
    """The match's column of the i-th item of RETURN, where HAVING reads it."""
    return f"__cersql_out{i}"


@dataclass(frozen=True)
class Column:
    """A column and its Spark type, as in DDL."""

    name: str
    type: str


@dataclass(frozen=True)
class Source:
    """One relation of FROM. `relation` is a SELECT statement, or None for a DataFrame that was handed in. `where`: a
    condition over its own columns; other rows are not read."""

    alias: str
    relation: str | None
    columns: tuple[Column, ...]
    type_column: str | None = None
    where: Sql | None = None


@dataclass(frozen=True)
class Made:
    """A column of the stream that is not simply a column of its only source. `by`: for each source, what it is there,
    as SQL over the source's own columns, or None for NULL."""

    name: str
    by: tuple[Sql | None, ...]


@dataclass(frozen=True)
class Computed:
    """What is known of an expression over one row: its type, under the name that Spark gives it, and whether it has the
    same value each time (`steady`)."""

    column: Column
    steady: bool


@dataclass(frozen=True)
class Variable:
    """A variable of the pattern. `mark` is its name in the formula; `single`: it can hold only one event.

    `columns`: the names of the columns of the sources that it can be bound to. `types`: these with their types, but for
    those that have none, since its sources do not agree. `created`: it holds events that AGG creates, of no source.
    """

    name: str
    mark: str
    single: bool
    columns: tuple[str, ...]
    types: tuple[Column, ...] = ()
    created: bool = False


@dataclass(frozen=True)
class Order:
    """A column of ORDER BY, ascending."""

    column: str
    nulls_last: bool = False


@dataclass(frozen=True)
class Skip:
    """AFTER MATCH SKIP. `to`: 'PAST LAST ROW', 'TO NEXT ROW', 'TO FIRST' or 'TO LAST', the latter two of `mark`."""

    to: str
    mark: str | None = None


@dataclass(frozen=True)
class Key:
    """An attribute that is equal in all events of a match, as SQL on a row, and the type in which it is compared.
    `null`: rows in which it is NULL stay, and are rows of one key."""

    sql: str
    type: str
    null: bool = False


@dataclass(frozen=True)
class Link:
    """A key by different attributes (planner.rewrite.links): a column with the values that a row has as an event, in a
    copy of the row for each. `by`: (attribute as SQL, types of such events, None for any); `type`: in which they are
    compared; `null`: the first attribute may be NULL, too."""

    column: str
    type: str
    by: tuple[tuple[str, tuple[str | None, ...]], ...]
    null: bool = False


@dataclass(frozen=True)
class Gathered:
    """A column of a match: an array of the values of an expression that is computed on rows, one for each element of
    an array of `combinations` of events (structs, called ROW_COLUMN in `value`)."""

    column: str
    combinations: str
    value: Sql

    @property
    def texts(self) -> tuple[str, ...]:
        return self.combinations, self.value.text


@dataclass(frozen=True)
class Folded:
    """A column of a match: what a user's own aggregate function makes of an array of values, `sql`. `each`: of each of
    the arrays in that."""

    column: str
    sql: Sql
    own: Own
    each: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.sql.text,)


PLACE_FIELD = "__cersql_place"
"""A field of events inside a match, INT: the number of the event among all that are listed of the match."""


def folded_column(number: int, k: int) -> str:
    """The match's column with the values of the k-th user's own function in the rounds of a part."""
    return f"__cersql_folded{number}_{k}"


def rounds_column(number: int) -> str:
    """The match's column with the matches of the part of this number, an array in their order (planner.acel.Round)."""
    return f"__cersql_rounds{number}"


def made_column(number: int) -> str:
    """The match's column with the events that they create, an array, each struct with its place first."""
    return f"__cersql_made{number}"


@dataclass(frozen=True)
class Step:
    """What is computed of the matches that the engine gives, in its turn: a column, or (None) a condition that they
    must fulfil."""

    column: str | None
    sql: Sql


@dataclass(frozen=True)
class Created:
    """What AGG, and conditions on parts as a whole, ask of the matches that are listed.

    `steps`: in the order in which they are computed. `identity`: SQL of a struct of what was created, if equal matches
    can be listed more than once. `variables`: the columns of variables that hold created events, with their SQL;
    `size`: SQL of how many events were created in all. `judges`: does some step leave out matches?
    """

    steps: tuple[Step | Folded, ...]
    variables: tuple[tuple[str, Sql], ...] = ()
    size: str = "0"
    identity: str | None = None
    judges: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        return (*(step.sql.text for step in self.steps), *(sql.text for _, sql in self.variables))


@dataclass(frozen=True)
class OfEvents:
    """A column of a match: COUNT, SUM, AVG, MIN or MAX (`function`) over the events of a variable (`mark`), of the
    variable's column `field`, None where each event counts. `shown`: as it is written."""

    column: str
    function: str
    mark: str
    field: str | None
    shown: str


@dataclass(frozen=True)
class Output:
    """A column of the result: an expression over the match's columns. `name` None: Spark's name for `shown`."""

    sql: Sql
    name: str | None
    shown: str


@dataclass(frozen=True)
class Query:
    """A bound query. All names are resolved; conditions are Spark SQL over the columns of the (union of the) sources.

    types: what each type name of the formula demands of a row; `demands`: what is known of it, by which types exclude
    each other. `reads`: the columns that the pattern reads, in schema
    order (they break ties). `used`: for each of `variables`, the columns that RETURN, HAVING and `on_match` read, by
    the variable's names for them, and `held`: the columns of the stream that they are. `made`: how those of `columns`
    are made that are more than a source's own.
    `marks`: the variables that tell matches apart, and what labels hold. `window` bounds the whole match;
    `strategy` is ALL, STRICT, NXT, LAST, MAX or NEXT_MATCH (SKIP TILL NEXT MATCH), and chooses among what fits the
    window; `consume` is NONE, PARTITION or ANY. `timeouts`: also a row for each start whose window closed without a
    match. `keys`: the planner's own, beside PARTITION BY; a row that has NULL in one is in no match. `links`: for
    which rows are copied.
    `watermark_us`: WATERMARK, for a stream. `emit`: when a stream gives a match, EMIT ON; None where nothing is said;
    over a table it changes nothing. `groups`: GROUP BY; then `outputs` and `having` read the columns of groups.
    `on_match`: conditions on the whole match that hold before matches compete.
    `gathered`: what these, and `having` and `outputs`, read beside the columns of a match, in this order;
    `gathered_on_match`: how many of them `on_match` reads. `computed`: the outputs that `having` reads. `created`:
    what is computed before all of these. `counts`: for each of `on_match` the same as an AND of ORs about numbers of
    events, COUNT(b) >= 3, which runs can answer; None where it is another. `asks`: the same about aggregates,
    SUM(b.x) > 5, and `having_asks` for HAVING; `round_asks`: on parts of the pattern, by the numbers of these.
    `most_at_end`: of the matches that end at one event any so many.
    `of_events`: aggregates over the events of one match that conditions, `having` and `outputs` read.
    """

    text: str
    formula: Formula
    sources: tuple[Source, ...]
    columns: tuple[Column, ...]
    types: tuple[tuple[str, str], ...]
    variables: tuple[Variable, ...]
    used: tuple[tuple[str, ...], ...]
    partition_by: tuple[str, ...]
    order_by: tuple[Order, ...]
    reads: tuple[str, ...]
    outputs: tuple[Output, ...]
    window: Window | None = None
    strategy: str = "ALL"
    consume: str = "NONE"
    skip: Skip | None = None
    timeouts: bool = False
    keys: tuple[Key, ...] = ()
    links: tuple[Link, ...] = ()
    marks: tuple[str, ...] = ()
    on_match: tuple[Sql, ...] = ()
    having: tuple[Sql, ...] = ()
    gathered: tuple[Gathered | Folded, ...] = ()
    gathered_on_match: int = 0
    computed: tuple[int, ...] = ()
    of_events: tuple[OfEvents, ...] = ()
    limit: int | None = None
    most_at_end: int | None = None
    uses_size: bool = False
    origins: tuple[tuple[str, Sql], ...] = ()
    warnings: tuple[str, ...] = ()
    watermark_us: int | None = None
    emit: Literal["arrival", "watermark"] | None = None
    groups: Groups | None = None
    made: tuple[Made, ...] = ()
    held: tuple[tuple[str, ...], ...] = ()
    created: Created | None = None
    counts: tuple[tuple[tuple[Measure, ...], ...] | None, ...] = ()
    asks: tuple[tuple[tuple[Measure, ...], ...] | None, ...] = ()
    having_asks: tuple[tuple[tuple[Measure, ...], ...] | None, ...] = ()
    round_asks: tuple[tuple[int, tuple[tuple[Measure, ...], ...]], ...] = ()
    demands: tuple[tuple[str, tuple[Demand, ...]], ...] = ()

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    @property
    def on_matches(self) -> tuple[str, ...]:
        """All SQL over the columns of a match."""
        sqls = (*(output.sql for output in self.outputs), *self.on_match, *self.having)
        grouped = self.groups.on_match if self.groups is not None else ()
        gathered = (text for each in self.gathered for text in each.texts)
        created = () if self.created is None else self.created.texts
        return (*(sql.text for sql in sqls), *grouped, *gathered, *created)
