"""The columns that several sources make: each variable has the columns and types of its sources."""

from __future__ import annotations

import pytest
from queries import bound, check_error, filters

from cersql.binding.columns import keeps
from planner.query import Query

SCHEMAS: dict[str, dict[str, str]] = {
    "O": {"ts": "timestamp", "id": "bigint", "code": "int", "tags": "array<int>", "price": "double"},
    "P": {"TS": "timestamp", "ID": "double", "code": "string", "tags": "int", "paid": "double"},
    "Q": {"ts": "timestamp", "id": "bigint", "code": "string", "O.id": "string"},
}
F, END = "FROM O, P, Q PATTERN ", " ORDER BY ts RETURN *"


def query(text: str, before: str = F, end: str = END) -> Query:
    return bound(before + text + end, SCHEMAS)


def types_of(found: Query) -> dict[str, str]:
    return {column.name: column.type for column in found.columns}


def test_a_type_keeps_its_column() -> None:
    """One of a name where all agree; others when they are used, those of equal types together."""
    found = query("O a ; P b ; Q c WHERE a.id = 1 AND b.Id = 2 AND c.id = 3", end=" ORDER BY ts RETURN a.ts")
    assert types_of(found) == {
        "ts": "timestamp", "O, Q.id": "bigint", "P.id": "double", "price": "double", "paid": "double", "O.id": "string",
    }  # fmt: skip
    assert filters(found.formula) == "((a ; b) ; c) | a: O, Q.id = 1 | b: P.id = 2 | c: O, Q.id = 3"
    by = {made.name: tuple(sql and sql.text for sql in made.by) for made in found.made}
    assert by["ts"] == ("`ts`", "`TS`", "`ts`")
    assert by["O, Q.id"] == ("`id`", None, "`id`")
    assert by["P.id"] == (None, "`ID`", None)


def test_a_name_of_no_column_is_taken() -> None:
    """Q has a column called `O.id`."""
    found = query("O a ; P b WHERE a.id = b.id", end=" ORDER BY ts RETURN a.ts")
    assert "O, Q.id" in types_of(found)
    schemas = {"O": SCHEMAS["O"], "P": {**SCHEMAS["P"], "O.id": "string"}}
    found = bound("FROM O, P PATTERN O a ; P b WHERE a.id = b.id ORDER BY ts RETURN b.`O.id`", schemas)
    assert {"O.id", "O.id'", "P.id"} <= types_of(found).keys()


def test_a_variable_has_the_columns_of_its_sources_as_they_spell_them() -> None:
    found = query("O a ; P b ; (O OR Q) AS x WHERE a.id = 1", end=" ORDER BY ts RETURN a, b, x.id")
    columns = {v.name: {c.name: c.type for c in v.types} for v in found.variables}
    assert columns["a"] == {c.name: c.type for c in found.sources[0].columns}
    assert columns["b"] == {c.name: c.type for c in found.sources[1].columns}
    assert columns["x"]["id"] == "bigint"
    held = dict(zip((v.name for v in found.variables), zip(found.used, found.held, strict=True), strict=True))
    assert held["b"] == (("TS", "ID", "code", "tags", "paid"), ("ts", "P.id", "P, Q.code", "P.tags", "paid"))
    assert held["x"] == (("id",), ("O, Q.id",))


def test_unions_type_where_a_variable_can_be_of_several() -> None:
    found = query("ANY x WHERE x.id > 1", end=" ORDER BY ts RETURN x.id")
    assert types_of(found)["id"] == "double"
    by = next(made.by for made in found.made if made.name == "id")
    assert [sql and sql.text for sql in by] == ["`id`", "`ID`", "`id`"]
    assert "O, Q.id" not in types_of(found)  # nothing asks for it


@pytest.mark.parametrize(
    ("marked", "fragment"),
    [
        (F + "ANY x WHERE x.‸tags IS NULL" + END, "tags is ARRAY<INT> in O and INT in P, and no type holds both"),
        (F + "(O OR P) AS x WHERE x[‸tags IS NULL]" + END, "ARRAY<INT> in O and INT in P"),
        (F + "ANY x ; O a WHERE a.id < 5 ORDER BY ts RETURN x.‸tags", "tags is"),
        (F + "ANY x ORDER BY ts RETURN SIZE(COLLECT_LIST(x.‸tags))", "tags is"),
        (F + "ANY x ORDER BY ts ‸RETURN x", "a variable of one of them"),
        (F + "A x DEFINE A AS ‸tags IS NULL" + END, "tags is"),
        (F + "A x DEFINE A AS A.‸tags IS NULL" + END, "tags is"),
        ("FROM O, P PATTERN O PARTITION BY ‸tags" + END, "tags is"),
        ("FROM O, P PATTERN O ; P WHERE [‸tags]" + END, "tags is"),
        ("FROM O, P PATTERN O PARTITION BY (‸tags)" + END, "tags is"),
    ],
)
def test_no_common_type(marked: str, fragment: str) -> None:
    """Using it is the error, at its place, not having it."""
    check_error(marked, "NO_COMMON_TYPE", fragment, schemas=SCHEMAS)


def test_having_such_a_column_is_none() -> None:
    assert (
        len(query("ANY x ; O a ; P b WHERE a.tags IS NULL AND b.tags = 1", end=" ORDER BY ts RETURN x.ts").types) == 2
    )


@pytest.mark.parametrize(
    ("marked", "fragment"),
    [
        ("FROM O, P PATTERN O PARTITION BY ‸id" + END, "id is BIGINT in O and DOUBLE in P; as DOUBLE"),
        ("FROM O, P PATTERN O ; P WHERE [‸id]" + END, "[CAST(id AS …)]"),
        ("FROM O, P PATTERN O PARTITION BY ‸code" + END, "INT in O and STRING in P"),
        ("FROM O, P PATTERN O ORDER BY ts, ‸id RETURN *", "ORDER BY CAST(id AS …)"),
    ],
)
def test_a_key_whose_values_a_common_type_would_mix(marked: str, fragment: str) -> None:
    check_error(marked, "KEY_TYPES", fragment, schemas=SCHEMAS)


@pytest.mark.parametrize(
    ("source", "target", "key", "order"),
    [
        ("int", "bigint", True, True), ("int", "double", True, True), ("bigint", "double", False, False),
        ("smallint", "float", True, True), ("int", "float", False, False), ("float", "double", True, True),
        ("int", "decimal(10,0)", True, True), ("int", "decimal(10,2)", False, False),
        ("decimal(15,2)", "double", True, True), ("decimal(16,2)", "double", False, False),
        ("decimal(5,2)", "decimal(7,3)", True, True), ("decimal(5,2)", "decimal(5,1)", False, False),
        ("date", "timestamp", True, True), ("timestamp_ntz", "timestamp", False, True),
        ("int", "string", True, False), ("string", "bigint", False, False), ("boolean", "string", True, False),
        ("void", "map<int,int>", True, True), ("array<int>", "array<bigint>", True, True),
        ("array<bigint>", "array<double>", False, False), ("interval day", "interval day to second", True, True),
        ("struct<a:int>", "struct<a:bigint>", False, False), ("binary", "string", False, False),
    ],
)  # fmt: skip
def test_which_types_keep_values_apart(source: str, target: str, key: bool, order: bool) -> None:
    assert (keeps(source, target), keeps(source, target, order=True)) == (key, order)


def test_definitions() -> None:
    """A defined name that is a source has its columns; after a source's alias stands that source's column."""
    found = query(
        "O a ; Big b",
        end=" DEFINE O AS id > 1 AND O.code = 2, Big AS P.id > 3 AND Big.ts IS NOT NULL ORDER BY ts RETURN a.ts",
    )
    types = dict(found.types)
    assert types["O"] == "__cersql_source = 0 AND (`O, Q.id` > 1 AND `O.code` = 2)"
    assert types["Big"] == "(IF(__cersql_source = 1, `P.id`, NULL) > 3 AND `ts` IS NOT NULL)"
    check_error(F + "O DEFINE O AS ‸paid > 1" + END, "UNKNOWN_COLUMN", "paid is not a column of O", schemas=SCHEMAS)
    check_error(F + "A DEFINE A AS P.‸price > 1" + END, "UNKNOWN_COLUMN", "price is not a column of P", schemas=SCHEMAS)


def test_an_unused_definition_makes_no_column() -> None:
    """Its casts could fail, and nobody has asked for them."""
    found = query("O a", end=" DEFINE Big AS code > 3 ORDER BY ts RETURN a.ts")
    assert "code" not in types_of(found)


def test_the_type_column_is_its_own_sources() -> None:
    schemas = {"E": {"ts": "int", "type": "string"}, "G": {"ts": "int", "type": "int"}}
    found = bound("FROM E TYPE type, G TYPE type PATTERN A ; `1` ORDER BY ts RETURN A.ts", schemas)
    assert dict(found.types)["A"] == (
        "(__cersql_source = 0 AND `E.type` = 'A') OR (__cersql_source = 1 AND CAST(`G.type` AS STRING) = 'A')"
    )


def test_case_matters_where_the_session_says_so() -> None:
    schemas = {"O": {"id": "int", "code": "int"}, "P": {"ID": "string", "code": "int"}}
    found = bound("FROM O, P PATTERN O a ; P b ORDER BY code RETURN a.id, b.ID", schemas, case_sensitive=True)
    assert types_of(found) == {"id": "int", "code": "int", "ID": "string"}
