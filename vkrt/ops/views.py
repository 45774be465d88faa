"""When one tensor's bytes are another's: reshapes and parts without a copy."""

from __future__ import annotations

from vkrt.ops.strided import Strided
from vkrt.ops.strided_copy import copy_strided, joined
from vkrt.work.tensor import Operand, Tensor, itemsize, row_major


def view_order(source: Operand, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The order under which the bytes of `source`, which is not raw, are a tensor of `sizes` with
    the same logical order of elements; or None."""
    strides = _split_strides(source, sizes)
    if strides is None:
        return None
    big = sorted((d for d, size in enumerate(sizes) if size != 1), key=lambda d: -strides[d])
    small = [d for d, size in enumerate(sizes) if size == 1]
    if not big or strides[big[-1]] != 1:
        # No dimension lies packed, so one of size 1 has to.
        if not small and sizes:
            return None
        packed = [small.pop()] if small else []
    else:
        packed = [big.pop()]
    order = (*small, *big, *packed)
    view = source.with_view(sizes, order)
    wanted = view.strides()
    if view.grid != source.grid if source.storage.is_image else view.texels != source.texels:
        return None
    same = all(wanted[d] == strides[d] for d, size in enumerate(sizes) if size != 1)
    return order if same else None


def _split_strides(source: Operand, sizes: tuple[int, ...]) -> list[int] | None:
    """The stride in `source` of every dimension of a reshape, None where one has none."""
    dims = list(joined(source.dims()) or ((1, 1),))
    strides = [0] * len(sizes)
    size, stride = dims.pop()
    for d in reversed(range(len(sizes))):
        if sizes[d] == 1:
            continue
        if size == 1 and dims:
            size, stride = dims.pop()
        if sizes[d] == 0 or size % sizes[d]:
            return None
        strides[d] = stride
        size, stride = size // sizes[d], stride * sizes[d]
    return strides


def reshape(cx, tensor: Tensor, out: Tensor) -> None:
    """Makes `out` the elements of `tensor` under other sizes, without a copy where possible."""
    if cx.is_constant(tensor) and tensor.dtype == out.dtype:
        cx.make_constant(out, tensor)
        return
    def view(where: Strided) -> Strided | None:
        return where.reshaped(out.sizes)

    if cx.is_apart(tensor) and cx.leave(tensor, out, view):
        return
    source = cx.operand(tensor, out.dtype)
    if source.raw:
        cx.alias(out, source, row_major(out.rank))
        return
    order = view_order(source, out.sizes)
    if order is not None:
        cx.alias(out, source, order)
        return
    if cx.leave(tensor, out, view):
        return
    # The elements of a row-major result are numbered as those of the source are.
    copy_strided(cx, cx.write(out), source, source.dims())


def viewed(cx, tensor: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """The elements of a tensor under other sizes."""
    view = Tensor(sizes, tensor.dtype)
    reshape(cx, tensor, view)
    return view


def part_offset(cx, source: Operand, dim: int, start: int, size: int) -> int | None:
    """The byte offset of indices [start, start + size) of a dimension; None if they are no view."""
    if start == 0 and size == source.sizes[dim]:
        return 0
    if source.raw or source.storage.is_image:
        return None
    outermost = next((d for d in source.order if source.sizes[d] != 1), dim)
    if dim != outermost:
        return None
    if dim == source.order[-1] and (start % 4 or size % 4):
        return None
    offset = start * source.strides()[dim] * itemsize(source.dtype)
    return None if offset % cx.target.offset_alignment else offset
