"""Where `!p` stands: the sequence around it without its inner parentheses, cut at the negated parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cersql.errors import BindError
from cersql.language.syntax import Alias, Chain, FilterPart, Negation, Pattern, Project

Vetoes = tuple[Negation, ...]


@dataclass(frozen=True)
class Cut:
    """A sequence with negated parts: `gaps[k]` holds those between `parts[k]` and `parts[k + 1]`."""

    leading: Vetoes
    parts: tuple[Pattern, ...]
    gaps: tuple[Vetoes, ...]
    trailing: Vetoes


def cut(chain: Chain) -> Cut | None:
    """A sequence cut at its negated parts; None if it has none. Raises BindError if it is nothing but those."""
    items = list(_flat(chain))
    if not any(isinstance(item, Negation) for item in items):
        return None
    parts: list[Pattern] = []
    gaps: list[list[Negation]] = [[]]
    for item in items:
        if isinstance(item, Negation):
            gaps[-1].append(item)
        else:
            parts.append(item)
            gaps.append([])
    if not parts:
        raise only_absence(items[0])
    leading, *between, trailing = map(tuple, gaps)
    return Cut(leading, tuple(parts), tuple(between), trailing)


def _flat(chain: Chain) -> Iterator[Pattern]:
    """`A ; (B ; !C) ; D` reads as A ; B ; !C ; D. What has an alias, a filter, a window or a loop is one part."""
    for item in chain.items:
        if isinstance(item, Chain) and not item.contiguous:
            yield from _flat(item)
        else:
            yield item


def check_contiguous(items: Sequence[Pattern]) -> None:
    """Raises for `A : !B`."""
    for item in items:
        if isinstance(item, Negation):
            raise BindError(
                "ABSENCE_BESIDE_COLON",
                span=item.span,
                hint="A -> !B -> C says that no B lies between the A and the C. "
                "That the next event is none: A : Other, with DEFINE Other AS NOT (…).",
            )


def only_absence(part: Pattern) -> BindError:
    return BindError("ONLY_ABSENCE", span=part.span, hint="For example SEQ(A, !B, C), or SEQ(A, !B) with WITHIN.")


def at_edge(part: Pattern, edge: str) -> BindError:
    return BindError(
        "ABSENCE_AT_EDGE", span=part.span, edge=edge,
        hint="Write it where the whole pattern begins or ends, or between two parts: SEQ(A, !B, C).",
    )  # fmt: skip


def check_windowed(part: Pattern, window: str) -> None:
    """Raises for `(A ; !B WITHIN w)`: how far such a '!' looks is what the clause says."""
    while isinstance(part, Alias | FilterPart | Project):
        part = part.inner
    found = cut(part) if isinstance(part, Chain) and not part.contiguous else None
    for edge, vetoes in (("start", found.leading), ("end", found.trailing)) if found else ():
        if vetoes:
            error = at_edge(vetoes[0], edge)
            error.hint = (
                f"{error.hint} There its window is the clause, outside all parentheses: PATTERN (…) WITHIN {window}."
            )
            raise error


def without_window(part: Pattern, edge: str, hint: str | None) -> BindError:
    way = "back" if edge == "start" else "ahead"
    return BindError("ABSENCE_WITHOUT_WINDOW", span=part.span, edge=edge, way=way, hint=hint)


def beside_nothing(part: Pattern, side: str, edge: bool) -> BindError:
    hint = "Write the two cases with OR: SEQ(A, !B, C, D) OR SEQ(A, !B, D)."
    if edge:  # around it OR is an error
        hint = "Write the two cases as queries of their own, joined by UNION ALL."
    return BindError("ABSENCE_BESIDE_NOTHING", span=part.span, side=side, hint=hint)
