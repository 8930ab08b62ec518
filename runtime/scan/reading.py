"""Parquet row groups as Arrow arrays: what the engine needs of all rows, and other columns of the rows of matches only.

The file is opened once a task. A row group that no row of a match lies in is never asked for the columns that only
RETURN reads.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from runtime.arrays import AnyArray, IntArray
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


class Files:
    """The files of a scan, opened when they are asked for."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._open: dict[int, pq.ParquetFile] = {}

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
            found |= {name: _one(table.column(name)) for name in wanted}
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
            # Not mapped into memory: where a mapped file is cut meanwhile, the process is killed.
            self._open[number] = pq.ParquetFile(file.path, read_dictionary=list(self._scan.strings))
        return self._open[number]


def _unreadable(path: str, detail: str) -> ExecutionError:
    return ExecutionError("SCAN_FILE", path=path, detail=detail.strip().rstrip("."), hint=OTHER_WAY)


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


class LateRows:
    """The rows of a stretch as a table, of which columns are read when rows are taken from them.

    `known`: columns that are there already; all others lie in the files, at `group_of` (which of `groups`) and `at`
    (the row in the group). Stands in for a pyarrow.Table where only `column`, `take` and `num_rows` are asked for.
    """

    def __init__(
        self, files: Files, scan: Scan, groups: Sequence[tuple[int, int]], places: tuple[IntArray, IntArray],
        known: Mapping[str, pa.Array],
    ) -> None:  # fmt: skip
        self._files, self._groups, self._known = files, groups, known
        self._group_of, self._at = places
        self._in_file = {name: (column, kind) for name, column, kind in scan.columns}
        self._read: dict[tuple[int, str], pa.Array] = {}
        self._scan = scan

    @property
    def num_rows(self) -> int:
        return len(self._at)

    def column(self, name: str) -> Any:
        """An array, or what stands for one, with `take`."""
        return self._known[name] if name in self._known else LateColumn(self, name)

    def take(self, index: pa.Array) -> LateRows:
        at = np.asarray(index)
        known = {name: array.take(index) for name, array in self._known.items()}
        rows = LateRows(self._files, self._scan, self._groups, (self._group_of[at], self._at[at]), known)
        rows._read = self._read
        return rows

    def taken(self, name: str, index: pa.Array | None) -> pa.Array:
        """Some values of a column; None in the index gives NULL. Reads the row groups in which they lie, each once."""
        column, kind = self._in_file[name]
        if index is None:
            at, null = np.arange(self.num_rows), None
        else:
            null = np.asarray(index.is_null()) if index.null_count else None
            at = np.asarray(index.fill_null(0) if null is not None else index)
        if not len(at) or not self.num_rows:
            return pa.nulls(len(at), kind)
        groups = self._group_of[at]
        parts, base, places = [], 0, np.empty(len(at), np.int64)
        for group in np.unique(groups if null is None else groups[~null]).tolist():
            part = self._whole(group, column)
            mine = groups == group
            wanted, back = np.unique(self._at[at[mine]], return_inverse=True)
            parts.append(as_spark(part.take(pa.array(wanted)), kind))
            places[mine] = base + back
            base += len(wanted)
        if not parts:
            return pa.nulls(len(at), kind)
        values = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        places = places if null is None else np.where(null, 0, places)
        return values.take(pa.array(places, mask=null))

    def _whole(self, group: int, column: str) -> pa.Array:
        if (group, column) not in self._read:
            self._read[group, column] = self._files.group(*self._groups[group], [column])[column]
        return self._read[group, column]


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
        word |= np.left_shift(true.astype(kind), kind(i))
    return word
