"""What an edge of runtime.steppers.registers asks of an event and of a run's registers, and what it does to them.

The ops, by their kinds, are those of runtime.chain_cea; planner.automata.register_clauses makes them from conditions.
"""

from __future__ import annotations

import numpy as np

from runtime.chain_cea import (
    ANY_OF,
    BOTH,
    EQUAL,
    FAILED,
    GREATER,
    GREATER_EQUAL,
    GREATEST,
    HIGHEST,
    HOLDS,
    LACKS,
    LEAST,
    LESS,
    LESS_EQUAL,
    LOWEST,
    NOT_ALL,
    NOTE,
    NOTED,
    OWN,
    REFUSED,
    RELATES,
    RESET,
    SET,
)
from runtime.jit import called, inlined
from runtime.program import NULL_CODE
from runtime.steppers.relation_ops import related

# What a register can hold besides codes. Codes of terms are greater (runtime.partition.terms).
EMPTY = NULL_CODE + 1  # nothing yet: every check passes
BAD = NULL_CODE + 2  # a NULL, or values that nothing can be equal to: every check fails


@inlined
def passes(kind, left, right):
    """A check of codes; EMPTY is the caller's business, BAD and NULL pass nothing."""
    if left <= BAD or right == NULL_CODE:  # BAD and NULL are less than any code, and EMPTY does not come here
        return False
    if kind == LESS:
        return left < right
    if kind == LESS_EQUAL:
        return left <= right
    if kind == GREATER:
        return left > right
    if kind == GREATER_EQUAL:
        return left >= right
    if kind == EQUAL:
        return left == right
    return left != right


@inlined
def changed(kind, old, value):
    """What a register holds after an event with this value."""
    if value == NULL_CODE:
        return BAD
    if kind == SET or old == EMPTY:
        return value
    if old == BAD:
        return BAD
    if kind == GREATEST:
        return max(old, value)
    if kind == LEAST:
        return min(old, value)
    return old if old == value else BAD


@inlined
def holds(values, guard):
    """Does an event satisfy a guard?"""
    return guard < 0 or (values.symbols[values.row, guard // 62] >> (guard % 62)) & 1 != 0


@inlined
def term_of(values, term):
    """The code of an event's term."""
    return values.symbols[values.row, values.words + term]


@called
def relates(r, operand, first, number, values, registers, to):
    """Does a relation hold, or lack an event to compute with? A register that is BAD holds a NULL."""
    for k in range(r.n_operands[number]):
        source = operand[first + k]
        if source >= 0:
            r.values[k] = term_of(values, source)
        else:
            held = registers[to, -1 - source]
            if held == EMPTY:
                return True
            r.values[k] = NULL_CODE if held == BAD else held
    return related(r, number)


@inlined
def some_side(automaton, begin, end, values, registers, to):
    """Does one of these ops pass, or lack what it is compared with?"""
    for o in range(begin, end):
        kind, register, term = automaton.op_kind[o], automaton.op_register[o], automaton.op_term[o]
        if kind == HOLDS:
            passed = holds(values, term)
        elif kind == RELATES:
            passed = relates(automaton.relations, automaton.relation_operand, register, term, values, registers, to)
        elif kind == NOTED:
            passed = registers[to, register] == EMPTY or registers[to, register] == 1
        elif kind >= BOTH:
            left, right = registers[to, register], registers[to, term]
            passed = left == EMPTY or right == EMPTY or (right != BAD and passes(kind - BOTH, left, right))
        elif kind >= OWN:
            passed = passes(kind - OWN, term_of(values, register), term_of(values, term))
        else:
            left = registers[to, register]
            passed = left == EMPTY or passes(kind, left, term_of(values, term))
        if passed:
            return True
    return False


@inlined
def change(kind, old, values, term):
    """What a register holds after a change of it; NULL_CODE where a NULL keeps an event from being a veto."""
    if kind >= FAILED:
        if holds(values, term):
            return old
        return (np.int64(0) if old == EMPTY else old) | (np.int64(1) << (kind - FAILED))
    if kind == NOTE:
        return np.int64(1) if holds(values, term) else np.int64(0)
    value = term_of(values, term)
    if kind in (HIGHEST, LOWEST):
        if value == NULL_CODE or old == EMPTY:
            return value
        return max(old, value) if kind == HIGHEST else min(old, value)
    return changed(kind, old, value)


@inlined
def fails(automaton, kind, register, term, values, registers, to):
    """Does a check fail that is not one of an OR?"""
    if kind == NOT_ALL:
        return registers[to, register] == term
    if kind == LACKS:
        return holds(values, term)
    if kind == RELATES:
        return not relates(automaton.relations, automaton.relation_operand, register, term, values, registers, to)
    value = term_of(values, term)
    if kind >= REFUSED:
        return registers[to, register] != EMPTY and passes(kind - REFUSED, registers[to, register], value)
    if kind >= OWN:
        return not passes(kind - OWN, term_of(values, register), value)
    return registers[to, register] != EMPTY and not passes(kind, registers[to, register], value)


@inlined
def apply(automaton, edge, values, registers, to):
    """Run the ops of an edge on registers[to]; False if a check fails."""
    o, end = automaton.op_of[edge], automaton.op_of[edge + 1]
    while o < end:
        kind, register, term = automaton.op_kind[o], automaton.op_register[o], automaton.op_term[o]
        o += 1
        if kind == RESET:
            registers[to, register] = EMPTY
        elif kind == ANY_OF:
            if not some_side(automaton, o, o + register, values, registers, to):
                return False
            o += register
        elif kind >= FAILED or SET <= kind <= LOWEST:
            after = change(kind, registers[to, register], values, term)
            if after == NULL_CODE:
                return False
            registers[to, register] = after
        elif fails(automaton, kind, register, term, values, registers, to):
            return False
    return True
