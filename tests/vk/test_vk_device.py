"""Listing, choosing, opening, adopting and closing devices."""

import ctypes
import dataclasses
import gc
import pickle

import numpy as np
import pytest
from core_bench import BUFFER_USAGE, DEVICE, STORAGE_BUFFER
from core_shaders import shader
from host_device import open_host
from support import MODELS

import vkrt
from vkrt.errors import InputError
from vkrt.vk import live_objects
from vkrt.vk.device import Device, devices
from vkrt.vk.info import DeviceInfo
from vkrt.vk.memory import Allocator
from vkrt.vk.pipeline import DescriptorLayout, ShaderModule
from vkrt.vk.resource import Buffer
from vkrt.vk.selector import choose

pytestmark = pytest.mark.driver


def test_devices_are_described(device):
    found = devices()
    assert [d.index for d in found] == list(range(len(found)))
    info = device.info
    assert info in found
    assert info.name and info.type in ("cpu", "integrated", "discrete", "virtual", "other")
    assert [int(n) for n in info.api_version.split(".")] >= [1, 1, 0]
    assert all(heap["size"] > 0 for heap in info.heaps)
    assert any("device_local" in flags for _, flags in info.memory_types)
    limits = info.limits
    # the least that Vulkan allows
    assert limits["maxStorageBufferRange"] >= 1 << 27
    assert limits["maxTexelBufferElements"] >= 65536
    assert limits["maxImageDimension3D"] >= 256
    assert len(limits["maxComputeWorkGroupCount"]) == 3
    assert min(limits["maxComputeWorkGroupCount"]) >= 65535
    assert limits["maxComputeWorkGroupInvocations"] >= 128
    assert limits["maxPushConstantsSize"] >= 128
    assert limits["maxMemoryAllocationSize"] >= 1 << 30
    assert limits["subgroupSize"] >= 1
    assert all(isinstance(value, bool) for value in info.features.values())
    assert device.features <= {name for name, has in info.features.items() if has}
    assert pickle.loads(pickle.dumps(info)) == info
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.name = "other"


def test_selectors(device):
    info = device.info
    for selector in (info.index, info.name, info.name[1:5].upper(), info):
        with Device.open(selector) as opened:
            assert opened.info == info
    for selector in (99, -1, "no such device", dataclasses.replace(info, name="another")):
        with pytest.raises(InputError, match="no Vulkan device is .*: 0 is "):
            Device.open(selector)
    with pytest.raises(InputError, match="expected an index"):
        Device.open(1.5)
    with pytest.raises(TypeError, match="open"):
        Device()


def test_default_prefers_gpus():
    def entry(index, kind, name="x"):
        return index, DeviceInfo(index, name, kind, 1, 1, 0, "", "", "1.1.0")

    found = [entry(0, "cpu"), entry(1, "integrated"), entry(2, "discrete"), entry(3, "discrete")]
    assert choose(found, None)[0] == 2
    assert choose(found[:2], None)[0] == 1
    assert choose(found[:1], None)[0] == 0
    # two equal cards
    assert choose(found, found[3][1])[0] == 3


def test_close_is_idempotent_and_waits_for_children():
    before = live_objects()
    device = Device.open()
    allocator = Allocator(device)
    block = allocator.allocate(1024, 16, 0xFFFFFFFF, DEVICE)
    buffer = Buffer(device, 64, BUFFER_USAGE)
    device.close()
    device.close()
    assert device.closed
    with pytest.raises(ValueError, match="closed"):
        Buffer(device, 64, BUFFER_USAGE)
    assert live_objects()["device"] == before["device"] + 1
    buffer.close()
    buffer.close()
    allocator.close()
    assert live_objects()["allocator"] == before["allocator"] + 1
    block.close()
    block.close()
    assert live_objects() == before


def test_dropping_everything_releases_it():
    before = live_objects()
    device = Device.open()
    allocator = Allocator(device)
    made = [allocator.allocate(64, 16, 0xFFFFFFFF, DEVICE), Buffer(device, 64, BUFFER_USAGE),
            DescriptorLayout(device, [STORAGE_BUFFER]), ShaderModule(device, shader("linear"))]
    cycle = [made, device]
    cycle.append(cycle)
    del device, allocator, made, cycle
    gc.collect()
    assert live_objects() == before


@pytest.fixture
def foreign():
    """Instance, physical device, device and queue of the PyPI package `vulkan`."""
    with open_host() as host:
        yield host.handles


@pytest.mark.parametrize("form", ["cffi", "int"])
def test_adopted_device_runs_a_program_and_is_left_alone(foreign, form):
    vk = pytest.importorskip("vulkan")
    handles = foreign
    if form == "int":
        handles = [int(vk.ffi.cast("uintptr_t", handle)) for handle in foreign]
    before = live_objects()
    with Device.adopt(*handles, 0) as device:
        # What subgroups can do, and how fast products are, is nothing that a host enables.
        assert all(name.startswith(("subgroup_", "accelerated_")) for name in device.features)
        with vkrt.load(MODELS / "mlp.pte", device) as program, \
                np.load(MODELS / "mlp.npz") as archive:
            np.testing.assert_allclose(program.run(archive["in0"])[0], archive["out0"], rtol=1e-4,
                                       atol=1e-5)
    assert live_objects() == before
    vk.vkDeviceWaitIdle(foreign[2])  # still the application's


@pytest.fixture
def families():
    """Address of a vkGetInstanceProcAddr of a driver with three queue families: two that compute,
    with timestamps of different lengths, and one that only copies."""
    graphics_and_compute, compute, transfer = 0x7, 0x6, 0x4
    has = [(graphics_and_compute, 1, 64), (compute, 1, 36), (transfer, 1, 0)]
    library = ctypes.CDLL("libvulkan.so.1")
    library.vkGetInstanceProcAddr.restype = ctypes.c_void_p
    library.vkGetInstanceProcAddr.argtypes = [ctypes.c_void_p, ctypes.c_char_p]

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32),
                      ctypes.POINTER(ctypes.c_uint32))
    def describe(_, count, properties):
        count[0] = min(count[0], len(has))
        for index, values in enumerate(has[:count[0]]):
            for place, value in enumerate((*values, 1, 1, 1)):
                properties[6 * index + place] = value

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
    def find(instance, name):
        if name == b"vkGetPhysicalDeviceQueueFamilyProperties":
            return ctypes.cast(describe, ctypes.c_void_p).value
        return library.vkGetInstanceProcAddr(instance, name)

    yield ctypes.cast(find, ctypes.c_void_p).value


@pytest.mark.parametrize(("family", "bits"), [(0, 64), (1, 36)])
def test_timestamps_are_those_of_the_adopted_queue_s_family(foreign, families, family, bits):
    with Device.adopt(*foreign, family, get_instance_proc_addr=families) as device:
        assert device.queue_family == family and device.timestamp_bits == bits
        assert device.info.features["timestamps"]


def test_a_family_that_does_not_compute_is_refused(foreign, families):
    for family, words in ((2, "does compute"), (3, "one of the device's 3 families")):
        with pytest.raises(InputError, match=f"queue_family={family}: expected .*{words}"):
            Device.adopt(*foreign, family, get_instance_proc_addr=families)


def test_adopt_checks_its_arguments(foreign):
    for bad in (0, None, "device"):
        with pytest.raises(InputError, match="device: "):
            Device.adopt(foreign[0], foreign[1], bad, foreign[3], 0)
    with pytest.raises(InputError, match="no_such_feature"):
        Device.adopt(*foreign, 0, features=["no_such_feature"])
