"""Instances: a method's commands at the sizes of calls, over their states and buffers.

For every new set of sizes the graph is resolved, lowered and planned anew (all of it plain Python,
milliseconds; see `vkrt.method.loaded`). Each of them, over each state and each set of the host's
buffers, gets handles and commands of its own; weights, pipelines and the arena are those of the
method. Those that were run lately are kept, as many as some bytes of the host's memory allow: one
of them costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vkrt.compiler.shape import Shape, ShapePlan, value_of
from vkrt.errors import DeviceMemoryError, InputError
from vkrt.executable.external_buffers import DeviceBuffer
from vkrt.method.lru_cache import LruCache
from vkrt.runtime.arena import Arena
from vkrt.runtime.compute_graph import ComputeGraph
from vkrt.runtime.external import MAX_BYTES as MAX_BUFFER_BYTES
from vkrt.runtime.external import STEP_BYTES, ExternalBinding
from vkrt.runtime.state_memory import StateMemory

if TYPE_CHECKING:
    import numpy as np

# Bytes of the host's memory for the handles and commands of all instances over arrays. Those over
# buffers of the host's have a bound of their own, so that they make none of the others go.
MAX_BYTES = 32 << 20


class ExternalBuffers(NamedTuple):
    """The host's buffers of a call.

    Attributes:
        inputs, outputs: (number, buffer).
    """

    inputs: tuple[tuple[int, DeviceBuffer], ...] = ()
    outputs: tuple[tuple[int, DeviceBuffer], ...] = ()

    @classmethod
    def among(cls, inputs: Sequence[Any], outputs: Sequence[Any]) -> ExternalBuffers:
        """Those among the arguments of a call."""
        return cls(_buffers(inputs), _buffers(outputs))

    def __bool__(self):
        return bool(self.inputs or self.outputs)


def _buffers(values: Sequence[Any]) -> tuple[tuple[int, DeviceBuffer], ...]:
    return tuple((number, value) for number, value in enumerate(values)
                 if isinstance(value, DeviceBuffer))


class Instance(NamedTuple):
    """A method at one shape, over one state.

    Attributes:
        plan: of the method at this shape.
        compute: runs it.
        state: what the method keeps from run to run.
        buffers: of the host's, that it is recorded with.
        binding: how it uses them.
    """

    plan: ShapePlan
    compute: ComputeGraph
    state: StateMemory
    buffers: ExternalBuffers = ExternalBuffers()
    binding: ExternalBinding | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the host's memory for its handles and commands, an estimate."""
        return STEP_BYTES * self.plan.execution.steps

    def check(self, arrays: Sequence[np.ndarray]) -> None:
        """Compares inputs with the limits.

        Raises:
            InputError: an element is beyond them.
        """
        for limit in self.plan.limits:
            value = value_of(limit.read, arrays)
            if not limit.low <= value <= limit.high:
                raise InputError(f"input {limit.read.input}: element {limit.read.element} of it "
                                 f"has to be {limit.low} to {limit.high} at these sizes, because "
                                 f"of {limit.where}; got {value}")
        for indices in self.plan.index_limits:
            array = arrays[indices.input]
            # What a buffer of the host's holds is not looked at.
            if isinstance(array, DeviceBuffer) or not array.size:
                continue
            low, high = int(array.min()), int(array.max())
            if low < indices.low or high > indices.high:
                raise InputError(f"input {indices.input}: its elements have to be {indices.low} to "
                                 f"{indices.high}, because of {indices.where}; got "
                                 f"{low if low < indices.low else high}")


# What instances are told apart by: shape, state and the host's buffers
_Key = tuple[Shape, StateMemory, ExternalBuffers]
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

    def get(self, shape: Shape, state: StateMemory, buffers: ExternalBuffers) -> Instance | None:
        """The instance of a shape, a state and the host's buffers, if it is kept."""
        return self._cache(buffers).get((shape, state, buffers))

    def add(self, shape: Shape, instance: Instance) -> None:
        """Keeps an instance that is not kept yet; those of its kind that were run longest ago go
        where there are many."""
        cache = self._cache(instance.buffers)
        for key, old in cache.excess(instance.nbytes):
            self._remove(cache, key, old)
        cache.add((shape, instance.state, instance.buffers), instance, instance.nbytes)

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

    def _cache(self, buffers: ExternalBuffers) -> _Cache:
        return self._over_buffers if buffers else self._over_arrays

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
        blocks = instance.plan.execution.blocks
        if not self.arena.holds(blocks):
            self.unbind()
            try:
                self.arena.reserve(blocks, self.max_bytes)
            except DeviceMemoryError as error:
                error.breakdown = instance.plan.executable.figures.summary()
                raise
        instance.compute.bind(self._weights, instance.state, self.arena.blocks(blocks),
                              instance.binding)
        return True

    def wait(self) -> None:
        """Waits for a run that was interrupted: it may still use the arena and the weights."""
        if self._ready is not None:
            self._ready.compute.wait()

    def unbind(self) -> None:
        """Frees the arena of everything bound to it."""
        for instance in self:
            instance.compute.unbind()

    def close(self) -> None:
        """Releases all of them and the arena; idempotent."""
        self.drop(lambda instance: True)
        self.arena.release()
