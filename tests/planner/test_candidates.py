"""Rules are applied once and keep what a formula binds; candidates are asked in order, and all refusals are kept."""

from __future__ import annotations

import pytest

from planner import candidates, cel
from planner.across import Across, Candidate
from planner.candidates import CANDIDATES, Asked
from planner.compile import lowered
from planner.formula import Formula
from planner.query import Skip
from planner.refusal import Refusal
from planner.rewrite.rules import RULES, rewritten
from planner.terms import Comparison, Term, Window

A, B, C = (cel.Event(name, frozenset({name.lower()})) for name in "ABC")
RISING = (Comparison(Term("a", "v"), "<", Term("b", "v")),)
EQUAL = (Comparison(Term("a", "v"), "=", Term("b", "v")),)
RISING_APART = (Comparison(Term("a", "v"), "<", Term("c", "v")),)
APART = (Comparison(Term("a", "v"), "=", Term("c", "v")),)
VETO = cel.Absent(A, (Candidate(C, 0),), B)
OTHERS = (Comparison(Term("a", "v"), "<", Term("c", "v")),)
HOUR = Window("time", 60)
# What each rule changes: the formula before and after all rules.
EXAMPLES: dict[str, tuple[Formula, Formula]] = {
    "without_choice_before": (
        cel.NotBefore((cel.Strategy("NXT", C),), A, HOUR),
        cel.NotBefore((C,), A, HOUR),
    ),
    "choosing_once": (cel.Strategy("NXT", cel.Strategy("MAX", A)), cel.Strategy("NXT", A)),
    "alike_alternatives": (
        cel.Or(
            cel.Sequence(cel.Agree(cel.Sequence(A, B), ((None, "v"),)), C),
            cel.Sequence(A, cel.Agree(cel.Sequence(B, C), ((None, "v"),))),
        ),
        cel.Compare(
            cel.Sequence(cel.Sequence(A, B), C),
            (*EQUAL, Comparison(Term("b", "v"), "=", Term("c", "v"))),
        ),
    ),
    "inside_choices": (
        Across(cel.Strategy("NXT", VETO), 0, (OTHERS,)),
        cel.Strategy("NXT", Across(VETO, 0, (OTHERS,))),
    ),
    "absence_outside": (cel.As(cel.NotAfter(A, (C,), HOUR), "x"), cel.NotAfter(cel.As(A, "x"), (C,), HOUR)),
    "push_filters": (
        cel.Compare(cel.Sequence(C, cel.Sequence(A, B)), RISING),
        cel.Sequence(C, cel.Compare(cel.Sequence(A, B), RISING)),
    ),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_each_rule_changes_its_example_and_nothing_twice(rule: object) -> None:
    name = rule.__name__  # type: ignore[attr-defined]
    before, after = EXAMPLES[name]
    assert rewritten(before) == (after, (name,))
    assert rewritten(after) == (after, ())


LATE = cel.NotAfter(cel.Sequence(A, B), (C,), HOUR)
RUN_BY = {
    "flat table": (cel.Sequence(A, B), {}),
    "parallel runs": (cel.Compare(cel.All(A, B), EQUAL), {}),
    "deferred runs": (cel.Compare(cel.Sequence(A, cel.Sequence(B, C)), APART), {}),
    "runs in order": (cel.Compare(cel.Sequence(A, cel.Sequence(B, C)), RISING_APART), {}),
    "two stacks": (cel.Sequence(A, B), {"window": HOUR, "strategy": "NXT"}),
    "registers": (cel.Compare(cel.Sequence(A, B), RISING), {}),
    "composed table": (cel.Unless(cel.Sequence(A, B), C), {}),
    "general engine": (cel.Compare(cel.Strategy("MAX", cel.Sequence(A, B)), RISING), {}),
}


def test_each_candidate_runs_something() -> None:
    assert list(RUN_BY) == [name for name, _ in CANDIDATES]


@pytest.mark.parametrize("name", RUN_BY)
def test_the_first_that_can_runs_it_and_all_before_it_say_why_not(name: str) -> None:
    formula, options = RUN_BY[name]
    made = lowered(Asked(formula, **{"window": None, "variables": ("a", "b", "c"), **options}))
    names = [candidate for candidate, _ in CANDIDATES]
    assert made.stepper == name
    assert [refused for refused, _ in made.refusals] == names[: names.index(name)]
    assert all(isinstance(why, Refusal) and why.reason for _, why in made.refusals)


@pytest.mark.parametrize(
    ("formula", "options", "stepper", "why"),
    [
        (cel.Sequence(A, B), {"strategy": "MAX"}, "composed table", "matches compete"),
        (cel.Compare(cel.All(A, B), RISING), {}, "registers", "no equality of two events"),
        (cel.Compare(cel.Unless(cel.Sequence(A, B), cel.Sequence(C, C)), RISING), {}, "registers", "several events"),
        (RUN_BY["registers"][0], {"timeouts": True}, "registers", "WITH TIMEOUTS looks on"),
        (RUN_BY["registers"][0], {"timeouts": True, "strategy": "NXT"}, "general engine", "WITH TIMEOUTS looks on"),
        (RUN_BY["registers"][0], {"strategy": "MAX"}, "general engine", "matches compete by MAX"),
        (
            RUN_BY["registers"][0],
            {"skip": Skip("TO NEXT ROW"), "strategy": "NXT"},
            "general engine",
            "taken one by one",
        ),
        (RUN_BY["registers"][0], {"consume": "ANY"}, "general engine", "consumed in all keys"),
        (cel.NotBefore((cel.Start(C),), A, HOUR), {"consume": "ANY"}, "general engine", "asks where its search begins"),
        (cel.Sequence(A, B), {"consume": "ANY"}, "composed table", "consumed"),
        (cel.NotBefore((cel.Start(C),), A, HOUR), {}, "general engine", "asks where its search begins"),
        (LATE, {}, "two stacks", "something must not happen before or after the match"),
        (LATE, {"sums": True}, "registers", "summed up"),
        (LATE, {"strategy": "NXT"}, "composed table", "matches compete by MAX, or are consumed in all keys"),
        (LATE, {"timeouts": True}, "composed table", "WITH TIMEOUTS looks on"),
        (LATE, {"consume": "PARTITION"}, "composed table", "consumed or skipped beside an absence"),
        (cel.NotBefore((C,), LATE, HOUR), {}, "registers", "something must not happen before the match"),
        (cel.NotAfter(cel.Sequence(A, B), (cel.Sequence(C, C),), HOUR), {}, "composed table", "more than an event"),
        (cel.NotAfter(A, (C,), HOUR), {}, "registers", "no event looks at others"),
    ],
)
def test_why_not_something_faster(formula: Formula, options: dict, stepper: str, why: str) -> None:
    made = lowered(Asked(formula, HOUR, ("a", "b"), **options))
    assert made.stepper == stepper
    assert why in " ".join(str(refusal) for _, refusal in made.refusals)


def test_the_list_is_the_only_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its first entry another candidate runs the same formula."""
    monkeypatch.setattr(candidates, "CANDIDATES", CANDIDATES[1:])
    assert lowered(Asked(cel.Sequence(A, B), None, ("a", "b"))).stepper == "composed table"
