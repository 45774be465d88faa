"""The `vkrt` command: devices, info, run, bench, pack."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from vkrt.device.policy import WINOGRAD
from vkrt.errors import InputError, UnsupportedError, VkrtError
from vkrt.memory.strategies import STRATEGIES
from vkrt.method.profile import CLOCKS
from vkrt.plan.options import LoadOptions
from vkrt.plan.placement import WEIGHTS
from vkrt.plan.plan import ORDERS
from vkrt.vk import validation_findings

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNSUPPORTED = 3
EXIT_INTERRUPTED = 130  # as a shell reports the end by SIGINT, and by SIGPIPE
EXIT_PIPE = 141


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit code.

    0: done. 1: it failed (bad file, driver, memory), or with VKRT_VALIDATION=1 the validation layer
    found an error. 2: wrong arguments. 3: the program needs what vkrt does not have. 130:
    interrupted. 141: nobody reads the output any more.
    """
    return _validated(_command(_parser().parse_args(argv)))


def _command(options: Any) -> int:
    try:
        code = options.command(options)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _drop_output()
        return EXIT_PIPE
    except UnsupportedError as error:
        return _fail(error, EXIT_UNSUPPORTED)
    except InputError as error:
        return _fail(_by_options(str(error)), EXIT_USAGE)
    except (VkrtError, OSError) as error:
        if isinstance(error, OSError):
            _drop_output()  # it may be the output that cannot be written
        return _fail(error, EXIT_FAILED)
    except KeyboardInterrupt:
        return _fail("interrupted", EXIT_INTERRUPTED)


def _fail(error: Any, code: int) -> int:
    with suppress(BrokenPipeError):
        print(f"vkrt: {error}", file=sys.stderr)
    return code


# What messages for callers in Python call differently.
_OPTIONS = (("memory_budget", "budget"), ("stream_lookahead", "lookahead"),
            ("pipeline_cache", "pipeline-cache"), ("packed", "packed"), ("storage", "storage"),
            ("weights", "weights"))


def _by_options(message: str) -> str:
    """A message about an argument in the words of the command line."""
    for argument, option in _OPTIONS:
        message = re.sub(rf"\b{argument}=", f"--{option} ", message)
    if message.startswith("no method "):
        message += "; choose one with --method"
    return message


def _validated(code: int) -> int:
    """Counts what the validation layer said, and lets its errors decide the exit code."""
    findings = validation_findings()
    if findings:
        errors = sum(f.times for f in findings if f.error)
        warnings = sum(f.times for f in findings if not f.error)
        print(f"vkrt: messages of the validation layer: errors {errors}, warnings {warnings}; the "
              "first of each kind is above", file=sys.stderr)
        for finding in findings:
            print(f"{finding.times:>8} x {finding.id or finding.text}", file=sys.stderr)
        return code or (EXIT_FAILED if errors else 0)
    return code


def _drop_output() -> None:
    """Keeps Python from writing the rest at its end, which would fail once more."""
    try:
        sys.stdout.flush()
    except (AttributeError, OSError):
        with suppress(AttributeError, OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vkrt", description="Runs ExecuTorch programs on Vulkan in the least memory.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    devices = commands.add_parser("devices", help="list the Vulkan devices")
    devices.set_defaults(command=_devices)

    info = commands.add_parser("info", help="what a program is and how much memory it will take")
    info.set_defaults(command=_info)
    info.add_argument("model", help="a .pte file")

    run = commands.add_parser("run", help="run a program once")
    run.set_defaults(command=_run)
    run.add_argument("model", help="a .pte file")
    run.add_argument("--input", action="append", default=[], metavar="FILE",
                     help=".npy, .npz (arrays in order) or a picture (as 1x3xHxW in 0..1); "
                          "once per input; without any, zeros of the largest sizes")
    run.add_argument("--output", metavar="FILE",
                     help=".npz for all outputs, .npy or .png for the first")
    run.add_argument("--method", default="forward", help="default: forward")
    run.add_argument("--memory", action="store_true", help="print the memory table")
    run.add_argument("--budget", metavar="BYTES",
                     help="the most device memory to use, such as 300MB: streams what does not fit")
    run.add_argument("--explain-weights", action="store_true",
                     help="print the way of every weight, and why")
    run.add_argument("--profile", action="store_true",
                     help="then run it again, timing every step, and print the table")
    run.add_argument("--clock", default="auto", choices=CLOCKS,
                     help="of the profile: the device's timestamps or the host's clock")
    run.add_argument("--trace", metavar="FILE",
                     help="write the load and a profiled run for chrome://tracing or Perfetto")
    info.add_argument("--budget", metavar="BYTES", nargs="?", const="",
                      help="also print the smallest budget that the program runs in, and with "
                           "BYTES what it does in that one")

    info.add_argument("--verify", action="store_true",
                      help="also read all constants and compare them with their names, which are "
                           "the sha256 of their bytes")

    pack = commands.add_parser("pack", help="save packed weights, so that loads need not pack them")
    pack.set_defaults(command=_pack)
    pack.add_argument("model", help="a .pte file")
    pack.add_argument("--output", metavar="FILE", help="default: the model's name and .vkpack")
    pack.add_argument("--check", action="store_true",
                      help="write nothing, but read the file that is there and compare checksums")

    bench = commands.add_parser("bench", help="measure loading and running programs")
    bench.set_defaults(command=_bench)
    bench.add_argument("models", nargs="+", metavar="model", help="a .pte file")
    bench.add_argument("--runs", type=int, default=10, help="default: 10")
    bench.add_argument("--method", default="forward", help="default: forward")
    bench.add_argument("--budget", metavar="BYTES", help="the most device memory to use")
    bench.add_argument("--against", metavar="REFERENCE",
                       help="also time a module of PyTorch, and compare the outputs: "
                            "torch:MODEL.pt2, torch:FILE.py:FUNCTION or torch:MODULE:FUNCTION "
                            "(a function that returns the module)")
    for command in (info, run, bench, pack):
        command.add_argument("--storage", default="auto",
                             choices=("auto", "texel", "buffer", "texture3d"))
        command.add_argument("--device", help="index or part of the name of a device")
        command.add_argument("--data", action="append", default=[], metavar="FILE",
                             help="a .ptd file with constants of the model; once per file")
    for command in (info, run, bench):
        command.add_argument("--order", default="lazy", choices=ORDERS)
        command.add_argument("--weights", default="auto", choices=WEIGHTS,
                             help="the way of the weights to the kernels (default: auto)")
        command.add_argument("--lookahead", type=int, metavar="N",
                             help="layers that streamed weights are loaded ahead of their use")
        command.add_argument("--prefetch", default="auto", choices=("auto", *STRATEGIES),
                             help="how the file is read (default: auto)")
        command.add_argument("--winograd", default="auto", choices=WINOGRAD,
                             help="3x3 convolutions in a transformed domain (default: auto)")
        command.add_argument("--packed", default="auto", metavar="FILE",
                             help="the file of packed weights, or off (default: the one beside the "
                                  "model)")
    for command in (info, run, bench):
        command.add_argument("--pipeline-cache", default="auto", metavar="FILE",
                             help="where the driver's compiled pipelines are kept, or off "
                                  "(default: in the user's cache folder)")
    for command in (devices, info, run, bench, pack):
        command.add_argument("--json", action="store_true", help="machine-readable output")
    return parser


def _load_options(options: Any) -> LoadOptions:
    return LoadOptions(storage=options.storage, order=options.order, weights=options.weights,
                       memory_budget=options.budget or None, stream_lookahead=options.lookahead,
                       prefetch=options.prefetch, packed=options.packed,
                       winograd=options.winograd, pipeline_cache=options.pipeline_cache)


def _device(options: Any) -> Any:
    name = options.device
    return int(name) if name is not None and name.isdigit() else name


def _print(options: Any, data: Any, text: str) -> None:
    print(json.dumps(data, indent=2) if options.json else text)


def _devices(options: Any) -> int:
    from dataclasses import asdict

    from vkrt.vk.device import devices

    found = devices()
    lines = []
    for device in found:
        lines.append(f"{device.index}: {device.name} ({device.type}, Vulkan {device.api_version}, "
                     f"{device.driver_name} {device.driver_info})")
        for heap in device.heaps:
            kind = "device-local" if heap["device_local"] else "host"
            lines.append(f"   {heap['size'] / 2**30:.2f} GiB {kind}")
    _print(options, [asdict(d) for d in found], "\n".join(lines) or "no Vulkan device")
    return 0


def _info(options: Any) -> int:
    from vkrt.cli.info import describe, text
    from vkrt.files import verify
    from vkrt.program import Description

    description = Description(options.model, options.data)
    try:
        methods = {name: describe(description, name, _device(options), _load_options(options),
                                  options.budget is not None)
                   for name in description.method_names}
    finally:
        description.close()
    result = {"file": options.model, "methods": methods}
    lines = [text(name, data) for name, data in methods.items()]
    if options.verify:
        result["verified"] = verify(options.model, options.data)
        lines.append(f"{result['verified']} constants have the bytes that their names say")
    _print(options, result, "\n".join(lines))
    return EXIT_UNSUPPORTED if any("unsupported" in data for data in methods.values()) else 0


def _bench(options: Any) -> int:
    from vkrt.cli.bench_command import describe

    _print(options, *describe(options, _device(options), _load_options(options)))
    return 0


def _pack(options: Any) -> int:
    from vkrt.cli.pack import describe

    _print(options, *describe(options, _device(options)))
    return 0


def _run(options: Any) -> int:
    import vkrt
    from vkrt.cli.trace import write_trace

    progress = sys.stderr.isatty() and not options.json
    if progress:
        print(f"loading {options.model} ..", end="\r", file=sys.stderr, flush=True)
    start = time.perf_counter()
    with vkrt.Program(options.model, _device(options), _load_options(options),
                      options.data) as program:
        loaded = time.perf_counter()
        metadata = program.metadata(options.method)
        arrays = _inputs(options.input, metadata)
        if progress:
            print(f"running on {program.device.info.name} ..", end="\r", file=sys.stderr,
                  flush=True)
        began = time.perf_counter()
        outputs = program.run(*arrays, method=options.method)
        done = time.perf_counter()
        if options.output:
            _save(options.output, outputs)
        data = {"device": program.device.info.name,
                "outputs": [_summary(o) for o in outputs],
                "load_ms": round((loaded - start) * 1e3, 2),
                "run_ms": round((done - began) * 1e3, 2),
                "memory": program.memory.as_dict()}
        lines = [f"{data['device']}: loaded in {data['load_ms']:.1f} ms, first run "
                 f"{data['run_ms']:.1f} ms"]
        lines += [f"output {i}: {s}" for i, s in enumerate(data["outputs"])]
        if options.output:
            lines.append(f"wrote {options.output}")
        if options.memory:
            lines += ["", program.memory.table()]
        if options.explain_weights:
            lines += ["", program.memory.weights_table()]
        if options.profile or options.trace:
            profile = program.profile(*arrays, method=options.method, clock=options.clock)
            if options.trace:
                write_trace(options.trace, program.memory, profile)
                lines.append(f"wrote {options.trace}")
            if options.profile:
                data["profile"] = profile.as_dict()
                lines += ["", program.memory.stopwatch.table(), "", profile.table()]
        _print(options, data, "\n".join(lines))
    return 0


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
        return [np.zeros(i.sizes, i.dtype) for i in metadata.inputs]
    arrays: list[np.ndarray] = []
    for name in files:
        suffix = Path(name).suffix.lower()
        try:
            if suffix == ".npz":
                with np.load(name) as archive:
                    keys = [k for k in archive.files if k.startswith("in")] or archive.files
                    arrays += [archive[k] for k in keys]
            elif suffix == ".npy":
                arrays.append(np.load(name))
            else:
                arrays.append(_picture(name, metadata.inputs[len(arrays)]
                                       if len(arrays) < len(metadata.inputs) else None))
        except (ValueError, EOFError) as error:
            raise InputError(f"{name}: {error}") from error
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


def _save(name: str, outputs: list[Any]) -> None:
    suffix = Path(name).suffix.lower()
    if suffix == ".npz":
        np.savez(name, **{f"out{i}": o for i, o in enumerate(outputs)})
    elif suffix == ".npy":
        np.save(name, outputs[0])
    elif suffix == ".png":
        from PIL import Image

        array = np.asarray(outputs[0])
        if array.ndim != 4 or array.shape[0] != 1 or array.shape[1] not in (1, 3):
            raise InputError(f"{name}: output 0 is {list(array.shape)}, not a picture "
                             "[1, 3, H, W] or [1, 1, H, W]")
        pixels = (array[0].clip(0, 1) * 255).round().astype(np.uint8).transpose(1, 2, 0)
        Image.fromarray(pixels.squeeze()).save(name)
    else:
        raise InputError(f"{name}: expected a name ending in .npz, .npy or .png")

