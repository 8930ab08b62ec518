"""A node is an operator of a composed program: the program is a tree of them over flat automata.

`(A ; B) UNLESS C` is Unless(Flat A ; B, Flat C). `A ; NOT B ; C` is Join(Flat A, Flat C, vetoes=(Flat B,)). A tree is
data only: runtime.automata makes states of it where the data leads. Two kinds of node are no operators but automata of
their own, which steppers run: Registers and Parallel.

Variables are bits of a mask: BEGIN and END are the first two, the variables of the program follow. A guard is a bit of
the symbol. Windows are numbers into Program.inner_windows. A node stands for the automaton that [CEL] Theorem 6.2 or
7.2 builds for its operator in planner.cel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, NamedTuple, Self

from runtime.arrays import IntArray
from runtime.own import Own
from runtime.relations import Relation

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


Numbering = Callable[[int], int]  # the old number of a guard → the new one


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


class Choice(NamedTuple):
    """One variable of a Compare, by its mask; `in_a_row`: so many consecutive events of it are chosen (1: each)."""

    mask: int
    in_a_row: int


class Operand(NamedTuple):
    """What a side of a Compare looks at: of a choice (its number) the earlier (0, also the only one) or the later event
    (1), a term by its number, or a guard by its bit."""

    choice: int
    which: int
    number: int


class Compared(NamedTuple):
    """Q₁ OR …, a clause with comparisons of events: for all choices some side must hold.

    comparisons: (left, operator, right) over terms; tests: guards; related: a relation and its operands, terms too.
    """

    choices: tuple[Choice, ...]
    comparisons: tuple[tuple[Operand, str, Operand], ...]
    tests: tuple[Operand, ...] = ()
    related: tuple[tuple[tuple[Operand, ...], Relation], ...] = ()

    def with_guards(self, number: Numbering) -> Compared:
        return self._replace(tests=tuple(o._replace(number=number(o.number)) for o in self.tests))


@dataclass(frozen=True, eq=False)
class Compare(Around):
    """φ FILTER (Q₁ OR …) with comparisons of events."""

    compared: Compared

    def own_guards(self, number: Numbering) -> Node:
        return replace(self, compared=self.compared.with_guards(number))


class Register(NamedTuple):
    """An aggregate that a run holds (runtime.monoids): of the events with `mask`, of a term (-1: of the events
    themselves), whose values are `floating` or whole. `key`: the term of MAX_BY's key, `floating_key` or not. `scale`:
    what it gives is a whole number of so many digits after the point. `own`: the user's own function."""

    function: str
    mask: int
    term: int
    floating: bool = False
    key: int = -1
    floating_key: bool = False
    scale: int = 0
    own: Own | None = None


class Measure(NamedTuple):
    """A side of a Measured: register `left` beside a number of its scale, or beside register `other`."""

    left: int
    op: str
    number: int | float | Fraction = 0
    other: int | None = None


@dataclass(frozen=True, eq=False)
class Measured(Node):
    """φ FILTER (Q₁ OR …), where the sides compare aggregates; `shown`: as the user wrote it."""

    inner: Node
    registers: tuple[Register, ...]
    sides: tuple[Measure, ...]
    shown: str


NEGATED = -1


class Profiles(NamedTuple):
    """Of which variables events are chosen, and what of each is looked at: terms, then guards, by their numbers.

    `levels[k]`: where choice k is bound: 0 in what the Across stands around, n in the Pending of that level, NEGATED in
    the negated part.
    """

    choices: tuple[Choice, ...]
    terms: tuple[tuple[int, ...], ...]
    guards: tuple[tuple[int, ...], ...]
    levels: tuple[int, ...]

    def with_guards(self, number: Numbering) -> Profiles:
        return self._replace(guards=tuple(tuple(map(number, own)) for own in self.guards))


class Clause(NamedTuple):
    """An OR, as Compared. Here Operand.number is a place in a choice's profile."""

    comparisons: tuple[tuple[Operand, str, Operand], ...]
    tests: tuple[Operand, ...]
    related: tuple[tuple[tuple[Operand, ...], Relation], ...] = ()

    @property
    def operands(self) -> Iterator[Operand]:
        """All that its sides look at."""
        for left, _, right in self.comparisons:
            yield from (left, right)
        for operands, _ in self.related:
            yield from operands
        yield from self.tests


class Deciding(NamedTuple):
    """By which clauses a match of the Candidate of this number vetoes what is around it: all of them must hold."""

    number: int
    profiles: Profiles
    clauses: tuple[Clause, ...]

    def with_guards(self, number: Numbering) -> Deciding:
        return self._replace(profiles=self.profiles.with_guards(number))


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


# Kinds of ops of Registers. Checks of a register with a term of the event:
RESET, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, UNEQUAL = range(7)
# Changes of a register: by a term; to whether the event satisfies a guard; by a term that vetoes, which no NULL does.
SET, GREATEST, LEAST, SAME, NOTE, HIGHEST, LOWEST = range(7, 14)
NOT_ALL = 14  # fails if the register holds the `term`: all of these bits
RELATES = 15  # a relation by its number, the term, with the operands from relation_operand[register] on
OWN = 16  # + a check: of two terms of the event; the register is the number of the first
BOTH = 32  # + a check: of two registers; the term is the number of the second
REFUSED = 48  # + a check, which must fail, of a register with a term
ANY_OF = 64  # one of the next `register` ops must pass, or a register in them is still empty:
HOLDS, NOTED = 65, 66  # among these: the event satisfies a guard; a NOTE said so
FAILED = 128  # + the number of a bit: set in the register if the event does not satisfy a guard
NOBODY = -1  # no register, term, or run
ONLY_NEAR = 2  # nothing but contiguous followers
EVERY = -1  # no check: all runs pass
FROM_START = -1  # the source of an edge from the beginning
LATE, SINCE, BEGUN = 0, 1, 2  # places in Registers.special
WINDOW = -2  # in place of a term: the position with which the window begins
# What an event looks at: one run, some by an ordered index, those with an equal value, what a search meets, each.
ONE, RANGE, EQUAL_ONES, SEARCHED, EACH = range(5)


class Early(NamedTuple):
    """What must not come before a match, by its kinds (runtime.steppers.happened).

    `!ANY x ; ANY g WHERE x.v >= g.v` has one kind and one check: GREATER_EQUAL, of the v of what happened with the v of
    the first event of the run, which decides.

    An event is of kind w if it satisfies guard[w] and the ops of edge[w] pass. It prevents the matches that pass all of
    the checks check_of[w] … check_of[w + 1]. A check compares what the run has, by `kind`, with the `term` of what
    happened; NOBODY is a check that passes. If the first event decides (decided[w]), the run has outside[p, c], a term
    of that event, at position p; else it has what `register` holds when the match ends. `equal[w]`: a check for
    equality, or NOBODY.
    """

    guard: IntArray
    edge: IntArray
    decided: IntArray
    check_of: IntArray
    equal: IntArray
    kind: IntArray
    term: IntArray
    register: IntArray
    outside: IntArray


@dataclass(frozen=True, eq=False)
class Registers(Node):
    """A position automaton whose runs compare events by a few registers each (chain-CEA, run by runtime.steppers).

    `A+ a ; B b WHERE a.v < b.v` has the positions A0 and B1, one register r, and three edges:

        edge 0   FROM_START → 0   GREATEST r, v
        edge 1   0 → 0            GREATEST r, v
        edge 2   0 → 1            LESS r, v, and then RESET r

    *Positions.* A run at position p has just taken an event there. It takes an event at q over an edge, if the event
    satisfies guard[q] and all ops of the edge pass. `label`: an index into Program.labels. `last`: can a match end
    there? `goes_on`: does anything follow? `near`: does something contiguous follow, or ONLY_NEAR.

    *Edges* are sorted by q: those of q are edge_of[q] … edge_of[q + 1]. `source`: the position before, or FROM_START.
    `contiguous`: only at the next event. `looks`: at how many of the runs at its source an event looks (for EXPLAIN).

    *Ops* of edge e are op_of[e] … op_of[e + 1], each of a kind (see above), with a register and a term. An op RELATES
    has its operands in relation_operand, as many as the relation has: a term of the event, or -1 - a register.

    *Indexes.* index_of[p]: the registers by which runs at p are found, filled up with NOBODY. wanted[e]: the terms that
    these must be equal to for edge e, all NOBODY where the index does not serve it. ordered_of[p]: the number of the
    ordered index (runtime.steppers.ordered) of the runs at p, by register sorted_by[p], or NOBODY. An edge from there
    takes the runs whose register passes range_kind[e] with the term range_term[e], or all: EVERY.

    *Vetoes* are what must not happen. An event with veto_guard[v] concerns the runs at the source of edge (number of
    edges + v) that pass the ops of that edge. It moves them to position veto_to[v], or ends them: NOBODY. Such
    positions come after those of the pattern, which `guard`, `label`, `last` and `goes_on` are of. No edge of an event
    leads there.

    `special` has three entries. LATE: the place where matches wait for their window to close, NOBODY if none does. One
    that ends at q goes there over edge late_edge[q], and every start then has runs of its own. SINCE: the register for
    the position of the last event before the run that must not come before its match, by what its first event says.
    BEGUN: the register for the position where the run began, where later events say more. NOBODY where none is asked
    for; see Early.

    `greedy`: a run must take what it can, and is then not there any more (SKIP TILL NEXT MATCH). `apart`: the last
    register is where a run began (AFTER MATCH SKIP).
    """

    guard: IntArray
    label: IntArray
    last: IntArray
    goes_on: IntArray
    near: IntArray
    edge_of: IntArray
    source: IntArray
    contiguous: IntArray
    wanted: IntArray
    index_of: IntArray
    ordered_of: IntArray
    sorted_by: IntArray
    range_kind: IntArray
    range_term: IntArray
    looks: IntArray
    op_of: IntArray
    op_kind: IntArray
    op_register: IntArray
    op_term: IntArray
    relation_operand: IntArray
    veto_guard: IntArray
    veto_to: IntArray
    early: Early
    late_edge: IntArray
    special: IntArray
    n_registers: int
    greedy: bool = False
    apart: bool = False
    relations: tuple[Relation, ...] = ()


ROOT = -1  # where a part that is whole is the whole match


@dataclass(frozen=True, eq=False)
class Parallel(Node):
    """A parallelized automaton ([PCEA] Section 3) of a hierarchical ALL, made by planner.automata.pcea.

    `ALL(A a, B b) WHERE a.x = b.x` has two atoms, and a tree with the value x above both. An A waits under its x. A B
    with the same x finds it, and the two are a match: ROOT.

    *Atom* i takes an event with guard[i] whose terms own_of[i] … own_of[i + 1] of (own_left, own_right) are equal in
    pairs, and none of them NULL. *Move* a takes an event as all the atoms of the bits atoms[a] at once, if the terms
    together_of[a] … of (together_left, together_right) are equal.

    The *steps* step_of[a] … of a move go up the tree. Step s needs the parts part_of[s] …, and lacks none, or it ends
    the move. Part p is of the place part[p] of the tree, found by the values of the terms key_of[p] … of `key`. With
    them and with those of the steps before, step s makes a run that waits at place[s], under the values of the terms
    into_of[s] … of `into`; or a match: ROOT.

    label_of[m]: the label, an index into Program.labels, of an event that is all the atoms of the bits m. `depth`: the
    terms in the longest key.
    """

    guard: IntArray
    own_of: IntArray
    own_left: IntArray
    own_right: IntArray
    atoms: IntArray
    together_of: IntArray
    together_left: IntArray
    together_right: IntArray
    step_of: IntArray
    part_of: IntArray
    part: IntArray
    key_of: IntArray
    key: IntArray
    place: IntArray
    into_of: IntArray
    into: IntArray
    label_of: IntArray
    depth: int


class Follow(NamedTuple):
    """An edge to what can come next.

    `contiguous`: only at once. `absences`: no match of these (by their number in `vetoes`) may lie between. `inside`:
    the clauses that go on over the edge; any other is asked anew.
    """

    position: int
    contiguous: bool
    absences: tuple[int, ...]
    inside: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PositionAutomaton(Node):
    """A position automaton (Glushkov's): one position for each occurrence of an atom. [CEL] has none.

    `A ; B{2}`: the positions A0, B1, B2     first (0), follow ((2), (), (1)), last {1}: A0 → B2 → B1
    `A ; B+`:   the positions A0, B1         first (0), follow ((1), (1)), last {1}: A0 → B1, B1 → B1

    Position p takes an event that satisfies guard `guards[p]`, and marks it `masks[p]`. `first`: the positions that can
    begin. `last`: those that can end. `follow[p]`: what can come after p. `greedy`: a run that can take an event must
    take it (SKIP TILL NEXT MATCH).

    Conditions are clauses, by their number:
    `clauses`: of each OR of conditions on single events the number of its sides, 0 for the other kinds of clause. One
    of the sides must hold of every event that it speaks of. `asks[p]`: (clause, ((side, guard), …)), what clauses ask
    of the event of p. `compared`: the clauses that compare events; `asks` then has (choice, unused) for each choice
    that the event is one of. `across`: the clauses that compare events with what must not happen between them; `asks`
    then has (mask, unused), the event's. `undecided[p]`: those of them that a later event can still decide after p.

    What must not happen are `vetoes`. Those of `before` and `after` stand before and after the whole, and are for
    planner.automata.registers alone.
    """

    guards: tuple[int, ...]
    masks: tuple[int, ...]
    first: tuple[int, ...]
    last: frozenset[int]
    follow: tuple[tuple[Follow, ...], ...]
    vetoes: tuple[Node, ...] = ()
    clauses: tuple[int, ...] = ()
    asks: tuple[tuple[tuple[int, tuple[tuple[int, int], ...]], ...], ...] = ()
    compared: tuple[tuple[int, Compared], ...] = ()
    across: tuple[tuple[int, Deciding], ...] = ()
    undecided: tuple[frozenset[int], ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    greedy: bool = True

    def own_guards(self, number: Numbering) -> Node:
        asks = (
            tuple((clause, tuple((side, number(guard)) for side, guard in of)) for clause, of in own)
            for own in self.asks
        )
        return replace(
            self,
            asks=tuple(asks),
            compared=tuple((clause, compared.with_guards(number)) for clause, compared in self.compared),
            across=tuple((clause, deciding.with_guards(number)) for clause, deciding in self.across),
        )
