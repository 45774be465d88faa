"""Mapped weights: the mapping of a program's file imported into the device, window by window.

An import takes no device memory. A window holds neighbouring weights, as many as the driver allows
in one import, and begins and ends at pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vkrt.device.policy import policy_of
from vkrt.errors import DeviceMemoryError, UnsupportedError, VulkanError
from vkrt.executable.executable import Executable
from vkrt.executable.formats import BUFFER_USAGE
from vkrt.executable.weights import WeightRead
from vkrt.runtime.map_probe import reads_files, why_none, why_not, windows_of
from vkrt.vk.imported import HostImport

if TYPE_CHECKING:
    from vkrt.work.weights import Weight


class Mapper:
    """Which weights of a method can be read in place, and the imports they are read through.

    Args:
        device: an open device.
        sources: `Source`s by number.
        offset_alignment: bytes that a weight's offset in its import must be a multiple of.
        trusts: maps files even if neither a measurement nor a probe shows that the driver reads the
            pages of files in place.

    Attributes:
        lacked_memory: whether an import was refused for lack of memory; a later one may succeed.
    """

    def __init__(self, device: Any, sources: Sequence[Any], offset_alignment: int,
                 trusts: bool = False):
        self._device = device
        self._sources = sources
        self._offset_alignment = offset_alignment
        is_known = policy_of(device.info).maps_files  # measured, whatever the driver says
        self._trusts = trusts or is_known
        self._none = why_none(device, is_known)
        self._refused: dict[int, str] = {}
        self.lacked_memory = False
        self._imports: list[tuple[int, int, HostImport]] = []  # source, offset of its start

    def cannot_map(self, weight: Weight | WeightRead) -> str:
        """Why a weight cannot be mapped, or "". In its file it has the layout that kernels read."""
        if self._none:
            return self._none
        source = self._sources[weight.source]
        if not source.is_file:
            return "the program is in memory, not in a file"
        if weight.source in self._refused:
            return self._refused[weight.source]
        if not weight.nbytes:
            return "it is empty"
        # Last, because this is a probe the first time with a driver.
        return (why_not(self._device, source, weight.offset, weight.nbytes, weight.tail,
                        self._offset_alignment)
                or self._distrusted(source))

    def _distrusted(self, source: Any) -> str:
        if self._trusts:
            return ""
        if reads_files(self._device, source):
            return ""
        return ("a probe did not show that this driver reads the pages of files in place "
                "(weights='map' insists)")

    def acquire(self, weights: Sequence[WeightRead]) -> None:
        """Imports the windows of the files that hold these weights.

        If the driver refuses, `UnsupportedError` is raised. `cannot_map` then gives that reason for
        all weights of the file.
        """
        for source, mapping in enumerate(self._sources):
            parts = sorted((w.offset, w.nbytes + w.tail) for w in weights if w.source == source)
            for start, end in windows_of(self._device, mapping, parts):
                try:
                    made = HostImport(self._device, mapping.address + start, end - start,
                                      BUFFER_USAGE, memoryview(mapping))
                except (VulkanError, UnsupportedError) as error:
                    self.lacked_memory |= isinstance(error, DeviceMemoryError)
                    self._refused[source] = f"the driver refuses the import ({error})"
                    self.close()
                    raise UnsupportedError(self._refused[source]) from error
                self._imports.append((source, start, made))

    def place(self, weight: WeightRead) -> tuple[Any, int]:
        """(buffer, offset in bytes) where the device reads a weight that was acquired."""
        end = weight.offset + weight.nbytes + weight.tail
        for source, start, made in self._imports:
            # Windows share a page where the first part of one begins behind the last of another.
            if source == weight.source and start <= weight.offset and end <= start + made.size:
                return made.buffer, weight.offset - start
        raise LookupError(f"{weight.name} was not acquired")

    def close(self) -> None:
        """Ends the imports; the device must be done with them."""
        for _, _, made in self._imports:
            made.close()
        self._imports = []


def mapper_of(executable: Executable, device: Any, sources: Sequence[Any], trusts: bool) -> Mapper:
    """The imports of the weights that an executable has mapped; see `Mapper` for the arguments.

    Raises:
        UnsupportedError: the device does not read a weight in its file.
    """
    mapper = Mapper(device, sources, executable.offset_alignment, trusts)
    weights = executable.weights.mapped
    try:
        for weight in weights:
            if why := mapper.cannot_map(weight):
                raise UnsupportedError(f"{weight.name} cannot be read in its file: {why}")
        mapper.acquire(weights)
    except BaseException:
        mapper.close()
        raise
    return mapper
