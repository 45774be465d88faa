"""Buffers that a file has twice: as a state, and as a constant of another delegate.

Where one delegate changes a buffer and another one only reads it, the exporter gives the second a
copy as a constant, which has the initial value: right in the first run alone. In the file only
equal bytes, sizes and dtypes connect the two. The readers need the value from before the run: the
exporter passes a value from after a change on as a result.

If the bytes are not all one number, both are taken for the same buffer. Zeros or ones may belong to
any tensor, and the file does not say whether later runs would be right. One case of zeros is
decided: if nothing reads a buffer's value from before the run, and the buffer is overwritten as a
whole, some delegate must read a copy of it. If operators that keep the sizes compute the new value
from one constant, with the buffer's bytes and sizes, that constant is the copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vkrt.errors import UnsupportedError
from vkrt.graph.constants import is_zero, pieces
from vkrt.graph.graph import Node, replaced
from vkrt.graph.states import State, States
from vkrt.work.tensor import ITEMSIZE, Tensor

SCATTER = "slice_scatter"


def join_twins(nodes: Sequence[Node], outputs: Sequence[Any],
               constants: Mapping[Tensor, int], states: Sequence[tuple[int, State]],
               sources: Sequence[Any]) -> tuple[list[Any], list[str]]:
    """Makes nodes that read a copy of a state's initial value read the state.

    Args:
        nodes: of a method; their arguments change.
        constants: constants that nothing changes, each with the number of its delegate.
        states: each with the number of its delegate.
        sources: the bytes of the program, then those of its data files.

    Returns:
        The outputs, with the state where they had the constant, and notes for the user: a constant
        that only happens to have a buffer's bytes is taken for the buffer, too.

    Raises:
        UnsupportedError: a constant may be a state's value, and the file does not say.
    """
    found = _read_by_nothing_else(nodes, outputs, constants, states, sources)
    states = [(number, state) for number, state in states if state.before not in found.values()]
    read = {tensor for node in nodes for tensor in node.tensors()}
    for tensor in (t for t in constants if (t in read or t in outputs) and t not in found):
        twins = [(number, state) for number, state in states
                 if number != constants[tensor] and _is_twin(tensor, state, sources)]
        if not twins:
            continue
        if len(twins) > 1 or not _has_own_value(tensor, sources):
            raise UnsupportedError(_doubt(tensor, twins))
        found[tensor] = twins[0][1].before
    if not found:
        return list(outputs), []
    for node in nodes:
        if not found.keys().isdisjoint(node.tensors()):
            node.args = replaced(node.args, found)
            if node.formulas is not None:
                node.formulas = replaced(node.formulas, found)
                node.update_args()
    return replaced(list(outputs), found), [
        f"{tensor.name}, a constant {_what(tensor)}, has the bytes with which the buffer "
        f"{state.name} begins, and is taken for that buffer: if it is another tensor, give the "
        "buffer other sizes" for tensor, state in found.items()]


def _read_by_nothing_else(nodes: Sequence[Node], outputs: Sequence[Any],
                          constants: Mapping[Tensor, int], states: Sequence[tuple[int, State]],
                          sources: Sequence[Any]) -> dict[Tensor, Tensor]:
    """Constants that are the only source of the new value of a buffer that nothing reads, each with
    the tensor of the buffer's value before the run.

    Raises:
        UnsupportedError: such a constant has other bytes than the buffer's initial value in the
            file.
    """
    makers = {out: node for node in nodes for out in node.outs}
    readers: dict[Tensor, list[Node]] = {}
    for node in nodes:
        for tensor in node.tensors():
            readers.setdefault(tensor, []).append(node)
    found: dict[Tensor, list[State]] = {}
    for number, state in states:
        before = state.before
        writers = readers.get(before, [])
        if (number != States.OUTSIDE or before in outputs or state.after is before
                or not all(_overwrites(node, before) for node in writers)):
            continue
        first = writers[0].args[1] if writers else state.after
        origins = _origins(first, makers, constants)
        if len(origins) != 1:
            continue
        if _is_twin(origins[0], state, sources):
            found.setdefault(origins[0], []).append(state)
        elif state.initial.zeros and origins[0].dtype == before.dtype:
            raise UnsupportedError(
                f"{before.name}, a buffer {_what(before)}, is written over with what is computed "
                "from a constant of these sizes, and nothing reads it: the file does not say "
                "whether the constant is the buffer, whose first value the exporter has left out. "
                "Let the buffer begin with zeros, and export the program again")
    return {tensor: of[0].before for tensor, of in found.items() if len(of) == 1}


def _overwrites(node: Node, tensor: Tensor) -> bool:
    """Whether a node overwrites a whole tensor with another one: its old value is unused."""
    target, source = (*node.args[:2], None, None)[:2]
    return (SCATTER in node.op and target is tensor and isinstance(source, Tensor)
            and source is not tensor and source.sizes == tensor.sizes)


def _origins(tensor: Tensor, makers: Mapping[Tensor, Node],
             constants: Mapping[Tensor, int]) -> list[Tensor]:
    """The constants from which nodes that keep a tensor's sizes compute the tensor."""
    result, waiting, seen = [], [tensor], {tensor}
    while waiting:
        one = waiting.pop()
        if one in constants:
            result.append(one)
        if one not in makers:
            continue
        for source in makers[one].tensors():
            if source.sizes == tensor.sizes and source not in seen:
                seen.add(source)
                waiting.append(source)
    return result


def _is_twin(tensor: Tensor, state: State, sources: Sequence[Any]) -> bool:
    """Whether a constant has the sizes, the dtype and the bytes with which a state begins."""
    constant, initial = tensor.constant, state.initial
    assert constant is not None
    if not constant.nbytes or (tensor.sizes, tensor.dtype, constant.nbytes) != (
            state.before.sizes, state.before.dtype, initial.nbytes):
        return False
    if initial.zeros:
        return is_zero(constant, sources)
    if constant.key is not None and initial.key is not None:
        return constant.key == initial.key
    return all(piece == other for piece, other in zip(
        pieces(constant, sources), pieces(initial, sources), strict=True))


def _has_own_value(tensor: Tensor, sources: Sequence[Any]) -> bool:
    """Whether the elements of a constant are not all the same."""
    constant = tensor.constant
    assert constant is not None
    first = b""
    for piece in pieces(constant, sources):
        first = first or piece[:ITEMSIZE[constant.dtype]]
        if piece != first * (len(piece) // len(first)):
            return True
    return False


def _what(tensor: Tensor) -> str:
    return f"{tensor.dtype}[{','.join(map(str, tensor.sizes))}]"


def _doubt(tensor: Tensor, twins: Sequence[tuple[int, State]]) -> str:
    names = ", ".join(state.before.name for _, state in twins)
    return (f"{tensor.name}, a constant {_what(tensor)}, has the bytes with which a buffer begins "
            f"that the program changes elsewhere ({names}): the exporter writes a buffer that one "
            "delegate changes and another one reads as a constant of the second, and the file does "
            "not say whether this is one, which would be wrong from the second run on. If it is, "
            "pass the buffer as an input and return its new value, or let it begin with numbers "
            "that are not all the same; if it is another tensor, give the buffer other sizes, such "
            "as one dimension of size 1 more. Then export the program again")
