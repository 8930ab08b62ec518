"""START, STOP, DROP and SHOW of pattern streams, read from the words of a statement.

spark_ext/streams.py carries them out.

START PATTERN STREAM s AS FROM t PATTERN … RETURN … INTO TABLE found TRIGGER AVAILABLE NOW
START PATTERN STREAM s AS FROM t PATTERN … RETURN … INTO TABLE found WITH LATE ROWS INTO TABLE late
"""

from __future__ import annotations

from cersql.language.lexer import strip_quotes
from cersql.language.syntax import Name
from cersql.statements.kinds import DropStream, ShowMetrics, ShowStreams, StartStream, StopStream
from cersql.statements.words import Words

TRIGGERS = "TRIGGER AVAILABLE NOW or TRIGGER EVERY '10 seconds'"


def parsed(words: Words) -> StartStream | StopStream | DropStream | ShowStreams | ShowMetrics | None:
    """The statement, or None for any other. Raises ParseError."""
    first, second, third = (words.upper(i) for i in range(3))
    if (first, second, third) == ("SHOW", "PATTERN", "STREAMS"):
        words.check_end(3)
        return ShowStreams()
    if (first, second, third) == ("SHOW", "PATTERN", "STREAM"):
        return _show_metrics(words)
    if (second, third) != ("PATTERN", "STREAM") or first not in ("START", "STOP", "DROP"):
        return None
    if_exists = (first, words.upper(3), words.upper(4)) == ("DROP", "IF", "EXISTS")
    at = 5 if if_exists else 3
    name = words.name(at, "the name of the stream")
    if first == "START":
        return _start(name, words)
    words.check_end(at + 1)
    if first == "STOP":
        return StopStream(name.value, name.span)
    return DropStream(name.value, name.span, if_exists)


def _show_metrics(words: Words) -> ShowMetrics:
    if words.upper(3) != "METRICS":
        raise words.expected(3, "METRICS; SHOW PATTERN STREAMS lists them all")
    if len(words.toks) == 4:
        return ShowMetrics(None, words.span(3, 4))
    name = words.name(4, "the name of a stream or the end of the statement")
    words.check_end(5)
    return ShowMetrics(name.value, name.span)


def _start(name: Name, words: Words) -> StartStream:
    toks, upper, expected = words.toks, words.upper, words.expected
    if upper(4) != "AS":
        raise expected(4, "AS")
    into = _into(words)
    if into is None:
        raise expected(len(toks), "INTO TABLE name")
    lo, hi = words.unwrapped(5, into)
    if lo >= hi:
        raise expected(5, "a query, FROM … PATTERN … RETURN …")
    table, end = _table(words, into + 2)
    checkpoint = trigger = late = None
    while end < len(toks):
        if upper(end) == "CHECKPOINT" and checkpoint is None:
            checkpoint, end = _text(words, end + 1, "a path in quotes"), end + 2
        elif upper(end) == "TRIGGER" and trigger is None:
            trigger, end = _trigger(words, end + 1)
        elif upper(end) == "WITH" and late is None:
            begin = end
            late_table, end = _late(words, end)
            late = late_table, words.span(begin, end)
        else:
            raise expected(
                end, "CHECKPOINT 'path', TRIGGER …, WITH LATE ROWS INTO TABLE name or the end of the statement"
            )
    return StartStream(name.value, name.span, words.span(lo, hi), table, checkpoint, trigger, late)


def _into(words: Words) -> int | None:
    """The index of the last INTO TABLE outside parentheses, but for that of late rows."""
    found = [
        i
        for i in range(5, len(words.toks) - 1)
        if words.depth[i] == 0 and (words.upper(i), words.upper(i + 1)) == ("INTO", "TABLE")
        and words.upper(i - 1) not in ("ROWS", "LATE")
    ]  # fmt: skip
    return found[-1] if found else None


def _table(words: Words, at: int) -> tuple[str, int]:
    """The name of a table, and the index behind it."""
    toks, end = words.toks, at
    while end < len(toks) and (toks[end].is_name if (end - at) % 2 == 0 else toks[end].text == "."):
        end += 1
    if end == at:
        raise words.expected(at, "the name of the table")
    return "".join(token.text for token in toks[at:end]), end


def _late(words: Words, at: int) -> tuple[str, int]:
    """WITH LATE ROWS INTO TABLE name."""
    for k, word in enumerate(("WITH", "LATE", "ROWS", "INTO", "TABLE")):
        if words.upper(at + k) != word:
            raise words.expected(at + k, "WITH LATE ROWS INTO TABLE name")
    return _table(words, at + 5)


def _text(words: Words, at: int, what: str) -> str:
    if at >= len(words.toks) or words.toks[at].kind != "string":
        raise words.expected(at, what)
    return strip_quotes(words.toks[at].text)


def _trigger(words: Words, at: int) -> tuple[str, int]:
    if (words.upper(at), words.upper(at + 1)) == ("AVAILABLE", "NOW"):
        return "available now", at + 2
    if words.upper(at) != "EVERY":
        raise words.expected(at, TRIGGERS)
    return _text(words, at + 1, "an interval in quotes, as '10 seconds'"), at + 2
