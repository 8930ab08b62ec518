"""The pages of docs/: the site names them all, their links lead somewhere, and it builds where mkdocs is installed."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cersql

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MKDOCS = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
PAGES = sorted(DOCS.rglob("*.md"))
READ = [*PAGES, *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY", "CHANGELOG"))]
LINK = re.compile(r"\[[^][]+\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    """A page without its code: `[k](a)` in a pattern is no link."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]+`", "", text)


def anchors(page: Path) -> set[str]:
    """The anchors of its headings: `## Two commands` is `two-commands`."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_the_site_names_every_page() -> None:
    _, _, nav = MKDOCS.partition("\nnav:\n")
    named = re.findall(r": (\S+\.md)$", nav.partition("\n\n")[0], re.MULTILINE)
    assert sorted(named) == [page.relative_to(DOCS).as_posix() for page in PAGES]


def test_the_front_page_names_every_other() -> None:
    linked = set(LINK.findall(prose(DOCS / "index.md")))
    assert {page.relative_to(DOCS).as_posix() for page in PAGES} - linked == {"index.md"}


def test_the_site_downloads_nothing() -> None:
    assert "font: false" in MKDOCS
    assert "://" not in MKDOCS
    assert "strict: true" in MKDOCS


@pytest.mark.parametrize("page", READ, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    wrong = []
    for link in LINK.findall(prose(page)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert not wrong


def test_the_reference_names_what_is_public() -> None:
    named = re.findall(r"^::: cersql\.(\w+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(cersql.__all__)


@pytest.mark.parametrize("name", cersql.__all__)
def test_what_is_public_has_a_docstring(name: str) -> None:
    assert getattr(cersql, name).__doc__


def examples(name: str) -> str:
    """The code in a docstring: lines that stand four spaces in."""
    doc = inspect.getdoc(getattr(cersql, name)) or ""
    return "".join(f"{line[4:]}\n" for line in doc.splitlines() if line.startswith("    "))


def test_examples_in_docstrings_are_texts_that_compile() -> None:
    schemas = {"trades": "ts TIMESTAMP, type STRING, id INT, price DOUBLE"}
    texts = [
        node.value
        for name in cersql.__all__
        for node in ast.walk(ast.parse(examples(name)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "PATTERN" in node.value
    ]
    assert len(texts) >= 8
    for text in texts:
        if text.endswith("a.prise"):
            with pytest.raises(cersql.BindError) as caught:
                cersql.compile(text, schemas)
            assert (caught.value.condition, caught.value.line, caught.value.column) == ("UNKNOWN_COLUMN", 1, 52)
        else:
            assert cersql.compile(text if text.startswith("FROM") else f"FROM trades {text}", schemas)


def test_the_picture_of_the_automaton() -> None:
    (pattern,) = re.findall(r"^`mermaid` of `(.+)`:$", (DOCS / "costs.md").read_text(encoding="utf-8"), re.MULTILINE)
    text = f"FROM flights DEFINE Late AS dep_delay_min > 60 {pattern} ORDER BY row_id RETURN *"
    drawn = cersql.compile(text, {"flights": {"row_id": "int", "dep_delay_min": "int"}}).explain("svg")
    assert (DOCS / "pictures/automaton.svg").read_text(encoding="utf-8").strip() == drawn.strip()


@pytest.mark.slow
def test_the_site_builds(tmp_path: Path) -> None:
    """As `make docs` does; skipped where its packages are not installed."""
    missing = [name for name in ("mkdocs", "material", "mkdocstrings") if not importlib.util.find_spec(name)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; make docs installs them")
    command = [sys.executable, "-P", "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, env={**os.environ}, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    for page in PAGES:
        made = (tmp_path / page.relative_to(DOCS)).with_suffix(".html").read_text(encoding="utf-8")
        assert not re.findall(r'(?:src|href)="https?://[^"]*"', made)
    assert (tmp_path / "CONTRIBUTING.html").exists()
