"""`vkrt doctor`: what a device is like and whether it computes right, for a report."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from typing import Any

from vkrt.cli import common, selftest
from vkrt.cli.process import EXIT_FAILED
from vkrt.cli.report import FILE, reporting
from vkrt.cli.tune import Bench, tune_ceiling
from vkrt.device.policy import policy_of, target_of
from vkrt.device.rows import Profile, profile_of
from vkrt.errors import VkrtError
from vkrt.memory.source import Source
from vkrt.runtime.map_probe import reads_files, why_none
from vkrt.runtime.refusals import refused_by
from vkrt.version import __version__
from vkrt.vk.device import Device

# Limits that decide what kernels run and how memory is laid out
LIMITS = ("maxTexelBufferElements", "maxStorageBufferRange", "maxImageDimension3D",
          "maxPerStageDescriptorStorageBuffers", "maxComputeWorkGroupInvocations",
          "maxComputeWorkGroupCount", "maxPushConstantsSize", "minStorageBufferOffsetAlignment",
          "minTexelBufferOffsetAlignment", "nonCoherentAtomSize", "maxMemoryAllocationSize",
          "subgroupSize")

# Some drivers have kernels that are wrong in a quarter of all runs, or in fewer.
RUNS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_device(parser)
    parser.add_argument("--quick", action="store_true",
                        help="without measuring rates (default: they are measured)")
    common.add_repeat(parser, RUNS, "how often each kernel is tried, for the same bits every time")
    parser.add_argument("--report", nargs="?", const=FILE, metavar="FILE",
                        help="also write a file to attach to an issue: this, the system, versions "
                             f"and drivers, without names of yours (FILE: {FILE}; default: none)")
    common.add_json(parser)


def execute(options: argparse.Namespace) -> int:
    report: dict[str, Any] = {}
    with reporting(options.report) as add, Device.open(common.device_of(options.device)) as device:
        for lines in examine(device, not options.quick, report, options.repeat):
            add(lines)
            if not options.json:
                print(*lines, sep="\n", flush=True)
    if options.json:
        print(json.dumps(report, indent=2))
    return EXIT_FAILED if report["wrong"] else 0


def examine(device: Device, measures: bool, report: dict[str, Any],
            runs: int) -> Iterator[list[str]]:
    """Examines a device: yields lines of text as soon as there are any. `report` gets everything
    that is known, tried and measured, for JSON; each program of the test runs `runs` times."""
    info, profile = device.info, profile_of(device.info)
    target = target_of(info, enabled=device.features)
    report |= {
        "vkrt": __version__,
        "device": {name: getattr(info, name) for name in (
            "name", "type", "driver_name", "driver_info", "api_version", "vendor_id", "device_id",
            "driver_id", "driver_version")},
        "profile": {"is_measured": profile.is_measured, "storage": target.storage,
                    "shares": target.tuning.shares, "uses": sorted(target.features),
                    "fields": _fields(profile)},
        "limits": {name: info.limits[name] for name in LIMITS if name in info.limits},
        "features": info.features,
        "heaps": info.heaps,
        "memory_types": info.memory_types,
        "selftest": [],
    }
    yield _text(report)
    found: list[dict[str, Any]] = []  # of the family that is tried
    lost = ""
    try:
        for finding in selftest.run(device, runs):
            if found and found[0]["name"] != finding.name:
                yield _selftest_lines(found)
                found = []
            found.append(asdict(finding))
            report["selftest"].append(found[-1])
    except VkrtError as error:
        lost = f"{type(error).__name__}: {error}"
    yield [*(_selftest_lines(found) if found else ()),
           *([f"WRONG     the test ended: {lost}"] if lost else ())]
    wrong = sum(finding["wrong"] for finding in report["selftest"]) + bool(lost)
    report |= {"ended": lost, "wrong": bool(wrong), "weights": _ways(device, lost),
               "refused": list(refused_by(device))}
    yield [*(f"weights   {name}: {said}" for name, said in report["weights"].items()),
           *(f"refuses   {name}: the driver does not compile it, smaller kernels are used"
             for name in report["refused"])]
    if measures and not lost:
        ceiling, why = tune_ceiling(Bench(device, 3))
        report["ceiling"] = {**ceiling, "why": why}
        yield [f"ceiling   {why}"]
    yield [f"result    {len(report['selftest'])} programs, {wrong or 'none'} wrong"]


def _fields(profile: Profile) -> dict[str, dict[str, Any]]:
    """Every value of a profile, with the file of the entry that sets it and its reason."""
    return {name: {"value": value, "file": os.path.basename(profile.entries[name].path),
                   "is_the_users": profile.entries[name].is_the_users,
                   "why": profile.entries[name].why.get(name, "")}
            for name, value in profile.fields.items()}


def _ways(device: Device, lost: str) -> dict[str, str]:
    """How weights can get to kernels: by name of the placement, "yes" or why not."""
    features = device.info.features
    why = why_none(device, policy_of(device.info).maps_files)
    if why:
        mapped = f"no: {why}"
    elif lost:
        mapped = "not tried"
    else:
        with closing(Source.open(__file__)) as source:  # any file with a page
            mapped = ("yes" if reads_files(device, source)
                      else "no: a probe did not show that the driver reads the pages of files")
    return {"map": mapped,
            "direct": "yes" if device.unified else "no: the host does not see the device's memory",
            "staged": "yes",
            "stream": "yes" if features.get("timeline") else "no: no timeline semaphores"}


def _text(report: dict[str, Any]) -> list[str]:
    device, profile = report["device"], report["profile"]
    lines = [f"vkrt      {report['vkrt']}, Python {sys.version.split()[0]}",
             f"device    {device['name']} ({device['type']}, Vulkan {device['api_version']})",
             f"driver    {device['driver_name']} {device['driver_info']}".rstrip(),
             f"profile   storage {profile['storage']}, kernels in a "
             f"{'GPU' if profile['shares'] else 'CPU'}'s shape"
             + "".join(f", {name}" for name in profile["uses"])]
    if not profile["is_measured"]:
        lines.append("          nobody has measured this driver: `vkrt tune --write` does")
    for name, said in profile["fields"].items():
        file = said["file"] + (" of the user" if said["is_the_users"] else "")
        lines.append(f"entry     {name} {json.dumps(said['value'])} ({file}"
                     f"{': ' if said['why'] else ''}{said['why']})")
    lines += [f"heap      {heap['size'] / 2**30:.2f} GiB "
              f"{'device-local' if heap['device_local'] else 'host'}" for heap in report["heaps"]]
    lines += [f"memory    heap {heap}: {' '.join(names) or 'nothing'}"
              for heap, names in report["memory_types"]]
    lines += [f"limit     {name} {value}" for name, value in report["limits"].items()]
    lines += [f"feature   {name}" for name, there in report["features"].items() if there]
    lines += [f"lacks     {name}" for name, there in report["features"].items() if not there]
    return lines


def _selftest_lines(found: list[dict[str, Any]]) -> list[str]:
    errors = {dtype: max((finding["error"] for finding in found if finding["error"] is not None
                          and finding["dtype"] == dtype), default=None)
              for dtype in dict.fromkeys(finding["dtype"] for finding in found)}
    lines = [f"selftest  {found[0]['name']:17} " + ", ".join(
        f"{dtype} {'-' if error is None else f'{error:.1e}'}" for dtype, error in errors.items())]
    for finding in found:
        if finding["wrong"] or finding["message"]:
            said = finding["message"] or f"relative error {finding['error']:.1e}"
            by = f" by {', '.join(finding['shaders'])}" if finding["shaders"] else ""
            lines.append(f"{'WRONG' if finding['wrong'] else 'lacks':9} {finding['name']} in "
                         f"{finding['dtype']}, {finding['storage']}: {said}{by}")
    return lines
