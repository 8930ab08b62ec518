"""What to write where a table stands beside a stream in FROM: a join, in which each row of the stream looks it up.

FROM live AS s, limits AS t      →      FROM (SELECT s.*, t.top FROM live AS s JOIN limits AS t ON s.k = t.k) AS s
"""

from __future__ import annotations

from planner.query import Query, Source
from planner.sql import quote

_MOST = 3  # columns that are shown


def lookup_text(query: Query, stream: str, table: str) -> str:
    """The hint, with the names of the query. `stream` and `table`: aliases of sources."""
    by_alias = {source.alias: source for source in query.sources}
    left, right = by_alias[stream], by_alias[table]
    known = {column.name.casefold() for column in left.columns}
    more = [column.name for column in right.columns if column.name.casefold() not in known]
    both = _joined_by(query, left, right)
    s, t = _name(left.alias), _name(right.alias)
    joined = f"{_relation(left)} JOIN {_relation(right)}"
    columns = ", ".join([f"{s}.*", *(f"{t}.{_name(name)}" for name in more[:_MOST]), *(["…"] if more[_MOST:] else [])])
    on = "…" if both is None else f"{s}.{_name(both)} = {t}.{_name(both)}"
    hint = f"To look up a table for each row of the stream: FROM (SELECT {columns} FROM {joined} ON {on}) AS {s}"
    short = "" if both is None else f", in short FROM {joined} USING ({_name(both)})"
    return f"{hint}{short}. A table whose rows are events must be a stream, too."


def _joined_by(query: Query, left: Source, right: Source) -> str | None:
    """A column that both have: one of PARTITION BY, if there is such a one, and never the time or the types."""
    own = {column.name.casefold() for column in right.columns}
    without = {query.order_by[0].column, left.type_column, right.type_column}
    both = [column.name for column in left.columns if column.name.casefold() in own and column.name not in without]
    return next((name for name in query.partition_by if name in both), both[0] if both else None)


def _relation(source: Source) -> str:
    whole = "SELECT * FROM "
    statement = " ".join((source.relation or "…").split())
    name = statement.removeprefix(whole).replace("`", "")
    plain = statement.startswith(whole) and all(map(_is_plain, name.split(".")))
    return f"{name if plain else f'({statement})'} AS {_name(source.alias)}"


def _name(name: str) -> str:
    return name if _is_plain(name) else quote(name)


def _is_plain(name: str) -> bool:
    return name.isidentifier() and name.isascii()
