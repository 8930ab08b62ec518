"""Runs that catch up: equality of events that are not neighbours, from texts, held to the oracle and to registers.

All short streams at once (each is a key of one feed), then at random in every way in which a stream can be fed; long
ones against the same query run by registers, which look at each value that waits.
"""

from __future__ import annotations

import random
import re

import held_values
import numpy as np
import pytest
from held_values import WINDOWS, compared, compiled, long_rows, types_of, why_not

from runtime.engine import engine_for
from runtime.steppers import blocks
from runtime.steppers.deferred_stepper import DeferredStepper

TEXTS = {
    "two apart": "A ; B ; C WHERE A.x = C.x",
    "a loop between": "A ; B+ ; C WHERE A.x = C.x",
    "what may be missing": "A ; B? ; C WHERE A.x = C.x",
    "a loop before": "A+ a1 ; B b1 ; C c1 WHERE a1.x = c1.x",
    "of other columns": "A ; B ; C WHERE A.x = C.y",
    "of one type": "A p ; A+ q ; A r WHERE p.x = r.x",
    "any event": "ANY p ; ANY q ; ANY r WHERE p.x = r.x",
    "two values": "A ; (B OR D) ; E ; C WHERE A.x = C.x AND A.y = C.y",
    "one after the other": "A a1 ; B b1 ; A a2 ; B b2 ; A a3 WHERE a1.x = a2.x AND a2.y = a3.y",
    "first beside the next": "A ; B ; C ; D WHERE A.x = B.x AND A.x = D.x",
    "counted": "A ; B{1,3} ; C WHERE A.x = C.x",
    "a loop of two": "A ; (B ; D)+ ; C WHERE A.x = C.x",
    "either way": "(A a1 ; B ; C c1) OR (A a2 ; D ; C c2) WHERE a1.x = c1.x AND a2.x = c2.x",
    "events around it": "E e1 ; A ; B ; C ; E+ e2 WHERE A.x = C.x",
    "an absence that ends runs": "SEQ(A, B, !D, C) WHERE A.x = C.x",
    "an absence that moves runs": "SEQ(A+ a1, !D, B b1, C c1) WHERE a1.x = c1.x",
    "an absence after a free loop": "SEQ(A a1, B+ b1, !D, C c1, A a2) WHERE a1.x = a2.x",
    "two absences at one place": "SEQ(A a1, B+ b1, !D, !E, C c1, A a2) WHERE a1.x = a2.x",
    "an absence that takes part": "SEQ(A a1, B+ b1, !C, C c1, A a2) WHERE a1.x = a2.x",
    "a way without it": "(SEQ(A a1, !D, B b1, C c1) OR (A a2 ; C c2 ; C c3)) WHERE a1.x = c1.x AND a2.x = c3.x",
    "absences around values": "SEQ(A a1, B b1, !D, A a2, !D, B b2) WHERE a1.x = a2.x",
    "a compared absence": "SEQ(A a1, B b1, !D d1, C c1) WHERE a1.x = c1.x AND d1.x = a1.x",
    "a compared absence of a type that takes part": "SEQ(A a1, B+ b1, !C d1, C c1) WHERE a1.x = c1.x AND d1.y = a1.x",
    "a compared absence that moves runs": "SEQ(A a1, B+ b1, !D d1, C c1, A a2) WHERE a1.x = a2.x AND d1.x = a1.x",
    "absences, compared and not": "SEQ(A a1, B+ b1, !B d1, !D, C c1, A a2) WHERE a1.x = a2.x AND d1.x = a1.x",
    "two compared absences": "SEQ(A a1, B+ b1, !B d1, !B d2, A a2) WHERE a1.x = a2.x AND d1.x = a1.x AND d2.y = a1.x",
    "equal to two of one event": "A ; B ; C WHERE A.x = C.x AND A.x = C.y",
    "a value of two": "A ; B ; C WHERE A.x = C.x AND A.y = C.x",
}
NOT_SO = {
    "neighbours": ("A ; B ; C WHERE A.x = B.x", "", "find by an index"),
    "a match that ends before": ("A ; B ; C? WHERE A.x = C.x", "", "can end before all that it compares"),
    "two that overlap": ("A ; B ; C ; D WHERE A.x = C.x AND B.y = D.y", "", "some of what a run holds"),
    "more beside it": ("A ; B ; C WHERE A.x = C.x AND A.y < C.y", "", "some of what a run holds|no comparison"),
    "an OR": ("A ; B ; C WHERE A.x = C.x OR A.y = C.y", "", "some of what a run holds|no comparison"),
    "at once": ("(A : B) ; C WHERE A.x = C.x", "", "at once"),
    "a compared absence": (
        "SEQ(A, B, !D, C) WHERE A.x = C.x AND D.y = A.y",
        "",
        "some of what a run holds|is compared",
    ),
    "what some hold": ("A? ; B ; E ; C WHERE A.x = C.x", "", "others at the same place do not"),
    "too many places": ("A ; B{9} ; C WHERE A.x = C.x", "", "more than 8 places"),
    "after the match": ("SEQ(A, B, C, !D) WHERE A.x = C.x", "WITHIN 9", "before or after the match"),
    "a strategy": ("A ; B ; C WHERE A.x = C.x", "WITHIN 9 SEMANTICS NXT", "matches compete"),
    "next match": ("A ; B ; C WHERE A.x = C.x", "SEMANTICS SKIP TILL NEXT MATCH", "take what they can"),
    "consumed": ("A ; B ; C WHERE A.x = C.x", "CONSUME BY PARTITION", "matches compete"),
    "skipped": ("A ; B ; C WHERE A.x = C.x", "AFTER MATCH SKIP PAST LAST ROW", "matches compete"),
}


@pytest.mark.parametrize("name", NOT_SO)
def test_what_registers_run_and_why(name: str) -> None:
    pattern, rest, why = NOT_SO[name]
    refusal = why_not(pattern, rest, "deferred runs")
    assert re.search(why, refusal), refusal


@pytest.mark.parametrize("name", TEXTS)
def test_what_catches_up(name: str) -> None:
    made = compiled(TEXTS[name])
    assert made.program.family == "deferred"
    assert "in runs that catch up: a logarithmic cost per event" in made.explain("physical")


# ---------------------------------------------------------------- everything short


def all_streams_agree(name: str, rest: str, most: int) -> None:
    """Of one event of each type and value; of types that nothing compares, one."""
    text = TEXTS[name]
    values = [(1, 1), (2, 1), *([(1, 2)] if ".y" in text else [])]
    letters: list[held_values.Letter] = [
        (kind, *own) for kind in types_of(text) for own in (values if kind in compared(text) else values[:1])
    ]
    held_values.all_streams_agree(text, rest, letters, most, "deferred")


@pytest.mark.breadth(6)
@pytest.mark.parametrize("rest", WINDOWS)
@pytest.mark.parametrize("name", TEXTS)
def test_all_short_streams(name: str, rest: str) -> None:
    all_streams_agree(name, rest, 8_000)


@pytest.mark.exhaustive
@pytest.mark.parametrize("rest", WINDOWS[1:2])
@pytest.mark.parametrize("name", TEXTS)
def test_all_longer_streams(name: str, rest: str) -> None:
    all_streams_agree(name, rest, 20_000)


# ---------------------------------------------------------------- at random


@pytest.mark.parametrize("small", [False, True], ids=["as it is", "small"])
@pytest.mark.parametrize("name", TEXTS)
def test_streams_at_random(name: str, small: bool) -> None:
    chance, text = random.Random(name), TEXTS[name]
    streams = [held_values.stream(chance, text, 12 if seed % 3 else 9) for seed in range(9)]
    total = held_values.agree_at_random(text, ("", "WITHIN 3", "WITHIN 9 EVENTS"), streams, small)
    assert total > 0 or len(types_of(text)) > 2


def drawn(chance: random.Random) -> str:
    """Three to five events or loops of two or three types, some of them either of two, perhaps absences in between,
    compared or not, and one or two equalities."""
    n, kinds = chance.randint(3, 5), chance.choice(("AB", "ABC", "ABD"))
    items: list[str] = []
    for k in range(n):
        item = f"{chance.choice(kinds)} v{k}"
        kind, name = item.split()
        quantifier = chance.choice(("", "", "", "+", "{1,2}", "?") if k else ("", "+"))
        if quantifier == "" and chance.random() < 0.2:
            item = f"({item} OR {chance.choice(kinds)} w{k})"
        elif quantifier == "+" and chance.random() < 0.3:
            item = f"({item} ; {chance.choice(kinds)} w{k})+"
        else:
            item = f"{kind}{quantifier} {name}"
        if k and "?" not in item + items[-1] and chance.random() < 0.25:
            items.append(f"!{chance.choice(kinds + 'D')} z{k}")
        items.append(item)
    pairs = [f"v{i}.{chance.choice('xy')} = v{j}.{chance.choice('xy')}"
             for i, j in (sorted(chance.sample(range(n), 2)) for _ in range(chance.choice((1, 1, 2))))]  # fmt: skip
    vetoes = [item.split()[1] for item in items if item.startswith("!")]
    first = pairs[0].split(" = ")[0]
    pairs += [f"{z}.{chance.choice('xy')} = {first}" for z in vetoes if chance.random() < 0.5]
    return f"SEQ({', '.join(items)}) WHERE {' AND '.join(pairs)}"


def drawn_agree(rounds: int, seed: int) -> None:
    chance, total, n = random.Random(seed), 0, 0
    while n < rounds:
        text, rest = drawn(chance), chance.choice(("", "WITHIN 2", "WITHIN 8 EVENTS"))
        if compiled(text, rest).program.family == "deferred":
            n += 1
            streams = [held_values.stream(chance, text, 9) for _ in range(3)]
            total += held_values.agree_at_random(text, (rest,), streams, small=True)
    assert total > rounds


def test_texts_at_random() -> None:
    drawn_agree(10, 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2, 8))
def test_more_texts_at_random(seed: int) -> None:
    drawn_agree(60, seed)


# ---------------------------------------------------------------- long streams, beside registers


LONG = ("two apart", "a loop between", "a loop before", "one after the other", "an absence that ends runs",
        "an absence that moves runs", "an absence after a free loop", "a way without it", "either way",
        "a compared absence", "absences, compared and not")  # fmt: skip


@pytest.mark.breadth(9)
@pytest.mark.parametrize(("distinct", "n_keys"), [(1, 1), (4, 1), (60, 3), (2, 60)])
@pytest.mark.parametrize("name", LONG)
def test_long_streams_are_as_by_registers(name: str, distinct: int, n_keys: int) -> None:
    window = {"a loop between": 4, "a loop before": 5, "one after the other": 8, "an absence that moves runs": 6}.get(
        name, 12
    )
    rest = f"WITHIN {window if distinct < 60 else 5 * window}" + (" EVENTS" if n_keys == 3 else "")
    assert held_values.agree_with_registers(TEXTS[name], rest, 600, distinct, n_keys)


def test_what_is_kept_is_what_the_window_holds() -> None:
    """Nodes, entries and blocks stay as many on a stream ten times as long, of values that never come again."""
    program, sizes = compiled("A ; B+ ; C WHERE A.x = C.x", "WITHIN 100").program, list[tuple[int, ...]]()
    for n in (20_000, 200_000):
        rows = long_rows(program, "A ; B ; C", n, n, 1)
        rows["times"] = np.arange(n)
        engine = engine_for(program)
        engine.count(rows["symbols"], rows["times"])
        engine.least_row()
        stepper = engine.stepper
        assert isinstance(stepper, DeferredStepper)
        kept, entries = stepper._waiting.blocks, stepper._waiting.entries
        sizes.append((len(entries.place), len(kept.to)))
        assert engine.nodes < 20_000
        assert blocks.n_rows(kept) < 1_000
        assert kept.counts[blocks.N_FREE] > n // 5
    assert sizes[0] == sizes[1]
    assert max(sizes[0]) <= 1 << 10


def test_without_a_window_a_value_that_catches_up_lets_go_of_what_it_missed() -> None:
    """All values are equal, so nobody has to catch up with anything that lies behind the last A or C."""
    program = compiled("A ; B ; C WHERE A.x = C.x").program
    rows = long_rows(program, "A ; B ; C", 50_000, 1, 1)
    engine = engine_for(program)
    engine.count(rows["symbols"][:, :], rows["times"], mute=np.ones(50_000, np.bool_))
    stepper = engine.stepper
    assert isinstance(stepper, DeferredStepper)
    assert len(stepper._waiting.blocks.to) <= 1 << 10


# ---------------------------------------------------------------- blocks


def test_blocks_lie_one_after_the_other() -> None:
    """Block l ends with free event e if 2ˡ divides e + 1, and is number 2e − (ones in e) + l of all."""
    made = [(last, level) for last in range(64) for level in range(7) if (last + 1) % (1 << level) == 0]
    made.sort()
    assert [(blocks.n_blocks(last) + level) for last, level in made] == list(range(len(made)))
    assert blocks.n_blocks(64) == len(made)


def test_a_stretch_is_made_of_few_blocks() -> None:
    for begin in range(40):
        for end in range(begin + 1, 70):
            at, steps = begin, 0
            while at < end:
                size = 1 << int(_level_at(at, end))
                assert at % size == 0
                assert at + size <= end
                at, steps = at + size, steps + 1
            assert steps <= 2 * (end - begin).bit_length()


def _level_at(begin: int, end: int) -> int:
    return int(getattr(blocks.level_at, "py_func", blocks.level_at)(begin, end))
