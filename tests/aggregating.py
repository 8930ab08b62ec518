"""Random patterns with AGG and with conditions on whole parts, as texts; what the oracle says of them, and Spark."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import corpus
import created
import oracle
import queries

from planner import cel
from planner.acel import Aggregate, Judged, Measured
from planner.formula import Formula
from planner.query import Query
from planner.terms import Measure, Register
from runtime.marks import is_round

SCHEMAS = {"events": {"id": "bigint", "ts": "bigint", "type": "string", "key": "int", "v": "int"}}
SCHEMA = "id bigint, ts bigint, type string, key int, v int"
LIMIT = 400  # complex events in one set of the oracle
Row = dict[str, Any]
Found = tuple[Hashable, int, int, frozenset[Any]]

CLAUSES = ("", "", "", "WITHIN 4", "WITHIN 5 EVENTS", "PARTITION BY key", "PARTITION BY key WITHIN 6")
CHOICES = ("", "", "", "SEMANTICS NXT", "SEMANTICS LAST", "SEMANTICS MAX", "SEMANTICS STRICT", "CONSUME BY PARTITION")


@dataclass(frozen=True)
class Drawn:
    """A part of a pattern; the variables of the stream, and those of AGG, that it binds. `filtered`: what it filters,
    and by what condition on the whole of it (None: by one on single events)."""

    text: str
    stream: frozenset[str]
    made: frozenset[str] = frozenset()
    filtered: tuple[Drawn, str | None] | None = None


PLAIN = "seq seq tight loop loop tightloop or agg agg agg filter judge judge project few all unless and"
COUNTING = (
    "seq seq tight loop loop tightloop or filter judge judge judge few all unless veto choice choice start window and"
)
"""Operators by their names here: for what is listed, and for what runs can answer."""


def draw_part(chance: random.Random, depth: int, kinds: str = PLAIN) -> Drawn:
    """A part with at most so many operators in each other."""
    if depth == 0:
        name = chance.choice("ab")
        return Drawn(f"{chance.choice('AABC')} {name}", frozenset(name))
    kind = chance.choice(kinds.split())
    part = draw_part(chance, depth - 1, kinds)
    text, stream, made = f"({part.text})", part.stream, part.made
    if kind in ("seq", "tight", "or", "all", "unless"):
        other = draw_part(chance, chance.randrange(depth), kinds)
        if kind == "unless":
            return Drawn(f"{text} UNLESS (C c)", stream, made)
        sign = {"seq": ";", "tight": ":", "or": "OR", "all": "ALL"}[kind]
        return Drawn(f"{text} {sign} ({other.text})", stream | other.stream, made | other.made)
    match kind:
        case "and":  # with what often matches the same
            less = [r"\g<0>", r"\g<0>", r"(\g<0> FILTER \1.v > 0)"]
            other = re.sub(r"\b[ABC] ([ab])\b", lambda m: m.expand(chance.choice(less)), text)
            other = other if chance.random() < 0.6 else other.replace("SUM(", "MAX(")
            return Drawn(f"{text} AND {other}", stream, made)
        case "veto":  # what must not happen, with a condition on all of it
            veto = draw_part(chance, 1, "loop few judge")
            condition = draw_condition(chance, veto)
            names = str.maketrans({"a": "d", "b": "e"})
            hidden = f"({veto.text.translate(names)}) FILTER {condition.translate(names)}"
            return Drawn(f"{text} UNLESS ({hidden})", stream, made)
        case "choice":
            return Drawn(f"{chance.choice(('NXT', 'LAST', 'MAX'))}({part.text})", stream, made)
        case "start":
            return Drawn(f"START({part.text})", stream, made)
        case "window":
            return Drawn(f"({part.text} WITHIN 3 EVENTS)", stream, made)
        case "loop" | "tightloop" | "few":
            return Drawn(text + {"loop": "+", "tightloop": ":+", "few": "{1,2}"}[kind], stream, made)
        case "agg" if not part.text.startswith("AGG") or chance.random() < 0.3:
            name = chance.choice("pq")
            attributes = f"n = {_count(chance, part)}, s = {_aggregate(chance, part)}"
            return Drawn(f"AGG({name} : {attributes} ; {part.text})", stream, made | {name})
        case "filter" if stream:
            condition = f"{chance.choice(sorted(stream))}.v > {chance.randrange(4)}"
            return Drawn(f"({text} FILTER {condition})", stream, made, (part, None))
        case "judge" if stream | made:
            condition = draw_condition(chance, part)
            return Drawn(f"({text} FILTER {condition})", stream, made, (part, condition))
        case "project" if len(stream | made) > 1 or chance.random() < 0.3:
            keep = frozenset(chance.sample(sorted(stream | made), chance.randint(1, len(stream | made))))
            return Drawn(f"PROJECT({', '.join(sorted(keep))} : {part.text})", stream & keep, made & keep)
    return part


def _count(chance: random.Random, part: Drawn) -> str:
    return f"COUNT({chance.choice(['*', *sorted(part.stream | part.made)])})"


def _aggregate(chance: random.Random, part: Drawn) -> str:
    name = chance.choice(sorted(part.stream | part.made))
    function = chance.choice("SUM SUM MIN MAX".split())
    return f"{function}({name}.{'v' if name in part.stream else 's'})"


def draw_condition(chance: random.Random, part: Drawn) -> str:
    """A condition on the whole of the part."""
    sides = []
    for _ in range(chance.choice((1, 1, 1, 2))):
        op, number = chance.choice(("<", "<=", ">", ">=", "<>", "=")), chance.randrange(8)
        term = chance.choice((_aggregate, _count))(chance, part)
        if part.made and chance.random() < 0.5:
            name = chance.choice(sorted(part.made))
            term = f"{name}.{chance.choice('ns')}"
        sides.append(f"{term} {op} {number}")
    return " OR ".join(sides)


def draw_count(chance: random.Random) -> tuple[str, list[str]]:
    """A query with a loop, whose WHERE asks for numbers of events."""
    kinds = "seq seq tight loop loop few or all unless filter start window"
    part = draw_part(chance, chance.randint(1, 4), kinds)
    sides = [
        f"{_count(chance, part)} {chance.choice(('<', '<=', '>', '>=', '<>', '='))} {chance.randrange(5)}"
        for _ in range(chance.choice((1, 1, 2)))
    ]
    clauses = f"{chance.choice(CLAUSES)} {chance.choice(CHOICES)}".strip()
    where = " OR ".join(sides)
    return f"FROM events PATTERN {part.text} WHERE {where} ORDER BY ts {clauses} RETURN *", [where]


def draw_text(chance: random.Random, depth: int = 5) -> tuple[str, list[str]]:
    """A query, and what it asks of whole matches: WHERE, and the filters around the whole pattern."""
    part = draw_part(chance, chance.randint(2, depth), chance.choice((PLAIN, PLAIN, COUNTING, f"{PLAIN} {COUNTING}")))
    where = draw_condition(chance, part) if part.stream | part.made and chance.random() < 0.4 else ""
    asked, outer = [where] if where else [], part
    while outer.filtered is not None:
        outer, condition = outer.filtered
        asked += [condition] if condition else []
    clauses = f"{chance.choice(CLAUSES)} {chance.choice(CHOICES)}".strip()
    text = f"FROM events PATTERN {part.text} {f'WHERE {where}' if where else ''} ORDER BY ts {clauses} RETURN *"
    return " ".join(text.split()), asked


def draw_rows(chance: random.Random, n: int) -> list[Row]:
    return [
        {
            "id": i,
            "ts": i,
            "type": chance.choice("AAABC"),
            "key": chance.randrange(2),
            "v": chance.choice([None, *range(5)]),
        }
        for i in range(n)
    ]


# ---------------------------------------------------------------- the oracle's side


def plain(formula: Formula) -> Formula:
    """The formula without our marks, as it was before it was made ready to run."""
    formula = formula.rebuilt(plain)
    match formula:
        case cel.As(inner, variable) if is_round(variable):
            return inner
        case cel.Event(_, marks) | Aggregate(_, _, marks):
            return replace(formula, marks=frozenset(m for m in marks if not is_round(m)))
        case cel.Project(_, keep):
            return replace(formula, keep=frozenset(m for m in keep if not is_round(m)))
    return formula


def by_registers(formula: Formula) -> Formula:
    """The formula with every condition on a whole part asked by runs."""
    formula = formula.rebuilt(by_registers)
    if not isinstance(formula, Judged):
        return formula
    sides = []
    for side in formula.condition.split(" OR "):
        found = re.fullmatch(r"(\w+)\((\*|\w+)(?:\.(\w+))?\) (\S+) (\d+)", side)
        assert found is not None, side
        function, variable, column, op, number = found.groups()
        one = Register(function, None if variable == "*" else variable, column, "int" if column else "")
        sides.append(Measure(one, op, int(number)))
    return Measured(formula.inner, tuple(sides), formula.condition)


def event(row: Row, formula: Formula) -> oracle.Event:
    """A row with what is true of it."""
    predicates = {part.predicate.sql for part in formula.walk() if isinstance(part, cel.Filter)}
    true = {sql for sql in predicates if corpus.holds(sql, row)} | {row["type"]}
    values = tuple((name, row["v"]) for name in ("v", "`v`"))
    return oracle.Event(frozenset(true), row["ts"], row["key"], values)


def expected(query: Query, asked: Sequence[str], rows: Sequence[Row]) -> Counter[Found]:
    """What the oracle says. TooLarge if that is too much."""
    formula, keyed = plain(query.formula), bool(query.partition_by)
    events = [replace(one, key=one.key if keyed else None) for one in (event(row, formula) for row in rows)]
    parts = oracle.split(events)

    def holds(key: Hashable, c: oracle.Complex) -> bool:
        held = list(oracle.bound_in(c[2]))
        return all(created.holds(one, held, lambda p, column: parts[key][p].value(column)) for one in asked)

    found = oracle.evaluate_partitioned(
        formula, events, query.window, LIMIT, query.strategy, query.consume, query.skip, where=holds
    )
    return Counter((key, *match) for key, matches in found.items() for match in matches)


# ---------------------------------------------------------------- Spark's side


def shown(query: Query, row: Row, rows: Sequence[Row]) -> Found:
    """A row of RETURN * in the oracle's terms."""
    keyed = bool(query.partition_by)
    key = row["key"] if keyed else None
    places = {r["ts"]: n for n, r in enumerate(r for r in rows if not keyed or r["key"] == key)}
    held: list[tuple[str, Any]] = []
    for variable in query.variables:
        value = row.get(variable.name)
        events = value if isinstance(value, list) else [] if value is None else [value]
        if not events:
            continue
        if variable.created:
            made = Counter((places[e["ts"]], tuple((k, v) for k, v in e.items() if k != "ts")) for e in events)
            held.append((variable.name, frozenset(made.items())))
        else:
            held.append((variable.name, frozenset(places[e["ts"]] for e in events)))
    return key, places[row["match_start"]], places[row["match_end"]], frozenset(held)


def tells_something(query: Query) -> bool:
    """Is there more than one AGG around a single event?"""
    rounds = [part for part in query.formula.walk() if isinstance(part, Aggregate | Judged)]
    single = all(isinstance(part, Aggregate) and isinstance(part.inner, cel.Event) for part in rounds)
    return not single and (len(rounds) > 1 or rounds[0] is not query.formula)


def bound(text: str) -> Query:
    return queries.bound(text, SCHEMAS)
