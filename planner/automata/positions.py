"""Formula → position automaton, built as Glushkov does it: first, last, follow.

    `A a ; (B b OR C c)+`   positions A0, B1, C2; first A0; last B1, C2
                            edges A0 → B1, A0 → C2, and between B1 and C2 all four

The runs of SKIP TILL NEXT MATCH are defined on the pattern as written. So every atom, and every copy that a repetition
makes of it, is a position. A position follows another if some match binds it right after that one. What lies on the way
between the two (`:`, absences, the round of a loop) belongs to the edge.

Conditions are asked of the events as they are taken, so that a filter becomes part of the positions that it speaks of.
An OR of conditions is not decided by one event: it becomes a clause, and a run remembers which of its sides can still
hold. Which formulas have such an automaton, says planner.automata.simple.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations, combinations_with_replacement

from planner import cel
from planner.acel import Aggregate, Judged
from planner.across import Across
from planner.automata.automaton import NOTHING, TRUE, Automaton, Transition, trim
from planner.automata.cea import MAX_STATES
from planner.automata.compose import Composer
from planner.automata.position_pairs import both
from planner.automata.position_parts import Asked, Edge, Part, Position
from planner.automata.simple import Surrounded, any_order, is_around, is_several
from planner.errors import PlanError
from planner.formula import Formula
from planner.query import Window
from planner.terms import Comparison, Predicate, Side
from runtime import nodes
from runtime.clauses import Choice, Compared, Deciding, Operand
from runtime.nodes import VISIBLE
from runtime.position_automaton import Follow, PositionAutomaton


def position_node(formula: Formula, composer: Composer, greedy: bool = True) -> nodes.Node:
    """The node of a `gathered` formula: the runs, and the absences before and after, which filter what they find.
    `greedy`: they must take what they can."""
    match formula:
        case cel.NotBefore(vetoes, inner, window):
            return composer.not_before(vetoes, position_node(inner, composer, greedy), window)
        case cel.NotAfter(inner, vetoes, window):
            watched = tuple(map(composer.node, vetoes))
            return nodes.NotAfter(position_node(inner, composer, greedy), watched, composer.window(window))
        case Across(inner) if is_around(formula):
            deciding = composer.deciding(formula)
            return nodes.Across(position_node(inner, composer, greedy), deciding)
    return replace(_Builder(composer).node(formula), greedy=greedy)


def positions_of(parts: Surrounded, composer: Composer, branching: bool = False) -> PositionAutomaton:
    """The position automaton of a formula with the absences around it, for planner.automata.registers.

    `branching`: an OR of equalities becomes a choice between copies of its part, of which the first asks for the first
    equality, the second for the second where the first fails, …
    """
    made = _Builder(composer, branching).node(parts.formula, parts.before, parts.after)
    return replace(made, meanwhile=tuple(map(composer.node, parts.meanwhile)))


def branches(formula: Formula) -> bool:
    """Is there an OR of comparisons that might become a choice?"""
    return any(isinstance(part, cel.Compare) and len(part.sides) > 1 for part in formula.walk(only_positive=True))


def is_once(formula: Formula, variable: str) -> bool:
    """Does a variable hold one event in each match, and not one for each round of a loop?"""
    match formula:
        case cel.Event():
            return True
        case cel.Iteration() | cel.ContiguousIteration() | cel.Repeat():
            return False
        case cel.As(inner, name) if name == variable:
            return isinstance(inner, cel.Event)
        case cel.And(left, right):  # of the same events
            return any(is_once(part, variable) for part in (left, right) if variable in part.binds())
    own = [part for part in formula.positive() if variable in part.binds()]
    return (len(own) == 1 or isinstance(formula, cel.Or)) and all(is_once(part, variable) for part in own)


UNUSED = -2  # in place of a guard, where there is none
MOST_BRANCHES = 4  # of one choice


def agreements(terms: tuple[tuple[str | None, str], ...], type: str, composer: Composer) -> list[Compared]:
    """All events have one value: each is equal to each, itself too, which a NULL is not."""
    found = []
    for (x, a), (y, b) in combinations_with_replacement(terms, 2):
        masks = (VISIBLE if v is None else composer.mask(frozenset({v})) for v in (x, y))
        left, right = composer.term(a, type), composer.term(b, type)
        choices = tuple(Choice(mask, 1) for mask in masks)
        found.append(Compared(choices, ((Operand(0, 0, left), "=", Operand(1, 0, right)),)))
    return found


@dataclass
class _Builder:
    composer: Composer
    branching: bool = False
    positions: list[Position] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    clauses: list[int] = field(default_factory=list)  # of each, the number of its sides
    compared: dict[int, Compared] = field(default_factory=dict)
    across: dict[int, Deciding] = field(default_factory=dict)
    vetoes: dict[Formula, int] = field(default_factory=dict)
    windows: dict[int, int] = field(default_factory=dict)
    several: dict[Formula, int] = field(default_factory=dict)  # what must not happen, and is several events
    meanwhile: dict[int, int] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)
    deciding: list[tuple[int, ...]] = field(default_factory=list)
    loops: int = 0  # around what is being made

    def node(
        self, formula: Formula, before: tuple[Formula, ...] = (), after: tuple[Formula, ...] = ()
    ) -> PositionAutomaton:
        whole = self.part(formula)
        around = [tuple(self.vetoes.setdefault(v, len(self.vetoes)) for v in vetoes) for vetoes in (before, after)]
        follow: list[dict[Follow, None]] = [{} for _ in self.positions]
        for e in self.edges:
            follow[e.left][Follow(e.right, e.contiguous, e.absences, e.inside)] = None
        self.composer.automata.append(self.picture(whole))
        guards = self.composer.guards
        return PositionAutomaton(
            guards=tuple(guards.setdefault(p.guard, len(guards)) for p in self.positions),
            masks=tuple(self.composer.mask(p.marks) for p in self.positions),
            first=whole.first,
            last=frozenset(whole.last),
            follow=tuple(map(tuple, follow)),
            vetoes=tuple(map(self.composer.node, self.vetoes)),
            clauses=tuple(self.clauses),
            asks=tuple(tuple(p.asks) for p in self.positions),
            compared=tuple(self.compared.items()),
            across=tuple(self.across.items()),
            undecided=tuple(map(self.undecided, range(len(self.positions)))),
            before=around[0],
            after=around[1],
            lacks=tuple(p.lacks for p in self.positions),
            starts=frozenset(n for n, p in enumerate(self.positions) if p.starts),
            windows=tuple(self.windows.items()),
            unless=tuple(self.meanwhile.items()),
            inside=tuple(map(self.composer.node, self.several)),
            refused=frozenset(self.refused),
            branches=tuple(p.branches for p in self.positions),
            deciding=tuple(enumerate(self.deciding)),
        )

    def undecided(self, position: int) -> frozenset[int]:
        """The clauses about what must not happen that an event after this position, in the same round, can decide."""
        found = set()
        for number, deciding in self.across.items():
            profiles = deciding.profiles
            own = [c.mask for c, level in zip(profiles.choices, profiles.levels, strict=True) if level == 0]
            reached: set[int] = set()
            todo = [position]
            while todo:
                at = todo.pop()
                more = {e.right for e in self.edges if e.left == at and number in e.inside} - reached
                reached |= more
                todo += more
            masks = [mask for p in reached for clause, asks in self.positions[p].asks if clause == number
                     for mask, _ in asks]  # fmt: skip
            if any(mask & one for mask in masks for one in own):
                found.add(number)
        return frozenset(found)

    def picture(self, whole: Part) -> Automaton:
        """The way of the runs as an automaton: what they can take and skip, not what they must, nor absences.

        State p + 1 has just taken position p. Where something contiguous can follow, it skips to a state of its own.
        """
        start, n = 0, len(self.positions) + 1
        joints = sorted({e.left for e in self.edges if e.contiguous})
        waits = {p: p + 1 for p in range(len(self.positions))} | {p: n + i for i, p in enumerate(joints)}
        goes_on = sorted({e.left for e in self.edges if not e.contiguous})
        found = [Transition(start, TRUE, NOTHING, start), *(self._taking(start, p) for p in whole.first)]
        for p in goes_on:
            found += [Transition(source, TRUE, NOTHING, waits[p]) for source in {p + 1, waits[p]}]
        for e in self.edges:
            sources = {e.left + 1} if e.contiguous else {e.left + 1, waits[e.left]}
            found += [self._taking(source, e.right) for source in sources]
        return trim(Automaton(n + len(joints), tuple(found), (start,), tuple(p + 1 for p in whole.last)))

    def _taking(self, source: int, position: int) -> Transition:
        taken = self.positions[position]
        return Transition(source, taken.guard, taken.marks, position + 1)

    def part(self, formula: Formula) -> Part:
        """Positions and edges of the formula, made anew by every call."""
        return self.marked(formula) or self.conditioned(formula) or self.linked(formula)

    def marked(self, formula: Formula) -> Part | None:
        """What changes each event of its part; None for any other formula."""

        def changed(inner: Formula, change: Callable[[Position], None]) -> Part:
            begin = len(self.positions)
            made = self.part(inner)
            for position in self.positions[begin:]:
                change(position)
            return made

        match formula:
            case cel.As(inner, name):
                return changed(inner, lambda p: p.mark(p.marks | {name}))
            case cel.Project(inner, keep):
                return changed(inner, lambda p: p.mark(p.marks & keep))
            case cel.Filter(inner, variable, predicate) | cel.FilterAny(inner, ((variable, predicate),)):
                return changed(inner, lambda p: p.ask(variable, predicate))
        return None

    def conditioned(self, formula: Formula) -> Part | None:
        """What asks something of the events of its part together; None for any other formula."""
        match formula:
            case cel.FilterAny(inner, sides):
                return self.clause(inner, sides)
            case cel.Compare(inner, sides) if self.branching and self.may_branch(inner, sides):
                return self.branched(inner, sides)
            case cel.Compare(inner, sides):
                return self.comparisons(inner, [self.composer.compared(sides)])
            case cel.Agree(inner, terms, type):
                return self.comparisons(inner, agreements(terms, type, self.composer))
            case Across(inner):
                return self.vetoed(formula, inner)
            case cel.Within(inner, window):
                return self.windowed(inner, window)
            case cel.Unless(inner, veto):
                return self.unless(inner, veto)
            case cel.Start(inner):
                made = self.part(inner)
                for p in made.first:
                    self.positions[p].starts = True
                return made
            case cel.And(left, right):
                return self.common(left, right)
        return None

    def linked(self, formula: Formula) -> Part:
        """An event, or what puts parts after each other."""
        match formula:
            case cel.Event(type, marks):
                return self.atom(frozenset() if type is None else frozenset({type}), marks)
            case cel.Sequence(left, right):
                return self.joined(self.part(left), self.part(right))
            case cel.Contiguous(left, right):
                return self.joined(self.part(left), self.part(right), contiguous=True)
            case cel.Absent(left, vetoes, right):
                absences = tuple(self.vetoes.setdefault(veto, len(self.vetoes)) for veto in vetoes)
                return self.joined(self.part(left), self.part(right), absences=absences)
            case cel.Iteration() | cel.ContiguousIteration() | cel.Repeat():
                self.loops += 1
                made = self.loop(formula)
                self.loops -= 1
                return made
            case cel.Or(left, right):
                a, b = self.part(left), self.part(right)
                return Part(a.first + b.first, a.last + b.last, a.may_be_empty or b.may_be_empty)
            case Aggregate(inner) | Judged(inner):
                return self.ended(self.part(inner), formula.marks)
            case cel.All():
                return self.in_any_order(formula)
        raise TypeError(f"not a formula for a position automaton: {formula!r}")

    def loop(self, formula: cel.Iteration | cel.ContiguousIteration | cel.Repeat) -> Part:
        match formula:
            case cel.Repeat(inner, low, high, contiguous):
                return self.repeated(inner, low, high, contiguous)
        return self.looped(self.part(formula.inner), isinstance(formula, cel.ContiguousIteration))

    def may_branch(self, inner: Formula, sides: tuple[Side, ...]) -> bool:
        """Can an OR become a choice: of equalities between single events that are always there, outside of loops?"""
        if self.loops or len(sides) < 2 or len(sides) > MOST_BRANCHES:
            return False
        if not all(isinstance(side, Comparison) and side.op == "=" for side in sides):
            return False
        found = [term for side in sides if isinstance(side, Comparison) for term in (side.left, side.right)]
        names = {term.variable for term in found}
        single = all(term.of == "each" for term in found) and all(is_once(inner, name) for name in names)
        return single and names <= inner.always_binds()

    def branched(self, inner: Formula, sides: tuple[Side, ...]) -> Part:
        """φ FILTER (P OR Q): φ FILTER P, or φ FILTER Q where P is not TRUE (as Theorem 8 of [CHAIN] determinizes)."""
        choice = len(self.deciding)
        asked = [self.composer.compared((side,)) for side in sides]
        self.deciding.append(tuple(dict.fromkeys(c.mask for compared in asked for c in compared.choices)))
        parts = []
        for k in range(len(sides)):
            begin, first = len(self.positions), len(self.clauses)
            parts.append(self.comparisons(inner, asked[: k + 1]))
            self.refused |= set(range(first, first + k))
            for position in self.positions[begin:]:
                position.branches |= {(choice, k)}
        return Part(tuple(p for part in parts for p in part.first), tuple(p for part in parts for p in part.last))

    def windowed(self, inner: Formula, window: Window) -> Part:
        """(φ WITHIN w): all events of one round of φ fit the window."""
        (number,) = clauses = self.numbers(0)
        self.windows[number] = self.composer.window(window)
        return self.inside(clauses, lambda: self.part(inner), lambda _, p: ())

    def unless(self, inner: Formula, veto: Formula) -> Part:
        """φ UNLESS ψ, ψ an event: none lies between two events of φ, nor is it one of them; ψ several events: none of
        it that ends by then began with the first event of φ or later."""
        if is_several(veto):
            (clause,) = clauses = self.numbers(0)
            self.meanwhile[clause] = self.several.setdefault(veto, len(self.several))
            return self.inside(clauses, lambda: self.part(inner), lambda _, p: ())
        number = self.vetoes.setdefault(veto, len(self.vetoes))
        position, edge = len(self.positions), len(self.edges)
        made = self.part(inner)
        for p in self.positions[position:]:
            p.lacks |= {number}
        for e in self.edges[edge:]:
            e.absences += () if number in e.absences else (number,)
        return made

    def common(self, left: Formula, right: Formula) -> Part:
        """φ AND ψ: the pairs of their positions at which one event can stand."""
        position, edge = len(self.positions), len(self.edges)
        sides = self.part(left), self.part(right)
        made = both(*sides, self.positions, self.edges[edge:], position)
        self.positions[position:], self.edges[edge:] = made.positions, made.edges
        return made.part

    def in_any_order(self, formula: cel.All) -> Part:
        """ALL of chains: what comes first, the head of one or of several in one event, then the rest in any order."""
        found = any_order(formula)
        assert found is not None
        made = [self.composer.compared(c.sides) for c in found.clauses if isinstance(c, cel.Compare)]
        for clause in found.clauses:
            if isinstance(clause, cel.Agree):
                made += agreements(clause.terms, clause.type, self.composer)
        return self.compared_in(lambda: self._orders(found.chains), made)

    def _orders(self, chains: tuple[tuple[Formula, ...], ...]) -> Part:
        first: list[int] = []
        last: list[int] = []
        for size in range(1, len(chains) + 1):
            for taken in combinations(range(len(chains)), size):
                position = self._at_once(tuple(chains[k][0] for k in taken))
                first.append(position)
                left = tuple(chain[1:] if k in taken else chain for k, chain in enumerate(chains))
                if not any(left):
                    last.append(position)
                    continue
                rest = self._orders(tuple(chain for chain in left if chain))
                self.joined(Part((position,), (position,)), rest)
                last += rest.last
        return Part(tuple(first), tuple(last))

    def _at_once(self, events: tuple[Formula, ...]) -> int:
        """A position for one event that is all of these."""
        (position,) = self.part(events[0]).first
        for event in events[1:]:
            self.part(event)
            other = self.positions.pop()
            self.positions[position].guard |= other.guard
            self.positions[position].marks |= other.marks
        return position

    def atom(self, guard: frozenset[str | Predicate], marks: frozenset[str]) -> Part:
        if len(self.positions) == MAX_STATES:
            raise PlanError(
                "AUTOMATON_LIMIT",
                found=f"more than {MAX_STATES}",
                limit=MAX_STATES,
                hint="Shorten the pattern or its repetitions.",
            )
        self.positions.append(Position(guard, marks))
        one = (len(self.positions) - 1,)
        return Part(one, one)

    def inside(self, clauses: range, make: Callable[[], Part], asked: Callable[[int, Position], Asked]) -> Part:
        """What `make` makes inside new clauses: its positions say what each asks of them, its edges that they go on."""
        position, edge = len(self.positions), len(self.edges)
        made = make()
        for number in clauses:
            for p in self.positions[position:]:
                p.asks.append((number, asked(number, p)))
            for e in self.edges[edge:]:
                e.inside += (number,)
        return made

    def numbers(self, *n_sides: int) -> range:
        """Numbers for new clauses with so many sides each."""
        first = len(self.clauses)
        self.clauses += n_sides
        return range(first, len(self.clauses))

    def clause(self, inner: Formula, sides: tuple[tuple[str | None, Predicate], ...]) -> Part:
        """φ FILTER (P₁(x₁) OR …): every position says which sides speak of it, by the variables it has so far."""
        guards = [self.composer.side(*side)[1] for side in sides]

        def asked(_: int, p: Position) -> Asked:
            spoken = (variable is None or variable in p.marks for variable, _ in sides)
            return tuple((i, guard) for i, (guard, own) in enumerate(zip(guards, spoken, strict=True)) if own)

        return self.inside(self.numbers(len(sides)), lambda: self.part(inner), asked)

    def vetoed(self, formula: Across, inner: Formula) -> Part:
        """φ with comparisons between its events and what must not happen between them."""
        (number,) = clauses = self.numbers(0)
        self.across[number] = self.composer.deciding(formula)
        return self.inside(clauses, lambda: self.part(inner), lambda _, p: ((self.composer.mask(p.marks), UNUSED),))

    def comparisons(self, inner: Formula, clauses: list[Compared]) -> Part:
        """φ FILTER with comparisons of events."""
        return self.compared_in(lambda: self.part(inner), clauses)

    def compared_in(self, make: Callable[[], Part], clauses: list[Compared]) -> Part:
        """The clauses around what `make` makes: every position says of which choices it is an event."""
        numbers = self.numbers(*[0] * len(clauses))
        compared = dict(zip(numbers, clauses, strict=True))

        def asked(number: int, p: Position) -> Asked:
            mask = self.composer.mask(p.marks)
            return tuple((k, UNUSED) for k, choice in enumerate(compared[number].choices) if mask & choice.mask)

        made = self.inside(numbers, make, asked)
        self.compared |= compared
        return made

    def joined(self, a: Part, b: Part, contiguous: bool = False, absences: tuple[int, ...] = ()) -> Part:
        self.edges += [Edge(p, q, self.near(q, contiguous), absences) for p in a.last for q in b.first]
        return Part(
            a.first + b.first if a.may_be_empty else a.first,
            a.last + b.last if b.may_be_empty else b.last,
            a.may_be_empty and b.may_be_empty,
        )

    def looped(self, a: Part, contiguous: bool = False) -> Part:
        self.edges += [Edge(p, q, self.near(q, contiguous), ()) for p in a.last for q in a.first]
        return a

    def near(self, position: int, contiguous: bool) -> bool:
        """Must the event of a position come at once after the part before it?"""
        return contiguous or self.positions[position].starts

    def ended(self, a: Part, marks: frozenset[str]) -> Part:
        """The part with marks on its last event. A last position that the part goes on from gets a twin, which it ends
        with: `A+` has A0 → A0, A0 → A1, and A1 is the last."""
        twins: dict[int, int] = {}
        goes_on = {edge.left for edge in self.edges}
        for p in a.last:
            own = self.positions[p]
            if p not in goes_on:
                own.marks |= marks
                twins[p] = p
                continue
            self.atom(own.guard, own.marks | marks)
            twins[p] = len(self.positions) - 1
            self.positions[twins[p]].asks = list(own.asks)
            self.edges += [replace(edge, right=twins[p]) for edge in self.edges if edge.right == p]
        more = tuple(twins[p] for p in a.first if twins.get(p, p) != p)
        return Part(a.first + more, tuple(twins.values()))

    def repeated(self, inner: Formula, low: int, high: int | None, contiguous: bool) -> Part:
        """φ{n,m} is φ ; (φ ; (…)?)? from the inside out, so that a copy is only ever joined to the next one."""
        last = self.part(inner)
        rest = self.looped(last, contiguous) if high is None else last
        for copies in range((max(low, 1) if high is None else high) - 1, 0, -1):
            rest = self.joined(
                self.part(inner), rest._replace(may_be_empty=rest.may_be_empty or copies >= low), contiguous
            )
        return rest._replace(may_be_empty=rest.may_be_empty or low == 0)
