"""What a condition says of several events together: `[a, b]`, `x[a]`, `x[increasing(a)]`; and brackets around one.

    [a, b]                  every event of the match agrees on a, and on b
    x[a], x[a, b]           every event of x does
    x[increasing(a)]        from each x to the next, a increases: INCREASING(x.a)
    x[increasing(a) AND p]  both: x[increasing(a)] AND x[p]
    [a.x > 1 OR b.x > 1]    the papers' parentheses

Anything else in `x[ … ]` is a condition on each event of x, and is left as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cersql.binding.booleans import Bool, structure
from cersql.binding.comparisons import unwrapped
from cersql.binding.expressions import Bare, Call, Node, Ref, Said, Together, Word
from cersql.errors import BindError
from cersql.language.lexer import CLOSING, OPENING, Token
from cersql.language.syntax import Text
from runtime.errors import Span

TRENDS = ("INCREASING", "DECREASING")
_BEFORE_OPERAND = frozenset(["AND", "OR", "NOT", "!", "(", "WHEN", "THEN", "ELSE", ","])
# What stands between brackets and has one of these is a condition, and no list of attributes.
_COMPARE = frozenset("= == <> != < <= > >= <=> [ IN IS LIKE ILIKE RLIKE REGEXP BETWEEN EXISTS".split())


def gathered(
    nodes: Sequence[Node], inside: Callable[[Ref], Sequence[Node]], is_flag: Callable[[Ref, Bare], bool]
) -> tuple[Node, ...]:
    """The nodes with a Together for each of these.

    `inside` reads the condition of `x[condition]`; `is_flag` says whether a column of x is a condition by itself.
    """
    found: list[Node] = []
    at = 0
    while at < len(nodes):
        node = nodes[at]
        if isinstance(node, Word) and node.upper == "[" and _operand_follows(found):
            end = _closing(nodes, at)
            found += _bracketed(nodes[at : end + 1], inside, is_flag)
            at = end + 1
            continue
        found += _of_variable(node, inside, is_flag) if isinstance(node, Ref) and node.condition else [node]
        at += 1
    return tuple(found)


def together_of(part: Bool) -> Together | None:
    """What a comparison is, if it is one of these."""
    first = unwrapped(part.nodes)[0]
    return first if isinstance(first, Together) and not part.parts else None


def _operand_follows(before: Sequence[Node]) -> bool:
    return not before or (isinstance(before[-1], Word) and before[-1].upper in _BEFORE_OPERAND)


def _closing(nodes: Sequence[Node], at: int) -> int:
    depth = 0
    for k in range(at, len(nodes)):
        mark = _text(nodes[k])
        depth += (mark in OPENING) - (mark in CLOSING)
        if depth == 0:
            return k
    raise AssertionError("the brackets of a text are checked first")


def _text(node: Node) -> str:
    return node.upper if isinstance(node, Word) else ""


def _bracketed(
    nodes: Sequence[Node], inside: Callable[[Ref], Sequence[Node]], is_flag: Callable[[Ref, Bare], bool]
) -> list[Node]:
    """`[a, b]`, or a condition in brackets."""
    inner = nodes[1:-1]
    if any(_text(node) in _COMPARE or (isinstance(node, Ref) and node.condition) for node in inner):
        opening, closing = (
            Said(Token("op", m, n.span.start, n.span.end)) for m, n in (("(", nodes[0]), (")", nodes[-1]))
        )
        return [opening, *gathered(inner, inside, is_flag), closing]
    return [Together("AGREE", _items(inner), None, nodes[0].span | nodes[-1].span)]


def _items(nodes: Sequence[Node]) -> tuple[tuple[Node, ...], ...]:
    """What stands between the commas outside all parentheses."""
    items: list[list[Node]] = [[]]
    depth = 0
    for node in nodes:
        mark = _text(node)
        depth += (mark in OPENING) - (mark in CLOSING)
        if depth == 0 and mark == ",":
            items.append([])
        else:
            items[-1].append(node)
    return tuple(map(tuple, items))


# ---------------------------------------------------------------- x[ … ]


def _of_variable(ref: Ref, inside: Callable[[Ref], Sequence[Node]], is_flag: Callable[[Ref, Bare], bool]) -> list[Node]:
    """`x[condition]` with what it says of the events together apart from what it says of each."""
    nodes = tuple(inside(ref))
    if not nodes:
        return [ref]
    tree = structure(nodes)
    parts = {id(leaf): _parts(ref, leaf, is_flag) for leaf in tree.leaves()}
    if not any(parts.values()):
        return [ref]
    if not tree.parts and len(parts[id(tree)]) == 1:
        return [replace(parts[id(tree)][0], span=ref.span)]

    def spread(part: Bool) -> list[Node]:
        if part.parts and part.kind == "not":
            return [_word("NOT", part.span), *spread(part.parts[0])]
        if part.parts:
            return _joined(part.kind.upper(), [spread(side) for side in part.parts], part.span)
        own = parts[id(part)]
        if own:
            return _joined("AND", [[node] for node in own], part.span)
        return [replace(ref, condition=Text(inside_text(ref, part.span), part.span))]

    def inside_text(ref: Ref, span: Span) -> str:
        assert ref.condition is not None
        start = ref.condition.span.start
        return ref.condition.value[span.start - start : span.end - start]

    return spread(tree)


def _parts(ref: Ref, leaf: Bool, is_flag: Callable[[Ref, Bare], bool]) -> list[Together]:
    """What a comparison in `x[ … ]` says of the events together; nothing, if it is about each."""
    items = _items(unwrapped(leaf.nodes))
    names: list[tuple[Node, ...]] = []
    found: list[Together] = []
    for item in items:
        only = item[0] if len(item) == 1 else None
        if isinstance(only, Bare):
            names.append(item)
        elif isinstance(only, Call) and only.function in TRENDS:
            call = replace(only, arguments=tuple(_owned(ref, node) for node in only.arguments))
            found.append(Together(only.function, ((call,),), ref, only.span))
        else:
            return []
    if len(items) == 1 and names and is_flag(ref, _bare(names[0])):
        return []
    if names:
        found.append(Together("AGREE", tuple(names), ref, leaf.span))
    return found


def _bare(item: tuple[Node, ...]) -> Bare:
    (only,) = item
    assert isinstance(only, Bare)
    return only


def _owned(ref: Ref, node: Node) -> Node:
    """A column in `x[increasing(column)]` as x.column."""
    if isinstance(node, Call):
        raise BindError(
            "NOT_SUPPORTED_YET", span=node.span, construct=f"{node.function} inside INCREASING or DECREASING"
        )
    if not isinstance(node, Bare):
        return node
    return Ref(ref.variable, None, node.names[0], node.first, node.first, None, ref.written)


def _joined(word: str, sides: Sequence[Sequence[Node]], span: Span) -> list[Node]:
    """(side word side …), as SQL would have it; none of these words is in the text at its place."""
    if len(sides) == 1:
        return list(sides[0])
    found: list[Node] = [_word("(", span)]
    for k, side in enumerate(sides):
        found += [*([_word(word, span)] if k else []), *side]
    return [*found, _word(")", span)]


def _word(text: str, span: Span) -> Word:
    return Said(Token("word" if text.isalpha() else "op", text, span.start, span.end))
