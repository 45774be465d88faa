"""Results, speed and memory of programs with a reference beside them (NAME.npz: in0.., out0..).

    python tools/results.py MODEL.pte ...

Prints a table for the README: relative L2 error of the worst output against the reference, CPU and
wall milliseconds per inference (median of 10 after 2, CPU of all threads), load and first run, and
device memory in MB: planned peak, measured peak, and the peak of order="eager".
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np

import vkrt

RUNS, WARM = 10, 2


def cpu_ms() -> float:
    """User and system milliseconds of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def reference(path: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Inputs and expected outputs of a program."""
    archive = path.with_suffix(".npz")
    if not archive.exists():  # a variant in another precision has the same reference
        archive = path.with_name(path.name.replace("-fp16", "").replace(".pte", ".npz"))
    with np.load(archive) as data:
        inputs = [data[f"in{i}"] for i in range(sum(k.startswith("in") for k in data.files))]
        prefix = "exact_out" if "exact_out0" in data.files else "out"
        count = sum(k.startswith(prefix) for k in data.files)
        return inputs, [data[f"{prefix}{i}"] for i in range(count)]


def worst_error(results: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """The largest relative L2 error of the outputs."""
    return max(float(np.linalg.norm(r.astype(np.float64) - e) / (np.linalg.norm(e) or 1))
               for r, e in zip(results, expected))


def measure(path: Path) -> str:
    """One row of the table."""
    inputs, expected = reference(path)
    start = time.perf_counter()
    with vkrt.load(path) as program:
        load = time.perf_counter() - start
        inputs = [x.astype(i.dtype) for x, i in zip(inputs, program.metadata().inputs)]
        start = time.perf_counter()
        results = program.run(*inputs)
        first = time.perf_counter() - start
        walls, cpus = [], []
        for _ in range(WARM + RUNS):
            start, before = time.perf_counter(), cpu_ms()
            program.run(*inputs, out=results)
            walls.append((time.perf_counter() - start) * 1e3)
            cpus.append(cpu_ms() - before)
        memory = program.memory
    with vkrt.load(path, order="eager") as program:
        eager = program.memory.measured_peak
    return (f"| {path.stem} | {worst_error(results, expected):.1e} "
            f"| {np.median(cpus[WARM:]):.1f} / {np.median(walls[WARM:]):.1f} "
            f"| {load * 1e3:.0f} + {first * 1e3:.0f} "
            f"| {memory.weights / 1e6:.2f} | {memory.activations / 1e6:.2f} "
            f"| {memory.staging / 1e6:.2f} | {memory.planned_peak / 1e6:.3f} "
            f"| {memory.measured_peak / 1e6:.3f} | {eager / 1e6:.3f} |")


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    device = vkrt.devices()[0]
    print(f"{device.name}, {device.driver_name} {device.driver_info}\n")
    print("| program | error | CPU / wall ms | load + first run ms | W | A | c | planned peak "
          "| measured peak | eager peak |")
    print("| --- |" + " --- |" * 9)
    for name in sys.argv[1:]:
        print(measure(Path(name)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
