"""Counts: results as large as the data say, up to a bound that is in the file.

`nonzero`, `masked_select` and `repeat_interleave` get two more arguments: the count, a symbol like
the sizes that come from inputs, and its number among the method's. What is read or put by a mask
of bools is read or put by indices: by the places of what is true in it, which are counted.

A method knows a count when its run has come there (`vkrt.method.counts`).

The exporter asserts bounds of counts: so a delegate is called with a tensor of which it reads the
size alone, and then the assertion goes, and the delegate does not have that input any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vkrt import pte
from vkrt.graph.masks import mask_of
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
    """The arguments of a kernel, with the count of its result or with indices for masks.

    Args:
        builder: of the graph, see `vkrt.graph.build`; gets the nodes that make the indices.
        name: of the kernel.
        args: its arguments.
        result: what the file says of the result.
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
    """Whether a value that a call passes to a delegate may be there for its size alone: the data
    count its rows, and something else reads them."""
    plan = builder.plan
    return value_id in builder.counted and (value_id in plan.outputs or sum(
        value_id in _with_items(plan, getattr(instruction, "args", ()))
        for instruction in plan.instructions) > 2)


def read_and_written_early(nodes: Iterable[Node], mutated: Callable[[str], Sequence[int]]
                           ) -> Iterator[str]:
    """Names of the buffers of which a run that begins twice would read other values the second
    time: one operator writes rows of them in the middle of a run, and another reads what was there
    before.

    Args:
        mutated: places of the arguments that an operator changes in place, by its name.
    """
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


def _with_items(plan: pte.ExecutionPlan, value_ids: Sequence[int]) -> set[int | None]:
    """The values, and those that are in lists among them."""
    lists = (plan.values[value_id] for value_id in value_ids)
    return {*value_ids, *(one for found in lists
                          if isinstance(found, (pte.TensorList, pte.OptionalTensorList))
                          for one in found.ids)}


def _count(builder: Any, most: int) -> tuple[Symbol, int]:
    """A count that is new, and its number."""
    number = builder.counts
    builder.counts += 1
    return builder.symbol("read", (Count(number, most),), most), number


def _without_masks(builder: Any, name: str, indices: Sequence[Any], result: Any) -> list[Any]:
    """Indices with those of all places that are true in the place of a mask."""
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
            builder.mask_places[key] = _places(builder, index, most)
        found += builder.mask_places[key]
    return found


def _places(builder: Any, mask: Tensor, most: int) -> tuple[Tensor, ...]:
    """For each dimension of a mask the indices of what is true in it."""
    builder.adopted.add(mask)
    outs = tuple(Tensor((most,), "int32", name=f"places in {mask.name}") for _ in mask.sizes)
    builder.adopted.update(outs)
    builder.add(PLACES, (mask, *_count(builder, most)), outs, f"kernel of '{builder.plan.name}'",
                kernel=PLACES)
    return outs
