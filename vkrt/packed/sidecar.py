"""The file of packed weights beside a program: found, checked, and used or ignored.

What does not fit, or is damaged, is never an error: weights are packed as if there were no such
file, and the work list's notes say why.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from vkrt.dataclass import replace
from vkrt.errors import FormatError
from vkrt.files import packed_beside, sha256_of
from vkrt.memory.source import Source
from vkrt.ops.copying import LAYOUT_VERSION
from vkrt.packed.format import FileIdentity, Header, read_header
from vkrt.packed.records import with_saved
from vkrt.version import __version__
from vkrt.work.records import WorkList


def identity_of(source: Source) -> FileIdentity:
    """Which file a source is; reads all of it."""
    return FileIdentity(source.nbytes, source.mtime_ns, sha256_of(source))


class Sidecar:
    """A file of packed weights, or the reason why it is not used.

    Attributes:
        name: of the file; "" where there is none and none was asked for.
        why: why it is not used; "" where it is.
        header: what it says about itself; None where it is not used.
    """

    def __init__(self, name: str = "", why: str = ""):
        self.name = name
        self.why = why
        self.header: Header | None = None
        self._source: Source | None = None
        self._start = 0

    @classmethod
    def find(cls, option: str | os.PathLike[str], sources: Sequence[Source]) -> Sidecar:
        """The file of packed weights for a program.

        Reads the header only; and where a file of the program has another time of change than when
        the weights were packed, all of that file, to compare its sha256.

        Args:
            option: "auto" (the one beside the program, if there is one), "off", or a path.
            sources: the program's, then its external data.
        """
        if option == "off" or option == "auto" and not sources[0].is_file:
            return cls()
        name = packed_beside(sources[0].name) if option == "auto" else os.fspath(option)
        if not os.path.isfile(name):
            return cls() if option == "auto" else cls(name, "there is no such file")
        found = cls(name)
        try:
            found._open(sources)
        except (FormatError, OSError) as error:
            found.close()
            found.why = str(error)
        return found

    def _open(self, sources: Sequence[Source]) -> None:
        """Raises FormatError or OSError with the reason not to use it."""
        self._source = Source.open(self.name)
        with memoryview(self._source) as data:
            header, self._start = read_header(data)
        if (header.vkrt, header.layout) != (__version__, LAYOUT_VERSION):
            raise FormatError(f"it was made by vkrt {header.vkrt} (layouts {header.layout}), this "
                              f"is {__version__} ({LAYOUT_VERSION})")
        if [made.nbytes for made in header.sources] != [source.nbytes for source in sources]:
            raise FormatError("it was made for a program of another size")
        for made, source in zip(header.sources, sources):
            same_time = source.is_file and made.mtime_ns == source.mtime_ns
            if not same_time and made.sha256 != sha256_of(source):
                raise FormatError(f"{source.name} has changed since")
        self.header = header

    def apply(self, work: WorkList, sources: Sequence[Source]) -> tuple[WorkList, list[Source]]:
        """A work list that takes from this file what it has, and the sources it then reads."""
        if not self.name:
            return work, list(sources)
        why = self.why or self._changed()
        if self.header is not None and self._source is not None and not why:
            saved = {entry.key: (self._start + entry.offset, entry.nbytes)
                     for entry in self.header.entries}
            result, count = with_saved(work, saved, len(sources))
            if count:
                left = sum(weight.layout == "packed" for weight in result.catalog)
                note = (f"{count} weights are read from {self.name}"
                        + (f", {left} others have to be packed" if left else ""))
                return _noted(result, note), [*sources, self._source]
            why = (f"none of its {len(saved)} weights is laid out as it is read here (made for "
                   f"storage {self.header.storage}, this is {work.storage})")
        return _noted(work, f"{self.name} is not used: {why}"), list(sources)

    def _changed(self) -> str:
        """Why a file that was good when it was opened is so no more."""
        try:
            if self._source is not None:
                self._source.check_unchanged()
        except FormatError as error:
            return str(error)
        return ""

    def damaged(self) -> list[str]:
        """Names of the weights whose bytes are not those that were saved; reads all of them.

        For a file that is used (`why` is "").
        """
        if self.header is None or self._source is None:
            raise ValueError(f"{self.name} is not open: {self.why}")
        import zlib  # which loads do not need

        result = []
        with memoryview(self._source) as data:
            for entry in self.header.entries:
                start = self._start + entry.offset
                if zlib.crc32(data[start:start + entry.nbytes]) != entry.crc32:
                    result.append(entry.name)
        return result

    def close(self) -> None:
        """Lets go of the file; may be called twice."""
        if self._source is not None:
            self._source.close()
            self._source = None
            self.header = None


def _noted(work: WorkList, note: str) -> WorkList:
    return replace(work, notes=(*work.notes, note))
