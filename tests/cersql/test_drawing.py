"""The automaton as a picture: what is written overlaps nothing, and nothing lies outside."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest

import cersql

SVG = "{http://www.w3.org/2000/svg}"
PATTERNS = [
    "A a",
    "SEQ(A a, B b, C c)",
    "A a ; B+ b ; C c",
    "A a : B:+ b : C c",
    "(A a OR B b) ; C c",
    "ALL(A a, B b, C c)",
    "SEQ(A a, !B n, C c)",
    "A{2,4} a ; B? b",
    "A a ; B? b ; C? c ; D d",
    "A a ; (B b ; C c)+ ; D d",
    "(A ; B) OR (C ; D) OR (E ; F)",
    "A a FILTER a.v > 50 AND a.k IN (1, 2, 3) ; B b FILTER b.v < 2 OR b.k = 7",
]
Box = tuple[float, float, float, float]


def boxes(picture: ElementTree.Element) -> tuple[list[Box], list[Box]]:
    """(what is written on edges, states), each left, top, right, bottom."""
    labels, states = [], set()
    for rect in picture.iter(f"{SVG}rect"):
        if rect.get("x") is not None:
            x, y, width, height = (float(rect.get(name, "")) for name in ("x", "y", "width", "height"))
            labels.append((x, y, x + width, y + height))
    for circle in picture.iter(f"{SVG}circle"):
        x, y, r = (float(circle.get(name, "")) for name in ("cx", "cy", "r"))
        if r == 18:
            states.add((x - r, y - r, x + r, y + r))
    return labels, sorted(states)


def meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_nothing_overlaps(pattern: str) -> None:
    compiled = cersql.compile(
        f"FROM t PATTERN {pattern} ORDER BY ts RETURN *", {"t": "ts INT, type STRING, v DOUBLE, k INT"}
    )
    automaton = compiled.plan.automaton
    picture = ElementTree.fromstring(compiled.explain("svg"))
    labels, states = boxes(picture)
    assert len(states) == automaton.n_states
    assert len(labels) == len({(t.source, t.target) for t in automaton.transitions})
    assert not [(one, other) for one, other in combinations([*labels, *states], 2) if meet(one, other)]

    width, height = (float(picture.get(name, "")) for name in ("width", "height"))
    assert all(x >= 0 and y >= 0 and u <= width and v <= height for x, y, u, v in [*labels, *states])
    assert len(list(picture.iter(f"{SVG}polygon"))) == len(labels) + len(automaton.initial)
    assert len(list(picture.iter(f"{SVG}circle"))) == len(states) + len(automaton.final)


def test_many_fit_on_one_page() -> None:
    """No id that another picture has, and no CSS that a page or a sanitizer may drop."""
    text = cersql.compile("FROM t PATTERN A ; B+ ORDER BY ts RETURN *", {"t": "ts INT, type STRING"}).explain("svg")
    assert "id=" not in text
    assert "style=" not in text
