"""Operands of new storages: what steps write, and weights, once for each layout."""

from __future__ import annotations

from dataclasses import replace

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Graph
from vkrt.lowering.emission import Emitter
from vkrt.lowering.reuse import Memo
from vkrt.ops import strided_copy
from vkrt.work.command_list import CommandList
from vkrt.work.records import Prepack
from vkrt.work.target import MAX_ELEMENTS, Target
from vkrt.work.tensor import (
    DTYPES,
    MIN_BYTES,
    NOWHERE,
    Constant,
    Operand,
    StorageList,
    Tensor,
    row_major,
)


class ImageTooLarge(Exception):
    """An operand does not fit the device's images: the command list is made anew with buffers."""


class Storing(Emitter):
    """The storages of a command list in the making, and its steps.

    Args:
        base: the command list that this one shares weights and states with.

    Attributes:
        prepacks: how weights get into their storages. The storages of the base keep their ids.
    """

    def __init__(self, graph: Graph, target: Target, base: CommandList):
        super().__init__(graph, target)
        self.prepacks: list[Prepack] = list(base.prepacks)
        self.base_memo: Memo = base.memo or Memo()
        self._storages = StorageList(list(base.storages))
        self._weights = dict(self.base_memo.weights)
        # Tensors that nodes make from constants alone, without a dispatch
        self._constants: dict[Tensor, Constant] = {}

    def temporary(self, sizes, dtype: str, order=None) -> Operand:
        """An operand of a new activation storage (an image where the storage policy is images)."""
        return self._new("activation", sizes, dtype, order or row_major(len(sizes)))

    def _new(self, role: str, sizes, dtype: str, order, rows: int | None = None,
             flat: bool = False, raw: bool = False) -> Operand:
        shape = Operand(NOWHERE, tuple(sizes), dtype, tuple(order), rows=rows, raw=raw)
        image = self.storage == "texture3d" and not flat and not raw
        if 4 * shape.texels > MAX_ELEMENTS:
            raise UnsupportedError(
                f"{self.where()}: a tensor {dtype}{list(sizes)} of {4 * shape.texels:,} elements, "
                f"padding included; kernels number at most {MAX_ELEMENTS:,}")
        if image and max(shape.grid) > self.target.max_image_extent:
            raise ImageTooLarge(f"{dtype}{list(sizes)} needs an image of {shape.grid} texels")
        storage = self._storages.new(role, max(shape.nbytes, MIN_BYTES), dtype,
                                     tuple(max(side, 1) for side in shape.grid) if image else None)
        return Operand(storage, shape.sizes, dtype, shape.order, raw=raw, rows=rows)

    def buffer(self, sizes, dtype: str) -> Operand:
        """An operand of a new activation storage that is a buffer, row-major, in every storage."""
        return self._new("activation", sizes, dtype, row_major(len(sizes)), flat=True)

    def raw(self, tensor: Tensor, role: str, dtype: str) -> Operand:
        """A new raw operand that the host can read and write."""
        return self._new(role, tensor.sizes, dtype, row_major(tensor.rank), raw=True)

    def _constant(self, tensor: Tensor) -> Constant | None:
        return self._constants.get(tensor, tensor.constant)

    def weight(self, tensor: Tensor, order, rows: int | None = None,
               flat: bool = False, pitch: int | None = None) -> Operand:
        """A constant, prepacked into the given order.

        Args:
            tensor: a tensor with a constant.
            order: of dimensions in memory.
            rows: makes it a matrix operand with this many outer dimensions as rows.
            flat: a vector read by texel number: a buffer in every storage.
            pitch: elements of the constant from one index of the outermost dimension to the next,
                where more lie between them than belong to the tensor.
        """
        constant = self._constant(tensor)
        if constant is None:
            raise UnsupportedError(f"{self.where()}: {tensor} has to be a constant of the program")
        if constant.dtype not in DTYPES and constant.dtype != strided_copy.WIDE:
            raise UnsupportedError(f"{self.where()}: {tensor} is stored as {constant.dtype}; "
                                   f"constants are {', '.join(DTYPES)}")
        order = tuple(order)
        if not tensor.numel:
            # There is nothing to prepack, and nothing is ever read of it.
            return self._new("activation", tensor.sizes, tensor.dtype, order, rows, flat)
        image = self.storage == "texture3d" and not flat
        # The rows decide where an element lies only in an image. In a buffer, a table of rows and
        # the matrix of a product are the same bytes.
        key = (constant.source, constant.key or constant.offset, constant.dtype, tensor.dtype,
               tensor.sizes, order, image, rows if image else None, pitch)
        if key not in self._weights:
            target = self._new("weight", tensor.sizes, tensor.dtype, order, rows, flat)
            source = Operand(NOWHERE, tensor.sizes, constant.dtype, row_major(tensor.rank),
                             raw=True)
            self.prepacks.append(strided_copy.prepack(constant, target, source, tensor.name, pitch))
            self._weights[key] = target
        return replace(self._weights[key], rows=rows)
