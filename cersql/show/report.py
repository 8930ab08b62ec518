"""A page of what was found: one file with all that it shows, readable without scripts, in a light and a dark scheme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

MOST_TEXT = 20_000  # characters of a statement

_STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1c1e21; --soft: #66707a; --rule: #d8dde2; --box: #f4f6f8;
  --bar: #1f77b4 }
@media (prefers-color-scheme: dark) {
  :root { --page: #16191d; --ink: #e3e6ea; --soft: #98a2ad; --rule: #363d45; --box: #1f242a; --bar: #4a9fdc }
}
body { margin: 2rem auto; padding: 0 1.2rem; max-width: 62rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.2rem; margin: 2.6rem 0 .6rem; padding-top: .8rem;
  border-top: 1px solid var(--rule) } h3 { font-size: 1rem; margin: 1.6rem 0 .4rem }
p { margin: .4rem 0 } .told, small { color: var(--soft) }
pre { background: var(--box); padding: .7rem .9rem; border-radius: 6px; overflow-x: auto; font-size: 13px;
  white-space: pre-wrap; overflow-wrap: anywhere }
code { font-size: 13px; overflow-wrap: anywhere } summary { cursor: pointer; color: var(--soft); margin: .4rem 0 }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: 13.5px }
th, td { padding: .28rem .9rem .28rem 0; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top }
th { color: var(--soft); font-weight: 600 }
.funnel { width: 100% } .funnel td { vertical-align: middle } .funnel th:nth-child(n+3), .number { text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap } .track { width: 45% }
.bar { background: var(--bar); height: 1.1rem; border-radius: 3px; min-width: 2px }
svg { max-width: none } svg text { fill: var(--ink) } svg polygon { fill: var(--ink) }
svg [fill="white"] { fill: var(--page) } svg [stroke="black"] { stroke: var(--ink) }
@media print { details > * { display: block } }
"""
# Whatever a name or a value of the data tries to be: this page loads nothing and runs nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Part:
    """A heading and HTML. `folded`: it is shown when its heading is clicked."""

    heading: str
    html: str
    folded: bool = False


@dataclass(frozen=True)
class Section:
    """A statement and what it gave: its title, its text if that is known, and what is shown of it."""

    title: str
    text: str | None
    parts: tuple[Part, ...]


def page(title: str, told: str, sections: Sequence[Section]) -> str:
    """The whole file. `told`: a line below the title."""
    body = "".join(map(_section, sections))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f'<body><h1>{escape(title)}</h1><p class="told">{escape(told)}</p>{body}</body></html>\n'
    )


def _section(section: Section) -> str:
    text = "" if section.text is None else f"<pre>{escape(_brief(section.text))}</pre>"
    return f"\n<section><h2>{escape(section.title)}</h2>{text}{''.join(map(_part, section.parts))}</section>"


def _part(part: Part) -> str:
    inside = f'<div class="wide">{part.html}</div>'
    if part.folded:
        return f"\n<details><summary>{escape(part.heading)}</summary>{inside}</details>"
    return f"\n<h3>{escape(part.heading)}</h3>{inside}"


def _brief(text: str) -> str:
    """Without what is blank around it, and no longer than MOST_TEXT."""
    lines = text.rstrip().splitlines()
    while lines and not lines[0].strip():
        lines.pop(0)
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    brief = "\n".join(line[indent:] for line in lines)
    return brief if len(brief) <= MOST_TEXT else f"{brief[:MOST_TEXT]} …"
