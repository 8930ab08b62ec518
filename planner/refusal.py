"""A refusal: why one way to run a program is not taken. EXPLAIN tells all of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """`reason` is a clause in plain words, which EXPLAIN prints after the name of what refuses."""

    reason: str

    def __str__(self) -> str:
        return self.reason
