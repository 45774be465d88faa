"""Do random modules, as PyTorch exports them, give PyTorch's numbers, in the planned bytes?

    python tools/export/random_modules.py --count 200 --out FOLDER     (with PyTorch)
    python tools/check/exported.py FOLDER [--only NUMBER ..]

Runs on the driver that VK_DRIVER_FILES says. Each NUMBER.pte is loaded with default options, twice
(the second time by its cached plan), without fusions, with each other `prefer`, in each storage,
within the smallest budget, and compiled; every call that the NUMBER.npz has runs, and all of them
once more, which has to give the same bits. A line is printed for each program and way to load it
that fails, whose results differ by a relative L2 error of 1e-5 or more (2e-3 with fp16 in it; more
where PyTorch's own roundings make as much of a difference), or whose memory is not as planned. What
vkrt refuses (UnsupportedError) is counted apart. The last line has the figures. Exits 1 if a
program was wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import vkrt

TESTS = Path(__file__).resolve().parent.parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from support import calls_of, numbered, relative_l2  # noqa: E402

WAYS: dict[str, dict[str, str]] = {
    "default": {}, "again": {}, "fusions": {"fusions": "off"}, "speed": {"prefer": "speed"},
    "memory": {"prefer": "memory"}, "texel": {"storage": "texel"}, "buffer": {"storage": "buffer"},
    "texture3d": {"storage": "texture3d"}, "smallest": {"memory_budget": "smallest"},
    "compiled": {}}
Calls = list[tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", type=int, nargs="+", help="these programs (default: all)")
    parser.add_argument("--first", type=int, default=0, help="programs from this number on")
    parser.add_argument("--ways", default=",".join(WAYS), help=f"default: {','.join(WAYS)}")
    options = parser.parse_args()
    numbers = options.only or sorted(int(p.stem) for p in options.folder.glob("*.pte"))
    counts: Counter[str] = Counter()
    with vkrt.Device.open() as device, tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            if number < options.first:
                continue
            path = options.folder / f"{number}.pte"
            outcome, faults = "right", {}
            for way in options.ways.split(","):
                try:
                    fault = check(path, way, device, Path(folder))
                except vkrt.UnsupportedError as error:
                    if way == "compiled":
                        continue
                    outcome = "refused"
                    print(f"{number}: {' '.join(str(error).split())}", flush=True)
                    break
                except Exception as error:
                    fault = f"{type(error).__name__}: {' '.join(str(error).split())}"
                if fault:
                    outcome = "wrong"
                    faults.setdefault(fault, []).append(way)
            for fault, ways in faults.items():
                named = "all" if len(ways) == len(WAYS) else ", ".join(ways)
                print(f"{number} {named}: {fault}", flush=True)
            counts[outcome] += 1
    print(f"{counts.total()} programs: {', '.join(f'{n} {what}' for what, n in counts.items())}")
    return int(counts["wrong"] > 0)


def check(path: Path, way: str, device: Any, folder: Path) -> str:
    """What is wrong with a program loaded in one of the ways; "" if nothing is."""
    with np.load(path.with_suffix(".npz")) as archive:
        options = list(archive["options"])
        calls = [(*call, numbered(archive, f"call{number}_own"))
                 for number, call in enumerate(calls_of(path))]
    source = path.with_suffix(".txt").read_text("utf-8")
    limit = 2e-3 if "force_fp16" in options or "float16" in source else 1e-5
    shapes = list(dict.fromkeys(tuple(x.shape for x in inputs) for inputs, _, _ in calls))
    if way == "compiled":
        compiled = folder / "program.vkx"
        vkrt.compile(path, compiled, device=device, shapes=shapes if len(shapes) > 1 else ())
        path = compiled
    plans = folder if way in ("default", "again") else "off"
    with vkrt.load(path, device, plan_cache=plans, **WAYS[way]) as program:
        results = [program.run(*inputs) for inputs, _, _ in calls]
        metadata = program.metadata()
        is_dynamic = any(info.dynamic_dims for info in metadata.inputs)
        program.reset_state()
        again = [program.run(*inputs) for inputs, _, _ in calls]
        memory = program.memory
    for number, (call, first, second) in enumerate(zip(calls, results, again)):
        fault = compare(call, arrays(first), limit, [o.dtype for o in metadata.outputs])
        if fault:
            return f"call {number}: {fault}"
        if not all(np.array_equal(a, b, equal_nan=True)
                   for a, b in zip(arrays(first), arrays(second))):
            return f"call {number}: other bits the second time"
    if memory.measured_peak > memory.planned_peak or (
            not is_dynamic and memory.measured_peak != memory.planned_peak):
        return f"{memory.measured_peak} bytes, not the planned {memory.planned_peak}"
    return ""


def arrays(results: Any) -> list[np.ndarray]:
    """Tensors and numbers; None says nothing."""
    return [np.asarray(x) for x in results if x is not None]


def compare(call: Any, results: list[np.ndarray], limit: float, dtypes: list[str]) -> str:
    """How results differ from what is expected; "" if they do not. The exporter makes int64 of some
    integers, and says so in the file: `dtypes`."""
    _, expected, own = call
    dtypes = [dtype for dtype in dtypes if dtype != "none"]
    if len(results) != len(expected):
        return f"{len(results)} results, not {len(expected)}"
    for number, (x, y, error) in enumerate(zip(results, expected, own)):
        if x.dtype == dtypes[number] == "int64" and y.dtype.kind in "iu":
            y = y.astype("int64")
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            return f"output {number} is {x.dtype}{x.shape}, not {y.dtype}{y.shape}"
        if y.dtype.kind == "f":
            found = relative_l2(x, y)
            if not found < max(limit, 8 * error):
                return f"output {number} differs by {found:.1e} (PyTorch's own by {error:.1e})"
        elif not error and not np.array_equal(x, y):
            return f"output {number} differs at {np.mean(x != y):.2f} of its {x.size} elements"
    return ""


if __name__ == "__main__":
    sys.exit(main())
