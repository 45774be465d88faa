"""Runs a program on the driver of a GPU that need not be there; a layer asks its compiler.

VKRT_GPU_DRIVERS names a folder with a command `as-gpu` (tools/gpu-drivers/README.md says how to
make one). The layer (pipelines_layer.c) is compiled when it is first needed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LAYER = "VK_LAYER_VKRT_pipelines"


@dataclass(frozen=True)
class Capture:
    """What became of a program on a device."""

    driver: str  # its name and version; empty where it did not start
    pipelines: list[dict[str, Any]]  # the layer's line of each
    runs: dict[str, list[list[Any]]]  # by name, dispatches as `load_program.py` prints them
    error: str  # what ended the program, empty where it ran


def as_gpu() -> str:
    """The command that runs another one on a device's driver; ends the process without it."""
    command = os.path.join(os.environ.get("VKRT_GPU_DRIVERS", ""), "as-gpu")
    if not os.access(command, os.X_OK):
        raise SystemExit(f"VKRT_GPU_DRIVERS names the folder of the command as-gpu; {command!r} is "
                         "no command; tools/gpu-drivers/README.md says how to make one")
    return command


@cache
def device_names() -> tuple[str, ...]:
    """All devices that there is a driver for."""
    # Whatever it exits with: some say 1 behind the last name.
    return tuple(subprocess.run([as_gpu(), "--names"], check=False, capture_output=True,
                                text=True).stdout.split())


@cache
def _layer_folder() -> str:
    """The folder of the layer and its manifest, compiled; ends the process without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("the layer that asks compilers needs a C compiler, cc")
    folder = tempfile.mkdtemp(prefix="vkrt-pipelines-")
    subprocess.run([compiler, "-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-o",
                    f"{folder}/layer.so", HERE / "pipelines_layer.c", "-pthread"], check=True)
    Path(folder, "layer.json").write_text(json.dumps({
        "file_format_version": "1.1.2", "layer": {
            "name": LAYER, "type": "GLOBAL", "library_path": "./layer.so",
            "api_version": "1.3.239", "implementation_version": "1",
            "description": "What drivers say of compute pipelines"}}))
    return folder


def capture(device: str, model: str, options: list[str], code: bool = False) -> Capture:
    """Loads a program, with options as NAME=VALUE, and runs it, its kernels compiled with nothing
    cached; with `code` the lines of pipelines have the compiler's code, which takes more time."""
    with tempfile.TemporaryDirectory(prefix="vkrt-gpu-cost-") as folder:
        lines = Path(folder, "pipelines")
        lines.touch()
        environment = {
            **os.environ, "VK_LAYER_PATH": _layer_folder(), "VK_INSTANCE_LAYERS": LAYER,
            "VKRT_PIPELINES": str(lines), **({"VKRT_PIPELINES_CODE": "1"} if code else {}),
            **({"VKRT_PIPELINES_PRINTED": "1", "BIFROST_MESA_DEBUG": "shaderdb"}
               if device.startswith("mali") else {}),
            "XDG_CACHE_HOME": folder, "XDG_CONFIG_HOME": folder,
            "GPUDRIVERS": os.environ.get("GPUDRIVERS", os.path.expanduser("~/.cache/gpudrivers"))}
        done = subprocess.run(
            [as_gpu(), device, sys.executable, HERE / "load_program.py", model, *options],
            check=False, capture_output=True, text=True, env=environment)
        pipelines = [json.loads(line) for line in lines.read_text().splitlines()]
    driver = re.search(r"^driver (.*)", done.stdout, re.MULTILINE)
    runs = re.findall(r"^run (\w+) (.*)", done.stdout, re.MULTILINE)
    return Capture(driver[1] if driver else "", pipelines,
                   {name: json.loads(dispatches) for name, dispatches in runs},
                   f"exit {done.returncode}: {done.stderr.strip()[-400:]}" if done.returncode
                   else "")
