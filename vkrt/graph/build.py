"""From a method of a program file to its graph: delegates and kernels joined into one node list."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from vkrt import pte
from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph.graph import Graph, Node, node_of
from vkrt.graph.kernels import CONVERT, REFUSED, on_device, split_arguments
from vkrt.graph.states import PREPACK, States, changed_in_place
from vkrt.graph.symbols import (
    ARITHMETIC,
    Read,
    Symbol,
    bounded,
    compute,
    size_of,
    symbols_in,
)
from vkrt.graph.tensor import DTYPES, Constant, Tensor, device_dtype, itemsize
from vkrt.pte.coerce import as_int
from vkrt.pte.plan import IntList as IdList

SELECT = "et_vk.select_as_symint.default"


def build_graph(data, program: pte.Program, plan: pte.ExecutionPlan,
                external: pte.External | None = None) -> Graph:
    """The graph of one method.

    Args:
        data: the bytes of the program file.
        program: what `vkrt.pte.read_program` read from them.
        plan: the method's plan in it.
        external: the constants in `.ptd` files, if any.

    Raises:
        FormatError: the delegates and the plan contradict each other.
        UnsupportedError: the method needs control flow, another backend or mutable buffers.
    """
    return _Builder(data, program, plan, external).build()


class _Builder:
    def __init__(self, data, program, plan, external):
        self.data = data
        self.program = program
        self.plan = plan
        self.external = external or pte.External()
        self.graph = Graph(plan.name)
        self.values: list[Any] = list(plan.values)
        self.adopted: set[Tensor] = set()
        # Values that an instruction has written.
        self.made: set[int] = set()
        self.unsupported: Counter[str] = Counter()
        self.blobs: dict[Any, pte.VkGraph] = {}
        self.states = States()
        # Nodes and symbols in order
        self.chain: list[Node | Symbol] = []
        # Inputs of the method by the tensors that hold their elements
        self.origins: dict[Tensor, int] = {}

    def build(self) -> Graph:
        for index, value in enumerate(self.values):
            if isinstance(value, pte.TensorMeta):
                self.values[index] = self._program_tensor(index, value)
        self.graph.inputs = [self.values[i] for i in self.plan.inputs]
        self.origins = {value: number for number, value in enumerate(self.graph.inputs)
                        if isinstance(value, Tensor)}
        for instruction in self.plan.instructions:
            if isinstance(instruction, pte.DelegateCall):
                self._delegate_call(instruction)
            elif isinstance(instruction, pte.KernelCall):
                self._kernel_call(instruction)
            elif not isinstance(instruction, pte.FreeCall):
                self.unsupported[f"control flow ({type(instruction).__name__})"] += 1
        # Now that all delegates have said in which dtypes they take their values.
        self.chain = [new for entry in self.chain
                      for new in ((entry,) if isinstance(entry, Symbol) else on_device(entry))]
        self.graph.nodes = [entry for entry in self.chain if isinstance(entry, Node)]
        outputs = [self.values[i] for i in self.plan.outputs]
        self.graph.outputs = bounded(outputs)
        self._mark_dynamic(outputs)
        self.graph.states = list(self.states)
        self.graph.unsupported = self.unsupported
        return self.graph.finish()

    def _mark_dynamic(self, outputs: list[Any]) -> None:
        """Notes what calls may change; keeps the chain only where that is anything."""
        changes = any(isinstance(entry, Symbol) and entry.kind == "read" for entry in self.chain)
        for index, tensor in zip(self.plan.inputs, self.graph.inputs):
            if getattr(self.plan.values[index], "dynamism", 0):
                # The file says that a tensor is dynamic, not in which dimensions; see
                # `vkrt.ops.resolving.find_dynamic`.
                tensor.dynamic_dims = tuple(d for d, n in enumerate(tensor.sizes) if n > 1)
                changes = True
        if changes:
            self.graph.chain = self.chain
            self.graph.output_symbols = {
                i: value for i, value in enumerate(outputs) if isinstance(value, Symbol)}

    def add(self, op: str, args: tuple[Any, ...], outs: tuple[Tensor, ...], label: str,
            kernel: str = "") -> None:
        """Adds a node; its arguments may hold symbols."""
        self.chain.append(node_of(op, args, outs, label, is_host=bool(kernel), kernel=kernel))

    def symbol(self, kind: str, args: tuple[Any, ...], bound: int) -> Symbol:
        """Adds a symbol."""
        made = Symbol(kind, args, bound)
        self.chain.append(made)
        return made

    def _program_tensor(self, index: int, meta: pte.TensorMeta) -> Tensor:
        dtype = device_dtype(meta.dtype)
        name = meta.name or f"value {index}"
        if dtype not in DTYPES:
            self.unsupported[f"dtype {meta.dtype} of {name}"] += 1
        constant = None
        if meta.external_key is not None:
            constant = self._external_constant(meta, name)
        elif meta.constant is not None:
            constant = Constant(meta.constant.offset, meta.constant.nbytes, meta.dtype)
        if meta.mutable:
            self.unsupported[f"mutable buffer {name}"] += 1
        return Tensor(meta.sizes, dtype, meta.dtype, constant, name)

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

    # Kernels outside of the delegates

    def _kernel_call(self, call: pte.KernelCall) -> None:
        name = self.plan.operators[call.op]
        inputs, out_ids = split_arguments(name, call.args, self.values, self.made)
        if not out_ids or name in REFUSED:
            self.unsupported[f"{name} ({REFUSED.get(name, 'in place')})"] += 1
            return
        resolved = tuple(self._resolve(i) for i in inputs)
        outs = []
        for value_id in out_ids:
            old = self.values[value_id]
            if not isinstance(old, Tensor):
                self.unsupported[f"{name} (result is not a tensor)"] += 1
                return
            outs.append(self._renew(value_id, old))
        self.add(name, resolved, tuple(outs), f"kernel of '{self.plan.name}'", kernel=name)

    def _renew(self, value_id: int, old: Tensor) -> Tensor:
        """A new tensor for a value that is written (its place may have been used before)."""
        new = Tensor(old.sizes, device_dtype(old.host_dtype), old.host_dtype, None, old.name)
        self.values[value_id] = new
        self.made.add(value_id)
        return new

    def _resolve(self, value_id: int) -> Any:
        value = self.values[value_id]
        if isinstance(value, IdList):
            return [self.values[i] for i in value.items]
        if isinstance(value, (pte.TensorList, pte.OptionalTensorList)):
            return [None if i is None else self.values[i] for i in value.ids]
        if isinstance(value, (pte.DoubleList, pte.BoolList)):
            return list(value.items)
        return value

    # Delegates

    def _delegate_call(self, call: pte.DelegateCall) -> None:
        reference = self.plan.delegates[call.delegate]
        if reference.id != "VulkanBackend":
            self.unsupported[f"delegate of backend '{reference.id}'"] += 1
            return
        if reference.span not in self.blobs:
            self.blobs[reference.span] = pte.read_delegate(
                self.data, reference.span, self.program.named_data, self.external)
        blob = self.blobs[reference.span]
        wanted = len(blob.input_ids) + len(blob.output_ids)
        if len(call.args) != wanted:
            raise UnsupportedError(
                f"method '{self.plan.name}', delegate {call.delegate}: called with "
                f"{len(call.args)} values for {wanted} inputs and outputs. The program mutates a "
                "buffer that the file does not name; export it with the Vulkan option "
                "alias_buffer_mutations=True")
        _DelegateNodes(self, blob, call.delegate).join(call.args)

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


class _DelegateNodes:
    """Adds the nodes of one delegate call to a graph."""

    def __init__(self, builder: _Builder, blob: pte.VkGraph, delegate: int):
        self.builder = builder
        self.blob = blob
        self.delegate = delegate
        self.label = f"delegate {delegate}"
        self.mutable = changed_in_place(blob.chain, blob.values)
        self.local: list[Any] = [None] * len(blob.values)
        self.written: set[int] = set()
        # Value ids of buffers that are changed in place
        self.states: set[int] = set()

    def join(self, args) -> None:
        blob, builder = self.blob, self.builder
        self._enter_values()
        count = len(blob.input_ids)
        for value_id, outer_id in zip(blob.input_ids, args[:count]):
            self._enter_input(value_id, builder.values[outer_id])
        for index, call in enumerate(blob.chain):
            self._node(index, call)
        for value_id, outer_id in zip(blob.output_ids, args[count:]):
            self._leave(value_id, outer_id)
        builder.graph.file_arena += self._file_arena()

    def _enter_values(self) -> None:
        for index, value in enumerate(self.blob.values):
            if isinstance(value, pte.VkTensor):
                dtype = device_dtype(value.dtype)
                name = f"{self.label} value {index}"
                constant = None
                if value.constant >= 0:
                    stored = self.blob.constants[value.constant]
                    constant = Constant(stored.span.offset, value.nbytes, value.dtype, stored.key,
                                        source=stored.source)
                    if value.dtype not in DTYPES:
                        self.builder.unsupported[f"constant of dtype {value.dtype}"] += 1
                self.local[index] = Tensor(value.sizes, dtype, value.staging_dtype, constant, name)
            elif isinstance(value, (pte.IntList, pte.DoubleList, pte.BoolList)):
                self.local[index] = list(value.items)
            else:
                self.local[index] = value
        for index, value in enumerate(self.blob.values):
            if isinstance(value, pte.ValueList):
                self.local[index] = value

    def _enter_input(self, value_id: int, outer: Any) -> None:
        inner = self.local[value_id]
        if isinstance(inner, pte.SymInt):
            if isinstance(outer, Tensor):
                outer = self._read(outer, 0)
            self.local[value_id] = outer if isinstance(outer, (int, Symbol)) else 0
            return
        if not isinstance(inner, Tensor) or not isinstance(outer, Tensor):
            raise FormatError(f"{self.label}: input value {value_id} is {type(inner).__name__}, "
                              f"the call passes {type(outer).__name__}; expected tensors")
        if math.prod(inner.sizes) != math.prod(outer.sizes):
            raise FormatError(f"{self.label}: input value {value_id} has sizes "
                              f"{list(inner.sizes)}, the call passes {list(outer.sizes)}")
        entered = self.builder.convert(outer, inner.dtype)
        self.builder.adopted.add(entered)
        self.local[value_id] = self._shaped(entered, inner.sizes)

    def _shaped(self, tensor: Tensor, sizes) -> Tensor:
        """The tensor under the sizes the delegate knows it by (a 0-d one may be 1-d outside)."""
        if tensor.sizes == sizes:
            return tensor
        result = Tensor(sizes, tensor.dtype, tensor.host_dtype, None, tensor.name)
        self.builder.add("aten.view_copy.default", (tensor, self._view_sizes(tensor, sizes)),
                         (result,), self.label)
        self.builder.follow(tensor, result)
        return result

    def _view_sizes(self, tensor: Tensor, sizes) -> list[Any]:
        """Sizes that differ from a tensor's only in dimensions of size 1, as symbols of its own;
        others as they are."""
        own = [d for d, size in enumerate(tensor.sizes) if size != 1]
        if [tensor.sizes[d] for d in own] != [size for size in sizes if size != 1]:
            return list(sizes)
        symbols = iter([size_of(tensor, d) for d in own])
        result = [1 if size == 1 else next(symbols) for size in sizes]
        self.builder.chain += symbols_in(result)
        return result

    def _read(self, tensor: Tensor, element: int) -> Any:
        """An element of a tensor as a symbolic integer: one that the host knows, of an input."""
        number = self.builder.origins.get(tensor)
        if number is None or not -tensor.numel <= element < tensor.numel:
            self.builder.unsupported["symbolic integer read from a computed tensor"] += 1
            return 0
        return self.builder.symbol("read", (Read(number, element % tensor.numel),), 0)

    def _resolve(self, value_id: int) -> Any:
        value = self.local[value_id]
        if isinstance(value, pte.ValueList):
            return [self.local[i] for i in value.ids]
        if isinstance(value, pte.SymInt):
            raise FormatError(f"{self.label}: symbolic integer {value_id} is read before any "
                              "operator sets it")
        return value

    def _node(self, index: int, call: pte.OperatorCall) -> None:
        label = f"{self.label} node {index}"
        if not call.args:
            raise FormatError(f"{label}: operator {call.name} has no arguments, expected at least "
                              "its result")
        *inputs, out = call.args
        args = tuple(self._resolve(i) for i in inputs)
        if self._symbolic(call.name, args, out):
            return
        value = self.local[out]
        out_ids = value.ids if isinstance(value, pte.ValueList) else (out,)
        for out_id in out_ids:
            if out_id in self.states:
                self.local[out_id] = self.builder.states.write(self.delegate, out_id)
            elif out_id in self.written:
                self.builder.unsupported[f"buffer mutated in place by {call.name}"] += 1
            self.written.add(out_id)
        outs = tuple(self.local[i] for i in out_ids)
        if not all(isinstance(o, Tensor) for o in outs):
            # The graph will be refused; a number in its place lets the other nodes be listed too.
            self.builder.unsupported[call.name] += 1
            for out_id in out_ids:
                if isinstance(self.local[out_id], pte.SymInt):
                    self.local[out_id] = 0
            return
        if call.name == PREPACK and len(args) == 1:
            source = args[0]
            if isinstance(source, Tensor) and source.constant and source.dtype == outs[0].dtype:
                self.local[out] = source
                if out in self.mutable and out not in self.states:
                    self.states.add(out)
                    self.local[out] = self.builder.states.enter(self.delegate, out, source, outs[0])
                return
        self.builder.add(call.name, args, outs, label)

    def _symbolic(self, name: str, args, out: int) -> bool:
        """Makes a symbol of what gives or computes a symbolic integer; True if this was such."""
        if name == "sym_size.int" and len(args) == 2 and isinstance(args[0], Tensor):
            tensor, dim = args
            if not isinstance(dim, int) or not -tensor.rank <= dim < tensor.rank:
                raise FormatError(f"{self.label}: sym_size of dimension {dim!r} of a tensor with "
                                  f"sizes {list(tensor.sizes)}")
            dim %= tensor.rank
            self.local[out] = self.builder.symbol("size", (tensor, dim), tensor.sizes[dim])
            return True
        if name == SELECT and len(args) == 3 and isinstance(args[0], Tensor):
            tensor, index = args[0], args[2]
            # Of one dimension, or of one element whatever its dimensions.
            if (tensor.rank == 1 or tensor.numel == 1) and isinstance(index, int):
                self.local[out] = self._read(tensor, index)
            else:
                self.builder.unsupported[f"{name} of a tensor {list(tensor.sizes)}"] += 1
                self.local[out] = 0
            return True
        if name in ARITHMETIC and len(args) == 2 and all(
                isinstance(a, (int, float, Symbol)) for a in args):
            a, b = (arg if isinstance(arg, Symbol) else as_int(arg, self.label) for arg in args)
            try:
                bound = compute(name, bounded(a), bounded(b))
            except ArithmeticError as error:
                raise FormatError(f"{self.label}: {name} of symbolic integers: {error}") from None
            symbolic = isinstance(a, Symbol) or isinstance(b, Symbol)
            self.local[out] = self.builder.symbol(name, (a, b), bound) if symbolic else bound
            return True
        return False

    def _leave(self, value_id: int, outer_id: int) -> None:
        inner = self.local[value_id]
        outer = self.builder.values[outer_id]
        self.builder.made.add(outer_id)
        if isinstance(inner, Tensor) and isinstance(outer, Tensor):
            if inner.numel != outer.numel:
                raise FormatError(f"{self.label}: output value {value_id} has sizes "
                                  f"{list(inner.sizes)}, the program's tensor "
                                  f"{list(outer.sizes)}")
            inner = self._shaped(inner, outer.sizes)
            if inner.constant is None:
                inner.host_dtype = outer.host_dtype
                self.builder.adopted.add(inner)
            self.builder.values[outer_id] = inner
        elif isinstance(inner, (int, float, Symbol)):
            self.builder.values[outer_id] = inner
        else:
            raise FormatError(f"{self.label}: output value {value_id} is "
                              f"{type(inner).__name__}, expected a tensor or an integer")

    def _file_arena(self) -> int:
        """Activation bytes by the file's own plan: one object per id, the rest on their own."""
        objects: dict[int, int] = {}
        total = 0
        packed = {call.args[-1] for call in self.blob.chain if call.name == PREPACK}
        for index, value in enumerate(self.blob.values):
            if isinstance(value, pte.VkTensor) and value.constant < 0 and index not in packed:
                nbytes = math.prod(value.sizes) * itemsize(device_dtype(value.dtype))
                if value.mem_obj >= 0:
                    objects[value.mem_obj] = max(objects.get(value.mem_obj, 0), nbytes)
                else:
                    total += nbytes
        return total + sum(objects.values())
