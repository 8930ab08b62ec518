"""Query: a bound query, the contract between the language and the planner. Whoever fills it can use the planner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """WITHIN. kind 'time': end − start ≤ size (strict: <) in the clock's unit; 'events': end − start < size positions."""

    kind: str
    size: int | float
    strict: bool = False

    def __str__(self) -> str:
        if self.kind == "events":
            return f"{self.size} EVENTS"
        return f"{'< ' if self.strict else ''}{self.size}"
