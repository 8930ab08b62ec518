"""Errors about the user's text. The whole tree is drawn in runtime.errors and re-exported from `cersql`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from runtime.errors import CersqlError, Condition


class ParseError(CersqlError):
    """The text is not a query."""

    conditions = {
        "UNEXPECTED_TOKEN": Condition("42601", "Found {found}, expected {expected}."),
        "MISSING_CLAUSE": Condition("42601", "The query has no {clause} clause."),
        "DUPLICATE_CLAUSE": Condition("42601", "A second {clause} clause; each clause stands at most once."),
        "EMPTY_CLAUSE": Condition("42601", "{clause} is empty, expected {expected}."),
        "EMPTY_PATTERN": Condition("42601", "The pattern is empty, expected {expected}."),
        "MISSPELT_CLAUSE": Condition("42601", "{word} is no clause of a pattern query."),
        "UNKNOWN_CLAUSE": Condition("42601", "{clause} is no clause of a pattern query."),
        "UNKNOWN_OPERATOR": Condition("42601", "{name} is no operator of a pattern."),
        "TRAILING_TEXT": Condition("42601", "{found} follows the ';' that ends the statement."),
        "UNCLOSED": Condition("42601", "{mark} is never closed."),
        "UNOPENED": Condition("42601", "{mark} closes nothing."),
        "TOO_DEEP": Condition("54001", "The text is nested more than {limit} deep."),
        "NSEQ_PARTS": Condition("42601", "NSEQ has {found} parts, and takes three, of which the second is absent."),
        "COMMA_EXPECTED": Condition("42601", "Found {found} where a comma separates {items}."),
        "RESERVED_NAME": Condition("42601", "{name} is a keyword and cannot be a name here."),
        "RELUCTANT_LOOP": Condition("42601", "{found} would be a reluctant loop, and there are none."),
        "FOREIGN_SYNTAX": Condition("42601", "{found} is not written like this in a pattern."),
        "OTHER_MEANING": Condition("0A000", "{construct} has another meaning in CEQL than here: {meaning}."),
        "MATCH_RECOGNIZE_TEXT": Condition("0A000", "MATCH_RECOGNIZE is not supported yet."),
        "DUPLICATE_PARAMETER": Condition("42734", "Two parameters are called {name}."),
        "BAD_INDEX": Condition("42601", "{index} is no index of an event."),
        "BAD_NUMBER": Condition("42601", "Found {found}, expected {expected}."),
        "BAD_WINDOW": Condition("42601", "Found {found} in {clause}, expected {expected}."),
        "NOT_SUPPORTED_YET": Condition("0A000", "{construct} is not supported yet."),
    }


class BindError(CersqlError):
    """A name, a source or a type does not exist, or does not fit where it stands."""

    conditions = {
        "UNKNOWN_SOURCE": Condition("42P01", "There is no table or view {name}."),
        "UNKNOWN_STREAM": Condition("42704", "There is no pattern stream {name}."),
        "STREAM_EXISTS": Condition("42710", "The pattern stream {name} is running already."),
        "STREAM_RUNNING": Condition("55006", "The pattern stream {name} is running."),
        "NO_STREAM": Condition("0A000", "The query of the pattern stream {name} reads no stream."),
        "STREAM_REPORT": Condition("0A000", "The matches of a stream have no end, so no page can hold them."),
        "OTHER_COLUMNS": Condition("42804", "The DataFrame has the columns {found}, and the query gives {expected}."),
        "NO_SOURCE": Condition(
            "42P01", "The query has no FROM, and no type of its pattern ({types}) is a table or view."
        ),
        "FROM_BESIDE_DATAFRAME": Condition("42601", "The DataFrame is the source, and the text has a FROM of its own."),
        "SAME_SOURCE_NAME": Condition("42712", "Two sources are called {name}."),
        "DUPLICATE_COLUMN": Condition("42701", "{source} has two columns called {name}."),
        "UNKNOWN_TYPE": Condition("42704", "There is no event type {name}."),
        "NO_TYPE_COLUMN": Condition("42704", "{source} has no column of event types, so no row is of the type {name}."),
        "DEFINED_TWICE": Condition("42710", "{name} is defined twice."),
        "UNKNOWN_VARIABLE": Condition("42703", "There is no variable {name} here."),
        "UNKNOWN_COLUMN": Condition("42703", "{name} is not a column of {owner}."),
        "NO_COMMON_TYPE": Condition("42804", "{name} is {types}, and no type holds both."),
        "KEY_TYPES": Condition(
            "42804", "{name} is {types}; as {type}, their common type, different values become equal."
        ),
        "ROW_EXPRESSION": Condition("42803", "{clause} takes expressions over one row, and {construct} reads several."),
        "CONSTANT_KEY": Condition("42601", "{clause} {found} names no column."),
        "UNSTEADY_KEY": Condition(
            "42601", "{found} has another value each time it is computed, and {clause} needs one for each row."
        ),
        "ROWS_AND_EVENTS": Condition(
            "42601", "This WHERE before PATTERN speaks of rows of the sources ({row}) and of events ({event})."
        ),
        "ROWS_OF_SOURCES": Condition(
            "42601", "This condition on single rows speaks of rows of {first} and of {second}."
        ),
        "BARE_WORD": Condition("42703", "{name} is neither a variable, a column nor a function without arguments."),
        "UNQUALIFIED_COLUMN": Condition("42702", "The column {name} can have another value in each event of a match."),
        "AMBIGUOUS_VARIABLE": Condition("42702", "{name} could be the variable {alias} or all events of type {type}."),
        "ALIAS_IS_TYPE": Condition("42712", "The variable {name} looks like the event type {type}."),
        "SAME_NAME": Condition("42712", "The types {name} and {other} would give two columns of one name."),
        "AMBIGUOUS_NAME": Condition("42702", "{name} could be {one} or {other}."),
        "AGG_VARIABLE": Condition("42712", "The variable {name} holds events of the stream, so AGG cannot create it."),
        "AGG_NAME": Condition("42711", "The events of this AGG would have two columns called {name}."),
        "AGG_ATTRIBUTES": Condition("42804", "{name} would hold created events with different attributes."),
        "MIXED_VARIABLE": Condition("42804", "{name} would hold events of the stream and events that AGG creates."),
        "AGGREGATE_NAME": Condition("42710", "{name} cannot be the name of an aggregate function: it {problem}."),
        "AGGREGATE_FUNCTION": Condition("42601", "{name} cannot be an aggregate function: {problem}."),
        "AGGREGATE_LAW": Condition(
            "42601", "{name} is no commutative monoid, since combine is not {law}: with {held}, {left}, and {right}."
        ),
        "AGGREGATE_TYPE": Condition("42704", "{type}, the type of {name}, is no type that Spark knows."),
        "AGGREGATE_ARGUMENTS": Condition("42605", "{function} is not called with so many arguments."),
        "NOT_OF_A_MATCH": Condition("0A000", "{function} cannot be computed over the events of one match."),
        "ONE_ROW": Condition("0A000", "{construct} cannot stand here, where each match is one row."),
        "COLUMN_CLASH": Condition(
            "42711", "RETURN * would have two columns of one name, for {other_kind} {other} and for {kind} {name}."
        ),
        "EVENT_NOT_VALUE": Condition("42846", "{name} stands for whole events, and a value is needed here."),
        "EMPTY_CONDITION": Condition("42601", "A condition is empty."),
        "CONDITION_TOO_LARGE": Condition("54001", "The condition comes to {found} alternatives, the limit is {limit}."),
        "CONDITION_TOO_LONG": Condition(
            "54001", "The condition joins {found} conditions{of} by AND, the limit is {limit}."
        ),
        "ORDER_MISSING": Condition("42601", "The query does not say in which order its events happened."),
        "DESCENDING": Condition("42601", "ORDER BY gives the order in which events happened, which is ascending."),
        "NOT_ORDERABLE": Condition("42822", "{name} is {type}, and {clause} cannot compare its values."),
        "WINDOW_UNIT": Condition("42804", "{found} does not fit as a window here: {problem}."),
        "NEXT_OF_TYPE": Condition("42601", "NEXT(…) in a pattern takes one event type."),
        "MAY_BE_EMPTY": Condition("42601", "This part may match nothing, and {construct} needs an event."),
        "ONLY_ABSENCE": Condition("42601", "Here nothing happens: a '!' stands in a sequence, beside what happens."),
        "ABSENCE_BESIDE_COLON": Condition("42601", "A '!' cannot stand next to ':', where nothing lies between."),
        "ABSENCE_AT_EDGE": Condition(
            "42601", "A '!' at the {edge} of a sequence stands only at the {edge} of the whole pattern."
        ),
        "ABSENCE_WITHOUT_WINDOW": Condition(
            "42601", "A '!' at the {edge} of the pattern needs a window, which says how far {way} to look."
        ),
        "ABSENCE_BESIDE_NOTHING": Condition(
            "42601", "The part {side} this '!' may match nothing, so it is open where the '!' looks."
        ),
        "NAME_IN_NEGATED_PART": Condition("42712", "The variable {name} stands in a negated part and elsewhere."),
        "NEGATED_VARIABLE": Condition("42703", "{name} must not happen, so there are no events of it here."),
        "TWO_NEGATED_PARTS": Condition(
            "42601", "One condition on two negated parts, or on one name for both: {first} and {second}."
        ),
        "NEGATED_OR": Condition("42601", "An OR of conditions on {negated}, which must not happen, and on {other}."),
        "UNKNOWN_STRATEGY": Condition("42704", "There is no selection strategy {name}."),
        "STRATEGY_PATTERN": Condition("42601", "{construct} cannot stand in a pattern under SKIP TILL NEXT MATCH."),
        "BAD_CLAUSE": Condition("42601", "Found {found} in {clause}, expected {expected}."),
        "LATE_OF_WHAT": Condition("42601", "WITH LATE ROWS stands beside a pattern, not beside a statement around it."),
        "CLAUSES_EXCLUDE": Condition("42601", "{one} cannot stand beside {other}."),
        "PART_BY_COVERS": Condition("42601", "PART BY must reach every event, and there is none for {name}."),
        "UNKNOWN_PATTERN": Condition("42704", "There is no {what} {name}."),
        "UNKNOWN_PARAMETER": Condition("42703", "The pattern function {function} has no parameter {name}."),
        "FUNCTION_ARGUMENTS": Condition(
            "42605", "The call of the pattern function {function} does not fit: {problem}."
        ),
        "PARAMETER_NAME": Condition("42712", "The parameter {name} is called like {what} of the pattern."),
        "PARAMETER_TYPE": Condition("42704", "{type} is no type that Spark knows."),
        "UNUSED_PARAMETER": Condition("42703", "The pattern function {function} never uses its parameter {name}."),
        "FUNCTION_WITH_SOURCE": Condition(
            "42601", "A pattern function takes its rows from its TABLE argument, and this query has a FROM."
        ),
        "UNBOUND_PARAMETER": Condition("42P02", "The parameter {name} has no value."),
        "ARGUMENT_COUNT": Condition("07001", "args has {found} values, and the text has {expected} parameters '?'."),
        "NOT_GROUPED": Condition("42803", "{name} has a value in each match, and a row stands for a group of them."),
        "GROUP_KEY": Condition("42803", "GROUP BY needs one value of each match, and {found} {problem}."),
        "NOT_OF_GROUPS": Condition("0A000", "{function} cannot be computed over the matches of a group."),
        "NO_TIMEOUTS": Condition("42703", "{name} is a column of results WITH TIMEOUTS only."),
        "NOT_SUPPORTED_YET": Condition("0A000", "{construct} is not supported yet."),
    }


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like `name`, or None if none does.

    Of names that differ only in case it is the one written more like it, else the first.
    """
    candidates = list(known)
    folded = list(dict.fromkeys(candidate.casefold() for candidate in candidates))
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    same = [candidate for candidate in candidates if close and candidate.casefold() == close[0]]
    return max(same, key=lambda candidate: difflib.SequenceMatcher(None, name, candidate).ratio(), default=None)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """`Did you mean a?`, or None if nothing is near."""
    close = nearest(name, known)
    return f"Did you mean {close}?" if close else None


def suggestion(name: str, known: Iterable[str], what: str, others: Iterable[str] = ()) -> str:
    """`It has: a, b. Did you mean a?` — the list of what there is, and the nearest; `others` can be meant too."""
    listed = list(known)
    ending = did_you_mean(name, [*listed, *others])
    return f"{what}: {', '.join(listed) if listed else '(none)'}.{f' {ending}' if ending else ''}"
