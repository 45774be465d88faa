"""Lowering: a command list in the making, and what the operators' declarations ask of it.

A `Lowering` goes from node to node and hands operands to the declarations. Constants become weights
when first asked for, once per layout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from vkrt.graph.graph import Graph, Node
from vkrt.lowering import host_calls
from vkrt.lowering.placing import Placing
from vkrt.lowering.reuse import Memo, NodeMemo
from vkrt.lowering.storages import ImageTooLarge
from vkrt.ops import strided_copy
from vkrt.plan.scratch import UNLIMITED
from vkrt.work.command_list import CommandList
from vkrt.work.records import StateRecord
from vkrt.work.target import Target
from vkrt.work.tensor import DTYPES, MIN_BYTES, NOWHERE, Operand, Tensor, row_major


class Lowering(Placing):
    """The command list of one graph in the making, and what the declarations ask of it.

    Args:
        base: the command list that this one shares weights and states with; none by default.
        budgets: bytes of scratch memory that nodes may use, by their numbers.
        copied: numbers of views that are copied, though products could read their elements in
            place; those that the base says by default.
    """

    def __init__(self, graph: Graph, target: Target, base: CommandList | None = None,
                 budgets: dict[int, int] | None = None, copied: Collection[int] | None = None):
        base = base or CommandList()
        super().__init__(graph, target, base, copied)
        self.budgets = budgets or {}
        # Numbers of nodes that could use scratch memory
        self.asked: set[int] = set()
        # The conditions of the nodes so far, as the host reads them
        self.conditions: dict[Tensor, Operand] = {}
        # The other parts of the command list
        self.inputs: list[Operand | None] = []
        self.outputs: list[Any] = []
        self.states: list[StateRecord] = list(base.states)
        self._placeholders: dict[str, Operand] = {}
        # For the memo: inputs, and what was done for every node
        self._entered: dict[Tensor, Operand] = {}
        self._nodes: list[NodeMemo] = []
        self._first_step = 0
        # What the graph asks for and vkrt lacks, with counts: names, and longer messages. The
        # results of such nodes are placeholders.
        self.missing: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.is_complete = not graph.unsupported

    # From node to node

    def enter(self, tensor: Tensor, operand: Operand) -> None:
        """Places an input of the method, which the host writes."""
        self.inputs.append(self.place(tensor, operand))
        self._entered[tensor] = operand

    def begin(self, index: int) -> None:
        """Begins with a node."""
        self.node = index
        self._first_step = len(self.steps)
        self._places, self._new_copies, self._new_constants = [], [], []

    def remember(self, node: Node) -> None:
        """Ends the current node: what was done for it goes into the memo."""
        self.joins.finish(self, node)
        self._nodes.append(NodeMemo(
            node, tuple(self.steps[self._first_step:]),
            tuple(self._places), tuple(self._new_copies), tuple(self._new_constants)))

    def repeat(self, memo: NodeMemo) -> None:
        """Does for the current node what another lowering did."""
        self._repeat_places(memo)
        self.steps += memo.steps

    def finish(self) -> CommandList:
        """The command list."""
        prepacks = sorted(self.prepacks, key=lambda p: (p.constant.source, p.constant.offset))
        return CommandList(tuple(self._storages.items), tuple(prepacks), tuple(self.steps),
                        tuple(self.inputs), tuple(self.outputs), tuple(self.states), self.storage,
                        self.target, notes=(*self.graph.notes, *self.notes()),
                        memo=Memo(self._entered, tuple(self._nodes), self._weights,
                                  self.copied, self.graph.parts))

    def read_rows(self, out: Tensor, table: Tensor, indices: Tensor) -> bool:
        """Lets the host read rows of a constant as a result of the current node, once a run has
        computed the indices. Returns whether it does: the target has to allow it, and it has to be
        worth it."""
        constant = self._constant(table) if self.is_constant(table) else None
        if not (self.target.reads_rows and constant is not None
                and host_calls.is_worth_reading(constant, table, out)):
            return False
        host_calls.read_rows(self, out, constant, table.sizes[0], indices, table.name)
        return True

    def placeholder(self, tensor: Tensor) -> Operand:
        """Gives some storage to a tensor that vkrt cannot make, so that the nodes behind it are
        checked, too. A command list with such a tensor is never run."""
        dtype = tensor.dtype if tensor.dtype in DTYPES else "float32"
        self.is_complete = False
        shape = Operand(NOWHERE, tensor.sizes, dtype, row_major(tensor.rank))
        storage = self._storages.new("activation", max(shape.nbytes, MIN_BYTES), dtype)
        return self.place(tensor, replace(shape, storage=storage))

    # Matrices and vectors

    def matrix(self, tensor: Tensor, order, rows: int, sizes=None) -> Operand:
        """A matrix operand: a weight, or a copy of what a node has computed (see `weight`). `sizes`
        are a reshape of the tensor that splits dimensions outside of the last."""
        sizes = tuple(sizes or tensor.sizes)
        if self.is_constant(tensor):
            return self.weight(self.constant_as(tensor, sizes=sizes), order, rows)
        source = self.read(tensor, row_major(tensor.rank))
        result = self._new("activation", sizes, tensor.dtype, order, rows)
        strided_copy.copy(self, result, source.with_view(sizes, row_major(len(sizes))))
        return result

    def vector(self, tensor: Tensor | None, dtype: str) -> Operand:
        """A 1-D constant (a bias, a norm's scale) read by texel number with LOAD_FLAT. For None a
        placeholder to bind, which a shader must not read."""
        if tensor is not None:
            return self.flat(tensor)
        if dtype not in self._placeholders:
            bound = self._new("activation", (4,), dtype, (0,), flat=True)
            self._placeholders[dtype] = replace(bound, placeholder=True)
        return self._placeholders[dtype]

    def flat(self, tensor: Tensor, sizes=None) -> Operand:
        """A constant or a computed tensor, row-major, read by texel number with LOAD_FLAT: a buffer
        in every storage. `sizes` are a reshape of the tensor."""
        sizes = tensor.sizes if sizes is None else tuple(sizes)
        order = row_major(len(sizes))
        if self.is_constant(tensor):
            operand = self.weight(self.constant_as(tensor, sizes=sizes), order, flat=True)
        else:
            operand = self.read(tensor, row_major(tensor.rank))
            if operand.storage.is_image or sizes != tensor.sizes:
                source = operand
                operand = self._new("activation", sizes, tensor.dtype, order, flat=True)
                strided_copy.copy_strided(self, operand, source, source.dims())
        return self.seen_flat(operand)

    def seen_flat(self, operand: Operand) -> Operand:
        """A buffer that is read by texel number with LOAD_FLAT. Kernels of images see it through a
        texel view, other kernels in the way of their variant.

        Raises:
            ImageTooLarge: it is larger than the device's views.
        """
        if self.storage == "texture3d" and operand.texels > self.target.max_texels:
            raise ImageTooLarge(f"{operand.dtype}{list(operand.sizes)} has {operand.texels} "
                                "texels, more than a texel view")
        return operand

    def scratch_budget(self) -> int:
        """Bytes of scratch memory that the current node may use to be faster."""
        if self.target.scratch == "any":
            return UNLIMITED
        self.asked.add(self.number)
        return self.budgets.get(self.number, 0)
