"""Which matches are given: SEMANTICS, CONSUME BY, AFTER MATCH SKIP, WITH TIMEOUTS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cersql.binding.conditions import Conditions
from cersql.errors import BindError, did_you_mean, suggestion
from cersql.language import syntax
from cersql.language.clause_table import CLAUSES
from cersql.language.lexer import Token, shown, strip_quotes
from planner import cel
from planner.formula import Formula
from planner.query import Skip
from runtime.errors import Span

# Each strategy by its names, the usual one first.
_NAMES = {
    "ALL": ("SKIP TILL ANY MATCH", "ALL", "SKIP TILL ANY"),
    "NEXT_MATCH": ("SKIP TILL NEXT MATCH", "SKIP TILL NEXT"),
    "STRICT": ("STRICT CONTIGUITY", "STRICT", "CONTIGUOUS"),
    "NXT": ("NXT", "NEXT"),
    "LAST": ("LAST",),
    "MAX": ("MAX",),
}
BESIDE_SKIP = ("ALL", "NXT", "LAST", "NEXT_MATCH")
STRATEGIES = {name: strategy for strategy, names in _NAMES.items() for name in names}
_ANY = (
    "Elsewhere it means one match, of those that end together: write NXT (the earliest events) or LAST (the latest). "
    "Every match: SKIP TILL ANY MATCH, as without the clause."
)
_CONSUMERS = ("NONE", "PARTITION", "ANY")
_SKIPS = CLAUSES["AFTER MATCH"].holds


@dataclass(frozen=True)
class Selection:
    """What these clauses say, as in planner.query.Query."""

    strategy: str
    consume: str
    skip: Skip | None
    timeouts: bool


def refuse(query: syntax.Query) -> None:
    """Raises for clauses whose meaning is not built yet: an error each, never silence."""
    slides = query.within is not None and query.within.slide is not None
    if (query.group_by is not None or slides) and query.with_timeouts is not None:
        other = "GROUP BY" if query.group_by is not None else "a window that slides"
        raise _exclude(query.with_timeouts, "WITH TIMEOUTS", other, "Count the timeouts in a query around this.")


def bind(query: syntax.Query, conditions: Conditions, formula: Formula) -> Selection:
    """The selection of a query whose formula is known. Raises BindError."""
    strategy, consume = _strategy(query.semantics), _consumer(query.consume)
    skip = _skip(query, conditions, formula) if query.skip is not None else None
    if skip is not None:
        _check_beside(query, strategy, consume)
    if strategy == "NEXT_MATCH":
        _check_pattern(query.pattern)
    if consume != "NONE" and any(isinstance(node, cel.NotAfter) for node in formula.walk()):
        assert query.consume is not None
        hint = "Such a match is known only when its window has passed: by then later ones may have begun."
        raise _exclude(query.consume.span, f"CONSUME BY {consume}", "a '!' at the end of the pattern", hint)
    return Selection(strategy, consume, skip, query.with_timeouts is not None)


def wants_all(query: syntax.Query) -> bool:
    """Is every match given, so that conditions on whole matches may be asked at the end?"""
    chosen = query.skip is not None or query.with_timeouts is not None or _consumer(query.consume) != "NONE"
    return not chosen and _strategy(query.semantics) == "ALL"


def choosing(query: syntax.Query) -> str | None:
    """The clause that chooses among matches by the positions of their events."""
    strategy = _strategy(query.semantics)
    if strategy != "ALL":
        return _NAMES[strategy][0]
    return "AFTER MATCH SKIP" if query.skip is not None else None


def drops(query: syntax.Query) -> bool:
    """Can a match end what has begun? On a stream that is known where rows are held, before whole matches are asked.

    Not beside WITH TIMEOUTS: how far a start came is another thing where its runs know what holds.
    """
    return query.with_timeouts is None and (query.skip is not None or _consumer(query.consume) != "NONE")


def must_take(query: syntax.Query) -> bool:
    """Must a run take what it can? Then conditions are decided event by event."""
    return _strategy(query.semantics) == "NEXT_MATCH"


def _strategy(clause: syntax.Text | None) -> str:
    if clause is None:
        return "ALL"
    name = " ".join(clause.value.upper().replace("_", " ").replace("-", " ").split())
    if name == "ANY":
        raise BindError("UNKNOWN_STRATEGY", span=clause.span, name=clause.value, hint=_ANY)
    if name not in STRATEGIES:
        usual = [names[0] for names in _NAMES.values()]
        hint = suggestion(name, usual, "There are", STRATEGIES)
        raise BindError("UNKNOWN_STRATEGY", span=clause.span, name=clause.value, hint=hint)
    return STRATEGIES[name]


def _consumer(clause: syntax.Text | None) -> str:
    if clause is None:
        return "NONE"
    name = clause.value.strip().upper()
    if name not in _CONSUMERS:
        raise BindError(
            "BAD_CLAUSE", span=clause.span, found=clause.value, clause="CONSUME BY", expected="NONE, PARTITION or ANY",
            hint=did_you_mean(name, _CONSUMERS),
        )  # fmt: skip
    return name


# ---------------------------------------------------------------- AFTER MATCH SKIP


def _skip(query: syntax.Query, conditions: Conditions, formula: Formula) -> Skip:
    clause = query.skip
    assert clause is not None
    toks = query.text.within(clause.span)
    words = tuple(token.upper for token in toks)
    if words in (("SKIP", "PAST", "LAST", "ROW"), ("SKIP", "TO", "NEXT", "ROW")):
        return Skip(" ".join(words[1:]))
    if words[:2] != ("SKIP", "TO"):
        raise _bad(toks, clause.span, ("SKIP", "PAST" if words[1:2] == ("PAST",) else "TO", "LAST", "ROW"))
    named = len(toks) > 3 and toks[2].upper in ("FIRST", "LAST")  # else it is a variable of such a name
    at = 3 if named else 2
    if len(toks) <= at or not toks[at].is_name:
        raise _wrong(toks[at] if len(toks) > at else None, clause.span, "the name of a variable")
    if len(toks) > at + 1:
        raise _wrong(toks[at + 1], clause.span, "the next clause")
    name = strip_quotes(toks[at].text)
    mark = conditions.scope.variable(name)
    if mark is None and not named and toks[at].upper in ("FIRST", "LAST"):
        first = next(iter(conditions.scope.shown(formula.binds())), "a")
        hint = f"For example: AFTER MATCH {' '.join(words)} {first}."
        raise _wrong(None, clause.span, f"the name of a variable after {toks[at].upper}", hint)
    if mark is None and toks[at].upper in (("ROW",) if named else ("NEXT", "PAST")):
        raise _wrong(toks[at], clause.span, _SKIPS, "Write AFTER MATCH SKIP TO NEXT ROW, or SKIP PAST LAST ROW.")
    mark = conditions.check_variable(mark, name, toks[at].span, formula.binds())
    return Skip(f"TO {toks[2].upper}" if named else "TO LAST", mark)


def _bad(toks: Sequence[Token], span: Span, expected: Sequence[str]) -> BindError:
    """At the first word that is not the expected one."""
    for k, word in enumerate(expected):
        if k >= len(toks) or toks[k].upper != word:
            return _wrong(toks[k] if k < len(toks) else None, span, _SKIPS)
    return _wrong(toks[len(expected)], span, "the next clause")


def _wrong(token: Token | None, span: Span, expected: str, hint: str | None = None) -> BindError:
    at = token.span if token else Span(span.end, span.end)
    return BindError(
        "BAD_CLAUSE", span=at, found=shown(token, "its end"), clause="AFTER MATCH", expected=expected,
        hint=hint or "For example: AFTER MATCH SKIP PAST LAST ROW.",
    )  # fmt: skip


def _check_beside(query: syntax.Query, strategy: str, consume: str) -> None:
    """AFTER MATCH SKIP takes one match at a time, by a rule of its own or by a strategy that says which."""
    beside = f"Beside AFTER MATCH SKIP can stand {', '.join(_NAMES[name][0] for name in BESIDE_SKIP[1:])}, or none."
    chooses = "AFTER MATCH SKIP chooses the matches itself: write one of the two."
    for kind, value, allowed, hint in (
        ("SEMANTICS", strategy, BESIDE_SKIP, beside), ("CONSUME BY", consume, ("NONE",), chooses),
    ):  # fmt: skip
        keys = [query.clause(kind), query.clause("AFTER MATCH")]
        if value in allowed:
            continue
        later = max((key for key in keys if key is not None), key=lambda key: key.start)
        shown = f"SEMANTICS {_NAMES[value][0]}" if kind == "SEMANTICS" else kind
        one, other = (shown, "AFTER MATCH SKIP") if later == keys[0] else ("AFTER MATCH SKIP", shown)
        raise _exclude(later, one, other, hint)


def _exclude(span: Span, one: str, other: str, hint: str) -> BindError:
    return BindError("CLAUSES_EXCLUDE", span=span, one=one, other=other, hint=hint)


# ---------------------------------------------------------------- SKIP TILL NEXT MATCH


def _check_pattern(pattern: syntax.Pattern) -> None:
    """A run of SKIP TILL NEXT MATCH follows the atoms one by one; operators on whole matches have no place in it."""
    for part in syntax.walk(pattern):
        construct = _whole_match(part)
        if construct is not None:
            raise BindError(
                "STRATEGY_PATTERN", span=part.span, construct=construct,
                hint="It knows types, ';', ':', OR, loops, FILTER and '!'. SEMANTICS NXT takes any pattern, and "
                "chooses otherwise: of the matches that end together the one with the earliest events.",
            )  # fmt: skip


def _whole_match(part: syntax.Pattern) -> str | None:
    match part:
        case syntax.Combination(operator) if operator != "OR":
            return operator
        case syntax.Function(function):
            return f"{function}(…)"
        case syntax.Project():
            return "PROJECT"
        case syntax.Windowed():
            return "WITHIN inside the pattern"
    return None
