"""The picture: one bar a metric, on a log scale from the line where both are equal; a tick where the bar of it stands.

Two columns, because a long bar is good in one (throughput) and a short one in the other (CPU, latency, memory).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from benchmarks.report.lines import Line

SCALE = 2  # drawn twice as large, so that it is sharp on good screens
WIDTH, MARGIN, LABEL_WIDTH, FIGURE_WIDTH, LINE_HEIGHT, HEAD_HEIGHT = 1560, 28, 400, 60, 34, 96
PANEL_WIDTH = (WIDTH - 3 * MARGIN) // 2
LABEL_CHARACTERS_MAX = 68
INK, FAINT, GRID, PAPER = "#1c2430", "#8a94a3", "#e3e7ed", "#ffffff"
COLOURS = {"ok": "#1f9d6b", "SHORT": "#d9534f", "": "#7b8aa0"}
SHOWN_WITHOUT_BAR = ("MB/s", "requests/s", "p99 ms")


def draw(lines: Sequence[Line], subtitle: str, path: Path) -> None:
    shown = [line for line in lines if line.ratio is not None and _is_shown(line)]
    panels = [line for line in shown if not line.is_less_better], [line for line in shown if line.is_less_better]
    height = HEAD_HEIGHT + 40 + LINE_HEIGHT * max(1, *(len(panel) for panel in panels)) + MARGIN
    image = Image.new("RGB", (WIDTH * SCALE, height * SCALE), PAPER)
    canvas = Canvas(ImageDraw.Draw(image))
    canvas.text(MARGIN, 18, "Highwater / Apache Kafka, ratio of medians", size=24)
    canvas.text(MARGIN, 52, subtitle, size=13, colour=FAINT)
    _panel(canvas, Axis(MARGIN, 0.25, 16.0), "more is better: above 1 we lead", panels[0])
    _panel(canvas, Axis(2 * MARGIN + PANEL_WIDTH, 1 / 32, 2.0), "less is better: below 1 we lead", panels[1])
    image.save(path)


@dataclass(frozen=True, slots=True)
class Axis:
    """A panel's left edge, and the ratios that its log scale begins and ends with; what lies outside is cut off."""

    left: int
    lowest: float
    highest: float

    def x(self, ratio: float) -> float:
        kept = min(max(ratio, self.lowest), self.highest)
        share = math.log(kept / self.lowest) / math.log(self.highest / self.lowest)
        return self.left + LABEL_WIDTH + FIGURE_WIDTH + (PANEL_WIDTH - LABEL_WIDTH - FIGURE_WIDTH) * share

    def marks(self) -> list[float]:
        return [2.0**power for power in range(-5, 5) if self.lowest <= 2.0**power <= self.highest]


def _is_shown(line: Line) -> bool:
    has_ratio_bar = line.bar is not None and line.bar.is_ratio
    return (has_ratio_bar or line.metric in SHOWN_WITHOUT_BAR) and bool(line.ratio)


def _panel(canvas: Canvas, axis: Axis, title: str, lines: Sequence[Line]) -> None:
    top, bottom = HEAD_HEIGHT + 34, HEAD_HEIGHT + 34 + LINE_HEIGHT * len(lines)
    canvas.text(axis.left, HEAD_HEIGHT - 8, title, size=15)
    for mark in axis.marks():
        x = axis.x(mark)
        canvas.line(x, top - 4, x, bottom, colour=INK if mark == 1.0 else GRID)
        canvas.text(x, top - 20, f"{mark:g}" if mark >= 1 else f"1/{1 / mark:g}", size=11, colour=FAINT, anchor="ma")
    for number, line in enumerate(lines):
        _bar(canvas, axis, top + number * LINE_HEIGHT, line)


def _bar(canvas: Canvas, axis: Axis, top: int, line: Line) -> None:
    assert line.ratio is not None
    title = line.row.title
    label = title if len(title) <= LABEL_CHARACTERS_MAX else title[: LABEL_CHARACTERS_MAX - 2] + "..."
    canvas.text(axis.left, top + 4, label, size=11)
    canvas.text(axis.left, top + 18, line.metric, size=10, colour=FAINT)
    colour = COLOURS.get(line.verdict, COLOURS[""])
    canvas.text(axis.left + LABEL_WIDTH + FIGURE_WIDTH - 16, top + 16, f"{line.ratio:.2f}", size=13, anchor="rm")
    one, end = axis.x(1.0), axis.x(line.ratio)
    canvas.box(min(one, end), top + 7, max(one, end), top + 26, colour)
    if line.bar is not None and line.bar.is_ratio:
        x = axis.x(line.bar.limit)
        canvas.line(x, top + 2, x, top + 31, colour=INK, width=3)


class Canvas:
    def __init__(self, pen: ImageDraw.ImageDraw) -> None:
        self._pen = pen

    def text(self, x: float, y: float, text: str, *, size: int, colour: str = INK, anchor: str = "la") -> None:
        font = ImageFont.load_default(size * SCALE)
        self._pen.text((x * SCALE, y * SCALE), text, fill=colour, font=font, anchor=anchor)

    def line(self, x: float, y: float, end_x: float, end_y: float, *, colour: str, width: int = 1) -> None:
        self._pen.line((x * SCALE, y * SCALE, end_x * SCALE, end_y * SCALE), fill=colour, width=width * SCALE)

    def box(self, x: float, y: float, end_x: float, end_y: float, colour: str) -> None:
        box = (x * SCALE, y * SCALE, max(end_x, x + 1) * SCALE, end_y * SCALE)
        self._pen.rounded_rectangle(box, radius=3 * SCALE, fill=colour)
