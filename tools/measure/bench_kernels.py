"""How fast is each kernel of products and convolutions, beside what the driver's arithmetic allows?

    python tools/measure/bench_kernels.py [--only WORDS] [--json FILE]
    python tools/measure/bench_kernels.py --tables BEFORE.json AFTER.json --peak GFLOPS

A program of one operator is made for each size, of five that networks have, and runs with whatever
kernel the driver's profile chooses for it. Its time is what its kernels take on the device, or
their share of the CPU time of a run, whichever is less: other work on the machine makes the first
longer for long kernels and the second for short ones. The rest of a run brings inputs and outputs
into layout. Operations count as the operator has them, whatever Winograd's transforms spare. All
weights are 0. A JSON file that is there already is measured into: each figure is the least of all,
of processes of two trees in turns. lavapipe has one thread, and all figures are of one core.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from vkrt.graph.graph import Graph, Node
from vkrt.memory.source import Source
from vkrt.method.method import Method
from vkrt.ops.flops import multiply_adds
from vkrt.ops.host import run as host
from vkrt.ops.registry import infer
from vkrt.plan.options import LoadOptions
from vkrt.report.columns import columns
from vkrt.vk.device import Device
from vkrt.work.tensor import Constant, Tensor

ZEROS = bytes(64 << 20)
# How long a size is measured at least, in CPU seconds, and how often at least
SECONDS, RUNS = 0.15, 5
# lavapipe's on the Zen 3 core of tools/README.md: products and sums in registers, never fused
DEFAULT_PEAK = 60.0
# How often the steps of a size are timed
PROFILES = 8
# How the kernels begin that only bring operands into another layout
LAYOUT = ("copy", "pad")


class Maker:
    """A program of one operator."""

    def __init__(self) -> None:
        self.inputs: list[Tensor] = []
        # Multiplications with their additions, of operators that do not say it themselves
        self.work: int | None = None

    def input(self, *sizes: int, dtype: str = "float32") -> Tensor:
        self.inputs.append(Tensor(sizes, dtype))
        return self.inputs[-1]

    def weight(self, *sizes: int, dtype: str = "float32") -> Tensor:
        nbytes = int(np.prod(sizes)) * np.dtype(dtype).itemsize
        return Tensor(sizes, dtype, constant=Constant(0, nbytes, dtype))

    def graph(self, op: str, *args: Any) -> Graph:
        sizes, = infer(op, args)
        out = Tensor(tuple(sizes), self.inputs[0].dtype)
        return Graph("kernel", self.inputs, [out], [Node(op, args, (out,), "0")]).finish()


def convolved(make: Maker, x: Tensor, weight: Tensor, stride: int, padding: int,
              is_transposed: bool = False, groups: int = 1) -> Graph:
    """The same stride and padding in all dimensions."""
    each = len(x.sizes) - 2
    return make.graph("aten.convolution.default", x, weight, None, [stride] * each,
                      [padding] * each, [1] * each, is_transposed, [0] * each, groups)


def convolution(make: Maker, source: int, channels: int, side: int, kernel: int, stride: int = 1,
                groups: int = 1) -> Graph:
    return convolved(make, make.input(1, source, side, side),
                     make.weight(channels, source // groups, kernel, kernel), stride, kernel // 2,
                     groups=groups)


def transposed(make: Maker, source: int, channels: int, side: int, kernel: int) -> Graph:
    """To a picture of twice the side."""
    return convolved(make, make.input(1, source, side, side),
                     make.weight(source, channels, kernel, kernel), 2, kernel // 2 - 1, True)


def volume(make: Maker, source: int, channels: int, frames: int, side: int) -> Graph:
    return convolved(make, make.input(1, source, frames, side, side),
                     make.weight(channels, source, 3, 3, 3), 1, 1)


def linear(make: Maker, rows: int, depth: int, width: int) -> Graph:
    return make.graph("aten.linear.default", make.input(rows, depth), make.weight(width, depth),
                      None)


def product(make: Maker, count: int, rows: int, depth: int, width: int) -> Graph:
    """Of two results of other operators."""
    return make.graph("aten.bmm.default", make.input(count, rows, depth),
                      make.input(count, depth, width))


def linear_int8(make: Maker, rows: int, depth: int, width: int) -> Graph:
    """Floats by 8-bit weights."""
    return make.graph("aten._weight_int8pack_mm.default", make.input(rows, depth),
                      make.weight(width, depth, dtype="int8"), make.weight(width))


def linear_int4(make: Maker, rows: int, depth: int, width: int) -> Graph:
    """Floats by 4-bit weights in groups of 32."""
    return make.graph("et_vk.linear_q4gsw.default", make.input(rows, depth),
                      make.weight(width, depth // 2, dtype="uint8"),
                      make.weight(depth // 32, width), 32, None)


def quantized(make: Maker, x: Tensor, channels: int, depth: int) -> tuple[Any, ...]:
    """The arguments of an operator of 8-bit numbers up to its bias."""
    return (x, 0.03, 5, make.weight(channels, depth, dtype="int8"),
            make.weight(channels, dtype="int32"), make.weight(channels), 0.01, 7,
            make.weight(channels))


def convolution_q8(make: Maker, source: int, channels: int, side: int, kernel: int) -> Graph:
    x = make.input(1, source, side, side, dtype="int8")
    return make.graph("et_vk.q8ta_conv2d.default",
                      *quantized(make, x, channels, source * kernel ** 2), [kernel] * 2, [1, 1],
                      [kernel // 2] * 2, [1, 1], 1, "none")


def linear_q8(make: Maker, rows: int, depth: int, width: int) -> Graph:
    x = make.input(rows, depth, dtype="int8")
    return make.graph("et_vk.q8ta_linear.default", *quantized(make, x, width, depth), "none")


def attention(make: Maker, queries: int, rows: int) -> Graph:
    """The last queries over a cache of so many rows, of 9 heads that share 3 of the cache's."""
    make.work = 2 * 9 * 64 * sum(range(rows - queries + 1, rows + 1))
    return make.graph("llama.custom_sdpa.default", make.input(1, queries, 9, 64),
                      *(make.input(1, rows, 3, 64) for _ in range(2)), rows - queries, None, 0.0,
                      True, None)


ROWS = ((16, 576, 576), (64, 576, 1536), (197, 192, 768), (128, 768, 768), (128, 768, 3072))
ROW = ((1, 576, 576), (1, 576, 1536), (1, 1280, 1000), (1, 2048, 2048), (1, 2048, 5632))
DENSE = ((16, 16, 32, 3), (512, 512, 7, 3), (256, 256, 14, 3), (128, 128, 28, 3), (64, 64, 56, 3))
POINTWISE = ((64, 384, 14, 1), (960, 160, 7, 1), (24, 144, 56, 1), (256, 64, 56, 1),
             (512, 1024, 14, 1))
STRIDED = ((3, 32, 224, 3, 2), (256, 512, 14, 3, 2), (128, 256, 28, 3, 2), (64, 128, 56, 3, 2),
           (3, 64, 224, 7, 2))
# name -> what makes the program, and five sizes of MobileNets, ResNets, a ResNeXt, a U-Net,
# an R3D, ViT-tiny, BERT, SmolLM and TinyLlama; with Winograd's method where the name says so
FAMILIES: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "convolution 1x1": (convolution, POINTWISE),
    "convolution 3x3": (convolution, DENSE),
    "convolution 3x3, Winograd": (convolution, DENSE),
    "convolution, stride 2": (convolution, STRIDED),
    "depthwise 3x3": (convolution, tuple((c, c, side, 3, 1, c) for c, side in (
        (960, 7), (576, 14), (192, 28), (144, 56), (32, 112)))),
    "depthwise 5x5": (convolution, tuple((c, c, side, 5, 1, c) for c, side in (
        (960, 7), (480, 14), (672, 14), (120, 28), (72, 56)))),
    "grouped 3x3": (convolution, tuple((c, c, side, 3, 1, groups) for c, side, groups in (
        (64, 28, 32), (1024, 7, 32), (512, 14, 32), (256, 28, 32), (128, 56, 32)))),
    "transposed": (transposed, ((64, 32, 14, 2), (512, 256, 7, 2), (128, 64, 56, 2),
                                (64, 32, 56, 4), (256, 128, 14, 4))),
    "convolution 3x3x3": (volume, ((8, 8, 4, 14), (16, 16, 4, 14), (256, 256, 2, 7),
                                   (16, 16, 8, 28), (64, 64, 4, 14))),
    "linear": (linear, ROWS),
    "linear, a row": (linear, ROW),
    "product of results": (product, (
        (3, 64, 64, 64), (3, 197, 64, 197), (3, 197, 197, 64), (12, 128, 64, 128),
        (12, 384, 64, 384))),
    "linear, 8-bit weights": (linear_int8, ROWS),
    "linear, 8-bit weights, a row": (linear_int8, ROW),
    "linear, 4-bit weights": (linear_int4, ROWS),
    "linear, 4-bit weights, a row": (linear_int4, ROW),
    "convolution 1x1 of 8-bit numbers": (convolution_q8, POINTWISE),
    "convolution 3x3 of 8-bit numbers": (convolution_q8, DENSE),
    "linear of 8-bit numbers": (linear_q8, ROWS),
    "attention with a cache": (attention, ((1, 64), (1, 255), (16, 64), (64, 128), (255, 255))),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="families with these words in their names")
    parser.add_argument("--json", metavar="FILE", help="measure into this file")
    parser.add_argument("--tables", nargs=2, metavar="FILE", help="of two files, before and after")
    parser.add_argument("--peak", type=float, default=DEFAULT_PEAK,
                        help=f"GFLOP/s of a core that the driver allows ({DEFAULT_PEAK:g})")
    options = parser.parse_args()
    if options.tables:
        before, after = (json.loads(Path(name).read_text()) for name in options.tables)
        print("\n".join(tables(before, after, options.peak)))
        return 0
    os.environ.setdefault("LP_NUM_THREADS", "1")
    found: dict[str, Any] = {}
    if options.json and os.path.exists(options.json):
        found = json.loads(Path(options.json).read_text())
    with Device.open() as device:
        print(device.info.name, device.info.driver_info, flush=True)
        for name, (function, sizes) in FAMILIES.items():
            if options.only not in name:
                continue
            winograd = "always" if "Winograd" in name else "off"
            for size in sizes:
                note(found, f"{name} {'x'.join(map(str, size))}",
                     measure(device, function, winograd, size))
            print("\n".join(columns([*rows_of(found, name)])), flush=True)
            if options.json:
                Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    return 0


def measure(device: Device, function: Any, winograd: str, size: tuple[int, ...]) -> dict[str, Any]:
    """The figures of a size: its kernels, its operations, and the least seconds: CPU of a run, of
    the operator's kernels on the device, and of what brings operands into layout."""
    make = Maker()
    graph = function(make, *size)
    flops = 2 * (make.work or multiply_adds(graph.nodes[0]) or 0)
    with closing(Method(graph, [Source.wrap(ZEROS)], device,
                        options=LoadOptions(winograd=winograd))) as method:
        inputs = [np.zeros(value.sizes, value.dtype) for value in graph.inputs]
        method.execute(inputs)
        compute = method._ready(inputs).compute
        taken: list[float] = []
        while len(taken) < RUNS or sum(taken) < SECONDS:
            start = time.process_time()
            compute.run(host.run_kernel)
            taken.append(time.process_time() - start)
        profiles = [method.profile(inputs, repeat=1).steps for _ in range(PROFILES)]
    least = [min(step.seconds for step in steps) for steps in zip(*profiles)]
    own = [step for step in profiles[0] if 0 <= step.node < len(graph.nodes)
           and not step.kernel.startswith(LAYOUT)]
    wall = sum(least[step.index] for step in own)
    kernels = " ".join(dict.fromkeys(step.kernel.replace(".texel", "") for step in own))
    return {"kernels": kernels, "flops": flops, "cpu": min(taken), "wall": wall,
            "rest": sum(least) - wall}


def note(found: dict[str, Any], name: str, new: dict[str, Any]) -> None:
    """Keeps the least of what was measured of a size."""
    old = found.get(name)
    if old and old["kernels"] == new["kernels"]:
        new |= {key: min(old[key], new[key]) for key in ("cpu", "wall", "rest")}
    found[name] = new


def seconds(one: dict[str, Any]) -> float:
    """Of a size's kernels."""
    return float(min(one["wall"], one["cpu"] * one["wall"] / (one["wall"] + one["rest"])))


def rate(one: dict[str, Any]) -> float:
    """GFLOP/s of a core."""
    return float(one["flops"] / seconds(one) / 1e9)


def rows_of(found: dict[str, Any], family: str) -> Iterator[tuple[str, ...]]:
    """A row of cells for each size of a family."""
    for name, one in found.items():
        if family_of(name) == family:
            yield name, f"{rate(one):.1f} GFLOP/s", f"{1e3 * seconds(one):.3f} ms", one["kernels"]


def family_of(name: str) -> str:
    return name.rpartition(" ")[0]


def tables(before: dict[str, Any], after: dict[str, Any], peak: float) -> Iterator[str]:
    """Markdown: GFLOP/s a core before and after and the share of the peak; of each family for the
    median size, in brackets for the slowest and the fastest one, and then of each size."""
    both = {name: (rate(before[name]), rate(one)) for name, one in after.items() if name in before}
    yield from head("before", "after", "times", "of the peak")
    for family in dict.fromkeys(map(family_of, both)):
        pairs = [pair for name, pair in both.items() if family_of(name) == family]
        old, new = (sorted(rates) for rates in zip(*pairs))
        ratio = np.exp(np.mean([np.log(b / a) for a, b in pairs]))
        middle = len(new) // 2
        cells = [f"{rates[middle]:.1f} ({rates[0]:.1f} to {rates[-1]:.1f})" for rates in (old, new)]
        yield line(family, *cells, f"{ratio:.2f}",
                   f"{100 * new[middle] / peak:.0f} % ({100 * new[-1] / peak:.0f} %)")
    yield ""
    yield from head("before", "after", "times", "of the peak", "kernels", "before")
    for name, (a, b) in both.items():
        was, now = before[name]["kernels"], after[name]["kernels"]
        yield line(name, f"{a:.1f}", f"{b:.1f}", f"{b / a:.2f}", f"{100 * b / peak:.0f} %", now,
                   "" if was == now else was)


def head(*names: str) -> Iterator[str]:
    """The first lines of a table."""
    yield line("", *names)
    yield line("---", *["---"] * len(names))


def line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
