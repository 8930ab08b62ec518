"""`cersql demo`: the flights example, with what was planned for it, its first matches, counts and time."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.syntax import Syntax

from cersql import api
from cersql.cli.errors import CommandError
from cersql.cli.output import table_of
from cersql.cli.tables import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "flights"
SHOWN = 8
COLUMNS = ("aircraft", "airline", "flight", "arrived", "next flight", "left")


def check_data() -> None:
    """Raises CommandError where the example's data are not beside the package, before Spark is started."""
    if not (FOLDER / "flights.csv").exists():
        raise CommandError(
            f"The demo's data are not in {FOLDER}. They come with the source of cersql, not with the installed "
            "package: run `make demo` in a checkout."
        )


def demo(spark: SparkSession, console: Console) -> None:
    """Run examples/flights/knock_on.sql and print what happens."""
    check_data()
    sql = (FOLDER / "knock_on.sql").read_text(encoding="utf-8")
    load(spark, [(path.stem, path) for path in sorted(FOLDER.glob("*.csv"))])

    console.rule("[bold]The query[/bold]: examples/flights/knock_on.sql")
    console.print(Syntax(sql.strip(), "sql", background_color="default", word_wrap=True))

    console.rule("[bold]What was planned[/bold]")
    console.print(api.explain(spark, sql), markup=False, highlight=False)

    console.rule("[bold]What was found[/bold]")
    began = time.perf_counter()
    rows = spark.sql(sql).collect()
    seconds = time.perf_counter() - began
    console.print(table_of(COLUMNS, map(_shown, rows[:SHOWN])))
    airlines = Counter(row.airline for row in rows)
    console.print(
        f"[bold]{len(rows)}[/bold] knock-on delays among {spark.table('flights').count():,} flights, "
        f"found and joined with airlines and planes in {seconds:.1f} s (Spark's first query: warm-up included)."
    )
    console.print("Most of them: " + ", ".join(f"{name} {count}" for name, count in airlines.most_common(3)) + ".")


def _shown(row: Any) -> tuple[str, ...]:
    late, held = f"+{row.arrived_late} min", f"+{row.left_late} min"
    flight, following = f"{row.flight} to {row.dest}", f"{row.next_flight} to {row.next_dest}"
    return row.tailnum, row.airline or row.carrier, flight, late, following, held
