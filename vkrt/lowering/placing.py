"""Where the tensors of a graph are: their operands, copies of these, and which may be overwritten.

Each tensor has one operand, chosen by the node that made it; a node that needs another order in
memory asks for it and gets a copy, which later nodes share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from vkrt.errors import FormatError
from vkrt.graph.graph import Graph, Predicate
from vkrt.lowering.joins import Joins
from vkrt.lowering.reuse import NodeMemo
from vkrt.lowering.storages import Storing
from vkrt.ops import strided_copy
from vkrt.ops.attributes import STRIDED
from vkrt.ops.strided import Strided
from vkrt.work.command_list import CommandList
from vkrt.work.target import Target
from vkrt.work.tensor import Constant, Operand, Storage, Tensor, row_major, short_name


class Placing(Storing):
    """The operands of the tensors of a command list in the making.

    Args:
        base: the command list that this one shares weights and states with.
        copied: numbers of views that are copied, though products could read their elements in
            place; None for those that the base says.

    Attributes:
        predicate: the conditions under which the current node runs.
        joins: the tensors that are made in strips.
        read_by_host: ids of the storages that the host reads: nothing is written over them.
    """

    def __init__(self, graph: Graph, target: Target, base: CommandList,
                 copied: Collection[int] | None):
        super().__init__(graph, target, base)
        self.copied = frozenset(self.base_memo.copied if copied is None else copied)
        self.predicate: Predicate = ()
        self.joins = Joins(graph)
        self.read_by_host: set[int] = set()
        self._operands: dict[Tensor, Operand] = {}
        # Strided views that are left in the memory of another tensor
        self._parts: dict[Tensor, Strided] = {}
        # Copies with the predicates of the nodes that made them
        self._copies: dict[tuple, tuple[Predicate, Operand]] = {}
        # The last node that reads what a storage holds, of all that it has held, by its id
        self._last_uses: dict[int, int] = {}
        # What was placed for the current node, for the memo
        self._places: list[tuple[Tensor, Operand | Strided]] = []
        self._new_copies: list[tuple[tuple, Operand]] = []
        self._new_constants: list[tuple[Tensor, Constant]] = []

    def attribute(self, name: str) -> Any:
        """An attribute of the current node (`vkrt.ops.attributes`); None where it does not have
        this one."""
        return self.graph.nodes[self.node].attributes.get(name)

    def used(self, tensor: Tensor) -> bool:
        """Whether anything reads this output of the current node."""
        return self.graph.last_use(tensor) > self.node

    def _repeat_places(self, memo: NodeMemo) -> None:
        for tensor, place in memo.places:
            if isinstance(place, Strided):
                self._leave(tensor, place)
            else:
                self.place(tensor, place)
        for key, copy in memo.copies:
            self._keep_copy(key, copy)
        for tensor, constant in memo.constants:
            self._keep_constant(tensor, constant)

    # Tensors -> operands

    def read(self, tensor: Tensor, order: tuple[int, ...] | None = None) -> Operand:
        """The operand of a tensor, in the given order of dimensions (None: in whichever it has).
        Never raw: an input of the method is brought into the kernels' layout first."""
        if self.is_constant(tensor):
            return self.weight(tensor, order or row_major(tensor.rank))
        part = self._parts.get(tensor)
        if part is not None:
            chosen = tuple(order or row_major(tensor.rank))
            return self.derived((tensor, chosen), lambda: part.copied(self, chosen))
        operand = self._placed(tensor)
        wanted = order or (row_major(tensor.rank) if operand.raw else operand.order)
        return self._as(tensor, operand, tensor.dtype, wanted)

    def _placed(self, tensor: Tensor) -> Operand:
        if tensor in self._parts:
            return self.read(tensor)
        if tensor not in self._operands:
            if not tensor.numel:
                # A constant of which the file has no bytes. There is nothing to write.
                return self.temporary(tensor.sizes, tensor.dtype)
            raise FormatError(f"{self.where()}: {tensor} is read before any operator writes it")
        return self._operands[tensor]

    def _as(self, tensor: Tensor, operand: Operand, dtype: str, order) -> Operand:
        image = self.storage == "texture3d"
        if (operand.dtype == dtype and operand.lies_as(order)
                and operand.storage.is_image == image):
            same = Operand(operand.storage, operand.sizes, dtype, tuple(order),
                           offset=operand.offset)
            # The place of a dimension of size 1 decides the sides of an image.
            if not image or same.grid == operand.grid:
                return same

        def make() -> Operand:
            copy = self.temporary(operand.sizes, dtype, order)
            strided_copy.copy(self, copy, operand)
            return copy

        return self.derived((tensor, tuple(order)), make)

    def derived(self, key: tuple, make: Callable[[], Operand]) -> Operand:
        """An operand that is made from a tensor, the first of `key`; later nodes with the same key
        share it. `make` makes it, with its dispatches."""
        found = self._copies.get(key)
        if found is not None and self.predicate[:len(found[0])] == found[0]:
            return found[1]
        # Not there, or made in a branch that may not have run.
        copy = make()
        self._keep_copy(key, copy)
        return copy

    def _keep_copy(self, key: tuple, copy: Operand) -> None:
        """Keeps a copy for later nodes, by its tensor and by what tells it from other copies."""
        self._copies[key] = self.predicate, copy
        self._hold(copy.storage, key[0])
        self._new_copies.append((key, copy))

    def operand(self, tensor: Tensor, dtype: str | None = None) -> Operand:
        """The operand of a tensor as it lies, for strided copies: it may be raw, unless that is of
        another dtype than asked for."""
        operand = (self.weight(tensor, row_major(tensor.rank)) if self.is_constant(tensor)
                   else self._placed(tensor))
        return operand if dtype in (None, operand.dtype) else self.read(tensor)

    def placed(self, tensor: Tensor) -> Operand | None:
        """The operand that a node, or the host, has written; None where none has."""
        return self._operands.get(tensor)

    def is_constant(self, tensor: Tensor) -> bool:
        """Whether a tensor is a constant, and no node has made another value of it."""
        return self._constant(tensor) is not None and tensor not in self._operands

    def constant_as(self, tensor: Tensor, **changes: Any) -> Tensor:
        """A constant under other sizes or in another dtype."""
        return replace(tensor, constant=self._constant(tensor), **changes)

    def make_constant(self, tensor: Tensor, source: Tensor) -> None:
        """Makes a result of the current node the bytes of a constant, under the result's sizes."""
        constant = self._constant(source)
        assert constant is not None
        self._keep_constant(tensor, constant)

    def _keep_constant(self, tensor: Tensor, constant: Constant) -> None:
        self._constants[tensor] = constant
        self._new_constants.append((tensor, constant))

    def read_lifted(self, tensor: Tensor, order: tuple[int, ...]) -> Operand:
        """The operand of a tensor with dimensions of size 1 put in front, up to `len(order)`; the
        order is of all of them."""
        missing = len(order) - tensor.rank
        sizes = (1,) * missing + tuple(tensor.sizes)
        own = tuple(d - missing for d in order if d >= missing)
        keeps_sides = (self.storage != "texture3d" or len(own) < 2 or order[-2] >= missing
                       or tensor.sizes[own[-2]] == 1)
        if not order or order[-1] >= missing and keeps_sides:
            return self.read(tensor, own).with_view(sizes, order)
        # The tensor lacks the packed dimension, and its elements lie a texel apart; or it lacks the
        # one beside that, and its image would have other sides.
        if self.is_constant(tensor):
            return self.weight(self.constant_as(tensor, sizes=sizes), order)
        return self._as(tensor, self._placed(tensor).lifted(len(order)), tensor.dtype, tuple(order))

    def order_of(self, tensor: Tensor) -> tuple[int, ...]:
        """The order a tensor has in memory now (row-major for constants and inputs)."""
        operand = self._operands.get(tensor)
        return row_major(tensor.rank) if operand is None or operand.raw else operand.order

    def write(self, tensor: Tensor, order: tuple[int, ...] | None = None,
              over: tuple[Operand, ...] = (), read_elsewhere: tuple[Operand, ...] = ()) -> Operand:
        """A new operand for the tensor a node makes.

        Args:
            tensor: the node's output.
            order: of dimensions in memory; None is row-major.
            over: inputs that the shader reads only at the place it writes; the first of them that
                dies with this node and has the same texels gives its memory. The shader declares
                them and the result `ALIASED`.
            read_elsewhere: operands that the shader also reads at other places. Where one of them
                is in the same storage, as a view may be, nothing is written there.
        """
        order = order or row_major(tensor.rank)
        if (place := self.joins.place(self, tensor, order)) is not None:
            return self.place(tensor, place)
        for operand in over:
            if (self._can_overwrite(operand, tensor, order)
                    and all(other.storage is not operand.storage for other in read_elsewhere)):
                result = Operand(operand.storage, tensor.sizes, tensor.dtype, order,
                                 offset=operand.offset)
                return self.place(tensor, result)
        return self.place(tensor, self.temporary(tensor.sizes, tensor.dtype, order))

    def _can_overwrite(self, operand: Operand, tensor: Tensor, order) -> bool:
        storage = operand.storage
        wanted = Operand(storage, tensor.sizes, tensor.dtype, order)
        if (storage.role not in ("activation", "input") or storage.id in self.read_by_host
                or operand.raw):
            return False
        if (operand.dtype != tensor.dtype or wanted.grid != operand.grid
                or wanted.nbytes != storage.nbytes or operand.offset):
            return False
        return self._is_dead(storage)

    def _is_dead(self, storage: Storage) -> bool:
        """Whether no node after the current one reads what a storage holds now."""
        return self._last_uses.get(storage.id, -1) <= self.node

    def _hold(self, storage: Storage, tensor: Tensor) -> None:
        """Notes that a storage holds a tensor until its last use."""
        self._last_uses[storage.id] = max(self._last_uses.get(storage.id, -1),
                                          self.graph.last_use(tensor))

    def place(self, tensor: Tensor, operand: Operand) -> Operand:
        """Says where a tensor is; used for outputs and for views of another tensor's operand."""
        self._operands[tensor] = operand
        self._hold(operand.storage, tensor)
        self._places.append((tensor, operand))
        return operand

    def alias(self, tensor: Tensor, source: Operand, order, offset: int = 0) -> Operand:
        """Makes a tensor a view of another operand's bytes, `offset` bytes further on.

        Raises:
            AssertionError: it has another dtype, or reaches beyond the operand's storage.
        """
        if short_name(tensor.dtype) != short_name(source.dtype):
            raise AssertionError(f"{tensor} cannot be a view of {source.dtype} elements")
        view = Operand(source.storage, tensor.sizes, tensor.dtype, tuple(order),
                       raw=source.raw, offset=source.offset + offset)
        view.check_place()
        return self.place(tensor, view)

    def change(self, before: Tensor, after: Tensor) -> Operand:
        """The operand that the current node writes to change a tensor in place: the tensor's own
        memory if nothing reads the old value any more, else a copy; a buffer, row-major, in every
        storage."""
        operand = self.operand(before)
        storage = operand.storage
        if (not storage.is_image and storage.role in ("state", "activation", "input")
                and storage.id not in self.read_by_host and self._is_dead(storage)
                and operand.dtype == before.dtype and operand.lies_as(row_major(before.rank))):
            return self.place(after, operand.as_rows())
        result = self.buffer(before.sizes, before.dtype)
        strided_copy.copy(self, result, operand)
        return self.place(after, result)

    # Strided views that are left in place

    def is_apart(self, tensor: Tensor) -> bool:
        """Whether a tensor is a strided view in another tensor's memory: `strided` gives the view,
        and `read` copies it."""
        return tensor in self._parts

    def left(self) -> set[int]:
        """The indices of the nodes whose results are left in place."""
        return {index for index, node in enumerate(self.graph.nodes)
                if STRIDED in node.attributes and any(out in self._parts for out in node.outs)}

    def strided(self, tensor: Tensor) -> Strided | None:
        """Where the elements of a tensor that nodes computed lie in a buffer; None where they lie
        in an image, or in a layout of the host that kernels do not read."""
        if tensor in self._parts:
            return self._parts[tensor]
        operand = self._operands.get(tensor)
        if operand is None or operand.storage.is_image or not tensor.numel:
            return None
        if operand.raw:
            if operand.dtype != tensor.dtype or not operand.lies_as(row_major(tensor.rank)):
                return None
            operand = operand.as_rows()
        return Strided.of(operand)

    def leave(self, tensor: Tensor, out: Tensor, view: Callable[[Strided], Strided | None]) -> bool:
        """Leaves a result of the current node in place as a strided view, if all readers can read
        that (the attribute `STRIDED`). Returns whether it did.

        Args:
            tensor: what the result is a part of.
            view: gives the part as a strided view; None where its strides are not regular.
        """
        if (not self.attribute(STRIDED) or self.number in self.copied or tensor.dtype != out.dtype):
            return False
        where = self.strided(tensor)
        found = None if where is None else view(where)
        if found is None or not found.can_be_copied():
            return False
        self._leave(out, found)
        return True

    def _leave(self, tensor: Tensor, where: Strided) -> None:
        self._parts[tensor] = where
        self._hold(where.source.storage, tensor)
        self._places.append((tensor, where))
