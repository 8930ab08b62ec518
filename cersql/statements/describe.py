"""What DESCRIBE PATTERN tells, as rows of (section, name, value)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cersql.show.explain import Stages, explain_stage
from cersql.statements.kinds import CreateFunction

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Fact = tuple[str, str, str]


def columns_of(schema: StructType) -> tuple[Fact, ...]:
    """The columns of a view and their types."""
    return tuple(("column", field.name, field.dataType.simpleString()) for field in schema.fields)


def describe(text: str, compiled: Stages) -> tuple[Fact, ...]:
    """A planned query: its text, what it is made of and how it runs, as EXPLAIN prints them."""
    formula, _, meaning = explain_stage(compiled, "cel").partition("\n\n")
    facts = [("query", "text", text), ("query", "formula", formula)]
    facts += [("query", *_named(line)) for line in meaning.splitlines()]
    facts += [("plan", *_named(line)) for line in explain_stage(compiled, "physical").splitlines()]
    return tuple(facts)


def _named(line: str) -> tuple[str, str]:
    """`states: 4` as its two halves; a line that continues the one before has no name."""
    name, colon, value = line.partition(": ")
    return (name, value) if colon and not line.startswith(" ") else ("", line.strip())


def signature(sql: str, found: CreateFunction) -> tuple[Fact, ...]:
    """A pattern function, whose columns and plan depend on the table that it is called with."""
    facts: list[Fact] = [("parameter", "(table)", "TABLE(…) [PARTITION BY …] [ORDER BY …]")]
    for parameter in found.parameters:
        default = "" if parameter.default is None else f" DEFAULT {parameter.default}"
        facts.append(("parameter", parameter.name.value, f"{parameter.type}{default}"))
    return (*facts, ("query", "text", sql[found.query.start : found.query.end]))
