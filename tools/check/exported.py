"""Do random modules, as PyTorch exports them, give PyTorch's numbers, in the planned bytes?

    python tools/export/random_modules.py FOLDER --count 200      (with PyTorch)
    python tools/check/exported.py FOLDER [--only NUMBER ..]

Runs on the driver that VK_DRIVER_FILES says. Each NUMBER.pte is loaded in several ways (WAYS), and
runs the calls of its NUMBER.npz twice. A line is printed for each program and way in which a result
differs by a relative L2 error of 1e-5 or more (2e-3 with fp16 in it; more where PyTorch's own
roundings make as much of a difference), the second results have other bits, or the memory is not as
planned. What vkrt refuses (UnsupportedError) is counted apart. The last line has the figures. Exits
1 if a program was wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import vkrt

TESTS = Path(__file__).resolve().parent.parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from support import calls_of, numbered, relative_l2  # noqa: E402

# The second load is by the plan that the first one kept.
WAYS: dict[str, dict[str, str]] = {
    "default": {}, "cached plan": {}, "fusions": {"fusions": "off"}, "speed": {"prefer": "speed"},
    "memory": {"prefer": "memory"}, "texel": {"storage": "texel"}, "buffer": {"storage": "buffer"},
    "texture3d": {"storage": "texture3d"}, "smallest": {"memory_budget": "smallest"},
    "compiled": {}}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", type=int, nargs="+", help="these programs (default: all)")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    with vkrt.Device.open() as device, tempfile.TemporaryDirectory() as plans:
        for number in options.only or sorted(int(p.stem) for p in options.folder.glob("*.pte")):
            outcome = "right"
            faults: dict[str, list[str]] = defaultdict(list)
            for way in WAYS:
                try:
                    check(options.folder / f"{number}.pte", way, device, Path(plans))
                except vkrt.UnsupportedError as error:
                    if way != "compiled":
                        faults = {f"refused: {' '.join(str(error).split())}": ["all"]}
                        outcome = "refused"
                        break
                except Exception as error:
                    faults[f"{type(error).__name__}: {' '.join(str(error).split())}"].append(way)
                    outcome = "wrong"
            for fault, ways in faults.items():
                named = "all" if len(ways) == len(WAYS) else ", ".join(ways)
                print(f"{number} {named}: {fault}", flush=True)
            counts[outcome] += 1
    print(f"{counts.total()} programs: {', '.join(f'{n} {what}' for what, n in counts.items())}")
    return int(counts["wrong"] > 0)


def check(path: Path, way: str, device: Any, folder: Path) -> None:
    """Raises an error if anything is wrong with a program that is loaded in one of the ways."""
    calls = calls_of(path)
    with np.load(path.with_suffix(".npz")) as archive:
        is_fp16 = "force_fp16" in archive["options"]
        own = [numbered(archive, f"call{number}_own") for number in range(len(calls))]
    is_fp16 |= "float16" in path.with_suffix(".txt").read_text("utf-8")
    if way == "compiled":
        shapes = list(dict.fromkeys(tuple(x.shape for x in inputs) for inputs, _ in calls))
        compiled = folder / "program.vkx"
        vkrt.compile(path, compiled, device=device, shapes=shapes if len(shapes) > 1 else ())
        path = compiled
    plans = folder if way in ("default", "cached plan") else "off"
    with vkrt.load(path, device, plan_cache=plans, **WAYS[way]) as program:
        first = [arrays(program.run(*inputs)) for inputs, _ in calls]
        program.reset_state()
        second = [arrays(program.run(*inputs)) for inputs, _ in calls]
        metadata, memory = program.metadata(), program.memory
    # The exporter makes int64 of some integers, and says so in the file.
    dtypes = [output.dtype for output in metadata.outputs if output.dtype != "none"]
    for (_, expected), results, others, errors in zip(calls, first, second, own):
        for x, y, dtype, error in zip(results, expected, dtypes, errors, strict=True):
            if x.dtype == dtype == "int64" and y.dtype.kind in "iu":
                y = y.astype("int64")
            assert (x.shape, x.dtype) == (y.shape, y.dtype), (
                f"{x.dtype}{x.shape}, not {y.dtype}{y.shape}")
            found = relative_l2(x, y)
            limit = max(2e-3 if is_fp16 else 1e-5, 8 * error)
            assert found < limit if y.dtype.kind == "f" else error or not found, (
                f"differs by {found:.1e} (PyTorch's own by {error:.1e})")
        assert [x.tobytes() for x in results] == [x.tobytes() for x in others], (
            "other bits the second time")
    is_dynamic = any(info.dynamic_dims for info in metadata.inputs)
    assert memory.measured_peak == memory.planned_peak or (
        is_dynamic and memory.measured_peak < memory.planned_peak), (
        f"{memory.measured_peak} bytes, not the planned {memory.planned_peak}")


def arrays(results: Any) -> list[np.ndarray]:
    """Tensors and numbers; None says nothing."""
    return [np.asarray(x) for x in results if x is not None]


if __name__ == "__main__":
    sys.exit(main())
