"""EMIT ON: when a stream gives a match. What a pattern allows of it is the planner's to say."""

from __future__ import annotations

from typing import Literal

from cersql.errors import BindError, did_you_mean
from cersql.language import syntax
from cersql.language.clause_table import CLAUSES
from cersql.language.lexer import shown

_Emission = Literal["arrival", "watermark"]
_NAMES: dict[str, _Emission] = {"ARRIVAL": "arrival", "WATERMARK": "watermark"}


def bind(query: syntax.Query) -> _Emission | None:
    """`EMIT ON ARRIVAL` is "arrival"; None where the text does not say. Raises BindError for another word."""
    if query.emit is None:
        return None
    first, *more = query.text.within(query.emit.span)
    if first.upper not in _NAMES:
        hint = did_you_mean(first.upper, _NAMES) or "For example: EMIT ON ARRIVAL."
        raise BindError(
            "BAD_CLAUSE", span=first.span, found=shown(first), clause="EMIT ON", expected=CLAUSES["EMIT ON"].holds,
            hint=hint,
        )  # fmt: skip
    if more:
        # EMIT ON WATERMARK 10 MINUTES: the delay has a clause of its own.
        delay = first.upper == "WATERMARK" and more[0].kind == "number"
        hint = f"Write: EMIT ON {first.upper}" + (f" WATERMARK {' '.join(t.text for t in more)}." if delay else ".")
        raise BindError(
            "BAD_CLAUSE", span=more[0].span, found=shown(more[0]), clause="EMIT ON", expected="the next clause",
            hint=hint,
        )  # fmt: skip
    return _NAMES[first.upper]
