"""Elements replaced where a mask of bools says so: `y[mask] = value`.

The exporter writes that as an `index_put` outside of delegates, whose index is the mask. It has a
value for each element that the mask chooses, and their number depends on the data (see
`vkrt.graph.counts`). Where one value is put at all of these places, a `where` has the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from vkrt.graph.graph import Node
from vkrt.work.tensor import Tensor

PUTS = ("aten::index_put.out", "aten::index_put_")
UNSQUEEZE = "aten::unsqueeze_copy.out"


def choose_by_masks(node: Node) -> Iterator[Node]:
    """The kernels that replace an `index_put` by a mask; the node itself if it is none, or if it
    puts a different value at each place."""
    found = mask_of(node.op, node.args)
    if found is None:
        yield node
        return
    mask, first, x, values, adds = found
    behind = x.rank - first - mask.rank
    # Aligns the values with x: one dimension of the values stands for all dimensions of the mask.
    lifted = 0 if values.rank <= behind else mask.rank - 1

    def made(op: str, *args: Any, sizes: tuple[int, ...], like: Tensor) -> Tensor:
        out = Tensor(sizes, like.dtype, like.host_dtype, name=like.name)
        steps.append(replace(node, op=op, args=args, outs=(out,), formulas=None))
        return out

    steps: list[Node] = []
    for _ in range(behind):
        mask = made(UNSQUEEZE, mask, mask.rank, sizes=(*mask.sizes, 1), like=mask)
    for _ in range(lifted):
        place = values.rank - behind
        values = made(UNSQUEEZE, values, place, like=values,
                      sizes=(*values.sizes[:place], 1, *values.sizes[place:]))
    if adds:
        values = made("aten::add.out", x, values, 1, sizes=x.sizes, like=x)
    yield from steps
    yield replace(node, op="aten::where.self_out", args=(mask, values, x), formulas=None)


def mask_of(op: str, args: Sequence[Any]) -> tuple[Tensor, int, Tensor, Tensor, bool] | None:
    """The mask of an `index_put`, its first dimension in x, x, the values, and whether they are
    added; None where a `where` cannot replace it."""
    if op not in PUTS or len(args) < 3:
        return None
    x, indices, values, *adds = args
    if not (isinstance(x, Tensor) and isinstance(values, Tensor) and isinstance(indices, list)):
        return None
    given = [(place, index) for place, index in enumerate(indices) if index is not None]
    if len(given) != 1 or not isinstance(given[0][1], Tensor) or given[0][1].dtype != "bool":
        return None
    first, mask = given[0]
    end = first + mask.rank
    if not mask.rank or x.sizes[first:end] != mask.sizes:
        return None
    behind = x.rank - end
    counted = values.sizes[-behind - 1] if values.rank > behind else 1
    if counted != 1 or values.rank > first + 1 + behind:
        return None
    return mask, first, x, values, bool(adds and adds[0])
