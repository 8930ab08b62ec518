"""Warnings: what a query says that was hardly meant so. None of them changes what it means."""

from __future__ import annotations

from collections.abc import Iterator

from cersql import skip_points, syntax
from cersql.formulas import always, is_instant, own_types, shown_marks, walk
from cersql.scope import PatternNames, fold_case
from planner import cel
from planner.query import SOURCE_COLUMN, Query


def warnings(query: syntax.Query, bound: Query, names: PatternNames, used: frozenset[str] | None) -> Iterator[str]:
    """All that is to be said of a bound query; `used`: the variables that some clause names, None for all."""
    yield from _filter_of_the_last_part(query)
    yield from _endless_loop(bound)
    yield from _window_over_one_event(bound)
    for node in walk(bound.formula):
        yield from _never(node)
    yield from _alias_as_type(query, bound)
    yield from _unused(names, used)
    yield from skip_points.warnings(bound)


def _filter_of_the_last_part(query: syntax.Query) -> Iterator[str]:
    """`A ; B b FILTER b.x > 1` filters b's part alone, which is easily read otherwise."""
    part = query.pattern
    if not isinstance(part, syntax.Chain) or not isinstance(part.items[-1], syntax.FilterPart):
        return
    last = part.items[-1]
    before = query.text[part.items[-2].span.end : last.span.start]
    if last.own_columns or "(" in before or "," in before:  # parentheses, or SEQ's operand: no doubt what it binds
        return
    written = " ".join(query.text[last.inner.span.start : last.inner.span.end].split())
    yield f"FILTER binds {written} alone; for a condition on the whole pattern write WHERE, or (…) FILTER."


def _endless_loop(bound: Query) -> Iterator[str]:
    """Every subset of the events of a whole stream is a match of `A+`: 2ⁿ of them."""
    chosen = bound.strategy != "ALL" or bound.skip is not None or bound.consume != "NONE"
    if chosen or bound.window is not None or bound.partition_by or bound.limit is not None:
        return
    if _loops_freely(bound.formula):
        yield (
            "A loop without WITHIN and without PARTITION BY: each event doubles the number of its matches. "
            "Write WITHIN, a contiguous loop (:+), or a strategy, for example SEMANTICS NXT."
        )


def _loops_freely(formula: cel.Formula) -> bool:
    """Is there a loop that may skip events, outside of windows and strategies?"""
    match formula:
        case cel.Within() | cel.Strategy():
            return False
        case cel.Iteration() | cel.Repeat(_, _, None, False):
            return True
    return any(map(_loops_freely, cel.positive(formula)))


def _window_over_one_event(bound: Query) -> Iterator[str]:
    absent = any(isinstance(node, cel.NotBefore | cel.NotAfter) for node in walk(bound.formula))
    if bound.window is not None and not absent and is_instant(bound.formula):
        yield "A WITHIN over a single event always holds."


def _never(node: cel.Formula) -> Iterator[str]:
    match node:
        case cel.And(left, right):
            if any(always(one, shown_marks) - cel.variables(other) for one, other in ((left, right), (right, left))):
                yield (
                    "An AND whose sides mark different variables never matches: both must be the same events in the "
                    "same variables. For both in any order write ALL; for one event of two types name both alike."
                )
        case cel.Unless(inner, cel.Event(type)) if type is None or type in always(inner, own_types):
            yield f"UNLESS {type or 'ANY'} is never true here: the match itself has an event that it excludes."


def _alias_as_type(query: syntax.Query, bound: Query) -> Iterator[str]:
    """`FROM (…) AS e PATTERN S s ; E x`: E is the source, so every row of it, where the TYPE column says S and E."""
    every = {i: "TRUE" if len(bound.sources) == 1 else f"{SOURCE_COLUMN} = {i}" for i in range(len(bound.sources))}
    of_column = any(sql not in every.values() for _, sql in bound.types) and not query.definitions
    for i, source in enumerate(bound.sources):
        written = i < len(query.sources) and query.sources[i].type_column is not None
        if source.type_column is None or not (written or of_column):
            continue
        for type, sql in bound.types:
            if sql != every[i] or fold_case(type) != fold_case(source.alias):
                continue
            instead = f"give the source another alias, for example {source.alias}_rows"
            if source.relation is None:
                instead = "make the DataFrame a view of another name, and write FROM"
            yield (
                f"{type} is the name of the source here, so it matches every row of it, whatever {source.type_column} "
                f"says. If the type is meant, {instead}."
            )


def _unused(names: PatternNames, used: frozenset[str] | None) -> Iterator[str]:
    """The name of a group is there to be used. That of a single type may only say which is which: `A a ; A b`."""
    if used is None:
        return
    for name in (names.aliases[folded].value for folded in names.aliases if folded in names.of_groups):
        if name not in used:
            yield f"{name} names a part of the pattern, and nothing speaks of {name}."
