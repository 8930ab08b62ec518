"""SparkError, and how an error of ours becomes one of Spark's.

Through `spark.sql` and Thrift only Spark's own exceptions travel, so ours are turned into a real `ParseException` of
the JVM: its caret at our line and column, our condition, text and hint as its message, and an SQLSTATE. Spark takes
the SQLSTATE from an error class of its own and knows no foreign ones, so each of ours is carried by a Spark class
that has the same SQLSTATE. Our condition and parameters are in `getMessageParameters()` too, for programs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.errors.exceptions.captured import CapturedException

from runtime.errors import CersqlError, Condition, short_lines, shortened

SPARK_EXCEPTIONS = (PySparkException, Py4JError)
"""All that Spark raises, for callers that do not import pyspark."""

_FRAME = "java.lang.StackTraceElement"
PARSE_EXCEPTION = "org.apache.spark.sql.catalyst.parser.ParseException"


class SparkError(CersqlError):
    """The Spark that was found cannot do what is asked."""

    conditions = {
        "SPARK_VERSION": Condition("55000", "cersql needs pyspark {needed}, and this is pyspark {found}."),
        "SPARK_INTERNALS": Condition("55000", "This Spark session cannot be taught PATTERN: {detail}."),
        "NO_ARROW_TYPE": Condition(
            "0A000", "The column {name} is {type}, which PySpark cannot send to Python, where patterns are matched."
        ),
        "STREAM_WATERMARK": Condition("0A000", "The source is a stream, and its column {column} has no watermark."),
        "STREAM_ORDER": Condition("0A000", "On a stream the order is event time, and ORDER BY {column} is {type}."),
        "SCAN_REFUSED": Condition("0A000", "The query cannot read its Parquet files by itself: {reason}."),
        "PLAN_REFUSED": Condition("0A000", "The query has no relational plan: {reason}."),
        "STREAM_LATER": Condition(
            "0A000",
            "On a stream {what} cannot choose among matches of which WHERE asks as a whole.",
        ),
        "UNSTEADY_SOURCE": Condition(
            "0A000", "{shown} needs a second look at the source, which gives other values each time it is read."
        ),
        "UNSTEADY_RESULT": Condition(
            "0A000", "Rows of two runs cannot be compared: {shown} gives other values each time it is computed."
        ),
        "STREAM_GROUPS": Condition(
            "0A000", "On a stream the groups of GROUP BY {by} never end, so that their rows would never come."
        ),
        "STREAM_KEY": Condition("0A000", "On a stream groups cannot be told apart by {by}, {problem}."),
        "LATE_ROWS": Condition("0A000", "There are no late rows: what is given {problem}."),
        "STREAM_MIXED": Condition("0A000", "{streams} is a stream, and {tables} is not."),
        "CHECKPOINT": Condition("58030", "The checkpoint {path} of the stream {name} is damaged: {problem}."),
        "STREAM_BESIDE": Condition(
            "0A000",
            "The checkpoint {path} of the stream {name} was begun {begun} {clause}, which has a state of its own.",
        ),
        "STREAM_TABLE": Condition("42809", "The stream {name} cannot write into {table}: {problem}."),
        "CHECKPOINT_OTHER": Condition(
            "42000", "The checkpoint {path} of the stream {name} was begun by another query: {other}."
        ),
        "CHECKPOINT_TABLE": Condition(
            "42000", "The checkpoint {path} goes on from rows that the table {table} does not have: {problem}."
        ),
        "CHECKPOINT_BEHIND": Condition(
            "42000",
            "The table {table} has the rows of micro-batch {known} and those before, and the checkpoint {path} {to}: "
            "what comes under these numbers would be left out.",
        ),
        "WATERMARK_TWICE": Condition("42000", "{column} has a watermark already, of {delay} ms."),
        "SETTING": Condition("22023", "The setting {name} is {value!r}; it must be {expected}."),
        "FUNCTION_EXISTS": Condition("42723", "There is a table function {name} already."),
        "FUNCTION_CALL": Condition("42605", "The call of the pattern function {name} does not fit: {problem}."),
        "ARGUMENT_TYPE": Condition("0A000", "Through Spark Connect an argument cannot be a {type} here."),
        "COLLATION": Condition("0A000", "Through Spark Connect {sql} cannot be compared under its collation."),
        "CONNECT": Condition("0A000", "This is a Spark Connect session, and {what} needs Spark in this process."),
        "CONNECT_WORKERS": Condition(
            "55000", "The Python workers of the Connect server cannot match patterns: they have no module {module}."
        ),
        "CANNOT_LISTEN": Condition("58000", "The Thrift server cannot listen on {host}, port {port}: {reason}."),
        "SERVER_START": Condition("58000", "The Thrift server did not start: {detail}"),
    }


class ExpressionError(CersqlError):
    """Spark's analyzer or parser does not accept an expression of the query."""

    conditions = {
        "INVALID_EXPRESSION": Condition("42000", "Spark does not accept this: {detail}"),
        "UNRESOLVED_NAME": Condition(
            "42703", "{name} is neither a variable, a column nor a function that takes no arguments."
        ),
        "IMPOSSIBLE_TEXT": Condition("22018", "{value} is no {type}, and Spark would read it as one."),
        "ONE_ROW": Condition(
            "0A000",
            "An aggregate of your own, a window function or what makes several rows of one cannot stand here, where "
            "each match is one row.",
        ),
    }


class _Carrier(NamedTuple):
    """A Spark error class; `parameter` is the one that takes our text, `others` fill the rest of its template."""

    name: str
    parameter: str
    others: dict[str, str]


_CARRIERS = {
    "42601": _Carrier("PARSE_SYNTAX_ERROR", "hint", {"error": "PATTERN"}),
    "42703": _Carrier("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "objectName", {}),
    "42P01": _Carrier("TABLE_OR_VIEW_NOT_FOUND", "relationName", {"searchPath": ""}),
    "0A000": _Carrier("UNSUPPORTED_FEATURE.TABLE_OPERATION", "operation", {"tableName": "PATTERN"}),
    "XX000": _Carrier("INTERNAL_ERROR", "message", {}),
    "07001": _Carrier("ALL_PARAMETERS_MUST_BE_NAMED", "exprs", {}),
    "22003": _Carrier("ARITHMETIC_OVERFLOW", "message", {"alternative": "", "config": ""}),
    "22018": _Carrier("CAST_INVALID_INPUT", "expression", {"sourceType": "", "targetType": ""}),
    "42000": _Carrier("AMBIGUOUS_REFERENCE_TO_FIELDS", "field", {"count": ""}),
    "42605": _Carrier(
        "WRONG_NUM_ARGS.WITHOUT_SUGGESTION", "functionName", {"expectedNum": "", "actualNum": "", "docroot": ""}
    ),
    "42701": _Carrier("DUPLICATE_ASSIGNMENTS", "nameList", {}),
    "42702": _Carrier("AMBIGUOUS_COLUMN_OR_FIELD", "name", {"n": ""}),
    "42704": _Carrier("FIELD_NOT_FOUND", "fieldName", {"fields": "PATTERN"}),
    "42710": _Carrier("FIELD_ALREADY_EXISTS", "op", {"fieldNames": "", "struct": ""}),
    "42711": _Carrier("COLUMN_ALREADY_EXISTS", "columnName", {}),
    "42723": _Carrier("ROUTINE_ALREADY_EXISTS", "routineName", {"newRoutineType": "", "existingRoutineType": ""}),
    "42734": _Carrier("DUPLICATE_ROUTINE_PARAMETER_NAMES", "names", {"routineName": ""}),
    "42822": _Carrier("EXPRESSION_TYPE_IS_NOT_ORDERABLE", "exprType", {"expr": ""}),
    "42846": _Carrier("CANNOT_CAST_DATATYPE", "sourceType", {"targetType": ""}),
    "42P02": _Carrier("UNBOUND_SQL_PARAMETER", "name", {}),
    "54000": _Carrier("GROUPING_SIZE_LIMIT_EXCEEDED", "maxSize", {}),
    "54001": _Carrier("FAILED_TO_PARSE_TOO_COMPLEX", "message", {}),
}
_ANY_OTHER = _Carrier("USER_RAISED_EXCEPTION", "errorMessage", {})


def thrown_in_jvm(jvm: Any, error: CersqlError, sql: str) -> Py4JJavaError:
    """What a Py4J proxy raises so that the JVM throws `error` as a ParseException about `sql`."""
    carrier = _CARRIERS.get(error.sqlstate, _ANY_OTHER)
    text = error.text if error.text is not None else sql
    ours = {**error.parameters, **carrier.others, carrier.parameter: error.message, "condition": error.condition}
    place = None
    if error.line is not None and error.span is not None:
        text, column = short_lines(text, error.span.start)
        place = (error.line, column)
    thrown = _parse_exception(jvm, text, _message(error), place, carrier.name, _java_map(jvm, ours))
    # Without it beeline prints two screens of our innards below the message, and shows the message last.
    thrown.setStackTrace(
        getattr(jvm, "java.lang.reflect.Array").newInstance(getattr(jvm, "java.lang.Class").forName(_FRAME), 0)
    )
    return Py4JJavaError(error.condition, thrown)


def thrown_again(jvm: Any, error: CapturedException, sql: str) -> Exception:
    """What a Py4J proxy raises so that the JVM throws again what pyspark made `error` of on its way to us.

    A parser may throw ParseExceptions and unchecked exceptions; any other would reach the user wrapped, its message
    lost. So an AnalysisException becomes a ParseException (which is one) that says the same.
    """
    origin: Any = error._origin
    if origin is None:
        return error
    unchecked = getattr(jvm, "java.lang.Class").forName("java.lang.RuntimeException")
    if isinstance(error, ParseException) or unchecked.isInstance(origin):
        return Py4JJavaError(type(error).__name__, origin)
    condition = error.getCondition()
    message = origin.message() if isinstance(error, AnalysisException) else str(origin.getMessage())
    parameters = origin.getMessageParameters() if condition else _java_map(jvm, {"message": message})
    again = _parse_exception(jvm, sql, message, None, condition or "INTERNAL_ERROR", parameters)
    return Py4JJavaError(type(error).__name__, again)


def _parse_exception(
    jvm: Any, sql: str, message: str, place: tuple[int, int] | None, condition: str, parameters: Any
) -> Any:
    """A ParseException of the JVM; `place` is the 1-based line and 0-based column.

    The constructor that takes a message as it is is private in Scala, hence the reflection; the public ones render
    every error of ours as "Syntax error at or near …".
    """
    some, none = getattr(jvm, "scala.Option").apply, getattr(jvm, "scala.Option").empty()
    line, column = (none, none) if place is None else map(some, place)
    origin = getattr(jvm, "org.apache.spark.sql.catalyst.trees.Origin")(
        line, column, none, none, some(sql), none, none, none, none, none
    )
    class_of, new_array = getattr(jvm, "java.lang.Class").forName, getattr(jvm, "java.lang.reflect.Array").newInstance
    contexts = new_array(class_of("org.apache.spark.QueryContext"), 0)
    arguments = new_array(class_of("java.lang.Object"), 6)
    scala_parameters = jvm.PythonUtils.toScalaMap(parameters)
    for index, value in enumerate((some(sql), message, origin, some(condition), scala_parameters, contexts)):
        arguments[index] = value
    return _message_constructor(jvm).newInstance(arguments)


def _message(error: CersqlError) -> str:
    hint = f" {shortened(error.hint)}" if error.hint else ""
    return f"[{error.condition}] {error.message}{hint} SQLSTATE: {error.sqlstate}"


def _java_map(jvm: Any, entries: dict[str, str]) -> Any:
    java_map = getattr(jvm, "java.util.HashMap")()
    for key, value in entries.items():
        java_map.put(key, value)
    return java_map


def _message_constructor(jvm: Any) -> Any:
    for constructor in getattr(jvm, "java.lang.Class").forName(PARSE_EXCEPTION).getDeclaredConstructors():
        if constructor.getParameterCount() == 6:
            constructor.setAccessible(True)
            return constructor
    raise SparkError("SPARK_INTERNALS", detail=f"{PARSE_EXCEPTION} has another shape than in Spark 4.3")
