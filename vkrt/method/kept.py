"""Cached plans: what a load has worked out, in a file, for later loads of the same program.

The way from a program's bytes to its executable is Python. All of it follows from the
files, the options, the device and vkrt's own code, so a process that loads what another one has
loaded before need not go it, nor import the modules that do. What it takes instead is the
executable, and what the method's inputs and outputs are.

A file's name says what it follows from; the bytes of a program stand there as which file they are
in, and when that was changed. Its content is a flat file (`vkrt.executable.flat`) with a checksum:
what it says becomes numbers, texts and records whose ranges and places are checked, and nothing
else (`vkrt.executable.check`). What kernels do with their parameters is not checked, so files and
folders that somebody else may have written are not read (`vkrt.vk.private_file`). A file that is
not there, or does not hold what it should, is none: then the program is read.

Programs in memory have no cached plan, nor have methods with dynamic shapes, which lower again at
every new shape, nor what depends on the weights that another method has brought to the device.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache

from vkrt.dataclass import dataclass, fields, replace
from vkrt.device.policy import policy_of
from vkrt.digest import sha256
from vkrt.errors import FormatError, UnsupportedError
from vkrt.executable.check import check, expect
from vkrt.executable.executable import RECORDS, UNIONS, Executable
from vkrt.executable.flat import Format
from vkrt.executable.records import HostArray
from vkrt.extensions import file_of
from vkrt.files import packed_beside
from vkrt.graph.graph import Graph
from vkrt.graph.symbols import IndexLimit, Limit, Read, Symbol
from vkrt.hints import Any
from vkrt.method.prepared import Prepared
from vkrt.plan.options import LoadOptions
from vkrt.runtime.mapping import Mapper
from vkrt.runtime.refusals import refused_by
from vkrt.shader import catalog
from vkrt.version import __version__
from vkrt.vk import private_file
from vkrt.vk.cache_file import cache_folder, resolved
from vkrt.work.records import ReadArgument
from vkrt.work.tensor import DTYPES, ITEMSIZE, Constant, Tensor, device_dtype

SUFFIX = ".vkplan"
MAGIC = b"vkrtplan"
VERSION = 4
MAX_BYTES = 64 << 20
MAX_FOLDER_BYTES = 64 << 20
# Packages whose extension modules plans depend on: what storages need, what is imported, ..
IN_C = ("memory", "runtime", "vk")
# A file that was changed so lately may be changed again without another time of change.
RECENT_NS = 2_000_000_000

@dataclass(frozen=True)
class Kept:
    """What is kept of a method.

    Attributes:
        methods: the names of all methods of the program.
        method: the name of this one.
        inputs, outputs: as `Graph` has them.
        input_names, output_names: as `Graph` has them.
        file_arena: as `Graph` has it.
        executable: the method on one device.
        limits, index_limits: as `Prepared` has them.
    """

    methods: tuple[str, ...]
    method: str
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    file_arena: int
    executable: Executable
    limits: tuple[Limit, ...]
    index_limits: tuple[IndexLimit, ...]

    @classmethod
    def of(cls, methods: Sequence[str], prepared: Prepared) -> Kept | None:
        """What is to be kept of a method; None where it should not be."""
        if prepared.shared.owners or not is_fixed(prepared.graph):
            return None
        return cls.of_fixed(methods, prepared)

    @classmethod
    def of_fixed(cls, methods: Sequence[str], prepared: Prepared) -> Kept:
        """The same of a method that is planned now and has no dynamic shapes."""
        graph, plan = prepared.graph, prepared.plan
        assert not isinstance(plan, Executable)
        return cls(tuple(methods), graph.name, tuple(graph.inputs), tuple(graph.outputs),
                   graph.input_names, graph.output_names, graph.file_arena, plan.executable,
                   prepared.limits, prepared.index_limits)

    @property
    def graph(self) -> Graph:
        """The method's graph without its nodes."""
        return Graph(self.method, list(self.inputs), list(self.outputs),
                     file_arena=self.file_arena, input_names=self.input_names,
                     output_names=self.output_names)

    def prepare(self, device: Any, sources: Sequence[Any], options: LoadOptions) -> Prepared:
        """The method as `vkrt.method.prepare` makes it, which the caller closes.

        Raises:
            UnsupportedError: the device does not read weights in their files that are to be mapped.
        """
        executable = self.executable
        mapper = Mapper(device, sources, executable.offset_alignment, options.weights == "map")
        try:
            for read in executable.weights.mapped:
                if why := mapper.cannot_map(read):
                    raise UnsupportedError(f"{read.name} cannot be read in its file: {why}")
            mapper.acquire(executable.weights.mapped)
        except BaseException:
            mapper.close()
            raise
        return Prepared(self.graph, executable, tuple(sources), mapper, limits=self.limits,
                        index_limits=self.index_limits)

    def check(self, sources: int) -> None:
        """Checks that everything fits together.

        Args:
            sources: how many files the program has.

        Raises:
            FormatError: something does not.
        """
        check(self.executable, sources)
        self.check_border()

    def check_border(self) -> None:
        """Checks that inputs, outputs and limits are those of the executable (FormatError)."""
        execution, count = self.executable.execution, len(self.inputs)
        for tensor in (*self.inputs, *self.outputs):
            if isinstance(tensor, Tensor):
                _check_tensor(tensor)
        expect(self.method in self.methods, self.method, "one of the methods")
        expect(len(execution.inputs) == count and len(self.input_names) in (0, count), count,
               "inputs and their names")
        expect(len(execution.outputs) == len(self.outputs)
               and len(self.output_names) in (0, len(self.outputs)), len(self.outputs),
               "outputs and their names")
        for value, array in zip(self.inputs, execution.inputs):
            expect(array is None or _has_elements_of(array, value), array, f"an array of {value}")
        for value, array in zip(self.outputs, execution.outputs):
            expect(array is None and not isinstance(value, Tensor)
                   or _has_elements_of(array, value), array, f"an array of {value}")
        for limit in self.limits:
            expect(0 <= limit.read.input < count and limit.read.element >= 0
                   and isinstance(self.inputs[limit.read.input], Tensor), limit,
                   "an element of an input")
        for indices in self.index_limits:
            expect(0 <= indices.input < count and isinstance(self.inputs[indices.input], Tensor),
                   indices, "an input")


def is_fixed(graph: Graph) -> bool:
    """Whether a method does the same whatever its inputs are."""
    return not graph.is_dynamic and not any(isinstance(value, Symbol) for value in graph.inputs)


def _check_tensor(tensor: Tensor) -> None:
    expect(min((0, *tensor.sizes)) == 0 and tensor.dtype in DTYPES
           and tensor.host_dtype in ITEMSIZE
           and len(tensor.bounds or tensor.sizes) == len(tensor.sizes)
           and all(0 <= dim < len(tensor.sizes) for dim in tensor.dynamic_dims), tensor,
           "sizes and dtypes of a tensor")


def _has_elements_of(array: HostArray | None, value: Any) -> bool:
    return (isinstance(value, Tensor) and array is not None
            and value.numel == math.prod(array.sizes)
            and device_dtype(value.host_dtype) == array.dtype)


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
        self._sources = len(sources)
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
        return None if data is None else from_bytes(data, self._sources)

    def write(self, device: Any, kept: Kept | None) -> bool:
        """Keeps the plan for a device; returns whether it could."""
        if not self._start or kept is None:
            return False
        data = plan_format().to_bytes(kept)
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


@cache
def plan_format() -> Format:
    """How plans lie in files."""
    return Format(Kept, (*RECORDS, Executable, Constant, IndexLimit, Limit, Read), UNIONS,
                  (ReadArgument, Tensor), MAGIC, VERSION)


def from_bytes(data: bytes, sources: int) -> Kept | None:
    """What a file's content stands for; None where it is not what a plan of a program with so many
    files can be."""
    try:
        kept: Kept = plan_format().from_bytes(data)
        kept.check(sources)
    except FormatError:
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
