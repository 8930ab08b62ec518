"""The part of ACEL that is not CEL: formulas that compute something of each match of a part.

    AGG(y : s = SUM(a.v) ; A+ a)            Aggregate: an event in y, for each match of the part, with attribute s
    (A+ a FILTER SUM(a.v) > 5) ; B          Judged: asked of what is listed; Measured: asked of registers that runs hold

Source: Bourhis, Riveros, Salas, "ACEL", Sections 5 and 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.formula import Formula
from planner.terms import Asked, Measure, Register


@dataclass(frozen=True)
class Aggregate(Formula):
    """⟦Agg_y[b ← ⊗x(a), …] φ⟧: C of φ with one more event in y, at time e(C), that has the `attributes` (name, what).

    `AGG(y : b = SUM(x.a) ; A+ x)` has number 1, marks {y} and attributes (("b", "SUM(x.a)"),). The `number` tells the
    aggregations of a pattern apart. `marks`: the variables that hold the created event, and hidden ones of our own;
    what is run puts them on the event at e(C), and the attributes are computed of what is listed.
    ([ACEL] Section 5.)
    """

    inner: Formula
    number: int
    marks: frozenset[str]
    attributes: tuple[tuple[str, str], ...]
    is_small = True

    def head(self) -> str:
        shown = ", ".join(f"{name} = {what}" for name, what in self.attributes)
        return f"AGG {self.number} {', '.join(sorted(self.marks))}: {shown}"

    def binds(self) -> frozenset[str]:
        return self.inner.binds() | self.marks

    def always_binds(self) -> frozenset[str]:
        return self.inner.always_binds() | self.marks


@dataclass(frozen=True)
class Judged(Formula):
    """⟦φ FILTER P⟧, where P asks about all of C together: `SUM(x.a) > 5`, `y.b > 5` of a created event y.

    `marks`: hidden ones, on the event at e(C), as of Aggregate; P is asked of what is listed.
    """

    inner: Formula
    number: int
    condition: str
    marks: frozenset[str] = frozenset()
    is_small = True

    def head(self) -> str:
        return f"FILTER {self.number} of the whole: {self.condition}"

    def binds(self) -> frozenset[str]:
        return self.inner.binds() | self.marks

    def always_binds(self) -> frozenset[str]:
        return self.inner.always_binds() | self.marks


@dataclass(frozen=True)
class Measured(Formula):
    """⟦φ FILTER P⟧ as Judged, where runs hold what P asks about: registers, an OR of `sides`. ([ACEL] Section 6.)"""

    inner: Formula
    sides: tuple[Measure, ...]
    condition: str
    filters = True

    def head(self) -> str:
        return f"FILTER by registers: {self.condition}"

    @property
    def registers(self) -> tuple[Register, ...]:
        """Each once."""
        every = (part for side in self.sides for part in (side.left, side.right) if isinstance(part, Register))
        return tuple(dict.fromkeys(every))

    def asks(self) -> Iterator[Asked]:
        return ((one.variable, sql, type) for one in self.registers for sql, type in one.terms)


Round = Aggregate | Judged
"""What is computed of each match of a part; several of them can lie in one match, one after the other."""
