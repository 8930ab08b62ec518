"""Conditions that are looked up in a table of codes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from runtime import nodes
from runtime.clauses import Choice, Compared, Operand
from runtime.errors import InternalError
from runtime.partition.tables import tables_of, with_tables
from runtime.program import NULL_CODE, Program
from runtime.relations import LOAD, MEMBER, Relation, holds

LOOKED_UP = Relation(((LOAD, 0), (LOAD, 1), (MEMBER, 3)), shown="f(a.x, b.x)")
EMPTY = Program(
    n_states=0, transitions=np.zeros((0, 4), np.int64), initial=(), final=(), guards=(), labels=(), variables=()
)


def test_a_pair_is_in_the_table_or_not() -> None:
    relation = replace(LOOKED_UP, pairs=frozenset({(1, 2), (None, 3)}))
    assert [holds(relation, pair) for pair in ((1, 2), (2, 1), (None, 3), (None, None))] == [True, False, True, False]
    assert relation == LOOKED_UP  # the table is no part of what it asks
    assert not relation.in_kernels
    with pytest.raises(InternalError, match=r"nobody has tabulated f\(a.x, b.x\)"):
        holds(LOOKED_UP, (1, 2))


def test_tables_are_read_from_rows_and_put_where_they_are_asked_for() -> None:
    flat = nodes.Flat(np.zeros((0, 4), np.int64), (), (), ())
    operands = Operand(0, 0, 2), Operand(1, 0, 0)
    compared = Compared((Choice(4, 1), Choice(8, 1)), (), (), ((operands, LOOKED_UP),))
    program = replace(EMPTY, machine=nodes.Compare(flat, compared), tables=((3, 2, 0), (4, 1, 2)))
    codes = np.array([[7, 0, 1], [NULL_CODE, 0, 5], [9, 8, 6]])
    tables = tables_of(program, np.array([3, 3, 4]), codes)
    assert tables == {3: {(1, 7), (5, None)}, 4: {(8, 6)}}
    machine = with_tables(replace(program, timeouts=program), tables).machine
    assert isinstance(machine, nodes.Compare)
    assert machine.compared.related[0][1].pairs == tables[3]
    assert machine.inner is flat
