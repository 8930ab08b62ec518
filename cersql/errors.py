"""Errors about the user's text. The whole tree is drawn in runtime.errors and re-exported from `cersql`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from runtime.errors import Condition, CersqlError


class ParseError(CersqlError):
    """The text is not a query."""

    conditions = {
        "SYNTAX": Condition("42601", "{found}: expected {expected}."),
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
        "COMMA_EXPECTED": Condition("42601", "Found {found} where a comma separates {items}."),
        "RESERVED_NAME": Condition("42601", "{name} is a keyword and cannot be a name here."),
        "RELUCTANT_LOOP": Condition("42601", "{found} would be a reluctant loop, and there are none."),
        "FOREIGN_SYNTAX": Condition("42601", "{found} is not written like this in a pattern."),
        "MATCH_RECOGNIZE_TEXT": Condition("0A000", "MATCH_RECOGNIZE is not supported yet."),
        "BAD_NUMBER": Condition("42601", "Found {found}, expected {expected}."),
        "BAD_WINDOW": Condition("42601", "Found {found} in {clause}, expected {expected}."),
        "NOT_SUPPORTED_YET": Condition("0A000", "{construct} is not supported yet."),
    }


class BindError(CersqlError):
    """A name, a source or a type does not exist, or does not fit where it stands."""

    conditions = {
        "UNKNOWN_VARIABLE": Condition("42703", "There is no variable {name} here."),
        "UNKNOWN_COLUMN": Condition("42703", "{name} is not a column of {owner}."),
        "NOT_SUPPORTED_YET": Condition("0A000", "{construct} is not supported yet."),
    }


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like `name`, or None if none does."""
    by_fold = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(name.casefold(), list(by_fold), n=1, cutoff=0.6)
    return by_fold[close[0]] if close else None


def suggestion(name: str, known: Iterable[str], what: str) -> str:
    """`It has: a, b. Did you mean a?` — the list of what there is, and the nearest."""
    listed = list(known)
    close = nearest(name, listed)
    ending = f" Did you mean {close}?" if close else ""
    return f"{what}: {', '.join(listed) if listed else '(none)'}.{ending}"
