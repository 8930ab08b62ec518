"""Equalities that hold between all events of a match become keys: Spark distributes the stream by them.

`[k]`, PART BY around the whole pattern, and `a.k = b.k AND a.k = c.k` say that every event of a match has one value.
Then the matches of each value are those of its own rows, as under PARTITION BY, and nothing is left to compare.
([CHAIN] Section 3 has PART-BY as an operator of its own; here it is a way to run it.)

Not done where the pattern can see events of other values: `:`, windows of events, START, nested strategies, CONSUME BY,
AFTER MATCH SKIP; beside WITH TIMEOUTS where runs take events before they are compared (planner.rewrite.starts); and
where equality does not reach every event, since a variable may be empty, or is compared with no other, or a negated
part does not mention it. Rows whose value is NULL agree with nothing, and go.
Where the attribute is not the same for all, see planner.rewrite.links.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from planner import cel
from planner.across import Across, Candidate
from planner.formula import Formula
from planner.query import Key, Query
from planner.rewrite.links import Equality, agreed, applied, links, of_one_event, with_vetoes
from planner.rewrite.starts import decided_at_once
from planner.sql import quote
from planner.terms import Comparison, Predicate, Side

AROUND = (cel.Compare, cel.Agree, Across, cel.Filter, cel.FilterAny, cel.As)  # filters around the whole pattern


@dataclass(frozen=True)
class Keyed:
    """The query without the comparisons that became `keys`, and what EXPLAIN says about it."""

    query: Query
    reasons: tuple[str, ...] = ()


def keyed(query: Query, obstacle: str | None) -> Keyed:
    """Move equalities that reach every event into the keys. `obstacle`: why events of other keys could be seen."""
    around = tuple(_around(query.formula))
    agreements = [node for node in reversed(around) if isinstance(node, cel.Agree)]
    equalities = [equality for node in around for equality in _equalities(node)]
    if not agreements and not equalities:
        return Keyed(query)
    if query.timeouts:  # A start without a match is a row, too; only [k] asks anything of an event alone.
        agreements = [node for node in agreements if all(variable is None for variable, _ in node.terms)]
        made = _of_starts(query, equalities) if obstacle is None and not agreements else None
        if made is not None:
            return made
        equalities = []
        if not agreements:
            obstacle = "WITH TIMEOUTS tells how far starts come, and runs take events before they are compared"
    if obstacle is not None:
        return Keyed(query, (f"equality of all events is no key here, since {obstacle}",))
    keys: list[Key] = []
    gone: list[Equality | Formula] = []
    for node in agreements:
        sql = node.terms[0][1]
        if _agrees(node, query.formula, sql) and _reaches(query.formula, (sql, node.type.lower())):
            keys.append(Key(sql, node.type))
            gone.append(node)
    for key, used in _classes(equalities, query):
        keys.append(key)
        gone += used
    if not keys:
        return _linked(query, agreements, equalities)
    shown = ", ".join(dict.fromkeys(key.sql for key in keys))
    formula = _without_implied(_without(query.formula, gone), {(key.sql, key.type.lower()) for key in keys})
    changed = replace(query, formula=formula, keys=tuple(dict.fromkeys(keys)))
    return Keyed(changed, (f"equal in every match, so a key as PARTITION BY has them: {shown}",))


def _of_starts(query: Query, equalities: list[Equality]) -> Keyed | None:
    """With keys by which starts are told apart that time out (planner.rewrite.starts), if there are some."""
    core = query.formula
    while isinstance(core, AROUND):
        core = core.inner
    if any(True for _ in _vetoes(query.formula)) or query.strategy == "NEXT_MATCH":
        return None
    keys, gone, formula = list[Key](), list[Equality | Formula](), query.formula
    for key, used in _classes(equalities, query):
        later = decided_at_once(core, {equality.variables for equality in used})
        if later is None:
            continue
        keys.append(replace(key, null=True))
        gone += used
        for variable in sorted(later):
            formula = cel.Filter(formula, variable, Predicate(f"{key.sql} IS NOT NULL"))
    if not keys:
        return None
    shown = ", ".join(dict.fromkeys(key.sql for key in keys))
    made = _without_implied(_without(formula, gone), {(key.sql, key.type.lower()) for key in keys})
    told = f"equal in every match, as each event comes, so a key as PARTITION BY has them: {shown}"
    return Keyed(replace(query, formula=made, keys=tuple(dict.fromkeys(keys))), (told,))


def _linked(query: Query, agreements: list[cel.Agree], equalities: list[Equality]) -> Keyed:
    """Equalities of different attributes as a key, for which rows are copied."""
    formula = query.formula
    parts = [agreed(node) for node in agreements if _covers({variable for variable, _ in node.terms}, formula)]
    for candidate in links(equalities):
        linked = with_vetoes(candidate, equalities, formula.always_binds())
        edges = {e.variables for e in linked.used if isinstance(e, Equality) and isinstance(e.node, cel.Compare)}
        if _connects(frozenset(linked.attributes), edges, formula):
            parts.append(linked)
    for candidate in of_one_event(formula, equalities):
        parts.append(with_vetoes(candidate, equalities, formula.always_binds()))
    found = next((linked for linked in parts if linked and _reached(linked.vetoes, formula)), None)
    if found is None:
        return Keyed(query, ("equalities do not reach every event, so they are no key",))
    if query.strategy != "ALL":
        no = f"equality by different attributes is no key under {query.strategy}: matches of two keys can compete"
        return Keyed(query, (no,))
    made = applied(query, found, lambda core: _without(formula, found.used, core))
    link = made.links[-1]
    shown = ", ".join(sql for sql, _ in link.by)
    return Keyed(
        replace(made, keys=(*query.keys, Key(quote(link.column), ""))),
        (f"equal in every match, so a key; rows are copied for each of theirs: {shown}",),
    )


def _reached(vetoes: dict[int, dict[str, str]], formula: Formula) -> bool:
    """Is every event of what must not happen linked? What in turn prevents that would have to be, too."""
    for veto in _vetoes(formula):
        if not isinstance(veto, Candidate) or any(_vetoes(veto.inner)):
            return False
        if not _covers(vetoes.get(veto.number, ()), veto.inner):
            return False
    return True


def _agrees(node: cel.Agree, formula: Formula, sql: str) -> bool:
    """Does it say of every event of the formula that it agrees on one attribute?"""
    return {own for _, own in node.terms} == {sql} and _covers({variable for variable, _ in node.terms}, formula)


def _reaches(formula: Formula, attribute: tuple[str, str]) -> bool:
    """Is every event of what must not happen asked to agree with the events around it, which agree?"""
    links: dict[int, set[str]] = {}
    for node in _around(formula):
        for equality in _equalities(node) if isinstance(node, Across) else ():
            if equality.attribute == attribute and equality.variables & formula.always_binds():
                assert isinstance(node, Across)
                links.setdefault(node.number, set()).update(equality.variables - formula.binds())
    for veto in _vetoes(formula):
        if not isinstance(veto, Candidate) or veto.number not in links:
            return False
        linked, inner = links[veto.number], veto.inner
        alike = any(isinstance(node, cel.Agree) and _agrees(node, inner, attribute[0]) for node in _around(inner))
        if not (linked & inner.always_binds() if alike else _covers(linked, inner)) or not _reaches(inner, attribute):
            return False
    return True


def _vetoes(formula: Formula) -> Iterator[Formula]:
    """The negated parts of a formula, without those inside them."""
    for part in formula.walk(only_positive=True):
        yield from part.negated()


def _around(formula: Formula) -> Iterator[Formula]:
    """The filters around the whole pattern."""
    while isinstance(formula, AROUND):
        yield formula
        formula = formula.inner


def _without(
    formula: Formula,
    gone: list[Equality | Formula],
    core: Callable[[Formula], Formula] = lambda formula: formula,
) -> Formula:
    """The formula without what is gone; a negated part of which nothing is left to compare is an ordinary one.

    `core`: a change of what the filters stand around.
    """
    if not isinstance(formula, AROUND):
        return core(formula)
    inner = _without(formula.inner, gone, core)
    clauses = [e.clause for e in gone if isinstance(e, Equality) and e.node is formula]
    if isinstance(formula, Across) and clauses:
        left = tuple(clause for clause in formula.clauses if clause not in clauses)
        return replace(formula, inner=inner, clauses=left) if left else _ordinary(inner, formula.number)
    return inner if clauses or any(formula is node for node in gone) else replace(formula, inner=inner)


def _without_implied(formula: Formula, keys: set[tuple[str, str]]) -> Formula:
    """The formula without further comparisons that ask of events what they have in common by their key."""

    def is_implied(clause: tuple[Side, ...]) -> bool:
        side = clause[0]
        if len(clause) > 1 or not isinstance(side, Comparison) or side.op not in ("=", "<=>"):
            return False
        return side.left.sql == side.right.sql and (side.left.sql, side.type.lower()) in keys

    if isinstance(formula, cel.Event):
        return formula
    made = formula.rebuilt(lambda part: _without_implied(part, keys))
    match made:
        case cel.Agree(inner, terms, type) if all((sql, type.lower()) in keys for _, sql in terms):
            return inner if len({sql for _, sql in terms}) == 1 else made
        case cel.Compare(inner, sides) if is_implied(sides):
            return inner
        case Across(inner, number, clauses):
            left = tuple(clause for clause in clauses if not is_implied(clause))
            return replace(made, clauses=left) if left else _ordinary(inner, number)
    return made


def _ordinary(formula: Formula, number: int) -> Formula:
    match formula:
        case Candidate(inner, own) if own == number:
            return inner
        case cel.Event():
            return formula
    return formula.rebuilt(lambda part: _ordinary(part, number))


def _equalities(node: Formula) -> Iterator[Equality]:
    clauses = node.clauses if isinstance(node, Across) else (node.sides,) if isinstance(node, cel.Compare) else ()
    for clause in clauses:
        side = clause[0]
        if len(clause) > 1 or not isinstance(side, Comparison) or side.op != "=":
            continue
        if {side.left.of, side.right.of} == {"each"} and side.left.variable != side.right.variable:
            assert isinstance(node, Across | cel.Compare)
            yield Equality(node, clause, side)


def _covers(named: Collection[str | None], formula: Formula) -> bool:
    """Do the variables (None: all) reach every event of a match?"""
    return None in named or all(marks & set(named) for marks in atoms(formula, positive=True))


def atoms(formula: Formula, more: frozenset[str] = frozenset(), positive: bool = False) -> Iterator[frozenset[str]]:
    """The marks that each atom's events get, by AS around them too. `positive`: without those of negated parts."""
    if isinstance(formula, cel.Event):
        yield formula.marks | more
        return
    if isinstance(formula, cel.As):
        more |= {formula.variable}
    for part in formula.positive() if positive else formula.children():
        yield from atoms(part, more, positive)


def _classes(equalities: list[Equality], query: Query) -> Iterator[tuple[Key, list[Equality]]]:
    """Each attribute whose equalities connect all events, with the comparisons that say so."""
    by_attribute: dict[tuple[str, str], list[Equality]] = {}
    for equality in equalities:
        if equality.attribute is not None and isinstance(equality.node, cel.Compare):
            by_attribute.setdefault(equality.attribute, []).append(equality)
    formula = query.formula
    for attribute, own in by_attribute.items():
        edges = {equality.variables for equality in own}
        variables = frozenset[str]().union(*edges)
        if not _connects(variables, edges, formula):
            continue
        if query.strategy == "NEXT_MATCH" and any(frozenset(pair) not in edges for pair in combinations(variables, 2)):
            continue  # a run decides on an event before the one that connects the two has come
        if _reaches(formula, attribute):
            yield Key(attribute[0], own[0].side.type), own


def _connects(variables: frozenset[str], edges: set[frozenset[str]], formula: Formula) -> bool:
    """Do equalities between these variables say of every event of every match that it has the same value?"""
    present = formula.always_binds()
    if not _covers(variables, formula) or not _connected(edges, variables & present):
        return False
    if {v for v in variables - present if not any(frozenset((v, other)) in edges for other in present)}:
        return False
    # One that is always there may be alone, and then nothing is asked of it.
    return len(variables & present) > 1 or binds_one_of(formula, variables - present)


def binds_one_of(formula: Formula, wanted: frozenset[str]) -> bool:
    """Has every match an event of one of the variables?"""
    match formula:
        case cel.Event(_, marks):
            return bool(marks & wanted)
        case cel.As(inner, variable):
            return variable in wanted or binds_one_of(inner, wanted)
        case cel.Project(inner, keep):
            return binds_one_of(inner, wanted & keep)
        case cel.Or(left, right):
            return binds_one_of(left, wanted) and binds_one_of(right, wanted)
        case cel.Repeat(inner, low):
            return low > 0 and binds_one_of(inner, wanted)
    return any(binds_one_of(part, wanted) for part in formula.positive())


def _connected(edges: set[frozenset[str]], variables: frozenset[str]) -> bool:
    """Do equalities connect the variables among themselves?"""
    if not variables:
        return False
    reached = {min(variables)}
    while True:
        more = {v for edge in edges if edge <= variables and edge & reached for v in edge} - reached
        if not more:
            return reached == variables
        reached |= more
