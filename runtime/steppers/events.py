"""What kernels hand on of one event: they make it where they read a feed, so that no function takes all its parts."""

from __future__ import annotations

from typing import Any, NamedTuple

from runtime.arrays import AnyArray


class Event(NamedTuple):
    """An event that moves runs by a table of states: what its nodes remember, and where it stands in time."""

    row: Any  # int64: what nodes remember
    clock: Any  # in which the window of the whole match is measured
    time: Any  # in which windows inside it are, unless by position
    position: Any  # int64: in the stream of its key
    key: Any  # int64
    report: Any  # bool: list the matches that end here
    log: Any  # bool: moves that end no match are roots, too


class Values(NamedTuple):
    """What is read of an event that is compared: the guards in the first `words` numbers of its row, then its terms."""

    symbols: AnyArray  # int64[n, words + terms]
    row: Any
    words: Any


class Compared(NamedTuple):
    """An event that moves runs which compare events."""

    values: Values
    clock: Any  # by which runs have left the window
    start: Any  # of a run that begins with it: the clock, but where something must not happen meanwhile
    position: Any
    serial: Any  # the number of the event among those that were read
