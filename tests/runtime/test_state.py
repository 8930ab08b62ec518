"""What changes while an engine reads is told in one place: the table of docs/architecture.md."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import families
import harness
import numpy as np
from small import shrunk

from runtime.engine import Engine, engine_for
from runtime.program import Program

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
Attribute = tuple[str, str]  # the name of a class, and of an attribute
QUERIES = [
    *((text, "") for texts in families.FAMILIES.values() for text in texts),
    ("A ; B WITHIN 5", "WITH TIMEOUTS"),
    ("A a ; B b WHERE a.x <= b.x WITHIN 5", "WITH TIMEOUTS"),
    ("A ; B WITHIN 6 CONSUME BY ANY", "WITH TIMEOUTS"),
    ("A ; B+ WITHIN 6 SEMANTICS NXT AFTER MATCH SKIP PAST LAST ROW", "WITH TIMEOUTS"),
    ("A ; B+ b WITHIN 6", "HAVING SUM(b.x) >= 0"),
]


def told() -> set[Attribute]:
    """What the page lists."""
    section = PAGE.read_text(encoding="utf-8").split("## The state of an engine")[1].split("\n## ")[0]
    found = set()
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 4 and cells[0].startswith("`"):
            found |= {(cells[0].strip("`"), name) for cell in cells[1:] for name in re.findall(r"`(\w+)`", cell)}
    return found


def ours(value: object) -> bool:
    return type(value).__module__.startswith("runtime.") and not isinstance(value, tuple | frozenset | Enum)


def objects(value: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """All objects of ours that can be reached."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from objects(part, seen)
    elif ours(value) and not isinstance(value, Program) and id(value) not in seen:
        seen[id(value)] = value
        yield value
        for part in vars(value).values():
            yield from objects(part, seen)


def print_of(value: Any) -> Any:
    """What differs where the value does; objects of ours are looked at on their own."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return [(print_of(key), print_of(part)) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return [print_of(part) for part in value]
    if ours(value) and not dataclasses.is_dataclass(value):
        return type(value).__name__
    return repr(value) if not callable(value) else None


def look(engine: Engine, alive: list[Any]) -> dict[tuple[int, Attribute], Any]:
    """`alive` keeps what is seen, so that no later object has the id of one that is gone."""
    seen: dict[int, Any] = {}
    alive.append(seen)
    return {
        (id(thing), (owner(type(thing), name), name)): print_of(value)
        for thing in objects(engine, seen)
        for name, value in vars(thing).items()
    }


def owner(kind: type, name: str) -> str:
    """The class of ours that an attribute is told of: the first one that knows it."""
    knowing = [base for base in kind.__mro__ if name in getattr(base, "__annotations__", {}) or kind is base]
    return knowing[-1].__name__


def changed(text: str, clause: str) -> set[Attribute]:
    """What changes while a stream is read, in pieces."""
    made, options = families.compiled(text)
    program = harness.compiled(made.query.formula, made.query.window, options)
    if clause:
        program = families.cersql.compile(
            f"FROM t PATTERN {text} ORDER BY ts RETURN * {clause}", families.SCHEMA
        ).program
    rows = harness.rows_of(program, families.stream(random.Random(text), text, 40, 4), keyed=True)
    engine, found, alive = engine_for(program), set(), list[Any]()
    before = look(engine, alive)
    for begin in range(0, len(rows), 4):
        for _ in engine.feed(*rows.cut(begin, min(begin + 4, len(rows)))):
            pass
        after = look(engine, alive)
        found |= {at[1] for at, value in after.items() if at in before and before[at] != value}
        before = after
    return found


def test_the_page_lists_what_changes() -> None:
    found: set[Attribute] = set()
    with shrunk():
        for text, clause in QUERIES:
            found |= changed(text, clause)
    assert found == told()
