"""The files of a program: the program's own, then those with its external data (`.ptd`)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from vkrt import pte
from vkrt.dataclass import dataclass
from vkrt.errors import FormatError
from vkrt.memory.source import Source

# Bytes hashed at once.
_PART = 4 << 20
_SHA256 = re.compile("[0-9a-f]{64}")


def _open(source: Any) -> Source:
    if isinstance(source, Source):
        return source
    wrap = isinstance(source, (bytes, bytearray, memoryview))
    return Source.wrap(source) if wrap else Source.open(source)


def data_files(data_path: Any) -> tuple[Any, ...]:
    """What `data_path=` of `vkrt.load` stands for: none, one, or several paths (or bytes)."""
    if data_path is None:
        return ()
    if isinstance(data_path, (str, bytes, bytearray, memoryview, os.PathLike)):
        return (data_path,)
    return tuple(data_path)


@dataclass
class Files:
    """A program and its external data, opened and read as far as names go.

    Attributes:
        sources: the program's first, then the data files in the order given.
        program: what the program's file says.
        external: the named data of the data files.
    """

    sources: tuple[Source, ...]
    program: pte.Program
    external: pte.External

    @classmethod
    def open(cls, source: Any, data_path: Any = None) -> Files:
        """Opens and reads the files.

        Args:
            source: path of the program, or its bytes.
            data_path: path of a `.ptd` file, or its bytes, or several of those.

        Raises:
            OSError: a file cannot be read.
            FormatError: a file is damaged, or two of them differ about a key.
            UnsupportedError: the program is of a kind that is not supported.
        """
        sources: list[Source] = []
        try:
            for item in (source, *data_files(data_path)):
                sources.append(_open(item))
            program = pte.read_program(sources[0])
            external = pte.read_externals(sources[0], program.named_data,
                                          [(s.name, s) for s in sources[1:]])
        except BaseException:
            _close(sources)
            raise
        return cls(tuple(sources), program, external)

    def close(self) -> None:
        """Lets go of the files."""
        _close(self.sources)


def _close(sources: Sequence[Source]) -> None:
    for source in sources:
        source.close()


def verify(source: Any, data_path: Any = None) -> int:
    """Reads all named data of a program and its data files and compares it with its names.

    The exporter names a constant of a Vulkan delegate by the sha256 of its bytes; other names are
    not looked at. Loading does not do this: it would read every byte of files that are mapped.

    Args:
        source, data_path: as `vkrt.load` has them.

    Returns:
        How many constants were compared.

    Raises:
        OSError: a file cannot be read.
        FormatError: a constant is damaged, with the names of all that are; or a file is.
    """
    files = Files.open(source, data_path)
    try:
        named = [(key, 0, span) for key, span in files.program.named_data.items()]
        named += [(key, entry.source, entry.span) for key, entry in files.external.named.items()]
        named = [entry for entry in named if _SHA256.fullmatch(entry[0])]
        damaged = [f"{key} in {files.sources[number].name}" for key, number, span in named
                   if sha256_of(files.sources[number], span) != key]
    finally:
        files.close()
    if damaged:
        raise FormatError(f"{len(damaged)} of {len(named)} constants do not have the bytes that "
                          f"their names say: {', '.join(damaged)}")
    return len(named)


def sha256_of(source: Source, span: pte.Span | None = None) -> str:
    """The sha256 of some bytes of a source, or of all, in hexadecimal; gives the pages back behind
    it."""
    import hashlib  # with OpenSSL behind it: only where it is needed

    span = span or pte.Span(0, source.nbytes)
    digest = hashlib.sha256()
    with memoryview(source) as data:
        for start in range(span.offset, span.end, _PART):
            nbytes = min(_PART, span.end - start)
            digest.update(data[start:start + nbytes])
            source.release(start, nbytes)
    return digest.hexdigest()
