"""Cached plans: what a program was compiled to, in a file, for later loads of the same program.

A process that finds what another one has compiled does not import the compiler. A file's name is a
digest of everything that the plan follows from: options, device, vkrt's own code, and the program's
files with their times of change. Its content is a flat file (`vkrt.executable.flat`) with a
checksum, and the ranges and places in it are checked. What kernels do with their parameters is not,
so files and folders that somebody else may have written are not read (`vkrt.vk.private_file`).

There is no cached plan for a program in memory, for a method with dynamic shapes, which is lowered
again at every new shape, or for a plan that depends on another method's weights on the device.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

from vkrt.compiler.shape import ShapePlan
from vkrt.device.policy import policy_of
from vkrt.errors import FormatError, UnsupportedError
from vkrt.executable import flat, rows
from vkrt.executable.modules import check_interfaces, module_of
from vkrt.executable.program import (
    Compiled,
    CompiledMethod,
    CompiledTarget,
    MethodPlan,
    shaders_of,
)
from vkrt.extensions import shared_object
from vkrt.graph.graph import Graph
from vkrt.graph.symbols import Symbol
from vkrt.memory.sha256 import sha256
from vkrt.plan.options import LoadOptions
from vkrt.shader import shader_library
from vkrt.version import __version__
from vkrt.vk import private_file
from vkrt.vk.cache_folder import cache_folder

SUFFIX = ".vkplan"
MAX_BYTES = 64 << 20
MAX_FOLDER_BYTES = 64 << 20
# A file that was changed so recently may be changed again without a new time of change.
RECENT_NS = 2_000_000_000


def method_plan(methods: Sequence[str], plan: ShapePlan) -> MethodPlan:
    """The record of a method at one shape; `methods` are the names of the program's methods."""
    graph = plan.graph
    return MethodPlan(tuple(methods), graph.name, tuple(graph.inputs), tuple(graph.outputs),
                      graph.input_names, graph.output_names, graph.file_arena,
                      plan.planned.record, plan.limits, plan.index_limits)


def graph_of(plan: MethodPlan) -> Graph:
    """The graph of a method, without its nodes."""
    return Graph(plan.method, list(plan.inputs), list(plan.outputs), file_arena=plan.file_arena,
                 input_names=plan.input_names, output_names=plan.output_names)


def shape_plan(plan: MethodPlan) -> ShapePlan:
    return ShapePlan(graph_of(plan), plan.executable, plan.limits, plan.index_limits)


def is_fixed(graph: Graph) -> bool:
    """Whether a method does the same whatever its inputs are."""
    return not graph.is_dynamic and not any(isinstance(value, Symbol) for value in graph.inputs)


class PlanFiles:
    """The files of cached plans for one program and one set of options; `any`: whether there is a
    plan for some device.

    Args:
        sources: of the program's bytes, then of its data files.
        options: `options.plan_cache` is the folder, "off", or "auto".
    """

    def __init__(self, sources: Sequence[Any], options: LoadOptions):
        self._start = ""
        self._sources = len(sources)
        self.any = False
        folder = folder_of(options.plan_cache)
        identities = [source.identity for source in sources]
        if folder is None or None in identities:
            return
        latest = max(stamp for identity in identities for stamp in identity[-2:])
        if abs(time.time_ns() - latest) < RECENT_NS:
            return
        # Only the options that plans depend on
        options = replace(options, plan_cache="off", pipeline_cache="off", prefetch="auto",
                          keep_cached=None)
        try:
            code = sorted(_code())
        except (OSError, UnsupportedError):  # an archive, or a copy that was not built
            return
        start = _digest(repr((__version__, code, identities, options)))
        self._start = os.path.join(folder, start)
        with suppress(OSError):
            self.any = any(name.startswith(start) for name in os.listdir(folder))

    def read(self, device: Any) -> MethodPlan | None:
        if not self.any:
            return None
        data = private_file.read(self._path(device), MAX_BYTES)
        return None if data is None else from_bytes(data, self._sources)

    def write(self, device: Any, plan: MethodPlan) -> bool:
        if not self._start:
            return False
        data = to_bytes(plan)
        path = self._path(device)
        if len(data) > MAX_BYTES or not private_file.put(path, data):
            return False
        private_file.prune(os.path.dirname(path), path, SUFFIX, MAX_FOLDER_BYTES)
        return True

    def _path(self, device: Any) -> str:
        return f"{self._start}-{_digest(repr(_device(device)))}{SUFFIX}"


def folder_of(option: str | os.PathLike[str]) -> str | None:
    """The folder of cached plans; None for none."""
    folder = os.fsdecode(option)
    if folder == "auto":
        folder = os.environ.get("VKRT_PLAN_CACHE") or folder
    if folder == "off":
        return None
    return cache_folder() if folder == "auto" else folder


def to_bytes(plan: MethodPlan) -> bytes:
    modules = tuple(map(module_of, shaders_of([plan.executable])))
    target = CompiledTarget("", (CompiledMethod(plan),))
    return rows.to_bytes(Compiled(__version__, "", (), (target,), modules))


def from_bytes(data: bytes, sources: int) -> MethodPlan | None:
    """The plan in a file's content; None if it is no valid plan of so many source files."""
    try:
        compiled = flat.File(data, sources, 0).read()
        check_interfaces(compiled.modules)
    except (FormatError, UnsupportedError):
        return None
    return compiled.targets[0].methods[0].largest


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hex()[:24]


def _device(device: Any) -> tuple[Any, ...]:
    """Everything of a device that plans depend on."""
    info = tuple(getattr(device.info, f.name) for f in fields(device.info))
    return (info, sorted(device.features), device.unified, device.reads_slowly,
            policy_of(device.info), device.refused)


def _code() -> Iterator[tuple[str, int, int]]:
    """Identifies the code that makes plans: name, bytes and time of change of every module, of the
    C code and of the compiled shaders."""
    yield "", *shader_library().stamp
    # The C code decides what storages need, what is imported, ..; in an editable install it lies
    # elsewhere than the Python modules.
    path = shared_object()
    if path is None:
        raise FileNotFoundError("the extension modules")
    status = os.stat(path)
    yield path, status.st_size, status.st_mtime_ns
    folders = [os.path.dirname(os.path.dirname(__file__))]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    yield entry.path, status.st_size, status.st_mtime_ns
                elif entry.is_dir() and not entry.name.startswith(("_", ".")):
                    folders.append(entry.path)
