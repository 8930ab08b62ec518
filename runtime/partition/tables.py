"""Conditions that Spark has tabulated: pairs of codes on their way from rows into the relations that look them up.

Beside the rows of events Spark sends a row for each pair of codes of which a condition is TRUE: the number of the
condition, and the two codes in the columns of the terms that it compares. All terms become numbers together
(runtime.partition.terms), so that the codes of pairs and of events are the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from runtime.arrays import AnyArray, IntArray
from runtime.program import NULL_CODE, Program
from runtime.relations import Pairs, Relation


class PairRows(NamedTuple):
    """Which of some rows are pairs (bool[n]), and of these the condition's number and the codes of all terms."""

    among: AnyArray
    numbers: IntArray
    codes: IntArray


def tables_of(program: Program, numbers: IntArray, codes: AnyArray) -> dict[int, Pairs]:
    """The tables, from the rows of pairs: `numbers` says of which condition each is, `codes` has a column a term."""
    found: dict[int, Pairs] = {}
    for number, left, right in program.tables:
        own = codes[numbers == number][:, [left, right]].tolist()
        found[number] = frozenset((_known(a), _known(b)) for a, b in own)
    return found


def _known(code: int) -> int | None:
    return None if code == NULL_CODE else code


def with_tables(program: Program, tables: Mapping[int, Pairs]) -> Program:
    """The program, with the tables where its relations ask for them."""
    timeouts = None if program.timeouts is None else with_tables(program.timeouts, tables)
    return replace(program, machine=_filled(program.machine, tables), timeouts=timeouts)


def _filled(part: Any, tables: Mapping[int, Pairs]) -> Any:
    """A node, or what one is made of."""
    if isinstance(part, Relation):
        return part if part.table is None else replace(part, pairs=tables[part.table])
    if isinstance(part, tuple):
        inside = [_filled(value, tables) for value in part]
        if all(new is old for new, old in zip(inside, part, strict=True)):
            return part
        return type(part)(*inside) if hasattr(part, "_fields") else tuple(inside)
    if is_dataclass(part) and not isinstance(part, type):
        own = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
        made = {name: _filled(value, tables) for name, value in own.items()}
        changed = {name: value for name, value in made.items() if value is not own[name]}
        return replace(part, **changed) if changed else part
    return part
