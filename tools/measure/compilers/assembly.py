"""The code that drivers' compilers make, as costs: each maker's assembly, read line by line.

What an instruction takes is in the units of `Cost`, for one lane. Slow functions of floats count 4
slots, and instructions that wait none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Cost:
    """What an instruction takes, for one lane of a wave."""

    issue: float = 0.0  # slots of a SIMD unit, of which a pass over its lanes takes one
    multiplies: float = 0.0  # of floats
    bytes: float = 0.0  # loaded, stored or spilled
    shared: float = 0.0  # bytes of the workgroup's memory
    is_load: bool = False  # whether what follows waits for it


@dataclass(frozen=True)
class Code:
    """A kernel: its instructions, and (first, last) instruction of each loop, outer ones first."""

    instructions: list[Cost]
    loops: list[tuple[int, int]]


# What a line is: its cost, and where it may jump to: a label, or so many instructions on from what
# follows it; None: no instruction
_Line = tuple[Cost, "str | int | None"] | None


def _code(text: str, read: Callable[[str], _Line], label: str = "(?!)", delay: int = 0) -> Code:
    """Code with one loop for all jumps back to a place.

    Args:
        label: matches a line that names a place, its first group is the name.
        delay: instructions behind a jump that run whether it is taken or not.
    """
    instructions: list[Cost] = []
    labels: dict[str, int] = {}
    jumps: list[tuple[int, str | int]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if name := re.match(label, line):
            labels[name[1]] = len(instructions)
        elif found := read(line):
            cost, target = found
            if target is not None:
                jumps.append((len(instructions) + delay, target))
            instructions.append(cost)
    last: dict[int, int] = {}
    for at, target in jumps:
        first = at + 1 + target if isinstance(target, int) else labels.get(target, at + 1)
        if first <= at:
            last[first] = max(last.get(first, 0), at)
    return Code(instructions, sorted(last.items(), key=lambda loop: (loop[0], -loop[1])))


def _group(pattern: str, text: str) -> str | None:
    """The first group where the pattern is found."""
    found = re.search(pattern, text)
    return found[1] if found else None


_ADRENO = re.compile(r"((?:\([a-z]+\d*\))*)\s*([a-z][\w.]*)(.*)$")
_ADRENO_SLOW = ("rcp", "rsq", "sqrt", "exp2", "log2", "sin", "cos", "hrsq", "hlog2", "hexp2")
_ADRENO_SHARED = ("ldl", "stl", "ldlw", "stlw")
_ADRENO_MEMORY = ("ldib", "ldg", "ldgk", "ldc", "ldcu", "ldp", "stib", "stg", "stp")


def _adreno_memory(base: str, operation: str, rest: str) -> Cost:
    said = re.search(r"\.(?:1d|2d)\.\w+\.(\d)", operation) or re.search(r",\s*(\d)\s*$", rest)
    width = 2 if re.search(r"\.[usf]16\b", operation) else 4
    nbytes = width * int(said[1] if said else 1)
    if base in _ADRENO_SHARED:
        return Cost(issue=1, shared=nbytes)
    return Cost(issue=1, bytes=nbytes, is_load=base.startswith("ld"))


def _adreno_line(line: str) -> _Line:
    """Of ir3."""
    found = _ADRENO.match(line)
    if not found or line.startswith("Native"):
        return None
    flags, operation, rest = found.groups()
    base = operation.partition(".")[0]
    times = 1 + int(_group(r"\(rpt(\d)\)", flags) or 0)
    if base == "nop":
        cost = Cost()
    elif base in ("isam", "sam", "isaml"):
        # A lane of a quad gets a texel of 16 bytes, or the share of a smaller one.
        cost = Cost(issue=1, bytes=16, is_load=True)
    elif base in (*_ADRENO_SHARED, *_ADRENO_MEMORY):
        cost = _adreno_memory(base, operation, rest)
    elif base in _ADRENO_SLOW:
        cost = Cost(issue=4 * times)
    else:
        is_half = ".f16" in operation or ".m16" in operation
        multiplies = base in ("mad", "mul") and ".f" in operation
        cost = Cost(issue=times * (0.5 if is_half else 1), multiplies=times * multiplies)
    return cost, _group(r"#(l\d+)", rest)


_RADEON = r"(?:= |^)((?:v|s|ds|buffer|global|flat|scratch|image|tbuffer)_[a-z0-9_]+)"
_RADEON_MULTIPLIES = re.compile(
    r"v_(pk_)?(fma|mad|mac|mul|fmac)\w*_f(32|16)|v_fma_mix|v_mad_mix|v_dot")
_RADEON_SLOW = ("v_rcp", "v_rsq", "v_sqrt", "v_exp", "v_log", "v_sin", "v_cos", "v_mul_lo_u32",
                "v_mul_hi_u32", "v_mad_u64")
_RADEON_BYTES = {
    "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "ubyte": 1, "ushort": 2, "short": 2, "byte": 1,
    "sbyte": 1, "sshort": 2, "b64": 8, "b96": 12, "b128": 16, "b16": 2, "b8": 1, "u16": 2, "u8": 1,
    "xyzw": 16, "xyz": 12, "xy": 8}


def _radeon_line(line: str) -> _Line:
    """Of ACO: vector instructions take the SIMD's slots, scalar ones another unit's."""
    operation = _group(_RADEON, line)
    if operation is None:
        return None
    nbytes = next((_RADEON_BYTES[part] for part in reversed(operation.split("_"))
                   if part in _RADEON_BYTES), 4)
    if operation.startswith("s_"):
        cost = Cost()
    elif operation.startswith("ds_"):
        cost = Cost(shared=nbytes * (2 if re.search("(read|write)2", operation) else 1))
    elif operation.startswith("v_"):
        multiplies = bool(_RADEON_MULTIPLIES.match(operation))
        cost = Cost(issue=4 if operation.startswith(_RADEON_SLOW) else 1,
                    multiplies=multiplies * (2 if "_pk_" in operation else 1))
    else:
        cost = Cost(bytes=max(nbytes, 4), is_load="load" in operation)
    return cost, _group(r"block:BB(\d+)", line)


_INTEL = re.compile(r"(?:\([^)]*\)\s*)?([a-z][a-z0-9]*)(?:\.[\w.]+)?\s*(?:\w+\s*)?\((\d+)\)(.*)$")
_INTEL_LENGTHS = re.compile(r"mlen (\d+) ex_mlen (\d+) rlen (\d+)")
# Lanes of 32 bits in a pass
_INTEL_LANES = 8


def _intel_line(line: str, wave: int) -> _Line:
    """With the line of a message, if it sends one, for threads of so many lanes."""
    found = _INTEL.match(line)
    if not found:
        return None
    operation, lanes, rest = found[1], int(found[2]), found[3]
    if operation in ("sync", "nop"):
        return Cost(issue=0.5 * _INTEL_LANES / wave), None
    is_half = re.search(r"<\d+(?:,\d,\d)?>HF", rest.partition("{")[0])
    passes = max(1.0, lanes / (2 * _INTEL_LANES if is_half else _INTEL_LANES))
    if operation == "math":
        passes *= 4
    multiplies = operation in ("mad", "mul", "mac") and re.search(r">H?F\b", rest)
    cost = Cost(issue=passes * _INTEL_LANES / wave, multiplies=lanes / wave if multiplies else 0)
    if "MsgDesc" in rest and not re.search("thread_spawner|gateway|mfence", rest):
        lengths = _INTEL_LENGTHS.search(rest)
        sent, more, returned = map(int, lengths.groups()) if lengths else (0, 0, 0)
        # In registers of 32 bytes; what is sent has one of them for the address.
        moved = 32 * (returned or sent + more - 1) / wave if lengths else 4
        if re.search(r"Surface = 254|bti 254|SLM", rest):
            cost.shared = moved
        else:
            cost.bytes, cost.is_load = moved, returned > 0
    return cost, _group(r"JIP:\s*(LABEL\d+)", rest) if operation == "while" else None


def _v3d_line(line: str) -> _Line:
    """Of a QPU: an addition and a multiplication in each instruction."""
    loads = line.count("ldtmu")
    stores = len(re.findall(r"\btmud\b", line))
    multiplies = len(re.findall(r"\bv?fmul", line)) * (2 if "vfmul" in line else 1)
    cost = Cost(issue=1, multiplies=multiplies, bytes=4 * (loads + stores), is_load=loads > 0)
    distance = _group(r"^bu?(?:\.\w+)?\s+(-?\d+)", line)  # in bytes
    return cost, None if distance is None else int(distance) // 8


_MALI_SLOW = ("FRCP", "FRSQ", "FEXP", "FLOG", "FSIN", "FCOS", "IMUL", "IDIV", "FPOW", "FTABLE")


def _mali_line(line: str) -> _Line:
    """Of Valhall."""
    if not re.match("[A-Z]", line):
        return None
    operation = line.split()[0]
    if operation.startswith("NOP"):
        cost = Cost()
    elif operation.startswith(("LD_", "LD.", "LOAD", "ST_", "STORE", "ATOM")):
        cost = Cost(bytes=max(int(_group(r"\.i(\d+)", operation) or 32) / 8, 4),
                    is_load=operation.startswith("L"))
    elif operation.startswith("LEA_BUF"):
        cost = Cost(bytes=4)
    elif operation.startswith("TEX"):
        cost = Cost(bytes=16, is_load=True)
    elif operation.startswith(_MALI_SLOW):
        cost = Cost(issue=4)
    else:
        multiplies = operation.startswith("FMA") * (2 if "v2f16" in operation else 1)
        cost = Cost(issue=1, multiplies=multiplies)
    offset = _group(r"offset:(-?\d+)", line) if operation.startswith("BRANCH") else None
    return cost, None if offset is None else int(offset)


# Maker -> what reads its code, for waves of so many lanes
READERS: dict[str, Callable[[str, int], Code]] = {
    "adreno": lambda text, _: _code(text, _adreno_line, r"(l\d+):$"),
    "radeon": lambda text, _: _code(text, _radeon_line, r"BB(\d+)"),
    # What a message says is in a line of its own, behind the instruction that sends it.
    "intel": lambda text, wave: _code(re.sub(r"\s*\n(?=.*MsgDesc)", " ", text),
                                      lambda line: _intel_line(line, wave), r"(LABEL\d+):"),
    "raspberry": lambda text, _: _code(text, _v3d_line, delay=3),
    "mali": lambda text, _: _code(text, _mali_line),
}
