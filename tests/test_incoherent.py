"""Memory that is not coherent: what one side wrote, the other sees only when it was carried over.

No driver at hand has such memory, so devices are overridden (`vkrt.vk.device_override`): a program
that lacks a flush or an invalidation reads rubbish then.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from support import QUICK, as_input, need_one_memory, open_method, path_of

import vkrt
from vkrt.graph.graph import Graph, Node
from vkrt.plan.plan import MemoryPlan
from vkrt.vk.device import Device
from vkrt.vk.device_override import override_device
from vkrt.vk.memory import Allocator, MemoryKind
from vkrt.work.command_list import CommandList
from vkrt.work.records import HostCall
from vkrt.work.tensor import Tensor

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
# Of floats: no whole atoms, and what lies behind them (with the margin of
# `Policy.avoid_recompile_padding`) begins in the last of them
LENGTH = 1124


@pytest.fixture(autouse=True)
def _one_memory(device):
    """What is overridden lies in memory that the host sees."""
    need_one_memory(device)


@contextmanager
def incoherent(own: bool = False, atom: int = ATOM):
    """A device that looks like that."""
    with override_device(discrete=own, heaps=HEAP, memory_types=OWN if own else SHARED,
                 limits={"nonCoherentAtomSize": atom}), Device.open() as device:
        assert device.unified is not own
        yield device


def results(name, device, calls, **options) -> list[bytes]:
    """The bytes of all outputs of some runs, one after the other; the plan has to hold."""
    with vkrt.load(path_of(name), device, **options) as program:
        found = [output.tobytes() for inputs in calls for output in program.run(*inputs)]
        assert program.memory.measured_peak <= program.memory.planned_peak
    return found


def calls_of(name, times: int = 3) -> list[list[np.ndarray]]:
    """Inputs of some runs: the largest sizes, and where they are dynamic smaller ones too."""
    random = np.random.default_rng(5)
    with vkrt.load(path_of(name), weights="direct") as program:
        infos = program.metadata().inputs
    calls = []
    for number in range(times):
        sizes = [tuple(s - 2 * number if d in i.dynamic_dims else s for d, s in enumerate(i.sizes))
                 for i in infos]
        calls.append([as_input(random.standard_normal(s) * 2, i) for s, i in zip(sizes, infos)])
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
    calls = calls_of(name)
    expected = results(name, device, calls, weights="copy")
    with incoherent(own) as opened:
        assert results(name, opened, calls, weights=weights) == expected


@pytest.mark.parametrize("own", [False, True])
def test_images(own, device):
    calls = calls_of("places")
    expected = results("places", device, calls, storage="texture3d")
    with incoherent(own) as opened:
        assert results("places", opened, calls, storage="texture3d") == expected


@pytest.mark.parametrize("own", [False, True])
def test_states_begin_anew(own, device):
    calls = calls_of("buffers")
    expected = results("buffers", device, calls)
    with incoherent(own) as opened, vkrt.load(path_of("buffers"), opened) as program:
        for _ in range(2):
            found = [output.tobytes() for inputs in calls for output in program.run(*inputs)]
            assert found == expected
            program.reset_state()


@pytest.mark.usefixtures("on_host")
def test_profiles(device):
    """Kernels on the host between steps that are submitted one by one."""
    inputs, = calls_of("places", 1)
    expected = results("places", device, [inputs])
    with incoherent() as opened, vkrt.load(path_of("places"), opened) as program:
        program.profile(*inputs, clock="host", repeat=1)
        assert [output.tobytes() for output in program.run(*inputs)] == expected


def neighbours_program() -> Graph:
    """relu of x, which the device keeps while the host sorts x, and their sum: lengths are such
    that what the host writes and what the device keeps meet in an atom."""
    x, kept, values, total = (Tensor((LENGTH,), "float32", name=name)
                              for name in ("x", "kept", "values", "total"))
    places = Tensor((LENGTH,), "int32", name="places")
    return Graph("neighbours", [x], [total, places], [
        Node("aten.relu.default", (x,), (kept,), "0"),
        Node("aten::sort.values", (x, 0, False), (values, places), "1", is_host=True),
        Node("aten.add.Tensor", (values, kept, 1), (total,), "2")]).finish()


def met_by_the_host(work: CommandList, plan: MemoryPlan) -> list[int]:
    """Storages that the device writes before the host's kernel and reads behind it, and that begin
    or end in an atom of what the kernel writes."""
    host = next(i for i, step in enumerate(work.steps) if isinstance(step, HostCall))
    written = {o.storage.id for step in work.steps[:host] for o in step.writes}
    read = {o.storage.id for step in work.steps[host + 1:] for o in step.reads}
    met = []
    for storage in written & read:
        block, place = plan.places[storage]
        for operand in work.steps[host].writes:
            other, found = plan.places[operand.storage.id]
            first = found.offset // ATOM * ATOM
            end = -(-(found.offset + operand.nbytes) // ATOM) * ATOM
            if other == block and place.offset < end and first < place.end:
                met.append(storage)
    return met


@pytest.mark.usefixtures("on_host")
def test_neighbours_of_what_the_host_writes():
    """A flush carries whole atoms, and what the device wrote there has to be in them."""
    array = np.random.default_rng(3).standard_normal(LENGTH).astype(np.float32)
    with incoherent() as opened, open_method(neighbours_program(), b"", opened) as method:
        assert met_by_the_host(method.work, method.plan)
        for _ in range(2):
            total, places = method.execute([array])
            np.testing.assert_array_equal(places, np.argsort(array, kind="stable"))
            np.testing.assert_array_equal(total, np.sort(array) + np.maximum(array, 0))
