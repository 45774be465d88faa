"""Elements replaced where a mask of bools says so: `y[mask] = value`.

The exporter writes that as an `index_put` outside of delegates, whose index is the mask. What is
put there has an element for each one that the mask chooses, and how many these are depends on the
data (see `vkrt.graph.counts`). Where one value is for all of them, the result is that of `where`.
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
    """The kernels that do what an `index_put` by a mask does; the node itself if it is none, or if
    it puts a value of its own at each place."""
    found = mask_of(node.op, node.args)
    if found is None:
        yield node
        return
    mask, first, x, values, adds = found
    behind = x.rank - first - mask.rank
    # Sizes of what is put, aligned with x: one dimension of it stands for those of the mask.
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
    """The mask of an `index_put`, its first dimension in x, x, what is put, and whether that is
    added; None where anything is not as a `where` has it."""
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
