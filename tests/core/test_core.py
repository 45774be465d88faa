"""The core: what it links, its statuses, and parameters of strided copies of every kind."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from host_packing import pack_bytes
from memory_samples import random_bytes, reference

import vkrt
from vkrt.errors import InputError
from vkrt.extensions import file_of
from vkrt.memory.packing import Packing
from vkrt.ops import copying
from vkrt.work.tensor import NOWHERE, Operand, row_major

PACKAGE = Path(vkrt.__file__).parent
# The build links the core alone into this library, which is not installed.
ALONE = Path(file_of("vkrt.memory._memory")).parents[1] / "core" / "libvkrt_core_alone.so"
# Bytes of the source and of the target beyond which a copy is not carried out here
MOST = 1 << 20


@pytest.mark.skipif(not (PACKAGE / "core/error.pxd").exists(), reason="no sources are here")
def test_statuses_are_those_of_the_c_library():
    told = dict(re.findall(r"(VKRT_[A-Z_]+) = (\d+)", (PACKAGE / "capi/vkrt.h").read_text()))
    core = re.findall(r"^    (VKRT_[A-Z_]+) = (\d+)$", (PACKAGE / "core/error.pxd").read_text(),
                      re.MULTILINE)
    assert len(core) >= 2
    for name, number in core:
        assert told[name] == number


@pytest.mark.skipif(not ALONE.exists(), reason="the sources were not built here")
@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf")
def test_it_needs_no_python():
    """Only the system's C library, of which it names what it calls."""
    said = subprocess.run(["readelf", "-dW", "--dyn-syms", ALONE], capture_output=True, text=True,
                          check=True).stdout
    assert re.findall(r"NEEDED.*\[(.*)\]", said) == ["libc.so.6"]
    undefined = re.findall(r"GLOBAL DEFAULT +UND (\w+)", said)
    assert undefined and not [name for name in undefined if name.startswith(("Py", "_Py"))]


def parameters(chance: random.Random) -> tuple[list[int], int, int]:
    """Parameters of a copy that may be one, with one of them changed as often as not; bytes of an
    element, and rows."""
    rank = chance.randint(1, 5)
    sizes = tuple(chance.randint(1, 6) for _ in range(rank))
    strides = tuple(chance.randint(-4, 12) for _ in range(rank))
    low = sum(min((size - 1) * stride, 0) for size, stride in zip(sizes, strides))
    target = Operand(NOWHERE, sizes, "float32", row_major(rank))
    params = list(copying.params(target, None, copying.Walk(sizes, strides, -low)))
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


def test_numbers_that_are_refused():
    params = list(copying.params(Operand(NOWHERE, (4, 8), "float32", (0, 1)), None,
                                 copying.Walk((4, 8), (8, 1))))
    whole = Packing(params, 4)
    assert whole.source_bytes == whole.target_bytes == 128
    for place in range(len(params)):
        for number in (1 << 63, -(1 << 63) - 1, 1 << 100):
            with pytest.raises(InputError, match="64 bits"):
                Packing([*params[:place], number, *params[place + 1:]], 4)
    assert np.frombuffer(pack_bytes(params, 4, bytes(range(128))), np.uint8).tolist() == [
        *range(128)]
