"""Limits that no driver at hand has: work is fitted to them, or refused with the reason."""

from __future__ import annotations

import numpy as np
import pytest
from support import MODELS, as_input, need_one_memory

import vkrt
from vkrt.executable.formats import check_descriptors
from vkrt.shader import shader_library
from vkrt.vk.device import Device
from vkrt.vk.device_override import override_device

# What every device of Vulkan 1.1 has
LEAST = {"maxPerStageDescriptorStorageBuffers": 4, "maxPerStageDescriptorSampledImages": 16,
         "maxPerStageDescriptorStorageImages": 4}
MIB = 1 << 20
HEAPS = ({"size": 1 << 30, "device_local": True}, {"size": 1 << 30, "device_local": False})
# Shared memory that the host reads past its cache, and other that it does not
UNCACHED = ((0, ("device_local", "host_visible", "host_coherent")),
            (1, ("host_visible", "host_coherent", "host_cached")))


class Smallest:
    """A device (as far as `DeviceInfo` goes) that has no more than it must."""

    name = "the smallest device"
    limits = LEAST


def run(name: str, device: Device, **options):
    with vkrt.load(MODELS / f"{name}.pte", device, **options) as program:
        inputs = [as_input(np.linspace(-1, 1, int(np.prod(i.sizes))).reshape(i.sizes), i)
                  for i in program.metadata().inputs]
        outputs = [output.tobytes() for output in program.run(*inputs)]
        assert program.memory.measured_peak == program.memory.planned_peak
        return outputs, program.memory


def test_every_kernel_binds_what_every_device_allows():
    for name in shader_library():
        check_descriptors(shader_library().get(name), Smallest)


@pytest.mark.driver
def test_a_kernel_that_binds_too_much_is_named():
    words = r"the kernel \w+\.texel\.f32 reads and writes 1 storage buffers; .* allows 0 \(maxPerSt"
    with override_device(limits={"maxPerStageDescriptorStorageBuffers": 0}), \
            Device.open() as device, pytest.raises(vkrt.UnsupportedError, match=words):
        run("mlp", device)


@pytest.mark.parametrize("weights", ["direct", "copy", "stream"])
def test_blocks_are_no_larger_than_the_device_allocates(weights, device):
    """Weights that would share a block get several, staging is made smaller."""
    expected, memory = run("conv_mix", device, weights=weights, chunk=MIB)
    most = max(memory.weights // 2, memory.activations, memory.pool)
    with override_device(limits={"maxMemoryAllocationSize": most}), Device.open() as opened:
        assert run("conv_mix", opened, weights=weights, chunk=MIB)[0] == expected


def test_a_file_is_mapped_in_windows_that_share_pages(device):
    """Weights lie at 8,192 to 41,728 of the file, and one begins in the last page of a window
    whose end it is beyond."""
    need_one_memory(device)
    expected, memory = run("mlp", device)
    with override_device(limits={"maxMemoryAllocationSize": 32768}), Device.open() as opened:
        outputs, in_windows = run("mlp", opened)
    assert outputs == expected and in_windows.mapped == memory.mapped > 0


@pytest.mark.driver
@pytest.mark.parametrize(("most", "words"), [
    (1000, "the weight '.*' would need"), (40_000, "arena of activations .*would need")])
def test_what_has_to_be_in_one_block_is_refused(most, words):
    words = f"{words} .*at most {most:,} bytes at once"
    with override_device(limits={"maxMemoryAllocationSize": most}), Device.open() as opened, \
            pytest.raises(vkrt.UnsupportedError, match=words):
        run("unet_small", opened, weights="copy")


def test_outputs_lie_where_the_host_has_a_cache(device):
    need_one_memory(device)
    expected, _ = run("places", device, weights="direct")
    with override_device(heaps=HEAPS, memory_types=UNCACHED), Device.open() as opened:
        for weights in ("auto", "direct", "stream"):
            outputs, memory = run("places", opened, weights=weights)
            assert outputs == expected and memory.host > 0
    # Where there is no such memory, everything lies in the arena.
    with override_device(heaps=HEAPS, memory_types=UNCACHED[:1]), Device.open() as opened:
        outputs, memory = run("places", opened)
        assert outputs == expected and memory.host == 0


def test_a_program_that_the_device_has_no_room_for_runs_from_the_host_s_memory(device):
    need_one_memory(device)
    expected, memory = run("conv_mix", device, weights="direct")
    heaps = ({"size": 1000, "device_local": True}, HEAPS[1])
    types = ((0, ("device_local", "host_visible", "host_coherent", "host_cached")),
             (1, ("host_visible", "host_coherent", "host_cached")))
    with override_device(heaps=heaps, memory_types=types), Device.open() as opened:
        outputs, elsewhere = run("conv_mix", opened, weights="direct")
    assert outputs == expected
    assert elsewhere.planned_peak == memory.planned_peak
    assert any("bytes lie in the host's memory" in note for note in elsewhere.notes)
    assert not any("bytes lie in the host's memory" in note for note in memory.notes)
