"""Line charts with Pillow, which is all the tools need: panels with axes, areas, lines, a legend.

    picture = Picture(900, 400, "What it shows")
    panel = Panel(picture, (0, 40, 900, 400), x=(0, 200), y=(0, 600), x_label="MB", y_label="ms")
    panel.line([(20, 550), (100, 490)], BLUE)
    picture.legend([("with look-ahead", BLUE)], 30)
    picture.save("chart.png")
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

# Told apart by the colour-blind too (Okabe and Ito).
BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#777777"
LIGHT_BLUE, LIGHT_ORANGE = "#bfdcec", "#f6d6bf"
BLACK, RULE = "#222222", "#dddddd"

# Drawn so many times larger and scaled down, which smooths lines and text.
SCALE = 2
COLOURS = 64
TEXT, TITLE = 12, 15

Point = tuple[float, float]


class Picture:
    """A white picture to draw panels on; all measures are in its pixels.

    Args:
        width, height: in pixels.
        title: the line at its top.
    """

    def __init__(self, width: int, height: int, title: str):
        self.width, self.height = width, height
        self.image = Image.new("RGB", (width * SCALE, height * SCALE), "white")
        self.draw = ImageDraw.Draw(self.image)
        self.text(10, 8, title, size=TITLE)

    def text(self, x: float, y: float, text: str, *, size: int = TEXT, anchor: str = "la",
             colour: str = BLACK) -> float:
        """Writes a line; returns where it ends. `anchor` as in Pillow: "la" is left, top."""
        font = ImageFont.load_default(size * SCALE)
        self.draw.text((x * SCALE, y * SCALE), text, colour, font, anchor)
        return x + self.draw.textlength(text, font) / SCALE

    def stroke(self, points: Sequence[Point], colour: str, width: float) -> None:
        """A line through points of the picture."""
        self.draw.line([(x * SCALE, y * SCALE) for x, y in points], colour,
                       round(width * SCALE), "curve")

    def fill(self, points: Sequence[Point], colour: str) -> None:
        """A filled polygon through points of the picture."""
        self.draw.polygon([(x * SCALE, y * SCALE) for x, y in points], colour)

    def legend(self, entries: Sequence[tuple[str, str]], y: float) -> None:
        """Names with the colours of their lines and areas, in a row."""
        x: float = 10
        for name, colour in entries:
            self.fill([(x, y + 3), (x + 14, y + 3), (x + 14, y + 11), (x, y + 11)], colour)
            x = self.text(x + 19, y, name) + 18

    def save(self, path: str | Path) -> int:
        """Writes a PNG of few colours; returns its bytes."""
        small = self.image.resize((self.width, self.height), Image.Resampling.LANCZOS)
        small.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
        return Path(path).stat().st_size


class Panel:
    """Axes in a part of a picture, and what is drawn between them.

    Args:
        picture: to draw on.
        box: (left, top, right, bottom), labels included.
        x, y: (smallest, largest) value of each axis.
        title: above the panel, on the left.
        x_label, y_label: names and units, beside the last tick and above the axis.
    """

    def __init__(self, picture: Picture, box: tuple[float, float, float, float], *, x: Point,
                 y: Point, title: str = "", x_label: str = "", y_label: str = ""):
        left, top, right, bottom = box
        self.picture, self.x, self.y = picture, x, y
        self.left, self.right = left + 46, right - 14
        self.top, self.bottom = top + 38, bottom - 36
        picture.text(left + 8, top, title, size=TEXT + 1)
        picture.text(left + 8, top + 18, y_label, colour=GREY)
        picture.text((self.left + self.right) / 2, self.bottom + 20, x_label, anchor="ma",
                     colour=GREY)
        for value in ticks(*y, (self.bottom - self.top) / 36):
            _, height = self.place((x[0], value))
            picture.stroke([(self.left, height), (self.right, height)], RULE, 1)
            picture.text(self.left - 5, height, f"{value:g}", anchor="rm", colour=GREY)
        for value in ticks(*x, (self.right - self.left) / 60):
            across, _ = self.place((value, y[0]))
            picture.stroke([(across, self.bottom), (across, self.bottom + 4)], GREY, 1)
            picture.text(across, self.bottom + 6, f"{value:g}", anchor="ma", colour=GREY)

    def place(self, point: Point) -> Point:
        """Where values lie in the picture; what is beyond an axis lies at its end."""
        across, up = ((min(max(value, low), high) - low) / ((high - low) or 1)
                      for value, (low, high) in zip(point, (self.x, self.y)))
        return (self.left + across * (self.right - self.left),
                self.bottom - up * (self.bottom - self.top))

    def line(self, points: Sequence[Point], colour: str, *, width: float = 2,
             marks: bool = False) -> None:
        """Straight lines from value to value, with a dot on each if asked for."""
        placed = [self.place(point) for point in points]
        if len(placed) > 1:
            self.picture.stroke(placed, colour, width)
        for x, y in placed if marks else ():
            self.picture.fill([(x + 3.5 * math.cos(a), y + 3.5 * math.sin(a))
                               for a in (k * math.pi / 8 for k in range(16))], colour)

    def steps(self, points: Sequence[Point], colour: str, *, width: float = 2) -> None:
        """A line that keeps each value until the next one."""
        corners = [corner for (_, before), (x, now) in zip(points, points[1:])
                   for corner in ((x, before), (x, now))]
        self.line([*points[:1], *corners], colour, width=width)

    def area(self, points: Sequence[Point], colour: str, base: Sequence[Point] = ()) -> None:
        """The area from the base (by default the axis) up to a line."""
        if points:
            floor = base or [(points[0][0], self.y[0]), (points[-1][0], self.y[0])]
            self.picture.fill([self.place(p) for p in (*points, *reversed(floor))], colour)

    def mark(self, x: float, text: str) -> None:
        """A thin line across the panel with a word beside its top, on the side with more room."""
        across, _ = self.place((x, self.y[0]))
        self.picture.stroke([(across, self.top), (across, self.bottom)], GREY, 1)
        right = across > (self.left + self.right) / 2
        self.picture.text(across + (-4 if right else 4), self.top, text,
                          anchor="ra" if right else "la", colour=GREY)


def ticks(low: float, high: float, count: float) -> list[float]:
    """About `count` round numbers between two."""
    span = (high - low) or 1
    rough = span / max(count, 1)
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def rounded_up(value: float) -> float:
    """The end of an axis that reaches a value: a little more, and a round number."""
    if value <= 0:
        return 1.0
    power = 10 ** math.floor(math.log10(value))
    return next(power * k for k in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12)
                if power * k >= value * 1.02)
