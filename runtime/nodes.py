"""A node is an operator of a composed program: the program is a tree of them over flat automata.

`(A ; B) UNLESS C` is Unless(Flat A ; B, Flat C). `A ; NOT B ; C` is Join(Flat A, Flat C, vetoes=(Flat B,)). A tree is
data only: runtime.automata makes states of it where the data leads. Five kinds of node are no operators but automata
of their own: runtime.chain_cea, runtime.deferred, runtime.ranged, runtime.pcea and runtime.position_automaton.

Variables are bits of a mask: BEGIN and END are the first two, the variables of the program follow. A guard is a bit of
the symbol. Windows are numbers into Program.inner_windows. A node stands for the automaton that [CEL] Theorem 6.2 or
7.2 builds for its operator in planner.cel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from runtime.arrays import IntArray
from runtime.clauses import Compared, Deciding, Measure, Numbering, Profiles, Register

BEGIN = 1  # the mark of a match's first event, even where projection leaves no variable on it
END = 2  # the mark of an event that ends a match that becomes known later
FIRST_VARIABLE = 2  # the bit of the first variable
VISIBLE = ~(BEGIN | END)


class Node:
    """Any operator. Its parts are its fields that hold nodes, by themselves or in tuples.

    `may_be_empty`: zero copies satisfy it; a sequence may then go around it.
    """

    may_be_empty = False

    def parts(self) -> Iterator[Node]:
        """The direct parts, in the order of the fields."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            yield from (part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, Node))

    def walk(self) -> Iterator[Node]:
        """The node and all below it, from the top."""
        yield self
        for part in self.parts():
            yield from part.walk()

    def has(self, kind: type[Node]) -> bool:
        """Is there a node of this kind in the tree?"""
        return any(isinstance(node, kind) for node in self.walk())

    def rebuilt(self, change: Callable[[Node], Node]) -> Self:
        """The node with each direct part changed."""
        made: dict[str, Any] = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Node):
                made[field.name] = change(value)
            elif isinstance(value, tuple) and value and isinstance(value[0], Node):
                made[field.name] = tuple(map(change, value))
        return replace(self, **made) if made else self  # type: ignore[type-var]

    def with_guards(self, number: Numbering) -> Node:
        """The tree with other numbers for the guards of filters; those of events stay."""
        return self.own_guards(number).rebuilt(lambda part: part.with_guards(number))

    def own_guards(self, number: Numbering) -> Node:
        """The same for what the node itself asks."""
        return self


@dataclass(frozen=True, eq=False)
class Around(Node):
    """What stands around one node, and lets zero copies of it pass."""

    inner: Node

    @property
    def may_be_empty(self) -> bool:  # type: ignore[override]
        return self.inner.may_be_empty


@dataclass(frozen=True, eq=False)
class Flat(Node):
    """A flat automaton. transitions: int64[n, 4] of (source, guard or ALWAYS, index into masks or SKIP, target)."""

    transitions: IntArray
    masks: tuple[int, ...]
    initial: tuple[int, ...]
    final: tuple[int, ...]
    may_be_empty: bool = False


@dataclass(frozen=True, eq=False)
class Bind(Around):
    """φ AS x."""

    mask: int


@dataclass(frozen=True, eq=False)
class Ending(Node):
    """φ with `mask` on the last event of each match."""

    inner: Node
    mask: int


@dataclass(frozen=True, eq=False)
class Restrict(Around):
    """φ FILTER (P₁(x₁) OR …): sides are (mask of the variable, guard bit)."""

    sides: tuple[tuple[int, int], ...]

    def own_guards(self, number: Numbering) -> Node:
        return replace(self, sides=tuple((mask, number(guard)) for mask, guard in self.sides))


@dataclass(frozen=True, eq=False)
class Compare(Around):
    """φ FILTER (Q₁ OR …) with comparisons of events."""

    compared: Compared

    def own_guards(self, number: Numbering) -> Node:
        return replace(self, compared=self.compared.with_guards(number))


@dataclass(frozen=True, eq=False)
class Measured(Node):
    """φ FILTER (Q₁ OR …), where the sides compare aggregates; `shown`: as the user wrote it."""

    inner: Node
    registers: tuple[Register, ...]
    sides: tuple[Measure, ...]
    shown: str


@dataclass(frozen=True, eq=False)
class Candidate(Node):
    """A negated part whose matches are shown to the Across of its number, which decides."""

    inner: Node
    number: int
    profiles: Profiles

    def own_guards(self, number: Numbering) -> Node:
        return replace(self, profiles=self.profiles.with_guards(number))


@dataclass(frozen=True, eq=False)
class Pending(Around):
    """A choice's matches, with all that an Across further out has still to decide about them."""

    deciding: Deciding
    level: int

    def own_guards(self, number: Numbering) -> Node:
        return replace(self, deciding=self.deciding.with_guards(number))


@dataclass(frozen=True, eq=False)
class Across(Around):
    """Keeps what no match of the Candidate fulfils all clauses with. `shows`: what is vetoed, in it or by it, makes a
    move that leads nowhere (WITH TIMEOUTS)."""

    deciding: Deciding
    shows: bool = False

    def own_guards(self, number: Numbering) -> Node:
        return replace(self, deciding=self.deciding.with_guards(number))


@dataclass(frozen=True, eq=False)
class Agree(Around):
    """All events have one value, not NULL; terms are (mask, term), VISIBLE for every event."""

    terms: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Keep(Node):
    """PROJECT: the variables of `mask` stay."""

    inner: Node
    mask: int


@dataclass(frozen=True, eq=False)
class Join(Node):
    """φ ; χ, φ : χ (`contiguous`), or φ ; NOT ψ ; χ with `vetoes`."""

    left: Node
    right: Node
    contiguous: bool = False
    vetoes: tuple[Node, ...] = ()

    @property
    def may_be_empty(self) -> bool:  # type: ignore[override]
        return self.left.may_be_empty and self.right.may_be_empty


@dataclass(frozen=True, eq=False)
class Loop(Node):
    """φ{low, high}, high None: without an end."""

    inner: Node
    low: int
    high: int | None
    contiguous: bool = False

    @property
    def may_be_empty(self) -> bool:  # type: ignore[override]
        return self.low == 0 or self.inner.may_be_empty


@dataclass(frozen=True, eq=False)
class Either(Node):
    """φ OR ψ."""

    left: Node
    right: Node

    @property
    def may_be_empty(self) -> bool:  # type: ignore[override]
        return self.left.may_be_empty or self.right.may_be_empty


@dataclass(frozen=True, eq=False)
class Both(Node):
    """φ AND ψ. The `hidden` variables are the planner's own, and are not compared."""

    left: Node
    right: Node
    hidden: int = 0


@dataclass(frozen=True, eq=False)
class Interleave(Node):
    """φ ALL ψ."""

    left: Node
    right: Node


@dataclass(frozen=True, eq=False)
class Unless(Node):
    """φ UNLESS ψ."""

    inner: Node
    veto: Node


@dataclass(frozen=True, eq=False)
class Start(Node):
    """START(φ)."""

    inner: Node


@dataclass(frozen=True, eq=False)
class Strict(Node):
    """STRICT(φ)."""

    inner: Node


@dataclass(frozen=True, eq=False)
class Greatest(Node):
    """NXT, LAST or MAX of φ (`strategy`); `clause`: of the whole query, so that CONSUME BY makes it forget."""

    strategy: str
    inner: Node
    clause: bool = False


@dataclass(frozen=True, eq=False)
class First(Node):
    """NXT or LAST (`strategy`) among the matches of one start and one end, for AFTER MATCH SKIP: every start has a run
    of its own.

    `shows`: a move of a run that is given up then leads nowhere, instead of being left out (WITH TIMEOUTS).
    """

    inner: Node
    shows: bool = False
    strategy: str = "NXT"


@dataclass(frozen=True, eq=False)
class Within(Node):
    """(φ WITHIN w)."""

    inner: Node
    window: int


@dataclass(frozen=True, eq=False)
class NotBefore(Node):
    """NOT ψ ; φ. `shows`: a match that is vetoed makes a move that leads nowhere (WITH TIMEOUTS)."""

    vetoes: tuple[Node, ...]
    inner: Node
    window: int
    shows: bool = False


@dataclass(frozen=True, eq=False)
class NotBeforeEach(Node):
    """NOT ψ ; φ where ψ asks where a search begins (START, a strategy): it is searched for from each event on, and that
    which began first in the window of the match's end counts."""

    vetoes: tuple[Node, ...]
    inner: Node
    window: int
    shows: bool = False


@dataclass(frozen=True, eq=False)
class BeginsAt(Node):
    """φ whose first event satisfies a guard: on a stream, what was consumed or skipped does not (planner.streaming)."""

    inner: Node
    guard: int


@dataclass(frozen=True, eq=False)
class NotAfter(Node):
    """φ ; NOT ψ."""

    inner: Node
    vetoes: tuple[Node, ...]
    window: int
