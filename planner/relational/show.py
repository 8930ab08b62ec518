"""A relational plan as text: a branch a paragraph, with its events, what is asked of them, and what must not happen.

2 ways to match, each match once
e0 A / a  ⋈  e1 B / b
  e0.at < e1.at
  without e2 C / C
    e0.at < e2.at
    e2.at < e1.at
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.refusal import Refusal
from planner.relational.branch import Branch, Slot
from planner.relational.conditions import Guard
from planner.relational.planning import RelationalPlan
from planner.relational.sql import Columns, event
from planner.terms import Predicate
from runtime.marks import is_hidden

MOST_SHOWN = 6  # ways to match


class Shown(Columns):
    """Conditions as people read them: e1.is2 is whether event 1 satisfies guard 2."""

    def _test(self, relation: str, guard: Guard) -> str:
        return f"{relation}is{self.guards.setdefault(guard, len(self.guards))}"


def show(made: RelationalPlan | Refusal) -> str:
    """The plan, or why there is none."""
    if isinstance(made, Refusal):
        return f"no relational plan: {made}"
    columns, number = Shown(made.branches), len(made.branches)
    ways = "1 way to match" if number == 1 else f"{number} ways to match"
    lines = [f"{ways}, {'equal matches are one' if made.distinct else 'each match once'}"]
    lines += [f"key of a join: {key.sql}" for key in made.query.keys]
    for branch in made.branches[:MOST_SHOWN]:
        lines += _shown(branch, columns, 0)
    if number > MOST_SHOWN:
        lines.append(f"… and {number - MOST_SHOWN} more")
    if made.strategy != "ALL":
        lines.append(f"of the matches of one end: {made.strategy}")
    if made.one_of_start:
        lines.append("of the matches of one start: the greatest end, of those the NXT-greatest")
    read = {f"is{i}": _conditions(guard) for guard, i in columns.guards.items()}
    read |= {f"value{i}": f"{sql}{f' as {type}' if type else ''}" for (sql, type), i in columns.values.items()}
    used = "\n".join(lines)
    return "\n".join([used, *(f"{name}: {what}" for name, what in read.items() if f".{name}" in used)])


def _shown(branch: Branch, columns: Columns, depth: int) -> Iterator[str]:
    space = "  " * depth
    yield f"{space}{'without ' if depth else ''}{'  ⋈  '.join(map(_event, branch.slots))}"
    space += "  "
    yield from (f"{space}{_plain(columns.sql(condition))}" for condition in branch.conditions)
    for absence in branch.absences:
        yield from _shown(absence.branch, columns, depth + 1)
        yield from (f"{space}  {_plain(columns.sql(condition))}" for condition in absence.conditions)


def _event(slot: Slot) -> str:
    names = ", ".join(sorted(mark for mark in slot.marks if not is_hidden(mark)))
    asked = _conditions(frozenset(part for part in slot.guard if isinstance(part, Predicate)))
    shown = f"{event(slot.number)} {slot.type or 'ANY'}{f' / {names}' if names else ''}"
    return f"{shown} where {asked}" if asked else shown


def _conditions(guard: frozenset[str | Predicate]) -> str:
    return " AND ".join(sorted(map(str, guard)))


def _plain(sql: str) -> str:
    """SQL without the prefix of columns of our own."""
    return sql.replace("__cersql_", "")
