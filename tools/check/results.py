"""Are the results of programs those of eager PyTorch, and what do programs take?

    python tools/check/results.py                      every program of VKRT_MODELS with reference
    python tools/check/results.py unet-base model.pte  by name there, or by path
    python tools/check/results.py --storages texel,texture3d --runs 5

A program NAME.pte is compared with NAME.npz beside it (inputs in0.., outputs out0..; exact_out0..
where quantization makes PyTorch compute something else), NAME-fp16.pte with NAME.npz if it has none
of its own; `tools/export/zoo.py` makes such pairs. One line is printed for each program and
storage: the largest relative L2 error and the largest absolute error of its outputs, milliseconds
of the load, of the first run and of later ones (medians, CPU of all threads too), the steps of one,
and device memory in MB: weights, activations, staging, the planned and the measured peak. Exits 1
if a program fails, an error is larger than 1e-5 (2e-3 where the name says fp16) or the peak is
larger than planned. Programs with operators that vkrt lacks are listed with them, and counted as
failed with --strict.

The driver is chosen as usual, by VK_DRIVER_FILES or --device.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path

import numpy as np

import vkrt
from vkrt.cli.bench import repeated

LIMITS = {"fp32": 1e-5, "fp16": 2e-3}
STORAGES = "texel,buffer,texture3d"
HEADS = (("program", -26), ("storage", -9), ("rel. L2", 8), ("max error", 9), ("load", 6),
         ("first", 6), ("later", 8), ("CPU", 8), ("steps", 6), ("weights", 8), ("activ.", 8),
         ("staging", 8), ("planned", 8), ("peak", 8))

Arrays = list[np.ndarray]


def main() -> int:
    options = _options()
    failed = 0
    print(_line([name for name, _ in HEADS]))
    for path in _programs(options.programs):
        for storage in options.storages.split(","):
            try:
                cells, good = check(path, storage, options)
            except vkrt.UnsupportedError as error:
                # Missing operators are missing in every storage.
                print(_line([path.stem, f"lacks: {_short(error)}"]), flush=True)
                failed += options.strict
                break
            except vkrt.VkrtError as error:
                cells, good = [f"{type(error).__name__}: {_short(error)}"], False
            line = _line([path.stem, storage, *cells])
            print(line if good else f"{line}  FAILED", flush=True)
            failed += not good
    return int(failed > 0)


def _line(cells: list[str]) -> str:
    return " ".join(cell.ljust(-width) if width < 0 else cell.rjust(width)
                    for cell, (_, width) in zip(cells, HEADS))


def check(path: Path, storage: str, options) -> tuple[list[str], bool]:
    """The figures of a program in a storage, and whether its errors are small enough."""
    inputs, expected = reference(path)
    limit = LIMITS["fp16" if "fp16" in path.stem else "fp32"]
    start = time.perf_counter()
    with vkrt.load(path, options.device, storage=storage, winograd=options.winograd,
                   data_path=sorted(path.parent.glob("*.ptd"))) as program:
        loaded = time.perf_counter()
        inputs = [x.astype(i.dtype) for x, i in zip(inputs, program.metadata().inputs)]
        outputs = program.run(*inputs)
        first = time.perf_counter()
        times = repeated(lambda: program.run(*inputs), options.runs)
        steps = len(program.load_method("forward").work.steps)
        memory = program.memory
    if [x.shape for x in outputs] != [x.shape for x in expected]:
        return [f"shapes {[x.shape for x in outputs]}, not {[x.shape for x in expected]}"], False
    relative, largest = (max(column) for column in zip(*map(_errors, outputs, expected)))
    cells = [f"{relative:.1e}", f"{largest:.1e}", f"{(loaded - start) * 1e3:.0f}",
             f"{(first - loaded) * 1e3:.0f}", f"{times.median * 1e3:.1f}", f"{times.cpu * 1e3:.1f}",
             str(steps), *(f"{nbytes / 1e6:.3f}" for nbytes in (
                 memory.weights, memory.activations, memory.staging, memory.planned_peak,
                 memory.measured_peak))]
    return cells, relative <= limit and memory.measured_peak <= memory.planned_peak


def reference(path: Path) -> tuple[Arrays, Arrays]:
    """Inputs and expected outputs of a program."""
    with np.load(_archive(path)) as data:
        def numbered(prefix: str) -> Arrays:
            count = sum(re.fullmatch(rf"{prefix}\d+", name) is not None for name in data.files)
            return [data[f"{prefix}{i}"] for i in range(count)]

        return numbered("in"), numbered("exact_out" if "exact_out0" in data.files else "out")


def _archive(path: Path) -> Path:
    own = path.with_suffix(".npz")
    return own if own.exists() else own.with_stem(own.stem.replace("-fp16", ""))


def _errors(result: np.ndarray, expected: np.ndarray) -> tuple[float, float]:
    """|result - expected| / |expected| and the largest |difference|; infinite for NaN."""
    difference = result.astype(np.float64) - expected.astype(np.float64)
    if not np.isfinite(difference).all():
        return float("inf"), float("inf")
    norm = float(np.linalg.norm(expected.astype(np.float64)))
    return float(np.linalg.norm(difference)) / (norm or 1.0), float(np.abs(difference).max())


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 400 else text[:397] + "..."


def _programs(names: list[str]) -> list[Path]:
    folders = [Path(p) for p in os.environ.get("VKRT_MODELS", "").split(os.pathsep) if p]
    for folder in folders:
        if not folder.is_dir():
            raise SystemExit(f"results: VKRT_MODELS names {folder}, which is not a folder")
    if not names:
        return [path for folder in folders for path in sorted(folder.glob("*.pte"))
                if _has_reference(path)]
    return [_find(name, folders) for name in names]


def _has_reference(path: Path) -> bool:
    """Whether there are the arrays of one run."""
    return _archive(path).is_file() and {"in0", "out0"} <= set(np.load(_archive(path)).files)


def _find(name: str, folders: list[Path]) -> Path:
    for path in (Path(name), *(folder / f"{name}.pte" for folder in folders)):
        if path.suffix == ".pte" and path.is_file():
            return path
    raise SystemExit(f"results: {name}: no such file, and no {name}.pte in VKRT_MODELS")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", nargs="*", help="names in VKRT_MODELS or paths (default: all)")
    parser.add_argument("--storages", default=STORAGES, help=f"default: {STORAGES}")
    parser.add_argument("--runs", type=int, default=10, help="later runs (default: 10)")
    parser.add_argument("--device", help="as for vkrt.load")
    parser.add_argument("--winograd", default="auto", help="as for vkrt.load")
    parser.add_argument("--strict", action="store_true", help="missing operators are failures")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
