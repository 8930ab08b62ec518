"""Scan: which row groups of which Parquet files a task reads, and what becomes of their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runtime.scan.conditions import Test
from runtime.task import Task


@dataclass(frozen=True)
class File:
    """A file as it was when the query was planned. `modified`: milliseconds since the epoch. `constants`: its partition
    columns and what else is the same in all of its rows, each (name, value, Arrow type); dates in days. `source`: of
    which source it is."""

    path: str
    size: int
    modified: int
    constants: tuple[tuple[str, Any, Any], ...] = ()
    source: int = 0


@dataclass(frozen=True)
class Stretch:
    """A task: the row groups, as (file, row group), that hold all rows with times in [begin − reach, end), in the unit
    of the clock, by their least times, which `firsts` has. It reports the matches that end in [begin, end). None:
    without a bound."""

    groups: tuple[tuple[int, int], ...]
    firsts: tuple[int, ...]
    begin: int | None
    end: int | None
    reads_from: int | None


@dataclass(frozen=True)
class Source:
    """What is read of the files of one source. `columns`: (name in the task, name in the files or among their
    constants, Arrow type as Spark sends it). `time`: the first column of ORDER BY, in the files. `filter`: rows for
    which it is not TRUE are not there. `guards`: bit i of the symbol is the i-th. `strings`: columns in the files that
    are read as dictionaries."""

    columns: tuple[tuple[str, str, Any], ...]
    time: str
    filter: Test | None
    guards: tuple[Test, ...]
    strings: tuple[str, ...]


@dataclass(frozen=True)
class Scan:
    """A scan of Parquet files.

    `task`: as for rows that come from Spark; its columns are called so here, too. `folders`: where Spark found the
    files, with a digest of all that it found there. `n_events`: how many guards speak of events; `drops`: rows that
    satisfy none of those are not looked at, since nothing can see them.
    """

    task: Task
    sources: tuple[Source, ...]
    files: tuple[File, ...]
    folders: tuple[tuple[str, str], ...]
    stretches: tuple[Stretch, ...]
    n_events: int
    drops: bool

    def source_of(self, file: int) -> Source:
        return self.sources[self.files[file].source]
