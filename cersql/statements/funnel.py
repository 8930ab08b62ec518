"""How far starts came: for each prefix of a pattern the number of its starts, counted by queries of our own.

For `PATTERN A a ; B b ; C c` over A A B A C these are A a: 3, `A a ; B b`: 2, the whole: 2. A start of a prefix is an
event that is the first one of at least one match of it, within the query's window (cersql/binding/prefixes.py says what
a prefix is). What chooses among matches (SEMANTICS, CONSUME BY, AFTER MATCH SKIP), HAVING and LIMIT does not count.
Cost: as many more queries as there are steps, in one job; no match of them becomes a row.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from cersql.binding.bind import bind
from cersql.binding.prefixes import Step, prefixes
from cersql.show.funnel import Stage
from cersql.statements.planned import Compiled, Planned, planned
from runtime.errors import CersqlError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def funnel(of: Planned) -> tuple[Stage, ...] | str:
    """The steps of a pattern with their numbers of starts, or why there are none."""
    from spark_ext.errors import SPARK_EXCEPTIONS
    from spark_ext.streaming import is_stream

    query, catalog = of.compiled.query, of.catalog
    if is_stream(query, catalog):
        return "its source is a stream, whose rows are not all there"
    steps = prefixes(of.compiled.syntax, query, catalog.case_sensitive)
    if isinstance(steps, str):
        return steps
    try:
        counts = [_count(of, step).toDF("n").selectExpr(f"{k} AS step", "n") for k, step in enumerate(steps)]
        found = dict(map(tuple, reduce(type(counts[0]).unionAll, counts).collect()))
    except CersqlError as error:
        return f"its parts cannot be asked one by one: {error.message}"
    except SPARK_EXCEPTIONS as error:
        return f"its parts cannot be asked one by one: {str(error).strip().splitlines()[0]}"
    return tuple(Stage(step.added, step.conditions, found[k]) for k, step in enumerate(steps))


def _count(of: Planned, step: Step) -> DataFrame:
    """The number of starts, one BIGINT. Rows that tie stand in the order in which the whole pattern has them."""
    whole, catalog = of.compiled.query, of.catalog
    given = catalog.given_columns() if any(source.relation is None for source in whole.sources) else None
    query = bind(step.query, catalog, given, of.order_by)
    reads = {*whole.reads, *query.reads}
    query = replace(query, reads=tuple(column.name for column in query.columns if column.name in reads))
    asked = Planned(Compiled(step.query, query, planned(step.query, query)), catalog)
    counted = asked.count()
    return asked.frame().groupBy().count() if counted is None else counted
