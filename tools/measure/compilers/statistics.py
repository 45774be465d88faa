"""What a driver says of its pipelines, in common words.

  spills        registers that are stored to memory and loaded again, in the driver's unit: stores
                on Adreno, Mali and Intel, registers on Radeon, bytes on V3D
  occupancy     how many threads fit beside each other, in the driver's unit, more is better: waves
                of a core on Adreno, waves of a SIMD on Radeon, lanes of a thread on Intel, threads
                on Mali (2 or 1) and V3D (4, 2, 1)
  instructions  as they stand in the code, once each

Figures of two vendors cannot be compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from compilers.drivers import Capture
from vkrt.shader import shader_library
from vkrt.vk.pipeline import pruned

# Names of figures, of which a driver has one
_SPILLS = ("STP Count", "Spilled VGPRs", "Spill Count", "Spill Size", "spills")
_OCCUPANCY = ("Max Waves Per Core", "Subgroups per SIMD", "Thread Count", "threads", "subgroup")
_INSTRUCTIONS = ("Instruction Count", "Instructions", "inst")
# What panvk prints of a shader, in the place of some of these
_PRINTED = (re.compile(r"(?P<inst>\d+) inst\b"), re.compile(r"(?P<threads>\d+) threads\b"),
            re.compile(r"(?P<spills>\d+):\d+ spills:fills"))

Constants = tuple[tuple[int, int], ...]  # (id, value)


@dataclass(frozen=True)
class Pipeline:
    """A pipeline as its driver describes it."""

    module: str  # digest of the shader's code
    constants: Constants  # specialization constants
    name: str  # of the shader, with its constants; the digest where no shader has it
    failed: int  # the VkResult of its creation, 0 where it was made
    cpu_ms: float
    spills: int
    occupancy: int
    instructions: int
    subgroup: int  # lanes of a wave
    code: str  # the compiler's, where it was asked for


@cache
def pruned_code(name: str, constants: Constants) -> bytes:
    """The code of a shader without what its constants never reach, as drivers get it."""
    return bytes(pruned(shader_library().get(name).spirv, constants))


@cache
def digest_of(name: str, constants: Constants) -> str:
    """The digest of that code, as the layer computes it."""
    digest = 14695981039346656037
    for byte in pruned_code(name, constants):
        digest = (digest ^ byte) * 1099511628211 & (1 << 64) - 1
    return f"{digest:016x}"


@cache
def _name_of(module: str, nbytes: int, constants: Constants) -> str:
    numbers = {number for number, _ in constants}
    shaders = shader_library()
    for name in shaders:
        specs = {spec.id: spec for spec in shaders.get(name).specs}
        needed = {number for number, spec in specs.items() if not spec.may_be_pushed}
        if (needed <= numbers <= set(specs) and len(pruned_code(name, constants)) == nbytes
                and digest_of(name, constants) == module):
            words = " ".join(f"{shaders.get(name).spec_names[number]}={value}"
                             for number, value in constants if number in specs)
            return f"{name}({words})"
    return module


def pipeline_of(line: dict[str, Any]) -> Pipeline:
    """A pipeline by the layer's line of it."""
    found: dict[str, Any] = {}
    for executable in line["executables"]:
        # Intel's compiler makes a kernel several times, for threads of more and more lanes.
        if executable["subgroup"] >= found.get("subgroup", 0):
            found |= executable
    for form in _PRINTED:
        said = form.search(line["said"])
        found |= {name: int(value) for name, value in (said.groupdict() if said else {}).items()}
    spills, occupancy, instructions = (
        next((int(found[name]) for name in names if name in found), 0)
        for names in (_SPILLS, _OCCUPANCY, _INSTRUCTIONS))
    constants = tuple(sorted((number, value) for number, value in line["constants"]))
    return Pipeline(line["module"], constants, _name_of(line["module"], line["nbytes"], constants),
                    line["result"], line["cpu_ms"], spills, occupancy, instructions,
                    found.get("subgroup", 0), found.get("code", ""))


def summary_of(found: Capture) -> dict[str, Any]:
    """What a program's pipelines come to, for a baseline or a table."""
    pipelines = [pipeline_of(line) for line in found.pipelines]
    # A pipeline that was made a second time, behind one that failed, counts once.
    made = {pipeline.name: pipeline for pipeline in pipelines}
    good = [pipeline for _, pipeline in sorted(made.items()) if not pipeline.failed]
    return {"driver": found.driver, "error": found.error, "pipelines": len(good),
            "failed": sorted(name for name, pipeline in made.items() if pipeline.failed),
            "spilling": {pipeline.name: pipeline.spills for pipeline in good if pipeline.spills},
            "occupancy": min((pipeline.occupancy for pipeline in good), default=0),
            "instructions": sum(pipeline.instructions for pipeline in good),
            "compile_cpu_ms": round(sum(pipeline.cpu_ms for pipeline in pipelines))}
