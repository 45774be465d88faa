"""Dispatches in the making: which variant of a shader, how many invocations, its parameters."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Graph
from vkrt.ops.tiles import feature_of
from vkrt.pte.coerce import as_float
from vkrt.work.records import Dispatch
from vkrt.work.target import GROUP, Target
from vkrt.work.tensor import Operand, short_name
from vkrt.work.tuning import Tile


def bits(value: float) -> int:
    """The bits of the nearest float32 as the int that carries it in a dispatch's parameters.

    The bits of -0.0 mean "not set" in a specialization constant. The shader then reads the value
    from the push constant, where every parameter is too.
    """
    return struct.unpack("<i", struct.pack("<f", as_float(value)))[0]


class Emitter:
    """The steps of a command list in the making.

    Attributes:
        graph: of the method.
        target: what the steps are made for.
        storage: of the command list.
        node: index of the current node; -1 before the first. Its steps have its number in the
            method's graph, `number`.
        steps: so far.
    """

    def __init__(self, graph: Graph, target: Target):
        self.graph = graph
        self.target = target
        self.storage = target.storage
        self.node = -1
        self.steps: list[Any] = []

    @property
    def number(self) -> int:
        """The current node's number in the graph before passes rewrote it."""
        return self.graph.number_of(self.node)

    def where(self) -> str:
        """The current node, for messages."""
        if 0 <= self.node < len(self.graph.nodes):
            return str(self.graph.nodes[self.node])
        return "the method's border"

    def dispatch(self, shader: str, params, writes, reads, invocations: int, *,
                 dtype: str | None = None, storage: str | None = None, loops: int = 0,
                 work: int = 1, group_factor: int = 1, feature: str = "") -> None:
        """Adds a dispatch of `shader` (file name without .comp).

        Args:
            params: one entry per id of the shader from 0 on: int, or float (sent as its bits).
            writes, reads: operands in binding order, the written ones first.
            invocations: how many run, in one dimension; 0 adds nothing.
            dtype: the variant; the first write's dtype by default. "f32_i32" for a pair.
            storage: the variant; the command list's by default.
            loops: iterations of all loops of one invocation together.
            work: products of texels in an iteration.
            group_factor: see `Target.dispatch_size`.
            feature: the one that the variant needs, which the target has to allow.
        """
        if invocations > 0:
            local_size, groups = self.target.dispatch_size(
                invocations, invocations * loops * work, group_factor)
            self._add(shader, params, writes, reads, dtype, storage, loops, invocations,
                      local_size, groups, feature)

    def map_texels(self, shader: str, result: Operand, reads, params=(), **options: Any) -> None:
        """Adds a dispatch with an invocation for each texel of its result, whose grid and packed
        size are the first parameters; the options are those of `dispatch`."""
        self.dispatch(shader, [*result.grid, result.packed, *params], [result], reads,
                      result.texels, **options)

    def share(self, shader: str, params, writes, reads, groups: int, *, size: int = GROUP,
              features: Sequence[str] = (), dtype: str | None = None, storage: str | None = None,
              loops: int = 0) -> None:
        """Adds a dispatch of a shader whose workgroups share what they read or sum; see `dispatch`.

        Args:
            groups: how many workgroups there are; 0 adds nothing. More may run where one dimension
                is not enough.
            size: invocations of each; above `GROUP` no more than `Target.max_invocations`.
            features: of the variants beside the plain one, the best first. The first that the
                target allows is taken, or the plain variant where it allows none.
        """
        if groups > 0:
            feature = self.compiled(shader, reads, dtype or short_name(writes[0].dtype), features,
                                    storage)
            self._add(shader, params, writes, reads, dtype, storage, loops, groups * size, size,
                      self.target.grid(groups), feature or "")

    def compiled(self, shader: str, reads, dtype: str, features: Sequence[str] = (),
                 storage: str | None = None) -> str | None:
        """The feature of the best variant of a shader that the target allows and the driver
        compiles, "" of the plain one; None where the driver refuses all of them. The arguments are
        those of `share`."""
        storage = storage or self.variant(reads)
        for feature in (*(each for each in features if each in self.target.features), ""):
            if _name_of(shader, storage, dtype, feature) not in self.target.refused:
                return feature
        return None

    def refused_tiles(self, shader: str, reads, dtype: str) -> set[Tile]:
        """The register tiles in which a shader NAME_AxB is not used: those that the driver does not
        compile, and all that are as large or larger, as they hold as much in registers."""
        if not self.target.refused:
            return set()
        tiles = [tile for tile, _ in self.target.tuning.tiles]
        storage = self.variant(reads)
        least = min((a * b for a, b in tiles
                     if _name_of(f"{shader}_{a}x{b}", storage, dtype, feature_of((a, b)))
                     in self.target.refused), default=None)
        return {(a, b) for a, b in tiles if least is not None and a * b >= least}

    def notes(self) -> tuple[str, ...]:
        """Notes for the user about variants that the driver refuses, where a kernel of the same
        family is among the steps."""
        kernels = {_family(step.shader) for step in self.steps if isinstance(step, Dispatch)}
        return tuple(f"the driver does not compile {name}: smaller kernels are used"
                     for name in sorted(self.target.refused) if _family(name) in kernels)

    def _add(self, shader: str, params, writes, reads, dtype: str | None, storage: str | None,
             loops: int, invocations: int, local_size: int, groups: tuple[int, int, int],
             feature: str = "") -> None:
        limit = self.target.loop_limit
        if limit is not None and loops > limit:
            raise UnsupportedError(
                f"{self.where()}: {shader} would loop {loops} times in one invocation, more than "
                f"the {limit} that this driver runs")
        for operand in (*writes, *reads):
            self._check_range(operand)
        storage = storage or self.variant(reads)
        dtype = dtype or short_name(writes[0].dtype)
        values = tuple(bits(p) if isinstance(p, float) else int(p) for p in params)
        if any(not -1 << 31 <= value < 1 << 31 for value in values):
            raise UnsupportedError(f"{self.where()}: {shader} would need sizes or strides beyond "
                                   f"32 bits: {list(values)}")
        self.steps.append(Dispatch(
            node=self.number, shader=_name_of(shader, storage, dtype, feature), params=values,
            writes=tuple(writes), reads=tuple(reads), invocations=invocations,
            local_size=local_size, groups=groups, loops=loops))

    def _check_range(self, operand: Operand) -> None:
        """Refuses (UnsupportedError) a buffer of which a kernel would see more than it can. The
        storage may be larger: kernels of strips see only some rows of a tensor."""
        most = self.target.max_buffer_range
        if not operand.storage.is_image and operand.nbytes > most:
            raise UnsupportedError(
                f"{self.where()}: a tensor {operand.dtype}{list(operand.sizes)} of "
                f"{operand.nbytes:,} bytes; a kernel sees at most {most:,} of a buffer on this "
                "device (maxStorageBufferRange), and the node is not done in parts")

    def variant(self, reads) -> str:
        """The storage variant for these inputs: texel views have a smaller limit than buffers."""
        if self.storage == "texel" and any(r.texels > self.target.max_texels for r in reads):
            return "buffer"
        return self.storage

    def check_view(self, operand: Operand) -> Operand:
        """An operand that a kernel reads through a texel view in every storage, if it can.

        Raises:
            UnsupportedError: it is larger than the device's views.
        """
        if not operand.storage.is_image and operand.texels > self.target.max_texels:
            raise UnsupportedError(
                f"{self.where()}: {operand.dtype}{list(operand.sizes)} is read as "
                f"{operand.texels:,} texels; this device sees at most {self.target.max_texels:,} "
                "at once (maxTexelBufferElements)")
        return operand


def _name_of(shader: str, storage: str, dtype: str, feature: str) -> str:
    """The name of a variant (shaders/build.py); feature "" is the plain one."""
    return f"{shader}.{storage}.{dtype}" + (f".{feature}" if feature else "")


def _family(shader: str) -> tuple[str, str]:
    """The family of a kernel, which kernels that do the same in the same storage have in common:
    ("conv2d", "texel") for conv2d_4x8.texel.f32."""
    file, storage, *_ = shader.split(".")
    return file.partition("_")[0], storage
