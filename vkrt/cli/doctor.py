"""`vkrt doctor`: what a device is like and whether it computes right, for a report."""

from __future__ import annotations

import argparse
import json
import os
import sys

from vkrt.cli import common, selftest
from vkrt.cli.tune import Bench, tune_ceiling
from vkrt.dataclass import asdict
from vkrt.device.policy import target_of
from vkrt.device.rows import Profile, profile_of
from vkrt.errors import VkrtError
from vkrt.hints import Any
from vkrt.runtime.map_trial import reads_files
from vkrt.runtime.refusals import refused_by
from vkrt.version import __version__
from vkrt.vk.device import Device

# Limits that decide what kernels run and how memory is laid out
LIMITS = ("maxTexelBufferElements", "maxStorageBufferRange", "maxImageDimension3D",
          "maxPerStageDescriptorStorageBuffers", "maxComputeWorkGroupInvocations",
          "maxComputeWorkGroupCount", "maxPushConstantsSize", "minStorageBufferOffsetAlignment",
          "minTexelBufferOffsetAlignment", "nonCoherentAtomSize", "maxMemoryAllocationSize",
          "subgroupSize")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    common.add_device(parser)
    parser.add_argument("--quick", action="store_true",
                        help="without measuring rates (default: they are measured)")
    common.add_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Does what the command says; returns its exit code: 1 where a result is wrong."""
    with Device.open(common.device_of(options)) as device:
        report = examine(device, not options.quick)
    common.show(options, report, _text(report))
    return common.EXIT_FAILED if report["wrong"] else 0


def examine(device: Device, measures: bool) -> dict[str, Any]:
    """What is known, tried and measured of a device, for JSON."""
    info, profile = device.info, profile_of(device.info)
    target = target_of(info, enabled=device.features)
    findings, lost = [], ""
    try:
        for finding in selftest.run(device):
            findings.append(finding)
    except VkrtError as error:
        lost = f"{type(error).__name__}: {error}"
    report: dict[str, Any] = {
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
        "weights": _ways(device, lost),
        "refused": list(refused_by(device)),
        "selftest": [asdict(finding) for finding in findings],
        "ended": lost,
        "wrong": bool(lost) or any(finding.wrong for finding in findings),
    }
    if measures and not lost:
        ceiling, why = tune_ceiling(Bench(device, 3))
        report["ceiling"] = {**ceiling, "why": why}
    return report


def _fields(profile: Profile) -> dict[str, dict[str, Any]]:
    """Every value of a profile, with the file of the entry that sets it and its reason."""
    return {name: {"value": value, "file": os.path.basename(profile.entries[name].path),
                   "is_the_users": profile.entries[name].is_the_users,
                   "why": profile.entries[name].why.get(name, "")}
            for name, value in profile.fields.items()}


def _ways(device: Device, lost: str) -> dict[str, str]:
    """How weights can get to kernels: by name of the placement, "yes" or why not."""
    features = device.info.features
    if not features.get("ext_memory_host"):
        mapped = "no: the device has no VK_EXT_external_memory_host"
    elif lost:
        mapped = "not tried"
    else:
        mapped = ("yes" if reads_files(device)
                  else "no: a trial did not show that the driver reads the pages of files")
    return {"map": mapped,
            "direct": "yes" if device.unified else "no: the host does not see the device's memory",
            "staged": "yes",
            "stream": "yes" if features.get("timeline") else "no: no timeline semaphores"}


def _text(report: dict[str, Any]) -> str:
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
    lines += [f"weights   {name}: {said}" for name, said in report["weights"].items()]
    lines += [f"refuses   {name}: the driver does not compile it, smaller kernels are used"
              for name in report["refused"]]
    lines += [f"heap      {heap['size'] / 2**30:.2f} GiB "
              f"{'device-local' if heap['device_local'] else 'host'}" for heap in report["heaps"]]
    lines += [f"memory    heap {heap}: {' '.join(names) or 'nothing'}"
              for heap, names in report["memory_types"]]
    lines += [f"limit     {name} {value}" for name, value in report["limits"].items()]
    lines += [f"feature   {name}" for name, there in report["features"].items() if there]
    lines += [f"lacks     {name}" for name, there in report["features"].items() if not there]
    if "ceiling" in report:
        lines.append(f"ceiling   {report['ceiling']['why']}")
    return "\n".join([*lines, *_selftest_lines(report)])


def _selftest_lines(report: dict[str, Any]) -> list[str]:
    found = report["selftest"]
    lines = []
    for name in dict.fromkeys(finding["name"] for finding in found):
        errors = {dtype: max((finding["error"] for finding in found if finding["error"] is not None
                              and (finding["name"], finding["dtype"]) == (name, dtype)),
                             default=None)
                  for dtype in dict.fromkeys(finding["dtype"] for finding in found
                                             if finding["name"] == name)}
        lines.append(f"selftest  {name:17} " + ", ".join(
            f"{dtype} {'-' if error is None else f'{error:.1e}'}"
            for dtype, error in errors.items()))
    for finding in found:
        if finding["wrong"] or finding["message"]:
            said = finding["message"] or f"relative error {finding['error']:.1e}"
            lines.append(f"{'WRONG' if finding['wrong'] else 'lacks':9} {finding['name']} in "
                         f"{finding['dtype']}, {finding['storage']}: {said}")
    if report["ended"]:
        lines.append(f"WRONG     the test ended: {report['ended']}")
    wrong = sum(finding["wrong"] for finding in found) + bool(report["ended"])
    return [*lines, f"result    {len(found)} programs, {wrong or 'none'} wrong"]
