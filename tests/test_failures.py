"""What happens when something goes wrong: the right exception, nothing left behind."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import numpy as np
import pytest
from support import MODELS

import vkrt


@pytest.mark.driver
@pytest.mark.parametrize("weights, order, storage, least", [
    ("copy", "lazy", "texel", 3), ("copy", "lazy", "texture3d", 3), ("copy", "eager", "texel", 3),
    ("copy", "eager", "texture3d", 3), ("direct", "lazy", "texel", 2),
    ("direct", "eager", "texel", 2), ("stream", "lazy", "texel", 2)])
def test_out_of_memory_at_every_allocation(device, weights, order, storage, least):
    """Each allocation of a load fails in turn; everything before it is released each time."""
    from vkrt.vk.memory import fail_allocation_after

    failures = 0
    while True:
        fail_allocation_after(failures + 1)
        try:
            with vkrt.load(MODELS / "conv_mix.pte", device, order=order, storage=storage,
                           weights=weights) as good:
                good.run(np.zeros(good.metadata().inputs[0].sizes, np.float32))
            break
        except vkrt.DeviceMemoryError as error:
            assert error.asked > 0
            assert error.breakdown["peak_bytes"] >= error.breakdown["weight_bytes"] >= 0
            assert isinstance(error, MemoryError)
        finally:
            fail_allocation_after(-1)
        failures += 1
        assert failures < 100
    assert failures >= least  # a weight block or the pool, staging if there is any, the arena


@pytest.mark.driver
def test_other_programs_go_on_after_a_failure(device):
    from vkrt.vk.memory import fail_allocation_after

    with np.load(MODELS / "mlp.npz") as archive:
        x, y = archive["in0"], archive["out0"]
    with vkrt.load(MODELS / "mlp.pte", device) as program:
        fail_allocation_after(1)
        try:
            with pytest.raises(vkrt.DeviceMemoryError):
                vkrt.load(MODELS / "conv_mix.pte", device)
        finally:
            fail_allocation_after(-1)
        np.testing.assert_allclose(program.run(x)[0], y, rtol=1e-4, atol=1e-5)


@pytest.mark.driver
def test_damaged_files(device):
    """Any byte may be wrong: a clear exception or a program that loads, never a crash."""
    random.seed(7)
    # Less on further drivers: nothing of this depends on them.
    count = 12 if os.environ.get("VKRT_TEST_DEPTH") == "quick" else 60
    allowed = (vkrt.FormatError, vkrt.UnsupportedError)
    for name in ("toy.pte", "conv_mix.pte", "elementwise.pte", "shapes.pte"):
        original = (MODELS / name).read_bytes()
        for _ in range(count):
            data = bytearray(original)
            for _ in range(random.choice((1, 1, 2, 4))):
                data[random.randrange(len(data) // 2)] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
            try:
                with vkrt.load(bytes(data), device) as program:
                    program.run(*[np.zeros(i.sizes, i.dtype)
                                  for i in program.metadata().inputs])
            except allowed as error:
                assert str(error)


@pytest.mark.driver
@pytest.mark.parametrize("length", [0, 3, 8, 40, 1000])
def test_truncated(device, length):
    data = (MODELS / "mlp.pte").read_bytes()[:length]
    with pytest.raises(vkrt.FormatError):
        vkrt.load(data, device)


def run_python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, **environment}, timeout=120, check=False)


def test_import_without_a_driver():
    """Importing works; opening a device says what is missing."""
    done = run_python(
        "import vkrt\n"
        "try: vkrt.devices()\n"
        "except vkrt.LoaderError as e: print('LoaderError', e)\n",
        VKRT_VULKAN_LIBRARY="/nonexistent/libvulkan.so")
    assert done.returncode == 0, done.stderr
    assert "LoaderError" in done.stdout and "/nonexistent/libvulkan.so" in done.stdout


def test_no_device():
    """A library without a driver behind it is a LoaderError too."""
    done = run_python(
        "import vkrt\n"
        "try: vkrt.load(b'')\n"
        "except vkrt.VkrtError as e: print(type(e).__name__)\n"
        "try: print(vkrt.devices())\n"
        "except vkrt.LoaderError as e: print('LoaderError', e)\n",
        VK_DRIVER_FILES="/nonexistent.json", VK_ICD_FILENAMES="/nonexistent.json")
    assert done.returncode == 0, done.stderr
    assert "FormatError" in done.stdout
    assert "LoaderError" in done.stdout or "[]" in done.stdout
