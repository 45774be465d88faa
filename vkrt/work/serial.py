"""Work lists in files: bytes that need neither the program nor Python to be understood.

`vkrt.work.envelope` describes the envelope (magic "vkrtwork", version 1), and `vkrt.work.plain` how
records are written.
The JSON is a `WorkList` without its memo: a work list from a file is complete, but others cannot be
made from it. What differs from the attributes of `vkrt.work.records`:

* Elements of `storages` have no id, that is their place in the array. The `storage` of an operand
  is an id.
* A step has its kind beside its attributes: "step": "Dispatch", "HostCall" or "Move".
* Among the arguments of a host call {"read": 0} is a `ReadArgument`. They and the outputs may be of
  several types; an object with a `storage` is an operand.

Constants are places in the program's files; their bytes are not in here.
"""

from __future__ import annotations

from vkrt.errors import FormatError
from vkrt.hints import Any
from vkrt.work.envelope import seal
from vkrt.work.plain import Readers, attributes, plain, read, text_of, unseal
from vkrt.work.records import Dispatch, HostCall, Move, ReadArgument, WorkList
from vkrt.work.tensor import DTYPES, Constant, Operand, Storage

MAGIC = b"vkrtwork"
VERSION = 1
MAX_BYTES = 1 << 30

STEPS = {kind.__name__: kind for kind in (Dispatch, HostCall, Move)}
ROLES = ("weight", "activation", "input", "state", "spill")
STORAGES = ("texel", "buffer", "texture3d")


def to_bytes(work: WorkList) -> bytes:
    """A work list as the bytes of a file."""
    data = plain(work, {
        Storage: lambda storage: storage.id,
        ReadArgument: lambda argument: {"read": argument.read}})
    for step, written in zip(work.steps, data["steps"]):
        written["step"] = type(step).__name__
    data["storages"] = [plain(storage, {}) for storage in work.storages]
    for written in data["storages"]:
        del written["id"]
    return seal(MAGIC, VERSION, text_of(data))


def from_bytes(data: bytes | memoryview) -> WorkList:
    """The work list in a file, equal to the one that was written.

    Raises:
        FormatError: it is another file, or a byte of it is not what the format allows.
    """
    with memoryview(data) as view:
        found, end = unseal(view, MAGIC, VERSION, "a work list", MAX_BYTES)
        if end != len(view):
            raise FormatError(f"it has {len(view)} bytes, expected {end}")
    items = found.get("storages") if isinstance(found, dict) else None
    if not isinstance(items, list):
        raise FormatError("it has no array of storages")
    try:
        storages = tuple(_storage(index, item) for index, item in enumerate(items))
        return _work({**found, "storages": list(range(len(storages)))}, storages)
    except (AssertionError, RecursionError) as error:
        raise FormatError(f"its records do not fit together ({error})") from error


def _work(data: Any, storages: tuple[Storage, ...]) -> WorkList:
    def storage_of(value: Any, where: str) -> Storage:
        if type(value) is not int or not 0 <= value < len(storages):
            raise FormatError(f"{where} is {str(value)[:40]}, expected the id of one of "
                              f"{len(storages)} storages")
        return storages[value]

    def operand(value: Any, where: str) -> Operand:
        made = Operand(**attributes(Operand, value, where, readers))
        _check(sorted(made.order) == list(range(len(made.sizes)))
               and all(size >= 0 for size in made.sizes) and made.dtype in DTYPES
               and (made.rows is None or 0 <= made.rows <= len(made.sizes)), where)
        made.check_place()
        return made

    def step(value: Any, where: str) -> Any:
        kind = STEPS.get(str(value.get("step"))) if isinstance(value, dict) else None
        _check(kind is not None, where)
        made = read(kind, {key: item for key, item in value.items() if key != "step"}, where,
                    readers)
        if isinstance(made, Dispatch):
            _check(all(-1 << 31 <= number < 1 << 31 for number in made.params)
                   and min(made.invocations, made.local_size, *made.groups) > 0, where)
        elif isinstance(made, HostCall):
            _check(all(argument.read < len(made.reads) for argument in _arrays(made.args)), where)
        return made

    readers: Readers = {Storage: storage_of, Operand: operand, Constant: _constant,
                        Dispatch | HostCall | Move: step, Any: _argument}
    made = WorkList(**attributes(WorkList, data, "the work list", readers))
    _check(made.storage in STORAGES and made.target.storage in STORAGES, "the work list's storage")
    return made


def _check(good: bool, where: str) -> None:
    if not good:
        raise FormatError(f"{where} has attributes that do not fit together")


def _storage(index: int, value: Any) -> Storage:
    where = f"storage {index}"
    if not isinstance(value, dict):
        raise FormatError(f"{where} is no object")
    made = Storage(**attributes(Storage, {**value, "id": index}, where, {}))
    _check(made.role in ROLES and made.dtype in DTYPES and made.nbytes >= 0
           and (made.extents is None or min(made.extents) > 0), where)
    return made


def _constant(value: Any, where: str) -> Constant:
    made = Constant(**attributes(Constant, value, where, {}))
    _check(min(made.offset, made.nbytes, made.source) >= 0, where)
    return made


def _argument(value: Any, where: str) -> Any:
    """An argument of a host call."""
    if isinstance(value, list):
        return tuple(_argument(item, where) for item in value)
    if isinstance(value, dict) and "float" in value:
        return read(float, value, where, {})
    if isinstance(value, dict):
        made = read(ReadArgument, value, where, {})
        _check(made.read >= 0, where)
        return made
    return value


def _arrays(args: Any) -> list[ReadArgument]:
    """The `ReadArgument`s among arguments, lists flattened."""
    if isinstance(args, tuple):
        return [found for item in args for found in _arrays(item)]
    return [args] if isinstance(args, ReadArgument) else []
