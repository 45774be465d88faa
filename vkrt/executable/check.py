"""Whether an executable that comes from a file is sound.

What is checked is what the runtime goes by without looking again: numbers of storages, blocks and
kernels, and that nothing lies beyond what it is part of. What kernels compute with (push constants,
workgroups) is not checked here: that is what the file says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from vkrt.errors import FormatError, UnsupportedError
from vkrt.executable.executable import Executable
from vkrt.executable.formats import DESCRIPTOR_TYPES, IMAGE_TYPES, TEXEL_FORMATS
from vkrt.executable.memory import ARENA_KINDS, SLOTS, WEIGHT_KINDS, Block
from vkrt.executable.records import (
    STAGING,
    BarrierCommand,
    Command,
    CopyCommand,
    DispatchCommand,
    ExecutionPlan,
    HostArray,
    HostKernel,
    Kernel,
    Range,
)
from vkrt.executable.weights import StagedRead, StreamedWeight, WeightRead
from vkrt.shader import catalog
from vkrt.work.records import CHOICE, ReadArgument
from vkrt.work.tensor import DTYPES, ITEMSIZE, Storage

FORMATS = (0, *TEXEL_FORMATS.values())
# Kinds of blocks in which storages of a role lie
KINDS_OF = {"weight": WEIGHT_KINDS, "state": ("state",), "spill": ("spill",),
            "activation": ("activation", "host"), "input": ("activation", "host")}


def check(executable: Executable, sources: int, others: Sequence[ExecutionPlan] = ()) -> None:
    """Checks an executable.

    Args:
        sources: how many files there are.
        others: the commands at further shapes, over the same weights and states.

    Raises:
        FormatError: something in it does not fit something else.
    """
    _Check(executable, sources).run(others)


class _Check:
    """The check of one executable."""

    def __init__(self, executable: Executable, sources: int):
        self.executable = executable
        self.sources = sources
        self.storages = executable.execution.storages
        # The kind of block in which a storage lies, by its number
        self.placed: dict[int, str] = {}
        # By the names of shaders
        self.bindings: dict[str, list[tuple[int, int]]] = {}
        self.staging_bytes = 0

    def run(self, others: Sequence[ExecutionPlan]) -> None:
        weights = self.executable.weights
        self._storages()
        self._places(weights.blocks, WEIGHT_KINDS)
        self._places(self.executable.states.blocks, ("state",))
        self._weights()
        self._states()
        self.staging_bytes = 0
        stays = {number: (kind, self.storages[number]) for number, kind in self.placed.items()}
        self._execution(self.executable.execution)
        for execution in others:
            self.storages = execution.storages
            self._storages()
            for number, (_, storage) in stays.items():
                expect(self.storages[number:number + 1] == (storage,), storage,
                       "the storage of a weight or state at every shape")
            self.placed = {number: kind for number, (kind, _) in stays.items()}
            self._execution(execution)

    def _execution(self, execution: ExecutionPlan) -> None:
        """The commands at one shape, and the memory of its activations."""
        self._kernels(execution.kernels)
        self._places(execution.blocks, ARENA_KINDS)
        reloads = self.executable.weights.reloads
        if reloads is not None:
            expect(len(reloads.needed) == len(execution.submissions), reloads.needed,
                   f"a number for each of {len(execution.submissions)} submissions")
        for submission in execution.submissions:
            self._commands(submission.commands, execution.kernels)
            if submission.host is not None:
                self._host(submission.host)
        for array in (*execution.inputs, *execution.outputs):
            if array is not None:
                self._array(array)

    def _kernels(self, kernels: Sequence[Kernel]) -> None:
        for kernel in kernels:
            expect(all(0 <= number < 1 << 32 and is_word(value)
                       for number, value in kernel.constants), kernel, "words of 32 bits")

    def _storages(self) -> None:
        for number, storage in enumerate(self.storages):
            self._storage(number, storage)

    def _storage(self, number: int, storage: Storage) -> None:
        expect(storage.id == number and storage.role in KINDS_OF and storage.dtype in DTYPES
               and storage.nbytes > 0, storage, "a storage of this number")
        expect(storage.extents is None or min(storage.extents) > 0, storage, "an image of texels")

    def _places(self, blocks: Sequence[Block], kinds: Sequence[str]) -> None:
        """Each storage lies in one block of a kind that it may lie in."""
        for block in blocks:
            expect(block.kind in kinds and 0 < block.nbytes < 1 << 63
                   and block.alignment > 0 and not block.alignment & block.alignment - 1
                   and 0 < block.type_bits < 1 << 32, block, f"a block of {' or '.join(kinds)}")
            for place in block.places:
                expect(0 <= place.storage < len(self.storages)
                       and place.storage not in self.placed, place,
                       "the place of a storage that has no other")
                storage = self.storages[place.storage]
                least = 1 if storage.is_image else storage.nbytes
                expect(place.offset >= 0 and place.end <= block.nbytes and place.nbytes >= least,
                       place,
                       f"a place of {storage.nbytes:,} bytes in a block of {block.nbytes:,}")
                expect(block.kind in KINDS_OF[storage.role], place,
                       f"a block of {storage.role} memory")
                self.placed[place.storage] = block.kind

    # Weights

    def _weights(self) -> None:
        weights = self.executable.weights
        expect(len(weights.weights) == len(weights.contents), weights.contents,
               "one content for each weight")
        for number in weights.weights:
            self._weight(number)
        for read in weights.mapped:
            self._read(read)
            expect(read.storage not in self.placed and read.copy is None, read,
                   "a weight that has no other memory")
            self.placed[read.storage] = "weight"
        for read in weights.written:
            self._read(read)
            self._has_memory(read.storage)
        prepack = weights.prepack
        self._kernels(prepack.kernels)
        self.staging_bytes = prepack.staging_bytes
        expect((prepack.staging_bytes > 0) == bool(prepack.batches), prepack.staging_bytes,
               "bytes of staging where something passes it")
        for batch in prepack.batches:
            for index in batch.blocks:
                expect(0 <= index < len(weights.blocks), index, "the number of a block of weights")
            for staged in batch.reads:
                self._staged(staged, prepack.staging_bytes)
            self._commands(batch.commands, prepack.kernels)
        expect(weights.upload_bytes >= 0, weights.upload_bytes, "bytes")
        for streamed in weights.streamed:
            self._streamed(streamed, weights.upload_bytes // SLOTS)
        self._reloads()

    def _weight(self, number: int) -> Storage:
        expect(0 <= number < len(self.storages) and self.storages[number].role == "weight", number,
               "the number of a weight's storage")
        return self.storages[number]

    def _in_file(self, read: WeightRead | StagedRead) -> None:
        expect(0 <= read.source < self.sources and 0 <= read.offset < 1 << 62
               and 0 <= read.nbytes < 1 << 62, read, f"a part of one of {self.sources} files")

    def _read(self, read: WeightRead) -> None:
        """A weight that is read whole. Where a walk packs it, that is checked when it is made."""
        storage = self._weight(read.storage)
        self._in_file(read)
        expect(not storage.is_image and read.tail >= 0
               and (read.copy is not None or read.nbytes + read.tail <= storage.nbytes), read,
               f"a buffer of its bytes, not of {storage.nbytes:,}")

    def _staged(self, read: StagedRead, staging_bytes: int) -> None:
        self._in_file(read)
        expect(read.staging_offset >= 0 and read.zeros >= 0
               and read.staging_offset + read.nbytes + read.zeros <= staging_bytes, read,
               f"a part of {staging_bytes:,} bytes of staging")

    def _streamed(self, streamed: StreamedWeight, slot_bytes: int) -> None:
        read = streamed.read
        self._read(read)
        expect(self.placed.get(read.storage) == "pool", read, "a weight with a place in the pool")
        expect(bool(streamed.pieces) == bool(slot_bytes), streamed, "pieces where there is staging")
        nbytes = self.storages[read.storage].nbytes
        for piece in streamed.pieces:
            expect(min(piece.offset, piece.nbytes, piece.target, piece.first_row, piece.rows) >= 0
                   and (read.copy is not None or piece.nbytes <= piece.target_bytes)
                   and 0 < piece.target_bytes <= min(slot_bytes, nbytes - piece.target), piece,
                   f"a part of the weight, {slot_bytes:,} bytes at most")

    def _reloads(self) -> None:
        """Every streamed weight comes once in a run, and submissions wait for some of them."""
        weights, plan = self.executable.weights, self.executable.weights.reloads
        submissions = len(self.executable.execution.submissions)
        if plan is None:
            expect(not weights.streamed, len(weights.streamed), "no streamed weight")
            return
        count = len(weights.streamed)
        expect(len(plan.reloads) == count > 0 and len(plan.needed) == submissions, plan.needed,
               f"{count} reloads and {submissions} submissions")
        expect(list(plan.needed) == sorted(plan.needed) and plan.needed[0] >= 0
               and plan.needed[-1] == count, plan.needed, f"numbers that grow to {count}")
        for reload in plan.reloads:
            expect(reload.ahead in (0, 1) and reload.ahead - 1 <= reload.after < submissions,
                   reload, "a moment of this run or the last one")

    # States, and what the host has

    def _states(self) -> None:
        for state in self.executable.states.tensors:
            self._range(state.range)
            expect(self.storages[state.range.storage].role == "state", state, "memory of states")
            expect(state.dtype in ITEMSIZE and min((0, *state.sizes)) == 0 and state.nbytes
                   == math.prod(state.sizes) * ITEMSIZE[state.dtype] <= state.range.nbytes
                   and 0 <= state.source < self.sources and state.offset >= 0, state,
                   "a tensor with its bytes")

    def _array(self, array: HostArray) -> None:
        self._range(array.range)
        expect(not self.storages[array.range.storage].is_image and array.dtype in DTYPES
               and min((0, *array.sizes)) == 0 and array.nbytes <= array.range.nbytes, array,
               "an array within its bytes of a buffer")

    def _host(self, host: HostKernel) -> None:
        for array in (*host.reads, *host.writes):
            self._array(array)
        if host.name == CHOICE:
            for pair in host.args:
                expect(isinstance(pair, tuple) and [*map(type, pair)] == [ReadArgument, bool], pair,
                       "an array and what it has to be")
        for number in _read_by(host.args):
            expect(0 <= number < len(host.reads), number, f"one of {len(host.reads)} arrays")

    # Commands

    def _range(self, part: Range) -> None:
        """Bytes of a storage that has memory, or of the staging buffer."""
        if part.storage == STAGING and self.staging_bytes:
            nbytes = self.staging_bytes
        else:
            expect(0 <= part.storage < len(self.storages), part, "bytes of a storage")
            self._has_memory(part.storage)
            nbytes = self.storages[part.storage].nbytes
        # There are many ranges: what is expected becomes words where one is wrong.
        if not (part.offset >= 0 and 0 <= part.nbytes <= nbytes - part.offset):
            raise unexpected(part, f"a part of {nbytes:,} bytes")

    def _has_memory(self, number: int) -> None:
        storage = self.storages[number]
        kinds = KINDS_OF[storage.role]
        if self.placed.get(number) not in kinds:
            raise unexpected(storage, f"memory of kind {' or '.join(kinds)}")

    def _is_image(self, number: int) -> bool:
        return number != STAGING and self.storages[number].is_image

    def _commands(self, commands: Iterable[Command], kernels: Sequence[Kernel]) -> None:
        for command in commands:
            if isinstance(command, DispatchCommand):
                self._dispatch(command, kernels)
            elif isinstance(command, CopyCommand):
                for part in (command.source, command.target):
                    self._range(part)
                    expect(not self._is_image(part.storage), part, "bytes of a buffer")
                expect(0 < command.source.nbytes == command.target.nbytes, command, "equal bytes")
            else:
                self._barrier(command)

    def _barrier(self, barrier: BarrierCommand) -> None:
        expect(all(map(is_word, (barrier.source_stages, barrier.source_access, barrier.stages,
                                 barrier.access))), barrier, "flags of 32 bits")
        for number in barrier.images:
            expect(0 <= number < len(self.storages) and self._is_image(number), number,
                   "the number of an image")
            self._has_memory(number)

    def _dispatch(self, command: DispatchCommand, kernels: Sequence[Kernel]) -> None:
        """Its shader exists, and has something of its kind at each binding."""
        if not 0 <= command.kernel < len(kernels):
            raise unexpected(command.kernel, f"one of {len(kernels)} kernels")
        expect(all(map(is_word, command.push_constants)) and min(command.groups) > 0
               and all(map(is_word, command.groups)), command, "words of 32 bits and workgroups")
        name = kernels[command.kernel].shader
        expected = self._bindings_of(name)
        found = [(binding.number, binding.type) for binding in command.bindings]
        if found != expected:
            raise unexpected(found, f"the bindings {expected} of {name}")
        for binding in command.bindings:
            self._range(binding.range)
            if not (self._is_image(binding.range.storage) == (binding.type in IMAGE_TYPES)
                    and binding.range.nbytes > 0 and binding.format in FORMATS):
                raise unexpected(binding, f"what {name} has there")

    def _bindings_of(self, name: str) -> list[tuple[int, int]]:
        """(number, descriptor type) of the bindings of a shader."""
        if name not in self.bindings:
            try:
                shader = catalog().get(name)
            except UnsupportedError as error:
                raise FormatError(str(error)) from error
            self.bindings[name] = [(binding.binding, DESCRIPTOR_TYPES[binding.type])
                                   for binding in shader.bindings]
        return self.bindings[name]


def _read_by(args: Iterable[object]) -> list[int]:
    """Numbers of the arrays that arguments stand for."""
    found = []
    for value in args:
        if isinstance(value, ReadArgument):
            found.append(value.read)
        elif isinstance(value, tuple):
            found += _read_by(value)
    return found


def is_word(value: int) -> bool:
    """Whether a number is one of 32 bits, with a sign or without."""
    return -1 << 31 <= value < 1 << 32


def expect(holds: bool, found: object, expected: str) -> None:
    """Raises FormatError where something does not hold."""
    if not holds:
        raise unexpected(found, expected)


def unexpected(found: object, expected: str) -> FormatError:
    """The error for something that does not hold."""
    return FormatError(f"{str(found)[:200]}, expected {expected}")
