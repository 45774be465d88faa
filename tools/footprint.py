"""Memory of loading and running a program, at every checkpoint, each measured in a fresh process.

    python tools/footprint.py MODEL.pte ...                    a table per model
    python tools/footprint.py MODEL.pte --ways map,copy        these ways of the weights
    python tools/footprint.py MODEL.pte --repeat 300           growth over repeated inferences
    python tools/footprint.py MODEL.pte --growth               the same, 300 behind 50; exits 1 on
                                                               1 kB or more in each
    python tools/footprint.py --update BASELINE.json MODEL ..  write a baseline
    python tools/footprint.py --check BASELINE.json [MODEL ..] compare with it; exits 1 on growth

Ways: `map` is the default of vkrt.load (what can be mapped is), `direct`, `copy` (through staging),
`eager` (copy, with everything allocated first), `stream` in the smallest budget or `stream:300MB`
in one given.

Bytes on the device are exact and compared exactly. Bytes of the process (VmRSS, VmHWM, RssAnon,
RssFile of the model) depend on the system and are compared with a tolerance. What smaps says after
the last run (anonymous memory, huge pages, gaps that no huge page can cover, zeros in huge pages)
is shown and not compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from smaps import huge_gaps, huge_page_size, mappings, total, zero_in_huge_pages

# What the driver may do between two machines with the same software, in bytes.
PROCESS_TOLERANCE = 24 << 20
DEVICE_FIGURES = ("weights", "pool", "staging", "activations", "planned_peak", "measured_peak",
                  "mapped", "streamed")
# Names of ways -> options of vkrt.load
WAYS: dict[str, dict[str, str]] = {
    "map": {"weights": "auto"},
    "direct": {"weights": "direct"},
    "copy": {"weights": "copy"},
    "eager": {"weights": "copy", "order": "eager"},
    "stream": {"weights": "stream"},
}
ROOT = Path(__file__).parent.parent
# Inferences before growth is measured (what drivers and allocators set up, they have by then), and
# the bytes that each of the following may add.
WARM = 50
MOST_GROWTH = 1000


def main() -> int:
    options = _options()
    if options.ways is None:
        options.ways = "map,copy,stream"
        if options.check:
            known = json.loads(Path(options.check).read_text(encoding="utf-8"))["models"].values()
            options.ways = ",".join(dict.fromkeys(w for ways in known for w in ways))
    for way in options.ways.split(","):
        if way.partition(":")[0] not in WAYS:
            print(f"footprint: --ways {way}: expected some of {', '.join(WAYS)}", file=sys.stderr)
            return 2
    if options.child:
        print(json.dumps(measure(options.models[0], options.ways, options.storage,
                                 options.repeat, options.warm)))
        return 0
    if options.growth:
        options.repeat, options.warm = 301, WARM
    baseline: dict[str, Any] = {}
    if options.check:
        baseline = json.loads(Path(options.check).read_text(encoding="utf-8"))
    models = options.models or [str(ROOT / name) for name in baseline.get("models", {})]
    if not models:
        print("footprint: no model given", file=sys.stderr)
        return 2
    results = {}
    for model in models:
        if options.check or options.update:
            # Compiling shaders takes memory too, where the driver's cache does not have them yet.
            for way in options.ways.split(","):
                _spawn(model, way, options)
        results[_name(model)] = {way: _spawn(model, way, options)
                                 for way in options.ways.split(",")}
    if options.json:
        print(json.dumps(results, indent=2))
    elif not options.check and not options.growth:
        for name, ways in results.items():
            print(_table(name, ways))
    if options.update:
        text = json.dumps({"models": {n: {w: _kept(r) for w, r in ways.items()}
                                      for n, ways in results.items()}}, indent=2)
        Path(options.update).write_text(text + "\n", encoding="utf-8")
    if options.check:
        return _check(baseline["models"], results)
    return _growth(results) if options.growth else 0


def _growth(results: dict[str, Any]) -> int:
    """Prints what each inference adds to the process; 1 if that is too much anywhere.

    Pages of files do not count: the system takes them back when it needs them.
    """
    bad = 0
    for name, ways in results.items():
        for way, result in ways.items():
            each = result["private_growth"] / (result["repeat"] - 1)
            bad += each >= MOST_GROWTH
            print(f"{name} ({way}): {each:,.1f} B for each of {result['repeat'] - 1} inferences"
                  + (f", expected less than {MOST_GROWTH:,}" if each >= MOST_GROWTH else ""))
    return 1 if bad else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--ways", help="default: map,copy,stream, or all that the baseline has")
    parser.add_argument("--storage", default="auto")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="inferences")
    parser.add_argument("--growth", action="store_true",
                        help="only say what each of 300 inferences adds to the process")
    parser.add_argument("--warm", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", metavar="BASELINE")
    parser.add_argument("--update", metavar="BASELINE")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _name(model: str) -> str:
    path = Path(model).resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def _spawn(model: str, way: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measures in a process of its own: what one model leaves behind must not count elsewhere."""
    command = [sys.executable, __file__, model, "--child", "--ways", way,
               "--storage", options.storage, "--repeat", str(options.repeat),
               "--warm", str(options.warm)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"footprint: {model} ({way}) failed with exit code {done.returncode}")
    return json.loads(done.stdout)


def measure(model: str, way: str, storage: str, repeat: int, warm: int = 1) -> dict[str, Any]:
    """Loads and runs a program in this process; returns its figures in bytes.

    Args:
        repeat: inferences; growth is measured from the first one on.
        warm: how often the first one is done.
    """
    import numpy as np

    import vkrt
    from vkrt.report.memory import resident

    name, _, budget = way.partition(":")
    with vkrt.load(model, storage=storage, memory_budget=budget or None, **WAYS[name]) as program:
        inputs = [np.zeros(i.sizes, i.dtype) for i in program.metadata().inputs]
        for _ in range(warm):
            program.run(*inputs)
        first = resident()
        for _ in range(repeat - 1):
            program.run(*inputs)
        last = resident()
        result = program.memory.as_dict()
        del result["ways"]
        result["model_rss_file"] = _mapped(model)
        result["smaps"] = huge_page_figures()
        result["device"] = program.device.info.name
        result["repeat"] = repeat
        result["growth"] = last.get("VmRSS", 0) - first.get("VmRSS", 0)
        result["private_growth"] = sum(last.get(kind, 0) - first.get(kind, 0)
                                       for kind in ("RssAnon", "RssShmem"))
    return result


def _mapped(model: str) -> int:
    """Resident bytes of the model file's mapping."""
    target = os.path.realpath(model)
    return total("Rss", (m for m in mappings() if m.name == target))


def huge_page_figures() -> dict[str, int]:
    """Bytes of this process that huge pages make a difference to.

    `gaps` is address space between neighbouring anonymous mappings, less than a huge page each;
    `zeros` the most that rounding to huge pages can have cost: zero pages in them.
    """
    huge = huge_page_size()
    found = mappings()
    gaps = huge_gaps(found, huge)
    return {"Anonymous": total("Anonymous", found), "AnonHugePages": total("AnonHugePages", found),
            "gaps": gaps.nbytes, "gap count": gaps.count,
            "zeros": zero_in_huge_pages(found, huge) if huge else 0}


def _table(name: str, ways: dict[str, Any]) -> str:
    lines = [name]
    width = 16
    lines.append(f"  {'':<22}" + "".join(f"{w:>{width}}" for w in ways))
    for figure in DEVICE_FIGURES:
        lines.append(f"  {figure:<22}" + "".join(f"{r[figure]:>{width},}" for r in ways.values()))
    phases = [p["name"] for p in next(iter(ways.values()))["phases"]]
    for key, title in (("device", "device bytes"), ("VmRSS", "VmRSS"), ("VmHWM", "VmHWM"),
                       ("RssAnon", "RssAnon"), ("RssFile", "RssFile")):
        lines.append(f"  {title} at")
        for phase in phases:
            cells = ""
            for result in ways.values():
                entry = next(p for p in result["phases"] if p["name"] == phase)
                value = entry["device"] if key == "device" else entry["process"].get(key, 0)
                cells += f"{value:>{width},}"
            lines.append(f"    {phase:<20}{cells}")
    lines.append(f"  {'model file resident':<22}"
                 + "".join(f"{r['model_rss_file']:>{width},}" for r in ways.values()))
    for key, title in (("Anonymous", "anonymous"), ("AnonHugePages", "in huge pages"),
                       ("zeros", "zero pages in them"), ("gaps", "gaps below a huge page"),
                       ("gap count", "number of gaps")):
        lines.append(f"  {title:<22}"
                     + "".join(f"{r['smaps'][key]:>{width},}" for r in ways.values()))
    repeat = next(iter(ways.values()))["repeat"]
    if repeat > 1:
        lines.append(f"  growth over {repeat - 1} runs".ljust(24)
                     + "".join(f"{r['growth']:>{width},}" for r in ways.values()))
    return "\n".join(lines)


def _kept(result: dict[str, Any]) -> dict[str, Any]:
    """What a baseline remembers of a result."""
    high = max(p["process"].get("VmHWM", 0) for p in result["phases"])
    base = result["phases"][0]["process"].get("VmRSS", 0)
    return {**{k: result[k] for k in DEVICE_FIGURES}, "process_growth": high - base}


def _check(baseline: dict[str, Any], results: dict[str, Any]) -> int:
    """Prints every figure that grew beyond its tolerance; 1 if there is one."""
    bad = 0
    for name, ways in results.items():
        if name not in baseline:
            print(f"{name}: not in the baseline")
            bad += 1
            continue
        for way, result in ways.items():
            old, new = baseline[name].get(way), _kept(result)
            if old is None:
                continue
            for figure in (*DEVICE_FIGURES, "process_growth"):
                tolerance = PROCESS_TOLERANCE if figure == "process_growth" else 0
                if new[figure] > old[figure] + tolerance:
                    print(f"{name} ({way}): {figure} grew from {old[figure]:,} to "
                          f"{new[figure]:,} bytes (tolerance {tolerance:,})")
                    bad += 1
                elif new[figure] < old[figure] - tolerance:
                    print(f"{name} ({way}): {figure} fell from {old[figure]:,} to "
                          f"{new[figure]:,} bytes; update the baseline")
    print(f"footprint: {len(results)} models checked, {bad} figures too large")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
