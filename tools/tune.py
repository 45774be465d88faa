"""Measures a driver's row of the table by which kernels are chosen (vkrt/graph/drivers.py).

    python tools/tune.py                    prints the row of this device's driver, and why
    python tools/tune.py --write            and puts it into the table
    python tools/tune.py --name mycard      with this name, for a driver that has no row yet

Every variant of a kernel runs on programs of one operator, repeated, made for the purpose. On CPU
drivers the time is that of all CPUs, so other work on the machine does not matter; on others it is
the device's (timestamps). `lanes`, `least_groups`, `max_texels`, the limits of loops, `maps_files`
and, but for a new row, `speed` are not measured but kept.
"""

from __future__ import annotations

import argparse
import pprint
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vkrt.device import policy
from vkrt.device.drivers import DRIVERS
from vkrt.graph.graph import Graph, Node
from vkrt.memory.source import Source
from vkrt.method.instances import Shape
from vkrt.method.method import Method
from vkrt.ops.host import run as host
from vkrt.plan.options import LoadOptions
from vkrt.vk.device import Device
from vkrt.work.tensor import Constant, Tensor
from vkrt.work.tuning import Tuning

TABLE = Path(policy.__file__).with_name("drivers.py")

# Columns of a line in the table
LINE = 100

# How often an operator is repeated in a program: what brings inputs into layout weighs little then.
CHAIN = 4
REPEAT = 7
# (channels, side, kernel) of the convolutions that tiles are measured on; sides and channels fill
# every tile.
CONVOLUTIONS = ((64, 56, 3), (128, 32, 3), (256, 16, 3), (64, 56, 1), (256, 32, 1), (512, 16, 1))
DEPTHWISE = ((512, 1), (512, 2), (512, 3), (512, 4), (512, 6), (256, 8), (128, 16))
# A choice changes only for what is measured to be better by more than this.
MARGIN = 0.03
WORST = ((1, 4), 8.0)


def convolution(channels: int, side: int, kernel: int, *, depthwise: bool = False) -> Graph:
    """A chain of convolutions [1, channels, side, side] that keep the size; all weights are 0."""
    groups = channels if depthwise else 1
    sizes = (channels, channels // groups, kernel, kernel)
    nbytes = 4 * int(np.prod(sizes))
    x = first = Tensor((1, channels, side, side), "float32")
    nodes = []
    for index in range(CHAIN):
        weight = Tensor(sizes, "float32", constant=Constant(0, nbytes, "float32"))
        out = Tensor(x.sizes, "float32")
        pad = [kernel // 2] * 2
        nodes.append(Node("aten.convolution.default", (
            x, weight, None, [1, 1], pad, [1, 1], False, [0, 0], groups), (out,), f"{index}"))
        x = out
    return Graph("tune", [first], [x], nodes).finish()


def linear(rows: int, size: int) -> Graph:
    """A chain of products [rows, size] x [size, size]."""
    x = first = Tensor((rows, size), "float32")
    nodes = []
    for index in range(CHAIN):
        weight = Tensor((size, size), "float32", constant=Constant(0, 4 * size * size, "float32"))
        out = Tensor(x.sizes, "float32")
        nodes.append(Node("aten.linear.default", (x, weight, None), (out,), f"{index}"))
        x = out
    return Graph("tune", [first], [x], nodes).finish()


class Bench:
    """A device, and the seconds that graphs take on it under a tuning.

    Attributes:
        device: open.
        kept: the row of the table this one replaces.
    """

    def __init__(self, device: Device, kept: dict[str, Any]):
        self.device = device
        self.kept = kept
        self.on_cpu = device.info.type == "cpu"
        self.zeros = bytes(64 << 20)

    @contextmanager
    def _tuned(self, **changes: Any) -> Iterator[None]:
        """The driver's row with some fields of its tuning replaced."""
        number = self.device.info.driver_id
        before = policy.POLICIES.get(number)
        own = policy.policy_from(self.kept)
        policy.POLICIES[number] = replace(own, tuning=replace(own.tuning, **changes))
        try:
            yield
        finally:
            if before is None:
                del policy.POLICIES[number]
            else:
                policy.POLICIES[number] = before

    def seconds(self, graph: Graph, *, storage: str = "texel", specialize: bool = True,
                **changes: Any) -> float:
        """Median seconds of one operator of a graph's chain, with these changes of the tuning."""
        with self._tuned(**changes):
            method = Method(graph, [Source.wrap(self.zeros)], self.device,
                            options=LoadOptions(storage=storage, winograd="off"),
                            specialize=specialize)
        try:
            inputs = [np.zeros(value.sizes, np.float32) for value in graph.inputs]
            method.execute(inputs)
            if not self.on_cpu:
                profile = method.profile(inputs, repeat=REPEAT)
                return sum(step.seconds for step in profile.steps if step.flops) / CHAIN
            compute = method._ready(Shape.of(graph, inputs)).compute
            taken = []
            for _ in range(REPEAT):
                # Without the copies of inputs and outputs that `execute` makes as well.
                start = time.process_time()
                compute.run(host.run_kernel)
                taken.append(time.process_time() - start)
            return float(np.median(taken)) / CHAIN
        finally:
            method.close()


def flops(graph: Graph) -> int:
    """Of one operator of a chain of convolutions or products."""
    node = graph.nodes[0]
    weight = node.args[1].sizes
    return 2 * int(np.prod(node.outs[0].sizes)) * int(np.prod(weight[1:]))


def tune_tiles(bench: Bench) -> tuple[dict[tuple[int, int], float], str]:
    """Relative rates of the tiles, the slowest one's 8, and what they are in GFLOP/s."""
    tiles = [tile for tile, _ in Tuning().tiles]
    rates: dict[tuple[int, int], list[float]] = {tile: [] for tile in tiles}
    for shape in CONVOLUTIONS:
        graph = convolution(*shape)
        for tile in tiles:
            if shape[2] == 1 and tile == WORST[0]:
                continue  # there is no such kernel of products
            taken = bench.seconds(graph, tiles=((tile, 1.0),))
            rates[tile].append(flops(graph) / taken)
            print(f"  {shape} tile {tile}: {rates[tile][-1] / 1e9:.2f} GFLOP/s", flush=True)
    means = {tile: float(np.exp(np.mean(np.log(found)))) for tile, found in rates.items()}
    unit = means[WORST[0]] / WORST[1]
    table = {tile: round(mean / unit, 1) for tile, mean in means.items()}
    return table, "GFLOP/s " + ", ".join(f"{a}x{b}: {mean / 1e9:.1f}"
                                         for (a, b), mean in means.items())


def tune_depthwise(bench: Bench) -> tuple[int, str]:
    """The least width on which 8 pixels an invocation are faster than 2."""
    wide = DEPTHWISE[-1][1] + 1
    said = []
    for channels, side in reversed(DEPTHWISE):
        graph = convolution(channels, side, 3, depthwise=True)
        eight, two = (bench.seconds(graph, wide_depthwise=width) for width in (0, 1 << 30))
        said.append(f"{side}: {two / eight:.2f}")
        if eight > two * (1 + MARGIN):
            break
        wide = side
    return wide, "times of 2 pixels an invocation over those of 8, by width: " + ", ".join(said)


def tune_storage(bench: Bench) -> tuple[str, str]:
    """The storage that is fastest on convolutions and products."""
    graphs = (convolution(128, 32, 3), convolution(256, 32, 1), linear(64, 512))
    taken = {storage: [bench.seconds(graph, storage=storage) for graph in graphs]
             for storage in policy.STORAGES}
    # Images are on request only: their padding costs memory.
    ratio = [b / t for t, b in zip(taken["texel"], taken["buffer"])]
    image = [b / t for t, b in zip(taken["texel"], taken["texture3d"])]
    best = "texel" if float(np.exp(np.mean(np.log(ratio)))) > 1 - MARGIN else "buffer"
    return best, (f"storage buffers take {', '.join(f'{r:.2f}' for r in ratio)} and images "
                  f"{', '.join(f'{r:.2f}' for r in image)} times as long as texel views (3x3 and "
                  "1x1 convolution, product)")


def tune_specialize(bench: Bench) -> tuple[bool, str]:
    """Whether sizes should be constants of the pipelines."""
    graphs = [convolution(*shape) for shape in CONVOLUTIONS]
    ratio = [bench.seconds(graph, specialize=False) / bench.seconds(graph) for graph in graphs]
    mean = float(np.exp(np.mean(np.log(ratio))))
    return mean > 1 - MARGIN, (f"convolutions with pushed sizes take {mean:.2f} times as long as "
                               "with constants")


def tune_ceiling(bench: Bench) -> tuple[dict[str, Any], str]:
    """The best rates of large products."""
    products = [convolution(256, 32, 1), linear(1024, 1024), convolution(128, 32, 3)]
    best = max(flops(graph) / bench.seconds(graph) for graph in products)
    vector = linear(1, 2048)
    nbytes = 4 * 2048 * 2048 / bench.seconds(vector)
    return ({"flops": float(f"{best:.2g}"), "bytes": float(f"{nbytes:.2g}"),
             "per_core": bench.on_cpu},
            f"best product {best / 1e9:.1f} GFLOP/s, product with a vector {nbytes / 1e9:.1f} GB/s"
            + (" per core" if bench.on_cpu else ""))


def tune(bench: Bench, is_new: bool) -> dict[str, Any]:
    """A driver's row, with the figures behind each choice."""
    info, why = bench.device.info, {}
    row = {**bench.kept, "driver_id": info.driver_id,
           "measured": ", ".join(filter(None, (info.name, info.driver_info)))}
    for name, measure in (("tiles", tune_tiles), ("wide_depthwise", tune_depthwise),
                          ("storage", tune_storage), ("specialize", tune_specialize)):
        row[name], why[name] = measure(bench)
        print(f"{name}: {row[name]} ({why[name]})", flush=True)
        bench.kept = row  # the next choices are measured with this one
    row["ceiling"], why["ceiling"] = tune_ceiling(bench)
    print(f"ceiling: {row['ceiling']} ({why['ceiling']})")
    if is_new:
        # Ordinary steps reach about half of the best.
        row["speed"] = {"multiply_adds": row["ceiling"]["flops"] / 4,
                        "bytes": row["ceiling"]["bytes"] / 2, "dispatch": 5e-6}
    row["why"] = {**{key: text for key, text in bench.kept["why"].items() if key not in why}, **why}
    return row


def write(name: str, row: dict[str, Any]) -> None:
    """Puts a row into the table; what stands before the table stays."""
    text = TABLE.read_text(encoding="utf-8")
    head = text[:text.index("DRIVERS: dict")]
    lines = ["DRIVERS: dict[str, dict[str, Any]] = {"]
    for driver, fields in {**DRIVERS, name: row}.items():
        lines.append(f"    {driver!r}: {{")
        for field, value in fields.items():
            start = f"        {field!r}: "
            shown = pprint.pformat(value, width=LINE - len(start) - 1, sort_dicts=False)
            lines.append(start + shown.replace("\n", "\n" + " " * len(start)) + ",")
        lines.append("    },")
    TABLE.write_text(head + "\n".join([*lines, "}", ""]), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="index or part of the name of a device")
    parser.add_argument("--name", help="of the row; by default the driver's own")
    parser.add_argument("--write", action="store_true", help=f"put the row into {TABLE.name}")
    options = parser.parse_args()
    selector = options.device
    with Device.open(int(selector) if selector and selector.isdigit() else selector) as device:
        own = [name for name, row in DRIVERS.items() if row["driver_id"] == device.info.driver_id]
        name = options.name or (own or [device.info.driver_name.lower()])[0]
        row = tune(Bench(device, DRIVERS.get(name, DRIVERS["default"])), name not in DRIVERS)
    if options.write:
        write(name, row)
        print(f"wrote row '{name}' of {TABLE}")
    else:
        print(pprint.pformat({name: row}, width=100, sort_dicts=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
