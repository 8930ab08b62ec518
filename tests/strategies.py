"""Hypothesis strategies: formulas, streams, windows. And how a failing example is printed, as a corpus entry."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import oracle
from harness import PLAIN, Options, expected_matches
from hypothesis import settings
from hypothesis import strategies as st
from oracle import holds_part, without_choices

from planner import cel, terms
from planner.across import Across, Candidate
from planner.formula import Formula
from planner.query import Skip
from planner.terms import Comparison, Predicate, Related, Side, Term, Window, parts_of
from runtime import relations

TYPES = ("A", "B", "C")
VARIABLES = ("x", "y", "z")
# Overlapping conditions: each says something about the next.
PREDICATES = tuple(Predicate(sql) for sql in ("v > 3", "v > 6", "v <= 6", "v IS NULL"))
KINDS = ("A", "B", "C", "AB", "BC", "ABC", "-")  # values of the column `type`; each letter is a type that accepts it


@dataclass(frozen=True)
class Row:
    """A row of the corpus's table."""

    kind: str
    v: int | None
    ts: int
    key: int | None

    def event(self) -> oracle.Event:
        """The row with what is true of it."""
        v = self.v
        conditions = {
            "v > 3": v is not None and v > 3,
            "v > 6": v is not None and v > 6,
            "v <= 6": v is not None and v <= 6,
            "v IS NULL": v is None,
        }
        true = {letter for letter in self.kind if letter in TYPES} | {sql for sql, holds in conditions.items() if holds}
        values = (("ts", self.ts), *([("v", v)] if v is not None else []))
        return oracle.Event(frozenset(true), self.ts, self.key, values)


def examples(count: int) -> settings:
    """Settings with three in five of so many examples; twenty times as many under HYPOTHESIS_PROFILE=thorough."""
    thorough = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
    return settings(max_examples=count * 20 if thorough else -(-3 * count // 5))


def atoms() -> st.SearchStrategy[Formula]:
    """R, R AS x, ANY, and several marks at once."""
    types = st.sampled_from((*TYPES, None))
    bare = types.map(lambda type: cel.Event(type, frozenset({type or "ANY"})))
    aliased = st.builds(cel.Event, types, st.sampled_from(VARIABLES).map(lambda v: frozenset({v})))
    several = st.builds(cel.Event, types, st.sets(st.sampled_from(VARIABLES), min_size=1).map(frozenset))
    return st.one_of(bare, bare, aliased, aliased, several)


@st.composite
def filters(draw: st.DrawFn, inner: st.SearchStrategy[Formula]) -> Formula:
    formula = draw(inner)
    variable = draw(st.one_of(st.none(), st.sampled_from(sorted(formula.binds()))))
    return cel.Filter(formula, variable, draw(st.sampled_from(PREDICATES)))


def larger(inner: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    return st.one_of(
        st.builds(cel.Sequence, inner, inner),
        st.builds(cel.Contiguous, inner, inner),
        st.builds(cel.Or, inner, inner),
        st.builds(cel.Iteration, inner),
        st.builds(cel.ContiguousIteration, inner),
        st.builds(cel.As, inner, st.sampled_from(VARIABLES)),
        filters(inner),
    )


def formulas(max_leaves: int = 8) -> st.SearchStrategy[Formula]:
    return st.recursive(atoms(), larger, max_leaves=max_leaves)


# ---------------------------------------------------------------- all operators

RULES = ("STRICT", "NXT", "LAST", "MAX")
# What skip till next match is defined on.
SIMPLE = ("seq", "seq", "contiguous", "or", "loop", "repeat", "as", "filter", "filter any", "absent")
COMPARING = ("compare", "compare", "neighbours", "agree")  # operators that compare events
OPERATORS = ("=", "=", "<>", "<", "<=", ">", ">=", "<=>", "IS DISTINCT FROM")
EVERY = (*SIMPLE, "and", "all", "unless", "start", "project", "strategy", "within")


def small_windows() -> st.SearchStrategy[Window]:
    return st.one_of(
        st.builds(Window, st.just("time"), st.integers(1, 4), st.booleans()),
        st.builds(Window, st.just("events"), st.integers(1, 5)),
    )


def same_mark(formula: Formula) -> Formula:
    """The formula with x in place of every variable, so that AND has something to agree on."""
    match formula:
        case cel.Event(type):
            return cel.Event(type, frozenset({"x"}))
        case cel.As(inner):
            return cel.As(same_mark(inner), "x")
        case cel.Project(inner):
            return cel.Project(same_mark(inner), frozenset({"x"}))
        case cel.Filter(inner, variable, predicate):
            return cel.Filter(same_mark(inner), variable and "x", predicate)
        case cel.FilterAny(inner, sides):
            return cel.FilterAny(same_mark(inner), sides[:1] and (("x", sides[0][1]),))
        case cel.Compare(inner) | cel.Agree(inner) | Across(inner) | Candidate(inner):
            return same_mark(inner)
    return with_children(formula, tuple(map(same_mark, formula.children())))


def with_children(formula: Formula, inner: tuple[Formula, ...]) -> Formula:
    """The formula with other direct subformulas, in the order of Formula.children."""
    match formula:
        case cel.Event():
            return formula
        case cel.Absent():
            return cel.Absent(inner[0], inner[1:-1], inner[-1])
        case cel.NotBefore():
            return replace(formula, vetoes=inner[:-1], inner=inner[-1])
        case cel.NotAfter():
            return replace(formula, inner=inner[0], vetoes=inner[1:])
        case cel.Unless():
            return cel.Unless(*inner)
    if len(inner) == 2:
        return replace(formula, left=inner[0], right=inner[1])
    return replace(formula, inner=inner[0])


def subformulas(formula: Formula) -> Iterator[Formula]:
    yield formula
    for child in formula.children():
        yield from subformulas(child)


def neighbour(formula: Formula, last: bool) -> Formula:
    """The part of a chain of `;` and `!` that stands at its end (`last`) or beginning."""
    match formula:
        case cel.Sequence(left, right) | cel.Absent(left, _, right):
            return neighbour(right if last else left, last)
    return formula


WHOLE = 4 * 64 + relations.FAILS
RELATIONS = tuple(
    relations.Relation((*code, (relations.COMPARE, relations.COMPARES.index(op))), shown=shown)
    for shown, op, code in (
        ("second - first >= 1", ">=",
         ((relations.LOAD, 1), (relations.LOAD, 0), (relations.SUB, WHOLE), (relations.INT, 1))),
        ("abs(first - second) <= 1", "<=",
         ((relations.LOAD, 0), (relations.LOAD, 1), (relations.SUB, WHOLE), (relations.ABS, WHOLE),
          (relations.INT, 1))),
        ("2 * first < second", "<",
         ((relations.INT, 2), (relations.LOAD, 0), (relations.MUL, WHOLE), (relations.LOAD, 1))),
        ("least(first, second) > 1", ">",
         ((relations.LOAD, 0), (relations.LOAD, 1), (relations.LEAST, 2), (relations.INT, 1))),
    )
)  # fmt: skip


def compares(draw: st.DrawFn, left: Term, right: Term) -> Comparison | Related:
    """A comparison of two values, or a condition that computes with them (tests/oracle.py says what)."""
    if draw(st.integers(0, 3)) == 0:
        return Related((left, right), ("", ""), draw(st.sampled_from(RELATIONS)))
    return Comparison(left, draw(st.sampled_from(OPERATORS)), right)


@st.composite
def clauses(draw: st.DrawFn, names: Sequence[str], neighbours: bool) -> tuple[Side, ...]:
    """An OR of one or two comparisons of events of one or two variables, perhaps with a predicate beside them."""
    chosen = draw(st.lists(st.sampled_from(names), min_size=2, max_size=2))
    both = draw(st.booleans())
    in_a_row = draw(st.sampled_from((("earlier", "later"), ("earlier", "later"), ("first", "middle", "last"))))

    def term(k: int) -> Term:
        of = draw(st.sampled_from(in_a_row)) if neighbours and (both or chosen[k] == chosen[0]) else "each"
        return Term(chosen[k], draw(st.sampled_from(("v", "v", "ts"))), of)

    sides: list[Side] = [compares(draw, term(0), term(1)) for _ in range(draw(st.sampled_from((1, 1, 1, 2))))]
    if draw(st.integers(0, 5)) == 0:
        of = in_a_row[-1] if neighbours else "each"
        sides.append(terms.Test(chosen[0], draw(st.sampled_from(PREDICATES)), of))
    return tuple(sides)


@st.composite
def acrosses(draw: st.DrawFn, left: Callable[[], Formula], right: Callable[[], Formula], veto: Formula) -> Formula:
    """What must not happen between two parts, or while one happens, with conditions on it and them."""
    candidate = Candidate(renamed(veto), draw(st.integers(0, 10**6)))  # its own number, wherever else there is one
    if draw(st.integers(0, 3)):
        return across(draw, cel.Absent(left(), (candidate,), right()), candidate)
    return across(draw, cel.Unless(left(), candidate), candidate)


@st.composite
def in_choices(draw: st.DrawFn) -> Formula:
    """What must not happen, inside strategies and other negated parts, compared with what is around them all."""
    candidate = Candidate(renamed(draw(atoms())), draw(st.integers(0, 10**6)))
    absent = cel.Absent(draw(atoms()), (candidate,), draw(atoms()))
    unless = cel.Unless(cel.Sequence(absent.left, absent.right), candidate)
    made = draw(st.sampled_from((absent, absent, absent, unless)))
    for kind in draw(st.lists(st.sampled_from(AROUND), max_size=1)):
        made = around(draw, kind, made)
    for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
        made = around(draw, draw(st.sampled_from(CHOICES)), made)
        for kind in draw(st.lists(st.sampled_from((*BESIDE, *AROUND)), max_size=1)):
            made = around(draw, kind, made)
    within = [part for part in subformulas(made) if holds_part(part, candidate.number)]
    inside = sorted(within[-1].binds())
    outermost = sorted(made.binds())
    anywhere = sorted({name for part in within for name in part.binds()} - set(inside))

    def clause(names: Sequence[str]) -> tuple[Side]:
        column = st.sampled_from(("v", "v", "ts"))
        left, right = (Term(draw(st.sampled_from(of)), draw(column)) for of in (inside, names))
        return (compares(draw, left, right),)

    clauses = (clause(outermost), *(clause(anywhere) for _ in range(draw(st.sampled_from((0, 0, 1))))))
    return Across(made, candidate.number, clauses)


SMALL = ("seq", "loop", "or", "repeat", "as")
CHOICES = ("strategy", "strategy", "negated", "unless", "compared")  # all but the first two make a part negated
BESIDE = ("before", "before", "after", "after", "all")
AROUND = ("or", "loop", "and", "within", "as", "filter", "project", "unless it", "start", "before", "after")


def around(draw: st.DrawFn, kind: str, made: Formula) -> Formula:
    """An operator around a formula, with others beside it."""

    def one(next_to_not: str = "") -> Formula:
        return draw(parts(1, SMALL, solid=True, next_to_not=next_to_not))

    match kind:
        case "strategy":
            return cel.Strategy(draw(st.sampled_from(RULES)), made)
        case "negated":
            return cel.Absent(one("right"), (made,), one("left"))
        case "unless":
            return cel.Unless(one(), made)
        case "compared":
            candidate = Candidate(renamed(made), draw(st.integers(0, 10**6)))
            inside, before = sorted(candidate.binds()), one("right")
            side = compares(draw, Term(draw(st.sampled_from(inside)), "v"),
                            Term(draw(st.sampled_from(sorted(before.binds()))), "v"))  # fmt: skip
            return Across(cel.Absent(before, (candidate,), one("left")), candidate.number, ((side,),))
        case "before":
            return cel.Sequence(one(), made)
        case "after":
            return cel.Sequence(made, one())
        case "or":
            return cel.Or(made, one())
        case "loop":
            return cel.Iteration(made)
        case "all":
            return cel.All(one(), made)
        case "and":
            return cel.And(made, without_choices(made) if draw(st.booleans()) else one())
        case "within":
            return cel.Within(made, draw(small_windows()))
        case "as":
            return cel.As(made, draw(st.sampled_from(VARIABLES)))
        case "filter":
            return draw(filters(st.just(made)))
        case "project":
            return cel.Project(made, frozenset(draw(st.sets(st.sampled_from(sorted(made.binds())), min_size=1))))
        case "unless it":
            return cel.Unless(made, one())
        case "start":
            return cel.Start(made)
    raise ValueError(kind)


def across(draw: st.DrawFn, made: Formula, candidate: Candidate) -> Formula:
    """The formula with conditions on its candidate and what is around that."""
    inside, outside = sorted(candidate.binds()), sorted(made.binds())

    def term(names: Sequence[str]) -> Term:
        return Term(draw(st.sampled_from(names)), draw(st.sampled_from(("v", "v", "ts"))))

    clauses = tuple((compares(draw, term(inside), term(outside)),) for _ in range(draw(st.integers(1, 2))))
    return Across(made, candidate.number, clauses)


def renamed(formula: Formula) -> Formula:
    """The formula with variables that are named nowhere else."""
    match formula:
        case cel.Event(type, marks):
            return cel.Event(type, frozenset(f"{mark}0" for mark in marks))
        case cel.As(inner, variable):
            return cel.As(renamed(inner), f"{variable}0")
        case cel.Project(inner, keep):
            return cel.Project(renamed(inner), frozenset(f"{mark}0" for mark in keep))
        case cel.Filter(inner, variable, predicate):
            return cel.Filter(renamed(inner), variable and f"{variable}0", predicate)
        case cel.FilterAny(inner, sides):
            return cel.FilterAny(renamed(inner), tuple((v and f"{v}0", p) for v, p in sides))
        case cel.Compare(inner, sides):
            return cel.Compare(renamed(inner), tuple(map(renamed_side, sides)))
        case cel.Agree(inner, terms):
            return cel.Agree(renamed(inner), tuple((v and f"{v}0", sql) for v, sql in terms))
        case Across(inner, number, clauses):
            return Across(renamed(inner), number, tuple(tuple(map(renamed_side, sides)) for sides in clauses))
    return with_children(formula, tuple(map(renamed, formula.children())))


def renamed_side(side: Side) -> Side:
    if isinstance(side, terms.Test):
        return replace(side, variable=f"{side.variable}0")
    own = tuple(replace(term, variable=f"{term.variable}0") for term in parts_of(side) if isinstance(term, Term))
    if isinstance(side, Related):
        return replace(side, terms=own)
    return replace(side, left=own[0], right=own[1])


@st.composite
def parts(
    draw: st.DrawFn, depth: int = 3, allowed: Sequence[str] = EVERY, solid: bool = False, next_to_not: str = ""
) -> Formula:
    """A formula nested up to `depth`, valid in a query. `solid`: zero copies do not satisfy it, nor what stands at the
    side `next_to_not` ('left' or 'right') of its chain."""

    def inner(solid: bool = False, next_to_not: str = "", smaller: int = 1) -> Formula:
        return draw(parts(max(depth - smaller, 0), allowed, solid, next_to_not))

    operator = draw(st.sampled_from(("atom", *allowed))) if depth else "atom"
    match operator:
        case "atom":
            return draw(atoms())
        case "seq":
            made: Formula = cel.Sequence(inner(), inner())
        case "contiguous":
            made = cel.Contiguous(inner(), inner())
        case "or":
            made = cel.Or(inner(), inner())
        case "loop":
            made = draw(st.sampled_from((cel.Iteration, cel.ContiguousIteration)))(inner())
        case "repeat":
            low, more = draw(st.integers(0, 2)), draw(st.sampled_from((None, 0, 1)))
            made = cel.Repeat(inner(), low, None if more is None else max(low + more, 1), draw(st.booleans()))
        case "as":
            made = cel.As(inner(), draw(st.sampled_from(VARIABLES)))
        case "filter":
            made = draw(filters(st.just(inner())))
        case "filter any":
            made = inner()
            names = draw(st.permutations(sorted(made.binds())))[:2]
            made = cel.FilterAny(made, tuple((name, draw(st.sampled_from(PREDICATES))) for name in names))
        case "compare" | "neighbours":
            made = inner()
            made = cel.Compare(made, draw(clauses(sorted(made.binds()), operator == "neighbours")))
        case "agree":
            made = inner()
            names = sorted(made.binds())
            every = draw(st.booleans())
            made = cel.Agree(made, ((None, "v"),) if every else tuple((name, "v") for name in names[:2]))
        case "across":
            made = draw(acrosses(lambda: inner(True, "right"), lambda: inner(True, "left"), inner(True, smaller=2)))
        case "absent":
            vetoes = tuple(inner(solid=True, smaller=2) for _ in range(draw(st.integers(1, 2))))
            made = cel.Absent(inner(True, "right"), vetoes, inner(True, "left"))
        case "and":
            left, right = inner(solid=True), inner(solid=True)
            made = cel.And(left, right)
            if draw(st.integers(0, 3)):
                made = cel.And(same_mark(left), same_mark(right))
        case "all":
            made = cel.All(inner(solid=True), inner(solid=True))
        case "unless":
            made = cel.Unless(inner(solid=True), inner(solid=True, smaller=2))
        case "start":
            made = cel.Start(inner(solid=True))
        case "project":
            made = inner(solid=True)
            kept = draw(st.sets(st.sampled_from(sorted(made.binds())), min_size=1))
            made = cel.Project(made, frozenset(kept))
        case "strategy":
            made = cel.Strategy(draw(st.sampled_from(RULES)), inner(solid=True))
        case "within":
            made = cel.Within(inner(solid=True), draw(small_windows()))
        case _:
            raise ValueError(operator)
    if next_to_not and neighbour(made, next_to_not == "right").may_be_empty():
        atom = draw(atoms())
        made = cel.Sequence(made, atom) if next_to_not == "right" else cel.Sequence(atom, made)
    if solid and made.may_be_empty():
        made = cel.Sequence(made, draw(atoms()))
    return made


@st.composite
def all_formulas(draw: st.DrawFn, depth: int = 3, allowed: Sequence[str] = EVERY) -> Formula:
    """Formulas of all operators; now and then with an absence before or after the whole, or both."""
    before, after = draw(st.sampled_from((*[(False, False)] * 5, (True, False), (False, True), (True, True))))
    if not before and not after:
        return draw(parts(depth, allowed, solid=True))
    side = "both" if before and after else "left" if before else "right"
    made = draw(parts(depth - 1, allowed, True, "right" if side == "both" else side))
    if side == "both" and neighbour(made, last=False).may_be_empty():
        made = cel.Sequence(draw(atoms()), made)
    window = draw(small_windows())
    vetoes = st.lists(parts(1, allowed, solid=True), min_size=1, max_size=2).map(tuple)
    around: list[Callable[[Formula], Formula]] = []
    if after:
        around.append(
            lambda inner: absent_around(draw, lambda own: cel.NotAfter(inner, own, window), draw(vetoes), allowed)
        )
    if before:
        one = parts(1, allowed, solid=True)
        if "strategy" in allowed:  # these ask where a search begins
            chosen = st.builds(cel.Strategy, st.sampled_from(RULES), parts(1, SIMPLE, solid=True))
            asking = st.one_of(st.builds(cel.Start, one), chosen, st.builds(cel.Sequence, chosen, atoms()))
            one = st.one_of(one, one, asking)
        earlier = st.lists(one, min_size=1, max_size=2).map(tuple)
        around.append(
            lambda inner: absent_around(draw, lambda own: cel.NotBefore(own, inner, window), draw(earlier), allowed)
        )
    for wrap in draw(st.permutations(around)):
        made = wrap(made)
    outside = draw(st.sampled_from(("", "", "as", "filter", "project")))
    if outside == "as":
        made = cel.As(made, "x")
    elif outside == "filter":
        made = draw(filters(st.just(made)))
    elif outside == "project" and "project" in allowed:
        made = cel.Project(made, frozenset(draw(st.sets(st.sampled_from(sorted(made.binds())), min_size=1))))
    return made


def absent_around(
    draw: st.DrawFn,
    make: Callable[[tuple[Formula, ...]], Formula],
    vetoes: tuple[Formula, ...],
    allowed: Sequence[str],
) -> Formula:
    """The absences around the whole, the first perhaps compared with it."""
    if "across" not in allowed or draw(st.booleans()):
        return make(vetoes)
    candidate = Candidate(renamed(vetoes[0]), draw(st.integers(0, 10**6)))
    return across(draw, make((candidate, *vetoes[1:])), candidate)


def clause_of(formula: Formula) -> Window | None:
    """The window of the absences before and after the whole, which is always that of the WITHIN clause."""
    return next((f.window for f in subformulas(formula) if isinstance(f, cel.NotBefore | cel.NotAfter)), None)


@dataclass(frozen=True)
class Asked:
    """A formula with all that a query says besides."""

    formula: Formula
    window: Window | None
    options: Options = PLAIN


@st.composite
def queries(draw: st.DrawFn, depth: int = 3) -> Asked:
    """A query that is valid: what excludes one another never stands together."""
    kind = draw(st.sampled_from(("plain", "strategy", "strategy", "next match", "consume", "skip")))
    formula = draw(all_formulas(depth, SIMPLE if kind == "next match" else EVERY))
    trailing = any(isinstance(f, cel.NotAfter) for f in subformulas(formula))
    consume = "NONE" if trailing else "PARTITION"
    to = draw(st.sampled_from(("PAST LAST ROW", "TO NEXT ROW", "TO FIRST", "TO LAST")))
    mark = draw(st.sampled_from(sorted(formula.binds()))) if to in ("TO FIRST", "TO LAST") else None
    window = clause_of(formula) or draw(st.one_of(st.none(), small_windows()))
    match kind:
        case "strategy":
            options = Options(draw(st.sampled_from(RULES)), draw(st.sampled_from(("NONE", "NONE", consume))))
        case "next match":
            skip = draw(st.sampled_from((None, None, Skip(to, mark))))
            options = Options("NEXT_MATCH", "NONE" if skip else draw(st.sampled_from(("NONE", "NONE", consume))), skip)
        case "consume":
            options = Options(consume=consume)
        case "skip":
            options = Options(draw(st.sampled_from(("ALL", "NXT", "LAST"))), skip=Skip(to, mark))
        case _:
            options = PLAIN
    return Asked(formula, window, options)


@st.composite
def streams(draw: st.DrawFn, max_size: int = 30, keys: Sequence[int | None] = (0,)) -> list[Row]:
    """Rows in order; times tie often and jump at times; some kinds are drawn more often than others."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    row = st.tuples(
        st.sampled_from((*kinds, "-")),
        st.one_of(st.none(), st.integers(0, 9)),
        st.sampled_from((0, 0, 1, 1, 2, 7)),
        st.sampled_from(keys),
    )
    rows, now = [], 0
    for kind, v, step, key in draw(st.lists(row, max_size=max_size)):
        now += step
        rows.append(Row(kind, v, now, key))
    return rows


@st.composite
def busy_streams(draw: st.DrawFn, max_size: int = 9, keys: Sequence[int | None] = (0,)) -> list[Row]:
    """Short streams in which most rows are of several types, so that large formulas match at all."""
    row = st.tuples(
        st.sampled_from((*KINDS, "AB", "BC", "ABC", "ABC", "ABC")),
        st.sampled_from((None, 1, 5, 5, 8)),
        st.sampled_from((0, 1, 1, 1, 3)),
        st.sampled_from(keys),
    )
    rows, now = [], 0
    for kind, v, step, key in draw(st.lists(row, min_size=min(3, max_size), max_size=max_size)):
        now += step
        rows.append(Row(kind, v, now, key))
    return rows


def windows() -> st.SearchStrategy[oracle.Window | None]:
    return st.one_of(
        st.none(),
        st.builds(oracle.Window, st.just("time"), st.integers(1, 12), st.booleans()),
        st.builds(oracle.Window, st.just("events"), st.integers(1, 12)),
    )


# ---------------------------------------------------------------- a failure as a corpus entry


def is_one_type(formula: Formula) -> bool:
    """A type, or a loop of one: what an alias takes the place of."""
    loops = cel.Iteration | cel.ContiguousIteration | cel.Repeat
    return isinstance(formula, cel.Event) or (isinstance(formula, loops) and is_one_type(formula.inner))


def pattern_text(formula: Formula) -> str:
    """The formula as cersql text. What has no text of its own is written as something that means the same."""
    match formula:
        case cel.Event(type, marks):
            name, variables = type or "ANY", sorted(marks)
            if variables == [name]:
                return name
            text = f"{name} AS {variables[0]}"
            for variable in variables[1:]:
                text = f"({text}) AS {variable}"
            return f"({text})" if len(variables) > 1 else text
        case cel.As(inner, variable) if is_one_type(inner):  # `R AS x` and `R+ AS x` would mark x alone
            return f"({pattern_text(inner)} OR {pattern_text(inner)}) AS {variable}"
        case cel.As(inner, variable):
            return f"({pattern_text(inner)}) AS {variable}"
        case cel.Iteration(inner):
            return f"({pattern_text(inner)})+"
        case cel.ContiguousIteration(inner):
            return f"({pattern_text(inner)}):+"
        case cel.Sequence(left, right):
            return f"(({pattern_text(left)}) ; ({pattern_text(right)}))"
        case cel.Contiguous(left, right):
            return f"(({pattern_text(left)}) : ({pattern_text(right)}))"
        case cel.Or(left, right):
            return f"(({pattern_text(left)}) OR ({pattern_text(right)}))"
        case cel.Filter(inner, variable, predicate):
            names = [variable] if variable else sorted(inner.binds())
            return f"(({pattern_text(inner)}) FILTER {condition_text(names, predicate)})"
        case cel.FilterAny(inner, sides):
            texts = [condition_text([v] if v else sorted(inner.binds()), p) for v, p in sides]
            return f"(({pattern_text(inner)}) FILTER ({' OR '.join(f'({text})' for text in texts)}))"
        case cel.Repeat(inner, low, high, contiguous):
            bounds = f"{{{low},{'' if high is None else high}}}"
            return f"({pattern_text(inner)}){':' if contiguous else ''}{bounds}"
        case cel.And(left, right):
            return f"(({pattern_text(left)}) AND ({pattern_text(right)}))"
        case cel.All(left, right):
            return f"(({pattern_text(left)}) ALL ({pattern_text(right)}))"
        case cel.Unless(inner, veto):
            return f"(({pattern_text(inner)}) UNLESS ({pattern_text(veto)}))"
        case cel.Absent(left, vetoes, right):
            return f"SEQ({pattern_text(left)}, {absent_text(vetoes)}, {pattern_text(right)})"
        case cel.NotBefore(vetoes, inner, _):  # its window must be the clause's
            return f"SEQ({absent_text(vetoes)}, {pattern_text(inner)})"
        case cel.NotAfter(inner, vetoes, _):
            return f"SEQ({pattern_text(inner)}, {absent_text(vetoes)})"
        case cel.Start(inner):
            return f"START({pattern_text(inner)})"
        case cel.Project(inner, keep):
            return f"PROJECT({', '.join(sorted(keep))} : {pattern_text(inner)})"
        case cel.Strategy(rule, inner):
            return f"{rule}({pattern_text(inner)})"
        case cel.Within(inner, window):
            return f"(({pattern_text(inner)}) WITHIN {window})"
    raise TypeError(f"not a formula: {formula!r}")


def condition_text(names: Sequence[str], predicate: Predicate) -> str:
    """The predicate asked of each of the variables."""
    return " AND ".join(re.sub(r"\bv\b", f"{name}.v", predicate.sql) for name in names)


def absent_text(vetoes: Sequence[Formula]) -> str:
    return ", ".join(f"!({pattern_text(veto)})" for veto in vetoes)


def query_text(formula: Formula, window: oracle.Window | None, keyed: bool, options: Options = PLAIN) -> str:
    used = [type for type in TYPES if formula.show().find(f"{type} / ") >= 0]
    defined = [f"{type} AS type IN ({', '.join(repr(k) for k in KINDS if type in k)})" for type in used]
    lines = ["FROM events", f"PATTERN {pattern_text(formula)}"]
    if defined:
        lines.append(f"DEFINE {', '.join(defined)}")
    if keyed:
        lines.append("PARTITION BY key")
    lines.append("ORDER BY ts, id")
    if window is not None:
        lines.append(f"WITHIN {window}")
    if options.strategy != "ALL":
        lines.append(f"SEMANTICS {options.strategy.replace('NEXT_MATCH', 'SKIP TILL NEXT MATCH')}")
    if options.consume != "NONE":
        lines.append(f"CONSUME BY {options.consume}")
    if options.skip is not None:
        lines.append(f"AFTER MATCH SKIP {options.skip.to} {options.skip.mark or ''}".rstrip())
    return "\n".join([*lines, "RETURN *"])


def as_case(
    formula: Formula,
    rows: Sequence[Row],
    window: oracle.Window | None,
    keyed: bool = False,
    options: Options = PLAIN,
) -> str:
    """A failing example, ready to be pasted into a file of tests/cases. The expected matches are the oracle's."""
    ids: dict[object, list[int]] = {}
    for id, row in enumerate(rows):
        ids.setdefault(row.key if keyed else None, []).append(id)
    events = [row.event() for row in rows]
    found = expected_matches(formula, events, window, keyed, 5000, options)
    shown = []
    for key, matches in found.items():
        for _, _, mu in matches:
            held = [f"{variable} = {[ids[key][p] for p in sorted(positions)]}" for variable, positions in sorted(mu)]
            shown.append(f"    {{ {', '.join(held)} }},")
    query = query_text(formula, window, keyed, options)
    stream = [
        f'    "{row.kind} {"NULL" if row.v is None else row.v} {row.ts} {"NULL" if row.key is None else row.key}",'
        for row in rows
    ]
    return "\n".join(
        [
            "# For a file in tests/cases:",
            "[[case]]",
            'name = "found-by-hypothesis"',
            f'query = """\n{query}\n"""',
            'columns = ["type", "v", "ts", "key"]',
            "stream = [",
            *stream,
            "]",
            "matches = [",
            *sorted(shown),
            "]",
        ]
    )
