"""The oracle against answers worked out by hand from the semantics page."""

from __future__ import annotations

import oracle
import pytest
from oracle import Event, Window, evaluate, evaluate_partitioned

from planner import cel
from planner.formula import Formula
from planner.query import Skip
from planner.terms import Predicate

A = cel.Event("A", frozenset({"A"}))
B = cel.Event("B", frozenset({"B"}))
C = cel.Event("C", frozenset({"C"}))
D = cel.Event("D", frozenset({"D"}))
ANY = cel.Event(None, frozenset({"ANY"}))
P = Predicate("p")


def events(text: str, times: list[int] | None = None, keys: list[object] | None = None) -> list[Event]:
    """One event per word; each letter of a word is true, `.` is a row that nothing accepts."""
    words = text.split()
    return [
        Event(frozenset(word.replace(".", "")), times[n] if times else n, keys[n] if keys else None)
        for n, word in enumerate(words)
    ]


def held(matches: set[oracle.Match]) -> list[dict[str, list[int]]]:
    """Matches in a form that is easy to write."""
    shown = [{variable: sorted(positions) for variable, positions in mu} for _, _, mu in matches]
    return sorted(shown, key=lambda m: (sorted(map(max, m.values())), sorted(m.items())))


def positions(matches: set[oracle.Match]) -> list[list[int]]:
    """All positions of each match."""
    return sorted(sorted({p for _, held in mu for p in held}) for _, _, mu in matches)


def test_an_atom_matches_each_event_that_it_accepts() -> None:
    assert held(evaluate(A, events("A B AB ."))) == [{"A": [0]}, {"A": [2]}]


def test_any_accepts_even_what_no_type_accepts() -> None:
    assert positions(evaluate(ANY, events("A ."))) == [[0], [1]]


def test_as_binds_every_occurrence_once() -> None:
    nested = cel.As(cel.As(cel.Sequence(A, B), "x"), "x")
    assert held(evaluate(nested, events("A B"))) == [{"A": [0], "B": [1], "x": [0, 1]}]


def test_sequence_skips_what_lies_between() -> None:
    assert positions(evaluate(cel.Sequence(A, B), events("A A . B B"))) == [[0, 3], [0, 4], [1, 3], [1, 4]]


def test_sequence_needs_two_events() -> None:
    assert positions(evaluate(cel.Sequence(A, B), events("AB AB"))) == [[0, 1]]


def test_contiguous_allows_nothing_between_and_anything_before() -> None:
    assert positions(evaluate(cel.Contiguous(A, B), events(". A B A . B"))) == [[1, 2]]


def test_contiguous_looks_at_the_start_of_its_right_side_only() -> None:
    right = cel.Sequence(B, A)
    assert positions(evaluate(cel.Contiguous(A, right), events("A B . A"))) == [[0, 1, 3]]


def test_iteration_takes_every_subset() -> None:
    assert positions(evaluate(cel.Iteration(A), events("A . A A"))) == [
        [0],
        [0, 2],
        [0, 2, 3],
        [0, 3],
        [2],
        [2, 3],
        [3],
    ]


def test_contiguous_iteration_takes_every_interval() -> None:
    assert positions(evaluate(cel.ContiguousIteration(A), events("A . A A"))) == [[0], [2], [2, 3], [3]]


def test_contiguous_iteration_joins_rounds_not_events() -> None:
    pairs = cel.ContiguousIteration(cel.Sequence(A, B))
    assert [0, 2, 3, 4] in positions(evaluate(pairs, events("A . B A B")))
    assert [0, 1, 3, 4] not in positions(evaluate(pairs, events("A B . A B")))


def test_two_derivations_are_one_match() -> None:
    assert len(evaluate(cel.Or(A, A), events("A"))) == 1
    assert len(evaluate(cel.Iteration(cel.Iteration(A)), events("A A A"))) == 7


def test_alternatives_that_mark_differently_are_two_matches() -> None:
    x, y = cel.Event("A", frozenset({"x"})), cel.Event("A", frozenset({"y"}))
    assert held(evaluate(cel.Or(x, y), events("A"))) == [{"x": [0]}, {"y": [0]}]


def test_filter_asks_every_event_of_its_variable() -> None:
    both = cel.Sequence(A, B)
    stream = events("A Ap B Bp")
    assert positions(evaluate(cel.Filter(both, "A", P), stream)) == [[1, 2], [1, 3]]
    assert positions(evaluate(cel.Filter(both, None, P), stream)) == [[1, 3]]


def test_filter_on_an_empty_variable_holds() -> None:
    either = cel.Filter(cel.Or(A, B), "A", P)
    assert positions(evaluate(either, events("A Ap B"))) == [[1], [2]]


def test_filter_binds_where_it_is_written() -> None:
    inside = cel.Sequence(cel.Filter(A, "A", P), A)
    outside = cel.Filter(cel.Sequence(A, A), "A", P)
    assert positions(evaluate(inside, events("Ap A"))) == [[0, 1]]
    assert positions(evaluate(outside, events("Ap A"))) == []


def test_one_variable_in_two_places_holds_the_events_of_both() -> None:
    x = cel.Event("A", frozenset({"x"})), cel.Event("B", frozenset({"x"}))
    assert held(evaluate(cel.Sequence(*x), events("A B"))) == [{"x": [0, 1]}]


def test_time_windows_are_inclusive_unless_strict() -> None:
    both, stream = cel.Sequence(A, B), events("A A B", [0, 1, 10])
    assert positions(evaluate(both, stream, Window("time", 10))) == [[0, 2], [1, 2]]
    assert positions(evaluate(both, stream, Window("time", 10, strict=True))) == [[1, 2]]
    assert positions(evaluate(both, stream, Window("time", 8))) == []


def test_count_windows_count_positions() -> None:
    both, stream = cel.Sequence(A, B), events("A . A . B")
    assert positions(evaluate(both, stream, Window("events", 5))) == [[0, 4], [2, 4]]
    assert positions(evaluate(both, stream, Window("events", 4))) == [[2, 4]]
    assert positions(evaluate(both, stream, Window("events", 2))) == []


def test_an_unknown_window_is_refused() -> None:
    with pytest.raises(ValueError, match="not a kind of window"):
        evaluate(A, events("A"), Window("rows", 5))


def test_partitions_have_their_own_positions_and_null_is_a_key() -> None:
    stream = events("A A B . B", keys=[None, 1, 1, None, None])
    found = evaluate_partitioned(cel.Contiguous(A, B), stream)
    assert {key: positions(matches) for key, matches in found.items()} == {None: [], 1: [[0, 1]]}
    found = evaluate_partitioned(cel.Sequence(A, B), stream)
    assert {key: positions(matches) for key, matches in found.items()} == {None: [[0, 2]], 1: [[0, 1]]}


def test_the_planners_own_variables_are_dropped_and_then_matches_merge() -> None:
    hidden = cel.Event("A", frozenset({"x", "@1"})), cel.Event("A", frozenset({"x", "@2"}))
    assert held(evaluate(cel.Or(*hidden), events("A"))) == [{"x": [0]}]


def test_a_limit_stops_the_evaluation() -> None:
    with pytest.raises(oracle.TooLarge):
        evaluate(cel.Iteration(A), events("A " * 12), limit=1000)


# ---------------------------------------------------------------- loops that count, and zero copies


def seq(*parts: Formula) -> Formula:
    left = parts[0]
    for part in parts[1:]:
        left = cel.Sequence(left, part)
    return left


def optional(inner: Formula) -> Formula:
    return cel.Repeat(inner, 0, 1)


def event(type: str, *marks: str) -> cel.Event:
    return cel.Event(type, frozenset(marks))


def test_repeat_counts_its_copies() -> None:
    stream = events("A A . A")
    assert positions(evaluate(cel.Repeat(A, 2, 2), stream)) == [[0, 1], [0, 3], [1, 3]]
    assert positions(evaluate(cel.Repeat(A, 2, 3), stream)) == [[0, 1], [0, 1, 3], [0, 3], [1, 3]]
    assert positions(evaluate(cel.Repeat(A, 3, None), stream)) == [[0, 1, 3]]
    assert positions(evaluate(cel.Repeat(A, 2, 3, contiguous=True), stream)) == [[0, 1]]
    assert positions(evaluate(cel.Repeat(A, 0, 1), stream)) == [[0], [1], [3]]  # no match without an event


def test_an_optional_part_is_there_or_not() -> None:
    stream = events("A B C C")
    assert positions(evaluate(seq(A, optional(B), C), stream)) == [[0, 1, 2], [0, 1, 3], [0, 2], [0, 3]]
    contiguous = cel.Contiguous(cel.Contiguous(A, optional(B)), C)
    assert positions(evaluate(contiguous, stream)) == [[0, 1, 2]]
    assert positions(evaluate(contiguous, events("A C C"))) == [[0, 1]]
    assert positions(evaluate(cel.Contiguous(A, cel.Contiguous(optional(B), C)), stream)) == [[0, 1, 2]]


def test_zero_copies_pass_through_loops_filters_and_or() -> None:
    inner = cel.Filter(cel.Or(cel.Iteration(optional(B)), optional(C)), "B", P)
    assert positions(evaluate(seq(A, inner, D), events("A B Bp C D"))) == [[0, 2, 4], [0, 3, 4], [0, 4]]


def test_a_loop_over_an_optional_part_may_have_fewer_rounds() -> None:
    twice = cel.Repeat(optional(B), 2, 2)
    assert positions(evaluate(seq(A, twice), events("A B B"))) == [[0], [0, 1], [0, 1, 2], [0, 2]]


def test_a_sequence_of_optional_parts_has_at_least_one_event() -> None:
    assert positions(evaluate(seq(optional(A), optional(B)), events("A B"))) == [[0], [0, 1], [1]]


# ---------------------------------------------------------------- AND, ALL, UNLESS, START, PROJECT, WITHIN


def test_and_wants_the_same_start_end_and_events() -> None:
    both = cel.And(cel.Iteration(event("A", "x")), seq(event(None, "x"), event(None, "x")))
    assert positions(evaluate(both, events("A . A A"))) == [[0, 2], [0, 3], [2, 3]]
    assert evaluate(cel.And(A, event("A", "x")), events("A")) == set()


def test_and_does_not_see_the_planners_own_variables() -> None:
    left, right = event("A", "x", "@A"), event("B", "x", "@B")
    both = cel.And(left, right)
    assert held(evaluate(both, events("A AB B"))) == [{"x": [1]}]
    for own in ("@A", "@B"):  # what is around it finds the event by both
        assert evaluate(cel.Filter(both, own, P), events("AB")) == set()


def test_and_of_projections_compares_starts_too() -> None:
    left = cel.Project(seq(A, event("C", "c")), frozenset({"c"}))
    right = cel.Project(seq(B, event("C", "c")), frozenset({"c"}))
    assert evaluate(cel.And(left, right), events("A B C")) == set()
    assert held(evaluate(cel.And(left, right), events("AB C"))) == [{"c": [1]}]


def test_all_takes_both_in_any_order_and_they_may_share_events() -> None:
    assert positions(evaluate(cel.All(A, B), events("A B A"))) == [[0, 1], [1, 2]]
    assert held(evaluate(cel.All(A, B), events("AB"))) == [{"A": [0], "B": [0]}]
    interleaved = cel.All(seq(A, C), seq(B, D))
    assert positions(evaluate(interleaved, events("A B D C"))) == [[0, 1, 2, 3]]


def test_unless_looks_from_the_first_event_to_the_last() -> None:
    formula = cel.Unless(seq(A, C), B)
    assert positions(evaluate(formula, events("B A C"))) == [[1, 2]]
    assert positions(evaluate(formula, events("A B C"))) == []
    assert positions(evaluate(formula, events("A C B"))) == [[0, 1]]
    assert positions(evaluate(formula, events("A BC"))) == []  # the match's own events are seen


def test_unless_wants_the_whole_veto_inside() -> None:
    formula = cel.Unless(seq(A, C), seq(B, B))
    assert positions(evaluate(formula, events("B A B C"))) == [[1, 3]]
    assert positions(evaluate(formula, events("A B B C"))) == []


def test_unless_its_own_event_never_holds() -> None:
    assert evaluate(cel.Unless(seq(A, C), A), events("A C A C")) == set()


def test_start_begins_where_the_search_begins() -> None:
    assert positions(evaluate(cel.Start(seq(A, B)), events("A A B"))) == [[0, 2]]
    assert positions(evaluate(cel.Start(A), events(". A"))) == []
    assert positions(evaluate(seq(A, cel.Start(B)), events("A B . B"))) == [[0, 1]]  # as A : B


def test_projection_keeps_start_and_end() -> None:
    formula = cel.Project(seq(B, event("C", "c")), frozenset({"c"}))
    assert evaluate(formula, events("B B C")) == {
        (0, 2, frozenset({("c", frozenset({2}))})),
        (1, 2, frozenset({("c", frozenset({2}))})),
    }


def test_projection_may_leave_nothing_but_start_and_end() -> None:
    formula = cel.Project(cel.Or(event("A", "x"), event("B", "y")), frozenset({"x"}))
    assert evaluate(formula, events("A B")) == {(0, 0, frozenset({("x", frozenset({0}))})), (1, 1, frozenset())}


def test_what_is_around_a_projection_sees_its_events_only() -> None:
    inner = cel.Project(seq(A, B), frozenset({"B"}))
    assert held(evaluate(cel.As(inner, "x"), events("A B"))) == [{"B": [1], "x": [1]}]
    assert held(evaluate(cel.Filter(inner, None, P), events("A Bp"))) == [{"B": [1]}]
    assert evaluate(cel.Contiguous(C, inner), events("C . A B")) == set()  # the hidden A is still the start
    assert positions(evaluate(cel.Contiguous(C, inner), events("C A . B"))) == [[0, 3]]


def test_two_events_that_projection_makes_equal_are_one_match() -> None:
    formula = cel.Project(seq(A, B, C), frozenset({"A", "C"}))
    assert held(evaluate(formula, events("A B B C"))) == [{"A": [0], "C": [3]}]


def test_an_inner_window_binds_its_part() -> None:
    formula = seq(cel.Within(seq(A, B), Window("time", 2)), C)
    stream = events("A B A B C", [0, 2, 5, 8, 99])
    assert positions(evaluate(formula, stream)) == [[0, 1, 4]]
    in_events = seq(cel.Within(seq(A, B), Window("events", 2)), C)
    assert positions(evaluate(in_events, stream)) == [[0, 1, 4], [2, 3, 4]]


def test_one_side_of_an_or_in_a_filter_must_hold_of_all_its_events() -> None:
    q = Predicate("q")
    formula = cel.FilterAny(seq(cel.Iteration(A), B), (("A", P), ("B", q)))
    assert positions(evaluate(formula, events("Ap A B"))) == [[0, 2]]
    assert positions(evaluate(formula, events("Ap A Bq"))) == [[0, 1, 2], [0, 2], [1, 2]]
    assert positions(evaluate(cel.FilterAny(cel.Or(A, B), (("A", P), ("B", q))), events("A B"))) == [[0], [1]]


# ---------------------------------------------------------------- what does not happen


def test_absence_looks_strictly_between() -> None:
    formula = cel.Absent(A, (B,), C)
    assert positions(evaluate(formula, events("B A C B"))) == [[1, 2]]
    assert positions(evaluate(formula, events("A B C"))) == []
    assert positions(evaluate(formula, events("AB BC"))) == [[0, 1]]  # the events on both sides are not between
    assert positions(evaluate(formula, events("A C B C"))) == [[0, 1]]


def test_an_absent_formula_must_lie_between_as_a_whole() -> None:
    formula = cel.Absent(A, (seq(B, B),), C)
    assert positions(evaluate(formula, events("A B C"))) == [[0, 2]]
    assert positions(evaluate(formula, events("A B B C"))) == []
    assert positions(evaluate(formula, events("B A B C"))) == [[1, 3]]


def test_each_of_several_absences_counts() -> None:
    formula = cel.Absent(A, (B, D), C)
    assert [positions(evaluate(formula, events(f"A {word} C"))) for word in (".", "B", "D")] == [[[0, 2]], [], []]


def test_absence_asks_of_the_first_event_after_it() -> None:
    """`A ; !B ; (C ; D)`: nothing is said of the events after C."""
    formula = cel.Absent(A, (B,), seq(C, D))
    assert positions(evaluate(formula, events("A C B D"))) == [[0, 1, 3]]
    assert positions(evaluate(formula, events("A C B C D"))) == [[0, 1, 4]]


def test_absence_after_the_match() -> None:
    formula = cel.NotAfter(A, (B,), Window("time", 10))
    assert positions(evaluate(formula, events("A B", [0, 10]))) == []
    assert positions(evaluate(formula, events("A B", [0, 11]))) == [[0]]
    assert positions(evaluate(formula, events("A", [0]))) == [[0]]  # the end of the input is time having passed
    strict = cel.NotAfter(A, (B,), Window("time", 10, strict=True))
    assert positions(evaluate(strict, events("A B", [0, 10]))) == [[0]]
    assert positions(evaluate(formula, events("AB A", [0, 1]))) == [[0], [1]]  # not the match's own event
    assert positions(evaluate(formula, events("A B", [5, 5]))) == []  # later in the order, at the same time


def test_the_window_of_an_absence_after_is_that_of_the_start() -> None:
    formula = cel.NotAfter(seq(A, C), (B,), Window("time", 10))
    assert positions(evaluate(formula, events("A C B", [0, 8, 11]))) == [[0, 1]]
    assert positions(evaluate(formula, events("A C B", [0, 8, 10]))) == []


def test_absence_after_in_events() -> None:
    formula = cel.NotAfter(A, (B,), Window("events", 3))  # the window of 0 is 0, 1, 2
    assert positions(evaluate(formula, events("A . B"))) == []
    assert positions(evaluate(formula, events("A . . B"))) == [[0]]


def test_absence_before_the_match() -> None:
    formula = cel.NotBefore((B,), A, Window("time", 10))
    assert positions(evaluate(formula, events("B A", [0, 10]))) == []
    assert positions(evaluate(formula, events("B A", [0, 11]))) == [[1]]
    assert positions(evaluate(formula, events("A B", [0, 1]))) == [[0]]
    strict = cel.NotBefore((B,), A, Window("time", 10, strict=True))
    assert positions(evaluate(strict, events("B A", [0, 10]))) == [[1]]
    in_events = cel.NotBefore((B,), A, Window("events", 3))  # the window of 3 is 1, 2, 3
    assert positions(evaluate(in_events, events("B . . A"))) == [[3]]
    assert positions(evaluate(in_events, events(". B . A"))) == []


def test_the_window_of_an_absence_before_is_that_of_the_end() -> None:
    formula = cel.NotBefore((B,), seq(A, C), Window("time", 10))
    assert positions(evaluate(formula, events("B A C", [0, 8, 11]))) == [[1, 2]]
    assert positions(evaluate(formula, events("B A C", [0, 8, 10]))) == []


def test_an_absent_formula_lies_in_the_window_as_a_whole() -> None:
    after = cel.NotAfter(A, (seq(B, B),), Window("time", 10))
    assert positions(evaluate(after, events("A B B", [0, 1, 11]))) == [[0]]
    before = cel.NotBefore((seq(B, B),), A, Window("time", 10))
    assert positions(evaluate(before, events("B B A", [0, 1, 11]))) == [[2]]
    assert positions(evaluate(before, events("B B A", [1, 1, 11]))) == []


def test_absence_on_both_sides_under_a_filter() -> None:
    window = Window("events", 2)
    formula = cel.Filter(cel.NotBefore((B,), cel.NotAfter(A, (B,), window), window), "A", P)
    assert positions(evaluate(formula, events("Ap . B . Ap B Ap . A"))) == [[0]]


# ---------------------------------------------------------------- strategies


def clause(formula: Formula, text: str, rule: str, window: Window | None = None) -> list[list[int]]:
    return positions(evaluate(formula, events(text), window, strategy=rule))


def test_strict_wants_an_interval() -> None:
    assert clause(seq(A, B), "A A B . B", "STRICT") == [[1, 2]]
    assert clause(seq(A, cel.Iteration(B)), "A B B", "STRICT") == [[0, 1], [0, 1, 2]]


def test_nxt_and_last_choose_one_set_of_positions_for_each_end() -> None:
    assert clause(seq(A, B), "A A B B", "NXT") == [[0, 2], [0, 3]]
    assert clause(seq(A, B), "A A B B", "LAST") == [[1, 2], [1, 3]]
    assert clause(cel.Iteration(A), "A . A", "NXT") == [[0], [0, 2]]
    assert clause(cel.Iteration(A), "A . A", "LAST") == [[0], [0, 2]]


def test_max_drops_what_another_match_contains() -> None:
    optionally = cel.Or(seq(A, B, D), cel.Or(seq(A, D), seq(C, D)))
    assert clause(optionally, "C A B D", "MAX") == [[0, 3], [1, 2, 3]]


def test_one_set_of_positions_may_be_several_matches() -> None:
    either = cel.Or(event("A", "x"), event("A", "y"))
    for rule in ("NXT", "LAST", "MAX", "STRICT"):
        assert held(evaluate(either, events("A"), strategy=rule)) == [{"x": [0]}, {"y": [0]}]


def test_a_strategy_looks_at_what_projection_left() -> None:
    formula = cel.Project(seq(A, B, C), frozenset({"A", "C"}))
    assert evaluate(formula, events("A B C"), strategy="STRICT") == set()
    hidden = cel.Project(seq(A, C), frozenset({"C"}))
    assert positions(evaluate(hidden, events("A . C"), strategy="STRICT")) == [[2]]


def test_the_clause_chooses_in_the_window_and_the_operator_before_it() -> None:
    window = Window("events", 2)
    assert clause(seq(A, B), "A A B", "NXT", window) == [[1, 2]]
    assert evaluate(cel.Strategy("NXT", seq(A, B)), events("A A B"), window) == set()


def test_a_nested_strategy_compares_what_lies_after_the_part_before() -> None:
    formula = seq(A, cel.Strategy("NXT", seq(B, C)))
    assert positions(evaluate(formula, events("A B B A B C"))) == [[0, 1, 5], [3, 4, 5]]
    formula = seq(A, cel.Strategy("LAST", seq(B, C)))
    assert positions(evaluate(formula, events("A B B A B C"))) == [[0, 4, 5], [3, 4, 5]]


def test_the_strategy_chooses_among_survivors_of_an_absence() -> None:
    formula = cel.NotAfter(seq(A, C), (B,), Window("events", 4))
    assert clause(formula, "A A . C B", "NXT") == [[0, 3]]
    assert clause(formula, "A A C . B", "NXT") == [[0, 2]]
    assert clause(formula, "A A C B", "NXT") == []
    assert clause(formula, "A . A C B", "LAST") == [[0, 3]]  # {2, 3} was vetoed


# ---------------------------------------------------------------- skip till next match


def next_match(formula: Formula, text: str, window: Window | None = None) -> list[list[int]]:
    return clause(formula, text, "NEXT_MATCH", window)


def test_skip_till_next_match_takes_what_it_can() -> None:
    assert next_match(seq(A, B), "A A B B") == [[0, 2], [1, 2]]
    assert next_match(seq(A, B, C), "A B B C C") == [[0, 1, 3]]


def test_a_run_goes_on_after_a_match() -> None:
    assert next_match(seq(A, cel.Iteration(B)), "A B . B") == [[0, 1], [0, 1, 3]]
    assert next_match(cel.Iteration(A), "A A A") == [[0], [0, 1], [0, 1, 2], [1], [1, 2], [2]]


def test_once_for_each_follower_that_accepts() -> None:
    formula = seq(A, cel.Iteration(B), event(None, "x"))
    assert next_match(formula, "A B B") == [[0, 1, 2]]
    assert held(evaluate(seq(A, cel.Or(event("B", "x"), event("B", "y"))), events("A B"), strategy="NEXT_MATCH")) == [
        {"A": [0], "x": [1]},
        {"A": [0], "y": [1]},
    ]


def test_a_run_dies_where_only_contiguous_followers_are() -> None:
    assert next_match(cel.Contiguous(A, B), "A . B A B") == [[3, 4]]
    either = cel.Or(cel.Contiguous(A, B), seq(A, C))  # two atoms A, hence two runs from every A
    assert next_match(either, "A B C") == [[0, 1], [0, 2]]


def test_an_event_that_fails_a_condition_is_skipped() -> None:
    assert next_match(seq(A, cel.Filter(B, "B", P)), "A B Bp Bp") == [[0, 2]]
    assert next_match(cel.Filter(seq(A, B), None, P), "A Ap B Bp") == [[1, 3]]


def test_an_or_of_conditions_is_decided_by_what_was_taken() -> None:
    formula = cel.FilterAny(seq(A, B), (("A", P), ("B", Predicate("q"))))
    assert next_match(formula, "A B Bq") == [[0, 2]]
    assert next_match(formula, "Ap B Bq") == [[0, 1]]
    rounds = cel.Iteration(formula)
    assert next_match(rounds, "A Bq Ap B") == [[0, 1], [0, 1, 2, 3], [2, 3]]


def test_a_follower_behind_an_absence_waits_no_longer_when_it_is_broken() -> None:
    formula = cel.Absent(A, (B,), C)
    assert next_match(formula, "A . C") == [[0, 2]]
    assert next_match(formula, "A B C") == []
    either = cel.Or(formula, A)
    assert next_match(either, "A B C") == [[0]]


def test_optional_parts_are_taken_where_they_can_be() -> None:
    formula = seq(A, optional(B), C)
    assert next_match(formula, "A B C") == [[0, 1, 2]]
    assert next_match(formula, "A C B C") == [[0, 1]]
    assert next_match(seq(A, cel.Repeat(B, 2, 3), C), "A B B B B C") == [[0, 1, 2, 3, 5]]
    assert next_match(seq(A, cel.Repeat(B, 0, None), C), "A B . B C") == [[0, 1, 3, 4]]


def test_what_skip_till_next_match_found_must_fit_the_window() -> None:
    assert next_match(seq(A, B), "A A B B", Window("events", 2)) == [[1, 2]]
    after = cel.NotAfter(seq(A, B), (C,), Window("events", 3))
    assert next_match(after, "A A B C") == [[0, 2]]


def test_skip_till_next_match_is_not_defined_for_all_formulas() -> None:
    with pytest.raises(TypeError, match="skip till next match"):
        evaluate(cel.All(A, B), events("A B"), strategy="NEXT_MATCH")


# ---------------------------------------------------------------- consumption and skipping


def test_a_match_consumes_all_starts_up_to_its_end() -> None:
    found = evaluate(seq(A, B), events("A A B B A B"), consume="PARTITION")
    assert positions(found) == [[0, 2], [1, 2], [4, 5]]


def test_what_the_strategy_does_not_choose_is_consumed_too() -> None:
    found = evaluate(seq(A, B), events("A A B B"), strategy="LAST", consume="PARTITION")
    assert positions(found) == [[1, 2]]


def test_consumed_starts_do_not_compete() -> None:
    formula = cel.Or(seq(A, B), seq(A, C))
    assert positions(evaluate(formula, events("A B A C"), strategy="NXT")) == [[0, 1], [0, 3]]
    assert positions(evaluate(formula, events("A B A C"), strategy="NXT", consume="PARTITION")) == [[0, 1], [2, 3]]


def test_an_event_that_ends_a_match_cannot_start_another() -> None:
    assert positions(evaluate(seq(A, A), events("A A A A"), consume="PARTITION")) == [[0, 1], [2, 3]]


def test_a_match_outside_the_window_consumes_nothing() -> None:
    found = evaluate(seq(A, B), events("A . B A B"), Window("events", 2), consume="PARTITION")
    assert positions(found) == [[3, 4]]


def test_consumption_of_the_key_or_of_all_keys() -> None:
    stream = events("A A B B A B", keys=[1, 2, 1, 2, 2, 2])

    def found(consume: str) -> dict[object, list[list[int]]]:
        matches = evaluate_partitioned(seq(A, B), stream, consume=consume)
        return {key: positions(held) for key, held in matches.items()}

    assert found("PARTITION") == {1: [[0, 1]], 2: [[0, 1], [2, 3]]}
    assert found("ANY") == {1: [[0, 1]], 2: [[2, 3]]}


def skipping(formula: Formula, text: str, to: str, mark: str | None = None) -> list[list[int]]:
    return positions(evaluate(formula, events(text), skip=Skip(to, mark)))


def test_skip_takes_the_longest_match_of_the_least_start() -> None:
    formula = seq(A, cel.Iteration(B))
    assert skipping(formula, "A B A B B", "PAST LAST ROW") == [[0, 1, 3, 4]]
    assert skipping(formula, "A B A B B", "TO NEXT ROW") == [[0, 1, 3, 4], [2, 3, 4]]


def test_skip_to_an_event_of_the_match() -> None:
    formula = seq(event("A", "a"), cel.Iteration(event("A", "b")))
    assert skipping(formula, "A A A A", "TO FIRST", "b") == [[0, 1, 2, 3], [1, 2, 3], [2, 3]]
    assert skipping(formula, "A A A A", "TO LAST", "b") == [[0, 1, 2, 3]]
    pairs = seq(event("A", "a"), event("A", "b"))
    assert skipping(pairs, "A A A", "TO LAST", "b") == [[0, 2]]
    assert skipping(cel.Contiguous(*pairs.children()), "A A A A", "TO LAST", "b") == [[0, 1], [1, 2], [2, 3]]


def test_skip_without_progress_goes_to_the_next_row() -> None:
    formula = cel.Contiguous(event("A", "a"), cel.Or(event("A", "b"), event("C", "c")))
    assert skipping(formula, "A A A", "TO FIRST", "a") == [[0, 1], [1, 2]]
    assert skipping(formula, "A C A A", "TO LAST", "b") == [[0, 1], [2, 3]]  # b is empty in the first


def test_skip_takes_one_row_even_if_several_remain() -> None:
    either = cel.Or(event("A", "x"), event("A", "y"))
    assert held(evaluate(either, events("A A"), skip=Skip("PAST LAST ROW"))) == [{"y": [0]}, {"y": [1]}]


def test_skip_chooses_among_survivors_of_an_absence() -> None:
    formula = cel.NotAfter(seq(A, C), (B,), Window("events", 4))
    assert skipping(formula, "A C . C B", "PAST LAST ROW") == [[0, 3]]
    assert skipping(formula, "A C C B", "PAST LAST ROW") == []
    assert skipping(formula, "A C C . B", "PAST LAST ROW") == [[0, 2]]
