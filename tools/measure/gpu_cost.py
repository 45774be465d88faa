#!/usr/bin/env python3
"""What compilers of GPUs make of vkrt's kernels: registers spilled, occupancy, instructions, time.

    VKRT_GPU_DRIVERS=FOLDER python tools/measure/gpu_cost.py --device mali-g610 MODEL ..
    .. gpu_cost.py --device mali-g610 --dispatches 10 MODEL   those that take longest, by a model
    .. gpu_cost.py --table MODEL ..                       devices x programs, in Markdown
    .. gpu_cost.py --check tests/gpus/baseline.json       what has become worse
    .. gpu_cost.py --update tests/gpus/baseline.json      measures anew what it has

FOLDER has a command `as-gpu` (tools/gpu-drivers/README.md says how to make one); without --device
all of `as-gpu --names` are asked, and for a table one of each generation. --all prints every
pipeline instead of those that stand out.

A program is loaded, and its kernels are compiled with nothing cached, under a layer that asks the
driver what it knows of each pipeline (compilers/statistics.py says in which words). Nothing runs:
times are those of a model, whose formula, and what it cannot see, is in compilers/cost.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from compilers.baseline import measured, text_of, worse
from compilers.cost import costs_of
from compilers.drivers import Capture, capture, device_names
from compilers.statistics import pipeline_of, summary_of
from compilers.table import DEVICES, rows_of


def show_pipelines(device: str, model: str, found: Capture, everything: bool) -> None:
    """Prints a program's pipelines on a device."""
    short = summary_of(found)
    print(f"{device} {Path(model).name}: {short['pipelines']} pipelines, "
          f"{len(short['spilling'])} of them spill, occupancy {short['occupancy']} at worst, "
          f"{short['instructions']} instructions, {short['compile_cpu_ms']} ms of CPU to compile")
    if found.error:
        print(f"  ended: {found.error}")
    for row in sorted(map(pipeline_of, found.pipelines),
                      key=lambda row: (-row.failed ** 2, -row.spills, -row.instructions)):
        if everything or row.failed or row.spills:
            said = f"does not compile ({row.failed})" if row.failed else (
                f"spills {row.spills}, occupancy {row.occupancy}, {row.instructions} instructions")
            print(f"  {row.name}: {said}, {row.cpu_ms:.0f} ms")


def show_dispatches(device: str, found: Capture, count: int) -> None:
    """Prints the modelled time of each run, and of its longest dispatches."""
    for name, dispatches in costs_of(device, found).items():
        total = sum(dispatch.seconds for dispatch in dispatches)
        print(f"  {name}: {len(dispatches)} dispatches, {total * 1e3:.3g} ms by the model")
        for row in sorted(dispatches, key=lambda row: -row.seconds)[:count]:
            slots = "" if row.slots is None else f", {row.slots:.2f} slots a multiplication"
            print(f"    {row.seconds / total:6.1%} {row.seconds * 1e6:9.1f} us by {row.bound}, "
                  f"{row.groups}{slots}: {row.pipeline.name}")


def main() -> int:
    """Does what the command line says; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--device", action="append")
    parser.add_argument("--all", action="store_true", help="print every pipeline")
    parser.add_argument("--dispatches", type=int, metavar="COUNT", help="those that take longest")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE",
                        help="of vkrt.load")
    parser.add_argument("--check", metavar="BASELINE")
    parser.add_argument("--update", metavar="BASELINE")
    options = parser.parse_args()
    if options.check or options.update:
        path = Path(options.check or options.update)
        old = json.loads(path.read_text())
        new = measured(old)
        if options.update:
            path.write_text(text_of(new))
            return 0
        said = [f"{device} {model}: {line}" for device, models in old.items()
                for model, before in models.items() for line in worse(before, new[device][model])]
        print(*said or ["nothing is worse"], sep="\n")
        return 1 if said else 0
    if options.table:
        for row in rows_of(options.device or list(DEVICES), options.models, options.option):
            print(row, flush=True)
        return 0
    for device in options.device or device_names():
        for model in options.models:
            found = capture(device, model, options.option, code=options.dispatches is not None)
            show_pipelines(device, model, found, options.all)
            if options.dispatches is not None and not found.error:
                show_dispatches(device, found, options.dispatches)
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
