"""A query by its relational plan: matches that Catalyst joins, then all that follows any matches.

What chooses among whole matches is a window over those of one end (NXT, LAST, MAX), or of one start (AFTER MATCH SKIP
TO NEXT ROW); it acts on those that the conditions on whole matches leave.

`cersql.plan` says which plan runs a query: auto, automaton or relational.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from planner.physical import PhysicalPlan
from planner.query import Query
from planner.refusal import Refusal
from planner.relational.planning import RelationalPlan, relational
from planner.relational.sql import last_order, nxt_order
from spark_ext.batch import found
from spark_ext.errors import SparkError
from spark_ext.grouping import result_of
from spark_ext.joining import Joining
from spark_ext.match_columns import END, START, SUP, MatchColumns
from spark_ext.objections import analyzed
from spark_ext.returned import Choose, chosen, rows_of
from spark_ext.schema import SparkCatalog

SETTING = "cersql.plan"  # auto, automaton or relational
WAYS = ("auto", "automaton", "relational")
_BEST = "__cersql_m_best"


def setting(spark: SparkSession) -> str:
    written = str(spark.conf.get(SETTING, None) or "auto").lower()
    if written not in WAYS:
        raise SparkError("SETTING", name=SETTING, value=written, expected="auto, automaton or relational")
    return written


def joining(query: Query, plan: PhysicalPlan, catalog: SparkCatalog, count_only: bool = False) -> Joining | Refusal:
    """The joins of a bound query, or why there are none. `plan`: the automaton's, whose rows these read."""
    made = relational(query)
    if isinstance(made, Refusal):
        return made
    groups = made.query.groups
    if groups is not None:
        groups = replace(groups, listed="the relational plan lists them")
    own = replace(plan, query=replace(made.query, groups=groups), later=None, tabulated=())
    joins = Joining(own, made, catalog, count_only)
    return joins.refusal or joins


def result(joins: Joining) -> DataFrame:
    """The rows of the query."""
    plan, catalog, choose = joins.plan, joins.catalog, choosing(joins.made, joins.columns)
    if plan.query.groups is not None:
        return result_of(plan, catalog, joins.frame, whole=False, choose=choose)
    matches = found(plan, catalog, joins.frame)
    return rows_of(plan, catalog, chosen(plan, catalog, matches, choose))


def choosing(made: RelationalPlan, columns: MatchColumns) -> Choose:
    """What is left of the matches that compete. Hidden columns stay behind."""

    def choose(matches: DataFrame) -> DataFrame:
        if made.one_of_start:
            matches = _one_of_start(matches, columns)
        elif made.strategy != "ALL":
            matches = _of_one_end(made.strategy, matches, columns)
        return matches.drop(*columns.hidden)

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


def run(query: Query, plan: PhysicalPlan, catalog: SparkCatalog) -> DataFrame:
    """The rows of the query by its relational plan. Raises SparkError PLAN_REFUSED where there is none."""
    joins = joining(query, plan, catalog)
    if isinstance(joins, Refusal):
        hint = f"SET {SETTING} = auto runs by the automaton what cannot be joined."
        raise SparkError("PLAN_REFUSED", reason=joins.reason, hint=hint)
    return result(joins)
