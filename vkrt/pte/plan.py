"""Execution plans: the methods of a program, their values, operators and delegates."""

from dataclasses import dataclass

from vkrt.errors import UnsupportedError
from vkrt.pte.dtype import MAX_RANK, SCALAR_TYPES, Extent, nbytes_of
from vkrt.pte.flatbuffer import Table
from vkrt.pte.instruction import Instruction, ids_below, read_instructions
from vkrt.pte.segments import Storage, pick
from vkrt.pte.span import Span
from vkrt.pte.values import READERS, BoolList, DoubleList, kind_of

STATIC, DYNAMIC_BOUND, DYNAMIC_UNBOUND = 0, 1, 2


@dataclass(frozen=True, slots=True)
class TensorMeta(Extent):
    """A tensor at program level. Sizes are upper bounds where `dynamism` is DYNAMIC_BOUND (1).

    Attributes:
        scalar_type: PyTorch's number of the element type; `dtype` is its numpy-like name.
        dim_order: dimensions from the outermost in memory to the innermost.
        constant: the tensor's bytes in the file, exactly nbytes of them: its data, or for a
            mutable tensor its initial data. None where the file holds none.
        memory: (memory id, byte offset) in planned memory, None when not planned.
        mutable: planned memory that starts with the data in `constant` or `external_key`.
            Planned memory without initial data is not marked; it may be state all the same.
        external_key: name of the data in a `.ptd` file, when it lies there.
        name: fully qualified name, where the exporter stored one.
    """

    scalar_type: int
    dtype: str
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    dynamism: int = STATIC
    constant: Span | None = None
    memory: tuple[int, int] | None = None
    mutable: bool = False
    external_key: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class IntList:
    """Ids of Int values, not literals: symbolic ints are updated through them at run time."""

    items: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorList:
    """Ids of tensor values."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OptionalTensorList:
    """Ids of tensor values, or None where there is no tensor (-1 in the file)."""

    ids: tuple[int | None, ...]


Value = (None | int | bool | float | str | TensorMeta | IntList | DoubleList | BoolList
         | TensorList | OptionalTensorList)


@dataclass(frozen=True, slots=True)
class DelegateRef:
    """A blob for a backend (`id`), with the compile options that were stored beside it."""

    id: str
    span: Span
    options: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """One method.

    Attributes:
        values: by value id.
        inputs, outputs: value ids, in the order of the method's flattened arguments.
        operators: names as "aten::mean.out"; without overload "aten::copy_".
        buffer_sizes: bytes of each planned memory by memory id; entry 0 is reserved.
        input_spec, output_spec: how arguments and results nest, as the exporter encoded it.
    """

    name: str
    values: tuple[Value, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    instructions: tuple[Instruction, ...]
    operators: tuple[str, ...]
    delegates: tuple[DelegateRef, ...]
    buffer_sizes: tuple[int, ...]
    input_spec: str | None = None
    output_spec: str | None = None


def read_plan(table: Table, storage: Storage) -> ExecutionPlan:
    """One ExecutionPlan table; `storage` resolves the data it refers to."""
    name = table.text(0, "name")
    buffer_sizes = table.numbers(8, "non_const_buffer_sizes", "q")
    if buffer_sizes and min(buffer_sizes) < 0:
        table.fail(8, "non_const_buffer_sizes", "sizes that are not negative", min(buffer_sizes))
    values = _read_values(table, storage, buffer_sizes)
    operators = tuple(_read_operator(item) for item in table.tables(6, "operators", "Operator"))
    delegates = tuple(_read_delegate(item, storage)
                      for item in table.tables(7, "delegates", "BackendDelegate"))
    instructions: tuple[Instruction, ...] = ()
    for index, chain in enumerate(table.tables(5, "chains", "Chain")):
        if index:
            raise UnsupportedError(f"method {name!r} has more than one chain of instructions")
        instructions = read_instructions(chain, len(values), len(operators), len(delegates))
    specs = table.table(1, "container_meta_type", "ContainerMetadata")
    return ExecutionPlan(
        name=name,
        values=values,
        inputs=ids_below(table, 3, "inputs", "i", len(values)),
        outputs=ids_below(table, 4, "outputs", "i", len(values)),
        instructions=instructions,
        operators=operators,
        delegates=delegates,
        buffer_sizes=buffer_sizes,
        input_spec=specs.string(0, "encoded_inp_str") if specs else None,
        output_spec=specs.string(1, "encoded_out_str") if specs else None,
    )


def _read_operator(table: Table) -> str:
    name, overload = table.text(0, "name"), table.string(1, "overload")
    return f"{name}.{overload}" if overload else name


def _read_delegate(table: Table, storage: Storage) -> DelegateRef:
    identifier = table.text(0, "id")
    where = table.child(1, "processed", "BackendDelegateDataReference")
    location = where.i8(0, "location")
    if location not in (0, 1):
        where.fail(0, "location", "0 (inline) or 1 (segment)", location)
    spans = storage.segments if location else storage.inline
    options = {spec.text(0, "key"): spec.raw(1, "value")
               for spec in table.tables(2, "compile_specs", "CompileSpec")}
    return DelegateRef(identifier, pick(spans, where.u32(1, "index"), where, 1, "index"), options)


_KINDS = ("Null", "Int", "Bool", "Double", "Tensor", "String", "IntList", "DoubleList",
          "BoolList", "TensorList", "OptionalTensorList")
_READERS = READERS | {
    "IntList": lambda table: IntList(table.numbers(0, "items", "q")),
    "TensorList": lambda table: TensorList(table.numbers(0, "items", "i")),
    "OptionalTensorList": lambda table: OptionalTensorList(tuple(
        None if item == -1 else item for item in table.numbers(0, "items", "i"))),
}


def _read_values(plan: Table, storage: Storage, buffers: tuple[int, ...]) -> tuple[Value, ...]:
    values = tuple(_read_value(table, storage, buffers)
                   for table in plan.tables(2, "values", "EValue"))
    for index, value in enumerate(values):
        if isinstance(value, IntList):
            allowed: tuple[type, ...] = (int,)
            ids: tuple[int | None, ...] = value.items
        elif isinstance(value, TensorList):
            allowed, ids = (TensorMeta,), value.ids
        elif isinstance(value, OptionalTensorList):
            allowed, ids = (TensorMeta, type(None)), value.ids
        else:
            continue
        for item in ids:
            if item is None:
                continue
            found = values[item] if 0 <= item < len(values) else "no such value"
            if type(found) not in allowed:  # bool is not meant where int is
                names = " or ".join({int: "Int", TensorMeta: "Tensor"}.get(kind, "Null")
                                    for kind in allowed)
                got = f"{item}, a {kind_of(found)}" if item < len(values) else item
                plan.fail(2, f"values[{index}].items", f"ids of {names} values", got)
    return values


def _read_value(table: Table, storage: Storage, buffers: tuple[int, ...]) -> Value:
    value = table.union(0, "val", _KINDS)
    if value is None:
        return None
    if value.name == "Tensor":
        return _read_tensor(value, storage, buffers)
    return _READERS[value.name](value)


def _read_tensor(table: Table, storage: Storage, buffers: tuple[int, ...]) -> TensorMeta:
    scalar_type = table.i8(0, "scalar_type")
    if scalar_type not in SCALAR_TYPES:
        table.fail(0, "scalar_type", "an element type", scalar_type)
    dtype = SCALAR_TYPES[scalar_type]
    if table.i32(1, "storage_offset"):
        table.fail(1, "storage_offset", "0", table.i32(1, "storage_offset"))
    sizes = table.numbers(2, "sizes", "i", MAX_RANK)
    nbytes = nbytes_of(dtype, sizes, "Tensor.sizes", table.at(2))
    dim_order = table.numbers(3, "dim_order", "B", MAX_RANK)
    if sorted(dim_order) != list(range(len(sizes))):
        table.fail(3, "dim_order", f"a permutation of {len(sizes)} dimensions", dim_order)
    if table.i8(7, "layout"):
        table.fail(7, "layout", "0 (strided)", table.i8(7, "layout"))
    dynamism = table.i8(8, "shape_dynamism")
    if dynamism not in (STATIC, DYNAMIC_BOUND, DYNAMIC_UNBOUND):
        table.fail(8, "shape_dynamism", "0, 1 or 2", dynamism)

    group, name, external = 0, None, False
    extra = table.table(9, "extra_tensor_info", "ExtraTensorInfo")
    if extra:
        group = extra.u64(0, "mutable_data_segments_idx")
        name = extra.string(1, "fully_qualified_name")
        location = extra.i8(2, "location")
        if location not in (0, 1):
            extra.fail(2, "location", "0 (segment) or 1 (external)", location)
        external = location == 1
        if external and not name:
            extra.fail(1, "fully_qualified_name", "the name of external data", name)

    # Bytes of an unbounded tensor are unknown: its sizes mean nothing.
    planned = 0 if dynamism == DYNAMIC_UNBOUND else nbytes
    memory = _read_memory(table, buffers, planned)
    index = table.u32(5, "data_buffer_idx")
    constant = None
    if index and not external:
        if memory is None:
            data = storage.constants
        elif group < len(storage.mutable):
            data = storage.mutable[group]
        else:
            table.fail(9, "extra_tensor_info.mutable_data_segments_idx",
                       f"an index below {len(storage.mutable)}", group)
        available = pick(data, index, table, 5, "data_buffer_idx")
        constant = available.part(0, nbytes, "Tensor.data_buffer_idx", table.at(5))
    return TensorMeta(
        scalar_type=scalar_type, dtype=dtype, sizes=sizes, dim_order=dim_order,
        dynamism=dynamism, constant=constant, memory=memory,
        mutable=memory is not None and (constant is not None or external),
        external_key=name if external else None, name=name)


def _read_memory(tensor: Table, buffers: tuple[int, ...], nbytes: int) -> tuple[int, int] | None:
    table = tensor.table(6, "allocation_info", "AllocationDetails")
    if table is None:
        return None
    memory = table.u32(0, "memory_id")
    if not 0 < memory < len(buffers):
        table.fail(0, "memory_id", f"1 to {len(buffers) - 1}", memory)
    offset = table.u32(1, "memory_offset_low") | table.u32(2, "memory_offset_high") << 32
    if offset + nbytes > buffers[memory]:
        table.fail(1, "memory_offset", f"{nbytes} bytes inside the {buffers[memory]} of memory "
                   f"{memory}", f"offset {offset}")
    return memory, offset
