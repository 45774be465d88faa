"""Several methods of a program: the weights that they have in common are on the device once."""

from contextlib import closing
from functools import partial

import numpy as np
import pytest
from support import MODELS, failing, in_threads

import vkrt
from vkrt.compiler.description import Description
from vkrt.report.memory import MemoryReport
from vkrt.vk import live_objects
from vkrt.vk.memory import fail_allocation_after


@pytest.fixture(scope="module")
def reference():
    with np.load(MODELS / "coder.npz") as archive:
        return {name: (archive[f"{name}_in0"], archive[f"{name}_out0"])
                for name in ("encode", "decode")}


@pytest.fixture
def load(load):
    return partial(load, "coder")


def check(program, reference, *names):
    for name in names:
        x, y = reference[name]
        result, = program.run(x, method=name)
        np.testing.assert_allclose(result, y, rtol=1e-5, atol=1e-5)


def weight_bytes(program, *names):
    """Bytes of the weights with these methods loaded."""
    for name in names:
        program.load_method(name)
    return program.memory.weights


@pytest.mark.parametrize("weights", ["auto", "direct", "copy", "stream"])
def test_results_and_memory(storage, weights, load, reference):
    program = load(storage=storage, weights=weights)
    check(program, reference, "encode", "decode", "encode")
    memory = program.memory
    assert memory.measured_peak == memory.planned_peak
    assert memory.phases[-1].device == (memory.weights + memory.pool + memory.uploads
                                        + memory.activations + memory.host)


@pytest.mark.parametrize("weights", ["direct", "copy"])
def test_counted_once(storage, weights, load):
    one, other, program = (load(storage=storage, weights=weights) for _ in range(3))
    one, other = weight_bytes(one, "encode"), weight_bytes(other, "decode")
    weight_bytes(program, "encode", "decode")
    memory = program.memory
    # A matrix of 40 x 24, one of 24 x 24, and a bias of 24.
    assert memory.shared == 4 * (40 * 24 + 24 * 24 + 24)
    assert memory.weights < one + other
    if storage != "texture3d":  # where images need more than their bytes
        assert memory.weights <= one + other - memory.shared
    assert sum(record.placement == "shared" for record in memory.placements) == 3


@pytest.mark.parametrize("options", [{"weights": "stream"}, {"memory_budget": "50KB"},
                                     {"memory_budget": "smallest"}], ids=str)
def test_not_with_a_budget(options, load, reference):
    """Each method is planned for itself then, whatever others hold."""
    program = load(**options)
    check(program, reference, "encode", "decode")
    assert program.memory.shared == 0


def test_on_a_device_with_memory_of_its_own(discrete, load, reference):
    program = load(device=discrete)
    check(program, reference, "decode", "encode")
    assert program.memory.shared > 0
    assert program.memory.measured_peak == program.memory.planned_peak


@pytest.mark.parametrize("storage", ["texel", "texture3d"])
def test_weights_stay_as_long_as_a_method_reads_them(storage, load, reference):
    before = live_objects()
    program = load(weights="copy", storage=storage)
    check(program, reference, "encode", "decode")
    encode = program.load_method("encode")
    encode.close()
    encode.close()
    check(program, reference, "decode")
    program.load_method("decode").close()
    # Nothing but what belongs to the program as a whole.
    assert live_objects()["block"] == before["block"]


def test_a_load_that_fails_takes_nothing_along(load, reference):
    program = load(weights="copy")
    check(program, reference, "encode")
    held = live_objects()
    for number in (1, 2, 3):
        with failing(fail_allocation_after, number), pytest.raises(vkrt.DeviceMemoryError):
            program.load_method("decode")
        assert live_objects() == held
    check(program, reference, "decode", "encode")


def test_a_load_that_fails_is_not_in_the_report(load, reference):
    program, other = load(weights="copy"), load(weights="copy")
    for number in (1, 2):
        with failing(fail_allocation_after, number), pytest.raises(vkrt.DeviceMemoryError):
            program.load_method("decode")
    for each in (program, other):
        check(each, reference, "decode", "encode")
    assert program.memory.planned_peak == program.memory.measured_peak
    assert (program.memory.weights, program.memory.placements) == (
        other.memory.weights, other.memory.placements)


def test_what_is_closed_leaves_a_report_that_goes_on(device):
    """As those of delegates that ExecuTorch's runtime loads: one report is of all of them."""
    report, found = MemoryReport(), set()
    with closing(Description(MODELS / "conv_mix.pte")) as description:
        for _ in range(3):
            method = vkrt.Method(description.graph("forward"), description.sources, device,
                                 report=report, options=vkrt.LoadOptions(weights="copy"))
            found.add((report.planned_peak, report.weights, report.activations,
                       len(report.placements)))
            method.leave_report()
            method.close()
            assert not (report.weights or report.activations or report.state or report.placements
                        or report.host or report.lower_bound)
    (figures,) = found
    assert all(figures)


def test_side_by_side(load, reference):
    """Two threads, a method each, over the same weights."""
    program = load(weights="direct")

    def work(name):
        for _ in range(20):
            check(program, reference, name)

    in_threads(*(partial(work, name) for name in reference))
