"""From calls of kernels outside of delegates to nodes: what they read, make and change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkrt import pte
from vkrt.graph.counts import with_counts
from vkrt.graph.graph import MADE
from vkrt.graph.kernels import REFUSED, split_arguments
from vkrt.graph.symbols import Symbol
from vkrt.pte.plan import IntList as IdList
from vkrt.work.tensor import DTYPES, Constant, Tensor, itemsize

COPY, ITEM, SELECT = "aten::copy_", "aten::_local_scalar_dense", "aten::select_copy.int_out"


def take(builder: Any, name: str, args: Sequence[int]) -> None:
    """Adds the node of a kernel's call, if it needs one, from the ids of arguments and results."""
    if _begins(builder, name, args):
        return
    label = f"kernel of '{builder.plan.name}'"
    if name == ITEM and len(args) > 1:
        builder.find_views(args[:1])
        tensor = builder.values[args[0]]
        if (isinstance(tensor, Tensor) and tensor.numel == 1
                and isinstance(builder.values[args[1]], (int, Symbol))):
            builder.values[args[1]] = builder.read(tensor, 0)
            return
    if name.endswith("_") and len(args) > 1 and args[0] == args[-1]:
        builder.find_views(args[:1])
        _keep_unwritten(builder, args[0])
        if name == COPY and _replace(builder, *args[:2]):
            return
    inputs, out_ids = split_arguments(name, args, builder.values, builder.made)
    if not out_ids or name in REFUSED or name.startswith(MADE):
        builder.unsupported[f"{name} ({REFUSED.get(name, 'in place')})"] += 1
        # They count as written, so that the kernels that read them are checked too.
        builder.made.update(out_ids)
        return
    builder.find_views(inputs)
    resolved = tuple(_resolve(builder, i) for i in inputs)
    plain, resolved = resolved, with_counts(
        builder, name, resolved, builder.values[out_ids[0]],
        [bool(getattr(builder.plan.values[i], "dynamism", 0)) for i in inputs])
    if resolved is not plain and getattr(builder.plan.values[out_ids[0]], "dynamism", False):
        builder.counted.update(out_ids)
    outs = []
    for value_id in out_ids:
        old = builder.values[value_id]
        if not isinstance(old, Tensor):
            builder.unsupported[f"{name} (result is not a tensor)"] += 1
            return
        outs.append(builder.renew(value_id, old))
    if name == SELECT:
        _follow_element(builder, resolved, outs[0])
    outs += _change(builder, name, inputs)
    builder.add(name, resolved, tuple(outs), label, kernel=name)


def _begins(builder: Any, name: str, args: Sequence[int]) -> bool:
    """Handles an in-place copy that gives a value its first content of the run, as in front of a
    loop; returns whether it is one. A value that is read before is kept from run to run."""
    if name != COPY or len(args) < 2 or args[0] in builder.touched or builder.is_known(args[0]):
        return False
    builder.find_views(args[1:2])
    target, source = builder.values[args[0]], builder.values[args[1]]
    if not (isinstance(target, Tensor) and isinstance(source, Tensor)
            and (target.sizes, target.host_dtype) == (source.sizes, source.host_dtype)):
        return False
    builder.values[args[0]] = source
    builder.made.add(args[0])
    builder.writes.add(args[0])
    return True


def _replace(builder: Any, value_id: int, source_id: int) -> bool:
    """Handles a copy over a whole state: the state then holds the source, and no node reads the old
    value. Returns whether the copy is one."""
    builder.find_views([source_id])
    old, source = builder.values[value_id], builder.values[source_id]
    if not (builder.states.is_kept(value_id) and isinstance(source, Tensor)
            and isinstance(old, Tensor)
            and source.constant is None
            and (source.sizes, source.host_dtype) == (old.sizes, old.host_dtype)):
        return False
    builder.adopted.add(source)
    builder.set(value_id, source)
    return True


def _change(builder: Any, name: str, inputs: Sequence[int]) -> list[Tensor]:
    """New tensors for the arguments that a kernel changes in place, beside its results."""
    kernel = builder.kernels.get(name)
    ids = [inputs[place] for place in (builder.mutated(kernel.op) if kernel else ())
           if place < len(inputs)]
    for value_id in ids:
        _keep_unwritten(builder, value_id)
    return [builder.renew(value_id, builder.values[value_id]) for value_id in ids
            if isinstance(builder.values[value_id], Tensor)]


def _keep_unwritten(builder: Any, value_id: int) -> None:
    """Makes a value that is about to be changed in place a state, if nothing in the run has written
    it: planned memory without data in the file, which begins with zeros."""
    tensor, meta = builder.values[value_id], builder.plan.values[value_id]
    if (value_id in builder.made or value_id in builder.plan.inputs
            or not isinstance(meta, pte.TensorMeta) or meta.memory is None or meta.dynamism
            or tensor.constant is not None or tensor.dtype not in DTYPES):
        return
    nbytes = tensor.numel * itemsize(tensor.dtype)
    builder.keep(value_id, tensor, Constant(0, nbytes, tensor.dtype, zeros=True))


def _follow_element(builder: Any, args: tuple[Any, ...], result: Tensor) -> None:
    """Notes which element of an input a selected element is."""
    if len(args) != 3 or not isinstance(args[0], Tensor) or result.numel != 1:
        return
    tensor, _dim, index = args
    number = builder.origins.get(tensor)
    if (number is not None and tensor.rank == 1 and isinstance(index, int)
            and -tensor.numel <= index < tensor.numel):
        builder.elements[result] = number, index % tensor.numel


def _resolve(builder: Any, value_id: int) -> Any:
    value = builder.values[value_id]
    if isinstance(value, IdList):
        return [builder.values[i] for i in value.items]
    if isinstance(value, (pte.TensorList, pte.OptionalTensorList)):
        return [None if i is None else builder.values[i] for i in value.ids]
    if isinstance(value, (pte.DoubleList, pte.BoolList)):
        return list(value.items)
    return value
