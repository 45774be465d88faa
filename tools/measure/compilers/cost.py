"""A model of the time that a GPU takes for a program, out of the code that its compiler makes.

Compilers' own estimates are of no use for that: they count a loop once, or ten times. Here each
loop counts as often as it really runs: `invocation.py` executes the shader's branches, and these
counts are laid over the loops of the assembly so that multiplications of floats and bytes agree.
Then

    seconds = max(arithmetic, memory, shared memory, latency) / clock, summed over dispatches
    arithmetic    = ceil(waves / SIMDs) * issue slots of a wave * lanes of a wave / lanes of a SIMD
    memory        = ceil(workgroups / cores) * invocations * bytes / bytes of a core and clock
    shared memory = the same with the workgroup's memory
    latency       = ceil(waves / (SIMDs * waves that fit)) *
                    (rounds of loops that load * clocks of a load + arithmetic of a wave)

The figures of the hardware (`HARDWARE`) are assumptions, from what is published. The model cannot
see which cache lines loads touch, DRAM, launches and barriers between dispatches (5 to 20 us each
on phones), what lanes beyond the first of a workgroup do otherwise, or other compilers than Mesa's.
Its times are too short, by 2 to 6 where they could be compared, and ratios within 1.5 say nothing.
On Adreno only arithmetic counts: how fast texels come is a guess there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from compilers.assembly import READERS, Code, Cost
from compilers.drivers import Capture
from compilers.invocation import Counts, Loop, counts
from compilers.statistics import Pipeline, digest_of, pipeline_of, pruned_code

_SUMMED = ("issue", "multiplies", "bytes", "shared")
# Choices of loops that are looked at, at most
_MOST_CHOICES = 20_000


@dataclass(frozen=True)
class Hardware:
    """What a device has."""

    cores: int  # with a memory of workgroups and a path to memory each
    simds: int  # of a core
    lanes: int  # of a SIMD unit
    ghz: float
    bytes: int = 64  # of memory that a core gets in a clock
    shared_bytes: int = 128  # of the workgroups' memory
    load_clocks: int = 300  # until a load is back
    wave: int = 0  # lanes of a wave; 0: as the driver says
    # Waves of a SIMD that fit, by the driver's occupancy; (): that is their number
    waves: tuple[tuple[int, int], ...] = ()


_INTEL = tuple((lanes, 7) for lanes in (8, 16, 32))
_V3D = dict(simds=4, lanes=4, bytes=16, shared_bytes=16, load_clocks=100, wave=16)
HARDWARE = {
    "adreno-630": Hardware(4, 1, 128, 0.71),
    "adreno-740": Hardware(12, 1, 128, 0.68),
    "radeon-polaris10": Hardware(36, 4, 16, 1.266, load_clocks=350),
    "radeon-navi21": Hardware(80, 2, 32, 2.25, load_clocks=350),
    "intel-skl": Hardware(3, 16, 4, 1.15, load_clocks=250, waves=_INTEL),
    "intel-tgl": Hardware(6, 16, 8, 1.35, load_clocks=250, waves=_INTEL),
    "intel-dg2": Hardware(32, 16, 8, 2.1, load_clocks=250, waves=_INTEL),
    # Workgroups share ordinary memory.
    "mali-g610": Hardware(4, 4, 16, 1.0, shared_bytes=64, load_clocks=250, wave=16,
                          waves=((2, 16), (1, 8))),
    "raspberry-pi-4": Hardware(2, ghz=0.5, **_V3D),
    "raspberry-pi-5": Hardware(3, ghz=0.8, **_V3D),
}


@dataclass(frozen=True)
class Dispatch:
    """A dispatch and its modelled time."""

    pipeline: Pipeline
    groups: tuple[int, int, int]  # workgroups
    bounds: dict[str, float]  # seconds of "arithmetic", "memory", "shared memory" and "latency"
    slots: float | None  # issue slots a multiplication of floats; None where there is none

    @property
    def bound(self) -> str:
        """What takes longest."""
        return max(self.bounds, key=lambda name: self.bounds[name])

    @property
    def seconds(self) -> float:
        return self.bounds[self.bound]


class _Kernel:
    """The code of a pipeline, and what it costs with the loops of a dispatch."""

    def __init__(self, code: Code):
        self._code = code
        self._loops = code.loops
        inside = [[j for j, (first, last) in enumerate(self._loops)
                   if j != i and first <= loop[0] and loop[1] <= last]
                  for i, loop in enumerate(self._loops)]
        self._parents = [max(around, key=lambda j: self._loops[j][0]) if around else None
                         for around in inside]

    @cached_property
    def _bodies(self) -> list[Cost]:
        """What a round of each loop costs without the loops in it; behind them what is in none."""
        owners = [len(self._loops)] * len(self._code.instructions)
        for i, (first, last) in enumerate(self._loops):
            for place in range(max(first, 0), min(last + 1, len(owners))):
                owners[place] = i
        bodies = [Cost() for _ in range(len(self._loops) + 1)]
        for owner, cost in zip(owners, self._code.instructions):
            body = bodies[owner]
            for name in _SUMMED:
                setattr(body, name, getattr(body, name) + getattr(cost, name))
            body.is_load |= cost.is_load
        return bodies

    def _sum(self, name: str, rounds: list[float]) -> float:
        """A figure of an invocation, whose loops run so often."""
        return sum(times * getattr(body, name) for times, body in zip([*rounds, 1], self._bodies))

    def total(self, ran: Counts) -> tuple[Cost, float]:
        """What an invocation costs, and in how many rounds of loops it waits for loads."""
        rounds = self._rounds(ran)
        return Cost(*(self._sum(name, rounds) for name in _SUMMED)), self._sum("is_load", rounds)

    def _rounds(self, ran: Counts) -> list[float]:
        """How often each of the assembly's loops runs.

        Its loops are those of the shader in the same order, without some that the compiler
        unrolled: those with which multiplications agree best. Where it has more, the shortest of
        them run once.
        """
        count = len(self._loops)
        chosen = sorted(range(len(ran.loops)), key=lambda i: -ran.loops[i].rounds)
        while count and math.comb(len(chosen), min(count, len(chosen))) > _MOST_CHOICES:
            chosen.pop()
        chosen.sort()
        by_length = sorted(range(count), key=lambda i: self._loops[i][1] - self._loops[i][0])
        matched = sorted(by_length[max(count - len(chosen), 0):])
        best, result = math.inf, [1.0] * count
        for some in combinations(chosen, len(matched)):
            source = dict(zip(matched, some))
            rounds: list[float] = []
            for i, parent in enumerate(self._parents):
                around = 1.0 if parent is None else rounds[parent]
                rounds.append(ran.loops[source[i]].rounds if i in source else around)
            error = self._error(ran, source, rounds)
            if error < best:
                best, result = error, rounds
        return result

    def _error(self, ran: Counts, source: dict[int, int], rounds: list[float]) -> float:
        wrong = sum(i in source and parent in source
                    and source[parent] not in _around(ran.loops, source[i])
                    for i, parent in enumerate(self._parents) if parent is not None)
        multiplies, loaded = (self._sum(name, rounds) for name in ("multiplies", "bytes"))
        return (abs(math.log((multiplies + 8) / (ran.multiplies + 8)))
                + 0.05 * abs(math.log((loaded + 16) / (ran.loaded + 16)))
                + 0.3 * wrong - 1e-6 * sum(math.log(1 + times) for times in rounds))


def _around(loops: tuple[Loop, ...], index: int) -> set[int]:
    parent = loops[index].parent
    return set() if parent is None else {parent, *_around(loops, parent)}


def _bounds(has: Hardware, pipeline: Pipeline, groups: tuple[int, int, int], ran: Counts,
            cost: Cost, waits: float) -> dict[str, float]:
    wave = has.wave or pipeline.subgroup
    number = math.prod(groups)
    waves, simds = number * -(-ran.invocations // wave), has.cores * has.simds
    fitting = dict(has.waves).get(pipeline.occupancy, pipeline.occupancy) or 1
    issue = cost.issue * wave / has.lanes
    of_core = -(-number // has.cores) * ran.invocations
    clocks = {
        "arithmetic": -(-waves // simds) * issue,
        "memory": of_core * cost.bytes / has.bytes,
        "shared memory": of_core * cost.shared / has.shared_bytes,
        "latency": -(-waves // (simds * fitting)) * (waits * has.load_clocks + issue)}
    return {name: count / has.ghz / 1e9 for name, count in clocks.items()}


def costs_of(device: str, found: Capture) -> dict[str, list[Dispatch]]:
    """The dispatches of each run of a program, captured with the compiler's code, with their
    modelled times on one of `HARDWARE`."""
    pipelines = {(pipeline.module, pipeline.constants): pipeline
                 for pipeline in map(pipeline_of, found.pipelines) if not pipeline.failed}
    read = READERS[device.partition("-")[0]]
    has, kernels, result = HARDWARE[device], {}, {}
    for name, dispatches in found.runs.items():
        rows = result[name] = []
        for shader, constants, push, groups in dispatches:
            key = tuple(sorted((number, value) for number, value in constants))
            pipeline = pipelines[digest_of(shader, key), key]
            if pipeline not in kernels:
                kernels[pipeline] = _Kernel(read(pipeline.code, has.wave or pipeline.subgroup))
            ran = counts(pruned_code(shader, key), key, bytes.fromhex(push), tuple(groups))
            cost, waits = kernels[pipeline].total(ran)
            rows.append(Dispatch(pipeline, tuple(groups),
                                 _bounds(has, pipeline, tuple(groups), ran, cost, waits),
                                 cost.issue / cost.multiplies if cost.multiplies else None))
    return result
