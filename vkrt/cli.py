"""The `vkrt` command: devices, info, run."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from vkrt.errors import InputError, UnsupportedError, VkrtError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNSUPPORTED = 3


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit code.

    0: done. 1: it failed (bad file, driver, memory). 2: wrong arguments. 3: the program needs what
    vkrt does not have.
    """
    options = _parser().parse_args(argv)
    try:
        return options.command(options)
    except UnsupportedError as error:
        return _fail(error, EXIT_UNSUPPORTED)
    except InputError as error:
        return _fail(error, EXIT_USAGE)
    except (VkrtError, OSError) as error:
        return _fail(error, EXIT_FAILED)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_FAILED


def _fail(error: Any, code: int) -> int:
    print(f"vkrt: {error}", file=sys.stderr)
    return code


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
                          "once per input; without any, zeros")
    run.add_argument("--output", metavar="FILE",
                     help=".npz for all outputs, .npy or .png for the first")
    run.add_argument("--method", default="forward", help="default: forward")
    run.add_argument("--memory", action="store_true", help="print the memory table")
    for command in (info, run):
        command.add_argument("--storage", default="auto",
                             choices=("auto", "texel", "buffer", "texture3d"))
        command.add_argument("--order", default="lazy", choices=("lazy", "eager"))
        command.add_argument("--device", help="index or part of the name of a device")
    for command in (devices, info, run):
        command.add_argument("--json", action="store_true", help="machine-readable output")
    return parser


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
    from vkrt.program import Description

    description = Description(options.model)
    try:
        methods = {name: _describe(description, name, options)
                   for name in description.method_names}
    finally:
        description.close()
    text = "\n".join(_info_text(name, data) for name, data in methods.items())
    _print(options, {"file": options.model, "methods": methods}, text)
    return 0


def _describe(description: Any, name: str, options: Any) -> dict[str, Any]:
    from vkrt.method import metadata_of
    from vkrt.vk.device import Device

    graph = description.graph(name)
    metadata = metadata_of(graph)
    plan_of = next(p for p in description.program.plans if p.name == name)
    data: dict[str, Any] = {
        "inputs": [f"{i.name}: {i}" for i in metadata.inputs],
        "outputs": [str(o) for o in metadata.outputs],
        "delegates": len(plan_of.delegates),
        "kernels": dict(sorted((k, v) for k, v in graph.operator_counts().items() if "::" in k)),
        "operators": dict(sorted((k, v) for k, v in graph.operator_counts().items()
                                 if "::" not in k)),
    }
    try:
        with Device.open(_device(options)) as device:
            work, plan = description.predict(name, device, options.storage, options.order)
            data |= {"device": device.info.name, "storage": work.storage,
                     "dispatches": sum(hasattr(s, "shader") for s in work.steps),
                     "weights": plan.weight_bytes, "largest_weight": plan.largest_weight,
                     "activations": plan.activation_bytes, "activations_in_file": graph.file_arena,
                     "staging": plan.staging_bytes, "peak": plan.peak_bytes, "notes": work.notes}
    except UnsupportedError as error:
        data["unsupported"] = str(error)
    return data


def _info_text(name: str, data: dict[str, Any]) -> str:
    lines = [f"method {name}"]
    lines += [f"  input   {i}" for i in data["inputs"]]
    lines += [f"  output  {o}" for o in data["outputs"]]
    lines.append(f"  {data['delegates']} delegates, {sum(data['operators'].values())} operators in "
                 f"them, {sum(data['kernels'].values())} kernels outside")
    for group in ("operators", "kernels"):
        lines += [f"    {count:>4} x {op}" for op, count in data[group].items()]
    if "unsupported" in data:
        lines.append(f"  unsupported: {data['unsupported']}")
        return "\n".join(lines)
    lines.append(f"  on {data['device']}, storage {data['storage']}: {data['dispatches']} "
                 "dispatches")
    for label, key in (("weights", "weights"), ("largest weight", "largest_weight"),
                       ("activations", "activations"), ("  by the file", "activations_in_file"),
                       ("staging", "staging"), ("predicted peak", "peak")):
        lines.append(f"    {label:<16}{data[key]:>14,} B{data[key] / 1e6:>10.2f} MB")
    lines += [f"  note: {note}" for note in data["notes"]]
    return "\n".join(lines)


def _run(options: Any) -> int:
    import vkrt

    progress = sys.stderr.isatty() and not options.json
    if progress:
        print(f"loading {options.model} ..", end="\r", file=sys.stderr, flush=True)
    start = time.perf_counter()
    with vkrt.load(options.model, _device(options), storage=options.storage,
                   order=options.order) as program:
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
                arrays.append(_picture(name, metadata.inputs[len(arrays)].sizes
                                       if len(arrays) < len(metadata.inputs) else ()))
        except (ValueError, EOFError) as error:
            raise InputError(f"{name}: {error}") from error
    return arrays


def _picture(name: str, sizes: tuple[int, ...]) -> np.ndarray:
    """A picture as float32 [1, 3, H, W] in 0..1, resized to the input's H and W if needed."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise InputError(f"{name}: reading pictures needs Pillow (pip install pillow)") from error
    if len(sizes) != 4 or sizes[0] != 1 or sizes[1] not in (1, 3):
        raise InputError(f"{name}: the input is {list(sizes)}, a picture is [1, 3, H, W] or "
                         "[1, 1, H, W]; pass a .npy file")
    try:
        with Image.open(name) as picture:
            converted = picture.convert("RGB" if sizes[1] == 3 else "L")
    except UnidentifiedImageError as error:
        raise InputError(f"{name}: not a picture, .npy or .npz file") from error
    height, width = sizes[2:]
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


if __name__ == "__main__":
    sys.exit(main())
