"""The public interface: loading, running, arguments, releasing."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from support import MODELS

import vkrt

pytestmark = pytest.mark.driver


@pytest.fixture(scope="module")
def reference():
    with np.load(MODELS / "mlp.npz") as archive:
        return archive["in0"], archive["out0"]


def test_metadata(device):
    with vkrt.load(MODELS / "mlp.pte", device) as program:
        assert program.method_names == ("forward",)
        metadata = program.metadata("forward")
        assert [i.sizes for i in metadata.inputs] == [(3, 30)]
        assert [o.dtype for o in metadata.outputs] == ["float32"]
        with pytest.raises(vkrt.InputError, match="no method 'backward'.*forward"):
            program.metadata("backward")


def test_executorch_style(device, reference):
    x, y = reference
    with vkrt.load(MODELS / "mlp.pte", device) as program:
        method = program.load_method("forward")
        assert method is program.load_method("forward")
        np.testing.assert_allclose(method.execute([x])[0], y, rtol=1e-4, atol=1e-5)


def test_from_bytes(device, reference):
    x, y = reference
    with vkrt.load((MODELS / "mlp.pte").read_bytes(), device) as program:
        np.testing.assert_allclose(program.run(x)[0], y, rtol=1e-4, atol=1e-5)


def test_arguments_of_many_kinds(device, reference):
    """numpy, non-contiguous numpy, and plain buffers give the same result."""
    x, _ = reference

    class Exporter:
        def __dlpack__(self, **keywords):
            return x.__dlpack__()

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    with vkrt.load(MODELS / "mlp.pte", device) as program:
        expected, = program.run(x)
        padded = np.zeros((3, 60), np.float32)
        padded[:, ::2] = x
        for form in (padded[:, ::2], memoryview(x), Exporter(), np.asfortranarray(x)):
            np.testing.assert_array_equal(program.run(form)[0], expected)


def test_out(device, reference):
    x, _ = reference
    with vkrt.load(MODELS / "mlp.pte", device) as program:
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
def test_wrong_input(device, value, words):
    with vkrt.load(MODELS / "mlp.pte", device) as program:
        with pytest.raises(vkrt.InputError, match=words):
            program.run(value)
        with pytest.raises(vkrt.InputError, match="expected 1 inputs"):
            program.run()
        program.run(np.zeros((3, 30), np.float32))


def test_unknown_options(device):
    with pytest.raises(vkrt.InputError, match="storage='shelf'"):
        vkrt.load(MODELS / "mlp.pte", device, storage="shelf")
    with pytest.raises(vkrt.InputError, match="order='random'"):
        vkrt.load(MODELS / "mlp.pte", device, order="random")
    with pytest.raises(OSError):
        vkrt.load(MODELS / "no-such-file.pte", device)


def test_two_programs_and_threads(device, reference):
    """Runs from many threads on two programs give what one thread gets."""
    x, _ = reference
    failures = []
    with vkrt.load(MODELS / "mlp.pte", device) as one, vkrt.load(MODELS / "mlp.pte") as two:
        expected, = one.run(x)

        def work(program):
            try:
                for _ in range(20):
                    np.testing.assert_array_equal(program.run(x)[0], expected)
            except BaseException as error:  # noqa: BLE001 - reported by the main thread
                failures.append(error)

        threads = [threading.Thread(target=work, args=(p,)) for p in (one, two, one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_close(device, reference):
    x, _ = reference
    program = vkrt.load(MODELS / "mlp.pte", device)
    method = program.load_method("forward")
    program.close()
    program.close()
    with pytest.raises(ValueError, match="closed"):
        program.run(x)
    with pytest.raises(ValueError, match="closed"):
        method.execute([x])


def test_device_outlived_by_program(reference):
    """Closing the device first is allowed: it goes with its last user."""
    x, _ = reference
    device = vkrt.Device.open()
    program = vkrt.load(MODELS / "mlp.pte", device)
    device.close()
    program.run(x)
    program.close()


def test_left_open_is_released(reference):
    """A program nobody closed releases everything when it is collected (see `released`)."""
    program = vkrt.load(MODELS / "mlp.pte")
    program.run(reference[0])
    del program


def test_memory_report(device, reference):
    with vkrt.load(MODELS / "mlp.pte", device) as program:
        program.run(reference[0])
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


def test_eager_allocates_before_prepack(device):
    with vkrt.load(MODELS / "mlp.pte", device, order="eager") as program:
        memory = program.memory
        by_name = {p.name: p.device for p in memory.phases}
        kept = memory.weights + memory.activations + memory.host
        assert by_name["prepack start"] == kept
        assert memory.measured_peak == kept + memory.staging
        assert memory.planned_peak == memory.measured_peak


def test_large_weights_go_in_chunks(device, reference):
    """Staging never exceeds the chunk, however small, as long as one row fits."""
    x, y = reference
    with vkrt.load(MODELS / "mlp.pte", device, chunk=4096) as program:
        assert program.memory.staging <= 4096
        np.testing.assert_allclose(program.run(x)[0], y, rtol=1e-4, atol=1e-5)
