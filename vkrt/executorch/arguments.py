"""Arguments of a delegate's call: the runtime's values as vkrt's inputs and outputs, and back."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from vkrt import pte
from vkrt.errors import InputError, UnsupportedError
from vkrt.graph.borders import match_inputs, match_outputs
from vkrt.method.arguments import TensorInfo
from vkrt.work.tensor import Tensor, device_dtype

# Dtypes of a program's tensors that a delegate takes in another width
_SAME = ({"int64", "int32"}, {"float64", "float32", "float16"})


class Arguments:
    """Finds which values of a call are which inputs and outputs of a delegate; `where` that is, for
    messages."""

    def __init__(self, blob: pte.VkGraph, where: str):
        self._inputs = [_border(blob.values[i]) for i in blob.input_ids]
        self._outputs = [_border(blob.values[i]) for i in blob.output_ids]
        self._where = where
        self._places: tuple[list[int], list[tuple[int, int]]] | None = None
        self._count = -1

    def of(self, values: Sequence[Any]) -> Call:
        """The values of one call, as inputs and outputs.

        Raises:
            InputError: there are too few of them.
            UnsupportedError: there are more than the delegate has, and the file does not say which
                is which.
        """
        if self._places is None or len(values) != self._count:
            self._places, self._count = self._find(values), len(values)
        inputs, outputs = self._places
        return Call([values[i] for i in inputs], [(number, values[i]) for number, i in outputs])

    def _find(self, values: Sequence[Any]) -> tuple[list[int], list[tuple[int, int]]]:
        """Places of the inputs, and (number of the output, place) of each value that takes it."""
        inputs, outputs = len(self._inputs), len(self._outputs)
        if len(values) == inputs + outputs:
            return list(range(inputs)), [(n, inputs + n) for n in range(outputs)]
        if len(values) < inputs + outputs:
            raise InputError(f"{self._where}: a delegate with {inputs} inputs and {outputs} "
                             f"outputs is called with {len(values)} values")
        # Nothing says how many of the values are inputs, either.
        outer = [_outer(value) for value in values]
        found, refused = [], None
        for split in range(inputs, len(values) - outputs + 1):
            try:
                first = match_inputs(self._inputs, outer[:split], self._where)
                second = match_outputs(self._outputs, outer[split:], self._where)
            except UnsupportedError as error:
                refused = error
                continue
            found.append((first, [(n, split + i) for i, n in enumerate(second)]))
        if len(found) != 1:
            raise UnsupportedError(
                f"{self._where}: a delegate with {inputs} inputs and {outputs} outputs is called "
                f"with {len(values)} values, and sizes and dtypes do not say which are which; "
                f"`vkrt.load` runs such programs, or says what to change") from refused
        return found[0]


class Call:
    """The values of one call: the inputs in the delegate's order, and (number of the output, value
    that takes it). An output may have several."""

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[tuple[int, Any]]):
        self._inputs = inputs
        self._outputs = outputs

    def inputs(self, infos: Sequence[TensorInfo]) -> list[np.ndarray]:
        """The inputs as arrays of the dtypes and ranks that the method takes (InputError)."""
        return [_input(value, info, f"input {number} of a delegate")
                for number, (value, info) in enumerate(zip(self._inputs, infos))]

    def outputs(self, sizes: Sequence[tuple[int, ...]], infos: Sequence[TensorInfo]) -> list[Any]:
        """Arrays for the outputs: where possible the memory of the values, which are resized
        (InputError: a value cannot take the sizes)."""
        made: list[Any] = [None] * len(infos)
        for number, value in self._outputs:
            if value.number is not None:
                continue
            _resize(value, sizes[number])
            array = value.array()
            info = infos[number]
            if made[number] is None and str(array.dtype) == info.dtype and array.flags.c_contiguous:
                made[number] = array.reshape(sizes[number])
        return [np.empty(size, info.dtype) if array is None else array
                for array, size, info in zip(made, sizes, infos)]

    def finish(self, results: Sequence[Any]) -> None:
        """Copies results that are not in the memory of their values yet."""
        for number, value in self._outputs:
            result = results[number]
            if value.number is not None:
                value.set_number(np.asarray(result).item())
                continue
            array = value.array()
            if not (isinstance(result, np.ndarray) and np.may_share_memory(array, result)):
                array[...] = np.asarray(result).reshape(array.shape)


def _border(value: Any) -> Tensor | pte.SymInt:
    """A delegate's input or output, as `vkrt.graph.borders` compares them."""
    if not isinstance(value, pte.VkTensor):
        return value if isinstance(value, pte.SymInt) else pte.SymInt(0)
    return Tensor(value.sizes, device_dtype(value.dtype), device_dtype(value.staging_dtype), None,
                  "")


def _outer(value: Any) -> Any:
    """A value of the call, in the form of `_border`."""
    if value.number is not None:
        return value.number
    return Tensor(value.sizes, device_dtype(value.dtype), value.dtype, None, "")


def _input(value: Any, info: TensorInfo, label: str) -> np.ndarray:
    if value.number is not None:
        return np.full(info.sizes, value.number, info.dtype)
    array = value.array()
    if array.ndim != len(info.sizes) and array.size == prod(info.sizes):
        array = array.reshape(info.sizes)
    if str(array.dtype) != info.dtype:
        if not any({str(array.dtype), info.dtype} <= same for same in _SAME):
            raise InputError(f"{label}: expected {info}, got {array.dtype}{list(array.shape)}")
        array = array.astype(info.dtype)
    return array


def _resize(value: Any, sizes: tuple[int, ...]) -> None:
    there = value.sizes
    if there != sizes and (len(there) == len(sizes) or prod(there) != prod(sizes)):
        value.resize(sizes)
