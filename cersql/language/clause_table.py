"""The clauses of a query: what each is called, what it holds and where that goes.

    CONSUME BY PARTITION      key  CONSUME BY      body  PARTITION, a few words, kept as `consume` of syntax.Query

What cuts a text into clauses, reads their bodies, completes words, fills parameters in or explains an error reads this
table. So a new clause is a line here, a field of syntax.Query, and what it means, in cersql/binding; a new kind of body
is a reader in cersql/language/clause_bodies.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BodyKind = Literal[
    "sources", "pattern", "definitions", "conditions", "condition", "duration", "window", "words", "items", "number",
    "columns", "order", "expressions",
]  # fmt: skip
_LITERAL: tuple[BodyKind, ...] = ("duration", "window", "number")
_COLUMNS: tuple[BodyKind, ...] = ("columns", "order")
_OPERANDS: tuple[BodyKind, ...] = ("sources", "conditions", "condition", "items", *_LITERAL)


@dataclass(frozen=True)
class Clause:
    """One clause. `holds`: its body in words, for errors; `fills`: the fields of syntax.Query that its body gives.

    `before_pattern`: the field instead, where it stands before PATTERN; so it may stand there and behind it.
    """

    key: str
    body: BodyKind
    fills: tuple[str, ...]
    holds: str
    before_pattern: str | None = None

    @property
    def first(self) -> str:
        """The word that it begins with."""
        return self.key.split()[0]

    @property
    def second(self) -> str | None:
        """BY, MATCH; None where the key is one word."""
        return self.key.partition(" ")[2] or None

    @property
    def is_literal(self) -> bool:
        """Whether its body is made of literals alone, as a duration is."""
        return self.body in _LITERAL

    @property
    def lists_columns(self) -> bool:
        """Whether names in its body are columns of rows, so none is a parameter's."""
        return self.body in _COLUMNS

    @property
    def takes_no_values(self) -> bool:
        """Whether a name in its body is never a parameter's: it is a column of rows, or a word of the clause."""
        return self.lists_columns or self.body == "words"

    @property
    def begins_with_operand(self) -> bool:
        """Whether a value can stand right behind its key of one word."""
        return self.second is None and self.body in _OPERANDS

    @property
    def is_condition(self) -> bool:
        return self.body in ("conditions", "condition")


_ROW_KEY = "a column or an expression over one row"

CLAUSES = {
    clause.key: clause
    for clause in (
        Clause("FROM", "sources", ("sources",), "a table, a view or (a query) with an alias"),
        Clause("PATTERN", "pattern", ("pattern",), "a pattern, for example SEQ(A a, B b)"),
        Clause("DEFINE", "definitions", ("definitions",), "a definition, for example A AS price > 10"),
        Clause("WHERE", "conditions", ("where",), "a condition", before_pattern="rows"),
        Clause("WATERMARK", "duration", ("watermark",), "a duration, for example 10 MINUTES"),
        Clause("EMIT ON", "words", ("emit",), "ARRIVAL or WATERMARK"),
        Clause("WITHIN", "window", ("within",), "a duration like 10 MINUTES, a number or 100 EVENTS"),
        Clause("SEMANTICS", "words", ("semantics",), "a strategy, for example SKIP TILL ANY MATCH"),
        Clause("RETURN", "items", ("returns", "with_timeouts"), "* or an expression"),
        Clause("HAVING", "condition", ("having",), "a condition"),
        Clause("LIMIT", "number", ("limit",), "a whole number"),
        Clause("PARTITION BY", "columns", ("partition_by",), _ROW_KEY),
        Clause("ORDER BY", "order", ("order_by",), _ROW_KEY),
        Clause("CONSUME BY", "words", ("consume",), "NONE, ANY or PARTITION"),
        Clause(
            "AFTER MATCH", "words", ("skip",),
            "SKIP PAST LAST ROW, SKIP TO NEXT ROW or SKIP TO FIRST | LAST and a variable",
        ),
        Clause("GROUP BY", "expressions", ("group_by",), "an expression"),
    )
}  # fmt: skip

BY_FIRST_WORD = {clause.first: clause for clause in CLAUSES.values()}
ONE_WORD = frozenset(clause.key for clause in CLAUSES.values() if clause.second is None)
"""The keys that could be names, and are none but in back-ticks."""
