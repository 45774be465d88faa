"""The core: what it links, its statuses, and parameters of strided copies of every kind."""

from __future__ import annotations

import ctypes
import random
import re
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from core_build import ALONE, needs_build, sanitized_core
from host_packing import pack_bytes
from memory_samples import random_bytes, reference

import vkrt
from vkrt.errors import InputError
from vkrt.executable.formats import DESCRIPTOR_TYPES, STORAGE_BUFFER, TEXEL_FORMATS
from vkrt.executable.memory import SLOTS
from vkrt.executable.records import STAGING
from vkrt.memory.packing import Packing
from vkrt.ops import strided_copy
from vkrt.shader import shader_library
from vkrt.work.host_arguments import BRANCH
from vkrt.work.records import LOCAL_SIZE
from vkrt.work.tensor import (
    DTYPES,
    ITEMSIZE,
    NOWHERE,
    Operand,
    device_dtype,
    itemsize,
    row_major,
)
from vkrt.work.tuning import LANES

PACKAGE = Path(vkrt.__file__).parent
# Bytes of the source and of the target beyond which a copy is not carried out here
MOST = 1 << 20


@needs_build
def test_dtypes_are_those_of_tensors():
    core = ctypes.CDLL(str(ALONE))
    for function in (core.vkrt_itemsize, core.vkrt_device_dtype, core.vkrt_texel_format):
        function.restype = ctypes.c_int64
    numbers = {name: ctypes.c_int64(number) for number, name in enumerate(ITEMSIZE)}
    for name, number in numbers.items():
        assert core.vkrt_itemsize(number) == ITEMSIZE[name]
        assert bool(core.vkrt_is_device_dtype(number)) == (name in DTYPES)
        assert core.vkrt_device_dtype(number) == numbers[device_dtype(name)].value
        assert core.vkrt_texel_format(number) == TEXEL_FORMATS.get(name, 0)


@pytest.mark.skipif(not (PACKAGE / "core/fit.pyx").exists(), reason="no sources are here")
def test_numbers_are_those_of_python():
    text = "".join((PACKAGE / "core" / name).read_text() for name in (
        "check.pxd", "check_commands.pyx", "fit.pyx"))
    for line in (f"STAGING = {STAGING}", f"UPLOAD_SLOTS = {SLOTS}", f"LOCAL_SIZE = {LOCAL_SIZE}",
                 f"LANES = {LANES}", f"STORAGE_BUFFER = {STORAGE_BUFFER}",
                 *(f"{name.upper()} = {DESCRIPTOR_TYPES[name]}" for name in (
                     "combined_image_sampler", "storage_image", "uniform_texel_buffer"))):
        assert f"    {line}\n" in text
    formats = sorted({0, *TEXEL_FORMATS.values()})
    assert f"return value in ({', '.join(map(str, formats))})" in text
    for dtype, number in TEXEL_FORMATS.items():
        nbytes, = re.findall(rf"format (?:in \([\d, ]*\b{number}\b[\d, ]*\)|== {number}):\n"
                             rf" *return (\d+)|return (\d+) if format in \(.*\b{number}\b", text)
        assert int("".join(nbytes)) == 4 * itemsize(dtype)
    assert f'is_text(records, &host.name, "{BRANCH}")' in text
    capabilities = shader_library().get("attention_tile.texel.f32.shuffle").capabilities
    assert any(f'"{capability}"' in text for capability in capabilities)


@pytest.mark.skipif(not ALONE.exists(), reason="the sources were not built here")
@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf")
def test_it_needs_neither_python_nor_the_library_of_cpp():
    """Only the system's C library, of which it names what it calls."""
    said = subprocess.run(["readelf", "-dW", "--dyn-syms", ALONE], capture_output=True, text=True,
                          check=True).stdout
    assert re.findall(r"NEEDED.*\[(.*)\]", said) == ["libc.so.6"]
    undefined = re.findall(r"GLOBAL DEFAULT +UND (\w+)", said)
    assert undefined and not [name for name in undefined if name.startswith(("Py", "_Py", "_Z"))]


def parameters(chance: random.Random) -> tuple[list[int], int, int]:
    """Parameters of a copy, most often with one of them changed; bytes of an element, and rows."""
    rank = chance.randint(1, 5)
    sizes = tuple(chance.randint(1, 6) for _ in range(rank))
    strides = tuple(chance.randint(-4, 12) for _ in range(rank))
    low = sum(min((size - 1) * stride, 0) for size, stride in zip(sizes, strides))
    target = Operand(NOWHERE, sizes, "float32", row_major(rank))
    params = list(strided_copy.params(target, None, list(zip(sizes, strides)), -low))
    if chance.random() < 0.7:
        place = chance.randrange(len(params))
        old = params[place]
        params[place] = chance.choice((
            0, 1, -1, old + 1, old - 1, 2 * old, -old, 1 << 20, 1 << 31, 1 << 32, 1 << 40, 1 << 62,
            (1 << 63) - 1, -(1 << 63), -(1 << 40), chance.getrandbits(63)))
    rows = chance.choice((1, 1, sizes[0], 2, 3, 1 << 40, (1 << 63) - 1, 0, -1))
    return params, chance.choice((1, 2, 4)), rows


@pytest.mark.parametrize("seed", range(8))
def test_any_parameters(seed):
    """They are refused, or name no byte outside of what they say they read and write; what is small
    enough is copied as numpy copies it."""
    chance = random.Random(f"copies {seed}")
    made = copied = 0
    for _ in range(2500):
        params, itemsize, rows = parameters(chance)
        try:
            packing = Packing(params, itemsize, rows)
        except InputError:
            continue
        made += 1
        assert 0 <= packing.source_bytes < 1 << 63 and 0 <= packing.target_bytes < 1 << 63
        if max(packing.source_bytes, packing.target_bytes) > MOST:
            continue
        data = random_bytes(packing.source_bytes)
        assert pack_bytes(params, itemsize, data, rows) == reference(params, itemsize, data)
        copied += 1
    assert made > 300 and copied > 200


@needs_build
def test_any_parameters_under_sanitizers(tmp_path):
    """The same, by AddressSanitizer and UndefinedBehaviorSanitizer, with buffers of exactly the
    size, in parts and at odd addresses; then by jobs of any numbers."""
    program = sanitized_core(tmp_path / "strided_copies",
                             Path(__file__).with_name("strided_copies.c"), "reader")
    with open(tmp_path / "sets", "wb") as file:
        for seed in range(8):
            chance = random.Random(f"copies {seed}")
            for _ in range(2500):
                params, itemsize, rows = parameters(chance)
                file.write(struct.pack(f"={3 + len(params)}q", itemsize, rows, len(params),
                                       *params))
    done = subprocess.run([program, tmp_path / "sets"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr[-4000:]
    assert len(done.stdout) == 20_000 and set(done.stdout) == {*"-.+*"}
    assert done.stdout.count("*") > 1600


def test_numbers_that_are_refused():
    params = list(strided_copy.params(Operand(NOWHERE, (4, 8), "float32", (0, 1)), None,
                                 [(4, 8), (8, 1)]))
    whole = Packing(params, 4)
    assert whole.source_bytes == whole.target_bytes == 128
    for place in range(len(params)):
        for number in (1 << 63, -(1 << 63) - 1, 1 << 100):
            with pytest.raises(InputError, match="64 bits"):
                Packing([*params[:place], number, *params[place + 1:]], 4)
    assert np.frombuffer(pack_bytes(params, 4, bytes(range(128))), np.uint8).tolist() == [
        *range(128)]
