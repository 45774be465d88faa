"""ShapeFiles: the cached plans of a method with dynamic shapes, at the shapes that it has run at.

Each is a file of its own, beside that of the plan for which the method is loaded. It is written
once, behind the first run at its shape, and read when another process first runs at that shape: so
a load reads nothing of it, and no file is written anew. The shapes that were read or written lately
stay.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from vkrt.compiler.plan_cache import CachedPlan, PlanFiles, digest_of, graph_of
from vkrt.compiler.shape import Shape, ShapePlan
from vkrt.executable.executable import Executable
from vkrt.executable.program import MethodPlan
from vkrt.executable.records import ExecutionPlan
from vkrt.executable.weights import PrepackPlan, WeightPlan
from vkrt.work.tensor import Tensor

# Of a method on one device
MOST_FILES = 32
MAX_BYTES = 16 << 20
# Why a plan is not kept that was made before the driver was found not to compile a kernel
REFUSED = "the driver was found not to compile a kernel meanwhile"
# A program that runs at more new shapes than these keeps no further ones: it may run at others all
# the time.
MOST_WRITTEN = 16


class ShapeFiles:
    """The files of a method's plans.

    Args:
        files: of the program.
        method: the method's name.
    """

    def __init__(self, files: PlanFiles, method: str):
        self._files = files
        self._method = method
        self._left = MOST_WRITTEN

    def read(self, shape: Shape, first: ShapePlan, device: Any) -> ShapePlan | None:
        """The plan at a shape; None where there is no valid one.

        Args:
            first: the plan for which the method is loaded, with the same weights and states.
            device: an `OpenDevice`.
        """
        name = self._name(shape, device)
        cached = self._files.read_file(name)
        if cached is None or not _belongs(cached.plan, shape, first):
            return None
        # What both have is in memory once
        found = cached.plan
        executable = found.executable._replace(weights=first.executable.weights,
                                               states=first.executable.states)
        return ShapePlan(graph_of(found), executable, found.limits, found.index_limits)

    def write(self, shape: Shape, plan: ShapePlan, first: ShapePlan, device: Any) -> str:
        """Keeps the plan at a shape; returns why it could not, or "".

        Args:
            first, device: as for `read`.
        """
        if self._left == 0:
            return f"the method ran at more than {MOST_WRITTEN} new ones"
        executable, graph = first.executable, plan.graph
        weights = executable.weights
        if plan.planned.work.target.refused != frozenset(device.refused):
            return REFUSED
        if not _weights_read(plan.execution).issubset(weights.weights):
            return "kernels read weights in layouts that they do not have at the largest sizes"
        name = self._name(shape, device)
        why = self._files.write_file(name, CachedPlan(MethodPlan(
            (self._method,), self._method, tuple(graph.inputs), tuple(graph.outputs), (), (), 0,
            Executable(plan.execution, _in_place(weights), executable.states,
                       plan.executable.figures, (), (), executable.storage,
                       executable.offset_alignment, executable.granularity,
                       executable.shared_bytes, plan.executable.loops),
            plan.limits, plan.index_limits)))
        if not why:
            self._left -= 1
            self._prune(device, name)
        return why

    def _name(self, shape: Shape, device: Any) -> str:
        return f"{digest_of(repr((self._method, shape)))}-{self._files.name(device)}"

    def _prune(self, device: Any, keep: str) -> None:
        """Removes the files of the method that were written or read longest ago."""
        end = f"-{self._files.name(device)}"
        found = []
        with suppress(OSError), os.scandir(self._files.folder) as entries:
            for entry in entries:
                if entry.name.endswith(end):
                    status = entry.stat(follow_symlinks=False)
                    found.append((entry.name == keep, status.st_mtime_ns, status.st_size,
                                  entry.path))
        nbytes = 0
        for number, (is_new, _, size, path) in enumerate(sorted(found, reverse=True)):
            nbytes += size
            if not is_new and (number >= MOST_FILES or nbytes > MAX_BYTES):
                with suppress(OSError):  # another process tidies up as well
                    os.unlink(path)


def _in_place(weights: WeightPlan) -> WeightPlan:
    """Where weights lie, without what a load brings them there by."""
    return weights._replace(written=(), prepack=PrepackPlan((), (), 0))


def _weights_read(execution: ExecutionPlan) -> set[int]:
    """The numbers of the weights that commands read."""
    storages = execution.storages
    return {number for _, used in execution.accesses for number in used
            if storages[number].role == "weight"}


def _belongs(found: MethodPlan, shape: Shape, first: ShapePlan) -> bool:
    """Whether the plan in a file is that of a method at a shape, with the weights and states of
    `first` in the same storages."""
    executable, mine = found.executable, first.executable
    storages, others = executable.execution.storages, first.execution.storages
    kept = [*executable.weights.weights,
            *(place.storage for block in executable.states.blocks for place in block.places)]
    graph = first.graph
    return (Shape.of_graph(graph_of(found), ()) == shape
            and executable.weights == _in_place(mine.weights)
            and executable.states == mine.states
            and [storages[number] for number in kept] == [others[number] for number in kept]
            and [*map(_kind, found.inputs)] == [*map(_kind, graph.inputs)]
            and [*map(_kind, found.outputs)] == [*map(_kind, graph.outputs)])


def _kind(value: Any) -> tuple[Any, ...]:
    """What an input or output is at every shape."""
    if isinstance(value, Tensor):
        return value.dtype, value.host_dtype, value.rank
    return (type(value).__name__,)
