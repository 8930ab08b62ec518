"""Arithmetic over events as Spark computes it, with its types, rounding, NULLs and overflow: random expressions, and
all pairs of rows."""

from __future__ import annotations

import random
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import compress
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from sparks import settings, view

from cersql.binding.arithmetic import Arithmetic, Related
from cersql.binding.comparisons import Event
from cersql.binding.expressions import Node, Ref, read, rendered
from planner.sql import Sql, quote
from runtime.errors import CersqlError, ExecutionError, Span
from runtime.jit import kernel
from runtime.partition.terms import term_codes
from runtime.program import NULL_CODE
from runtime.relations import holds
from runtime.steppers.relation_ops import NO_ERROR, flat, related
from spark_ext.quiet import quiet_captures
from spark_ext.schema import SparkCatalog

SCHEMA = (
    "id INT, t TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, e DECIMAL(10,2), g DECIMAL(18,6), day DATE, "
    "ts TIMESTAMP, ntz TIMESTAMP_NTZ"
)
INF, NAN = float("inf"), float("nan")
BIG = 2**63 - 1


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


ROWS: list[tuple[Any, ...]] = [
    (0, 1, 2, 3, 4, 1.5, 2.5, Decimal("1.10"), Decimal("2.500000"), date(2025, 3, 29), _at("2025-03-30T00:58:00"),
     datetime(2024, 2, 29, 12)),
    (1, 127, 32767, 2**31 - 1, BIG, 3e38, 1e308, Decimal("99999999.99"), Decimal("999999999999.999999"),
     date(2024, 2, 29), _at("2025-03-30T01:01:00"), datetime(2025, 3, 31, 11, 59, 59, 999_999)),
    (2, -128, -32768, -(2**31), -BIG, -0.0, -0.0, Decimal("-0.01"), Decimal("0.000001"), date(1969, 12, 31),
     _at("1969-12-31T23:59:59.999999"), datetime(1900, 1, 31)),
    (3, None, None, None, None, None, None, None, None, None, None, None),
    (4, 0, 0, 0, 0, 0.0, 0.0, Decimal(0), Decimal(0), date(1970, 1, 1), _at("1970-01-01T00:00:00"),
     datetime(1970, 1, 1)),
    (5, 7, -7, 100, -3, NAN, NAN, Decimal("33.33"), Decimal("-1.234567"), date(2000, 10, 29),
     _at("2024-10-27T01:30:00"), datetime(2000, 2, 29, 23)),
    (6, -1, 3, -1, -1, INF, -INF, Decimal("1.05"), Decimal("1.050000"), date(2025, 12, 31),
     _at("2024-10-27T00:30:00"), datetime(2000, 3, 31)),
    (7, 5, 5, 5, 5, 0.1, 0.1, Decimal("0.10"), Decimal("0.100000"), date(2025, 2, 28), _at("2025-06-30T23:30:00"),
     datetime(2025, 2, 28)),
]  # fmt: skip
NUMBERS = ["t", "s", "i", "l", "f", "d", "e", "g"]
UNITS = "MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR".split()


@kernel
def compiled(relations: Any, number: int) -> bool:
    return related(relations, number)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    return view(spark, "arithmetic_rows", ROWS, SCHEMA)


def expression(draw: random.Random) -> str:
    """A condition on an a and a b."""
    if draw.random() < 0.25:
        return _of_times(draw)
    return f"{_number(draw, 3)} {draw.choice(['<', '<=', '>', '>=', '=', '<>', '<=>'])} {_number(draw, 1)}"


def _number(draw: random.Random, depth: int) -> str:
    if depth == 0 or draw.random() < 0.2:
        constant = draw.choice(["1", "-2", "0.5", "1.05", "2.5D", "3000000000", "1e-1"])
        return constant if draw.random() < 0.2 else f"{draw.choice('ab')}.{draw.choice(NUMBERS)}"
    one, other = _number(draw, depth - 1), _number(draw, depth - 1)
    match draw.randrange(9):
        case 0 | 1 | 2 | 3 | 4:
            return f"({one} {draw.choice(['+', '-', '*', '/', '-', '%'])} {other})"
        case 5:
            return f"abs({one})"
        case 6:
            return f"{draw.choice(['least', 'greatest'])}({one}, {other})"
        case 7:
            return f"-({one})"
    return draw.choice([f"sqrt({one})", f"CAST({one} AS DOUBLE)", f"power({one}, 2)", f"pmod({one}, {other})",
                        f"({one} DIV {other})", f"try_divide({one}, {other})"])  # fmt: skip


def _of_times(draw: random.Random) -> str:
    op, minutes = draw.choice(["<", "<=", ">", ">=", "="]), draw.choice([-5, 1, 63, 100_000])
    column = draw.choice(["ts", "ntz", "day"])
    match draw.randrange(4):
        case 0:
            return (
                f"abs(b.{column} - a.{column}) {op} INTERVAL '{minutes // 60}' {'DAY' if column == 'day' else 'HOUR'}"
            )
        case 1:
            return f"datediff(b.{column}, a.{draw.choice(['ts', 'day'])}) {op} {minutes}"
        case 2:
            return f"b.{column} - a.{column} + (a.ts - b.ts) {op} INTERVAL '{minutes}' MINUTE"
    return f"timestampdiff({draw.choice(UNITS)}, a.{column}, b.{draw.choice(['ts', 'ntz'])}) {op} {minutes}"


def relation_of(spark: SparkSession, rows: DataFrame, text: str) -> Related | None:
    catalog = SparkCatalog(spark, rows)
    columns = catalog.given_columns()
    names = {"a": "a", "b": "b"}
    nodes = read(text, Span(0, len(text)), names.get)

    def sql(part: Any) -> Sql:
        def column(node: Node) -> str | None:
            return quote(node.column or "") if isinstance(node, Ref) else None

        return rendered(text, part, column)

    try:
        catalog.check(text, sql(nodes), columns)
    except CersqlError:  # what Spark does not take is not computed with
        return None
    arithmetic = Arithmetic(
        sql, lambda e: catalog.type_of(e, columns), lambda a, b: catalog.common_type(a, b, columns), catalog.ansi
    )
    return arithmetic.related(nodes, lambda op: op, {}, text)


def operands_of(rows: DataFrame, found: list[Related]) -> list[list[Any]]:
    """For each relation the codes of its operands, row by row."""
    wanted = [(f"CAST({sql.text} AS {type})", k, o) for k, made in enumerate(found)
              for o, (_, sql, type) in enumerate(made.operands)]  # fmt: skip
    table = rows.orderBy("id").selectExpr(*(f"{sql} AS c{k}_{o}" for sql, k, o in wanted)).toArrow()
    codes: list[list[Any]] = [[None] * len(made.operands) for made in found]
    for _, k, o in wanted:
        column: pa.ChunkedArray = table.column(f"c{k}_{o}")
        try:
            codes[k][o] = term_codes([column], (0,))[:, 0].tolist()
        except ExecutionError as error:
            if error.condition != "LEAST_BIGINT":
                raise
    return codes


@pytest.mark.parametrize(
    ("ansi", "seed"), [*(pytest.param(False, seed, marks=pytest.mark.exhaustive) for seed in (1, 2)), (True, 3)]
)
def test_random_arithmetic_is_what_spark_computes(spark: SparkSession, rows: DataFrame, ansi: bool, seed: int) -> None:
    draw = random.Random(seed)
    session = {"spark__sql__ansi__enabled": ansi, "spark__sql__session__timeZone": "Europe/London"}
    with settings(spark, **session):
        texts, found = [], []
        while len(texts) < 50:
            text = expression(draw)
            with quiet_captures():
                made = relation_of(spark, rows, text) if "a." in text and "b." in text else None
            # Where Spark is to fail, what speaks of one event alone must not: it is a column then.
            if made is not None and not (ansi and any(map(_can_fail, made.operands))):
                texts.append(text)
                found.append(made)
        known = [_has_codes(codes) for codes in operands_of(rows, found)]
        texts, found = list(compress(texts, known)), list(compress(found, known))
        pairs = rows.alias("a").crossJoin(rows.alias("b")).orderBy("a.id", "b.id")
        if ansi:  # a condition that fails somewhere fails everywhere: only those that never do are compared
            texts, found = _that_never_fail(pairs, rows, texts, found)
        expected = pairs.selectExpr(*(f"coalesce({text}, FALSE) AS c{k}" for k, text in enumerate(texts))).collect()
        codes = operands_of(rows, found)
    kernels = 0
    for k, (text, made) in enumerate(zip(texts, found, strict=True)):
        got, quick = [], []
        r = flat((made.relation,)) if made.relation.in_kernels else None
        for i in range(len(ROWS)):
            for j in range(len(ROWS)):
                values = [codes[k][o][i if event[0] == "a" else j] for o, (event, _, _) in enumerate(made.operands)]
                got.append(holds(made.relation, [None if v == NULL_CODE else v for v in values]))
                if r is not None:
                    r.values[: len(values)] = values
                    quick.append(bool(compiled(r, 0)))
                    assert r.error[0] == NO_ERROR
        assert got == [row[k] for row in expected], text
        kernels += r is not None
        assert r is None or quick == got, text
    assert kernels > len(texts) // 3


def _can_fail(operand: tuple[Event, Sql, str]) -> bool:
    """Does Spark compute something with the columns of one event?"""
    text = operand[1].text.replace("TIMESTAMP_NTZ '1970-01-01 00:00:00' +", "")
    return re.search(r"[-+*/%]|DIV|abs|pmod|power", text.replace("'1970-01-01'", "")) is not None


def _has_codes(codes: list[list[int] | None]) -> bool:
    """Is no operand the least BIGINT, by an overflow that is none of ours to compute?"""
    return None not in codes


def _that_never_fail(
    pairs: DataFrame, rows: DataFrame, texts: list[str], found: list[Related]
) -> tuple[list[str], list[Related]]:
    """By what our own arithmetic says, which the comparison then holds it to."""
    codes = operands_of(rows, found)
    kept = []
    for k, made in enumerate(found):
        try:
            for i in range(len(ROWS)):
                for j in range(len(ROWS)):
                    values = [codes[k][o][i if event[0] == "a" else j] for o, (event, _, _) in enumerate(made.operands)]
                    holds(made.relation, [None if v == NULL_CODE else v for v in values])
            kept.append(k)
        except ExecutionError as error:
            if error.condition != "ARITHMETIC":
                raise
    assert len(kept) > 20
    return [texts[k] for k in kept], [found[k] for k in kept]
