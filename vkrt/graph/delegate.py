"""From a delegate to nodes: its values, its chain of operators, what enters and what leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from vkrt import pte
from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph import counts
from vkrt.graph.borders import match_inputs, match_outputs
from vkrt.graph.constants import only_number
from vkrt.graph.graph import MADE
from vkrt.graph.overwrites import Overwrites
from vkrt.graph.states import PREPACK, changed_in_place
from vkrt.graph.symbols import (
    ARITHMETIC,
    Symbol,
    bound_of,
    bounded,
    compute,
    size_of,
    symbols_in,
)
from vkrt.pte.coerce import as_int
from vkrt.work.tensor import DTYPES, Constant, Tensor, device_dtype, itemsize

SELECT = "et_vk.select_as_symint.default"


class DelegateNodes:
    """Adds the nodes of one delegate call to the graph of a `vkrt.graph.build.Builder`.

    Args:
        blob: the graph that was read from the delegate.
        delegate: its number in the method.
    """

    def __init__(self, builder: Any, blob: pte.VkGraph, delegate: int):
        self.builder = builder
        self.blob = blob
        self.delegate = delegate
        self.label = f"delegate {delegate}"
        self._where = f"method '{builder.plan.name}', {self.label}"
        self.mutable = changed_in_place(blob.chain, blob.values, builder.mutated)
        self.local: list[Any] = [None] * len(blob.values)
        self.written: set[int] = set()
        # Value ids of buffers that are changed in place
        self.states: set[int] = set()

    def join(self, args: Sequence[int]) -> None:
        """Adds the nodes; `args` are the ids of the call's values: inputs, then outputs.

        Raises:
            FormatError: the delegate and the call contradict each other.
            UnsupportedError: the file does not say which of the values is which.
        """
        blob, builder = self.blob, self.builder
        self._enter_values()
        inputs, outputs = self._divide(args)
        builder.find_views(inputs)
        for value_id, outer_id in zip(blob.input_ids, self._inputs(inputs, outputs)):
            self._enter_input(value_id, outer_id)
        for index, call in enumerate(blob.chain):
            self._node(index, call)
        for value_id, outer_id in zip(self._outputs(outputs), outputs):
            self._leave(value_id, outer_id)
        builder.graph.file_arena += self._file_arena()

    def _divide(self, args: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        inputs, outputs = len(self.blob.input_ids), len(self.blob.output_ids)
        if len(args) < inputs + outputs:
            raise UnsupportedError(
                f"{self._where}: called with {len(args)} values for {inputs + outputs} inputs and "
                "outputs. The program mutates a buffer that the file does not name; export it with "
                "the Vulkan option alias_buffer_mutations=True")
        # If a call has more values than the delegate, its inputs are the values that exist by now.
        while inputs < len(args) - outputs and self.builder.is_known(args[inputs]):
            inputs += 1
        return args[:inputs], args[inputs:]

    def _inputs(self, outer_ids: Sequence[int], output_ids: Sequence[int]) -> Sequence[int]:
        if len(outer_ids) == len(self.blob.input_ids):
            return outer_ids
        overwrites = Overwrites(self.blob, self.builder.plan, output_ids, self._outputs(output_ids))
        matched = match_inputs(
            [self.local[i] for i in self.blob.input_ids],
            [self.builder.values[i] for i in outer_ids], self._where,
            lambda place, read: overwrites.may_lack(outer_ids[place], read)
            or counts.may_lack(self.builder, outer_ids[place]))
        return [outer_ids[number] for number in matched]

    def _outputs(self, outer_ids: Sequence[int]) -> Sequence[int]:
        output_ids = self.blob.output_ids
        if len(outer_ids) == len(output_ids):
            return output_ids
        matched = match_outputs([self.local[i] for i in output_ids],
                                [self.builder.values[i] for i in outer_ids], self._where)
        return [output_ids[number] for number in matched]

    def _enter_values(self) -> None:
        for index, value in enumerate(self.blob.values):
            if isinstance(value, pte.VkTensor):
                constant = None
                if value.constant >= 0:
                    constant = self._constant(value, self.blob.constants[value.constant])
                    if value.dtype not in DTYPES:
                        self.builder.unsupported[f"constant of dtype {value.dtype}"] += 1
                self.local[index] = tensor = Tensor(
                    value.sizes, device_dtype(value.dtype), value.staging_dtype, constant,
                    f"{self.label} value {index}")
                if constant is not None:
                    self.builder.constants[tensor] = self.delegate
            elif isinstance(value, (pte.IntList, pte.DoubleList, pte.BoolList)):
                self.local[index] = list(value.items)
            else:
                self.local[index] = value

    def _enter_input(self, value_id: int, outer_id: int) -> None:
        inner, outer = self.local[value_id], self.builder.values[outer_id]
        if isinstance(inner, pte.SymInt):
            if isinstance(outer, Tensor):
                outer = self.builder.read(outer, 0)
            elif outer is None:
                outer = self.builder.integer(outer_id)
            if isinstance(bounded(outer), float):
                raise FormatError(f"{self.label}: input value {value_id} is a symbolic integer, "
                                  "the call passes a float")
            self.local[value_id] = outer if isinstance(outer, (int, Symbol)) else 0
            return
        if not isinstance(inner, Tensor) or not isinstance(outer, Tensor):
            raise FormatError(f"{self.label}: input value {value_id} is {type(inner).__name__}, "
                              f"the call passes {type(outer).__name__}; expected tensors")
        if not self._agree(inner, outer, outer_id):
            raise FormatError(f"{self.label}: input value {value_id} has sizes "
                              f"{list(inner.sizes)}, the call passes {list(outer.sizes)}")
        entered = self.builder.convert(outer, inner.dtype)
        self.builder.adopted.add(entered)
        self.local[value_id] = self._shaped(entered, inner.sizes)

    def _agree(self, inner: Tensor, outer: Tensor, outer_id: int) -> bool:
        """Whether a tensor of the delegate may be one of the program: it has as many elements, or
        dynamic sizes with other bounds, as the exporter works them out twice, once by intervals
        (`find_dynamic` finds the sizes). A state has fixed sizes."""
        return inner.numel == outer.numel or (
            inner.rank == outer.rank and not self.builder.states.is_kept(outer_id)
            and bool(getattr(self.builder.plan.values[outer_id], "dynamism", 0)))

    def _shaped(self, tensor: Tensor, sizes) -> Tensor:
        """The tensor with the sizes that the delegate has for it (a 0-d one may be 1-d outside);
        itself where its bounds are others."""
        if tensor.sizes == sizes or tensor.numel != math.prod(sizes):
            return tensor
        result = Tensor(sizes, tensor.dtype, tensor.host_dtype, None, tensor.name)
        self.builder.add("aten.view_copy.default", (tensor, self._view_sizes(tensor, sizes)),
                         (result,), self.label)
        self.builder.follow(tensor, result)
        return result

    def _view_sizes(self, tensor: Tensor, sizes) -> list[Any]:
        """Sizes for a view of a tensor: symbols of the tensor's own sizes where only dimensions of
        size 1 differ, else the numbers as they are."""
        own = [d for d, size in enumerate(tensor.sizes) if size != 1]
        if [tensor.sizes[d] for d in own] != [size for size in sizes if size != 1]:
            return list(sizes)
        symbols = iter([size_of(tensor, d) for d in own])
        result = [1 if size == 1 else next(symbols) for size in sizes]
        self.builder.chain += symbols_in(result)
        return result

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
        changing = [inputs[place] for place in self.builder.mutated(call.name)
                    if place < len(inputs)]
        for value_id in changing:
            self._enter_state(value_id)
        args = tuple(self._resolve(i) for i in inputs)
        if (made := self._symbolic(call.name, args)) is not None:
            self.local[out] = made
            return
        changed = tuple(map(self._change, changing))
        value = self.local[out]
        out_ids = value.ids if isinstance(value, pte.ValueList) else (out,)
        for out_id in out_ids:
            if out_id in self.states:
                self.local[out_id] = self._write_state(out_id)
            elif out_id in self.written:
                self.builder.unsupported[f"buffer mutated in place by {call.name}"] += 1
            self.written.add(out_id)
        outs = (*(self.local[i] for i in out_ids), *changed)
        if not all(isinstance(o, Tensor) for o in outs):
            # The graph will be refused; with a number as the result the other nodes are listed too.
            self.builder.unsupported[call.name] += 1
            for out_id in out_ids:
                if isinstance(self.local[out_id], pte.SymInt):
                    self.local[out_id] = 0
            return
        if call.name.startswith(MADE):
            self.builder.unsupported[call.name] += 1
        if call.name == PREPACK and len(args) == 1:
            source = args[0]
            if isinstance(source, Tensor) and source.constant and source.dtype == outs[0].dtype:
                self.local[out] = source
                if out in self.mutable and out not in self.states:
                    self.states.add(out)
                    self.local[out] = self.builder.states.enter(self.delegate, out, source, outs[0])
                return
        self.builder.add(call.name, args, outs, label)

    def _constant(self, value: pte.VkTensor, stored: pte.Constant) -> Constant:
        number = None
        if not stored.source and value.nbytes == stored.span.nbytes:
            number = only_number(self.builder.data, stored.span, value.dtype)
        return Constant(stored.span.offset, value.nbytes, value.dtype, stored.key, stored.source,
                        number)

    def _enter_state(self, value_id: int) -> None:
        """Makes a constant that an operator changes in place a state."""
        value = self.local[value_id]
        if isinstance(value, Tensor) and value.constant is not None:
            self.states.add(value_id)
            self.local[value_id] = self.builder.states.enter(self.delegate, value_id, value, value)

    def _change(self, value_id: int) -> Any:
        """The tensor that a value is after an operator has changed it in place."""
        value = self.local[value_id]
        if value_id in self.states:
            self.local[value_id] = self._write_state(value_id)
        elif isinstance(value, Tensor):
            self.local[value_id] = replace(value)
        return self.local[value_id]

    def _write_state(self, value_id: int) -> Tensor:
        self.builder.refuse_predicated()
        return self.builder.states.write(self.delegate, value_id)

    def _symbolic(self, name: str, args: Sequence[Any]) -> Any:
        """The result of an operator that reads or computes a symbolic integer; None of another."""
        if name == "sym_size.int" and len(args) == 2 and isinstance(args[0], Tensor):
            tensor, dim = args
            if not isinstance(dim, int) or not -tensor.rank <= dim < tensor.rank:
                raise FormatError(f"{self.label}: sym_size of dimension {dim!r} of a tensor with "
                                  f"sizes {list(tensor.sizes)}")
            dim %= tensor.rank
            return self.builder.symbol("size", (tensor, dim), tensor.sizes[dim])
        if name == SELECT and len(args) == 3 and isinstance(args[0], Tensor):
            tensor, index = args[0], args[2]
            # A tensor of one dimension, or of one element with any dimensions.
            if (tensor.rank == 1 or tensor.numel == 1) and isinstance(index, int):
                return self.builder.read(tensor, index)
            self.builder.unsupported[f"{name} of a tensor {list(tensor.sizes)}"] += 1
            return 0
        if name in ARITHMETIC and len(args) == 2 and all(
                isinstance(a, (int, float, Symbol)) for a in args):
            a, b = (arg if isinstance(arg, Symbol) else as_int(arg, self.label) for arg in args)
            if isinstance(a, Symbol) or isinstance(b, Symbol):
                return self.builder.symbol(name, (a, b), bound_of(name, a, b))
            try:
                return compute(name, a, b)
            except ArithmeticError as error:
                raise FormatError(f"{self.label}: {name} of {a} and {b}: {error}") from None
        return None

    def _leave(self, value_id: int, outer_id: int) -> None:
        inner = self.local[value_id]
        outer = self.builder.values[outer_id]
        self.builder.made.add(outer_id)
        if isinstance(inner, Tensor) and isinstance(outer, Tensor):
            if not self._agree(inner, outer, outer_id):
                raise FormatError(f"{self.label}: output value {value_id} has sizes "
                                  f"{list(inner.sizes)}, the program's tensor "
                                  f"{list(outer.sizes)}")
            inner = self._shaped(inner, outer.sizes)
            if inner.constant is None:
                inner.host_dtype = outer.host_dtype
                self.builder.adopted.add(inner)
            self.builder.set(outer_id, inner)
        elif isinstance(inner, (int, float, Symbol)):
            self.builder.values[outer_id] = inner
        else:
            raise FormatError(f"{self.label}: output value {value_id} is "
                              f"{type(inner).__name__}, expected a tensor or an integer")

    def _file_arena(self) -> int:
        """Activation bytes by the file's own plan: one object per id, the rest on their own."""
        objects: dict[int, int] = {}
        packed = {call.args[-1] for call in self.blob.chain if call.name == PREPACK}
        for index, value in enumerate(self.blob.values):
            if isinstance(value, pte.VkTensor) and value.constant < 0 and index not in packed:
                nbytes = math.prod(value.sizes) * itemsize(device_dtype(value.dtype))
                key = value.mem_obj if value.mem_obj >= 0 else -1 - index
                objects[key] = max(objects.get(key, 0), nbytes)
        return sum(objects.values())
