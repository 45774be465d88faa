"""From a method of a program file to its graph: delegates and kernels joined into one node list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vkrt import pte
from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph import kernel_calls, prims
from vkrt.graph.angles import widen_angles
from vkrt.graph.constants import only_number
from vkrt.graph.control import ControlFlow
from vkrt.graph.counts import read_and_written_early
from vkrt.graph.delegate import DelegateNodes
from vkrt.graph.graph import Graph, Node, Predicate, node_of
from vkrt.graph.kernels import CONVERT, Kernel, on_device
from vkrt.graph.masks import choose_by_masks
from vkrt.graph.names import names_of
from vkrt.graph.numbers import Number
from vkrt.graph.pairs import Pairs
from vkrt.graph.states import States
from vkrt.graph.symbols import Symbol, bounded
from vkrt.graph.twins import join_twins
from vkrt.graph.views import Writes
from vkrt.work.limits import Read
from vkrt.work.tensor import DTYPES, HOST_DTYPES, Constant, Tensor, device_dtype, host_dtype

# What a small file may multiply. Values and nodes of delegates that are called again, as loops do:
# so many take seconds. Elements of lists that nodes have as arguments, as many nodes may name one.
MOST_REPEATED = 500_000
MOST_ELEMENTS, ELEMENTS_EACH = 1_000_000, 64


def build_graph(data, program: pte.Program, plan: pte.ExecutionPlan,
                kernels: Mapping[str, Kernel], find_dynamic: Callable[[Graph], None],
                mutated: Callable[[str], Sequence[int]], external: pte.External | None = None,
                data_files: Sequence[Any] = ()) -> Graph:
    """The graph of one method, complete: nothing changes it any more.

    Args:
        data: the bytes of the program file; `data_files`: those of its `.ptd` files.
        program: what `vkrt.pte.read_program` read from them; `plan`: the method's plan in it.
        kernels: portable kernels that the device does (`vkrt.ops.registry.kernels`).
        find_dynamic: works out what calls may change in the sizes of a graph, which the file does
            not say (`vkrt.dynamic.ranges.find_dynamic`).
        mutated: places of the arguments that an operator changes in place, by its name
            (`vkrt.ops.registry.mutated`).
        external: the constants in `.ptd` files, if any.

    Raises:
        FormatError: the delegates and the plan contradict each other.
        UnsupportedError: the method needs control flow, another backend or mutable buffers, or the
            file does not say which value is which at the border of a delegate, or whether two
            delegates have one buffer.
    """
    graph = Builder(data, program, plan, kernels, mutated, external, data_files).build()
    find_dynamic(graph)
    return graph


class Builder:
    """Builds a graph; the arguments are those of `build_graph`."""

    def __init__(self, data, program, plan, kernels, mutated, external, data_files=()):
        self.data = data
        self.sources = (data, *data_files)
        self.program = program
        self.plan = plan
        self.kernels = kernels
        self.mutated = mutated
        self.external = external or pte.External()
        self.graph = Graph(plan.name)
        self.graph.input_names, self.graph.output_names = names_of(program, plan)
        self.values: list[Any] = list(plan.values)
        self.adopted: set[Tensor] = set()
        # Values that an instruction has written, and what is where in planned memory.
        self.made: set[int] = set()
        self.writes = Writes(plan)
        self.unsupported = self.graph.unsupported
        self.blobs: dict[Any, pte.VkGraph] = {}
        self.states = States()
        # Each with the number of its delegate, as states have it
        self.constants: dict[Tensor, int] = {}
        # Nodes and symbols in order
        self.chain: list[Node | Symbol] = []
        # Inputs of the method by the tensors that hold their elements
        self.origins: dict[Tensor, int] = {}
        # For a tensor of one element: which element of which input it holds
        self.elements: dict[Tensor, tuple[int, int]] = {}
        # Values that were arguments of an instruction so far
        self.touched: set[int] = set()
        # The conditions under which the nodes run that are being added
        self.predicate: Predicate = ()
        # How many sizes the data decide, the values with such sizes, and the places in masks, by
        # the mask and by the conditions under which they are counted
        self.counts = 0
        self.counted: set[int] = set()
        self.mask_places: dict[tuple[Tensor, Predicate], tuple[Tensor, ...]] = {}
        # Elements of lists that are arguments, and values and nodes of delegates that are called
        # again
        self._elements = self._repeated = 0
        # The parts, so far, of tensors that loops make part by part, by value id
        self.parts: dict[int, list[Tensor]] = {}

    def build(self) -> Graph:
        for index, value in enumerate(self.values):
            if isinstance(value, pte.TensorMeta):
                self.values[index] = tensor = self._program_tensor(index, value)
                if tensor.constant is not None:
                    self.constants[tensor] = States.OUTSIDE
        self.graph.inputs = [self.values[i] for i in self.plan.inputs]
        self.origins = {value: number for number, value in enumerate(self.graph.inputs)
                        if isinstance(value, Tensor)}
        ControlFlow(self, self.plan.instructions).walk()
        self.find_views(self.plan.outputs)
        # By now all delegates have fixed the dtypes in which they take their values.
        borders = [*self.graph.inputs, *(self.values[i] for i in self.plan.outputs)]
        for value in borders:
            if isinstance(value, Tensor) and value.host_dtype not in HOST_DTYPES:
                self.unsupported[f"input or output of {value.host_dtype}"] += 1
        self.chain = [new for entry in Pairs(self.chain, borders).rewritten()
                      for new in ((entry,) if isinstance(entry, Symbol)
                                  else self._on_device(entry))]
        self.graph.nodes = [entry for entry in self.chain if isinstance(entry, Node)]
        outputs, self.graph.notes = join_twins(
            self.graph.nodes, [self.values[i] for i in self.plan.outputs], self.constants,
            self.states.by_delegate(), self.sources)
        self.graph.outputs = bounded(outputs)
        self._mark_dynamic(outputs)
        self.graph.states = list(self.states)
        if self.counts:
            for name in read_and_written_early(self.graph.nodes, self.mutated):
                self.unsupported[f"buffer {name}, read and then written in place, where the data "
                                 "decide sizes"] += 1
        self.graph.finish()
        widen_angles(self.graph)
        return self.graph

    def _on_device(self, node: Node) -> Iterator[Node]:
        for each in choose_by_masks(node):
            yield from on_device(each, self.kernels)

    def take(self, instruction: pte.Instruction) -> None:
        if isinstance(instruction, pte.DelegateCall):
            self._delegate_call(instruction)
        elif isinstance(instruction, pte.MoveCall):
            self.find_views([instruction.source])
            self.values[instruction.target] = self.values[instruction.source]
            self.made.add(instruction.target)
            self.writes.add(instruction.target)
        elif isinstance(instruction, pte.KernelCall):
            name = self.plan.operators[instruction.op]
            if not prims.take(self, name, instruction.args):
                kernel_calls.take(self, name, instruction.args)
        self.touched.update(getattr(instruction, "args", ()))

    def _delegate_call(self, call: pte.DelegateCall) -> None:
        reference = self.plan.delegates[call.delegate]
        if reference.id != "VulkanBackend":
            self.unsupported[f"delegate of backend '{reference.id}'"] += 1
            return
        blob = self.blobs.get(reference.span)
        if blob is None:
            blob = self.blobs[reference.span] = pte.read_delegate(
                self.data, reference.span, self.program.named_data, self.external)
        else:
            self._repeated += len(blob.values) + len(blob.chain)
        if self._repeated > MOST_REPEATED:
            self.unsupported["delegates that loops repeat too often (more than "
                             f"{MOST_REPEATED:,} values and nodes in all)"] += 1
            return
        DelegateNodes(self, blob, call.delegate).join(call.args)

    def _mark_dynamic(self, outputs: list[Any]) -> None:
        """Notes what calls may change; keeps the chain only if there is anything."""
        changes = any(isinstance(entry, Symbol) and entry.kind == "read" for entry in self.chain)
        for index, tensor in zip(self.plan.inputs, self.graph.inputs):
            if getattr(self.plan.values[index], "dynamism", 0):
                # The file says that a tensor is dynamic, not in which dimensions.
                tensor.dynamic_dims = tuple(d for d, n in enumerate(tensor.sizes) if n > 1)
                changes = True
        if changes:
            self.graph.chain = self.chain
            self.graph.output_symbols = {
                i: value for i, value in enumerate(outputs) if isinstance(value, Symbol)}

    def add(self, op: str, args: tuple[Any, ...], outs: tuple[Tensor, ...], label: str,
            kernel: str = "") -> None:
        self._elements += sum(len(arg) for arg in args if isinstance(arg, (list, tuple)))
        if self._elements > MOST_ELEMENTS + ELEMENTS_EACH * len(self.chain):
            raise UnsupportedError(
                f"method '{self.plan.name}': the lists that its nodes have as arguments have more "
                f"than {MOST_ELEMENTS:,} elements together, and {ELEMENTS_EACH} for each node "
                f"({label})")
        self.chain.append(node_of(op, args, outs, label, is_host=bool(kernel), kernel=kernel,
                                  predicate=self.predicate))

    def symbol(self, kind: str, args: tuple[Any, ...], bound: Number) -> Symbol:
        made = Symbol(kind, args, bound)
        self.chain.append(made)
        return made

    def _program_tensor(self, index: int, meta: pte.TensorMeta) -> Tensor:
        dtype = device_dtype(meta.dtype)
        name = meta.name or f"value {index}"
        constant = None
        if meta.external_key is not None:
            constant = self._external_constant(meta, name)
        elif meta.constant is not None:
            constant = Constant(meta.constant.offset, meta.constant.nbytes, meta.dtype,
                                number=only_number(self.data, meta.constant, meta.dtype))
        tensor = Tensor(meta.sizes, dtype, host_dtype(meta.dtype), constant, name)
        if not meta.mutable:
            return tensor
        tensor = replace(tensor, constant=None)
        if dtype != meta.dtype:
            self.unsupported[f"buffer of {meta.dtype} that begins with data"] += 1
        elif constant is not None and dtype in DTYPES:
            self.keep(index, tensor, constant)
        return tensor

    def keep(self, value_id: int, tensor: Tensor, initial: Constant) -> None:
        self.states.keep(value_id, tensor, initial)
        self.made.add(value_id)
        self.writes.add_first(value_id)
        # It keeps its dtype whatever a delegate takes.
        self.adopted.add(tensor)

    def _external_constant(self, meta: pte.TensorMeta, name: str) -> Constant:
        """A program-level constant that lies in a `.ptd` file under the tensor's name."""
        key = meta.external_key or ""
        found = self.external.find(key, f"method '{self.plan.name}', {name}")
        layout = found.layout or (meta.dtype, meta.sizes)
        if layout != (meta.dtype, meta.sizes) or found.span.nbytes != meta.nbytes:
            raise FormatError(f"method '{self.plan.name}', {name}: expected {meta.nbytes} bytes, "
                              f"{meta.dtype}{list(meta.sizes)}, under this key of "
                              f"{self.external.files[found.source - 1]}, got {found.span.nbytes}, "
                              f"{layout[0]}{list(layout[1])}")
        return Constant(found.span.offset, found.span.nbytes, meta.dtype, key, found.source)

    # Numbers outside of the delegates

    def integer(self, value_id: int) -> Any:
        """The integer or `Symbol` that a value is; None if it is neither. An input without a value
        in the file becomes an integer if an instruction uses it as one."""
        value = self.values[value_id]
        if value is None and value_id in self.plan.inputs and value_id not in self.made:
            number = self.plan.inputs.index(value_id)
            value = self.values[value_id] = self.symbol("read", (Read(number, 0),), 0)
            self.graph.inputs[number] = value
        return value if isinstance(value, (int, Symbol)) else None

    def read(self, tensor: Tensor, element: int) -> Any:
        """An element of a tensor that holds an input, as a symbolic integer."""
        number, first = self.elements.get(tensor, (self.origins.get(tensor), 0))
        if number is None or not -tensor.numel <= element < tensor.numel:
            self.unsupported["symbolic integer read from a computed tensor"] += 1
            return 0
        return self.symbol("read", (Read(number, first + element % tensor.numel),), 0)

    # Values that are read and written

    def find_views(self, value_ids: Sequence[int]) -> None:
        """Makes values that are about to be read, also those in lists, views of values that were
        written to the same memory since (see `vkrt.graph.views`)."""
        for value_id in value_ids:
            value = self.values[value_id]
            is_list = isinstance(value, (pte.TensorList, pte.OptionalTensorList))
            for one in value.ids if is_list else (value_id,):
                source_id = None if one is None else self.writes.source_of(one)
                if one is not None and source_id is not None:
                    self._find_view(one, self.values[one], self.values[source_id])

    def _find_view(self, value_id: int, old: Any, source: Any) -> None:
        if (isinstance(source, Tensor) and isinstance(old, Tensor)
                and source.host_dtype == old.host_dtype and source.numel == old.numel):
            result = Tensor(old.sizes, source.dtype, old.host_dtype, None, old.name)
            self.add("aten.view_copy.default", (source, list(old.sizes)), (result,),
                     f"view in '{self.plan.name}'")
            self.adopted.add(source)
            self.values[value_id] = result
            self.made.add(value_id)
            self.writes.add_view(value_id)
            self.follow(source, result)

    def set(self, value_id: int, tensor: Tensor) -> None:
        old = self.values[value_id]
        if self.states.is_kept(value_id) and isinstance(old, Tensor):
            tensor = self.convert(tensor, old.dtype)
            self.refuse_predicated()
            self.states.give(value_id, tensor)
        self.values[value_id] = tensor
        self.made.add(value_id)
        self.writes.add(value_id)

    def refuse_predicated(self) -> None:
        """Refuses a change of a state that only runs under a condition."""
        if self.predicate:
            self.unsupported["control flow (a branch that changes a buffer)"] += 1

    def renew(self, value_id: int, old: Tensor) -> Tensor:
        """A new tensor for a value that is written (its place may have been used before)."""
        self.writes.add(value_id)
        if self.states.is_kept(value_id):
            self.refuse_predicated()
            new = self.states.write(States.OUTSIDE, value_id)
            self.values[value_id] = new
            self.adopted.add(new)
            return new
        new = Tensor(old.sizes, device_dtype(old.host_dtype), old.host_dtype, None, old.name)
        self.values[value_id] = new
        self.made.add(value_id)
        return new

    def is_known(self, value_id: int) -> bool:
        """Whether a value of the program exists before the instruction that is being added."""
        return value_id in self.made or value_id in self.plan.inputs or getattr(
            self.values[value_id], "constant", None) is not None

    def convert(self, tensor: Tensor, dtype: str) -> Tensor:
        """The tensor in the dtype a delegate expects at its border."""
        if tensor.dtype == dtype:
            return tensor
        if tensor not in self.adopted and tensor.constant is None:
            # A method's input or a host kernel's result: it takes the first delegate's dtype.
            tensor.dtype = dtype
            return tensor
        result = Tensor(tensor.sizes, dtype, tensor.host_dtype, None, tensor.name)
        self.add(CONVERT, (tensor,), (result,), "border of a delegate")
        self.adopted.add(result)
        self.follow(tensor, result)
        return result

    def follow(self, tensor: Tensor, result: Tensor) -> None:
        """Notes that a tensor holds the elements of another, in their order."""
        if tensor in self.origins:
            self.origins[result] = self.origins[tensor]
