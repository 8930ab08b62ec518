"""Choosing among whole matches at the end of a partition: AFTER MATCH SKIP, and strategies over a trailing absence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from runtime.errors import InternalError
from runtime.program import Skip


@dataclass(frozen=True)
class Match:
    """One match: the positions of its events in stream order, and the variables of each."""

    positions: tuple[int, ...]
    labels: tuple[int, ...]  # indices into Program.labels
    names: tuple[frozenset[str], ...]

    @property
    def begin(self) -> int:
        return self.positions[0]

    @property
    def end(self) -> int:
        return self.positions[-1]

    @property
    def support(self) -> tuple[int, ...]:
        """sup: the positions that some variable holds."""
        return tuple(p for p, names in zip(self.positions, self.names, strict=True) if names)

    def of(self, variable: str) -> list[int]:
        return [p for p, names in zip(self.positions, self.names, strict=True) if variable in names]


def nxt(match: Match) -> tuple[int, ...]:
    """Greater under NXT is greater: where two differ first, the one that has the earlier position."""
    return tuple(-p for p in match.support)


def last(match: Match) -> tuple[int, ...]:
    """Greater under LAST is greater: where two differ last, the one that has the later position."""
    return match.support[::-1]


def skipped(matches: Iterable[Match], skip: Skip, variables: Iterable[str], dropped: int = -1) -> list[Match]:
    """One match at a time: the least start, the greatest end, the NXT-greatest; then starts up to a point are dropped.

    Where matches have the same positions, the first by the positions of its variables, which are taken by name.
    `dropped`: the last position at which no match may begin any more.
    """
    names = sorted(variables)
    by_start: dict[int, list[Match]] = defaultdict(list)
    for match in matches:
        by_start[match.begin].append(match)
    chosen = []
    for start in sorted(by_start):
        if start <= dropped:
            continue
        end = max(match.end for match in by_start[start])
        longest = [match for match in by_start[start] if match.end == end]
        best = max(map(nxt, longest))
        match = min((m for m in longest if nxt(m) == best), key=lambda m: [m.of(name) for name in names])
        chosen.append(match)
        dropped = last_dropped(match, skip)
    return chosen


def last_dropped(match: Match, skip: Skip) -> int:
    """The last position at which no further match may begin: the match's own start at the least."""
    if skip.to == "PAST LAST ROW":
        return match.end
    held = match.of(skip.variable or "") if skip.to != "TO NEXT ROW" else []
    if not held:
        return match.begin
    return max(match.begin, (held[0] if skip.to == "TO FIRST" else held[-1]) - 1)


def chosen(matches: Iterable[Match], strategy: str) -> list[Match]:
    """The winners among the matches that end at the same event (semantics, "Selection strategies")."""
    by_end: dict[int, list[Match]] = defaultdict(list)
    for match in matches:
        by_end[match.end].append(match)
    choose = _CHOOSERS.get(strategy)
    if choose is None:
        raise InternalError("INTERNAL", detail=f"no strategy {strategy!r}")
    return [match for end in sorted(by_end) for match in choose(by_end[end])]


def _greatest(order: Callable[[Match], Any]) -> Callable[[list[Match]], list[Match]]:
    def choose(matches: list[Match]) -> list[Match]:
        best = max(map(order, matches))
        return [match for match in matches if order(match) == best]

    return choose


def _maximal(matches: list[Match]) -> list[Match]:
    supports = {frozenset(match.support) for match in matches}
    return [m for m in matches if not any(frozenset(m.support) < other for other in supports)]


_CHOOSERS = {"ALL": list, "NXT": _greatest(nxt), "LAST": _greatest(last), "MAX": _maximal}
