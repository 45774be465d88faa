"""Runs programs on their reference inputs and compares with eager PyTorch's outputs.

    python tools/check_models.py                      every program of VKRT_MODELS with reference
    python tools/check_models.py unet-base model.pte  by name there, or by path
    python tools/check_models.py --storages texel,texture3d --runs 5

A program NAME.pte is compared with NAME.npz beside it (inputs in0.., outputs out0..), where that
exists; `tools/export_zoo.py` makes such pairs. One line is printed for each program and storage:
the largest relative L2 error and the largest absolute error of its outputs, the CPU time of a run
(user and system, all threads) and the steps of one. Exits 1 if a program fails or an error is
larger than 1e-5 (2e-3 where the name says fp16). Programs with operators that vkrt lacks are listed
with them, and counted as failed with --strict.

The driver is chosen as usual, by VK_DRIVER_FILES or --device.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import vkrt

LIMITS = {"fp32": 1e-5, "fp16": 2e-3}
STORAGES = "texel,buffer,texture3d"


def main() -> int:
    options = _options()
    failed = 0
    print(f"{'program':26} {'storage':9} {'rel. L2':>9} {'max error':>9} {'CPU ms':>8} "
          f"{'steps':>6}")
    for path in _programs(options.programs):
        for storage in options.storages.split(","):
            try:
                line, good = check(path, storage, options)
            except vkrt.UnsupportedError as error:
                # Missing operators are missing in every storage.
                print(f"{path.stem:26} lacks: {_short(error)}", flush=True)
                failed += options.strict
                break
            except vkrt.VkrtError as error:
                line, good = f"{type(error).__name__}: {_short(error)}", False
            print(f"{path.stem:26} {storage:9} {line}{'' if good else '  FAILED'}", flush=True)
            failed += not good
    return int(failed > 0)


def check(path: Path, storage: str, options) -> tuple[str, bool]:
    """The figures of a program in a storage as text, and whether its errors are small enough."""
    reference = np.load(path.with_suffix(".npz"))
    inputs = [reference[f"in{i}"] for i in range(_count(reference, "in"))]
    limit = LIMITS["fp16" if "fp16" in path.stem else "fp32"]
    with vkrt.load(path, options.device, storage=storage, winograd=options.winograd,
                   data_path=sorted(path.parent.glob("*.ptd"))) as program:
        wanted = program.metadata().inputs
        inputs = [x.astype(w.dtype) if w.dtype == "float16" else x
                  for x, w in zip(inputs, wanted)]
        outputs = program.run(*inputs)
        seconds = []
        for _ in range(options.runs):
            start = time.process_time()
            program.run(*inputs)
            seconds.append(time.process_time() - start)
        steps = len(program.load_method("forward").work.steps)
    expected = [reference[f"out{i}"] for i in range(_count(reference, "out"))]
    if [x.shape for x in outputs] != [x.shape for x in expected]:
        return f"shapes {[x.shape for x in outputs]}, not {[x.shape for x in expected]}", False
    errors = [_errors(a, b) for a, b in zip(outputs, expected)]
    relative, largest = (max(column) for column in zip(*errors))
    line = (f"{relative:9.2e} {largest:9.2e} {1e3 * statistics.median(seconds):8.1f} "
            f"{steps:6}")
    return line, relative <= limit


def _errors(result: np.ndarray, expected: np.ndarray) -> tuple[float, float]:
    """|result - expected| / |expected| and the largest |difference|; infinite for NaN."""
    difference = result.astype(np.float64) - expected.astype(np.float64)
    if not np.isfinite(difference).all():
        return float("inf"), float("inf")
    norm = float(np.linalg.norm(expected.astype(np.float64)))
    return float(np.linalg.norm(difference)) / (norm or 1.0), float(np.abs(difference).max())


def _count(reference, prefix: str) -> int:
    return sum(name.startswith(prefix) and name[len(prefix):].isdigit()
               for name in reference.files)


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 400 else text[:397] + "..."


def _programs(names: list[str]) -> list[Path]:
    folders = [Path(p) for p in os.environ.get("VKRT_MODELS", "").split(os.pathsep) if p]
    for folder in folders:
        if not folder.is_dir():
            raise SystemExit(f"check_models: VKRT_MODELS names {folder}, which is not a folder")
    if not names:
        return [path for folder in folders for path in sorted(folder.glob("*.pte"))
                if _is_pair(path)]
    return [_find(name, folders) for name in names]


def _is_pair(path: Path) -> bool:
    """Whether the program has a reference of one run."""
    if not path.with_suffix(".npz").is_file():
        return False
    files = np.load(path.with_suffix(".npz")).files
    return "in0" in files and "out0" in files


def _find(name: str, folders: list[Path]) -> Path:
    for path in (Path(name), *(folder / f"{name}.pte" for folder in folders)):
        if path.suffix == ".pte" and path.is_file():
            return path
    raise SystemExit(f"check_models: {name}: no such file, and no {name}.pte in VKRT_MODELS")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", nargs="*", help="names in VKRT_MODELS or paths (default: all)")
    parser.add_argument("--storages", default=STORAGES, help=f"default: {STORAGES}")
    parser.add_argument("--runs", type=int, default=3, help="timed runs, after one that is not")
    parser.add_argument("--device", help="as for vkrt.load")
    parser.add_argument("--winograd", default="auto", help="as for vkrt.load")
    parser.add_argument("--strict", action="store_true", help="missing operators are failures")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
