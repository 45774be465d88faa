"""How often the blocks and loops of a compute shader run, by executing what its branches depend on.

One invocation of a few workgroups is followed, the first of each. Images and buffers read as zeros.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from math import prod
from operator import getitem
from statistics import fmean
from typing import Any

from compilers import shader_module as spirv
from compilers.arithmetic import EXTENDED, EXTRACT, INSERT, SHUFFLE, evaluate, signed
from compilers.shader_module import ShaderModule
from vkrt.shader.spirv import Instruction

# The places of workgroups in a dispatch, as parts of it: spread, and in no step with tiles
_PLACES = tuple(tuple(k * step % 1 for step in (0.8191725, 0.6710436, 0.5497005))
                for k in range(1, 8))
_MOST_STEPS = 30_000_000
# Where the ids are that an instruction reads, with literals or labels beside them
_IDS = {EXTENDED: slice(4, None), EXTRACT: slice(2, 3), INSERT: slice(2, 4), SHUFFLE: slice(2, 4),
        spirv.PHI: slice(2, None, 2)}


@dataclass(frozen=True)
class Loop:
    """A loop of a shader."""

    parent: int | None  # index of the loop around it
    rounds: float  # how often its body runs, altogether; 0 where it is never reached


@dataclass(frozen=True)
class Counts:
    """What an invocation does, on the average."""

    invocations: int  # of a workgroup
    loops: tuple[Loop, ...]  # in the order of the code
    multiplies: float  # of floats
    loaded: float  # bytes from images and buffers


class _Slice:
    """What the branches of a module depend on: the ids of results, and by label the instructions to
    execute (`steps`)."""

    def __init__(self, module: ShaderModule):
        self.module = module
        self.needed: set[int] = set()
        work: list[int] = []
        stores: dict[int, list[int]] = {}
        for block in module.blocks.values():
            for opcode, _, operands in block.instructions:
                if opcode in (spirv.BRANCH_IF, spirv.SWITCH):
                    work.append(operands[0])
                elif opcode == spirv.STORE:
                    stores.setdefault(self._variable(operands[0]), []).extend(operands[:2])
        while work:
            found = work.pop()
            if found not in self.needed:
                self.needed.add(found)
                work += self._read_by(found)
                work += stores.get(found, ())
        self.steps = {label: [i for i in block.instructions if self._is_step(i)]
                      for label, block in module.blocks.items()}

    def _variable(self, pointer: int) -> int:
        while self.module.definitions[pointer].opcode == spirv.ACCESS_CHAIN:
            pointer = self.module.definitions[pointer].operands[2]
        return pointer

    def _read_by(self, result: int) -> tuple[int, ...]:
        """The ids that an instruction reads, without its literals."""
        definition = self.module.definitions.get(result)
        if definition is None or definition.opcode in (spirv.VARIABLE, *spirv.CONSTANTS):
            return ()
        return definition.operands[_IDS.get(definition.opcode, slice(2, None))]

    def _is_step(self, instruction: Instruction) -> bool:
        opcode, _, operands = instruction
        if opcode == spirv.STORE:
            return self._variable(operands[0]) in self.needed
        return spirv.BRANCH <= opcode <= spirv.RETURN or (
            len(operands) > 1 and operands[1] in self.needed
            and self.module.definitions.get(operands[1]) is instruction)

    @cached_property
    def parents(self) -> dict[int, int | None]:
        """By the label of a loop's header that of the loop around it, in the order of the code."""
        found: dict[int, int | None] = {}
        inside: list[tuple[int, int]] = []  # (label behind it, header)
        for label, block in self.module.blocks.items():
            while inside and inside[-1][0] == label:
                inside.pop()
            if block.merge is not None:
                found[label] = inside[-1][1] if inside else None
                inside.append((block.merge, label))
        return found


class _Invocation:
    """One run of the first invocation of a workgroup."""

    def __init__(self, part: _Slice, push: bytes, groups: tuple[int, ...], group: tuple[int, ...]):
        self.module, self.part, self.push = part.module, part, push
        size = self.module.local_size
        self._inputs = {24: list(groups), 25: list(size), 26: list(group), 27: [0, 0, 0],
                        28: [g * n for g, n in zip(group, size)], 36: 64}
        self._values: dict[int, Any] = {}
        self._memory: dict[int, Any] = {}
        self.blocks: Counter[int] = Counter()  # how often each ran, by label
        self.again: Counter[int] = Counter()  # how often a loop's header was reached from within it
        self._run()

    def _run(self) -> None:
        label, before = next(iter(self.module.blocks)), -1
        inside: list[int] = []  # headers of the loops that we are in
        for _ in range(_MOST_STEPS):
            block = self.module.blocks[label]
            while inside and self.module.blocks[inside[-1]].merge == label:
                inside.pop()
            if block.merge is not None:
                if inside and inside[-1] == label:
                    self.again[label] += 1
                else:
                    inside.append(label)
            self.blocks[label] += 1
            following = self._block(self.part.steps[label], before)
            if following is None:
                return
            label, before = following, label
        raise RuntimeError(f"more than {_MOST_STEPS} blocks of one invocation")

    def _block(self, steps: list[Instruction], before: int) -> int | None:
        """Executes a block behind another; the label of the next one, None at the end."""
        values, merged = self._values, {}
        for opcode, _, operands in steps:
            if opcode == spirv.PHI:
                pairs = dict(zip(operands[3::2], operands[2::2]))
                merged[operands[1]] = self._value(pairs[before])
                continue
            if merged:
                values.update(merged)
                merged = {}
            if opcode == spirv.BRANCH:
                return operands[0]
            if opcode == spirv.BRANCH_IF:
                return operands[1] if self._value(operands[0]) else operands[2]
            if opcode == spirv.SWITCH:
                cases = dict(zip(map(signed, operands[2::2]), operands[3::2]))
                return cases.get(self._value(operands[0]), operands[1])
            if opcode == spirv.STORE:
                self._store(*self._place(operands[0]), self._value(operands[1]))
            elif opcode == spirv.LOAD:
                values[operands[1]] = self._load(*self._place(operands[2]), operands[0])
            elif opcode not in (spirv.VARIABLE, spirv.ACCESS_CHAIN, spirv.RETURN):
                values[operands[1]] = evaluate(opcode, operands[2:], self._value,
                                               self.module.zero(operands[0]))
        return None

    def _value(self, result: int) -> Any:
        if result in self._values:
            return self._values[result]
        definition = self.module.definitions[result]
        if definition.opcode in spirv.CONSTANTS:
            return self.module.constant(result)
        return self.module.zero(self.module.type_of[result])

    def _place(self, pointer: int) -> tuple[int, list[int]]:
        """The variable that a pointer points into, and the way within it."""
        opcode, _, operands = self.module.definitions[pointer]
        if opcode != spirv.ACCESS_CHAIN:
            return pointer, []
        variable, way = self._place(operands[2])
        return variable, [*way, *map(self._value, operands[3:])]

    def _own(self, variable: int) -> Any:
        """The content of a variable of the invocation or its workgroup."""
        if variable not in self._memory:
            pointer = self.module.types[self.module.type_of[variable]]
            self._memory[variable] = self.module.zero(pointer.operands[2])
        return self._memory[variable]

    def _store(self, variable: int, way: list[int], value: Any) -> None:
        if way:
            reduce(getitem, way[:-1], self._own(variable))[way[-1]] = value
        else:
            self._memory[variable] = list(value) if isinstance(value, list) else value

    def _load(self, variable: int, way: list[int], type_id: int) -> Any:
        definition = self.module.definitions[variable]
        if definition.opcode != spirv.VARIABLE:
            return self.module.zero(type_id)
        storage = definition.operands[2]
        if storage in (spirv.WORKGROUP, spirv.PRIVATE, spirv.FUNCTION):
            content = self._own(variable)
        elif storage == spirv.INPUT:
            builtin, = self.module.decorations.get(variable, {}).get(spirv.BUILTIN, (0,))
            content = self._inputs.get(builtin, 0)
        elif storage == spirv.PUSH_CONSTANT:
            return self._pushed(self.module.types[definition.operands[0]].operands[2], way)
        else:
            return self.module.zero(type_id)
        for index in way:
            content = content[index] if 0 <= index < len(content) else content[0]
        return list(content) if isinstance(content, list) else content

    def _pushed(self, type_id: int, way: list[int], offset: int = 0) -> Any:
        """A push constant, or a vector of them."""
        module = self.module
        opcode, _, operands = module.types[type_id]
        if opcode == spirv.VECTOR and not way:
            return [self._pushed(type_id, [i], offset) for i in range(operands[2])]
        if not way:
            return module.number(type_id, self.push[offset:offset + 4].ljust(4, b"\0"))
        index, *rest = way
        if opcode == spirv.STRUCT:
            return self._pushed(operands[1 + index], rest, offset + module.offsets[type_id, index])
        stride = (module.decorations[type_id][spirv.ARRAY_STRIDE][0] if opcode == spirv.ARRAY
                  else module.width(operands[1]))
        return self._pushed(operands[1], rest, offset + index * stride)


@cache
def _slice(code: bytes, constants: tuple[tuple[int, int], ...]) -> _Slice:
    return _Slice(ShaderModule(code, constants))


@cache
def counts(code: bytes, constants: tuple[tuple[int, int], ...], push: bytes,
           groups: tuple[int, ...]) -> Counts:
    """What an invocation of a dispatch of SPIR-V does, the mean of those that are followed.
    `constants` are (id, value), and `groups` the workgroups (x, y, z)."""
    part = _slice(code, constants)
    module = part.module
    runs: list[_Invocation] = []
    for places in _PLACES:
        runs.append(_Invocation(part, push, groups, tuple(
            int(count * place) for count, place in zip(groups, places))))
        if len(runs) == 3 and all(run.blocks == runs[0].blocks for run in runs):
            break
    ran = {label: fmean(run.blocks[label] for run in runs) for label in module.blocks}
    headers = list(part.parents)
    loops = [Loop(None if parent is None else headers.index(parent),
                  max(fmean(run.again[header] for run in runs), 1.0) if ran[header] else 0.0)
             for header, parent in part.parents.items()]
    return Counts(
        prod(module.local_size), tuple(loops),
        sum(ran[label] * block.multiplies for label, block in module.blocks.items()),
        sum(ran[label] * block.loaded for label, block in module.blocks.items()))
