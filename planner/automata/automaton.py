"""Automata over labelled transitions: what all models share. Built by small constructors, trimmed, printed.

A transition reads one event that satisfies its guard (a conjunction of type names and predicates; the empty one is
TRUE) and marks it with its label, a set of variables; the empty label skips the event. State numbers follow the order
of construction, so prints are stable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from planner.terms import Predicate

Guard = frozenset[str | Predicate]  # a str is the name of an event type
Label = frozenset[str]

TRUE: Guard = frozenset()
NOTHING: Label = frozenset()


class Transition(NamedTuple):
    source: int
    guard: Guard
    label: Label
    target: int


@dataclass(frozen=True)
class Automaton:
    """Definition 5.1 of [CEL]: (Q, Δ, I, F); Q is 0 … n_states − 1."""

    n_states: int
    transitions: tuple[Transition, ...]
    initial: tuple[int, ...]
    final: tuple[int, ...]


def show_guard(guard: Guard) -> str:
    """`SELL & price > 100`; types first."""
    types = sorted(part for part in guard if isinstance(part, str))
    predicates = sorted(part.sql for part in guard if isinstance(part, Predicate))
    return " & ".join(types + predicates) or "TRUE"


def show_label(label: Label) -> str:
    return ", ".join(sorted(label)) or "-"


def show(automaton: Automaton) -> str:
    """One transition a line: `q0 -[SELL & price > 100 / s]-> q1`."""
    lines = [
        f"initial {', '.join(f'q{q}' for q in automaton.initial)}",
        f"final {', '.join(f'q{q}' for q in automaton.final)}",
    ]
    lines += [
        f"q{t.source} -[{show_guard(t.guard)} / {show_label(t.label)}]-> q{t.target}" for t in automaton.transitions
    ]
    return "\n".join(lines)


def dot(automaton: Automaton) -> str:
    """The automaton in Graphviz's language."""
    lines = ["digraph cea {", "  rankdir=LR;", "  node [shape=circle];"]
    lines += [f"  q{q} [shape=doublecircle];" for q in automaton.final]
    lines += [f"  start{q} [shape=point]; start{q} -> q{q};" for q in automaton.initial]
    for t in automaton.transitions:
        text = f"{show_guard(t.guard)} / {show_label(t.label)}".replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  q{t.source} -> q{t.target} [label="{text}"];')
    return "\n".join([*lines, "}"])


def trim(automaton: Automaton) -> Automaton:
    """Only the states on a way from an initial to a final state, renumbered in their old order."""
    forward = _reach(automaton.initial, ((t.source, t.target) for t in automaton.transitions))
    backward = _reach(automaton.final, ((t.target, t.source) for t in automaton.transitions))
    kept = sorted(forward & backward)
    number = {old: new for new, old in enumerate(kept)}
    transitions = dict.fromkeys(
        Transition(number[t.source], t.guard, t.label, number[t.target])
        for t in automaton.transitions
        if t.source in number and t.target in number
    )
    return Automaton(
        len(kept),
        tuple(sorted(transitions, key=lambda t: (t.source, t.target))),
        tuple(number[q] for q in automaton.initial if q in number),
        tuple(number[q] for q in automaton.final if q in number),
    )


def side_by_side(automata: Iterable[Automaton]) -> Automaton:
    """Several automata as one, none of whose parts reaches another."""
    n, transitions, initial, final = 0, [], [], []
    for part in automata:
        transitions += [t._replace(source=t.source + n, target=t.target + n) for t in part.transitions]
        initial += [q + n for q in part.initial]
        final += [q + n for q in part.final]
        n += part.n_states
    return Automaton(n, tuple(transitions), tuple(initial), tuple(final))


def relabel(automaton: Automaton, visible: frozenset[str]) -> Automaton:
    """Labels cut down to the visible variables; what differed only in others becomes one transition."""
    transitions = dict.fromkeys(t._replace(label=t.label & visible) for t in automaton.transitions)
    return Automaton(automaton.n_states, tuple(transitions), automaton.initial, automaton.final)


def _reach(start: Iterable[int], edges: Iterable[tuple[int, int]]) -> set[int]:
    after: dict[int, list[int]] = {}
    for source, target in edges:
        after.setdefault(source, []).append(target)
    seen, todo = set(start), list(start)
    while todo:
        for state in after.get(todo.pop(), ()):
            if state not in seen:
                seen.add(state)
                todo.append(state)
    return seen


def distinct_guards(transitions: Sequence[Transition]) -> tuple[Guard, ...]:
    """The guards of the marking transitions: one bit of the symbol each.

    A whole guard is a bit, not each atom of it: an event that satisfies some atoms, but no guard, then has symbol 0,
    and can be dropped. Bits follow the order of appearance; but if each guard has a type of its own, that of the type
    names, so that symbols sort as types do.
    """
    guards = tuple(dict.fromkeys(t.guard for t in transitions if t.label))
    types = [own_type(guard) for guard in guards]
    if None in types or len(set(types)) < len(types):
        return guards
    return tuple(sorted(guards, key=lambda guard: (own_type(guard) or "").encode()))


def own_type(guard: Guard) -> str | None:
    """The guard's only type name, or None if it has none or several."""
    types = [part for part in guard if isinstance(part, str)]
    return types[0] if len(types) == 1 else None
