"""Any stage of a query as text; stable, so that prints are tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cersql.syntax import Name, Text
from planner import automaton, cel
from planner.determinize import determinize
from planner.query import Query
from runtime.errors import Span
from runtime.program import ALWAYS, SKIP, Program

if TYPE_CHECKING:
    from cersql.api import Compiled

STAGES = ("syntax", "cel", "automaton", "deterministic", "physical", "program")


def explain_stage(compiled: Compiled, stage: str | None) -> str:
    """One of STAGES, or 'dot' (the automaton for Graphviz); None gives the stages that a user asks for first."""
    match stage:
        case None:
            parts = ("cel", "automaton", "physical")
            return "\n\n".join(f"== {part} ==\n{explain_stage(compiled, part)}" for part in parts)
        case "syntax":
            return show_syntax(compiled.syntax.pattern)
        case "cel":
            return show_query(compiled.query)
        case "automaton":
            return automaton.show(compiled.plan.automaton)
        case "deterministic":
            return determinize(compiled.program)
        case "physical":
            return str(compiled.plan)
        case "program":
            return show_program(compiled.program)
        case "dot":
            return automaton.dot(compiled.plan.automaton)
    raise ValueError(f"unknown stage {stage!r}; there are {', '.join([*STAGES, 'dot'])}")


def show_syntax(node: Any, depth: int = 0) -> str:
    """A tree of syntax nodes, one a line, without places."""
    pad = "  " * depth
    if isinstance(node, Name):
        return f"{pad}{node.value}"
    if isinstance(node, Text):
        return f"{pad}'{' '.join(node.value.split())}'"
    if isinstance(node, tuple):
        return "\n".join(show_syntax(item, depth) for item in node)
    plain, parts = [], []
    for name, value in vars(node).items():
        if isinstance(value, Span):
            continue
        if value is None or isinstance(value, str | int | bool):
            plain.append(f"{name}={value}")
        else:
            parts.append(show_syntax(value, depth + 1))
    return "\n".join([f"{pad}{type(node).__name__} {' '.join(plain)}".rstrip(), *parts])


def show_query(query: Query) -> str:
    """A bound query: the formula, and what stands around it."""
    lines = [cel.show(query.formula), ""]
    lines += [f"type {name}: {sql}" for name, sql in query.types]
    if query.partition_by:
        lines.append(f"partition by: {', '.join(query.partition_by)}")
    lines.append(f"order by: {', '.join(order.column for order in query.order_by)}")
    if query.window is not None:
        lines.append(f"within: {query.window}")
    for variable, used in zip(query.variables, query.used, strict=True):
        if used or not variable.mark.startswith("@"):
            kind = "one event" if variable.single else "events"
            lines.append(f"variable {variable.name}: {kind}, RETURN reads {', '.join(used) or 'nothing'}")
    lines += [f"having: {sql.text}" for sql in query.having]
    if query.limit is not None:
        lines.append(f"limit: {query.limit}")
    lines += [f"warning: {warning}" for warning in query.warnings]
    return "\n".join(lines)


def show_program(program: Program) -> str:
    """The flat form: bits, labels and transitions by number."""
    lines = [f"states {program.n_states}, initial {list(program.initial)}, final {list(program.final)}"]
    lines += [f"bit {i}: {' & '.join(sorted(guard)) or 'TRUE'}" for i, guard in enumerate(program.guards)]
    lines += [f"label {i}: {', '.join(sorted(label))}" for i, label in enumerate(program.labels)]
    if program.window is not None:
        bound = "<" if program.window.strict else "<="
        lines.append(f"window: {program.window.kind} {bound} {program.window.size}")
    for source, guard, label, target in program.transitions.tolist():
        read = "any" if guard == ALWAYS else f"bit {guard}"
        mark = "skip" if label == SKIP else f"label {label}"
        lines.append(f"{source} -> {target}: {read}, {mark}")
    return "\n".join(lines)
