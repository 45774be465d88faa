"""`vkrt compile`: compiles a program to a file that loads without lowering and planning."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict

from vkrt.cli import common
from vkrt.cli.progress import add_progress, progress_of
from vkrt.compiled.compiler import compile
from vkrt.graph.wording import counted

# The options of a load that decide what is loaded
OPTIONS = ("storage", "weights", "memory_budget", "stream_lookahead", "winograd", "prefer",
           "cache", "fusions", "specialize", "order", "chunk")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_model(parser)
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="the compiled program (default: the program's name with .vkx)")
    parser.add_argument("--target", action="append", metavar="DEVICE", dest="targets",
                        help="a device to compile for, by its index, part of its name or its kind, "
                             "or 'generic' for any of Vulkan 1.1, without a driver; may be given "
                             "several times (default: the one that a load takes)")
    parser.add_argument("--shape", action="append", metavar="SIZES", type=common.sizes_of,
                        dest="shapes",
                        help="the sizes of all inputs of a program with dynamic shapes, such as "
                             "'1,3,224,224' or, of two, '1,64 1'; '-' is a number. Several times "
                             "for several shapes (default: no program with dynamic shapes is "
                             "compiled)")
    common.add_load_options(parser, *OPTIONS)
    add_progress(parser)
    common.add_json(parser)


def execute(options: argparse.Namespace) -> int:
    start = time.perf_counter()
    with progress_of(options) as progress:
        progress.say(f"compiling {options.model} ..")
        given = {name: getattr(options, name) for name in OPTIONS}
        done = compile(options.model, options.output, shapes=options.shapes or (),
                       device=[common.device_of(name) for name in options.targets or [None]],
                       data_path=options.data_path, on_progress=progress.on_progress, **given)
    seconds = time.perf_counter() - start
    peaks = ", ".join(f"{nbytes / 1e6:.2f} MB at most on {name}"
                      for name, nbytes in zip(done.targets, done.peak_bytes))
    common.show(options, {**asdict(done), "seconds": round(seconds, 3)},
                f"wrote {done.output}, {done.file_bytes / 1e6:.2f} MB in {seconds:.2f} s: "
                f"{counted(len(done.methods), 'method')}, {counted(done.modules, 'shader')}, "
                f"{done.weight_bytes / 1e6:.2f} MB of weights; {peaks}")
    return 0
