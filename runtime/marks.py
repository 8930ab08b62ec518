"""Hidden marks: variables of our own in a formula, which no user wrote. Only this file knows how they are spelled.

A mark is a string, since it travels in formulas, in labels and in a Program. What a user names can never begin as
these do. For `A x ; !B ; A` there are

    type_mark("A")    every A, with an alias or without: what a condition on the bare name A speaks of
    placeholder(0)    stands for the first negated part while its formula is being made
    absent_mark(0)    a match of the first negated part, where its own events have no name
    PASSED            the events that NEXT(R) passes over
    round_mark(1)     the last event of a match of the first part of which something is computed (planner.acel, Round)
    member_mark(1, "x")  the events of x inside these matches
"""

from __future__ import annotations

_HIDDEN = "@"
_PLACEHOLDER = "@!"
_ROUND = "@#"

PASSED = "@:passed"
"""The mark of the events that NEXT(R) passes over."""


def type_mark(type: str) -> str:
    """The mark of all events of a type that has aliases in the pattern."""
    return _HIDDEN + type


def absent_mark(number: int) -> str:
    """The mark of the events of a negated part that nothing else names."""
    return f"{_HIDDEN}not {number}"


def placeholder(number: int) -> str:
    """The mark of what stands for a negated part, by the number of the part."""
    return f"{_PLACEHOLDER}{number}"


def round_mark(number: int) -> str:
    """The mark of the last event of each match of the part with this number."""
    return f"{_ROUND}{number}"


def member_mark(number: int, variable: str) -> str:
    """The mark of the events of a variable inside the matches of the part with this number."""
    return f"{_ROUND}{number}:{variable}"


def is_round(mark: str) -> bool:
    """Is it one of these two?"""
    return mark.startswith(_ROUND)


def member_of(mark: str) -> str | None:
    """The variable of a `member_mark`."""
    return mark.partition(":")[2] or None if is_round(mark) else None


def is_hidden(mark: str) -> bool:
    return mark.startswith(_HIDDEN)


def is_placeholder(mark: str) -> bool:
    return mark.startswith(_PLACEHOLDER)


def placeholder_number(mark: str) -> int | None:
    """The number of the negated part that it stands for, or None if it is no placeholder."""
    return int(mark.removeprefix(_PLACEHOLDER)) if is_placeholder(mark) else None


def visible_name(mark: str) -> str:
    """The mark as a user knows it: of `type_mark(T)` the type T, any other as it is."""
    return mark.removeprefix(_HIDDEN)


def hidden_last(mark: str) -> tuple[bool, str]:
    """A key for sorting: by name, those that the user cannot see behind the others."""
    return is_hidden(mark), mark


FIRST_EVENT, LAST_EVENT = "@:first", "@:last"
"""What stands for the first and the last event of a match, where the name of a variable could stand."""
