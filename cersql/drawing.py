"""An automaton as a picture: Mermaid's text, and SVG drawn here, in layers from the initial states to the right."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from html import escape

from planner.automaton import Automaton, Transition, show_guard, show_label

# Sizes in the picture's units.
_RADIUS, _LETTER, _LINE, _GAP = 18, 6.2, 13, 40
_MOST_LETTERS = 40
Point = tuple[float, float]


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
    """The automaton as an SVG picture: first the edges, then the states, then what is written on the edges."""
    places = _places(automaton)
    bottom = max((y for _, y in places.values()), default=0.0)
    parts: list[str] = []
    texts: list[str] = []
    depth = bottom
    for edge in _edges(automaton):
        path, written, lowest = _drawn(edge, places, bottom)
        parts.append(path)
        texts += written
        depth = max(depth, lowest)
    parts += [part for q, place in places.items() for part in _state(automaton, q, place)]
    width = max((x for x, _ in places.values()), default=0.0) + _RADIUS + _GAP
    height = depth + _RADIUS + _GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="sans-serif" font-size="11" text-anchor="middle" style="background:white">'
    )
    return "\n".join([head, *_ARROW, *parts, *texts, "</svg>"])


_HALO = 'stroke="white" stroke-width="6" paint-order="stroke"'  # so that lines do not cross out what is written
_ARROW = [
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">',
    '<path d="M0,0 L8,4 L0,8 z"/></marker></defs>',
]


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
    x = float(_GAP)
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


def _state(automaton: Automaton, q: int, place: Point) -> list[str]:
    x, y = place
    parts = [f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{_RADIUS}" fill="white" stroke="black"/>']
    if q in automaton.final:
        parts.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{_RADIUS - 4}" fill="none" stroke="black"/>')
    parts.append(f'<text x="{x:.0f}" y="{y + 4:.0f}">q{q}</text>')
    if q in automaton.initial:
        parts.append(_path(f"M{x - _RADIUS - 24:.0f},{y:.0f} L{x - _RADIUS:.0f},{y:.0f}"))
    return parts


def _drawn(edge: Edge, places: dict[int, Point], bottom: float) -> tuple[str, list[str], float]:
    """An edge, its text, and how far down they reach: a loop above its state; one to the right straight, or in a bow
    below the states between; one back to the left below all states."""
    (x, y), (u, v) = places[edge.source], places[edge.target]
    above = _LINE * (len(edge.lines) - 1)
    if edge.source == edge.target:
        top = y - _RADIUS
        path = f"M{x - 8:.0f},{top + 2:.0f} c-8,-26 24,-26 16,0"
        return _path(path), _lines(edge.lines, x, top - 22 - above), y
    if u > x:
        between = {px for px, py in places.values() if x < px < u and abs(py - (y + v) / 2) < 2 * _RADIUS}
        bow = _RADIUS * (1 + 1.2 * len(between)) if between else 0.0
        mx, my = (x + u) / 2, (y + v) / 2 + bow
        control = (mx, my + bow)
        (x, y), (u, v) = _rim((x, y), control), _rim((u, v), control)
        path = f"M{x:.0f},{y:.0f} Q{control[0]:.0f},{control[1]:.0f} {u:.0f},{v:.0f}"
        written = my + 16 if between else my + 4 - above / 2 if abs(y - v) > 1 else my - 5 - above
        return _path(path), _lines(edge.lines, mx, written), my + above + 16
    if u == x:  # one column, of states without a way to them
        aside = x + 2.5 * _RADIUS
        path = f"M{x + _RADIUS:.0f},{y:.0f} C{aside:.0f},{y:.0f} {aside:.0f},{v:.0f} {u + _RADIUS:.0f},{v:.0f}"
        return _path(path), _lines(edge.lines, x + 2 * _RADIUS, (y + v) / 2 - above / 2), bottom
    low = bottom + 2.4 * _RADIUS + abs(x - u) / 8
    path = f"M{x:.0f},{y + _RADIUS:.0f} C{x:.0f},{low:.0f} {u:.0f},{low:.0f} {u:.0f},{v + _RADIUS:.0f}"
    my = (y + v + 2 * _RADIUS) / 8 + low * 3 / 4
    return _path(path), _lines(edge.lines, (x + u) / 2, my + 16), my + _LINE * len(edge.lines)


def _rim(state: Point, towards: Point) -> Point:
    """Where a line from a state's middle leaves its circle."""
    (x, y), (u, v) = state, towards
    length = math.hypot(u - x, v - y) or 1.0
    return x + (u - x) * _RADIUS / length, y + (v - y) * _RADIUS / length


def _path(path: str) -> str:
    return f'<path d="{path}" fill="none" stroke="black" marker-end="url(#arrow)"/>'


def _lines(lines: tuple[str, ...], x: float, y: float) -> list[str]:
    return [
        f'<text x="{x:.0f}" y="{y + _LINE * k:.0f}" {_HALO}>{escape(line, quote=False)}</text>'
        for k, line in enumerate(lines)
    ]
