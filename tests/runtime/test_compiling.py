"""What is heard of the first compilation, which takes up to a minute."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import pytest

from runtime import compiling


class Heard(threading.Event):
    """Lines, which can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def tell(self, line: str) -> None:
        self.lines.append(line)
        self.set()


def test_someone_is_told_while_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "SILENCE", 0.0)
    heard = Heard()
    with compiling.told(heard.tell), compiling.noted():
        assert heard.wait(60)
    assert heard.lines == [compiling.COMPILES]


def test_nobody_is_told_where_it_is_short() -> None:
    heard = Heard()
    with compiling.told(heard.tell):
        with compiling.noted():
            timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
        for timer in timers:
            timer.join(60)
    assert not heard.lines


def test_the_log_is_told_where_nobody_else_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "SILENCE", 0.0)
    heard = Heard()
    handler = logging.Handler()
    handler.emit = lambda record: heard.tell(f"{record.levelname} {record.getMessage()}")  # type: ignore[method-assign]
    compiling.logger.addHandler(handler)
    try:
        with compiling.noted():
            assert heard.wait(60)
    finally:
        compiling.logger.removeHandler(handler)
    assert heard.lines == [f"WARNING {compiling.COMPILES}"]


SCRIPT = """
import threading
from runtime import compiling
compiling.SILENCE = 0.0
with compiling.noted():
    for timer in threading.enumerate():
        if isinstance(timer, threading.Timer):
            timer.join()
"""


def test_a_script_without_any_set_up_shows_it() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr.splitlines()) == ("", [compiling.COMPILES])


def test_who_sets_logging_up_can_turn_it_off() -> None:
    quiet = "import logging; logging.getLogger('cersql').setLevel(logging.ERROR)\n"
    done = subprocess.run([sys.executable, "-P", "-c", quiet + SCRIPT], capture_output=True, text=True, check=True)
    assert not done.stderr
