"""What lies beside the state of a stream, copies of rows and engines, changes no row: lost, damaged, or of another
version."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import families
import harness
import numpy as np
import pyarrow as pa
import pytest
import strategies
from buckets import LIMIT, Memory, bag, batch_matches, bucket_of, stream_task, table_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import Row

from planner import cel
from planner.errors import PlanError
from planner.terms import Window
from runtime.engine import engine_for
from runtime.partition import partition
from runtime.stream import bucket as buckets
from runtime.stream import engines, log
from runtime.stream.bucket import Bucket
from runtime.stream.engines import frozen, thawed
from runtime.stream.head import Slab, blob
from runtime.stream.local import Local
from runtime.stream.task import FOREVER, NEVER, StreamTask

A, B, C = (cel.Event(name, frozenset({name})) for name in "ABC")
SEQUENCE = cel.Sequence(cel.Sequence(A, B), C)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines of few rows, that are written often."""
    monkeypatch.setattr(engines, "HEAVY", 3)
    monkeypatch.setattr(buckets, "HEAVY", 3)
    monkeypatch.setattr(engines, "FEW", 1)
    monkeypatch.setattr(engines, "PART", 1 << 30)


def micro_batches(
    task: StreamTask, table: pa.Table, chance: random.Random, store: Memory, delay: int = 3
) -> Iterator[list[pa.RecordBatch]]:
    """Disorder up to the delay, random micro-batches; some are tried twice, and what lies in the folder is lost or
    damaged now and then."""
    times = table.column("ts").cast(pa.int64()).to_pylist()
    order = sorted(range(len(times)), key=lambda i: times[i] + chance.uniform(0, delay))
    at, watermark, seen = 0, NEVER, NEVER
    while at < len(order):
        own = order[at : at + chance.choice((1, 1, 2, 3, 7))]
        at += len(own)
        if chance.random() < 0.3:
            before = dict(store)
            _took(task, store, table.take(pa.array(own)), watermark)
            store.clear()
            store.update(before)
        yield _took(task, store, table.take(pa.array(own)), watermark)
        seen = max([seen, *(times[i] for i in own)])
        watermark = max(watermark, seen - delay - 1)
        _spoil(store, chance)
    yield _took(task, store, None, FOREVER)


def _took(task: StreamTask, store: Memory, rows: pa.Table | None, watermark: int) -> list[pa.RecordBatch]:
    bucket = bucket_of(task, store)
    found = [batch for batch in bucket.run([] if rows is None else [rows], watermark) if batch.num_rows]
    bucket.save()
    return found


def _spoil(store: Memory, chance: random.Random) -> None:
    for path in sorted(Path(str(store.folder)).rglob("*")):
        if not path.is_file() or chance.random() < 0.85:
            continue
        content = path.read_bytes()
        path.unlink()
        what = chance.random()
        if what < 0.5 and content:
            at = chance.randrange(len(content))
            path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        elif what < 0.8:
            path.write_bytes(content[: len(content) // 2])


@pytest.mark.usefixtures("small")
@given(
    asked=strategies.queries(), rows=strategies.busy_streams(24, keys=(0, 1, 5)), keyed=st.booleans(),
    emit=st.sampled_from(["arrival", "watermark"]), seed=st.integers(0, 99),
)  # fmt: skip
@strategies.examples(60)
def test_random_queries(
    tmp_path_factory: pytest.TempPathFactory,
    asked: strategies.Asked,
    rows: list[Row],
    keyed: bool,
    emit: str,
    seed: int,
) -> None:
    try:
        task = stream_task(asked.formula, asked.window or Window("time", 5), asked.options, keyed, emit=emit)
    except PlanError:
        return
    table = table_of(task, rows)
    if not rows or sum(b.num_rows for b in partition.run(task.task, table.to_batches())) > LIMIT:
        return
    store, found = Memory(str(tmp_path_factory.mktemp("kept"))), Counter[str]()
    for batches in micro_batches(task, table, random.Random(seed), store):
        found += bag(batches)
    assert found == batch_matches(task, table)


def test_a_key_with_many_rows_goes_on_from_its_engine(tmp_path: Path, small: None) -> None:
    """Of 300 rows of a key few are read again."""
    del small
    task, read = stream_task(SEQUENCE, Window("time", 500)), []
    rows = [Row("ABC-"[n % 4], 1, n, 0) for n in range(300)]
    table, store = table_of(task, rows), Memory(str(tmp_path))
    plain = log.Log.living

    def counted(self: log.Log, *args: object) -> log.Living:
        found = plain(self, *args)  # type: ignore[arg-type]
        read.append(found.rows.num_rows)
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(log.Log, "living", counted)
        found = Counter[str]()
        for at in range(300):
            found += bag(_took(task, store, table.slice(at, 1), at - 3))
    assert max(read) <= 16
    assert found == batch_matches(task, table)
    assert set(Bucket(task, store, store.folder).head.engines) == {0}


def test_a_slab_of_two_keys_has_no_engine(tmp_path: Path, small: None) -> None:
    """One that comes later ends it."""
    del small
    task = stream_task(SEQUENCE, Window("time", 500))
    store = Memory(str(tmp_path))
    rows = [Row("ABC"[n % 3], 1, n, 0) for n in range(30)] + [Row("ABC"[n % 3], 1, n, 4) for n in range(30, 60)]
    table, found = table_of(task, rows), Counter[str]()
    kept = []
    for at in range(0, 60, 2):
        found += bag(_took(task, store, table.slice(at, 2), at - 3))
        kept.append(bool(Bucket(task, store, store.folder).head.engines))
    assert kept[10:15] == [True] * 5
    assert not any(kept[15:])
    assert found == batch_matches(task, table)


def test_files_go_with_their_rows(tmp_path: Path, small: None) -> None:
    del small
    task, store = stream_task(SEQUENCE, Window("time", 20)), Memory(str(tmp_path))
    rows = [Row("ABC"[n % 3], 1, n, 0) for n in range(200)]
    table, most = table_of(task, rows), 0
    for at in range(0, 200, 2):
        _took(task, store, table.slice(at, 2), at - 3)
        most = max(most, sum(path.is_file() for path in tmp_path.rglob("*")))
    assert most < 40
    _took(task, store, None, FOREVER)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_without_a_folder_there_are_no_copies() -> None:
    local = Local(None, "x")
    assert not local.put("a", b"1")
    assert local.get("a", 0) is None
    local.keep([])


def test_a_disk_that_takes_nothing(tmp_path: Path) -> None:
    """A folder that is a file."""
    (tmp_path / "cersql").write_text("")
    local = Local(str(tmp_path), "x")
    assert not local.put("a", b"1")
    assert local.get("a", 0) is None


@pytest.mark.parametrize("text", sorted({text for texts in families.FAMILIES.values() for text in texts}))
def test_engines_of_all_families_go_on_from_their_file(text: str) -> None:
    made, options = families.compiled(text)
    program = harness.compiled(made.query.formula, made.query.window, options)
    if program.family == "any":  # of all keys together: never kept
        return
    rows = harness.rows_of(program, families.stream(random.Random(text), text, 60, 4))
    engine, batches = engine_for(program), []
    for begin in range(0, len(rows), 7):
        batches += engine.feed(*rows.cut(begin, min(begin + 7, len(rows))))
        file = np.frombuffer(frozen(engine), np.uint8).copy()
        engine = thawed(pa.py_buffer(file), program)
    batches += engine.flush()
    assert harness.unique(harness.decode(program, rows, batches)) == harness.unique(harness.run_whole(program, rows))


def test_a_state_of_the_first_format_goes_on() -> None:
    """Rows that lay in slabs are put into the log; what it did not know of is there."""
    task = stream_task(SEQUENCE, Window("time", 50), emit="watermark")
    rows = [Row("ABC"[n % 3], 1, n, n % 4) for n in range(24)]
    table, store, found = table_of(task, rows), Memory(), Counter[str]()
    found += bag(_took(task, store, table.slice(0, 12), NEVER))
    found += bag(_took(task, store, None, 8))
    old = Bucket(task, store)
    old.open()
    for slab in range(4):
        living = old.log.living([slab], None)
        store[slab + 1] = blob(living.rows)
        old.head.slabs[slab] = Slab(living.rows.num_rows, None, 8)
    for number in list(old.head.pieces):
        del store[log.LOG + 2 * number]
    known = dict(vars(old.head), format=1)
    for name in ("pieces", "next_piece", "next_row", "identity", "engines"):
        del known[name]
    head = object.__new__(type(old.head))
    head.__dict__.update(known)
    store[0] = pickle.dumps(head)
    found += bag(_took(task, store, table.slice(12), 8))
    found += bag(_took(task, store, None, FOREVER))
    assert found == batch_matches(task, table)
    assert set(store) == {0}
