"""Any stage of a query as text; stable, so that prints are tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from cersql.language import syntax
from cersql.language.syntax import Name, Text, TypeRef
from cersql.show import drawing
from planner import cel
from planner.acel import Aggregate, Judged
from planner.automata import automaton
from planner.deterministic import determinize
from planner.formula import Formula
from planner.physical import PhysicalPlan
from planner.query import Query
from planner.relational import show as relational_show
from planner.relational.planning import relational
from runtime import nodes
from runtime.arrays import AnyArray
from runtime.errors import Span
from runtime.marks import is_hidden, is_round, visible_name
from runtime.program import ALWAYS, SKIP, Program

STAGES = ("syntax", "cel", "rewritten", "automaton", "deterministic", "physical", "program", "relational")
MOST_LINES = 2_000  # of a stage
DRAWINGS = ("dot", "mermaid", "svg")


class Stages(Protocol):
    """A query at every stage of its way."""

    @property
    def syntax(self) -> syntax.Query: ...
    @property
    def query(self) -> Query: ...
    @property
    def plan(self) -> PhysicalPlan: ...
    @property
    def program(self) -> Program: ...


def explain_stage(compiled: Stages, stage: str | None) -> str:
    """One of STAGES, or the automaton as one of DRAWINGS; None gives the stages that a user asks for first."""
    match stage:
        case None:
            parts = ("cel", "automaton", "physical")
            return "\n\n".join(f"== {part} ==\n{explain_stage(compiled, part)}" for part in parts)
        case "syntax":
            return _bounded(show_syntax(compiled.syntax.pattern))
        case "cel":
            return _bounded(show_query(compiled.query, order_of_effect(compiled.syntax, compiled.query)))
        case "rewritten":
            return _bounded(show_rewritten(compiled.plan))
        case "automaton":
            return _bounded(show_automaton(compiled))
        case "deterministic":
            return determinize(compiled.program)
        case "physical":
            return _bounded(str(compiled.plan))
        case "program":
            return _bounded(show_program(compiled.program))
        case "relational":
            return _bounded(relational_show.show(relational(compiled.query)))
        case "dot":
            return automaton.dot(drawing.most_of(compiled.plan.automaton))
        case "mermaid":
            return drawing.mermaid(drawing.most_of(compiled.plan.automaton))
        case "svg":
            return drawing.svg(compiled.plan.automaton)
    raise ValueError(f"unknown stage {stage!r}; there are {', '.join(STAGES + DRAWINGS)}")


def _bounded(text: str) -> str:
    """The text without what nobody reads."""
    lines = text.split("\n")
    if len(lines) <= MOST_LINES:
        return text
    return "\n".join([*lines[:MOST_LINES], f"… and {len(lines) - MOST_LINES} more lines"])


def show_syntax(node: Any, depth: int = 0) -> str:
    """A tree of syntax nodes, one a line, without places: `Alias x`, `Repeat low=1`, `FilterPart 'x.a > 1'`."""
    if isinstance(node, tuple):
        return "\n".join(show_syntax(item, depth) for item in node)
    head, parts = [type(node).__name__], []
    for name, value in vars(node).items():
        if isinstance(value, Span) or value is None or value is False:
            continue
        if isinstance(value, Name):
            head.append(value.value)
        elif isinstance(value, Text):
            head.append(f"'{' '.join(value.value.split())}'")
        elif isinstance(value, str):
            head.append(value)
        elif value is True:
            head.append(name)
        elif isinstance(value, int):
            head.append(f"{name}={value}")
        else:
            parts.append(show_syntax(value, depth + 1))
    if isinstance(node, TypeRef) and node.name is None:
        head.append("ANY")
    return "\n".join(["  " * depth + " ".join(head), *parts])


def show_query(query: Query, steps: Iterable[str]) -> str:
    """A bound query: the formula, what stands around it, and the order of effect."""
    lines = [_visible(query.formula, frozenset(query.marks)).show(), ""]
    for source in query.sources:
        where = f", WHERE {' '.join(source.where.text.split())}" if source.where is not None else ""
        lines.append(f"source {source.alias}: {source.relation or 'the DataFrame'}{where}")
    lines += [f"type {name}: {sql}" for name, sql in query.types]
    if query.partition_by:
        lines.append(f"partition by: {', '.join(query.partition_by)}")
    order = (f"{order.column}{' NULLS LAST' if order.nulls_last else ''}" for order in query.order_by)
    lines.append(f"order by: {', '.join(order)}")
    lines.append(f"ties by: {', '.join(query.reads) or 'nothing else that the pattern reads'}")
    if query.window is not None:
        lines.append(f"within: {_window(query)}")
    if query.strategy != "ALL":
        lines.append(f"semantics: {query.strategy}")
    if query.consume != "NONE":
        lines.append(f"consume by: {query.consume}")
    if query.skip is not None:
        lines.append(f"after match skip: {' '.join([query.skip.to, *filter(None, [query.skip.mark])])}")
    if query.timeouts:
        lines.append("with timeouts")
    if query.emit is not None:
        lines.append(f"emit on: {query.emit}, of a stream")
    for variable, used in zip(query.variables, query.used, strict=True):
        if (used or not is_hidden(variable.mark)) and not is_round(variable.mark):
            kind = "one event" if variable.single else "many events"
            name = f"all {variable.name}" if is_hidden(variable.mark) else variable.name
            lines.append(f"variable {name}: {kind}, RETURN reads {', '.join(used) or 'no column'}")
    lines += [f"computed of each match: {own.shown} as {own.column}" for own in query.of_events]
    lines += [f"condition on the match: {sql.text}" for sql in query.on_match]
    lines += [f"having: {sql.text}" for sql in query.having]
    if query.limit is not None:
        lines.append(f"limit: {query.limit}")
    if query.most_at_end is not None:
        lines.append(f"limit: {query.most_at_end} of the matches that end together")
    lines.append(f"order of effect: {', '.join(steps)}")
    lines += [f"warning: {warning}" for warning in query.warnings]
    return "\n".join(lines)


def show_rewritten(plan: PhysicalPlan) -> str:
    """The formula that the program was made from, the rules that changed it, and the keys that equalities became."""
    assert plan.rewritten is not None
    query = plan.query
    lines = [_visible(plan.rewritten.formula, frozenset(query.marks)).show(), "", str(plan.rewritten)]
    lines += [f"equal in every match, so a key: {key.sql}" for key in query.keys]
    return "\n".join(lines)


def order_of_effect(written: syntax.Query, query: Query) -> list[str]:
    """What acts on what: the clauses of the query in the order of their effect, whatever order they are written in."""
    steps = {
        "where, of rows": any(source.where is not None for source in query.sources),
        "partition by": bool(query.partition_by),
        "pattern": True,
        "where": bool(written.where) or (written.rows is not None and not any(s.where for s in query.sources)),
        "within": query.window is not None,
        "semantics": query.strategy != "ALL",
        "consume by": query.consume != "NONE",
        "after match skip": query.skip is not None,
        "return": True,
        "having": written.having is not None,
        "limit": query.limit is not None or query.most_at_end is not None,
    }
    return [step for step, applies in steps.items() if applies]


def _window(query: Query) -> str:
    """WITHIN in the unit in which the engine measures it."""
    assert query.window is not None
    type = query.column(query.order_by[0].column).type
    unit = "days" if type == "date" else "microseconds" if type.startswith("timestamp") else ""
    return f"{query.window} {unit}".rstrip() if query.window.kind == "time" else str(query.window)


def _visible(formula: Formula, marks: frozenset[str]) -> Formula:
    """The formula without the planner's own marks that nobody asked for."""
    match formula:
        case cel.Event(type, own):
            formula = cel.Event(type, (own & marks) or own)
        case cel.Filter(inner, variable, predicate):
            formula = cel.Filter(inner, variable and visible_name(variable), predicate)
        case cel.FilterAny(inner, sides):
            shown = ((variable and visible_name(variable), predicate) for variable, predicate in sides)
            formula = cel.FilterAny(inner, tuple(shown))
    return formula.rebuilt(lambda part: _visible(part, marks))


def show_automaton(compiled: Stages) -> str:
    """The automaton; where it is composed, the flat ones one after the other, and how they are joined."""
    flat = "\n".join([automaton.show(compiled.plan.automaton), *show_registers(compiled.plan.query.formula)])
    machine = compiled.program.machine
    return flat if machine is None else f"{flat}\ncomposed where it runs:\n{show_node(machine, 1)}"


def show_registers(formula: Formula) -> list[str]:
    """What the marks of rounds do, as the actions of an ACEA ([ACEL] Figure 2): `@#1:a` stands at a transition that
    takes an a into round 1, `@#1` at one that ends it."""
    lines = []
    for part in formula.walk(only_positive=True):
        match part:
            case Aggregate(_, number, marks, attributes):
                own = ", ".join(sorted(mark for mark in marks if not is_hidden(mark)))
                names = ", ".join(name for name, _ in attributes)
                lines.append(f"round {number} has the registers {names}, empty at first:")
                lines += [f"  @#{number}:…  {name} <- {what}, with this event" for name, what in attributes]
                lines.append(f"  @#{number}  {own} <- a new event with {names}; then the registers are empty again")
            case Judged(_, number, condition):
                lines.append(f"round {number} has registers for {condition}, empty at first:")
                lines.append(f"  @#{number}:…  with this event")
                lines.append(f"  @#{number}  only if {condition}; then the registers are empty again")
    return lines


def show_node(node: nodes.Node, depth: int = 0, transitions: bool = False) -> str:
    """A composed program as a tree, one node a line: `Greatest NXT`, `Join contiguous`, `Flat 6 states`."""
    head, parts = [type(node).__name__], []
    if isinstance(node, nodes.Flat):
        head.append(f"{len({*node.transitions[:, 0].tolist(), *node.transitions[:, 3].tolist()})} states")
    for name, value in vars(node).items() if not isinstance(node, nodes.Flat) else ():
        if isinstance(value, nodes.Node):
            parts.append(show_node(value, depth + 1, transitions))
        elif isinstance(value, tuple) and value and all(isinstance(part, nodes.Node) for part in value):
            parts += [f"{'  ' * (depth + 1)}without:", *(show_node(part, depth + 2, transitions) for part in value)]
        elif isinstance(value, bool):
            head += [name] * value
        elif isinstance(value, int | str) or value is None:
            head.append(f"{name}={value}")
    if transitions and isinstance(node, nodes.Flat):
        parts += [f"{'  ' * (depth + 1)}{line}" for line in _transitions(node.transitions)]
    return "\n".join(["  " * depth + " ".join(head), *parts])


def show_program(program: Program) -> str:
    """The flat form: bits, labels and transitions by number."""
    lines = [f"family {program.family}"]
    if program.machine is None:
        lines = [f"states {program.n_states}, initial {list(program.initial)}, final {list(program.final)}"]
    lines += [f"bit {i}: {' & '.join(sorted(guard)) or 'TRUE'}" for i, guard in enumerate(program.guards)]
    lines += [f"label {i}: {', '.join(sorted(label)) or '-'}" for i, label in enumerate(program.labels)]
    if program.window is not None:
        bound = "<" if program.window.strict else "<="
        lines.append(f"window: {program.window.kind} {bound} {program.window.size}")
    for i, window in enumerate(program.inner_windows):
        lines.append(f"window {i} inside: {window.kind} {'<' if window.strict else '<='} {window.size}")
    lines += _transitions(program.transitions)
    if program.machine is not None:
        lines.append(show_node(program.machine, transitions=True))
    return "\n".join(lines)


def _transitions(transitions: AnyArray) -> list[str]:
    """One a line: `0 -> 1: bit 2, label 0`."""
    lines = []
    for source, guard, label, target in transitions.tolist():
        read = "any" if guard == ALWAYS else f"bit {guard}"
        mark = "skip" if label == SKIP else f"label {label}"
        lines.append(f"{source} -> {target}: {read}, {mark}")
    return lines
