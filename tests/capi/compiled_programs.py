"""Compiled programs through the C library, in the tests' own process: by ctypes, with arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vkrt.capi.arrays import DTYPES, NUMBERS
from vkrt.capi.codes import CODES
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


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the library, with texts in UTF-8 and numbers as `size_t`.

    Raises:
        Failure: it has failed.
    """
    code = getattr(library(), name)(*(
        word.encode() if isinstance(word, str) else ctypes.c_size_t(word)
        if isinstance(word, int) else word for word in arguments))
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
    call("vkrt_live_objects", byref(count))
    return count.value


class CompiledProgram:
    """A program of the library's."""

    def __init__(self, handle: ctypes.c_void_p):
        self.handle = handle

    def methods(self) -> dict[str, tuple[int, int]]:
        """How many inputs and outputs all methods have, by their names."""
        count, found = ctypes.c_size_t(), {}
        call("vkrt_method_count", self.handle, byref(count))
        for number in range(count.value):
            info = MethodInfo(ctypes.sizeof(MethodInfo))
            call("vkrt_method_get", self.handle, number, byref(info))
            found[info.name.decode()] = info.input_count, info.output_count
        return found

    def infos(self, what: str, method: str = "forward") -> list[tuple]:
        """Of all inputs, or outputs: name, dtype, sizes, dynamic dimensions, bytes."""
        found = []
        for number in range(self.methods()[method][what == "output"]):
            info = TensorInfo(ctypes.sizeof(TensorInfo))
            call(f"vkrt_{what}_get", self.handle, method, number, byref(info))
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
        call("vkrt_run", self.handle, method, state, given, len(inputs), outputs, len(places))
        return [place[:tensor.nbytes].view(DTYPES[tensor.dtype]).reshape(
            tuple(tensor.sizes[:tensor.rank])) for place, tensor in zip(places, outputs)]

    def memory(self) -> dict[str, int]:
        """The figures of `vkrt_memory`."""
        memory = Memory(ctypes.sizeof(Memory))
        call("vkrt_memory_get", self.handle, byref(memory))
        return {name: getattr(memory, name) for name in MEMORY}

    def new_state(self, method: str = "forward") -> ctypes.c_void_p:
        state = ctypes.c_void_p()
        call("vkrt_state_new", self.handle, method, byref(state))
        return state

    def save(self, state: object = None, method: str = "forward") -> bytes:
        needed = ctypes.c_size_t()
        call("vkrt_state_save", self.handle, method, state, None, 0, byref(needed))
        memory = ctypes.create_string_buffer(needed.value)
        call("vkrt_state_save", self.handle, method, state, memory, needed, byref(needed))
        return memory.raw

    def restore(self, saved: bytes, state: object = None, method: str = "forward") -> None:
        call("vkrt_state_load", self.handle, method, state, saved, len(saved))


@contextmanager
def loaded(path: str | Path, options: Any = None, *, counts: bool = True
           ) -> Iterator[ctypes.c_void_p]:
    """The handle of a program, closed at the end; nothing of it is left then, unless the device was
    lost.

    Args:
        counts: what is left is looked at.
    """
    before, handle, is_lost = live(), ctypes.c_void_p(), False
    try:
        call("vkrt_load", str(path), options, byref(handle))
        yield handle
    except Failure as error:
        is_lost = error.code == CODE_OF["DeviceLostError"]
        raise
    finally:
        call("vkrt_close", handle)
        left = live() - before
        assert not left or is_lost or not counts, f"{left} objects left"


@contextmanager
def opened(path: str | Path) -> Iterator[CompiledProgram]:
    with loaded(path) as handle:
        yield CompiledProgram(handle)
