"""`vkrt run`: runs a program once, on inputs from files, and says what it took."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from vkrt.cli import common
from vkrt.cli.progress import Progress, add_progress, progress_of
from vkrt.errors import InputError
from vkrt.hints import Any
from vkrt.method.named_inputs import archive_keys, inputs_of_archive
from vkrt.method.profile import CLOCKS
from vkrt.program import Program
from vkrt.replaceable import check_replaceable

# What `--output` writes
OUTPUTS = (".npz", ".npy", ".png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    common.add_model(parser)
    common.add_method(parser)
    parser.add_argument("--input", action="append", default=[], metavar="FILE",
                        help=".npy, .npz (arrays in order) or a picture (as 1x3xHxW in 0..1), once "
                             "per input (default: zeros of the largest sizes)")
    parser.add_argument("--output", metavar="FILE",
                        help=".npz for all outputs, .npy or .png for the first (default: outputs "
                             "are not kept)")
    parser.add_argument("--memory", action="store_true",
                        help="also print the memory table (default: no)")
    parser.add_argument("--explain-weights", action="store_true",
                        help="also print where each weight is and why (default: no)")
    parser.add_argument("--profile", action="store_true",
                        help="then run again, timing every step, and print the table (default: no)")
    parser.add_argument("--clock", default="auto", choices=CLOCKS,
                        help="what times the steps of the profile: the device's timestamps or the "
                             "host's clock (default: auto)")
    parser.add_argument("--trace", metavar="FILE",
                        help="write the load and a profiled run for chrome://tracing or Perfetto "
                             "(default: none)")
    common.add_load_options(parser)
    add_progress(parser)
    common.add_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Does what the command says; returns its exit code."""
    with progress_of(options) as progress:
        data, text = _run(options, progress)
    common.show(options, data, text)
    return 0


def _run(options: argparse.Namespace, progress: Progress) -> tuple[dict[str, Any], str]:
    """Loads the program and runs it; what there is to print, as data and as text."""
    if options.output:
        _check_output(options.output)
    if options.trace:
        from vkrt.cli.trace import check_trace

        check_trace(options.trace)
    progress.say(f"loading {options.model} ..")
    start = time.perf_counter()
    with Program(options.model, common.device_of(options), common.load_options(options),
                 options.data_path, progress.on_progress) as program:
        loaded = time.perf_counter()
        metadata = program.metadata(options.method)
        arrays = _inputs(options.input, metadata)
        progress.say(f"running on {program.device.info.name} ..")
        began = time.perf_counter()
        outputs = program.run(*arrays, method=options.method)
        done = time.perf_counter()
        if options.output:
            _save(options.output, outputs, metadata)
        data = {"device": program.device.info.name,
                "outputs": [_summary(o) for o in outputs],
                "load_ms": round((loaded - start) * 1e3, 2),
                "run_ms": round((done - began) * 1e3, 2),
                "memory": program.memory.as_dict()}
        lines = [f"{data['device']}: loaded in {data['load_ms']:.1f} ms, first run "
                 f"{data['run_ms']:.1f} ms"]
        lines += [f"output {i}: {s}" for i, s in enumerate(map(_summary, outputs))]
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


def _summary(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return str(value)
    head = f"{value.dtype}{list(value.shape)}"
    if not value.size:
        return head
    return f"{head} min {value.min():.6g} max {value.max():.6g} mean {value.mean():.6g}"


def _inputs(files: list[str], metadata: Any) -> list[np.ndarray]:
    """Arrays for a method's inputs from files; zeros where no file is given at all."""
    if not files:
        return [info.example() for info in metadata.inputs]
    arrays: list[np.ndarray] = []
    for name in files:
        suffix = Path(name).suffix.lower()
        try:
            if suffix == ".npz":
                with np.load(name) as archive:
                    arrays += inputs_of_archive(archive, metadata)
            elif suffix == ".npy":
                arrays.append(np.load(name))
            else:
                arrays.append(_picture(name, metadata.inputs[len(arrays)]
                                       if len(arrays) < len(metadata.inputs) else None))
        except (ValueError, EOFError) as error:
            raise InputError(f"{name}: {error}") from error
    if len(arrays) == sum(not info.fixed for info in metadata.inputs):
        # What takes one value alone need not be in a file.
        given = iter(arrays)
        return [info.fixed[0] if info.fixed else next(given) for info in metadata.inputs]
    return arrays


def _picture(name: str, info: Any) -> np.ndarray:
    """A picture as float32 [1, 3, H, W] in 0..1, resized to the input's H and W if needed; where
    these are dynamic, only if it is larger."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise InputError(f"{name}: reading pictures needs Pillow (pip install pillow)") from error
    sizes: tuple[int, ...] = () if info is None else info.sizes
    if len(sizes) != 4 or sizes[0] != 1 or sizes[1] not in (1, 3):
        raise InputError(f"{name}: the input is {list(sizes)}, a picture is [1, 3, H, W] or "
                         "[1, 1, H, W]; pass a .npy file")
    try:
        with Image.open(name) as picture:
            converted = picture.convert("RGB" if sizes[1] == 3 else "L")
    except UnidentifiedImageError as error:
        raise InputError(f"{name}: not a picture, .npy or .npz file") from error
    width, height = (min(own, bound) if dim in info.dynamic_dims else bound for own, bound, dim
                     in zip(converted.size, (sizes[3], sizes[2]), (3, 2)))
    if converted.size != (width, height):
        converted = converted.resize((width, height), Image.Resampling.BICUBIC)
    array = np.asarray(converted, np.float32).reshape(height, width, sizes[1]) / 255
    return np.ascontiguousarray(array.transpose(2, 0, 1)[None])


def _is_output(suffix: str, head: bytes) -> bool:
    """Whether a file that begins so is one that `--output` writes under such a name."""
    if suffix == ".npz":  # an archive whose first member is an array
        length = int.from_bytes(head[26:28], "little")
        return head.startswith(b"PK\x03\x04") and head[30:30 + length].endswith(b".npy")
    return head.startswith(b"\x93NUMPY" if suffix == ".npy" else b"\x89PNG")


def _check_output(name: str) -> None:
    """Refuses to write outputs over another file, or under a name that says no format."""
    suffix = Path(name).suffix.lower()
    if suffix not in OUTPUTS:
        raise InputError(f"{name}: expected a name ending in .npz, .npy or .png")
    check_replaceable(name, lambda head: _is_output(suffix, head), f"a file of outputs ({suffix})",
                      renames=False)


def _save(name: str, outputs: list[Any], metadata: Any) -> None:
    suffix = Path(name).suffix.lower()
    if suffix == ".npz":
        np.savez(name, **dict(zip(archive_keys(metadata.outputs), outputs)))
    elif suffix == ".npy":
        np.save(name, outputs[0])
    else:
        from PIL import Image

        array = np.asarray(outputs[0])
        if array.ndim != 4 or array.shape[0] != 1 or array.shape[1] not in (1, 3):
            raise InputError(f"{name}: output 0 is {list(array.shape)}, not a picture "
                             "[1, 3, H, W] or [1, 1, H, W]")
        pixels = (array[0].clip(0, 1) * 255).round().astype(np.uint8).transpose(1, 2, 0)
        Image.fromarray(pixels.squeeze()).save(name)

