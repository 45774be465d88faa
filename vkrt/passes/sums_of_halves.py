"""Sums and means of halves, which may be far from what is summed.

    sum(pow(x, 2)), sum(x * x)         a sum with the attribute squares: of the squares of x
    sum(..) in half precision, then    the sum, and what is made of it alone, in fp32
    + eps, rsqrt, ..

Kernels sum in fp32, but a square of more than 65,504, or a sum of such, is infinite as a half:
norms of values beyond 256 would be zeros. The elements of x are read as they are, no tensor of
their squares exists, and the sums have few elements, so neither takes more memory.
"""

from __future__ import annotations

from dataclasses import replace

from vkrt.graph.graph import Graph, Node
from vkrt.ops.attributes import SQUARED, SQUARES
from vkrt.ops.strided import RESHAPES
from vkrt.passes.matching import Uses, alike
from vkrt.passes.rewrite import Pass, Rewrite, are_right
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

# Operators whose results are sums
SUMS = SQUARED | {"aten.var.correction", "aten.var.dim"}
EXPAND = "aten.expand_copy.default"
# Operators of one tensor whose results stay in fp32
FOLLOWERS = RESHAPES | {f"aten.{name}" for name in (
    "add.Scalar", "sub.Scalar", "rsub.Scalar", "mul.Scalar", "div.Scalar", "pow.Tensor_Scalar",
    "clamp.default", "rsqrt.default", "sqrt.default", "reciprocal.default", "neg.default",
    "abs.default")}
# Operators that read a half and a number of fp32
MIXED = frozenset({f"aten.{name}.Tensor" for name in ("add", "sub", "mul", "div")})


def fuse_squares(graph: Graph, _target: Target) -> Graph:
    """Squares that only a sum or a mean reads become part of it."""
    rewrite = Rewrite(graph)
    for index, node in enumerate(graph.nodes):
        if node.op not in SQUARED or node.attributes or not node.args:
            continue
        place = rewrite.uses.only(node.args[0], index)
        x = None if place is None else _root(graph.nodes[place])
        if (place is not None and x is not None and rewrite.is_free(place)
                and graph.nodes[place].predicate == node.predicate):
            rewrite.replace(index, replace(node, args=(x, *node.args[1:]), formulas=None,
                                           attributes={SQUARES: True}), gone=[place])
    return rewrite.result()


def widen_sums(graph: Graph, _target: Target) -> Graph:
    """Sums and means of halves are numbers of fp32 up to the node that reads a half, too."""
    if (not any(map(_is_sum_of_halves, graph.nodes))
            or not are_right(graph, graph.nodes)):
        return graph
    found = _Widened(graph)
    return graph.reordered(found.nodes) if found.wide else graph


FUSE_SQUARES = Pass("fuse_squares", "sums of squares read what is squared", fuse_squares,
                    roots=SQUARED)
WIDEN_SUMS = Pass("widen_sums", "sums of halves stay in fp32 where numbers are made of them",
                  widen_sums, roots=SUMS)


def _root(node: Node) -> Tensor | None:
    """What a node squares; None if it does something else."""
    if node.attributes or node.is_host or len(node.args) < 2:
        return None
    x, other = node.args[:2]
    is_square = ((node.op == "aten.pow.Tensor_Scalar" and other == 2)
                 or (node.op == "aten.mul.Tensor" and other is x))
    return x if is_square and isinstance(x, Tensor) and alike(x, *node.outs) else None


def _is_sum_of_halves(node: Node) -> bool:
    return (node.op in SUMS and not node.is_host and not node.predicate
            and node.args[0].dtype == node.outs[0].dtype == "float16")


class _Widened:
    """The nodes of a graph, with sums in fp32.

    Attributes:
        wide: by each tensor of halves, the tensor of fp32 in its place.
        nodes: with their numbers.
    """

    def __init__(self, graph: Graph):
        self._graph = graph
        self._uses = Uses(graph)
        self.wide: dict[Tensor, Tensor] = {}
        self.nodes: list[tuple[int, Node]] = []
        # The tensors of `wide` that are there as halves, too
        self._narrow: set[Tensor] = set()
        for index, node in enumerate(graph.nodes):
            self._add(graph.number_of(index), node)
        for tensor in graph.results():
            self._narrow_down(graph.number_of(len(graph.nodes) - 1), tensor)

    def _add(self, number: int, node: Node) -> None:
        read = [value for value in node.tensors() if value in self.wide]
        is_plain = not (node.is_host or node.predicate or node.attributes)
        if (_is_sum_of_halves(node) and not read and any(
                self._graph.nodes[reader].op in FOLLOWERS | MIXED | {EXPAND}
                for reader in self._uses.readers[node.outs[0]])) or (
                    is_plain and read and self._stays_wide(node)):
            out = node.outs[0]
            self.wide[out] = Tensor(out.sizes, "float32", name=out.name)
            self.nodes.append((number, replace(self._with_wide(node), outs=(self.wide[out],))))
        elif is_plain and read and node.op == EXPAND and self._is_repeated(node.outs[0]):
            self.wide[node.outs[0]] = self.wide[read[0]]
        elif is_plain and len(read) == 1 and node.op in MIXED and _is_half(node):
            self.nodes.append((number, self._with_wide(node)))
        else:
            for tensor in node.reads():
                self._narrow_down(number, tensor)
            self.nodes.append((number, node))

    def _stays_wide(self, node: Node) -> bool:
        """Whether a node only reads numbers of fp32, and makes no more of them than it reads."""
        tensors = list(node.tensors())
        return (node.op in FOLLOWERS | MIXED and _is_half(node)
                and all(tensor in self.wide for tensor in tensors)
                and node.outs[0].numel <= max(self.wide[tensor].numel for tensor in tensors))

    def _with_wide(self, node: Node) -> Node:
        return replace(node.with_tensors(self.wide), formulas=None)

    def _is_repeated(self, tensor: Tensor) -> bool:
        """Whether a tensor of repeated numbers is only read by nodes that repeat numbers too, for
        another tensor of its sizes."""
        readers = [self._graph.nodes[reader] for reader in self._uses.readers[tensor]]
        return not self._uses.is_result(tensor) and all(
            node.op in MIXED and _is_half(node) and not node.predicate
            and any(arg is not tensor and isinstance(arg, Tensor) and arg.sizes == tensor.sizes
                    and arg not in self.wide for arg in node.args[:2]) for node in readers)

    def _narrow_down(self, number: int, tensor: Tensor) -> None:
        """Adds a node that makes a tensor of halves, if it is only there in fp32."""
        if tensor in self.wide and tensor not in self._narrow:
            self._narrow.add(tensor)
            self.nodes.append((number, Node("aten._to_copy.default", (self.wide[tensor],),
                                            (tensor,), label=f"{tensor} as halves")))


def _is_half(node: Node) -> bool:
    return len(node.outs) == 1 and node.outs[0].dtype == "float16"
