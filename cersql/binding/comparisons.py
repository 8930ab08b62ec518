"""Comparisons of events: a condition between two variables, or two consecutive events of one, taken apart.

A comparison has two sides that speak of one event each. Where a side speaks of two, sums and differences are moved
until each speaks of one (`b.ts - a.ts <= INTERVAL 5 MINUTES` is `b.ts <= a.ts + INTERVAL 5 MINUTES`), if the types
allow that without overflow or rounding. A difference of TIMESTAMPs is one of what clocks on the wall showed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cersql.binding.booleans import Bool
from cersql.binding.expressions import Call, Made, Node, Ref, Word, walk
from cersql.errors import BindError
from cersql.language.lexer import CLOSING, OPENING, Token
from planner.sql import Sql

EACH, EARLIER, LATER = "each", "earlier", "later"
OF_THREE = {"previous": "first", "next": "last"}  # what has no index is in the middle
Event = tuple[str, str]  # a variable, and which of its events

_OPERATORS = {"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>"}
NOT = {
    "=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
    "<=>": "IS DISTINCT FROM", "IS DISTINCT FROM": "<=>",
}  # fmt: skip
_SMALL = ("tinyint", "smallint", "int")


@dataclass(frozen=True)
class Compared:
    """left op right, each side about one event."""

    left: Event
    left_sql: Sql
    op: str
    right: Event
    right_sql: Sql
    type: str

    @property
    def whole(self) -> Sql:
        """The comparison as if both events were one row, for the analyzer."""
        at = self.left_sql.pieces[0][1]
        middle = ((f") {self.op} (", at, False),)
        return Sql((("(", at, False), *self.left_sql.pieces, *middle, *self.right_sql.pieces, (")", at, False)))


# ---------------------------------------------------------------- neighbours


def plain(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """PREV(x.a), PREV(x).a and NEXT as x[i-1].a and x[i+1].a."""
    return tuple(
        _neighbour(node) if isinstance(node, Call) and node.function in ("PREV", "NEXT") else node for node in nodes
    )


def _neighbour(call: Call) -> Ref:
    refs = [node for node in call.arguments if isinstance(node, Ref)]
    if len(refs) != 1 or len(call.arguments) != 1 or refs[0].index is not None or (refs[0].column and call.column):
        hint = f"Write {call.function}(b.x), or b[{'i-1' if call.function == 'PREV' else 'i+1'}].x."
        raise BindError("NOT_SUPPORTED_YET", span=call.span, construct=f"This argument of {call.function}", hint=hint)
    index = "previous" if call.function == "PREV" else "next"
    column, at = (call.column, call.column_span) if call.column else (refs[0].column, refs[0].column_span)
    return replace(refs[0], index=index, column=column, column_span=at, span=call.span)


def events_of(nodes: Sequence[Node], modes: Mapping[str, str]) -> list[Event]:
    """The events that an expression speaks of, in order of appearance."""
    refs = (node for node in nodes if isinstance(node, Ref) and not isinstance(node.index, int))
    return list(dict.fromkeys((ref.variable, which(ref, modes)) for ref in refs))


def which(ref: Ref, modes: Mapping[str, str]) -> str:
    """Which event a reference means, where the clause looks at the 'previous', the 'next' or 'both' of its variable."""
    mode = modes.get(ref.variable)
    if mode is None:
        return EACH
    if mode == "both":
        return OF_THREE.get(str(ref.index), "middle")
    if mode == "previous":
        return EARLIER if ref.index == "previous" else LATER
    return LATER if ref.index == "next" else EARLIER


def modes_of(parts: Sequence[Sequence[Node]]) -> dict[str, str]:
    """For each variable of whose consecutive events a clause speaks, by which neighbour it does."""
    modes: dict[str, str] = {}
    trends = set[str]()  # the variables of whose neighbours INCREASING and DECREASING speak
    every = [node for nodes in parts for node in walk(nodes)]
    for node in every:
        if isinstance(node, Call) and node.function in ("INCREASING", "DECREASING"):
            trends |= {ref.variable for ref in node.arguments if isinstance(ref, Ref)}
    modes.update(dict.fromkeys(trends, "previous"))
    for node in every:
        if not isinstance(node, Ref) or node.index not in ("previous", "next"):
            continue
        if modes.setdefault(node.variable, str(node.index)) != node.index:
            if node.variable in trends:
                raise BindError(
                    "NOT_SUPPORTED_YET", span=node.span,
                    construct="[i+1] in one condition with INCREASING or DECREASING",
                    hint="Join the two with AND, or compare with [i-1] in place of INCREASING.",
                )  # fmt: skip
            modes[node.variable] = "both"
    return modes


# ---------------------------------------------------------------- one comparison


class Comparisons:
    """Takes comparisons apart. `sql` renders nodes over the bare columns of a row; `type_of` gives the type of an
    expression, `common` that in which two are compared."""

    def __init__(
        self, sql: Callable[[Sequence[Node]], Sql], type_of: Callable[[str], str], common: Callable[[str, str], str]
    ) -> None:
        self.sql, self.type_of, self.common = sql, type_of, common

    def compared(self, part: Bool, positive: bool, modes: Mapping[str, str]) -> Compared | None:
        """A part of a condition (or its NOT) as a comparison of two events; None if it is none."""
        nodes = unwrapped(part.nodes)
        if len(nodes) == 1 and isinstance(nodes[0], Call):
            return self._trend(nodes[0], positive)
        found = cut(nodes)
        if found is None:
            return None
        left, op, right = found
        op = op if positive else NOT[op]
        sides = events_of(left, modes), events_of(right, modes)
        if len(sides[0]) == len(sides[1]) == 1 and sides[0] != sides[1]:
            return self._made(sides[0][0], self.sql(left), op, sides[1][0], self.sql(right))
        return self._moved(left, op, right, modes)

    def _made(self, left: Event, left_sql: Sql, op: str, right: Event, right_sql: Sql) -> Compared:
        return Compared(left, left_sql, op, right, right_sql, self.common(left_sql.text, right_sql.text))

    def _trend(self, call: Call, positive: bool) -> Compared | None:
        """INCREASING(x.a), DECREASING(x.a)."""
        if call.function not in ("INCREASING", "DECREASING"):
            return None
        variables = {ref.variable for ref in call.arguments if isinstance(ref, Ref)}
        if len(variables) != 1:
            raise BindError("NOT_SUPPORTED_YET", span=call.span, construct=f"This argument of {call.function}")
        op = "<" if call.function == "INCREASING" else ">"
        (variable,) = variables
        sql = self.sql(call.arguments)
        return self._made((variable, EARLIER), sql, op if positive else NOT[op], (variable, LATER), sql)

    def _moved(self, left: Sequence[Node], op: str, right: Sequence[Node], modes: Mapping[str, str]) -> Compared | None:
        """Sums and differences moved so that each side speaks of one event; None where that cannot be done exactly."""
        terms = [(sign, nodes, True) for sign, nodes in _summands(left)]
        terms += [(sign, nodes, False) for sign, nodes in _summands(right)]
        owners: dict[Event, list[tuple[int, Sequence[Node], bool]]] = {}
        constants: list[tuple[int, Sequence[Node], bool]] = []
        for sign, nodes, on_left in terms:
            events = events_of(nodes, modes)
            if len(events) > 1 or not nodes:
                return None
            (owners.setdefault(events[0], []) if events else constants).append((sign, nodes, on_left))
        if len(owners) != 2:
            return None
        types = [self.type_of(self.sql(nodes).text) for _, nodes, _ in terms]
        kind = _exact(types)
        if kind is None or (kind == _LOCAL and not _is_difference(terms, types)):
            return None
        # What stays on the left is what counts positively there: the sum of a side must have a positive term first.
        stays = next((e for e, own in owners.items() if any((s > 0) == on_left for s, _, on_left in own)), None)
        if stays is None:
            return None
        goes = next(event for event in owners if event != stays)
        one = self._sum([(s if on_left else -s, n) for s, n, on_left in owners[stays]], kind)
        other = self._sum([(-s if on_left else s, n) for s, n, on_left in (*owners[goes], *constants)], kind)
        if one is None or other is None:
            return None
        return self._made(stays, one, op, goes, other)

    def _sum(self, terms: Sequence[tuple[int, Sequence[Node]]], kind: str) -> Sql | None:
        """The sum in exact arithmetic; None if it has no positive term to begin with."""
        ordered = sorted(terms, key=lambda term: -term[0])
        if not ordered or ordered[0][0] < 0:
            return None
        pieces: list[tuple[str, int, bool]] = []
        for sign, nodes in ordered:
            sql, before, after = self.sql(nodes), "(", ")"
            if kind and (kind != _LOCAL or self.type_of(sql.text) == "timestamp"):
                before, after = "CAST((", f") AS {kind})"
            joined = f" {'+' if sign > 0 else '-'} " if pieces else ""
            pieces += sql.wrapped(joined + before, after).pieces
        return Sql(tuple(pieces))


def _exact(types: Sequence[str]) -> str | None:
    """What to cast summands to so that sums are exact: '' for nothing; None if there is no such type."""
    if all(type in _SMALL for type in types):
        return "BIGINT"
    digits = [_digits(type) for type in types]
    if None not in digits:
        known = [found for found in digits if found is not None]
        whole, scale = max(w for w, _ in known), max(s for _, s in known)
        # Spark makes the type of a sum one digit wider, and rounds only where there is no room for that.
        return f"DECIMAL({whole + scale},{scale})" if whole + scale + len(types) <= 38 else None
    times = {type for type in types if type in ("timestamp", "timestamp_ntz", "date")}
    others = [type for type in types if type not in times]
    if len(times) == 1 and len(types) - len(others) == 2:
        # Of dates, a difference is in days; hours would make times of them, which not every day has 24 of.
        fine = ("interval day",) if times == {"date"} else _SPANS
        if not all(type in fine for type in others):
            return None
        return _LOCAL if times == {"timestamp"} else ""
    return None


_LOCAL = "TIMESTAMP_NTZ"  # what clocks show: Spark's difference of two TIMESTAMPs is that of these


def _is_difference(terms: Sequence[tuple[int, Sequence[Node], bool]], types: Sequence[str]) -> bool:
    """Is one TIMESTAMP subtracted from the other? One that an interval is added to moves by elapsed time instead."""
    signs = {(sign, on_left) for (sign, _, on_left), type in zip(terms, types, strict=True) if type == "timestamp"}
    return len(signs) == 2 and len({on_left for _, on_left in signs}) == 1


_SPANS = tuple(
    f"interval {first}{last}"
    for k, first in enumerate(("day", "hour", "minute", "second"))
    for last in ("", *(f" to {unit}" for unit in ("day", "hour", "minute", "second")[k + 1 :]))
)


def _digits(type: str) -> tuple[int, int] | None:
    """How many digits a number of an exact type can have before the point and after it."""
    found = {"tinyint": (3, 0), "smallint": (5, 0), "int": (10, 0), "bigint": (19, 0)}.get(type)
    if found is None and (decimal := re.fullmatch(r"decimal\((\d+),(-?\d+)\)", type)):
        precision, scale = int(decimal[1]), int(decimal[2])
        found = precision - scale, max(scale, 0)
    return found


def _summands(nodes: Sequence[Node]) -> Iterator[tuple[int, Sequence[Node]]]:
    """(sign, nodes) of the sum that an expression is; itself, if it is none."""
    nodes = unwrapped(nodes)
    if any(depth == 0 and plain_text(node) in _LOOSER for depth, node in with_depth(nodes)):
        yield 1, nodes
        return
    sign = 1
    current: list[Node] = []
    for depth, node in with_depth(nodes):
        upper = plain_text(node)
        if depth == 0 and upper in ("+", "-") and current and not _is_operator(current[-1]):
            yield sign, current
            sign, current = (1 if upper == "+" else -1), []
            continue
        current.append(node)
    yield sign, current


_LOOSER = ("||", "&", "|", "^", "<<", ">>", ">>>")  # operators that do not bind tighter than + and -


def with_depth(nodes: Sequence[Node]) -> Iterator[tuple[int, Node]]:
    """Each node with how many parentheses and CASEs are open around it; those that open and close count as inside."""
    depth = 0
    for node in nodes:
        upper = plain_text(node)
        opens, closes = upper in OPENING or upper == "CASE", upper in CLOSING or (upper == "END" and depth > 0)
        depth += opens
        yield depth, node
        depth -= closes


def _is_operator(node: Node) -> bool:
    return isinstance(node, Word) and node.upper in ("*", "/", "%", "||", "DIV", "+", "-", "INTERVAL")


def cut(nodes: Sequence[Node]) -> tuple[Sequence[Node], str, Sequence[Node]] | None:
    """(left, operator, right), if the nodes are one comparison."""
    found: list[tuple[int, int, str]] = []
    for k, (depth, node) in enumerate(with_depth(nodes)):
        upper = plain_text(node)
        if depth == 0:
            if upper in _OPERATORS:
                found.append((k, k + 1, _OPERATORS[upper]))
            elif upper == "IS":
                words = [plain_text(n) for n in nodes[k : k + 4]]
                if words[1:3] == ["DISTINCT", "FROM"]:
                    found.append((k, k + 3, "IS DISTINCT FROM"))
                elif words[1:4] == ["NOT", "DISTINCT", "FROM"]:
                    found.append((k, k + 4, "<=>"))
                else:
                    return None
            elif upper in ("BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP"):
                return None
    if len(found) != 1:
        return None
    ((begin, end, op),) = found
    return (nodes[:begin], op, nodes[end:]) if begin > 0 and end < len(nodes) else None


def unwrapped(nodes: Sequence[Node]) -> Sequence[Node]:
    """Without parentheses around the whole."""
    while len(nodes) > 2 and plain_text(nodes[0]) == "(" and plain_text(nodes[-1]) == ")":
        depth = 0
        for k, node in enumerate(nodes):
            depth += (plain_text(node) in OPENING) - (plain_text(node) in CLOSING)
            if depth == 0 and k < len(nodes) - 1:
                return nodes
        nodes = nodes[1:-1]
    return nodes


def plain_text(node: Node) -> str:
    return node.upper if isinstance(node, Word) else ""


# ---------------------------------------------------------------- BETWEEN and IN


def spelled_out(part: Bool) -> Bool:
    """BETWEEN as two comparisons, IN (…) as an OR of them: for conditions about several events."""
    nodes = tuple(unwrapped(part.nodes))
    for k, (depth, node) in enumerate(with_depth(nodes)):
        upper = plain_text(node)
        if depth == 0 and k and upper in ("BETWEEN", "IN"):
            negated = plain_text(nodes[k - 1]) == "NOT"
            subject, rest = nodes[: k - negated], nodes[k + 1 :]
            made = _between(subject, rest, node) if upper == "BETWEEN" else _in(subject, rest, node)
            if made is None:
                return part
            return Bool("not", (made,), part.nodes) if negated else made
    return part


def _between(subject: tuple[Node, ...], rest: tuple[Node, ...], at: Node) -> Bool | None:
    for k, (depth, node) in enumerate(with_depth(rest)):
        if depth == 0 and plain_text(node) == "AND":
            sides = (_atom(subject, ">=", rest[:k], at), _atom(subject, "<=", rest[k + 1 :], at))
            return Bool("and", sides, (*subject, at, *rest))
    return None


def _in(subject: tuple[Node, ...], rest: tuple[Node, ...], at: Node) -> Bool | None:
    inside = unwrapped(rest)
    if len(inside) == len(rest):
        return None
    items: list[list[Node]] = [[]]
    for depth, node in with_depth(inside):
        if depth == 0 and plain_text(node) == ",":
            items.append([])
        else:
            items[-1].append(node)
    sides = tuple(_atom(subject, "=", tuple(item), at) for item in items)
    return sides[0] if len(sides) == 1 else Bool("or", sides, (*subject, at, *rest))


def _atom(left: tuple[Node, ...], op: str, right: tuple[Node, ...], at: Node) -> Bool:
    word = Made(Token("op", op, at.span.start, at.span.end))
    return Bool("atom", (), (*left, word, *right))
