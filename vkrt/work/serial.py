"""Work lists as checked JSON (see `vkrt.work.codec`).

Storages and operands stand in tables before the work list. A storage's id is its place there. What
else differs from the attributes of `vkrt.work.records`:

* Among the arguments of a host call {"read": 0} is a `ReadArgument`.
* Among the outputs [7] is an operand, by its place; numbers, texts and None stand for themselves.
* The memo is not written: a work list from a file is complete, but others cannot be made from it.

Constants are places in the program's files; their bytes are not in here.
"""

from __future__ import annotations

from vkrt.hints import Any
from vkrt.work.codec import (
    FLAG,
    NUMBER,
    TEXT,
    TEXTS,
    Schema,
    Table,
    either,
    integer,
    integers,
    many,
    no,
    one_of,
    optional,
    record,
    row,
)
from vkrt.work.records import (
    CHOICE,
    Dispatch,
    HostCall,
    Move,
    Prepack,
    ReadArgument,
    StateRecord,
    WorkList,
)
from vkrt.work.target import Target
from vkrt.work.tensor import DTYPES, ITEMSIZE, Constant, Operand, Storage
from vkrt.work.tuning import Tuning

ROLES = ("weight", "activation", "input", "state", "spill")
STORAGES = ("texel", "buffer", "texture3d")
MAX_PARAMS = 32
_MOST = (1 << 63) - 1
_INT32 = -1 << 31, (1 << 31) - 1

NATURAL = integer(0, _MOST)
NATURALS = integers(0, _MOST)
INDEX = integer(0, _INT32[1])
COUNT = integer(1, (1 << 32) - 1)
# Also what is before the first
PLACE = integer(-1, _INT32[1])
SIZES = integers(0, _INT32[1])
DTYPE, HOST_DTYPE = one_of(*DTYPES), one_of(*ITEMSIZE)

CONSTANT = record(Constant, offset=NATURAL, nbytes=NATURAL, dtype=HOST_DTYPE, key=optional(TEXT),
                  source=INDEX, number=optional(NUMBER), zeros=FLAG)
TILE = row(COUNT, COUNT)
TUNING = record(Tuning, tiles=many(row(TILE, NUMBER)), lanes=NATURAL, wide_depthwise=NATURAL,
                tall_depthwise=FLAG, min_groups=NATURAL, reads_ahead=FLAG, shares=FLAG)
TARGET = record(Target, storage=one_of(*STORAGES), max_texels=NATURAL, max_buffer_range=NATURAL,
                max_image_extent=NATURAL, max_groups=NATURAL, max_invocations=NATURAL,
                max_shared=NATURAL, offset_alignment=COUNT, loop_limit=optional(NATURAL),
                scratch=one_of("none", "spare", "any"), fuses=FLAG, tuning=TUNING, features=TEXTS,
                refused=TEXTS)


class WorkListSchema(Schema):
    """The schema of one work list; it holds the tables of that."""

    def __init__(self) -> None:
        self._storages: tuple[Storage, ...] = ()
        self._table = Table(record(
            Operand, _is_operand, storage=Schema("Storage", self._storage, lambda s: s.id),
            sizes=SIZES, dtype=DTYPE, order=SIZES, raw=FLAG, rows=optional(INDEX), offset=NATURAL,
            placeholder=FLAG))
        operand = self._table.schema
        operands = many(operand)
        self._body = record(
            WorkList, _is_work_list,
            storages=Schema("tuple[Storage, ...]", self._all_storages, lambda _: None),
            prepacks=many(record(
                Prepack, constant=CONSTANT, target=operand, shader=TEXT,
                params=integers(*_INT32), row_bytes=NATURAL, rows=NATURAL, name=TEXT)),
            steps=many(either(
                record(Dispatch, _is_dispatch, node=PLACE, shader=TEXT, params=integers(*_INT32),
                       writes=operands, reads=operands, invocations=COUNT, local_size=COUNT,
                       groups=row(COUNT, COUNT, COUNT), loops=NATURAL),
                record(HostCall, _is_host_call, node=PLACE, kernel=TEXT, args=many(ARGUMENT),
                       reads=operands, writes=operands),
                record(Move, node=PLACE, kind=one_of("spill", "reload"), writes=row(operand),
                       reads=row(operand)))),
            inputs=many(optional(operand)), outputs=many(value_or(
                Operand, operand, "Operand | bool | int | float | str | None")),
            states=many(record(StateRecord, operand=operand, constant=CONSTANT, name=TEXT)),
            storage=one_of(*STORAGES), target=TARGET, notes=many(TEXT), together=many(SIZES))
        super().__init__("WorkList", self._read, self._write)

    def _storage(self, value: Any) -> Storage:
        if type(value) is int and 0 <= value < len(self._storages):
            return self._storages[value]
        raise no(value, f"the id of one of {len(self._storages)} storages")

    def _all_storages(self, value: Any) -> tuple[Storage, ...]:
        if value is None:
            return self._storages
        raise no(value, "null, for the table")

    def _read(self, data: Any) -> WorkList:
        if type(data) is not list or len(data) != 3 or type(data[0]) is not list:
            raise no(data, "an array of storages, operands and the work list")
        self._storages = tuple([_read_storage(number, item) for number, item in enumerate(data[0])])
        self._table.read(data[1])
        return self._body.read(data[2])

    def _write(self, work: WorkList) -> Any:
        body = self._body.write(work)
        return [[_write_storage(storage) for storage in work.storages], self._table.write(), body]


# The id is the place in the table.
_STORAGE = row(one_of(*ROLES), NATURAL, DTYPE, optional(row(COUNT, COUNT, COUNT)))


def _read_storage(number: int, data: Any) -> Storage:
    return Storage(number, *_STORAGE.read(data))


def _write_storage(storage: Storage) -> Any:
    return _STORAGE.write((storage.role, storage.nbytes, storage.dtype, storage.extents))


def _is_operand(operand: Operand) -> bool:
    rank = len(operand.sizes)
    return sorted(operand.order) == list(range(rank)) and (operand.rows or 0) <= rank


def _is_work_list(work: WorkList) -> bool:
    """What no step says: that inputs and outputs lie within their storages (AssertionError), and
    that there are the storages of weights that are needed together."""
    for value in (*work.inputs, *work.outputs):
        if isinstance(value, Operand):
            value.check_place()
    return all(number < len(work.storages) for group in work.together for number in group)


def _is_dispatch(step: Dispatch) -> bool:
    return len(step.params) <= MAX_PARAMS and bool(step.writes)


def _is_host_call(call: HostCall) -> bool:
    """Whether each array is among the operands; the arrays of a choice are followed by a bool."""
    if call.kernel == CHOICE and not all(
            type(pair) is tuple and len(pair) == 2 and isinstance(pair[0], ReadArgument)
            and type(pair[1]) is bool for pair in call.args):
        return False
    return all(argument.read < len(call.reads) for argument in _arrays(call.args))


def _arrays(args: Any) -> list[ReadArgument]:
    """The `ReadArgument`s among arguments, lists flattened."""
    if isinstance(args, tuple):
        return [found for item in args for found in _arrays(item)]
    return [args] if isinstance(args, ReadArgument) else []


ANY_INTEGER = integer(-1 << 63, _MOST)


def _read_value(value: Any) -> Any:
    """A number, a bool, a text or None."""
    if value is None or type(value) in (bool, str):
        return value
    return (ANY_INTEGER if type(value) is int else NUMBER).read(value)


def _write_value(value: Any) -> Any:
    return NUMBER.write(value) if isinstance(value, float) else value


def _read_argument(value: Any) -> Any:
    if type(value) is list:
        return tuple([_read_argument(item) for item in value])
    if type(value) is dict and list(value) == ["read"]:
        return ReadArgument(INDEX.read(value["read"]))
    return _read_value(value)


def _write_argument(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_write_argument(item) for item in value]
    return {"read": value.read} if isinstance(value, ReadArgument) else _write_value(value)


# An argument of a host call: a value, an array, or a tuple of them
ARGUMENT = Schema("Any", _read_argument, _write_argument)


def value_or(kind: type, schema: Schema, annotation: str) -> Schema:
    """Values, and objects of a class that a table has: an array of the object's place there."""

    def read(value: Any) -> Any:
        return row(schema).read(value)[0] if type(value) is list else _read_value(value)

    def write(value: Any) -> Any:
        return [schema.write(value)] if isinstance(value, kind) else _write_value(value)

    return Schema(annotation, read, write)
