"""What formulas say of events: conditions on one row, windows, and the sides of conditions on several events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from runtime.monoids import capped
from runtime.own import Own
from runtime.program import ReachKind
from runtime.relations import Relation


@dataclass(frozen=True)
class Predicate:
    """A condition on one row, as Spark SQL over the bare columns; an event satisfies it if it is TRUE (not NULL)."""

    sql: str

    def __str__(self) -> str:
        return self.sql


@dataclass(frozen=True)
class Window:
    """WITHIN. kind 'time': end − start ≤ size (strict: <) in the clock's unit; 'events': < size, in positions. Of
    what a stream holds back, the kind may also be 'runs': as runtime.stream.task.Reach says."""

    kind: ReachKind
    size: int | float
    strict: bool = False

    def __str__(self) -> str:
        if self.kind == "events":
            return f"{self.size} EVENTS"
        return f"{'< ' if self.strict else ''}{self.size}"


@dataclass(frozen=True)
class Term:
    """An attribute of an event of a variable, as Spark SQL over the bare columns.

    `of`: 'each' event; or, where a clause speaks of two consecutive events of the variable, the 'earlier' or 'later'
    one; where it speaks of three, the 'first', 'middle' or 'last'.
    """

    variable: str
    sql: str
    of: str = "each"

    def __str__(self) -> str:
        return f"{self.variable}{'' if self.of == 'each' else f'[{self.of}]'}: {self.sql}"


@dataclass(frozen=True)
class Comparison:
    """left op right; `op` is =, <>, <, <=, >, >=, <=> or IS DISTINCT FROM. All but the last two are not TRUE of a NULL.

    `type`: the Spark type in which the two are compared; both sides are cast to it.
    """

    left: Term
    op: str
    right: Term
    type: str = ""

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class Tabulated:
    """A condition on two events that Spark decides pair by pair: `sql` over the columns left_column(0), …, which are
    `left` on the row of the one event, and right_column(0), …, which are `right` on that of the other.

    `levenshtein(a.s, b.s) < 3` has left and right `s`.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    sql: str


@dataclass(frozen=True)
class Spelled:
    """A condition on several events as Spark SQL: `sql` over the columns spelled_column(0), …, which are the `terms` on
    the rows of their events. `b.v - a.v >= 1` has the terms b: v and a: v."""

    terms: tuple[Term, ...]
    sql: str


def spelled_column(i: int) -> str:
    return f"__cersql_spelled{i}"


def left_column(i: int) -> str:
    return f"__cersql_left{i}"


def right_column(i: int) -> str:
    return f"__cersql_right{i}"


@dataclass(frozen=True)
class Related:
    """A condition that computes with values of several events: `terms` are the operands of `relation`, in their order,
    each cast to the Spark type in `types`. `b.v - a.v >= 1` has the terms a: v and b: v, both as DOUBLE.

    Of a condition that is `tabulated` the terms are codes of what it reads of the left and of the right event.
    `spelled`: the whole as Spark computes it.
    """

    terms: tuple[Term, ...]
    types: tuple[str, ...]
    relation: Relation
    tabulated: Tabulated | None = None
    spelled: Spelled | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return str(self.relation)


@dataclass(frozen=True)
class Test:
    """A predicate on an event of a variable, as one side of a clause that compares events (`of` as in Term)."""

    variable: str
    predicate: Predicate
    of: str = "each"

    def __str__(self) -> str:
        return f"{self.variable}{'' if self.of == 'each' else f'[{self.of}]'}: {self.predicate}"


@dataclass(frozen=True)
class Register:
    """An aggregate that runs hold: FUNCTION(variable.sql), `type` the Spark type of the values; sql None: of events
    (COUNT(x); variable None, too: COUNT(*)). `key`, `key_type`: the key of MAX_BY. `scale`: see runtime.nodes.Register.
    `own`: the user's own function. `truth`: it gives TRUE or FALSE, as 1 or 0. `constant`: it is the same for all
    rows."""

    function: str
    variable: str | None
    sql: str | None = None
    type: str = ""
    key: str | None = None
    key_type: str = ""
    scale: int = 0
    own: Own | None = None
    truth: bool = False
    constant: bool = False

    def __str__(self) -> str:
        column = "" if self.sql is None else f".{self.sql}"
        return f"{self.function}({self.variable or '*'}{column}{'' if self.key is None else f', {self.key}'})"

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        """What is read of each event, as (SQL, type)."""
        read = ((self.sql, self.type), (self.key, self.key_type))
        return tuple((sql, type) for sql, type in read if sql is not None)


@dataclass(frozen=True)
class Measure:
    """A comparison of an aggregate with a number, in the unit of the register, or with another one."""

    left: Register
    op: str
    right: Register | int | float | Fraction

    @property
    def holds_few(self) -> bool:
        """Does a run hold only how the aggregate stands to the number (runtime.monoids.capped)?"""
        return not isinstance(self.right, Register) and capped(self.left.function, self.right) is not None

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


Side = Comparison | Related | Test
"""One side of an OR that speaks of several events."""


Asked = tuple[str | None, str, str]
"""What a condition looks at: (variable, SQL, the type it is cast to); variable None for every event."""


def asked(sides: tuple[Side, ...]) -> Iterator[Asked]:
    """What the sides of an OR compare."""
    for side in sides:
        if isinstance(side, Comparison):
            yield from ((term.variable, term.sql, side.type) for term in (side.left, side.right))
        elif isinstance(side, Related):
            yield from ((term.variable, term.sql, type) for term, type in zip(side.terms, side.types, strict=True))


def parts_of(side: Side) -> tuple[Term | Test, ...]:
    """What a side looks at, event by event."""
    if isinstance(side, Test):
        return (side,)
    return side.terms if isinstance(side, Related) else (side.left, side.right)
