"""Modules in which drivers are asked to keep NaN: see vkrt/core/nan_mode.pxd."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
from ctypes import byref

import pytest
from core_alone import core
from core_build import needs_build

from vkrt.shader import shader_library

pytestmark = needs_build

ENTRY_POINT, EXECUTION_MODE, CAPABILITY, EXTENSION = 15, 16, 17, 10
PRESERVE_MODE, PRESERVE_CAPABILITY, FLOAT16 = 4461, 4466, 9


class NanModes(ctypes.Structure):
    """As vkrt/core/nan_mode.pxd has it."""

    _fields_ = [("float32", ctypes.c_int), ("float16", ctypes.c_int)]


def asked(spirv: bytes, float32: bool, float16: bool) -> bytes:
    """The module for a device that keeps NaN of these widths."""
    made, nbytes = ctypes.c_void_p(), ctypes.c_size_t()
    error = ctypes.create_string_buffer(1024)
    assert core().vkrt_ask_for_nan(spirv, ctypes.c_size_t(len(spirv)),
                                   byref(NanModes(float32, float16)), byref(made), byref(nbytes),
                                   error) == 0
    if not made:
        return spirv
    try:
        return ctypes.string_at(made, nbytes.value)
    finally:
        ctypes.CDLL(None).free(made)


def instructions(spirv: bytes) -> list[tuple[int, ...]]:
    """The opcode and the operands of each."""
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    found, at = [], 5
    while at < len(words):
        count = words[at] >> 16
        found.append((words[at] & 0xFFFF, *words[at + 1:at + count]))
        at += count
    return found


def widths(spirv: bytes) -> list[int]:
    """Of which NaN is to be kept by the module's entry point."""
    modes = [item for item in instructions(spirv) if item[0] == EXECUTION_MODE]
    entry, = (item[2] for item in instructions(spirv) if item[0] == ENTRY_POINT)
    return [item[3] for item in modes if item[1:3] == (entry, PRESERVE_MODE)]


def test_every_shader_asks_for_what_the_device_keeps():
    for name in shader_library():
        spirv = bytes(shader_library().get(name).spirv)
        halves = (CAPABILITY, FLOAT16) in instructions(spirv)
        assert widths(spirv) == [] and asked(spirv, False, False) == spirv
        assert widths(asked(spirv, True, False)) == [32]
        assert widths(asked(spirv, True, True)) == ([32, 16] if halves else [32])
        assert widths(asked(spirv, False, True)) == ([16] if halves else [])
        if not halves:
            assert asked(spirv, False, True) == spirv


@pytest.mark.parametrize("name", ["unary.texel.f32", "conv2d_shared_64.texel.f16.float16"])
def test_nothing_else_changes_and_it_is_valid(name, tmp_path):
    spirv = bytes(shader_library().get(name).spirv)
    made = asked(spirv, True, True)
    added = [(CAPABILITY, PRESERVE_CAPABILITY)]
    rest = [item for item in instructions(made) if item[0] != EXTENSION and item not in added
            and (item[0], *item[2:3]) != (EXECUTION_MODE, PRESERVE_MODE)]
    assert rest == [item for item in instructions(spirv) if item[0] != EXTENSION]
    if shutil.which("spirv-val"):
        (tmp_path / "made.spv").write_bytes(made)
        subprocess.run(["spirv-val", "--target-env", "vulkan1.2", str(tmp_path / "made.spv")],
                       check=True)


def test_modules_cut_off_anywhere_are_left_as_they_are_or_extended():
    """Whatever the words are: none beyond them is read."""
    spirv = bytes(shader_library().get("unary.texel.f32").spirv)[:1200]
    for nbytes in range(20, len(spirv), 4):
        cut = spirv[:nbytes]
        assert len(asked(cut, True, True)) - nbytes in (0, 4 * (2 + 7 + 4), 4 * (2 + 7 + 8))
