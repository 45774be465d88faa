"""How vkrt uses a driver: the rows of `vkrt.device.drivers` in the terms of the other rooms.

`storage=` of `vkrt.load` overrides the choice of storage.
"""

from __future__ import annotations

import re
from typing import Any

from vkrt.dataclass import dataclass
from vkrt.device.drivers import DRIVERS
from vkrt.errors import InputError
from vkrt.work.target import Target
from vkrt.work.tuning import Tuning

STORAGES = ("texel", "buffer", "texture3d")
WINOGRAD = ("auto", "off", "always")

# VkDriverId
SWIFTSHADER = 10


@dataclass(frozen=True)
class Speed:
    """What a driver does, in round numbers.

    Attributes:
        multiply_adds: per second, in products with weights.
        bytes: per second, in steps that only move and combine elements.
        dispatch: seconds that any step takes.
        reads: bytes per second from a file to the pool, half of them from the disk.
    """

    multiply_adds: float = 1e10
    bytes: float = 5e9
    dispatch: float = 1e-5
    reads: float = 2e9


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
        tuning: what operators choose kernels by.
        speed: for choosing how far ahead weights are streamed.
        winograd: whether 3x3 convolutions are faster as products at points (`vkrt.ops.winograd`).
        ceiling: what profiles compare with; None where nothing was measured.
        loop_limit: iterations that an invocation may make in all its loops; None: any number.
        unlimited_from: the first version of the driver without that limit; () where none is known.
        maps_files: whether it reads the pages of files that are imported where they are; elsewhere
            that is tried before it is relied on (`vkrt.runtime.map_trial`).
    """

    storage: str = "texel"
    max_texels: int | None = None
    specialize: bool = True
    tuning: Tuning = Tuning()
    speed: Speed = Speed()
    winograd: bool = False
    ceiling: Ceiling | None = None
    loop_limit: int | None = None
    unlimited_from: tuple[int, ...] = ()
    maps_files: bool = False

    def loop_limit_of(self, driver_info: str) -> int | None:
        """The loop limit of a version of the driver (`DeviceInfo.driver_info`: "Mesa 22.3.6")."""
        version = re.search(r"\d+(\.\d+)+", driver_info)
        if (version and self.unlimited_from
                and tuple(map(int, version[0].split("."))) >= self.unlimited_from):
            return None
        return self.loop_limit


def policy_from(row: dict[str, Any]) -> Policy:
    """The policy that a row of `DRIVERS` says."""
    ceiling = row["ceiling"]
    return Policy(
        storage=row["storage"], max_texels=row["max_texels"], specialize=row["specialize"],
        tuning=Tuning(tiles=tuple(row["tiles"].items()), lanes=row["lanes"],
                      wide_depthwise=row["wide_depthwise"], least_groups=row["least_groups"]),
        speed=Speed(**row["speed"]), winograd=row["winograd"],
        ceiling=None if ceiling is None else Ceiling(
            **ceiling, why="the best of large products, measured on " + row["measured"]),
        loop_limit=row["loop_limit"], unlimited_from=row["unlimited_from"],
        maps_files=row["maps_files"])


DEFAULT = policy_from(DRIVERS["default"])
POLICIES = {row["driver_id"]: policy_from(row) for row in DRIVERS.values()
            if row["driver_id"] is not None}


def policy_of(driver_id: int) -> Policy:
    """The row of a driver (VkDriverId)."""
    return POLICIES.get(driver_id, DEFAULT)


def target_of(info, storage: str = "auto", winograd: str = "auto") -> Target:
    """The target that work lists for a device are made for.

    Args:
        info: the device's description (`vkrt.DeviceInfo`).
        storage: "auto" or one of `STORAGES`.
        winograd: one of `WINOGRAD`, see `vkrt.load`.

    Raises:
        InputError: unknown storage.
    """
    if storage not in ("auto", *STORAGES):
        raise InputError(f"storage={storage!r}: expected 'auto' or one of {', '.join(STORAGES)}")
    policy = policy_of(info.driver_id)
    scratch = {"auto": "spare" if policy.winograd else "none", "off": "none", "always": "any"}
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
        loop_limit=policy.loop_limit_of(info.driver_info), scratch=scratch[winograd],
        tuning=policy.tuning)
