"""This file says what each condition asks of a run that holds registers, position by position.

    a.v < b.v         a writes its greatest value into a register, b checks it (a may be a loop: `A+ a ; B b`)
    a.v = b.v         a writes its only value, b checks it
    a.x < b.x OR b.y  a writes its x, b asks for one of the two sides
    a.x OR b.y        conditions on one event each: a register has a bit for each side that has failed
    (A ; B WITHIN w)  a writes its position, b checks that its own window does not begin after that
    C.v > a.v         what must not happen, after a: a writes its value, each C checks it and ends the run
    C.v > b.v         what must not happen, before b: each C writes the greatest value so far, b checks that

A comparison is asked when the second of its variables is bound, an OR when the last of them is. The result is a table:
for each clause and position the operations on an event there. planner.automata.registers puts them on edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from runtime import clauses, nodes
from runtime.chain_cea import (
    ANY_OF,
    BEGINS,
    BOTH,
    EQUAL,
    FAILED,
    GREATER,
    GREATER_EQUAL,
    GREATEST,
    HIGHEST,
    HOLDS,
    LEAST,
    LESS,
    LESS_EQUAL,
    LOWEST,
    NOBODY,
    NOT_ALL,
    NOTE,
    NOTED,
    OWN,
    POSITION,
    REFUSED,
    RELATES,
    SAME,
    SET,
    UNEQUAL,
)
from runtime.clauses import NEGATED, Compared, Operand, Profiles
from runtime.position_automaton import PositionAutomaton
from runtime.program import SKIP
from runtime.relations import Relation

CHECKS = {
    "<": LESS,
    "<=": LESS_EQUAL,
    ">": GREATER,
    ">=": GREATER_EQUAL,
    "=": EQUAL,
    "<>": UNEQUAL,
}
# left op right, with the sides exchanged
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
# left op right for all lefts of a loop, and for all rights: what a register holds of them
KEEPS = {"<": (GREATEST, LEAST), ">": (LEAST, GREATEST)}
MOST_SIDES = 15  # of an OR: they are bits of a register, and kinds of ops
Op = tuple[int, Any, int]  # kind, register, term; of RELATES the operands: terms, or -1 - a register; and its number


@dataclass
class Clause:
    """A clause, its registers, and what it does: `ops[p]` are the operations of an event at position p."""

    number: int
    registers: range
    ops: dict[int, list[Op]] = field(default_factory=dict)


class Way(NamedTuple):
    """One kind of event that must not happen. `ops` check a run, or leave it something to compare; `late`: the event
    after it decides."""

    guard: int
    ops: list[Op]
    late: bool


@dataclass
class Veto:
    """An absence whose matches are single events, and what these do to a run.

    `events`: (guard, mask) of each. `number`: the clause, or None. `ops`: checks, and what is left to compare; each
    stands beside the masks that its condition speaks of. `after`: what the event right after the absence does with
    what was left.
    """

    events: tuple[tuple[int, int], ...]
    number: int | None = None
    ops: list[tuple[Op, tuple[int, ...]]] = field(default_factory=list)
    after: list[Op] = field(default_factory=list)
    registers: range = range(0)
    late: frozenset[int] = frozenset()  # positions of the events right after it that decide

    @property
    def guards(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(guard for guard, _ in self.events))

    @property
    def leaves(self) -> bool:
        """Is it decided by the event after it?"""
        return bool(self.after)

    @property
    def ways(self) -> list[Way]:
        """The kinds of its events. A condition holds of an event that is none of the variables it speaks of."""
        found: dict[tuple[int, tuple[Op, ...]], Way] = {}
        for guard, mask in self.events:
            ops = [op for op, masks in self.ops if all(mask & own for own in masks)]
            late = any(HIGHEST <= kind <= LOWEST for kind, _, _ in ops)
            found[guard, tuple(ops)] = Way(guard, ops, late)
        return list(found.values())


class Check(NamedTuple):
    """A check compares what a run holds with what happened before it.

    `kind`: of the check. `register`: what the run holds, NOBODY where its first event decides. `term`: of what
    happened. `masks`: of what happened, those that the condition speaks of. `outside`: the term of the first event, by
    its position.
    """

    kind: int
    register: int
    term: int
    masks: tuple[int, ...]
    outside: dict[int, int]


class Early(NamedTuple):
    """One kind of event that must not come before a match.

    `ops`: what it asks of itself. `checks`: what it asks of a run. `decided`: the first event of the run decides, not
    the end of the match.
    """

    guard: int
    ops: list[Op]
    checks: list[Check]
    decided: bool


class NotByRegisters(Exception):
    """A pattern needs more than registers; the text says why."""


def _check_in_kernels(relation: Relation) -> None:
    if relation.table is not None:
        raise NotByRegisters("what Spark has tabulated is looked up")
    if not relation.in_kernels:
        raise NotByRegisters("arithmetic of decimals")


class Clauses:
    """This reads all clauses of a pattern, and its vetoes by the number of the absence. Raises NotByRegisters."""

    def __init__(self, automaton: PositionAutomaton, n_terms: int) -> None:
        self._automaton, self._n_terms, self.n_registers = automaton, n_terms, 0
        self.relations: list[Relation] = []
        compared, windows, unless = dict(automaton.compared), dict(automaton.windows), dict(automaton.unless)
        self.made: list[Clause] = []
        for number in range(len(automaton.clauses)):
            if number in compared:
                self.made.append(self._compared(number, compared[number]))
            elif number in windows:
                self.made.append(self._windowed(number, len(automaton.inside) + windows[number]))
            elif number in unless:
                self.made.append(self._windowed(number, unless[number]))
            elif number not in dict(automaton.across):
                self.made.append(self._sides(number))
        compared_before = [k for k in automaton.before if isinstance(automaton.vetoes[k], nodes.Candidate)]
        self.early = [way for k in compared_before for way in self._early(automaton.vetoes[k])]
        self.vetoes = [self._veto(n) if k not in compared_before else Veto(()) for k, n in enumerate(automaton.vetoes)]
        plain = dict.fromkeys(guard for k in automaton.before for guard in self.vetoes[k].guards)
        self.early += [Early(guard, [], [], True) for guard in plain]
        self.since = self._new(1)[0] if any(way.decided for way in self.early) else NOBODY
        self.begun = self._new(1)[0] if any(not way.decided for way in self.early) else NOBODY

    def _new(self, n: int) -> range:
        self.n_registers += n
        return range(self.n_registers - n, self.n_registers)

    # ------------------------------------------------------------ positions

    def _asks(self, position: int, number: int) -> list[tuple[int, int]] | None:
        """What a clause asks of the event of a position; None where the position stands outside of the clause."""
        return next((list(asks) for n, asks in self._automaton.asks[position] if n == number), None)

    def _choices(self, position: int, number: int) -> list[int]:
        return [k for k, _ in self._asks(position, number) or ()]

    def _where(self, test: Callable[[int], bool]) -> set[int]:
        return {p for p in range(len(self._automaton.masks)) if test(p)}

    def _after(self, places: Iterable[int], number: int) -> set[int]:
        """The positions that come after these in one round of the clause."""
        todo, seen = list(places), set[int]()
        while todo:
            for f in self._automaton.follow[todo.pop()]:
                if number in f.inside and f.position not in seen:
                    seen.add(f.position)
                    todo.append(f.position)
        return seen

    def _repeats(self, places: set[int], number: int) -> bool:
        """Can two events be bound at these positions in one round?"""
        return bool(self._after(places, number) & places)

    # ------------------------------------------------------------ conditions

    def _sides(self, number: int) -> Clause:
        """An OR of conditions that each speak of one event: the sides that have failed are bits of a register."""
        n = self._automaton.clauses[number]
        if n > MOST_SIDES:
            raise NotByRegisters(f"an OR of more than {MOST_SIDES} conditions")
        made = Clause(number, self._new(1))
        register = made.registers[0]
        for p in range(len(self._automaton.masks)):
            sides = self._asks(p, number)
            if sides:
                failing = [(FAILED + side, register, guard) for side, guard in sides]
                made.ops[p] = [*failing, (NOT_ALL, register, (1 << n) - 1)]
        return made

    def _compared(self, number: int, clause: Compared) -> Clause:
        for _, relation in clause.related:
            _check_in_kernels(relation)
        if len(clause.related) == 1 and len(clause.choices) == 1 and not clause.comparisons and not clause.tests:
            return self._neighbours_related(number, clause)
        if len(clause.comparisons) != 1 or clause.tests or clause.related:
            return self._either(number, clause)
        ((left, op, right),) = clause.comparisons
        if op not in CHECKS:
            raise NotByRegisters(f"the operator {op}")
        if left.choice == right.choice:
            return self._of_one(number, clause)
        if any(choice.in_a_row > 1 for choice in clause.choices):
            raise NotByRegisters("consecutive events of one variable compared with another's")
        n = len(clause.choices)
        places = [self._where(lambda p, k=k: k in self._choices(p, number)) for k in range(n)]  # type: ignore[misc]
        if op == "<>" and any(self._repeats(own, number) for own in places):
            raise NotByRegisters("<> with a variable that can be several events")
        if op == "=" and left.number == right.number and places[left.choice] == places[right.choice]:
            return self._agreeing(number, places[left.choice], left.number)
        registers = self._new(n)
        a, b = registers[left.choice], registers[right.choice]
        own, other = KEEPS.get(op[0] if op != "<>" else "", (SAME, SAME))
        must_not = REFUSED if number in self._automaton.refused else 0
        by_choice = {
            left.choice: [(must_not + CHECKS[MIRRORED[op]], b, left.number), (own, a, left.number)],
            right.choice: [(must_not + CHECKS[op], a, right.number), (other, b, right.number)],
        }
        ops = {p: [o for k in self._choices(p, number) for o in by_choice[k]] for p in set().union(*places)}
        return Clause(number, registers, ops)

    def _agreeing(self, number: int, places: set[int], term: int) -> Clause:
        """All events at these positions have one value, which a NULL is not."""
        (register,) = registers = self._new(1)
        ops: list[Op] = [(OWN + EQUAL, term, term), (EQUAL, register, term), (SET, register, term)]
        return Clause(number, registers, dict.fromkeys(places, ops))

    def _windowed(self, number: int, window: int) -> Clause:
        """An inner window, or what must not happen meanwhile: a register holds the position of the first event, which
        must not lie before the one with which a match that ends with a later event may begin."""
        (register,) = registers = self._new(1)
        begin, position = self._n_terms + BEGINS + window, self._n_terms + POSITION
        ops: list[Op] = [(GREATER_EQUAL, register, begin), (LEAST, register, position)]
        return Clause(number, registers, dict.fromkeys(self._where(lambda p: self._asks(p, number) is not None), ops))

    def _of_one(self, number: int, clause: Compared) -> Clause:
        """One comparison of two attributes of an event, or of two consecutive events of a variable."""
        ((left, op, right),) = clause.comparisons
        places = self._where(lambda p: left.choice in self._choices(p, number))
        if clause.choices[left.choice].in_a_row > 2:
            raise NotByRegisters("a comparison with the next but one")
        if clause.choices[left.choice].in_a_row == 1:
            ops = [(OWN + CHECKS[op], left.number, right.number)]
            return Clause(number, range(0), dict.fromkeys(places, ops))
        if left.which == right.which:
            raise NotByRegisters("a condition on the later of two events alone")
        early, late, op = (left, right, op) if left.which == 0 else (right, left, MIRRORED[op])
        registers = self._new(1)
        ops = [(CHECKS[op], registers[0], late.number), (SET, registers[0], early.number)]
        return Clause(number, registers, dict.fromkeys(places, ops))

    def _relation(self, relation: Relation) -> int:
        """Its number."""
        if relation not in self.relations:
            self.relations.append(relation)
        return self.relations.index(relation)

    def _neighbours_related(self, number: int, clause: Compared) -> Clause:
        """Arithmetic over two consecutive events of a variable: registers hold what it needs of the earlier one."""
        ((operands, relation),) = clause.related
        if clause.choices[0].in_a_row != 2:
            raise NotByRegisters("a condition on three consecutive events")
        places = self._where(lambda p: bool(self._choices(p, number)))
        earlier = list(dict.fromkeys(o.number for o in operands if o.which == 0))
        if not earlier:
            raise NotByRegisters("a condition on the later of two events alone")
        register = dict(zip(earlier, self._new(len(earlier)), strict=True))
        sources = tuple(o.number if o.which else -1 - register[o.number] for o in operands)
        ops: list[Op] = [(RELATES, sources, self._relation(relation))]
        ops += [(SET, r, term) for term, r in register.items()]
        return Clause(number, range(min(register.values()), max(register.values()) + 1), dict.fromkeys(places, ops))

    def _either(self, number: int, clause: Compared) -> Clause:
        """An OR with comparisons. What is bound by several events must be bound last, to be asked one by one."""
        if any(choice.in_a_row > 1 for choice in clause.choices):
            raise NotByRegisters("an OR of comparisons of consecutive events")
        if any(op not in CHECKS for _, op, _ in clause.comparisons):
            raise NotByRegisters("an OR of comparisons, and the operator <=>")
        places = [self._where(lambda p, k=k: k in self._choices(p, number))  # type: ignore[misc]
                  for k in range(len(clause.choices))]  # fmt: skip
        held = set()  # the choices after which another can be made
        for k, own in enumerate(places):
            others = set().union(*(other for j, other in enumerate(places) if j != k))
            if (self._after(own, number) | own) & others:
                if self._repeats(own, number):
                    raise NotByRegisters("an OR of comparisons with what several events were bound to before")
                held.add(k)
        operands = [(o, False) for left, _, right in clause.comparisons for o in (left, right)]
        operands += [(o, False) for own, _ in clause.related for o in own]
        operands += [(o, True) for o in clause.tests]
        wanted = sorted({(o.choice, o.number, test) for o, test in operands if o.choice in held})
        registers = self._new(len(wanted))
        register = dict(zip(wanted, registers, strict=True))
        made = Clause(number, registers)
        for p in set().union(*places):
            own_choices = self._choices(p, number)
            known = {k for k in range(len(places)) if k in own_choices or k in held}
            ops: list[Op] = []
            if len(known) == len(places):
                sides = self._sides_at(clause, set(own_choices), register)
                ops = [(ANY_OF, len(sides), 0), *sides]
            for (k, what, test), r in register.items():
                if k in own_choices:
                    ops.append((NOTE if test else SET, r, what))
            made.ops[p] = ops
        return made

    def _sides_at(self, clause: Compared, own: set[int], register: dict[tuple[int, int, bool], int]) -> list[Op]:
        """The sides of an OR, as an event asks them that is bound to the choices `own`."""
        found: list[Op] = []
        for left, op, right in clause.comparisons:
            if left.choice in own and right.choice in own:
                found.append((OWN + CHECKS[op], left.number, right.number))
            elif right.choice in own:
                found.append((CHECKS[op], register[left.choice, left.number, False], right.number))
            elif left.choice in own:
                found.append((CHECKS[MIRRORED[op]], register[right.choice, right.number, False], left.number))
            else:
                a, b = (register[o.choice, o.number, False] for o in (left, right))
                found.append((BOTH + CHECKS[op], a, b))
        for operands, relation in clause.related:
            sources = tuple(o.number if o.choice in own else -1 - register[o.choice, o.number, False] for o in operands)
            found.append((RELATES, sources, self._relation(relation)))
        for o in clause.tests:
            found.append((HOLDS, 0, o.number) if o.choice in own
                         else (NOTED, register[o.choice, o.number, True], 0))  # fmt: skip
        return found

    # ------------------------------------------------------------ what must not happen in between

    def _veto(self, node: nodes.Node) -> Veto:
        if not isinstance(node, nodes.Candidate):
            return Veto(_single(node))
        events = _single(node.inner)
        deciding = {d.number: (n, d) for n, d in self._automaton.across}
        if node.number not in deciding:
            raise NotByRegisters("what must not happen is compared with something around the pattern")
        number, own = deciding[node.number]
        made = Veto(events, number)
        first = self.n_registers
        for clause in own.clauses:
            self._decide(made, own.profiles, clause)
        made.registers = range(first, self.n_registers)
        return made

    def _decide(self, veto: Veto, profiles: Profiles, clause: clauses.Clause) -> None:
        """One condition between what must not happen and what was bound before it, or right after it."""
        if clause.related and not clause.comparisons and not clause.tests and len(clause.related) == 1:
            self._decide_related(veto, profiles, clause)
            return
        left, op, right, terms, inside, masks = _one_comparison(profiles, clause)
        if inside == [True, True]:
            veto.ops.insert(0, ((OWN + CHECKS[op], terms[0], terms[1]), masks))
            return
        if inside == [True, False]:
            left, op, right, terms = right, MIRRORED[op], left, terms[::-1]
        # From here on: (what is outside) op (what must not happen).
        assert veto.number is not None
        mask, number = profiles.choices[left.choice].mask, veto.number
        places = self._where(lambda p: any(m & mask for m, _ in self._asks(p, number) or ()))
        after = self._after(self._gaps(veto), number) & places
        register = self._new(1)[0]
        if not after:
            self._before(register, number, places, op, terms[0])
            veto.ops.insert(0, ((CHECKS[op], register, terms[1]), masks))
            return
        if after != places or self._repeats(places, number) or veto.after or op[0] not in "<>" or op == "<>":
            raise NotByRegisters("what must not happen is compared with a later event in more than one way")
        # Some veto b has c op b, if the greatest (or least) that has come has.
        most = HIGHEST if op[0] == "<" else LOWEST
        veto.ops.append(((most, register, terms[1]), masks))
        veto.after = [(REFUSED + CHECKS[MIRRORED[op]], register, terms[0])]
        veto.late = frozenset(places)

    def _decide_related(self, veto: Veto, profiles: Profiles, clause: clauses.Clause) -> None:
        """Arithmetic over what must not happen and single events that were bound before it."""
        ((operands, relation),) = clause.related
        if any(profiles.choices[o.choice].in_a_row > 1 for o in operands):
            raise NotByRegisters("what must not happen is compared with consecutive events")
        _check_in_kernels(relation)
        assert veto.number is not None
        number, gaps = veto.number, self._gaps(veto)
        masks: list[int] = []
        sources: list[int] = []
        for o in operands:
            mask, term = profiles.choices[o.choice].mask, profiles.terms[o.choice][o.number]
            if profiles.levels[o.choice] == NEGATED:
                masks.append(mask)
                sources.append(term)
                continue
            places = self._where(lambda p, mask=mask: any(m & mask for m, _ in self._asks(p, number) or ()))  # type: ignore[misc]
            if self._after(gaps, number) & places:
                raise NotByRegisters("arithmetic over what must not happen and a later event")
            if self._repeats(places, number):
                raise NotByRegisters("arithmetic over what must not happen and a variable that can be several events")
            register = self._new(1)[0]
            own: dict[int, list[Op]] = {p: [(SET, register, term)] for p in places}
            self.made.append(Clause(number, range(register, register + 1), own))
            sources.append(-1 - register)
        veto.ops.insert(0, ((RELATES, tuple(sources), self._relation(relation)), tuple(dict.fromkeys(masks))))

    def _gaps(self, veto: Veto) -> set[int]:
        """The positions after which it must not happen."""
        return self._where(lambda p: any(self._is_of(v, veto) for f in self._automaton.follow[p] for v in f.absences))

    def _early(self, node: nodes.Node) -> list[Early]:
        """What must not come before the match, and is compared with it: `!ANY x ; ANY g WHERE x.v >= g.v`."""
        assert isinstance(node, nodes.Candidate)
        own = next((d for n, d in self._automaton.across if d.number == node.number), None)
        number = next((n for n, d in self._automaton.across if d.number == node.number), None)
        if own is None or number is None:
            raise NotByRegisters("what must not happen is compared with something around the pattern")
        asks: list[tuple[Op, tuple[int, ...]]] = []
        made: list[tuple[Check, set[int], str, int]] = []
        for clause in own.clauses:
            left, op, right, terms, inside, masks = _one_comparison(own.profiles, clause)
            if inside == [True, True]:
                asks.append(((OWN + CHECKS[op], terms[0], terms[1]), masks))
                continue
            if inside == [True, False]:
                left, op, right, terms = right, MIRRORED[op], left, terms[::-1]
            mask = own.profiles.choices[left.choice].mask
            places = self._where(lambda p, m=mask: any(k & m for k, _ in self._asks(p, number) or ()))  # type: ignore[misc]
            check = Check(CHECKS[op], NOBODY, terms[1], masks, dict.fromkeys(places, terms[0]))
            made.append((check, places, op, terms[0]))
        decided = not any(self._after(self._automaton.first, number) & places for _, places, _, _ in made)
        checks = [check for check, _, _, _ in made]
        if not decided:
            checks = []
            for check, places, op, term in made:
                checks.append(check._replace(register=self._new(1)[0]))
                self._before(checks[-1].register, number, places, op, term)
        return [
            Early(
                guard,
                [op for op, masks in asks if all(m & mask for m in masks)],
                [check for check in checks if all(m & mask for m in check.masks)],
                decided,
            )
            for guard, mask in _single(node.inner)
        ]

    def _is_of(self, absence: int, veto: Veto) -> bool:
        node = self._automaton.vetoes[absence]
        if not isinstance(node, nodes.Candidate):
            return False
        return any(n == veto.number and d.number == node.number for n, d in self._automaton.across)

    def _before(self, register: int, number: int, places: set[int], op: str, term: int) -> None:
        """A register for what was bound before: what is hardest to satisfy of all that a variable is."""
        if op == "<>" and self._repeats(places, number):
            raise NotByRegisters("<> with a variable that can be several events")
        keeps = SAME if op in ("=", "<>") else KEEPS[op[0]][0]
        self.made.append(Clause(number, range(register, register + 1), {p: [(keeps, register, term)] for p in places}))


def _one_comparison(
    profiles: Profiles, clause: clauses.Clause
) -> tuple[Operand, str, Operand, list[int], list[bool], tuple[int, ...]]:
    """The comparison that a condition on what must not happen is, with its terms, whether its sides are inside, and the
    masks of those that are."""
    if len(clause.comparisons) != 1 or clause.tests or clause.related:
        arithmetic = clause.related and not clause.comparisons and not clause.tests
        what = "arithmetic over" if arithmetic else "an OR of comparisons with"
        raise NotByRegisters(f"{what} what must not happen")
    ((left, op, right),) = clause.comparisons
    if op not in CHECKS:
        raise NotByRegisters(f"the operator {op}")
    if any(profiles.choices[o.choice].in_a_row > 1 for o in (left, right)):
        raise NotByRegisters("what must not happen is compared with consecutive events")
    terms = [profiles.terms[o.choice][o.number] for o in (left, right)]
    inside = [profiles.levels[o.choice] == NEGATED for o in (left, right)]
    masks = tuple(profiles.choices[o.choice].mask for o, own in zip((left, right), inside, strict=True) if own)
    return left, op, right, terms, inside, masks


def _single(node: nodes.Node) -> tuple[tuple[int, int], ...]:
    """(guard, mask) of the events of an automaton each of whose matches begins with one that is a match by itself."""
    if not isinstance(node, nodes.Flat):
        raise NotByRegisters("what must not happen is more than an event")
    begins = [(guard, label, target) for source, guard, label, target in node.transitions.tolist()
              if source in node.initial and label != SKIP]  # fmt: skip
    if not begins or any(target not in node.final for _, _, target in begins):
        raise NotByRegisters("what must not happen is more than an event")
    return tuple(dict.fromkeys((guard, node.masks[label]) for guard, label, _ in begins))
