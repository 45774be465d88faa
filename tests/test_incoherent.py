"""Memory that is not coherent: what one side wrote, the other sees only when it was carried over.

No driver at hand has such memory, so devices pretend to (`vkrt.vk.pretence`): a program that lacks
a flush or an invalidation reads rubbish then.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from support import MODELS, QUICK

import vkrt
from vkrt.vk.device import Device
from vkrt.vk.memory import Allocator, MemoryKind
from vkrt.vk.pretence import pretend

pytestmark = pytest.mark.driver

# On further drivers, when one has run them all, less is enough: see tools/test.
NAMES = ["places"] if QUICK else ["mlp", "places", "buffers", "conv-dyn"]
WEIGHTS = ["auto", "stream"] if QUICK else ["auto", "direct", "copy", "stream"]

HEAP = ({"size": 1 << 31, "device_local": True},)
# Both kinds of device whose memory is cached by the host and not coherent, as some mobile GPUs are
SHARED = ((0, ("device_local", "host_visible", "host_coherent")),
          (0, ("device_local", "host_visible", "host_cached")))
OWN = ((0, ("device_local",)), (0, ("host_visible", "host_coherent")),
       (0, ("host_visible", "host_cached")))
# Larger than any alignment: neighbours meet in atoms
ATOM = 1024


@contextmanager
def incoherent(own: bool = False, atom: int = ATOM):
    """A device that looks like that."""
    with pretend(discrete=own, heaps=HEAP, memory_types=OWN if own else SHARED,
                 limits={"nonCoherentAtomSize": atom}), Device.open() as device:
        assert device.unified is not own
        yield device


def results(path, device, calls, **options) -> list[bytes]:
    """The bytes of all outputs of some runs, one after the other; the plan has to hold."""
    with vkrt.load(path, device, **options) as program:
        found = [output.tobytes() for inputs in calls for output in program.run(*inputs)]
        assert program.memory.measured_peak <= program.memory.planned_peak
    return found


def calls_of(path, times: int = 3) -> list[list[np.ndarray]]:
    """Inputs of some runs: the largest sizes, and where they are dynamic smaller ones too."""
    random = np.random.default_rng(5)
    with vkrt.load(path, weights="direct") as program:
        infos = program.metadata().inputs
    calls = []
    for number in range(times):
        sizes = [tuple(s - 2 * number if d in i.dynamic_dims else s for d, s in enumerate(i.sizes))
                 for i in infos]
        calls.append([(random.standard_normal(s) * 2).astype(i.dtype)
                      for s, i in zip(sizes, infos)])
    return calls


def test_a_block_shows_what_was_carried_over():
    with incoherent(atom=64) as device, Allocator(device) as allocator:
        for kind, coherent in ((MemoryKind.MEMORY_DEVICE, False),
                               (MemoryKind.MEMORY_READBACK, False),
                               (MemoryKind.MEMORY_STAGING, True)):
            with allocator.allocate(1000, 64, 0b11, kind) as block:
                assert block.is_mapped and block.coherent is coherent
                block.write(10, bytes(range(100)))
                assert block.read(10, 100) == bytes(range(100))
                assert coherent or block.read(0, 10) == b"\x5A" * 10


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("on_host")
def test_programs(name, weights, own, device):
    """Inputs, outputs, weights, kernels on the host, states and dynamic sizes."""
    path = MODELS / f"{name}.pte"
    calls = calls_of(path)
    expected = results(path, device, calls, weights="copy")
    with incoherent(own) as opened:
        assert results(path, opened, calls, weights=weights) == expected


@pytest.mark.parametrize("own", [False, True])
def test_images(own, device):
    path = MODELS / "places.pte"
    calls = calls_of(path)
    expected = results(path, device, calls, storage="texture3d")
    with incoherent(own) as opened:
        assert results(path, opened, calls, storage="texture3d") == expected


@pytest.mark.parametrize("own", [False, True])
def test_states_begin_anew(own, device):
    path = MODELS / "buffers.pte"
    calls = calls_of(path)
    expected = results(path, device, calls)
    with incoherent(own) as opened, vkrt.load(path, opened) as program:
        for _ in range(2):
            found = [output.tobytes() for inputs in calls for output in program.run(*inputs)]
            assert found == expected
            program.reset_state()


@pytest.mark.usefixtures("on_host")
def test_profiles(device):
    """Kernels on the host between steps that are submitted one by one."""
    path = MODELS / "places.pte"
    inputs, = calls_of(path, 1)
    expected = results(path, device, [inputs])
    with incoherent() as opened, vkrt.load(path, opened) as program:
        program.profile(*inputs, clock="host", repeat=1)
        assert [output.tobytes() for output in program.run(*inputs)] == expected
