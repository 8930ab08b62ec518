"""An automaton as a picture: Mermaid's text, and SVG drawn here, in layers from the initial states to the right."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from html import escape

from planner.automata.automaton import Automaton, Transition, show_guard, show_label

# Sizes in the picture's units.
_RADIUS, _LETTER, _LINE, _GAP = 18, 6.2, 13, 40
_START = 24  # the arrow into an initial state
_MOST_LETTERS = 40
MOST_PLACED = 1_000  # states and transitions of an SVG picture, which is laid out here, …
MOST_PARTS = 10_000  # … and of one that another program lays out
Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def most_of(automaton: Automaton) -> Automaton:
    """The automaton with as many of its states and transitions, from the first on, as a program can still draw."""
    if automaton.n_states + len(automaton.transitions) <= MOST_PARTS:
        return automaton
    kept = [t for t in automaton.transitions if max(t.source, t.target) < MOST_PARTS // 2][: MOST_PARTS // 2]
    n_states = min(automaton.n_states, MOST_PARTS // 2)
    initial, final = (tuple(q for q in own if q < n_states) for own in (automaton.initial, automaton.final))
    return Automaton(n_states, tuple(kept), initial, final)


def mermaid(automaton: Automaton) -> str:
    """The automaton as a flowchart in Mermaid's language."""
    lines = ["flowchart LR"]
    for q in range(automaton.n_states):
        lines.append(f"  q{q}(((q{q})))" if q in automaton.final else f"  q{q}((q{q}))")
    lines += [f"  start{q}[ ]:::start --> q{q}" for q in automaton.initial]
    lines += [f'  q{t.source} -->|"{_entities(_text(t))}"| q{t.target}' for t in automaton.transitions]
    return "\n".join([*lines, "  classDef start fill:none,stroke:none"])


def _entities(text: str) -> str:
    """Mermaid writes marks that mean something to it as #number; (its own form of HTML's entities)."""
    return "".join(c if c.isalnum() or c in " _-.,=()" else f"#{ord(c)};" for c in text)


def _text(t: Transition) -> str:
    return f"{show_guard(t.guard)} / {show_label(t.label)}"


def svg(automaton: Automaton) -> str:
    """The automaton as an SVG picture: first the edges, then the states, then what is written on the edges.

    It refers to no ids, CSS or markers: a page can hold many, and not everything that shows SVG knows these. Of an
    automaton that nobody could look at it shows only how large it is.
    """
    n_transitions = len(automaton.transitions)
    if automaton.n_states + n_transitions > MOST_PLACED:
        return _too_large(f"{automaton.n_states} states and {n_transitions} transitions: too many to draw")
    places = _places(automaton)
    bottom = max((y for _, y in places.values()), default=0.0)
    parts: list[str] = []
    texts: list[str] = []
    taken = [_around(place) for place in places.values()]
    width = max((x for x, _ in places.values()), default=0.0) + _RADIUS
    depth = bottom + _RADIUS
    for edge in _edges(automaton):
        curve, candidates = _drawn(edge, places, bottom)
        boxes = [_box(edge.lines, place) for place in candidates]
        k = next((k for k, box in enumerate(boxes) if not any(_meet(box, other) for other in taken)), 0)
        taken.append(boxes[k])
        parts += _arrow(curve)
        texts += _lines(edge.lines, candidates[k])
        lowest = max(curve.at(t / 8)[1] for t in range(9))
        depth = max(depth, lowest, boxes[k][3])
        width = max(width, boxes[k][2])
    parts += [part for q, place in places.items() for part in _state(automaton, q, place)]
    return _picture(width + _GAP / 2, depth + _GAP / 2, [*parts, *texts])


def _picture(width: float, height: float, parts: list[str]) -> str:
    size = f"{width:.0f}", f"{height:.0f}"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {" ".join(size)}" width="{size[0]}" height="{size[1]}" '
        f'font-family="sans-serif" font-size="11" text-anchor="middle">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"])


def _too_large(text: str) -> str:
    width = _LETTER * len(text) + _GAP
    return _picture(width, _GAP, [f'<text x="{width / 2:.0f}" y="{_GAP / 2:.0f}">{escape(text)}</text>'])


# ---------------------------------------------------------------- where things are


def layers(automaton: Automaton) -> list[list[int]]:
    """The states by their longest way from the initial ones, so that only what goes back goes to the left."""
    after: dict[int, list[int]] = defaultdict(list)
    for t in automaton.transitions:
        after[t.source].append(t.target)
    forward: dict[int, list[int]] = defaultdict(list)
    finished: dict[int, bool] = {}  # in the order in which the search leaves them
    entered: set[int] = set()
    for q in automaton.initial:
        stack = [] if q in entered else [(q, iter(after[q]))]
        entered.add(q)
        while stack:
            p, targets = stack[-1]
            for target in targets:
                if target in entered and target not in finished:
                    continue  # back to where the search is coming from
                forward[p].append(target)
                if target not in entered:
                    entered.add(target)
                    stack.append((target, iter(after[target])))
                    break
            else:
                finished[p] = True
                stack.pop()
    rank = dict.fromkeys(finished, 0)
    for p in reversed(finished):
        for target in forward[p]:
            rank[target] = max(rank[target], rank[p] + 1)
    found = [sorted(q for q in rank if rank[q] == k) for k in range(max(rank.values(), default=-1) + 1)]
    rest = [q for q in range(automaton.n_states) if q not in rank]
    return [*found, rest] if rest else found


def _places(automaton: Automaton) -> dict[int, Point]:
    """The middle of each state: a column for each layer, wide enough for what is written before it."""
    columns = layers(automaton)
    column_of = {q: k for k, column in enumerate(columns) for q in column}
    letters = [0] * (len(columns) + 1)
    tops = [0] * len(columns)
    for edge in _edges(automaton):
        longest = max(len(line) for line in edge.lines)
        k = column_of[edge.source]
        if edge.source == edge.target:
            letters[k] = max(letters[k], longest // 2)
            tops[k] = max(tops[k], len(edge.lines))
        letters[k + 1] = max(letters[k + 1], longest)
    found: dict[int, Point] = {}
    x = max(0.0, _START + _RADIUS - letters[0] * _LETTER - _GAP / 2 - _LINE)
    row = 2 * _RADIUS + 2 * _GAP + _LINE * max(tops, default=0)
    for k, column in enumerate(columns):
        x += letters[k] * _LETTER + _GAP + _LINE
        for i, q in enumerate(column):
            found[q] = (x, _GAP + _RADIUS + _LINE * max(tops) + i * row)
    return found


@dataclass(frozen=True)
class Edge:
    """All transitions from one state to another, a line of text each."""

    source: int
    target: int
    lines: tuple[str, ...]


def _edges(automaton: Automaton) -> list[Edge]:
    texts: dict[tuple[int, int], list[str]] = {}
    for t in automaton.transitions:
        text = _text(t)
        short = text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"
        texts.setdefault((t.source, t.target), []).append(short)
    return [Edge(source, target, tuple(lines)) for (source, target), lines in texts.items()]


# ---------------------------------------------------------------- what is drawn


@dataclass(frozen=True)
class Curve:
    """A cubic Bézier curve."""

    start: Point
    first: Point
    second: Point
    end: Point

    def at(self, t: float) -> Point:
        weights = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3
        points = (self.start, self.first, self.second, self.end)
        x, y = (sum(w * point[i] for w, point in zip(weights, points, strict=True)) for i in (0, 1))
        return x, y


def _bent(start: Point, control: Point, end: Point) -> Curve:
    """A quadratic curve as a cubic one; straight where the control point is on the line."""
    (x, y), (c, d), (u, v) = start, control, end
    return Curve(start, ((x + 2 * c) / 3, (y + 2 * d) / 3), ((u + 2 * c) / 3, (v + 2 * d) / 3), end)


def _state(automaton: Automaton, q: int, place: Point) -> list[str]:
    x, y = place
    parts = [f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{_RADIUS}" fill="white" stroke="black"/>']
    if q in automaton.final:
        parts.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{_RADIUS - 4}" fill="none" stroke="black"/>')
    parts.append(f'<text x="{x:.0f}" y="{y + 4:.0f}">q{q}</text>')
    if q in automaton.initial:
        rim = x - _RADIUS
        parts += _arrow(_bent((rim - _START, y), (rim - _START / 2, y), (rim, y)))
    return parts


_ALONG = (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78)  # where on an edge its text may stand, the best first


def _drawn(edge: Edge, places: dict[int, Point], bottom: float) -> tuple[Curve, list[Point]]:
    """An edge, and where the first line of its text may stand: a loop above its state; an edge to the right straight,
    or in a bow below the states between; one back to the left below all states."""
    (x, y), (u, v) = places[edge.source], places[edge.target]
    above = _LINE * (len(edge.lines) - 1)
    if edge.source == edge.target:
        top = y - _RADIUS
        curve = Curve((x - 8, top + 2), (x - 16, top - 24), (x + 16, top - 24), (x + 8, top + 2))
        return curve, [(x, top - 22 - above)]
    if u > x:
        between = {
            px
            for px, py in places.values()
            if x < px < u and abs(py - y - (v - y) * (px - x) / (u - x)) < 1.5 * _RADIUS
        }
        bow = _RADIUS * (0.5 + 1.8 * len(between)) if between else 0.0
        control = ((x + u) / 2, (y + v) / 2 + 2 * bow)
        curve = _bent(_rim((x, y), control), control, _rim((u, v), control))
        off = 16 if between else 4 - above / 2 if abs(y - v) > 1 else -5 - above
        return curve, [(px, py + off) for px, py in map(curve.at, _ALONG)]
    if u == x:  # one column, of states without a way to them
        aside = x + 2.5 * _RADIUS
        curve = Curve((x + _RADIUS, y), (aside, y), (aside, v), (u + _RADIUS, v))
        return curve, [(px + _RADIUS, py - above / 2) for px, py in map(curve.at, _ALONG)]
    low = bottom + 2.4 * _RADIUS + abs(x - u) / 8
    curve = Curve((x, y + _RADIUS), (x, low), (u, low), (u, v + _RADIUS))
    return curve, [(px, py + 16) for px, py in map(curve.at, _ALONG)]


def _rim(state: Point, towards: Point) -> Point:
    """Where a line from a state's middle leaves its circle."""
    (x, y), (u, v) = state, towards
    length = math.hypot(u - x, v - y) or 1.0
    return x + (u - x) * _RADIUS / length, y + (v - y) * _RADIUS / length


def _arrow(curve: Curve) -> list[str]:
    """The curve, and its head: a triangle in the direction in which it ends."""
    (x, y), (u, v) = curve.at(0.9), curve.end
    length = math.hypot(u - x, v - y) or 1.0
    dx, dy = (u - x) / length, (v - y) / length
    left, right = (u - 7 * dx - 3.5 * dy, v - 7 * dy + 3.5 * dx), (u - 7 * dx + 3.5 * dy, v - 7 * dy - 3.5 * dx)
    start, *rest = (f"{px:.1f},{py:.1f}" for px, py in (curve.start, curve.first, curve.second, curve.end))
    head = " ".join(f"{px:.1f},{py:.1f}" for px, py in (curve.end, left, right))
    return [f'<path d="M{start} C{" ".join(rest)}" fill="none" stroke="black"/>', f'<polygon points="{head}"/>']


def _lines(lines: tuple[str, ...], place: Point) -> list[str]:
    """Lines of text one below the other, on white, so that no edge crosses out what is written."""
    x, y = place
    left, top, right, bottom = _box(lines, place)
    size = f'width="{right - left:.0f}" height="{bottom - top:.0f}"'
    written = (
        f'<text x="{x:.0f}" y="{y + _LINE * k:.0f}">{escape(line, quote=False)}</text>' for k, line in enumerate(lines)
    )
    return [f'<rect x="{left:.0f}" y="{top:.0f}" {size} fill="white"/>', *written]


def _box(lines: tuple[str, ...], place: Point) -> Box:
    x, y = place
    half = max(map(len, lines)) * _LETTER / 2
    return x - half, y - 10, x + half, y + 3 + _LINE * (len(lines) - 1)


def _around(state: Point) -> Box:
    x, y = state
    return x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
