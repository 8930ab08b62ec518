"""How far starts came, as a table with a bar for each step. Plain HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Stage:
    """A prefix of a pattern: what it adds to the one before, the conditions that join there, and its starts."""

    added: str
    conditions: tuple[str, ...]
    starts: int


def funnel(stages: Sequence[Stage]) -> str:
    """Bars to the scale of the first step; beside each its starts, and their share of those of the step before."""
    first = max((stage.starts for stage in stages), default=0)
    rows = "".join(_row(k, stages, first) for k in range(len(stages)))
    head = "".join(f"<th>{text}</th>" for text in ("step", "", "starts", "of the step before"))
    return f'<table class="funnel"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _row(k: int, stages: Sequence[Stage], first: int) -> str:
    stage = stages[k]
    conditions = "".join(f"<br><small>where {escape(text)}</small>" for text in stage.conditions)
    width = 100 * stage.starts / first if first else 0.0
    before = stages[k - 1].starts if k else 0
    share = f"{100 * stage.starts / before:.1f} %" if before else "–"
    return (
        f"<tr><td><code>{escape(stage.added)}</code>{conditions}</td>"
        f'<td class="track"><div class="bar" style="width:{width:.2f}%"></div></td>'
        f'<td class="number">{stage.starts:,}</td><td class="number">{share}</td></tr>'
    )
