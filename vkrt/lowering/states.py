"""States: what a method keeps from run to run, read like inputs and written like outputs.

A state has memory of its own, in which its elements lie as in the file, or in 8 bits where it is a
cache and the target says so (`vkrt.ops.caches`). Its new value is made in other memory, and copied
to the state at the end of the run, for all states together. So every reader of the old value gets
the old value, also through a view, and a run that fails before its last submission does not change
the state. An operator that changes a state in place, such as a cache, writes to the state itself if
nothing reads the old value any more (`Placing.change`); a run that fails may leave some rows new.
"""

from __future__ import annotations

from dataclasses import replace

from vkrt.lowering.caches import caches_of, places_of
from vkrt.ops import strided_copy
from vkrt.ops.caches import in_8_bits, is_in_8_bits
from vkrt.work.records import StateRecord
from vkrt.work.tensor import Constant, Operand, row_major


def enter(cx) -> None:
    """Gives every state of the graph its memory, before the first node. A command list that is made
    from another one takes the memory of the states there."""
    for state, record in zip(cx.graph.states, cx.states):
        cx.place(state.before, record.operand)
    caches = caches_of(cx.graph) if cx.target.cache == "int8" else ()
    for state in cx.graph.states[len(cx.states):]:
        kept, initial = state.before, state.initial
        if state in caches:
            kept = in_8_bits(kept)
            initial = Constant(0, kept.numel, kept.dtype, zeros=True)
        operand = cx.place(state.before, cx.raw(kept, "state", kept.dtype))
        cx.states.append(StateRecord(operand, initial, kept.name))


def notes(cx) -> tuple[str, ...]:
    """Notes for the user about the states."""
    if cx.target.cache != "int8" or not cx.states:
        return ()
    count = sum(is_in_8_bits(record.operand) and state.before.dtype != "int8"
                for state, record in zip(cx.graph.states, cx.states, strict=True))
    return (f"{count} of {len(cx.states)} states are caches in 8 bits",)


def store(cx) -> None:
    """Adds the copies of the new values to the states, behind the last node and the outputs. Notes
    in the records how many places of a text each state has rows for."""
    places = places_of(cx.graph)
    cx.states = [replace(record, places=places[state])
                 for state, record in zip(cx.graph.states, cx.states)]
    copies = []
    for state, record in zip(cx.graph.states, cx.states):
        target, source = record.operand, cx.operand(state.after)
        if source.storage == target.storage and _same_bytes(source, target):
            continue
        if source.storage.role == "state":
            # A view of a state's old value, which another copy may overwrite first.
            aside = cx.temporary(source.sizes, source.dtype)
            strided_copy.copy(cx, aside, source)
            source = aside
        copies.append((target, source))
    for target, source in copies:
        strided_copy.copy(cx, target, source)


def _same_bytes(source: Operand, target: Operand) -> bool:
    return source.offset == target.offset and source.lies_as(row_major(len(target.sizes)))
