"""Conditions to filters: WHERE and FILTER as an AND of ORs, each side about one event or comparing two.

The rule of the language (semantics, "Filters"): NOT goes down to the comparisons, and each OR must be TRUE for every
choice of one event for each variable in it. For ORs whose sides speak of one variable each that is φ FILTER (P(x) OR
Q(y)) = (φ FILTER P(x)) OR (φ FILTER Q(y)); an OR with a comparison of two events stays one filter
(cersql/binding/comparisons.py takes the comparison apart, cersql/binding/arithmetic.py computes,
cersql/binding/tabulated.py has Spark decide what is neither). A part all of whose comparisons speak of the same
variable is never taken apart: it is one predicate, and Spark's three-valued logic inside it is the user's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from cersql.binding.about import about_one, needs_match, neighbours
from cersql.binding.agreements import Agreements
from cersql.binding.arithmetic import Arithmetic, Related
from cersql.binding.booleans import MAX_CLAUSES, MAX_JOINED, Bool, OrOf, check_length, conjunctive, structure
from cersql.binding.clause import Clause, Differ, Either, Literal, Negated, Sides, Split, any_of, joined
from cersql.binding.comparisons import (
    NOT,
    Compared,
    Comparisons,
    Event,
    events_of,
    modes_of,
    spelled_out,
)
from cersql.binding.expressions import Call, Node, Ref, Together, Word, rendered, walk
from cersql.binding.scope import display
from cersql.binding.tabulated import Tabulating
from cersql.binding.together import TRENDS, together_of
from cersql.errors import BindError
from cersql.language.syntax import Text
from planner.query import Column
from planner.sql import Sql


class _Split(NamedTuple):
    """A Split while its clauses are sorted in."""

    clauses: list[tuple[int | None, Clause]]
    across: list[tuple[int, Clause]]
    on_match: list[OrOf]
    judged: list[OrOf]


@dataclass
class Conditions(Agreements):
    """Lowers the conditions of one query."""

    decides: bool = False  # does a run need to know what holds, as soon as it takes an event?

    def split(
        self,
        condition: Text,
        in_scope: frozenset[str],
        negated: Negated,
        whole: bool,
        own: str | None = None,
        holds_many: Callable[[frozenset[str]], bool] = lambda _: False,
    ) -> Split:
        """`in_scope`: the marks that the filtered formula binds, `negated`: those of its negated parts; `whole`: it is
        the whole pattern, so that conditions on the match as a whole may stand in it; `own`: the mark whose columns
        stand bare in it; `holds_many`: should Spark compute arithmetic over these variables on whole matches?"""
        nodes = self.nodes(condition, in_scope | negated.keys(), own)
        tree = _spelled_out(structure(nodes))
        found = [clause for part in tree.conjuncts() for clause in conjunctive(part, about_one)]
        check_length(condition.span, len(found), MAX_JOINED)
        clauses, asked = self._all_together(found, in_scope, negated, whole)
        split = _Split(clauses, [], asked if whole else [], [] if whole else asked)
        for clause in found:
            if not any(together_of(part) for part, _ in clause):
                self._sort_in(split, clause, negated, whole, holds_many)
        split = split._replace(clauses=joined(split.clauses))
        check_length(
            condition.span,
            sum(len(part) for part in (split.clauses, split.across, split.on_match, split.judged)),
            MAX_CLAUSES,
            " on several events",
        )
        return Split(tuple(split.clauses), tuple(split.across), tuple(split.on_match), tuple(split.judged))

    def _sort_in(
        self, split: _Split, clause: OrOf, negated: Negated, whole: bool, holds_many: Callable[[frozenset[str]], bool]
    ) -> None:
        """Put a clause where it is asked."""
        owner, mixed = self._owner(clause, negated)
        call = next((n for side, _ in clause for n in walk(side.nodes) if self.of_whole(n)), None)
        if call is not None:
            if owner is not None:
                raise BindError(
                    "NOT_SUPPORTED_YET", span=call.span,
                    construct=f"{self._shown(call)}, about the events of a negated part together,",
                    hint="Ask it inside that part: !((B+ b) FILTER SUM(b.x) > 5), for example.",
                )  # fmt: skip
            created = isinstance(call, Ref) and call.variable in self.created
            self._refuse_neighbours(clause, "other conditions on created events" if created else self._shown(call))
            (split.on_match if whole else split.judged).append(clause)
            return
        if mixed:
            assert owner is not None
            split.across.append((owner, self._tabulated(clause)))
            return
        of_match = owner is None and whole and not neighbours(clause)
        named = frozenset(n.variable for side, _ in clause for n in walk(side.nodes) if isinstance(n, Ref))
        compared = self._grouped(clause, of_match and holds_many(named))
        if isinstance(compared, tuple):
            split.clauses.append((owner, compared))
        elif of_match and not self._must_decide(clause):
            split.on_match.append(clause)  # Spark computes it on whole matches
        else:
            split.clauses.append((owner, self._tabulated(clause)))

    def of_whole(self, node: Node) -> bool:
        """Can only the whole of what is filtered answer it? So it is of aggregates, and of events that AGG creates."""
        return needs_match(node) or (isinstance(node, Ref) and node.variable in self.created)

    def _must_decide(self, clause: OrOf) -> bool:
        """Must runs know whether it holds, and can they? What they cannot is refused once the strategy is bound."""
        return self.decides and isinstance(self._grouped(clause, tabulated=True), tuple)

    def _tabulated(self, clause: OrOf) -> Sides:
        """The sides of an OR, those tabulated that workers do not know. Raises BindError where that cannot be done."""
        known = self._grouped(clause)
        if isinstance(known, Bool) and _interval(known, self.columns) is None:
            known = self._grouped(clause, tabulated=True)
        if isinstance(known, Bool):
            raise _comparison(known, self.columns)
        return known

    def _refuse_neighbours(self, clause: OrOf, other: str) -> None:
        """A condition on the match as a whole does not speak of consecutive events."""
        for node in neighbours(clause):
            if isinstance(node, Call) and node.function in TRENDS:  # which is of all events together
                continue
            refs = (part for part in walk([node]) if isinstance(part, Ref))
            made = next((f"{ref.variable}.{ref.column}" for ref in refs if ref.variable in self.created), None)
            if made is not None:
                hint = f"INCREASING({made}) and DECREASING({made}) compare each with the next."
                construct = f"{self._shown(node)}, a neighbour of created events,"
                raise BindError("NOT_SUPPORTED_YET", span=node.span, construct=construct, hint=hint)
            raise BindError(
                "NOT_SUPPORTED_YET", span=node.span, construct=f"{self._shown(node)} beside {other}",
                hint="Join them with AND, if both are to hold.",
            )  # fmt: skip

    def _all_together(
        self, found: Sequence[OrOf], in_scope: frozenset[str], negated: Negated, whole: bool
    ) -> tuple[list[tuple[int | None, Clause]], list[OrOf]]:
        """The ORs with sides that speak of several events together; those that only the whole of what is filtered can
        answer."""
        clauses: list[tuple[int | None, Clause]] = []
        asked: list[OrOf] = []
        spoken = [clause for clause in found if any(together_of(part) for part, _ in clause)]
        alternatives: dict[int | None, list[OrOf]] = {}
        for clause in spoken:
            owner = self._owner_together(clause, negated)
            if owner is None and any(self._of_created(part) for part, _ in clause):
                asked.append(clause)
                continue
            if len(clause) == 1 and clause[0][1]:
                (part,) = (together_of(part) for part, _ in clause)
                assert part is not None
                clauses += [(owner, own) for own in self._said(part, in_scope)]
                continue
            about = self._about_whole(clause, in_scope, whole, owner)
            if isinstance(about, Differ):
                clauses.append((owner, about))
            elif about:
                asked.append(clause)
            else:
                alternatives.setdefault(owner, []).append(clause)
        for owner, ors in alternatives.items():
            clauses += [(owner, made) for made in self._either(ors, in_scope)]
        return clauses, asked

    def _of_created(self, part: Bool) -> bool:
        node = together_of(part)
        return node is not None and node.of is not None and node.of.variable in self.created

    def _owner_together(self, clause: OrOf, negated: Negated) -> int | None:
        """The negated part that it belongs to; what is said of the match stands for itself."""
        owner, mixed = self._owner(clause, negated)
        for part, positive in clause:
            node = together_of(part)
            if node is not None and (mixed or (owner is not None and (node.of is None or not positive))):
                raise BindError(
                    "NOT_SUPPORTED_YET", span=node.span, construct=f"{self._shown(node)} beside what must not happen",
                    hint="Join the two with AND.",
                )  # fmt: skip
        return owner

    def _about_whole(self, clause: OrOf, in_scope: frozenset[str], whole: bool, owner: int | None) -> Differ | bool:
        """Can only the whole of what is filtered answer it? Or does it say that events differ, which may be asked of
        two."""
        nodes = [(node, positive) for part, positive in clause if (node := together_of(part)) is not None]
        rest = tuple(side for side in clause if together_of(side[0]) is None)
        call = next((n for part, _ in rest for n in walk(part.nodes) if self.of_whole(n)), None)
        grouped = None if call else self._grouped(rest) if rest else ()
        if isinstance(grouped, tuple) and all(not positive and node.kind == "AGREE" for node, positive in nodes):
            agreements = tuple(own for node, _ in nodes for own in self.agreements(node, in_scope))
            return Differ(agreements, grouped, clause, whole, nodes[0][0].span)
        if isinstance(grouped, tuple) and all(positive for _, positive in nodes):
            return False
        self._refuse_neighbours(rest, self._shown(call or nodes[0][0]))
        if owner is not None:
            at = call or nodes[0][0]
            raise BindError(
                "NOT_SUPPORTED_YET", span=at.span, construct=f"{self._shown(at)} in this OR",
                hint="Join the two with AND.",
            )  # fmt: skip
        for node, _ in nodes:
            self.agreements(node, in_scope)  # its names are right
        return True

    def _either(self, ors: Sequence[OrOf], in_scope: frozenset[str]) -> list[Clause]:
        """An AND of ORs as few ORs of ANDs: (P OR Q) AND (P OR R) as P OR (Q AND R), where P is a Together."""
        if not all(ors):
            return []
        spoken = [one for clause in ors for part, _ in clause if (one := together_of(part)) is not None]
        sides = Counter(map(self._key, spoken))
        if not sides:
            grouped = [self._grouped(clause) for clause in ors]
            return [clause for clause in grouped if not isinstance(clause, Bool)]
        most = sides.most_common(1)[0][0]
        node = next(one for one in spoken if self._key(one) == most)
        inside: list[OrOf] = []
        others: list[OrOf] = []
        for clause in ors:
            rest = tuple(side for side in clause if not self._says(side[0], most))
            (others if len(rest) == len(clause) else inside).append(rest)
        said = self._said(node, in_scope)
        if not all(inside):  # it stands alone in one of them, which says it of them all
            return [*said, *self._either(others, in_scope)] if others else [*said]
        made: list[Clause] = [Either((said, tuple(self._either(inside, in_scope))), node.span)]
        return [*made, *self._either(others, in_scope)] if others else made

    def _says(self, part: Bool, key: tuple[str, str | None, tuple[str, ...]]) -> bool:
        node = together_of(part)
        return node is not None and self._key(node) == key

    def _key(self, node: Together) -> tuple[str, str | None, tuple[str, ...]]:
        """The same for two that say the same."""
        written = ("".join(map(self._shown, item)) for item in node.items)
        return node.kind, node.of.variable if node.of else None, tuple(map(self.scope.fold, written))

    def _said(self, node: Together, in_scope: frozenset[str]) -> tuple[Clause, ...]:
        """`[a, b]`, `x[a]` or `x[increasing(a)]` as an AND of clauses."""
        if node.kind == "AGREE":
            return tuple(self.agreements(node, in_scope))
        (call,) = node.items
        compared = self._compared(Bool("atom", (), call), True, modes_of([call]))
        assert compared is not None
        return ((compared,),)

    def _owner(self, clause: OrOf, negated: Negated) -> tuple[int | None, bool]:
        """The negated part that an OR belongs to, if it names a variable of one; and does a side compare it with the
        match around it?"""
        refs = [node for side, _ in clause for node in walk(side.nodes) if isinstance(node, Ref)]
        inside = [ref for ref in refs if ref.variable in negated]
        if not inside:
            return None, False
        owners = negated[inside[0].variable]
        for ref in inside:
            if negated[ref.variable] != owners or len(owners) > 1:
                other = inside[0] if ref is not inside[0] else ref
                raise BindError(
                    "TWO_NEGATED_PARTS", span=ref.span, first=other.written, second=ref.written,
                    hint="Each negated part has conditions of its own: join them with AND, and give every part a name. "
                    "One that stands inside another is compared with it by a FILTER in that.",
                )  # fmt: skip
        for side, _ in clause:
            found = [node for node in walk(side.nodes) if isinstance(node, Ref)]
            outside = next((ref for ref in found if ref.variable not in negated), None)
            within = next((ref for ref in found if ref.variable in negated), None)
            if outside is not None and within is not None:
                (owner,) = owners
                return owner, True
        outside = next((ref for ref in refs if ref.variable not in negated), None)
        if outside is not None:
            raise BindError(
                "NEGATED_OR", span=inside[0].span, negated=inside[0].written, other=outside.written,
                hint="Write the alternatives in the pattern, each with a condition of its own: one with "
                f"!({inside[0].written} …), OR one with the other condition.",
            )  # fmt: skip
        (owner,) = owners
        return owner, False

    # ------------------------------------------------------------ the sides of an OR

    def _grouped(self, clause: OrOf, listed: bool = False, tabulated: bool = False) -> Sides | Bool:
        """The sides of an OR, those about one event put together; sides without a variable join each of the others.

        A side about several events that is neither a comparison of two nor arithmetic is given back instead, or
        `tabulated` if it can be. `listed`: arithmetic is given back, too."""
        modes = modes_of([part.nodes for part, _ in clause])
        sides: dict[Event | None, list[Sql]] = {}
        compared: list[Compared | Related] = []
        for part, positive in clause:
            events = events_of(part.nodes, modes)
            trend = any(isinstance(node, Call) for node in part.nodes)
            if len(events) > 1 or trend:
                found = self._compared(part, positive, modes) or self._related(part, positive, modes, listed, tabulated)
                if found is None:
                    return part
                compared.append(found)
                continue
            sql = self.row_sql(part.nodes)
            sides.setdefault(events[0] if events else None, []).append(sql if positive else sql.wrapped("NOT (", ")"))
        constant = sides.pop(None, [])
        if constant and not sides and compared:
            first = compared[0]
            sides[
                first.left if isinstance(first, Compared) else first.operands[0][0]
            ] = []  # what holds of no event in particular can be asked of any
        if not sides and not compared:
            return (Literal(None, any_of(constant)),)
        literals = [
            Literal(event[0], any_of([*parts, *constant]), event[1])
            for event, parts in sides.items()
            if event is not None
        ]
        return (*compared, *literals)

    def _compared(self, part: Bool, positive: bool, modes: Mapping[str, str]) -> Compared | None:
        types = self.types
        assert types is not None
        columns = self.columns
        comparisons = Comparisons(
            self.row_sql, lambda sql: types.type_of(sql, columns), lambda a, b: types.common_type(a, b, columns)
        )
        return comparisons.compared(part, positive, modes)

    def _related(
        self, part: Bool, positive: bool, modes: Mapping[str, str], listed: bool, tabulated: bool
    ) -> Related | None:
        """A part of a condition (or its NOT) as arithmetic over events, or tabulated, if Spark takes it at all."""
        if any(isinstance(node, Call) for node in walk(part.nodes)):
            return None
        types, columns = self.types, self.columns
        assert types is not None
        types.check(self.text, self.row_sql(part.nodes), columns)
        if listed:
            return None
        arithmetic = Arithmetic(
            self.row_sql,
            lambda sql: types.type_of(sql, columns),
            lambda a, b: types.common_type(a, b, columns),
            types.ansi,
        )
        shown = rendered(self.text, part.nodes, lambda _: None).text
        if positive:
            made = arithmetic.related(part.nodes, lambda op: op, modes, shown)
        else:
            made = arithmetic.related(part.nodes, NOT.__getitem__, modes, f"NOT ({shown})")
        if made is None and tabulated:
            made = self._tabulating.related(part.nodes, positive, modes)
        return made and replace(made, spelled=self._tabulating.spelled(part.nodes, positive, modes))

    @cached_property
    def _tabulating(self) -> Tabulating:
        def steady(sql: Sql) -> bool:
            assert self.types is not None
            return self.types.computed(self.text, sql, self.columns).steady

        return Tabulating(self.text, self._row, self.row_sql, steady)


def _comparison(condition: Bool, columns: Sequence[Column]) -> BindError:
    variables = dict.fromkeys(node.variable for node in walk(condition.nodes) if isinstance(node, Ref))
    names = " and ".join(map(display, variables))
    otherwise = (
        "Here it compares values (a.x < b.x), is arithmetic over numbers and times (+ - * / %, abs, least, greatest, "
        "sqrt, datediff, timestampdiff), or speaks of two events, without a subquery and without functions that give "
        "another value each time."
    )
    return BindError(
        "NOT_SUPPORTED_YET", span=condition.span, construct=f"This condition on events of {names}",
        hint=_interval(condition, columns) or otherwise,
    )  # fmt: skip


def _interval(condition: Bool, columns: Sequence[Column]) -> str | None:
    """What to write for `b.ts - a.ts <= 60`; with a session Spark objects to it first."""
    times = {column.name.casefold(): column.type for column in columns if column.type.startswith(("timestamp", "date"))}
    named = [node.column for node in condition.nodes if isinstance(node, Ref)]
    tokens = [node.token for node in condition.nodes if isinstance(node, Word)]
    numbers = [token.text for token in tokens if token.kind == "number"]
    if len(numbers) != 1 or "-" not in (token.text for token in tokens):
        return None
    if not named or not all(name and name.casefold() in times for name in named):
        return None
    unit = "DAYS" if {times[name.casefold()] for name in named if name} == {"date"} else "SECONDS"
    return f"The difference of two times is an interval: compare it with INTERVAL {numbers[0]} {unit}, for example."


def _spelled_out(tree: Bool) -> Bool:
    """BETWEEN and IN about several events as comparisons."""
    if tree.parts:
        return replace(tree, parts=tuple(map(_spelled_out, tree.parts)))
    refs = {(node.variable, node.index) for node in tree.nodes if isinstance(node, Ref)}
    return spelled_out(tree) if len(refs) > 1 else tree
