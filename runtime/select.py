"""Choosing among whole matches at the end of a partition: AFTER MATCH SKIP, and strategies over a trailing absence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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


Support = tuple[int, ...]


def nxt(support: Support) -> tuple[int, ...]:
    """Greater under NXT is greater: where two differ first, the one that has the earlier position."""
    return tuple(-p for p in support)


def last(support: Support) -> tuple[int, ...]:
    """Greater under LAST is greater: where two differ last, the one that has the later position."""
    return support[::-1]


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
        best = max(nxt(match.support) for match in longest)
        match = min((m for m in longest if nxt(m.support) == best), key=lambda m: [m.of(name) for name in names])
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
    found = []
    for end in sorted(by_end):
        rivals = by_end[end]
        found += [rivals[i] for i in winners([match.support for match in rivals], strategy)]
    return found


def winners(supports: Sequence[Support], strategy: str) -> list[int]:
    """Which of the matches that end at one event win, by their sup."""
    match strategy:
        case "ALL":
            return list(range(len(supports)))
        case "NXT" | "LAST":
            keys = [(nxt if strategy == "NXT" else last)(support) for support in supports]
            best = max(keys)
            return [i for i, key in enumerate(keys) if key == best]
        case "MAX":
            sets = [frozenset(support) for support in supports]
            distinct = set(sets)
            return [i for i, own in enumerate(sets) if not any(own < other for other in distinct)]
    raise InternalError("INTERNAL", detail=f"no strategy {strategy!r}")
