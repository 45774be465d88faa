"""Profile: the time of every step of a method, compared with the best that the device reaches.

The times come from `vkrt.runtime.timed_runs`, the bytes from the operands, the arithmetic from
`vkrt.ops.flops`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from vkrt.compiler.planned import Planned
from vkrt.compiler.shape import Shape, ShapePlan
from vkrt.device.policy import Ceiling, policy_of
from vkrt.errors import InputError
from vkrt.executable.executable import Executable
from vkrt.graph.graph import Graph
from vkrt.method.arguments import write_inputs
from vkrt.method.executables import another_plan
from vkrt.method.instances import Instance
from vkrt.method.loaded import Loaded
from vkrt.ops.flops import flops_of
from vkrt.plan.commands import profiled_plan
from vkrt.report.columns import columns
from vkrt.runtime.timed_runs import time_runs
from vkrt.vk.info import usable_cores
from vkrt.work.command_list import CommandList
from vkrt.work.records import Dispatch, HostCall

CLOCKS = ("auto", "device", "host")
# Columns of the tables
RATES = ("ms", "%", "MB", "GFLOP/s", "GB/s")

# (start, end, (start, seconds) of each step) of a run, on `time.perf_counter`
Run = tuple[float, float, list[tuple[float, float]]]


def takes_timestamps(clock: str, device: Any) -> bool:
    """Whether a profile with this clock goes by the device's timestamps (InputError: unknown)."""
    if clock not in CLOCKS:
        raise InputError(f"clock={clock!r}: expected one of {', '.join(CLOCKS)}")
    return clock == "device" or (clock == "auto" and device.timestamp_bits > 0)


def planned_of(loaded: Loaded, plan: ShapePlan) -> Planned:
    """What a plan was made from: its command list and memory plan, made anew for one of a file.

    Raises:
        UnsupportedError: this process makes another plan than the one in the file.
    """
    if not isinstance(plan.executable, Executable):
        return plan.executable
    executables = loaded.executables
    planned = executables.planned
    if plan is not executables.first:
        planned = loaded.compile_at(Shape.of_graph(plan.graph, ())).planned
    if planned.execution != plan.execution:
        raise another_plan(executables.graph.name)
    return planned


def profile_of(loaded: Loaded, instance: Instance, arrays: Sequence[Any], run_kernel: Any,
               repeat: int, further: int, timestamps: bool) -> Profile:
    """Runs an instance that is ready, and times every step of the last `repeat` runs.

    Args:
        arrays: the inputs.
        run_kernel: runs kernels of the host, as for `ComputeGraph.run`.
        further: how many runs come before those that are timed.
        timestamps: whether the device's count, or the host's of steps submitted alone.
    """
    compute, execution = instance.compute, instance.plan.execution

    def write() -> None:
        write_inputs(compute, arrays, execution.inputs)
        compute.copy_in()

    planned = planned_of(loaded, instance.plan)
    plan = profiled_plan(planned.work, planned.memory, planned.specialization, timestamps)
    runs = time_runs(compute, plan, write, run_kernel, timestamps, further + repeat)
    return summarize(planned.graph, planned.work, loaded.device, runs[-repeat:],
                     "device" if timestamps else "host")


@dataclass(frozen=True)
class ProfileStep:
    """One step of a run.

    Attributes:
        index: its place in the run.
        node: the operator's place in the graph; -1 for a step that brings inputs into the kernels'
            layout, the number of nodes for one that brings outputs out of it.
        operator: e.g. "aten.linear.default", or "inputs" and "outputs".
        kind: "dispatch", "host" (a kernel in numpy) or "move" (a copy between buffers).
        kernel: shader variant, e.g. "gemv.texel.f32", or the host's kernel.
        storage: of the variant: "texel", "buffer" or "texture3d"; empty without a shader.
        groups, local_size: workgroups and invocations in each; 0 without a shader.
        seconds: median over the runs.
        bytes_read, bytes_written: of its operands, each counted once.
        flops: floating-point (or integer) operations, see `vkrt.ops.flops`.
        share: the device's best time for this arithmetic and these bytes, over `seconds`; None for
            host kernels, and if the best was never measured.
    """

    index: int
    node: int
    operator: str
    kind: str
    kernel: str
    storage: str
    groups: int
    local_size: int
    seconds: float
    bytes_read: int
    bytes_written: int
    flops: int
    share: float | None


@dataclass(frozen=True)
class Profile:
    """The steps of a method and what they take; made by `Program.profile`.

    Attributes:
        device: its name.
        method: its name.
        clock: "device" (timestamps around steps that run one after the other) or "host" (each step
            is a submission of its own, timed from submitting it to knowing that it is done, which
            includes the round trip to the device). Host kernels are timed by the host either way.
        runs: how many runs the medians are over.
        seconds: median of whole runs as profiled; slower than without profiling.
        steps: in the order of the run.
        ceiling: what the device reaches at best; None where that was never measured.
        timeline: of the last run, for `vkrt.cli.trace`.
    """

    device: str
    method: str
    clock: str
    runs: int
    seconds: float
    steps: tuple[ProfileStep, ...]
    ceiling: Ceiling | None
    timeline: Run

    def totals(self) -> list[dict[str, Any]]:
        """Steps, seconds, bytes and flops by operator, the longest first."""
        found: dict[str, dict[str, Any]] = {}
        for step in self.steps:
            total = found.setdefault(step.operator, {
                "operator": step.operator, "steps": 0, "seconds": 0.0, "bytes": 0, "flops": 0})
            total["steps"] += 1
            total["seconds"] += step.seconds
            total["bytes"] += step.bytes_read + step.bytes_written
            total["flops"] += step.flops
        return sorted(found.values(), key=lambda total: -total["seconds"])

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"device": self.device, "method": self.method, "clock": self.clock,
                "runs": self.runs, "seconds": self.seconds,
                "ceiling": self.ceiling._asdict() if self.ceiling else None,
                "steps": [asdict(step) for step in self.steps], "operators": self.totals()}

    def table(self) -> str:
        """The steps, and the totals by operator, as lines of text."""
        whole = sum(step.seconds for step in self.steps) or 1.0
        clock = ("the device's timestamps" if self.clock == "device"
                 else "the host's clock, each step submitted alone")
        lines = [f"{self.device}, method {self.method}: median of {self.runs} runs by {clock}", ""]
        rows: list[tuple[str, ...]] = [("node", "operator", "kernel", "groups", *RATES, "of best")]
        for step in self.steps:
            size = f"{step.groups}x{step.local_size}" if step.kind == "dispatch" else step.kind
            best = "" if step.share is None else f"{100 * step.share:.0f} %"
            rows.append((str(step.node), step.operator, step.kernel, size,
                         *_rates(step.seconds, whole, step.bytes_read + step.bytes_written,
                                 step.flops), best))
        lines += columns(rows, left=(1, 2))
        rows = [("operator", "steps", *RATES)]
        for total in self.totals():
            rows.append((total["operator"], str(total["steps"]),
                         *_rates(total["seconds"], whole, total["bytes"], total["flops"])))
        lines += ["", *columns(rows)]
        lines += ["", f"steps {1e3 * sum(s.seconds for s in self.steps):.2f} ms, whole runs as "
                      f"profiled {1e3 * self.seconds:.2f} ms"]
        if self.ceiling is not None:
            lines.append(f"best: {self.ceiling.flops / 1e9:.1f} GFLOP/s, "
                         f"{self.ceiling.bytes / 1e9:.1f} GB/s ({self.ceiling.why})")
        return "\n".join(lines)


def _rates(seconds: float, whole: float, nbytes: int, flops: int) -> tuple[str, ...]:
    rate = 1 / seconds if seconds else 0.0
    return (f"{1e3 * seconds:.3f}", f"{100 * seconds / whole:.1f}", f"{nbytes / 1e6:.3f}",
            f"{flops * rate / 1e9:.2f}", f"{nbytes * rate / 1e9:.2f}")


def summarize(graph: Graph, work: CommandList, device: Any, runs: Sequence[Run], clock: str,
              ) -> Profile:
    """The profile of some runs, by the clock "device" or "host"."""
    ceiling = policy_of(device.info).ceiling
    if ceiling is not None:
        ceiling = ceiling.of_cores(usable_cores())
    flops = flops_of(work, graph)
    steps = []
    for index, step in enumerate(work.steps):
        seconds = _median(times[index][1] for _, _, times in runs)
        read, written = (sum(o.nbytes for o in operands) for operands in (step.reads, step.writes))
        storage, groups, local_size, share = "", 0, 0, None
        if isinstance(step, Dispatch):
            kind, kernel, storage = "dispatch", step.shader, step.shader.split(".")[1]
            groups, local_size = step.groups[0] * step.groups[1], step.local_size
        elif isinstance(step, HostCall):
            kind, kernel = "host", step.kernel
        else:
            kind, kernel = "move", step.kind
        if ceiling is not None and seconds and kind != "host":
            share = ceiling.min_seconds(flops[index], read + written) / seconds
        steps.append(ProfileStep(
            index=index, node=step.node, operator=_operator(graph, step.node), kind=kind,
            kernel=kernel, storage=storage, groups=groups, local_size=local_size, seconds=seconds,
            bytes_read=read, bytes_written=written, flops=flops[index], share=share))
    return Profile(device=device.info.name, method=graph.name, clock=clock, runs=len(runs),
                   seconds=_median(end - start for start, end, _ in runs),
                   steps=tuple(steps), ceiling=ceiling, timeline=runs[-1])


def _median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return (ordered[middle] + ordered[-1 - middle]) / 2


def _operator(graph: Graph, node: int) -> str:
    if node < 0:
        return "inputs"
    return graph.nodes[node].op if node < len(graph.nodes) else "outputs"
