"""Steps of the host between two submissions: kernels outside of delegates, branches, and reads of
the rows that a run chooses."""

from __future__ import annotations

import math
from typing import Any

from vkrt.graph.graph import Node, Predicate
from vkrt.ops import strided_copy
from vkrt.ops.registry import known
from vkrt.work.host_arguments import BRANCH, ROWS, ReadArgument
from vkrt.work.records import HostCall, Table
from vkrt.work.tensor import DTYPES, Constant, Operand, Tensor, itemsize, row_major

# A run has to read at most 1 / SHARE of a table, and at least LEAST_SAVED bytes less than all of
# it. At each read the host waits for the device.
SHARE, LEAST_SAVED = 2, 16 << 10


def host_array(cx, tensor: Tensor) -> Operand:
    """The tensor's elements as the host wants them, without a copy where they lie so already."""
    dtype = cx.graph.staging_dtype(tensor)
    operand = cx.placed(tensor) or cx.read(tensor)
    order = row_major(tensor.rank)
    dense = tensor.rank == 0 or operand.packed % 4 == 0 or operand.packed == tensor.numel
    if (operand.dtype == dtype and not operand.storage.is_image
            and operand.storage.role == "activation" and not operand.offset
            and (operand.raw or (operand.lies_as(order) and dense))):
        result = Operand(operand.storage, tensor.sizes, dtype, order, raw=True)
        result.check_place()
    else:
        result = cx.raw(tensor, "activation", dtype)
        strided_copy.copy(cx, result, operand)
    cx.read_by_host.add(result.storage.id)
    return result


def enter_block(cx, predicate: Predicate) -> None:
    """Begins another block of nodes, if their predicate is not that of the current block."""
    for place, (condition, _) in enumerate(predicate):
        if condition not in cx.conditions:
            # The host reads it in the enclosing block, which all nodes that need it pass.
            _choose(cx, predicate[:place])
            cx.conditions[condition] = host_array(cx, condition)
    _choose(cx, predicate)


def _choose(cx, predicate: Predicate) -> None:
    if predicate == cx.predicate:
        return
    cx.predicate = predicate
    wanted = tuple((ReadArgument(i), value) for i, (_, value) in enumerate(predicate))
    reads = tuple(cx.conditions[condition] for condition, _ in predicate)
    cx.steps.append(HostCall(cx.number, BRANCH, wanted, reads, ()))


def call_kernel(cx, node: Node) -> None:
    """Adds the call of a kernel outside of delegates."""
    reads: list[Operand] = []

    def argument(value: Any) -> Any:
        if isinstance(value, Tensor):
            reads.append(host_array(cx, value))
            return ReadArgument(len(reads) - 1)
        return tuple(map(argument, value)) if isinstance(value, (list, tuple)) else value

    args = tuple(map(argument, node.args))
    writes = tuple(cx.place(tensor, cx.raw(tensor, "input", cx.graph.staging_dtype(tensor)))
                   for tensor in node.outs)
    cx.steps.append(HostCall(cx.number, node.op, args, tuple(reads), writes))


def is_worth_reading(constant: Constant, table: Tensor, out: Tensor) -> bool:
    """Whether the rows `out` of a table are so much less than the table that reading them is worth
    the wait for the device. It counts the most rows that any call reads, so all sizes agree."""
    if constant.dtype not in DTYPES or constant.zeros or not table.rank or not out.numel:
        return False
    element = itemsize(constant.dtype)
    read = math.prod(out.bounds or out.sizes) * element
    return (constant.nbytes == table.numel * element and SHARE * read <= constant.nbytes
            and constant.nbytes - read >= LEAST_SAVED)


def read_rows(cx, out: Tensor, constant: Constant, rows: int, indices: Tensor, name: str) -> None:
    """Adds the read of those rows of a constant that indices name, as the tensor `out`."""
    node = cx.graph.nodes[cx.node]
    if not known(node.op).reads_rows:
        raise AssertionError(f"{node}: its operator is declared without reads_rows")
    # A node may read rows of several constants by the same indices.
    read = cx.derived((indices, ROWS), lambda: host_array(cx, indices))
    written = cx.raw(out, "input", constant.dtype)
    cx.steps.append(HostCall(cx.number, ROWS, (), (read,), (written,), Table(constant, rows, name)))
    # Kernels read the rows where the host has written them, if these lie as kernels want them.
    is_usable = written.dtype == out.dtype and written.lies_as(row_major(out.rank))
    cx.place(out, written.as_rows() if is_usable and cx.storage != "texture3d" else written)
