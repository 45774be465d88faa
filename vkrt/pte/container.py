"""The `.pte` container: file header, root table, segments.

A program is a flatbuffer (identifier "ET12") with an extended header ("eh00") put in after the
identifier, followed by segments. The header gives the size of the flatbuffer and where segments
start. Files without segments may lack it. Only the flatbuffer's pages are read here.
"""

from dataclasses import dataclass
from struct import unpack_from

from vkrt.errors import UnsupportedError
from vkrt.pte.flatbuffer import Buffer, Table
from vkrt.pte.plan import ExecutionPlan, read_plan
from vkrt.pte.segments import Storage, read_named_data, read_segments, read_subsegments
from vkrt.pte.span import Span, byte_view, fail

IDENTIFIER = b"ET12"
BUNDLED_IDENTIFIER = b"BP08"
HEADER_MAGIC = b"eh00"
HEADER_OFFSET = 8
VERSION = 0


@dataclass(frozen=True, slots=True)
class Program:
    """A whole `.pte` file.

    Attributes:
        version: schema version, always 0 so far.
        plans: one per method.
        named_data: key -> bytes. Constants of delegates are found here.
        constants: where program-level constants start, by data_buffer_idx; each span runs to the
            end of its segment. Entry 0 is reserved. `TensorMeta.constant` has exact lengths.
        mutable: the same for initial data of mutable tensors, in groups.
        nbytes: size of the file.
    """

    version: int
    plans: tuple[ExecutionPlan, ...]
    named_data: dict[str, Span]
    constants: tuple[Span, ...]
    mutable: tuple[tuple[Span, ...], ...]
    nbytes: int

    def plan(self, name: str) -> ExecutionPlan | None:
        return next((plan for plan in self.plans if plan.name == name), None)


def read_program(data: object) -> Program:
    """Read a `.pte` file from bytes, a mapping or a memoryview.

    The result holds offsets only, no reference to `data`.

    Raises:
        FormatError: a byte is not what the format allows.
        UnsupportedError: a bundled program, a newer schema, an element type without support.
    """
    with byte_view(data) as view:
        flatbuffer_size, area = _read_header(view)
        with view[:flatbuffer_size] as flatbuffer:
            root = Buffer(flatbuffer).root("Program", IDENTIFIER)
            return _read_root(root, area, len(view))


def _read_root(root: Table, area: Span, nbytes: int) -> Program:
    version = root.u32(0, "version")
    if version != VERSION:
        raise UnsupportedError(f"the program has schema version {version}; only {VERSION} is known")
    storage = _read_storage(root, area)
    plans = tuple(read_plan(table, storage)
                  for table in root.tables(1, "execution_plan", "ExecutionPlan"))
    names = [plan.name for plan in plans]
    if len(set(names)) != len(names):
        root.fail(1, "execution_plan", "methods with different names", names)
    return Program(
        version=version,
        plans=plans,
        named_data={key: span for key, span, _ in read_named_data(root, 7, storage.segments)},
        constants=storage.constants,
        mutable=storage.mutable,
        nbytes=nbytes,
    )


def _read_header(view: memoryview) -> tuple[int, Span]:
    """Size of the flatbuffer, and the area where segments lie (empty when there are none)."""
    size = len(view)
    if size < 8:
        fail("file", 0, "at least 8 bytes", f"{size} bytes")
    if view[4:8] == BUNDLED_IDENTIFIER:
        raise UnsupportedError("the file is a bundled program (identifier BP08: a program with its "
                               "test cases); export the program itself (identifier ET12)")
    if view[HEADER_OFFSET:HEADER_OFFSET + 4] != HEADER_MAGIC:
        return size, Span(size, 0)
    if size < HEADER_OFFSET + 24:
        fail("header", HEADER_OFFSET, "24 bytes", f"{size - HEADER_OFFSET} bytes")
    length, flatbuffer_size, base = unpack_from("<IQQ", view, HEADER_OFFSET + 4)
    if length < 24 or HEADER_OFFSET + length > size:
        fail("header.length", HEADER_OFFSET + 4, f"24 to {size - HEADER_OFFSET}", length)
    if not HEADER_OFFSET + length <= flatbuffer_size <= size:
        fail("header.program_size", HEADER_OFFSET + 8,
             f"{HEADER_OFFSET + length} to {size}, the size of the file", flatbuffer_size)
    if base == 0:
        return flatbuffer_size, Span(size, 0)
    if not flatbuffer_size <= base <= size:
        fail("header.segment_base_offset", HEADER_OFFSET + 16,
             f"0, or {flatbuffer_size} to {size}, the size of the file", base)
    nbytes = size - base
    if length >= 32:  # files of 0.7 and older do not have this field
        nbytes = unpack_from("<Q", view, HEADER_OFFSET + 24)[0]
        if nbytes > size - base:
            fail("header.segment_data_size", HEADER_OFFSET + 24,
                 f"at most the {size - base} bytes that the file has there (is it cut off?)",
                 nbytes)
    return flatbuffer_size, Span(base, nbytes)


def _read_storage(root: Table, area: Span) -> Storage:
    segments = read_segments(root, 4, area)
    constants: tuple[Span, ...] = ()
    table = root.table(5, "constant_segment", "SubsegmentOffsets")
    if table:
        constants = read_subsegments(table, segments)
    if not constants:  # files from before September 2024 have them inside the flatbuffer
        constants = tuple(item.blob(0, "storage")
                          for item in root.tables(2, "constant_buffer", "Buffer"))
    return Storage(
        segments=segments,
        constants=constants,
        mutable=tuple(read_subsegments(item, segments) for item in
                      root.tables(6, "mutable_data_segments", "SubsegmentOffsets")),
        inline=tuple(item.blob(0, "data") for item in
                     root.tables(3, "backend_delegate_data", "BackendDelegateInlineData")),
    )
