"""`vkrt tune`: measures an entry for a driver, by which kernels are chosen (`vkrt.device.rows`).

Every variant of a kernel runs on programs made for the purpose, which repeat one operator. On CPU
drivers the time is the process's CPU time, so other work on the machine does not matter; on other
drivers it is the device's (timestamps). `lanes`, `min_groups`, `max_texels`, `registers`,
`winograd` and its times, `features`, the limits of loops and `maps_files` keep their values, and so
does `speed` if the driver has been measured before.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from vkrt.cli.common import add_device, add_json, device_of, show
from vkrt.device.policy import overridden, policy_from, target_of
from vkrt.device.rows import (
    STORAGES,
    Profile,
    check_writable,
    profile_of,
    user_folder,
    version_of,
    write,
)
from vkrt.errors import InputError
from vkrt.graph.graph import Graph, Node
from vkrt.memory.source import Source
from vkrt.method.method import Method
from vkrt.ops.flops import multiply_adds
from vkrt.ops.host import run as host
from vkrt.ops.tiles import CONVOLUTIONS as CONVOLUTION_TILES
from vkrt.ops.tiles import PRODUCTS as PRODUCT_TILES
from vkrt.ops.tiles import with_wide
from vkrt.plan.options import LoadOptions
from vkrt.shader import shader_library
from vkrt.vk.device import Device
from vkrt.vk.info import DeviceInfo
from vkrt.work.tensor import Constant, Tensor
from vkrt.work.tuning import WIDE_TILES, Tile, Tuning

# How often an operator is repeated in a program, so that bringing inputs into layout weighs little.
CHAIN = 4
# (channels, side, kernel) of the convolutions that tiles are measured on; sides and channels fill
# every tile.
CONVOLUTIONS = ((64, 56, 3), (128, 32, 3), (256, 16, 3), (64, 56, 1), (256, 32, 1), (512, 16, 1))
DEPTHWISE = ((512, 1), (512, 2), (512, 3), (512, 4), (512, 6), (256, 8), (128, 16))
TALL_DEPTHWISE = ((512, 7), (256, 14), (96, 56))
# Convolutions as above, and products (rows, size), that have other kernels in a GPU's shape
SHARED_CONVOLUTIONS = ((128, 32, 3), (256, 32, 1), (512, 16, 1))
SHARED_PRODUCTS = ((64, 512), (1, 2048))
# By family of shaders: a shader of it, and a graph that runs on it
FAMILIES: dict[str, tuple[str, Callable[[], Graph]]] = {
    "conv2d": ("conv2d_8x8.texel.f32", lambda: convolution(128, 32, 3)),
    "conv2d_depthwise": ("conv2d_depthwise_8.texel.f32",
                         lambda: convolution(256, 32, 3, depthwise=True)),
    "matmul": ("matmul_8x8.texel.f32", lambda: convolution(256, 32, 1))}
# A choice changes only if another one was measured to be better by more than this.
MARGIN = 0.03
WORST = ((1, 4), 8.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_device(parser)
    parser.add_argument("--write", action="store_true",
                        help="put the entry into the user's folder of entries, "
                             "$XDG_CONFIG_HOME/vkrt/drivers (default: only print it)")
    parser.add_argument("--output", metavar="FILE",
                        help="put the entry into this file (default: only print it)")
    parser.add_argument("--runs", type=int, default=7,
                        help="how many of each program are timed (default: 7, some minutes)")
    add_json(parser)


def execute(options: argparse.Namespace) -> int:
    if options.runs < 1:
        raise InputError(f"{options.runs} runs: expected 1 or more")
    outputs = [options.output] if options.output else []
    with Device.open(device_of(options.device)) as device:
        if options.write:
            folder = user_folder()
            if folder is None:
                raise InputError("there is no folder for the user's entries; choose a file with "
                                 "--output")
            outputs.append(os.path.join(folder, file_name(device.info)))
        for output in outputs:
            check_writable(output)
        entry = tune(Bench(device, options.runs))
    for output in outputs:
        write(output, entry)
    show(options, entry, "\n".join([json.dumps(entry, indent=2),
                                  *(f"wrote {output}" for output in outputs)]))
    return 0


def file_name(info: DeviceInfo) -> str:
    name = info.driver_name if info.type == "cpu" else info.name
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".json"


def convolution(channels: int, side: int, kernel: int, *, depthwise: bool = False) -> Graph:
    """A chain of convolutions [1, channels, side, side] that keep the size."""
    groups = channels if depthwise else 1
    rest = (None, [1, 1], [kernel // 2] * 2, [1, 1], False, [0, 0], groups)
    return _chain((1, channels, side, side), "aten.convolution.default",
                  (channels, channels // groups, kernel, kernel), rest)


def linear(rows: int, size: int) -> Graph:
    """A chain of products [rows, size] x [size, size]."""
    return _chain((rows, size), "aten.linear.default", (size, size), (None,))


def _chain(sizes: tuple[int, ...], op: str, weight: tuple[int, ...], rest: tuple) -> Graph:
    """An operator that keeps the size of its input, repeated; all weights are 0."""
    nbytes = 4 * int(np.prod(weight))
    x = first = Tensor(sizes, "float32")
    nodes = []
    for index in range(CHAIN):
        constant = Tensor(weight, "float32", constant=Constant(0, nbytes, "float32"))
        out = Tensor(sizes, "float32")
        nodes.append(Node(op, (x, constant, *rest), (out,), f"{index}"))
        x = out
    return Graph("tune", [first], [x], nodes).finish()


def flops(graph: Graph) -> int:
    return 2 * (multiply_adds(graph.nodes[0]) or 0)


class Bench:
    """A device, and the seconds that graphs take on it under a tuning: `runs` are timed. `kept` is
    the device's profile, with what has been measured so far."""

    def __init__(self, device: Device, runs: int):
        self.device = device
        self.runs = runs
        self.kept = profile_of(device.info)
        self.on_cpu = device.info.type == "cpu"
        self.zeros = bytes(64 << 20)

    def seconds(self, graph: Graph, *, storage: str = "texel",
                specialize: dict[str, list[str]] | None = None, **changes: Any) -> float:
        """Median seconds of one operator of a graph's chain, with these changes of the tuning.
        `specialize` are sizes compiled into kernels; by default those of the profile."""
        own = policy_from(self.kept)
        if specialize is None:
            specialize = self.kept.fields["specialize"]
        with overridden(replace(own, specialize=specialize,
                                tuning=replace(own.tuning, **changes))):
            method = Method(graph, [Source.wrap(self.zeros)], self.device,
                            options=LoadOptions(storage=storage, winograd="off"))
        try:
            inputs = [np.zeros(value.sizes, np.float32) for value in graph.inputs]
            method.execute(inputs)
            if not self.on_cpu:
                profile = method.profile(inputs, repeat=self.runs)
                return sum(step.seconds for step in profile.steps if step.flops) / CHAIN
            compute = method._ready(inputs).compute
            taken = []
            for _ in range(self.runs):
                # Without the copies of inputs and outputs that `execute` makes as well.
                start = time.process_time()
                compute.run(host.run_kernel)
                taken.append(time.process_time() - start)
            return float(np.median(taken)) / CHAIN
        finally:
            method.close()


def tune(bench: Bench) -> dict[str, Any]:
    """The entry for a device and its driver, from this version on, as its file has it: each choice,
    and the measured figures behind it."""
    info, before = bench.device.info, bench.kept
    match = {"driver_id": info.driver_id, "from": ".".join(map(str, version_of(info)))}
    if not bench.on_cpu:
        # One driver may have several devices; names of CPU drivers say what they were built with.
        match["device"] = f"^{re.escape(info.name)}$"
    found: dict[str, Any] = {}
    why: dict[str, str] = {}
    for name, entry in before.entries.items():
        if entry.is_the_users:  # a file that this one may replace
            found[name] = before.fields[name]
            why |= {name: entry.why[name]} if name in entry.why else {}
    for name, measure in (("tiles", tune_tiles), ("shares", tune_shares),
                          ("wide_depthwise", tune_depthwise),
                          ("tall_depthwise", tune_tall), ("storage", tune_storage),
                          ("specialize", tune_specialize), ("ceiling", tune_ceiling)):
        found[name], why[name] = measure(bench)
        _say(f"{name}: {found[name]} ({why[name]})")
        # The next choices are measured with this one.
        bench.kept = Profile({**before.fields, **found}, before.entries)
    if not before.is_measured:
        # Ordinary steps reach about half of the best.
        found["speed"] = {**before.fields["speed"],
                          "multiply_adds": found["ceiling"]["flops"] / 4,
                          "bytes": found["ceiling"]["bytes"] / 2, "dispatch": 5e-6}
    found["measured"] = ", ".join(filter(None, (info.name, info.driver_info)))
    return {"match": match, **found, "why": why}


def tune_tiles(bench: Bench) -> tuple[dict[str, float], str]:
    """Relative rates of the tiles (8 for the slowest one), and the rates in GFLOP/s."""
    with overridden(policy_from(bench.kept)):
        target = target_of(bench.device.info, enabled=bench.device.features)
    tiles = (*(WIDE_TILES if "shuffle" in target.features else ()), *dict(Tuning().tiles))
    rates: dict[Tile, list[float]] = {tile: [] for tile in tiles}
    for shape in CONVOLUTIONS:
        graph = convolution(*shape)
        for tile, found in rates.items():
            if tile not in with_wide(PRODUCT_TILES if shape[2] == 1 else CONVOLUTION_TILES,
                                     "f32"):
                continue
            # Kernels with register tiles, also if the driver's workgroups share larger tiles.
            found.append(flops(graph) / bench.seconds(graph, tiles=((tile, 1.0),), shares=False))
            _say(f"  {shape} tile {tile}: {found[-1] / 1e9:.2f} GFLOP/s")
    means = {tile: _mean(found) for tile, found in rates.items()}
    unit = means[WORST[0]] / WORST[1]
    return ({f"{a}x{b}": round(mean / unit, 1) for (a, b), mean in means.items()},
            "GFLOP/s " + ", ".join(f"{a}x{b}: {mean / 1e9:.1f}"
                                   for (a, b), mean in means.items()))


def tune_shares(bench: Bench) -> tuple[bool, str]:
    """Whether workgroups share what they read and sum; changed only if that is clearly better."""
    graphs = [*(convolution(*shape) for shape in SHARED_CONVOLUTIONS),
              *(linear(*shape) for shape in SHARED_PRODUCTS)]
    ratios = [bench.seconds(graph, shares=False) / bench.seconds(graph, shares=True)
              for graph in graphs]
    gain, kept = _mean(ratios), bench.kept.fields["shares"]
    return (gain > (1 - MARGIN if kept else 1 + MARGIN),
            f"kernels whose workgroups share nothing take {', '.join(f'{r:.2f}' for r in ratios)} "
            f"times as long as those that share ({len(SHARED_CONVOLUTIONS)} convolutions, then "
            "products)")


def tune_depthwise(bench: Bench) -> tuple[int, str]:
    """The smallest width on which 8 pixels an invocation are faster than 2."""
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


def tune_tall(bench: Bench) -> tuple[bool, str]:
    """Whether two rows of depthwise convolutions are faster together; changed only if that is
    clearly better."""
    graphs = [convolution(channels, side, 3, depthwise=True) for channels, side in TALL_DEPTHWISE]
    ratios = [bench.seconds(graph, wide_depthwise=0, tall_depthwise=True)
              / bench.seconds(graph, wide_depthwise=0, tall_depthwise=False) for graph in graphs]
    sides = ", ".join(str(side) for _, side in TALL_DEPTHWISE)
    return (_mean(ratios) < (1 + MARGIN if bench.kept.fields["tall_depthwise"] else 1 - MARGIN),
            "times of 4 by 2 pixels an invocation over those of 8 by 1, by width "
            f"{sides}: {', '.join(f'{r:.2f}' for r in ratios)}")


def tune_storage(bench: Bench) -> tuple[str, str]:
    """The storage that is fastest on convolutions and products."""
    graphs = (convolution(128, 32, 3), convolution(256, 32, 1), linear(64, 512))
    taken = {storage: [bench.seconds(graph, storage=storage) for graph in graphs]
             for storage in STORAGES}
    # Images are used on request only: their padding costs memory.
    ratio, image = ([b / t for t, b in zip(taken["texel"], taken[storage])]
                    for storage in ("buffer", "texture3d"))
    return ("texel" if _mean(ratio) > 1 - MARGIN else "buffer",
            f"storage buffers take {', '.join(f'{r:.2f}' for r in ratio)} and images "
            f"{', '.join(f'{r:.2f}' for r in image)} times as long as texel views (3x3 and 1x1 "
            "convolution, product)")


def tune_specialize(bench: Bench) -> tuple[dict[str, list[str]], str]:
    """The sizes that make kernels faster as constants, each one measured alone."""
    table: dict[str, list[str]] = {}
    said = []
    for family, (shader, graph) in FAMILIES.items():
        names = [spec.name for spec in shader_library().get(shader).specs if spec.may_be_pushed]
        pushed = bench.seconds(graph(), specialize={}, shares=False)

        def times(some: list[str], family=family, graph=graph, pushed=pushed) -> float:
            return pushed / bench.seconds(graph(), specialize={family: some}, shares=False)

        whole = times(names)
        chosen = [name for name in names if times([name]) > 1 + MARGIN] if (
            whole > 1 + MARGIN) else []
        said.append(f"{family} with pushed sizes takes {whole:.2f} times as long as with constants")
        if chosen:
            table[family] = chosen
            said[-1] += f", {times(chosen):.2f} times as long as with {', '.join(chosen)}"
        _say(f"  {said[-1]}")
    return table, "; ".join(said)


def tune_ceiling(bench: Bench) -> tuple[dict[str, Any], str]:
    """The best rates of large products."""
    products = [convolution(256, 32, 1), linear(1024, 1024), convolution(128, 32, 3)]
    best = max(flops(graph) / bench.seconds(graph) for graph in products)
    nbytes = 4 * 2048 * 2048 / bench.seconds(linear(1, 2048))
    return ({"flops": float(f"{best:.2g}"), "bytes": float(f"{nbytes:.2g}"),
             "per_core": bench.on_cpu},
            f"best product {best / 1e9:.1f} GFLOP/s, product with a vector {nbytes / 1e9:.1f} GB/s"
            + (" per core" if bench.on_cpu else ""))


def _mean(values: list[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
