"""Warnings: what a query says that was hardly meant so. None of them changes what it means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from cersql.binding import formulas, skip_points
from cersql.binding.expressions import Call, Node, Ref, read
from cersql.binding.expressions import walk as nodes_of
from cersql.binding.formulas import always, own_types, shown_marks
from cersql.binding.scope import PatternNames, Scope, display, fold_case
from cersql.binding.sources import DEFAULT_TYPE_COLUMNS
from cersql.language import syntax
from planner import cel
from planner.apart import types_exclude
from planner.formula import Formula
from planner.query import SOURCE_COLUMN, Query
from planner.sql import quote

MANY_COPIES = 5  # A{5} has n⁵ matches among n events: a loop that long is not written to list them


def warnings(query: syntax.Query, bound: Query, scope: Scope, used: frozenset[str] | None) -> Iterator[str]:
    """All that is to be said of a bound query; `used`: the variables that some clause names, None for all."""
    yield from _filter_of_the_last_part(query)
    yield from _endless_loop(query, bound)
    yield from _window_over_one_event(bound)
    yield from _against_null(query)
    for node in bound.formula.walk():
        if not (query.ceql and _is_no_such_event(node)):
            yield from _never(node)
    yield from _between_nothing(bound)
    yield from _neighbours(query, bound, scope)
    yield from _type_column_beside_define(query, bound)
    yield from _alias_as_type(query, bound)
    yield from _unused(scope.names, used)
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


def _against_null(query: syntax.Query) -> Iterator[str]:
    """`a.v <> NULL` is NULL, whatever a.v is."""
    filters = [part.condition for part in syntax.walk(query.pattern) if isinstance(part, syntax.FilterPart)]
    defined = [definition.condition for definition in query.definitions]
    for text in [*defined, *query.where, *filters, *([query.having] if query.having is not None else [])]:
        toks = query.text.within(text.span)
        for mark, null in pairwise(toks):
            if mark.text in ("=", "==", "<>", "!=") and null.upper == "NULL":
                instead = "IS NULL" if mark.text in ("=", "==") else "IS NOT NULL"
                yield f"A comparison with NULL, {mark.text} NULL, is never true: write {instead}."


# ---------------------------------------------------------------- one alarm, not a thousand


def _endless_loop(query: syntax.Query, bound: Query) -> Iterator[str]:
    """Every subset of the events of a loop with gaps is a match: 2ⁿ of them. `failed{5,} f WITHIN 60 SECONDS` is meant
    as one alarm."""
    chosen = bound.strategy != "ALL" or bound.skip is not None or bound.consume != "NONE"
    chosen = chosen or bound.limit is not None or bound.most_at_end is not None or bound.groups is not None
    if chosen or not _listed_loop(bound.formula, None):
        return
    loop = _written_loop(query.pattern)
    shown, contiguous, number = "", ":+", "2ⁿ"
    if loop is not None:
        shown, contiguous = f" ({_written(query, loop)})", _contiguous(loop)
        number = "2ⁿ" if loop.high is None else f"n^{loop.high}"
    yield (
        f"A loop with gaps{shown} has a match for every choice of its events, up to {number} of them among n events, "
        "and all are listed. For one match after the other write AFTER MATCH SKIP PAST LAST ROW; for fewer at each end "
        f"a strategy, such as SEMANTICS {_strategy_that_fits(query.pattern)}; for events without gaps {contiguous}."
    )


def _listed_loop(formula: Formula, kept: frozenset[str] | None) -> bool:
    """Is there a loop that may skip events, whose choices tell matches apart? `kept`: the variables that PROJECT keeps
    (None: all)."""
    match formula:
        case cel.Strategy():
            return False
        case cel.Project(_, keep):
            kept = keep if kept is None else kept & keep
        case cel.Iteration(inner) if _shows(inner, kept):
            return True
        case cel.Repeat(inner, _, high, False) if (high is None or high >= MANY_COPIES) and _shows(inner, kept):
            return True
    return any(_listed_loop(part, kept) for part in formula.positive())


def _shows(formula: Formula, kept: frozenset[str] | None) -> bool:
    return kept is None or bool(formula.binds() & kept)


def _written_loop(part: syntax.Pattern) -> syntax.Repeat | None:
    """The first loop with gaps of a pattern that is no strategy's."""
    if isinstance(part, syntax.Function) and part.function not in {*cel.AROUND, "NEXT"}:
        return None
    if isinstance(part, syntax.Repeat) and not part.contiguous and (part.high is None or part.high >= MANY_COPIES):
        return part
    return next(filter(None, map(_written_loop, syntax.happening(part))), None)


def _contiguous(loop: syntax.Repeat) -> str:
    """The quantifier of a loop as that of a contiguous one."""
    match loop.low, loop.high:
        case 1, None:
            return ":+"
        case 0, None:
            return ":*"
        case low, None:
            return f":{{{low},}}"
        case low, high:
            return f":{{{low}}}" if low == high else f":{{{low},{high}}}"


def _strategy_that_fits(pattern: syntax.Pattern) -> str:
    """SKIP TILL NEXT MATCH knows no operators on whole matches."""
    whole = (syntax.Function, syntax.Project, syntax.Windowed, syntax.Aggregation)
    if any(
        isinstance(p, whole) or (isinstance(p, syntax.Combination) and p.operator != "OR") for p in syntax.walk(pattern)
    ):
        return "NXT"
    return "SKIP TILL NEXT MATCH"


def _written(query: syntax.Query, part: syntax.Pattern) -> str:
    """A part of the pattern as it stands in the text."""
    return " ".join(query.text[part.span.start : part.span.end].split())


# ---------------------------------------------------------------- what holds always, or never


def _window_over_one_event(bound: Query) -> Iterator[str]:
    absent = any(isinstance(node, cel.NotBefore | cel.NotAfter) for node in bound.formula.walk())
    if bound.window is not None and not absent and formulas.of_one_event(bound.formula):
        yield "A WITHIN over a single event always holds."


def _is_no_such_event(node: Formula) -> bool:
    """CEQL's NOT (R), one event that is no R: ANY UNLESS R."""
    return isinstance(node, cel.Unless) and isinstance(node.inner, cel.Event) and node.inner.type is None


def _never(node: Formula) -> Iterator[str]:
    match node:
        case cel.And(left, right):
            if any(always(one, shown_marks) - other.binds() for one, other in ((left, right), (right, left))):
                yield (
                    "An AND whose sides mark different variables never matches: both must be the same events in the "
                    "same variables. For both in any order write ALL; for one event of two types name both alike."
                )
        case cel.Unless(inner, cel.Event(type)) if type is None or type in always(inner, own_types):
            yield f"UNLESS {type or 'ANY'} is never true here: the match itself has an event that it excludes."
        case cel.Unless(inner, veto) if formulas.of_one_event(inner):
            single = formulas.of_one_event(veto) and len(formulas.types(veto)) == 1
            what = (next(iter(formulas.types(veto))) or "ANY") if single else "(…)"
            yield (
                "UNLESS looks from the first to the last event of a match, which is one event here: it excludes "
                f"nothing before or after it. For that write SEQ(!{what}, …) or SEQ(…, !{what}) with WITHIN."
            )


def _between_nothing(bound: Query) -> Iterator[str]:
    """`(A : B) UNLESS C`: no row lies between, and none is of two types of a TYPE column."""
    demands = dict(bound.demands)
    for node in bound.formula.walk():
        match node:
            case cel.Unless(inner, veto) if not formulas.of_one_event(inner) and formulas.gapless(inner):
                own = formulas.types(inner)
                no_row = (all(o and types_exclude(demands, type, o) for o in own) for type in always(veto, own_types))
                if any(no_row):
                    yield "UNLESS looks between the events of a match. Here nothing lies there, so it excludes nothing."


# ---------------------------------------------------------------- names that are read otherwise


def _neighbours(query: syntax.Query, bound: Query, scope: Scope) -> Iterator[str]:
    """`ANY s : ANY:+ u WHERE u.p > PREV(u.p)`: the first u has no PREV in u, so nobody compares it with s."""
    conditions = [read(query.text, text.span, scope.variable, scope.fold) for text in _conditions(query)]
    known = bound.formula.binds()
    for index, last in (("previous", False), ("next", True)):
        edges, pick = formulas.edges(bound.formula, last), "LAST" if last else "FIRST"
        for variable, ref in _indexed(conditions, index).items():
            if variable not in known or all(variable in marks for marks in edges):
                continue
            if _speaks_of_edge(conditions, variable, pick):
                continue
            name, word = display(variable), "after" if last else "before"
            sign, step = ("NEXT", "i+1") if last else ("PREV", "i-1")
            column = ref.column or "x"
            yield (
                f"{sign}({name}.{column}) and {name}[{step}].{column} are of the {name} {word}: the "
                f"{'last' if last else 'first'} {name} has none, and is compared with no other event. To compare it "
                f"with what comes {word} it, too, name all that is meant, {_around(query, scope, variable)}, and write "
                f"w[i].{column} and w[{step}].{column}."
            )


def _conditions(query: syntax.Query) -> Iterator[syntax.Text]:
    for part in syntax.walk(query.pattern):
        if isinstance(part, syntax.FilterPart):
            yield part.condition
    yield from query.where


def _indexed(conditions: Sequence[Sequence[Node]], index: str) -> dict[str, Ref]:
    """The variables of whose previous or next event a condition speaks, each with one place where it does."""
    found: dict[str, Ref] = {}
    function = "PREV" if index == "previous" else "NEXT"
    for nodes in conditions:
        for node in nodes_of(nodes):
            if isinstance(node, Ref) and node.index == index:
                found.setdefault(node.variable, node)
            elif isinstance(node, Call) and node.function == function:
                for ref in node.arguments:
                    if isinstance(ref, Ref):
                        found.setdefault(ref.variable, replace(ref, column=ref.column or node.column))
    return found


def _speaks_of_edge(conditions: Sequence[Sequence[Node]], variable: str, pick: str) -> bool:
    """Does a condition speak of the variable's first (last) event by itself? Then the user knows."""
    for nodes in conditions:
        for node in nodes_of(nodes):
            if isinstance(node, Ref) and node.variable == variable and node.index == 1 and pick == "FIRST":
                return True
            arguments = node.arguments if isinstance(node, Call) and node.function == pick else ()
            if any(isinstance(ref, Ref) and ref.variable == variable for ref in arguments):
                return True
    return False


def _around(query: syntax.Query, scope: Scope, variable: str) -> str:
    """`(ANY s : ANY:+ u) AS w`: the part to name, with the variable and what it is compared with."""

    def smallest(part: syntax.Pattern) -> syntax.Pattern | None:
        """The chain that holds the variable as one of its items."""
        for child in syntax.happening(part):
            found = smallest(child)
            if found is not None:
                return found
        own = isinstance(part, syntax.Chain) and any(_binds(item, scope, variable) for item in part.items)
        return part if own else None

    part = smallest(query.pattern)
    return "(…) AS w" if part is None else f"({_written(query, part)}) AS w"


def _binds(part: syntax.Pattern, scope: Scope, variable: str) -> bool:
    """Is it the variable's own part, `B+ b`, or a loop of a group that has the name?"""
    while isinstance(part, syntax.Repeat | syntax.FilterPart):
        part = part.inner
    if isinstance(part, syntax.Alias):
        return scope.variable(part.name.value) == variable
    return isinstance(part, syntax.TypeRef) and (part.name.value if part.name else "ANY") == variable


def _type_column_beside_define(query: syntax.Query, bound: Query) -> Iterator[str]:
    """With DEFINE a column called `type` is one of many: `DEFINE A AS v > 1 PATTERN A ; SELL` has any row for SELL."""
    if not query.definitions or len(bound.sources) != 1 or bound.sources[0].type_column is not None:
        return
    source = bound.sources[0]
    known = {fold_case(name) for name in (source.alias, *(definition.name.value for definition in query.definitions))}
    for column in source.columns:
        if column.name.casefold() not in DEFAULT_TYPE_COLUMNS:
            continue
        conditions = [sql for _, sql in bound.types]
        if all(fold_case(type) in known for type, _ in bound.types) and any(
            quote(column.name) in sql for sql in conditions
        ):
            continue  # a definition says what it wants of the column
        yield (
            f"Beside DEFINE the column {column.name} is not read: types are what is defined, and another name matches "
            f"every row. To have the values of {column.name} as types, too, write FROM table TYPE {column.name}."
        )
        return


def _alias_as_type(query: syntax.Query, bound: Query) -> Iterator[str]:
    """`FROM (…) AS e PATTERN S s ; E x`: E is the source, so every row of it, where the TYPE column says S and E."""
    every = {i: "TRUE" if len(bound.sources) == 1 else f"{SOURCE_COLUMN} = {i}" for i in range(len(bound.sources))}
    of_column = any(sql not in every.values() for _, sql in bound.types) and not query.definitions
    for i, source in enumerate(bound.sources):
        written = i < len(query.sources) and query.sources[i].type_column is not None
        if source.type_column is None or not (written or of_column):
            continue
        for type, sql in bound.types:
            if fold_case(type) != fold_case(source.alias):
                continue
            if query.ceql:
                yield (
                    f"{type} is the name of a source and of a type. Here it is the type: the rows whose "
                    f"{source.type_column} is {type}."
                )
                continue
            if sql != every[i]:
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
