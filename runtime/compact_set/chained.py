"""Matches as an end and a chain: beginnings that many matches share are written down once.

Below a node without a union there is one complex event, a *chain*: the node's event after those of its child. A walk
that comes to such a node for the second time knows the chain, and stops there. So of 1,000 matches `A B … B C` that end
at one C it writes 1,000 numbers of chains, and each B once:

    C ── union ── B3 ── B2 ── B1 ── A        chains: 1 = A, 2 = 1 B1, 3 = 2 B2, 4 = 3 B3
           └───── B2                         matches: 4 C, 3 C, 2 C
           └───── B1

Whoever sums up the events of matches does so chain by chain, in the order of the events (runtime.partition.beginnings).
Chains are known while roots are listed, and forgotten with them, since nodes get other numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray, IntArray, grown
from runtime.compact_set.tecs import BOTTOM
from runtime.jit import inlined


class Chains(NamedTuple):
    """A forest: chain c has the events of chain `before[c]`, which is less than c, and one more; chain 0 has none.

    `of_node` says the chain of a node, where `stamp` is `serial`; `of_match` the chain that a match begins with.
    """

    row: AnyArray  # int64[chains]
    label: AnyArray  # int32[chains]
    before: AnyArray  # int32[chains]
    size: AnyArray  # int64[1]: how many there are
    of_node: AnyArray  # int32[nodes]
    stamp: AnyArray  # int64[nodes]
    serial: AnyArray  # int64[1]
    of_match: AnyArray  # int32[matches]


def new_chains(capacity: int) -> Chains:
    """The empty chain alone, of no node."""
    return Chains(
        row=np.zeros(capacity, np.int64),
        label=np.zeros(capacity, np.int32),
        before=np.zeros(capacity, np.int32),
        size=np.ones(1, np.int64),
        of_node=np.zeros(1, np.int32),
        stamp=np.zeros(1, np.int64),
        serial=np.zeros(1, np.int64),
        of_match=np.zeros(1, np.int32),
    )


def for_matches(chains: Chains, nodes: int, matches: int) -> Chains:
    """The same for so many matches more, of sets with so many nodes."""
    if len(chains.stamp) < nodes:
        chains = chains._replace(of_node=grown(chains.of_node, nodes), stamp=grown(chains.stamp, nodes))
    return chains._replace(of_match=np.zeros(matches, np.int32))


def grown_chains(chains: Chains) -> Chains:
    """The same with room for twice as many chains."""
    more = 2 * len(chains.row)
    return chains._replace(**{name: grown(getattr(chains, name), more) for name in ("row", "label", "before")})


def forget(chains: Chains) -> None:
    """Nodes have other numbers from now on."""
    chains.serial[0] += 1
    chains.size[0] = 1
    chains.of_node[BOTTOM], chains.stamp[BOTTOM] = 0, chains.serial[0]


@inlined
def is_known(chains, node):
    return chains.stamp[node] == chains.serial[0]


@inlined
def chained(walk, chains, chain, begin, end):
    """Make chains of the part of the path from depth `end` up to `begin`; the chain of all of it."""
    for k in range(end - 1, begin - 1, -1):
        node, new = walk.path_node[k], chains.size[0]
        chains.row[new], chains.label[new], chains.before[new] = walk.path_row[k], walk.path_label[k], chain
        chains.of_node[node], chains.stamp[node] = new, chains.serial[0]
        chains.size[0] = new + 1
        chain = new
    return chain


class Beginnings(NamedTuple):
    """How matches begin: with the events of chain `of[k]`. Of `n` chains `row`, `label` and `before` say what they are;
    `serial` is another one where chains have other meanings. It holds until the next matches are listed."""

    of: IntArray
    row: IntArray
    label: AnyArray
    before: AnyArray
    n: int
    serial: int


def beginnings(chains: Chains, matches: int) -> Beginnings:
    """Those of so many matches, which have just been listed."""
    n, of = int(chains.size[0]), chains.of_match[:matches]
    return Beginnings(of, chains.row[:n], chains.label[:n], chains.before[:n], n, int(chains.serial[0]))


def events(found: Beginnings, chain: int) -> list[int]:
    """The chains that a chain grew through, the longest first: each stands for the event that it ends with."""
    path = []
    while chain:
        path.append(chain)
        chain = int(found.before[chain])
    return path
