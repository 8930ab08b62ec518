"""Rows of the general engine that are known: what a state did before, on an event that means the same to it.

What a state does depends on the guards that the event satisfies, and on what its machines ask beyond these: values that
are compared, and which windows have closed. Most events are asked nothing by most states. So a row is kept under the
questions that were asked for it, with their answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.automata.machine import NOW, Reg, Symbol, Value

Question = int | tuple[Reg, int]  # the value of a term, or whether a window has closed for a register
States = frozenset[Value]
Row = tuple[States, list[tuple[int, States, bool]], bool]  # see GeneralStepper._row
LEAST = 1 << 13  # rows that may be kept at the least


class Asked(Symbol):
    """An event that notes the questions which it is asked, and what it said."""

    def __init__(
        self, words: tuple[int, ...], values: tuple[int | None, ...], has_closed: Callable[[Reg, int], bool]
    ) -> None:
        super().__init__(words, (), values)
        object.__setattr__(self, "has_closed", has_closed)
        object.__setattr__(self, "said", {})

    has_closed: Callable[[Reg, int], bool]
    said: dict[Question, Any]

    def value(self, term: int) -> int | None:
        answer = self.said[term] = self.values[term]
        return answer

    def closed(self, register: Reg, window: int) -> bool:
        if register == NOW:
            return False
        answer = self.said[register, window] = self.has_closed(register, window)
        return answer

    def answer(self, question: Question) -> Any:
        """What it would say, without noting it."""
        return self.values[question] if isinstance(question, int) else self.has_closed(*question)


class KnownRows:
    """Rows by state, guards, and answers; O(1) for each set of questions that the state has asked. Now and then all are
    forgotten, so that no more than a few are kept for each live state."""

    def __init__(self) -> None:
        self._rows: dict[tuple[States, tuple[int, ...]], dict[tuple[Question, ...], dict[tuple[Any, ...], Row]]] = {}
        self._n = 0

    def find(self, states: States, event: Asked) -> Row | None:
        """The row, if it is known; else the event is ready to be asked."""
        for questions, rows in self._rows.get((states, event.words), {}).items():
            row = rows.get(tuple(map(event.answer, questions)))
            if row is not None:
                return row
        event.said.clear()
        return None

    def keep(self, states: States, event: Asked, row: Row, live: int) -> None:
        """Keep a row that was made by asking the event. `live`: how many states there are."""
        if self._n > LEAST + live:
            self._rows, self._n = {}, 0
        by_questions = self._rows.setdefault((states, event.words), {})
        by_questions.setdefault(tuple(event.said), {})[tuple(event.said.values())] = row
        self._n += 1
