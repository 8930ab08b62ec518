"""The example notebook in a kernel of its own, and what its user sees when something is wrong."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples/flights"

WRONG = """%%pattern
FROM flights
PATTERN Late l DEFINE Late AS dep_dely_min > 60
ORDER BY row_id RETURN *"""
SEVERAL = """%%pattern chain --limit 3
CREATE OR REPLACE TEMPORARY PATTERN VIEW pairs AS
  FROM flights DEFINE L AS dep_delay_min > 180 PATTERN L a ; L b
  PARTITION BY tailnum ORDER BY sched_dep_utc, row_id WITHIN 1 DAY RETURN tailnum;
SELECT 'between' AS shown;
SHOW PATTERNS LIKE 'pairs';"""
LINE = """n = %pattern SELECT count(*) FROM (FROM flights DEFINE L AS row_id < 3 PATTERN L{1,} ORDER BY row_id RETURN 1)
print(n.df.collect()[0][0], chain.df.count())"""
SECOND = "%%pattern\nSELECT 1;\nFROM flights PATTERN Late l ORDER BY rowid RETURN *"
SPARKS = "%%pattern\nSELECT nothing FROM flights"
ROW = "%%pattern\nFROM flights DEFINE L AS 1 / (row_id - 7) > 0 PATTERN L l ORDER BY row_id RETURN l.row_id"


def executed(cells: list[Any] | None = None) -> Any:
    """The example notebook, executed, with `cells` behind its own."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(FOLDER / "late.ipynb", as_version=4)
    notebook.cells += [nbformat.v4.new_code_cell(text) for text in cells or []]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of jupyter's packages about each other
        client = nbclient.NotebookClient(
            notebook, timeout=240, allow_errors=True, resources={"metadata": {"path": str(FOLDER)}}
        )
        client.execute()
    return notebook


def html_of(cell: Any) -> str:
    return "".join(output.data["text/html"] for output in cell.outputs if "text/html" in output.get("data", {}))


def error_of(cell: Any) -> str:
    (output,) = (output for output in cell.outputs if output.output_type == "error")
    return "\n".join(output.traceback)


def test_the_example_is_stored_without_its_outputs() -> None:
    nbformat = pytest.importorskip("nbformat")
    for cell in nbformat.read(FOLDER / "late.ipynb", as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.jvm
@pytest.mark.slow
def test_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    code = [cell for cell in executed([SEVERAL, LINE, WRONG, SECOND, SPARKS, ROW]).cells if cell.cell_type == "code"]
    session, late, counts, chains, explained, several, line, wrong, second, sparks, row = code

    for cell in (session, late, counts, chains, explained, several, line):
        assert not [output for output in cell.outputs if output.output_type == "error"], error_of(cell)
    assert html_of(late).count("<tr>") == 9
    assert "the first 8 of more" in html_of(late)
    assert html_of(late).count("<title>") == 8 * (2 + 1)  # events, and the line of each match
    assert "".join(output.text for output in counts.outputs if output.name == "stdout").startswith("231\n+---")
    assert len(re.findall("<title>l: 2013-03-", html_of(chains))) >= 5
    assert html_of(explained).count("<svg") == 1
    assert "== physical ==" in html_of(explained)

    assert [output.output_type for output in several.outputs] == ["display_data", "execute_result"]
    assert "between" in html_of(several)
    assert "pairs" in html_of(several)
    assert several.outputs[1].data["text/plain"].endswith("\n1 row")
    (printed,) = (output for output in line.outputs if output.get("name") == "stdout")
    assert re.fullmatch(r"\d+ 1\n", printed.text)
    assert "\nFROM flights PATTERN Late l ORDER BY rowid RETURN *\n" in error_of(second)
    assert "(line 2, column 22)" in error_of(second)  # below the line of the magic

    for cell in (wrong, second, sparks):
        assert not [output for output in cell.outputs if "QueryContextLogger" in output.get("text", "")]
    said = error_of(wrong)
    assert said.startswith("[UNRESOLVED_NAME] dep_dely_min")
    assert said.endswith(f"\n{' ' * WRONG.splitlines()[2].index('dep_dely_min')}^")
    assert "Traceback" not in said
    assert "nothing" in error_of(sparks)
    assert "JVM" not in error_of(sparks)
    assert "DIVIDE_BY_ZERO" in error_of(row)
    assert "Traceback" not in error_of(row)
    assert "\tat " not in error_of(row)
