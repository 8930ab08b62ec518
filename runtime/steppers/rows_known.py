"""Rows of the general engine that are known: what a state did before, on an event that means the same to it.

What a state does depends on the guards that the event satisfies, and on what its machines ask beyond these: values that
are compared, and which windows have closed. Most events are asked nothing by most states. So a row is kept under the
questions that were asked for it, with their answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime import capacities
from runtime.automata.machine import NOW, Clock, Symbol, Value

Question = int | tuple[Clock, int]  # the value of a term, or whether a window has closed for a clock
States = frozenset[Value]
Row = tuple[States, list[tuple[int, States, bool]], bool]  # see GeneralStepper._row


class Asked(Symbol):
    """An event that notes the questions which it is asked, and what it said."""

    def __init__(
        self, words: tuple[int, ...], values: tuple[int | None, ...], has_closed: Callable[[Clock, int], bool]
    ) -> None:
        # One is made for each event: at once, and not field by field, as a frozen class does.
        self.__dict__.update(words=words, closed_of=(), values=values, has_closed=has_closed, said={})

    has_closed: Callable[[Clock, int], bool]
    said: dict[Question, Any]

    def value(self, term: int) -> int | None:
        answer = self.said[term] = self.values[term]
        return answer

    def closed(self, clock: Clock, window: int) -> bool:
        if clock == NOW:
            return False
        answer = self.said[clock, window] = self.has_closed(clock, window)
        return answer

    def answers(self, questions: tuple[Question, ...]) -> tuple[Any, ...]:
        """What it would say, without noting it."""
        return tuple([self.values[q] if isinstance(q, int) else self.has_closed(*q) for q in questions])


ByAnswers = dict[tuple[Question, ...], dict[tuple[Any, ...], Row]]


class KnownRows:
    """Rows by state, guards, and answers; O(1) for each set of questions that the state has asked. Now and then all are
    forgotten, so that no more than a few are kept for each live state."""

    def __init__(self) -> None:
        self._rows: dict[States, dict[tuple[int, ...], ByAnswers]] = {}  # by state and words
        self._n = 0

    def find(self, states: States, event: Asked) -> Row | None:
        """The row, if it is known; else the event is ready to be asked."""
        by_words = self._rows.get(states)
        known = None if by_words is None else by_words.get(event.words)
        if known is not None:
            for questions, rows in known.items():
                row = rows.get(event.answers(questions) if questions else ())
                if row is not None:
                    return row
        event.said.clear()
        return None

    def keep(self, states: States, event: Asked, row: Row, live: int) -> None:
        """Keep a row that was made by asking the event. `live`: how many states there are."""
        if self._n > capacities.KNOWN_ROWS + live:
            self._rows, self._n = {}, 0
        by_questions = self._rows.setdefault(states, {}).setdefault(event.words, {})
        by_questions.setdefault(tuple(event.said), {})[tuple(event.said.values())] = row
        self._n += 1
