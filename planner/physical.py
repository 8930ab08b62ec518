"""How a query runs: its program, what Catalyst computes and drops, how rows are partitioned, and why.

planner.second_pass says what is chosen after matches are listed, planner.layout how the stream is cut, planner.reasons
what EXPLAIN says of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.automata.automaton import Automaton, Guard, own_type
from planner.automata.hierarchy import hierarchy
from planner.candidates import Asked
from planner.compile import lowered
from planner.deterministic import has_table, n_deterministic
from planner.groups import why_listed
from planner.layout import dropping, layout_of, observes_positions, position_span, sees_gaps
from planner.query import Query
from planner.reasons import sees_other_keys, why_all_listed, why_compared, why_created, why_grouped, why_tabulated
from planner.refusal import Refusal
from planner.rewrite.keys import keyed
from planner.rewrite.rules import Rewritten
from planner.second_pass import consumption, counting, later_of, listing
from planner.sieve import NO_SIEVE, Sieve, sieve
from planner.sql import literal, quote
from planner.tabulated import Tabulated, tabulated
from planner.terms import Predicate
from runtime.marks import is_round
from runtime.program import WORD_BITS, Later, Program


@dataclass(frozen=True)
class PhysicalPlan:
    """The plan of a query. `layout` is keys, slices, ranges or single; `drops`: rows without a guard never leave Spark.

    `guards`: what each bit of the symbol demands, as Spark SQL; a row that satisfies none of the first `n_event_guards`
    can neither be part of a match nor prevent one. `span`: the greatest number of positions that a match covers, if it
    is bounded. `type_column`: the TYPE column, if every guard demands one value of it, so that no other values need be
    told apart; `type_in_symbol`: the symbol of every row that is kept says that value, and sorts like it. `later`: what
    is chosen in a second pass (runtime.selection.rivals), of matches that are listed. `tabulated`: the conditions on
    two events that Spark decides before, pair by pair. `reasons`: why it is so, for EXPLAIN. `rewritten`: the formula
    that the program was made from; `stepper`: what runs it; `refusals`: what would be faster, and why it does not
    (planner.candidates). `sifts`: the conditions on aggregates by which matches are left out.
    """

    query: Query
    automaton: Automaton
    program: Program
    guards: tuple[str, ...]
    n_event_guards: int
    layout: str
    drops: bool
    span: int | None
    slice_size: int | None
    type_column: str | None
    type_in_symbol: bool
    reasons: tuple[str, ...]
    terms: tuple[tuple[str, str], ...] = ()
    later: Later | None = None
    tabulated: tuple[Tabulated, ...] = ()
    rewritten: Rewritten | None = None
    stepper: str = ""
    refusals: tuple[tuple[str, Refusal], ...] = ()
    sifts: Sieve = NO_SIEVE

    def __str__(self) -> str:
        lines = [f"layout: {self.layout}", f"rows dropped before the shuffle: {'yes' if self.drops else 'none'}"]
        lines += [f"  {reason}" for reason in self.reasons]
        lines.append(f"run by: {self.stepper}")
        lines += [f"  not by {name}: {why}" for name, why in self.refusals]
        composed = "" if self.program.machine is None else " in its flat parts, composed where it runs"
        size = f"states: {self.automaton.n_states}, transitions: {len(self.automaton.transitions)}"
        lines.append(size + composed)
        if has_table(self.program):
            lines.append(f"deterministic states, for one condition at a time: {n_deterministic(self.program)}")
        lines += [f"term {i}: {sql}{f' as {type}' if type else ''}" for i, (sql, type) in enumerate(self.terms)]
        lines += [f"condition {i} (bit {i} of the symbol): {guard}" for i, guard in enumerate(self.guards)]
        return "\n".join(lines)


def plan(query: Query) -> PhysicalPlan:
    """Choose how to run a query. Raises PlanError if its automaton is too large."""
    found, tree = keyed(query, sees_other_keys(query)), hierarchy(query.formula)
    asked = counting(found.query)
    query = listing(asked)
    wanted = Asked(
        query.formula, query.window, query.marks, query.strategy, consumption(query), query.skip, query.timeouts,
        dict(query.demands), query.groups is not None,
    )  # fmt: skip
    made = lowered(wanted)
    program, automaton = replace(made.program, most_at_end=query.most_at_end), made.automaton
    later = _second_pass(asked, query, program)
    sifts = sieve(asked, query, program, later)
    program = replace(program, sieve=sifts.conditions, n_weights=len(sifts.columns))
    if query.groups is not None:
        listed = why_listed(query.groups, program, bool(query.on_match), later)
        query = replace(query, groups=replace(query.groups, listed=listed))
    if later is not None and later.timeouts:
        program = replace(program, all_starts=True)
    tables = {number for number, _, _ in program.tables}
    pairs = tuple(asked for asked in tabulated(query.formula) if asked.related.relation.table in tables)
    events = made.guards[: program.n_event_guards]
    sees_positions = observes_positions(automaton, query) if program.machine is None else sees_gaps(query)
    sees_positions = sees_positions or (later is not None and later.strict)
    laid_out = replace(query, consume=asked.consume, skip=asked.skip)  # which no slice can say alone
    # Pairs of rows are sent to the key or slice of time that both are in; a position is known too late for that.
    span = None if pairs else position_span(automaton, laid_out)
    layout, slice_size, why = layout_of(laid_out, sees_positions, span)
    guards = tuple(guard_sql(guard, query) for guard in made.guards)
    drops, why_drop = dropping(events, guards[: len(events)], sees_positions, layout)
    types_differ = len({own_type(guard) for guard in events}) == len(events) <= WORD_BITS
    return PhysicalPlan(
        query, automaton, program, guards, len(events), layout, drops, span, slice_size,
        type_column=only_type_column(events, query),
        type_in_symbol=program.machine is None and drops and types_differ,
        reasons=(
            *found.reasons,
            *filter(None, [tree]),
            why,
            why_drop,
            *why_compared(made, pairs),
            *why_tabulated(pairs, query),
            *why_all_listed(asked, later, sifts),
            *why_created(query.formula, program, sifts),
            *why_grouped(query),
        ),
        terms=made.terms, later=later, tabulated=pairs,
        rewritten=made.rewritten, stepper=made.stepper, refusals=made.refusals, sifts=sifts,
    )  # fmt: skip


def _second_pass(asked: Query, query: Query, program: Program) -> Later | None:
    """What is chosen among the matches of `query`, which are listed where it is not as it was `asked`."""
    later = later_of(asked, program) if query is not asked else None
    if query.created is None or query.created.identity is None:
        return later
    created = {variable.mark for variable in query.variables if variable.created}
    visible = tuple(mark for mark in query.marks if mark not in created and not is_round(mark))
    return replace(later or Later(ends_late=program.ends_late), distinct=visible)


def guard_sql(guard: Guard, query: Query) -> str:
    """The conjunction of a guard's types and predicates, on a row."""
    types = dict(query.types)
    parts = [types[part] for part in sorted(part for part in guard if isinstance(part, str))]
    parts += sorted(part.sql for part in guard if isinstance(part, Predicate))
    return " AND ".join(f"({part})" for part in parts if part != "TRUE") or "TRUE"


def only_type_column(guards: tuple[Guard, ...], query: Query) -> str | None:
    """The TYPE column, if every guard demands one value of it."""
    tests, column = dict(query.types), query.sources[0].type_column
    if len(query.sources) > 1 or column is None or query.column(column).type != "string":
        return None
    types = [own_type(guard) for guard in guards]
    simple = all(t is not None and tests[t] == f"{quote(column)} = {literal(t)}" for t in types)
    return column if simple else None
