"""The files of a program: the program's own, then those with its external data (`.ptd`)."""

from __future__ import annotations

import os
import re
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any

from vkrt.errors import FormatError, UnsupportedError
from vkrt.memory.source import Source

if TYPE_CHECKING:
    from vkrt import pte

# Bytes hashed at once.
_PART = 4 << 20


def _open(source: Any) -> Source:
    if isinstance(source, Source):
        return source
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Source.wrap(source)
    if os.path.isdir(source):
        name = os.fsdecode(source)
        inside = sorted(found for found in os.listdir(name) if found.endswith(".pte"))
        raise FormatError(f"{name} is a folder: name a .pte file"
                          + (f" that it has ({', '.join(inside[:3])})" if inside else ""))
    return Source.open(source)


def _mistaken(source: Source, identifier: bytes) -> str:
    """What a file that cannot be read is, see `vkrt.files.kinds`."""
    from vkrt.files.kinds import HEAD_BYTES, mistaken  # for errors alone

    with memoryview(source) as data:
        return mistaken(source.name, bytes(data[:HEAD_BYTES]), identifier)


# What a compiled program begins with, see `vkrt.compiled.file`
COMPILED_MAGIC = b"vkrtexe\0"


def is_compiled(source: Any) -> bool:
    """Whether it is the path of a compiled program, by the first bytes of the file."""
    if not isinstance(source, (str, os.PathLike)) or not os.path.isfile(source):
        return False
    with open(source, "rb") as file:
        return file.read(len(COMPILED_MAGIC)) == COMPILED_MAGIC


def data_files(data_path: Any) -> tuple[Any, ...]:
    """What `data_path=` of `vkrt.load` stands for: none, one, or several paths (or bytes)."""
    if data_path is None:
        return ()
    if isinstance(data_path, (str, bytes, bytearray, memoryview, os.PathLike)):
        return (data_path,)
    return tuple(data_path)


class Files:
    """A program and its external data.

    The files are read when their content is first asked for. That raises FormatError if a file is
    damaged or two files have different bytes for a key, and UnsupportedError if the program is of a
    kind that is not supported.

    Args:
        source: path of the program, or its bytes.
        data_path: path of a `.ptd` file, or its bytes, or several of those.

    Attributes:
        sources: the program's first, then the data files in the order given.

    Raises:
        OSError: a file cannot be read.
    """

    def __init__(self, source: Any, data_path: Any = None):
        self.sources: tuple[Source, ...] = ()
        try:
            for item in (source, *data_files(data_path)):
                self.sources += (_open(item),)
        except BaseException:
            self.close()
            raise

    @cached_property
    def program(self) -> pte.Program:
        from vkrt import pte  # a cached plan does without it

        for source in self.sources:
            source.check_unchanged()
        source = self.sources[0]
        try:
            return pte.read_program(source)
        except (FormatError, UnsupportedError) as error:
            raise type(error)(_mistaken(source, b"ET12") or f"{source.name}: {error}") from error

    @cached_property
    def external(self) -> pte.External:
        from vkrt import pte

        named = self.program.named_data
        try:
            return pte.read_externals(self.sources[0], named,
                                      [(s.name, s) for s in self.sources[1:]])
        except FormatError as error:
            kinds = (_mistaken(s, b"FT01") for s in self.sources[1:] if s.name in str(error))
            raise FormatError(next(filter(None, kinds), str(error))) from error

    def read(self) -> None:
        """Reads everything; the files are closed where that fails."""
        try:
            _ = self.program, self.external
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Lets go of the files. Graphs stay usable for their metadata."""
        for source in self.sources:
            source.close()


def verify(source: Any, data_path: Any = None) -> int:
    """Reads all named data of a program and its data files and compares it with its names; returns
    how many constants were compared.

    The exporter names a constant of a Vulkan delegate by the sha256 of its bytes; other names are
    not looked at. Loading does not do this: it would read every byte of files that are mapped.

    Raises:
        OSError: a file cannot be read.
        FormatError: constants are damaged (the message names all of them), or a file is damaged.
    """
    with closing(Files(source, data_path)) as files:
        named = [(key, 0, span) for key, span in files.program.named_data.items()]
        named += [(key, entry.source, entry.span) for key, entry in files.external.named.items()]
        named = [entry for entry in named if re.fullmatch("[0-9a-f]{64}", entry[0])]
        damaged = [f"{key} in {files.sources[number].name}" for key, number, span in named
                   if _sha256_of(files.sources[number], span) != key]
    if damaged:
        raise FormatError(f"{len(damaged)} of {len(named)} constants do not have the bytes that "
                          f"their names say: {', '.join(damaged)}")
    return len(named)


def _sha256_of(source: Source, span: pte.Span) -> str:
    """The sha256 of some bytes of a source in hexadecimal; releases the pages that it has read."""
    import hashlib  # faster than `vkrt.memory.sha256`, and larger

    digest = hashlib.sha256()
    with memoryview(source) as data:
        for start in range(span.offset, span.end, _PART):
            nbytes = min(_PART, span.end - start)
            digest.update(data[start:start + nbytes])
            source.release(start, nbytes)
    return digest.hexdigest()
