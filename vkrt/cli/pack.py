"""`vkrt pack`: saves packed weights beside a program."""

from __future__ import annotations

import argparse
import time

from vkrt.cli import common
from vkrt.cli.progress import add_progress, progress_of
from vkrt.packer import check, pack


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    common.add_model(parser)
    parser.add_argument("--packed", "--output", metavar="FILE",
                        help="the file of packed weights (default: the program's name and .vkpack)")
    parser.add_argument("--check", action="store_true",
                        help="write nothing, but read the file of packed weights and compare its "
                             "checksums (default: write it)")
    common.add_load_options(parser, "storage")
    add_progress(parser)
    common.add_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Does what the command says; returns its exit code."""
    if options.check:
        name = check(options.model, options.packed, options.data_path)
        common.show(options, {"output": name, "good": True},
                    f"{name}: every byte is as it was saved")
        return 0
    start = time.perf_counter()
    with progress_of(options) as progress:
        progress.say(f"packing {options.model} ..")
        done = pack(options.model, options.packed, device=common.device_of(options),
                    storage=options.storage, data_path=options.data_path,
                    on_progress=progress.on_progress)
    seconds = time.perf_counter() - start
    data = {"file": options.model, "output": done.output, "device": done.device,
            "storage": done.storage, "weights": done.weights, "bytes": done.nbytes,
            "file_bytes": done.file_bytes, "seconds": round(seconds, 3), "skipped": done.skipped}
    lines = [f"method {method} is left out: {why}" for method, why in done.skipped.items()]
    where = f"on {done.device}, storage {done.storage}"
    if done.output is None:
        lines.append(f"nothing to pack {where}: every weight is read as {options.model} has it")
    else:
        lines.append(f"wrote {done.output}: {done.weights} weights, {done.nbytes / 1e6:.2f} MB, "
                     f"packed in {seconds:.2f} s for loads {where}")
    common.show(options, data, "\n".join(lines))
    return 0
