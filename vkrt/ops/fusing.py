"""Nodes that are one kernel, or computed before, found in a graph before it is lowered.

x * sigmoid(x), as SiLU (swish) leaves the exporter, is `silu`; a product with that, as in the
gated layers of language models, is one kernel with it; an activation of a sum or product
that nothing else reads (a residual connection, a gate) is done by the kernel of that, and a sum of
a linear layer's result and another tensor by the kernel of that layer. The numbers are those of the
separate kernels, but that in half precision nothing is rounded in between.

Parts of tensors that products read where they lie: see `fusing_parts`.

Layers of one row that one kernel does: see `fusing_rows`. Keys that are turned on their way into a
cache: see `fusing_rotary`.

The exporter quantizes the input of every linear layer anew, also where several have the same one
(queries, keys and values): such nodes are `repeated`, and their results are those of the first.

A softmax with the guard of plain attention around it is one kernel: see `fusing_softmax`. A border
of zeros before a convolution is padding of it: see `fusing_padding`. What lies between quantized
tensors: see `fusing_q8`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from vkrt.dataclass import replace
from vkrt.graph.graph import Graph
from vkrt.ops.fusing_padding import border_before, with_border
from vkrt.ops.fusing_parts import find_parts
from vkrt.ops.fusing_q8 import QUANTIZE, quantized
from vkrt.ops.fusing_rotary import rotary_before
from vkrt.ops.fusing_rows import find_rows
from vkrt.ops.fusing_softmax import guarded_softmax
from vkrt.ops.fusions import Fusions
from vkrt.ops.matching import Uses, alike, arguments, declared, takes_activation
from vkrt.ops.simplifying import Simplifier
from vkrt.work.tensor import Tensor

# Operators that programs repeat with the same arguments
REPEATED = frozenset({"torchao.choose_qparams_affine.default"})


def fusions_of(graph: Graph, wanted: bool = True) -> Fusions:
    """Everything in a graph that can be fused; nothing if that is not wanted."""
    if not wanted:
        return Fusions()
    uses = Uses(graph)
    only = uses.only
    simpler = Simplifier(graph, uses)
    found = Fusions(nodes=simpler.nodes, done=simpler.done, until=simpler.until)

    for index, node in enumerate(graph.nodes):
        if node.op == "aten.mul.Tensor" and len(node.args) > 1 and node.outs:
            _find_silu(graph, found, index, only)
    for index, node in enumerate(graph.nodes):
        if node.op == "aten.mul.Tensor" and len(node.args) > 1 and node.outs:
            _find_gated(graph, found, index, only)
    for index, node in enumerate(graph.nodes):
        if node.op == "aten.where.self" and node.outs:
            _find_guarded(graph, found, index, uses)
    for index, node in enumerate(graph.nodes):
        node = found.nodes.get(index, node)
        if not declared(node, "activation") or not node.outs or index in found.done:
            continue
        if any(isinstance(arg, float) and math.isnan(arg) for arg in node.args):
            continue  # everything is NaN then, which the tails do not know
        source = node.args[0] if node.args else None
        if not isinstance(source, Tensor) or not alike(source, node.outs[0]):
            continue
        head = only(source, simpler.begins.get(index, index))
        chain = uses.without_views(head)
        # Rows of a layer are rows in any view that leaves them so.
        if chain[1:] and declared(graph.nodes[chain[-1]], "takes_addend"):
            head = chain.pop()
        else:
            chain = []
        if (head is not None and (head not in found.nodes or head in found.gated)
                and found.done.isdisjoint(chain) and takes_activation(graph.nodes[head], node)):
            found.nodes[head] = replace(found.nodes.get(head, graph.nodes[head]), outs=node.outs)
            found.tails[head] = node
            found.done.update(chain, {index})
    for index, node in enumerate(graph.nodes):
        if node.op == QUANTIZE:
            _find_quantized(graph, found, index, only)
        elif node.op == "aten.add.Tensor":
            _find_addend(graph, found, index, uses)
    for index in range(len(graph.nodes)):
        _find_border(graph, found, index, uses)
    for index in range(len(graph.nodes)):
        maker = rotary_before(graph, index, uses)
        if maker is not None:
            found.rotaries[index] = graph.nodes[maker]
            found.done.add(maker)
            found.keep(index, *graph.nodes[maker].tensors())
    _find_repeated(graph, found)
    find_parts(graph, found, uses)
    find_rows(graph, found, uses)
    return found


def _find_repeated(graph: Graph, found: Fusions) -> None:
    first: dict[Any, int] = {}
    for index, node in enumerate(graph.nodes):
        if node.op not in REPEATED:
            continue
        # Tensors compare by identity, and no node writes one twice.
        outs = tuple((tuple(out.sizes), out.dtype) for out in node.outs)
        earlier = first.setdefault((node.op, node.guard, _as_tuples(node.args), outs), index)
        if earlier != index:
            found.repeated[index] = earlier


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, (list, tuple)) else value


def _find_silu(graph: Graph, found: Fusions, index: int, only: Callable) -> None:
    node = graph.nodes[index]
    for source, gate in (node.args[:2], node.args[1::-1]):
        if not isinstance(source, Tensor) or not isinstance(gate, Tensor):
            continue
        maker = only(gate, index)
        if (maker is not None and graph.nodes[maker].op == "aten.sigmoid.default"
                and graph.nodes[maker].args[:1] == (source,)
                and alike(source, gate, node.outs[0])):
            found.done.add(maker)
            found.nodes[index] = replace(node, op="aten.silu.default", args=(source,))
            return


def _find_quantized(graph: Graph, found: Fusions, index: int, only: Callable) -> None:
    def maker(tensor: Tensor, reader: int) -> int | None:
        """The node that makes what nothing else reads; None where something else is done there."""
        made = only(tensor, reader)
        return None if made in found.nodes or made in found.done else made

    one = quantized(graph, index, maker)
    if one is not None:
        found.nodes[one.first] = one.node
        found.done.update(one.done)
        if one.then is not None:
            found.requantized[one.first] = one.then


def _find_gated(graph: Graph, found: Fusions, index: int, only: Callable) -> None:
    node = graph.nodes[index]
    for gate, other in (node.args[:2], node.args[1::-1]):
        if index in found.nodes or not isinstance(gate, Tensor) or not isinstance(other, Tensor):
            continue
        maker = only(gate, index)
        silu = None if maker is None else found.nodes.get(maker, graph.nodes[maker])
        if (silu is not None and silu.op == "aten.silu.default" and len(silu.args) == 1
                and isinstance(silu.args[0], Tensor)
                and alike(silu.args[0], gate, other, node.outs[0])):
            found.nodes.pop(maker, None)
            found.done.add(maker)
            found.nodes[index] = replace(node, args=(silu.args[0], other))
            found.gated.add(index)
            found.keep(index, silu.args[0])


def _find_guarded(graph: Graph, found: Fusions, index: int, uses: Uses) -> None:
    guarded = guarded_softmax(graph, index, uses)
    if guarded is not None and not guarded.done & found.done:
        source = guarded.softmax.args[0]
        found.nodes[index] = replace(guarded.softmax, outs=graph.nodes[index].outs)
        found.guarded.add(index)
        found.done.update(guarded.done)
        found.keep(index, source)


def _find_border(graph: Graph, found: Fusions, index: int, uses: Uses) -> None:
    border = border_before(graph, index, uses)
    if border is not None and border.node not in found.done | found.nodes.keys():
        found.nodes[index] = with_border(found.nodes.get(index, graph.nodes[index]), border)
        found.done.add(border.node)
        found.keep(index, border.x)


def _find_addend(graph: Graph, found: Fusions, index: int, uses: Uses) -> None:
    """Looks for a product, or a view of one, that a sum adds to a tensor."""
    node = graph.nodes[index]
    if len(node.args) != 3 or node.args[2] != 1 or index in found.nodes:
        return
    for product, other in (node.args[:2], node.args[1::-1]):
        if (not isinstance(product, Tensor) or not isinstance(other, Tensor)
                or not alike(product, other, *node.outs)):
            continue
        chain = uses.without_views(uses.only(product, index))
        if not chain or not found.done.isdisjoint(chain) or chain[-1] in found.nodes:
            continue
        maker = chain[-1]
        takes = declared(graph.nodes[maker], "takes_addend")
        args = takes and arguments(graph.nodes[maker])
        if args and takes(*args.values()):
            found.done.update(chain)
            found.nodes[index] = replace(graph.nodes[maker], outs=node.outs)
            found.addends[index] = other
            found.moved[maker] = index
            found.keep(index, *graph.nodes[maker].tensors())
            return
