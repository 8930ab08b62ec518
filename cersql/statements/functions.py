"""Pattern functions: a query without FROM, over the TABLE argument of each call.

The parameters of a call are filled into the definition's text (cersql/statements/parameters.py); PARTITION BY and ORDER
BY of the call stand for those of the definition. Errors point into the definition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from cersql.binding.scope import collect
from cersql.errors import BindError, suggestion
from cersql.language import syntax
from cersql.language.parse import parse
from cersql.statements.kinds import CreateFunction, Parameter
from cersql.statements.parameters import Filled, fill, uses
from cersql.statements.planned import Planned, plan_tree
from runtime.errors import CersqlError, Span
from spark_ext.functions import Call, Implementation
from spark_ext.objections import evaluated, is_accepted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WHOLE = frozenset("TINYINT SMALLINT INT INTEGER BIGINT BYTE SHORT LONG".split())
_NUMERIC = frozenset("INT INTEGER BIGINT LONG DOUBLE FLOAT REAL".split())
_NUMBER = re.compile(r"-?\d{1,9}")  # fits all of these
_SUFFIXED = re.compile(r"(\d+)[lLsSyY]")  # 5L: a literal of Spark's that is no number for WITHIN, LIMIT and {n}


def check_function(spark: SparkSession, sql: str, found: CreateFunction) -> None:
    """All that can be told without a table. Raises CersqlError with its place in `sql`."""
    for parameter in found.parameters:
        _check_type(spark, parameter)
    filled, query = _filled(sql, found, {p.name.value: p.default or "1" for p in found.parameters}, literals_only=True)
    try:
        tree = parse(filled.text, start=query.start, end=query.end)
        if tree.sources:
            hint = "Leave FROM out; call it with TABLE(t)."
            at = tree.clause("FROM") or tree.sources[0].span
            raise BindError("FUNCTION_WITH_SOURCE", span=at, hint=hint).at(filled.text)
    except CersqlError as error:
        raise filled.original(error) from None
    names = collect(tree.pattern, case_sensitive=False)
    types = {atom.type.casefold(): "a type" for atom in names.atoms if atom.type is not None}
    variables = {name.casefold(): "a variable" for name in names.order if not name.startswith("@")}
    for parameter in found.parameters:
        name = parameter.name
        what = (types | variables).get(name.value.casefold())
        if what is not None:
            raise BindError("PARAMETER_NAME", span=name.span, name=name.value, what=what)
        if not uses(sql, found.query, name.value, found.name.value):
            raise BindError("UNUSED_PARAMETER", span=name.span, name=name.value, function=found.name.value)


def _check_type(spark: SparkSession, parameter: Parameter) -> None:
    cast = f"CAST({parameter.default or 'NULL'} AS {parameter.type})"
    if not is_accepted(spark, cast) or (parameter.default is not None and evaluated(spark, cast) is None):
        hint = None if parameter.default is None else f"Or its default, {parameter.default}, does not fit."
        raise BindError("PARAMETER_TYPE", span=parameter.name.span, type=parameter.type, hint=hint)


def body_of(sql: str, found: CreateFunction) -> Implementation:
    """What a call of the function does."""

    def body(call: Call) -> DataFrame:
        return planned_call(sql, found, call).frame()

    return body


def planned_call(sql: str, found: CreateFunction, call: Call) -> Planned:
    """The definition's query over the call's table."""
    filled, query = _filled(sql, found, _typed(call.table.sparkSession, found, _values(found, call)))
    try:
        tree = _with_clauses(parse(filled.text, start=query.start, end=query.end), call)
        return plan_tree(call.table.sparkSession, tree, given=call.table)
    except CersqlError as error:
        if error.condition == "UNKNOWN_COLUMN" and error.parameters.get("name") in _columns_of(call):
            error.hint = f"{error.hint or ''} It stands in the call of {found.name.value}.".strip()
            error.text = error.span = None
            raise
        raise _in_definition(filled.original(error.at(filled.text)), found.name.value) from None


def _columns_of(call: Call) -> set[str]:
    """The columns that the call itself names."""
    return {*(call.partition_by or ()), *(column for column, _ in call.order_by or ())}


def _in_definition(error: CersqlError, name: str) -> CersqlError:
    """The error with words for its place: Spark shows the place of the call instead."""
    if error.condition == "ORDER_MISSING":
        error.hint = f"Write ORDER BY in the call, {name}(TABLE(t) ORDER BY ts), or in the definition."
    elif error.text is not None and error.span is not None:
        shown = " ".join(error.text[error.span.start : error.span.end].split())
        where = f"In the definition of {name}, line {error.line}, column {error.column}{f': {shown}' if shown else ''}."
        error.hint = f"{error.hint} {where}" if error.hint else where
    return error


def _filled(
    sql: str, found: CreateFunction, values: Mapping[str, str], *, literals_only: bool = False
) -> tuple[Filled, Span]:
    """The definition with values for its parameters, and where its query is then.

    `literals_only`: leave the conditions alone, which are texts to the parser whatever stands in them.
    """
    places: list[tuple[Span, str]] = []
    for parameter in found.parameters:
        value = values[parameter.name.value]
        number = _SUFFIXED.fullmatch(value)
        for span, is_literal in uses(sql, found.query, parameter.name.value, found.name.value):
            if is_literal:
                places.append((span, number[1] if number else value))
            elif not literals_only:
                places.append((span, f"CAST({value} AS {parameter.type})"))
    filled = fill(sql, sorted(places, key=lambda place: place[0].start))
    return filled, Span(found.query.start, found.query.end + len(filled.text) - len(sql))


def _values(found: CreateFunction, call: Call) -> dict[str, str]:
    """A value for each parameter: positional, named, or its default."""
    function, names = found.name.value, [parameter.name.value for parameter in found.parameters]
    given = dict(zip(names, call.positional, strict=False))
    if len(call.positional) > len(names):
        problem = f"it has {len(call.positional)} values, and the function {len(names)} parameters"
        raise _call_error(function, problem, found)
    by_name = {name.casefold(): name for name in names}
    for written, value in call.named:
        name = by_name.get(written.casefold())
        if name is None:
            hint = suggestion(written, names, "It has")
            raise BindError("UNKNOWN_PARAMETER", function=function, name=written, hint=hint)
        if name in given:
            raise _call_error(function, f"{name} is given twice", found)
        given[name] = value
    for parameter in found.parameters:
        name = parameter.name.value
        if name not in given and parameter.default is None:
            raise _call_error(function, f"{name} has no value and no default", found)
        given.setdefault(name, parameter.default or "NULL")
    return given


def _typed(spark: SparkSession, found: CreateFunction, values: Mapping[str, str]) -> dict[str, str]:
    """The values, as far as they are not written in the type of their parameter in that. BindError: not of the type."""
    typed = dict(values)
    for parameter in found.parameters:
        name, type = parameter.name.value, parameter.type
        value = values[name]
        if value == "NULL" or (_NUMBER.fullmatch(value) and type.upper() in _NUMERIC):
            continue
        made = evaluated(spark, f"CAST({value} AS {type})")
        if made is None:
            raise _call_error(found.name.value, f"{name} is {type}, and {value} is not", found)
        if made and type.upper() in _WHOLE:
            typed[name] = made
    return typed


def _call_error(function: str, problem: str, found: CreateFunction) -> BindError:
    shown = ", ".join(
        f"{p.name.value} {p.type}{f' DEFAULT {p.default}' if p.default else ''}" for p in found.parameters
    )
    return BindError(
        "FUNCTION_ARGUMENTS", function=function, problem=problem, hint=f"Its parameters: {shown or 'none'}."
    )


def _with_clauses(tree: syntax.Query, call: Call) -> syntax.Query:
    """The query with the PARTITION BY and ORDER BY of the call, where it has them."""
    at = tree.clause("PATTERN") or tree.pattern.span
    if call.partition_by is not None:
        columns = tuple((syntax.Name(column, at, quoted=True),) for column in call.partition_by)
        tree = replace(tree, partition_by=columns)
    if call.order_by is not None:
        order = tuple(
            syntax.OrderItem((syntax.Name(column, at, quoted=True),), False, "LAST" if last else None, at)
            for column, last in call.order_by
        )
        tree = replace(tree, order_by=order)
    return tree
