"""How far a start comes: the prefixes of a pattern that is a sequence, each as a query of its own.

    PATTERN A a ; !X x ; B+ b ; C? c ; D d WHERE a.v > 1 AND b.v > a.v AND COUNT(*) > 3 WITHIN 1 HOUR

    A a                         WHERE a.v > 1
    A a ; !X x ; B+ b           WHERE a.v > 1 AND b.v > a.v
    the whole pattern           WHERE a.v > 1 AND b.v > a.v AND COUNT(*) > 3

A prefix ends with a part that must happen; what may happen zero times belongs to the step after it. A condition of
WHERE (a side of its outermost ANDs) joins at the first prefix in which all parts that bind its variables stand, `[k]`
at the first one, and what names no variable at the whole. A `!` joins with the part behind it, or where the last
condition on it does; one at the edge of the pattern is a step of its own, the last. Sources, keys, order and window are
the query's.

So a match of one prefix, less its last part, is a match of the one before it that has the same first event: each
prefix has at most as many starts as the one before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cersql.binding.booleans import structure
from cersql.binding.expressions import Ref, Together, read, walk
from cersql.binding.scope import Scope, collect
from cersql.binding.together import gathered
from cersql.language import syntax
from cersql.language.source import SourceText
from cersql.language.syntax import Alias, Chain, Combination, FilterPart, Name, Negation, PartBy, Pattern, Repeat, Text
from planner.query import Query
from runtime.errors import Span

MOST_STEPS = 24
_SKIP, _ONE = "SKIP TO NEXT ROW", "1"
_BETWEEN = ")],;-> "  # what may stand between the end of a part and the next one, and says nothing; ':' does


@dataclass(frozen=True)
class Step:
    """One prefix. `query` gives one row for each start of a match of it; `added` and `conditions` are what it has more
    than the prefix before, as the user wrote that."""

    query: syntax.Query
    added: str
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class _Condition:
    """A side of WHERE's ANDs: the variables that it names; `everywhere`: it says something of every event, `[k]`."""

    text: Text
    marks: frozenset[str]
    everywhere: bool


def prefixes(query: syntax.Query, bound: Query, case_sensitive: bool) -> tuple[Step, ...] | str:
    """The steps, two or more, or why the pattern has none."""
    if bound.groups is not None and bound.groups.sliding is not None:
        return "its windows slide, so that a start is in several of them"
    if query.rows is not None and query.where and len(bound.sources) > 1:
        return "it has a WHERE for the rows of several sources and one for the pattern"
    found = _Sequence(query, bound, case_sensitive)
    if not isinstance(found.chain, Chain):
        return "the pattern is not a sequence of parts, A ; B"
    return found.steps()


class _Sequence:
    def __init__(self, query: syntax.Query, bound: Query, case_sensitive: bool) -> None:
        self.query, self.bound = query, bound
        self.names = collect(query.pattern, case_sensitive)
        self.scope = Scope(self.names, case_sensitive)
        self.alias, self.chain, filters = _unwrapped(query.pattern)
        of_events = query.rows is not None and all(source.where is None for source in bound.sources)
        self.rows = None if of_events else query.rows
        written = (*filters, *query.where, *([query.rows] if of_events and query.rows is not None else []))
        self.conditions = [condition for text in written for condition in self._split(text)]

    def steps(self) -> tuple[Step, ...] | str:
        edges = [id(item) for item in _edges(self.chain)]
        parts = list(_prefixes(_without(self.chain, edges)))
        if edges:
            parts.append(self.chain)
        if len(parts) < 2:
            return "only one part of the pattern must happen"
        if len(parts) > MOST_STEPS:
            return f"it has {len(parts)} parts, and at most {MOST_STEPS} are shown"
        last, whole = len(parts) - 1, self._occurrences(self.chain)
        present = [self._occurrences(part) for part in parts]

        def complete(marks: frozenset[str]) -> int:
            """The first prefix that has all parts which bind these variables."""
            return next((k for k in range(last) if all(0 < whole[m] == present[k][m] for m in marks)), last)

        joins = [0 if c.everywhere else complete(c.marks) if c.marks else last for c in self.conditions]
        vetoes = [item for item in _negations(self.chain) if id(item) not in edges]
        late: dict[int, int] = {}  # a veto, and where the last condition on it joins
        for veto in vetoes:
            own = self._occurrences(veto).keys()
            late[id(veto)] = max((j for c, j in zip(self.conditions, joins, strict=True) if c.marks & own), default=0)
        if any(self._asked_later(part, joins, present) for part in _parts(self.chain)):
            return "a condition compares what must not happen inside a part with what comes after that part"
        found: list[Step] = []
        end = 0
        for k, part in enumerate(parts):
            kept = part if k == last else _without(part, [id(veto) for veto in vetoes if late[id(veto)] > k])
            conditions = [c.text for c, join in zip(self.conditions, joins, strict=True) if join <= k]
            new = tuple(c.text.value for c, join in zip(self.conditions, joins, strict=True) if join == k)
            joining = [veto for veto in vetoes if late[id(veto)] == k and veto.span.end <= end]
            added = ", ".join(
                [self._added(part, end, [veto for veto in vetoes if late[id(veto)] > k]), *map(self._shown, joining)]
            )
            if edges and k == last:
                added = ", ".join(map(self._shown, _edges(self.chain)))
            found.append(Step(self._asked(kept, conditions), added, new))
            end = _place(part).end
        return tuple(found)

    def _asked_later(self, part: Pattern, joins: Sequence[int], present: Sequence[Counter[str]]) -> bool:
        """Does a condition on what must not happen inside a part join only after the part? Without it, the part would
        refuse too much."""
        inner = Counter[str]()
        for inside in _vetoed(part):
            inner += self._occurrences(inside)
        own = self._occurrences(part)
        stands = next((k for k, counts in enumerate(present) if all(counts[m] >= own[m] for m in own)), len(present))
        return any(c.marks & inner.keys() and join > stands for c, join in zip(self.conditions, joins, strict=True))

    def _asked(self, pattern: Pattern, conditions: list[Text]) -> syntax.Query:
        """One row for each start: AFTER MATCH SKIP TO NEXT ROW takes one match of each. What chooses among matches, or
        says what is returned, is left out."""
        query = self.query
        begin = len(query.text) + 1
        skip = Text(_SKIP, Span(begin, begin + len(_SKIP)))
        one = Text(_ONE, Span(skip.span.end + 1, skip.span.end + 1 + len(_ONE)))
        if self.alias is not None:
            pattern = Alias(pattern, self.alias, span=query.pattern.span)
        at = query.pattern.span
        sources = query.sources or tuple(
            syntax.Source((Name(source.alias, at, quoted=True),), None, None, None, at)
            for source in self.bound.sources
            if source.relation is not None
        )
        return replace(
            query, text=SourceText(f"{query.text}\n{_SKIP} {_ONE}"), pattern=pattern, where=tuple(conditions),
            rows=self.rows, sources=sources, returns=(syntax.ReturnItem(one, None),), skip=skip,
            semantics=None, consume=None, with_timeouts=None, group_by=None, having=None, limit=None, most_at_end=None,
        )  # fmt: skip

    def _added(self, part: Pattern, end: int, late: Sequence[Negation]) -> str:
        """`B+ b`: the text from the end of the prefix before to the end of this one, without what joins `late`."""
        place = _place(part)
        text, at, stretch = self.query.text, max(end, place.start), ""
        for veto in late:
            if at <= veto.span.start < place.end:
                stretch, at = stretch + text[at : veto.span.start], veto.span.end
        stretch = " ".join((stretch + text[at : place.end]).split()).lstrip(_BETWEEN)
        opens = stretch.startswith("(") and stretch.count("(") > stretch.count(")")
        return stretch[1:] if opens else stretch

    def _shown(self, part: Pattern) -> str:
        return " ".join(self.query.text[part.span.start : part.span.end].split())

    # ------------------------------------------------------------ names

    def _split(self, condition: Text) -> Iterator[_Condition]:
        text, scope = self.query.text, self.scope

        def inside(ref: Ref) -> tuple[object, ...]:
            assert ref.condition is not None
            return read(text, ref.condition.span, lambda name: None, scope.fold)

        nodes = gathered(read(text, condition.span, scope.variable, scope.fold), inside, lambda ref, name: False)  # type: ignore[arg-type]
        for part in structure(nodes).conjuncts():
            marks = frozenset(node.variable for node in walk(part.nodes) if isinstance(node, Ref))
            first = part.nodes[0]
            everywhere = len(part.nodes) == 1 and isinstance(first, Together) and first.of is None
            yield _Condition(Text(text[part.span.start : part.span.end], part.span), marks, everywhere)

    def _occurrences(self, pattern: Pattern) -> Counter[str]:
        """How often each variable is bound in a pattern: by its alias, and as all events of a type."""
        found = Counter[str]()
        for part in syntax.walk(pattern):
            if isinstance(part, Alias):
                found[self.scope.aliases.get(part.name.value) or ""] += 1
            elif isinstance(part, syntax.TypeRef):
                name = part.name.value if part.name else "ANY"
                found.update({name, self.scope.mark_of(name)})
        return found


# ---------------------------------------------------------------- patterns


def _unwrapped(pattern: Pattern) -> tuple[Name | None, Pattern, list[Text]]:
    """The sequence without the name and the filters around it: a filter of the whole is a condition of WHERE."""
    alias: Name | None = None
    filters: list[Text] = []
    while True:
        if isinstance(pattern, FilterPart) and not pattern.own_columns:
            filters.append(pattern.condition)
        elif isinstance(pattern, Alias) and alias is None:
            alias = pattern.name
        else:
            return alias, _flat(pattern), filters
        pattern = pattern.inner


def _flat(pattern: Pattern) -> Pattern:
    """`A ; (B ; !C) ; D` as A ; B ; !C ; D: there, parentheses only group."""
    if not isinstance(pattern, Chain) or pattern.contiguous:
        return pattern
    items: list[Pattern] = []
    for item in map(_flat, pattern.items):
        items += item.items if isinstance(item, Chain) and not item.contiguous else [item]
    return replace(pattern, items=tuple(items))


def _place(pattern: Pattern) -> Span:
    """From its first part to its last one, without what stands around a list of them."""
    if not isinstance(pattern, Chain):
        return pattern.span
    return _place(pattern.items[0]) | _place(pattern.items[-1])


def _prefixes(pattern: Pattern) -> Iterator[Pattern]:
    """Each prefix that ends with a part that must happen; the last one is the pattern itself."""
    if not isinstance(pattern, Chain):
        yield pattern
        return
    items = pattern.items
    needed = [i for i, item in enumerate(items) if not isinstance(item, Negation) and not _may_be_empty(item)]
    for i in needed:
        for part in _prefixes(items[i]):
            ends = i == needed[-1] and part == items[i]
            if ends:
                yield pattern
            elif i == 0:
                yield part
            else:
                yield replace(pattern, items=(*items[:i], part), span=items[0].span | part.span)


def _may_be_empty(pattern: Pattern) -> bool:
    match pattern:
        case Repeat(inner, low):
            return low == 0 or _may_be_empty(inner)
        case Alias(inner) | FilterPart(inner) | PartBy(inner):
            return _may_be_empty(inner)
        case Chain(items):
            return all(map(_may_be_empty, items))
        case Combination("OR", items):
            return any(map(_may_be_empty, items))
    return False


def _parts(pattern: Pattern) -> Iterator[Pattern]:
    """The parts of a sequence, those of inner ones too, without what must not happen between them."""
    if not isinstance(pattern, Chain):
        yield pattern
        return
    for item in pattern.items:
        if not isinstance(item, Negation):
            yield from _parts(item)


def _negations(pattern: Pattern) -> Iterator[Negation]:
    """What must not happen between the parts."""
    for item in pattern.items if isinstance(pattern, Chain) else ():
        if isinstance(item, Negation):
            yield item
        else:
            yield from _negations(item)


def _edges(pattern: Pattern) -> tuple[Negation, ...]:
    """What must not happen before and after the whole pattern."""
    items = pattern.items if isinstance(pattern, Chain) else ()
    there = [i for i, item in enumerate(items) if not isinstance(item, Negation)]
    return tuple(item for i, item in enumerate(items) if isinstance(item, Negation) and not there[0] < i < there[-1])


def _vetoed(pattern: Pattern) -> Iterator[Pattern]:
    """What must not happen inside a part."""
    inside = syntax.happening(pattern)
    for child in syntax.children(pattern):
        if isinstance(child, Negation) or not any(child is other for other in inside):
            yield child
        else:
            yield from _vetoed(child)


def _without(pattern: Pattern, left_out: Sequence[int]) -> Pattern:
    """A sequence without some of what must not happen, by identity."""
    if not isinstance(pattern, Chain) or not left_out:
        return pattern
    items = tuple(_without(item, left_out) for item in pattern.items if id(item) not in left_out)
    return items[0] if len(items) == 1 else replace(pattern, items=items, span=items[0].span | items[-1].span)
