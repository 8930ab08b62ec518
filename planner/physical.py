"""How a query runs: what Catalyst computes and drops, how rows are partitioned, and why.

Four ways to partition the stream:
- *keys*: PARTITION BY; each key's rows meet in one task;
- *slices*: no key, a window of time: ranges of the clock that overlap by the window. A match lies in the slice of its
  last event and the overlap before it (Theorem 0.1 of the inter-window paper), and that slice reports it;
- *ranges*: positions matter (`:`, a window of events) and there is neither: the rows are numbered first, those without
  a guard then dropped, and slices of positions overlap by what a match can span;
- *single*: none of these; one task, after the drop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from planner import cel
from planner.acel import Aggregate, Judged, Measured
from planner.automata.automaton import Automaton, Guard, own_type, show_guard
from planner.automata.hierarchy import hierarchy
from planner.choice import compares, skip_by
from planner.compile import lowered
from planner.deterministic import has_table, n_deterministic
from planner.formula import Formula
from planner.groups import WINDOW_COLUMN, why_listed
from planner.lower import Lowered, lower_window, rt_skip
from planner.query import Query
from planner.refusal import Refusal
from planner.rewrite.keys import keyed
from planner.rewrite.rules import Rewritten
from planner.sql import literal, quote
from planner.tabulated import Asked, tabulated
from planner.terms import Predicate
from runtime.chain_cea import EACH, EQUAL_ONES, LATE, NOBODY, ONE, RANGE, SEARCHED, Registers
from runtime.marks import is_round
from runtime.program import WORD_BITS, Consume, Later, Program, Strategy, symbol_words

# A slice is this many windows long, so that one row in so many is sent twice.
SLICE_WINDOWS = 64
LEAST_SLICE = 1 << 16  # positions in a slice at the least
COMPETING = ("NXT", "LAST", "MAX")  # strategies that compare matches with each other
MAX_SPAN = 100_000  # positions; a match that can span more is not worth cutting the order for


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
    (planner.candidates).
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
    tabulated: tuple[Asked, ...] = ()
    rewritten: Rewritten | None = None
    stepper: str = ""
    refusals: tuple[tuple[str, Refusal], ...] = ()

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
    found, tree = keyed(query, _sees_other_keys(query)), hierarchy(query.formula)
    asked = counting(found.query)
    query = listing(asked)
    made = lowered(
        query.formula, query.window, query.marks, query.strategy, consumption(query), query.skip, query.timeouts
    )
    program, automaton = replace(made.program, most_at_end=query.most_at_end), made.automaton
    later = _later(asked, program) if query is not asked else None
    if query.created is not None and query.created.identity is not None:
        created = {variable.mark for variable in query.variables if variable.created}
        visible = tuple(mark for mark in query.marks if mark not in created and not is_round(mark))
        later = replace(later or Later(ends_late=program.ends_late), distinct=visible)
    if query.groups is not None:
        listed = why_listed(query.groups, program, bool(query.on_match), later)
        query = replace(query, groups=replace(query.groups, listed=listed))
    if later is not None and later.timeouts:
        program = replace(program, all_starts=True)
    events = made.guards[: program.n_event_guards]
    sees_positions = observes_positions(automaton, query) if program.machine is None else sees_gaps(query)
    sees_positions = sees_positions or (later is not None and later.strict)
    laid_out = replace(query, consume=asked.consume, skip=asked.skip)  # which no slice can say alone
    tables = {number for number, _, _ in program.tables}
    asked_of_pairs = tuple(asked for asked in tabulated(query.formula) if asked.related.relation.table in tables)
    # Pairs of rows are sent to the key or slice of time that both are in; a position is known too late for that.
    span = None if asked_of_pairs else position_span(automaton, laid_out)
    layout, slice_size, why = _layout(laid_out, sees_positions, span)
    conditions = tuple(guard_sql(guard, query) for guard in made.guards)
    drops, why_drop = _drops(events, conditions[: len(events)], sees_positions, layout)
    return PhysicalPlan(
        query=query,
        automaton=automaton,
        program=program,
        guards=conditions,
        n_event_guards=len(events),
        layout=layout,
        drops=drops,
        span=span,
        slice_size=slice_size,
        type_column=only_type_column(events, query),
        type_in_symbol=program.machine is None
        and drops
        and len({own_type(guard) for guard in events}) == len(events) <= WORD_BITS,
        reasons=(
            *found.reasons,
            *filter(None, [tree]),
            why,
            why_drop,
            *_why_compared(made, asked_of_pairs),
            *_why_tabulated(asked_of_pairs, query),
            *_why_listed(asked, later),
            *_why_created(query.formula),
            *_why_grouped(query),
        ),
        terms=made.terms,
        later=later,
        tabulated=asked_of_pairs,
        rewritten=made.rewritten,
        stepper=made.stepper,
        refusals=made.refusals,
    )


def counting(query: Query) -> Query:
    """The query whose runs count events, where WHERE asks for numbers of them.

    `A+ a ; B b WHERE COUNT(a) >= 3` has 2ⁿ matches, and what fails is not listed; and beside CONSUME BY and AFTER MATCH
    SKIP no second pass has to choose among what is. Runs that compare events have kernels, and runs of SKIP TILL NEXT
    MATCH must take what they can: there Spark counts.
    """
    if not any(query.counts) or query.timeouts or compares(query.formula):
        return query
    if query.strategy == "NEXT_MATCH" or query.consume == "ANY":
        return query
    if query.formula.contains((cel.NotBefore, cel.NotAfter)):  # which stand around all else
        return query
    drops = query.consume != "NONE" or query.skip is not None
    if not drops and not _has_gaps(query.formula):
        return query
    formula, left = query.formula, []
    for sql, clauses in zip(query.on_match, query.counts, strict=True):
        if clauses is None:
            left.append((sql, clauses))
            continue
        for sides in clauses:
            formula = Measured(formula, sides, " OR ".join(map(str, sides)))
    kept = tuple(sql for sql, _ in left), tuple(clauses for _, clauses in left)
    return replace(query, formula=formula, on_match=kept[0], counts=kept[1])


def _has_gaps(formula: Formula) -> bool:
    """Is there a loop that may skip events?"""
    return any(
        isinstance(part, cel.Iteration) or (isinstance(part, cel.Repeat) and not part.contiguous and part.high != 1)
        for part in formula.walk(only_positive=True)
    )


def listing(query: Query) -> Query:
    """The query whose matches are listed, where a second pass chooses among those that WHERE leaves; else itself."""
    competes = query.strategy in COMPETING or query.consume != "NONE" or query.skip is not None or query.timeouts
    judged = query.created is not None and query.created.judges
    if not (query.on_match or judged) or not competes:
        return query
    strict = query.strategy == "STRICT" and query.timeouts  # a match with gaps is one where timeouts are asked
    strategy = "ALL" if query.strategy in COMPETING or strict else query.strategy
    return replace(query, strategy=strategy, consume="NONE", skip=None)


def _later(query: Query, program: Program) -> Later:
    """What the second pass does."""
    skip = None
    if query.skip is not None:
        skip = rt_skip(query.skip, skip_by(query.strategy))
    competes = query.strategy in COMPETING and skip is None
    return Later(
        strategy=cast(Strategy, query.strategy) if competes else "ALL",
        consume=cast(Consume, consumption(query)),
        skip=skip,
        timeouts=query.timeouts,
        ends_late=program.ends_late,
        window=lower_window(query.window),
        strict=query.strategy == "STRICT" and query.timeouts,
    )


def _why_listed(query: Query, later: Later | None) -> tuple[str, ...]:
    """Conditions that only a whole match answers, `SUM(b.x) > 10`, act on matches that are listed, all of them."""
    if later is not None:
        named = {
            query.strategy: query.strategy in COMPETING or later.strict,
            f"CONSUME BY {query.consume}": query.consume != "NONE",
            "AFTER MATCH SKIP": query.skip is not None,
            "WITH TIMEOUTS": query.timeouts,
        }
        chooses = ", ".join(name for name, is_asked in named.items() if is_asked)
        why = f"all matches are listed, since WHERE asks about them as a whole; {chooses}: in a second pass, slow"
        return (why, *_why_listed(replace(query, on_match=()), None))
    having = query.having if query.groups is None else ()
    asks = [clause for clause, on in (("WHERE", query.on_match), ("HAVING", having)) if on]
    if not asks:
        return ()
    verb = "asks" if len(asks) == 1 else "ask"
    return (f"all matches are listed and then filtered, since {' and '.join(asks)} {verb} about them as a whole",)


def _why_created(formula: Formula) -> tuple[str, ...]:
    """What aggregates inside the pattern cost."""
    found = []
    for part in formula.walk():
        match part:
            case Aggregate(_, _, marks):
                names = ", ".join(sorted(mark for mark in marks if not is_round(mark)))
                found.append(f"{names} of AGG: computed of each match that is listed, at a cost by its events")
            case Judged(_, _, condition):
                why = f"since {condition} asks about a part as a whole"
                found.append(f"all matches are listed and then filtered, {why}")
            case Measured(_, sides, condition):
                few = all(side.holds_few for side in sides)
                cost = "few values, so that matches that fail are never listed" if few else "as many values as occur"
                found.append(f"{condition}: runs hold registers, of {cost}")
    return tuple(dict.fromkeys(found))


def _why_grouped(query: Query) -> tuple[str, ...]:
    """How groups of matches are summed up."""
    if query.groups is None:
        return ()
    if query.groups.listed:
        return (f"groups are made of matches that are listed, since {query.groups.listed}",)
    cost = (
        "once a node"
        if query.window is None or query.groups.bounds
        else "once a node inside the window of each event that ends matches"
    )
    return (f"groups are summed up in the compact set, {cost}: no match is listed",)


def _sees_other_keys(query: Query) -> str | None:
    """What in the query could see events with other values of an attribute on which its matches agree."""
    if query.consume != "NONE" or query.skip is not None:
        return "consumption and skipping speak of all starts"
    if sees_gaps(query):
        return "positions in the whole stream matter"
    if query.formula.contains((cel.Strategy,)):
        return "a strategy inside the pattern chooses among all events"
    return None


def _why_tabulated(asked: tuple[Asked, ...], query: Query) -> tuple[str, ...]:
    """Which pairs of rows Spark looks at."""
    which = " ".join(
        ("of one key",) * bool(query.partition_by or query.keys) + ("within the window",) * in_window(query)
    )
    pairs = f"the pairs of rows {which}" if which else "all pairs of rows, since there is no key and no window of time"
    return tuple(
        f"Spark tabulates {related} over {pairs}, before runs look it up: a cost by the pairs that meet"
        for related, _ in asked
    )


def in_window(query: Query) -> bool:
    """Can only rows meet that are no farther apart than a window of whole time units?"""
    window, clock = query.window, query.column(query.order_by[0].column).type
    if window is None or window.kind != "time" or clock in ("float", "double"):
        return False
    return isinstance(window.size, int) and window.size < 1 << 61


def _why_compared(made: Lowered, asked: tuple[Asked, ...]) -> tuple[str, ...]:
    """How events are compared, and what that costs."""
    if not made.terms:
        if made.program.family != "registers":
            return ()
        return (f"what must not happen is kept in registers, {_cost(made.program.machine)}",)
    codes = {term.sql for related, _ in asked for term in related.terms}
    names = [sql for sql, _ in made.terms if sql not in codes]
    names += dict.fromkeys(str(related) for related, _ in asked)
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    if made.program.family == "pcea":
        return (f"runs for each event of ALL go side by side, joined by {shown}: a logarithmic cost per event",)
    if made.program.family in ("registers", "skipping"):
        picks = f"; where a match ends, {made.program.pick} looks at all that its window holds"
        picked = picks if made.program.pick != "ALL" else ""
        return (f"events are compared by {shown} in registers, {_cost(made.program.machine)}{picked}",)
    cost = "slow, at a cost by the values that wait in the window"
    return (f"events are compared by {shown} in the general engine; {cost}",)


def _cost(machine: object) -> str:
    """What an event costs where runs wait with a value."""
    assert isinstance(machine, Registers)
    if machine.special[LATE] != NOBODY:
        return "a cost by the starts that wait for their windows to close"
    return LOOKS[int(machine.looks.max(initial=ONE))]


LOOKS = {
    ONE: "found by an index: a constant cost per event",
    RANGE: "found by an ordered index: a logarithmic cost per event",
    EQUAL_ONES: "found by an index: a cost by the values that wait beside an equal one in the window",
    SEARCHED: "found by a search: at the most a cost by what happened in the window",
    EACH: "a cost by the values that wait in the window",
}


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


def type_rank_sql(plan: PhysicalPlan) -> str:
    """A small number that orders the values of the type column as far as the pattern can tell them apart.

    A value of the pattern gets an odd number, what lies between two of them an even one; binary order, as Spark's.
    """
    assert plan.type_column is not None
    column = quote(plan.type_column)
    values = sorted({t for t, _ in plan.query.types}, key=lambda value: value.encode())
    terms = [f"IF({column} >= {literal(v)}, 1, 0) + IF({column} > {literal(v)}, 1, 0)" for v in values]
    return f"({' + '.join(terms)})"


def observes_positions(automaton: Automaton, query: Query) -> bool:
    """Can the pattern tell whether rows without a guard lie between its events?

    It can if some state that a match can be in does not wait (`:`), or if the window counts events.
    """
    if query.window is not None and query.window.kind == "events":
        return True
    waits = {t.source for t in automaton.transitions if not t.label and t.source == t.target}
    goes_on = {t.source for t in automaton.transitions}
    return bool(goes_on - waits)


def consumption(query: Query) -> str:
    """CONSUME BY ANY is CONSUME BY PARTITION where there is one partition."""
    return query.consume if query.partition_by or query.consume == "NONE" else "PARTITION"


def sees_gaps(query: Query) -> bool:
    """As observes_positions, for a formula whose automaton is composed: does anything in it count or touch rows?"""
    return (
        (query.window is not None and query.window.kind == "events")
        or query.strategy == "STRICT"
        or query.formula.sees_gaps()
    )


def can_be_sliced(query: Query) -> bool:
    """Is a match decided by the rows of its window before its end alone?

    Not where the stream's beginning counts (START), where matches compete or are consumed, or where one becomes known
    only later.
    """
    if query.consume != "NONE" or query.skip is not None or query.strategy not in ("ALL", "STRICT", "NEXT_MATCH"):
        return False
    return not query.timeouts and not query.formula.contains((cel.Start, cel.Strategy, cel.NotAfter))


def position_span(automaton: Automaton, query: Query) -> int | None:
    """The most positions that a match can cover, or None if that is unbounded, or too many to cut the order by.

    A window of n events bounds it by n; a pattern without any skipping after its first event by its longest path.
    """
    by_window = int(query.window.size) if query.window is not None and query.window.kind == "events" else None
    if not can_be_sliced(query):
        return None
    by_path = longest_path(automaton) if query.formula.is_flat() else None
    known = [n for n in (by_window, by_path) if n is not None]
    return min(known) if known and min(known) <= MAX_SPAN else None


def longest_path(automaton: Automaton) -> int | None:
    """Events on the longest path from an initial to a final state, waiting before the first not counted."""
    after: dict[int, list[int]] = {}
    started = {t.target for t in automaton.transitions if t.label}
    for t in automaton.transitions:
        if not t.label and t.source in started:
            return None
        if t.label:
            after.setdefault(t.source, []).append(t.target)
    depth: dict[int, int] = {}
    open_: set[int] = set()

    def longest(state: int) -> int | None:
        if state in open_:
            return None
        if state not in depth:
            open_.add(state)
            best = 0
            for target in after.get(state, ()):
                below = longest(target)
                if below is None:
                    return None
                best = max(best, below + 1)
            open_.discard(state)
            depth[state] = best
        return depth[state]

    lengths = [longest(state) for state in automaton.initial]
    return None if None in lengths else max((n for n in lengths if n is not None), default=0)


def _layout(query: Query, sees_positions: bool, span: int | None) -> tuple[str, int | None, str]:
    window = query.window
    if query.consume == "ANY" and query.partition_by:
        return "single", None, "CONSUME BY ANY: what one key consumes is lost to all, so one task reads all in order"
    if query.keys and not query.partition_by:
        return "keys", None, "each key's rows meet in one task"
    if query.partition_by:
        names = [name for name in query.partition_by if name != WINDOW_COLUMN]
        by = " and ".join([*([f"PARTITION BY {', '.join(names)}"] if names else []), *_why_windows(query)])
        return "keys", None, f"{by}: each key's rows meet in one task"
    if window is not None and window.kind == "time" and isinstance(window.size, int) and can_be_sliced(query):
        size = max(1, SLICE_WINDOWS * window.size)
        if size < 1 << 62:
            return "slices", size, f"no PARTITION BY, a window of time: slices of {SLICE_WINDOWS} windows, in parallel"
    if sees_positions:
        if span is not None:
            size = max(SLICE_WINDOWS * span, LEAST_SLICE)
            return (
                "ranges",
                size,
                f"positions matter, and a match spans at most {span}: numbered, then cut, in parallel",
            )
        return "ranges", None, "positions matter, over an unbounded span: numbered in parallel, matched in one task"
    if window is not None and window.kind == "time" and isinstance(window.size, int):
        return "single", None, "no PARTITION BY, and matches depend on more than their own window: matched in one task"
    return "single", None, "no PARTITION BY and no window of whole time units: matched in one task"


def _why_windows(query: Query) -> tuple[str, ...]:
    sliding = None if query.groups is None else query.groups.sliding
    return () if sliding is None else (f"a row for each window of {sliding.size} every {sliding.slide}",)


def _drops(
    guards: tuple[Guard, ...], conditions: tuple[str, ...], sees_positions: bool, layout: str
) -> tuple[bool, str]:
    if "TRUE" in conditions:
        return False, "every row can be part of a match, so none is dropped"
    if not sees_positions:
        shown = " or ".join(show_guard(guard) for guard in guards[:3]) + (" or …" if len(guards) > 3 else "")
        return True, f"rows that satisfy none of the {len(guards)} conditions ({shown}) never leave Spark"
    if layout == "ranges":
        return (
            False,
            "rows are numbered before those that satisfy no condition are dropped, since their positions matter",
        )
    return False, "rows that satisfy no condition are kept, since the pattern sees what lies between its events"


def symbol_sql(guards: tuple[str, ...]) -> list[tuple[str, str]]:
    """(name, SQL) of the symbol columns: each guard that is TRUE sets its bit; the narrowest type that holds them."""
    columns = []
    for w, word in enumerate(symbol_words(len(guards))):
        bits = len(word)
        type = _narrowest(bits)
        suffix = "L" if bits > 31 else ""
        terms = [f"IF({guards[i]}, {1 << (i - word.start)}{suffix}, 0{suffix})" for i in word]
        columns.append((f"__cersql_symbol{w}", f"CAST({' + '.join(terms) or '0'} AS {type})"))
    return columns


def packed_symbol_sql(plan: PhysicalPlan) -> str | None:
    """The symbol and, above its bits, the rank of the type, in one number; None if that is not the whole order of ties.

    Where no row is dropped, each column that need not cross into Python counts.
    """
    query = plan.query
    only_types = set(query.reads) <= {plan.type_column, *query.partition_by}
    if plan.type_column is None or plan.type_in_symbol or not only_types:
        return None
    bits = len(plan.guards) + (2 * len(query.types)).bit_length()
    if bits > 31 or any(order.column == plan.type_column for order in query.order_by):
        return None
    symbol = symbol_sql(plan.guards)[0][1]
    return f"CAST({type_rank_sql(plan)} * {1 << len(plan.guards)} + {symbol} AS {_narrowest(bits)})"


def _narrowest(bits: int) -> str:
    return "TINYINT" if bits <= 7 else "SMALLINT" if bits <= 15 else "INT" if bits <= 31 else "BIGINT"


def drop_sql(plan: PhysicalPlan) -> str | None:
    """The filter before the shuffle, or None. A NULL time passes, so that it is found."""
    if not plan.drops:
        return None
    time = quote(plan.query.order_by[0].column)
    guards = plan.guards[: plan.n_event_guards]
    return " OR ".join([*(f"({guard})" for guard in guards), f"{time} IS NULL"])
