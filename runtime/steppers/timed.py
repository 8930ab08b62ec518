"""One pass over a composed program: runtime.steppers.cea for states that hold registers.

A live entry is a deterministic state, its registers (the clock and position at which parts of its runs began) and a
union list of nodes, as in runtime.steppers.cea; entries of equal state and registers are one. Before an event is read,
an entry whose windows have closed since goes to the state that says so. An event costs O(entries): one per live state
where there are no registers, one per live beginning (of a window inside the pattern, of a rival, of a match that waits
for an absence) where there are. Events that change no entry are skipped until the next window closes.

The run that has not begun is kept apart, with ⊥ as its only node: what it remembers (START, rivals, vetoes before the
match) is in its state and registers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.compact_set.tecs import BOTTOM, extend, fits, inside
from runtime.jit import inlined, kernel
from runtime.steppers.cea import LIST_LENGTH, insert, merge, prune
from runtime.steppers.events import Event
from runtime.steppers.leading import DROPPED, TAIL, begins, covered, forget_leading, is_kept, matched, settle_before

# Results of step_kernel.
DONE, NEEDS_ROW, NEEDS_NODES, NEEDS_ROOTS, NEEDS_ENTRIES, NEEDS_STATE, CONSUMED, NEEDS_RECORDS = range(8)

# Places in Entries.counts.
N_LIVE, LAST_POSITION, KEY, SERIAL, SIDE, WANTED_STATE, WANTED_CLASS, N_ROOTS, START_STATE, WANTED_CODE = range(10)

FRESH = -1  # a register that is set by the event being read


class Rules(NamedTuple):
    """The rows known of the deterministic automaton: row_of[state, class] or -1; see runtime.steppers.cea.Table.

    `registers[state]`: how many it has; `code[state]`: which windows have closed for which, bit r · windows + w.
    `next_code` is a hash table (state, code) → state. `skip_from`, `from_`: where a target's registers come from.
    """

    row_of: AnyArray  # int32[states, classes]
    first: AnyArray  # int32[rows]
    last: AnyArray
    skip: AnyArray
    skip_from: AnyArray  # int32[rows, registers]
    quiet: AnyArray  # bool[rows]
    report: AnyArray  # bool[rows]
    label: AnyArray  # int32[edges]
    target: AnyArray
    accept: AnyArray  # bool[edges]
    from_: AnyArray  # int32[edges, registers]
    registers: AnyArray  # int32[states]
    code: AnyArray  # int64[states]
    begin: AnyArray  # int32[states]: the register of a run's first event, or -1
    forgetful: (
        AnyArray  # bool[states]: it is known to stay as it is where a run that has not begun forgets (CONSUME BY)
    )
    hash_state: AnyArray  # int32[slots], -1 where free
    hash_code: AnyArray  # int64[slots]
    hash_next: AnyArray  # int32[slots]


class Options(NamedTuple):
    """`consume`: stop (CONSUMED) after an event that ends matches; its entries are dropped. `log`: see `fire`. `skips`:
    runs end whose start AFTER MATCH SKIP PAST LAST ROW is sure to skip (runtime.steppers.leading)."""

    consume: bool
    log: bool
    skips: bool


class InnerWindows(NamedTuple):
    """The windows inside the pattern: by_position says whether `size` counts positions."""

    by_position: AnyArray  # bool[windows]
    size: AnyArray  # as the times
    strict: AnyArray  # bool[windows]


class Entries(NamedTuple):
    """The live entries of the key being read; two sides, the current one is counts[SIDE]."""

    state: AnyArray  # int32[2, entries]
    length: AnyArray  # int32[2, entries]
    nodes: AnyArray  # int32[2, entries, LIST_LENGTH]
    clock: AnyArray  # as the times, [2, entries, registers]
    position: AnyArray  # int64[2, entries, registers]
    slot: AnyArray  # int32[2 ** k]: hash table over the new side …
    stamp: AnyArray  # int64[2 ** k]: … valid where it is the serial number of the event
    start_clock: AnyArray  # as the times, [registers]: of the run that has not begun
    start_position: AnyArray  # int64[registers]
    is_open: AnyArray  # bool[windows]: is it open for any register …
    oldest_clock: AnyArray  # as the times, [windows]: … the oldest of which is this
    oldest_position: AnyArray  # int64[windows]
    counts: AnyArray  # int64[10]


def new_entries(capacity: int, registers: int, windows: int, times: np.dtype) -> Entries:
    slots = 1 << (4 * capacity - 1).bit_length()  # a power of two: places are found by masking
    entries = Entries(
        state=np.zeros((2, capacity), np.int32),
        length=np.zeros((2, capacity), np.int32),
        nodes=np.zeros((2, capacity, LIST_LENGTH), np.int32),
        clock=np.zeros((2, capacity, registers), times),
        position=np.zeros((2, capacity, registers), np.int64),
        slot=np.zeros(slots, np.int32),
        stamp=np.zeros(slots, np.int64),
        start_clock=np.zeros(registers, times),
        start_position=np.zeros(registers, np.int64),
        is_open=np.zeros(windows, np.bool_),
        oldest_clock=np.zeros(windows, times),
        oldest_position=np.zeros(windows, np.int64),
        counts=np.zeros(10, np.int64),
    )
    entries.counts[LAST_POSITION] = -1
    return entries


def grown_entries(old: Entries, capacity: int, registers: int) -> Entries:
    new = new_entries(capacity, registers, len(old.is_open), old.clock.dtype)
    n, r = old.state.shape[1], len(old.start_clock)
    new.state[:, :n], new.length[:, :n], new.nodes[:, :n] = old.state, old.length, old.nodes
    new.clock[:, :n, :r], new.position[:, :n, :r] = old.clock, old.position
    new.start_clock[:r], new.start_position[:r] = old.start_clock, old.start_position
    new.counts[:] = old.counts
    return new


@inlined
def closed_code(rules, windows, state, clocks, positions, now, position):
    """Which windows have closed, for the registers given."""
    n_windows = len(windows.size)
    code = np.int64(0)
    for r in range(rules.registers[state]):
        for w in range(n_windows):
            if windows.by_position[w]:
                open_ = position - positions[r] <= windows.size[w]
            else:
                open_ = fits(clocks[r], now, windows.size[w], windows.strict[w])
            if not open_:
                code |= np.int64(1) << (r * n_windows + w)
    return code


@inlined
def state_with(rules, state, code):
    """The state that says so, or -1 if it is not known yet."""
    slots = len(rules.hash_state)
    at = hash_of(np.int64(state), code) & (slots - 1)
    while rules.hash_state[at] >= 0:
        if rules.hash_state[at] == state and rules.hash_code[at] == code:
            return rules.hash_next[at]
        at = (at + 1) & (slots - 1)
    return -1


@inlined
def hash_of(a, b):
    x = (a * np.int64(-7046029254386353131)) ^ (b * np.int64(-4417276706812531889))
    return x ^ (x >> np.int64(29))


@kernel
def place_of(state, code, slots):
    """Where to look for (state, code) first."""
    return hash_of(np.int64(state), np.int64(code)) & (slots - 1)


@kernel
def merge_entry(arena, live, side, k):
    """One node for the whole union list of an entry."""
    return merge(arena, live, side, k)


@inlined
def age_entries(rules, windows, live, now, position):
    """Send every entry, and the start, to the state that says which windows have closed. False: one is not known."""
    counts = live.counts
    side = counts[SIDE]
    for k in range(-1, counts[N_LIVE]):
        if k < 0:
            state = np.int32(counts[START_STATE])
            if state < 0 or rules.registers[state] == 0:
                continue
            code = closed_code(rules, windows, state, live.start_clock, live.start_position, now, position)
        else:
            state = live.state[side, k]
            if rules.registers[state] == 0:
                continue
            code = closed_code(rules, windows, state, live.clock[side, k], live.position[side, k], now, position)
        if code == rules.code[state]:
            continue
        after = state_with(rules, state, code)
        if after < 0:
            counts[WANTED_STATE] = state
            counts[WANTED_CODE] = code
            return False
        if k < 0:
            counts[START_STATE] = after
        else:
            live.state[side, k] = after
    return True


class Origin(NamedTuple):
    """Where a move gets its registers: entry k of a side (-1: the run that has not begun), and which of them."""

    side: Any
    k: Any
    sources: AnyArray  # int32[registers]


@inlined
def same_registers(live, origin, event, side, k, n):
    """Would the n registers of a move be those of an entry of the new side?"""
    for r in range(n):
        source = origin.sources[r]
        if source == FRESH:
            clock, at = event.time, event.position
        elif origin.k < 0:
            clock, at = live.start_clock[source], live.start_position[source]
        else:
            clock, at = live.clock[origin.side, origin.k, source], live.position[origin.side, origin.k, source]
        if live.position[side, k, r] != at or live.clock[side, k, r] != clock:
            return False
    return True


@inlined
def find_or_add(rules, live, origin, event, state, side, n_new):
    """The entry of a state and registers on the new side; n_new itself means that it was not there."""
    n = rules.registers[state]
    key = np.int64(0)
    for r in range(n):
        source = origin.sources[r]
        if source == FRESH:
            at = event.position
        elif origin.k < 0:
            at = live.start_position[source]
        else:
            at = live.position[origin.side, origin.k, source]
        key = hash_of(key, at)
    slots = len(live.slot)
    place = hash_of(np.int64(state), key) & (slots - 1)
    serial = live.counts[SERIAL]
    while live.stamp[place] == serial:
        k = live.slot[place]
        if live.state[side, k] == state and same_registers(live, origin, event, side, k, n):
            return k
        place = (place + 1) & (slots - 1)
    live.stamp[place] = serial
    live.slot[place] = n_new
    live.state[side, n_new] = state
    live.length[side, n_new] = 0
    for r in range(n):
        source = origin.sources[r]
        if source == FRESH:
            live.clock[side, n_new, r] = event.time
            live.position[side, n_new, r] = event.position
        elif origin.k < 0:
            live.clock[side, n_new, r] = live.start_clock[source]
            live.position[side, n_new, r] = live.start_position[source]
        else:
            live.clock[side, n_new, r] = live.clock[origin.side, origin.k, source]
            live.position[side, n_new, r] = live.position[origin.side, origin.k, source]
    return n_new


@inlined
def lacks(arena, rules, live, roots, klass):
    """What is missing before an event of this class can be read."""
    counts = live.counts
    side = counts[SIDE]
    moves, nodes, reports = np.int64(0), np.int64(0), np.int64(0)
    for k in range(-1, counts[N_LIVE]):
        state = np.int32(counts[START_STATE]) if k < 0 else live.state[side, k]
        if state < 0:
            continue
        row = rules.row_of[state, klass]
        if row < 0:
            counts[WANTED_STATE] = state
            counts[WANTED_CLASS] = klass
            return NEEDS_ROW
        own = np.int64(rules.last[row] - rules.first[row])
        moves += own + 1
        reports += rules.report[row]
        nodes += 2 * LIST_LENGTH + 5 * (own + 2)
    if arena.size[0] + nodes > len(arena.row):
        return NEEDS_NODES
    if counts[N_ROOTS] + moves + reports > len(roots.node):
        return NEEDS_ROOTS
    if moves > live.state.shape[1]:
        counts[WANTED_CODE] = moves
        return NEEDS_ENTRIES
    return DONE


@inlined
def is_quiet(rules, live, klass):
    """Would an event of this class change nothing, windows apart? False where that is not known yet."""
    counts = live.counts
    for k in range(-1, counts[N_LIVE]):
        state = np.int32(counts[START_STATE]) if k < 0 else live.state[counts[SIDE], k]
        if state < 0:
            continue
        row = rules.row_of[state, klass]
        if row < 0 or not rules.quiet[row]:
            return False
    return True


@inlined
def add_root(roots, n_roots, node, clock, key, begin, end):
    roots.node[n_roots] = node
    roots.clock[n_roots] = clock
    roots.key[n_roots] = key
    roots.begin[n_roots] = begin
    roots.end[n_roots] = end
    return n_roots + 1


@inlined
def fire(arena, rules, live, roots, klass, event, bounds, log):
    """One event: all moves of all entries and of the start. `log`: moves that end no match are roots that end at -1."""
    clock, position, key = event.clock, event.position, event.key
    counts = live.counts
    old = counts[SIDE]
    new = 1 - old
    counts[SERIAL] += 1
    n_new = 0
    n_roots = counts[N_ROOTS]
    start_row = -1
    for k in range(-1, counts[N_LIVE]):
        if k < 0:
            if counts[START_STATE] < 0:
                continue
            row, merged, start, begin = rules.row_of[counts[START_STATE], klass], np.int64(BOTTOM), clock, position
            start_row = row
            if not inside(clock, clock, bounds):
                continue  # a NaN clock begins nothing
        else:
            row, merged, start, begin = rules.row_of[live.state[old, k], klass], np.int64(-1), clock, position
            if rules.begin[live.state[old, k]] >= 0:
                begin = live.position[old, k, rules.begin[live.state[old, k]]]
            if rules.report[row]:
                merged = np.int64(merge(arena, live, old, k))
                n_roots = add_root(roots, n_roots, merged, arena.start[merged], key, begin, position)
            if prune(arena, live, old, k, clock, bounds) == 0:
                continue
        for e in range(rules.first[row], rules.last[row]):
            if merged < 0:
                merged = np.int64(merge(arena, live, old, k))
            if k >= 0:
                start = arena.start[merged]
            node = extend(arena, event.row, rules.label[e], merged, start)
            if rules.accept[e] and event.report:
                n_roots = add_root(roots, n_roots, node, clock, key, begin, position)
            elif log:
                n_roots = add_root(roots, n_roots, node, clock, key, begin, np.int64(-1))
            target = rules.target[e]
            if target >= 0:
                at = find_or_add(rules, live, Origin(old, k, rules.from_[e]), event, target, new, n_new)
                if live.length[new, at] == 0:
                    live.nodes[new, at, 0] = node
                    live.length[new, at] = 1
                    n_new += 1
                else:
                    insert(arena, live, new, at, node)
        skip = rules.skip[row]
        if k >= 0 and skip >= 0:
            at = find_or_add(rules, live, Origin(old, k, rules.skip_from[row]), event, skip, new, n_new)
            if live.length[new, at] == 0:
                length = live.length[old, k]
                for e in range(length):
                    live.nodes[new, at, e] = live.nodes[old, k, e]
                live.length[new, at] = length
                n_new += 1
            else:
                if merged < 0:
                    merged = np.int64(merge(arena, live, old, k))
                insert(arena, live, new, at, merged)
    if start_row >= 0:
        move_start(rules, live, start_row, event.time, position)
    counts[N_ROOTS] = n_roots
    counts[N_LIVE] = n_new
    counts[SIDE] = new


@inlined
def move_start(rules, live, row, now, position):
    """The run that has not begun skips an event. Sources never lie below their target, so it is done in place."""
    state = rules.skip[row]
    live.counts[START_STATE] = state
    if state < 0:
        return
    for r in range(rules.registers[state]):
        source = rules.skip_from[row, r]
        if source == FRESH:
            live.start_clock[r] = now
            live.start_position[r] = position
        else:
            live.start_clock[r] = live.start_clock[source]
            live.start_position[r] = live.start_position[source]


@inlined
def note_oldest(rules, windows, live):
    """Remember, for each window, the oldest register for which it is open: until it closes no state ages."""
    counts = live.counts
    n_windows = len(windows.size)
    for w in range(n_windows):
        live.is_open[w] = False
    for k in range(-1, counts[N_LIVE]):
        state = np.int32(counts[START_STATE]) if k < 0 else live.state[counts[SIDE], k]
        if state < 0:
            continue
        code = rules.code[state]
        for r in range(rules.registers[state]):
            for w in range(n_windows):
                if (code >> (r * n_windows + w)) & 1:
                    continue
                if k < 0:
                    clock, position = live.start_clock[r], live.start_position[r]
                else:
                    clock, position = live.clock[counts[SIDE], k, r], live.position[counts[SIDE], k, r]
                if not live.is_open[w] or position < live.oldest_position[w]:
                    live.is_open[w] = True
                    live.oldest_clock[w] = clock
                    live.oldest_position[w] = position


@inlined
def nothing_closes(windows, live, now, position):
    """Are all windows that were open at the last event read still open?"""
    for w in range(len(windows.size)):
        if not live.is_open[w]:
            continue
        if windows.by_position[w]:
            if position - live.oldest_position[w] > windows.size[w]:
                return False
        elif not fits(live.oldest_clock[w], now, windows.size[w], windows.strict[w]):
            return False
    return True


@inlined
def begin_of(rules, live, side, k):
    """The position with which the runs of an entry began; -1 if it does not say so."""
    register = rules.begin[live.state[side, k]]
    return live.position[side, k, register] if register >= 0 else np.int64(-1)


@inlined
def least_begin(rules, live):
    """The least position with which a live run began."""
    least = np.int64(np.iinfo(np.int64).max)
    for k in range(live.counts[N_LIVE]):
        least = min(least, begin_of(rules, live, live.counts[SIDE], k))
    return least


@inlined
def drop_runs(rules, live, least, last):
    """Drop the entries that began up to `last`, but not those of `least`."""
    side, kept = live.counts[SIDE], 0
    for k in range(live.counts[N_LIVE]):
        begin = begin_of(rules, live, side, k)
        if begin <= last and begin != least:
            continue
        if kept < k:
            live.state[side, kept], live.length[side, kept] = live.state[side, k], live.length[side, k]
            for e in range(live.length[side, k]):
                live.nodes[side, kept, e] = live.nodes[side, k, e]
            for r in range(live.clock.shape[2]):
                live.clock[side, kept, r] = live.clock[side, k, r]
                live.position[side, kept, r] = live.position[side, k, r]
        kept += 1
    live.counts[N_LIVE] = kept


@inlined
def drop_skipped(rules, live, leading, roots, n_roots, position, now):
    """Drop the runs, and of the roots from number n_roots on those, whose starts are sure to be skipped. O(entries)."""
    counts = live.counts
    begins(leading, position, now)
    for n in range(n_roots, counts[N_ROOTS]):
        matched(leading, roots.begin[n], roots.end[n])
    while True:
        least = least_begin(rules, live)
        settle_before(leading, least)
        if counts[N_LIVE] == 0 or least > leading.counts[DROPPED]:
            break
        drop_runs(rules, live, np.int64(-1), leading.counts[DROPPED])
    last, kept = covered(leading, least), n_roots
    if last > least:
        drop_runs(rules, live, least, last)
    for n in range(n_roots, counts[N_ROOTS]):
        begin = roots.begin[n]
        if is_kept(leading, begin, least, last):
            roots.node[kept], roots.clock[kept], roots.key[kept] = roots.node[n], roots.clock[n], roots.key[n]
            roots.begin[kept], roots.end[kept] = begin, roots.end[n]
            kept += 1
    counts[N_ROOTS] = kept


@kernel
def step_kernel(space, rules, windows, live, leading, begin, feed, options):
    """Read events begin … until something is missing. Returns (result, event at which to go on).

    As runtime.steppers.cea.step_kernel; `clocks` of the feed are what the window of the whole match is measured in,
    `times` what the windows inside are, unless by position. O(entries) per event.
    """
    counts, classes, positions, times = live.counts, feed.symbols, feed.positions, feed.times
    arena, roots, bounds, skips = space.arena, space.roots, space.bounds, options.skips
    keys, mute = feed.keys, feed.mute
    keyed = len(keys) > 0
    quiet = is_quiet(rules, live, 0)
    note_oldest(rules, windows, live)
    i = begin
    while i < len(classes):
        klass = classes[i]
        position = positions[i]
        if keyed and keys[i] != counts[KEY]:
            counts[KEY] = keys[i]
            counts[N_LIVE] = 0
            counts[LAST_POSITION] = -1
            counts[START_STATE] = 0
            forget_leading(leading)
            if counts[N_ROOTS] == 0:
                arena.size[0] = 1
            quiet = is_quiet(rules, live, 0)
            note_oldest(rules, windows, live)
        if not nothing_closes(windows, live, times[i], position):
            if not age_entries(rules, windows, live, times[i], position):
                return NEEDS_STATE, i
            quiet = is_quiet(rules, live, 0)
            note_oldest(rules, windows, live)
        if quiet and klass == 0:
            counts[LAST_POSITION] = position
            i += 1
            continue
        # Events of class 0 that came in between take effect first; then this event is looked at again.
        gap = position != counts[LAST_POSITION] + 1 and not quiet
        if not gap and is_quiet(rules, live, klass):
            counts[LAST_POSITION] = position
            i += 1
            continue
        step = np.int32(0) if gap else klass
        result = lacks(arena, rules, live, roots, step)
        if result != DONE:
            return result, i
        if skips and leading.counts[TAIL] == len(leading.start):
            return NEEDS_RECORDS, i
        report = not gap and (len(mute) == 0 or not mute[i])
        n_roots = counts[N_ROOTS]
        at = position - 1 if gap else position
        event = Event(feed.rows[i], feed.clocks[i], times[i], at, counts[KEY], report)
        fire(arena, rules, live, roots, step, event, bounds, options.log)
        counts[LAST_POSITION] = at
        if skips:
            drop_skipped(rules, live, leading, roots, n_roots, at, feed.clocks[i])
        if not gap:
            i += 1
        if options.consume and counts[N_ROOTS] > n_roots:
            counts[N_LIVE] = 0
            if counts[START_STATE] >= 0 and not rules.forgetful[counts[START_STATE]]:
                return CONSUMED, i
        quiet = is_quiet(rules, live, 0)
        note_oldest(rules, windows, live)
    return DONE, len(classes)
