"""Angles are float32, also where the file says half.

The exporter's `force_fp16` makes the arguments of sines and cosines float16, and the tensors that
they are computed from. Near an angle of 999 float16 may be wrong by 0.25: the fastest frequencies
of an embedding of timesteps are then noise. Such tensors are small. Tensors that layers compute
keep their dtype.
"""

from __future__ import annotations

from collections import defaultdict

from vkrt.graph.graph import Graph, Node
from vkrt.work.tensor import Tensor

FUNCTIONS = frozenset({"aten.sin.default", "aten.cos.default"})
COPIES = frozenset({"aten._to_copy.default", "dim_order_ops._to_dim_order_copy.default"})
# Operators on numbers, or on tensors of any dtype
MAKERS = COPIES | {"aten.arange.start_step", "aten.full.default"}
# Operators on several tensors, whose dtypes are promoted
PROMOTING = frozenset({"aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.div.Tensor",
                       "aten.pow.Tensor_Tensor", "aten.cat.default"})
# Operators on one tensor, whose dtype the result has
CARRYING = frozenset({
    "aten.add.Scalar", "aten.sub.Scalar", "aten.rsub.Scalar", "aten.mul.Scalar", "aten.div.Scalar",
    "aten.pow.Scalar", "aten.pow.Tensor_Scalar", "aten.exp.default", "aten.exp2.default",
    "aten.neg.default", "aten.reciprocal.default", "aten.clone.default",
    "dim_order_ops._clone_dim_order.default", "aten.alias_copy.default",
    "aten.unsqueeze_copy.default", "aten.squeeze_copy.dim", "aten.squeeze_copy.dims",
    "aten.view_copy.default", "aten.expand_copy.default", "aten.permute_copy.default",
    "aten.transpose_copy.int", "aten.slice_copy.Tensor", "aten.select_copy.int",
    "aten.repeat.default"})


def widen_angles(graph: Graph) -> None:
    """Makes a float16 tensor float32 if only sines and cosines are computed from it, and if it is
    computed, element by element, only from numbers, constants and inputs of float32."""
    makers = {out: node for node in graph.nodes if node.op in MAKERS | PROMOTING | CARRYING
              for out in node.outs}
    given = {tensor for tensor in graph.inputs
             if isinstance(tensor, Tensor) and tensor.host_dtype == "float32"}
    readers: dict[Tensor, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for tensor in node.reads():
            readers[tensor].append(node)

    wide: set[Tensor] = set()
    waiting = [node.args[0] for node in graph.nodes if node.op in FUNCTIONS and node.args]
    while waiting:
        tensor = waiting.pop()
        if (isinstance(tensor, Tensor) and tensor not in wide and tensor.dtype == "float16"
                and tensor.constant is None and (tensor in makers or tensor in given)
                and graph.last_use(tensor) < len(graph.nodes)):
            wide.add(tensor)
            waiting += makers[tensor].tensors() if tensor in makers else ()

    def stays(tensor: Tensor) -> bool:
        return (all(node.op in FUNCTIONS or not wide.isdisjoint(node.outs)
                    for node in readers[tensor])
                and (tensor not in makers or _is_wide(makers[tensor], wide)))

    # Once one tensor is removed, others may not stay either.
    while left_out := {tensor for tensor in wide if not stays(tensor)}:
        wide -= left_out
    for tensor in wide:
        tensor.dtype = "float32"


def _is_wide(node: Node, wide: set[Tensor]) -> bool:
    """Whether a node may have a float32 result if the tensors in `wide` are float32."""
    sources = [tensor in wide or tensor.dtype == "float32" for tensor in node.tensors()]
    if node.op in MAKERS:
        return all(tensor in wide or tensor.constant is not None or tensor.dtype != "float16"
                   for tensor in node.tensors())
    return any(sources) if node.op in PROMOTING else all(sources)
