"""Where comparisons with what must not happen are made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cersql import compile
from planner import cel
from planner.across import Across, Candidate, Pending
from planner.formula import Formula
from planner.rewrite.across import inside_choices
from planner.terms import Comparison, Term

VETO = Candidate(cel.Event("B", frozenset({"b"})), 7)
A, C, D = (cel.Event(type, frozenset({type.lower()})) for type in "ACD")
GAP = cel.Absent(A, (VETO,), C)
CLAUSES = ((Comparison(Term("a", "x"), "<", Term("b", "x"), ""),),)


def compared(formula: Formula) -> Formula:
    return Across(formula, 7, CLAUSES)


INSIDE: dict[str, Callable[[Formula], Formula]] = {
    "a strategy": lambda gap: cel.Strategy("NXT", gap),
    "two": lambda gap: cel.Strategy("MAX", cel.As(cel.Strategy("LAST", gap), "m")),
    "what follows": lambda gap: cel.Sequence(D, cel.Strategy("NXT", gap)),
    "a branch": lambda gap: cel.Or(D, cel.Start(cel.Strategy("NXT", gap))),
    "each round": lambda gap: cel.Iteration(cel.Strategy("NXT", gap)),
    "veto around it": lambda gap: cel.Unless(cel.Strategy("NXT", gap), D),
    "what must not happen": lambda gap: cel.Absent(D, (gap,), D),
    "with a name of its own": lambda gap: cel.As(cel.Strategy("NXT", gap), "a"),
}
STAYS: dict[str, Formula] = {
    "no choice": cel.Sequence(D, GAP),
    "a choice beside it": cel.Sequence(cel.Strategy("NXT", D), GAP),
    "both sides": cel.And(GAP, cel.Sequence(A, C)),
    "nothing to choose": cel.Strategy("STRICT", GAP),
}
OTHER = cel.Absent(D, (VETO,), C)  # binds no a
SPLIT: dict[str, tuple[Formula, Formula]] = {
    "asks of what is outside": (
        cel.Sequence(A, cel.Strategy("NXT", OTHER)),
        cel.Sequence(A, cel.Strategy("NXT", Pending(OTHER, 7, 1))),
    ),
    "asks of a name outside": (
        cel.As(cel.Strategy("NXT", OTHER), "a"),
        cel.As(cel.Strategy("NXT", Pending(OTHER, 7, 1)), "a"),
    ),
    "two choices": (
        cel.Sequence(A, cel.Strategy("NXT", cel.Absent(D, (OTHER,), D))),
        cel.Sequence(A, cel.Strategy("NXT", Pending(cel.Absent(D, (Pending(OTHER, 7, 2),), D), 7, 1))),
    ),
    "a compared negated part": (
        cel.Absent(A, (Candidate(OTHER, 8),), D),
        cel.Absent(A, (Candidate(Pending(OTHER, 7, 1), 8),), D),
    ),
}


@pytest.mark.parametrize("around", INSIDE)
def test_inside_what_chooses(around: str) -> None:
    assert inside_choices(compared(INSIDE[around](GAP))) == INSIDE[around](compared(GAP))


@pytest.mark.parametrize("around", SPLIT)
def test_pending_in_each_choice(around: str) -> None:
    formula, made = SPLIT[around]
    assert inside_choices(compared(formula)) == compared(made)
    assert inside_choices(compared(made)) == compared(made), "once is enough"


def test_two_comparisons_around_a_choice() -> None:
    """Each goes where its variables are bound, whichever stands outside."""
    inner = cel.Absent(A, (Candidate(cel.Absent(D, (VETO,), D), 8),), C)
    other = ((Comparison(Term("a", "x"), "<", Term("d", "x"), ""),),)
    both = compared(Across(cel.Strategy("NXT", inner), 8, other))
    pending = cel.Absent(A, (Candidate(Pending(cel.Absent(D, (VETO,), D), 7, 1), 8),), C)
    made = cel.Strategy("NXT", Across(compared(pending), 8, other))
    assert inside_choices(both) == made
    assert inside_choices(Across(compared(cel.Strategy("NXT", inner)), 8, other)) == cel.Strategy(
        "NXT", compared(Across(pending, 8, other))
    )


def test_inside_the_outer_of_two_choices() -> None:
    both = cel.Strategy("NXT", cel.Sequence(A, cel.Strategy("MAX", OTHER)))
    made = compared(cel.Sequence(A, cel.Strategy("MAX", Pending(OTHER, 7, 1))))
    assert inside_choices(compared(both)) == cel.Strategy("NXT", made)


def test_all_rounds_of_a_loop_that_is_chosen_from() -> None:
    rounds = cel.Iteration(GAP)
    assert inside_choices(compared(cel.Strategy("NXT", rounds))) == cel.Strategy("NXT", compared(rounds))


@pytest.mark.parametrize("around", STAYS)
def test_where_it_stands(around: str) -> None:
    assert inside_choices(compared(STAYS[around])) == compared(STAYS[around])


SCHEMA = {"t": {"type": "string", "x": "int", "ts": "timestamp"}}


@pytest.mark.parametrize(
    "pattern",
    ["NXT(SEQ(A a, !B b, C c){0})", "D d ; MAX(SEQ(A a, !B b, C c){0})", "NXT(SEQ(A a, !B b, C c){0})+"],
)
def test_a_condition_belongs_to_the_negated_part(pattern: str) -> None:
    """In WHERE it is what it is in a FILTER of that part."""
    text = "FROM t PATTERN {} {} ORDER BY ts WITHIN 1 MINUTE RETURN a.x"
    where = compile(text.format(pattern.format(""), "WHERE a.x < b.x"), SCHEMA)
    inside = pattern.replace("SEQ(A a, !B b, C c){0}", "(SEQ(A a, !B b, C c) FILTER a.x < b.x)")
    assert where.explain("program") == compile(text.format(inside, ""), SCHEMA).explain("program")
