"""The weights of a compiled program: the constants that command lists read, as kernels read them.

Weights that the host can pack are packed in the file, so that loads map or copy them; the constants
of images are as in the program. A command list that reads its constants from the file differs from
the original only in where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

from vkrt.compiled.file import PAGE
from vkrt.compiled.prepacked import can_be_prepacked, key_of, prepacked
from vkrt.executable.weights import StridedCopy, WeightRead
from vkrt.memory.packing import Packing
from vkrt.memory.reader import Reader, Transfer
from vkrt.memory.source import Source
from vkrt.plan.weight_reads import host_read
from vkrt.report.stopwatch import OnProgress
from vkrt.work.command_list import CommandList
from vkrt.work.records import HostCall, Prepack, StateRecord, Step
from vkrt.work.tensor import Constant, round_up
from vkrt.work.weights import Weight

# A weight's offset is a multiple of so many bytes: the largest offset alignment that Vulkan lets a
# driver ask for
ALIGNMENT = 256
# Bytes copied at once
PART = 4 << 20


@dataclass(frozen=True)
class _Piece:
    """Bytes of the file: a constant, or how it is packed as a weight of a command list."""

    offset: int
    nbytes: int
    constant: Constant
    packed: tuple[CommandList, Weight] | None = None


class CompiledWeights:
    """The weights of all methods' command lists, for all devices, at their places in one file, in
    which the last one ends at `end`."""

    def __init__(self, works: Iterable[CommandList], sources: Sequence[Source]):
        self._sources = sources
        self._pieces: dict[object, _Piece] = {}
        self.end = PAGE
        for work in works:
            weights = {weight.prepack: weight for weight in work.weight_table}
            # In this order a run reads the file from its start to its end.
            for weight in _in_order_of_use(work):
                record = work.prepacks[weight.prepack]
                if can_be_prepacked(record):
                    self._add(key_of(record), record.target.storage.nbytes, record.constant,
                              (work, weight))
            for number, record in enumerate(work.prepacks):
                if number not in weights or not can_be_prepacked(record):
                    self._add_constant(record.constant)
            for state in work.states:
                self._add_constant(state.constant)
            for step in work.steps:
                if isinstance(step, HostCall) and step.table is not None:
                    self._add_constant(step.table.constant)

    @property
    def nbytes(self) -> int:
        return sum(piece.nbytes for piece in self._pieces.values())

    def _add_constant(self, constant: Constant) -> None:
        if not constant.zeros:
            self._add(_bytes_of(constant), constant.nbytes, constant, None)

    def _add(self, key: object, nbytes: int, constant: Constant,
             packed: tuple[CommandList, Weight] | None) -> None:
        if key not in self._pieces:
            offset = round_up(self.end, ALIGNMENT)
            self._pieces[key] = _Piece(offset, nbytes, constant, packed)
            self.end = offset + nbytes

    def write(self, file: BinaryIO, on_progress: OnProgress | None) -> None:
        """Writes all of them; after each, `on_progress` is called with "pack", the bytes written so
        far, and those of all."""
        memory = np.empty(max((piece.nbytes for piece in self._pieces.values() if piece.packed),
                              default=0), np.uint8)
        done, total = 0, self.nbytes
        with Reader(self._sources) as reader:
            for piece in self._pieces.values():
                file.seek(piece.offset)
                if piece.packed is None:
                    self._copy(file, piece.constant)
                else:
                    _pack(reader, *piece.packed, memory[:piece.nbytes])
                    file.write(memory[:piece.nbytes].data)
                done += piece.nbytes
                if on_progress is not None:
                    on_progress("pack", done, total)
        file.truncate(self.end)
        file.seek(self.end)

    def _copy(self, file: BinaryIO, constant: Constant) -> None:
        with memoryview(self._sources[constant.source]) as data:
            for start in range(0, constant.nbytes, PART):
                first = constant.offset + start
                file.write(data[first:first + min(PART, constant.nbytes - start)])

    def apply(self, work: CommandList) -> CommandList:
        """The command list with all of its constants in the file, which is its only source."""
        prepacks = sorted(map(self._prepack, work.prepacks), key=lambda p: p.constant.offset)
        return replace(self.with_tables(work), prepacks=tuple(prepacks),
                       states=tuple(map(self._state, work.states)))

    def with_tables(self, work: CommandList) -> CommandList:
        """The command list with its tables of rows in the file. That is enough for a further shape,
        whose weights and states are those of the first shape."""
        return replace(work, steps=tuple(map(self._step, work.steps)))

    def _prepack(self, record: Prepack) -> Prepack:
        if can_be_prepacked(record) and (piece := self._pieces.get(key_of(record))) is not None:
            return prepacked(record, piece.offset)
        return replace(record, constant=self._moved(record.constant))

    def _step(self, step: Step) -> Step:
        if not isinstance(step, HostCall) or step.table is None:
            return step
        return replace(step, table=replace(step.table, constant=self._moved(step.table.constant)))

    def _state(self, state: StateRecord) -> StateRecord:
        return replace(state, constant=self._moved(state.constant))

    def _moved(self, constant: Constant) -> Constant:
        if constant.zeros:
            return replace(constant, source=0, offset=0)
        return replace(constant, source=0, offset=self._pieces[_bytes_of(constant)].offset)


def _in_order_of_use(work: CommandList) -> list[Weight]:
    """The weights in the order in which a run reads them first; weights that it does not read come
    last."""
    return sorted(work.weight_table, key=lambda weight: weight.users[:1] or (len(work.steps),))


def packing_of(copy: StridedCopy | None) -> Packing | None:
    """How the host packs a weight; None when its memory has the file's bytes and no others."""
    return None if copy is None else Packing(copy.params, copy.itemsize, copy.rows)


def transfer_of(read: WeightRead, address: int, room: int) -> Transfer:
    """What brings a weight from the file to its memory of `room` bytes (FormatError: it needs
    more)."""
    return Transfer(read.source, read.offset, read.nbytes, address, packing_of(read.copy),
                    name=read.name, room=room)


def _pack(reader: Reader, work: CommandList, weight: Weight, memory: np.ndarray[Any, Any]) -> None:
    """Puts a weight as kernels read it into memory of as many bytes as its storage has."""
    memory[:] = 0
    reader.run([transfer_of(host_read(work, weight), memory.ctypes.data, memory.nbytes)])


def _bytes_of(constant: Constant) -> object:
    return constant.source, constant.offset, constant.nbytes
