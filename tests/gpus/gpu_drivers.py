"""The drivers of GPUs that need not be there: which devices a run takes, and processes on them.

VKRT_GPU_DRIVERS is a folder with a command `as-gpu NAME COMMAND..` (tools/gpu-drivers/README.md).
Two devices of every maker are always taken, a third in turn: by VKRT_TEST_GPU_TURN, a number, 0
where it is not set, so that a commit has one result. VKRT_TEST_GPUS names devices instead, "all"
takes all of them; so does the full depth (tests/dealing.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from compilers.drivers import device_names
from dealing import DEPTH

HERE = Path(__file__).parent
FOLDER = os.environ.get("VKRT_GPU_DRIVERS", "")
COMMAND = os.path.join(FOLDER, "as-gpu")
TURN = int(os.environ.get("VKRT_TEST_GPU_TURN") or 0)
MISSING = "needs VKRT_GPU_DRIVERS, a folder of drivers of GPUs: tools/gpu-drivers/README.md"

# Maker -> the two devices that are always taken: where memory, features or compilers differ most
MAKERS = {
    "adreno": ("adreno-618", "adreno-740"),
    "radeon": ("radeon-polaris10", "radeon-navi31"),
    "intel": ("intel-skl", "intel-dg2"),
    "mali": ("mali-g52-vk1.1", "mali-g610"),
    "raspberry": ("raspberry-pi-4", "raspberry-pi-5"),
}
# Of Vulkan 1.0, or without memory of any type: these load nothing.
UNUSABLE = {"adreno-610": "has Vulkan 1.0", "mali-g31": "has Vulkan 1.0",
            "mali-g52": "has Vulkan 1.0", "radeon-gfx1201-null": ""}


def all_devices() -> tuple[str, ...]:
    """All that the folder has a driver for; none without a folder."""
    return device_names() if FOLDER else ()


def taken() -> list[str]:
    """The devices of this run."""
    named = os.environ.get("VKRT_TEST_GPUS", "all" if DEPTH == "full" else "")
    usable = [name for name in all_devices() if name not in UNUSABLE]
    if named:
        return usable if named == "all" else [n for n in usable if n in named.split(",")]
    found = []
    for maker, always in MAKERS.items():
        others = [name for name in usable if name.startswith(maker) and name not in always]
        found += [name for name in usable if name in always]
        if DEPTH == "all" and others:
            found.append(others[TURN % len(others)])
    return found if DEPTH == "all" else found[1::2]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """For processes on a driver: no cache, no entries of the user's, the drivers' own folder."""
    # `as-gpu` may unpack what it runs, once.
    unpacked = os.environ.get("GPUDRIVERS", os.path.expanduser("~/.cache/gpudrivers"))
    kept = {name: value for name, value in os.environ.items()
            if name not in ("VKRT_VALIDATION", "VKRT_TEST_PROFILE")}
    return {**kept, "GPUDRIVERS": unpacked, "XDG_CACHE_HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder), **more}


def run_jobs(device: str, jobs: list[dict[str, Any]], folder: Path, **more: str) -> list[dict]:
    """What became of jobs (`on_gpu.py`) on a device, in their order.

    Args:
        more: environment variables.
    """
    done = subprocess.run(
        [COMMAND, device, sys.executable, str(HERE / "on_gpu.py"), json.dumps(jobs)],
        check=False, capture_output=True, text=True, env=environment(folder, **more), timeout=900)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0 and len(found) == len(jobs), (
        f"{device}: exit {done.returncode} behind {found[-1:]}: {done.stderr[-2000:]}")
    return found
