"""Nodes that are one kernel: x * sigmoid(x), as SiLU (swish) leaves the exporter, is `silu`.

Found in a graph before it is lowered. The numbers are those of the separate kernels, but that in
half precision nothing is rounded in between.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from vkrt.graph.graph import Graph, Node
from vkrt.graph.tensor import Tensor
from vkrt.ops.broadcast import is_float


@dataclass
class Fusions:
    """What to lower differently, by the index of the node.

    Attributes:
        nodes: to lower in the place of the one there.
        done: nodes that others do.
    """

    nodes: dict[int, Node] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)


def fusions_of(graph: Graph) -> Fusions:
    """Everything in a graph that can be fused."""
    uses = Counter(tensor for node in graph.nodes for tensor in node.tensors())
    uses.update(value for value in graph.outputs if isinstance(value, Tensor))
    gates = {node.outs[0]: index for index, node in enumerate(graph.nodes)
             if node.op == "aten.sigmoid.default" and node.outs}
    found = Fusions()
    for index, node in enumerate(graph.nodes):
        if node.op != "aten.mul.Tensor" or len(node.args) < 2 or not node.outs:
            continue
        for source, gate in (node.args[:2], node.args[1::-1]):
            if (isinstance(source, Tensor) and isinstance(gate, Tensor) and gate in gates
                    and uses[gate] == 1 and graph.nodes[gates[gate]].args[:1] == (source,)
                    and _alike(source, gate, node.outs[0])):
                found.done.add(gates[gate])
                found.nodes[index] = replace(node, op="aten.silu.default", args=(source,))
                break
    return found


def _alike(first: Tensor, *others: Tensor) -> bool:
    """Whether tensors of floats have one dtype and the same sizes."""
    return is_float(first.dtype) and all(
        (tensor.dtype, tuple(tensor.sizes)) == (first.dtype, tuple(first.sizes))
        for tensor in others)
