"""Texts made by the grammar: every stage of EXPLAIN says something, within a bound, or the text is refused as an error.

The words are few, so that names meet: what is right and what is wrong about a text is the binder's to say, not ours.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import cersql
from cersql.show.explain import DRAWINGS, STAGES
from planner import deterministic as determinize
from runtime.automata.machine import Steps
from runtime.errors import CersqlError, InternalError

SCHEMAS = {"t": {"ts": "timestamp", "type": "string", "v": "int", "k": "int", "s": "string"}}
TYPES, VARIABLES = ("A", "B", "C", "D", "ANY"), ("p", "q", "r", "u", "e", "x")
MOST_LETTERS = 2_000_000  # of a stage


class Grammar:
    """Makes a text. `fuel`: how many operators a pattern may still have."""

    def __init__(self, chance: random.Random, fuel: int) -> None:
        self._chance, self._fuel = chance, fuel
        self._used: list[str] = []

    def text(self) -> str:
        pattern = self.pattern()
        clauses = [f"FROM t TYPE type PATTERN {pattern}"]
        if self.is_drawn(0.4):
            clauses.append(f"WHERE {self.condition()}")
        if self.is_drawn(0.3):
            clauses.append("PARTITION BY k")
        if self.is_drawn(0.5):
            clauses.append(f"WITHIN {self.window()}")
        if self.is_drawn(0.35):
            clauses.append(f"SEMANTICS {self.one_of('STRICT', 'NXT', 'LAST', 'MAX', 'ALL', 'SKIP TILL NEXT MATCH')}")
        if self.is_drawn(0.1):
            clauses.append(f"CONSUME BY {self.one_of('PARTITION', 'ANY', 'NONE')}")
        if self.is_drawn(0.15):
            clauses.append(
                f"AFTER MATCH SKIP {self.one_of('PAST LAST ROW', 'TO NEXT ROW', f'TO FIRST {self.variable()}')}"
            )
        ending = " WITH TIMEOUTS" if self.is_drawn(0.1) else ""
        having = f" HAVING COUNT({self.variable()}) > 1" if self.is_drawn(0.1) else ""
        return " ".join([*clauses, f"ORDER BY ts RETURN *{having}{ending}"])

    def is_drawn(self, share: float) -> bool:
        return self._chance.random() < share

    def one_of(self, *choices: str) -> str:
        return self._chance.choice(choices)

    def variable(self) -> str:
        return self._chance.choice(self._used or list(VARIABLES))

    def window(self) -> str:
        return self.one_of("1 HOUR", "< 10 SECONDS", "5 EVENTS", "90 MINUTES")

    def pattern(self, negated: bool = True) -> str:
        """A part; `negated`: `!` may stand in it."""
        self._fuel -= 1
        if self._fuel <= 0 or self.is_drawn(0.15):
            return self.atom()
        made: tuple[Callable[[], str], ...] = (
            self._sequence, self._sequence, self._sequence, self._combined, self._loop, self._loop, self._all,
            self._around, self._filtered, self._named, self._absent,
        )  # fmt: skip
        return self._chance.choice(made)()

    def atom(self) -> str:
        type = self.one_of(*TYPES)
        if self.is_drawn(0.3):
            return type
        name = self.one_of(*VARIABLES)
        self._used.append(name)
        return f"{type} {name}"

    def _sequence(self) -> str:
        parts = [self.pattern() for _ in range(self._chance.randint(2, 3))]
        return "(" + f" {self.one_of(';', ';', '->', ':')} ".join(parts) + ")"

    def _absent(self) -> str:
        parts = [self.pattern(), f"!{self.pattern()}", self.pattern()]
        kept = parts[self._chance.choice((0, 0, 0, 1)) : self._chance.choice((3, 3, 3, 2))]
        return self.one_of(f"SEQ({', '.join(kept)})", f"({' ; '.join(kept)})")

    def _combined(self) -> str:
        return f"({self.pattern()} {self.one_of('OR', 'OR', 'AND', 'UNLESS', 'ALL')} {self.pattern()})"

    def _loop(self) -> str:
        return f"({self.pattern()}){self.one_of('+', '*', '?', ':+', '{2,3}', '{1,4}', '{3}', ':{1,2}')}"

    def _all(self) -> str:
        return f"{self.one_of('ALL', 'ANY')}({', '.join(self.pattern() for _ in range(self._chance.randint(2, 4)))})"

    def _around(self) -> str:
        inner = self.pattern()
        head = self.one_of("STRICT", "NXT", "LAST", "MAX", "START", f"PROJECT({self.variable()} :", "WITHIN")
        if head == "WITHIN":
            return f"({inner} WITHIN {self.window()})"
        return f"{head} {inner})" if head.endswith(":") else f"{head}({inner})"

    def _filtered(self) -> str:
        return f"({self.pattern()} FILTER {self.condition()})"

    def _named(self) -> str:
        inner, name = self.pattern(), self.one_of("w", "y", "z")
        self._used.append(name)
        return f"({inner} AS {name})"

    def condition(self) -> str:
        a, b = self.variable(), self.variable()
        made = self.one_of(
            f"{a}.v > 1", f"{a}.v < {b}.v", f"{a}.k = {b}.k", f"{a}.s <> {b}.s", "[k]", f"COUNT({a}) > 2",
            f"{a}[i].v > {a}[i-1].v", f"LAST({a}.v) > 3", f"{a}.v + {b}.v > 4", f"({a}.v > 1 OR {b}.v < {a}.v)",
        )  # fmt: skip
        return f"{made} AND {self.condition()}" if self.is_drawn(0.3) else made


def explained(seed: int, fuel: int) -> bool:
    """Is the text of this seed one that compiles? Each of its stages is then made."""
    text = Grammar(random.Random(seed), fuel).text()
    try:
        compiled = cersql.compile(text, SCHEMAS)
        for stage in (*STAGES, *DRAWINGS):
            assert len(compiled.explain(stage)) < MOST_LETTERS, (seed, fuel, stage, text)
    except InternalError:
        raise
    except CersqlError:
        return False
    except Exception as error:
        raise AssertionError(f"seed {seed}, fuel {fuel}: {text}") from error
    return True


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """EXPLAIN looks for less long, and never makes more steps than it may: those that it made, for each look."""
    made: list[int] = []

    class Noted(Steps):
        def __init__(self, most: int) -> None:
            super().__init__(most)
            made.append(0)

        def __setattr__(self, name: str, value: int) -> None:
            super().__setattr__(name, value)
            if name == "left" and made:
                made[-1] = self.most - value

    monkeypatch.setattr(determinize, "MOST_STEPS", 5_000)
    monkeypatch.setattr(determinize, "Steps", Noted)
    return made


def test_every_stage_of_texts_made_by_the_grammar(few_steps: list[int]) -> None:
    found = [explained(seed, fuel) for fuel in (3, 6) for seed in range(150)]
    assert 30 < sum(found) < len(found)
    assert few_steps
    assert max(few_steps) < 5_000 + 2_000  # the moves of one step are counted at once


@pytest.mark.exhaustive
@pytest.mark.parametrize("fuel", [4, 8, 12, 20])
def test_every_stage_of_many_texts_made_by_the_grammar(fuel: int) -> None:
    found = [explained(seed, fuel) for seed in range(1_000, 3_000)]
    assert any(found)
