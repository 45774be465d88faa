#!/usr/bin/env python3
"""What compilers of GPUs make of vkrt's kernels: registers spilled, occupancy, instructions, time.

    VKRT_GPU_DRIVERS=FOLDER python tools/measure/gpu_cost.py --device mali-g610 MODEL ..
    .. gpu_cost.py --check tests/gpus/baseline.json       what has become worse
    .. gpu_cost.py --update tests/gpus/baseline.json      measures anew what it has

FOLDER has a command `as-gpu` (tools/gpu-drivers/README.md says how to make one); without --device
all of `as-gpu --names` are asked. --all prints every pipeline instead of those that stand out.

A program is loaded, and its kernels are compiled with nothing cached, under a layer
(pipelines_layer.c) that asks the driver what it knows of each pipeline. From vendors' words:

  spills        registers that are stored to memory and loaded again, in the driver's unit: stores
                on Adreno, Mali and Intel, registers on Radeon, bytes on V3D
  occupancy     how many threads fit beside each other, in the driver's unit, more is better: waves
                of a core on Adreno, waves of a SIMD on Radeon, lanes of a thread on Intel, threads
                on Mali (2 or 1) and V3D (4, 2, 1)
  instructions  as they stand in the code, once each

Figures of two vendors cannot be compared. Nothing runs: none of this says how long a kernel takes,
how often its loops go round, or what memory does.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LAYER = "VK_LAYER_VKRT_pipelines"

# Names of figures, of which a driver has one
SPILLS = ("STP Count", "Spilled VGPRs", "Spill Count", "Spill Size", "spills")
OCCUPANCY = ("Max Waves Per Core", "Subgroups per SIMD", "Thread Count", "threads", "subgroup")
INSTRUCTIONS = ("Instruction Count", "Instructions", "inst")
# What panvk prints of a shader, in the place of some of these
PRINTED = (re.compile(r"(?P<inst>\d+) inst\b"), re.compile(r"(?P<threads>\d+) threads\b"),
           re.compile(r"(?P<spills>\d+):\d+ spills:fills"))

# Another version of the tools that translate shaders may change so much without a change of ours.
SLACK = 1.02

# Run once, for the kernels that pack weights; a language program reads a prompt and then a token.
CHILD = """
import sys
import numpy as np
import vkrt
from vkrt.text.model import LanguageModel, Session
from vkrt.vk.device import Device
options = dict(option.split("=", 1) for option in sys.argv[2:])
with Device.open(pipeline_cache="off") as device:
    print("driver", device.info.driver_info)
    with vkrt.load(sys.argv[1], device, plan_cache="off", **options) as program:
        try:
            session = Session(LanguageModel(program))
        except vkrt.VkrtError:
            program.run(*(np.zeros(i.sizes, i.dtype) for i in program.metadata().inputs))
        else:
            for ids in ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [1]):
                session.add(ids)
                session.logits()
"""


def as_gpu() -> str:
    """The command that runs another one on a device's driver.

    Raises:
        SystemExit: VKRT_GPU_DRIVERS does not name a folder that has it.
    """
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
def layer_folder() -> str:
    """The folder of the layer and its manifest, compiled.

    Raises:
        SystemExit: there is no C compiler.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("gpu_cost.py needs a C compiler, cc")
    folder = tempfile.mkdtemp(prefix="vkrt-pipelines-")
    subprocess.run([compiler, "-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-o",
                    f"{folder}/layer.so", Path(__file__).with_name("pipelines_layer.c"),
                    "-pthread"], check=True)
    Path(folder, "layer.json").write_text(json.dumps({
        "file_format_version": "1.1.2", "layer": {
            "name": LAYER, "type": "GLOBAL", "library_path": "./layer.so",
            "api_version": "1.3.239", "implementation_version": "1",
            "description": "What drivers say of compute pipelines"}}))
    return folder


@cache
def _pruned(name: str, constants: tuple[tuple[int, int], ...]) -> tuple[int, str]:
    """Bytes and digest of a shader without what its constants never reach."""
    from vkrt.runtime.pruning import pruned

    from vkrt.shader import catalog

    code = bytes(pruned(catalog().get(name).spirv, constants))
    digest = 14695981039346656037
    for byte in code:
        digest = (digest ^ byte) * 1099511628211 & (1 << 64) - 1
    return len(code), f"{digest:016x}"


@cache
def name_of(module: str, nbytes: int, constants: tuple[tuple[int, int], ...]) -> str:
    """What the shader of a pipeline is called, with its constants; the digest where none is it."""
    from vkrt.shader import catalog

    numbers = {number for number, _ in constants}
    shaders = catalog()
    for name in shaders:
        specs = {spec.id: spec for spec in shaders.get(name).specs}
        needed = {number for number, spec in specs.items() if not spec.may_be_pushed}
        if needed <= numbers <= set(specs) and _pruned(name, constants) == (nbytes, module):
            words = " ".join(f"{shaders.get(name).spec_names[number]}={value}"
                             for number, value in constants if number in specs)
            return f"{name}({words})"
    return module


def figures_of(line: dict[str, Any]) -> dict[str, Any]:
    """A pipeline by the layer's line of it."""
    found: dict[str, Any] = {}
    for executable in line["executables"]:
        # Intel's compiler makes a kernel several times, for threads of more and more lanes.
        if executable["subgroup"] >= found.get("subgroup", 0):
            found |= executable
    for form in PRINTED:
        said = form.search(line["said"])
        found |= {name: int(value) for name, value in (said.groupdict() if said else {}).items()}
    constants = tuple(sorted((number, value) for number, value in line["constants"]))
    return {"name": name_of(line["module"], line["nbytes"], constants),
            "failed": line["result"], "cpu_ms": line["cpu_ms"],
            **{kind: next((int(found[name]) for name in names if name in found), 0)
               for kind, names in (("spills", SPILLS), ("occupancy", OCCUPANCY),
                                   ("instructions", INSTRUCTIONS))}}


def measure(device: str, model: str, options: list[str]) -> dict[str, Any]:
    """What becomes of a program on a device: `pipelines`, as `figures_of` has them.

    Args:
        options: of the load, as NAME=VALUE.
    """
    with tempfile.TemporaryDirectory(prefix="vkrt-gpu-cost-") as folder:
        lines = Path(folder, "pipelines")
        lines.touch()
        environment = {
            **os.environ, "VK_LAYER_PATH": layer_folder(), "VK_INSTANCE_LAYERS": LAYER,
            "VKRT_PIPELINES": str(lines),
            **({"VKRT_PIPELINES_PRINTED": "1", "BIFROST_MESA_DEBUG": "shaderdb"}
               if device.startswith("mali") else {}),
            "XDG_CACHE_HOME": folder, "XDG_CONFIG_HOME": folder,
            "GPUDRIVERS": os.environ.get("GPUDRIVERS", os.path.expanduser("~/.cache/gpudrivers"))}
        done = subprocess.run([as_gpu(), device, sys.executable, "-c", CHILD, model, *options],
                              check=False, capture_output=True, text=True, env=environment)
        pipelines = [figures_of(json.loads(line)) for line in lines.read_text().splitlines()]
    driver = re.search(r"^driver (.*)", done.stdout, re.MULTILINE)
    return {"driver": driver[1] if driver else "", "pipelines": pipelines,
            "error": (f"exit {done.returncode}: {done.stderr.strip()[-400:]}"
                      if done.returncode else "")}


def summary_of(found: dict[str, Any]) -> dict[str, Any]:
    """What a baseline remembers."""
    # A pipeline that was made a second time, behind one that failed, counts once.
    made = {row["name"]: row for row in found["pipelines"]}
    good = [row for row in made.values() if not row["failed"]]
    return {"driver": found["driver"], "error": found["error"], "pipelines": len(good),
            "failed": sorted(row["name"] for row in made.values() if row["failed"]),
            "spilling": {row["name"]: row["spills"] for row in sorted(
                good, key=lambda row: row["name"]) if row["spills"]},
            "occupancy": min((row["occupancy"] for row in good), default=0),
            "instructions": sum(row["instructions"] for row in good),
            "compile_cpu_ms": round(sum(row["cpu_ms"] for row in found["pipelines"]))}


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
    if new["pipelines"] > old["pipelines"]:
        yield f"{new['pipelines']} pipelines, {old['pipelines']} before"
    if new["instructions"] > old["instructions"] * SLACK:
        yield f"{new['instructions']} instructions, {old['instructions']} before"


def show(device: str, model: str, found: dict[str, Any], everything: bool) -> None:
    """Prints a program's pipelines on a device."""
    short = summary_of(found)
    print(f"{device} {Path(model).name}: {short['pipelines']} pipelines, "
          f"{len(short['spilling'])} of them spill, occupancy {short['occupancy']} at worst, "
          f"{short['instructions']} instructions, {short['compile_cpu_ms']} ms of CPU to compile")
    if found["error"]:
        print(f"  ended: {found['error']}")
    rows = sorted(found["pipelines"], key=lambda row: (-row["failed"] ** 2, -row["spills"],
                                                      -row["instructions"]))
    for row in rows:
        if everything or row["failed"] or row["spills"]:
            said = f"does not compile ({row['failed']})" if row["failed"] else (
                f"spills {row['spills']}, occupancy {row['occupancy']}, "
                f"{row['instructions']} instructions")
            print(f"  {row['name']}: {said}, {row['cpu_ms']:.0f} ms")
    sys.stdout.flush()


def path_of(name: str) -> str:
    """The file of a program of a baseline: in tests/models or a folder of VKRT_MODELS.

    Raises:
        SystemExit: it is in none of them.
    """
    for folder in (ROOT / "tests/models", *os.environ.get("VKRT_MODELS", "").split(":")):
        if Path(folder, name).exists():
            return str(Path(folder, name))
    raise SystemExit(f"{name} is neither in tests/models nor in a folder of VKRT_MODELS")


def measured(baseline: dict[str, Any]) -> dict[str, Any]:
    """The programs of a baseline on its devices, anew."""
    jobs = [(device, model) for device, models in baseline.items() for model in models]
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda job: summary_of(measure(job[0], path_of(job[1]), [])), jobs)
    result: dict[str, Any] = {}
    for (device, model), said in zip(jobs, found):
        result.setdefault(device, {})[model] = said
    return result


def main() -> int:
    """Does what the command line says; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--device", action="append")
    parser.add_argument("--all", action="store_true", help="print every pipeline")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE",
                        help="of vkrt.load")
    parser.add_argument("--json", metavar="FILE", help="also write all figures")
    parser.add_argument("--check", metavar="BASELINE")
    parser.add_argument("--update", metavar="BASELINE")
    options = parser.parse_args()
    if options.check or options.update:
        path = Path(options.check or options.update)
        old = json.loads(path.read_text())
        new = measured(old)
        if options.update:
            path.write_text(json.dumps(new, indent=1) + "\n")
            return 0
        said = [f"{device} {model}: {line}" for device, models in old.items()
                for model, before in models.items() for line in worse(before, new[device][model])]
        print(*said or ["nothing is worse"], sep="\n")
        return 1 if said else 0
    results: dict[str, Any] = {}
    for device in options.device or device_names():
        for model in options.models:
            found = measure(device, model, options.option)
            show(device, model, found, options.all)
            results.setdefault(device, {})[model] = found
            if options.json:
                Path(options.json).write_text(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
