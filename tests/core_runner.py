"""A method of a compiled program on the core alone: tests see more of it than hosts do
(tests/capi/compiled_programs.py)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from core_alone import Error

import vkrt


@contextmanager
def opened(core, path, method="forward", run_kernel=None):
    """A runner, a function that makes sure of a status, and the error; `run_kernel`, a
    `RunHostKernel` of the core's, runs the kernels of the host."""
    error, runner = Error(), ctypes.c_void_p()

    def check(status):
        assert status == 0, (status, error.text)

    check(core.vkrt_open_runner(str(path).encode(), method.encode(), run_kernel,
                                ctypes.byref(runner), ctypes.byref(error)))
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


def method_of(core, opened):
    core.vkrt_method_of.restype = ctypes.c_void_p
    return ctypes.c_void_p(core.vkrt_method_of(opened[0]))


def write_input(core, opened, number, array):
    return core.vkrt_write_input(method_of(core, opened), ctypes.c_int64(number),
                                 array.ctypes.data_as(ctypes.c_void_p),
                                 ctypes.c_size_t(array.nbytes), opened[2])


def run_once(core, opened, inputs, outputs):
    """Outputs of a run, like the given ones."""
    runner, check, error = opened
    for number, array in enumerate(inputs):
        check(write_input(core, opened, number, array))
    check(core.vkrt_run_once(runner, error))
    found = [np.empty_like(like) for like in outputs]
    for number, result in enumerate(found):
        check(core.vkrt_read_output(method_of(core, opened), ctypes.c_int64(number),
                                    result.ctypes.data_as(ctypes.c_void_p),
                                    ctypes.c_size_t(result.nbytes), error))
    return found


def inputs_of(program: vkrt.Program, method: str = "forward") -> list[np.ndarray]:
    """Some for a method: random numbers, or zeros where they are integers."""
    chance = np.random.default_rng(1)
    inputs = [np.asarray(info.example()) for info in program.metadata(method).inputs]
    return [np.asarray(chance.standard_normal(x.shape), x.dtype) if x.dtype.kind == "f" else x
            for x in inputs]


def runs(path: Path, times: int = 2) -> tuple[list[np.ndarray], Sequence[list[np.ndarray]]]:
    """Inputs of a program, and the outputs of some runs through Python."""
    with vkrt.load(path) as program:
        inputs = inputs_of(program)
        return inputs, [list(map(np.asarray, program.run(*inputs))) for _ in range(times)]
