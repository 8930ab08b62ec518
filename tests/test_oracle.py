"""The oracle against answers worked out by hand from the semantics page."""

from __future__ import annotations

import oracle
import pytest
from oracle import Event, Window, evaluate, evaluate_partitioned

from planner import cel

A = cel.Event("A", frozenset({"A"}))
B = cel.Event("B", frozenset({"B"}))
ANY = cel.Event(None, frozenset({"ANY"}))
P = cel.Predicate("p")


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
