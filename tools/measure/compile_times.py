"""How much time and memory does a compile take, by the number of nodes?

    python tools/measure/compile_times.py                        200, 2,000 and 20,000 nodes
    python tools/measure/compile_times.py --nodes 500 1000       these, with the default options
    python tools/measure/compile_times.py --kinds dense --all    with all options at every size

A line for each network of tests/large_graphs.py (chains of functions in place, residual MLPs,
transformers, dense blocks of convolutions) and each set of options: the steps of a run, the planned
peak on the device, and of the compile the CPU seconds and the anonymous memory that it leaves and
has at most. A compile is all from the file to the records of a run: parsing, the graph, passes,
lowering, the plan. Nothing is loaded. Each is done in a process of its own.

The line of a larger network also has its growth: by which factor the CPU seconds are more for twice
the nodes, 2 where the time is linear.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import vkrt
from vkrt.compiler.description import Description
from vkrt.plan.options import LoadOptions
from vkrt.report.process import resident
from vkrt.runtime.open_device import OpenDevice

TESTS = Path(__file__).resolve().parent.parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from large_graphs import KINDS, program_of  # noqa: E402

NODES = 200, 2000, 20000
# Sets of options, and the most nodes that they are tried with unless all are asked for
OPTIONS: dict[str, tuple[dict[str, str], int]] = {
    "default": ({}, 1 << 30), "memory": ({"prefer": "memory"}, 2000),
    "smallest": ({"memory_budget": "smallest"}, 2000)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", nargs="+", type=int, default=NODES, metavar="N")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--all", action="store_true", help="all options for networks of any size")
    parser.add_argument("--one", nargs=2, metavar=("MODEL.pte", "OPTIONS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(Path(options.one[0]), OPTIONS[options.one[1]][0])))
        return 0
    print(f"{'network':12} {'options':9} {'nodes':>7} {'steps':>7} {'peak, B':>12} {'CPU, s':>8} "
          f"{'left, MB':>9} {'most, MB':>9} {'growth':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds:
            for name, (_, most) in OPTIONS.items():
                before: dict[str, Any] = {}
                for count in sorted(options.nodes):
                    if count <= most or options.all:
                        before = row(kind, name, count, Path(folder), before)
    return 0


def row(kind: str, name: str, count: int, folder: Path, before: dict[str, Any]) -> dict[str, Any]:
    """Prints and returns the figures of one compile; `before` are those of fewer nodes, if any."""
    path = folder / f"{kind}-{count}.pte"
    if not path.exists():
        path.write_bytes(program_of(KINDS[kind](count)))
    found = json.loads(subprocess.run([sys.executable, __file__, "--one", path, name], check=True,
                                      stdout=subprocess.PIPE).stdout)
    growth = ""
    if before:
        doublings = math.log2(found["nodes"] / before["nodes"])
        growth = f"{(found['seconds'] / before['seconds']) ** (1 / doublings):.2f}"
    print(f"{kind:12} {name:9} {found['nodes']:7,} {found['steps']:7,} {found['peak']:12,} "
          f"{found['seconds']:8.2f} {found['left'] / 1e6:9.1f} {found['most'] / 1e6:9.1f} "
          f"{growth:>7}", flush=True)
    return found


def measured(path: Path, options: dict[str, Any]) -> dict[str, Any]:
    """The figures of a compile in this process, bytes and seconds."""
    with vkrt.Device.open() as device:
        compiles = OpenDevice(device)
        # What is imported and made once for all programs
        with closing(Description(str(TESTS / "models" / "conv_mix.pte"))) as first:
            _ = first.compile("forward", compiles).record
        before, start = resident(), time.process_time()
        with Most() as most, closing(Description(str(path))) as description:
            planned = description.compile("forward", compiles, LoadOptions(**options))
            _ = planned.record
            seconds, left = time.process_time() - start, resident()
            nodes = len(description.graph("forward").nodes)
    return {"nodes": nodes, "steps": len(planned.work.steps), "peak": planned.memory.peak_bytes,
            "seconds": seconds, "left": left["RssAnon"] - before["RssAnon"],
            "most": max(most.nbytes, left["RssAnon"]) - before["RssAnon"]}


class Most:
    """The most anonymous memory of the process in a context, looked at every few milliseconds."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Most:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.005):
            self.nbytes = max(self.nbytes, resident()["RssAnon"])


if __name__ == "__main__":
    raise SystemExit(main())
