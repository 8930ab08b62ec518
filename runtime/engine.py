"""The Engine protocol, and the table of engines.

An engine is incremental: a stream may be cut into feeds anywhere, also with a snapshot and a restore into a fresh
engine between two of them, and gives the same matches. Enumeration is lazy: whoever stops reading stops the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.matches import Matches
from runtime.errors import InternalError
from runtime.program import Program, check_version
from runtime.selection.any_timeouts import AnyTimeoutsEngine
from runtime.selection.consume_any import ConsumeAnyEngine
from runtime.selection.skipping_engine import SkippingEngine
from runtime.selection.taking import TakingEngine
from runtime.selection.timeouts import TimeoutsEngine
from runtime.steppers.bound import BoundEngine
from runtime.steppers.cea_engine import CeaEngine
from runtime.steppers.pcea_engine import PceaEngine
from runtime.steppers.registers_engine import RegistersEngine
from runtime.steppers.timed_engine import TimedEngine


class Engine(Protocol):
    """One automaton model at work on one ordered stream, or on many that follow each other by key."""

    def feed(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        rows: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> Iterator[Matches]:
        """Read events in order; yield the matches that end at them, in chunks of bounded size.

        symbols: int64[n] (or int64[n, words]), bit i for guard i; times: int64[n] or float64[n], non-decreasing in a
        key; positions: int64[n] in the key's stream, where a gap stands for events without any guard (default:
        consecutive); keys: int64[n], equal ones adjacent, a new one begins a new stream; rows: int64[n], increasing in
        no particular way, what the matches mention (default: the positions); mute: bool[n], do not report the matches
        that end here. O(n · live states) + output.
        """
        ...

    def count(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> int:
        """Read events; only count the matches."""
        ...

    def flush(self) -> Iterator[Matches]:
        """The stream has ended: yield what only becomes known by that."""
        ...

    def least_row(self) -> int:
        """No later match mentions a row below this."""
        ...

    def snapshot(self) -> bytes: ...

    def restore(self, data: bytes) -> None: ...


ENGINES: dict[str, Callable[[Program], Engine]] = {
    "plain": CeaEngine,
    "composed": CeaEngine,
    "timed": TimedEngine,
    "any": ConsumeAnyEngine,
    "bound": BoundEngine,
    "registers": RegistersEngine,
    "skipping": SkippingEngine,
    "pcea": PceaEngine,
}


def engine_for(program: Program) -> Engine:
    """The engine that runs this program. ExecutionError PROGRAM_VERSION if this release cannot."""
    check_version(program)
    if program.rule not in ENGINES:
        raise InternalError("INTERNAL", detail=f"no engine for the rule {program.rule!r}")
    if program.skip is None or program.skip.waits:
        engine = ENGINES[program.rule](program)
    else:
        engine = TakingEngine(program, ENGINES[program.rule](replace(program, skip=None)))
    if program.timeouts is None:
        return engine
    return (AnyTimeoutsEngine if program.rule == "any" else TimeoutsEngine)(program, engine)
