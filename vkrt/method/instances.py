"""Instances: a method's commands at one shape, over one state and one set of host buffers.

Each combination has its own handles and commands; all of them share the method's weights, pipelines
and arena. The instances that ran lately are kept, within a bound on the host's memory: running one
of them again costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vkrt.compiler.shape import Shape, ShapePlan, value_of
from vkrt.errors import DeviceMemoryError, InputError
from vkrt.executable.external_buffers import DeviceBuffer
from vkrt.method.arguments import Out
from vkrt.method.lru_cache import LruCache
from vkrt.runtime.arena import Arena
from vkrt.runtime.compute_graph import ComputeGraph
from vkrt.runtime.external import MAX_BYTES as MAX_BUFFER_BYTES
from vkrt.runtime.external import STEP_BYTES, ExternalBinding
from vkrt.runtime.state_memory import StateMemory

if TYPE_CHECKING:
    import numpy as np

# Bytes of the host's memory for the handles and commands of all instances over arrays. Instances
# over host buffers have a bound of their own, so that they never evict instances over arrays.
MAX_BYTES = 32 << 20


class ExternalBuffers(NamedTuple):
    """The host's buffers among the arguments of a call: (number of the input or output, buffer)."""

    inputs: tuple[tuple[int, DeviceBuffer], ...] = ()
    outputs: tuple[tuple[int, DeviceBuffer], ...] = ()

    @classmethod
    def among(cls, inputs: Sequence[Any], out: Out) -> ExternalBuffers:
        return cls(_buffers(inputs), _buffers(() if out is None or callable(out) else out))

    def __bool__(self):
        return bool(self.inputs or self.outputs)


def _buffers(values: Sequence[Any]) -> tuple[tuple[int, DeviceBuffer], ...]:
    return tuple((number, value) for number, value in enumerate(values)
                 if isinstance(value, DeviceBuffer))


class Instance(NamedTuple):
    """A method at one shape, over one state."""

    plan: ShapePlan
    compute: ComputeGraph
    state: StateMemory
    # The host's buffers that its commands are recorded with, and how these use them
    buffers: ExternalBuffers = ExternalBuffers()
    binding: ExternalBinding | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the host's memory for its handles and commands, an estimate."""
        return STEP_BYTES * self.plan.execution.steps

    def check(self, arrays: Sequence[np.ndarray]) -> None:
        """Raises InputError where an element of an input is outside the plan's limits."""
        for limit in self.plan.limits:
            value = value_of(limit.read, arrays)
            if not limit.low <= value <= limit.high:
                raise InputError(f"input {limit.read.input}: element {limit.read.element} of it "
                                 f"has to be {limit.low} to {limit.high} at these sizes, because "
                                 f"of {limit.where}; got {value}")
        for indices in self.plan.index_limits:
            array = arrays[indices.input]
            # The content of a host buffer is not checked.
            if isinstance(array, DeviceBuffer) or not array.size:
                continue
            low, high = int(array.min()), int(array.max())
            if low < indices.low or high > indices.high:
                raise InputError(f"input {indices.input}: its elements have to be {indices.low} to "
                                 f"{indices.high}, because of {indices.where}; got "
                                 f"{low if low < indices.low else high}")


# What identifies an instance: shape, state and the host's buffers
_Key = tuple[Shape, StateMemory, ExternalBuffers]
_Cache = LruCache[_Key, Instance]


class Instances:
    """The instances of a method, over one arena. One run at a time.

    A signal handler may raise anywhere in here. So an instance is unbound before it is removed: if
    the removal is interrupted, the instance can be bound again.

    Args:
        arena: where activations lie.
        weights: the `Weights` that all instances read; the list may grow.
        max_bytes: up to this size the arena keeps the room that former shapes needed.
    """

    def __init__(self, arena: Arena, weights: Sequence[Any], max_bytes: int):
        self.arena = arena
        self.max_bytes = max_bytes
        self._weights = weights
        # Instances over arrays, and instances over host buffers
        self._over_arrays: _Cache = LruCache(MAX_BYTES)
        self._over_buffers: _Cache = LruCache(MAX_BUFFER_BYTES)
        # The instance that was made ready last: only this one can have an interrupted run.
        self._ready: Instance | None = None

    def __iter__(self) -> Iterator[Instance]:
        return iter([instance for cache in (self._over_arrays, self._over_buffers)
                     for _, instance in cache])

    def get(self, shape: Shape, state: StateMemory, buffers: ExternalBuffers) -> Instance | None:
        return self._cache(buffers).get((shape, state, buffers))

    def add(self, shape: Shape, instance: Instance) -> None:
        """Keeps a new instance. If its cache is full, the instances that ran longest ago are
        removed."""
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
        """Makes an instance ready to run; returns whether there was something to do.

        An arena that is too small is released and allocated anew. All instances are unbound before
        that; the others are bound again at their next run.

        Raises:
            DeviceMemoryError: there is no memory for a larger arena. Shapes that need less can
                still run.
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
        """Waits for an interrupted run, which may still use the arena and the weights."""
        if self._ready is not None:
            self._ready.compute.wait()

    def unbind(self) -> None:
        for instance in self:
            instance.compute.unbind()

    def close(self) -> None:
        """Releases all instances and the arena; idempotent."""
        self.drop(lambda instance: True)
        self.arena.release()
