"""A query by its relational plan: matches that Catalyst joins, then all that follows any matches.

What chooses among whole matches is a window over those of one end (NXT, LAST, MAX), or of one start (AFTER MATCH SKIP
TO NEXT ROW); it acts on those that the conditions on whole matches leave.

`cersql.plan` says which plan runs a query: auto, automaton or relational.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - pyspark's custom

from planner.physical import PhysicalPlan
from planner.query import Query
from planner.refusal import Refusal
from planner.relational.planning import RelationalPlan, relational
from planner.relational.sql import last_order, nxt_order
from spark_ext.batch import found
from spark_ext.costing import compared_costs
from spark_ext.errors import SparkError
from spark_ext.grouping import result_of
from spark_ext.joining import Joining
from spark_ext.limits import most_matches
from spark_ext.listing import listed, unsteady
from spark_ext.match_columns import END, START, SUP, MatchColumns
from spark_ext.objections import analyzed
from spark_ext.returned import Choose, chosen, rows_of
from spark_ext.schema import SparkCatalog

SETTING = "cersql.plan"  # auto, automaton or relational
WAYS = ("auto", "automaton", "relational")
STREAM = "its source is a stream, which has an automaton only"
_BEST = "__cersql_m_best"


def setting(spark: SparkSession) -> str:
    written = str(spark.conf.get(SETTING, None) or "auto").lower()
    if written not in WAYS:
        raise SparkError("SETTING", name=SETTING, value=written, expected="auto, automaton or relational")
    return written


def joining(query: Query, plan: PhysicalPlan, catalog: SparkCatalog) -> Joining | Refusal:
    """The joins of a bound query, or why there are none. `plan`: the automaton's, whose rows these read."""
    made = relational(query)
    if isinstance(made, Refusal):
        return made
    groups = made.query.groups
    if groups is not None:
        groups = replace(groups, listed="the relational plan lists them")
    own = replace(plan, query=replace(made.query, groups=groups), later=None, tabulated=())
    joins = Joining(own, made, catalog)
    return joins.refusal or joins


def result(joins: Joining, most: int | None = None) -> DataFrame:
    """The rows of the query. `most`: matches that a task may list, where they are listed (`most_listed`)."""
    plan, catalog, choose = joins.plan, joins.catalog, choosing(joins.made, joins.columns, most)
    if plan.query.groups is not None:
        return result_of(plan, catalog, joins.frame, whole=False, choose=choose)
    matches = found(plan, catalog, joins.frame)
    return rows_of(plan, catalog, chosen(plan, catalog, matches, choose))


def most_listed(query: Query, plan: PhysicalPlan, spark: SparkSession) -> int | None:
    """How many matches a task of a relational plan may list; None where the automaton would list none, or the first
    few that a LIMIT takes. `plan`: the automaton's."""
    most = most_matches(spark)
    if plan.query.groups is not None and not plan.query.groups.listed:
        return None
    takes_any = query.limit is not None and query.limit <= most and not query.having and not query.on_match
    return None if takes_any else most


def count(joins: Joining) -> DataFrame:
    """The number of rows, one BIGINT: no match is listed for it."""
    return result(joins).selectExpr("count(1)")


def choosing(made: RelationalPlan, columns: MatchColumns, most: int | None = None) -> Choose:
    """What is left of the matches that compete, `most` in a task. Hidden columns stay behind."""

    def choose(matches: DataFrame) -> DataFrame:
        if made.one_of_start:
            matches = _one_of_start(matches, columns)
        elif made.strategy != "ALL":
            matches = _of_one_end(made.strategy, matches, columns)
        left = matches.drop(*columns.hidden)
        return left if most is None else listed(left, most)

    return choose


def _of_one_end(strategy: str, matches: DataFrame, columns: MatchColumns) -> DataFrame:
    """Of the matches of each end those that the strategy leaves."""
    over = f"PARTITION BY {', '.join([*columns.keys, END])}"
    if strategy == "MAX":
        greater = f"o -> size(o) > size({SUP}) AND size(array_except({SUP}, o)) = 0"
        best = f"NOT exists(collect_set({SUP}) OVER ({over}), {greater})"
    else:
        order = f"{nxt_order(SUP)} ASC" if strategy == "NXT" else f"{last_order(SUP)} DESC"
        best = f"rank() OVER ({over} ORDER BY {order}) = 1"
    return analyzed(matches.selectExpr("*", f"{best} AS {_BEST}").where(_BEST).drop(_BEST))


def _one_of_start(matches: DataFrame, columns: MatchColumns) -> DataFrame:
    """Of the matches of each start one: with the greatest end, of those the NXT-greatest, and of several the first by
    the places of the variables' events."""
    over = f"PARTITION BY {', '.join([*columns.keys, START])}"
    order = ", ".join([f"{END} DESC", nxt_order(SUP), *columns.events])
    best = f"row_number() OVER ({over} ORDER BY {order}) = 1"
    return analyzed(matches.selectExpr("*", f"{best} AS {_BEST}").where(_BEST).drop(_BEST))


def refused(reason: str) -> SparkError:
    """What is said where only a relational plan will do, and there is none."""
    hint = f"SET {SETTING} = auto runs by the automaton what cannot be joined."
    return SparkError("PLAN_REFUSED", reason=reason, hint=hint)


SLOW = "general engine"


def why_automaton(plan: PhysicalPlan) -> str | None:
    """Why the automaton is surely not much slower than joins; None if it could be. Its kernels read each event once,
    and joins read, shuffle and sort the rows once for each event of a match."""
    if plan.later is not None:
        return None
    return None if plan.stepper == SLOW else f"the {plan.stepper} reads each row once, a join several times"


class Way(NamedTuple):
    """How a query is run: by these joins, or (None) by its automaton; and what EXPLAIN says of it."""

    joins: Joining | None
    told: tuple[str, ...] = ()


def way(query: Query, plan: PhysicalPlan, catalog: SparkCatalog, asked: str | None = None) -> Way:
    """Which plan runs a bound query over tables; `asked`: which one is to, in place of the session's setting. Raises
    SparkError PLAN_REFUSED, or SETTING."""
    asked = asked or setting(catalog.spark)
    if asked == "automaton":
        return Way(None, (f"plan: automaton, since {SETTING} = automaton",))
    if asked == "auto":
        why = why_automaton(plan)
        if why is not None:
            return Way(None, (f"plan: automaton, since {why}",))
    joins = joining(query, plan, catalog)
    if isinstance(joins, Refusal):
        if asked == "auto":
            return Way(None, ("plan: automaton", f"  not relational: {joins}"))
        raise refused(joins.reason)
    if asked == "relational":
        return Way(joins, (f"plan: relational, since {SETTING} = relational",))
    dear, why = compared_costs(joins)
    return Way(None if dear else joins, (f"plan: {'automaton' if dear else 'relational'}, since {why}",))


def told_of_stream(spark: SparkSession) -> list[str]:
    """What EXPLAIN says of the plan of a stream, where the session asks for another one."""
    return [f"plan: automaton, since {STREAM}"] if setting(spark) == "relational" else []


# ---------------------------------------------------------------- both


class Counts(NamedTuple):
    """The rows of one result, those of them that the other lacks, and those that only the other has."""

    rows: int
    missing: int
    extra: int


def compared(found: DataFrame, other: DataFrame, shown: int) -> tuple[Counts, list[str], list[str]]:
    """Compare the rows of two results as bags, in Spark; with the first rows, as JSON, that only one of them has."""
    check_comparable(found)
    sides = [_as_json(df).groupBy("row").agg(F.count("*").alias(name)) for df, name in ((found, "a"), (other, "b"))]
    both = sides[0].join(sides[1], "row", "full_outer")
    both = both.selectExpr("row", "coalesce(a, 0L) AS a", "coalesce(b, 0L) AS b")
    sums = ("sum(a)", "sum(greatest(a - b, 0L))", "sum(greatest(b - a, 0L))")
    counts = Counts(*(both.selectExpr(*(f"coalesce({sql}, 0L)" for sql in sums)).first() or (0, 0, 0)))

    def first(test: str, number: int) -> list[str]:
        return [row.row for row in both.where(test).sort("row").take(shown)] if number else []

    return counts, first("a > b", counts.missing), first("b > a", counts.extra)


_FOLDED = re.compile(r" AS __cersql_(?!out)\w+#")  # by an aggregate of the user's own, which Spark may run once only
_NAMED = re.compile(r" AS [^#]+#\d+L?$")


def check_comparable(df: DataFrame) -> None:
    """SparkError UNSTEADY_RESULT where RETURN has other values each time. (Connect does not show it.)"""
    if not hasattr(df, "_jdf"):
        return
    for shown in unsteady(df._jdf.queryExecution().analyzed()):
        if not _FOLDED.search(shown):
            hint = "Leave it out of the query that is verified: it is no part of what is matched."
            raise SparkError("UNSTEADY_RESULT", shown=_NAMED.sub("", shown), hint=hint)


def _as_json(df: DataFrame) -> DataFrame:
    """Each row as one string; columns of one name keep apart by their numbers."""
    names = [f"{name} ({i})" if df.columns.count(name) > 1 else name for i, name in enumerate(df.columns)]
    exact = {
        "ignoreNullFields": "false",
        "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSSXXXXX",
        "timestampNTZFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS",
    }
    return df.toDF(*names).select(F.to_json(F.struct("*"), exact).alias("row"))
