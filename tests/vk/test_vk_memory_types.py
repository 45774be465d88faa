"""Which memory a block gets: by the types that devices have, and where one is full."""

import ctypes
from ctypes import byref

import pytest
from core_alone import core
from core_bench import ANY_TYPE, DEVICE, READBACK, STAGING
from core_build import needs_build
from support import need_one_memory

from vkrt.errors import DeviceMemoryError
from vkrt.vk.device import Device
from vkrt.vk.device_override import override_device
from vkrt.vk.memory import Allocator
from vkrt.vk.memory_types import PROPERTIES

LOCAL, VISIBLE, COHERENT, CACHED = "device_local", "host_visible", "host_coherent", "host_cached"

# Memory types as kinds of devices have them
CPU = ((0, (LOCAL, VISIBLE, COHERENT, CACHED)),)
# A desktop's card with a window for the host
CARD = ((0, (LOCAL,)), (1, (VISIBLE, COHERENT)), (2, (LOCAL, VISIBLE, COHERENT)),
        (1, (VISIBLE, COHERENT, CACHED)))
# An AMD card's, of which the last two want a feature
AMD = (*CARD, (0, (LOCAL, "device_coherent", "device_uncached")),
       (1, (VISIBLE, COHERENT, CACHED, "device_coherent", "device_uncached")))
# An AMD processor's GPU: what is local the host reads past its cache
APU = ((0, (LOCAL,)), (1, (VISIBLE, COHERENT)), (0, (LOCAL, VISIBLE, COHERENT)),
       (1, (VISIBLE, COHERENT, CACHED)))
# A Raspberry Pi's GPU: one type, without the cache
PI = ((0, (LOCAL, VISIBLE, COHERENT)),)
# A phone's GPU: cached memory is not coherent
PHONE = ((0, (LOCAL, VISIBLE, COHERENT)), (0, (LOCAL, VISIBLE, CACHED)),
         (0, (LOCAL, "lazily_allocated")), (0, (LOCAL, VISIBLE, CACHED, "protected")))


class Memory(ctypes.Structure):
    """A VkPhysicalDeviceMemoryProperties without heaps."""

    _fields_ = [("count", ctypes.c_uint32), ("types", ctypes.c_uint32 * 2 * 32),
                ("heaps", ctypes.c_uint64 * 33)]


def memory_of(types):
    memory = Memory(len(types))
    flags = {name: flag for flag, name in PROPERTIES}
    for number, (heap, names) in enumerate(types):
        memory.types[number][:] = sum(flags[name] for name in names), heap
    return byref(memory)


def suitable_types(types, type_bits, purpose, unified):
    """Indices of the memory types that a block may lie in, the best first."""
    found = (ctypes.c_int * 32)()
    number = core().vkrt_suitable_types(memory_of(types), ctypes.c_uint32(type_bits), purpose,
                                        unified, found)
    return list(found[:number])


@needs_build
@pytest.mark.parametrize(("types", "unified", "purpose", "expected"), [
    (CPU, True, DEVICE, [0]), (CPU, True, STAGING, [0]), (CPU, True, READBACK, [0]),
    (CARD, False, DEVICE, [0, 2, 1, 3]), (CARD, False, STAGING, [1, 2, 3]),
    (CARD, False, READBACK, [3, 1, 2]),
    (AMD, False, DEVICE, [0, 2, 1, 3]), (AMD, False, READBACK, [3, 1, 2]),
    # What the host writes in place has to be visible wherever it comes to lie.
    (APU, True, DEVICE, [2, 3, 1]), (APU, True, READBACK, [3, 1, 2]),
    (PI, True, DEVICE, [0]), (PI, True, READBACK, [0]),
    (PHONE, True, DEVICE, [1, 0]), (PHONE, True, READBACK, [1, 0]),
    (PHONE, True, STAGING, [0])])
def test_the_best_comes_first(types, unified, purpose, expected):
    assert suitable_types(types, ANY_TYPE, purpose, unified) == expected


@needs_build
def test_only_types_of_the_bits():
    assert suitable_types(CARD, 0b1010, DEVICE, False) == [1, 3]
    assert suitable_types(CARD, 0, DEVICE, False) == []
    # An image that the host does not see may lie where the host sees nothing.
    assert suitable_types(APU, 0b0001, DEVICE, True) == [0]


@needs_build
@pytest.mark.parametrize(("types", "hidden"), [(CPU, 0), (CARD, 0b1), (PHONE, 0b100)])
def test_types_that_the_host_does_not_see(types, hidden):
    assert core().vkrt_hidden_types(memory_of(types)) == hidden


@needs_build
@pytest.mark.parametrize(("types", "shares", "slowly"), [
    (CPU, True, False), (APU, True, True), (PI, True, False), (PHONE, True, False),
    (CARD[:2], False, False)])
def test_devices_that_share_the_host_s_memory(types, shares, slowly):
    assert bool(core().vkrt_shares_memory(memory_of(types))) is shares
    assert not shares or bool(core().vkrt_reads_slowly(memory_of(types))) is slowly


@pytest.mark.parametrize(("types", "slowly"), [(APU, True), (PI, False)])
def test_without_the_host_s_cache_memory_is_shared_all_the_same(types, slowly, device):
    need_one_memory(device)  # in which what is overridden lies
    heaps = ({"size": 1 << 30, "device_local": True}, {"size": 1 << 30, "device_local": False})
    with override_device(heaps=heaps, memory_types=types), Device.open() as opened:
        assert opened.unified and opened.reads_slowly is slowly
        with Allocator(opened) as allocator:
            with allocator.allocate(1000, 16, ANY_TYPE, DEVICE) as block:
                assert block.is_mapped and types[block.memory_type][1] == (LOCAL, VISIBLE, COHERENT)
            with allocator.allocate(1000, 16, ANY_TYPE, READBACK) as block:
                assert (CACHED in types[block.memory_type][1]) is slowly


@pytest.mark.parametrize(("types", "discrete"), [(APU, False), (CARD, True)])
def test_other_memory_where_the_device_s_own_is_full(types, discrete, device):
    """A heap of the device's own that is smaller than what is asked of it, and the host's."""
    need_one_memory(device)  # in which what is overridden lies
    heaps = ({"size": 4096, "device_local": True}, {"size": 1 << 30, "device_local": False},
             {"size": 4096, "device_local": True})
    with override_device(discrete=discrete, heaps=heaps, memory_types=types), \
            Device.open() as opened, Allocator(opened) as allocator:
        with allocator.allocate(4096, 16, ANY_TYPE, DEVICE) as block:
            assert LOCAL in types[block.memory_type][1]
        with allocator.allocate(4097, 16, ANY_TYPE, DEVICE) as block:
            assert types[block.memory_type][0] == 1
            assert block.is_mapped
            assert allocator.displaced_bytes == 4097
            assert allocator.statistics()["block_bytes"] == 4097
        with pytest.raises(DeviceMemoryError, match="of heap 0"):
            allocator.allocate((1 << 30) + 1, 16, ANY_TYPE, DEVICE)
        assert allocator.statistics()["block_bytes"] == 0


@pytest.mark.driver
def test_more_than_the_device_allocates_at_once():
    with override_device(limits={"maxMemoryAllocationSize": 10_000}), Device.open() as device, \
            Allocator(device) as allocator:
        for kind in (DEVICE, STAGING, READBACK):
            allocator.allocate(10_000, 16, ANY_TYPE, kind).close()
            with pytest.raises(DeviceMemoryError, match="at most 10,000 at once"):
                allocator.allocate(10_001, 16, ANY_TYPE, kind)
