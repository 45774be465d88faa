"""Fit: an executable that was compiled for one device, made ready for another one or refused.

What the device says of its memory is compared with what the executable was planned with, and its
limits with what the commands need. Types of memory have other numbers on every device: those of the
blocks become the device's. Features are looked at when pipelines are created.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vkrt.dataclass import replace
from vkrt.device.policy import policy_of
from vkrt.errors import UnsupportedError
from vkrt.executable.executable import Executable
from vkrt.executable.formats import DESCRIPTOR_TYPES, STORAGE_BUFFER, TEXEL_FORMATS
from vkrt.executable.memory import Block
from vkrt.executable.records import Binding, DispatchCommand, Kernel
from vkrt.hints import Any
from vkrt.runtime.resources import requirements_of
from vkrt.shader import catalog
from vkrt.work.records import LOCAL_SIZE
from vkrt.work.tensor import Storage, itemsize
from vkrt.work.tuning import LANES

TEXEL_BUFFER = DESCRIPTOR_TYPES["uniform_texel_buffer"]
TEXEL_BYTES = {number: 4 * itemsize(dtype) for dtype, number in TEXEL_FORMATS.items()}
# The capability of kernels that hand values round among `LANES` invocations
SHUFFLE = "GroupNonUniformShuffle"


def fitted(executable: Executable, device: Any) -> Executable:
    """An executable for a device.

    Args:
        device: an open device.

    Raises:
        UnsupportedError: the device does not fit; the message says why.
    """
    weights, states, execution = executable.weights, executable.states, executable.execution
    policy, limits = policy_of(device.info), dict(device.info.limits)
    limits["maxTexelBufferElements"] = policy.max_texels or limits["maxTexelBufferElements"]
    _check_ways(executable, device)
    _expect(policy.loop_limit is None or executable.loops <= policy.loop_limit,
            f"its kernels loop {executable.loops:,} times, and the driver {policy.loop_limit} times"
            " at most")
    for kernel in (*execution.kernels, *weights.prepack.kernels):
        _check_kernel(kernel, executable.shared_bytes, limits)
    for dispatch in _dispatches(executable):
        _check_dispatch(dispatch, limits)
    memory = _Memory(execution.storages, executable.granularity, device)
    return replace(
        executable, weights=replace(weights, blocks=memory.fitted(weights.blocks)),
        states=replace(states, blocks=memory.fitted(states.blocks)),
        execution=replace(execution, blocks=memory.fitted(execution.blocks)))


def _check_ways(executable: Executable, device: Any) -> None:
    """Whether weights can come to the device in the way that was planned."""
    weights = executable.weights
    if device.unified:
        _expect(not weights.upload_bytes, "it streams weights through a staging buffer, and the "
                "device's memory is the host's")
    else:
        _expect(not weights.written, "the host writes its weights, and the device has memory of "
                "its own")


class _Memory:
    """Compares blocks with what a device asks for."""

    def __init__(self, storages: Sequence[Storage], granularity: int, device: Any):
        self.storages = storages
        self.granularity = granularity
        self.requirements = requirements_of(device)
        self.limits = device.info.limits

    def fitted(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """The blocks with the types of memory that the device has for them."""
        return tuple(map(self._fitted, blocks))

    def _fitted(self, block: Block) -> Block:
        most, apart = self.limits["maxMemoryAllocationSize"], self.limits["bufferImageGranularity"]
        _expect(block.nbytes <= most, f"it allocates {block.nbytes:,} bytes at once, and the device"
                f" {most:,} at most")
        kinds = {self.storages[place.storage].is_image for place in block.places}
        _expect(len(kinds) < 2 or self.granularity % apart == 0,
                f"buffers and images are {self.granularity:,} bytes apart where the device asks for"
                f" {apart:,} (bufferImageGranularity)")
        types = 0xFFFFFFFF
        for place in block.places:
            nbytes, alignment, bits = self.requirements(self.storages[place.storage])
            _expect(nbytes <= place.nbytes and place.offset % alignment == 0
                    and block.alignment % alignment == 0,
                    f"it has {place.nbytes:,} bytes at {place.offset:,} where the device asks for "
                    f"{nbytes:,} at multiples of {alignment:,}")
            types &= bits
        _expect(types != 0, "the device has no memory that all of a block may lie in")
        return replace(block, type_bits=types)


def _dispatches(executable: Executable) -> Iterator[DispatchCommand]:
    submissions, batches = executable.execution.submissions, executable.weights.prepack.batches
    for commands in (*(s.commands for s in submissions), *(b.commands for b in batches)):
        yield from (command for command in commands if isinstance(command, DispatchCommand))


def _check_kernel(kernel: Kernel, shared_bytes: int, limits: Any) -> None:
    shader = catalog().get(kernel.shader)
    invocations = dict(kernel.constants).get(LOCAL_SIZE, 1)
    most = min(limits["maxComputeWorkGroupInvocations"], limits["maxComputeWorkGroupSize"][0])
    _expect(invocations <= most, f"workgroups of {invocations} invocations, of which the device "
            f"has {most}")
    _expect(shader.push_bytes <= limits["maxPushConstantsSize"],
            f"{shader.name} takes {shader.push_bytes} bytes of push constants")
    _expect(shared_bytes <= limits["maxComputeSharedMemorySize"],
            f"its kernels may share {shared_bytes:,} bytes in a workgroup")
    _expect(SHUFFLE not in shader.capabilities or limits["subgroupSize"] >= LANES,
            f"{shader.name} needs subgroups of {LANES} invocations")


def _check_dispatch(command: DispatchCommand, limits: Any) -> None:
    most = limits["maxComputeWorkGroupCount"]
    _expect(all(count <= limit for count, limit in zip(command.groups, most)),
            f"a dispatch of {command.groups} workgroups")
    for binding in command.bindings:
        if binding.type == STORAGE_BUFFER:
            _check_binding(binding, binding.range.nbytes, limits["maxStorageBufferRange"],
                           limits["minStorageBufferOffsetAlignment"])
        elif binding.type == TEXEL_BUFFER:
            _check_binding(binding, binding.range.nbytes // TEXEL_BYTES[binding.format],
                           limits["maxTexelBufferElements"],
                           limits["minTexelBufferOffsetAlignment"])


def _check_binding(binding: Binding, size: int, most: int, alignment: int) -> None:
    _expect(size <= most and binding.range.offset % alignment == 0,
            f"a kernel reads {binding.range.nbytes:,} bytes at {binding.range.offset:,} of a buffer"
            f", and the device {most:,} at most, at multiples of {alignment:,}")


def _expect(holds: bool, why: str) -> None:
    if not holds:
        raise UnsupportedError(why)
