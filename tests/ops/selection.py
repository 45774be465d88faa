"""Samples that together run every kernel, and those that a choice of kernels makes a difference to.

What a sample runs is asked of its lowering. The answers are kept in `.cache/tests/samples`, under
names that follow from everything they depend on.
"""

import fcntl
import hashlib
import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from dealing import STORAGES, number_of
from harness import Variant, variants

from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.shader import shader_library
from vkrt.shader.library import Shader
from vkrt.work.records import Dispatch
from vkrt.work.target import Target

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "tests" / "samples"

# In how many parts variants are asked: processes that ask at the same time take one after the other
PARTS = 32

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
    shader: Shader = shader_library().get(kernel)
    return str([(binding.type, binding.writable) for binding in shader.bindings])


@cache
def chosen(what: str) -> set[Place]:
    """Samples in the storages in which they are to run: for "kernels" every kernel and every
    sample's operator once, for "interfaces" every set of bindings that a kernel has."""
    places = []
    for variant, by_storage in zip(variants(), _answers("samples", _kernels), strict=True):
        first = number_of(variant) % 3
        for storage in STORAGES[first:] + STORAGES[:first]:
            kernels = set(by_storage[storage])
            places.append(((str(variant), storage), {variant.sample.op, *kernels}
                           if what == "kernels" else set(map(interface_of, kernels))))
    return set(cover(places))


def _kernels(variant: Variant) -> dict[str, list[str]]:
    """The kernels of a variant by storage."""
    graph = variant.case().graph
    return {storage: sorted(kernels_on(graph, Target(
        storage=storage, max_texels=1 << 26, max_image_extent=16384, scratch="any")))
        for storage in STORAGES}


def differing(name: str, differs: Callable[[Graph], bool],
              among: Callable[[Variant], bool]) -> list[Variant]:
    """The variants, among some, whose graphs lead to other kernels by a choice; no two choices have
    one name."""
    answers = _answers(name, lambda variant: among(variant) and differs(variant.case().graph))
    return [variant for variant, answer in zip(variants(), answers, strict=True) if answer]


def _answers(name: str, ask: Callable[[Variant], Any]) -> list[Any]:
    """What all variants answer, as JSON; from files, where that was asked before. Processes that
    ask at the same time take one part after the other."""
    every = list(variants())
    answers = [None] * len(every)
    for can_wait in (False, True):
        for number in range(PARTS):
            part = slice(number, None, PARTS)
            answers[part] = _kept(f"{name}-{number}", lambda some=every[part]: list(map(ask, some)),
                                  can_wait) or answers[part]
    return answers


def _kept(name: str, find: Callable[[], Any], can_wait: bool) -> Any:
    """What `find` gives, as JSON; from the file, where a process has asked for it before. Where one
    is at it, None is returned, unless this one can wait."""
    CACHE.mkdir(parents=True, exist_ok=True)
    file = CACHE / f"{name}-{_stamp()}.json"
    with open(file.with_suffix(".lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if can_wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return None
        if not file.exists():
            made = file.with_suffix(".new")
            made.write_text(json.dumps(find()))
            made.rename(file)
    return json.loads(file.read_text())


@cache
def _stamp() -> str:
    """What the answers depend on: the samples, the operators, the kernels. Older answers go."""
    digest = hashlib.sha256(repr(sorted(shader_library())).encode())
    folders = [ROOT / "tests" / "ops", *(ROOT / "vkrt" / package for package in (
        "device", "graph", "lowering", "ops", "passes", "plan", "work"))]
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        digest.update(path.read_bytes())
    stamp = digest.hexdigest()[:16]
    for file in CACHE.glob("*"):
        if stamp not in file.name:
            file.unlink(missing_ok=True)
    return stamp


def cover(items: Iterable[tuple[Item, set[Any]]], seen: set[Any] | None = None) -> list[Item]:
    """Of items with facts, those with a fact that neither an item before nor `seen` has; `seen`
    gets what is found."""
    seen = set() if seen is None else seen
    found = []
    for item, facts in items:
        if facts - seen:
            seen |= facts
            found.append(item)
    return found
