"""Cached plans: what a program was compiled to, in a file, for later loads of the same program.

A process that finds what another one has compiled does not import the compiler. A file's name is a
digest of everything that the plan follows from: options, device, vkrt's own code, and the program's
files with their times of change. Its content is a flat file (`vkrt.executable.flat`) with a
checksum, and the ranges and places in it are checked. What kernels do with their parameters is not,
so files and folders that somebody else may have written are not read (`vkrt.vk.private_file`).

A method with dynamic shapes has one file for the shape that it is loaded for, and one for each of
the shapes that it ran at lately (`vkrt.compiler.shape_files`).

There is no cached plan for a program in memory, for a method in which numbers decide sizes
(`why_unkept`), or for a plan that depends on another method's weights on the device.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any, NamedTuple

from vkrt.compiler.shape import ShapePlan
from vkrt.device.policy import policy_of
from vkrt.errors import FormatError, UnsupportedError
from vkrt.executable import flat, rows
from vkrt.executable.modules import check_interfaces, module_of
from vkrt.executable.program import (
    Compiled,
    CompiledMethod,
    CompiledTarget,
    ConstantMethod,
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


def method_plan(methods: Sequence[str], plan: ShapePlan, whole: Graph | None = None) -> MethodPlan:
    """The record of a method at one shape.

    Args:
        methods: the names of the program's methods.
        whole: the method's graph, with the names of inputs and outputs, where `plan.graph` is the
            one at the sizes of a call.
    """
    graph = plan.graph
    named = whole or graph
    return MethodPlan(tuple(methods), graph.name, tuple(graph.inputs), tuple(graph.outputs),
                      named.input_names, named.output_names, graph.file_arena,
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


def why_unkept(graph: Graph) -> str:
    """Why no plan of a method is kept; "" where one is."""
    if graph.counts:
        return "the data of a run decide sizes in it"
    if graph.reads:
        return "what its inputs hold decides sizes or places in it"
    if any(isinstance(value, Symbol) for value in graph.inputs):
        return "an input of it is a number"
    return ""


class CachedPlan(NamedTuple):
    """What a file has.

    Attributes:
        plan: of a method.
        constants: the program's methods that only return numbers; none in the file of a further
            shape.
    """

    plan: MethodPlan
    constants: tuple[ConstantMethod, ...] = ()


class PlanFiles:
    """The files of cached plans for one program and one set of options.

    Args:
        sources: of the program's bytes, then of its data files.
        options: `options.plan_cache` is the folder, "off", or "auto".

    Attributes:
        folder: the folder; None for none.
        any: whether there is a plan for some device.
        is_off: whether nothing is to be kept.
        why: why no plan of the program can be kept, although it is to be; else "".
    """

    def __init__(self, sources: Sequence[Any], options: LoadOptions):
        self._digest = ""
        self._sources = len(sources)
        self.any = False
        option = os.fsdecode(options.plan_cache)
        if option == "auto":
            option = os.environ.get("VKRT_PLAN_CACHE") or option
        self.is_off = option == "off"
        self.folder = cache_folder() if option == "auto" else option
        self.why = ""
        if self.is_off:
            return
        if self.folder is None:
            self.why = "there is no folder for caches (neither HOME nor XDG_CACHE_HOME is set)"
            return
        identities = [source.identity for source in sources]
        if None in identities:
            self.why = "it is in memory, or its data is, and not in files"
            return
        latest = max(stamp for identity in identities for stamp in identity[-2:])
        if abs(time.time_ns() - latest) < RECENT_NS:
            self.why = "a file of it was changed within the last two seconds"
            return
        # Only the options that plans depend on
        options = replace(options, plan_cache="off", pipeline_cache="off", prefetch="auto",
                          keep_cached=None)
        try:
            code = sorted(_code())
        except (OSError, UnsupportedError):
            self.why = "vkrt is in an archive, or was not built"
            return
        self._digest = digest_of(repr((__version__, code, identities, options)))
        with suppress(OSError):
            self.any = any(name.startswith(self._digest) for name in os.listdir(self.folder))

    def read(self, device: Any) -> CachedPlan | None:
        """The plan of the method that a load gets ready at once; None where there is no valid one.

        Args:
            device: an `OpenDevice`.
        """
        return self.read_file(self.name(device)) if self.any else None

    def write(self, device: Any, cached: CachedPlan) -> str:
        """Keeps this plan; returns why it could not, or ""."""
        return self.why or self.write_file(self.name(device), cached)

    def read_file(self, name: str) -> CachedPlan | None:
        """The plan in the file of this name, which becomes as new as one that is written; None
        where there is no valid one."""
        path = self.path(name)
        data = private_file.read(path, MAX_BYTES)
        found = None if data is None else from_bytes(data, self._sources)
        if found is not None:
            # Those that were used lately stay. In a folder of root's the age does not change.
            with suppress(OSError):
                os.utime(path, follow_symlinks=False)
        return found

    def write_file(self, name: str, cached: CachedPlan) -> str:
        """Writes a file of this name; returns why it could not, or ""."""
        data, path = to_bytes(cached), self.path(name)
        if len(data) > MAX_BYTES:
            return f"it has {len(data):,} bytes, of {MAX_BYTES:,} at most"
        if not private_file.put(path, data):
            return (f"{self.folder} is full, or no folder that this user and nobody else can write "
                    "to")
        private_file.prune(os.path.dirname(path), path, SUFFIX, MAX_FOLDER_BYTES)
        return ""

    def path(self, name: str) -> str:
        """The path of a file; there is a folder."""
        assert self.folder is not None
        return os.path.join(self.folder, name)

    def name(self, device: Any) -> str:
        """The name of the file of the plan for a device."""
        return f"{self._digest}-{digest_of(repr(_device(device)))}{SUFFIX}"


def to_bytes(cached: CachedPlan) -> bytes:
    modules = tuple(map(module_of, shaders_of([cached.plan.executable])))
    target = CompiledTarget("", (CompiledMethod(cached.plan),))
    return rows.to_bytes(Compiled(__version__, "", cached.constants, (target,), modules))


def from_bytes(data: bytes, sources: int) -> CachedPlan | None:
    """The plan in a file's content; None if it is no valid plan of so many source files."""
    try:
        compiled = flat.File(data, sources, 0).read()
        check_interfaces(compiled.modules)
    except (FormatError, UnsupportedError):
        return None
    return CachedPlan(compiled.targets[0].methods[0].largest, compiled.constants)


def digest_of(text: str) -> str:
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
