"""The file of packed weights (`.vkpack`), as bytes.

    envelope of `vkrt.work.plain` with the magic "vkrtpack", in whole pages: the `Header` as JSON,
    the checksums of weights in hexadecimal, spaces behind it
    payload: weights, each exactly as its buffer holds it, zeros behind it; whole pages

The JSON says what it was made of and by which vkrt, and where each weight is. A weight of a page or
more begins at a page, so that reading one touches no page of another; smaller ones share pages and
begin at the largest alignment that Vulkan lets a device ask for.
"""

from __future__ import annotations

from collections.abc import Sequence

from vkrt.dataclass import dataclass
from vkrt.errors import FormatError, UnsupportedError
from vkrt.hints import Any
from vkrt.work.envelope import PREFIX_BYTES, seal
from vkrt.work.plain import attributes, plain, read, text_of, unseal
from vkrt.work.tensor import round_up

MAGIC = b"vkrtpack"
FORMAT_VERSION = 1
PAGE = 4096
ALIGNMENT = 256
# Room for about 80,000 weights.
MAX_JSON_BYTES = 16 << 20


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
    text = text_of(plain(header, {Entry: lambda entry: {
        **plain(entry, {}), "crc32": f"{entry.crc32:08x}"}}))
    text = text.ljust(round_up(PREFIX_BYTES + len(text), PAGE) - PREFIX_BYTES)
    if len(text) > MAX_JSON_BYTES:
        raise UnsupportedError(f"{len(header.entries)} weights need a header of {len(text):,} "
                               f"bytes; at most {MAX_JSON_BYTES:,} are possible")
    return seal(MAGIC, FORMAT_VERSION, text)


def read_header(data: memoryview) -> tuple[Header, int]:
    """The header of a file of packed weights, and where its payload starts. Reads no payload.

    Args:
        data: the whole file.

    Raises:
        FormatError: it is not such a file, or a byte of it is not what the format allows.
    """
    text, start = unseal(data, MAGIC, FORMAT_VERSION, "a file of packed weights", MAX_JSON_BYTES)
    if start % PAGE:
        raise FormatError(f"its payload begins at byte {start}, not at a page")
    header: Header = read(Header, text, "its header", {Entry: _entry})
    if header.payload_bytes < 0 or start + header.payload_bytes != len(data):
        raise FormatError(f"it has {len(data)} bytes, its header says "
                          f"{start + header.payload_bytes} (is it cut off?)")
    for entry in header.entries:
        if (entry.offset < 0 or entry.nbytes < 0 or entry.offset % ALIGNMENT
                or entry.offset + entry.nbytes > header.payload_bytes):
            raise FormatError(f"{entry.name}: bytes {entry.offset} to "
                              f"{entry.offset + entry.nbytes} of a payload of "
                              f"{header.payload_bytes}, which have to begin at a multiple of "
                              f"{ALIGNMENT}")
    return header, start


def _entry(value: Any, where: str) -> Entry:
    """An entry, whose checksum is a text of one length."""
    text = value.get("crc32") if isinstance(value, dict) else None
    try:
        crc32 = int(text, 16) if isinstance(text, str) else None
    except ValueError:
        crc32 = None
    if crc32 is None:
        raise FormatError(f"{where} has no hexadecimal number as 'crc32'")
    return Entry(**attributes(Entry, {**value, "crc32": crc32}, where, {}))
