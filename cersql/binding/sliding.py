"""Windows that slide, of HAMLET and COGRA: `WITHIN 10 MINUTES SLIDE 30 SECONDS`, `GROUP BY WINDOW 10 MINUTES SLIDE …`.

A window begins at every multiple of what it slides by, and holds the rows from there on, its end excluded. Behind
WITHIN the windows come first: the pattern runs in each by itself, so a match lies inside, and strategies, consumption
and skipping choose among the matches of one window. In GROUP BY the windows come last: matches are those of the stream,
and each is in the groups of all windows that hold it. Both are the same, and are run in the same way, where no match
depends on what lies outside the window; elsewhere the second is an error that says how to write the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cersql.binding.ordering import Clauses
from cersql.binding.row_keys import Key
from cersql.binding.selection import Selection
from cersql.errors import BindError
from cersql.language import syntax
from cersql.language.lexer import split
from cersql.language.windows import parse_window
from planner import cel
from planner.formula import Formula
from planner.groups import WINDOW_COLUMN, Sliding
from planner.query import Column, Order
from runtime.errors import Span

KEY = Key(WINDOW_COLUMN, "window", Column(WINDOW_COLUMN, "bigint"))
_CLOCKS = ("timestamp", "timestamp_ntz", "date", "tinyint", "smallint", "int", "bigint")


def is_window(query: syntax.Query, span: Span) -> bool:
    """Is it an item of GROUP BY that says a window, WINDOW and how long it is?"""
    toks = query.text.within(span)
    return len(toks) > 1 and toks[0].upper == "WINDOW" and (toks[1].kind == "number" or toks[1].upper == "INTERVAL")


def written(query: syntax.Query) -> syntax.Window | None:
    """The windows that slide, wherever the text says so."""
    found = [query.within] if query.within is not None and query.within.slide is not None else []
    found += _grouped(query)
    if len(found) > 1:
        hint = "The groups of WITHIN … SLIDE are its windows already: leave the other out."
        one, other = "WINDOW in GROUP BY", "a window that slides"
        raise BindError("CLAUSES_EXCLUDE", span=found[1].span, one=one, other=other, hint=hint)
    return found[0] if found else None


def _grouped(query: syntax.Query) -> Iterator[syntax.Window]:
    if query.group_by is None:
        return
    for part in split(query.text.within(query.group_by.span)):
        if part and is_window(query, part[0].span | part[-1].span):
            window = parse_window(query.text, part[1:], None, query.group_by.span.end)
            tumbling = replace(window, strict=False)  # of which one follows the other
            yield window if window.slide is not None else replace(window, slide=tumbling)


def bound(window: syntax.Window, clauses: Clauses, order: Order, type: str) -> Sliding:
    """The windows in units of the clock. Raises BindError."""
    assert window.slide is not None
    if window.unit == "EVENTS" or window.slide.unit == "EVENTS" or window.strict:
        found = "EVENTS" if not window.strict else "<"
        problem = "windows that slide are of time, and their end is not in them"
        hint = "Write for example WITHIN 10 MINUTES SLIDE 30 SECONDS."
        raise BindError("WINDOW_UNIT", span=window.span, found=found, problem=problem, hint=hint)
    if type and type not in _CLOCKS:
        construct = f"SLIDE over {type}"
        hint = "Order by a time, a date or a whole number."
        raise BindError("NOT_SUPPORTED_YET", span=window.slide.span, construct=construct, hint=hint)
    sizes = [clauses.window(replace(window, slide=None), order).size, _step(window.slide, clauses, order)]
    for size, part in zip(sizes, (window, window.slide), strict=True):
        if size < 1:
            problem = f"it is less than one unit of {order.column}"
            raise BindError("WINDOW_UNIT", span=part.amount.span, found=part.amount.value, problem=problem)
    return Sliding(int(sizes[0]), int(sizes[1]), order.column, type)


def _step(slide: syntax.Window, clauses: Clauses, order: Order) -> float:
    """How far one window begins after the other. What errors advise of a window, they advise of it."""
    try:
        return clauses.window(replace(slide, slide=None), order).size
    except BindError as error:
        error.hint = error.hint and error.hint.replace("WITHIN", "SLIDE")
        raise


def check(query: syntax.Query, window: syntax.Window, chosen: Selection, formula: Formula) -> None:
    """Raises for what would mean something else in one window than in the stream."""
    if chosen.consume == "ANY":
        hint = "The windows overlap, so that one would consume what the others need: write CONSUME BY PARTITION."
        at = query.clause("CONSUME BY") or window.span
        raise BindError("CLAUSES_EXCLUDE", span=at, one="CONSUME BY ANY", other="a window that slides", hint=hint)
    if query.within is window:
        return
    outside = (cel.Strategy, cel.Start, cel.NotBefore, cel.NotAfter)
    names = {
        "this strategy": chosen.strategy in ("NXT", "LAST", "MAX"),
        "CONSUME BY": chosen.consume != "NONE",
        "AFTER MATCH SKIP": chosen.skip is not None,
        "a strategy, START, or '!' at an end of the pattern": formula.contains(outside),
    }
    for name, stands in names.items():
        if stands:
            hint = "Write WITHIN … SLIDE …: there the windows come first, and each is a stream of its own."
            raise BindError("CLAUSES_EXCLUDE", span=window.span, one="WINDOW in GROUP BY", other=name, hint=hint)
