"""Nodes that move elements, at random: each function says the operator and its arguments for a
tensor, or gives None where nothing fits. What does not fit all the same a `CheckedNetwork` refuses.
"""

import math
from random import Random
from typing import Any

from checked_network import CheckedNetwork

from vkrt.graph.symbols import Symbol, size_of
from vkrt.work.tensor import Tensor

END = (1 << 63) - 1

Call = tuple[Any, ...] | None


def dim_of(x: Tensor, chance: Random) -> int:
    """A dimension, counted from either end."""
    return chance.randrange(-x.rank, x.rank) if x.rank else 0


def some_dims(x: Tensor, chance: Random) -> list[int]:
    return [d - x.rank * (chance.random() < 0.3)
            for d in chance.sample(range(x.rank), chance.randint(1, x.rank) if x.rank else 0)]


def permuted(_net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    order = chance.sample(range(x.rank), x.rank)
    return chance.choice(("aten.permute_copy.default", "aten.permute.default")), order


def transposed(_net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    if x.rank <= 2 and chance.random() < 0.5:
        return ("aten.t_copy.default",)
    return ("aten.transpose_copy.int", dim_of(x, chance), dim_of(x, chance)) if x.rank else None


def viewed(_net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    """Some dimensions joined, one divided, or all of them other ones."""
    sizes: list[Any] = [size_of(x, d) for d in range(x.rank)]
    if chance.random() < 0.5 and x.rank > 1:
        first = chance.randrange(x.rank - 1)
        last = chance.randint(first + 2, x.rank)
        joined = sizes[first]
        for size in sizes[first + 1:last]:
            joined = Symbol("mul", (joined, size), math.prod(x.sizes[first:last]))
        sizes[first:last] = [joined]
    if chance.random() < 0.5 and sizes:
        place = chance.randrange(len(sizes))
        size = bound(sizes[place])
        factor = chance.choice([n for n in range(1, size + 1) if size % n == 0])
        sizes[place:place + 1] = chance.choice(([factor, size // factor], [size // factor, factor]))
    if chance.random() < 0.2:
        sizes = []
        left = x.numel
        while left > 1 and len(sizes) < 3:
            factor = chance.choice([n for n in range(2, left + 1) if left % n == 0])
            sizes.append(factor)
            left //= factor
        sizes = [*sizes, left]
    sizes = [size if chance.random() < 0.6 else bound(size) for size in sizes]
    if chance.random() < 0.4 and sizes:
        sizes[chance.randrange(len(sizes))] = -1
    return chance.choice(("aten.view_copy.default", "aten.view.default",
                          "aten._unsafe_view.default")), sizes


def bound(size: Any) -> int:
    return size.bound if isinstance(size, Symbol) else size


def squeezed(_net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    ones = [d for d, size in enumerate(x.sizes) if size == 1]
    if not ones or chance.random() < 0.4:
        return "aten.unsqueeze_copy.default", chance.randrange(-x.rank - 1, x.rank + 1)
    if chance.random() < 0.5:
        return "aten.squeeze_copy.dim", chance.choice(ones)
    return "aten.squeeze_copy.dims", chance.sample(ones, chance.randint(1, len(ones)))


def sliced(_net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    dim = dim_of(x, chance)
    size = x.sizes[dim] if x.rank else 1
    start = chance.choice((None, 0, chance.randrange(-size, size)))
    end = chance.choice((None, END, chance.randrange(-size, size) + 1))
    step = chance.choice((1, 1, 2, 3))
    if chance.random() < 0.2 and start is not None:
        return "aten.narrow_copy.default", dim, start, chance.randint(1, size)
    return "aten.slice_copy.Tensor", dim, start, end, step


def selected(_net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    dim = dim_of(x, chance)
    return ("aten.select_copy.int", dim, chance.randrange(-x.sizes[dim], x.sizes[dim])
            ) if x.rank else None


def split(_net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    if not x.rank:
        return None
    dim = dim_of(x, chance)
    size = x.sizes[dim]
    kind = chance.randrange(3)
    if kind == 0 and size <= 5:
        return "aten.unbind_copy.int", dim
    if kind == 1:
        return "aten.split_copy.Tensor", chance.randint(-(-size // 5), size), dim
    cuts = sorted(chance.randint(0, size) for _ in range(chance.randint(1, 4)))
    parts = [b - a for a, b in zip([0, *cuts], [*cuts, size])]
    return "aten.split_with_sizes_copy.default", [part for part in parts if part], dim


def repeated(_net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    new = chance.choice((0, 0, 1))
    if chance.random() < 0.5:
        return "aten.repeat.default", [chance.choice((1, 1, 2, 3)) for _ in range(x.rank + new)]
    sizes = [chance.choice((1, 3, 4, 6)) if size == 1 else chance.choice((-1, size))
             for size in x.sizes]
    return "aten.expand_copy.default", [chance.choice((2, 3))] * new + sizes, False


def turned(_net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    dims = some_dims(x, chance)
    if chance.random() < 0.5:
        return "aten.flip.default", dims
    return "aten.roll.default", [chance.randrange(-9, 9) for _ in dims], dims


def joined(net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    """With others that fit, and itself; the dimension may be any."""
    if not x.rank:
        return None
    dim = dim_of(x, chance)
    fit = [y for y in net.of_dtype["float32"] if y.rank == x.rank and all(
        a == b for d, (a, b) in enumerate(zip(x.sizes, y.sizes)) if d != dim % x.rank)]
    tensors = [x, *(chance.choice(fit) for _ in range(chance.choice((0, 1, 1, 2, 3, 5))))]
    if chance.random() < 0.4:
        tensors.append(net.weight(*(chance.choice((1, 2, 3, 5)) if d == dim % x.rank else size
                                    for d, size in enumerate(x.sizes))))
    chance.shuffle(tensors)
    return "aten.cat.default", tensors, dim


def stacked(net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    tensors = [x, *(net.like(*x.sizes) for _ in range(chance.randint(1, 3)))]
    chance.shuffle(tensors)
    return "aten.stack.default", tensors, chance.randrange(-x.rank - 1, x.rank + 1)


def padded(_net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    if not x.rank:
        return None
    if x.rank > 1 and chance.random() < 0.3:
        count = chance.randint(1, min(x.rank - 1, 3))
        if x.rank - count <= 2:
            return (f"aten.{chance.choice(('reflection', 'replication'))}_pad{count}d.default",
                    [chance.choice((0, 1, 2, 3)) for _ in range(2 * count)])
    pads = [chance.choice((0, 1, 2, 3, -1)) for _ in range(2 * chance.randint(1, x.rank))]
    return "aten.constant_pad_nd.default", pads, chance.choice((0.0, 0.5, -1))


def replaced(net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    """A slice or an index of it is another tensor's."""
    if not x.rank:
        return None
    dim = chance.randrange(x.rank)
    size = x.sizes[dim]
    others = x.sizes[:dim], x.sizes[dim + 1:]
    if chance.random() < 0.4:
        return ("aten.select_scatter.default", net.like(*others[0], *others[1]), dim,
                chance.randrange(-size, size))
    start, step = chance.randrange(size), chance.choice((1, 1, 2, 3))
    count = chance.randint(1, -(-(size - start) // step))
    return ("aten.slice_scatter.default", net.like(*others[0], count, *others[1]), dim, start,
            min(start + (count - 1) * step + 1, size), step)


def shaped(_net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    """Diagonals, triangles, windows, elements by their numbers, pixels for channels, copies."""
    kind = chance.randrange(7)
    if kind == 0 and x.rank > 1:
        first, second = chance.sample(range(x.rank), 2)
        return "aten.diagonal_copy.default", chance.choice((0, 1, -1)), first, second
    if kind == 1:
        return chance.choice(("aten.tril.default", "aten.triu.default")), chance.choice((0, 1, -1))
    if kind == 2 and x.rank:
        dim = dim_of(x, chance)
        return ("aten.unfold_copy.default", dim, chance.randint(1, min(x.sizes[dim], 5)),
                chance.choice((1, 2, 3)))
    if kind == 3 and x.numel > 12:
        return "aten.as_strided_copy.default", [3, 4], [chance.randint(0, 3), 1], 2
    if kind == 4:
        return "aten.pixel_shuffle.default", chance.choice((2, 3))
    if kind == 5:
        return "aten.pixel_unshuffle.default", chance.choice((2, 3))
    return chance.choice(("aten.clone.default", "aten.alias_copy.default")), None


def indexed(net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    """Elements that whole numbers name: constants, or what the network has found."""
    if not x.rank:
        return None
    dim = dim_of(x, chance)
    size = x.sizes[dim]
    kind = chance.randrange(6)
    found = net.one("int32")
    if kind == 0 and found is not None and found.rank == x.rank:
        return "aten.gather.default", dim, found, False
    if kind <= 1:
        return ("aten.gather.default", dim, net.whole(size, *(
            chance.randint(1, n) for n in x.sizes)), False)
    if kind == 2:
        fits = found is not None and found.rank == 1
        return ("aten.index_select.default", dim,
                found if fits else net.whole(size, chance.randint(1, 9)))
    if kind == 3:
        return ("aten.index.Tensor",
                [None] * (dim % x.rank) + [net.whole(size, *(chance.choice(((5,), (2, 3)))))])
    if kind == 4:
        rows = net.whole(size, chance.randint(1, 4))
        return ("aten.index_put.default", [None] * (dim % x.rank) + [rows], net.like(*(
            rows.sizes[0] if d == dim % x.rank else n for d, n in enumerate(x.sizes))), True)
    index = net.whole(size, *(chance.randint(1, n) for n in x.sizes))
    return "aten.scatter_add.default", dim, index, net.like(*index.sizes)


MOVES = (permuted, permuted, transposed, viewed, viewed, viewed, squeezed, sliced, sliced, selected,
         split, repeated, turned, joined, joined, stacked, padded, replaced, shaped, indexed)
