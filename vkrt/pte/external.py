"""`.ptd` files: constants that were exported apart from the program.

A flatbuffer (identifier "FT01") with a header ("FH01") put in after the identifier, followed by
segments. Its offsets count from byte 0 of the file, as in a program.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import unpack_from

from vkrt.errors import FormatError
from vkrt.pte.dtype import MAX_RANK, SCALAR_TYPES
from vkrt.pte.flatbuffer import Buffer, Table
from vkrt.pte.segments import read_named_data, read_segments
from vkrt.pte.span import Span, byte_view, fail, show

IDENTIFIER = b"FT01"
HEADER_MAGIC = b"FH01"
HEADER_OFFSET = 8
HEADER_LENGTH = 40


@dataclass(frozen=True, slots=True)
class ExternalData:
    """Named bytes of a `.ptd` file."""

    span: Span
    source: int = 1  # number of the file, in the order given (0 is the program)
    layout: tuple[str, tuple[int, ...]] | None = None  # (dtype, sizes), where the file says so


@dataclass(frozen=True, slots=True)
class External:
    """Everything in the `.ptd` files of a program: their names in order, and the data by key."""

    files: tuple[str, ...] = ()
    named: dict[str, ExternalData] = field(default_factory=dict)

    def find(self, key: str, what: str, at: int | None = None) -> ExternalData:
        """The data with this key, which `what` at this file offset needs (FormatError: no file has
        it)."""
        if key in self.named:
            return self.named[key]
        hint = (f"none of the data files has it ({', '.join(self.files)})" if self.files
                else "its data may be in a .ptd file: pass that as data_path")
        where = what if at is None else f"{what} at file offset {at}"
        raise FormatError(f"{where}: expected a key of the program's named_data or of a data file, "
                          f"got {show(key)}, which is not there; {hint}")


def read_external(data: object, source: int = 1) -> dict[str, ExternalData]:
    """The named bytes of one `.ptd` file, by key (FormatError)."""
    with byte_view(data) as view:
        flatbuffer_size, area = _read_header(view)
        with view[:flatbuffer_size] as flatbuffer:
            root = Buffer(flatbuffer).root("FlatTensor", IDENTIFIER)
            return {key: ExternalData(span, source, _read_layout(table)) for key, span, table
                    in read_named_data(root, 2, read_segments(root, 1, area))}


def read_externals(program: object, named_data: dict[str, Span],
                   files: Sequence[tuple[str, object]]) -> External:
    """The data of several `.ptd` files together.

    A key may be in more than one file, or in the program too, if its bytes are the same there.

    Args:
        program: the bytes of the program.
        named_data: Program.named_data.
        files: (name, bytes) in the order of their source numbers.

    Raises:
        FormatError: a byte is not what the format allows, or a key has different bytes in two
            files; the message begins with the file's name.
    """
    everything = [("the program", program), *files]
    named = {key: ExternalData(span, 0) for key, span in named_data.items()}
    for source, (name, data) in enumerate(files, 1):
        try:
            found = read_external(data, source)
        except FormatError as error:
            raise FormatError(f"{name}: {error}") from error
        for key, entry in found.items():
            other = named.setdefault(key, entry)
            if other is not entry and _bytes(everything, other) != _bytes(everything, entry):
                raise FormatError(f"{name}: key {show(key)} has {entry.span.nbytes} bytes here and "
                                  f"other ones ({other.span.nbytes} bytes) in "
                                  f"{everything[other.source][0]}; expected the same bytes "
                                  "wherever a key is")
    return External(tuple(name for name, _ in files),
                    {key: entry for key, entry in named.items() if entry.source})


def _bytes(files: Sequence[tuple[str, object]], entry: ExternalData) -> memoryview:
    view = byte_view(files[entry.source][1])
    return view[entry.span.offset:entry.span.end]


def _read_layout(named: Table) -> tuple[str, tuple[int, ...]] | None:
    table = named.table(2, "tensor_layout", "TensorLayout")
    if table is None:
        return None
    scalar_type = table.i8(0, "scalar_type")
    if scalar_type not in SCALAR_TYPES:
        table.fail(0, "scalar_type", "an element type", scalar_type)
    sizes = table.numbers(1, "sizes", "i", MAX_RANK)
    if min(sizes, default=0) < 0:
        table.fail(1, "sizes", "sizes that are not negative", sizes)
    order = table.numbers(2, "dim_order", "B", MAX_RANK)
    if order != tuple(range(len(sizes))):
        table.fail(2, "dim_order", f"0 to {len(sizes) - 1} in order: row-major data", order)
    return SCALAR_TYPES[scalar_type], sizes


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
