"""Which machine runs which node: each says so itself, where it is defined."""

from __future__ import annotations

from functools import partial
from typing import Any

from runtime import nodes
from runtime.automata import comparing, deciding, inner_windows, measuring, operators, positions, strategies
from runtime.automata.machine import Machine, Steps
from runtime.errors import ExecutionError

DEFINED_IN = (operators, strategies, inner_windows, positions, comparing, deciding, measuring)
TIMED = (nodes.Within, nodes.NotBefore, nodes.NotBeforeEach, nodes.NotAfter, nodes.First)


def machine_of(node: nodes.Node, steps: Steps | None = None) -> Machine:
    """The machine of a node and, inside it, those of its parts. `steps`: how many all of them may make."""
    machine = Machine.by_node[type(node)](node, machine_of if steps is None else partial(machine_of, steps=steps))
    machine.timed = any(map(node.has, TIMED))
    if steps is not None:
        counted: Any = steps.counting(machine.step)
        machine.step = counted  # type: ignore[method-assign]
    return machine


def too_many_steps(steps: Steps) -> ExecutionError:
    """What to say of an event that takes too many."""
    hint = "Nest strategies, ALL and negated parts less deeply, or repeat less under them."
    return _step_limit("one state", steps.most, hint)


def too_many_states(most: int) -> ExecutionError:
    """The same of an event that takes few in each state, of which there are too many."""
    hint = "Bound the pattern by WITHIN, or compare fewer different values: a SUM has one for each set of events."
    return _step_limit("all states", most, hint)


def _step_limit(states: str, most: int, hint: str) -> ExecutionError:
    return ExecutionError("STEP_LIMIT", states=states, found=f"more than {most}", limit=most, hint=hint)
