"""A plan's conditions as SQL on rows: the symbol, which is a bit for each guard, the type's rank, and what is dropped.

The guards (`kind` = 'A') AND (v > 1), and `kind` = 'B', make the symbol IF(…, 1, 0) + IF(…, 2, 0) of one byte.
"""

from __future__ import annotations

from planner.physical import PhysicalPlan
from planner.sql import literal, quote
from runtime.program import symbol_words


def symbol_sql(guards: tuple[str, ...]) -> list[tuple[str, str]]:
    """(name, SQL) of the symbol columns: each guard that is TRUE sets its bit; the narrowest type that holds them."""
    columns = []
    for w, word in enumerate(symbol_words(len(guards))):
        bits = len(word)
        type = _narrowest(bits)
        suffix = "L" if bits > 31 else ""
        terms = [f"IF({guards[i]}, {1 << (i - word.start)}{suffix}, 0{suffix})" for i in word]
        columns.append((f"__cersql_symbol{w}", f"CAST({' + '.join(terms) or '0'} AS {type})"))
    return columns


def packed_symbol_sql(plan: PhysicalPlan) -> str | None:
    """The symbol and, above its bits, the rank of the type, in one number; None if that is not the whole order of ties.

    Where no row is dropped, each column that need not cross into Python counts.
    """
    query = plan.query
    only_types = set(query.reads) <= {plan.type_column, *query.partition_by}
    if plan.type_column is None or plan.type_in_symbol or not only_types:
        return None
    bits = len(plan.guards) + (2 * len(query.types)).bit_length()
    if bits > 31 or any(order.column == plan.type_column for order in query.order_by):
        return None
    symbol = symbol_sql(plan.guards)[0][1]
    return f"CAST({type_rank_sql(plan)} * {1 << len(plan.guards)} + {symbol} AS {_narrowest(bits)})"


def type_rank_sql(plan: PhysicalPlan) -> str:
    """A small number that orders the values of the type column as far as the pattern can tell them apart.

    A value of the pattern gets an odd number, what lies between two of them an even one; binary order, as Spark's.
    """
    assert plan.type_column is not None
    column = quote(plan.type_column)
    values = sorted({t for t, _ in plan.query.types}, key=lambda value: value.encode())
    terms = [f"IF({column} >= {literal(v)}, 1, 0) + IF({column} > {literal(v)}, 1, 0)" for v in values]
    return f"({' + '.join(terms)})"


def _narrowest(bits: int) -> str:
    return "TINYINT" if bits <= 7 else "SMALLINT" if bits <= 15 else "INT" if bits <= 31 else "BIGINT"


def drop_sql(plan: PhysicalPlan) -> str | None:
    """The filter before the shuffle, or None. A NULL time passes, so that it is found."""
    if not plan.drops:
        return None
    time = quote(plan.query.order_by[0].column)
    guards = plan.guards[: plan.n_event_guards]
    return " OR ".join([*(f"({guard})" for guard in guards), f"{time} IS NULL"])
