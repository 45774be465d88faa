"""The graph of one delegate without the program around it, as another runtime hands it over.

The module invents a method that calls the delegate once. Dtypes and sizes at the border, which a
program would state, are the delegate's own: the dtypes of its staging, and sizes that are upper
bounds. Symbolic integers enter as tensors of one element.
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
    """The graph of one delegate, of the method `name`, from the graph `blob` that was read from it.
    `dynamic`: whether calls may pass less than the sizes of the delegate's inputs. The other
    arguments and the errors are those of `vkrt.graph.build.build_graph`."""
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
    # Sizes that fit together do not always show which of them the program around the delegate
    # changes, and each call passes sizes that fit: all dimensions of dynamic tensors are dynamic.
    for tensor in (*graph.inputs, *graph.outputs) if dynamic else ():
        if isinstance(tensor, Tensor) and tensor.dynamic_dims:
            tensor.dynamic_dims = tuple(range(tensor.rank))
    return graph


def is_dynamic(blob: pte.VkGraph) -> bool:
    """Whether a delegate computes with sizes or values of its inputs. Only delegates whose inputs
    change do so, but not all of them."""
    return any(isinstance(value, pte.SymInt) for value in blob.values)


def _border(value: Any, dynamic: bool) -> pte.TensorMeta:
    if not isinstance(value, pte.VkTensor):
        return pte.TensorMeta(_NUMBERS["int32"], "int32", (1,), (0,))
    dtype = value.staging_dtype
    order = tuple(range(len(value.sizes)))
    return pte.TensorMeta(_NUMBERS[dtype], dtype, value.sizes, order, int(dynamic))
