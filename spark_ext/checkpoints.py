"""The checkpoint of a pattern stream, looked at before the stream starts.

Spark reads it when the first micro-batch runs, and our state is read when rows come to it: hours later, perhaps. So
START PATTERN STREAM leaves a file of ours in the checkpoint, which says what the state is of and where its rows go, and
the next START compares. A checkpoint that was begun by other means has no such file; then what Spark writes says
whether a pattern's operator was there, and the workers find out the rest.

What is looked for is what Spark would not say, or say in words of its own (`assertion failed`), or only after rows have
been lost: where the newest offsets are gone, it would read them again as another micro-batch, and a sink that has seen
its number leaves its rows out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from planner.sql import quote
from runtime.stream.changes import stream_changed, stream_zone
from spark_ext.connect import is_connect
from spark_ext.errors import SparkError

FILE = "cersql.json"
_LOGS = ("offsets", "commits")
_SINK_LOG = "_spark_metadata"
_OPERATOR = "transformWithState"  # how the name of ours begins, which Spark writes
_ANEW = "start the stream with a new checkpoint, which reads its source from the beginning."


@dataclass(frozen=True)
class Standing:
    """What the state of one pattern is of (runtime.stream.task.StreamTask)."""

    meaning: str
    described: str = field(compare=False)
    zone: str


_BESIDE = "beside"  # the meaning of what else has a stateful operator


def prepare(
    spark: SparkSession,
    name: str,
    path: str,
    patterns: Sequence[Standing],
    table: str,
    settings: dict[str, str],
    beside: Sequence[str] = (),
    also: Sequence[str] = (),
) -> None:
    """See that the checkpoint can be read, is of these patterns, with these clauses that have an operator of their own
    `beside` them, and goes into this table, and `also` into others; note them in one that is new.

    Raises SparkError CHECKPOINT, CHECKPOINT_… and STREAM_BESIDE, and ExecutionError STREAM_CHANGED and STREAM_ZONE.
    """
    patterns = [*patterns, *(Standing(_BESIDE, clause, "") for clause in beside)]
    if is_connect(spark):
        return  # its files are the server's
    folder = _Folder(spark, path)
    problem = next(_problems(folder), None)
    if problem is not None:
        raise SparkError(
            "CHECKPOINT", name=name, path=path, problem=problem, hint=f"Restore it from a copy, or {_ANEW}"
        )
    for own in (table, *also):
        _check_sink(spark, folder, path, own)
    kept = folder.read(FILE)
    if not any(folder.newest(log) for log in _LOGS):
        if patterns:
            noted = {"table": table, "settings": settings, "patterns": [asdict(standing) for standing in patterns]}
            folder.write(FILE, json.dumps(noted, indent=1))
        return
    before, standings = _noted(kept)
    committed = folder.newest("commits") is not None
    other = _other(folder) if patterns and committed and kept is None else None
    if other is not None:
        hint = f"Name the checkpoint of this stream, or {_ANEW}"
        raise SparkError("CHECKPOINT_OTHER", name=name, path=path, other=other, hint=hint)
    _compare(*([standing for standing in all if standing.meaning != _BESIDE] for all in (standings, patterns)))
    _compare_beside(name, path, *({s.described for s in all if s.meaning == _BESIDE} for all in (standings, patterns)))
    if committed and not spark.catalog.tableExists(table):
        known = before is not None and before != table
        problem = f"they went into {before}" if known else "there is no such table"
        hint = f"Write INTO TABLE {before}, or {_ANEW}" if known else f"Restore the table, or {_ANEW}"
        raise SparkError("CHECKPOINT_TABLE", path=path, table=table, problem=problem, hint=hint)


def settings_of(spark: SparkSession, path: str) -> dict[str, str]:
    """The settings with which the stream of a checkpoint was begun, as far as its state depends on them."""
    if is_connect(spark):
        return {}
    folder = _Folder(spark, path)
    kept = None if folder.is_file() or not folder.list("offsets") else folder.read(FILE)
    try:
        return {str(name): str(value) for name, value in json.loads(kept or "{}")["settings"].items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


# ---------------------------------------------------------------- what cannot be gone on from


def _problems(folder: _Folder) -> Iterator[str]:
    """What is damaged, first things first."""
    if folder.is_file():
        yield "it is a file, and a checkpoint is a folder"
        return
    newest = {log: folder.newest(log) for log in _LOGS}
    begun = [file for file in newest.values() if file is not None]
    texts = {file: folder.read(file) for file in ("metadata", *begun)}
    if begun and texts["metadata"] is None:
        yield "its file metadata is missing"
    yield from filter(None, (_problem(file, text) for file, text in texts.items()))
    if newest["offsets"] is None and newest["commits"] is None:
        return
    offset, commit = (-1 if file is None else int(file.rpartition("/")[2]) for file in newest.values())
    if commit > offset:
        has = "none are there" if offset < 0 else f"the newest are of {offset}"
        yield f"micro-batch {commit} is committed, and of its offsets {has}"
    if '"logOffset"' in (texts[newest["offsets"] or ""] or "") and not folder.list("sources"):
        yield "its folder sources is missing, which says what files have been read"
    if commit >= 0 and folder.read(FILE) is not None and not folder.list("state"):
        yield "its folder state is missing"


def _other(folder: _Folder) -> str | None:
    """What began a checkpoint, if that had no pattern."""
    operators = []
    for number in folder.list("state"):
        text = folder.read(f"state/{number}/_metadata/metadata")
        newest = folder.newest(f"state/{number}/_metadata/v2")
        text = folder.read(newest) if text is None and newest is not None else text
        operators += re.findall(r'"operatorName":"(\w+)"', text or "")
    if any(operator.startswith(_OPERATOR) for operator in operators):
        return None
    if folder.list("state") and not operators:
        return None  # Spark has not said
    return f"by one whose state is that of {' and '.join(operators)}" if operators else "by one that keeps no state"


def _check_sink(spark: SparkSession, folder: _Folder, path: str, table: str) -> None:
    """A table of files knows the numbers of the micro-batches that it has: it leaves out what comes under one of them,
    of whatever checkpoint."""
    if not spark.catalog.tableExists(table):
        return
    facts = {row.col_name: row.data_type for row in spark.sql(f"DESCRIBE TABLE EXTENDED {_quoted(table)}").collect()}
    place = facts.get("Location")
    known = _newest(_Folder(spark, place).list(_SINK_LOG)) if place else None
    newest = folder.newest("offsets")
    if known is not None and known > int((newest or "/-1").rpartition("/")[2]):
        to = "is new" if newest is None else f"has come to {newest.rpartition('/')[2]}"
        hint = "Name the checkpoint that went into this table, or another table."
        raise SparkError("CHECKPOINT_BEHIND", path=path, table=table, known=known, to=to, hint=hint)


def _quoted(table: str) -> str:
    return ".".join(quote(part) for part in table.split("."))


def _newest(names: Sequence[str]) -> int | None:
    """The number of the last micro-batch in a log, of which some files hold many (`9.compact`)."""
    return max(
        (int(name.removesuffix(".compact")) for name in names if re.fullmatch(r"\d+(\.compact)?", name)), default=None
    )


# ---------------------------------------------------------------- what it is of


def _noted(text: str | None) -> tuple[str | None, list[Standing]]:
    """The table and the patterns, as far as they were noted; nothing, if somebody has changed the file."""
    try:
        kept = json.loads(text or "[]")
        table, patterns = (kept["table"], kept["patterns"]) if isinstance(kept, dict) else (None, kept)
        return table, [Standing(**entry) for entry in patterns]
    except (ValueError, TypeError, KeyError):
        return None, []


def _compare(old: Sequence[Standing], new: Sequence[Standing]) -> None:
    gone = [standing for standing in old if standing not in new]
    more = [standing for standing in new if standing not in old]
    if not gone or not more:
        return  # the same, or what only the workers can tell
    for before in gone:
        if all(before.meaning != now.meaning for now in more):
            raise stream_changed(before.described, more[0].described)
    now = next(standing for standing in more if standing.meaning == gone[0].meaning)
    raise stream_zone(gone[0].zone, now.zone)


def _compare_beside(name: str, path: str, old: set[str], new: set[str]) -> None:
    for clause in sorted(old ^ new):
        begun = "with" if clause in old else "without"
        hint = (
            "Write it as it was, or start the stream with a new checkpoint, which reads its source from the beginning."
        )
        raise SparkError("STREAM_BESIDE", name=name, path=path, begun=begun, clause=clause, hint=hint)


def _problem(file: str, text: str | None) -> str | None:
    """What is wrong with one of Spark's files: a version and lines of JSON, or (metadata) JSON alone."""
    if text is None:
        return None
    lines = text.splitlines()
    if file != "metadata":
        if not lines or not re.fullmatch(r"v\d+", lines[0].strip()):
            return f"its file {file} does not begin with a version"
        lines = [line for line in lines[1:] if line.strip().startswith(("{", "["))]
    elif not text.strip():
        return f"its file {file} is empty"
    try:
        for line in lines:
            json.loads(line)
    except ValueError:
        return f"its file {file} is not what Spark wrote"
    return None


class _Folder:
    """A folder of any file system that Spark reads."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._path = getattr(jvm, "org.apache.hadoop.fs.Path")(path)
        self._files = self._path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())

    def _at(self, file: str) -> Any:
        return getattr(self._jvm, "org.apache.hadoop.fs.Path")(self._path, file)

    def read(self, file: str) -> str | None:
        """None if there is none; what is no text comes as what it looks like."""
        if not self._files.exists(self._at(file)):
            return None
        stream = self._files.open(self._at(file))
        try:
            return bytes(stream.readAllBytes()).decode("utf-8", errors="replace")
        except Py4JError:  # the checksum beside it says otherwise
            return "\ufffd"
        finally:
            stream.close()

    def write(self, file: str, text: str) -> None:
        stream = self._files.create(self._at(file), True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def is_file(self) -> bool:
        return bool(self._files.exists(self._path) and self._files.getFileStatus(self._path).isFile())

    def list(self, folder: str) -> list[str]:
        """The names in a folder, if it is there."""
        if not self._files.exists(self._at(folder)):
            return []
        return sorted(str(status.getPath().getName()) for status in self._files.listStatus(self._at(folder)))

    def newest(self, log: str) -> str | None:
        """The last file of a log of micro-batches, whose files are numbered."""
        number = _newest([name for name in self.list(log) if name.isdigit()])
        return None if number is None else f"{log}/{number}"
