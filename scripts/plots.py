"""Draw the plots of the documentation from data in `bench/results`: `make plots`.

The data were printed by `bench typing --json`, which then typed with llama.vim too, and by `bench
index --json`; the files keep only what is drawn. The plots follow the reader's choice of a light or
dark background.
"""

from __future__ import annotations

import html
import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "doc/pictures"
LATENCY = "2026-11-23-typing-peer-cpu"
GROWTH = "2026-11-23-index-growth-cpu"
"""What is drawn: NAME.json in `bench/results`. NAME.md describes the run."""

WIDTH, HEIGHT, TOP, BOTTOM = 760, 360, 92, 302
STYLE = """
text { font: 13px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #24292f }
text.title { font-size: 16px; font-weight: 600 }
.ground { fill: #ffffff; stroke: #d0d7de }
.grid { stroke: #d8dee4 }
.line { fill: none; stroke: #0969da; stroke-width: 2.5; stroke-linejoin: round }
.peer { stroke: #bc4c00; stroke-dasharray: 7 4 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .ground { fill: #0d1117; stroke: #30363d }
  .grid { stroke: #2b323b }
  .line { stroke: #58a6ff }
  .peer { stroke: #f0883e }
}
"""
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from its first tick to its last; `ticks` are values, ascending, with labels."""

    title: str
    ticks: Mapping[float, str]
    is_log: bool = False

    def at(self, value: float, begin: float, end: float) -> float:
        """Return where a value is if the axis goes from one pixel to another."""
        low, high, value = (
            math.log(number) if self.is_log else number
            for number in (min(self.ticks), max(self.ticks), value)
        )
        return round(begin + (value - low) / (high - low) * (end - begin), 1)


def even_axis(title: str, high: float) -> Axis:
    """Return an axis from 0 to at least `high`, with at most five round steps."""
    steps = (factor * 10**power for power in range(-3, 9) for factor in (1, 2, 5))
    step = next(step for step in steps if step * 5 >= high)
    ticks = (number * step for number in range(math.ceil(high / step) + 1))
    return Axis(title, {tick: f"{tick:,g}" for tick in ticks})


def panel(
    x_axis: Axis, y_axis: Axis, lines: Mapping[str, Points], left: float, right: float
) -> Iterator[str]:
    """Yield two axes with their grid, and the lines by their CSS classes."""
    yield _text(left - 44, TOP - 14, y_axis.title)
    yield _text((left + right) / 2, BOTTOM + 42, x_axis.title, "middle")
    for value, label in y_axis.ticks.items():
        y = y_axis.at(value, BOTTOM, TOP)
        yield f'<path class="grid" d="M{left} {y}H{right}"/>' + _text(left - 8, y + 4, label, "end")
    for value, label in x_axis.ticks.items():
        x = x_axis.at(value, left, right)
        yield f'<path class="grid" d="M{x} {TOP}V{BOTTOM}"/>'
        yield _text(x, BOTTOM + 20, label, "middle")
    for css, points in lines.items():
        places = (f"{x_axis.at(x, left, right)} {y_axis.at(y, BOTTOM, TOP)}" for x, y in points)
        yield f'<path class="{css}" d="M{"L".join(places)}"/>'


def latency(data: Mapping[str, Any]) -> str:
    """Draw which share of the keys had a valid suggestion after what time."""
    ticks = {0.5: "", 1: "1 ms", 10: "10 ms", 100: "100 ms", 1e3: "1 s", 1e4: "10 s"}
    first, last = min(ticks), max(ticks)
    legend, lines = list[str](), dict[str, Points]()
    for name, css, run, left in (
        ("lcursor", "line", data, 26),
        (data["peer"]["name"], "line peer", data["peer"], WIDTH / 2),
    ):
        keys = [ms for trial in run["trials"] for ms in trial["ghost_ms"]]
        found = sorted(ms for ms in keys if ms is not None)
        steps = [(first, 0.0)]
        for count, ms in enumerate((min(max(ms, first), last) for ms in found), 1):
            steps += [(ms, steps[-1][1]), (ms, 100 * count / len(keys))]
        lines[css] = [*steps, (last, steps[-1][1])]
        ms = statistics.median(found)
        median = f"{ms:.1f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"
        caption = f"{name}: {len(found)} of {len(keys)} keys, median {median}"
        legend += [f'<path class="{css}" d="M{left} 52h34"/>', _text(left + 44, 56, caption)]
    x_axis = Axis("time after the key", ticks, is_log=True)
    y_axis = Axis("% of all keys typed", {value: str(value) for value in range(0, 101, 25)})
    shapes = panel(x_axis, y_axis, lines, left=70, right=WIDTH - 40)
    return _svg("From a key to the first valid suggestion", [*legend, *shapes])


def growth(data: Mapping[str, Any]) -> str:
    """Draw the time and the size of an index by the number of its files."""
    files, times_s, sizes = zip(*data["growth"], strict=True)
    sizes_mb = [size / 1e6 for size in sizes]
    shapes = list[str]()
    for title, values, left, right in (
        ("seconds until searchable by words", times_s, 70, WIDTH / 2 - 30),
        ("MB on disk", sizes_mb, WIDTH / 2 + 60, WIDTH - 40),
    ):
        axes = even_axis("files", max(files)), even_axis(title, max(values))
        shapes += panel(*axes, {"line": [*zip(files, values, strict=True)]}, left, right)
    return _svg("Growth of an index", shapes)


def _text(x: float, y: float, text: str, anchor: str = "start", css: str = "") -> str:
    css = f' class="{css}"' if css else ""
    return f'<text{css} x="{x}" y="{y}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _svg(title: str, shapes: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" role="img">\n<title>{html.escape(title)}</title>\n'
        f'<style>{STYLE}</style>\n<rect class="ground" x=".5" y=".5" width="{WIDTH - 1}"'
        f' height="{HEIGHT - 1}" rx="8"/>\n{_text(26, 32, title, css="title")}\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def plots() -> dict[Path, str]:
    """Return the text of each plot by its file."""
    drawn = {"latency": (latency, LATENCY), "index-growth": (growth, GROWTH)}
    return {
        FOLDER / f"{name}.svg": draw(json.loads((ROOT / f"bench/results/{data}.json").read_text()))
        for name, (draw, data) in drawn.items()
    }


if __name__ == "__main__":
    for path, text in plots().items():
        path.write_text(text)
        print(path.relative_to(ROOT))
