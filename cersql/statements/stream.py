"""START PATTERN STREAM name AS query INTO TABLE t [CHECKPOINT 'path'] [TRIGGER …], STOP PATTERN STREAM, SHOW PATTERN
STREAMS: what they say. cersql/statements/find.py finds them, spark_ext/streams.py carries them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cersql.language.lexer import strip_quotes
from runtime.errors import Span

TRIGGERS = "TRIGGER AVAILABLE NOW or TRIGGER EVERY '10 seconds'"


@dataclass(frozen=True)
class StartStream:
    """`trigger`: None (as soon as there is something), 'available now', or an interval."""

    name: str
    span: Span
    query: Span
    table: str
    checkpoint: str | None
    trigger: str | None


@dataclass(frozen=True)
class StopStream:
    name: str
    span: Span


@dataclass(frozen=True)
class ShowStreams:
    pass


def parsed(words: list[str], definition: Any) -> StartStream | StopStream | ShowStreams | None:
    """The statement, or None for any other. `definition`: a cersql.statements._Definition over its tokens."""
    if words[:3] == ["SHOW", "PATTERN", "STREAMS"]:
        definition._check_end(3)
        return ShowStreams()
    if words[1:3] != ["PATTERN", "STREAM"] or words[0] not in ("START", "STOP"):
        return None
    name = definition._simple_name(3, "the name of the stream")
    if words[0] == "START":
        return _start(name.value, name.span, definition)
    definition._check_end(4)
    return StopStream(name.value, name.span)


def _start(name: str, span: Span, definition: Any) -> StartStream:
    toks, upper, expected = definition.toks, definition.upper, definition.finder._expected
    if upper(4) != "AS":
        raise expected(4, "AS")
    into = _into(definition)
    if into is None:
        raise expected(len(toks), "INTO TABLE name")
    lo, hi = definition.finder._unwrapped(5, into)
    if lo >= hi:
        raise expected(5, "a query, FROM … PATTERN … RETURN …")
    at = end = into + 2
    while end < len(toks) and (toks[end].is_name if (end - at) % 2 == 0 else toks[end].text == "."):
        end += 1
    if end == at:
        raise expected(at, "the name of the table")
    table = "".join(token.text for token in toks[at:end])
    checkpoint = trigger = None
    while end < len(toks):
        if upper(end) == "CHECKPOINT" and checkpoint is None:
            checkpoint, end = _text(definition, end + 1, "a path in quotes"), end + 2
        elif upper(end) == "TRIGGER" and trigger is None:
            trigger, end = _trigger(definition, end + 1)
        else:
            raise expected(end, "CHECKPOINT 'path', TRIGGER … or the end of the statement")
    return StartStream(name, span, definition.finder._span(lo, hi), table, checkpoint, trigger)


def _into(definition: Any) -> int | None:
    """The index of the last INTO TABLE outside parentheses."""
    found = [
        i
        for i in range(5, len(definition.toks) - 1)
        if definition.finder.depth[i] == 0 and (definition.upper(i), definition.upper(i + 1)) == ("INTO", "TABLE")
    ]
    return found[-1] if found else None


def _text(definition: Any, at: int, what: str) -> str:
    if at >= len(definition.toks) or definition.toks[at].kind != "string":
        raise definition.finder._expected(at, what)
    return strip_quotes(definition.toks[at].text)


def _trigger(definition: Any, at: int) -> tuple[str, int]:
    if (definition.upper(at), definition.upper(at + 1)) == ("AVAILABLE", "NOW"):
        return "available now", at + 2
    if definition.upper(at) != "EVERY":
        raise definition.finder._expected(at, TRIGGERS)
    return _text(definition, at + 1, "an interval in quotes, as '10 seconds'"), at + 2
