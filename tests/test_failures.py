"""What happens when something goes wrong: the right exception, nothing left behind."""

import random
from collections import Counter
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from mutations import Model
from support import MODELS, QUICK, as_input, failing, outside, reference_of, run_python

import vkrt
from vkrt.compiler.description import Description
from vkrt.graph.states import PREPACK
from vkrt.lowering.context import Lowering
from vkrt.lowering.lowering import lower
from vkrt.ops import registry
from vkrt.ops.dtypes import ANY
from vkrt.vk.memory import fail_allocation_after
from vkrt.work.target import Target
from vkrt.work.tensor import Operand


@pytest.mark.parametrize("weights, order, storage, least", [
    ("copy", "lazy", "texel", 3), ("copy", "lazy", "texture3d", 3), ("copy", "eager", "texel", 3),
    ("copy", "eager", "texture3d", 3), ("direct", "lazy", "texel", 2),
    ("direct", "eager", "texel", 2), ("stream", "lazy", "texel", 2)])
def test_out_of_memory_at_every_allocation(device, weights, order, storage, least):
    """Each allocation of a load fails in turn; everything before it is released each time."""
    for failures in range(100):
        try:
            with failing(fail_allocation_after, failures + 1), vkrt.load(
                    MODELS / "conv_mix.pte", device, order=order, storage=storage,
                    weights=weights) as good:
                good.run(np.zeros(good.metadata().inputs[0].sizes, np.float32))
            break
        except vkrt.DeviceMemoryError as error:
            assert error.asked > 0
            assert error.breakdown["peak_bytes"] >= error.breakdown["weight_bytes"] >= 0
            assert isinstance(error, MemoryError)
    else:
        pytest.fail("more than 100 allocations")
    assert failures >= least  # a weight block or the pool, staging if there is any, the arena


def test_other_programs_go_on_after_a_failure(load):
    (x,), (y,) = reference_of("mlp")
    program = load("mlp")
    with failing(fail_allocation_after, 1), pytest.raises(vkrt.DeviceMemoryError):
        load("conv_mix")
    np.testing.assert_allclose(program.run(x)[0], y, rtol=1e-4, atol=1e-5)


def damaged(name, rng):
    """A program with a few bytes of its first half, where it says what it is, changed."""
    data = bytearray((MODELS / name).read_bytes())
    for _ in range(rng.choice((1, 1, 2, 4))):
        data[rng.randrange(len(data) // 2)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
    return bytes(data)


@pytest.mark.parametrize("name", ["toy.pte", "conv_mix.pte", "elementwise.pte", "shapes.pte"])
def test_damaged_files(name, device):
    """Any byte may be wrong: a clear exception, or a program that is another one. That gives the
    same results in every run and in other storages, in which what lies behind an operand differs.
    """
    rng = random.Random(f"7 {name}")
    # Less on further drivers: nothing of this depends on them.
    count = 12 if QUICK else 60
    refused = 0
    for number in range(count):
        data = damaged(name, rng)
        try:
            results = [answers(data, device, storage) for storage in ("texel", "buffer")]
        except (vkrt.FormatError, vkrt.UnsupportedError) as error:
            assert str(error)
            refused += 1
            continue
        for first, second in zip(*results, strict=True):
            np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-4,
                                       err_msg=f"file {number}")
    assert 0 < refused < count


def answers(data, device, storage):
    """Results of a program on numbers that are no two alike, the same twice."""
    with vkrt.load(data, device, storage=storage) as program:
        inputs = [as_input(np.linspace(-1, 1, int(np.prod(i.sizes))).reshape(i.sizes), i)
                  for i in program.metadata().inputs]
        first, second = program.run(*inputs), program.run(*inputs)
    assert [a.tobytes() for a in first] == [b.tobytes() for b in second]
    return first


@pytest.mark.parametrize("name", ["elementwise", "conv_mix", "attention", "buffers", "lstm_cell"])
def test_changed_dtypes(name):
    """Every dtype of every tensor of a delegate, changed to every other: nothing that is accepted
    reaches beyond its memory."""
    model = Model.of(name, (MODELS / f"{name}.pte").read_bytes())
    outcomes = Counter()
    for site in model.by_name["number", "VkTensor.datatype"]:
        for dtype in set(range(8)) - {model.data[site.at]}:
            data = bytearray(model.data)
            data[site.at] = dtype
            outcomes[outcome(bytes(data), f"byte {site.at} becomes {dtype}")] += 1
    assert outcomes["FormatError"]


def outcome(data, what):
    """Which exception a program is refused with, or "lowered"."""
    try:
        with closing(Description(data)) as description:
            for name in description.method_names:
                assert not outside(lower(description.graph(name), Target())), what
    except (vkrt.FormatError, vkrt.UnsupportedError) as error:
        return type(error).__name__
    return "lowered"


@pytest.fixture
def reaching_beyond():
    """A program whose weight of 16 bytes is declared to be of an operator that reads 32 of it."""
    data = bytearray((MODELS / "elementwise.pte").read_bytes())
    assert data[7950] == 5  # float32
    data[7950] = 0  # bool
    with closing(Description(bytes(data))) as description:
        yield description.graph("forward")


def test_a_weight_declared_as_bool(reaching_beyond):
    with pytest.raises(vkrt.FormatError, match="et_vk.prepack.default .*expected dtype bool"):
        lower(reaching_beyond, Target())


def test_a_reach_beyond_memory_is_never_lowered(reaching_beyond, monkeypatch):
    """Should a rule let such a program pass, then no view is made of the weight; and should one be,
    no record."""
    monkeypatch.setitem(registry._DECLARED, PREPACK,
                        replace(registry.operator(PREPACK), dtypes=ANY))
    with pytest.raises(AssertionError, match="cannot be a view of bool elements"):
        lower(reaching_beyond, Target())
    monkeypatch.setattr(Lowering, "alias", unchecked_alias)
    with pytest.raises(AssertionError, match="beyond its storage"):
        lower(reaching_beyond, Target())


def unchecked_alias(cx, tensor, source, order, offset=0):
    return cx.place(tensor, Operand(source.storage, tensor.sizes, tensor.dtype, tuple(order),
                                    raw=source.raw, offset=source.offset + offset))


@pytest.mark.parametrize("length", [0, 3, 8, 40, 1000])
def test_truncated(device, length):
    data = (MODELS / "mlp.pte").read_bytes()[:length]
    with pytest.raises(vkrt.FormatError):
        vkrt.load(data, device)


def test_import_without_a_driver():
    """Importing works; opening a device says what is missing."""
    said = run_python(
        "import vkrt\n"
        "try: vkrt.devices()\n"
        "except vkrt.LoaderError as e: print('LoaderError', e)\n",
        VKRT_VULKAN_LIBRARY="/nonexistent/libvulkan.so")
    assert "LoaderError" in said and "/nonexistent/libvulkan.so" in said


def test_no_device():
    """A library without a driver behind it is a LoaderError too."""
    said = run_python(
        "import vkrt\n"
        "try: vkrt.load(b'')\n"
        "except vkrt.VkrtError as e: print(type(e).__name__)\n"
        "try: print(vkrt.devices())\n"
        "except vkrt.LoaderError as e: print('LoaderError', e)\n",
        VK_DRIVER_FILES="/nonexistent.json", VK_ICD_FILENAMES="/nonexistent.json")
    assert "FormatError" in said
    assert "LoaderError" in said or "[]" in said
