"""Parquet row groups as Arrow arrays: what the engine needs of all rows, and other columns of the rows of matches only.

The file is opened once a task. A row group that no row of a match lies in is never asked for the columns that only
RETURN reads.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from runtime.arrays import AnyArray
from runtime.errors import ExecutionError
from runtime.scan.task import File, Scan

OTHER_WAY = "SET cersql.scan = spark reads it through Spark."


def digest(paths: Iterable[str]) -> str:
    """The same for the same files."""
    return hashlib.sha256("\n".join(sorted(paths)).encode()).hexdigest()


def check_folders(scan: Scan) -> None:
    """Raises ExecutionError SCAN_FILE where files have come or gone since the query was planned."""
    for folder, known in scan.folders:
        if digest(_data_files(folder)) != known:
            raise _unreadable(folder, "files have come or gone in it since the query was planned")


def _data_files(folder: str) -> Iterator[str]:
    """What Spark reads in a folder: nothing that is called like _SUCCESS or .crc."""
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        yield from (os.path.join(path, name) for name in names if not _is_hidden(name))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def open_parquet(path: str, dictionaries: Iterable[str] = ()) -> pq.ParquetFile:
    """A file, of which INT96 is read as microseconds, as by Spark: nanoseconds of 64 bits end in 2262. It is not mapped
    into memory: where a mapped file is cut meanwhile, the process is killed."""
    return pq.ParquetFile(path, read_dictionary=list(dictionaries), coerce_int96_timestamp_unit="us")


class Files:
    """The files of a scan, opened when they are asked for."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._open: dict[int, pq.ParquetFile] = {}
        self._late: dict[tuple[int, int, str], pa.Array] = {}  # the last that was asked for comes last

    def path(self, file: int) -> str:
        return self._scan.files[file].path

    def late(self, file: int, group: int, name: str) -> pa.Array:
        """A column of a row group, kept for a while: matches that follow each other ask for the same ones."""
        place = (file, group, name)
        if place in self._late:
            self._late[place] = self._late.pop(place)
            return self._late[place]
        made = self.group(file, group, [name])[name]
        used = made.nbytes + sum(array.nbytes for array in self._late.values())
        while self._late and used > LATE_BYTES:
            used -= self._late.pop(next(iter(self._late))).nbytes
        self._late[place] = made
        return made

    def group(self, file: int, group: int, names: Sequence[str]) -> dict[str, pa.Array]:
        """Some columns of a row group, by their names in the file. Raises ExecutionError SCAN_FILE."""
        of = self._scan.files[file]
        constants = {name: (value, kind) for name, value, kind in of.constants}
        wanted = [name for name in names if name not in constants]
        try:
            opened = self._opened(file, of)
            n = opened.metadata.row_group(group).num_rows
            table = opened.read_row_group(group, columns=wanted, use_threads=False) if wanted else None
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(of.path, str(error)) from None
        found: dict[str, pa.Array] = {name: constant(*constants[name], n) for name in names if name in constants}
        if table is not None:
            found |= {name: _named(table, name) for name in wanted}
        return found

    def n_rows(self, file: int, group: int) -> int:
        return int(self._opened(file, self._scan.files[file]).metadata.row_group(group).num_rows)

    def _opened(self, number: int, file: File) -> pq.ParquetFile:
        if number not in self._open:
            try:
                status = os.stat(file.path)
            except OSError as error:
                raise _unreadable(file.path, error.strerror or str(error)) from None
            if status.st_size != file.size or status.st_mtime_ns // 1_000_000 != file.modified:
                raise _unreadable(file.path, "it has changed since the query was planned")
            self._open[number] = open_parquet(file.path, self._scan.sources[file.source].strings)
        return self._open[number]


def unordered(path: str) -> ExecutionError:
    """Rows were earlier than the footer says."""
    return _unreadable(path, "it has rows before the least time of its statistics")


def _unreadable(path: str, detail: str) -> ExecutionError:
    return ExecutionError("SCAN_FILE", path=path, detail=detail.strip().rstrip("."), hint=OTHER_WAY)


def _named(table: pa.Table, name: str) -> pa.Array:
    """A column, or a field of a struct by its path."""
    if name in table.column_names:
        return _one(table.column(name))
    first, *path = name.split(".")
    array = _one(table.column(first))
    for field in path:
        array = pc.struct_field(array, field)
    return array


def _one(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.unify_dictionaries().combine_chunks()


def constant(value: Any, kind: pa.DataType, n: int) -> pa.Array:
    """n times the same value."""
    if value is None:
        return pa.nulls(n, kind)
    if isinstance(value, str):
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([value], pa.string()))
    array = pa.array(np.full(n, value, np.int32 if pa.types.is_date32(kind) else kind.to_pandas_dtype()))
    return array.view(kind)


def as_spark(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values of a file in the Arrow type in which Spark sends them."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if array.type.equals(kind) else array.cast(kind)


GROUP, AT = "__cersql_group", "__cersql_at"  # where a row lies: which row group of its stretch, which row of that
LATE_BYTES = 256 << 20  # of columns that were read for rows of matches, and may be asked again


class LateRows:
    """Rows of a stretch as a table, of which columns are read when rows are taken from them.

    `known`: columns that are there already, and the places of rows; all others lie in the files. Stands in for a
    pyarrow.Table where only `column`, `take` and `num_rows` are asked for.
    """

    def __init__(self, files: Files, scan: Scan, groups: Sequence[tuple[int, int]], known: pa.Table) -> None:
        self._files, self._scan, self._groups, self._known = files, scan, groups, known

    @property
    def num_rows(self) -> int:
        return int(self._known.num_rows)

    def column(self, name: str) -> Any:
        """An array, or what stands for one, with `take`."""
        return self._known.column(name) if name in self._known.column_names else LateColumn(self, name)

    def take(self, index: pa.Array) -> LateRows:
        return LateRows(self._files, self._scan, self._groups, self._known.take(index))

    def taken(self, name: str, index: pa.Array | None) -> pa.Array:
        """Some values of a column; None in the index gives NULL. Reads the row groups in which they lie."""
        called = [{own: column for own, column, _ in source.columns}[name] for source in self._scan.sources]
        kind = next(kind for own, _, kind in self._scan.sources[0].columns if own == name)
        places = self._known.select([GROUP, AT])
        if index is not None:
            places = places.take(index)
        null = np.asarray(places.column(GROUP).is_null())
        groups, at = (np.asarray(places.column(own).fill_null(-1)) for own in (GROUP, AT))
        parts, base, found = [], 0, np.zeros(len(at), np.int64)
        for group in np.unique(groups[~null]).tolist():
            mine = groups == group
            wanted, back = np.unique(at[mine], return_inverse=True)
            file, number = self._groups[group]
            column = called[self._scan.files[file].source]
            parts.append(as_spark(self._files.late(file, number, column).take(pa.array(wanted)), kind))
            found[mine] = base + back
            base += len(wanted)
        if not parts:
            return pa.nulls(len(at), kind)
        values = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        return values.take(pa.array(found, mask=null if null.any() else None))


class LateColumn:
    """A column of LateRows."""

    def __init__(self, rows: LateRows, name: str) -> None:
        self._rows, self._name = rows, name

    def take(self, index: pa.Array) -> pa.Array:
        return self._rows.taken(self._name, index)

    def combine_chunks(self) -> pa.Array:
        return self._rows.taken(self._name, None)


def symbol_type(n: int) -> type[np.signedinteger[Any]]:
    """The narrowest numpy type for the bits of n guards."""
    return np.int8 if n <= 7 else np.int16 if n <= 15 else np.int32 if n <= 31 else np.int64


def bits(tests: Sequence[AnyArray], n: int) -> AnyArray:
    """One number a row: bit i where test i is TRUE."""
    kind = symbol_type(len(tests))
    word = np.zeros(n, kind)
    for i, true in enumerate(tests):
        word |= true.view(np.int8).astype(kind, copy=False) * kind(1 << i)
    return word
