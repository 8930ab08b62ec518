"""StreamTask: how the rows of one bucket of a stream become matches, and which of them must be kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from runtime.program import ReachKind
from runtime.task import Task

FOREVER = 253_370_764_800_000_000
"""A watermark, in microseconds, of the year 9999: nothing comes after it, so it ends the stream."""

HEAVY = 1 << 12  # rows of a key from which on its engine is kept (runtime.stream.engines)

NEVER = -(1 << 62)  # the watermark before there is one


@dataclass(frozen=True)
class Reach:
    """How far after an event a match that began with it can still change.

    kind 'time' (microseconds) or 'events': as runtime.program.Window, end − start ≤ size (`strict`: <). 'runs': as long
    as the engine has a run that began there or later. 'none': for ever.
    """

    kind: ReachKind
    size: int = 0
    strict: bool = False

    def closed_until(self, watermark: int) -> int:
        """For a reach of time: the latest time from which nothing after the watermark can be reached."""
        return watermark + 1 - self.size if self.strict else watermark - self.size

    def closes_at(self, time: int) -> int:
        """For a reach of time: the least watermark that closes what began at `time`."""
        return time + self.size - 1 if self.strict else time + self.size


class Stated(Protocol):
    """What a state asks of a task: where its rows lie, their time, and its StateFacts."""

    @property
    def slab(self) -> str: ...
    @property
    def time(self) -> str: ...
    @property
    def meaning(self) -> str: ...
    @property
    def described(self) -> str: ...
    @property
    def zone(self) -> str: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def types(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, kw_only=True)
class StateFacts:
    """What the rows in a state are and mean, of every stateful operator.

    `meaning`: names what the state means; another one cannot go on with it. `described`: the same, for people. `zone`:
    the session's time zone, if the conditions can depend on it. `columns`: of the rows that come, with their `types` as
    SQL, for messages. `copies`: copies of it may lie on the host's disk (runtime.stream.local).
    """

    meaning: str = ""
    described: str = ""
    zone: str = ""
    columns: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    copies: bool = True


@dataclass(frozen=True)
class StreamTask(StateFacts):
    """What a worker does with one bucket. Columns are named as in the batches that Spark sends.

    `slab`: the column that says in which slab of the state a row's key lies. `reach`: what began before it can no
    longer match; rows are held for `windows` of them. `late`: a match is known only when its start has left `reach` (an
    absence after it, AFTER MATCH SKIP); `by_end`: when its end has. `whole`: all rows are held. `spent`: those that
    were consumed or skipped are held as well, and marked (the program's last guard says where a match can begin).
    `arrival`: a match is given out as its last event arrives, since none that comes later can undo it.
    `until`: the column that says of a row that is a pair (Task.pairs) up to which time rows of its values are to come.
    `slot_us`: waiting rows are stored by stretches of so much time. `first`: the first row of each key is held for
    ever. `most_rows`: a key that holds more is an error, which calls it by `key_names`. The others: see StateFacts.
    """

    task: Task
    slab: str
    reach: Reach
    late: bool = False
    by_end: bool = False
    whole: bool = False
    spent: bool = False
    windows: int = 1
    arrival: bool = False
    until: str | None = None
    slot_us: int = 1_000_000
    first: bool = False
    most_rows: int | None = None
    key_names: tuple[str, ...] = ()

    @property
    def time(self) -> str:
        """The column of the time."""
        return self.task.order[0].name

    @property
    def resumes(self) -> bool:
        """Can an engine that has read the rows of a key go on, and give out what ends at new ones?"""
        program = self.task.program
        drops = program.consume or program.skip is not None or program.timeouts is not None
        plain = self.reach.kind == "time" and self.windows == 1 and self.until is None
        held = self.whole or self.spent or self.first or self.most_rows is not None
        return plain and not (self.waits or drops or held or self.task.later is not None)

    @property
    def holds(self) -> Reach:
        """Rows that it has left behind can be in no later match, nor prevent one."""
        return replace(self.reach, size=self.windows * self.reach.size)

    @property
    def waits(self) -> bool:
        """Does anything become known by the time alone?"""
        return self.late or self.task.program.timeouts is not None
