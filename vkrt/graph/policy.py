"""What is best on which driver: the table behind `storage="auto"`.

Each row was measured; a driver that is not listed gets the default row. `storage=` of `vkrt.load`
overrides the choice of storage.
"""

from __future__ import annotations

from dataclasses import dataclass

from vkrt.errors import InputError
from vkrt.graph.cost import Speed
from vkrt.graph.target import LOOP_LIMIT, Target

STORAGES = ("texel", "buffer", "texture3d")

# VkDriverId
LLVMPIPE, SWIFTSHADER = 13, 10


@dataclass(frozen=True)
class Ceiling:
    """The most that a driver was measured to reach, for comparison in profiles.

    Attributes:
        flops: floating-point operations per second, in the fastest of large products.
        bytes: per second that a product of a vector with a large matrix reads.
        per_core: whether both are for each core of the host (CPU drivers).
        why: what was measured.
    """

    flops: float
    bytes: float
    per_core: bool = False
    why: str = ""

    def of_cores(self, cores: int) -> Ceiling:
        """The same for a process that may use so many cores."""
        if not self.per_core:
            return self
        return Ceiling(self.flops * cores, self.bytes * cores, why=f"{self.why}, {cores} cores")

    def least_seconds(self, flops: int, nbytes: int) -> float:
        """What so much arithmetic on so many bytes takes at least."""
        return max(flops / self.flops, nbytes / self.bytes)


@dataclass(frozen=True)
class Policy:
    """How vkrt uses a driver.

    Attributes:
        storage: the default storage, see `Target`.
        max_texels: size of the largest texel view where it differs from what the driver reports.
        specialize: sizes become specialization constants (True) or push constants.
        speed: for choosing how far ahead weights are streamed.
        ceiling: what profiles compare with; None where nothing was measured.
        why: what was measured.
    """

    storage: str = "texel"
    max_texels: int | None = None
    specialize: bool = True
    speed: Speed = Speed(multiply_adds=2e11, bytes=3e10, dispatch=5e-6)
    ceiling: Ceiling | None = None
    why: str = "not measured"


DEFAULT = Policy()
POLICIES = {
    LLVMPIPE: Policy(speed=Speed(multiply_adds=1.2e10, bytes=5e9),
                     ceiling=Ceiling(1.7e10, 1.07e10, True, "products of 1024 and 4096 a side"),
                     why="texel views read 1.4 to 4 times as fast as storage buffers"),
    # It reports the specification's minimum of 65536 and reads larger views right.
    SWIFTSHADER: Policy(max_texels=1 << 22, speed=Speed(multiply_adds=3e9, bytes=2e9),
                        ceiling=Ceiling(4.6e9, 2e9, True, "products of 1024 and 4096 a side"),
                        why="texel views read 1.5 to 2.5 times as fast as storage buffers"),
}


def policy_of(driver_id: int) -> Policy:
    """The row of a driver (VkDriverId)."""
    return POLICIES.get(driver_id, DEFAULT)


def target_of(info, storage: str = "auto") -> Target:
    """The target that work lists for a device are made for.

    Args:
        info: the device's description (`vkrt.DeviceInfo`).
        storage: "auto" or one of `STORAGES`.

    Raises:
        InputError: unknown storage.
    """
    if storage not in ("auto", *STORAGES):
        raise InputError(f"storage={storage!r}: expected 'auto' or one of {', '.join(STORAGES)}")
    policy = policy_of(info.driver_id)
    limits = info.limits
    return Target(
        storage=policy.storage if storage == "auto" else storage,
        max_texels=policy.max_texels or limits["maxTexelBufferElements"],
        max_buffer_range=limits["maxStorageBufferRange"],
        max_image_extent=limits["maxImageDimension3D"],
        max_groups=limits["maxComputeWorkGroupCount"][0],
        max_local_size=min(limits["maxComputeWorkGroupInvocations"],
                           limits["maxComputeWorkGroupSize"][0]),
        offset_alignment=max(limits["minStorageBufferOffsetAlignment"],
                             limits["minTexelBufferOffsetAlignment"], 16),
        loop_limit=LOOP_LIMIT)
