"""Nodes that are done in strips of rows: the tensors between them never exist as a whole.

The arena is as large as the most bytes alive at once. Often a single tensor takes these bytes, and
a few rows of the next one need only a few of its rows: an expanded block of channels, the hidden
layer of an MLP, the scores of attention. A run of nodes from one small tensor to the next is then
done strip by strip; rows that a node needs again, as convolutions do, are copied and kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from vkrt.graph.graph import Graph, Node
from vkrt.ops.concat import JOIN_STRIPS
from vkrt.ops.registry import known
from vkrt.ops.rows import Rows, Windows
from vkrt.passes.strip_region import Region
from vkrt.work.tensor import Tensor


def in_strips(graph: Graph, region: Region, rereads: bool = False) -> list[tuple[int, Node]]:
    """The nodes of a run, strip after strip, and the nodes that join the strips of its results;
    `rereads` is as in `Target`."""
    maker = _StripMaker(region, rereads)
    nodes = [(graph.number_of(index), graph.nodes[index])
             for index in range(region.start, region.end) if index not in region.nodes]
    for done in region.progress()[1:]:
        maker.begin(done)
        for (index, node), windows in zip(region.nodes.items(), region.windows):
            nodes += ((graph.number_of(index), piece) for piece in maker.nodes_for(node, windows))
    last = graph.number_of(region.end - 1)
    return [*nodes, *((last, _join(parts, out, region.dims[out]))
                      for out, parts in maker.results.items())]


class _StripMaker:
    """Makes the nodes of the strips, one strip after the other; `results` has the strips so far of
    each result of the region."""

    def __init__(self, region: Region, rereads: bool):
        self.results: dict[Tensor, list[Tensor]] = {out: [] for out in region.results}
        self._region = region
        self._rereads = rereads
        # The number of the present strip, and its weights
        self._strip = 0
        self._weights: dict[Tensor, Tensor] = {}
        # For each tensor that the nodes make: how many rows exist before the current strip and
        # after it, and the first row that is needed in the strip and after it
        self._before: Mapping[Tensor, int] = {}
        self._done: Mapping[Tensor, int] = region.progress()[0]
        self._first: dict[Tensor, int] = {}
        self._later = region.kept(self._done)
        # Rows of the present strip, and those that are kept for later ones
        self._there: dict[Tensor, tuple[Tensor, Rows]] = {}
        self._kept: dict[Tensor, Tensor] = {}
        self._parts: dict[tuple[Tensor, Rows], Tensor] = {}
        self._nodes: list[Node] = []

    def begin(self, done: Mapping[Tensor, int]) -> None:
        """Begins a strip, after which so many rows of each tensor exist."""
        self._before, self._done = self._done, done
        self._first, self._later = self._later, self._region.kept(self._done)
        self._weights.clear()
        self._strip += 1

    def nodes_for(self, node: Node, windows: Windows) -> list[Node]:
        """The nodes that a node becomes in the current strip: they make its rows, join these with
        the rows kept from earlier strips, and copy the rows that later strips need."""
        out = node.outs[0]
        dim, rows = self._region.dims[out], (self._first[out], self._done[out])
        made = self._before[out], self._done[out]
        if made[0] == made[1] and self._first[out] == self._later[out]:
            if out in self._kept:
                self._there[out] = self._kept[out], rows
            return []
        there = self._kept.pop(out, None)
        if made[0] < made[1]:
            new = self._make(node, windows, dim, made)
            if there is None:
                there = new
            else:
                # The parts of a join are written in place when they are made: a slice copies kept
                # rows there.
                view = self._cut(there, dim, (0, there.sizes[dim]))
                there = _with_rows(out, dim, rows)
                self._nodes.append(_join([view, new], there, dim))
        assert there is not None
        self._there[out] = there, rows
        if out in self.results and made[0] < made[1]:
            self.results[out].append(self._part(out, made))
        if self._later[out] < rows[1]:
            kept = self._later[out], rows[1]
            self._kept[out] = _with_rows(out, dim, kept)
            self._nodes.append(_join([self._rows(out, kept)], self._kept[out], dim))
        nodes, self._nodes = self._nodes, []
        return nodes

    def _make(self, node: Node, windows: Windows, dim: int, rows: Rows) -> Tensor:
        declared = known(node.op).rows
        assert declared is not None  # every node of a region has one
        parts = {tensor: self._part(tensor, window.needed(rows, tensor.sizes[window.dim]))
                 for tensor, window in windows.items()}
        if self._rereads:
            parts |= {tensor: self._weight(tensor) for tensor in node.tensors()
                      if tensor.constant and tensor.rank > 1 and tensor not in windows}
        strip = declared.strip(node, dim, rows)
        outs = tuple(_with_rows(out, dim, rows, node.outs[0].sizes[dim]) for out in node.outs)
        self._nodes.append(replace(strip.with_tensors(parts), outs=outs))
        return outs[0]

    def _weight(self, tensor: Tensor) -> Tensor:
        """A weight as the current strip reads it: with a key of its own, which makes it a separate
        weight. The key names the run, as others may read the same weight."""
        if tensor not in self._weights:
            constant = tensor.constant
            assert constant is not None
            # The key makes it a separate weight. It names the run, as others may read the same one.
            key = (f"{constant.key or constant.offset}, strip {self._strip} from node "
                   f"{self._region.start}")
            self._weights[tensor] = replace(tensor, constant=replace(constant, key=key))
        return self._weights[tensor]

    def _part(self, tensor: Tensor, rows: Rows) -> Tensor:
        """Some rows of a tensor, which is there as a whole or in strips."""
        there, own = self._there.get(tensor, (tensor, (0, tensor.sizes[self._region.dims[tensor]])))
        if rows == own:
            return there
        if (there, rows) not in self._parts:
            self._parts[there, rows] = self._rows(tensor, rows)
        return self._parts[there, rows]

    def _rows(self, tensor: Tensor, rows: Rows) -> Tensor:
        """Adds a node that takes some rows of a tensor, of those that exist."""
        dim = self._region.dims[tensor]
        there, own = self._there.get(tensor, (tensor, (0, 0)))
        return self._cut(there, dim, (rows[0] - own[0], rows[1] - own[0]))

    def _cut(self, tensor: Tensor, dim: int, rows: Rows) -> Tensor:
        part = _with_rows(tensor, dim, rows)
        self._nodes.append(Node("aten.slice_copy.Tensor", (tensor, dim, *rows, 1), (part,),
                                label=f"rows {rows[0]} to {rows[1]}"))
        return part


def _join(parts: list[Tensor], whole: Tensor, dim: int) -> Node:
    return Node(JOIN_STRIPS, (parts, dim), (whole,), label=f"strips of {whole}")


def _with_rows(tensor: Tensor, dim: int, rows: Rows, size: int | None = None) -> Tensor:
    """A tensor like another one, but with these rows in `dim`, if it has `size` rows there."""
    size = tensor.sizes[dim] if size is None else size
    sizes = tuple(rows[1] - rows[0] if d == dim and n == size else n
                  for d, n in enumerate(tensor.sizes))
    return Tensor(sizes, tensor.dtype, name=tensor.name)
