"""Command lists by hand and by chance, and naive versions of what the plan computes."""

from __future__ import annotations

import itertools
import random

from support import graph_of_file

from vkrt.executable.records import ExecutionPlan
from vkrt.lowering.lowering import lower
from vkrt.plan.arena import Request
from vkrt.plan.commands import execution_plan
from vkrt.plan.kernels import Specialization
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.plan.plan import plan
from vkrt.work.command_list import CommandList
from vkrt.work.records import Dispatch, HostCall, Prepack
from vkrt.work.target import Target
from vkrt.work.tensor import Constant, Operand, Storage, StorageList


class Maker:
    """Writes a command list. Sizes are in bytes and multiples of 16."""

    def __init__(self):
        self.storages = StorageList()
        self.prepacks, self.steps, self.inputs, self.outputs = [], [], [], []
        self.file_end = 0

    @property
    def work(self) -> CommandList:
        """The command list so far."""
        return CommandList(tuple(self.storages.items), tuple(self.prepacks), tuple(self.steps),
                        tuple(self.inputs), tuple(self.outputs))

    def storage(self, role: str, nbytes: int, image: bool = False) -> Storage:
        return self.storages.new(role, nbytes, "float32", (1, 1, nbytes // 16) if image else None)

    def operand(self, storage: Storage, offset: int = 0, nbytes: int | None = None) -> Operand:
        count = (storage.nbytes - offset if nbytes is None else nbytes) // 4
        return Operand(storage, (count,), "float32", (0,), raw=True, offset=offset)

    def input(self, nbytes: int) -> Operand:
        self.inputs.append(self.operand(self.storage("input", nbytes)))
        return self.inputs[-1]

    def temporary(self, nbytes: int, image: bool = False) -> Operand:
        return self.operand(self.storage("activation", nbytes, image))

    def output(self, operand: Operand) -> None:
        self.outputs.append(operand)

    def step(self, writes, reads=()) -> None:
        self.steps.append(Dispatch(len(self.steps), "unary.texel.f32", (), tuple(writes),
                                   tuple(reads), 1, 1, (1, 1, 1)))

    def chain(self, *operands: Operand) -> None:
        """A step for each operand but the first, which reads the one before."""
        for before, after in itertools.pairwise(operands):
            self.step([after], [before])

    def host_call(self, writes, reads=()) -> None:
        self.steps.append(HostCall(len(self.steps), "aten::mean.out", (), tuple(reads),
                                   tuple(writes)))

    def weight(self, row_bytes: int, rows: int = 1, image: bool = False, gap: int = 0) -> Operand:
        total = row_bytes * rows
        self.file_end += gap
        target = self.operand(self.storage("weight", max(-(-total // 16) * 16, 16), image))
        constant = Constant(self.file_end, total, "float32")
        self.prepacks.append(Prepack(constant, target, "copy.buffer.f32", (), row_bytes, rows))
        self.file_end += total
        return target


def hazard(memory: MemoryPlan, before, after) -> bool:
    """Whether two steps touch a byte that one of them writes."""
    def touched(operands):
        return set().union(*(bytes_of(memory, operand) for operand in operands))

    return bool(touched(before.writes) & (touched(after.reads) | touched(after.writes))
                or touched(before.reads) & touched(after.writes))


def exact_requirements(storage: Storage) -> tuple[int, int, int]:
    """What a driver without any rounding would say."""
    return storage.nbytes, 16, 0xFF


def random_work(seed: int, steps: int = 40, images: bool = True, host_calls: bool = True,
                weights: int = 0) -> CommandList:
    """A program of random steps that read what was written, partly over offsets and in place."""
    chance = random.Random(seed)
    make = Maker()
    for _ in range(weights):
        make.weight(4 * chance.randint(1, 400), chance.randint(1, 30), gap=chance.choice([0, 4]))
    values = [make.input(16 * chance.randint(1, 20)) for _ in range(chance.randint(1, 3))]
    for _ in range(steps):
        if host_calls and chance.random() < 0.1:
            out = make.operand(make.storage("input", 16 * chance.randint(1, 20)))
            source = chance.choice(values)
            make.host_call([out], [] if source.storage.is_image else [source])
            values.append(out)
            continue
        reads = [values[-1 - min(int(chance.expovariate(0.4)), len(values) - 1)]
                 for _ in range(chance.randint(1, 3))]
        kind = chance.random()
        if kind < 0.2:
            writes = [reads[0]]
        elif kind < 0.35:
            storage = make.storage("activation", 16 * chance.randint(2, 20))
            half = storage.nbytes // 32 * 16
            parts = [make.operand(storage, 0, half), make.operand(storage, half)]
            make.step([parts[0]], reads[:1])
            make.step([parts[1]], reads[1:] or reads[:1])
            values += parts
            continue
        else:
            writes = [make.temporary(16 * chance.randint(1, 20), images and chance.random() < 0.5)]
        make.step(writes, reads)
        values.append(writes[0])
    for operand in values[-2:]:
        if not operand.storage.is_image:
            make.output(operand)
    return make.work


def bytes_of(plan, operand: Operand) -> set[tuple[int, int]]:
    """The bytes of an operand, one by one (in units of 16): a slow, plain `operand_range`."""
    if operand.storage.id not in plan.places:
        return set()
    block, place = plan.places[operand.storage.id]
    start, length = (0, place.nbytes) if operand.storage.is_image else (operand.offset,
                                                                        operand.nbytes)
    return {(block, byte) for byte in range(place.offset + start,
                                            place.offset + start + length, 16)}


def chain(count: int, chance: random.Random, fan: int = 3) -> list[Request]:
    """Lifetimes of a network: each value reads a few recent ones; sizes of feature maps."""
    last = list(range(count))
    for step in range(count):
        for _ in range(chance.randint(1, fan)):
            used = max(0, step - 1 - int(chance.expovariate(1 / 3)))
            last[used] = max(last[used], step)
    sizes = [64, 1024, 50176, 100352, 200704, 401408]
    return [Request(chance.choice([*sizes, 64 * chance.randint(1, 2000)]), 64, step, last[step])
            for step in range(count)]


def residual(blocks: int, chance: random.Random) -> list[Request]:
    """Lifetimes of a residual network: expand, depthwise, project, add to the block's input."""
    requests, time, side, channels = [], 0, 112, 16
    requests.append(Request(side * side * channels * 4, 64, 0, 1))
    for _ in range(blocks):
        expand = chance.choice([3, 4, 6])
        trunk = side * side * channels * 4
        requests.append(Request(trunk * expand, 64, time + 1, time + 2))
        requests.append(Request(trunk * expand, 64, time + 2, time + 4))
        requests.append(Request(channels * expand * 4, 64, time + 3, time + 4))
        requests.append(Request(trunk, 64, time + 4, time + 5))
        requests.append(Request(trunk, 64, time + 5, time + 10))
        time += 5
        if side > 7 and chance.random() < 0.3:
            side, channels = side // 2, channels * 2
    return requests


def unet(depth: int) -> list[Request]:
    """Lifetimes of a U-net: the maps of the way down are kept for the way up."""
    requests, end = [], 4 * depth
    for level in range(depth):
        size = max((1 << 20) >> level, 64)
        requests.append(Request(size, 64, 2 * level, 2 * level + 1))
        requests.append(Request(size // 2, 64, 2 * level + 1, end - 2 * level))
    for level in reversed(range(depth)):
        size = max((1 << 20) >> level, 64)
        time = end - 2 * level - 1
        requests.append(Request(size, 64, time, time + 1))
        requests.append(Request(size * 2, 64, time + 1, time + 2))
    return requests


def transformer(layers: int, length: int = 64, width: int = 256) -> list[Request]:
    """Lifetimes of a transformer with caches as inputs: q, k, v, scores, context, MLP."""
    requests = [Request(length * width * 4, 64, 0, 12 * layers) for _ in range(2 * layers)]
    for layer in range(layers):
        t, row = 12 * layer + 1, length * width * 4
        scores = length * length * 8 * 4
        for nbytes, first, last in ((row, 0, 8), (row, 1, 4), (row, 2, 5), (row, 3, 5), (row, 3, 7),
                                    (scores, 5, 6), (scores, 6, 7), (row, 7, 8), (row, 8, 11),
                                    (row * 4, 9, 10), (row * 4, 10, 11), (row, 11, 12)):
            requests.append(Request(nbytes, 64, t + first, t + last))
    return requests


def greedy_by_size(requests: list[Request]) -> int:
    """Bytes of the arena when the largest are placed first, each as low as it goes.

    Of two of a size the one that lives longer comes first, as in the planner's own order: another
    choice among them is another heuristic, which may be better or worse by luck.
    """
    placed: list[tuple[int, Request]] = []
    top = 0
    for request in sorted(requests, key=lambda r: (-r.nbytes, r.first - r.last)):
        offset = 0
        for start, other in sorted(placed, key=lambda p: p[0]):
            if other.last < request.first or other.first > request.last:
                continue
            if offset + request.nbytes <= start:
                break
            offset = max(offset, -(-(start + other.nbytes) // request.alignment)
                         * request.alignment)
        placed.append((offset, request))
        top = max(top, offset + request.nbytes)
    return top


# Kinds of blocks of device memory that are allocated when every weight is packed
RUN_KINDS = ("pool", "state", "activation", "host")


def simulate(plan: MemoryPlan) -> list[tuple[str, int]]:
    """What a counting allocator sees: (event, device bytes allocated after it), in order.

    The checkpoints of a load are events too.
    """
    events: list[tuple[str, int]] = []
    used = 0

    def note(event: str, change: int = 0) -> None:
        nonlocal used
        used += change
        events.append((event, used))

    def allocate(kinds: tuple[str, ...]) -> None:
        for index, block in enumerate(plan.blocks):
            if block.kind in kinds:
                note(f"allocate {block.kind} block {index}", block.nbytes)

    written = plan.placements.storages("direct")
    direct = [index for index, block in enumerate(plan.blocks)
              if any(place.storage in written for place in block.places)]
    note("graph built")
    if plan.order == "eager":
        allocate(("weight",))
        allocate(RUN_KINDS)
    note("prepack start")
    if plan.order == "lazy":
        for index in direct:
            note(f"allocate weight block {index}", plan.blocks[index].nbytes)
    if plan.staging_bytes:
        note("allocate staging", plan.staging_bytes)
    for number, batch in enumerate(plan.batches):
        for index in batch.new_blocks:
            if index not in direct:
                note(f"allocate weight block {index}", plan.blocks[index].nbytes)
        note(f"pack batch {number}")
    if plan.staging_bytes:
        note("release staging", -plan.staging_bytes)
    note("after prepack")
    if plan.order == "lazy":
        allocate(RUN_KINDS)
    if plan.upload_bytes:
        note("allocate uploads", plan.upload_bytes)
    note("before execute")
    note("end of execute")
    return events


def execution_of(name: str, **target) -> ExecutionPlan:
    """The commands of a run of a program."""
    work = lower(graph_of_file(name), Target(**target))
    return execution_plan(work, plan(work), Specialization())
