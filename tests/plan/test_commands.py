"""The commands of runs and of prepack, made without a driver."""

import pytest
from plan_samples import exact_requirements
from support import STORAGES, graph_of_file

from vkrt.executable.flags import HOST_STAGE
from vkrt.executable.records import (
    STAGING,
    BarrierCommand,
    CopyCommand,
    DispatchCommand,
    ExecutionPlan,
)
from vkrt.lowering.lowering import lower
from vkrt.lowering.prepacking import weight_plan
from vkrt.plan.barriers import barriers
from vkrt.plan.commands import execution_plan, profiled_plan
from vkrt.plan.kernels import Specialization
from vkrt.plan.plan import plan
from vkrt.work.records import Dispatch, HostCall
from vkrt.work.target import Target

NAMES = ("mlp", "lstm_cell", "branches", "places", "quantized_mlp")
FEW = Specialization()


@pytest.fixture(params=[(name, storage) for name in NAMES for storage in STORAGES], ids="-".join)
def planned(request):
    name, storage = request.param
    work = lower(graph_of_file(name), Target(storage=storage, max_texels=1 << 26))
    return work, plan(work, exact_requirements)


def commands_of(made: ExecutionPlan) -> list:
    return [command for submission in made.submissions for command in submission.commands]


def ranges_of(command) -> list:
    if isinstance(command, DispatchCommand):
        return [binding.range for binding in command.bindings]
    return [command.source, command.target] if isinstance(command, CopyCommand) else []


def check_ranges(commands, storages, staging_bytes: int = 0) -> None:
    for command in commands:
        for part in ranges_of(command):
            most = staging_bytes if part.storage == STAGING else storages[part.storage].nbytes
            assert part.offset >= 0 and 0 < part.nbytes <= most - part.offset


def test_a_run(planned):
    work, memory = planned
    made = execution_plan(work, memory, FEW)
    assert made == execution_plan(work, memory, FEW)
    check_ranges(commands_of(made), made.storages)
    # Every dispatch, every kernel of the host, in order, and the barriers that they need
    dispatches = [c for c in commands_of(made) if isinstance(c, DispatchCommand)]
    steps = [step for step in work.steps if isinstance(step, Dispatch)]
    assert [(made.kernels[c.kernel].shader, c.push_constants, c.groups) for c in dispatches] == [
        (step.shader, step.params, step.groups) for step in steps]
    assert len(set(made.kernels)) == len(made.kernels)
    assert {c.kernel for c in dispatches} == set(range(len(made.kernels)))
    hosts = [s.host.name for s in made.submissions if s.host is not None]
    assert hosts == [step.kernel for step in work.steps if isinstance(step, HostCall)]
    inner = 0
    for submission in made.submissions:
        *others, last = submission.commands
        assert isinstance(last, BarrierCommand) and last.stages == HOST_STAGE
        assert not others or isinstance(others[0], BarrierCommand)
        inner += sum(isinstance(command, BarrierCommand) for command in others[1:])
    firsts = {first for first, _ in memory.submissions}
    needed = barriers(work, memory)
    assert inner == sum(needs for number, needs in enumerate(needed) if number not in firsts)


def test_a_run_in_which_every_step_is_timed(planned):
    work, memory = planned
    made = execution_plan(work, memory, FEW)
    for together in (True, False):
        timed = profiled_plan(work, memory, FEW, together)
        assert timed.kernels == made.kernels
        assert [c for c in commands_of(timed) if isinstance(c, DispatchCommand)] == [
            c for c in commands_of(made) if isinstance(c, DispatchCommand)]
        assert len(timed.submissions) == (len(memory.submissions) if together else len(work.steps))
        assert sum(submission.steps for submission in timed.submissions) == len(work.steps)
        for submission in timed.submissions:
            # A barrier before each and behind the last
            kinds = [type(command) is BarrierCommand for command in submission.commands]
            assert False not in kinds or kinds == [True, False] * (len(kinds) // 2) + [True]


def test_weights(planned):
    work, memory = planned
    made = weight_plan(work, memory)
    assert made.weights == tuple(weight.storage for weight in work.weight_table)
    staging = memory.staging_bytes
    for batch in made.prepack.batches:
        check_ranges(batch.commands, work.storages, staging)
        assert all(read.staging_offset + read.nbytes + read.zeros <= staging
                   for read in batch.reads)
    # All that is not mapped or written by the host is read once.
    assert not made.mapped and not made.written and not made.streamed
    read = sorted((read.source, read.offset, read.nbytes) for batch in made.prepack.batches
                  for read in batch.reads)
    assert all(a[0] < b[0] or a[1] + a[2] <= b[1] for a, b in zip(read, read[1:]))
    assert sum(nbytes for *_, nbytes in read) == sum(p.constant.nbytes for p in work.prepacks)


@pytest.mark.parametrize(("sizes", "few", "pushed"), [
    ("few", {}, True), ("few", {"matmul": ["no such"]}, True), ("none", {}, True),
    ("all", {}, False)])
def test_what_is_compiled_in(sizes, few, pushed):
    work = lower(graph_of_file("mlp"), Target(max_texels=1 << 26))
    memory = plan(work, exact_requirements)
    made = execution_plan(work, memory, Specialization(sizes, few))
    least = execution_plan(work, memory, Specialization("none"))
    assert (made.kernels == least.kernels) == pushed
    assert sum(len(kernel.constants) for kernel in made.kernels) >= sum(
        len(kernel.constants) for kernel in least.kernels)
