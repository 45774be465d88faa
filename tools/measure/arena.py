"""How many bytes of activations are alive at each step of a run, with each preference?

    python tools/measure/arena.py MODEL.pte ... [--plot CHART.svg]

A line for each program: steps, and the most bytes that are alive at once, with each value of
`prefer`. The picture has a panel for each program, from the first step to the last. No program is
loaded: these are the storages of command lists for the device, as planned.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import vkrt
from vkrt.compiler.compiler import target_on
from vkrt.compiler.description import Description
from vkrt.lowering.lowering import lower
from vkrt.plan.options import LoadOptions
from vkrt.plan.scratch import alive
from vkrt.runtime.open_device import OpenDevice
from vkrt.work.option_values import PREFERENCES

# Of a panel, in units of the picture
WIDTH, HEIGHT, EDGE = 380, 180, 44
COLORS = dict(zip(PREFERENCES, ("#c0504d", "#2f6db5", "#6a9a3b"), strict=True))

# Bytes at each step, by what is preferred
Curves = dict[str, list[int]]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.pte")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="an SVG")
    parser.add_argument("--device", help="as for vkrt.load")
    options = parser.parse_args()
    with vkrt.Device.open(options.device) as device:
        found = {path.stem: curves(path, OpenDevice(device)) for path in options.models}
    for name, drawn in found.items():
        print(name, "; ".join(f"{prefer}: {len(values)} steps, {max(values):,} bytes"
                              for prefer, values in drawn.items()))
    if options.plot:
        options.plot.write_text(picture(found), encoding="utf-8")
    return 0


def curves(path: Path, device: OpenDevice) -> Curves:
    """Bytes of activations at the steps of a program's only method, or of "forward"."""
    with closing(Description(str(path))) as description:
        names = description.method_names
        graph = description.graph("forward" if "forward" in names else names[0])
        return {prefer: alive(lower(graph, target_on(device, LoadOptions(prefer=prefer))))
                for prefer in PREFERENCES}


def picture(found: dict[str, Curves]) -> str:
    """The panels side by side, as SVG."""
    panels = "".join(f'<g transform="translate({EDGE + number * (WIDTH + EDGE)},{EDGE})">'
                     f"{panel(name, drawn)}</g>\n"
                     for number, (name, drawn) in enumerate(found.items()))
    width, height = EDGE + len(found) * (WIDTH + EDGE), HEIGHT + 2 * EDGE
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'font-family="sans-serif" font-size="12">\n'
            f'<rect width="{width}" height="{height}" fill="white"/>\n{panels}</svg>\n')


def panel(name: str, drawn: Curves) -> str:
    """One program's curves, with the most of each written beside it."""
    most = max(map(max, drawn.values()))
    parts = [f'<text y="-24" font-weight="bold">{name}</text>',
             f'<path d="M0,0V{HEIGHT}H{WIDTH}" fill="none" stroke="black"/>',
             f'<text x="{WIDTH}" y="{HEIGHT + 18}" text-anchor="end">steps of a run</text>']
    for number, (prefer, values) in enumerate(drawn.items()):
        color = COLORS[prefer]
        parts.append(f'<path d="{curve(values, most)}" fill="none" stroke="{color}"/>')
        parts.append(f'<text x="{WIDTH}" y="{number * 16 - 24}" text-anchor="end" fill="{color}">'
                     f"{prefer}: {max(values) / 1e6:.2f} MB</text>")
    return "\n".join(parts)


def curve(values: Sequence[int], most: int) -> str:
    """A line with a step for each value, as wide as the panel."""
    each = WIDTH / len(values)
    points = [f"{index * each:.1f},{HEIGHT * (1 - value / most):.1f}H{(index + 1) * each:.1f}"
              for index, value in enumerate(values)]
    return "M" + "L".join(points)


if __name__ == "__main__":
    raise SystemExit(main())
