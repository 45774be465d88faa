"""From a command list and its memory plan to the commands that the runtime records.

    execution_plan           what runs
    profiled_plan            the same with every step alone, for its times
    state_plan               what is kept from run to run
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from vkrt.executable import flags
from vkrt.executable.formats import DESCRIPTOR_TYPES, TEXEL_FORMATS
from vkrt.executable.memory import ARENA_KINDS
from vkrt.executable.records import (
    BarrierCommand,
    Binding,
    Command,
    CopyCommand,
    DispatchCommand,
    ExecutionPlan,
    HostArray,
    HostKernel,
    Kernel,
    Range,
    RowTable,
    SubmissionRecord,
)
from vkrt.executable.states import StatePlan, StateTensor
from vkrt.plan.barriers import barriers, transitions
from vkrt.plan.kernels import KernelChooser, Specialization
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.shader import shader_library
from vkrt.work.command_list import CommandList
from vkrt.work.records import Dispatch, HostCall, Move, Step
from vkrt.work.tensor import MIN_BYTES, Operand

# What the host, prepack, earlier submissions and earlier runs may have done
BEFORE = (flags.HOST_STAGE | flags.COMPUTE_STAGE | flags.TRANSFER_STAGE,
          flags.HOST_WRITE | flags.SHADER_WRITE | flags.TRANSFER_WRITE)

# Once the fence is signaled, the host sees everything before this barrier.
TO_HOST = BarrierCommand(
    flags.COMPUTE_STAGE | flags.TRANSFER_STAGE, flags.SHADER_WRITE | flags.TRANSFER_WRITE,
    flags.HOST_STAGE, flags.HOST_READ)

# Words of push constants (shaders/common/params.glsl); later parameters are always compiled in.
PUSHED = 32


def execution_plan(work: CommandList, plan: MemoryPlan,
                   specialization: Specialization) -> ExecutionPlan:
    """What runs a command list in the memory of a plan."""
    return _Commands(work, plan, specialization, False).plan(plan.submissions)


def profiled_plan(work: CommandList, plan: MemoryPlan, specialization: Specialization,
                  together: bool) -> ExecutionPlan:
    """The same with a barrier before every step. `together`: whether steps are submitted as in any
    run; else each is a submission."""
    bounds = plan.submissions if together else [(i, i + 1) for i in range(len(work.steps))]
    return _Commands(work, plan, specialization, True).plan(bounds)


class _Commands:
    """Makes the commands of a command list; `alone`: with a barrier before every step."""

    def __init__(self, work: CommandList, plan: MemoryPlan, specialization: Specialization,
                 alone: bool):
        self.work = work
        self.memory = plan
        self.alone = alone
        self.barriers = barriers(work, plan)
        self.transitions = transitions(work, plan, self.barriers)
        self.chooser = KernelChooser(work, specialization)
        self.kernels: dict[Kernel, int] = {}
        self.ranges: dict[tuple[int, int, int], Range] = {}
        self.bindings: dict[tuple[int, int, Range, int, bool], Binding] = {}

    def plan(self, bounds: Iterable[tuple[int, int]]) -> ExecutionPlan:
        submissions = tuple(self._submission(first, end) for first, end in bounds)
        return ExecutionPlan(
            self.work.storages,
            tuple(block for block in self.memory.blocks if block.kind in ARENA_KINDS),
            tuple(self.kernels), submissions,
            inputs=tuple(self._array(value) for value in self.work.inputs),
            outputs=tuple(self._array(value) for value in self.work.outputs),
            skips_branches=not any(isinstance(step, Move) for step in self.work.steps))

    def _submission(self, first: int, end: int) -> SubmissionRecord:
        steps = self.work.steps[first:end]
        # A submission has no steps where its weights are only read later at these sizes.
        host = (self._host(steps[-1]) if steps and isinstance(steps[-1], HostCall) else None)
        return SubmissionRecord(tuple(self._commands(first, steps)), host)

    def _commands(self, first: int, steps: Sequence[Step]) -> Iterator[Command]:
        stages, reads, writes = _scope(steps)
        if stages:
            # A wait for a fence or a semaphore on the host's side makes writes available, and only
            # a barrier makes them visible to the submission's own stages.
            yield BarrierCommand(*BEFORE, stages, reads | writes, self.transitions.get(first, ()))
        for number, step in enumerate(steps, first):
            if isinstance(step, HostCall):
                continue
            # The first step has the submission's own barrier, with its images.
            if number > first and (self.alone or self.barriers[number]
                                   or number in self.transitions):
                yield BarrierCommand(stages, writes, stages, reads | writes,
                                     self.transitions.get(number, ()))
            yield self._dispatch(step) if isinstance(step, Dispatch) else self._copy(step)
        yield TO_HOST

    def _dispatch(self, step: Dispatch) -> DispatchCommand:
        kernel = self.kernels.setdefault(self.chooser.kernel(step), len(self.kernels))
        operands = (*step.writes, *step.reads)
        bindings = tuple([
            self._binding(binding.binding, binding.type, operands[binding.binding],
                          binding.binding < len(step.writes))
            for binding in shader_library().get(step.shader).bindings])
        return DispatchCommand(kernel, bindings, step.params[:PUSHED], step.groups)

    def _binding(self, number: int, kind: str, operand: Operand, is_written: bool) -> Binding:
        is_view = kind == "uniform_texel_buffer"
        # Several dispatches may have the same binding: one record serves them all.
        key = (number, DESCRIPTOR_TYPES[kind], self._range(operand),
               TEXEL_FORMATS[operand.dtype] if is_view else 0, is_written)
        return self.bindings.get(key) or self.bindings.setdefault(key, Binding(*key))

    def _range(self, operand: Operand) -> Range:
        """The bytes of an operand. Descriptors cannot be empty: an operand without elements, of
        which nothing is read, gets the first bytes of its storage, which is never smaller."""
        nbytes = operand.nbytes
        key = (operand.storage.id, operand.offset if nbytes else 0, nbytes or MIN_BYTES)
        return self.ranges.get(key) or self.ranges.setdefault(key, Range(*key))

    def _copy(self, step: Move) -> CopyCommand:
        return CopyCommand(self._range(step.reads[0]), self._range(step.writes[0]))

    def _host(self, call: HostCall) -> HostKernel:
        reads, writes = (tuple(array_of(operand) for operand in operands)
                         for operands in (call.reads, call.writes))
        table = None
        if call.table is not None:
            constant = call.table.constant
            table = RowTable(constant.source, constant.offset, call.table.row_bytes,
                             call.table.rows, call.table.name)
        return HostKernel(call.kernel, call.args, reads, writes, table)

    def _array(self, value: Any) -> HostArray | None:
        return array_of(value) if isinstance(value, Operand) else None


def array_of(operand: Operand) -> HostArray:
    """A raw operand as the host reads and writes it."""
    return HostArray(range_of(operand), operand.sizes, operand.dtype)


def range_of(operand: Operand) -> Range:
    return Range(operand.storage.id, operand.offset, operand.nbytes)


def _scope(steps: Sequence[Step]) -> tuple[int, int, int]:
    """What steps do on the device: (stages, accesses that read, accesses that write)."""
    stages = reads = writes = 0
    if any(isinstance(step, Dispatch) for step in steps):
        stages, reads, writes = flags.COMPUTE_STAGE, flags.SHADER_READ, flags.SHADER_WRITE
    if any(isinstance(step, Move) for step in steps):
        stages |= flags.TRANSFER_STAGE
        reads |= flags.TRANSFER_READ
        writes |= flags.TRANSFER_WRITE
    return stages, reads, writes


def state_plan(work: CommandList, plan: MemoryPlan) -> StatePlan:
    tensors = tuple(StateTensor(
        state.name, state.operand.sizes, state.operand.dtype, range_of(state.operand),
        state.constant.nbytes, state.constant.source, state.constant.offset, state.constant.zeros,
        state.places) for state in work.states)
    return StatePlan(tensors, tuple(b for b in plan.blocks if b.kind == "state"))
