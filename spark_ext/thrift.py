"""A Thrift server in the Python driver: for beeline, JDBC and ODBC drivers, PyHive, impyla.

The server is Spark's own, in the driver's JVM; the sessions behind it speak PATTERN, because they were taught to.

Roads not taken: Spark's `startWithSparkSession` configures the server as a client of an embedded Hive metastore, which
no statement reads. Hive opens it when the first connection is closed: 20 seconds, and a derby.log in the working
directory. So we put the server together ourselves, with a metastore that fails at once. `start-thriftserver.sh` runs a
JVM without Python, where no pattern can be planned.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import logging
import shutil
import socket
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_ext.errors import SparkError

logger = logging.getLogger(__name__)

PORT = 10000  # Hive's
HOST = "127.0.0.1"
ADDRESS = frozenset(("hive.server2.thrift.port", "hive.server2.thrift.bind.host", "hive.server2.thrift.http.port"))
"""Settings that `host` and `port` stand for."""

_SHARED = "spark.sql.hive.thriftServer.singleSession"
_FOLDERS = (
    "hive.server2.logging.operation.log.location",
    "hive.exec.scratchdir",
    "hive.exec.local.scratchdir",
    "hive.downloaded.resources.dir",
    "hive.querylog.location",
)
_NO_METASTORE = {"hive.metastore.uris": "none", "hive.metastore.fastpath": "true"}
_AUTHORIZATION = "hive.security.authorization.manager"
_NO_ROLES = {
    _AUTHORIZATION: "org.apache.hadoop.hive.ql.security.authorization.plugin.fallback.FallbackHiveAuthorizerFactory",
    "hive.internal.ss.authz.settings.applied.marker": "true",
}
_AUTHENTICATION = r"^hive\.server2\.(custom\.)?authentication\."
_ANOTHER_PORT = "Port 0 stands for any free one."
_OPEN = ("NONE", "NOSASL")  # ways of authentication that let everyone in


@dataclass(frozen=True)
class _Started:
    """What belongs to a server that runs: in the JVM, of this process, and on disk."""

    server: Any
    spark: SparkSession
    properties: _Properties
    process: Any  # the JVM, where we started it
    folder: Path


class ThriftServer:
    """A server that runs, until `stop()` or the end of a with block; `url` is its JDBC address."""

    def __init__(self, started: _Started, host: str, port: int, url: str) -> None:
        self._jvm: Any = started.spark._jvm
        self._context: Any = started.spark.sparkContext._jsc.sc()
        self._server, self._properties, self._process = started.server, started.properties, started.process
        self._stopped = threading.Event()
        self._remove_folder = weakref.finalize(self, shutil.rmtree, started.folder, ignore_errors=True)
        self.host, self.port, self.url = host, port, url

    @property
    def running(self) -> bool:
        return not self._stopped.is_set() and not self._has_lost_spark()

    def wait(self) -> None:
        """Return once the server is stopped, by another thread or because Spark has ended."""
        while not self._stopped.wait(1.0):
            if self._has_lost_spark():
                return

    def stop(self) -> None:
        """Close the connections, cancel their statements, free the port. The session lives on. Again is harmless."""
        if not self._stopped.is_set():
            self._stopped.set()
            with contextlib.suppress(Exception):  # then it only takes longer
                self._cancel_statements()
            try:
                self._server.stop()
                self._properties.restore()
            except Exception as error:  # of Py4J or the network
                if not self._has_lost_spark():
                    logger.warning("the Thrift server did not stop as it should: %s", error)
        self._remove_folder()

    def _cancel_statements(self) -> None:
        """Hive's server would wait for the statements that run, up to ten seconds, before it ends their sessions."""
        context, jvm = self._context, self._jvm
        package = jvm.org.apache.spark.sql.hive.thriftserver.ui
        running = package.HiveThriftServer2AppStatusStore(context.statusStore().store()).getExecutionList()
        for i in range(running.length()):
            if running.apply(i).isExecutionActive():
                context.cancelJobGroup(running.apply(i).groupId())

    def _has_lost_spark(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def __enter__(self) -> ThriftServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<ThriftServer {self.url}{'' if self.running else ', stopped'}>"


class _Properties:
    """Settings as Java's system properties, the one place beside hive-site.xml where Hive's classes for LDAP, PAM and
    CUSTOM authentication look for theirs, whatever the server was configured with."""

    def __init__(self, jvm: Any) -> None:
        self._system = getattr(jvm, "java.lang.System")
        self._before: dict[str, str | None] = {}

    def set(self, settings: Mapping[str, str]) -> None:
        for name, value in settings.items():
            if value:
                self._before[name] = self._system.setProperty(name, value)

    def restore(self) -> None:
        for name, value in self._before.items():
            if value is None:
                self._system.clearProperty(name)
            else:
                self._system.setProperty(name, value)
        self._before.clear()


def serve(
    spark: SparkSession,
    *,
    host: str = HOST,
    port: int = PORT,
    settings: Mapping[str, str] | None = None,
    shared: bool | None = None,
    warn: Callable[[str], None] = logger.warning,
) -> ThriftServer:
    """Start a server in front of `spark`, a session that was taught.

    `settings` are Hive's (`hive.server2.…`). `shared`: all clients use this very session, else each connection has
    a new one; by default what the session's singleSession says, and shared if it says nothing. Raises SparkError.
    """
    given = {name.removeprefix("spark.hadoop."): str(value) for name, value in (settings or {}).items()}
    if wrong := ADDRESS & given.keys():
        raise ValueError(f"host and port are arguments, not settings: {', '.join(sorted(wrong))}")
    check_address(host, port)
    jvm: Any = spark._jvm
    jsession: Any = spark._jsparkSession
    if shared is None:
        shared = spark.conf.get(_SHARED, None) != "false"
    # To Spark this setting is fixed once a session is made, but its server reads it at each new connection.
    jsession.sessionState().conf().setConfString(_SHARED, str(shared).lower())

    folder = Path(tempfile.mkdtemp(prefix="cersql-thrift-"))
    properties = _Properties(jvm)
    try:
        config = _configured(jvm, jsession, folder, given)
        properties.set(config.getValByRegex(_AUTHENTICATION))
        server, service = _started(spark, config, host, port)
    except BaseException as error:
        properties.restore()
        shutil.rmtree(folder, ignore_errors=True)
        if not isinstance(error, Py4JJavaError):
            raise
        raise _not_started(error, host, port) from error
    found = int(service.getPortNumber())
    process = getattr(spark.sparkContext._gateway, "proc", None)
    if config.get("hive.server2.authentication").upper() in _OPEN and not _is_loopback(host):
        warn(
            f"the server listens on {host or 'every address'}, not only to this machine, and lets everyone in: "
            "set hive.server2.authentication"
        )
    started = _Started(server, spark, properties, process, folder)
    return ThriftServer(started, host, found, _url(config, host, found))


def check_address(host: str, port: int) -> None:
    """Raises SparkError where the server could not listen, before anything is started for it."""
    if not 0 <= port <= 65535:
        raise ValueError(f"{port} is no port")
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = _ANOTHER_PORT if getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES) else None
        raise SparkError("CANNOT_LISTEN", host=host, port=port, reason=reason, hint=hint) from None


def end_jvm() -> None:
    """After the session is stopped, for a process that is about to end: the JVM would outlive it by half a second."""
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None or SparkContext._active_spark_context is not None:
        return
    process.stdin.close()  # its sign to end
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)


def _configured(jvm: Any, jsession: Any, folder: Path, given: Mapping[str, str]) -> Any:
    """A HiveConf: the session's Hadoop and Hive settings, then ours, then those given."""
    hadoop = jsession.sessionState().newHadoopConf()
    config = getattr(jvm, "org.apache.hadoop.hive.conf.HiveConf")(hadoop, hadoop.getClass())
    for number, name in enumerate(_FOLDERS):
        if hadoop.get(name) is None:
            own = folder / str(number)
            own.mkdir()
            config.set(name, str(own))
    ours = dict(_NO_METASTORE)
    if config.get(_AUTHORIZATION, "").endswith(".sqlstd.SQLStdHiveAuthorizerFactory"):
        ours |= _NO_ROLES  # the default asks the metastore when a client lists tables, and Spark makes no use of it
    for name, value in {**ours, **given}.items():
        config.set(name, value)
    return config


def _started(spark: SparkSession, config: Any, host: str, port: int) -> tuple[Any, Any]:
    """The server, and that of its services which listens."""
    jvm: Any = spark._jvm
    package = jvm.org.apache.spark.sql.hive.thriftserver
    package.HiveThriftServer2.systemExitOnError().set(False)  # an error is to end in an exception, not in System.exit
    server = package.HiveThriftServer2(spark._jsparkSession)
    server.init(config)
    service = next(service for service in server.getServices() if service.getName().startswith("Thrift"))
    # By reflection, since variables of the environment overrule the settings, and one of them opens the server to all.
    _set_field(service, "hiveHost", host)
    _set_field(service, "portNum", port)
    _listen_to_events(spark, server)
    try:
        server.start()
    except Py4JJavaError:
        with contextlib.suppress(Py4JJavaError):
            server.stop()
        raise
    return server, service


def _set_field(service: Any, name: str, value: object) -> None:
    field = service.getClass().getSuperclass().getDeclaredField(name)
    field.setAccessible(True)
    field.set(service, value)


def _listen_to_events(spark: SparkSession, server: Any) -> None:
    """What Spark does beside starting a server: the listener of its sessions and statements, which they need."""
    jvm: Any = spark._jvm
    module = getattr(jvm, "java.lang.Class").forName("org.apache.spark.sql.hive.thriftserver.HiveThriftServer2$")
    for method in module.getDeclaredMethods():
        if method.getName() == "createListenerAndUI":
            method.setAccessible(True)
            arguments = spark.sparkContext._gateway.new_array(getattr(jvm, "java.lang.Object"), 2)  # type: ignore[union-attr]
            arguments[0], arguments[1] = server, spark.sparkContext._jsc.sc()
            method.invoke(module.getField("MODULE$").get(None), arguments)
            return
    raise SparkError("SPARK_INTERNALS", detail="its Thrift server has no method createListenerAndUI")


def _not_started(error: Py4JJavaError, host: str, port: int) -> SparkError:
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    reason = str(cause.getMessage() or cause.toString())
    if "BindException" in cause.getClass().getName():  # taken since we looked
        return SparkError("CANNOT_LISTEN", host=host, port=port, reason=reason, hint=_ANOTHER_PORT)
    return SparkError("SERVER_START", detail=reason)


def _is_loopback(host: str) -> bool:
    found = socket.getaddrinfo(host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return all(ipaddress.ip_address(str(address[0]).split("%")[0]).is_loopback for *_, address in found)


def _url(config: Any, host: str, port: int) -> str:
    shown = socket.gethostname() if host in ("", "0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    options = ""
    if config.get("hive.server2.authentication").upper() == "NOSASL":
        options += ";auth=noSasl"
    if config.get("hive.server2.use.SSL").lower() == "true":
        options += ";ssl=true"
    if config.get("hive.server2.transport.mode").lower() == "http":
        options += f";transportMode=http;httpPath={config.get('hive.server2.thrift.http.path')}"
    return f"jdbc:hive2://{shown}:{port}/default{options}"
