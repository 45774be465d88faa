"""Devices whose kernels see few bytes of a buffer: larger weights and activations are done in
ranges."""

import pytest
from support import find_model
from test_models import SMALL, check

import vkrt
from vkrt.vk.device_override import override_device

KIB = 1 << 10

pytestmark = pytest.mark.driver


@pytest.fixture(params=[64 * KIB, 1 << 20, 100 * KIB + 16], ids="range{}".format)
def few_bytes(request):
    """A device whose kernels see at most so many bytes."""
    limits = {"maxStorageBufferRange": request.param}
    with override_device(limits=limits), vkrt.Device.open() as device:
        yield device


@pytest.mark.parametrize("name", SMALL)
def test_small_programs(name, storage, few_bytes):
    check(find_model(f"{name}.pte"), few_bytes, storage=storage)
