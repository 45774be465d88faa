"""Do compiled programs in a host without Python compute the same bits, in the same bytes of memory?

    python tools/check/without_python.py                     every program of VKRT_MODELS and tests
    python tools/check/without_python.py unet.pte mlp.pte --storages buffer
    python tools/check/without_python.py --weights copy      and other options of `vkrt compile`

Each program is compiled in each storage, and each of its methods is run twice by a host in C
(without_python.c beside this file) and through Python from the `.pte` file, on the driver that
VK_DRIVER_FILES says. The inputs are those of NAME.npz where it has them, else random numbers;
dynamic inputs have the sizes of their examples. One line is printed for each: the planned and the
measured peak in bytes in the host, and what differs, if anything does. Exits 1 if a method's bits
differ, if its memory is not as planned or more than through Python (with dynamic inputs and a
budget: than that), or if a Python is in the host's process. What `vkrt compile` refuses is listed,
and is no failure.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import vkrt
from vkrt.capi.config import folder
from vkrt.compiled.compiler import compile

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent.parent / "tests" / "models"
RUNS = 2

Arrays = list[np.ndarray]


def main() -> int:
    options = _options()
    failed = 0
    with tempfile.TemporaryDirectory() as made:
        host = _host(Path(made))
        for path in options.programs or _programs(options.largest):
            for storage in options.storages.split(","):
                for line, good in _checked(path, storage, options, host, Path(made)):
                    print(f"{path.stem} {storage} {line}{'' if good else '  FAILED'}", flush=True)
                    failed += not good
    return int(failed > 0)


def _host(made: Path) -> Path:
    library = folder()
    host = made / "host"
    subprocess.run(["cc", "-O1", "-Wall", HERE / "without_python.c", "-o", host, f"-I{library}",
                    f"-L{library}", f"-Wl,-rpath,{library}", "-lvkrt"], check=True)
    return host


def _checked(path: Path, storage: str, options: argparse.Namespace, host: Path,
             made: Path) -> Iterator[tuple[str, bool]]:
    """For each method what there is to say of it, and whether it is as it should be."""
    load = {"storage": storage, "weights": options.weights, "memory_budget": options.memory_budget}
    data = sorted(path.parent.glob("*.ptd"))
    compiled = made / "program.vkx"
    try:
        with vkrt.load(path, data_path=data, **load) as program:
            names = [name for name in program.method_names if name not in program.constants]
            inputs = {name: _inputs(program, name, path) for name in names}
            values = {name: [None if info.example() is None else value for info, value
                             in zip(program.metadata(name).inputs, inputs[name])]
                      for name in names}
            expected = {name: [list(map(_array, program.run(*values[name], method=name)))
                               for _ in range(RUNS)] for name in names}
            peak = program.memory.measured_peak if len(names) == 1 else None
            first = program.metadata(names[0]).inputs
        shapes = []
        if any(info.dynamic_dims for info in first):
            shapes = [[x.shape for x in inputs[names[0]]]]
            if options.memory_budget is not None:
                # Or other nodes would be in parts than where the budget is kept for all sizes.
                # The arena then has room for these.
                shapes.append([info.sizes for info in first])
                peak = options.memory_budget
        compile(path, compiled, data_path=data, shapes=shapes, **load)
    except vkrt.VkrtError as error:
        yield f"{type(error).__name__}: {' '.join(str(error).split())[:160]}", True
        return
    for name in names:
        yield _compared(host, compiled, name, inputs[name], expected[name], peak)


def _compared(host: Path, compiled: Path, name: str, inputs: Arrays, expected: list[Arrays],
              peak: int | None) -> tuple[str, bool]:
    with tempfile.TemporaryDirectory() as scratch:
        for number, value in enumerate(inputs):
            (Path(scratch) / f"in{number}").write_bytes(value.tobytes())
        sizes = ["x".join(map(str, value.shape)) or "-" for value in inputs]
        done = subprocess.run([host, compiled, name, str(RUNS), scratch, *sizes],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{name}: exit code {done.returncode}: {done.stderr.strip()[:300]}", False
        faults = [f"output {number} of run {run} differs" for run, outputs in enumerate(expected)
                  for number, value in enumerate(outputs)
                  if (Path(scratch) / f"{run}.out{number}").read_bytes() != value.tobytes()]
    planned, measured, python = map(int, done.stdout.split())
    if planned != measured:
        faults.append("the peak is not as planned")
    if peak is not None and measured > peak:
        faults.append(f"through Python the peak is {peak}")
    if python:
        faults.append("a Python is in the process")
    return f"{name}: planned {planned}, measured {measured}; {', '.join(faults) or 'same bits'}", \
        not faults


def _inputs(program: vkrt.Program, name: str, path: Path) -> Arrays:
    known = path.with_suffix(".npz")
    descriptions = program.metadata(name).inputs
    if name == "forward" and known.is_file():
        with np.load(known) as arrays:
            if all(f"in{i}" in arrays.files for i in range(len(descriptions))):
                return [np.ascontiguousarray(arrays[f"in{i}"], info.dtype)
                        for i, info in enumerate(descriptions)]
    chance = np.random.default_rng(1)
    examples = [_array(info.example()) for info in descriptions]
    return [np.asarray(chance.standard_normal(x.shape), x.dtype)
            if x.ndim and x.dtype.kind == "f" else x
            for x in examples]


def _array(value: Any) -> np.ndarray:
    """A value as a C host has it: None is no byte."""
    return np.empty((), "V0") if value is None else np.asarray(value)


def _programs(largest: float) -> list[Path]:
    folders = [TESTS, *(Path(p) for p in os.environ.get("VKRT_MODELS", "").split(os.pathsep) if p)]
    return [path for one in folders for path in sorted(one.glob("*.pte"))
            if path.stat().st_size <= largest * 1e6]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", nargs="*", type=Path, help="(default: all)")
    parser.add_argument("--storages", default="texel,buffer,texture3d", help="default: %(default)s")
    parser.add_argument("--largest", type=float, default=1000, metavar="MB",
                        help="leaves out larger programs")
    parser.add_argument("--weights", default="auto", help="as for vkrt.load")
    parser.add_argument("--memory-budget", type=int, help="as for vkrt.load")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
