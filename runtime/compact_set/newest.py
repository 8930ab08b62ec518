"""Of the sets below some roots the matches that have a new event, found without listing the others.

    A ; B+ ; C, and an A arrives between rows that were read before: of 2ⁿ matches of the same C the one set below
    another root of the union, in time linear in the nodes that have been made since

Node by node, children first: an output node of a new event stands for such matches alone; one of an old event for
those that its child has; a union for those of both sides. What is only a part of a node is written behind the nodes
that there are, and dropped by setting back the arena's size; a node without such a match is left out, so whoever lists
what is left meets no dead end. The greatest start of a part can be less than that of the whole: it is asked again
whether it lies in the window, and unions put the greater on the left once more.

Nodes that were made before the first new event was read are old without a look: that is all that a kept engine holds
(runtime.stream.engines), so a micro-batch costs what has come since.

A product (runtime.compact_set.products) is left whole: whoever asks for new events looks at its matches one by one.
"""

from __future__ import annotations

from runtime.compact_set.tecs import UNION, extend, inside, link
from runtime.jit import inlined, kernel

NONE = -1  # no match has a new event


@inlined
def part_of(part, node, fresh):
    """The part of a node; those below `fresh` are old."""
    return NONE if node < fresh else part[node - fresh]


@kernel
def part_kernel(arena, fresh, first_new, part):
    """part[node - fresh] becomes the node of the matches with an event whose row is not below `first_new`, or NONE. The
    arena has room for as many nodes again as there are from `fresh` on."""
    for node in range(fresh, arena.size[0]):
        label, child, found = arena.label[node], arena.child[node], node
        if label == UNION:
            right = arena.right[node]
            a, b = part_of(part, child, fresh), part_of(part, right, fresh)
            if a < 0 or b < 0:
                found = max(a, b)
            elif a != child or b != right:
                found = link(arena, a, b) if arena.start[a] >= arena.start[b] else link(arena, b, a)
        elif label >= 0 and arena.row[node] < first_new:
            found = part_of(part, child, fresh)
            if found == child:
                found = node
            elif found >= 0:
                found = extend(arena, arena.row[node], label, found, arena.start[found])
        part[node - fresh] = found


@kernel
def keep_kernel(space, fresh, part, n_roots):
    """Put the parts in place of the roots, without those that are empty; returns how many are left."""
    roots, kept = space.roots, 0
    for k in range(n_roots):
        found, now = part_of(part, roots.node[k], fresh), roots.clock[k]
        if found >= 0 and inside(space.arena.start[found], now, space.bounds):
            roots.node[kept], roots.clock[kept], roots.key[kept] = found, now, roots.key[k]
            roots.begin[kept], roots.end[kept] = roots.begin[k], roots.end[k]
            kept += 1
    return kept
