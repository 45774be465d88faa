"""Devices whose kernels see few bytes of a buffer: larger weights and activations are done in
ranges."""

import pytest
from support import calls_of, close_to, find_model
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


@pytest.mark.parametrize("options", [{}, {"weights": "stream"}, {"memory_budget": "smallest"}],
                         ids=str)
def test_a_language_model(options):
    """Caches, a table, and layers with dynamic sizes; also streamed."""
    limits = {"maxStorageBufferRange": 7 * KIB, "maxMemoryAllocationSize": 40_000}
    with (override_device(limits=limits), vkrt.Device.open() as device,
          vkrt.load(find_model("llama.pte"), device, **options) as program):
        for inputs, expected in calls_of("llama", "step"):
            close_to(program.run(*inputs), expected)
        assert program.memory.measured_peak <= program.memory.planned_peak
