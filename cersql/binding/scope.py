"""Names: what sources, types, variables and columns a query can speak of, and what each name in it means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cersql.binding.assignments import created_variable
from cersql.errors import BindError, suggestion
from cersql.language.syntax import Aggregation, Alias, Name, Pattern, Repeat, TypeRef, children, happening
from planner.query import Column, Computed
from planner.sql import Sql
from runtime.errors import Span
from runtime.marks import is_hidden, type_mark, visible_name


class ExpressionTypes(Protocol):
    """The part of a catalog that knows expressions."""

    def type_of(self, expression: str, columns: Sequence[Column]) -> str: ...

    def common_type(self, left: str, right: str, columns: Sequence[Column]) -> str: ...

    def check(self, text: str, condition: Sql, columns: Sequence[Column]) -> None: ...

    @property
    def ansi(self) -> bool: ...

    def aggregate_type(self, text: str, sql: Sql, columns: Sequence[Column]) -> str: ...

    def aggregated(self, text: str, sql: Sql, columns: Sequence[Column], name: str) -> Column: ...

    def common(self, columns: Sequence[Column], name: str) -> Column | None: ...

    def in_lambda(self, expressions: Sequence[str], columns: Sequence[Column]) -> bool: ...

    def computed(self, text: str, sql: Sql, columns: Sequence[Column]) -> Computed: ...


class Catalog(Protocol):
    """What binding must know of the world; Spark's session, or a plain dictionary of schemas."""

    case_sensitive: bool

    def relation(self, statement: str) -> tuple[Column, ...] | None:
        """The columns of a SELECT statement; None if a table of it does not exist."""
        ...

    def tables(self) -> Sequence[str]: ...

    def is_stream(self, relation: str | None) -> bool:
        """Is a source (None: the DataFrame that was handed in) one that has no end?"""
        ...

    def common(self, columns: Sequence[Column], name: str) -> Column | None:
        """UNION's column, under a name, of columns of several relations; None if it has no type for them."""
        ...

    def computed(self, text: str, sql: Sql, columns: Sequence[Column]) -> Computed:
        """What is known of an expression over one row of such columns."""
        ...

    def type_of(self, expression: str, columns: Sequence[Column]) -> str:
        """The type of a SQL expression over columns."""
        ...

    def common_type(self, left: str, right: str, columns: Sequence[Column]) -> str:
        """The type in which two SQL expressions over columns are compared; '' where that cannot be told."""
        ...

    def check(self, text: str, condition: Sql, columns: Sequence[Column]) -> None:
        """Raises what Spark objects to in a condition on a row, at its place in `text`."""
        ...

    @property
    def ansi(self) -> bool:
        """Does an expression fail where its value does not fit its type?"""
        ...

    def aggregate_type(self, text: str, sql: Sql, columns: Sequence[Column]) -> str:
        """The type of an aggregate over columns; what Spark has against it is raised at its place in `text`."""
        ...

    def aggregated(self, text: str, sql: Sql, columns: Sequence[Column], name: str) -> Column:
        """The same as a column with a name."""
        ...

    def in_lambda(self, expressions: Sequence[str], columns: Sequence[Column]) -> bool:
        """Can these stand in a lambda whose parameter, `__e`, is a struct of the columns?"""
        ...


def fold_case(name: str) -> str:
    """Equal for two names that Spark takes for the same where case does not matter (Java's equalsIgnoreCase).

    Letter by letter, so not Python's casefold: for Spark `straße` and `STRASSE` are two names.
    """
    if name.isascii():
        return name.lower()
    upper = (c.upper() if len(c.upper()) == 1 else c for c in name)
    return "".join(c.lower()[0] for c in upper)


class Names:
    """A set of identifiers compared as Spark compares them."""

    def __init__(self, names: Iterable[str], case_sensitive: bool) -> None:
        self.case_sensitive = case_sensitive
        self._names: dict[str, str] = {}
        for name in names:
            self._names.setdefault(self.fold(name), name)

    def fold(self, name: str) -> str:
        return name if self.case_sensitive else fold_case(name)

    def get(self, name: str) -> str | None:
        """The name's own spelling, or None."""
        return self._names.get(self.fold(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names.values())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.fold(name) in self._names


@dataclass(frozen=True)
class Atom:
    """One type reference in the pattern, with the alias that it carries itself. `negated`: it must not happen."""

    type: str | None  # None: ANY
    span: Span
    alias: str | None
    negated: bool = False


@dataclass
class PatternNames:
    """The types and aliases of a pattern, in order of appearance."""

    atoms: list[Atom] = field(default_factory=list)
    aliases: dict[str, Name] = field(default_factory=dict)  # folded → first mention
    of_groups: set[str] = field(default_factory=set)  # folded aliases of more than a single type
    order: list[str] = field(default_factory=list)  # variables as columns, outer aliases after inner ones
    negated: list[str] = field(default_factory=list)  # variables of negated parts
    both: list[Name] = field(default_factory=list)  # aliases in a negated part and outside it, where that shows
    created: dict[str, Name] = field(default_factory=dict)  # folded variables of AGG → first mention


def own_alias(pattern: Pattern) -> tuple[TypeRef, Name] | None:
    """`R AS x`, `R+ x`, …: an alias that belongs to a single type."""
    if not isinstance(pattern, Alias):
        return None
    inner = pattern.inner
    while isinstance(inner, Repeat):
        inner = inner.inner
    return (inner, pattern.name) if isinstance(inner, TypeRef) else None


def collect(pattern: Pattern, case_sensitive: bool) -> PatternNames:
    """All names of a pattern."""
    found = PatternNames()
    fold = Names((), case_sensitive).fold
    signs: dict[str, bool] = {}

    def mention(name: Name, negated: bool) -> str:
        """The alias in its first spelling."""
        folded = fold(name.value)
        found.aliases.setdefault(folded, name)
        if signs.setdefault(folded, negated) != negated:
            found.both.append(name)
        return found.aliases[folded].value

    def visit(part: Pattern, negated: bool) -> None:
        variables = found.negated if negated else found.order
        own = own_alias(part)
        type_ref = own[0] if own is not None else part
        if isinstance(type_ref, TypeRef):
            type = type_ref.name.value if type_ref.name else None
            alias = mention(own[1], negated) if own is not None else None
            found.atoms.append(Atom(type, type_ref.span, alias, negated))
            variables.append(alias or type or "ANY")
            return
        inside = happening(part)
        for child in children(part):
            visit(child, negated or not any(child is other for other in inside))
        if isinstance(part, Alias):
            variables.append(mention(part.name, negated))
            found.of_groups.add(fold(part.name.value))
        if isinstance(part, Aggregation):
            name = created_variable(part.assignments)
            variables.append(mention(name, negated))
            found.created.setdefault(fold(name.value), name)

    visit(pattern, negated=False)
    found.order = list(dict.fromkeys(found.order))
    found.negated = list(dict.fromkeys(found.negated))
    return found


class Scope:
    """What the names of a pattern stand for in conditions and RETURN."""

    def __init__(self, names: PatternNames, case_sensitive: bool) -> None:
        self.names = names
        self.aliases = Names((name.value for name in names.aliases.values()), case_sensitive)
        types = dict.fromkeys(atom.type for atom in names.atoms if atom.type is not None)
        self.types = list(types)
        self.case_sensitive = case_sensitive
        self.aliased = {atom.type for atom in names.atoms if atom.alias is not None}
        self._check()

    def _check(self) -> None:
        """Names that only differ in case would be one column; a variable called like a type has two meanings."""
        bare: dict[str, str] = {}
        for atom in self._bare(negated=False):
            assert atom.type is not None
            other = bare.setdefault(fold_case(atom.type), atom.type)
            if other != atom.type:
                raise BindError(
                    "SAME_NAME", span=atom.span, name=atom.type, other=other,
                    hint=f"Give one of them a name of its own: {atom.type} AS x.",
                )  # fmt: skip
        for name in self.names.both:
            raise BindError(
                "NAME_IN_NEGATED_PART", span=name.span, name=name.value, hint="Give one of the two another name."
            )
        types_called: dict[str, list[str]] = defaultdict(list)  # by name, without case
        for type in self.types:
            types_called[fold_case(type)].append(type)
        types_of: dict[str | None, set[str | None]] = defaultdict(set)  # by alias
        for atom in self.names.atoms:
            types_of[atom.alias].add(atom.type)
        for folded, alias in self.names.aliases.items():
            same = types_called.get(fold_case(alias.value), [])
            if not same:
                continue
            own = folded not in self.names.of_groups and types_of[alias.value] == set(same)
            # SEQ(A a, !A, C): A.x is a.x. SEQ(A, !A a, C): it could be either.
            beside = self._bare(negated=alias.value not in self.names.order)
            if not own or any(fold_case(atom.type or "") == fold_case(alias.value) for atom in beside):
                raise BindError(
                    "ALIAS_IS_TYPE", span=alias.span, name=alias.value, type=same[0],
                    hint=f"Choose another name: {alias.value}1, for example.",
                )  # fmt: skip

    def _bare(self, negated: bool) -> list[Atom]:
        """The atoms that are a type's name alone; `negated`: those of negated parts too."""
        return [a for a in self.names.atoms if a.type is not None and a.alias is None and (negated or not a.negated)]

    def is_negated(self, mark: str) -> bool:
        """Does it stand for events of negated parts alone?"""
        if is_hidden(mark):
            return all(atom.negated for atom in self.names.atoms if atom.type == visible_name(mark))
        return mark in self.names.negated and mark not in self.names.order

    def mark_of(self, type: str) -> str:
        """The variable that stands for all events of a type: the bare type's own, or a hidden one."""
        return type_mark(type) if type in self.aliased else type

    def sole_alias(self, mark: str) -> str:
        """The variable that has the same events as a type's name, in every match; else the mark itself."""
        atoms = [atom for atom in self.names.atoms if mark == type_mark(atom.type or "")]
        aliases = {atom.alias for atom in [atom for atom in atoms if not atom.negated] or atoms}
        alias = next(iter(aliases)) if len(aliases) == 1 else None
        if alias is None or self.fold(alias) in self.names.of_groups:
            return mark
        return (
            alias if all(atom.type == visible_name(mark) for atom in self.names.atoms if atom.alias == alias) else mark
        )

    def type_named(self, name: str) -> str | None:
        """The type of the pattern that is called so, exactly or else but for case."""
        if name in self.types:
            return name
        close = [t for t in self.types if fold_case(t) == fold_case(name)]
        return close[0] if len(close) == 1 and not self.case_sensitive else None

    def fold(self, name: str) -> str:
        return self.aliases.fold(name)

    def variable(self, name: str) -> str | None:
        """The mark that a name stands for, or None."""
        alias, type = self.aliases.get(name), self.type_named(name)
        if alias is not None:
            return alias
        if type is not None:
            return self.mark_of(type)
        if name.upper() == "ANY" and any(a.type is None and a.alias is None for a in self.names.atoms):
            return "ANY"
        return None

    def shown(self, marks: Iterable[str]) -> list[str]:
        """Marks as the user knows them, in the order of the pattern."""
        names = {display(mark) for mark in marks}
        return [name for name in self.known() if name in names]

    def check_reference(self, name: str, span: Span) -> None:
        """`A.x` beside an alias `a` of only some of the As could mean either: an error that names both."""
        alias, type = self.aliases.get(name), self.type_named(name)
        if alias is None or type is None:
            return
        atoms = [atom for atom in self.names.atoms if atom.type == type]
        for atom in [atom for atom in atoms if not atom.negated] or atoms:
            if atom.alias != alias:
                raise BindError(
                    "AMBIGUOUS_VARIABLE", span=span, name=name, alias=alias, type=type,
                    hint=f"Not every {type} of the pattern is called {alias}; rename {alias}.",
                )  # fmt: skip

    def known(self) -> list[str]:
        """All names that a condition may use."""
        return list(dict.fromkeys([*self.names.order, *self.names.negated, *self.types]))


def display(mark: str) -> str:
    """A mark as the user knows it."""
    return visible_name(mark)


def unknown_variable(name: str, span: Span, known: Sequence[str]) -> BindError:
    return BindError("UNKNOWN_VARIABLE", span=span, name=name, hint=suggestion(name, known, "In scope are"))


def find_column(name: str, columns: Sequence[Column], case_sensitive: bool) -> Column | None:
    """A column by name, as Spark compares names."""
    names = Names((c.name for c in columns), case_sensitive)
    own = names.get(name)
    return next((c for c in columns if c.name == own), None) if own is not None else None


def unknown_column(name: str, span: Span, owner: str, columns: Iterable[str]) -> BindError:
    return BindError("UNKNOWN_COLUMN", span=span, name=name, owner=owner, hint=suggestion(name, columns, "It has"))
