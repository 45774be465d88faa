"""Samples that together run every kernel, and those that a choice of kernels makes a difference to.

What a sample runs is asked of its lowering, so a sample or a kernel that changes is dealt anew.
The answers are kept in `.cache/tests`, under names that follow from everything they depend on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from dealing import STORAGES, number_of
from harness import Variant, variants

from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.shader import catalog
from vkrt.shader.catalog import Shader
from vkrt.work.records import Dispatch
from vkrt.work.target import Target

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "tests"

Item = TypeVar("Item")
# A sample, as its name says, in a storage
Place = tuple[str, str]


def kernels_on(graph: Graph, target: Target) -> set[str]:
    """Names of the kernels that a graph runs, and of those that pack its weights."""
    work = lower(graph, target)
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
    return {(name, storage) for name, storage in _kept("samples", _find)[what]}


def differing(name: str, differs: Callable[[Graph], bool],
              among: Callable[[Variant], bool]) -> list[Variant]:
    """The variants whose graphs lead to other kernels by a choice.

    Args:
        name: of the choice; no two choices have one.
        differs: says so of the graph of a variant.
        among: of which variants that is asked.
    """
    every = list(variants())
    return [every[number] for number in _kept(name, lambda: [
        number for number, variant in enumerate(every)
        if among(variant) and differs(variant.case().graph)])]


def _kept(name: str, find: Callable[[], Any]) -> Any:
    """What `find` gives, as JSON; from the file, where it was asked for before."""
    file = CACHE / f"{name}-{_stamp()}.json"
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        made = file.with_suffix(f".{os.getpid()}")
        made.write_text(json.dumps(find()))
        made.rename(file)
    return json.loads(file.read_text())


@cache
def _stamp() -> str:
    """What the answers depend on: the samples, the operators, the kernels."""
    digest = hashlib.sha256(repr(sorted(catalog())).encode())
    folders = [ROOT / "tests" / "ops", *(ROOT / "vkrt" / room for room in (
        "device", "graph", "lowering", "ops", "passes", "plan", "work"))]
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _find() -> dict[str, list[Place]]:
    runs: dict[Place, tuple[str, set[str]]] = {}
    for variant in variants():
        first = number_of(variant) % 3
        graph = variant.case().graph
        for storage in STORAGES[first:] + STORAGES[:first]:
            runs[str(variant), storage] = variant.sample.op, kernels_on(graph, Target(
                storage=storage, max_texels=1 << 26, max_image_extent=16384, scratch="any"))
    return {"kernels": cover((place, {op, *kernels}) for place, (op, kernels) in runs.items()),
            "interfaces": cover((place, set(map(interface_of, kernels)))
                                for place, (_, kernels) in runs.items())}


def cover(items: Iterable[tuple[Item, set[Any]]], seen: set[Any] | None = None) -> list[Item]:
    """Of items, each with facts, those that have a fact that no item before has.

    Args:
        seen: facts of items before the first; it gets those that are found.
    """
    seen = set() if seen is None else seen
    found = []
    for item, facts in items:
        if facts - seen:
            seen |= facts
            found.append(item)
    return found
