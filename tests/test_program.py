"""The public interface: loading, running, arguments, releasing."""

from functools import partial

import numpy as np
import pytest
from support import MODELS, in_threads, mlp_arrays

import vkrt
from vkrt.method.arguments import HostMemory, TensorInfo, check_input

pytestmark = pytest.mark.driver


def test_metadata(load):
    program = load("mlp")
    assert program.method_names == ("forward",)
    metadata = program.metadata("forward")
    assert [i.sizes for i in metadata.inputs] == [(3, 30)]
    assert [o.dtype for o in metadata.outputs] == ["float32"]
    with pytest.raises(vkrt.InputError, match="no method 'backward'.*forward"):
        program.metadata("backward")


def test_executorch_style(load):
    x, y = mlp_arrays()
    program = load("mlp")
    method = program.load_method("forward")
    assert method is program.load_method("forward")
    np.testing.assert_allclose(method.execute([x])[0], y, rtol=1e-4, atol=1e-5)


def test_from_bytes(load):
    x, y = mlp_arrays()
    program = load((MODELS / "mlp.pte").read_bytes())
    np.testing.assert_allclose(program.run(x)[0], y, rtol=1e-4, atol=1e-5)


def test_arguments_of_many_kinds(load):
    """numpy, non-contiguous numpy, and plain buffers give the same result."""
    x, _ = mlp_arrays()

    class Exporter:
        def __dlpack__(self, **keywords):
            return x.__dlpack__()

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    program = load("mlp")
    expected, = program.run(x)
    padded = np.zeros((3, 60), np.float32)
    padded[:, ::2] = x
    for form in (padded[:, ::2], memoryview(x), Exporter(), np.asfortranarray(x)):
        np.testing.assert_array_equal(program.run(form)[0], expected)


def test_out(load):
    x, _ = mlp_arrays()
    program = load("mlp")
    expected, = program.run(x)
    out = np.empty_like(expected)
    result, = program.run(x, out=[out])
    assert result is out
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(vkrt.InputError, match="out 0"):
        program.run(x, out=[np.empty((1, 1), np.float32)])
    with pytest.raises(vkrt.InputError):
        program.run(x, out=[])


@pytest.mark.parametrize(("value", "words"), [
    (np.zeros((3, 30), np.float64), r"input 0 .*expected float32\[3,30\], got float64\[3,30\]"),
    (np.zeros((3, 30), np.float16), r"got float16\[3,30\]"),
    (np.zeros((3, 31), np.float32), r"got float32\[3,31\]"),
    (np.zeros((90,), np.float32), r"got float32\[90\]"),
    (np.zeros((3, 30, 1), np.float32), r"got float32\[3,30,1\]"),
    (object(), "input 0"),
])
def test_wrong_input(load, value, words):
    program = load("mlp")
    with pytest.raises(vkrt.InputError, match=words):
        program.run(value)
    with pytest.raises(vkrt.InputError, match="expected 1 inputs"):
        program.run()
    program.run(np.zeros((3, 30), np.float32))


@pytest.mark.parametrize(("value", "fixed", "dtype"), [
    (np.True_, True, "bool"), (np.int32(3), 3, "int64"), (np.float32(1.5), 1.5, "float64")])
def test_numbers_in_a_hosts_memory(value, fixed, dtype):
    """As hosts in C pass them for inputs of one value."""
    def checked(number, sizes=()):
        memory = memoryview(bytearray(number.tobytes()))
        return check_input(HostMemory(memory, number.dtype.name, sizes), info, 0)

    info = TensorInfo("x", (), dtype, (), (fixed,))
    array = checked(value)
    assert array.dtype == dtype and array.shape == () and array.item() == fixed
    for wrong, sizes in ((np.uint8(7), ()), (np.zeros(2, np.float32), (2,)),
                         (np.zeros(0, np.float32), (0,))):
        with pytest.raises(vkrt.InputError, match="input 0 'x'.*got [0-9a-z]"):
            checked(wrong, sizes)


def test_unknown_options(load):
    with pytest.raises(vkrt.InputError, match="storage='shelf'"):
        load("mlp", storage="shelf")
    with pytest.raises(vkrt.InputError, match="order='random'"):
        load("mlp", order="random")
    with pytest.raises(OSError):
        load("no-such-file")


def test_two_programs_and_threads(load):
    """Runs from many threads on two programs give what one thread gets."""
    x, _ = mlp_arrays()
    one, two = load("mlp"), load("mlp", device=None)
    expected, = one.run(x)

    def work(program):
        for _ in range(20):
            np.testing.assert_array_equal(program.run(x)[0], expected)

    in_threads(*(partial(work, program) for program in (one, two, one, two)))


def test_device_outlived_by_program():
    """Closing the device first is allowed: it goes with its last user."""
    x, _ = mlp_arrays()
    device = vkrt.Device.open()
    program = vkrt.load(MODELS / "mlp.pte", device)
    device.close()
    program.run(x)
    program.close()


def test_left_open_is_released():
    """A program nobody closed releases everything when it is collected (see `released`)."""
    program = vkrt.load(MODELS / "mlp.pte")
    program.run(mlp_arrays()[0])
    del program


def test_memory_report(load):
    program = load("mlp")
    program.run(mlp_arrays()[0])
    memory = program.memory
    names = [p.name for p in memory.phases]
    assert names == ["before load", "graph built", "prepack start", "after prepack",
                     "before execute", "end of execute"]
    by_name = {p.name: p.device for p in memory.phases}
    assert by_name["graph built"] == by_name["prepack start"] == 0
    assert by_name["after prepack"] == memory.weights
    # On a device with memory of its own inputs and outputs lie where the host sees them.
    run = memory.activations + memory.host
    assert by_name["before execute"] == memory.weights + run
    assert by_name["end of execute"] == by_name["before execute"]
    assert memory.planned_peak == memory.measured_peak == max(
        memory.weights + memory.staging, memory.weights + run)
    assert "planned peak" in memory.table()


def test_eager_allocates_before_prepack(load):
    memory = load("mlp", order="eager").memory
    by_name = {p.name: p.device for p in memory.phases}
    kept = memory.weights + memory.activations + memory.host
    assert by_name["prepack start"] == kept
    assert memory.measured_peak == kept + memory.staging
    assert memory.planned_peak == memory.measured_peak


def test_large_weights_go_in_chunks(load):
    """Staging never exceeds the chunk, however small, as long as one row fits."""
    x, y = mlp_arrays()
    program = load("mlp", chunk=4096)
    assert program.memory.staging <= 4096
    np.testing.assert_allclose(program.run(x)[0], y, rtol=1e-4, atol=1e-5)
