"""What a condition becomes: an AND of clauses, each an OR of sides, with the part of the pattern that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cersql.binding.arithmetic import Related
from cersql.binding.booleans import OrOf
from cersql.binding.comparisons import (
    EACH,
    Compared,
)
from planner.query import Column
from planner.sql import Sql
from runtime.errors import Span


@dataclass(frozen=True)
class Literal:
    """One side of an OR: a predicate on every event of one variable (None: on every event of the match)."""

    variable: str | None
    sql: Sql
    of: str = EACH  # which of two consecutive events, in an OR that compares them


Sides = tuple[Literal | Compared | Related, ...]
"""An OR of conditions on events, each chosen apart."""


@dataclass(frozen=True)
class Agreement:
    """[k], x[k]: every event of the match, or of a variable, has the same value of a column of the stream. `name`: what
    its events call it, None for an expression."""

    column: Column
    name: str | None
    span: Span
    variable: str | None = None


@dataclass(frozen=True)
class Either:
    """An OR of what is said of several events together: each side is an AND of clauses.

    φ FILTER (P OR Q) = (φ FILTER P) OR (φ FILTER Q).
    """

    sides: tuple[tuple[Clause, ...], ...]
    span: Span


@dataclass(frozen=True)
class Differ:
    """NOT [k], NOT x[k]: two events of the match, or of x, have two values, neither of them NULL. Or `rest` holds.

    `clause` is the same for the whole of what is filtered, which is the match where it stands around the whole pattern
    (`whole`).
    """

    agreements: tuple[Agreement, ...]
    rest: Sides
    clause: OrOf
    whole: bool
    span: Span


Clause = Sides | Agreement | Either | Differ
Negated = Mapping[str, frozenset[int]]
"""For each variable that only negated parts bind: which of them."""


@dataclass(frozen=True)
class Split:
    """A condition taken apart: ORs of predicates on events, each with the negated part that it belongs to (None: the
    events of the match); ORs between a negated part and the match around it (`across`); ORs that only the whole match
    can answer, or (`judged`) only the whole of the part inside the pattern that is filtered."""

    clauses: tuple[tuple[int | None, Clause], ...]
    across: tuple[tuple[int, Clause], ...]
    on_match: tuple[OrOf, ...]
    judged: tuple[OrOf, ...] = ()


MANY_CLAUSES = 32  # from so many on those about one variable are made one filter: filters nest


def joined(clauses: list[tuple[int | None, Clause]]) -> list[tuple[int | None, Clause]]:
    """Of very many ANDs those on each event of one variable as one: `a.x > 1 AND a.x <> 2 AND a.x <> 3 …`."""
    if len(clauses) < MANY_CLAUSES:
        return clauses
    found: list[tuple[int | None, Clause]] = []
    places: dict[tuple[int | None, str | None], list[Sql]] = {}
    for owner, clause in clauses:
        side = clause[0] if isinstance(clause, tuple) and len(clause) == 1 else None
        if not isinstance(side, Literal) or side.of != EACH:
            found.append((owner, clause))
        elif (owner, side.variable) in places:
            places[owner, side.variable].append(side.sql)
        else:
            places[owner, side.variable] = [side.sql]
            found.append((owner, clause))
    for k, (owner, clause) in enumerate(found):
        side = clause[0] if isinstance(clause, tuple) and len(clause) == 1 else None
        if isinstance(side, Literal) and side.of == EACH:
            found[k] = owner, (replace(side, sql=all_of(places[owner, side.variable])),)
    return found


def all_of(parts: Sequence[Sql]) -> Sql:
    """P AND Q AND …, each in parentheses if there are several."""
    return _connected(parts, "AND")


def any_of(parts: Sequence[Sql]) -> Sql:
    """P OR Q OR …, each in parentheses if there are several."""
    return _connected(parts, "OR")


def _connected(parts: Sequence[Sql], operator: str) -> Sql:
    if len(parts) == 1:
        return parts[0]
    pieces = list(parts[0].wrapped("(", ")").pieces)
    for part in parts[1:]:
        pieces += part.wrapped(f" {operator} (", ")").pieces
    return Sql(tuple(pieces))
