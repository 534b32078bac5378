"""Draw screens of a terminal as SVG: one of them, or several in turn as an animation.

The animation is a filmstrip that CSS moves by one screen at a time. A row that occurs more than
once is stored once.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Row = tuple[tuple[str, int], ...]
"""Text and highlight id of each cell."""

CELL_W, CELL_H, FONT_SIZE, MARGIN = 8.4, 18, 14, 14
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


@dataclass(frozen=True, slots=True)
class Frame:
    """What a screen showed.

    Attributes:
        cursor: row and column.
        duration_s: how long.
    """

    rows: tuple[Row, ...]
    cursor: tuple[int, int]
    duration_s: float = 0.0


def draw(frames: Sequence[Frame], looks: dict[int, dict[str, Any]], note: str) -> str:
    """Return an SVG of one frame, or an endless animation of several.

    Args:
        frames: all of one size.
        looks: colours and styles by highlight id, as in Neovim's `hl_attr_define`.
        note: a comment at the start of the file.
    """
    height, width = len(frames[0].rows), len(frames[0].rows[0])
    size = (2 * MARGIN + width * CELL_W, 2 * MARGIN + height * CELL_H)
    numbers: dict[Row, int] = {}
    for row in itertools.chain.from_iterable(frame.rows for frame in frames):
        numbers.setdefault(row, len(numbers))
    defs = [f'<g id="r{n}">{"".join(_row(row, looks))}</g>' for row, n in numbers.items()]
    strip = [
        f'<g transform="translate({number * size[0]:.1f} 0)">{_frame(frame, numbers)}</g>'
        for number, frame in enumerate(frames)
    ]
    background, foreground = _color(looks[0], "background"), _color(looks[0], "foreground")
    style = f"text {{ font-family: {FONT}; font-size: {FONT_SIZE}px; white-space: pre }}"
    if len(frames) > 1:
        style += _animation(frames, size[0])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]:.0f} {size[1]:.0f}"'
        f' width="{size[0]:.0f}" height="{size[1]:.0f}" fill="{foreground}">\n'
        f"<!-- {note} -->\n<style>{style}</style>\n<defs>\n" + "\n".join(defs) + "\n</defs>\n"
        f'<rect width="100%" height="100%" rx="8" fill="{background}"/>\n'
        '<g class="strip">\n' + "\n".join(strip) + "\n</g>\n</svg>\n"
    )


def _animation(frames: Sequence[Frame], width: float) -> str:
    """Return the CSS that moves the strip."""
    total_s = sum(frame.duration_s for frame in frames)
    begins = itertools.accumulate((frame.duration_s for frame in frames[:-1]), initial=0.0)
    steps = [
        f"{100 * begin_s / total_s:.2f}% {{ transform: translateX({-number * width:.1f}px) }}"
        for number, begin_s in enumerate(begins)
    ]
    return (
        f" .strip {{ animation: play {total_s:.2f}s steps(1, end) infinite }}"
        f" @keyframes play {{ {' '.join(steps)} }}"
    )


def _frame(frame: Frame, numbers: dict[Row, int]) -> str:
    rows = [
        f'<use href="#r{numbers[row]}" x="{MARGIN}" y="{MARGIN + at * CELL_H}"/>'
        for at, row in enumerate(frame.rows)
    ]
    x, y = MARGIN + frame.cursor[1] * CELL_W, MARGIN + frame.cursor[0] * CELL_H
    cursor = f'<rect x="{x:.1f}" y="{y}" width="{CELL_W}" height="{CELL_H}" fill-opacity=".5"/>'
    return "".join(rows) + cursor


def _row(row: Row, looks: dict[int, dict[str, Any]]) -> Iterator[str]:
    """Yield the shapes of a row whose upper left corner is at 0, 0."""
    col = 0
    for number, group in itertools.groupby(row, key=lambda cell: cell[1]):
        cells = [text for text, _ in group]
        look = looks.get(number, {})
        front, back = _color(look, "foreground"), _color(look, "background")
        if look.get("reverse"):
            default = looks[0]
            front = back or _color(default, "background")
            back = _color(look, "foreground") or _color(default, "foreground")
        x, width, text = col * CELL_W, len(cells) * CELL_W, "".join(cells)
        col += len(cells)
        if back:
            yield f'<rect x="{x:.1f}" width="{width:.1f}" height="{CELL_H}" fill="{back}"/>'
        if not text.strip():
            continue
        style = f' fill="{front}"' if front else ""
        style += ' font-weight="bold"' if look.get("bold") else ""
        style += ' font-style="italic"' if look.get("italic") else ""
        style += ' text-decoration="underline"' if look.get("underline") else ""
        style += ' text-decoration="line-through"' if look.get("strikethrough") else ""
        lead = len(text) - len(text.lstrip())
        shown = text.strip()
        yield (
            f'<text x="{x + lead * CELL_W:.1f}" y="{CELL_H - 5}"'
            f' textLength="{len(shown) * CELL_W:.1f}"{style}>{html.escape(shown)}</text>'
        )


def _color(look: dict[str, Any], name: str) -> str:
    value = look.get(name, -1)
    return f"#{value:06x}" if value >= 0 else ""
