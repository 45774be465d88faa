"""CommandList: all records of a method at one shape."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from vkrt.work.records import HostCall, Prepack, StateRecord, Step, Table
from vkrt.work.target import Target
from vkrt.work.tensor import Operand, Storage, itemsize
from vkrt.work.weights import Weight, weight_table_of

# Of each step that reads weights or runs on the host, in order: the ids of the weights' storages,
# and whether the host runs it
WeightReads = tuple[tuple[frozenset[int], bool], ...]


@dataclass(frozen=True)
class CommandList:
    """Everything a method does: what lowering made of a graph.

    Attributes:
        storages: every storage, by id.
        prepacks: in the order of the file.
        steps: dispatches, host calls and moves in order.
        inputs: raw operands the host writes before each run, in the order of the method's inputs;
            None for an input that nothing uses or that is not a tensor.
        outputs: raw operands read after each run, in the order of the outputs, or values.
        states: what is kept from run to run.
        storage: "texel", "buffer" or "texture3d".
        target: what it is made for.
        notes: decisions worth telling the user (fallbacks), in plain words.
        other_sizes: what command lists of the same method at other sizes read of the same weights;
            a plan that streams weights is made for all of them.
        memo: what lowering remembers (`vkrt.lowering.reuse.Memo`) for command lists of other sizes
            that are made from this one. It is not part of the work: it is neither compared nor
            written to files.
    """

    storages: tuple[Storage, ...] = ()
    prepacks: tuple[Prepack, ...] = ()
    steps: tuple[Step, ...] = ()
    inputs: tuple[Operand | None, ...] = ()
    outputs: tuple[Operand | bool | int | float | str | None, ...] = ()
    states: tuple[StateRecord, ...] = ()
    storage: str = "texel"
    target: Target = Target()
    notes: tuple[str, ...] = ()
    other_sizes: tuple[WeightReads, ...] = ()
    memo: Any = field(default=None, compare=False, repr=False)

    @cached_property
    def weight_table(self) -> tuple[Weight, ...]:
        """The weights, see `vkrt.work.weights`."""
        return weight_table_of(self.prepacks, self.steps)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables that the host reads rows of, each once."""
        return tuple(dict.fromkeys(step.table for step in self.steps
                                   if isinstance(step, HostCall) and step.table is not None))

    @cached_property
    def row_bytes(self) -> int:
        """Bytes of the rows of tables that the host reads in a run."""
        return sum(math.prod(operand.sizes) * itemsize(operand.dtype) for step in self.steps
                   if isinstance(step, HostCall) and step.table is not None
                   for operand in step.writes)

    @cached_property
    def read_by_host(self) -> frozenset[int]:
        """Ids of the storages that the host reads: the outputs, and what host calls read."""
        calls = (operand for step in self.steps if isinstance(step, HostCall)
                 for operand in step.reads)
        return frozenset(operand.storage.id for operand in (*self.outputs, *calls)
                         if isinstance(operand, Operand))
