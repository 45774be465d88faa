"""Blocks: exact bytes, the account of them, and running out."""

import pytest
from core_bench import ANY_TYPE, DEVICE, READBACK, STAGING

from vkrt.errors import DeviceMemoryError, VulkanError
from vkrt.vk import live_objects
from vkrt.vk.memory import Allocator, Block, fail_allocation_after, trim

pytestmark = pytest.mark.driver


@pytest.fixture
def allocator(device):
    with Allocator(device) as opened:
        yield opened
    fail_allocation_after(-1)


@pytest.mark.parametrize("size", [1, 100, 4096, 4097, 1_000_003, 64 << 20])
def test_block_is_exact_to_the_byte(allocator, size):
    with allocator.allocate(size, 256, ANY_TYPE, DEVICE) as block:
        assert block.size == size
        assert allocator.statistics() == {
            "block_bytes": size, "allocation_bytes": size, "block_count": 1, "allocation_count": 1,
            "peak_block_bytes": size, "peak_allocation_bytes": size}
    assert allocator.statistics()["block_bytes"] == 0


def test_statistics_are_the_allocator_s_own(device, allocator):
    with Allocator(device) as other, other.allocate(1000, 16, ANY_TYPE, DEVICE):
        assert allocator.statistics()["block_bytes"] == 0
        assert other.statistics()["block_bytes"] == 1000


def test_peak(allocator):
    a = allocator.allocate(3000, 16, ANY_TYPE, DEVICE)
    b = allocator.allocate(500, 16, ANY_TYPE, STAGING)
    a.close()
    c = allocator.allocate(1000, 16, ANY_TYPE, DEVICE)
    assert allocator.peak_block_bytes == allocator.peak_allocation_bytes == 3500
    assert allocator.statistics()["block_bytes"] == 1500
    b.close()
    c.close()
    assert allocator.statistics()["peak_block_bytes"] == 3500


@pytest.mark.parametrize("kind", [STAGING, READBACK])
def test_host_memory_is_written_and_read(allocator, kind):
    with allocator.allocate(1000, 64, ANY_TYPE, kind) as block:
        assert block.is_mapped
        assert block.coherent or kind == READBACK
        data = bytes(i % 251 for i in range(1000))
        block.write(0, data)
        block.write(990, memoryview(b"0123456789"))
        assert block.read(0, 1000) == data[:990] + b"0123456789"
        block.write(1000, b"")
        for offset, size in ((0, 1001), (1000, 1), (1001, 0), (2**64 - 1, 2)):
            with pytest.raises(ValueError, match="block of 1000"):
                block.read(offset, size)
    with pytest.raises(ValueError, match="closed"):
        block.read(0, 1)


def test_device_memory_is_mapped_where_it_is_shared(device, allocator):
    with allocator.allocate(1000, 64, ANY_TYPE, DEVICE) as block:
        _, flags = device.info.memory_types[block.memory_type]
        assert "device_local" in flags
        if device.unified:
            assert block.is_mapped
        assert block.is_mapped == ("host_visible" in flags)


def test_allocation_arguments(allocator):
    with pytest.raises(ValueError, match="at least one byte"):
        allocator.allocate(0, 16, ANY_TYPE, DEVICE)
    with pytest.raises(VulkanError, match="no memory type"):
        allocator.allocate(16, 16, 0, DEVICE)
    allocator.close()
    with pytest.raises(ValueError, match="closed"):
        allocator.allocate(16, 16, ANY_TYPE, DEVICE)
    with pytest.raises(TypeError):
        Block()


def test_injected_failure_happens_once_and_leaves_nothing(device, allocator):
    before = live_objects()
    with allocator.allocate(100, 16, ANY_TYPE, DEVICE):
        fail_allocation_after(2)
        with allocator.allocate(50, 16, ANY_TYPE, DEVICE):
            with pytest.raises(DeviceMemoryError) as failure:
                allocator.allocate(12345, 16, ANY_TYPE, DEVICE)
            assert allocator.statistics()["block_bytes"] == 150
            assert allocator.peak_block_bytes == 150
        allocator.allocate(12345, 16, ANY_TYPE, DEVICE).close()
    error = failure.value
    assert error.asked == 12345 and error.in_use == 150
    assert error.budget > 0 and error.heap < len(device.info.heaps)
    assert error.result == -2 and error.call == "vkAllocateMemory"
    assert "12,345 bytes" in str(error) and isinstance(error, MemoryError)
    assert live_objects() == before
    fail_allocation_after(1)
    fail_allocation_after(-1)
    allocator.allocate(16, 16, ANY_TYPE, DEVICE).close()


def test_real_exhaustion(device, allocator):
    before = live_objects()
    with pytest.raises(DeviceMemoryError) as failure:
        # more than any machine has
        allocator.allocate(1 << 46, 16, ANY_TYPE, DEVICE)
    assert failure.value.asked == 1 << 46
    assert allocator.statistics()["block_bytes"] == 0
    assert live_objects() == before


def test_trim_tells_whether_it_worked():
    assert trim() in (True, False)
