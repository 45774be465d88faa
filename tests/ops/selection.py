"""Samples that together run every kernel: which of them few tests have to run.

What a sample runs is asked of its lowering, so a sample or a kernel that changes is dealt anew.
The answer is kept in `.cache/tests`, under a name that follows from everything it depends on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from dealing import STORAGES, number_of
from harness import Variant, variants

from vkrt.lowering.lowering import lower
from vkrt.shader import catalog
from vkrt.shader.catalog import Shader
from vkrt.work.records import Dispatch
from vkrt.work.target import Target

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "tests"

# A sample, as its name says, in a storage
Place = tuple[str, str]


def kernels_of(variant: Variant, storage: str) -> set[str]:
    """Names of the kernels that a sample runs, on a device with large limits."""
    work = lower(variant.case().graph, Target(storage=storage, max_texels=1 << 26,
                                              max_image_extent=16384, scratch="any"))
    return {step.shader for step in work.steps if isinstance(step, Dispatch)} | {
        prepack.shader for prepack in work.prepacks}


def interface_of(kernel: str) -> str:
    """What a driver's calls see of a kernel: its bindings."""
    shader: Shader = catalog().get(kernel)
    return str([(binding.type, binding.writable) for binding in shader.bindings])


def chosen(what: str) -> set[Place]:
    """Samples in the storages in which they are to run.

    Args:
        what: "kernels": every kernel once, and every sample's operator. "interfaces": every set of
            bindings that a kernel has, once.
    """
    return {(name, storage) for name, storage in _kept()[what]}


def _kept() -> dict[str, list[Place]]:
    file = CACHE / f"samples-{_stamp()}.json"
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        made = file.with_suffix(f".{os.getpid()}")
        made.write_text(json.dumps(_find()))
        made.rename(file)
    return json.loads(file.read_text())


def _stamp() -> str:
    """What the answer depends on: the samples, the operators, the kernels."""
    digest = hashlib.sha256(repr(sorted(catalog())).encode())
    folders = [ROOT / "tests" / "ops", *(ROOT / "vkrt" / room for room in (
        "device", "graph", "lowering", "ops", "passes", "work"))]
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _find() -> dict[str, list[Place]]:
    runs: dict[Place, tuple[str, set[str]]] = {}
    for variant in variants():
        first = number_of(variant) % 3
        for storage in STORAGES[first:] + STORAGES[:first]:
            runs[str(variant), storage] = variant.sample.op, kernels_of(variant, storage)
    return {"kernels": _cover(runs, lambda op, kernels: {op, *kernels}),
            "interfaces": _cover(runs, lambda _, kernels: set(map(interface_of, kernels)))}


def _cover(runs: dict[Place, tuple[str, set[str]]],
           facts: Callable[[str, Iterable[str]], set[str]]) -> list[Place]:
    """Places, in the order of their samples, until every fact is there."""
    seen: set[str] = set()
    found = []
    for place, (op, kernels) in runs.items():
        new = facts(op, kernels) - seen
        if new:
            seen |= new
            found.append(place)
    return found
