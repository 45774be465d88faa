"""The graph of one delegate without the program around it, as another runtime hands it over.

A method is made up that calls the delegate once and does nothing else. What the program would say
of the values at the border is taken from the delegate itself: the dtypes of its staging, and sizes
that are upper bounds. Symbolic integers enter in tensors of one element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vkrt import pte
from vkrt.graph.build import Builder
from vkrt.graph.graph import Graph
from vkrt.graph.kernels import Kernel
from vkrt.pte.dtype import SCALAR_TYPES
from vkrt.work.tensor import Tensor

BACKEND = "VulkanBackend"
_NUMBERS = {name: number for number, name in SCALAR_TYPES.items()}


def build_delegate_graph(blob: pte.VkGraph, name: str, kernels: Mapping[str, Kernel],
                         find_dynamic: Callable[[Graph], None],
                         mutated: Callable[[str], Sequence[int]], dynamic: bool) -> Graph:
    """The graph of one delegate.

    Args:
        blob: what was read from it.
        name: of the method it belongs to.
        kernels, find_dynamic, mutated: as `vkrt.graph.build.build_graph` has them.
        dynamic: whether calls may pass less than the sizes of the delegate's inputs.

    Raises:
        FormatError, UnsupportedError: as `build_graph` raises them.
    """
    values = [_border(blob.values[i], dynamic) for i in (*blob.input_ids, *blob.output_ids)]
    inputs = tuple(range(len(blob.input_ids)))
    outputs = tuple(range(len(inputs), len(values)))
    span = pte.Span(0, 0)
    plan = pte.ExecutionPlan(
        name=name, values=tuple(values), inputs=inputs, outputs=outputs,
        instructions=(pte.DelegateCall(0, (*inputs, *outputs)),), operators=(),
        delegates=(pte.DelegateRef(BACKEND, span, {}),), buffer_sizes=())
    program = pte.Program(0, (plan,), {}, (), (), 0)
    builder = Builder(b"", program, plan, kernels, mutated, None)
    builder.blobs[span] = blob
    graph = builder.build()
    find_dynamic(graph)
    if dynamic:
        _leave_open(graph)
    return graph


def _leave_open(graph: Graph) -> None:
    """Any dimension may change: sizes that go together do not always tell which of them the program
    around the delegate changes, and each call has the right ones."""
    for tensor in (*graph.inputs, *graph.outputs):
        if isinstance(tensor, Tensor) and tensor.dynamic_dims:
            tensor.dynamic_dims = tuple(range(tensor.rank))


def is_dynamic(blob: pte.VkGraph) -> bool:
    """Whether a delegate computes with sizes or values of its inputs, as only those do whose
    inputs change. One that does not may be dynamic all the same."""
    return any(isinstance(value, pte.SymInt) for value in blob.values)


def _border(value: Any, dynamic: bool) -> pte.TensorMeta:
    """What a program would say of a delegate's input or output."""
    if not isinstance(value, pte.VkTensor):
        return pte.TensorMeta(_NUMBERS["int32"], "int32", (1,), (0,))
    dtype = value.staging_dtype
    order = tuple(range(len(value.sizes)))
    return pte.TensorMeta(_NUMBERS[dtype], dtype, value.sizes, order, int(dynamic))
