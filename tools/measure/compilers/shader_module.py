"""A compute shader's SPIR-V as an interpreter needs it: blocks, types, constants, loops.

Opcodes and decorations have the numbers of the SPIR-V specification. Modules are those of vkrt's
shader library: without matrices, with a constant of the workgroup's size, and of one function, in
which glslc's optimizer has put all others.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from compilers.arithmetic import EXTENDED, evaluate, signed
from vkrt.shader.spirv import Instruction, instructions, words_of

BOOL, INT, FLOAT, VECTOR, ARRAY, STRUCT = 20, 21, 22, 23, 28, 30
TRUE, FALSE, CONSTANT, COMPOSITE = 41, 42, 43, 44
SPEC_TRUE, SPEC_FALSE, SPEC_CONSTANT, SPEC_COMPOSITE, SPEC_OP = 48, 49, 50, 51, 52
CONSTANTS = range(TRUE, SPEC_OP + 1)
VARIABLE, LOAD, STORE, ACCESS_CHAIN = 59, 61, 62, 65
IMAGE_FETCH, IMAGE_READ = 95, 98
PHI, LOOP_MERGE, LABEL = 245, 246, 248
BRANCH, BRANCH_IF, SWITCH, RETURN = 249, 250, 251, 253
SPEC_ID, ARRAY_STRIDE, BUILTIN, OFFSET = 1, 6, 11, 35
WORKGROUP_SIZE = 25
DECORATE, MEMBER_DECORATE = 71, 72
# Storage classes
INPUT, UNIFORM, WORKGROUP, PRIVATE, FUNCTION, PUSH_CONSTANT, STORAGE_BUFFER = 1, 2, 4, 6, 7, 9, 12
# Instructions without a result: OpNop, stores, barriers, control flow
_NO_RESULT = frozenset((0, STORE, 63, 99, 224, 225, 246, 247, 249, 250, 251, 252, 253, 254, 255))
# Multiplications of floats: OpFMul, OpVectorTimesScalar; the extended instruction Fma
_MULTIPLIES, _DOT, _FMA = (133, 142), 148, 50


@dataclass
class Block:
    """A basic block."""

    merge: int | None = None  # label behind the loop that begins here
    instructions: list[Instruction] = field(default_factory=list)
    multiplies: int = 0  # of floats, by component
    loaded: int = 0  # bytes from images and buffers


class ShaderModule:
    """A module of SPIR-V with the values of its specialization constants: (id, 32 bits); those that
    are not given keep their defaults."""

    def __init__(self, code: bytes, constants: tuple[tuple[int, int], ...]):
        self.given = dict(constants)
        self.types: dict[int, Instruction] = {}  # by result id, as the next two
        self.definitions: dict[int, Instruction] = {}
        self.type_of: dict[int, int] = {}  # ids of types
        self.blocks: dict[int, Block] = {}  # by label, in the order of the module
        self.decorations: dict[int, dict[int, tuple[int, ...]]] = {}
        self.offsets: dict[tuple[int, int], int] = {}  # of members: (struct, member) -> bytes
        block = None
        for instruction in instructions(words_of(code)):
            opcode, _, operands = instruction
            if opcode == LABEL:
                block = self.blocks[operands[0]] = Block()
            elif block is not None:
                self._add(block, instruction)
            else:
                self._declare(instruction)

    def _declare(self, instruction: Instruction) -> None:
        opcode, _, operands = instruction
        if opcode == DECORATE:
            self.decorations.setdefault(operands[0], {})[operands[1]] = operands[2:]
        elif opcode == MEMBER_DECORATE and operands[2] == OFFSET:
            self.offsets[operands[0], operands[1]] = operands[3]
        elif 19 <= opcode <= 39:
            self.types[operands[0]] = instruction
        elif opcode in CONSTANTS or opcode in (1, VARIABLE):
            self.definitions[operands[1]] = instruction
            self.type_of[operands[1]] = operands[0]

    def _add(self, block: Block, instruction: Instruction) -> None:
        opcode, _, operands = instruction
        if opcode == LOOP_MERGE:
            block.merge = operands[0]
        if opcode not in _NO_RESULT and len(operands) > 1:
            self.definitions[operands[1]] = instruction
            self.type_of[operands[1]] = operands[0]
        block.instructions.append(instruction)
        if opcode in _MULTIPLIES or (opcode == EXTENDED and operands[3] == _FMA):
            block.multiplies += self.components(operands[0])
        elif opcode == _DOT:
            block.multiplies += self.components(self.type_of[operands[2]])
        elif opcode in (IMAGE_FETCH, IMAGE_READ):
            block.loaded += 16
        elif opcode == LOAD:
            _, _, pointer = self.types[self.type_of[operands[2]]]
            if pointer[1] in (UNIFORM, STORAGE_BUFFER):
                block.loaded += self.width(pointer[2])

    def components(self, type_id: int) -> int:
        """How many numbers a value of a type is."""
        opcode, _, operands = self.types[type_id]
        return operands[2] if opcode == VECTOR else 1

    def width(self, type_id: int) -> int:
        """Bytes of a scalar or vector."""
        opcode, _, operands = self.types[type_id]
        if opcode == VECTOR:
            return operands[2] * self.width(operands[1])
        return operands[1] // 8 if opcode in (INT, FLOAT) else 4

    def zero(self, type_id: int) -> Any:
        """The value of a type whose bits are zero; a list for one of several parts."""
        opcode, _, operands = self.types.get(type_id, (INT, 0, ()))
        if opcode in (VECTOR, ARRAY):
            count = self.constant(operands[2]) if opcode == ARRAY else operands[2]
            return [self.zero(operands[1]) for _ in range(count)]
        if opcode == STRUCT:
            return [self.zero(member) for member in operands[1:]]
        return {BOOL: False, FLOAT: 0.0}.get(opcode, 0)

    @cache  # noqa: B019 (modules are few, and kept)
    def constant(self, constant: int) -> Any:
        """The value of a constant, by its id."""
        opcode, _, operands = self.definitions[constant]
        number, = self.decorations.get(constant, {}).get(SPEC_ID, (-1,))
        given = self.given.get(number)
        if opcode in (TRUE, FALSE, SPEC_TRUE, SPEC_FALSE):
            return opcode in (TRUE, SPEC_TRUE) if given is None else bool(given)
        if opcode in (CONSTANT, SPEC_CONSTANT):
            raw = (operands[2] if given is None else given) & 0xFFFFFFFF
            return self.number(operands[0], raw.to_bytes(4, "little"))
        if opcode in (COMPOSITE, SPEC_COMPOSITE):
            return [self.constant(part) for part in operands[2:]]
        if opcode == SPEC_OP:
            return evaluate(operands[2], operands[3:], self.constant, self.zero(operands[0]))
        return self.zero(operands[0])

    def number(self, type_id: int, raw: bytes) -> int | float:
        """A scalar of up to 32 bits from four bytes."""
        opcode, _, operands = self.types[type_id]
        if opcode == FLOAT:
            return struct.unpack("<e" if operands[1] == 16 else "<f", raw[:operands[1] // 8])[0]
        return signed(int.from_bytes(raw, "little"))

    @cached_property
    def local_size(self) -> tuple[int, ...]:
        """Invocations of a workgroup, in three dimensions."""
        return tuple(next(self.constant(constant) for constant, marks in self.decorations.items()
                          if marks.get(BUILTIN) == (WORKGROUP_SIZE,)))
