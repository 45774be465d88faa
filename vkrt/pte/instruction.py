"""What a method executes: a list of instructions over its values."""

from dataclasses import dataclass

from vkrt.pte.flatbuffer import Table


@dataclass(frozen=True, slots=True)
class KernelCall:
    """Run operator `op` of the plan; `args` are value ids in the order of the aten `.out` schema:
    positional, keyword, out tensors, then each out tensor once more as return value."""

    op: int
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DelegateCall:
    """Run delegate `delegate` of the plan; `args` are its inputs, then its outputs."""

    delegate: int
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MoveCall:
    """Make value `target` be value `source`."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class JumpFalseCall:
    """Go on at instruction `destination` when value `condition` is false; at the number of
    instructions the method ends."""

    condition: int
    destination: int


@dataclass(frozen=True, slots=True)
class FreeCall:
    """The memory of a tensor value is no longer needed."""

    value: int


Instruction = KernelCall | DelegateCall | MoveCall | JumpFalseCall | FreeCall

_KINDS = ("KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall")


def read_instructions(chain: Table, values: int, operators: int,
                      delegates: int) -> tuple[Instruction, ...]:
    """The instructions of a Chain; the counts bound the ids in them."""
    instructions = tuple(_read(table, values, operators, delegates)
                         for table in chain.tables(2, "instructions", "Instruction"))
    for index, instruction in enumerate(instructions):
        if (isinstance(instruction, JumpFalseCall)
                and not 0 <= instruction.destination <= len(instructions)):
            chain.fail(2, f"instructions[{index}].destination_instruction",
                       f"0 to {len(instructions)}", instruction.destination)
    return instructions


def _read(table: Table, values: int, operators: int, delegates: int) -> Instruction:
    call = table.union(0, "instr_args", _KINDS)
    assert call is not None
    if call.name == "KernelCall":
        return KernelCall(number_below(call, 0, "op_index", operators),
                          ids_below(call, 1, "args", "i", values))
    if call.name == "DelegateCall":
        return DelegateCall(number_below(call, 0, "delegate_index", delegates),
                            ids_below(call, 1, "args", "i", values))
    if call.name == "MoveCall":
        return MoveCall(number_below(call, 0, "move_from", values),
                        number_below(call, 1, "move_to", values))
    if call.name == "JumpFalseCall":
        return JumpFalseCall(number_below(call, 0, "cond_value_index", values),
                             call.i32(1, "destination_instruction"))
    return FreeCall(number_below(call, 0, "value_index", values))


def number_below(table: Table, slot: int, field: str, limit: int) -> int:
    """An i32 index into a list of `limit` entries."""
    index = table.i32(slot, field)
    if not 0 <= index < limit:
        table.fail(slot, field, f"an index of 0 to {limit - 1}", index)
    return index


def ids_below(table: Table, slot: int, field: str, code: str, limit: int) -> tuple[int, ...]:
    """A vector of ids into a list of `limit` entries."""
    ids = table.numbers(slot, field, code)
    if ids and (min(ids) < 0 or max(ids) >= limit):
        wrong = next(item for item in ids if not 0 <= item < limit)
        table.fail(slot, field, f"ids of 0 to {limit - 1}", wrong)
    return ids
