"""Reads a compute shader's interface from its SPIR-V words.

Pure Python without imports from vkrt: the build loads this file on its own (shaders/build.py).
Numbers and layouts: the SPIR-V specification, sections 2.3 (module layout) and 3 (binary form).
"""

import struct
from typing import Any, NamedTuple

MAGIC = 0x07230203

_NAME, _MEMBER_NAME = 5, 6
_ENTRY_POINT, _EXECUTION_MODE, _CAPABILITY, _EXECUTION_MODE_ID = 15, 16, 17, 331
_TYPE_VOID, _TYPE_BOOL, _TYPE_INT, _TYPE_FLOAT, _TYPE_VECTOR, _TYPE_MATRIX = range(19, 25)
_TYPE_IMAGE, _TYPE_SAMPLER, _TYPE_SAMPLED_IMAGE, _TYPE_ARRAY = range(25, 29)
_TYPE_RUNTIME_ARRAY, _TYPE_STRUCT, _TYPE_POINTER = 29, 30, 32
_CONSTANT, _CONSTANT_COMPOSITE = 43, 44
_SPEC_TRUE, _SPEC_FALSE, _SPEC_CONSTANT, _SPEC_COMPOSITE = 48, 49, 50, 51
_FUNCTION, _VARIABLE, _DECORATE, _MEMBER_DECORATE = 54, 59, 71, 72

# OpSourceContinued, OpSource, OpSourceExtension, OpName, OpMemberName, OpString, OpLine, OpNoLine,
# OpModuleProcessed: for people and debuggers, no driver needs them.
_DEBUG = frozenset((2, 3, 4, _NAME, _MEMBER_NAME, 7, 8, 317, 330))

# Decorations.
_SPEC_ID, _BLOCK, _BUFFER_BLOCK, _ARRAY_STRIDE, _MATRIX_STRIDE, _BUILTIN = 1, 2, 3, 6, 7, 11
_ALIASED, _NON_WRITABLE, _NON_READABLE, _BINDING, _SET, _OFFSET = 20, 24, 25, 33, 34, 35
_BUILTIN_WORKGROUP_SIZE = 25

# Storage classes.
_UNIFORM_CONSTANT, _UNIFORM, _PUSH_CONSTANT, _STORAGE_BUFFER = 0, 2, 9, 12

_MODE_LOCAL_SIZE, _MODE_LOCAL_SIZE_ID = 17, 38
_GL_COMPUTE = 5
_DIM_BUFFER = 5

_CAPABILITIES = {
    0: "Matrix", 1: "Shader", 8: "Float16Buffer", 9: "Float16", 10: "Float64", 11: "Int64",
    12: "Int64Atomics",
    22: "Int16", 25: "ImageGatherExtended", 27: "StorageImageMultisample",
    28: "UniformBufferArrayDynamicIndexing", 29: "SampledImageArrayDynamicIndexing",
    30: "StorageBufferArrayDynamicIndexing", 31: "StorageImageArrayDynamicIndexing",
    34: "ImageCubeArray", 39: "Int8",
    43: "Sampled1D", 44: "Image1D", 45: "SampledCubeArray", 46: "SampledBuffer", 47: "ImageBuffer",
    49: "StorageImageExtendedFormats", 50: "ImageQuery",
    55: "StorageImageReadWithoutFormat", 56: "StorageImageWriteWithoutFormat",
    61: "GroupNonUniform", 62: "GroupNonUniformVote", 63: "GroupNonUniformArithmetic",
    64: "GroupNonUniformBallot", 65: "GroupNonUniformShuffle",
    66: "GroupNonUniformShuffleRelative", 67: "GroupNonUniformClustered",
    68: "GroupNonUniformQuad", 4423: "SubgroupBallotKHR",
    4433: "StorageBuffer16BitAccess", 4434: "UniformAndStorageBuffer16BitAccess",
    4435: "StoragePushConstant16", 4441: "VariablePointersStorageBuffer", 4442: "VariablePointers",
    4448: "StorageBuffer8BitAccess", 4449: "UniformAndStorageBuffer8BitAccess",
    4450: "StoragePushConstant8", 4464: "DenormPreserve", 4465: "DenormFlushToZero",
    4466: "SignedZeroInfNanPreserve", 4467: "RoundingModeRTE", 4468: "RoundingModeRTZ",
    5301: "ShaderNonUniform", 5302: "RuntimeDescriptorArray",
    5345: "VulkanMemoryModel", 5346: "VulkanMemoryModelDeviceScope",
    5347: "PhysicalStorageBufferAddresses", 5357: "CooperativeMatrixNV",
    6016: "DotProductInputAll", 6017: "DotProductInput4x8Bit",
    6018: "DotProductInput4x8BitPacked", 6019: "DotProduct", 6022: "CooperativeMatrixKHR",
}


class Instruction(NamedTuple):
    """One instruction: its opcode, where it starts in the words, and its operands."""

    opcode: int
    start: int
    operands: tuple[int, ...]


def words_of(module: bytes) -> tuple[int, ...]:
    """The 32-bit words of a module, little-endian as every Vulkan host has them.

    Raises:
        ValueError: the length or the magic number is not SPIR-V's.
    """
    if len(module) % 4 or len(module) < 20:
        raise ValueError(f"SPIR-V: {len(module)} bytes are no whole number of words with a header")
    words = struct.unpack(f"<{len(module) // 4}I", module)
    if words[0] != MAGIC:
        raise ValueError(f"SPIR-V: magic number 0x{words[0]:08x} instead of 0x{MAGIC:08x}")
    return words


def instructions(words: tuple[int, ...]) -> list[Instruction]:
    """Splits the words after the five of the header.

    Raises:
        ValueError: an instruction of length zero or beyond the end.
    """
    found = []
    at = 5
    while at < len(words):
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        if length == 0 or at + length > len(words):
            raise ValueError(f"SPIR-V: instruction {opcode} at word {at} claims {length} words "
                             f"of the {len(words) - at} left")
        found.append(Instruction(opcode, at, words[at + 1:at + length]))
        at += length
    return found


def strip(module: bytes) -> bytes:
    """The module without debug information: names, source text, line numbers."""
    words = words_of(module)
    kept = list(words[:5])
    for opcode, start, operands in instructions(words):
        if opcode not in _DEBUG:
            kept.extend(words[start:start + 1 + len(operands)])
    return struct.pack(f"<{len(kept)}I", *kept)


def interface(module: bytes) -> dict[str, Any]:
    """What a host has to know to run a compute module, as plain data for JSON.

    Returns:
        A dict with
        `bindings`: by (set, binding), each {set, count, ..} and what `vkrt.shader.Binding` has.
        `specs`: by id, each {id, name, type, default}; `default` are the constant's 32 bits.
        `push_bytes`: size of the push constant block, 0 without one.
        `local_size`: three numbers, the values before specialization.
        `local_size_ids`: for each of the three the specialization id that sets it, or None.
        `capabilities`: names, sorted.
        Names are empty for a stripped module.

    Raises:
        ValueError: not SPIR-V, no single compute entry point, or a layout no host can bind.
    """
    return _Module(module).interface()


def aliased(module: bytes) -> frozenset[int]:
    """The bindings in descriptor set 0 that may share memory with others (SPIR-V, 2.18.2).

    Raises:
        ValueError: not SPIR-V.
    """
    decorations = _Module(module).decorations.values()
    return frozenset(marks[_BINDING][0] for marks in decorations
                     if _ALIASED in marks and _BINDING in marks)


def _string(operands: tuple[int, ...]) -> str:
    raw = struct.pack(f"<{len(operands)}I", *operands)
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


class _Module:
    """The declarations of a module, indexed by id."""

    def __init__(self, module: bytes) -> None:
        self.names: dict[int, str] = {}
        self.member_names: dict[tuple[int, int], str] = {}
        self.decorations: dict[int, dict[int, tuple[int, ...]]] = {}
        self.member_decorations: dict[tuple[int, int], dict[int, tuple[int, ...]]] = {}
        self.types: dict[int, Instruction] = {}
        self.constants: dict[int, Instruction] = {}
        self.variables: list[tuple[int, int, int]] = []  # id, pointer type, storage class
        self.capabilities: set[int] = set()
        self.entry_points: list[int] = []
        self.modes: list[Instruction] = []
        try:
            for instruction in instructions(words_of(module)):
                if instruction.opcode == _FUNCTION:
                    break  # declarations end where the first function begins
                self._take(instruction)
        except IndexError:
            raise ValueError("SPIR-V: an instruction has too few operands") from None

    def _take(self, instruction: Instruction) -> None:
        opcode, _, operands = instruction
        if opcode == _NAME:
            self.names[operands[0]] = _string(operands[1:])
        elif opcode == _MEMBER_NAME:
            self.member_names[operands[0], operands[1]] = _string(operands[2:])
        elif opcode == _DECORATE:
            self.decorations.setdefault(operands[0], {})[operands[1]] = operands[2:]
        elif opcode == _MEMBER_DECORATE:
            key = operands[0], operands[1]
            self.member_decorations.setdefault(key, {})[operands[2]] = operands[3:]
        elif opcode == _CAPABILITY:
            self.capabilities.add(operands[0])
        elif opcode == _ENTRY_POINT:
            if operands[0] == _GL_COMPUTE:
                self.entry_points.append(operands[1])
        elif opcode in (_EXECUTION_MODE, _EXECUTION_MODE_ID):
            self.modes.append(instruction)
        elif _TYPE_VOID <= opcode <= _TYPE_POINTER:
            self.types[operands[0]] = instruction
        elif opcode in (_CONSTANT, _CONSTANT_COMPOSITE, _SPEC_TRUE, _SPEC_FALSE, _SPEC_CONSTANT,
                        _SPEC_COMPOSITE):
            self.constants[operands[1]] = instruction
        elif opcode == _VARIABLE:
            self.variables.append((operands[1], operands[0], operands[2]))

    def interface(self) -> dict[str, Any]:
        try:
            if len(self.entry_points) != 1:
                raise ValueError(f"SPIR-V: {len(self.entry_points)} compute entry points, not one")
            local_size, local_size_ids = self._local_size()
            return {
                "bindings": self._bindings(),
                "specs": self._specs(),
                "push_bytes": self._push_bytes(),
                "local_size": local_size,
                "local_size_ids": local_size_ids,
                "capabilities": sorted(_CAPABILITIES.get(c, f"Capability{c}")
                                       for c in self.capabilities),
            }
        except (KeyError, IndexError) as error:
            raise ValueError(f"SPIR-V: id {error} is not declared as it is used") from None

    # Descriptors

    def _bindings(self) -> list[dict[str, Any]]:
        found = []
        for variable, pointer, storage in self.variables:
            if storage not in (_UNIFORM_CONSTANT, _UNIFORM, _STORAGE_BUFFER):
                continue
            decorations = self.decorations.get(variable, {})
            if _BINDING not in decorations:
                raise ValueError(f"SPIR-V: {self.names.get(variable) or variable} has no binding")
            pointee, count = self._element(self.types[pointer].operands[2])
            kind, component = self._descriptor(pointee, storage)
            readable, writable = self._access(variable, pointee, kind)
            found.append({
                "set": decorations.get(_SET, (0,))[0],
                "binding": decorations[_BINDING][0],
                "count": count,
                "type": kind,
                "component": component,
                "readable": readable,
                "writable": writable,
                "name": self._binding_name(variable, pointee),
            })
        return sorted(found, key=lambda b: (b["set"], b["binding"]))

    def _element(self, type_id: int) -> tuple[int, int]:
        """The type below an array of descriptors and the array's length, 1 without one."""
        opcode, _, operands = self.types[type_id]
        if opcode == _TYPE_RUNTIME_ARRAY:
            raise ValueError("SPIR-V: an array of descriptors has no length")
        if opcode == _TYPE_ARRAY:
            return operands[1], self._constant(operands[2])
        return type_id, 1

    def _descriptor(self, type_id: int, storage: int) -> tuple[str, str]:
        opcode, _, operands = self.types[type_id]
        if opcode == _TYPE_STRUCT:
            # Before SPIR-V 1.3 a storage buffer was a Uniform decorated BufferBlock.
            old_buffer = _BUFFER_BLOCK in self.decorations.get(type_id, {})
            buffer = storage == _STORAGE_BUFFER or old_buffer
            return ("storage_buffer" if buffer else "uniform_buffer"), "struct"
        if opcode == _TYPE_SAMPLER:
            return "sampler", "struct"
        combined = opcode == _TYPE_SAMPLED_IMAGE
        if combined:
            opcode, _, operands = self.types[operands[1]]
        if opcode != _TYPE_IMAGE:
            raise ValueError(f"SPIR-V: no descriptor has a type of opcode {opcode}")
        component = self._component(operands[1])
        in_buffer, stored = operands[2] == _DIM_BUFFER, operands[6] == 2
        if in_buffer:
            return ("storage_texel_buffer" if stored else "uniform_texel_buffer"), component
        if stored:
            return "storage_image", component
        return ("combined_image_sampler" if combined else "sampled_image"), component

    def _component(self, type_id: int) -> str:
        opcode, _, operands = self.types[type_id]
        if opcode == _TYPE_FLOAT:
            return "float"
        return "int" if operands[2] else "uint"

    def _access(self, variable: int, pointee: int, kind: str) -> tuple[bool, bool]:
        if kind not in ("storage_buffer", "storage_image", "storage_texel_buffer"):
            return True, False
        # A block's qualifiers are on its members; it has one if every member has it.
        members = [self.member_decorations.get((pointee, member), {})
                   for member in range(len(self.types[pointee].operands) - 1)
                   if kind == "storage_buffer"]

        def marked(decoration: int) -> bool:
            return (decoration in self.decorations.get(variable, {})
                    or bool(members) and all(decoration in marks for marks in members))

        return not marked(_NON_READABLE), not marked(_NON_WRITABLE)

    def _binding_name(self, variable: int, pointee: int) -> str:
        """The variable's name; for a block without an instance name that of its only member."""
        name = self.names.get(variable, "")
        if name or self.types[pointee].opcode != _TYPE_STRUCT:
            return name
        if len(self.types[pointee].operands) == 2:
            name = self.member_names.get((pointee, 0), "")
        return name or self.names.get(pointee, "")

    # Constants

    def _constant(self, constant: int) -> int:
        opcode, _, operands = self.constants[constant]
        return int(opcode == _SPEC_TRUE) if opcode in (_SPEC_TRUE, _SPEC_FALSE) else operands[2]

    def _specs(self) -> list[dict[str, Any]]:
        found = []
        for constant, (opcode, _, operands) in self.constants.items():
            decorations = self.decorations.get(constant, {})
            if _SPEC_ID not in decorations:
                continue
            boolean = opcode in (_SPEC_TRUE, _SPEC_FALSE)
            found.append({
                "id": decorations[_SPEC_ID][0],
                "name": self.names.get(constant, ""),
                "type": "bool" if boolean else self._component(operands[0]),
                "default": self._constant(constant),
            })
        return sorted(found, key=lambda s: s["id"])

    def _local_size(self) -> tuple[list[int], list[int | None]]:
        parts: list[int] | None = None
        # A composite decorated WorkgroupSize overrides the execution mode (SPIR-V, 3.21 BuiltIn).
        for constant, instruction in self.constants.items():
            if self.decorations.get(constant, {}).get(_BUILTIN) == (_BUILTIN_WORKGROUP_SIZE,):
                parts = list(instruction.operands[2:5])
        for opcode, _, operands in self.modes:
            if parts is None and opcode == _EXECUTION_MODE and operands[1] == _MODE_LOCAL_SIZE:
                return list(operands[2:5]), [None] * 3
            if parts is None and operands[1] == _MODE_LOCAL_SIZE_ID:
                parts = list(operands[2:5])
        if parts is None or len(parts) != 3:
            raise ValueError("SPIR-V: no local size")
        ids = [self.decorations.get(part, {}).get(_SPEC_ID, (None,))[0] for part in parts]
        return [self._constant(part) for part in parts], ids

    # Push constants

    def _push_bytes(self) -> int:
        return max((self._size(self.types[pointer].operands[2])
                    for _, pointer, storage in self.variables if storage == _PUSH_CONSTANT),
                   default=0)

    def _size(self, type_id: int, decorations: dict[int, tuple[int, ...]] | None = None) -> int:
        """Bytes of a type in a block; `decorations` are the member's if it is one."""
        opcode, _, operands = self.types[type_id]
        if opcode in (_TYPE_INT, _TYPE_FLOAT):
            return operands[1] // 8
        if opcode == _TYPE_VECTOR:
            return self._size(operands[1]) * operands[2]
        if opcode == _TYPE_MATRIX:
            return (decorations or {})[_MATRIX_STRIDE][0] * operands[2]
        if opcode == _TYPE_ARRAY:
            return self.decorations[type_id][_ARRAY_STRIDE][0] * self._constant(operands[2])
        if opcode == _TYPE_STRUCT:
            end = 0
            for member, member_type in enumerate(operands[1:]):
                marks = self.member_decorations[type_id, member]
                end = max(end, marks[_OFFSET][0] + self._size(member_type, marks))
            return end
        if opcode == _TYPE_POINTER:
            return 8
        raise ValueError(f"SPIR-V: a push constant has a type of opcode {opcode}")
