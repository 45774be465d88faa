"""Fit: an executable that was compiled for one device, made ready for another one or refused.

What the device says of its memory is compared with what the executable was planned with, and its
limits with what the commands need. Types of memory have other numbers on every device: those of the
blocks become the device's. Features are looked at when pipelines are created.
"""

from __future__ import annotations

from collections.abc import Sequence

from vkrt.dataclass import replace
from vkrt.device.policy import policy_of
from vkrt.errors import UnsupportedError
from vkrt.executable.executable import Executable
from vkrt.executable.formats import DESCRIPTOR_TYPES, STORAGE_BUFFER, TEXEL_FORMATS
from vkrt.executable.memory import Block
from vkrt.executable.records import Binding, Command, DispatchCommand, ExecutionPlan, Kernel
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
    return Fit(executable, device).executable


class Fit:
    """An executable on a device, and the commands of further shapes over its weights.

    Args:
        device: an open device.

    Attributes:
        executable: for the device.

    Raises:
        UnsupportedError: the device does not fit; the message says why.
    """

    def __init__(self, executable: Executable, device: Any):
        policy = policy_of(device.info)
        self._limits = dict(device.info.limits)
        self._limits["maxTexelBufferElements"] = (policy.max_texels
                                                  or self._limits["maxTexelBufferElements"])
        self._shared_bytes = executable.shared_bytes
        self._granularity = executable.granularity
        self._requirements = requirements_of(device)
        weights, states = executable.weights, executable.states
        _check_ways(executable, device)
        _expect(policy.loop_limit is None or executable.loops <= policy.loop_limit,
                f"its kernels loop {executable.loops:,} times, and the driver {policy.loop_limit} "
                "times at most")
        self._check_commands(weights.prepack.kernels, [
            command for batch in weights.prepack.batches for command in batch.commands])
        storages = executable.execution.storages
        self.executable = replace(
            executable, execution=self.execution(executable.execution),
            weights=replace(weights, blocks=self._blocks(weights.blocks, storages)),
            states=replace(states, blocks=self._blocks(states.blocks, storages)))

    def execution(self, execution: ExecutionPlan) -> ExecutionPlan:
        """The commands at some shape, for the device (UnsupportedError)."""
        self._check_commands(execution.kernels, [
            command for submission in execution.submissions for command in submission.commands])
        return replace(execution, blocks=self._blocks(execution.blocks, execution.storages))

    def _check_commands(self, kernels: Sequence[Kernel], commands: Sequence[Command]) -> None:
        for kernel in kernels:
            _check_kernel(kernel, self._shared_bytes, self._limits)
        dispatches = [c for c in commands if isinstance(c, DispatchCommand)]
        for groups in {dispatch.groups for dispatch in dispatches}:
            _check_groups(groups, self._limits)
        # Many dispatches read the same.
        for binding in {id(b): b for dispatch in dispatches for b in dispatch.bindings}.values():
            _check_binding(binding, self._limits)

    def _blocks(self, blocks: Sequence[Block], storages: Sequence[Storage]) -> tuple[Block, ...]:
        """The blocks with the types of memory that the device has for them."""
        return tuple([self._block(block, storages) for block in blocks])

    def _block(self, block: Block, storages: Sequence[Storage]) -> Block:
        most = self._limits["maxMemoryAllocationSize"]
        apart = self._limits["bufferImageGranularity"]
        _expect(block.nbytes <= most, f"it allocates {block.nbytes:,} bytes at once, and the device"
                f" {most:,} at most")
        kinds = {storages[place.storage].is_image for place in block.places}
        _expect(len(kinds) < 2 or self._granularity % apart == 0,
                f"buffers and images are {self._granularity:,} bytes apart where the device asks "
                f"for {apart:,} (bufferImageGranularity)")
        types = 0xFFFFFFFF
        for place in block.places:
            nbytes, alignment, bits = self._requirements(storages[place.storage])
            _expect(nbytes <= place.nbytes and place.offset % alignment == 0
                    and block.alignment % alignment == 0,
                    f"it has {place.nbytes:,} bytes at {place.offset:,} where the device asks for "
                    f"{nbytes:,} at multiples of {alignment:,}")
            types &= bits
        _expect(types != 0, "the device has no memory that all of a block may lie in")
        return replace(block, type_bits=types)


def _check_ways(executable: Executable, device: Any) -> None:
    """Whether weights can come to the device in the way that was planned."""
    weights = executable.weights
    if device.unified:
        _expect(not weights.upload_bytes, "it streams weights through a staging buffer, and the "
                "device's memory is the host's")
    else:
        _expect(not weights.written, "the host writes its weights, and the device has memory of "
                "its own")


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


def _check_groups(groups: tuple[int, int, int], limits: Any) -> None:
    most = limits["maxComputeWorkGroupCount"]
    _expect(all(count <= limit for count, limit in zip(groups, most)),
            f"a dispatch of {groups} workgroups")


def _check_binding(binding: Binding, limits: Any) -> None:
    if binding.type == STORAGE_BUFFER:
        size, most = binding.range.nbytes, limits["maxStorageBufferRange"]
        alignment = limits["minStorageBufferOffsetAlignment"]
    elif binding.type == TEXEL_BUFFER:
        size = binding.range.nbytes // TEXEL_BYTES[binding.format]
        most = limits["maxTexelBufferElements"]
        alignment = limits["minTexelBufferOffsetAlignment"]
    else:
        return
    _expect(size <= most and binding.range.offset % alignment == 0,
            f"a kernel reads {binding.range.nbytes:,} bytes at {binding.range.offset:,} of a buffer"
            f", and the device {most:,} at most, at multiples of {alignment:,}")


def _expect(holds: bool, why: str) -> None:
    if not holds:
        raise UnsupportedError(why)
