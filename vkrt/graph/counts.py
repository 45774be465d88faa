"""Counts: sizes of results that the data decide, up to a bound that is in the file.

`nonzero`, `masked_select` and `repeat_interleave` get two more arguments: the count, a symbol like
the sizes of inputs, and its number among the method's counts. A mask of bools is replaced by
indices, the places of True in it, which are counted. A method knows a count when its run has
computed it (`vkrt.method.counts`).

The exporter asserts bounds of counts: a delegate gets a tensor of which it reads only the size, and
loses that input when the exporter removes the assertion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vkrt.graph.masks import mask_of
from vkrt.graph.overwrites import with_items
from vkrt.graph.symbols import Symbol
from vkrt.work.limits import Count
from vkrt.work.tensor import Tensor

if TYPE_CHECKING:
    from vkrt.graph.graph import Node

PLACES = "vkrt.mask_places.default"
REPEAT = "aten::repeat_interleave.Tensor_out"
# How many arguments kernels have in front of the count
COUNTED = {"aten::nonzero.out": 1, "aten::masked_select.out": 2, REPEAT: 1}
BY_INDICES = ("aten::index.Tensor_out", "aten::index_put.out", "aten::index_put_")


def with_counts(builder: Any, name: str, args: tuple[Any, ...], result: Any,
                changes: Sequence[bool]) -> tuple[Any, ...]:
    """The arguments `args` of the kernel `name`, with the count of its result or with indices for
    masks.

    Args:
        builder: of the graph; gets the nodes that make the indices.
        result: the result as the file declares it.
        changes: for each argument whether it is a tensor whose sizes may change.
    """
    if name in COUNTED and isinstance(result, Tensor) and result.rank:
        given = COUNTED[name]
        if len(args) == given or (name == REPEAT and args[given:] == (None,)):
            return (*args[:given], *_count(builder, result.sizes[0]))
    elif name in BY_INDICES and len(args) > 1 and isinstance(args[1], list) \
            and (mask_of(name, args) is None or changes[2]):
        return (args[0], _without_masks(builder, name, args[1], result), *args[2:])
    return args


def may_lack(builder: Any, value_id: int) -> bool:
    """Whether a call may pass a value to a delegate for its size alone: the data decide the number
    of its rows, and something else reads the rows."""
    plan = builder.plan
    return value_id in builder.counted and (value_id in plan.outputs or sum(
        value_id in with_items(plan.values, getattr(instruction, "args", ()))
        for instruction in plan.instructions) > 2)


def read_and_written_early(nodes: Iterable[Node], mutated: Callable[[str], Sequence[int]]
                           ) -> Iterator[str]:
    """Names of the buffers because of which a run must not begin twice: one operator writes rows of
    such a buffer in the middle of a run, and another one reads the old rows. `mutated` has the
    places of the arguments that an operator changes in place."""
    writers: dict[Tensor, set[Node]] = {}
    readers: dict[Tensor, set[Node]] = {}
    for node in nodes:
        for tensor in node.reads():
            readers.setdefault(tensor, set()).add(node)
        for place in mutated(node.op):
            if place < len(node.args) and isinstance(node.args[place], Tensor):
                writers.setdefault(node.args[place], set()).add(node)
    for tensor, written_by in writers.items():
        if readers[tensor] != written_by:
            yield tensor.name


def _count(builder: Any, most: int) -> tuple[Symbol, int]:
    number = builder.counts
    builder.counts += 1
    return builder.symbol("read", (Count(number, most),), most), number


def _without_masks(builder: Any, name: str, indices: Sequence[Any], result: Any) -> list[Any]:
    """The indices, with each mask replaced by the indices of its True elements."""
    found: list[Any] = []
    for index in indices:
        if not isinstance(index, Tensor) or index.dtype != "bool" or not index.rank:
            found.append(index)
            continue
        key = index, builder.predicate
        if key not in builder.mask_places:
            most = index.numel
            if name == BY_INDICES[0] and len(indices) == 1 and isinstance(result, Tensor):
                most = min(most, *result.sizes[:1])
            # For each dimension of the mask
            outs = tuple(Tensor((most,), "int32", name=f"places in {index.name}")
                         for _ in index.sizes)
            builder.adopted.update((index, *outs))
            builder.add(PLACES, (index, *_count(builder, most)), outs,
                        f"kernel of '{builder.plan.name}'", kernel=PLACES)
            builder.mask_places[key] = outs
        found += builder.mask_places[key]
    return found
