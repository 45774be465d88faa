"""OpenDevice: what the compiler asks of a device that is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkrt.runtime.handles import requirements_of
from vkrt.runtime.mapping import Mapper
from vkrt.runtime.refusals import refused_by
from vkrt.vk.device import Device


class OpenDevice:
    """An open device to compile for.

    Args:
        device: the device.
        refused: the shader variants that were known to be refused when a program was loaded; by
            default those that are known now.

    Attributes:
        device: the device.
        info, features, unified, reads_slowly: as the device has them.
        requirements: of a storage, see `requirements_of`.
    """

    def __init__(self, device: Device, refused: tuple[str, ...] | None = None):
        self.device = device
        self._refused = refused
        self.info = device.info
        self.features = device.features
        self.unified = device.unified
        self.reads_slowly = device.reads_slowly
        self.requirements = requirements_of(device)

    @property
    def refused(self) -> tuple[str, ...]:
        """Names of the shader variants that its driver does not compile, as far as is known."""
        return refused_by(self.device) if self._refused is None else self._refused

    def mapper(self, sources: Sequence[Any], offset_alignment: int, trusts: bool) -> Mapper:
        """A `Mapper`: which weights the device reads in their files."""
        return Mapper(self.device, sources, offset_alignment, trusts)
