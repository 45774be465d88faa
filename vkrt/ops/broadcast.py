"""Operands of different sizes in one kernel: numpy's rule on top of memory orders.

`shaders/common/broadcast.glsl` walks up to 3 dimensions outside of the packed one. Neighbouring
dimensions are joined here where one stride serves every operand. While there are still more than 3,
an operand is copied out to the full sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from vkrt.ops import strided_copy
from vkrt.ops.arguments import limited
from vkrt.ops.strided_copy import StridedDim
from vkrt.pte.coerce import as_float
from vkrt.shader import opcode
from vkrt.work.tensor import Operand, Tensor, lifted_order, row_major, short_name

OUTER_DIMS = 3


@dataclass
class Broadcast:
    """Operands as a kernel reads them together.

    Attributes:
        order: of the result's dimensions in memory.
        operands: the inputs, all with the result's rank and order.
        sizes: the result's.
    """

    order: tuple[int, ...]
    operands: list[Operand]
    sizes: tuple[int, ...]

    @property
    def over(self) -> tuple[Operand, ...]:
        """Operands that the result may overwrite: read only at the texel that is written."""
        return tuple(operand for operand in self.operands if self._is_private(operand))

    def _is_private(self, operand: Operand) -> bool:
        if operand.sizes != self.sizes:
            return False
        return all(other.storage is not operand.storage
                   or (other.sizes == self.sizes and other.offset == operand.offset)
                   for other in self.operands)

    def params(self, cx) -> list[int]:
        """The parameters of broadcast.glsl, without the result's grid and size."""
        dims = self._joined()
        while len(dims) > OUTER_DIMS:
            self._expand_one(cx)
            dims = self._joined()
        moving = [k for k, (_, strides) in enumerate(dims) if any(
            stride for stride, operand in zip(strides, self.operands)
            if operand.sizes != self.sizes)]
        padded = [*dims, *[(1, (0,) * len(self.operands))] * (OUTER_DIMS - len(dims))]
        # The shader decodes up to one dimension beyond the outermost along which an operand moves.
        decoded = min(moving[-1] + 2, len(dims)) if moving else 0
        result = [padded[0][0], padded[1][0], decoded]
        for index, operand in enumerate(self.operands):
            result += [self._kind(operand), *(strides[index] for _, strides in padded),
                       *operand.grid]
        return result

    def _kind(self, operand: Operand) -> int:
        if operand.sizes == self.sizes:
            return opcode("broadcast", "SAME")
        packed = self.order[-1]
        along = operand.sizes[packed] == self.sizes[packed]
        return opcode("broadcast", "ALONG" if along else "SPLAT")

    def _joined(self) -> list[tuple[int, tuple[int, ...]]]:
        """(size, each operand's stride in texels) of the outer dimensions, innermost first."""
        strides = [operand.strides() for operand in self.operands]
        dims: list[tuple[int, tuple[int, ...]]] = []
        for d in reversed(self.order[:-1]):
            size = self.sizes[d]
            if size == 1:
                continue
            steps = tuple(0 if operand.sizes[d] == 1 else stride[d] // 4
                          for operand, stride in zip(self.operands, strides))
            if dims and all(step == dims[-1][0] * inner for step, inner in zip(steps, dims[-1][1])):
                dims[-1] = (dims[-1][0] * size, dims[-1][1])
            else:
                dims.append((size, steps))
        return dims

    def _expand_one(self, cx) -> None:
        """Copies one operand out to the full sizes."""
        index = next(i for i, operand in enumerate(self.operands) if operand.sizes != self.sizes)
        self.operands[index] = expanded(cx, self.operands[index], self.sizes, self.order)


def expanded(cx, source: Operand, sizes: Sequence[int], order: tuple[int, ...]) -> Operand:
    """A temporary with `source`, of the same rank, repeated along its dimensions of size 1."""
    result = cx.temporary(sizes, source.dtype, order)
    strided_copy.copy_strided(cx, result, source, expansion(source, sizes, order))
    return result


def expansion(source: Operand, sizes: Sequence[int], order: tuple[int, ...]) -> list[StridedDim]:
    """The strided copy that repeats `source` along its dimensions of size 1."""
    return [(sizes[d], 0 if own == 1 else stride)
            for d, (own, stride) in zip(order, source.dims(order), strict=True)]


def result_order(cx, tensors: Sequence[Tensor], sizes: Sequence[int]) -> tuple[int, ...]:
    """The order for a result: that of the largest computed input, else row-major.

    Constants follow (they are packed as needed), and so do inputs of the method, which have to be
    brought into a kernel's layout in any case.
    """
    rank = len(sizes)
    best, best_rank = row_major(rank), (0, False)
    for tensor in tensors:
        if cx.is_constant(tensor):
            continue
        rating = (tensor.numel, not cx.operand(tensor).raw)
        if rating > best_rank:
            best, best_rank = lifted_order(cx.order_of(tensor), rank), rating
    return best


def broadcast(cx, tensors: Sequence[Tensor], sizes: Sequence[int],
              dtypes: Sequence[str]) -> Broadcast:
    """Brings tensors into one order, each in the given dtype."""
    order = result_order(cx, tensors, sizes)
    operands = [convert(cx, cx.read_lifted(tensor, order), dtype)
                for tensor, dtype in zip(tensors, dtypes)]
    return Broadcast(order, operands, tuple(sizes))


def convert(cx, source: Operand, dtype: str) -> Operand:
    """The operand in another dtype (a temporary), or itself if it has it."""
    if source.dtype == dtype or (dtype == "uint8" and source.dtype == "bool"):
        return source
    result = cx.temporary(source.sizes, dtype, source.order)
    convert_into(cx, result, source)
    return result


def convert_into(cx, result: Operand, source: Operand) -> None:
    """Adds the dispatch that fills `result` with the elements of `source`, converted."""
    cx.map_texels("convert", result, [source], [result.dtype == "bool"],
                  dtype=strided_copy.variant(source.dtype, result.dtype))


@contextmanager
def result_in(cx, dtype: str, out: Tensor, order: tuple[int, ...] | None = None,
              over: tuple[Operand, ...] = ()) -> Iterator[Operand]:
    """The operand to which the block writes a result in `dtype`; see `Placing.write`. If `out` has
    another dtype, it is a temporary, which is converted behind the block."""
    if out.dtype == dtype:
        yield cx.write(out, order, over=over)
    else:
        result = cx.temporary(out.sizes, dtype, order)
        yield result
        convert_into(cx, cx.write(out, order), result)


def number_of(value: int | float, dtype: str) -> int | float:
    """A number as a parameter of a kernel for this dtype."""
    number = as_float(value)
    if is_float(dtype):
        return number
    return int(number != 0) if dtype == "bool" else limited(number)


def fill(cx, out: Tensor, value: int | float) -> None:
    """Makes every element of a tensor this number."""
    result: Operand = cx.write(out)
    cx.map_texels("fill", result, [], [number_of(value, out.dtype)])


def is_float(dtype: str) -> bool:
    """Whether kernels compute with it as a float."""
    return short_name(dtype) in ("f32", "f16")
