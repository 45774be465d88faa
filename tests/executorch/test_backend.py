"""The backend for ExecuTorch, in a stand-in for its runtime (`fake_runtime`)."""

from __future__ import annotations

import numpy as np
import pytest
from fake_runtime import Fake, Refused, Value, build
from support import MODELS, calls_of, failing, in_threads, reference_of

import vkrt
import vkrt.executorch
from vkrt import pte
from vkrt.compiler.description import Description
from vkrt.dynamic.ranges import find_dynamic
from vkrt.errors import InputError, UnsupportedError, VkrtError
from vkrt.executorch import runtime
from vkrt.plan.options import LoadOptions
from vkrt.vk import live_objects
from vkrt.vk.memory import fail_allocation_after

pytestmark = pytest.mark.driver

NOT_SUPPORTED, INVALID_ARGUMENT, DAMAGED, NO_MEMORY = 0x10, 0x12, 0x30, 0x31
INVALID_STATE = 0x02


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Fake:
    return Fake(build(tmp_path_factory.mktemp("fake")))


@pytest.fixture
def fake(library, device):
    """The stand-in with vkrt registered."""
    library.library.fake_forget()
    library.lent()
    register(library, device)
    yield library
    assert library.lent()[0] == 0


def register(fake, device, **options):
    vkrt.executorch._connect(runtime.functions_of(str(fake.path)), device, LoadOptions(**options))


def inputs_of(name):
    return reference_of(name)[0]


def same(results, expected):
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, wanted, strict=isinstance(wanted, np.ndarray))


@pytest.mark.parametrize("name", [
    "mlp", "mlp-fp16", "conv_mix", "quantized_pictures", "shapes", "lstm_cell", "quantized_mlp",
    "elementwise", "cases/bools", "cases/constant_outputs", "cases/int_equal", "cases/scalars",
    "cases/unread_input"])
def test_results_are_those_of_load(name, fake, load):
    inputs = inputs_of(name)
    expected = load(name).run(*inputs)
    with fake.load(name) as method:
        same(method.run(*inputs), expected)
        same(method.run(*inputs), expected)


def test_options(storage, fake, device, load):
    options = {"storage": storage, "winograd": "off"}
    register(fake, device, **options)
    inputs = inputs_of("superres_small")
    expected = load("superres_small", **options).run(*inputs)
    with fake.load("superres_small") as method:
        same(method.run(*inputs), expected)
        assert vkrt.executorch.memory().measured_peak == vkrt.executorch.memory().planned_peak


def test_constants_come_one_at_a_time(fake):
    """Each is asked for once, and given back before the next; the blob is given back too."""
    with fake.load("conv_mix") as method:
        now, most, count = fake.lent()
        assert (now, most) == (0, 1)
        assert count == len(Description(MODELS / "conv_mix.pte").program.named_data)
        assert method.blobs_lent == 0
        method.run(*inputs_of("conv_mix"))
        assert fake.lent() == (0, 0, 0)


def test_constants_in_the_blob(fake, monkeypatch):
    """As exporters wrote them before 1.0: the blob stays lent, because its bytes are the weights'.
    """
    monkeypatch.syspath_prepend(str(MODELS.parent / "pte"))
    import pte_writer as w

    weight = np.arange(8, dtype=np.float32).reshape(2, 4)
    flat = w.graph(
        values=[w.vk_tensor([2, 4]), w.vk_tensor([2, 4], constant=0), w.vk_tensor([2, 4]),
                w.vk_int(1), w.vk_tensor([2, 4])],
        chain=[w.call("et_vk.prepack.default", 1, 2), w.call("aten.add.Tensor", 0, 2, 3, 4)],
        inputs=[0], outputs=[4], constants=[w.vk_bytes(0, weight.nbytes)])
    blob = w.blob(flat, weight.tobytes())
    with fake.load("mlp", damage=lambda _: blob) as method:
        assert method.blobs_lent == 1
        values = [Value(pte.TensorMeta(6, "float32", (2, 4), (0, 1))) for _ in range(2)]
        values[0].set(np.full((2, 4), 0.5, np.float32))
        method.call(0, values)
        np.testing.assert_array_equal(values[1].get(), weight + 0.5)


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("name", ["pair-dyn", "attention-dyn", "between-dyn"])
def test_dynamic_shapes(name, declared, fake, load):
    """Outputs take the sizes that they have; also where the compile options are silent."""
    calls, program = calls_of(name), load(name)
    with fake.load(name, declared=declared) as method:
        for inputs, _ in [*calls, calls[0]]:
            same(method.run(*inputs), program.run(*inputs))


def test_calls_say_which_sizes_change(fake, load, monkeypatch):
    """Also where sizes that go together have told of other dimensions."""
    def find_others(graph):
        find_dynamic(graph)
        for tensor in graph.inputs:
            if tensor.dynamic_dims:
                tensor.dynamic_dims = (0,)

    monkeypatch.setattr("vkrt.executorch.delegate.find_dynamic", find_others)
    program = load("attention-dyn")
    with fake.load("attention-dyn") as method:
        for inputs, _ in calls_of("attention-dyn"):
            same(method.run(*inputs), program.run(*inputs))


def test_sizes_between_delegates(fake):
    """A delegate hands a size to the next one as a number; a kernel between them is numpy's."""
    with fake.load("shrinking-dyn") as method:
        for inputs, expected in calls_of("shrinking-dyn"):
            for result, wanted in zip(method.run(*inputs), expected, strict=True):
                np.testing.assert_allclose(result, wanted, 1e-5, 1e-5)


@pytest.mark.parametrize("name", ["buffers", "buffers_dynamic"])
@pytest.mark.parametrize("declared", [True, False])
def test_states(name, declared, fake, load):
    """Buffers keep their values from call to call, each load of the program its own."""
    inputs = [each for each, _ in calls_of(name, "step")]
    program = load(name)
    expected = [program.run(*each) for each in inputs]
    with (fake.load(name, declared=declared) as first,
          fake.load(name, declared=declared) as second):
        for method in (first, second):
            for each, wanted in zip(inputs, expected):
                same(method.run(*each), wanted)


def test_two_methods_share_weights(fake):
    arrays = np.load(MODELS / "coder.npz")

    def weights(*names):
        methods = [fake.load("coder", name) for name in names]
        for name, method in zip(names, methods):
            result, = method.run(arrays[f"{name}_in0"])
            np.testing.assert_allclose(result, arrays[f"{name}_out0"], rtol=1e-5, atol=1e-5)
        nbytes = vkrt.executorch.memory().weights
        for method in methods:
            method.close()
        return nbytes

    alone = [weights("encode"), weights("decode")]
    assert max(alone) < weights("encode", "decode") < sum(alone)


def test_everything_is_released(fake, device):
    before = live_objects()
    for name in ("mlp", "buffers", "pair-dyn"):
        with fake.load(name):
            assert live_objects() != before
        assert live_objects() == before


# Errors: a code, and a text that says what it is


def refused(code, act, match):
    with pytest.raises(Refused) as info:
        act()
    assert info.value.code == code
    text = vkrt.executorch.last_error()
    assert text is not None and match in text, text


def test_damaged_delegate(fake):
    refused(DAMAGED, lambda: fake.load("mlp", damage=lambda blob: b"\0" * len(blob)),
            "FormatError: VH00 header.magic at file offset 4")
    refused(DAMAGED, lambda: fake.load("mlp", damage=lambda blob: blob[:100]), "FormatError")


def test_missing_constants(fake):
    key = list(Description(MODELS / "mlp.pte").program.named_data)[-1]
    refused(DAMAGED, lambda: fake.load("mlp", drop=[key]), f"no constant under the key '{key}'")
    refused(DAMAGED, lambda: fake.load("mlp", with_map=False), "has none for this program")


def test_missing_operator(fake):
    refused(NOT_SUPPORTED,
            lambda: fake.load("mlp", damage=lambda blob: blob.replace(
                b"aten.relu.default", b"aten.rolu.default").replace(
                b"aten.linear.default", b"aten.linoar.default")),
            "UnsupportedError: method 'forward' needs")


def test_no_memory(fake):
    before = live_objects()
    with failing(fail_allocation_after, 1):
        refused(NO_MEMORY, lambda: fake.load("mlp"), "DeviceMemoryError")
    assert live_objects() == before


@pytest.fixture
def pair():
    """Inputs of pair-dyn.pte, and those of other sizes that do not go together."""
    first, second, *others = calls_of("pair-dyn")[0][0]
    return (first, second, *others), (first, second[..., :-1], *others)


def test_sizes_that_do_not_fit(fake, pair):
    inputs, wrong = pair
    with fake.load("pair-dyn") as method:
        expected = method.run(*inputs)
        refused(INVALID_ARGUMENT, lambda: method.run(*wrong), "InputError")
        same(method.run(*inputs), expected)


def test_static_outputs_stay(fake):
    """A tensor that the runtime does not resize is an error, not memory that is written over."""
    x, = inputs_of("superres_small")
    with fake.load("superres_small") as method:
        expected = method.run(x)
        refused(INVALID_ARGUMENT, lambda: method.run(x[..., :-4]), "the runtime cannot give")
        same(method.run(x), expected)


@pytest.mark.parametrize("name", ["shared_undecided", "shared_outputs"])
def test_what_a_call_does_not_say(name, fake):
    name = f"cases/{name}"
    with fake.load(name) as method:
        refused(NOT_SUPPORTED, lambda: method.run(*inputs_of(name)), "which are which")


def test_two_threads_in_one_method(fake):
    """The runtime is not made for that: one of them is told."""
    with fake.load("conv_mix") as method:
        values = [method.values[i] for i in method.plan.instructions[0].args]
        method.run(*inputs_of("conv_mix"))
        codes, texts = [], []

        def call():
            for _ in range(200):
                try:
                    method.call(0, values)
                except Refused as error:
                    codes.append(error.code)
                    texts.append(vkrt.executorch.last_error())
                    return

        in_threads(*[call] * 4)
        assert set(codes) == {INVALID_STATE}
        assert all("by two threads" in text for text in texts)


# Registration


def test_another_backend_is_left_alone(fake, device):
    fake.library.fake_forget()
    fake.library.fake_register_other()
    with pytest.raises(VkrtError, match="has a backend 'VulkanBackend' already"):
        register(fake, device)
    assert fake.library.fake_registered() == 1


def test_no_room(fake, device):
    fake.library.fake_forget()
    fake.library.fake_fill(16)
    with pytest.raises(VkrtError, match="room for 16"):
        register(fake, device)


def test_registered_once(fake, device):
    """Options may change while nothing is loaded; the runtime keeps the one backend."""
    register(fake, device, storage="buffer")
    assert fake.library.fake_registered() == 1
    with fake.load("mlp"), pytest.raises(VkrtError, match="cannot change"):
        register(fake, device)


def test_the_same_options_again(fake, device):
    """Also while programs are loaded, which go on."""
    register(fake, device, storage="buffer")
    inputs = inputs_of("mlp")
    with fake.load("mlp") as method:
        expected = method.run(*inputs)
        register(fake, device, storage="buffer")
        same(method.run(*inputs), expected)
        for other in ({"storage": "texel"}, {"storage": "buffer", "chunk": 1 << 16}):
            with pytest.raises(VkrtError, match="cannot change"):
                register(fake, device, **other)
        with pytest.raises(VkrtError, match="cannot change"):
            register(fake, None, storage="buffer")
    register(fake, device)


def test_the_last_error_is_that_of_the_last_call(fake, pair):
    inputs, wrong = pair
    for _ in range(2):
        refused(DAMAGED, lambda: fake.load("pair-dyn", damage=lambda blob: blob[:100]),
                "FormatError")
        with fake.load("pair-dyn") as method:
            assert vkrt.executorch.last_error() is None
            refused(INVALID_ARGUMENT, lambda: method.run(*wrong), "InputError")
            method.run(*inputs)
            assert vkrt.executorch.last_error() is None
            refused(INVALID_ARGUMENT, lambda: method.run(*wrong), "InputError")
        # Destroying delegates is no call that it speaks of.
        assert "InputError" in vkrt.executorch.last_error()


def test_options_are_checked():
    with pytest.raises(InputError, match="storage"):
        vkrt.executorch.register(storage="paper")


@pytest.mark.parametrize("release", ["1.4.0", "1.5.1", "1.5.1+cpu", "1.5.0"])
def test_tested_releases(release):
    runtime.check_version(release)


@pytest.mark.parametrize("release", ["1.3.0", "1.5.2", "1.6.0", "2.0", "0.7.0", "main"])
def test_other_releases(release, monkeypatch):
    monkeypatch.delenv(runtime.ANY_VERSION, raising=False)
    with pytest.raises(UnsupportedError, match="was not tested .* expected 1.4.0 to 1.5.1"):
        runtime.check_version(release)
    monkeypatch.setenv(runtime.ANY_VERSION, "1")
    runtime.check_version(release)


@pytest.mark.parametrize("library", ["/nothing.so", "libc.so.6"])
def test_no_runtime_in_a_library(library):
    with pytest.raises(VkrtError, match="is not a runtime of ExecuTorch"):
        runtime.functions_of(library)
