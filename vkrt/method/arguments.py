"""Arguments of a call: checks them, makes contiguous arrays of them, copies these to the device and
the results back. The device holds 64-bit numbers in 32 bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vkrt.errors import InputError
from vkrt.executable.external_buffers import DeviceBuffer
from vkrt.graph.graph import Graph, default_names
from vkrt.graph.symbols import Symbol
from vkrt.runtime.compute_graph import ComputeGraph
from vkrt.work.tensor import DEVICE_DTYPES, Tensor, itemsize

if TYPE_CHECKING:
    import numpy as np

# Where outputs go: arrays and host buffers, or a function that makes arrays for their sizes
Out = Sequence[Any] | Callable[[Sequence[tuple[int, ...]]], Sequence[Any]] | None


@dataclass(frozen=True)
class TensorInfo:
    """A method's input or output.

    Attributes:
        name: the program's (see `vkrt.graph.names`), else "input_0", "output_0", ...
        sizes: upper bounds of the sizes.
        dtype: numpy's name of the dtype. A number counts as a tensor without dimensions, of int64,
            float64 or bool. "none" stands for None.
        dynamic_dims: the dimensions whose size in a call may be less than the bound.
        fixed: the only value that the input takes, if the program was exported with a number or
            None in its place; else empty.
    """

    name: str
    sizes: tuple[int, ...]
    dtype: str
    dynamic_dims: tuple[int, ...] = ()
    fixed: tuple[Any, ...] = ()

    def example(self) -> Any:
        """Something that the input takes: zeros, or its one value."""
        import numpy as np

        return self.fixed[0] if self.fixed else np.zeros(self.sizes, self.dtype)

    def __str__(self):
        if self.fixed:
            return f"{self.dtype}, always {self.fixed[0]}"
        sizes = ",".join(f"<={s}" if d in self.dynamic_dims else str(s)
                         for d, s in enumerate(self.sizes))
        return f"{self.dtype}[{sizes}]"


class HostMemory:
    """A tensor in the memory of a host application, without the cost of a numpy array. `dtype` is
    numpy's name of one that has as many bits on the device; `view` is writable for an output."""

    def __init__(self, view: memoryview, dtype: str, shape: tuple[int, ...]):
        self.view = view
        self.dtype = dtype
        self.shape = shape

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def flat(self) -> Any:
        import numpy as np

        return np.frombuffer(self.view, self.dtype)


class MethodMetadata:
    """Name, inputs and outputs of a method.

    Attributes:
        name: the method's name.
        inputs, outputs: a `TensorInfo` for each, in order.
    """

    def __init__(self, name: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]):
        self.name = name
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)

    def __repr__(self):
        return (f"{self.name}({', '.join(f'{i.name}: {i}' for i in self.inputs)}) -> "
                f"({', '.join(f'{o.name}: {o}' for o in self.outputs)})")


def metadata_of(graph: Graph) -> MethodMetadata:
    """What a caller has to know of a graph."""
    inputs = map(_info, graph.inputs,
                 graph.input_names or default_names("input", len(graph.inputs)))
    outputs = map(_info, graph.outputs,
                  graph.output_names or default_names("output", len(graph.outputs)))
    return MethodMetadata(graph.name, [
        info if isinstance(value, (Tensor, Symbol)) else replace(info, fixed=(value,))
        for info, value in zip(inputs, graph.inputs)], list(outputs))


# Dtypes of Python's None, numbers and str
NUMBERS = {"NoneType": "none", "bool": "bool", "float": "float64", "str": "str"}


def _info(value: Any, name: str) -> TensorInfo:
    if not isinstance(value, Tensor):
        return TensorInfo(name, (), NUMBERS.get(type(value).__name__, "int64"))
    sizes = tuple(value.bounds[d] if value.bounds and d in value.dynamic_dims else size
                  for d, size in enumerate(value.sizes))
    return TensorInfo(name, sizes, value.host_dtype, value.dynamic_dims)


def is_array(value: Any) -> bool:
    import numpy as np

    return isinstance(value, np.ndarray)


def as_array(value: Any, label: str, dtype: str = "float32") -> np.ndarray:
    """A numpy view of an object with `__dlpack__`, the buffer protocol or `__array__` (InputError:
    it is none of these, or the host cannot read it). `dtype` is for messages."""
    if isinstance(value, HostMemory):
        return value  # type: ignore[return-value]
    import numpy as np

    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (list, tuple)):
        if any(hasattr(item, "__array__") or hasattr(item, "__dlpack__") for item in value):
            raise InputError(f"{label}: expected one array, got a {type(value).__name__} of "
                             f"{len(value)}; pass each array by itself: run(*inputs)")
        raise InputError(f"{label}: expected an array, got a {type(value).__name__}; pass "
                         f"numpy.asarray(x, '{dtype}')")
    try:
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise InputError(f"{label}: cannot be read as an array ({error}); expected an object with "
                         "__dlpack__ or the buffer protocol in host memory") from error


def check_count(given: Sequence[Any], infos: Sequence[TensorInfo], method: str,
                what: str = "inputs") -> None:
    """Raises InputError unless there is one argument for every input (or output)."""
    if len(given) != len(infos):
        is_list = len(given) == 1 and isinstance(given[0], (list, tuple))
        raise InputError(f"method '{method}': expected {len(infos)} {what} ({listed(infos)}), got "
                         f"{len(given)}{'; pass them as run(*inputs)' if is_list else ''}")


def listed(infos: Sequence[TensorInfo]) -> str:
    """Inputs or outputs with their names, for messages."""
    return ", ".join(f"'{info.name}' {info}" for info in infos) or "none"


def check_input(value: Any, info: TensorInfo, index: int) -> np.ndarray:
    """The argument as a contiguous array of the input's dtype, with sizes that the input takes.
    None becomes an empty array; a `DeviceBuffer` stays one.

    Raises:
        InputError: naming the input, what it expects and what it got.
    """
    label = f"input {index} '{info.name}'"
    if isinstance(value, DeviceBuffer):
        return _check_buffer(value, info, label)
    if info.fixed or isinstance(value, NUMBER_TYPES):
        return _check_number(value, info, label)
    array, wrong = as_array(value, label, info.dtype), ""
    if str(array.dtype) != info.dtype:
        if not isinstance(array, HostMemory):
            wrong = (f"; pass x.to(torch.{info.dtype})" if hasattr(value, "detach") else
                     f"; pass numpy.asarray(x, '{info.dtype}')")
    elif len(array.shape) == len(info.sizes):
        wrong = "" if array.shape == info.sizes else wrong_dimension(array.shape, info)
        if not wrong:
            return _contiguous(array)
    raise InputError(f"{label}: expected {info}, got {_described(array)}{wrong}")


def _described(array: Any) -> str:
    """An argument's dtype and sizes, as a `TensorInfo` is written."""
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"


def _check_buffer(buffer: DeviceBuffer, info: TensorInfo, label: str) -> Any:
    """A host buffer, checked to fit a tensor, with the tensor's sizes."""
    if info.fixed or info.dtype in DEVICE_DTYPES or info.dtype == "none":
        raise InputError(f"{label}: expected {info}, which a DeviceBuffer cannot hold: numbers and "
                         "tensors of 64-bit or int16 elements are passed as arrays")
    sizes = info.sizes if buffer.sizes is None else tuple(buffer.sizes)
    wrong = wrong_dimension(sizes, info)
    if len(sizes) != len(info.sizes) or wrong:
        raise InputError(f"{label}: expected {info}, got a DeviceBuffer of sizes {list(sizes)}"
                         f"{wrong}")
    needed = math.prod(sizes) * itemsize(info.dtype)
    if buffer.nbytes < needed:
        raise InputError(f"{label}: expected a VkBuffer with {needed:,} bytes for {info}, got "
                         f"{buffer}")
    return replace(buffer, sizes=sizes)


# What a caller may pass for an input that is a number, and only for such an input
NUMBER_TYPES = (bool, int, float)


def _check_number(value: Any, info: TensorInfo, label: str) -> np.ndarray:
    """A number, or None, as an array."""
    import numpy as np

    array = np.empty(0) if value is None else as_array(value, label)
    if isinstance(array, HostMemory):
        if array.size != 1:
            raise InputError(f"{label}: expected {info}, got {_described(array)}")
        array = array.flat.reshape(())
        value = array.item()
    kinds = {"bool": "b", "int64": "iu", "float64": "fiu"}.get(info.dtype, "")
    if info.sizes or (value is not None and (array.size != 1 or array.dtype.kind not in kinds)):
        raise InputError(f"{label}: expected {info}, got {value!r}")
    if info.fixed and (value is None) != (info.fixed[0] is None) \
            or info.fixed and value is not None and array.item() != info.fixed[0]:
        raise InputError(f"{label}: the program was exported with {info.fixed[0]!r} in its place "
                         f"and takes nothing else; got {value!r}")
    if value is None:
        return array
    try:
        return array.astype(info.dtype, casting="safe").reshape(())
    except TypeError:
        # Integers beyond int64 are of another dtype.
        raise InputError(f"{label}: expected {info}, got {value!r}") from None


def _contiguous(array: np.ndarray) -> np.ndarray:
    if isinstance(array, HostMemory):
        return array
    import numpy as np

    # numpy's function gives a 0-d array one dimension.
    return np.ascontiguousarray(array).reshape(array.shape)


def wrong_dimension(sizes: Sequence[int], info: TensorInfo) -> str:
    """Says which dimension does not fit, if one does not."""
    for dim, (size, bound) in enumerate(zip(sizes, info.sizes)):
        if dim in info.dynamic_dims:
            if not 1 <= size <= bound:
                return f"; dimension {dim} has to be 1 to {bound}, not {size}"
        elif size != bound:
            return f"; dimension {dim} has to be {bound}, not {size}"
    return ""


def check_output(array: Any, info: TensorInfo, index: int,
                 sizes: tuple[int, ...] | None = None) -> np.ndarray:
    """An array the caller gave for an output, checked to fit and to be writable in place. `sizes`
    are the output's in this call; by default the bounds."""
    wanted = info if sizes is None else replace(info, sizes=sizes, dynamic_dims=())
    if isinstance(array, DeviceBuffer):
        return _check_buffer(array, wanted, f"out {index} '{info.name}'")
    if isinstance(array, HostMemory) and (array.dtype, array.shape) == (wanted.dtype, wanted.sizes):
        return array  # type: ignore[return-value]
    import numpy as np

    if not isinstance(array, np.ndarray) or str(array.dtype) != wanted.dtype \
            or array.shape != wanted.sizes or not array.flags.c_contiguous \
            or not array.flags.writeable:
        got = _described(array) if isinstance(array, np.ndarray) else type(array).__name__
        raise InputError(f"out {index} '{info.name}': expected a contiguous, writable numpy array "
                         f"{wanted}, got {got}")
    return array


def outputs_for(out: Out, values: Sequence[Any], metadata: MethodMetadata) -> list[Any]:
    """Where the outputs of a call go, see `Method.execute`. `values` are tensors of the sizes that
    the outputs have in this call, or numbers."""
    infos = metadata.outputs
    if out is None:
        import numpy as np

        return [np.empty(value.sizes, info.dtype) if isinstance(value, Tensor) else value
                for info, value in zip(infos, values)]
    sizes = [value.sizes if isinstance(value, Tensor) else () for value in values]
    made = out(sizes) if callable(out) else out
    check_count(made, infos, metadata.name, "arrays in out")
    return [check_output(array, info, index, size)
            if isinstance(value, Tensor) or not callable(out)
            else array if is_array(array) else value
            for index, (array, info, value, size) in enumerate(zip(made, infos, values, sizes))]


def write_inputs(compute: ComputeGraph, arrays: Sequence[np.ndarray],
                 operands: Sequence[Any]) -> None:
    """Copies arrays of the inputs' dtypes and sizes to their memory; an operand is None where no
    kernel reads the input (InputError: a 64-bit integer does not fit into 32 bits)."""
    for index, (array, operand) in enumerate(zip(arrays, operands, strict=True)):
        if operand is None or isinstance(array, DeviceBuffer):
            continue
        if isinstance(array, HostMemory):
            compute.write_input(index, array.view)
            continue
        narrow = DEVICE_DTYPES.get(str(array.dtype))
        compute.write_input(index, array if narrow is None else _narrowed(array, narrow, index))


def _narrowed(array: np.ndarray, dtype: str, index: int) -> np.ndarray:
    if array.dtype.kind == "i" and array.size:
        for most in (array.max(), array.min()):
            if not -1 << 31 <= most < 1 << 31:
                raise InputError(f"input {index}: it holds {most}; integers have 32 bits on the "
                                 "device, -2147483648 to 2147483647")
    return array.astype(dtype)


def read_output(compute: ComputeGraph, index: int, result: np.ndarray) -> None:
    """Copies an output to an array of its dtype and sizes. A `DeviceBuffer` has it already."""
    if isinstance(result, DeviceBuffer):
        return
    narrow = DEVICE_DTYPES.get(str(result.dtype))
    if isinstance(result, HostMemory):
        compute.read_output(index, result.view)
    elif narrow is None:
        compute.read_output(index, result)
    else:
        import numpy as np

        staged = np.empty(result.shape, narrow)
        compute.read_output(index, staged)
        result[...] = staged
