"""Cached plans: what a load has worked out, in a file, for later loads of the same program.

The way from a program's bytes to its records and their places is Python. All of it follows from the
files, the options, the device and vkrt's own code, so a process that loads what another one has
loaded before need not go it, nor import the modules that do. What it takes instead is the work
list, the plan, and what the method's inputs and outputs are.

A file's name says what it follows from; the bytes of a program stand there as which file they are
in, and when that was changed. Its content is checked JSON (`vkrt.work.codec`) with a checksum: what
it says becomes numbers, texts and records whose types, ranges and places are checked, and nothing
else. What kernels do with their parameters is not checked, so files and folders that somebody else
may have written are not read (`vkrt.vk.private_file`). A file that is not there, or does not hold
what it should, is none: then the program is read.

Programs in memory have no cached plan, nor have methods with dynamic shapes, which lower again at
every new shape, nor what depends on the weights that another method has brought to the device.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from vkrt.dataclass import dataclass, fields, replace
from vkrt.device.policy import policy_of
from vkrt.digest import sha256
from vkrt.errors import FormatError, UnsupportedError
from vkrt.extensions import file_of
from vkrt.files import packed_beside
from vkrt.graph.graph import Graph
from vkrt.graph.symbols import IndexLimit, Limit, Read, Symbol
from vkrt.hints import Any
from vkrt.method.prepared import Prepared
from vkrt.method.specialization import specialization_of
from vkrt.plan import consistency
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.plan.options import LoadOptions
from vkrt.plan.serial import plan_schema
from vkrt.runtime.mapping import Mapper
from vkrt.runtime.refusals import refused_by
from vkrt.shader import catalog
from vkrt.version import __version__
from vkrt.vk import private_file
from vkrt.vk.cache_file import cache_folder, resolved
from vkrt.work.codec import TEXT, Table, many, optional, parsed, record, text_of
from vkrt.work.envelope import content_of, seal
from vkrt.work.records import WorkList
from vkrt.work.serial import (
    ANY_INTEGER,
    CONSTANT,
    HOST_DTYPE,
    INDEX,
    NATURAL,
    SIZES,
    WorkListSchema,
    value_or,
)
from vkrt.work.tensor import Operand, Tensor, device_dtype

SUFFIX = ".vkplan"
MAGIC = b"vkrtplan"
VERSION = 3
PARTS = 12
MAX_BYTES = 64 << 20
MAX_FOLDER_BYTES = 64 << 20
# Packages whose extension modules plans depend on: what storages need, what is imported, ..
IN_C = ("memory", "runtime", "vk")
# A file that was changed so lately may be changed again without another time of change.
RECENT_NS = 2_000_000_000

TENSOR = record(Tensor, sizes=SIZES, dtype=HOST_DTYPE, host_dtype=HOST_DTYPE,
                constant=optional(CONSTANT), name=TEXT, dynamic_dims=SIZES, bounds=optional(SIZES))
LIMIT = record(Limit, read=record(Read, input=INDEX, element=NATURAL), low=ANY_INTEGER,
               high=ANY_INTEGER, where=TEXT)
INDEX_LIMIT = record(IndexLimit, input=INDEX, low=ANY_INTEGER, high=ANY_INTEGER, where=TEXT)


@dataclass(frozen=True)
class Kept:
    """What is kept of a method.

    Attributes:
        methods: the names of all methods of the program.
        method: the name of this one.
        inputs, outputs: as `Graph` has them.
        input_names, output_names: as `Graph` has them.
        file_arena: as `Graph` has it.
        work: the work list that runs.
        plan: of its memory.
        limits, index_limits: as `Prepared` has them.
    """

    methods: tuple[str, ...]
    method: str
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    file_arena: int
    work: WorkList
    plan: MemoryPlan
    limits: tuple[Limit, ...]
    index_limits: tuple[IndexLimit, ...]

    @classmethod
    def of(cls, methods: Sequence[str], prepared: Prepared) -> Kept | None:
        """What is to be kept of a method; None where it should not be."""
        graph = prepared.graph
        if (graph.is_dynamic or prepared.shared.owners
                or any(isinstance(value, Symbol) for value in graph.inputs)):
            return None
        return cls(tuple(methods), graph.name, tuple(graph.inputs), tuple(graph.outputs),
                   graph.input_names, graph.output_names, graph.file_arena, prepared.work,
                   prepared.plan, prepared.limits, prepared.index_limits)

    @property
    def graph(self) -> Graph:
        """The method's graph without its nodes."""
        return Graph(self.method, list(self.inputs), list(self.outputs),
                     file_arena=self.file_arena, input_names=self.input_names,
                     output_names=self.output_names)

    def prepare(self, device: Any, sources: Sequence[Any], options: LoadOptions,
                ) -> Prepared | None:
        """The method as `vkrt.method.prepare` makes it, which the caller closes; None where the
        driver does not import now what it has imported then."""
        mapper = Mapper(device, sources, self.work.target.offset_alignment,
                        options.weights == "map")
        try:
            mapper.acquire(self.plan.placements.weights("map"))
        except UnsupportedError:
            return None
        except BaseException:
            mapper.close()
            raise
        return Prepared(self.graph, self.work, self.work, self.plan, tuple(sources), mapper,
                        limits=self.limits, index_limits=self.index_limits,
                        specialization=specialization_of(device.info, options))

    def check(self) -> None:
        """Checks that work list, plan, inputs and outputs fit together (FormatError)."""
        consistency.check(self.work, self.plan)
        work = self.work
        if (self.method not in self.methods or len(work.inputs) != len(self.inputs)
                or len(self.input_names) not in (0, len(self.inputs))
                or len(self.output_names) not in (0, len(self.outputs))
                or len(work.outputs) != len(self.outputs)
                or not all(operand is None or _is_operand_of(value, operand)
                           for value, operand in zip(self.inputs, work.inputs))
                or not all(_is_operand_of(value, other) or not isinstance(value, Tensor)
                           and not isinstance(other, Operand)
                           for value, other in zip(self.outputs, work.outputs))
                or any(limit.read.input >= len(self.inputs) for limit in self.limits)
                or not all(limit.input < len(self.inputs)
                           and isinstance(self.inputs[limit.input], Tensor)
                           for limit in self.index_limits)):
            raise FormatError("inputs and outputs are not those of the work list")


def _is_operand_of(value: Any, operand: Any) -> bool:
    """Whether an operand has the elements of an input or output."""
    return (isinstance(value, Tensor) and isinstance(operand, Operand)
            and value.numel == math.prod(operand.sizes)
            and device_dtype(value.host_dtype) == operand.dtype)


class PlanFiles:
    """The files of kept plans for one program and one set of options.

    Args:
        sources: of the program's bytes, then of its data files.
        options: `options.plan_cache` is the folder, "off", or "auto".

    Attributes:
        any: whether there is a plan for some device.
    """

    def __init__(self, sources: Sequence[Any], options: LoadOptions):
        self._start = ""
        self.any = False
        folder = folder_of(options.plan_cache)
        identities = [source.identity for source in sources]
        if folder is None or None in identities:
            return
        # With packed weights, part of the work list depends on one more file.
        if options.packed != "off" and (
                options.packed != "auto" or os.path.exists(packed_beside(sources[0].name))):
            return
        latest = max(stamp for identity in identities for stamp in identity[-2:])
        if abs(time.time_ns() - latest) < RECENT_NS:
            return
        # Of the options what plans depend on
        options = replace(options, plan_cache="off", pipeline_cache="off", packed="off",
                          prefetch="auto", keep_cached=None)
        try:
            code = sorted(_code())
        except (OSError, UnsupportedError):  # an archive, or a copy that was not built
            return
        start = _digest(repr((__version__, code, identities, options)))
        self._start = os.path.join(folder, start)
        with suppress(OSError):
            self.any = any(name.startswith(start) for name in os.listdir(folder))

    def read(self, device: Any) -> Kept | None:
        """The plan for a device; None where there is none."""
        if not self.any:
            return None
        data = private_file.read(self._path(device), MAX_BYTES)
        return None if data is None else from_bytes(data)

    def write(self, device: Any, kept: Kept | None) -> bool:
        """Keeps the plan for a device; returns whether it could."""
        if not self._start or kept is None:
            return False
        data = to_bytes(kept)
        path = self._path(device)
        if len(data) > MAX_BYTES or not private_file.put(path, data):
            return False
        private_file.prune(os.path.dirname(path), path, SUFFIX, MAX_FOLDER_BYTES)
        return True

    def _path(self, device: Any) -> str:
        return f"{self._start}-{_digest(repr(_device(device)))}{SUFFIX}"


def folder_of(option: str | os.PathLike[str]) -> str | None:
    """The folder of kept plans; None for none."""
    folder = resolved(option, "VKRT_PLAN_CACHE")
    if folder == "off":
        return None
    return cache_folder() if folder == "auto" else folder


def to_bytes(kept: Kept) -> bytes:
    """A file's content: tensors, what refers to them, the work list and its plan, limits."""
    tensors = Table(TENSOR)
    values = many(value_or(Tensor, tensors.schema, "Any"))
    inputs, outputs = values.write(kept.inputs), values.write(kept.outputs)
    return seal(MAGIC, VERSION, text_of([
        list(kept.methods), kept.method, kept.file_arena, tensors.write(), inputs, outputs,
        list(kept.input_names), list(kept.output_names),
        WorkListSchema().write(kept.work), plan_schema().write(kept.plan),
        many(LIMIT).write(kept.limits), many(INDEX_LIMIT).write(kept.index_limits)]))


def from_bytes(data: bytes) -> Kept | None:
    """What a file's content stands for; None where it is not what `to_bytes` makes."""
    try:
        content, end = content_of(data, MAGIC, VERSION, "a cached plan", MAX_BYTES)
        found = parsed(content)
        if end != len(data) or type(found) is not list or len(found) != PARTS:
            return None
        (methods, method, file_arena, tensors, inputs, outputs, input_names, output_names, work,
         plan, limits, index_limits) = found
        table = Table(TENSOR)
        table.read(tensors)
        values = many(value_or(Tensor, table.schema, "Any"))
        work = WorkListSchema().read(work)
        kept = Kept(many(TEXT).read(methods), TEXT.read(method), values.read(inputs),
                    values.read(outputs), many(TEXT).read(input_names),
                    many(TEXT).read(output_names), NATURAL.read(file_arena), work,
                    plan_schema(work).read(plan), many(LIMIT).read(limits),
                    many(INDEX_LIMIT).read(index_limits))
        kept.check()
    except (FormatError, RecursionError):
        return None
    return kept


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hex()[:24]


def _device(device: Any) -> tuple[Any, ...]:
    """Everything of a device that plans depend on."""
    info = tuple(getattr(device.info, f.name) for f in fields(device.info))
    return (info, sorted(device.features), device.unified, device.reads_slowly,
            policy_of(device.info), refused_by(device))


def _code() -> Iterator[tuple[str, int, int]]:
    """Which code makes plans: name, bytes and time of change of every module, also of those in C,
    and of the compiled shaders."""
    yield "", *catalog().stamp
    for room in IN_C:
        # In an editable install it lies elsewhere than the modules in Python.
        path = file_of(f"vkrt.{room}._{room}")
        if path is None:
            raise FileNotFoundError(f"the extension modules of {room}")
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
