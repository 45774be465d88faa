"""Compiled programs on the core alone: the same bits and the same bytes as through Python."""

from __future__ import annotations

import ctypes
import subprocess
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from core_alone import Error
from core_build import ALONE, CC, needs_build
from support import MODELS, STORAGES, same_bits

import vkrt
from vkrt.device.policy import policy_of

# States, halves, 8 and 4 bits, shapes of every kind; no dynamic shapes and nothing on the host
NAMES = ("mlp", "elementwise", "quantized_mlp", "kept_attention", "unet_small", "mlp-fp16", "kept",
         "conv_mix", "quantized_pictures", "lstm_cell", "superres_small", "llama_static")

# Of a `Host` that is asked nothing, as vkrt/core/host_kernel.pxd has it: five pointers
HOST_BYTES = 40

pytestmark = [pytest.mark.driver, needs_build]


class Workarounds(ctypes.Structure):
    """As vkrt/core/workarounds.pxd has it."""

    _fields_ = [("odd_sizes", ctypes.c_int), ("loop_limit", ctypes.c_int64),
                ("max_texels", ctypes.c_int64), ("maps_files", ctypes.c_int)]


@pytest.fixture(scope="module")
def core():
    library = ctypes.CDLL(str(ALONE))
    library.vkrt_measured_peak.restype = ctypes.c_uint64
    library.vkrt_planned_peak.restype = ctypes.c_int64
    return library


@contextmanager
def opened(core, path, method="forward", host=None):
    """A runner, and a function that makes sure of a status.

    Args:
        host: a pointer to the core's `Host`; None for one that is asked nothing.
    """
    error, runner = Error(), ctypes.c_void_p()

    def check(status):
        assert status == 0, (status, error.text)

    check(core.vkrt_open_hosted_runner(str(path).encode(), 0, method.encode(),
                                       host or bytes(HOST_BYTES), ctypes.byref(runner),
                                       ctypes.byref(error)))
    try:
        yield runner, check, ctypes.byref(error)
    finally:
        core.vkrt_close_runner(runner)


def as_on_device(values):
    """Contiguous arrays of the dtypes that devices have."""
    narrow = {np.dtype(np.int64): np.int32, np.dtype(np.float64): np.float32}
    return [np.ascontiguousarray(x, narrow.get(x.dtype, x.dtype)) for x in values]


def as_told(found, expected):
    """The same arrays with the dtypes that Python returns."""
    return [x.astype(like.dtype) for x, like in zip(found, expected, strict=True)]


def set_input(core, opened, number, array):
    runner, _, error = opened
    return core.vkrt_set_input(runner, ctypes.c_int64(number),
                               array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes),
                               error)


def run_once(core, opened, inputs, outputs):
    """Outputs of a run, like the given ones."""
    runner, check, error = opened
    for number, array in enumerate(inputs):
        check(set_input(core, opened, number, array))
    check(core.vkrt_run_once(runner, None, None, error))
    found = [np.empty_like(like) for like in outputs]
    for number, result in enumerate(found):
        check(core.vkrt_get_output(runner, ctypes.c_int64(number),
                                   result.ctypes.data_as(ctypes.c_void_p),
                                   ctypes.c_size_t(result.nbytes), error))
    return found


def runs(path):
    """Inputs of a program, and the outputs of two runs through Python."""
    chance = np.random.default_rng(1)
    with vkrt.load(path) as program:
        inputs = [info.example() for info in program.metadata().inputs]
        inputs = [chance.standard_normal(x.shape).astype(x.dtype) if x.dtype.kind == "f" else x
                  for x in inputs]
        return inputs, [list(map(np.asarray, program.run(*inputs))) for _ in range(2)]


def check_runs(core, program, inputs, expected):
    """Runs one after the other have these results, and the peak is the planned one."""
    for outputs in expected:
        found = run_once(core, program, as_on_device(inputs), as_on_device(outputs))
        same_bits(as_told(found, outputs), outputs)
    assert core.vkrt_planned_peak(program[0]) == core.vkrt_measured_peak(program[0])


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_and_bytes(core, name, storage, tmp_path):
    out = tmp_path / "net.vkx"
    vkrt.compile(MODELS / f"{name}.pte", out, storage=storage)
    inputs, expected = runs(out)
    with opened(core, out) as program:
        check_runs(core, program, inputs, expected)


@pytest.mark.parametrize("options", [{"device": "generic"}, {"weights": "copy"},
                                     {"weights": "direct"}, {"order": "eager"}], ids=str)
def test_weights_that_come_in_other_ways(core, options, tmp_path):
    """Through a staging buffer, or written by the host."""
    out = tmp_path / "net.vkx"
    vkrt.compile(MODELS / "unet_small.pte", out, **options)
    inputs, expected = runs(out)
    with opened(core, out) as program:
        check_runs(core, program, inputs, expected)


@pytest.mark.parametrize("options", [{"weights": "stream"}, {"memory_budget": "smallest"},
                                     {"weights": "stream", "stream_lookahead": 0}], ids=str)
@pytest.mark.parametrize("name", ["unet_small", "kept_attention", "llama_static", "branches"])
def test_streamed_weights(core, name, options, tmp_path):
    """They come anew in every run, through a pool of their own."""
    out = tmp_path / "net.vkx"
    vkrt.compile(MODELS / f"{name}.pte", out, **options)
    inputs, expected = runs(out)
    with opened(core, out) as program:
        check_runs(core, program, inputs, expected)


def test_further_shapes(core, tmp_path):
    """In any order, over one set of weights, in the memory of the largest."""
    path, out = MODELS / "conv-dyn.pte", tmp_path / "net.vkx"
    chance = np.random.default_rng(2)
    with vkrt.load(path) as program:
        info, = program.metadata().inputs
        less = tuple(n - n % 4 - 4 if d in info.dynamic_dims else n
                     for d, n in enumerate(info.sizes))
        inputs = [chance.standard_normal(sizes).astype(info.dtype) for sizes in (info.sizes, less)]
        expected = [list(map(np.asarray, program.run(x))) for x in inputs]
    vkrt.compile(path, out, shapes=[[info.sizes], [less]])
    with opened(core, out) as program:
        runner, check, error = program
        for shape in (0, 1, 1, 0):
            check(core.vkrt_set_shape(runner, ctypes.c_int64(shape), error))
            found = run_once(core, program, [inputs[shape]], expected[shape])
            same_bits(found, expected[shape])
        assert core.vkrt_set_shape(runner, ctypes.c_int64(2), error) != 0
        assert core.vkrt_planned_peak(runner) == core.vkrt_measured_peak(runner)


def test_indices_that_cannot_be(core, tmp_path):
    """They are refused before a run, by the number of the input and what it may hold."""
    out = tmp_path / "net.vkx"
    vkrt.compile(MODELS / "llama_static.pte", out)
    inputs, (outputs, _) = runs(out)
    given = as_on_device(inputs)
    wrong = given[0].copy()
    wrong.flat[-1] = 1 << 20
    with opened(core, out) as program:
        assert set_input(core, program, 0, wrong) == 3
        text = ctypes.cast(program[2], ctypes.POINTER(Error)).contents.text.decode()
        assert text.startswith("input 0: expected numbers from ") and "got 1048576" in text
        assert set_input(core, program, 0, given[0][..., :-1].copy()) == 3
        same_bits(as_told(run_once(core, program, given, as_on_device(outputs)), outputs), outputs)


@pytest.mark.skipif(CC is None, reason="no C compiler")
@pytest.mark.parametrize("name", ["mlp", "kept_attention", "llama_static"])
def test_a_process_without_python(name, tmp_path):
    host, out = tmp_path / "host", tmp_path / "net.vkx"
    subprocess.run([CC, "-O1", Path(__file__).with_name("run_program.c"), ALONE, "-o", host,
                    f"-Wl,-rpath,{ALONE.parent}"], check=True)
    vkrt.compile(MODELS / f"{name}.pte", out)
    inputs, expected = runs(out)
    given, wanted = as_on_device(inputs), as_on_device(expected[0])
    (tmp_path / "in").write_bytes(b"".join(x.tobytes() for x in given))
    said = subprocess.run(
        [host, out, "forward", tmp_path / "in", tmp_path / "out",
         *(str(x.nbytes) for x in given), "-", *(str(x.nbytes) for x in wanted)],
        capture_output=True, text=True, check=True).stdout.split()
    planned, measured, python = map(int, said)
    assert planned == measured and not python
    assert (tmp_path / "out").read_bytes() == b"".join(
        x.tobytes() for outputs in expected for x in as_on_device(outputs))


def test_what_is_known_of_the_driver(core):
    """The same as the package's profile says of it."""
    with vkrt.Device.open() as device:
        policy = policy_of(device.info)
    known = Workarounds()
    assert core.vkrt_known_of_device(0, ctypes.byref(known), ctypes.byref(Error())) == 0
    assert (bool(known.odd_sizes), known.loop_limit or None, known.max_texels or None,
            bool(known.maps_files)) == (
        policy.odd_sizes, policy.loop_limit, policy.max_texels, policy.maps_files)


@pytest.mark.parametrize("arguments, words", [
    (("/nothing.vkx", 0, "forward"), "/nothing.vkx: No such file"),
    ((None, 99, "forward"), "no Vulkan device is '#99': 0 is "),
    ((None, 0, "backward"), "there is no method 'backward'")])
def test_what_does_not_load(core, arguments, words, tmp_path):
    path, device, method = arguments
    if path is None:
        path = tmp_path / "net.vkx"
        vkrt.compile(MODELS / "mlp.pte", path)
    error, runner = Error(), ctypes.c_void_p()
    assert core.vkrt_open_runner(str(path).encode(), device, method.encode(),
                                 ctypes.byref(runner), ctypes.byref(error)) != 0
    assert words in error.text.decode() and not runner.value
