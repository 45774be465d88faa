"""`vkrt run`: runs a program on inputs from files, and says what it took."""

from __future__ import annotations

import argparse
import os
import struct
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from vkrt.cli import common, pictures, sounds
from vkrt.cli.bits import first_difference
from vkrt.cli.process import EXIT_FAILED
from vkrt.cli.progress import Progress, add_progress, progress_of
from vkrt.errors import InputError
from vkrt.files.replaceable import check_replaceable, replacing
from vkrt.method.named_inputs import archive_keys, inputs_of_archive
from vkrt.method.profile import CLOCKS
from vkrt.program.program import Program

# The mark of .npz archives: an extra field of the zip format in the header of each member, which is
# id, length, data
ARCHIVE_MARK = struct.pack("<HH4s", 0x6B76, 4, b"vkrt")
# Suffixes of `--output`, and the mark near the beginning of each file that vkrt writes, by which it
# differs from a user's own; .npy has no room for a mark.
OUTPUTS = {".npz": ARCHIVE_MARK, ".npy": None, ".png": pictures.MARK, ".wav": sounds.MARK}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_model(parser)
    common.add_method(parser)
    parser.add_argument("--input", action="append", default=[], metavar="FILE",
                        help=".npy, .npz (arrays in order), a picture (as 1x3xHxW in 0..1) or a "
                             ".wav (in -1..1), once per input (default: zeros of the largest "
                             "sizes)")
    parser.add_argument("--output", metavar="FILE",
                        help=".npz for all outputs, .npy, .png or .wav for the first (default: "
                             "outputs are not kept)")
    pictures.add_arguments(parser)
    sounds.add_arguments(parser)
    common.add_flag(parser, "--memory", "also print the memory table")
    common.add_flag(parser, "--explain-weights", "also print where each weight is and why")
    common.add_flag(parser, "--profile", "then run again, timing every step, and print the table")
    parser.add_argument("--clock", default="auto", choices=CLOCKS,
                        help="what times the steps of the profile: the device's timestamps or the "
                             "host's clock (default: auto)")
    common.add_repeat(parser, 1, "how often it runs, on the same inputs and states")
    common.add_flag(parser, "--check-bits", "fail where an output of a further run has other bits "
                    "than that of the first")
    parser.add_argument("--trace", metavar="FILE",
                        help="write the load and a profiled run for chrome://tracing or Perfetto "
                             "(default: none)")
    common.add_load_options(parser)
    add_progress(parser)
    common.add_json(parser)


def execute(options: argparse.Namespace) -> int:
    with progress_of(options) as progress:
        data, text = _run(options, progress)
    common.show(options, data, text)
    return EXIT_FAILED if "differs" in data else 0


def _run(options: argparse.Namespace, progress: Progress) -> tuple[dict[str, Any], str]:
    """Loads the program and runs it; returns what to print, as data and as text."""
    _check_files(options)
    labels = pictures.read_labels(options.labels)
    if options.trace:
        from vkrt.cli.trace import check_trace

        check_trace(options.trace)
    progress.say(f"loading {options.model} ..")
    start = time.perf_counter()
    with Program(options.model, common.device_of(options.device), common.load_options(options),
                 options.data_path, progress.on_progress) as program:
        loaded = time.perf_counter()
        metadata = program.metadata(options.method)
        if options.output and Path(options.output).suffix.lower() == ".png":
            pictures.check_output(options.output, next(iter(metadata.outputs), None))
        arrays, rate = _inputs(options, metadata)
        progress.say(f"running on {program.device.info.name} ..")
        began = time.perf_counter()
        try:
            outputs = program.run(*arrays, method=options.method)
        except InputError as error:
            raise InputError(": ".join((*options.input, str(error)))) from error
        done = time.perf_counter()
        differs = _repeat(options, program, arrays, outputs)
        if options.output:
            _save(options.output, outputs, metadata, rate)
        data: dict[str, Any] = {
            "device": program.device.info.name, "outputs": [_summary(o) for o in outputs],
            "load_ms": round((loaded - start) * 1e3, 2), "run_ms": round((done - began) * 1e3, 2),
            "memory": program.memory.as_dict()}
        lines = [f"{data['device']}: loaded in {data['load_ms']:.1f} ms, first run "
                 f"{data['run_ms']:.1f} ms"]
        lines += [f"output {i}: {s}" for i, s in enumerate(data["outputs"])]
        lines += differs
        if differs:
            data["differs"] = differs[0]
        count = options.top if options.top is not None else 5 if labels else 0
        if count:
            data["top"] = pictures.top(outputs[0], labels, count)
            lines += [f"{found['value']:10.4g}  {found['index']} {found.get('label', '')}".rstrip()
                      for found in data["top"]]
        if options.output:
            lines.append(f"wrote {options.output}")
        if options.memory:
            lines += ["", program.memory.table()]
        if options.explain_weights:
            lines += ["", program.memory.weights_table()]
        if options.profile or options.trace:
            profile = program.profile(*arrays, method=options.method, clock=options.clock)
            if options.trace:
                from vkrt.cli.trace import write_trace

                write_trace(options.trace, program.memory, profile)
                lines.append(f"wrote {options.trace}")
            if options.profile:
                data["profile"] = profile.as_dict()
                lines += ["", program.memory.stopwatch.table(), "", profile.table()]
        return data, "\n".join(lines)


def _repeat(options: argparse.Namespace, program: Program, arrays: list[np.ndarray],
            outputs: list[Any]) -> list[str]:
    """Does the runs after the first one, which gave `outputs`. Returns a line about the first
    output with other bits, if bits are compared and differ."""
    def again() -> list[Any]:
        program.reset_state(options.method)
        return program.run(*arrays, method=options.method)

    if not options.check_bits:
        for _ in range(1, options.repeat):
            again()
        return []
    differs = first_difference(outputs, again, options.repeat)
    return [f"WRONG    output {differs[0]}: {differs[1]}"] if differs else []


def _summary(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return str(value)
    head = f"{value.dtype}{list(value.shape)}"
    if not value.size:
        return head
    return f"{head} min {value.min():.6g} max {value.max():.6g} mean {value.mean():.6g}"


def _inputs(options: argparse.Namespace, metadata: Any) -> tuple[list[np.ndarray], int]:
    """Arrays for a method's inputs from files, zeros if no file is given at all; and the samples
    per second of a sound."""
    rate = options.rate or sounds.RATE
    if not options.input:
        return [info.example() for info in metadata.inputs], rate
    arrays: list[np.ndarray] = []
    preset = pictures.preset_of(options)
    for name in options.input:
        suffix = Path(name).suffix.lower()
        info = metadata.inputs[len(arrays)] if len(arrays) < len(metadata.inputs) else None
        try:
            if suffix == ".npz":
                with np.load(name) as archive:
                    arrays += inputs_of_archive(archive, metadata)
            elif suffix == ".npy":
                arrays.append(np.load(name))
            elif suffix == ".wav":
                sound, rate = sounds.read(name, info, preset.resize, options.rate)
                arrays.append(sound)
            else:
                arrays.append(pictures.read(name, info, preset))
        except InputError:
            raise
        except (ValueError, EOFError) as error:
            raise InputError(f"{name}: {error}") from error
    if len(arrays) == sum(not info.fixed for info in metadata.inputs):
        # An input with one fixed value need not be in a file.
        given = iter(arrays)
        arrays = [info.fixed[0] if info.fixed else next(given) for info in metadata.inputs]
    return arrays, rate


def _check_files(options: argparse.Namespace) -> None:
    """Checks, before anything is loaded, that the output's name has a format and is not another
    file's, that the inputs exist, and that the package for pictures is installed."""
    name = options.output or ""
    suffix = Path(name).suffix.lower()
    if name and suffix not in OUTPUTS:
        raise InputError(f"{name}: expected a name ending in {', '.join(OUTPUTS)}")
    if name:
        mark = OUTPUTS[suffix]
        check_replaceable(name, lambda head: mark is not None and mark in head,
                          "marked as an output of vkrt's", renames=False)
    if suffix == ".png":
        pictures.need_pillow(name)
    for name in options.input:
        os.stat(name)
        if Path(name).suffix.lower() not in (".npy", ".npz", ".wav"):
            pictures.need_pillow(name)


def _save(name: str, outputs: list[Any], metadata: Any, rate: int) -> None:
    suffix = Path(name).suffix.lower()
    with replacing(name) as file:
        if suffix == ".npz":
            _write_archive(file, dict(zip(archive_keys(metadata.outputs), outputs)))
        elif suffix == ".npy":
            np.save(file, outputs[0])
        elif suffix == ".png":
            pictures.write(file, np.asarray(outputs[0]))
        else:
            sounds.write(file, outputs[0], rate)


def _write_archive(file: BinaryIO, arrays: Mapping[str, Any]) -> None:
    """Writes arrays by name, as `numpy.savez` does, with the mark."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            info.extra = ARCHIVE_MARK
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
