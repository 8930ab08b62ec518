"""kill -9 at random moments: streams of many kinds, started again until they end, and then the sink is the batch's.

    python tests/bench/kills.py [kills] [--seed 1] [--kinds arrival,timeouts] [--keep]

Each stream reads files of rows in disorder, some of them twice, into files. Its process, with its JVM, is killed at a
moment after it has begun to read, or while it still starts; then it goes on from its checkpoint, with another number of
shuffle partitions and of cores. While it lives, copies of its state on this host are removed and damaged. When it has
ended it compares its sink with the query over the table. What differs is kept, and said; the exit code is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parents[2]
FILES = 10  # a micro-batch each
ROWS, MANY_ROWS = 1500, 40_000
SOON, THEN = 6.0, 1.0  # seconds after it has begun, or after some micro-batches, in which a process is killed
MOST = 5  # deaths of one stream
PATIENCE = 300.0  # for one that is to end

BY_KEY = "PARTITION BY k ORDER BY ts, id"
KINDS = {
    "arrival": f"PATTERN A a ; B b {BY_KEY} WITHIN 20 SECONDS RETURN k, a.id AS x, b.id AS y",
    "watermark": f"PATTERN A a ; B b {BY_KEY} WITHIN 20 SECONDS EMIT ON WATERMARK RETURN k, a.id AS x, b.id AS y",
    "events": "PATTERN A a ; B b ORDER BY ts, id WITHIN 9 EVENTS RETURN a.id AS x, b.id AS y",
    "strategy": f"PATTERN A a ; B+ b {BY_KEY} WITHIN 20 SECONDS SEMANTICS LAST RETURN k, a.id AS x, size(b) AS y",
    "absence": f"PATTERN SEQ(A a, !C, B b, !C) {BY_KEY} WITHIN 20 SECONDS RETURN k, a.id AS x, b.id AS y",
    "timeouts": f"PATTERN A a ; B b {BY_KEY} WITHIN 20 SECONDS CONSUME BY PARTITION RETURN k, a.id AS x WITH TIMEOUTS",
    "skipping": f"PATTERN A+ a ; B b {BY_KEY} WITHIN 30 SECONDS AFTER MATCH SKIP PAST LAST ROW RETURN k, b.id AS y",
    "compared": f"PATTERN A a ; B b WHERE a.v < b.v {BY_KEY} WITHIN 30 SECONDS RETURN k, a.id AS x, b.id AS y",
    "pairs": (
        f"PATTERN A a ; B b WHERE bit_count(a.v + b.v) > 3 {BY_KEY} WITHIN 20 SECONDS CONSUME BY PARTITION "
        "RETURN k, a.id AS x, b.id AS y"
    ),
    "aggregate": f"PATTERN A a ; B:+ b ; C {BY_KEY} WITHIN 20 SECONDS RETURN k, a.id AS x HAVING SUM(b.v) > 99",
    "groups": (
        "PATTERN A a ; B b PARTITION BY k ORDER BY ts, id WITHIN 20 SECONDS SLIDE 10 SECONDS "
        "RETURN window.start AS w, k, COUNT(*) AS n, SUM(b.v) AS s GROUP BY k"
    ),
    "heavy": "PATTERN A a ; B b WHERE a.v = b.v ORDER BY ts, id WITHIN 9 HOURS RETURN a.id AS x, b.id AS y",
}  # fmt: skip


# ---------------------------------------------------------------- a life


def life(place: Path, kind: str, seed: int, cores: int, partitions: int) -> None:
    """Go on with the stream to its end, and say whether its sink is the batch's."""
    import cersql
    from spark_ext import arrivals

    spark = started(cores, partitions)
    table = made(spark, MANY_ROWS if kind == "heavy" else ROWS, seed, keys=1 if kind == "heavy" else 7)
    rows = place / "rows"
    if not rows.exists():
        shutil.rmtree(place / "writing", ignore_errors=True)
        arrivals.write(table, "ts", place / "writing", FILES, arrivals.Disorder(5.0, seed), ended=True)
        _end_again(place / "writing")
        (place / "writing").rename(rows)
    stream = arrivals.read(spark, table.schema, rows).withWatermark("ts", "5 seconds")
    writer = cersql.match(stream, KINDS[kind]).writeStream.format("parquet").option("path", str(place / "sink"))
    writer = writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True)
    print("begins", flush=True)
    writer.start().awaitTermination()
    found = Counter(map(repr, spark.read.parquet(str(place / "sink")).collect()))
    wanted = Counter(map(repr, cersql.match(table, KINDS[kind]).collect()))
    missing, extra = (wanted - found).total(), (found - wanted).total()
    same = f"same {wanted.total()}" if not (missing or extra) else f"different: {missing} missing, {extra} too many"
    print(same if wanted else "different: the query finds nothing", flush=True)
    spark.stop()


def _end_again(folder: Path) -> None:
    """The last file once more. A run of Spark's that goes on with a micro-batch which was under way when it was killed,
    and finds no more data after it, ends without the empty one by which the watermark would take effect."""
    last = max(folder.glob("*.parquet"), key=lambda file: file.stat().st_mtime)
    again, time = last.with_name(f"again-{last.name}"), last.stat().st_mtime + 10
    shutil.copyfile(last, again)
    os.utime(again, (time, time))


def started(cores: int, partitions: int) -> SparkSession:
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.python.unix.domain.socket.enabled": "true",
        "cersql.stream.buckets": "3",
    }
    spark = SparkSession.builder.master(f"local[{cores}]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def made(spark: SparkSession, n: int, seed: int, keys: int) -> DataFrame:
    """One row in twenty stands twice in the table."""
    every, values = (100, 40) if n == ROWS else (20, 100_000)
    rows = spark.range(n).selectExpr(
        "id", f"timestamp_millis(1700000000000 + id * {every}) AS ts", f"pmod(hash(id, {seed}), {keys}) AS k",
        f"substr('ABCX', CAST(1 + pmod(hash(id, {seed}, 1), 4) AS INT), 1) AS type",
        f"pmod(hash(id, {seed}, 2), {values}) AS v",
    )  # fmt: skip
    return rows.union(rows.where(f"pmod(hash(id, {seed}, 3), 20) = 0"))


# ---------------------------------------------------------------- deaths


@dataclass
class Stream:
    """A stream that is killed and started again."""

    place: Path
    kind: str
    seed: int
    kills: int = 0
    damaged: int = 0  # copies, in one life
    failed: bool = False

    def lives(self, chance: random.Random, most: int) -> str:
        """Kill it at random moments, at most so often, until it has ended; what it said in the end."""
        while True:
            process = self._born(chance)
            try:
                early = chance.uniform(0, 4) if chance.random() < 0.15 else PATIENCE
                said = _line(process, early if self.kills < most else PATIENCE)
                if said == "begins":
                    said = self._until(process, chance) if self.kills < most else _line(process, PATIENCE)
            finally:
                _kill(process)
            if said == "failed" and not self.failed:  # once: a worker that is not there in time is Spark's own end
                self.failed = True
                print("  it ended by itself, see its log", flush=True)
                continue
            if said is not None:
                return said
            self.kills += 1
            damaged, self.damaged = self.damaged, 0
            print(f"  {self.kills}: killed after {self._commits()} micro-batches, {damaged} copies damaged", flush=True)

    def _until(self, process: subprocess.Popen[bytes], chance: random.Random) -> str | None:
        """What it says before the moment of its death has come: soon, or in one of the next micro-batches."""
        if chance.random() < 0.3:
            return _line(process, chance.uniform(0, SOON))
        most, said, until = self._commits() + chance.randrange(1, 6), None, time.monotonic() + PATIENCE
        while said is None and self._commits() < most and time.monotonic() < until:
            said = _line(process, 0.05)
            if chance.random() < 0.05:
                self._tamper(chance)
        return said if said is not None else _line(process, chance.uniform(0, THEN))

    def _commits(self) -> int:
        return len(list((self.place / "checkpoint/commits").glob("[0-9]*")))

    def _born(self, chance: random.Random) -> subprocess.Popen[bytes]:
        cores, partitions = chance.choice((1, 2)), chance.choice((1, 2, 3))
        arguments = [self.place, self.kind, self.seed, cores, partitions]
        local = self.place / "local"
        local.mkdir(exist_ok=True)
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        own = {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(local)}
        with (self.place / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, __file__, "--life", *map(str, arguments)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True,
                env={"SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", **os.environ, **own},
            )  # fmt: skip

    def _tamper(self, chance: random.Random) -> None:
        """Remove half of the copies of its state, or put others in their place."""
        copies = sorted(file for file in (self.place / "local").glob("*/cersql/*/*") if file.is_file())
        remove = chance.random() < 0.5
        for file in chance.sample(copies, (len(copies) + 1) // 2):
            with contextlib.suppress(FileNotFoundError):  # it has been replaced meanwhile
                content = bytearray(file.read_bytes())
                if remove or not content:
                    file.unlink()
                else:
                    content[chance.randrange(len(content))] ^= 255
                    other = file.with_name("damaged")
                    other.write_bytes(content)
                    other.rename(file)  # what is mapped already stays as it is
                self.damaged += 1


def _line(process: subprocess.Popen[bytes], seconds: float) -> str | None:
    """The next line that a process prints; None if there is none in this time. One that ends without any has failed."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    if not ready:
        return None
    return process.stdout.readline().decode().strip() or "failed"


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def streams(kinds: list[str], chance: random.Random, place: Path) -> Iterator[Stream]:
    number = 0
    while True:
        for kind in chance.sample(kinds, len(kinds)):
            folder = place / f"{number}-{kind}"
            folder.mkdir()
            yield Stream(folder, kind, chance.randrange(1 << 20))
            number += 1


def main(kills: int = 100, seed: int = 1, kinds: list[str] | None = None, keep: bool = False) -> int:
    """The number of streams whose sink was not the batch's."""
    chance, began = random.Random(seed), time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="cersql-kills-"))
    done, ended, failed = 0, 0, 0
    for stream in streams(kinds or list(KINDS), chance, place):
        print(f"{stream.kind}, seed {stream.seed}", flush=True)
        said = stream.lives(chance, min(MOST, kills - done))
        done, ended = done + stream.kills, ended + 1
        same = said.startswith("same ")
        print(f"  {said}" + ("" if same else f"; see {stream.place}"), flush=True)
        failed += not same
        if same and not keep:
            shutil.rmtree(stream.place)
        if done >= kills:
            break
    minutes = (time.monotonic() - began) / 60
    print(f"{done} kills of {ended} streams in {minutes:.1f} minutes: {failed or 'none'} differ from the batch")
    return failed


if __name__ == "__main__":
    if sys.argv[1:2] == ["--life"]:
        _place, _kind, *_numbers = sys.argv[2:]
        life(Path(_place), _kind, *map(int, _numbers))
    else:
        parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
        parser.add_argument("kills", nargs="?", type=int, default=100)
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--kinds", type=lambda text: text.split(","), help=", ".join(KINDS))
        parser.add_argument("--keep", action="store_true", help="also the folders of those that are the same")
        given = parser.parse_args()
        sys.exit(1 if main(given.kills, given.seed, given.kinds, given.keep) else 0)
