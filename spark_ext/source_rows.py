"""The rows of the sources that can matter, with the columns that the engine, the order and RETURN need.

Catalyst computes of each row its symbol (which conditions it satisfies), its keys and the terms that are compared; it
filters out rows that satisfy no condition, and prunes columns that nobody reads.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructType,
)  # fmt: skip

from planner.physical import PhysicalPlan
from planner.query import (
    SOURCE_COLUMN,
    Key,
    Link,
    key_column,
)  # fmt: skip
from planner.sql import is_collated, literal, quote
from planner.symbols import drop_sql, packed_symbol_sql, symbol_sql, type_rank_sql
from runtime.program import symbol_words
from runtime.task import OrderColumn
from runtime.warm import compile_kernels
from spark_ext import collations
from spark_ext.forms import comparable, hashed_alike, safe_casts, term_sql
from spark_ext.limits import most_matches
from spark_ext.schema import SparkCatalog
from spark_ext.sizes import is_local

TYPE_COLUMN = "__cersql_type"


class SourceRows:
    """The rows of one plan. `count_only`: no column of a match is wanted; `lasting`: it is to give the rows of a later
    time, too."""

    def __init__(
        self, plan: PhysicalPlan, catalog: SparkCatalog, count_only: bool = False, lasting: bool = False
    ) -> None:
        self.query, self.catalog, self.count_only, self.lasting = plan.query, catalog, count_only, lasting
        self.source = catalog.union_frame(self.query)
        self.spark = self.source.sparkSession
        self.plan = replace(plan, program=replace(plan.program, max_matches=most_matches(self.spark)))
        self._warm()
        self.types: dict[str, DataType] = {f.name: f.dataType for f in self.source.schema.fields}
        self.symbols = symbol_sql(plan.guards)
        packed = packed_symbol_sql(plan)
        self.symbol_bits = None if packed is None else len(plan.guards)
        if packed is not None:
            self.symbols = [(self.symbols[0][0], packed)]
        self.terms = [(f"__cersql_term{i}", self._term(sql, type)) for i, (sql, type) in enumerate(plan.terms)]
        self.weights = [(f"__cersql_weight{i}", self._weight(*own)) for i, own in enumerate(plan.sifts.columns)]
        keys = [self._normalised(name) for name in self.query.partition_by]
        keys += [self._equal(key) for key in self.query.keys]
        self.key_sql = {f"__cersql_group{i}": sql for i, sql in enumerate(keys)}
        # ORDER BY columns that are sorted by the keys of their collation, which are sent along.
        self.sorts = {order.column: f"__cersql_order{i}" for i, order in enumerate(self.query.order_by)
                      if is_collated(self.types[order.column].simpleString())}  # fmt: skip
        self.keys = list(self.key_sql)

    def _warm(self) -> None:
        """Compile what tasks run, where the workers, on this same machine, would all do it at once."""
        if is_local(self.spark):
            compile_kernels(self.plan.program.family)

    def _rows(self, *more: str) -> DataFrame:
        """The rows that can matter, with the columns that the engine, the order and RETURN need, and `more`."""
        source, dropped = self._kept()
        columns = [self._payload(name) for name in self._needed()]
        columns += [f"{sql} AS {key}" for key, sql in self.key_sql.items()]
        columns += [f"{collations.key(self.spark, quote(column))} AS {name}" for column, name in self.sorts.items()]
        # A name of ours on a line of its own: where an expression fails, Spark quotes the line.
        columns += [f"{sql}\nAS {name}" for name, sql in (*self.symbols, *self.terms, *self.weights)]
        if any(tie.name == TYPE_COLUMN for tie in self._ties()):
            columns.append(f"CAST({type_rank_sql(self.plan)} AS INT) AS {TYPE_COLUMN}")
        rows = source.selectExpr(*columns, *more)
        return rows if dropped else rows.where(self._relevant())

    def _kept(self) -> tuple[DataFrame, bool]:
        """The source with keys, without the rows that cannot matter, and whether these are dropped so; not where a
        condition could be another the next time it is asked."""
        source, filter_ = self._with_keys(), drop_sql(self.plan)
        if filter_ is None:
            return source, True
        return (source.where(filter_), True) if self._deterministic else (source, False)

    def _with_keys(self) -> DataFrame:
        """The source without rows that have NULL for a key of the planner's; a NULL time is still found."""
        source = self.source
        for link in self.query.links:
            source = source.selectExpr("*", f"explode({self._copies(link)}) AS {quote(link.column)}")
        columns = {quote(link.column) for link in self.query.links}
        keys = [key for key in self.query.keys if key.sql not in columns and not key.null]
        if not keys:
            return source
        known = " AND ".join(f"({self._equal(key)}) IS NOT NULL" for key in keys)
        return source.where(f"({known}) OR {quote(self.query.order_by[0].column)} IS NULL")

    def _copies(self, link: Link) -> str:
        """The values that a row has as an event, as an array; it is copied for each of them."""
        types, type, values = dict(self.query.types), link.type.lower(), []
        for sql, kinds in link.by:
            tests = ["TRUE" if kind is None else types[kind] for kind in kinds]
            value = f"CAST({sql} AS {link.type})" if type else sql
            if not is_collated(type):  # what the conditions ask of the copies is asked under the collation
                value = hashed_alike(self.spark, value, type)
            values.append(f"IF({' OR '.join(f'({test})' for test in tests)}, array({value}), array())")
        all_, some = (values[:1], values[1:]) if link.null else ([], values)
        known = [f"filter(concat({', '.join(some)}), __cersql_v -> __cersql_v IS NOT NULL)"] if some else []
        return f"array_distinct(concat({', '.join([*all_, *known])}))"

    def _relevant(self) -> str:
        """Does a row satisfy any condition, by its symbol?"""
        masks = []
        for (name, _), word in zip(self.symbols, symbol_words(len(self.plan.guards)), strict=True):
            bits = len(range(word.start, min(word.stop, self.plan.n_event_guards)))
            masks.append(f"({name} & {(1 << bits) - 1}L) <> 0")
        return " OR ".join(masks)

    def _needed(self) -> list[str]:
        """Columns of the sources that cross over, in schema order."""
        query = self.query
        wanted = {order.column for order in query.order_by} | set(self._tie_columns())
        if not self.count_only:
            wanted.update(query.partition_by if self._wants_keys() else ())
        return [name for name in self.types if name in wanted]

    def _used(self) -> list[str]:
        """What RETURN reads, in schema order."""
        if self.count_only:
            return []
        held = {name for names in self.query.held for name in names}
        return [name for name in self.types if name in held]

    def _carried(self) -> list[str]:
        """What is taken over from rows."""
        return self._used()

    def _made_for_tasks(self) -> dict[str, str]:
        """Other columns that are computed of rows, as SQL."""
        return {}

    def _order(self) -> tuple[OrderColumn, ...]:
        return tuple(OrderColumn(self.sorts.get(o.column, o.column), o.nulls_last) for o in self.query.order_by)

    def _ties(self) -> tuple[OrderColumn, ...]:
        """What breaks ties, with a small number in place of the TYPE column where that is enough."""
        ordered = {order.column for order in self.query.order_by} - self.sorts.keys()
        names = [name for name in self._tie_columns() if name not in ordered and comparable(self.types[name])]
        type = self.plan.type_column
        if type is not None and type not in ordered:
            before = [name for name in names if name in self._before(type)]
            ranked = self.plan.type_in_symbol or self.symbol_bits is not None
            instead = self.symbols[0][0] if ranked else TYPE_COLUMN
            names = [*before, instead, *(name for name in names if name not in before)]
        return tuple(OrderColumn(name) for name in names)

    def _before(self, type: str) -> list[str]:
        """The columns that the pattern reads which come before the TYPE column in the schema."""
        reads = list(self.query.reads)
        return reads[: reads.index(type)] if type in reads else reads

    def _tie_columns(self) -> list[str]:
        """What decides between rows that agree on ORDER BY: the source, what the pattern reads, what RETURN reads."""
        query = self.query
        pattern = [name for name in query.reads if name not in (*query.partition_by, self.plan.type_column)]
        source = [SOURCE_COLUMN] if SOURCE_COLUMN in self.types else []
        return list(dict.fromkeys([*source, *pattern, *self._used()]))

    def _payload(self, name: str) -> str:
        """A column as it is; the time is looked at for NULL, wherever it is used."""
        if name != self.query.order_by[0].column:
            return quote(name)
        shown = [n for n in self._needed() if not isinstance(self.types[n], StructType | ArrayType | MapType)]
        values = ", ".join(self._shown(n) for n in shown if n != SOURCE_COLUMN)
        if SOURCE_COLUMN in shown:
            aliases = ", ".join(literal(f"of {source.alias}") for source in self.query.sources)
            values = f"element_at(array({aliases}), {SOURCE_COLUMN} + 1), {values}"
        message = literal(f"[NULL_TIME] The ORDER BY column {name} is NULL in the row ")
        time, rest = quote(name), literal(f". {self._without_null_times(name)}")
        return (
            f"IF({time} IS NULL, raise_error(concat({message}, concat_ws(', ', {values}), {rest})), {time}) AS {time}"
        )

    def _without_null_times(self, name: str) -> str:
        """What to write; a stream goes on with it from the same checkpoint."""
        (first, *others), shown = self.query.sources, name if name.isidentifier() else quote(name)
        if first.relation is None:
            return f"To leave such rows out, match over df.where({shown + ' IS NOT NULL'!r})."
        plain = re.fullmatch(r"SELECT \* FROM (`[\w`.]+`)", first.relation)
        table = "…" if others or plain is None else plain[1].replace("`", "")
        alias = "…" if others else first.alias
        return f"To leave such rows out, write FROM (SELECT * FROM {table} WHERE {shown} IS NOT NULL) AS {alias}."

    def _shown(self, name: str) -> str:
        """A column of a row as people read it; NULL in rows of sources that have no such column."""
        value = f"concat({literal(name + ' = ')}, coalesce(CAST({quote(name)} AS STRING), 'NULL'))"
        made = next((made for made in self.query.made if made.name == name), None)
        having = [str(i) for i, sql in enumerate(made.by) if sql is not None] if made is not None else []
        if made is None or len(having) == len(made.by):
            return value
        return f"IF({SOURCE_COLUMN} IN ({', '.join(having)}), {value}, NULL)"

    def _term(self, sql: str, type: str) -> str:
        """What is compared, as NULL in rows that can be no event of its variables, where it could raise an error."""
        compared = self.query.formula.compared()
        users = {variable for variable, own, as_type in compared if (own, as_type) == (sql, type)}
        return self._where(term_sql(self.spark, sql, type), sql, self._tests(users))

    def _weight(self, variable: str, sql: str) -> str:
        """What rows weigh, likewise."""
        return self._where(sql, sql, self._tests({variable}))

    def _tests(self, variables: set[str | None]) -> list[str]:
        """What rows must be to be an event of one of the variables, as SQL."""
        types = dict(self.query.types)
        kinds = {kind for variable, kind in self.query.formula.bindings() if variable in variables}
        return sorted("TRUE" if kind is None else types[kind] for kind in kinds)

    def _where(self, made: str, sql: str, conditions: Sequence[str]) -> str:
        """An expression where one of the conditions holds, else NULL; a column as it is cannot raise an error."""
        alone = made.removesuffix(" + 0.0D").removesuffix(" + CAST(0 AS FLOAT)")
        bare = any(sql == quote(name) and alone.upper() in (sql.upper(), f"({sql.upper()})", *safe_casts(name, type))
                   for name, type in self.types.items())  # fmt: skip
        if bare or not conditions or "TRUE" in conditions:
            return made
        return f"IF({' OR '.join(f'({condition})' for condition in conditions)}, {made}, NULL)"

    def _normalised(self, name: str) -> str:
        """A PARTITION BY column."""
        return hashed_alike(self.spark, quote(name), self.types[name].simpleString())

    def _equal(self, key: Key) -> str:
        """A key of the planner's."""
        for link in self.query.links:
            if key.sql == quote(link.column):
                return collations.key(self.spark, key.sql) if is_collated(link.type) else key.sql
        type = key.type.lower()
        made = hashed_alike(self.spark, f"CAST({key.sql} AS {key.type})" if type else key.sql, type)
        return self._where(made, key.sql, self.plan.guards[: self.plan.n_event_guards])

    @functools.cached_property
    def _deterministic(self) -> bool:
        """Would two evaluations of the conditions on one row agree? What calls no function surely does."""
        calls = any(re.search(r"[\w`]\s*\(", sql) for sql, _ in self.query.origins)
        if not calls or not hasattr(self.source, "_jdf"):  # Connect cannot say; rand() is not worth losing the drop
            return True
        frame = self._with_keys().selectExpr(*(sql for _, sql in self.symbols))
        expressions = frame._jdf.queryExecution().analyzed().expressions()
        return all(expressions.apply(i).deterministic() for i in range(expressions.length()))

    def _wants(self, column: str) -> bool:
        """Does anything after the engine mention this column of a match?"""
        return not self.count_only and any(column in text for text in self.query.on_matches)

    def _wants_keys(self) -> bool:
        return any(self._wants(key_column(i)) for i in range(len(self.query.partition_by)))
