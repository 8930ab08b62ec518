"""What to write for a function that Spark does not know, or that has another meaning in other languages."""

from __future__ import annotations

import difflib
import re

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_ext.quiet import quiet_captures

_PREV = "The event of the same variable before is PREV(b.price), or b[i-1].price."
_NEXT = "The event of the same variable after is NEXT(b.price), or b[i+1].price."
_WINDOW = "A window is the clause WITHIN 10 MINUTES; of windows that slide, WITHIN 10 MINUTES SLIDE 5 MINUTES."
# Of row pattern recognition, Flink, Esper, and of other databases.
_ELSEWHERE = {
    "LAG": _PREV, "PREVIOUS": _PREV, "PRIOR": _PREV, "LEAD": _NEXT, "FOLLOWING": _NEXT,
    "TUMBLE": _WINDOW, "HOP": _WINDOW,
    "AVERAGE": "Did you mean avg?", "GETDATE": "Did you mean now?", "SYSDATE": "Did you mean now?",
    "LEN": "Did you mean length?", "STRLEN": "Did you mean length?", "ISNULL": "Did you mean isnull, or coalesce?",
    "IIF": "Did you mean if?", "STRPOS": "Did you mean instr?", "TO_CHAR": "Did you mean date_format?",
    "STRING_AGG": "Did you mean listagg?", "GROUP_CONCAT": "Did you mean listagg?",
}  # fmt: skip
_OF_OTHERS = ("UNRESOLVED_ROUTINE", "WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE")


def function_hint(error: PySparkException, spark: SparkSession) -> str | None:
    """The way out where Spark objects to a function: of `lenght(…)` the nearest name that the session has."""
    if not (error.getCondition() or "").startswith(_OF_OTHERS):
        return None
    told = error.getMessageParameters() or {}
    called = re.match(r"[\w.]+", (told.get("routineName") or told.get("funcName") or "").replace("`", "").strip('"'))
    if called is None:
        return None
    name = called[0].rpartition(".")[2]
    if name.upper() in _ELSEWHERE:
        return _ELSEWHERE[name.upper()]
    near = difflib.get_close_matches(name.lower(), _functions(spark), n=1, cutoff=0.6)
    return f"Did you mean {near[0]}?" if near else "SHOW FUNCTIONS lists those that there are."


def _functions(spark: SparkSession) -> list[str]:
    """The session's functions, those of the user among them."""
    try:
        with quiet_captures():
            rows = spark.sql("SHOW FUNCTIONS").collect()
    except PySparkException:  # a catalog that does not list them: the error is told without a hint
        return []
    names = (str(row[0]).rpartition(".")[2].lower() for row in rows)
    return [name for name in names if re.fullmatch(r"\w+", name)]
