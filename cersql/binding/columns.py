"""The columns of a stream that several sources make.

What the user writes is a *name*; rows hold *columns*. A name that all its sources give one type is one column, as in a
UNION. Where types differ, each type keeps a column of its own, and a variable that can only be a row of some sources
reads theirs: no value is cast that need not be. UNION's type is used where a name speaks of rows of several sources,
and where there is none, that use (not the column) is an error.

    FROM orders AS O, payments AS P         O.id BIGINT, P.id DOUBLE, both with ts TIMESTAMP
    ts                                      one column
    O.id, P.id, and for rows of both id     made when they are first used

Expressions over one row (PARTITION BY date(ts)) are columns of the same kind: computed in each source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import overload

from cersql.binding.scope import Catalog, Names, unknown_column
from cersql.errors import BindError
from planner.query import Column, Made, Source
from planner.sql import Sql, quote
from runtime.errors import Span

_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}  # and how many digits they have
_DIGITS = {"float": 7, "double": 15}  # of a decimal number that survives


class Columns(Sequence[Column]):
    """The columns of one query's stream. Those of a single type are there from the start, others as they are used."""

    def __init__(self, items: Sequence[Source], catalog: Catalog) -> None:
        self.items, self.catalog = tuple(items), catalog
        self._fold = Names((), catalog.case_sensitive).fold
        self._own = [{self._fold(column.name): column for column in source.columns} for source in self.items]
        every = [column.name for source in self.items for column in source.columns]
        self.names = tuple(Names(every, catalog.case_sensitive))
        self._order = {self._fold(name): place for place, name in enumerate(self.names)}
        self._columns: dict[tuple[str, frozenset[str]], Column] = {}
        self._made: dict[str, Made] = {}
        self._places: dict[str, int] = {}
        for name in self.names:
            having = self._having(name, range(len(self.items)))
            if len({type for _, type in having}) == 1:
                self._column(name, having)

    # ------------------------------------------------------------ names

    def known(self, sources: Iterable[int] | None = None) -> tuple[str, ...]:
        """The names that rows of some sources (None: of any) have, as the first of them spells each, in UNION's
        order."""
        if sources is None:
            return self.names
        own = Names((c.name for i in sorted(sources) for c in self.items[i].columns), self.catalog.case_sensitive)
        return tuple(spelled for name in self.names if (spelled := own.get(name)) is not None)

    def find(self, name: str, sources: Iterable[int] | None = None) -> str | None:
        """The name as some sources spell it; None if they have no such column."""
        return Names(self.known(sources), self.catalog.case_sensitive).get(name)

    def own(self, name: str, source: int) -> Column | None:
        """A source's own column."""
        return self._own[source].get(self._fold(name))

    # ------------------------------------------------------------ columns

    def __len__(self) -> int:
        return len(self.every)

    @overload
    def __getitem__(self, index: int) -> Column: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Column]: ...

    def __getitem__(self, index: int | slice) -> Column | Sequence[Column]:
        return self.every[index]

    @property
    def every(self) -> tuple[Column, ...]:
        """All columns that there are so far, in the order of the sources' columns, then expressions."""
        found = {column.name: column for column in self._columns.values()}
        return tuple(sorted(found.values(), key=lambda column: self._places[column.name]))

    @property
    def made(self) -> tuple[Made, ...]:
        """How those are made that are not simply a column of the only source."""
        return tuple(self._made[column.name] for column in self.every if column.name in self._made)

    def column(self, name: str, sources: Iterable[int], span: Span | None) -> Column:
        """The column that holds a name's values in rows of some sources. Raises NO_COMMON_TYPE."""
        having = self._having(name, sources)
        found = self._column(name, having)
        if found is None:
            raise BindError(
                "NO_COMMON_TYPE", span=span, name=name, types=self.types_of(name, sources),
                hint=f"Name it with a variable of one of them, or cast it in a subquery: FROM (SELECT *, CAST({name} "
                f"AS …) AS {name}_1 FROM …) AS {self.items[having[0][0]].alias}.",
            )  # fmt: skip
        return found

    def type_of(self, name: str, sources: Iterable[int]) -> Column | None:
        """The name with its type in rows of some sources; None if there is none. Makes no column."""
        having = self._having(name, sources)
        first = self.own(name, having[0][0])
        types = {type for _, type in having}
        if first is None or len(types) == 1:
            return first
        return self.catalog.common([self._own[i][self._fold(name)] for i, _ in having], first.name)

    def types_of(self, name: str, sources: Iterable[int]) -> str:
        """`INT in O and STRING in P`."""
        first: dict[str, str] = {}
        for i, type in self._having(name, sources):
            first.setdefault(type, self.items[i].alias)
        return _listed([f"{type.upper()} in {alias}" for type, alias in first.items()])

    def _lookup(self, i: int) -> str:
        """How to join a source to another one, by a column that both have."""
        other = self.items[0 if i else 1]
        own = {column.name for column in self.items[i].columns}
        both = next((column.name for column in other.columns if column.name in own), "…")
        return f"FROM {other.alias} JOIN {self.items[i].alias} USING ({both})"

    def everywhere(self, name: str, span: Span, clause: str) -> Column:
        """The column of a name that every row must have (PARTITION BY, ORDER BY)."""
        if self.find(name) is None and len(self.items) > 1:
            raise unknown_column(name, span, "the sources", self.names)
        for i, source in enumerate(self.items):
            if self.own(name, i) is None:
                error = unknown_column(name, span, source.alias, self.known([i]))
                if len(self.items) > 1:
                    error.hint = f"{clause} asks of every row, also of those of {source.alias}. {error.hint}"
                    if clause == "ORDER BY":
                        error.hint += f" If they are no events, look them up: {self._lookup(i)}."
                raise error
        return self.column(name, range(len(self.items)), span)

    def check_kept(self, name: str, sources: Iterable[int], column: Column, span: Span, clause: str) -> None:
        """Raises KEY_TYPES where the common type makes values equal that are not."""
        sources = tuple(sources)
        for _, type in self._having(name, sources):
            if not keeps(type, column.type, order=clause == "ORDER BY"):
                raise key_types(name, self.types_of(name, sources), column.type, span, clause)

    def _having(self, name: str, sources: Iterable[int]) -> list[tuple[int, str]]:
        """Of some sources those that have a column, and its type there."""
        folded = self._fold(name)
        return [(i, self._own[i][folded].type) for i in sorted(sources) if folded in self._own[i]]

    def _column(self, name: str, having: Sequence[tuple[int, str]]) -> Column | None:
        folded, types = self._fold(name), frozenset(type for _, type in having)
        key = folded, types
        if key not in self._columns:
            every = self._having(name, range(len(self.items)))
            group = [i for i, type in every if type in types]
            spelled = self.names[self._order[folded]]
            own = [self._own[i][folded] for i in group]
            if len(group) < len(every):
                spelled = self._unique(f"{', '.join(self.items[i].alias for i in group)}.{spelled}")
            found = own[0] if own[0].name == spelled and len(types) == 1 else self.catalog.common(own, spelled)
            if found is None:
                return None
            if len(self.items) > 1:
                at = dict(zip(group, own, strict=True))
                by = tuple(_plain(at[i].name) if i in at else None for i in range(len(self.items)))
                self._made[spelled] = Made(spelled, by)
            self._columns[key] = found
            self._places[spelled] = self._order[folded]
        return self._columns[key]

    def add(self, name: str, parts: Sequence[Column], by: Sequence[Sql | None]) -> Column | None:
        """A column computed in each source: `parts` are its types there. None if they have no common type."""
        types = {part.type for part in parts}
        name = self._unique(name)
        renamed = self.catalog.common(parts, name)
        if renamed is None:
            return None
        self._columns[name, frozenset(types)] = renamed
        self._made[name] = Made(name, tuple(by))
        self._places[name] = len(self._order) + len(self._places)
        return renamed

    def _unique(self, name: str) -> str:
        taken = {self._fold(other) for other in (*self.names, *self._places)}
        while self._fold(name) in taken:
            name += "'"
        return name

    # ------------------------------------------------------------ what is only looked at

    def state(self) -> tuple[dict[tuple[str, frozenset[str]], Column], dict[str, Made], dict[str, int]]:
        return dict(self._columns), dict(self._made), dict(self._places)

    def restore(self, state: tuple[dict[tuple[str, frozenset[str]], Column], dict[str, Made], dict[str, int]]) -> None:
        """Forget columns that nothing but a check has asked for: a cast that nobody needs may fail."""
        self._columns, self._made, self._places = state


@dataclass(frozen=True)
class View:
    """The columns that rows of some sources have. `limit`: what PROJECT has left of them, None for all."""

    columns: Columns
    sources: tuple[int, ...]
    limit: frozenset[str] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        known = self.columns.known(self.sources)
        return known if self.limit is None else tuple(name for name in known if name in self.limit)

    def find(self, name: str) -> str | None:
        return Names(self.names, self.columns.catalog.case_sensitive).get(name)

    def column(self, name: str, span: Span) -> Column:
        return self.columns.column(name, self.sources, span)


def key_types(name: str, types: str, type: str, span: Span, clause: str) -> BindError:
    written = f"[CAST({name} AS …)]" if clause == "[ ]" else f"{clause} CAST({name} AS …)"
    return BindError(
        "KEY_TYPES", span=span, name=name, types=types, type=type.upper(),
        hint=f"Say in which type they are compared: {written}.",
    )  # fmt: skip


def keeps(source: str, target: str, order: bool = False) -> bool:
    """Are values of one type still different in another (and, for `order`, in their order)?

    >>> keeps("int", "double"), keeps("bigint", "double")
    (True, False)
    """
    if source == target or source == "void":
        return True
    if source in _WHOLE or source.startswith("decimal"):
        digits, scale = _decimal(source)
        if target in _WHOLE or target.startswith("decimal"):
            room, places = _decimal(target)
            return room - places >= digits - scale and places >= scale
        if target in _DIGITS:
            return digits <= _DIGITS[target]
        return target == "string" and not order
    if source.startswith("interval") and target.startswith("interval"):
        return True
    if source.startswith("array<") and target.startswith("array<"):
        return keeps(source[6:-1], target[6:-1], order)
    if source in ("boolean", "date", "binary"):
        return (source, target) in (("date", "timestamp"), ("date", "timestamp_ntz")) or (
            target == "string" and source != "binary" and not order
        )
    return (source, target) in (("float", "double"), *((("timestamp_ntz", "timestamp"),) if order else ()))


def _decimal(type: str) -> tuple[int, int]:
    """How many digits a number has, and how many of them behind the point."""
    found = re.fullmatch(r"decimal\((\d+),(\d+)\)", type)
    return (int(found[1]), int(found[2])) if found else (_WHOLE.get(type, 38), 0)


def _plain(name: str) -> Sql:
    return Sql(((quote(name), 0, False),))


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
