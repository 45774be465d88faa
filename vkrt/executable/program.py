"""The records of a program's file: its methods for one device or several, with executables.

A compiled program is such a file. So is a cached plan: it has one method for one device, and refers
to shaders and weights in other files.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from vkrt.executable.executable import RECORDS as EXECUTABLE_RECORDS
from vkrt.executable.executable import Executable
from vkrt.executable.memory import BLOCK_KINDS, MemoryFigures
from vkrt.executable.records import ExecutionPlan
from vkrt.work.host_arguments import ReadArgument
from vkrt.work.limits import IndexLimit, Limit, Read
from vkrt.work.tensor import ITEMSIZE, ROLES, Constant, Tensor


class ModuleBinding(NamedTuple):
    """A binding of a shader, in descriptor set 0.

    Attributes:
        number: of the binding.
        type: VkDescriptorType.
    """

    number: int
    type: int


class Module(NamedTuple):
    """A SPIR-V module that executables name.

    Attributes:
        name: of the shader.
        sha256: of its bytes, in hexadecimal digits; "" where the file does not have them.
        offset, nbytes: where it is in the file; 0 where it is not.
        bindings: those that its code uses, in the order of their numbers.
        push_bytes: of its push constants.
        capabilities: of SPIR-V, by name.
    """

    name: str
    sha256: str
    offset: int
    nbytes: int
    bindings: tuple[ModuleBinding, ...]
    push_bytes: int
    capabilities: tuple[str, ...]


class ConstantMethod(NamedTuple):
    """A method that only returns numbers that were given to the exporter.

    Attributes:
        name: of the method.
        values: what it returns.
    """

    name: str
    values: tuple[Any, ...]


class MethodPlan(NamedTuple):
    """A method for one device, at one shape of its inputs.

    Attributes:
        methods: the names of all methods of the program.
        method: the name of this one.
        inputs, outputs: as `vkrt.graph.graph.Graph` has them.
        input_names, output_names: as `Graph` has them.
        file_arena: as `Graph` has it.
        executable: the method on the device.
        limits, index_limits: as `vkrt.compiler.shape.ShapePlan` has them.
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


class CompiledShape(NamedTuple):
    """A method at one more shape of its inputs, with the same weights and states.

    Attributes:
        inputs: sizes of each input.
        outputs: tensors with their sizes at this shape, or numbers.
        execution: the commands of a run.
        figures: bytes of device memory while it runs.
        limits, index_limits: as those of a `MethodPlan`.
    """

    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[Any, ...]
    execution: ExecutionPlan
    figures: MemoryFigures
    limits: tuple[Limit, ...]
    index_limits: tuple[IndexLimit, ...]


class SharedUse(NamedTuple):
    """One group of shared weights; a method reads all weights of it.

    Attributes:
        number: which of `CompiledTarget.shared`.
        storages: the numbers that the group's storages have in the method, in their order.
    """

    number: int
    storages: tuple[int, ...]


class CompiledMethod(NamedTuple):
    """A method for one device.

    Attributes:
        largest: the method at the shape that needs the most memory.
        others: at further shapes.
        shared: the weights that it shares with other methods.
    """

    largest: MethodPlan
    others: tuple[CompiledShape, ...] = ()
    shared: tuple[SharedUse, ...] = ()

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.largest.method

    @property
    def executables(self) -> tuple[Executable, ...]:
        """The executables at every shape, the largest first."""
        return (self.largest.executable, *map(self._at, self.others))

    def _at(self, shape: CompiledShape) -> Executable:
        return self.largest.executable._replace(execution=shape.execution, figures=shape.figures)

    def plan_at(self, shape: CompiledShape, executable: Executable) -> MethodPlan:
        """The method at a further shape."""
        inputs = tuple(replace(value, sizes=sizes) if isinstance(value, Tensor) else value
                       for value, sizes in zip(self.largest.inputs, shape.inputs))
        return self.largest._replace(inputs=inputs, outputs=shape.outputs, executable=executable,
                                     limits=shape.limits, index_limits=shape.index_limits)


class CompiledTarget(NamedTuple):
    """The methods of a program for one device, and for other devices that they fit.

    Attributes:
        device: its name, for messages.
        methods: in the order of the program.
        shared: weights that several of these read, in one group for each set of methods. A group is
            a method that has weights and computes nothing; it is loaded before the first method
            that reads it.
    """

    device: str
    methods: tuple[CompiledMethod, ...]
    shared: tuple[CompiledMethod, ...] = ()

    def loaded_for(self, method: CompiledMethod) -> tuple[CompiledMethod, ...]:
        """What is loaded for one method alone, in order."""
        return (*(self.shared[use.number] for use in method.shared), method)

    def figures_of(self, method: CompiledMethod) -> MemoryFigures:
        """The figures of a load of one method alone."""
        *before, own = [loaded.largest.executable.figures for loaded in self.loaded_for(method)]
        kept = peak = 0
        for figures in before:
            peak = max(peak, kept + figures.peak_bytes)
            kept += figures.weight_bytes
        return replace(own, weight_bytes=kept + own.weight_bytes,
                       largest_weight=max(f.largest_weight for f in (*before, own)),
                       staging_bytes=max(f.staging_bytes for f in (*before, own)),
                       peak_bytes=max(peak, kept + own.peak_bytes))


class Compiled(NamedTuple):
    """What a compiled program consists of.

    Attributes:
        vkrt: the version of vkrt that has compiled it.
        program: name of the file that it was compiled from.
        constants: the methods that only return numbers.
        targets: at least one, each with the same methods.
        modules: of all shaders that the targets name.
    """

    vkrt: str
    program: str
    constants: tuple[ConstantMethod, ...]
    targets: tuple[CompiledTarget, ...]
    modules: tuple[Module, ...]


# Everything that such a file is made of, by name; a `Compiled` is the outermost record
RECORDS: dict[str, type] = {cls.__name__: cls for cls in (
    *EXECUTABLE_RECORDS, Compiled, CompiledMethod, CompiledShape, CompiledTarget, Constant,
    ConstantMethod, Executable, IndexLimit, Limit, MethodPlan, Module, ModuleBinding, Read,
    ReadArgument, SharedUse, Tensor)}
# Annotations of these records: unions, names out of a list, and values of any type
UNIONS = {"Command": "DispatchCommand | CopyCommand | BarrierCommand"}
ENUMS = {"BlockKind": BLOCK_KINDS, "Dtype": tuple(ITEMSIZE), "Role": ROLES}
ANYTHING = ("None", "bool", "int", "float", "str", "tuple[Any, ...]", "ReadArgument", "Tensor")


def shaders_of(executables: Iterable[Executable]) -> list[str]:
    """Names of the shaders that executables need, each once."""
    kernels = [kernel for executable in executables
               for kernel in (*executable.execution.kernels, *executable.weights.prepack.kernels)]
    return list(dict.fromkeys(kernel.shader for kernel in kernels))
