"""The Vulkan delegate's blob: a header, a flatbuffer with the graph, sometimes constant bytes.

The header ("VH00" at byte 4 of the blob) places the flatbuffer ("VK00") and the constant bytes.
Since 1.0 constants are stored in the program's named data, or in a `.ptd` file, under the sha256
of their bytes; older blobs hold them behind the flatbuffer.
"""

from dataclasses import dataclass
from struct import unpack_from

from vkrt.pte.dtype import MAX_RANK, VK_DATATYPE_UNSET, VK_DATATYPES, Extent, nbytes_of
from vkrt.pte.external import External
from vkrt.pte.flatbuffer import Buffer, Table
from vkrt.pte.instruction import ids_below
from vkrt.pte.span import Span, byte_view, fail
from vkrt.pte.values import READERS, BoolList, DoubleList, kind_of

IDENTIFIER = b"VK00"
HEADER_LENGTH = 30
NOT_IN_BLOB = (1 << 64) - 1
BUFFER, TEXTURE_3D, TEXTURE_2D, DEFAULT = 0, 1, 2, 255
_STORAGES = {BUFFER, TEXTURE_3D, TEXTURE_2D, DEFAULT}
_LAYOUTS = {0, 1, 2, 3, 4, 5, 6, 8, 9, DEFAULT}


@dataclass(frozen=True, slots=True)
class VkTensor(Extent):
    """A tensor of the graph. Sizes are upper bounds where shapes are dynamic.

    Attributes:
        constant: index in VkGraph.constants, -1 for a tensor that is computed or an input.
        mem_obj: tensors of equal mem_obj >= 0 may share memory by the exporter's plan; -1 none.
        storage: 0 buffer, 1 3-D texture, 2 2-D texture, 255 unspecified: a hint.
        layout: 0 width, 1 height, 2 channels packed, 3 to 9 packed int8, 255 unspecified: a hint.
        staging_dtype: element type on the side of the host.
    """

    dtype: str
    sizes: tuple[int, ...]
    constant: int = -1
    mem_obj: int = -1
    storage: int = DEFAULT
    layout: int = DEFAULT
    staging_dtype: str = ""


@dataclass(frozen=True, slots=True)
class IntList:
    """Literal ints."""

    items: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ValueList:
    """Ids of values that are no lists themselves: tensors, Null, Int or SymInt."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SymInt:
    """An int that changes from call to call."""

    initial: int


Value = (None | int | float | bool | str | VkTensor | IntList | DoubleList | BoolList | ValueList
         | SymInt)


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """One node: `args` are value ids in the operator's order, then its output."""

    node_id: int
    name: str
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """The bytes of a constant, in the program's file (`source` 0) or the `.ptd` file of that
    number. Equal constants share a key, even if an operator changes them in place."""

    key: str | None
    span: Span
    source: int = 0


@dataclass(frozen=True, slots=True)
class VkGraph:
    """The graph of one delegate; `values` by value id, `chain` in topological order."""

    version: str
    values: tuple[Value, ...]
    chain: tuple[OperatorCall, ...]
    input_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    constants: tuple[Constant, ...]


def read_delegate(data: object, span: Span, named_data: dict[str, Span],
                  external: External | None = None) -> VkGraph:
    """Read the graph of the delegate whose blob is `span` of the file `data`.

    Args:
        named_data: Program.named_data.
        external: what read_externals returned; None if there are no `.ptd` files.

    Raises:
        FormatError: a byte is not what the format allows, or the data of a constant is missing.
    """
    with byte_view(data) as view:
        file = Span(0, len(view))
        file.part(span.offset, span.nbytes, "delegate blob", span.offset)
        place, area = _read_header(view, span)
        with view[place.offset:place.end] as flatbuffer:
            root = Buffer(flatbuffer, place.offset).root("VkGraph", IDENTIFIER)
            return _read_root(root, file, area, named_data, external or External())


def _read_root(root: Table, file: Span, area: Span, named_data: dict[str, Span],
               external: External) -> VkGraph:
    values = tuple(_read_value(table) for table in root.tables(2, "values", "VkValue"))
    _check_lists(root, values)
    for _ in root.tables(6, "shaders", "VkBytes"):
        root.fail(6, "shaders", "no shaders, as every known exporter writes", "some")
    needs = _constant_needs(values)
    constants = tuple(
        _read_constant(table, needs.get(index), area, named_data, external)
        for index, table in enumerate(root.tables(5, "constants", "VkBytes")))
    if needs and max(needs) >= len(constants):
        root.fail(2, "values", f"constant ids below {len(constants)}", max(needs))
    for constant in constants:
        if not constant.source and constant.span.end > file.nbytes:
            fail("VkBytes.named_key", root.at(5), "named data of this file", constant.span)
    return VkGraph(
        version=root.string(0, "version") or "",
        values=values,
        chain=tuple(OperatorCall(table.u32(0, "node_id"), table.text(1, "name"),
                                 ids_below(table, 2, "args", "i", len(values)))
                    for table in root.tables(1, "chain", "OperatorCall")),
        input_ids=_boundary(root, 3, "input_ids", values),
        output_ids=_boundary(root, 4, "output_ids", values),
        constants=constants,
    )


def _read_header(view: memoryview, blob: Span) -> tuple[Span, Span]:
    """Spans of the flatbuffer and of the constant bytes."""
    at = blob.offset
    if blob.nbytes < HEADER_LENGTH:
        fail("VH00 header", at, f"a blob of at least {HEADER_LENGTH} bytes", f"{blob.nbytes} bytes")
    magic = bytes(view[at + 4:at + 8])
    if magic != b"VH00":
        fail("VH00 header.magic", at + 4, "b'VH00'", magic)
    length, start, nbytes, bytes_start, bytes_size = unpack_from("<HIIIQ", view, at + 8)
    if length < HEADER_LENGTH or length > blob.nbytes:
        fail("VH00 header.length", at + 8, f"{HEADER_LENGTH} to {blob.nbytes}", length)
    if start < length:
        fail("VH00 header.flatbuffer_offset", at + 10, f"at least {length}", start)
    flatbuffer = blob.part(start, nbytes, "VH00 header.flatbuffer_size", at + 14)
    if bytes_start > blob.nbytes:
        if bytes_size:
            fail("VH00 header.bytes_offset", at + 18, f"at most {blob.nbytes}", bytes_start)
        bytes_start = blob.nbytes  # no bytes: the offset was rounded up past the end
    if bytes_start < start + nbytes:
        fail("VH00 header.bytes_offset", at + 18, f"at least {start + nbytes}", bytes_start)
    # Old writers left the size at 0 and meant all that follows.
    return flatbuffer, blob.part(bytes_start, bytes_size or blob.nbytes - bytes_start,
                                 "VH00 header.bytes_size", at + 22)


_KINDS = ("Null", "Int", "Double", "Bool", "VkTensor", "IntList", "DoubleList", "BoolList",
          "ValueList", "String", "SymInt")


def _read_value(table: Table) -> Value:
    value = table.union(0, "value", _KINDS)
    return None if value is None else _READERS[value.name](value)


def _read_tensor(table: Table) -> VkTensor:
    datatype = table.i8(0, "datatype")
    if datatype not in VK_DATATYPES:
        table.fail(0, "datatype", "0 to 7", datatype)
    dtype = VK_DATATYPES[datatype]
    staging = table.i8(6, "staging_datatype", VK_DATATYPE_UNSET)
    if staging == VK_DATATYPE_UNSET:
        staging = datatype
    if staging not in VK_DATATYPES:
        table.fail(6, "staging_datatype", "0 to 7, or 127", staging)
    sizes = table.numbers(1, "dims", "I", MAX_RANK)
    nbytes_of(dtype, sizes, "VkTensor.dims", table.at(1))
    # Absent means 0 for these two, the schema's default, not -1.
    constant, mem_obj = table.i32(2, "constant_id"), table.i32(3, "mem_obj_id")
    if constant < -1:
        table.fail(2, "constant_id", "-1 or an index", constant)
    if mem_obj < -1:
        table.fail(3, "mem_obj_id", "-1 or an index", mem_obj)
    storage = table.u8(4, "storage_type", DEFAULT)
    if storage not in _STORAGES:
        table.fail(4, "storage_type", "0, 1, 2 or 255", storage)
    layout = table.u8(5, "memory_layout", DEFAULT)
    if layout not in _LAYOUTS:
        table.fail(5, "memory_layout", "0 to 6, 8, 9 or 255", layout)
    return VkTensor(dtype, sizes, constant, mem_obj, storage, layout, VK_DATATYPES[staging])


_READERS = READERS | {
    "VkTensor": _read_tensor,
    "IntList": lambda table: IntList(table.numbers(0, "items", "q")),
    "ValueList": lambda table: ValueList(table.numbers(0, "items", "i")),
    "SymInt": lambda table: SymInt(table.i32(0, "value")),
}


def _check_lists(root: Table, values: tuple[Value, ...]) -> None:
    """Ids in value lists exist and are no lists: lists in lists could contain themselves."""
    lists = (IntList, DoubleList, BoolList, ValueList)
    for index, value in enumerate(values):
        if not isinstance(value, ValueList):
            continue
        for item in value.ids:
            if not 0 <= item < len(values):
                root.fail(2, f"values[{index}].items", f"ids of 0 to {len(values) - 1}", item)
            if isinstance(values[item], lists):
                root.fail(2, f"values[{index}].items", "ids of values that are no lists",
                          f"{item}, a {kind_of(values[item])}")


def _boundary(root: Table, slot: int, field: str, values: tuple[Value, ...]) -> tuple[int, ...]:
    """Input or output ids: tensors and ints can cross the delegate's boundary, no others."""
    ids = ids_below(root, slot, field, "I", len(values))
    for item in ids:
        if type(values[item]) not in (VkTensor, SymInt, int):
            root.fail(slot, field, "ids of VkTensor, SymInt or Int values",
                      f"{item}, a {kind_of(values[item])}")
    return ids


def _constant_needs(values: tuple[Value, ...]) -> dict[int, int]:
    """Bytes that the tensors which refer to a constant need of it, by constant index."""
    needs: dict[int, int] = {}
    for value in values:
        if isinstance(value, VkTensor) and value.constant >= 0:
            needs[value.constant] = max(needs.get(value.constant, 0), value.nbytes)
    return needs


def _read_constant(table: Table, need: int | None, area: Span, named_data: dict[str, Span],
                   external: External) -> Constant:
    """One VkBytes{offset u64, length u64, named_key}; `need` is None if no tensor uses it."""
    offset, length = table.u64(0, "offset"), table.u64(1, "length")
    key = table.string(2, "named_key")
    if offset != NOT_IN_BLOB:
        # Only the shape tells how many bytes count.
        nbytes = length if need is None else need
        return Constant(None, area.part(offset, nbytes, "VkBytes.offset", table.at(0)))
    if not key:
        table.fail(2, "named_key", "a key, as the bytes are not in the blob", key)
    source = 0
    if key in named_data:
        span = named_data[key]
    else:
        entry = external.find(key, "VkBytes.named_key", table.at(2))
        span, source = entry.span, entry.source
    span = span.part(0, length, "VkBytes.length", table.at(1))
    if need is not None and need > span.nbytes:
        table.fail(1, "length", f"at least the {need} bytes of the tensor's shape", length)
    return Constant(key, span, source)
