"""Shape rules of operators that read elements at places that another tensor names."""

from __future__ import annotations

import math

from vkrt.ops.shapes.rules import (
    broadcast,
    fail,
    need_rank,
    rule,
    wrap,
)


@rule("weight:T indices:T.int32 padding_idx:i? scale_grad:b? sparse:b?", "aten.embedding.default")
def embedding(weight, indices, *_training):
    need_rank(weight, 2, "weight")
    return ((*indices, weight[1]),)


@rule("self:T dim:i index:T.int32 sparse_grad:b?", "aten.gather.default")
def gather(x, dim, index, _sparse):
    # 0-d tensors count as 1-d ones with one element.
    source, places = x or (1,), index or (1,)
    dim = wrap(dim, len(x))
    if math.prod(index):
        if len(source) != len(places):
            fail("index", f"expected rank {len(x)}, got sizes {list(index)}")
        for d, (count, size) in enumerate(zip(places, source, strict=True)):
            if (d != dim and count > size) or not size:
                fail("index", f"sizes {list(index)} reach past {list(x)}")
    return (index,)


@rule("self:T dim:i index:T.int32", "aten.index_select.default")
def index_select(x, dim, index):
    need_rank(index, (0, 1), "index")
    dim = wrap(dim, len(x))
    count = math.prod(index)
    if not x:
        if count != 1:
            fail("index", f"a 0-d tensor has one element, got {count} indices")
        return ((),)
    if count and not x[dim]:
        fail("index", f"dimension {dim} has no elements")
    return ((*x[:dim], count, *x[dim + 1:]),)


def indexed(x, indices):
    """Sizes of x[indices], for indices that are None or sizes of integer tensors."""
    if len(indices) > len(x):
        fail("indices", f"expected up to {len(x)}, got {len(indices)}")
    places = [d for d, sizes in enumerate(indices) if sizes is not None]
    if not places:
        return x
    common = broadcast(*(indices[d] for d in places))
    if math.prod(common) and not all(x[d] for d in places):
        fail("indices", f"an indexed dimension of {list(x)} has no elements")
    left = [n for d, n in enumerate(x) if d not in places]
    # Neighbouring indices leave their dimensions where those were, others move to the front.
    adjacent = places[-1] - places[0] + 1 == len(places)
    start = places[0] if adjacent else 0
    return (*left[:start], *common, *left[start:])


@rule("self:T indices:[T.int32?]", "aten.index.Tensor")
def index_tensor(x, indices):
    return (indexed(x, indices),)


@rule("self:T grid:T interpolation_mode:i padding_mode:i align_corners:b",
      "aten.grid_sampler_2d.default")
def grid_sampler_2d(x, grid, mode, padding, _align):
    need_rank(x, 4, "self")
    need_rank(grid, 4, "grid")
    if grid[0] != x[0] or grid[3] != 2:
        fail("grid", f"expected sizes [{x[0]}, height, width, 2], got {list(grid)}")
    if not x[2] * x[3]:
        fail("self", f"expected pixels, got sizes {list(x)}")
    for name, value in (("interpolation_mode", mode), ("padding_mode", padding)):
        if value not in (0, 1, 2):
            fail(name, f"expected 0, 1 or 2, got {value}")
    return ((*x[:2], *grid[1:3]),)
