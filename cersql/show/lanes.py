"""When matches happened: a lane for each key, all on one axis of time."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from html import escape
from typing import Any

from cersql.show.html import Times, colors, legend, line_of, number_of, picture, shown

MOST_LANES = 40
MOST_LETTERS = 26  # of a key
_LABEL, _WIDTH, _ROW, _TOP = 200, 660, 22, 34


def lanes(rows: Sequence[Sequence[Any]], times: Times, keys: Sequence[int]) -> str:
    """A lane for each value of the columns `keys`, in order of appearance, without any one lane for all; nothing where
    the rows hold no times. At most MOST_LANES, and below them how many are left out."""
    by_key: dict[str, list[Sequence[Any]]] = {}
    for row in rows:
        by_key.setdefault(", ".join(shown(row[i]) for i in keys), []).append(row)
    drawn = dict(list(by_key.items())[:MOST_LANES])
    lines = {key: [line_of(row, times, len(rows)) for row in own] for key, own in drawn.items()}
    every = [time for own in lines.values() for line in own for time in line.every]
    if not every:
        return ""
    first, last = min(every, key=number_of), max(every, key=number_of)
    begin, length = number_of(first), number_of(last) - number_of(first)
    scale = _WIDTH / length if length > 0 else 0.0
    color = colors(times)
    parts, width = legend(color, _LABEL)
    y = float(_TOP)
    for key, own in lines.items():
        short = key if len(key) <= MOST_LETTERS else key[: MOST_LETTERS - 1] + "…"
        parts.append(
            f'<text x="{_LABEL - 14}" y="{y + 4}" text-anchor="end">{escape(short)}<title>{escape(key)}</title></text>'
        )
        parts.append(f'<line x1="{_LABEL}" y1="{y}" x2="{_LABEL + _WIDTH}" y2="{y}" stroke="#8885"/>')
        for line in own:
            if not line.every:
                continue
            at = [_LABEL + (number_of(time) - begin) * scale for time in line.every]
            title = f"<title>{escape(line.title)}</title>"
            parts.append(
                f'<line x1="{min(at):.1f}" y1="{y}" x2="{max(at):.1f}" y2="{y}" stroke="#8888" stroke-width="7" '
                f'stroke-linecap="round">{title}</line>'
            )
            for name, time in line.points:
                x = _LABEL + (number_of(time) - begin) * scale
                parts.append(
                    f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="{color[name]}">'
                    f"<title>{escape(f'{name}: {shown(time)}')}</title></circle>"
                )
        y += _ROW
    parts.append(f'<text x="{_LABEL}" y="{y + 4}">{escape(_readable(first))}</text>')
    if length > 0:
        parts.append(f'<text x="{_LABEL + _WIDTH}" y="{y + 4}" text-anchor="end">{escape(_readable(last))}</text>')
    left_out = len(by_key) - len(drawn)
    note = f"<p>{left_out} more key{'' if left_out == 1 else 's'} among them, not drawn.</p>" if left_out else ""
    return picture(max(_LABEL + _WIDTH + 20, width), y + 14, parts) + note


def _readable(time: Any) -> str:
    return shown(time.replace(microsecond=0) if isinstance(time, datetime.datetime) else time)
