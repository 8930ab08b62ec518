"""Names that are read as something else than was meant, for who comes from SQL or from MATCH_RECOGNIZE.

DEFINE A AS …, B AS … PATTERN (A+ B)    B after A is meant; a name behind a part is that part's variable
FROM trades AS t … WHERE t.price > 3    a source has many events in a match; t.price is of none
"""

from __future__ import annotations

from collections.abc import Iterator

from cersql.binding.scope import PatternNames, collect, fold_case
from cersql.errors import BindError
from cersql.language import syntax
from runtime.errors import CersqlError, Span


def check_aliases(query: syntax.Query, names: PatternNames) -> None:
    """Raises for a variable that has the name of a defined type, or of one of several sources, which the pattern does
    not use as a type."""
    of_pattern = {fold_case(atom.type) for atom in names.atoms if atom.type is not None}  # which Scope checks
    unused = {name for name in _types_in_text(query) if fold_case(name) not in of_pattern}
    for folded, alias in names.aliases.items():
        type = alias.value
        if type not in unused:
            continue
        others = {atom.type for atom in names.atoms if atom.alias == alias.value}
        before = next((other for other in others if other is not None), "A") if folded not in names.of_groups else "(…)"
        hint = (
            f"A name behind a part is its variable. For {type} after {before} write {before} : {type} (immediately) or "
            f"{before} -> {type}; as a variable it needs another name: {type}1, for example."
        )
        raise BindError("ALIAS_IS_TYPE", span=alias.span, name=type, type=type, hint=hint)


def _types_in_text(query: syntax.Query) -> Iterator[str]:
    """Names of types as far as the text alone says them."""
    yield from (definition.name.value for definition in query.definitions)
    if len(query.sources) > 1:
        yield from (name for source in query.sources if (name := _called(source)) is not None)


def _called(source: syntax.Source) -> str | None:
    if source.alias is not None:
        return source.alias.value
    return source.table[-1].value if source.table else None


def explained(error: CersqlError, query: syntax.Query) -> CersqlError:
    """The same error; where a source was taken for a variable, or a variable stands in DEFINE, it says so."""
    if error.span is None or error.condition not in ("UNKNOWN_VARIABLE", "UNKNOWN_COLUMN"):
        return error
    name = query.text[error.span.start : error.span.end].strip("`")
    hint = _of_source(name, query) if error.condition == "UNKNOWN_VARIABLE" else _of_row(name, error.span, query)
    if hint is not None:
        error.hint = f"{hint} {error.hint}" if error.hint else hint
    return error


def _of_source(name: str, query: syntax.Query) -> str | None:
    called = [_called(source) for source in query.sources]
    if all(fold_case(name) != fold_case(source) for source in called if source is not None):
        return None
    return f"{name} is a source, and a match holds several of its rows: say of which variable."


def _of_row(name: str, at: Span, query: syntax.Query) -> str | None:
    """`DEFINE B AS v > A.v`, the habit of MATCH_RECOGNIZE."""
    names = collect(query.pattern, case_sensitive=False)
    known = {*(definition.name.value for definition in query.definitions), *(a.type for a in names.atoms if a.type)}
    known.update(alias.value for alias in names.aliases.values())
    inside = next((d for d in query.definitions if d.condition.span.start <= at.start < d.condition.span.end), None)
    if inside is None or fold_case(name) not in map(fold_case, known):
        return None
    own = inside.name.value
    return (
        f"DEFINE asks one row, and {name} is another event. What compares events stands in WHERE: {own}.x > {name}.x."
    )
