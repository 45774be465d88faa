"""Compiled programs through the C library, in the process of the tests: its calls by ctypes, with
arrays of numpy."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest
from core_runner import inputs_of, runs

from vkrt.capi.arrays import DTYPES, NUMBERS
from vkrt.capi.codes import CODES, INTERNAL
from vkrt.capi.config import LIBRARY, folder

CODE_OF = {kind.__name__: code for kind, code in CODES}
MAX_RANK = 16


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("nbytes", ctypes.c_size_t), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("sizes", ctypes.c_int64 * MAX_RANK)]


class TensorInfo(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char * 128),
                ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("sizes", ctypes.c_int64 * MAX_RANK), ("dynamic", ctypes.c_uint32),
                ("nbytes", ctypes.c_uint64)]


class MethodInfo(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char * 128),
                ("input_count", ctypes.c_size_t), ("output_count", ctypes.c_size_t)]


MEMORY = ("planned_peak", "measured_peak", "weights", "mapped", "streamed", "pool", "state",
          "staging", "activations", "host")


class Memory(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), *((name, ctypes.c_uint64) for name in MEMORY)]


class Failure(Exception):
    """A call that returned another code than VKRT_OK."""

    def __init__(self, code: int, text: str):
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


@cache
def library() -> ctypes.CDLL:
    found = ctypes.CDLL(str(folder() / LIBRARY))
    found.vkrt_last_error_text.restype = ctypes.c_char_p
    return found


def check(code: int) -> None:
    if code:
        raise Failure(code, library().vkrt_last_error_text().decode())


@contextmanager
def refused(kind: str, words: str | None = None) -> Iterator[None]:
    """A call within fails with the code of an exception of vkrt's, and a text that matches."""
    with pytest.raises(Failure, match=words) as caught:
        yield
    assert caught.value.code == CODE_OF[kind], caught.value


def tensor_of(array: np.ndarray) -> Tensor:
    """A tensor over an array, which has to stay."""
    assert array.flags.c_contiguous
    return Tensor(array.ctypes.data, array.nbytes, NUMBERS[str(array.dtype)], array.ndim,
                  (ctypes.c_int64 * MAX_RANK)(*array.shape))


def live() -> int:
    """Vulkan objects of the library's, and of Python's once it has loaded a `.pte` file here."""
    count = ctypes.c_size_t()
    check(library().vkrt_live_objects(ctypes.byref(count)))
    return count.value


class CompiledProgram:
    """A program of the library's."""

    def __init__(self, handle: ctypes.c_void_p):
        self.handle = handle

    def methods(self) -> list[tuple[str, int, int]]:
        """Names of all methods, with how many inputs and outputs they have."""
        count, found = ctypes.c_size_t(), []
        check(library().vkrt_method_count(self.handle, ctypes.byref(count)))
        for number in range(count.value):
            info = MethodInfo(ctypes.sizeof(MethodInfo))
            check(library().vkrt_method_get(self.handle, ctypes.c_size_t(number),
                                            ctypes.byref(info)))
            found.append((info.name.decode(), info.input_count, info.output_count))
        return found

    def infos(self, what: str, method: str = "forward") -> list[tuple]:
        """Of all inputs, or outputs: name, dtype, sizes, dynamic dimensions, bytes."""
        found = []
        counts = {name: counts for name, *counts in self.methods()}[method]
        for number in range(counts[what == "output"]):
            info = TensorInfo(ctypes.sizeof(TensorInfo))
            check(getattr(library(), f"vkrt_{what}_get")(
                self.handle, method.encode(), ctypes.c_size_t(number), ctypes.byref(info)))
            dynamic = tuple(d for d in range(info.rank) if info.dynamic >> d & 1)
            found.append((info.name.decode(), DTYPES[info.dtype], tuple(info.sizes[:info.rank]),
                          dynamic, info.nbytes))
        return found

    def run(self, *inputs: np.ndarray, method: str = "forward", state: object = None,
            room: int | None = None) -> list[np.ndarray]:
        """The outputs.

        Args:
            room: bytes of each output's memory; by default as many as there can be.
        """
        infos = self.infos("output", method)
        places = [np.full(nbytes if room is None else room, 0xA5, np.uint8)
                  for *_, nbytes in infos]
        given = (Tensor * len(inputs))(*map(tensor_of, inputs))
        outputs = (Tensor * len(places))(*(Tensor(place.ctypes.data, place.nbytes)
                                           for place in places))
        check(library().vkrt_run(self.handle, method.encode(), state, given,
                                 ctypes.c_size_t(len(inputs)), outputs,
                                 ctypes.c_size_t(len(places))))
        return [place[:tensor.nbytes].view(DTYPES[tensor.dtype]).reshape(
            tuple(tensor.sizes[:tensor.rank])) for place, tensor in zip(places, outputs)]

    def memory(self) -> dict[str, int]:
        """The figures of `vkrt_memory`."""
        memory = Memory(ctypes.sizeof(Memory))
        check(library().vkrt_memory_get(self.handle, ctypes.byref(memory)))
        return {name: getattr(memory, name) for name in MEMORY}

    def new_state(self, method: str = "forward") -> ctypes.c_void_p:
        state = ctypes.c_void_p()
        check(library().vkrt_state_new(self.handle, method.encode(), ctypes.byref(state)))
        return state

    def save(self, state: object = None, method: str = "forward") -> bytes:
        needed = ctypes.c_size_t()
        check(library().vkrt_state_save(self.handle, method.encode(), state, None,
                                        ctypes.c_size_t(0), ctypes.byref(needed)))
        memory = ctypes.create_string_buffer(needed.value)
        check(library().vkrt_state_save(self.handle, method.encode(), state, memory, needed,
                                        ctypes.byref(needed)))
        return memory.raw

    def restore(self, saved: bytes, state: object = None, method: str = "forward") -> None:
        check(library().vkrt_state_load(self.handle, method.encode(), state, saved,
                                        ctypes.c_size_t(len(saved))))


@contextmanager
def opened(path: object) -> Iterator[CompiledProgram]:
    """A program, closed at the end; nothing of it is left then."""
    before, handle = live(), ctypes.c_void_p()
    check(library().vkrt_load(str(path).encode(), None, ctypes.byref(handle)))
    try:
        yield CompiledProgram(handle)
    finally:
        check(library().vkrt_close(handle))
    assert live() == before


__all__ = ["CODE_OF", "INTERNAL", "CompiledProgram", "Failure", "check", "inputs_of", "library",
           "live", "opened", "runs", "tensor_of"]
