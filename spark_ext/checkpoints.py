"""The checkpoint of a pattern stream, looked at before the stream starts.

Spark reads it when the first micro-batch runs, and our state is read when rows come to it: hours later, perhaps. So
START PATTERN STREAM leaves a file of ours in the checkpoint, which says what the state is of, and the next START
compares. A checkpoint that was begun by other means has no such file; then the workers find out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from runtime.stream.changes import stream_changed, stream_zone
from spark_ext.connect import is_connect
from spark_ext.errors import SparkError

FILE = "cersql.json"
_LOGS = ("offsets", "commits")


@dataclass(frozen=True)
class Standing:
    """What the state of one pattern is of (runtime.stream.task.StreamTask)."""

    meaning: str
    described: str = field(compare=False)
    zone: str


_BESIDE = "beside"  # the meaning of what else has a stateful operator


def prepare(
    spark: SparkSession, name: str, path: str, patterns: Sequence[Standing], beside: Sequence[str] = ()
) -> None:
    """See that the checkpoint can be read and is of these patterns, with these clauses that have an operator of their
    own `beside` them; note them in one that is new.

    Raises SparkError CHECKPOINT or STREAM_BESIDE, and ExecutionError STREAM_CHANGED or STREAM_ZONE.
    """
    patterns = [*patterns, *(Standing(_BESIDE, clause, "") for clause in beside)]
    if is_connect(spark):
        return  # its files are the server's
    folder = _Folder(spark, path)
    begun = [newest for log in _LOGS if (newest := folder.newest(log)) is not None]
    for file in ("metadata", *begun):
        problem = _problem(file, folder.read(file))
        if problem is not None:
            hint = (
                "Restore it from a copy, or start the stream with a new one, which reads its source from the beginning."
            )
            raise SparkError("CHECKPOINT", name=name, path=path, problem=problem, hint=hint)
    kept = folder.read(FILE)
    if kept is not None and begun:
        old = _standings(kept)
        _compare(*([standing for standing in all if standing.meaning != _BESIDE] for all in (old, patterns)))
        _compare_beside(name, path, *({s.described for s in all if s.meaning == _BESIDE} for all in (old, patterns)))
    elif not begun and patterns:
        folder.write(FILE, json.dumps([asdict(standing) for standing in patterns], indent=1))


def _standings(text: str) -> list[Standing]:
    """None, if somebody has changed the file."""
    try:
        return [Standing(**entry) for entry in json.loads(text)]
    except (ValueError, TypeError):
        return []


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

    def newest(self, log: str) -> str | None:
        """The last file of a log of micro-batches, whose files are numbered."""
        if not self._files.exists(self._at(log)):
            return None
        names = [str(status.getPath().getName()) for status in self._files.listStatus(self._at(log))]
        numbers = [int(name) for name in names if name.isdigit()]
        return f"{log}/{max(numbers)}" if numbers else None
