"""The Thrift server, from the command line and from Python, as PyHive, impyla, SQLAlchemy and beeline see it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyspark
import pytest
import sqlalchemy
from impala.dbapi import connect as impala
from impala.error import OperationalError
from pyhive import hive
from sparks import taught, view
from TCLIService import ttypes
from thrift.transport.TTransport import TTransportException

import cersql
from cersql.cli import main as cli
from spark_ext import patterns, thrift
from spark_ext.errors import SparkError

pytestmark = pytest.mark.jvm

TRADES = (
    "id,type,ts\n1,A,2024-01-01T00:00:00\n2,B,2024-01-01T00:01:00\n3,A,2024-01-01T00:02:00\n4,B,2024-01-01T00:03:00\n"
)
INIT = """\
-- a ';' in a pattern does not end the statement here
CREATE PATTERN VIEW pairs AS
  FROM trades PATTERN A a ; B b ORDER BY ts RETURN a.id AS a, b.id AS b;
CREATE PATTERN FUNCTION firsts(k INT) AS PATTERN A a ORDER BY ts RETURN a.id * k AS id;
"""
PAIRS = [(1, 2), (1, 4), (3, 4)]
SECONDS = 300  # in which a server must start, or end, on a machine that has much else to do


class Command:
    """`cersql serve` in a process and a folder of its own."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.folder, self.temporary = folder / "work", folder / "temporary"
        self.folder.mkdir()
        self.temporary.mkdir()
        self._log = (folder / "stderr").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cersql.cli.main", "serve", *arguments],
            cwd=self.folder,
            env={**os.environ, "TMPDIR": str(self.temporary), **environment},
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def ready(self) -> Command:
        """Once it says that it listens: a script can wait for the line."""
        late = threading.Timer(SECONDS, self.process.kill)
        late.start()
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        late.cancel()
        found = re.fullmatch(r"listening on (jdbc:hive2://127\.0\.0\.1:(\d+)/default)\n", line)
        assert found, (line, self.errors())
        self.url, self.port = found[1], int(found[2])
        return self

    def jvms(self) -> list[int]:
        return [
            int(pid) for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        ]

    def end(self, number: int | None = None) -> int:
        """The exit code, after a signal if one is given."""
        if number is not None:
            self.process.send_signal(number)
        try:
            self.process.communicate(timeout=SECONDS)
        finally:
            self.process.kill()
        return self.process.returncode

    def errors(self) -> str:
        self._log.seek(0)
        return self._log.read()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "trades.csv").write_text(TRADES)
    (folder / "init.sql").write_text(INIT)
    return folder


@pytest.fixture(scope="module")
def server(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    command = Command(
        tmp_path_factory.mktemp("server"),
        *("--init", f"{data}/init.sql", "--table", f"trades={data}/trades.csv", "--port", "0"),
        *("--conf", "spark.master=local[2]", "--conf", "spark.sql.shuffle.partitions=2"),
        # Hive's server would take its address from these.
        HIVE_SERVER2_THRIFT_BIND_HOST="0.0.0.0",
        HIVE_SERVER2_THRIFT_PORT="1",
    )
    yield command.ready()
    command.end(signal.SIGKILL)


@contextlib.contextmanager
def pyhive(port: int, **arguments: Any) -> Iterator[Callable[[str], list[tuple[Any, ...]]]]:
    """A connection: statement → rows."""
    connection = hive.connect("127.0.0.1", port, **{"username": "me", **arguments})
    cursor = connection.cursor()

    def run(statement: str) -> list[tuple[Any, ...]]:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []

    try:
        yield run
    finally:
        connection.close()


# ---------------------------------------------------------------- clients


def test_what_the_init_file_made(server: Command) -> None:
    with pyhive(server.port) as run:
        assert sorted(run("SELECT * FROM pairs")) == PAIRS
        assert run("SELECT count(*) FROM pairs WHERE a = 1") == [(2,)]
        assert run("SELECT sum(id) FROM firsts(TABLE(trades), k => 10)") == [(40,)]
        assert [row[0] for row in run("SHOW PATTERNS")] == ["pairs", "firsts"]


def test_a_view_of_one_client_is_there_for_the_others(server: Command) -> None:
    with pyhive(server.port) as one, pyhive(server.port, username="you") as other:
        one("CREATE PATTERN VIEW mine AS FROM trades PATTERN SEQ(A a, B b) ORDER BY ts RETURN a.id AS a, b.id AS b")
        assert sorted(other("SELECT * FROM mine")) == PAIRS
        other("DROP PATTERN VIEW mine")
        assert "mine" not in [row[0] for row in one("SHOW PATTERNS")]


def test_a_client_that_lists_tables_sees_no_private_view(server: Command) -> None:
    connection = hive.connect("127.0.0.1", server.port, username="me")
    with contextlib.closing(connection), contextlib.closing(connection.cursor()) as cursor:
        cursor.execute("SELECT count(*) FROM (FROM trades PATTERN SEQ(A a, B b) ORDER BY ts RETURN a.id) m")
        asked = ttypes.TGetTablesReq(connection.sessionHandle, None, "%", "%")
        given = connection.client.GetTables(asked).operationHandle
        forward = ttypes.TFetchOrientation.FETCH_NEXT
        rows = connection.client.FetchResults(ttypes.TFetchResultsReq(given, forward, 1000)).results
        names = rows.columns[2].stringVal.values
    assert {"trades", "pairs"} <= set(names)
    assert [name for name in names if "__cersql_" in name] == []


@pytest.mark.parametrize(
    ("statement", "sqlstate", "fragments"),
    [
        (
            "CREATE PATTERN VIEW v AS FROM trades PATTERN A a",  # what beeline sends of A a ; B b
            "42601",
            ["[MISSING_CLAUSE]", "cut statements at every ';'", "'->' or SEQ", "(line 1, pos 48)", "^"],
        ),
        (
            "FROM trades\nPATTERN A a -> B b\nORDER BY ts RETURN a.idd",
            "42703",
            ["[UNKNOWN_COLUMN]", "Did you mean id?", "(line 3, pos 21)", "ORDER BY ts RETURN a.idd\n", "^"],
        ),
        ("SELECT * FROM (PATTERN A a RETURN *", "42601", ["(line 1, pos 14)"]),
        ("SELECT * FROM nosuch", "42P01", ["[TABLE_OR_VIEW_NOT_FOUND]", "line 1 pos 14"]),
        ("SELEC 1", "42601", ["[PARSE_SYNTAX_ERROR]"]),
    ],
)
def test_errors_have_text_sqlstate_and_place(
    server: Command, statement: str, sqlstate: str, fragments: list[str]
) -> None:
    with pyhive(server.port) as run:
        with pytest.raises(hive.OperationalError) as caught:
            run(statement)
        assert run("SELECT 1") == [(1,)]
    status = caught.value.args[0].status
    assert status.sqlState == sqlstate
    assert [fragment for fragment in fragments if fragment not in status.errorMessage] == []


@pytest.mark.exhaustive
def test_a_view_is_read_while_it_is_replaced(server: Command) -> None:
    versions = [
        ("FROM trades PATTERN A a -> B b ORDER BY ts RETURN a.id AS x, b.id AS y", PAIRS),
        ("FROM trades PATTERN A a ORDER BY ts RETURN a.id AS x, 'one' AS y, 7 AS z", [(1, "one", 7), (3, "one", 7)]),
    ]
    done = threading.Event()

    def replace() -> int:
        number = 0
        with pyhive(server.port) as run:
            while not done.is_set():
                run(f"CREATE OR REPLACE PATTERN VIEW moving AS {versions[number % 2][0]}")
                number += 1
        return number

    def read(statement: str) -> list[Any]:
        with pyhive(server.port) as run:
            return [sorted(run(statement)) for _ in range(5)]

    with pyhive(server.port) as run, ThreadPoolExecutor() as pool:
        run(f"CREATE PATTERN VIEW moving AS {versions[1][0]}")
        writers = [pool.submit(replace) for _ in range(2)]
        whole = [pool.submit(read, "SELECT * FROM moving") for _ in range(2)]
        counts = pool.submit(read, "SELECT count(*) FROM moving")
        try:
            seen = [rows for reader in whole for rows in reader.result()] + counts.result()
        finally:
            done.set()
        assert all(writer.result() > 1 for writer in writers)
    possible = [rows for _, rows in versions] + [[(len(rows),)] for _, rows in versions]
    assert [rows for rows in seen if rows not in possible] == []


def test_impyla_and_the_catalog_that_bi_tools_ask_for(server: Command) -> None:
    connection = impala("127.0.0.1", server.port, auth_mechanism="PLAIN", user="me", password="any")
    with contextlib.closing(connection), contextlib.closing(connection.cursor()) as cursor:
        cursor.execute("SELECT * FROM pairs ORDER BY a, b")
        assert cursor.fetchall() == PAIRS
        assert [column[:2] for column in cursor.description] == [("a", "INT"), ("b", "INT")]
        with pytest.raises(OperationalError, match="no RETURN clause"):
            cursor.execute("FROM trades PATTERN A a -> B b")
        cursor.get_databases()
        assert ("default", "") in cursor.fetchall()
        cursor.get_tables()
        assert {"pairs", "trades"} <= {row[2] for row in cursor.fetchall()}
        assert cursor.get_table_schema("pairs") == [("a", "INT"), ("b", "INT")]
        cursor.get_functions()
        assert len(cursor.fetchall()) > 100


def test_sqlalchemy(server: Command) -> None:
    engine = sqlalchemy.create_engine(f"hive://me@127.0.0.1:{server.port}/default")
    with engine.connect() as connection:
        pairs = sqlalchemy.Table("pairs", sqlalchemy.MetaData(), autoload_with=connection)
        query = sqlalchemy.select(pairs.c.a, sqlalchemy.func.count()).group_by(pairs.c.a).order_by(pairs.c.a)
        assert connection.execute(query).fetchall() == [(1, 2), (3, 1)]
    engine.dispose()


@pytest.mark.slow
def test_beeline(server: Command, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(
        "CREATE PATTERN VIEW typed AS FROM trades\n  PATTERN A a -> B b ORDER BY ts RETURN a.id AS a, b.id AS b;\n"
        "SELECT a, count(*) AS n FROM typed GROUP BY a ORDER BY a;\n"
        "CREATE PATTERN VIEW cut AS FROM trades PATTERN A a ; B b ORDER BY ts RETURN a.id;\n"
    )
    home = Path(pyspark.__path__[0])
    options = ["-u", server.url, "-n", "me", "--outputformat=csv2", "-f", str(script)]
    result = subprocess.run(
        [str(home / "bin" / "beeline"), *options],
        env={**os.environ, "SPARK_HOME": str(home)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 2
    lines = [line for line in result.stdout.splitlines() if re.fullmatch(r"\w+,\w+", line)]
    assert lines[-2:] == ["1,2", "3,1"]  # the header may stand behind a prompt
    last = result.stderr[result.stderr.rindex("[MISSING_CLAUSE]") :]
    assert "cut statements at every ';'" in last
    assert "\tat " not in last, "below the message there is nothing but the state"
    assert "(state=42601,code=0)" in last


def test_sigterm_ends_it_and_leaves_nothing(server: Command) -> None:
    """The last test with this server."""
    (jvm,) = server.jvms()
    gone = (hive.OperationalError, TTransportException, OSError, EOFError)
    with contextlib.suppress(*gone), pyhive(server.port) as run, ThreadPoolExecutor() as pool:
        run("SELECT 1")
        running = pool.submit(run, "SELECT count(*) FROM range(1000000000000) WHERE id % 7 = rand()")
        assert server.end(signal.SIGTERM) == 0
        with pytest.raises(gone):
            running.result()
    assert_free(server.port)
    assert not Path(f"/proc/{jvm}").exists()
    assert list(server.folder.iterdir()) == list(server.temporary.iterdir()) == []
    # Where nothing was compiled before, somebody waits for kernels.
    assert [line for line in server.errors().splitlines() if "kernels" not in line and "cersql warm" not in line] == []


def assert_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))


# ---------------------------------------------------------------- the command


@pytest.mark.exhaustive
def test_ctrl_c_is_a_clean_end_too(tmp_path: Path) -> None:
    command = Command(tmp_path, "--port", "0").ready()
    assert command.end(signal.SIGINT) == 0
    assert command.errors() == ""


@pytest.mark.exhaustive
def test_a_server_whose_jvm_is_gone_says_so(tmp_path: Path) -> None:
    command = Command(tmp_path, "--port", "0").ready()
    os.kill(command.jvms()[0], signal.SIGKILL)
    assert command.end() == 1
    assert "cersql: Spark has ended, and the server with it" in command.errors()


def test_a_mistake_in_the_init_file(data: Path, tmp_path: Path) -> None:
    init = tmp_path / "init.sql"
    init.write_text("CREATE TEMPORARY VIEW v AS SELECT 1 AS one;\n\nCREATE PATTERN VIEW w AS FROM trades PATTERN A a\n"
                    "  ORDER BY ts RETURN a.idd;\n")  # fmt: skip
    command = Command(tmp_path, "--init", str(init), "--table", f"trades={data}/trades.csv", "--port", "0")
    assert command.end() == 1
    lines = command.errors().splitlines()
    assert lines[0].startswith(f"{init}:4:")
    assert "[UNKNOWN_COLUMN]" in lines[0]
    caret = lines.index("    ORDER BY ts RETURN a.idd;") + 1
    assert lines[caret].strip() == "^"
    assert list(command.temporary.iterdir()) == []


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert cli.main(["serve", "--port", str(port)]) == 1
    shown = capsys.readouterr().err
    assert f"[CANNOT_LISTEN] The Thrift server cannot listen on 127.0.0.1, port {port}: Address already in use" in shown
    assert "Port 0" in shown


@pytest.mark.parametrize("wrong", ["-1", "65536", "x"])
def test_a_port_that_is_none(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["serve", f"--port={wrong}"])
    assert caught.value.code == 2
    assert "is no port" in capsys.readouterr().err


def test_the_address_is_no_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "--conf", "hive.server2.thrift.bind.host=0.0.0.0"]) == 2
    assert "give --host and --port" in capsys.readouterr().err


# ---------------------------------------------------------------- from Python


@pytest.fixture
def session(spark: Any) -> Any:
    session = taught(spark)
    view(session, "t", [(1, "A"), (2, "B"), (3, "A")], "id INT, type STRING")
    return session


V = "PATTERN VIEW v AS FROM t PATTERN A a ORDER BY id RETURN a.id"


def test_a_session_is_served_and_lives_on(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with cersql.serve(session, port=0) as server:
        assert server.url == f"jdbc:hive2://127.0.0.1:{server.port}/default"
        assert server.running
        session.sql(f"CREATE {V}")
        with pyhive(server.port) as run:
            assert run("SELECT * FROM v") == [(1,), (3,)]
            run("CREATE TEMPORARY VIEW theirs AS SELECT 5 AS five")
    assert not server.running
    server.stop()
    server.wait()
    assert "stopped" in repr(server)
    assert session.table("theirs").collect() == [(5,)]
    assert list(tmp_path.iterdir()) == []
    with cersql.serve(session, port=server.port), pyhive(server.port) as run:
        assert run("SELECT count(*) FROM v") == [(2,)]


def test_sessions_of_their_own(session: Any) -> None:
    session.sql(f"CREATE GLOBAL {V.replace('VIEW v', 'VIEW everyones')}")
    session.sql(f"CREATE {V}")
    with (
        cersql.serve(session, port=0, shared=False) as server,
        pyhive(server.port) as one,
        pyhive(server.port) as other,
    ):
        assert one("SELECT * FROM global_temp.everyones") == [(1,), (3,)]
        with pytest.raises(hive.OperationalError, match="TABLE_OR_VIEW_NOT_FOUND"):
            one("SELECT * FROM v")
        one("CREATE TEMPORARY VIEW t AS SELECT 9 AS id, 'A' AS type")
        one(f"CREATE {V}")
        assert one("SELECT * FROM v") == [(9,)]
        with pytest.raises(hive.OperationalError, match="TABLE_OR_VIEW_NOT_FOUND"):
            other("SELECT * FROM v")
    session.sql("DROP VIEW global_temp.everyones")


def test_the_sessions_own_setting_decides_if_nobody_else_does(session: Any) -> None:
    session._jsparkSession.sessionState().conf().setConfString("spark.sql.hive.thriftServer.singleSession", "false")
    with (
        cersql.serve(session, port=0) as server,
        pyhive(server.port) as run,
        pytest.raises(hive.OperationalError, match="TABLE_OR_VIEW_NOT_FOUND"),
    ):
        run("SELECT * FROM t")


class Ldap(socketserver.BaseRequestHandler):
    """A server of LDAP that answers binds: sally's password is secret."""

    def handle(self) -> None:
        while message := self.request.recv(4096):
            id, operation = message[4], message[5]
            if operation != 0x60:  # not a bind
                return
            right = b"uid=sally,dc=example\x80\x06secret" in message
            answer = bytes([0x0A, 1, 0 if right else 49, 4, 0, 4, 0])
            self.request.sendall(bytes([0x30, 12, 2, 1, id, 0x61, 7]) + answer)


def test_authentication(session: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thrift, "_is_loopback", lambda host: False)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Ldap) as directory:
        directory.daemon_threads = True
        threading.Thread(target=directory.serve_forever, daemon=True).start()
        settings = {
            "hive.server2.authentication": "LDAP",
            "hive.server2.authentication.ldap.url": f"ldap://127.0.0.1:{directory.server_address[1]}",
            "hive.server2.authentication.ldap.baseDN": "dc=example",
        }
        with cersql.serve(session, port=0, settings=settings) as server:
            with pyhive(server.port, username="sally", password="secret", auth="LDAP") as run:
                assert run("SELECT count(*) FROM t") == [(3,)]
            for wrong in ({"password": "guess"}, {"username": "harry", "password": "secret"}):
                with pytest.raises(TTransportException, match="Error validating the login"):
                    hive.connect("127.0.0.1", server.port, **{"username": "sally", "auth": "LDAP", **wrong})
        directory.shutdown()
    assert caplog.messages == []


def test_a_server_that_is_open_to_all_warns(
    session: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [thrift._is_loopback(host) for host in ("127.0.0.1", "localhost", "0.0.0.0", "", "192.0.2.1")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    monkeypatch.setattr(thrift, "_is_loopback", lambda host: False)
    with cersql.serve(session, port=0, settings={"hive.server2.authentication": "NOSASL"}) as server:
        assert server.url.endswith("/default;auth=noSasl")
        with pyhive(server.port, auth="NOSASL") as run:
            assert run("SELECT 1") == [(1,)]
    (message,) = caplog.messages
    assert "lets everyone in" in message


def test_over_http(session: Any) -> None:
    with cersql.serve(session, port=0, settings={"hive.server2.transport.mode": "http"}) as server:
        assert server.url.endswith(f":{server.port}/default;transportMode=http;httpPath=cliservice")
        connection = impala(
            "127.0.0.1", server.port, use_http_transport=True, http_path="cliservice", auth_mechanism="PLAIN",
            user="me", password="any",
        )  # fmt: skip
        with contextlib.closing(connection), contextlib.closing(connection.cursor()) as cursor:
            cursor.execute("SELECT count(*) FROM t")
            assert cursor.fetchall() == [(3,)]


@pytest.mark.exhaustive
def test_a_server_that_does_not_start(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SparkError) as caught:
        cersql.serve(session, port=0, settings={"hive.server2.authentication": "NONSENSE"})
    assert caught.value.condition == "SERVER_START"
    assert "NONSENSE" in caught.value.message
    with pytest.raises(SparkError) as caught:
        cersql.serve(session, host="nosuch.invalid")
    assert caught.value.condition == "CANNOT_LISTEN"
    with pytest.raises(ValueError, match="host and port are arguments"):
        cersql.serve(session, settings={"spark.hadoop.hive.server2.thrift.port": "1"})
    with pytest.raises(ValueError, match="65536 is no port"):
        cersql.serve(session, port=65536)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(thrift, "check_address", lambda host, port: None)  # it was free then
        with pytest.raises(SparkError) as caught:
            cersql.serve(session, port=taken.getsockname()[1])
    assert caught.value.condition == "CANNOT_LISTEN"


def test_of_two_that_replace_a_view_at_once_one_wins_wholly(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The definition, by which a count is planned, is that of the view."""
    remember, pool, others = patterns.remember, ThreadPoolExecutor(), []

    def overtaken(spark: Any, definition: patterns.Definition) -> None:
        if not others:
            others.append(pool.submit(session.sql, f"CREATE OR REPLACE {V.replace('A a', 'B a')}"))
            end = time.monotonic() + 1
            while not others[0].done() and time.monotonic() < end:
                time.sleep(0.01)
        remember(spark, definition)

    monkeypatch.setattr(patterns, "remember", overtaken)
    session.sql(f"CREATE {V}")
    others[0].result()
    pool.shutdown()
    assert session.sql("SELECT * FROM v").collect() == [(2,)]
    assert session.sql("SELECT count(*) FROM v").collect() == [(1,)]
    assert "B a" in cersql.patterns(session)["v"]
