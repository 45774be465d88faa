"""Several methods of a program: the weights that they have in common are on the device once."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from support import MODELS, STORAGES

import vkrt
from vkrt.vk import live_objects
from vkrt.vk.device import Device
from vkrt.vk.memory import fail_allocation_after
from vkrt.vk.pretence import treat_as_discrete

pytestmark = pytest.mark.driver


@pytest.fixture(scope="module")
def reference():
    with np.load(MODELS / "coder.npz") as archive:
        return {name: (archive[f"{name}_in0"], archive[f"{name}_out0"])
                for name in ("encode", "decode")}


def load(device, **options):
    return vkrt.load(MODELS / "coder.pte", device, **options)


def check(program, reference, *names):
    for name in names:
        x, y = reference[name]
        result, = program.run(x, method=name)
        np.testing.assert_allclose(result, y, rtol=1e-5, atol=1e-5)


def weight_bytes(device, names, **options):
    """Bytes of the weights of a program with these methods loaded."""
    with load(device, **options) as program:
        for name in names:
            program.load_method(name)
        return program.memory.weights


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("weights", ["auto", "direct", "copy", "stream"])
def test_results_and_memory(storage, weights, device, reference):
    with load(device, storage=storage, weights=weights) as program:
        check(program, reference, "encode", "decode", "encode")
        memory = program.memory
        assert memory.measured_peak == memory.planned_peak
        assert memory.phases[-1].device == (memory.weights + memory.pool + memory.uploads
                                            + memory.activations + memory.host)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("weights", ["direct", "copy"])
def test_counted_once(storage, weights, device):
    options = {"storage": storage, "weights": weights}
    one = weight_bytes(device, ["encode"], **options)
    other = weight_bytes(device, ["decode"], **options)
    with load(device, **options) as program:
        program.load_method("encode")
        program.load_method("decode")
        memory = program.memory
        # A matrix of 40 x 24, one of 24 x 24, and a bias of 24.
        assert memory.shared == 4 * (40 * 24 + 24 * 24 + 24)
        assert memory.weights < one + other
        if storage != "texture3d":  # where images need more than their bytes
            assert memory.weights <= one + other - memory.shared
        assert sum(record.placement == "shared" for record in memory.placements) == 3


@pytest.mark.parametrize("options", [{"weights": "stream"}, {"memory_budget": "50KB"},
                                     {"memory_budget": "smallest"}], ids=str)
def test_not_with_a_budget(options, device, reference):
    """Each method is planned for itself then, whatever others hold."""
    with load(device, **options) as program:
        check(program, reference, "encode", "decode")
        assert program.memory.shared == 0


def test_on_a_device_with_memory_of_its_own(reference):
    treat_as_discrete(True)
    try:
        with Device.open() as opened, load(opened) as program:
            check(program, reference, "decode", "encode")
            assert program.memory.shared > 0
            assert program.memory.measured_peak == program.memory.planned_peak
    finally:
        treat_as_discrete(False)


@pytest.mark.parametrize("storage", ["texel", "texture3d"])
def test_weights_stay_as_long_as_a_method_reads_them(storage, device, reference):
    before = live_objects()
    with load(device, weights="copy", storage=storage) as program:
        check(program, reference, "encode", "decode")
        encode = program.load_method("encode")
        encode.close()
        encode.close()
        check(program, reference, "decode")
        program.load_method("decode").close()
        # Nothing but what belongs to the program as a whole.
        assert live_objects()["block"] == before["block"]


def test_a_load_that_fails_takes_nothing_along(device, reference):
    with load(device, weights="copy") as program:
        check(program, reference, "encode")
        held = live_objects()
        for failing in (1, 2, 3):
            fail_allocation_after(failing)
            try:
                with pytest.raises(vkrt.DeviceMemoryError):
                    program.load_method("decode")
            finally:
                fail_allocation_after(-1)
            assert live_objects() == held
        check(program, reference, "decode", "encode")


def test_side_by_side(device, reference):
    """Two threads, a method each, over the same weights."""
    failures = []
    with load(device, weights="direct") as program:
        def work(name):
            try:
                for _ in range(20):
                    check(program, reference, name)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in reference]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures
