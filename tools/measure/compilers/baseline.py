"""What was measured of some programs on some devices, to compare with (tests/gpus)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from compilers.drivers import capture
from compilers.statistics import summary_of

ROOT = Path(__file__).resolve().parents[3]
# Another version of the tools that translate shaders may change so much without a change of ours.
SLACK = 1.02


def path_of(name: str) -> str:
    """The file of a program of a baseline: in tests/models or a folder of VKRT_MODELS. Ends the
    process where there is none."""
    for folder in (ROOT / "tests/models", *os.environ.get("VKRT_MODELS", "").split(":")):
        if Path(folder, name).exists():
            return str(Path(folder, name))
    raise SystemExit(f"{name} is neither in tests/models nor in a folder of VKRT_MODELS")


def measured(baseline: dict[str, Any]) -> dict[str, Any]:
    """The programs of a baseline on its devices, anew."""
    jobs = [(device, model) for device, models in baseline.items() for model in models]
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda job: summary_of(capture(job[0], path_of(job[1]), [])), jobs)
    result: dict[str, Any] = {}
    for (device, model), summary in zip(jobs, found):
        result.setdefault(device, {})[model] = summary
    return result


def text_of(baseline: dict[str, Any]) -> str:
    """A baseline as JSON, with a line for each program."""
    devices = []
    for device, models in baseline.items():
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(found)}"
                           for name, found in models.items())
        devices.append(f" {json.dumps(device)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(devices) + "\n}\n"


def worse(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """What has become worse, by name. What compiling takes is written down, and never compared."""
    if new["error"]:
        yield f"it does not load: {new['error']}"
        return
    for name in sorted(set(new["failed"]) - set(old["failed"])):
        yield f"{name} does not compile"
    for name, spills in new["spilling"].items():
        if spills > old["spilling"].get(name, 0) * SLACK:
            yield f"{name} spills {spills}, {old['spilling'].get(name, 0)} before"
    if new["occupancy"] < old["occupancy"]:
        yield f"the worst occupancy is {new['occupancy']}, {old['occupancy']} before"
    for figure, slack in (("pipelines", 1), ("instructions", SLACK)):
        if new[figure] > old[figure] * slack:
            yield f"{new[figure]} {figure}, {old[figure]} before"
