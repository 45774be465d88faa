"""The file of packed weights (`.vkpack`), as bytes.

    magic "vkrtpack", u32 version, u32 bytes of JSON, sha256 of the JSON       (little-endian)
    JSON, spaces behind it up to a whole page
    payload: weights, each exactly as its buffer holds it, zeros behind it; whole pages

The JSON says what it was made of and by which vkrt, and where each weight is. A weight of a page or
more begins at a page, so that reading one touches no page of another; smaller ones share pages and
begin at the largest alignment that Vulkan lets a device ask for.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from vkrt.dataclass import dataclass
from vkrt.errors import FormatError, UnsupportedError
from vkrt.plan.arena import round_up

MAGIC = b"vkrtpack"
FORMAT_VERSION = 1
PAGE = 4096
ALIGNMENT = 256
# Room for about 80,000 weights.
MOST_JSON_BYTES = 16 << 20

_PREFIX = struct.Struct("<8sII32s")


@dataclass(frozen=True)
class FileIdentity:
    """Which file the weights come from: bytes, time of the last change, sha256 in hexadecimal."""

    nbytes: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """One weight in the payload.

    Attributes:
        key: what it is made of and how, see `vkrt.packed.records.key_of`.
        offset: from the start of the payload, in bytes.
        nbytes: of the weight, without the zeros behind it.
        crc32: of these bytes. Loading does not look at it: that would read all of them.
        name: for messages.
    """

    key: str
    offset: int
    nbytes: int
    crc32: int
    name: str


@dataclass(frozen=True)
class Header:
    """Everything about a file of packed weights but the weights.

    Attributes:
        vkrt: version of vkrt that wrote it.
        layout: `vkrt.ops.copying.LAYOUT_VERSION` of that.
        device, storage: what it was made for, for messages: keys decide what fits.
        sources: the program's file, then its external data.
        payload_bytes: of the payload, zeros included.
        entries: the weights, by offset.
    """

    vkrt: str
    layout: int
    device: str
    storage: str
    sources: tuple[FileIdentity, ...]
    payload_bytes: int
    entries: tuple[Entry, ...]


def places_of(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Offsets in the payload of weights of these sizes, and the bytes of the payload."""
    offsets, end = [], 0
    for nbytes in sizes:
        end = round_up(end, PAGE if nbytes >= PAGE else ALIGNMENT)
        offsets.append(end)
        end += nbytes
    return offsets, round_up(end, PAGE)


def header_bytes(header: Header) -> bytes:
    """The bytes in front of the payload: whole pages, as many whatever the checksums are.

    Raises:
        UnsupportedError: there are too many weights.
    """
    data = asdict(header)
    for entry in data["entries"]:
        entry["crc32"] = f"{entry['crc32']:08x}"
    text = json.dumps(data, separators=(",", ":")).encode("ascii")
    text = text.ljust(round_up(_PREFIX.size + len(text), PAGE) - _PREFIX.size)
    if len(text) > MOST_JSON_BYTES:
        raise UnsupportedError(f"{len(header.entries)} weights need a header of {len(text):,} "
                               f"bytes; at most {MOST_JSON_BYTES:,} are possible")
    return _PREFIX.pack(MAGIC, FORMAT_VERSION, len(text), _sha256(text)) + text


def read_header(data: memoryview) -> tuple[Header, int]:
    """The header of a file of packed weights, and where its payload starts. Reads no payload.

    Args:
        data: the whole file.

    Raises:
        FormatError: it is not such a file, or a byte of it is not what the format allows.
    """
    if len(data) < _PREFIX.size or bytes(data[:len(MAGIC)]) != MAGIC:
        raise FormatError("it is not a file of packed weights")
    _, version, length, digest = _PREFIX.unpack_from(data)
    if version != FORMAT_VERSION:
        raise FormatError(f"its format has version {version}; only {FORMAT_VERSION} is known")
    start = _PREFIX.size + length
    if length > MOST_JSON_BYTES or start > len(data) or start % PAGE:
        raise FormatError(f"it has {len(data)} bytes and a header of {length} (is it cut off?)")
    text = bytes(data[_PREFIX.size:start])
    if _sha256(text) != digest:
        raise FormatError("its header is damaged: the checksum is another")
    header = _header(_json(text))
    if start + header.payload_bytes != len(data):
        raise FormatError(f"it has {len(data)} bytes, its header says "
                          f"{start + header.payload_bytes} (is it cut off?)")
    for entry in header.entries:
        if entry.offset % ALIGNMENT or entry.offset + entry.nbytes > header.payload_bytes:
            raise FormatError(f"{entry.name}: bytes {entry.offset} to "
                              f"{entry.offset + entry.nbytes} of a payload of "
                              f"{header.payload_bytes}, which have to begin at a multiple of "
                              f"{ALIGNMENT}")
    return header, start


def _json(text: bytes) -> Any:
    try:
        return json.loads(text.decode("ascii"), parse_int=_short_int)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"its header is not JSON ({error})") from error


def _short_int(digits: str) -> int:
    if len(digits) > 19:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _header(data: Any) -> Header:
    sources = tuple(
        FileIdentity(_count(item, "nbytes"), _field(item, "mtime_ns", int),
                     _field(item, "sha256", str)) for item in _field(data, "sources", list))
    entries = tuple(
        Entry(_field(item, "key", str), _count(item, "offset"), _count(item, "nbytes"),
              _crc(item), _field(item, "name", str)) for item in _field(data, "entries", list))
    return Header(_field(data, "vkrt", str), _field(data, "layout", int),
                  _field(data, "device", str), _field(data, "storage", str), sources,
                  _count(data, "payload_bytes"), entries)


def _field(table: Any, name: str, kind: type) -> Any:
    value = table.get(name) if isinstance(table, dict) else None
    if type(value) is not kind:  # True is no number here
        raise FormatError(f"its header has {str(value)[:40]!r} as {name!r}, expected "
                          f"{kind.__name__}")
    return value


def _count(table: Any, name: str) -> int:
    value = _field(table, name, int)
    if value < 0:
        raise FormatError(f"its header has {value} as {name!r}, expected no negative number")
    return value


def _crc(table: Any) -> int:
    text = _field(table, "crc32", str)
    try:
        return int(text, 16)
    except ValueError as error:
        raise FormatError(f"its header has {text[:40]!r} as 'crc32', expected a hexadecimal "
                          "number") from error


def _sha256(text: bytes) -> bytes:
    import hashlib  # with OpenSSL behind it: only where it is needed

    return hashlib.sha256(text).digest()
