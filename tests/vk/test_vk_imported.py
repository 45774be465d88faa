"""Host memory that is imported into the device."""

import mmap

import numpy as np
import pytest
from core_bench import BUFFER_USAGE
from support import need_imports

from vkrt.vk import live_objects
from vkrt.vk.device import Device
from vkrt.vk.imported import HostImport, import_alignment

pytestmark = pytest.mark.driver

PAGE = mmap.PAGESIZE


@pytest.fixture
def mapping(tmp_path, device):
    """A read-only mapping of a file of 4 pages, and what is in it."""
    if import_alignment(device) not in (PAGE, 1):
        pytest.skip("the device imports no host memory, or not by pages")
    if device.info.type != "cpu":
        need_imports(device)
    content = np.random.default_rng(1).integers(0, 256, 4 * PAGE, np.uint8)
    path = tmp_path / "weights"
    path.write_bytes(content.tobytes())
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    return np.frombuffer(mapped, np.uint8), content


def test_an_import_is_no_device_memory_and_leaves_nothing(device, mapping):
    array, _ = mapping
    before = live_objects()
    imported = HostImport(device, array.ctypes.data + PAGE, PAGE, BUFFER_USAGE)
    assert imported.size == imported.buffer.size == PAGE
    assert live_objects()["import"] == before["import"] + 1
    assert live_objects()["block"] == before["block"]
    imported.close()
    imported.close()
    assert live_objects() == before


@pytest.mark.parametrize("offset, size", [(16, PAGE), (0, 100), (0, 0)])
def test_only_whole_pages_are_imported(device, mapping, offset, size):
    array, _ = mapping
    before = live_objects()
    with pytest.raises(ValueError, match="multiples of"):
        HostImport(device, array.ctypes.data + offset, size, BUFFER_USAGE)
    assert live_objects() == before


def test_an_import_keeps_a_closed_device(mapping):
    array, _ = mapping
    before = live_objects()
    device = Device.open()
    imported = HostImport(device, array.ctypes.data, PAGE, BUFFER_USAGE)
    device.close()
    assert live_objects()["device"] == before["device"] + 1
    imported.close()
    assert live_objects() == before
