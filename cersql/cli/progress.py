"""A line on the terminal that says what Spark is doing, while it does it."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from runtime import compiling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERVAL = 0.5  # seconds between two looks at Spark
ENGINE, ROWS = "MapInArrow", "number of output rows"  # as Spark calls the node of a plan, and one of its metrics
COMPILES = compiling.COMPILES.partition(":")[0]


class Progress:
    """On stderr, and only where that is a terminal and `shown`; otherwise all this does nothing, but for a line when
    kernels are compiled.

    It writes to a descriptor of its own: stderr leads to a file while the JVM starts.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self._spark: SparkSession | None = None
        self._status: Status | None = None
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._text, self._since = "", 0.0
        self._screen: IO[str] | None = None
        self.console = Console(stderr=True)
        """Prints above the line."""
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._compiling = compiling.told(self._line if shown and not sys.stderr.isatty() else compiling.nobody)
        if shown and sys.stderr.isatty():
            self._screen = os.fdopen(os.dup(sys.stderr.fileno()), "w")
            self.console = Console(file=self._screen)

    def __enter__(self) -> Progress:
        self._compiling.__enter__()
        if self._screen is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._compiling.__exit__(kind, error, trace)
        self.hide()
        if self._screen is not None:
            self._done.set()
            self._thread.join()
            self._screen.close()

    def _line(self, text: str) -> None:
        """Where nothing can be drawn over: one line, at once."""
        self.console.print(f"cersql: {text}", markup=False, highlight=False)

    def watch(self, spark: SparkSession | None) -> None:
        """From now on the line also says how many of Spark's tasks are done, and how many matches are listed."""
        self._spark = spark

    def step(self, text: str) -> None:
        """What is done from now on."""
        if self._screen is None:
            return
        with self._lock:
            self._text, self._since = text, time.monotonic()
            if self._status is None:
                self._status = self.console.status(escape(text))
                self._status.start()
            else:
                self._status.update(escape(text))

    def hide(self) -> None:
        """Take the line away, before something else is printed; the next step shows it again."""
        with self._lock:
            if self._status is not None:
                self._status.stop()
                self._status = None

    def _watch(self) -> None:
        while not self._done.wait(INTERVAL):
            done = ""
            if self._status is not None and self._spark is not None:
                done = f"{tasks(self._spark)}{matches(self._spark)}"
            with self._lock:
                if self._status is not None:
                    text = COMPILES if compiling.is_long() else f"{self._text}{done}"
                    self._status.update(escape(f"{text}, {time.monotonic() - self._since:.0f} s"))


def tasks(spark: Any) -> str:
    """`: 3 of 8 tasks` of the stages that run now; empty if none does, or Spark cannot be asked."""
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [info for id in tracker.getActiveStageIds() if (info := tracker.getStageInfo(id)) is not None]
        total = sum(stage.numTasks for stage in stages)
        return f": {sum(stage.numCompletedTasks for stage in stages)} of {total} tasks" if total else ""
    except Exception:  # it is only decoration: no error of it should reach anyone
        return ""


def matches(spark: Any) -> str:
    """`, 1,234 matches so far`, that the tasks of the statements that run now have listed; empty if there are none.

    Those that a task has not yet reported (spark.executor.heartbeatInterval) are missing.
    """
    try:
        store = spark._jsparkSession.sharedState().statusStore()
        executions = store.executionsList()
        most = 0
        for i in range(executions.length()):
            execution = executions.apply(i)
            if execution.completionTime().isEmpty():
                most = max(most, _listed(store, execution.executionId()))
        return f", {most:,} matches so far" if most else ""
    except Exception:  # as above
        return ""


def _listed(store: Any, execution: int) -> int:
    """The rows that came out of the engines of a running statement."""
    values, nodes, most = store.executionMetrics(execution), store.planGraph(execution).allNodes(), 0
    for i in range(nodes.length()):
        node = nodes.apply(i)
        if node.name() != ENGINE:
            continue
        metrics = node.metrics()
        for k in range(metrics.length()):
            value = values.get(metrics.apply(k).accumulatorId()) if metrics.apply(k).name() == ROWS else None
            if value is not None and value.isDefined():
                most = max(most, int(re.sub(r"\D", "", str(value.get()).split("(")[0]) or 0))
    return most
