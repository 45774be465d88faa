"""Instances: a method's commands at the sizes of calls, over their states and buffers.

For every new set of sizes the graph is resolved, lowered and planned anew (all of it plain Python,
milliseconds; see `vkrt.method.loaded`). Each of them, over each state and each set of the host's
buffers, gets handles and commands of its own; weights, pipelines and the arena are those of the
method. Those that were run lately are kept, as many as some bytes of the host's memory allow: one
of them costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vkrt.errors import DeviceMemoryError, InputError
from vkrt.executable.lending import DeviceBuffer
from vkrt.graph.graph import Graph
from vkrt.method.lru_cache import LruCache
from vkrt.method.prepared import Prepared
from vkrt.runtime.arena import Arena
from vkrt.runtime.compute_graph import ComputeGraph
from vkrt.runtime.external import MAX_BYTES as MAX_BUFFER_BYTES
from vkrt.runtime.external import STEP_BYTES, ExternalBinding
from vkrt.runtime.state_memory import StateMemory
from vkrt.work.limits import Read
from vkrt.work.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np

# Bytes of the host's memory for the handles and commands of all instances over arrays. Those over
# buffers of the host's have a bound of their own, so that they make none of the others go.
MAX_BYTES = 32 << 20


@dataclass(frozen=True)
class Shape:
    """What decides everything about a call but the data: equal shapes run the same commands.

    Attributes:
        sizes: of each input.
        values: what inputs hold where that decides sizes or places, in the order of `Graph.reads`.
    """

    sizes: tuple[tuple[int, ...], ...]
    values: tuple[int, ...] = ()

    @classmethod
    def of(cls, graph: Graph, arrays: Sequence[np.ndarray]) -> Shape:
        """The shape of a call.

        Raises:
            InputError: an input is too small to hold a value that is read from it.
        """
        return cls(tuple(array.shape for array in arrays),
                   tuple(_value(read, arrays) for read in graph.reads))

    @classmethod
    def of_graph(cls, graph: Graph, reads: Sequence[Read]) -> Shape:
        """The shape at which a resolved graph is; `reads` are those of the method's."""
        return cls(tuple(value.sizes if isinstance(value, Tensor) else () if value is not None
                         else (0,) for value in graph.inputs),
                   tuple(graph.values.get(read, 0) for read in reads))

    def resolve(self, graph: Graph) -> Graph:
        """The graph at these sizes; see `vkrt.ops.resolving.resolve`."""
        from vkrt.ops.resolving import resolve  # with all operators, which kept plans do without

        return resolve(graph, self.sizes, dict(zip(graph.reads, self.values)))

    def __str__(self):
        return " ".join((*(f"[{','.join(map(str, sizes))}]" for sizes in self.sizes),
                         *map(str, self.values)))


@dataclass(frozen=True)
class Lent:
    """The host's buffers of a call.

    Attributes:
        inputs, outputs: (number, buffer).
    """

    inputs: tuple[tuple[int, DeviceBuffer], ...] = ()
    outputs: tuple[tuple[int, DeviceBuffer], ...] = ()

    def __bool__(self):
        return bool(self.inputs or self.outputs)


def _value(read: Read, arrays: Sequence[np.ndarray]) -> int:
    array = arrays[read.input]
    if isinstance(array, DeviceBuffer):
        raise InputError(f"input {read.input}: what it holds decides sizes or places, which vkrt "
                         "has to know before it runs; pass an array")
    if read.element >= array.size:
        raise InputError(f"input {read.input}: element {read.element} of it decides sizes, it has "
                         f"{array.size}")
    return int(array.flat[read.element])


@dataclass(frozen=True)
class Instance:
    """A method at one shape, over one state.

    Attributes:
        prepared: what it is at this shape.
        compute: runs it.
        state: what the method keeps from run to run.
        lent: the host's buffers that it is recorded with.
        binding: how it uses them.
    """

    prepared: Prepared
    compute: ComputeGraph
    state: StateMemory
    lent: Lent = Lent()
    binding: ExternalBinding | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the host's memory for its handles and commands, an estimate."""
        return STEP_BYTES * self.prepared.execution.steps

    def check(self, arrays: Sequence[np.ndarray]) -> None:
        """Compares inputs with the limits.

        Raises:
            InputError: an element is beyond them.
        """
        for limit in self.prepared.limits:
            value = _value(limit.read, arrays)
            if not limit.low <= value <= limit.high:
                raise InputError(f"input {limit.read.input}: element {limit.read.element} of it "
                                 f"has to be {limit.low} to {limit.high} at these sizes, because "
                                 f"of {limit.where}; got {value}")
        for indices in self.prepared.index_limits:
            array = arrays[indices.input]
            # What a buffer of the host's holds is not looked at.
            if isinstance(array, DeviceBuffer) or not array.size:
                continue
            low, high = int(array.min()), int(array.max())
            if low < indices.low or high > indices.high:
                raise InputError(f"input {indices.input}: its elements have to be {indices.low} to "
                                 f"{indices.high}, because of {indices.where}; got "
                                 f"{low if low < indices.low else high}")

    @property
    def sizes(self) -> list[tuple[int, ...]]:
        """Sizes of the outputs; () for numbers."""
        return [value.sizes if isinstance(value, Tensor) else ()
                for value in self.prepared.graph.outputs]


# What instances are told apart by: shape, state and the host's buffers
_Key = tuple[Shape, StateMemory, Lent]
_Cache = LruCache[_Key, Instance]


class Instances:
    """The instances of a method, over one arena. One run at a time.

    A signal's handler may raise anywhere in here. So an instance is unbound before it is removed:
    the one that still is there can be bound again.

    Args:
        arena: where activations lie.
        weights: the `Weights` that all of them read; may grow.
        max_bytes: of the arena where it has room for former shapes.
    """

    def __init__(self, arena: Arena, weights: Sequence[Any], max_bytes: int):
        self.arena = arena
        self.max_bytes = max_bytes
        self._weights = weights
        # Those over arrays, and those over buffers of the host's
        self._over_arrays: _Cache = LruCache(MAX_BYTES)
        self._over_buffers: _Cache = LruCache(MAX_BUFFER_BYTES)
        # The one that was made ready last: no other has a run that was interrupted.
        self._ready: Instance | None = None

    def __iter__(self) -> Iterator[Instance]:
        """All that are kept."""
        return iter([instance for cache in (self._over_arrays, self._over_buffers)
                     for _, instance in cache])

    def get(self, shape: Shape, state: StateMemory, lent: Lent) -> Instance | None:
        """The instance of a shape, a state and the host's buffers, if it is kept."""
        return self._cache(lent).get((shape, state, lent))

    def add(self, shape: Shape, instance: Instance) -> None:
        """Keeps an instance that is not kept yet; those of its kind that were run longest ago go
        where there are many."""
        cache = self._cache(instance.lent)
        for key, old in cache.excess(instance.nbytes):
            self._remove(cache, key, old)
        cache.add((shape, instance.state, instance.lent), instance, instance.nbytes)

    def drop(self, goes: Callable[[Instance], bool]) -> None:
        """Lets go of the instances for which `goes` is true."""
        for cache in (self._over_arrays, self._over_buffers):
            for key, instance in cache:
                if goes(instance):
                    self._remove(cache, key, instance)

    def _remove(self, cache: _Cache, key: _Key, instance: Instance) -> None:
        instance.compute.unbind()
        cache.remove(key)
        instance.compute.close()
        if instance is self._ready:
            self._ready = None

    def _cache(self, lent: Lent) -> _Cache:
        return self._over_buffers if lent else self._over_arrays

    def bind(self, instance: Instance) -> bool:
        """Makes an instance ready to run; whether there was something to do.

        An arena that is too small is released and allocated anew, and with it what is bound to it:
        other instances are bound again when they run the next time.

        Raises:
            DeviceMemoryError: there is no memory for a larger arena. Instances of shapes that fit
                in what there is can run.
            VulkanError: the instance cannot be bound.
        """
        self._ready = instance
        if instance.compute.bound:
            return False
        blocks = instance.prepared.execution.blocks
        if not self.arena.holds(blocks):
            self.unbind()
            try:
                self.arena.reserve(blocks, self.max_bytes)
            except DeviceMemoryError as error:
                error.breakdown = instance.prepared.plan.figures.summary()
                raise
        instance.compute.bind(self._weights, instance.state, self.arena.blocks(blocks),
                              instance.binding)
        return True

    def settle(self) -> None:
        """Waits for a run that was interrupted: it may still use the arena and the weights."""
        if self._ready is not None:
            self._ready.compute.settle()

    def unbind(self) -> None:
        """Frees the arena of everything bound to it."""
        for instance in self:
            instance.compute.unbind()

    def close(self) -> None:
        """Releases all of them and the arena; idempotent."""
        self.drop(lambda instance: True)
        self.arena.release()
