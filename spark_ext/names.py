"""Classes of Java that py4j need not look for again.

Py4j asks the JVM at every dot: for `jvm.py4j.reflection.TypeUtil` it asks whether `py4j` is a class, in each package
that pyspark imports, then `py4j.reflection`, and only then the class itself. A name that is no class is looked for in
all of Spark's 280 jars, 0.2 to 1 ms a time. Two habits keep that out of a query's planning:

- A class is named at once, as pyspark does: `getattr(jvm, "java.util.ArrayList")` takes 0.06 ms.
- The classes that pyspark itself asks for whenever it turns an exception of Java into one of Python, some ten times an
  exception, are laid into the view of the JVM here. Every statement of ours that Spark's parser refuses first is such
  an exception.

`python tests/bench/overhead_bench.py` shows what planning costs.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaPackage

_IMPORTED = {
    "PythonUtils": "org.apache.spark.api.python.PythonUtils",
    "PythonErrorUtils": "org.apache.spark.api.python.PythonErrorUtils",
    "PythonSQLUtils": "org.apache.spark.sql.api.python.PythonSQLUtils",
}


def remember(gateway: Any) -> None:
    """Lay the classes that pyspark asks for by every exception into `gateway.jvm`, where no question finds them.

    They are those that the JVM would answer with; twice is harmless.
    """
    jvm: Any = gateway.jvm
    client = gateway._gateway_client
    for name, full in _IMPORTED.items():
        setattr(jvm, name, JavaClass(full, client))
    kinds = JavaClass("py4j.reflection.TypeUtil", client)
    kinds.isInstanceOf = kinds.isInstanceOf  # py4j asks what a member is each time that a class is asked for it
    jvm.py4j = JavaPackage("py4j", client, jvm._id)
    jvm.py4j.reflection = JavaPackage("py4j.reflection", client, jvm._id)
    jvm.py4j.reflection.TypeUtil = kinds
