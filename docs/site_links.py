"""What the site takes from outside docs/: each file there that a page links to goes along, under its own path.

A page in docs/ links to `../CONTRIBUTING.md`, which is right where the Markdown is read in the repository. On the site
there is nothing outside docs/, so the file is put beside the pages and the link becomes `CONTRIBUTING.md`. A link to a
folder, `../tests/bench`, becomes its text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[([^][]+)\]\(\.\./([^)#\s]+)(#[^)\s]*)?\)")
NOT_IN_NAV = "---\nsearch: {exclude: true}\n---\n"


def outside(markdown: str) -> list[str]:
    """The paths from the root that a page links to: `["CONTRIBUTING.md", "tests/bench"]`."""
    return [path for _, path, _ in LINK.findall(markdown)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the files that pages link to. The first page that is added can link to more."""
    from mkdocs.structure.files import File, InclusionLevel

    todo = [path for page in files.documentation_pages() for path in outside(page.content_string)]
    for path in dict.fromkeys(todo):
        if (ROOT / path).is_file():
            # Not in the navigation, on purpose.
            files.append(File(path, str(ROOT), config.site_dir, False, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links to files outside docs/ lead to their copies on the site."""
    up = "../" * page.file.src_uri.count("/")

    def copied(link: re.Match[str]) -> str:
        text, path, anchor = link.groups()
        return f"[{text}]({up}{path}{anchor or ''})" if (ROOT / path).is_file() else text

    return LINK.sub(copied, markdown)
