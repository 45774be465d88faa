"""The file of a compiled program (`.vkx`).

    magic of 8 bytes, u32 version, u32 0, u64 where the records begin, u64 how many bytes they have
    weights, from a multiple of `PAGE` on, each where a device may read it in place
    SPIR-V modules, each at a multiple of 4 bytes
    the records, a flat file (`vkrt.executable.flat`) of a `Compiled`, at a multiple of 8 bytes

All of it is little-endian. Of weights the executables say where they are, of modules the records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cache

from vkrt.dataclass import dataclass, replace
from vkrt.errors import FormatError
from vkrt.executable.check import check, expect
from vkrt.executable.executable import RECORDS, UNIONS, Executable
from vkrt.executable.flat import Format
from vkrt.executable.memory import MemoryFigures
from vkrt.executable.records import ExecutionPlan
from vkrt.files import COMPILED_MAGIC as MAGIC
from vkrt.graph.symbols import IndexLimit, Limit, Read
from vkrt.hints import Any
from vkrt.memory.source import Source
from vkrt.method.kept import Kept
from vkrt.work.records import ReadArgument
from vkrt.work.tensor import Constant, Tensor

SUFFIX = ".vkx"
VERSION = 1
HEAD = struct.Struct("<8sIIQQ")
# The largest pages that a system is known to map
PAGE = 1 << 16


@dataclass(frozen=True)
class Module:
    """A SPIR-V module that executables name.

    Attributes:
        name: of the shader.
        sha256: of its bytes, in hexadecimal digits.
        offset, nbytes: where it is in the file.
    """

    name: str
    sha256: str
    offset: int
    nbytes: int


@dataclass(frozen=True)
class ConstantMethod:
    """A method that only returns numbers that the exporter was told.

    Attributes:
        name: of the method.
        values: what it returns.
    """

    name: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class CompiledShape:
    """A method at one more shape of its inputs, over the weights and states that it has.

    Attributes:
        inputs: sizes of each input.
        outputs: tensors of the sizes that they have then, or numbers.
        execution: the commands of a run.
        figures: bytes of device memory while it runs.
        limits, index_limits: as `vkrt.method.prepared.Prepared` has them.
    """

    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[Any, ...]
    execution: ExecutionPlan
    figures: MemoryFigures
    limits: tuple[Limit, ...]
    index_limits: tuple[IndexLimit, ...]


@dataclass(frozen=True)
class CompiledMethod:
    """A method for one device.

    Attributes:
        largest: the method at the shape that needs the most memory.
        others: at further shapes.
    """

    largest: Kept
    others: tuple[CompiledShape, ...] = ()

    @property
    def name(self) -> str:
        """Of the method."""
        return self.largest.method

    @property
    def executables(self) -> tuple[Executable, ...]:
        """At every shape, the largest first."""
        return (self.largest.executable, *map(self._at, self.others))

    def _at(self, shape: CompiledShape) -> Executable:
        return replace(self.largest.executable, execution=shape.execution, figures=shape.figures)

    def kept_at(self, shape: CompiledShape, executable: Executable) -> Kept:
        """The method at a further shape."""
        inputs = tuple(replace(value, sizes=sizes) if isinstance(value, Tensor) else value
                       for value, sizes in zip(self.largest.inputs, shape.inputs))
        return replace(self.largest, inputs=inputs, outputs=shape.outputs, executable=executable,
                       limits=shape.limits, index_limits=shape.index_limits)

    def check(self) -> None:
        """Checks the method at every shape (FormatError)."""
        check(self.largest.executable, 1, tuple(shape.execution for shape in self.others))
        self.largest.check_border()
        count = len(self.largest.inputs)
        for shape, executable in zip(self.others, self.executables[1:]):
            expect(len(shape.inputs) == count, shape.inputs, f"sizes of {count} inputs")
            self.kept_at(shape, executable).check_border()


@dataclass(frozen=True)
class CompiledTarget:
    """The methods of a program for one device, and for those that it fits as well.

    Attributes:
        device: its name, for messages.
        methods: in the order of the program.
    """

    device: str
    methods: tuple[CompiledMethod, ...]


@dataclass(frozen=True)
class Compiled:
    """What a compiled program consists of.

    Attributes:
        vkrt: version of what has compiled it.
        program: name of the file that it was compiled from.
        constants: the methods that only return numbers.
        targets: at least one, each with the same methods.
        modules: of the shaders that any of them names, by their names.
    """

    vkrt: str
    program: str
    constants: tuple[ConstantMethod, ...]
    targets: tuple[CompiledTarget, ...]
    modules: tuple[Module, ...]

    def check(self, records: int) -> None:
        """Checks everything that loads go by.

        Args:
            records: where the records begin in the file.

        Raises:
            FormatError: something does not fit something else.
        """
        expect(bool(self.targets), self.targets, "a target")
        names = [method.name for method in self.targets[0].methods]
        known = {module.name for module in self.modules}
        for module in self.modules:
            expect(module.offset >= 0 and 0 < module.nbytes <= records - module.offset
                   and module.nbytes % 4 == 0, module, "a module before the records")
        for target in self.targets:
            expect([method.name for method in target.methods] == names != [], names,
                   "the same methods for each target")
            for method in target.methods:
                method.check()
                for shader in shaders_of(method.executables):
                    expect(shader in known, shader, "one of the modules of the file")


@cache
def compiled_format() -> Format:
    """How the records lie in files."""
    classes = (*RECORDS, CompiledMethod, CompiledShape, CompiledTarget, Constant, ConstantMethod,
               Executable, IndexLimit, Kept, Limit, Module, Read)
    return Format(Compiled, classes, UNIONS, (ReadArgument, Tensor), MAGIC, VERSION)


def shaders_of(executables: Iterable[Executable]) -> list[str]:
    """Names of the shaders that executables need, each once."""
    kernels = [kernel for executable in executables
               for kernel in (*executable.execution.kernels, *executable.weights.prepack.kernels)]
    return list(dict.fromkeys(kernel.shader for kernel in kernels))


def read(source: Source) -> Compiled:
    """What a file says.

    Raises:
        FormatError: it is not a whole file of a compiled program, or a damaged one.
    """
    with memoryview(source) as data:
        try:
            expect(len(data) >= HEAD.size, len(data), f"{HEAD.size} bytes or more")
            magic, version, zero, start, nbytes = HEAD.unpack_from(data)
            expect(magic == MAGIC, magic, "the first bytes of a compiled program")
            expect(version == VERSION and not zero, version, f"format version {VERSION}; compile "
                   "the program again")
            expect(start % 8 == 0 and start >= HEAD.size and start + nbytes == len(data),
                   len(data), f"a file of {start + nbytes:,} bytes (is it cut off?)")
            compiled: Compiled = compiled_format().from_bytes(bytes(data[start:]))
            compiled.check(start)
        except FormatError as error:
            raise FormatError(f"{source.name}: {error}") from error
    return compiled
