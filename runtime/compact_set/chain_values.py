"""Values of chains, each from that of the chain before: what runtime.partition.beginnings asks for.

Each kernel writes the values of the chains from `new.begin` on; those before them are there. What is told of single
events (`known`, `values`, `code`) is of the new chains alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from runtime.arrays import AnyArray
from runtime.jit import kernel


class New(NamedTuple):
    """The chains that there are, as in Chains, of which those from `begin` on are new."""

    row: AnyArray  # int64
    label: AnyArray  # int32
    before: AnyArray  # int32
    begin: Any  # int64


@kernel
def add_numbers(found, new, bound, known):
    """found[c]: how many events of chain c have a label that is bound, and a known value."""
    for c in range(new.begin, len(new.row)):
        held = bound[new.label[c]] and known[c - new.begin]
        found[c] = found[new.before[c]] + (1 if held else 0)


@kernel
def add_values(found, new, bound, known, values):
    """found[c]: the sum of their values."""
    for c in range(new.begin, len(new.row)):
        found[c] = found[new.before[c]]
        if bound[new.label[c]] and known[c - new.begin]:
            found[c] += values[c - new.begin]


@kernel
def find_least(found, least, new, bound, known, code):
    """found[c]: the row of the first of those with the least code, which is least[c]; less than 0: there is none."""
    for c in range(new.begin, len(new.row)):
        before, own = new.before[c], code[c - new.begin]
        found[c], least[c] = found[before], least[before]
        if bound[new.label[c]] and known[c - new.begin] and (found[c] < 0 or own < least[c]):
            found[c], least[c] = new.row[c], own


@kernel
def find_last(found, new, bound):
    """found[c]: the last row with a label that is bound."""
    for c in range(new.begin, len(new.row)):
        found[c] = new.row[c] if bound[new.label[c]] else found[new.before[c]]


@kernel
def find_first(found, new):
    """found[c]: the first row."""
    for c in range(new.begin, len(new.row)):
        found[c] = new.row[c] if new.before[c] == 0 else found[new.before[c]]
