"""Runs in the order of a value: comparisons by order with values that runs keep, held to oracle and registers."""

from __future__ import annotations

import random
import re

import held_values
import numpy as np
import pytest
from held_values import WINDOWS, compared, compiled, long_rows, types_of, why_not

from runtime.engine import engine_for
from runtime.steppers import ranged_tree
from runtime.steppers.ranged_stepper import RangedStepper

TEXTS = {
    "a loop above": "A a ; B+ b ; C c WHERE b[i].x > a.x",
    "the whole loop above": "A a ; B+ b ; C c WHERE b.x >= a.x",
    "compared twice": "A a ; B b ; C c WHERE b.x > a.x AND c.x > a.x",
    "above and below": "A a ; B b ; C c WHERE b.x > a.x AND c.x <= a.x",
    "two values of one event": "A a ; B+ b ; C c WHERE b[i].x > a.x AND b[i].y <= a.x",
    "above and equal": "A a ; B+ b ; C c WHERE b[i].x > a.x AND c.x = a.x",
    "unequal": "A a ; B b ; C c WHERE b.x <> a.x AND c.x < a.x",
    "apart": "A a ; B b ; C c WHERE a.x < c.x",
    "the greatest, apart": "A+ a1 ; B b1 ; C c1 WHERE a1.x < c1.x",
    "the least, apart": "A+ a1 ; B b1 ; C c1 WHERE a1.x > c1.x",
    "two loops": "A+ a ; B+ b ; C c WHERE a[i].x < b[i].x",
    "a match that goes on": "A a ; B+ b WHERE b.x > a.x",
    "of one type": "A p ; A+ q ; A r WHERE p.x < q.x AND r.x > p.x",
    "any event": "ANY p ; ANY q ; ANY r WHERE p.x < q.x AND p.x < r.x",
    "either way": "A a ; (B b OR C c)+ ; D d WHERE b.x > a.x",
    "what may be missing": "A a ; B? b ; C c WHERE b.x > a.x AND c.x >= a.x",
    "another value afterwards": "A a ; B+ b ; C c ; D d ; E e WHERE b.x > a.x AND d.x < c.x AND e.x < c.x",
    "around it": "E e1 ; A a ; B+ b ; C c ; E+ e2 WHERE b.x > a.x",
    "an absence": "SEQ(A a, !D d, C c) WHERE d.x > a.x",
    "an absence after it": "SEQ(A a1, B b1, !D d1, C c1) WHERE d1.x > a1.x AND b1.x > a1.x",
    "an absence that moves runs": "SEQ(A+ a1, !D d1, B b1, C c1) WHERE a1.x < c1.x",
    "a compared absence in a loop": "SEQ(A a1, B+ b1, !D d1, C c1) WHERE b1.x >= a1.x AND d1.x > a1.x",
    "a compared absence that moves runs": "SEQ(A a1, B+ b1, !D d1, C c1, A a2) WHERE a2.x > a1.x AND d1.x < a1.x",
    "an absence before the loop": "SEQ(A a1, !D d1, B+ b1, C c1) WHERE b1.x > a1.x AND d1.x >= a1.x AND c1.x > a1.x",
    "two absences": "SEQ(A a1, B+ b1, !D d1, !B d2, C c1) WHERE b1.x >= a1.x AND d1.x > a1.x AND d2.x < a1.x",
    "absences of all": "SEQ(A a1, !D d1, B+ b1, !D d2, C c1) WHERE b1.x > a1.x",
}
NOT_SO = {
    "neighbours": ("A ; B ; C WHERE A.x < B.x", "", "find by an index"),
    "two values": ("A a ; B+ b ; C c WHERE b[i].x > a.x AND b[i].y > a.y", "", "several values"),
    "of two events": ("A a ; B b ; C c ; D d WHERE c.x > a.x AND d.x > b.x", "", "several values"),
    "a range": ("A a ; B+ b ; C c WHERE b[i].x > a.x AND b[i].x < a.x + 2", "", "several values"),
    "the greatest and the last": ("A+ a ; B+ b ; C c WHERE a[i].x < b[i].x AND a[i].x > c.x", "", "several values"),
    "an OR": ("A a ; B b ; C c WHERE c.x > a.x OR b.x > a.x", "", "several values"),
    "computed of both": ("A a ; B+ b ; C c WHERE b[i].x * a.x > 2", "", "no comparison"),
    "all of a loop equal": ("A+ a ; B b ; C c WHERE a.x = c.x AND b.x >= a.x", "", "after it has changed"),
    "at once": ("(A a : B b) ; C c WHERE c.x > a.x", "", "at once"),
    "what some hold": ("A? a ; B b ; E e ; C c WHERE c.x > a.x", "", "others at the same place do not"),
    "too many places": ("A a ; B{9} ; C c WHERE c.x > a.x", "", "more than 8 places"),
    "after the match": ("SEQ(A a, B b, C c, !D) WHERE c.x > a.x", "WITHIN 9", "before or after the match"),
    "a window inside": ("((A a ; B b) WITHIN 3) ; C c WHERE c.x > a.x", "WITHIN 9", "a window inside"),
    "a NULL that may match": ("A+ a ; (B b OR C c)+ ; D d WHERE a.x < b.x", "", "a NULL is among"),
    "a NULL that has matched": ("B+ b ; A? a WHERE a.x > b.x", "", "a NULL is among"),
    "a NULL at a last event": ("A ; B{1,2} b ; C? c WHERE c.x < b.x", "", "a NULL is among"),
    "a strategy": ("A a ; B+ b ; C c WHERE b.x > a.x", "WITHIN 9 SEMANTICS NXT", "matches compete"),
    "next match": ("A a ; B b ; C c WHERE c.x > a.x", "SEMANTICS SKIP TILL NEXT MATCH", "take what they can"),
    "consumed": ("A a ; B b ; C c WHERE c.x > a.x", "CONSUME BY PARTITION", "matches compete"),
    "skipped": ("A a ; B b ; C c WHERE c.x > a.x", "AFTER MATCH SKIP PAST LAST ROW", "matches compete"),
}


@pytest.mark.parametrize("name", NOT_SO)
def test_what_registers_run_and_why(name: str) -> None:
    pattern, rest, why = NOT_SO[name]
    refusal = why_not(pattern, rest, "runs in order")
    assert re.search(why, refusal), refusal


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_kept_in_order(name: str) -> None:
    made = compiled(TEXTS[name])
    assert made.program.family == "ranged"
    assert "in runs in the order of a value: a cost by a power of the logarithm" in made.explain("physical")


# ---------------------------------------------------------------- everything short


def all_streams_agree(name: str, rest: str, most: int, values: tuple[int | None, ...]) -> None:
    """Of one event of each type and value; of types that nothing compares, one."""
    text = TEXTS[name]
    letters: list[held_values.Letter] = [
        (kind, x, y)
        for kind in types_of(text)
        for x in (values if kind in compared(text) else (1,))
        for y in ((1, 2) if kind in compared(text) and ".y" in text else (1,))
    ]
    held_values.all_streams_agree(text, rest, letters, most, "ranged")


@pytest.mark.breadth(6)
@pytest.mark.parametrize("rest", WINDOWS)
@pytest.mark.parametrize("name", TEXTS)
def test_all_short_streams(name: str, rest: str) -> None:
    all_streams_agree(name, rest, 8_000, (1, 2))


@pytest.mark.exhaustive
@pytest.mark.parametrize("values", [(1, 2), (1, 2, None), (1, 2, 3)])
@pytest.mark.parametrize("rest", WINDOWS)
@pytest.mark.parametrize("name", TEXTS)
def test_all_longer_streams(name: str, rest: str, values: tuple[int | None, ...]) -> None:
    all_streams_agree(name, rest, 20_000, values)


# ---------------------------------------------------------------- at random

VALUES = (1, 2, 2, 3, 4, None)


@pytest.mark.parametrize("small", [False, True], ids=["as it is", "small"])
@pytest.mark.parametrize("name", TEXTS)
def test_streams_at_random(name: str, small: bool) -> None:
    chance, text = random.Random(name), TEXTS[name]
    several = [held_values.stream(chance, text, 15 if seed % 3 else 10, VALUES, VALUES) for seed in range(9)]
    total = held_values.agree_at_random(text, ("", "WITHIN 4", "WITHIN 12 EVENTS"), several, small)
    assert total > 0 or len(types_of(text)) > 2


def drawn(chance: random.Random) -> str:
    """Three to five events or loops of two or three types, some of them either of two, perhaps absences in between,
    compared or not; some are compared with one of them."""
    n, kinds = chance.randint(3, 5), chance.choice(("AB", "ABC", "ABD"))
    items: list[str] = []
    for k in range(n):
        quantifier = chance.choice(("", "", "", "+", "{1,2}", "?") if k else ("", "", "+"))
        item = f"{chance.choice(kinds)}{quantifier} v{k}"
        if quantifier == "" and k and chance.random() < 0.2:
            item = f"({item} OR {chance.choice(kinds)} w{k})"
        elif quantifier == "+" and k and chance.random() < 0.3:
            item = f"({item} ; {chance.choice(kinds)} w{k})+"
        if k and "?" not in item + items[-1] and chance.random() < 0.25:
            items.append(f"!{chance.choice(kinds + 'D')} z{k}")
        items.append(item)
    first = chance.choice((0, 0, 1))
    key = f"v{first}.{chance.choice('xxy')}"
    others = [name for name in re.findall(r"[vwz]\d", " ".join(items)) if int(name[1]) > first]
    checks = chance.sample(others, min(len(others), chance.choice((1, 2, 2, 3))))
    conditions = [f"{other}.{chance.choice('xy')} {chance.choice(('<', '<=', '>', '>=', '=', '<>'))} {key}"
                  for other in checks]  # fmt: skip
    return f"SEQ({', '.join(items)}) WHERE {' AND '.join(conditions)}"


def drawn_agree(rounds: int, seed: int) -> None:
    chance, total, n = random.Random(seed), 0, 0
    while n < rounds:
        text, rest = drawn(chance), chance.choice(("", "WITHIN 3", "WITHIN 9 EVENTS"))
        if compiled(text, rest).program.family == "ranged":
            n += 1
            several = [held_values.stream(chance, text, 10, VALUES, VALUES) for _ in range(3)]
            total += held_values.agree_at_random(text, (rest,), several, small=True)
    assert total > rounds


def test_texts_at_random() -> None:
    drawn_agree(12, 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2, 8))
def test_more_texts_at_random(seed: int) -> None:
    drawn_agree(60, seed)


# ---------------------------------------------------------------- long streams, beside registers

SHORT_WINDOWS = {
    "two loops": 6, "of one type": 3, "any event": 5, "a match that goes on": 5, "either way": 4,
    "the whole loop above": 6,
}  # fmt: skip


@pytest.mark.breadth(9)
@pytest.mark.parametrize(("distinct", "n_keys"), [(1, 1), (9, 1), (300, 1), (1_000, 3), (30, 60)])
@pytest.mark.parametrize("name", TEXTS)
def test_long_streams_are_as_by_registers(name: str, distinct: int, n_keys: int) -> None:
    rest = f"WITHIN {SHORT_WINDOWS.get(name, 10)}" + (" EVENTS" if n_keys == 3 else "")
    found = held_values.agree_with_registers(TEXTS[name], rest, 700, distinct, n_keys)
    assert found or distinct < 9 or n_keys == 3


def test_what_is_kept_is_what_the_window_holds() -> None:
    """Nodes and keys stay as many on a stream ten times as long, of values that never come again."""
    text = "A a ; B b ; C c WHERE b.x > a.x AND c.x > a.x"
    program, sizes = compiled(text, "WITHIN 100").program, list[int]()
    for n in (20_000, 200_000):
        rows = long_rows(program, text, n, n, 1)
        rows["times"] = np.arange(n)
        engine = engine_for(program)
        engine.count(rows["symbols"], rows["times"])
        engine.least_row()
        stepper = engine.stepper
        assert isinstance(stepper, RangedStepper)
        assert engine.nodes < 30_000
        sizes.append(len(stepper._waiting.entries.meta))
    assert sizes[0] == sizes[1]
    assert sizes[0] <= 1 << 11


def test_without_a_window_a_key_whose_runs_have_ended_is_let_go() -> None:
    """Each D ends all runs with a lesser value, so few are left."""
    text = "SEQ(A a, !D d, C c) WHERE d.x > a.x"
    program = compiled(text).program
    rows = long_rows(program, text, 60_000, 60_000, 1)
    engine = engine_for(program)
    engine.count(rows["symbols"], rows["times"], mute=np.ones(60_000, np.bool_))
    stepper = engine.stepper
    assert isinstance(stepper, RangedStepper)
    assert len(stepper._waiting.entries.meta) <= 1 << 11


# ---------------------------------------------------------------- the tree


@pytest.mark.parametrize("order", ["rising", "falling", "inwards", "any"])
def test_the_tree_is_balanced(order: str) -> None:
    """No side weighs more than three times as much as the other, whatever the order in which keys come."""
    n = 3_000
    keys = {
        "rising": np.arange(n),
        "falling": np.arange(n)[::-1],
        "inwards": np.stack([np.arange(n // 2), np.arange(n)[: n // 2 - 1 : -1]], axis=1).ravel(),
        "any": np.random.default_rng(1).permutation(n),
    }[order]
    program = compiled("A a ; B+ b ; C c WHERE b[i].x > a.x").program
    symbols = np.zeros((n, 2), np.int64)
    symbols[:, 0] = 1 << [set(guard) for guard in program.guards].index({"A"})
    symbols[:, 1] = keys
    engine = engine_for(program)
    engine.count(symbols, np.arange(n))
    stepper = engine.stepper
    assert isinstance(stepper, RangedStepper)
    tree = stepper._waiting.entries
    meta, todo, leaves = tree.meta, [int(tree.counts[ranged_tree.ROOT])], list[int]()
    while todo:
        u = todo.pop()
        left, right = meta[u, ranged_tree.LEFT], meta[u, ranged_tree.RIGHT]
        if left == 0:
            leaves.append(int(meta[u, ranged_tree.LOW]))
            continue
        weights = sorted(meta[[left, right], ranged_tree.WEIGHT].tolist())
        assert weights[1] <= ranged_tree.HEAVIER * weights[0]
        assert meta[u, ranged_tree.WEIGHT] == sum(weights)
        assert meta[left, ranged_tree.HIGH] < meta[right, ranged_tree.LOW]
        todo += [int(right), int(left)]
    assert leaves == sorted(keys.tolist())
