"""How much memory does a program take at every checkpoint of a load?

Every variant is measured in a fresh process.

    python tools/measure/footprint.py MODEL.pte ...                 a table per model
    python tools/measure/footprint.py MODEL.pte --variants map,copy these variants
    python tools/measure/footprint.py MODEL.pte --growth            growth over 300 inferences;
                                                                    exits 1 on 1 kB or more in each
    python tools/measure/footprint.py --update BASELINE.json MODEL ..   write a baseline
    python tools/measure/footprint.py --check BASELINE.json [MODEL ..]  compare; exits 1 on growth

Variants: `map` is the default of vkrt.load (what can be mapped is), `direct`, `copy` (through
staging), `eager` (copy, with everything allocated first), `stream` in the smallest budget or
`stream:300MB` in one given.

Bytes on the device are compared exactly. The growth of VmHWM, its parts (`program.memory.process`)
and the Python objects that a program keeps (`objects`, as tracemalloc counts them after the first
run, in a process of its own) are compared with tolerances. Other figures are shown.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import fresh
import numpy as np

import vkrt
import vkrt.compiler.compiler
import vkrt.dynamic.ranges
import vkrt.graph.build
import vkrt.graph.constants
import vkrt.program.program
from vkrt.report.columns import columns
from vkrt.report.process import resident

# What the driver may do between two machines with the same software, in bytes, to the whole and to
# the parts. The driver's own code is most of two of these, and is mapped as the system's cache has
# it. Device bytes are exact; the system maps pages of files by sixteen.
PROCESS_TOLERANCE = 24 << 20
PART_TOLERANCES = {"driver": 24 << 20, "program": 2 << 20, "pipelines": 16 << 20, "weights": 0,
                   "mapped": 256 << 10, "activations": 0, "rest": 4 << 20}
# Python objects are what another minor version of Python makes them.
OBJECTS_TOLERANCE = 0.15
DEVICE_FIGURES = ("weights", "pool", "staging", "activations", "planned_peak", "measured_peak",
                  "mapped", "streamed")
# Names of variants -> options of vkrt.load
VARIANTS: dict[str, dict[str, str]] = {
    "map": {"weights": "auto"},
    "direct": {"weights": "direct"},
    "copy": {"weights": "copy"},
    "eager": {"weights": "copy", "order": "eager"},
    "stream": {"weights": "stream"},
}
# The modules of a first load are imported above: figures are of programs.
ROOT = Path(__file__).resolve().parent.parent.parent
# Inferences before growth is measured (what drivers and allocators set up, they have by then),
# those over which it is, and the bytes that each of these may add.
WARM, RUNS = 50, 300
MAX_GROWTH = 1000


def main() -> int:
    options = _options()
    baseline: dict[str, Any] = {}
    if options.check:
        baseline = json.loads(Path(options.check).read_text(encoding="utf-8"))["models"]
    variants = (options.variants.split(",") if options.variants
                else list(dict.fromkeys(name for known in baseline.values() for name in known))
                or ["map", "copy", "stream"])
    for variant in variants:
        if variant.partition(":")[0] not in VARIANTS:
            print(f"footprint: --variants {variant}: expected some of {', '.join(VARIANTS)}",
                  file=sys.stderr)
            return 2
    models = options.models or [str(ROOT / name) for name in baseline]
    if not models:
        print("footprint: no model given", file=sys.stderr)
        return 2
    if options.growth:
        return _check_growth(models, variants)
    # Several at a time, the largest first: what one process takes changes no figure of another.
    ordered = sorted(models, key=os.path.getsize, reverse=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(ordered, pool.map(lambda model: _figures(
            model, variants, is_compiled_before=bool(options.check or options.update)), ordered)))
    results = {_name(model): found[model] for model in models}
    if options.update:
        kept = {name: {variant: _kept(result) for variant, result in found.items()}
                for name, found in results.items()}
        Path(options.update).write_text(json.dumps({"models": kept}, indent=2) + "\n", "utf-8")
    if options.check:
        return _check(baseline, results)
    for name, found in results.items():
        print("\n".join([name, *_table(found)]))
    return 0


def _figures(model: str, variants: list[str], is_compiled_before: bool) -> dict[str, Any]:
    """The figures of a model, by variant; the driver's cache may get the shaders before, because
    compiling them takes memory, too."""
    if is_compiled_before:
        fresh.measure(compile_shaders, model, variants)
    return {variant: {**fresh.measure(measure, model, variant),
                      "objects": fresh.measure(objects, model, variant)} for variant in variants}


def _check_growth(models: list[str], variants: list[str]) -> int:
    """Prints what each inference adds to the process; 1 if that is too much anywhere."""
    bad = 0
    for model in models:
        for variant in variants:
            each = fresh.measure(growth, model, variant)
            bad += each >= MAX_GROWTH
            print(f"{_name(model)} ({variant}): {each:,.1f} B for each of {RUNS} inferences"
                  + (f", expected less than {MAX_GROWTH:,}" if each >= MAX_GROWTH else ""))
    return 1 if bad else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--variants", help="default: map,copy,stream, or all that the baseline has")
    parser.add_argument("--growth", action="store_true",
                        help="only say what each of 300 inferences adds to the process")
    parser.add_argument("--check", metavar="BASELINE")
    parser.add_argument("--update", metavar="BASELINE")
    return parser.parse_args()


def _name(model: str) -> str:
    path = Path(model).resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def _load(model: str, variant: str) -> tuple[vkrt.Program, list[np.ndarray]]:
    """The program as a variant has it, and inputs."""
    name, _, budget = variant.partition(":")
    # As the first load of the program is
    program = vkrt.load(model, memory_budget=budget or None, plan_cache="off", **VARIANTS[name])
    return program, [np.zeros(i.sizes, i.dtype) for i in program.metadata().inputs]


def measure(model: str, variant: str) -> dict[str, Any]:
    """Loads and runs a program in this process; its figures in bytes."""
    program, inputs = _load(model, variant)
    with program:
        program.run(*inputs)
        return {**program.memory.as_dict(), "smaps": _smaps(model)}


def compile_shaders(model: str, variants: list[str]) -> None:
    """Runs a program in every variant, for the driver's cache."""
    for variant in variants:
        measure(model, variant)


def objects(model: str, variant: str) -> int:
    """Bytes of the Python objects that a loaded program keeps after its first run.

    What is made once in a process (modules, tables of operators) has been made before.
    """
    program, inputs = _load(model, variant)
    with program:
        program.run(*inputs)
    del program
    gc.collect()
    tracemalloc.start()
    program = _load(model, variant)[0]  # its inputs would count
    with program:
        program.run(*inputs)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]


def growth(model: str, variant: str) -> float:
    """The bytes that each inference adds to this process.

    Pages of files do not count: the system takes them back when it needs them.
    """
    program, inputs = _load(model, variant)
    with program:
        for _ in range(WARM):
            program.run(*inputs)
        before = resident()
        for _ in range(RUNS):
            program.run(*inputs)
        after = resident()
    return sum(after.get(kind, 0) - before.get(kind, 0) for kind in ("RssAnon", "RssShmem")) / RUNS


def _smaps(model: str) -> dict[str, int]:
    """Bytes of this process: anonymous memory, what of it is in huge pages, and resident pages of
    the model's file."""
    target, is_model = os.path.realpath(model), False
    found = {"Anonymous": 0, "AnonHugePages": 0, "model": 0}
    # Not where the system is not Linux
    with suppress(OSError), open("/proc/self/smaps", encoding="utf-8",
                                 errors="surrogateescape") as lines:
        for line in lines:
            name, _, rest = line.partition(":")
            if " " in name:  # of a mapping: addresses, ..., the file
                is_model = line.split(None, 5)[5:] == [target + "\n"]
            elif name in found:
                found[name] += int(rest.split()[0]) * 1024
            elif name == "Rss" and is_model:
                found["model"] += int(rest.split()[0]) * 1024
    return found


def _table(variants: dict[str, Any]) -> list[str]:
    """The figures of a model, a column for each variant."""
    results = list(variants.values())
    rows = [("", *variants)]

    def add(title: str, values: Any) -> None:
        rows.append((title, *(f"{value:,}" for value in values)))

    for figure in DEVICE_FIGURES:
        add(figure, (r[figure] for r in results))
    for key in ("device", "VmRSS", "VmHWM", "RssAnon", "RssFile"):
        for index, phase in enumerate(results[0]["phases"]):
            found = (r["phases"][index] for r in results)
            add(f"{key}, {phase['name']}",
                (p["device"] if key == "device" else p["process"].get(key, 0) for p in found))
    for part in results[0]["process"]:
        add(f"process, {part}", (r["process"][part] for r in results))
    if "objects" in results[0]:
        add("Python objects", (r["objects"] for r in results))
    for key, title in (("model", "the model's file, resident"), ("Anonymous", "anonymous"),
                       ("AnonHugePages", "in huge pages")):
        add(title, (r["smaps"][key] for r in results))
    return ["  " + line for line in columns(rows)]


def _kept(result: dict[str, Any]) -> dict[str, Any]:
    """What a baseline remembers of a result."""
    high = max(p["process"].get("VmHWM", 0) for p in result["phases"])
    base = result["phases"][0]["process"].get("VmRSS", 0)
    parts = {f"process_{part}": result["process"][part] for part in PART_TOLERANCES}
    return {**{k: result[k] for k in DEVICE_FIGURES}, "process_growth": high - base, **parts,
            "objects": result["objects"]}


def _tolerance(figure: str, old: int) -> int:
    """By how many bytes a figure may differ from the baseline's."""
    if figure == "process_growth":
        return PROCESS_TOLERANCE
    if figure == "objects":
        return int(OBJECTS_TOLERANCE * old)
    return PART_TOLERANCES.get(figure.removeprefix("process_"), 0)


def _check(baseline: dict[str, Any], results: dict[str, Any]) -> int:
    """Prints every figure that grew beyond its tolerance; 1 if there is one."""
    bad = 0
    for name, variants in results.items():
        if name not in baseline:
            print(f"{name}: not in the baseline")
            bad += 1
            continue
        for variant, result in variants.items():
            old, new = baseline[name].get(variant), _kept(result)
            if old is None:
                continue
            for figure, before in old.items():
                tolerance, change = _tolerance(figure, before), new[figure] - before
                if abs(change) > tolerance:
                    print(f"{name} ({variant}): {figure} {'grew' if change > 0 else 'fell'} from "
                          f"{before:,} to {new[figure]:,} bytes"
                          + (f" (tolerance {tolerance:,})" if change > 0
                             else "; update the baseline"))
                    bad += change > 0
    print(f"footprint: {len(results)} models checked, {bad} figures too large")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
