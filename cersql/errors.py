"""Errors about the user's text. The whole tree is drawn in runtime.errors and re-exported from `cersql`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from runtime.errors import Condition, CersqlError


class ParseError(CersqlError):
    """The text is not a query."""

    conditions = {
        "SYNTAX": Condition("42601", "{found}: expected {expected}."),
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
