"""How vkrt uses a driver: its profile in the terms of the other packages.

`storage=` of `vkrt.load` overrides the choice of storage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from vkrt.device.rows import FEATURES, STORAGES, Entry, Profile, profile_of
from vkrt.errors import InputError
from vkrt.work.speed import Speed
from vkrt.work.target import Target
from vkrt.work.tuning import LANES, WIDE_TILES, Tuning, WinogradTimes

WINOGRAD = ("auto", "off", "always")
FUSIONS = ("on", "off")
# What `fusions` has before the name of a pass to leave out
WITHOUT = "no-"
SPECIALIZE = ("few", "all", "none")

# VkDriverId
SWIFTSHADER = 10


class Ceiling(NamedTuple):
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

    def min_seconds(self, flops: int, nbytes: int) -> float:
        """What so much arithmetic on so many bytes takes at least."""
        return max(flops / self.flops, nbytes / self.bytes)


@dataclass(frozen=True)
class Policy:
    """How vkrt uses a driver.

    Attributes:
        storage: the default storage, see `Target`.
        max_texels: size of the largest texel view where it differs from what the driver reports.
        specialize: sizes that are worth compiling in: families of shaders -> names of their
            parameters. All others are push constants, so that layers share pipelines.
        avoid_recompile_padding: whether the driver compiles a kernel anew if other operands than
            before are in buffers whose size is a power of two, or are texel views of less than 256
            bytes or of a multiple of 64 KiB. Buffers and views are then made larger, to avoid these
            sizes.
        tuning: the figures by which operators choose kernels.
        features: what kernels may use of a device that has it, see `vkrt.device.rows.FEATURES`.
        speed: for the prefetch distance of streamed weights, and for which nodes are divided.
        winograd: whether 3x3 convolutions are faster as products at points (`vkrt.ops.winograd`).
        ceiling: what profiles compare with; None where nothing was measured.
        loop_limit: iterations that an invocation may make in all its loops; None: any number.
        maps_files: whether it is known to read the pages of imported files in place; if not, a
            probe tries that first (`vkrt.core.map_probe`).
        submission_seconds: a method is submitted in parts of so much expected time, because a
            watchdog, the system's own drawing or a user's Ctrl-C would wait for longer ones; None:
            in one part.
    """

    storage: str
    max_texels: int | None
    specialize: Mapping[str, Sequence[str]]
    avoid_recompile_padding: bool
    tuning: Tuning
    features: tuple[str, ...]
    speed: Speed
    winograd: bool
    ceiling: Ceiling | None
    loop_limit: int | None
    maps_files: bool
    submission_seconds: float | None


def policy_from(profile: Profile | Entry) -> Policy:
    """The policy of a driver profile, or of an entry that sets every field."""
    fields = profile.fields
    ceiling = fields.get("ceiling")
    tiles = tuple((tile, rate) for tile in (*dict(Tuning().tiles), *WIDE_TILES)
                  if (rate := fields["tiles"].get(f"{tile[0]}x{tile[1]}")))
    of_tuning = {name: fields[name] for name in (
        "lanes", "wide_depthwise", "tall_depthwise", "min_groups", "reads_ahead", "shares",
        "float_products", "registers", "winograd_parts")}
    of_policy = {name: fields[name] for name in (
        "storage", "max_texels", "specialize", "avoid_recompile_padding", "winograd", "loop_limit",
        "maps_files", "submission_seconds")}
    return Policy(
        **of_policy, features=tuple(fields["features"]), speed=Speed(**fields["speed"]),
        tuning=Tuning(tiles=tiles, **of_tuning,
                      winograd_times=WinogradTimes(**fields["winograd_times"])),
        ceiling=ceiling and Ceiling(
            **ceiling, why="the best of large products, measured on " + fields["measured"]))


_override: Policy | None = None


@contextmanager
def overridden(policy: Policy) -> Iterator[None]:
    """In this context devices are used as `policy` says, whatever their profiles say; to
    measure."""
    global _override
    before, _override = _override, policy
    try:
        yield
    finally:
        _override = before


def policy_of(info) -> Policy:
    """How a device (`vkrt.DeviceInfo`) is used (InputError: a file of the user's is no entry)."""
    return _override or policy_from(profile_of(info))


def skipped_passes(fusions: str) -> frozenset[str]:
    """Names of the passes that the option leaves out one by one: "no-simplify,no-fuse_padding"
    (InputError: it is neither "on" nor "off" nor a list of such names)."""
    if fusions in FUSIONS:
        return frozenset()
    words = fusions.split(",") if isinstance(fusions, str) else []
    if not words or not all(word.startswith(WITHOUT) for word in words):
        raise InputError(f"fusions={fusions!r}: expected one of {', '.join(FUSIONS)}, or names of "
                         f"passes with {WITHOUT!r} in front and commas between")
    return frozenset(word.removeprefix(WITHOUT) for word in words)


def target_of(info, storage: str = "auto", winograd: str = "auto", fusions: str = "on",
              enabled: Set[str] | None = None, refused: Iterable[str] = ()) -> Target:
    """The target that command lists for a device are made for.

    Args:
        info: the device's description (`vkrt.DeviceInfo`).
        storage, winograd, fusions: see `vkrt.load`.
        enabled: names of the features that are enabled in the device (`Device.features`); by
            default all that it has.
        refused: names of the shader variants that its driver does not compile.

    Raises:
        InputError: unknown storage or fusions, or a file in the user's folder that is no entry.
    """
    if storage not in ("auto", *STORAGES):
        raise InputError(f"storage={storage!r}: expected 'auto' or one of {', '.join(STORAGES)}")
    policy = policy_of(info)
    scratch = {"auto": "spare" if policy.winograd else "none", "off": "none", "always": "any"}
    limits = info.limits
    if enabled is None:
        enabled = {name for name, has in info.features.items() if has}
    features = {name for name in policy.features if enabled >= set(FEATURES[name])}
    tuning = policy.tuning
    if "shuffle" in features and limits["subgroupSize"] < LANES:
        features.remove("shuffle")
    if "shuffle" not in features:
        tuning = replace(tuning, tiles=tuple(entry for entry in tuning.tiles
                                             if entry[0] not in WIDE_TILES))
    return Target(
        storage=policy.storage if storage == "auto" else storage,
        max_texels=policy.max_texels or limits["maxTexelBufferElements"],
        max_buffer_range=limits["maxStorageBufferRange"],
        max_weight=min(limits["maxStorageBufferRange"], limits["maxMemoryAllocationSize"]),
        max_image_extent=limits["maxImageDimension3D"],
        max_groups=limits["maxComputeWorkGroupCount"][0],
        max_invocations=min(limits["maxComputeWorkGroupInvocations"],
                            limits["maxComputeWorkGroupSize"][0]),
        max_shared=limits["maxComputeSharedMemorySize"],
        offset_alignment=max(limits["minStorageBufferOffsetAlignment"],
                             limits["minTexelBufferOffsetAlignment"], 16),
        loop_limit=policy.loop_limit, scratch=scratch[winograd],
        fuses=fusions != "off", skipped=skipped_passes(fusions), tuning=tuning,
        speed=policy.speed, features=frozenset(features), refused=frozenset(refused))
