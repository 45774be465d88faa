"""`.ptd` files: constants that were exported apart from the program.

A flatbuffer (identifier "FT01") with a header ("FH01") put in after the identifier, followed by
segments. Its offsets count from byte 0 of the file, as in a program.
"""

from struct import unpack_from

from vkrt.pte.flatbuffer import Buffer
from vkrt.pte.segments import read_named_data, read_segments
from vkrt.pte.span import Span, byte_view, fail

IDENTIFIER = b"FT01"
HEADER_MAGIC = b"FH01"
HEADER_OFFSET = 8
HEADER_LENGTH = 40


def read_external(data: object) -> dict[str, Span]:
    """The named bytes of a `.ptd` file: key -> span of that file."""
    with byte_view(data) as view:
        flatbuffer_size, area = _read_header(view)
        with view[:flatbuffer_size] as flatbuffer:
            root = Buffer(flatbuffer).root("FlatTensor", IDENTIFIER)
            return read_named_data(root, 2, read_segments(root, 1, area))


def _read_header(view: memoryview) -> tuple[int, Span]:
    """Where the flatbuffer ends, and the area where segments lie."""
    size = len(view)
    if size < HEADER_OFFSET + HEADER_LENGTH:
        fail("file", 0, f"at least {HEADER_OFFSET + HEADER_LENGTH} bytes", f"{size} bytes")
    magic = bytes(view[HEADER_OFFSET:HEADER_OFFSET + 4])
    if magic != HEADER_MAGIC:
        fail("header.magic", HEADER_OFFSET, repr(HEADER_MAGIC), magic)
    length, start, nbytes, base, segment_bytes = unpack_from("<IQQQQ", view, HEADER_OFFSET + 4)
    if length < HEADER_LENGTH:
        fail("header.length", HEADER_OFFSET + 4, f"at least {HEADER_LENGTH}", length)
    if start + nbytes > size:
        fail("header.flatbuffer_size", HEADER_OFFSET + 16,
             f"a flatbuffer inside the file's {size} bytes", f"{nbytes} bytes at {start}")
    if base + segment_bytes > size:
        fail("header.segment_data_size", HEADER_OFFSET + 32,
             f"segments inside the file's {size} bytes", f"{segment_bytes} bytes at {base}")
    return start + nbytes, Span(base, segment_bytes)
