"""Spilling with exact sizes, and what every step of a command list then reads."""

from plan_samples import bytes_of, exact_requirements

from vkrt.plan.plan import plan
from vkrt.plan.stream.spill import Move, SpillReport, spill
from vkrt.work.command_list import CommandList


def run_spill(work, limit, unified=False, **options):
    return spill(work, exact_requirements, limit, unified, **options)


def moved_bytes(report: SpillReport) -> int:
    """Bytes that one run copies to the host's memory and back."""
    return sum(spill.nbytes * (1 + spill.copied) for spill in report.spills)


def placed(work: CommandList):
    """The memory plan, host copies in the host's memory."""
    return plan(work, exact_requirements, unified=False)


def moves(work: CommandList) -> list[tuple[int, str]]:
    """(place among the steps, kind) of the copies."""
    return [(index, step.kind) for index, step in enumerate(work.steps) if isinstance(step, Move)]


def interpret(work: CommandList) -> dict[int, list]:
    """What every step that is no copy reads, by its node, the memory being that of the plan. A
    byte's value is who wrote it, from what, and which of its bytes it is."""
    result = placed(work)
    memory: dict[tuple[int, int], object] = {}
    seen: dict[int, list] = {}

    def cells(operand):
        return sorted(bytes_of(result, operand))

    for number, operand in enumerate(work.inputs):
        for place, cell in enumerate(cells(operand)):
            memory[cell] = ("input", number, place)
    for step in work.steps:
        values = [[memory.get(cell) for cell in cells(operand)] for operand in step.reads]
        if isinstance(step, Move):
            source, = step.reads
            target, = step.writes
            assert source.nbytes == target.nbytes == source.storage.nbytes == target.storage.nbytes
            memory.update(zip(cells(target), values[0]))
            continue
        assert step.node not in seen
        seen[step.node] = values
        for number, operand in enumerate(step.writes):
            for place, cell in enumerate(cells(operand)):
                memory[cell] = (step.node, number, place)
    seen[-1] = [[memory.get(cell) for cell in cells(operand)] for operand in work.outputs]
    return seen
