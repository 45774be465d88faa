"""What a command list is made for: facts of a device that decide shaders, storages and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from vkrt.work.speed import Speed
from vkrt.work.tuning import Tuning

# Element numbers are signed 32-bit integers in kernels.
MAX_ELEMENTS = (1 << 31) - 1

# Invocations of a workgroup
GROUP, SMALL_GROUP = 64, 8
# A core of a CPU driver takes some 50 microseconds for so many products of texels.
LONG = 16384


class Slices(NamedTuple):
    """Into how many slices of hidden channels a run of nodes is divided.

    Attributes:
        last: the number of its last node (`vkrt.graph.graph.Graph.number_of`).
        slices: how many.
    """

    last: int
    slices: int


class Strips(NamedTuple):
    """How a run of nodes is divided into strips of rows.

    Attributes:
        first, last: the numbers of its first and its last node.
        dim: the dimension of the last node's result that has the rows.
        rows: the most that a strip of the first node's result has.
    """

    first: int
    last: int
    dim: int
    rows: int


@dataclass(frozen=True)
class Target:
    """Limits of a device in the terms of `ops` and `graph`; the defaults are Vulkan's minima.

    Attributes:
        storage: "texel" (linear buffers read through texel views), "buffer" (storage buffers) or
            "texture3d" (images).
        max_texels: largest texel view, in texels.
        max_buffer_range: largest storage buffer a shader sees, in bytes.
        max_image_extent: largest side of a 3-D image, in texels.
        max_groups: largest number of workgroups in x.
        max_invocations: of a workgroup.
        max_shared: bytes of memory that a workgroup may share.
        offset_alignment: bytes that an operand's offset in its buffer must be a multiple of.
        loop_limit: iterations one invocation may make in all its loops; None: any number.
        scratch: memory that kernels may use to be faster: "none", "spare" (what the arena has
            unused while they run, or more, see `vkrt.plan.scratch`) or "any".
        fuses: whether nodes that one kernel can do become one (`vkrt.passes`).
        skipped: names of passes that are left out where nodes are fused.
        prefer: one of `PREFERENCES`, see `vkrt.load`.
        cache: one of `CACHES`, see `vkrt.load`.
        reads_rows: whether the host reads rows of a constant from the file when a run has chosen
            them, if a run needs few of many rows. The other rows are never read, and the constant
            is no weight.
        max_weight: the most bytes of a weight: layers with larger ones are divided
            (`vkrt.passes.divide_weights`), and tables are brought in ranges of rows.
        rereads: whether strips have weights of their own (`vkrt.passes.strips`). If these are
            streamed, the weights of a run of nodes are not all resident at once, and are read again
            for each strip.
        parts: how runs of nodes are divided, where a method is lowered to these sizes from other
            ones; None where that is still to be decided (`vkrt.passes.divide_activations`).
        tuning: the figures by which kernels are chosen.
        speed: the figures that decide whether nodes are divided (`vkrt.passes.division_plan`).
        features: optional features that kernels may use. The names of shader variants that need one
            end with it (`//! features:` in shaders).
        refused: names of the variants that the driver does not compile: smaller ones are used.
    """

    storage: str = "texel"
    max_texels: int = 65536
    max_buffer_range: int = 1 << 27
    max_image_extent: int = 256
    max_groups: int = 65535
    max_invocations: int = 128
    max_shared: int = 16384
    offset_alignment: int = 256
    loop_limit: int | None = None
    scratch: str = "none"
    fuses: bool = True
    skipped: frozenset[str] = frozenset()
    prefer: str = "balanced"
    cache: str = "float"
    reads_rows: bool = False
    max_weight: int = 1 << 27
    rereads: bool = False
    parts: tuple[Slices | Strips, ...] | None = None
    tuning: Tuning = Tuning()
    speed: Speed = Speed()
    features: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()

    @property
    def refuses_teams(self) -> bool:
        """Whether the driver refuses kernels of cooperative workgroups (NAME_team.comp)."""
        return any(name.partition(".")[0].endswith("_team") for name in self.refused)

    @property
    def max_loops(self) -> int:
        """`loop_limit` as a number; longer rows are split, where a kernel can."""
        return MAX_ELEMENTS if self.loop_limit is None else self.loop_limit

    def dispatch_size(self, invocations: int, steps: int = 0,
              group_factor: int = 1) -> tuple[int, tuple[int, int, int]]:
        """Workgroups for a number of invocations: (invocations of a group, groups (x, y, 1)).

        For long work, groups are made smaller where few would exist (`Tuning.min_groups`): CPU
        drivers then use every core. There are only two sizes, because a pipeline is made for each.

        Args:
            steps: of all invocations together, see `LONG`.
            group_factor: above 1, groups are small where fewer than so many times `min_groups`
                would exist, however short the work is.
        """
        local_size = GROUP
        if (invocations < group_factor * self.tuning.min_groups * GROUP
                and (steps >= LONG or group_factor > 1)):
            local_size = SMALL_GROUP
        return local_size, self.grid(-(-invocations // local_size))

    def grid(self, groups: int) -> tuple[int, int, int]:
        """A grid of `groups` workgroups, or a few more, in as few dimensions as possible."""
        columns = min(groups, self.max_groups)
        return columns, -(-groups // columns), 1
