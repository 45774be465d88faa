"""Which memory a block gets: by what devices say of theirs, and where the first choice is full."""

from __future__ import annotations

import pytest
from vk_bench import DEVICE, READBACK, STAGING

from vkrt.errors import DeviceMemoryError
from vkrt.vk.device import Device
from vkrt.vk.memory import Allocator
from vkrt.vk.memory_types import (
    ANY_TYPE,
    hidden_types,
    reads_slowly,
    shares_memory,
    suitable_types,
)
from vkrt.vk.pretence import pretend

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


@pytest.mark.parametrize(("types", "unified", "purpose", "expected"), [
    (CPU, True, "device", [0]), (CPU, True, "staging", [0]), (CPU, True, "readback", [0]),
    (CARD, False, "device", [0, 2, 1, 3]), (CARD, False, "staging", [1, 2, 3]),
    (CARD, False, "readback", [3, 1, 2]),
    (AMD, False, "device", [0, 2, 1, 3]), (AMD, False, "readback", [3, 1, 2]),
    # What the host writes in place has to be visible wherever it comes to lie.
    (APU, True, "device", [2, 3, 1]), (APU, True, "readback", [3, 1, 2]),
    (PI, True, "device", [0]), (PI, True, "readback", [0]),
    (PHONE, True, "device", [1, 0]), (PHONE, True, "readback", [1, 0]),
    (PHONE, True, "staging", [0])])
def test_the_best_comes_first(types, unified, purpose, expected):
    assert suitable_types(types, ANY_TYPE, purpose, unified) == expected


def test_only_types_of_the_bits():
    assert suitable_types(CARD, 0b1010, "device", False) == [1, 3]
    assert suitable_types(CARD, 0, "device", False) == []
    # An image that the host does not see may lie where the host sees nothing.
    assert suitable_types(APU, 0b0001, "device", True) == [0]


@pytest.mark.parametrize(("types", "hidden"), [(CPU, 0), (CARD, 0b1), (PHONE, 0b100)])
def test_types_that_the_host_does_not_see(types, hidden):
    assert hidden_types(types) == hidden


@pytest.mark.parametrize(("types", "shares", "slowly"), [
    (CPU, True, False), (APU, True, True), (PI, True, False), (PHONE, True, False),
    (CARD[:2], False, False)])
def test_devices_that_share_the_host_s_memory(types, shares, slowly):
    assert shares_memory(types) is shares
    assert not shares or reads_slowly(types) is slowly


@pytest.mark.driver
@pytest.mark.parametrize(("types", "slowly"), [(APU, True), (PI, False)])
def test_without_the_host_s_cache_memory_is_shared_all_the_same(types, slowly):
    heaps = ({"size": 1 << 30, "device_local": True}, {"size": 1 << 30, "device_local": False})
    with pretend(heaps=heaps, memory_types=types), Device.open() as device:
        assert device.unified and device.reads_slowly is slowly
        with Allocator(device) as allocator:
            with allocator.allocate(1000, 16, ANY_TYPE, DEVICE) as block:
                assert block.is_mapped and types[block.memory_type][1] == (LOCAL, VISIBLE, COHERENT)
            with allocator.allocate(1000, 16, ANY_TYPE, READBACK) as block:
                assert (CACHED in types[block.memory_type][1]) is slowly


@pytest.mark.driver
@pytest.mark.parametrize(("types", "discrete"), [(APU, False), (CARD, True)])
def test_other_memory_where_the_device_s_own_is_full(types, discrete):
    """A heap of the device's own that is smaller than what is asked of it, and the host's."""
    heaps = ({"size": 4096, "device_local": True}, {"size": 1 << 30, "device_local": False},
             {"size": 4096, "device_local": True})
    with pretend(discrete=discrete, heaps=heaps, memory_types=types), Device.open() as device, \
            Allocator(device) as allocator:
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
    with pretend(limits={"maxMemoryAllocationSize": 10_000}), Device.open() as device, \
            Allocator(device) as allocator:
        for kind in (DEVICE, STAGING, READBACK):
            allocator.allocate(10_000, 16, ANY_TYPE, kind).close()
            with pytest.raises(DeviceMemoryError, match="at most 10,000 at once"):
                allocator.allocate(10_001, 16, ANY_TYPE, kind)
