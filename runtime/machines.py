"""Which machine runs which node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime import comparing, deciding, inner_windows, nodes, operators, strategies
from runtime.greedy import GreedyMachine
from runtime.machine import Machine, Maker

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
    nodes.Greedy: GreedyMachine,
    nodes.Compare: comparing.CompareMachine,
    nodes.Agree: comparing.AgreeMachine,
    nodes.Candidate: deciding.CandidateMachine,
    nodes.Pending: deciding.PendingMachine,
    nodes.Across: deciding.AcrossMachine,
}


TIMED = (nodes.Within, nodes.NotBefore, nodes.NotBeforeEach, nodes.NotAfter, nodes.First)


def machine_of(node: nodes.Node) -> Machine:
    """The machine of a node and, inside it, those of its parts."""
    machine = MACHINES[type(node)](node, machine_of)
    machine.timed = any(map(node.has, TIMED))
    return machine
