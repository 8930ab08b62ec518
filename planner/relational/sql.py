"""Conditions of branches as Spark SQL over joined rows: event 3 is the relation `e3`.

    Ordered(At((0,)), "<", At((1,)))        e0.__cersql_at < e1.__cersql_at
    Near(0, 1, WITHIN 5)                    e1.__cersql_clock - e0.__cersql_clock <= 5

Rows have columns for all that is asked of them: AT, their place in the stream of their key; CLOCK, what windows
measure; numbers whose bits are the guards that they satisfy; one for each value that is compared. Bits, and no column
for each guard, since then all events of a join often read the same columns, and Spark shuffles these rows once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from planner.relational.branch import Branch, Slot
from planner.relational.conditions import (
    Agreeing,
    At,
    Better,
    Chosen,
    Condition,
    Gapless,
    Guard,
    Near,
    Ordered,
    Passing,
    Same,
    guard_of,
)
from planner.terms import Comparison, Related, Side, Term, Test, parts_of

AT, CLOCK = "__cersql_at", "__cersql_clock"
FIRST_PLACE = 1  # of a key's stream
GUARD_BITS = 62  # of a number
_BEYOND = "9223372036854775807L"  # a place behind all others
_SPELLED = re.compile(r"__cersql_spelled(\d+)\b")

Value = tuple[str, str]
"""An attribute of a row: SQL, and the type it is cast to ('': none)."""


def event(slot: int) -> str:
    """The relation of an event."""
    return f"e{slot}"


def column(slot: int, name: str) -> str:
    return f"{event(slot)}.{name}"


def guards_column(word: int) -> str:
    """The column whose bits are the guards from 62 · word on."""
    return f"__cersql_is{word}"


def value_column(i: int) -> str:
    return f"__cersql_value{i}"


def place(at: At) -> str:
    """The place of the first, or last, of some events."""
    places = [column(slot, AT) for slot in at.slots]
    base = f"{'greatest' if at.last else 'least'}({', '.join(places)})" if len(places) > 1 else "".join(places)
    base = base or str(FIRST_PLACE)
    return f"{base} + {at.plus}" if at.plus else base


def places(slots: Iterable[int]) -> str:
    """The places of events, each once, in order: an array."""
    items = ", ".join(column(slot, AT) for slot in slots)
    return f"array_sort(array_distinct(array({items})))" if items else "CAST(array() AS ARRAY<BIGINT>)"


def nxt_order(places: str) -> str:
    """An array by which the NXT-greatest of sets of places comes first: of two the least place in which they differ is
    in the greater one."""
    return f"array_append({places}, {_BEYOND})"


def last_order(places: str) -> str:
    """An array by which the LAST-greatest comes last."""
    return f"sort_array({places}, FALSE)"


def slots_in(branches: Iterable[Branch]) -> Iterator[Slot]:
    """All events of branches, those of what must not happen too."""
    for branch in branches:
        yield from branch.slots
        yield from slots_in(absence.branch for absence in branch.absences)


def conditions_in(branches: Iterable[Branch]) -> Iterator[Condition]:
    for branch in branches:
        yield from branch.conditions
        for absence in branch.absences:
            yield from absence.conditions
            yield from conditions_in([absence.branch])


class Columns:
    """What rows of a plan are asked for, each with a number; and its conditions as SQL over these.

    `guards`: of events, and of sides that only some of them must satisfy. `values`: each with the types of the events
    of which it is read (None: any). `uses_clock`: does a window of time ask for the clock?
    """

    def __init__(self, branches: Iterable[Branch]) -> None:
        branches = tuple(branches)
        self._types = {slot.number: slot.type for slot in slots_in(branches)}
        self.guards: dict[Guard, int] = {}
        self.values: dict[Value, int] = {}
        self.read_of: dict[Value, set[str | None]] = {}
        self.uses_clock = False
        for slot in slots_in(branches):
            self.accepted(slot)
        for condition in conditions_in(branches):
            self.sql(condition)

    def accepted(self, slot: Slot) -> str | None:
        """The row of an event by itself satisfies its guard; None if any does."""
        return self._test("", slot.guard) if slot.guard else None

    def words(self) -> Iterator[tuple[str, list[tuple[int, Guard]]]]:
        """Each column of guards, with their bits."""
        numbered = [(i, guard) for guard, i in self.guards.items()]
        for word in range(-(-len(numbered) // GUARD_BITS)):
            own = numbered[word * GUARD_BITS : (word + 1) * GUARD_BITS]
            yield guards_column(word), [(i % GUARD_BITS, guard) for i, guard in own]

    def _test(self, relation: str, guard: Guard) -> str:
        """A row of a relation satisfies the guard."""
        word, bit = divmod(self.guards.setdefault(guard, len(self.guards)), GUARD_BITS)
        return f"({relation}{guards_column(word)} & {1 << bit}L) <> 0L"

    def sql(self, condition: Condition) -> str:
        match condition:
            case Ordered(left, op, right):
                return f"{place(left)} {op} {place(right)}"
            case Near(first, last, window):
                if window.kind == "events":
                    return f"{column(last, AT)} - {column(first, AT)} < {window.size}"
                self.uses_clock = True
                size = f"{window.size!r}D" if isinstance(window.size, float) else f"{window.size}L"
                between = f"{column(last, CLOCK)} - {column(first, CLOCK)}"
                return f"{between} {'<' if window.strict else '<='} {size}"
            case Chosen(sides):
                return _any([self._side(side, slots) for side, slots in sides])
            case Passing(sides):
                return _any([" AND ".join(self._passes(*each) for each in side) for side in sides])
            case Agreeing(left, right, type):
                if left == right:
                    return f"{self._value(left[0], left[1], type)} IS NOT NULL"
                return f"{self._value(left[0], left[1], type)} = {self._value(right[0], right[1], type)}"
            case Same(left, right):
                if len(left) == len(right) == 1:
                    return f"{column(left[0], AT)} = {column(right[0], AT)}"
                return f"{places(left)} = {places(right)}"
            case Gapless(events):
                known = places(events)
                return f"size({known}) = 0 OR array_max({known}) - array_min({known}) + 1 = size({known})"
            case Better(rule, rival, own):
                return _better(rule, places(rival), places(own))
        raise TypeError(f"not a condition: {condition!r}")

    def _passes(self, slot: int, guard: Guard) -> str:
        return self._test(f"{event(slot)}.", guard)

    def _value(self, slot: int, sql: str, type: str) -> str:
        value = sql, type
        self.read_of.setdefault(value, set()).add(self._types[slot])
        return column(slot, value_column(self.values.setdefault(value, len(self.values))))

    def _side(self, side: Side, slots: tuple[int, ...]) -> str:
        if isinstance(side, Test):
            return self._passes(slots[0], guard_of(self._types[slots[0]], side.predicate))
        if isinstance(side, Comparison):
            left, right = (
                self._value(slot, term.sql, side.type)
                for slot, term in zip(slots, (side.left, side.right), strict=True)
            )
            return f"{left} {side.op} {right}"
        return self._computed(side, slots)

    def _computed(self, side: Related, slots: tuple[int, ...]) -> str:
        """What Spark computes of several events, as the user wrote it."""
        assert side.spelled is not None, "the binder spells what it makes"
        of = {(t.variable, t.of): slot for t, slot in zip(parts_of(side), slots, strict=True) if isinstance(t, Term)}
        columns = [self._value(of[term.variable, term.of], term.sql, "") for term in side.spelled.terms]
        return _SPELLED.sub(lambda found: columns[int(found[1])], side.spelled.sql)


def _any(sides: Sequence[str]) -> str:
    return sides[0] if len(sides) == 1 else " OR ".join(f"({side})" for side in sides)


def _better(rule: str, rival: str, own: str) -> str:
    """A rival's places are greater in the order of a strategy."""
    if rule == "MAX":
        return f"size(array_except({own}, {rival})) = 0 AND size({own}) < size({rival})"
    if rule == "NXT":
        return f"{nxt_order(rival)} < {nxt_order(own)}"
    return f"{last_order(rival)} > {last_order(own)}"
