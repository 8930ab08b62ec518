"""Choosing among whole matches at the end of a partition: AFTER MATCH SKIP, and strategies over a trailing absence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import assert_never

from runtime import capacities
from runtime.limits import Listed
from runtime.program import Program, Skip, Strategy


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

    Where matches have the same positions, the first by the positions of its variables, in their order.
    `dropped`: the last position at which no match may begin any more.
    """
    names = in_order(variables)
    by_start: dict[int, list[Match]] = defaultdict(list)
    for match in matches:
        by_start[match.begin].append(match)
    chosen = []
    for start in sorted(by_start):
        if start <= dropped:
            continue
        match = longest(by_start[start], names)
        chosen.append(match)
        dropped = last_dropped(match, skip)
    return chosen


def longest(matches: Sequence[Match], variables: Iterable[str]) -> Match:
    """Of the matches of one start: the greatest end, the NXT-greatest, the first by its variables (`in_order`)."""
    end = max(match.end for match in matches)
    rivals = [match for match in matches if match.end == end]
    best = max(nxt(match.support) for match in rivals)
    names = in_order(variables)
    return min((m for m in rivals if nxt(m.support) == best), key=lambda m: [m.of(name) for name in names])


def taken(rivals: Iterable[Match], skip: Skip, variables: Iterable[str], dropped: int) -> list[Match]:
    """Of the matches that end at one event those that are taken, where that is done as they complete: one at a time,
    the greatest by the strategy, ties as in `skipped`; then starts up to a point are dropped.

    On A0 A1 B2 with `A ; B`, NXT and TO NEXT ROW: {0,2}, which drops the start 0, then {1,2}. PAST LAST ROW: {0,2}.
    """
    names, greater = in_order(variables), nxt if skip.by == "NXT" else last
    alive = sorted((m for m in rivals if m.begin > dropped), key=lambda m: [m.of(name) for name in names])
    alive.sort(key=lambda m: greater(m.support), reverse=True)  # stable: equal ones stay as they are
    chosen = []
    for match in alive:
        if match.begin > dropped:
            chosen.append(match)
            dropped = last_dropped(match, skip)
    return chosen


def in_order(variables: Iterable[str]) -> list[str]:
    """The variables as they decide ties: in their order, those that the user cannot see last."""
    return sorted(variables, key=lambda name: name.startswith("@"))


def last_dropped(match: Match, skip: Skip) -> int:
    """The last position at which no further match may begin: the match's own start at the least."""
    match skip.to:
        case "PAST LAST ROW":
            return match.end
        case "TO NEXT ROW":
            return match.begin
        case "TO FIRST" | "TO LAST":
            held = match.of(skip.variable or "")
            if not held:
                return match.begin
            return max(match.begin, held[0 if skip.to == "TO FIRST" else -1] - 1)
    assert_never(skip.to)


def chosen(matches: Iterable[Match], strategy: Strategy) -> list[Match]:
    """The winners among the matches that end at the same event (semantics, "Selection strategies")."""
    by_end: dict[int, list[Match]] = defaultdict(list)
    for match in matches:
        by_end[match.end].append(match)
    found = []
    for end in sorted(by_end):
        rivals = by_end[end]
        found += [rivals[i] for i in winners([match.support for match in rivals], strategy)]
    return found


def winners(supports: Sequence[Support], strategy: Strategy) -> list[int]:
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
            greatest = _maximal(set(sets))
            return [i for i, own in enumerate(sets) if own in greatest]
    assert_never(strategy)


def _maximal(sets: set[frozenset[int]]) -> set[frozenset[int]]:
    """Those that no other holds. The larger ones first: a set lies in one of them if, of its members, the bits of the
    larger sets that have them meet. O(members · sets / 64) for each set."""
    found: set[frozenset[int]] = set()
    having: dict[int, int] = defaultdict(int)  # for a member, as bits, which of the found sets have it
    n = 0
    for _, alike in groupby(sorted(sets, key=len, reverse=True), key=len):
        left = [own for own in alike if not _meet(having, own, n)]
        for own in left:
            for member in own:
                having[member] |= 1 << n
            n += 1
        found.update(left)
    return found


def _meet(having: dict[int, int], own: frozenset[int], n: int) -> bool:
    meeting = (1 << n) - 1
    for member in own:
        meeting &= having.get(member, 0)
        if not meeting:
            return False
    return n > 0


class Held:
    """Matches that are held back until the end of their key: only those which, of all so far, can still be chosen.

    ExecutionError MATCH_LIMIT where too many are listed for it.
    """

    def __init__(self, program: Program) -> None:
        self._skip, self._strategy, self._names = program.skip, program.choose, program.variables
        self._listed = Listed(program.max_matches)
        self._rivals: dict[int, list[Match]] = defaultdict(list)  # by start, for AFTER MATCH SKIP, else by end
        self._full: dict[int, int] = {}

    def add(self, match: Match) -> None:
        self._listed.add(1)
        place = match.end if self._skip is None else match.begin
        rivals = self._rivals[place]
        rivals.append(match)
        few = capacities.FEW_RIVALS
        if len(rivals) >= self._full.get(place, few) and (self._strategy != "ALL" or self._skip is not None):
            rivals[:] = self._left(rivals)
            self._full[place] = max(few, 2 * len(rivals))

    def _left(self, rivals: list[Match]) -> list[Match]:
        if self._skip is not None:
            return [longest(rivals, self._names)]
        return [rivals[i] for i in winners([match.support for match in rivals], self._strategy)]

    def matches(self) -> Iterator[Match]:
        """What is held."""
        return chain.from_iterable(self._rivals.values())

    def chosen(self) -> list[Match]:
        """What is chosen, now that the key has ended."""
        if self._skip is None:
            return chosen(self.matches(), self._strategy)
        return skipped(self.matches(), self._skip, self._names)
