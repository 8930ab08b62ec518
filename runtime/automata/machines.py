"""Which machine runs which node."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from runtime import nodes
from runtime.automata import comparing, deciding, inner_windows, operators, strategies
from runtime.automata.machine import Machine, Maker, Steps
from runtime.automata.positions import PositionMachine
from runtime.errors import ExecutionError

MACHINES: dict[type[nodes.Node], Callable[[Any, Maker], Machine]] = {
    nodes.Flat: operators.FlatMachine,
    nodes.Bind: operators.BindMachine,
    nodes.Keep: operators.KeepMachine,
    nodes.Restrict: operators.RestrictMachine,
    nodes.Join: operators.JoinMachine,
    nodes.Loop: operators.LoopMachine,
    nodes.Either: operators.EitherMachine,
    nodes.Both: operators.BothMachine,
    nodes.Interleave: operators.InterleaveMachine,
    nodes.Unless: operators.UnlessMachine,
    nodes.Start: operators.StartMachine,
    nodes.BeginsAt: operators.BeginsAtMachine,
    nodes.Strict: operators.StrictMachine,
    nodes.Greatest: strategies.GreatestMachine,
    nodes.First: strategies.FirstMachine,
    nodes.Within: inner_windows.WithinMachine,
    nodes.NotBefore: inner_windows.NotBeforeMachine,
    nodes.NotBeforeEach: inner_windows.NotBeforeEachMachine,
    nodes.NotAfter: inner_windows.NotAfterMachine,
    nodes.PositionAutomaton: PositionMachine,
    nodes.Compare: comparing.CompareMachine,
    nodes.Agree: comparing.AgreeMachine,
    nodes.Candidate: deciding.CandidateMachine,
    nodes.Pending: deciding.PendingMachine,
    nodes.Across: deciding.AcrossMachine,
}


TIMED = (nodes.Within, nodes.NotBefore, nodes.NotBeforeEach, nodes.NotAfter, nodes.First)


def machine_of(node: nodes.Node, steps: Steps | None = None) -> Machine:
    """The machine of a node and, inside it, those of its parts. `steps`: how many all of them may make."""
    machine = MACHINES[type(node)](node, machine_of if steps is None else partial(machine_of, steps=steps))
    machine.timed = any(map(node.has, TIMED))
    if steps is not None:
        counted: Any = steps.counting(machine.step)
        machine.step = counted  # type: ignore[method-assign]
    return machine


def too_many_steps(steps: Steps) -> ExecutionError:
    """What to say of an event that takes too many."""
    hint = "Nest strategies, ALL and negated parts less deeply, or repeat less under them."
    return ExecutionError("STEP_LIMIT", found=f"more than {steps.most}", limit=steps.most, hint=hint)
