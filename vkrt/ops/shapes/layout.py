"""Shape rules of operators that rename dimensions, or take, join and repeat parts of tensors."""

from __future__ import annotations

import math

from vkrt.ops.shapes.rules import at_least, fail, need_rank, need_sizes, rule, wrap, wrap_all


@rule("self:T size:[i]", "aten.view_copy.default", "aten.view.default",
      "aten._unsafe_view.default")
def view(x, size):
    known = math.prod(at_least(n, 0, "size") for n in size if n != -1)
    numel = math.prod(x)
    free = size.count(-1)
    if free > 1:
        fail("size", f"at most one -1 can be worked out, got {list(size)}")
    if free and known and numel % known == 0:
        size = tuple(numel // known if n == -1 else n for n in size)
    elif free or known != numel:
        fail("size", f"{list(size)} does not hold the {numel} elements of {list(x)}")
    return (size,)


@rule("self:T dims:[i]", "aten.squeeze_copy.dims")
def squeeze(x, dims):
    chosen = wrap_all(dims, len(x))
    return (tuple(n for d, n in enumerate(x) if n != 1 or d not in chosen),)


@rule("self:T dim:i", "aten.squeeze_copy.dim")
def squeeze_dim(x, dim):
    return squeeze(x, (dim,))


@rule("self:T dim:i", "aten.unsqueeze_copy.default")
def unsqueeze(x, dim):
    dim = wrap(dim, len(x) + 1)
    return ((*x[:dim], 1, *x[dim:]),)


@rule("self:T dims:[i]", "aten.permute_copy.default", "aten.permute.default")
def permute(x, dims):
    order = [wrap(d, len(x), "dims") for d in dims]
    if sorted(order) != list(range(len(x))):
        fail("dims", f"expected a permutation of {len(x)} dimensions, got {list(dims)}")
    return (tuple(x[d] for d in order),)


@rule("self:T", "aten.t_copy.default")
def t(x):
    need_rank(x, (0, 1, 2), "self")
    return (x[::-1],)


@rule("self:T dim0:i dim1:i", "aten.transpose_copy.int")
def transpose(x, dim0, dim1):
    a, b = wrap(dim0, len(x), "dim0"), wrap(dim1, len(x), "dim1")
    sizes = list(x)
    if x:
        sizes[a], sizes[b] = sizes[b], sizes[a]
    return (tuple(sizes),)


@rule("self:T size:[i] implicit:b?", "aten.expand_copy.default")
def expand(x, size, _implicit):
    new = len(size) - len(x)
    if new < 0:
        fail("size", f"expected at least {len(x)} sizes, got {list(size)}")
    result = []
    for place, number in enumerate(size):
        old = x[place - new] if place >= new else None
        if number == -1 and old is not None:
            number = old
        if number < 0 or old not in (None, 1, number):
            fail("size", f"{list(x)} cannot be expanded to {list(size)}")
        result.append(number)
    return (tuple(result),)


@rule("self:T repeats:[i]", "aten.repeat.default")
def repeat(x, repeats):
    new = len(repeats) - len(x)
    if new < 0:
        fail("repeats", f"expected at least {len(x)} numbers, got {list(repeats)}")
    return (tuple(at_least(times, 0, "repeats") * n
                  for times, n in zip(repeats, (1,) * new + x, strict=True)),)


@rule("self:T dims:[i]", "aten.flip.default")
def flip(x, dims):
    wrap_all(dims, len(x))
    return (x,)


@rule("self:T dim:i index:i", "aten.select_copy.int")
def select(x, dim, index):
    if not x:
        fail("self", "a 0-d tensor has nothing to select from")
    dim = wrap(dim, len(x))
    if not -x[dim] <= index < x[dim]:
        fail("index", f"expected an index of a dimension of size {x[dim]}, got {index}")
    return (x[:dim] + x[dim + 1:],)


def sliced(size: int, start: int | None, end: int | None, step: int) -> tuple[int, int]:
    """First index and number of indices of a slice of a dimension."""
    at_least(step, 1, "step")

    def place(index: int, low: int) -> int:
        return min(max(index + size if index < 0 else index, low), size)

    first = place(0 if start is None else start, 0)
    last = place(size if end is None else end, first)
    return first, -(-(last - first) // step)


@rule("self:T dim:i start:i? end:i? step:i?", "aten.slice_copy.Tensor")
def slice_copy(x, dim, start, end, step):
    if not x:
        fail("self", "a 0-d tensor cannot be sliced")
    dim = wrap(dim, len(x))
    count = sliced(x[dim], start, end, 1 if step is None else step)[1]
    return ((*x[:dim], count, *x[dim + 1:]),)


@rule("self:T src:T dim:i start:i? end:i? step:i?", "aten.slice_scatter.default")
def slice_scatter(x, source, dim, start, end, step):
    need_sizes(source, slice_copy(x, dim, start, end, step)[0], "src")
    return (x,)


@rule("self:T sizes:[i] dim:i", "aten.split_with_sizes_copy.default")
def split_with_sizes(x, sizes, dim):
    if not x:
        fail("self", "a 0-d tensor cannot be split")
    dim = wrap(dim, len(x))
    if sum(at_least(n, 0, "sizes") for n in sizes) != x[dim]:
        fail("sizes", f"expected a sum of {x[dim]}, got {list(sizes)}")
    return tuple((*x[:dim], n, *x[dim + 1:]) for n in sizes)


@rule("tensors:[T] dim:i", "aten.cat.default")
def cat(tensors, dim):
    if not tensors:
        fail("tensors", "expected at least one")
    # To torch a 1-d tensor without elements fits tensors of any rank.
    shapes = [sizes for sizes in tensors if sizes != (0,)]
    if not shapes:
        return ((0,),)
    first = shapes[0]
    if not first:
        fail("tensors", "0-d tensors cannot be joined")
    dim = wrap(dim, len(first))
    for sizes in shapes:
        if len(sizes) != len(first) or any(
                a != b for d, (a, b) in enumerate(zip(sizes, first, strict=True)) if d != dim):
            fail("tensors", f"sizes differ in other dimensions than {dim}: {list(first)} and "
                 f"{list(sizes)}")
    return ((*first[:dim], sum(sizes[dim] for sizes in shapes), *first[dim + 1:]),)


@rule("self:T pad:[i] value:n", "aten.constant_pad_nd.default")
def constant_pad(x, pad, _value):
    if len(pad) % 2 or len(pad) > 2 * len(x):
        fail("pad", f"expected up to {len(x)} pairs, got {list(pad)}")
    result = list(x)
    for place in range(len(pad) // 2):
        # Pairs begin with the last dimension.
        ends = pad[2 * place:2 * place + 2]
        if result[-1 - place] + sum(min(end, 0) for end in ends) < 0:
            fail("pad", f"{list(pad)} takes more away than {list(x)} has")
        result[-1 - place] += sum(ends)
    return (tuple(result),)


@rule("self:T dim:i size:i step:i", "aten.unfold_copy.default")
def unfold(x, dim, size, step):
    dim = wrap(dim, len(x))
    length = x[dim] if x else 1
    at_least(step, 1, "step")
    if not 0 <= size <= length:
        fail("size", f"expected at most {length}, the size of dimension {dim}, got {size}")
    if not x:
        return ((size,),)
    return ((*x[:dim], (length - size) // step + 1, *x[dim + 1:], size),)


@rule("self:T size:[i] stride:[i] storage_offset:i?", "aten.as_strided_copy.default")
def as_strided(x, size, stride, offset):
    if len(stride) != len(size):
        fail("stride", f"expected {len(size)} numbers, got {list(stride)}")
    first = at_least(offset or 0, 0, "storage_offset")
    last = first + sum((at_least(n, 0, "size") - 1) * at_least(step, 0, "stride")
                       for n, step in zip(size, stride, strict=True))
    if math.prod(size) and last >= math.prod(x):
        fail("size", f"reaches element {last} of {math.prod(x)}")
    return (size,)
