"""What a relational plan costs beside the general engine, by what the first rows of the stream show.

Times are in seconds of a processor, and good to a factor of two. What meets decides: a join of two events looks at all
rows of the other kind in a bucket, one of three at their square; the engine looks, in Python, at what waits.

    (A a ; B b) UNLESS ((C c ; D d) FILTER c.v < d.v)    with 2 of each in a window: a join looks at 6 C for each D,
                                                        the engine at 2 A, each with the C that can still matter

Each figure is taken twice, as the least and the most that the first rows allow: the engine's time by the one, that of
joins by the other, so that joins are taken where they surely do not explode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, factorial, log2, perm, sqrt

from planner.relational.branch import Branch
from planner.relational.conditions import Condition, Guard, Near, Ordered, Same
from planner.terms import Window

STAGE = 0.45  # to read, shuffle, sort and number rows once more, however few
ROW = 2e-6  # of each row that can be an event, for each event of the plan
PAIR = 2e-7  # to look at two rows that meet
IDLE, BUSY = 6e-6, 6e-5  # of the general engine: an event where nothing waits; what is more where something does
STEP = 1e-5  # of a state that waits
MAX_BUSY = 25e-5  # in place of BUSY under MAX, which holds each match of an end with its rivals
UNSEEN = 3  # so many of the first rows could have been of a kind of which there was none
JOINS = 12  # for which it is known how many rows meet
ORDERED, NEAR = 0.5, 0.56  # of the rows of a bucket those behind another one, and of these those in its window


@dataclass(frozen=True)
class First:
    """The first rows. `shares`: of each guard, how many fulfil it, `any`: how many can be an event, both as a part of
    all; `keys`: a number for each row, the same for the same key; `clocks`: their times, as windows measure them."""

    shares: Mapping[Guard, float]
    any: float
    keys: Sequence[int]
    clocks: Sequence[float]

    @property
    def n(self) -> int:
        return len(self.keys)

    def concentration(self, joins: int) -> float:
        """The part of all rows that is of the key of a row that has met so many others, at the most: the heavier a key,
        the more meet in it."""
        return self._alike(joins + 2) / self._alike(joins + 1)

    def _alike(self, k: int) -> float:
        """How likely k rows are of one key, at the most: by those among the first rows that are, and three times the
        error of that."""
        if k == 1:
            return 1.0
        found = sum(perm(count, k) for count in Counter(self.keys).values())
        return min(1.0, (found + 3 * sqrt(found * factorial(k)) + 3 * factorial(k)) / max(1, perm(self.n, k)))

    def same_key(self) -> float:
        """How likely two rows are of one key, without what so few rows let it seem."""
        return sum(c * (c - 1) for c in Counter(self.keys).values()) / max(1, self.n * (self.n - 1))

    def rates(self, rows: Rows) -> tuple[float, float]:
        """The least and the most rows in a unit of time. Rows that are not in order lie anywhere in the stream; those
        of several files, each in order, may come at the same time."""
        span = max(self.clocks) - min(self.clocks)
        if not span:
            return 0.0, float("inf")
        in_order = all(a <= b for a, b in pairwise(self.clocks))
        return self.n / span, (self.n * rows.files if in_order else rows.most) / span


@dataclass(frozen=True)
class Rows:
    """How many rows a stream has, at the least and at the most, and in how many files they lie."""

    least: float
    most: float
    files: int = 1


@dataclass(frozen=True)
class Seen:
    """What is known of a stream. `rows`: how many it has; `any`: the share that can be an event; `shares`: of each
    guard.

    `near`: the rows of its key in the window of a row. `meets`: the rows with which one is joined, as the first, the
    second, … join sees them: where keys are skewed, a pair is of a heavier key than a row.
    """

    rows: float
    any: float
    shares: Mapping[Guard, float]
    near: float
    meets: Sequence[float]

    def met(self, joins: int) -> float:
        """Rows that are looked at for each that comes out of so many joins."""
        return self.meets[min(joins, len(self.meets) - 1)]


def seen(first: First, rows: Rows, window: Window | None, buckets: int, is_joined: bool = True) -> tuple[Seen, Seen]:
    """The least and the most that the first rows allow. `buckets`: of how many windows a bucket is in which rows are
    joined; `is_joined`: they are in buckets, else all rows of a key are."""
    if window is None or window.kind == "events":
        least, most = rows.least, rows.most
    else:
        low, high = first.rates(rows)
        least, most = low * window.size, high * window.size * buckets
    near = min(least, rows.least) * first.same_key()
    most = min(most, rows.most) if is_joined else rows.most
    meets = [most * first.concentration(joins) for joins in range(JOINS)]
    if window is not None and window.kind == "events":
        near = min(near, window.size)
        meets = [min(m, buckets * window.size) for m in meets] if is_joined else meets
    rare = UNSEEN / first.n
    at_most = {guard: max(share, rare) for guard, share in first.shares.items()}
    return (
        Seen(rows.least, first.any, first.shares, near, [near]),
        Seen(rows.most, max(first.any, rare), at_most, near, meets),
    )


def of_joins(branches: Sequence[Branch], strategy: str, most: Seen) -> float:
    """The time of a plan. `most`: as many rows meet at the most."""
    n_events = sum(map(_events, branches))
    looked = most.rows * sum(_looked(branch, strategy, most) for branch in branches)
    return STAGE * n_events + ROW * n_events * most.rows * most.any + PAIR * looked


def of_engine(branches: Sequence[Branch], strategy: str, least: Seen) -> float:
    """The time of the general engine. `least`: so many rows meet at the least."""
    return least.rows * least.any * max((_of_event(branch, strategy, least) for branch in branches), default=IDLE)


def _of_event(branch: Branch, strategy: str, seen: Seen) -> float:
    """The engine's time for an event: where it begins something or something waits, more than where not."""
    starting = max(seen.shares[slot.guard] for slot in branch.slots if slot.number in branch.first)
    near = min([seen.near, *(_until(absence.branch, seen) for absence in branch.absences)])
    begins, waits = min(1.0, starting / (seen.any or 1.0)), 1 - exp(-starting * near)
    # Of what waits for one start most is outdone by what is less, or greater.
    others = sum(log2(1 + seen.shares[guard] * near) for guard in _guards(branch)) * STEP
    return IDLE + (begins + (1 - begins) * waits) * ((MAX_BUSY if strategy == "MAX" else BUSY) + others)


def _until(veto: Branch, seen: Seen) -> float:
    """After so many rows what must not happen has ended what waits."""
    return sum(2 / max(seen.shares[slot.guard], 1e-9) for slot in veto.slots)


def _events(branch: Branch) -> int:
    return len(branch.slots) + sum(_events(absence.branch) for absence in branch.absences)


def _guards(branch: Branch) -> Iterator[Guard]:
    for slot in branch.slots:
        yield slot.guard
    for absence in branch.absences:
        yield from _guards(absence.branch)


def _looked(branch: Branch, strategy: str, seen: Seen) -> float:
    """Pairs of rows that its joins look at, for each row of the stream."""
    last = seen.shares[branch.slots[-1].guard]
    looked, rows = _joined(branch, seen)
    joins = len(branch.slots) - 1
    for absence in branch.absences:
        more, vetoes = _joined(absence.branch, seen)
        for joined in range(joins, joins + len(absence.branch.slots)):  # those of the group of a match
            vetoes *= seen.met(joined) / (1 if joined == joins else seen.met(joined - joins - 1))
        if any(map(_pins, absence.conditions)):
            vetoes = min(vetoes, 1.0)
        looked += more + rows * vetoes
        looked += sum(_looked(inner.branch, "ALL", seen) for inner in absence.branch.absences)
    if strategy == "MAX":  # each match of an end with each
        looked += rows * rows / max(last, 1e-9)
    return looked


def _joined(branch: Branch, seen: Seen) -> tuple[float, float]:
    """Pairs that the joins of a branch look at, and rows that come out of them, for each row of the stream."""
    first, *others = branch.slots
    looked, rows, known = 0.0, seen.shares[first.guard], {first.number}
    for joins, slot in enumerate(others):
        ready = [c for c in branch.conditions if slot.number in c.slots and c.slots <= {*known, slot.number}]
        if any(map(_pins, ready)):
            looked += rows  # at the most one row is there
        else:
            rows *= seen.shares[slot.guard] * seen.met(joins)
            looked += rows
            rows *= ORDERED if any((k, slot.number) in branch.before for k in known) else 1.0
            rows *= NEAR if any(isinstance(c, Near) for c in ready) else 1.0
        known.add(slot.number)
    return looked, rows


def _pins(condition: Condition) -> bool:
    """Does it say where an event is, given another? That is an equality, by which Spark joins."""
    match condition:
        case Ordered(left, "=", right):
            return len(left.slots) == len(right.slots) == 1
        case Same(left, right):
            return len(left) == len(right) == 1
    return False
