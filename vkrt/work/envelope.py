"""The envelope of what is kept in files: bytes with a checksum.

    magic of 8 bytes, u32 version, u32 bytes of the content, sha256 of it      (little-endian)
    the content
"""

from __future__ import annotations

import struct

from vkrt.digest import sha256
from vkrt.errors import FormatError

_PREFIX = struct.Struct("<8sII32s")
PREFIX_BYTES = _PREFIX.size


def seal(magic: bytes, version: int, content: bytes) -> bytes:
    """A content in its envelope."""
    return _PREFIX.pack(magic, version, len(content), sha256(content)) + content


def content_of(data: bytes | memoryview, magic: bytes, version: int, what: str,
               limit: int) -> tuple[bytes, int]:
    """What is in an envelope, and the bytes of the two together.

    Args:
        data: the file, which may go on behind them.
        what: what the file should be, for messages.
        limit: the most bytes of the content.

    Raises:
        FormatError: it is another file, or it is damaged.
    """
    if len(data) < PREFIX_BYTES or bytes(data[:len(magic)]) != magic:
        raise FormatError(f"it is not {what}")
    _, found, length, digest = _PREFIX.unpack_from(data)
    if found != version:
        raise FormatError(f"its format has version {found}; only {version} is known")
    end = PREFIX_BYTES + length
    if length > limit or end > len(data):
        raise FormatError(f"it has {len(data)} bytes and a header of {length} (is it cut off?)")
    content = bytes(data[PREFIX_BYTES:end])
    if sha256(content) != digest:
        raise FormatError("its header is damaged: the checksum is another")
    return content, end
