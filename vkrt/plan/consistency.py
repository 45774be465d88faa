"""Whether a plan that comes from a file fits the work list beside it.

What is checked is what the runtime goes by without looking again: numbers of storages, weights,
blocks and steps, and that nothing lies beyond what it is part of. What kernels compute with
(parameters, workgroups) is not checked here: that is what the file says.
"""

from __future__ import annotations

from collections.abc import Iterator

from vkrt.errors import FormatError
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.plan.stream.records import Reload
from vkrt.shader import catalog
from vkrt.work.records import Dispatch, HostCall, WorkList
from vkrt.work.tensor import Operand, Storage

BUFFER_BINDINGS = ("storage_buffer", "uniform_texel_buffer")
# Kinds of blocks in which storages of a role lie
KINDS_OF = {"weight": ("weight", "pool"), "state": ("state",), "spill": ("spill",),
            "activation": ("activation", "host"), "input": ("activation", "host")}


def check(work: WorkList, plan: MemoryPlan) -> None:
    """Checks a work list and its plan; FormatError where they contradict each other."""
    _check_shaders(work)
    for operand in _of_the_host(work):
        if not operand.raw or operand.storage.is_image:
            raise FormatError(f"{operand}: the host reads and writes raw operands of buffers")
    _check_places(work, plan)
    _check_batches(work, plan)
    _check_sections(work, plan)
    if plan.stream is not None:
        _check_stream(work, plan)


def _check_shaders(work: WorkList) -> None:
    """Every shader exists, and has an operand of its kind for each binding."""
    shaders = catalog()
    for step in work.steps:
        if not isinstance(step, Dispatch):
            continue
        operands = (*step.writes, *step.reads)
        try:
            bindings = shaders.get(step.shader).bindings
        except KeyError as error:
            raise FormatError(f"there is no shader {step.shader!r}") from error
        for binding in bindings:
            number = binding.binding
            if number >= len(operands) or (operands[number].storage.is_image
                                           != (binding.type not in BUFFER_BINDINGS)):
                raise FormatError(f"{step.shader}: binding {number} has no operand of its kind")


def _of_the_host(work: WorkList) -> Iterator[Operand]:
    """The operands that the host reads or writes."""
    yield from (operand for operand in work.inputs if operand is not None)
    yield from (value for value in work.outputs if isinstance(value, Operand))
    yield from (state.operand for state in work.states)
    for step in work.steps:
        if isinstance(step, HostCall):
            yield from (*step.reads, *step.writes)


def _used(work: WorkList) -> dict[int, Storage]:
    """The storages of operands, by id."""
    return {operand.storage.id: operand.storage
            for operands in (_of_the_host(work), *((*step.writes, *step.reads)
                                                   for step in work.steps))
            for operand in operands}


def _check_places(work: WorkList, plan: MemoryPlan) -> None:
    """Each storage lies in one block, and whatever is used has memory."""
    placed: dict[int, str] = {}
    for block in plan.blocks:
        for place in block.places:
            if place.storage >= len(work.storages) or place.storage in placed:
                raise FormatError(f"{place} is of no storage, or of one that has a place")
            storage = work.storages[place.storage]
            if place.end > block.nbytes or (place.nbytes < storage.nbytes
                                            and not storage.is_image):
                raise FormatError(f"{storage} reaches beyond its block")
            if block.kind not in KINDS_OF[storage.role]:
                raise FormatError(f"{storage} lies in a block of kind {block.kind!r}")
            placed[place.storage] = block.kind
    made = {weight.storage for weight in work.catalog}
    made |= {state.operand.storage.id for state in work.states}
    for number, kind in placed.items():
        if kind in ("weight", "pool", "state") and number not in made:
            raise FormatError(f"{work.storages[number]} is of no weight or state, and has a place")
    used = _used(work)
    for weight, placement in zip(work.catalog, plan.placements.each):
        storage = used[weight.storage] = work.storages[weight.storage]
        if storage.role != "weight":
            raise FormatError(f"{storage} is no weight, and has a constant")
        if placement.kind == "map":
            if weight.storage in placed:
                raise FormatError(f"{storage} is mapped, and lies in a block")
            placed[weight.storage] = "weight"
    for number, storage in used.items():
        if placed.get(number) not in KINDS_OF[storage.role]:
            raise FormatError(f"{storage} is used, and has no memory of its kind")


def _check_batches(work: WorkList, plan: MemoryPlan) -> None:
    """Slices are parts of their constants, and of the staging buffer."""
    for batch in plan.batches:
        if any(index >= len(plan.blocks) for index in batch.new_blocks):
            raise FormatError(f"{batch.new_blocks} are more blocks than there are")
        for item in batch.items:
            if item.prepack >= len(work.prepacks):
                raise FormatError(f"{item} is of no prepack")
            record = work.prepacks[item.prepack]
            start = item.file_offset - record.constant.offset
            if (item.first_row + item.rows > record.rows or start < 0
                    or start + item.nbytes > record.constant.nbytes
                    or item.staging_offset + item.nbytes > plan.staging_bytes):
                raise FormatError(f"{item} reaches beyond its constant or the staging buffer")


def _check_sections(work: WorkList, plan: MemoryPlan) -> None:
    """The sections are all steps in order, and a host call ends its section."""
    end = 0
    for first, last in plan.sections:
        if not first == end < last <= len(work.steps):
            raise FormatError(f"sections {plan.sections} leave steps out")
        if any(isinstance(step, HostCall) for step in work.steps[first:last - 1]):
            raise FormatError(f"section {first} to {last} goes on behind a host call")
        end = last
    if end != len(work.steps):
        raise FormatError(f"the sections end at {end} of {len(work.steps)} steps")


def _check_stream(work: WorkList, plan: MemoryPlan) -> None:
    """Every streamed weight has a place and comes once in a run."""
    stream = plan.stream
    assert stream is not None
    streamed = {index for index, placement in enumerate(plan.placements.each)
                if placement.kind == "stream"}
    if tuple((section.first, section.end) for section in stream.sections) != plan.sections:
        raise FormatError("the sections of streamed weights are others than the plan's")
    reloaded = [record.weight for record in stream.records if isinstance(record, Reload)]
    if not (sorted(streamed) == sorted(stream.offsets) == sorted(stream.streamed)
            == sorted(reloaded)):
        raise FormatError("the streamed weights are not those that are placed so")
    for section in stream.sections:
        if not streamed.issuperset(section.waits):
            raise FormatError(f"{section} waits for a weight that is not streamed")
    for record in stream.records:
        last = record.after if isinstance(record, Reload) else record.section
        if record.weight not in streamed or last >= len(stream.sections):
            raise FormatError(f"{record} is of no streamed weight or section")
