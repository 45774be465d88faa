"""A method of a compiled program on the core alone: tests see more of it than hosts do
(tests/capi/compiled_programs.py)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref
from pathlib import Path
from typing import Any

import numpy as np
from core_alone import Error, core
from support import inputs_of, same_bits

import vkrt


def on_device(values):
    """Contiguous arrays of the dtypes that devices have."""
    narrow = {np.dtype(np.int64): np.int32, np.dtype(np.float64): np.float32}
    return [np.ascontiguousarray(x, narrow.get(x.dtype, x.dtype)) for x in values]


class Runner:
    """A method on the core alone.

    Attributes:
        error: what the last call said.
    """

    def __init__(self, path: Path, method: str, run_kernel: Any) -> None:
        self.error, self.handle = Error(), ctypes.c_void_p()
        for function in (core().vkrt_method_of, core().vkrt_execution_of):
            function.restype = ctypes.c_void_p
        self.check(core().vkrt_open_runner(str(path).encode(), method.encode(), run_kernel,
                                           byref(self.handle), byref(self.error)))
        self.method = ctypes.c_void_p(core().vkrt_method_of(self.handle))

    def check(self, status: int) -> None:
        assert status == 0, (status, self.error.text)

    def write_inputs(self, inputs: Sequence[np.ndarray]) -> None:
        for number, array in enumerate(on_device(inputs)):
            self.check(core().vkrt_write_input(
                self.method, ctypes.c_int64(number), ctypes.c_void_p(array.ctypes.data),
                ctypes.c_size_t(array.nbytes), byref(self.error)))

    def run(self) -> int:
        """The status of a run over what was written."""
        status: int = core().vkrt_run_once(self.handle, byref(self.error))
        return status

    def check_run(self, inputs: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
        """Runs, and fails unless the outputs are the same bits as those of Python."""
        self.write_inputs(inputs)
        self.check(self.run())
        found = on_device(np.empty_like(output) for output in expected)
        for number, output in enumerate(found):
            self.check(core().vkrt_read_output(
                self.method, ctypes.c_int64(number), ctypes.c_void_p(output.ctypes.data),
                ctypes.c_size_t(output.nbytes), byref(self.error)))
        same_bits([x.astype(like.dtype) for x, like in zip(found, expected)], expected)


@contextmanager
def opened(path: Path, method: str = "forward", run_kernel: Any = None) -> Iterator[Runner]:
    """A runner, closed at the end.

    Args:
        run_kernel: runs the kernels of the host's, if it has any: a `RunHostKernel` of the core's.
    """
    runner = Runner(path, method, run_kernel)
    try:
        yield runner
    finally:
        core().vkrt_close_runner(runner.handle)


def runs(path: Path, times: int = 2) -> tuple[list[np.ndarray], Sequence[list[np.ndarray]]]:
    """Inputs of a program, and the outputs of some runs through Python."""
    with vkrt.load(path) as program:
        inputs = inputs_of(program)
        return inputs, [list(map(np.asarray, program.run(*inputs))) for _ in range(times)]
